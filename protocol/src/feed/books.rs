//! Books built of the public feed: every order that the book shows, in the order in which they would
//! trade, and the levels that they add up to. Used by readers of the feed, and by the engine's feed
//! thread, which makes snapshots of its own.
//!
//! What a message says is checked against what was built before: after an error the books are of no use
//! and have to be made anew from a snapshot.

mod book;
mod snapshot;

pub use book::{Book, BookLevel, BookOrder};
pub use snapshot::SnapshotError;

use crate::message::decode::FeedMessage;
use crate::message::enums::{Side, SymbolStatus};
use crate::message::feed::{FEED_LAST, FeedOrderAdded, FeedSymbolChanged};
use crate::text::SymbolName;
use crate::units::{FeedSequence, OrderId, Position, SymbolId};

/// Most symbols that books are kept of.
pub const SYMBOLS_MAX: u32 = 1 << 20;

/// Why a message does not go with the books.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BookError {
    /// Messages are missing, or came twice.
    #[error("message {found} follows message {last}")]
    Sequence {
        /// The last one that was applied.
        last: FeedSequence,
        /// This one.
        found: FeedSequence,
    },
    /// A number that names nothing.
    #[error("{field} {value} means nothing")]
    Number {
        /// Of which field.
        field: &'static str,
        /// The number.
        value: i64,
    },
    /// Symbols are defined in the order of their numbers.
    #[error("symbol {0} is not known")]
    UnknownSymbol(SymbolId),
    /// The book does not show the order.
    #[error("order {order} of symbol {symbol} is not in the book")]
    UnknownOrder {
        /// The symbol.
        symbol: SymbolId,
        /// The order.
        order: OrderId,
    },
    /// The book shows it already.
    #[error("order {order} of symbol {symbol} is in the book already")]
    AddedTwice {
        /// The symbol.
        symbol: SymbolId,
        /// The order.
        order: OrderId,
    },
    /// The order stands elsewhere, or shows less or something else.
    #[error("order {order} of symbol {symbol}: {what} is {expected}, the message says {found}")]
    Mismatch {
        /// The symbol.
        symbol: SymbolId,
        /// The order.
        order: OrderId,
        /// Side (1 buys), price or quantity.
        what: &'static str,
        /// In the message.
        found: i64,
        /// In the book.
        expected: i64,
    },
}

/// A symbol with its book.
#[derive(Debug, Clone)]
pub struct BookSymbol {
    /// Its number.
    pub id: SymbolId,
    /// Its name.
    pub name: SymbolName,
    /// Whether orders are taken.
    pub status: SymbolStatus,
    /// PRICE_FILTER tickSize, 10⁻⁸; 0: none.
    pub tick_size: i64,
    /// LOT_SIZE stepSize, 10⁻⁸; 0: none.
    pub lot_step: i64,
    /// The orders.
    pub book: Book,
}

/// The books of all symbols, behind one message of the feed.
#[derive(Debug, Clone, Default)]
pub struct Books {
    symbols: Vec<BookSymbol>,
    orders: u64,
    sequence: FeedSequence,
    position: Position,
    time_ns: u64,
    in_transaction: bool,
}

impl Books {
    /// No symbols, in front of the first message.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Every symbol, in order of definition.
    #[must_use]
    pub fn symbols(&self) -> &[BookSymbol] {
        &self.symbols
    }

    /// A symbol by number.
    #[must_use]
    pub fn symbol(&self, id: SymbolId) -> Option<&BookSymbol> {
        self.symbols.get(id.0 as usize)
    }

    /// A symbol by name.
    #[must_use]
    pub fn symbol_named(&self, name: &str) -> Option<&BookSymbol> {
        self.symbols.iter().find(|symbol| symbol.name.as_str() == name)
    }

    /// Orders of all symbols.
    #[must_use]
    pub const fn orders(&self) -> u64 {
        self.orders
    }

    /// Bytes that a snapshot of them has behind its head.
    #[must_use]
    pub const fn snapshot_bytes(&self) -> u64 {
        self.symbols.len() as u64 * size_of::<FeedSymbolChanged>() as u64
            + self.orders * size_of::<FeedOrderAdded>() as u64
    }

    /// The last message that was applied.
    #[must_use]
    pub const fn sequence(&self) -> FeedSequence {
        self.sequence
    }

