//! A server of the plainest kind: one thread, one connection at a time, an answer to each message, by blocking
//! calls. Harm done to it shows what it costs an honest client of somebody else. Called by [`super`].

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Scope;

use anyhow::Result;
use touchline_protocol::message::command::NewOrder;

/// Bytes of a message: an order's.
pub(super) const MESSAGE_BYTES: usize = size_of::<NewOrder>();

/// Bytes of an answer: a rejection's.
pub(super) const ANSWER_BYTES: usize = 64;

/// Messages that are read at once, at the most.
const BATCH: usize = 128;

/// The server; it ends when this is dropped, and whoever talks to it has ended.
pub(super) struct PlainServer {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
}

impl PlainServer {
    /// Starts its thread.
    pub(super) fn start<'scope>(scope: &'scope Scope<'scope, '_>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        scope.spawn(move || {
            while let Ok((socket, _)) = listener.accept()
                && !stopping.load(Ordering::Relaxed)
            {
                serve(socket);
            }
        });
        Ok(Self { address, stop })
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for PlainServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Ends its waiting for one.
        let _knock = TcpStream::connect(self.address);
    }
}

/// Answers each message, until the client is gone.
fn serve(mut socket: TcpStream) {
    let mut messages = vec![0; BATCH * MESSAGE_BYTES];
    let answers = [0; BATCH * ANSWER_BYTES];
    let mut received = 0;
    while let Ok(count) = socket.read(&mut messages)
        && count > 0
    {
        received += count;
        let whole = received / MESSAGE_BYTES;
        received %= MESSAGE_BYTES;
        if socket.write_all(&answers[..whole * ANSWER_BYTES]).is_err() {
            return;
        }
    }
}
