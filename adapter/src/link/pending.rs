//! Commands that were sent and not yet answered, by correlation. The request threads add to it, the
//! link's thread answers from it.

use std::iter;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use rustc_hash::FxHashMap;
use touchline_protocol::client::Reply;

use super::{Decision, Done, Doubt, Ended, Lost, Outcome, Traffic};
use crate::clock::unix_ns;

/// One of them.
pub(super) struct Command<T: Traffic> {
    deadline: Instant,
    /// `None`: anybody's.
    whose: Option<T::Whose>,
    told: T::Told,
    /// `None` once it was given up: the engine may carry it out all the same, until it has answered it or takes nothing
    /// any more from this connection.
    done: Option<Done<T>>,
    /// Who waits for what becomes of it, and until when.
    ended: Vec<(Instant, Ended)>,
}

impl<T: Traffic> Command<T> {
    /// Nothing of it can happen any more that has not happened.
    pub(super) fn end(mut self, outcome: Outcome<T>) {
        answer(self.done.take(), outcome);
        tell(self.ended, true);
    }
}

/// A callback that panics costs its own request only: what it holds is dropped, which answers it.
fn answer<T: Traffic>(done: Option<Done<T>>, outcome: Outcome<T>) {
    let Some(done) = done else { return };
    let _panicked = catch_unwind(AssertUnwindSafe(|| done(outcome)));
}

/// As [`answer`].
fn tell(waiting: Vec<(Instant, Ended)>, has_ended: bool) {
    for (_, ended) in waiting {
        let _panicked = catch_unwind(AssertUnwindSafe(|| ended(has_ended)));
    }
}

/// In the place of a correlation, of what was sent before the first one.
const BEFORE: u64 = 0;

struct Table<T: Traffic> {
    /// By numbers that are given out here: nobody can aim them at a hash.
    commands: FxHashMap<u64, Command<T>>,
    last: u64,
    /// How often what was sent before has been given up: more often over a later connection.
    connection: u64,
}

/// The pending commands.
pub(super) struct Pending<T: Traffic> {
    table: Mutex<Table<T>>,
    /// What the engine's clock was ahead of this machine's at the last reply of the connection, at the least, ns:
    /// it does not follow one that is set back while it runs, and may have begun ahead.
    ahead_ns: AtomicU64,
    /// Told of what was given up before it is lost.
    lost: OnceLock<Lost<T>>,
}

impl<T: Traffic> Default for Pending<T> {
    /// What a process before this one has sent may be under way: an engine that hangs has not noticed its end. It stands
    /// in front of all that this one sends, until there is a connection, or no engine.
    fn default() -> Self {
        let told = T::Told::default();
        let before =
            Command { deadline: Instant::now(), whose: None, told, done: None, ended: Vec::new() };
        let commands = iter::once((BEFORE, before)).collect();
        let table = Mutex::new(Table { commands, last: BEFORE, connection: 0 });
        Self { table, ahead_ns: AtomicU64::new(0), lost: OnceLock::new() }
    }
}

impl<T: Traffic> Pending<T> {
    /// Takes in a command that is about to be sent; gives its correlation: from 1, never used twice.
    pub(super) fn register(&self, deadline: Instant, whose: T::Whose, done: Done<T>) -> u64 {
        let mut table = self.table();
        table.last += 1;
        let correlation = table.last;
        let (told, done) = (T::Told::default(), Some(done));
        let command = Command { deadline, whose: Some(whose), told, done, ended: Vec::new() };
        table.commands.insert(correlation, command);
        correlation
    }

    /// The last command of one of whom `is_of` says so, of those up to `last`.
    pub(super) fn last_of(&self, last: u64, is_of: &dyn Fn(T::Whose) -> bool) -> Option<u64> {
        // Asked without the lock: it may take one of its own.
        let mut sent: Vec<_> = {
            let table = self.table();
            let sent = table.commands.iter().filter(|(correlation, _)| **correlation <= last);
            sent.map(|(correlation, command)| (*correlation, command.whose)).collect()
        };
        sent.sort_unstable_by_key(|(correlation, _)| *correlation);
        let is_one = |whose: Option<T::Whose>| whose.is_none_or(is_of);
        sent.into_iter().rev().find(|(_, whose)| is_one(*whose)).map(|(correlation, _)| correlation)
    }

