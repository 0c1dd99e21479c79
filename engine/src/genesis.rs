//! The venue's definition as commands: what a new log begins with. Called once by the engine's
//! start, and for single symbols by `touchline admin`; replay never reads configuration.
//!
//! The commands carry the sequences 1, 2, … of the engine's own session, so a first start that was
//! cut off goes on where it stopped.

mod doubts;
mod filter_values;
mod refused;
mod rounding;
mod standing;
mod untaken;

pub use doubts::{AssetFacts, Doubt, SymbolFacts, doubt_of_sessions, doubts, doubts_of_section};
pub use filter_values::{FilterValue, filter_values};
pub use standing::Written;
pub(crate) use standing::not_in_force;
pub(crate) use untaken::untaken;

use crate::config::{
    AccountSection, ConfigError, EngineConfig, SymbolSection, limit_key, no_memory,
};
use filter_values::FILTER_KEYS;
use refused::Taken;
use std::collections::HashMap;
use std::path::Path;
use touchline_core::limits::MAXIMA;
use touchline_core::{Context, Core, OUTBOX_BYTES_MAX, Outbox, RecordLimits};
use touchline_protocol::client::ClientCommand;
use touchline_protocol::decimal::DecimalText;
use touchline_protocol::log::reader::{Follow, LogReader};
use touchline_protocol::message::command::{
    ACCOUNT_CAN_DEPOSIT, ACCOUNT_CAN_TRADE, ACCOUNT_CAN_WITHDRAW, CreateAccount, CreateKey,
    DefineAsset, DefineSymbol, Deposit, KEY_ALL, PERMISSION_SPOT, SYMBOL_ICEBERG, SYMBOL_OCO,
    SYMBOL_QUOTE_QUANTITY, SetLimits, SetRecordLimits, SetRules, SetVenueFilters, SymbolFilters,
};
use touchline_protocol::message::decode::{self, Command};
use touchline_protocol::message::enums::{RejectReason, SymbolStatus};
use touchline_protocol::text::{AssetName, Name, SymbolName};
use touchline_protocol::units::{AccountId, AssetId, Position, Sequence};

/// The behaviour version of a new venue. A venue that has a log keeps the version of its log until it
/// is raised by a command.
pub const RULES: u32 = 8;

/// A line about a venue that follows older rules than this build knows.
pub(crate) fn older_rules(followed: u32) -> Option<String> {
    (followed < RULES).then(|| {
        let next = followed + 1;
        format!(
            "the venue follows rules version {followed}, this build knows up to {RULES}: `touchline admin rules {next}` \
             raises it to the next, for good; builds that do not know that open it no more"
        )
    })
}

/// Commands as bytes, in order, each 8-byte aligned.
#[derive(Default)]
pub struct Genesis {
    commands: Vec<Vec<u64>>,
}

impl Genesis {
    /// Makes the commands of `config`.
    ///
    /// # Errors
    /// Names the entry that contradicts another or is malformed.
    pub fn new(config: &EngineConfig) -> Result<Self, ConfigError> {
        let mut genesis = Self::default();
        // Versions go up one by one.
        for rules in 1..=RULES {
            genesis.push(SetRules { rules, ..Default::default() });
        }
        genesis.push(SetLimits { limits: (&config.limits).into(), ..Default::default() });
        let RecordLimits { records, blocks } = (&config.limits).into();
        genesis.push(SetRecordLimits { records, blocks, ..Default::default() });
        genesis.push(SetVenueFilters {
            max_orders: config.exchange.max_orders,
            max_algo_orders: config.exchange.max_algo_orders,
            ..Default::default()
        });
        let mut assets = HashMap::new();
        for (index, asset) in config.assets.iter().enumerate() {
            let name =
                AssetName::new(&asset.name).filter(|name| !name.is_empty()).ok_or_else(|| {
                    wrong(("assets", index), "name", &asset.name, "1 to 15 printable characters")
                })?;
            if assets.insert(asset.name.as_str(), AssetId(index as u32)).is_some() {
                return Err(wrong(
                    ("assets", index),
                    "name",
                    &asset.name,
                    "a name that occurs once",
                ));
            }
            genesis.push(DefineAsset { name, precision: asset.precision, ..Default::default() });
        }
        for (index, symbol) in config.symbols.iter().enumerate() {
            let asset = |asset: &str| assets.get(asset).copied();
            let define = define_symbol(symbol, asset);
            genesis.push(define.map_err(|error| ConfigError { entry: Some(index), ..error })?);
        }
        check_keys(config)?;
        for (index, account) in config.accounts.iter().enumerate() {
            genesis.account(index, account, &assets)?;
        }
        Ok(genesis)
    }

