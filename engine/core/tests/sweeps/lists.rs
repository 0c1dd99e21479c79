//! Order lists among what is swept: they go as a pair, and count as two orders and a list.

use crate::venue::{Owned, WHOLE};
use crate::world::*;
use touchline_protocol::message::enums::{ListOrderStatus, ListStatusType, OrderStatus, Side};
use touchline_protocol::message::event::OrderListChanged;
use touchline_protocol::units::*;

#[test]
fn a_list_goes_when_the_first_of_its_orders_comes_up() {
    for (by_book, expected) in [
        (false, [(2, 4), (3, 4), (4, 4), (5, 4)].to_vec()),
        // The ask at 12 is the list's limit leg; the bid is last of the book, before the other stop.
        (true, [(3, 5), (4, 5), (2, 5), (5, 5)].to_vec()),
    ] {
        let mut venue = world(steps(256));
        trade_at(&mut venue, TWO, 10);
        // Numbers 1 and 2 of TWO are Carl's.
        place(&mut venue, &limit(by(ANN), TWO, Side::Buy, (5, 1)));
        let events = venue.must(&list(by(ANN), TWO, Side::Sell, (12, 8)));
        let Some(Owned::ListChanged(placed)) = events.last() else { panic!("{events:?}") };
        place(&mut venue, &stop_limit(by(ANN), TWO, Side::Buy, (20, 21)));
        let update = venue.core.symbol(TWO).unwrap().counters.book_update;
        let events = if by_book {
            venue.must(&expire_all(TWO))
        } else {
            venue.must(&cancel_all(by(ANN), TWO))
        };
        let found: Vec<_> =
            canceled(&events).iter().map(|event| (event.order_id.0 - 1, event.status)).collect();
        assert_eq!(found, expected);
        assert!(canceled(&events).iter().all(|event| event.book_update_id.0 == update.0 + 1));
        let behind = events.iter().position(|event| matches!(event, Owned::ListChanged(_)));
        let Owned::Canceled(limit_leg) = events[behind.unwrap() - 1] else { panic!("{events:?}") };
        assert_eq!(limit_leg.order_id, placed.limit_order_id);
        assert_eq!((limit_leg.order_list_id, limit_leg.released), (OrderListId(0), WHOLE));
        let ended = OrderListChanged {
            list_status_type: ListStatusType::AllDone.to_wire(),
            list_order_status: ListOrderStatus::AllDone.to_wire(),
            book_update_id: BookUpdateId(update.0 + 1),
            order_count_0: 0,
            order_count_1: 0,
            ..*placed
        };
        assert_eq!(events[behind.unwrap()], Owned::ListChanged(ended));
        let account = if by_book { u32::MAX } else { 1 };
        assert_eq!(*events.last().unwrap(), mass_with_lists(account, TWO, 4, 1));
        check_empty(&venue);
        venue.check_replay();
    }
}

#[test]
fn a_killed_accounts_triggered_leg_takes_the_other_with_it() {
    let mut venue = world(steps(1));
    trade_at(&mut venue, ONE, 10);
    venue.must(&list(by(ANN), ONE, Side::Sell, (12, 8)));
    let other = place(&mut venue, &limit(by(ANN), TWO, Side::Buy, (3, 1)));
    trade_at(&mut venue, ONE, 8);
    assert!(venue.core.has_pending(ONE));
    venue.must(&kill(ANN, 1));
    let events = venue.drain();
    let found: Vec<_> =
        canceled(&events).iter().map(|event| (event.order_id.0, event.status)).collect();
    assert_eq!(found, [3, 4, other.1].map(|order| (order, OrderStatus::Canceled.to_wire())));
    assert!(events.contains(&mass_with_lists(1, ALL, 3, 1)));
    check_empty(&venue);
    venue.check_replay();
}
