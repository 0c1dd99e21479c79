//! What a venue does of which nobody wants anything: nothing, as its threads show.

use super::process::eventually;
use super::venue::Venue;
use crate::patience::in_a_few_tries;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{fs, thread};

/// A sell order that rests.
const SELL: &str = "symbol=BTCUSDT&side=SELL&type=LIMIT&timeInForce=GTC&quantity=1&price=50000";

/// The threads of a process that sleep in the kernel, or all, with how often each has gone to sleep so far.
fn sleeps(pid: u32, only_asleep: bool) -> BTreeMap<PathBuf, u64> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("the process runs");
    let sleeps = |thread: PathBuf| {
        let status = fs::read_to_string(thread.join("status")).ok()?;
        let field = |name| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let is_asleep = field("State:")?.starts_with('S');
        let count = field("voluntary_ctxt_switches:")?.parse().ok()?;
        (is_asleep || !only_asleep).then_some((thread, count))
    };
    threads.flatten().filter_map(|thread| sleeps(thread.path())).collect()
}

/// Looks at the threads in three seconds, and what one may wake in each.
const LOOKS: u32 = 100;
const WAKES_PER_SECOND: u128 = 25;

/// None of its threads spins, so that nearly each look finds each asleep; and none wakes more often than what is looked at most
/// often, the adapter's connection to the engine, twenty times in a second.
#[test]
fn an_idle_venue_leaves_the_processor_alone() {
    let venue = Venue::up(&[]);
    venue.a().place(SELL);
    let pids = ["engine", "adapter"].map(|name| venue.pid(name).expect("it runs"));
    let mut awake: BTreeSet<PathBuf> =
        pids.iter().flat_map(|&pid| sleeps(pid, false).into_keys()).collect();
    let all_sleep = || {
        let asleep = pids.map(|pid| sleeps(pid, true));
        let sleeps = |thread: &PathBuf| asleep.iter().any(|asleep| asleep.contains_key(thread));
        awake.retain(|thread| thread.exists() && !sleeps(thread));
        awake.is_empty()
    };
    assert!(eventually(all_sleep), "they do not sleep: {awake:?}");
    let mut spinning = Vec::new();
    // Where others compute, one that has slept waits for a core, and is found as if it computed.
    let none_spins = in_a_few_tries(|| {
        spinning = spinning_threads(pids);
        spinning.is_empty()
    });
    assert!(none_spins, "awake in most of {LOOKS} looks: {spinning:?}");
}

/// The threads that are found awake more often than asleep, as those are that compute. Panics if one wakes too often.
fn spinning_threads(pids: [u32; 2]) -> Vec<PathBuf> {
    let (begin, before) = (Instant::now(), pids.map(|pid| sleeps(pid, false)));
    let mut spinning = Vec::new();
    let mut asleep: BTreeMap<PathBuf, u32> = BTreeMap::new();
    for _ in 0..LOOKS {
        thread::sleep(Duration::from_secs(3) / LOOKS);
        for thread in pids.iter().flat_map(|&pid| sleeps(pid, true).into_keys()) {
            *asleep.entry(thread).or_default() += 1;
        }
    }
    let after = pids.map(|pid| sleeps(pid, false));
    let wakes_max = begin.elapsed().as_millis() * WAKES_PER_SECOND / 1000;
    for (before, after) in before.iter().zip(&after) {
        for (thread, count) in after {
            let wakes = count.saturating_sub(before.get(thread).copied().unwrap_or(0));
            assert!(u128::from(wakes) <= wakes_max, "{thread:?}: {wakes} wakes of {wakes_max}");
            let asleep = asleep.get(thread).copied().unwrap_or(0);
            if before.contains_key(thread) && asleep <= LOOKS / 2 {
                spinning.push(thread.clone());
            }
        }
    }
    spinning
}
