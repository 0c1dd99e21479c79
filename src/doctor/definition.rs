//! The venue's definition, as the engine takes it at a start. Called by [`super`].

use super::Finding;
use std::path::Path;
use touchline_engine::config::EngineConfig;
use touchline_engine::{check_definition, has_log};

/// Whether a start takes it.
pub(super) fn look(data: &Path, config: &EngineConfig) -> Finding {
    let name = "definition";
    if let Err(error) = check_definition(config, data) {
        return Finding::wrong(name, error.to_string(), "");
    }
    if has_log(data) {
        return Finding::good(name, "of the log that is there, whatever the settings say");
    }
    let EngineConfig { assets, symbols, accounts, .. } = config;
    let (assets, symbols, accounts) = (assets.len(), symbols.len(), accounts.len());
    Finding::good(name, format!("{assets} assets, {symbols} symbols, {accounts} accounts"))
}
