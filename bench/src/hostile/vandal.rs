//! What goes on beside the honest client: nothing, a thread that computes, or one that does harm over the
//! honest client's carrier. Called by [`super::run`].

use std::hint::black_box;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::thread::{Scope, Thread};
use std::time::{Duration, Instant};

use touchline_protocol::client::{Client, Endpoint};
use touchline_protocol::message::command::{CommandHeader, NewOrder};
use touchline_protocol::units::KeyId;

use super::Harm;
use super::plain::{ANSWER_BYTES, MESSAGE_BYTES};
use crate::engine::{Access, SYMBOL};

/// Longest sleep of a thread that has nothing to do.
const PAUSE: Duration = Duration::from_millis(20);

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
    /// Sends as many bytes as a socket takes to a server that is not the engine, and reads no answer.
    FloodElsewhere = 2,
    /// Sends commands that are rejected, reads no reply, and begins anew when it is given up.
    Flood = 3,
    /// Opens connections to a server that is not the engine, gets an answer and goes, without end.
    KnocksElsewhere = 4,
    /// Opens connections, says nonsense and is closed, without end.
    Knocks = 5,
    /// Comes to its end.
    End = 6,
}

impl Beside {
    /// All kinds, in [`super::KINDS`]' order.
    pub(super) const ALL: [Self; 6] = [
        Self::Nothing,
        Self::Computing,
        Self::FloodElsewhere,
        Self::Flood,
        Self::KnocksElsewhere,
        Self::Knocks,
    ];
}

/// What the thread and its owner share.
#[derive(Default)]
struct Shared {
    order: AtomicU8,
    commands: AtomicU64,
    elsewhere: AtomicU64,
    knocks: Knocks,
    knocks_elsewhere: Knocks,
}

/// Knocks that were answered, and how long they took in all, ns.
#[derive(Default)]
struct Knocks {
    count: AtomicU64,
    time_ns: AtomicU64,
}

impl Knocks {
    /// How many, and how many in a second of knocking.
    fn told(&self) -> [u64; 2] {
        let [count, time_ns] =
            [&self.count, &self.time_ns].map(|value| value.load(Ordering::Relaxed));
        [count, count.saturating_mul(1_000_000_000) / time_ns.max(1)]
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
    /// Starts the thread, which sleeps: it harms the engine over `endpoint`, or over shared memory.
    pub(super) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        engine: Access,
        endpoint: Option<Endpoint>,
        targets: Targets,
    ) -> Self {
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let thread = scope.spawn(move || work(&engine, &endpoint, targets, &of_thread));
        Self { shared, thread: thread.thread().clone() }
    }

    /// From now on the thread does this.
    pub(super) fn set(&self, beside: Beside) {
        self.shared.order.store(beside as u8, Ordering::Relaxed);
        self.thread.unpark();
    }

    /// What it has done.
    pub(super) fn harm(&self) -> Harm {
        let Shared { commands, elsewhere, knocks, knocks_elsewhere, .. } = &*self.shared;
        let [commands, messages_elsewhere] =
            [commands, elsewhere].map(|count| count.load(Ordering::Relaxed));
        let [knocks, knocks_per_second] = knocks.told();
        let [knocks_elsewhere, knocks_elsewhere_per_second] = knocks_elsewhere.told();
        Harm {
            commands,
            messages_elsewhere,
            knocks,
            knocks_per_second,
            knocks_elsewhere,
            knocks_elsewhere_per_second,
        }
    }
}

impl Drop for Vandal {
    fn drop(&mut self) {
        self.set(Beside::End);
    }
}

fn work(engine: &Access, endpoint: &Option<Endpoint>, targets: Targets, shared: &Shared) {
    let (mut client, mut line) = (None, None);
    loop {
        let order = shared.order.load(Ordering::Relaxed);
        // The plain server has one connection at a time: while a line is open nobody answers who knocks.
        if order != Beside::FloodElsewhere as u8 {
            line = None;
        }
        if order != Beside::Flood as u8 {
            client = None;
        }
        match order {
            order if order == Beside::End as u8 => return,
            order if order == Beside::FloodElsewhere as u8 => {
                flood_elsewhere(&mut line, targets.plain, shared);
            }
            order if order == Beside::Flood as u8 => flood(&mut client, engine, endpoint, shared),
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

/// Sends a batch as far as there is room; over a new connection if there is none any more.
fn flood(
    client: &mut Option<Client>,
    engine: &Access,
    endpoint: &Option<Endpoint>,
    shared: &Shared,
) {
    let Some(open) = client else {
        // Refused, it tries again: that is harm too.
        *client = engine.trader_named("vandal", endpoint.clone()).ok();
        return;
    };
    let mut sent = 0;
    for _ in 0..BATCH {
        let mut order = nonsense(engine.key());
        if open.sender().stage(&mut order).is_err() {
            break;
        }
        sent += 1;
    }
    open.sender().publish();
    shared.commands.fetch_add(sent, Ordering::Relaxed);
    if sent == 0 && !open.receiver().is_connected() {
        *client = None;
    }
}

/// Sends a batch as far as the socket takes it; over a new connection if there is none any more.
fn flood_elsewhere(line: &mut Option<Line>, address: SocketAddr, shared: &Shared) {
    let Some(open) = line else {
        // Refused, it tries again.
        *line = Line::open(address).ok();
        return;
    };
    match open.socket.write(&open.batch) {
        Ok(bytes) => {
            open.sent += bytes;
            let messages = (open.sent / MESSAGE_BYTES) as u64;
            open.sent %= MESSAGE_BYTES;
            shared.elsewhere.fetch_add(messages, Ordering::Relaxed);
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
        Err(_) => *line = None,
    }
}

/// A connection to the plain server.
struct Line {
    socket: TcpStream,
    batch: Vec<u8>,
    /// Bytes of a message that is not whole yet.
    sent: usize,
}

impl Line {
    fn open(address: SocketAddr) -> io::Result<Self> {
        let socket = TcpStream::connect(address)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, batch: vec![0; BATCH as usize * MESSAGE_BYTES], sent: 0 })
    }
}

/// An order of no side, type or quantity.
fn nonsense(key_id: KeyId) -> NewOrder {
    let command = CommandHeader { key_id, ..Default::default() };
    NewOrder { command, symbol: SYMBOL, ..Default::default() }
}

/// One connection: bytes that are no message to the engine, and what comes of it.
fn knock<S: Read + Write, E>(connect: impl FnOnce() -> Result<S, E>, knocks: &Knocks) {
    let begin = Instant::now();
    // Whatever comes of it, the next one is alike.
    let is_answered = connect().is_ok_and(|mut socket| {
        let _said = socket.write_all(&[0xa5; MESSAGE_BYTES]);
        socket.read(&mut [0; ANSWER_BYTES]).is_ok_and(|count| count > 0)
    });
    knocks.count.fetch_add(is_answered.into(), Ordering::Relaxed);
    knocks.time_ns.fetch_add(begin.elapsed().as_nanos() as u64, Ordering::Relaxed);
}