    /// Applies the commands to a venue that is thrown away: what the core would refuse is told before
    /// anything is logged, for a log that holds a part of a definition takes no other one.
    ///
    /// # Errors
    /// Names the first command that is refused, and why.
    pub fn try_out(&self) -> Result<(), ConfigError> {
        self.venue().map(|_| ())
    }

    /// The venue that the commands make.
    fn venue(&self) -> Result<Core, ConfigError> {
        let mut core = Core::new();
        let mut area = vec![0u64; OUTBOX_BYTES_MAX.div_ceil(8)];
        let context = Context { position: Position(0), time_ns: 1 };
        let mut taken = Taken::default();
        for bytes in self.remaining(Sequence(0)) {
            let command = decode::command(bytes)
                .map_err(|error| ConfigError::of("definition", error.to_string()))?;
            let mut outbox = Outbox::new(bytemuck::cast_slice_mut(&mut area));
            core.apply(&context, &command, &mut outbox)
                .map_err(|reject| taken.refused(&core, &command, reject))?;
            taken.note(&command);
        }
        Ok(core)
    }

    /// The commands behind the first `done`, as messages in 8-byte aligned words.
    pub fn remaining(&self, done: Sequence) -> impl Iterator<Item = &[u8]> {
        let done = usize::try_from(done.0).unwrap_or(usize::MAX);
        self.commands.iter().skip(done).map(|words| bytemuck::cast_slice(words))
    }

    /// Checksum of the first `done` commands, to tell whether they are those that a log holds.
    pub fn checksum(&self, done: Sequence) -> u32 {
        let done = usize::try_from(done.0).unwrap_or(usize::MAX);
        self.commands
            .iter()
            .take(done)
            .fold(0, |checksum, words| crc32c::crc32c_append(checksum, bytemuck::cast_slice(words)))
    }

    /// Adds the entry of `[[accounts]]` of this index.
    fn account(
        &mut self,
        index: usize,
        account: &AccountSection,
        assets: &HashMap<&str, AssetId>,
    ) -> Result<(), ConfigError> {
        // The fee account is the first one.
        let id = AccountId(index as u32 + 1);
        let entry = ("accounts", index);
        let name = account_name(&account.name)
            .ok_or_else(|| wrong(entry, "name", &account.name, ACCOUNT_NAME))?;
        self.push(CreateAccount {
            name,
            maker_rate: account.maker_rate.0,
            taker_rate: account.taker_rate.0,
            flags: ACCOUNT_CAN_TRADE | ACCOUNT_CAN_WITHDRAW | ACCOUNT_CAN_DEPOSIT,
            permissions: PERMISSION_SPOT,
            ..Default::default()
        });
        for (asset, amount) in &account.balances {
            let asset = *assets.get(asset.as_str()).ok_or_else(|| {
                wrong(entry, &format!("balances.{asset}"), asset, "the name of an asset")
            })?;
            self.push(Deposit { account: id, asset, amount: amount.0, ..Default::default() });
        }
        for _ in 0..account.keys {
            self.push(CreateKey { account: id, permissions: KEY_ALL, ..Default::default() });
        }
        Ok(())
    }

    fn push<C: ClientCommand>(&mut self, mut command: C) {
        command.command_mut().sequence = Sequence(self.commands.len() as u64 + 1);
        self.commands.push(bytemuck::allocation::pod_collect_to_vec(command.as_bytes()));
    }
}

/// What the name of an account is, in words.
pub const ACCOUNT_NAME: &str = "1 to 31 printable characters, and no blank at its ends";

/// The name of an account; `None` of what none is to have: in a list, `A` and `A ` are the same to whoever reads it.
/// The core takes blanks, and venues may have accounts with such names.
#[must_use]
pub fn account_name(text: &str) -> Option<Name> {
    Name::new(text).filter(|name| !name.is_empty() && text.trim_ascii() == text)
}

