//! What FORMATS.md says of a key's sessions: how many names it has, what stays with a name, whose key a command
//! names.

use super::binary::{KEY_A, KEY_B};
use super::process::WATCHDOG;
use super::raw_session::{number, template};
use super::stream_client::{
    LOGOUT, Member, RawStream, arguments, limit, options, tcp, unix, venue,
};
use super::venue::{Part, Venue};
use std::fs;
use std::io::Write;
use std::path::Path;
use touchline_core::limits::SESSIONS_PER_KEY_MAX;
use touchline_protocol::client::{CallError, Client, ClientOptions, ConnectError, Endpoint};
use touchline_protocol::message::Message;
use touchline_protocol::message::command::{NewOrder, ORDER_VALIDATE_ONLY};
use touchline_protocol::message::enums::{RejectReason, Role, Side};
use touchline_protocol::message::event::{OrderResult, OrderValid, Rejected};
use touchline_protocol::message::handshake::RefusalReason;
use touchline_protocol::units::{KeyId, Position};

/// Why the core does not let a session in.
pub(crate) fn rejected(wishes: &ClientOptions) -> Option<RejectReason> {
    match Member::open(wishes).err() {
        Some(ConnectError::Refused { reason: Some(RefusalReason::Rejected), reject }) => reject,
        None => None,
        Some(error) => panic!("{error}"),
    }
}

#[test]
fn a_key_has_so_many_names_as_the_documents_say_and_the_next_one_is_refused() {
    let venue = venue(&[]);
    let (a, b) = (venue.key_a(), venue.key_b());
    let named = |name: u32| options(unix(&venue), &format!("name-{name}"), (KEY_A, &a));
    for name in 0..SESSIONS_PER_KEY_MAX {
        Member::open(&named(name)).expect("it has place for the name");
    }
    let one_more = named(SESSIONS_PER_KEY_MAX);
    assert_eq!(rejected(&one_more), Some(RejectReason::CapacityReached));
    let told = format!("its key has had {SESSIONS_PER_KEY_MAX} names");
    venue.supervisor().wait_for(0, "which limit it is", |line| line.contains(&told));
    Member::open(&named(0)).expect("a name that is there comes back").assert_alive();
    let other = options(unix(&venue), "name-of-its-own", (KEY_B, &b));
    Member::open(&other).expect("another key has names of its own").assert_alive();
    for document in ["protocol/README.md", "protocol/FORMATS.md"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(document);
        let text = fs::read_to_string(path).expect("it is part of the source");
        let words: Vec<&str> = text.split_whitespace().collect();
        let most = format!("{SESSIONS_PER_KEY_MAX} names");
        assert!(words.join(" ").contains(&most), "{document}");
    }
}

#[test]
fn a_command_names_the_sessions_own_key() {
    let venue = venue(&[]);
    let a = (KEY_A, &venue.key_a());
    let mut member = Member::connect(unix(&venue), "own", a);
    let mut order = limit(Side::Buy, 10, 1);
    order.command.key_id = KeyId(KEY_B);
    let answer = member.client.call(&mut order, WATCHDOG).err();
    let is_refused =
        matches!(answer, Some(CallError::Rejected { reason: RejectReason::RoleNotPermitted, .. }));
    assert!(is_refused, "{answer:?}");
    // The library fills in what is left out.
    order.command.key_id = KeyId(0);
    let answer = member.client.call(&mut order, WATCHDOG);
    assert!(answer.is_ok(), "{answer:?}");
    // The engine does not.
    let mut raw = RawStream::open(&tcp(&venue), a, "raw", (0, usize::MAX));
    let mut order = raw.command(NewOrder::TEMPLATE, &bytemuck::bytes_of(&order)[48..]);
    order[32..40].fill(0);
    raw.socket.write_all(&order).expect("the gateway reads");
    let answer = raw.read().expect("an answer");
    let rejected = (template(&answer), number(&answer, 48, 2));
    let reason = RejectReason::RoleNotPermitted.to_wire();
    assert_eq!(rejected, (Rejected::TEMPLATE, reason.into()), "{answer:?}");
    member.assert_alive();
}

