//! What goes on beside the honest client: nothing, a thread that computes, or one that does harm over the
//! honest client's carrier. Called by [`super::run`].

use std::hint::black_box;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::{Scope, Thread};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use thread_priority::{
    NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};
use touchline_protocol::client::{Client, Endpoint, Reply};
use touchline_protocol::message::command::{CommandHeader, NewOrder};
use touchline_protocol::units::KeyId;

use super::Harm;
use super::plain::{ANSWER_BYTES, MESSAGE_BYTES};
use crate::engine::{Access, SYMBOL};
use crate::machine::nanoseconds;

/// Longest sleep of a thread that has nothing to do.
const PAUSE: Duration = Duration::from_millis(20);

/// Who reads no reply and has sent nothing for so long, because nothing is taken any more, begins anew: waiting
/// for room is no harm.
const STALLED: Duration = Duration::from_millis(2);

/// Longest that the thread may take to leave off.
const PATIENCE: Duration = Duration::from_secs(10);

/// So long behind what it did last nobody else has work of it any more.
const AFTERMATH: Duration = Duration::from_millis(5);

/// Commands between two looks at what the thread is to do.
const BATCH: u32 = 256;

/// What the thread does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Beside {
    /// Nothing: it sleeps.
    Nothing = 0,
    /// Computes and talks to nobody: what another busy thread costs on this machine.
    Computing = 1,
    /// Sends as many bytes as a socket takes to a server that is not the engine, and reads the answers.
    FloodElsewhere = 2,
    /// Sends commands that are rejected as fast as they are taken, and reads the replies.
    Flood = 3,
    /// The same, but reads no reply, and begins anew when nothing more is taken.
    UnreadFlood = 4,
    /// Opens connections to a server that is not the engine, gets an answer and goes, without end.
    KnocksElsewhere = 5,
    /// Opens connections, says nonsense and is closed, without end.
    Knocks = 6,
    /// Comes to its end.
    End = 7,
}

impl Beside {
    /// All kinds, in [`super::KINDS`]' order.
    pub(super) const ALL: [Self; 7] = [
        Self::Nothing,
        Self::Computing,
        Self::FloodElsewhere,
        Self::Flood,
        Self::UnreadFlood,
        Self::KnocksElsewhere,
        Self::Knocks,
    ];
}

/// What the thread and its owner share.
#[derive(Default)]
struct Shared {
    order: AtomicU8,
    /// What the thread does at present.
    doing: AtomicU8,
    commands: Tally,
    unread: Tally,
    elsewhere: Tally,
    knocks: Tally,
    knocks_elsewhere: Tally,
}

/// How often something was done, and how long that took in all, ns.
#[derive(Default)]
struct Tally {
    count: AtomicU64,
    time_ns: AtomicU64,
}

impl Tally {
    fn add(&self, count: u64, begin: Instant) {
        self.count.fetch_add(count, Ordering::Relaxed);
        self.time_ns.fetch_add(nanoseconds(begin.elapsed()), Ordering::Relaxed);
    }

    /// How often, and how often in a second of doing it.
    fn told(&self) -> [u64; 2] {
        let [count, time_ns] =
            [&self.count, &self.time_ns].map(|value| value.load(Ordering::Relaxed));
        let rate = u128::from(count) * 1_000_000_000 / u128::from(time_ns.max(1));
        [count, u64::try_from(rate).unwrap_or(u64::MAX)]
    }
}

/// Whom it harms over TCP.
#[derive(Clone, Copy)]
pub(super) struct Targets {
    /// The engine.
    pub(super) engine: SocketAddr,
    /// A server that is not the engine.
    pub(super) plain: SocketAddr,
}

/// The thread.
pub(super) struct Vandal {
    shared: Arc<Shared>,
    thread: Thread,
}

