//! What an honest client is to keep beside a hostile one. Called by [`super::run`].

use super::vandal::Beside;
use super::{CARRIERS, KINDS, Run};
use crate::goal::{Compared, Goal};
use crate::latency::duration;

/// An honest p99 beside each vandal at the engine, to that beside a thread that computes, in hundredths.
const P99_TO_BUSY: u64 = 150;

/// The vandals at the engine.
const AT_ENGINE: [Beside; 3] = [Beside::Flood, Beside::UnreadFlood, Beside::Knocks];

/// By carrier and vandal.
pub(super) fn goals(runs: &[Run]) -> Vec<Goal> {
    let of_carrier = |(carrier, name): (usize, &str)| {
        AT_ENGINE.map(|beside| {
            let kind = beside as usize;
            let p99 = |run: &Run| {
                let orders = &run.orders[carrier];
                (orders[kind].p99, orders[Beside::Computing as usize].p99)
            };
            Compared::far(runs.iter().map(p99), &duration)
                .at_most(format!("{name}: {}", KINDS[kind]), P99_TO_BUSY)
        })
    };
    CARRIERS.into_iter().enumerate().flat_map(of_carrier).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::Percentiles;

    #[test]
    fn each_vandal_at_the_engine_is_judged_beside_a_thread_that_computes() {
        let p99s = |p99s: [u64; KINDS.len()]| {
            p99s.map(|p99| Percentiles { p99: Some(p99), ..Default::default() })
        };
        // Alone, busy, a flood elsewhere, a flood, an unread one, knocks elsewhere, knocks.
        let memory = p99s([1, 100, 9_000, 150, 151, 9_000, 100]);
        let tcp = p99s([1, 200, 9_000, 301, 1, 9_000, 300]);
        let goals = goals(&[Run { orders: [memory, tcp], ..Run::default() }]);
        let told: Vec<_> =
            goals.iter().map(|goal| (goal.name.as_str(), goal.reached == Some(true))).collect();
        let expected = [
            ("shared memory: beside a flood", true),
            ("shared memory: beside a flood unread", false),
            ("shared memory: beside knocks and nonsense", true),
            ("TCP: beside a flood", false),
            ("TCP: beside a flood unread", true),
            ("TCP: beside knocks and nonsense", true),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn too_few_orders_are_not_judged() {
        assert!(goals(&[Run::default()]).iter().all(|goal| goal.reached.is_none()));
    }
}
