//! The socket of an open feed connection: snapshots when they are asked for, and over a stream the feed
//! itself, heartbeats and the reason of the end. Called by [`super::FeedReader`].

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::books::Books;
use super::broadcast::SlotWords;
use super::connect::{FeedConnectError, FeedOptions};
use super::layout::MARK_WORD;
use crate::framing::FrameBuffer;
use crate::message::decode::{self, FeedTalk, Stream};
use crate::message::enums::CloseReason;
use crate::message::feed::{FeedGap, FeedRequest, FeedSnapshot};
use crate::message::stream::Heartbeat;
use crate::units::FeedSequence;

/// Room for what came and is not read yet.
const RECEIVED_BYTES: usize = 256 << 10;

/// Intervals without a sign of life after which the engine counts as gone.
const SILENT_INTERVALS: u32 = 3;

const ACROSS: FeedConnectError = FeedConnectError::Unexpected("message across a snapshot's end");

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
        })
    }

    /// The next thing that came, if there is one. A message is copied into `message`.
    pub(super) fn next(
        &mut self,
        message: &mut SlotWords,
    ) -> Result<Option<Came>, FeedConnectError> {
        loop {
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
        }
    }

    /// Asks for a snapshot and reads it; passes over all that comes in front of it. After a call that has
    /// ended too soon, the same snapshot is waited for and read on.
    pub(super) fn snapshot(&mut self) -> Result<Books, FeedConnectError> {
        let mut arriving = match self.arriving.take() {
            Some(arriving) => arriving,
            None => Arriving { head: self.head()?, body: Vec::new() },
        };
        if let Err(error) = self.read_on(&mut arriving) {
            self.arriving = Some(arriving);
            return Err(error);
        }
        let books = Books::from_snapshot(&arriving.head, bytemuck::cast_slice(&arriving.body));
        if books.is_err() {
            self.passed_over = Some(arriving.head.sequence);
        }
        Ok(books?)
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

    /// The head of the next snapshot, which is asked for unless it was.
    fn head(&mut self) -> Result<FeedSnapshot, FeedConnectError> {
        let mut message = SlotWords::default();
        let begin = Instant::now();
        // The engine sends it still.
        while self.given_up > 0 {
            match self.next(&mut message)? {
                Some(came) => self.pass_over(came, &message),
                None => self.await_more(begin)?,
            }
        }
        if !self.is_owed {
            if let Err(error) = self.say(bytemuck::bytes_of(&FeedRequest::default())) {
                // What the engine said last tells more.
                while let Some(came) = self.next(&mut message)? {
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
                Some(came) => self.pass_over(came, &message),
                None => self.await_more(begin)?,
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
        Ok(head)
    }

    /// Nobody reads this: whoever goes on without the snapshot goes on behind it.
    const fn pass_over(&mut self, came: Came, message: &SlotWords) {
        self.passed_over = match came {
            Came::Message => Some(FeedSequence(message[MARK_WORD])),
            Came::Gap(gap) => Some(FeedSequence(gap.next.0.wrapping_sub(1))),
            Came::Snapshot(_) => return,
        };
    }

    /// The messages of a snapshot. Memory grows with what has come, not with what was announced.
    fn read_on(&mut self, arriving: &mut Arriving) -> Result<(), FeedConnectError> {
        let mut heard = Instant::now();
        while arriving.left() > 0 {
            let Some(frame) = self.buffer.peek()? else {
                if self.receive()? {
                    heard = Instant::now();
                } else {
                    self.await_more(heard)?;
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
        Ok(())
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

    /// Sleeps until something comes; an error once that has taken too long since `begin`.
    fn await_more(&self, begin: Instant) -> io::Result<()> {
        let left = self.timeout.checked_sub(begin.elapsed()).ok_or(io::ErrorKind::TimedOut)?;
        self.sleep(left);
        Ok(())
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
        let flags = RecvFlags::DONTWAIT | RecvFlags::PEEK;
        self.closed.is_some()
            || match recv(&self.socket, &mut [0_u8][..], flags) {
                Ok((count, _)) => count == 0,
                Err(error) => !matches!(error, Errno::AGAIN | Errno::INTR),
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::enums::SymbolStatus;
    use crate::message::feed::{FeedSymbolChanged, FeedTrade};
    use crate::message::stream::SessionClosed;
    use crate::text::Name;
    use crate::units::SymbolId;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::path::PathBuf;

    /// A line whose heartbeat is always due, to an engine that has sent a message and its last word, and
    /// has closed the connection.
    fn ended() -> FeedLine {
        let (near, mut far) = UnixStream::pair().unwrap();
        let options = FeedOptions::new(PathBuf::new(), Name::new("reader").unwrap());
        let line = FeedLine::new(near.into(), &options, Some(Duration::ZERO)).unwrap();
        let reason = CloseReason::FeedEnded.to_wire();
        far.write_all(bytemuck::bytes_of(&FeedTrade::default())).unwrap();
        let closed = SessionClosed { reason, ..Default::default() };
        far.write_all(bytemuck::bytes_of(&closed)).unwrap();
        line
    }

    fn is_last_word(error: &FeedConnectError) -> bool {
        matches!(error, FeedConnectError::Closed { reason: Some(CloseReason::FeedEnded) })
    }

    #[test]
    fn a_heartbeat_to_an_engine_that_has_ended_hides_nothing_that_it_said() {
        let (mut line, mut message) = (ended(), SlotWords::default());
        assert!(matches!(line.next(&mut message), Ok(Some(Came::Message))));
        assert!(is_last_word(&line.next(&mut message).unwrap_err()));
        assert!(is_last_word(&ended().snapshot().unwrap_err()), "nor does a request");
    }

    /// What comes of a snapshot that announces so many bytes, and of which one symbol comes.
    fn snapshot_of(bytes: u64) -> FeedConnectError {
        let (near, mut far) = UnixStream::pair().unwrap();
        let mut options = FeedOptions::new(PathBuf::new(), Name::new("reader").unwrap());
        options.snapshot_bytes_max = 1000;
        options.timeout = Duration::from_millis(20);
        let mut line = FeedLine::new(near.into(), &options, None).unwrap();
        let head = FeedSnapshot { bytes, symbols: 1, ..Default::default() };
        far.write_all(bytemuck::bytes_of(&head)).unwrap();
        far.write_all(bytemuck::bytes_of(&FeedSymbolChanged::default())).unwrap();
        line.snapshot().unwrap_err()
    }

    #[test]
    fn a_snapshot_is_as_long_as_it_says_and_no_longer_than_is_taken() {
        let symbol = size_of::<FeedSymbolChanged>() as u64;
        assert!(matches!(snapshot_of(1001), FeedConnectError::TooLong { bytes: 1001, most: 1000 }));
        assert!(matches!(snapshot_of(symbol - 8), FeedConnectError::Unexpected(_)));
        let late = snapshot_of(symbol + 8);
        assert!(matches!(late, FeedConnectError::Io(_)), "the rest never comes: {late}");
        assert!(matches!(snapshot_of(symbol), FeedConnectError::Snapshot(_)), "no status is 0");
    }

    #[test]
    fn a_snapshot_that_is_late_is_waited_for_and_not_asked_for_again() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let mut options = FeedOptions::new(PathBuf::new(), Name::new("reader").unwrap());
        options.timeout = Duration::from_millis(20);
        let mut line = FeedLine::new(near.into(), &options, None).unwrap();
        let is_late = |line: &mut FeedLine| {
            let late = line.snapshot().unwrap_err();
            assert!(
                matches!(&late, FeedConnectError::Io(error)
                if error.kind() == io::ErrorKind::TimedOut),
                "{late}"
            );
        };
        let bytes = 2 * size_of::<FeedSymbolChanged>() as u64;
        let head =
            FeedSnapshot { bytes, symbols: 2, sequence: FeedSequence(7), ..Default::default() };
        let symbol = |symbol| FeedSymbolChanged {
            symbol: SymbolId(symbol),
            status: SymbolStatus::Trading.to_wire(),
            ..Default::default()
        };
        is_late(&mut line);
        is_late(&mut line);
        far.write_all(bytemuck::bytes_of(&head)).unwrap();
        is_late(&mut line);
        far.write_all(bytemuck::bytes_of(&symbol(0))).unwrap();
        is_late(&mut line);
        far.write_all(bytemuck::bytes_of(&symbol(1))).unwrap();
        let books = line.snapshot().unwrap();
        assert_eq!(books.sequence(), FeedSequence(7));
        // What comes behind it is the next one's, which is asked for.
        is_late(&mut line);
        drop(line);
        let mut said = Vec::new();
        far.read_to_end(&mut said).unwrap();
        assert_eq!(said.len(), 2 * size_of::<FeedRequest>(), "two snapshots were asked for");
    }

    #[test]
    fn a_snapshot_may_take_for_ever() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let mut options = FeedOptions::new(PathBuf::new(), Name::new("reader").unwrap());
        options.timeout = Duration::MAX;
        let mut line = FeedLine::new(near.into(), &options, None).unwrap();
        let status = SymbolStatus::Trading.to_wire();
        let symbol = FeedSymbolChanged { status, ..Default::default() };
        let bytes = size_of::<FeedSymbolChanged>() as u64;
        let head = FeedSnapshot { bytes, symbols: 1, ..Default::default() };
        far.write_all(bytemuck::bytes_of(&head)).unwrap();
        far.write_all(bytemuck::bytes_of(&symbol)).unwrap();
        assert_eq!(line.snapshot().unwrap().symbols().len(), 1);
    }

    #[test]
    fn an_engine_of_which_nothing_comes_is_given_up_and_one_that_says_something_is_not() {
        let interval = Duration::from_millis(100);
        let (near, mut far) = UnixStream::pair().unwrap();
        let options = FeedOptions::new(PathBuf::new(), Name::new("reader").unwrap());
        let mut line = FeedLine::new(near.into(), &options, Some(interval)).unwrap();
        let mut message = SlotWords::default();
        let mut heard = Instant::now();
        for _ in 0..2 * SILENT_INTERVALS {
            std::thread::sleep(interval / 2);
            far.write_all(bytemuck::bytes_of(&Heartbeat::default())).unwrap();
            heard = Instant::now();
            assert!(matches!(line.next(&mut message), Ok(None)));
        }
        let error = loop {
            match line.next(&mut message) {
                Ok(None) => std::thread::yield_now(),
                Ok(came) => panic!("{came:?}"),
                Err(error) => break error,
            }
        };
        let is_silent =
            matches!(error, FeedConnectError::Closed { reason: Some(CloseReason::Silent) });
        assert!(is_silent && heard.elapsed() >= interval * SILENT_INTERVALS, "{error}");
    }
}
