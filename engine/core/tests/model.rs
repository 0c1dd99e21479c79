//! Random commands against the naive venue: the same events, balances and depth after each of them,
//! and afterwards the same from a replay. `TOUCHLINE_CASES` sets the number of cases.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "model/cancels.rs"]
mod cancels;
#[path = "model/checks.rs"]
mod checks;
#[path = "model/naive.rs"]
mod naive;
#[path = "model/steps.rs"]
mod steps;
#[path = "model/stops.rs"]
mod stops;
#[path = "support/venue.rs"]
mod venue;

use naive::{NaiveAccount, NaiveOrder, NaiveSession, NaiveSymbol, NaiveVenue, Outcome};
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use steps::{Flaw, Step, steps};
use touchline_core::book::DepthLevel;
use touchline_core::{ORDER_TYPES, ORDER_TYPES_2};
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{Lane, Role, Side};
use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::*;
use venue::{START_NS, Venue, WHOLE, named};

const NAMES: [&str; 4] = ["", "a", "b", "a longer client order id of 36 bytes"];

/// Price of tick `tick` and quantity of `lots` lots, chosen so that notionals do not come out even.
fn units(symbol: u32, tick: i64, lots: i64) -> (i64, i64) {
    match symbol {
        0 => (tick * 33_333_337, lots * 7_654_321),
        _ => (tick * 50_000_000, lots * 10_000_000),
    }
}

struct World {
    venue: Venue,
    naive: NaiveVenue,
    sessions: Vec<(SessionId, KeyId)>,
    keys: BTreeMap<AccountId, KeyId>,
}

/// What a cancel or reduction is about.
struct Target {
    command: CommandHeader,
    order_id: OrderId,
    name: ClientOrderId,
}

fn limits() -> Limits {
    Limits {
        open_orders: 14,
        price_levels: 9,
        pending_work: 2,
        max_steps: 2,
        orders_per_interval_0: 12,
        orders_per_interval_1: 60,
        interval_0_seconds: 10,
        interval_1_seconds: 3600,
        ..venue::roomy()
    }
}

fn filtered(rules: u32) -> SymbolFilters {
    let of_rules_2 = SymbolFilters {
        iceberg_parts: 5,
        max_iceberg_orders: 2,
        max_algo_orders: 2,
        percent_price_up: 2 * WHOLE,
        percent_price_down: WHOLE / 2,
        percent_price_minutes: 3,
        min_notional_minutes: 1,
        min_notional_applies_to_market: 1,
        max_position: 9 * WHOLE,

        ..Default::default()
    };
    SymbolFilters {
        price_min: 50_000_000,
        price_max: 600_000_000,
        tick_size: 50_000_000,
        lot_min: 10_000_000,
        lot_max: 200_000_000,
        lot_step: 10_000_000,
        market_lot_min: 20_000_000,
        market_lot_max: 150_000_000,
        market_lot_step: 20_000_000,
        min_notional: 30_000_000,
        max_orders: 4,
        ..if rules > 1 { of_rules_2 } else { SymbolFilters::default() }
    }
}

impl World {
    fn new() -> Self {
        Self::with_rules(1)
    }

