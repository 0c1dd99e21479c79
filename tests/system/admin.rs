//! `touchline admin`: what an operator does to a running venue is seen by its clients over REST.

use super::http::{Key, Request, Response};
use super::json::Json;
use super::orders::assert_texts;
use super::process::{Process, eventually, send_signal, stop};
use super::stream_client::{Member, options, unix};
use super::trader::Trader;
use super::units::WHOLE;
use super::venue::{UNLIMITED, Venue};
use rustix::process::Signal;
use std::fs;

/// Runs `touchline admin --json` to its end; success and what it printed.
fn run(venue: &Venue, arguments: &[&str]) -> (bool, String) {
    let data = venue.data().to_str().expect("temporary folders have plain names");
    let mut process = Process::start(&[&["admin", "--data", data, "--json"], arguments].concat());
    let status = process.wait_for_end();
    (status.success(), process.lines().join("\n"))
}

pub(crate) fn admin(venue: &Venue, arguments: &[&str]) -> Json {
    let (success, output) = run(venue, arguments);
    assert!(success, "admin {arguments:?} failed: {output}");
    Json::parse(&output)
}

fn refused(venue: &Venue, arguments: &[&str], says: &str) {
    let (success, output) = run(venue, arguments);
    assert!(!success && output.contains(says), "admin {arguments:?}: {output}");
}

const LIMIT: &str = "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=1&price=10000";

fn place(trader: &mut Trader) -> Response {
    trader.call("POST", "/api/v3/order", LIMIT)
}

fn symbol(venue: &Venue, name: &str) -> Json {
    let info = venue.http().get(&format!("/api/v3/exchangeInfo?symbol={name}")).ok();
    info.at("symbols").items()[0].clone()
}

fn disabled() -> (u16, i128, String) {
    (400, -2010, "This action is disabled on this account.".to_owned())
}

#[test]
fn money_fees_and_permissions_of_an_account() {
    let venue = Venue::up(&[]);
    let (mut a, mut b) = (venue.a(), venue.b());
    let balance = admin(&venue, &["withdraw", "A", "USDT", "10000000"]);
    assert_texts(&balance, &[("free", "0.00000000"), ("asset", "USDT")]);
    assert_eq!(a.balances()["USDT"], (0, 0));
    refused(&venue, &["withdraw", "A", "USDT", "0.00000001"], "InsufficientBalance");
    admin(&venue, &["deposit", "A", "USDT", "500000"]);
    assert_eq!(a.balances()["USDT"], (500_000 * WHOLE, 0));

    admin(&venue, &["can-trade", "A", "false"]);
    assert_eq!(place(&mut a).error(), disabled());
    assert_eq!(a.account().at("canTrade"), &Json::Bool(false));
    let cancel = a.call("DELETE", "/api/v3/order", "symbol=BTCUSDT&orderId=1").error();
    assert_eq!(cancel, (400, -2011, disabled().2));
    admin(&venue, &["can-trade", "A", "true"]);
    place(&mut a).ok();

    admin(&venue, &["permissions", "A", "MARGIN,TRD_GRP_002"]);
    let not_permitted = "This symbol is not permitted for this account.".to_owned();
    assert_eq!(place(&mut a).error(), (400, -2010, not_permitted));
    let permissions = a.account().at("permissions").clone();
    let names: Vec<_> = permissions.items().iter().map(Json::text).collect();
    assert_eq!(names, ["MARGIN", "TRD_GRP_002"]);
    assert_eq!(a.account().at("canTrade"), &Json::Bool(true), "flags stay");
    admin(&venue, &["permissions", "A", "SPOT"]);

    // The pair's rates come before the account's.
    admin(&venue, &["fees", "0.001", "0.002", "0.0003", "0.0004", "--account", "A"]);
    let account = a.account();
    let shown = ["makerCommission", "takerCommission", "buyerCommission", "sellerCommission"]
        .map(|key| account.integer_at(key));
    assert_eq!(shown, [10, 20, 3, 4]);
    b.limit("BTCUSDT", "SELL", "3", "20000");
    let taken = |a: &mut Trader| {
        let bought = a.limit("BTCUSDT", "BUY", "1", "20000");
        bought.at("fills").items()[0].text_at("commission").to_owned()
    };
    assert_eq!(taken(&mut a), "0.00230000", "as taker and as buyer");
    admin(&venue, &["fees", "0", "0.01", "--account", "A", "--symbol", "BTCUSDT"]);
    assert_eq!(taken(&mut a), "0.01000000");
    admin(&venue, &["fees", "--withdraw", "--account", "A", "--symbol", "BTCUSDT"]);
    assert_eq!(taken(&mut a), "0.00230000");
    refused(&venue, &["fees", "0.1", "0.1"], "--account");

    let moved = |way, account, amount| {
        let balance = admin(&venue, &[way, account, "BTC", amount]);
        balance.text_at("free").to_owned()
    };
    assert_eq!(
        moved("withdraw", "fees", "0.01"),
        "0.00460000",
        "all that was taken of BTC, less this"
    );
    assert_eq!(moved("deposit", "0", "0.0004"), "0.00500000");
    assert_eq!(moved("withdraw", "#0", "0.005"), "0.00000000");
    refused(&venue, &["withdraw", "fees", "BTC", "0.00000001"], "InsufficientBalance");
    refused(&venue, &["can-trade", "fees", "true"], "no account");
    refused(&venue, &["permissions", "A", "FRIEND"], "FRIEND");
}

