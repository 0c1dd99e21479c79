//! What is known of an open order beyond the book: its record, and the details that few orders have. Called
//! by [`Orders`](super::Orders), which keeps both, and by whoever makes or reads one.

use crate::filters::OrderKind;
use crate::money;
use crate::pool::NONE;
use touchline_protocol::message::enums::{SelfTradePrevention, Side};
use touchline_protocol::units::{OrderListId, Position, Price, SessionId, SymbolId};

/// The part of an open order that is neither in the book nor its client order id.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OrderRecord {
    /// Base quantity, executed part included.
    pub(crate) quantity: i64,
    pub(crate) executed_quote: i64,
    /// Position of the transaction that gave the order its place in the queue.
    pub(crate) priority: Position,
    pub(crate) symbol: SymbolId,
    pub(crate) session: SessionId,
    /// Slot of the counts of its account and symbol; set when it is inserted.
    pub(crate) pair: u32,
    pub(crate) kind: OrderKind,
    /// `IS_*` bits: which parts of [`OrderDetails`] matter.
    pub(crate) flags: u8,
    /// Against trades with its own account when it takes, if it names it.
    pub(crate) prevention: Option<SelfTradePrevention>,
}

/// The order hides a part of its quantity.
pub(crate) const IS_ICEBERG: u8 = 1;
/// A stop that waits to be triggered, or has been and waits for its turn: not in the book.
pub(crate) const IS_WAITING: u8 = 2;
/// The order belongs to a list, or did while that was open.
pub(crate) const HAS_LIST: u8 = 4;
/// The order's list is open: its other order is open too, and neither has executed anything.
pub(crate) const IS_PAIRED: u8 = 8;
/// A buy of which a part was executed when its price or quantity changed, or below its limit: it locked
/// exactly what the rest needed then, and what it had paid by then is no part of its notional now.
pub(crate) const HAS_OWN_LOCK: u8 = 16;

const _: () = assert!(size_of::<OrderRecord>() <= 48);

impl OrderRecord {
    pub(super) const VACANT: Self = Self {
        quantity: 0,
        executed_quote: 0,
        priority: Position(0),
        symbol: SymbolId(0),
        session: SessionId(0),
        pair: NONE,
        kind: OrderKind::LIMIT_BUY,
        flags: 0,
        prevention: None,
    };

    /// What the order has locked, given its price and what it has open (hidden parts included): of
    /// quote for a buy (its notional rounded up, less what it has paid), of base for a sell. Never
    /// stored, so that it cannot drift.
    #[inline(always)]
    pub(crate) fn locked(&self, price: Price, remaining: i64) -> i64 {
        // Both are reckoned, since which it is cannot be guessed; of a sell the first means nothing.
        let notional = money::known_quote_rounded_up(price.0, self.quantity);
        let of_buy = notional.wrapping_sub(self.executed_quote);
        if self.kind.side == Side::Buy { of_buy } else { remaining }
    }
}

/// What few orders need, apart from the record so that matching does not touch it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OrderDetails {
    /// What an iceberg shows at a time; 0 for other orders.
    pub(crate) iceberg: i64,
    /// What an iceberg hides at present.
    pub(crate) hidden: i64,
    /// The price that fires a waiting stop.
    pub(crate) stop_price: i64,
    /// The limit of a waiting stop once it is triggered; 0 for one that becomes MARKET.
    pub(crate) limit_price: i64,
    /// Number of the trade that triggered a waiting stop; 0 until then.
    pub(crate) fired_by: u64,
    /// The list that the order belongs to, also after that has come to its end.
    pub(crate) order_list_id: OrderListId,
    /// Slot of its list among the open ones; none when that is not open.
    pub(crate) list: u32,
    /// Of one with a lock of its own: what it locks for the rest and all that it has paid.
    pub(crate) own_lock: i64,
}

const _: () = assert!(size_of::<OrderDetails>() <= 64);

impl Default for OrderDetails {
    fn default() -> Self {
        Self {
            iceberg: 0,
            hidden: 0,
            stop_price: 0,
            limit_price: 0,
            fired_by: 0,
            order_list_id: OrderListId::NONE,
            list: NONE,
            own_lock: 0,
        }
    }
}
