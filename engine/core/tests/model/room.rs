//! The model: what account, book and capacities say to a new order.

use crate::fields::{fits_market_lot, side_of, time_in_force_of, type_of};
use crate::state::{
    Model, ONE, Order, Place, Rejection, Work, check, check_detail, down, fires_upwards,
    is_reached, is_stop, rests, up,
};
use std::collections::BTreeSet;
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{OrderType, RejectReason as Why, Side};

/// True when `more` still fit under a filter's limit; 0 is no limit, and none more always fit.
fn fit(open: usize, more: usize, most: u32) -> bool {
    most == 0 || more == 0 || open + more <= most as usize
}

/// The largest quantity up to `most` that LOT_SIZE and MARKET_LOT_SIZE both allow (contract 2 and 4).
fn market_lots(f: &SymbolFilters, most: i128) -> Result<i64, Rejection> {
    let most = most.min(if f.lot_max == 0 { i64::MAX } else { f.lot_max }.into());
    let (least, step) = (i128::from(f.lot_min), i128::from(f.lot_step.max(1)));
    let largest = least + (most - least).div_euclid(step) * step;
    check(largest >= least.max(1), Why::LotSize)?;
    let mut fitting = largest as i64;
    while fitting >= f.lot_min.max(1) && !fits_market_lot(f, fitting) {
        fitting -= step as i64;
    }
    check(fitting >= f.lot_min.max(1), Why::MarketLotSize)?;
    Ok(fitting)
}

impl Model {
    /// MAX_NUM_ORDERS, MAX_NUM_ICEBERG_ORDERS, MAX_NUM_ALGO_ORDERS and those of the exchange, for orders
    /// placed together.
    pub(crate) fn check_open_counts(
        &self,
        account: u32,
        symbol: u32,
        new: &[NewOrder],
    ) -> Result<(), Rejection> {
        let f = &self.symbol(symbol).filters;
        let here: Vec<_> = self.own(account, symbol).collect();
        let everywhere: Vec<_> = self.orders.iter().filter(|own| own.account == account).collect();
        let icebergs = |orders: &[&Order]| orders.iter().filter(|own| own.iceberg > 0).count();
        let algos = |orders: &[&Order]| orders.iter().filter(|own| own.is_algo()).count();
        let new_icebergs = new.iter().filter(|m| m.iceberg_quantity > 0).count();
        let new_algos = new.iter().filter(|m| is_stop(type_of(m))).count();
        check(fit(here.len(), new.len(), f.max_orders), Why::MaxNumOrders)?;
        let fits = fit(icebergs(&here), new_icebergs, f.max_iceberg_orders);
        check(fits, Why::MaxNumIcebergOrders)?;
        // An order that goes on taking elsewhere and may rest is open too.
        let taking = self.aggressors_that_rest(|order| order.account == account) as usize;
        let open = everywhere.len() + taking;
        check(fit(open, new.len(), self.max_orders), Why::ExchangeMaxNumOrders)?;
        check(fit(algos(&here), new_algos, f.max_algo_orders), Why::MaxNumAlgoOrders)?;
        let fits = fit(algos(&everywhere), new_algos, self.max_algo_orders);
        check(fits, Why::ExchangeMaxNumAlgoOrders)
    }

    /// A client order id names one open order of the account on the symbol.
    pub(crate) fn check_names(
        &self,
        account: u32,
        symbol: u32,
        new: &[NewOrder],
    ) -> Result<(), Rejection> {
        let open = self.own(account, symbol).map(|own| own.name);
        let mut names: Vec<_> = open.chain(new.iter().map(|m| m.client_order_id)).collect();
        names.retain(|name| !name.is_empty());
        let different: BTreeSet<_> = names.iter().map(|name| name.as_str()).collect();
        check(different.len() == names.len(), Why::DuplicateClientOrderId)
    }

