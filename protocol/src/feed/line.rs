//! The socket of an open feed connection: snapshots when they are asked for, and over a stream the feed
//! itself, heartbeats and the reason of the end. Called by [`super::FeedReader`].

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio, ioctl_fionread};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::books::Books;
use super::broadcast::SlotWords;
use super::connect::FeedConnectError;
use super::layout::MARK_WORD;
use super::options::FeedOptions;
use crate::framing::FrameBuffer;
use crate::message::decode::{self, FeedTalk, Stream};
use crate::message::enums::CloseReason;
use crate::message::feed::{FeedGap, FeedRequest, FeedSnapshot};
use crate::message::handshake::SILENT_INTERVALS;
use crate::message::stream::Heartbeat;
use crate::units::FeedSequence;

/// Room for what came and is not read yet.
const RECEIVED_BYTES: usize = 256 << 10;

const ACROSS: FeedConnectError = FeedConnectError::Unexpected("message across a snapshot's end");

/// Messages that nobody is told of, read by one look at the most: an engine that says many of them would else hold
/// up who polls for as long as it goes on.
const PASSED_BY: u32 = 256;

/// So much of a snapshot, or its rest, comes within [`FeedOptions::timeout`], or it is late: an engine that says a
/// little now and then would else hold up who waits for it for as long as it goes on. The engine wants its readers to
/// take as much.
const SNAPSHOT_PACE: u64 = 1 << 20;

/// Template ids of the feed's messages, and of a feed connection's own conversation.
const FEED: std::ops::RangeInclusive<u16> = 400..=419;
const TALK: std::ops::RangeInclusive<u16> = 420..=439;

/// What comes over the socket.
#[derive(Clone, Copy, Debug)]
pub(super) enum Came {
    /// A message of the feed, which was copied out.
    Message,
    /// Messages are missing.
    Gap(FeedGap),
    /// A snapshot's head; its body is next.
    Snapshot(FeedSnapshot),
}

/// A snapshot of which a part has come.
struct Arriving {
    head: FeedSnapshot,
    body: Vec<u64>,
}

impl Arriving {
    /// Bytes that have not come.
    fn left(&self) -> u64 {
        self.head.bytes - self.body.len() as u64 * 8
    }
}

/// The socket.
pub(super) struct FeedLine {
    socket: OwnedFd,
    buffer: FrameBuffer,
    timeout: Duration,
    snapshot_bytes_max: u64,
    /// Of a stream: the interval of heartbeats. Over shared memory there are none.
    heartbeat: Option<Duration>,
    said: Instant,
    heard: Instant,
    heartbeat_heard: Option<Heartbeat>,
    /// A snapshot was asked for and has not begun to come. Who asks twice is sent away.
    is_owed: bool,
    arriving: Option<Arriving>,
    /// Bytes of a snapshot that nobody waits for any more: they are passed over when they come.
    given_up: u64,
    /// Up to here all was read for a snapshot that has not come, or was too long, until one comes or somebody
    /// goes on without it.
    passed_over: Option<FeedSequence>,
    /// It has ended, for this reason if there is one.
    closed: Option<Option<CloseReason>>,
    /// Bytes that were read of the socket in all.
    received: u64,
}

impl FeedLine {
    /// Of a connection whose feed is open.
    pub(super) fn new(
        socket: OwnedFd,
        options: &FeedOptions,
        heartbeat: Option<Duration>,
    ) -> io::Result<Self> {
        ioctl_fionbio(&socket, true)?;
        let now = Instant::now();
        Ok(Self {
            socket,
            buffer: FrameBuffer::new(RECEIVED_BYTES),
            timeout: options.timeout,
            snapshot_bytes_max: options.snapshot_bytes_max,
            heartbeat,
            said: now,
            heard: now,
            heartbeat_heard: None,
            is_owed: false,
            arriving: None,
            given_up: 0,
            passed_over: None,
            closed: None,
            received: 0,
        })
    }

    /// The next thing that came, if there is one, or if it is not behind very many that say nothing: the next call goes
    /// on. A message is copied into `message`.
    pub(super) fn next(
        &mut self,
        message: &mut SlotWords,
    ) -> Result<Option<Came>, FeedConnectError> {
        let mut passed_by = 0;
        while passed_by < PASSED_BY {
            let Some(frame) = self.buffer.peek()? else {
                if self.receive()? {
                    continue;
                }
                return Ok(None);
            };
            let length = frame.len();
            if self.given_up > 0 {
                let left = self.given_up.checked_sub(length as u64);
                self.given_up = left.ok_or(ACROSS)?;
                self.buffer.take(length);
                passed_by += 1;
                continue;
            }
            let came = match decode::header(frame)?.template_id {
                template if FEED.contains(&template) => {
                    let bytes: &mut [u8] = bytemuck::cast_slice_mut(message);
                    let into = bytes.get_mut(..length);
                    into.ok_or(FeedConnectError::Unexpected("length"))?.copy_from_slice(frame);
                    Some(Came::Message)
                }
                template if TALK.contains(&template) => match decode::feed_talk(frame)? {
                    FeedTalk::FeedGap(gap) => Some(Came::Gap(*gap)),
                    FeedTalk::FeedSnapshot(head) => Some(Came::Snapshot(*head)),
                    other => return Err(FeedConnectError::Unexpected(other.name())),
                },
                _ => match decode::stream(frame)? {
                    Stream::Heartbeat(heartbeat) => {
                        self.heartbeat_heard = Some(*heartbeat);
                        None
                    }
                    Stream::SessionClosed(closed) => {
                        let reason = CloseReason::from_wire(closed.reason);
                        self.closed = Some(reason);
                        return Err(FeedConnectError::Closed { reason });
                    }
                    other => return Err(FeedConnectError::Unexpected(other.name())),
                },
            };
            self.buffer.take(length);
            if came.is_some() {
                return Ok(came);
            }
            passed_by += 1;
        }
        Ok(None)
    }

