//! The link against a made-up engine.

use super::wire::{Halves, Replies};
use super::*;

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use touchline_protocol::client::{ConnectError, ReceiveError, Reply};
use touchline_protocol::message::command::{CancelAll, CancelOrderNamed, NewOrder};
use touchline_protocol::message::decode::{ENVELOPED_BYTES_MAX, Event, disclose, enclose};
use touchline_protocol::message::event::{
    ENVELOPE_TERMINAL, Envelope, Gap, MassCanceled, OrderAccepted, OrderCanceled, OrderListChanged,
    OrderResult, Rejected, Trade,
};
use touchline_protocol::units::TradeId;

/// Fail-safe of every blocking step: long enough never to be met by a working link.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the fake engine does with a connection.
enum Move {
    Reply(Box<Reply>),
    HangUp,
}

/// The engine's end of one connection.
struct EngineEnd {
    commands: Receiver<OrderCommand>,
    moves: Sender<Move>,
}

impl EngineEnd {
    fn correlation(&self) -> u64 {
        self.commands.recv_timeout(PATIENCE).unwrap().header().correlation
    }

    fn reply(&self, correlation: u64, flags: u8, event: Event<'_>) {
        let envelope = Envelope {
            correlation,
            position: Position(640),
            time_ns: 77,
            flags,
            ..Default::default()
        };
        let mut bytes = [0; ENVELOPED_BYTES_MAX];
        let length = enclose(&envelope, event.bytes(), &mut bytes).unwrap();
        let (envelope, event) = disclose(&bytes[..length]).unwrap();
        self.moves.send(Move::Reply(Box::new(Reply { envelope, event }))).unwrap();
    }
}

/// Connects whenever the test has offered a connection.
struct FakeWire(Mutex<Receiver<(FakeCommands, FakeReplies)>>);

struct FakeCommands {
    commands: Sender<OrderCommand>,
    refusal: Option<SendError>,
}

struct FakeReplies(Receiver<Move>, Option<Move>);

impl Wire<Orders> for FakeWire {
    fn connect(&self) -> Result<Halves<Orders>, ConnectError> {
        match self.0.lock().unwrap().try_recv() {
            Ok((commands, replies)) => Ok((Box::new(commands), Box::new(replies))),
            Err(_) => Err(ConnectError::Unexpected("silence")),
        }
    }
}

impl Commands<Orders> for FakeCommands {
    fn send(&mut self, command: &mut OrderCommand) -> Result<(), SendError> {
        match self.refusal {
            Some(refusal) => Err(refusal),
            None => self.commands.send(*command).map_err(|_| SendError::Disconnected),
        }
    }
}

impl Replies for FakeReplies {
    fn poll(&mut self) -> Result<Option<Reply>, ReceiveError> {
        match self.1.take().or_else(|| self.0.try_recv().ok()) {
            Some(Move::Reply(reply)) => Ok(Some(*reply)),
            Some(Move::HangUp) => Err(ReceiveError::Disconnected),
            None => Ok(None),
        }
    }

    fn wait(&mut self, limit: Duration) {
        self.1 = match self.0.recv_timeout(limit) {
            Ok(next) => Some(next),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Move::HangUp),
        };
    }
}

/// A link and the place where connections to it are offered.
struct Site {
    link: Link,
    offers: Sender<(FakeCommands, FakeReplies)>,
}

impl Site {
    fn start() -> Self {
        let (offers, taken) = mpsc::channel();
        Self { link: Link::start_on(FakeWire(Mutex::new(taken))).unwrap(), offers }
    }

    /// Offers a connection and waits until the link has it.
    fn connect(&self, refusal: Option<SendError>) -> EngineEnd {
        let (commands, commands_end) = mpsc::channel();
        let (moves, moves_end) = mpsc::channel();
        let offer = (FakeCommands { commands, refusal }, FakeReplies(moves_end, None));
        self.offers.send(offer).unwrap();
        self.until_connected(true);
        EngineEnd { commands: commands_end, moves }
    }

