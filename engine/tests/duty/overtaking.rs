//! What operators send while work is pending: a halt, a kill and a revocation take hold in the middle of
//! a cascade, and what needs a settled symbol waits for the end of it.

use super::client::{Client, limit};
use super::venue::Venue;
use crate::patience::Wait;
use touchline_protocol::log::reader::{Follow, LogReader};
use touchline_protocol::message::command::{
    ExpireAll, KillAccount, NewOrder, RevokeKey, SetSymbolStatus,
};
use touchline_protocol::message::decode::Event;
use touchline_protocol::message::enums::{Lane, OrderType, RejectReason, Role, Side, SymbolStatus};
use touchline_protocol::message::stream::Logout;
use touchline_protocol::units::{AccountId, KeyId, SymbolId};

/// Stops that one trade sets off: of the account of key 2 and of that of key 3 in turn.
const STOPS: u64 = 10_000;
const PRICE: i64 = 100;

fn stop() -> NewOrder {
    NewOrder {
        order_type: OrderType::StopLoss.to_wire(),
        time_in_force: 0,
        stop_price: PRICE * 100_000_000,
        ..limit(0, Side::Sell, 0, 1)
    }
}

fn send(venue: &mut Venue, client: &mut Client, order: NewOrder) {
    let wait = Wait::begin();
    while !client.try_send(order) {
        wait.go_on("nothing is taken");
        venue.duty.turn();
        client.read();
    }
}

/// A venue in the middle of the cascade, and the owner of every other stop.
fn cascade() -> (Venue, Client) {
    let mut venue = Venue::new("pending_per_turn = 1", "max_steps = 64");
    let mut bidder = venue.trader("bidder", 1);
    let mut owners = [2, 3].map(|key| venue.trader("owner", key));
    for n in 0..STOPS {
        let owner = &mut owners[n as usize % 2];
        send(&mut venue, owner, stop());
        if n % 2 == 1 {
            // In turn, whatever the lanes do.
            settle(&mut venue);
        }
    }
    let volume = STOPS as i64 + 1;
    send(&mut venue, &mut bidder, limit(0, Side::Buy, PRICE, volume));
    settle(&mut venue);
    send(&mut venue, &mut bidder, limit(0, Side::Sell, PRICE, 1));
    let wait = Wait::begin();
    while venue.duty.core().symbol(SymbolId(0)).unwrap().counters.trade.0 < STOPS / 10 {
        wait.go_on("the stops do not fire");
        venue.duty.turn();
    }
    assert!(venue.duty.core().pending_head().is_some(), "it is over already");
    let [_, killed] = owners;
    (venue, killed)
}

/// Turns until nothing is pending and nobody has anything to say.
fn settle(venue: &mut Venue) {
    let wait = Wait::begin();
    while venue.duty.turn() > 0 || venue.duty.core().pending_head().is_some() {
        wait.go_on("the duty thread finds no end");
    }
}

/// What became of the stops of an account in the log: the positions at which they had their turn, and
/// how many were cancelled.
fn fate(venue: &Venue, account: AccountId) -> (Vec<u64>, u64) {
    let mut reader = LogReader::open(venue.folder.path(), Follow::Appended).unwrap();
    let (mut turns, mut canceled) = (Vec::new(), 0);
    while let Some(transaction) = reader.next().unwrap() {
        for event in transaction.events() {
            match event.unwrap() {
                Event::OrderTriggered(event) if event.account == account => {
                    turns.push(transaction.position().0);
                }
                Event::OrderCanceled(event) if event.account == account => canceled += 1,
                _ => {}
            }
        }
    }
    (turns, canceled)
}

/// Turns until the operator has an answer; says whether the cascade was over by then.
fn answered(venue: &mut Venue, operator: &mut Client) -> bool {
    for _ in 0..1_000 {
        venue.duty.turn();
        if operator.count_answers() > 0 {
            return venue.duty.core().pending_head().is_none();
        }
    }
    panic!("the operator is not heard");
}

#[test]
fn a_kill_in_the_middle_of_a_cascade_ends_what_the_account_has_in_it() {
    for lane in [Lane::Cold, Lane::Hot] {
        let (mut venue, _killed) = cascade();
        let mut admin = venue.try_open("admin", (Role::Admin, lane, 0), 16_384).unwrap();
        let account = AccountId(3);
        admin.send(KillAccount { account, killed: 1, ..Default::default() });
        assert!(!answered(&mut venue, &mut admin), "the cascade was over");
        assert!(venue.duty.core().account(account).unwrap().killed);
        assert_eq!(venue.duty.core().open_order_count(account, SymbolId(0)), 0);
        settle(&mut venue);
        let (turns, canceled) = fate(&venue, account);
        let (others, none) = fate(&venue, AccountId(2));
        assert_eq!(
            (others.len() as u64, none),
            (STOPS / 2, 0),
            "the others' stops have their turn"
        );
        assert_eq!(turns.len() as u64 + canceled, STOPS / 2);
        assert!(canceled > STOPS / 4, "{canceled} were left to cancel");
        assert!(turns.last() < others.last(), "the cascade went on without them");
        let trades = venue.duty.core().symbol(SymbolId(0)).unwrap().counters.trade.0;
        // One that was about to take when the kill came takes nothing.
        let most = 1 + (others.len() + turns.len()) as u64;
        assert!(trades == most || trades == most - 1, "{trades} trades of {most}");
    }
}

