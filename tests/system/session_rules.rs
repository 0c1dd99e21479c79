//! What FORMATS.md says of a key's sessions: how many names it has, what stays with a name, whose key a command
//! names.

use super::binary::{KEY_A, KEY_B};
use super::process::WATCHDOG;
use super::raw_session::{number, template};
use super::stream_client::{Member, RawStream, limit, options, tcp, unix, venue};
use std::fs;
use std::io::Write;
use std::path::Path;
use touchline_core::limits::SESSIONS_PER_KEY_MAX;
use touchline_protocol::client::{CallError, Client, ClientOptions, ConnectError, Endpoint};
use touchline_protocol::message::Message;
use touchline_protocol::message::command::NewOrder;
use touchline_protocol::message::enums::{RejectReason, Role, Side};
use touchline_protocol::message::event::Rejected;
use touchline_protocol::message::handshake::RefusalReason;
use touchline_protocol::units::KeyId;

/// Why the core does not let a session in.
fn rejected(wishes: &ClientOptions) -> Option<RejectReason> {
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
    for document in ["README.md", "protocol/FORMATS.md"] {
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
