//! The model's venue: what there is, as plainly as possible. One list of open orders, sorted and
//! filtered anew for every question; numbers of 128 bits; no index, no running total. The rules are in
//! the modules beside it; it shares no code with the core.

use crate::venue::Owned;
use std::collections::{BTreeMap, VecDeque};
use touchline_protocol::message::command::{CommandHeader, Limits, SymbolFilters};
use touchline_protocol::message::enums::{
    OrderType, RejectReason as Why, SelfTradePrevention, Side, TimeInForce,
};
use touchline_protocol::text::{AssetName, ClientOrderId, Name, SymbolName};
use touchline_protocol::units::UNITS_PER_WHOLE;

/// Reason and detail.
pub(crate) type Rejection = (Why, u32);
pub(crate) type Outcome = Result<Vec<Owned>, Rejection>;

/// 10⁸: one whole unit, and a rate of all.
pub(crate) const ONE: i128 = UNITS_PER_WHOLE as i128;

/// Commission rates, 10⁻⁸ of the received amount.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Rates {
    pub(crate) maker: i64,
    pub(crate) taker: i64,
    pub(crate) buyer: i64,
    pub(crate) seller: i64,
}

#[derive(Clone, Default)]
pub(crate) struct Account {
    pub(crate) name: Name,
    /// Balances by asset.
    pub(crate) free: BTreeMap<u32, i128>,
    pub(crate) locked: BTreeMap<u32, i128>,
    pub(crate) rates: Rates,
    pub(crate) flags: u8,
    pub(crate) permissions: u8,
    /// `SelfTradePrevention` of orders that name none; 0 for none.
    pub(crate) prevention: u8,
    pub(crate) killed: bool,
    /// When its orders were accepted.
    pub(crate) accepted: Vec<u64>,
}

#[derive(Clone)]
pub(crate) struct Key {
    pub(crate) account: u32,
    pub(crate) permissions: u8,
    pub(crate) revoked: bool,
}

#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) name: Name,
    pub(crate) key: u64,
    /// `Role` and `Lane`.
    pub(crate) role: u8,
    pub(crate) lane: u8,
    pub(crate) epoch: u32,
    pub(crate) connected: bool,
    pub(crate) cancel_on_disconnect: bool,
    /// Last sequence that was decided.
    pub(crate) last: u64,
}

#[derive(Clone)]
pub(crate) struct Symbol {
    pub(crate) name: SymbolName,
    pub(crate) base: u32,
    pub(crate) quote: u32,
    pub(crate) status: u8,
    pub(crate) order_types: u8,
    pub(crate) flags: u8,
    pub(crate) permissions: u8,
    pub(crate) filters: SymbolFilters,
    /// Price of the last trade.
    pub(crate) last: Option<i64>,
    /// Every trade: time, price, quantity.
    pub(crate) history: Vec<(u64, i64, i64)>,
    /// The last numbers given out.
    pub(crate) orders: u64,
    pub(crate) trades: u64,
    pub(crate) aggregates: u64,
    pub(crate) updates: u64,
}

impl Symbol {
    /// The asset that an order of this side locks.
    pub(crate) fn paid_with(&self, side: Side) -> u32 {
        if side == Side::Buy { self.quote } else { self.base }
    }

    pub(crate) fn is_trading(&self) -> bool {
        self.status == 2
    }
}

/// Where an order is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// It is the aggressor and in no queue.
    Taking,
    /// In the book; the lower the turn the earlier at its price.
    Book { turn: u64 },
    /// A stop that no trade has reached.
    Waiting,
    /// A stop that a trade has reached, before its turn.
    Fired { trade: u64 },
}

