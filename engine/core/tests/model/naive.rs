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

pub type Outcome = Result<Vec<Owned>, (Why, u32)>;

const BUY: u8 = 1;
const SELL: u8 = 2;
const LIMIT: u8 = 1;
const MARKET: u8 = 2;
const GTC: u8 = 1;
const FOK: u8 = 3;
const TRADING: u8 = 2;
const ONE: i128 = UNITS_PER_WHOLE as i128;

#[derive(Clone, Default)]
pub struct NaiveAccount {
    pub free: BTreeMap<u32, i128>,
    pub locked: BTreeMap<u32, i128>,
    pub maker_rate: i128,
    pub taker_rate: i128,
    pub can_trade: bool,
    pub permissions: u8,
    /// Accepted orders: their times.
    pub accepted: Vec<u64>,
}

#[derive(Clone)]
pub struct NaiveOrder {
    id: u64,
    account: u32,
    session: u32,
    side: u8,
    order_type: u8,
    time_in_force: u8,
    price: i64,
    quantity: i64,
    executed: i64,
    executed_quote: i64,
    locked: i128,
    name: ClientOrderId,
    /// Price and time of its last fill as the aggressor.
    last_fill: Option<(i64, u64)>,
    counts: [u32; 2],
    correlation: u64,
}

#[derive(Clone)]
pub struct NaiveSymbol {
    pub base: u32,
    pub quote: u32,
    pub status: u8,
    pub order_types: u8,
    pub permissions: u8,
    pub filters: SymbolFilters,
    pub bids: BTreeMap<i64, VecDeque<NaiveOrder>>,
    pub asks: BTreeMap<i64, VecDeque<NaiveOrder>>,
    pub orders: u64,
    pub trades: u64,
    pub aggregates: u64,
    pub updates: u64,
}

impl NaiveSymbol {
    fn queues(&mut self, side: u8) -> &mut BTreeMap<i64, VecDeque<NaiveOrder>> {
        if side == BUY { &mut self.bids } else { &mut self.asks }
    }

    fn open(&self) -> impl Iterator<Item = &NaiveOrder> {
        self.bids.values().chain(self.asks.values()).flatten()
    }

    /// Prices an aggressor trades at, best first; `price` 0 takes any.
    fn reachable(&self, side: u8, price: i64) -> Vec<i64> {
        match side {
            BUY => self.asks.keys().copied().filter(|&ask| price == 0 || ask <= price).collect(),
            _ => self.bids.keys().rev().copied().filter(|&bid| bid >= price).collect(),
        }
    }

    fn resting(&self, side: u8, price: i64) -> i128 {
        let other = if side == BUY { &self.asks } else { &self.bids };
        let prices = self.reachable(side, price);
        prices.iter().flat_map(|at| &other[at]).map(|o| i128::from(o.quantity - o.executed)).sum()
    }

    fn paid_with(&self, side: u8) -> u32 {
        if side == BUY { self.quote } else { self.base }
    }
}

#[derive(Clone)]
pub struct NaiveSession {
    pub key: u64,
    pub adapter: bool,
    pub hot: bool,
    pub epoch: u32,
    pub last: u64,
}

#[derive(Clone, Default)]
pub struct NaiveVenue {
    pub accounts: Vec<NaiveAccount>,
    pub symbols: Vec<NaiveSymbol>,
    /// Account, permissions, revoked; key 1 first.
    pub keys: Vec<(u32, u8, bool)>,
    pub sessions: Vec<NaiveSession>,
    pub pending: VecDeque<(u32, NaiveOrder)>,
    pub held: BTreeMap<u32, i128>,
    pub limits: Limits,
}

fn up(price: i64, quantity: i64) -> i128 {
    (i128::from(price) * i128::from(quantity) + ONE - 1) / ONE
}

fn down(price: i64, quantity: i64) -> i128 {
    i128::from(price) * i128::from(quantity) / ONE
}

fn fits(value: i64, min: i64, max: i64, step: i64) -> bool {
    (min == 0 || value >= min)
        && (max == 0 || value <= max)
        && (step == 0 || (value - min) % step == 0)
}

