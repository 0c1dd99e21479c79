//! Nothing acknowledged is ever lost: orders are placed, filled and cancelled over REST while the
//! engine, or both processes, are killed at random moments. After each restart every order, the book
//! and every balance are exactly what the acknowledged replies add up to; a request without an
//! answer happened wholly or not at all.
//!
//! There are 100 kills in all, and `TOUCHLINE_CRASH_SEED` repeats a run's choices. Two thousand, in some
//! minutes:
//!
//! `TOUCHLINE_CRASH_ROUNDS=2000 cargo test --release --test system crash`

use super::book_model::{Book, Kind, Order, Placement, Side};
use super::http::Response;
use super::json::Json;
use super::process::Process;
use super::random::Random;
use super::trader::{Balances, Trader, levels};
use super::units::{WHOLE, decimal, units};
use super::venue::{Part, UNLIMITED, Venue, borrowed};
use crate::patience::AtEnd;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use std::{env, thread};

const PATH: &str = "/api/v3/order";

/// Open orders per symbol above which the load cancels: below the venue's limit of 200 an account.
const MANY_OPEN: usize = 60;

/// How a symbol is traded: middle price, step between prices, step between quantities, in 10⁻⁸.
struct Market {
    symbol: &'static str,
    base: &'static str,
    quote: &'static str,
    middle: i128,
    price_step: i128,
    quantity_step: i128,
}

const MARKETS: [Market; 3] = [
    Market {
        symbol: "BTCUSDT",
        base: "BTC",
        quote: "USDT",
        middle: 20_000 * WHOLE,
        price_step: 1_000_000,
        quantity_step: 123_000,
    },
    Market {
        symbol: "ETHUSDT",
        base: "ETH",
        quote: "USDT",
        middle: 1_500 * WHOLE,
        price_step: 1_000_000,
        quantity_step: 1_230_000,
    },
    Market {
        symbol: "ETHBTC",
        base: "ETH",
        quote: "BTC",
        middle: 7_012_300,
        price_step: 100,
        quantity_step: 1_230_000,
    },
];

#[derive(Clone, Debug)]
enum Operation {
    Place(Placement),
    Cancel { account: usize, id: i128, by_name: bool },
}

/// What tells the load threads how far the round is.
#[derive(Default)]
struct Round {
    /// The kill is about to happen: from now on a request may stay without an answer.
    ending: AtomicBool,
    /// It has happened: do not start another request.
    killed: AtomicBool,
}

/// The trading on one symbol: one request at a time, so that its model is exact.
struct Load {
    market: &'static Market,
    book: Book,
    traders: [Trader; 2],
    random: Random,
    names: u64,
    touched: BTreeSet<i128>,
    unknown: Option<Operation>,
    /// Requests without an answer that turned out to have happened, or not.
    resolved: [u64; 2],
}

impl Load {
    fn new(venue: &Venue, market: &'static Market, seed: u64) -> Self {
        Self {
            market,
            book: Book::new(market.base, market.quote),
            traders: [venue.a(), venue.b()],
            random: Random::new(seed),
            names: 0,
            touched: BTreeSet::new(),
            unknown: None,
            resolved: [0; 2],
        }
    }

    fn run(&mut self, round: &Round, acknowledged: &mpsc::Sender<()>) {
        while !round.killed.load(Ordering::SeqCst) {
            let operation = self.next_operation();
            match self.send(&operation) {
                Ok(response) if !response.is_unknown() => {
                    self.acknowledge(operation, &response.ok());
                    // The receiver is gone once it has seen enough.
                    let _ = acknowledged.send(());
                }
                outcome => {
                    let expected = round.ending.load(Ordering::SeqCst);
                    assert!(expected, "{operation:?} got {outcome:?} from a service that is up");
                    self.unknown = Some(operation);
                    return;
                }
            }
        }
    }

    fn next_operation(&mut self) -> Operation {
        let open: Vec<_> = self.book.open().collect();
        let choice = self.random.below(10);
        if open.len() > MANY_OPEN || (choice < 2 && !open.is_empty()) {
            let id = open[self.random.below(open.len() as u64) as usize];
            let account = self.book.orders[&id].placed.account;
            return Operation::Cancel { account, id, by_name: self.random.below(2) == 0 };
        }
        let kind = match choice {
            2 => Kind::Market,
            3 => Kind::FillOrKill,
            4 => Kind::ImmediateOrCancel,
            _ => Kind::Limit,
        };
        let side = if self.random.below(2) == 0 { Side::Buy } else { Side::Sell };
        let offset = i128::from(self.random.below(21)) - 10;
        let price = self.market.middle + offset * self.market.price_step;
        self.names += 1;
        Operation::Place(Placement {
            account: self.random.below(2) as usize,
            client_id: format!("{}-{}", self.market.symbol, self.names),
            side,
            kind,
            price: if kind == Kind::Market { 0 } else { price },
            quantity: i128::from(1 + self.random.below(40)) * self.market.quantity_step,
        })
    }

