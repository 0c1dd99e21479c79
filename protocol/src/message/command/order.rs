//! Commands about orders: the hot lane's, template ids 1-39.

use super::CommandHeader;
use crate::message::{MessageHeader, message};
use crate::text::ClientOrderId;
use crate::units::{AccountId, OrderId, OrderListId, SymbolId};

/// Check the order against all static rules and stop there (`/order/test`).
pub const ORDER_VALIDATE_ONLY: u8 = 1;

/// Bytes of a `NewOrder` in its short form, two slots of a ring: without its last 16, which are zero.
pub const SHORT_ORDER_BYTES: usize = 128;

message! {
    /// Places an order. Quantities and prices that the type does not use are zero.
    NewOrder, template 1, 144 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Who and when.
        8 command: CommandHeader,
        /// The symbol.
        48 symbol: SymbolId,
        /// `Side`.
        52 side: u8,
        /// `OrderType`.
        53 order_type: u8,
        /// `TimeInForce`; 0 for types that have none.
        54 time_in_force: u8,
        /// `ORDER_*` bits.
        55 flags: u8,
        /// Limit price, 10⁻⁸.
        56 price: i64,
        /// Base quantity, 10⁻⁸.
        64 quantity: i64,
        /// Quote quantity of a MARKET order, 10⁻⁸.
        72 quote_quantity: i64,
        /// Trigger price, 10⁻⁸.
        80 stop_price: i64,
        /// Visible quantity of an iceberg, 10⁻⁸.
        88 iceberg_quantity: i64,
        /// The client's name for the order; empty for none.
        96 client_order_id: ClientOrderId,
        /// `SelfTradePrevention`; 0: the account's. Other values from rules 2 on.
        136 self_trade_prevention: u8,
        /// Zero.
        137 reserved: [u8; 7],
    }
    reserved { reserved } texts { client_order_id }
}

message! {
    /// Cancels an open order by its number: one cache line.
    CancelOrder, template 2, 64 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Who and when.
        8 command: CommandHeader,
        /// The symbol.
        48 symbol: SymbolId,
        /// Zero.
        52 reserved: u32,
        /// The order.
        56 order_id: OrderId,
    }
    reserved { reserved } texts {}
}

message! {
    /// Cancels an open order by number or client order id, and names the cancel itself.
    CancelOrderNamed, template 3, 144 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Who and when.
        8 command: CommandHeader,
        /// The symbol.
        48 symbol: SymbolId,
        /// Zero.
        52 reserved: u32,
        /// The order; 0 to look up by `client_order_id`. If both are given they must agree.
        56 order_id: OrderId,
        /// The order's client order id; empty to look up by `order_id`.
        64 client_order_id: ClientOrderId,
        /// The client's name for this cancel.
        104 cancel_client_order_id: ClientOrderId,
    }
    reserved { reserved } texts { client_order_id, cancel_client_order_id }
}

message! {
    /// Lowers an open order's quantity; it keeps its time priority.
    ReduceOrder, template 4, 72 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Who and when.
        8 command: CommandHeader,
        /// The symbol.
        48 symbol: SymbolId,
        /// Zero.
        52 reserved: u32,
        /// The order.
        56 order_id: OrderId,
        /// The order's new total quantity (executed part included), 10⁻⁸: below the present one,
        /// above what is executed.
        64 new_quantity: i64,
    }
    reserved { reserved } texts {}
}

message! {
    /// Changes an open order's price or quantity; it keeps its number. A lower quantity at the same
    /// price keeps its place; anything else gives it a new one, and it may take first.
    ReplaceOrder, template 5, 80 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Who and when.
        8 command: CommandHeader,
        /// The symbol.
        48 symbol: SymbolId,
        /// Zero.
        52 reserved: u32,
        /// The order.
        56 order_id: OrderId,
        /// Its limit price from now on, 10⁻⁸.
        64 new_price: i64,
        /// Its total quantity from now on (executed part included), 10⁻⁸: above what is executed.
        72 new_quantity: i64,
    }
    reserved { reserved } texts {}
}

message! {
    /// Cancels an order and places another, both or neither: the new order is judged as if the old one
    /// were gone. Up to the cancel's fields it is laid out as [`NewOrder`].
    CancelReplace, template 6, 232 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Who and when.
        8 command: CommandHeader,
        /// The symbol of both.
        48 symbol: SymbolId,
        /// `Side`.
        52 side: u8,
        /// `OrderType`.
        53 order_type: u8,
        /// `TimeInForce`; 0 for types that have none.
        54 time_in_force: u8,
        /// Zero: a cancel cannot be validated only.
        55 flags: u8,
        /// Limit price, 10⁻⁸.
        56 price: i64,
        /// Base quantity, 10⁻⁸.
        64 quantity: i64,
        /// Quote quantity of a MARKET order, 10⁻⁸.
        72 quote_quantity: i64,
        /// Trigger price, 10⁻⁸.
        80 stop_price: i64,
        /// Visible quantity of an iceberg, 10⁻⁸.
        88 iceberg_quantity: i64,
        /// The client's name for the new order; empty for none.
        96 client_order_id: ClientOrderId,
        /// `SelfTradePrevention`; 0: the account's.
        136 self_trade_prevention: u8,
        /// Zero.
        137 reserved: [u8; 7],
        /// The order to cancel; 0 to look up by `canceled_client_order_id`. If both are given they must
        /// agree.
        144 canceled_order_id: OrderId,
        /// Client order id of the order to cancel; empty to look up by `canceled_order_id`.
        152 canceled_client_order_id: ClientOrderId,
        /// The client's name for the cancel.
        192 cancel_client_order_id: ClientOrderId,
    }
    reserved { reserved } texts { client_order_id, canceled_client_order_id, cancel_client_order_id }
}

