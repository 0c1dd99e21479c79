//! A core and the model side by side: every command goes to both, and both must say the same.

use crate::census::Census;
use crate::messages::units;
use crate::state::{Model, Outcome};
use crate::steps::{Aim, Flaw, NAMES, Step};
use crate::venue::{Owned, START_NS, Venue, WHOLE, aligned, named, roomy};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use touchline_core::{ORDER_TYPES, ORDER_TYPES_2};
use touchline_protocol::message::Message;
use touchline_protocol::message::command::*;
use touchline_protocol::message::decode;
use touchline_protocol::message::enums::{Lane, OrderStatus, RejectReason as Why, Role};
use touchline_protocol::text::{AssetName, ClientOrderId, Name, SymbolName};
use touchline_protocol::units::*;

/// True for an outcome that more orders, or fewer steps, would have spread over transactions: something
/// is taken or ended; a FOK order expires, but room was asked for before it was tried; a sweep looks for
/// its orders among others of the account.
fn may_leave_work(before: &Model, outcome: &Outcome) -> bool {
    let moves = |event: &Owned| match event {
        Owned::Trade(_) | Owned::Prevented(_) | Owned::Canceled(_) => true,
        Owned::Result(result) => result.status == OrderStatus::Expired.to_wire(),
        Owned::MassCanceled(sweep) => {
            before.orders.iter().any(|order| order.account == sweep.account.0)
        }
        _ => false,
    };
    match outcome {
        Ok(events) => events.iter().any(moves),
        Err((reason, _)) => *reason == Why::InsufficientBalance,
    }
}

/// One who sends orders: over a session of his own, or over the adapter's.
#[derive(Clone)]
pub(crate) struct Trader {
    pub(crate) account: AccountId,
    pub(crate) key: KeyId,
    /// Name of his session; the adapter's if empty.
    session: String,
    cancelling: bool,
}

pub(crate) struct World {
    pub(crate) venue: Venue,
    pub(crate) model: Model,
    pub(crate) traders: Vec<Trader>,
    pub(crate) census: Census,
    /// What the present step gets wrong.
    pub(crate) flaw: Option<Flaw>,
    rekeyed: u32,
    /// What the present step's operator makes of it: a number that is the step's alone, so that a run
    /// stays the same when other steps are taken out of it.
    whim: u64,
}

pub(crate) fn limits() -> Limits {
    Limits {
        open_orders: 20,
        price_levels: 16,
        pending_work: 2,
        max_steps: 2,
        orders_per_interval_0: 25,
        orders_per_interval_1: 150,
        interval_0_seconds: 10,
        interval_1_seconds: 3600,
        keys: 64,
        sessions: 64,
        ..roomy()
    }
}

