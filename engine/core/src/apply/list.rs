//! Order lists: two orders of which one cancels the other (OCO, spot contract §4, facts §5.5). Placing
//! and cancelling them; how one leg ends the other is in `ending`, called by settlement and triggers.
//!
//! While a list is open its limit leg rests in the book as any order does, and its stop leg waits for
//! its trigger. Funds are locked once: the limit leg locks what it needs, the stop leg only what it
//! needs beyond that.

use super::place::Terms;
use super::site::Site;
use super::trigger::trigger_side;
use super::{Applied, Context, Reject};
use crate::Core;
use crate::accounts::OrderWindow;
use crate::filters::{self, OrderKind};
use crate::lists::List;
use crate::money;
use crate::open_counts::OpenCounts;
use crate::outbox::Outbox;
use crate::symbols::Symbol;
use touchline_protocol::message::command::{
    CancelOrderList, NewOrder, ORDER_VALIDATE_ONLY, PlaceOrderList, SYMBOL_OCO,
};
use touchline_protocol::message::enums::{
    ListOrderStatus, ListStatusType, OrderType, RejectReason, Side, SymbolStatus,
};
use touchline_protocol::message::event::{OrderListChanged, OrderValid};
use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::{AccountId, OrderListId, Price, SymbolId};

/// One order of a list, as if it were placed by itself.
struct Leg {
    order: NewOrder,
    kind: OrderKind,
}

/// Both orders of a list.
struct Legs {
    stop: Leg,
    limit: Leg,
}

/// What a list locks: the limit leg as an order of its own would, the stop leg what that leaves.
struct Locks {
    stop: i64,
    limit: i64,
}

impl Core {
    /// Places a list, or only checks it.
    pub(super) fn place_order_list(
        &mut self,
        context: &Context,
        message: &PlaceOrderList,
        outbox: &mut Outbox<'_>,
    ) -> Result<Applied, Reject> {
        let account = self.placing_account(&message.command, message.symbol)?;
        let site = self.site(account, message.symbol);
        let legs = self.read_legs(message, site.symbol)?;
        if site.symbol.status != SymbolStatus::Trading {
            return Err(RejectReason::SymbolNotTrading.into());
        }
        for Leg { order, kind } in [&legs.stop, &legs.limit] {
            filters::check_order(&site.symbol.filters, *kind, order)?;
            self.check_averages(context.time_ns, &site, (order, *kind))?;
        }
        let windows = self.count_orders(site.account, context.time_ns, 2)?;
        if message.flags & ORDER_VALIDATE_ONLY != 0 {
            outbox.push(&OrderValid { symbol: message.symbol, ..Default::default() });
            return Ok(Applied::Valid);
        }
        let locks = self.check_list(&site, message, &legs)?;
        self.accept_list(context, account, (message, &legs), (&locks, windows), outbox);
        Ok(Applied::Committed)
    }

    /// Makes of a list's message those of its two orders, and reads their enumerations.
    fn read_legs(&self, message: &PlaceOrderList, symbol: &Symbol) -> Result<Legs, Reject> {
        Side::from_wire(message.side).ok_or(RejectReason::InvalidSide)?;
        if symbol.flags & SYMBOL_OCO == 0 {
            return Err(RejectReason::OrderTypeNotSupported.into());
        }
        let has_limit = message.stop_limit_price != 0;
        if has_limit != (message.stop_limit_time_in_force != 0) {
            return Err(RejectReason::UnsupportedCombination.into());
        }
        let both = NewOrder {
            command: message.command,
            symbol: message.symbol,
            side: message.side,
            flags: message.flags,
            quantity: message.quantity,
            ..Default::default()
        };
        let stop_type = if has_limit { OrderType::StopLossLimit } else { OrderType::StopLoss };
        let stop = NewOrder {
            order_type: stop_type.to_wire(),
            time_in_force: message.stop_limit_time_in_force,
            price: message.stop_limit_price,
            stop_price: message.stop_price,
            iceberg_quantity: message.stop_iceberg_quantity,
            client_order_id: message.stop_client_order_id,
            self_trade_prevention: message.self_trade_prevention,
            ..both
        };
        let limit = NewOrder {
            order_type: OrderType::LimitMaker.to_wire(),
            price: message.price,
            iceberg_quantity: message.limit_iceberg_quantity,
            client_order_id: message.limit_client_order_id,
            ..both
        };
        let read = |order: NewOrder| {
            filters::order_kind(self.rules, &order, symbol).map(|kind| Leg { order, kind })
        };
        Ok(Legs { stop: read(stop)?, limit: read(limit)? })
    }

    /// What depends on the account's orders and balance, on the book, and on the venue's capacity.
    fn check_list(
        &self,
        site: &Site<'_>,
        message: &PlaceOrderList,
        legs: &Legs,
    ) -> Result<Locks, Reject> {
        let Legs { stop, limit } = legs;
        let is_iceberg = |leg: &Leg| u32::from(leg.order.iceberg_quantity != 0);
        let icebergs = is_iceberg(stop) + is_iceberg(limit);
        let added = OpenCounts { all: 2, icebergs, algos: 1, ..Default::default() };
        let open = self.open_at(site);
        self.check_open_counts(site, &open, &added)?;
        self.check_list_names(site.account_id, message)?;
        let side = limit.kind.side;
        if !stands_between(side, message, site.symbol.last_price) {
            return Err(RejectReason::OrderListPrices.into());
        }
        if site.book.crosses(side, Price(message.price)) {
            return Err(RejectReason::WouldTake.into());
        }
        if side == Side::Buy {
            self.check_position(site, &open, message.quantity)?;
        }
        self.check_open_orders(2)?;
        let rests = site.book.has_level(&self.pools, side, Price(message.price));
        let waits = site.triggers.has_level(
            &self.pools,
            trigger_side(stop.kind),
            Price(message.stop_price),
        );
        let may_rest = stop.kind.may_rest();
        self.check_levels(u32::from(!rests) + u32::from(!waits) + u32::from(may_rest))?;
        self.list_locks(site.account_id, message, side)
            .ok_or(RejectReason::InsufficientBalance.into())
    }

