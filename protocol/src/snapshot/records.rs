//! The records that a venue's state is written as, section by section. Written and read by the core's
//! snapshots; the byte tables in `FORMATS.md` are made from this file.

use crate::message::command::{Limits, SymbolFilters};
use crate::text::{AssetName, ClientOrderId, Name, SymbolName};
use crate::units::{
    AccountId, AssetId, Epoch, KeyId, OrderId, OrderListId, Position, Sequence, SessionId, SymbolId,
};
use bytemuck::{Pod, Zeroable};

/// Section of one `VenueRecord`.
pub const VENUE: u32 = 1;
/// Section of `AssetRecord`, by number.
pub const ASSETS: u32 = 2;
/// Section of `SymbolRecord`, by number.
pub const SYMBOLS: u32 = 3;
/// Section of `AverageRecord`, by symbol and then by minute modulo 60.
pub const AVERAGES: u32 = 4;
/// Section of `AccountRecord`, by number.
pub const ACCOUNTS: u32 = 5;
/// Section of `PairFeesRecord`, by account and symbol.
pub const PAIR_FEES: u32 = 6;
/// Section of `KeyRecord`, by number, from 1.
pub const KEYS: u32 = 7;
/// Section of `SessionRecord`, by number, from 1.
pub const SESSIONS: u32 = 8;
/// Section of `PlaceRecord`, by account, oldest placement first.
pub const PLACES: u32 = 9;
/// Section of `OrderRecord`: the books, by symbol, buys first, as they would trade.
pub const BOOKS: u32 = 10;
/// Section of `OrderRecord`: stops that wait, by symbol; first those that fire at their price or below.
pub const WAITING: u32 = 11;
/// Section of `OrderRecord`: stops that a trade has reached, by symbol, trade and number.
pub const REACHED: u32 = 12;
/// Section of `ListRecord`: open order lists, by symbol and as their limit legs would trade.
pub const LISTS: u32 = 13;
/// Section of `PendingRecord`, first in first.
pub const PENDING: u32 = 14;
/// Section of `BalanceRecord`, by account and asset; those of nothing are left out.
pub const BALANCES: u32 = 15;
/// Section of one `EndRecord`, the last one.
pub const END: u32 = 16;
/// Section of one `RecordLimitsRecord`, between balances and the end; only where limits of records are set.
pub const RECORD_LIMITS: u32 = 17;
/// Section of `RecordRecord`, behind the limits: owners before what they own, then by id.
pub const RECORDS: u32 = 18;

