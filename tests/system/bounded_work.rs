//! Work of many transactions outlives the engine that began it: one order that takes a hundred thousand
//! others is killed in the middle, and again, and the next engines do the rest before anything else.
//! The log decides, not the time that anything takes; only a kill that came when the work was done is
//! tried again.

use super::audit::{Acknowledged, Audit};
use super::binary::{KEY_A, KEY_B, options, socket, whole};
use super::http::Key;
use super::process::{Process, WATCHDOG};
use super::random::Random;
use super::venue::{Part, Venue, borrowed};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::fs;
use std::time::Instant;
use tempfile::TempDir;
use touchline_protocol::client::{
    Acknowledgement, Client, ClientCommand, ClientOptions, SendError,
};
use touchline_protocol::credentials::MasterKey;
use touchline_protocol::log::reader::{Follow, LogReader};
use touchline_protocol::message::command::NewOrder;
use touchline_protocol::message::decode::{Command, Event};
use touchline_protocol::message::enums::{OrderStatus, OrderType, Side, TimeInForce};
use touchline_protocol::message::event::ENVELOPE_TERMINAL;
use touchline_protocol::units::{KeyId, OrderId, Position, SymbolId, TradeId};

/// Resting orders that one order takes.
const RESTING: i64 = 100_000;
/// Makers per transaction: few, so that there are many transactions to be killed in.
const MAX_STEPS: u64 = 4;
/// Tries of a kill in the middle.
const TRIES: u32 = 5;

/// One symbol without filters, and two rich accounts.
const DEFINITION: &str = r#"
[limits]
accounts = 4
open_orders = 131072
price_levels = 4096
max_steps = 4
orders_per_interval_0 = 0
orders_per_interval_1 = 0

[[assets]]
name = "BASE"

[[assets]]
name = "QUOTE"

[[symbols]]
name = "BASEQUOTE"
base = "BASE"
quote = "QUOTE"

[[accounts]]
name = "A"
maker_rate = "0.001"
taker_rate = "0.002"
keys = 1
balances = { BASE = "10000000", QUOTE = "1000000000" }

[[accounts]]
name = "B"
maker_rate = "0.003"
taker_rate = "0.004"
keys = 1
balances = { BASE = "10000000", QUOTE = "1000000000" }
"#;

/// An engine of a venue of its own.
struct Stage {
    venue: Venue,
    random: Random,
    _configuration: TempDir,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let path = folder.path().join("venue.toml");
        fs::write(&path, DEFINITION).expect("the folder is ours");
        let path = path.to_str().expect("temporary folders have plain names");
        let mut venue = Venue::up(&["--config", path]);
        assert!(venue.stop_up(Signal::TERM).success());
        venue.start_engine();
        let seed = Random::fresh_seed();
        println!("seed {seed}");
        Self { venue, random: Random::new(seed), _configuration: folder }
    }

    /// A trader's session with the key of this number; its answers say what a crash of the process does
    /// not take back.
    fn trader(&self, name: &str, key: u64) -> Trader {
        let path = self.venue.data().join("master.key");
        let master = MasterKey::load(&path).expect("a defined venue has its key");
        let secret = Key { api: master.api_key(KeyId(key)), secret: master.secret(KeyId(key)) };
        let options = ClientOptions {
            acknowledgement: Acknowledgement::Appended,
            ..options(&self.venue, name, Some((key, &secret)))
        };
        assert_eq!(options.socket, socket(&self.venue));
        let client = Client::connect(&options).expect("an honest client is let in");
        Trader {
            client,
            key: KeyId(key),
            answers: Vec::new(),
            trades: BTreeSet::new(),
            orders: Vec::new(),
        }
    }

    /// Kills the engine, and sometimes the next one too while it recovers; starts it for good.
    fn crash(&mut self) {
        self.venue.kill9(Part::Engine);
        if self.random.below(2) == 0 {
            let arguments = self.venue.arguments("engine", false);
            let mut again = Process::start(&borrowed(&arguments));
            again.wait_for(0, "any line", |_| true);
            again.kill();
        }
        self.venue.start_engine();
    }

    /// Ends the engine in good order and reads its log.
    fn audit(&mut self) -> Audit {
        self.venue.part(Part::Engine).signal(Signal::TERM);
        assert!(self.venue.part(Part::Engine).wait_for_end().success());
        Audit::of(self.venue.data())
    }
}

/// A client that keeps all answers.
struct Trader {
    client: Client,
    key: KeyId,
    answers: Vec<Acknowledged>,
    trades: BTreeSet<TradeId>,
    /// Those whose placement was answered.
    orders: Vec<OrderId>,
}

impl Trader {
    /// Sends without waiting for the answer, but for room.
    fn send<C: ClientCommand>(&mut self, mut command: C) {
        command.command_mut().key_id = self.key;
        let begin = Instant::now();
        loop {
            match self.client.sender().send(&mut command) {
                Ok(_) => return,
                Err(SendError::Full) => self.read(),
                Err(error) => panic!("{error}"),
            }
            assert!(begin.elapsed() < WATCHDOG, "the engine takes nothing");
        }
    }

