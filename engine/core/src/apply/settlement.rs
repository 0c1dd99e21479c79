//! What a fill does beyond the book: money, commissions, numbers, the Trade event. The book's sink
//! during placement and continuation; this is the hot path of matching.

use crate::accounts::{Accounts, TradeMoney};
use crate::averages::Averages;
use crate::book::{Fill, Handle, Sink};
use crate::money;
use crate::orders::{IS_PAIRED, Orders};
use crate::outbox::Outbox;
use crate::pending::ActiveOrder;
use crate::symbols::Symbol;
use touchline_protocol::message::enums::Side;
use touchline_protocol::message::event::{OrderRefilled, Trade};
use touchline_protocol::units::{
    AccountId, BookUpdateId, OrderId, Position, Price, Qty, SessionId,
};

/// Everything that a fill changes, while the book itself is borrowed by matching.
pub(super) struct Settlement<'core, 'outbox, 'buffer> {
    pub(super) accounts: &'core mut Accounts,
    pub(super) orders: &'core mut Orders,
    pub(super) symbol: &'core mut Symbol,
    pub(super) active: &'core mut ActiveOrder,
    pub(super) outbox: &'outbox mut Outbox<'buffer>,
    pub(super) time_ns: u64,
    /// The time that tells aggregate trades apart: that of the transaction, by newer rules cut to what
    /// clients see of it, a millisecond (spot contract §2, aggregate trade).
    pub(super) shown_time_ns: u64,
    /// Of this transaction: the priority of what goes to the end of its queue.
    pub(super) position: Position,
    /// Average prices, from the rules on that know them.
    pub(super) averages: Option<&'core mut Averages>,
    /// The best stops of both directions; reaching one ends the taking. None: they do not matter.
    pub(super) stops: [Option<Price>; 2],
    /// The taking ends behind this fill: a stop is reached, or what is left of a lock has to be looked at.
    pub(super) is_interrupted: bool,
    /// The account whose orders are not traded with; [`NOBODY`] without self-trade prevention.
    pub(super) own: AccountId,
    /// The order of that account that was met.
    pub(super) met_own: Option<Handle>,
    /// Slot of the open list whose limit leg was touched: its stop leg is to be ended.
    pub(super) touched_list: Option<u32>,
    /// The account whose order was traded with last.
    pub(super) met: AccountId,
}

/// No account's number.
pub(super) const NOBODY: AccountId = AccountId(u32::MAX);

/// What a fill costs each side beyond the quote amount.
struct Charges {
    maker_commission: i64,
    taker_commission: i64,
}

impl Sink for Settlement<'_, '_, '_> {
    fn fill(&mut self, fill: &Fill) {
        let quantity = fill.quantity.0;
        let quote_amount = money::quote_truncated(fill.price.0, quantity)
            .expect("a fill is part of what its buyer has locked");
        self.active.remaining -= quantity;
        self.active.executed_quote += quote_amount;
        let maker = AccountId(fill.maker_owner);
        let charges = self.settle(maker, quantity, quote_amount);
        // Read before the maker is forgotten, which it is when it is filled.
        let placed_by = self.orders.record(fill.maker).session;
        let (maker_remaining, maker_released) = self.update_maker(fill, maker, quote_amount);
        self.met = maker;
        self.count_trade(fill.price);
        if let Some(averages) = &mut self.averages {
            averages.add(self.active.symbol, self.time_ns, fill.price, quantity);
        }
        self.symbol.bounds.forget_average();
        let [upwards, downwards] = self.stops;
        self.is_interrupted |= upwards.is_some_and(|stop| fill.price >= stop)
            || downwards.is_some_and(|stop| fill.price <= stop);
        self.address(placed_by, maker);
        self.address(self.active.placed_by, self.active.account);
        self.outbox.push(&Trade {
            trade_id: self.symbol.counters.trade,
            aggregate_trade_id: self.symbol.counters.aggregate_trade,
            symbol: self.active.symbol,
            aggressor_side: self.active.kind.side.to_wire(),
            price: fill.price.0,
            quantity,
            quote_amount,
            maker_order_id: fill.maker_id,
            taker_order_id: self.active.order_id,
            maker_account: maker,
            taker_account: self.active.account,
            maker_commission: charges.maker_commission,
            taker_commission: charges.taker_commission,
            maker_remaining,
            maker_released,
            ..Default::default()
        });
    }

    fn may_meet(&mut self, maker: Handle, owner: u32) -> bool {
        if owner != self.own.0 {
            return true;
        }
        self.met_own = Some(maker);
        false
    }

    /// A list that is touched is ended before anything else happens, and so outside of the book's
    /// hands.
    fn pauses(&self) -> bool {
        self.is_interrupted || self.touched_list.is_some()
    }

    /// The next slice of an iceberg. A maker that is filled has no record any more, but its old one
    /// still lies there and hides nothing.
    fn refill(&mut self, maker: Handle, order_id: OrderId) -> Qty {
        let hidden = self.orders.hidden(maker);
        if hidden == 0 {
            return Qty::ZERO;
        }
        let details = self.orders.details_mut(maker);
        let slice = details.iceberg.min(hidden);
        details.hidden -= slice;
        let record = self.orders.record_mut(maker);
        record.priority = self.position;
        let placed_by = record.session;
        self.address(placed_by, self.met);
        self.outbox.push(&OrderRefilled {
            order_id,
            symbol: self.active.symbol,
            visible: slice,
            book_update_id: BookUpdateId(self.symbol.counters.book_update.0 + 1),
            ..Default::default()
        });
        Qty(slice)
    }
}