    fn until_connected(&self, connected: bool) {
        let begin = Instant::now();
        while self.link.is_connected() != connected {
            assert!(begin.elapsed() < PATIENCE, "the link never becomes connected: {connected}");
            std_thread::yield_now();
        }
    }

    fn place(&self, deadline: Instant) -> Receiver<Outcome> {
        let (sender, outcome) = mpsc::channel();
        let done = Box::new(move |outcome| sender.send(outcome).unwrap());
        self.link.submit(OrderCommand::Place(NewOrder::default()), deadline, done);
        outcome
    }
}

fn far() -> Instant {
    Instant::now() + Duration::from_secs(3600)
}

#[test]
fn a_decision_comes_with_its_own_fills() {
    let site = Site::start();
    let engine = site.connect(None);
    let (first, second) = (site.place(far()), site.place(far()));
    let (one, two) = (engine.correlation(), engine.correlation());
    assert_ne!(one, two);
    let trade = |id| Trade { trade_id: TradeId(id), ..Default::default() };
    let result = OrderResult { executed_quantity: 5, ..Default::default() };
    engine.reply(two, 0, Event::OrderAccepted(&OrderAccepted::default()));
    engine.reply(one, 0, Event::Trade(&trade(1)));
    engine.reply(two, 0, Event::Trade(&trade(2)));
    engine.reply(0, 0, Event::Gap(&Gap::default()));
    engine.reply(one, 0, Event::Trade(&trade(3)));
    engine.reply(one, ENVELOPE_TERMINAL, Event::OrderResult(&result));
    let rejected = Rejected { reason: 36, ..Default::default() };
    engine.reply(two, ENVELOPE_TERMINAL, Event::Rejected(&rejected));
    let decided = |trades, terminal| {
        let told = Told { trades, ..Told::default() };
        Outcome::from(Decision { position: Position(640), time_ns: 77, told, terminal })
    };
    assert_eq!(
        first.recv_timeout(PATIENCE).unwrap(),
        decided(vec![trade(1), trade(3)], Terminal::Placed(result))
    );
    assert_eq!(
        second.recv_timeout(PATIENCE).unwrap(),
        decided(vec![trade(2)], Terminal::Rejected(rejected))
    );
}

#[test]
fn a_decision_on_a_cancel_comes_with_what_was_ended() {
    let site = Site::start();
    let engine = site.connect(None);
    let (sender, outcome) = mpsc::channel();
    let done = Box::new(move |outcome| sender.send(outcome).unwrap());
    site.link.submit(OrderCommand::CancelAll(CancelAll::default()), far(), done);
    let correlation = engine.correlation();
    let order = OrderCanceled { quantity: 7, ..Default::default() };
    let list = OrderListChanged { order_count_0: 3, ..Default::default() };
    let all = MassCanceled { orders: 1, lists: 1, ..Default::default() };
    engine.reply(correlation, 0, Event::OrderCanceled(&order));
    engine.reply(correlation, 0, Event::OrderListChanged(&list));
    engine.reply(correlation, ENVELOPE_TERMINAL, Event::MassCanceled(&all));
    let told = Told { canceled: vec![order], lists: vec![list], ..Told::default() };
    let terminal = Terminal::CanceledAll(all);
    let decision = Decision { position: Position(640), time_ns: 77, told, terminal };
    assert_eq!(outcome.recv_timeout(PATIENCE).unwrap(), Outcome::from(decision));
}

#[test]
fn without_an_engine_nothing_is_sent() {
    let site = Site::start();
    let outcome = site.place(far()).try_recv().unwrap();
    assert_eq!(outcome, Outcome::NotSent(NotSent::Disconnected));
}

