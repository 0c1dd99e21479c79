//! An engine that is killed in the middle of something, the clients that it leaves behind, and the reader
//! of its log by which a test knows how far it is. Called by [`super`].

use super::super::audit::{Acknowledged, Audit};
use super::super::binary::{options, socket, whole};
use super::super::http::Key;
use super::super::process::{Process, WATCHDOG, eventually};
use super::super::random::Random;
use super::super::venue::{Part, Venue, borrowed};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::fs;
use std::time::Instant;
use tempfile::TempDir;
use touchline_protocol::client::{
    Acknowledgement, Client, ClientCommand, ClientOptions, Endpoint, SendError,
};
use touchline_protocol::credentials::MasterKey;
use touchline_protocol::log::reader::{Follow, LogReader};
use touchline_protocol::message::command::NewOrder;
use touchline_protocol::message::decode::{Command, Event};
use touchline_protocol::message::enums::{OrderType, Side, TimeInForce};
use touchline_protocol::units::{KeyId, OrderId, Position, SymbolId, TradeId};

/// One symbol without filters, and two rich accounts. A transaction does as little as it can, so that
/// there are many to be killed in.
const DEFINITION: &str = r#"
[limits]
accounts = 4
open_orders = 131072
price_levels = 131072
max_steps = 1
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
order_types = ["LIMIT", "STOP_LOSS"]

[[accounts]]
name = "A"
maker_rate = "0.001"
taker_rate = "0.002"
keys = 1
balances = { BASE = "10000000", QUOTE = "10000000000" }

[[accounts]]
name = "B"
maker_rate = "0.003"
taker_rate = "0.004"
keys = 1
balances = { BASE = "10000000", QUOTE = "10000000000" }
"#;

/// An engine of a venue of its own.
pub(crate) struct Stage {
    venue: Venue,
    random: Random,
    _configuration: TempDir,
}

impl Stage {
    pub(crate) fn new() -> Self {
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
    pub(crate) fn trader(&self, name: &str, key: u64) -> Trader {
        let path = self.venue.data().join("master.key");
        let master = MasterKey::load(&path).expect("a defined venue has its key");
        let secret = Key { api: master.api_key(KeyId(key)), secret: master.secret(KeyId(key)) };
        let options = ClientOptions {
            acknowledgement: Acknowledgement::Appended,
            ..options(&self.venue, name, Some((key, &secret)))
        };
        assert_eq!(options.endpoint, Endpoint::SharedMemory(socket(&self.venue)));
        let client = Client::connect(&options).expect("an honest client is let in");
        Trader {
            client,
            key: KeyId(key),
            answers: Vec::new(),
            trades: BTreeSet::new(),
            canceled: BTreeSet::new(),
            orders: Vec::new(),
        }
    }

    /// A reader of the log that stands at this position.
    pub(crate) fn reader(&self, position: Position) -> LogReader {
        let mut reader = LogReader::open(self.venue.data(), Follow::Appended).expect("a log");
        reader.seek(position);
        reader
    }

    /// Kills two engines in the middle of pending work of at least so many transactions, and starts the
    /// next; `is_last` knows the work's end.
    pub(crate) fn crash_twice(
        &mut self,
        reader: &mut LogReader,
        parts: u64,
        is_last: impl Fn(&Event<'_>) -> bool,
    ) {
        for _ in 0..2 {
            watch(reader, 1 + self.random.below(parts / 8), &is_last);
            self.crash(reader);
        }
        self.venue.wait_for_engine();
    }

    /// Kills the engine, and sometimes the next one too while it recovers. Back as soon as the reader has
    /// found the one that is started for good, which may not be ready by then.
    fn crash(&mut self, reader: &mut LogReader) {
        self.venue.kill9(Part::Engine);
        if self.random.below(2) == 0 {
            let arguments = self.venue.arguments("engine", false);
            let mut again = Process::start(&borrowed(&arguments));
            again.wait_for(0, "any line", |_| true);
            again.kill();
        }
        reader.attach().expect("the log goes on");
        self.venue.begin_engine();
        let is_found = eventually(|| reader.attach().expect("the log goes on"));
        assert!(is_found, "the next engine shows no log");
    }

    /// Ends the engine in good order and reads its log.
    pub(crate) fn audit(&mut self) -> Audit {
        self.venue.part(Part::Engine).signal(Signal::TERM);
        assert!(self.venue.part(Part::Engine).wait_for_end().success());
        Audit::of(self.venue.data())
    }
}

/// A client that keeps all answers.
pub(crate) struct Trader {
    client: Client,
    key: KeyId,
    pub(crate) answers: Vec<Acknowledged>,
    pub(crate) trades: BTreeSet<TradeId>,
    pub(crate) canceled: BTreeSet<OrderId>,
    /// Those whose placement was answered.
    pub(crate) orders: Vec<OrderId>,
}

impl Trader {
    /// Sends without waiting for the answer, but for room.
    pub(crate) fn send<C: ClientCommand>(&mut self, mut command: C) {
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
    pub(crate) fn read(&mut self) {
        while let Ok(Some(reply)) = self.client.receiver().poll() {
            match reply.event.event().expect("a known event") {
                Event::Rejected(rejected) => panic!("{rejected:?}"),
                Event::Trade(trade) => _ = self.trades.insert(trade.trade_id),
                Event::OrderCanceled(canceled) => _ = self.canceled.insert(canceled.order_id),
                Event::OrderResult(result) if !reply.is_unsolicited() => {
                    self.orders.push(result.order_id);
                }
                _ => {}
            }
            if reply.is_terminal() {
                let envelope = reply.envelope;
                let (session, sequence) = (envelope.session, envelope.sequence);
                let position = envelope.position;
                self.answers.push(Acknowledged { session, sequence, position });
            }
        }
    }

    /// Waits until everything that was sent is answered; gives the position of the last answer.
    pub(crate) fn settle(&mut self) -> Position {
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

pub(crate) fn limit(side: Side, price: i64, quantity: i64) -> NewOrder {
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

/// Reads on until so many transactions of pending work were done, or the event that `is_last` likes has
/// happened: how many were done.
pub(crate) fn watch(
    reader: &mut LogReader,
    parts: u64,
    is_last: impl Fn(&Event<'_>) -> bool,
) -> u64 {
    let begin = Instant::now();
    let mut done = 0;
    while done < parts {
        assert!(begin.elapsed() < WATCHDOG, "no work is done");
        let Some(transaction) = reader.next().expect("a sound log") else { continue };
        done += u64::from(matches!(transaction.command(), Ok(Command::RunPending(_))));
        if transaction.events().any(|event| is_last(&event.expect("a known event"))) {
            break;
        }
    }
    done
}