    fn with_rules(rules: u32) -> Self {
        let mut venue = Venue::new();
        venue.set_rules();
        if rules > 1 {
            venue.must(&SetRules { rules, ..Default::default() });
        }
        venue.set_limits(limits());
        let assets = ["BASE", "QUOTE", "THIRD"].map(|name| venue.asset(name));
        let pairs = [(0, 1), (2, 1), (2, 0)];
        let mut naive = NaiveVenue { limits: limits(), rules, ..Default::default() };
        for (index, (base, quote)) in pairs.into_iter().enumerate() {
            let filters = if index == 1 { filtered(rules) } else { SymbolFilters::default() };
            let pair = (assets[base], assets[quote]);
            let (order_types, flags) = if rules > 1 && index != 2 {
                (ORDER_TYPES_2, SYMBOL_ICEBERG | SYMBOL_QUOTE_QUANTITY)
            } else {
                (ORDER_TYPES, 0)
            };
            let name = ["ONE", "TWO", "THREE"][index];
            venue.symbol_of(name, pair, filters, (order_types, flags));
            naive.symbols.push(NaiveSymbol {
                base: base as u32,
                quote: quote as u32,
                status: 2,
                order_types,
                flags,
                permissions: PERMISSION_SPOT,
                filters,
                bids: BTreeMap::new(),
                asks: BTreeMap::new(),
                waiting: Vec::new(),
                fired: Vec::new(),
                last: None,
                history: Vec::new(),
                orders: 0,
                trades: 0,
                aggregates: 0,
                updates: 0,
            });
        }
        if rules > 1 {
            let filters =
                SetVenueFilters { max_orders: 7, max_algo_orders: 3, ..Default::default() };
            venue.must(&filters);
            (naive.max_orders, naive.max_algo_orders) = (7, 3);
        }
        let mut world = Self { venue, naive, sessions: Vec::new(), keys: BTreeMap::new() };
        world.naive.accounts.push(NaiveAccount::default());
        let rates = [(0, 0), (100_000, 150_000), (WHOLE / 3, WHOLE), (7, 33_333_333)];
        for (index, rates) in rates.into_iter().enumerate() {
            world.add_account(["ann", "bob", "cat", "dan"][index], rates);
        }
        world.add_sessions();
        world
    }

    fn add_account(&mut self, name: &str, rates: (i64, i64)) {
        let (account, key) = self.venue.account(name, rates);
        self.keys.insert(account, key);
        self.naive.keys.push((account.0, KEY_ALL, false));
        self.naive.accounts.push(NaiveAccount {
            maker_rate: rates.0.into(),
            taker_rate: rates.1.into(),
            can_trade: true,
            permissions: PERMISSION_SPOT,
            ..Default::default()
        });
        for (asset, whole) in [(0, 12), (1, 25), (2, 8)] {
            self.venue.deposit(account, AssetId(asset), whole * WHOLE);
            self.naive.move_money(account, AssetId(asset), whole * WHOLE).unwrap();
        }
    }

    /// A trader's session for each of two accounts, and an adapter's for all.
    fn add_sessions(&mut self) {
        let keys: Vec<KeyId> = self.keys.values().copied().collect();
        for key in &keys[..2] {
            let session = self.venue.logon("main", Role::Trader, Lane::Hot, *key);
            self.sessions.push((session, *key));
            self.naive.sessions.push(NaiveSession {
                key: key.0,
                adapter: false,
                hot: true,
                epoch: 1,
                last: 0,
            });
        }
        let session = self.venue.logon("rest", Role::Adapter, Lane::Hot, KeyId(0));
        self.sessions.extend(keys[2..].iter().map(|key| (session, *key)));
        self.naive.sessions.push(NaiveSession {
            key: 0,
            adapter: true,
            hot: true,
            epoch: 1,
            last: 0,
        });
    }

    fn header(&mut self, who: usize) -> CommandHeader {
        let (session, key) = self.sessions[who];
        self.venue.header(session, key)
    }

    /// Mostly an open order and its owner; else whoever it is and a number near those given out.
    fn aim(&mut self, who: usize, symbol: u32, pick: u64) -> Target {
        let open = |side| self.venue.core.open_orders(SymbolId(symbol), side);
        let waiting = self.venue.core.waiting_orders(SymbolId(symbol));
        let open: Vec<_> = open(Side::Buy).chain(open(Side::Sell)).chain(waiting).collect();
        if pick.is_multiple_of(4) || open.is_empty() {
            let last = self.naive.symbols.get(symbol as usize).map_or(0, |symbol| symbol.orders);
            let order_id = OrderId((last + 1).saturating_sub(pick / 4 % 16));
            return Target { command: self.header(who), order_id, name: ClientOrderId::EMPTY };
        }
        let order = &open[(pick / 4) as usize % open.len()];
        let key = self.keys[&order.account];
        let owner = self.sessions.iter().position(|(_, of)| *of == key).unwrap();
        let (order_id, name) = (order.order_id, order.client_order_id);
        Target { command: self.header(owner), order_id, name }
    }

