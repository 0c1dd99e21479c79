//! What settings say and a venue that is there does otherwise, as it was taken by the first start and is changed by
//! commands only. Called by the engine's start.

use super::filter_values::{FilterValue, filter_values};
use super::{symbol_filters, trimmed};
use crate::config::{
    AccountSection, AssetSection, EngineConfig, OrderTypes, SymbolSection, spellings,
};
use std::collections::HashSet;
use toml::{Table, Value};
use touchline_core::{AccountView, Core};
use touchline_protocol::message::command::{SYMBOL_ICEBERG, SYMBOL_OCO, SYMBOL_QUOTE_QUANTITY};
use touchline_protocol::units::{AccountId, AssetId, KeyId, SymbolId};

/// Lines that are told; how many more there are is told behind them.
const LINES: usize = 16;

/// Bytes of a MiB.
const MIB: u64 = 1 << 20;

/// Which keys of the settings somebody has written. What has its default only is nobody's wish.
#[derive(Clone, Default, Debug)]
pub struct Written(HashSet<String>);

impl Written {
    /// Every key of a file.
    #[must_use]
    pub fn all_of(table: &Table) -> Self {
        let mut written = Self::default();
        for (section, value) in table {
            match value {
                Value::Table(keys) => keys.keys().for_each(|key| written.note(section, key)),
                Value::Array(entries) => {
                    for (entry, keys) in entries.iter().enumerate() {
                        let keys = keys.as_table().into_iter().flat_map(Table::keys);
                        keys.for_each(|key| written.note_entry(section, entry, key));
                    }
                }
                _ => {}
            }
        }
        written
    }

    /// Notes `section.key`, under each spelling of it.
    pub fn note(&mut self, section: &str, key: &str) {
        self.0.extend(spellings(section, key).map(|key| format!("{section}.{key}")));
    }

    /// Notes a key of an entry of a list, which is counted from 0.
    fn note_entry(&mut self, section: &str, entry: usize, key: &str) {
        self.0.insert(format!("{section}.{entry}.{key}"));
    }

    fn has(&self, section: &str, key: &str) -> bool {
        self.0.contains(&format!("{section}.{key}"))
    }

    fn has_entry(&self, section: &str, entry: usize, key: &str) -> bool {
        self.0.contains(&format!("{section}.{entry}.{key}"))
    }
}

/// A line about each written key that says something else than what is in force, with the command that changes that,
/// if one does.
pub(crate) fn not_in_force(
    config: &EngineConfig,
    written: &Written,
    core: &Core,
    segment_bytes: u64,
) -> Vec<String> {
    let mut lines = Vec::new();
    let (wanted, there) = (config.log.segment_mib, segment_bytes / MIB);
    if written.has("log", "segment_mib") && wanted != there {
        lines.push(line(
            "",
            ("log.segment_mib", &wanted),
            &there,
            "a log keeps the size that it was made with",
        ));
    }
    exchange(config, written, core, &mut lines);
    for (entry, asset) in config.assets.iter().enumerate() {
        if written.has_entry("assets", entry, "precision") {
            lines.extend(of_asset(asset, core));
        }
    }
    for (entry, symbol) in config.symbols.iter().enumerate() {
        let is_written = |key: &str| written.has_entry("symbols", entry, key);
        of_symbol(symbol, &is_written, core, &mut lines);
    }
    for (entry, account) in config.accounts.iter().enumerate() {
        let is_written = |key: &str| written.has_entry("accounts", entry, key);
        of_account(account, &is_written, core, &mut lines);
    }
    let more = lines.len().saturating_sub(LINES);
    lines.truncate(LINES);
    if more > 0 {
        lines.push(format!("{more} more keys of the venue's definition are not in force"));
    }
    lines
}

/// `whose` is empty or ends with a blank; `way` says what changes it.
fn line(
    whose: &str,
    (key, wanted): (&str, &dyn std::fmt::Display),
    there: &dyn std::fmt::Display,
    way: &str,
) -> String {
    format!("{whose}{key} = {wanted} is not in force, but {there}: {way}")
}

