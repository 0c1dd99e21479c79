//! What an input finds when it begins: assets, symbols, accounts of every kind and sessions of every
//! role, with so little room that limits are met.

use super::source::Source;
use super::subject::{Subject, words};
use touchline_core::{AMOUNT_MAX, ORDER_TYPES, ORDER_TYPES_2, RULES_MAX};
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{Lane, Role, SymbolStatus};
use touchline_protocol::text::{AssetName, Name, SymbolName};
use touchline_protocol::units::*;

pub(crate) const WHOLE: i64 = UNITS_PER_WHOLE;

/// Accounts with a key of the same number each: 1 and 2 with money, 3 with nearly all that the venue
/// may hold, 4 without any, 5 may not trade.
const ACCOUNTS: u32 = 5;

fn text<const N: usize, const P: usize>(text: &str) -> touchline_protocol::text::Text<N, P> {
    touchline_protocol::text::Text::new(text).expect("short")
}

fn limits(source: &mut Source<'_>) -> Limits {
    Limits {
        assets: 4,
        symbols: 6,
        accounts: 9,
        keys: 12,
        sessions: 16,
        open_orders: source.pick(&[40, 12, 5]),
        price_levels: source.pick(&[30, 8, 3]),
        pending_work: source.pick(&[6, 2, 1, 0]),
        max_steps: source.pick(&[64, 7, 2, 1]),
        orders_per_interval_0: source.pick(&[0, 30]),
        orders_per_interval_1: source.pick(&[0, 60]),
        interval_0_seconds: 10,
        interval_1_seconds: 86_400,
        reserved: 0,
    }
}

/// Rules that are all in force, each so that most orders keep it.
fn filters() -> SymbolFilters {
    SymbolFilters {
        price_min: 50 * WHOLE,
        price_max: 200 * WHOLE,
        tick_size: WHOLE / 2,
        lot_min: WHOLE / 4,
        lot_max: 50 * WHOLE,
        lot_step: WHOLE / 4,
        market_lot_min: WHOLE / 2,
        market_lot_max: 20 * WHOLE,
        market_lot_step: WHOLE / 2,
        percent_price_up: 2 * WHOLE,
        percent_price_down: WHOLE / 2,
        min_notional: 40 * WHOLE,
        max_position: 10_020 * WHOLE,
        percent_price_minutes: 5,
        min_notional_minutes: 5,
        iceberg_parts: 6,
        max_orders: 6,
        max_algo_orders: 3,
        max_iceberg_orders: 2,
        min_notional_applies_to_market: 1,
        ..Default::default()
    }
}

/// Of a rules version: a symbol without filters, one with all, one that trades the same assets the
/// other way round, one that is halted.
fn symbols(subject: &mut Subject, rules: u32) {
    let (base, quote) = (AssetId(0), AssetId(1));
    let halted = SymbolStatus::Halt.to_wire();
    let trading = SymbolStatus::Trading.to_wire();
    let mut filters = filters();
    if rules == 1 {
        // Of rules version 2 are averages, positions and icebergs.
        filters = SymbolFilters {
            price_min: filters.price_min,
            price_max: filters.price_max,
            tick_size: filters.tick_size,
            lot_min: filters.lot_min,
            lot_max: filters.lot_max,
            lot_step: filters.lot_step,
            max_orders: filters.max_orders,
            ..Default::default()
        };
    }
    let none = SymbolFilters::default();
    for (name, pair, filters, status) in [
        ("PLAIN", (base, quote), none, trading),
        ("FILTERED", (base, quote), filters, trading),
        ("REVERSED", (quote, base), none, trading),
        ("HALTED", (base, quote), none, halted),
    ] {
        let all = SYMBOL_ICEBERG | SYMBOL_OCO | SYMBOL_QUOTE_QUANTITY;
        subject.prepare(&DefineSymbol {
            name: text::<20, 3>(name) as SymbolName,
            base: pair.0,
            quote: pair.1,
            status,
            order_types: if rules == 1 { ORDER_TYPES } else { ORDER_TYPES_2 },
            flags: if rules == 1 { 0 } else { all },
            permissions: PERMISSION_SPOT,
            filters,
            ..Default::default()
        });
    }
}

