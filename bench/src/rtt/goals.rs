//! What orders take beyond the baselines, and whether that is what they may. Called by [`super::report`].
//!
//! Judged are orders that are matched, one at a time and on a schedule. Of those that rest, in an empty book, the same figures are told and not judged.
//! Nothing that crosses two cores can be faster than a bare cache line does: where our ring was, what was measured as
//! the bare line is something else, such as two processes that took turns on a core.

use std::cmp::Ordering;

use serde::Serialize;

use super::Run;
use crate::goal::median_to;
use crate::latency::{Percentiles, hundredths, median, median_far_ratio, ratio};

/// Beyond 1.1 baselines a p50 may be so much, ns.
const BEYOND_NS: i64 = 250;

/// A p99 may be so many hundredths of the p50.
const P99: u64 = 200;

/// What is said in the place of a verdict.
const IS_NOISE: &str = "-: noise, a bare cache line took longer than our ring";
const TOO_FEW: &str = "-: too few orders";

/// How one session's orders compare with the goal: p50 at most 250 ns beyond 1.1 baselines, p99 at most 2 p50.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SessionGoal {
    /// Which session's orders.
    pub session: &'static str,
    /// Of orders that take one, one at a time.
    pub takes: Judged,
    /// Of the same on a schedule, from when each was due.
    pub takes_due: Judged,
    /// Of orders that rest, one at a time, which are not judged.
    pub rests: ToGoal,
}

/// What one kind of order comes to, and whether that is what it may.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Judged {
    /// What it comes to.
    pub to_goal: ToGoal,
    /// Whether 1.1 bare cache lines and 250 ns are reached; none where the bare one took longer than our ring, unless
    /// it is missed all the same.
    pub bare_reached: Option<bool>,
    /// Whether 1.1 of our rings and 250 ns are.
    pub ring_reached: bool,
    /// Whether 2 p50 are; none of too few orders.
    pub p99_reached: Option<bool>,
}

/// What one kind of order comes to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ToGoal {
    /// p50 beyond 1.1 bare cache lines, ns: the median of the runs' own; below 0 it is faster.
    pub beyond_bare_ns: i64,
    /// p50 beyond 1.1 of our rings, ns, likewise.
    pub beyond_ring_ns: i64,
    /// p99 to p50, in hundredths, likewise; none of too few orders.
    pub p99_to_p50: Option<u64>,
}

/// One session's orders of a run.
pub(super) type OfOrders = fn(&Run) -> Option<Percentiles>;

/// By session, of those that were measured.
pub(super) fn goals(runs: &[Run]) -> Vec<SessionGoal> {
    let sessions: [(&str, [OfOrders; 3]); 3] = [
        ("told all", [|run| run.order_takes, |run| run.order_takes_due, |run| run.order]),
        ("brief", [|run| run.brief_takes, |run| run.brief_takes_due, |run| run.brief]),
        ("terse", [|run| run.terse_takes, |run| run.terse_takes_due, |run| run.terse]),
    ];
    let of = |(session, [takes, takes_due, rests]): (_, [OfOrders; 3])| {
        Some(SessionGoal {
            session,
            takes: judged(runs, takes)?,
            takes_due: judged(runs, takes_due)?,
            rests: to_goal(runs, rests)?,
        })
    };
    sessions.into_iter().filter_map(of).collect()
}

fn judged(runs: &[Run], order: OfOrders) -> Option<Judged> {
    let is_within = |baseline| Some(beyond(runs, order, baseline)? <= BEYOND_NS * PARTS);
    let is_close = is_within(BARE)?;
    let far = far(runs, order).map(|(p99, p50)| p99.zip(p50)).collect::<Option<Vec<_>>>();
    Some(Judged {
        to_goal: to_goal(runs, order)?,
        bare_reached: (!is_close || !is_noise(runs)).then_some(is_close),
        ring_reached: is_within(RING)?,
        p99_reached: median_to(&far.unwrap_or_default(), P99).map(Ordering::is_le),
    })
}

/// Whether the bare cache line took longer than our ring, by the medians of the runs.
fn is_noise(runs: &[Run]) -> bool {
    median(runs.iter().map(|run| run.bare.p50)) > median(runs.iter().map(|run| run.ring.p50))
}

fn to_goal(runs: &[Run], order: OfOrders) -> Option<ToGoal> {
    Some(ToGoal {
        beyond_bare_ns: beyond(runs, order, BARE)?.div_euclid(PARTS),
        beyond_ring_ns: beyond(runs, order, RING)?.div_euclid(PARTS),
        p99_to_p50: median_far_ratio(far(runs, order)),
    })
}

/// A baseline of a run.
type OfBaseline = fn(&Run) -> Percentiles;

const BARE: OfBaseline = |run| run.bare;
const RING: OfBaseline = |run| run.ring;

/// Parts of a ns in which it is reckoned how far a p50 is beyond 1.1 baselines, so that nothing is rounded before it is
/// judged: tenths, and two of them where the median is the mean of two.
const PARTS: i64 = 20;