/// The command that defines a symbol as its section says; `asset_of` finds an asset by its name.
///
/// # Errors
/// A name that is malformed, or an asset that there is not.
pub fn define_symbol(
    symbol: &SymbolSection,
    asset_of: impl Fn(&str) -> Option<AssetId>,
) -> Result<DefineSymbol, ConfigError> {
    // Whoever has several knows which one this is.
    let entry = ("symbols", 0);
    let in_alphabet =
        |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
    let name = SymbolName::new(&symbol.name)
        .filter(|name| !name.is_empty() && name.as_bytes().iter().copied().all(in_alphabet))
        .ok_or_else(|| {
            let expected = "1 to 20 characters of A-Z, 0-9, -, _ and .";
            wrong(entry, "name", &symbol.name, expected)
        })?;
    let asset = |key: &str, name: &str| {
        asset_of(name).ok_or_else(|| wrong(entry, key, name, "the name of an asset"))
    };
    Ok(DefineSymbol {
        name,
        base: asset("base", &symbol.base)?,
        quote: asset("quote", &symbol.quote)?,
        status: SymbolStatus::Trading.to_wire(),
        order_types: symbol.order_types.bits,
        flags: symbol_flags(symbol),
        permissions: PERMISSION_SPOT,
        filters: symbol_filters(symbol),
        ..Default::default()
    })
}

/// The `SYMBOL_*` bits of a section.
#[must_use]
pub fn symbol_flags(symbol: &SymbolSection) -> u8 {
    [
        (symbol.iceberg, SYMBOL_ICEBERG),
        (symbol.oco, SYMBOL_OCO),
        (symbol.quote_quantity, SYMBOL_QUOTE_QUANTITY),
    ]
    .iter()
    .fold(0, |flags, (is_set, flag)| if *is_set { flags | flag } else { flags })
}

/// The filters of a section.
#[must_use]
pub fn symbol_filters(symbol: &SymbolSection) -> SymbolFilters {
    SymbolFilters {
        price_min: symbol.price_min.0,
        price_max: symbol.price_max.0,
        tick_size: symbol.tick_size.0,
        lot_min: symbol.lot_min.0,
        lot_max: symbol.lot_max.0,
        lot_step: symbol.lot_step.0,
        market_lot_min: symbol.market_lot_min.0,
        market_lot_max: symbol.market_lot_max.0,
        market_lot_step: symbol.market_lot_step.0,
        percent_price_up: symbol.percent_price_up.0,
        percent_price_down: symbol.percent_price_down.0,
        percent_price_minutes: symbol.percent_price_minutes,
        min_notional: symbol.min_notional.0,
        min_notional_applies_to_market: symbol.min_notional_applies_to_market.into(),
        min_notional_minutes: symbol.min_notional_minutes,
        iceberg_parts: symbol.iceberg_parts,
        max_orders: symbol.max_orders,
        max_algo_orders: symbol.max_algo_orders,
        max_iceberg_orders: symbol.max_iceberg_orders,
        max_position: symbol.max_position.0,
        ..Default::default()
    }
}

/// The key of `venue.toml`, or what has the same name elsewhere, that a reject of a command that defines or
/// changes something is about, where its number says so.
#[must_use]
pub fn key_of(command: &Command<'_>, reason: RejectReason, detail: u32) -> Option<&'static str> {
    if reason != RejectReason::InvalidDefinition {
        // A version that is not the next one is out of range as well, by no number.
        let is_of_limits = !matches!(command, Command::SetRules(_));
        return limit_key(reason, detail).filter(|_| is_of_limits);
    }
    // The fields of each command, the filters last.
    let (fields, has_filters): (&[&str], bool) = match command {
        Command::DefineAsset(_) => (&["name", "precision"], false),
        Command::CreateAccount(_) => (&["name", "maker_rate", "taker_rate"], false),
        Command::SetFees(_) => (&FEE_FIELDS, false),
        Command::DefineSymbol(_) => (&DEFINE_SYMBOL_FIELDS, true),
        Command::ChangeSymbol(_) => (&CHANGE_SYMBOL_FIELDS, true),
        _ => return None,
    };
    let filters: &[&str] = if has_filters { &FILTER_KEYS } else { &[] };
    fields.iter().chain(filters).nth(detail as usize).copied()
}

/// What a value must be that is refused as an invalid definition, by its [key](key_of), or what is wrong with it;
/// `None` where nothing but the key is known.
#[must_use]
pub fn bounds_of(key: &str) -> Option<&'static str> {
    Some(match key {
        "precision" => "8 at the most",
        "quote" => "a symbol's base and quote are two assets",
        "price_max" => "less than price_min",
        "lot_max" => "less than lot_min",
        "market_lot_max" => "less than market_lot_min",
        "percent_price_minutes" => "60 at the most (0 by rules 1)",
        "min_notional_minutes" => "60 at the most",
        "maker_rate" | "taker_rate" => "1 at the most",
        "maker rate" | "taker rate" => "1 at the most, with the larger one of buyer's and seller's",
        "buyer rate" | "seller rate" => "1 at the most",
        _ => return None,
    })
}