#[test]
fn a_full_ring_is_busy_and_a_broken_one_is_left() {
    let site = Site::start();
    let full = site.connect(Some(SendError::Full));
    let outcome = site.place(far()).try_recv().unwrap();
    assert_eq!(outcome, Outcome::NotSent(NotSent::Busy));
    full.moves.send(Move::HangUp).unwrap();
    site.until_connected(false);
    let fault = touchline_protocol::ring::RingFault::IndexJump { head: 9, tail: 1, capacity: 4 };
    let _broken = site.connect(Some(SendError::Ring(fault)));
    let outcome = site.place(far()).try_recv().unwrap();
    assert_eq!(outcome, Outcome::NotSent(NotSent::Disconnected));
    let engine = site.connect(None);
    let outcome = site.place(far());
    engine.reply(
        engine.correlation(),
        ENVELOPE_TERMINAL,
        Event::OrderCanceled(&OrderCanceled::default()),
    );
    assert!(matches!(outcome.recv_timeout(PATIENCE).unwrap(), Outcome::Decided(_)));
}

#[test]
fn an_engine_that_goes_away_leaves_doubt_and_the_link_comes_back() {
    let site = Site::start();
    let engine = site.connect(None);
    let outcome = site.place(far());
    let lost = engine.correlation();
    engine.moves.send(Move::HangUp).unwrap();
    assert_eq!(outcome.recv_timeout(PATIENCE).unwrap(), Outcome::Unknown(Doubt::ConnectionLost));
    let engine = site.connect(None);
    let outcome = site.place(far());
    let fresh = engine.correlation();
    assert_ne!(fresh, lost, "correlations are never used twice");
    engine.reply(lost, ENVELOPE_TERMINAL, Event::OrderResult(&OrderResult::default()));
    engine.reply(fresh, ENVELOPE_TERMINAL, Event::OrderCanceled(&OrderCanceled::default()));
    match outcome.recv_timeout(PATIENCE).unwrap() {
        Outcome::Decided(decision) => {
            assert_eq!(decision.terminal, Terminal::Canceled(OrderCanceled::default()));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_deadline_leaves_doubt_and_a_later_reply_is_dropped() {
    let site = Site::start();
    let engine = site.connect(None);
    let late = site.place(Instant::now());
    let correlation = engine.correlation();
    assert_eq!(late.recv_timeout(PATIENCE).unwrap(), Outcome::Unknown(Doubt::Timeout));
    engine.reply(correlation, ENVELOPE_TERMINAL, Event::OrderResult(&OrderResult::default()));
    let next = site.place(far());
    engine.reply(
        engine.correlation(),
        ENVELOPE_TERMINAL,
        Event::OrderResult(&OrderResult::default()),
    );
    assert!(matches!(next.recv_timeout(PATIENCE).unwrap(), Outcome::Decided(_)));
    assert_eq!(late.try_recv(), Err(mpsc::TryRecvError::Disconnected), "told once only");
}

#[test]
fn replies_that_are_no_answer_leave_doubt() {
    let site = Site::start();
    let engine = site.connect(None);
    let outcome = site.place(far());
    engine.reply(engine.correlation(), ENVELOPE_TERMINAL, Event::Trade(&Trade::default()));
    let unexpected = Outcome::Unknown(Doubt::UnexpectedReply);
    assert_eq!(outcome.recv_timeout(PATIENCE).unwrap(), unexpected);
}

#[test]
fn a_stopped_link_leaves_doubt() {
    let site = Site::start();
    let engine = site.connect(None);
    let outcome = site.place(far());
    engine.correlation();
    site.link.stop();
    assert_eq!(outcome.recv_timeout(PATIENCE).unwrap(), Outcome::Unknown(Doubt::ConnectionLost));
    assert!(!site.link.is_connected());
}

#[test]
fn a_callback_that_panics_costs_its_own_request() {
    let site = Site::start();
    let engine = site.connect(None);
    let panics = Box::new(|_| panic!("asked to"));
    site.link.submit(OrderCommand::Cancel(CancelOrderNamed::default()), far(), panics);
    engine.reply(
        engine.correlation(),
        ENVELOPE_TERMINAL,
        Event::OrderCanceled(&OrderCanceled::default()),
    );
    let outcome = site.place(far());
    engine.reply(
        engine.correlation(),
        ENVELOPE_TERMINAL,
        Event::OrderResult(&OrderResult::default()),
    );
    assert!(matches!(outcome.recv_timeout(PATIENCE).unwrap(), Outcome::Decided(_)));
}
