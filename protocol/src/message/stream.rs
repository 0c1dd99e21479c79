//! What a session over a socket says besides commands and replies: heartbeats, its end, what it asks of
//! the log and of the venue's state. Spoken by the engine's gateway and the client library. Template ids
//! 320-339.

use super::command::CommandHeader;
use super::{MessageHeader, message};
use crate::text::ClientOrderId;
use crate::units::{AssetId, OrderId, OrderListId, Position, SessionId, SymbolId};

message! {
    /// From the client, over rings too: it sends nothing more. What it sent before is decided and
    /// answered, then the connection ends; at any other end what was not yet taken is given up.
    Logout, template 320, 48 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Session and epoch; the rest is not looked at. Of another session or epoch it is answered with `Rejected`, and
        /// ends nothing.
        8 command: CommandHeader,
    }
    reserved {} texts {}
}

message! {
    /// From whichever side has been silent for the interval that the Welcome named.
    Heartbeat, template 321, 32 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// The log's end; from a client 0.
        8 appended: Position,
        /// The log is on disk up to here; from a client 0.
        16 durable: Position,
        /// To a reader of the public feed whose Hello said handshake 1.5 or later: the feed has read the log up to
        /// here, and has sent what is public of it, unless it owes a snapshot: what comes behind that one may lie in
        /// front of this. To all others and from a client 0.
        24 feed: Position,
    }
    reserved {} texts {}
}

message! {
    /// The engine's last message, if the client still reads.
    SessionClosed, template 322, 16 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// `CloseReason`.
        8 reason: u16,
        /// Zero.
        10 reserved: [u8; 6],
    }
    reserved { reserved } texts {}
}

message! {
    /// Asks for the events of the session's account from a position on. They come as they did live,
    /// those of one transaction together, flagged `ENVELOPE_REPLAYED`; then one `ReplayEnd`. Another
    /// replay of the session that is under way ends without one.
    ReplayRequest, template 323, 32 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// The client's own number, in the envelopes of what is replayed.
        8 correlation: u64,
        /// Behind a transaction: the position of an envelope, or `from` of a `Gap`. 0: from the lowest position
        /// that the log has, which `ReplayEnd` names.
        16 from: Position,
        /// Zero.
        24 reserved: u64,
    }
    reserved { reserved } texts {}
}

message! {
    /// All that a replay found has been sent.
    ReplayEnd, template 324, 40 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Of the request.
        8 correlation: u64,
        /// Up to where the log was read; with `TooOld` and `Unknown` nothing of it was, whatever stands here.
        16 position: Position,
        /// The lowest position that can be asked for, above 0 where the log's beginning was removed; 0 too when it
        /// is not known. (Older engines do not tell it where all is `Complete`.)
        24 oldest: Position,
        /// `ReplayStatus`.
        32 status: u8,
        /// Zero.
        33 reserved: [u8; 7],
    }
    reserved { reserved } texts {}
}

message! {
    /// Asks for the open orders and the balances of the session's account as of one position: they come
    /// one by one, then a `StateEnd` that names it. Of more than 1,000 open orders it says how many are left out: those
    /// are in a replay, or in the log. It counts as a command against the session's rate: one
    /// too many is answered with `Rejected`, reason `RateExceeded`, under its correlation and sequence 0.
    StateRequest, template 325, 16 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// The client's own number.
        8 correlation: u64,
    }
    reserved {} texts {}
}

message! {
    /// What the account has of an asset; assets of which it has nothing are left out.
    BalanceState, template 326, 40 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Of the request.
        8 correlation: u64,
        /// The asset.
        16 asset: AssetId,
        /// Zero.
        20 reserved: u32,
        /// Free, 10⁻⁸.
        24 free: i64,
        /// Locked by open orders, 10⁻⁸.
        32 locked: i64,
    }
    reserved { reserved } texts {}
}

message! {
    /// An open order of the account: one that rests, that waits, or that is taking in parts.
    OrderState, template 327, 136 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Of the request.
        8 correlation: u64,
        /// Its number.
        16 order_id: OrderId,
        /// The symbol.
        24 symbol: SymbolId,
        /// The session that placed it.
        28 session: SessionId,
        /// `Side`.
        32 side: u8,
        /// `OrderType`.
        33 order_type: u8,
        /// `TimeInForce`.
        34 time_in_force: u8,
        /// Zero.
        35 reserved: [u8; 5],
        /// Limit price, 10⁻⁸; 0 for one that has none.
        40 price: i64,
        /// Trigger price of a stop that waits, 10⁻⁸; else 0.
        48 stop_price: i64,
        /// Base quantity, 10⁻⁸.
        56 quantity: i64,
        /// Still open, hidden parts included, 10⁻⁸.
        64 remaining: i64,
        /// Quote executed, 10⁻⁸.
        72 executed_quote: i64,
        /// Locked by it, 10⁻⁸.
        80 locked: i64,
        /// The list it belongs to.
        88 order_list_id: OrderListId,
        /// The client's name for it.
        96 client_order_id: ClientOrderId,
    }
    reserved { reserved } texts { client_order_id }
}

message! {
    /// All of the state has been sent.
    StateEnd, template 328, 40 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Of the request.
        8 correlation: u64,
        /// What came in front of this is true behind the transaction that ends here.
        16 position: Position,
        /// `OrderState` messages.
        24 orders: u32,
        /// `BalanceState` messages.
        28 balances: u32,
        /// Open orders that are left out: no more than 1,000 are told of, those that were placed first, and behind them
        /// what still takes.
        32 omitted: u32,
        /// Zero.
        36 reserved: u32,
    }
    reserved { reserved } texts {}
}
