//! The model: an aggressor meets resting orders, until it is filled, nothing is left that it may take,
//! or this transaction has done its share.

use crate::place::OrderStatus;
use crate::state::{Model, ONE, Order, Rates, down, has_limit, up};
use crate::venue::Owned;
use touchline_protocol::message::enums::{SelfTradePrevention, Side};
use touchline_protocol::message::event::*;
use touchline_protocol::units::*;

/// Steps of a transaction's share that things cost.
pub(crate) const STEPS_FILL: u32 = 1;
pub(crate) const STEPS_REFILL: u32 = 1;
pub(crate) const STEPS_OTHER_LEG: u32 = 3;
pub(crate) const STEPS_PREVENTION: u32 = 2;

/// Where an aggressor stands in this transaction.
struct Taking<'events> {
    order: Order,
    /// The book has changed.
    changed: bool,
    /// A prevention has ended it.
    ended: bool,
    events: &'events mut Vec<Owned>,
}

impl Model {
    /// Takes as far as the steps go; gives the order back when it must go on later. `changed`: this
    /// transaction has changed the book before.
    pub(crate) fn take(
        &mut self,
        order: Order,
        changed: bool,
        steps: &mut u32,
        events: &mut Vec<Owned>,
    ) -> Option<Order> {
        let symbol = order.symbol;
        let mut taking = Taking { order, changed, ended: false, events };
        loop {
            // Stops are collected behind every trade, so that they run by trade.
            self.collect(symbol, steps);
            let next = self.next_maker(&taking.order).filter(|_| !taking.ended && *steps > 0);
            let Some(maker) = next else { break };
            *steps = steps.saturating_sub(self.meet(&mut taking, &maker));
        }
        let Taking { order, changed, ended, events } = taking;
        let goes_on = !ended && self.next_maker(&order).is_some();
        let will_rest = !goes_on && !ended && order.open() > 0 && order.rests();
        self.symbol_mut(symbol).updates += u64::from(changed || will_rest);
        if goes_on {
            events.push(Owned::Continues(OrderContinues {
                order_id: OrderId(order.id),
                symbol: SymbolId(symbol),
                remaining: order.open(),
                book_update_id: BookUpdateId(self.symbol(symbol).updates),
                ..Default::default()
            }));
            return Some(order);
        }
        self.finish(order, ended, events);
        None
    }

    /// The resting order that an aggressor with something left meets next.
    fn next_maker(&self, order: &Order) -> Option<Order> {
        let makers = self.reachable(order.symbol, order.side, order.price);
        let maker = makers.first().copied()?;
        (order.wanted() > 0 && self.payable(order, maker) > 0).then(|| maker.clone())
    }

    /// How much of a resting order's slice an aggressor takes. A MARKET buy that goes on behind orders of its
    /// own pays no more than it has locked: if that is not enough, whole steps of LOT_SIZE, and nothing
    /// afterwards.
    fn payable(&self, taker: &Order, maker: &Order) -> i64 {
        let quantity = taker.wanted().min(maker.shown);
        let goes_on = self.rules > 3 && taker.mode == SelfTradePrevention::ExpireMaker;
        let bound = goes_on && !has_limit(taker.order_type) && taker.side == Side::Buy;
        if bound && taker.out_of_lock {
            return 0;
        }
        if !bound || up(maker.price, quantity) <= taker.locked {
            return quantity;
        }
        let step = self.symbol(taker.symbol).filters.lot_step.max(1);
        let fits = |steps: i64| up(maker.price, steps * step) <= taker.locked;
        // The largest that fits, by halving: less than the quantity does.
        let (mut fitting, mut beyond) = (0, quantity / step + 1);
        while beyond - fitting > 1 {
            let middle = i64::midpoint(fitting, beyond);
            if fits(middle) { fitting = middle } else { beyond = middle }
        }
        fitting * step
    }

    /// Trades with one resting order, or prevents it; gives the steps that it took.
    fn meet(&mut self, taking: &mut Taking<'_>, maker: &Order) -> u32 {
        let mode = taking.order.mode;
        if maker.account == taking.order.account && mode != SelfTradePrevention::None {
            return self.prevent(taking, maker, mode);
        }
        taking.changed = true;
        let refill = self.fill(taking, maker);
        let other_leg = self.limit_leg_was_touched(maker, taking.events);
        STEPS_FILL
            + if refill { STEPS_REFILL } else { 0 }
            + if other_leg { STEPS_OTHER_LEG } else { 0 }
    }

