//! The book alone, each command checked against what it should hold.

use crate::shadow::{Open, Shadow};
use crate::{Random, commands};
use touchline_core::book::{BookError, Fill, NewBookOrder, OrderBook, Placed, Sink};
use touchline_protocol::message::enums::{Side, TimeInForce};
use touchline_protocol::units::{OrderId, Price, Qty};

const ORDERS_MAX: u32 = 1_000;
const LEVELS_MAX: u32 = 230;
/// Commands between two looks at the whole book.
const LOOK: u64 = 16_384;

#[derive(Default)]
struct Fills(Vec<(u64, i64, i64)>);

impl Sink for Fills {
    fn fill(&mut self, fill: &Fill) {
        self.0.push((fill.maker_id.0, fill.price.0, fill.quantity.0));
    }
}

struct Run {
    book: OrderBook,
    shadow: Shadow,
    random: Random,
    next: u64,
    /// The price around which orders come; it wanders.
    middle: i64,
    fills: Fills,
    /// How often no order and how often no level was free.
    full: [u64; 2],
}

impl Run {
    fn new() -> Self {
        Self {
            book: OrderBook::with_capacity(ORDERS_MAX, LEVELS_MAX),
            shadow: Shadow::default(),
            random: Random::new(),
            next: 0,
            middle: 1_000_000,
            fills: Fills::default(),
            full: [0; 2],
        }
    }

    /// Mostly within a hundred ticks of the middle; now and then far away, up to the ends of prices.
    fn price(&mut self, side: Side) -> i64 {
        let away = match self.random.below(64) {
            0 => self.random.below(1 << 20) as i64,
            1 => {
                return if side == Side::Buy { i64::MIN } else { i64::MAX }
                    / (1 + self.random.below(3) as i64);
            }
            _ => self.random.below(100) as i64,
        };
        if side == Side::Buy { self.middle - away } else { self.middle + 1 + away }
    }

    fn side(&mut self) -> Side {
        if self.random.below(2) == 0 { Side::Buy } else { Side::Sell }
    }

    fn step(&mut self) {
        // The middle jumps by half now and then, as prices do in a crash, and wanders otherwise.
        match self.random.below(100_000) {
            0 => self.middle = self.middle / 2 + self.random.below(1_000_000) as i64,
            n if n < 20_000 => self.middle += self.random.below(21) as i64 - 10,
            _ => {}
        }
        // The book fills up and empties in turns.
        let adds = if self.next >> 13 & 1 == 0 { 70 } else { 35 };
        match self.random.below(100) {
            add if add < adds => self.add(),
            0..93 => self.cancel(),
            93..97 => self.reduce(),
            _ => self.sweep(),
        }
        for side in [Side::Buy, Side::Sell] {
            let best = self.book.best(side).map(|price| price.0);
            assert_eq!(best, self.shadow.best(side), "best price of {side:?}");
        }
        assert_eq!(self.book.len() as usize, self.shadow.len());
    }

    fn place(&mut self, side: Side, time_in_force: TimeInForce, price: i64, quantity: i64) {
        self.next += 1;
        let order = NewBookOrder {
            id: OrderId(self.next),
            owner: (self.next % 7) as u32,
            side,
            time_in_force,
            price: Price(price),
            quantity: Qty(quantity),
        };
        let crosses = self.shadow.best(side.opposite()).is_some_and(|best| match side {
            Side::Buy => best <= price,
            Side::Sell => best >= price,
        });
        let no_order = self.shadow.len() >= ORDERS_MAX as usize;
        let no_level =
            self.shadow.level_count() >= LEVELS_MAX as usize && !self.shadow.has_level(side, price);
        let is_full = !crosses && (no_order || no_level);
        self.fills.0.clear();
        let placed = self.book.place(&order, &mut self.fills);
        if time_in_force == TimeInForce::Gtc && is_full {
            assert_eq!(placed, Err(BookError::Full));
            self.full[usize::from(no_level)] += 1;
            return;
        }
        let left = self.take(side, price, quantity);
        match placed.expect("nothing is wrong with it") {
            Placed::Filled => assert_eq!(left, 0),
            Placed::Expired { remaining } => assert_eq!(remaining.0, left),
            Placed::Rests { remaining, .. } => {
                assert_eq!(remaining.0, left);
                self.shadow.add(self.next, Open { side, price, quantity: left });
            }
        }
    }