    /// Takes what there is; what a dead engine has left is taken too.
    fn read(&mut self) {
        while let Ok(Some(reply)) = self.client.receiver().poll() {
            match reply.event.event().expect("a known event") {
                Event::Rejected(rejected) => panic!("{rejected:?}"),
                Event::Trade(trade) => _ = self.trades.insert(trade.trade_id),
                Event::OrderResult(result) => self.orders.push(result.order_id),
                _ => {}
            }
            if reply.envelope.flags & ENVELOPE_TERMINAL != 0 {
                let envelope = reply.envelope;
                let (session, sequence) = (envelope.session, envelope.sequence);
                let position = envelope.position;
                self.answers.push(Acknowledged { session, sequence, position });
            }
        }
    }

    /// Waits until everything that was sent is answered; gives the position of the last answer.
    fn settle(&mut self) -> Position {
        let begin = Instant::now();
        let last = self.client.sender().last_sequence();
        loop {
            self.read();
            if let Some(answer) = self.answers.last().filter(|answer| answer.sequence == last) {
                return answer.position;
            }
            assert!(begin.elapsed() < WATCHDOG, "{last:?} is not answered");
            self.client.receiver().wait(WATCHDOG);
        }
    }
}

fn limit(side: Side, price: i64, quantity: i64) -> NewOrder {
    NewOrder {
        symbol: SymbolId(0),
        side: side.to_wire(),
        order_type: OrderType::Limit.to_wire(),
        time_in_force: TimeInForce::Gtc.to_wire(),
        price: whole(price),
        quantity: whole(quantity),
        ..Default::default()
    }
}

/// Reads on until so many transactions of pending work were done, or the work was: how many were done.
fn watch(reader: &mut LogReader, parts: u64) -> u64 {
    let begin = Instant::now();
    let mut done = 0;
    while done < parts {
        assert!(begin.elapsed() < WATCHDOG, "no work is done");
        let Some(transaction) = reader.next().expect("a sound log") else { continue };
        let continues = |event| matches!(event, Ok(Event::OrderContinues(_)));
        done += u64::from(matches!(transaction.command(), Ok(Command::RunPending(_))));
        if done > 0 && !transaction.events().any(continues) {
            break;
        }
    }
    done
}

/// Places the makers, and gives a reader that stands behind them.
fn place_makers(stage: &Stage, maker: &mut Trader) -> LogReader {
    for n in 0..RESTING {
        maker.send(limit(Side::Sell, 1_000 + n * 387 % 1_000, 1));
    }
    let behind = maker.settle();
    let mut reader = LogReader::open(stage.venue.data(), Follow::Appended).expect("a log");
    reader.seek(behind);
    reader
}

/// Kills two engines in the middle of a sweep. False when a kill came too late: the work was done.
fn sweep_under_fire() -> bool {
    let mut stage = Stage::new();
    let mut maker = stage.trader("maker", KEY_A);
    let mut reader = place_makers(&stage, &mut maker);
    let mut taker = stage.trader("taker", KEY_B);
    taker.send(limit(Side::Buy, 3_000, RESTING + 5));
    watch(&mut reader, 1);
    // These wait behind it and are lost with their rings, unless the kill comes too late.
    taker.send(limit(Side::Buy, 10, 1));
    maker.send(limit(Side::Sell, 3_500, 1));
    for _ in 0..2 {
        let parts = 1 + stage.random.below(RESTING.cast_unsigned() / MAX_STEPS / 4);
        watch(&mut reader, parts);
        stage.crash();
        reader.attach().expect("the log goes on");
    }
    maker.read();
    taker.read();

    // The first who come to the engine that does the rest.
    let mut again = stage.trader("taker", KEY_B);
    again.send(limit(Side::Sell, 2_500, 7));
    again.settle();
    let mut other = stage.trader("other", KEY_A);
    other.send(limit(Side::Sell, 3_600, 1));
    other.settle();
    let audit = stage.audit();
    assert!(audit.core.pending_head().is_none());
    for trader in [&maker, &taker, &again, &other] {
        audit.has(&trader.answers);
        assert!(trader.trades.is_subset(&audit.trades), "a trade that was told is lost");
    }
    // The rest of five has met the sell that came behind the sweep.
    let aggressor = OrderId(RESTING.cast_unsigned() + 1);
    let result = audit.results[&aggressor];
    assert_eq!(result.executed_quantity, whole(RESTING));
    assert_eq!(result.status, OrderStatus::PartiallyFilled.to_wire());
    assert_eq!(audit.trades.len() as i64, RESTING + 1);
    assert_eq!(audit.results[&again.orders[0]].executed_quantity, whole(5));
    audit.workers.len() > 2
}

#[test]
fn a_sweep_that_is_killed_twice_is_finished_before_anything_else() {
    assert!((0..TRIES).any(|_| sweep_under_fire()), "each kill came too late");
}
