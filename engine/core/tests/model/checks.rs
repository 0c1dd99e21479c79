//! The naive venue: what a new order must pass.

use crate::naive::*;
use crate::venue::Owned;
use std::collections::{BTreeMap, BTreeSet};
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::RejectReason as Why;
use touchline_protocol::message::event::Done;

impl NaiveVenue {
    pub(crate) fn check_shape(&self, symbol: &NaiveSymbol, m: &NewOrder) -> Result<(), (Why, u32)> {
        check(m.side == BUY || m.side == SELL, Why::InvalidSide)?;
        check((1..=7).contains(&m.order_type), Why::InvalidOrderType)?;
        if m.order_type == LIMIT || self.rules > 1 && timed(m.order_type) {
            check((1..=3).contains(&m.time_in_force), Why::InvalidTimeInForce)?;
        }
        let known = m.order_type <= MARKET || self.rules > 1;
        let taken = known && symbol.order_types >> m.order_type & 1 == 1;
        check(taken, Why::OrderTypeNotSupported)?;
        if self.rules > 1 {
            return Self::check_fields(symbol, m);
        }
        let zero = [m.quote_quantity, m.stop_price, m.iceberg_quantity] == [0; 3]
            && m.self_trade_prevention == 0
            && m.flags <= 1;
        let market = m.order_type == LIMIT || m.price == 0 && m.time_in_force == 0;
        check(zero && market, Why::UnsupportedCombination)
    }

    /// Rules version 2: what may be set for which type.
    fn check_fields(symbol: &NaiveSymbol, m: &NewOrder) -> Result<(), (Why, u32)> {
        let with = |flag: u8| symbol.flags & flag != 0;
        let gtc = m.order_type == MAKER || timed(m.order_type) && m.time_in_force == GTC;
        let market = matches!(m.order_type, MARKET | 3 | 5);
        let bad = [
            m.price != 0 && market,
            m.time_in_force != 0 && !timed(m.order_type),
            m.quote_quantity != 0 && m.order_type != MARKET,
            m.quote_quantity != 0 && (m.quantity != 0 || !with(SYMBOL_QUOTE_QUANTITY)),
            m.iceberg_quantity != 0 && (!gtc || !with(SYMBOL_ICEBERG)),
            m.stop_price != 0 && !(3..=6).contains(&m.order_type),
            m.self_trade_prevention != 0,
            m.flags > 1,
        ];
        check(!bad.contains(&true), Why::UnsupportedCombination)
    }

    pub(crate) fn check_filters(symbol: &NaiveSymbol, m: &NewOrder) -> Result<(), (Why, u32)> {
        let f = &symbol.filters;
        let stop = (3..=6).contains(&m.order_type);
        let limit = !matches!(m.order_type, MARKET | 3 | 5);
        check(!limit || m.price > 0, Why::InvalidPrice)?;
        check(!stop || m.stop_price > 0, Why::InvalidPrice)?;
        if m.quote_quantity != 0 {
            return check(m.quote_quantity > 0, Why::InvalidQuantity);
        }
        check(m.quantity > 0 && m.iceberg_quantity >= 0, Why::InvalidQuantity)?;
        let price = fits(m.price, f.price_min, f.price_max, f.tick_size);
        check(!limit || price, Why::PriceFilter)?;
        let price = fits(m.stop_price, f.price_min, f.price_max, f.tick_size);
        check(!stop || price, Why::PriceFilter)?;
        check(fits(m.quantity, f.lot_min, f.lot_max, f.lot_step), Why::LotSize)?;
        if m.iceberg_quantity > 0 {
            check(fits(m.iceberg_quantity, f.lot_min, f.lot_max, f.lot_step), Why::LotSize)?;
            let (whole, part) = (i128::from(m.quantity), i128::from(m.iceberg_quantity));
            let parts = (whole + part - 1) / part;
            let most = if f.iceberg_parts == 0 { 1000 } else { f.iceberg_parts };
            check(parts <= most.into(), Why::IcebergParts)?;
        }
        let lot = fits(m.quantity, f.market_lot_min, f.market_lot_max, f.market_lot_step);
        check(limit || stop || lot, Why::MarketLotSize)?;
        match (limit, stop) {
            (true, _) => Self::check_notional(f, m.price, m.quantity),
            (false, true) => Self::check_notional(f, m.stop_price, m.quantity),
            (false, false) => Ok(()),
        }
    }