    /// A stop that the last price has reached is not taken.
    pub(crate) fn check_stop_price(&self, symbol: u32, m: &NewOrder) -> Result<(), Rejection> {
        let last = self.symbol(symbol).last;
        let stop = is_stop(type_of(m));
        let reached = stop && is_reached(type_of(m), side_of(m), m.stop_price, last);
        check(!reached, Why::WouldTrigger)
    }

    /// LIMIT_MAKER does not take.
    pub(crate) fn check_maker_only(&self, symbol: u32, m: &NewOrder) -> Result<(), Rejection> {
        let takes = !self.reachable(symbol, side_of(m), m.price).is_empty();
        check(type_of(m) != OrderType::LimitMaker || !takes, Why::WouldTake)
    }

    /// MAX_POSITION: what the account has of the base asset and what its open BUY orders ask for, with
    /// `more` of them. The legs of an open list buy once.
    pub(crate) fn check_position(
        &self,
        account: u32,
        symbol: u32,
        side: Side,
        more: i128,
    ) -> Result<(), Rejection> {
        let base = self.symbol(symbol).base;
        let most = i128::from(self.symbol(symbol).filters.max_position);
        let second_leg =
            |own: &Order| self.list_of(own).is_some_and(|list| list.stop_leg == own.id);
        let buys = self.own(account, symbol).filter(|own| own.side == Side::Buy);
        let asked: i128 =
            buys.filter(|own| !second_leg(own)).map(|own| i128::from(own.quantity)).sum();
        let position = self.free(account, base) + self.locked(account, base) + asked;
        let above = side == Side::Buy && position + more > most;
        check(most == 0 || !above, Why::MaxPosition)
    }

    /// The quantity to trade, and whether the book has less than was asked for. An amount of the quote
    /// asset is turned into base price by price, and all of it cut to what the filters allow.
    pub(crate) fn base_quantity(&self, m: &NewOrder) -> Result<(i64, bool), Rejection> {
        if m.quote_quantity == 0 {
            return Ok((m.quantity, false));
        }
        let filters = &self.symbol(m.symbol.0).filters;
        let (mut amount, mut quantity) = (i128::from(m.quote_quantity), 0);
        let mut wants_more = true;
        for (price, there) in self.levels(m.symbol.0, side_of(m)) {
            let largest = i128::from(i64::MAX);
            let wanted = (amount * ONE / i128::from(price)).min(largest);
            check(quantity + wanted.min(there) <= largest, Why::Overflow)?;
            let cut = market_lots(filters, quantity + wanted);
            wants_more = !cut.is_ok_and(|cut| i128::from(cut) <= quantity + there);
            // For a sell the rest may be worth a step at a lower price.
            if wanted <= there || !wants_more && side_of(m) == Side::Buy {
                return Ok((cut?, false));
            }
            quantity += there;
            amount -= up(price, there as i64);
        }
        Ok((market_lots(filters, quantity)?, wants_more))
    }

    /// By rules 5 what MARKET asks for by quantity is worth something at the best price.
    pub(crate) fn check_market_worth(&self, m: &NewOrder) -> Result<(), Rejection> {
        let market = type_of(m) == OrderType::Market && m.quote_quantity == 0;
        if self.rules < 5 || !market {
            return Ok(());
        }
        let makers = self.reachable(m.symbol.0, side_of(m), 0);
        let nothing = makers.first().is_some_and(|best| down(best.price, m.quantity) == 0);
        check(!nothing, Why::NotionalTooSmall)
    }

    /// What the order must have free: a sell its quantity; a buy its price times quantity rounded up, a
    /// stop without a limit at the price that fires it, MARKET what is on the book.
    pub(crate) fn funds_needed(&self, m: &NewOrder, quantity: i64) -> i128 {
        match (side_of(m), type_of(m)) {
            (Side::Sell, _) => quantity.into(),
            _ if m.quote_quantity > 0 => m.quote_quantity.into(),
            _ if m.price > 0 => up(m.price, quantity),
            _ if m.stop_price > 0 => up(m.stop_price, quantity),
            _ => self.cost(m.symbol.0, quantity),
        }
    }

