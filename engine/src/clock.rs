//! Engine time: nanoseconds since the epoch that never go back. Read once per turn by the duty
//! thread, and again for each command that says how late it may be taken; it puts it into each
//! transaction, and the core and replay know no other time.
//!
//! The system's monotonic clock carries it, the one that counts a suspended machine's sleep; once a
//! second it is slewed towards real time by at most 500 µs,
//! so that a corrected real-time clock never tears it. A real-time clock that stands off by more
//! than a second was set by somebody: that is announced and not followed while the engine runs.

use rustix::time::{ClockId, clock_gettime};

const NS_PER_SECOND: u64 = 1_000_000_000;
/// Largest correction per check.
const SLEW_MAX_NS: i64 = 500_000;
/// A real-time clock further off than this was stepped.
const STEP_NS: u64 = NS_PER_SECOND;
/// How far real time may lie behind the log's last time at a start.
pub const BEHIND_MAX_NS: u64 = 5 * NS_PER_SECOND;

/// Latest time of a log that engine time goes on from, ns since the epoch: it leaves more behind it than any engine
/// runs.
pub const LAST_NS_MAX: u64 = i64::MAX.cast_unsigned();

/// Where time comes from.
pub trait TimeSource {
    /// A clock that never goes back, ns.
    fn monotonic_ns(&self) -> u64;
    /// Real time, ns since the epoch.
    fn real_ns(&self) -> u64;
}

/// The system's clocks; on Linux no system call.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemTime;

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    u64::try_from(time.tv_sec).unwrap_or(0) * NS_PER_SECOND
        + u64::try_from(time.tv_nsec).unwrap_or(0)
}

impl TimeSource for SystemTime {
    fn monotonic_ns(&self) -> u64 {
        read(ClockId::Boottime)
    }

    fn real_ns(&self) -> u64 {
        read(ClockId::Realtime)
    }
}

/// What a reading noticed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClockNotice {
    /// Real time stands off by this many ns (positive: ahead) and is not followed.
    Stepped {
        /// Real time less engine time, ns.
        offset_ns: i64,
    },
    /// Real time is within a second of engine time again.
    Rejoined,
}

/// Engine time.
#[derive(Debug)]
pub struct Clock<T = SystemTime> {
    source: T,
    /// Engine time less monotonic time.
    offset_ns: u64,
    last_ns: u64,
    next_check_ns: u64,
    stepped: bool,
}

/// Why engine time cannot go on from the log's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ClockError {
    /// The log's last time lies ahead of real time by more than [`BEHIND_MAX_NS`].
    #[error(
        "the clock shows {behind_ms} ms less than the last time in the log: correct the clock, or start \
         with --allow-clock-behind to go on from the log's time"
    )]
    Behind {
        /// How far behind, ms.
        behind_ms: u64,
    },
    /// The log's last time lies behind [`LAST_NS_MAX`]: no engine has written it.
    #[error(
        "the last time in the log, {last_ns} ns since 1970, is behind the year 2262: none can follow it"
    )]
    Beyond {
        /// That time, ns since the epoch.
        last_ns: u64,
    },
}

/// The last engine time before a start, ns since the epoch; 0 where there was none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LastTime {
    /// Of the log's last frame, which may be later than its last transaction.
    pub log_ns: u64,
    /// What the last engine has shown beside its log. Nothing checks it, so it counts only where real time is not more
    /// than [`BEHIND_MAX_NS`] behind it.
    pub shown_ns: u64,
}

impl<T: TimeSource> Clock<T> {
    /// Starts engine time at real time, or just behind the last time where that is later.
    ///
    /// # Errors
    /// If real time is more than 5 s behind the log's last time, unless `allow_behind`; if that is behind
    /// [`LAST_NS_MAX`].
    pub fn start(source: T, last: LastTime, allow_behind: bool) -> Result<Self, ClockError> {
        let LastTime { log_ns, shown_ns } = last;
        if log_ns > LAST_NS_MAX {
            return Err(ClockError::Beyond { last_ns: log_ns });
        }
        let real = source.real_ns();
        let behind = log_ns.saturating_sub(real);
        if behind > BEHIND_MAX_NS && !allow_behind {
            return Err(ClockError::Behind { behind_ms: behind / 1_000_000 });
        }
        let is_believed = shown_ns.saturating_sub(real) <= BEHIND_MAX_NS;
        let last_ns = if is_believed { log_ns.max(shown_ns) } else { log_ns };
        let begin = real.max(last_ns + 1);
        let monotonic = source.monotonic_ns();
        Ok(Self {
            source,
            offset_ns: begin.saturating_sub(monotonic),
            last_ns,
            next_check_ns: monotonic + NS_PER_SECOND,
            stepped: false,
        })
    }

    /// The time now, not below any time given before, and what the once-a-second check noticed.
    pub fn now(&mut self) -> (u64, Option<ClockNotice>) {
        let monotonic = self.source.monotonic_ns();
        let mut notice = None;
        if monotonic >= self.next_check_ns {
            self.next_check_ns = monotonic + NS_PER_SECOND;
            notice = self.check(monotonic);
        }
        self.last_ns = self.last_ns.max(monotonic + self.offset_ns);
        (self.last_ns, notice)
    }

