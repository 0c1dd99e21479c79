//! The public feed: what everybody may know of the books, without owners. Written by the engine's feed
//! thread into the broadcast ring (`feed/layout.rs`) and into snapshots; template ids 400-419. The
//! conversation of a feed connection that leads there has 420-439.
//!
//! A message of the feed begins with the same 40 bytes: header, sequence, position, time, symbol, flags
//! and one byte more. All prices and quantities are in 10⁻⁸. An order goes by the number that its owner
//! was told, so that owners find their place in the queue. Of an iceberg only the visible part is in
//! the book; stops are not public before they are triggered and rest.

use super::{MessageHeader, message};
use crate::text::SymbolName;
use crate::units::{
    AggregateTradeId, FeedSequence, Incarnation, OrderId, Position, SymbolId, TradeId,
};

/// The last message of its transaction: the books are whole behind it.
pub const FEED_LAST: u8 = 1;

/// Offset of the `flags` byte in every message of the feed.
pub const FEED_FLAGS_OFFSET: usize = 36;

message! {
    /// An order stands in the book now, last in the queue of its price; also the next slice of an
    /// iceberg, under the same number.
    FeedOrderAdded, template 400, 64 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Its number in the feed.
        8 sequence: FeedSequence,
        /// Position behind the transaction in the log.
        16 position: Position,
        /// Time of the transaction, ns since the epoch.
        24 time_ns: u64,
        /// The symbol.
        32 symbol: SymbolId,
        /// `FEED_*` bits.
        36 flags: u8,
        /// `Side`.
        37 side: u8,
        /// Zero.
        38 reserved: [u8; 2],
        /// The order.
        40 order_id: OrderId,
        /// Its price.
        48 price: i64,
        /// What the book shows of it.
        56 quantity: i64,
    }
    reserved { reserved } texts {}
}

message! {
    /// The book shows less of an order, which keeps its place.
    FeedOrderReduced, template 401, 64 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Its number in the feed.
        8 sequence: FeedSequence,
        /// Position behind the transaction in the log.
        16 position: Position,
        /// Time of the transaction, ns since the epoch.
        24 time_ns: u64,
        /// The symbol.
        32 symbol: SymbolId,
        /// `FEED_*` bits.
        36 flags: u8,
        /// `Side`.
        37 side: u8,
        /// Zero.
        38 reserved: [u8; 2],
        /// The order.
        40 order_id: OrderId,
        /// Its price.
        48 price: i64,
        /// By how much less.
        56 quantity: i64,
    }
    reserved { reserved } texts {}
}

message! {
    /// An order has left the book without a trade.
    FeedOrderDeleted, template 402, 64 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Its number in the feed.
        8 sequence: FeedSequence,
        /// Position behind the transaction in the log.
        16 position: Position,
        /// Time of the transaction, ns since the epoch.
        24 time_ns: u64,
        /// The symbol.
        32 symbol: SymbolId,
        /// `FEED_*` bits.
        36 flags: u8,
        /// `Side`.
        37 side: u8,
        /// Zero.
        38 reserved: [u8; 2],
        /// The order.
        40 order_id: OrderId,
        /// Its price.
        48 price: i64,
        /// What the book showed of it.
        56 quantity: i64,
    }
    reserved { reserved } texts {}
}

message! {
    /// An order has another price or more quantity: it has left its place and stands last in the queue
    /// of its price. (One that takes first is deleted, and added if a rest of it comes to rest.)
    FeedOrderReplaced, template 403, 80 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Its number in the feed.
        8 sequence: FeedSequence,
        /// Position behind the transaction in the log.
        16 position: Position,
        /// Time of the transaction, ns since the epoch.
        24 time_ns: u64,
        /// The symbol.
        32 symbol: SymbolId,
        /// `FEED_*` bits.
        36 flags: u8,
        /// `Side`.
        37 side: u8,
        /// Zero.
        38 reserved: [u8; 2],
        /// The order.
        40 order_id: OrderId,
        /// Its price now.
        48 price: i64,
        /// What the book shows of it now.
        56 quantity: i64,
        /// Its price before.
        64 old_price: i64,
        /// What the book showed of it before.
        72 old_quantity: i64,
    }
    reserved { reserved } texts {}
}

