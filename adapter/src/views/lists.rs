//! Open order lists as the spot contract shows them; what has ended stands in the history. Fed by the
//! fold.

use std::collections::{BTreeSet, HashMap};
use std::ops::RangeInclusive;

use touchline_protocol::message::enums::{ListOrderStatus, ListStatusType};
use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::{AccountId, OrderId, OrderListId, SymbolId};

use super::accounts::next;
use super::error::{FoldError, same};
use crate::halving::first_of;
use crate::history::rows::ListRow;

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
    /// The owner's name for the LIMIT_MAKER leg; empty for none.
    pub limit_client_order_id: ClientOrderId,
    /// The owner's name for the stop leg; empty for none.
    pub stop_client_order_id: ClientOrderId,
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

    /// What the history keeps of it.
    #[must_use]
    pub(crate) fn row(&self) -> ListRow {
        ListRow {
            limit_order: self.limit_order_id.0,
            stop_order: self.stop_order_id.0,
            time_ms: self.time_ms,
            update_ms: self.update_ms,
            client_order_id: self.client_order_id,
            limit_client_order_id: self.limit_client_order_id,
            stop_client_order_id: self.stop_client_order_id,
            account: self.account.0,
            symbol: self.symbol.0,
            status_type: self.status_type.to_wire(),
            status: self.status.to_wire(),
            reserved: [0; 6],
        }
    }

    /// The list that a row was made of; `None` for a row that no list has made.
    #[must_use]
    pub(crate) fn of_row(id: u64, row: &ListRow) -> Option<Self> {
        Some(Self {
            order_list_id: OrderListId(id.cast_signed()),
            account: AccountId(row.account),
            symbol: SymbolId(row.symbol),
            client_order_id: row.client_order_id,
            limit_order_id: OrderId(row.limit_order),
            stop_order_id: OrderId(row.stop_order),
            limit_client_order_id: row.limit_client_order_id,
            stop_client_order_id: row.stop_client_order_id,
            status_type: ListStatusType::from_wire(row.status_type)?,
            status: ListOrderStatus::from_wire(row.status)?,
            time_ms: row.time_ms,
            update_ms: row.update_ms,
        })
    }
}

