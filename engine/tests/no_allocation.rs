//! The hot path allocates nothing: a million mixed commands go ring → log → match → ring through a
//! real duty thread's turns over a real log, and the allocations of that thread are counted. Another
//! session is told of all of it, and one of the cold lane writes records meanwhile.
#![allow(unsafe_code, reason = "counting allocations needs a global allocator")]
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[path = "support/duty_bench.rs"]
mod duty_bench;
#[path = "../../tests/support/patience.rs"]
mod patience;
#[path = "no_allocation/records.rs"]
mod records;

use duty_bench::{DutyBench, open_log};
use patience::{AtEnd, Wait};
use records::Records;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use touchline_engine::log::{Environment, KeeperHandle};
use touchline_engine::mailbox::Detail;
use touchline_protocol::message::command::{
    CancelOrder, LOGON_ACCOUNT_EVENTS, Logon, NewOrder, ReduceOrder,
};
use touchline_protocol::message::decode::{Event, disclose};
use touchline_protocol::message::enums::{Lane, OrderType, Role, Side, TimeInForce};
use touchline_protocol::message::event::SessionStarted;
use touchline_protocol::message::short_order;
use touchline_protocol::ring::{MessageBuffer, RingCapacities, SessionEnd};
use touchline_protocol::text::{ClientOrderId, Name};
use touchline_protocol::units::{KeyId, OrderId, Sequence, SymbolId};

struct Counting;

thread_local! {
    /// Where this thread's allocations are counted, while they are.
    static WATCHED: Cell<Option<&'static AtomicU64>> = const { Cell::new(None) };
}