    /// Names are unique: the orders' among the account's open ones of the symbol and between
    /// themselves, the list's among its open lists.
    fn check_list_names(&self, account: AccountId, message: &PlaceOrderList) -> Result<(), Reject> {
        let (stop, limit) = (&message.stop_client_order_id, &message.limit_client_order_id);
        let id = message.symbol;
        let of_an_order =
            |name| self.orders.find_by_client_order_id(&self.pools, account, id, name).is_some();
        let lists = &self.orders.lists;
        let of_a_list =
            lists.find_by_client_order_id(account, id, &message.list_client_order_id).is_some();
        let is_taken = of_an_order(stop) || of_an_order(limit) || of_a_list;
        if is_taken || !stop.is_empty() && stop == limit {
            return Err(RejectReason::DuplicateClientOrderId.into());
        }
        Ok(())
    }

    /// What a list locks, if the account has it: for both orders together what the dearer one needs
    /// (facts §4).
    fn list_locks(
        &self,
        account: AccountId,
        message: &PlaceOrderList,
        side: Side,
    ) -> Option<Locks> {
        let PlaceOrderList { quantity, price, stop_price, stop_limit_price, .. } = *message;
        let locks = match side {
            Side::Sell => Locks { stop: 0, limit: quantity },
            Side::Buy => {
                let paid = if stop_limit_price == 0 { stop_price } else { stop_limit_price };
                let limit = money::quote_rounded_up(price, quantity)?;
                let stop = (money::quote_rounded_up(paid, quantity)? - limit).max(0);
                Locks { stop, limit }
            }
        };
        let asset = self.symbols.list[message.symbol.0 as usize].paid_with(side);
        let free = self.accounts.balance(account, asset).free.0;
        (locks.stop + locks.limit <= free).then_some(locks)
    }

    /// From here on nothing is refused.
    fn accept_list(
        &mut self,
        context: &Context,
        account: AccountId,
        (message, legs): (&PlaceOrderList, &Legs),
        (locks, windows): (&Locks, [OrderWindow; 2]),
        outbox: &mut Outbox<'_>,
    ) {
        self.accounts.list[account.0 as usize].windows = windows;
        let id = self.orders.lists.next_id();
        let [stop, limit] =
            [(&legs.stop, locks.stop), (&legs.limit, locks.limit)].map(|(leg, locked)| {
                let terms = Terms { quantity: message.quantity, locked, ran_dry: false };
                let order = (account, &leg.order, leg.kind);
                self.admit(context, order, (&terms, windows), id, outbox)
            });
        let (stop_handle, limit_handle) = (self.wait(&stop), self.rest(&limit));
        let counters = &mut self.symbols.list[message.symbol.0 as usize].counters;
        counters.book_update.0 += 1;
        let book_update_id = counters.book_update;
        self.orders.pair(List {
            id,
            account,
            symbol: message.symbol,
            stop: stop_handle,
            limit: limit_handle,
            stop_order_id: stop.order_id,
            limit_price: message.price,
            client_order_id: message.list_client_order_id,
        });
        self.address(message.command.session, account, outbox);
        outbox.push(&OrderListChanged {
            order_list_id: id,
            account,
            symbol: message.symbol,
            limit_order_id: limit.order_id,
            stop_order_id: stop.order_id,
            list_status_type: ListStatusType::ExecStarted.to_wire(),
            list_order_status: ListOrderStatus::Executing.to_wire(),
            list_client_order_id: message.list_client_order_id,
            order_count_0: windows[0].count,
            order_count_1: windows[1].count,
            book_update_id,
            ..Default::default()
        });
    }

    /// Cancels both orders of a list, by its number, its client order id, or both if they agree. Works
    /// in every status of the symbol.
    pub(super) fn cancel_order_list(
        &mut self,
        message: &CancelOrderList,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Reject> {
        let account = self.trading_account(&message.command)?;
        self.settled_symbol(message.symbol)?;
        let name = &message.list_client_order_id;
        let list = self
            .own_list(account, message.symbol, message.order_list_id, name)
            .ok_or(RejectReason::UnknownOrderList)?;
        if !name.is_empty() && list.client_order_id != *name {
            return Err(RejectReason::OrderListIdMismatch.into());
        }
        let limit = list.limit;
        self.cancel(limit, outbox);
        Ok(())
    }

    /// An open list of the account on the symbol, by number, or without one by name. Somebody else's is
    /// as unknown as none.
    fn own_list(
        &self,
        account: AccountId,
        symbol: SymbolId,
        id: OrderListId,
        name: &ClientOrderId,
    ) -> Option<&List> {
        let lists = &self.orders.lists;
        let slot = if id == OrderListId::NONE {
            lists.find_by_client_order_id(account, symbol, name)
        } else {
            lists.find(id)
        };
        slot.map(|slot| lists.get(slot))
            .filter(|list| list.account == account && list.symbol == symbol)
    }
}

/// True when the last price stands between the prices of a list: a sell's limit above it and its stop
/// below, a buy's the other way round (facts §5.5). Without a last price nothing does.
fn stands_between(side: Side, message: &PlaceOrderList, last: Price) -> bool {
    let (low, high) = match side {
        Side::Sell => (message.stop_price, message.price),
        Side::Buy => (message.price, message.stop_price),
    };
    last != Price::ZERO && low < last.0 && last.0 < high
}
