//! The book alone against a naive one: plain sorted maps of queues, written without a thought for
//! speed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use touchline_core::book::{
    BookError, Canceled, Fill, NewBookOrder, OrderBook, Placed, Reduced, Sink,
};
use touchline_protocol::message::enums::{Side, TimeInForce};
use touchline_protocol::units::{OrderId, Price, Qty};

const ORDERS_MAX: u32 = 24;
const LEVELS_MAX: u32 = 12;

/// What a fill tells, without where the maker lies.
type Report = (OrderId, u32, Price, Qty, Qty);

#[derive(Default)]
struct Reports(Vec<Report>);

impl Sink for Reports {
    fn fill(&mut self, fill: &Fill) {
        self.0.push((
            fill.maker_id,
            fill.maker_owner,
            fill.price,
            fill.quantity,
            fill.maker_remaining,
        ));
    }
}

#[derive(Clone)]
struct Resting {
    id: u64,
    owner: u32,
    remaining: i64,
}

#[derive(Default)]
struct NaiveBook {
    bids: BTreeMap<i64, VecDeque<Resting>>,
    asks: BTreeMap<i64, VecDeque<Resting>>,
}

impl NaiveBook {
    fn side(&mut self, side: Side) -> &mut BTreeMap<i64, VecDeque<Resting>> {
        if side == Side::Buy { &mut self.bids } else { &mut self.asks }
    }

    fn orders(&self) -> usize {
        self.bids.values().chain(self.asks.values()).map(VecDeque::len).sum()
    }

    fn locate(&self, id: u64) -> Option<(Side, i64)> {
        let of = |side, map: &BTreeMap<i64, VecDeque<Resting>>| {
            map.iter()
                .find(|(_, queue)| queue.iter().any(|order| order.id == id))
                .map(|(price, _)| (side, *price))
        };
        of(Side::Buy, &self.bids).or_else(|| of(Side::Sell, &self.asks))
    }

    /// Prices that an order would trade at, best first.
    fn reachable(&self, side: Side, limit: i64) -> Vec<i64> {
        match side {
            Side::Buy => self.asks.keys().copied().filter(|&price| price <= limit).collect(),
            Side::Sell => self.bids.keys().rev().copied().filter(|&price| price >= limit).collect(),
        }
    }

    fn place(&mut self, order: &NewBookOrder) -> Result<(Option<i64>, Vec<Report>), BookError> {
        let NewBookOrder { id, owner, side, time_in_force, price, quantity } = *order;
        if quantity.0 <= 0 {
            return Err(BookError::InvalidQuantity(quantity));
        }
        if self.locate(id.0).is_some() {
            return Err(BookError::DuplicateId(id));
        }
        let prices = self.reachable(side, price.0);
        let levels = self.bids.len() + self.asks.len();
        let has_level = self.side(side).contains_key(&price.0);
        let full =
            self.orders() >= ORDERS_MAX as usize || levels >= LEVELS_MAX as usize && !has_level;
        if time_in_force == TimeInForce::Gtc && prices.is_empty() && full {
            return Err(BookError::Full);
        }
        let other = self.side(side.opposite());
        let available: i128 = prices
            .iter()
            .flat_map(|price| &other[price])
            .map(|order| i128::from(order.remaining))
            .sum();
        let mut reports = Vec::new();
        let mut open = quantity.0;
        if time_in_force == TimeInForce::Fok && available < i128::from(open) {
            return Ok((Some(open), reports));
        }
        for price in prices {
            let queue = other.get_mut(&price).unwrap();
            while open > 0 && !queue.is_empty() {
                let maker = &mut queue[0];
                let traded = open.min(maker.remaining);
                open -= traded;
                maker.remaining -= traded;
                let (id, left) = (OrderId(maker.id), Qty(maker.remaining));
                reports.push((id, maker.owner, Price(price), Qty(traded), left));
                if maker.remaining == 0 {
                    queue.pop_front();
                }
            }
            if queue.is_empty() {
                other.remove(&price);
            }
        }
        if open > 0 && time_in_force == TimeInForce::Gtc {
            let resting = Resting { id: id.0, owner, remaining: open };
            self.side(side).entry(price.0).or_default().push_back(resting);
        }
        Ok(((open > 0).then_some(open), reports))
    }

