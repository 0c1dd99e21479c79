//! Commission rates: who pays what, which of several rates holds, exact truncation, and withdrawing.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/venue.rs"]
mod venue;

use proptest::prelude::*;
use touchline_core::limits::number;
use touchline_core::{FeeRates, ORDER_TYPES_2, Reject};
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{RejectReason as Why, Side};
use touchline_protocol::message::event::{Done, Trade};
use touchline_protocol::units::*;
use venue::{Owned, Venue, WHOLE, roomy};

const ONE: SymbolId = SymbolId(0);
const TWO: SymbolId = SymbolId(1);
const ANN: AccountId = AccountId(1);
const BOB: AccountId = AccountId(2);
const ALL: u32 = EVERY;

/// Ann and Bob, who pay 3 and 5, and 7 and 11 hundredths as maker and taker.
fn world() -> Venue {
    let mut venue = Venue::new();
    venue.set_rules();
    venue.must(&SetRules { rules: 2, ..Default::default() });
    venue.set_limits(roomy());
    let pair = (venue.asset("BASE"), venue.asset("QUOTE"));
    for name in ["ONE", "TWO"] {
        venue.symbol_of(name, pair, SymbolFilters::default(), (ORDER_TYPES_2, 0));
    }
    for (name, rates) in [("ann", (3, 5)), ("bob", (7, 11))] {
        let (account, _) = venue.account(name, (rates.0 * WHOLE / 100, rates.1 * WHOLE / 100));
        venue.deposit(account, pair.0, 1_000_000 * WHOLE);
        venue.deposit(account, pair.1, 1_000_000 * WHOLE);
    }
    venue
}

/// Rates in hundredths: maker, taker, buyer, seller.
fn fees(account: u32, symbol: u32, rates: [i64; 4]) -> SetFees {
    exact(account, symbol, rates.map(|rate| rate * WHOLE / 100))
}

fn exact(account: u32, symbol: u32, rates: [i64; 4]) -> SetFees {
    let [maker_rate, taker_rate, buyer_rate, seller_rate] = rates;
    SetFees {
        account: AccountId(account),
        symbol: SymbolId(symbol),
        maker_rate,
        taker_rate,
        buyer_rate,
        seller_rate,
        ..Default::default()
    }
}

/// One order of Ann's is taken by Bob; gives the trade.
fn trade(venue: &mut Venue, symbol: SymbolId, maker: Side, terms: (i64, i64)) -> Trade {
    let order = |key, side: Side| NewOrder {
        command: CommandHeader { key_id: KeyId(key), ..Default::default() },
        symbol,
        side: side.to_wire(),
        order_type: 1,
        time_in_force: 1,
        price: terms.0,
        quantity: terms.1,
        ..Default::default()
    };
    venue.must(&order(1, maker));
    let events = venue.must(&order(2, maker.opposite()));
    let trade = events.iter().find_map(|event| match event {
        Owned::Trade(trade) => Some(*trade),
        _ => None,
    });
    trade.unwrap()
}

/// What the maker (Ann) and the taker (Bob) pay for 100 at 1, in whole units.
fn paid(venue: &mut Venue, symbol: SymbolId, maker: Side) -> (i64, i64) {
    let trade = trade(venue, symbol, maker, (WHOLE, 100 * WHOLE));
    (trade.maker_commission / WHOLE, trade.taker_commission / WHOLE)
}

#[test]
fn maker_or_taker_and_buyer_or_seller() {
    let mut venue = world();
    assert_eq!(paid(&mut venue, ONE, Side::Buy), (3, 11));
    venue.must(&fees(1, ALL, [10, 20, 1, 2]));
    venue.must(&fees(2, ALL, [30, 40, 4, 8]));
    assert_eq!(paid(&mut venue, ONE, Side::Buy), (10 + 1, 40 + 8));
    assert_eq!(paid(&mut venue, ONE, Side::Sell), (10 + 2, 40 + 4));
    let view = venue.core.account(ANN).unwrap();
    let rates = [view.maker_rate, view.taker_rate, view.buyer_rate, view.seller_rate];
    assert_eq!(rates, [10, 20, 1, 2].map(|rate| rate * WHOLE / 100));
    // Of what was received: 200 base or quote in all, less than that what was paid.
    let fees = venue.core.balance(AccountId::FEES, AssetId(0)).unwrap().free.0
        + venue.core.balance(AccountId::FEES, AssetId(1)).unwrap().free.0;
    assert_eq!(fees, (3 + 11 + 11 + 48 + 12 + 44) * WHOLE);
    venue.check_replay();
}

