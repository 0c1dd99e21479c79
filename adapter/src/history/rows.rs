//! What the history keeps: one fixed-size row per trade, per side of a trade, per ended order and
//! list, per client id, per candle and per time without candles. Made by the fold, written to the store as they
//! are, read by the handlers.
//!
//! Every table is sorted by the same kind of key: a group, within which rows count up. So a page is
//! one range of one group, and what comes last in the venue comes last in its group.

use bytemuck::{Pod, Zeroable};
use imbl::OrdMap;
use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::{AccountId, SymbolId};

use super::breaks::BreakRow;
use super::candles::{Candle, Tier};
use super::sealed;

/// Bytes of a key in the store.
pub(crate) const KEY_BYTES: usize = 16;

/// Where a row stands in its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// Rows that are read together.
    pub(crate) group: u64,
    /// Counts up within the group.
    pub(crate) id: u64,
}

impl Key {
    /// As it lies in the store, where keys are compared byte by byte.
    #[expect(clippy::big_endian_bytes, reason = "so that they sort as the numbers do")]
    pub(crate) fn bytes(self) -> [u8; KEY_BYTES] {
        ((u128::from(self.group) << 64) | u128::from(self.id)).to_be_bytes()
    }

    /// Reads what [`Key::bytes`] wrote; `None` for any other length.
    #[expect(clippy::big_endian_bytes, reason = "so that they sort as the numbers do")]
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let whole = u128::from_be_bytes(bytes.try_into().ok()?);
        Some(Self { group: (whole >> 64) as u64, id: whole as u64 })
    }
}

/// The group of a symbol's trades.
pub(crate) const fn of_symbol(symbol: SymbolId) -> u64 {
    symbol.0 as u64
}

/// The group of an account's orders and trades on a symbol.
pub(crate) const fn of_account(account: AccountId, symbol: SymbolId) -> u64 {
    (account.0 as u64) << 32 | symbol.0 as u64
}

/// The group of an account's order lists.
pub(crate) const fn of_lists(account: AccountId) -> u64 {
    account.0 as u64
}

/// The group of a symbol's candles.
pub(crate) const fn of_candles(symbol: SymbolId, tier: Tier) -> u64 {
    (tier as u64) << 32 | symbol.0 as u64
}

/// The group of an order's sides of trades. Symbols are far fewer than 2¹⁶; 2⁴⁸ orders on one are a
/// million every second for nine years.
pub(crate) const fn of_order(symbol: SymbolId, order: u64) -> u64 {
    (symbol.0 as u64) << 48 | order & ((1 << 48) - 1)
}

/// The number of an account's side of a trade: whoever trades with itself has two of them.
pub(crate) const fn side_id(trade: u64, is_maker: bool) -> u64 {
    trade << 1 | is_maker as u64
}

/// The trade of a [`side_id`], and whether it is the maker's side.
pub(crate) const fn trade_of(side: u64) -> (u64, bool) {
    (side >> 1, side & 1 == 1)
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
    /// The first trade of its aggregate trade. All of one are at one price and one time, by one taker
    /// order.
    pub(crate) aggregate_first: u64,
    /// Base quantity of its aggregate trade up to this trade, itself included.
    pub(crate) aggregate_quantity: i64,
}

/// An account's side of a trade (table by account, symbol and [`side_id`]): all that a list of its trades
/// shows, since a look at each trade beside it takes three times as long. Money is in 10⁻⁸.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct SideRow {
    /// Its order.
    pub(crate) order: u64,
    /// That order's list; -1 for none.
    pub(crate) order_list: i64,
    /// 0 in a row of format 4, which ends before this: the trade has it, and what follows.
    pub(crate) price: i64,
    pub(crate) quantity: i64,
    pub(crate) quote: i64,
    pub(crate) time_ms: u64,
    /// Of this side.
    pub(crate) commission: i64,
    /// 1: this side bought.
    pub(crate) is_buyer: u64,
}

/// Bytes of a [`SideRow`] of format 4.
const SIDE_BYTES_4: usize = 16;

impl SideRow {
    /// The side of an order.
    pub(crate) fn of(order: u64, order_list: i64) -> Self {
        Self { order, order_list, ..Self::default() }
    }

    /// The same side of this trade, as the maker or the taker.
    pub(crate) fn traded(self, trade: &TradeRow, is_maker: bool) -> Self {
        let buyer_is_maker = trade.buyer_is_maker != 0;
        Self {
            price: trade.price,
            quantity: trade.quantity,
            quote: trade.quote,
            time_ms: trade.time_ms,
            commission: if is_maker { trade.maker_commission } else { trade.taker_commission },
            is_buyer: u64::from(is_maker == buyer_is_maker),
            ..self
        }
    }

    /// True if it tells of the trade.
    pub(crate) const fn is_whole(&self) -> bool {
        self.price != 0
    }
}

/// That an order took part in a trade (table by order and [`side_id`]). An order's first trade has a row only in
/// what a build of format 5 or 4 wrote: the order tells it, and most orders have no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct OrderTradeRow;

