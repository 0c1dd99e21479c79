//! A live window that is full, because the disk does not keep up: what nobody sends again is done when there
//! is room.

use super::client::{Client, limit};
use super::streams;
use super::venue::Venue;
use crate::duty_bench::WINDOW_BYTES;
use crate::patience::eventually;
use touchline_engine::mailbox::{Asked, FromDuty, LogonLetter, LogonRequest, ToDuty, Wishes};
use touchline_protocol::message::command::{Logon, NewOrder};
use touchline_protocol::message::enums::{Lane, RejectReason, Role, Side, TimeInForce};
use touchline_protocol::ring::{RingCapacities, SessionEnd};
use touchline_protocol::text::Name;
use touchline_protocol::units::{KeyId, SessionId, SymbolId};

/// Holds the disk up, and lets a client send what leaves nothing behind until the log has no room for more.
fn fill(venue: &mut Venue, client: &mut Client) {
    venue.disk.hold_up(true);
    let fleeting =
        || NewOrder { time_in_force: TimeInForce::Ioc.to_wire(), ..limit(0, Side::Buy, 1, 1) };
    let room = venue.control.appended().0 + WINDOW_BYTES;
    while venue.control.appended().0 < room {
        assert!(venue.control.is_running(), "{:?}", venue.control.failure());
        while client.try_send(fleeting()) {}
        if venue.duty.turn() == 0 {
            return;
        }
        client.read();
    }
    panic!("more than the window is taken, though nothing of it is written");
}

fn open_orders(venue: &Venue) -> usize {
    venue.duty.core().open_orders(SymbolId(0), Side::Sell).count()
}

#[test]
fn who_leaves_while_the_log_is_full_leaves_no_orders_in_the_end() {
    let mut venue = Venue::new("", "");
    let mut leaving = venue.trader_that_leaves_nothing("one", 1);
    let mut other = venue.trader("two", 2);
    leaving.send(limit(0, Side::Sell, 100, 1));
    venue.settle();
    venue.duty.wait_durable().unwrap();
    fill(&mut venue, &mut other);
    venue.disconnect(&leaving);
    venue.duty.turn();
    assert_eq!(venue.closed().len(), 1, "its connection ends at once");
    assert_eq!(open_orders(&venue), 1, "there is no room to log that");
    venue.disk.hold_up(false);
    assert!(eventually(|| {
        venue.duty.turn();
        other.read();
        open_orders(&venue) == 0
    }));
    let (session, _) = leaving.identity();
    assert!(!venue.duty.core().session(session).unwrap().connected);
}

#[test]
fn what_comes_over_a_socket_while_the_log_is_full_waits_and_is_not_refused() {
    let mut venue = Venue::new("", "");
    let mut stream = streams::open(&mut venue, "stream", 1, 0);
    let mut other = venue.trader("two", 2);
    fill(&mut venue, &mut other);
    assert!(stream.send(&mut venue, limit(0, Side::Sell, 100, 1)));
    venue.duty.turn();
    assert!(streams::read(&mut venue).is_empty(), "there is no room to log that");
    venue.disk.hold_up(false);
    assert!(eventually(|| {
        venue.duty.turn();
        other.read();
        open_orders(&venue) == 1
    }));
}

/// Knocks as the gateway does for a peer that proved who it is.
fn knock(venue: &Venue, ticket: usize) -> Asked {
    knock_as(venue, ticket, (&format!("late {ticket}"), 3))
}

/// As [`knock`], for a trader of this name and key.
pub(super) fn knock_as(venue: &Venue, ticket: usize, (name, key): (&str, u64)) -> Asked {
    let name = Name::new(name).unwrap();
    let (role, lane) = (Role::Trader.to_wire(), Lane::Hot.to_wire());
    let mut logon = Logon { name, role, lane, ..Default::default() };
    logon.command.key_id = KeyId(key);
    let request = LogonRequest { logon: Box::new(logon), end: None, wishes: Wishes::default() };
    let asked = Asked::new(request);
    venue.mail.to_duty.put(ToDuty::Logon(LogonLetter { ticket, asked: asked.clone() }));
    asked
}

