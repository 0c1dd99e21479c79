//! The history against a model that keeps every trade in a list and adds up whatever is asked for.

use std::mem::take;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use touchline_protocol::message::enums::{self, OrderStatus, OrderType, TimeInForce};
use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::{AccountId, SymbolId, TradeId};

use super::aggregates::Aggregate;
use super::breaks::BreakRow;
use super::candles::Candle;
use super::folder;
use super::intervals::{INTERVALS, Interval};
use super::names;
use super::rows::{
    self, OrderRow, OrderTradeRow, SideRow, TradeRow, of_account, of_order, side_id,
};
use super::statistics::{Filled, SymbolHistory, Window};
use super::store::{Batch, Identity, Store};
use super::{Direction, History, HistoryError, Market, Reader, Side};
use crate::views::orders::Order;

const SYMBOL: SymbolId = SymbolId(3);

/// Wednesday, 15 November 2023, 22:13:20 UTC.
const BEGIN_MS: u64 = 1_700_086_400_000;

/// What happens to the store behind a trade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Nothing,
    /// What is new is set aside, and stays so for a while.
    Freeze,
    /// It is in the store, and still in memory.
    Commit,
    /// It is in the store alone.
    Thaw,
    /// The adapter is killed and starts again with what is in the store.
    Reopen,
}

/// One trade: how long after the one before it, at what, by whom.
#[derive(Debug, Clone, Copy)]
struct Step {
    after_ms: u64,
    price: i64,
    quantity: i64,
    buyer_is_maker: bool,
    same_aggregate: bool,
    then: Then,
}

/// From the same millisecond to some weeks later.
fn gaps() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => Just(0_u64),
        4 => 1..2_000_u64,
        4 => 2_000..400_000_u64,
        3 => 400_000..20_000_000_u64,
        2 => 20_000_000..90_000_000_u64,
        1 => 90_000_000..2_000_000_000_u64,
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let then = prop_oneof![
        12 => Just(Then::Nothing),
        1 => Just(Then::Freeze),
        1 => Just(Then::Commit),
        1 => Just(Then::Thaw),
        1 => Just(Then::Reopen),
    ];
    let money = (1..1_000_i64, 1..1_000_000_i64);
    let step = (gaps(), money, any::<bool>(), any::<bool>(), then).prop_map(
        |(after_ms, (price, quantity), buyer_is_maker, same_aggregate, then)| Step {
            after_ms,
            price: price * 1_000_000,
            quantity,
            buyer_is_maker,
            same_aggregate,
            then,
        },
    );
    vec(step, 0..120)
}

fn trades(steps: &[Step]) -> Vec<(u64, TradeRow)> {
    let (mut time_ms, mut aggregate) = (BEGIN_MS, 0);
    let mut trades: Vec<(u64, TradeRow)> = Vec::new();
    for (id, step) in (1..).zip(steps) {
        time_ms += step.after_ms;
        let last = trades.last().map(|(_, trade)| *trade);
        let goes_on = step.same_aggregate && step.after_ms == 0;
        let (price, buyer_is_maker, first, sum) = match last {
            Some(last) if goes_on => {
                (last.price, last.buyer_is_maker, last.aggregate_first, last.aggregate_quantity)
            }
            _ => {
                aggregate += 1;
                (step.price, u64::from(step.buyer_is_maker), id, 0)
            }
        };
        let row = TradeRow {
            price,
            quantity: step.quantity,
            quote: price / 100 * step.quantity / 1_000_000,
            time_ms,
            aggregate,
            maker_order: 2 * id,
            taker_order: 2 * id + 1,
            buyer_is_maker,
            aggregate_first: first,
            aggregate_quantity: sum + step.quantity,
            ..TradeRow::default()
        };
        trades.push((id, row));
    }
    trades
}

