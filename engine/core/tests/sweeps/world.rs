//! Two symbols over the same assets, and three rich accounts (1, 2 and 3, as their keys are numbered).

use crate::venue::{Owned, Venue, WHOLE, roomy};
use touchline_core::ORDER_TYPES_2;
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{OrderType, Side, TimeInForce};
use touchline_protocol::message::event::{MassCanceled, OrderCanceled};
use touchline_protocol::units::*;

pub(crate) const ONE: SymbolId = SymbolId(0);
pub(crate) const TWO: SymbolId = SymbolId(1);
pub(crate) const ALL: SymbolId = SymbolId(EVERY);
pub(crate) const ANN: u64 = 1;
pub(crate) const BOB: u64 = 2;
pub(crate) const CARL: u64 = 3;

/// Limits with so many steps per transaction.
pub(crate) fn steps(max_steps: u32) -> Limits {
    Limits { max_steps, ..roomy() }
}

pub(crate) fn world(limits: Limits) -> Venue {
    let mut venue = Venue::new();
    venue.set_rules();
    venue.must(&SetRules { rules: 2, ..Default::default() });
    venue.set_limits(limits);
    let pair = (venue.asset("BASE"), venue.asset("QUOTE"));
    for name in ["ONE", "TWO"] {
        let kinds = (ORDER_TYPES_2, SYMBOL_ICEBERG | SYMBOL_OCO);
        venue.symbol_of(name, pair, SymbolFilters::default(), kinds);
    }
    for name in ["ann", "bob", "carl"] {
        let (account, _) = venue.account(name, (0, 0));
        venue.deposit(account, pair.0, 10_000_000 * WHOLE);
        venue.deposit(account, pair.1, 10_000_000 * WHOLE);
    }
    venue
}

/// The header of a key's command that no session sends.
pub(crate) fn by(key: u64) -> CommandHeader {
    CommandHeader { key_id: KeyId(key), ..Default::default() }
}

/// A limit order, in whole units.
pub(crate) fn limit(
    command: CommandHeader,
    symbol: SymbolId,
    side: Side,
    (price, quantity): (i64, i64),
) -> NewOrder {
    NewOrder {
        command,
        symbol,
        side: side.to_wire(),
        order_type: OrderType::Limit.to_wire(),
        time_in_force: TimeInForce::Gtc.to_wire(),
        price: price * WHOLE,
        quantity: quantity * WHOLE,
        ..Default::default()
    }
}

/// A stop of one unit that becomes a LIMIT order; fires at its stop price or above (buys) or below.
pub(crate) fn stop_limit(
    command: CommandHeader,
    symbol: SymbolId,
    side: Side,
    (stop_price, price): (i64, i64),
) -> NewOrder {
    NewOrder {
        order_type: OrderType::StopLossLimit.to_wire(),
        stop_price: stop_price * WHOLE,
        ..limit(command, symbol, side, (price, 1))
    }
}

/// A list of one unit: a limit leg at a price, a stop leg with a stop price and a limit.
pub(crate) fn list(
    command: CommandHeader,
    symbol: SymbolId,
    side: Side,
    (price, stop_price): (i64, i64),
) -> PlaceOrderList {
    PlaceOrderList {
        command,
        symbol,
        side: side.to_wire(),
        stop_limit_time_in_force: TimeInForce::Gtc.to_wire(),
        quantity: WHOLE,
        price: price * WHOLE,
        stop_price: stop_price * WHOLE,
        stop_limit_price: stop_price * WHOLE,
        ..Default::default()
    }
}

/// Carl makes the last price.
pub(crate) fn trade_at(venue: &mut Venue, symbol: SymbolId, price: i64) {
    for side in [Side::Sell, Side::Buy] {
        venue.must(&limit(by(CARL), symbol, side, (price, 1)));
    }
}

pub(crate) fn cancel_all(command: CommandHeader, symbol: SymbolId) -> CancelAll {
    CancelAll { command, symbol, ..Default::default() }
}

pub(crate) fn mass_cancel(command: CommandHeader, symbol: SymbolId, scope: u8) -> MassCancel {
    MassCancel { command, symbol, scope, ..Default::default() }
}

pub(crate) fn expire_all(symbol: SymbolId) -> ExpireAll {
    ExpireAll { symbol, ..Default::default() }
}

pub(crate) fn kill(account: u64, killed: u8) -> KillAccount {
    KillAccount { account: AccountId(account as u32), killed, ..Default::default() }
}

/// The order that was placed last.
pub(crate) fn place(venue: &mut Venue, order: &NewOrder) -> (SymbolId, u64) {
    let events = venue.must(order);
    let Owned::Accepted(accepted) = events[0] else { panic!("{events:?}") };
    (accepted.symbol, accepted.order_id.0)
}

pub(crate) fn canceled(events: &[Owned]) -> Vec<OrderCanceled> {
    let of = |event: &Owned| match event {
        Owned::Canceled(canceled) => Some(*canceled),
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

/// Symbols and numbers of the orders that were cancelled, in order.
pub(crate) fn ended(events: &[Owned]) -> Vec<(SymbolId, u64)> {
    canceled(events).iter().map(|event| (event.symbol, event.order_id.0)).collect()
}

pub(crate) fn mass(account: u32, symbol: SymbolId, orders: u64) -> Owned {
    mass_with_lists(account, symbol, orders, 0)
}

pub(crate) fn mass_with_lists(account: u32, symbol: SymbolId, orders: u64, lists: u64) -> Owned {
    Owned::MassCanceled(MassCanceled {
        account: AccountId(account),
        symbol,
        orders,
        lists,
        ..Default::default()
    })
}

/// Applies a sweep and all that it leaves pending.
pub(crate) fn sweep<M: touchline_protocol::message::Message>(
    venue: &mut Venue,
    message: &M,
) -> Vec<Owned> {
    let mut events = venue.must(message);
    events.extend(venue.drain());
    events
}

/// Nothing is open, nothing is locked, no place is lost.
pub(crate) fn check_empty(venue: &Venue) {
    let counts = venue.core.counts();
    assert_eq!((counts.open_orders, counts.price_levels, counts.pending_work), (0, 0, 0));
    for account in 0..counts.accounts {
        for asset in 0..counts.assets {
            let balance = venue.core.balance(AccountId(account), AssetId(asset)).unwrap();
            assert_eq!(balance.locked, Amount(0), "account {account}, asset {asset}");
        }
    }
}