message! {
    /// Places a list of two orders of which one cancels the other (OCO): a LIMIT_MAKER at `price`, and a
    /// STOP_LOSS, or with a stop limit price a STOP_LOSS_LIMIT (spot contract §4, facts §5.5).
    PlaceOrderList, template 7, 224 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Who and when.
        8 command: CommandHeader,
        /// The symbol.
        48 symbol: SymbolId,
        /// `Side` of both.
        52 side: u8,
        /// `TimeInForce` of the stop leg; 0 without a stop limit price.
        53 stop_limit_time_in_force: u8,
        /// `ORDER_*` bits.
        54 flags: u8,
        /// `SelfTradePrevention` of the stop leg; 0: the account's.
        55 self_trade_prevention: u8,
        /// Base quantity of each, 10⁻⁸.
        56 quantity: i64,
        /// Price of the limit leg, 10⁻⁸.
        64 price: i64,
        /// Visible quantity of the limit leg, 10⁻⁸; 0: all.
        72 limit_iceberg_quantity: i64,
        /// Trigger price of the stop leg, 10⁻⁸.
        80 stop_price: i64,
        /// Limit price of the stop leg, 10⁻⁸; 0: it becomes MARKET.
        88 stop_limit_price: i64,
        /// Visible quantity of the stop leg, 10⁻⁸; 0: all.
        96 stop_iceberg_quantity: i64,
        /// The client's name for the list; empty for none.
        104 list_client_order_id: ClientOrderId,
        /// The client's name for the limit leg; empty for none.
        144 limit_client_order_id: ClientOrderId,
        /// The client's name for the stop leg; empty for none.
        184 stop_client_order_id: ClientOrderId,
    }
    reserved {} texts { list_client_order_id, limit_client_order_id, stop_client_order_id }
}

message! {
    /// Cancels both orders of a list.
    CancelOrderList, template 8, 144 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Who and when.
        8 command: CommandHeader,
        /// The symbol.
        48 symbol: SymbolId,
        /// Zero.
        52 reserved: u32,
        /// The list; -1 to look up by `list_client_order_id`, for 0 is a list's number. If both are given they
        /// must agree.
        56 order_list_id: OrderListId,
        /// The client's name for the list; empty to look up by `order_list_id`.
        64 list_client_order_id: ClientOrderId,
        /// The client's name for this cancel.
        104 cancel_client_order_id: ClientOrderId,
    }
    reserved { reserved } texts { list_client_order_id, cancel_client_order_id }
    default { order_list_id: OrderListId::NONE }
}

message! {
    /// Cancels all open orders of the account on a symbol, waiting stops and lists included; rejected with
    /// `UnknownOrder` if there is none.
    CancelAll, template 9, 96 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Who and when.
        8 command: CommandHeader,
        /// The symbol.
        48 symbol: SymbolId,
        /// Zero.
        52 reserved: u32,
        /// The client's name for this cancel.
        56 cancel_client_order_id: ClientOrderId,
    }
    reserved { reserved } texts { cancel_client_order_id }
}

/// In place of a symbol or an account: all of them.
pub const EVERY: u32 = u32::MAX;

message! {
    /// Cancels the open orders of the account, on one symbol or on all, that were placed by whatever
    /// session or by the sender's own. It is accepted, and cancels nothing, if there is none.
    MassCancel, template 10, 56 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Who and when.
        8 command: CommandHeader,
        /// The symbol, or [`EVERY`].
        48 symbol: SymbolId,
        /// `CancelScope`.
        52 scope: u8,
        /// Zero.
        53 reserved: [u8; 3],
    }
    reserved { reserved } texts {}
    default { symbol: SymbolId(EVERY) }
}

message! {
    /// The kill switch of an account: it takes no more orders and all that it has open is ended (Expired;
    /// by rules 2 to 7 Canceled); or, switched back, takes orders again. From an admin's session of either lane.
    KillAccount, template 11, 56 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Who and when.
        8 command: CommandHeader,
        /// The account.
        48 account: AccountId,
        /// 1: killed; 0: no more.
        52 killed: u8,
        /// Zero.
        53 reserved: [u8; 3],
    }
    reserved { reserved } texts {}
    default { killed: 1 }
}