    fn send(&mut self, operation: &Operation) -> std::io::Result<Response> {
        let symbol = self.market.symbol;
        match operation {
            Operation::Place(placed) => {
                let parameters = parameters(symbol, placed);
                self.traders[placed.account].send("POST", PATH, &parameters)
            }
            Operation::Cancel { account, id, by_name } => {
                let name = &self.book.orders[id].placed.client_id;
                let which = if *by_name {
                    format!("origClientOrderId={name}")
                } else {
                    format!("orderId={id}")
                };
                let parameters = format!("symbol={symbol}&{which}&{PATIENT}");
                self.traders[*account].send("DELETE", PATH, &parameters)
            }
        }
    }

    /// Applies what was acknowledged and checks the reply against the model.
    fn acknowledge(&mut self, operation: Operation, reply: &Json) {
        match operation {
            Operation::Place(placed) => {
                let account = placed.account;
                let (id, fills) = self.book.place(placed);
                let order = self.book.orders.get_mut(&id).expect("it was placed");
                order.time = Some(reply.integer_at("transactTime"));
                assert_order(id, order, reply);
                let got: Vec<_> = reply.at("fills").items().iter().map(fill).collect();
                let asset = if order.placed.side == Side::Buy {
                    self.market.base
                } else {
                    self.market.quote
                };
                let expected: Vec<_> = fills
                    .iter()
                    .map(|fill| (fill.price, fill.quantity, fill.commission, asset.to_owned()))
                    .collect();
                assert_eq!(got, expected, "fills of {id} of account {account}");
                self.touched.insert(id);
            }
            Operation::Cancel { id, .. } => {
                self.book.cancel(id);
                self.touched.insert(id);
                let order = &self.book.orders[&id];
                assert_eq!(reply.text_at("status"), "CANCELED");
                assert_eq!(reply.integer_at("orderId"), id);
                assert_eq!(units(reply.text_at("executedQty")), order.executed);
                assert_eq!(units(reply.text_at("cummulativeQuoteQty")), order.quote);
            }
        }
    }

    /// Finds out whether the request without an answer happened, and applies it if it did.
    fn resolve(&mut self) {
        let symbol = self.market.symbol;
        let Some(operation) = self.unknown.take() else { return };
        let happened = match &operation {
            Operation::Place(placed) => {
                let name = &placed.client_id;
                let query = format!("symbol={symbol}&origClientOrderId={name}");
                let response = self.traders[placed.account].call("GET", PATH, &query);
                if response.status != 200 {
                    assert_eq!(response.error().1, -2013, "{}", response.body);
                }
                response.status == 200
            }
            Operation::Cancel { account, id, .. } => {
                self.traders[*account].order(symbol, *id).text_at("status") == "CANCELED"
            }
        };
        self.resolved[usize::from(!happened)] += 1;
        if happened {
            let id = match operation {
                Operation::Place(placed) => self.book.place(placed).0,
                Operation::Cancel { id, .. } => {
                    self.book.cancel(id);
                    id
                }
            };
            self.touched.insert(id);
        }
    }

    /// Compares the book, and every order touched since the last time or still open, with the model.
    fn verify(&mut self) {
        let target = format!("/api/v3/depth?symbol={}&limit=1000", self.market.symbol);
        let depth = self.traders[0].http.get(&target).ok();
        assert_eq!(levels(&depth, "bids"), self.book.depth(Side::Buy), "{}", self.market.symbol);
        assert_eq!(levels(&depth, "asks"), self.book.depth(Side::Sell), "{}", self.market.symbol);
        let mut ids = std::mem::take(&mut self.touched);
        ids.extend(self.book.open());
        self.verify_orders(ids);
    }