fn check(holds: bool, why: Why) -> Result<(), (Why, u32)> {
    if holds { Ok(()) } else { Err((why, 0)) }
}

impl NaiveVenue {
    pub fn is_pending(&self, symbol: u32) -> bool {
        self.pending.iter().any(|(of, _)| *of == symbol)
    }

    fn sender(&mut self, header: &CommandHeader, time: u64) -> Result<(), (Why, u32)> {
        let session = self.sessions.get((header.session.0 as usize).wrapping_sub(1));
        let session = session.ok_or((Why::UnknownSession, 0))?;
        check(header.epoch.0 == session.epoch, Why::StaleEpoch)?;
        check(header.sequence.0 > session.last, Why::DuplicateSequence)?;
        let own = session.adapter || header.key_id.0 == session.key;
        check(session.hot && own, Why::RoleNotPermitted)?;
        check(header.not_after_ns == 0 || time <= header.not_after_ns, Why::TooLate)
    }

    fn account(&self, header: &CommandHeader) -> Result<u32, (Why, u32)> {
        let key = self.keys.get((header.key_id.0 as usize).wrapping_sub(1));
        let (account, permissions, revoked) = *key.ok_or((Why::UnknownKey, 0))?;
        check(!revoked, Why::UnknownKey)?;
        let adapter = self.sessions[header.session.0 as usize - 1].adapter;
        let needed = if adapter { KEY_TRADE } else { KEY_BINARY };
        check(permissions & needed != 0, Why::KeyNotPermitted)?;
        check(self.accounts[account as usize].can_trade, Why::AccountCannotTrade)?;
        Ok(account)
    }

    fn symbol(&self, id: SymbolId) -> Result<&NaiveSymbol, (Why, u32)> {
        let symbol = self.symbols.get(id.0 as usize).ok_or((Why::UnknownSymbol, 0))?;
        check(!self.is_pending(id.0), Why::LogUnavailable)?;
        Ok(symbol)
    }

    fn accepted(&mut self, header: &CommandHeader) {
        self.sessions[header.session.0 as usize - 1].last = header.sequence.0;
    }

    /// Orders accepted in the calendar windows that `time` is in.
    fn counts(&self, account: u32, time: u64) -> [u32; 2] {
        let seconds = [self.limits.interval_0_seconds, self.limits.interval_1_seconds];
        seconds.map(|seconds| {
            let window = |at: u64| at / (u64::from(seconds) * 1_000_000_000);
            let accepted = &self.accounts[account as usize].accepted;
            accepted.iter().filter(|&&at| window(at) == window(time)).count() as u32
        })
    }

    fn lock(&mut self, account: u32, asset: u32, amount: i128) {
        let account = &mut self.accounts[account as usize];
        *account.free.entry(asset).or_default() -= amount;
        *account.locked.entry(asset).or_default() += amount;
    }

    fn credit(&mut self, account: u32, asset: u32, amount: i128) {
        *self.accounts[account as usize].free.entry(asset).or_default() += amount;
    }

    pub fn new_order(&mut self, m: &NewOrder, time: u64) -> Outcome {
        self.sender(&m.command, time)?;
        let account = self.account(&m.command)?;
        let symbol = self.symbol(m.symbol)?;
        let shared = symbol.permissions & self.accounts[account as usize].permissions;
        check(shared != 0, Why::SymbolNotPermitted)?;
        Self::check_shape(symbol, m)?;
        Self::check_filters(symbol, m)?;
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
        let locked = self.check_state(account, m)?;
        self.accepted(&m.command);
        self.accounts[account as usize].accepted.push(time);
        let symbol = &mut self.symbols[m.symbol.0 as usize];
        symbol.orders += 1;
        let id = symbol.orders;
        let asset = symbol.paid_with(m.side);
        let kill = m.time_in_force == FOK
            && symbol.resting(m.side, m.price) < i128::from(m.quantity);
        self.lock(account, asset, locked);
        let time_in_force = if m.order_type == MARKET { GTC } else { m.time_in_force };
        let mut events = vec![Owned::Accepted(OrderAccepted {
            order_id: OrderId(id),
            account: AccountId(account),
            symbol: m.symbol,
            locked: locked as i64,
            price: m.price,
            quantity: m.quantity,
            order_list_id: OrderListId(-1),
            side: m.side,
            order_type: m.order_type,
            time_in_force,
            session: m.command.session,
            ..Default::default()
        })];
        let order = NaiveOrder {
            id,
            account,
            session: m.command.session.0,
            side: m.side,
            order_type: m.order_type,
            time_in_force,
            price: m.price,
            quantity: m.quantity,
            executed: 0,
            executed_quote: 0,
            locked,
            name: m.client_order_id,
            last_fill: None,
            counts: counts.map(|count| count + 1),
            correlation: m.command.correlation,
        };
        if kill {
            self.finish(m.symbol.0, order, &mut events);
        } else if let Some(order) = self.advance(m.symbol.0, order, time, &mut events) {
            self.pending.push_back((m.symbol.0, order));
        }
        Ok(events)
    }

