//! The state hash sees everything that is state, and nothing else.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/venue.rs"]
mod venue;

use std::collections::BTreeMap;
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{Lane, Role};
use touchline_protocol::units::*;
use venue::{Venue, WHOLE, named, roomy};

const ONE: SymbolId = SymbolId(0);

fn world() -> Venue {
    let mut venue = Venue::new();
    venue.set_rules();
    venue.set_limits(Limits { max_steps: 1, ..roomy() });
    let pair = (venue.asset("BASE"), venue.asset("QUOTE"));
    venue.symbol("ONE", pair, SymbolFilters::default());
    for name in ["ann", "bob"] {
        let (account, _) = venue.account(name, (0, 0));
        venue.deposit(account, pair.0, 100 * WHOLE);
        venue.deposit(account, pair.1, 100 * WHOLE);
    }
    venue.logon("desk", Role::Adapter, Lane::Hot, KeyId(0));
    // Positions and times are set by the tests from here on.
    venue.position = 1 << 20;
    venue
}

fn order(price: i64, name: &str) -> NewOrder {
    NewOrder {
        command: CommandHeader { key_id: KeyId(1), ..Default::default() },
        symbol: ONE,
        side: 1,
        order_type: 1,
        time_in_force: 1,
        price,
        quantity: WHOLE,
        client_order_id: named(name),
        ..Default::default()
    }
}

fn cancel(order_id: u64) -> CancelOrder {
    CancelOrder {
        command: CommandHeader { key_id: KeyId(1), ..Default::default() },
        symbol: ONE,
        order_id: OrderId(order_id),
        ..Default::default()
    }
}

/// The same venue, but for one thing each.
#[test]
fn one_difference_is_seen() {
    type Change = fn(&mut Venue);
    let base: Change = |venue| {
        venue.must(&order(WHOLE, "a"));
    };
    let others: &[(&str, Change)] = &[
        ("nothing placed", |_| ()),
        ("price", |venue| {
            venue.must(&order(WHOLE + 1, "a"));
        }),
        ("client order id", |venue| {
            venue.must(&order(WHOLE, "b"));
        }),
        ("priority", |venue| {
            venue.position += 8;
            venue.must(&order(WHOLE, "a"));
        }),
        ("owner", |venue| {
            let mut order = order(WHOLE, "a");
            order.command.key_id = KeyId(2);
            venue.must(&order);
        }),
        ("session", |venue| {
            let mut order = order(WHOLE, "a");
            order.command = venue.header(SessionId(1), KeyId(1));
            venue.must(&order);
        }),
        ("time", |venue| {
            venue.time_ns += 1;
            venue.must(&order(WHOLE, "a"));
        }),
        ("sequence of the engine", |venue| {
            let mut order = order(WHOLE, "a");
            order.command.sequence = Sequence(1);
            venue.must(&order);
        }),
        ("an order that came and went", |venue| {
            venue.must(&order(WHOLE, "a"));
            venue.must(&order(WHOLE, "b"));
            venue.must(&cancel(2));
        }),
        ("a connection", |venue| {
            venue.must(&order(WHOLE, "a"));
            venue.must(&EngineStarted::default());
        }),
        ("a limit", |venue| {
            venue.must(&order(WHOLE, "a"));
            venue.set_limits(Limits { max_steps: 2, ..roomy() });
        }),
        ("a key", |venue| {
            venue.must(&order(WHOLE, "a"));
            venue.must(&CreateKey { account: AccountId(1), ..Default::default() });
        }),
        ("a revoked key", |venue| {
            venue.must(&order(WHOLE, "a"));
            venue.must(&RevokeKey { key: KeyId(2), ..Default::default() });
        }),
        ("a status", |venue| {
            venue.must(&order(WHOLE, "a"));
            venue.must(&SetSymbolStatus { symbol: ONE, status: 5, ..Default::default() });
        }),
        ("money", |venue| {
            venue.must(&order(WHOLE, "a"));
            venue.deposit(AccountId(1), AssetId(0), 1);
        }),
        ("money of another", |venue| {
            venue.must(&order(WHOLE, "a"));
            venue.deposit(AccountId(2), AssetId(0), 1);
        }),
        ("a new epoch", |venue| {
            venue.must(&order(WHOLE, "a"));
            venue.logon("desk", Role::Adapter, Lane::Hot, KeyId(0));
        }),
    ];
    let mut seen = BTreeMap::new();
    for (what, change) in others.iter().chain([&("base", base)]) {
        let mut venue = world();
        change(&mut venue);
        if let Some(other) = seen.insert(venue.core.state_hash(), what) {
            panic!("{what} and {other} have the same hash");
        }
    }
}

