//! What one symbol's orders and both accounts' money have to be after a sequence of commands: a naive
//! price-time book with exact money. Called by the crash tests, which apply to it what was
//! acknowledged and compare the service with it.

use super::units::{WHOLE, commission, quote_amount, quote_lock};
use std::collections::{BTreeMap, VecDeque};

/// Side of an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Buy,
    Sell,
}

impl Side {
    /// As the contract writes it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Buy => "BUY",
            Self::Sell => "SELL",
        }
    }
}

/// Order type and time in force.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Limit,
    ImmediateOrCancel,
    FillOrKill,
    Market,
}

impl Kind {
    /// Type and time in force as the contract shows them in replies.
    pub(crate) const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Limit => ("LIMIT", "GTC"),
            Self::ImmediateOrCancel => ("LIMIT", "IOC"),
            Self::FillOrKill => ("LIMIT", "FOK"),
            Self::Market => ("MARKET", "GTC"),
        }
    }
}

/// A new order. Amounts in 10⁻⁸; a MARKET order has price 0.
#[derive(Clone, Debug)]
pub(crate) struct Placement {
    /// 0 or 1: the first or second demo account.
    pub(crate) account: usize,
    pub(crate) client_id: String,
    pub(crate) side: Side,
    pub(crate) kind: Kind,
    pub(crate) price: i128,
    pub(crate) quantity: i128,
}

/// An order as it has to stand.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) placed: Placement,
    pub(crate) status: &'static str,
    pub(crate) executed: i128,
    pub(crate) quote: i128,
    locked: i128,
    /// When it was placed, in ms, if the placement was acknowledged.
    pub(crate) time: Option<i128>,
}

impl Order {
    /// Quantity still open.
    pub(crate) const fn remaining(&self) -> i128 {
        self.placed.quantity - self.executed
    }
}

/// One fill as its aggressor sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fill {
    pub(crate) price: i128,
    pub(crate) quantity: i128,
    pub(crate) commission: i128,
}

/// Changes of free and locked balance per account and asset, and what went to the fee account.
#[derive(Clone, Default, Debug)]
pub(crate) struct Ledger {
    pub(crate) changes: [BTreeMap<&'static str, (i128, i128)>; 2],
    pub(crate) commissions: BTreeMap<&'static str, i128>,
}

impl Ledger {
    fn free(&mut self, account: usize, asset: &'static str, amount: i128) {
        self.changes[account].entry(asset).or_default().0 += amount;
    }

    fn locked(&mut self, account: usize, asset: &'static str, amount: i128) {
        self.changes[account].entry(asset).or_default().1 += amount;
    }

    fn receive(&mut self, account: usize, asset: &'static str, amount: i128) -> i128 {
        let fee = commission(amount);
        self.free(account, asset, amount - fee);
        *self.commissions.entry(asset).or_default() += fee;
        fee
    }
}

type Levels = BTreeMap<i128, VecDeque<i128>>;

/// One symbol.
pub(crate) struct Book {
    pub(crate) base: &'static str,
    pub(crate) quote: &'static str,
    pub(crate) orders: BTreeMap<i128, Order>,
    pub(crate) ledger: Ledger,
    bids: Levels,
    asks: Levels,
}

impl Book {
    /// An empty book.
    pub(crate) fn new(base: &'static str, quote: &'static str) -> Self {
        Self {
            base,
            quote,
            orders: BTreeMap::new(),
            ledger: Ledger::default(),
            bids: Levels::new(),
            asks: Levels::new(),
        }
    }

    /// The number that the next accepted order gets.
    pub(crate) fn next_id(&self) -> i128 {
        self.orders.last_key_value().map_or(1, |(id, _)| id + 1)
    }

    /// Ids of the open orders.
    pub(crate) fn open(&self) -> impl Iterator<Item = i128> {
        self.bids.values().chain(self.asks.values()).flatten().copied()
    }

