//! What the book alone is to reach, and whether the rounds reach it. A goal whose figures do not count stands
//! in the list with the reason. Called by [`super::summary`], and by [`super::growth`] for what is too few.

use super::engines::EngineKind;
use super::measure::BATCH;
use super::report::{CoreReport, tenths};
use super::summary::{Comparison, Figure, Summary, batches, is_burst};
use crate::goal::Goal;
use crate::latency::duration;

/// At least so many times faster than the best peer, and than the textbook; hundredths.
const FASTER: u64 = 200;
/// The same of the worst burst.
const FASTER_IN_BURSTS: u64 = 300;
/// An operation on the deep flow may take so many times one on the calm flow.
const DEEP_TO_CALM: u64 = 250;
/// Calm batches' p99.9 may be so much of the best peer's, and of the textbook's.
const BATCHES: u64 = 50;
/// What a book with a million orders may take.
const MEMORY_BYTES: u64 = 64_000_000;

/// With fewer rounds, or with so few operations that their batches have no p99.9, nothing is judged that takes time.
const LEAST_ROUNDS: usize = 5;
const LEAST_OPERATIONS: usize = 1_000 * BATCH;

/// Said in the place of a verdict.
const TOO_FEW_ROUNDS: &str = "too few rounds";
const TOO_FEW_OPERATIONS: &str = "too few operations";
const TOO_FEW_BATCHES: &str = "too few batches";
const OWN_DOES_NOT_COUNT: &str = "its own results do not count";
const NO_PEER_COUNTS: &str = "no peer's results count";
const TEXTBOOK_DOES_NOT_COUNT: &str = "the textbook's results do not count";

/// A book of ours, and the textbook's with a map and with an array that are shown as much of what comes.
struct Own {
    engine: EngineKind,
    how: &'static str,
    textbooks: [(EngineKind, &'static str); 2],
}

const TEXTBOOKS: [(EngineKind, &str); 2] =
    [(EngineKind::Textbook, "map"), (EngineKind::TextbookArray, "array")];
const TEXTBOOKS_NO_LOOK_AHEAD: [(EngineKind, &str); 2] =
    [(EngineKind::TextbookNoLookAhead, "map"), (EngineKind::TextbookArrayNoLookAhead, "array")];

/// Touchline's book, as it is found by id and by handle, and as it looks ahead and does not.
const OWN: [Own; 4] = [
    Own { engine: EngineKind::Touchline, how: "by id", textbooks: TEXTBOOKS },
    Own { engine: EngineKind::TouchlineHandles, how: "by handle", textbooks: TEXTBOOKS },
    Own {
        engine: EngineKind::TouchlineNoLookAhead,
        how: "by id, no look-ahead",
        textbooks: TEXTBOOKS_NO_LOOK_AHEAD,
    },
    Own {
        engine: EngineKind::TouchlineHandlesNoLookAhead,
        how: "by handle, no look-ahead",
        textbooks: TEXTBOOKS_NO_LOOK_AHEAD,
    },
];

/// Why so few are not judged.
pub(super) fn too_few(rounds: usize, operations: usize) -> Option<&'static str> {
    if rounds < LEAST_ROUNDS {
        return Some(TOO_FEW_ROUNDS);
    }
    (operations < LEAST_OPERATIONS).then_some(TOO_FEW_OPERATIONS)
}

/// No verdict if there is a reason for none.
pub(super) fn unless(few: Option<&'static str>, goal: Goal) -> Goal {
    match few {
        Some(why) => goal.without_verdict(why),
        None => goal,
    }
}

/// A figure and what was measured beside it; none where it does not count.
struct Pair {
    own: Option<u64>,
    beside: Option<u64>,
    /// Why there is nothing beside it.
    lacking: &'static str,
    /// Why there is no verdict although both count.
    few: Option<&'static str>,
}

impl Pair {
    /// So many times less time.
    fn faster(&self, name: String, bound: u64) -> Goal {
        let pairs: Vec<_> = self.beside.zip(self.own).into_iter().collect();
        self.judged(Goal::at_least(name, self.figures(nanoseconds), &pairs, bound))
    }

    /// At most so much of it.
    fn at_most(&self, name: String, show: fn(u64) -> String, bound: u64) -> Goal {
        let pairs: Vec<_> = self.own.zip(self.beside).into_iter().collect();
        self.judged(Goal::at_most(name, self.figures(show), &pairs, bound))
    }

    fn figures(&self, show: fn(u64) -> String) -> [String; 2] {
        [self.own, self.beside].map(|figure| figure.map_or("-".to_owned(), show))
    }