#[test]
fn a_new_key_is_told_with_the_number_that_the_binary_protocol_knows_it_by() {
    let venue = Venue::up(&[]);
    let data = venue.data().to_str().expect("temporary folders have plain names");
    let mut told = Process::start(&["admin", "--data", data, "key", "A"]);
    assert!(told.wait_for_end().success());
    let lines = told.lines();
    let variable = |name: &str| {
        let value = lines.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        value.unwrap_or_else(|| panic!("no {name}: {lines:?}"))
    };
    let key = Key { api: String::new(), secret: variable("SECRET_KEY").to_owned() };
    let id = variable("KEY_ID").parse().expect("a number");
    Member::open(&options(unix(&venue), "new", (id, &key))).expect("key and number go together");
    let next = admin(&venue, &["key", "A"]);
    assert_eq!(next.integer_at("number"), i128::from(id) + 1);
}

#[test]
fn that_the_kill_switch_still_holds_an_account_is_told_who_lets_it_trade() {
    let venue = Venue::up(&[]);
    let is_killed = |account| {
        let told = admin(&venue, &["can-trade", account, "true"]);
        told.at("killed") == &Json::Bool(true)
    };
    assert!(!is_killed("A"));
    place(&mut venue.a()).ok();
    admin(&venue, &["kill", "A"]);
    assert!(is_killed("A") && !is_killed("B"));
    let data = venue.data().to_str().expect("temporary folders have plain names");
    let snapshot = ["log", "--data", data, "snapshot"];
    assert!(Process::start(&snapshot).wait_for_end().success());
    assert!(is_killed("A") && !is_killed("B"), "as the snapshot has it");
    let mut told = Process::start(&["admin", "--data", data, "can-trade", "A", "true"]);
    assert!(told.wait_for_end().success());
    assert!(told.lines().iter().any(|line| line.contains("unkill")), "{:?}", told.lines());
    admin(&venue, &["unkill", "A"]);
    assert!(!is_killed("A"));
    place(&mut venue.a()).ok();
}

