//! As much work under way at once as there may be, and as little room beside it.

use crate::twins::Followed;
use crate::under_way::UnderWay;
use crate::venue::{Owned, Venue, WHOLE, roomy};
use touchline_core::limits::number;
use touchline_core::{ORDER_TYPES_2, RULES_MAX, Reject};
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::*;
use touchline_protocol::units::*;

pub(crate) const ONE: SymbolId = SymbolId(0);
pub(crate) const TWO: SymbolId = SymbolId(1);
const THREE: SymbolId = SymbolId(2);
pub(crate) const ANN: u64 = 1;
pub(crate) const BOB: u64 = 2;
pub(crate) const CARL: u64 = 3;

/// Three symbols, and three accounts whose keys have their numbers.
pub(crate) fn world(rules: u32, limits: Limits) -> Venue {
    let mut venue = Venue::new();
    venue.take_rules(rules);
    venue.set_limits(limits);
    let pair = (venue.asset("BASE"), venue.asset("QUOTE"));
    for name in ["ONE", "TWO", "THREE"] {
        if rules == 1 {
            venue.symbol(name, pair, SymbolFilters::default());
        } else {
            let kinds = (ORDER_TYPES_2, SYMBOL_ICEBERG | SYMBOL_OCO);
            venue.symbol_of(name, pair, SymbolFilters::default(), kinds);
        }
    }
    for name in ["ann", "bob", "carl"] {
        let (account, _) = venue.account(name, (100_000, 150_000));
        venue.deposit(account, pair.0, 100_000 * WHOLE);
        venue.deposit(account, pair.1, 100_000 * WHOLE);
    }
    venue
}

/// A limit order, in whole units; at price 0 a MARKET order.
pub(crate) fn order(
    key: u64,
    symbol: SymbolId,
    side: Side,
    (price, quantity): (i64, i64),
) -> NewOrder {
    NewOrder { symbol, ..crate::taking::order(key, side, price, quantity) }
}

/// A buy of so much at 10 at the most, as soon as a trade is at 10.
pub(crate) fn stop(symbol: SymbolId, quantity: i64) -> NewOrder {
    NewOrder {
        order_type: OrderType::StopLossLimit.to_wire(),
        stop_price: 10 * WHOLE,
        ..order(CARL, symbol, Side::Buy, (10, quantity))
    }
}

pub(crate) fn status(symbol: SymbolId, status: SymbolStatus) -> SetSymbolStatus {
    SetSymbolStatus { symbol, status: status.to_wire(), ..Default::default() }
}

/// Halts a symbol while Ann's order is taking: Carl's stop was reached by then, and nothing has come of it. It is for
/// one unit of Bob's, and two more that are not there.
fn halt_with_a_reached_stop(venue: &mut Venue, symbol: SymbolId) {
    for _ in 0..3 {
        venue.must(&order(BOB, symbol, Side::Sell, (10, 1)));
    }
    venue.must(&stop(symbol, 3));
    venue.must(&order(ANN, symbol, Side::Buy, (10, 2)));
    assert!(venue.core.has_pending(symbol));
    venue.must(&status(symbol, SymbolStatus::Halt));
    venue.drain();
    assert_eq!(venue.core.waiting_orders(symbol).count(), 1);
}

/// One client's work at a time, step by step; two symbols whose stops have their turn when they trade again.
fn with_two_halts() -> Venue {
    let mut venue = world(RULES_MAX, Limits { pending_work: 1, max_steps: 1, ..roomy() });
    halt_with_a_reached_stop(&mut venue, TWO);
    halt_with_a_reached_stop(&mut venue, THREE);
    venue
}

/// The limits without any room for orders and price levels: besides what rests and waits, so many levels are kept.
fn lowered(venue: &Venue, kept: u32) -> Limits {
    let counts = venue.core.counts();
    Limits {
        open_orders: counts.open_orders,
        price_levels: counts.price_levels + kept,
        ..*venue.core.limits()
    }
}

fn set(limits: Limits) -> SetLimits {
    SetLimits { limits, ..Default::default() }
}