/// What an aggressor has still to do is state; so is who waits for it.
#[test]
fn pending_work_is_seen() {
    let pending = |correlation, quantity| {
        let mut venue = world();
        for _ in 0..3 {
            venue.must(&order(WHOLE, ""));
        }
        let mut sell = order(WHOLE, "");
        (sell.side, sell.quantity) = (2, quantity);
        sell.command.correlation = correlation;
        venue.must(&sell);
        assert!(venue.core.pending_head().is_some());
        venue.core.state_hash()
    };
    assert_eq!(pending(1, 2 * WHOLE), pending(1, 2 * WHOLE));
    assert_ne!(pending(1, 2 * WHOLE), pending(2, 2 * WHOLE));
    assert_ne!(pending(1, 2 * WHOLE), pending(1, 3 * WHOLE));
}

/// Other slots, other free lists, other table sizes: the same state.
#[test]
fn memory_layout_is_not_seen() {
    let run = |order_of_cancels: [u64; 3], large: bool| {
        let mut venue = world();
        let small = Limits { max_steps: 1, ..roomy() };
        if large {
            let large = Limits { open_orders: 9000, price_levels: 4000, accounts: 40, ..small };
            venue.set_limits(Limits { assets: 9, symbols: 11, ..large });
        } else {
            venue.set_limits(small);
        }
        venue.set_limits(small);
        for price in 1..=4 {
            venue.must(&order(price * WHOLE, &format!("{price}")));
        }
        for id in order_of_cancels {
            venue.must(&cancel(id));
        }
        venue.position = 1 << 24;
        venue.must(&order(7 * WHOLE, "again"));
        venue.must(&order(5 * WHOLE, "and again"));
        venue.core.state_hash()
    };
    let expected = run([1, 2, 3], false);
    assert_eq!(run([3, 1, 2], false), expected);
    assert_eq!(run([2, 3, 1], true), expected);
}

/// For how long no engine ran is for those who read the log.
#[test]
fn a_time_without_an_engine_is_not_seen() {
    let started_after = |off_ms| {
        let mut venue = world();
        venue.must(&order(WHOLE, "a"));
        venue.must(&EngineStarted { incarnation: 2, off_ms, ..Default::default() });
        venue.core.state_hash()
    };
    assert_eq!(started_after(600_000), started_after(0));
    assert_eq!(started_after(u32::MAX), started_after(0));
}

/// What rules version 2 adds: each difference is seen.
#[test]
fn one_difference_of_rules_2_is_seen() {
    let world_2 = || {
        let mut venue = Venue::new();
        venue.set_rules();
        venue.must(&SetRules { rules: 2, ..Default::default() });
        venue.set_limits(Limits { max_steps: 1, ..roomy() });
        let pair = (venue.asset("BASE"), venue.asset("QUOTE"));
        let takes = (touchline_core::ORDER_TYPES_2, SYMBOL_ICEBERG);
        venue.symbol_of("ONE", pair, SymbolFilters::default(), takes);
        let (account, _) = venue.account("ann", (0, 0));
        venue.deposit(account, pair.0, 100 * WHOLE);
        venue.deposit(account, pair.1, 100 * WHOLE);
        venue
    };
    let stop = |price, stop_price| NewOrder {
        order_type: 4,
        stop_price,
        quantity: 2 * WHOLE,
        ..order(price, "a")
    };
    let messages = [
        stop(WHOLE, 2 * WHOLE),
        stop(WHOLE, 2 * WHOLE + 1),
        stop(WHOLE - 1, 2 * WHOLE),
        NewOrder { order_type: 6, ..stop(WHOLE, 2 * WHOLE) },
        NewOrder { iceberg_quantity: WHOLE, ..stop(WHOLE, 2 * WHOLE) },
        NewOrder { time_in_force: 2, ..stop(WHOLE, 2 * WHOLE) },
        NewOrder { self_trade_prevention: 3, ..stop(WHOLE, 2 * WHOLE) },
        NewOrder { order_type: 1, stop_price: 0, ..stop(WHOLE, 2 * WHOLE) },
        NewOrder {
            order_type: 1,
            stop_price: 0,
            self_trade_prevention: 3,
            ..stop(WHOLE, 2 * WHOLE)
        },
        NewOrder {
            order_type: 1,
            stop_price: 0,
            iceberg_quantity: WHOLE,
            ..stop(WHOLE, 2 * WHOLE)
        },
    ];
    let mut seen = BTreeMap::new();
    for (at, message) in messages.iter().enumerate() {
        let mut venue = world_2();
        venue.must(message);
        assert_eq!(seen.insert(venue.core.state_hash(), at), None, "{message:?}");
        venue.must(&SetVenueFilters { max_orders: 9, ..Default::default() });
        assert_eq!(seen.insert(venue.core.state_hash(), at), None, "filters, {message:?}");
    }
}