    /// What buying a quantity costs, rounded up price by price, of what there is.
    pub(crate) fn cost(&self, symbol: u32, quantity: i64) -> i128 {
        let (mut open, mut cost) = (i128::from(quantity), 0);
        for (price, there) in self.levels(symbol, Side::Buy) {
            cost += up(price, there.min(open) as i64);
            open -= there.min(open);
        }
        cost
    }

    /// What an aggressor finds at each price, best first, hidden parts and its own account's included.
    fn levels(&self, symbol: u32, side: Side) -> Vec<(i64, i128)> {
        let mut levels: Vec<(i64, i128)> = Vec::new();
        for maker in self.reachable(symbol, side, 0) {
            match levels.last_mut() {
                Some((price, there)) if *price == maker.price => *there += i128::from(maker.open()),
                _ => levels.push((maker.price, maker.open().into())),
            }
        }
        levels
    }

    /// Capacities: every open order and every price in use has a place, and whatever may rest later (a
    /// waiting stop with a limit, an aggressor that goes on) has one kept for it. An order that takes
    /// first makes its own room.
    pub(crate) fn check_room(&self, symbol: u32, new: &[NewOrder]) -> Result<(), Rejection> {
        let takes = |m: &NewOrder| !self.reachable(symbol, side_of(m), m.price).is_empty();
        let rests = |m: &NewOrder| rests(type_of(m), time_in_force_of(m));
        let opens = |m: &NewOrder| is_stop(type_of(m)) || rests(m) && !takes(m);
        let new: Vec<_> = new.iter().filter(|m| opens(m)).collect();
        let room = self.open_orders_in_use() + new.len() as u32 <= self.limits.open_orders;
        check_detail(new.is_empty() || room, Why::CapacityReached, 5)?;
        let mut more = 0;
        for m in new {
            if is_stop(type_of(m)) {
                let upwards = fires_upwards(type_of(m), side_of(m));
                let key = (symbol, upwards, m.stop_price);
                more += u32::from(!self.stop_prices().contains(&key)) + u32::from(rests(m));
            } else {
                let key = (symbol, side_of(m), m.price);
                more += u32::from(!self.book_prices().contains(&key));
            }
        }
        let room = self.price_levels_kept() + more <= self.limits.price_levels;
        check_detail(more == 0 || room, Why::CapacityReached, 6)
    }

    fn book_prices(&self) -> BTreeSet<(u32, Side, i64)> {
        let booked = self.orders.iter().filter(|order| order.in_book());
        booked.map(|order| (order.symbol, order.side, order.price)).collect()
    }

    fn stop_prices(&self) -> BTreeSet<(u32, bool, i64)> {
        let key =
            |order: &Order| (order.symbol, fires_upwards(order.order_type, order.side), order.stop);
        self.orders.iter().filter(|order| order.place == Place::Waiting).map(key).collect()
    }

    /// Prices at which orders rest or stops wait.
    pub(crate) fn price_levels_in_use(&self) -> u32 {
        (self.book_prices().len() + self.stop_prices().len()) as u32
    }

    /// These, and one for each order that may come to rest later.
    pub(crate) fn price_levels_kept(&self) -> u32 {
        let stops = self.orders.iter().filter(|order| order.is_algo() && order.rests());
        self.price_levels_in_use() + stops.count() as u32 + self.aggressors_that_rest(|_| true)
    }

    /// Open orders, and aggressors that may come to rest later.
    pub(crate) fn open_orders_in_use(&self) -> u32 {
        self.orders.len() as u32 + self.aggressors_that_rest(|_| true)
    }

    fn aggressors_that_rest(&self, whose: impl Fn(&Order) -> bool) -> u32 {
        let rests =
            |work: &&Work| matches!(work, Work::Aggressor(order) if order.rests() && whose(order));
        self.work.iter().filter(rests).count() as u32
    }
}