    fn check_shape(symbol: &NaiveSymbol, m: &NewOrder) -> Result<(), (Why, u32)> {
        check(m.side == BUY || m.side == SELL, Why::InvalidSide)?;
        check((1..=7).contains(&m.order_type), Why::InvalidOrderType)?;
        if m.order_type == LIMIT {
            check((1..=3).contains(&m.time_in_force), Why::InvalidTimeInForce)?;
        }
        let taken = m.order_type <= MARKET && symbol.order_types >> m.order_type & 1 == 1;
        check(taken, Why::OrderTypeNotSupported)?;
        let zero = [m.quote_quantity, m.stop_price, m.iceberg_quantity] == [0; 3]
            && m.self_trade_prevention == 0
            && m.flags <= 1;
        let market = m.order_type == LIMIT || m.price == 0 && m.time_in_force == 0;
        check(zero && market, Why::UnsupportedCombination)
    }

    fn check_filters(symbol: &NaiveSymbol, m: &NewOrder) -> Result<(), (Why, u32)> {
        let f = &symbol.filters;
        let limit = m.order_type == LIMIT;
        check(!limit || m.price > 0, Why::InvalidPrice)?;
        check(m.quantity > 0, Why::InvalidQuantity)?;
        let price = fits(m.price, f.price_min, f.price_max, f.tick_size);
        check(!limit || price, Why::PriceFilter)?;
        check(fits(m.quantity, f.lot_min, f.lot_max, f.lot_step), Why::LotSize)?;
        let lot = fits(m.quantity, f.market_lot_min, f.market_lot_max, f.market_lot_step);
        check(limit || lot, Why::MarketLotSize)?;
        if limit { Self::check_notional(f, m.price, m.quantity) } else { Ok(()) }
    }

    fn check_notional(f: &SymbolFilters, price: i64, quantity: i64) -> Result<(), (Why, u32)> {
        check(up(price, quantity) <= i128::from(i64::MAX / 2), Why::Overflow)?;
        check(down(price, quantity) > 0, Why::NotionalTooSmall)?;
        let notional = i128::from(price) * i128::from(quantity);
        check(notional >= i128::from(f.min_notional) * ONE, Why::MinNotional)
    }

    fn check_state(&self, account: u32, m: &NewOrder) -> Result<i128, (Why, u32)> {
        let symbol = &self.symbols[m.symbol.0 as usize];
        let own: Vec<_> = symbol.open().filter(|order| order.account == account).collect();
        let most = symbol.filters.max_orders as usize;
        check(most == 0 || own.len() < most, Why::MaxNumOrders)?;
        let taken = own.iter().any(|order| order.name == m.client_order_id);
        check(m.client_order_id.is_empty() || !taken, Why::DuplicateClientOrderId)?;
        self.check_capacity(symbol, m)?;
        let free = &self.accounts[account as usize].free;
        let free = free.get(&symbol.paid_with(m.side)).copied().unwrap_or(0);
        let needed = match (m.side, m.order_type) {
            (SELL, _) => i128::from(m.quantity),
            (_, LIMIT) => up(m.price, m.quantity),
            _ => {
                let mut open = m.quantity;
                let mut cost = 0;
                for (price, queue) in &symbol.asks {
                    let there: i64 = queue.iter().map(|order| order.quantity - order.executed).sum();
                    cost += up(*price, there.min(open));
                    open -= there.min(open);
                }
                cost
            }
        };
        check(needed <= free, Why::InsufficientBalance)?;
        Ok(needed)
    }

