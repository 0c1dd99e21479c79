//! The naive venue: the rules of trading written down as plainly as possible, with sorted maps, queues
//! and 128-bit numbers. It knows orders, cancels, reductions, money movements, status and limits of
//! an otherwise fixed venue; it shares no code with the core.

use crate::venue::Owned;
use std::collections::{BTreeMap, VecDeque};
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::RejectReason as Why;
use touchline_protocol::message::event::*;
use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::*;

pub(crate) type Outcome = Result<Vec<Owned>, (Why, u32)>;

pub(crate) const BUY: u8 = 1;
pub(crate) const SELL: u8 = 2;
pub(crate) const LIMIT: u8 = 1;
pub(crate) const MARKET: u8 = 2;
pub(crate) const GTC: u8 = 1;
pub(crate) const FOK: u8 = 3;
pub(crate) const MAKER: u8 = 7;
pub(crate) const TRADING: u8 = 2;
pub(crate) const ONE: i128 = UNITS_PER_WHOLE as i128;

#[derive(Clone, Default)]
pub(crate) struct NaiveAccount {
    pub(crate) free: BTreeMap<u32, i128>,
    pub(crate) locked: BTreeMap<u32, i128>,
    pub(crate) maker_rate: i128,
    pub(crate) taker_rate: i128,
    pub(crate) can_trade: bool,
    pub(crate) permissions: u8,
    /// Accepted orders: their times.
    pub(crate) accepted: Vec<u64>,
}

#[derive(Clone)]
pub(crate) struct NaiveOrder {
    pub(crate) id: u64,
    pub(crate) account: u32,
    pub(crate) session: u32,
    pub(crate) side: u8,
    pub(crate) order_type: u8,
    pub(crate) time_in_force: u8,
    pub(crate) price: i64,
    pub(crate) quantity: i64,
    pub(crate) executed: i64,
    pub(crate) executed_quote: i64,
    pub(crate) locked: i128,
    /// Price that fires it; 0 for none.
    pub(crate) stop: i64,
    /// The trade that has fired it.
    pub(crate) fired_by: u64,
    /// What it shows at a time; 0: everything.
    pub(crate) iceberg: i64,
    /// What it shows now.
    pub(crate) shown: i64,
    /// Wanted more than the book had.
    pub(crate) dry: bool,
    pub(crate) name: ClientOrderId,
    /// Price and time of its last fill as the aggressor.
    pub(crate) last_fill: Option<(i64, u64)>,
    pub(crate) counts: [u32; 2],
    pub(crate) correlation: u64,
}

/// True for the types that have a time in force.
pub(crate) fn timed(order_type: u8) -> bool {
    matches!(order_type, LIMIT | 4 | 6)
}

/// True for the stops that fire when the price is at least theirs.
pub(crate) fn upwards(order_type: u8, side: u8) -> bool {
    matches!((order_type, side), (3 | 4, BUY) | (5 | 6, SELL))
}

pub(crate) fn reached(order_type: u8, side: u8, stop: i64, last: Option<i64>) -> bool {
    let up = upwards(order_type, side);
    last.is_some_and(|last| if up { last >= stop } else { last <= stop })
}

impl NaiveOrder {
    pub(crate) fn is_reached(&self, last: Option<i64>) -> bool {
        reached(self.order_type, self.side, self.stop, last)
    }

    pub(crate) fn rests(&self) -> bool {
        self.order_type == MAKER || timed(self.order_type) && self.time_in_force == GTC
    }

    pub(crate) fn open(&self) -> i64 {
        self.quantity - self.executed
    }
}

#[derive(Clone)]
pub(crate) struct NaiveSymbol {
    pub(crate) base: u32,
    pub(crate) quote: u32,
    pub(crate) status: u8,
    pub(crate) order_types: u8,
    pub(crate) flags: u8,
    pub(crate) permissions: u8,
    pub(crate) filters: SymbolFilters,
    pub(crate) bids: BTreeMap<i64, VecDeque<NaiveOrder>>,
    pub(crate) asks: BTreeMap<i64, VecDeque<NaiveOrder>>,
    pub(crate) waiting: Vec<NaiveOrder>,
    pub(crate) fired: Vec<NaiveOrder>,
    pub(crate) last: Option<i64>,
    /// Every trade: time, price, quantity.
    pub(crate) history: Vec<(u64, i64, i64)>,
    pub(crate) orders: u64,
    pub(crate) trades: u64,
    pub(crate) aggregates: u64,
    pub(crate) updates: u64,
}

