//! Events: what the core decided. In the log they follow their command; on a ring the same body
//! stands behind an [`Envelope`]. Template ids 200-249.
//!
//! Balance changes are exact deltas, so that a reader can keep every balance without knowing the
//! core's rules: `locked` moves from free to locked, `released` back, and a trade moves what its
//! fields say (see [`Trade`]).

use super::{MessageHeader, message};
use crate::text::ClientOrderId;
use crate::units::{
    AccountId, AggregateTradeId, BookUpdateId, Epoch, KeyId, OrderId, OrderListId, Position,
    Sequence, SessionId, SymbolId, TradeId,
};
use crate::words;
use bytemuck::{Pod, Zeroable};

/// Stands between the message header and the event body on a ring (40 bytes); the header's block
/// length covers envelope and body.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct Envelope {
    /// The command's correlation; 0 when unsolicited.
    pub correlation: u64,
    /// The command's sequence; 0 when unsolicited.
    pub sequence: Sequence,
    /// Position behind the transaction in the log; for a reject: behind the last one before it, and for one by
    /// a log that takes nothing: how far that is on disk.
    pub position: Position,
    /// Time of the transaction, ns since the epoch; of a reject when it was decided, or, of `StaleEpoch` and what
    /// has no whole header, over a stream, of what the session was told of last, 0 if of nothing.
    pub time_ns: u64,
    /// The session that it goes to.
    pub session: SessionId,
    /// `ENVELOPE_*` bits.
    pub flags: u8,
    /// Zero.
    pub reserved: [u8; 3],
}

const _: () = assert!(size_of::<Envelope>() == 40);

impl Envelope {
    /// Sets its flags (`ENVELOPE_*` bits), so that it can be sent at once: it is sent as words, and a word of which
    /// one byte has just been stored is read late (see [`words`]).
    #[inline(always)]
    pub fn set_flags(&mut self, flags: u8) {
        let words = Self { flags, ..*self }.words();
        words::copy(&words.map(u64::to_le_bytes), bytemuck::cast_mut::<Self, [u64; 5]>(self));
    }

    /// The words that it is in memory, put together of its fields.
    #[inline(always)]
    const fn words(&self) -> [u64; 5] {
        let Self { correlation, sequence, position, time_ns, session, flags, reserved } = *self;
        let last = session.0 as u64
            | (flags as u64) << 32
            | (reserved[0] as u64) << 40
            | (reserved[1] as u64) << 48
            | (reserved[2] as u64) << 56;
        [correlation, sequence.0, position.0, time_ns, last]
    }
}

/// The one last reply to a command.
pub const ENVELOPE_TERMINAL: u8 = 1;
/// Not a reply.
pub const ENVELOPE_UNSOLICITED: u8 = 2;
/// Read from the log because the client asked for it; the correlation is the replay's, and the sequence that
/// of the session's own command in whose transaction it stands; else 0, as in the later parts of such a
/// command.
pub const ENVELOPE_REPLAYED: u8 = 4;

message! {
    /// An order was accepted and its funds locked. Fills, if any, follow.
    OrderAccepted, template 200, 72 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Its number.
        8 order_id: OrderId,
        /// The owner.
        16 account: AccountId,
        /// The symbol.
        20 symbol: SymbolId,
        /// Moved from free to locked: quote for a buy, base for a sell, 10⁻⁸.
        24 locked: i64,
        /// Limit price, 10⁻⁸; 0 for what is MARKET or becomes it.
        32 price: i64,
        /// Base quantity, 10⁻⁸; of a MARKET order by quote quantity what that buys or sells.
        40 quantity: i64,
        /// The list it belongs to.
        48 order_list_id: OrderListId,
        /// `Side`.
        56 side: u8,
        /// `OrderType`.
        57 order_type: u8,
        /// `TimeInForce`.
        58 time_in_force: u8,
        /// Zero.
        59 reserved: [u8; 5],
        /// The session that placed it.
        64 session: SessionId,
        /// Zero.
        68 reserved_1: u32,
    }
    reserved { reserved, reserved_1 } texts {}
}