fn sum(trades: &[(u64, TradeRow)]) -> Option<Candle> {
    let first = trades.first()?;
    let last = trades.last()?;
    let add = |value: &dyn Fn(&TradeRow) -> i128| -> i128 {
        trades.iter().map(|(_, trade)| value(trade)).sum()
    };
    let bought = |trade: &TradeRow| i128::from(trade.buyer_is_maker == 0);
    Some(Candle {
        volume: add(&|trade| i128::from(trade.quantity)),
        quote_volume: add(&|trade| i128::from(trade.quote)),
        taker_volume: add(&|trade| bought(trade) * i128::from(trade.quantity)),
        taker_quote_volume: add(&|trade| bought(trade) * i128::from(trade.quote)),
        notional: add(&|trade| i128::from(trade.price) * i128::from(trade.quantity)),
        open: first.1.price,
        high: trades.iter().map(|(_, trade)| trade.price).max()?,
        low: trades.iter().map(|(_, trade)| trade.price).min()?,
        close: last.1.price,
        first_trade: first.0,
        last_trade: last.0,
    })
}

/// Trades of which `is_in` holds for the time.
fn within(trades: &[(u64, TradeRow)], is_in: impl Fn(u64) -> bool) -> Vec<(u64, TradeRow)> {
    trades.iter().filter(|(_, trade)| is_in(trade.time_ms)).copied().collect()
}

fn window(trades: &[(u64, TradeRow)], from_ms: u64) -> Window {
    let before = within(trades, |time| time < from_ms);
    Window {
        candle: sum(&within(trades, |time| time >= from_ms)),
        previous_close: before.last().map_or(0, |(_, trade)| trade.price),
    }
}

fn average(trades: &[(u64, TradeRow)], now_ms: u64, minutes: u32) -> Option<i64> {
    let (_, last) = trades.last()?;
    let first_minute = now_ms / 60_000 + 1 - u64::from(minutes);
    let recent = sum(&within(trades, |time| time / 60_000 >= first_minute));
    let price = |sum: Candle| i64::try_from(sum.notional / sum.volume).unwrap();
    Some(recent.map_or(last.price, price))
}

fn filled(
    trades: &[(u64, TradeRow)],
    interval: Interval,
    from_ms: u64,
    to_ms: u64,
) -> Vec<(u64, Filled)> {
    let mut found = Vec::new();
    let mut open_ms = from_ms;
    while open_ms <= to_ms {
        let before = within(trades, |time| interval.open(time) < open_ms);
        let close = before.last().map(|(_, trade)| Filled::Flat(trade.price));
        let here = sum(&within(trades, |time| interval.open(time) == open_ms));
        let here = here.map(Filled::Trades).or(close);
        found.extend(here.map(|here| (open_ms, here)));
        open_ms = interval.next(open_ms);
    }
    found
}

fn fill(history: &mut History, trades: &[(u64, TradeRow)]) {
    for (id, trade) in trades {
        let side = |account, order| Side {
            owner: of_account(AccountId(account), SYMBOL),
            row: SideRow::of(order, -1),
            is_first: false,
        };
        let sides = [side(1, trade.maker_order), side(2, trade.taker_order)];
        history.trade(SYMBOL, TradeId(*id), *trade, sides);
    }
}

/// Number, first and last trade and quantity of every entry, by going through all trades.
fn entries(trades: &[(u64, TradeRow)]) -> Vec<(u64, u64, u64, i64)> {
    let mut entries: Vec<(u64, u64, u64, i64)> = Vec::new();
    for (id, trade) in trades {
        match entries.last_mut().filter(|(number, ..)| *number == trade.aggregate) {
            Some((_, _, last, quantity)) => (*last, *quantity) = (*id, *quantity + trade.quantity),
            None => entries.push((trade.aggregate, *id, *id, trade.quantity)),
        }
    }
    entries
}

fn told(found: &[Aggregate]) -> Vec<(u64, u64, u64, i64)> {
    let entry =
        |entry: &Aggregate| (entry.id, entry.first, entry.last, entry.trade.aggregate_quantity);
    found.iter().map(entry).collect()
}

