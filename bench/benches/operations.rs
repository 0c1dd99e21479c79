//! The cost of single operations of the hot path, by criterion: `cargo bench -p touchline-bench`.
//!
//! These figures are for seeing what a change does to one part (`--save-baseline`, `--baseline`). What
//! the parts come to beside a peer or a limit is what the commands of `touchline-bench` say. Allocator and huge pages
//! are those of that executable, and what book and core come to is checked once before it is timed.

#![allow(missing_docs, reason = "criterion_group makes a public function without any")]

use std::hint::black_box;
use std::time::Duration;

use bytemuck::bytes_of;
use criterion::{BatchSize, Criterion, Throughput, criterion_group};
use serde::Serialize;
use touchline_adapter::json::JsonWriter;
use touchline_adapter::signature::SigningKey;
use touchline_bench::allocation::Counting;
use touchline_bench::core::engines::{Engine, Touchline, TouchlineHandles, with_places};
use touchline_bench::core::flows::{Flow, Synthetic};
use touchline_bench::core::operation::Tally;
use touchline_bench::core::venue::{Came, Size, Venue};
use touchline_engine::huge_pages::use_huge_pages;
use touchline_protocol::decimal::{self, DecimalText};
use touchline_protocol::message::command::NewOrder;
use touchline_protocol::message::decode;
use touchline_protocol::message::enums::{OrderType, Side, TimeInForce};
use touchline_protocol::ring::{Capacity, MessageBuffer, heap_ring};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Operations of a flow; one iteration does all of them.
const OPERATIONS: usize = 500_000;
/// Operations that the book is shown before they come.
const BATCH: usize = 64;

/// Room for a page of 1,000 orders as JSON.
const PAGE_BYTES: usize = 512 << 10;

/// The order book alone.
fn book(criterion: &mut Criterion) {
    for kind in [Synthetic::Calm, Synthetic::Crossing] {
        let flow = with_places(kind.generate(OPERATIONS));
        check::<Touchline>(&flow);
        check::<TouchlineHandles>(&flow);
        let mut group = criterion.benchmark_group(format!("book, {}", flow.name));
        group.throughput(Throughput::Elements(flow.measured.len() as u64)).sample_size(10);
        group.bench_function("by id", |bencher| {
            let filled = || filled::<Touchline>(&flow);
            bencher.iter_batched_ref(filled, run, BatchSize::PerIteration);
        });
        group.bench_function("by handle", |bencher| {
            let filled = || filled::<TouchlineHandles>(&flow);
            bencher.iter_batched_ref(filled, run, BatchSize::PerIteration);
        });
        group.finish();
    }
}

fn filled<E: Engine>(flow: &Flow) -> (E, &Flow) {
    let mut engine = E::new(&flow.capacity);
    for operation in &flow.prefill {
        engine.apply(operation, &mut Tally::default());
    }
    (engine, flow)
}

/// Panics unless an engine comes to what it must: a wrong book may be fast.
fn check<E: Engine>(flow: &Flow) {
    let mut filled = filled::<E>(flow);
    assert_eq!(run(&mut filled), flow.expected, "{}", flow.name);
    assert_eq!(filled.0.depth(), flow.depth, "{}", flow.name);
}

fn run<E: Engine>((engine, flow): &mut (E, &Flow)) -> Tally {
    let mut tally = Tally::default();
    for batch in flow.measured.chunks(BATCH) {
        engine.look_ahead(batch);
        for operation in batch {
            engine.apply(operation, &mut tally);
        }
    }
    tally
}

/// Decoding, sessions, filters, balances, book and events.
fn core(criterion: &mut Criterion) {
    let flow = Synthetic::Calm.generate(OPERATIONS);
    let mut group = criterion.benchmark_group("whole core");
    group.throughput(Throughput::Elements(OPERATIONS as u64)).sample_size(10);
    let came = venue(&flow).check(&flow).expect("the core comes to what it must");
    group.bench_function("calm", |bencher| {
        bencher.iter_custom(|rounds| {
            let picoseconds: u64 = (0..rounds).map(|_| whole_core(&flow, &came)).sum();
            Duration::from_nanos(picoseconds * OPERATIONS as u64 / 1000)
        });
    });
    group.finish();
}

fn venue(flow: &Flow) -> Venue {
    let size = Size { symbols: 1, accounts: 10 };
    let (orders, levels) = (flow.capacity.orders + 1, flow.capacity.levels + 1);
    Venue::new(size, orders, levels).expect("the core takes its definitions")
}

