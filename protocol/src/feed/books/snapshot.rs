//! Books as the bytes of a snapshot, and back. Written by the engine's feed thread, read by readers that
//! join or were overrun.

use super::{BookError, Books};
use crate::message::MessageHeader;
use crate::message::decode::{self, DecodeError, FeedMessage};
use crate::message::enums::Side;
use crate::message::feed::{FeedOrderAdded, FeedSnapshot, FeedSymbolChanged};
use crate::units::Incarnation;

/// Why bytes are no snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// A message cannot be read.
    #[error("snapshot: offset {offset}: {source}")]
    Decode {
        /// Bytes from the first message on.
        offset: usize,
        /// What is wrong.
        source: DecodeError,
    },
    /// A message does not go with those in front of it.
    #[error("snapshot: offset {offset}: {source}")]
    Book {
        /// Bytes from the first message on.
        offset: usize,
        /// What is wrong.
        source: BookError,
    },
    /// A message that is no part of a snapshot.
    #[error("snapshot: offset {offset}: {name} is no part of it")]
    Unexpected {
        /// Bytes from the first message on.
        offset: usize,
        /// The message.
        name: &'static str,
    },
    /// It has not as many symbols, orders or bytes as it says.
    #[error("snapshot: {found} {what}, {stated} were stated")]
    Count {
        /// Which of them.
        what: &'static str,
        /// How many there are.
        found: u64,
        /// How many it says.
        stated: u64,
    },
}

impl Books {
    /// The books as a snapshot: its head, and the messages behind it.
    #[must_use]
    pub fn to_snapshot(&self, incarnation: Incarnation) -> (FeedSnapshot, Vec<u8>) {
        let mut body = Vec::with_capacity(self.snapshot_bytes() as usize);
        for symbol in self.symbols() {
            let changed = FeedSymbolChanged {
                symbol: symbol.id,
                status: symbol.status.to_wire(),
                tick_size: symbol.tick_size,
                lot_step: symbol.lot_step,
                name: symbol.name,
                ..Default::default()
            };
            body.extend_from_slice(bytemuck::bytes_of(&changed));
        }
        for symbol in self.symbols() {
            for side in [Side::Buy, Side::Sell] {
                for order in symbol.book.orders(side) {
                    let added = FeedOrderAdded {
                        symbol: symbol.id,
                        side: side.to_wire(),
                        order_id: order.order_id,
                        price: order.price,
                        quantity: order.quantity,
                        ..Default::default()
                    };
                    body.extend_from_slice(bytemuck::bytes_of(&added));
                }
            }
        }
        let head = FeedSnapshot {
            sequence: self.sequence(),
            position: self.position(),
            time_ns: self.time_ns(),
            incarnation,
            symbols: self.symbols().len() as u32,
            orders: self.orders(),
            bytes: body.len() as u64,
            ..Default::default()
        };
        (head, body)
    }

    /// The books that a snapshot holds. `body` begins at a multiple of eight; memory goes with its
    /// length, whatever it says.
    ///
    /// # Errors
    /// See [`SnapshotError`].
    pub fn from_snapshot(head: &FeedSnapshot, body: &[u8]) -> Result<Self, SnapshotError> {
        counted("bytes", body.len() as u64, head.bytes)?;
        let mut books = Self::new();
        let mut offset = 0;
        while offset < body.len() {
            let bytes = &body[offset..];
            let decoded =
                decode::header(bytes).and_then(|header| Ok((header, decode::feed(bytes)?)));
            let (header, message) =
                decoded.map_err(|source| SnapshotError::Decode { offset, source })?;
            match message {
                FeedMessage::FeedOrderAdded(_) | FeedMessage::FeedSymbolChanged(_) => {}
                other => return Err(SnapshotError::Unexpected { offset, name: other.name() }),
            }
            books.change(message).map_err(|source| SnapshotError::Book { offset, source })?;
            offset += MessageHeader::BYTES + usize::from(header.block_length);
        }
        counted("symbols", books.symbols.len() as u64, head.symbols.into())?;
        counted("orders", books.orders, head.orders)?;
        books.sequence = head.sequence;
        books.position = head.position;
        books.time_ns = head.time_ns;
        Ok(books)
    }
}

const fn counted(what: &'static str, found: u64, stated: u64) -> Result<(), SnapshotError> {
    if found == stated { Ok(()) } else { Err(SnapshotError::Count { what, found, stated }) }
}