/// What order lists add: the names, the numbers, and whether a list is open.
#[test]
fn one_difference_of_lists_is_seen() {
    let world = || {
        let mut venue = Venue::new();
        venue.set_rules();
        venue.must(&SetRules { rules: 2, ..Default::default() });
        venue.set_limits(roomy());
        let pair = (venue.asset("BASE"), venue.asset("QUOTE"));
        let takes = (touchline_core::ORDER_TYPES_2, SYMBOL_ICEBERG | SYMBOL_OCO);
        venue.symbol_of("ONE", pair, SymbolFilters::default(), takes);
        let (account, _) = venue.account("ann", (0, 0));
        venue.deposit(account, pair.0, 1000 * WHOLE);
        venue.deposit(account, pair.1, 1000 * WHOLE);
        for side in [1, 2] {
            venue.must(&NewOrder { side, ..order(10 * WHOLE, "") });
        }
        venue
    };
    let list = PlaceOrderList {
        command: CommandHeader { key_id: KeyId(1), ..Default::default() },
        symbol: ONE,
        side: 2,
        stop_limit_time_in_force: 1,
        quantity: 2 * WHOLE,
        price: 11 * WHOLE,
        stop_price: 9 * WHOLE,
        stop_limit_price: 8 * WHOLE,
        list_client_order_id: named("list"),
        limit_client_order_id: named("limit"),
        stop_client_order_id: named("stop"),
        ..Default::default()
    };
    let messages = [
        list,
        PlaceOrderList { list_client_order_id: named("lis"), ..list },
        PlaceOrderList { list_client_order_id: named(""), ..list },
        PlaceOrderList { limit_client_order_id: named("limi"), ..list },
        PlaceOrderList { stop_client_order_id: named("sto"), ..list },
        PlaceOrderList { price: 11 * WHOLE + 1, ..list },
        PlaceOrderList { stop_price: 9 * WHOLE + 1, ..list },
        PlaceOrderList { stop_limit_price: 8 * WHOLE + 1, ..list },
        PlaceOrderList { stop_limit_price: 0, stop_limit_time_in_force: 0, ..list },
        PlaceOrderList { stop_limit_time_in_force: 2, ..list },
        PlaceOrderList { limit_iceberg_quantity: WHOLE, ..list },
        PlaceOrderList { stop_iceberg_quantity: WHOLE, ..list },
        PlaceOrderList { self_trade_prevention: 2, ..list },
    ];
    let mut seen = BTreeMap::new();
    for (at, message) in messages.iter().enumerate() {
        let mut venue = world();
        venue.must(message);
        assert_eq!(seen.insert(venue.core.state_hash(), at), None, "{message:?}");
        // Behind the touch the list's name and the stop leg are nothing any more.
        let touch = NewOrder { quantity: WHOLE, ..order(message.price, "") };
        venue.must(&touch);
        let is_of_the_list_only = [1, 2, 4, 6, 7, 8, 9, 11, 12].contains(&at);
        let other = seen.insert(venue.core.state_hash(), at);
        assert_eq!(other.is_some(), is_of_the_list_only, "{message:?}");
    }
    // A list that came and went has taken a number.
    let mut venue = world();
    venue.must(&list);
    venue.must(&cancel(3));
    let mut other = world();
    for (id, side, order_type) in [(3, 2, 7), (4, 1, 7)] {
        let price = if side == 1 { WHOLE } else { 11 * WHOLE };
        let maker = NewOrder { side, order_type, time_in_force: 0, ..order(price, "") };
        other.must(&maker);
        other.must(&cancel(id));
    }
    let orders = |venue: &Venue| venue.core.symbol(ONE).unwrap().counters.order;
    assert_eq!(orders(&venue), orders(&other));
    assert_ne!(venue.core.state_hash(), other.core.state_hash());
}