/// Tickets of those who were let in, and of those who were refused.
fn decided(venue: &Venue) -> (Vec<usize>, Vec<usize>) {
    let (mut opened, mut refused) = (Vec::new(), Vec::new());
    while let Some(letter) = venue.mail.from_duty.take() {
        match letter {
            FromDuty::Opened { ticket, .. } => opened.push(ticket),
            FromDuty::Refused { ticket, reason, .. } => {
                assert_eq!(reason, RejectReason::LogUnavailable);
                refused.push(ticket);
            }
            FromDuty::Closed { why, .. } => panic!("{why}"),
        }
    }
    (opened, refused)
}

#[test]
fn who_comes_while_the_log_is_full_is_let_in_when_there_is_room() {
    let mut venue = Venue::new("", "");
    let mut other = venue.trader("two", 2);
    fill(&mut venue, &mut other);
    // More than a turn lets in.
    (0..20).for_each(|ticket| drop(knock(&venue, ticket)));
    for _ in 0..5 {
        venue.duty.turn();
    }
    assert_eq!(decided(&venue), (vec![], vec![]), "there is no room to log that");
    venue.disk.hold_up(false);
    let mut opened = Vec::new();
    assert!(eventually(|| {
        venue.duty.turn();
        other.read();
        let (more, refused) = decided(&venue);
        assert!(refused.is_empty());
        opened.extend(more);
        opened.len() == 20
    }));
    assert!(opened.is_sorted(), "as they came");
}

/// The gateway takes back what a peer asked for that has hung up or was told to come again: logged later, its logon
/// would replace the session's newer connection, and its end would cancel what the session has open.
#[test]
fn who_is_gone_before_there_is_room_is_never_logged_on() {
    let mut venue = Venue::new("", "");
    let mut other = venue.trader("two", 2);
    fill(&mut venue, &mut other);
    let asked: Vec<_> = (0..4).map(|ticket| knock(&venue, ticket)).collect();
    venue.duty.turn();
    assert!(asked[0].take().is_some() && asked[2].take().is_some());
    assert!(asked[0].take().is_none(), "it is taken once");
    venue.disk.hold_up(false);
    let mut opened = Vec::new();
    assert!(eventually(|| {
        venue.duty.turn();
        other.read();
        opened.extend(decided(&venue).0);
        opened.len() == 2
    }));
    assert!(asked[3].is_taken(), "and cannot be taken back any more");
    for _ in 0..5 {
        venue.duty.turn();
    }
    opened.extend(decided(&venue).0);
    assert_eq!(opened, [1, 3]);
    let core = venue.duty.core();
    let sessions = (1..).map_while(|id| core.session(SessionId(id)));
    assert_eq!(sessions.filter(|session| session.key_id == KeyId(3)).count(), 2);
}

#[test]
fn who_comes_while_the_log_is_full_is_refused_when_the_disk_fails() {
    let mut venue = Venue::new("", "");
    let mut other = venue.trader("two", 2);
    fill(&mut venue, &mut other);
    let _waits = knock(&venue, 1);
    venue.duty.turn();
    assert_eq!(decided(&venue), (vec![], vec![]));
    venue.disk.break_down();
    venue.disk.hold_up(false);
    assert!(eventually(|| {
        venue.duty.turn();
        other.read();
        decided(&venue) == (vec![], vec![1])
    }));
}

/// Unmapping is a system call, which the duty thread leaves to the gateway.
#[test]
fn a_logon_that_is_refused_comes_back_with_its_memory() {
    let mut venue = Venue::new("", "");
    let (end, _descriptors) = SessionEnd::create(RingCapacities::new(1024, 1024).unwrap()).unwrap();
    let mut logon = Logon { name: Name::new("nobody").unwrap(), ..Default::default() };
    (logon.role, logon.lane) = (Role::Trader.to_wire(), Lane::Hot.to_wire());
    logon.command.key_id = KeyId(99);
    let (logon, end) = (Box::new(logon), Some(Box::new(end)));
    let asked = Asked::new(LogonRequest { logon, end, wishes: Wishes::default() });
    venue.mail.to_duty.put(ToDuty::Logon(LogonLetter { ticket: 7, asked }));
    venue.duty.turn();
    match venue.mail.from_duty.take() {
        Some(FromDuty::Refused {
            ticket: 7,
            reason: RejectReason::UnknownKey,
            end,
            used_up: None,
        }) => {
            assert!(end.is_some());
        }
        _ => panic!("no refusal"),
    }
}