#[test]
fn a_number_that_is_another_accounts_name_is_refused() {
    let mut venue = Venue::up(&[]);
    let dump = |venue: &Venue, account: &str| {
        let data = venue.data().to_str().expect("temporary folders have plain names").to_owned();
        let mut process =
            Process::start(&["log", "--data", &data, "dump", "--account", account, "--from", "0"]);
        (process.wait_for_end().success(), process.lines().join("\n"))
    };
    let number = |name: &str| admin(&venue, &["account", name]).integer_at("number");
    let (plain, two) = (number("77"), number("2"));
    admin(&venue, &["deposit", "77", "USDT", "5"]);
    let deposits = |account: &str| {
        admin(&venue, &["deposit", account, "USDT", "1"]).text_at("free").to_owned()
    };
    let of_b = deposits("#2");
    assert_eq!(deposits("B"), of_b.replace("1.", "2."), "account 2 is B");
    let named_two = format!("#{two}");
    assert_eq!(deposits(&named_two), "1.00000000");
    assert_eq!(deposits(&format!("#{plain}")), "6.00000000");
    let says = format!("say #2 or #{two}");
    for arguments in [
        &["deposit", "2", "USDT", "1"][..],
        &["withdraw", "2", "USDT", "1"],
        &["kill", "2"],
        &["can-trade", "2", "false"],
        &["key", "2"],
        &["fees", "0", "0", "--account", "2"],
    ] {
        refused(&venue, arguments, &says);
    }
    let (_, shown) = dump(&venue, &named_two);
    assert!(shown.contains("Deposit") && !shown.contains("\"account\":2,"), "{shown}");
    let (success, shown) = dump(&venue, "2");
    assert!(!success && shown.contains(&says), "{shown}");
    assert!(venue.stop_up(Signal::TERM).success());
}

#[test]
fn the_kill_switch_ends_all_that_is_open_and_refuses_what_comes() {
    let venue = Venue::up(&[]);
    let (mut a, mut b) = (venue.a(), venue.b());
    b.limit("ETHUSDT", "SELL", "1", "1000");
    a.limit("ETHUSDT", "BUY", "2", "1000");
    let stop = "symbol=BTCUSDT&side=SELL&type=STOP_LOSS&quantity=1&stopPrice=5000";
    a.call("POST", "/api/v3/order", stop).ok();
    let list = "symbol=ETHUSDT&side=SELL&quantity=1&price=1100&stopPrice=900";
    a.call("POST", "/api/v3/order/oco", list).ok();
    place(&mut a).ok();
    place(&mut b).ok();
    let killed = admin(&venue, &["kill", "A"]);
    assert_eq!((killed.integer_at("orders"), killed.integer_at("lists")), (5, 1));
    // CANCELED is what the user has cancelled.
    for (symbol, count) in [("BTCUSDT", 2), ("ETHUSDT", 3)] {
        let orders = a.call("GET", "/api/v3/allOrders", &format!("symbol={symbol}")).ok();
        assert_eq!(orders.items().len(), count, "{symbol}");
        assert!(orders.items().iter().all(|order| order.text_at("status") == "EXPIRED"));
    }
    assert_eq!(a.call("GET", "/api/v3/openOrders", "").ok().items(), []);
    assert_eq!(place(&mut a).error(), disabled());
    assert_eq!(b.call("GET", "/api/v3/openOrders", "").ok().items().len(), 1);
    admin(&venue, &["unkill", "A"]);
    place(&mut a).ok();
}

