//! Units and identifiers, one newtype per unit and per counter. Used by every other module and crate.
//!
//! Money is decimal fixed point: an `i64` that counts 10⁻⁸ units. Notionals (price × quantity) are
//! `i128` at 10⁻¹⁶ and come back to 10⁻⁸ by one rounding, whose direction the caller names.

use bytemuck::{Pod, Zeroable};
use core::fmt;

/// How many 10⁻⁸ units make one whole unit.
pub const UNITS_PER_WHOLE: i64 = 100_000_000;

macro_rules! decimal_unit {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Pod, Zeroable)]
        #[repr(transparent)]
        pub struct $name(
            /// Count of 10⁻⁸ units.
            pub i64,
        );

        impl $name {
            /// Zero units.
            pub const ZERO: Self = Self(0);
            /// The largest value that the type holds.
            pub const MAX: Self = Self(i64::MAX);

            /// Sum, or `None` beyond the range of `i64`.
            #[must_use]
            pub const fn checked_add(self, other: Self) -> Option<Self> {
                match self.0.checked_add(other.0) {
                    Some(units) => Some(Self(units)),
                    None => None,
                }
            }

            /// Difference, or `None` beyond the range of `i64`.
            #[must_use]
            pub const fn checked_sub(self, other: Self) -> Option<Self> {
                match self.0.checked_sub(other.0) {
                    Some(units) => Some(Self(units)),
                    None => None,
                }
            }

            /// True above zero.
            #[must_use]
            pub const fn is_positive(self) -> bool {
                self.0 > 0
            }

            /// True for exactly zero.
            #[must_use]
            pub const fn is_zero(self) -> bool {
                self.0 == 0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                crate::decimal::DecimalText::new(self.0).as_str().fmt(formatter)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, concat!(stringify!($name), "({})"), self)
            }
        }
    };
}

decimal_unit!(
    /// Quote units per whole base unit, in 10⁻⁸.
    Price
);
decimal_unit!(
    /// Base quantity, in 10⁻⁸ of the base asset.
    Qty
);
decimal_unit!(
    /// An amount of any asset, in 10⁻⁸ of it.
    Amount
);

/// Price × quantity in 10⁻¹⁶ of the quote asset; cannot overflow.
#[must_use]
pub const fn notional(price: Price, quantity: Qty) -> i128 {
    price.0 as i128 * quantity.0 as i128
}

impl Amount {
    /// A notional (10⁻¹⁶) truncated to 10⁻⁸. `None` when it does not fit or is negative.
    #[must_use]
    pub const fn from_notional_truncated(notional: i128) -> Option<Self> {
        if notional < 0 {
            return None;
        }
        Self::from_units_i128(notional / UNITS_PER_WHOLE as i128)
    }

    /// A notional (10⁻¹⁶) rounded up to 10⁻⁸. `None` when it does not fit or is negative.
    #[must_use]
    pub const fn from_notional_rounded_up(notional: i128) -> Option<Self> {
        match notional.checked_add(UNITS_PER_WHOLE as i128 - 1) {
            _ if notional < 0 => None,
            Some(raised) => Self::from_units_i128(raised / UNITS_PER_WHOLE as i128),
            None => None,
        }
    }

    /// Of no negative number.
    const fn from_units_i128(units: i128) -> Option<Self> {
        if units > i64::MAX as i128 { None } else { Some(Self(units as i64)) }
    }
}

macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Pod, Zeroable,
        )]
        #[repr(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(formatter)
            }
        }
    };
}

identifier!(
    /// Order number, counting up from 1 per symbol: orders of two symbols have the same ones; 0 means none.
    OrderId(u64)
);
identifier!(
    /// Trade number, counting up from 1 per symbol, as order numbers do.
    TradeId(u64)
);
identifier!(
    /// Number of the aggregate trade (same aggressor, price and time, from rules 3 on to the millisecond),
    /// counting up from 1 per symbol.
    AggregateTradeId(u64)
);
identifier!(
    /// Order-list number, counting up from 0 per venue; -1 means none.
    OrderListId(i64)
);
identifier!(
    /// Grows by one with every order that changes a symbol's book, and with every part of a sweep that does.
    BookUpdateId(u64)
);
identifier!(
    /// Index of a symbol, 0-based in order of definition.
    SymbolId(u32)
);
identifier!(
    /// Index of an asset, 0-based in order of definition.
    AssetId(u32)
);
identifier!(
    /// Index of an account; 0 is the venue's fee account.
    AccountId(u32)
);
identifier!(
    /// Number of an API key, counting up from 1; 0 means none.
    KeyId(u64)
);
identifier!(
    /// Number of a durable session; 0 is the engine itself.
    SessionId(u32)
);
identifier!(
    /// Raised by one with every logon of a session: older connections are fenced by it.
    Epoch(u32)
);
identifier!(
    /// A session's own command number: strictly increasing, gaps allowed, 0 before the first.
    Sequence(u64)
);
identifier!(
    /// Byte position in the log since its beginning.
    Position(u64)
);
identifier!(
    /// Raised by one with every start of the engine on a log.
    Incarnation(u32)
);

identifier!(
    /// Number of a message of the public feed, counting up from 1 in each incarnation; 0 before the first.
    FeedSequence(u64)
);

impl OrderListId {
    /// The order belongs to no list.
    pub const NONE: Self = Self(-1);
}

impl AccountId {
    /// Receives every commission.
    pub const FEES: Self = Self(0);
    /// Its name, which no other account can have.
    pub const FEES_NAME: &'static str = "fees";
    /// Somebody else's, who is not told; no account has that number.
    pub const UNDISCLOSED: Self = Self(u32::MAX);
}

impl SessionId {
    /// The engine's own commands (genesis, starts, pending work).
    pub const ENGINE: Self = Self(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notionals_round_the_way_their_name_says() {
        let exact = notional(Price(3 * UNITS_PER_WHOLE), Qty(2 * UNITS_PER_WHOLE));
        assert_eq!(Amount::from_notional_truncated(exact), Some(Amount(6 * UNITS_PER_WHOLE)));
        assert_eq!(Amount::from_notional_rounded_up(exact), Some(Amount(6 * UNITS_PER_WHOLE)));
        let finer = notional(Price(1), Qty(1));
        assert_eq!(Amount::from_notional_truncated(finer), Some(Amount(0)));
        assert_eq!(Amount::from_notional_rounded_up(finer), Some(Amount(1)));
    }

    #[test]
    fn notionals_that_do_not_fit_are_refused() {
        let widest = notional(Price::MAX, Qty::MAX);
        assert_eq!(Amount::from_notional_truncated(widest), None);
        assert_eq!(Amount::from_notional_rounded_up(widest), None);
        for negative in [-1, 1 - UNITS_PER_WHOLE as i128, -UNITS_PER_WHOLE as i128, i128::MIN] {
            assert_eq!(Amount::from_notional_truncated(negative), None, "{negative}");
            assert_eq!(Amount::from_notional_rounded_up(negative), None, "{negative}");
        }
    }
}