fn exchange(config: &EngineConfig, written: &Written, core: &Core, lines: &mut Vec<String>) {
    let wanted = [config.exchange.max_orders, config.exchange.max_algo_orders];
    let there = core.venue_filters();
    let keys = ["max_orders", "max_algo_orders"];
    let is_other = [0, 1].map(|at| written.has("exchange", keys[at]) && wanted[at] != there[at]);
    let [orders, algo] = [0, 1].map(|at| if is_other[at] { wanted[at] } else { there[at] });
    let way = format!(
        "`touchline admin exchange --max-orders {orders} --max-algo-orders {algo}` changes it"
    );
    for at in (0..2).filter(|&at| is_other[at]) {
        let key = format!("exchange.{}", keys[at]);
        lines.push(line("", (&key, &wanted[at]), &there[at], &way));
    }
}

fn of_asset(section: &AssetSection, core: &Core) -> Option<String> {
    let mut assets = (0..).map_while(|id| core.asset(AssetId(id)));
    let there = assets.find(|asset| asset.name.as_str() == section.name)?.precision;
    (section.precision != there).then(|| {
        let whose = format!("asset {}: ", section.name);
        line(&whose, ("precision", &section.precision), &there, "an asset keeps its precision")
    })
}

fn of_symbol(
    section: &SymbolSection,
    is_written: &dyn Fn(&str) -> bool,
    core: &Core,
    lines: &mut Vec<String>,
) {
    let mut symbols = (0..).map_while(|id| core.symbol(SymbolId(id)));
    let Some(there) = symbols.find(|symbol| symbol.name.as_str() == section.name) else { return };
    let whose = format!("symbol {}: ", section.name);
    for (key, wanted, id) in
        [("base", &section.base, there.base), ("quote", &section.quote, there.quote)]
    {
        let there = core.asset(id).map(|asset| asset.name.to_string()).unwrap_or_default();
        if *wanted != there {
            lines.push(line(&whose, (key, wanted), &there, "a symbol keeps its assets"));
        }
    }
    let types = |types: OrderTypes| {
        let names: Vec<_> = types.names().map(|name| format!("\"{name}\"")).collect();
        format!("[{}]", names.join(","))
    };
    let has = |flag: u8| (there.flags & flag != 0).to_string();
    let of_venue = OrderTypes { bits: there.order_types };
    let mut pairs = vec![
        ("order_types", types(section.order_types), types(of_venue)),
        ("iceberg", section.iceberg.to_string(), has(SYMBOL_ICEBERG)),
        ("oco", section.oco.to_string(), has(SYMBOL_OCO)),
        ("quote_quantity", section.quote_quantity.to_string(), has(SYMBOL_QUOTE_QUANTITY)),
    ];
    let filters = filter_values(&symbol_filters(section)).zip(filter_values(&there.filters));
    pairs.extend(filters.map(|((key, wanted), (_, there))| (key, shown(wanted), shown(there))));
    for (key, wanted, there) in pairs {
        if is_written(key) && wanted != there {
            let quote = if key == "order_types" { "'" } else { "" };
            let way = format!(
                "`touchline admin symbol change {} {quote}{key}={wanted}{quote}` changes it",
                section.name
            );
            lines.push(line(&whose, (key, &wanted), &there, &way));
        }
    }
}

/// A value as it is written.
fn shown(value: FilterValue) -> String {
    match value {
        FilterValue::Decimal(units) => trimmed(units),
        FilterValue::Count(count) => count.to_string(),
        FilterValue::Flag(is_set) => is_set.to_string(),
    }
}