message! {
    /// A resting order was executed, at its price: the book shows `quantity` less of it, and it has left
    /// the book when nothing is left of that.
    FeedTrade, template 404, 80 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Its number in the feed.
        8 sequence: FeedSequence,
        /// Position behind the transaction in the log.
        16 position: Position,
        /// Time of the transaction, ns since the epoch.
        24 time_ns: u64,
        /// The symbol.
        32 symbol: SymbolId,
        /// `FEED_*` bits.
        36 flags: u8,
        /// `Side` of the aggressor; the resting order is on the other one.
        37 aggressor_side: u8,
        /// Zero.
        38 reserved: [u8; 2],
        /// The resting order.
        40 order_id: OrderId,
        /// Price of the trade.
        48 price: i64,
        /// Base quantity of the trade.
        56 quantity: i64,
        /// The trade's number.
        64 trade_id: TradeId,
        /// The aggregate trade it belongs to.
        72 aggregate_trade_id: AggregateTradeId,
    }
    reserved { reserved } texts {}
}

message! {
    /// A symbol was defined, or its status or filters were changed.
    FeedSymbolChanged, template 405, 80 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Its number in the feed.
        8 sequence: FeedSequence,
        /// Position behind the transaction in the log.
        16 position: Position,
        /// Time of the transaction, ns since the epoch.
        24 time_ns: u64,
        /// The symbol.
        32 symbol: SymbolId,
        /// `FEED_*` bits.
        36 flags: u8,
        /// `SymbolStatus`.
        37 status: u8,
        /// Zero.
        38 reserved: [u8; 2],
        /// PRICE_FILTER tickSize; 0: none.
        40 tick_size: i64,
        /// LOT_SIZE stepSize; 0: none.
        48 lot_step: i64,
        /// Its name.
        56 name: SymbolName,
    }
    reserved { reserved } texts { name }
}

message! {
    /// Answer to a Hello with `LOGON_FEED`. With carrier 0 the broadcast ring's memory travels with it,
    /// read-only; over a stream the feed itself goes on behind it.
    FeedOpened, template 420, 40 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Slots of the ring: a power of two.
        8 slots: u32,
        /// The log's present incarnation; the feed counts from 1 in each.
        12 incarnation: Incarnation,
        /// The log's identity.
        16 log_id: [u8; 16],
        /// The last message of the feed then: over a stream the one behind it comes next.
        32 sequence: FeedSequence,
    }
    reserved {} texts {}
}

message! {
    /// From a reader that has no books, or was overrun: asks for a snapshot. One at a time.
    FeedRequest, template 421, 16 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Zero.
        8 reserved: u64,
    }
    reserved { reserved } texts {}
}

message! {
    /// Over a stream: the reader was too slow, and messages were overwritten before they could be sent.
    /// Its books are of no use until it has asked for a snapshot.
    FeedGap, template 423, 24 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// The first message that is missing.
        8 from: FeedSequence,
        /// The message that comes next.
        16 next: FeedSequence,
    }
    reserved {} texts {}
}

message! {
    /// The books as they stand behind one message of the feed. Behind it follow, on the same socket, a
    /// [`FeedSymbolChanged`] for each symbol and a [`FeedOrderAdded`] for each order, the orders of each
    /// side from best to worst and of each price in the order in which they would trade; with sequence,
    /// position and time of their own kind zero.
    FeedSnapshot, template 422, 64 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// The last message of the feed that is in it; 0: from before the first.
        8 sequence: FeedSequence,
        /// Position behind the last transaction that is in it and had anything public; with sequence 0 the log's
        /// end when the feed began, at the engine's start.
        16 position: Position,
        /// Time of that transaction, ns since the epoch; with sequence 0 of the last one before the feed began.
        24 time_ns: u64,
        /// The log's incarnation.
        32 incarnation: Incarnation,
        /// Number of symbols.
        36 symbols: u32,
        /// Number of orders.
        40 orders: u64,
        /// Bytes of all messages behind this one.
        48 bytes: u64,
        /// Zero.
        56 reserved: u64,
    }
    reserved { reserved } texts {}
}