message! {
    /// One aggressor met one resting order, at the resting order's price.
    ///
    /// A trader's or read-only session is told its own side: of the other one the account is 2³² − 1, the
    /// commission and what was released are 0, and what is open is -1.
    ///
    /// Money: the buyer's locked quote falls by `quote_amount` and its free base rises by `quantity`
    /// less its commission; the seller's locked base falls by `quantity` and its free quote rises by
    /// `quote_amount` less its commission; both commissions go to the fee account. When the maker is
    /// thereby filled, `maker_released` of its lock goes back to free.
    Trade, template 201, 112 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Its number.
        8 trade_id: TradeId,
        /// The aggregate trade it belongs to.
        16 aggregate_trade_id: AggregateTradeId,
        /// The symbol.
        24 symbol: SymbolId,
        /// `Side` of the aggressor.
        28 aggressor_side: u8,
        /// Zero.
        29 reserved: [u8; 3],
        /// The resting order's price, 10⁻⁸.
        32 price: i64,
        /// Base quantity, 10⁻⁸.
        40 quantity: i64,
        /// Quote amount, truncated to 10⁻⁸.
        48 quote_amount: i64,
        /// The resting order.
        56 maker_order_id: OrderId,
        /// The aggressor.
        64 taker_order_id: OrderId,
        /// Owner of the resting order; 2³² − 1: not told.
        72 maker_account: AccountId,
        /// Owner of the aggressor; 2³² − 1: not told.
        76 taker_account: AccountId,
        /// Taken from what the maker receives, 10⁻⁸; 0 if its owner is not told.
        80 maker_commission: i64,
        /// Taken from what the taker receives, 10⁻⁸; 0 if its owner is not told.
        88 taker_commission: i64,
        /// The resting order's quantity still open, 10⁻⁸; 0: filled; -1: not told.
        96 maker_remaining: i64,
        /// Back to the maker's free balance from its lock, 10⁻⁸; 0 unless it is filled, and if
        /// its owner is not told.
        104 maker_released: i64,
    }
    reserved { reserved } texts {}
}

message! {
    /// Terminal reply to a placement, and to a replacement by which an order leaves its place: the order as
    /// it stands when the transaction (or its last part) is done. So does it behind an [`OrderTriggered`].
    OrderResult, template 202, 88 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Its number.
        8 order_id: OrderId,
        /// The owner.
        16 account: AccountId,
        /// The symbol.
        20 symbol: SymbolId,
        /// Base quantity of the order, 10⁻⁸.
        24 quantity: i64,
        /// Base executed, 10⁻⁸.
        32 executed_quantity: i64,
        /// Quote executed, 10⁻⁸.
        40 executed_quote: i64,
        /// Moved from locked back to free because the order ended or, from rules 3 on, was a buy that took
        /// below its limit, 10⁻⁸.
        48 released: i64,
        /// The symbol's book update id behind this order.
        56 book_update_id: BookUpdateId,
        /// The list it belongs to.
        64 order_list_id: OrderListId,
        /// Orders of the account in the first interval, this one included; of a replaced one, which does
        /// not count again, as they were, and 0 for a stop that had its turn.
        72 order_count_0: u32,
        /// Orders of the account in the second interval, likewise.
        76 order_count_1: u32,
        /// `OrderStatus`.
        80 status: u8,
        /// Zero.
        81 reserved: [u8; 7],
    }
    reserved { reserved } texts {}
}

message! {
    /// An open order ended without being filled: cancelled (the terminal reply to a cancel of it alone) or
    /// expired. An order that is taking ends with an [`OrderResult`] instead.
    OrderCanceled, template 203, 136 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Its number.
        8 order_id: OrderId,
        /// The owner.
        16 account: AccountId,
        /// The symbol.
        20 symbol: SymbolId,
        /// Limit price, 10⁻⁸; 0 for a stop without one.
        24 price: i64,
        /// Base quantity of the order, 10⁻⁸.
        32 quantity: i64,
        /// Base executed, 10⁻⁸.
        40 executed_quantity: i64,
        /// Quote executed, 10⁻⁸.
        48 executed_quote: i64,
        /// Moved from locked back to free, 10⁻⁸; 0 for a limit leg whose stop leg has its turn and takes the
        /// lock over.
        56 released: i64,
        /// The symbol's book update id behind this transaction, or so far if more of it follows.
        64 book_update_id: BookUpdateId,
        /// The list it belonged to.
        72 order_list_id: OrderListId,
        /// `OrderStatus`: Canceled or Expired.
        80 status: u8,
        /// `Side`.
        81 side: u8,
        /// `OrderType`.
        82 order_type: u8,
        /// `TimeInForce`.
        83 time_in_force: u8,
        /// Zero.
        84 reserved: u32,
        /// The order's client order id.
        88 client_order_id: ClientOrderId,
        /// Zero.
        128 reserved_1: u64,
    }
    reserved { reserved, reserved_1 } texts { client_order_id }
}

