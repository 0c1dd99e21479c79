//! The book alone against a naive one: plain sorted maps of queues, written without a thought for
//! speed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use touchline_core::book::{
    BookCapacity, BookError, Canceled, Coming, Fill, Handle, NewBookOrder, OrderBook, Placed,
    Reduced, Sink,
};
use touchline_protocol::message::enums::{Side, TimeInForce};
use touchline_protocol::units::{OrderId, Price, Qty};

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

#[derive(Clone, Default)]
struct NaiveBook {
    bids: BTreeMap<i64, VecDeque<Resting>>,
    asks: BTreeMap<i64, VecDeque<Resting>>,
    orders_max: usize,
    levels_max: usize,
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
        let full = self.orders() >= self.orders_max || levels >= self.levels_max && !has_level;
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
    /// Likewise.
    ReduceAt(u64, u64, i64),
    /// An order and the place of another, and what comes in its stead.
    Replace(u64, u64, NewBookOrder),
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
    let order = (0..60u64, 0..4u32, sides, times, prices(), quantities())
        .prop_map(|(id, owner, side, time_in_force, price, quantity)| NewBookOrder {
            id: OrderId(id),
            owner,
            side,
            time_in_force,
            price: Price(price),
            quantity: Qty(quantity),
        })
        .boxed();
    // Mostly the order's own place.
    let place_of = (0..60u64, 0..60u64, 0..4u32)
        .prop_map(|(id, other, own)| (id, if own > 0 { id } else { other }));
    prop_oneof![
        12 => order.clone().prop_map(Step::Place),
        4 => (0..60u64).prop_map(Step::Cancel),
        2 => place_of.clone().prop_map(|(id, other)| Step::CancelAt(id, other)),
        2 => (0..60u64, quantities()).prop_map(|(id, remaining)| Step::Reduce(id, remaining)),
        1 => (place_of.clone(), quantities())
            .prop_map(|((id, other), remaining)| Step::ReduceAt(id, other, remaining)),
        3 => (place_of, order, any::<bool>()).prop_map(|((id, other), order, same)| {
            let new = if same { OrderId(id) } else { order.id };
            Step::Replace(id, other, NewBookOrder { id: new, ..order })
        }),
    ]
}

/// Both books, and the places that orders were given last.
struct Pair {
    book: OrderBook,
    naive: NaiveBook,
    handles: BTreeMap<u64, Handle>,
    finds_by_id: bool,
}

impl Pair {
    fn new(tick: i64, (orders, levels): (u32, u32), finds_by_id: bool) -> Self {
        let tick = Price(tick);
        let book = OrderBook::new(&BookCapacity { orders, levels, tick, finds_by_id });
        let (orders_max, levels_max) = (orders as usize, levels as usize);
        let naive = NaiveBook { orders_max, levels_max, ..Default::default() };
        Self { book, naive, handles: BTreeMap::new(), finds_by_id }
    }

    /// Whether a request names the order: by its number where that is looked up, else by its place.
    fn is_named(&self, id: u64, place_of: u64) -> bool {
        let is_there = self.handles.get(&id) == self.handles.get(&place_of);
        self.naive.locate(id).is_some() && (self.finds_by_id || is_there)
    }

    fn note(&mut self, order: &NewBookOrder, placed: Placed) -> Option<i64> {
        match placed {
            Placed::Filled => None,
            Placed::Rests { remaining, handle } => {
                assert_eq!(order.time_in_force, TimeInForce::Gtc);
                assert_eq!(Handle::from_number(handle.number()), handle);
                let view = self.book.orders(order.side).find(|view| view.id == order.id).unwrap();
                assert_eq!(view.handle, handle);
                self.handles.insert(order.id.0, handle);
                Some(remaining.0)
            }
            Placed::Expired { remaining } => {
                assert_ne!(order.time_in_force, TimeInForce::Gtc);
                Some(remaining.0)
            }
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Place(order) => {
                if !self.finds_by_id && self.naive.locate(order.id.0).is_some() {
                    return;
                }
                let mut reports = Reports::default();
                let placed = self.book.place(&order, &mut reports);
                let open = placed.map(|placed| self.note(&order, placed));
                assert_eq!(open.map(|open| (open, reports.0)), self.naive.place(&order));
            }
            Step::Cancel(id) => {
                let expected = if self.finds_by_id { self.naive.cancel(id) } else { None };
                check_cancel(self.book.cancel(OrderId(id)), expected, id);
            }
            Step::CancelAt(id, other) => {
                let Some(&handle) = self.handles.get(&other) else { return };
                let expected = if self.is_named(id, other) { self.naive.cancel(id) } else { None };
                check_cancel(self.book.cancel_at(handle, OrderId(id)), expected, id);
            }
            Step::Reduce(id, remaining) => {
                let reduced = self.book.reduce(OrderId(id), Qty(remaining));
                self.check_reduce(reduced, self.finds_by_id, id, remaining);
            }
            Step::ReduceAt(id, other, remaining) => {
                let Some(&handle) = self.handles.get(&other) else { return };
                let reduced = self.book.reduce_at(handle, OrderId(id), Qty(remaining));
                self.check_reduce(reduced, self.is_named(id, other), id, remaining);
            }
            Step::Replace(id, other, order) => self.replace(id, other, &order),
        }
    }

