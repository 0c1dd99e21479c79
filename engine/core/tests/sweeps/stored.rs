//! A snapshot in the middle of a sweep: the venue that is read from it goes on at the same place. How far
//! a sweep has come is no part of the state hash, so it is the events that show it.

use crate::venue::Venue;
use crate::world::*;
use std::convert::Infallible;
use touchline_core::Core;
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::Side;

/// Most orders that a transaction passes over because the sweep is not about them.
const PASSED: u32 = 1_024;

/// Orders that the sweep ends: more than a transaction may.
const SWEPT: u32 = 20;

/// The core, written and read.
fn again(core: &Core) -> Core {
    let mut bytes = Vec::new();
    let written: Result<u64, Infallible> = core.write_snapshot(&mut |portion| {
        bytes.extend_from_slice(portion);
        Ok(())
    });
    assert_eq!(written, Ok(core.state_hash()));
    let mut rest = &bytes[..];
    let mut fill = |into: &mut [u8]| -> Result<(), Infallible> {
        let (taken, left) = rest.split_at(into.len());
        into.copy_from_slice(taken);
        rest = left;
        Ok(())
    };
    let (read, state_hash) = Core::read_snapshot(&mut fill, 5).unwrap();
    assert_eq!(state_hash, core.state_hash());
    read
}

/// Orders of Ann's on both symbols: so many of the other one in front of every few that are swept.
fn crowd(others: u32) -> Venue {
    let limits = Limits { open_orders: 30_000, price_levels: 2_000, ..steps(8) };
    let mut venue = world(limits);
    for order in 0..SWEPT {
        if order % 10 == 0 {
            for other in 0..others {
                let price = 10 + i64::from(other % 50);
                venue.must_quickly(&limit(by(ANN), ONE, Side::Buy, (price, 1)));
            }
        }
        venue.must_quickly(&limit(by(ANN), TWO, Side::Buy, (10 + i64::from(order), 1)));
    }
    venue
}

#[test]
fn a_sweep_that_a_snapshot_is_taken_in_goes_on_where_it_was() {
    for others in [0, 3, PASSED - 1, PASSED, 2 * PASSED + 500] {
        let mut venue = crowd(others);
        let mut events = venue.must_quickly(&mass_cancel(by(ANN), TWO, 2));
        let (mut found, mut transactions) = (ended(&events).len(), 1);
        while venue.core.pending_head().is_some() {
            venue.core = again(&venue.core);
            events = venue.must_quickly(&RunPending::default());
            found += ended(&events).len();
            transactions += 1;
            assert!(transactions < 100, "the sweep begins anew each time");
        }
        assert_eq!(found, SWEPT as usize);
        // As a venue has decided it that was never written: where each transaction ends, too.
        venue.check_replay();
    }
}
