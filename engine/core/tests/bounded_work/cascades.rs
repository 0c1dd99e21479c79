//! Ten thousand stops that one trade sets off, at once or one by one.

use crate::orders::{limit, limits, list, market, stop, stop_limit, trade_at, with_name, world};
use crate::venue::{Owned, Venue, WHOLE};
use crate::work::{Situation, Work, same_for_every, survives};
use touchline_protocol::message::command::NewOrder;
use touchline_protocol::message::enums::{OrderType, Side};

/// How the stops depend on each other.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// All wait at one price: the first trade fires them all.
    AtOnce,
    /// Each one's trade fires the next one.
    Chain,
    /// As a chain, but buys and sells in turn: each drives the price to where the other side waits.
    Alternating,
    /// Each one's trade fires a hundred at the next price, of which the others find nothing new to fire.
    Waves,
    /// As that, each stop being a leg of a list, whose other leg goes first.
    Lists,
}

const SHAPES: [Shape; 5] =
    [Shape::AtOnce, Shape::Chain, Shape::Alternating, Shape::Waves, Shape::Lists];

/// The trade that sets off the cascade is at this price.
const TOP: i64 = 20_000;

impl Shape {
    /// Stop number `n`, and the order that it trades with.
    fn pair(self, n: i64) -> [NewOrder; 2] {
        let key = 2 + n as u64 % 2;
        let bid = |price| limit(4, Side::Buy, price, 1);
        let sell = |at| stop(key, OrderType::StopLoss, Side::Sell, at);
        match self {
            Self::AtOnce => [sell(TOP), bid(TOP - 1 - n % 50)],
            Self::Chain => [sell(TOP - n), bid(TOP - 1 - n)],
            Self::Waves | Self::Lists => [sell(TOP - n / 100), bid(TOP - 1 - n / 100)],
            Self::Alternating => {
                let depth = n / 2;
                if n % 2 == 0 {
                    let at = (TOP - depth, TOP + 20_000);
                    let buy = stop_limit(key, OrderType::TakeProfitLimit, Side::Buy, at);
                    [buy, limit(4, Side::Sell, TOP + 1 + depth, 1)]
                } else {
                    let sell = stop(key, OrderType::TakeProfit, Side::Sell, TOP + 1 + depth);
                    [sell, bid(TOP - 1 - depth)]
                }
            }
        }
    }

    /// So many stops and their other sides, and the bid that the first trade hits.
    fn prepare(self, max_steps: u32, stops: i64) -> Venue {
        let mut venue = world(2, limits(max_steps, 4 * stops));
        if matches!(self, Self::Lists) {
            trade_at(&mut venue, TOP + 1);
        }
        venue.must_quickly(&limit(4, Side::Buy, TOP, 1));
        for n in 0..stops {
            let [stop, other] = self.pair(n);
            if matches!(self, Self::Lists) {
                let (key, at) = (stop.command.key_id.0, stop.stop_price / WHOLE);
                venue.must_quickly(&list(key, Side::Sell, TOP + 2 + n, at));
            } else {
                venue.must_quickly(&with_name(stop, &format!("stop {n}")));
            }
            venue.must_quickly(&other);
        }
        venue
    }
}

/// Every stop has run, once, in the order of what fired it: here that of the placements.
fn check_cascade(shape: Shape, work: &Work, stops: u64) {
    let ran: Vec<u64> = work
        .story
        .iter()
        .filter_map(|event| match event {
            Owned::Triggered(event) => Some(event.order_id.0),
            _ => None,
        })
        .collect();
    // Stops and their other sides took turns; a list is two orders, the stop first.
    let [first, distance] = if matches!(shape, Shape::Lists) { [4, 3] } else { [2, 2] };
    assert_eq!(ran, (0..stops).map(|n| first + distance * n).collect::<Vec<_>>(), "{shape:?}");
    assert_eq!(work.trades().count() as u64, stops + 1, "{shape:?}");
    assert_eq!(work.venue.core.counts().open_orders, 0, "{shape:?}");
}

#[test]
fn ten_thousand_stops_survive_crashes() {
    for shape in SHAPES {
        let prepare = |max_steps| shape.prepare(max_steps, 10_000);
        let situation = Situation::new(&prepare, &market(1, Side::Sell, 1));
        let work = survives(&situation, 64, &[1, 470]);
        check_cascade(shape, &work, 10_000);
        assert!(work.transactions >= 10_000 * 4 / 64, "{} transactions", work.transactions);
    }
}

#[test]
fn a_cascade_is_the_same_however_it_is_divided() {
    for shape in SHAPES {
        let prepare = |max_steps| shape.prepare(max_steps, 1_000);
        let situation = Situation::new(&prepare, &market(1, Side::Sell, 1));
        let work = same_for_every(&situation, &[1, 2, 3, 7, 64, 256]);
        check_cascade(shape, &work, 1_000);
    }
}
