//! Messages field by field, with names: what tools show of them. Not used by engine or adapter.

use super::MessageHeader;
use super::command::{CommandHeader, Limits, SymbolFilters};
use super::event::Envelope;
use crate::text::Text;
use crate::units;

/// The value of one field.
#[derive(Clone, Copy)]
pub enum Value<'message> {
    /// A number, identifier or enumeration.
    Number(u64),
    /// An identifier that may be below zero.
    Signed(i64),
    /// A price, quantity, amount or rate in 10⁻⁸.
    Decimal(i64),
    /// A text.
    Text(&'message str),
    /// Bytes without further meaning.
    Bytes(&'message [u8]),
    /// What a message carries for others, often a text.
    Content(&'message [u8]),
    /// Fields of its own.
    Group(&'message dyn Fields),
}

/// Something with named fields.
pub trait Fields {
    /// Shows each field in the order of the wire; the message header and reserved bytes are left out.
    fn fields<'message>(&'message self, visit: &mut dyn FnMut(&'static str, Value<'message>));
}

/// Something that is the value of a field.
pub trait Field {
    /// The value.
    fn value(&self) -> Value<'_>;
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl Field for $type {
            fn value(&self) -> Value<'_> {
                Value::Number(u64::from(*self))
            }
        }
    )*};
}
numbers!(u8, u16, u32, u64);

/// An `i64` is a decimal throughout the protocol, unless it is an identifier.
impl Field for i64 {
    fn value(&self) -> Value<'_> {
        Value::Decimal(*self)
    }
}

macro_rules! identifiers {
    ($($name:ident),*) => {$(
        impl Field for units::$name {
            fn value(&self) -> Value<'_> {
                Value::Number(u64::from(self.0))
            }
        }
    )*};
}
identifiers!(
    OrderId,
    TradeId,
    AggregateTradeId,
    BookUpdateId,
    SymbolId,
    AssetId,
    AccountId,
    KeyId,
    SessionId,
    Epoch,
    Sequence,
    Position,
    Incarnation,
    FeedSequence
);

impl Field for units::OrderListId {
    fn value(&self) -> Value<'_> {
        Value::Signed(self.0)
    }
}

impl<const N: usize, const P: usize> Field for Text<N, P> {
    fn value(&self) -> Value<'_> {
        Value::Text(self.as_str())
    }
}

impl<const N: usize> Field for [u8; N] {
    fn value(&self) -> Value<'_> {
        Value::Bytes(self)
    }
}

impl Field for MessageHeader {
    fn value(&self) -> Value<'_> {
        Value::Number(self.template_id.into())
    }
}

/// The fields of a group that is part of a message.
macro_rules! groups {
    ($($name:ident { $($field:ident),* $(,)? })*) => {$(
        impl Fields for $name {
            fn fields<'message>(
                &'message self,
                visit: &mut dyn FnMut(&'static str, Value<'message>),
            ) {
                $( visit(stringify!($field), self.$field.value()); )*
            }
        }

        impl Field for $name {
            fn value(&self) -> Value<'_> {
                Value::Group(self)
            }
        }
    )*};
}
groups! {
    CommandHeader { correlation, sequence, not_after_ns, key_id, session, epoch }
    Envelope { correlation, sequence, position, time_ns, session, flags }
    Limits {
        assets, symbols, accounts, keys, sessions, open_orders, price_levels, pending_work, max_steps,
        orders_per_interval_0, orders_per_interval_1, interval_0_seconds, interval_1_seconds,
    }
    SymbolFilters {
        price_min, price_max, tick_size, lot_min, lot_max, lot_step, market_lot_min, market_lot_max,
        market_lot_step, percent_price_up, percent_price_down, min_notional, max_position,
        percent_price_minutes, min_notional_minutes, iceberg_parts, max_orders, max_algo_orders,
        max_iceberg_orders, min_notional_applies_to_market,
    }
}
