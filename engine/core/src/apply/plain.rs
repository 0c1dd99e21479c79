//! The short way of what most orders are: LIMIT without anything special, GTC that comes to rest or takes
//! first, or IOC that takes; and of cancels of such orders. Called by [`Core::apply`](crate::Core::apply) for
//! every new order and every cancel by number, first of all.
//!
//! A command is applied here only if it passes every check; otherwise nothing has happened, and the long way decides.
//! So the checks stand in the order that costs least, none says why it fails, and each thing is looked up once. Both
//! ways leave the same state, bit for bit.

use super::Context;
use super::sender::note_sequence;
use super::trigger::has_triggered;
use crate::Core;
use crate::accounts::{Account, Balance, OrderWindow};
use crate::book::{BookPools, SymbolBook};
use crate::filters::OrderKind;
use crate::money;
use crate::open_counts::OpenCounts;
use crate::orders::{Orders, PlainOrder};
use crate::outbox::Outbox;
use crate::pending::ActiveOrder;
use crate::pool::NONE;
use crate::symbols::Symbol;
use core::mem::offset_of;
use touchline_protocol::message::command::{CancelOrder, NewOrder, SymbolFilters};
use touchline_protocol::message::enums::{OrderStatus, OrderType, Side, SymbolStatus, TimeInForce};
use touchline_protocol::message::event::{OrderAccepted, OrderCanceled, OrderResult};
use touchline_protocol::units::{AccountId, OrderId, OrderListId, Price, Qty, SessionId};

/// An order that passes everything: what is known of it, and what it changes, looked up once.
struct Passed<'core> {
    account_id: AccountId,
    side: Side,
    /// It can take at once.
    takes: bool,
    /// Amount to lock: quote for a buy, base for a sell.
    locked: i64,
    /// The account's order counts with it.
    windows: [OrderWindow; 2],
    /// Hash of its client order id.
    name_hash: u32,
    /// Slot of the counts of its account and symbol, or none.
    pair: u32,
    account: &'core mut Account,
    /// The balance that it is paid from.
    means: &'core mut Balance,
    symbol: &'core mut Symbol,
    book: &'core mut SymbolBook,
    pools: &'core mut BookPools,
    orders: &'core mut Orders,
}

/// What was accepted.
#[derive(Clone, Copy)]
struct Accepted {
    order_id: OrderId,
    account: AccountId,
    side: Side,
    locked: i64,
    order_counts: [u32; 2],
}

/// The least that the side, type, time in force and flags of a plain order are; the side and the time in force
/// may be one more. (Whether the whole of an FOK order can be filled is a question of its own.)
const LEAST: [u8; 4] =
    [Side::Buy.to_wire(), OrderType::Limit.to_wire(), TimeInForce::Gtc.to_wire(), 0];

const _: () = {
    let side = offset_of!(NewOrder, side);
    assert!(offset_of!(NewOrder, order_type) == side + 1);
    assert!(offset_of!(NewOrder, time_in_force) == side + 2);
    assert!(offset_of!(NewOrder, flags) == side + 3);
};
const _: () = assert!(Side::Sell.to_wire() == LEAST[0] + 1);
const _: () = assert!(TimeInForce::Ioc.to_wire() == LEAST[2] + 1);

/// The side of an order that is LIMIT, GTC or IOC, and nothing else, and whether what it cannot take is to rest.
#[inline(always)]
fn plain_kind(message: &NewOrder) -> Option<(Side, bool)> {
    let special = message.quote_quantity | message.stop_price | message.iceberg_quantity;
    // Four bytes as they lie in the message, beyond the least that each may be. The first that is below that makes
    // 255 of itself, whatever it does to those behind it.
    let four = bytemuck::bytes_of(message)[offset_of!(NewOrder, side)..].first_chunk()?;
    let beyond = u32::from_le_bytes(*four).wrapping_sub(u32::from_le_bytes(LEAST));
    let is_plain = special == 0
        && message.self_trade_prevention == 0
        && beyond & !u32::from_le_bytes([1, 0, 1, 0]) == 0;
    let [sells, _, is_immediate, _] = beyond.to_le_bytes();
    let side = if sells == 0 { Side::Buy } else { Side::Sell };
    is_plain.then_some((side, is_immediate == 0))
}