/// A client's sweep that passes over an order keeps a place behind it, and so does the kill that passes over that
/// place: with all the orders that there may be one place more than orders and pending work.
#[test]
fn a_kill_keeps_the_one_place_beyond_the_limits() {
    let mut venue = with_two_halts();
    let [first, second] =
        ["first", "second"].map(|name| venue.logon(name, Role::Trader, Lane::Hot, KeyId(ANN)));
    for session in [first, second, second, first] {
        let command = venue.header(session, KeyId(ANN));
        venue.must(&NewOrder { command, ..order(ANN, ONE, Side::Buy, (5, 1)) });
    }
    let mut all = Followed::new(venue);
    let (command, symbol) = (all.venue.header(second, KeyId(ANN)), ONE);
    let scope = CancelScope::Session.to_wire();
    all.must(&MassCancel { command, symbol, scope, ..Default::default() });
    all.must(&status(TWO, SymbolStatus::Trading));
    all.must(&status(THREE, SymbolStatus::Trading));
    all.must(&KillAccount { account: AccountId(1), killed: 1, ..Default::default() });
    all.must(&RunPending::default());
    let limits = lowered(&all.venue, 2);
    all.must(&set(limits));
    let found = UnderWay::of(&all.venue.core);
    assert_eq!((found.sweeps.len(), found.reached.len(), found.kept()), (2, 2, 2));
    assert_eq!(found.places.len() as u32, limits.open_orders + limits.pending_work + 1);
    all.drain();
    // Carl's two are left, each of which has got one unit.
    assert_eq!(all.venue.core.counts().open_orders, 2);
    all.venue.check_replay();
}

fn refused(found: Result<Vec<Owned>, Reject>, number: u32) {
    let reject = Reject { reason: RejectReason::LimitOutOfRange, detail: number };
    assert_eq!(found.err(), Some(reject));
}

/// Ann's order is taking, and has not emptied its price yet; behind it the stops of both symbols have their turn.
fn three_at_once() -> (Followed, Limits) {
    let mut venue = with_two_halts();
    venue.must(&order(BOB, ONE, Side::Sell, (10, 1)));
    venue.must(&order(BOB, ONE, Side::Sell, (10, 1)));
    let limits = lowered(&venue, 2);
    venue.set_limits(limits);
    let mut all = Followed::new(venue);
    all.must(&order(ANN, ONE, Side::Buy, (10, 5)));
    all.must(&status(TWO, SymbolStatus::Trading));
    all.must(&status(THREE, SymbolStatus::Trading));
    let found = UnderWay::of(&all.venue.core);
    assert_eq!((found.orders.len(), found.reached.len(), found.ordinary()), (1, 2, 3));
    (all, limits)
}

/// Ann's rest and Carl's find the room that is kept for them.
fn come_to_rest(mut all: Followed) {
    all.drain();
    for (symbol, open) in [(ONE, 3), (TWO, 2), (THREE, 2)] {
        let resting: Vec<_> = all.venue.core.open_orders(symbol, Side::Buy).collect();
        let [rest] = resting[..] else { panic!("{resting:?}") };
        assert_eq!((rest.price, rest.remaining), (Price(10 * WHOLE), Qty(open * WHOLE)));
    }
    all.venue.check_replay();
}

#[test]
fn limits_that_are_exceeded_may_stay_as_they_are() {
    let (mut all, limits) = three_at_once();
    // One of Bob's two at this price is gone: Ann's may come to rest in its stead.
    let open_orders = limits.open_orders;
    all.must(&set(Limits { open_orders, ..limits }));
    refused(
        all.apply(&set(Limits { open_orders: open_orders - 1, ..limits })),
        number::OPEN_ORDERS,
    );
    let price_levels = limits.price_levels - 1;
    refused(all.apply(&set(Limits { price_levels, ..limits })), number::PRICE_LEVELS);
    refused(all.apply(&set(Limits { pending_work: 0, ..limits })), number::PENDING_WORK);
    come_to_rest(all);
}

