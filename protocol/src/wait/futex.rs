//! Sleeping until a shared 32-bit word changes: the kernel's futex, and its model under loom.
//! Only called by [`crate::wait`].

#[cfg(not(loom))]
pub(super) use kernel::{WaitSet, wake};
#[cfg(loom)]
pub(super) use model::{WaitSet, wake};

/// Most words that the kernel lets one thread wait on.
pub const MAX_LINES: usize = 128;

/// Sleepers that are woken where all are meant; the kernel counts by a signed number.
pub(super) const EVERYBODY: u32 = i32::MAX.cast_unsigned();

#[cfg(not(loom))]
mod kernel {
    use std::{marker::PhantomData, time::Duration};

    use rustix::{
        io::Errno,
        thread::futex::{self, ClockId, Flags, Timespec, Wait, WaitFlags, WaitvFlags},
        time::clock_gettime,
    };

    use super::MAX_LINES;
    use crate::sync::{AtomicU32, ReadOnlyU32};

    /// Longest sleep, so that every deadline can be expressed.
    const LONGEST: Duration = Duration::from_secs(3600);

    /// Longest sleep when not every word can be waited on.
    const BLIND: Duration = Duration::from_millis(1);

    /// Words and the values at which they let the thread sleep.
    pub(in crate::wait) struct WaitSet<'a> {
        waits: [Wait; MAX_LINES],
        used: usize,
        /// The first word, which an older call can wait on if it is the only one.
        first: Option<(&'a AtomicU32, u32)>,
        complete: bool,
        words: PhantomData<&'a AtomicU32>,
    }

    impl<'a> WaitSet<'a> {
        pub(in crate::wait) fn new() -> Self {
            Self {
                waits: [const { Wait::new() }; MAX_LINES],
                used: 0,
                first: None,
                complete: true,
                words: PhantomData,
            }
        }

        pub(in crate::wait) fn add(&mut self, word: ReadOnlyU32<'a>, seen: u32) {
            self.first.get_or_insert((word.futex(), seen));
            let Some(wait) = self.waits.get_mut(self.used) else {
                self.complete = false;
                return;
            };
            wait.val = u64::from(seen);
            wait.uaddr = word.futex().as_ptr().cast::<core::ffi::c_void>().into();
            wait.flags = WaitFlags::SIZE_U32;
            self.used += 1;
        }

        /// Sleeps while all words have their values, at most for `limit`.
        pub(in crate::wait) fn wait(&self, limit: Duration) {
            let limit = limit.min(if self.complete { LONGEST } else { BLIND });
            let outcome = match (self.first, self.used) {
                (Some((word, seen)), 1) => {
                    futex::wait(word, Flags::empty(), seen, timespec(limit).as_ref())
                }
                _ => {
                    let now = clock_gettime(ClockId::Monotonic);
                    let end = timespec(limit).and_then(|limit| now.checked_add(limit));
                    let waits = &self.waits[..self.used];
                    futex::waitv(waits, WaitvFlags::empty(), end.as_ref(), ClockId::Monotonic)
                        .map(drop)
                }
            };
            match outcome {
                // Woken, not asleep at all, interrupted, or out of time: the caller looks again.
                Ok(()) | Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT) => {}
                // No such call here, or no word given: time alone must do.
                Err(_) => std::thread::sleep(limit.min(BLIND)),
            }
        }
    }

    /// Wakes at the most so many of those who sleep on `word`.
    pub(in crate::wait) fn wake(word: &AtomicU32, most: u32) {
        // Fails only for what is no mapped word, and a reference is one.
        let _ = futex::wake(word, Flags::empty(), most);
    }

    fn timespec(duration: Duration) -> Option<Timespec> {
        Timespec::try_from(duration).ok()
    }
}

#[cfg(loom)]
mod model {
    use std::{ptr, time::Duration};

    use loom::sync::{Condvar, Mutex, MutexGuard};

    use crate::sync::{AtomicU32, Ordering, ReadOnlyU32};

    /// A thread that sleeps, or was woken and does not know it yet.
    struct Sleeper {
        number: u64,
        /// Addresses of the words that it sleeps on.
        words: Vec<usize>,
        is_woken: bool,
    }

    #[derive(Default)]
    struct Queue {
        last: u64,
        sleepers: Vec<Sleeper>,
    }

    loom::lazy_static! {
        static ref QUEUE: (Mutex<Queue>, Condvar) = (Mutex::new(Queue::default()), Condvar::new());
    }

    fn queue() -> MutexGuard<'static, Queue> {
        QUEUE.0.lock().expect("no thread panics while it holds the lock")
    }

    fn address(word: &AtomicU32) -> usize {
        ptr::from_ref(word).addr()
    }

    /// As the kernel's, but never out of time: a wake-up that is lost shows as a deadlock.
    pub(in crate::wait) struct WaitSet<'a> {
        words: Vec<(&'a AtomicU32, u32)>,
    }

    impl<'a> WaitSet<'a> {
        pub(in crate::wait) fn new() -> Self {
            Self { words: Vec::new() }
        }

        pub(in crate::wait) fn add(&mut self, word: ReadOnlyU32<'a>, seen: u32) {
            self.words.push((word.futex(), seen));
        }

        pub(in crate::wait) fn wait(&self, _limit: Duration) {
            let mut queue = queue();
            // The kernel compares under the lock of its queue, as here.
            if self.words.iter().any(|(word, seen)| word.load(Ordering::Relaxed) != *seen) {
                return;
            }
            queue.last += 1;
            let number = queue.last;
            let words = self.words.iter().map(|(word, _)| address(word)).collect();
            queue.sleepers.push(Sleeper { number, words, is_woken: false });
            while queue.sleepers.iter().any(|one| one.number == number && !one.is_woken) {
                queue = QUEUE.1.wait(queue).expect("no thread panics while it holds the lock");
            }
            queue.sleepers.retain(|one| one.number != number);
        }
    }

    /// Wakes those who sleep on the word, who came first first, and at the most so many.
    pub(in crate::wait) fn wake(word: &AtomicU32, most: u32) {
        let mut queue = queue();
        let sleepers = queue.sleepers.iter_mut();
        sleepers
            .filter(|one| !one.is_woken && one.words.contains(&address(word)))
            .take(most as usize)
            .for_each(|one| one.is_woken = true);
        QUEUE.1.notify_all();
    }
}
