//! The venue's definition, as the engine takes it at a start. Called by [`super`].

use super::Finding;
use crate::pruned::missing_beginning;
use crate::settings::Settings;
use std::path::Path;
use touchline_engine::config::EngineConfig;
use touchline_engine::genesis::{doubt_of_sessions, doubts_of_section};
use touchline_engine::snapshot::{check_snapshot_folder, list};
use touchline_engine::{check_definition, check_new_log, has_log};
use touchline_protocol::causes::with_causes;
use touchline_protocol::log::reader::{Follow, LogReader};

/// What this is about, in findings.
const NAME: &str = "definition";

/// Whether a start takes it, what of it would be of no use in a new venue, and what of its limits is not enough in any.
pub(super) fn look(data: &Path, settings: &Settings) -> Vec<Finding> {
    let doubt = doubt_of_sessions(settings.engine.limits.sessions);
    let doubtful = doubt.map(|doubt| Finding::could(NAME, doubt.found, doubt.advice));
    defined(data, settings).into_iter().chain(doubtful).collect()
}

fn defined(data: &Path, settings: &Settings) -> Vec<Finding> {
    let config = &settings.engine;
    let is_there = check_definition(config, data).and_then(|_| Ok(has_log(data)?));
    let is_there = match is_there {
        Err(error) => {
            let found = with_causes(settings.with_place(error).as_ref());
            return vec![Finding::wrong(NAME, found, "")];
        }
        Ok(is_there) => is_there,
    };
    if is_there {
        if let Some(finding) = unusable_log(data) {
            return vec![finding];
        }
        let found = "of the log that is there, whatever the settings say; `touchline log verify` \
                     checks each frame of it";
        return vec![Finding::good(NAME, found)];
    }
    if let Err(error) = check_new_log(data) {
        return vec![Finding::wrong(NAME, error.to_string(), "")];
    }
    let EngineConfig { assets, symbols, accounts, .. } = config;
    let doubts = symbols.iter().flat_map(|symbol| doubts_of_section(symbol, assets));
    let doubtful: Vec<_> =
        doubts.map(|doubt| Finding::could(NAME, doubt.found, doubt.advice)).collect();
    if !doubtful.is_empty() {
        return doubtful;
    }
    let (assets, symbols, accounts) = (assets.len(), symbols.len(), accounts.len());
    vec![Finding::good(NAME, format!("{assets} assets, {symbols} symbols, {accounts} accounts"))]
}

/// What keeps a start from taking the definition out of the log: segments or snapshots that cannot be listed, one
/// that is missing between others, a first one that is none, or a beginning that was pruned and whose snapshots are
/// gone.
fn unusable_log(data: &Path) -> Option<Finding> {
    if let Err(error) = check_snapshot_folder(data).and_then(|()| list(data)) {
        return Some(Finding::wrong(NAME, error.to_string(), ""));
    }
    // What keeps a reader alone from it keeps no engine from it.
    let reader = LogReader::open(data, Follow::Durable).ok()?;
    let why = missing_beginning(data, reader.position()).ok().flatten()?;
    let advice = "bring back a snapshot, or the segments before it, from a copy";
    Some(Finding::wrong(NAME, why, advice))
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    /// Every price times every quantity is an amount.
    const COARSE: &str = "tick_size = \"0.0001\"\nlot_step = \"0.0001\"\n";

    /// State and texts of what is found about a new venue of one symbol with these keys.
    fn found(keys: &str) -> Vec<(State, String)> {
        let text = format!(
            "[[assets]]\nname = \"A\"\n[[assets]]\nname = \"B\"\n\
             [[symbols]]\nname = \"AB\"\nbase = \"A\"\nquote = \"B\"\n{keys}"
        );
        let settings = crate::settings::of_text(&text).unwrap();
        let findings = look(tempfile::tempdir().unwrap().path(), &settings).into_iter();
        findings.map(|one| (one.state, format!("{} {}", one.found, one.advice))).collect()
    }

    #[test]
    fn what_a_symbol_takes_in_vain_is_told() {
        for (keys, told) in [
            ("", &[][..]),
            ("quote_quantity = true", &[]),
            ("oco = true", &["oco"]),
            ("oco = true\norder_types = [\"LIMIT_MAKER\", \"LIMIT\"]", &["oco"]),
            ("oco = true\norder_types = [\"STOP_LOSS_LIMIT\", \"STOP_LOSS\"]", &["oco"]),
            ("oco = true\norder_types = [\"LIMIT_MAKER\", \"STOP_LOSS\"]", &[]),
            ("oco = true\norder_types = [\"LIMIT_MAKER\", \"STOP_LOSS_LIMIT\"]", &[]),
            (
                "oco = true\nquote_quantity = true\norder_types = [\"LIMIT\"]",
                &["oco", "quote_quantity"],
            ),
        ] {
            let found = found(&format!("{COARSE}{keys}"));
            let expected = if told.is_empty() { State::Good } else { State::Could };
            assert_eq!(found.len(), told.len().max(1), "{keys}: {found:?}");
            assert!(found.iter().all(|(state, _)| *state == expected), "{keys}: {found:?}");
            for ((_, text), key) in found.iter().zip(told) {
                assert!(text.contains("AB") && text.contains(key), "{keys}: {text}");
            }
        }
    }

    #[test]
    fn too_few_session_names_are_told_beside_the_rest() {
        assert_eq!(found(&format!("{COARSE}[limits]\nsessions = 12")).len(), 1);
        let found = found(&format!("{COARSE}[limits]\nsessions = 11"));
        let [(good, _), (state, told)] = &found[..] else { panic!("{found:?}") };
        assert_eq!((*good, *state), (State::Good, State::Could), "{told}");
        assert!(told.contains("limits.sessions = 11"), "{told}");
    }

    #[test]
    fn a_symbol_finer_than_amounts_is_told() {
        assert_eq!(found(COARSE).len(), 1);
        for keys in ["", "tick_size = \"0.0001\"", "tick_size = \"0.0001\"\nlot_step = \"0.00001\""]
        {
            let found = found(keys);
            let [(state, told)] = &found[..] else { panic!("{found:?}") };
            assert_eq!(*state, State::Could, "{told}");
            assert!(told.contains("AB") && told.contains("tick_size"), "{told}");
        }
    }
}