    /// An order's own mode, or its account's.
    pub(crate) fn prevention(&self, order: &Order) -> SelfTradePrevention {
        let own = order.prevention;
        let number = if own > 0 { own } else { self.account(order.account).prevention };
        SelfTradePrevention::from_wire(number).unwrap_or(SelfTradePrevention::None)
    }

    /// Two orders of one account do not trade: one of them ends, or both. By rules 2 and 3 an order without a
    /// limit does not take elsewhere what it was kept from taking here: its lock was reckoned with this price.
    fn prevent(
        &mut self,
        taking: &mut Taking<'_>,
        maker: &Order,
        mode: SelfTradePrevention,
    ) -> u32 {
        let symbol = maker.symbol;
        let quantity = maker.open().min(taking.order.wanted());
        taking.events.push(Owned::Prevented(SelfTradePrevented {
            maker_order_id: OrderId(maker.id),
            taker_order_id: OrderId(taking.order.id),
            account: AccountId(maker.account),
            symbol: SymbolId(symbol),
            price: maker.price,
            quantity,
            mode: mode.to_wire(),
            book_update_id: BookUpdateId(self.symbol(symbol).updates),
            ..Default::default()
        }));
        let mut steps = STEPS_PREVENTION;
        if mode != SelfTradePrevention::ExpireTaker {
            let listed = self.list_of(maker).is_some();
            if listed {
                self.note("prevention ends a list");
            }
            steps += if listed { STEPS_OTHER_LEG } else { 0 };
            taking.changed = true;
            let behind = self.symbol(symbol).updates + 1;
            self.end(symbol, maker.id, (OrderStatus::Expired, behind), taking.events);
        }
        if !has_limit(taking.order.order_type) {
            if self.rules < 4 {
                taking.order.prevented += quantity;
            } else if mode == SelfTradePrevention::ExpireMaker {
                self.note("a MARKET order goes on behind its own");
            }
        }
        taking.ended = mode != SelfTradePrevention::ExpireMaker;
        steps
    }

    /// One trade, at the maker's price. True if an iceberg shows its next slice.
    fn fill(&mut self, taking: &mut Taking<'_>, maker: &Order) -> bool {
        let time = self.time;
        let (symbol, price, taker) = (maker.symbol, maker.price, &mut taking.order);
        let quantity = self.payable(taker, maker);
        if quantity < taker.wanted().min(maker.shown) {
            taker.out_of_lock = true;
            self.note("a lock pays for no more");
        }
        let paid = down(price, quantity);
        let mut maker = maker.clone();
        for order in [&mut maker, &mut *taker] {
            order.executed += quantity;
            order.executed_quote += paid as i64;
            order.locked -= if order.side == Side::Buy { paid } else { quantity.into() };
        }
        maker.shown -= quantity;
        let refill = maker.open() > 0 && maker.shown == 0;
        if refill {
            maker.shown = maker.iceberg.min(maker.open());
            maker.place = self.next_turn();
        }
        let by_the_millisecond = self.rules > 2;
        let market = self.symbol_mut(symbol);
        market.trades += 1;
        market.last = Some(price);
        market.history.push((time, price, quantity));
        // One aggregate trade is what one aggressor took at one price and time, as it is shown.
        let shown = if by_the_millisecond { time - time % 1_000_000 } else { time };
        if taker.last_fill != Some((price, shown)) {
            market.aggregates += 1;
            taker.last_fill = Some((price, shown));
        }
        let (trades, aggregates) = (market.trades, market.aggregates);
        let behind = market.updates + 1;
        let commissions = self.pay(&maker, taker, quantity, paid);
        let filled = maker.open() == 0;
        let released = if filled { maker.locked } else { 0 };
        self.release(&maker, released);
        taking.events.push(Owned::Trade(Trade {
            trade_id: TradeId(trades),
            aggregate_trade_id: AggregateTradeId(aggregates),
            symbol: SymbolId(symbol),
            aggressor_side: taker.side.to_wire(),
            price,
            quantity,
            quote_amount: paid as i64,
            maker_order_id: OrderId(maker.id),
            taker_order_id: OrderId(taker.id),
            maker_account: AccountId(maker.account),
            taker_account: AccountId(taker.account),
            maker_commission: commissions[0],
            taker_commission: commissions[1],
            maker_remaining: maker.open(),
            maker_released: released as i64,
            ..Default::default()
        }));
        if refill {
            taking.events.push(Owned::Refilled(OrderRefilled {
                order_id: OrderId(maker.id),
                symbol: SymbolId(symbol),
                visible: maker.shown,
                book_update_id: BookUpdateId(behind),
                ..Default::default()
            }));
        }
        let id = maker.id;
        if filled {
            self.take_out(symbol, id);
        } else {
            *self.find_mut(symbol, id).expect("it rests") = maker;
        }
        refill
    }

