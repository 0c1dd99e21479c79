//! Trading by hand-made examples: amounts worked out on paper, not by another program.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/venue.rs"]
mod venue;

use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{OrderStatus, RejectReason, Side};
use touchline_protocol::message::event::{OrderAccepted, OrderResult, Trade};
use touchline_protocol::units::*;
use venue::{Owned, Venue, WHOLE, roomy};

const ONE: SymbolId = SymbolId(0);
const BASE: AssetId = AssetId(0);
const QUOTE: AssetId = AssetId(1);
const ANN: KeyId = KeyId(1);
const BOB: KeyId = KeyId(2);
const BUY: u8 = 1;
const SELL: u8 = 2;
const GTC: u8 = 1;
const IOC: u8 = 2;
const FOK: u8 = 3;

/// Ann pays nothing; Bob pays 0.1 % as the maker and 0.2 % as the taker. Both have 100 of each.
fn world() -> Venue {
    let mut venue = Venue::new();
    venue.set_rules();
    venue.set_limits(roomy());
    let pair = (venue.asset("BASE"), venue.asset("QUOTE"));
    venue.symbol("ONE", pair, SymbolFilters::default());
    for (name, rates) in [("ann", (0, 0)), ("bob", (100_000, 200_000))] {
        let (account, _) = venue.account(name, rates);
        venue.deposit(account, BASE, 100 * WHOLE);
        venue.deposit(account, QUOTE, 100 * WHOLE);
    }
    venue
}

/// An order by the engine on behalf of a key; price 0 makes it MARKET.
fn order(key_id: KeyId, side: u8, time_in_force: u8, price: i64, quantity: i64) -> NewOrder {
    NewOrder {
        command: CommandHeader { key_id, ..Default::default() },
        symbol: ONE,
        side,
        order_type: if price == 0 { 2 } else { 1 },
        time_in_force: if price == 0 { 0 } else { time_in_force },
        price,
        quantity,
        ..Default::default()
    }
}

fn trades(events: &[Owned]) -> Vec<Trade> {
    let trade = |event: &Owned| if let Owned::Trade(trade) = event { Some(*trade) } else { None };
    events.iter().filter_map(trade).collect()
}

fn result(events: &[Owned]) -> OrderResult {
    let Some(Owned::Result(result)) = events.last() else { panic!("{events:?}") };
    *result
}

fn accepted(events: &[Owned]) -> OrderAccepted {
    let Some(Owned::Accepted(accepted)) = events.first() else { panic!("{events:?}") };
    *accepted
}

/// Free and locked of base, then of quote.
fn balances(venue: &Venue, account: u32) -> [i64; 4] {
    let of = |asset| venue.core.balance(AccountId(account), asset).unwrap();
    let (base, quote) = (of(BASE), of(QUOTE));
    [base.free.0, base.locked.0, quote.free.0, quote.locked.0]
}

#[test]
fn a_buy_gets_the_makers_price_and_its_lock_back() {
    let mut venue = world();
    venue.must(&order(ANN, SELL, GTC, WHOLE, 3 * WHOLE));
    let events = venue.must(&order(BOB, BUY, GTC, 2 * WHOLE, 3 * WHOLE));
    assert_eq!(accepted(&events).locked, 6 * WHOLE);
    let trade = trades(&events)[0];
    assert_eq!((trade.price, trade.quantity, trade.quote_amount), (WHOLE, 3 * WHOLE, 3 * WHOLE));
    assert_eq!((trade.maker_commission, trade.taker_commission), (0, 600_000));
    assert_eq!(result(&events).released, 3 * WHOLE);
    assert_eq!(result(&events).status, OrderStatus::Filled.to_wire());
    assert_eq!(balances(&venue, 1), [97 * WHOLE, 0, 103 * WHOLE, 0]);
    assert_eq!(balances(&venue, 2), [103 * WHOLE - 600_000, 0, 97 * WHOLE, 0]);
    assert_eq!(balances(&venue, 0), [600_000, 0, 0, 0]);
}

