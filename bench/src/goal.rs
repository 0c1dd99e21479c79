//! A ratio that is to be reached, and its line in a report. Called by the reports.

use std::cmp::Ordering;
use std::fmt::Write as _;

use serde::Serialize;

use crate::latency::{median, median_ratio, ratio};

/// Columns of a goal's name; as many as the longest has, if that is more.
const NAME_WIDTH: usize = 43;

/// A ratio with its bound.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Goal {
    /// What is compared with what.
    pub name: String,
    /// The figure, with its unit.
    pub figure: String,
    /// What it is compared with.
    pub beside: String,
    /// The ratio, in whole hundredths, rounded down; it is judged exactly.
    pub ratio: u64,
    /// The bound, in hundredths.
    pub bound: u64,
    /// Whether the ratio may be at most the bound, rather than at least.
    pub at_most: bool,
    /// An absolute figure that would do as well.
    pub or: Option<&'static str>,
    /// Whether the bound, or the other figure, is reached; none if that cannot be told.
    pub reached: Option<bool>,
    /// Why it cannot be told.
    pub untold: Option<&'static str>,
}

impl Goal {
    /// A ratio that may be at most the bound, in hundredths: the median of those of `pairs`, each of a figure to what
    /// was measured beside it. `figures` are what is shown of them, with their units.
    #[must_use]
    pub fn at_most(name: String, figures: [String; 2], pairs: &[(u64, u64)], bound: u64) -> Self {
        Self::of(name, figures, (pairs, bound), true)
    }

    /// A ratio that is to be at least the bound.
    #[must_use]
    pub fn at_least(name: String, figures: [String; 2], pairs: &[(u64, u64)], bound: u64) -> Self {
        Self::of(name, figures, (pairs, bound), false)
    }

    fn of(
        name: String,
        [figure, beside]: [String; 2],
        (pairs, bound): (&[(u64, u64)], u64),
        at_most: bool,
    ) -> Self {
        let to_bound = median_to(pairs, bound);
        let is_allowed = if at_most { Ordering::is_le } else { Ordering::is_ge };
        Self {
            name,
            figure,
            beside,
            ratio: median_ratio(pairs.iter().copied()),
            bound,
            at_most,
            or: None,
            reached: to_bound.map(is_allowed),
            untold: to_bound.is_none().then_some("nothing to compare with"),
        }
    }

    /// An absolute figure that reaches the goal as well, and whether it is there.
    #[must_use]
    pub fn or(self, figure: &'static str, is_there: bool) -> Self {
        let goal = Self { or: Some(figure), ..self };
        if is_there { Self { reached: Some(true), untold: None, ..goal } } else { goal }
    }

    /// No verdict, for this reason.
    #[must_use]
    pub fn without_verdict(self, why: &'static str) -> Self {
        Self { reached: None, untold: Some(why), ..self }
    }

    /// No verdict where it is reached and there is a reason to take that for noise; what is missed beside too long a time
    /// is missed beside the right one.
    #[must_use]
    pub(crate) fn unless_noise(self, why: Option<&'static str>) -> Self {
        match why {
            Some(why) if self.reached == Some(true) => self.without_verdict(why),
            _ => self,
        }
    }

    /// An empty line, the heading, and a line of each; nothing of none.
    #[must_use]
    pub fn lines(goals: &[Self]) -> String {
        let mut text = String::new();
        let width = goals.iter().map(|goal| goal.name.len()).fold(NAME_WIDTH, usize::max);
        if !goals.is_empty() {
            // Writing to a String cannot fail.
            let _infallible = writeln!(text, "\n{}", Self::heading(width));
        }
        for goal in goals {
            let _infallible = writeln!(text, "{}", goal.line(width));
        }
        text
    }

    /// The heading of [`line`](Self::line).
    fn heading(width: usize) -> String {
        format!("{:<width$}{:>13}{:>15}{:>8}   goal", "", "figure", "beside", "ratio")
    }

    /// One line, without an end.
    fn line(&self, width: usize) -> String {
        let Self { name, figure, beside, .. } = self;
        let sign = if self.at_most { "<=" } else { ">=" };
        let or = self.or.map(|or| format!(" or {or}")).unwrap_or_default();
        let outcome = match self.reached {
            Some(true) => "reached".to_owned(),
            Some(false) => "missed".to_owned(),
            None => format!("-: {}", self.untold.unwrap_or("unknown")),
        };
        let bound = ratio(self.bound, 100);
        // Nothing was compared, or what was is too small to be told.
        let is_none = self.ratio == 0 && self.reached.is_none();
        let ratio = if is_none { "-".to_owned() } else { ratio(self.ratio, 100) };
        format!("{name:<width$}{figure:>13}{beside:>15}{ratio:>8}   {sign} {bound}{or}: {outcome}")
    }
}