    fn judged(&self, goal: Goal) -> Goal {
        let own = self.own.is_none().then_some(OWN_DOES_NOT_COUNT);
        unless(own.or(self.beside.is_none().then_some(self.lacking)).or(self.few), goal)
    }
}

fn nanoseconds(picoseconds: u64) -> String {
    format!("{} ns", tenths(picoseconds))
}

/// Every goal of what was measured.
pub(super) fn of(summary: &Summary, report: &CoreReport) -> Vec<Goal> {
    // The fewest operations of the flows that a goal is about.
    let few = |is_meant: &dyn Fn(&str) -> bool| {
        let rows = report.rows.iter().filter(|row| is_meant(&row.flow));
        too_few(report.rounds, rows.map(|row| row.operations).min().unwrap_or(0))
    };
    let mut goals = Vec::new();
    for flow in summary.flows.iter().filter(|flow| !is_burst(&flow.name)) {
        let few = few(&|name| name == flow.name);
        goals.extend(beside_others(flow, few, &|name, pair| pair.faster(name, FASTER)));
    }
    if let Some(worst) = &summary.worst_burst {
        let few = few(&is_burst);
        let judge = |name, pair: Pair| pair.faster(name, FASTER_IN_BURSTS);
        goals.extend(beside_others(worst, few, &judge));
        goals.extend(least_ahead(summary, worst, few));
    }
    goals.extend(deep_to_calm(summary, few(&|name| ["deep", "calm"].contains(&name))));
    goals.extend(of_batches(report));
    goals.extend(of_memory(report));
    goals
}

/// Those of ours that were measured, beside the best peer and the textbooks that were.
fn beside_others(
    flow: &Comparison,
    few: Option<&'static str>,
    judge: &dyn Fn(String, Pair) -> Goal,
) -> Vec<Goal> {
    let own = || OWN.iter().filter_map(|own| Some((own, flow.of_engine(own.engine)?.median)));
    let name = &flow.name;
    let mut goals = Vec::new();
    if flow.peers > 0 {
        let beside = flow.best_peer.and_then(|peer| flow.median_of(peer));
        for (Own { how, .. }, own) in own() {
            let pair = Pair { own, beside, lacking: NO_PEER_COUNTS, few };
            goals.push(judge(format!("{name} {how}, to best peer"), pair));
        }
    }
    for (Own { how, textbooks, .. }, own) in own() {
        for (textbook, index) in textbooks {
            if let Some(&Figure { median: beside, .. }) = flow.of_engine(*textbook) {
                let pair = Pair { own, beside, lacking: TEXTBOOK_DOES_NOT_COUNT, few };
                goals.push(judge(format!("{name} {how}, to textbook with {index}"), pair));
            }
        }
    }
    goals
}

fn least_ahead(summary: &Summary, worst: &Comparison, few: Option<&'static str>) -> Vec<Goal> {
    let goal = |Own { engine, how, .. }: &Own| {
        let slowest = worst.of_engine(*engine)?.median;
        let least = summary.least_bursts.iter().find(|least| least.engine == *engine);
        let flow = least.and_then(|least| summary.flows.iter().find(|it| it.name == least.flow));
        let name = flow.map_or("a burst", |flow| &flow.name);
        let own = flow.map_or(slowest, |flow| flow.median_of(*engine));
        let beside = flow.and_then(|flow| flow.median_of(flow.best_peer?));
        let pair = Pair { own, beside, lacking: NO_PEER_COUNTS, few };
        Some(pair.faster(format!("least ahead in {name} {how}"), FASTER_IN_BURSTS))
    };
    if worst.peers > 0 { OWN.iter().filter_map(goal).collect() } else { Vec::new() }
}

/// One that never looks ahead is compared with the calm flow's figure of one that does: nobody looks ahead there.
fn deep_to_calm(summary: &Summary, few: Option<&'static str>) -> Vec<Goal> {
    let flow = |name| summary.flows.iter().find(|flow| flow.name == name);
    let [Some(deep), Some(calm)] = ["deep", "calm"].map(flow) else { return Vec::new() };
    let goal = |Own { engine, how, .. }: &Own| {
        let own = deep.of_engine(*engine)?.median;
        let of_calm = calm.of_engine(*engine);
        let beside = of_calm.or_else(|| calm.of_engine(engine.with_look_ahead()?))?.median;
        let pair = Pair { own, beside, lacking: OWN_DOES_NOT_COUNT, few };
        Some(pair.at_most(format!("deep to calm, {how}"), nanoseconds, DEEP_TO_CALM))
    };
    OWN.iter().filter_map(goal).collect()
}

fn of_batches(report: &CoreReport) -> Vec<Goal> {
    let is_withheld = report.batches.iter().any(|it| it.percentiles.p99_9.is_none());
    let few = is_withheld.then_some(TOO_FEW_BATCHES).or(too_few(report.rounds, LEAST_OPERATIONS));
    let judge = |name, pair: Pair| {
        // Without the percentile nothing else is told of it.
        unless(is_withheld.then_some(TOO_FEW_BATCHES), pair.at_most(name, duration, BATCHES))
    };
    beside_others(&batches(report), few, &judge)
}

/// It is counted and not timed, so that one look is enough.
fn of_memory(report: &CoreReport) -> Vec<Goal> {
    let goal = |Own { engine, how, .. }: &Own| {
        let taken = report.memory.iter().find(|memory| memory.engine == *engine)?;
        let pair = (taken.bytes as u64, MEMORY_BYTES);
        let figures = [pair.0, pair.1].map(|bytes| format!("{} MB", tenths(bytes / 1000)));
        Some(Goal::at_most(format!("book with 1 M orders, {how}"), figures, &[pair], 100))
    };
    OWN.iter().filter_map(goal).collect()
}

#[cfg(test)]
mod tests {
    use super::super::report::{Batches, Memory, Row, WrongBatches};
    use super::*;
    use crate::latency::Percentiles;