/// In place of the number of a place: none.
pub const NO_PLACE: u32 = u32::MAX;
/// Bit of `SymbolRecord::state`: the symbol has commission rates of its own.
pub const SYMBOL_HAS_RATES: u32 = 1;
/// Bit of `SessionRecord::flags`: it has a connection.
pub const SESSION_CONNECTED: u8 = 1;
/// Bit of `SessionRecord::flags`: its orders are cancelled when its connection ends.
pub const SESSION_CANCELS: u8 = 2;
/// Bit of `SessionRecord::flags`: its key was revoked while it asked for that.
pub const SESSION_SWEPT_WITH_KEY: u8 = 4;
/// Bit of `SessionRecord::flags`: it takes all events of its account.
pub const SESSION_ACCOUNT_EVENTS: u8 = 8;
/// Bit of `OrderRecord::flags`: it hides a part.
pub const ORDER_ICEBERG: u8 = 1;
/// Bit of `OrderRecord::flags`: a stop, in no book.
pub const ORDER_WAITING: u8 = 2;
/// Bit of `OrderRecord::flags`: it belongs to a list, or did.
pub const ORDER_OF_LIST: u8 = 4;
/// Bit of `OrderRecord::flags`: its list is open.
pub const ORDER_PAIRED: u8 = 8;
/// Bit of `OrderRecord::flags`: a buy of which a part was executed below its limit, or when it was reduced or
/// replaced.
pub const ORDER_OWN_LOCK: u8 = 16;
/// Bit of `RecordRecord::flags`: its content begins with a unique key of 32 bytes.
pub const RECORD_HAS_KEY: u32 = 1;
/// `PendingRecord::kind`: a `PendingOrderRecord` follows.
pub const PENDING_ORDER: u32 = 1;
/// `PendingRecord::kind`: the reached stops of the symbol have their turn; nothing follows.
pub const PENDING_REACHED: u32 = 2;
/// `PendingRecord::kind`: a `PendingSweepRecord` follows.
pub const PENDING_SWEEP: u32 = 3;
/// Bit of `PendingOrderRecord::flags`: a MARKET order by quote quantity that took all there was.
pub const PENDING_RAN_DRY: u8 = 1;
/// Bit of `PendingOrderRecord::flags`: as `ORDER_OWN_LOCK`.
pub const PENDING_OWN_LOCK: u8 = 2;
/// `PendingSweepRecord::whose`: everybody's orders, on one symbol.
pub const SWEEP_EVERYBODY: u32 = 0;
/// `PendingSweepRecord::whose`: an account's.
pub const SWEEP_ACCOUNT: u32 = 1;
/// `PendingSweepRecord::whose`: those of an account that a session placed.
pub const SWEEP_SESSION: u32 = 2;
/// `PendingSweepRecord::whose`: those of an account that the sessions of a revoked key placed.
pub const SWEEP_KEY: u32 = 3;
/// `PendingSweepRecord::whose`: an account's, because it was killed.
pub const SWEEP_KILLED: u32 = 4;

/// Stands in front of each section.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct SectionHeader {
    /// Which section it is.
    pub section: u32,
    /// Version of its records: 1.
    pub version: u32,
    /// How many there are; those that follow others as their part do not count.
    pub records: u64,
}

/// The venue as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct VenueRecord {
    /// Behaviour version.
    pub rules: u32,
    /// Zero.
    pub reserved: u32,
    /// Capacities and limits.
    pub limits: Limits,
    /// EXCHANGE_MAX_NUM_ORDERS; 0: no limit.
    pub max_orders: u32,
    /// EXCHANGE_MAX_NUM_ALGO_ORDERS; 0: no limit.
    pub max_algo_orders: u32,
    /// Time of the last accepted command.
    pub last_time_ns: u64,
    /// Last sequence of the engine's own session.
    pub engine_sequence: Sequence,
    /// Number of the next order list.
    pub next_order_list_id: OrderListId,
}

/// An asset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct AssetRecord {
    /// Unique name.
    pub name: AssetName,
    /// Deposits less withdrawals, 10⁻⁸.
    pub held: i64,
    /// Decimal places shown.
    pub precision: u8,
    /// Zero.
    pub reserved: [u8; 7],
}

/// A symbol without its orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct SymbolRecord {
    /// Unique name.
    pub name: SymbolName,
    /// Asset of quantities.
    pub base: AssetId,
    /// Asset of prices.
    pub quote: AssetId,
    /// Last order number given out.
    pub last_order_id: u64,
    /// Last trade number given out.
    pub last_trade_id: u64,
    /// Last aggregate trade number given out.
    pub last_aggregate_trade_id: u64,
    /// Last number of a change of the book.
    pub last_book_update_id: u64,
    /// Price of the last trade, 10⁻⁸; 0: none.
    pub last_price: i64,
    /// `SymbolStatus`.
    pub status: u8,
    /// Bit n is set when the order type with number n is taken.
    pub order_types: u8,
    /// `SYMBOL_*` bits of its definition.
    pub flags: u8,
    /// `PERMISSION_*` bits.
    pub permissions: u8,
    /// `SYMBOL_HAS_RATES`.
    pub state: u32,
    /// Commission rates of everybody on it, 10⁻⁸: as the maker.
    pub maker_rate: i64,
    /// As the taker.
    pub taker_rate: i64,
    /// As the buyer, besides.
    pub buyer_rate: i64,
    /// As the seller, besides.
    pub seller_rate: i64,
    /// Its filters.
    pub filters: SymbolFilters,
}

