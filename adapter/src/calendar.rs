//! The Gregorian calendar, by days since the epoch. Called for the months of candles and for the times of
//! the jobs service.
//!
//! Years begin in March here, so that the leap day is the last one, and are counted in eras of 400, which
//! all have the same number of days.

/// Year, month from 1 and day from 1 of a number of days since the epoch.
pub(crate) const fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + (month <= 2) as u64;
    (year, month, day)
}

/// Days since the epoch on the first of a month.
pub(crate) const fn days(year: u64, month: u64) -> u64 {
    let (year, from_march) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, year_of_era) = (year / 400, year % 400);
    let of_year = (153 * from_march + 2) / 5;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    era * 146_097 + of_era - 719_468
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The calendar by counting: year, month and length of every month from 1970 on.
    pub(crate) fn months() -> impl Iterator<Item = (u64, u64, u64)> {
        (1970..2200).flat_map(|year: u64| {
            let leap =
                year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
            let february = if leap { 29 } else { 28 };
            [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
                .into_iter()
                .zip(1..)
                .map(move |(length, month)| (year, month, length))
        })
    }

    #[test]
    fn dates_are_those_of_the_calendar_by_counting() {
        let mut begin = 0;
        for (year, month, length) in months() {
            assert_eq!(days(year, month), begin, "{year}-{month}");
            for day in 0..length {
                assert_eq!(date(begin + day), (year, month, day + 1));
            }
            begin += length;
        }
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let mut last = date(0);
        for day in 1..60_000 {
            let next = date(day);
            let follows = next == (last.0, last.1, last.2 + 1)
                || next == (last.0, last.1 + 1, 1) && last.2 >= 28
                || next == (last.0 + 1, 1, 1) && (last.1, last.2) == (12, 31);
            assert!(follows, "{last:?} {next:?}");
            last = next;
        }
    }
}
