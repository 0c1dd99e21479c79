//! Placing orders: the checks, the lock, the acceptance.

use super::trigger::trigger_side;
use super::{Applied, Context, Reject};
use crate::Core;
use crate::accounts::OrderWindow;
use crate::book::Aggressor;
use crate::filters::{self, OrderKind};
use crate::limits::number;
use crate::money;
use crate::open_counts::OpenCounts;
use crate::outbox::Outbox;
use crate::pending::ActiveOrder;
use crate::pool::NONE;
use crate::symbols::Symbol;
use touchline_protocol::message::command::{CommandHeader, NewOrder, ORDER_VALIDATE_ONLY};
use touchline_protocol::message::enums::{
    OrderStatus, OrderType, RejectReason, SelfTradePrevention, Side, SymbolStatus,
};
use touchline_protocol::message::event::{OrderAccepted, OrderValid};
use touchline_protocol::units::{AccountId, OrderId, OrderListId, Price, Qty, SymbolId};

/// What an order comes to with the account and the book as they are.
pub(super) struct Terms {
    /// Base quantity; of a MARKET order by quote quantity, what that buys or sells.
    pub(super) quantity: i64,
    /// Amount to lock: quote for a buy, base for a sell.
    pub(super) locked: i64,
    /// There is less in the book than a MARKET order by quote quantity asks for.
    pub(super) ran_dry: bool,
}

impl Core {
    /// Places an order, or only checks it.
    pub(super) fn new_order(
        &mut self,
        context: &Context,
        message: &NewOrder,
        outbox: &mut Outbox<'_>,
    ) -> Result<Applied, Reject> {
        let account = self.placing_account(&message.command, message.symbol)?;
        let (kind, windows) = self.check_placement(context.time_ns, account, message)?;
        if message.flags & ORDER_VALIDATE_ONLY != 0 {
            outbox.push(&OrderValid { symbol: message.symbol, ..Default::default() });
            return Ok(Applied::Valid);
        }
        let terms = self.check_engine_state(account, message, kind)?;
        self.accept(context, (account, message, kind), (&terms, windows), outbox);
        Ok(Applied::Committed)
    }

    /// The account that a placement or replacement is for, on a symbol where it may place now.
    pub(super) fn placing_account(
        &self,
        command: &CommandHeader,
        symbol: SymbolId,
    ) -> Result<AccountId, Reject> {
        let account = self.trading_account(command)?;
        let symbol = self.settled_symbol(symbol)?;
        if symbol.permissions & self.accounts.list[account.0 as usize].permissions == 0 {
            return Err(RejectReason::SymbolNotPermitted.into());
        }
        self.check_alive(account)?;
        Ok(account)
    }

    /// What an order must pass whatever its account has and whatever is in the book; gives its kind, and
    /// the account's order counts with it.
    pub(super) fn check_placement(
        &self,
        time_ns: u64,
        account: AccountId,
        message: &NewOrder,
    ) -> Result<(OrderKind, [OrderWindow; 2]), Reject> {
        let symbol = &self.symbols.list[message.symbol.0 as usize];
        let kind = filters::order_kind(self.rules, message, symbol)?;
        filters::check_order(&symbol.filters, kind, message)?;
        self.check_averages(time_ns, message, kind)?;
        if symbol.status != SymbolStatus::Trading {
            return Err(RejectReason::SymbolNotTrading.into());
        }
        Ok((kind, self.count_orders(account, time_ns, 1)?))
    }

    /// A symbol whose book may be touched. The engine runs a symbol's pending work before it passes on
    /// the next command of that symbol, so the reject is for a caller that does not.
    pub(super) fn settled_symbol(&self, id: SymbolId) -> Result<&Symbol, Reject> {
        let symbol = self.symbols.get(id).ok_or(RejectReason::UnknownSymbol)?;
        if symbol.has_pending || self.pending.is_of_every_symbol() {
            return Err(RejectReason::LogUnavailable.into());
        }
        Ok(symbol)
    }

    /// A killed account places nothing.
    pub(super) fn check_alive(&self, account: AccountId) -> Result<(), Reject> {
        if self.accounts.list[account.0 as usize].is_killed {
            return Err(RejectReason::AccountKilled.into());
        }
        Ok(())
    }

