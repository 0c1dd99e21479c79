//! Sessions that need no acceptance in front of what comes of their orders: over rings of their own and over
//! the ring of all streams the same, and nobody else is told less.

use super::client::{Reply, limit, list};
use super::streams;
use super::unsolicited::{names, send};
use super::venue::Venue;
use touchline_engine::mailbox::{Detail, Wishes};
use touchline_protocol::message::command::{CancelReplace, NewOrder, ReplaceOrder};
use touchline_protocol::message::decode::Event;
use touchline_protocol::message::enums::{Lane, OrderStatus, OrderType, Role, Side, TimeInForce};
use touchline_protocol::message::event::ENVELOPE_TERMINAL;
use touchline_protocol::units::SymbolId;

const WHOLE: i64 = 100_000_000;

fn brief() -> Venue {
    let mut venue = Venue::new("", "");
    venue.wishes = Wishes { detail: Detail::Brief, ..Wishes::default() };
    venue
}

#[test]
fn a_brief_session_is_told_what_comes_of_its_order_and_not_that_it_was_accepted() {
    let mut venue = brief();
    let mut trader = venue.trader("brief", 1);
    let mut maker = venue.trader("maker", 2);
    venue.wishes = Wishes::default();
    let mut wordy = venue.trader("wordy", 1);
    let mut watcher = venue.watcher("watcher", 1);

    let rests = send(&mut venue, &mut trader, limit(0, Side::Buy, 100, 1));
    assert_eq!(names(&rests), "R");
    assert!(rests[0].is_terminal());
    let Event::OrderResult(result) = rests[0].event() else { unreachable!() };
    assert_eq!((result.order_id.0, result.status), (1, OrderStatus::New.to_wire()));
    assert_eq!(names(&watcher.told()), "AR", "who watches the account is told of placements");
    assert_eq!(names(&send(&mut venue, &mut wordy, limit(0, Side::Buy, 90, 1))), "AR");
    assert_eq!(names(&watcher.told()), "AR");

    send(&mut venue, &mut maker, limit(0, Side::Sell, 110, 1));
    assert_eq!(names(&send(&mut venue, &mut trader, limit(0, Side::Buy, 110, 2))), "TR");
    send(&mut venue, &mut maker, limit(0, Side::Sell, 110, 1));
    assert_eq!(names(&trader.told()), "T", "a fill that another caused");
    let stop = NewOrder {
        order_type: OrderType::StopLoss.to_wire(),
        time_in_force: 0,
        stop_price: 120 * WHOLE,
        ..limit(0, Side::Buy, 0, 1)
    };
    assert_eq!(names(&send(&mut venue, &mut trader, stop)), "R");
    let refused = send(&mut venue, &mut trader, limit(0, Side::Buy, 0, 1));
    assert!(refused.len() == 1 && refused[0].reason().is_some());
}

#[test]
fn an_order_in_parts_is_told_each_of_them_and_answered_once() {
    for detail in [Detail::Brief, Detail::Terse] {
        let mut venue = Venue::new("pending_per_turn = 1", "max_steps = 2");
        venue.wishes = Wishes { detail, ..Wishes::default() };
        let mut taker = venue.trader("taker", 1);
        let mut maker = venue.trader("maker", 2);
        for _ in 0..5 {
            send(&mut venue, &mut maker, limit(0, Side::Sell, 100, 1));
        }
        let replies = send(&mut venue, &mut taker, limit(0, Side::Buy, 100, 6));
        assert_eq!(names(&replies), "TT+TT+TR");
        assert_eq!(replies.iter().position(Reply::is_terminal), Some(replies.len() - 1));
        assert!(replies.iter().all(|reply| reply.envelope.sequence.0 == taker.sequence()));
    }
}