message! {
    /// Terminal reply to a reduction.
    OrderReduced, template 204, 64 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Its number.
        8 order_id: OrderId,
        /// The owner.
        16 account: AccountId,
        /// The symbol.
        20 symbol: SymbolId,
        /// The order's quantity now, 10⁻⁸.
        24 quantity: i64,
        /// Base executed, 10⁻⁸.
        32 executed_quantity: i64,
        /// Moved from locked back to free, 10⁻⁸.
        40 released: i64,
        /// The symbol's book update id behind this transaction.
        48 book_update_id: BookUpdateId,
        /// Limit price, 10⁻⁸; 0 for a stop without one.
        56 price: i64,
    }
    reserved {} texts {}
}

message! {
    /// The aggressor took as many steps as one transaction may; the rest of it is pending work.
    /// Order 0: a sweep goes on, or stops were triggered and nothing else was done in this transaction.
    OrderContinues, template 205, 40 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// The aggressor.
        8 order_id: OrderId,
        /// The symbol; `EVERY` for a sweep over all of them.
        16 symbol: SymbolId,
        /// Zero.
        20 reserved: u32,
        /// Base quantity that it has not executed yet, 10⁻⁸; 0 without an order.
        24 remaining: i64,
        /// The symbol's book update id behind this order, or so far; 0 for `EVERY`.
        32 book_update_id: BookUpdateId,
    }
    reserved { reserved } texts {}
}

message! {
    /// Terminal reply to a validate-only order: it passes every static rule.
    OrderValid, template 206, 16 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// The symbol.
        8 symbol: SymbolId,
        /// Zero.
        12 reserved: u32,
    }
    reserved { reserved } texts {}
}

message! {
    /// A stop was reached by a trade and has its turn: it takes now, as MARKET or LIMIT by its type, and
    /// rests with the priority of this transaction. Fills, if any, and its `OrderResult` follow.
    OrderTriggered, template 207, 48 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// The stop.
        8 order_id: OrderId,
        /// The owner.
        16 account: AccountId,
        /// The symbol.
        20 symbol: SymbolId,
        /// Moved from free to locked, 10⁻⁸; below zero: back.
        24 locked: i64,
        /// The symbol's book update id in front of this order.
        32 book_update_id: BookUpdateId,
        /// Zero.
        40 reserved: u64,
    }
    reserved { reserved } texts {}
}

message! {
    /// A list was placed or came to its end; the terminal reply to its placement and to its cancel.
    ///
    /// A placement's: both orders have been accepted in front of it, the stop leg first; the stop leg
    /// waits from here on, the limit leg rests in the book. At its end: one leg was touched or triggered
    /// and lives on by itself while the other has expired, or both were cancelled or have expired (facts
    /// §5.5).
    OrderListChanged, template 208, 104 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Its number.
        8 order_list_id: OrderListId,
        /// The owner.
        16 account: AccountId,
        /// The symbol.
        20 symbol: SymbolId,
        /// The LIMIT_MAKER leg.
        24 limit_order_id: OrderId,
        /// The stop leg.
        32 stop_order_id: OrderId,
        /// `ListStatusType`.
        40 list_status_type: u8,
        /// `ListOrderStatus`.
        41 list_order_status: u8,
        /// Zero.
        42 reserved: [u8; 6],
        /// The client's name for the list; empty for none.
        48 list_client_order_id: ClientOrderId,
        /// Orders of the account in the first interval, these two included; 0 but for a placement.
        88 order_count_0: u32,
        /// Orders of the account in the second interval, these two included; 0 but for a placement.
        92 order_count_1: u32,
        /// The symbol's book update id behind this transaction, or so far if more of it follows.
        96 book_update_id: BookUpdateId,
    }
    reserved { reserved } texts { list_client_order_id }
}