    /// Asks for a snapshot and reads it; passes over all that comes in front of it. `None` if it is late. After a
    /// call that has ended too soon, the same snapshot is waited for and read on.
    pub(super) fn snapshot(&mut self) -> Result<Option<Books>, FeedConnectError> {
        let mut arriving = match self.arriving.take() {
            Some(arriving) => arriving,
            None => match self.head()? {
                Some(head) => Arriving { head, body: Vec::new() },
                None => return Ok(None),
            },
        };
        let is_whole = self.read_on(&mut arriving);
        if !matches!(is_whole, Ok(true)) {
            self.arriving = Some(arriving);
            return is_whole.map(|_| None);
        }
        let books = Books::from_snapshot(&arriving.head, bytemuck::cast_slice(&arriving.body));
        if books.is_err() {
            self.passed_over = Some(arriving.head.sequence);
        }
        Ok(Some(books?))
    }

    /// The snapshot that was asked for is waited for no longer. Gives the sequence of one whose head has come,
    /// or that was too long, or of the last message that was passed over: what is read next comes behind it.
    pub(super) fn give_up(&mut self) -> Option<FeedSequence> {
        let passed_over = self.passed_over.take();
        let Some(arriving) = self.arriving.take() else { return passed_over };
        self.given_up = arriving.left();
        Some(arriving.head.sequence)
    }

    /// As [`give_up`](Self::give_up), of one whose head comes now; false if none was asked for.
    pub(super) const fn give_up_late(&mut self, head: &FeedSnapshot) -> bool {
        if self.is_owed {
            self.given_up = head.bytes;
        }
        core::mem::replace(&mut self.is_owed, false)
    }

    /// The head of the next snapshot, which is asked for unless it was. `None` if it is late.
    fn head(&mut self) -> Result<Option<FeedSnapshot>, FeedConnectError> {
        let mut message = SlotWords::default();
        let begin = Instant::now();
        // The engine sends it still.
        while self.given_up > 0 {
            match self.next(&mut message)? {
                Some(came) => self.pass_over(came, &message),
                None if self.given_up == 0 || self.await_more(begin) => {}
                None => return Ok(None),
            }
        }
        if !self.is_owed {
            if let Err(error) = self.say(bytemuck::bytes_of(&FeedRequest::default())) {
                // What the engine said last tells more, unless it goes on and on.
                while self.has_time(begin)
                    && let Some(came) = self.next(&mut message)?
                {
                    self.pass_over(came, &message);
                }
                return Err(error.into());
            }
            self.is_owed = true;
        }
        let begin = Instant::now();
        let head = loop {
            match self.next(&mut message)? {
                Some(Came::Snapshot(head)) => break head,
                Some(came) => {
                    self.pass_over(came, &message);
                    if !self.has_time(begin) {
                        return Ok(None);
                    }
                }
                None if self.await_more(begin) => {}
                None => return Ok(None),
            }
        };
        self.is_owed = false;
        self.passed_over = None;
        if head.bytes > self.snapshot_bytes_max {
            let (bytes, most) = (head.bytes, self.snapshot_bytes_max);
            // It comes all the same.
            self.given_up = bytes;
            self.passed_over = Some(head.sequence);
            return Err(FeedConnectError::TooLong { bytes, most });
        }
        Ok(Some(head))
    }

    /// Nobody reads this: whoever goes on without the snapshot goes on behind it.
    const fn pass_over(&mut self, came: Came, message: &SlotWords) {
        self.passed_over = match came {
            Came::Message => Some(FeedSequence(message[MARK_WORD])),
            Came::Gap(gap) => Some(FeedSequence(gap.next.0.wrapping_sub(1))),
            Came::Snapshot(_) => return,
        };
    }

    /// The messages of a snapshot; false if they are late. Memory grows with what has come, not with what was
    /// announced.
    fn read_on(&mut self, arriving: &mut Arriving) -> Result<bool, FeedConnectError> {
        let (mut begin, mut left) = (Instant::now(), arriving.left());
        while arriving.left() > 0 {
            if left - arriving.left() >= SNAPSHOT_PACE {
                (begin, left) = (Instant::now(), arriving.left());
            }
            let Some(frame) = self.buffer.peek()? else {
                let is_in_time = match self.receive()? {
                    true => self.has_time(begin),
                    false => self.await_more(begin),
                };
                if !is_in_time {
                    return Ok(false);
                }
                continue;
            };
            let length = frame.len();
            if length as u64 > arriving.left() {
                return Err(ACROSS);
            }
            let from = arriving.body.len();
            arriving.body.resize(from + length / 8, 0);
            bytemuck::cast_slice_mut(&mut arriving.body[from..]).copy_from_slice(frame);
            self.buffer.take(length);
        }
        Ok(true)
    }