impl Settlement<'_, '_, '_> {
    /// Notes whom the event that is pushed next concerns.
    #[inline(always)]
    fn address(&mut self, session: SessionId, account: AccountId) {
        self.outbox.address(session, account, self.accounts.is_watched(account));
    }

    /// Moves the money. Commission is kept from what each side receives (facts §4).
    fn settle(&mut self, maker: AccountId, quantity: i64, quote_amount: i64) -> Charges {
        let taker = self.active.account;
        let (buyer, seller, maker_receives, taker_receives) = match self.active.kind.side {
            Side::Buy => (taker, maker, quote_amount, quantity),
            Side::Sell => (maker, taker, quantity, quote_amount),
        };
        let (side, of_symbol) = (self.active.kind.side, self.symbol.rates.as_ref());
        let rates = |account| self.accounts.rates(account, self.active.symbol, of_symbol);
        let maker_rate = rates(maker).of_maker(side.opposite());
        let taker_rate = rates(taker).of_taker(side);
        let maker_commission = money::commission(maker_receives, maker_rate);
        let taker_commission = money::commission(taker_receives, taker_rate);
        let (buyer_commission, seller_commission) = match self.active.kind.side {
            Side::Buy => (taker_commission, maker_commission),
            Side::Sell => (maker_commission, taker_commission),
        };
        self.accounts.settle(&TradeMoney {
            buyer,
            seller,
            base: self.symbol.base,
            quote: self.symbol.quote,
            quantity,
            quote_amount,
            buyer_commission,
            seller_commission,
        });
        Charges { maker_commission, taker_commission }
    }

    /// Notes the fill at the maker; gives what it has still open, and what is released of its lock:
    /// one that is filled gives up the lock's remainder and is forgotten before its slot can be used
    /// again.
    fn update_maker(&mut self, fill: &Fill, maker: AccountId, quote_amount: i64) -> (i64, i64) {
        let record = self.orders.record_mut(fill.maker);
        record.executed_quote += quote_amount;
        let flags = record.flags;
        if flags == 0 {
            return self.update_plain_maker(fill, maker);
        }
        let remaining = fill.maker_remaining.0 + self.orders.hidden(fill.maker);
        if flags & IS_PAIRED != 0 {
            self.touch_list(fill.maker);
        }
        if remaining > 0 {
            return (remaining, 0);
        }
        let released = self.orders.locked_at(fill.maker, fill.price, 0);
        if released > 0 {
            self.accounts.release(
                maker,
                self.symbol.paid_with(self.active.kind.side.opposite()),
                released,
            );
        }
        self.orders.remove(fill.maker, maker);
        (0, released)
    }

    /// As [`update_maker`](Self::update_maker), of one that has nothing but its record, which has the fill.
    #[inline(always)]
    fn update_plain_maker(&mut self, fill: &Fill, maker: AccountId) -> (i64, i64) {
        if fill.maker_remaining.0 > 0 {
            return (fill.maker_remaining.0, 0);
        }
        let open = self.orders.plain(fill.maker, maker);
        let released = open.record().locked(fill.price, 0);
        if released > 0 {
            let asset = self.symbol.paid_with(self.active.kind.side.opposite());
            self.accounts.release(maker, asset, released);
        }
        open.forget();
        (0, released)
    }

    /// The first fill of a list's limit leg: from here on that is a single order.
    #[cold]
    fn touch_list(&mut self, limit: Handle) {
        self.touched_list = self.orders.list_of(limit);
        self.orders.unpair_limit_leg(limit);
    }

    /// Takes the numbers of a trade. Fills of one aggressor at one price and shown time are one aggregate
    /// trade, also when a continuation happens at that time.
    fn count_trade(&mut self, price: Price) {
        let counters = &mut self.symbol.counters;
        counters.trade.0 += 1;
        let active = &mut *self.active;
        if (active.last_fill_price, active.last_fill_time_ns) != (price, self.shown_time_ns) {
            counters.aggregate_trade.0 += 1;
            active.last_fill_price = price;
            active.last_fill_time_ns = self.shown_time_ns;
        }
    }
}
