//! A ratio that is to be reached, and its line in a report. Called by the reports.

use serde::Serialize;

use crate::latency::ratio;

/// A ratio with its bound.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Goal {
    /// What is compared with what.
    pub name: String,
    /// The figure, with its unit.
    pub figure: String,
    /// What it is compared with.
    pub beside: String,
    /// The ratio, in hundredths.
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
    /// A ratio that may be at most the bound; `figures` are those that are compared, with their units.
    #[must_use]
    pub fn at_most(name: String, figures: [String; 2], ratio: u64, bound: u64) -> Self {
        let [figure, beside] = figures;
        let reached = Some(ratio <= bound);
        Self { name, figure, beside, ratio, bound, at_most: true, or: None, reached, untold: None }
    }

    /// A ratio that is to be at least the bound.
    #[must_use]
    pub fn at_least(name: String, figures: [String; 2], ratio: u64, bound: u64) -> Self {
        let reached = Some(ratio >= bound);
        Self { at_most: false, reached, ..Self::at_most(name, figures, ratio, bound) }
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

    /// The heading of [`line`](Self::line).
    #[must_use]
    pub fn heading() -> String {
        format!("{:<43}{:>13}{:>15}{:>8}   goal", "", "figure", "beside", "ratio")
    }

    /// One line, without an end.
    #[must_use]
    pub fn line(&self) -> String {
        let Self { name, figure, beside, .. } = self;
        let sign = if self.at_most { "<=" } else { ">=" };
        let or = self.or.map(|or| format!(" or {or}")).unwrap_or_default();
        let outcome = match self.reached {
            Some(true) => "reached".to_owned(),
            Some(false) => "missed".to_owned(),
            None => format!("-: {}", self.untold.unwrap_or("unknown")),
        };
        let [ratio, bound] = [self.ratio, self.bound].map(|hundredths| ratio(hundredths, 100));
        format!("{name:<43}{figure:>13}{beside:>15}{ratio:>8}   {sign} {bound}{or}: {outcome}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_what_reaches_it() {
        let figures = || ["3 ns".to_owned(), "2 ns".to_owned()];
        let most = |ratio| Goal::at_most("a".to_owned(), figures(), ratio, 200).reached;
        assert_eq!([199, 200, 201].map(most), [true, true, false].map(Some));
        let least = |ratio| Goal::at_least("a".to_owned(), figures(), ratio, 200);
        assert_eq!(
            [199, 200, 201].map(|ratio| least(ratio).reached),
            [false, true, true].map(Some)
        );
        let or = |ratio, is_there| least(ratio).or("9 M/s", is_there).reached;
        assert_eq!([or(1, true), or(200, false), or(1, false)], [true, true, false].map(Some));
        let untold = least(200).without_verdict("noise");
        assert!(untold.line().ends_with("-: noise"), "{}", untold.line());
        assert_eq!(untold.or("9 M/s", true).reached, Some(true));
        let line = least(150).or("9 M/s", false).line();
        assert!(
            line.starts_with("a ") && line.ends_with("1.50   >= 2.00 or 9 M/s: missed"),
            "{line}"
        );
        let ends = |text: &str, word: &str| text.find(word).map(|at| at + word.len());
        assert_eq!(ends(&Goal::heading(), "ratio"), ends(&line, "1.50"));
    }
}
