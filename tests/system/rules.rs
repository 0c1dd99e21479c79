//! Rules versions: a venue from the time of rules 1 goes on as it was until it is told otherwise, and
//! a new one takes all that its definition may ask for.

use super::json::Json;
use super::process::Process;
use super::units::WHOLE;
use super::venue::{Part, Venue};
use rustix::process::Signal;
use std::fs;
use std::path::Path;
use std::time::Duration;
use toml::Table;
use touchline_core::{Applied, Context, Core, Outbox};
use touchline_engine::config::{EngineConfig, OrderTypes};
use touchline_engine::genesis::{Genesis, RULES};
use touchline_engine::log::{self, Log, LogOptions, WindowPlace};
use touchline_engine::recovery::NothingToReplay;
use touchline_protocol::client::{Acknowledgement, Client, ClientOptions, SOCKET_NAME};
use touchline_protocol::credentials::MasterKey;
use touchline_protocol::log::reader::{Follow, LogReader};
use touchline_protocol::message::command::{EngineStarted, SetRules, SetVenueFilters};
use touchline_protocol::message::decode::{self, Command};
use touchline_protocol::message::enums::{Lane, Role};
use touchline_protocol::message::event::Done;
use touchline_protocol::text::Name;
use touchline_protocol::units::Sequence;

const REFERENCE: &str = include_str!("../../venue.toml");

/// The demo venue's definition without the part of it that an engine of rules 1 would not have logged.
fn definition_of_rules_1() -> Vec<Vec<u64>> {
    let mut table: Table = REFERENCE.parse().expect("the reference is TOML");
    for of_the_adapter in ["adapter", "jobs"] {
        table.remove(of_the_adapter);
    }
    let mut config: EngineConfig = table.try_into().expect("the reference is sound");
    for symbol in &mut config.symbols {
        symbol.order_types = OrderTypes::default();
        (symbol.iceberg, symbol.oco, symbol.quote_quantity) = (false, false, false);
        symbol.iceberg_parts = 0;
    }
    let genesis = Genesis::new(&config).expect("the reference is sound");
    let is_of_rules_1 = |bytes: &&[u8]| match decode::command(bytes).expect("a command") {
        Command::SetRules(set) => set.rules == 1,
        Command::SetVenueFilters(_) | Command::SetRecordLimits(_) => false,
        _ => true,
    };
    let words = bytemuck::allocation::pod_collect_to_vec;
    let started = EngineStarted { incarnation: 1, ..Default::default() };
    (genesis.remaining(Sequence(0)).filter(is_of_rules_1).map(words))
        .chain([words(bytemuck::bytes_of(&started))])
        .collect()
}

/// Writes the data folder of a venue whose engine knew rules 1 only, as it lies when it has ended.
fn write_venue_of_rules_1(data: &Path) {
    write_venue(data, None);
}

/// Writes the data folder of a venue that began by rules 1, and where an engine raised it further that is not of this
/// build's time.
fn write_venue(data: &Path, raised: Option<u32>) {
    fs::create_dir_all(data).expect("the folder can be made");
    MasterKey::load_or_create(&data.join("master.key")).expect("the folder is ours");
    let options = LogOptions {
        data: data.to_owned(),
        window_place: WindowPlace::Data,
        window_bytes: Some(8 << 20),
        segment_bytes: 4 << 20,
        gather: Duration::ZERO,
        write_interval: Duration::ZERO,
        accept_loss: false,
    };
    let log = log::open(&options, &mut NothingToReplay, &mut |_| {}).expect("a new log");
    let Log { mut writer, keeper, .. } = log;
    let mut core = Core::new();
    for words in definition_of_rules_1() {
        let bytes: &[u8] = bytemuck::cast_slice(&words);
        let command = decode::command(bytes).expect("a command");
        let context = Context { position: writer.position(), time_ns: 1_000_000_000 };
        let mut outbox = Outbox::new(writer.begin(bytes).expect("there is room"));
        let applied = core.apply(&context, &command, &mut outbox);
        assert_eq!(applied, Ok(Applied::Committed), "{}", command.name());
        let (length, count) = (outbox.len(), outbox.count());
        writer.commit(context.time_ns, length, count);
    }
    assert_eq!(core.rules(), 1);
    if let Some(rules) = raised {
        let set = SetRules { rules, ..Default::default() };
        let done = Done::default();
        let outbox = writer.begin(bytemuck::bytes_of(&set)).expect("there is room");
        outbox[..size_of::<Done>()].copy_from_slice(bytemuck::bytes_of(&done));
        writer.commit(1_000_000_000, size_of::<Done>(), 1);
    }
    writer.close().expect("the disk takes it");
    keeper.stop();
}

/// The versions that the log sets.
fn logged_rules(data: &Path) -> Vec<u32> {
    let mut reader = LogReader::open(data, Follow::Durable).expect("the venue has a log");
    let mut rules = Vec::new();
    while let Some(transaction) = reader.next().expect("the log is sound") {
        if let Command::SetRules(set) = transaction.command().expect("a command") {
            rules.push(set.rules);
        }
    }
    rules
}

