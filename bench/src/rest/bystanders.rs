//! Connections that cost a server something and bring it nothing: every other one sends a byte of a
//! request's head now and then, the rest send nothing. Called by [`super`].

use std::io::{self, ErrorKind, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use rustix::net::sockopt::set_socket_linger;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};

use crate::interrupt;

/// Addresses that they come from: one alone may not take all of an adapter's connections.
const SOURCES: [Ipv4Addr; 4] = [
    Ipv4Addr::new(127, 0, 1, 1),
    Ipv4Addr::new(127, 0, 1, 2),
    Ipv4Addr::new(127, 0, 1, 3),
    Ipv4Addr::new(127, 0, 1, 4),
];

/// Between two looks at the slow ones.
const TICK: Duration = Duration::from_millis(50);

/// Ticks in which each slow one sends a byte once.
const TICKS_PER_BYTE: usize = 40;

/// A head that never ends.
const HEAD: &[u8] = b"GET /api/v3/ping HTTP/1.1\r\nX-Slow: ";

/// The connections and the thread that keeps them open.
pub(super) struct Bystanders {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<()>>,
}

impl Bystanders {
    /// Opens them; every one is open on return.
    pub(super) fn start(address: SocketAddr, connections: usize) -> Result<Self> {
        let mut open = Vec::with_capacity(connections);
        for source in SOURCES.into_iter().cycle().take(connections) {
            interrupt::check()?;
            open.push(Bystander::open(source, address)?);
        }
        let stop = Arc::new(AtomicBool::new(false));
        let is_stopped = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("bystanders".to_owned())
            .spawn(move || keep(address, open, &is_stopped))?;
        Ok(Self { stop, thread })
    }

    /// Closes them.
    pub(super) fn end(self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow!("the thread of the bystanders has panicked"))?
    }
}

struct Bystander {
    stream: TcpStream,
    source: Ipv4Addr,
    sent: usize,
}

impl Bystander {
    fn open(source: Ipv4Addr, address: SocketAddr) -> Result<Self> {
        let stream = connect_from(source, address)
            .with_context(|| format!("cannot connect from {source} to {address}"))?;
        Ok(Self { stream, source, sent: 0 })
    }
}

fn connect_from(source: Ipv4Addr, address: SocketAddr) -> io::Result<TcpStream> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    // Closed without a word, or its port would be taken for a minute: there are thousands in each run.
    set_socket_linger(&socket, Some(Duration::ZERO))?;
    bind(&socket, &SocketAddrV4::new(source, 0))?;
    connect(&socket, &address)?;
    let stream = TcpStream::from(socket);
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// Sends the slow ones' bytes; one that the server has closed is opened again.
fn keep(address: SocketAddr, mut open: Vec<Bystander>, stop: &AtomicBool) -> Result<()> {
    for tick in (0..TICKS_PER_BYTE).cycle() {
        if stop.load(Ordering::Relaxed) || interrupt::is_interrupted() {
            break;
        }
        let slow = open.iter_mut().step_by(2);
        for bystander in slow.skip(tick).step_by(TICKS_PER_BYTE) {
            let byte = HEAD.get(bystander.sent).copied().unwrap_or(b'x');
            bystander.sent += 1;
            match bystander.stream.write(&[byte]) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => *bystander = Bystander::open(bystander.source, address)?,
            }
        }
        thread::sleep(TICK);
    }
    Ok(())
}