fn compare_aggregates(symbol: &SymbolHistory<'_>, trades: &[(u64, TradeRow)]) {
    let all = entries(trades);
    for limit in [1, 3, 1000] {
        let newest = symbol.newest_aggregates(0..=u64::MAX, limit).unwrap();
        assert_eq!(told(&newest), all[all.len().saturating_sub(limit)..], "newest {limit}");
        for (index, (_, first, ..)) in all.iter().enumerate() {
            let oldest = symbol.oldest_aggregates(*first, u64::MAX, limit).unwrap();
            let end = all.len().min(index + limit);
            assert_eq!(told(&oldest), all[index..end], "{limit} from {first}");
            for last in all[index..].iter().step_by(7).map(|(_, _, last, _)| *last) {
                let oldest = symbol.oldest_aggregates(*first, last, limit).unwrap();
                let expected: Vec<_> = all[index..end]
                    .iter()
                    .filter(|(_, first, ..)| *first <= last)
                    .copied()
                    .collect();
                assert_eq!(told(&oldest), expected, "{limit} of {first} to {last}");
            }
        }
    }
}

/// Holds everything that is computed now against the model.
fn compare(history: &History, trades: &[(u64, TradeRow)], now_ms: u64) {
    compare_as_of(&history.reader().unwrap(), history.market(SYMBOL), trades, now_ms);
}

/// Holds everything that is computed from what was taken at a moment against the model of that moment.
fn compare_as_of(reader: &Reader, market: Market, trades: &[(u64, TradeRow)], now_ms: u64) {
    let symbol = SymbolHistory { reader, symbol: SYMBOL, market };
    for back in [0, 1, 999, 59_123, 86_400_000, 700_000_000] {
        let from = now_ms - back;
        assert_eq!(symbol.since(from).unwrap(), window(trades, from), "{back} ms back");
        let first = trades.iter().find(|(_, trade)| trade.time_ms >= from).map(|(id, _)| *id);
        assert_eq!(symbol.first_since(from).unwrap(), first);
    }
    for minutes in [0, 1, 5, 60] {
        let expected = average(trades, now_ms, minutes);
        assert_eq!(symbol.average(now_ms, minutes).unwrap(), expected, "{minutes} minutes");
    }
    for (name, interval) in INTERVALS {
        let last = interval.open(now_ms);
        for count in [0, 1, 30] {
            let from = interval.back(last, count);
            let found = symbol.filled(interval, from, last).unwrap();
            assert_eq!(found, filled(trades, interval, from, last), "{count} of {name}");
        }
    }
    compare_aggregates(&symbol, trades);
    let group = rows::of_symbol(SYMBOL);
    let whole = 0..=u64::MAX;
    let page =
        |ids, direction, limit| reader.page::<TradeRow>(group, ids, direction, limit).unwrap();
    assert_eq!(page(whole.clone(), Direction::Forward, usize::MAX), trades);
    let newest = &trades[trades.len().saturating_sub(7)..];
    assert_eq!(page(whole, Direction::Backward, 7), newest);
    for (index, (id, trade)) in trades.iter().enumerate() {
        let end = trades.len().min(index + 3);
        assert_eq!(page(*id..=u64::MAX, Direction::Forward, 3), trades[index..end]);
        let first = trades.iter().find(|(_, other)| other.aggregate == trade.aggregate).unwrap().0;
        assert_eq!(symbol.first_aggregate(trade.aggregate).unwrap(), Some(first));
    }
}

/// A history with a store.
struct Site {
    folder: tempfile::TempDir,
    /// `None` only while it is opened again: a process may open it once.
    store: Option<Store>,
    history: History,
    frozen: Option<std::sync::Arc<Batch>>,
}

const IDENTITY: Identity = Identity::of([7; 16]);

impl Site {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (store, reached) = Store::open(folder.path(), IDENTITY).unwrap();
        assert_eq!(reached, None);
        let history = History::of(store.clone(), reached, 0).unwrap();
        Self { folder, store: Some(store), history, frozen: None }
    }

    fn then(&mut self, then: Then) {
        match then {
            Then::Nothing => {}
            Then::Freeze => {
                self.save();
                self.frozen = Some(self.history.freeze(Batch::default()));
            }
            Then::Commit => {
                self.save();
                let batch = self.history.freeze(Batch::default());
                self.store.as_ref().unwrap().commit(&batch).unwrap();
                self.frozen = Some(batch);
            }
            Then::Thaw => self.save(),
            Then::Reopen => {
                self.frozen = None;
                self.history = History::default();
                self.store = None;
                let (store, reached) = Store::open(self.folder.path(), IDENTITY).unwrap();
                self.history = History::of(store.clone(), reached, SYMBOL.0 as usize + 1).unwrap();
                self.store = Some(store);
            }
        }
    }

    /// Brings what was set aside to the store.
    fn save(&mut self) {
        if let Some(batch) = self.frozen.take() {
            self.store.as_ref().unwrap().commit(&batch).unwrap();
            self.history.thaw();
        }
    }
}

