//! Reading open orders and lists: each is put to rest anew, in the order in which it would trade.

use super::SnapshotError;
use super::read::Reading;
use crate::book::Handle;
use crate::filters::OrderKind;
use crate::lists::List;
use crate::money::{self, AMOUNT_MAX};
use crate::orders::{
    HAS_LIST, HAS_OWN_LOCK, IS_ICEBERG, IS_PAIRED, IS_WAITING, OrderDetails, OrderRecord,
};
use crate::pool::NONE;
use touchline_protocol::message::enums::{OrderType, SelfTradePrevention, Side, TimeInForce};
use touchline_protocol::snapshot::records::{self, ListRecord, OrderDetailsRecord};
use touchline_protocol::units::{OrderId, OrderListId, Position, Price, Qty, SymbolId};

type Outcome<E> = Result<(), SnapshotError<E>>;

/// Where orders of a section are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Where {
    Book,
    Waiting,
    Reached,
}

/// An order that was read and is sound by itself.
struct ReadOrder {
    raw: records::OrderRecord,
    kind: OrderKind,
    prevention: Option<SelfTradePrevention>,
    details: OrderDetailsRecord,
    /// The side of the book, or of the stops, that it is on.
    side: Side,
}

/// What an order came behind.
#[derive(Clone, Copy)]
struct Before {
    symbol: SymbolId,
    side: Side,
    price: i64,
    priority: Position,
    reached: (u64, OrderId),
}