/// An ended order (table by account, symbol and order number), or an open one in the state that a
/// restart begins with. Money is in 10⁻⁸.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct OrderRow {
    pub(crate) order_list: i64,
    pub(crate) price: i64,
    pub(crate) quantity: i64,
    pub(crate) executed: i64,
    pub(crate) executed_quote: i64,
    pub(crate) stop_price: i64,
    pub(crate) iceberg_quantity: i64,
    pub(crate) quote_quantity: i64,
    pub(crate) visible: i64,
    pub(crate) time_ms: u64,
    pub(crate) update_ms: u64,
    /// Its first trade; 0 for none.
    pub(crate) first_trade: u64,
    /// Its last trade; 0 for none.
    pub(crate) last_trade: u64,
    pub(crate) client_order_id: ClientOrderId,
    pub(crate) account: u32,
    pub(crate) symbol: u32,
    pub(crate) status: u8,
    pub(crate) time_in_force: u8,
    pub(crate) order_type: u8,
    pub(crate) side: u8,
    /// 1: it is, or was, live on the book.
    pub(crate) working: u8,
    /// 1: it stands in the book.
    pub(crate) resting: u8,
    pub(crate) reserved: [u8; 2],
}

/// An order list that came to its end (table by account and list number), or an open one in the state
/// that a restart begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct ListRow {
    pub(crate) limit_order: u64,
    pub(crate) stop_order: u64,
    pub(crate) time_ms: u64,
    pub(crate) update_ms: u64,
    pub(crate) client_order_id: ClientOrderId,
    pub(crate) limit_client_order_id: ClientOrderId,
    pub(crate) stop_client_order_id: ClientOrderId,
    pub(crate) account: u32,
    pub(crate) symbol: u32,
    pub(crate) status_type: u8,
    pub(crate) status: u8,
    pub(crate) reserved: [u8; 6],
}

/// What a client called an order or a list (table by era and hash, see [`super::names`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct NameRow {
    /// The order or the list.
    pub(crate) id: u64,
}

/// A row of one table.
pub(crate) trait Row: Pod {
    /// The table's name in the store.
    const TABLE: &'static str;

    /// The table in memory.
    fn of(rows: &Rows) -> &OrdMap<Key, Self>;

    /// Reads a row as it was written, by this build or one whose stores it reads; `None` for any other length.
    fn read(bytes: &[u8]) -> Option<Self> {
        bytemuck::try_pod_read_unaligned(bytes).ok()
    }
}

/// Rows of all tables that are not in the store yet. A copy costs nothing and stays as it is: both sides
/// share what neither has changed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rows {
    pub(crate) trades: OrdMap<Key, TradeRow>,
    pub(crate) sides: OrdMap<Key, SideRow>,
    pub(crate) order_trades: OrdMap<Key, OrderTradeRow>,
    pub(crate) orders: OrdMap<Key, OrderRow>,
    pub(crate) lists: OrdMap<Key, ListRow>,
    pub(crate) names: OrdMap<Key, NameRow>,
    pub(crate) candles: OrdMap<Key, Candle>,
    pub(crate) breaks: OrdMap<Key, BreakRow>,
}

impl Rows {
    /// Rows in all tables.
    pub(crate) fn len(&self) -> usize {
        self.trades.len()
            + self.sides.len()
            + self.order_trades.len()
            + self.orders.len()
            + self.lists.len()
            + self.names.len()
            + self.candles.len()
            + self.breaks.len()
    }
}

macro_rules! tables {
    ($($row:ty: $table:ident $(or $read:path)?),* $(,)?) => {
        $(
            const _: () = assert!(size_of::<$row>().is_multiple_of(sealed::UNIT));

            impl Row for $row {
                const TABLE: &'static str = stringify!($table);

                fn of(rows: &Rows) -> &OrdMap<Key, Self> {
                    &rows.$table
                }

                $(fn read(bytes: &[u8]) -> Option<Self> {
                    $read(bytes)
                })?
            }
        )*
    };
}

tables! {
    TradeRow: trades,
    SideRow: sides or read_side,
    OrderTradeRow: order_trades,
    OrderRow: orders,
    ListRow: lists,
    NameRow: names,
    Candle: candles or Candle::read,
    BreakRow: breaks,
}

fn read_side(bytes: &[u8]) -> Option<SideRow> {
    let mut row = SideRow::default();
    let whole = bytemuck::bytes_of_mut(&mut row);
    if ![SIDE_BYTES_4, whole.len()].contains(&bytes.len()) {
        return None;
    }
    whole[..bytes.len()].copy_from_slice(bytes);
    Some(row)
}

const _: () = {
    assert!(size_of::<TradeRow>() == 96);
    assert!(size_of::<SideRow>() == 64);
    assert!(size_of::<OrderRow>() == 160);
    assert!(size_of::<ListRow>() == 168);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_in_the_store_as_in_memory() {
        let key = |group, id| Key { group, id };
        let keys = [key(0, 1), key(0, 256), key(1, 0), key(255, u64::MAX), key(256, 0)];
        assert!(keys.is_sorted());
        assert!(keys.map(Key::bytes).is_sorted());
        for key in keys {
            assert_eq!(Key::read(&key.bytes()), Some(key));
        }
        assert_eq!(Key::read(&[0; 15]), None);
        let last = of_order(SymbolId(6), (1 << 48) - 1);
        assert!(of_order(SymbolId(6), 1) < last && last < of_order(SymbolId(7), 0));
        assert_eq!(
            [7, 8].map(|trade| trade_of(side_id(trade, trade == 8))),
            [(7, false), (8, true)]
        );
        assert!(side_id(7, false) < side_id(7, true) && side_id(7, true) < side_id(8, false));
    }
}
