//! Commands that define the venue and move money: the cold lane's, template ids 40-79.

use super::CommandHeader;
use crate::message::enums::OrderType;
use crate::message::{MessageHeader, message};
use crate::text::{AssetName, Name, SymbolName};
use crate::units::{AccountId, AssetId, KeyId, SymbolId};
use bytemuck::{Pod, Zeroable};

message! {
    /// Sets the behaviour version of the core. Behaviour changes are gated on it.
    SetRules, template 40, 56 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Who and when.
        8 command: CommandHeader,
        /// The version.
        48 rules: u32,
        /// Zero.
        52 reserved: u32,
    }
    reserved { reserved } texts {}
}

/// Capacities and limits of the venue: logical counts, core state (56 bytes).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct Limits {
    /// Assets.
    pub assets: u32,
    /// Symbols.
    pub symbols: u32,
    /// Accounts, the fee account included.
    pub accounts: u32,
    /// API keys ever made.
    pub keys: u32,
    /// Durable sessions.
    pub sessions: u32,
    /// Open orders over all symbols, waiting stops included.
    pub open_orders: u32,
    /// Occupied price levels over all symbols, those of waiting stops included, and one kept for each stop,
    /// and for each order that takes in parts, that may still rest.
    pub price_levels: u32,
    /// Entries of pending work; the sweeps of killed accounts and revoked keys have room besides, and so have the
    /// turns of stops when halts end.
    pub pending_work: u32,
    /// Steps that one transaction takes at most, 1 to 512: a maker met is one, an order ended is two.
    pub max_steps: u32,
    /// Orders per account and first interval (0: unlimited).
    pub orders_per_interval_0: u32,
    /// Orders per account and second interval (0: unlimited).
    pub orders_per_interval_1: u32,
    /// Length of the first interval in seconds, 1 to 86400.
    pub interval_0_seconds: u32,
    /// Length of the second interval in seconds, 1 to 86400.
    pub interval_1_seconds: u32,
    /// Zero.
    pub reserved: u32,
}

const _: () = assert!(size_of::<Limits>() == 56);

message! {
    /// Sets capacities and limits. Refused below what is in use.
    SetLimits, template 41, 104 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Who and when.
        8 command: CommandHeader,
        /// The limits; `limits.reserved` is zero.
        48 limits: Limits,
    }
    reserved {} texts {}
}

message! {
    /// Defines the next asset.
    DefineAsset, template 42, 72 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Who and when.
        8 command: CommandHeader,
        /// Unique name.
        48 name: AssetName,
        /// Decimal places shown for the asset, at most 8.
        64 precision: u8,
        /// Zero.
        65 reserved: [u8; 7],
    }
    reserved { reserved } texts { name }
}

/// Filters of a symbol, all values in 10⁻⁸ but counts and minutes; 0 disables a rule (spot contract
/// §2 Filters). 144 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct SymbolFilters {
    /// PRICE_FILTER minPrice.
    pub price_min: i64,
    /// PRICE_FILTER maxPrice.
    pub price_max: i64,
    /// PRICE_FILTER tickSize.
    pub tick_size: i64,
    /// LOT_SIZE minQty.
    pub lot_min: i64,
    /// LOT_SIZE maxQty.
    pub lot_max: i64,
    /// LOT_SIZE stepSize.
    pub lot_step: i64,
    /// MARKET_LOT_SIZE minQty.
    pub market_lot_min: i64,
    /// MARKET_LOT_SIZE maxQty.
    pub market_lot_max: i64,
    /// MARKET_LOT_SIZE stepSize.
    pub market_lot_step: i64,
    /// PERCENT_PRICE multiplierUp.
    pub percent_price_up: i64,
    /// PERCENT_PRICE multiplierDown.
    pub percent_price_down: i64,
    /// MIN_NOTIONAL minNotional.
    pub min_notional: i64,
    /// MAX_POSITION maxPosition.
    pub max_position: i64,
    /// PERCENT_PRICE avgPriceMins.
    pub percent_price_minutes: u32,
    /// MIN_NOTIONAL avgPriceMins.
    pub min_notional_minutes: u32,
    /// ICEBERG_PARTS limit; 0: 1,000.
    pub iceberg_parts: u32,
    /// MAX_NUM_ORDERS maxNumOrders.
    pub max_orders: u32,
    /// MAX_NUM_ALGO_ORDERS maxNumAlgoOrders.
    pub max_algo_orders: u32,
    /// MAX_NUM_ICEBERG_ORDERS maxNumIcebergOrders.
    pub max_iceberg_orders: u32,
    /// MIN_NOTIONAL applyToMarket: 0 or 1.
    pub min_notional_applies_to_market: u8,
    /// Zero.
    pub reserved: [u8; 7],
    /// Zero.
    pub reserved_1: u64,
}

const _: () = assert!(size_of::<SymbolFilters>() == 144);

/// Parts of an iceberg on a symbol that sets no ICEBERG_PARTS: an aggressor meets each part one by one, so
/// without any bound one order could keep a symbol busy for as long as its owner likes.
const ICEBERG_PARTS_DEFAULT: u32 = 1000;