#[cfg(test)]
thread_local! {
    /// Looks at an open list by its number, of this thread.
    pub(crate) static LOOKS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// All open lists.
#[derive(Debug, Clone, Default)]
pub struct Lists {
    lists: HashMap<OrderListId, OrderList>,
    /// By names, of which the venue allows each once among an account's open lists on one symbol: those
    /// on several may share theirs.
    named: BTreeSet<(AccountId, ClientOrderId, OrderListId)>,
    /// An account that had none yet has no entry.
    by_account: HashMap<AccountId, BTreeSet<OrderListId>>,
    /// Lists ever placed: the number of the next one.
    placed: usize,
    /// What has changed since it was last asked for, and whether it was there then.
    changed: HashMap<OrderListId, bool>,
}

impl Lists {
    /// The open list with this number.
    #[must_use]
    pub fn get(&self, list: OrderListId) -> Option<&OrderList> {
        #[cfg(test)]
        LOOKS.set(LOOKS.get() + 1);
        self.lists.get(&list)
    }

    /// Every open list, in no order.
    pub fn open(&self) -> impl Iterator<Item = &OrderList> {
        self.lists.values()
    }

    /// The account's open lists whose numbers are in `ids`, by number.
    pub fn open_of(
        &self,
        account: AccountId,
        ids: RangeInclusive<u64>,
    ) -> impl DoubleEndedIterator<Item = &OrderList> {
        // The numbers of lists count up from 0, in half of the range.
        let id = |id: u64| OrderListId(i64::try_from(id).unwrap_or(i64::MAX));
        let ids = id(*ids.start())..=id(*ids.end());
        let own = self.by_account.get(&account);
        let ids = own.into_iter().flat_map(move |own| own.range(ids.clone()));
        ids.filter_map(|id| self.get(*id))
    }

    /// The number of the first of the account's open lists that was placed at a moment or behind it: they count up with
    /// time.
    #[must_use]
    pub fn first_since(&self, account: AccountId, time_ms: u64) -> Option<u64> {
        let number =
            |list: &OrderList| (list.order_list_id.0.cast_unsigned(), list.time_ms < time_ms);
        first_of(|ids| self.open_of(account, ids).map(number))
    }

    /// The account's open list under this name, on any symbol: the one that was placed last.
    #[must_use]
    pub fn named(&self, account: AccountId, name: ClientOrderId) -> Option<&OrderList> {
        let key = |list| (account, name, OrderListId(list));
        let mut lists = self.named.range(key(i64::MIN)..=key(i64::MAX));
        self.get(lists.next_back()?.2)
    }

    pub(super) fn place(&mut self, list: OrderList) -> Result<(), FoldError> {
        next("order list", list.order_list_id.0.cast_unsigned(), self.placed)?;
        self.placed += 1;
        self.changed.insert(list.order_list_id, false);
        self.insert(list);
        Ok(())
    }

    /// Takes back an open list that was saved, behind [`Lists::restore_placed`].
    pub(super) fn restore(&mut self, list: OrderList) -> Result<(), FoldError> {
        let id = list.order_list_id;
        let found = match u64::try_from(id.0) {
            Ok(number) if number < self.placed() && list.is_open() => {
                self.insert(list);
                return Ok(());
            }
            Ok(number) if number < self.placed() => "has ended",
            _ => "was never placed",
        };
        Err(FoldError::SavedList { list: id, found })
    }

    /// Lists ever placed.
    pub(super) const fn placed(&self) -> u64 {
        self.placed as u64
    }

    /// So many lists were placed before, if there can be as many numbers.
    pub(super) fn restore_placed(&mut self, placed: u64) -> Result<(), FoldError> {
        let found = "has a number that no list can have";
        let wrong = FoldError::SavedList { list: OrderListId(i64::MAX), found };
        let numbers = i64::try_from(placed).ok().and_then(|placed| usize::try_from(placed).ok());
        self.placed = numbers.ok_or(wrong)?;
        Ok(())
    }

    /// What has changed since the last call: open lists as they are now, or nothing for one that was
    /// there then and is open no more.
    pub(super) fn take_changed(
        &mut self,
    ) -> impl Iterator<Item = (OrderListId, Option<&OrderList>)> {
        let lists = &self.lists;
        std::mem::take(&mut self.changed).into_iter().filter_map(|(id, was_there)| {
            let open = lists.get(&id);
            (was_there || open.is_some()).then_some((id, open))
        })
    }

    fn insert(&mut self, list: OrderList) {
        if !list.client_order_id.is_empty() {
            self.named.insert((list.account, list.client_order_id, list.order_list_id));
        }
        self.by_account.entry(list.account).or_default().insert(list.order_list_id);
        self.lists.insert(list.order_list_id, list);
    }

    /// Takes over how an open list has ended; everything else it must say as it did before. Gives what
    /// is kept of it.
    pub(super) fn close(&mut self, ended: OrderList) -> Result<ListRow, FoldError> {
        let id = ended.order_list_id;
        let list = self.lists.get(&id).ok_or(FoldError::ListNotOpen(id))?;
        same("list's account", ended.account.0, list.account.0)?;
        same("list's symbol", ended.symbol.0, list.symbol.0)?;
        same("list's limit order", ended.limit_order_id.0, list.limit_order_id.0)?;
        same("list's stop order", ended.stop_order_id.0, list.stop_order_id.0)?;
        let row = OrderList {
            limit_client_order_id: list.limit_client_order_id,
            stop_client_order_id: list.stop_client_order_id,
            time_ms: list.time_ms,
            ..ended
        }
        .row();
        self.named.remove(&(list.account, list.client_order_id, id));
        self.lists.remove(&id);
        self.changed.entry(id).or_insert(true);
        if let Some(open) = self.by_account.get_mut(&ended.account) {
            open.remove(&id);
        }
        Ok(row)
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
            limit_client_order_id: ClientOrderId::new("limit").unwrap(),
            stop_client_order_id: ClientOrderId::new("stop").unwrap(),
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
            limit_client_order_id: ClientOrderId::EMPTY,
            stop_client_order_id: ClientOrderId::EMPTY,
            ..list(id)
        }
    }

    /// With the names of its legs, which the end of a list does not repeat.
    fn of_legs(ended: OrderList) -> OrderList {
        let OrderList { limit_client_order_id, stop_client_order_id, .. } = list(0);
        OrderList { limit_client_order_id, stop_client_order_id, ..ended }
    }

    #[test]
    fn lists_are_found_by_account_and_by_name() {
        let named =
            |id, name| OrderList { client_order_id: ClientOrderId::new(name).unwrap(), ..list(id) };
        let mut lists = Lists::default();
        for (id, name) in [(0, "a"), (1, "b"), (2, "")] {
            lists.place(named(id, name)).unwrap();
        }
        let open = |lists: &Lists, account| -> Vec<i64> {
            lists
                .open_of(AccountId(account), 0..=u64::MAX)
                .map(|list| list.order_list_id.0)
                .collect()
        };
        let named_list = |lists: &Lists, account, name| {
            let name = ClientOrderId::new(name).unwrap();
            lists.named(AccountId(account), name).map(|list| list.order_list_id.0)
        };
        assert_eq!((open(&lists, 1), open(&lists, 2)), (vec![0, 1, 2], vec![]));
        assert_eq!(named_list(&lists, 1, "b"), Some(1));
        assert_eq!(named_list(&lists, 2, "b"), None);
        assert_eq!(named_list(&lists, 1, ""), None);
        let end = |lists: &mut Lists, id, name| {
            let client_order_id = ClientOrderId::new(name).unwrap();
            lists.close(OrderList { client_order_id, ..ended(id) }).unwrap();
        };
        end(&mut lists, 0, "a");
        assert_eq!(open(&lists, 1), [1, 2]);
        assert_eq!(named_list(&lists, 1, "a"), None);
        lists.place(named(3, "a")).unwrap();
        end(&mut lists, 1, "b");
        assert_eq!(named_list(&lists, 1, "a"), Some(3));
        end(&mut lists, 2, "");
        end(&mut lists, 3, "a");
        assert!(lists.lists.is_empty() && lists.named.is_empty(), "what has ended takes no room");
    }

    #[test]
    fn of_lists_with_one_name_on_several_symbols_the_last_that_is_open_is_found() {
        let name = ClientOrderId::new("a").unwrap();
        let on =
            |id, symbol| OrderList { client_order_id: name, symbol: SymbolId(symbol), ..list(id) };
        let end = |lists: &mut Lists, id, symbol| {
            let symbol = SymbolId(symbol);
            lists.close(OrderList { client_order_id: name, symbol, ..ended(id) }).unwrap();
        };
        let found =
            |lists: &Lists| lists.named(AccountId(1), name).map(|list| list.order_list_id.0);
        let mut lists = Lists::default();
        for (id, symbol) in [(0, 0), (1, 1), (2, 2)] {
            lists.place(on(id, symbol)).unwrap();
        }
        assert_eq!(found(&lists), Some(2));
        end(&mut lists, 2, 2);
        assert_eq!(found(&lists), Some(1), "its name is not gone with the later one");
        let mut restored = Lists::default();
        restored.restore_placed(3).unwrap();
        for (id, symbol) in [(1, 1), (0, 0)] {
            restored.restore(on(id, symbol)).unwrap();
        }
        assert_eq!(found(&restored), Some(1), "in whatever order they come back");
        end(&mut lists, 0, 0);
        assert_eq!(found(&lists), Some(1));
        end(&mut lists, 1, 1);
        assert_eq!(found(&lists), None);
        assert!(lists.named.is_empty(), "what has ended takes no room");
    }

    #[test]
    fn numbers_count_from_zero_and_a_list_ends_once() {
        let mut lists = Lists::default();
        assert!(matches!(lists.place(list(1)), Err(FoldError::NotNext { found: 1, .. })));
        assert!(matches!(lists.place(list(-1)), Err(FoldError::NotNext { .. })));
        lists.place(list(0)).unwrap();
        lists.place(list(1)).unwrap();
        assert_eq!(lists.open().count(), 2);
        let other = OrderList { stop_order_id: OrderId(7), ..ended(0) };
        assert!(matches!(lists.close(other), Err(FoldError::Mismatch { .. })));
        let row = lists.close(ended(0)).unwrap();
        assert_eq!(lists.close(ended(0)), Err(FoldError::ListNotOpen(OrderListId(0))));
        assert_eq!(lists.close(ended(2)), Err(FoldError::ListNotOpen(OrderListId(2))));
        let expected = OrderList { time_ms: 5, ..of_legs(ended(0)) };
        assert_eq!(OrderList::of_row(0, &row), Some(expected));
        lists.close(ended(1)).unwrap();
        assert_eq!(lists.open().count(), 0);
    }

    #[test]
    fn a_saved_list_was_placed_and_is_open() {
        let mut lists = Lists::default();
        lists.restore_placed(2).unwrap();
        lists.restore(list(1)).unwrap();
        for (saved, expected) in
            [(list(2), "was never placed"), (list(-1), "was never placed"), (ended(0), "has ended")]
        {
            let list = saved.order_list_id;
            let wrong = Err(FoldError::SavedList { list, found: expected });
            assert_eq!(lists.restore(saved), wrong);
        }
        let wrong = lists.restore_placed(u64::MAX).unwrap_err().to_string();
        assert!(wrong.contains("no list can have"), "{wrong}");
    }

    #[test]
    fn the_first_list_since_a_moment_is_found_in_a_few_looks() {
        let mut lists = Lists::default();
        for id in 0..1000 {
            lists.place(OrderList { time_ms: 7 + id / 2, ..list(id.cast_signed()) }).unwrap();
        }
        for id in (0..1000).filter(|id| id % 3 != 0) {
            lists.close(ended(id)).unwrap();
        }
        for time_ms in 0..520 {
            let (before, first) = (LOOKS.get(), lists.first_since(AccountId(1), time_ms));
            let looks = LOOKS.get() - before;
            assert!(looks < 20, "{looks} looks at lists");
            let expected =
                lists.open_of(AccountId(1), 0..=u64::MAX).find(|list| list.time_ms >= time_ms);
            assert_eq!(first, expected.map(|list| list.order_list_id.0.cast_unsigned()));
        }
        let some = lists.open_of(AccountId(1), 100..=105).map(|list| list.order_list_id.0);
        assert_eq!(some.collect::<Vec<_>>(), [102, 105]);
        assert_eq!(lists.first_since(AccountId(2), 0), None);
    }

    #[test]
    fn a_list_ends_as_the_one_that_was_placed() {
        let mut lists = Lists::default();
        lists.place(list(0)).unwrap();
        let same = |what, found, expected| FoldError::Mismatch { what, found, expected };
        let others = [
            (OrderList { account: AccountId(2), ..ended(0) }, same("list's account", 2, 1)),
            (OrderList { symbol: SymbolId(3), ..ended(0) }, same("list's symbol", 3, 0)),
            (
                OrderList { limit_order_id: OrderId(4), ..ended(0) },
                same("list's limit order", 4, 2),
            ),
            (OrderList { stop_order_id: OrderId(5), ..ended(0) }, same("list's stop order", 5, 1)),
            (ended(1), FoldError::ListNotOpen(OrderListId(1))),
        ];
        for (other, expected) in others {
            assert_eq!(lists.close(other).err(), Some(expected));
            assert!(lists.get(OrderListId(0)).is_some(), "it is open as before");
        }
        assert!(lists.close(ended(0)).is_ok());
    }
}