    fn verify_orders(&mut self, ids: impl IntoIterator<Item = i128>) {
        for id in ids {
            let order = &self.book.orders[&id];
            let found = self.traders[order.placed.account].order(self.market.symbol, id);
            assert_order(id, order, &found);
            assert_eq!(found.integer_at("orderListId"), -1);
            if let Some(time) = order.time {
                assert_eq!(found.integer_at("time"), time, "placement time of {id}");
            }
        }
    }
}

/// How long a request of the load may be under way: a machine that is busy with other things makes it
/// slow, not lost. The longest that the service takes.
const PATIENT: &str = "recvWindow=60000";

fn parameters(symbol: &str, placed: &Placement) -> String {
    let (kind, time_in_force) = placed.kind.names();
    let mut text = format!(
        "symbol={symbol}&side={}&type={kind}&quantity={}&newClientOrderId={}&{PATIENT}",
        placed.side.name(),
        decimal(placed.quantity),
        placed.client_id
    );
    if placed.kind != Kind::Market {
        text += &format!("&timeInForce={time_in_force}&price={}", decimal(placed.price));
    }
    text
}

fn fill(entry: &Json) -> (i128, i128, i128, String) {
    (
        units(entry.text_at("price")),
        units(entry.text_at("qty")),
        units(entry.text_at("commission")),
        entry.text_at("commissionAsset").to_owned(),
    )
}

/// Compares the fields that a placement's reply and a query have in common.
fn assert_order(id: i128, order: &Order, found: &Json) {
    let (kind, time_in_force) = order.placed.kind.names();
    let expected = [
        ("clientOrderId", order.placed.client_id.clone()),
        ("price", decimal(order.placed.price)),
        ("origQty", decimal(order.placed.quantity)),
        ("executedQty", decimal(order.executed)),
        ("cummulativeQuoteQty", decimal(order.quote)),
        ("status", order.status.to_owned()),
        ("timeInForce", time_in_force.to_owned()),
        ("type", kind.to_owned()),
        ("side", order.placed.side.name().to_owned()),
    ];
    assert_eq!(found.integer_at("orderId"), id, "{found:?}");
    for (key, value) in expected {
        assert_eq!(found.text_at(key), value, "{key} of order {id}: {found:?}");
    }
}

/// A venue under load, and what it had at first.
struct Crash {
    venue: Venue,
    loads: Vec<Load>,
    random: Random,
    initial: Balances,
    acknowledged: usize,
}

impl Crash {
    fn new(venue: Venue, seed: u64) -> Self {
        println!("seed {seed}: repeat with TOUCHLINE_CRASH_SEED={seed}");
        let mut random = Random::new(seed);
        let loads = MARKETS.iter().map(|market| Load::new(&venue, market, random.bits())).collect();
        let initial = venue.a().balances();
        assert_eq!(initial, venue.b().balances());
        Self { venue, loads, random, initial, acknowledged: 0 }
    }

    /// Trades, kills at a random moment with requests under way, and returns.
    fn trade_and_kill(&mut self, kill: impl FnOnce(&mut Venue, &mut Random)) {
        let round = Round::default();
        let wanted = 20 + self.random.below(150) as usize;
        let pause = Duration::from_micros(self.random.below(3_000));
        let (sender, receiver) = mpsc::channel();
        thread::scope(|scope| {
            // Also where the kill fails: or the load would go on, and whoever waits for it.
            let _end = AtEnd(|| {
                round.ending.store(true, Ordering::SeqCst);
                round.killed.store(true, Ordering::SeqCst);
            });
            for load in &mut self.loads {
                let (round, sender) = (&round, sender.clone());
                scope.spawn(move || load.run(round, &sender));
            }
            drop(sender);
            // Ends early only if every load thread has failed; the scope then fails the test.
            self.acknowledged += receiver.iter().take(wanted).count();
            round.ending.store(true, Ordering::SeqCst);
            thread::sleep(pause);
            kill(&mut self.venue, &mut self.random);
        });
    }

    /// Waits until all is up again, settles the open questions and compares everything.
    fn settle(&mut self) {
        self.venue.wait_until_engine_answers();
        for load in &mut self.loads {
            load.traders = [self.venue.a(), self.venue.b()];
            load.resolve();
        }
        for load in &mut self.loads {
            load.verify();
        }
        self.verify_money();
    }

