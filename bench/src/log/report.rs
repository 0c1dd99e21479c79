//! What the measurements of the log have found, as text and as JSON, beside the goals ([`super::goals`]). Called by
//! [`super`] and [`crate::cli`].

use std::fmt::Write as _;

use serde::Serialize;

use super::goals::{IS_NOISE, NOISE, goals, thousandths};
use super::{Append, LogOptions, Paced, Replay, Throughput, Verify};
use crate::goal::Goal;
use crate::latency::{Percentiles, hundredths, median, median_far_ratio, median_ratio, ratio};
use crate::machine::Machine;
use crate::scratch::Scratch;

/// What one round has measured with the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct DurableRound {
    /// D: a bare direct, synchronous write of 4 KiB.
    pub bare_write: Percentiles,
    /// Records on a schedule.
    pub paced: Paced,
    /// Records as fast as they go.
    pub throughput: Throughput,
}

/// What one round has measured.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Round {
    /// Appending, by block.
    pub append: Vec<Append>,
    /// Making durable; none where direct I/O is refused.
    pub durable: Option<DurableRound>,
    /// Replaying.
    pub replay: Replay,
    /// Verifying.
    pub verify: Verify,
}

/// All of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LogReport {
    /// What it was measured on.
    pub machine: Machine,
    /// Where temporary data was.
    pub scratch: Scratch,
    /// Commands of the log that was replayed and verified.
    pub commands: usize,
    /// Bytes of the logs' segments.
    pub segment_bytes: u64,
    /// Each round.
    pub rounds: Vec<Round>,
    /// What was not measured, and why.
    pub skipped: Option<String>,
    /// The figures, with medians of the rounds' ratios.
    pub goals: Vec<Goal>,
}

impl LogReport {
    pub(super) fn new(
        options: &LogOptions,
        (machine, scratch): (Machine, Scratch),
        rounds: Vec<Round>,
        skipped: Option<String>,
    ) -> Self {
        let goals = if rounds.is_empty() { Vec::new() } else { goals(&rounds) };
        let LogOptions { commands, segment_bytes, .. } = *options;
        Self { machine, scratch, commands, segment_bytes, rounds, skipped, goals }
    }