#[test]
fn keys_are_limited_to_kinds_and_addresses_and_can_be_revoked() {
    let proxies = ["--set", "adapter.trusted_proxies=[\"127.0.0.1\"]"];
    let venue = Venue::up(&[&UNLIMITED[..], &proxies].concat());
    let key = |arguments: &[&str]| {
        let made = admin(&venue, arguments);
        let text = |name| made.text_at(name).to_owned();
        (Key { api: text("apiKey"), secret: text("secretKey") }, made.integer_at("number"))
    };
    let rejected = (401, -2015, "Invalid API-key, IP, or permissions for action.".to_owned());
    let calls = [
        ("trade", "DELETE", "/api/v3/order", "symbol=BTCUSDT&orderId=1"),
        ("user-data", "GET", "/api/v3/account", ""),
        ("user-stream", "POST", "/api/v3/userDataStream", ""),
        ("market-data", "GET", "/api/v3/historicalTrades", "symbol=BTCUSDT"),
    ];
    for (kind, ..) in calls {
        let (key, _) = key(&["key", "A", "--kinds", kind]);
        let mut trader = venue.trader(key);
        for (needed, method, path, parameters) in calls {
            let is_signed = matches!(needed, "trade" | "user-data");
            let request = if is_signed {
                trader.request(method, path, parameters)
            } else {
                Request::new(method, format!("{path}?{parameters}"))
                    .header("X-SVC-APIKEY", &trader.key.api)
            };
            let reply = trader.http.call(&request);
            let is_allowed = needed == kind;
            assert_eq!(reply.status == 401, !is_allowed, "{kind} key for {needed}: {reply:?}");
            if !is_allowed {
                assert_eq!(reply.error(), rejected);
            }
        }
    }

    // From two places only; then from one; then from anywhere; then from nowhere.
    let (key, number) = key(&["key", "A", "--addresses", "192.0.2.0/24,2001:db8::/32"]);
    let mut trader = venue.trader(key.clone());
    let mut status_from = |client: &str| {
        let request = trader.request("GET", "/api/v3/account", "");
        trader.http.call(&request.header("X-Forwarded-For", client)).status
    };
    let number = number.to_string();
    assert_eq!(status_from("198.51.100.1"), 401, "from its first request on");
    assert_eq!((status_from("192.0.2.9"), status_from("2001:db8::9")), (200, 200));
    admin(&venue, &["key-addresses", &number, "198.51.100.1"]);
    assert!(eventually(|| status_from("198.51.100.1") == 200));
    assert_eq!(status_from("192.0.2.9"), 401);
    // A file that is lost lifts nothing.
    fs::remove_file(venue.data().join("key-addresses")).expect("it is there");
    venue.supervisor().wait_for(0, "that it is gone", |line| line.contains("the file is gone"));
    assert_eq!((status_from("192.0.2.9"), status_from("198.51.100.1")), (401, 200));
    admin(&venue, &["key-addresses", &key.api]);
    assert!(eventually(|| status_from("192.0.2.9") == 200));
    admin(&venue, &["revoke-key", &key.api]);
    assert_eq!(status_from("192.0.2.9"), 401);
    refused(&venue, &["revoke-key", &number], "revoked");
    refused(&venue, &["revoke-key", "9999"], "9999");
    refused(&venue, &["key-addresses", "1", "10.0.0.1/8"], "10.0.0.1/8");
    refused(&venue, &["key", "A", "--kinds", "trade,fly"], "fly");
    refused(&venue, &["key", "A", "--kinds", ","], "none");
}

#[test]
fn every_key_that_the_definition_asked_for_can_be_shown_and_used() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let config = folder.path().join("venue.toml");
    let of = |name: &str, keys: u32, amount: u32| {
        format!(
            "[[accounts]]\nname = \"{name}\"\nkeys = {keys}\nbalances = {{ USDT = \"{amount}\" }}\n"
        )
    };
    let asset = "[[assets]]\nname = \"USDT\"\n".to_owned();
    let text = asset + &of("X", 2, 11) + &of("Y", 1, 12) + &of("Z", 2, 13);
    fs::write(&config, text).expect("the folder is ours");
    let path = config.to_str().expect("temporary folders have plain names");
    let mut venue = Venue::up(&["--config", path]);
    let owners = [("X", 11), ("X", 11), ("Y", 12), ("Z", 13), ("Z", 13)];
    for ((owner, amount), number) in owners.into_iter().zip(1..) {
        let shown = admin(&venue, &["show-key", &format!("{number}")]);
        assert_texts(&shown, &[("account", owner)]);
        assert_eq!(shown.integer_at("number"), number);
        let [api, secret] = ["apiKey", "secretKey"].map(|name| shown.at(name).text().to_owned());
        let by_key = admin(&venue, &["show-key", &api]);
        assert_eq!(by_key, shown);
        let mut trader = venue.trader(Key { api, secret });
        assert_eq!(trader.balances()["USDT"], (amount * WHOLE, 0), "key {number}");
    }
    refused(&venue, &["show-key", "6"], "no key 6");
    refused(&venue, &["show-key", "nonsense"], "nonsense");
    admin(&venue, &["revoke-key", "5"]);
    refused(&venue, &["show-key", "5"], "revoked");
    let made = admin(&venue, &["key", "Y"]);
    assert_eq!(admin(&venue, &["show-key", "6"]), made);
    // It asks no engine.
    assert!(venue.stop_up(Signal::TERM).success());
    assert_eq!(admin(&venue, &["show-key", "6"]), made);
    // By another master key than the venue's all that is shown would be void.
    let master = venue.data().join("master.key");
    let mut bytes = fs::read(&master).expect("it is there");
    bytes[0] = if bytes[0] == b'0' { b'1' } else { b'0' };
    fs::write(&master, bytes).expect("the folder is ours");
    refused(&venue, &["show-key", "6"], "another one than this venue's");
    fs::remove_file(&master).expect("it is there");
    refused(&venue, &["show-key", "6"], "master.key");
}

