//! What the read-only views show.

use crate::FeeRates;
use crate::records::{RecordId, UniqueKey};
use crate::symbols::SymbolCounters;
use touchline_protocol::message::command::SymbolFilters;
use touchline_protocol::message::enums::{
    Lane, OrderType, Role, SelfTradePrevention, Side, SymbolStatus, TimeInForce,
};
use touchline_protocol::text::{AssetName, ClientOrderId, Name, SymbolName};
use touchline_protocol::units::{
    AccountId, Amount, AssetId, Epoch, KeyId, OrderId, OrderListId, Position, Price, Qty, Sequence,
    SessionId, SymbolId,
};

/// What the next `RunPending` continues, and who waits for its terminal reply. Nobody waits (session
/// [`SessionId::ENGINE`]) for triggered stops and for what the end of a connection brings about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PendingHead {
    /// The symbol whose book is reserved for it, or
    /// [`EVERY`](touchline_protocol::message::command::EVERY).
    pub symbol: SymbolId,
    /// The session that sent the command.
    pub session: SessionId,
    /// That session's epoch then: a newer connection is not owed the reply.
    pub epoch: Epoch,
    /// Correlation of the command.
    pub correlation: u64,
    /// Sequence of the command.
    pub sequence: Sequence,
}

/// A durable session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionView {
    /// Its name, unique per key.
    pub name: Name,
    /// Its key; 0 for admin and adapter.
    pub key_id: KeyId,
    /// What it may do.
    pub role: Role,
    /// How urgently it is polled.
    pub lane: Lane,
    /// The epoch of its last logon.
    pub epoch: Epoch,
    /// The last sequence that was decided.
    pub last_sequence: Sequence,
    /// It has a connection.
    pub connected: bool,
    /// Its orders are cancelled when the connection ends.
    pub cancel_on_disconnect: bool,
    /// It takes all events of its account.
    pub account_events: bool,
}

/// An asset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AssetView {
    /// Its unique name.
    pub name: AssetName,
    /// Decimal places shown.
    pub precision: u8,
    /// Deposits less withdrawals over all accounts.
    pub held: Amount,
}

/// An account.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AccountView {
    /// Its unique name.
    pub name: Name,
    /// Commission as the maker, 10⁻⁸ of the received amount.
    pub maker_rate: i64,
    /// Commission as the taker, 10⁻⁸ of the received amount.
    pub taker_rate: i64,
    /// Commission as the buyer, besides, 10⁻⁸ of the received amount.
    pub buyer_rate: i64,
    /// Commission as the seller, besides, 10⁻⁸ of the received amount.
    pub seller_rate: i64,
    /// `ACCOUNT_*` bits.
    pub flags: u8,
    /// `PERMISSION_*` bits.
    pub permissions: u8,
    /// Of its orders that name none.
    pub self_trade_prevention: SelfTradePrevention,
    /// The kill switch: it places nothing.
    pub killed: bool,
}

/// An API key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyView {
    /// The account it acts for.
    pub account: AccountId,
    /// `KEY_*` bits.
    pub permissions: u8,
    /// It is of no use any more.
    pub revoked: bool,
}

/// A symbol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SymbolView {
    /// Its unique name.
    pub name: SymbolName,
    /// Asset of quantities.
    pub base: AssetId,
    /// Asset of prices.
    pub quote: AssetId,
    /// Its status.
    pub status: SymbolStatus,
    /// Bit n is set when the order type with wire number n is taken.
    pub order_types: u8,
    /// `SYMBOL_*` bits.
    pub flags: u8,
    /// `PERMISSION_*` bits.
    pub permissions: u8,
    /// Its filters.
    pub filters: SymbolFilters,
    /// Commission rates of everybody on it, if they are not each account's own.
    pub rates: Option<FeeRates>,
    /// The last numbers that it gave out.
    pub counters: SymbolCounters,
}

/// An open order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenOrder {
    /// Its number.
    pub order_id: OrderId,
    /// Its owner.
    pub account: AccountId,
    /// Its symbol.
    pub symbol: SymbolId,
    /// The session that placed it.
    pub session: SessionId,
    /// Its side.
    pub side: Side,
    /// Its type.
    pub order_type: OrderType,
    /// Its time in force.
    pub time_in_force: TimeInForce,
    /// Its limit price; 0 for one that has none: a stop, or what takes as MARKET.
    pub price: Price,
    /// The price that fires a waiting stop; 0 for every other order.
    pub stop_price: Price,
    /// Its base quantity, executed part included.
    pub quantity: Qty,
    /// Base quantity still open, hidden parts included.
    pub remaining: Qty,
    /// What of it the book shows; 0 while it waits or takes.
    pub visible: Qty,
    /// What an iceberg shows at a time; 0 for other orders.
    pub iceberg: Qty,
    /// Quote executed.
    pub executed_quote: Amount,
    /// What it has locked: quote for a buy, base for a sell.
    pub locked: Amount,
    /// Position of the transaction that gave it its place in the queue, or will have.
    pub priority: Position,
    /// Against trades with its own account when it takes, if it names it.
    pub self_trade_prevention: Option<SelfTradePrevention>,
    /// The client's name for it; empty for none.
    pub client_order_id: ClientOrderId,
    /// The list that it belongs to, also after that has come to its end.
    pub order_list_id: OrderListId,
}

/// An open order list: both its orders are open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenOrderList {
    /// Its number.
    pub order_list_id: OrderListId,
    /// Its owner.
    pub account: AccountId,
    /// Its symbol.
    pub symbol: SymbolId,
    /// The order that waits for its trigger, or has been triggered and waits for its turn.
    pub stop_order_id: OrderId,
    /// The order that rests in the book.
    pub limit_order_id: OrderId,
    /// The client's name for it; empty for none.
    pub list_client_order_id: ClientOrderId,
}

/// How much of each capacity is in use.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Assets.
    pub assets: u32,
    /// Symbols.
    pub symbols: u32,
    /// Accounts, the fee account included.
    pub accounts: u32,
    /// Keys ever made.
    pub keys: u32,
    /// Sessions.
    pub sessions: u32,
    /// Open orders.
    pub open_orders: u32,
    /// Occupied price levels.
    pub price_levels: u32,
    /// Entries of pending work.
    pub pending_work: u32,
    /// Records.
    pub records: u32,
    /// Blocks that records take.
    pub record_blocks: u32,
}

/// A record without what it carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordView {
    /// Its kind.
    pub kind: u32,
    /// Its version, from 1.
    pub version: u32,
    /// Its owner's id; all zeros: none.
    pub owner: RecordId,
    /// Its unique key; all zeros: none.
    pub unique_key: UniqueKey,
    /// Bytes that it carries.
    pub length: u32,
    /// How many records it owns.
    pub owned: u32,
}