#[test]
fn the_pair_comes_before_the_symbol_and_that_before_the_account() {
    let mut venue = world();
    let none = [-1; 4];
    // What was set, and what a trade on each symbol costs Ann as the maker and Bob as the taker.
    for (message, one, two) in [
        (fees(ALL, 0, [20, 30, 0, 0]), (20, 30), (3, 11)),
        (fees(1, 0, [40, 0, 1, 1]), (41, 30), (3, 11)),
        (fees(2, 1, [0, 50, 0, 0]), (41, 30), (3, 50)),
        (fees(1, ALL, [60, 60, 0, 0]), (41, 30), (60, 50)),
        (fees(2, 0, [0, 0, 0, 0]), (41, 0), (60, 50)),
        (fees(1, 0, [42, 0, 0, 0]), (42, 0), (60, 50)),
        (exact(1, 0, none), (20, 0), (60, 50)),
        (exact(ALL, 0, none), (60, 0), (60, 50)),
        (exact(2, 0, none), (60, 11), (60, 50)),
        // What is not there is withdrawn all the same.
        (exact(2, 0, none), (60, 11), (60, 50)),
        (exact(ALL, 1, none), (60, 11), (60, 50)),
        (exact(2, 1, none), (60, 11), (60, 11)),
    ] {
        let events = venue.must(&message);
        assert_eq!(events, [Owned::Done(Done::default())]);
        for (symbol, expected) in [(ONE, one), (TWO, two)] {
            assert_eq!(paid(&mut venue, symbol, Side::Sell), expected, "{message:?} on {symbol}");
            let rates = [ANN, BOB].map(|account| venue.core.fee_rates(account, symbol).unwrap());
            let shown = (rates[0].maker + rates[0].seller, rates[1].taker + rates[1].buyer);
            assert_eq!(shown, (expected.0 * WHOLE / 100, expected.1 * WHOLE / 100));
        }
    }
    assert_eq!(venue.core.symbol(ONE).unwrap().rates, None);
    assert_eq!(venue.core.fee_rates(AccountId(3), ONE), None);
    assert_eq!(venue.core.fee_rates(ANN, SymbolId(2)), None);
    venue.check_replay();
}

#[test]
fn the_sum_of_the_rates_is_truncated_once() {
    let mut venue = world();
    let third = WHOLE / 3;
    venue.must(&exact(1, ALL, [third, 0, third, 0]));
    venue.must(&exact(2, ALL, [0, third, 0, third]));
    // Two smallest units: a third of it is 0, two thirds are 1.
    let trade = trade(&mut venue, ONE, Side::Buy, (WHOLE, 2));
    assert_eq!((trade.maker_commission, trade.taker_commission), (1, 1));
    venue.check_replay();
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_rates_and_amounts_are_exact(
        maker in 0..=WHOLE, taker in 0..=WHOLE, buyer in 0..=WHOLE, seller in 0..=WHOLE,
        quantity in 1..100_000_000_000i64, sells in any::<bool>(),
    ) {
        let besides = buyer.max(seller);
        let rates = [maker.min(WHOLE - besides), taker.min(WHOLE - besides), buyer, seller];
        let mut venue = world();
        venue.must(&exact(ALL, 0, rates));
        let side = if sells { Side::Sell } else { Side::Buy };
        let trade = trade(&mut venue, ONE, side, (2 * WHOLE, quantity));
        let of = |amount: i64, rate: i64| {
            (i128::from(amount) * i128::from(rate) / i128::from(WHOLE)) as i64
        };
        let [maker, taker, buyer, seller] = rates;
        let expected = match side {
            Side::Buy => (of(quantity, maker + buyer), of(2 * quantity, taker + seller)),
            Side::Sell => (of(2 * quantity, maker + seller), of(quantity, taker + buyer)),
        };
        prop_assert_eq!((trade.maker_commission, trade.taker_commission), expected);
        venue.check_replay();
    }
}

