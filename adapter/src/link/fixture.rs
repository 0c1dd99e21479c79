//! For tests of the services: commands that a made-up engine has not decided.

use std::sync::{Mutex, MutexGuard, OnceLock};

use super::{Done, Ended, Lost, Outcome, Traffic};

struct Command<T: Traffic> {
    whose: T::Whose,
    done: Done<T>,
    ended: Vec<Ended>,
}

pub(crate) struct UnderWay<T: Traffic> {
    /// In the order in which they came; their places are their numbers, until one has ended.
    commands: Mutex<Vec<Command<T>>>,
    lost: OnceLock<Lost<T>>,
}

impl<T: Traffic> Default for UnderWay<T> {
    fn default() -> Self {
        Self { commands: Mutex::default(), lost: OnceLock::new() }
    }
}

impl<T: Traffic> UnderWay<T> {
    pub(crate) fn push(&self, whose: T::Whose, done: Done<T>) {
        self.lock().push(Command { whose, done, ended: Vec::new() });
    }

    pub(crate) fn any(&self) -> bool {
        !self.lock().is_empty()
    }

    /// Ends the first of them.
    pub(crate) fn end_first(&self, outcome: Outcome<T>) {
        let Command { done, ended, .. } = self.lock().remove(0);
        done(outcome);
        ended.into_iter().for_each(|ended| ended(true));
    }

    /// As [`super::Submit::last_under_way`].
    pub(crate) fn last_of(&self, last: u64, is_of: &dyn Fn(T::Whose) -> bool) -> Option<u64> {
        let found = self.lock().iter().rposition(|one| is_of(one.whose)).map(|index| index as u64);
        found.filter(|index| *index <= last)
    }

    /// As [`super::Submit::when_ended`].
    pub(crate) fn when_ended(&self, command: u64, ended: Ended) {
        self.lock()[command as usize].ended.push(ended);
    }

    /// As [`super::Submit::when_lost`].
    pub(crate) fn when_lost(&self, lost: Lost<T>) {
        assert!(self.lost.set(lost).is_ok(), "one service has it");
    }

    /// Nothing more can become of a command that was answered with a doubt before.
    pub(crate) fn lose(&self, whose: T::Whose) {
        self.lost.get().expect("the service is told")(whose);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Command<T>>> {
        self.commands.lock().unwrap()
    }
}