#[test]
fn a_name_keeps_the_role_of_its_first_logon() {
    let venue = venue(&[]);
    let a = venue.key_a();
    let mut wishes = options(unix(&venue), "trader", (KEY_A, &a));
    drop(Member::open(&wishes).expect("an honest client is let in"));
    wishes.role = Role::ReadOnly;
    assert_eq!(rejected(&wishes), Some(RejectReason::RoleNotPermitted));
}

#[test]
fn a_client_leaves_the_engine_of_another_log_over_any_carrier() {
    let venue = venue(&[]);
    let a = venue.key_a();
    let rings = Endpoint::SharedMemory(venue.data().join("engine.sock"));
    for (at, endpoint) in [rings, unix(&venue), tcp(&venue)].into_iter().enumerate() {
        let own = options(endpoint, &format!("client-{at}"), (KEY_A, &a));
        let log_id = Client::connect(&own).expect("it is let in").welcome().log_id;
        let of = |log_id| ClientOptions { log_id: Some(log_id), ..own.clone() };
        assert!(Client::connect(&of(log_id)).is_ok());
        let other = log_id.map(|byte| !byte);
        match Client::connect(&of(other)).err() {
            Some(ConnectError::OtherLog { found, expected }) => {
                assert_eq!((found, expected), (log_id, other));
            }
            outcome => panic!("{outcome:?}"),
        }
    }
}

#[test]
fn what_was_seen_last_is_named_with_the_engine_that_told_it() {
    let mut venue = Venue::separate(&arguments(&[]));
    let a = venue.key_a();
    let mut wishes = options(unix(&venue), "told", (KEY_A, &a));
    let mut member = Member::open(&wishes).expect("it is let in");
    let first = member.client.welcome().incarnation;
    let seen = member.call(limit(Side::Buy, 10, 1)).expect("it is good").envelope.position;
    // What ends where the next engine begins would be either's.
    member.call(limit(Side::Buy, 11, 1)).expect("it is good");
    venue.kill9(Part::Engine);
    venue.start_engine();
    let welcome = *Member::open(&wishes).expect("a killed engine loses nothing").client.welcome();
    assert!(welcome.incarnation > first && welcome.position > seen);
    for together in [(first, seen), (welcome.incarnation, welcome.position)] {
        wishes.last_seen = Some(together);
        Member::open(&wishes).expect("the log has it").assert_alive();
    }
    // As who takes the position of what was replayed for the present engine's.
    wishes.last_seen = Some((welcome.incarnation, seen));
    match Member::open(&wishes).err() {
        Some(ConnectError::HistoryLost { position }) => assert_eq!(position, Position(0)),
        outcome => panic!("{outcome:?}"),
    }
}

#[test]
fn what_is_only_checked_and_a_logout_of_another_epoch_leave_a_session_as_it_is() {
    let venue = venue(&[]);
    let a = (KEY_A, &venue.key_a());
    let mut raw = RawStream::open(&tcp(&venue), a, "raw", (0, usize::MAX));
    let answer_to = |raw: &mut RawStream, bytes: &[u8]| {
        raw.socket.write_all(bytes).expect("the gateway reads");
        loop {
            let answer = raw.read().expect("the session lives");
            // Flags of the envelope: terminal.
            if answer[44] & 1 != 0 {
                return (template(&answer), number(&answer, 48, 2));
            }
        }
    };
    let mut logout = raw.command(LOGOUT, &[]);
    logout[44] = logout[44].wrapping_add(1);
    let stale = u64::from(RejectReason::StaleEpoch.to_wire());
    assert_eq!(answer_to(&mut raw, &logout), (Rejected::TEMPLATE, stale));
    let order = limit(Side::Buy, 10, 1);
    let checked = NewOrder { flags: ORDER_VALIDATE_ONLY, ..order };
    let [mut checked, order] =
        [checked, order].map(|it| raw.command(NewOrder::TEMPLATE, &bytemuck::bytes_of(&it)[48..]));
    // All under one sequence: what is only checked uses up none.
    checked[16..24].copy_from_slice(&order[16..24]);
    for _ in 0..2 {
        assert_eq!(answer_to(&mut raw, &checked).0, OrderValid::TEMPLATE);
    }
    assert_eq!(answer_to(&mut raw, &order).0, OrderResult::TEMPLATE);
    let duplicate = u64::from(RejectReason::DuplicateSequence.to_wire());
    for again in [&order, &checked] {
        assert_eq!(answer_to(&mut raw, again), (Rejected::TEMPLATE, duplicate));
    }
}