    fn check_capacity(&self, symbol: &NaiveSymbol, m: &NewOrder) -> Result<(), (Why, u32)> {
        let prices = symbol.reachable(m.side, m.price);
        if !prices.is_empty() {
            let other = if m.side == BUY { &symbol.asks } else { &symbol.bids };
            let (mut makers, mut open) = (0, i128::from(m.quantity));
            for price in prices {
                if open > 0 {
                    makers += other[&price].len() as u32;
                    open -= other[&price]
                        .iter()
                        .map(|order| i128::from(order.quantity - order.executed))
                        .sum::<i128>();
                }
            }
            let full = self.pending.len() as u32 >= self.limits.pending_work;
            if full && makers > self.limits.max_steps {
                return Err((Why::CapacityReached, 7));
            }
            return Ok(());
        }
        if m.order_type != LIMIT || m.time_in_force != GTC {
            return Ok(());
        }
        let kept = self.pending.iter().filter(|(_, order)| {
            order.order_type == LIMIT && order.time_in_force == GTC
        });
        let kept = kept.count();
        let orders: usize = self.symbols.iter().map(|symbol| symbol.open().count()).sum();
        if orders + kept >= self.limits.open_orders as usize {
            return Err((Why::CapacityReached, 5));
        }
        let levels: usize =
            self.symbols.iter().map(|symbol| symbol.bids.len() + symbol.asks.len()).sum();
        let own = if m.side == BUY { &symbol.bids } else { &symbol.asks };
        if levels + kept >= self.limits.price_levels as usize && !own.contains_key(&m.price) {
            return Err((Why::CapacityReached, 6));
        }
        Ok(())
    }

    pub fn run_pending(&mut self, time: u64) -> Outcome {
        let (symbol, order) = self.pending.pop_front().ok_or((Why::UnexpectedMessage, 0))?;
        let mut events = Vec::new();
        if let Some(order) = self.advance(symbol, order, time, &mut events) {
            self.pending.push_front((symbol, order));
        }
        Ok(events)
    }

    /// Fills up to `max_steps` makers; gives the order back when it must go on later.
    fn advance(
        &mut self,
        id: u32,
        mut order: NaiveOrder,
        time: u64,
        events: &mut Vec<Owned>,
    ) -> Option<NaiveOrder> {
        let mut steps = 0;
        while order.executed < order.quantity && steps < self.limits.max_steps {
            let symbol = &self.symbols[id as usize];
            let Some(&price) = symbol.reachable(order.side, order.price).first() else { break };
            self.fill(id, &mut order, price, time, events);
            steps += 1;
        }
        let symbol = &mut self.symbols[id as usize];
        if steps > 0 {
            symbol.updates += 1;
        }
        if order.executed < order.quantity && !symbol.reachable(order.side, order.price).is_empty() {
            events.push(Owned::Continues(OrderContinues {
                order_id: OrderId(order.id),
                symbol: SymbolId(id),
                remaining: order.quantity - order.executed,
                book_update_id: BookUpdateId(symbol.updates),
                ..Default::default()
            }));
            return Some(order);
        }
        if order.executed < order.quantity
            && order.order_type == LIMIT
            && order.time_in_force == GTC
            && steps == 0
        {
            symbol.updates += 1;
        }
        self.finish(id, order, events);
        None
    }

