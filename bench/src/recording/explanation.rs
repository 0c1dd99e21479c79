//! Holds a replayed book against the recorded top-of-book states and gives every difference a cause.
//! Called by [`crate::replay`].
//!
//! What is compared are *distinct states*: tops of book with both sides, without repetitions of the
//! one before. The recorded file covers more time than the messages, so it is cut where the *completed*
//! flow (every order that the recording reveals put in, see [`super::flow`]) ends best: at that
//! beginning of the recorded states which it matches with the fewest differences.
//!
//! Those differences of the completed flow have no cause, they count as *other*. The plain flow, which
//! holds only what rows introduce, is then aligned with the same states. Each run of differences there
//! spans some rows; it is due to orders that no row introduced if, at one of these rows, putting them
//! in changes the top of book; due to orders removed beyond the recorded depth if taking those out
//! changes it; else it is *other*. Hidden executions touch no visible order and so never are a cause.

use serde::Serialize;

use super::alignment::{Alignment, align, align_with_beginning, found_in_order};
use super::book::Top;

/// States that are looked through for the next one when the published count is repeated. From 50 to
/// 500 it comes out the same.
const LOOK_AHEAD: usize = 200;

/// Top of book after each row, three times.
#[derive(Clone, Copy)]
pub struct Tops<'a> {
    /// Of the plain flow: what was replayed.
    pub plain: &'a [Top],
    /// With the revealed orders put in.
    pub revealed: &'a [Top],
    /// The completed flow: also without the orders that left the recorded depth.
    pub completed: &'a [Top],
}

/// States that differ, by cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Causes {
    /// Orders that no row introduced stood at the top (most from before the opening).
    pub unseen_orders: usize,
    /// Orders that were removed out of sight, beyond the recorded depth, stood at the top.
    pub removed_beyond_depth: usize,
    /// Neither.
    pub other: usize,
}

/// How the replayed states and the recorded ones agree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Comparison {
    /// Distinct states of the plain replay.
    pub replayed: usize,
    /// Distinct states that were recorded up to where the messages end.
    pub recorded: usize,
    /// States that both have in the same order: the longest common subsequence.
    pub matched: usize,
    /// Replayed states found in recorded order by looking ahead, the plainer published count.
    pub matched_by_look_ahead: usize,
    /// Replayed states that the recording does not have there.
    pub not_recorded: Causes,
    /// Recorded states that the replay does not have there.
    pub not_replayed: Causes,
    /// Distinct states of the completed flow.
    pub completed: usize,
    /// Of those, states that were recorded in the same order.
    pub completed_matched: usize,
}

impl Comparison {
    /// Differences without a cause: of the plain flow, and all of the completed one.
    #[must_use]
    pub const fn other(&self) -> usize {
        self.not_recorded.other
            + self.not_replayed.other
            + (self.completed - self.completed_matched)
            + (self.recorded - self.completed_matched)
    }
}

/// A state and the row after which it first stood.
struct Distinct {
    states: Vec<Top>,
    rows: Vec<usize>,
}

/// Tops with both sides, without those equal to the one before.
fn distinct(tops: &[Top]) -> Distinct {
    let mut distinct = Distinct { states: Vec::new(), rows: Vec::new() };
    for (row, top) in tops.iter().enumerate() {
        if top.is_two_sided() && distinct.states.last() != Some(top) {
            distinct.states.push(*top);
            distinct.rows.push(row);
        }
    }
    distinct
}

/// Compares; `None` if the two are so different that they cannot belong together.
///
/// # Panics
/// If the three sequences of tops differ in length.
#[must_use]
pub fn compare(tops: Tops<'_>, recorded: &[Top]) -> Option<Comparison> {
    assert_eq!(tops.plain.len(), tops.revealed.len(), "one top per row");
    assert_eq!(tops.plain.len(), tops.completed.len(), "one top per row");
    let plain = distinct(tops.plain);
    let completed = distinct(tops.completed);
    let recorded = distinct(recorded).states;

    let cut = align_with_beginning(&completed.states, &recorded)?;
    let recorded = &recorded[..cut.second_length];
    let alignment = align(&plain.states, recorded)?;
    let (not_recorded, not_replayed) = causes(&alignment, &plain, tops);
    Some(Comparison {
        replayed: plain.states.len(),
        recorded: recorded.len(),
        matched: alignment.pairs.len(),
        matched_by_look_ahead: found_in_order(&plain.states, recorded, LOOK_AHEAD),
        not_recorded,
        not_replayed,
        completed: completed.states.len(),
        completed_matched: cut.pairs.len(),
    })
}