    /// The filters that depend on the average price.
    pub(super) fn check_averages(
        &self,
        time_ns: u64,
        message: &NewOrder,
        kind: OrderKind,
    ) -> Result<(), Reject> {
        let symbol = &self.symbols.list[message.symbol.0 as usize];
        let filters = &symbol.filters;
        let average = |minutes| {
            let last = (symbol.last_price != Price::ZERO).then_some(symbol.last_price);
            self.symbols.averages.average(message.symbol, time_ns, minutes).or(last)
        };
        if !kind.is_market() && (filters.percent_price_up | filters.percent_price_down) != 0 {
            return average(filters.percent_price_minutes).map_or(Ok(()), |average| {
                filters::check_percent_price(filters, message.price, average)
            });
        }
        if kind.order_type == OrderType::Market
            && filters.min_notional != 0
            && filters.min_notional_applies_to_market != 0
        {
            let average = average(filters.min_notional_minutes);
            return filters::check_market_notional(filters, message, average);
        }
        Ok(())
    }

    /// MAX_POSITION: what an account would have of the base asset if all its buys were filled.
    pub(super) fn check_position(
        &self,
        account: AccountId,
        id: SymbolId,
        quantity: i64,
    ) -> Result<(), Reject> {
        let symbol = &self.symbols.list[id.0 as usize];
        let most = u128::from(symbol.filters.max_position.cast_unsigned());
        if most == 0 {
            return Ok(());
        }
        let balance = self.accounts.balance(account, symbol.base);
        let position = [balance.free.0, balance.locked.0, quantity]
            .map(|part| u128::from(part.cast_unsigned()))
            .iter()
            .sum::<u128>()
            + self.orders.open_counts(account, id).bought;
        if position > most {
            return Err(RejectReason::MaxPosition.into());
        }
        Ok(())
    }

    /// The account's order counts. Calendar windows: the n-th is from n times the interval on (facts §8).
    pub(super) fn order_windows(&self, account: AccountId, time_ns: u64) -> [OrderWindow; 2] {
        let seconds = [self.limits.interval_0_seconds, self.limits.interval_1_seconds];
        let mut windows = self.accounts.list[account.0 as usize].windows;
        for (order_window, seconds) in windows.iter_mut().zip(seconds) {
            let window = time_ns / (u64::from(seconds) * 1_000_000_000);
            if order_window.window != window {
                *order_window = OrderWindow { window, count: 0 };
            }
        }
        windows
    }

    /// The account's order counts with so many more orders, if the limits allow all of them.
    pub(super) fn count_orders(
        &self,
        account: AccountId,
        time_ns: u64,
        more: u32,
    ) -> Result<[OrderWindow; 2], Reject> {
        let limits = [self.limits.orders_per_interval_0, self.limits.orders_per_interval_1];
        let mut windows = self.order_windows(account, time_ns);
        for (index, order_window) in windows.iter_mut().enumerate() {
            let count = u64::from(order_window.count) + u64::from(more);
            if limits[index] != 0 && count > u64::from(limits[index]) {
                return Err(Reject::with(RejectReason::TooManyOrders, index as u32));
            }
            order_window.count = order_window.count.saturating_add(more);
        }
        Ok(windows)
    }

    /// What depends on the account's orders and balance and on the venue's capacity.
    pub(super) fn check_engine_state(
        &self,
        account: AccountId,
        message: &NewOrder,
        kind: OrderKind,
    ) -> Result<Terms, Reject> {
        let id = message.symbol;
        let symbol = &self.symbols.list[id.0 as usize];
        let book = &self.symbols.books[id.0 as usize];
        let added = OpenCounts {
            all: 1,
            icebergs: u32::from(message.iceberg_quantity != 0),
            algos: u32::from(kind.is_stop()),
            ..Default::default()
        };
        self.check_open_counts(account, id, &added)?;
        let name = &message.client_order_id;
        if self.orders.find_by_client_order_id(&self.pools, account, id, name).is_some() {
            return Err(RejectReason::DuplicateClientOrderId.into());
        }
        let limit = Price(message.price);
        if kind.is_stop() {
            return self.check_stop(account, message, kind);
        }
        if kind.order_type == OrderType::LimitMaker && book.crosses(kind.side, limit) {
            return Err(RejectReason::WouldTake.into());
        }
        let (quantity, ran_dry) = match message.quote_quantity {
            0 => (message.quantity, false),
            amount => self.quantity_by_quote(id, (kind.side, amount))?,
        };
        if kind.side == Side::Buy {
            self.check_position(account, id, quantity)?;
        }
        let aggressor = kind.aggressor(limit, Qty(quantity));
        let named = SelfTradePrevention::from_wire(message.self_trade_prevention);
        let prevention = self.prevention(account, named);
        self.check_capacity((account, id), (kind, prevention), &aggressor)?;
        let free = self.accounts.balance(account, symbol.paid_with(kind.side)).free;
        let locked = match kind.side {
            Side::Sell => Some(quantity),
            Side::Buy if message.quote_quantity != 0 => Some(message.quote_quantity),
            Side::Buy if kind.is_market() => Some(self.market_lock(book, &aggressor, free)?),
            Side::Buy => money::quote_rounded_up(message.price, quantity),
        };
        let locked =
            locked.filter(|&locked| locked <= free.0).ok_or(RejectReason::InsufficientBalance)?;
        Ok(Terms { quantity, locked, ran_dry })
    }