#[test]
fn a_key_whose_addresses_cannot_be_kept_is_not_made_or_is_named() {
    let venue = Venue::up(&[]);
    let lists = venue.data().join("key-addresses");
    fs::write(&lists, "no number\n").expect("the folder is ours");
    let arguments = ["key", "A", "--addresses", "192.0.2.1"];
    refused(&venue, &arguments, "line 1");
    let number = admin(&venue, &["key", "A"]).integer_at("number");
    assert_eq!(number, 3, "the two of the demo are 1 and 2: none was made in vain");
    fs::remove_file(&lists).expect("it is there");
    fs::create_dir(lists.with_extension("new")).expect("the folder is ours");
    refused(&venue, &arguments, "key 4 was made");
    admin(&venue, &["revoke-key", "4"]);
}

#[test]
fn symbols_are_defined_changed_closed_and_emptied() {
    let venue = Venue::up(&[]);
    let (mut a, mut b) = (venue.a(), venue.b());
    let asset = admin(&venue, &["asset", "DOGE", "--precision", "4"]);
    assert_eq!(asset.integer_at("number"), 3);
    let keys = ["symbol", "add", "DOGEUSDT", "DOGE", "USDT", "tick_size=0.01", "lot_step=1"];
    assert_eq!(admin(&venue, &keys).integer_at("number"), 3);
    admin(&venue, &["deposit", "A", "DOGE", "1000"]);
    let added = symbol(&venue, "DOGEUSDT");
    assert_texts(&added, &[("status", "TRADING"), ("baseAsset", "DOGE")]);
    assert_eq!(added.integer_at("baseAssetPrecision"), 4);
    let order = "symbol=DOGEUSDT&side=SELL&type=LIMIT&timeInForce=GTC&quantity=5&price=0.25";
    let id = a.place(order).integer_at("orderId");
    let stop = order.replace("type=LIMIT", "type=LIMIT_MAKER").replace("&timeInForce=GTC", "");
    assert_eq!(a.call("POST", "/api/v3/order", &stop).error().1, -1013);

    let types = "order_types=[\"LIMIT\",\"LIMIT_MAKER\"]";
    let changed = admin(&venue, &["symbol", "change", "DOGEUSDT", types, "min_notional=2"]);
    assert_eq!(changed.integer_at("number"), 3);
    a.place(&stop.replace("quantity=5", "quantity=8"));
    let refusal = a.call("POST", "/api/v3/order", order).error();
    assert_eq!(refusal, (400, -1013, "Filter failure: MIN_NOTIONAL".to_owned()));
    let coarse = ["symbol", "change", "DOGEUSDT", "tick_size=0.05"];
    refused(&venue, &coarse, "SymbolInUse (detail 0), steps of prices and quantities");

    for status in ["PRE_TRADING", "POST_TRADING", "END_OF_DAY", "AUCTION_MATCH", "BREAK", "HALT"] {
        let set = admin(&venue, &["symbol", "status", "DOGEUSDT", status]);
        assert_eq!(set.integer_at("number"), 3);
        assert_eq!(symbol(&venue, "DOGEUSDT").text_at("status"), status);
        let closed = a.call("POST", "/api/v3/order", &order.replace("quantity=5", "quantity=8"));
        assert_eq!(closed.error(), (400, -1013, "Market is closed.".to_owned()), "{status}");
    }
    // What is open stays, and can be cancelled; the rest is expired by the exchange.
    a.cancel(&format!("symbol=DOGEUSDT&orderId={id}"));
    let expired = admin(&venue, &["symbol", "expire", "DOGEUSDT"]);
    let told = ["number", "orders", "lists"].map(|name| expired.integer_at(name));
    assert_eq!(told, [3, 1, 0]);
    assert_eq!(a.order("DOGEUSDT", id + 1).text_at("status"), "EXPIRED");
    assert_eq!(a.balances()["DOGE"], (1000 * WHOLE, 0));
    let fine = admin(&venue, &["symbol", "change", "DOGEUSDT", "lot_step=0.0000001"]);
    assert!(fine.text_at("warning").contains("symbol DOGEUSDT"), "it is taken, and told");
    admin(&venue, &["symbol", "change", "DOGEUSDT", "lot_step=1"]);
    admin(&venue, &coarse);
    admin(&venue, &["symbol", "status", "DOGEUSDT", "TRADING"]);
    let filters = symbol(&venue, "DOGEUSDT").at("filters").clone();
    assert_eq!(filters.items()[0].text_at("tickSize"), "0.05000000");
    assert_eq!(filters.items()[1].text_at("stepSize"), "1.00000000", "what is not named stays");

    admin(&venue, &["exchange", "--max-orders", "1", "--max-algo-orders", "0"]);
    place(&mut b).ok();
    let refusal = place(&mut b).error();
    assert_eq!(refusal, (400, -2010, "Filter failure: EXCHANGE_MAX_NUM_ORDERS".to_owned()));
    for (arguments, says) in [
        (&["symbol", "add", "dogeusdt", "DOGE", "USDT"][..], "dogeusdt"),
        (&["symbol", "add", "CATUSDT", "CAT", "USDT"], "CAT"),
        (&["symbol", "add", "DOGEUSDT", "DOGE", "USDT"], "AlreadyDefined"),
        (&["symbol", "change", "NONE", "oco=true"], "NONE"),
        (&["symbol", "change", "DOGEUSDT", "wings=2"], "wings"),
        (&["symbol", "change", "DOGEUSDT"], "nothing"),
        (&["symbol", "status", "DOGEUSDT", "OPEN"], "OPEN"),
        (&["asset", "DOGE"], "AlreadyDefined"),
    ] {
        refused(&venue, arguments, says);
    }
}

