//! Order lists as the spot contract shows them: every open one, and the closed ones of late. Fed by the
//! fold.

use std::collections::{HashMap, VecDeque};

use touchline_protocol::message::enums::{ListOrderStatus, ListStatusType};
use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::{AccountId, OrderId, OrderListId, SymbolId};

use super::accounts::next;
use super::error::{FoldError, same};

/// Two orders of which one cancels the other (spot contract §2 Order list).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderList {
    /// Its number.
    pub order_list_id: OrderListId,
    /// The owner.
    pub account: AccountId,
    /// The symbol.
    pub symbol: SymbolId,
    /// The owner's name for it; empty for none.
    pub client_order_id: ClientOrderId,
    /// The LIMIT_MAKER leg.
    pub limit_order_id: OrderId,
    /// The stop leg, whose number is the lower one.
    pub stop_order_id: OrderId,
    /// What the last report was about.
    pub status_type: ListStatusType,
    /// Where it stands.
    pub status: ListOrderStatus,
    /// When it was placed, ms since the epoch.
    pub time_ms: u64,
    /// When it last changed, ms since the epoch.
    pub update_ms: u64,
}

impl OrderList {
    /// True while both orders are open and bound to each other.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.status == ListOrderStatus::Executing
    }
}

/// All open lists and a bounded number of closed ones.
#[derive(Debug, Clone)]
pub struct Lists {
    lists: HashMap<OrderListId, OrderList>,
    /// Lists ever placed: the number of the next one.
    placed: usize,
    /// Oldest first.
    closed: VecDeque<OrderListId>,
    closed_max: usize,
}

impl Lists {
    /// None yet; `closed_max` closed ones are remembered, the oldest is forgotten first.
    #[must_use]
    pub fn new(closed_max: usize) -> Self {
        Self { lists: HashMap::new(), placed: 0, closed: VecDeque::new(), closed_max }
    }

    /// The list with this number, open or closed of late.
    #[must_use]
    pub fn get(&self, list: OrderListId) -> Option<&OrderList> {
        self.lists.get(&list)
    }

    /// Every open list, in no order.
    pub fn open(&self) -> impl Iterator<Item = &OrderList> {
        self.lists.values().filter(|list| list.is_open())
    }

    pub(super) fn place(&mut self, list: OrderList) -> Result<(), FoldError> {
        next("order list", list.order_list_id.0.cast_unsigned(), self.placed)?;
        self.placed += 1;
        self.lists.insert(list.order_list_id, list);
        Ok(())
    }

    /// Takes over how an open list has ended; everything else it must say as it did before.
    pub(super) fn close(&mut self, ended: OrderList) -> Result<(), FoldError> {
        let id = ended.order_list_id;
        let list = self
            .lists
            .get_mut(&id)
            .filter(|list| list.is_open())
            .ok_or(FoldError::ListNotOpen(id))?;
        same("list's account", ended.account.0, list.account.0)?;
        same("list's symbol", ended.symbol.0, list.symbol.0)?;
        same("list's limit order", ended.limit_order_id.0, list.limit_order_id.0)?;
        same("list's stop order", ended.stop_order_id.0, list.stop_order_id.0)?;
        *list = OrderList { time_ms: list.time_ms, ..ended };
        self.closed.push_back(id);
        while self.closed.len() > self.closed_max {
            let Some(oldest) = self.closed.pop_front() else { break };
            self.lists.remove(&oldest);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(id: i64) -> OrderList {
        OrderList {
            order_list_id: OrderListId(id),
            account: AccountId(1),
            symbol: SymbolId(0),
            client_order_id: ClientOrderId::EMPTY,
            limit_order_id: OrderId(2),
            stop_order_id: OrderId(1),
            status_type: ListStatusType::ExecStarted,
            status: ListOrderStatus::Executing,
            time_ms: 5,
            update_ms: 5,
        }
    }

    fn ended(id: i64) -> OrderList {
        OrderList {
            status_type: ListStatusType::AllDone,
            status: ListOrderStatus::AllDone,
            time_ms: 9,
            update_ms: 9,
            ..list(id)
        }
    }

    #[test]
    fn numbers_count_from_zero_and_a_list_ends_once() {
        let mut lists = Lists::new(1);
        assert!(matches!(lists.place(list(1)), Err(FoldError::NotNext { found: 1, .. })));
        assert!(matches!(lists.place(list(-1)), Err(FoldError::NotNext { .. })));
        lists.place(list(0)).unwrap();
        lists.place(list(1)).unwrap();
        assert_eq!(lists.open().count(), 2);
        let other = OrderList { stop_order_id: OrderId(7), ..ended(0) };
        assert!(matches!(lists.close(other), Err(FoldError::Mismatch { .. })));
        lists.close(ended(0)).unwrap();
        assert_eq!(lists.close(ended(0)), Err(FoldError::ListNotOpen(OrderListId(0))));
        assert_eq!(lists.close(ended(2)), Err(FoldError::ListNotOpen(OrderListId(2))));
        assert_eq!(lists.get(OrderListId(0)), Some(&OrderList { time_ms: 5, ..ended(0) }));
        lists.close(ended(1)).unwrap();
        assert_eq!(lists.get(OrderListId(0)), None, "forgotten: one closed list is kept");
        assert_eq!(lists.open().count(), 0);
    }
}