/// Goes through the runs of differences between states that match.
fn causes(alignment: &Alignment, plain: &Distinct, tops: Tops<'_>) -> (Causes, Causes) {
    let (mut not_recorded, mut not_replayed) = (Causes::default(), Causes::default());
    let end = (plain.states.len(), alignment.second_length);
    let (mut next_plain, mut next_recorded) = (0, 0);
    for &(at_plain, at_recorded) in alignment.pairs.iter().chain([&end]) {
        let only_plain = at_plain - next_plain;
        let only_recorded = at_recorded - next_recorded;
        if only_plain + only_recorded > 0 {
            // From where the last matching state stood to where the next one does.
            let first = next_plain.checked_sub(1).map_or(0, |before| plain.rows[before]);
            let last = plain.rows.get(at_plain).map_or(tops.plain.len(), |row| row + 1);
            let differs = |one: &[Top], other: &[Top]| one[first..last] != other[first..last];
            let cause: fn(&mut Causes) -> &mut usize = if differs(tops.plain, tops.revealed) {
                |causes| &mut causes.unseen_orders
            } else if differs(tops.revealed, tops.completed) {
                |causes| &mut causes.removed_beyond_depth
            } else {
                |causes| &mut causes.other
            };
            *cause(&mut not_recorded) += only_plain;
            *cause(&mut not_replayed) += only_recorded;
        }
        (next_plain, next_recorded) = (at_plain + 1, at_recorded + 1);
    }
    (not_recorded, not_replayed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tops(asks: &[i64]) -> Vec<Top> {
        asks.iter()
            .map(|&ask_size| Top { ask_price: 103, ask_size, bid_price: 100, bid_size: 1 })
            .collect()
    }

    #[test]
    fn equal_states_match_and_what_is_recorded_later_counts_for_nothing() {
        let replayed = tops(&[0, 1, 1, 2, 3]);
        let same = Tops { plain: &replayed, revealed: &replayed, completed: &replayed };
        let comparison = compare(same, &tops(&[1, 2, 2, 3, 9, 9, 8])).unwrap();
        assert_eq!((comparison.replayed, comparison.recorded, comparison.matched), (3, 3, 3));
        assert_eq!(comparison.matched_by_look_ahead, 3);
        assert_eq!(comparison.other(), 0);
    }

    #[test]
    fn differences_go_to_their_cause() {
        let plain = tops(&[1, 2, 3, 4, 5, 6, 7]);
        let revealed = tops(&[1, 2, 33, 4, 5, 6, 7]);
        let completed = tops(&[1, 2, 33, 4, 5, 66, 7]);
        let all = Tops { plain: &plain, revealed: &revealed, completed: &completed };
        let comparison = compare(all, &completed).unwrap();
        let expected = Causes { unseen_orders: 1, removed_beyond_depth: 1, other: 0 };
        assert_eq!(comparison.not_recorded, expected);
        assert_eq!(comparison.not_replayed, expected);
        assert_eq!((comparison.matched, comparison.completed_matched), (5, 7));
        assert_eq!(comparison.other(), 0);
    }

    #[test]
    fn what_nothing_explains_is_other() {
        let plain = tops(&[1, 2, 3, 4, 5]);
        let same = Tops { plain: &plain, revealed: &plain, completed: &plain };
        let comparison = compare(same, &tops(&[1, 2, 77, 4, 5])).unwrap();
        assert_eq!(comparison.not_recorded.other, 1);
        assert_eq!(comparison.not_replayed.other, 1);
        assert_eq!(comparison.other(), 4, "the completed flow differs too");
    }

    #[test]
    fn a_replay_that_differs_beyond_its_explanation_is_caught_by_the_completed_flow() {
        // Within the span of an explained difference stands another that nothing explains.
        let plain = tops(&[1, 2, 3, 4]);
        let revealed = tops(&[1, 22, 3, 4]);
        let all = Tops { plain: &plain, revealed: &revealed, completed: &revealed };
        let comparison = compare(all, &tops(&[1, 22, 33, 4])).unwrap();
        assert_eq!(comparison.not_recorded.other, 0);
        assert!(comparison.other() > 0);
    }

    #[test]
    fn strangers_are_not_compared() {
        let (plain, recorded) = (tops(&(1..9000).collect::<Vec<_>>()), tops(&[10_000; 9000]));
        let same = Tops { plain: &plain, revealed: &plain, completed: &plain };
        assert_eq!(compare(same, &recorded), None);
    }
}