impl NaiveSymbol {
    pub(crate) fn queues(&mut self, side: u8) -> &mut BTreeMap<i64, VecDeque<NaiveOrder>> {
        if side == BUY { &mut self.bids } else { &mut self.asks }
    }

    pub(crate) fn open(&self) -> impl Iterator<Item = &NaiveOrder> {
        let booked = self.bids.values().chain(self.asks.values()).flatten();
        booked.chain(&self.waiting).chain(&self.fired)
    }

    pub(crate) fn has_triggered(&self) -> bool {
        !self.fired.is_empty() || self.waiting.iter().any(|stop| stop.is_reached(self.last))
    }

    /// Prices an aggressor trades at, best first; `price` 0 takes any.
    pub(crate) fn reachable(&self, side: u8, price: i64) -> Vec<i64> {
        match side {
            BUY => self.asks.keys().copied().filter(|&ask| price == 0 || ask <= price).collect(),
            _ => self.bids.keys().rev().copied().filter(|&bid| bid >= price).collect(),
        }
    }

    pub(crate) fn resting(&self, side: u8, price: i64) -> i128 {
        let other = if side == BUY { &self.asks } else { &self.bids };
        let prices = self.reachable(side, price);
        prices.iter().flat_map(|at| &other[at]).map(|o| i128::from(o.open())).sum()
    }

    /// What buying a quantity costs, rounded up price by price, of what there is.
    pub(crate) fn cost(&self, quantity: i64) -> i128 {
        let (mut open, mut cost) = (i128::from(quantity), 0);
        for (price, queue) in &self.asks {
            let there: i128 = queue.iter().map(|order| i128::from(order.open())).sum();
            cost += up(*price, there.min(open) as i64);
            open -= there.min(open);
        }
        cost
    }

    pub(crate) fn paid_with(&self, side: u8) -> u32 {
        if side == BUY { self.quote } else { self.base }
    }
}

#[derive(Clone)]
pub(crate) struct NaiveSession {
    pub(crate) key: u64,
    pub(crate) adapter: bool,
    pub(crate) hot: bool,
    pub(crate) epoch: u32,
    pub(crate) last: u64,
}

#[derive(Clone, Default)]
pub(crate) struct NaiveVenue {
    pub(crate) accounts: Vec<NaiveAccount>,
    pub(crate) symbols: Vec<NaiveSymbol>,
    /// Account, permissions, revoked; key 1 first.
    pub(crate) keys: Vec<(u32, u8, bool)>,
    pub(crate) sessions: Vec<NaiveSession>,
    /// Symbols with an order that goes on, or without one with stops to run.
    pub(crate) pending: VecDeque<(u32, Option<NaiveOrder>)>,
    pub(crate) held: BTreeMap<u32, i128>,
    pub(crate) limits: Limits,
    pub(crate) rules: u32,
    pub(crate) max_orders: usize,
    pub(crate) max_algo_orders: usize,
}

pub(crate) fn up(price: i64, quantity: i64) -> i128 {
    (i128::from(price) * i128::from(quantity) + ONE - 1) / ONE
}

pub(crate) fn down(price: i64, quantity: i64) -> i128 {
    i128::from(price) * i128::from(quantity) / ONE
}

pub(crate) fn fits(value: i64, min: i64, max: i64, step: i64) -> bool {
    (min == 0 || value >= min)
        && (max == 0 || value <= max)
        && (step == 0 || (value - min) % step == 0)
}

pub(crate) fn check(holds: bool, why: Why) -> Result<(), (Why, u32)> {
    if holds { Ok(()) } else { Err((why, 0)) }
}

impl NaiveVenue {
    pub(crate) fn is_pending(&self, symbol: u32) -> bool {
        self.pending.iter().any(|(of, _)| *of == symbol)
    }

    pub(crate) fn sender(&mut self, header: &CommandHeader, time: u64) -> Result<(), (Why, u32)> {
        let session = self.sessions.get((header.session.0 as usize).wrapping_sub(1));
        let session = session.ok_or((Why::UnknownSession, 0))?;
        check(header.epoch.0 == session.epoch, Why::StaleEpoch)?;
        check(header.sequence.0 > session.last, Why::DuplicateSequence)?;
        let own = session.adapter || header.key_id.0 == session.key;
        check(session.hot && own, Why::RoleNotPermitted)?;
        check(header.not_after_ns == 0 || time <= header.not_after_ns, Why::TooLate)
    }

