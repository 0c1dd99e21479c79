//! What is computed from candles and trades: candles over any interval, the statistics of the last 24
//! hours, the average price. Called by the handlers of the market data.

use std::ops::ControlFlow;

use touchline_protocol::units::SymbolId;

use super::candles::{Candle, Tier, joined};
use super::intervals::Interval;
use super::reader::{Direction, Reader};
use super::rows::{TradeRow, of_candles, of_symbol};
use super::{HistoryError, Market};

/// One symbol's part of the history.
pub(crate) struct SymbolHistory<'a> {
    pub(crate) reader: &'a Reader,
    pub(crate) symbol: SymbolId,
    pub(crate) market: Market,
}

/// The trades since a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// All of them; `None` if there was none.
    pub(crate) candle: Option<Candle>,
    /// Price of the last trade before them, 10⁻⁸; 0 if there was none.
    pub(crate) previous_close: i64,
}

impl SymbolHistory<'_> {
    /// The candles of a tier that began from `from_ms` up to before `end_ms`, in order.
    fn candles(
        &self,
        tier: Tier,
        from_ms: u64,
        end_ms: u64,
        mut visit: impl FnMut(u64, &Candle),
    ) -> Result<(), HistoryError> {
        if from_ms >= end_ms {
            return Ok(());
        }
        // The running one is the last, and may stand in the rows as it was some time ago.
        let running = self.market.running(tier);
        let ended = running.map_or(end_ms, |(open_ms, _)| open_ms.min(end_ms));
        if from_ms < ended {
            let group = of_candles(self.symbol, tier);
            let ids = from_ms..=ended - 1;
            self.reader.scan::<Candle>(group, ids, Direction::Forward, |open_ms, candle| {
                visit(open_ms, &candle);
                ControlFlow::Continue(())
            })?;
        }
        if let Some((open_ms, candle)) = running
            && (from_ms..end_ms).contains(&open_ms)
        {
            visit(open_ms, &candle);
        }
        Ok(())
    }

    fn sum(&self, tier: Tier, from_ms: u64, end_ms: u64) -> Result<Option<Candle>, HistoryError> {
        let mut sum = None;
        self.candles(tier, from_ms, end_ms, |_, candle| sum = joined(sum, Some(*candle)))?;
        Ok(sum)
    }

    /// The number of the first trade at or behind a moment; `None` if there is none yet.
    pub(crate) fn first_since(&self, from_ms: u64) -> Result<Option<u64>, HistoryError> {
        if self.market.last.is_none_or(|(_, last)| last.time_ms < from_ms) {
            return Ok(None);
        }
        let is_before = |trade: &TradeRow| trade.time_ms < from_ms;
        self.reader.first_not::<TradeRow>(of_symbol(self.symbol), is_before)
    }

    /// The number of the first trade of the aggregate trade `from` or of one behind it.
    pub(crate) fn first_aggregate(&self, from: u64) -> Result<Option<u64>, HistoryError> {
        let is_before = |trade: &TradeRow| trade.aggregate < from;
        self.reader.first_not::<TradeRow>(of_symbol(self.symbol), is_before)
    }

    /// All trades from a moment on: those up to the next full second one by one, and then seconds,
    /// minutes, quarters, hours and days.
    pub(crate) fn since(&self, from_ms: u64) -> Result<Window, HistoryError> {
        let Some(first) = self.first_since(from_ms)? else {
            let previous_close = self.market.last.map_or(0, |(_, last)| last.price);
            return Ok(Window { candle: None, previous_close });
        };
        let trades = of_symbol(self.symbol);
        let before = 0..=first.saturating_sub(1);
        let before = self.reader.edge::<TradeRow>(trades, before, Direction::Backward)?;
        let mut at = from_ms.next_multiple_of(Tier::Second.ms());
        let mut sum = None;
        if at > from_ms {
            let end = at;
            self.reader.scan(
                trades,
                first..=u64::MAX,
                Direction::Forward,
                |id, trade: TradeRow| {
                    if trade.time_ms >= end {
                        return ControlFlow::Break(());
                    }
                    sum = joined(sum, Some(Candle::of(id, &trade)));
                    ControlFlow::Continue(())
                },
            )?;
        }
        for tiers in Tier::ALL.windows(2) {
            let end = at.next_multiple_of(tiers[1].ms());
            sum = joined(sum, self.sum(tiers[0], at, end)?);
            at = end;
        }
        let candle = joined(sum, self.sum(Tier::Day, at, u64::MAX)?);
        Ok(Window { candle, previous_close: before.map_or(0, |(_, trade)| trade.price) })
    }

    /// The average price over the calendar minute of `now_ms` and those before it, `minutes` in all,
    /// truncated to 10⁻⁸: what the venue's filters go by. Without a trade in them it is the last price
    /// before (facts §6); `None` before the first trade.
    pub(crate) fn average(&self, now_ms: u64, minutes: u32) -> Result<Option<i64>, HistoryError> {
        let Some((_, last)) = self.market.last else { return Ok(None) };
        let minute = Tier::Minute;
        let back = u64::from(minutes).saturating_sub(1) * minute.ms();
        let from = minute.open(now_ms).saturating_sub(back);
        let sum = if minutes == 0 { None } else { self.sum(minute, from, u64::MAX)? };
        let average = sum.and_then(|sum| sum.notional.checked_div(sum.volume));
        Ok(Some(average.map_or(last.price, |average| i64::try_from(average).unwrap_or(i64::MAX))))
    }

    /// The candles of an interval that began from `from_ms` to `to_ms`, both of which begin one; one
    /// without a trade is made of the price before it (facts §7 klines). None before the first trade.
    pub(crate) fn filled(
        &self,
        interval: Interval,
        from_ms: u64,
        to_ms: u64,
    ) -> Result<Vec<(u64, Filled)>, HistoryError> {
        let (tier, end_ms) = (interval.tier(), interval.next(to_ms));
        let group = of_candles(self.symbol, tier);
        let before = match from_ms.checked_sub(1) {
            Some(last) => self.reader.edge::<Candle>(group, 0..=last, Direction::Backward)?,
            None => None,
        };
        let running_before = self.market.running(tier).filter(|(open_ms, _)| *open_ms < from_ms);
        let mut close = running_before.or(before).map(|(_, candle)| candle.close);
        let mut traded: Vec<(u64, Candle)> = Vec::new();
        self.candles(tier, from_ms, end_ms, |open_ms, candle| {
            let open_ms = interval.open(open_ms);
            match traded.last_mut() {
                Some((last, sum)) if *last == open_ms => sum.append(candle),
                _ => traded.push((open_ms, *candle)),
            }
        })?;
        let mut traded = traded.into_iter().peekable();
        let mut filled = Vec::new();
        let mut open_ms = from_ms;
        while open_ms <= to_ms {
            if let Some((_, candle)) = traded.next_if(|(at, _)| *at == open_ms) {
                close = Some(candle.close);
                filled.push((open_ms, Filled::Trades(candle)));
            } else if let Some(close) = close {
                filled.push((open_ms, Filled::Flat(close)));
            }
            open_ms = interval.next(open_ms);
        }
        Ok(filled)
    }

    /// When the first trade was, ms since the epoch; `None` before it.
    pub(crate) fn begin(&self) -> Result<Option<u64>, HistoryError> {
        let all = 0..=u64::MAX;
        let first =
            self.reader.edge::<TradeRow>(of_symbol(self.symbol), all, Direction::Forward)?;
        Ok(first.map(|(_, trade)| trade.time_ms))
    }

    /// When the last trade was, ms since the epoch; 0 before the first.
    pub(crate) fn last_traded_ms(&self) -> u64 {
        self.market.last.map_or(0, |(_, trade)| trade.time_ms)
    }
}

/// What happened in an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filled {
    /// Its trades.
    Trades(Candle),
    /// None: the price before it, 10⁻⁸.
    Flat(i64),
}