/// The trades of one minute on a symbol.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct AverageRecord {
    /// The symbol.
    pub symbol: SymbolId,
    /// Zero.
    pub reserved: u32,
    /// Minutes since the epoch, above 0.
    pub minute: u64,
    /// Sum of price × quantity, 10⁻¹⁶: lower half.
    pub notional_low: u64,
    /// Upper half.
    pub notional_high: u64,
    /// Sum of the quantities, 10⁻⁸: lower half.
    pub quantity_low: u64,
    /// Upper half.
    pub quantity_high: u64,
}

/// An account without its balances.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct AccountRecord {
    /// Unique name.
    pub name: Name,
    /// Commission as the maker, 10⁻⁸ of the received amount.
    pub maker_rate: i64,
    /// As the taker.
    pub taker_rate: i64,
    /// As the buyer, besides.
    pub buyer_rate: i64,
    /// As the seller, besides.
    pub seller_rate: i64,
    /// The calendar window of the first order-rate limit in which it last placed an order.
    pub window_0: u64,
    /// That of the second.
    pub window_1: u64,
    /// Orders in the first of them.
    pub count_0: u32,
    /// Orders in the second.
    pub count_1: u32,
    /// `ACCOUNT_*` bits.
    pub flags: u8,
    /// `PERMISSION_*` bits.
    pub permissions: u8,
    /// `SelfTradePrevention` of its orders that name none.
    pub self_trade_prevention: u8,
    /// 1: it places nothing.
    pub killed: u8,
    /// Zero.
    pub reserved: u32,
}

/// Commission rates of an account on a symbol.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct PairFeesRecord {
    /// The account.
    pub account: AccountId,
    /// The symbol.
    pub symbol: SymbolId,
    /// As the maker, 10⁻⁸ of the received amount.
    pub maker_rate: i64,
    /// As the taker.
    pub taker_rate: i64,
    /// As the buyer, besides.
    pub buyer_rate: i64,
    /// As the seller, besides.
    pub seller_rate: i64,
}

/// An API key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct KeyRecord {
    /// The account it acts for.
    pub account: AccountId,
    /// `KEY_*` bits.
    pub permissions: u8,
    /// 1: it is of no use any more.
    pub revoked: u8,
    /// Zero.
    pub reserved: [u8; 2],
}

/// A durable session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct SessionRecord {
    /// Its name, unique per key.
    pub name: Name,
    /// Its key; 0 for admin and adapter.
    pub key_id: KeyId,
    /// The last sequence that was decided.
    pub last_sequence: Sequence,
    /// The epoch of its last logon.
    pub epoch: Epoch,
    /// `Role`.
    pub role: u8,
    /// `Lane`.
    pub lane: u8,
    /// `SESSION_*` bits.
    pub flags: u8,
    /// Zero.
    pub reserved: u8,
}

/// A place among the orders of an account: of an open order, or one that pending work keeps. Places are
/// numbered from 0 in the order of this section.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct PlaceRecord {
    /// Position of the placement.
    pub placed: Position,
    /// The account.
    pub account: AccountId,
    /// Zero.
    pub reserved: u32,
}

/// An open order; if it has any flag, an `OrderDetailsRecord` follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct OrderRecord {
    /// Its number.
    pub order_id: OrderId,
    /// Limit price, 10⁻⁸; of a stop the price that fires it.
    pub price: i64,
    /// Base quantity open and shown, 10⁻⁸.
    pub remaining: i64,
    /// Base quantity, executed part included, 10⁻⁸.
    pub quantity: i64,
    /// Quote amount executed, 10⁻⁸.
    pub executed_quote: i64,
    /// Position of the transaction that gave it its place in the queue.
    pub priority: Position,
    /// Its owner.
    pub account: AccountId,
    /// Its symbol.
    pub symbol: SymbolId,
    /// The session that placed it.
    pub session: SessionId,
    /// Number of its place.
    pub place: u32,
    /// `Side`.
    pub side: u8,
    /// `OrderType`.
    pub order_type: u8,
    /// `TimeInForce`.
    pub time_in_force: u8,
    /// `ORDER_*` bits of this page.
    pub flags: u8,
    /// `SelfTradePrevention`; 0: the account's.
    pub self_trade_prevention: u8,
    /// Zero.
    pub reserved: [u8; 3],
    /// Its owner's name for it; empty for none.
    pub client_order_id: ClientOrderId,
}

