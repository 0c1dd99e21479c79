//! Who looks for the engine's replies: the front's workers, at each request and whenever they have nothing
//! else to do, or the link's own thread when all of them sleep.
//!
//! A worker that looks by itself spares each reply two ways through the scheduler, the engine's call and
//! the link's. The last worker that falls asleep has the engine ring the bell, on which the link's thread
//! sleeps all the time; the first that wakes has it ring no more. Each write of the log to disk would wake the
//! link's thread, too, thousands of times in a second: it hears them only while replies wait for the disk and
//! all workers sleep. It finds out by its looks; a worker that leaves such replies behind, when it is the last
//! to fall asleep and the link's thread does not hear the disk, rings the bell itself. Without workers that
//! say when they sleep, as on front may, the link's thread does all of it.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use touchline_protocol::client::{ReceiveError, Reply};
use touchline_protocol::units::Position;

use super::Traffic;
use super::pending::Pending;
use super::wire::Replies;

/// Replies handed on in one go.
const BATCH: usize = 256;

/// Goes of a worker before it sleeps. If there are still more replies then, it leaves them to the link's
/// thread, for which it rings where that can be heard, and which looks now and then whatever happens.
const GOES: usize = 16;

/// The receiving half of the connection and who is awake to look at it.
#[derive(Default)]
pub(super) struct Watch(Mutex<Looked>);

#[derive(Default)]
struct Looked {
    /// `None` while there is no engine.
    replies: Option<Box<dyn Replies>>,
    /// What a worker has found wrong with them.
    fault: Option<ReceiveError>,
    /// Workers that are awake.
    awake: usize,
    /// The link's thread hears writes to disk when it sleeps, or was told to look.
    hears_disk: bool,
}

/// What the link's thread does after a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Look again at once: there may be more.
    Look,
    /// Sleep until the bell rings.
    Sleep {
        /// Or a write of the log to disk.
        hears_disk: bool,
    },
}

impl Watch {
    /// There is a connection now, or none any more.
    pub(super) fn set(&self, replies: Option<Box<dyn Replies>>) {
        let mut looked = self.lock();
        looked.replies = replies;
        looked.fault = None;
        looked.hears_disk = false;
    }

    /// A worker wakes, or begins.
    pub(super) fn worker_wakes(&self) {
        let mut looked = self.lock();
        looked.awake += 1;
        if let (1, Some(replies)) = (looked.awake, &looked.replies) {
            replies.disarm();
        }
    }

    /// A worker is awake and goes on with something else: it may not sleep for long. True if it found
    /// replies. It waits for nobody: who holds the lock looks, too.
    pub(super) fn worker_looks<T: Traffic>(&self, pending: &Pending<T>) -> bool {
        let mut looked = match self.0.try_lock() {
            Ok(looked) => looked,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        looked.fault.is_none() && looked.hand_on(pending)
    }

    /// A worker is about to sleep, or ends.
    pub(super) fn worker_sleeps<T: Traffic>(&self, pending: &Pending<T>) {
        let mut looked = self.lock();
        looked.awake -= 1;
        for _ in 0..GOES {
            looked.hand_on(pending);
            let Looked { replies: Some(replies), fault: None, awake: 0, hears_disk } = &mut *looked
            else {
                return;
            };
            if !replies.arm() {
                if replies.holds_back() && !std::mem::replace(hears_disk, true) {
                    replies.ring();
                }
                return;
            }
        }
        if let Some(replies) = &looked.replies {
            replies.ring();
        }
    }

    /// A look by the link's own thread. It looks again at once if it found replies, since there may be more
    /// where workers left some to it.
    pub(super) fn look<T: Traffic>(&self, pending: &Pending<T>) -> Result<Next, ReceiveError> {
        let mut looked = self.lock();
        let nobody_else = looked.awake == 0;
        if let (true, Some(replies)) = (nobody_else, &looked.replies) {
            replies.disarm();
        }
        let found = looked.hand_on(pending);
        if let Some(fault) = looked.fault.take() {
            return Err(fault);
        }
        let Looked { replies: Some(replies), hears_disk, .. } = &mut *looked else {
            return Ok(Next::Sleep { hears_disk: false });
        };
        if found || (nobody_else && replies.arm()) {
            return Ok(Next::Look);
        }
        *hears_disk = nobody_else && replies.holds_back();
        Ok(Next::Sleep { hears_disk: *hears_disk })
    }

    /// Up to where the log is on disk, as the engine of this connection shows it; 0 without one.
    pub(super) fn durable(&self) -> Position {
        self.lock().replies.as_ref().map_or(Position(0), |replies| replies.durable())
    }

    /// Whether the connection was given up though the engine has not closed it.
    pub(super) fn is_silent(&self) -> bool {
        self.lock().replies.as_ref().is_some_and(|replies| replies.is_silent())
    }

    /// Looks whether the engine is still there.
    pub(super) fn check(&self) {
        if let Some(replies) = &mut self.lock().replies {
            replies.check();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Looked> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Looked {
    /// Calls back for replies that are there; true if there were any.
    fn hand_on<T: Traffic>(&mut self, pending: &Pending<T>) -> bool {
        let Some(replies) = &mut self.replies else { return false };
        let mut reply = Reply::default();
        for count in 0..BATCH {
            match replies.poll_into(&mut reply) {
                Ok(true) => pending.reply(&reply),
                Ok(false) => return count > 0,
                Err(fault) => {
                    self.fault = Some(fault);
                    return count > 0;
                }
            }
        }
        true
    }
}
