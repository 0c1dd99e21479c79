//! What the rounds come to: medians, the best peer, the worst burst; what is to be reached of that says
//! `core::goals`. Called by `core::report`, for text and JSON alike.
//!
//! Faster is how many times less time something takes than what it is compared with. Ratios are of
//! medians over the same rounds; without a peer that was right there are none.

use serde::Serialize;

use super::engines::EngineKind;
use super::goals;
use super::report::{Cell, CoreReport, Row};
use crate::goal::Goal;

/// An engine's figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Figure {
    /// The engine.
    pub engine: EngineKind,
    /// Median over the rounds: ps per operation, or ns per batch; none if its results do not count.
    pub median: Option<u64>,
    /// How many times as much the best peer takes, hundredths; none if no peer was right.
    pub to_best_peer: Option<u64>,
}

/// All engines side by side.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Comparison {
    /// The flow, or what else.
    pub name: String,
    /// Peers of the registry that were measured.
    pub peers: usize,
    /// Those of them that were right.
    pub peers_right: usize,
    /// The fastest of those.
    pub best_peer: Option<EngineKind>,
    /// By engine.
    pub engines: Vec<Figure>,
}

impl Comparison {
    fn new(name: &str, medians: impl IntoIterator<Item = (EngineKind, Option<u64>)>) -> Self {
        let medians: Vec<_> = medians.into_iter().collect();
        let peers = || medians.iter().filter(|(engine, _)| engine.is_peer());
        let right = || peers().filter_map(|&(engine, time)| Some((time?, engine)));
        let best = right().min_by_key(|&(time, _)| time);
        let figure = |&(engine, median): &(EngineKind, Option<u64>)| Figure {
            engine,
            median,
            to_best_peer: best.zip(median).and_then(|((best, _), own)| hundredths(best, own)),
        };
        Self {
            name: name.to_owned(),
            peers: peers().count(),
            peers_right: right().count(),
            best_peer: best.map(|(_, engine)| engine),
            engines: medians.iter().map(figure).collect(),
        }
    }

    pub(super) fn of(row: &Row) -> Self {
        Self::new(&row.flow, row.cells.iter().map(|cell| (cell.engine, cell.median().ok())))
    }

    /// An engine's figure, if it was measured.
    #[must_use]
    pub fn of_engine(&self, engine: EngineKind) -> Option<&Figure> {
        self.engines.iter().find(|figure| figure.engine == engine)
    }

    pub(super) fn median_of(&self, engine: EngineKind) -> Option<u64> {
        self.of_engine(engine)?.median
    }

    /// How many peers were right, for the heading of a table.
    pub(super) fn peers_line(&self) -> String {
        match self.best_peer {
            None => format!("{} of {} peers right", self.peers_right, self.peers),
            Some(best) => format!(
                "{} of {} peers right, the best is {}",
                self.peers_right,
                self.peers,
                best.name()
            ),
        }
    }
}

/// The burst in which an engine is least ahead of the best peer on the same burst.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LeastBurst {
    /// The engine.
    pub engine: EngineKind,
    /// The burst.
    pub flow: String,
    /// How many times as much the best peer takes there, hundredths.
    pub to_best_peer: u64,
}

/// How many times as much an engine takes for the deep flow as for the calm one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct DeepToCalm {
    /// The engine.
    pub engine: EngineKind,
    /// Hundredths.
    pub ratio: u64,
}

/// Everything that follows from the rounds.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Summary {
    /// By flow.
    pub flows: Vec<Comparison>,
    /// Each engine's slowest burst; of those that were right in all.
    pub worst_burst: Option<Comparison>,
    /// Beside it, since the slowest burst of one is not that of another: of each engine that was right in all bursts the
    /// one in which it is least ahead, of those in which a peer was right.
    pub least_bursts: Vec<LeastBurst>,
    /// Of the engines that were right in both.
    pub deep_to_calm: Vec<DeepToCalm>,
    /// The calm flow's batches, p99.9; none of fewer than 1,000 batches.
    pub batches_p99_9: Option<Comparison>,
    /// What is to be reached, as far as it was measured.
    pub goals: Vec<Goal>,
}

impl Summary {
    pub(super) fn of(report: &CoreReport) -> Self {
        let flows: Vec<Comparison> = report.rows.iter().map(Comparison::of).collect();
        let mut summary = Self {
            worst_burst: worst_burst(&report.rows),
            least_bursts: least_bursts(&flows),
            deep_to_calm: deep_to_calm(&flows),
            batches_p99_9: batches_p99_9(report),
            flows,
            goals: Vec::new(),
        };
        summary.goals = goals::of(&summary, report);
        summary
    }
}

pub(super) fn is_burst(flow: &str) -> bool {
    flow.starts_with("burst")
}

fn hundredths(figure: u64, beside: u64) -> Option<u64> {
    figure.checked_mul(100)?.checked_div(beside)
}

fn worst_burst(rows: &[Row]) -> Option<Comparison> {
    let bursts = || rows.iter().filter(|row| is_burst(&row.flow));
    let engines = bursts().next()?.cells.iter().map(|cell| cell.engine);
    let slowest = |engine: EngineKind| {
        let cells =
            bursts().filter_map(move |row| row.cells.iter().find(|cell| cell.engine == engine));
        cells.map(Cell::median).collect::<Result<Vec<_>, _>>().ok()?.into_iter().max()
    };
    Some(Comparison::new("worst burst", engines.map(|engine| (engine, slowest(engine)))))
}

