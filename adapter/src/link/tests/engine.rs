//! A made-up engine: what it is sent, and what it says when the test has it say so.

use super::super::wire::{Alarm, Connection, Replies};
use super::super::*;

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Condvar;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::time::Duration;

use touchline_protocol::client::{ConnectError, ReceiveError, Reply};
use touchline_protocol::message::command::NewOrder;
use touchline_protocol::message::decode::{ENVELOPED_BYTES_MAX, Event, disclose, enclose};
use touchline_protocol::message::event::{ENVELOPE_TERMINAL, Envelope, Rejected};

use crate::patience::{PATIENCE, watch};

/// What the fake engine does with a connection.
pub(super) enum Move {
    Reply(Box<Reply>),
    /// One that may be handed on when it is on disk.
    ReplyForDisk(Box<Reply>),
    HangUp,
}

/// The bell of one connection, which the fake engine rings as a real one does: when it is asked to.
#[derive(Default)]
pub(super) struct FakeBell {
    pub(super) is_armed: AtomicBool,
    pub(super) rings: Mutex<FakeRings>,
    pub(super) rung: Condvar,
    /// Time alone ends no sleep.
    pub(super) is_patient: AtomicBool,
    pub(super) is_on_disk: AtomicBool,
    /// Its connection is given up for its silence.
    pub(super) is_silent: AtomicBool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct FakeRings {
    pub(super) engine: u64,
    pub(super) own: u64,
    pub(super) disk: u64,
}

impl FakeBell {
    pub(super) fn ring(&self) {
        if self.is_armed.load(Ordering::SeqCst) {
            self.count(|rings| &mut rings.engine);
        }
    }

    pub(super) fn count(&self, which: impl FnOnce(&mut FakeRings) -> &mut u64) {
        *which(&mut self.rings.lock().unwrap()) += 1;
        self.rung.notify_all();
    }

    /// Until what comes of this is dropped, a sleeper that nobody wakes sleeps on.
    pub(super) fn patient(self: &Arc<Self>) -> Impatient {
        self.is_patient.store(true, Ordering::SeqCst);
        Impatient(Arc::clone(self))
    }
}

pub(super) struct Impatient(Arc<FakeBell>);

impl Drop for Impatient {
    fn drop(&mut self) {
        self.0.is_patient.store(false, Ordering::SeqCst);
    }
}

impl Alarm for Arc<FakeBell> {
    type Rings = FakeRings;

    fn rings(&self) -> FakeRings {
        *self.rings.lock().unwrap()
    }

    fn wait(&self, seen: FakeRings, hears_disk: bool, limit: Duration) {
        let is_quiet = |rings: &mut FakeRings| {
            let unheard = if hears_disk { seen.disk } else { rings.disk };
            *rings == FakeRings { disk: unheard, ..seen }
        };
        loop {
            let rings = self.rings.lock().unwrap();
            let (rings, timeout) = self.rung.wait_timeout_while(rings, limit, is_quiet).unwrap();
            drop(rings);
            if !timeout.timed_out() || !self.is_patient.load(Ordering::SeqCst) {
                return;
            }
        }
    }
}

/// The engine's end of one connection.
pub(super) struct EngineEnd {
    pub(super) commands: Receiver<OrderCommand>,
    /// How often it was woken.
    pub(super) wakes: Arc<AtomicU64>,
    pub(super) moves: Sender<Move>,
    pub(super) bell: Arc<FakeBell>,
}

impl EngineEnd {
    pub(super) fn correlation(&self) -> u64 {
        self.commands.recv_timeout(PATIENCE).unwrap().header().correlation
    }

    pub(super) fn reply(&self, correlation: u64, flags: u8, event: Event<'_>) {
        self.send(Self::made(correlation, flags, event));
    }

    /// Refuses a command at this moment of the engine's clock.
    pub(super) fn reject_at(&self, correlation: u64, time_ns: u64) {
        let rejected = Event::Rejected(&Rejected::default());
        let mut reply = Self::made(correlation, ENVELOPE_TERMINAL, rejected);
        reply.envelope.time_ns = time_ns;
        self.send(reply);
    }

    pub(super) fn send(&self, reply: Reply) {
        self.moves.send(Move::Reply(Box::new(reply))).unwrap();
        self.bell.ring();
    }

    /// The last word on a command, for whoever waits for it to be on disk.
    pub(super) fn reject_for_disk(&self, correlation: u64) {
        let rejected = Rejected::default();
        let reply = Self::made(correlation, ENVELOPE_TERMINAL, Event::Rejected(&rejected));
        self.moves.send(Move::ReplyForDisk(Box::new(reply))).unwrap();
        self.bell.ring();
    }

    /// Everything is on disk from now on.
    pub(super) fn write_to_disk(&self) {
        self.bell.is_on_disk.store(true, Ordering::SeqCst);
        self.bell.count(|rings| &mut rings.disk);
    }

    pub(super) fn made(correlation: u64, flags: u8, event: Event<'_>) -> Reply {
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
        Reply { envelope, event }
    }