#[test]
fn locks_round_up_and_fills_truncate() {
    let mut venue = world();
    // 0.00000003 × 1.5 is 0.000000045, so 5 units are locked. Three fills of a half are worth 1.5
    // units each, so 1 each, and 2 come back in the end.
    let events = venue.must(&order(ANN, BUY, GTC, 3, 3 * WHOLE / 2));
    assert_eq!(accepted(&events).locked, 5);
    for (still_locked, released) in [(4, 0), (3, 0), (0, 2)] {
        let events = venue.must(&order(BOB, SELL, GTC, 3, WHOLE / 2));
        let trade = trades(&events)[0];
        assert_eq!((trade.quote_amount, trade.maker_released), (1, released));
        assert_eq!(balances(&venue, 1)[3], still_locked);
    }
    assert_eq!(balances(&venue, 1)[2], 100 * WHOLE - 3);
}

#[test]
fn an_ioc_rest_and_an_unfillable_fok_expire() {
    let mut venue = world();
    venue.must(&order(ANN, SELL, GTC, WHOLE, 2 * WHOLE));
    venue.must(&order(ANN, SELL, GTC, 2 * WHOLE, 2 * WHOLE));
    let killed = venue.must(&order(BOB, BUY, FOK, 2 * WHOLE, 5 * WHOLE));
    assert_eq!(trades(&killed).len(), 0);
    assert_eq!(result(&killed).status, OrderStatus::Expired.to_wire());
    assert_eq!((result(&killed).executed_quantity, result(&killed).released), (0, 10 * WHOLE));
    let before = venue.core.symbol(ONE).unwrap().counters;
    assert_eq!(result(&killed).book_update_id, before.book_update);
    let filled = venue.must(&order(BOB, BUY, FOK, 2 * WHOLE, 3 * WHOLE));
    assert_eq!(trades(&filled).len(), 2);
    assert_eq!(result(&filled).executed_quote, 4 * WHOLE);
    let rest = venue.must(&order(BOB, BUY, IOC, 2 * WHOLE, 3 * WHOLE));
    assert_eq!(result(&rest).status, OrderStatus::Expired.to_wire());
    assert_eq!((result(&rest).executed_quantity, result(&rest).released), (WHOLE, 4 * WHOLE));
    assert_eq!(venue.core.best(ONE, Side::Sell), None);
    assert_eq!(result(&rest).order_id, OrderId(5), "expired orders use up their numbers");
}

#[test]
fn a_market_order_takes_what_is_there() {
    let mut venue = world();
    let empty = venue.must(&order(BOB, BUY, GTC, 0, 5 * WHOLE));
    assert_eq!(accepted(&empty).locked, 0);
    assert_eq!(result(&empty).status, OrderStatus::Expired.to_wire());
    assert_eq!(accepted(&empty).time_in_force, GTC);
    venue.must(&order(ANN, SELL, GTC, 3, WHOLE / 2));
    venue.must(&order(ANN, SELL, GTC, 5 * WHOLE, 2 * WHOLE));
    // Half a unit at 0.00000003 rounds up to 2; two at 5 are 10.
    let thin = venue.must(&order(BOB, BUY, GTC, 0, 5 * WHOLE));
    assert_eq!(accepted(&thin).locked, 10 * WHOLE + 2);
    assert_eq!(result(&thin).executed_quantity, 2 * WHOLE + WHOLE / 2);
    assert_eq!(result(&thin).executed_quote, 10 * WHOLE + 1);
    assert_eq!(result(&thin).released, 1);
    assert_eq!(result(&thin).status, OrderStatus::Expired.to_wire());
    let sell = venue.must(&order(BOB, SELL, GTC, 0, 7 * WHOLE));
    assert_eq!((accepted(&sell).locked, result(&sell).released), (7 * WHOLE, 7 * WHOLE));
}

#[test]
fn time_priority_survives_a_reduction_and_a_partial_fill() {
    let mut venue = world();
    for _ in 0..3 {
        venue.must(&order(ANN, SELL, GTC, WHOLE, 4 * WHOLE));
    }
    venue.must(&order(BOB, BUY, IOC, WHOLE, WHOLE));
    venue.must(&ReduceOrder {
        command: CommandHeader { key_id: ANN, ..Default::default() },
        symbol: ONE,
        order_id: OrderId(1),
        new_quantity: 2 * WHOLE,
        ..Default::default()
    });
    let events = venue.must(&order(BOB, BUY, IOC, WHOLE, 6 * WHOLE));
    let makers: Vec<_> =
        trades(&events).iter().map(|trade| (trade.maker_order_id.0, trade.quantity)).collect();
    assert_eq!(makers, [(1, WHOLE), (2, 4 * WHOLE), (3, WHOLE)]);
    let aggregates: Vec<_> =
        trades(&events).iter().map(|trade| trade.aggregate_trade_id.0).collect();
    assert_eq!(aggregates, [2, 2, 2], "one order, one price, one time");
}