#[test]
fn every_field_out_of_range() {
    let mut venue = world();
    let mut rejected = |message: SetFees, reason, detail| {
        assert_eq!(venue.apply(&message), Err(Reject { reason, detail }), "{message:?}");
    };
    let none = [0; 4];
    rejected(exact(ALL, ALL, none), Why::InvalidDefinition, 0);
    for account in [AccountId::FEES.0, 3, EVERY - 1] {
        rejected(exact(account, 0, none), Why::UnknownAccount, 0);
        rejected(exact(account, ALL, none), Why::UnknownAccount, 0);
    }
    for symbol in [2, EVERY - 1] {
        rejected(exact(1, symbol, none), Why::UnknownSymbol, 0);
        rejected(exact(ALL, symbol, none), Why::UnknownSymbol, 0);
    }
    for (account, symbol) in [(1, 0), (1, ALL), (ALL, 0)] {
        for at in 0..4 {
            for rate in [-1, WHOLE + 1, i64::MIN, i64::MAX] {
                let mut rates = none;
                rates[at] = rate;
                rejected(exact(account, symbol, rates), Why::InvalidDefinition, 2 + at as u32);
            }
        }
        // Each is in range, a sum is not.
        let half = WHOLE / 2;
        for (rates, field) in [
            ([half + 1, 0, half, 0], 2),
            ([half + 1, 0, 0, half], 2),
            ([0, half + 1, half, 0], 3),
            ([0, half + 1, 0, half], 3),
            ([1, 0, WHOLE, 0], 2),
            ([0, 1, 0, WHOLE], 3),
        ] {
            rejected(exact(account, symbol, rates), Why::InvalidDefinition, field);
        }
    }
    // An account's own rates cannot be withdrawn; a part of an override neither.
    rejected(exact(1, ALL, [-1; 4]), Why::InvalidDefinition, 2);
    rejected(exact(1, 0, [-1, -1, -1, 0]), Why::InvalidDefinition, 2);
    let half = WHOLE / 2;
    for (account, symbol) in [(1, 0), (1, ALL), (ALL, 0)] {
        venue.must(&exact(account, symbol, [half, WHOLE - half, half, half]));
    }
    let mut old = Venue::new();
    old.set_rules();
    old.set_limits(roomy());
    old.account("ann", (0, 0));
    let reject = old.apply(&exact(1, ALL, none)).expect_err("a reject");
    assert_eq!(reject.reason, Why::UnexpectedMessage);
}

/// Pairs with rates of their own are as many as accounts at the most.
#[test]
fn pairs_are_bounded_by_the_limit_of_accounts() {
    let mut venue = world();
    let small = Limits { accounts: 3, ..roomy() };
    venue.set_limits(small);
    for (account, symbol) in [(1, 0), (1, 1), (2, 0)] {
        venue.must(&fees(account, symbol, [1, 1, 1, 1]));
    }
    let more = fees(2, 1, [1, 1, 1, 1]);
    let full = Reject { reason: Why::CapacityReached, detail: number::ACCOUNTS };
    assert_eq!(venue.apply(&more), Err(full));
    venue.must(&fees(2, 0, [2, 2, 2, 2]));
    venue.must(&exact(1, 1, [-5; 4]));
    venue.must(&more);
    let rates = |venue: &Venue, account, symbol| venue.core.fee_rates(account, symbol).unwrap();
    assert_eq!(rates(&venue, BOB, ONE).maker, 2 * WHOLE / 100);
    assert_eq!(rates(&venue, BOB, TWO).maker, WHOLE / 100);
    let own = FeeRates { maker: 3 * WHOLE / 100, taker: 5 * WHOLE / 100, buyer: 0, seller: 0 };
    assert_eq!(rates(&venue, ANN, TWO), own);
    venue.set_limits(Limits { accounts: 4, ..small });
    for symbol in [0, 1] {
        for account in [1, 2] {
            venue.must(&fees(account, symbol, [1, 2, 3, 4]));
        }
    }
    let too_low = SetLimits { limits: Limits { accounts: 3, ..small }, ..Default::default() };
    let out = Reject { reason: Why::LimitOutOfRange, detail: number::ACCOUNTS };
    assert_eq!(venue.apply(&too_low), Err(out));
    venue.check_replay();
}
