//! How far two sequences of states agree: the shortest way to turn one into the other by leaving
//! states out and putting states in (Myers' O(ND) algorithm). Called by [`super::explanation`].

/// Most differences that are looked for: with more, the two have nothing to do with each other, and
/// the memory for it would grow with the square.
pub const DIFFERENCES_MAX: usize = 1024;

/// Which states of both sequences are the same, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Alignment {
    /// Indices into the first and the second sequence, both rising: a longest common subsequence.
    pub pairs: Vec<(usize, usize)>,
    /// How much of the second sequence takes part: the whole for [`align`], a beginning of it for
    /// [`align_with_beginning`].
    pub second_length: usize,
}

/// Aligns the whole of `first` with the whole of `second`; `None` beyond [`DIFFERENCES_MAX`].
#[must_use]
pub fn align<T: PartialEq>(first: &[T], second: &[T]) -> Option<Alignment> {
    shortest_edit(first, second, |x, y| x >= first.len() && y >= second.len())
}

/// Aligns the whole of `first` with that beginning of `second` which needs the fewest differences;
/// `None` beyond [`DIFFERENCES_MAX`]. What follows in `second` counts for nothing.
#[must_use]
pub fn align_with_beginning<T: PartialEq>(first: &[T], second: &[T]) -> Option<Alignment> {
    shortest_edit(first, second, |x, _| x >= first.len())
}

/// Walks all furthest-reaching paths with one difference more each round. `reached[k]` is the index
/// in `first` on the diagonal k, where the index in `second` is that less k.
fn shortest_edit<T: PartialEq>(
    first: &[T],
    second: &[T],
    is_done: impl Fn(usize, usize) -> bool,
) -> Option<Alignment> {
    let mut rounds: Vec<Vec<usize>> = Vec::new();
    for differences in 0..=DIFFERENCES_MAX.min(first.len() + second.len()) {
        let mut reached = Vec::with_capacity(differences + 1);
        for step in 0..=differences {
            let Some(start) = start(rounds.last(), differences, step, first.len(), second.len())
            else {
                reached.push(usize::MAX);
                continue;
            };
            let (mut x, mut y) = start;
            while x < first.len() && y < second.len() && first[x] == second[y] {
                (x, y) = (x + 1, y + 1);
            }
            reached.push(x);
            if is_done(x, y) {
                return Some(trace(&rounds, (x, y), step, (first.len(), second.len())));
            }
        }
        rounds.push(reached);
    }
    None
}

/// Where the path of `step` (its diagonal is 2·step − differences) begins, one difference behind the
/// better of its two neighbours in the round before; `None` outside of both sequences.
fn start(
    before: Option<&Vec<usize>>,
    differences: usize,
    step: usize,
    first_length: usize,
    second_length: usize,
) -> Option<(usize, usize)> {
    let Some(before) = before else { return Some((0, 0)) };
    // The index in `second` belonging to `x` on the diagonal of `step`.
    let second_index = |x: usize| (x + differences).checked_sub(2 * step);
    let left_out = step.checked_sub(1).and_then(|lower| reached(before, lower)).map(|x| x + 1);
    let put_in = reached(before, step);
    let within =
        |x: &usize| *x <= first_length && second_index(*x).is_some_and(|y| y <= second_length);
    let best = left_out.filter(within).max(put_in.filter(within))?;
    Some((best, second_index(best)?))
}

fn reached(round: &[usize], step: usize) -> Option<usize> {
    round.get(step).copied().filter(|&x| x != usize::MAX)
}