/// What few orders have. What an order's flags do not ask for is zero, and the list −1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct OrderDetailsRecord {
    /// What an iceberg shows at a time, 10⁻⁸.
    pub iceberg: i64,
    /// What it hides at present, 10⁻⁸.
    pub hidden: i64,
    /// Limit of a stop once it has fired, 10⁻⁸; 0: it becomes MARKET.
    pub limit_price: i64,
    /// Number of the trade that reached it; 0: none yet.
    pub fired_by: u64,
    /// Its list, open or not.
    pub order_list_id: OrderListId,
    /// Of an order with a lock of its own: what it locks for the rest and all that it has paid, 10⁻⁸.
    pub own_lock: i64,
}

/// An open order list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct ListRecord {
    /// Its number.
    pub order_list_id: OrderListId,
    /// Number of its stop leg; that of the limit leg is the next.
    pub stop_order_id: OrderId,
    /// Its owner.
    pub account: AccountId,
    /// Its symbol.
    pub symbol: SymbolId,
    /// Its owner's name for it; empty for none.
    pub list_client_order_id: ClientOrderId,
}

/// Pending work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct PendingRecord {
    /// `PENDING_*`: what it is, and what follows.
    pub kind: u32,
    /// The symbol; of a sweep it may be `EVERY`.
    pub symbol: SymbolId,
}

/// An accepted order that is not done taking.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct PendingOrderRecord {
    /// Its number.
    pub order_id: OrderId,
    /// Limit price, 10⁻⁸; 0 for MARKET.
    pub price: i64,
    /// Base quantity, 10⁻⁸.
    pub quantity: i64,
    /// What is open of it, 10⁻⁸.
    pub remaining: i64,
    /// Quote amount executed, 10⁻⁸.
    pub executed_quote: i64,
    /// What it locked, 10⁻⁸; of a buy that was replaced, what it locked then and what it had paid.
    pub locked: i64,
    /// What it shows at a time once it rests, 10⁻⁸; 0: everything.
    pub iceberg: i64,
    /// Its list, or −1.
    pub order_list_id: OrderListId,
    /// Base quantity that it does not take because it would have traded with itself, 10⁻⁸; by rules 4 no more is
    /// added to it.
    pub prevented: i64,
    /// Position of its acceptance, or of its turn.
    pub priority: Position,
    /// Position of its placement.
    pub placed: Position,
    /// Price of its last fill, 10⁻⁸; 0: none.
    pub last_fill_price: i64,
    /// Time of it, ns since the epoch; of a fill by rules 3 cut to the millisecond.
    pub last_fill_time_ns: u64,
    /// Correlation of the command.
    pub correlation: u64,
    /// Sequence of the command.
    pub sequence: Sequence,
    /// Its owner.
    pub account: AccountId,
    /// Number of its place, or `NO_PLACE`.
    pub place: u32,
    /// Order count of the account at its acceptance, first interval.
    pub order_count_0: u32,
    /// Second interval.
    pub order_count_1: u32,
    /// The session that placed it.
    pub placed_by: SessionId,
    /// The session that waits for its terminal reply.
    pub session: SessionId,
    /// That session's epoch then.
    pub epoch: Epoch,
    /// `Side`.
    pub side: u8,
    /// `OrderType`.
    pub order_type: u8,
    /// `TimeInForce`.
    pub time_in_force: u8,
    /// `PENDING_*` bits of an order.
    pub flags: u8,
    /// `SelfTradePrevention` that it names; 0: none.
    pub self_trade_prevention: u8,
    /// `SelfTradePrevention` that holds now.
    pub prevention_now: u8,
    /// Zero.
    pub reserved: [u8; 6],
    /// Its owner's name for it; empty for none.
    pub client_order_id: ClientOrderId,
}