impl Vandal {
    /// Starts the thread, which sleeps: it harms the engine over `endpoint`, or over shared memory. One that
    /// `gives_way` runs only where nobody else wants to.
    ///
    /// # Errors
    /// If the system does not let it give way.
    pub(super) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        (engine, endpoint): (Access, Option<Endpoint>),
        targets: Targets,
        gives_way: bool,
    ) -> Result<Self> {
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let (tell, told) = mpsc::sync_channel(1);
        let thread = scope.spawn(move || {
            let given = if gives_way { give_way() } else { Ok(()) };
            let goes_on = given.is_ok();
            // Who asks has not gone away.
            let _told = tell.send(given);
            if goes_on {
                work(&engine, &endpoint, targets, &of_thread);
            }
        });
        told.recv()??;
        Ok(Self { shared, thread: thread.thread().clone() })
    }

    /// From now on the thread does this, and nobody has anything of what it did before.
    ///
    /// # Errors
    /// If it does not leave off.
    pub(super) fn set(&self, beside: Beside) -> Result<()> {
        self.order(Beside::Nothing);
        let begin = Instant::now();
        while self.shared.doing.load(Ordering::Relaxed) != Beside::Nothing as u8 {
            ensure!(begin.elapsed() < PATIENCE, "the vandal does not leave off");
            std::thread::sleep(AFTERMATH);
        }
        std::thread::sleep(AFTERMATH);
        self.order(beside);
        Ok(())
    }

    fn order(&self, beside: Beside) {
        self.shared.order.store(beside as u8, Ordering::Relaxed);
        self.thread.unpark();
    }

    /// What it has done.
    pub(super) fn harm(&self) -> Harm {
        let Shared { commands, unread, elsewhere, knocks, knocks_elsewhere, .. } = &*self.shared;
        let [commands, commands_per_second] = commands.told();
        let [unread_commands, unread_commands_per_second] = unread.told();
        let [messages_elsewhere, messages_elsewhere_per_second] = elsewhere.told();
        let [knocks, knocks_per_second] = knocks.told();
        let [knocks_elsewhere, knocks_elsewhere_per_second] = knocks_elsewhere.told();
        Harm {
            commands,
            commands_per_second,
            unread_commands,
            unread_commands_per_second,
            messages_elsewhere,
            messages_elsewhere_per_second,
            knocks,
            knocks_per_second,
            knocks_elsewhere,
            knocks_elsewhere_per_second,
        }
    }
}

impl Drop for Vandal {
    fn drop(&mut self) {
        self.order(Beside::End);
    }
}

fn give_way() -> Result<()> {
    let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle)
        .map_err(|why| anyhow!("the vandal's thread does not give way: {why}"))
}

fn work(engine: &Access, endpoint: &Option<Endpoint>, targets: Targets, shared: &Shared) {
    let (mut client, mut line) = (None, None);
    loop {
        let order = shared.order.load(Ordering::Relaxed);
        // The plain server has one connection at a time: while a line is open nobody answers who knocks.
        if order != Beside::FloodElsewhere as u8 {
            line = None;
        }
        if order != Beside::Flood as u8 && order != Beside::UnreadFlood as u8 {
            client = None;
        }
        shared.doing.store(order, Ordering::Relaxed);
        match order {
            order if order == Beside::End as u8 => return,
            order if order == Beside::FloodElsewhere as u8 => {
                flood_elsewhere(&mut line, targets.plain, shared);
            }
            order if order == Beside::Flood as u8 => {
                flood(&mut client, engine, endpoint, (true, &shared.commands));
            }
            order if order == Beside::UnreadFlood as u8 => {
                flood(&mut client, engine, endpoint, (false, &shared.unread));
            }
            order if order == Beside::KnocksElsewhere as u8 => {
                knock(|| TcpStream::connect(targets.plain), &shared.knocks_elsewhere);
            }
            order if order == Beside::Knocks as u8 && endpoint.is_some() => {
                knock(|| TcpStream::connect(targets.engine), &shared.knocks);
            }
            order if order == Beside::Knocks as u8 => knock(|| engine.dial(), &shared.knocks),
            order if order == Beside::Computing as u8 => {
                black_box((0..10_000_u64).fold(0, |sum, n| black_box(sum ^ n)));
            }
            _ => std::thread::park_timeout(PAUSE),
        }
    }
}