impl SymbolFilters {
    /// How many parts an iceberg may have at the most, where icebergs are taken.
    #[must_use]
    pub const fn iceberg_parts_max(&self) -> u32 {
        if self.iceberg_parts == 0 { ICEBERG_PARTS_DEFAULT } else { self.iceberg_parts }
    }

    /// Its decimals, in 10⁻⁸, in the order of the fields.
    #[must_use]
    pub const fn decimals(&self) -> [i64; 13] {
        [
            self.price_min,
            self.price_max,
            self.tick_size,
            self.lot_min,
            self.lot_max,
            self.lot_step,
            self.market_lot_min,
            self.market_lot_max,
            self.market_lot_step,
            self.percent_price_up,
            self.percent_price_down,
            self.min_notional,
            self.max_position,
        ]
    }

    /// Its numbers of minutes, parts and orders, which stand behind the decimals, in the order of the fields.
    #[must_use]
    pub const fn counts(&self) -> [u32; 6] {
        [
            self.percent_price_minutes,
            self.min_notional_minutes,
            self.iceberg_parts,
            self.max_orders,
            self.max_algo_orders,
            self.max_iceberg_orders,
        ]
    }
}

impl OrderType {
    /// True if it is among the types of a symbol or a rule: bit n stands for the type with wire number n.
    #[inline]
    #[must_use]
    pub const fn is_in(self, types: u8) -> bool {
        types & 1 << self.to_wire() != 0
    }
}

/// The symbol takes icebergs.
pub const SYMBOL_ICEBERG: u8 = 1;
/// The symbol takes order lists (OCO).
pub const SYMBOL_OCO: u8 = 2;
/// The symbol takes MARKET orders by quote quantity.
pub const SYMBOL_QUOTE_QUANTITY: u8 = 4;

message! {
    /// Defines the next symbol.
    DefineSymbol, template 43, 240 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Who and when.
        8 command: CommandHeader,
        /// Unique name.
        48 name: SymbolName,
        /// Asset of quantities.
        72 base: AssetId,
        /// Asset of prices.
        76 quote: AssetId,
        /// `SymbolStatus` to begin with.
        80 status: u8,
        /// Bit n is set when the order type with wire number n is taken.
        81 order_types: u8,
        /// `SYMBOL_*` bits.
        82 flags: u8,
        /// Bits of `PERMISSION_*`.
        83 permissions: u8,
        /// Zero.
        84 reserved: u32,
        /// Filters.
        88 filters: SymbolFilters,
        /// Zero.
        232 reserved_1: u64,
    }
    reserved { reserved, reserved_1 } texts { name }
}

message! {
    /// Changes a symbol's status. By rules 5 no stop is triggered until it is TRADING; then those that the last price
    /// reaches have their turn.
    SetSymbolStatus, template 44, 56 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Who and when.
        8 command: CommandHeader,
        /// The symbol.
        48 symbol: SymbolId,
        /// `SymbolStatus`.
        52 status: u8,
        /// Zero.
        53 reserved: [u8; 3],
    }
    reserved { reserved } texts {}
}

message! {
    /// Expires all open orders of a symbol, in whatever status it is (maintenance).
    ExpireAll, template 50, 56 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Who and when.
        8 command: CommandHeader,
        /// The symbol.
        48 symbol: SymbolId,
        /// Zero.
        52 reserved: u32,
    }
    reserved { reserved } texts {}
}

message! {
    /// Sets what an account may do.
    SetAccount, template 51, 56 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Who and when.
        8 command: CommandHeader,
        /// The account; not the fee account.
        48 account: AccountId,
        /// `ACCOUNT_*` bits.
        52 flags: u8,
        /// `PERMISSION_*` bits.
        53 permissions: u8,
        /// `SelfTradePrevention` of its orders that name none; 0 as None.
        54 self_trade_prevention: u8,
        /// Zero.
        55 reserved: u8,
    }
    reserved { reserved } texts {}
}

message! {
    /// Sets commission rates, 10⁻⁸ of the received amount. A trade costs its maker the maker rate, its
    /// taker the taker rate, and besides its buyer the buyer rate and its seller the seller rate
    /// (facts §4). What was set for an account on a symbol comes before what was set for the symbol,
    /// that before what was set for the account.
    SetFees, template 52, 88 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Who and when.
        8 command: CommandHeader,
        /// The account, or [`EVERY`](super::EVERY).
        48 account: AccountId,
        /// The symbol, or [`EVERY`](super::EVERY); at least one of the two is named.
        52 symbol: SymbolId,
        /// 0 to 10⁸; with the higher of buyer and seller rate at most 10⁸. All four below zero: what was
        /// set for this pair or symbol is withdrawn.
        56 maker_rate: i64,
        /// Likewise.
        64 taker_rate: i64,
        /// 0 to 10⁸.
        72 buyer_rate: i64,
        /// 0 to 10⁸.
        80 seller_rate: i64,
    }
    reserved {} texts {}
}