#[derive(Clone)]
pub(crate) struct Order {
    pub(crate) symbol: u32,
    pub(crate) id: u64,
    pub(crate) account: u32,
    pub(crate) session: u32,
    pub(crate) side: Side,
    pub(crate) order_type: OrderType,
    pub(crate) time_in_force: TimeInForce,
    /// 0 for those without a limit.
    pub(crate) price: i64,
    /// Executed part included.
    pub(crate) quantity: i64,
    pub(crate) executed: i64,
    pub(crate) executed_quote: i64,
    pub(crate) locked: i128,
    /// Price that fires it; 0 for none, and from its turn on.
    pub(crate) stop: i64,
    /// What it shows at a time; 0: everything.
    pub(crate) iceberg: i64,
    /// What it shows now.
    pub(crate) shown: i64,
    /// The list it was placed in; -1 for none. It stays when the list is closed.
    pub(crate) list: i64,
    /// `SelfTradePrevention`; 0: the account's.
    pub(crate) prevention: u8,
    /// What that was when it began to take: the account's may change before it goes on.
    pub(crate) mode: SelfTradePrevention,
    pub(crate) name: ClientOrderId,
    /// Counts up with every order placed in the venue.
    pub(crate) placed: u64,
    pub(crate) place: Place,
    /// The book had less than its quote quantity asked for.
    pub(crate) short: bool,
    /// What self-trade prevention kept an order without a limit from taking: it takes it nowhere else.
    pub(crate) prevented: i64,
    /// It has taken the last that its lock paid for.
    pub(crate) out_of_lock: bool,
    /// Price and time of its last fill as the aggressor.
    pub(crate) last_fill: Option<(i64, u64)>,
    /// Who waits for its result: session, correlation, order counts to report.
    pub(crate) asked_by: Asked,
}

/// Who waits for a terminal reply, and the order counts to put into it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) session: u32,
    pub(crate) correlation: u64,
    pub(crate) counts: [u32; 2],
}

impl Asked {
    pub(crate) fn by(header: &CommandHeader) -> Self {
        Self { session: header.session.0, correlation: header.correlation, ..Self::default() }
    }
}

impl Order {
    pub(crate) fn open(&self) -> i64 {
        self.quantity - self.executed
    }

    /// What an aggressor still wants to take.
    pub(crate) fn wanted(&self) -> i64 {
        self.open() - self.prevented
    }

    pub(crate) fn in_book(&self) -> bool {
        matches!(self.place, Place::Book { .. })
    }

    /// True for what rests when nothing more can be taken.
    pub(crate) fn rests(&self) -> bool {
        rests(self.order_type, self.time_in_force)
    }

    /// True for a stop before its turn: the filters call it an algo order.
    pub(crate) fn is_algo(&self) -> bool {
        self.stop > 0
    }
}

/// STOP_LOSS BUY and TAKE_PROFIT SELL fire when the price is at least theirs, the others when it is at
/// most theirs (facts 5.3).
pub(crate) fn fires_upwards(order_type: OrderType, side: Side) -> bool {
    use OrderType::{StopLoss, StopLossLimit, TakeProfit, TakeProfitLimit};
    matches!(
        (order_type, side),
        (StopLoss | StopLossLimit, Side::Buy) | (TakeProfit | TakeProfitLimit, Side::Sell)
    )
}

pub(crate) fn is_stop(order_type: OrderType) -> bool {
    use OrderType::{StopLoss, StopLossLimit, TakeProfit, TakeProfitLimit};
    matches!(order_type, StopLoss | StopLossLimit | TakeProfit | TakeProfitLimit)
}

/// True for the types that have a price.
pub(crate) fn has_limit(order_type: OrderType) -> bool {
    !matches!(order_type, OrderType::Market | OrderType::StopLoss | OrderType::TakeProfit)
}

/// True for the types that have a time in force.
pub(crate) fn is_timed(order_type: OrderType) -> bool {
    has_limit(order_type) && order_type != OrderType::LimitMaker
}

pub(crate) fn rests(order_type: OrderType, time_in_force: TimeInForce) -> bool {
    has_limit(order_type) && time_in_force == TimeInForce::Gtc
}

/// True if the last price has reached a stop.
pub(crate) fn is_reached(order_type: OrderType, side: Side, stop: i64, last: Option<i64>) -> bool {
    let upwards = fires_upwards(order_type, side);
    last.is_some_and(|last| if upwards { last >= stop } else { last <= stop })
}

/// Two orders of which one ends the other, while both are open (OCO).
#[derive(Clone)]
pub(crate) struct List {
    pub(crate) id: i64,
    pub(crate) account: u32,
    pub(crate) symbol: u32,
    pub(crate) stop_leg: u64,
    pub(crate) limit_leg: u64,
    pub(crate) name: ClientOrderId,
}

/// Whose orders a sweep ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Whose {
    Account(u32),
    /// Those of an account that some sessions placed.
    Sessions {
        account: u32,
        sessions: Vec<u32>,
    },
    Everybody,
}