/// A session that floods the engine.
struct Flooder {
    client: Client,
    reply: Reply,
    /// When it last sent anything.
    sent_at: Instant,
}

/// Sends a batch as far as there is room, and reads what was answered, or not; over a new connection if there is
/// none any more, or nothing is taken.
fn flood(
    flooder: &mut Option<Flooder>,
    engine: &Access,
    endpoint: &Option<Endpoint>,
    (reads, tally): (bool, &Tally),
) {
    let begin = Instant::now();
    let Some(open) = flooder else {
        // Refused, it tries again: that is harm too.
        let client = engine.trader_named("vandal", endpoint.clone()).ok();
        *flooder = client.map(|client| Flooder { client, reply: Reply::default(), sent_at: begin });
        tally.add(0, begin);
        return;
    };
    let mut sent = 0;
    for _ in 0..BATCH {
        let mut order = nonsense(engine.key());
        if open.client.sender().stage(&mut order).is_err() {
            break;
        }
        sent += 1;
    }
    open.client.sender().publish();
    let is_open =
        if reads { read_all(open) } else { sent > 0 || open.client.receiver().is_connected() };
    tally.add(sent, begin);
    if sent > 0 {
        open.sent_at = begin;
    }
    if !is_open || !reads && open.sent_at.elapsed() > STALLED {
        *flooder = None;
    }
}

/// Reads what there is; false if there will be no more.
fn read_all(open: &mut Flooder) -> bool {
    loop {
        match open.client.receiver().poll_into(&mut open.reply) {
            Ok(true) => {}
            Ok(false) => return true,
            Err(_) => return false,
        }
    }
}

/// Sends a batch as far as the socket takes it and reads what was answered; over a new connection if there is none
/// any more.
fn flood_elsewhere(line: &mut Option<Line>, address: SocketAddr, shared: &Shared) {
    let begin = Instant::now();
    let Some(open) = line else {
        // Refused, it tries again.
        *line = Line::open(address).ok();
        return;
    };
    let sent = open.socket.write(&open.batch);
    // Read while there is something: an answer is smaller than its message.
    let is_open = loop {
        match open.socket.read(&mut open.answers) {
            Ok(0) => break false,
            Ok(_) => {}
            Err(error) => break error.kind() == ErrorKind::WouldBlock,
        }
    };
    match sent {
        Ok(bytes) => {
            open.sent += bytes;
            shared.elsewhere.add((open.sent / MESSAGE_BYTES) as u64, begin);
            open.sent %= MESSAGE_BYTES;
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => shared.elsewhere.add(0, begin),
        Err(_) => *line = None,
    }
    if !is_open {
        *line = None;
    }
}

/// A connection to the plain server.
struct Line {
    socket: TcpStream,
    batch: Vec<u8>,
    answers: Vec<u8>,
    /// Bytes of a message that is not whole yet.
    sent: usize,
}

impl Line {
    fn open(address: SocketAddr) -> io::Result<Self> {
        let socket = TcpStream::connect(address)?;
        socket.set_nonblocking(true)?;
        let [batch, answers] =
            [MESSAGE_BYTES, ANSWER_BYTES].map(|bytes| vec![0; BATCH as usize * bytes]);
        Ok(Self { socket, batch, answers, sent: 0 })
    }
}

/// An order of no side, type or quantity.
fn nonsense(key_id: KeyId) -> NewOrder {
    let command = CommandHeader { key_id, ..Default::default() };
    NewOrder { command, symbol: SYMBOL, ..Default::default() }
}

/// One connection: bytes that are no message to the engine, and what comes of it.
fn knock<S: Read + Write, E>(connect: impl FnOnce() -> std::result::Result<S, E>, knocks: &Tally) {
    let begin = Instant::now();
    // Whatever comes of it, the next one is alike.
    let is_answered = connect().is_ok_and(|mut socket| {
        let _said = socket.write_all(&[0xa5; MESSAGE_BYTES]);
        socket.read(&mut [0; ANSWER_BYTES]).is_ok_and(|count| count > 0)
    });
    knocks.add(is_answered.into(), begin);
}
