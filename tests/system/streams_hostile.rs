//! Clients over TCP that no honest program is: each hurts only itself.

use super::binary::{KEY_A, KEY_B};
use super::process::eventually;
use super::raw_session::{REFUSED, is_closed, limit_body, message, number, read_message, template};
use super::stream_client::{LOGOUT, Member, RawStream, over_epoll, send, tcp, venue};
use super::units::WHOLE;
use crate::patience::{Wait, join};
use std::io::Write;
use touchline_protocol::message::command::SHORT_ORDER_BYTES;
use touchline_protocol::message::enums::{CloseReason, RejectReason};

fn whole() -> i64 {
    i64::try_from(WHOLE).expect("it is small")
}

#[test]
fn bytes_that_are_no_messages_end_their_connection_and_nobody_elses() {
    let venue = venue(&[]);
    let (a, b) = (venue.key_a(), venue.key_b());
    let endpoint = tcp(&venue);
    let mut honest = Member::connect(endpoint.clone(), "honest", (KEY_B, &b));
    let header = |length: u16, template: u16, schema: u16| {
        let words = [length, template, schema, 1];
        words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>()
    };
    let breaks: [(&str, Vec<u8>); 10] = [
        ("noise", vec![0xa5; 4096]),
        ("zeros", vec![0; 64]),
        ("length off eight", header(57, 1, 0x4c54)),
        ("longest length", header(u16::MAX, 1, 0x4c54)),
        ("length above the largest message", header(4096, 1, 0x4c54)),
        ("another schema", header(56, 1, 0x4c55)),
        ("a hello in a session", RawStream::hello(KEY_A, "again", 0)),
        ("a welcome", message(303, &[0; 72])),
        ("the engine's own notice", message(322, &[0; 8])),
        ("no such template", message(999, &[0; 64])),
    ];
    for (index, (what, bytes)) in breaks.into_iter().enumerate() {
        let name = format!("vandal-{index}");
        let mut vandal = RawStream::open(&endpoint, (KEY_A, &a), &name, (60, 4096));
        send(&mut vandal.socket, &bytes, bytes.len());
        assert_eq!(vandal.closed(), Some(CloseReason::Malformed.to_wire()), "{what}");
        honest.assert_alive();
    }
}

#[test]
fn well_framed_nonsense_is_answered_and_spoils_nothing() {
    let venue = venue(&[]);
    let (a, b) = (venue.key_a(), venue.key_b());
    let endpoint = tcp(&venue);
    let victim = RawStream::open(&endpoint, (KEY_B, &b), "victim", (60, 4096));
    let mut raw = RawStream::open(&endpoint, (KEY_A, &a), "liar", (60, 4096));
    let order = |raw: &mut RawStream| raw.command(1, &limit_body(2, 50_000 * whole(), whole()));
    let mut spoofed = order(&mut raw);
    spoofed[40..44].copy_from_slice(&victim.session.to_le_bytes());
    spoofed[44..48].copy_from_slice(&victim.epoch.to_le_bytes());
    let mut stale = order(&mut raw);
    stale[44..48].copy_from_slice(&(raw.epoch + 1).to_le_bytes());
    let mut engines = order(&mut raw);
    engines[40..44].fill(0);
    let mut other_key = order(&mut raw);
    other_key[32..40].copy_from_slice(&KEY_B.to_le_bytes());
    let mut reserved = order(&mut raw);
    reserved[140] = 1;
    let short = message(1, &[0; 16]);
    let mut version = order(&mut raw);
    version[6] = 9;
    let logon = raw.command(81, &[0; 56]);
    let cases = [
        ("another session's name", spoofed, RejectReason::StaleEpoch),
        ("another epoch", stale, RejectReason::StaleEpoch),
        ("the engine's name", engines, RejectReason::StaleEpoch),
        ("another's key", other_key, RejectReason::RoleNotPermitted),
        ("a reserved byte", reserved, RejectReason::Malformed),
        ("too short", short, RejectReason::Malformed),
        ("a later version", version, RejectReason::Malformed),
        ("an engine's command", logon, RejectReason::RoleNotPermitted),
    ];
    for (what, bytes, reason) in cases {
        send(&mut raw.socket, &bytes, bytes.len());
        let reply = raw.read().expect("an answer");
        assert_eq!(template(&reply), 240, "{what}");
        assert_eq!(number(&reply, 48, 2), u64::from(reason.to_wire()), "{what}");
    }
    let good = order(&mut raw);
    send(&mut raw.socket, &good, good.len());
    raw.read_answers(1);
    // The same without its end, which is zero.
    let mut short = order(&mut raw);
    short.truncate(SHORT_ORDER_BYTES);
    short[..2].copy_from_slice(&(SHORT_ORDER_BYTES as u16 - 8).to_le_bytes());
    send(&mut raw.socket, &short, short.len());
    raw.read_answers(1);
    // REST shows what is on disk, and the answers came before.
    assert!(eventually(|| venue.a().balances()["BTC"].1 == 2 * WHOLE), "the good orders rest");
    assert_eq!(venue.b().balances()["BTC"].1, 0, "nothing was done in another's name");
}

