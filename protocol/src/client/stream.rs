//! A session over TCP or a Unix socket: messages out, frames in, heartbeats. Called by
//! [`super::Sender`] and [`super::Receiver`], which two threads may hold; what they share is a lock that
//! is held for a copy, or for one system call that does not wait.

use super::receiver::{NOTICES_MAX, Notice, ReceiveError, Reply};
use super::sender::SendError;
use super::{Acknowledgement, ClientOptions};
use crate::framing::FrameBuffer;
use crate::message::decode::{self, DecodeError, Stream, disclose_into};
use crate::message::enums::CloseReason;
use crate::message::handshake::SILENT_INTERVALS;
use crate::message::stream::Heartbeat;
use crate::sync::EndFlag;
use crate::units::Position;
use crate::wait::WaitStrategy;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes that may wait for the socket; a command that finds no room is [`SendError::Full`].
const UNSENT_MAX: usize = 256 << 10;

/// Room for what came and is not read yet.
const RECEIVED_BYTES: usize = 256 << 10;

/// Replies handed on between two looks at the clock, for the heartbeats of who takes long with each.
const POLLS: u32 = 16;

/// Messages that are no replies, read by one poll at the most: an engine that says many of them would else hold
/// up who polls, and fill its memory, for as long as it goes on.
const NOTICES: u32 = 256;

/// Looks at the socket before the first sleep.
const LOOKS: u32 = 100;

/// Template ids of messages that are no events.
const STREAM_TEMPLATES: std::ops::RangeInclusive<u16> = 320..=339;

/// What both halves share.
pub(super) struct StreamLine {
    socket: OwnedFd,
    outgoing: Mutex<Outgoing>,
    /// Something waits for the socket: kept beside the lock so that a reader need not take it.
    has_unsent: AtomicBool,
    closed: EndFlag,
    heartbeat: Duration,
}

struct Outgoing {
    bytes: Vec<u8>,
    /// How many of them the socket has taken.
    sent: usize,
    last_sent: Instant,
}