    fn cancel(&mut self, id: u64) -> Option<(Side, i64, i64)> {
        let (side, price) = self.locate(id)?;
        let map = self.side(side);
        let queue = map.get_mut(&price).unwrap();
        let at = queue.iter().position(|order| order.id == id).unwrap();
        let removed = queue.remove(at).unwrap();
        if queue.is_empty() {
            map.remove(&price);
        }
        Some((side, price, removed.remaining))
    }
}

#[derive(Clone, Debug)]
enum Step {
    Place(NewBookOrder),
    Cancel(u64),
    /// Cancel with the place that the order with another number was given.
    CancelAt(u64, u64),
    Reduce(u64, i64),
}

fn prices() -> impl Strategy<Value = i64> {
    prop_oneof![
        10 => 95..105i64,
        2 => (0..20i64).prop_map(|tick| 5_000_000_000 + tick * 250_000),
        1 => any::<i64>(),
        1 => prop::sample::select(vec![i64::MIN, i64::MAX, 0, -1, 1]),
    ]
}

fn quantities() -> impl Strategy<Value = i64> {
    prop_oneof![12 => 1..20i64, 1 => prop::sample::select(vec![0, -5, i64::MIN, i64::MAX])]
}

fn steps() -> impl Strategy<Value = Step> {
    let sides = prop::sample::select(vec![Side::Buy, Side::Sell]);
    let times = prop::sample::select(vec![
        TimeInForce::Gtc,
        TimeInForce::Gtc,
        TimeInForce::Gtc,
        TimeInForce::Ioc,
        TimeInForce::Fok,
    ]);
    let place = (0..60u64, 0..4u32, sides, times, prices(), quantities()).prop_map(
        |(id, owner, side, time_in_force, price, quantity)| {
            Step::Place(NewBookOrder {
                id: OrderId(id),
                owner,
                side,
                time_in_force,
                price: Price(price),
                quantity: Qty(quantity),
            })
        },
    );
    prop_oneof![
        6 => place,
        2 => (0..60u64).prop_map(Step::Cancel),
        1 => (0..60u64, 0..60u64).prop_map(|(id, other)| Step::CancelAt(id, other)),
        1 => (0..60u64, quantities()).prop_map(|(id, remaining)| Step::Reduce(id, remaining)),
    ]
}

