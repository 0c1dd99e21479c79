//! What a command costs, counted: the slots of orders and levels and the nodes that it looks at. Deep
//! books and long queues cost what shallow and short ones do.

use super::{Aggressor, BookPools, Fill, Handle, Sink, SymbolBook};
use alloc::vec::Vec;
use touchline_protocol::message::enums::Side;
use touchline_protocol::units::{OrderId, Price, Qty};

/// The most that one command looks at where prices lie side by side: its order, its level, and their
/// neighbours.
const NEAR_MAX: u64 = 10;
/// As that, with two ways through the ladder, which have at most 12 steps each.
const FAR_MAX: u64 = NEAR_MAX + 2 * 12;

struct Ignored;

impl Sink for Ignored {
    fn fill(&mut self, _fill: &Fill) {}
}

/// How prices lie.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// One tick beside the other.
    Dense,
    /// A few in each of many ranges, up to the ends of what a price can be.
    Sparse,
    /// All orders at one price.
    Queue,
}

struct Subject {
    pools: BookPools,
    book: SymbolBook,
    /// The orders that rest, in the order of their arrival.
    handles: Vec<Handle>,
    most: u64,
}

impl Subject {
    /// A bid side of so many orders.
    fn new(shape: Shape, orders: u32) -> Self {
        let mut pools = BookPools::new();
        pools.try_grow(orders + 1, orders + 1).expect("memory");
        let book = SymbolBook::new();
        let mut made = Self { pools, book, handles: Vec::new(), most: 0 };
        for n in 0..orders {
            let handle = made.rest(price(shape, n), n);
            made.handles.push(handle);
        }
        made.most = 0;
        made
    }

    fn looks(&self) -> u64 {
        let Self { pools, .. } = self;
        pools.orders.looks.get() + pools.levels.looks.get() + pools.nodes.steps.get()
    }

    fn counted<R>(&mut self, run: impl FnOnce(&mut Self) -> R) -> R {
        let before = self.looks();
        let result = run(self);
        self.most = self.most.max(self.looks() - before);
        result
    }

    fn rest(&mut self, price: i64, n: u32) -> Handle {
        let order = (OrderId(u64::from(n) + 1), 0);
        self.counted(|it| it.book.rest(&mut it.pools, Side::Buy, Price(price), Qty(5), order))
    }

    /// Takes one unit, then one order and the next.
    fn take(&mut self) {
        for quantity in [1, 4, 5] {
            let aggressor =
                Aggressor { side: Side::Sell, limit: Price(i64::MIN), quantity: Qty(quantity) };
            self.counted(|it| it.book.take(&mut it.pools, &aggressor, u32::MAX, &mut Ignored));
        }
    }
}

fn price(shape: Shape, n: u32) -> i64 {
    let n = i64::from(n);
    match shape {
        Shape::Dense => 1_000_000 + n,
        Shape::Sparse => ((n << 40) + n % 3).wrapping_mul(0x9e37_79b9) ^ i64::MIN,
        Shape::Queue => 1_000_000,
    }
}

/// The most that any command of a few at every place of a book looks at.
fn most(shape: Shape, orders: u32) -> u64 {
    let mut subject = Subject::new(shape, orders);
    for part in 0..16 {
        // Out of the middle of everything, and in again at the same price and beside it.
        let at = (part * (orders - 1) / 16) as usize;
        let handle = subject.handles[at];
        let view = subject.pools.order(handle);
        subject.counted(|it| it.book.reduce(&mut it.pools, handle, Qty(3)));
        subject.counted(|it| it.book.remove(&mut it.pools, handle));
        subject.handles[at] = subject.rest(view.price.0, orders + part);
        let beside = subject.rest(view.price.0 ^ 1, orders + 16 + part);
        subject.counted(|it| it.book.remove(&mut it.pools, beside));
        let _found = subject.counted(|it| it.book.has_level(&it.pools, Side::Buy, view.price));
    }
    subject.take();
    subject.most
}

#[test]
fn what_a_command_looks_at_does_not_grow_with_the_book() {
    for (shape, limit) in
        [(Shape::Dense, NEAR_MAX), (Shape::Sparse, FAR_MAX), (Shape::Queue, NEAR_MAX)]
    {
        for orders in [100, 10_000, 200_000] {
            let most = most(shape, orders);
            assert!(most <= limit, "{shape:?}, {orders} orders: {most} looks of {limit}");
        }
    }
}