impl<E> Reading<'_, E> {
    /// The books, the stops that wait, and those that were reached.
    pub(super) fn orders(&mut self) -> Outcome<E> {
        for (section, place) in [
            (records::BOOKS, Where::Book),
            (records::WAITING, Where::Waiting),
            (records::REACHED, Where::Reached),
        ] {
            let mut before = None;
            let most = self.core.limits.open_orders;
            for _ in 0..self.reader.begin(section, most.into())? {
                let order = self.take_order(place)?;
                self.check_sequence(place, &order, before)?;
                let is_level_known = place == Where::Reached
                    || before.is_some_and(|before: Before| {
                        (before.symbol, before.side, before.price)
                            == (order.raw.symbol, order.side, order.raw.price)
                    });
                self.check_room(is_level_known, &order)?;
                before = Some(Before {
                    symbol: order.raw.symbol,
                    side: order.side,
                    price: order.raw.price,
                    priority: order.raw.priority,
                    reached: (order.details.fired_by, order.raw.order_id),
                });
                self.put(place, &order)?;
                self.reader.step();
            }
            self.reader.end()?;
        }
        let is_crossed = self.core.symbols.books.iter().any(|book| {
            let (bid, ask) = (book.best(Side::Buy), book.best(Side::Sell));
            bid.zip(ask).is_some_and(|(bid, ask)| bid >= ask)
        });
        self.reader.require(!is_crossed, "bids and asks that would trade")?;
        let core = &self.core;
        let kept = u64::from(core.pools.levels()) + u64::from(core.orders.reserved());
        let has_room = kept <= core.limits.price_levels.into();
        self.reader.require(has_room, "stops for which no price level is kept")
    }

    /// Reads an order and checks it by itself.
    fn take_order(&mut self, place: Where) -> Result<ReadOrder, SnapshotError<E>> {
        let raw: records::OrderRecord = self.reader.take()?;
        let details = if raw.flags == 0 {
            OrderDetailsRecord { order_list_id: OrderListId::NONE, ..Default::default() }
        } else {
            self.reader.take()?
        };
        let kind = kind(raw.side, raw.order_type, raw.time_in_force);
        let kind = kind.ok_or(self.reader.wrong("an enumeration out of range"))?;
        let prevention = prevention(raw.self_trade_prevention);
        let prevention = prevention.ok_or(self.reader.wrong("an enumeration out of range"))?;
        let side = match (place, kind.fires_upwards()) {
            (Where::Book, _) => kind.side,
            (_, true) => Side::Sell,
            (_, false) => Side::Buy,
        };
        let order = ReadOrder { raw, kind, prevention, details, side };
        self.reader
            .require(order.has_sound_flags(), "flags and details that do not go together")?;
        self.reader.require(order.fits(place), "an order that cannot be where it is")?;
        self.reader.require(order.has_sound_amounts(), "amounts out of range")?;
        self.check_references(&order)?;
        Ok(order)
    }

    fn check_references(&self, order: &ReadOrder) -> Outcome<E> {
        let (core, raw) = (&self.core, &order.raw);
        let symbol = core.symbols.get(raw.symbol).ok_or(self.reader.wrong("no such symbol"))?;
        self.reader.require(core.accounts.get(raw.account).is_some(), "no such account")?;
        self.reader.require(raw.session.0 <= core.sessions.len(), "no such session")?;
        let is_given_out = raw.order_id.0 > 0 && raw.order_id <= symbol.counters.order;
        self.reader.require(is_given_out, "a number that was never given out")?;
        let is_new = core.orders.find(&core.pools, raw.symbol, raw.order_id).is_none();
        self.reader.require(is_new, "a number that another order has")?;
        let name = &raw.client_order_id;
        let namesake =
            core.orders.find_by_client_order_id(&core.pools, raw.account, raw.symbol, name);
        let has_own_name = name.is_valid() && namesake.is_none();
        self.reader.require(has_own_name, "a name that is none, or that another order has")?;
        let is_known_list = order.details.order_list_id < core.orders.lists.next_id();
        self.reader.require(is_known_list, "a list that was never placed")
    }

    /// Orders stand in the order in which they would trade, or have their turn.
    fn check_sequence(
        &self,
        place: Where,
        order: &ReadOrder,
        before: Option<Before>,
    ) -> Outcome<E> {
        let Some(before) = before else { return Ok(()) };
        let raw = &order.raw;
        let in_order = if before.symbol != raw.symbol {
            before.symbol < raw.symbol
        } else if place == Where::Reached {
            before.reached < (order.details.fired_by, raw.order_id)
        } else if before.side != order.side {
            before.side == Side::Buy
        } else if before.price == raw.price {
            before.priority <= raw.priority
        } else {
            (before.price > raw.price) == (order.side == Side::Buy)
        };
        self.reader.require(in_order, "out of its order")
    }

    fn check_room(&self, is_level_known: bool, order: &ReadOrder) -> Outcome<E> {
        let (pools, limits) = (&self.core.pools, &self.core.limits);
        self.reader.require(pools.orders() < limits.open_orders, "more orders than the limit")?;
        let has_level = is_level_known || pools.levels() < limits.price_levels;
        self.reader.require(has_level, "more price levels than the limit")?;
        self.reader.require(order.raw.place != records::NO_PLACE, "no place")
    }

    /// Puts an order where it was.
    fn put(&mut self, place: Where, order: &ReadOrder) -> Outcome<E> {
        let ReadOrder { raw, details, side, .. } = order;
        let core = &mut self.core;
        let (at, owner) = (raw.symbol.0 as usize, (raw.order_id, raw.account.0));
        let (price, remaining) = (Price(raw.price), Qty(raw.remaining));
        let handle = match place {
            Where::Book => {
                let book = &mut core.symbols.books[at];
                let handle = book.rest(&mut core.pools, *side, price, remaining, owner);
                core.pools.change_hidden(handle, 0, details.hidden);
                handle
            }
            Where::Waiting => {
                core.symbols.triggers[at].rest(&mut core.pools, *side, price, remaining, owner)
            }
            Where::Reached => core.pools.take_unqueued(remaining, owner),
        };
        let made = (order.record(), order.details(place));
        core.orders.insert(handle, (raw.order_id, raw.account), made, &raw.client_order_id);
        let is_taken = self.take_place(raw.place, raw.account, handle.0);
        is_taken.ok_or(self.reader.wrong("a place of nobody, or of another"))?;
        let core = &mut self.core;
        let is_paired = raw.flags & IS_PAIRED != 0;
        if place == Where::Reached {
            let fired_by = |at| core.orders.details(Handle(at)).fired_by;
            let symbol = &mut core.symbols.list[at];
            symbol.fired = core.pools.push_fired(symbol.fired, handle.0, &fired_by);
        }
        self.paired += u64::from(is_paired);
        // What the stop leg of an open list locks depends on that.
        if is_paired && place != Where::Book {
            return Ok(());
        }
        self.add_lock_of_open(handle)
    }

    /// Open lists: each finds both its orders.
    pub(super) fn lists(&mut self) -> Outcome<E> {
        let most = u64::from(self.core.limits.open_orders / 2);
        let lists = self.reader.begin(records::LISTS, most)?;
        for _ in 0..lists {
            let record: ListRecord = self.reader.take()?;
            let list = self.check_list(&record)?;
            let core = &mut self.core;
            let slot = core.orders.lists.restore(list);
            for leg in [list.stop, list.limit] {
                core.orders.details_mut(leg).list = slot;
            }
            self.add_lock_of_open(list.stop)?;
            self.reader.step();
        }
        self.reader.end()?;
        // No order is of two lists, so it is enough to count.
        self.reader.require(self.paired == 2 * lists, "orders of open lists that are missing")
    }

    fn check_list(&self, record: &ListRecord) -> Result<List, SnapshotError<E>> {
        let core = &self.core;
        let limit_order_id = record.stop_order_id.0.checked_add(1).map(OrderId);
        let find = |id: OrderId| core.orders.find(&core.pools, record.symbol, id);
        let legs = find(record.stop_order_id).zip(limit_order_id.and_then(find));
        let (stop, limit) = legs.ok_or(self.reader.wrong("a list without its orders"))?;
        let is_leg = |handle: Handle, waits: u8| {
            core.orders.record(handle).flags & (HAS_LIST | IS_PAIRED | IS_WAITING)
                == HAS_LIST | IS_PAIRED | waits
                && core.orders.order_list_id(handle) == record.order_list_id
                && core.orders.details(handle).list == NONE
                && core.pools.owner(handle.0) == record.account.0
        };
        let [of_stop, of_limit] = [stop, limit].map(|leg| *core.orders.record(leg));
        let open = |handle: Handle| core.pools.remaining(handle).0 + core.orders.hidden(handle);
        let limit_price = core.orders.view(&core.pools, limit).price.0;
        let is_sound = is_leg(stop, IS_WAITING)
            && is_leg(limit, 0)
            && of_stop.kind.side == of_limit.kind.side
            && of_stop.quantity == of_limit.quantity
            && open(stop) == of_stop.quantity
            && open(limit) == of_limit.quantity
            && of_limit.kind.order_type == OrderType::LimitMaker
            && matches!(of_stop.kind.order_type, OrderType::StopLoss | OrderType::StopLossLimit)
            && record.list_client_order_id.is_valid();
        self.reader.require(is_sound, "a list that its orders do not fit")?;
        let (account, symbol) = (record.account, record.symbol);
        let name = &record.list_client_order_id;
        let lists = &core.orders.lists;
        let is_new = lists.find(record.order_list_id).is_none()
            && lists.find_by_client_order_id(account, symbol, name).is_none();
        self.reader.require(is_new, "a number or name that another list has")?;
        Ok(List {
            id: record.order_list_id,
            account,
            symbol,
            stop,
            limit,
            stop_order_id: record.stop_order_id,
            limit_price,
            client_order_id: *name,
        })
    }
}

