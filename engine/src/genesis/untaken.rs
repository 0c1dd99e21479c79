//! What settings define and a venue that is there does not have. Called by the engine's start.

use crate::config::EngineConfig;
use std::collections::HashSet;
use touchline_core::Core;
use touchline_protocol::units::{AccountId, AssetId, SymbolId};

/// So many are named.
const NAMED: usize = 5;

/// Words about the assets, symbols and accounts of `config` that `core` does not have; `None` if it has all. A
/// definition is taken once, for a new data folder: who changes it later is to hear that nothing came of it.
pub(crate) fn untaken(config: &EngineConfig, core: &Core) -> Option<String> {
    let assets = (0..).map_while(|id| Some(core.asset(AssetId(id))?.name.to_string()));
    let symbols = (0..).map_while(|id| Some(core.symbol(SymbolId(id))?.name.to_string()));
    let accounts = (0..).map_while(|id| Some(core.account(AccountId(id))?.name.to_string()));
    let (assets, symbols): (HashSet<_>, HashSet<_>) = (assets.collect(), symbols.collect());
    let accounts: HashSet<_> = accounts.collect();
    let missing = |kind: &'static str, there: HashSet<String>| {
        move |name: &String| (!there.contains(name)).then(|| format!("{kind} {name}"))
    };
    let missing: Vec<String> = config
        .assets
        .iter()
        .map(|asset| &asset.name)
        .filter_map(missing("asset", assets))
        .chain(
            config.symbols.iter().map(|symbol| &symbol.name).filter_map(missing("symbol", symbols)),
        )
        .chain(
            config
                .accounts
                .iter()
                .map(|account| &account.name)
                .filter_map(missing("account", accounts)),
        )
        .collect();
    let more = missing.len().checked_sub(NAMED).filter(|more| *more != 0);
    let more = more.map_or(String::new(), |more| format!(" and {more} more"));
    (!missing.is_empty()).then(|| {
        format!(
            "this venue does not have {}{more}: a definition is taken once, by the first start in a data folder; \
             `touchline admin` changes a venue",
            missing[..missing.len().min(NAMED)].join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::genesis::Genesis;

    fn config(assets: &[&str], accounts: &[&str]) -> EngineConfig {
        let entry = |kind: &str, name: &&str| format!("[[{kind}]]\nname = \"{name}\"\n");
        let assets: String = assets.iter().map(|name| entry("assets", name)).collect();
        let accounts: String = accounts.iter().map(|name| entry("accounts", name)).collect();
        let symbol = "[[symbols]]\nname = \"AB\"\nbase = \"A\"\nquote = \"B\"\n";
        toml::from_str(&format!("{assets}{symbol}{accounts}")).unwrap()
    }

    #[test]
    fn what_the_venue_does_not_have_is_named() {
        let core = Genesis::new(&config(&["A", "B"], &["one"])).unwrap().venue().unwrap();
        assert_eq!(untaken(&config(&["A", "B"], &["one"]), &core), None);
        assert_eq!(untaken(&config(&["B", "A"], &[]), &core), None, "less is no definition");
        let told = untaken(&config(&["A", "B", "C"], &["two", "one"]), &core).unwrap();
        assert!(told.starts_with("this venue does not have asset C, account two: "), "{told}");
        let many: Vec<_> = (0..9).map(|number| format!("n{number}")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        let told = untaken(&config(&["A", "B"], &many), &core).unwrap();
        assert!(told.contains("account n4 and 4 more: "), "{told}");
    }
}