fn accounts(subject: &mut Subject, source: &mut Source<'_>) {
    for number in 1..=ACCOUNTS {
        let account = AccountId(number);
        let name: Name = text(&format!("account-{number}"));
        subject.prepare(&CreateAccount {
            name,
            maker_rate: source.pick(&[0, WHOLE / 1000, WHOLE]),
            taker_rate: source.pick(&[0, WHOLE / 500, WHOLE]),
            flags: if number == 5 { 0 } else { ACCOUNT_CAN_TRADE },
            permissions: PERMISSION_SPOT,
            ..Default::default()
        });
        subject.prepare(&CreateKey { account, permissions: KEY_ALL, ..Default::default() });
    }
    // Keys 6 and 7: one that may only read, one that is revoked.
    let (account, permissions) = (AccountId(1), KEY_USER_DATA);
    subject.prepare(&CreateKey { account, permissions, ..Default::default() });
    subject.prepare(&CreateKey { account, permissions: KEY_ALL, ..Default::default() });
    subject.prepare(&RevokeKey { key: KeyId(7), ..Default::default() });
    let some = 10_000 * WHOLE;
    for (account, amount) in [(1, some), (2, some), (3, AMOUNT_MAX - 3 * some)] {
        for asset in [AssetId(0), AssetId(1)] {
            let account = AccountId(account);
            subject.prepare(&Deposit { account, asset, amount, ..Default::default() });
        }
    }
}

fn sessions(subject: &mut Subject, rules: u32) {
    let cancels = if rules == 1 { 0 } else { LOGON_CANCEL_ON_DISCONNECT };
    for (name, role, lane, key, flags) in [
        ("orders", Role::Adapter, Lane::Hot, 0, 0),
        ("records", Role::Adapter, Lane::Cold, 0, 0),
        ("operator", Role::Admin, Lane::Cold, 0, 0),
        ("switch", Role::Admin, Lane::Hot, 0, 0),
        ("first", Role::Trader, Lane::Hot, 1, cancels),
        ("second", Role::Trader, Lane::Hot, 2, 0),
        ("reader", Role::ReadOnly, Lane::Hot, 2, 0),
    ] {
        let command = CommandHeader { key_id: KeyId(key), ..Default::default() };
        let name: Name = text(name);
        let (role, lane) = (role.to_wire(), lane.to_wire());
        subject.prepare(&Logon { command, name, role, lane, flags, ..Default::default() });
    }
}

/// A venue of any rules version.
pub(crate) fn world(source: &mut Source<'_>) -> Subject {
    let mut subject = Subject::new();
    // One input in sixteen is judged by the rules of each older version.
    let rules = match source.below(16) {
        15 => 1,
        14 => 2,
        13 => 3,
        12 => 4,
        11 => 5,
        10 => 6,
        9 => 7,
        _ => RULES_MAX,
    };
    for rules in 1..=rules {
        subject.prepare(&SetRules { rules, ..Default::default() });
    }
    subject.prepare(&SetLimits { limits: limits(source), ..Default::default() });
    if rules > 1 {
        subject.prepare(&SetRecordLimits { records: 6, blocks: 20, ..Default::default() });
    }
    for name in ["BASE", "QUOTE"] {
        let name: AssetName = text(name);
        subject.prepare(&DefineAsset { name, precision: 8, ..Default::default() });
    }
    symbols(&mut subject, rules);
    accounts(&mut subject, source);
    sessions(&mut subject, rules);
    if source.below(4) != 0 {
        trade(&mut subject);
    }
    subject.begin();
    subject
}

/// A last price, without which there is no list.
fn trade(subject: &mut Subject) {
    for symbol in [SymbolId(0), SymbolId(1)] {
        for (side, key) in [(1, 1), (2, 2)] {
            subject.prepare(&NewOrder {
                command: CommandHeader { key_id: KeyId(key), ..Default::default() },
                symbol,
                side,
                order_type: 1,
                time_in_force: 1,
                price: 100 * WHOLE,
                quantity: WHOLE,
                ..Default::default()
            });
        }
    }
}

/// Ends all that is open: what a maintenance does, symbol by symbol, which is of rules version 2.
pub(crate) fn end_orders(subject: &mut Subject) {
    if subject.core.rules() == 1 {
        assert!(subject.apply(&words(&SetRules { rules: 2, ..Default::default() })));
    }
    for symbol in (0..subject.core.counts().symbols).map(SymbolId) {
        assert!(subject.apply(&words(&ExpireAll { symbol, ..Default::default() })));
        subject.settle();
    }
}