    /// Filters on the number of open orders, with what is to be added.
    pub(super) fn check_open_counts(
        &self,
        account: AccountId,
        symbol: SymbolId,
        added: &OpenCounts,
    ) -> Result<(), Reject> {
        let filters = &self.symbols.list[symbol.0 as usize].filters;
        // Looking the counts up is the dear part of it.
        let is_limited =
            (filters.max_orders | filters.max_iceberg_orders | filters.max_algo_orders) != 0;
        let open = if is_limited {
            self.orders.open_counts(account, symbol)
        } else {
            OpenCounts::default()
        };
        let [all, algos] = self.orders.totals(account);
        // One that is taking on another symbol, and may rest, is open too.
        let taking = if self.max_orders == 0 { 0 } else { self.pending.may_rest_of(account) };
        let exceeds =
            |most: u32, open: u32, added: u32| added > 0 && most != 0 && open + added > most;
        if exceeds(filters.max_orders, open.all, added.all) {
            return Err(RejectReason::MaxNumOrders.into());
        }
        if exceeds(filters.max_iceberg_orders, open.icebergs, added.icebergs) {
            return Err(RejectReason::MaxNumIcebergOrders.into());
        }
        if exceeds(self.max_orders, all + taking, added.all) {
            return Err(RejectReason::ExchangeMaxNumOrders.into());
        }
        if exceeds(filters.max_algo_orders, open.algos, added.algos) {
            return Err(RejectReason::MaxNumAlgoOrders.into());
        }
        if exceeds(self.max_algo_orders, algos, added.algos) {
            return Err(RejectReason::ExchangeMaxNumAlgoOrders.into());
        }
        Ok(())
    }

    /// Room for what may rest and for what may have to be continued; why this is enough:
    /// [`PendingQueue`](crate::pending::PendingQueue).
    pub(super) fn check_capacity(
        &self,
        (account, id): (AccountId, SymbolId),
        (kind, prevention): (OrderKind, SelfTradePrevention),
        aggressor: &Aggressor,
    ) -> Result<(), Reject> {
        let book = &self.symbols.books[id.0 as usize];
        let triggers = &self.symbols.triggers[id.0 as usize];
        let has_stops = triggers.best(Side::Buy).is_some() || triggers.best(Side::Sell).is_some();
        if book.crosses(aggressor.side, aggressor.limit) {
            let is_full = self.pending.ordinary() >= self.limits.pending_work;
            let may_be_continued =
                has_stops || self.may_exceed((account, id), prevention, aggressor);
            if is_full && may_be_continued {
                return Err(Reject::with(RejectReason::CapacityReached, number::PENDING_WORK));
            }
            return Ok(());
        }
        if !kind.may_rest() {
            return Ok(());
        }
        self.check_open_orders(1)?;
        let has_level = book.has_level(&self.pools, aggressor.side, aggressor.limit);
        self.check_levels(u32::from(!has_level))
    }

    /// Room for so many more price levels, next to what is kept for those that may still rest.
    pub(super) fn check_levels(&self, more: u32) -> Result<(), Reject> {
        let used = u64::from(self.pools.levels())
            + u64::from(self.pending.reserved())
            + u64::from(self.orders.reserved());
        if more > 0 && used + u64::from(more) > u64::from(self.limits.price_levels) {
            return Err(Reject::with(RejectReason::CapacityReached, number::PRICE_LEVELS));
        }
        Ok(())
    }