    /// The longest snapshot that is taken, in bytes.
    pub(super) const fn snapshot_bytes_max(&self) -> u64 {
        self.snapshot_bytes_max
    }

    /// Bytes that were taken out of the buffer in all.
    pub(super) const fn taken(&self) -> u64 {
        self.received - self.buffer.len() as u64
    }

    /// The same once all is taken that is there now.
    pub(super) fn there(&self) -> u64 {
        // What cannot be asked is told by the next read.
        self.received + ioctl_fionread(&self.socket).unwrap_or(0)
    }

    /// The engine's last heartbeat that was read.
    pub(super) const fn heartbeat(&self) -> Option<&Heartbeat> {
        self.heartbeat_heard.as_ref()
    }

    /// True when the next call of [`next`](Self::next) may tell something.
    pub(super) fn has_more(&mut self) -> bool {
        loop {
            // A fault and an end are told there.
            if !matches!(self.buffer.peek(), Ok(None)) {
                return true;
            }
            match self.receive() {
                Ok(true) => {}
                Ok(false) => return false,
                Err(_) => return true,
            }
        }
    }

    /// Sleeps until something comes, or a heartbeat may be due, at most for `limit`.
    pub(super) fn sleep(&self, limit: Duration) {
        let limit = self.heartbeat.map_or(limit, |heartbeat| limit.min(heartbeat / 4));
        let timeout = Timespec::try_from(limit).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        // Whatever comes of it is looked at again.
        let _ready = poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&timeout));
    }

    fn has_time(&self, begin: Instant) -> bool {
        begin.elapsed() <= self.timeout
    }

    /// Sleeps until something comes, unless it has; false once that has taken too long since `begin`.
    fn await_more(&self, begin: Instant) -> bool {
        let left = self.timeout.checked_sub(begin.elapsed());
        if let (Some(left), Ok(None)) = (left, self.buffer.peek()) {
            self.sleep(left);
        }
        left.is_some()
    }

    /// Reads what the socket has; false when it has nothing.
    fn receive(&mut self) -> Result<bool, FeedConnectError> {
        if let Some(reason) = self.closed {
            return Err(FeedConnectError::Closed { reason });
        }
        loop {
            match recv(&self.socket, self.buffer.space(), RecvFlags::DONTWAIT) {
                Ok((0, _)) => break,
                Ok((count, _)) => {
                    self.buffer.filled(count);
                    self.received += count as u64;
                    self.heard = Instant::now();
                    // An engine that has ended takes nothing more, and what it said last is still to be
                    // read: a fault is told once that has been.
                    let _told_later = self.tend();
                    return Ok(true);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.tend()?;
                    let limit = self.heartbeat.map(|heartbeat| heartbeat * SILENT_INTERVALS);
                    if limit.is_some_and(|limit| self.heard.elapsed() >= limit) {
                        self.closed = Some(Some(CloseReason::Silent));
                        return Err(FeedConnectError::Closed { reason: Some(CloseReason::Silent) });
                    }
                    return Ok(false);
                }
                Err(_) => break,
            }
        }
        self.closed = Some(None);
        Err(FeedConnectError::Closed { reason: None })
    }

    /// Says something after a silence.
    fn tend(&mut self) -> io::Result<()> {
        match self.heartbeat {
            Some(interval) if self.said.elapsed() >= interval => {
                self.say(bytemuck::bytes_of(&Heartbeat::default()))
            }
            _ => Ok(()),
        }
    }

    /// Sends a message. So little is ever said that a socket with no room for it is one that nobody
    /// reads.
    fn say(&mut self, message: &[u8]) -> io::Result<()> {
        loop {
            match send(&self.socket, message, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
                Ok(count) if count < message.len() => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => break,
            }
        }
        self.said = Instant::now();
        Ok(())
    }

    /// Looks whether the connection has ended; a system call. What came before may be read all the same.
    pub(super) fn is_closed(&self) -> bool {
        if self.heartbeat.is_none() {
            return self.closed.is_some() || self.has_hung_up();
        }
        let flags = RecvFlags::DONTWAIT | RecvFlags::PEEK;
        self.closed.is_some()
            || match recv(&self.socket, &mut [0_u8][..], flags) {
                Ok((count, _)) => count == 0,
                Err(error) => !matches!(error, Errno::AGAIN | Errno::INTR),
            }
    }

    /// The engine has closed it, whatever it said before: over shared memory that is a snapshot, and who goes on
    /// without one leaves it unread.
    fn has_hung_up(&self) -> bool {
        let mut ends = [PollFd::new(&self.socket, PollFlags::RDHUP)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut ends, Some(&now)), Ok(1..))
    }
}

#[cfg(test)]
mod tests;
