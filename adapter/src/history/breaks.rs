//! When a symbol had no candles: while it was in BREAK, and while no engine ran. Noted by the fold; candles that
//! lie wholly in such a time are left out of GET /klines (facts §7 klines: none while the symbol is in BREAK or
//! the engine off). Both are called a break here: the one may begin where the other ends, and a candle that lies
//! in the two together is not there either.

use std::ops::ControlFlow;

use bytemuck::{Pod, Zeroable};

use super::HistoryError;
use super::intervals::Interval;
use super::reader::Direction;
use super::rows::of_symbol;
use super::statistics::SymbolHistory;

/// A break (table by symbol and when it began, ms since the epoch).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct BreakRow {
    /// When it ended, ms since the epoch; [`LASTS`] while it has not.
    pub(crate) until_ms: u64,
}

/// A time that has no end yet.
const LASTS: u64 = u64::MAX;

/// The last break with when it began, behind a status that was set at `time_ms`; `None` if it
/// is as it was. One that begins where the last one ended goes on with it.
pub(super) fn noted(
    last: Option<(u64, BreakRow)>,
    is_break: bool,
    time_ms: u64,
) -> Option<(u64, BreakRow)> {
    let next = match (last, is_break) {
        (Some((from_ms, row)), true) if row.until_ms >= time_ms => {
            (from_ms, BreakRow { until_ms: LASTS })
        }
        (_, true) => (time_ms, BreakRow { until_ms: LASTS }),
        (Some((from_ms, row)), false) if row.lasts() => {
            // It may have ended in the millisecond behind which it began.
            (from_ms, BreakRow { until_ms: time_ms.max(from_ms) })
        }
        (_, false) => return None,
    };
    (Some(next) != last).then_some(next)
}

/// The same behind a time in which no engine ran, from `from_ms` to `until_ms`. It is no part of a break that
/// lasts, and whatever it is said to be, it begins behind those that were noted: rows are in order and do not overlap.
pub(super) fn noted_off(
    last: Option<(u64, BreakRow)>,
    (from_ms, until_ms): (u64, u64),
) -> Option<(u64, BreakRow)> {
    let from_ms = last.map_or(from_ms, |(_, row)| from_ms.max(row.until_ms));
    if from_ms >= until_ms {
        return None;
    }
    noted(noted(last, true, from_ms), false, until_ms)
}

/// Candles in a row: when the first and the last of them begin.
pub(crate) type Span = (u64, u64);

impl BreakRow {
    /// True while it has no end.
    pub(super) const fn lasts(self) -> bool {
        self.until_ms == LASTS
    }

    /// The candles that lie wholly in a time that began at `from_ms`: when the first of them begins, and
    /// the first one behind them. `None` if there are none.
    fn covers(self, from_ms: u64, interval: Interval) -> Option<(u64, u64)> {
        let open = interval.open(from_ms);
        let first = if open < from_ms { interval.next(open) } else { open };
        let behind = if self.lasts() { LASTS } else { interval.open(self.until_ms) };
        (first < behind).then_some((first, behind))
    }
}

