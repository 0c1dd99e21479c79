//! Mail between threads of the engine: rare, so it may allocate. Its reader looks at one atomic number per turn
//! and goes further only when there is mail. Who puts and who takes never wait for each other: either thread may lose
//! its core in the middle of a letter, and the duty thread has orders to serve meanwhile. Here are the letters between
//! duty thread and gateway.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use touchline_protocol::message::ORDER_FILLED_MINOR;
use touchline_protocol::message::command::{LOGON_BRIEF, LOGON_TERSE, Logon};
use touchline_protocol::message::enums::{CloseReason, RejectReason};
use touchline_protocol::message::event::SessionStarted;
use touchline_protocol::message::handshake::Hello;
use touchline_protocol::ring::SessionEnd;
use touchline_protocol::units::{AccountId, Epoch, Position, SessionId};

/// A queue of letters in one direction: a chain with a lock at each of its ends. Only threads that put wait for each
/// other, and threads that take.
#[derive(Debug)]
pub struct Mailbox<T> {
    /// The link that was taken last, which is empty: behind it comes the oldest letter.
    taken: Mutex<Arc<Link<T>>>,
    /// The newest link.
    newest: Mutex<Arc<Link<T>>>,
    waiting: AtomicUsize,
}

/// A place in the chain.
#[derive(Debug)]
struct Link<T> {
    /// Touched by who makes the link, and then by who takes from it.
    letter: Mutex<Option<T>>,
    /// Set once, by who puts: looking at it waits for nobody.
    next: OnceLock<Arc<Self>>,
}

impl<T> Link<T> {
    fn with(letter: Option<T>) -> Arc<Self> {
        Arc::new(Self { letter: Mutex::new(letter), next: OnceLock::new() })
    }
}

impl<T> Default for Mailbox<T> {
    fn default() -> Self {
        let empty = Link::with(None);
        Self {
            taken: Mutex::new(Arc::clone(&empty)),
            newest: Mutex::new(empty),
            waiting: AtomicUsize::new(0),
        }
    }
}

impl<T> Mailbox<T> {
    /// Puts a letter in; the caller wakes the reader.
    pub fn put(&self, letter: T) {
        let link = Link::with(Some(letter));
        let mut newest = lock(&self.newest);
        let set = newest.next.set(Arc::clone(&link));
        debug_assert!(set.is_ok(), "nothing follows the newest");
        *newest = link;
        // SYNC: behind the letter, so that whoever counts it finds it, and so that it is counted only once it is there.
        self.waiting.fetch_add(1, Ordering::Release);
    }

    /// Letters, at this moment.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Acquire)
    }

    /// True when there may be a letter.
    pub fn has_mail(&self) -> bool {
        self.waiting() != 0
    }

    /// Takes the oldest letter.
    pub fn take(&self) -> Option<T> {
        if !self.has_mail() {
            return None;
        }
        let mut taken = lock(&self.taken);
        // Another thread may have taken it since. One that is there and not counted yet stays: it would be counted off
        // before it is counted.
        if !self.has_mail() {
            return None;
        }
        let link = Arc::clone(taken.next.get()?);
        let letter = lock(&link.letter).take();
        *taken = link;
        self.waiting.fetch_sub(1, Ordering::Release);
        letter
    }

    /// Takes as a thread does that loses its core over it: nobody else takes before this is dropped.
    #[cfg(test)]
    pub(crate) fn hold_taking(&self) -> impl Drop {
        lock(&self.taken)
    }

    /// The same of putting.
    #[cfg(test)]
    pub(crate) fn hold_putting(&self) -> impl Drop {
        lock(&self.newest)
    }
}

