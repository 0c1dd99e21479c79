//! What the log is to reach, each figure beside the bare thing of the same round. Called by [`super::report`].

use std::cmp::Ordering;

use super::report::{DurableRound, Round};
use crate::goal::{Compared, Goal, far_apart};
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

/// The goals of these rounds, at least one.
pub(super) fn goals(rounds: &[Round]) -> Vec<Goal> {
    let of = |pair: fn(&Round) -> (u64, u64)| rounds.iter().map(pair);
    let blocks = rounds.iter().flat_map(|round| &round.append);
    let append = blocks.map(|block| (block.append_ns_per_1000, block.copy_ns_per_1000));
    let copies =
        rounds.iter().map(|round| median(round.append.iter().map(|block| block.copy_ns_per_1000)));
    let append = Compared::beside(append, &thousandths)
        .at_most("append a command with events, to copy + crc", 200)
        .unless_noise(far_apart(copies));
    let mut goals = vec![append];
    goals.extend(durable_goals(rounds));
    let replay = of(|round| (round.replay.replay_per_second, round.replay.core_per_second));
    goals.push(Compared::beside(replay, &millions).at_least_or(
        "replay, to the core alone",
        REPLAY_SHARE,
        ("5 M/s", REPLAY_PER_SECOND),
    ));
    let verify =
        of(|round| (round.verify.verify_bytes_per_second, round.verify.read_bytes_per_second));
    goals.push(Compared::beside(verify, &gigabytes).at_least_or(
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

fn gigabytes(bytes: u64) -> String {
    format!("{}.{:02} GB/s", bytes / 1_000_000_000, bytes / 10_000_000 % 100)
}

fn durable_goals(rounds: &[Round]) -> Vec<Goal> {
    let durable: Vec<DurableRound> = rounds.iter().filter_map(|round| round.durable).collect();
    if durable.is_empty() {
        return Vec::new();
    }
    let of = |pair: fn(&DurableRound) -> (u64, u64)| durable.iter().map(pair);
    let far = |pair: fn(&DurableRound) -> (Option<u64>, Option<u64>)| {
        Compared::far(durable.iter().map(pair), &duration)
    };
    let writer = far(|round| (round.paced.writer_on.p99_9, round.paced.writer_off.p99_9))
        .at_most("writer's p99.9, disk at work to disk held", 200);
    let held = far(|round| (round.paced.writer_off.p99_9, Some(round.paced.writer_off.p50)));
    let is_noise = held.median_to(100 * NOISE) == Some(Ordering::Greater);
    let p50 = of(|round| (round.paced.durable.p50, round.bare_write.p50));
    let p99 = far(|round| (round.paced.durable.p99, Some(round.bare_write.p50)));
    let throughput =
        of(|round| (round.throughput.durable_per_second, round.throughput.attainable()));
    vec![
        writer.unless_noise(is_noise.then_some(IS_NOISE)),
        Compared::beside(p50, &duration).at_most("durable p50 at 0.5 M/s, to D", 200),
        p99.at_most("durable p99 at 0.5 M/s, to D", 600),
        Compared::beside(throughput, &millions)
            .at_least("durable 128-byte records, to attainable", 90),
    ]
}