    /// What a stop must pass to wait: it would not fire at once; there is room for it, and for its
    /// rest in the book one day; its funds, a buy's by its limit or without one by its stop price.
    fn check_stop(
        &self,
        account: AccountId,
        message: &NewOrder,
        kind: OrderKind,
    ) -> Result<Terms, Reject> {
        let at = message.symbol.0 as usize;
        let (symbol, quantity) = (&self.symbols.list[at], message.quantity);
        if symbol.last_price != Price::ZERO
            && kind.is_fired_by(symbol.last_price, message.stop_price)
        {
            return Err(RejectReason::WouldTrigger.into());
        }
        if kind.side == Side::Buy {
            self.check_position(account, message.symbol, quantity)?;
        }
        self.check_open_orders(1)?;
        let (side, stop_price) = (trigger_side(kind), Price(message.stop_price));
        let has_level = self.symbols.triggers[at].has_level(&self.pools, side, stop_price);
        self.check_levels(u32::from(!has_level) + u32::from(kind.may_rest()))?;
        let price = if kind.is_market() { message.stop_price } else { message.price };
        let locked = match kind.side {
            Side::Sell => Some(quantity),
            Side::Buy => money::quote_rounded_up(price, quantity),
        };
        let free = self.accounts.balance(account, symbol.paid_with(kind.side)).free.0;
        let locked =
            locked.filter(|&locked| locked <= free).ok_or(RejectReason::InsufficientBalance)?;
        Ok(Terms { quantity, locked, ran_dry: false })
    }

    /// Room for so many more open orders.
    pub(super) fn check_open_orders(&self, more: u32) -> Result<(), Reject> {
        let used = u64::from(self.pools.orders()) + u64::from(self.pending.reserved());
        if used + u64::from(more) > u64::from(self.limits.open_orders) {
            return Err(Reject::with(RejectReason::CapacityReached, number::OPEN_ORDERS));
        }
        Ok(())
    }

    /// From here on nothing is refused.
    pub(super) fn accept(
        &mut self,
        context: &Context,
        (account, message, kind): (AccountId, &NewOrder, OrderKind),
        (terms, windows): (&Terms, [OrderWindow; 2]),
        outbox: &mut Outbox<'_>,
    ) {
        self.accounts.list[account.0 as usize].windows = windows;
        let order = (account, message, kind);
        let mut active = self.admit(context, order, terms, OrderListId::NONE, outbox);
        if kind.is_stop() {
            self.wait(&active);
            self.report(&active, OrderStatus::New, 0, outbox);
        } else if self.is_unfillable(&active) {
            self.finish(&active, outbox);
        } else {
            let mut steps = self.limits.max_steps;
            let is_done = self.advance(context, &mut active, &mut steps, outbox);
            self.leave_pending(message.symbol, (!is_done).then_some(active));
        }
    }

    /// Gives an order its number, locks what it needs, and reports that it is accepted.
    pub(super) fn admit(
        &mut self,
        context: &Context,
        (account, message, kind): (AccountId, &NewOrder, OrderKind),
        terms: &Terms,
        order_list_id: OrderListId,
        outbox: &mut Outbox<'_>,
    ) -> ActiveOrder {
        let symbol = &mut self.symbols.list[message.symbol.0 as usize];
        symbol.counters.order.0 += 1;
        let order_id = symbol.counters.order;
        let asset = symbol.paid_with(kind.side);
        self.accounts.lock(account, asset, terms.locked);
        self.address(message.command.session, account, outbox);
        outbox.push(&OrderAccepted {
            order_id,
            account,
            symbol: message.symbol,
            locked: terms.locked,
            price: message.price,
            quantity: terms.quantity,
            order_list_id,
            side: kind.side.to_wire(),
            order_type: kind.order_type.to_wire(),
            time_in_force: kind.time_in_force.to_wire(),
            session: message.command.session,
            ..Default::default()
        });
        self.taking_order(context, (account, message, kind), terms, (order_id, order_list_id))
    }

    /// An order that is accepted now and is about to take.
    fn taking_order(
        &self,
        context: &Context,
        (account, message, kind): (AccountId, &NewOrder, OrderKind),
        terms: &Terms,
        (order_id, order_list_id): (OrderId, OrderListId),
    ) -> ActiveOrder {
        let prevention = SelfTradePrevention::from_wire(message.self_trade_prevention);
        let windows = self.accounts.list[account.0 as usize].windows;
        ActiveOrder {
            order_id,
            account,
            symbol: message.symbol,
            kind,
            price: Price(message.price),
            stop_price: Price(message.stop_price),
            quantity: terms.quantity,
            remaining: terms.quantity,
            executed_quote: 0,
            locked: terms.locked,
            has_own_lock: false,
            iceberg: message.iceberg_quantity,
            order_list_id,
            ran_dry: terms.ran_dry,
            prevention,
            prevention_now: self.prevention(account, prevention),
            prevented: 0,
            priority: context.position,
            placed: context.position,
            place: NONE,
            last_fill_price: Price::ZERO,
            last_fill_time_ns: 0,
            order_counts: windows.map(|window| window.count),
            placed_by: message.command.session,
            session: message.command.session,
            epoch: message.command.epoch,
            correlation: message.command.correlation,
            sequence: message.command.sequence,
            client_order_id: message.client_order_id,
        }
    }
}