/// One order of a thousand trades at each of ten prices, again and again.
fn long_entries() -> Vec<(u64, TradeRow)> {
    let trade = |id: u64| {
        let (aggregate, within) = (id / 1000, id % 1000);
        let row = TradeRow {
            price: 100 + (aggregate % 10) as i64,
            quantity: 2,
            time_ms: BEGIN_MS + aggregate,
            aggregate,
            maker_order: id,
            taker_order: 1_000_000 + aggregate,
            aggregate_first: id - within,
            aggregate_quantity: 2 * (within as i64 + 1),
            ..TradeRow::default()
        };
        (id, row)
    };
    (1000..21_000).map(trade).collect()
}

#[test]
fn a_page_of_aggregate_trades_costs_by_its_entries() {
    let trades = long_entries();
    let mut site = Site::new();
    fill(&mut site.history, &trades[..15_000]);
    site.then(Then::Freeze);
    site.save();
    fill(&mut site.history, &trades[15_000..]);
    let market = site.history.market(SYMBOL);
    let cost = |look: &dyn Fn(&SymbolHistory<'_>) -> Vec<Aggregate>| {
        let reader = site.history.reader().unwrap();
        let found = look(&SymbolHistory { reader: &reader, symbol: SYMBOL, market });
        (told(&found), reader.rows_read())
    };
    let all = entries(&trades);
    let (newest, rows) = cost(&|symbol| symbol.newest_aggregates(0..=u64::MAX, 10).unwrap());
    assert_eq!(newest, all[10..]);
    assert!(rows < 10 * 25, "{rows} rows for 10 entries");
    let (oldest, rows) = cost(&|symbol| symbol.oldest_aggregates(3000, u64::MAX, 10).unwrap());
    assert_eq!(oldest, all[2..12]);
    // And once a search for the page's end.
    assert!(rows < 10 * 25 + 100, "{rows} rows for 10 entries");
}

#[test]
fn an_orders_trades_cost_nothing_for_those_of_other_orders() {
    let mut history = History::default();
    // Order 7 trades first, last and once in between; the account's others trade all the time.
    let trades: Vec<_> = (1..=20_001)
        .map(|id| {
            let maker_order = if id % 10_000 == 1 { 7 } else { 100 + id };
            let row = TradeRow {
                maker_order,
                taker_order: 100_000 + id,
                aggregate: id,
                time_ms: BEGIN_MS,
                ..TradeRow::default()
            };
            (id, row)
        })
        .collect();
    fill(&mut history, &trades);
    let reader = history.reader().unwrap();
    let group = of_order(SYMBOL, 7);
    let whole = 0..=u64::MAX;
    let page = reader.page::<OrderTradeRow>(group, whole, Direction::Forward, 1000).unwrap();
    let expected = [1, 10_001, 20_001].map(|id| (side_id(id, true), OrderTradeRow));
    assert_eq!(page, expected);
    assert_eq!(reader.rows_read(), 3);
}