    use EngineKind::{
        Lobster, Matchcore, Textbook, TextbookArray, TextbookNoLookAhead, Touchline,
        TouchlineHandles, TouchlineNoLookAhead,
    };

    fn row(flow: &str, times: &[(EngineKind, Option<u64>)]) -> Row {
        Row::of(flow, LEAST_OPERATIONS, times)
    }

    fn report(rows: Vec<Row>) -> CoreReport {
        CoreReport { rows, ..CoreReport::empty(LEAST_ROUNDS) }
    }

    /// Name and ratio of each goal, and whether it is reached or why that is not told.
    fn told(report: &CoreReport) -> Vec<(String, u64, Result<bool, &'static str>)> {
        let goals = Summary::of(report).goals.into_iter();
        let told = |goal: Goal| {
            let outcome = goal.reached.ok_or_else(|| goal.untold.expect("a reason"));
            (goal.name, goal.ratio, outcome)
        };
        goals.map(told).collect()
    }

    fn check(report: &CoreReport, expected: &[(&str, u64, Result<bool, &'static str>)]) {
        let told = told(report);
        let told = told.iter().map(|(name, ratio, it)| (name.as_str(), *ratio, *it));
        assert_eq!(told.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn ours_are_judged_beside_the_best_peer_and_both_textbooks() {
        let cells = [
            (Touchline, Some(20_000)),
            (Textbook, Some(40_000)),
            (TextbookArray, Some(10_000)),
            (Matchcore, Some(60_000)),
            (Lobster, None),
        ];
        check(
            &report(vec![row("calm", &cells)]),
            &[
                ("calm by id, to best peer", 300, Ok(true)),
                ("calm by id, to textbook with map", 200, Ok(true)),
                ("calm by id, to textbook with array", 50, Ok(false)),
            ],
        );
        // What is the worst of bursts has more to reach, beside a textbook as well.
        check(
            &report(vec![row("burst: one", &cells[..4])]),
            &[
                ("worst burst by id, to best peer", 300, Ok(true)),
                ("worst burst by id, to textbook with map", 200, Ok(false)),
                ("worst burst by id, to textbook with array", 50, Ok(false)),
                ("least ahead in burst: one by id", 300, Ok(true)),
            ],
        );
    }

    #[test]
    fn a_goal_stays_in_the_list_where_results_do_not_count() {
        let calm = [(Touchline, None), (TouchlineHandles, Some(20_000)), (Textbook, None)];
        let peer = |time| [&calm[..], &[(Matchcore, time)]].concat();
        check(
            &report(vec![row("calm", &peer(None))]),
            &[
                ("calm by id, to best peer", 0, Err(OWN_DOES_NOT_COUNT)),
                ("calm by handle, to best peer", 0, Err(NO_PEER_COUNTS)),
                ("calm by id, to textbook with map", 0, Err(OWN_DOES_NOT_COUNT)),
                ("calm by handle, to textbook with map", 0, Err(TEXTBOOK_DOES_NOT_COUNT)),
            ],
        );
        let bursts = told(&report(vec![row("burst: one", &peer(None))]));
        let least = [
            ("least ahead in a burst by id".to_owned(), 0, Err(OWN_DOES_NOT_COUNT)),
            ("least ahead in a burst by handle".to_owned(), 0, Err(NO_PEER_COUNTS)),
        ];
        assert_eq!(bursts[4..], least);
        let deep = told(&report(vec![row("deep", &calm), row("calm", &peer(Some(60_000)))]));
        let of_deep: Vec<_> = deep.iter().filter(|goal| goal.0.contains("to calm")).collect();
        assert_eq!(of_deep.len(), 2);
        assert_eq!((of_deep[0].2, of_deep[1].2), (Err(OWN_DOES_NOT_COUNT), Ok(true)));
        // Nobody asked for a peer.
        check(&report(vec![row("calm", &calm[..2])]), &[]);
        let line = Goal::lines(&Summary::of(&report(vec![row("calm", &peer(None))])).goals);
        assert!(line.contains("-       -   >= 2.00: -: no peer's results count"), "{line}");
    }

    #[test]
    fn too_few_rounds_or_operations_have_figures_and_no_verdict() {
        let cells = [(Touchline, Some(20_000)), (Matchcore, Some(60_000))];
        let name = "calm by id, to best peer";
        let mut few = report(vec![row("calm", &cells)]);
        check(&few, &[(name, 300, Ok(true))]);
        few.rounds = LEAST_ROUNDS - 1;
        check(&few, &[(name, 300, Err(TOO_FEW_ROUNDS))]);
        few.rounds = LEAST_ROUNDS;
        few.rows[0].operations = LEAST_OPERATIONS - 1;
        check(&few, &[(name, 300, Err(TOO_FEW_OPERATIONS))]);
        // One burst with too few is enough.
        few.rows = vec![row("burst: one", &cells), row("burst: two", &cells)];
        assert!(told(&few).iter().all(|goal| goal.2 == Ok(true)));
        few.rows[1].operations = 64;
        assert!(told(&few).iter().all(|goal| goal.2 == Err(TOO_FEW_OPERATIONS)));
    }

    #[test]
    fn deep_is_judged_with_and_without_looking_ahead() {
        let calm = [(Touchline, Some(20_000)), (Textbook, Some(20_000)), (Matchcore, Some(60_000))];
        let deep = [
            (Touchline, Some(40_000)),
            (Textbook, Some(20_000)),
            (Matchcore, Some(120_000)),
            (TouchlineNoLookAhead, Some(80_000)),
            (TextbookNoLookAhead, Some(160_000)),
        ];
        let report = report(vec![row("calm", &calm), row("deep", &deep)]);
        let grown = Summary::of(&report).deep_to_calm;
        let grown: Vec<u64> = grown.iter().map(|deep| deep.ratio).collect();
        assert_eq!(grown, [200, 100, 200, 400, 800]);
        let expected = [
            ("deep by id, to best peer", 300, Ok(true)),
            ("deep by id, no look-ahead, to best peer", 150, Ok(false)),
            ("deep by id, to textbook with map", 50, Ok(false)),
            ("deep by id, no look-ahead, to textbook with map", 200, Ok(true)),
            ("deep to calm, by id", 200, Ok(true)),
            ("deep to calm, by id, no look-ahead", 400, Ok(false)),
        ];
        let told = told(&report);
        let told = told[2..].iter().map(|(name, ratio, it)| (name.as_str(), *ratio, *it));
        assert_eq!(told.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn batches_and_memory_have_goals() {
        let batches = |engine, p99_9| Batches {
            engine,
            percentiles: Percentiles { p99_9: Some(p99_9), ..Percentiles::default() },
        };
        let mut report = report(Vec::new());
        report.batches =
            vec![batches(Touchline, 49), batches(Matchcore, 100), batches(Textbook, 90)];
        let why = "wrong".to_owned();
        report.wrong_batches = vec![
            WrongBatches { engine: Lobster, why: why.clone() },
            WrongBatches { engine: TouchlineHandles, why },
        ];
        report.memory = vec![Memory { engine: Touchline, bytes: 65_000_000 }];
        let names = [
            "calm batches' p99.9 by id, to best peer",
            "calm batches' p99.9 by handle, to best peer",
            "calm batches' p99.9 by id, to textbook with map",
            "calm batches' p99.9 by handle, to textbook with map",
            "book with 1 M orders, by id",
        ];
        let wrong = Err(OWN_DOES_NOT_COUNT);
        let outcomes = [Ok(true), wrong, Ok(false), wrong, Ok(false)];
        let ratios = [49, 0, 54, 0, 101];
        let all = |ratios: [u64; 5], outcomes: [_; 5]| {
            let named = names.into_iter().zip(ratios).zip(outcomes);
            named.map(|((name, ratio), outcome)| (name, ratio, outcome)).collect::<Vec<_>>()
        };
        check(&report, &all(ratios, outcomes));
        report.rounds = LEAST_ROUNDS - 1;
        let few = Err(TOO_FEW_ROUNDS);
        check(&report, &all(ratios, [few, wrong, few, wrong, Ok(false)]));
        // Of so few batches that one of them has no such percentile nobody is told to be better.
        report.batches[1].percentiles.p99_9 = None;
        let few = Err(TOO_FEW_BATCHES);
        check(&report, &all([0, 0, 54, 0, 101], [few, few, few, few, Ok(false)]));
    }
}
