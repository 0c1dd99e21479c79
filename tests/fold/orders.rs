//! Random commands about orders. Called by [`super::commands`].

use super::commands::{LOT, Run};
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::OrderType;
use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::{AccountId, OrderId, OrderListId, SymbolId};

impl Run {
    /// A random order of any type. What its fields are depends on its type, mostly.
    pub(super) fn order(&mut self) -> NewOrder {
        use OrderType as Type;
        let kind = self.pick(&[
            Type::Limit,
            Type::Limit,
            Type::Limit,
            Type::Limit,
            Type::Market,
            Type::Market,
            Type::LimitMaker,
            Type::StopLoss,
            Type::StopLossLimit,
            Type::TakeProfit,
            Type::TakeProfitLimit,
        ]);
        let has_limit = !matches!(kind, Type::Market | Type::StopLoss | Type::TakeProfit);
        let waits = !matches!(kind, Type::Market | Type::Limit | Type::LimitMaker);
        let time_in_force = self.pick(&[1, 1, 1, 1, 2, 3]);
        let quantity = self.quantity(30);
        let mut order = NewOrder {
            symbol: self.symbol(),
            side: self.pick(&[1, 2]),
            order_type: kind.to_wire(),
            time_in_force: if has_limit && kind != Type::LimitMaker { time_in_force } else { 0 },
            price: if has_limit { self.price() } else { 0 },
            quantity,
            stop_price: if waits { self.price() } else { 0 },
            client_order_id: self.name(),
            ..Default::default()
        };
        if has_limit && order.time_in_force < 2 && self.one_in(3) {
            order.iceberg_quantity = self.quantity(8).min(quantity);
        }
        if kind == Type::Market && self.one_in(3) {
            order.quantity = 0;
            order.quote_quantity = self.quantity(3000);
        }
        if self.one_in(5) {
            order.self_trade_prevention = self.pick(&[1, 2, 3, 4]);
        }
        order
    }

    pub(super) fn trade(&mut self) {
        let mut order = self.order();
        order.command = self.hot();
        let _accepted = self.send(&order);
    }

    /// A random open order that the views know, with its symbol and owner.
    fn open(&mut self) -> Option<(SymbolId, OrderId, AccountId)> {
        let open = self.venue.state.orders.open();
        let mut open: Vec<_> =
            open.map(|order| (order.symbol, order.order_id, order.account)).collect();
        open.sort_unstable();
        if open.is_empty() { None } else { Some(self.pick(&open)) }
    }

    /// Its owner's header and the order; now and then somebody else's header.
    fn owned(&mut self) -> Option<(CommandHeader, SymbolId, OrderId)> {
        let (symbol, order, owner) = self.open()?;
        let command = if self.one_in(20) { self.hot() } else { self.hot_of(owner)? };
        Some((command, symbol, order))
    }

    pub(super) fn change_orders(&mut self) {
        let Some((command, symbol, order_id)) = self.owned() else { return };
        let found = self.venue.state.orders.get(symbol, order_id).expect("an open order").clone();
        match self.random.below(4) {
            0 => {
                let new_quantity = found.quantity - self.quantity(6);
                let _accepted = self.send(&ReduceOrder {
                    command,
                    symbol,
                    order_id,
                    new_quantity,
                    ..Default::default()
                });
            }
            1 | 2 => {
                let more = self.pick(&[-3, -1, 0, 0, 1, 5]) * LOT;
                let new_price = if self.one_in(3) { found.price } else { self.price() };
                let _accepted = self.send(&ReplaceOrder {
                    command,
                    symbol,
                    order_id,
                    new_price,
                    new_quantity: found.quantity + more,
                    ..Default::default()
                });
            }
            _ => self.cancel_replace(command, symbol, order_id),
        }
    }

    fn cancel_replace(&mut self, command: CommandHeader, symbol: SymbolId, order_id: OrderId) {
        let order = self.order();
        let cancel_client_order_id = self.name();
        let _accepted = self.send(&CancelReplace {
            command,
            symbol,
            side: order.side,
            order_type: order.order_type,
            time_in_force: order.time_in_force,
            price: order.price,
            quantity: order.quantity,
            quote_quantity: order.quote_quantity,
            stop_price: order.stop_price,
            iceberg_quantity: order.iceberg_quantity,
            client_order_id: order.client_order_id,
            self_trade_prevention: order.self_trade_prevention,
            canceled_order_id: order_id,
            cancel_client_order_id,
            ..Default::default()
        });
    }