#[test]
fn a_dump_that_follows_goes_on_when_its_number_becomes_anothers_name() {
    let venue = Venue::up(&[]);
    let data = venue.data().to_str().expect("temporary folders have plain names").to_owned();
    let arguments = ["log", "--data", &data, "dump", "--account", "2", "--follow"];
    let mut dump = Process::start(&arguments);
    // Nothing is shown before it has read all that there is.
    dump.wait_for(0, "line about B", |line| line.contains("\"account\":2,"));
    let printed = dump.lines().len();
    admin(&venue, &["account", "2"]);
    admin(&venue, &["deposit", "B", "USDT", "7"]);
    dump.wait_for(printed, "line about B's deposit", |line| {
        line.contains("Deposit") && line.contains("7.00000000")
    });
    assert!(dump.lines()[printed..].iter().all(|line| line.contains("\"account\":2,")));
    dump.kill();
}

#[test]
fn the_fewest_connections_that_are_allowed_are_enough_for_a_venue_and_its_operator() {
    let venue = Venue::up(&["--set", "engine.connections=3"]);
    admin(&venue, &["deposit", "A", "USDT", "1"]);
    assert_eq!(place(&mut venue.a()).status, 200);
}

#[test]
fn an_engine_that_does_not_answer_is_told_as_such() {
    let venue = Venue::separate(&[]);
    let engine = venue.pid("engine").expect("it runs");
    stop(engine);
    refused(&venue, &["account", "X"], "does not answer");
    send_signal(engine, Signal::CONT);
    venue.wait_until_engine_answers();
}

