//! What orders over TCP are to reach, each figure beside what was measured in the same run. Called by [`super::run`].

use super::{KINDS, Run};
use crate::goal::{Compared, Goal, far_apart};
use crate::latency::{Percentiles, duration, median};

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
const T2S: [usize; 2] = [1, 2];
const EPOLL: usize = 3;
const IO_URING: usize = 4;

/// The quicker one of both, by its p50.
pub(super) fn quicker_t2(run: &Run) -> Percentiles {
    let [one, other] = T2S.map(|kind| run[kind]);
    if other.p50 < one.p50 { other } else { one }
}

/// Said in the place of a verdict.
const T_IS_SLOWER: &str = "noise, T took longer than T2";

/// Whether T2 can be told: an echo with a second thread behind it is not quicker than one of a thread that spins, unless
/// something held that up.
fn noise(runs: &[Run]) -> Option<&'static str> {
    let t = || runs.iter().map(|run| run[T].p50);
    let t2 = || runs.iter().map(|run| quicker_t2(run).p50);
    if median(t()) > median(t2()) {
        return Some(T_IS_SLOWER);
    }
    far_apart(t()).or_else(|| far_apart(t2()))
}

/// The goals of these runs on so many cores.
pub(super) fn goals(
    runs: &[Run],
    idle_look: &[(&'static str, u64)],
    (cores, is_refused): (usize, bool),
) -> Vec<Goal> {
    let noise = noise(runs);
    let p50 = |kind: usize, beside: fn(&Run) -> Percentiles| {
        let pairs = runs.iter().map(move |run| (run[kind].p50, beside(run).p50));
        Compared::beside(pairs, &duration)
    };
    let p99 = |kind: usize| {
        Compared::far(runs.iter().map(|run| (run[kind].p99, quicker_t2(run).p99)), &duration)
    };
    let mut goals = Vec::new();
    for kind in [IO_URING, EPOLL] {
        let name = KINDS[kind];
        let mut of_kind = vec![
            p50(kind, quicker_t2)
                .at_most(format!("{name}: p50, to T2"), P50_TO_T2)
                .unless_noise(noise),
            p99(kind).at_most(format!("{name}: p99, to T2"), P99_TO_T2).unless_noise(noise),
        ];
        if cores >= CORES_FOR_T {
            let to_t = p50(kind, |run| run[T]).at_most(format!("{name}: p50, to T"), P50_TO_T);
            of_kind.push(to_t.unless_noise(noise));
        }
        if kind == IO_URING {
            of_kind
                .push(p50(kind, |run| run[EPOLL]).at_most(format!("{name}: p50, to epoll's"), 100));
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
    use crate::goal::IS_FAR_APART;

    fn run(figures: [(u64, u64); KINDS.len()]) -> Run {
        figures.map(|(p50, p99)| Percentiles { p50, p99: Some(p99), ..Default::default() })
    }

    #[test]
    fn each_backend_is_judged_beside_what_has_two_threads() {
        // T, both of T2, epoll, io_uring, shared memory.
        let runs = [run([(10, 20), (101, 1), (100, 200), (121, 300), (120, 301), (1, 1)])];
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
        let runs = [[Percentiles { p50: 1, ..Default::default() }; KINDS.len()]];
        let goals = goals(&runs, &[("io_uring", 101)], (2, false));
        let reached: Vec<_> = goals.iter().map(|goal| goal.reached).collect();
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(reached, [yes, None, yes, no, yes, None]);
    }

    #[test]
    fn the_quicker_echo_is_the_yardstick() {
        let kinds = |t2, t2_without_looks| {
            run([(10, 20), t2, t2_without_looks, (121, 300), (121, 300), (1, 1)])
        };
        let told = |run| -> Vec<_> {
            let goals = goals(&[run], &[], (2, false));
            goals.into_iter().take(2).map(|goal| (goal.beside, goal.reached)).collect()
        };
        let of = |p50: &str, p99: &str, reached: [bool; 2]| {
            let [one, other] = reached.map(Some);
            vec![(p50.to_owned(), one), (p99.to_owned(), other)]
        };
        assert_eq!(told(kinds((200, 400), (100, 150))), of("100 ns", "150 ns", [false, false]));
        // Its p99 is its own, be the other's shorter.
        assert_eq!(told(kinds((101, 200), (200, 100))), of("101 ns", "200 ns", [true, true]));
    }

    #[test]
    fn nothing_is_reached_beside_an_echo_that_was_held_up() {
        let with = |t, t2| run([(t, t), (t2, t2), (t2, t2), (t2, t2), (2 * t2, t2), (1, 1)]);
        let told = |runs: &[Run]| -> Vec<_> {
            let goals = goals(runs, &[], (2, false));
            goals.into_iter().map(|goal| (goal.reached, goal.untold)).collect()
        };
        let (yes, no) = ((Some(true), None), (Some(false), None));
        let untold = |why| (None, Some(why));
        assert_eq!(told(&[with(10, 11)])[..2], [no, yes]);
        // What is missed is missed.
        let (slow, no_looks) = (untold(T_IS_SLOWER), untold("nothing to compare with"));
        assert_eq!(told(&[with(12, 11)]), [no, slow, no, no_looks, slow, slow]);
        let far = untold(IS_FAR_APART);
        assert_eq!(told(&[with(10, 11), with(10, 34)])[..2], [no, far]);
        assert_eq!(told(&[with(1, 11), with(4, 11)])[..2], [no, far]);
    }
}