    pub(super) fn hang_up(&self) {
        self.moves.send(Move::HangUp).unwrap();
    }
}

/// Connects whenever the test has offered a connection.
pub(super) struct FakeWire {
    offers: Mutex<Receiver<(FakeCommands, FakeReplies)>>,
    door: Arc<Door>,
}

/// How who connects is received.
#[derive(Default)]
pub(super) struct Door {
    /// Not before this is taken back.
    pub(super) is_held: AtomicBool,
    /// Somebody waits there for that.
    pub(super) is_waited_at: AtomicBool,
    /// Where nothing is offered there is nobody, and not one who says nothing.
    pub(super) is_nobodys: AtomicBool,
}

pub(super) struct FakeCommands {
    pub(super) commands: Sender<OrderCommand>,
    pub(super) refusal: Option<SendError>,
    pub(super) wakes: Arc<AtomicU64>,
}

pub(super) struct FakeReplies {
    pub(super) moves: Receiver<Move>,
    /// Seen when it was armed.
    pub(super) first: RefCell<Option<Move>>,
    /// Waits for the disk.
    pub(super) held: Option<Box<Reply>>,
    pub(super) bell: Arc<FakeBell>,
}

impl FakeReplies {
    pub(super) fn is_on_disk(&self) -> bool {
        self.bell.is_on_disk.load(Ordering::SeqCst)
    }
}

impl Wire<Orders> for FakeWire {
    type Bell = Arc<FakeBell>;

    fn connect(&self) -> Result<Connection<Orders, Arc<FakeBell>>, ConnectError> {
        while self.door.is_held.load(Ordering::SeqCst) {
            self.door.is_waited_at.store(true, Ordering::SeqCst);
            std_thread::yield_now();
        }
        match self.offers.lock().unwrap().try_recv() {
            Ok((commands, replies)) => {
                let bell = Arc::clone(&replies.bell);
                Ok(Connection { commands: Box::new(commands), replies: Box::new(replies), bell })
            }
            Err(_) if self.door.is_nobodys.load(Ordering::SeqCst) => Err(ConnectError::Connect {
                endpoint: PathBuf::from("engine.sock").into(),
                source: io::ErrorKind::ConnectionRefused.into(),
            }),
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

    fn wake(&self) {
        self.wakes.fetch_add(1, Ordering::SeqCst);
    }
}

impl FakeReplies {
    fn next(&mut self) -> Result<Option<Reply>, ReceiveError> {
        if let Some(held) = self.held.take_if(|_| self.bell.is_on_disk.load(Ordering::SeqCst)) {
            return Ok(Some(*held));
        }
        match self.first.take().map_or_else(|| self.moves.try_recv(), Ok) {
            Ok(Move::Reply(reply)) => Ok(Some(*reply)),
            Ok(Move::ReplyForDisk(reply)) if self.is_on_disk() => Ok(Some(*reply)),
            Ok(Move::ReplyForDisk(reply)) => {
                self.held = Some(reply);
                Ok(None)
            }
            Ok(Move::HangUp) | Err(TryRecvError::Disconnected) => Err(ReceiveError::Disconnected),
            Err(TryRecvError::Empty) => Ok(None),
        }
    }
}

impl Replies for FakeReplies {
    fn poll_into(&mut self, reply: &mut Reply) -> Result<bool, ReceiveError> {
        let next = self.next()?;
        *reply = next.unwrap_or(*reply);
        Ok(next.is_some())
    }

    fn arm(&self) -> bool {
        self.bell.is_armed.store(true, Ordering::SeqCst);
        let mut first = self.first.borrow_mut();
        if first.is_none() {
            *first = self.moves.try_recv().ok();
        }
        first.is_some() || self.held.is_some() && self.is_on_disk()
    }

    fn holds_back(&self) -> bool {
        self.held.is_some()
    }

    fn durable(&self) -> Position {
        Position(0)
    }

    fn ring(&self) {
        self.bell.count(|rings| &mut rings.own);
    }

    fn disarm(&self) {
        self.bell.is_armed.store(false, Ordering::SeqCst);
    }

    fn check(&mut self) {}

    fn is_silent(&self) -> bool {
        self.bell.is_silent.load(Ordering::SeqCst)
    }
}

/// Both ends of a connection.
pub(super) fn connection(refusal: Option<SendError>) -> (FakeCommands, FakeReplies, EngineEnd) {
    let (commands, commands_end) = mpsc::channel();
    let (moves, moves_end) = mpsc::channel();
    let bell = Arc::new(FakeBell::default());
    let replies = FakeReplies {
        moves: moves_end,
        first: RefCell::new(None),
        held: None,
        bell: Arc::clone(&bell),
    };
    let wakes = Arc::<AtomicU64>::default();
    let end = EngineEnd { commands: commands_end, wakes: Arc::clone(&wakes), moves, bell };
    (FakeCommands { commands, refusal, wakes }, replies, end)
}

/// A link and the place where connections to it are offered.
pub(super) struct Site {
    pub(super) link: Link,
    pub(super) offers: Sender<(FakeCommands, FakeReplies)>,
    pub(super) door: Arc<Door>,
}

impl Site {
    pub(super) fn start() -> Self {
        watch();
        let (offers, taken) = mpsc::channel();
        let door = Arc::<Door>::default();
        let wire = FakeWire { offers: Mutex::new(taken), door: Arc::clone(&door) };
        Self { link: Link::start_on(wire).unwrap(), offers, door }
    }

    /// Offers a connection and waits until the link has it.
    pub(super) fn connect(&self, refusal: Option<SendError>) -> EngineEnd {
        let (commands, replies, engine) = connection(refusal);
        self.offers.send((commands, replies)).unwrap();
        self.until_connected(true);
        engine
    }

    pub(super) fn until_connected(&self, connected: bool) {
        let begin = Instant::now();
        while self.link.is_connected() != connected {
            assert!(begin.elapsed() < PATIENCE, "the link never becomes connected: {connected}");
            std_thread::yield_now();
        }
    }

    pub(super) fn place(&self, deadline: Instant) -> Receiver<Outcome> {
        let (sender, outcome) = mpsc::channel();
        let done = Box::new(move |outcome| sender.send(outcome).unwrap());
        self.link.submit(OrderCommand::Place(NewOrder::default()), deadline, done);
        outcome
    }
}
