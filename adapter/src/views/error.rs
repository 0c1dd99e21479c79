//! Why the log's data cannot be folded. Made by the fold, printed by the tailer, which stops then:
//! a view that guessed on would show balances that no command explains.

use thiserror::Error;
use touchline_protocol::message::decode::DecodeError;
use touchline_protocol::units::{AccountId, AssetId, OrderId, OrderListId, SymbolId};

/// A transaction that contradicts what the log said before.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FoldError {
    /// Command or event bytes that are no message of this build's protocol.
    #[error("{0}")]
    Decode(#[from] DecodeError),
    /// An event that this command cannot cause, or that never belongs into a log.
    #[error("event {event} behind command {command}")]
    Unexpected {
        /// The event's name.
        event: &'static str,
        /// The command's name.
        command: &'static str,
    },
    /// An enumeration field with a number that names nothing.
    #[error("{field} has the unknown number {value}")]
    Number {
        /// The field.
        field: &'static str,
        /// What stands there.
        value: u8,
    },
    /// The log follows a behaviour version that this build does not know.
    #[error(
        "the venue follows rules version {found}, this build knows up to {known}: use a newer build"
    )]
    Rules {
        /// In the log.
        found: u32,
        /// Highest that this build folds.
        known: u32,
    },
    /// A definition did not get the next number.
    #[error("{what} got number {found}, expected {expected}")]
    NotNext {
        /// What was defined.
        what: &'static str,
        /// The number that it got.
        found: u64,
        /// The next free number.
        expected: u64,
    },
    /// A name that is taken.
    #[error("{what} {name} is defined twice")]
    Duplicate {
        /// What was defined.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// An asset that was never defined.
    #[error("unknown asset {0}")]
    UnknownAsset(AssetId),
    /// A symbol that was never defined.
    #[error("unknown symbol {0}")]
    UnknownSymbol(SymbolId),
    /// An account that was never created.
    #[error("unknown account {0}")]
    UnknownAccount(AccountId),
    /// A key that was never created.
    #[error("unknown key {0}")]
    UnknownKey(u64),
    /// An order that is not open.
    #[error("order {order} of symbol {symbol} is not open")]
    NotOpen {
        /// The symbol.
        symbol: SymbolId,
        /// The order.
        order: OrderId,
    },
    /// An order number that was used before.
    #[error("order {order} of symbol {symbol} was accepted twice")]
    AcceptedTwice {
        /// The symbol.
        symbol: SymbolId,
        /// The order.
        order: OrderId,
    },
    /// A list that is not open.
    #[error("order list {0} is not open")]
    ListNotOpen(OrderListId),
    /// An event about an order that does not stand where the event says that it leaves.
    #[error("{event} about order {order} of symbol {symbol}, which {found}")]
    Standing {
        /// The event's name.
        event: &'static str,
        /// The symbol.
        symbol: SymbolId,
        /// The order.
        order: OrderId,
        /// Where it stands.
        found: &'static str,
    },
    /// A saved list that cannot be open.
    #[error("open order list {list}, as it was saved, {found}")]
    SavedList {
        /// The list.
        list: OrderListId,
        /// What is wrong with it.
        found: &'static str,
    },
    /// Two statements of the log about one value that differ.
    #[error("{what}: the log says {found}, its earlier events give {expected}")]
    Mismatch {
        /// The value.
        what: &'static str,
        /// In the event.
        found: i128,
        /// From the events before.
        expected: i128,
    },
    /// A record that cannot be what it is told to have become.
    #[error("a record {0}")]
    Record(&'static str),
    /// A price, quantity or amount below zero.
    #[error("negative price, quantity or amount {0} (10⁻⁸)")]
    Negative(i64),
    /// A balance left the range of its type.
    #[error("{which} balance of account {account} in asset {asset}: {before} changed by {delta}")]
    Balance {
        /// "free" or "locked".
        which: &'static str,
        /// The account.
        account: AccountId,
        /// The asset.
        asset: AssetId,
        /// Before the event, 10⁻⁸.
        before: i64,
        /// The event's change, 10⁻⁸.
        delta: i64,
    },
    /// A price level would hold less than nothing.
    #[error("level {price} (10⁻⁸) of symbol {symbol} holds {before}, {taken} taken")]
    Level {
        /// The symbol.
        symbol: SymbolId,
        /// The level's price, 10⁻⁸.
        price: i64,
        /// Quantity before, 10⁻⁸.
        before: i128,
        /// Quantity taken, 10⁻⁸.
        taken: i64,
    },
}

/// Reads a one-byte enumeration field of an event or a command.
pub(super) fn number<T>(
    field: &'static str,
    value: u8,
    read: impl FnOnce(u8) -> Option<T>,
) -> Result<T, FoldError> {
    read(value).ok_or(FoldError::Number { field, value })
}

/// Sums and differences of two values that are not negative stay within their type.
pub(super) fn not_negative(values: &[i64]) -> Result<(), FoldError> {
    match values.iter().find(|value| **value < 0) {
        Some(&value) => Err(FoldError::Negative(value)),
        None => Ok(()),
    }
}

/// Holds two statements about one value together.
pub(super) fn same(
    what: &'static str,
    found: impl Into<i128>,
    expected: impl Into<i128>,
) -> Result<(), FoldError> {
    let (found, expected) = (found.into(), expected.into());
    if found == expected { Ok(()) } else { Err(FoldError::Mismatch { what, found, expected }) }
}
