//! Definitions, money movements and limits, each field out of its range.

use super::{MARGIN, name, rejected, symbol, world};
use crate::venue::{Venue, WHOLE, roomy};
use touchline_core::AMOUNT_MAX;
use touchline_core::limits::{self, number};
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::RejectReason as Why;
use touchline_protocol::text::{AssetName, Name, SymbolName};
use touchline_protocol::units::*;

#[test]
fn every_field_of_a_symbol() {
    let mut venue = world();
    type Change = fn(&mut DefineSymbol);
    let fields: &[(Change, Why, u32)] = &[
        (|it| it.name = SymbolName::EMPTY, Why::InvalidDefinition, 0),
        (|it| it.name = SymbolName::new("ONE").unwrap(), Why::AlreadyDefined, 0),
        (|it| it.base = AssetId(2), Why::UnknownAsset, 0),
        (|it| it.quote = AssetId(u32::MAX), Why::UnknownAsset, 0),
        (|it| it.quote = AssetId(0), Why::InvalidDefinition, 2),
        (|it| it.status = 0, Why::InvalidDefinition, 3),
        (|it| it.status = 8, Why::InvalidDefinition, 3),
        (|it| it.order_types = 1, Why::InvalidDefinition, 4),
        (|it| it.order_types = u8::MAX, Why::InvalidDefinition, 4),
        (|it| it.flags = SYMBOL_ICEBERG, Why::InvalidDefinition, 5),
        (|it| it.flags = SYMBOL_OCO, Why::InvalidDefinition, 5),
        (|it| it.permissions = 16, Why::InvalidDefinition, 6),
        (|it| it.filters.price_min = -1, Why::InvalidDefinition, 8),
        (|it| it.filters.price_max = i64::MIN, Why::InvalidDefinition, 9),
        (|it| (it.filters.price_min, it.filters.price_max) = (2, 1), Why::InvalidDefinition, 9),
        (|it| it.filters.tick_size = -1, Why::InvalidDefinition, 10),
        (|it| it.filters.lot_min = -1, Why::InvalidDefinition, 11),
        (|it| (it.filters.lot_min, it.filters.lot_max) = (2, 1), Why::InvalidDefinition, 12),
        (|it| it.filters.lot_step = i64::MIN, Why::InvalidDefinition, 13),
        (|it| it.filters.market_lot_min = -1, Why::InvalidDefinition, 14),
        (
            |it| (it.filters.market_lot_min, it.filters.market_lot_max) = (2, 1),
            Why::InvalidDefinition,
            15,
        ),
        (|it| it.filters.market_lot_step = -1, Why::InvalidDefinition, 16),
        (|it| it.filters.percent_price_up = 1, Why::InvalidDefinition, 17),
        (|it| it.filters.percent_price_down = 1, Why::InvalidDefinition, 18),
        (|it| it.filters.min_notional = -1, Why::InvalidDefinition, 19),
        (|it| it.filters.max_position = 1, Why::InvalidDefinition, 20),
        (|it| it.filters.percent_price_minutes = 1, Why::InvalidDefinition, 21),
        (|it| it.filters.iceberg_parts = 1, Why::InvalidDefinition, 23),
        (|it| it.filters.max_algo_orders = 1, Why::InvalidDefinition, 25),
        (|it| it.filters.max_iceberg_orders = 1, Why::InvalidDefinition, 26),
        (|it| it.filters.min_notional_applies_to_market = 1, Why::InvalidDefinition, 27),
        (|it| it.filters.reserved[6] = 1, Why::InvalidDefinition, 28),
        (|it| it.filters.reserved_1 = 1, Why::InvalidDefinition, 29),
    ];
    for (change, reason, detail) in fields {
        let mut message = symbol("NEW");
        change(&mut message);
        rejected(&mut venue, &message, *reason, *detail);
    }
    venue.must(&symbol("NEW"));
    rejected(&mut venue, &symbol("NEW"), Why::AlreadyDefined, 0);
    for text in ["N1", "N2"] {
        venue.must(&symbol(text));
    }
    rejected(&mut venue, &symbol("N3"), Why::CapacityReached, number::SYMBOLS);
    let status = SetSymbolStatus { symbol: MARGIN, ..Default::default() };
    rejected(&mut venue, &status, Why::InvalidDefinition, 1);
    let status = SetSymbolStatus { symbol: SymbolId(99), status: 2, ..Default::default() };
    rejected(&mut venue, &status, Why::UnknownSymbol, 0);
}