    /// Price and open quantity of each level, best first.
    pub(crate) fn depth(&self, side: Side) -> Vec<(i128, i128)> {
        let total = |(price, ids): (&i128, &VecDeque<i128>)| {
            (*price, ids.iter().map(|id| self.orders[id].remaining()).sum())
        };
        match side {
            Side::Buy => self.bids.iter().rev().map(total).collect(),
            Side::Sell => self.asks.iter().map(total).collect(),
        }
    }

    /// Applies an accepted order; gives its number and its fills.
    pub(crate) fn place(&mut self, placed: Placement) -> (i128, Vec<Fill>) {
        let id = self.next_id();
        let (kind, side, price) = (placed.kind, placed.side, placed.price);
        let killed = kind == Kind::FillOrKill && self.reachable(side, price) < placed.quantity;
        let mut order =
            Order { placed, status: "NEW", executed: 0, quote: 0, locked: 0, time: None };
        self.lock(&mut order);
        let fills = if killed { Vec::new() } else { self.matched(&mut order) };
        if order.remaining() == 0 {
            self.end(&mut order, "FILLED");
        } else if kind != Kind::Limit {
            self.end(&mut order, "EXPIRED");
        } else {
            order.status = if order.executed == 0 { "NEW" } else { "PARTIALLY_FILLED" };
            self.release_saved(&mut order);
            self.levels(side).entry(price).or_default().push_back(id);
        }
        self.orders.insert(id, order);
        (id, fills)
    }

    /// Applies the cancel of an open order.
    pub(crate) fn cancel(&mut self, id: i128) {
        let mut order = self.orders[&id].clone();
        let levels = self.levels(order.placed.side);
        let queue = levels.get_mut(&order.placed.price).expect("open orders stand in the book");
        queue.retain(|other| *other != id);
        if queue.is_empty() {
            levels.remove(&order.placed.price);
        }
        self.end(&mut order, "CANCELED");
        self.orders.insert(id, order);
    }

    const fn levels(&mut self, side: Side) -> &mut Levels {
        match side {
            Side::Buy => &mut self.bids,
            Side::Sell => &mut self.asks,
        }
    }

    /// Quantity that an aggressor can trade at its price or better.
    fn reachable(&self, side: Side, price: i128) -> i128 {
        let opposite = if side == Side::Buy { Side::Sell } else { Side::Buy };
        let within = |level: &(i128, i128)| crosses(side, price, level.0);
        self.depth(opposite).iter().filter(|level| within(level)).map(|level| level.1).sum()
    }

    /// The best resting order that the aggressor may trade with.
    fn best(&self, order: &Order) -> Option<(i128, i128)> {
        let (price, ids) = match order.placed.side {
            Side::Buy => self.asks.first_key_value()?,
            Side::Sell => self.bids.last_key_value()?,
        };
        let market = order.placed.kind == Kind::Market;
        let trades = market || crosses(order.placed.side, order.placed.price, *price);
        trades.then(|| (*price, *ids.front().expect("levels are never empty")))
    }

    fn matched(&mut self, order: &mut Order) -> Vec<Fill> {
        let mut fills = Vec::new();
        while order.remaining() > 0
            && let Some((price, maker_id)) = self.best(order)
        {
            let mut maker = self.orders[&maker_id].clone();
            let quantity = order.remaining().min(maker.remaining());
            self.pay(&mut maker, price, quantity);
            let fee = self.pay(order, price, quantity);
            if maker.remaining() == 0 {
                let side = maker.placed.side;
                let queue = self.levels(side).get_mut(&price).expect("the level of the maker");
                queue.pop_front();
                if queue.is_empty() {
                    self.levels(side).remove(&price);
                }
                self.end(&mut maker, "FILLED");
            } else {
                maker.status = "PARTIALLY_FILLED";
            }
            self.orders.insert(maker_id, maker);
            fills.push(Fill { price, quantity, commission: fee });
        }
        fills
    }