#[test]
fn a_halt_and_a_revocation_do_not_wait_for_the_cascade() {
    let (mut venue, mut owner) = cascade();
    let mut admin = venue.cold("admin", Role::Admin);
    let symbol = SymbolId(0);
    let halt = SymbolStatus::Halt;
    admin.send(SetSymbolStatus { symbol, status: halt.to_wire(), ..Default::default() });
    assert!(!answered(&mut venue, &mut admin), "the cascade was over");
    assert_eq!(venue.duty.core().symbol(symbol).unwrap().status, halt);
    admin.send(RevokeKey { key: KeyId(3), ..Default::default() });
    assert!(!answered(&mut venue, &mut admin), "the cascade was over");
    assert!(venue.closed().iter().any(|(session, ..)| *session == owner.identity().0));
    owner.try_send(limit(0, Side::Buy, 1, 1));
    settle(&mut venue);
    let (turns, canceled) = fate(&venue, AccountId(3));
    assert_eq!((turns.len() as u64, canceled), (STOPS / 2, 0), "their trade was before the halt");
}

#[test]
fn what_needs_a_settled_symbol_waits_and_is_not_refused() {
    let (mut venue, _owner) = cascade();
    let mut admin = venue.cold("admin", Role::Admin);
    let mut other = venue.cold("other", Role::Admin);
    admin.send(ExpireAll { symbol: SymbolId(0), ..Default::default() });
    other.send(KillAccount { account: AccountId(1), killed: 0, ..Default::default() });
    assert!(!answered(&mut venue, &mut other), "the cascade was over");
    let wait = Wait::begin();
    while venue.duty.core().pending_head().is_some() {
        wait.go_on("the cascade does not end");
        assert!(admin.read().is_empty(), "it is not done yet");
        venue.duty.turn();
    }
    settle(&mut venue);
    let replies = admin.read();
    assert!(replies.iter().all(|reply| reply.reason() != Some(RejectReason::LogUnavailable)));
    assert!(matches!(replies.last().unwrap().event(), Event::MassCanceled(_)));
    let (turns, _) = fate(&venue, AccountId(3));
    assert_eq!(turns.len() as u64, STOPS / 2);
}

#[test]
fn a_logout_waits_for_the_answer_to_what_its_sender_has_set_off() {
    for lane in [Lane::Cold, Lane::Hot] {
        let mut venue = Venue::new("pending_per_turn = 1", "max_steps = 4");
        let mut owner = venue.trader("owner", 2);
        for price in 1..=40 {
            send(&mut venue, &mut owner, limit(0, Side::Buy, price, 1));
        }
        settle(&mut venue);
        let mut admin = venue.try_open("admin", (Role::Admin, lane, 0), 16_384).unwrap();
        admin.send(KillAccount { account: AccountId(2), killed: 1, ..Default::default() });
        let command = admin.header(admin.sequence());
        admin.push(bytemuck::bytes_of(&Logout { command, ..Default::default() }));
        settle(&mut venue);
        let replies = admin.read();
        let last = replies.last().expect("the kill has begun").event();
        assert!(matches!(last, Event::MassCanceled(_)), "{last:?} is the last word");
        assert!(venue.closed().iter().any(|(session, ..)| *session == admin.identity().0));
    }
}

#[test]
fn who_sets_off_several_things_has_an_answer_to_each_however_little_it_reads() {
    const SLOTS: u64 = 1024;
    for left in 4..12 {
        let mut venue = Venue::new("pending_per_turn = 1", "max_steps = 4");
        let mut owners = [2, 3].map(|key| venue.trader("owner", key));
        for owner in &mut owners {
            for price in 1..=40 {
                send(&mut venue, owner, limit(0, Side::Buy, price, 1));
            }
        }
        settle(&mut venue);
        let mut admin =
            venue.try_open("admin", (Role::Admin, Lane::Cold, 0), SLOTS as usize).unwrap();
        // Rejects, of one slot each, of which none is read.
        let nobody = KillAccount { account: AccountId(999), killed: 1, ..Default::default() };
        for _ in 0..SLOTS - left {
            if !admin.try_send(nobody) {
                settle(&mut venue);
                admin.send(nobody);
            }
        }
        settle(&mut venue);
        for account in [2, 3].map(AccountId) {
            admin.send(KillAccount { account, killed: 1, ..Default::default() });
        }
        settle(&mut venue);
        let mut answered = Vec::new();
        // What was not taken for want of room is taken when there is some.
        for _ in 0..3 {
            answered.extend(admin.read().into_iter().filter(|reply| reply.is_terminal()));
            settle(&mut venue);
        }
        let answered: Vec<u64> = answered.iter().map(|reply| reply.envelope.sequence.0).collect();
        assert_eq!(answered, (1..=admin.sequence()).collect::<Vec<_>>(), "{left} slots left");
    }
}