    /// Runs pending work as the engine does: before the next command of the symbol.
    fn settle(&mut self, symbol: u32) {
        while self.naive.is_pending(symbol) {
            self.run_pending();
        }
    }

    fn run_pending(&mut self) {
        let expected = self.naive.run_pending(self.venue.time_ns);
        let found = self.venue.apply(&RunPending::default());
        same(found, expected);
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Flawed(step, flaw) => self.send(step, Some(*flaw), false),
            Step::Hasty(step) => self.send(step, None, true),
            step => self.send(step, None, false),
        }
        self.compare();
    }

    fn send(&mut self, step: &Step, flaw: Option<Flaw>, hasty: bool) {
        let time = self.venue.time_ns;
        if let Step::New { symbol, .. }
        | Step::Cancel { symbol, .. }
        | Step::CancelNamed { symbol, .. }
        | Step::Reduce { symbol, .. } = step
            && !hasty
        {
            self.settle(*symbol);
        }
        match *step {
            Step::New { who, .. } => {
                let header = self.header(who);
                let mut order = new_order(step, header);
                if let Some(flaw) = flaw {
                    spoil(&mut order, flaw, time);
                }
                same(self.venue.apply(&order), self.naive.new_order(&order, time));
            }
            Step::Cancel { who, symbol, pick } => {
                let Target { command, order_id, .. } = self.aim(who, symbol, pick);
                let symbol = SymbolId(symbol);
                let message = CancelOrder { command, symbol, order_id, ..Default::default() };
                same(self.venue.apply(&message), self.naive.cancel(&message, time));
            }
            Step::CancelNamed { who, symbol, pick, by_id, name } => {
                let target = self.aim(who, symbol, pick);
                let names = [target.name, target.name, target.name, named(NAMES[name])];
                let message = CancelOrderNamed {
                    command: target.command,
                    symbol: SymbolId(symbol),
                    order_id: if by_id { target.order_id } else { OrderId(0) },
                    client_order_id: names[name],
                    cancel_client_order_id: named("cancel"),
                    ..Default::default()
                };
                same(self.venue.apply(&message), self.naive.cancel_named(&message, time));
            }
            Step::Reduce { who, symbol, pick, lots, odd } => {
                let Target { command, order_id, .. } = self.aim(who, symbol, pick);
                let message = ReduceOrder {
                    command,
                    symbol: SymbolId(symbol),
                    order_id,
                    new_quantity: units(symbol, 1, lots).1 + odd,
                    ..Default::default()
                };
                same(self.venue.apply(&message), self.naive.reduce(&message, time));
            }
            Step::Pass { ns } => self.venue.time_ns += ns,
            ref step => self.operate(step),
        }
    }

    /// What the operator and the engine do.
    fn operate(&mut self, step: &Step) {
        match *step {
            Step::Deposit { account, asset, amount } => {
                let (account, asset) = (AccountId(account), AssetId(asset));
                let found =
                    self.venue.apply(&Deposit { account, asset, amount, ..Default::default() });
                same(found, self.naive.move_money(account, asset, amount));
            }
            Step::Withdraw { account, asset, amount } => {
                let (account, asset) = (AccountId(account), AssetId(asset));
                let found =
                    self.venue.apply(&Withdraw { account, asset, amount, ..Default::default() });
                same(found, self.naive.move_money(account, asset, -amount));
            }
            Step::Status { symbol, status } => {
                let message =
                    SetSymbolStatus { symbol: SymbolId(symbol), status, ..Default::default() };
                self.venue.must(&message);
                self.naive.symbols[symbol as usize].status = status;
            }
            Step::Limits { open_orders, price_levels, pending_work, max_steps } => {
                let limits =
                    Limits { open_orders, price_levels, pending_work, max_steps, ..limits() };
                let found = self.venue.apply(&SetLimits { limits, ..Default::default() });
                same(found, self.naive.set_limits(limits));
            }
            Step::RunPending => self.run_pending(),
            ref other => unreachable!("{other:?}"),
        }
    }

    /// Balances, depth and pending work are the naive venue's.
    fn compare(&self) {
        let core = &self.venue.core;
        for (id, account) in (0..).zip(&self.naive.accounts) {
            for asset in 0..3 {
                let balance = core.balance(AccountId(id), AssetId(asset)).unwrap();
                let of = |map: &BTreeMap<u32, i128>| map.get(&asset).copied().unwrap_or(0) as i64;
                assert_eq!(balance.free.0, of(&account.free), "free of {id}, asset {asset}");
                assert_eq!(balance.locked.0, of(&account.locked), "locked of {id}, asset {asset}");
            }
        }
        for (id, symbol) in (0..).zip(&self.naive.symbols) {
            for (side, queues) in [(Side::Buy, &symbol.bids), (Side::Sell, &symbol.asks)] {
                let depth = core.depth(SymbolId(id), side);
                let of = |level: DepthLevel| {
                    let total = level.quantity + level.hidden;
                    (level.price.0, level.orders as usize, level.quantity, total)
                };
                let mut found: Vec<_> = depth.map(of).collect();
                if side == Side::Buy {
                    found.reverse();
                }
                let of = |queue: &VecDeque<NaiveOrder>, part: fn(&NaiveOrder) -> i64| {
                    queue.iter().map(|order| part(order) as u128).sum::<u128>()
                };
                let expected: Vec<_> = queues
                    .iter()
                    .map(|(price, queue)| {
                        let shown = of(queue, |order| order.shown);
                        (*price, queue.len(), shown, of(queue, NaiveOrder::open))
                    })
                    .collect();
                assert_eq!(found, expected, "depth of {id}");
            }
            let mut waiting: Vec<u64> = symbol.waiting.iter().map(|stop| stop.id).collect();
            waiting.sort_unstable();
            let found = core.waiting_orders(SymbolId(id));
            let mut found: Vec<u64> = found.map(|stop| stop.order_id.0).collect();
            found.sort_unstable();
            assert_eq!(found.len(), waiting.len(), "stops of {id}");
            // Which of those that one trade fires are moved first is nobody's business.
            assert!(self.naive.is_pending(id) || found == waiting, "stops of {id}");
        }
        let head = core.pending_head();
        let head = head.map(|head| (head.symbol.0, head.session.0, head.correlation));
        assert_eq!(head, self.naive.head());
    }

    /// Everything cancelled: nothing is locked, no slot is in use.
    fn drain(mut self) -> Venue {
        while !self.naive.pending.is_empty() {
            self.run_pending();
        }
        self.venue.cancel_everything(&self.keys);
        for account in self.keys.keys() {
            for asset in 0..3 {
                let balance = self.venue.core.balance(*account, AssetId(asset)).unwrap();
                assert_eq!(balance.locked, Amount(0));
            }
        }
        let counts = self.venue.core.counts();
        assert_eq!((counts.open_orders, counts.price_levels, counts.pending_work), (0, 0, 0));
        self.venue
    }
}

