//! Candles: the trades of one second, minute, quarter of an hour, hour or day of a symbol, added up.
//! Every other interval, the rolling 24 hours and the average price are sums of them.

use bytemuck::{Pod, Zeroable};

use super::rows::TradeRow;

/// The lengths of time that are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Tier {
    Second = 0,
    Minute = 1,
    Quarter = 2,
    Hour = 3,
    Day = 4,
}

impl Tier {
    /// From the shortest to the longest; each is a whole number of the one before.
    pub(crate) const ALL: [Self; 5] =
        [Self::Second, Self::Minute, Self::Quarter, Self::Hour, Self::Day];

    /// Its length. All begin at multiples of it since the epoch (facts §7 klines: UTC).
    pub(crate) const fn ms(self) -> u64 {
        match self {
            Self::Second => 1_000,
            Self::Minute => 60_000,
            Self::Quarter => 900_000,
            Self::Hour => 3_600_000,
            Self::Day => 86_400_000,
        }
    }

    /// When the candle began that a moment belongs to.
    pub(crate) const fn open(self, time_ms: u64) -> u64 {
        time_ms - time_ms % self.ms()
    }
}

/// Trades added up; prices and quantities are 10⁻⁸, sums saturate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Candle {
    /// Base quantity.
    pub(crate) volume: i128,
    /// Quote amount: what moved, each trade truncated to 10⁻⁸.
    pub(crate) quote_volume: i128,
    /// Base that aggressors bought.
    pub(crate) taker_volume: i128,
    /// Quote that aggressors bought for.
    pub(crate) taker_quote_volume: i128,
    /// Sum of price × quantity, 10⁻¹⁶: what the venue's average price is made of.
    pub(crate) notional: i128,
    pub(crate) open: i64,
    pub(crate) high: i64,
    pub(crate) low: i64,
    pub(crate) close: i64,
    /// Number of the first trade.
    pub(crate) first_trade: u64,
    /// Number of the last trade; all between them are in it.
    pub(crate) last_trade: u64,
}

impl Candle {
    /// One trade.
    pub(crate) fn of(id: u64, trade: &TradeRow) -> Self {
        let by_buyer = |amount: i64| if trade.buyer_is_maker == 0 { i128::from(amount) } else { 0 };
        Self {
            volume: i128::from(trade.quantity),
            quote_volume: i128::from(trade.quote),
            taker_volume: by_buyer(trade.quantity),
            taker_quote_volume: by_buyer(trade.quote),
            notional: i128::from(trade.price) * i128::from(trade.quantity),
            open: trade.price,
            high: trade.price,
            low: trade.price,
            close: trade.price,
            first_trade: id,
            last_trade: id,
        }
    }

    /// Adds what comes right behind it.
    pub(crate) fn append(&mut self, next: &Self) {
        self.volume = self.volume.saturating_add(next.volume);
        self.quote_volume = self.quote_volume.saturating_add(next.quote_volume);
        self.taker_volume = self.taker_volume.saturating_add(next.taker_volume);
        self.taker_quote_volume = self.taker_quote_volume.saturating_add(next.taker_quote_volume);
        self.notional = self.notional.saturating_add(next.notional);
        self.high = self.high.max(next.high);
        self.low = self.low.min(next.low);
        self.close = next.close;
        self.last_trade = next.last_trade;
    }

    /// Number of trades.
    pub(crate) const fn count(&self) -> u64 {
        // Two that lie behind one another in the store need not fit if it is damaged.
        self.last_trade.saturating_sub(self.first_trade).saturating_add(1)
    }

    /// Reads a row; `None` for one that no trades add up to.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let row: Self = bytemuck::try_pod_read_unaligned(bytes).ok()?;
        let sums = [row.volume, row.quote_volume, row.taker_volume, row.taker_quote_volume];
        let is_between = |price: i64| row.low <= price && price <= row.high;
        let is_sound = row.first_trade <= row.last_trade
            && row.low >= 0
            && [row.open, row.close].into_iter().all(is_between)
            && sums.into_iter().chain([row.notional]).all(|sum| sum >= 0);
        is_sound.then_some(row)
    }
}

/// Two candles in a row, of which either may be none.
pub(crate) fn joined(first: Option<Candle>, next: Option<Candle>) -> Option<Candle> {
    match (first, next) {
        (Some(mut first), Some(next)) => {
            first.append(&next);
            Some(first)
        }
        (first, next) => first.or(next),
    }
}

const _: () = assert!(size_of::<Candle>() == 128);

/// The candle of a tier that still grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Running {
    /// When it began, ms since the epoch.
    pub(crate) open_ms: u64,
    pub(crate) candle: Candle,
    /// It has changed since it was last given to the rows.
    pub(crate) is_new: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::rows::Row;

    #[test]
    fn a_candle_that_no_trades_add_up_to_is_no_row() {
        let trade = TradeRow { price: 5, quantity: 3, quote: 2, ..TradeRow::default() };
        let mut sound = Candle::of(7, &trade);
        sound.append(&Candle::of(8, &TradeRow { price: 4, ..trade }));
        let read = |candle: &Candle| <Candle as Row>::read(bytemuck::bytes_of(candle));
        assert_eq!(read(&sound).map(|candle| candle.count()), Some(2));
        assert_eq!(<Candle as Row>::read(&bytemuck::bytes_of(&sound)[1..]), None);
        for wrong in [
            Candle { first_trade: 9, ..sound },
            Candle { low: -1, ..sound },
            Candle { low: 6, ..sound },
            Candle { open: 6, ..sound },
            Candle { close: 3, ..sound },
            Candle { volume: -1, ..sound },
            Candle { taker_quote_volume: -1, ..sound },
            Candle { notional: -1, ..sound },
        ] {
            assert_eq!(read(&wrong), None, "{wrong:?}");
        }
        // Of two that lie in a wrong order.
        let [first, next] = [Candle::of(9, &trade), Candle::of(7, &trade)];
        assert_eq!(joined(Some(first), Some(next)).map(|candle| candle.count()), Some(1));
        let all = Candle { first_trade: 0, last_trade: u64::MAX, ..sound };
        assert_eq!(all.count(), u64::MAX);
    }
}