#[test]
fn limits_that_were_raised_are_lowered_to_what_is_pending() {
    let (mut all, limits) = three_at_once();
    all.must(&set(Limits { pending_work: 9, price_levels: 90, open_orders: 90, ..limits }));
    let price_levels = limits.price_levels + 1;
    let least = Limits { pending_work: 3, price_levels, ..limits };
    refused(all.apply(&set(Limits { pending_work: 2, ..least })), number::PENDING_WORK);
    refused(
        all.apply(&set(Limits { price_levels: price_levels - 1, ..least })),
        number::PRICE_LEVELS,
    );
    all.must(&set(least));
    come_to_rest(all);
}

/// The symbol trades again before the sweep is done: what was reached in the halt has its turn behind it.
#[test]
fn a_sweep_that_began_in_a_halt_goes_on_in_front_of_stops() {
    let mut venue = world(RULES_MAX, Limits { pending_work: 1, max_steps: 1, ..roomy() });
    for price in 5..8 {
        venue.must(&order(ANN, TWO, Side::Buy, (price, 1)));
    }
    halt_with_a_reached_stop(&mut venue, TWO);
    let mut all = Followed::new(venue);
    let command = order(ANN, TWO, Side::Buy, (1, 1)).command;
    all.must(&CancelAll { command, symbol: TWO, ..Default::default() });
    all.must(&status(TWO, SymbolStatus::Trading));
    let found = UnderWay::of(&all.venue.core);
    assert_eq!((found.sweeps.len(), found.reached.len()), (1, 0));
    let events = all.drain();
    let at = |is: fn(&Owned) -> bool| events.iter().position(is);
    let swept = at(|event| matches!(event, Owned::MassCanceled(_)));
    let triggered = at(|event| matches!(event, Owned::Triggered(_)));
    assert!(swept.is_some() && swept < triggered, "{events:?}");
    all.venue.check_replay();
}

/// One fill shows an iceberg's next slice, touches its list and reaches a stop, which is far more than a step.
#[test]
fn one_fill_sets_off_all_that_it_can() {
    for (max_steps, transactions) in [(1, 6), (2, 5), (512, 2)] {
        let limits = Limits { pending_work: 1, max_steps, ..roomy() };
        let mut venue = world(RULES_MAX, limits);
        venue.must(&order(BOB, ONE, Side::Sell, (9, 1)));
        venue.must(&order(CARL, ONE, Side::Buy, (9, 1)));
        venue.must(&stop(ONE, 3));
        venue.must(&PlaceOrderList {
            command: order(ANN, ONE, Side::Sell, (1, 1)).command,
            symbol: ONE,
            side: Side::Sell.to_wire(),
            quantity: 4 * WHOLE,
            price: 10 * WHOLE,
            limit_iceberg_quantity: WHOLE,
            stop_price: 5 * WHOLE,
            ..Default::default()
        });
        let mut all = Followed::new(venue);
        let mut events = all.must(&order(BOB, ONE, Side::Buy, (10, 2)));
        let mut found = 1;
        let is_one_fill = matches!(
            events[1..5],
            [Owned::Trade(_), Owned::Refilled(_), Owned::Canceled(_), Owned::ListChanged(_)]
        );
        assert!(is_one_fill, "{events:?}");
        while all.has_pending() {
            events.extend(all.must(&RunPending::default()));
            found += 1;
        }
        assert_eq!(found, transactions, "max_steps {max_steps}");
        let count = |is: fn(&Owned) -> bool| events.iter().filter(|event| is(event)).count();
        assert_eq!(count(|event| matches!(event, Owned::Trade(_))), 4);
        assert_eq!(count(|event| matches!(event, Owned::Refilled(_))), 3);
        assert_eq!(count(|event| matches!(event, Owned::Triggered(_))), 1);
        let rest = all.venue.core.open_orders(ONE, Side::Buy).next();
        assert_eq!(rest.map(|order| order.remaining), Some(Qty(WHOLE)), "of Carl's three");
        all.venue.check_replay();
    }
}
