//! Connections that cost a server something and bring it nothing: every other one sends a byte of a
//! request's head now and then, the rest send nothing. Called by [`super`].

use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};

use crate::interrupt;

/// Longest that a connection may take to be opened.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

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
        for _ in 0..connections {
            interrupt::check()?;
            open.push(Bystander::open(address)?);
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
    sent: usize,
}

impl Bystander {
    fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect_timeout(&address, CONNECT_LIMIT)
            .with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nonblocking(true)?;
        Ok(Self { stream, sent: 0 })
    }
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
                Err(_) => *bystander = Bystander::open(address)?,
            }
        }
        thread::sleep(TICK);
    }
    Ok(())
}
