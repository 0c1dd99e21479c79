//! Assets and symbols: defining and changing them, their status, the end of all orders of one. Called by
//! `admin`.

use super::{Answer, Report, call, permission_bits, send};
use crate::cli::{SymbolAction, SymbolSettings};
use crate::names::Names;
use crate::settings::value_of;
use anyhow::{Context, Result, bail};
use serde_json::json;
use std::collections::HashSet;
use std::path::Path;
use toml::{Table, Value};
use touchline_engine::config::{OrderTypes, SymbolSection};
use touchline_engine::genesis::{self, Doubt, FilterValue, SymbolFacts, filter_values};
use touchline_protocol::message::command::{
    ChangeSymbol, DefineAsset, ExpireAll, PERMISSION_SPOT, SYMBOL_ICEBERG, SYMBOL_OCO,
    SYMBOL_QUOTE_QUANTITY, SetSymbolStatus, SetVenueFilters, SymbolFilters,
};
use touchline_protocol::message::enums::SymbolStatus;
use touchline_protocol::text::AssetName;
use touchline_protocol::units::{Amount, AssetId};

/// The statuses of a symbol (spot contract §2 Enumerations).
pub(crate) const STATUSES: [(&str, SymbolStatus); 7] = [
    ("PRE_TRADING", SymbolStatus::PreTrading),
    ("TRADING", SymbolStatus::Trading),
    ("POST_TRADING", SymbolStatus::PostTrading),
    ("END_OF_DAY", SymbolStatus::EndOfDay),
    ("HALT", SymbolStatus::Halt),
    ("AUCTION_MATCH", SymbolStatus::AuctionMatch),
    ("BREAK", SymbolStatus::Break),
];

pub(super) fn define_asset(data: &Path, name: &str, precision: u8) -> Result<Report> {
    let mut command = DefineAsset {
        name: AssetName::new(name)
            .filter(|name| !name.is_empty())
            .with_context(|| format!("name {name:?} is not 1 to 15 printable characters"))?,
        precision,
        ..Default::default()
    };
    let number = send(data, &mut command)?.id;
    Ok((format!("asset {name} has number {number}"), json!({"asset": name, "number": number})))
}

pub(super) fn perform(data: &Path, action: &SymbolAction) -> Result<Report> {
    match action {
        SymbolAction::Add { name, base, quote, settings } => {
            add(data, name, (base, quote), settings)
        }
        SymbolAction::Change { name, settings } => change(data, name, settings),
        SymbolAction::Status { name, status } => set_status(data, name, status),
        SymbolAction::Expire { name } => expire(data, name),
    }
}

fn add(
    data: &Path,
    name: &str,
    (base, quote): (&str, &str),
    settings: &SymbolSettings,
) -> Result<Report> {
    let names = Names::read(data)?;
    let mut table = Table::new();
    for (key, text) in [("name", name), ("base", base), ("quote", quote)] {
        table.insert(key.to_owned(), Value::String(text.to_owned()));
    }
    let section = section(table, &settings.keys)?;
    let mut command = genesis::define_symbol(&section, |asset| names.asset(asset).ok())?;
    command.permissions = match &settings.permissions {
        Some(permissions) => permission_bits(permissions)?,
        None => PERMISSION_SPOT,
    };
    let number = send(data, &mut command)?.id;
    let report =
        (format!("symbol {name} has number {number}"), json!({"symbol": name, "number": number}));
    let kinds = (command.order_types, command.flags);
    let assets = [command.base, command.quote];
    Ok(with_warnings(report, doubts(&names, name, (kinds, &command.filters), assets)))
}

fn change(data: &Path, name: &str, settings: &SymbolSettings) -> Result<Report> {
    if settings.keys.is_empty() && settings.permissions.is_none() {
        bail!("nothing is to be changed: name a KEY=VALUE, or --permissions");
    }
    let names = Names::read(data)?;
    let mut command = names.symbol_definition(name)?;
    let section = section(present(&command), &settings.keys)?;
    command.order_types = section.order_types.bits;
    command.flags = genesis::symbol_flags(&section);
    command.filters = genesis::symbol_filters(&section);
    if let Some(permissions) = &settings.permissions {
        command.permissions = permission_bits(permissions)?;
    }
    send(data, &mut command)?;
    let number = command.symbol.0;
    let report = (
        format!("symbol {name} (number {number}) is changed"),
        json!({"symbol": name, "number": number, "changed": settings.keys}),
    );
    let kinds = (command.order_types, command.flags);
    let assets = names.assets_of(command.symbol).unwrap_or_default();
    Ok(with_warnings(report, doubts(&names, name, (kinds, &command.filters), assets)))
}

