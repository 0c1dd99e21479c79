//! The time that a virtual machine's cores were kept from running by the machine below, as the kernel counts it
//! (`steal` in `/proc/stat`). Called by [`crate::machine`] for a whole measurement and by [`crate::log`] for parts.
//!
//! A limit of the host's on a guest's processor time is met in stalls of tens of milliseconds in which nothing in
//! the guest moves, and what the host does for the guest's disk may count against it. No far percentile tells
//! those from what is measured; this does.

use std::fs;
use std::ops::AddAssign;
use std::sync::OnceLock;

/// A stretch of all cores' time, in ticks of the kernel's, which are some 10 ms.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ticks {
    /// Not had, though it was wanted.
    stolen: u64,
    all: u64,
}

impl Ticks {
    /// Since the machine started; none where the kernel does not tell.
    fn so_far() -> Self {
        fs::read_to_string("/proc/stat").ok().and_then(|text| Self::read(&text)).unwrap_or_default()
    }

    fn read(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        // user, nice, system, idle, iowait, irq, softirq, steal; what guests of this machine took is in user.
        let fields = line.split_whitespace().take(8).map(|field| field.parse().ok());
        let fields: Vec<u64> = fields.collect::<Option<_>>()?;
        Some(Self { stolen: *fields.get(7)?, all: fields.iter().sum() })
    }

    /// Thousandths of the time that were stolen; 0 of no time.
    #[must_use]
    pub fn permille(self) -> u64 {
        self.stolen * 1000 / self.all.max(1)
    }
}

impl AddAssign for Ticks {
    fn add_assign(&mut self, more: Self) {
        self.stolen += more.stolen;
        self.all += more.all;
    }
}

/// Counts from a moment on.
#[derive(Clone, Copy, Debug)]
pub struct Stolen {
    before: Ticks,
}

impl Stolen {
    /// From now on.
    #[must_use]
    pub fn begin() -> Self {
        Self { before: Ticks::so_far() }
    }

    /// Up to now.
    #[must_use]
    pub fn so_far(&self) -> Ticks {
        self.up_to(Ticks::so_far())
    }

    const fn up_to(&self, now: Ticks) -> Ticks {
        Ticks {
            stolen: now.stolen.saturating_sub(self.before.stolen),
            all: now.all.saturating_sub(self.before.all),
        }
    }
}

/// From where the measurement of this process began.
static MEASUREMENT: OnceLock<Stolen> = OnceLock::new();

/// A measurement begins; a second call changes nothing.
pub fn begin_measurement() {
    MEASUREMENT.get_or_init(Stolen::begin);
}

/// Since the measurement began; none if none has.
#[must_use]
pub fn of_measurement() -> Ticks {
    MEASUREMENT.get().map(Stolen::so_far).unwrap_or_default()
}

/// Thousandths as percent.
#[must_use]
pub fn percent(permille: u64) -> String {
    format!("{}.{} %", permille / 10, permille % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_that_of_all_time() {
        let read = |text: &str| Ticks::read(text);
        let text = "cpu  100 0 50 700 30 0 20 100 7 3\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        let ticks = read(text).unwrap();
        assert_eq!((ticks.stolen, ticks.all, ticks.permille()), (100, 1000, 100));
        assert_eq!(percent(ticks.permille()), "10.0 %");
        let mut both = ticks;
        both += Ticks { stolen: 0, all: 1000 };
        assert_eq!(both.permille(), 50);
        assert_eq!(Ticks::default().permille(), 0);
        // Of an older kernel, and of something else.
        for text in ["", "cpu  1 2 3 4 5 6 7", "cpu  1 2 3 4 5 6 7 x", "intr 1 2 3 4 5 6 7 8"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn what_was_before_does_not_count() {
        let boot = Ticks { stolen: 100, all: 1000 };
        let since = Stolen { before: boot }.up_to(Ticks { stolen: 101, all: 1010 });
        assert_eq!((since, since.permille()), (Ticks { stolen: 1, all: 10 }, 100));
        // Whatever the kernel makes of it.
        assert_eq!(Stolen { before: boot }.up_to(Ticks::default()), Ticks::default());
    }
}
