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
        let count = self.0.len();
        // Of fewer than these it would be the longest of all, by another name.
        let far = |quantile: f64, least: u64| {
            (count >= least).then(|| self.0.value_at_quantile(quantile))
        };
        Percentiles {
            count,
            p50: self.0.value_at_quantile(0.5),
            p99: far(0.99, 100),
            p99_9: far(0.999, 1_000),
            p99_99: far(0.9999, 10_000),
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
    /// 99 % are; none of fewer than 100 durations.
    pub p99: Option<u64>,
    /// 99.9 % are; none of fewer than 1,000.
    pub p99_9: Option<u64>,
    /// 99.99 % are; none of fewer than 10,000.
    pub p99_99: Option<u64>,
    /// The longest.
    pub max: u64,
}

impl Percentiles {
    /// Heading of the columns that [`Percentiles::columns`] prints.
    pub const HEADING: &str = "      p50       p99     p99.9    p99.99       max";

    /// The median of each percentile over several runs, of those that every run has, and the longest of all; zeros for
    /// no run.
    #[must_use]
    pub fn median(runs: &[Self]) -> Self {
        let of = |field: fn(&Self) -> u64| median(runs.iter().map(field));
        let far = |field: fn(&Self) -> Option<u64>| {
            let all: Option<Vec<u64>> = runs.iter().map(field).collect();
            all.filter(|all| !all.is_empty()).map(median)
        };
        Self {
            count: of(|run| run.count),
            p50: of(|run| run.p50),
            p99: far(|run| run.p99),
            p99_9: far(|run| run.p99_9),
            p99_99: far(|run| run.p99_99),
            max: runs.iter().map(|run| run.max).max().unwrap_or(0),
        }
    }

    /// Five right-aligned columns; `-` for a percentile that so few durations do not have.
    #[must_use]
    pub fn columns(&self) -> String {
        let of_any = |value: u64| (self.count > 0).then_some(value);
        [of_any(self.p50), self.p99, self.p99_9, self.p99_99, of_any(self.max)]
            .map(|value| format!("{:>9}", value.map_or("-".to_owned(), duration)))
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

/// As [`median_ratio`], of far percentiles: none unless every pair has both.
#[must_use]
pub fn median_far_ratio(
    pairs: impl IntoIterator<Item = (Option<u64>, Option<u64>)>,
) -> Option<u64> {
    let pairs = pairs.into_iter().map(|(figure, beside)| figure.zip(beside));
    let pairs: Vec<(u64, u64)> = pairs.collect::<Option<_>>()?;
    (!pairs.is_empty()).then(|| median_ratio(pairs))
}

/// Hundredths with two decimals; `-` for none.
#[must_use]
pub fn hundredths(ratio_in_hundredths: Option<u64>) -> String {
    ratio_in_hundredths.map_or("-".to_owned(), |value| ratio(value, 100))
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
        assert_eq!((percentiles.count, percentiles.p50, percentiles.p99), (1000, 500, Some(990)));
        assert_eq!((percentiles.p99_9, percentiles.max), (Some(999), 1000));
        distribution.record(u64::MAX);
        assert!(distribution.percentiles().max >= LONGEST);
        assert_eq!(Distribution::default().percentiles(), Percentiles::default());
    }

    #[test]
    fn few_durations_have_no_far_percentile_in_any_text() {
        let of = |count: u64| {
            let mut distribution = Distribution::default();
            (0..count).for_each(|_| distribution.record(3));
            distribution.percentiles()
        };
        for (count, missing) in [(0, 5), (99, 3), (100, 2), (999, 2), (1_000, 1), (10_000, 0)] {
            let few = of(count);
            assert_eq!(few.columns().matches('-').count(), missing, "{count}: {}", few.columns());
            let json = serde_json::to_value(few).unwrap();
            let nulls = json.as_object().unwrap().values().filter(|value| value.is_null()).count();
            assert_eq!(nulls, missing.min(3), "{count}: {json}");
        }
        // What one run does not have the median does not have.
        let median = Percentiles::median(&[of(100), of(1_000)]);
        assert_eq!((median.p99, median.p99_9), (Some(3), None));
        assert_eq!(median_far_ratio([(Some(3), Some(2)), (Some(1), None)]), None);
        assert_eq!(median_far_ratio([(Some(3), Some(2))]), Some(150));
        assert_eq!((hundredths(None), hundredths(Some(150))), ("-".into(), "1.50".into()));
    }

    #[test]
    fn medians_and_texts() {
        assert_eq!((median([]), median([3]), median([5, 1]), median([9, 1, 2])), (0, 3, 3, 2));
        assert_eq!(median_ratio([(3, 2), (7, 0), (5, 2), (u64::MAX, 1), (4, 2)]), 200);
        assert_eq!(median_ratio([(1, 0)]), 0);
        let runs = [1, 7, 4].map(|p50| Percentiles { p50, max: 10 * p50, ..Default::default() });
        let median = Percentiles::median(&runs);
        assert_eq!((median.p50, median.max), (4, 70), "the longest is that of all");
        assert_eq!(duration(9_999), "9999 ns");
        assert_eq!(duration(12_345), "12.3 us");
        assert_eq!(duration(12_345_678), "12.3 ms");
        assert_eq!(duration(12_345_678_901), "12.3 s");
        assert_eq!((ratio(250, 100).as_str(), ratio(1, 0).as_str()), ("2.50", "-"));
        assert_eq!(Percentiles::default().columns().len(), Percentiles::HEADING.len());
    }
}