/// What is to be known of a symbol of these order types, flags, filters and assets.
fn doubts(
    names: &Names,
    name: &str,
    ((order_types, flags), filters): ((u8, u8), &SymbolFilters),
    assets: [AssetId; 2],
) -> Vec<Doubt> {
    let [Some(base), Some(quote)] = assets.map(|asset| names.asset_facts(asset)) else {
        return Vec::new();
    };
    genesis::doubts(&SymbolFacts { name, order_types, flags, filters, base, quote })
}

/// Adds what is to be known of a symbol that was taken all the same.
fn with_warnings((mut text, mut object): Report, doubts: Vec<Doubt>) -> Report {
    let told: Vec<_> = doubts.into_iter().map(|doubt| doubt.found).collect();
    for found in &told {
        text += &format!("\nwarning: {found}");
    }
    if !told.is_empty() {
        object["warning"] = json!(told.join("; "));
    }
    (text, object)
}

/// A symbol's keys of `venue.toml`, some of them as `KEY=VALUE`; a value that is no TOML is a text, and
/// so is a number where a decimal belongs.
fn section(mut table: Table, keys: &[String]) -> Result<SymbolSection> {
    let mut given = HashSet::new();
    for assignment in keys {
        let Some((key, text)) = assignment.split_once('=') else {
            bail!("{assignment:?}: expected KEY=VALUE");
        };
        if ["name", "base", "quote"].contains(&key) {
            bail!("{assignment:?}: a symbol keeps its name and its assets");
        }
        if !given.insert(key) {
            bail!("{assignment:?}: {key} is given twice");
        }
        let value = match value_of(text).with_context(|| format!("{assignment:?}"))? {
            Some(value @ (Value::Boolean(_) | Value::Array(_))) => value,
            Some(Value::Integer(number)) if is_count(key) => Value::Integer(number),
            Some(Value::String(text)) => Value::String(text),
            _ => Value::String(text.to_owned()),
        };
        table.insert(key.to_owned(), value);
    }
    table.try_into().context("keys of a symbol")
}

/// Whether a key of a symbol is a count or a number of minutes, no decimal.
fn is_count(key: &str) -> bool {
    key.ends_with("_minutes")
        || ["iceberg_parts", "max_orders", "max_algo_orders", "max_iceberg_orders"].contains(&key)
}

/// A symbol's definition in the keys of `venue.toml`.
fn present(symbol: &ChangeSymbol) -> Table {
    let flags = [
        ("iceberg", symbol.flags & SYMBOL_ICEBERG != 0),
        ("oco", symbol.flags & SYMBOL_OCO != 0),
        ("quote_quantity", symbol.flags & SYMBOL_QUOTE_QUANTITY != 0),
    ];
    let types = OrderTypes { bits: symbol.order_types }.names();
    let types = types.map(|name| Value::String(name.to_owned())).collect();
    let mut table = Table::new();
    table.insert("order_types".to_owned(), Value::Array(types));
    for (key, value) in filter_values(&symbol.filters) {
        let value = match value {
            FilterValue::Decimal(units) => Value::String(Amount(units).to_string()),
            FilterValue::Count(count) => Value::Integer(count.into()),
            FilterValue::Flag(is_set) => Value::Boolean(is_set),
        };
        table.insert(key.to_owned(), value);
    }
    for (key, is_set) in flags {
        table.insert(key.to_owned(), Value::Boolean(is_set));
    }
    table
}

fn set_status(data: &Path, name: &str, status: &str) -> Result<Report> {
    let found = STATUSES.iter().find(|(known, _)| *known == status);
    let (_, value) = found.with_context(|| {
        let known = STATUSES.map(|(known, _)| known).join(", ");
        format!("status {status:?} is none of {known}")
    })?;
    let mut command = SetSymbolStatus {
        symbol: Names::read(data)?.symbol(name)?,
        status: value.to_wire(),
        ..Default::default()
    };
    send(data, &mut command)?;
    let number = command.symbol.0;
    Ok((
        format!("symbol {name} (number {number}) is {status}"),
        json!({"symbol": name, "number": number, "status": status}),
    ))
}