    /// Moves base and quote between the two and the commissions to the fee account; gives the
    /// commissions of maker and taker. Each pays from what it receives, truncated.
    fn pay(&mut self, maker: &Order, taker: &Order, quantity: i64, paid: i128) -> [i64; 2] {
        let (base, quote) = (self.symbol(maker.symbol).base, self.symbol(maker.symbol).quote);
        let mut commissions = [0; 2];
        for (index, order) in [maker, taker].into_iter().enumerate() {
            let buys = order.side == Side::Buy;
            let (gives, gets) = if buys { (quote, base) } else { (base, quote) };
            let (given, got) = if buys { (paid, quantity.into()) } else { (quantity.into(), paid) };
            let rates = self.rates(order.account, order.symbol);
            let rate = if index == 0 { rates.maker } else { rates.taker }
                + if buys { rates.buyer } else { rates.seller };
            let commission = got * i128::from(rate) / ONE;
            let account = self.account_mut(order.account);
            *account.locked.entry(gives).or_default() -= given;
            *account.free.entry(gets).or_default() += got - commission;
            *self.account_mut(0).free.entry(gets).or_default() += commission;
            commissions[index] = commission as i64;
        }
        commissions
    }

    /// What was set for the pair comes before what was set for the symbol, that before the account's own.
    pub(crate) fn rates(&self, account: u32, symbol: u32) -> Rates {
        let pair = self.fees.get(&(Some(account), symbol));
        let own = self.account(account).rates;
        pair.or_else(|| self.fees.get(&(None, symbol))).copied().unwrap_or(own)
    }

    /// An aggressor with nothing to take any more is filled, rests or expires.
    pub(crate) fn finish(&mut self, mut order: Order, ended: bool, events: &mut Vec<Owned>) {
        let open = order.open() > 0 || order.short;
        let status = match (open, ended || !order.rests(), order.executed) {
            (false, ..) => OrderStatus::Filled,
            (true, true, _) => OrderStatus::Expired,
            (true, false, 0) => OrderStatus::New,
            (true, false, _) => OrderStatus::PartiallyFilled,
        };
        let released = match order.side {
            _ if !status.is_open() => order.locked,
            // What its rest needs stays locked, from rules 3 on not what it has saved.
            Side::Buy if self.rules > 2 && order.executed > 0 => {
                order.locked - up(order.price, order.open())
            }
            _ => 0,
        };
        self.release(&order, released);
        order.locked -= released;
        events.push(self.result(&order, status, released));
        if status.is_open() {
            order.shown =
                if order.iceberg > 0 { order.iceberg.min(order.open()) } else { order.open() };
            order.place = self.next_turn();
            self.orders.push(order);
        }
    }

    /// FOK: would it be filled wholly, were it to take without end? Tried on a copy. By rules below 5, with open
    /// orders of its own on the other side (waiting stops too) that it must not trade with, no more than a
    /// transaction's share of resting orders is looked at, in the order in which they are met: at each
    /// price first what is shown, then what is hidden. (By rules 5 it is 4,096, which are never there.)
    pub(crate) fn fills_wholly(&self, order: &Order) -> bool {
        let makers = self.reachable(order.symbol, order.side, order.price);
        let mut own = self.own(order.account, order.symbol);
        let opposite = own.any(|own| own.side == order.side.opposite());
        if self.rules < 5 && opposite && order.mode != SelfTradePrevention::None {
            let (mut needed, mut hidden, mut price) = (order.open(), 0, 0);
            for (looked_at, maker) in makers.iter().enumerate() {
                if maker.price != price {
                    (needed, hidden, price) = (needed - hidden, 0, maker.price);
                }
                if needed <= 0 {
                    break;
                }
                if looked_at as u32 == self.limits.max_steps {
                    return false;
                }
                if maker.account != order.account {
                    needed -= maker.shown;
                    hidden += maker.open() - maker.shown;
                }
            }
        }
        let (mut copy, mut events) = (self.clone(), Vec::new());
        copy.take(order.clone(), false, &mut u32::MAX.clone(), &mut events);
        let filled = OrderStatus::Filled.to_wire();
        matches!(events.last(), Some(Owned::Result(result)) if result.status == filled)
    }
}
