//! An order that is taking. Called by placement, taking and [`super::PendingQueue`].

use crate::book::Aggressor;
use crate::filters::OrderKind;
use crate::hash::StateHash;
use crate::orders::{HAS_LIST, HAS_OWN_LOCK, IS_ICEBERG};
#[cfg(test)]
use crate::pool::NONE;
use touchline_protocol::message::enums::{SelfTradePrevention, Side};
use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::{
    AccountId, Epoch, OrderId, OrderListId, Position, Price, Qty, Sequence, SessionId, SymbolId,
};

/// An accepted order from its acceptance to the end of its taking.
///
/// Its executed quote stays within `i64`: a buy pays out of its lock. What a sell takes at once comes
/// out of locks that all exist at its acceptance, since nothing else touches the book in between, so
/// it is at most the `AMOUNT_MAX` that the venue holds of the asset; what it sells later, at its
/// limit, is at most its notional, which is at most `AMOUNT_MAX` too; and twice that is in range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ActiveOrder {
    pub(crate) order_id: OrderId,
    pub(crate) account: AccountId,
    pub(crate) symbol: SymbolId,
    pub(crate) kind: OrderKind,
    /// Limit price; zero for MARKET.
    pub(crate) price: Price,
    pub(crate) quantity: i64,
    pub(crate) remaining: i64,
    pub(crate) executed_quote: i64,
    /// The price that fires it, if it is a stop.
    pub(crate) stop_price: Price,
    /// What was locked at acceptance: quote for a buy, base for a sell. Of a buy with a lock of its own: what
    /// it locked then and what it had paid.
    pub(crate) locked: i64,
    /// It has a lock of its own: see [`HAS_OWN_LOCK`].
    pub(crate) has_own_lock: bool,
    /// What it shows at a time once it rests; 0: everything.
    pub(crate) iceberg: i64,
    /// The list that it belongs to.
    pub(crate) order_list_id: OrderListId,
    /// A MARKET order by quote quantity took all there was and wants more.
    pub(crate) ran_dry: bool,
    /// Against trades with its own account, if it names it: kept for when it takes again.
    pub(crate) prevention: Option<SelfTradePrevention>,
    /// What holds while it takes now.
    pub(crate) prevention_now: SelfTradePrevention,
    /// Base quantity that a MARKET order does not take because it would have taken it of its own account,
    /// while the rules were below 4.
    pub(crate) prevented: i64,
    /// Position of its acceptance, or of its turn if it was triggered.
    pub(crate) priority: Position,
    /// Position of its placement.
    pub(crate) placed: Position,
    /// Its place among the orders of its account: none before it has rested or waited, unless it is
    /// pending and may rest.
    pub(crate) place: u32,
    /// Price and time of its last fill, which tell whether the next one belongs to the same aggregate
    /// trade; the time is cut as the rules of that fill had it, and no fill has price zero.
    pub(crate) last_fill_price: Price,
    pub(crate) last_fill_time_ns: u64,
    /// Order counts of its account at acceptance, for the terminal reply.
    pub(crate) order_counts: [u32; 2],
    /// The session that placed it.
    pub(crate) placed_by: SessionId,
    /// The session that waits for its terminal reply.
    pub(crate) session: SessionId,
    pub(crate) epoch: Epoch,
    pub(crate) correlation: u64,
    pub(crate) sequence: Sequence,
    pub(crate) client_order_id: ClientOrderId,
}

impl ActiveOrder {
    /// What it asks of the book.
    pub(crate) const fn aggressor(&self) -> Aggressor {
        self.kind.aggressor(self.price, Qty(self.remaining - self.prevented))
    }

    /// True when what it cannot take will rest.
    pub(crate) const fn may_rest(&self) -> bool {
        self.kind.may_rest()
    }

    /// The flags of its record while it is open and waits for nothing.
    pub(crate) fn flags(&self) -> u8 {
        let iceberg = if self.iceberg > 0 { IS_ICEBERG } else { 0 };
        let list = if self.order_list_id == OrderListId::NONE { 0 } else { HAS_LIST };
        let own_lock = if self.has_own_lock { HAS_OWN_LOCK } else { 0 };
        iceberg | list | own_lock
    }

    /// What is left of its lock.
    pub(crate) const fn still_locked(&self) -> i64 {
        match self.kind.side {
            Side::Buy => self.locked - self.executed_quote,
            Side::Sell => self.remaining,
        }
    }

    pub(super) fn hash(&self, rules: u32, hash: &mut StateHash) {
        if rules >= 2 {
            hash.signed(self.iceberg);
            hash.signed(self.order_list_id.0);
            let prevention = self.prevention.map_or(0, SelfTradePrevention::to_wire);
            let now = self.prevention_now.to_wire();
            let flags = [self.ran_dry.into(), prevention, now, self.has_own_lock.into()];
            hash.pair(self.placed_by.0, u32::from_le_bytes(flags));
            hash.signed(self.prevented);
            hash.word(self.placed.0);
        }
        hash.word(self.order_id.0);
        hash.pair(self.account.0, self.symbol.0);
        let kind = [
            self.kind.side.to_wire(),
            self.kind.order_type.to_wire(),
            self.kind.time_in_force.to_wire(),
            0,
        ];
        hash.pair(self.session.0, u32::from_le_bytes(kind));
        for value in [
            self.price.0,
            self.quantity,
            self.remaining,
            self.executed_quote,
            self.locked,
            self.last_fill_price.0,
        ] {
            hash.signed(value);
        }
        for word in [self.priority.0, self.last_fill_time_ns, self.correlation, self.sequence.0] {
            hash.word(word);
        }
        hash.pair(self.order_counts[0], self.order_counts[1]);
        hash.word(u64::from(self.epoch.0));
        hash.text(&self.client_order_id);
    }
}

#[cfg(test)]
impl ActiveOrder {
    pub(super) const VACANT: Self = Self {
        order_id: OrderId(0),
        account: AccountId(0),
        symbol: SymbolId(0),
        kind: OrderKind::LIMIT_BUY,
        price: Price::ZERO,
        stop_price: Price::ZERO,
        quantity: 0,
        remaining: 0,
        executed_quote: 0,
        locked: 0,
        has_own_lock: false,
        iceberg: 0,
        order_list_id: OrderListId::NONE,
        ran_dry: false,
        prevention: None,
        prevention_now: SelfTradePrevention::None,
        prevented: 0,
        priority: Position(0),
        placed: Position(0),
        place: NONE,
        last_fill_price: Price::ZERO,
        last_fill_time_ns: 0,
        order_counts: [0; 2],
        placed_by: SessionId(0),
        session: SessionId(0),
        epoch: Epoch(0),
        correlation: 0,
        sequence: Sequence(0),
        client_order_id: ClientOrderId::EMPTY,
    };
}