    /// Holds the fills against the shadow, first in first out; gives what is left of the aggressor.
    fn take(&mut self, side: Side, limit: i64, quantity: i64) -> i64 {
        let mut left = quantity;
        for &(maker, price, filled) in &self.fills.0 {
            assert_eq!(Some(maker), self.shadow.first(side.opposite()), "first in, first out");
            let open = self.shadow.get(maker).expect("it is open");
            assert_eq!((price, filled), (open.price, open.quantity.min(left)));
            left -= filled;
            if filled == open.quantity {
                self.shadow.remove(maker);
            } else {
                self.shadow.set_quantity(maker, open.quantity - filled);
            }
        }
        let next = self.shadow.best(side.opposite());
        let reaches =
            next.is_some_and(|next| if side == Side::Buy { next <= limit } else { next >= limit });
        assert!(left == 0 || !reaches, "it goes on as long as it reaches somebody");
        left
    }

    fn add(&mut self) {
        let side = self.side();
        let price = self.price(side);
        let quantity = 1 + self.random.below(50) as i64;
        self.place(side, TimeInForce::Gtc, price, quantity);
    }

    /// Takes a few orders' worth, at any price.
    fn sweep(&mut self) {
        let side = self.side();
        let limit = if side == Side::Buy { i64::MAX } else { i64::MIN };
        let quantity = 1 + self.random.below(80) as i64;
        self.place(side, TimeInForce::Ioc, limit, quantity);
    }

    fn cancel(&mut self) {
        // One in sixteen is over already or never was.
        let id = match self.random.below(16) {
            0 => self.random.below(self.next + 2),
            _ => self.shadow.pick(self.random.word()).unwrap_or(0),
        };
        let canceled = self.book.cancel(OrderId(id));
        match self.shadow.remove(id) {
            None => assert_eq!(canceled, Err(BookError::UnknownOrder(OrderId(id)))),
            Some(open) => {
                let canceled = canceled.expect("it is open");
                assert_eq!(
                    (canceled.side, canceled.price.0, canceled.remaining.0),
                    (open.side, open.price, open.quantity)
                );
            }
        }
    }

    fn reduce(&mut self) {
        let Some(id) = self.shadow.pick(self.random.word()) else { return };
        let open = self.shadow.get(id).expect("it is open");
        if open.quantity > 1 {
            self.book.reduce(OrderId(id), Qty(open.quantity / 2)).expect("it is open");
            self.shadow.set_quantity(id, open.quantity / 2);
        }
    }

    /// Every place that was ever taken can be taken again.
    fn check_places(&mut self) {
        while let Some(id) = self.shadow.pick(0) {
            self.book.cancel(OrderId(id)).expect("it is open");
            self.shadow.remove(id);
        }
        assert_eq!(self.book.len(), 0);
        self.book.validate().unwrap();
        for n in 0..i64::from(ORDERS_MAX) {
            self.place(Side::Buy, TimeInForce::Gtc, n % i64::from(LEVELS_MAX), 1);
        }
        assert_eq!((self.book.len(), self.shadow.level_count()), (ORDERS_MAX, LEVELS_MAX as usize));
        self.place(Side::Buy, TimeInForce::Gtc, 0, 1);
        assert_eq!(self.book.len(), ORDERS_MAX);
        self.book.validate().unwrap();
    }
}

#[test]
fn the_book_loses_and_leaks_nothing() {
    let mut run = Run::new();
    for command in 0..commands() {
        run.step();
        if command % LOOK == 0 {
            run.book.validate().unwrap();
        }
    }
    let full = run.full;
    println!("{} orders, {full:?} found no place or no level", run.next);
    assert!(full.iter().all(|&times| times > 0) || commands() < 100_000, "there was always room");
    run.check_places();
}
