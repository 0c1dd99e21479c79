//! Placing orders: the checks, the lock, the acceptance.

use super::site::Site;
use super::trigger::trigger_side;
use super::{Applied, Context, Reject};
use crate::Core;
use crate::accounts::OrderWindow;
use crate::filters::{self, OrderKind};
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
    #[inline(never)]
    pub(super) fn new_order(
        &mut self,
        context: &Context,
        message: &NewOrder,
        outbox: &mut Outbox<'_>,
    ) -> Result<Applied, Reject> {
        let account = self.placing_account(&message.command, message.symbol)?;
        self.prepare(context.time_ns, message.symbol);
        let site = self.site(account, message.symbol);
        let kind = filters::order_kind(self.rules, message, site.symbol)?;
        let windows = self.check_kind(context.time_ns, &site, (message, kind))?;
        if message.flags & ORDER_VALIDATE_ONLY != 0 {
            outbox.push(&OrderValid { symbol: message.symbol, ..Default::default() });
            return Ok(Applied::Valid);
        }
        let terms = self.check_engine_state(&site, message, kind)?;
        self.accept(context, (account, message, kind), (&terms, windows), outbox);
        Ok(Applied::Committed)
    }

    /// The account that a placement or replacement is for, on a symbol where it may place now.
    #[inline(always)]
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
        let site = self.site(account, message.symbol);
        let kind = filters::order_kind(self.rules, message, site.symbol)?;
        Ok((kind, self.check_kind(time_ns, &site, (message, kind))?))
    }

    /// As [`check_placement`](Self::check_placement), for an order whose kind is known.
    #[inline(always)]
    fn check_kind(
        &self,
        time_ns: u64,
        site: &Site<'_>,
        (message, kind): (&NewOrder, OrderKind),
    ) -> Result<[OrderWindow; 2], Reject> {
        if site.symbol.status != SymbolStatus::Trading {
            return Err(RejectReason::SymbolNotTrading.into());
        }
        filters::check_order(&site.symbol.filters, kind, message)?;
        self.check_averages(time_ns, site, (message, kind))?;
        self.count_orders(site.account, time_ns, 1)
    }

    /// A symbol whose book may be touched. The engine runs a symbol's pending work before it passes on
    /// the next command of that symbol, so the reject is for a caller that does not.
    #[inline(always)]
    pub(super) fn settled_symbol(&self, id: SymbolId) -> Result<&Symbol, Reject> {
        let symbol = self.symbols.get(id).ok_or(RejectReason::UnknownSymbol)?;
        if symbol.has_pending || self.pending.is_of_every_symbol() {
            return Err(RejectReason::LogUnavailable.into());
        }
        Ok(symbol)
    }

    /// A killed account places nothing.
    #[inline(always)]
    pub(super) fn check_alive(&self, account: AccountId) -> Result<(), Reject> {
        if self.accounts.list[account.0 as usize].is_killed {
            return Err(RejectReason::AccountKilled.into());
        }
        Ok(())
    }

    /// Has at hand what the checks of a limit order look up by time. No state changes.
    #[inline(always)]
    fn prepare(&mut self, time_ns: u64, id: SymbolId) {
        self.calendar.turn_to(time_ns, &self.limits);
        let filters = &self.symbols.list[id.0 as usize].filters;
        if (filters.percent_price_up | filters.percent_price_down) != 0 {
            self.symbols.averages.prepare(id, time_ns, filters.percent_price_minutes);
        }
    }

    /// The filters that depend on the average price.
    #[inline(always)]
    pub(super) fn check_averages(
        &self,
        time_ns: u64,
        site: &Site<'_>,
        (message, kind): (&NewOrder, OrderKind),
    ) -> Result<(), Reject> {
        let filters = &site.symbol.filters;
        let average = |minutes| {
            let last = site.symbol.last_price;
            let last = (last != Price::ZERO).then_some(last);
            self.symbols.averages.average(site.symbol_id, time_ns, minutes).or(last)
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

    /// What depends on the account's orders and balance and on the venue's capacity.
    #[inline(always)]
    pub(super) fn check_engine_state(
        &self,
        site: &Site<'_>,
        message: &NewOrder,
        kind: OrderKind,
    ) -> Result<Terms, Reject> {
        let added = OpenCounts {
            all: 1,
            icebergs: u32::from(message.iceberg_quantity != 0),
            algos: u32::from(kind.is_stop()),
            ..Default::default()
        };
        let open = self.open_at(site);
        self.check_open_counts(site, &open, &added)?;
        let (account, id, name) = (site.account_id, site.symbol_id, &message.client_order_id);
        if self.orders.find_by_client_order_id(&self.pools, account, id, name).is_some() {
            return Err(RejectReason::DuplicateClientOrderId.into());
        }
        let limit = Price(message.price);
        if kind.is_stop() {
            return self.check_stop(site, &open, (message, kind));
        }
        if kind.order_type == OrderType::LimitMaker && site.book.crosses(kind.side, limit) {
            return Err(RejectReason::WouldTake.into());
        }
        let (quantity, ran_dry) = match message.quote_quantity {
            0 => {
                if kind.is_market() {
                    self.check_market_worth(site, (kind.side, message.quantity))?;
                }
                (message.quantity, false)
            }
            amount => self.quantity_by_quote(id, (kind.side, amount))?,
        };
        if kind.side == Side::Buy {
            self.check_position(site, &open, quantity)?;
        }
        let aggressor = kind.aggressor(limit, Qty(quantity));
        let named = SelfTradePrevention::from_wire(message.self_trade_prevention);
        let prevention = named.unwrap_or(site.account.self_trade_prevention);
        self.check_capacity(site, (kind, prevention), &aggressor)?;
        let free = self.means(site, kind.side).free;
        let locked = match kind.side {
            Side::Sell => Some(quantity),
            Side::Buy if message.quote_quantity != 0 => Some(message.quote_quantity),
            Side::Buy if kind.is_market() => {
                Some(self.market_lock(site.book, &aggressor, (free, self.levels_judged()))?)
            }
            Side::Buy => money::quote_rounded_up(message.price, quantity),
        };
        let locked =
            locked.filter(|&locked| locked <= free.0).ok_or(RejectReason::InsufficientBalance)?;
        Ok(Terms { quantity, locked, ran_dry })
    }

    /// What a stop must pass to wait: it would not fire at once; there is room for it, and for its
    /// rest in the book one day; its funds, a buy's by its limit or without one by its stop price.
    fn check_stop(
        &self,
        site: &Site<'_>,
        open: &OpenCounts,
        (message, kind): (&NewOrder, OrderKind),
    ) -> Result<Terms, Reject> {
        let (last_price, quantity) = (site.symbol.last_price, message.quantity);
        if last_price != Price::ZERO && kind.is_fired_by(last_price, message.stop_price) {
            return Err(RejectReason::WouldTrigger.into());
        }
        if kind.side == Side::Buy {
            self.check_position(site, open, quantity)?;
        }
        self.check_open_orders(1)?;
        let (side, stop_price) = (trigger_side(kind), Price(message.stop_price));
        let has_level = site.triggers.has_level(&self.pools, side, stop_price);
        self.check_levels(u32::from(!has_level) + u32::from(kind.may_rest()))?;
        let price = if kind.is_market() { message.stop_price } else { message.price };
        let locked = match kind.side {
            Side::Sell => Some(quantity),
            Side::Buy => money::quote_rounded_up(price, quantity),
        };
        let free = self.means(site, kind.side).free.0;
        let locked =
            locked.filter(|&locked| locked <= free).ok_or(RejectReason::InsufficientBalance)?;
        Ok(Terms { quantity, locked, ran_dry: false })
    }

    /// From here on nothing is refused.
    #[inline(always)]
    pub(super) fn accept(
        &mut self,
        context: &Context,
        (account, message, kind): (AccountId, &NewOrder, OrderKind),
        (terms, windows): (&Terms, [OrderWindow; 2]),
        outbox: &mut Outbox<'_>,
    ) {
        let at = message.symbol.0 as usize;
        let aggressor = kind.aggressor(Price(message.price), Qty(terms.quantity));
        let takes = self.symbols.books[at].crosses(aggressor.side, aggressor.limit)
            || self.has_triggered(at);
        self.accounts.list[account.0 as usize].windows = windows;
        let order = (account, message, kind);
        let active = self.admit(context, order, (terms, windows), OrderListId::NONE, outbox);
        if kind.is_stop() {
            self.wait(&active);
            self.report(&active, OrderStatus::New, 0, outbox);
        } else if takes {
            self.begin_taking(context, active, outbox);
        } else {
            self.end_taking(&active, (false, 0), outbox);
        }
    }

    /// Gives an order its number, locks what it needs, and reports that it is accepted.
    #[inline(always)]
    pub(super) fn admit(
        &mut self,
        context: &Context,
        (account, message, kind): (AccountId, &NewOrder, OrderKind),
        (terms, windows): (&Terms, [OrderWindow; 2]),
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
        let numbers = (order_id, order_list_id);
        self.taking_order(context, (account, message, kind), (terms, windows), numbers)
    }

    /// An order that is accepted now and is about to take.
    #[inline(always)]
    fn taking_order(
        &self,
        context: &Context,
        (account, message, kind): (AccountId, &NewOrder, OrderKind),
        (terms, windows): (&Terms, [OrderWindow; 2]),
        (order_id, order_list_id): (OrderId, OrderListId),
    ) -> ActiveOrder {
        let prevention = SelfTradePrevention::from_wire(message.self_trade_prevention);
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