/// A command that ends many orders.
#[derive(Clone)]
pub(crate) struct Sweep {
    pub(crate) whose: Whose,
    /// On one symbol, or on all.
    pub(crate) symbol: Option<u32>,
    /// Of a killed account or a revoked key: it overtakes other work.
    pub(crate) urgent: bool,
    /// Only those with a lower placement number.
    pub(crate) placed_before: u64,
    /// What it has ended so far.
    pub(crate) orders: u64,
    pub(crate) lists: u64,
    pub(crate) asked_by: Asked,
}

/// What is to be done before the symbol takes other commands.
#[derive(Clone)]
pub(crate) enum Work {
    /// An aggressor goes on.
    Aggressor(Box<Order>),
    /// Fired stops of a symbol have their turn.
    Stops(u32),
    Sweep(Sweep),
}

impl Work {
    pub(crate) fn is_urgent(&self) -> bool {
        matches!(self, Self::Sweep(sweep) if sweep.urgent)
    }

    /// The symbol that it is about; `None`: all of them.
    pub(crate) fn symbol(&self) -> Option<u32> {
        match self {
            Self::Aggressor(order) => Some(order.symbol),
            Self::Stops(symbol) => Some(*symbol),
            Self::Sweep(sweep) => sweep.symbol,
        }
    }
}

#[derive(Clone, Default)]
pub(crate) struct Model {
    pub(crate) rules: u32,
    pub(crate) limits: Limits,
    pub(crate) time: u64,
    pub(crate) assets: Vec<AssetName>,
    /// The fee account first.
    pub(crate) accounts: Vec<Account>,
    /// Key 1 first.
    pub(crate) keys: Vec<Key>,
    /// Session 1 first.
    pub(crate) sessions: Vec<Session>,
    pub(crate) symbols: Vec<Symbol>,
    /// Open orders of all symbols, aggressors not among them.
    pub(crate) orders: Vec<Order>,
    /// Open lists.
    pub(crate) lists: Vec<List>,
    pub(crate) work: VecDeque<Work>,
    /// Rates set for a symbol (account `None`) or a pair.
    pub(crate) fees: BTreeMap<(Option<u32>, u32), Rates>,
    /// EXCHANGE_MAX_NUM_ORDERS and EXCHANGE_MAX_NUM_ALGO_ORDERS; 0: none.
    pub(crate) max_orders: u32,
    pub(crate) max_algo_orders: u32,
    /// Deposits less withdrawals, by asset.
    pub(crate) held: BTreeMap<u32, i128>,
    /// How many orders were placed, places in queues given and lists made.
    pub(crate) placed: u64,
    pub(crate) turns: u64,
    pub(crate) lists_made: i64,
    /// Corners of the rules that the present command has come to.
    pub(crate) notes: Vec<&'static str>,
}

/// Price × quantity in 10⁻⁸ of the quote asset, rounded up: what a buy locks.
pub(crate) fn up(price: i64, quantity: i64) -> i128 {
    (i128::from(price) * i128::from(quantity) + ONE - 1) / ONE
}

/// The same truncated: what a fill moves.
pub(crate) fn down(price: i64, quantity: i64) -> i128 {
    i128::from(price) * i128::from(quantity) / ONE
}

/// The rule of PRICE_FILTER, LOT_SIZE and MARKET_LOT_SIZE (contract 2, Filters); 0 disables a part.
pub(crate) fn fits(value: i64, min: i64, max: i64, step: i64) -> bool {
    (min == 0 || value >= min)
        && (max == 0 || value <= max)
        && (step == 0 || (i128::from(value) - i128::from(min)) % i128::from(step) == 0)
}

pub(crate) fn check(holds: bool, why: Why) -> Result<(), Rejection> {
    if holds { Ok(()) } else { Err((why, 0)) }
}

pub(crate) fn check_detail(holds: bool, why: Why, detail: u32) -> Result<(), Rejection> {
    if holds { Ok(()) } else { Err((why, detail)) }
}

impl Model {
    pub(crate) fn symbol(&self, id: u32) -> &Symbol {
        &self.symbols[id as usize]
    }

    pub(crate) fn symbol_mut(&mut self, id: u32) -> &mut Symbol {
        &mut self.symbols[id as usize]
    }

    pub(crate) fn account(&self, id: u32) -> &Account {
        &self.accounts[id as usize]
    }

    pub(crate) fn account_mut(&mut self, id: u32) -> &mut Account {
        &mut self.accounts[id as usize]
    }

    /// Pending work that the limit counts.
    pub(crate) fn ordinary_work(&self) -> u32 {
        self.work.iter().filter(|work| !work.is_urgent()).count() as u32
    }