const FEE_FIELDS: [&str; 6] =
    ["account", "symbol", "maker rate", "taker rate", "buyer rate", "seller rate"];
const DEFINE_SYMBOL_FIELDS: [&str; 8] =
    ["name", "base", "quote", "status", "order_types", "flags", "permissions", "reserved"];
const CHANGE_SYMBOL_FIELDS: [&str; 5] =
    ["symbol", "order_types", "flags", "permissions", "reserved"];

/// True if the log in `data` says that an engine has started behind the venue's definition, which is then whole.
/// Also if it cannot be read: the start tells that.
pub(crate) fn is_whole_in(data: &Path) -> bool {
    // What the live window holds the start brings to disk.
    let Ok(mut reader) = LogReader::open(data, Follow::Appended) else { return true };
    // What was before is in a snapshot, which is only made of a whole one.
    if reader.position().0 > 0 {
        return true;
    }
    loop {
        match reader.next() {
            Ok(Some(transaction)) => {
                if matches!(transaction.command(), Ok(Command::EngineStarted(_))) {
                    return true;
                }
            }
            Ok(None) => return false,
            Err(_) => return true,
        }
    }
}

/// Units of 10⁻⁸ as somebody writes them: without zeros at the end.
fn trimmed(units: i64) -> String {
    DecimalText::new(units).trimmed().to_owned()
}

fn wrong((section, entry): (&str, usize), key: &str, found: &str, expected: &str) -> ConfigError {
    ConfigError::of_entry(section, entry, key, format!("{found:?} is not {expected}"))
}