    /// One side of one fill: pays what it gives, receives the other less commission.
    fn pay(&mut self, order: &mut Order, price: i128, quantity: i128) -> i128 {
        let amount = quote_amount(price, quantity);
        order.executed += quantity;
        order.quote += amount;
        let account = order.placed.account;
        let (given, asset, received, other) = match order.placed.side {
            Side::Buy => (amount, self.quote, quantity, self.base),
            Side::Sell => (quantity, self.base, amount, self.quote),
        };
        if is_unlocked(order) {
            self.ledger.free(account, asset, -given);
        } else {
            order.locked -= given;
            self.ledger.locked(account, asset, -given);
        }
        self.ledger.receive(account, other, received)
    }

    fn lock(&mut self, order: &mut Order) {
        if is_unlocked(order) {
            return;
        }
        let (asset, amount) = match order.placed.side {
            Side::Buy => (self.quote, quote_lock(order.placed.price, order.placed.quantity)),
            Side::Sell => (self.base, order.placed.quantity),
        };
        order.locked = amount;
        self.ledger.free(order.placed.account, asset, -amount);
        self.ledger.locked(order.placed.account, asset, amount);
    }

    /// A buy in the book locks what it has open at its price; what it has saved by better ones becomes free.
    fn release_saved(&mut self, order: &mut Order) {
        if order.placed.side == Side::Buy {
            let saved = order.locked - quote_lock(order.placed.price, order.remaining());
            order.locked -= saved;
            self.ledger.locked(order.placed.account, self.quote, -saved);
            self.ledger.free(order.placed.account, self.quote, saved);
        }
    }

    /// Ends an order: what is still locked becomes free.
    fn end(&mut self, order: &mut Order, status: &'static str) {
        order.status = status;
        let asset = if order.placed.side == Side::Buy { self.quote } else { self.base };
        self.ledger.locked(order.placed.account, asset, -order.locked);
        self.ledger.free(order.placed.account, asset, order.locked);
        order.locked = 0;
    }
}

/// A MARKET BUY has no price to lock at; it is over within its own placement.
fn is_unlocked(order: &Order) -> bool {
    order.placed.kind == Kind::Market && order.placed.side == Side::Buy
}

fn crosses(side: Side, limit: i128, price: i128) -> bool {
    match side {
        Side::Buy => price <= limit,
        Side::Sell => price >= limit,
    }
}

#[test]
fn the_model_keeps_price_time_priority_and_money() {
    let mut book = Book::new("BTC", "USDT");
    let order = |account, side, kind, price: i128, quantity: i128| Placement {
        account,
        client_id: String::new(),
        side,
        kind,
        price: price * WHOLE,
        quantity: quantity * WHOLE,
    };
    book.place(order(0, Side::Sell, Kind::Limit, 101, 1));
    book.place(order(1, Side::Sell, Kind::Limit, 100, 2));
    book.place(order(0, Side::Sell, Kind::Limit, 100, 2));
    let (killed, _) = book.place(order(1, Side::Buy, Kind::FillOrKill, 100, 5));
    assert_eq!(book.orders[&killed].status, "EXPIRED");
    let (taker, fills) = book.place(order(1, Side::Buy, Kind::Limit, 101, 6));
    let taken: Vec<_> =
        fills.iter().map(|fill| (fill.price / WHOLE, fill.quantity / WHOLE)).collect();
    assert_eq!(taken, [(100, 2), (100, 2), (101, 1)]);
    assert_eq!((taker, book.orders[&taker].status), (5, "PARTIALLY_FILLED"));
    assert_eq!(book.depth(Side::Buy), [(101 * WHOLE, WHOLE)]);
    book.cancel(taker);
    assert_eq!(book.open().count(), 0);
    for asset in ["BTC", "USDT"] {
        let total: i128 =
            book.ledger.changes.iter().map(|account| account[asset].0 + account[asset].1).sum();
        assert_eq!(total + book.ledger.commissions[asset], 0, "{asset}");
    }
    assert!(book.ledger.changes.iter().flat_map(BTreeMap::values).all(|(_, locked)| *locked == 0));
}