    /// Which pending work goes on next. Halt, kill and revocation overtake pending work (architecture
    /// 7); but an order that takes already is ended first.
    pub(crate) fn turn(&self) -> usize {
        if !self.work.iter().any(Work::is_urgent) {
            return 0;
        }
        let taking = self.work.iter().position(|work| matches!(work, Work::Aggressor(_)));
        taking.or_else(|| self.work.iter().position(Work::is_urgent)).expect("there is one")
    }

    /// Says that a corner was reached, for the census.
    pub(crate) fn note(&mut self, corner: &'static str) {
        self.notes.push(corner);
    }

    /// Open orders of a symbol.
    pub(crate) fn on(&self, symbol: u32) -> impl Iterator<Item = &Order> {
        self.orders.iter().filter(move |order| order.symbol == symbol)
    }

    /// Open orders of an account on a symbol.
    pub(crate) fn own(&self, account: u32, symbol: u32) -> impl Iterator<Item = &Order> {
        self.on(symbol).filter(move |order| order.account == account)
    }

    pub(crate) fn find(&self, symbol: u32, id: u64) -> Option<&Order> {
        self.on(symbol).find(|order| order.id == id)
    }

    pub(crate) fn find_mut(&mut self, symbol: u32, id: u64) -> Option<&mut Order> {
        self.orders.iter_mut().find(|order| order.symbol == symbol && order.id == id)
    }

    /// Takes an order out of the open ones.
    pub(crate) fn take_out(&mut self, symbol: u32, id: u64) -> Order {
        let mut all = self.orders.iter();
        let at = all.position(|order| order.symbol == symbol && order.id == id).expect("is open");
        self.orders.remove(at)
    }

    /// One side of a book, best price first, first come first.
    pub(crate) fn book(&self, symbol: u32, side: Side) -> Vec<&Order> {
        let mut orders: Vec<_> =
            self.on(symbol).filter(|order| order.in_book() && order.side == side).collect();
        orders.sort_by_key(|order| {
            let Place::Book { turn } = order.place else { unreachable!("filtered") };
            (if side == Side::Buy { -order.price } else { order.price }, turn)
        });
        orders
    }

    /// What an aggressor of this side and limit (0: none) meets, in that order.
    pub(crate) fn reachable(&self, symbol: u32, side: Side, price: i64) -> Vec<&Order> {
        let mut makers = self.book(symbol, side.opposite());
        makers.retain(|maker| match side {
            _ if price == 0 => true,
            Side::Buy => maker.price <= price,
            Side::Sell => maker.price >= price,
        });
        makers
    }

    /// The open list that an order is in.
    pub(crate) fn list_of(&self, order: &Order) -> Option<&List> {
        let mut all = self.lists.iter();
        all.find(|list| list.id == order.list && list.symbol == order.symbol)
    }

    /// A place at the end of every queue.
    pub(crate) fn next_turn(&mut self) -> Place {
        self.turns += 1;
        Place::Book { turn: self.turns }
    }

    pub(crate) fn free(&self, account: u32, asset: u32) -> i128 {
        self.account(account).free.get(&asset).copied().unwrap_or(0)
    }

    pub(crate) fn locked(&self, account: u32, asset: u32) -> i128 {
        self.account(account).locked.get(&asset).copied().unwrap_or(0)
    }

    /// Moves from free to locked; below zero: back.
    pub(crate) fn lock(&mut self, account: u32, asset: u32, amount: i128) {
        let account = self.account_mut(account);
        *account.free.entry(asset).or_default() -= amount;
        *account.locked.entry(asset).or_default() += amount;
    }

    /// Gives an order's lock, or a part of it, back to its owner.
    pub(crate) fn release(&mut self, order: &Order, amount: i128) {
        let asset = self.symbol(order.symbol).paid_with(order.side);
        self.lock(order.account, asset, -amount);
    }

    /// Orders of the account that were accepted in the calendar windows of now (facts 8).
    pub(crate) fn counts(&self, account: u32) -> [u32; 2] {
        let seconds = [self.limits.interval_0_seconds, self.limits.interval_1_seconds];
        seconds.map(|seconds| {
            let window = |at: u64| at / (u64::from(seconds) * 1_000_000_000);
            let accepted = &self.account(account).accepted;
            accepted.iter().filter(|&&at| window(at) == window(self.time)).count() as u32
        })
    }
}
