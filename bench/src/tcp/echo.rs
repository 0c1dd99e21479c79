//! The baselines of [`super`]: an echo over a standard TCP socket, by one thread or by two with rings
//! between them.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Result, anyhow};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use touchline_protocol::ring::layout::MAX_SLOTS;
use touchline_protocol::ring::{Capacity, Consumer, HeapRing, MessageBuffer, Producer, heap_ring};
use touchline_protocol::wait::{LocalSignal, WaitStrategy, Waiter};

use super::line::MESSAGE_BYTES;

/// Looks at a socket without success before the core is given away, where that is permitted: as many as turns
/// of the gateway. A look of an echo is a call of the system, one of the gateway's is none with io_uring.
pub(super) const SOCKET_LOOKS: u32 = 12;

/// Longest sleep before a thread looks whether it is to end.
const SLICE: Duration = Duration::from_millis(100);

/// Which echo.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EchoKind {
    /// The thread that reads writes.
    Direct,
    /// Each message goes through a ring to a second thread and comes back over another. The socket's thread looks so many
    /// times for nothing before it gives the core away.
    ByRing { looks: u32 },
}

/// What the threads of an echo share.
struct Shared {
    wait: WaitStrategy,
    stop: AtomicBool,
    /// There is a connection: without one nobody spins.
    is_serving: AtomicBool,
    /// Wakes the second thread.
    there: LocalSignal,
    /// The socket's thread sleeps, or is about to.
    is_asleep: AtomicBool,
    /// Wakes it.
    back: OwnedFd,
}

impl Shared {
    fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Sleeps until the socket or the second thread has something, unless `ready` now.
    fn sleep(&self, socket: &TcpStream, ready: impl Fn() -> bool) -> Result<()> {
        self.is_asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !ready() {
            let limit = Timespec { tv_sec: 0, tv_nsec: SLICE.subsec_nanos().into() };
            let mut both =
                [PollFd::new(socket, PollFlags::IN), PollFd::new(&self.back, PollFlags::IN)];
            match poll(&mut both, Some(&limit)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.is_asleep.store(false, Ordering::Relaxed);
        // Whether it was rung or not.
        let _count = rustix::io::read(&self.back, &mut [0; 8]);
        Ok(())
    }

    /// Wakes the socket's thread, if it sleeps, for what was published.
    fn ring_back(&self) -> Result<()> {
        fence(Ordering::SeqCst);
        if self.is_asleep.load(Ordering::Relaxed) {
            rustix::io::write(&self.back, &1_u64.to_le_bytes())?;
        }
        Ok(())
    }
}

/// A running echo, for one connection after the other. Between them all its threads sleep.
pub(super) struct Echo {
    address: SocketAddr,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<Result<()>>>,
}

impl Echo {
    pub(super) fn start(kind: EchoKind, wait: WaitStrategy) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            wait,
            stop: AtomicBool::new(false),
            is_serving: AtomicBool::new(false),
            there: LocalSignal::new(),
            is_asleep: AtomicBool::new(false),
            back: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        });
        let mut threads = Vec::new();
        let own = Arc::clone(&shared);
        let EchoKind::ByRing { looks } = kind else {
            threads.push(thread::spawn(move || {
                each_connection(&listener, &own, |socket| direct(socket, &own))
            }));
            return Ok(Self { address, shared, threads });
        };
        // Room for all that a client may send at once after a pause.
        let capacity = Capacity::new(MAX_SLOTS)?;
        let ((there, from_socket), (back, to_socket)) = (heap_ring(capacity), heap_ring(capacity));
        let mut ends = (there, to_socket);
        threads.push(thread::spawn(move || {
            each_connection(&listener, &own, |socket| by_ring(socket, looks, &mut ends, &own))
        }));
        let own = Arc::clone(&shared);
        threads.push(thread::spawn(move || hand_back(from_socket, back, &own)));
        Ok(Self { address, shared, threads })
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends the threads; the client's socket is closed by then.
    pub(super) fn stop(self) -> Result<()> {
        self.shared.stop.store(true, Ordering::Relaxed);
        // Ends the waiting for a connection.
        let _knock = TcpStream::connect(self.address);
        for thread in self.threads {
            thread.join().map_err(|_| anyhow!("an echo thread panicked"))??;
        }
        Ok(())
    }
}

fn each_connection(
    listener: &TcpListener,
    shared: &Shared,
    mut serve: impl FnMut(&TcpStream) -> Result<()>,
) -> Result<()> {
    loop {
        let (socket, _) = listener.accept()?;
        if shared.is_stopping() {
            return Ok(());
        }
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        shared.is_serving.store(true, Ordering::Relaxed);
        shared.there.wake();
        let served = serve(&socket);
        shared.is_serving.store(false, Ordering::Relaxed);
        served?;
    }
}

fn direct(mut socket: &TcpStream, shared: &Shared) -> Result<()> {
    let mut buffer = vec![0; 64 * MESSAGE_BYTES];
    let mut waiter = Waiter::yielding_after(SOCKET_LOOKS, shared.wait);
    while !shared.is_stopping() {
        match socket.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                waiter.reset();
                write_all(socket, &buffer[..count])?;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if !waiter.linger() {
                    shared.sleep(socket, || false)?;
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

type Ends = (Producer<Arc<HeapRing>>, Consumer<Arc<HeapRing>>);

fn by_ring(
    mut socket: &TcpStream,
    looks: u32,
    (there, back): &mut Ends,
    shared: &Shared,
) -> Result<()> {
    let mut received = vec![0; 64 * MESSAGE_BYTES];
    let (mut filled, mut leaving) = (0, Vec::new());
    let mut message = Box::<MessageBuffer>::default();
    let mut waiter = Waiter::yielding_after(looks, shared.wait);
    while !shared.is_stopping() {
        let mut is_idle = true;
        match socket.read(&mut received[filled..]) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                is_idle = false;
                filled += count;
                let whole = filled / MESSAGE_BYTES * MESSAGE_BYTES;
                for one in received[..whole].chunks(MESSAGE_BYTES) {
                    there.stage(one)?;
                }
                there.publish();
                shared.there.wake();
                received.copy_within(whole..filled, 0);
                filled -= whole;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
        while let Some(length) = back.poll(&mut message)? {
            leaving.extend_from_slice(message.bytes(length));
        }
        if !leaving.is_empty() {
            is_idle = false;
            write_all(socket, &leaving)?;
            leaving.clear();
        }
        if !is_idle {
            waiter.reset();
        } else if !waiter.linger() {
            shared.sleep(socket, || back.has_messages())?;
        }
    }
    Ok(())
}

fn hand_back(
    mut input: Consumer<Arc<HeapRing>>,
    mut output: Producer<Arc<HeapRing>>,
    shared: &Shared,
) -> Result<()> {
    let mut message = Box::<MessageBuffer>::default();
    let (mut waiter, mut idle) = (Waiter::new(shared.wait), Waiter::new(WaitStrategy::Adaptive));
    while !shared.is_stopping() {
        if let Some(length) = input.poll(&mut message)? {
            output.try_push(message.bytes(length))?;
            shared.ring_back()?;
            continue;
        }
        let line = || [shared.there.line()].into_iter();
        let is_serving = || shared.is_serving.load(Ordering::Relaxed);
        if is_serving() {
            waiter.wait_until(line(), SLICE, || input.has_messages() || !is_serving());
        } else {
            idle.wait_until(line(), SLICE, is_serving);
        }
    }
    Ok(())
}

/// Writes all of it to a socket that does not block; its reader reads.
pub(super) fn write_all(mut socket: &TcpStream, mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        match socket.write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
