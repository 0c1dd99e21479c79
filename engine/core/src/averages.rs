//! Average prices over the last minutes (facts §6): one bucket of sums per symbol and calendar minute,
//! in a ring, whatever the number of trades. Written by settlement, read by the filters.
//!
//! A bucket is left behind lazily: one of an older lap of the ring counts for nothing until a trade
//! begins it anew, so that looking at an average changes nothing.

use crate::hash::StateHash;
use alloc::collections::TryReserveError;
use alloc::vec::Vec;
use touchline_protocol::units::{Price, SymbolId};

/// The longest window, in minutes: buckets per symbol.
pub const AVERAGE_MINUTES_MAX: u32 = 60;

const NS_PER_MINUTE: u64 = 60_000_000_000;

/// The trades of one minute. Sums saturate, which takes more trades than a venue has numbers for.
#[derive(Clone, Copy, Default, Debug)]
struct Bucket {
    /// Minutes since the epoch; 0: never used.
    minute: u64,
    /// Sum of price × quantity, 10⁻¹⁶.
    notional: u128,
    /// Sum of the base quantities, 10⁻⁸.
    quantity: u128,
}

/// The buckets of all symbols.
#[derive(Debug)]
pub(crate) struct Averages {
    buckets: Vec<Bucket>,
}

const fn place(symbol: SymbolId, minute: u64) -> usize {
    symbol.0 as usize * AVERAGE_MINUTES_MAX as usize
        + (minute % AVERAGE_MINUTES_MAX as u64) as usize
}

impl Averages {
    pub(crate) const fn new() -> Self {
        Self { buckets: Vec::new() }
    }

    pub(crate) fn try_grow(&mut self, symbols: u32) -> Result<(), TryReserveError> {
        let wanted = symbols as usize * AVERAGE_MINUTES_MAX as usize;
        if wanted > self.buckets.len() {
            self.buckets.try_reserve_exact(wanted - self.buckets.len())?;
            self.buckets.resize(wanted, Bucket::default());
        }
        Ok(())
    }

    /// Adds a trade.
    pub(crate) fn add(&mut self, symbol: SymbolId, time_ns: u64, price: Price, quantity: i64) {
        let minute = time_ns / NS_PER_MINUTE;
        let bucket = &mut self.buckets[place(symbol, minute)];
        if bucket.minute != minute {
            *bucket = Bucket { minute, ..Bucket::default() };
        }
        let quantity = u128::from(quantity.cast_unsigned());
        let notional = u128::from(price.0.cast_unsigned()) * quantity;
        bucket.notional = bucket.notional.saturating_add(notional);
        bucket.quantity = bucket.quantity.saturating_add(quantity);
    }

    /// The average price over this minute and those before it, `minutes` in all, truncated to 10⁻⁸;
    /// `None` when there was no trade in them.
    pub(crate) fn average(&self, symbol: SymbolId, time_ns: u64, minutes: u32) -> Option<Price> {
        let now = time_ns / NS_PER_MINUTE;
        let (mut notional, mut quantity) = (0u128, 0u128);
        for back in 0..u64::from(minutes.min(AVERAGE_MINUTES_MAX)) {
            let minute = now.checked_sub(back)?;
            let bucket = &self.buckets[place(symbol, minute)];
            if bucket.minute == minute {
                notional = notional.saturating_add(bucket.notional);
                quantity = quantity.saturating_add(bucket.quantity);
            }
        }
        let average = notional.checked_div(quantity)?;
        Some(Price(i64::try_from(average).unwrap_or(i64::MAX)))
    }

    /// The minutes of a symbol of which there are sums, by minute modulo the ring's length: minute, sum
    /// of price × quantity, sum of the quantities.
    pub(crate) fn used(&self, symbol: SymbolId) -> impl Iterator<Item = (u64, u128, u128)> {
        let first = place(symbol, 0);
        self.buckets[first..first + AVERAGE_MINUTES_MAX as usize]
            .iter()
            .filter(|bucket| bucket.minute != 0)
            .map(|bucket| (bucket.minute, bucket.notional, bucket.quantity))
    }

    /// Sets the sums of a minute.
    pub(crate) fn put(
        &mut self,
        symbol: SymbolId,
        minute: u64,
        (notional, quantity): (u128, u128),
    ) {
        self.buckets[place(symbol, minute)] = Bucket { minute, notional, quantity };
    }

    /// The buckets of a symbol that were ever used.
    pub(crate) fn hash(&self, symbol: SymbolId, hash: &mut StateHash) {
        let first = place(symbol, 0);
        for bucket in &self.buckets[first..first + AVERAGE_MINUTES_MAX as usize] {
            if bucket.minute != 0 {
                hash.word(bucket.minute);
                for sum in [bucket.notional, bucket.quantity] {
                    hash.word(sum as u64);
                    hash.word((sum >> 64) as u64);
                }
            }
        }
        hash.word(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_moves_by_minutes_and_wraps() {
        let mut averages = Averages::new();
        averages.try_grow(2).unwrap();
        let (one, other) = (SymbolId(0), SymbolId(1));
        let at = |minute: u64| (minute + 1000) * NS_PER_MINUTE + 17;
        averages.add(one, at(0), Price(100), 3);
        averages.add(one, at(0), Price(200), 1);
        averages.add(one, at(2), Price(400), 4);
        averages.add(other, at(2), Price(7), 1);
        assert_eq!(averages.average(one, at(0), 5), Some(Price(125)));
        assert_eq!(averages.average(one, at(2), 2), Some(Price(400)));
        assert_eq!(averages.average(one, at(2), 3), Some(Price(262)));
        assert_eq!(averages.average(one, at(2), 0), None);
        assert_eq!(averages.average(other, at(3), 2), Some(Price(7)));
        assert_eq!(averages.average(one, at(59), 60), Some(Price(262)));
        assert_eq!(averages.average(one, at(60), 60), Some(Price(400)));
        averages.add(one, at(60), Price(9), 1);
        assert_eq!(averages.average(one, at(60), 1), Some(Price(9)));
        assert_eq!(averages.average(one, at(200), 60), None);
    }
}