/// A sweep over many orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct PendingSweepRecord {
    /// The session or the key that it is about; 0 where it is about neither.
    pub detail: u64,
    /// Position of its command: only orders placed before it are swept.
    pub position: Position,
    /// Orders that it has ended.
    pub orders: u64,
    /// Lists that it has ended.
    pub lists: u64,
    /// Correlation of the command.
    pub correlation: u64,
    /// Sequence of the command.
    pub sequence: Sequence,
    /// The session that waits for its terminal reply; 0: nobody.
    pub session: SessionId,
    /// That session's epoch then.
    pub epoch: Epoch,
    /// `SWEEP_*`.
    pub whose: u32,
    /// The account, or `EVERY`.
    pub account: AccountId,
    /// Number of the place behind which it goes on, or `NO_PLACE`: at the beginning.
    pub place: u32,
    /// Zero.
    pub reserved: u32,
}

/// What an account has of an asset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct BalanceRecord {
    /// The account.
    pub account: AccountId,
    /// The asset.
    pub asset: AssetId,
    /// At its disposal, 10⁻⁸.
    pub free: i64,
    /// Set aside for open orders, 10⁻⁸: what those lock.
    pub locked: i64,
}

/// Capacities of records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct RecordLimitsRecord {
    /// Records.
    pub records: u32,
    /// Blocks of 60 bytes.
    pub blocks: u32,
}

/// A record without its content, which follows: as many `RecordPart` as it fills.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct RecordRecord {
    /// Its id.
    pub id: [u8; 12],
    /// Id of its owner; all zeros: none.
    pub owner: [u8; 12],
    /// Its kind.
    pub kind: u32,
    /// Its version.
    pub version: u32,
    /// Bytes that it carries, its unique key not counted.
    pub length: u32,
    /// `RECORD_*` bits of this page.
    pub flags: u32,
}

/// A part of a record's content: its unique key and what it carries, one behind the other; zeros behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct RecordPart {
    /// The bytes.
    pub bytes: [u8; 64],
}

impl Default for RecordPart {
    fn default() -> Self {
        Self { bytes: [0; 64] }
    }
}

/// The end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct EndRecord {
    /// The state hash.
    pub state_hash: u64,
}

const _: () = {
    assert!(size_of::<SectionHeader>() == 16);
    assert!(size_of::<VenueRecord>() == 96);
    assert!(size_of::<AssetRecord>() == 32);
    assert!(size_of::<SymbolRecord>() == 112 + size_of::<SymbolFilters>());
    assert!(size_of::<AverageRecord>() == 48);
    assert!(size_of::<AccountRecord>() == 96);
    assert!(size_of::<PairFeesRecord>() == 40);
    assert!(size_of::<KeyRecord>() == 8);
    assert!(size_of::<SessionRecord>() == 56);
    assert!(size_of::<PlaceRecord>() == 16);
    assert!(size_of::<OrderRecord>() == 112);
    assert!(size_of::<OrderDetailsRecord>() == 48);
    assert!(size_of::<ListRecord>() == 64);
    assert!(size_of::<PendingRecord>() == 8);
    assert!(size_of::<PendingOrderRecord>() == 200);
    assert!(size_of::<PendingSweepRecord>() == 72);
    assert!(size_of::<BalanceRecord>() == 24);
    assert!(size_of::<RecordLimitsRecord>() == 8);
    assert!(size_of::<RecordRecord>() == 40);
    assert!(size_of::<RecordPart>() == 64);
    assert!(size_of::<EndRecord>() == 8);
};