/// Picoseconds per command, of a pass that comes to what the checked one did.
fn whole_core(flow: &Flow, checked: &Came) -> u64 {
    let (picoseconds, came) = venue(flow).run(flow).expect("the core takes the flow");
    assert_eq!(came, *checked, "a timed pass came to something else than the checked one");
    picoseconds
}

fn order() -> NewOrder {
    NewOrder {
        side: Side::Buy.to_wire(),
        order_type: OrderType::Limit.to_wire(),
        time_in_force: TimeInForce::Gtc.to_wire(),
        price: 2_000_000_000_000,
        quantity: 1_000_000,
        ..Default::default()
    }
}

/// What is done with an order's bytes before anybody decides about it.
fn messages(criterion: &mut Criterion) {
    let order = order();
    let mut group = criterion.benchmark_group("NewOrder");
    group.throughput(Throughput::Bytes(size_of::<NewOrder>() as u64));
    group.bench_function("decode", |bencher| {
        bencher.iter(|| decode::command(black_box(bytes_of(&order))).is_ok());
    });
    group.bench_function("through a ring, one thread", |bencher| {
        let capacity = Capacity::new(1024).expect("a power of two");
        let (mut producer, mut consumer) = heap_ring(capacity);
        let mut buffer = MessageBuffer::new();
        bencher.iter(|| {
            producer.try_push(black_box(bytes_of(&order))).expect("the ring is empty");
            consumer.poll(&mut buffer).expect("the ring is whole")
        });
    });
    group.finish();
}

/// What the REST adapter does with every request.
fn texts(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("texts");
    group.bench_function("read a decimal", |bencher| {
        bencher.iter(|| decimal::parse(black_box(b"20000.00000000")));
    });
    let key = SigningKey::new(&[b'k'; 64]);
    let query = b"symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.01&price=20000\
        &newClientOrderId=an-id-of-the-client&recvWindow=5000&timestamp=1795221452423";
    group.bench_function("sign a request", |bencher| {
        bencher.iter(|| key.sign(black_box(query), b""));
    });
    group.finish();
}

/// An order as a reply shows it.
#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    symbol: &'static str,
    order_id: u64,
    order_list_id: i64,
    client_order_id: String,
    price: String,
    orig_qty: String,
    executed_qty: String,
    cummulative_quote_qty: String,
    status: &'static str,
    time_in_force: &'static str,
    side: &'static str,
    stop_price: &'static str,
    time: u64,
    is_working: bool,
}

impl Shown {
    fn new(number: u64) -> Self {
        let decimal = |units: u64| DecimalText::new(units.cast_signed()).as_str().to_owned();
        Self {
            symbol: "BTCUSDT",
            order_id: 3_000_000 + number,
            order_list_id: -1,
            client_order_id: format!("page-{number:018}"),
            price: decimal(6_000_000_000_000 + number * 1_000_000),
            orig_qty: decimal(100_000_000 + number * 12_345),
            executed_qty: decimal(number * 12_345),
            cummulative_quote_qty: decimal(number * 740_700_000),
            status: "PARTIALLY_FILLED",
            time_in_force: "GTC",
            side: "BUY",
            stop_price: "0.00000000",
            time: 1_790_000_000_000 + number,
            is_working: true,
        }
    }
}

/// A page of 1,000 orders by our writer and by the library's.
fn pages(criterion: &mut Criterion) {
    let page: Vec<Shown> = (0..1000).map(Shown::new).collect();
    let ours = || {
        let mut bytes = Vec::with_capacity(PAGE_BYTES);
        page.serialize(&mut JsonWriter::new(&mut bytes)).expect("all keys are texts");
        bytes
    };
    let library = || {
        let mut bytes = Vec::with_capacity(PAGE_BYTES);
        serde_json::to_writer(&mut bytes, &page).expect("all keys are texts");
        bytes
    };
    assert!(ours() == library() && ours().len() <= PAGE_BYTES);
    let mut group = criterion.benchmark_group("JSON of 1,000 orders");
    group.throughput(Throughput::Elements(1000));
    group.bench_function("ours", |bencher| bencher.iter(ours));
    group.bench_function("the library's", |bencher| bencher.iter(library));
    group.finish();
}

criterion_group!(operations, book, core, messages, texts, pages);

fn main() {
    use_huge_pages(true);
    operations();
    Criterion::default().configure_from_args().final_summary();
}