    fn check_reduce(
        &mut self,
        reduced: Result<Reduced, BookError>,
        is_named: bool,
        id: u64,
        remaining: i64,
    ) {
        let Some((side, price)) = self.naive.locate(id).filter(|_| is_named) else {
            assert_eq!(reduced, Err(BookError::UnknownOrder(OrderId(id))));
            return;
        };
        let queue = self.naive.side(side).get_mut(&price).unwrap();
        let order = queue.iter_mut().find(|order| order.id == id).unwrap();
        let (present, asked) = (Qty(order.remaining), Qty(remaining));
        let expected = if remaining <= 0 {
            Err(BookError::InvalidQuantity(asked))
        } else if asked >= present {
            Err(BookError::NotReduced { present, asked })
        } else {
            order.remaining = remaining;
            Ok(Reduced { side, price: Price(price), remaining: asked })
        };
        assert_eq!(reduced, expected);
    }

    /// A cancel and a placement, of which both happen or neither.
    fn replace(&mut self, id: u64, other: u64, order: &NewBookOrder) {
        let is_taken = order.id.0 != id && self.naive.locate(order.id.0).is_some();
        if !self.finds_by_id && is_taken {
            return;
        }
        let Some(&handle) = self.handles.get(&other) else { return };
        let mut after = self.naive.clone();
        let expected = if !self.is_named(id, other) {
            Err(BookError::UnknownOrder(OrderId(id)))
        } else if order.quantity.0 <= 0 {
            Err(BookError::InvalidQuantity(order.quantity))
        } else {
            let canceled = after.cancel(id).unwrap();
            after.place(order).map(|placed| (canceled, placed))
        };
        let mut reports = Reports::default();
        let found = self.book.replace((handle, OrderId(id)), order, &mut reports);
        let found = found.map(|(canceled, placed)| {
            let Canceled { side, price, remaining } = canceled;
            ((side, price.0, remaining.0), (self.note(order, placed), reports.0))
        });
        assert_eq!(found, expected);
        if expected.is_ok() {
            self.naive = after;
        }
    }
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
    fn agrees_with_a_naive_book(
        steps in prop::collection::vec(steps(), 1..120),
        tick in prop::sample::select(vec![1, 1, 0, 7, 250_000, -5, i64::MAX]),
        capacity in prop::sample::select(vec![(24, 12), (24, 12), (9, 3), (4, 4)]),
        finds_by_id in prop::bool::weighted(0.7),
    ) {
        let mut pair = Pair::new(tick, capacity, finds_by_id);
        for step in steps {
            pair.step(step);
            check_equal(&pair.book, &pair.naive);
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

/// Looking ahead changes nothing, whatever it is told is coming.
#[test]
fn looking_ahead_is_not_seen() {
    const ORDERS: u32 = 33_000;
    const _: () = assert!(ORDERS > OrderBook::LOOK_AHEAD_FROM, "nothing would be looked up");
    for finds_by_id in [true, false] {
        let (levels, tick) = (ORDERS, Price(2));
        let mut book = OrderBook::new(&BookCapacity { orders: ORDERS, levels, tick, finds_by_id });
        let coming = |n: u32| Coming {
            is_new: n.is_multiple_of(3),
            id: OrderId(u64::from(n)),
            handle: Handle::from_number(n.wrapping_mul(0x9e37_79b9)),
            side: if n.is_multiple_of(2) { Side::Buy } else { Side::Sell },
            price: Price(i64::from(n % 1000)),
        };
        for n in 1..=ORDERS {
            if n.is_multiple_of(8_000) {
                book.look_ahead((0..200).map(coming));
            }
            let order = NewBookOrder {
                id: OrderId(u64::from(n)),
                owner: 0,
                side: Side::Buy,
                time_in_force: TimeInForce::Gtc,
                price: Price(i64::from(n % 1000)),
                quantity: Qty(1),
            };
            book.place(&order, &mut Reports::default()).unwrap();
        }
        let before: Vec<_> = book.orders(Side::Buy).collect();
        let mut taken = 0;
        // An iterator that can be gone through once.
        book.look_ahead((0..100_000).map(coming).inspect(|_| taken += 1));
        assert_eq!(taken, 100_000);
        book.look_ahead((u32::MAX - 1_000..u32::MAX).map(coming));
        assert!(book.orders(Side::Buy).eq(before));
        book.validate().unwrap();
    }
}

#[test]
fn below_so_many_orders_it_does_not_look_ahead() {
    let mut book = OrderBook::with_capacity(OrderBook::LOOK_AHEAD_FROM, 1);
    for n in 1..=OrderBook::LOOK_AHEAD_FROM {
        let coming = Coming {
            is_new: false,
            id: OrderId(1),
            handle: Handle::from_number(0),
            side: Side::Buy,
            price: Price(0),
        };
        let mut taken = 0;
        book.look_ahead([coming].into_iter().inspect(|_| taken += 1));
        assert_eq!(taken, 0, "with {} orders", book.len());
        let order = NewBookOrder {
            id: OrderId(n.into()),
            owner: 0,
            side: Side::Buy,
            time_in_force: TimeInForce::Gtc,
            price: Price(1),
            quantity: Qty(1),
        };
        book.place(&order, &mut Reports::default()).unwrap();
    }
}