    /// Position behind the last transaction that was applied, or is being applied; of books in front of the feed's
    /// first message the log's end when the feed began.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.position
    }

    /// Time of that transaction, ns since the epoch.
    #[must_use]
    pub const fn time_ns(&self) -> u64 {
        self.time_ns
    }

    /// True between two messages of one transaction: the books are not whole.
    #[must_use]
    pub const fn in_transaction(&self) -> bool {
        self.in_transaction
    }

    /// Applies the next message of the feed.
    ///
    /// # Errors
    /// See [`BookError`]; the books are of no use then.
    pub fn apply(&mut self, message: FeedMessage<'_>) -> Result<(), BookError> {
        let head = Head::of(message);
        if self.sequence.0.checked_add(1) != Some(head.sequence.0) {
            return Err(BookError::Sequence { last: self.sequence, found: head.sequence });
        }
        self.change(message)?;
        self.sequence = head.sequence;
        self.position = head.position;
        self.time_ns = head.time_ns;
        self.in_transaction = head.flags & FEED_LAST == 0;
        Ok(())
    }

    /// Counts from the feed's beginning again: its first message comes next, behind the transaction that
    /// ends at `position`.
    pub const fn restart(&mut self, position: Position, time_ns: u64) {
        self.sequence = FeedSequence(0);
        self.position = position;
        self.time_ns = time_ns;
        self.in_transaction = false;
    }

    /// What a message changes, whatever its number.
    fn change(&mut self, message: FeedMessage<'_>) -> Result<(), BookError> {
        match message {
            FeedMessage::FeedOrderAdded(it) => {
                let (side, place) = (side(it.side)?, (it.symbol, it.order_id));
                self.book(it.symbol)?.add(place, side, it.price, it.quantity)?;
                self.orders += 1;
            }
            FeedMessage::FeedOrderReduced(it) => {
                let (side, place) = (side(it.side)?, (it.symbol, it.order_id));
                let leaves = self.book(it.symbol)?.take(place, (side, it.price), it.quantity)?;
                self.orders -= u64::from(leaves);
            }
            FeedMessage::FeedOrderDeleted(it) => {
                let (side, place) = (side(it.side)?, (it.symbol, it.order_id));
                self.book(it.symbol)?.remove(place, (side, it.price), it.quantity)?;
                self.orders -= 1;
            }
            FeedMessage::FeedOrderReplaced(it) => {
                let (side, place) = (side(it.side)?, (it.symbol, it.order_id));
                let book = self.book(it.symbol)?;
                book.remove(place, (side, it.old_price), it.old_quantity)?;
                book.add(place, side, it.price, it.quantity)?;
            }
            FeedMessage::FeedTrade(it) => {
                let (side, place) = (side(it.aggressor_side)?.opposite(), (it.symbol, it.order_id));
                let leaves = self.book(it.symbol)?.take(place, (side, it.price), it.quantity)?;
                self.orders -= u64::from(leaves);
            }
            FeedMessage::FeedSymbolChanged(it) => self.symbol_changed(it)?,
        }
        Ok(())
    }

    fn symbol_changed(&mut self, changed: &FeedSymbolChanged) -> Result<(), BookError> {
        let known = self.symbols.len();
        let status = SymbolStatus::from_wire(changed.status)
            .ok_or(BookError::Number { field: "symbol status", value: changed.status.into() })?;
        if changed.symbol.0 as usize == known && changed.symbol.0 < SYMBOLS_MAX {
            self.symbols.push(BookSymbol {
                id: changed.symbol,
                name: changed.name,
                status,
                tick_size: 0,
                lot_step: 0,
                book: Book::default(),
            });
        }
        let symbol = self
            .symbols
            .get_mut(changed.symbol.0 as usize)
            .ok_or(BookError::UnknownSymbol(changed.symbol))?;
        symbol.status = status;
        symbol.tick_size = changed.tick_size;
        symbol.lot_step = changed.lot_step;
        Ok(())
    }

    fn book(&mut self, id: SymbolId) -> Result<&mut Book, BookError> {
        let symbol = self.symbols.get_mut(id.0 as usize).ok_or(BookError::UnknownSymbol(id))?;
        Ok(&mut symbol.book)
    }
}

fn side(number: u8) -> Result<Side, BookError> {
    Side::from_wire(number).ok_or(BookError::Number { field: "side", value: number.into() })
}

/// What every message of the feed begins with.
#[derive(Clone, Copy)]
struct Head {
    sequence: FeedSequence,
    position: Position,
    time_ns: u64,
    flags: u8,
}

impl Head {
    fn of(message: FeedMessage<'_>) -> Self {
        macro_rules! heads {
            ($($name:ident),*) => {
                match message {
                    $(FeedMessage::$name(it) => Self {
                        sequence: it.sequence,
                        position: it.position,
                        time_ns: it.time_ns,
                        flags: it.flags,
                    },)*
                }
            };
        }
        heads!(
            FeedOrderAdded,
            FeedOrderReduced,
            FeedOrderDeleted,
            FeedOrderReplaced,
            FeedTrade,
            FeedSymbolChanged
        )
    }
}

#[cfg(test)]
mod tests;