/// As builds of format 5 wrote it, with the first trade among an order's others, and as this one does.
#[test]
fn an_orders_first_trade_is_told_once_whoever_wrote_it() {
    for is_of_format_5 in [true, false] {
        let mut history = History::default();
        let all = [(3, false), (4, true), (7, true), (9, false)];
        for (id, is_maker) in all {
            let side = |order, is_first| Side {
                owner: of_account(AccountId(1), SYMBOL),
                row: SideRow::of(order, -1),
                is_first,
            };
            let mut orders = [7, 100 + id];
            let mut sides = [side(7, id == 3 && !is_of_format_5), side(100 + id, true)];
            if !is_maker {
                orders.reverse();
                sides.reverse();
            }
            let [maker_order, taker_order] = orders;
            let row = TradeRow { maker_order, taker_order, aggregate: id, ..TradeRow::default() };
            history.trade(SYMBOL, TradeId(id), row, sides);
        }
        let reader = history.reader().unwrap();
        let order = |id, first_trade| {
            let row = OrderRow {
                first_trade,
                symbol: SYMBOL.0,
                status: OrderStatus::Filled.to_wire(),
                time_in_force: TimeInForce::Gtc.to_wire(),
                order_type: OrderType::Limit.to_wire(),
                side: enums::Side::Buy.to_wire(),
                ..OrderRow::default()
            };
            Order::of_row(id, &row).unwrap()
        };
        let all = all.map(|(id, is_maker)| side_id(id, is_maker));
        for (from, limit) in (0..22).flat_map(|from| (1..6).map(move |limit| (from, limit))) {
            let wanted: Vec<_> = all.into_iter().filter(|side| *side >= from).collect();
            let sides = |direction| reader.sides_of(&order(7, 3), from, direction, limit).unwrap();
            let oldest = &wanted[..wanted.len().min(limit)];
            assert_eq!(sides(Direction::Forward), oldest, "{limit} from {from}");
            let newest = &wanted[wanted.len().saturating_sub(limit)..];
            assert_eq!(sides(Direction::Backward), newest, "{limit} down to {from}");
        }
        let taken: Vec<_> = reader.fills(&order(7, 3)).unwrap();
        let taken: Vec<_> = taken.iter().map(|fill| fill.trade_id.0).collect();
        assert_eq!(taken, [3, 9], "fills are the aggressor's");
        let of_another = reader.sides_of(&order(104, 4), 0, Direction::Forward, 9).unwrap();
        assert_eq!(of_another, [side_id(4, false)]);
        let without = reader.sides_of(&order(5, 0), 0, Direction::Forward, 9).unwrap();
        assert!(without.is_empty());
    }
}

#[test]
fn a_store_of_another_log_is_left_alone_until_it_is_cleared() {
    let mut site = Site::new();
    let trades = trades(&[Step {
        after_ms: 0,
        price: 5_000_000,
        quantity: 3,
        buyer_is_maker: true,
        same_aggregate: false,
        then: Then::Nothing,
    }]);
    fill(&mut site.history, &trades);
    site.then(Then::Freeze);
    site.save();
    let Site { folder, store, history, .. } = site;
    drop((store, history));
    let count = |identity| {
        let (store, reached) = Store::open(folder.path(), identity).unwrap();
        let history = History::of(store, reached, 4).unwrap();
        let reader = history.reader().unwrap();
        let page = reader.page::<TradeRow>(3, 0..=u64::MAX, Direction::Forward, 9).unwrap();
        (page.len(), reached.is_some(), history.market(SYMBOL).last.is_some())
    };
    assert_eq!(count(IDENTITY), (1, true, true));
    let other = Identity::of([8; 16]);
    let refused = Store::open(folder.path(), other).map(|_| ());
    assert!(matches!(refused, Err(HistoryError::Foreign { .. })), "{refused:?}");
    assert_eq!(count(IDENTITY), (1, true, true), "all of it is still there");
    folder::lock(folder.path()).unwrap().clear().unwrap();
    assert_eq!(count(other), (0, false, false));
}

