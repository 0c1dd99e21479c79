//! The intervals of candles that can be asked for (spot contract §2 Enumerations, facts §7 klines), all
//! in UTC. Called by the handler of GET /klines.

use super::candles::Tier;
use crate::calendar::{date, days};

const DAY_MS: u64 = 86_400_000;

/// The first Monday since the epoch, which was a Thursday.
const FIRST_MONDAY_MS: u64 = 4 * DAY_MS;

/// How long a candle lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interval {
    /// A fixed time, which begins at multiples of it since the epoch.
    Fixed {
        /// Its length, ms.
        ms: u64,
        /// What it is made of.
        tier: Tier,
    },
    /// From Monday to Sunday.
    Week,
    /// From the first of a month to its last day.
    Month,
}

const fn fixed(count: u64, unit: Tier, tier: Tier) -> Interval {
    Interval::Fixed { ms: count * unit.ms(), tier }
}

/// All of them by name.
pub(crate) const INTERVALS: [(&str, Interval); 15] = [
    ("1m", fixed(1, Tier::Minute, Tier::Minute)),
    ("3m", fixed(3, Tier::Minute, Tier::Minute)),
    ("5m", fixed(5, Tier::Minute, Tier::Minute)),
    ("15m", fixed(15, Tier::Minute, Tier::Quarter)),
    ("30m", fixed(30, Tier::Minute, Tier::Quarter)),
    ("1h", fixed(1, Tier::Hour, Tier::Hour)),
    ("2h", fixed(2, Tier::Hour, Tier::Hour)),
    ("4h", fixed(4, Tier::Hour, Tier::Hour)),
    ("6h", fixed(6, Tier::Hour, Tier::Hour)),
    ("8h", fixed(8, Tier::Hour, Tier::Hour)),
    ("12h", fixed(12, Tier::Hour, Tier::Hour)),
    ("1d", fixed(1, Tier::Day, Tier::Day)),
    ("3d", fixed(3, Tier::Day, Tier::Day)),
    ("1w", Interval::Week),
    ("1M", Interval::Month),
];

impl Interval {
    /// The interval of this name; names are case-sensitive, because of minutes and months.
    pub(crate) fn named(name: &str) -> Option<Self> {
        INTERVALS.iter().find(|(known, _)| *known == name).map(|(_, interval)| *interval)
    }

    /// The stored candles that it is made of.
    pub(crate) const fn tier(self) -> Tier {
        match self {
            Self::Fixed { tier, .. } => tier,
            Self::Week | Self::Month => Tier::Day,
        }
    }

    /// When the interval began that a moment belongs to, ms since the epoch. The first week of all is
    /// cut off at the epoch.
    pub(crate) fn open(self, time_ms: u64) -> u64 {
        match self {
            Self::Fixed { ms, .. } => time_ms - time_ms % ms,
            Self::Week => match time_ms.checked_sub(FIRST_MONDAY_MS) {
                Some(since) => time_ms - since % (7 * DAY_MS),
                None => 0,
            },
            Self::Month => {
                let (year, month, _) = date(time_ms / DAY_MS);
                days(year, month) * DAY_MS
            }
        }
    }

    /// When the interval behind the one that begins at `open_ms` begins.
    pub(crate) fn next(self, open_ms: u64) -> u64 {
        match self {
            Self::Fixed { ms, .. } => open_ms.saturating_add(ms),
            Self::Week if open_ms < FIRST_MONDAY_MS => FIRST_MONDAY_MS,
            Self::Week => open_ms.saturating_add(7 * DAY_MS),
            Self::Month => {
                let (year, month, _) = date(open_ms / DAY_MS);
                days(year + month / 12, month % 12 + 1) * DAY_MS
            }
        }
    }

    /// When the interval began that is `count` before the one that begins at `open_ms`; 0 if there are
    /// not so many.
    pub(crate) fn back(self, open_ms: u64, count: u64) -> u64 {
        match self {
            Self::Fixed { ms, .. } => open_ms.saturating_sub(ms.saturating_mul(count)),
            Self::Week => self.open(open_ms.saturating_sub((7 * DAY_MS).saturating_mul(count))),
            Self::Month => {
                let (year, month, _) = date(open_ms / DAY_MS);
                match (year * 12 + month - 1).checked_sub(count) {
                    Some(months) if months >= 1970 * 12 => {
                        days(months / 12, months % 12 + 1) * DAY_MS
                    }
                    _ => 0,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::tests::months;

    #[test]
    fn months_are_those_of_the_calendar() {
        let mut begin = 0;
        let mut begins = vec![0];
        for (_, _, length) in months() {
            for day in 0..length {
                let noon = (begin + day) * DAY_MS + DAY_MS / 2;
                assert_eq!(Interval::Month.open(noon), begin * DAY_MS);
            }
            begin += length;
            begins.push(begin);
            assert_eq!(Interval::Month.next((begin - length) * DAY_MS), begin * DAY_MS);
        }
        for (index, begin) in begins.iter().enumerate() {
            for back in [1, 11, 12, 13, 500] {
                let expected = index.checked_sub(back).map_or(0, |index| begins[index]);
                let found = Interval::Month.back(begin * DAY_MS, back as u64);
                assert_eq!(found, expected * DAY_MS, "{back} before month {index}");
            }
        }
    }

    #[test]
    fn weeks_begin_on_mondays() {
        // Monday, 3 July 2017 (facts §7 klines).
        let monday = days(2017, 7) * DAY_MS + 2 * DAY_MS;
        for day in 0..7 {
            assert_eq!(Interval::Week.open(monday + day * DAY_MS + 1), monday);
        }
        assert_eq!(Interval::Week.open(monday - 1), monday - 7 * DAY_MS);
        assert_eq!(Interval::Week.next(monday), monday + 7 * DAY_MS);
        assert_eq!(Interval::Week.back(monday, 2), monday - 14 * DAY_MS);
        assert_eq!(Interval::Week.next(Interval::Week.open(1)), FIRST_MONDAY_MS);
        assert_eq!(Interval::Week.back(FIRST_MONDAY_MS, 3), 0);
    }

    #[test]
    fn fixed_intervals_begin_at_their_multiples_and_consist_of_whole_candles() {
        assert_eq!(Interval::named("1M"), Some(Interval::Month));
        for (name, _) in INTERVALS {
            let interval = Interval::named(name).unwrap();
            if let Interval::Fixed { ms, tier } = interval {
                assert_eq!(ms % tier.ms(), 0, "{name}");
                assert_eq!(interval.open(7 * ms + ms - 1), 7 * ms);
                assert_eq!(interval.next(7 * ms), 8 * ms);
                assert_eq!(interval.back(7 * ms, 3), 4 * ms);
                assert_eq!(interval.back(7 * ms, 8), 0);
            }
        }
        assert_eq!(Interval::named("1S"), None);
    }
}