    #[cold]
    fn check(&mut self, monotonic: u64) -> Option<ClockNotice> {
        let engine = monotonic + self.offset_ns;
        let real = self.source.real_ns();
        let stepped_before = self.stepped;
        self.stepped = real.abs_diff(engine) > STEP_NS;
        let error = real.wrapping_sub(engine).cast_signed();
        if self.stepped {
            return (!stepped_before).then_some(ClockNotice::Stepped { offset_ns: error });
        }
        let slew = error.clamp(-SLEW_MAX_NS, SLEW_MAX_NS);
        self.offset_ns = self.offset_ns.saturating_add_signed(slew);
        stepped_before.then_some(ClockNotice::Rejoined)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[derive(Debug, Default)]
    struct Fake {
        monotonic: Cell<u64>,
        real: Cell<u64>,
    }

    impl TimeSource for &Fake {
        fn monotonic_ns(&self) -> u64 {
            self.monotonic.get()
        }
        fn real_ns(&self) -> u64 {
            self.real.get()
        }
    }

    impl Fake {
        fn pass(&self, ns: u64) {
            self.monotonic.set(self.monotonic.get() + ns);
            self.real.set(self.real.get() + ns);
        }
    }

    const fn of_log(log_ns: u64) -> LastTime {
        LastTime { log_ns, shown_ns: 0 }
    }

    #[test]
    fn starts_behind_the_log_and_refuses_a_clock_far_behind_it() {
        let fake = Fake { monotonic: Cell::new(50), real: Cell::new(10 * NS_PER_SECOND) };
        let last = 12 * NS_PER_SECOND;
        let mut clock = Clock::start(&fake, of_log(last), false).unwrap();
        assert!(clock.now().0 > last);
        let furthest = 10 * NS_PER_SECOND + BEHIND_MAX_NS;
        assert_eq!(Clock::start(&fake, of_log(furthest), false).unwrap().now().0, furthest + 1);
        let far = 16 * NS_PER_SECOND;
        let behind = ClockError::Behind { behind_ms: 6000 };
        assert_eq!(Clock::start(&fake, of_log(far), false).unwrap_err(), behind);
        assert!(Clock::start(&fake, of_log(far), true).unwrap().now().0 > far);
    }

    #[test]
    fn goes_on_behind_what_was_shown_unless_that_is_far_ahead() {
        let real = 10 * NS_PER_SECOND;
        let fake = Fake { monotonic: Cell::new(50), real: Cell::new(real) };
        let begin = |shown_ns| {
            let last = LastTime { log_ns: 9 * NS_PER_SECOND, shown_ns };
            Clock::start(&fake, last, false).unwrap().now().0
        };
        assert_eq!(begin(0), real);
        let furthest = real + BEHIND_MAX_NS;
        assert_eq!(begin(furthest), furthest + 1);
        for nobody_has_shown in [furthest + 1, LAST_NS_MAX, u64::MAX] {
            assert_eq!(begin(nobody_has_shown), real);
        }
    }

    #[test]
    fn no_time_follows_the_last_that_there_is() {
        let fake = Fake { monotonic: Cell::new(50), real: Cell::new(10 * NS_PER_SECOND) };
        for last_ns in [LAST_NS_MAX + 1, u64::MAX] {
            for allow_behind in [false, true] {
                let refused = Clock::start(&fake, of_log(last_ns), allow_behind).unwrap_err();
                assert_eq!(refused, ClockError::Beyond { last_ns });
            }
        }
        let mut clock = Clock::start(&fake, of_log(LAST_NS_MAX), true).unwrap();
        fake.pass(NS_PER_SECOND);
        assert!(clock.now().0 > LAST_NS_MAX);
    }

    #[test]
    fn slews_and_never_goes_back() {
        let fake = Fake { monotonic: Cell::new(0), real: Cell::new(100 * NS_PER_SECOND) };
        let mut clock = Clock::start(&fake, LastTime::default(), false).unwrap();
        let mut last = clock.now().0;
        fake.real.set(fake.real.get() - 2_000_000);
        for _ in 0..100 {
            fake.pass(NS_PER_SECOND / 10);
            let now = clock.now().0;
            assert!(now >= last);
            last = now;
        }
        assert_eq!(last, fake.real.get(), "2 ms are slewed away within 10 s");
    }

    #[test]
    fn a_step_is_announced_once_and_not_followed() {
        let fake = Fake { monotonic: Cell::new(0), real: Cell::new(100 * NS_PER_SECOND) };
        let mut clock = Clock::start(&fake, LastTime::default(), false).unwrap();
        fake.real.set(50 * NS_PER_SECOND);
        fake.pass(NS_PER_SECOND);
        let (now, notice) = clock.now();
        assert_eq!(now, 101 * NS_PER_SECOND);
        assert!(matches!(notice, Some(ClockNotice::Stepped { offset_ns }) if offset_ns < 0));
        fake.pass(NS_PER_SECOND);
        assert_eq!(clock.now(), (102 * NS_PER_SECOND, None));
        fake.real.set(103 * NS_PER_SECOND);
        fake.monotonic.set(fake.monotonic.get() + NS_PER_SECOND);
        assert_eq!(clock.now().1, Some(ClockNotice::Rejoined));
    }
}
