//! The short way of what most orders are: LIMIT without anything special, GTC that comes to rest or takes
//! first, or IOC that takes. Called by [`Core::apply`](crate::Core::apply) for every new order, first of
//! all.
//!
//! An order goes it if it passes everything; of any other nothing has happened, and the long way says
//! what becomes of it. So the checks stand in the order that costs least, none says why it fails, and
//! each thing is looked up once. What an order leaves behind is to the bit what it leaves behind on the
//! long way.

use super::Context;
use super::place::Terms;
use super::site::Site;
use super::trigger::has_triggered;
use crate::Core;
use crate::accounts::{Account, OrderWindow};
use crate::book::Handle;
use crate::filters::OrderKind;
use crate::money;
use crate::open_counts::OpenCounts;
use crate::orders::PlainOrder;
use crate::outbox::Outbox;
use crate::pool::NONE;
use crate::symbols::SymbolCounters;
use touchline_protocol::message::command::{NewOrder, SymbolFilters};
use touchline_protocol::message::enums::{OrderStatus, OrderType, Side, SymbolStatus, TimeInForce};
use touchline_protocol::message::event::{OrderAccepted, OrderCanceled, OrderResult};
use touchline_protocol::units::{AccountId, OrderListId, Price, Qty};

/// What is known of an order that passes everything.
pub(super) struct Passed {
    account: AccountId,
    kind: OrderKind,
    /// It can take at once.
    takes: bool,
    /// Amount to lock: quote for a buy, base for a sell.
    locked: i64,
    /// Hash of its client order id, for one that rests at once.
    name_hash: u32,
    /// Slot of the counts of its account and symbol, or none; likewise.
    pair: u32,
}

/// The kind of an order that is LIMIT, GTC or IOC, and nothing else.
#[inline(always)]
fn plain_kind(message: &NewOrder) -> Option<OrderKind> {
    let special = message.quote_quantity | message.stop_price | message.iceberg_quantity;
    let is_plain = special == 0
        && message.order_type == OrderType::Limit.to_wire()
        && message.flags | message.self_trade_prevention == 0;
    if !is_plain {
        return None;
    }
    let side = Side::from_wire(message.side)?;
    let time_in_force = match TimeInForce::from_wire(message.time_in_force)? {
        plain @ (TimeInForce::Gtc | TimeInForce::Ioc) => plain,
        // Whether the whole of it can be filled is a question of its own.
        TimeInForce::Fok => return None,
    };
    Some(OrderKind { side, order_type: OrderType::Limit, time_in_force })
}

/// What a position may be for certain: MAX_POSITION for a buy. Without any such bound it is so much that a
/// position beyond, which there may be, is left to the long way.
#[inline(always)]
fn position_most(filters: &SymbolFilters, is_buy: bool) -> u128 {
    // One less, so that 0 becomes the most there is.
    let less_one = filters.max_position.cast_unsigned().wrapping_sub(1);
    let unbound = u64::from(!is_buy).wrapping_neg();
    u128::from(less_one | unbound) + 1
}

impl Core {
    /// All checks of an order that goes the short way; `None` of any other. No state changes.
    #[inline(never)]
    pub(super) fn pass_plain(&mut self, context: &Context, message: &NewOrder) -> Option<Passed> {
        let NewOrder { symbol: id, price, quantity, .. } = *message;
        let kind = plain_kind(message)?;
        let side = kind.side;
        let account = self.placing_account(&message.command, id).ok()?;
        // Asked for first, since it is what takes longest to come.
        let name_hash = self.orders.name_hash(account, id, &message.client_order_id);
        let namesake = self.orders.first_namesake(name_hash);
        let present = self.calendar.turned_to(context.time_ns, &self.limits);
        if !self.symbols.list[id.0 as usize].bounds.hold(context.time_ns)
            && !self.symbols.renew_bounds(id, context.time_ns)
        {
            return None;
        }
        let site = self.site(account, id);
        let Site { symbol, book, .. } = site;
        let takes_limit = OrderType::Limit.is_in(symbol.order_types);
        if !takes_limit || symbol.status != SymbolStatus::Trading {
            return None;
        }
        let takes = book.crosses(side, Price(price));
        if has_triggered(symbol, site.triggers) || !takes && !kind.may_rest() {
            return None;
        }
        if !symbol.bounds.allow(price, quantity, money::notional(price, quantity)) {
            return None;
        }
        if !self.allows_one_more(site.account, present) {
            return None;
        }
        if !self.has_room(takes) {
            return None;
        }
        let pair = self.orders.pair_of(account, id);
        let open = self.orders.counts_at(pair);
        let added = OpenCounts { all: 1, ..OpenCounts::default() };
        self.check_open_counts(&site, open, &added).ok()?;
        let locked = self.afford_plain(&site, open, (side, price, quantity))?;
        let named = (account, id, &message.client_order_id);
        if namesake != NONE && self.orders.is_among_namesakes(&self.pools, named, name_hash) {
            return None;
        }
        Some(Passed { account, kind, takes, locked, name_hash, pair })
    }

