//! A venue with many open orders, and how much time of a core writing and reading it takes:
//! `TOUCHLINE_ORDERS=1000000 cargo test --release -p touchline-core --test snapshot large -- --nocapture`.

use crate::parts::{again, read, write};
use crate::venue::{Venue, named, roomy};
use std::time::Duration;
use touchline_core::ORDER_TYPES_2;
use touchline_protocol::message::command::*;
use touchline_protocol::units::*;

const WHOLE: i64 = UNITS_PER_WHOLE;
const SYMBOLS: u32 = 8;
const ACCOUNTS: u64 = 100;

pub(crate) fn venue_with(orders: u32) -> Venue {
    let mut venue = Venue::new();
    venue.set_rules();
    venue.must(&SetRules { rules: 2, ..Default::default() });
    venue.set_limits(Limits {
        accounts: 1000,
        keys: 1000,
        open_orders: orders,
        price_levels: 1 << 20,
        ..roomy()
    });
    let pair = (venue.asset("BASE"), venue.asset("QUOTE"));
    for symbol in 0..SYMBOLS {
        let kinds = (ORDER_TYPES_2, SYMBOL_ICEBERG);
        venue.symbol_of(&format!("S{symbol}"), pair, SymbolFilters::default(), kinds);
    }
    for account in 0..ACCOUNTS {
        let (account, _) = venue.account(&format!("A{account}"), (0, 0));
        venue.deposit(account, pair.0, 10_000_000 * WHOLE);
        venue.deposit(account, pair.1, 100_000_000 * WHOLE);
    }
    for number in 0..orders {
        let spread = u64::from(number) * 0x9e37_79b9 % 60_000;
        let is_buy = number % 2 == 0;
        let from_middle = if is_buy { -1 - spread as i64 } else { 1 + spread as i64 };
        let slices = if number % 10 == 0 { 3 } else { 1 };
        venue.must_quickly(&NewOrder {
            command: CommandHeader {
                key_id: KeyId(1 + u64::from(number) % ACCOUNTS),
                ..Default::default()
            },
            symbol: SymbolId(number % SYMBOLS),
            side: if is_buy { 1 } else { 2 },
            order_type: 1,
            time_in_force: 1,
            price: 1000 * WHOLE + from_middle * WHOLE / 100,
            quantity: slices * WHOLE / 10,
            iceberg_quantity: if slices > 1 { WHOLE / 10 } else { 0 },
            client_order_id: named(&format!("order-{number}")),
            ..Default::default()
        });
        // Only what is open matters here.
        venue.journal.clear();
    }
    assert_eq!(venue.core.counts().open_orders, orders);
    venue
}

/// Time that this thread has been on a core: what a busy machine does not distort.
fn on_core() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().and_then(|ns| ns.parse().ok());
    Duration::from_nanos(first.unwrap_or(0))
}

#[test]
fn a_large_venue_is_written_and_read() {
    let orders = std::env::var("TOUCHLINE_ORDERS").ok().map(|text| text.parse().unwrap());
    let orders = orders.unwrap_or(20_000);
    let core = venue_with(orders).core;
    // The same limits and nothing open: what the memory alone takes.
    let empty = write(&{
        let mut venue = Venue::new();
        venue.set_rules();
        venue.set_limits(*core.limits());
        venue.core
    });
    let mut before = on_core();
    let mut lap = || {
        let now = on_core();
        now - std::mem::replace(&mut before, now)
    };
    let bytes = write(&core);
    let written = lap();
    let (copy, left) = read(&bytes, 11).unwrap();
    let was_read = lap();
    let hash = copy.state_hash();
    let hashed = lap();
    let _without_orders = read(&empty, 11).unwrap();
    let made_room = lap();
    assert_eq!((left, hash), (0, core.state_hash()));
    println!(
        "{orders} open orders, {} bytes: written in {written:.0?}, read in {was_read:.0?}; of each \
         {hashed:.0?} for a state hash, of reading {made_room:.0?} for room in memory",
        bytes.len()
    );
    if orders < 100_000 {
        again(&core, 5);
    }
}