impl SymbolHistory<'_> {
    /// The first `limit` candles that there are from the one that begins at `from_ms` to the one that
    /// begins at `to_ms`.
    pub(crate) fn spans_from(
        &self,
        interval: Interval,
        (from_ms, to_ms): Span,
        limit: u64,
    ) -> Result<Vec<Span>, HistoryError> {
        let (mut spans, mut at, mut left) = (Vec::new(), from_ms, limit);
        let mut take = |at: &mut u64, left: &mut u64, end_ms: u64| {
            if *left == 0 || *at >= end_ms {
                return;
            }
            let first = *at;
            let mut last = first;
            *left -= 1;
            while *left > 0 && interval.next(last) < end_ms {
                last = interval.next(last);
                *left -= 1;
            }
            *at = interval.next(last);
            spans.push((first, last));
        };
        let end_ms = interval.next(to_ms);
        // Only the last break that began up to here can still last.
        let begun = self.last_break_until(from_ms)?;
        self.breaks(begun.unwrap_or(from_ms), to_ms, Direction::Forward, |break_ms, row| {
            if let Some((first, behind)) = row.covers(break_ms, interval) {
                take(&mut at, &mut left, first.min(end_ms));
                at = at.max(behind);
            }
            if left == 0 || at >= end_ms {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        take(&mut at, &mut left, end_ms);
        Ok(spans)
    }

    /// The last `limit` candles that there are from the one that begins at `from_ms` to the one that
    /// begins at `to_ms`.
    pub(crate) fn spans_up_to(
        &self,
        interval: Interval,
        (from_ms, to_ms): Span,
        limit: u64,
    ) -> Result<Vec<Span>, HistoryError> {
        // `behind` is the first candle that is not asked for any more.
        let (mut spans, mut behind, mut left) = (Vec::new(), interval.next(to_ms), limit);
        let mut take = |behind: &mut u64, left: &mut u64, from_ms: u64| {
            if *left == 0 || *behind <= from_ms {
                return;
            }
            let last = interval.back(*behind, 1);
            let mut first = last;
            *left -= 1;
            while *left > 0 && first > from_ms {
                first = interval.back(first, 1);
                *left -= 1;
            }
            *behind = first;
            spans.push((first, last));
        };
        self.breaks(0, to_ms, Direction::Backward, |break_ms, row| {
            if let Some((first, next)) = row.covers(break_ms, interval) {
                take(&mut behind, &mut left, next.max(from_ms));
                behind = behind.min(first);
            }
            let is_done = left == 0 || behind <= from_ms;
            if is_done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        take(&mut behind, &mut left, from_ms);
        spans.reverse();
        Ok(spans)
    }

    /// Shows the breaks that began from `from_ms` to `to_ms`.
    fn breaks(
        &self,
        from_ms: u64,
        to_ms: u64,
        direction: Direction,
        visit: impl FnMut(u64, BreakRow) -> ControlFlow<()>,
    ) -> Result<(), HistoryError> {
        if self.market.last_break.is_none() {
            return Ok(());
        }
        self.reader.scan(of_symbol(self.symbol), from_ms..=to_ms, direction, visit)
    }

    /// When the last break began that began up to a moment.
    fn last_break_until(&self, time_ms: u64) -> Result<Option<u64>, HistoryError> {
        let mut found = None;
        self.breaks(0, time_ms, Direction::Backward, |from_ms, _| {
            found = Some(from_ms);
            ControlFlow::Break(())
        })?;
        Ok(found)
    }
}

const _: () = assert!(size_of::<BreakRow>() == 8);

#[cfg(test)]
mod tests {
    use super::super::History;
    use super::super::intervals::INTERVALS;
    use super::*;
    use proptest::prelude::*;
    use touchline_protocol::units::SymbolId;

    const SYMBOL: SymbolId = SymbolId(1);
    const BEGIN_MS: u64 = 1_700_086_400_000;

    /// What makes a break or ends it.
    #[derive(Debug, Clone, Copy)]
    enum Told {
        /// To BREAK or to another one.
        Status(bool),
        /// A start, for so many thousandths of the time since what was told before no engine ran.
        Started(u64),
    }

    fn told() -> impl Strategy<Value = Told> {
        let thousandths = prop_oneof![Just(0), Just(1000), 0..=1000_u64];
        prop_oneof![any::<bool>().prop_map(Told::Status), thousandths.prop_map(Told::Started)]
    }

    /// How long no engine ran of a time between two things that were told.
    fn off_ms(after_ms: u64, thousandths: u64) -> u64 {
        after_ms * thousandths / 1000
    }

    /// Breaks as all that was told has them, each with how long after the one before it was, one by one, joined
    /// where they meet.
    fn model(steps: &[(u64, Told)]) -> Vec<(u64, u64)> {
        let mut breaks: Vec<(u64, u64)> = Vec::new();
        let (mut since, mut time_ms) = (None, BEGIN_MS);
        for (after_ms, told) in steps {
            time_ms += after_ms;
            match told {
                Told::Status(true) => since = since.or(Some(time_ms)),
                Told::Status(false) => breaks.extend(since.take().map(|from| (from, time_ms))),
                Told::Started(share) => {
                    let off_ms = off_ms(*after_ms, *share);
                    if since.is_none() && off_ms > 0 {
                        breaks.push((time_ms - off_ms, time_ms));
                    }
                }
            }
        }
        breaks.extend(since.map(|from| (from, u64::MAX)));
        for index in (1..breaks.len()).rev() {
            if breaks[index - 1].1 == breaks[index].0 {
                breaks[index - 1].1 = breaks[index].1;
                breaks.remove(index);
            }
        }
        breaks
    }

    fn opens(spans: &[Span], interval: Interval) -> Vec<u64> {
        let mut opens = Vec::new();
        for (first, last) in spans {
            let mut at = *first;
            while at <= *last {
                opens.push(at);
                at = interval.next(at);
            }
        }
        opens
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn candles_that_lie_wholly_in_a_break_are_left_out(
            steps in prop::collection::vec(
                (prop_oneof![0..3_u64, 0..200_000_u64, 0..20_000_000_u64], told()), 0..20),
            (name, interval) in prop::sample::select(INTERVALS.to_vec()),
            (first, count) in (0..40_u64, 0..200_u64),
            limit in 1..50_u64,
        ) {
            let mut history = History::default();
            let mut time_ms = BEGIN_MS;
            for (after_ms, told) in &steps {
                time_ms += after_ms;
                match told {
                    Told::Status(is_break) => history.status(SYMBOL, *is_break, time_ms),
                    Told::Started(share) => {
                        let from_ms = time_ms - off_ms(*after_ms, *share);
                        history.was_off(SYMBOL, from_ms, time_ms);
                    }
                }
            }
            let breaks = model(&steps);
            let rows = history.rows.breaks.iter().map(|(key, row)| (key.id, row.until_ms));
            prop_assert_eq!(rows.collect::<Vec<_>>(), &breaks[..]);
            let from = interval.back(interval.open(BEGIN_MS), first);
            let to = (0..count).fold(from, |at, _| interval.next(at));
            let exists = |open: u64| {
                let end = interval.next(open);
                !breaks.iter().any(|(from, until)| *from <= open && end <= *until)
            };
            let all = opens(&[(from, to)], interval);
            let all: Vec<_> = all.into_iter().filter(|open| exists(*open)).collect();
            let reader = history.reader().unwrap();
            let market = history.market(SYMBOL);
            let symbol = SymbolHistory { reader: &reader, symbol: SYMBOL, market };
            let oldest = symbol.spans_from(interval, (from, to), limit).unwrap();
            let expected = &all[..all.len().min(limit as usize)];
            prop_assert_eq!(opens(&oldest, interval), expected, "{}", name);
            let newest = symbol.spans_up_to(interval, (from, to), limit).unwrap();
            let expected = &all[all.len().saturating_sub(limit as usize)..];
            prop_assert_eq!(opens(&newest, interval), expected, "{}", name);
        }
    }
}