/// A look-up asks one era after the other, and the next name has the number behind theirs.
#[test]
fn a_store_is_not_believed_to_have_more_names_than_it_can_have_or_fewer() {
    let name = ClientOrderId::new("a").unwrap();
    for (said, last_era, known) in [
        (0, None, Some(0)),
        (1, Some(0), Some(1)),
        (names::ERA, Some(0), Some(names::ERA)),
        (names::ERA + 1, Some(1), Some(names::ERA + 1)),
        // Of a build with larger eras, and a little later.
        (1 << 20, Some(0), Some(1 << 20)),
        ((1 << 20) + 1, Some(16), Some((1 << 20) + 1)),
        // More than there can be.
        ((1 << 20) + 1, Some(0), Some(1 << 20)),
        (1, None, Some(0)),
        ((1 << 21) + 1, Some(1), Some(1 << 21)),
        (u64::MAX, None, Some(0)),
        (u64::MAX, Some(1000), Some(1001 << 20)),
        // Fewer.
        (0, Some(0), Some(1)),
        (0, Some(1000), Some((1000 << 16) + 1)),
        (1000 << 16, Some(1000), Some((1000 << 16) + 1)),
        // What no venue comes to.
        (5, Some(1 << 31), None),
        (u64::MAX, Some(u64::MAX), None),
    ] {
        let Site { folder: _folder, store, history, .. } = Site::new();
        drop(history);
        let store = store.unwrap();
        let mut batch = Batch::default();
        batch.reached.names = said;
        if let Some(group) = last_era {
            let key = rows::Key { group, id: names::Named::Order(7).hash(&name) };
            batch.rows.names.insert(key, rows::NameRow { id: 5 });
        }
        store.commit(&batch).unwrap();
        let opened = History::of(store, Some(batch.reached), 1);
        let case = format!("{said} names, the last in era {last_era:?}");
        match opened {
            Ok(history) => {
                assert_eq!((Some(history.names), history.reached.names), (known, history.names));
                let found = history.reader().unwrap().order_named(8, name).unwrap();
                assert_eq!(found, None, "{case}");
            }
            Err(error) => {
                assert!(known.is_none() && error.is_of_content(), "{case}: {error}");
            }
        }
    }
}

#[test]
fn a_time_in_break_goes_on_over_a_restart() {
    let mut site = Site::new();
    let last = |site: &Site| site.history.market(SYMBOL).last_break;
    site.history.status(SYMBOL, true, 5);
    site.then(Then::Freeze);
    site.then(Then::Reopen);
    assert_eq!(last(&site), None, "it was not committed");
    site.history.status(SYMBOL, true, 5);
    site.then(Then::Commit);
    site.then(Then::Reopen);
    assert_eq!(last(&site), Some((5, BreakRow { until_ms: u64::MAX })));
    site.history.status(SYMBOL, false, 9);
    site.then(Then::Commit);
    site.then(Then::Reopen);
    assert_eq!(last(&site), Some((5, BreakRow { until_ms: 9 })));
    site.history.status(SYMBOL, false, 11);
    assert_eq!(last(&site), Some((5, BreakRow { until_ms: 9 })));
}

#[test]
fn a_break_begins_behind_the_millisecond_of_a_trade() {
    let mut history = History::default();
    let last = |history: &History| {
        history.market(SYMBOL).last_break.map(|(from_ms, row)| (from_ms, row.until_ms))
    };
    let trade = TradeRow { time_ms: 5, ..TradeRow::default() };
    fill(&mut history, &[(1, trade)]);
    history.status(SYMBOL, true, 5);
    assert_eq!(last(&history), Some((6, u64::MAX)));
    history.status(SYMBOL, true, 5);
    assert_eq!(last(&history), Some((6, u64::MAX)), "as it was");
    history.status(SYMBOL, false, 5);
    assert_eq!(last(&history), Some((6, 6)), "it has no length");
    history.status(SYMBOL, true, 6);
    assert_eq!(last(&history), Some((6, u64::MAX)), "it goes on");
    history.status(SYMBOL, false, 9);
    assert_eq!(last(&history), Some((6, 9)));
}