message! {
    /// Changes a symbol. Its ticks and steps, and what they count from (of MARKET_LOT_SIZE by rules 4), change
    /// only while it is not TRADING and nothing is open on it. Everything else binds new orders and changes
    /// of open ones; MARKET_LOT_SIZE also stops that become MARKET at their turn.
    ChangeSymbol, template 53, 208 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Who and when.
        8 command: CommandHeader,
        /// The symbol.
        48 symbol: SymbolId,
        /// Bit n is set when the order type with wire number n is taken.
        52 order_types: u8,
        /// `SYMBOL_*` bits.
        53 flags: u8,
        /// Bits of `PERMISSION_*`.
        54 permissions: u8,
        /// Zero.
        55 reserved: u8,
        /// Filters.
        56 filters: SymbolFilters,
        /// Zero.
        200 reserved_1: u64,
    }
    reserved { reserved, reserved_1 } texts {}
}

message! {
    /// Sets the filters of the exchange: they count the open orders of an account on all symbols.
    SetVenueFilters, template 54, 56 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Who and when.
        8 command: CommandHeader,
        /// EXCHANGE_MAX_NUM_ORDERS maxNumOrders; 0: no limit.
        48 max_orders: u32,
        /// EXCHANGE_MAX_NUM_ALGO_ORDERS maxNumAlgoOrders; 0: no limit.
        52 max_algo_orders: u32,
    }
    reserved {} texts {}
}

/// Permission group SPOT, of accounts and of symbols.
pub const PERMISSION_SPOT: u8 = 1;
/// Permission group MARGIN.
pub const PERMISSION_MARGIN: u8 = 2;
/// Permission group LEVERAGED.
pub const PERMISSION_LEVERAGED: u8 = 4;
/// Permission group TRD_GRP_002.
pub const PERMISSION_TRADE_GROUP_2: u8 = 8;

/// The account may place orders.
pub const ACCOUNT_CAN_TRADE: u8 = 1;
/// The account may withdraw.
pub const ACCOUNT_CAN_WITHDRAW: u8 = 2;
/// The account may deposit.
pub const ACCOUNT_CAN_DEPOSIT: u8 = 4;

message! {
    /// Creates the next account.
    CreateAccount, template 45, 104 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Who and when.
        8 command: CommandHeader,
        /// Unique name.
        48 name: Name,
        /// Commission as the maker, 10⁻⁸ of the received amount, 0 to 10⁸.
        80 maker_rate: i64,
        /// Commission as the taker, 10⁻⁸ of the received amount, 0 to 10⁸.
        88 taker_rate: i64,
        /// `ACCOUNT_*` bits.
        96 flags: u8,
        /// `PERMISSION_*` bits.
        97 permissions: u8,
        /// Zero.
        98 reserved: [u8; 6],
    }
    reserved { reserved } texts { name }
}

message! {
    /// Adds to an account's free balance from outside the venue.
    Deposit, template 46, 64 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Who and when.
        8 command: CommandHeader,
        /// The account.
        48 account: AccountId,
        /// The asset.
        52 asset: AssetId,
        /// 10⁻⁸ of the asset, above 0.
        56 amount: i64,
    }
    reserved {} texts {}
}

message! {
    /// Takes from an account's free balance out of the venue.
    Withdraw, template 47, 64 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Who and when.
        8 command: CommandHeader,
        /// The account.
        48 account: AccountId,
        /// The asset.
        52 asset: AssetId,
        /// 10⁻⁸ of the asset, above 0.
        56 amount: i64,
    }
    reserved {} texts {}
}

/// The key may place and cancel orders over REST (spot contract §4 TRADE).
pub const KEY_TRADE: u8 = 1;
/// The key may read its account (USER_DATA).
pub const KEY_USER_DATA: u8 = 2;
/// The key may open user data streams (USER_STREAM).
pub const KEY_USER_STREAM: u8 = 4;
/// The key may read what needs a key only (MARKET_DATA).
pub const KEY_MARKET_DATA: u8 = 8;
/// The key may log on to the binary protocol, as a trader or to read only.
pub const KEY_BINARY: u8 = 16;
/// Every kind.
pub const KEY_ALL: u8 = 31;

message! {
    /// Creates the next API key of an account.
    CreateKey, template 48, 56 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Who and when.
        8 command: CommandHeader,
        /// The account.
        48 account: AccountId,
        /// `KEY_*` bits.
        52 permissions: u8,
        /// Zero.
        53 reserved: [u8; 3],
    }
    reserved { reserved } texts {}
}

message! {
    /// Revokes an API key and ends its sessions. What sessions placed that asked for it
    /// (`LOGON_CANCEL_ON_DISCONNECT`) is cancelled; all else that was placed with the key stays open, for another key of
    /// the account to cancel, or `KillAccount` to end.
    RevokeKey, template 49, 56 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Who and when.
        8 command: CommandHeader,
        /// The key.
        48 key: KeyId,
    }
    reserved {} texts {}
}
