//! What the history keeps: one fixed-size row per trade, per side of a trade and per candle. Made by
//! the fold, read by the handlers.
//!
//! Every table is sorted by the same kind of key: a group, within which rows count up. So a page is
//! one range of one group, and what comes last in the venue comes last in its group.

use std::collections::BTreeMap;

use bytemuck::{Pod, Zeroable};
use touchline_protocol::units::{AccountId, SymbolId};

use super::candles::{Candle, Tier};

/// Where a row stands in its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// Rows that are read together.
    pub(crate) group: u64,
    /// Counts up within the group.
    pub(crate) id: u64,
}

/// The group of a symbol's trades.
pub(crate) const fn of_symbol(symbol: SymbolId) -> u64 {
    symbol.0 as u64
}

/// The group of an account's orders and trades on a symbol.
pub(crate) const fn of_account(account: AccountId, symbol: SymbolId) -> u64 {
    (account.0 as u64) << 32 | symbol.0 as u64
}

/// The group of a symbol's candles.
pub(crate) const fn of_candles(symbol: SymbolId, tier: Tier) -> u64 {
    (tier as u64) << 32 | symbol.0 as u64
}

/// The number of an account's side of a trade: whoever trades with itself has two of them.
pub(crate) const fn side_id(trade: u64, is_maker: bool) -> u64 {
    trade << 1 | is_maker as u64
}

/// A trade (table by symbol and trade number). Money is in 10⁻⁸.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct TradeRow {
    pub(crate) price: i64,
    pub(crate) quantity: i64,
    pub(crate) quote: i64,
    pub(crate) time_ms: u64,
    pub(crate) aggregate: u64,
    pub(crate) maker_order: u64,
    pub(crate) taker_order: u64,
    pub(crate) maker_commission: i64,
    pub(crate) taker_commission: i64,
    /// 1: the buyer was the maker.
    pub(crate) buyer_is_maker: u64,
}

/// An account's side of a trade (table by account, symbol and [`side_id`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct SideRow {
    /// Its order.
    pub(crate) order: u64,
    /// That order's list; -1 for none.
    pub(crate) order_list: i64,
}

/// A row of one table.
pub(crate) trait Row: Pod {
    /// The table in memory.
    fn of(rows: &Rows) -> &BTreeMap<Key, Self>;
}

/// Rows of all tables that are not in the store yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rows {
    pub(crate) trades: BTreeMap<Key, TradeRow>,
    pub(crate) sides: BTreeMap<Key, SideRow>,
    pub(crate) candles: BTreeMap<Key, Candle>,
}

macro_rules! tables {
    ($($row:ty: $table:ident),* $(,)?) => {
        $(
            impl Row for $row {
                fn of(rows: &Rows) -> &BTreeMap<Key, Self> {
                    &rows.$table
                }
            }
        )*
    };
}

tables! {
    TradeRow: trades,
    SideRow: sides,
    Candle: candles,
}

const _: () = {
    assert!(size_of::<TradeRow>() == 80);
    assert!(size_of::<SideRow>() == 16);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_of_a_trade_have_a_number() {
        assert!(side_id(7, false) < side_id(7, true) && side_id(7, true) < side_id(8, false));
    }
}
