//! One client socket with its deadlines. Called by hyper through `TokioIo`; the connection tells
//! it through [`Progress`] how far the current request is.
//!
//! hyper's own header timeout also runs between requests, so that a pooled connection would be
//! closed after seconds, and it has none for bodies and writes. Here each phase has its own:
//! idle, head, body, and a write that must be through in time however slowly the peer reads.

use std::cell::Cell;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

use super::gate::Gate;
use crate::http::Fault;

/// Bytes read and thrown away while a connection is closed in the middle of a request.
const MAX_DRAINED: usize = 1 << 20;

/// How long a connection may stay in each phase.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timeouts {
    pub(super) head: Duration,
    pub(super) body: Duration,
    pub(super) idle: Duration,
    pub(super) write: Duration,
    pub(super) linger: Duration,
}

/// Where the current request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Between requests.
    Idle,
    /// Some bytes of a head have come.
    Head,
    /// The head has been parsed, the body is being read.
    Body,
    /// Read whole, being answered.
    Serving,
    /// Answered before it was read whole: the connection will be closed.
    Refused,
}

/// What the socket and the connection tell each other; both live on one thread.
#[derive(Debug)]
pub(super) struct Progress {
    timeouts: Timeouts,
    phase: Cell<Phase>,
    read_by: Cell<Option<Instant>>,
    timed_out: Cell<bool>,
    disguised_at: Cell<Option<usize>>,
    refusal: Cell<Option<Fault>>,
}

impl Progress {
    /// A fresh connection: its first head must come within the head timeout.
    pub(super) fn new(timeouts: Timeouts) -> Self {
        Self {
            timeouts,
            phase: Cell::new(Phase::Idle),
            read_by: Cell::new(Some(Instant::now() + timeouts.head)),
            timed_out: Cell::new(false),
            disguised_at: Cell::new(None),
            refusal: Cell::new(None),
        }
    }

    fn enter(&self, phase: Phase, limit: Option<Duration>) {
        self.phase.set(phase);
        self.read_by.set(limit.map(|limit| Instant::now() + limit));
    }

    /// Bytes of a request are there that hyper has not been given yet.
    pub(super) fn received(&self) {
        if self.phase.get() == Phase::Idle {
            self.enter(Phase::Head, Some(self.timeouts.head));
        }
    }

    /// The gate has disguised the query of the next head, or not.
    pub(super) fn disguised(&self, at: Option<usize>) {
        self.disguised_at.set(at);
    }

    /// The gate has put a stand-in in the place of the next head, or lets no more of the body through.
    pub(super) fn refuse(&self, fault: Fault) {
        self.refusal.set(Some(fault));
    }

    /// Why the head that was just parsed is a stand-in, or the body ended in an error.
    pub(super) fn take_refusal(&self) -> Option<Fault> {
        self.refusal.take()
    }

    /// Whether a request is being read.
    pub(super) fn is_reading(&self) -> bool {
        matches!(self.phase.get(), Phase::Head | Phase::Body)
    }

    /// Whether a request was answered before it was read whole.
    pub(super) fn is_refused(&self) -> bool {
        self.phase.get() == Phase::Refused
    }

    /// What [`super::quoted_query::split`] needs to know of the head that was just parsed.
    pub(super) fn take_disguised(&self) -> Option<usize> {
        self.disguised_at.take()
    }

    /// A head has been parsed.
    pub(super) fn head_read(&self, body_follows: bool) {
        if body_follows {
            self.enter(Phase::Body, Some(self.timeouts.body));
        } else {
            self.enter(Phase::Serving, None);
        }
    }

    /// The body has been read whole.
    pub(super) fn body_read(&self) {
        self.enter(Phase::Serving, None);
    }

    /// The reply goes out. Returns whether the request had been read whole, without which the
    /// connection cannot be used again.
    pub(super) fn replied(&self) -> bool {
        let whole = self.phase.get() == Phase::Serving;
        if whole {
            self.enter(Phase::Idle, Some(self.timeouts.idle));
        } else {
            self.enter(Phase::Refused, None);
        }
        whole
    }

    /// A reply that had to wait for the peer is written: the idle time counts from now on.
    fn written(&self) {
        if self.phase.get() == Phase::Idle {
            self.enter(Phase::Idle, Some(self.timeouts.idle));
        }
    }

    /// Whether a read failed because its phase took too long.
    pub(super) fn timed_out(&self) -> bool {
        self.timed_out.get()
    }

    fn mid_request(&self) -> bool {
        matches!(self.phase.get(), Phase::Head | Phase::Body | Phase::Refused)
    }
}

/// A timer that is only moved when it would fire too late: per request the deadline changes
/// several times, the timer wheel is touched about once per idle period.
struct LazyTimer {
    sleep: Pin<Box<Sleep>>,
}

impl LazyTimer {
    fn poll(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        if self.sleep.deadline() > deadline {
            self.sleep.as_mut().reset(deadline);
        }
        loop {
            ready!(self.sleep.as_mut().poll(cx));
            if self.sleep.deadline() >= deadline {
                return Poll::Ready(());
            }
            self.sleep.as_mut().reset(deadline);
        }
    }
}