/// Each key is a command of its own: a number too many must not fill the memory first.
fn check_keys(config: &EngineConfig) -> Result<(), ConfigError> {
    let room = config.limits.keys.min(MAXIMA.keys);
    let mut left = room;
    for (index, account) in config.accounts.iter().enumerate() {
        left = left.checked_sub(account.keys).ok_or_else(|| {
            let problem = format!(
                "{} more of account {:?} are more than limits.keys, {room}, allows: raise it",
                account.keys, account.name
            );
            ConfigError::of_entry("accounts", index, "keys", problem)
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use touchline_core::SymbolView;
    use touchline_protocol::units::SymbolId;

    const ASSETS: &str = "[[assets]]\nname = \"A\"\n[[assets]]\nname = \"B\"\n";

    /// The venue that a symbol's keys make, or what is wrong with them.
    fn venue(keys: &str) -> Result<Core, String> {
        let text =
            format!("{ASSETS}[[symbols]]\nname = \"AB\"\nbase = \"A\"\nquote = \"B\"\n{keys}");
        let config: EngineConfig = toml::from_str(&text).map_err(|error| error.to_string())?;
        let venue = Genesis::new(&config).and_then(|genesis| genesis.venue());
        venue.map_err(|error| error.to_string())
    }

    fn symbol(keys: &str) -> SymbolView {
        venue(keys).expect("the keys are sound").symbol(SymbolId(0)).expect("there is one symbol")
    }

    #[test]
    fn a_symbol_takes_limit_and_market_orders_unless_it_says_more() {
        let plain = symbol("");
        assert_eq!((plain.order_types, plain.flags), (0b110, 0));
        assert_eq!(plain.filters, SymbolFilters::default());
        let all = "order_types = [\"LIMIT\", \"MARKET\", \"STOP_LOSS\", \"STOP_LOSS_LIMIT\", \
                   \"TAKE_PROFIT\", \"TAKE_PROFIT_LIMIT\", \"LIMIT_MAKER\"]\n\
                   iceberg = true\noco = true\nquote_quantity = true\n";
        let all = symbol(all);
        assert_eq!((all.order_types, all.flags), (0b1111_1110, 0b111));
        assert_eq!(symbol("order_types = [\"LIMIT_MAKER\"]\niceberg = true").flags, SYMBOL_ICEBERG);
        let error = venue("order_types = [\"limit\"]").err().unwrap_or_default();
        assert!(error.contains("\"limit\"") && error.contains("TAKE_PROFIT_LIMIT"), "{error}");
    }

    /// Nobody sees in a list, or in a log, that one is another than the one without.
    #[test]
    fn an_account_has_a_name_without_blanks_at_its_ends() {
        let named = |name: &str| {
            let text = format!("[[accounts]]\nname = \"{name}\"\n");
            let config: EngineConfig = toml::from_str(&text).unwrap();
            Genesis::new(&config).map(|_| ()).map_err(|error| error.to_string())
        };
        for name in ["A", "A B", "~", "An account with a long name, 31"] {
            assert_eq!(named(name), Ok(()));
        }
        for name in ["", " ", "  ", " A", "A ", "\u{c4}", "An account with a long name, of 33"] {
            let error = named(name).expect_err(name);
            assert!(error.contains("and no blank at its ends") && error.contains(name), "{error}");
        }
    }

    /// Another one could be asked for by nobody.
    #[test]
    fn a_symbol_has_a_name_that_a_request_may_have() {
        let named = |name: &str| {
            let text = format!("[[symbols]]\nname = \"{name}\"\nbase = \"A\"\nquote = \"B\"\n");
            let config: EngineConfig = toml::from_str(&(ASSETS.to_owned() + &text)).unwrap();
            Genesis::new(&config).map(|_| ()).map_err(|error| error.to_string())
        };
        for name in ["A", "A-B_C.9", "ABCDEFGHIJKLMNOPQRST"] {
            assert_eq!(named(name), Ok(()));
        }
        for name in ["", "ab", "ABc", "aBC", "A B", "A/B", "\u{c4}B", "ABCDEFGHIJKLMNOPQRSTU"] {
            let error = named(name).expect_err(name);
            let expected = "1 to 20 characters of A-Z, 0-9, -, _ and .";
            assert!(error.contains(expected) && error.contains(name), "{name}: {error}");
        }
    }

    #[test]
    fn every_filter_of_the_file_reaches_the_core() {
        let keys = "price_min = \"1\"\nprice_max = \"2\"\ntick_size = \"3\"\n\
                    percent_price_up = \"4\"\npercent_price_down = \"0.5\"\n\
                    percent_price_minutes = 5\nlot_min = \"6\"\nlot_max = \"7\"\n\
                    lot_step = \"8\"\nmarket_lot_min = \"9\"\nmarket_lot_max = \"10\"\n\
                    market_lot_step = \"11\"\nmin_notional = \"12\"\n\
                    min_notional_applies_to_market = true\nmin_notional_minutes = 13\n\
                    iceberg_parts = 14\nmax_orders = 15\nmax_algo_orders = 16\n\
                    max_iceberg_orders = 17\nmax_position = \"18\"\n\
                    [exchange]\nmax_orders = 19\nmax_algo_orders = 20\n";
        const ONE: i64 = 100_000_000;
        let expected = SymbolFilters {
            price_min: ONE,
            price_max: 2 * ONE,
            tick_size: 3 * ONE,
            lot_min: 6 * ONE,
            lot_max: 7 * ONE,
            lot_step: 8 * ONE,
            market_lot_min: 9 * ONE,
            market_lot_max: 10 * ONE,
            market_lot_step: 11 * ONE,
            percent_price_up: 4 * ONE,
            percent_price_down: ONE / 2,
            min_notional: 12 * ONE,
            max_position: 18 * ONE,
            percent_price_minutes: 5,
            min_notional_minutes: 13,
            iceberg_parts: 14,
            max_orders: 15,
            max_algo_orders: 16,
            max_iceberg_orders: 17,
            min_notional_applies_to_market: 1,
            ..Default::default()
        };
        assert_eq!(symbol(keys).filters, expected);
    }

    #[test]
    fn both_spellings_of_a_filter_of_the_exchange_are_taken() {
        for name in ["max_algo_orders", "EXCHANGE_MAX_NUM_ALGO_ORDERS", "EXCHANGE_MAX_ALGO_ORDERS"]
        {
            let config: EngineConfig = toml::from_str(&format!("[exchange]\n{name} = 7")).unwrap();
            assert_eq!(config.exchange.max_algo_orders, 7, "{name}");
        }
    }

    #[test]
    fn more_keys_than_there_is_room_for_are_refused_before_any_is_made() {
        let with = |keys: &str| venue(&format!("[[accounts]]\nname = \"X\"\nkeys = {keys}")).err();
        assert_eq!(with("4096"), None);
        for keys in ["4097", "4294967295"] {
            let error = with(keys).unwrap_or_default();
            assert!(error.contains("accounts.keys") && error.contains(keys), "{error}");
        }
    }

    #[test]
    fn what_the_core_refuses_is_named_when_the_definition_is_tried_out() {
        let refused = |keys: &str| venue(keys).err().unwrap_or_default();
        let twice = "[[accounts]]\nname = \"X\"\n[[accounts]]\nname = \"X\"";
        let nothing = "[[accounts]]\nname = \"X\"\nbalances = { A = \"1\", B = \"0\" }";
        for (keys, named) in [
            ("[limits]\nsymbols = 0", "DefineSymbol of \"AB\" is rejected: CapacityReached"),
            ("[limits]\nmax_steps = 0", "SetLimits is rejected: LimitOutOfRange (detail 8)"),
            ("[limits]\nsymbols = 0", "CapacityReached (detail 1), limits.symbols"),
            ("percent_price_minutes = 61", "(detail 21), percent_price_minutes"),
            ("price_min = \"2\"\nprice_max = \"1\"", "InvalidDefinition (detail 9), price_max"),
            ("[[assets]]\nname = \"C\"\nprecision = 9", "InvalidDefinition (detail 1), precision"),
            ("[[accounts]]\nname = \"X\"\ntaker_rate = \"2\"", "(detail 2), taker_rate"),
            (twice, "CreateAccount of \"X\" is rejected: AlreadyDefined"),
            (nothing, "Deposit of \"B\" for \"X\" is rejected: InvalidQuantity"),
        ] {
            let error = refused(keys);
            assert!(error.contains(named), "{error}");
        }
    }

    #[test]
    fn a_version_of_the_rules_is_no_limit() {
        let refused = Command::SetRules(&SetRules { rules: 9, ..Default::default() });
        assert_eq!(key_of(&refused, RejectReason::LimitOutOfRange, 0), None);
        let limits = Command::SetLimits(&SetLimits::default());
        assert_eq!(key_of(&limits, RejectReason::LimitOutOfRange, 0), Some("limits.assets"));
    }

    #[test]
    fn the_keys_of_filters_stand_in_the_order_of_their_fields() {
        for (at, key) in FILTER_KEYS.into_iter().enumerate() {
            let is_decimal = at < 13;
            let value = match key {
                "min_notional_applies_to_market" => "true",
                _ if is_decimal => "\"0.00000001\"",
                _ => "1",
            };
            let section: SymbolSection = toml::from_str(&format!("{key} = {value}")).unwrap();
            let filters = symbol_filters(&section);
            // Thirteen decimals of eight bytes, six counts of four, a flag.
            let bytes = bytemuck::bytes_of(&filters);
            let set = bytes.iter().position(|&byte| byte != 0);
            let place = if is_decimal { 8 * at } else { 13 * 8 + 4 * (at - 13) };
            assert_eq!(set, Some(place), "{key}");
        }
    }

    #[test]
    fn a_venue_that_follows_older_rules_is_told_the_next() {
        let told = older_rules(RULES - 1).unwrap();
        assert!(told.contains(&format!("rules {RULES}`")), "{told}");
        assert_eq!(older_rules(RULES), None);
    }

    #[test]
    fn a_new_venue_follows_the_rules_of_this_build() {
        assert_eq!(venue("").map(|core| core.rules()), Ok(RULES));
        assert_eq!(RULES, touchline_core::RULES_MAX);
    }
}
