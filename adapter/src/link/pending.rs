//! Commands that were sent and not yet answered, by correlation. The request threads add to it, the
//! link's thread answers from it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use rustc_hash::FxHashMap;
use touchline_protocol::client::Reply;

use super::{Decision, Done, Doubt, Outcome, Traffic};

struct Command<T: Traffic> {
    deadline: Instant,
    told: T::Told,
    done: Done<T>,
}

struct Table<T: Traffic> {
    /// By numbers that are given out here: nobody can aim them at a hash.
    commands: FxHashMap<u64, Command<T>>,
    last: u64,
}

/// The pending commands.
pub(super) struct Pending<T: Traffic> {
    table: Mutex<Table<T>>,
    /// What the engine's clock was ahead of this machine's at the last reply of the connection, at the least, ns:
    /// it does not follow one that is set back while it runs, and may have begun ahead.
    ahead_ns: AtomicU64,
}

impl<T: Traffic> Default for Pending<T> {
    fn default() -> Self {
        let table = Mutex::new(Table { commands: FxHashMap::default(), last: 0 });
        Self { table, ahead_ns: AtomicU64::new(0) }
    }
}

impl<T: Traffic> Pending<T> {
    /// Takes in a command that is about to be sent; gives its correlation: from 1, never used twice.
    pub(super) fn register(&self, deadline: Instant, done: Done<T>) -> u64 {
        let mut table = self.table();
        table.last += 1;
        let correlation = table.last;
        table.commands.insert(correlation, Command { deadline, told: T::Told::default(), done });
        correlation
    }

    /// A moment of this machine's clock, ns since the epoch, as the engine's shows it; 0, which is never, stays.
    pub(super) fn in_engine_time(&self, time_ns: u64) -> u64 {
        match time_ns {
            0 => 0,
            moment => moment.saturating_add(self.ahead_ns.load(Ordering::Relaxed)),
        }
    }

    /// Takes back a command that could not be sent.
    pub(super) fn withdraw(&self, correlation: u64) -> Option<Done<T>> {
        self.table().commands.remove(&correlation).map(|command| command.done)
    }

    /// Takes a reply to its command. Replies to commands that were given up are dropped, and so is what
    /// is no reply: the views have it from the log.
    pub(super) fn reply(&self, reply: &Reply) {
        if reply.is_unsolicited() {
            return;
        }
        let correlation = reply.envelope.correlation;
        let event = reply.event.event();
        if !reply.is_terminal() {
            if let Ok(event) = event
                && let Some(command) = self.table().commands.get_mut(&correlation)
            {
                T::tell(&mut command.told, event);
            }
            return;
        }
        // Decided before now, so that it is ahead by this at the least.
        let ahead = reply.envelope.time_ns.saturating_sub(unix_ns());
        self.ahead_ns.store(ahead, Ordering::Relaxed);
        let Some(command) = self.table().commands.remove(&correlation) else { return };
        let Some(terminal) = event.ok().and_then(T::terminal) else {
            return answer(command.done, Outcome::Unknown(Doubt::UnexpectedReply));
        };
        let decision = Decision {
            position: reply.envelope.position,
            time_ns: reply.envelope.time_ns,
            told: command.told,
            terminal,
        };
        answer(command.done, Outcome::from(decision));
    }

    /// Gives up on commands whose deadline is not after `now`.
    pub(super) fn expire(&self, now: Instant) {
        let late: Vec<_> =
            self.table().commands.extract_if(|_, command| command.deadline <= now).collect();
        for (_, command) in late {
            answer(command.done, Outcome::Unknown(Doubt::Timeout));
        }
    }

    /// No reply can come any more. The next engine's clock may be right: an order that is refused for another's
    /// does less harm than one that is taken behind its time.
    pub(super) fn lose(&self) {
        self.ahead_ns.store(0, Ordering::Relaxed);
        let lost = std::mem::take(&mut self.table().commands);
        for command in lost.into_values() {
            answer(command.done, Outcome::Unknown(Doubt::ConnectionLost));
        }
    }

    fn table(&self) -> MutexGuard<'_, Table<T>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A callback that panics costs its own request only: what it holds is dropped, which answers it.
fn answer<T: Traffic>(done: Done<T>, outcome: Outcome<T>) {
    let _panicked = catch_unwind(AssertUnwindSafe(|| done(outcome)));
}

fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
