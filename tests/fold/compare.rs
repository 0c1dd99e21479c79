//! Holds what the views show against what the core has. Called after every transaction.

use std::collections::BTreeSet;
use std::fmt::Debug;
use touchline_adapter::views::lists::OrderList;
use touchline_adapter::views::orders::Order;
use touchline_adapter::views::state::State;
use touchline_core::{Core, OpenOrder, OpenOrderList};
use touchline_protocol::message::enums::{OrderStatus, Side};
use touchline_protocol::units::{AccountId, AssetId, KeyId, OrderId, SymbolId};

/// Compares everything that both hold; `continuing` are the orders that are open but in no book of the
/// core. Says what differs.
pub(crate) fn compare(
    core: &Core,
    state: &State,
    continuing: &BTreeSet<(SymbolId, OrderId)>,
) -> Result<(), String> {
    let counts = core.counts();
    same("limits", &state.venue.limits, core.limits())?;
    same("assets", state.venue.assets().len(), counts.assets as usize)?;
    same("symbols", state.venue.symbols().len(), counts.symbols as usize)?;
    same("accounts", state.accounts.iter().count(), counts.accounts as usize)?;
    accounts(core, state)?;
    for symbol in (0..counts.symbols).map(SymbolId) {
        definition(core, state, symbol)?;
        depth(core, state, symbol)?;
    }
    let open = state.orders.open().count();
    same("open orders", open, counts.open_orders as usize + continuing.len())?;
    for found in state.orders.open() {
        let is_continuing = continuing.contains(&(found.symbol, found.order_id));
        match core.open_order(found.symbol, found.order_id) {
            Some(_) if is_continuing => {
                return Err(format!("continued, yet in the book: {found:?}"));
            }
            Some(expected) => order(found, &expected)?,
            None if is_continuing => {
                same("a continued order's place", (found.resting, found.visible), (false, 0))?;
            }
            None => return Err(format!("not open in the core: {found:?}")),
        }
    }
    records(core, state)?;
    lists(core, state)
}

/// Records that there may be: their ids are 12 times their number, from 1.
pub(crate) const RECORDS: u64 = 6;

/// Unique keys that they may have: 32 times their number, from 1.
pub(crate) const RECORD_KEYS: u64 = 4;

fn records(core: &Core, state: &State) -> Result<(), String> {
    same("records", state.records.len(), core.counts().records as usize)?;
    for id in (1..=RECORDS as u8).map(|number| [number; 12]) {
        let expected = core.record(&id);
        let found = state.records.get(&id);
        let fields = found.map(|(record, owner)| (record.kind, record.version, owner));
        let expected_fields = expected.map(|record| (record.kind, record.version, record.owner));
        same("kind, version and owner", fields, expected_fields)?;
        let content = core.record_content(&id).map(Iterator::collect::<Vec<_>>);
        same("content", found.map(|(record, _)| record.content.to_vec()), content)?;
        let owned = state.records.owned_by(&id);
        let count: usize = owned.iter().map(|block| block.records().len()).sum();
        same("owned", count, expected.map_or(0, |record| record.owned as usize))?;
    }
    for kind in 1..=3 {
        for key in (1..=RECORD_KEYS as u8).map(|number| [number; 32]) {
            let found = state.records.keyed(kind, &key).map(|record| record.id);
            same("unique key", found, core.find_record(kind, &key))?;
        }
    }
    Ok(())
}

/// Fails with both values unless they agree.
fn same<T: PartialEq + Debug>(what: &str, found: T, expected: T) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what}: the views have {found:?}, the core {expected:?}"))
}

fn accounts(core: &Core, state: &State) -> Result<(), String> {
    let counts = core.counts();
    for id in (0..counts.accounts).map(AccountId) {
        let found = state.accounts.get(id).ok_or("an account is missing")?;
        let expected = core.account(id).ok_or("an account too many")?;
        // The fee account's name is never logged.
        if id != AccountId::FEES {
            same("account's name", found.name, expected.name)?;
        }
        same(
            "what an account may do",
            (found.flags, found.permissions, found.killed),
            (expected.flags, expected.permissions, expected.killed),
        )?;
        same(
            "account's rates",
            [found.maker_rate, found.taker_rate, found.buyer_rate, found.seller_rate],
            [expected.maker_rate, expected.taker_rate, expected.buyer_rate, expected.seller_rate],
        )?;
        for asset in (0..counts.assets).map(AssetId) {
            let found = found.balance(asset);
            let expected = core.balance(id, asset).ok_or("an asset too many")?;
            same(
                &format!("balance of account {id} in asset {asset}"),
                (found.free, found.locked),
                (expected.free.0, expected.locked.0),
            )?;
        }
    }
    for id in (1..=u64::from(counts.keys) + 1).map(KeyId) {
        let found = state.accounts.key(id).map(|key| (key.account, key.permissions, key.revoked));
        let expected = core.key(id).map(|key| (key.account, key.permissions, key.revoked));
        same("key", found, expected)?;
    }
    Ok(())
}