/// How far an orderly close has come.
enum Closing {
    No,
    Draining { left: usize, by: Instant },
    Done,
}

/// A client socket that gives up on a client that is too slow.
pub(super) struct Socket {
    stream: TcpStream,
    progress: Rc<Progress>,
    gate: Gate,
    timer: LazyTimer,
    /// When the bytes now waiting to be written must all be gone; `None` while nothing waits.
    write_by: Option<Instant>,
    closing: Closing,
}

impl Socket {
    pub(super) fn new(stream: TcpStream, progress: Rc<Progress>, gate: Gate) -> Self {
        let first = progress.read_by.get().unwrap_or_else(Instant::now);
        Self {
            stream,
            progress,
            gate,
            timer: LazyTimer { sleep: Box::pin(tokio::time::sleep_until(first)) },
            write_by: None,
            closing: Closing::No,
        }
    }

    /// A read has to wait. Not limited while a reply is stuck: the write deadline rules then.
    fn wait_to_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.progress.read_by.get() {
            Some(deadline) if self.write_by.is_none() => {
                ready!(self.timer.poll(cx, deadline));
                self.progress.timed_out.set(true);
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
            _ => Poll::Pending,
        }
    }

    /// A write has to wait. The deadline is that of everything queued, not of the next byte.
    fn wait_to_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let limit = self.progress.timeouts.write;
        let deadline = *self.write_by.get_or_insert_with(|| Instant::now() + limit);
        ready!(self.timer.poll(cx, deadline));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    /// Reads and forgets what the peer still sends, within bounds. Closing with unread bytes
    /// would reset the connection, and the peer could lose the reply that says why.
    fn drain(&mut self, cx: &mut Context<'_>, mut left: usize, by: Instant) -> Poll<()> {
        let mut scratch = [0; 4096];
        loop {
            let mut buffer = ReadBuf::new(&mut scratch);
            match Pin::new(&mut self.stream).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    left = left.saturating_sub(buffer.filled().len());
                    self.closing = Closing::Draining { left, by };
                    if left == 0 {
                        return Poll::Ready(());
                    }
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return self.timer.poll(cx, by),
            }
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let socket = self.get_mut();
        loop {
            if socket.gate.give(&socket.progress, buffer)? || socket.gate.has_ended() {
                return Poll::Ready(Ok(()));
            }
            // Read into the room that hyper offers, and taken out of it again by the gate.
            let before = buffer.filled().len();
            match Pin::new(&mut socket.stream).poll_read(cx, buffer) {
                Poll::Pending => return socket.wait_to_read(cx),
                Poll::Ready(Ok(())) => match &buffer.filled()[before..] {
                    [] => socket.gate.end(),
                    received => socket.gate.push(received),
                },
                failed => return failed,
            }
            buffer.set_filled(before);
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.stream).poll_write(cx, bytes) {
            Poll::Pending => self.wait_to_write(cx),
            done => done,
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.stream).poll_write_vectored(cx, slices) {
            Poll::Pending => self.wait_to_write(cx),
            done => done,
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// hyper flushes the socket only when nothing of its own is left to write.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.write_by.take().is_some() {
            self.progress.written();
        }
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            match self.closing {
                Closing::No => {
                    ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
                    self.closing = if self.progress.mid_request() {
                        Closing::Draining {
                            left: MAX_DRAINED,
                            by: Instant::now() + self.progress.timeouts.linger,
                        }
                    } else {
                        Closing::Done
                    };
                }
                Closing::Draining { left, by } => {
                    ready!(self.drain(cx, left, by));
                    self.closing = Closing::Done;
                }
                Closing::Done => return Poll::Ready(Ok(())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// More than the socket buffers of both ends together.
    const BIG: usize = 32 << 20;

    async fn time_to_read_by(reply: usize) -> (Option<Instant>, Option<Instant>) {
        let hour = Duration::from_secs(3600);
        let timeouts = Timeouts { head: hour, body: hour, idle: hour, write: hour, linger: hour };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let progress = Rc::new(Progress::new(timeouts));
        let mut socket = Socket::new(stream, Rc::clone(&progress), Gate::new(100, 10));
        progress.head_read(false);
        assert!(progress.replied());
        let at_first = progress.read_by.get();
        let (bytes, mut received) = (vec![0; reply], vec![0; reply]);
        let write = async {
            socket.write_all(&bytes).await.unwrap();
            socket.flush().await.unwrap();
        };
        let (_written, _read) = tokio::join!(write, peer.read_exact(&mut received));
        (at_first, progress.read_by.get())
    }

    #[tokio::test]
    async fn the_idle_time_counts_from_the_end_of_a_reply_that_had_to_wait() {
        let (at_first, at_last) = time_to_read_by(BIG).await;
        assert!(at_first < at_last, "{at_first:?} {at_last:?}");
        let (at_first, at_last) = time_to_read_by(10).await;
        assert_eq!(at_first, at_last);
    }
}