fn check_equal(book: &OrderBook, naive: &NaiveBook) {
    book.validate().unwrap();
    for side in [Side::Buy, Side::Sell] {
        let map = if side == Side::Buy { &naive.bids } else { &naive.asks };
        let mut levels: Vec<_> = map.iter().collect();
        if side == Side::Buy {
            levels.reverse();
        }
        let expected: Vec<_> = levels
            .iter()
            .map(|(price, queue)| {
                let total: i128 = queue.iter().map(|order| i128::from(order.remaining)).sum();
                (**price, total.cast_unsigned(), queue.len() as u32)
            })
            .collect();
        let found: Vec<_> =
            book.depth(side).map(|level| (level.price.0, level.quantity, level.orders)).collect();
        assert_eq!(found, expected);
        assert_eq!(book.best(side).map(|price| price.0), expected.first().map(|level| level.0));
        let queue: Vec<_> = levels
            .iter()
            .flat_map(|(_, queue)| {
                queue.iter().map(|order| (order.id, order.owner, order.remaining))
            })
            .collect();
        let found: Vec<_> =
            book.orders(side).map(|order| (order.id.0, order.owner, order.remaining.0)).collect();
        assert_eq!(found, queue, "time priority");
    }
    assert_eq!(book.len() as usize, naive.orders());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn agrees_with_a_naive_book(steps in prop::collection::vec(steps(), 1..120)) {
        let mut book = OrderBook::with_capacity(ORDERS_MAX, LEVELS_MAX);
        let mut naive = NaiveBook::default();
        let mut handles = BTreeMap::new();
        for step in steps {
            match step {
                Step::Place(order) => {
                    let mut reports = Reports::default();
                    let placed = book.place(&order, &mut reports);
                    if let Ok(Placed::Rests { handle, .. }) = placed {
                        handles.insert(order.id.0, handle);
                    }
                    let open = placed.map(|placed| match placed {
                        Placed::Filled => None,
                        Placed::Rests { remaining, .. } => {
                            assert_eq!(order.time_in_force, TimeInForce::Gtc);
                            Some(remaining.0)
                        }
                        Placed::Expired { remaining } => {
                            assert_ne!(order.time_in_force, TimeInForce::Gtc);
                            Some(remaining.0)
                        }
                    });
                    prop_assert_eq!(open.map(|open| (open, reports.0)), naive.place(&order));
                }
                Step::Cancel(id) => check_cancel(book.cancel(OrderId(id)), naive.cancel(id), id),
                Step::CancelAt(id, other) => {
                    let Some(&handle) = handles.get(&other) else { continue };
                    check_cancel(book.cancel_at(handle, OrderId(id)), naive.cancel(id), id);
                }
                Step::Reduce(id, remaining) => {
                    let reduced = book.reduce(OrderId(id), Qty(remaining));
                    let Some((side, price)) = naive.locate(id) else {
                        prop_assert_eq!(reduced, Err(BookError::UnknownOrder(OrderId(id))));
                        continue;
                    };
                    let queue = naive.side(side).get_mut(&price).unwrap();
                    let order = queue.iter_mut().find(|order| order.id == id).unwrap();
                    let present = Qty(order.remaining);
                    let asked = Qty(remaining);
                    prop_assert_eq!(reduced, if remaining <= 0 {
                        Err(BookError::InvalidQuantity(asked))
                    } else if asked >= present {
                        Err(BookError::NotReduced { present, asked })
                    } else {
                        order.remaining = remaining;
                        Ok(Reduced { side, price: Price(price), remaining: asked })
                    });
                }
            }
            check_equal(&book, &naive);
        }
    }
}

fn check_cancel(
    canceled: Result<Canceled, BookError>,
    expected: Option<(Side, i64, i64)>,
    id: u64,
) {
    let expected = expected.map(|(side, price, remaining)| Canceled {
        side,
        price: Price(price),
        remaining: Qty(remaining),
    });
    assert_eq!(canceled, expected.ok_or(BookError::UnknownOrder(OrderId(id))));
}

/// Totals of one level beyond what one quantity holds are exact.
#[test]
fn level_totals_do_not_overflow() {
    let mut book = OrderBook::with_capacity(4, 4);
    let mut order = NewBookOrder {
        id: OrderId(1),
        owner: 0,
        side: Side::Sell,
        time_in_force: TimeInForce::Gtc,
        price: Price(5),
        quantity: Qty::MAX,
    };
    for id in 1..=3 {
        order.id = OrderId(id);
        book.place(&order, &mut Reports::default()).unwrap();
    }
    assert_eq!(book.depth(Side::Sell).next().unwrap().quantity, 3 * i64::MAX as u128);
    let buy =
        NewBookOrder { id: OrderId(9), side: Side::Buy, time_in_force: TimeInForce::Fok, ..order };
    let mut reports = Reports::default();
    assert_eq!(book.place(&buy, &mut reports), Ok(Placed::Filled));
    assert_eq!(reports.0, [(OrderId(1), 0, Price(5), Qty::MAX, Qty(0))]);
    book.validate().unwrap();
}
