//! The receiving half of a session over shared memory. Called by [`super::Receiver`].

use super::receiver::{Bell, DiskBells, ReceiveError, Reply};
use super::{Acknowledgement, Line};
use crate::log::control::LogState;
use crate::message::decode::{Event, disclose_into};
use crate::ring::{Alive, Consumer, MessageBuffer, SharedInput, Signals};
use crate::shm::SharedReadOnly;
use crate::units::Position;
use crate::wait::{EventCounter, ParkingLine, Waiter};
use std::collections::VecDeque;
use std::iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Replies held back for the durable watermark. When they are as many, the ring is not read and the
/// engine in turn takes no more commands of the session.
pub(super) const HELD_MAX: usize = 65_536;

/// Longest sleep before the socket is looked at again: an engine that is gone rings no bell. Shorter than any interval in
/// which an engine that watches has to see something move.
const LINE_CHECK: Duration = Duration::from_millis(100);

/// After the connection's end, how long replies that are held back are waited for to become durable: an engine that
/// is gone writes nothing more. After a logout they are waited for as long as the engine lives.
const DISK_LIMIT: Duration = Duration::from_millis(300);

/// An engine whose heartbeat does not move for so long is gone or stands still: it moves twice a second.
pub(super) const SILENCE: Duration = Duration::from_secs(10);

/// Most polls that find nothing between two looks at the clock, for a look at the socket: who polls may never wait.
/// There are fewer between those of a client that polls seldom.
pub(super) const POLLS: u32 = 64;

/// The log's watermarks, as the engine publishes them in its control page.
pub(super) struct Watermarks {
    pub(super) durable: SharedReadOnly<AtomicU64>,
    pub(super) durable_event: SharedReadOnly<AtomicU32>,
    pub(super) state: SharedReadOnly<AtomicU32>,
    pub(super) heartbeat_ns: SharedReadOnly<AtomicU64>,
}

/// Reads the reply ring and holds replies back for the durable watermark.
pub(super) struct RingReceiver {
    pub(super) input: Consumer<SharedInput>,
    pub(super) signals: Signals,
    /// What the engine sees move, if it watches.
    pub(super) alive: Option<Alive>,
    pub(super) line: Arc<Line>,
    pub(super) watermarks: Watermarks,
    pub(super) acknowledgement: Acknowledgement,
    /// Knows from wait to wait whether pauses are in vain.
    pub(super) waiter: Waiter,
    pub(super) held: VecDeque<Reply>,
    pub(super) buffer: Box<MessageBuffer>,
    /// The keeper rings whether or not somebody is parked, so this flag is read by nobody.
    pub(super) parked_for_durable: AtomicU32,
    /// The bell that this process rings.
    pub(super) own_bell: Arc<AtomicU32>,
    /// Polls that have found nothing since one looked at the clock.
    pub(super) polls: u32,
    /// So many may, before the next look.
    pub(super) polls_between: u32,
    /// When a poll last looked at the socket.
    pub(super) checked: Instant,
    /// Heartbeat and watermark, added up, as they were last seen, and since when they are that.
    pub(super) beat: (u64, Instant),
    /// When they were last looked at.
    pub(super) looked: Instant,
    /// The line was closed by this side, for they stood still.
    pub(super) was_silent: bool,
    /// What is wrong behind replies that are handed out first: bytes that are no message come no second time.
    pub(super) unreported: Option<ReceiveError>,
    /// When the connection was found to have ended while replies were held back.
    pub(super) ended: Option<Instant>,
}

impl RingReceiver {
    #[inline]
    pub(super) fn poll_into(&mut self, reply: &mut Reply) -> Result<bool, ReceiveError> {
        self.show_alive();
        if self.acknowledgement == Acknowledgement::Appended {
            return self.take_into(reply);
        }
        match self.poll_durable()? {
            Some(next) => *reply = next,
            None => return Ok(false),
        }
        Ok(true)
    }

    /// Shows the engine, if it watches, that this program goes on: by each look, which may find something for ever.
    #[inline]
    fn show_alive(&self) {
        if let Some(alive) = &self.alive {
            alive.advance();
        }
    }

    /// The next reply that is on disk.
    fn poll_durable(&mut self) -> Result<Option<Reply>, ReceiveError> {
        let mut ended = self.unreported.take();
        let mut room = Reply::default();
        while self.held.len() < HELD_MAX && ended.is_none() {
            match self.take_into(&mut room) {
                Ok(true) => self.held.push_back(room),
                Ok(false) => return Ok(self.next_durable()),
                Err(error) => ended = Some(error),
            }
        }
        if ended.is_none() {
            // Without room the ring is not read, and an engine that is gone makes none.
            self.check_line_sometimes();
            ended = self.line.is_closed().then_some(ReceiveError::Disconnected);
        }
        match (self.next_durable(), ended) {
            (None, Some(error)) if self.is_over(error) => Err(error),
            (reply, error) => {
                self.unreported = error.filter(|&error| error != ReceiveError::Disconnected);
                Ok(reply)
            }
        }
    }