message! {
    /// All that an iceberg showed is filled: the next slice stands at the end of its price's queue.
    ///
    /// What an iceberg shows follows from its placement: when it comes to rest, the lesser of its
    /// iceberg quantity and what is open; each trade takes its quantity off; this event sets it anew;
    /// a reduction lowers what is hidden first.
    OrderRefilled, template 209, 40 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// The iceberg.
        8 order_id: OrderId,
        /// The symbol.
        16 symbol: SymbolId,
        /// Zero.
        20 reserved: u32,
        /// Base quantity that it shows now, 10⁻⁸.
        24 visible: i64,
        /// The symbol's book update id behind this order.
        32 book_update_id: BookUpdateId,
    }
    reserved { reserved } texts {}
}

message! {
    /// Terminal reply to a command that has no event of its own: a definition or a change of one, a money
    /// movement, an account that is no longer killed, a revoked key, the engine's start.
    Done, template 210, 40 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Number of what was made or changed: asset, symbol, account or key; else 0.
        8 id: u64,
        /// Free balance behind a deposit or withdrawal, 10⁻⁸.
        16 free: i64,
        /// Locked balance behind a deposit or withdrawal, 10⁻⁸.
        24 locked: i64,
        /// Zero.
        32 reserved: u64,
    }
    reserved { reserved } texts {}
}

message! {
    /// A session has a new connection.
    SessionStarted, template 211, 40 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Its number.
        8 session: SessionId,
        /// Its epoch now.
        12 epoch: Epoch,
        /// The last sequence that was decided.
        16 last_sequence: Sequence,
        /// The key it logged on with; 0 for admin and adapter.
        24 key_id: KeyId,
        /// The key's account; meaningless without a key.
        32 account: AccountId,
        /// `Role`.
        36 role: u8,
        /// `Lane`.
        37 lane: u8,
        /// Zero.
        38 reserved: [u8; 2],
    }
    reserved { reserved } texts {}
}

message! {
    /// A session has no connection any more.
    SessionEnded, template 212, 16 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Its number.
        8 session: SessionId,
        /// The epoch that ended.
        12 epoch: Epoch,
    }
    reserved {} texts {}
}

message! {
    /// Terminal reply to a command that cancels or expires many; an [`OrderCanceled`] per order stands
    /// in front of it, in this transaction or in those before it. A logon and the revocation of a key, which
    /// may cancel too, have their own terminal event behind it.
    MassCanceled, template 213, 32 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// The account; `EVERY` when a symbol's orders were expired.
        8 account: AccountId,
        /// The symbol, or `EVERY`.
        12 symbol: SymbolId,
        /// Orders that it ended.
        16 orders: u64,
        /// Lists that it ended.
        24 lists: u64,
    }
    reserved {} texts {}
}

message! {
    /// Two orders of one account met and did not trade. An [`OrderCanceled`] (Expired) follows for the
    /// resting order, an [`OrderResult`] (Expired) for the aggressor, as the mode says.
    SelfTradePrevented, template 214, 64 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// The resting order.
        8 maker_order_id: OrderId,
        /// The aggressor.
        16 taker_order_id: OrderId,
        /// Owner of both.
        24 account: AccountId,
        /// The symbol.
        28 symbol: SymbolId,
        /// The resting order's price, 10⁻⁸.
        32 price: i64,
        /// Base quantity that did not trade, 10⁻⁸: the lesser of what both have open, hidden parts
        /// included.
        40 quantity: i64,
        /// `SelfTradePrevention` of the aggressor.
        48 mode: u8,
        /// Zero.
        49 reserved: [u8; 7],
        /// The symbol's book update id in front of this order.
        56 book_update_id: BookUpdateId,
    }
    reserved { reserved } texts {}
}