    /// Filters by the average price of the last minutes, or if there is none by the last price.
    pub(crate) fn check_averages(
        symbol: &NaiveSymbol,
        m: &NewOrder,
        time: u64,
    ) -> Result<(), (Why, u32)> {
        let f = &symbol.filters;
        let average = |minutes: u32| {
            let minute = |time: u64| time / 60_000_000_000;
            let first = minute(time) + 1 - u64::from(minutes);
            let (mut paid, mut bought) = (0i128, 0i128);
            for (at, price, quantity) in &symbol.history {
                if minute(*at) >= first {
                    paid += i128::from(*price) * i128::from(*quantity);
                    bought += i128::from(*quantity);
                }
            }
            if bought > 0 { Some(paid / bought) } else { symbol.last.map(i128::from) }
        };
        if m.price > 0
            && let Some(average) = average(f.percent_price_minutes)
        {
            let price = i128::from(m.price) * ONE;
            let (up, down) = (i128::from(f.percent_price_up), i128::from(f.percent_price_down));
            check(up == 0 || price <= average * up, Why::PercentPrice)?;
            check(down == 0 || price >= average * down, Why::PercentPrice)?;
        }
        if m.order_type == MARKET && f.min_notional_applies_to_market == 1 {
            let worth = if m.quote_quantity > 0 {
                i128::from(m.quote_quantity) * ONE
            } else {
                average(f.min_notional_minutes).unwrap_or(0) * i128::from(m.quantity)
            };
            check(worth >= i128::from(f.min_notional) * ONE, Why::MinNotional)?;
        }
        Ok(())
    }

    pub(crate) fn check_notional(
        f: &SymbolFilters,
        price: i64,
        quantity: i64,
    ) -> Result<(), (Why, u32)> {
        check(up(price, quantity) <= i128::from(i64::MAX / 2), Why::Overflow)?;
        check(down(price, quantity) > 0, Why::NotionalTooSmall)?;
        let notional = i128::from(price) * i128::from(quantity);
        check(notional >= i128::from(f.min_notional) * ONE, Why::MinNotional)
    }

    /// Gives what to lock, the base quantity, and whether the book has less than was asked for.
    pub(crate) fn check_state(
        &self,
        account: u32,
        m: &NewOrder,
    ) -> Result<(i128, i64, bool), (Why, u32)> {
        let symbol = &self.symbols[m.symbol.0 as usize];
        let own: Vec<_> = symbol.open().filter(|order| order.account == account).collect();
        let most = symbol.filters.max_orders as usize;
        check(most == 0 || own.len() < most, Why::MaxNumOrders)?;
        let icebergs = own.iter().filter(|order| order.iceberg > 0).count();
        let most = symbol.filters.max_iceberg_orders as usize;
        let iceberg = m.iceberg_quantity > 0;
        check(!iceberg || most == 0 || icebergs < most, Why::MaxNumIcebergOrders)?;
        let all: Vec<_> = self.symbols.iter().flat_map(NaiveSymbol::open).collect();
        let all: Vec<_> = all.iter().filter(|order| order.account == account).collect();
        let most = self.max_orders;
        check(most == 0 || all.len() < most, Why::ExchangeMaxNumOrders)?;
        let stop = m.stop_price > 0;
        let algos = own.iter().filter(|order| order.stop > 0).count();
        let most = symbol.filters.max_algo_orders as usize;
        check(!stop || most == 0 || algos < most, Why::MaxNumAlgoOrders)?;
        let algos = all.iter().filter(|order| order.stop > 0).count();
        let most = self.max_algo_orders;
        check(!stop || most == 0 || algos < most, Why::ExchangeMaxNumAlgoOrders)?;
        let taken = own.iter().any(|order| order.name == m.client_order_id);
        check(m.client_order_id.is_empty() || !taken, Why::DuplicateClientOrderId)?;
        let fired = stop && reached(m.order_type, m.side, m.stop_price, symbol.last);
        check(!fired, Why::WouldTrigger)?;
        let would_take = !symbol.reachable(m.side, m.price).is_empty();
        check(m.order_type != MAKER || !would_take, Why::WouldTake)?;
        let mut m = *m;
        let mut dry = false;
        if m.quote_quantity > 0 {
            (m.quantity, dry) = Self::by_quote(symbol, &m)?;
        }
        let position = |part: &BTreeMap<u32, i128>| part.get(&symbol.base).copied().unwrap_or(0);
        let owner = &self.accounts[account as usize];
        let buys = own.iter().filter(|order| order.side == BUY);
        let buys: i128 = buys.map(|order| i128::from(order.quantity)).sum();
        let position = position(&owner.free) + position(&owner.locked) + buys;
        let most = i128::from(symbol.filters.max_position);
        let above = m.side == BUY && position + i128::from(m.quantity) > most;
        check(most == 0 || !above, Why::MaxPosition)?;
        self.check_capacity(symbol, &m)?;
        let free = &self.accounts[account as usize].free;
        let free = free.get(&symbol.paid_with(m.side)).copied().unwrap_or(0);
        let needed = match (m.side, m.order_type) {
            (SELL, _) => i128::from(m.quantity),
            _ if m.quote_quantity > 0 => m.quote_quantity.into(),
            _ if stop && m.price == 0 => up(m.stop_price, m.quantity),
            _ if m.price > 0 => up(m.price, m.quantity),
            _ => symbol.cost(m.quantity),
        };
        check(needed <= free, Why::InsufficientBalance)?;
        Ok((needed, m.quantity, dry))
    }