    pub(crate) fn account(&self, header: &CommandHeader) -> Result<u32, (Why, u32)> {
        let key = self.keys.get((header.key_id.0 as usize).wrapping_sub(1));
        let (account, permissions, revoked) = *key.ok_or((Why::UnknownKey, 0))?;
        check(!revoked, Why::UnknownKey)?;
        let adapter = self.sessions[header.session.0 as usize - 1].adapter;
        let needed = if adapter { KEY_TRADE } else { KEY_BINARY };
        check(permissions & needed != 0, Why::KeyNotPermitted)?;
        check(self.accounts[account as usize].can_trade, Why::AccountCannotTrade)?;
        Ok(account)
    }

    pub(crate) fn symbol(&self, id: SymbolId) -> Result<&NaiveSymbol, (Why, u32)> {
        let symbol = self.symbols.get(id.0 as usize).ok_or((Why::UnknownSymbol, 0))?;
        check(!self.is_pending(id.0), Why::LogUnavailable)?;
        Ok(symbol)
    }

    pub(crate) fn accepted(&mut self, header: &CommandHeader) {
        self.sessions[header.session.0 as usize - 1].last = header.sequence.0;
    }

    /// Orders accepted in the calendar windows that `time` is in.
    pub(crate) fn counts(&self, account: u32, time: u64) -> [u32; 2] {
        let seconds = [self.limits.interval_0_seconds, self.limits.interval_1_seconds];
        seconds.map(|seconds| {
            let window = |at: u64| at / (u64::from(seconds) * 1_000_000_000);
            let accepted = &self.accounts[account as usize].accepted;
            accepted.iter().filter(|&&at| window(at) == window(time)).count() as u32
        })
    }

    pub(crate) fn lock(&mut self, account: u32, asset: u32, amount: i128) {
        let account = &mut self.accounts[account as usize];
        *account.free.entry(asset).or_default() -= amount;
        *account.locked.entry(asset).or_default() += amount;
    }

    pub(crate) fn credit(&mut self, account: u32, asset: u32, amount: i128) {
        *self.accounts[account as usize].free.entry(asset).or_default() += amount;
    }

    pub(crate) fn new_order(&mut self, m: &NewOrder, time: u64) -> Outcome {
        self.sender(&m.command, time)?;
        let account = self.account(&m.command)?;
        let symbol = self.symbol(m.symbol)?;
        let shared = symbol.permissions & self.accounts[account as usize].permissions;
        check(shared != 0, Why::SymbolNotPermitted)?;
        self.check_shape(symbol, m)?;
        Self::check_filters(symbol, m)?;
        Self::check_averages(symbol, m, time)?;
        check(symbol.status == TRADING, Why::SymbolNotTrading)?;
        let counts = self.counts(account, time);
        let most = [self.limits.orders_per_interval_0, self.limits.orders_per_interval_1];
        for index in 0..2 {
            if most[index] != 0 && counts[index] >= most[index] {
                return Err((Why::TooManyOrders, index as u32));
            }
        }
        if m.flags == ORDER_VALIDATE_ONLY {
            let valid = OrderValid { symbol: m.symbol, ..Default::default() };
            return Ok(vec![Owned::Valid(valid)]);
        }
        let (locked, quantity, dry) = self.check_state(account, m)?;
        self.accepted(&m.command);
        self.accounts[account as usize].accepted.push(time);
        let symbol = &mut self.symbols[m.symbol.0 as usize];
        symbol.orders += 1;
        let id = symbol.orders;
        let asset = symbol.paid_with(m.side);
        let kill = m.stop_price == 0
            && m.time_in_force == FOK
            && symbol.resting(m.side, m.price) < i128::from(m.quantity);
        self.lock(account, asset, locked);
        let counts = counts.map(|count| count + 1);
        let mut order = Self::order_of(m, (id, account), locked, counts);
        (order.quantity, order.dry) = (quantity, dry);
        let mut events = vec![Owned::Accepted(OrderAccepted {
            order_id: OrderId(id),
            account: AccountId(account),
            symbol: m.symbol,
            locked: locked as i64,
            price: m.price,
            quantity,
            order_list_id: OrderListId(-1),
            side: m.side,
            order_type: m.order_type,
            time_in_force: order.time_in_force,
            session: m.command.session,
            ..Default::default()
        })];
        if order.stop > 0 {
            events.push(self.report(m.symbol.0, &order, 1, 0));
            self.symbols[m.symbol.0 as usize].waiting.push(order);
        } else if kill {
            self.finish(m.symbol.0, order, &mut events);
        } else {
            let mut steps = self.limits.max_steps;
            let rest = self.advance(m.symbol.0, order, time, &mut steps, &mut events);
            if rest.is_some() || self.symbols[m.symbol.0 as usize].has_triggered() {
                self.pending.push_back((m.symbol.0, rest));
            }
        }
        Ok(events)
    }