fn expire(data: &Path, name: &str) -> Result<Report> {
    let symbol = Names::read(data)?.symbol(name)?;
    let mut command = ExpireAll { symbol, ..Default::default() };
    let Answer::MassCanceled(expired) = call(data, &mut command)? else {
        bail!("the engine did not say how many orders have expired");
    };
    let (orders, lists) = (expired.orders, expired.lists);
    Ok((
        format!("{orders} orders of {name} have expired, and {lists} lists"),
        json!({"symbol": name, "number": symbol.0, "orders": orders, "lists": lists}),
    ))
}

pub(super) fn set_exchange_filters(
    data: &Path,
    max_orders: u32,
    max_algo_orders: u32,
) -> Result<Report> {
    let mut command = SetVenueFilters { max_orders, max_algo_orders, ..Default::default() };
    send(data, &mut command)?;
    Ok((
        open_orders_allowed(max_orders, max_algo_orders),
        json!({"maxOrders": max_orders, "maxAlgoOrders": max_algo_orders}),
    ))
}

/// What the filters of the exchange leave an account; 0 is no limit.
fn open_orders_allowed(max_orders: u32, max_algo_orders: u32) -> String {
    let most = |limit: u32| match limit {
        0 => "any number of".to_owned(),
        limit => format!("at most {limit}"),
    };
    format!(
        "an account may have {} orders open on all symbols together, and {} stops",
        most(max_orders),
        most(max_algo_orders)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_of_the_exchange_that_are_off_are_told_as_such() {
        assert_eq!(
            open_orders_allowed(0, 5),
            "an account may have any number of orders open on all symbols together, and at most 5 stops"
        );
    }

    #[test]
    fn a_warning_is_part_of_the_report() {
        let report = || ("symbol AB has number 3".to_owned(), json!({"symbol": "AB", "number": 3}));
        assert_eq!(with_warnings(report(), Vec::new()), report());
        let doubt = |found: &str| Doubt { found: found.to_owned(), advice: String::new() };
        let (text, object) = with_warnings(report(), vec![doubt("one"), doubt("two")]);
        assert_eq!(text, "symbol AB has number 3\nwarning: one\nwarning: two");
        assert_eq!((&object["number"], &object["warning"]), (&json!(3), &json!("one; two")));
    }

    const ONE: i64 = 100_000_000;

    fn symbol() -> ChangeSymbol {
        ChangeSymbol {
            order_types: 0b1000_0110,
            flags: SYMBOL_OCO,
            filters: SymbolFilters {
                tick_size: ONE / 100,
                max_position: 7 * ONE,
                percent_price_minutes: 5,
                max_iceberg_orders: 3,
                min_notional_applies_to_market: 1,
                ..Default::default()
            },
            ..Default::default()
        }
    }

    #[test]
    fn a_change_without_keys_changes_nothing() {
        let section = section(present(&symbol()), &[]).unwrap();
        assert_eq!(section.order_types.bits, symbol().order_types);
        assert_eq!(genesis::symbol_flags(&section), symbol().flags);
        assert_eq!(genesis::symbol_filters(&section), symbol().filters);
    }

    #[test]
    fn keys_are_those_of_the_settings_file() {
        let keys =
            |keys: &[&str]| -> Vec<String> { keys.iter().map(|key| (*key).to_owned()).collect() };
        let sent = keys(&[
            "tick_size=1",
            "lot_step=0.5",
            "oco=false",
            "max_orders=9",
            "order_types=[\"MARKET\"]",
        ]);
        let changed = section(present(&symbol()), &sent).unwrap();
        let filters = genesis::symbol_filters(&changed);
        assert_eq!((filters.tick_size, filters.lot_step, filters.max_orders), (ONE, ONE / 2, 9));
        assert_eq!(filters.max_position, 7 * ONE);
        assert_eq!((genesis::symbol_flags(&changed), changed.order_types.bits), (0, 0b100));
        for (bad, named) in [
            ("tick_size", "KEY=VALUE"),
            ("tick=1", "tick"),
            ("tick_size=x", "tick_size"),
            ("name=X", "keeps its name"),
            ("max_orders=many", "max_orders"),
            ("max_orders=9\noco=false", "sets \"oco\" too, in a further line"),
        ] {
            let error = section(present(&symbol()), &keys(&[bad])).unwrap_err();
            assert!(format!("{error:#}").contains(named), "{bad}: {error:#}");
        }
        let twice = keys(&["tick_size=0.01", "lot_step=1", "tick_size=0.02"]);
        for table in [Table::new(), present(&symbol())] {
            let error = section(table, &twice).unwrap_err().to_string();
            assert!(error.contains("tick_size is given twice"), "{error}");
        }
    }
}
