//! Balances and open orders as the events tell them, and nothing else; compared with the venue's.

use crate::venue::{Owned, Venue, WHOLE};
use std::collections::BTreeMap;
use touchline_core::Balance;
use touchline_protocol::message::enums::{OrderStatus, OrderType, Side, TimeInForce};
use touchline_protocol::message::event::{OrderAccepted, OrderResult, Trade};
use touchline_protocol::units::*;

/// An open order, or one that is taking.
#[derive(Clone, Copy)]
struct Open {
    account: AccountId,
    side: u8,
    order_type: u8,
    time_in_force: u8,
    quantity: i64,
    remaining: i64,
}

/// What the events have told so far.
#[derive(Default)]
pub(crate) struct Kept {
    /// Base and quote of each symbol.
    pub(crate) pairs: Vec<(AssetId, AssetId)>,
    money: BTreeMap<(AccountId, AssetId), Balance>,
    orders: BTreeMap<(SymbolId, OrderId), Open>,
    last: BTreeMap<SymbolId, i64>,
    /// How often each thing was told.
    pub(crate) told: BTreeMap<&'static str, u64>,
}

/// Which order an event is about, and how it changes what is open and locked of it.
struct Change {
    order: (SymbolId, OrderId),
    quantity: i64,
    executed: i64,
    more_locked: i64,
    is_open: bool,
}

impl Kept {
    /// Price of a symbol's last trade.
    pub(crate) fn last(&self, symbol: u32) -> Option<i64> {
        self.last.get(&SymbolId(symbol)).copied()
    }

    pub(crate) fn deposit(&mut self, account: AccountId, asset: AssetId, amount: i64) {
        self.of(account, asset).free.0 += amount;
    }

    fn of(&mut self, account: AccountId, asset: AssetId) -> &mut Balance {
        self.money.entry((account, asset)).or_default()
    }

    fn lock(&mut self, account: AccountId, (symbol, side): (SymbolId, u8), amount: i64) {
        let (base, quote) = self.pairs[symbol.0 as usize];
        let asset = if side == Side::Buy.to_wire() { quote } else { base };
        let balance = self.of(account, asset);
        balance.free.0 -= amount;
        balance.locked.0 += amount;
    }

    /// Takes in what a transaction has told.
    pub(crate) fn take_in(&mut self, events: &[Owned]) {
        for event in events {
            let name = self.take_in_one(event);
            *self.told.entry(name).or_default() += 1;
        }
    }