impl ReadOrder {
    /// Details are those that the flags ask for.
    fn has_sound_flags(&self) -> bool {
        const KNOWN: u8 = IS_ICEBERG | IS_WAITING | HAS_LIST | IS_PAIRED | HAS_OWN_LOCK;
        let (flags, details) = (self.raw.flags, &self.details);
        let has = |flag: u8| flags & flag != 0;
        let is_list_known = details.order_list_id != OrderListId::NONE;
        flags & !KNOWN == 0
            && self.raw.reserved == [0; 3]
            && has(IS_ICEBERG) == (details.iceberg > 0)
            && details.iceberg >= 0
            && details.hidden >= 0
            && (has(IS_ICEBERG) || details.hidden == 0)
            && has(HAS_LIST) == is_list_known
            && (!is_list_known || details.order_list_id.0 >= 0)
            && (has(HAS_LIST) || !has(IS_PAIRED))
            && (has(HAS_OWN_LOCK) || details.own_lock == 0)
            && (!has(HAS_OWN_LOCK) || self.kind.side == Side::Buy && !has(IS_WAITING))
            && (has(IS_WAITING) || details.limit_price == 0)
    }

    /// Only what may rest stands in a book, only stops wait, only those that were reached know by which
    /// trade.
    fn fits(&self, place: Where) -> bool {
        let Self { raw, kind, details, .. } = self;
        let waits = raw.flags & IS_WAITING != 0;
        let was_reached = details.fired_by > 0;
        let is_whole = raw.remaining == raw.quantity && raw.executed_quote == 0;
        let has_limit = details.limit_price > 0;
        match place {
            Where::Book => !waits && !was_reached && kind.may_rest(),
            Where::Waiting | Where::Reached => {
                waits
                    && kind.is_stop()
                    && was_reached == (place == Where::Reached)
                    && is_whole
                    && details.hidden == 0
                    && has_limit != kind.is_market()
                    && details.limit_price >= 0
            }
        }
    }