#[test]
fn a_time_without_an_engine_is_a_break_of_what_was_in_none() {
    let mut site = Site::new();
    let last = |site: &Site| {
        site.history.market(SYMBOL).last_break.map(|(from_ms, row)| (from_ms, row.until_ms))
    };
    site.history.was_off(SYMBOL, 9, 9);
    assert_eq!(last(&site), None, "it has no length");
    fill(&mut site.history, &[(1, TradeRow { time_ms: 10, ..TradeRow::default() })]);
    site.history.was_off(SYMBOL, 0, 10);
    assert_eq!(last(&site), None, "a trade was in it");
    site.history.was_off(SYMBOL, 0, 20);
    assert_eq!(last(&site), Some((11, 20)), "behind the trade");
    for _ in 0..2 {
        site.history.was_off(SYMBOL, 12, 20);
        assert_eq!(last(&site), Some((11, 20)), "starts in one millisecond");
    }
    site.history.was_off(SYMBOL, 12, 19);
    assert_eq!(last(&site), Some((11, 20)), "none becomes shorter");
    site.then(Then::Commit);
    site.then(Then::Reopen);
    site.history.was_off(SYMBOL, 20, 30);
    assert_eq!(last(&site), Some((11, 30)), "where it ended it goes on");
    site.history.was_off(SYMBOL, 29, 31);
    assert_eq!(last(&site), Some((11, 31)), "it does not overlap");
    site.history.was_off(SYMBOL, 40, 50);
    assert_eq!(last(&site), Some((40, 50)));
    site.history.was_off(SYMBOL, 35, 60);
    assert_eq!(last(&site), Some((40, 60)), "it does not begin before");
    site.history.status(SYMBOL, true, 60);
    assert_eq!(last(&site), Some((40, u64::MAX)), "BREAK goes on with it");
    site.history.was_off(SYMBOL, 61, 70);
    assert_eq!(last(&site), Some((40, u64::MAX)), "and lasts");
    site.history.status(SYMBOL, false, 80);
    site.history.was_off(SYMBOL, 80, 90);
    assert_eq!(last(&site), Some((40, 90)), "its end was the engine's");
    site.history.status(SYMBOL, false, 95);
    assert_eq!(last(&site), Some((40, 90)));
}

#[test]
fn what_a_halt_lets_go_on_was_not_traded_in_a_break() {
    let mut history = History::default();
    let last = |history: &History| {
        history.market(SYMBOL).last_break.map(|(from_ms, row)| (from_ms, row.until_ms))
    };
    history.status(SYMBOL, true, 5);
    for (id, time_ms) in [(1, 5), (2, 5), (3, 7), (4, 7), (5, 8)] {
        fill(&mut history, &[(id, TradeRow { time_ms, ..TradeRow::default() })]);
        assert_eq!(last(&history), Some((time_ms + 1, u64::MAX)), "{time_ms}");
    }
    let group = rows::of_symbol(SYMBOL);
    let row = |from_ms| history.rows.breaks.get(&rows::Key { group, id: from_ms }).copied();
    let ends = [5, 6, 8, 9].map(|from_ms| row(from_ms).map(|row| row.until_ms));
    assert_eq!(ends, [Some(5), Some(7), Some(8), Some(u64::MAX)]);
    history.status(SYMBOL, false, 20);
    assert_eq!(last(&history), Some((9, 20)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn memory_and_store_are_read_as_one(
        steps in steps(),
        later in gaps(),
        moments in vec(any::<Index>(), 3),
    ) {
        let trades = trades(&steps);
        let mut site = Site::new();
        // Readers that were made in between see no more than there was then, and all of it.
        let mut held: Vec<(Reader, Market, usize)> = Vec::new();
        let see = |held: Vec<_>| {
            for (reader, market, count) in held {
                let (_, last) = &trades[count - 1];
                compare_as_of(&reader, market, &trades[..count], last.time_ms);
            }
        };
        for ((step, next), index) in steps.iter().zip(&trades).zip(1..) {
            fill(&mut site.history, std::slice::from_ref(next));
            if step.then == Then::Reopen {
                see(take(&mut held));
            }
            site.then(step.then);
            if step.then == Then::Reopen {
                // What was not committed comes again from the log.
                let kept = site.history.market(SYMBOL).last.map_or(0, |(id, _)| id as usize);
                fill(&mut site.history, &trades[kept..index]);
            }
            if moments.iter().any(|moment| moment.index(trades.len()) + 1 == index) {
                held.push((site.history.reader().unwrap(), site.history.market(SYMBOL), index));
            }
        }
        see(held);
        let now = trades.last().map_or(BEGIN_MS, |(_, trade)| trade.time_ms) + later;
        compare(&site.history, &trades, now);
    }

    #[test]
    fn sums_of_candles_are_sums_of_trades(steps in steps(), later in gaps()) {
        let trades = trades(&steps);
        let mut history = History::default();
        fill(&mut history, &trades);
        let now = trades.last().map_or(BEGIN_MS, |(_, trade)| trade.time_ms) + later;
        compare(&history, &trades, now);
    }
}