    /// The quantity that a quote amount comes to, level by level, and whether the book ends first.
    fn by_quote(symbol: &NaiveSymbol, m: &NewOrder) -> Result<(i64, bool), (Why, u32)> {
        let other = if m.side == BUY { &symbol.asks } else { &symbol.bids };
        let step = i128::from(symbol.filters.lot_step.max(1));
        let (mut amount, mut quantity, mut dry) = (i128::from(m.quote_quantity), 0, true);
        for price in symbol.reachable(m.side, 0) {
            let there: i128 = other[&price].iter().map(|order| i128::from(order.open())).sum();
            let wanted = amount * ONE / i128::from(price) / step * step;
            let taken = wanted.min(there);
            quantity += taken;
            amount -= up(price, taken as i64);
            if wanted <= there {
                dry = false;
                break;
            }
        }
        check(quantity >= i128::from(symbol.filters.lot_min.max(1)), Why::LotSize)?;
        Ok((quantity as i64, dry))
    }

    fn check_capacity(&self, symbol: &NaiveSymbol, m: &NewOrder) -> Result<(), (Why, u32)> {
        if m.stop_price > 0 {
            return self.check_room_for_stop(symbol, m);
        }
        let prices = symbol.reachable(m.side, m.price);
        if !prices.is_empty() {
            let other = if m.side == BUY { &symbol.asks } else { &symbol.bids };
            let (mut makers, mut open) = (0, i128::from(m.quantity));
            for price in prices {
                if open > 0 {
                    let hides = |order: &NaiveOrder| order.shown < order.open();
                    let again = other[&price].iter().any(hides);
                    makers += other[&price].len() as u32 + if again { 10_000 } else { 0 };
                    open -= other[&price].iter().map(|order| i128::from(order.shown)).sum::<i128>();
                }
            }
            let full = self.pending.len() as u32 >= self.limits.pending_work;
            if full && (makers > self.limits.max_steps || !symbol.waiting.is_empty()) {
                return Err((Why::CapacityReached, 7));
            }
            return Ok(());
        }
        if m.order_type != MAKER && (m.order_type != LIMIT || m.time_in_force != GTC) {
            return Ok(());
        }
        let (orders, levels, kept) = self.in_use();
        if orders + kept >= self.limits.open_orders {
            return Err((Why::CapacityReached, 5));
        }
        let own = if m.side == BUY { &symbol.bids } else { &symbol.asks };
        if levels + kept >= self.limits.price_levels && !own.contains_key(&m.price) {
            return Err((Why::CapacityReached, 6));
        }
        Ok(())
    }

    fn check_room_for_stop(&self, symbol: &NaiveSymbol, m: &NewOrder) -> Result<(), (Why, u32)> {
        let (orders, levels, kept) = self.in_use();
        if orders + kept >= self.limits.open_orders {
            return Err((Why::CapacityReached, 5));
        }
        let key = (upwards(m.order_type, m.side), m.stop_price);
        let of = |order: &NaiveOrder| (upwards(order.order_type, order.side), order.stop);
        let new = !symbol.waiting.iter().any(|order| of(order) == key);
        let rests = timed(m.order_type) && m.time_in_force == GTC;
        let more = u32::from(new) + u32::from(rests);
        if more > 0 && levels + kept + more > self.limits.price_levels {
            return Err((Why::CapacityReached, 6));
        }
        Ok(())
    }

    /// Open orders, occupied levels, and what of each pending orders may still need.
    fn in_use(&self) -> (u32, u32, u32) {
        let orders: usize = self.symbols.iter().map(|symbol| symbol.open().count()).sum();
        let levels = |symbol: &NaiveSymbol| {
            let of = |order: &NaiveOrder| (upwards(order.order_type, order.side), order.stop);
            let stops: BTreeSet<_> = symbol.waiting.iter().map(of).collect();
            let waiting = symbol.waiting.iter().chain(&symbol.fired);
            let kept = waiting.filter(|order| order.rests()).count();
            symbol.bids.len() + symbol.asks.len() + stops.len() + kept
        };
        let levels: usize = self.symbols.iter().map(levels).sum();
        let pending = self.pending.iter().filter_map(|(_, order)| order.as_ref());
        let kept = pending.filter(|order| order.rests()).count();
        (orders as u32, levels as u32, kept as u32)
    }

    pub(crate) fn set_limits(&mut self, limits: Limits) -> Outcome {
        let (orders, levels, kept) = self.in_use();
        let used = [orders + kept, levels + kept, self.pending.len() as u32];
        let asked = [limits.open_orders, limits.price_levels, limits.pending_work];
        if let Some(at) = (0..3).find(|&at| asked[at] < used[at]) {
            return Err((Why::LimitOutOfRange, 5 + at as u32));
        }
        self.limits = limits;
        Ok(vec![Owned::Done(Done::default())])
    }
}
