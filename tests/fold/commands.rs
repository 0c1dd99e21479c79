//! Random commands of every kind to a small, crowded venue: few prices, few accounts, some of them
//! poor, transactions of few steps, so that everything meets everything.

use super::venue::{Outcomes, Venue};
use crate::random::Random;
use std::collections::BTreeMap;
use touchline_core::{ORDER_TYPES, ORDER_TYPES_2, RULES_MAX};
use touchline_protocol::message::Message;
use touchline_protocol::message::command::*;
use touchline_protocol::message::decode::{Command, Event};
use touchline_protocol::message::enums::{Lane, Role, SymbolStatus};
use touchline_protocol::text::{AssetName, ClientOrderId, Name, SymbolName};
use touchline_protocol::units::{AccountId, AssetId, KeyId, SessionId, SymbolId, UNITS_PER_WHOLE};

/// One whole unit.
pub(super) const WHOLE: i64 = UNITS_PER_WHOLE;
/// Quantities are multiples of this, so that quote amounts and commissions need rounding.
pub(super) const LOT: i64 = 1_234_567;
/// Prices are this far apart from each other, and none is a round number.
pub(super) const TICK: i64 = WHOLE / 2;
const FIRST_PRICE: i64 = 95 * WHOLE + 7;
const PRICES: u64 = 21;
/// Commands of one run.
const STEPS: u32 = 3000;

