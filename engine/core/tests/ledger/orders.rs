//! Random orders and lists of any kind, most of which fit the symbol's last price.

use crate::scales::{Random, Scale};
use crate::venue::{WHOLE, named};
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{OrderType, Side, TimeInForce};
use touchline_protocol::units::*;

/// Accounts that trade, numbered from 1 as their keys are.
pub(crate) const ACCOUNTS: u32 = 4;

const KINDS: [OrderType; 18] = [
    OrderType::Limit,
    OrderType::Limit,
    OrderType::Limit,
    OrderType::Limit,
    OrderType::Limit,
    OrderType::Limit,
    OrderType::Limit,
    OrderType::Limit,
    OrderType::Limit,
    OrderType::Market,
    OrderType::StopLoss,
    OrderType::StopLossLimit,
    OrderType::StopLossLimit,
    OrderType::TakeProfit,
    OrderType::TakeProfitLimit,
    OrderType::LimitMaker,
    OrderType::LimitMaker,
    OrderType::Market,
];

/// The header of an account's command that no session sends.
pub(crate) fn by(account: u32) -> CommandHeader {
    CommandHeader { key_id: KeyId(account.into()), ..Default::default() }
}

/// What an order is for: symbol and its last price, and whose it is.
#[derive(Clone, Copy)]
pub(crate) struct Place<'scale> {
    pub(crate) scale: &'scale Scale,
    pub(crate) symbol: u32,
    pub(crate) last: Option<i64>,
    pub(crate) account: u32,
}

impl Place<'_> {
    pub(crate) fn order(&self, random: &mut Random) -> NewOrder {
        use OrderType::{Limit, LimitMaker, Market, StopLossLimit, TakeProfitLimit};
        let kind = random.pick(&KINDS);
        let has_limit = matches!(kind, Limit | StopLossLimit | TakeProfitLimit);
        let lives = random.pick(&[1u8, 1, 1, 1, 2, 3]);
        let time_in_force = if has_limit { lives } else { 0 };
        let rests = time_in_force == TimeInForce::Gtc.to_wire() || kind == LimitMaker;
        let quantity = self.scale.quantity(random);
        let hides = rests && random.once_in(3);
        let iceberg_quantity = if hides { quantity / random.range(1, 5) } else { 0 };
        let price = self.scale.price(random, self.symbol, self.last);
        let side = random.pick(&[Side::Buy, Side::Sell]);
        let mut order = NewOrder {
            command: by(self.account),
            symbol: SymbolId(self.symbol),
            side: side.to_wire(),
            order_type: kind.to_wire(),
            time_in_force,
            price: if has_limit || kind == LimitMaker { price } else { 0 },
            quantity,
            stop_price: self.stop_price(random, (kind, side)),
            iceberg_quantity,
            self_trade_prevention: random.pick(&[0, 0, 0, 1, 2, 3, 3, 4]),
            client_order_id: named(random.pick(&["", "", "", "a", "b", "c"])),
            ..Default::default()
        };
        if kind == Market && random.once_in(3) {
            let exact = i128::from(price) * i128::from(quantity) / i128::from(WHOLE);
            order.quote_quantity = i64::try_from(exact).unwrap_or(i64::MAX).max(1);
            order.quantity = 0;
        }
        order
    }

    /// On the side of the last price on which such a stop waits; 0 of an order that is none.
    fn stop_price(&self, random: &mut Random, (kind, side): (OrderType, Side)) -> i64 {
        let is_loss = matches!(kind, OrderType::StopLoss | OrderType::StopLossLimit);
        let is_profit = matches!(kind, OrderType::TakeProfit | OrderType::TakeProfitLimit);
        match self.last {
            _ if !is_loss && !is_profit => 0,
            None => self.scale.price(random, self.symbol, None),
            Some(last) => {
                let is_above = is_loss == (side == Side::Buy);
                let ticks = random.range(1, 4);
                self.scale.beside(self.symbol, last, if is_above { ticks } else { -ticks })
            }
        }
    }

    /// A list about the last price.
    pub(crate) fn list(&self, random: &mut Random, last: i64) -> PlaceOrderList {
        let side = random.pick(&[Side::Buy, Side::Sell]);
        let beside = |price, ticks| self.scale.beside(self.symbol, price, ticks);
        let sign = if side == Side::Buy { -1 } else { 1 };
        let price = beside(last, sign * random.range(1, 4));
        let stop_price = beside(last, -sign * random.range(1, 4));
        let quantity = self.scale.quantity(random);
        let time_in_force = random.pick(&[1u8, 1, 2, 3]);
        let mut list = PlaceOrderList {
            command: by(self.account),
            symbol: SymbolId(self.symbol),
            side: side.to_wire(),
            quantity,
            price,
            limit_iceberg_quantity: if random.once_in(3) { (quantity / 3).max(1) } else { 0 },
            stop_price,
            self_trade_prevention: random.pick(&[0, 0, 1, 2, 3, 4]),
            limit_client_order_id: named(random.pick(&["", "a", "b"])),
            stop_client_order_id: named(random.pick(&["", "b", "c"])),
            list_client_order_id: named(random.pick(&["", "a", "l"])),
            ..Default::default()
        };
        if random.once_in(2) {
            list.stop_limit_price = beside(stop_price, random.range(-3, 3));
            list.stop_limit_time_in_force = time_in_force;
            let hides = time_in_force == TimeInForce::Gtc.to_wire() && random.once_in(3);
            list.stop_iceberg_quantity = if hides { (quantity / 2).max(1) } else { 0 };
        }
        list
    }
}