impl StreamLine {
    /// Over a connected socket that does not block.
    pub(super) fn new(socket: OwnedFd, heartbeat: Duration) -> Self {
        let outgoing = Outgoing { bytes: Vec::new(), sent: 0, last_sent: Instant::now() };
        Self {
            socket,
            outgoing: Mutex::new(outgoing),
            has_unsent: AtomicBool::new(false),
            closed: EndFlag::new(),
            heartbeat,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Outgoing> {
        self.outgoing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_closed(&self) -> bool {
        self.closed.is_set()
    }

    fn close(&self) {
        self.closed.set();
    }

    pub(super) fn stage(&self, message: &[u8]) -> Result<(), SendError> {
        if self.is_closed() {
            return Err(SendError::Disconnected);
        }
        let mut outgoing = self.lock();
        if outgoing.bytes.len() - outgoing.sent + message.len() > UNSENT_MAX {
            self.flush_locked(&mut outgoing);
        }
        if outgoing.bytes.len() - outgoing.sent + message.len() > UNSENT_MAX {
            return Err(SendError::Full);
        }
        outgoing.bytes.extend_from_slice(message);
        Ok(())
    }

    /// Gives the socket as much as it takes.
    pub(super) fn flush(&self) {
        self.flush_locked(&mut self.lock());
    }

    fn flush_locked(&self, outgoing: &mut Outgoing) {
        while outgoing.sent < outgoing.bytes.len() && !self.is_closed() {
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match send(&self.socket, &outgoing.bytes[outgoing.sent..], flags) {
                Ok(count) => {
                    outgoing.sent += count;
                    outgoing.last_sent = Instant::now();
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => self.close(),
            }
        }
        if outgoing.sent == outgoing.bytes.len() {
            outgoing.bytes.clear();
            outgoing.sent = 0;
        } else if outgoing.sent > UNSENT_MAX / 2 {
            outgoing.bytes.drain(..outgoing.sent);
            outgoing.sent = 0;
        }
        self.has_unsent.store(!outgoing.bytes.is_empty(), Ordering::Relaxed);
    }

    /// Sends what waits, and a heartbeat if nothing was sent for so long.
    fn tend(&self) {
        let mut outgoing = self.lock();
        if outgoing.bytes.is_empty() && outgoing.last_sent.elapsed() >= self.heartbeat {
            outgoing.bytes.extend_from_slice(bytemuck::bytes_of(&Heartbeat::default()));
        }
        // What is staged and not published goes too: order is all that counts.
        if !outgoing.bytes.is_empty() {
            self.flush_locked(&mut outgoing);
        }
    }
}

/// The receiving half.
pub(super) struct StreamReceiver {
    line: Arc<StreamLine>,
    buffer: FrameBuffer,
    notices: VecDeque<Notice>,
    durable: Position,
    acknowledgement: Acknowledgement,
    wait: WaitStrategy,
    /// Replies that were handed on. Wraps.
    handed_on: u32,
    /// When the line was last tended.
    tended: Instant,
    /// Something came since the socket was last found empty.
    has_come: bool,
    /// When it was last found empty behind something that had come.
    heard: Instant,
}

impl StreamReceiver {
    pub(super) fn new(line: Arc<StreamLine>, options: &ClientOptions, durable: Position) -> Self {
        Self {
            line,
            buffer: FrameBuffer::new(RECEIVED_BYTES),
            notices: VecDeque::new(),
            durable,
            acknowledgement: options.acknowledgement,
            wait: options.wait,
            handed_on: 0,
            tended: Instant::now(),
            has_come: false,
            heard: Instant::now(),
        }
    }

    pub(super) fn poll_into(&mut self, reply: &mut Reply) -> Result<bool, ReceiveError> {
        let mut passed_by = 0;
        loop {
            while let Some(frame) = self.buffer.peek()? {
                if passed_by == NOTICES {
                    return Ok(false);
                }
                let length = frame.len();
                let template = decode::header(frame)?.template_id;
                if STREAM_TEMPLATES.contains(&template) {
                    let notice = Self::read_notice(frame, &mut self.durable)?;
                    if notice.is_some() && self.notices.len() >= NOTICES_MAX {
                        return Err(ReceiveError::Notices);
                    }
                    self.notices.extend(notice);
                    self.buffer.take(length);
                    passed_by += 1;
                    continue;
                }
                disclose_into(frame, &mut reply.envelope, &mut reply.event)?;
                self.buffer.take(length);
                if self.acknowledgement == Acknowledgement::Durable {
                    self.durable = self.durable.max(reply.envelope.position);
                }
                self.handed_on = self.handed_on.wrapping_add(1);
                if self.handed_on.is_multiple_of(POLLS) {
                    self.tend_sometimes(Instant::now());
                }
                return Ok(true);
            }
            if !self.receive()? {
                return Ok(false);
            }
        }
    }

    pub(super) fn next_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    fn read_notice(frame: &[u8], durable: &mut Position) -> Result<Option<Notice>, DecodeError> {
        Ok(match decode::stream(frame)? {
            Stream::Heartbeat(heartbeat) => {
                *durable = heartbeat.durable.max(*durable);
                None
            }
            Stream::SessionClosed(closed) => {
                Some(Notice::Closed(CloseReason::from_wire(closed.reason)))
            }
            Stream::ReplayEnd(end) => Some(Notice::Replayed(*end)),
            Stream::BalanceState(balance) => Some(Notice::Balance(*balance)),
            Stream::OrderState(order) => Some(Notice::Order(*order)),
            Stream::StateEnd(end) => Some(Notice::State(*end)),
            other @ (Stream::Logout(_) | Stream::ReplayRequest(_) | Stream::StateRequest(_)) => {
                let template = decode::header(other.bytes())?.template_id;
                return Err(DecodeError::Template { template });
            }
        })
    }

    /// Reads what the socket has; false when it has nothing.
    fn receive(&mut self) -> Result<bool, ReceiveError> {
        self.receive_by(|socket, space| {
            recv(socket, space, RecvFlags::DONTWAIT).map(|(count, _)| count)
        })
    }

    /// The same by this system call.
    fn receive_by(
        &mut self,
        mut read: impl FnMut(&OwnedFd, &mut [u8]) -> Result<usize, Errno>,
    ) -> Result<bool, ReceiveError> {
        loop {
            // A line that takes nothing more may hold what the engine said before it ended. Whether it is one is
            // looked at first: one that the sender finds behind the read may have got its last replies meanwhile.
            let was_closed = self.line.is_closed();
            match read(&self.line.socket, self.buffer.space()) {
                Ok(0) => break,
                Ok(count) => {
                    self.buffer.filled(count);
                    self.has_come = true;
                    // Who always finds something would else say nothing, and count as silent.
                    self.tend_sometimes(Instant::now());
                    return Ok(true);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if !was_closed => {
                    let now = Instant::now();
                    if self.is_silent(now) {
                        self.notices.push_back(Notice::Closed(Some(CloseReason::Silent)));
                        break;
                    }
                    self.tend_sometimes(now);
                    return Ok(false);
                }
                Err(_) => break,
            }
        }
        self.line.close();
        Err(ReceiveError::Disconnected)
    }

    /// True if nothing came for so long that the engine, which says something in each interval, is gone or
    /// out of reach. The socket has nothing at this moment.
    fn is_silent(&mut self, now: Instant) -> bool {
        if std::mem::take(&mut self.has_come) {
            self.heard = now;
        }
        now.duration_since(self.heard) >= self.line.heartbeat * SILENT_INTERVALS
    }

    fn tend_sometimes(&mut self, now: Instant) {
        if self.line.has_unsent.load(Ordering::Relaxed)
            || now.duration_since(self.tended) >= self.line.heartbeat / 4
        {
            self.tended = now;
            self.line.tend();
        }
    }

    pub(super) const fn durable(&self) -> Position {
        self.durable
    }

    pub(super) fn wait(&mut self, limit: Duration) {
        let begin = Instant::now();
        let mut looks = 0_u32;
        loop {
            if !self.buffer.peek().is_ok_and(|frame| frame.is_none()) || self.line.is_closed() {
                return;
            }
            // An end is told by the next poll.
            if self.receive().unwrap_or(true) {
                continue;
            }
            let Some(left) = limit.checked_sub(begin.elapsed()) else { return };
            looks = looks.saturating_add(1);
            if self.wait == WaitStrategy::Adaptive && looks > LOOKS {
                self.sleep(left.min(self.line.heartbeat / 4));
            }
        }
    }

    fn sleep(&self, limit: Duration) {
        let mut wanted = PollFlags::IN;
        wanted.set(PollFlags::OUT, self.line.has_unsent.load(Ordering::Relaxed));
        let timeout = Timespec::try_from(limit).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        // Whatever comes of it is looked at again.
        let _ready = poll(&mut [PollFd::new(&self.line.socket, wanted)], Some(&timeout));
    }

    pub(super) fn is_connected(&self) -> bool {
        if !self.line.is_closed() {
            let mut byte = [0];
            let flags = RecvFlags::DONTWAIT | RecvFlags::PEEK;
            let ended = match recv(&self.line.socket, &mut byte[..], flags) {
                Ok((count, _)) => count == 0,
                Err(error) => !matches!(error, Errno::AGAIN | Errno::INTR),
            };
            if ended {
                self.line.close();
            }
        }
        !self.line.is_closed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::command::NewOrder;
    use crate::message::decode::{ENVELOPED_BYTES_MAX, enclose};
    use crate::message::enums::{Lane, Role};
    use crate::message::event::{Envelope, Trade};
    use crate::message::stream::{BalanceState, SessionClosed, StateEnd};
    use crate::patience::{PATIENCE, Wait};
    use crate::text::Name;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::path::PathBuf;

    impl StreamReceiver {
        fn poll(&mut self) -> Result<Option<Reply>, ReceiveError> {
            let mut reply = Reply::default();
            Ok(self.poll_into(&mut reply)?.then_some(reply))
        }
    }

    /// An engine's end, and a line to it with this interval.
    fn over_stream(interval: Duration) -> (UnixStream, Arc<StreamLine>, StreamReceiver) {
        let (near, far) = UnixStream::pair().unwrap();
        far.set_nonblocking(true).unwrap();
        let line = Arc::new(StreamLine::new(near.into(), interval));
        let name = Name::new("client").unwrap();
        let options = ClientOptions::new(PathBuf::new(), Role::Trader, Lane::Hot, name);
        let receiver = StreamReceiver::new(Arc::clone(&line), &options, Position(0));
        (far, line, receiver)
    }

    /// Says so many events.
    fn say(far: &mut UnixStream, events: usize) {
        let mut enclosed = [0; ENVELOPED_BYTES_MAX];
        let trade = Trade::default();
        let envelope = Envelope::default();
        let length = enclose(&envelope, bytemuck::bytes_of(&trade), &mut enclosed).unwrap();
        far.write_all(&enclosed[..length].repeat(events)).unwrap();
    }

    /// Bytes that have come to the engine.
    fn come_to(far: &mut UnixStream) -> usize {
        let mut buffer = [0; 1 << 16];
        std::iter::from_fn(|| far.read(&mut buffer).ok().filter(|&count| count > 0)).sum()
    }

    #[test]
    fn who_always_finds_something_says_something_all_the_same() {
        // A heartbeat is always due, and one look that finds nothing would be the end.
        let (mut far, _line, mut receiver) = over_stream(Duration::ZERO);
        for _ in 0..3 {
            say(&mut far, 2);
            for _ in 0..2 {
                assert!(matches!(receiver.poll(), Ok(Some(_))));
            }
            assert!(come_to(&mut far) >= size_of::<Heartbeat>(), "it counts as silent");
        }
        // What came at once is long in the reading.
        say(&mut far, 3 * POLLS as usize);
        assert!(matches!(receiver.poll(), Ok(Some(_))));
        come_to(&mut far);
        for _ in 0..2 {
            for _ in 0..POLLS {
                assert!(matches!(receiver.poll(), Ok(Some(_))));
            }
            assert!(come_to(&mut far) >= size_of::<Heartbeat>(), "it counts as silent");
        }
    }

    #[test]
    fn one_poll_reads_so_many_notices_and_the_next_one_goes_on() {
        let (mut far, _line, mut receiver) = over_stream(10 * PATIENCE);
        let balance = BalanceState::default();
        far.write_all(&bytemuck::bytes_of(&balance).repeat(1000)).unwrap();
        say(&mut far, 1);
        let (wait, mut notices, mut polls) = (Wait::begin(), 0, 0);
        while receiver.poll().unwrap().is_none() {
            wait.go_on("the event does not come");
            polls += 1;
            let read = receiver.notices.drain(..).count();
            assert!(read < 1000, "all of them in one poll");
            notices += read;
            // There is no reason to sleep.
            receiver.wait(Duration::MAX);
        }
        assert!(polls > 1);
        assert_eq!(notices + receiver.notices.len(), 1000);
    }

    #[test]
    fn of_what_nobody_takes_so_much_is_kept_and_the_rest_waits_until_some_is_taken() {
        let (mut far, line, mut receiver) = over_stream(10 * PATIENCE);
        far.set_nonblocking(false).unwrap();
        let engine = std::thread::spawn(move || {
            let said = bytemuck::bytes_of(&BalanceState::default()).repeat(NOTICES_MAX / 64);
            (0..64).for_each(|_| far.write_all(&said).unwrap());
            // It says that it lives, which is nothing to be kept.
            far.write_all(bytemuck::bytes_of(&Heartbeat::default())).unwrap();
            far.write_all(bytemuck::bytes_of(&BalanceState::default())).unwrap();
            say(&mut far, 1);
            far
        });
        let wait = Wait::begin();
        let error = loop {
            match receiver.poll() {
                Ok(None) => wait.go_on("there is no end of what is kept"),
                Ok(Some(_)) => panic!("all is kept"),
                Err(error) => break error,
            }
        };
        let _far = crate::patience::join(engine, "the engine");
        assert_eq!((error, receiver.notices.len()), (ReceiveError::Notices, NOTICES_MAX));
        assert_eq!(receiver.poll().unwrap_err(), error, "until some is taken");
        assert!(!line.is_closed());
        assert!(receiver.next_notice().is_some());
        assert!(matches!(receiver.poll(), Ok(Some(_))));
        assert_eq!(receiver.notices.len(), NOTICES_MAX);
    }

    #[test]
    fn what_waits_for_the_socket_leaves_also_while_something_always_comes() {
        let (mut far, line, mut receiver) = over_stream(10 * PATIENCE);
        while !line.has_unsent.load(Ordering::Relaxed) {
            line.stage(bytemuck::bytes_of(&NewOrder::default())).unwrap();
            line.flush();
        }
        come_to(&mut far);
        say(&mut far, 1);
        assert!(matches!(receiver.poll(), Ok(Some(_))));
        assert!(come_to(&mut far) > 0, "it is left where it was");
        assert!(!line.has_unsent.load(Ordering::Relaxed));
    }

    #[test]
    fn a_wait_may_have_no_limit() {
        let (mut far, _line, mut receiver) = over_stream(10 * PATIENCE);
        say(&mut far, 1);
        receiver.wait(Duration::MAX);
        assert!(matches!(receiver.poll(), Ok(Some(_))));
    }

    #[test]
    fn a_command_to_an_engine_that_has_ended_hides_nothing_that_it_said() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let line = Arc::new(StreamLine::new(near.into(), Duration::from_secs(60)));
        let name = Name::new("client").unwrap();
        let options = ClientOptions::new(PathBuf::new(), Role::Trader, Lane::Hot, name);
        let mut receiver = StreamReceiver::new(Arc::clone(&line), &options, Position(0));
        let reason = CloseReason::KeyRevoked.to_wire();
        let closed = SessionClosed { reason, ..Default::default() };
        far.write_all(bytemuck::bytes_of(&closed)).unwrap();
        drop(far);
        line.stage(bytemuck::bytes_of(&NewOrder::default())).unwrap();
        line.flush();
        assert!(line.is_closed(), "nobody takes the command");
        assert!(matches!(receiver.poll(), Err(ReceiveError::Disconnected)));
        assert_eq!(receiver.next_notice(), Some(Notice::Closed(Some(CloseReason::KeyRevoked))));
    }

    #[test]
    fn a_sender_that_finds_the_end_behind_an_empty_look_hides_nothing_that_came_before_it() {
        let (far, line, mut receiver) = over_stream(10 * PATIENCE);
        let mut engine = Some(far);
        let received = receiver.receive_by(|socket, space| {
            let found = recv(socket, space, RecvFlags::DONTWAIT).map(|(count, _)| count);
            assert_eq!(found, Err(Errno::AGAIN));
            // All of this happens between the receiver's look at the socket and what it makes of it.
            let mut far = engine.take().expect("one look");
            say(&mut far, 2);
            drop(far);
            line.stage(bytemuck::bytes_of(&NewOrder::default())).unwrap();
            line.flush();
            assert!(line.is_closed(), "nobody takes the command");
            found
        });
        assert_eq!(received, Ok(false), "there is more to be read");
        for _ in 0..2 {
            assert!(matches!(receiver.poll(), Ok(Some(_))));
        }
        assert!(matches!(receiver.poll(), Err(ReceiveError::Disconnected)));
    }

    #[test]
    fn an_engine_of_which_nothing_came_for_three_intervals_is_given_up() {
        let (near, mut far) = UnixStream::pair().unwrap();
        // However long the test stands still, it is less than one of them.
        let interval = 10 * PATIENCE;
        let line = Arc::new(StreamLine::new(near.into(), interval));
        let name = Name::new("client").unwrap();
        let options = ClientOptions::new(PathBuf::new(), Role::Trader, Lane::Hot, name);
        let mut receiver = StreamReceiver::new(line, &options, Position(0));
        let long_ago = Instant::now() - 3 * interval;
        // What came while nobody looked is a sign of life, however long ago the last look was.
        receiver.heard = long_ago;
        far.write_all(bytemuck::bytes_of(&Heartbeat::default())).unwrap();
        assert!(matches!(receiver.poll(), Ok(None)));
        receiver.heard = long_ago + interval;
        assert!(matches!(receiver.poll(), Ok(None)), "two intervals");
        assert!(receiver.is_connected());
        receiver.heard = long_ago;
        assert!(matches!(receiver.poll(), Err(ReceiveError::Disconnected)));
        assert!(!receiver.is_connected());
        assert_eq!(receiver.next_notice(), Some(Notice::Closed(Some(CloseReason::Silent))));
        assert_eq!(receiver.next_notice(), None);
        assert!(matches!(receiver.poll(), Err(ReceiveError::Disconnected)), "for good");
        assert_eq!(receiver.next_notice(), None, "and said once");
    }

    /// A receiver of a session with this acknowledgement.
    fn acknowledged(acknowledgement: Acknowledgement) -> (UnixStream, StreamReceiver) {
        let (far, line, _) = over_stream(10 * PATIENCE);
        let name = Name::new("client").unwrap();
        let mut options = ClientOptions::new(PathBuf::new(), Role::Trader, Lane::Hot, name);
        options.acknowledgement = acknowledgement;
        (far, StreamReceiver::new(line, &options, Position(64)))
    }

    #[test]
    fn only_who_waits_for_the_disk_takes_a_reply_for_what_is_durable() {
        for (acknowledgement, replied) in [
            (Acknowledgement::Appended, [64, 512, 512]),
            (Acknowledgement::Durable, [640, 640, 640]),
        ] {
            let (mut far, mut receiver) = acknowledged(acknowledgement);
            assert_eq!(receiver.durable(), Position(64));
            let reply = |far: &mut UnixStream, position| {
                let envelope = Envelope { position: Position(position), ..Default::default() };
                let mut enclosed = [0; ENVELOPED_BYTES_MAX];
                let trade = Trade::default();
                let length = enclose(&envelope, bytemuck::bytes_of(&trade), &mut enclosed).unwrap();
                far.write_all(&enclosed[..length]).unwrap();
            };
            let beat = |far: &mut UnixStream, durable| {
                let heartbeat = Heartbeat { durable: Position(durable), ..Default::default() };
                far.write_all(bytemuck::bytes_of(&heartbeat)).unwrap();
            };
            reply(&mut far, 640);
            assert!(matches!(receiver.poll(), Ok(Some(_))));
            assert_eq!(receiver.durable().0, replied[0], "{acknowledgement:?}");
            // It never goes back, whatever comes.
            for (durable, expected) in [(512, replied[1]), (256, replied[2]), (1024, 1024)] {
                beat(&mut far, durable);
                assert!(matches!(receiver.poll(), Ok(None)));
                assert_eq!(receiver.durable().0, expected, "{acknowledgement:?} {durable}");
            }
            reply(&mut far, 128);
            assert!(matches!(receiver.poll(), Ok(Some(_))));
            assert_eq!(receiver.durable().0, 1024, "{acknowledgement:?}");
        }
    }

    #[test]
    fn what_finds_no_room_is_refused_and_the_rest_leaves_whole_and_in_order() {
        let (mut far, line, _receiver) = over_stream(10 * PATIENCE);
        let mut order = NewOrder::default();
        let bytes = size_of::<NewOrder>();
        let mut stage = |correlation| {
            order.command.correlation = correlation;
            line.stage(bytemuck::bytes_of(&order))
        };
        let (mut staged, mut come) = (0_u64, Vec::new());
        let mut buffer = vec![0; 100_000];
        for _ in 0..20 {
            while stage(staged).is_ok() {
                staged += 1;
            }
            assert_eq!(stage(staged), Err(SendError::Full));
            let outgoing = line.lock();
            let waiting = outgoing.bytes.len() - outgoing.sent;
            assert!(waiting <= UNSENT_MAX && waiting + bytes > UNSENT_MAX, "{waiting}");
            assert!(outgoing.bytes.len() <= 2 * UNSENT_MAX, "what has left is not kept");
            drop(outgoing);
            let count = far.read(&mut buffer).unwrap();
            come.extend_from_slice(&buffer[..count]);
        }
        while line.has_unsent.load(Ordering::Relaxed) {
            line.flush();
            while let Ok(count) = far.read(&mut buffer) {
                come.extend_from_slice(&buffer[..count]);
            }
        }
        assert_eq!(come.len(), staged as usize * bytes);
        for (number, order) in come.chunks_exact(bytes).enumerate() {
            let order: NewOrder = bytemuck::pod_read_unaligned(order);
            assert_eq!(order.command.correlation, number as u64);
        }
        assert!(stage(staged).is_ok());
    }

    #[test]
    fn a_heartbeat_leaves_when_nothing_else_has_for_an_interval_and_not_before() {
        let interval = 10 * PATIENCE;
        let (mut far, line, _receiver) = over_stream(interval);
        line.tend();
        assert_eq!(come_to(&mut far), 0, "its interval is not over");
        line.lock().last_sent = Instant::now() - interval;
        line.tend();
        assert_eq!(come_to(&mut far), size_of::<Heartbeat>());
        line.tend();
        assert_eq!(come_to(&mut far), 0, "it was just sent");
        // What waits is a sign of life itself.
        line.lock().last_sent = Instant::now() - interval;
        line.stage(bytemuck::bytes_of(&NewOrder::default())).unwrap();
        line.tend();
        assert_eq!(come_to(&mut far), size_of::<NewOrder>());
        line.tend();
        assert_eq!(come_to(&mut far), 0);
    }

    #[test]
    fn notices_are_told_in_the_order_in_which_they_came() {
        let (mut far, _line, mut receiver) = over_stream(10 * PATIENCE);
        for correlation in 1..=3 {
            let end = StateEnd { correlation, ..Default::default() };
            far.write_all(bytemuck::bytes_of(&end)).unwrap();
        }
        assert!(matches!(receiver.poll(), Ok(None)));
        receiver.heard = Instant::now() - 30 * PATIENCE;
        assert!(matches!(receiver.poll(), Err(ReceiveError::Disconnected)));
        for correlation in 1..=3 {
            let told = receiver.next_notice();
            let Some(Notice::State(end)) = told else { panic!("{told:?}") };
            assert_eq!(end.correlation, correlation);
        }
        assert_eq!(receiver.next_notice(), Some(Notice::Closed(Some(CloseReason::Silent))));
    }
}