    fn fill(
        &mut self,
        id: u32,
        taker: &mut NaiveOrder,
        price: i64,
        time: u64,
        events: &mut Vec<Owned>,
    ) {
        let symbol = &mut self.symbols[id as usize];
        let (base, quote) = (symbol.base, symbol.quote);
        let queues = symbol.queues(3 - taker.side);
        let queue = queues.get_mut(&price).unwrap();
        let maker = &mut queue[0];
        let quantity = (taker.quantity - taker.executed).min(maker.quantity - maker.executed);
        let paid = down(price, quantity);
        for order in [&mut *maker, &mut *taker] {
            order.executed += quantity;
            order.executed_quote += paid as i64;
            order.locked -= if order.side == BUY { paid } else { i128::from(quantity) };
        }
        let copy = maker.clone();
        let left = copy.quantity - copy.executed;
        if left == 0 {
            queue.pop_front();
            if queue.is_empty() {
                queues.remove(&price);
            }
        }
        symbol.trades += 1;
        if taker.last_fill != Some((price, time)) {
            symbol.aggregates += 1;
            taker.last_fill = Some((price, time));
        }
        let (trades, aggregates) = (symbol.trades, symbol.aggregates);
        let (buyer, seller) =
            if taker.side == BUY { (taker.account, copy.account) } else { (copy.account, taker.account) };
        *self.accounts[buyer as usize].locked.get_mut(&quote).unwrap() -= paid;
        *self.accounts[seller as usize].locked.get_mut(&base).unwrap() -= i128::from(quantity);
        let maker_rate = self.accounts[copy.account as usize].maker_rate;
        let taker_rate = self.accounts[taker.account as usize].taker_rate;
        let gets = |side| if side == BUY { (base, i128::from(quantity)) } else { (quote, paid) };
        let mut fees = [0; 2];
        let parties = [(&copy, maker_rate), (&*taker, taker_rate)];
        for (index, (order, rate)) in parties.into_iter().enumerate() {
            let (asset, amount) = gets(order.side);
            fees[index] = amount * rate / ONE;
            self.credit(order.account, asset, amount - fees[index]);
            self.credit(0, asset, fees[index]);
        }
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
    }

    fn finish(&mut self, id: u32, order: NaiveOrder, events: &mut Vec<Owned>) {
        let symbol = &mut self.symbols[id as usize];
        let rests = order.order_type == LIMIT && order.time_in_force == GTC;
        let open = order.executed < order.quantity;
        let status = match (open, rests, order.executed) {
            (false, _, _) => 3,
            (true, false, _) => 5,
            (true, true, 0) => 1,
            (true, true, _) => 2,
        };
        let released = if status >= 3 { order.locked } else { 0 };
        events.push(Owned::Result(OrderResult {
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
        }));
        if status < 3 {
            symbol.queues(order.side).entry(order.price).or_default().push_back(order);
        } else {
            let asset = symbol.paid_with(order.side);
            self.lock(order.account, asset, -released);
        }
    }

    fn own(&self, account: u32, symbol: SymbolId, id: u64) -> Result<NaiveOrder, (Why, u32)> {
        let mut open = self.symbols[symbol.0 as usize].open();
        let found = open.find(|order| order.id == id && order.account == account);
        found.cloned().ok_or((Why::UnknownOrder, 0))
    }

    pub fn cancel(&mut self, m: &CancelOrder, time: u64) -> Outcome {
        self.sender(&m.command, time)?;
        let account = self.account(&m.command)?;
        self.symbol(m.symbol)?;
        let order = self.own(account, m.symbol, m.order_id.0)?;
        self.accepted(&m.command);
        Ok(self.remove(m.symbol, &order))
    }

    pub fn cancel_named(&mut self, m: &CancelOrderNamed, time: u64) -> Outcome {
        self.sender(&m.command, time)?;
        let account = self.account(&m.command)?;
        let symbol = self.symbol(m.symbol)?;
        let name = m.client_order_id;
        let order = if m.order_id.0 == 0 {
            let mut own = symbol.open().filter(|order| order.account == account);
            let found = own.find(|order| !name.is_empty() && order.name == name);
            found.cloned().ok_or((Why::UnknownOrder, 0))?
        } else {
            let order = self.own(account, m.symbol, m.order_id.0)?;
            check(name.is_empty() || order.name == name, Why::ClientOrderIdMismatch)?;
            order
        };
        self.accepted(&m.command);
        Ok(self.remove(m.symbol, &order))
    }

