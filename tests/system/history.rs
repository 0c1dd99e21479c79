//! The adapter's history as a client sees it: whole and each entry once, however often the adapter is
//! killed while it writes; found again on a pruned log; made anew for another past.

use super::json::Json;
use super::log_tools::log;
use super::process::{Process, eventually, send_signal, stop};
use super::readers::Load;
use super::trader::Trader;
use super::units::units;
use super::venue::{Part, UNLIMITED, Venue, borrowed};
use rustix::process::Signal;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use touchline_protocol::log::reader::{Follow, LogReader};
use touchline_protocol::message::decode::Event;
use touchline_protocol::units::{AccountId, SymbolId};

const MIB: u64 = 1 << 20;

/// Bytes of a segment of every venue here.
const SEGMENT: u64 = 4 * MIB;

const SYMBOL: SymbolId = SymbolId(0);

/// Account A of the demo venue; account 0 takes the fees.
const A: AccountId = AccountId(1);

/// What the log says of the symbol: its trades, and the orders of account A.
#[derive(Debug, Default, PartialEq, Eq)]
struct Past {
    /// Number, price, quantity and time.
    trades: Vec<(i128, i128, i128, i128)>,
    orders: Vec<i128>,
    /// Trade and order, once for each side that is A's.
    own_trades: Vec<(i128, i128)>,
}