/// A GTC order on the first symbol.
fn placement((who, buy): (usize, bool), price: i64, lots: i64, name: usize) -> Step {
    Step::New { who, symbol: 0, buy, kind: 1, slices: 0, stop: 1, price, lots, name }
}

fn new_order(step: &Step, command: CommandHeader) -> NewOrder {
    let Step::New { symbol, buy, kind, slices, stop, price, lots, name, .. } = *step else {
        unreachable!("{step:?}")
    };
    let (price, quantity) = units(symbol, price, lots);
    let market = matches!(kind, 4 | 5 | 13 | 15);
    let order_type = match kind {
        0..4 => 1,
        4 | 5 => 2,
        6 => 7,
        stop => stop - 10,
    };
    let time_in_force = match (kind, lots % 5) {
        (0..4, _) => kind.max(1),
        (14 | 16, 0) => 2,
        (14 | 16, 1) => 3,
        (14 | 16, _) => 1,
        _ => 0,
    };
    NewOrder {
        command,
        symbol: SymbolId(symbol),
        side: if buy { 1 } else { 2 },
        order_type,
        time_in_force,
        stop_price: if kind > 12 { units(symbol, stop, 1).0 } else { 0 },
        price: if market { 0 } else { price },
        quantity: if kind == 5 { 0 } else { quantity },
        quote_quantity: if kind == 5 { price / 100 * lots * 7 } else { 0 },
        iceberg_quantity: if slices > 0 && (kind == 6 || time_in_force == 1) {
            units(symbol, 1, (lots / slices).max(1)).1
        } else {
            0
        },
        client_order_id: named(NAMES[name]),
        ..Default::default()
    }
}