    /// Several lines of text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!(
            "the log, segments of {} MiB: medians of {} round(s), ratios within a round\nmachine: \
             {}\nscratch: {}\n{}",
            self.segment_bytes >> 20,
            self.rounds.len(),
            self.machine.line(),
            self.scratch.line(),
            Goal::lines(&self.goals),
        );
        if self.goals.iter().any(|goal| goal.untold == Some(IS_NOISE)) {
            // Writing to a String cannot fail.
            let _infallible = writeln!(
                text,
                "{IS_NOISE}: with the disk held, the writer's p99.9 is more than {NOISE} times its p50"
            );
        }
        self.append_line(&mut text);
        self.durable_lines(&mut text);
        if let Some(why) = &self.skipped {
            let _infallible = writeln!(text, "skipped: {why}");
        }
        text
    }

    /// The copy that is no yardstick.
    fn append_line(&self, text: &mut String) {
        let blocks = || self.rounds.iter().flat_map(|round| &round.append);
        let copy = median(blocks().map(|block| block.package_copy_ns_per_1000));
        let to_copy = median_ratio(
            blocks().map(|block| (block.append_ns_per_1000, block.package_copy_ns_per_1000)),
        );
        let _infallible = writeln!(
            text,
            "\nno goal: a copy with the checksum of the crc32c package {}, to which an append is {}",
            thousandths(copy),
            ratio(to_copy, 100),
        );
    }

    fn durable_lines(&self, text: &mut String) {
        let durable: Vec<DurableRound> =
            self.rounds.iter().filter_map(|round| round.durable).collect();
        if durable.is_empty() {
            return;
        }
        let all = |of: fn(&DurableRound) -> Percentiles| {
            Percentiles::median(&durable.iter().map(of).collect::<Vec<_>>())
        };
        let rows = [
            ("bare direct write of 4 KiB (D)", all(|round| round.bare_write)),
            ("writer, disk held", all(|round| round.paced.writer_off)),
            ("writer, disk at work", all(|round| round.paced.writer_on)),
            ("durable, from when it was due", all(|round| round.paced.durable)),
            ("bare writes, on that schedule", all(|round| round.paced.bare_writes)),
            ("bare, from when it was due", all(|round| round.paced.bare_durable)),
        ];
        let _infallible = writeln!(text, "\n{:<32}{}", "", Percentiles::HEADING);
        for (name, percentiles) in rows {
            let _infallible = writeln!(text, "{name:<32}{}", percentiles.columns());
        }
        let to_bare = |of: fn(&Percentiles) -> Option<u64>| {
            let pair =
                |round: &DurableRound| (of(&round.paced.durable), of(&round.paced.bare_durable));
            hundredths(median_far_ratio(durable.iter().map(pair)))
        };
        let _infallible = writeln!(
            text,
            "\ndurable to bare, from when it was due: p50 {}, p99 {}, p99.9 {}",
            to_bare(|found| Some(found.p50)),
            to_bare(|found| found.p99),
            to_bare(|found| found.p99_9),
        );
        let stolen = |of: fn(&DurableRound) -> u64| {
            format!("{} %", (median(durable.iter().map(of)) + 5) / 10)
        };
        let _infallible = writeln!(
            text,
            "of all cores' time the host took {} with the disk held, {} with it at work, {} beside bare writes, {} \
             of the records as fast as they become durable, {} of the bare disk's bytes",
            stolen(|round| round.paced.stolen_off),
            stolen(|round| round.paced.stolen_on),
            stolen(|round| round.paced.stolen_bare),
            stolen(|round| round.throughput.stolen_durable),
            stolen(|round| round.throughput.stolen_disk),
        );
        let megabytes = |of: fn(&Throughput) -> u64| {
            median(durable.iter().map(|round| of(&round.throughput))) / 1_000_000
        };
        let _infallible = writeln!(
            text,
            "bare disk, writes of 8 MiB: {} MB/s into new space, {} MB/s over what was there",
            megabytes(|found| found.disk_bytes_per_second),
            megabytes(|found| found.overwritten_bytes_per_second),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goal::IS_FAR_APART;

    fn block(append_ns_per_1000: u64, copy_ns_per_1000: u64) -> Append {
        Append { append_ns_per_1000, copy_ns_per_1000, package_copy_ns_per_1000: 60_000 }
    }

    fn round(append: u64, replay: u64) -> Round {
        Round {
            append: vec![block(append, 30_000)],
            durable: None,
            replay: Replay { replay_per_second: replay, core_per_second: 8_000_000 },
            verify: Verify {
                bytes: 1,
                verify_bytes_per_second: 1_000_000_000,
                read_bytes_per_second: 2_000_000_000,
            },
        }
    }

    fn report(rounds: Vec<Round>) -> LogReport {
        let options = LogOptions {
            scratch: "".into(),
            rounds: 1,
            commands: 1,
            open: 1,
            core: None,
            segment_bytes: 4 << 20,
            write_interval: std::time::Duration::ZERO,
        };
        let scratch = Scratch { file_system: "ext4".to_owned(), in_memory: false };
        LogReport::new(&options, (Machine::here(), scratch), rounds, Some("why".to_owned()))
    }

    #[test]
    fn goals_are_judged_by_medians_of_ratios_or_by_the_figure() {
        let report =
            report(vec![round(45_000, 5_100_000), round(90_000, 5_200_000), round(51_000, 1)]);
        let goals: Vec<_> = report.goals.iter().map(|goal| (goal.ratio, goal.reached)).collect();
        // The replay is 63 % of the core, but more than 5 M/s.
        assert_eq!(goals, [(170, Some(true)), (63, Some(true)), (50, Some(false))]);
        let text = report.text();
        assert!(text.starts_with("the log, segments of 4 MiB: medians of 3 round(s)"), "{text}");
        assert!(text.contains("51.0 ns") && text.contains("5.10 M/s"), "{text}");
        assert!(text.contains("crc32c package 60.0 ns, to which an append is 0.85"), "{text}");
        assert!(text.contains("missed") && text.contains("skipped: why"), "{text}");
    }

    #[test]
    fn what_is_durable_is_told_in_writes_of_the_same_round() {
        let percentiles = |p50, p99, p99_9| Percentiles {
            p50,
            p99: Some(p99),
            p99_9: Some(p99_9),
            ..Default::default()
        };
        let durable = DurableRound {
            bare_write: percentiles(100_000, 0, 0),
            paced: Paced {
                writer_off: percentiles(3, 0, 300),
                writer_on: percentiles(0, 0, 450),
                durable: percentiles(150_000, 700_000, 0),
                bare_writes: percentiles(100_000, 0, 0),
                bare_durable: percentiles(120_000, 350_000, 0),
                stolen_off: 0,
                stolen_on: 123,
                stolen_bare: 61,
            },
            throughput: Throughput {
                appended_per_second: 20_000_000,
                durable_per_second: 5_000_000,
                disk_bytes_per_second: 128 * 5_000_000,
                overwritten_bytes_per_second: 128 * 7_000_000,
                stolen_durable: 40,
                stolen_disk: 9,
            },
        };
        let report = report(vec![Round { durable: Some(durable), ..round(1, 1) }]);
        let goals: Vec<_> =
            report.goals[1..5].iter().map(|goal| (goal.ratio, goal.reached)).collect();
        let outcomes = [150, 150, 700, 100].into_iter().zip([true, true, false, true].map(Some));
        assert_eq!(goals, outcomes.collect::<Vec<_>>());
        let text = report.text();
        assert!(text.contains("8 MiB: 640 MB/s into new space, 896 MB/s over"), "{text}");
        assert!(text.contains("from when it was due: p50 1.25, p99 2.00, p99.9 "), "{text}");
        let stolen = "took 0 % with the disk held, 12 % with it at work, 6 % beside bare writes, 4 % of the \
                      records as fast as they become durable, 1 % of the bare disk's bytes";
        assert!(text.contains(stolen), "{text}");
    }

    #[test]
    fn nothing_is_told_of_a_writer_that_the_machine_holds_up_anyway() {
        let mut durable = DurableRound::default();
        durable.paced.writer_off = Percentiles { p50: 3, p99_9: Some(304), ..Default::default() };
        durable.paced.writer_on = Percentiles { p99_9: Some(600), ..Default::default() };
        let report = report(vec![Round { durable: Some(durable), ..round(1, 1) }]);
        let goal = &report.goals[1];
        assert_eq!((goal.ratio, goal.reached, goal.untold), (197, None, Some("noise")));
        let text = report.text();
        assert!(text.contains("1.97   <= 2.00: -: noise\n"), "{text}");
        assert!(
            text.contains("\nnoise: with the disk held, the writer's p99.9 is more than 100 times"),
            "{text}"
        );
    }

    #[test]
    fn noise_hides_no_miss() {
        let mut durable = DurableRound::default();
        durable.paced.writer_off = Percentiles { p50: 3, p99_9: Some(304), ..Default::default() };
        durable.paced.writer_on = Percentiles { p99_9: Some(700), ..Default::default() };
        let report = report(vec![Round { durable: Some(durable), ..round(1, 1) }]);
        assert_eq!(report.goals[1].reached, Some(false));
    }

    #[test]
    fn what_cannot_be_compared_reaches_nothing_but_a_figure_of_its_own() {
        let mut nothing = round(0, 5_000_000);
        nothing.append = vec![block(0, 0)];
        nothing.replay.core_per_second = 0;
        nothing.verify.read_bytes_per_second = 0;
        let report = report(vec![nothing]);
        let reached: Vec<_> = report.goals.iter().map(|goal| goal.reached).collect();
        assert_eq!(reached, [None, Some(true), None]);
        assert!(report.text().contains("<= 2.00: -: nothing to compare with"), "{}", report.text());
    }

    #[test]
    fn a_copy_that_was_held_up_reaches_nothing() {
        let append = |rounds: &[Vec<Append>]| {
            let rounds =
                rounds.iter().map(|append| Round { append: append.clone(), ..round(1, 1) });
            let goal = report(rounds.collect()).goals.remove(0);
            (goal.ratio, goal.reached, goal.untold)
        };
        // By the sums of the blocks it would be 0.68.
        let held_up = vec![block(63_000, 30_000), block(63_000, 30_000), block(63_000, 217_000)];
        assert_eq!(append(&[held_up]), (210, Some(false), None));
        // The copies of one round took more than three times those of another.
        let rounds = [vec![block(45_000, 30_000)], vec![block(136_500, 91_000)]];
        assert_eq!(append(&rounds), (150, None, Some(IS_FAR_APART)));
    }

    #[test]
    fn no_round_has_no_goals() {
        assert_eq!(report(Vec::new()).goals, []);
    }
}