/// A figure of each run with what was measured beside it, or with what it may be, and how both are shown.
pub(crate) struct Compared<'show> {
    pairs: Vec<(u64, u64)>,
    /// Why nothing is compared.
    untold: Option<&'static str>,
    show: &'show dyn Fn(u64) -> String,
}

impl<'show> Compared<'show> {
    /// Each figure, and what was measured beside it.
    pub(crate) fn beside(
        pairs: impl IntoIterator<Item = (u64, u64)>,
        show: &'show dyn Fn(u64) -> String,
    ) -> Self {
        Self { pairs: pairs.into_iter().collect(), untold: None, show }
    }

    /// Of far percentiles; nothing is compared unless every run has both.
    pub(crate) fn far(
        pairs: impl IntoIterator<Item = (Option<u64>, Option<u64>)>,
        show: &'show dyn Fn(u64) -> String,
    ) -> Self {
        let pairs: Option<Vec<_>> =
            pairs.into_iter().map(|(figure, beside)| figure.zip(beside)).collect();
        let untold = pairs.is_none().then_some("too few in a run");
        Self { pairs: pairs.unwrap_or_default(), untold, show }
    }

    /// Each figure, and a bound of its own: the ratio that is shown is to that, and 100 hundredths of it are allowed.
    pub(crate) fn to_bound(
        figures: impl IntoIterator<Item = u64>,
        bound: u64,
        show: &'show dyn Fn(u64) -> String,
    ) -> Self {
        Self::beside(figures.into_iter().map(|figure| (figure, bound)), show)
    }

    /// The median ratio may be at most so many hundredths.
    pub(crate) fn at_most(&self, name: impl Into<String>, bound: u64) -> Goal {
        self.judged(Goal::at_most(name.into(), self.figures(), &self.pairs, bound))
    }

    /// The median ratio is to be at least so many hundredths.
    pub(crate) fn at_least(&self, name: impl Into<String>, bound: u64) -> Goal {
        self.judged(Goal::at_least(name.into(), self.figures(), &self.pairs, bound))
    }

    /// As [`at_least`](Self::at_least); a figure of its own reaches the goal as well.
    pub(crate) fn at_least_or(
        &self,
        name: impl Into<String>,
        bound: u64,
        (or, enough): (&'static str, u64),
    ) -> Goal {
        let is_there = median(self.pairs.iter().map(|pair| pair.0)) >= enough;
        self.at_least(name, bound).or(or, is_there)
    }

    fn judged(&self, goal: Goal) -> Goal {
        match self.untold {
            Some(why) => goal.without_verdict(why),
            None => goal,
        }
    }

    /// How the median ratio stands to so many hundredths; none if nothing is compared.
    pub(crate) fn median_to(&self, bound: u64) -> Option<Ordering> {
        median_to(&self.pairs, bound)
    }

    /// The medians, as they are shown; dashes of nothing.
    fn figures(&self) -> [String; 2] {
        if self.pairs.is_empty() {
            return ["-", "-"].map(str::to_owned);
        }
        let (figures, beside): (Vec<_>, Vec<_>) = self.pairs.iter().copied().unzip();
        [figures, beside].map(|values| (self.show)(median(values)))
    }
}

/// Where the largest of the bare figures of a measurement's rounds is more than so many times the least, the machine
/// held some of them up.
const FAR_APART: u64 = 3;

/// Said in the place of a verdict where they are.
pub(crate) const IS_FAR_APART: &str = "noise, bare figures of the runs are far apart";

/// [`IS_FAR_APART`], if the bare figures of all rounds are.
pub(crate) fn far_apart(bare: impl IntoIterator<Item = u64>) -> Option<&'static str> {
    let bare: Vec<u64> = bare.into_iter().collect();
    let (least, most) = (*bare.iter().min()?, *bare.iter().max()?);
    (most > least.saturating_mul(FAR_APART)).then_some(IS_FAR_APART)
}

/// How the median of the pairs' ratios stands to a bound in hundredths, exactly: a ratio is printed in whole
/// hundredths, and one just above its bound prints as the bound. None if no pair has anything to be compared with.
pub(crate) fn median_to(pairs: &[(u64, u64)], bound: u64) -> Option<Ordering> {
    let mut pairs: Vec<_> = pairs.iter().copied().filter(|&(_, beside)| beside > 0).collect();
    pairs.sort_unstable_by(|one, other| product(one.0, other.1).cmp(&product(other.0, one.1)));
    let (lower, upper) = (*pairs.get(pairs.len().checked_sub(1)? / 2)?, pairs[pairs.len() / 2]);
    // By how many hundredths of its second each is beyond the bound; of an even number the mean of the two counts.
    // Figures for which this does not fit are none that anything here measures.
    let beyond = |(figure, beside): (u64, u64)| product(figure, 100) - product(bound, beside);
    let sum = beyond(lower)
        .saturating_mul(upper.1.into())
        .saturating_add(beyond(upper).saturating_mul(lower.1.into()));
    Some(sum.cmp(&0))
}