/// Walks back from the end and collects what was equal on the way.
fn trace(
    rounds: &[Vec<usize>],
    end: (usize, usize),
    mut step: usize,
    lengths: (usize, usize),
) -> Alignment {
    let mut pairs = Vec::new();
    let (mut x, mut y) = end;
    for differences in (0..=rounds.len()).rev() {
        let before = differences.checked_sub(1).map(|index| &rounds[index]);
        let (from_x, from_y) = start(before, differences, step, lengths.0, lengths.1)
            .expect("the path came from somewhere");
        while x > from_x {
            (x, y) = (x - 1, y - 1);
            pairs.push((x, y));
        }
        debug_assert_eq!(y, from_y);
        let Some(before) = before else { break };
        // The same choice as on the way there: a state of `first` left out, or one of `second` put in.
        let left_out = step.checked_sub(1).and_then(|lower| reached(before, lower));
        if left_out.is_some_and(|reached| reached + 1 == from_x) {
            (x, step) = (from_x - 1, step - 1);
        } else {
            y = from_y - 1;
        }
    }
    pairs.reverse();
    Alignment { pairs, second_length: end.1 }
}

/// Counts the states of `first` that are found in `second` in order when each is looked for within
/// `look_ahead` states behind the last one found. Plainer than [`align`] and never more than it.
#[must_use]
pub fn found_in_order<T: PartialEq>(first: &[T], second: &[T], look_ahead: usize) -> usize {
    let (mut found, mut next) = (0, 0);
    for state in first {
        let window = &second[next..second.len().min(next + look_ahead)];
        if let Some(offset) = window.iter().position(|candidate| candidate == state) {
            found += 1;
            next += offset + 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Length of the longest common subsequence by the quadratic table.
    fn longest_common(first: &[u8], second: &[u8]) -> usize {
        let mut table = vec![vec![0; second.len() + 1]; first.len() + 1];
        for (x, left) in first.iter().enumerate() {
            for (y, right) in second.iter().enumerate() {
                table[x + 1][y + 1] = if left == right {
                    table[x][y] + 1
                } else {
                    table[x][y + 1].max(table[x + 1][y])
                };
            }
        }
        table[first.len()][second.len()]
    }

    fn check_pairs(pairs: &[(usize, usize)], first: &[u8], second: &[u8]) {
        assert!(pairs.iter().all(|&(x, y)| first[x] == second[y]));
        assert!(pairs.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1));
    }

    #[test]
    fn the_rest_of_the_second_counts_for_nothing() {
        let alignment = align_with_beginning(b"abcd", b"abxcdzzzzabcd").unwrap();
        assert_eq!((alignment.pairs.len(), alignment.second_length), (4, 5));
        assert_eq!(align(b"", b"").unwrap().pairs, []);
        assert_eq!(align_with_beginning(b"", b"abc").unwrap().second_length, 0);
        assert_eq!(align_with_beginning(b"abc", b"").unwrap().pairs, []);
    }

    #[test]
    fn sequences_without_anything_in_common_are_given_up() {
        let (first, second) = (vec![0u8; DIFFERENCES_MAX], vec![1u8; DIFFERENCES_MAX]);
        assert_eq!(align(&first, &second), None);
    }

    #[test]
    fn looking_ahead_is_bounded() {
        assert_eq!(found_in_order(b"abc", b"axxbc", 3), 3);
        assert_eq!(found_in_order(b"abc", b"axxbc", 2), 1, "b is out of sight, c behind it too");
    }

    proptest! {
        #[test]
        fn nothing_longer_is_common(
            first in prop::collection::vec(0..4u8, 0..30),
            second in prop::collection::vec(0..4u8, 0..30),
        ) {
            let whole = align(&first, &second).unwrap();
            check_pairs(&whole.pairs, &first, &second);
            prop_assert_eq!(whole.pairs.len(), longest_common(&first, &second));
            prop_assert_eq!(whole.second_length, second.len());
            prop_assert!(found_in_order(&first, &second, 8) <= whole.pairs.len());

            let beginning = align_with_beginning(&first, &second).unwrap();
            let used = &second[..beginning.second_length];
            check_pairs(&beginning.pairs, &first, used);
            let differences = |length: usize, common: usize| first.len() + length - 2 * common;
            let least = (0..=second.len())
                .map(|length| differences(length, longest_common(&first, &second[..length])))
                .min();
            prop_assert_eq!(Some(differences(used.len(), beginning.pairs.len())), least);
        }
    }
}