fn least_bursts(flows: &[Comparison]) -> Vec<LeastBurst> {
    let bursts = || flows.iter().filter(|flow| is_burst(&flow.name));
    let engines = bursts().next().map(|flow| flow.engines.as_slice()).unwrap_or_default();
    let least = |&Figure { engine, .. }: &Figure| {
        let is_right = bursts().all(|flow| flow.median_of(engine).is_some());
        let ratio = |flow: &Comparison| {
            let to_best_peer = flow.of_engine(engine)?.to_best_peer?;
            Some(LeastBurst { engine, flow: flow.name.clone(), to_best_peer })
        };
        let least = bursts().filter_map(ratio).min_by_key(|least| least.to_best_peer);
        least.filter(|_| is_right)
    };
    engines.iter().filter_map(least).collect()
}

fn deep_to_calm(flows: &[Comparison]) -> Vec<DeepToCalm> {
    let flow = |name| flows.iter().find(|flow| flow.name == name);
    let [Some(calm), Some(deep)] = [flow("calm"), flow("deep")] else { return Vec::new() };
    let of = |figure: &Figure| {
        // Nobody looks ahead on the calm flow.
        let with_look_ahead = || calm.median_of(figure.engine.with_look_ahead()?);
        let beside = calm.median_of(figure.engine).or_else(with_look_ahead)?;
        let ratio = hundredths(figure.median?, beside)?;
        Some(DeepToCalm { engine: figure.engine, ratio })
    };
    deep.engines.iter().filter_map(of).collect()
}

/// The calm flow's batches, p99.9; none of an engine that was wrong, or of which there are too few.
pub(super) fn batches(report: &CoreReport) -> Comparison {
    let right = report.batches.iter().map(|it| (it.engine, it.percentiles.p99_9));
    let wrong = report.wrong_batches.iter().map(|it| (it.engine, None));
    Comparison::new("calm batches' p99.9", right.chain(wrong))
}

fn batches_p99_9(report: &CoreReport) -> Option<Comparison> {
    let has_all = report.batches.iter().all(|it| it.percentiles.p99_9.is_some());
    Some(batches(report)).filter(|batches| has_all && !batches.engines.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::report::{Batches, WrongBatches};
    use super::*;
    use crate::latency::Percentiles;

    fn row(flow: &str, times: &[(EngineKind, Option<u64>)]) -> Row {
        Row::of(flow, 1, times)
    }

    use EngineKind::{Lobster, Matchcore, Textbook, Touchline};

    fn report(rows: Vec<Row>) -> CoreReport {
        CoreReport { rows, ..CoreReport::empty(1) }
    }

    #[test]
    fn peers_that_are_wrong_and_engines_of_ours_are_not_the_best_peer() {
        let flow = row(
            "calm",
            &[
                (Touchline, Some(20_000)),
                (Textbook, Some(10_000)),
                (Matchcore, Some(60_000)),
                (Lobster, None),
            ],
        );
        let summary = Summary::of(&report(vec![flow]));
        let calm = &summary.flows[0];
        assert_eq!((calm.peers, calm.peers_right, calm.best_peer), (2, 1, Some(Matchcore)));
        assert_eq!(calm.of_engine(Touchline).unwrap().to_best_peer, Some(300));
        assert_eq!(calm.of_engine(Lobster).unwrap().median, None);
        assert!(calm.peers_line().starts_with("1 of 2 peers right"));
    }

    #[test]
    fn without_a_peer_that_was_right_nothing_is_compared_with_one() {
        let flow = row("calm", &[(Touchline, Some(20_000)), (Matchcore, None)]);
        let summary = Summary::of(&report(vec![flow]));
        assert_eq!(summary.flows[0].of_engine(Touchline).unwrap().to_best_peer, None);
    }

    #[test]
    fn the_worst_burst_is_each_engines_own_and_only_of_who_was_right_in_all() {
        let bursts = vec![
            row("burst: one", &[(Touchline, Some(10)), (Matchcore, Some(50)), (Lobster, Some(9))]),
            row("burst: two", &[(Touchline, Some(20)), (Matchcore, Some(40)), (Lobster, None)]),
        ];
        let summary = Summary::of(&report(bursts));
        // Its slowest burst is the second one, in which it is far ahead; in the first one a peer is faster.
        let [least, of_peer] = &summary.least_bursts[..] else { panic!("{summary:?}") };
        assert_eq!((least.engine, least.flow.as_str()), (Touchline, "burst: one"));
        assert_eq!((least.to_best_peer, of_peer.engine), (90, Matchcore));
        assert!(
            summary
                .goals
                .iter()
                .any(|goal| goal.name == "least ahead in burst: one by id" && goal.ratio == 90)
        );
        let worst = summary.worst_burst.unwrap();
        let medians: Vec<_> = worst.engines.iter().map(|figure| figure.median).collect();
        assert_eq!(medians, [Some(20), Some(50), None]);
        assert_eq!(worst.engines[0].to_best_peer, Some(250));
        assert_eq!(Summary::of(&report(Vec::new())).worst_burst, None);
    }

    #[test]
    fn batches_are_compared_where_all_have_the_percentile() {
        let batches = |engine, p99_9| Batches {
            engine,
            percentiles: Percentiles { p99_9: Some(p99_9), ..Percentiles::default() },
        };
        let mut report = report(Vec::new());
        assert_eq!(Summary::of(&report).batches_p99_9, None);
        report.batches = vec![batches(Touchline, 49), batches(Matchcore, 100)];
        let why = "wrong".to_owned();
        report.wrong_batches = vec![WrongBatches { engine: Lobster, why }];
        let batches = Summary::of(&report).batches_p99_9.unwrap();
        assert_eq!((batches.peers, batches.peers_right), (2, 1));
        report.batches[1].percentiles.p99_9 = None;
        assert_eq!(Summary::of(&report).batches_p99_9, None);
    }
}
