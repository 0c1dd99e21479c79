//! An order that was paid more than a venue may hold at once.

use crate::parts::again;
use crate::venue::{Owned, Venue, WHOLE, roomy};
use touchline_core::{AMOUNT_MAX, ORDER_TYPES_2};
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::Side;
use touchline_protocol::message::event::Trade;
use touchline_protocol::units::*;

const ONE: SymbolId = SymbolId(0);
const SELLER: (AccountId, KeyId) = (AccountId(1), KeyId(1));
const BUYER: (AccountId, KeyId) = (AccountId(2), KeyId(2));
const QUOTE: AssetId = AssetId(1);

fn limit((_, key_id): (AccountId, KeyId), side: Side, price: i64, quantity: i64) -> NewOrder {
    NewOrder {
        command: CommandHeader { key_id, ..Default::default() },
        symbol: ONE,
        side: side.to_wire(),
        order_type: 1,
        time_in_force: 1,
        price,
        quantity,
        ..Default::default()
    }
}

/// A seller, and a buyer with nearly all of the quote asset that there may be.
fn world() -> Venue {
    let mut venue = Venue::new();
    venue.set_rules();
    venue.must(&SetRules { rules: 2, ..Default::default() });
    venue.set_limits(roomy());
    let pair = (venue.asset("BASE"), venue.asset("QUOTE"));
    venue.symbol_of("ONE", pair, SymbolFilters::default(), (ORDER_TYPES_2, 0));
    for name in ["seller", "buyer"] {
        venue.account(name, (0, 0));
    }
    venue.deposit(SELLER.0, pair.0, 1_000 * WHOLE);
    venue.deposit(BUYER.0, QUOTE, 46_000_000_000 * WHOLE);
    venue
}

/// What the seller was paid is the buyer's again.
fn pay_back(venue: &mut Venue) {
    let amount = venue.core.balance(SELLER.0, QUOTE).unwrap().free.0;
    venue.must(&Withdraw { account: SELLER.0, asset: QUOTE, amount, ..Default::default() });
    venue.deposit(BUYER.0, QUOTE, amount);
}

/// It takes all the money that there is, far above its limit; then its rest is bought at its limit.
#[test]
fn a_sell_that_was_paid_more_than_a_venue_holds_is_read() {
    const PRICE: i64 = 46_000_000 * WHOLE;
    let mut venue = world();
    venue.must(&limit(BUYER, Side::Buy, 92_000_000_000 * WHOLE, WHOLE / 2));
    venue.must(&limit(SELLER, Side::Sell, PRICE, 1_000 * WHOLE));
    for quantity in [1, 898, 100] {
        pay_back(&mut venue);
        venue.must(&limit(BUYER, Side::Buy, PRICE, quantity * WHOLE));
        let sell = venue.core.open_orders(ONE, Side::Sell).next().unwrap();
        assert_eq!(sell.executed_quote.0 > AMOUNT_MAX, quantity > 1);
        venue.core = again(&venue.core, 7);
    }
    pay_back(&mut venue);
    let events = venue.must(&limit(BUYER, Side::Buy, PRICE, WHOLE / 2));
    assert!(matches!(events[1], Owned::Trade(Trade { maker_remaining: 0, .. })), "{events:?}");
}