/// What operators set, and what a sweep has still to do.
#[test]
fn one_difference_of_operators_is_seen() {
    type Change = fn(&mut Venue);
    let changes: &[(&str, Change)] = &[
        ("nothing", |_| ()),
        ("killed", |venue| {
            venue.must(&KillAccount { account: AccountId(2), killed: 1, ..Default::default() });
        }),
        ("a buyer rate", |venue| {
            fees(venue, (1, EVERY), [0, 0, 1, 0]);
        }),
        ("a seller rate", |venue| {
            fees(venue, (1, EVERY), [0, 0, 0, 1]);
        }),
        ("another's seller rate", |venue| {
            fees(venue, (2, EVERY), [0, 0, 0, 1]);
        }),
        ("a symbol's rate", |venue| {
            fees(venue, (EVERY, 0), [0, 0, 0, 1]);
        }),
        ("a symbol's rates of nothing", |venue| {
            fees(venue, (EVERY, 0), [0; 4]);
        }),
        ("a pair's rate", |venue| {
            fees(venue, (1, 0), [0, 0, 0, 1]);
        }),
        ("another pair's rate", |venue| {
            fees(venue, (2, 0), [0, 0, 0, 1]);
        }),
        ("a pair's rates of nothing", |venue| {
            fees(venue, (2, 0), [0; 4]);
        }),
        ("an account's mode", |venue| {
            venue.must(&SetAccount {
                account: AccountId(1),
                flags: ACCOUNT_CAN_TRADE,
                permissions: PERMISSION_SPOT,
                self_trade_prevention: 2,
                ..Default::default()
            });
        }),
        ("an order", |venue| {
            venue.must(&order(WHOLE, ""));
        }),
        ("an order that was placed earlier and refilled since", |venue| {
            let position = venue.position;
            venue.position -= 1024;
            let slice =
                NewOrder { iceberg_quantity: WHOLE, quantity: 2 * WHOLE, ..order(WHOLE, "") };
            venue.must(&slice);
            venue.position = position;
            venue.must(&NewOrder { side: 2, ..order(WHOLE, "") });
        }),
        ("an order that was placed now and refilled", |venue| {
            let slice =
                NewOrder { iceberg_quantity: WHOLE, quantity: 2 * WHOLE, ..order(WHOLE, "") };
            let position = venue.position;
            venue.must(&slice);
            venue.position = position;
            venue.must(&NewOrder { side: 2, ..order(WHOLE, "") });
        }),
        ("a sweep", |venue| sweep(venue, ONE, CommandHeader::default())),
        ("a sweep over all symbols", |venue| {
            sweep(venue, SymbolId(EVERY), CommandHeader::default());
        }),
        ("a sweep that somebody waits for", |venue| {
            sweep(venue, ONE, CommandHeader { correlation: 9, ..Default::default() });
        }),
        ("a sweep that somebody else waits for", |venue| {
            sweep(venue, ONE, CommandHeader { correlation: 10, ..Default::default() });
        }),
    ];
    let mut seen = BTreeMap::new();
    for (what, change) in changes {
        let mut venue = Venue::new();
        venue.set_rules();
        venue.must(&SetRules { rules: 2, ..Default::default() });
        venue.set_limits(Limits { max_steps: 1, ..roomy() });
        let pair = (venue.asset("BASE"), venue.asset("QUOTE"));
        let takes = (touchline_core::ORDER_TYPES_2, SYMBOL_ICEBERG);
        venue.symbol_of("ONE", pair, SymbolFilters::default(), takes);
        for name in ["ann", "bob"] {
            let (account, _) = venue.account(name, (0, 0));
            venue.deposit(account, pair.0, 100 * WHOLE);
            venue.deposit(account, pair.1, 100 * WHOLE);
        }
        venue.position = 1 << 20;
        change(&mut venue);
        if let Some(other) = seen.insert(venue.core.state_hash(), what) {
            panic!("{what} and {other} have the same hash");
        }
    }
}

fn fees(venue: &mut Venue, (account, symbol): (u32, u32), rates: [i64; 4]) {
    let [maker_rate, taker_rate, buyer_rate, seller_rate] = rates;
    venue.must(&SetFees {
        account: AccountId(account),
        symbol: SymbolId(symbol),
        maker_rate,
        taker_rate,
        buyer_rate,
        seller_rate,
        ..Default::default()
    });
}

/// Begins a sweep over two orders, which takes two transactions.
fn sweep(venue: &mut Venue, symbol: SymbolId, command: CommandHeader) {
    for price in [WHOLE, 2 * WHOLE] {
        venue.must(&order(price, ""));
    }
    let command = CommandHeader { key_id: KeyId(1), ..command };
    venue.must(&MassCancel { command, symbol, scope: 2, ..Default::default() });
    assert!(venue.core.pending_head().is_some());
}