    fn remove(&mut self, id: SymbolId, order: &NaiveOrder) -> Vec<Owned> {
        let symbol = &mut self.symbols[id.0 as usize];
        let queues = symbol.queues(order.side);
        let queue = queues.get_mut(&order.price).unwrap();
        queue.retain(|other| other.id != order.id);
        if queue.is_empty() {
            queues.remove(&order.price);
        }
        symbol.updates += 1;
        let (asset, updates) = (symbol.paid_with(order.side), symbol.updates);
        self.lock(order.account, asset, -order.locked);
        vec![Owned::Canceled(OrderCanceled {
            order_id: OrderId(order.id),
            account: AccountId(order.account),
            symbol: id,
            price: order.price,
            quantity: order.quantity,
            executed_quantity: order.executed,
            executed_quote: order.executed_quote,
            released: order.locked as i64,
            book_update_id: BookUpdateId(updates),
            order_list_id: OrderListId(-1),
            status: 4,
            side: order.side,
            order_type: order.order_type,
            time_in_force: order.time_in_force,
            client_order_id: order.name,
            ..Default::default()
        })]
    }

    pub fn reduce(&mut self, m: &ReduceOrder, time: u64) -> Outcome {
        self.sender(&m.command, time)?;
        let account = self.account(&m.command)?;
        let symbol = self.symbol(m.symbol)?;
        let f = symbol.filters;
        check(m.new_quantity > 0, Why::InvalidQuantity)?;
        check(fits(m.new_quantity, f.lot_min, f.lot_max, f.lot_step), Why::LotSize)?;
        check(symbol.status == TRADING, Why::SymbolNotTrading)?;
        let order = self.own(account, m.symbol, m.order_id.0)?;
        check(m.new_quantity < order.quantity, Why::NotReduced)?;
        check(m.new_quantity > order.executed, Why::QuantityBelowExecuted)?;
        Self::check_notional(&f, order.price, m.new_quantity)?;
        self.accepted(&m.command);
        let released = if order.side == BUY {
            up(order.price, order.quantity) - up(order.price, m.new_quantity)
        } else {
            i128::from(order.quantity - m.new_quantity)
        };
        let symbol = &mut self.symbols[m.symbol.0 as usize];
        symbol.updates += 1;
        let (asset, updates) = (symbol.paid_with(order.side), symbol.updates);
        let queue = symbol.queues(order.side).get_mut(&order.price).unwrap();
        let stored = queue.iter_mut().find(|other| other.id == order.id).unwrap();
        stored.quantity = m.new_quantity;
        stored.locked -= released;
        self.lock(account, asset, -released);
        Ok(vec![Owned::Reduced(OrderReduced {
            order_id: OrderId(order.id),
            account: AccountId(account),
            symbol: m.symbol,
            quantity: m.new_quantity,
            executed_quantity: order.executed,
            released: released as i64,
            book_update_id: BookUpdateId(updates),
            price: order.price,
            ..Default::default()
        })])
    }

    /// A deposit, or with a negative amount a withdrawal.
    pub fn move_money(&mut self, account: AccountId, asset: AssetId, amount: i64) -> Outcome {
        let Some(owner) = self.accounts.get_mut(account.0 as usize) else {
            return Err((Why::UnknownAccount, 0));
        };
        let held = self.held.entry(asset.0).or_default();
        let free = owner.free.entry(asset.0).or_default();
        check(*held + i128::from(amount) <= i128::from(i64::MAX / 2), Why::Overflow)?;
        check(*free + i128::from(amount) >= 0, Why::InsufficientBalance)?;
        *held += i128::from(amount);
        *free += i128::from(amount);
        let (free, locked) = (*free, *owner.locked.entry(asset.0).or_default());
        Ok(vec![Owned::Done(Done { free: free as i64, locked: locked as i64, ..Default::default() })])
    }

    /// Who waits for the head of the pending work.
    pub fn head(&self) -> Option<(u32, u32, u64)> {
        self.pending.front().map(|(symbol, order)| (*symbol, order.session, order.correlation))
    }
}