#[test]
fn a_client_that_floods_and_never_reads_is_given_up_alone() {
    let venue = venue(&["engine.reader_stall_seconds=1"]);
    let (a, b) = (venue.key_a(), venue.key_b());
    let endpoint = tcp(&venue);
    let mut honest = Member::connect(endpoint.clone(), "honest", (KEY_B, &b));
    let mut flooder = RawStream::open(&endpoint, (KEY_A, &a), "flooder", (60, 4096));
    let orders: Vec<u8> =
        (0..1000).flat_map(|_| flooder.command(1, &limit_body(1, 10 * whole(), 0))).collect();
    let mut socket = flooder.socket.try_clone().expect("a socket can be shared");
    // It ends when the engine closes the connection.
    let flood = std::thread::spawn(move || while socket.write_all(&orders).is_ok() {});
    for _ in 0..200 {
        honest.assert_alive();
    }
    assert!(eventually(|| flood.is_finished()), "who never reads is given up");
    flood.join().expect("it only writes");
    honest.assert_alive();
    Member::connect(endpoint, "flooder", (KEY_A, &a)).assert_alive();
}

#[test]
fn a_slow_reader_gets_every_answer() {
    let venue = venue(&["engine.reader_stall_seconds=60"]);
    let (a, b) = (venue.key_a(), venue.key_b());
    let endpoint = tcp(&venue);
    let mut honest = Member::connect(endpoint.clone(), "honest", (KEY_B, &b));
    let mut slow = RawStream::open(&endpoint, (KEY_A, &a), "slow", (60, 4096));
    let count = 40_000;
    let orders: Vec<u8> =
        (0..count).flat_map(|_| slow.command(1, &limit_body(1, 10 * whole(), 0))).collect();
    let mut socket = slow.socket.try_clone().expect("a socket can be shared");
    let sending = std::thread::spawn(move || socket.write_all(&orders));
    for _ in 0..100 {
        honest.assert_alive();
    }
    assert_eq!(slow.read_answers(count as usize), (1..=count).collect::<Vec<_>>());
    join(sending, "the sending").expect("all of it was taken");
}

#[test]
fn half_messages_and_ends_in_the_middle_leave_nothing() {
    let venue = venue(&[]);
    let (a, b) = (venue.key_a(), venue.key_b());
    let endpoint = tcp(&venue);
    let mut honest = Member::connect(endpoint.clone(), "honest", (KEY_B, &b));
    for cut in [1, 8, 47, 100, 143] {
        let mut raw = RawStream::open(&endpoint, (KEY_A, &a), "cut", (60, 4096));
        let order = raw.command(1, &limit_body(2, 50_000 * whole(), whole()));
        send(&mut raw.socket, &order[..cut], cut);
        drop(raw);
        honest.assert_alive();
    }
    let mut last = Member::connect(endpoint.clone(), "cut", (KEY_A, &a));
    assert_eq!(last.client.welcome().last_sequence.0, 0, "half an order is none");
    last.assert_alive();
    for bytes in [0, 5, 60, 95] {
        let mut socket = RawStream::dial(&endpoint);
        send(&mut socket, &RawStream::hello(KEY_A, "half", 0)[..bytes], 100);
        drop(socket);
    }
    let mut socket = RawStream::dial(&endpoint);
    send(
        &mut socket,
        &[0x47, 0x45, 0x54, 0x20, 0x2f, 0x20, 0x48, 0x54, 0x54, 0x50, 0x2f, 0x31],
        12,
    );
    assert_eq!(template(&read_message(&mut socket).expect("a refusal")), REFUSED);
    assert!(is_closed(&mut socket));
    let mut early = RawStream::dial(&endpoint);
    let both = [RawStream::hello(KEY_A, "early", 0), message(302, &[0; 32])].concat();
    send(&mut early, &both, both.len());
    let wait = Wait::begin();
    while read_message(&mut early).is_some() {
        wait.go_on("the engine talks on");
    }
    let mut gone = RawStream::open(&endpoint, (KEY_A, &a), "gone", (60, 4096));
    let logout = gone.command(LOGOUT, &[]);
    let more = gone.command(1, &limit_body(2, 50_000 * whole(), whole()));
    send(&mut gone.socket, &[logout, more].concat(), 4096);
    assert_eq!(gone.closed(), Some(CloseReason::LoggedOut.to_wire()));
    honest.assert_alive();
    assert_eq!(venue.a().balances()["BTC"].1, 0, "nothing of it rests");
}

over_epoll!(
    bytes_that_are_no_messages_end_their_connection_and_nobody_elses,
    well_framed_nonsense_is_answered_and_spoils_nothing,
    a_client_that_floods_and_never_reads_is_given_up_alone,
    a_slow_reader_gets_every_answer,
    half_messages_and_ends_in_the_middle_leave_nothing,
);
