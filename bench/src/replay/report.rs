//! What a replay found, as text and as JSON. Called by [`crate::cli`].

use std::fmt::Write as _;

use serde::Serialize;

use super::observation::Observation;
use super::rows_that_differ;
use crate::latency::{Percentiles, median, median_ratio, ratio};
use crate::machine::Machine;
use crate::recording::explanation::Comparison;
use crate::recording::flow::{Counts, Flow};
use crate::scratch::Scratch;

/// A pass whose every outcome was checked.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct CheckedPass {
    /// Commands sent, each answered by one terminal reply.
    pub commands: usize,
    /// Commands whose outcome was not the expected one.
    pub unexpected: usize,
    /// The first of them.
    pub told: Vec<String>,
    /// IOC orders sent.
    pub executions: usize,
    /// Of those, filled by exactly the recorded order.
    pub hits: usize,
    /// Trades.
    pub trades: usize,
    /// Rows after which the engine's top of book is not that of the independent price-time book.
    pub rows_off_reference: usize,
    /// Fingerprint of all events, 16 hexadecimal digits.
    pub fingerprint: String,
}

impl CheckedPass {
    /// Sums up a pass over `flow`.
    #[must_use]
    pub fn new(flow: &Flow, observation: &Observation) -> Self {
        Self {
            commands: flow.steps.len(),
            unexpected: observation.unexpected,
            told: observation.told.clone(),
            executions: flow.counts.executions_in_turn,
            hits: observation.hits,
            trades: observation.trades,
            rows_off_reference: rows_that_differ(&observation.tops, &flow.tops),
            fingerprint: hexadecimal(observation.fingerprint),
        }
    }

    fn is_as_expected(&self) -> bool {
        self.unexpected == 0
            && self.rows_off_reference == 0
            && self.hits == self.executions
            && self.trades == self.executions
    }
}

fn hexadecimal(fingerprint: u64) -> String {
    format!("{fingerprint:016x}")
}

/// One measured run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MeasuredRun {
    /// Commands answered per second with many under way.
    pub messages_per_second: u64,
    /// Command to terminal reply, one at a time.
    pub one_by_one: Percentiles,
    /// Due time to terminal reply, on a schedule.
    pub scheduled: Option<Percentiles>,
    /// Round trip of a bare cache line.
    pub bare: Percentiles,
    /// Round trip through a bare ring.
    pub ring: Percentiles,
    /// Fingerprints of the run's passes.
    #[serde(skip)]
    pub fingerprints: Vec<u64>,
}

/// All that a replay found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ReplayReport {
    /// What it ran on.
    pub machine: Machine,
    /// Where temporary data was.
    pub scratch: Scratch,
    /// `adaptive` or `spin`.
    pub wait: &'static str,
    /// Rows by kind and cause.
    pub counts: Counts,
    /// Orders that no row introduces and later rows reveal.
    pub revealed_orders: usize,
    /// Orders that left the recorded depth for good.
    pub orders_beyond_depth: usize,
    /// Best levels per side that the messages cover.
    pub recorded_depth: usize,
    /// The rows as they stand.
    pub plain: CheckedPass,
    /// With what they reveal.
    pub completed: CheckedPass,
    /// Against the recorded states.
    pub comparison: Comparison,
    /// Commands per second of the scheduled passes.
    pub rate: Option<u32>,
    /// The measured runs.
    pub runs: Vec<MeasuredRun>,
}

impl ReplayReport {
    /// Measured passes whose events were not those of the checked pass.
    #[must_use]
    pub fn passes_that_differ(&self) -> usize {
        let fingerprints = self.runs.iter().flat_map(|run| &run.fingerprints);
        fingerprints.filter(|&&one| hexadecimal(one) != self.plain.fingerprint).count()
    }