    pub(super) fn cancel(&mut self) {
        match self.random.below(40) {
            0..26 => {
                let Some((command, symbol, order_id)) = self.owned() else { return };
                let cancel = CancelOrder { command, symbol, order_id, ..Default::default() };
                let _accepted = self.send(&cancel);
            }
            26..36 => {
                let Some((command, symbol, order_id)) = self.owned() else { return };
                let order = self.venue.state.orders.get(symbol, order_id);
                let own_name = order.map_or(ClientOrderId::EMPTY, |order| order.client_order_id);
                let client_order_id = if self.one_in(4) { self.name() } else { own_name };
                let _accepted = self.send(&CancelOrderNamed {
                    command,
                    symbol,
                    client_order_id,
                    ..Default::default()
                });
            }
            36 => {
                let (command, symbol) = (self.hot(), self.symbol());
                let _accepted = self.send(&CancelAll { command, symbol, ..Default::default() });
            }
            37 => {
                let command = self.hot();
                let (symbol, scope) = (self.symbol_or_every(), self.pick(&[1, 2]));
                let _accepted =
                    self.send(&MassCancel { command, symbol, scope, ..Default::default() });
            }
            38 => {
                let (command, symbol) = (self.cold(), self.symbol());
                let _accepted = self.send(&ExpireAll { command, symbol, ..Default::default() });
            }
            _ => self.kill(),
        }
    }

    pub(super) fn symbol_or_every(&mut self) -> SymbolId {
        if self.one_in(2) { SymbolId(EVERY) } else { self.symbol() }
    }

    /// Kills an account, or brings all killed ones back.
    fn kill(&mut self) {
        if self.one_in(2) {
            let account = self.account_id();
            let _accepted = self.send(&KillAccount { account, killed: 1, ..Default::default() });
            return;
        }
        for account in (1..self.venue.core.counts().accounts).map(AccountId) {
            let _accepted = self.send(&KillAccount { account, killed: 0, ..Default::default() });
        }
    }

    pub(super) fn list(&mut self) {
        if self.one_in(4) {
            let mut open: Vec<_> = self.venue.state.lists.open().copied().collect();
            open.sort_unstable_by_key(|list| list.order_list_id);
            let command = self.hot();
            let (symbol, order_list_id, owner) = match open.as_slice() {
                [] => (self.symbol(), OrderListId(0), AccountId(1)),
                open => {
                    let list = self.pick(open);
                    (list.symbol, list.order_list_id, list.account)
                }
            };
            let command = self.hot_of(owner).unwrap_or(command);
            let cancel = CancelOrderList { command, symbol, order_list_id, ..Default::default() };
            let _accepted = self.send(&cancel);
            return;
        }
        // Around the last trade, mostly: nothing else is taken (facts §5.5).
        let symbol = self.symbol();
        let somewhere = self.price();
        let last = self.venue.last_price.get(&symbol).copied().unwrap_or(somewhere);
        let (above, below) = (last + self.ticks(6), last - self.ticks(6));
        let side = self.pick(&[1, 2]);
        let (price, stop_price) = if side == 2 { (above, below) } else { (below, above) };
        let quantity = self.quantity(20);
        let mut list = PlaceOrderList {
            command: self.hot(),
            symbol,
            side,
            quantity,
            price,
            stop_price,
            list_client_order_id: self.list_name(),
            limit_client_order_id: self.name(),
            stop_client_order_id: self.name(),
            ..Default::default()
        };
        if self.one_in(3) {
            list.limit_iceberg_quantity = self.quantity(4).min(quantity);
        }
        if self.one_in(2) {
            list.stop_limit_price = self.price();
            list.stop_limit_time_in_force = self.pick(&[1, 1, 2, 3]);
            if self.one_in(3) {
                list.stop_iceberg_quantity = self.quantity(4).min(quantity);
            }
        }
        if self.one_in(5) {
            list.self_trade_prevention = self.pick(&[1, 2, 3, 4]);
        }
        let _accepted = self.send(&list);
    }
}
