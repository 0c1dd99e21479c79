//! Runs worth keeping: what random steps once found, shrunk, and what they reach too rarely.

use crate::steps::{Step, Wish};
use crate::world::{World, limits};
use touchline_protocol::message::command::*;
use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::*;

/// A GTC order on the first symbol.
fn gtc(who: usize, buy: bool, price: i64, lots: i64) -> Wish {
    Wish { who, symbol: 0, buy, kind: 1, slices: 0, stop: 1, price, lots, name: 0, mode: 0 }
}

/// The same position and time for an order and its continuations: they are one aggregate trade per
/// price, and it takes two of them.
#[test]
fn continuations_keep_their_place_and_their_reply() {
    let mut world = World::new(1);
    let resting = Step::New(gtc(0, false, 3, 1));
    for _ in 0..5 {
        world.step(&resting);
    }
    world.step(&Step::New(Wish { name: 1, ..gtc(1, true, 4, 6) }));
    assert_eq!(world.venue.core.counts().pending_work, 1);
    assert!(world.venue.core.has_pending(SymbolId(0)));
    world.step(&Step::Hasty(Box::new(resting)));
    let below = Limits { open_orders: 3, ..limits() };
    let refused = world.send(&SetLimits { limits: below, ..Default::default() });
    assert!(refused.is_err());
    world.step(&Step::RunPending);
    assert_eq!(world.venue.core.counts().pending_work, 1);
    world.step(&Step::RunPending);
    let order = world.venue.core.open_order(SymbolId(0), OrderId(6)).unwrap();
    assert_eq!(order.remaining, Qty(7_654_321));
    assert_eq!(order.client_order_id, ClientOrderId::new("a").unwrap());
    let counters = world.venue.core.symbol(SymbolId(0)).unwrap().counters;
    assert_eq!((counters.trade, counters.aggregate_trade), (TradeId(5), AggregateTradeId(1)));
    world.drain().venue.check_replay();
}
