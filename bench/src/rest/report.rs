//! The result of [`super::run`] and its text.

use std::fmt::Write as _;

use serde::Serialize;

use super::{Block, CROWD_SECONDS, CrowdRun, RestOptions, Run, SecondFront, median_block};
use crate::goal::{Compared, Goal};
use crate::latency::{Percentiles, duration, hundredths, median_far_ratio, median_ratio, ratio};
use crate::machine::Machine;
use crate::scratch::Scratch;

/// CPU time of an order to that of a constant answer, and p99 beside a crowd to that without, in hundredths.
const CPU_TO_CONSTANT: u64 = 167;
const P99_TO_WITHOUT: u64 = 200;

/// Bytes that a connection of the crowd may take, and how many make a crowd.
const BYTES_PER_CONNECTION: u64 = 64 << 10;
const CROWD: usize = 5_000;

/// Said in the place of a verdict.
const NO_CROWD: &str = "fewer than 5,000 connections";

/// CPU time per request to that of the constant answer in the same run, in hundredths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Ratios {
    /// Orders answered when appended.
    pub appended: u64,
    /// Orders answered when durable.
    pub durable: u64,
    /// A constant answer on the second front.
    pub may_constant: Option<u64>,
    /// Orders answered when appended, on the second front.
    pub may_appended: Option<u64>,
}

/// What connections cost that take part in nothing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Crowd {
    /// How many: every other one sends a byte of a head now and then, the rest nothing.
    pub connections: usize,
    /// Resident memory of the adapter per such connection, bytes, in the first run: those of a later one have the room
    /// of those before.
    pub bytes_per_connection: u64,
    /// Latency of orders without them, medians of the runs.
    pub without: Percentiles,
    /// And with them.
    pub with: Percentiles,
    /// The p99 with them to that without, in hundredths, median of the runs' ratios.
    pub p99_ratio: Option<u64>,
    /// Each run.
    pub runs: Vec<CrowdRun>,
}

impl Crowd {
    /// None without a run.
    fn of(connections: usize, runs: Vec<(CrowdRun, u64)>) -> Option<Self> {
        let bytes_per_connection = runs.first()?.1;
        let runs: Vec<CrowdRun> = runs.into_iter().map(|(run, _)| run).collect();
        let latencies = |of: fn(&CrowdRun) -> Percentiles| runs.iter().map(of).collect::<Vec<_>>();
        Some(Self {
            connections,
            bytes_per_connection,
            without: Percentiles::median(&latencies(|run| run.without)),
            with: Percentiles::median(&latencies(|run| run.with)),
            p99_ratio: median_far_ratio(runs.iter().map(|run| (run.with.p99, run.without.p99))),
            runs,
        })
    }

    fn goals(&self) -> [Goal; 2] {
        let p99 =
            Compared::far(self.runs.iter().map(|run| (run.with.p99, run.without.p99)), &duration);
        let bytes = |bytes| format!("{bytes} bytes");
        let each = Compared::to_bound([self.bytes_per_connection], BYTES_PER_CONNECTION, &bytes);
        let goals = [
            p99.at_most("p99 beside idle connections, to without", P99_TO_WITHOUT),
            each.at_most("memory of each", 100),
        ];
        let is_crowd = self.connections >= CROWD;
        goals.map(|goal| if is_crowd { goal } else { goal.without_verdict(NO_CROWD) })
    }
}

fn cpu_goals(runs: &[Run]) -> [Goal; 2] {
    let goal = |name, of: fn(&Run) -> Block| {
        let pairs = runs.iter().map(|run| (of(run).cpu_ns, run.constant.cpu_ns));
        Compared::beside(pairs, &duration).at_most(name, CPU_TO_CONSTANT)
    };
    [
        goal("CPU of an order, appended, to constant", |run| run.appended),
        goal("CPU of an order, durable, to constant", |run| run.durable),
    ]
}

/// All of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RestReport {
    machine: Machine,
    scratch: Scratch,
    requests: u32,
    connections: usize,
    scheduled_rate: u32,
    /// Medians of the runs.
    pub median: Run,
    /// Medians of the runs' ratios.
    pub ratios: Ratios,
    /// Each run.
    pub runs: Vec<Run>,
    /// What connections cost that take part in nothing.
    pub crowd: Option<Crowd>,
    /// What is to be reached.
    pub goals: Vec<Goal>,
}

