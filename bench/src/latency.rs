//! Latency distributions: recording, reading percentiles, medians over runs, printing. Called by
//! every measurement.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Longest latency that is told apart, ns (100 s).
const LONGEST: u64 = 100_000_000_000;

/// A distribution of durations in ns, to three significant digits.
#[derive(Clone, Debug)]
pub struct Distribution(Histogram<u64>);

impl Default for Distribution {
    fn default() -> Self {
        Self(Histogram::new_with_bounds(1, LONGEST, 3).expect("bounds and digits are in range"))
    }
}

impl Distribution {
    /// Adds one duration in ns.
    #[inline]
    pub fn record(&mut self, nanoseconds: u64) {
        self.0.saturating_record(nanoseconds.max(1));
    }

    /// The percentiles that are reported.
    #[must_use]
    pub fn percentiles(&self) -> Percentiles {
        Percentiles {
            count: self.0.len(),
            p50: self.0.value_at_quantile(0.5),
            p99: self.0.value_at_quantile(0.99),
            p99_9: self.0.value_at_quantile(0.999),
            p99_99: self.0.value_at_quantile(0.9999),
            max: self.0.max(),
        }
    }
}

/// Percentiles of a distribution, ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Percentiles {
    /// Durations recorded.
    pub count: u64,
    /// Half of them are at most this.
    pub p50: u64,
    /// 99 % are.
    pub p99: u64,
    /// 99.9 % are.
    pub p99_9: u64,
    /// 99.99 % are.
    pub p99_99: u64,
    /// The longest.
    pub max: u64,
}

impl Percentiles {
    /// Heading of the columns that [`Percentiles::columns`] prints.
    pub const HEADING: &str = "      p50       p99     p99.9    p99.99       max";

    /// The median of each percentile over several runs, and the longest of all; zeros for none.
    #[must_use]
    pub fn median(runs: &[Self]) -> Self {
        let of = |field: fn(&Self) -> u64| median(runs.iter().map(field));
        Self {
            count: of(|run| run.count),
            p50: of(|run| run.p50),
            p99: of(|run| run.p99),
            p99_9: of(|run| run.p99_9),
            p99_99: of(|run| run.p99_99),
            max: runs.iter().map(|run| run.max).max().unwrap_or(0),
        }
    }

    /// Five right-aligned columns; `-` for a percentile that so few durations do not have.
    #[must_use]
    pub fn columns(&self) -> String {
        [(self.p50, 1), (self.p99, 100), (self.p99_9, 1_000), (self.p99_99, 10_000), (self.max, 1)]
            .map(|(value, least)| {
                let text = if self.count < least { "-".to_owned() } else { duration(value) };
                format!("{text:>9}")
            })
            .join(" ")
    }
}

/// The middle value, or the mean of the two in the middle rounded down; 0 for none.
#[must_use]
pub fn median(values: impl IntoIterator<Item = u64>) -> u64 {
    let mut values: Vec<u64> = values.into_iter().collect();
    values.sort_unstable();
    match values.len() {
        0 => 0,
        odd if odd % 2 == 1 => values[odd / 2],
        even => values[even / 2 - 1].midpoint(values[even / 2]),
    }
}

/// The median of ratios, each of a figure to what was measured beside it, in hundredths; a pair whose
/// second is 0 does not count.
#[must_use]
pub fn median_ratio(pairs: impl IntoIterator<Item = (u64, u64)>) -> u64 {
    let hundredths = |(figure, beside): (u64, u64)| figure.checked_mul(100)?.checked_div(beside);
    median(pairs.into_iter().filter_map(hundredths))
}

/// Nanoseconds with a unit that leaves three or four digits.
#[must_use]
pub fn duration(nanoseconds: u64) -> String {
    let tenths = |unit: u64| format!("{}.{}", nanoseconds / unit, nanoseconds % unit * 10 / unit);
    match nanoseconds {
        0..10_000 => format!("{nanoseconds} ns"),
        10_000..10_000_000 => format!("{} us", tenths(1_000)),
        10_000_000..10_000_000_000 => format!("{} ms", tenths(1_000_000)),
        _ => format!("{} s", tenths(1_000_000_000)),
    }
}

/// `numerator / denominator` with two decimals; `-` without a denominator.
#[must_use]
pub fn ratio(numerator: u64, denominator: u64) -> String {
    match (numerator.checked_mul(100), denominator) {
        (Some(hundreds), 1..) => {
            let hundredths = hundreds / denominator;
            format!("{}.{:02}", hundredths / 100, hundredths % 100)
        }
        _ => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_what_was_recorded() {
        let mut distribution = Distribution::default();
        for value in 1..=1000 {
            distribution.record(value);
        }
        let percentiles = distribution.percentiles();
        assert_eq!((percentiles.count, percentiles.p50, percentiles.p99), (1000, 500, 990));
        assert_eq!((percentiles.p99_9, percentiles.max), (999, 1000));
        distribution.record(u64::MAX);
        assert!(distribution.percentiles().max >= LONGEST);
        assert_eq!(Distribution::default().percentiles(), Percentiles::default());
    }

    #[test]
    fn medians_and_texts() {
        assert_eq!((median([]), median([3]), median([5, 1]), median([9, 1, 2])), (0, 3, 3, 2));
        assert_eq!(median_ratio([(3, 2), (7, 0), (5, 2), (u64::MAX, 1), (4, 2)]), 200);
        assert_eq!(median_ratio([(1, 0)]), 0);
        let runs = [1, 7, 4].map(|p50| Percentiles { p50, max: 10 * p50, ..Default::default() });
        let median = Percentiles::median(&runs);
        assert_eq!((median.p50, median.max), (4, 70), "the longest is that of all");
        let of = |count| Percentiles { count, p99: 3, ..Default::default() }.columns();
        assert_eq!(of(999).matches('-').count(), 2, "{}", of(999));
        assert_eq!(of(10_000).matches('-').count(), 0, "{}", of(10_000));
        assert_eq!(duration(9_999), "9999 ns");
        assert_eq!(duration(12_345), "12.3 us");
        assert_eq!(duration(12_345_678), "12.3 ms");
        assert_eq!(duration(12_345_678_901), "12.3 s");
        assert_eq!((ratio(250, 100).as_str(), ratio(1, 0).as_str()), ("2.50", "-"));
        assert_eq!(Percentiles::default().columns().len(), Percentiles::HEADING.len());
    }
}
