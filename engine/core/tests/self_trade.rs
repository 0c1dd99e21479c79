//! Self-trade prevention by hand-made examples: which of the two orders ends, what goes on, and the
//! money, event by event.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/venue.rs"]
mod venue;
#[path = "self_trade/what_if.rs"]
mod what_if;

use std::collections::BTreeMap;
use touchline_core::ORDER_TYPES_2;
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{OrderStatus, RejectReason as Why, Side};
use touchline_protocol::message::event::*;
use touchline_protocol::units::*;
use venue::{Owned, Venue, WHOLE, roomy};

const ONE: SymbolId = SymbolId(0);
const ANN: u64 = 1;
const BOB: u64 = 2;
const BUY: u8 = 1;
const SELL: u8 = 2;
const GTC: u8 = 1;
const IOC: u8 = 2;
const FOK: u8 = 3;
const NONE: u8 = 1;
const EXPIRE_TAKER: u8 = 2;
const EXPIRE_MAKER: u8 = 3;
const EXPIRE_BOTH: u8 = 4;
const MODES: [u8; 3] = [EXPIRE_TAKER, EXPIRE_MAKER, EXPIRE_BOTH];

/// Ann (1) and Bob (2), with 10,000 of each asset, on a symbol that takes everything.
fn world(limits: Limits) -> Venue {
    let mut venue = Venue::new();
    venue.set_rules();
    venue.must(&SetRules { rules: 2, ..Default::default() });
    venue.set_limits(limits);
    let pair = (venue.asset("BASE"), venue.asset("QUOTE"));
    let flags = SYMBOL_ICEBERG | SYMBOL_QUOTE_QUANTITY;
    let filters = SymbolFilters { lot_step: WHOLE, ..Default::default() };
    venue.symbol_of("ONE", pair, filters, (ORDER_TYPES_2, flags));
    for name in ["ann", "bob"] {
        let (account, _) = venue.account(name, (0, 0));
        venue.deposit(account, pair.0, 10_000 * WHOLE);
        venue.deposit(account, pair.1, 10_000 * WHOLE);
    }
    venue
}

fn limit(key: u64, side: u8, price: i64, quantity: i64) -> NewOrder {
    NewOrder {
        command: CommandHeader { key_id: KeyId(key), ..Default::default() },
        symbol: ONE,
        side,
        order_type: 1,
        time_in_force: GTC,
        price: price * WHOLE,
        quantity: quantity * WHOLE,
        ..Default::default()
    }
}

/// An order of Ann's that must not trade with hers.
fn guarded(mode: u8, side: u8, price: i64, quantity: i64) -> NewOrder {
    NewOrder { self_trade_prevention: mode, ..limit(ANN, side, price, quantity) }
}

fn market(mode: u8, side: u8, quantity: i64) -> NewOrder {
    NewOrder { order_type: 2, time_in_force: 0, ..guarded(mode, side, 0, quantity) }
}

fn balances(venue: &Venue, account: u32) -> [i64; 4] {
    let of = |asset| venue.core.balance(AccountId(account), AssetId(asset)).unwrap();
    let (base, quote) = (of(0), of(1));
    [base.free, base.locked, quote.free, quote.locked].map(|amount| amount.0)
}