    fn order_of(
        m: &NewOrder,
        (id, account): (u64, u32),
        locked: i128,
        counts: [u32; 2],
    ) -> NaiveOrder {
        NaiveOrder {
            id,
            account,
            session: m.command.session.0,
            side: m.side,
            order_type: m.order_type,
            time_in_force: if timed(m.order_type) { m.time_in_force } else { GTC },
            price: m.price,
            quantity: m.quantity,
            executed: 0,
            executed_quote: 0,
            locked,
            stop: m.stop_price,
            fired_by: 0,
            iceberg: m.iceberg_quantity,
            shown: 0,
            dry: false,
            name: m.client_order_id,
            last_fill: None,
            counts,
            correlation: m.command.correlation,
        }
    }

    /// Takes as far as the steps go; gives the order back when it must go on later.
    pub(crate) fn advance(
        &mut self,
        id: u32,
        mut order: NaiveOrder,
        time: u64,
        steps: &mut u32,
        events: &mut Vec<Owned>,
    ) -> Option<NaiveOrder> {
        let mut took = false;
        loop {
            self.collect(id, steps);
            let symbol = &self.symbols[id as usize];
            let Some(&price) = symbol.reachable(order.side, order.price).first() else { break };
            if order.open() == 0 || *steps == 0 {
                break;
            }
            took = true;
            let used = self.fill(id, &mut order, price, time, events);
            *steps = steps.saturating_sub(used);
        }
        let symbol = &mut self.symbols[id as usize];
        if took {
            symbol.updates += 1;
        }
        if order.executed < order.quantity && !symbol.reachable(order.side, order.price).is_empty()
        {
            events.push(Owned::Continues(OrderContinues {
                order_id: OrderId(order.id),
                symbol: SymbolId(id),
                remaining: order.quantity - order.executed,
                book_update_id: BookUpdateId(symbol.updates),
                ..Default::default()
            }));
            return Some(order);
        }
        if order.executed < order.quantity && order.rests() && order.executed == 0 {
            symbol.updates += 1;
        }
        self.finish(id, order, events);
        None
    }

    /// Fills one maker; gives the steps it took.
    pub(crate) fn fill(
        &mut self,
        id: u32,
        taker: &mut NaiveOrder,
        price: i64,
        time: u64,
        events: &mut Vec<Owned>,
    ) -> u32 {
        let symbol = &mut self.symbols[id as usize];
        let (base, quote) = (symbol.base, symbol.quote);
        let queues = symbol.queues(3 - taker.side);
        let queue = queues.get_mut(&price).unwrap();
        let maker = &mut queue[0];
        let quantity = taker.open().min(maker.shown);
        let paid = down(price, quantity);
        for order in [&mut *maker, &mut *taker] {
            order.executed += quantity;
            order.executed_quote += paid as i64;
            order.locked -= if order.side == BUY { paid } else { i128::from(quantity) };
        }
        maker.shown -= quantity;
        let copy = maker.clone();
        let left = copy.open();
        let refill = left > 0 && copy.shown == 0;
        if copy.shown == 0 {
            let mut moved = queue.pop_front().unwrap();
            if refill {
                moved.shown = moved.iceberg.min(left);
                queue.push_back(moved);
            } else if queue.is_empty() {
                queues.remove(&price);
            }
        }
        let update = symbol.updates + 1;
        symbol.trades += 1;
        if self.rules > 1 {
            symbol.last = Some(price);
            symbol.history.push((time, price, quantity));
        }
        if taker.last_fill != Some((price, time)) {
            symbol.aggregates += 1;
            taker.last_fill = Some((price, time));
        }
        let (trades, aggregates) = (symbol.trades, symbol.aggregates);
        let fees = self.pay(&copy, taker, (base, quote), (quantity, paid));
        let released = if left == 0 { copy.locked } else { 0 };
        if released > 0 {
            let asset = if copy.side == BUY { quote } else { base };
            self.lock(copy.account, asset, -released);
        }
        events.push(Owned::Trade(Trade {
            trade_id: TradeId(trades),
            aggregate_trade_id: AggregateTradeId(aggregates),
            symbol: SymbolId(id),
            aggressor_side: taker.side,
            price,
            quantity,
            quote_amount: paid as i64,
            maker_order_id: OrderId(copy.id),
            taker_order_id: OrderId(taker.id),
            maker_account: AccountId(copy.account),
            taker_account: AccountId(taker.account),
            maker_commission: fees[0] as i64,
            taker_commission: fees[1] as i64,
            maker_remaining: left,
            maker_released: released as i64,
            ..Default::default()
        }));
        if refill {
            events.push(Owned::Refilled(OrderRefilled {
                order_id: OrderId(copy.id),
                symbol: SymbolId(id),
                visible: copy.iceberg.min(left),
                book_update_id: BookUpdateId(update),
                ..Default::default()
            }));
        }
        1 + u32::from(refill)
    }