#[test]
fn what_does_not_fit_is_missing_in_front_of_a_brief_result_and_told_to_be() {
    /// More fills, of three slots each, than there are slots.
    const MAKERS: i64 = 400;
    let mut venue = brief();
    let mut taker = venue.try_open("taker", (Role::Trader, Lane::Hot, 1), 1024).unwrap();
    let mut maker = venue.trader("maker", 2);
    for _ in 0..MAKERS {
        send(&mut venue, &mut maker, limit(0, Side::Sell, 100, 1));
    }
    let replies = send(&mut venue, &mut taker, limit(0, Side::Buy, 100, MAKERS));
    let [told @ .., notice, result] = &replies[..] else { unreachable!() };
    let parts = names(told);
    assert!(parts.starts_with('T') && parts.chars().all(|part| "T+".contains(part)), "{parts}");
    let Event::Gap(gap) = notice.event() else { panic!("{:?}", notice.event()) };
    let fills = parts.matches('T').count() as i64;
    assert!(fills < MAKERS, "all fit");
    // Behind the last transaction of which all was told.
    let whole = told.iter().rev().find(|reply| matches!(reply.event(), Event::OrderContinues(_)));
    assert_eq!(Some(gap.from), whole.map(|reply| reply.envelope.position));
    let Event::OrderResult(filled) = result.event() else { panic!("{:?}", result.event()) };
    assert_eq!(filled.status, OrderStatus::Filled.to_wire());
    assert!(result.is_terminal() && !notice.is_terminal());
}

/// Each tells numbers that its result alone does not.
#[test]
fn lists_and_replacements_are_told_whole() {
    let replies = [Detail::Whole, Detail::Brief].map(|detail| {
        let mut venue = Venue::new("", "");
        venue.wishes = Wishes { detail, ..Wishes::default() };
        let mut trader = venue.trader("trader", 1);
        let mut maker = venue.trader("maker", 2);
        send(&mut venue, &mut maker, limit(0, Side::Buy, 99, 1));
        send(&mut venue, &mut trader, limit(0, Side::Sell, 99, 1));
        let mut told = vec![names(&send(&mut venue, &mut trader, list()))];
        let rests = send(&mut venue, &mut trader, limit(0, Side::Buy, 50, 2));
        let Some(Event::OrderResult(result)) = rests.last().map(|reply| reply.event()) else {
            panic!("an order without a result")
        };
        let symbol = SymbolId(0);
        let order = result.order_id;
        let replace = ReplaceOrder {
            symbol,
            order_id: order,
            new_price: 51 * WHOLE,
            new_quantity: 2 * WHOLE,
            ..Default::default()
        };
        let before = send(&mut venue, &mut trader, replace).len();
        let again = CancelReplace {
            symbol,
            side: Side::Buy.to_wire(),
            order_type: OrderType::Limit.to_wire(),
            time_in_force: TimeInForce::Gtc.to_wire(),
            price: 52 * WHOLE,
            quantity: WHOLE,
            canceled_order_id: order,
            ..Default::default()
        };
        let after = send(&mut venue, &mut trader, again).len();
        told.push(format!("{before} and {after}"));
        told
    });
    assert_eq!(replies[0][0], "AAL");
    assert_eq!(replies[0], replies[1]);
}

#[test]
fn a_brief_stream_is_told_the_same() {
    let mut venue = brief();
    let mut stream = streams::open(&mut venue, "brief", 1, 0);
    venue.wishes = Wishes::default();
    let mut wordy = streams::open(&mut venue, "wordy", 1, 0);
    let mut told = |venue: &mut Venue, of_brief: bool, order: NewOrder| {
        let sender = if of_brief { &mut stream } else { &mut wordy };
        assert!(sender.send(venue, order));
        venue.settle();
        let read = streams::read(venue);
        let last = read.last().map(|(envelope, _)| envelope.flags & ENVELOPE_TERMINAL);
        assert_eq!(last, Some(ENVELOPE_TERMINAL));
        read.iter().map(|(_, event)| event.event().unwrap().name()).collect::<Vec<_>>()
    };
    let sell = limit(0, Side::Sell, 100, 1);
    assert_eq!(told(&mut venue, true, sell), ["OrderResult"]);
    assert_eq!(told(&mut venue, false, sell), ["OrderAccepted", "OrderResult"]);
    let buy = limit(0, Side::Buy, 100, 1);
    assert_eq!(told(&mut venue, true, buy), ["Trade", "OrderResult"]);
}