impl RestReport {
    pub(super) fn new(
        (machine, scratch): (Machine, Scratch),
        options: &RestOptions,
        runs: Vec<Run>,
        crowds: Vec<(CrowdRun, u64)>,
    ) -> Self {
        let crowd = Crowd::of(options.bystanders, crowds);
        let goals =
            cpu_goals(&runs).into_iter().chain(crowd.iter().flat_map(Crowd::goals)).collect();
        let to_constant = |of: fn(&Run) -> Block| {
            median_ratio(runs.iter().map(|run| (of(run).cpu_ns, run.constant.cpu_ns)))
        };
        // All runs have a second front, or none has.
        let seconds: Option<Vec<SecondFront>> = runs.iter().map(|run| run.may).collect();
        let second_to_constant = |of: fn(&SecondFront) -> Block| {
            let pairs = seconds.iter().flatten().zip(&runs);
            seconds.is_some().then(|| {
                median_ratio(pairs.map(|(may, run)| (of(may).cpu_ns, run.constant.cpu_ns)))
            })
        };
        Self {
            machine,
            scratch,
            requests: options.requests,
            connections: options.connections,
            scheduled_rate: options.rate,
            median: Run {
                constant: median_block(runs.iter().map(|run| run.constant)),
                appended: median_block(runs.iter().map(|run| run.appended)),
                durable: median_block(runs.iter().map(|run| run.durable)),
                may: seconds.as_ref().map(|seconds| SecondFront {
                    constant: median_block(seconds.iter().map(|may| may.constant)),
                    appended: median_block(seconds.iter().map(|may| may.appended)),
                }),
            },
            ratios: Ratios {
                appended: to_constant(|run| run.appended),
                durable: to_constant(|run| run.durable),
                may_constant: second_to_constant(|may| may.constant),
                may_appended: second_to_constant(|may| may.appended),
            },
            runs,
            crowd,
            goals,
        }
    }

    /// What each row of the text is about, its medians and its ratio.
    fn rows(&self) -> Vec<(&'static str, Block, u64)> {
        let Ratios { appended, durable, may_constant, may_appended } = self.ratios;
        let mut rows = vec![
            ("constant answer", self.median.constant, 100),
            ("order, appended", self.median.appended, appended),
            ("order, durable", self.median.durable, durable),
        ];
        if let (Some(may), Some(constant), Some(appended)) =
            (self.median.may, may_constant, may_appended)
        {
            rows.push(("may: constant", may.constant, constant));
            rows.push(("may: appended", may.appended, appended));
        }
        rows
    }