    /// Moves base and quote between the two; gives the commissions of maker and taker.
    fn pay(
        &mut self,
        maker: &NaiveOrder,
        taker: &NaiveOrder,
        (base, quote): (u32, u32),
        (quantity, paid): (i64, i128),
    ) -> [i128; 2] {
        let (buyer, seller) = if taker.side == BUY {
            (taker.account, maker.account)
        } else {
            (maker.account, taker.account)
        };
        *self.accounts[buyer as usize].locked.get_mut(&quote).unwrap() -= paid;
        *self.accounts[seller as usize].locked.get_mut(&base).unwrap() -= i128::from(quantity);
        let maker_rate = self.accounts[maker.account as usize].maker_rate;
        let taker_rate = self.accounts[taker.account as usize].taker_rate;
        let gets = |side| if side == BUY { (base, i128::from(quantity)) } else { (quote, paid) };
        let mut fees = [0; 2];
        let parties = [(maker, maker_rate), (taker, taker_rate)];
        for (index, (order, rate)) in parties.into_iter().enumerate() {
            let (asset, amount) = gets(order.side);
            fees[index] = amount * rate / ONE;
            self.credit(order.account, asset, amount - fees[index]);
            self.credit(0, asset, fees[index]);
        }
        fees
    }

    pub(crate) fn finish(&mut self, id: u32, mut order: NaiveOrder, events: &mut Vec<Owned>) {
        let rests = order.rests();
        let open = order.open() > 0 || order.dry;
        let status = match (open, rests, order.executed) {
            (false, _, _) => 3,
            (true, false, _) => 5,
            (true, true, 0) => 1,
            (true, true, _) => 2,
        };
        let released = if status >= 3 { order.locked } else { 0 };
        events.push(self.report(id, &order, status, released));
        let symbol = &mut self.symbols[id as usize];
        if status < 3 {
            order.shown =
                if order.iceberg > 0 { order.iceberg.min(order.open()) } else { order.open() };
            symbol.queues(order.side).entry(order.price).or_default().push_back(order);
        } else {
            let asset = symbol.paid_with(order.side);
            self.lock(order.account, asset, -released);
        }
    }

    fn report(&self, id: u32, order: &NaiveOrder, status: u8, released: i128) -> Owned {
        let symbol = &self.symbols[id as usize];
        Owned::Result(OrderResult {
            order_id: OrderId(order.id),
            account: AccountId(order.account),
            symbol: SymbolId(id),
            quantity: order.quantity,
            executed_quantity: order.executed,
            executed_quote: order.executed_quote,
            released: released as i64,
            book_update_id: BookUpdateId(symbol.updates),
            order_list_id: OrderListId(-1),
            order_count_0: order.counts[0],
            order_count_1: order.counts[1],
            status,
            ..Default::default()
        })
    }

    /// Who waits for the head of the pending work.
    pub(crate) fn head(&self) -> Option<(u32, u32, u64)> {
        let of = |order: &NaiveOrder| (order.session, order.correlation);
        self.pending.front().map(|(symbol, order)| {
            let (session, correlation) = order.as_ref().map_or((0, 0), of);
            (*symbol, session, correlation)
        })
    }
}
