//! What a sweep is refused for; that a reject changes nothing is checked at every command.

use crate::venue::Venue;
use crate::world::*;
use touchline_core::Reject;
use touchline_core::limits::number;
use touchline_protocol::message::Message;
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{Lane, RejectReason as Why, Role, Side};
use touchline_protocol::units::*;

#[track_caller]
fn rejected<M: Message>(venue: &mut Venue, message: &M, reason: Why) {
    assert_eq!(venue.apply(message).expect_err("a reject").reason, reason, "{}", M::NAME);
}

#[test]
fn every_field_out_of_range() {
    let mut venue = world(steps(256));
    for symbol in [2, 3, EVERY - 1] {
        let symbol = SymbolId(symbol);
        rejected(&mut venue, &cancel_all(by(ANN), symbol), Why::UnknownSymbol);
        rejected(&mut venue, &mass_cancel(by(ANN), symbol, 2), Why::UnknownSymbol);
        rejected(&mut venue, &expire_all(symbol), Why::UnknownSymbol);
    }
    rejected(&mut venue, &cancel_all(by(ANN), ALL), Why::UnknownSymbol);
    rejected(&mut venue, &expire_all(ALL), Why::UnknownSymbol);
    rejected(&mut venue, &cancel_all(by(ANN), ONE), Why::UnknownOrder);
    for scope in (0..=u8::MAX).filter(|scope| ![1, 2].contains(scope)) {
        rejected(&mut venue, &mass_cancel(by(ANN), ONE, scope), Why::UnsupportedCombination);
        rejected(&mut venue, &mass_cancel(by(ANN), ALL, scope), Why::UnsupportedCombination);
    }
    for killed in 2..=u8::MAX {
        let reject = venue.apply(&kill(ANN, killed)).expect_err("a reject");
        assert_eq!(reject, Reject { reason: Why::InvalidDefinition, detail: 1 });
    }
    for account in [4, EVERY.into()] {
        rejected(&mut venue, &kill(account, 1), Why::UnknownAccount);
        rejected(&mut venue, &kill(account, 0), Why::UnknownAccount);
    }
}

#[test]
fn the_sender_needs_a_key_and_an_account_that_trades() {
    let mut venue = world(steps(256));
    for key in [0, 4, u64::MAX] {
        rejected(&mut venue, &cancel_all(by(key), ONE), Why::UnknownKey);
        rejected(&mut venue, &mass_cancel(by(key), ONE, 2), Why::UnknownKey);
    }
    let reader = venue.logon("reader", Role::ReadOnly, Lane::Hot, KeyId(ANN));
    let command = venue.header(reader, KeyId(ANN));
    rejected(&mut venue, &cancel_all(command, ONE), Why::RoleNotPermitted);
    let trader = venue.logon("trader", Role::Trader, Lane::Hot, KeyId(ANN));
    let command = venue.header(trader, KeyId(BOB));
    rejected(&mut venue, &mass_cancel(command, ONE, 2), Why::RoleNotPermitted);
    let command = venue.header(trader, KeyId(ANN));
    rejected(&mut venue, &ExpireAll { command, ..expire_all(ONE) }, Why::RoleNotPermitted);
    let admin = venue.logon("admin", Role::Admin, Lane::Cold, KeyId(0));
    let command = venue.header(admin, KeyId(0));
    venue.must(&ExpireAll { command, ..expire_all(ONE) });
}

#[test]
fn rules_1_know_no_sweep() {
    let mut venue = Venue::new();
    venue.set_rules();
    venue.set_limits(steps(256));
    venue.account("ann", (0, 0));
    rejected(&mut venue, &cancel_all(by(ANN), ONE), Why::UnexpectedMessage);
    rejected(&mut venue, &mass_cancel(by(ANN), ALL, 2), Why::UnexpectedMessage);
    rejected(&mut venue, &expire_all(ONE), Why::UnexpectedMessage);
    rejected(&mut venue, &kill(ANN, 1), Why::UnexpectedMessage);
}

/// With no room for pending work a sweep is taken exactly if it fits its own transaction; a kill always.
#[test]
fn without_room_only_what_fits_at_once() {
    for max_steps in 1..=9 {
        for orders in 0..=6u32 {
            for kind in 0..3 {
                let fits = kind == 1 || orders == 0 || 2 * (orders - 1) < max_steps;
                let mut venue = world(Limits { pending_work: 0, ..steps(max_steps) });
                for n in 0..orders {
                    place(&mut venue, &limit(by(ANN), ONE, Side::Buy, (5 + i64::from(n / 2), 1)));
                }
                let verdict = match kind {
                    0 => venue.apply(&mass_cancel(by(ANN), ALL, 2)),
                    1 => venue.apply(&kill(ANN, 1)),
                    _ => venue.apply(&expire_all(ONE)),
                };
                match verdict {
                    Ok(events) => {
                        assert!(fits, "{orders} orders in {max_steps} steps");
                        let later = venue.drain();
                        assert!(kind == 1 || later.is_empty(), "all of it at once");
                        let count = ended(&events).len() + ended(&later).len();
                        assert_eq!(count, orders as usize);
                        check_empty(&venue);
                    }
                    Err(Reject { reason, detail }) => {
                        assert!(!fits, "{orders} orders in {max_steps} steps");
                        assert_eq!((reason, detail), (Why::CapacityReached, number::PENDING_WORK));
                    }
                }
            }
        }
    }
}
