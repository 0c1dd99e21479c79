//! The kill switch: what it refuses, what it ends, and that it overtakes pending work.

use crate::venue::{Owned, Venue, WHOLE};
use crate::world::*;
use touchline_core::Reject;
use touchline_core::limits::{URGENT_SWEEPS_MAX, number};
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{Lane, OrderStatus, RejectReason as Why, Role, Side};
use touchline_protocol::message::event::Done;
use touchline_protocol::text::Name;
use touchline_protocol::units::*;

fn reason<M: touchline_protocol::message::Message>(venue: &mut Venue, message: &M) -> Why {
    venue.apply(message).expect_err("a reject").reason
}

#[test]
fn a_killed_account_places_nothing_and_may_cancel_and_reduce() {
    let mut venue = world(steps(256));
    place(&mut venue, &limit(by(ANN), ONE, Side::Buy, (9, 2)));
    place(&mut venue, &stop_limit(by(ANN), TWO, Side::Buy, (9, 2)));
    assert_eq!(ended(&venue.must(&kill(ANN, 1))), [(ONE, 1), (TWO, 1)]);
    check_empty(&venue);
    assert!(venue.core.account(AccountId(1)).unwrap().killed);
    let mut order = limit(by(ANN), ONE, Side::Buy, (9, 2));
    assert_eq!(reason(&mut venue, &order), Why::AccountKilled);
    order.flags = ORDER_VALIDATE_ONLY;
    assert_eq!(reason(&mut venue, &order), Why::AccountKilled);
    // The flag comes before what is wrong with the order, and behind the symbol.
    order.side = 9;
    assert_eq!(reason(&mut venue, &order), Why::AccountKilled);
    order.symbol = SymbolId(7);
    assert_eq!(reason(&mut venue, &order), Why::UnknownSymbol);
    assert_eq!(venue.must(&kill(ANN, 1)), [mass(1, ALL, 0)], "once more does no harm");
    let done = Done { id: 1, ..Default::default() };
    assert_eq!(venue.must(&kill(ANN, 0)), [Owned::Done(done)]);
    let (symbol, id) = place(&mut venue, &limit(by(ANN), ONE, Side::Buy, (9, 2)));
    let order_id = OrderId(id);
    venue.must(&ReduceOrder {
        command: by(ANN),
        symbol,
        order_id,
        new_quantity: WHOLE,
        ..Default::default()
    });
    venue.check_replay();
}

#[test]
fn it_overtakes_an_aggressor_that_waits_to_go_on() {
    let mut venue = world(steps(1));
    for _ in 0..4 {
        place(&mut venue, &limit(by(BOB), ONE, Side::Sell, (10, 1)));
    }
    let resting = place(&mut venue, &limit(by(ANN), TWO, Side::Sell, (10, 1)));
    place(&mut venue, &limit(by(ANN), ONE, Side::Buy, (11, 9)));
    assert!(venue.core.has_pending(ONE));
    let events = venue.must(&kill(ANN, 1));
    assert!(matches!(events[..], [Owned::Continues(continues)] if continues.symbol == ALL));
    let order = limit(by(ANN), TWO, Side::Buy, (9, 1));
    assert!(venue.apply(&order).is_err(), "everything waits for a sweep over all symbols");
    let events = venue.must(&RunPending::default());
    let [Owned::Result(result)] = events[..] else { panic!("{events:?}") };
    assert_eq!(result.status, OrderStatus::Expired.to_wire());
    assert_eq!((result.order_id, result.executed_quantity), (OrderId(5), WHOLE));
    // It locked 99 and paid 10.
    assert_eq!(result.released, 89 * WHOLE);
    assert_eq!(venue.core.open_orders(ONE, Side::Sell).count(), 3, "it took no more");
    let events = venue.must(&RunPending::default());
    assert_eq!(ended(&events), [resting]);
    assert_eq!(events[1], mass(1, ALL, 1));
    venue.must(&cancel_all(by(BOB), ONE));
    venue.drain();
    check_empty(&venue);
    venue.check_replay();
}

#[test]
fn another_accounts_aggressor_goes_on_first() {
    let mut venue = world(steps(1));
    for _ in 0..3 {
        place(&mut venue, &limit(by(ANN), ONE, Side::Sell, (10, 1)));
    }
    place(&mut venue, &limit(by(BOB), ONE, Side::Buy, (10, 2)));
    venue.must(&kill(ANN, 1));
    let events = venue.drain();
    assert_eq!(events.iter().filter(|event| matches!(event, Owned::Trade(_))).count(), 1);
    assert_eq!(ended(&events), [(ONE, 3)], "what was not taken before its turn");
    check_empty(&venue);
    venue.check_replay();
}