/// Of figures that are measured, which are far below 2^63.
fn product(one: u64, other: u64) -> i128 {
    i128::from(one).saturating_mul(other.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_compared_exactly() {
        use Ordering::{Equal, Greater, Less};
        assert_eq!(median_to(&[(2, 1)], 200), Some(Equal));
        assert_eq!(median_to(&[(200_001, 100_000)], 200), Some(Greater));
        assert_eq!(median_to(&[(199_999, 100_000)], 200), Some(Less));
        // Of three the middle one, of two their mean: 1.99 and 2.01, then 1.99 and 2.02.
        assert_eq!(median_to(&[(9, 1), (200_001, 100_000), (1, 1)], 200), Some(Greater));
        assert_eq!(median_to(&[(402, 200), (199, 100)], 200), Some(Equal));
        assert_eq!(median_to(&[(404, 200), (199, 100)], 200), Some(Greater));
        // What was compared with nothing does not count.
        assert_eq!(median_to(&[(9, 0), (1, 1)], 200), Some(Less));
        assert_eq!((median_to(&[(9, 0)], 200), median_to(&[], 200)), (None, None));
    }

    #[test]
    fn noise_hides_what_is_reached_and_no_miss() {
        assert_eq!((far_apart([]), far_apart([7]), far_apart([3, 9, 4])), (None, None, None));
        let noise = far_apart([3, 10, 4]);
        assert_eq!(noise, Some(IS_FAR_APART));
        let judged = |ratio| {
            let figures = ["3 ns", "2 ns"].map(str::to_owned);
            let goal = Goal::at_most("a".to_owned(), figures, &[(ratio, 100)], 200);
            let quiet = goal.clone().unless_noise(None);
            assert_eq!(quiet, goal);
            let goal = goal.unless_noise(noise);
            (goal.reached, goal.untold)
        };
        assert_eq!(judged(200), (None, noise));
        assert_eq!(judged(201), (Some(false), None));
    }

    #[test]
    fn a_bound_belongs_to_what_reaches_it() {
        let figures = || ["3 ns".to_owned(), "2 ns".to_owned()];
        let most = |ratio| Goal::at_most("a".to_owned(), figures(), &[(ratio, 100)], 200).reached;
        assert_eq!([199, 200, 201].map(most), [true, true, false].map(Some));
        let least = |ratio| Goal::at_least("a".to_owned(), figures(), &[(ratio, 100)], 200);
        assert_eq!(
            [199, 200, 201].map(|ratio| least(ratio).reached),
            [false, true, true].map(Some)
        );
        let or = |ratio, is_there| least(ratio).or("9 M/s", is_there).reached;
        assert_eq!([or(1, true), or(200, false), or(1, false)], [true, true, false].map(Some));
        // It prints as the bound, and is beyond it.
        let close = Goal::at_most("a".to_owned(), figures(), &[(3_009, 1_000)], 300);
        assert_eq!((close.ratio, close.reached), (300, Some(false)));
        let untold = least(200).without_verdict("noise");
        assert!(untold.line(0).ends_with("-: noise"), "{}", untold.line(0));
        assert_eq!(untold.or("9 M/s", true).reached, Some(true));
        let far = |pairs: [(Option<u64>, Option<u64>); 2]| {
            let goal = Compared::far(pairs, &|ns| format!("{ns} ns")).at_most("a", 200);
            (goal.reached, goal.untold, goal.figure)
        };
        let both = (Some(4), Some(2));
        assert_eq!(far([both, both]), (Some(true), None, "4 ns".to_owned()));
        let lacking = (None, Some("too few in a run"), "-".to_owned());
        assert_eq!(far([both, (None, Some(2))]), lacking);
        let line = least(150).or("9 M/s", false).line(NAME_WIDTH);
        assert!(
            line.starts_with("a ") && line.ends_with("1.50   >= 2.00 or 9 M/s: missed"),
            "{line}"
        );
        // A long name does not push its own line's columns to the right of the others.
        let long = Goal { name: "a".repeat(50), ..least(150) };
        let lines = Goal::lines(&[long, least(150)]);
        let ratios: Vec<_> = lines.lines().filter_map(|line| line.find("1.50")).collect();
        assert!(ratios.len() == 2 && ratios[0] == ratios[1], "{lines}");
        let nothing = Goal::at_least("a".to_owned(), figures(), &[], 200);
        assert!(nothing.line(0).contains(" -   >= 2.00: -: nothing"), "{}", nothing.line(0));
        let ends = |text: &str, word: &str| text.find(word).map(|at| at + word.len());
        assert_eq!(ends(&Goal::heading(NAME_WIDTH), "ratio"), ends(&line, "1.50"));
    }
}