/// Filters that are met now and then.
pub(crate) fn filtered(rules: u32) -> SymbolFilters {
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

/// Flags of a symbol that takes everything.
pub(crate) const ALL_FLAGS: u8 = SYMBOL_ICEBERG | SYMBOL_QUOTE_QUANTITY | SYMBOL_OCO;

impl World {
    pub(crate) fn new(rules: u32) -> Self {
        let mut world = Self {
            venue: Venue::new(),
            model: Model::new(),
            traders: Vec::new(),
            census: Census::default(),
            flaw: None,
            rekeyed: 0,
            whim: 0,
        };
        world.must(&SetRules { rules: 1, ..Default::default() });
        for rules in 2..=rules {
            world.must(&SetRules { rules, ..Default::default() });
        }
        world.must(&SetLimits { limits: limits(), ..Default::default() });
        for name in ["BASE", "QUOTE", "THIRD"] {
            let name = AssetName::new(name).unwrap();
            world.must(&DefineAsset { name, precision: 8, ..Default::default() });
        }
        let symbols = [("ONE", (0, 1)), ("TWO", (2, 1)), ("THREE", (2, 0))];
        for (index, (name, (base, quote))) in symbols.into_iter().enumerate() {
            let wide = rules > 1 && index != 2;
            world.must(&DefineSymbol {
                name: SymbolName::new(name).unwrap(),
                base: AssetId(base),
                quote: AssetId(quote),
                status: 2,
                order_types: if wide { ORDER_TYPES_2 } else { ORDER_TYPES },
                flags: if wide { ALL_FLAGS } else { 0 },
                permissions: PERMISSION_SPOT,
                filters: if index == 1 { filtered(rules) } else { SymbolFilters::default() },
                ..Default::default()
            });
        }
        if rules > 1 {
            let filters =
                SetVenueFilters { max_orders: 14, max_algo_orders: 5, ..Default::default() };
            world.must(&filters);
        }
        let rates = [(0, 0), (100_000, 150_000), (WHOLE / 3, WHOLE), (7, 33_333_333)];
        for (index, rates) in rates.into_iter().enumerate() {
            world.add_account(["ann", "bob", "cat", "dan"][index], rates);
        }
        // A key that is good for reading only.
        let account = AccountId(1);
        world.must(&CreateKey { account, permissions: KEY_USER_DATA, ..Default::default() });
        world.log_on_adapter();
        // Ann has a second session.
        let more = Trader { session: "more".to_owned(), ..world.traders[0].clone() };
        world.traders.push(more);
        for who in [0, 1, 4] {
            world.log_on(who, rules > 1 && who == 0);
        }
        assert_eq!(world.venue.time_ns, START_NS);
        world.compare();
        world
    }

    fn add_account(&mut self, name: &str, (maker_rate, taker_rate): (i64, i64)) {
        self.must(&CreateAccount {
            name: Name::new(name).unwrap(),
            maker_rate,
            taker_rate,
            flags: ACCOUNT_CAN_TRADE | ACCOUNT_CAN_WITHDRAW | ACCOUNT_CAN_DEPOSIT,
            permissions: PERMISSION_SPOT,
            ..Default::default()
        });
        let account = AccountId(self.traders.len() as u32 + 1);
        let key = self.add_key(account);
        let session = if self.traders.len() < 2 { "main" } else { "" }.to_owned();
        self.traders.push(Trader { account, key, session, cancelling: false });
        for (asset, whole) in [(0, 12), (1, 25), (2, 8)] {
            let (asset, amount) = (AssetId(asset), whole * WHOLE);
            self.must(&Deposit { account, asset, amount, ..Default::default() });
        }
    }

    fn add_key(&mut self, account: AccountId) -> KeyId {
        self.must(&CreateKey { account, permissions: KEY_ALL, ..Default::default() });
        KeyId(self.model.keys.len() as u64)
    }

    fn log_on_adapter(&mut self) {
        let name = Name::new("rest").unwrap();
        self.must(&Logon { name, role: 4, lane: 1, ..Default::default() });
    }

    /// A connection for a trader's session.
    pub(crate) fn log_on(&mut self, who: usize, cancelling: bool) {
        let trader = &mut self.traders[who];
        trader.cancelling = cancelling;
        if trader.session.is_empty() {
            return self.log_on_adapter();
        }
        let message = Logon {
            command: CommandHeader { key_id: trader.key, ..Default::default() },
            name: Name::new(&trader.session).unwrap(),
            role: 1,
            lane: 1,
            flags: if cancelling { LOGON_CANCEL_ON_DISCONNECT } else { 0 },
            ..Default::default()
        };
        let refused = self.send(&message).is_err();
        if refused && cancelling {
            self.log_on(who, false);
        }
    }

    /// The session that a trader sends over.
    pub(crate) fn session_of(&self, who: usize) -> SessionId {
        let Trader { key, session, .. } = &self.traders[who];
        let (key, name) =
            if session.is_empty() { (KeyId(0), "rest") } else { (*key, session.as_str()) };
        let found = self.venue.core.find_session(key, &Name::new(name).unwrap());
        found.expect("has logged on before")
    }

    /// The header of a trader's next command, connected if he is not, and wrong if the step is.
    pub(crate) fn header(&mut self, who: usize) -> CommandHeader {
        let session = self.session_of(who);
        if !self.venue.core.session(session).unwrap().connected {
            self.log_on(who, self.traders[who].cancelling);
        }
        let header = self.venue.header(session, self.traders[who].key);
        self.flawed(header)
    }

    /// The header of an operator's next command: the engine's own, or an admin's of that lane, or now
    /// and then of the other.
    pub(crate) fn operator(&mut self, lane: Lane) -> CommandHeader {
        if self.whim.is_multiple_of(2) {
            return CommandHeader::default();
        }
        let hot = (lane == Lane::Hot) != (self.whim % 16 == 1);
        let (name, lane) = if hot { ("fast", Lane::Hot) } else { ("slow", Lane::Cold) };
        let name = Name::new(name).unwrap();
        let known = self.venue.core.find_session(KeyId(0), &name);
        let connected = known.and_then(|known| self.venue.core.session(known));
        if connected.is_none_or(|session| !session.connected) {
            let (role, lane) = (Role::Admin.to_wire(), lane.to_wire());
            self.must(&Logon { name, role, lane, ..Default::default() });
        }
        let session = self.venue.core.find_session(KeyId(0), &name).expect("is connected");
        let header = self.venue.header(session, KeyId(0));
        self.flawed(header)
    }

    /// The header with what the step gets wrong in it.
    fn flawed(&self, mut header: CommandHeader) -> CommandHeader {
        match self.flaw {
            Some(Flaw::Session(session)) => header.session = SessionId(session),
            Some(Flaw::Epoch) => header.epoch.0 += 1,
            Some(Flaw::Sequence(back)) => {
                header.sequence.0 = header.sequence.0.saturating_sub(back);
            }
            Some(Flaw::Key(key)) => header.key_id = KeyId(key),
            Some(Flaw::Late) => header.not_after_ns = self.venue.time_ns - 1,
            _ => {}
        }
        header
    }

    /// Whose an open order is, its number and its name, or something that is near an order.
    pub(crate) fn aim(&self, aim: Aim) -> (usize, OrderId, ClientOrderId) {
        let open: Vec<_> = self.model.on(aim.symbol).collect();
        if aim.pick.is_multiple_of(4) || open.is_empty() {
            let last = self.model.symbols.get(aim.symbol as usize).map_or(0, |of| of.orders);
            let id = (last + 1).saturating_sub(aim.pick / 4 % 16);
            return (aim.who, OrderId(id), named(NAMES[(aim.pick / 64 % 4) as usize]));
        }
        let order = open[(aim.pick / 4) as usize % open.len()];
        (self.owner(order.account, aim.who), OrderId(order.id), order.name)
    }

    /// Who sends for an account; `who` if it is one of them.
    fn owner(&self, account: u32, who: usize) -> usize {
        let sends = |who: &usize| self.traders[*who].account.0 == account;
        Some(who).filter(sends).or_else(|| (0..self.traders.len()).find(sends)).unwrap()
    }

    /// As [`aim`](Self::aim), for lists of any symbol: who, symbol, number and name.
    pub(crate) fn aim_at_list(&self, aim: Aim) -> (usize, u32, OrderListId, ClientOrderId) {
        let lists = &self.model.lists;
        if aim.pick.is_multiple_of(4) || lists.is_empty() {
            let id = OrderListId((self.model.lists_made - (aim.pick / 4 % 8) as i64).max(-1));
            return (aim.who, aim.symbol, id, named(NAMES[(aim.pick / 64 % 4) as usize]));
        }
        let list = &lists[(aim.pick / 4) as usize % lists.len()];
        (self.owner(list.account, aim.who), list.symbol, OrderListId(list.id), list.name)
    }

    /// Sends a command to both.
    pub(crate) fn send<M: Message>(&mut self, message: &M) -> Outcome {
        let words = aligned(bytemuck::bytes_of(message));
        let command = decode::command(bytemuck::cast_slice(&words)).unwrap();
        let before = self.model.clone();
        let mut expected = self.model.apply(&command, self.venue.time_ns);
        let found = self.venue.apply_bytes(&words);
        let found = found.map_err(|reject| (reject.reason, reject.detail));
        // With no place left for pending work, what might need one may be refused before it is tried:
        // what takes or ends others' orders, and what cannot be paid for.
        let full = before.ordinary_work() >= before.limits.pending_work;
        let refused = found == Err((Why::CapacityReached, 7));
        if full && refused && may_leave_work(&before, &expected) {
            self.model = before;
            expected = found.clone();
        }
        if found != expected {
            panic!("after {command:?}\n core: {found:#?}\nmodel: {expected:#?}");
        }
        self.census.count(M::NAME, &found);
        for corner in std::mem::take(&mut self.model.notes) {
            self.census.add(format!("corner: {corner}"));
        }
        found
    }

    pub(crate) fn must<M: Message>(&mut self, message: &M) {
        assert!(self.send(message).is_ok(), "{}", M::NAME);
    }

    /// Runs pending work as the engine does: before the next command of the symbol.
    pub(crate) fn settle(&mut self, symbol: u32) {
        let every = symbol == EVERY;
        while self.model.is_pending(symbol) || every && !self.model.work.is_empty() {
            self.must(&RunPending::default());
        }
    }

    pub(crate) fn step(&mut self, step: &Step) {
        let (mut step, mut hasty) = (step, false);
        loop {
            step = match step {
                Step::Flawed(step, flaw) => {
                    self.flaw = Some(*flaw);
                    step
                }
                Step::Hasty(step) => {
                    hasty = true;
                    step
                }
                step => {
                    let mut hasher = DefaultHasher::new();
                    format!("{step:?}").hash(&mut hasher);
                    self.whim = hasher.finish() >> 8;
                    break self.act(step, hasty);
                }
            };
        }
        self.flaw = None;
        self.compare();
    }

    /// The account has another key, and its sessions of the old one are of no use.
    pub(crate) fn rekey(&mut self, who: usize) {
        let Trader { account, key, .. } = self.traders[who];
        if self.send(&RevokeKey { key, ..Default::default() }).is_err() || self.rekeyed == 20 {
            return;
        }
        self.rekeyed += 1;
        let key = self.add_key(account);
        for who in 0..self.traders.len() {
            if self.traders[who].account == account {
                self.traders[who].key = key;
                self.log_on(who, self.traders[who].cancelling);
            }
        }
    }

    /// Everything ends: nothing is locked, no place is in use, and what is free is what was paid in.
    pub(crate) fn drain(mut self) -> Self {
        while !self.model.work.is_empty() {
            self.must(&RunPending::default());
        }
        let symbols = (0..self.model.symbols.len() as u32).map(SymbolId);
        if self.model.rules > 1 {
            let limits = Limits { open_orders: 1000, price_levels: 1000, max_steps: 8, ..limits() };
            self.must(&SetLimits { limits, ..Default::default() });
            for symbol in symbols {
                self.must(&ExpireAll { symbol, ..Default::default() });
                self.settle(symbol.0);
            }
            self.compare();
        } else {
            let keys = self.traders.iter().map(|trader| (trader.account, trader.key));
            let keys: BTreeMap<_, _> = keys.collect();
            self.venue.cancel_everything(&keys);
        }
        for (asset, held) in &self.model.held {
            let mut sum = 0;
            for account in 0..self.model.accounts.len() as u32 {
                let balance = self.venue.core.balance(AccountId(account), AssetId(*asset)).unwrap();
                assert_eq!(balance.locked, Amount(0), "locked of {account}, asset {asset}");
                sum += i128::from(balance.free.0);
            }
            assert_eq!(sum, *held, "all of asset {asset}");
        }
        let counts = self.venue.core.counts();
        assert_eq!((counts.open_orders, counts.price_levels, counts.pending_work), (0, 0, 0));
        self
    }

    /// A price so many ticks from the last one.
    pub(crate) fn price_near(&self, symbol: u32, ticks: i64) -> i64 {
        let last = self.model.symbols.get(symbol as usize).and_then(|symbol| symbol.last);
        last.unwrap_or(units(symbol, 6, 1).0).saturating_add(units(symbol, ticks, 1).0)
    }
}
