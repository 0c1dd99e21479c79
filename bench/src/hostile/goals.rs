//! What an honest client is to keep beside a hostile one. Called by [`super::run`].

use super::vandal::Beside;
use super::{CARRIERS, KINDS, Run};
use crate::goal::{Compared, Goal};
use crate::latency::duration;

/// An honest p99 beside each vandal at the engine, in hundredths: to that alone, which is what a client has; and to that
/// beside a thread that computes, which is what any busy thread leaves of it on this machine.
const P99: u64 = 150;
const YARDSTICKS: [(Beside, &str); 2] = [(Beside::Nothing, "alone"), (Beside::Computing, "busy")];

/// The vandals at the engine.
const AT_ENGINE: [Beside; 3] = [Beside::Flood, Beside::UnreadFlood, Beside::Knocks];

/// The [`CARRIERS`] as the column of names has room for.
const NAMES: [&str; CARRIERS.len()] = ["shm", "TCP"];

/// By carrier, vandal and yardstick.
pub(super) fn goals(runs: &[Run]) -> Vec<Goal> {
    let of = |carrier: usize, kind: Beside, (yardstick, name): (Beside, &str)| {
        let p99 = |run: &Run| {
            let orders = &run.orders[carrier];
            (orders[kind as usize].p99, orders[yardstick as usize].p99)
        };
        Compared::far(runs.iter().map(p99), &duration)
            .at_most(format!("{}: {}, to {name}", NAMES[carrier], KINDS[kind as usize]), P99)
    };
    (0..CARRIERS.len())
        .flat_map(|carrier| AT_ENGINE.map(|kind| (carrier, kind)))
        .flat_map(|(carrier, kind)| YARDSTICKS.map(|yardstick| of(carrier, kind, yardstick)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::Percentiles;

    #[test]
    fn each_vandal_at_the_engine_is_judged_beside_nobody_and_beside_a_thread_that_computes() {
        let p99s = |p99s: [u64; KINDS.len()]| {
            p99s.map(|p99| Percentiles { p99: Some(p99), ..Default::default() })
        };
        // Alone, busy, a flood elsewhere, a flood, an unread one, knocks elsewhere, knocks.
        let memory = p99s([67, 100, 9_000, 150, 151, 9_000, 100]);
        let tcp = p99s([201, 200, 9_000, 301, 1, 9_000, 302]);
        let goals = goals(&[Run { orders: [memory, tcp], ..Run::default() }]);
        let told: Vec<_> =
            goals.iter().map(|goal| (goal.name.as_str(), goal.reached == Some(true))).collect();
        let expected = [
            ("shm: beside a flood, to alone", false),
            ("shm: beside a flood, to busy", true),
            ("shm: beside a flood unread, to alone", false),
            ("shm: beside a flood unread, to busy", false),
            ("shm: beside knocks and nonsense, to alone", true),
            ("shm: beside knocks and nonsense, to busy", true),
            ("TCP: beside a flood, to alone", true),
            ("TCP: beside a flood, to busy", false),
            ("TCP: beside a flood unread, to alone", true),
            ("TCP: beside a flood unread, to busy", true),
            ("TCP: beside knocks and nonsense, to alone", false),
            ("TCP: beside knocks and nonsense, to busy", false),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn too_few_orders_are_not_judged() {
        assert!(goals(&[Run::default()]).iter().all(|goal| goal.reached.is_none()));
    }
}