    fn verify_money(&mut self) {
        let [a, b] = [self.venue.a().balances(), self.venue.b().balances()];
        for asset in ["BTC", "ETH", "USDT"] {
            let initial = self.initial[asset];
            for (account, found) in [&a, &b].into_iter().enumerate() {
                let mut expected = initial;
                for load in &self.loads {
                    let changes = &load.book.ledger.changes[account];
                    let (free, locked) = changes.get(asset).copied().unwrap_or_default();
                    expected = (expected.0 + free, expected.1 + locked);
                }
                assert_eq!(found[asset], expected, "{asset} of account {account}");
            }
            let commissions: i128 =
                self.loads.iter().filter_map(|load| load.book.ledger.commissions.get(asset)).sum();
            let total = a[asset].0 + a[asset].1 + b[asset].0 + b[asset].1 + commissions;
            assert_eq!(total, 2 * (initial.0 + initial.1), "{asset} is created or destroyed");
        }
    }

    /// Compares every order of the whole run.
    fn finish(mut self, rounds: u64) {
        for load in &mut self.loads {
            load.verify_orders(load.book.orders.keys().copied().collect::<Vec<_>>());
        }
        let orders: usize = self.loads.iter().map(|load| load.book.orders.len()).sum();
        let [happened, not] = self
            .loads
            .iter()
            .fold([0, 0], |sum, load| [sum[0] + load.resolved[0], sum[1] + load.resolved[1]]);
        println!(
            "{rounds} kills; at least {} requests acknowledged, {orders} orders checked; without an \
             answer: {happened} had happened, {not} had not",
            self.acknowledged
        );
        assert!(
            // Those that had not happened may have been sent behind the kill.
            rounds < 10 || happened > 0,
            "no request was under way at any kill: nothing was tested"
        );
    }
}

fn rounds() -> u64 {
    let text = env::var("TOUCHLINE_CRASH_ROUNDS");
    text.map_or(100, |text| text.parse().expect("TOUCHLINE_CRASH_ROUNDS is a number"))
}

fn seed() -> u64 {
    let text = env::var("TOUCHLINE_CRASH_SEED");
    text.map_or_else(|_| Random::fresh_seed(), |text| text.parse().expect("a seed is a number"))
}

fn options() -> Vec<&'static str> {
    UNLIMITED.into_iter().chain(["--set", "adapter.deadline_ms=20000"]).collect()
}

/// Kills the engine again while it recovers, now and then, and starts it for good.
fn restart_engine(crash: &mut Crash) {
    if crash.random.below(4) == 0 {
        let arguments = crash.venue.arguments("engine", false);
        let mut again = Process::start(&borrowed(&arguments));
        thread::sleep(Duration::from_micros(crash.random.below(40_000)));
        again.kill();
    }
    crash.venue.start_engine();
}

/// Kills both processes, in either order.
fn kill_both(venue: &mut Venue, random: &mut Random) {
    let mut parts = [Part::Engine, Part::Adapter];
    if random.below(2) == 0 {
        parts.reverse();
    }
    parts.into_iter().for_each(|part| venue.kill9(part));
}

#[test]
fn a_killed_engine_loses_nothing_under_its_supervisor() {
    let mut crash = Crash::new(Venue::up(&options()), seed());
    // The supervisor's back-off makes these rounds slow.
    let rounds = rounds() / 5;
    for _ in 0..rounds {
        crash.trade_and_kill(|venue, _| venue.kill9(Part::Engine));
        crash.settle();
    }
    crash.finish(rounds);
}

#[test]
fn a_killed_engine_loses_nothing_beside_a_living_adapter() {
    let mut crash = Crash::new(Venue::separate(&options()), seed());
    let rounds = rounds() * 3 / 10;
    for _ in 0..rounds {
        crash.trade_and_kill(|venue, _| venue.kill9(Part::Engine));
        restart_engine(&mut crash);
        crash.settle();
    }
    crash.finish(rounds);
}

#[test]
fn both_processes_killed_lose_nothing() {
    let mut crash = Crash::new(Venue::separate(&options()), seed());
    let rounds = rounds() * 3 / 10;
    for _ in 0..rounds {
        crash.trade_and_kill(kill_both);
        restart_engine(&mut crash);
        crash.venue.start_adapter();
        crash.settle();
    }
    crash.finish(rounds);
}

#[test]
fn what_rest_acknowledged_survives_the_loss_of_all_memory() {
    let mut crash = Crash::new(Venue::separate(&options()), seed());
    let rounds = rounds() / 5;
    for _ in 0..rounds {
        crash.trade_and_kill(kill_both);
        crash.venue.lose_live_window();
        restart_engine(&mut crash);
        crash.venue.start_adapter();
        crash.settle();
    }
    crash.finish(rounds);
}