#[test]
fn who_trades_with_himself_pays_himself() {
    let mut venue = world();
    venue.must(&order(BOB, SELL, GTC, 2 * WHOLE, 10 * WHOLE));
    let events = venue.must(&order(BOB, BUY, GTC, 2 * WHOLE, 10 * WHOLE));
    let trade = trades(&events)[0];
    // 0.2 % of 10 base as the taker, 0.1 % of 20 quote as the maker.
    assert_eq!((trade.taker_commission, trade.maker_commission), (2_000_000, 2_000_000));
    assert_eq!(balances(&venue, 2), [100 * WHOLE - 2_000_000, 0, 100 * WHOLE - 2_000_000, 0]);
    assert_eq!(balances(&venue, 0), [2_000_000, 0, 2_000_000, 0]);
    assert!(venue.core.counts().open_orders == 0);
}

#[test]
fn a_halt_stops_placement_but_not_what_is_pending_nor_cancels() {
    let mut venue = world();
    venue.set_limits(Limits { max_steps: 1, ..roomy() });
    for _ in 0..3 {
        venue.must(&order(ANN, SELL, GTC, WHOLE, WHOLE));
    }
    let first = venue.must(&order(BOB, BUY, IOC, WHOLE, 2 * WHOLE));
    assert!(matches!(first.last(), Some(Owned::Continues(it)) if it.remaining == WHOLE));
    venue.must(&SetSymbolStatus { symbol: ONE, status: 5, ..Default::default() });
    let last = venue.drain();
    assert_eq!(result(&last).status, OrderStatus::Filled.to_wire());
    assert!(venue.apply(&order(BOB, BUY, IOC, WHOLE, WHOLE)).is_err());
    venue.must(&CancelOrder {
        command: CommandHeader { key_id: ANN, ..Default::default() },
        symbol: ONE,
        order_id: OrderId(3),
        ..Default::default()
    });
    assert_eq!(balances(&venue, 1), [98 * WHOLE, 0, 102 * WHOLE, 0]);
    venue.check_replay();
}

#[test]
fn order_counts_follow_calendar_windows() {
    let mut venue = world();
    let counts = |venue: &mut Venue| {
        let events = venue.must(&order(BOB, BUY, IOC, WHOLE, WHOLE));
        (result(&events).order_count_0, result(&events).order_count_1)
    };
    // The start lies on a whole ten seconds and 80,000 s into a day.
    assert_eq!(counts(&mut venue), (1, 1));
    venue.time_ns += 9_999_999_999;
    assert_eq!(counts(&mut venue), (2, 2));
    venue.time_ns += 1;
    assert_eq!(counts(&mut venue), (1, 3));
    let ann = venue.must(&order(ANN, BUY, IOC, WHOLE, WHOLE));
    assert_eq!(result(&ann).order_count_1, 1, "each account has its own");
    // Another length makes other windows; the count of the other interval goes on.
    venue.set_limits(Limits { interval_0_seconds: 20, ..roomy() });
    assert_eq!(counts(&mut venue), (1, 4));
    venue.time_ns += 86_400_000_000_000;
    assert_eq!(counts(&mut venue), (1, 1));
    venue.check_replay();
}

#[test]
fn a_balance_is_enough_to_the_last_unit() {
    let mut venue = world();
    for (side, price) in [(BUY, WHOLE), (SELL, 200 * WHOLE)] {
        let beyond = order(ANN, side, GTC, price, 100 * WHOLE + 1);
        assert_eq!(venue.apply(&beyond).unwrap_err().reason, RejectReason::InsufficientBalance);
        venue.must(&order(ANN, side, GTC, price, 100 * WHOLE));
    }
    assert_eq!(balances(&venue, 1), [0, 100 * WHOLE, 0, 100 * WHOLE]);
    // Half a unit costs all that Bob has.
    let dear = order(BOB, BUY, GTC, 0, WHOLE / 2 + 1);
    assert_eq!(venue.apply(&dear).unwrap_err().reason, RejectReason::InsufficientBalance);
    venue.must(&order(BOB, BUY, GTC, 0, WHOLE / 2));
    assert_eq!(balances(&venue, 2)[2..], [0, 0]);
}