/// Runs `touchline admin rules`; success and what it printed.
fn raise(venue: &Venue, version: &str) -> (bool, String) {
    let data = venue.data().to_str().expect("temporary folders have plain names");
    let mut process = Process::start(&["admin", "--data", data, "rules", version]);
    let status = process.wait_for_end();
    (status.success(), process.lines().join("\n"))
}

/// Sets a filter of the exchange, which rules 2 brought; false if the engine does not know it.
fn limit_open_orders(venue: &Venue, max_orders: u32) -> bool {
    let name = Name::new("rules-test").expect("a short name");
    let socket = venue.data().join(SOCKET_NAME);
    let mut options = ClientOptions::new(socket, Role::Admin, Lane::Cold, name);
    options.acknowledgement = Acknowledgement::Durable;
    let mut client = Client::connect(&options).expect("the engine serves");
    let mut set = SetVenueFilters { max_orders, ..Default::default() };
    client.call(&mut set, Duration::from_secs(30)).is_ok()
}

fn exchange_filters(venue: &Venue) -> Vec<Json> {
    let info = venue.http().get("/api/v3/exchangeInfo").ok();
    info.at("exchangeFilters").items().to_vec()
}

/// A trade between the demo accounts at a price of its own, and an order that stays.
fn trade_and_rest(venue: &Venue, price: &str) -> i128 {
    venue.a().limit("BTCUSDT", "SELL", "1", price);
    let bought = venue.b().limit("BTCUSDT", "BUY", "1.5", price);
    assert_eq!(bought.text_at("status"), "PARTIALLY_FILLED");
    bought.integer_at("orderId")
}

/// A, with nothing open, buys one at 22,000 and bids 23,000 for another; gives what it has locked then, in
/// 10⁻⁸ USDT, and takes the bid back.
fn locked_behind_a_better_price(venue: &Venue) -> i128 {
    venue.b().limit("BTCUSDT", "SELL", "1", "22000");
    let bought = venue.a().limit("BTCUSDT", "BUY", "2", "23000");
    assert_eq!(bought.text_at("status"), "PARTIALLY_FILLED");
    let locked = venue.a().balances()["USDT"].1;
    let id = bought.integer_at("orderId");
    venue.a().cancel(&format!("symbol=BTCUSDT&orderId={id}"));
    assert_eq!(venue.a().balances()["USDT"].1, 0);
    locked
}

#[test]
fn a_venue_of_rules_1_stays_as_it_is_until_it_is_raised() {
    let mut venue = Venue::up(&["--set", "log.window=data"]);
    assert_eq!(venue.stop_up(Signal::TERM).code(), Some(0));
    fs::remove_dir_all(venue.data()).expect("the venue has ended");
    write_venue_of_rules_1(venue.data());
    venue.start_up();
    let told = venue.ready_line("engine: the venue follows rules version 1, ");
    assert!(told.contains("knows up to 8: `touchline admin rules 2`"), "{told}");
    let first = trade_and_rest(&venue, "20000");
    assert!(!limit_open_orders(&venue, 1), "rules 1 has no filters of the exchange");
    let (raised, output) = raise(&venue, "3");
    assert!(!raised && output.contains("rules 3") && !output.contains("limits."), "{output}");
    let balances = (venue.a().balances(), venue.b().balances());
    assert_eq!(venue.stop_up(Signal::TERM).code(), Some(0));
    venue.start_up();
    assert_eq!((venue.a().balances(), venue.b().balances()), balances);
    assert_eq!(logged_rules(venue.data()), [1], "a start raises nothing");

    let (raised, output) = raise(&venue, "2");
    assert!(raised && output.contains("rules 2"), "{output}");
    for (version, why) in [("2", "once"), ("1", "there is no way back"), ("4", "one at a time")] {
        let (raised, output) = raise(&venue, version);
        assert!(!raised && output.contains("one at a time, to 8 at the most"), "{why}: {output}");
    }
    assert_eq!((venue.a().balances(), venue.b().balances()), balances);
    let second = trade_and_rest(&venue, "21000");
    assert_eq!(locked_behind_a_better_price(&venue), 24_000 * WHOLE, "what it has saved, too");
    assert!(raise(&venue, "3").0);
    assert_eq!(locked_behind_a_better_price(&venue), 23_000 * WHOLE);
    assert!(raise(&venue, "4").0);
    assert!(raise(&venue, "5").0);
    assert!(raise(&venue, "6").0);
    assert!(raise(&venue, "7").0);
    assert!(raise(&venue, "8").0);
    assert!(limit_open_orders(&venue, 2));
    assert_eq!(exchange_filters(&venue).len(), 1);
    let (_, code, message) = {
        let order = "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=1&price=100";
        venue.b().call("POST", "/api/v3/order", order).error()
    };
    assert_eq!((code, &*message), (-2010, "Filter failure: EXCHANGE_MAX_NUM_ORDERS"));
    assert_eq!(venue.stop_up(Signal::TERM).code(), Some(0));
    venue.start_up();
    assert_eq!(logged_rules(venue.data()), [1, 2, 3, 4, 5, 6, 7, 8]);
    for id in [first, second] {
        assert_eq!(venue.b().order("BTCUSDT", id).text_at("status"), "PARTIALLY_FILLED");
    }
    assert_eq!(exchange_filters(&venue).len(), 1);
}