    /// True when there certainly is room for an order: for its rest in the book, or for what it cannot take at
    /// once.
    #[inline(always)]
    fn has_room(&self, takes: bool) -> bool {
        if takes {
            self.has_room_for_pending()
        } else {
            self.check_open_orders(1).is_ok() && self.check_levels(1).is_ok()
        }
    }

    /// What an order locks, if the account has as much and may have the position that it makes. Which side it
    /// is cannot be guessed, so nothing branches on it.
    #[inline(always)]
    fn afford_plain(
        &self,
        site: &Site<'_>,
        open: &OpenCounts,
        (side, price, quantity): (Side, i64, i64),
    ) -> Option<i64> {
        let Site { account_id, symbol, .. } = *site;
        let balances = self.accounts.balances_of(account_id);
        let [base, quote] = [symbol.base, symbol.quote].map(|asset| &balances[asset.0 as usize]);
        let is_buy = side == Side::Buy;
        let position = open.bought
            + [base.free.0, base.locked.0, quantity]
                .map(|part| u128::from(part.cast_unsigned()))
                .iter()
                .sum::<u128>();
        if position > position_most(&symbol.filters, is_buy) {
            return None;
        }
        let quote_amount = money::known_quote_rounded_up(price, quantity);
        let (locked, free) =
            if is_buy { (quote_amount, quote.free.0) } else { (quantity, base.free.0) };
        (locked <= free).then_some(locked)
    }

    /// True when the limits allow an account one order more, in the windows that are now.
    #[inline(always)]
    fn allows_one_more(&self, account: &Account, present: [u64; 2]) -> bool {
        let [first, second] = &account.windows;
        let is_within = |most, count| most == 0 || count < most;
        is_within(self.limits.orders_per_interval_0, first.count_in(present[0]))
            && is_within(self.limits.orders_per_interval_1, second.count_in(present[1]))
    }

    /// Places an order that passes everything.
    #[inline(always)]
    pub(super) fn place_plain(
        &mut self,
        context: &Context,
        message: &NewOrder,
        passed: &Passed,
        outbox: &mut Outbox<'_>,
    ) {
        if passed.takes {
            self.take_plain(context, message, passed, outbox);
        } else {
            self.rest_plain(context, message, passed, outbox);
        }
    }

    /// All that an order changes that comes to rest.
    #[inline(never)]
    fn rest_plain(
        &mut self,
        context: &Context,
        message: &NewOrder,
        passed: &Passed,
        outbox: &mut Outbox<'_>,
    ) {
        let Passed { account, kind, locked, name_hash, pair, .. } = *passed;
        let NewOrder { symbol: id, price, quantity, .. } = *message;
        let (at, side) = (id.0 as usize, kind.side);
        let symbol = &mut self.symbols.list[at];
        symbol.counters.order.0 += 1;
        symbol.counters.book_update.0 += 1;
        let symbol_counters = symbol.counters;
        let order_id = symbol_counters.order;
        let asset = symbol.paid_with(side);
        self.accounts.lock(account, asset, locked);
        let counts = self.count_order(account).map(|window| window.count);
        self.report_plain(message, passed, (symbol_counters, counts), outbox);
        let (price, owner) = (Price(price), (order_id, account.0));
        let book = &mut self.symbols.books[at];
        let handle = book.rest(&mut self.pools, side, price, Qty(quantity), owner);
        let plain = PlainOrder {
            order_id,
            account,
            symbol: id,
            side,
            quantity,
            placed: context.position,
            session: message.command.session,
            pair,
            name_hash,
        };
        self.orders.insert_plain(handle, &plain, &message.client_order_id);
    }