/// By how many [`PARTS`] of a ns p50 is beyond 1.1 baselines, the median of the runs' own.
fn beyond(runs: &[Run], order: OfOrders, baseline: OfBaseline) -> Option<i64> {
    let tenths = |run| Some(order(run)?.p50 as i64 * 10 - baseline(run).p50 as i64 * 11);
    let mut all: Vec<i64> = runs.iter().filter_map(tenths).collect();
    all.sort_unstable();
    Some(all.get(all.len().checked_sub(1)? / 2)? + all.get(all.len() / 2)?)
}

/// p99 and p50 of each run.
fn far(
    runs: &[Run],
    order: OfOrders,
) -> impl Iterator<Item = (Option<u64>, Option<u64>)> + use<'_> {
    runs.iter().filter_map(order).map(|order| (order.p99, Some(order.p50)))
}

impl SessionGoal {
    /// Three lines, without an end.
    pub(super) fn line(&self) -> String {
        let Self { session, takes, takes_due, rests } = self;
        format!(
            "order that takes, {session}: {}\n  on schedule, from when it was due: {}\n  one that rests, beside it: \
             {} ns, {} ns; {}",
            takes.text(),
            takes_due.text(),
            rests.beyond_bare_ns,
            rests.beyond_ring_ns,
            hundredths(rests.p99_to_p50),
        )
    }
}

impl Judged {
    fn text(&self) -> String {
        let verdict = |is_reached, untold| match is_reached {
            Some(true) => "reached",
            Some(false) => "missed",
            None => untold,
        };
        let Self { to_goal, bare_reached, ring_reached, p99_reached } = self;
        format!(
            "p50 beyond 1.1 bare {} ns, {}; beyond 1.1 of our rings {} ns, {} (<= {BEYOND_NS} ns); p99 to p50 {}, {} \
             (<= {})",
            to_goal.beyond_bare_ns,
            verdict(*bare_reached, IS_NOISE),
            to_goal.beyond_ring_ns,
            verdict(Some(*ring_reached), IS_NOISE),
            hundredths(to_goal.p99_to_p50),
            verdict(*p99_reached, TOO_FEW),
            ratio(P99, 100),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run whose orders take `takes`, or `rests` where they rest, in the session that is told all.
    fn run(bare: u64, takes: u64, rests: u64) -> Run {
        let p50 = |p50| Percentiles { p50, p99: Some(3 * p50), ..Default::default() };
        Run {
            bare: p50(bare),
            ring: p50(2 * bare),
            order_takes: Some(p50(takes)),
            order_takes_due: Some(p50(takes + 700)),
            order: Some(p50(rests)),
            ..Run::default()
        }
    }

    #[test]
    fn nothing_is_reached_beside_a_bare_line_that_cannot_be() {
        let judged = |bare, ring, takes| {
            let p50 = |p50| Percentiles { p50, ..Default::default() };
            let run = Run { bare: p50(bare), ring: p50(ring), ..run(bare, takes, takes) };
            let goal = goals(&[run]).remove(0);
            let is_noise = goal.line().contains("-: noise");
            (goal.takes.bare_reached, goal.takes.ring_reached, is_noise)
        };
        assert_eq!(judged(300, 400, 500), (Some(true), true, false));
        assert_eq!(judged(400, 400, 500), (Some(true), true, false));
        assert_eq!(judged(500_000, 400, 500), (None, true, true));
        // What is missed beside too long a time is missed beside the right one.
        assert_eq!(judged(500, 400, 2_000), (Some(false), false, false));
    }

    #[test]
    fn nothing_is_rounded_before_it_is_judged() {
        let judged = |takes, p99| {
            let one = Some(Percentiles { p50: takes, p99: Some(p99), ..Default::default() });
            let baseline = Percentiles { p50: 1_005, ..Default::default() };
            let (bare, ring) = (baseline, baseline);
            let run = Run {
                bare,
                ring,
                order_takes: one,
                order_takes_due: one,
                order: one,
                ..Run::default()
            };
            let SessionGoal { takes, takes_due, .. } = goals(&[run]).remove(0);
            assert_eq!(takes, takes_due, "they are judged alike");
            (takes.bare_reached, takes.ring_reached, takes.p99_reached)
        };
        // 1.1 baselines are 1,105.5 ns.
        assert_eq!(judged(1_355, 2_710), (Some(true), true, Some(true)));
        assert_eq!(judged(1_356, 2_713), (Some(false), false, Some(false)));
    }

    #[test]
    fn orders_that_take_are_judged_and_not_those_that_rest() {
        let runs = [run(100, 1000, 300), run(500, 4500, 600), run(100, 1100, 200)];
        let goals = goals(&runs);
        assert_eq!(goals.len(), 1, "of what was measured");
        let SessionGoal { takes, takes_due, rests, .. } = &goals[0];
        assert_eq!(takes_due.to_goal.beyond_bare_ns, takes.to_goal.beyond_bare_ns + 700);
        let takes = &takes.to_goal;
        assert_eq!((takes.beyond_bare_ns, takes.beyond_ring_ns), (990, 880));
        assert_eq!((rests.beyond_bare_ns, takes.p99_to_p50), (90, Some(300)));
        let line = goals[0].line();
        assert!(line.contains("bare 990 ns, missed") && !line.contains("reached"), "{line}");
        assert!(line.ends_with("one that rests, beside it: 90 ns, -20 ns; 3.00"), "{line}");
    }
}
