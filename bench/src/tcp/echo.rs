//! The baselines of [`super`]: an echo over a standard TCP socket, by one thread or by two with rings
//! between them.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use anyhow::{Result, anyhow};
use touchline_protocol::ring::layout::MAX_SLOTS;
use touchline_protocol::ring::{Capacity, Consumer, HeapRing, MessageBuffer, Producer, heap_ring};
use touchline_protocol::wait::{SPINS, WaitStrategy};

use super::line::MESSAGE_BYTES;

/// Looks at a socket without success before the core is given away, where that is permitted: as many as turns
/// of the gateway. Of looks at a ring, [`SPINS`], as everywhere.
const SOCKET_LOOKS: u32 = 12;

/// Which echo.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EchoKind {
    /// The thread that reads writes.
    Direct,
    /// Each message goes through a ring to a second thread and comes back over another.
    ByRing,
}

/// Waits as the engine's threads do while there is traffic: nobody sleeps.
pub(super) struct Pause {
    wait: WaitStrategy,
    looks: u32,
    looks_max: u32,
}

impl Pause {
    pub(super) const fn new(wait: WaitStrategy, looks_max: u32) -> Self {
        Self { wait, looks: 0, looks_max }
    }

    pub(super) const fn reset(&mut self) {
        self.looks = 0;
    }

    pub(super) fn pause(&mut self) {
        self.looks = self.looks.saturating_add(1);
        if self.wait == WaitStrategy::Spin || self.looks < self.looks_max {
            std::hint::spin_loop();
        } else {
            thread::yield_now();
        }
    }
}

/// A running echo for one connection.
pub(super) struct Echo {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<()>>>,
}

impl Echo {
    pub(super) fn start(kind: EchoKind, wait: WaitStrategy) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        let stopping = Arc::clone(&stop);
        if kind == EchoKind::Direct {
            threads.push(thread::spawn(move || direct(&accept(&listener)?, &stopping, wait)));
            return Ok(Self { address, stop, threads });
        }
        // Room for all that a client may send at once after a pause.
        let capacity = Capacity::new(MAX_SLOTS)?;
        let ((there, from_socket), (back, to_socket)) = (heap_ring(capacity), heap_ring(capacity));
        threads.push(thread::spawn(move || {
            by_ring(&accept(&listener)?, (there, to_socket), &stopping, wait)
        }));
        let stopping = Arc::clone(&stop);
        threads.push(thread::spawn(move || hand_back(from_socket, back, &stopping, wait)));
        Ok(Self { address, stop, threads })
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends the threads; the client's socket is closed by then.
    pub(super) fn stop(self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().map_err(|_| anyhow!("an echo thread panicked"))??;
        }
        Ok(())
    }
}

fn accept(listener: &TcpListener) -> Result<TcpStream> {
    let (socket, _) = listener.accept()?;
    socket.set_nodelay(true)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn direct(mut socket: &TcpStream, stop: &AtomicBool, wait: WaitStrategy) -> Result<()> {
    let mut buffer = vec![0; 64 * MESSAGE_BYTES];
    let mut pause = Pause::new(wait, SOCKET_LOOKS);
    while !stop.load(Ordering::Relaxed) {
        match socket.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                pause.reset();
                write_all(socket, &buffer[..count])?;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => pause.pause(),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

type Ends = (Producer<Arc<HeapRing>>, Consumer<Arc<HeapRing>>);

fn by_ring(
    mut socket: &TcpStream,
    (mut there, mut back): Ends,
    stop: &AtomicBool,
    wait: WaitStrategy,
) -> Result<()> {
    let mut received = vec![0; 64 * MESSAGE_BYTES];
    let (mut filled, mut leaving) = (0, Vec::new());
    let mut message = Box::<MessageBuffer>::default();
    let mut pause = Pause::new(wait, SOCKET_LOOKS);
    while !stop.load(Ordering::Relaxed) {
        match socket.read(&mut received[filled..]) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                pause.reset();
                filled += count;
                let whole = filled / MESSAGE_BYTES * MESSAGE_BYTES;
                for one in received[..whole].chunks(MESSAGE_BYTES) {
                    there.stage(one)?;
                }
                there.publish();
                received.copy_within(whole..filled, 0);
                filled -= whole;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => pause.pause(),
            Err(error) => return Err(error.into()),
        }
        while let Some(length) = back.poll(&mut message)? {
            leaving.extend_from_slice(message.bytes(length));
        }
        if !leaving.is_empty() {
            pause.reset();
            write_all(socket, &leaving)?;
            leaving.clear();
        }
    }
    Ok(())
}

fn hand_back(
    mut input: Consumer<Arc<HeapRing>>,
    mut output: Producer<Arc<HeapRing>>,
    stop: &AtomicBool,
    wait: WaitStrategy,
) -> Result<()> {
    let mut message = Box::<MessageBuffer>::default();
    let mut pause = Pause::new(wait, SPINS);
    while !stop.load(Ordering::Relaxed) {
        match input.poll(&mut message)? {
            Some(length) => {
                pause.reset();
                output.try_push(message.bytes(length))?;
            }
            None => pause.pause(),
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
