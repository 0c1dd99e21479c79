//! What the log is to reach, each figure beside the bare thing of the same round. Called by [`super::report`].

use std::cmp::Ordering;

use super::report::{DurableRound, Round};
use crate::goal::{Goal, median_to};
use crate::latency::{duration, median};

/// Replay may be this fast, commands per second, or [`REPLAY_SHARE`] of the core, whichever is less.
const REPLAY_PER_SECOND: u64 = 5_000_000;
const REPLAY_SHARE: u64 = 70;

/// Verifying may be this fast, bytes per second, or [`VERIFY_SHARE`] of reading, whichever is less.
const VERIFY_BYTES_PER_SECOND: u64 = 2_000_000_000;
const VERIFY_SHARE: u64 = 80;

/// Where the writer's own p99.9 with the disk held is more than so many times its p50, the machine makes it: that a
/// goal to it is reached says nothing then. That it is missed does.
pub(super) const NOISE: u64 = 100;
pub(super) const IS_NOISE: &str = "noise";

/// Numerator and denominator of each round, and how they are shown.
struct Compared<'rounds> {
    pairs: Vec<(u64, u64)>,
    show: &'rounds dyn Fn(u64) -> String,
}

impl Compared<'_> {
    fn goal(&self, name: &'static str, bound: u64, at_most: bool) -> Goal {
        let beside = median(self.pairs.iter().map(|pair| pair.1));
        let figures = [self.figure(), beside].map(self.show);
        let of = if at_most { Goal::at_most } else { Goal::at_least };
        of(name.to_owned(), figures, &self.pairs, bound)
    }

    fn figure(&self) -> u64 {
        median(self.pairs.iter().map(|pair| pair.0))
    }

    /// A goal of at least a share, which a figure of its own reaches as well.
    fn goal_or(&self, name: &'static str, bound: u64, (or, enough): (&'static str, u64)) -> Goal {
        self.goal(name, bound, false).or(or, self.figure() >= enough)
    }
}

/// The goals of these rounds, at least one.
pub(super) fn goals(rounds: &[Round]) -> Vec<Goal> {
    let of = |pair: fn(&Round) -> (u64, u64)| rounds.iter().map(pair).collect::<Vec<_>>();
    let append = Compared {
        pairs: of(|round| (round.append.append_ns_per_1000, round.append.copy_ns_per_1000)),
        show: &thousandths,
    };
    let mut goals = vec![append.goal("append a command with events, to copy + crc", 200, true)];
    goals.extend(durable_goals(rounds));
    let replay = Compared {
        pairs: of(|round| (round.replay.replay_per_second, round.replay.core_per_second)),
        show: &millions,
    };
    goals.push(replay.goal_or(
        "replay, to the core alone",
        REPLAY_SHARE,
        ("5 M/s", REPLAY_PER_SECOND),
    ));
    let verify = Compared {
        pairs: of(|round| {
            (round.verify.verify_bytes_per_second, round.verify.read_bytes_per_second)
        }),
        show: &|bytes| format!("{}.{:02} GB/s", bytes / 1_000_000_000, bytes / 10_000_000 % 100),
    };
    goals.push(verify.goal_or(
        "verify, to reading the log",
        VERIFY_SHARE,
        ("2 GB/s", VERIFY_BYTES_PER_SECOND),
    ));
    goals
}

/// A time per thousand, each, with its unit.
pub(super) fn thousandths(ns: u64) -> String {
    format!("{}.{} ns", ns / 1000, ns % 1000 / 100)
}

fn millions(per_second: u64) -> String {
    format!("{}.{:02} M/s", per_second / 1_000_000, per_second / 10_000 % 100)
}

fn durable_goals(rounds: &[Round]) -> Vec<Goal> {
    let durable: Vec<DurableRound> = rounds.iter().filter_map(|round| round.durable).collect();
    if durable.is_empty() {
        return Vec::new();
    }
    let of = |pair: fn(&DurableRound) -> (u64, u64)| durable.iter().map(pair).collect::<Vec<_>>();
    let times = |pair| Compared { pairs: of(pair), show: &duration };
    // A round that has no such percentile says nothing.
    let far = |pair: fn(&DurableRound) -> (Option<u64>, Option<u64>)| {
        let pairs = durable.iter().map(pair).filter_map(|(figure, beside)| figure.zip(beside));
        Compared { pairs: pairs.collect(), show: &duration }
    };
    let throughput = Compared {
        pairs: of(|round| (round.throughput.durable_per_second, round.throughput.attainable())),
        show: &millions,
    };
    let mut writer = far(|round| (round.paced.writer_on.p99_9, round.paced.writer_off.p99_9)).goal(
        "writer's p99.9, disk at work to disk held",
        200,
        true,
    );
    let held = far(|round| (round.paced.writer_off.p99_9, Some(round.paced.writer_off.p50)));
    if writer.reached == Some(true)
        && median_to(&held.pairs, 100 * NOISE) == Some(Ordering::Greater)
    {
        writer = writer.without_verdict(IS_NOISE);
    }
    vec![
        writer,
        times(|round| (round.paced.durable.p50, round.bare_write.p50)).goal(
            "durable p50 at 0.5 M/s, to D",
            200,
            true,
        ),
        far(|round| (round.paced.durable.p99, Some(round.bare_write.p50))).goal(
            "durable p99 at 0.5 M/s, to D",
            600,
            true,
        ),
        throughput.goal("durable 128-byte records, to attainable", 90, false),
    ]
}
