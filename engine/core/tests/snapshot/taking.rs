//! Orders that a snapshot was written in the middle of, and the stops that wait behind them: what no venue
//! has is refused, since it would pay with what is not there, or find no room where room is kept.

use crate::altered::{reason, records_of, with_records};
use crate::parts::{again, write};
use crate::venue::{Venue, WHOLE, named, roomy};
use std::mem::offset_of;
use touchline_core::{Core, ORDER_TYPES_2};
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{OrderType, SelfTradePrevention, Side, TimeInForce};
use touchline_protocol::snapshot::records::*;
use touchline_protocol::units::*;

const ONE: SymbolId = SymbolId(0);
const ANN: u64 = 1;
const BOB: u64 = 2;

/// A limit order, in whole units; at price 0 a MARKET order.
pub(crate) fn order(key: u64, side: Side, price: i64, quantity: i64) -> NewOrder {
    let (order_type, time_in_force) = match price {
        0 => (OrderType::Market, 0),
        _ => (OrderType::Limit, TimeInForce::Gtc.to_wire()),
    };
    NewOrder {
        command: CommandHeader { key_id: KeyId(key), ..Default::default() },
        symbol: ONE,
        side: side.to_wire(),
        order_type: order_type.to_wire(),
        time_in_force,
        price: price * WHOLE,
        quantity: quantity * WHOLE,
        ..Default::default()
    }
}

/// A buy of one unit that rests at `price` when a trade at 10 or above has fired it.
fn stop(key: u64, price: i64) -> NewOrder {
    NewOrder {
        order_type: OrderType::StopLossLimit.to_wire(),
        stop_price: 10 * WHOLE,
        ..order(key, Side::Buy, price, 1)
    }
}

/// Ann (1) and Bob (2), and one step for each transaction.
pub(crate) fn world() -> Venue {
    let mut venue = Venue::new();
    venue.take_rules(2);
    venue.set_limits(Limits { max_steps: 1, ..roomy() });
    let pair = (venue.asset("BASE"), venue.asset("QUOTE"));
    venue.symbol_of("ONE", pair, SymbolFilters::default(), (ORDER_TYPES_2, SYMBOL_ICEBERG));
    for name in ["ann", "bob"] {
        let (account, _) = venue.account(name, (0, 0));
        venue.deposit(account, pair.0, 1000 * WHOLE);
        venue.deposit(account, pair.1, 1000 * WHOLE);
    }
    venue
}

/// Ann has taken the first of Bob's three orders, at 10, 11 and 12 or the other way round, and wants all;
/// another one of hers rests.
fn amid(order: &NewOrder) -> Venue {
    let mut venue = world();
    let side = Side::from_wire(order.side).unwrap();
    let away = if side == Side::Buy { 1 } else { 99 };
    let named = NewOrder { client_order_id: named("away"), ..self::order(ANN, side, away, 1) };
    venue.must(&named);
    for price in 10..=12 {
        venue.must(&self::order(BOB, side.opposite(), price, 1));
    }
    venue.must(order);
    assert!(venue.core.pending_head().is_some());
    venue
}

/// As [`reason`], when somebody has altered the order that is taking.
fn refusal(core: &Core, alter: impl Fn(&mut PendingOrderRecord)) -> &'static str {
    let bytes = write(core);
    let mut records = records_of(&bytes, PENDING).to_vec();
    let raw = &mut records[size_of::<PendingRecord>()..];
    let mut taking = bytemuck::pod_read_unaligned(raw);
    alter(&mut taking);
    raw.copy_from_slice(bytemuck::bytes_of(&taking));
    reason(&with_records(&bytes, PENDING, 1, &records))
}

pub(crate) const OUT_OF_RANGE: &str = "a field out of range";
const NOTHING: &str = "a reference to nothing";
const TOO_MUCH: &str = "more to pay than there is";

type Alteration = fn(&mut PendingOrderRecord);

#[track_caller]
fn refused(order: &NewOrder, alterations: &[(&str, Alteration)]) {
    let venue = amid(order);
    again(&venue.core, 7);
    for (number, (why, alter)) in alterations.iter().enumerate() {
        assert_eq!(refusal(&venue.core, alter), *why, "{number}");
    }
}

/// It has locked 36 and paid 10.
#[test]
fn a_limit_buy_locks_what_it_asks_for() {
    refused(
        &order(ANN, Side::Buy, 12, 3),
        &[
            ("", |_| {}),
            (OUT_OF_RANGE, |taking| taking.price -= 1),
            (OUT_OF_RANGE, |taking| taking.quantity += WHOLE),
            (OUT_OF_RANGE, |taking| taking.quantity = i64::MAX),
            (OUT_OF_RANGE, |taking| taking.locked += 1),
            // Its lock pays for what it has open, but is not what its price and quantity ask for.
            (OUT_OF_RANGE, |taking| taking.locked = 30 * WHOLE),
            (OUT_OF_RANGE, |taking| taking.remaining = 3 * WHOLE),
            (OUT_OF_RANGE, |taking| taking.prevented = 1),
            (OUT_OF_RANGE, |taking| taking.place = NO_PLACE),
            (NOTHING, |taking| taking.client_order_id = named("away")),
            (NOTHING, |taking| taking.order_id = OrderId(1)),
        ],
    );
}

