//! Not one allocation over a million commands, whatever they are and whether they are accepted.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "no_allocation/records.rs"]
mod records;
#[path = "no_allocation/rules_2.rs"]
mod rules_2;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use touchline_core::{
    Context, Core, ORDER_TYPES, ORDER_TYPES_2, OUTBOX_BYTES_MAX, Outbox, RULES_MAX,
};
use touchline_protocol::message::command::*;
use touchline_protocol::message::decode::{self, Command};
use touchline_protocol::message::enums::{Lane, Role, Side};
use touchline_protocol::text::{AssetName, ClientOrderId, Name, SymbolName};
use touchline_protocol::units::*;

thread_local! {
    /// Calls of the allocator by this thread.
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

fn count() {
    CALLS.with(|calls| calls.set(calls.get() + 1));
}

// SAFETY: every call is handed to the system's allocator unchanged; counting in a constant-initialised
// thread-local without a destructor neither allocates nor unwinds.
#[allow(unsafe_code, reason = "the only way to see every allocation is to be the allocator")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count();
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const ACCOUNTS: u64 = 4;
const SYMBOLS: u64 = 2;
const NAMES: usize = 1000;
const FLAGS_2: u8 = SYMBOL_ICEBERG | SYMBOL_OCO | SYMBOL_QUOTE_QUANTITY;

/// A small deterministic generator: 64-bit linear congruence, high bits used.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

struct Driver {
    core: Core,
    memory: Vec<u64>,
    names: Vec<ClientOrderId>,
    dice: Dice,
    now: u64,
    accepted: u64,
    rejected: u64,
    /// Accepted commands by their template.
    accepted_of: [u64; 128],
    /// Versions of records; 0: there is none.
    versions: [u32; records::RECORDS],
}

impl Driver {
    fn send(&mut self, command: &Command<'_>) -> bool {
        self.now += 100;
        let context = Context { position: Position(self.now), time_ns: self.now };
        let mut outbox = Outbox::new(bytemuck::cast_slice_mut(&mut self.memory));
        let accepted = self.core.apply(&context, command, &mut outbox).is_ok();
        self.accepted += u64::from(accepted);
        self.rejected += u64::from(!accepted);
        let template = decode::header(command.bytes()).unwrap().template_id;
        self.accepted_of[usize::from(template)] += u64::from(accepted);
        accepted
    }

    fn must(&mut self, command: &Command<'_>) {
        assert!(self.send(command), "{}", command.name());
    }

    fn genesis(rules: u32) -> Self {
        let names = (0..NAMES).map(|n| ClientOrderId::new(&format!("order-{n}")).unwrap());
        let mut made = Self {
            core: Core::new(),
            memory: vec![0; OUTBOX_BYTES_MAX.div_ceil(8)],
            names: names.collect(),
            dice: Dice(42),
            now: 1_700_000_000_000_000_000,
            accepted: 0,
            rejected: 0,
            accepted_of: [0; 128],
            versions: [0; records::RECORDS],
        };
        for rules in 1..=rules {
            made.must(&Command::SetRules(&SetRules { rules, ..Default::default() }));
        }
        let limits = Limits {
            assets: 2,
            symbols: SYMBOLS as u32,
            accounts: ACCOUNTS as u32 + 1,
            keys: ACCOUNTS as u32 + rules_2::KEYS,
            sessions: 16 + rules_2::KEYS,
            open_orders: 2000,
            price_levels: 300,
            pending_work: 2,
            max_steps: 4,
            orders_per_interval_0: 2_000_000,
            orders_per_interval_1: 0,
            interval_0_seconds: 10,
            interval_1_seconds: 60,
            reserved: 0,
        };
        made.must(&Command::SetLimits(&SetLimits { limits, ..Default::default() }));
        if rules > 1 {
            made.must(&Command::SetRecordLimits(&records::limits()));
        }
        for name in ["BASE", "QUOTE"] {
            let name = AssetName::new(name).unwrap();
            made.must(&Command::DefineAsset(&DefineAsset { name, ..Default::default() }));
        }
        for name in ["ONE", "TWO"] {
            made.must(&Command::DefineSymbol(&DefineSymbol {
                name: SymbolName::new(name).unwrap(),
                base: AssetId(0),
                quote: AssetId(1),
                status: 2,
                order_types: if rules > 1 { ORDER_TYPES_2 } else { ORDER_TYPES },
                flags: if rules > 1 { FLAGS_2 } else { 0 },
                permissions: PERMISSION_SPOT,
                ..Default::default()
            }));
        }
        made.accounts();
        made
    }

    fn accounts(&mut self) {
        for account in 1..=ACCOUNTS as u32 {
            self.must(&Command::CreateAccount(&CreateAccount {
                name: Name::new(&format!("account {account}")).unwrap(),
                maker_rate: 10_000,
                taker_rate: 20_000,
                flags: ACCOUNT_CAN_TRADE,
                permissions: PERMISSION_SPOT,
                ..Default::default()
            }));
            let account = AccountId(account);
            let permissions = KEY_ALL;
            self.must(&Command::CreateKey(&CreateKey {
                account,
                permissions,
                ..Default::default()
            }));
            for asset in [AssetId(0), AssetId(1)] {
                let amount = 1_000_000 * UNITS_PER_WHOLE;
                self.must(&Command::Deposit(&Deposit {
                    account,
                    asset,
                    amount,
                    ..Default::default()
                }));
            }
        }
    }

    /// The last order of a symbol, less a few.
    fn recent(&mut self, symbol: SymbolId) -> OrderId {
        let last = self.core.symbol(symbol).unwrap().counters.order.0;
        let back = if self.core.rules() > 1 { 300 } else { 1500 };
        OrderId(last.saturating_sub(self.dice.roll(back)))
    }

    fn order(&mut self, command: CommandHeader, symbol: SymbolId) {
        let kind = self.dice.roll(20);
        let name = self.dice.roll(NAMES as u64 * 2) as usize;
        let market = kind == 0;
        let mut message = NewOrder {
            command,
            symbol,
            side: 1 + self.dice.roll(2) as u8,
            order_type: if market { 2 } else { 1 },
            time_in_force: [0, 2, 2, 3].get(kind as usize).copied().unwrap_or(1),
            price: if market { 0 } else { (900 + self.dice.roll(200) as i64) * 1_000_000 },
            quantity: (1 + self.dice.roll(50) as i64) * 1_000_000,
            client_order_id: self.names.get(name).copied().unwrap_or_default(),
            ..Default::default()
        };
        if self.core.rules() > 1 {
            self.widen(&mut message);
        }
        self.send(&Command::NewOrder(&message));
    }

    /// One command of any kind.
    fn any(&mut self) {
        if self.core.pending_head().is_some() {
            if self.core.rules() > 1 && self.dice.roll(100) == 0 {
                self.overtake();
            } else {
                self.send(&Command::RunPending(&RunPending::default()));
            }
            return;
        }
        let key_id = KeyId(1 + self.dice.roll(ACCOUNTS));
        let command = CommandHeader { key_id, ..Default::default() };
        let symbol = SymbolId(self.dice.roll(SYMBOLS + 1) as u32 % SYMBOLS as u32);
        match self.dice.roll(100) {
            0..12 if self.core.rules() > 1 => self.of_rules_2(command, symbol),
            12..15 if self.core.rules() > 1 => self.record(),
            0..55 => self.order(command, symbol),
            55..85 => {
                let order_id = self.recent(symbol);
                let owner = self.core.open_order(symbol, order_id).map(|order| order.account.0);
                let key_id = owner.map_or(key_id, |account| KeyId(account.into()));
                let command = CommandHeader { key_id, ..command };
                let message = CancelOrder { command, symbol, order_id, ..Default::default() };
                self.send(&Command::CancelOrder(&message));
            }
            85..90 => {
                let client_order_id = self.names[self.dice.roll(NAMES as u64) as usize];
                let message =
                    CancelOrderNamed { command, symbol, client_order_id, ..Default::default() };
                self.send(&Command::CancelOrderNamed(&message));
            }
            90..96 => {
                let order_id = self.recent(symbol);
                let new_quantity = 1 + self.dice.roll(30_000_000) as i64;
                let message =
                    ReduceOrder { command, symbol, order_id, new_quantity, ..Default::default() };
                self.send(&Command::ReduceOrder(&message));
            }
            roll => self.cold(roll, command),
        }
    }

    fn cold(&mut self, roll: u64, command: CommandHeader) {
        let account = AccountId(command.key_id.0 as u32);
        match roll {
            96 => {
                let message = Logon {
                    command,
                    name: Name::new("session").unwrap(),
                    role: Role::Trader.to_wire(),
                    lane: Lane::Hot.to_wire(),
                    ..Default::default()
                };
                self.send(&Command::Logon(&message));
            }
            97 => {
                let amount = 1000;
                self.send(&Command::Deposit(&Deposit { account, amount, ..Default::default() }));
            }
            98 => {
                let message = Withdraw { account, amount: 1000, ..Default::default() };
                self.send(&Command::Withdraw(&message));
            }
            _ => {
                let message = SetSymbolStatus { status: 2, ..Default::default() };
                self.send(&Command::SetSymbolStatus(&message));
                self.send(&Command::EngineStarted(&EngineStarted::default()));
                let (ended_session, ended_epoch) = (SessionId(1), Epoch(1));
                let message = ConnectionEnded { ended_session, ended_epoch, ..Default::default() };
                self.send(&Command::ConnectionEnded(&message));
            }
        }
    }
}

#[test]
fn a_million_commands_allocate_nothing() {
    run(Driver::genesis(1));
}

#[test]
fn a_million_commands_of_the_newest_rules_allocate_nothing() {
    run(Driver::genesis(RULES_MAX));
}

fn run(mut driver: Driver) {
    for _ in 0..20_000 {
        driver.any();
    }
    let before = CALLS.get();
    assert!(before > 0, "genesis and the test itself have allocated");
    for _ in 0..1_000_000 {
        driver.any();
    }
    let calls = CALLS.get() - before;
    assert_eq!(calls, 0, "calls of the allocator");
    assert!(
        driver.accepted > if driver.core.rules() > 1 { 400_000 } else { 500_000 },
        "{} accepted",
        driver.accepted
    );
    assert!(driver.rejected > 10_000, "{} rejected", driver.rejected);
    if driver.core.rules() > 1 {
        rules_2::check_accepted(&driver);
    }
    let trades: u64 = (0..SYMBOLS as u32)
        .map(|symbol| driver.core.symbol(SymbolId(symbol)).unwrap().counters.trade.0)
        .sum();
    assert!(trades > 100_000, "{trades} trades");

    driver.core.validate().unwrap();
    drain(&mut driver);
}

/// Ends everything that is open, and some orders more.
fn drain(driver: &mut Driver) {
    let mut turns = 0;
    while driver.core.pending_head().is_some() {
        turns += 1;
        assert!(turns < 1_000_000, "pending work comes to no end");
        driver.must(&Command::RunPending(&RunPending::default()));
    }
    let resting = [(1, 850_000_000), (2, 1_150_000_000)];
    for (symbol, (side, price)) in (0..SYMBOLS as u32).flat_map(|at| resting.map(|one| (at, one))) {
        let message = NewOrder {
            command: CommandHeader { key_id: KeyId(4), ..Default::default() },
            symbol: SymbolId(symbol),
            side,
            order_type: 1,
            time_in_force: 1,
            price,
            quantity: 1_000_000,
            ..Default::default()
        };
        // Rejected when the venue is full; then there is enough to end.
        driver.send(&Command::NewOrder(&message));
    }
    for symbol in (0..SYMBOLS as u32).map(SymbolId) {
        for side in [Side::Buy, Side::Sell] {
            let orders: Vec<_> = driver.core.open_orders(symbol, side).collect();
            assert!(!orders.is_empty(), "something is left to drain");
            let waiting: Vec<_> = driver.core.waiting_orders(symbol).collect();
            for order in orders.into_iter().chain(waiting) {
                let command =
                    CommandHeader { key_id: KeyId(order.account.0.into()), ..Default::default() };
                let order_id = order.order_id;
                let message = CancelOrder { command, symbol, order_id, ..Default::default() };
                // The other order of a list has gone with the first.
                if driver.core.open_order(symbol, order_id).is_some() {
                    driver.must(&Command::CancelOrder(&message));
                }
            }
        }
    }
    let counts = driver.core.counts();
    assert_eq!((counts.open_orders, counts.price_levels, counts.pending_work), (0, 0, 0));
    for account in 0..=ACCOUNTS as u32 {
        for asset in [AssetId(0), AssetId(1)] {
            let balance = driver.core.balance(AccountId(account), asset).unwrap();
            assert_eq!(balance.locked, Amount(0));
        }
    }
    driver.core.validate().unwrap();
}