#[test]
fn every_field_of_other_definitions() {
    let mut venue = world();
    let asset = |text, precision| DefineAsset {
        name: AssetName::new(text).unwrap(),
        precision,
        ..Default::default()
    };
    rejected(&mut venue, &asset("", 8), Why::InvalidDefinition, 0);
    rejected(&mut venue, &asset("NEW", 9), Why::InvalidDefinition, 1);
    rejected(&mut venue, &asset("BASE", 8), Why::AlreadyDefined, 0);
    type Change = fn(&mut CreateAccount);
    let fields: &[(Change, Why, u32)] = &[
        (|it| it.name = Name::EMPTY, Why::InvalidDefinition, 0),
        (|it| it.name = name("rich"), Why::AlreadyDefined, 0),
        (|it| it.name = name("fees"), Why::AlreadyDefined, 0),
        (|it| it.maker_rate = -1, Why::InvalidDefinition, 1),
        (|it| it.maker_rate = WHOLE + 1, Why::InvalidDefinition, 1),
        (|it| it.taker_rate = i64::MAX, Why::InvalidDefinition, 2),
        (|it| it.flags = 8, Why::InvalidDefinition, 3),
        (|it| it.permissions = 16, Why::InvalidDefinition, 4),
    ];
    for (change, reason, detail) in fields {
        let mut message = CreateAccount { name: name("new"), ..Default::default() };
        change(&mut message);
        rejected(&mut venue, &message, *reason, *detail);
    }
    let key = CreateKey { account: AccountId(4), permissions: 1, ..Default::default() };
    rejected(&mut venue, &key, Why::UnknownAccount, 0);
    let key = CreateKey { account: AccountId(1), permissions: 32, ..Default::default() };
    rejected(&mut venue, &key, Why::InvalidDefinition, 1);
    for key in [KeyId(0), KeyId(5), KeyId(6), KeyId(u64::MAX)] {
        rejected(&mut venue, &RevokeKey { key, ..Default::default() }, Why::UnknownKey, 0);
    }
    rejected(&mut venue, &SetRules { rules: 1, ..Default::default() }, Why::LimitOutOfRange, 0);
    rejected(&mut venue, &SetRules { rules: 3, ..Default::default() }, Why::LimitOutOfRange, 0);
    rejected(&mut venue, &SetRules::default(), Why::LimitOutOfRange, 0);
    rejected(&mut venue, &RunPending::default(), Why::UnexpectedMessage, 0);
}

#[test]
fn money_that_does_not_fit() {
    let mut venue = world();
    let deposit = |account, asset, amount| Deposit {
        account: AccountId(account),
        asset: AssetId(asset),
        amount,
        ..Default::default()
    };
    rejected(&mut venue, &deposit(9, 0, 1), Why::UnknownAccount, 0);
    rejected(&mut venue, &deposit(u32::MAX, 0, 1), Why::UnknownAccount, 0);
    rejected(&mut venue, &deposit(1, 2, 1), Why::UnknownAsset, 0);
    for amount in [0, -1, i64::MIN] {
        rejected(&mut venue, &deposit(1, 0, amount), Why::InvalidQuantity, 0);
        let withdraw = Withdraw { account: AccountId(1), amount, ..Default::default() };
        rejected(&mut venue, &withdraw, Why::InvalidQuantity, 0);
    }
    let room = AMOUNT_MAX - 1000 * WHOLE;
    for amount in [room + 1, i64::MAX] {
        rejected(&mut venue, &deposit(2, 0, amount), Why::Overflow, 0);
    }
    venue.must(&deposit(2, 0, room));
    rejected(&mut venue, &deposit(3, 0, 1), Why::Overflow, 0);
    for amount in [room + 1, i64::MAX] {
        let withdraw = Withdraw { account: AccountId(2), amount, ..Default::default() };
        rejected(&mut venue, &withdraw, Why::InsufficientBalance, 0);
    }
    venue.must(&Withdraw { account: AccountId(2), amount: room, ..Default::default() });
    venue.must(&deposit(3, 0, room));
}

#[test]
fn every_limit() {
    let mut venue = world();
    let set = |limits| SetLimits { limits, ..Default::default() };
    let most: [u32; 14] = bytemuck::cast(limits::MAXIMA);
    for number in 0..14 {
        let mut values: [u32; 14] = bytemuck::cast(roomy());
        let Some(above) = most[number].checked_add(1) else { continue };
        values[number] = above;
        let message = set(bytemuck::cast(values));
        rejected(&mut venue, &message, Why::LimitOutOfRange, number as u32);
        // Below what is in use, or below the least: 0 is too little for these.
        if [0, 1, 2, 3, 4, 8, 11, 12].contains(&number) {
            values[number] = 0;
            let message = set(bytemuck::cast(values));
            rejected(&mut venue, &message, Why::LimitOutOfRange, number as u32);
        }
    }
}

/// An aggressor that has not emptied a level yet, and may rest, keeps one level more than there are.
/// Limits that nobody lowers are taken all the same; by rules 1 they are not.
#[test]
fn limits_may_stay_as_they_are_while_an_order_takes() {
    for rules in [1, 2] {
        let mut venue = Venue::new();
        venue.set_rules();
        if rules == 2 {
            venue.must(&SetRules { rules, ..Default::default() });
        }
        let limits = Limits { price_levels: 2, max_steps: 1, ..roomy() };
        venue.set_limits(limits);
        let pair = (venue.asset("BASE"), venue.asset("QUOTE"));
        let symbol = venue.symbol("ONE", pair, SymbolFilters::default());
        let (account, key_id) = venue.account("ann", (0, 0));
        venue.deposit(account, pair.0, 9 * WHOLE);
        venue.deposit(account, pair.1, 99 * WHOLE);
        let order = |side, price: i64, quantity: i64| NewOrder {
            command: CommandHeader { key_id, ..Default::default() },
            symbol,
            side,
            order_type: 1,
            time_in_force: 1,
            price: price * WHOLE,
            quantity: quantity * WHOLE,
            ..Default::default()
        };
        for price in [10, 10, 11] {
            venue.must(&order(2, price, 1));
        }
        venue.must(&order(1, 10, 3));
        assert!(venue.core.has_pending(symbol));
        let set = |limits| SetLimits { limits, ..Default::default() };
        let lower = set(Limits { price_levels: 1, ..limits });
        rejected(&mut venue, &lower, Why::LimitOutOfRange, number::PRICE_LEVELS);
        if rules == 1 {
            rejected(&mut venue, &set(limits), Why::LimitOutOfRange, number::PRICE_LEVELS);
        } else {
            venue.must(&set(Limits { max_steps: 2, ..limits }));
        }
        venue.drain();
        assert_eq!(venue.core.counts().price_levels, 2);
        venue.check_replay();
    }
}
