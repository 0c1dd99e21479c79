//! The result of [`super::run`] and its text.

use std::fmt::Write as _;

use serde::Serialize;
use touchline_protocol::wait::WaitStrategy;

use super::goals::{OfOrders, SessionGoal, goals};
use super::{BLOCKS, RttOptions, Run, wait_name};
use crate::goal::{self, Compared};
use crate::latency::{Percentiles, duration, median_ratio, ratio};
use crate::machine::Machine;
use crate::scratch::Scratch;

/// All of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RttReport {
    /// What it was measured on.
    pub machine: Machine,
    /// What the engine's log was written to; none without an engine.
    pub scratch: Option<Scratch>,
    /// `adaptive` or `spin`.
    pub wait: &'static str,
    /// Round trips of each kind per run that were recorded.
    pub messages: u32,
    /// Sessions that sent nothing, beside those that were measured.
    pub idle_sessions: u32,
    /// Orders per second of those that went on a schedule.
    pub rate: u32,
    /// Each run.
    pub runs: Vec<Run>,
    /// Medians of the runs.
    pub median: Run,
    /// Medians of the runs' ratios of p50, in hundredths.
    pub ratios: Ratios,
    /// What orders that take one take beyond the baselines; none unless all of them spin.
    pub goals: Vec<SessionGoal>,
    /// What an order by way of a second thread may take, waiting adaptively, one at a time and on a schedule; none if
    /// nobody waits so.
    pub hop_goals: Vec<goal::Goal>,
}

/// Ratios of medians within a run, in hundredths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Ratios {
    /// Ring to bare cache line.
    pub ring_to_bare: u64,
    /// Order that rests to bare cache line.
    pub order_to_bare: u64,
    /// Order that rests to ring.
    pub order_to_ring: u64,
    /// Order that rests in a brief session to bare cache line.
    pub brief_to_bare: u64,
    /// Order that rests in a brief session to ring.
    pub brief_to_ring: u64,
    /// Order that rests in a terse session to bare cache line.
    pub terse_to_bare: u64,
    /// Order that rests in a terse session to ring.
    pub terse_to_ring: u64,
    /// Order that takes to bare cache line.
    pub order_takes_to_bare: u64,
    /// Order that takes to ring.
    pub order_takes_to_ring: u64,
    /// Order that takes in a brief session to bare cache line.
    pub brief_takes_to_bare: u64,
    /// Order that takes in a brief session to ring.
    pub brief_takes_to_ring: u64,
    /// Order that takes in a terse session to bare cache line.
    pub terse_takes_to_bare: u64,
    /// Order that takes in a terse session to ring.
    pub terse_takes_to_ring: u64,
    /// Cancel to bare cache line.
    pub cancel_to_bare: u64,
    /// Cancel to ring.
    pub cancel_to_ring: u64,
    /// Cancel in a terse session to bare cache line.
    pub terse_cancel_to_bare: u64,
    /// Cancel in a terse session to ring.
    pub terse_cancel_to_ring: u64,
    /// Order that rests, by a thread in between to bare cache line.
    pub hop_to_bare: u64,
    /// Order that rests, by a thread in between to ring.
    pub hop_to_ring: u64,
}

fn median_run(runs: &[Run]) -> Run {
    let of = |field: fn(&Run) -> Option<Percentiles>| {
        let all: Vec<Percentiles> = runs.iter().filter_map(field).collect();
        (!all.is_empty()).then(|| Percentiles::median(&all))
    };
    Run {
        bare: of(|run| Some(run.bare)).unwrap_or_default(),
        ring: of(|run| Some(run.ring)).unwrap_or_default(),
        order: of(|run| run.order),
        brief: of(|run| run.brief),
        terse: of(|run| run.terse),
        order_takes: of(|run| run.order_takes),
        brief_takes: of(|run| run.brief_takes),
        terse_takes: of(|run| run.terse_takes),
        order_takes_due: of(|run| run.order_takes_due),
        brief_takes_due: of(|run| run.brief_takes_due),
        terse_takes_due: of(|run| run.terse_takes_due),
        cancel: of(|run| run.cancel),
        terse_cancel: of(|run| run.terse_cancel),
        hop: of(|run| run.hop),
        hop_due: of(|run| run.hop_due),
    }
}