#[test]
fn a_venue_by_rules_that_only_a_newer_build_knows_is_refused_with_both_versions() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let data = folder.path().join("data");
    write_venue(&data, Some(RULES + 1));
    let before = fs::read(data.join("log/00000000.seg")).expect("the log is there");
    let path = data.to_str().expect("temporary folders have plain names");
    let told = format!(
        "the venue follows rules version {} from here on, this build knows up to {RULES}",
        RULES + 1
    );
    let on_it = ["--data", path];
    for command in [&["engine"][..], &["log", "replay"], &["log", "state"], &["log", "snapshot"]] {
        let mut process = Process::start(&[command, &on_it].concat());
        assert!(!process.wait_for_end().success(), "{command:?}");
        let printed = process.into_lines().join("\n");
        assert!(printed.contains(&told), "{command:?}: {printed}");
        assert!(!printed.contains("rejected"), "{command:?}: {printed}");
    }
    let after = fs::read(data.join("log/00000000.seg")).expect("the log is there");
    assert!(before == after, "what a newer build has written stays as it is");
}

/// Everything that a symbol can ask for.
const FULL: &str = r#"
[exchange]
max_orders = 1000
max_algo_orders = 200
[[assets]]
name = "BTC"
[[assets]]
name = "USDT"
[[symbols]]
name = "BTCUSDT"
base = "BTC"
quote = "USDT"
order_types = ["LIMIT", "MARKET", "STOP_LOSS", "STOP_LOSS_LIMIT", "TAKE_PROFIT", "TAKE_PROFIT_LIMIT", "LIMIT_MAKER"]
iceberg = true
oco = true
quote_quantity = true
price_min = "0.01"
price_max = "100000"
tick_size = "0.01"
percent_price_up = "1.3"
percent_price_down = "0.7"
percent_price_minutes = 5
lot_min = "0.001"
lot_max = "100000"
lot_step = "0.001"
market_lot_max = "1000"
min_notional = "10"
min_notional_applies_to_market = true
min_notional_minutes = 5
iceberg_parts = 10
max_orders = 200
max_algo_orders = 5
max_iceberg_orders = 5
max_position = "10"
[[accounts]]
name = "A"
keys = 1
balances = { BTC = "5", USDT = "1000000" }
"#;

#[test]
fn a_new_venue_takes_every_filter_and_order_type() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("venue.toml");
    fs::write(&path, FULL).expect("the folder is ours");
    let path = path.to_str().expect("temporary folders have plain names");
    let mut venue = Venue::up(&["--config", path]);
    assert_eq!(logged_rules(venue.data()), [1, 2, 3, 4, 5, 6, 7, 8]);
    let kind = |filter: &Json| filter.text_at("filterType").to_owned();
    let of_exchange: Vec<_> = exchange_filters(&venue).iter().map(kind).collect();
    assert_eq!(of_exchange, ["EXCHANGE_MAX_NUM_ORDERS", "EXCHANGE_MAX_NUM_ALGO_ORDERS"]);
    let info = venue.http().get("/api/v3/exchangeInfo").ok();
    let symbol = &info.at("symbols").items()[0];
    let found: Vec<_> = symbol.at("filters").items().iter().map(kind).collect();
    let expected = [
        "PRICE_FILTER",
        "PERCENT_PRICE",
        "LOT_SIZE",
        "MIN_NOTIONAL",
        "ICEBERG_PARTS",
        "MARKET_LOT_SIZE",
        "MAX_NUM_ORDERS",
        "MAX_NUM_ALGO_ORDERS",
        "MAX_NUM_ICEBERG_ORDERS",
        "MAX_POSITION",
    ];
    assert_eq!(found, expected);
    assert_eq!(symbol.at("orderTypes").items().len(), 7);
    let mut a = venue.a();
    let bid = |price: &str, quantity: &str| {
        format!(
            "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity={quantity}&price={price}"
        )
    };
    let refused = a.call("POST", "/api/v3/order", &bid("100", "5.001")).error();
    assert_eq!((refused.1, &*refused.2), (-2010, "Filter failure: MAX_POSITION"));
    let placed = a.place(&bid("100", "5"));
    let id = placed.integer_at("orderId");
    assert_eq!(venue.stop_up(Signal::TERM).code(), Some(0));
    venue.start_engine();
    venue.start_adapter();
    assert_eq!(venue.a().order("BTCUSDT", id).text_at("status"), "NEW");
    venue.kill9(Part::Engine);
}