impl<T> Drop for Mailbox<T> {
    fn drop(&mut self) {
        // Link by link: a long chain that drops itself goes as deep into the stack as it is long.
        while self.take().is_some() {}
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a connection asks for that is no part of its logon, which is logged: how it is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wishes {
    /// It waits until what it is told is on disk.
    pub awaits_disk: bool,
    /// How much it is told of what it sends.
    pub detail: Detail,
}

/// How much a session is told in reply to its commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Detail {
    /// All events.
    #[default]
    Whole,
    /// No `OrderAccepted` in front of an order's other events (`LOGON_BRIEF`).
    Brief,
    /// As brief, and of an order that rests or a cancel a single `OrderOpened` or `OrderClosed`: `LOGON_TERSE` of a
    /// client that does not know an `OrderFilled` yet.
    TerseButFills,
    /// As that, and of an order that one resting order fills a single `OrderFilled` (`LOGON_TERSE`).
    Terse,
}

impl Detail {
    /// As a Hello asks for it.
    pub(crate) const fn of(hello: &Hello) -> Self {
        let Hello { flags, protocol_minor, .. } = *hello;
        if flags & LOGON_TERSE != 0 {
            if protocol_minor < ORDER_FILLED_MINOR { Self::TerseButFills } else { Self::Terse }
        } else if flags & LOGON_BRIEF != 0 {
            Self::Brief
        } else {
            Self::Whole
        }
    }
}

/// What a peer asks for that proved who it is.
pub struct LogonRequest {
    /// The command to log.
    pub logon: Box<Logon>,
    /// The engine's end of the session's rings; none for a stream.
    pub end: Option<Box<SessionEnd>>,
    /// What is asked for beside it.
    pub wishes: Wishes,
}

/// A request for a logon, which is taken once: by the duty thread, which logs it, or back by the gateway, whose peer
/// is gone or was told to come again. What was taken back is never logged: who comes again finds its session as it
/// was.
#[derive(Clone)]
pub struct Asked(Arc<TakenOnce>);

struct TakenOnce {
    is_taken: AtomicBool,
    request: Mutex<Option<LogonRequest>>,
}

impl Asked {
    /// One that nobody has taken.
    #[must_use]
    pub fn new(request: LogonRequest) -> Self {
        let (is_taken, request) = (AtomicBool::new(false), Mutex::new(Some(request)));
        Self(Arc::new(TakenOnce { is_taken, request }))
    }

    /// The request, unless it was taken before.
    pub fn take(&self) -> Option<LogonRequest> {
        // Only who comes first goes on to the lock: so neither side waits for the other.
        if self.0.is_taken.swap(true, Ordering::AcqRel) {
            return None;
        }
        lock(&self.0.request).take()
    }

    /// Takes it as a thread does that loses its core over it.
    #[cfg(test)]
    pub(crate) fn hold_taking(&self) -> impl Drop {
        self.0.is_taken.store(true, Ordering::Release);
        lock(&self.0.request)
    }

    /// Whether it was taken.
    pub fn is_taken(&self) -> bool {
        self.0.is_taken.load(Ordering::Acquire)
    }
}

/// A peer that proved who it is.
pub struct LogonLetter {
    /// Comes back in the answer.
    pub ticket: usize,
    /// What it asks for.
    pub asked: Asked,
}

/// From the gateway to the duty thread.
pub enum ToDuty {
    /// A peer proved who it is: log it on.
    Logon(LogonLetter),
    /// A session asks for what its account has.
    State {
        /// Comes back in the answer.
        ticket: usize,
        /// The session, whose rate it counts against.
        session: SessionId,
        /// Its epoch.
        epoch: Epoch,
        /// The account.
        account: AccountId,
        /// Of the request.
        correlation: u64,
    },
    /// A connection's socket closed, or its client stands still.
    Ended {
        /// Its session.
        session: SessionId,
        /// Its epoch.
        epoch: Epoch,
        /// It asked to be watched, and nothing of it has moved for too long.
        is_silent: bool,
    },
}

/// A capacity for which a logon is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UsedUp {
    /// `limits.sessions`, which is so much: the name is new.
    Sessions(u32),
    /// The names that one key may have in its life, which are so many: the name is new.
    NamesOfKey(u32),
    /// `limits.pending_work`, which is so much: the end of the older connection has orders to cancel.
    PendingWork(u32),
}

impl std::fmt::Display for UsedUp {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sessions(most) => write!(
                formatter,
                "its name is new, and limits.sessions = {most} is used up, of which some are kept for the local user's \
                 programs: log on under a name of before, or raise limits.sessions and start the engine again"
            ),
            Self::NamesOfKey(most) => write!(
                formatter,
                "its name is new, and its key has had {most} names, which is all it may: log on under one of these, or \
                 by another key"
            ),
            Self::PendingWork(most) => write!(
                formatter,
                "limits.pending_work = {most} is used up, and the older connection leaves orders to cancel: try again"
            ),
        }
    }
}

/// From the duty thread to the gateway.
pub enum FromDuty {
    /// The session is open.
    Opened {
        /// The ticket of the logon.
        ticket: usize,
        /// The core's event.
        started: SessionStarted,
        /// Positions before and behind the logon.
        logon: Range<Position>,
    },
    /// The core rejected the logon. As of a connection that ended, the memory comes along.
    Refused {
        /// The ticket of the logon.
        ticket: usize,
        /// Why.
        reason: RejectReason,
        /// Which capacity is used up, if it is that.
        used_up: Option<UsedUp>,
        /// The engine's end of the rings, if it was to have rings of its own.
        end: Option<Box<SessionEnd>>,
    },
    /// The duty thread ended a connection: close its socket. The memory comes along because
    /// unmapping it is a system call, which the duty thread leaves to others.
    Closed {
        /// Its session.
        session: SessionId,
        /// Its epoch.
        epoch: Epoch,
        /// Why, for the client.
        reason: CloseReason,
        /// Why, for the log line.
        why: String,
        /// The engine's end of the session's rings, if it had rings of its own.
        end: Option<Box<SessionEnd>>,
    },
}