/// True when an account may place LIMIT orders on a symbol now.
#[inline(always)]
fn is_open_to(symbol: &Symbol, account: &Account) -> bool {
    symbol.status == SymbolStatus::Trading
        && OrderType::Limit.is_in(symbol.order_types)
        && !symbol.has_pending
        && symbol.permissions & account.permissions != 0
        && !account.is_killed
}

/// True when there are fewer than `most`; 0: there may be any number.
#[inline(always)]
const fn is_below(count: u32, most: u32) -> bool {
    count <= most.wrapping_sub(1)
}

/// True for a position, above zero, that there may be for certain: up to MAX_POSITION if it is a buy that makes it.
#[inline(always)]
fn may_have_position(filters: &SymbolFilters, is_buy: bool, position: u64) -> bool {
    // One less, so that 0 becomes the most there is.
    let less_one = filters.max_position.cast_unsigned().wrapping_sub(1);
    position.wrapping_sub(1) <= core::hint::select_unpredictable(is_buy, less_one, u64::MAX)
}

/// What an order locks and of which balance, if there is as much free and the account may have the position that
/// it makes. Which side it is cannot be guessed, so nothing branches on it.
#[inline(always)]
fn afford<'core>(
    symbol: &Symbol,
    open: &OpenCounts,
    balances: &'core mut [Balance],
    (side, quantity, notional): (Side, i64, u128),
) -> Option<(i64, &'core mut Balance)> {
    let is_buy = side == Side::Buy;
    let base = &balances[symbol.base.0 as usize];
    // All that there is of an asset is no more than half of what `i64` holds.
    let with_it = base.free.0.wrapping_add(base.locked.0).wrapping_add(quantity);
    let position = with_it.cast_unsigned().checked_add(u64::try_from(open.bought).ok()?)?;
    if !may_have_position(&symbol.filters, is_buy, position) {
        return None;
    }
    let paid_with = [symbol.base, symbol.quote][usize::from(is_buy)];
    let means = &mut balances[paid_with.0 as usize];
    let amount = money::rounded_up(notional);
    let locked = core::hint::select_unpredictable(is_buy, amount, quantity);
    (locked <= means.free.0).then_some((locked, means))
}

impl Core {
    /// Places an order that goes the short way; false for any other, of which nothing has happened.
    #[inline(never)]
    pub(super) fn place_plain(
        &mut self,
        context: &Context,
        message: &NewOrder,
        outbox: &mut Outbox<'_>,
    ) -> bool {
        let Some(mut passed) = self.pass_plain(context, message) else { return false };
        outbox.set_replier(message.command.session);
        if passed.takes {
            let accepted = passed.accept(message, outbox);
            self.take_plain(context, message, &accepted, outbox);
        } else {
            passed.rest(context, message, outbox);
        }
        self.note_decided(context, &message.command);
        true
    }