    /// Whether something is under way or in doubt.
    pub(super) fn any(&self) -> bool {
        !self.table().commands.is_empty()
    }

    /// Calls `ended` when the command has ended, now if it has, or soon after `deadline`.
    pub(super) fn when_ended(&self, correlation: u64, deadline: Instant, ended: Ended) {
        if let Some(command) = self.table().commands.get_mut(&correlation) {
            return command.ended.push((deadline, ended));
        }
        ended(true);
    }

    /// Has `lost` told of what was given up before it is lost. The first one is kept.
    pub(super) fn when_lost(&self, lost: Lost<T>) {
        let _another = self.lost.set(lost);
    }

    /// A moment of this machine's clock, ns since the epoch, as the engine's shows it; 0, which is never, stays.
    pub(super) fn in_engine_time(&self, time_ns: u64) -> u64 {
        match time_ns {
            0 => 0,
            moment => moment.saturating_add(self.ahead_ns.load(Ordering::Relaxed)),
        }
    }

    /// Takes back a command that could not be sent.
    pub(super) fn withdraw(&self, correlation: u64) -> Option<Command<T>> {
        self.table().commands.remove(&correlation)
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
        let Some(terminal) = event.ok().and_then(T::terminal) else {
            return self.end_in_doubt(correlation);
        };
        let (mut command, connection) = {
            let mut table = self.table();
            let Some(command) = table.commands.remove(&correlation) else { return };
            (command, table.connection)
        };
        let decision = Decision {
            connection,
            position: reply.envelope.position,
            time_ns: reply.envelope.time_ns,
            told: std::mem::take(&mut command.told),
            terminal,
        };
        command.end(Outcome::from(decision));
    }

    /// Ends a command whose reply tells nothing. As long as its doubt is not noted it is under way, so that nobody finds
    /// neither.
    fn end_in_doubt(&self, correlation: u64) {
        let done = self.table().commands.get_mut(&correlation).and_then(|one| one.done.take());
        answer(done, Outcome::Unknown(Doubt::UnexpectedReply));
        let ended = self.table().commands.remove(&correlation);
        tell(ended.map(|command| command.ended).unwrap_or_default(), true);
    }

    /// Gives up on commands whose deadline is not after `now`, and on those that wait for what becomes of one. What was
    /// given up is kept: who hangs with it may go on.
    pub(super) fn expire(&self, now: Instant) {
        let (mut late, mut waiting) = (Vec::new(), Vec::new());
        for command in self.table().commands.values_mut() {
            if command.deadline <= now {
                late.extend(command.done.take());
            }
            waiting.extend(command.ended.extract_if(.., |(deadline, _)| *deadline <= now));
        }
        for done in late {
            answer(Some(done), Outcome::Unknown(Doubt::Timeout));
        }
        tell(waiting, false);
    }

    /// No reply can come any more, but an engine that stands still may go on and take what it was sent.
    pub(super) fn doubt(&self) {
        let lost: Vec<_> =
            self.table().commands.values_mut().filter_map(|command| command.done.take()).collect();
        for done in lost {
            answer(Some(done), Outcome::Unknown(Doubt::ConnectionLost));
        }
    }

    /// Nothing that was sent is taken by an engine any more, or, unless it `has_ended`, nobody here will know of it. The
    /// next engine's clock may be right: an order that is refused for another's does less harm than one that is taken
    /// behind its time. As long as its doubt is not noted a command is under way, so that nobody finds neither.
    pub(super) fn lose(&self, has_ended: bool) {
        self.ahead_ns.store(0, Ordering::Relaxed);
        self.tell_lost();
        self.doubt();
        let lost = {
            let mut table = self.table();
            table.connection += 1;
            std::mem::take(&mut table.commands)
        };
        for command in lost.into_values() {
            tell(command.ended, has_ended);
        }
    }

    /// The engine may have taken what was given up behind the doubt that was noted then.
    fn tell_lost(&self) {
        let Some(lost) = self.lost.get() else { return };
        let given_up: Vec<_> = {
            let table = self.table();
            let given_up = table.commands.values().filter(|command| command.done.is_none());
            given_up.filter_map(|command| command.whose).collect()
        };
        for whose in given_up {
            let _panicked = catch_unwind(AssertUnwindSafe(|| lost(whose)));
        }
    }

    fn table(&self) -> MutexGuard<'_, Table<T>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
