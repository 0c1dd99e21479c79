//! What orders over TCP are to reach, each figure beside what was measured in the same run. Called by [`super::run`].

use super::{KINDS, Run};
use crate::goal::{Compared, Goal};
use crate::latency::{Percentiles, duration};

/// To an echo whose socket thread has a second one behind it, in hundredths.
const P50_TO_T2: u64 = 120;
const P99_TO_T2: u64 = 150;

/// To an echo by one thread that spins, which a gateway and a duty thread can only reach with as many free cores, one of
/// them for the client.
const P50_TO_T: u64 = 130;
const CORES_FOR_T: usize = 3;

/// A look at idle sockets, tenths of ns.
const IDLE_LOOK: u64 = 100;

const REFUSED: &str = "io_uring is refused here";

/// Where each stands in [`KINDS`].
const T: usize = 0;
const T2: usize = 1;
const EPOLL: usize = 2;
const IO_URING: usize = 3;

/// The goals of these runs on so many cores.
pub(super) fn goals(
    runs: &[Run],
    idle_look: &[(&'static str, u64)],
    (cores, is_refused): (usize, bool),
) -> Vec<Goal> {
    let p50 = |kind: usize, beside: usize| {
        Compared::beside(runs.iter().map(|run| (run[kind].p50, run[beside].p50)), &duration)
    };
    let p99 = |kind: usize, beside: usize| {
        let of = |one: Percentiles| one.p99;
        Compared::far(runs.iter().map(|run| (of(run[kind]), of(run[beside]))), &duration)
    };
    let mut goals = Vec::new();
    for kind in [IO_URING, EPOLL] {
        let name = KINDS[kind];
        let mut of_kind = vec![
            p50(kind, T2).at_most(format!("{name}: p50, to T2"), P50_TO_T2),
            p99(kind, T2).at_most(format!("{name}: p99, to T2"), P99_TO_T2),
        ];
        if cores >= CORES_FOR_T {
            of_kind.push(p50(kind, T).at_most(format!("{name}: p50, to T"), P50_TO_T));
        }
        if kind == IO_URING {
            of_kind.push(p50(kind, EPOLL).at_most(format!("{name}: p50, to epoll's"), 100));
            let looks = idle_look.iter().filter(|(backend, _)| *backend == "io_uring");
            let looks = looks.map(|&(_, tenths)| tenths);
            let tenths = |tenths| format!("{}.{} ns", tenths / 10, tenths % 10);
            of_kind.push(
                Compared::to_bound(looks, IDLE_LOOK, &tenths)
                    .at_most("a look at idle sockets, io_uring", 100),
            );
        }
        let is_epolls = kind == IO_URING && is_refused;
        let judged = |goal: Goal| if is_epolls { goal.without_verdict(REFUSED) } else { goal };
        goals.extend(of_kind.into_iter().map(judged));
    }
    goals
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(figures: [(u64, u64); 5]) -> Run {
        figures.map(|(p50, p99)| Percentiles { p50, p99: Some(p99), ..Default::default() })
    }

    #[test]
    fn each_backend_is_judged_beside_what_has_two_threads() {
        // T, T2, epoll, io_uring, shared memory.
        let runs = [run([(10, 20), (100, 200), (121, 300), (120, 301), (1, 1)])];
        let looks = [("epoll", 1_740), ("io_uring", 100)];
        let told = |cores, is_refused| -> Vec<_> {
            let goals = goals(&runs, &looks, (cores, is_refused));
            goals.into_iter().map(|goal| (goal.name, goal.reached)).collect()
        };
        let expected = [
            ("engine, io_uring: p50, to T2", Some(true)),
            ("engine, io_uring: p99, to T2", Some(false)),
            ("engine, io_uring: p50, to epoll's", Some(true)),
            ("a look at idle sockets, io_uring", Some(true)),
            ("engine, epoll: p50, to T2", Some(false)),
            ("engine, epoll: p99, to T2", Some(true)),
        ]
        .map(|(name, reached)| (name.to_owned(), reached));
        assert_eq!(told(2, false), expected);
        // What has the name of io_uring is epoll's there.
        let refused: Vec<_> = told(2, true).into_iter().map(|(_, reached)| reached).collect();
        assert_eq!(refused, [None, None, None, None, Some(false), Some(true)]);
        let to_t: Vec<_> = told(3, false).into_iter().map(|(_, reached)| reached).collect();
        assert_eq!((to_t.len(), to_t[2], to_t[7]), (8, Some(false), Some(false)));
    }

    #[test]
    fn a_slower_look_and_too_few_messages_reach_nothing() {
        let runs = [[Percentiles { p50: 1, ..Default::default() }; 5]];
        let goals = goals(&runs, &[("io_uring", 101)], (2, false));
        let reached: Vec<_> = goals.iter().map(|goal| goal.reached).collect();
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(reached, [yes, None, yes, no, yes, None]);
    }
}