impl Past {
    fn of_log(data: &Path) -> Self {
        let mut reader = LogReader::open(data, Follow::Durable).expect("there is a log");
        let mut past = Self::default();
        while let Some(transaction) = reader.next().expect("the log is sound") {
            let time = i128::from(transaction.time_ns() / 1_000_000);
            for event in transaction.events() {
                match event.expect("a sound event") {
                    Event::OrderAccepted(order) if (order.account, order.symbol) == (A, SYMBOL) => {
                        past.orders.push(order.order_id.0.into());
                    }
                    Event::Trade(trade) if trade.symbol == SYMBOL => {
                        let id = trade.trade_id.0.into();
                        let (price, quantity) = (trade.price.into(), trade.quantity.into());
                        past.trades.push((id, price, quantity, time));
                        for (account, order) in [
                            (trade.taker_account, trade.taker_order_id),
                            (trade.maker_account, trade.maker_order_id),
                        ] {
                            if account == A {
                                past.own_trades.push((id, order.0.into()));
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
        past
    }

    fn of_rest(a: &mut Trader) -> Self {
        let trade = |trade: &Json| {
            let money = |key| units(trade.text_at(key));
            (trade.integer_at("id"), money("price"), money("qty"), trade.integer_at("time"))
        };
        let own = |trade: &Json| (trade.integer_at("id"), trade.integer_at("orderId"));
        Self {
            trades: all(a, "historicalTrades", "fromId", "id").iter().map(trade).collect(),
            orders: all(a, "allOrders", "orderId", "orderId")
                .iter()
                .map(|order| order.integer_at("orderId"))
                .collect(),
            own_trades: all(a, "myTrades", "fromId", "id").iter().map(own).collect(),
        }
    }
}

/// Every entry, page by page: each begins with the number behind the last one of the page before.
fn all(trader: &mut Trader, path: &str, from: &str, id: &str) -> Vec<Json> {
    let mut entries = Vec::new();
    let mut next = 0;
    loop {
        let parameters = format!("symbol=BTCUSDT&limit=1000&{from}={next}");
        let path = format!("/api/v3/{path}");
        let page = match &*path {
            "/api/v3/historicalTrades" => trader.keyed("GET", &path, &parameters),
            _ => trader.call("GET", &path, &parameters),
        };
        let page = page.ok().items().to_vec();
        let Some(last) = page.last() else { return entries };
        assert!(last.integer_at(id) >= next, "{path} from {next} begins anew");
        next = last.integer_at(id) + 1;
        entries.extend(page);
    }
}

/// Some trades of A and B with each other, and of A with itself.
fn trade(venue: &Venue, count: usize) {
    let (mut a, mut b) = (venue.a(), venue.b());
    for round in 0..count {
        let price = format!("{}.5", 30_000 + round % 7);
        a.limit("BTCUSDT", "SELL", "0.03", &price);
        b.limit("BTCUSDT", "BUY", "0.01", &price);
        a.limit("BTCUSDT", "BUY", "0.02", &price);
    }
}

#[test]
fn nothing_is_missing_and_nothing_is_there_twice_however_often_the_adapter_is_killed() {
    let mut venue = Venue::separate(&UNLIMITED);
    let mut load = Load::new(&venue);
    for round in 0..8 {
        trade(&venue, 10);
        // The adapter is killed while it follows, or with hardly anything left to write.
        load.pass(load.position.max(1) + round % 4 * MIB / 2);
        venue.kill9(Part::Adapter);
        venue.start_adapter();
    }
    drop(load);
    let expected = Past::of_log(venue.data());
    assert!(expected.trades.len() >= 160 && expected.orders.len() > 10_000);
    let found = Past::of_rest(&mut venue.a());
    assert_eq!(found.orders.len(), expected.orders.len());
    assert!(found == expected, "what REST tells is not what the log has");
    let lines = venue.part(Part::Adapter).lines();
    assert!(!lines.iter().any(|line| line.contains("made anew")), "{lines:?}");

    // Candles add up to the trades, and an old order is found by its name.
    let klines = venue.http().get("/api/v3/klines?symbol=BTCUSDT&interval=1m&limit=1000").ok();
    let count: i128 = klines.items().iter().map(|kline| kline.items()[8].integer()).sum();
    assert_eq!(count, expected.trades.len() as i128);
    let mut a = venue.a();
    let first = all(&mut a, "allOrders", "orderId", "orderId").swap_remove(0);
    let name = first.text_at("clientOrderId").to_owned();
    let query = format!("symbol=BTCUSDT&origClientOrderId={name}");
    assert_eq!(a.call("GET", "/api/v3/order", &query).ok(), first);
}

#[test]
fn an_adapter_goes_on_with_its_history_on_a_pruned_log() {
    let mut venue = Venue::separate(&UNLIMITED);
    trade(&venue, 20);
    let open = venue.a().limit("BTCUSDT", "SELL", "0.02", "50000");
    // However far behind the log the history is, nothing that it needs is removed.
    let adapter = venue.pid("adapter").expect("its pid file is there while it runs");
    stop(adapter);
    let mut load = Load::new(&venue);
    load.pass(2 * SEGMENT + MIB);
    let before = Past::of_log(venue.data());
    let (code, _, errors) = log(venue.data(), &["snapshot"]);
    assert_eq!(code, Some(0), "{errors}");
    load.pass(load.position + MIB);
    let prune = || {
        let (code, printed, errors) = log(venue.data(), &["prune", "--yes"]);
        assert_eq!(code, Some(0), "{errors}");
        printed
    };
    let printed = prune();
    assert!(printed.contains("reader history-adapter"), "{printed}");
    let (_, info, _) = log(venue.data(), &["info"]);
    assert!(info.contains("lease         of history-adapter: from "), "{info}");
    let first = venue.data().join("log/00000000.seg");
    assert!(first.exists());
    send_signal(adapter, Signal::CONT);
    assert!(eventually(|| prune().contains("the log begins at position")), "the history stands");
    assert!(!first.exists());
    drop(load);
    let mut a = venue.a();
    let balances = a.balances();
    venue.kill9(Part::Adapter);
    // Nothing else is left that stands for what was pruned.
    copy_store(&venue);
    venue.start_adapter();
    let is_copy = |line: &str| line.contains("is a copy");
    venue.part(Part::Adapter).wait_for(0, "word of a copy", is_copy);

    let mut a = venue.a();
    assert_eq!(a.balances(), balances);
    let id = open.integer_at("orderId");
    assert_eq!(a.order("BTCUSDT", id).text_at("status"), "NEW");
    let found = Past::of_rest(&mut a);
    assert_eq!(found.trades, before.trades);
    assert_eq!(found.orders[..before.orders.len()], before.orders);
    trade(&venue, 1);
    assert_eq!(Past::of_rest(&mut venue.a()).trades.len(), before.trades.len() + 2);

    // Without its history nothing stands for what was pruned.
    venue.kill9(Part::Adapter);
    fs::remove_dir_all(venue.data().join("history")).expect("it was there");
    let arguments = venue.arguments("adapter", true);
    let mut adapter = Process::start(&borrowed(&arguments));
    adapter.wait_for(0, "reason", |line| line.contains("was pruned"));
    assert!(!adapter.wait_for_end().success());
}

#[test]
fn a_history_that_is_gone_is_told_and_made_anew() {
    let mut venue = Venue::separate(&UNLIMITED);
    trade(&venue, 3);
    let trades = Past::of_rest(&mut venue.a()).trades;
    let told = |line: &str| line.contains("there is no history in");
    // Twice, so that the first one has ended with something.
    for is_gone in [false, true] {
        venue.part(Part::Adapter).signal(Signal::TERM);
        assert!(venue.part(Part::Adapter).wait_for_end().success());
        if is_gone {
            fs::remove_dir_all(venue.data().join("history")).expect("it was there");
        }
        venue.start_adapter();
        let lines = venue.said_at_start();
        assert_eq!(lines.iter().any(|line| told(line)), is_gone, "{lines:?}");
    }
    assert_eq!(Past::of_rest(&mut venue.a()).trades, trades);
}

#[test]
fn a_history_of_another_past_is_told_and_made_anew() {
    let mut venue = Venue::up(&UNLIMITED);
    trade(&venue, 3);
    assert!(venue.stop_up(Signal::TERM).success());
    let segment = venue.data().join("log/00000000.seg");
    let copy = fs::read(&segment).expect("the log's first segment");
    venue.start_up();
    trade(&venue, 3);
    assert!(venue.stop_up(Signal::TERM).success());
    // The log goes back to where it was, as it does when an older copy is brought back.
    fs::write(&segment, copy).expect("it can be written");
    venue.forget_live_window();
    // Its lease holds the whole log before anything of it is forgotten, or nothing is.
    let (leases, aside) = (venue.data().join("leases"), venue.data().join("aside"));
    fs::rename(&leases, &aside).expect("the folder is ours");
    fs::write(&leases, "no folder").expect("it can be written");
    let mut refused = Process::start(&borrowed(&venue.arguments("adapter", true)));
    assert!(!refused.wait_for_end().success());
    assert!(refused.lines().iter().any(|line| line.contains("leases")), "{:?}", refused.lines());
    fs::remove_file(&leases).and_then(|()| fs::rename(&aside, &leases)).expect("it is ours");
    // What the log has lost was durable, as the lease that stayed tells: nothing goes on without it unasked.
    let mut refused = Process::start(&borrowed(&venue.arguments("up", true)));
    assert_eq!(refused.wait_for_end().code(), Some(1));
    let names_it =
        |line: &String| line.contains("history-adapter.lease") && line.contains("--accept-loss");
    assert!(refused.lines().iter().any(names_it), "{:?}", refused.lines());
    venue.allow(&["--accept-loss"]);
    venue.start_up();
    venue.supervisor().wait_for(0, "a history made anew", |line| {
        line.contains("the history is made anew from the log's beginning")
    });
    assert_eq!(Past::of_rest(&mut venue.a()), Past::of_log(venue.data()));
    trade(&venue, 2);
    assert_eq!(Past::of_rest(&mut venue.a()), Past::of_log(venue.data()));
    assert_eq!(Past::of_rest(&mut venue.a()).trades.len(), 10);
}

/// The file of the venue's history.
fn store(venue: &Venue) -> PathBuf {
    venue.data().join("history/adapter/data.mdb")
}

/// Puts a copy in the place of the history's file, as whoever brings a data folder back from one does.
fn copy_store(venue: &Venue) {
    let copy = venue.data().join("copy");
    fs::copy(store(venue), &copy).and_then(|_| fs::rename(copy, store(venue))).expect("it is ours");
}

/// Does something to a venue's history.
type Damage<'a> = &'a dyn Fn(&Venue);

/// Pages of a store that is copied while it is written are of different moments, which it does not know itself.
#[test]
fn a_history_that_was_copied_while_it_was_open_or_is_damaged_is_told_and_made_anew() {
    let mut venue = Venue::separate(&UNLIMITED);
    trade(&venue, 3);
    let made_anew = |line: &String| line.contains("made anew");
    venue.part(Part::Adapter).signal(Signal::TERM);
    assert!(venue.part(Part::Adapter).wait_for_end().success());
    copy_store(&venue);
    venue.start_adapter();
    let lines = venue.said_at_start();
    assert!(!lines.iter().any(made_anew), "one that was closed is whole: {lines:?}");

    let cut_off = |venue: &Venue, bytes: u64| {
        let file = fs::OpenOptions::new().write(true).open(store(venue)).expect("it is there");
        file.set_len(bytes).expect("it is ours");
    };
    // As it is when a start has ended by what it read, and the one behind it, too.
    let died = |venue: &Venue| {
        fs::write(store(venue).with_file_name("opening"), "..").expect("it is ours");
    };
    let damages: [(Damage<'_>, &str); 5] = [
        (&died, "is damaged"),
        (&copy_store, "is a copy"),
        (&|venue| cut_off(venue, 8192), "MDB_"),
        (&|venue| cut_off(venue, 100), "MDB_INVALID"),
        (&|venue| fs::write(store(venue), [7; 1 << 16]).expect("it is ours"), "MDB_INVALID"),
    ];
    for (damage, why) in damages {
        trade(&venue, 1);
        venue.kill9(Part::Adapter);
        damage(&venue);
        venue.start_adapter();
        let told = |line: &str| line.contains("made anew") && line.contains(why);
        venue.part(Part::Adapter).wait_for(0, why, told);
        assert_eq!(Past::of_rest(&mut venue.a()), Past::of_log(venue.data()), "{why}");
    }
}

/// Does something to the pages of a closed history that hold A's trades.
fn damage_own_trades(venue: &Venue, damage: impl Fn(&mut [u8])) {
    // An own trade as it is stored: of an order of no list, at the first price.
    let mut of_trade = (-1i64).to_le_bytes().to_vec();
    of_trade
        .extend(units("30000.50000000").to_le_bytes().first_chunk::<8>().expect("it is longer"));
    let mut bytes = fs::read(store(venue)).expect("it is there");
    // What lies in front of that is of no use to a page, and may be of another.
    let rows_from = |page: &[u8]| usize::from(u16::from_le_bytes([page[14], page[15]]));
    let holds_trade = |page: &[u8]| {
        let rows = page.get(rows_from(page)..).unwrap_or_default();
        rows.windows(16).any(|window| window == of_trade)
    };
    let damaged = bytes.chunks_mut(4096).filter(|page| holds_trade(page));
    assert!(damaged.map(damage).count() > 0, "nothing is damaged");
    fs::write(store(venue), bytes).expect("it is ours");
}

/// A start reads what is open and no more, so it does not come upon every damage: a request does.
#[test]
fn damage_that_is_found_late_is_told_and_the_next_start_makes_the_history_anew() {
    let mut venue = Venue::separate(&UNLIMITED);
    trade(&venue, 3);
    venue.part(Part::Adapter).signal(Signal::TERM);
    assert!(venue.part(Part::Adapter).wait_for_end().success());
    damage_own_trades(&venue, |page| page.fill(0));
    venue.start_adapter();
    let told =
        |lines: Vec<String>, what: &str| lines.iter().filter(|line| line.contains(what)).count();
    assert_eq!(told(venue.said_at_start(), "made anew"), 0);
    for _ in 0..2 {
        let trades = venue.a().call("GET", "/api/v3/myTrades", "symbol=BTCUSDT");
        assert_eq!(trades.error().0, 500);
    }
    let of_requests = "requests for what is damaged fail";
    assert!(eventually(|| told(venue.part(Part::Adapter).lines(), of_requests) == 1));
    venue.kill9(Part::Adapter);
    venue.start_adapter();
    assert_eq!(told(venue.said_at_start(), "is damaged"), 1);
    assert_eq!(Past::of_rest(&mut venue.a()), Past::of_log(venue.data()));
}

/// The database follows what its pages say, and does not see all that cannot be.
#[test]
fn a_history_that_ends_the_adapter_which_reads_it_is_made_anew() {
    let mut venue = Venue::up(&UNLIMITED);
    trade(&venue, 3);
    assert!(venue.stop_up(Signal::TERM).success());
    // One bit of each row's head: it would have many values, which no table here has.
    damage_own_trades(&venue, |page| {
        let number =
            |page: &[u8], at: usize| usize::from(page[at]) | usize::from(page[at + 1]) << 8;
        for row in (16..number(page, 12)).step_by(2) {
            let flags = number(page, row) + 4;
            page[flags] |= 4;
        }
    });
    venue.start_up();
    let printed = venue.supervisor().lines().len();
    let read = |venue: &Venue| venue.a().send("GET", "/api/v3/myTrades", "symbol=BTCUSDT");
    assert!(read(&venue).is_err(), "nothing has ended the adapter");
    venue.supervisor().wait_for(printed, "a history made anew", |line| {
        line.contains("made anew from the log's beginning") && line.contains("is damaged")
    });
    assert!(eventually(|| read(&venue).is_ok_and(|reply| reply.status == 200)));
    assert_eq!(Past::of_rest(&mut venue.a()), Past::of_log(venue.data()));
    // Who is killed has nothing damaged.
    let printed = venue.supervisor().lines().len();
    venue.kill9(Part::Adapter);
    venue.supervisor().wait_for(printed, "the adapter's return", |line| line.contains("is back"));
    let lines = venue.supervisor().lines().split_off(printed);
    assert!(!lines.iter().any(|line| line.contains("anew")), "{lines:?}");
}

/// A lease holds the log, and nobody comes to end that of an instance that never served.
#[test]
fn an_adapter_that_cannot_listen_leaves_nothing_behind() {
    let venue = Venue::up(&[]);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address").to_string();
    let data = venue.data().to_str().expect("a plain name");
    let second = ["adapter", "--data", data, "--http", &address];
    let mut second = Process::start(&[&second[..], &["--set", "adapter.instance=second"]].concat());
    assert_eq!(second.wait_for_end().code(), Some(1));
    assert!(second.lines().iter().any(|line| line.contains(&address)), "{:?}", second.lines());
    for made in ["leases/history-second.lease", "history/second"] {
        assert!(!venue.data().join(made).exists(), "{made}");
    }
}
