//! What an account may do: SetAccount, its fields, and what each flag decides.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/venue.rs"]
mod venue;

use touchline_core::{Core, ORDER_TYPES_2, Reject};
use touchline_protocol::message::Message;
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{RejectReason as Why, SelfTradePrevention};
use touchline_protocol::message::event::Done;
use touchline_protocol::units::*;
use venue::{Owned, Venue, WHOLE, roomy};

const ONE: SymbolId = SymbolId(0);

/// Ann (1) and Bob (2), with 100 of each asset.
fn world() -> Venue {
    let mut venue = Venue::new();
    venue.set_rules();
    venue.must(&SetRules { rules: 2, ..Default::default() });
    venue.set_limits(roomy());
    let pair = (venue.asset("BASE"), venue.asset("QUOTE"));
    venue.symbol_of("ONE", pair, SymbolFilters::default(), (ORDER_TYPES_2, 0));
    for name in ["ann", "bob"] {
        let (account, _) = venue.account(name, (0, 0));
        venue.deposit(account, pair.0, 100 * WHOLE);
        venue.deposit(account, pair.1, 100 * WHOLE);
    }
    venue
}

fn order(key: u64, side: u8) -> NewOrder {
    NewOrder {
        command: CommandHeader { key_id: KeyId(key), ..Default::default() },
        symbol: ONE,
        side,
        order_type: 1,
        time_in_force: 1,
        price: WHOLE,
        quantity: WHOLE,
        ..Default::default()
    }
}

fn set(flags: u8, permissions: u8, self_trade_prevention: u8) -> SetAccount {
    SetAccount {
        account: AccountId(1),
        flags,
        permissions,
        self_trade_prevention,
        ..Default::default()
    }
}

#[track_caller]
fn rejected<M: Message>(venue: &mut Venue, message: &M, reason: Why, detail: u32) {
    assert_eq!(venue.apply(message), Err(Reject { reason, detail }), "{}", M::NAME);
}

#[test]
fn each_field_is_set_and_seen() {
    let mut venue = world();
    for mode in 0..=4 {
        let message = set(6, PERMISSION_MARGIN, mode);
        let done = Done { id: 1, ..Default::default() };
        assert_eq!(venue.must(&message), [Owned::Done(done)]);
        let view = venue.core.account(AccountId(1)).unwrap();
        let expected = SelfTradePrevention::from_wire(mode).unwrap_or(SelfTradePrevention::None);
        assert_eq!((view.flags, view.permissions), (6, PERMISSION_MARGIN));
        assert_eq!(view.self_trade_prevention, expected);
    }
    venue.check_replay();
}

#[test]
fn every_field_out_of_range() {
    let mut venue = world();
    let sound = set(ACCOUNT_CAN_TRADE, PERMISSION_SPOT, 0);
    for account in [AccountId::FEES.0, 3, u32::MAX] {
        let message = SetAccount { account: AccountId(account), ..sound };
        rejected(&mut venue, &message, Why::UnknownAccount, 0);
    }
    for flags in 8..=u8::MAX {
        rejected(&mut venue, &SetAccount { flags, ..sound }, Why::InvalidDefinition, 1);
    }
    for permissions in 16..=u8::MAX {
        rejected(&mut venue, &SetAccount { permissions, ..sound }, Why::InvalidDefinition, 2);
    }
    for self_trade_prevention in 5..=u8::MAX {
        let message = SetAccount { self_trade_prevention, ..sound };
        rejected(&mut venue, &message, Why::InvalidDefinition, 3);
    }
    let mut old = Venue::new();
    old.set_rules();
    old.set_limits(roomy());
    old.account("ann", (0, 0));
    rejected(&mut old, &sound, Why::UnexpectedMessage, 0);
}

#[test]
fn an_account_that_may_not_trade_keeps_its_orders() {
    let mut venue = world();
    venue.must(&order(1, 2));
    venue.must(&set(0, PERMISSION_SPOT, 0));
    rejected(&mut venue, &order(1, 1), Why::AccountCannotTrade, 0);
    let cancel = CancelOrder {
        command: CommandHeader { key_id: KeyId(1), ..Default::default() },
        symbol: ONE,
        order_id: OrderId(1),
        ..Default::default()
    };
    rejected(&mut venue, &cancel, Why::AccountCannotTrade, 0);
    // It still trades with others, and the operator still moves its money.
    let events = venue.must(&order(2, 1));
    assert!(events.iter().any(|event| matches!(event, Owned::Trade(_))));
    venue.deposit(AccountId(1), AssetId(0), WHOLE);
    venue.must(&Withdraw {
        account: AccountId(1),
        asset: AssetId(1),
        amount: 100 * WHOLE,
        ..Default::default()
    });
    venue.must(&set(ACCOUNT_CAN_TRADE, PERMISSION_SPOT, 0));
    venue.must(&order(1, 1));
    venue.must(&CancelOrder { order_id: OrderId(3), ..cancel });
    venue.check_replay();
}

#[test]
fn a_permission_is_asked_of_placements_only() {
    let mut venue = world();
    venue.must(&order(1, 2));
    venue.must(&set(ACCOUNT_CAN_TRADE, PERMISSION_MARGIN, 0));
    rejected(&mut venue, &order(1, 1), Why::SymbolNotPermitted, 0);
    venue.must(&CancelAll {
        command: CommandHeader { key_id: KeyId(1), ..Default::default() },
        symbol: ONE,
        ..Default::default()
    });
    venue.check_replay();
}

#[test]
fn the_mode_against_self_trades_holds_for_orders_that_name_none() {
    let mut venue = world();
    venue.must(&set(ACCOUNT_CAN_TRADE, PERMISSION_SPOT, 2));
    venue.must(&order(1, 2));
    let events = venue.must(&order(1, 1));
    assert!(events.iter().any(|event| matches!(event, Owned::Prevented(_))));
    let events = venue.must(&NewOrder { self_trade_prevention: 1, ..order(1, 1) });
    assert!(events.iter().any(|event| matches!(event, Owned::Trade(_))));
    venue.check_replay();
}

/// The fee account is there from the beginning, before any limits are set.
#[test]
fn nobody_has_an_order_in_a_venue_without_limits() {
    let core = Core::new();
    for account in [AccountId::FEES, AccountId(1), AccountId(u32::MAX)] {
        assert_eq!(core.open_orders_of(account).count(), 0);
        assert_eq!(core.open_order_count(account, ONE), 0);
        assert_eq!(core.balance(account, AssetId(0)), None);
    }
}