    /// What is locked and what a fill moves stay in range: see `Accounts` and `ActiveOrder`.
    fn has_sound_amounts(&self) -> bool {
        let Self { raw, kind, details, .. } = self;
        let open = raw.remaining.checked_add(details.hidden);
        let Some(open) = open.filter(|&open| raw.remaining > 0 && open <= raw.quantity) else {
            return false;
        };
        if raw.price <= 0 || raw.executed_quote < 0 {
            return false;
        }
        let price = if details.limit_price > 0 { details.limit_price } else { raw.price };
        let worth = |quantity: i64| {
            money::quote_rounded_up(price, quantity).filter(|&worth| worth <= AMOUNT_MAX)
        };
        let Some(needed) = worth(open) else { return false };
        if kind.side == Side::Sell {
            // What it took at better prices comes on top of its notional.
            return open <= AMOUNT_MAX && raw.executed_quote.checked_add(needed).is_some();
        }
        let locked = if raw.flags & HAS_OWN_LOCK == 0 {
            worth(raw.quantity)
        } else {
            Some(details.own_lock).filter(|locked| (0..=AMOUNT_MAX).contains(locked))
        };
        locked.is_some_and(|locked| locked - raw.executed_quote >= needed)
    }

    fn record(&self) -> OrderRecord {
        let Self { raw, kind, prevention, .. } = self;
        OrderRecord {
            quantity: raw.quantity,
            executed_quote: raw.executed_quote,
            priority: raw.priority,
            symbol: raw.symbol,
            session: raw.session,
            pair: NONE,
            kind: *kind,
            flags: raw.flags,
            prevention: *prevention,
        }
    }

    fn details(&self, place: Where) -> OrderDetails {
        let Self { raw, details, .. } = self;
        OrderDetails {
            iceberg: details.iceberg,
            hidden: details.hidden,
            stop_price: if place == Where::Book { 0 } else { raw.price },
            limit_price: details.limit_price,
            fired_by: details.fired_by,
            order_list_id: details.order_list_id,
            list: NONE,
            own_lock: details.own_lock,
        }
    }
}

/// An order's enumerations, read.
pub(super) fn kind(side: u8, order_type: u8, time_in_force: u8) -> Option<OrderKind> {
    Some(OrderKind {
        side: Side::from_wire(side)?,
        order_type: OrderType::from_wire(order_type)?,
        time_in_force: TimeInForce::from_wire(time_in_force)?,
    })
}

/// Self-trade prevention that an order names, or none.
pub(super) fn prevention(number: u8) -> Option<Option<SelfTradePrevention>> {
    if number == 0 {
        return Some(None);
    }
    SelfTradePrevention::from_wire(number).map(Some)
}