    /// All checks of an order that goes the short way; `None` of any other. No state changes.
    #[inline(always)]
    fn pass_plain(&mut self, context: &Context, message: &NewOrder) -> Option<Passed<'_>> {
        let NewOrder { symbol: id, price, quantity, .. } = *message;
        let (side, may_rest) = plain_kind(message)?;
        let account_id = self.plain_sender(context, &message.command)?;
        if self.max_orders != 0 && !self.has_room_on_all_symbols(account_id) {
            return None;
        }
        let name_hash = self.orders.name_hash(account_id, id, &message.client_order_id);
        let name = &message.client_order_id;
        if self.orders.may_have_namesake(name_hash)
            && self.orders.is_among_namesakes(&self.pools, account_id, id, name, name_hash)
        {
            return None;
        }
        let (symbol, book, triggers) = self.symbols.at_time(id, context.time_ns)?;
        let (account, balances) = self.accounts.with_balances(account_id);
        if !is_open_to(symbol, account)
            || self.pending.is_of_every_symbol()
            || has_triggered(symbol, triggers)
        {
            return None;
        }
        let takes = book.crosses(side, Price(price));
        let has_room = if takes {
            self.pending.ordinary() < self.limits.pending_work
        } else {
            let kept = u64::from(self.pending.reserved());
            let levels = u64::from(self.pools.levels()) + u64::from(self.orders.reserved()) + kept;
            may_rest
                && u64::from(self.pools.orders()) + kept < u64::from(self.limits.open_orders)
                && levels < u64::from(self.limits.price_levels)
        };
        let notional = money::notional(price, quantity);
        if !has_room || !symbol.bounds.allow(price, quantity, notional) {
            return None;
        }
        let pair = self.orders.pair_of(account_id, id);
        let open = self.orders.counts_at(pair);
        if !is_below(open.all, symbol.filters.max_orders) {
            return None;
        }
        let (locked, means) = afford(symbol, open, balances, (side, quantity, notional))?;
        self.calendar.turn_to(context.time_ns, &self.limits);
        let most = [self.limits.orders_per_interval_0, self.limits.orders_per_interval_1];
        Some(Passed {
            account_id,
            side,
            takes,
            locked,
            windows: one_more(&account.windows, self.calendar.present(), most)?,
            name_hash,
            pair,
            account,
            means,
            symbol,
            book,
            pools: &mut self.pools,
            orders: &mut self.orders,
        })
    }

    /// EXCHANGE_MAX_NUM_ORDERS.
    #[inline(never)]
    fn has_room_on_all_symbols(&self, account: AccountId) -> bool {
        let [open, _] = self.orders.totals(account);
        // One that is taking on another symbol, and may rest, is open too.
        open + self.pending.may_rest_of(account) < self.max_orders
    }

    /// Lets an order take that is accepted and can at once.
    #[inline(never)]
    fn take_plain(
        &mut self,
        context: &Context,
        message: &NewOrder,
        accepted: &Accepted,
        outbox: &mut Outbox<'_>,
    ) {
        let Accepted { order_id, account, side, locked, order_counts } = *accepted;
        let time_in_force = if message.time_in_force == TimeInForce::Gtc.to_wire() {
            TimeInForce::Gtc
        } else {
            TimeInForce::Ioc
        };
        let active = ActiveOrder {
            order_id,
            account,
            symbol: message.symbol,
            kind: OrderKind { side, order_type: OrderType::Limit, time_in_force },
            price: Price(message.price),
            stop_price: Price::ZERO,
            quantity: message.quantity,
            remaining: message.quantity,
            executed_quote: 0,
            locked,
            has_own_lock: false,
            iceberg: 0,
            order_list_id: OrderListId::NONE,
            ran_dry: false,
            prevention: None,
            prevention_now: self.prevention(account, None),
            prevented: 0,
            priority: context.position,
            placed: context.position,
            place: NONE,
            last_fill_price: Price::ZERO,
            last_fill_time_ns: 0,
            order_counts,
            placed_by: message.command.session,
            session: message.command.session,
            epoch: message.command.epoch,
            correlation: message.command.correlation,
            sequence: message.command.sequence,
            client_order_id: message.client_order_id,
        };
        self.begin_taking(context, active, outbox);
    }

    /// Cancels by number what is open and has nothing but its record; false of any other, of which nothing has
    /// happened.
    #[inline(never)]
    pub(super) fn cancel_plain(
        &mut self,
        context: &Context,
        message: &CancelOrder,
        outbox: &mut Outbox<'_>,
    ) -> bool {
        let &CancelOrder { symbol: id, order_id, .. } = message;
        let Some(account) = self.plain_sender(context, &message.command) else { return false };
        let at = id.0 as usize;
        let (symbol, books) = (self.symbols.list.get_mut(at), &mut self.symbols.books);
        let Some(symbol) = symbol else { return false };
        if symbol.has_pending || self.pending.is_of_every_symbol() {
            return false;
        }
        let Some(open) = self.orders.find_plain(&self.pools, (account, id, order_id)) else {
            return false;
        };
        outbox.set_replier(message.command.session);
        note_sequence(&mut self.sessions, &mut self.engine_sequence, &message.command);
        self.last_time_ns = context.time_ns;
        let (price, remaining) = books[at].take_away(&mut self.pools, open.handle);
        let record = open.record();
        let (kind, released) = (record.kind, record.locked(price, remaining.0));
        self.accounts.release(account, symbol.paid_with(kind.side), released);
        symbol.counters.book_update.0 += 1;
        outbox.address(record.session, account, self.accounts.is_watched(account));
        outbox.push(&OrderCanceled {
            order_id,
            account,
            symbol: id,
            price: price.0,
            quantity: record.quantity,
            executed_quantity: record.quantity - remaining.0,
            executed_quote: record.executed_quote,
            released,
            book_update_id: symbol.counters.book_update,
            order_list_id: OrderListId::NONE,
            status: OrderStatus::Canceled.to_wire(),
            side: kind.side.to_wire(),
            order_type: kind.order_type.to_wire(),
            time_in_force: kind.time_in_force.to_wire(),
            client_order_id: *open.client_order_id(),
            ..Default::default()
        });
        open.forget();
        true
    }
}