/// Runs besides one of a fresh seed; `TOUCHLINE_RUNS=60` compares books at more than 10⁵ points.
fn runs() -> u64 {
    std::env::var("TOUCHLINE_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(12)
}

/// Who can send.
pub(super) struct Parties {
    /// Live keys with their accounts.
    pub(super) keys: Vec<(KeyId, AccountId)>,
    /// Hot sessions of traders with their keys.
    pub(super) traders: Vec<(SessionId, KeyId)>,
    pub(super) adapter: SessionId,
    pub(super) admin: SessionId,
}

pub(super) struct Run {
    pub(super) venue: Venue,
    pub(super) random: Random,
    pub(super) parties: Parties,
    names: u64,
}

#[test]
fn the_views_hold_what_the_core_holds() {
    let mut commands: BTreeMap<&str, Outcomes> = BTreeMap::new();
    let mut events: BTreeMap<&str, u64> = BTreeMap::new();
    let fresh = Random::fresh_seed();
    let (mut points, mut messages) = (0, 0);
    for seed in (0..runs()).chain([fresh]) {
        println!("seed {seed}");
        let mut run = Run::new(seed);
        (0..STEPS).for_each(|step| run.step(step));
        run.venue.past.check(&run.venue.state);
        points += run.venue.feed.points;
        messages += run.venue.feed.messages;
        for (name, more) in &run.venue.commands {
            let sum = commands.entry(name).or_default();
            sum.accepted += more.accepted;
            sum.rejected += more.rejected;
        }
        for (name, more) in &run.venue.events {
            *events.entry(name).or_default() += more;
        }
        println!("{:?}", run.venue.reasons);
    }
    println!("{commands:#?}\n{events:#?}");
    println!("the feed's books compared at {points} points, behind {messages} messages");
    for (_, name) in Command::TEMPLATES {
        let outcomes = commands.get(name).copied().unwrap_or_default();
        assert!(outcomes.accepted > 20, "{name} was hardly accepted: {outcomes:?}");
    }
    for (_, name) in Event::TEMPLATES {
        // What is never in a log.
        let is_logged = !matches!(
            *name,
            "OrderValid" | "Rejected" | "Gap" | "OrderOpened" | "OrderClosed" | "OrderFilled"
        );
        let seen = events.get(name).copied().unwrap_or_default();
        assert!(!is_logged || seen > 20, "{name}: {events:?}");
    }
}

pub(super) fn limits() -> Limits {
    Limits {
        assets: 4,
        symbols: 5,
        accounts: 12,
        keys: 40,
        sessions: 60,
        open_orders: 70,
        price_levels: 50,
        pending_work: 3,
        max_steps: 5,
        orders_per_interval_0: 40,
        orders_per_interval_1: 0,
        interval_0_seconds: 10,
        interval_1_seconds: 86_400,
        reserved: 0,
    }
}

impl Run {
    /// A venue with a symbol from the time of rules 1, and two of the present rules.
    fn new(seed: u64) -> Self {
        let mut venue = Venue::new();
        venue.must(&SetRules { rules: 1, ..Default::default() });
        venue.must(&SetLimits { limits: limits(), ..Default::default() });
        for name in ["BTC", "ETH", "USDT"] {
            let name = AssetName::new(name).expect("a short name");
            venue.must(&DefineAsset { name, precision: 8, ..Default::default() });
        }
        venue.must(&symbol("OLD", (0, 2), ORDER_TYPES, 0));
        let nobody = SessionId(0);
        let parties = Parties { keys: vec![], traders: vec![], adapter: nobody, admin: nobody };
        let mut run = Self { venue, random: Random::new(seed), parties, names: 0 };
        for account in 1..=4 {
            run.account(AccountId(account));
        }
        run.parties.adapter = run.log_on("adapter", Role::Adapter, Lane::Hot, KeyId(0));
        run.parties.admin = run.log_on("admin", Role::Admin, Lane::Cold, KeyId(0));
        for _ in 0..200 {
            run.trade();
        }
        for rules in 2..=RULES_MAX {
            let mut turns = 0;
            while run.venue.core.pending_head().is_some() {
                turns += 1;
                assert!(turns < 1_000_000, "pending work comes to no end");
                run.venue.must(&RunPending::default());
            }
            run.venue.must(&SetRules { rules, ..Default::default() });
        }
        for (name, assets) in [("BTCUSDT", (0, 2)), ("ETHBTC", (1, 0))] {
            let flags = SYMBOL_ICEBERG | SYMBOL_QUOTE_QUANTITY;
            let all = symbol(name, assets, ORDER_TYPES_2, flags | SYMBOL_OCO);
            if run.venue.apply(&all).is_err() {
                run.venue.must(&symbol(name, assets, ORDER_TYPES_2, flags));
            }
        }
        run
    }

    pub(super) fn account(&mut self, account: AccountId) {
        self.names += 1;
        let name = Name::new(&format!("account-{}", self.names)).expect("a short name");
        self.venue.must(&CreateAccount {
            name,
            maker_rate: 100_000,
            taker_rate: 150_001,
            flags: ACCOUNT_CAN_TRADE | ACCOUNT_CAN_WITHDRAW | ACCOUNT_CAN_DEPOSIT,
            permissions: PERMISSION_SPOT,
            ..Default::default()
        });
        self.key(account);
        // The third is poor.
        let amount = if account.0 == 3 { WHOLE / 4 } else { 1000 * WHOLE };
        for asset in (0..3).map(AssetId) {
            self.venue.must(&Deposit { account, asset, amount, ..Default::default() });
        }
    }

    pub(super) fn key(&mut self, account: AccountId) {
        let create = CreateKey { account, permissions: KEY_ALL, ..Default::default() };
        if self.venue.apply(&create).is_ok() {
            let key = KeyId(u64::from(self.venue.core.counts().keys));
            self.parties.keys.push((key, account));
        }
    }

    pub(super) fn log_on(
        &mut self,
        name: &str,
        role: Role,
        lane: Lane,
        key_id: KeyId,
    ) -> SessionId {
        let name = Name::new(name).expect("a short name");
        let mut logon = Logon {
            command: CommandHeader { key_id, ..Default::default() },
            name,
            role: role.to_wire(),
            lane: lane.to_wire(),
            ..Default::default()
        };
        if role == Role::Trader && self.one_in(2) {
            logon.flags = LOGON_CANCEL_ON_DISCONNECT;
        }
        if self.venue.apply(&logon).is_err() {
            logon.flags = 0;
            self.venue.must(&logon);
        }
        self.venue.core.find_session(key_id, &name).expect("just opened")
    }

    pub(super) fn one_in(&mut self, number: u64) -> bool {
        self.random.below(number) == 0
    }

    pub(super) fn pick<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.random.below(among.len() as u64) as usize]
    }

    /// Mostly one that takes every type.
    pub(super) fn symbol(&mut self) -> SymbolId {
        let symbols = u64::from(self.venue.core.counts().symbols);
        let first = u64::from(symbols > 1 && !self.one_in(8));
        SymbolId((first + self.random.below(symbols - first)) as u32)
    }

    pub(super) fn account_id(&mut self) -> AccountId {
        AccountId(1 + self.random.below(u64::from(self.venue.core.counts().accounts) - 1) as u32)
    }

    pub(super) fn price(&mut self) -> i64 {
        FIRST_PRICE + self.random.below(PRICES) as i64 * TICK
    }

    /// A distance between prices.
    pub(super) fn ticks(&mut self, most: u64) -> i64 {
        (1 + self.random.below(most)) as i64 * TICK
    }

    pub(super) fn quantity(&mut self, most: u64) -> i64 {
        (1 + self.random.below(most)) as i64 * LOT
    }

    /// A name that may well be in use.
    pub(super) fn name(&mut self) -> ClientOrderId {
        if self.one_in(3) {
            return ClientOrderId::EMPTY;
        }
        ClientOrderId::new(&format!("c{}", self.random.below(40))).expect("a short name")
    }

    /// One of few, so that lists on several symbols share theirs.
    pub(super) fn list_name(&mut self) -> ClientOrderId {
        if self.one_in(4) {
            return ClientOrderId::EMPTY;
        }
        ClientOrderId::new(&format!("l{}", self.random.below(3))).expect("a short name")
    }

    /// A header of whoever may send for a random account: the adapter, or a trader of its own.
    pub(super) fn hot(&mut self) -> CommandHeader {
        let trader = (!self.parties.traders.is_empty() && self.one_in(2))
            .then(|| self.pick(&self.parties.traders.clone()));
        match trader {
            Some((session, key)) => self.venue.header(session, key),
            None => {
                let (key, _) = self.pick(&self.parties.keys.clone());
                self.venue.header(self.parties.adapter, key)
            }
        }
    }

    /// As [`hot`](Self::hot), for this account, if it has a live key.
    pub(super) fn hot_of(&mut self, account: AccountId) -> Option<CommandHeader> {
        let keys: Vec<KeyId> =
            self.parties.keys.iter().filter(|key| key.1 == account).map(|key| key.0).collect();
        if keys.is_empty() {
            return None;
        }
        let key = self.pick(&keys);
        Some(self.venue.header(self.parties.adapter, key))
    }

    pub(super) fn cold(&mut self) -> CommandHeader {
        self.venue.header(self.parties.admin, KeyId(0))
    }

    fn step(&mut self, step: u32) {
        // Time stands still now and then.
        self.venue.time_ns += self.random.below(3) * 300_000_000;
        let is_pending = self.venue.core.pending_head().is_some();
        if is_pending && !self.one_in(6) {
            return self.venue.must(&RunPending::default());
        }
        match self.random.below(100) {
            0..50 => self.trade(),
            50..60 => self.change_orders(),
            60..82 => self.cancel(),
            82..88 => self.list(),
            88..96 => self.admin(step),
            _ => self.sessions(),
        }
    }

    pub(super) fn send<M: Message>(&mut self, message: &M) -> bool {
        self.venue.apply(message).is_ok()
    }
}

pub(super) fn symbol(
    name: &str,
    (base, quote): (u32, u32),
    order_types: u8,
    flags: u8,
) -> DefineSymbol {
    DefineSymbol {
        name: SymbolName::new(name).expect("a short name"),
        base: AssetId(base),
        quote: AssetId(quote),
        status: SymbolStatus::Trading.to_wire(),
        order_types,
        flags,
        permissions: PERMISSION_SPOT,
        filters: SymbolFilters {
            price_min: FIRST_PRICE % TICK,
            tick_size: TICK,
            lot_step: LOT,
            ..Default::default()
        },
        ..Default::default()
    }
}
