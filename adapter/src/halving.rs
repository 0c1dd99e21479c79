//! Finds where something begins among numbers that have gaps, by halving them. Used by the history and by the views,
//! whose entries count up with time.

use std::convert::Infallible;
use std::ops::RangeInclusive;

/// The number of the first entry that is not before what is looked for; `None` if all are. `within` gives the entries of
/// a range, in order, each as its number and whether it is before.
pub(crate) fn first_of<I: DoubleEndedIterator<Item = (u64, bool)>>(
    within: impl Fn(RangeInclusive<u64>) -> I,
) -> Option<u64> {
    let mut all = within(0..=u64::MAX);
    let (last, false) = all.next_back()? else { return None };
    let low = all.next().map_or(last, |(id, _)| id);
    first_not(low, last, |ids| Ok::<_, Infallible>(within(ids).next())).ok()
}

/// The first number from `low` on whose entry is not before what is looked for; the entry at `last` is not. `look` gives
/// the first entry of a range with its number, and whether it is before. As many looks as the numbers have bits.
pub(crate) fn first_not<E>(
    mut low: u64,
    last: u64,
    look: impl Fn(RangeInclusive<u64>) -> Result<Option<(u64, bool)>, E>,
) -> Result<u64, E> {
    // What is below `low` is before; what is from `high` on is not, and begins with `found`.
    let (mut high, mut found) = (last, last);
    while low < high {
        let middle = low + (high - low) / 2;
        match look(middle..=high - 1)? {
            Some((id, true)) => low = id + 1,
            Some((id, false)) => (high, found) = (middle, id),
            None => high = middle,
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn the_first_is_found_among_gaps_in_as_many_looks_as_there_are_bits() {
        let entries: Vec<u64> = (0..1000_u64).map(|index| 7 + index * index).collect();
        for (index, first) in entries.iter().enumerate() {
            let looks = Cell::new(0);
            let look = |ids: RangeInclusive<u64>| {
                looks.set(looks.get() + 1);
                let found = entries.iter().find(|id| ids.contains(id));
                Ok::<_, Infallible>(found.map(|id| (*id, id < first)))
            };
            assert_eq!(first_not(entries[0], entries[999], look), Ok(entries[index]));
            assert!(looks.get() <= 20, "{} looks for 2^20 numbers", looks.get());
        }
    }
}