    /// Whether nothing unexpected and nothing unexplained happened.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.plain.is_as_expected()
            && self.completed.is_as_expected()
            && self.comparison.other() == 0
            && self.counts.executions_unexplained == 0
            && self.counts.contradictions == 0
            && self.passes_that_differ() == 0
    }

    /// One line of JSON.
    ///
    /// # Errors
    /// None that can occur: every key is a text.
    pub fn json(&self) -> serde_json::Result<String> {
        let mut value = serde_json::to_value(self)?;
        value["passes_that_differ"] = self.passes_that_differ().into();
        value["other"] = self.comparison.other().into();
        value["median"] = serde_json::json!({
            "messages_per_second": self.messages_per_second(),
            "one_by_one": self.median(|run| Some(run.one_by_one)),
            "scheduled": self.median(|run| run.scheduled),
            "bare": self.median(|run| Some(run.bare)),
            "ring": self.median(|run| Some(run.ring)),
            "one_by_one_to_ring": (!self.runs.is_empty()).then(|| self.ratio_to_ring()),
        });
        value["passed"] = self.passed().into();
        serde_json::to_string(&value)
    }

    /// Several lines of text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _infallible = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        writeln!(text, "machine: {}\nscratch: {}", self.machine.line(), self.scratch.line())?;
        self.write_rows(text)?;
        self.write_checks(text)?;
        self.write_states(text)?;
        self.write_measurements(text)?;
        let verdict = if self.passed() { "passed" } else { "FAILED" };
        writeln!(
            text,
            "\n{verdict}: unexpected outcomes {}, unexplained differences {}",
            self.plain.unexpected + self.completed.unexpected,
            self.comparison.other()
        )
    }

    fn write_rows(&self, text: &mut String) -> std::fmt::Result {
        let counts = &self.counts;
        writeln!(text, "\nrows {}", counts.rows)?;
        let lines = [
            (counts.adds, "new orders"),
            (counts.reduces, "partial cancels"),
            (counts.cancels, "cancels"),
            (counts.executions, "executions of visible orders"),
            (counts.hidden_executions, "skipped: executions of hidden orders"),
            (counts.halts, "skipped: halts"),
            (counts.unseen(), "skipped: about orders that no row introduced"),
            (counts.contradictions, "skipped: contradict the rows before"),
        ];
        for (count, what) in lines {
            writeln!(text, "  {count:>7}  {what}")?;
        }
        writeln!(
            text,
            "visible executions at the front: {} of {}; the others, taken from the order directly:",
            counts.executions_in_turn, counts.executions
        )?;
        let lines = [
            (counts.executions_of_late_rows, "pre-open: the oldest there, but its row came late"),
            (
                counts.executions_passing_over,
                "the recording itself passed over an older visible order",
            ),
            (counts.executions_unexplained, "other"),
        ];
        for (count, what) in lines {
            writeln!(text, "  {count:>7}  {what}")?;
        }
        Ok(())
    }

    fn write_checks(&self, text: &mut String) -> std::fmt::Result {
        writeln!(text, "\nengine, every outcome checked:")?;
        let passes = [("rows as they stand", &self.plain), ("completed flow", &self.completed)];
        for (name, pass) in passes {
            writeln!(
                text,
                "  {name}: {} commands, {} of {} IOC orders hit exactly the recorded order, {} \
                 unexpected outcomes, {} rows off the independent price-time book, events {}",
                pass.commands,
                pass.hits,
                pass.executions,
                pass.unexpected,
                pass.rows_off_reference,
                pass.fingerprint,
            )?;
            for problem in &pass.told {
                writeln!(text, "    {problem}")?;
            }
        }
        writeln!(
            text,
            "  completed flow: {} orders put in that only later rows reveal, {} taken out that left \
             the recorded {} levels for good",
            self.revealed_orders, self.orders_beyond_depth, self.recorded_depth
        )
    }

    fn write_states(&self, text: &mut String) -> std::fmt::Result {
        let Comparison { not_recorded, not_replayed, .. } = self.comparison;
        let comparison = &self.comparison;
        writeln!(
            text,
            "\ndistinct top-of-book states, in recorded order:\n  rows as they stand: {} of {} \
             matched (longest common subsequence; {} by plain look-ahead), {} recorded\n  completed \
             flow: {} of {} matched, {} recorded",
            comparison.matched,
            comparison.replayed,
            comparison.matched_by_look_ahead,
            comparison.recorded,
            comparison.completed_matched,
            comparison.completed,
            comparison.recorded,
        )?;
        writeln!(text, "differences by cause        replayed only  recorded only")?;
        let lines = [
            ("pre-open and unseen orders", not_recorded.unseen_orders, not_replayed.unseen_orders),
            (
                "removed beyond the depth",
                not_recorded.removed_beyond_depth,
                not_replayed.removed_beyond_depth,
            ),
            ("hidden executions", 0, 0),
        ];
        for (name, replayed, recorded) in lines {
            writeln!(text, "  {name:<26}{replayed:>13}  {recorded:>13}")?;
        }
        writeln!(
            text,
            "  {:<26}{:>13}  {:>13}",
            "other",
            not_recorded.other + comparison.completed - comparison.completed_matched,
            not_replayed.other + comparison.recorded - comparison.completed_matched,
        )
    }

    fn write_measurements(&self, text: &mut String) -> std::fmt::Result {
        let Some(rate) = self.messages_per_second() else { return Ok(()) };
        writeln!(
            text,
            "\nmedian of {} run(s), both sides waiting {}; {} of their passes had other events than \
             the checked one",
            self.runs.len(),
            self.wait,
            self.passes_that_differ()
        )?;
        writeln!(text, "  messages/s, many under way: {rate}")?;
        writeln!(text, "  {:<30}{}", "command to terminal reply", Percentiles::HEADING)?;
        let scheduled =
            self.rate.map_or_else(String::new, |rate| format!("{rate}/s, from due time"));
        let lines = [
            ("one at a time", self.median(|run| Some(run.one_by_one))),
            (&scheduled, self.median(|run| run.scheduled)),
            ("bare ring round trip", self.median(|run| Some(run.ring))),
            ("bare cache-line round trip", self.median(|run| Some(run.bare))),
        ];
        for (name, percentiles) in lines {
            if let Some(percentiles) = percentiles {
                writeln!(text, "  {name:<30}{}", percentiles.columns())?;
            }
        }
        let to_ring = ratio(self.ratio_to_ring(), 100);
        writeln!(text, "  one at a time, p50 to the bare ring's: {to_ring}")
    }

    /// None if nothing was measured.
    fn messages_per_second(&self) -> Option<u64> {
        let rates = self.runs.iter().map(|run| run.messages_per_second);
        (!self.runs.is_empty()).then(|| median(rates))
    }

    fn median(&self, of: fn(&MeasuredRun) -> Option<Percentiles>) -> Option<Percentiles> {
        let all: Vec<Percentiles> = self.runs.iter().filter_map(of).collect();
        (!all.is_empty()).then(|| Percentiles::median(&all))
    }

    /// The median of the runs' ratios of p50, in hundredths.
    fn ratio_to_ring(&self) -> u64 {
        median_ratio(self.runs.iter().map(|run| (run.one_by_one.p50, run.ring.p50)))
    }
}