/// It has locked 33 and paid 10: what is there costs 23.
#[test]
fn a_market_buy_pays_for_what_is_there() {
    refused(
        &order(ANN, Side::Buy, 0, 3),
        &[
            ("", |_| {}),
            (TOO_MUCH, |taking| taking.locked -= 1),
            (TOO_MUCH, |taking| taking.executed_quote += 1),
            (OUT_OF_RANGE, |taking| taking.price = 1),
            (OUT_OF_RANGE, |taking| taking.remaining = taking.quantity + 1),
            (OUT_OF_RANGE, |taking| taking.prevented = taking.remaining),
            // Of itself it would have taken the last of them.
            ("locked is not what its orders lock", |taking| {
                (taking.prevented, taking.locked) = (WHOLE, taking.locked - 12 * WHOLE);
            }),
        ],
    );
}

/// By rules 4 one that goes on behind an order of its own locks what the book asked for with that one: less
/// than all that it still wants costs.
#[test]
fn a_market_buy_goes_as_far_as_its_lock_pays() {
    let mut venue = world();
    for rules in 3..=8 {
        venue.must(&SetRules { rules, ..Default::default() });
    }
    for (key, price) in [(ANN, 10), (BOB, 11), (BOB, 20)] {
        venue.must(&order(key, Side::Sell, price, 1));
    }
    let mode = SelfTradePrevention::ExpireMaker.to_wire();
    venue.must(&NewOrder { self_trade_prevention: mode, ..order(ANN, Side::Buy, 0, 2) });
    assert!(venue.core.pending_head().is_some());
    assert_eq!(refusal(&venue.core, |_| {}), "");
    again(&venue.core, 7);
    // Any other order asks for more than it has locked.
    let other = |taking: &mut PendingOrderRecord| {
        taking.prevention_now = SelfTradePrevention::ExpireTaker.to_wire();
    };
    assert_eq!(refusal(&venue.core, other), TOO_MUCH);
}

/// What it is paid yet are 21 at once, or 20 where it rests.
#[test]
fn what_a_sell_is_paid_stays_an_amount() {
    const MOST: i64 = i64::MAX - 41 * WHOLE;
    refused(
        &order(ANN, Side::Sell, 10, 3),
        &[
            ("", |taking| taking.executed_quote = MOST),
            (TOO_MUCH, |taking| taking.executed_quote = MOST + 1),
            (OUT_OF_RANGE, |taking| taking.prevented = 1),
            (OUT_OF_RANGE, |taking| taking.flags |= PENDING_OWN_LOCK),
            ("nothing to continue", |taking| taking.price = 20 * WHOLE),
        ],
    );
    refused(
        &order(ANN, Side::Sell, 0, 3),
        &[
            ("", |taking| taking.executed_quote = MOST + 20 * WHOLE),
            (TOO_MUCH, |taking| taking.executed_quote = MOST + 20 * WHOLE + 1),
        ],
    );
}

/// Two levels, and one for each of three stops: with less there would be no room when they come to rest.
#[test]
fn every_stop_has_its_price_level_kept() {
    let mut venue = world();
    venue.must(&order(BOB, Side::Sell, 10, 1));
    for price in 11..=13 {
        venue.must(&stop(ANN, price));
    }
    let bytes = write(&venue.core);
    let with = |price_levels: u32| {
        let mut record = records_of(&bytes, VENUE).to_vec();
        let at = offset_of!(VenueRecord, limits) + offset_of!(Limits, price_levels);
        record[at..at + 4].copy_from_slice(&price_levels.to_le_bytes());
        reason(&with_records(&bytes, VENUE, 1, &record))
    };
    assert_eq!(with(5), "");
    assert_eq!(with(4), "stops for which no price level is kept");
    assert_eq!(with(1), "more price levels than the limit");
}

#[test]
fn stops_that_were_reached_have_their_turn_and_before_anything_else() {
    let mut venue = world();
    for price in 11..=12 {
        venue.must(&stop(ANN, price));
    }
    venue.must(&order(BOB, Side::Sell, 10, 1));
    venue.must(&order(BOB, Side::Buy, 10, 1));
    venue.must(&RunPending::default());
    let bytes = write(&venue.core);
    assert_eq!(records_of(&bytes, PENDING).len(), size_of::<PendingRecord>());
    let none = with_records(&bytes, PENDING, 0, &[]);
    assert_eq!(reason(&none), "stops that were reached and will have no turn");
    let pending = PendingRecord { kind: PENDING_SWEEP, symbol: ONE };
    let sweep = PendingSweepRecord {
        whose: SWEEP_EVERYBODY,
        account: AccountId(EVERY),
        place: NO_PLACE,
        ..Default::default()
    };
    let records = [bytemuck::bytes_of(&pending), bytemuck::bytes_of(&sweep)].concat();
    let swept = with_records(&bytes, PENDING, 1, &records);
    assert_eq!(reason(&swept), "a sweep in front of stops that were reached");
}

#[test]
fn there_is_no_more_pending_work_than_its_limit() {
    let bytes = write(&amid(&order(ANN, Side::Buy, 12, 3)).core);
    let mut record = records_of(&bytes, VENUE).to_vec();
    let at = offset_of!(VenueRecord, limits) + offset_of!(Limits, pending_work);
    record[at..at + 4].copy_from_slice(&0u32.to_le_bytes());
    assert_eq!(reason(&with_records(&bytes, VENUE, 1, &record)), "more than the limits allow");
}