#[test]
fn what_is_refused_is_named_and_not_only_numbered() {
    let venue = Venue::up(&["--set", "limits.symbols=3", "--set", "limits.assets=3"]);
    let refused: [(&[&str], &str); 10] = [
        (
            &["symbol", "change", "BTCUSDT", "percent_price_minutes=61"],
            "percent_price_minutes: 60 at the most (0 by rules 1)",
        ),
        (&["symbol", "change", "BTCUSDT", "price_max=0.001"], "price_max: less than price_min"),
        (
            &["symbol", "add", "X", "BTC", "ETH", "lot_min=2", "lot_max=1"],
            "lot_max: less than lot_min",
        ),
        (&["symbol", "add", "X", "BTC", "BTC"], "quote: a symbol's base and quote are two assets"),
        (
            &["symbol", "add", "X", "BTC", "ETH"],
            "limits.symbols: it is used up; raise it in the settings and start the engine again",
        ),
        (&["asset", "X", "--precision", "9"], "precision: 8 at the most"),
        (
            &["asset", "X"],
            "limits.assets: it is used up; raise it in the settings and start the engine again",
        ),
        (&["account", "X", "--maker-rate", "2"], "maker_rate: 1 at the most"),
        (
            &["fees", "0.1", "2", "--account", "A"],
            "taker rate: 1 at the most, with the larger one of buyer's and seller's",
        ),
        (
            &["fees", "0.6", "0.1", "0.5", "0", "--symbol", "BTCUSDT"],
            "maker rate: 1 at the most, with the larger one of buyer's and seller's",
        ),
    ];
    for (arguments, name) in refused {
        let (success, output) = run(&venue, arguments);
        assert!(!success && output.trim_end().ends_with(name), "{arguments:?}: {output}");
    }
}

#[test]
fn every_count_of_a_symbol_is_taken_as_a_number() {
    let venue = Venue::up(&[]);
    let counts = [
        ("iceberg_parts=21", "limit"),
        ("max_orders=22", "maxNumOrders"),
        ("max_algo_orders=23", "maxNumAlgoOrders"),
        ("max_iceberg_orders=24", "maxNumIcebergOrders"),
    ];
    for (setting, _) in counts {
        admin(&venue, &["symbol", "change", "BTCUSDT", setting]);
    }
    let shown = symbol(&venue, "BTCUSDT");
    let filters = shown.at("filters").items();
    for (setting, field) in counts {
        let shown = filters.iter().find_map(|filter| filter.find(field)).map(Json::integer);
        let (_, number) = setting.split_once('=').expect("as above");
        assert_eq!(shown, number.parse().ok(), "{setting}");
    }
}

#[test]
fn an_iceberg_has_as_many_parts_as_the_exchange_information_allows() {
    let venue = Venue::up(&[]);
    admin(&venue, &["symbol", "change", "BTCUSDT", "iceberg_parts=0"]);
    let limit = |name: &str| {
        let shown = symbol(&venue, name);
        let filters = shown.at("filters").items();
        let parts = filters.iter().find(|it| it.text_at("filterType") == "ICEBERG_PARTS");
        parts.map(|filter| filter.integer_at("limit"))
    };
    assert_eq!((limit("BTCUSDT"), limit("ETHBTC")), (Some(1000), None));
    let order = |quantity: &str| {
        format!(
            "symbol=BTCUSDT&side=SELL&type=LIMIT&timeInForce=GTC&price=30000&icebergQty=0.00001&quantity={quantity}"
        )
    };
    let mut a = venue.a();
    let (_, code, message) = a.call("POST", "/api/v3/order", &order("0.01001")).error();
    assert_eq!((code, &*message), (-1013, "Filter failure: ICEBERG_PARTS"));
    assert_eq!(a.place(&order("0.01")).text_at("status"), "NEW");
}