fn count() {
    if let Some(counter) = WATCHED.get() {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: every call goes to the system's allocator unchanged; the counting touches only a
// thread-local cell without a destructor, and a counter that lives for ever.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `alloc`, which is passed on as it is.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count();
        // SAFETY: as above; the pointer came from `System` with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const VENUE: &str = r#"
[limits]
orders_per_interval_0 = 0
orders_per_interval_1 = 0
open_orders = 65536
records = 1000
record_blocks = 10000

[[assets]]
name = "BTC"
[[assets]]
name = "USDT"
[[symbols]]
name = "BTCUSDT"
base = "BTC"
quote = "USDT"
[[accounts]]
name = "A"
maker_rate = "0.001"
taker_rate = "0.002"
keys = 1
balances = { BTC = "1000000000", USDT = "1000000000" }
"#;

struct Bench {
    engine: DutyBench,
    trader: Trader,
    /// Of a session that takes all events of the account, and reads them now and then.
    watcher: SessionEnd,
    records: Records,
    buffer: MessageBuffer,
    told: u64,
    allocations: &'static AtomicU64,
    // Declared last: the duty thread's log lets go of its files first.
    _keeper: KeeperHandle,
}

/// Who sends the commands.
struct Trader {
    client: SessionEnd,
    session: SessionStarted,
    is_terse: bool,
    sequence: u64,
    buffer: MessageBuffer,
    open: Vec<OrderId>,
    random: u64,
    replies: u64,
    rejects: u64,
    trades: u64,
}

fn bench(
    data: &Path,
    stop: &Arc<AtomicBool>,
    detail: Detail,
    allocations: &'static AtomicU64,
) -> Bench {
    let log = open_log(&Environment::default(), data, Duration::ZERO);
    let mut engine = DutyBench::new(log.writer, touchline_core::Core::new(), VENUE, stop);
    engine.wishes.detail = detail;
    let mut logon = Logon {
        name: Name::new("bench").unwrap(),
        role: Role::Trader.to_wire(),
        lane: Lane::Hot.to_wire(),
        ..Default::default()
    };
    logon.command.key_id = KeyId(1);
    let capacities = RingCapacities::new(1024, 16_384).unwrap();
    let (client, session) = engine.log_on(logon, capacities).unwrap();
    let mut watching =
        Logon { name: Name::new("watcher").unwrap(), flags: LOGON_ACCOUNT_EVENTS, ..logon };
    watching.command.key_id = KeyId(1);
    let capacities = RingCapacities::new(1024, 1024).unwrap();
    let (watcher, _) = engine.log_on(watching, capacities).unwrap();
    let records = Records::log_on(&mut engine);
    let trader = Trader {
        client,
        session,
        is_terse: detail == Detail::Terse,
        sequence: 0,
        buffer: MessageBuffer::new(),
        open: Vec::with_capacity(100_000),
        random: 0x9e37_79b9_7f4a_7c15,
        replies: 0,
        rejects: 0,
        trades: 0,
    };
    let (buffer, told, keeper) = (MessageBuffer::new(), 0, log.keeper);
    Bench { engine, trader, watcher, records, buffer, told, allocations, _keeper: keeper }
}

impl Trader {
    fn send(&mut self) {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let random = self.random;
        self.sequence += 1;
        let mut order = NewOrder {
            symbol: SymbolId(0),
            side: if random & 1 == 0 { Side::Buy } else { Side::Sell }.to_wire(),
            order_type: OrderType::Limit.to_wire(),
            time_in_force: TimeInForce::Gtc.to_wire(),
            price: 10_000_000_000 + ((random >> 8) % 200) as i64 * 1_000_000,
            quantity: 1_000_000 + ((random >> 16) % 100) as i64 * 1_000_000,
            client_order_id: ClientOrderId::new(&format!("{:020}", self.sequence)).unwrap(),
            ..Default::default()
        };
        order.command.sequence = Sequence(self.sequence);
        order.command.session = self.session.session;
        order.command.epoch = self.session.epoch;
        order.command.key_id = KeyId(1);
        let pick = self.open.len().checked_sub(1).map(|last| (random >> 24) as usize % (last + 1));
        match ((random >> 1) % 16, pick) {
            (0..6, Some(pick)) => {
                let order_id = self.open.swap_remove(pick);
                let cancel = CancelOrder { order_id, command: order.command, ..Default::default() };
                self.push(bytemuck::bytes_of(&cancel));
                return;
            }
            (6, Some(pick)) => {
                let reduce = ReduceOrder {
                    order_id: self.open[pick],
                    new_quantity: 500_000,
                    command: order.command,
                    ..Default::default()
                };
                self.push(bytemuck::bytes_of(&reduce));
                return;
            }
            (7, _) => order.time_in_force = TimeInForce::Ioc.to_wire(),
            (8, _) => order.time_in_force = TimeInForce::Fok.to_wire(),
            (9, _) => {
                order.order_type = OrderType::Market.to_wire();
                order.time_in_force = 0;
                order.price = 0;
            }
            _ => {}
        }
        match short_order::shortened(bytemuck::bytes_of(&order)) {
            Some((front, rest)) if self.is_terse => {
                self.client.output.stage_behind(&front, rest).unwrap();
                self.client.output.publish();
            }
            _ => self.push(bytemuck::bytes_of(&order)),
        }
    }

    fn push(&mut self, message: &[u8]) {
        self.client.output.try_push(message).unwrap();
    }

    /// Reads what there is.
    fn read(&mut self) {
        while let Some(length) = self.client.input.poll(&mut self.buffer).unwrap() {
            let (envelope, event) = disclose(self.buffer.bytes(length)).unwrap();
            self.replies += u64::from(envelope.flags & 1);
            match event.event().unwrap() {
                Event::OrderAccepted(accepted) => self.open.push(accepted.order_id),
                Event::OrderOpened(opened) => self.open.push(opened.order_id),
                Event::Trade(_) => self.trades += 1,
                Event::Rejected(_) => self.rejects += 1,
                _ => {}
            }
        }
    }

    /// Sends what a running duty thread is to answer, and wakes it as clients do; true if it slept.
    fn trade(&mut self) -> bool {
        let wait = Wait::begin();
        self.send();
        let slept = self.client.signals.wake_peer();
        while self.replies < self.sequence {
            wait.go_on("no answer");
            self.read();
        }
        slept
    }
}

impl Bench {
    /// Reads what the watching session was told.
    fn read_told(&mut self) {
        while self.watcher.input.poll(&mut self.buffer).unwrap().is_some() {
            self.told += 1;
        }
    }

    /// Turns until every command sent is answered.
    fn settle(&mut self) {
        let wait = Wait::begin();
        while self.trader.replies < self.trader.sequence || self.records.are_under_way() {
            wait.go_on("not every command is answered");
            WATCHED.set(Some(self.allocations));
            self.engine.duty.turn();
            WATCHED.set(None);
            self.trader.read();
            self.records.read();
        }
    }
}

#[test]
fn a_million_mixed_commands_allocate_nothing() {
    static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
    let folder = tempfile::tempdir().unwrap();
    let mut bench = bench(folder.path(), &Arc::default(), Detail::Whole, &ALLOCATIONS);
    while bench.trader.sequence < 1_000_000 {
        for _ in 0..64 {
            bench.trader.send();
        }
        let random = bench.trader.random;
        bench.records.send(random);
        bench.settle();
        // Not always: what does not fit allocates nothing either.
        if random.is_multiple_of(4) {
            bench.read_told();
        }
    }
    let Trader { sequence, trades, rejects, .. } = bench.trader;
    assert!(trades > 100_000, "the flow trades: {trades} trades");
    assert!(bench.told > 100_000, "{} events told", bench.told);
    assert!(rejects < sequence / 2, "most is accepted: {rejects} rejects");
    bench.records.check();
    assert_eq!(ALLOCATIONS.load(Ordering::Relaxed), 0);
}

/// The thread as it runs: what it does while it waits for commands, spinning or asleep, and when it is woken. Its
/// client is a terse one, whose orders are short.
#[test]
fn waiting_for_commands_allocates_nothing() {
    static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
    patience::watch();
    let folder = tempfile::tempdir().unwrap();
    let stop = Arc::<AtomicBool>::default();
    let Bench { engine, mut trader, _keeper: keeper, .. } =
        bench(folder.path(), &stop, Detail::Terse, &ALLOCATIONS);
    let client = std::thread::spawn(move || {
        let _stopped = AtEnd(|| stop.store(true, Ordering::Release));
        let mut woken = 0;
        for command in 0..2000 {
            woken += u32::from(trader.trade());
            if command % 100 == 0 {
                // So long that it sleeps.
                std::thread::sleep(Duration::from_millis(3));
            }
        }
        // Before its end, which frees all that it had.
        (trader, woken, ALLOCATIONS.load(Ordering::Relaxed))
    });
    WATCHED.set(Some(&ALLOCATIONS));
    let log = engine.duty.run();
    WATCHED.set(None);
    let (trader, woken, allocations) = patience::join(client, "the client");
    assert_ne!(woken, 0, "it slept at times");
    assert_eq!(trader.replies, 2000);
    assert!(trader.rejects < 1000, "{} rejects", trader.rejects);
    assert_eq!(allocations, 0);
    assert_ne!(ALLOCATIONS.load(Ordering::Relaxed), 0, "its end was counted");
    log.close().unwrap();
    keeper.stop();
}

#[test]
fn the_counter_counts() {
    static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
    WATCHED.set(Some(&ALLOCATIONS));
    drop(std::hint::black_box(Box::new(1)));
    WATCHED.set(None);
    assert_eq!(ALLOCATIONS.load(Ordering::Relaxed), 2);
}
