//! Since when a link has no engine. Set by the link's thread; looked at by every request that reads what is an
//! account's, so while there is one nobody takes a lock for it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Whether there is no engine, and since when.
pub(super) struct Absence {
    /// There is a time: spares all others the lock.
    any: AtomicBool,
    since: Mutex<Option<Instant>>,
}

impl Absence {
    /// There has been none so far.
    pub(super) fn begin() -> Self {
        Self { any: AtomicBool::new(true), since: Mutex::new(Some(Instant::now())) }
    }

    /// There is no engine any more since `begin`, or with `None` there is one.
    pub(super) fn set(&self, begin: Option<Instant>) {
        let mut since = self.lock();
        *since = begin;
        self.any.store(begin.is_some(), Ordering::Release);
    }

    /// Since when; `None` while there is an engine.
    pub(super) fn since(&self) -> Option<Instant> {
        if self.any.load(Ordering::Acquire) { *self.lock() } else { None }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patience::PATIENCE;
    use std::sync::{Arc, mpsc};
    use std::thread;

    #[test]
    fn nobody_takes_a_lock_while_there_is_an_engine() {
        let absence = Arc::new(Absence::begin());
        assert!(absence.since().is_some());
        absence.set(None);
        let held = absence.lock();
        let (sender, told) = mpsc::channel();
        let other = Arc::clone(&absence);
        let looks = thread::spawn(move || sender.send(other.since()));
        assert_eq!(told.recv_timeout(PATIENCE), Ok(None));
        drop(held);
        looks.join().unwrap().unwrap();
        let begin = Some(Instant::now());
        absence.set(begin);
        assert_eq!(absence.since(), begin);
    }
}
