//! Average prices over the last minutes (facts §6): one bucket of sums per symbol and calendar minute,
//! in a ring, whatever the number of trades. Written by settlement, read by the filters.
//!
//! A bucket is left behind lazily: one of an older lap of the ring counts for nothing until a trade
//! begins it anew, so that looking at an average changes nothing.

use crate::hash::StateHash;
use alloc::collections::TryReserveError;
use alloc::vec::Vec;
use core::ops::Range;
use touchline_protocol::units::{Price, SymbolId};

/// The longest window, in minutes: buckets per symbol.
pub const AVERAGE_MINUTES_MAX: u32 = 60;

/// What buckets are of.
pub(crate) const NS_PER_MINUTE: u64 = 60_000_000_000;

/// The trades of one minute. Sums saturate, which takes some 10¹¹ trades of the largest amount.
#[derive(Clone, Copy, Default, Debug)]
struct Bucket {
    /// Minutes since the epoch; 0: never used. (What is traded in the very first one, where no venue's clock is,
    /// has its average, but is neither hashed nor in a snapshot, whose format knows no minute 0.)
    minute: u64,
    /// Sum of price × quantity, 10⁻¹⁶.
    notional: u128,
    /// Sum of the base quantities, 10⁻⁸.
    quantity: u128,
}

/// An average that was asked for last, and what it takes to follow the trades of its minute. It follows
/// from the buckets, and is no state.
#[derive(Clone, Copy, Debug)]
struct Recent {
    /// When its minute begins, ns, and the minutes of its window.
    from_ns: u64,
    minutes: u32,
    /// How long its minute is, ns: 0 of none.
    for_ns: u64,
    /// Its minute, and the place of the bucket of that.
    minute: u64,
    place: usize,
    /// No trade has come since.
    is_fresh: bool,
    average: Option<Price>,
    /// Sums of the window without its last minute.
    notional: u128,
    quantity: u128,
}

impl Recent {
    /// Of no minute that there is.
    const NONE: Self = Self {
        from_ns: 0,
        minutes: u32::MAX,
        for_ns: 0,
        minute: 0,
        place: 0,
        is_fresh: false,
        average: None,
        notional: 0,
        quantity: 0,
    };

    /// Whether it is of the minute that a time lies in.
    #[inline(always)]
    const fn is_at(&self, time_ns: u64) -> bool {
        time_ns.wrapping_sub(self.from_ns) < self.for_ns
    }

    /// Takes the trades of its minute in.
    #[inline(always)]
    fn follow(&mut self, last: &Bucket) {
        // A window of no minutes has not even that.
        let is_in = self.minutes > 0 && last.minute == self.minute;
        let (notional, quantity) = if is_in { (last.notional, last.quantity) } else { (0, 0) };
        let notional = self.notional.saturating_add(notional);
        self.average = average_of(notional, self.quantity.saturating_add(quantity));
        self.is_fresh = true;
    }

    #[inline(always)]
    const fn is_of(&self, time_ns: u64, minutes: u32) -> bool {
        self.is_at(time_ns) && self.minutes == minutes
    }
}

/// The buckets of all symbols.
#[derive(Debug)]
pub(crate) struct Averages {
    buckets: Vec<Bucket>,
    /// By symbol.
    recent: Vec<Recent>,
}

const fn place(symbol: SymbolId, minute: u64) -> usize {
    symbol.0 as usize * AVERAGE_MINUTES_MAX as usize
        + (minute % AVERAGE_MINUTES_MAX as u64) as usize
}

fn average_of(notional: u128, quantity: u128) -> Option<Price> {
    let average = notional.checked_div(quantity)?;
    Some(Price(i64::try_from(average).unwrap_or(i64::MAX)))
}

impl Averages {
    pub(crate) const fn new() -> Self {
        Self { buckets: Vec::new(), recent: Vec::new() }
    }

    pub(crate) fn try_grow(&mut self, symbols: u32) -> Result<(), TryReserveError> {
        let wanted = symbols as usize * AVERAGE_MINUTES_MAX as usize;
        if wanted > self.buckets.len() {
            self.buckets.try_reserve_exact(wanted - self.buckets.len())?;
            self.recent.try_reserve_exact(symbols as usize - self.recent.len())?;
            self.buckets.resize(wanted, Bucket::default());
            self.recent.resize(symbols as usize, Recent::NONE);
        }
        Ok(())
    }

    /// Adds a trade.
    pub(crate) fn add(&mut self, symbol: SymbolId, time_ns: u64, price: Price, quantity: i64) {
        let recent = &mut self.recent[symbol.0 as usize];
        let (minute, place) = if recent.is_at(time_ns) {
            recent.is_fresh = false;
            (recent.minute, recent.place)
        } else {
            // Asked for by a command that was refused, at a time that has not come, or at one that is over.
            *recent = Recent::NONE;
            let minute = time_ns / NS_PER_MINUTE;
            (minute, place(symbol, minute))
        };
        let bucket = &mut self.buckets[place];
        if bucket.minute != minute {
            *bucket = Bucket { minute, ..Bucket::default() };
        }
        let quantity = u128::from(quantity.cast_unsigned());
        let notional = u128::from(price.0.cast_unsigned()) * quantity;
        bucket.notional = bucket.notional.saturating_add(notional);
        bucket.quantity = bucket.quantity.saturating_add(quantity);
    }

