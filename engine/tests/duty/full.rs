//! A live window that is full, because the disk does not keep up: what nobody sends again is done when there
//! is room.

use super::client::{Client, limit};
use super::venue::Venue;
use crate::duty_bench::WINDOW_BYTES;
use crate::patience::eventually;
use touchline_protocol::message::command::NewOrder;
use touchline_protocol::message::enums::{Side, TimeInForce};
use touchline_protocol::units::SymbolId;

/// Lets a client send what leaves nothing behind until the log has no room for more.
fn fill(venue: &mut Venue, client: &mut Client) {
    let fleeting =
        || NewOrder { time_in_force: TimeInForce::Ioc.to_wire(), ..limit(0, Side::Buy, 1, 1) };
    let room = venue.control.appended().0 + WINDOW_BYTES;
    while venue.control.appended().0 < room {
        assert!(venue.control.is_running(), "{:?}", venue.control.failure());
        while client.try_send(fleeting()) {}
        if venue.duty.turn() == 0 {
            return;
        }
        client.read();
    }
    panic!("more than the window is taken, though nothing of it is written");
}

fn open_orders(venue: &Venue) -> usize {
    venue.duty.core().open_orders(SymbolId(0), Side::Sell).count()
}

#[test]
fn who_leaves_while_the_log_is_full_leaves_no_orders_in_the_end() {
    let mut venue = Venue::new("", "");
    let mut leaving = venue.trader_that_leaves_nothing("one", 1);
    let mut other = venue.trader("two", 2);
    leaving.send(limit(0, Side::Sell, 100, 1));
    venue.settle();
    venue.duty.wait_durable().unwrap();
    venue.disk.hold_up(true);
    fill(&mut venue, &mut other);
    venue.disconnect(&leaving);
    venue.duty.turn();
    assert_eq!(venue.closed().len(), 1, "its connection ends at once");
    assert_eq!(open_orders(&venue), 1, "there is no room to log that");
    venue.disk.hold_up(false);
    assert!(eventually(|| {
        venue.duty.turn();
        other.read();
        open_orders(&venue) == 0
    }));
    let (session, _) = leaving.identity();
    assert!(!venue.duty.core().session(session).unwrap().connected);
}