    /// Counts an order of an account in the windows that are now.
    #[inline(always)]
    fn count_order(&mut self, account: AccountId) -> [OrderWindow; 2] {
        let windows = &mut self.accounts.list[account.0 as usize].windows;
        for (window, present) in windows.iter_mut().zip(self.calendar.present()) {
            window.count_one_more(present);
        }
        *windows
    }

    /// Accepts an order that takes at once, and lets it.
    #[inline(never)]
    fn take_plain(
        &mut self,
        context: &Context,
        message: &NewOrder,
        passed: &Passed,
        outbox: &mut Outbox<'_>,
    ) {
        let Passed { account, kind, locked, .. } = *passed;
        let windows = self.count_order(account);
        let terms = Terms { quantity: message.quantity, locked, ran_dry: false };
        let order = (account, message, kind);
        let active = self.admit(context, order, (&terms, windows), OrderListId::NONE, outbox);
        self.begin_taking(context, active, outbox);
    }

    /// Reports that an order is accepted and rests.
    #[inline(always)]
    fn report_plain(
        &self,
        message: &NewOrder,
        passed: &Passed,
        (counters, order_counts): (SymbolCounters, [u32; 2]),
        outbox: &mut Outbox<'_>,
    ) {
        let Passed { account, kind, locked, .. } = *passed;
        let NewOrder { symbol: id, price, quantity, .. } = *message;
        let session = message.command.session;
        // It is the sender's own: nobody but who watches the account is to be told besides.
        let is_watched = self.accounts.is_watched(account);
        if is_watched {
            outbox.address(session, account, is_watched);
        }
        outbox.push(&OrderAccepted {
            order_id: counters.order,
            account,
            symbol: id,
            locked,
            price,
            quantity,
            order_list_id: OrderListId::NONE,
            side: kind.side.to_wire(),
            order_type: OrderType::Limit.to_wire(),
            time_in_force: TimeInForce::Gtc.to_wire(),
            session,
            ..Default::default()
        });
        if is_watched {
            outbox.address(session, account, is_watched);
        }
        outbox.push(&OrderResult {
            order_id: counters.order,
            account,
            symbol: id,
            quantity,
            book_update_id: counters.book_update,
            order_list_id: OrderListId::NONE,
            order_count_0: order_counts[0],
            order_count_1: order_counts[1],
            status: OrderStatus::New.to_wire(),
            ..Default::default()
        });
    }

    /// Cancels an open order that has nothing but its record.
    #[inline(always)]
    pub(super) fn cancel_plain(&mut self, handle: Handle, outbox: &mut Outbox<'_>) {
        let order = self.pools.order(handle);
        let record = self.orders.record(handle);
        let account = AccountId(order.owner);
        let released = record.locked(order.price, order.remaining.0);
        let at = record.symbol.0 as usize;
        let symbol = &mut self.symbols.list[at];
        symbol.count_removal(self.call);
        self.accounts.release(account, symbol.paid_with(record.kind.side), released);
        outbox.address(record.session, account, self.accounts.is_watched(account));
        outbox.push(&OrderCanceled {
            order_id: order.id,
            account,
            symbol: record.symbol,
            price: order.price.0,
            quantity: record.quantity,
            executed_quantity: record.quantity - order.remaining.0,
            executed_quote: record.executed_quote,
            released,
            book_update_id: symbol.counters.book_update,
            order_list_id: OrderListId::NONE,
            status: OrderStatus::Canceled.to_wire(),
            side: record.kind.side.to_wire(),
            order_type: record.kind.order_type.to_wire(),
            time_in_force: record.kind.time_in_force.to_wire(),
            client_order_id: *self.orders.client_order_id(handle),
            ..Default::default()
        });
        self.symbols.books[at].remove(&mut self.pools, handle);
        self.orders.remove_plain(handle, account);
    }
}