message! {
    /// An open order has another price or a higher quantity, and has left its place. Fills, if any, and
    /// its [`OrderResult`] follow. (One that keeps its place is an [`OrderReduced`].)
    OrderReplaced, template 215, 64 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Its number.
        8 order_id: OrderId,
        /// The owner.
        16 account: AccountId,
        /// The symbol.
        20 symbol: SymbolId,
        /// Limit price from now on, 10⁻⁸.
        24 price: i64,
        /// Base quantity from now on, executed part included, 10⁻⁸.
        32 quantity: i64,
        /// Base executed so far, 10⁻⁸.
        40 executed_quantity: i64,
        /// Moved from free to locked, 10⁻⁸; below zero: back.
        48 locked: i64,
        /// The symbol's book update id in front of this order.
        56 book_update_id: BookUpdateId,
    }
    reserved {} texts {}
}

message! {
    /// Terminal reply to a put: the record as it stands. What it carries, and its unique key, stand in the
    /// command.
    RecordPut, template 216, 48 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Its kind.
        8 kind: u32,
        /// Its version now; 1: it was made.
        12 version: u32,
        /// Its id.
        16 id: [u8; 12],
        /// Id of the record that it belongs to; all zeros: of none.
        28 owner: [u8; 12],
        /// Bytes that it carries.
        40 length: u32,
        /// Zero.
        44 reserved: u32,
    }
    reserved { reserved } texts {}
}

message! {
    /// Terminal reply to the delete of a record.
    RecordDeleted, template 217, 40 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// The kind that it had.
        8 kind: u32,
        /// The version that it had.
        12 version: u32,
        /// Its id.
        16 id: [u8; 12],
        /// Id of the record that it belonged to; all zeros: of none.
        28 owner: [u8; 12],
    }
    reserved {} texts {}
}

message! {
    /// Terminal reply to a command that changed nothing. Never in the log.
    Rejected, template 240, 24 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// `RejectReason`.
        8 reason: u16,
        /// Template of the rejected command; 0 if it could not be read.
        10 template_id: u16,
        /// As the reason says.
        12 detail: u32,
        /// Zero.
        16 reserved: u64,
    }
    reserved { reserved } texts {}
}

message! {
    /// Events did not fit into the session's ring: of the transactions from `from` up to the envelope's
    /// position some are missing, which the log has; what comes behind with that same position is there
    /// too. Never in the log.
    Gap, template 241, 16 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Position up to which nothing is missing.
        8 from: Position,
    }
    reserved {} texts {}
}

message! {
    /// Terminal reply to a `NewOrder` of a terse session: the order is open as it was sent, and nothing else has
    /// happened; with its envelope one cache line. In the place of the events that the log has. Never in the log.
    OrderOpened, template 242, 24 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Its number.
        8 order_id: OrderId,
        /// The symbol's book update id behind this order.
        16 book_update_id: BookUpdateId,
    }
    reserved {} texts {}
}

message! {
    /// Terminal reply to a `CancelOrder` of a terse session: the order is cancelled, and no other with it; with its
    /// envelope one cache line. In the place of the event that the log has, which tells more. Never in the log.
    OrderClosed, template 243, 24 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Its number.
        8 order_id: OrderId,
        /// Base executed, 10⁻⁸.
        16 executed_quantity: i64,
    }
    reserved {} texts {}
}

message! {
    /// Terminal reply to a `NewOrder` of a terse session: one resting order of another account filled it whole, and
    /// nothing else has happened to it; with its envelope two cache lines. In the place of the events that the log
    /// has. Never in the log.
    OrderFilled, template 244, 88 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Its number.
        8 order_id: OrderId,
        /// The symbol's book update id behind this order.
        16 book_update_id: BookUpdateId,
        /// The trade's number.
        24 trade_id: TradeId,
        /// The aggregate trade that the trade belongs to.
        32 aggregate_trade_id: AggregateTradeId,
        /// The resting order.
        40 maker_order_id: OrderId,
        /// The resting order's price, 10⁻⁸.
        48 price: i64,
        /// Base executed, which is all of the order's, 10⁻⁸.
        56 quantity: i64,
        /// Quote executed, truncated to 10⁻⁸.
        64 quote_amount: i64,
        /// Taken from what this order receives, 10⁻⁸.
        72 commission: i64,
        /// Of what was locked for it moved back to free, 10⁻⁸.
        80 released: i64,
    }
    reserved {} texts {}
}