#[test]
fn triggered_stops_of_a_killed_account_have_no_turn_any_more() {
    let mut venue = world(steps(1));
    let limit_stop = place(&mut venue, &stop_limit(by(ANN), ONE, Side::Buy, (10, 11)));
    let mut market = stop_limit(by(ANN), ONE, Side::Buy, (10, 0));
    (market.order_type, market.time_in_force) = (3, 0);
    let market = place(&mut venue, &market);
    let bobs = place(&mut venue, &stop_limit(by(BOB), ONE, Side::Buy, (10, 9)));
    let waiting = place(&mut venue, &stop_limit(by(ANN), ONE, Side::Buy, (50, 51)));
    for (side, quantity) in [(Side::Sell, 5), (Side::Buy, 1)] {
        place(&mut venue, &limit(by(CARL), ONE, side, (10, quantity)));
    }
    assert!(venue.core.has_pending(ONE));
    venue.must(&kill(ANN, 1));
    let events = venue.drain();
    let statuses: Vec<u8> = canceled(&events).iter().map(|event| event.status).collect();
    assert_eq!(ended(&events), [limit_stop, market, waiting]);
    assert_eq!(statuses, [4; 3]);
    let swept = events.iter().position(|event| *event == mass(1, ALL, 3)).unwrap();
    let turn = events.iter().position(|event| matches!(event, Owned::Triggered(_))).unwrap();
    assert!(swept < turn, "the kill comes before the other stops' turn");
    let triggered: Vec<u64> = events
        .iter()
        .filter_map(|event| match event {
            Owned::Triggered(triggered) => Some(triggered.order_id.0),
            _ => None,
        })
        .collect();
    assert_eq!(triggered, [bobs.1]);
    venue.check_replay();
}

/// Triggered stops on one symbol, an aggressor that is taking on the other, and no room for more work.
#[test]
fn it_needs_no_room_that_others_may_take() {
    let mut venue = world(Limits { pending_work: 2, ..steps(1) });
    for _ in 0..4 {
        place(&mut venue, &limit(by(BOB), ONE, Side::Sell, (10, 1)));
    }
    let (_, stop) = place(&mut venue, &stop_limit(by(ANN), TWO, Side::Buy, (10, 11)));
    place(&mut venue, &limit(by(BOB), TWO, Side::Sell, (10, 5)));
    place(&mut venue, &limit(by(CARL), TWO, Side::Buy, (10, 1)));
    place(&mut venue, &limit(by(CARL), ONE, Side::Buy, (11, 3)));
    assert!(venue.core.has_pending(ONE) && venue.core.has_pending(TWO));
    venue.must(&kill(ANN, 1));
    venue.must(&kill(BOB, 1));
    assert_eq!(venue.must(&kill(ANN, 1)), [mass(1, ALL, 0)], "an earlier one is under way");
    let events = venue.drain();
    // Carl's order goes on to its end, then what was killed goes, and nobody is left for the trigger.
    let trades = events.iter().filter(|event| matches!(event, Owned::Trade(_))).count();
    assert_eq!(trades, 2);
    let swept = |event: &&Owned| matches!(event, Owned::MassCanceled(_));
    let swept: Vec<_> = events.iter().filter(swept).copied().collect();
    assert_eq!(swept, [mass(1, ALL, 1), mass(2, ALL, 2)]);
    assert_eq!(ended(&events), [(TWO, stop), (ONE, 4), (TWO, 2)]);
    assert!(!events.iter().any(|event| matches!(event, Owned::Triggered(_))));
    venue.check_replay();
    check_empty(&venue);
}

/// In the end there is a bound of their own for them, and who comes up against it is not killed.
#[test]
fn so_many_kills_wait_and_no_more() {
    let mut venue = world(Limits { accounts: URGENT_SWEEPS_MAX + 10, ..steps(1) });
    for number in 4..URGENT_SWEEPS_MAX + 10 {
        let name = Name::new(&format!("account {number}")).unwrap();
        venue.must_quickly(&CreateAccount { name, ..Default::default() });
    }
    for price in [8, 9] {
        place(&mut venue, &limit(by(ANN), ONE, Side::Buy, (price, 1)));
    }
    venue.must(&kill(ANN, 1));
    assert!(venue.core.has_pending(ONE), "one step ends one of the two");
    let kills = u64::from(URGENT_SWEEPS_MAX);
    for account in 2..=kills {
        venue.must_quickly(&kill(account, 1));
    }
    let full = Reject { reason: Why::CapacityReached, detail: number::PENDING_WORK };
    assert_eq!(venue.apply(&kill(kills + 1, 1)), Err(full));
    let is_killed =
        |venue: &Venue, account: u64| venue.core.account(AccountId(account as u32)).unwrap().killed;
    assert!(is_killed(&venue, kills) && !is_killed(&venue, kills + 1));
    assert_eq!(venue.must(&kill(kills, 1)), [mass(kills as u32, ALL, 0)], "it adds nothing");
    venue.must(&RunPending::default());
    venue.must(&kill(kills + 1, 1));
    assert!(is_killed(&venue, kills + 1));
}

#[test]
fn only_an_admin_throws_it_and_from_either_lane() {
    let mut venue = world(steps(256));
    for (name, lane) in [("fast", Lane::Hot), ("slow", Lane::Cold)] {
        let admin = venue.logon(name, Role::Admin, lane, KeyId(0));
        let command = venue.header(admin, KeyId(0));
        venue.must(&KillAccount { command, ..kill(ANN, 1) });
        let command = venue.header(admin, KeyId(ANN));
        let verdict = reason(&mut venue, &KillAccount { command, ..kill(ANN, 1) });
        assert_eq!(verdict, Why::RoleNotPermitted);
    }
    let others = [
        venue.logon("trader", Role::Trader, Lane::Hot, KeyId(ANN)),
        venue.logon("reader", Role::ReadOnly, Lane::Cold, KeyId(ANN)),
        venue.logon("adapter", Role::Adapter, Lane::Hot, KeyId(0)),
    ];
    for session in others {
        let command = venue.header(session, venue.core.session(session).unwrap().key_id);
        let verdict = reason(&mut venue, &KillAccount { command, ..kill(ANN, 1) });
        assert_eq!(verdict, Why::RoleNotPermitted);
    }
}