    fn take_in_one(&mut self, event: &Owned) -> &'static str {
        match event {
            Owned::Accepted(event) => self.accepted(event),
            Owned::Trade(event) => self.trade(event),
            Owned::Result(event) => return self.result(event),
            Owned::Canceled(event) => self.change(&Change {
                order: (event.symbol, event.order_id),
                quantity: event.quantity,
                executed: event.executed_quantity,
                more_locked: -event.released,
                is_open: false,
            }),
            Owned::Reduced(event) => self.change(&Change {
                order: (event.symbol, event.order_id),
                quantity: event.quantity,
                executed: event.executed_quantity,
                more_locked: -event.released,
                is_open: true,
            }),
            Owned::Replaced(event) => self.change(&Change {
                order: (event.symbol, event.order_id),
                quantity: event.quantity,
                executed: event.executed_quantity,
                more_locked: event.locked,
                is_open: true,
            }),
            Owned::Triggered(event) => {
                let open = self.orders[&(event.symbol, event.order_id)];
                self.lock(open.account, (event.symbol, open.side), event.locked);
            }
            Owned::Prevented(event) => assert!(event.quantity > 0),
            _ => {}
        }
        match event {
            Owned::Accepted(_) => "accepted",
            Owned::Trade(_) => "trade",
            Owned::Canceled(_) => "canceled",
            Owned::Reduced(_) => "reduced",
            Owned::Replaced(_) => "replaced",
            Owned::Triggered(_) => "triggered",
            Owned::Prevented(_) => "prevented",
            Owned::Continues(_) => "continues",
            Owned::ListChanged(_) => "list",
            Owned::Refilled(_) => "refilled",
            _ => "other",
        }
    }

    fn accepted(&mut self, event: &OrderAccepted) {
        self.lock(event.account, (event.symbol, event.side), event.locked);
        let open = Open {
            account: event.account,
            side: event.side,
            order_type: event.order_type,
            time_in_force: event.time_in_force,
            quantity: event.quantity,
            remaining: event.quantity,
        };
        let before = self.orders.insert((event.symbol, event.order_id), open);
        assert!(before.is_none(), "a number is given out once");
    }

    fn trade(&mut self, event: &Trade) {
        let (base, quote) = self.pairs[event.symbol.0 as usize];
        let maker = (event.maker_account, event.maker_commission);
        let taker = (event.taker_account, event.taker_commission);
        let buys = event.aggressor_side == Side::Buy.to_wire();
        let (buyer, seller) = if buys { (taker, maker) } else { (maker, taker) };
        let exact = i128::from(event.price) * i128::from(event.quantity) / i128::from(WHOLE);
        assert_eq!(i128::from(event.quote_amount), exact);
        assert!(event.quantity > 0);
        self.of(buyer.0, quote).locked.0 -= event.quote_amount;
        self.of(buyer.0, base).free.0 += event.quantity - buyer.1;
        self.of(seller.0, base).locked.0 -= event.quantity;
        self.of(seller.0, quote).free.0 += event.quote_amount - seller.1;
        self.of(AccountId::FEES, base).free.0 += buyer.1;
        self.of(AccountId::FEES, quote).free.0 += seller.1;
        self.last.insert(event.symbol, event.price);
        let [made, taken] =
            [event.maker_order_id, event.taker_order_id].map(|id| (event.symbol, id));
        let (maker, taker) = (self.orders[&made], self.orders[&taken]);
        assert_ne!(taker.order_type, OrderType::LimitMaker.to_wire(), "one that only makes takes");
        assert_ne!(maker.side, taker.side);
        assert_eq!(maker.remaining - event.quantity, event.maker_remaining);
        self.orders.get_mut(&taken).unwrap().remaining -= event.quantity;
        self.lock(maker.account, (event.symbol, maker.side), -event.maker_released);
        if event.maker_remaining == 0 {
            self.orders.remove(&made);
        } else {
            self.orders.get_mut(&made).unwrap().remaining = event.maker_remaining;
        }
    }

    fn result(&mut self, event: &OrderResult) -> &'static str {
        let order = (event.symbol, event.order_id);
        let (open, status) = (self.orders[&order], OrderStatus::from_wire(event.status).unwrap());
        assert_eq!(open.quantity, event.quantity);
        if !status.is_open() && open.time_in_force == TimeInForce::Fok.to_wire() {
            let executed = event.executed_quantity;
            assert!(executed == 0 || executed == event.quantity, "FOK executed a part: {event:?}");
        }
        assert!(status != OrderStatus::Filled || open.remaining == 0);
        self.change(&Change {
            order,
            quantity: event.quantity,
            executed: event.executed_quantity,
            more_locked: -event.released,
            is_open: status.is_open(),
        });
        match status {
            OrderStatus::Filled => "filled",
            OrderStatus::Expired => "expired",
            OrderStatus::New => "new",
            _ => "partly filled",
        }
    }

    /// An order has another quantity, another lock, or none any more.
    fn change(&mut self, change: &Change) {
        let open = self.orders.get_mut(&change.order).expect("it is open");
        assert_eq!(open.quantity - open.remaining, change.executed);
        assert!(change.is_open || open.quantity == change.quantity);
        (open.quantity, open.remaining) = (change.quantity, change.quantity - change.executed);
        let Open { account, side, remaining, .. } = *open;
        self.lock(account, (change.order.0, side), change.more_locked);
        if change.is_open {
            assert!(remaining > 0);
        } else {
            self.orders.remove(&change.order);
        }
    }

    /// The venue has the same balances and the same open orders, and no book is crossed.
    pub(crate) fn compare(&self, venue: &Venue) {
        let core = &venue.core;
        for (&(account, asset), balance) in &self.money {
            assert_eq!(core.balance(account, asset), Some(*balance), "{account}, asset {asset}");
        }
        for symbol in (0..self.pairs.len() as u32).map(SymbolId) {
            let taking = core.taking_orders().filter(|order| order.symbol == symbol);
            let found: BTreeMap<_, _> = core
                .open_orders(symbol, Side::Buy)
                .chain(core.open_orders(symbol, Side::Sell))
                .chain(core.waiting_orders(symbol))
                .chain(core.triggered_orders(symbol))
                .chain(taking)
                .map(|order| (order.order_id, order.remaining.0))
                .collect();
            let of_symbol = self.orders.iter().filter(|((of, _), _)| *of == symbol);
            let kept: BTreeMap<_, _> =
                of_symbol.map(|((_, id), open)| (*id, open.remaining)).collect();
            assert_eq!(found, kept, "symbol {symbol}");
            let best = [Side::Buy, Side::Sell].map(|side| core.best(symbol, side));
            if let ([Some(bid), Some(ask)], false) = (best, core.has_pending(symbol)) {
                assert!(bid < ask, "crossed: {bid:?} and {ask:?}");
            }
        }
    }
}