fn spoil(order: &mut NewOrder, flaw: Flaw, time_ns: u64) {
    match flaw {
        Flaw::Session(session) => order.command.session = SessionId(session),
        Flaw::Epoch => order.command.epoch.0 += 1,
        Flaw::Sequence(back) => {
            order.command.sequence.0 = order.command.sequence.0.saturating_sub(back);
        }
        Flaw::Key(key) => order.command.key_id = KeyId(key),
        Flaw::Late => order.command.not_after_ns = time_ns - 1,
        Flaw::Side(side) => order.side = side,
        Flaw::Type(order_type) => order.order_type = order_type,
        Flaw::Time(time_in_force) => order.time_in_force = time_in_force,
        Flaw::Price(price) => order.price = price,
        Flaw::Quantity(quantity) => order.quantity = quantity,
        Flaw::Quote(amount) => order.quote_quantity = amount,
        Flaw::Stop(price) => order.stop_price = price,
        Flaw::Iceberg(quantity) => order.iceberg_quantity = quantity,
        // A number that names no mode: the naive venue knows no self-trade prevention.
        Flaw::Prevention(number) => order.self_trade_prevention = number | 8,
        Flaw::Flags(flags) => order.flags = flags,
    }
}

fn same(found: Result<Vec<venue::Owned>, touchline_core::Reject>, expected: Outcome) {
    assert_eq!(found.map_err(|reject| (reject.reason, reject.detail)), expected);
}

fn cases() -> u32 {
    std::env::var("TOUCHLINE_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1200)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        max_shrink_iters: 4000,
        ..Default::default()
    })]

    #[test]
    fn agrees_with_the_naive_venue(steps in prop::collection::vec(steps(1), 1..150)) {
        let mut world = World::new();
        for step in &steps {
            world.step(step);
        }
        world.drain().check_replay();
    }

    #[test]
    fn agrees_with_the_naive_venue_by_rules_2(
        steps in prop::collection::vec(steps(2), 1..150)
    ) {
        let mut world = World::with_rules(2);
        for step in &steps {
            world.step(step);
        }
        world.drain().check_replay();
    }
}

/// The same position and time for an order and its continuations: they are one aggregate trade per
/// price, and it takes two of them.
#[test]
fn continuations_keep_their_place_and_their_reply() {
    let mut world = World::new();
    let resting = placement((0, false), 3, 1, 0);
    for _ in 0..5 {
        world.step(&resting);
    }
    world.step(&placement((1, true), 4, 6, 1));
    assert_eq!(world.venue.core.counts().pending_work, 1);
    assert!(world.venue.core.has_pending(SymbolId(0)));
    world.step(&Step::Hasty(Box::new(resting.clone())));
    let below = Limits { open_orders: 3, ..limits() };
    assert!(world.venue.apply(&SetLimits { limits: below, ..Default::default() }).is_err());
    world.step(&Step::RunPending);
    assert_eq!(world.venue.core.counts().pending_work, 1);
    world.step(&Step::RunPending);
    let order = world.venue.core.open_order(SymbolId(0), OrderId(6)).unwrap();
    assert_eq!(order.remaining, Qty(7_654_321));
    assert_eq!(order.client_order_id, ClientOrderId::new("a").unwrap());
    let counters = world.venue.core.symbol(SymbolId(0)).unwrap().counters;
    assert_eq!((counters.trade, counters.aggregate_trade), (TradeId(5), AggregateTradeId(1)));
    assert_eq!(world.venue.time_ns, START_NS);
    world.drain().check_replay();
}