fn trades(events: &[Owned]) -> Vec<(u64, i64)> {
    let of = |event: &Owned| match event {
        Owned::Trade(trade) => Some((trade.maker_order_id.0, trade.quantity / WHOLE)),
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

fn result(events: &[Owned]) -> OrderResult {
    let Some(Owned::Result(result)) = events.last() else { panic!("{events:?}") };
    *result
}

fn book(venue: &Venue, side: Side) -> Vec<(u64, i64)> {
    let of = |order: touchline_core::OpenOrder| (order.order_id.0, order.remaining.0 / WHOLE);
    venue.core.open_orders(ONE, side).map(of).collect()
}

/// Bob's sell, Ann's behind it, Bob's again.
fn three_sells() -> Venue {
    let mut venue = world(roomy());
    venue.must(&limit(BOB, SELL, 10, 1));
    venue.must(&limit(ANN, SELL, 10, 2));
    venue.must(&limit(BOB, SELL, 10, 4));
    venue
}

#[test]
fn without_a_mode_an_account_trades_with_itself() {
    for mode in [0, NONE] {
        let mut venue = three_sells();
        let events = venue.must(&guarded(mode, BUY, 10, 7));
        assert_eq!(trades(&events), [(1, 1), (2, 2), (3, 4)]);
        venue.check_replay();
    }
}

#[test]
fn what_is_no_mode_is_refused() {
    let mut venue = world(roomy());
    for mode in [5, u8::MAX] {
        let reject = venue.apply(&guarded(mode, BUY, 10, 1)).unwrap_err();
        assert_eq!(reject.reason, Why::UnsupportedCombination);
    }
}

#[test]
fn the_takers_rest_expires() {
    let mut venue = three_sells();
    let events = venue.must(&guarded(EXPIRE_TAKER, BUY, 11, 7));
    assert_eq!(trades(&events), [(1, 1)]);
    assert_eq!(
        events[2..],
        [
            Owned::Prevented(SelfTradePrevented {
                maker_order_id: OrderId(2),
                taker_order_id: OrderId(4),
                account: AccountId(1),
                symbol: ONE,
                price: 10 * WHOLE,
                quantity: 2 * WHOLE,
                mode: EXPIRE_TAKER,
                book_update_id: BookUpdateId(3),
                ..Default::default()
            }),
            Owned::Result(OrderResult {
                order_id: OrderId(4),
                account: AccountId(1),
                symbol: ONE,
                quantity: 7 * WHOLE,
                executed_quantity: WHOLE,
                executed_quote: 10 * WHOLE,
                released: 67 * WHOLE,
                book_update_id: BookUpdateId(4),
                order_list_id: OrderListId::NONE,
                order_count_0: 2,
                order_count_1: 2,
                status: OrderStatus::Expired.to_wire(),
                ..Default::default()
            }),
        ]
    );
    assert_eq!(book(&venue, Side::Sell), [(2, 2), (3, 4)]);
    assert_eq!(balances(&venue, 1), [9_999, 2, 9_990, 0].map(|whole| whole * WHOLE));
    venue.check_replay();
}

/// Nothing in the book changes, so its update number does not either.
#[test]
fn a_taker_that_meets_its_own_first_changes_no_book() {
    let mut venue = world(roomy());
    venue.must(&limit(ANN, SELL, 10, 2));
    let events = venue.must(&guarded(EXPIRE_TAKER, BUY, 10, 1));
    let found = result(&events);
    assert_eq!((found.book_update_id, found.executed_quantity), (BookUpdateId(1), 0));
    assert_eq!((found.status, found.released), (OrderStatus::Expired.to_wire(), 10 * WHOLE));
    venue.check_replay();
}

#[test]
fn the_maker_expires_and_the_taker_goes_on() {
    let mut venue = three_sells();
    let events = venue.must(&guarded(EXPIRE_MAKER, BUY, 11, 7));
    assert_eq!(trades(&events), [(1, 1), (3, 4)]);
    let [Owned::Prevented(prevented), Owned::Canceled(canceled)] = events[2..4] else {
        panic!("{events:?}")
    };
    assert_eq!((prevented.quantity, prevented.mode), (2 * WHOLE, EXPIRE_MAKER));
    assert_eq!(
        canceled,
        OrderCanceled {
            order_id: OrderId(2),
            account: AccountId(1),
            symbol: ONE,
            price: 10 * WHOLE,
            quantity: 2 * WHOLE,
            released: 2 * WHOLE,
            book_update_id: BookUpdateId(4),
            order_list_id: OrderListId::NONE,
            status: OrderStatus::Expired.to_wire(),
            side: SELL,
            order_type: 1,
            time_in_force: GTC,
            ..Default::default()
        }
    );
    let found = result(&events);
    assert_eq!(found.status, OrderStatus::PartiallyFilled.to_wire());
    assert_eq!(found.book_update_id, BookUpdateId(4), "one update for all of it");
    assert_eq!(book(&venue, Side::Buy), [(4, 2)]);
    assert_eq!(balances(&venue, 1), [10_005, 0, 9_923, 27].map(|whole| whole * WHOLE));
    venue.check_replay();
}

/// An order that removes its own account's and then rests is one update, too.
#[test]
fn a_taker_that_only_removes_rests() {
    let mut venue = world(roomy());
    venue.must(&limit(ANN, SELL, 10, 2));
    let found = result(&venue.must(&guarded(EXPIRE_MAKER, BUY, 10, 1)));
    assert_eq!((found.status, found.book_update_id), (1, BookUpdateId(2)));
    assert_eq!((book(&venue, Side::Sell), book(&venue, Side::Buy)), (vec![], vec![(2, 1)]));
    venue.check_replay();
}

#[test]
fn both_expire() {
    let mut venue = three_sells();
    let events = venue.must(&guarded(EXPIRE_BOTH, BUY, 11, 7));
    assert_eq!(trades(&events), [(1, 1)]);
    let [Owned::Prevented(_), Owned::Canceled(canceled), Owned::Result(found)] = events[2..] else {
        panic!("{events:?}")
    };
    assert_eq!((canceled.order_id, canceled.status), (OrderId(2), 5));
    assert_eq!((found.status, found.executed_quantity), (5, WHOLE));
    assert_eq!(book(&venue, Side::Sell), [(3, 4)]);
    assert_eq!(balances(&venue, 1), [10_001, 0, 9_990, 0].map(|whole| whole * WHOLE));
    venue.check_replay();
}

/// The resting order's own mode is nobody's business but its own.
#[test]
fn only_the_aggressors_mode_counts() {
    let mut venue = world(roomy());
    venue.must(&guarded(EXPIRE_BOTH, SELL, 10, 1));
    assert_eq!(trades(&venue.must(&limit(ANN, BUY, 10, 1))), [(1, 1)]);
    venue.check_replay();
}

#[test]
fn what_an_iceberg_hides_is_prevented_with_it() {
    let mut venue = world(roomy());
    let mut iceberg = limit(ANN, SELL, 10, 8);
    iceberg.iceberg_quantity = 2 * WHOLE;
    venue.must(&iceberg);
    venue.must(&limit(BOB, SELL, 10, 3));
    let events = venue.must(&guarded(EXPIRE_MAKER, BUY, 10, 5));
    let Owned::Prevented(prevented) = events[1] else { panic!("{events:?}") };
    assert_eq!(prevented.quantity, 5 * WHOLE, "the lesser of both");
    let Owned::Canceled(canceled) = events[2] else { panic!("{events:?}") };
    assert_eq!(canceled.released, 8 * WHOLE);
    assert_eq!(trades(&events), [(2, 3)]);
    assert_eq!(venue.core.depth(ONE, Side::Sell).count(), 0);
    venue.check_replay();
}

/// FOK: what must be there without one's own, and what must not stand in the way.
#[test]
fn fill_or_kill_does_not_count_on_its_own_orders() {
    // Sells as (owner, price, quantity, shown); what is wanted; which modes fill it.
    type Case = (&'static [(u64, i64, i64, i64)], i64, [bool; 3]);
    let cases: [Case; 9] = [
        (&[(BOB, 10, 5, 0)], 5, [true; 3]),
        (&[(ANN, 10, 5, 0)], 5, [false; 3]),
        (&[(BOB, 10, 5, 0), (ANN, 10, 5, 0)], 5, [true; 3]),
        (&[(BOB, 10, 5, 0), (ANN, 10, 5, 0)], 6, [false; 3]),
        (&[(ANN, 9, 5, 0), (BOB, 10, 5, 0)], 5, [false, true, false]),
        (&[(ANN, 9, 5, 0), (BOB, 10, 4, 0)], 5, [false; 3]),
        // The iceberg shows its next slice behind Ann's order.
        (&[(BOB, 10, 6, 2), (ANN, 10, 1, 0)], 3, [false, true, false]),
        (&[(BOB, 9, 6, 2), (ANN, 10, 1, 0)], 6, [true; 3]),
        (&[(BOB, 9, 6, 2), (ANN, 10, 9, 3), (BOB, 10, 4, 1)], 10, [false, true, false]),
    ];
    for (number, (sells, wanted, fills)) in cases.iter().enumerate() {
        for (mode, fills) in MODES.into_iter().zip(fills) {
            let mut venue = world(roomy());
            for &(owner, price, quantity, shown) in *sells {
                let mut sell = limit(owner, SELL, price, quantity);
                sell.iceberg_quantity = shown * WHOLE;
                venue.must(&sell);
            }
            let before = book(&venue, Side::Sell);
            let buy = NewOrder { time_in_force: FOK, ..guarded(mode, BUY, 10, *wanted) };
            let events = venue.must(&buy);
            let found = result(&events);
            let status = if *fills { OrderStatus::Filled } else { OrderStatus::Expired };
            assert_eq!(found.status, status.to_wire(), "case {number}, mode {mode}");
            if !fills {
                assert_eq!(events.len(), 2, "nothing else happens in case {number}");
                assert_eq!(book(&venue, Side::Sell), before);
            }
            venue.check_replay();
        }
    }
}

/// How far the walk goes: to as many orders as a transaction has steps.
#[test]
fn fill_or_kill_looks_at_no_more_orders_than_there_are_steps() {
    for (own_side, wanted, status) in [
        (SELL, 4, OrderStatus::Filled),
        (SELL, 5, OrderStatus::Expired),
        // Without any order on the other side no order is looked at.
        (BUY, 5, OrderStatus::Filled),
    ] {
        let mut venue = world(Limits { max_steps: 4, ..roomy() });
        venue.must(&limit(ANN, own_side, if own_side == SELL { 99 } else { 1 }, 1));
        for _ in 0..6 {
            venue.must(&limit(BOB, SELL, 10, 1));
        }
        let buy = NewOrder { time_in_force: FOK, ..guarded(EXPIRE_MAKER, BUY, 10, wanted) };
        let mut events = venue.must(&buy);
        events.extend(venue.drain());
        assert_eq!(result(&events).status, status.to_wire(), "{own_side} {wanted}");
        venue.check_replay();
    }
}

#[test]
fn immediate_or_cancel_expires() {
    let mut venue = three_sells();
    let events = venue.must(&NewOrder { time_in_force: IOC, ..guarded(EXPIRE_MAKER, BUY, 10, 9) });
    let found = result(&events);
    assert_eq!((found.status, found.executed_quantity), (5, 5 * WHOLE));
    assert_eq!(balances(&venue, 1), [10_005, 0, 9_950, 0].map(|whole| whole * WHOLE));
    venue.check_replay();
}

/// A MARKET order's quantity and lock are reckoned with its own account's orders; what it does not take
/// of them it takes nowhere else by rules 2 and 3, whatever that would cost.
#[test]
fn a_market_order_does_not_take_elsewhere_what_is_prevented() {
    let with_sells = || {
        let mut venue = world(roomy());
        venue.must(&limit(BOB, SELL, 10, 1));
        venue.must(&limit(ANN, SELL, 11, 2));
        venue.must(&limit(BOB, SELL, 9_000, 4));
        // Just what the MARKET order below locks stays free.
        venue.must(&limit(ANN, BUY, 1, 9_959));
        venue
    };
    for (mode, left) in [(EXPIRE_TAKER, 2), (EXPIRE_MAKER, 0), (EXPIRE_BOTH, 0)] {
        for by_quote in [false, true] {
            let mut venue = with_sells();
            let mut buy = market(mode, BUY, 3);
            if by_quote {
                (buy.quantity, buy.quote_quantity) = (0, 32 * WHOLE);
            }
            let events = venue.must(&buy);
            assert_eq!(trades(&events), [(1, 1)], "mode {mode}, by quote: {by_quote}");
            let found = result(&events);
            assert_eq!((found.status, found.quantity), (5, 3 * WHOLE));
            assert_eq!((found.executed_quote, found.released), (10 * WHOLE, 22 * WHOLE));
            assert_eq!(balances(&venue, 1)[1], left * WHOLE);
            venue.check_replay();
        }
    }
    // It goes on behind them with what is left of its quantity.
    let mut venue = three_sells();
    let events = venue.must(&market(EXPIRE_MAKER, BUY, 6));
    assert_eq!(trades(&events), [(1, 1), (3, 3)]);
    assert_eq!(result(&events).status, OrderStatus::Expired.to_wire());
    venue.check_replay();
}

/// A stop keeps its mode while it waits.
#[test]
fn a_triggered_stop_obeys_its_mode() {
    for mode in MODES {
        let mut venue = world(roomy());
        let stop = NewOrder { order_type: 4, stop_price: 20 * WHOLE, ..guarded(mode, BUY, 21, 5) };
        venue.must(&stop);
        let waiting = venue.core.open_order(ONE, OrderId(1)).unwrap();
        assert_eq!(waiting.self_trade_prevention.map(|mode| mode.to_wire()), Some(mode));
        venue.must(&limit(BOB, SELL, 20, 2));
        venue.must(&limit(ANN, SELL, 20, 2));
        venue.must(&limit(BOB, SELL, 21, 2));
        venue.must(&limit(BOB, BUY, 20, 1));
        let events = venue.drain();
        let (expected, status) = match mode {
            EXPIRE_MAKER => (vec![(2, 1), (4, 2)], OrderStatus::PartiallyFilled),
            _ => (vec![(2, 1)], OrderStatus::Expired),
        };
        assert_eq!(trades(&events), expected, "mode {mode}");
        assert_eq!(result(&events).status, status.to_wire());
        venue.check_replay();
    }
}

/// Wherever the steps run out, the same trades happen and the same is left.
#[test]
fn steps_run_out_at_every_point() {
    let run = |max_steps, mode| {
        let mut venue = world(Limits { max_steps, ..roomy() });
        for price in 10..14 {
            venue.must(&limit(BOB, SELL, price, 1));
            let mut own = limit(ANN, SELL, price, 6);
            own.iceberg_quantity = 2 * WHOLE;
            venue.must(&own);
            let mut iceberg = limit(BOB, SELL, price, 4);
            iceberg.iceberg_quantity = 2 * WHOLE;
            venue.must(&iceberg);
        }
        let mut events = venue.must(&guarded(mode, BUY, 13, 30));
        events.extend(venue.drain());
        venue.check_replay();
        events.retain(|event| !matches!(event, Owned::Continues(_)));
        let result = result(&events);
        let canceled = events.iter().filter(|event| matches!(event, Owned::Canceled(_))).count();
        let released = result.released;
        (
            trades(&events),
            result.status,
            released,
            canceled,
            balances(&venue, 1),
            balances(&venue, 2),
        )
    };
    for mode in MODES {
        let whole = run(256, mode);
        for max_steps in 1..24 {
            assert_eq!(run(max_steps, mode), whole, "{max_steps} steps, mode {mode}");
        }
    }
}

/// With a full queue of pending work an order is refused that its own account's orders may keep from
/// being done in one transaction.
#[test]
fn a_prevention_takes_two_steps() {
    for (max_steps, fits) in [(3, false), (4, true)] {
        let mut venue = world(Limits { max_steps, pending_work: 0, ..roomy() });
        venue.must(&limit(ANN, SELL, 10, 1));
        venue.must(&limit(ANN, SELL, 10, 1));
        let found = venue.apply(&guarded(EXPIRE_MAKER, BUY, 10, 1));
        assert_eq!(found.is_ok(), fits, "{max_steps} steps: {found:?}");
        assert!(venue.core.pending_head().is_none());
    }
}

/// Random orders of two accounts: one that names a mode never trades with its own account.
#[test]
fn no_guarded_order_trades_with_its_own_account() {
    let mut state = 7u64;
    let mut roll = |sides: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % sides
    };
    let mut venue = world(Limits { max_steps: 3, ..roomy() });
    let (mut prevented, mut traded) = (0, 0);
    let mut modes = BTreeMap::new();
    for _ in 0..3000 {
        let mode = roll(5) as u8;
        let side = 1 + roll(2) as u8;
        let mut order = limit(1 + roll(2), side, 8 + roll(6) as i64, 1 + roll(6) as i64);
        order.self_trade_prevention = mode;
        match roll(8) {
            0 => order.time_in_force = IOC,
            1 => order.time_in_force = FOK,
            2 => (order.order_type, order.time_in_force, order.price) = (2, 0, 0),
            3 => order.iceberg_quantity = WHOLE,
            4 => (order.order_type, order.stop_price) = (4, (8 + roll(6) as i64) * WHOLE),
            5 => {
                (order.order_type, order.time_in_force, order.price) = (2, 0, 0);
                (order.quantity, order.quote_quantity) = (0, 30 * WHOLE);
            }
            _ => {}
        }
        let Ok(mut events) = venue.apply(&order) else { continue };
        if let Owned::Accepted(accepted) = events[0] {
            modes.insert(accepted.order_id, mode);
        }
        events.extend(venue.drain());
        for event in &events {
            match event {
                Owned::Trade(trade) => {
                    let is_guarded = modes[&trade.taker_order_id] > NONE;
                    assert!(!is_guarded || trade.maker_account != trade.taker_account);
                    traded += 1;
                }
                Owned::Prevented(event) => {
                    assert_eq!(event.mode, modes[&event.taker_order_id]);
                    assert!(event.mode > NONE && event.quantity > 0);
                    prevented += 1;
                }
                _ => {}
            }
        }
    }
    assert!(prevented > 100 && traded > 500, "{prevented} prevented, {traded} traded");
    venue.check_replay();
}