    /// True if what is held back never comes: the engine answers a logout before the disk does, and goes on
    /// writing behind the connection's end.
    fn is_over(&mut self, error: ReceiveError) -> bool {
        error != ReceiveError::Disconnected
            || self.held.is_empty()
            || self.ended.get_or_insert_with(Instant::now).elapsed() >= DISK_LIMIT
                && !(self.line.logged_out.load(Ordering::Relaxed)
                    && self.is_writing()
                    && self.is_alive())
    }

    /// The engine's log goes on.
    fn is_writing(&self) -> bool {
        // SYNC: orders nothing: the watermark is looked at again, whatever this says.
        LogState::from_word(self.watermarks.state.view().load_relaxed()) == Some(LogState::Running)
    }

    /// The engine's heartbeat has moved not long ago.
    fn is_alive(&mut self) -> bool {
        // SYNC: orders nothing. An engine that ends beats no more and may still write.
        let beat = self.watermarks.heartbeat_ns.view().load_relaxed();
        let sign = beat.wrapping_add(self.durable().0);
        let now = Instant::now();
        // Who has not looked for so long may have been stopped together with the engine.
        if sign != self.beat.0 || now.duration_since(self.looked) >= SILENCE {
            self.beat = (sign, now);
        }
        self.looked = now;
        now.duration_since(self.beat.1) < SILENCE
    }

    /// Looks whether the engine is there: at its socket, and at its heartbeat.
    fn check_line(&mut self) {
        if !self.line.check() && !self.is_alive() {
            self.was_silent = true;
            self.line.closed.set();
        }
    }

    fn next_durable(&mut self) -> Option<Reply> {
        while let Some(first) = self.held.front() {
            // The state is looked at first: behind a failure the watermark moves no more.
            let has_failed = self.has_failed();
            let durable = self.durable();
            let is_on_disk = first.envelope.position <= durable;
            // What a notice is about may be on disk though it is not itself.
            let is_told = is_on_disk
                || has_failed
                    && matches!(first.event.event(), Ok(Event::Gap(gap)) if gap.from < durable);
            if is_told || !has_failed {
                return if is_told { self.held.pop_front() } else { None };
            }
            // It never comes, and must not hold up what says so.
            self.held.pop_front();
        }
        None
    }

    /// The engine's log has failed.
    fn has_failed(&self) -> bool {
        // SYNC: pairs with the keeper's release store, which lies behind its last one of the watermark.
        LogState::from_word(self.watermarks.state.view().load_acquire())
            == Some(LogState::LogFailed)
    }

    #[inline]
    fn take_into(&mut self, reply: &mut Reply) -> Result<bool, ReceiveError> {
        let Some(length) = self.input.poll(&mut self.buffer)? else {
            self.check_line_sometimes();
            // What the engine wrote before it closed is read first: look again after the flag.
            if self.line.is_closed() && !self.input.has_messages() {
                return Err(ReceiveError::Disconnected);
            }
            return Ok(false);
        };
        disclose_into(self.buffer.bytes(length), &mut reply.envelope, &mut reply.event)?;
        Ok(true)
    }

    fn check_line_sometimes(&mut self) {
        if self.polls < self.polls_between {
            self.polls += 1;
            return;
        }
        self.polls = 0;
        if self.checked.elapsed() < LINE_CHECK {
            self.polls_between = POLLS.min(2 * self.polls_between + 1);
        } else {
            self.polls_between /= 4;
            self.checked = Instant::now();
            self.check_line();
        }
    }

    pub(super) fn durable(&self) -> Position {
        // The pair is the keeper's release store of the watermark.
        Position(self.watermarks.durable.view().load_acquire())
    }

    pub(super) fn wait(&mut self, limit: Duration) {
        self.show_alive();
        let mut waiter = self.waiter;
        let ready = || self.is_ready();
        let ring = self.signals.line();
        let keeper =
            ParkingLine::new(&self.parked_for_durable, self.watermarks.durable_event.view());
        let slice = limit.min(LINE_CHECK);
        let found = if self.held.is_empty() {
            waiter.wait_until(iter::once(ring), slice, ready)
        } else {
            waiter.wait_until([ring, keeper].into_iter(), slice, ready)
        };
        self.waiter = waiter;
        if !found {
            self.check_line();
        }
    }

    /// A poll may hand something on, or hold more back.
    pub(super) fn is_ready(&self) -> bool {
        let first_held = self.held.front().map(|reply| reply.envelope.position);
        let has_room = self.held.len() < HELD_MAX;
        (has_room && self.input.has_messages())
            || first_held.is_some_and(|first| self.durable() >= first)
    }

    pub(super) fn bell(&self) -> Bell {
        let is_durable = self.acknowledgement == Acknowledgement::Durable;
        Bell {
            doorbell: self.signals.peer_doorbell(),
            disk: is_durable.then(|| DiskBells {
                durable_event: self.watermarks.durable_event.clone(),
                own: Arc::clone(&self.own_bell),
            }),
        }
    }

    pub(super) fn holds_back(&self) -> bool {
        !self.held.is_empty()
    }

    pub(super) fn ring(&self) {
        EventCounter::new(&self.own_bell).advance();
    }

    pub(super) fn arm(&self) -> bool {
        self.signals.line().raise();
        self.is_ready()
    }

    pub(super) fn disarm(&self) {
        self.signals.line().lower();
    }

    pub(super) fn is_connected(&self) -> bool {
        !self.line.check()
    }
}
