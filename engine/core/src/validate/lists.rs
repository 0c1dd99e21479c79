//! The part of the checks that is about order lists: reckoned anew from nothing but the open orders.

use crate::orders::{HAS_LIST, IS_PAIRED, IS_WAITING};
use crate::{Core, OpenOrder, money};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use touchline_protocol::message::enums::{OrderType, Side};
use touchline_protocol::units::{OrderListId, Price};

impl Core {
    /// True when an open order's list is open.
    pub(super) fn is_paired(&self, order: &OpenOrder) -> bool {
        let handle = self.orders.find(&self.pools, order.symbol, order.order_id);
        handle.is_some_and(|handle| self.orders.record(handle).flags & IS_PAIRED != 0)
    }

    /// Checks every open list against its two orders, of all open ones.
    pub(super) fn validate_lists(&self, orders: &[OpenOrder]) -> Result<(), String> {
        let mut paired = BTreeMap::<i64, Vec<&OpenOrder>>::new();
        for order in orders {
            if self.is_paired(order) {
                paired.entry(order.order_list_id.0).or_default().push(order);
            } else if order.order_list_id >= self.orders.lists.next_id() {
                return Err(format!("order {} is of a list never placed", order.order_id));
            }
        }
        let mut named = 0;
        for (&id, legs) in &paired {
            let &[one, other] = legs.as_slice() else {
                return Err(format!("list {id} has {} orders", legs.len()));
            };
            let is_stop = |order: &OpenOrder| order.stop_price != Price::ZERO;
            let (stop, limit) = if is_stop(one) { (one, other) } else { (other, one) };
            self.validate_list(OrderListId(id), stop, limit)?;
            let list = self.open_order_list(OrderListId(id));
            named += u32::from(list.is_some_and(|list| !list.list_client_order_id.is_empty()));
        }
        let open = paired.len() as u32;
        let lists = &self.orders.lists;
        if lists.len() != open || lists.table_lengths() != (open, named) || !lists.is_consistent() {
            let found = lists.table_lengths();
            return Err(format!("{open} lists are open, {named} named, tables have {found:?}"));
        }
        Ok(())
    }

    fn validate_list(
        &self,
        id: OrderListId,
        stop: &OpenOrder,
        limit: &OpenOrder,
    ) -> Result<(), String> {
        let list = self.open_order_list(id).ok_or(format!("list {id} is not found"))?;
        let name = &list.list_client_order_id;
        let by_name = self.find_open_order_list(list.account, list.symbol, name);
        let same = |order: &OpenOrder| {
            (order.account, order.symbol, order.side, order.quantity, order.remaining)
        };
        let is_whole = stop.order_id == list.stop_order_id
            && limit.order_id == list.limit_order_id
            && stop.order_id.0 + 1 == limit.order_id.0
            && (list.account, list.symbol) == (stop.account, stop.symbol)
            && (name.is_empty() || by_name == Some(list))
            && same(stop) == same(limit)
            && limit.quantity == limit.remaining
            && limit.order_type == OrderType::LimitMaker
            && limit.stop_price == Price::ZERO
            && matches!(stop.order_type, OrderType::StopLoss | OrderType::StopLossLimit);
        if !is_whole {
            return Err(format!("list {id} does not fit its orders: {stop:?}, {limit:?}"));
        }
        for (order, waits) in [(stop, IS_WAITING), (limit, 0)] {
            let handle = self.orders.find(&self.pools, order.symbol, order.order_id);
            let flags = handle.map_or(0, |handle| self.orders.record(handle).flags);
            if flags & (IS_WAITING | HAS_LIST | IS_PAIRED) != waits | HAS_LIST | IS_PAIRED {
                return Err(format!("order {} of list {id} has flags {flags}", order.order_id));
            }
        }
        let paid = if stop.price == Price::ZERO { stop.stop_price } else { stop.price };
        let needed = |price: Price| match limit.side {
            Side::Sell => Some(limit.quantity.0),
            Side::Buy => money::quote_rounded_up(price.0, limit.quantity.0),
        };
        let (limit_alone, both) = (needed(limit.price), needed(limit.price).max(needed(paid)));
        let locked = stop.locked.0 + limit.locked.0;
        if Some(limit.locked.0) != limit_alone || Some(locked) != both {
            return Err(format!("list {id} locks {locked}, needs {both:?}"));
        }
        Ok(())
    }
}