fn definition(core: &Core, state: &State, id: SymbolId) -> Result<(), String> {
    let found = state.venue.symbol(id).ok_or("a symbol is missing")?;
    let expected = core.symbol(id).ok_or("a symbol too many")?;
    same(
        "symbol",
        (found.name, found.base, found.quote, found.status),
        (expected.name, expected.base, expected.quote, expected.status),
    )?;
    same(
        "what a symbol takes",
        (found.order_types, found.flags, found.permissions),
        (expected.order_types, expected.flags, expected.permissions),
    )?;
    same("filters", found.filters, expected.filters)?;
    same("book update id", found.book.last_update(), expected.counters.book_update)
}

fn depth(core: &Core, state: &State, symbol: SymbolId) -> Result<(), String> {
    let found = state.venue.symbol(symbol).ok_or("a symbol is missing")?.book.depth(usize::MAX);
    for (side, found) in [(Side::Buy, found.bids), (Side::Sell, found.asks)] {
        let found: Vec<_> =
            found.iter().map(|level| (level.price, level.quantity as u128)).collect();
        let expected: Vec<_> =
            core.depth(symbol, side).map(|level| (level.price.0, level.quantity)).collect();
        same(&format!("depth of symbol {symbol}, {side:?}"), found, expected)?;
    }
    Ok(())
}

fn order(found: &Order, expected: &OpenOrder) -> Result<(), String> {
    let name =
        |what: &str| format!("{what} of order {} of symbol {}", found.order_id, found.symbol);
    same(
        &name("owner, name and list"),
        (found.account, found.client_order_id, found.order_list_id),
        (expected.account, expected.client_order_id, expected.order_list_id),
    )?;
    same(
        &name("kind"),
        (found.side, found.order_type, found.time_in_force),
        (expected.side, expected.order_type, expected.time_in_force),
    )?;
    same(&name("price"), found.price, expected.price.0)?;
    let waits_at = if found.working { 0 } else { found.stop_price };
    same(&name("stop price while it waits"), waits_at, expected.stop_price.0)?;
    same(
        &name("quantity, remaining, iceberg quantity"),
        (found.quantity, found.remaining(), found.iceberg_quantity),
        (expected.quantity.0, expected.remaining.0, expected.iceberg.0),
    )?;
    same(&name("visible quantity"), found.visible, expected.visible.0)?;
    same(&name("place"), found.resting, expected.visible.0 != 0)?;
    same(&name("quote executed"), found.executed_quote, expected.executed_quote.0)?;
    let status = if found.executed == 0 { OrderStatus::New } else { OrderStatus::PartiallyFilled };
    same(&name("status"), found.status, status)
}

/// Open lists with their legs, both ways round: what they are, and that both legs are open and none
/// has begun.
fn lists(core: &Core, state: &State) -> Result<(), String> {
    let mut expected = 0;
    for symbol in (0..core.counts().symbols).map(SymbolId) {
        expected += core.open_order_lists(symbol, Side::Buy).count();
        expected += core.open_order_lists(symbol, Side::Sell).count();
    }
    same("open lists", state.lists.open().count(), expected)?;
    for list in state.lists.open() {
        let id = list.order_list_id;
        let expected = core.open_order_list(id).ok_or(format!("list {id} is not open"))?;
        let found = OpenOrderList {
            order_list_id: id,
            account: list.account,
            symbol: list.symbol,
            stop_order_id: list.stop_order_id,
            limit_order_id: list.limit_order_id,
            list_client_order_id: list.client_order_id,
        };
        same("list", found, expected)?;
        let name = list.client_order_id;
        let is_namesake =
            |other: &&OrderList| (other.account, other.client_order_id) == (list.account, name);
        let last = state.lists.open().filter(is_namesake).map(|other| other.order_list_id).max();
        if !name.is_empty() {
            let found = state.lists.named(list.account, name).map(|found| found.order_list_id);
            same("last open list of its name", found, last)?;
        }
        let leg = |id| {
            let order = state.orders.get(list.symbol, id).filter(|order| order.status.is_open());
            order.map(|order| (order.order_list_id, order.account, order.executed, order.working))
        };
        let expected = |works| Some((id, list.account, 0, works));
        same("limit leg of an open list", leg(list.limit_order_id), expected(true))?;
        same("stop leg of an open list", leg(list.stop_order_id), expected(false))?;
    }
    Ok(())
}