fn ratios(runs: &[Run]) -> Ratios {
    let of = |numerator: fn(&Run) -> Option<Percentiles>, denominator: fn(&Run) -> Percentiles| {
        let pair = |run| Some((numerator(run)?.p50, denominator(run).p50));
        median_ratio(runs.iter().filter_map(pair))
    };
    Ratios {
        ring_to_bare: of(|run| Some(run.ring), |run| run.bare),
        order_to_bare: of(|run| run.order, |run| run.bare),
        order_to_ring: of(|run| run.order, |run| run.ring),
        brief_to_bare: of(|run| run.brief, |run| run.bare),
        brief_to_ring: of(|run| run.brief, |run| run.ring),
        terse_to_bare: of(|run| run.terse, |run| run.bare),
        terse_to_ring: of(|run| run.terse, |run| run.ring),
        order_takes_to_bare: of(|run| run.order_takes, |run| run.bare),
        order_takes_to_ring: of(|run| run.order_takes, |run| run.ring),
        brief_takes_to_bare: of(|run| run.brief_takes, |run| run.bare),
        brief_takes_to_ring: of(|run| run.brief_takes, |run| run.ring),
        terse_takes_to_bare: of(|run| run.terse_takes, |run| run.bare),
        terse_takes_to_ring: of(|run| run.terse_takes, |run| run.ring),
        cancel_to_bare: of(|run| run.cancel, |run| run.bare),
        cancel_to_ring: of(|run| run.cancel, |run| run.ring),
        terse_cancel_to_bare: of(|run| run.terse_cancel, |run| run.bare),
        terse_cancel_to_ring: of(|run| run.terse_cancel, |run| run.ring),
        hop_to_bare: of(|run| run.hop, |run| run.bare),
        hop_to_ring: of(|run| run.hop, |run| run.ring),
    }
}

/// An order that rests, by way of a second thread, p50, ns.
const HOP_NS: u64 = 6_000;

/// None of orders that not each run has.
fn hop_goals(runs: &[Run]) -> Vec<goal::Goal> {
    let kinds: [(&str, OfOrders); 2] =
        [("by a hop, p50", |run| run.hop), ("by a hop, on schedule, p50", |run| run.hop_due)];
    let of = |(name, hop): (&str, OfOrders)| {
        let hops: Option<Vec<u64>> = runs.iter().map(|run| hop(run).map(|hop| hop.p50)).collect();
        let hops = Compared::to_bound(hops.filter(|hops| !hops.is_empty())?, HOP_NS, &duration);
        Some(hops.at_most(name, 100))
    };
    kinds.into_iter().filter_map(of).collect()
}

/// What is said in the place of goals.
const NO_VERDICT: &str = "no verdict: the goal is that of two sides that spin (--wait spin); waiting adaptively ring \
                          and engine give their cores away, and the bare cache line never does";

impl RttReport {
    pub(super) fn new(options: &RttOptions, scratch: Option<Scratch>, runs: Vec<Run>) -> Self {
        Self {
            machine: Machine::here(),
            scratch,
            wait: wait_name(options.wait),
            messages: options.messages.div_ceil(BLOCKS) * BLOCKS,
            idle_sessions: options.idle_sessions,
            rate: options.rate,
            median: median_run(&runs),
            ratios: ratios(&runs),
            goals: match options.wait {
                WaitStrategy::Spin => goals(&runs),
                WaitStrategy::Adaptive => Vec::new(),
            },
            hop_goals: match options.wait {
                WaitStrategy::Spin => Vec::new(),
                WaitStrategy::Adaptive => hop_goals(&runs),
            },
            runs,
        }
    }