    /// Several lines of text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!(
            "signed POST /order over {} kept connections: {} requests per block, median of {} \
             run(s)\nmachine: {}\nscratch: {}\nlatency from when a request was due, at {} requests/s\n\n\
             {:<18}{:>12} {:>11} {:>6} {:>11} {}\n",
            self.connections,
            self.requests,
            self.runs.len(),
            self.machine.line(),
            self.scratch.line(),
            self.scheduled_rate,
            "",
            "CPU each",
            "of it wait",
            "ratio",
            "requests/s",
            Percentiles::HEADING,
        );
        for (name, block, to_constant) in self.rows() {
            // Writing to a String cannot fail.
            let _infallible = writeln!(
                text,
                "{name:<18}{:>12} {:>11} {:>6} {:>11} {}",
                duration(block.cpu_ns),
                duration(block.waiting_ns),
                ratio(to_constant, 100),
                block.rate,
                block.latency.columns(),
            );
        }
        let _infallible = writeln!(
            text,
            "of it wait: what as long a wait takes as it took views and history to come level behind the last reply, \
             with nothing to do;\nit is the same for any number of requests, and in CPU and ratio"
        );
        if let Some(crowd) = &self.crowd {
            let _infallible = write!(
                text,
                "\n{} connections that send nothing or a byte now and then: {} bytes each in the first run\n\
                 for at most {CROWD_SECONDS} s at a time, once the adapter has taken all of them, median of {} run(s)\n\
                 {:<40}{}\n{:<40}{}\n{:<40}{}\np99 with to without    {}\n",
                crowd.connections,
                crowd.bytes_per_connection,
                crowd.runs.len(),
                "",
                Percentiles::HEADING,
                "order, appended, without them",
                crowd.without.columns(),
                "order, appended, with them",
                crowd.with.columns(),
                hundredths(crowd.p99_ratio),
            );
        }
        text.push_str(&Goal::lines(&self.goals));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use touchline_adapter::front::FrontKind;

    fn place() -> (Machine, Scratch) {
        (Machine::here(), Scratch::of(std::path::Path::new("/proc")).unwrap())
    }

    #[test]
    fn no_two_columns_touch() {
        let latency = Percentiles { count: 1, p50: 9_576_400, ..Default::default() };
        let block = Block { cpu_ns: 9_999_900, waiting_ns: 9_999_800, rate: 24_725, latency };
        let options = options(FrontKind::Hyper);
        let runs = vec![Run { constant: block, ..Default::default() }];
        let text = RestReport::new(place(), &options, runs, vec![]).text();
        assert!(text.contains(" 9999.9 us   9999.8 us   1.00       24725 9576.4 us"), "{text}");
    }

    fn options(front: FrontKind) -> RestOptions {
        RestOptions {
            executable: "".into(),
            scratch: "".into(),
            runs: 3,
            requests: 1,
            connections: 1,
            rate: 1,
            bystanders: 0,
            front,
        }
    }

    #[test]
    fn a_crowds_ratio_is_the_median_of_the_runs_own() {
        let latency = |p99| Percentiles { count: 1_000, p99: Some(p99), ..Default::default() };
        let run = |without, with, bytes| {
            (CrowdRun { without: latency(without), with: latency(with) }, bytes)
        };
        let crowds = vec![run(100, 150, 22_000), run(900, 990, 10), run(10, 90, 0)];
        let options = RestOptions { bystanders: 70, ..options(FrontKind::Hyper) };
        let report = RestReport::new(place(), &options, vec![Run::default()], crowds);
        let crowd = report.crowd.as_ref().unwrap();
        assert_eq!((crowd.p99_ratio, crowd.connections), (Some(150), 70));
        assert_eq!((crowd.without.p99, crowd.with.p99), (Some(100), Some(150)));
        assert_eq!(crowd.bytes_per_connection, 22_000);
        let text = report.text();
        assert!(text.contains("\n70 connections"), "{text}");
        assert!(text.contains("now and then: 22000 bytes each in the first run\n"), "{text}");
        assert!(text.contains("taken all of them, median of 3 run(s)\n"), "{text}");
        assert!(text.contains("with to without    1.50\n"), "{text}");
        let untold = |report: &RestReport| {
            report.goals[2..].iter().map(|goal| goal.untold).collect::<Vec<_>>()
        };
        assert_eq!(untold(&report), [Some(NO_CROWD); 2]);
        let options = RestOptions { bystanders: 5_000, ..options };
        let crowds = vec![run(100, 201, 65_536), run(100, 200, 0), run(100, 900, 0)];
        let report = RestReport::new(place(), &options, vec![Run::default()], crowds);
        assert_eq!(untold(&report), [None; 2]);
        let reached: Vec<_> = report.goals[2..].iter().map(|goal| goal.reached).collect();
        assert_eq!(reached, [Some(false), Some(true)]);
    }

    #[test]
    fn ratios_are_medians_of_the_runs_own() {
        let block = |cpu_ns| Block { cpu_ns, ..Default::default() };
        let run = |constant, appended| Run {
            constant: block(constant),
            appended: block(appended),
            durable: block(3 * constant),
            may: None,
        };
        let options = options(FrontKind::May);
        // The machine changes its speed; the ratio hardly moves.
        let runs = vec![run(100, 150), run(500, 800), run(100, 160)];
        let report = RestReport::new(place(), &options, runs, vec![]);
        assert_eq!((report.ratios.appended, report.ratios.durable), (160, 300));
        assert_eq!(report.median.appended.cpu_ns, 160);
        let reached: Vec<_> = report.goals.iter().map(|goal| goal.reached).collect();
        assert_eq!(reached, [Some(true), Some(false)]);
        assert!(report.text().contains("1.60"));
        assert!(!report.text().contains("may:"));
        let second = SecondFront { constant: block(90), appended: block(120) };
        let runs = vec![Run { may: Some(second), ..run(100, 150) }];
        let report = RestReport::new(place(), &options, runs, vec![]);
        assert_eq!((report.ratios.may_constant, report.ratios.may_appended), (Some(90), Some(120)));
        assert!(report.text().contains("may: appended"));
    }
}