fn of_account(
    section: &AccountSection,
    is_written: &dyn Fn(&str) -> bool,
    core: &Core,
    lines: &mut Vec<String>,
) {
    let mut accounts = (0..).map(AccountId).map_while(|id| Some((id, core.account(id)?)));
    let found = accounts.find(|(_, account)| account.name.as_str() == section.name);
    let Some((id, AccountView { maker_rate, taker_rate, .. })) = found else { return };
    let whose = format!("account {}: ", section.name);
    let rates = [
        ("maker_rate", section.maker_rate.0, maker_rate),
        ("taker_rate", section.taker_rate.0, taker_rate),
    ]
    .map(
        |(key, wanted, there)| {
            if is_written(key) { (key, wanted, there) } else { (key, there, there) }
        },
    );
    let [(_, maker, _), (_, taker, _)] = rates;
    let way = format!(
        "`touchline admin fees {} {} --account {}` changes it",
        trimmed(maker),
        trimmed(taker),
        section.name
    );
    for (key, wanted, there) in rates.into_iter().filter(|(_, wanted, there)| wanted != there) {
        lines.push(line(&whose, (key, &trimmed(wanted)), &trimmed(there), &way));
    }
    // More may have been made since.
    let keys = (1..).map_while(|key| core.key(KeyId(key)));
    let made = keys.filter(|key| key.account == id).count();
    if is_written("keys") && section.keys as usize > made {
        let way = format!("`touchline admin key {}` makes one", section.name);
        lines.push(line(&whose, ("keys", &section.keys), &made, &way));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::genesis::{FILTER_KEYS, Genesis};

    const VENUE: &str = "[log]\nsegment_mib = 4\n[exchange]\nmax_orders = 7\n\
         [[assets]]\nname = \"A\"\n[[assets]]\nname = \"B\"\nprecision = 4\n\
         [[symbols]]\nname = \"AB\"\nbase = \"A\"\nquote = \"B\"\ntick_size = \"0.01\"\nmax_orders = 5\n\
         [[accounts]]\nname = \"X\"\nkeys = 1\nmaker_rate = \"0.001\"\ntaker_rate = \"0.002\"\n";

    /// What is told where the venue was made by [`VENUE`] and `text` stands there now.
    fn told(text: &str) -> Vec<String> {
        let [made, config] = [VENUE, text].map(|text| toml::from_str(text).unwrap());
        let core = Genesis::new(&made).unwrap().venue().unwrap();
        not_in_force(&config, &Written::all_of(&text.parse().unwrap()), &core, 4 << 20)
    }

    #[test]
    fn what_was_changed_behind_the_first_start_is_told_with_the_command_for_it() {
        assert_eq!(told(VENUE), [""; 0]);
        let none = [""; 0];
        let changed = |from: &str, to: &str| told(&VENUE.replace(from, to));
        for (from, to, line) in [
            (
                "segment_mib = 4",
                "segment_mib = 8",
                "log.segment_mib = 8 is not in force, but 4: a log keeps the size that it was made with",
            ),
            (
                "max_orders = 7",
                "EXCHANGE_MAX_NUM_ORDERS = 9",
                "exchange.max_orders = 9 is not in force, but 7: `touchline admin exchange --max-orders 9 \
                 --max-algo-orders 0` changes it",
            ),
            (
                "precision = 4",
                "precision = 5",
                "asset B: precision = 5 is not in force, but 4: an asset keeps its precision",
            ),
            (
                "quote = \"B\"",
                "quote = \"C\"",
                "symbol AB: quote = C is not in force, but B: a symbol keeps its assets",
            ),
            (
                "\"0.01\"",
                "\"0.1\"",
                "symbol AB: tick_size = 0.1 is not in force, but 0.01: `touchline admin symbol change AB tick_size=0.1` \
                 changes it",
            ),
            (
                "max_orders = 5",
                "max_orders = 5\norder_types = [\"LIMIT\"]",
                "symbol AB: order_types = [\"LIMIT\"] is not in force, but [\"LIMIT\",\"MARKET\"]: `touchline admin \
                 symbol change AB 'order_types=[\"LIMIT\"]'` changes it",
            ),
            (
                "\"0.001\"",
                "\"0\"",
                "account X: maker_rate = 0 is not in force, but 0.001: `touchline admin fees 0 0.002 --account X` changes \
                 it",
            ),
            (
                "keys = 1",
                "keys = 2",
                "account X: keys = 2 is not in force, but 1: `touchline admin key X` makes one",
            ),
        ] {
            assert_eq!(changed(from, to), [line], "{to}");
        }
        // What is not there is told elsewhere, and what is not written is nobody's wish.
        assert_eq!(changed("name = \"AB\"", "name = \"AC\""), none);
        assert_eq!(changed("tick_size = \"0.01\"\n", ""), none);
        assert_eq!(changed("keys = 1\n", ""), none);
        assert_eq!(changed("max_orders = 7", ""), none);
    }

    #[test]
    fn of_very_many_keys_some_are_told() {
        let filters = FILTER_KEYS[..13].iter().map(|key| format!("{key} = \"77\"\n"));
        let more = "iceberg = true\noco = true\nquote_quantity = true\nmin_notional_minutes = 1\n";
        let keys: String = filters.chain([more.to_owned()]).collect();
        let told = told(&VENUE.replace("tick_size = \"0.01\"\n", &keys));
        assert_eq!(told.len(), LINES + 1, "{told:?}");
        assert_eq!(told[LINES], "1 more keys of the venue's definition are not in force");
    }
}