/// Puts an order into the book and among the open ones. Apart, so that what it needs is at hand and not
/// what the checks did.
#[inline(never)]
fn put(
    book: &mut SymbolBook,
    pools: &mut BookPools,
    orders: &mut Orders,
    plain: &PlainOrder,
    message: &NewOrder,
) {
    let owner = (plain.order_id, plain.account.0);
    let price = Price(message.price);
    let handle = book.rest(pools, plain.side, price, Qty(message.quantity), owner);
    orders.insert_plain(handle, plain, message);
}

/// An account's order counts with one order more, in the windows that are now; `None` if it would be more than
/// `most`.
#[inline(always)]
fn one_more(
    windows: &[OrderWindow; 2],
    present: [u64; 2],
    most: [u32; 2],
) -> Option<[OrderWindow; 2]> {
    let counts = [windows[0].count_in(present[0]), windows[1].count_in(present[1])];
    if !is_below(counts[0], most[0]) || !is_below(counts[1], most[1]) {
        return None;
    }
    let [first, second] = counts.map(|count| count.saturating_add(1));
    let [window_0, window_1] = present;
    Some([
        OrderWindow { window: window_0, count: first },
        OrderWindow { window: window_1, count: second },
    ])
}

impl Passed<'_> {
    /// Accepts the order: it has its number, its lock, and its place among the counted ones.
    #[inline(always)]
    fn accept(&mut self, message: &NewOrder, outbox: &mut Outbox<'_>) -> Accepted {
        let Self { account_id, side, locked, windows, .. } = *self;
        let NewOrder { symbol, price, quantity, .. } = *message;
        let session = message.command.session;
        self.symbol.counters.order.0 += 1;
        let order_id = self.symbol.counters.order;
        self.means.free.0 -= locked;
        self.means.locked.0 += locked;
        self.account.windows = windows;
        self.address(session, outbox);
        outbox.push(&OrderAccepted {
            order_id,
            account: account_id,
            symbol,
            locked,
            price,
            quantity,
            order_list_id: OrderListId::NONE,
            side: side.to_wire(),
            order_type: OrderType::Limit.to_wire(),
            time_in_force: message.time_in_force,
            session,
            ..Default::default()
        });
        let order_counts = windows.map(|window| window.count);
        Accepted { order_id, account: account_id, side, locked, order_counts }
    }

    /// Accepts the order and puts it to rest.
    #[inline(always)]
    fn rest(mut self, context: &Context, message: &NewOrder, outbox: &mut Outbox<'_>) {
        let Accepted { order_id, account, order_counts, .. } = self.accept(message, outbox);
        let NewOrder { symbol: id, quantity, .. } = *message;
        let session = message.command.session;
        self.symbol.counters.book_update.0 += 1;
        self.address(session, outbox);
        outbox.push(&OrderResult {
            order_id,
            account,
            symbol: id,
            quantity,
            book_update_id: self.symbol.counters.book_update,
            order_list_id: OrderListId::NONE,
            order_count_0: order_counts[0],
            order_count_1: order_counts[1],
            status: OrderStatus::New.to_wire(),
            ..Default::default()
        });
        let plain = PlainOrder {
            order_id,
            account,
            side: self.side,
            placed: context.position,
            pair: self.pair,
            name_hash: self.name_hash,
        };
        put(self.book, self.pools, self.orders, &plain, message);
    }

    /// Notes whom the event that is pushed next concerns. It is the sender's own: nobody but who watches the
    /// account is to be told besides.
    #[inline(always)]
    fn address(&self, session: SessionId, outbox: &mut Outbox<'_>) {
        if self.account.watchers > 0 {
            outbox.address(session, self.account_id, true);
        }
    }
}
