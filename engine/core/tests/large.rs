//! A venue with room for a million accounts and thousands of symbols: memory goes with what is open, and
//! the counts of an account on a symbol are right wherever the two lie.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/venue.rs"]
mod venue;

use touchline_core::Reject;
use touchline_core::limits::number;
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::RejectReason as Why;
use touchline_protocol::text::{Name, SymbolName};
use touchline_protocol::units::*;
use venue::{Venue, WHOLE, roomy};

const SYMBOLS: u32 = 4096;
const OPEN_ORDERS: u32 = 300;

fn limits() -> Limits {
    let limits = Limits { accounts: 1 << 20, symbols: SYMBOLS, assets: 2, ..roomy() };
    Limits { open_orders: OPEN_ORDERS, price_levels: OPEN_ORDERS, keys: 2_000, ..limits }
}

/// Two thousand accounts with a key each, and all symbols, which take two orders of an account.
fn world() -> Venue {
    let mut venue = Venue::new();
    venue.set_rules();
    venue.must(&SetRules { rules: 2, ..Default::default() });
    venue.set_limits(limits());
    let (base, quote) = (venue.asset("BASE"), venue.asset("QUOTE"));
    for symbol in 0..SYMBOLS {
        venue.must_quickly(&DefineSymbol {
            name: SymbolName::new(&format!("S{symbol}")).unwrap(),
            base,
            quote,
            status: 2,
            order_types: touchline_core::ORDER_TYPES_2,
            permissions: PERMISSION_SPOT,
            filters: SymbolFilters { max_orders: 2, ..Default::default() },
            ..Default::default()
        });
    }
    for account in 1..=2_000 {
        venue.must_quickly(&CreateAccount {
            name: Name::new(&format!("A{account}")).unwrap(),
            flags: ACCOUNT_CAN_TRADE,
            permissions: PERMISSION_SPOT,
            ..Default::default()
        });
        let account = AccountId(account);
        venue.must_quickly(&CreateKey { account, permissions: KEY_ALL, ..Default::default() });
        venue.must_quickly(&Deposit {
            account,
            asset: quote,
            amount: 100 * WHOLE,
            ..Default::default()
        });
    }
    venue
}

fn order(account: u32, symbol: u32, price: i64) -> NewOrder {
    NewOrder {
        command: CommandHeader { key_id: KeyId(account.into()), ..Default::default() },
        symbol: SymbolId(symbol),
        side: 1,
        order_type: 1,
        time_in_force: 1,
        price: price * WHOLE,
        quantity: WHOLE,
        ..Default::default()
    }
}

#[test]
fn counts_are_kept_for_pairs_that_have_something_open() {
    let mut venue = world();
    let pairs: Vec<(u32, u32)> = (0..OPEN_ORDERS / 2)
        .map(|n| (1 + n * 13 % 2_000, if n % 3 == 0 { SYMBOLS - 1 } else { n * 29 % SYMBOLS }))
        .collect();
    for &(account, symbol) in &pairs {
        for price in [1, 2] {
            venue.must_quickly(&order(account, symbol, price));
        }
    }
    for &(account, symbol) in &pairs {
        assert_eq!(venue.core.open_order_count(AccountId(account), SymbolId(symbol)), 2);
    }
    for &(account, symbol) in &[pairs[0], pairs[100]] {
        let reject = venue.apply(&order(account, symbol, 3)).expect_err("a reject");
        assert_eq!(reject.reason, Why::MaxNumOrders);
    }
    let full = Reject { reason: Why::CapacityReached, detail: number::OPEN_ORDERS };
    assert_eq!(venue.apply(&order(1_999, 7, 1)), Err(full));
    // Every pair gives way to another one.
    for &(account, symbol) in &pairs {
        let header = CommandHeader { key_id: KeyId(account.into()), ..Default::default() };
        let symbol = SymbolId(symbol);
        venue.must_quickly(&CancelAll { command: header, symbol, ..Default::default() });
        assert_eq!(venue.core.open_order_count(AccountId(account), symbol), 0);
        for price in [1, 2] {
            venue.must_quickly(&order(2_001 - account, SYMBOLS - 1 - symbol.0, price));
        }
    }
    venue.core.validate().unwrap();
    venue.check_replay();
}

#[test]
fn balances_are_what_bounds_accounts() {
    let mut venue = Venue::new();
    venue.set_rules();
    let wide = Limits { assets: 65, ..limits() };
    let reject = venue.apply(&SetLimits { limits: wide, ..Default::default() });
    let out = Reject { reason: Why::LimitOutOfRange, detail: number::ACCOUNTS };
    assert_eq!(reject, Err(out));
}