    /// What each row of the text is about, its median and its ratios; 0 for none, as of what goes on a schedule while
    /// the baselines go one at a time.
    fn rows(&self) -> [(&'static str, Option<Percentiles>, u64, u64); 15] {
        let (of, to) = (&self.median, &self.ratios);
        [
            ("bare cache line", Some(of.bare), 100, 0),
            ("our ring", Some(of.ring), to.ring_to_bare, 100),
            ("order that takes", of.order_takes, to.order_takes_to_bare, to.order_takes_to_ring),
            ("takes, brief", of.brief_takes, to.brief_takes_to_bare, to.brief_takes_to_ring),
            ("takes, terse", of.terse_takes, to.terse_takes_to_bare, to.terse_takes_to_ring),
            ("takes, on schedule", of.order_takes_due, 0, 0),
            ("  brief", of.brief_takes_due, 0, 0),
            ("  terse", of.terse_takes_due, 0, 0),
            ("order that rests", of.order, to.order_to_bare, to.order_to_ring),
            ("rests, brief", of.brief, to.brief_to_bare, to.brief_to_ring),
            ("rests, terse", of.terse, to.terse_to_bare, to.terse_to_ring),
            ("rests, by a hop", of.hop, to.hop_to_bare, to.hop_to_ring),
            ("  on schedule", of.hop_due, 0, 0),
            ("cancel", of.cancel, to.cancel_to_bare, to.cancel_to_ring),
            ("cancel, terse", of.terse_cancel, to.terse_cancel_to_bare, to.terse_cancel_to_ring),
        ]
    }

    /// Several lines of text.
    #[must_use]
    pub fn text(&self) -> String {
        let scratch = self.scratch.as_ref().map(|scratch| format!("scratch: {}\n", scratch.line()));
        let mut text = format!(
            "round trips between two processes: {} of each kind per run, median of {} run(s), \
             waiting {}, beside {} idle session(s);\none at a time, and on a schedule of {} a second, from when each was \
             due\nmachine: {}\n{}\n{:<22}{}   p50 to bare   to our ring\n",
            self.messages,
            self.runs.len(),
            self.wait,
            self.idle_sessions,
            self.rate,
            self.machine.line(),
            scratch.unwrap_or_default(),
            "",
            Percentiles::HEADING,
        );
        for (name, percentiles, to_bare, to_ring) in self.rows() {
            let Some(percentiles) = percentiles else { continue };
            let [to_bare, to_ring] =
                [to_bare, to_ring].map(|to| if to == 0 { String::new() } else { ratio(to, 100) });
            // Writing to a String cannot fail.
            let _infallible = writeln!(
                text,
                "{name:<22}{}   {to_bare:>11}   {to_ring:>11}",
                percentiles.columns(),
            );
        }
        for goal in &self.goals {
            let _infallible = writeln!(text, "{}", goal.line());
        }
        if self.goals.is_empty() && self.median.order_takes.is_some() {
            let _infallible = writeln!(text, "{NO_VERDICT}");
        }
        text.push_str(&goal::Goal::lines(&self.hop_goals));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_spins_on_both_sides_has_a_goal() {
        let report = |wait, order| {
            let options =
                RttOptions { engine: None, wait, runs: 1, messages: 1, idle_sessions: 0, rate: 1 };
            RttReport::new(
                &options,
                None,
                vec![Run { order, order_takes: order, order_takes_due: order, ..Run::default() }],
            )
        };
        let order = Some(Percentiles::default());
        let spinning = report(WaitStrategy::Spin, order);
        assert_eq!((spinning.goals.len(), spinning.text().contains(NO_VERDICT)), (1, false));
        let adaptive = report(WaitStrategy::Adaptive, order);
        assert_eq!((adaptive.goals.len(), adaptive.text().contains(NO_VERDICT)), (0, true));
        // Of the baselines alone there is nothing to judge.
        assert!(!report(WaitStrategy::Adaptive, None).text().contains(NO_VERDICT));
    }

    #[test]
    fn only_what_waits_adaptively_has_a_goal_by_a_hop() {
        let report = |wait, hops: &[Option<u64>]| {
            let options =
                RttOptions { engine: None, wait, runs: 1, messages: 1, idle_sessions: 0, rate: 1 };
            let hop = |p50: &Option<u64>| p50.map(|p50| Percentiles { p50, ..Default::default() });
            let due = |p50: &Option<u64>| hop(&p50.map(|p50| p50 + 1));
            let run = |p50| Run { hop: hop(p50), hop_due: due(p50), ..Run::default() };
            let report = RttReport::new(&options, None, hops.iter().map(run).collect());
            report.hop_goals.into_iter().map(|goal| goal.reached).collect::<Vec<_>>()
        };
        let adaptive = |hops: &[Option<u64>]| report(WaitStrategy::Adaptive, hops);
        assert_eq!(adaptive(&[Some(6_000)]), [true, false].map(Some));
        assert_eq!(adaptive(&[Some(6_001), Some(1), Some(9_000)]), [false, false].map(Some));
        assert_eq!(adaptive(&[None]), []);
        assert_eq!(report(WaitStrategy::Spin, &[Some(1)]), []);
    }

    #[test]
    fn ratios_are_medians_of_the_runs_own() {
        let run = |bare, order| Run {
            bare: Percentiles { p50: bare, ..Default::default() },
            ring: Percentiles { p50: 2 * bare, ..Default::default() },
            order: Some(Percentiles { p50: order, ..Default::default() }),
            ..Run::default()
        };
        // Near cores, far cores, near cores: the ratio hardly moves although the figures do.
        let runs = [run(100, 1000), run(500, 4500), run(100, 1100)];
        let ratios = ratios(&runs);
        assert_eq!((ratios.ring_to_bare, ratios.order_to_bare), (200, 1000));
        assert_eq!((ratios.order_to_ring, ratios.cancel_to_bare), (500, 0));
        let median = median_run(&runs);
        assert_eq!((median.bare.p50, median.cancel), (100, None));
    }
}