/// From the duty thread to the gateway: what an account has, as messages: open orders, balances, the end; or
/// that it may not ask so often.
pub struct StateLetter {
    /// The ticket of the request.
    pub ticket: usize,
    /// Slots that the duty thread had published on the ring of the streams: the letter's place among what that
    /// carries.
    pub behind: u64,
    /// All that they say was decided before.
    pub position: Position,
    /// One behind the other.
    pub messages: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patience::{Wait, join};
    use std::thread;

    #[test]
    fn letters_that_two_take_come_once() {
        const LETTERS: usize = 20_000;
        let mailbox = Mailbox::default();
        let taken = AtomicUsize::new(0);
        thread::scope(|scope| {
            let take = || {
                let (mut mine, wait) = (Vec::new(), Wait::begin());
                while taken.load(Ordering::Relaxed) < LETTERS {
                    assert!(mailbox.waiting() <= LETTERS, "more were taken than were put");
                    let Some(letter) = mailbox.take() else {
                        wait.go_on("letters are lost");
                        thread::yield_now();
                        continue;
                    };
                    taken.fetch_add(1, Ordering::Relaxed);
                    mine.push(letter);
                }
                mine
            };
            let takers = [scope.spawn(take), scope.spawn(take)];
            (0..LETTERS).for_each(|letter| mailbox.put(letter));
            let each = takers.map(|taker| taker.join().unwrap());
            assert!(each.iter().all(|letters| letters.is_sorted()), "in another order");
            let mut all = each.concat();
            all.sort_unstable();
            assert_eq!(all, (0..LETTERS).collect::<Vec<_>>());
        });
    }

    #[test]
    fn letters_of_several_threads_come_once_and_each_threads_in_order() {
        const THREADS: usize = 3;
        const LETTERS: usize = 20_000;
        let mailbox = Mailbox::default();
        thread::scope(|scope| {
            for from in 0..THREADS {
                let mailbox = &mailbox;
                scope.spawn(move || (0..LETTERS).for_each(|letter| mailbox.put((from, letter))));
            }
            let (mut next, wait) = ([0; THREADS], Wait::begin());
            while next != [LETTERS; THREADS] {
                assert!(mailbox.waiting() <= THREADS * LETTERS, "more were taken than were put");
                let Some((from, letter)) = mailbox.take() else {
                    wait.go_on("letters are lost");
                    thread::yield_now();
                    continue;
                };
                assert_eq!(letter, next[from], "of thread {from}");
                next[from] += 1;
            }
        });
        assert!(!mailbox.has_mail() && mailbox.take().is_none());
    }

    #[test]
    fn who_takes_and_who_puts_do_not_wait_for_each_other() {
        // One that waits for itself would wait for ever.
        let done = thread::spawn(|| {
            let mailbox = Mailbox::default();
            let taking = mailbox.hold_taking();
            mailbox.put(1);
            mailbox.put(2);
            assert_eq!(mailbox.waiting(), 2);
            drop(taking);
            let putting = mailbox.hold_putting();
            assert_eq!([(); 3].map(|()| mailbox.take()), [Some(1), Some(2), None]);
            drop(putting);
            mailbox.put(3);
            assert_eq!(mailbox.take(), Some(3));
        });
        join(done, "each end of the mailbox");
    }

    #[test]
    fn any_number_of_letters_that_nobody_takes_ends_with_the_mailbox() {
        let letter = Arc::new(());
        let mailbox = Mailbox::default();
        (0..1_000_000).for_each(|_| mailbox.put(Arc::clone(&letter)));
        drop(mailbox);
        assert_eq!(Arc::strong_count(&letter), 1);
    }

    #[test]
    fn a_request_is_taken_once() {
        let logon = Box::new(Logon::default());
        let asked = Asked::new(LogonRequest { logon, end: None, wishes: Wishes::default() });
        let other = asked.clone();
        assert!(!asked.is_taken());
        assert!(other.take().is_some() && other.is_taken());
        assert!(asked.is_taken() && asked.take().is_none());
    }

    #[test]
    fn the_shortest_of_what_is_asked_for_is_told() {
        use Detail::{Brief, Terse, TerseButFills, Whole};
        let asked = [0, LOGON_BRIEF, LOGON_TERSE, LOGON_TERSE | LOGON_BRIEF, 3];
        for (protocol_minor, terse) in
            [(4, TerseButFills), (5, TerseButFills), (6, Terse), (7, Terse)]
        {
            let told = asked
                .map(|flags| Detail::of(&Hello { flags, protocol_minor, ..Default::default() }));
            assert_eq!(told, [Whole, Brief, terse, terse, Whole], "handshake 1.{protocol_minor}");
        }
    }
}