    /// Makes [`average`](Self::average) of these arguments a look-up until the next trade or minute.
    #[inline(always)]
    pub(crate) fn prepare(&mut self, symbol: SymbolId, time_ns: u64, minutes: u32) {
        let recent = &self.recent[symbol.0 as usize];
        if !(recent.is_fresh && recent.is_of(time_ns, minutes)) {
            self.renew(symbol, time_ns, minutes);
        }
    }

    /// As [`average`](Self::average), which it then is a look-up to ask for.
    #[inline(always)]
    pub(crate) fn prepared(
        &mut self,
        symbol: SymbolId,
        time_ns: u64,
        minutes: u32,
    ) -> Option<Price> {
        self.prepare(symbol, time_ns, minutes);
        self.recent[symbol.0 as usize].average
    }

    #[inline(never)]
    fn renew(&mut self, symbol: SymbolId, time_ns: u64, minutes: u32) {
        let recent = &mut self.recent[symbol.0 as usize];
        if !recent.is_of(time_ns, minutes) {
            self.begin(symbol, time_ns / NS_PER_MINUTE, minutes);
            return;
        }
        // What its last minute has is looked at where that is.
        recent.follow(&self.buckets[recent.place]);
    }

    /// Reckons an average out from the buckets of its minutes.
    #[inline(never)]
    fn begin(&mut self, symbol: SymbolId, minute: u64, minutes: u32) {
        // A window that reaches back before the first minute has no average.
        let recent = &mut self.recent[symbol.0 as usize];
        *recent = Recent::NONE;
        if let Some((notional, quantity)) = self.sums(symbol, minute, 1..minutes) {
            let (from_ns, place) = (minute * NS_PER_MINUTE, place(symbol, minute));
            let recent = &mut self.recent[symbol.0 as usize];
            *recent = Recent {
                from_ns,
                for_ns: NS_PER_MINUTE,
                minutes,
                minute,
                place,
                notional,
                quantity,
                ..Recent::NONE
            };
            recent.follow(&self.buckets[place]);
        }
    }

    /// The average price over this minute and those before it, `minutes` in all, truncated to 10⁻⁸;
    /// `None` when there was no trade in them.
    #[inline(always)]
    pub(crate) fn average(&self, symbol: SymbolId, time_ns: u64, minutes: u32) -> Option<Price> {
        let recent = &self.recent[symbol.0 as usize];
        if recent.is_fresh && recent.is_of(time_ns, minutes) {
            return recent.average;
        }
        let (notional, quantity) = self.sums(symbol, time_ns / NS_PER_MINUTE, 0..minutes)?;
        average_of(notional, quantity)
    }

    /// Sums over minutes that are so far back; `None` when one would lie before the first minute.
    fn sums(&self, symbol: SymbolId, now: u64, back: Range<u32>) -> Option<(u128, u128)> {
        let (mut notional, mut quantity) = (0u128, 0u128);
        for back in back.start..back.end.min(AVERAGE_MINUTES_MAX) {
            let minute = now.checked_sub(u64::from(back))?;
            let bucket = &self.buckets[place(symbol, minute)];
            if bucket.minute == minute {
                notional = notional.saturating_add(bucket.notional);
                quantity = quantity.saturating_add(bucket.quantity);
            }
        }
        Some((notional, quantity))
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
        self.recent[symbol.0 as usize] = Recent::NONE;
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
    use proptest::prelude::*;

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

    proptest! {
        /// Whatever was prepared before, and for which window.
        #[test]
        fn a_prepared_average_is_the_average(
            steps in prop::collection::vec((0u64..4, 0u8..8, 1i64..9, 0u32..63), 1..60),
            first in prop_oneof![0u64..3, 1_000u64..1_100],
        ) {
            let [mut prepared, mut plain] = [Averages::new(), Averages::new()];
            let symbol = SymbolId(0);
            for averages in [&mut prepared, &mut plain] {
                averages.try_grow(1).unwrap();
            }
            let mut minute = first;
            for (more, what, price, minutes) in steps {
                minute += more / 3;
                let time_ns = minute * NS_PER_MINUTE;
                let minutes = if minutes < 30 { 5 } else { minutes };
                if what & 3 == 0 {
                    prepared.prepare(symbol, time_ns + NS_PER_MINUTE, minutes);
                }
                if what & 4 == 0 {
                    prepared.add(symbol, time_ns, Price(price), price + 7);
                    plain.add(symbol, time_ns, Price(price), price + 7);
                }
                prepared.prepare(symbol, time_ns, minutes);
                let average = prepared.average(symbol, time_ns, minutes);
                prop_assert_eq!(average, plain.average(symbol, time_ns, minutes));
                let later = time_ns + NS_PER_MINUTE;
                prepared.prepare(symbol, later, minutes);
                let average = prepared.average(symbol, later, minutes);
                prop_assert_eq!(average, plain.average(symbol, later, minutes));
            }
        }
    }
}
