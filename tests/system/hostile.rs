//! Clients of the binary protocol that lie, garble or break off: each hurts only itself.

use super::binary::{KEY_A, KEY_B, assert_alive, connect, limit, options, place, socket, whole};
use super::json::Json;
use super::process::eventually;
use super::raw_session::{
    CHALLENGE, Hello, REFUSED, REJECTED, RawSession, dial, is_closed, limit_body, message, number,
    proof, read_message, template,
};
use super::trader::Balances;
use super::venue::{UNLIMITED, Venue};
use crate::skipped::skipped;
use std::io::{ErrorKind, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use touchline_protocol::client::Client;
use touchline_protocol::message::enums::{RejectReason, Side};
use touchline_protocol::shm::descriptors::{PassError, send_with_descriptors};

#[test]
fn garbage_on_the_socket_ends_that_connection_only() {
    let venue = Venue::up(&[]);
    let mut honest = connect(&venue, "honest", KEY_B, &venue.key_b());
    let hello = Hello::trader(KEY_A, "liar").bytes();
    let garbage = [
        (0..512_u32).map(|n| (n * 37 % 253) as u8).collect(),
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
        vec![0xff; 65_536],
        vec![0; 4096],
        message(999, &[0; 88]),
        message(1, &[0; 136]),
        message(302, &[0; 32]),
        message(300, &[0; 8]),
    ];
    for bytes in garbage {
        let mut stream = dial(&socket(&venue));
        // The engine may close before it has read everything.
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(Shutdown::Write);
        if let Some(answer) = read_message(&mut stream) {
            assert_eq!(template(&answer), REFUSED, "answer to {:?}", &bytes[..24.min(bytes.len())]);
        }
        assert!(is_closed(&mut stream));
        assert_alive(&mut honest);
    }
    for end in [0, 5, 8, 40, 95] {
        let mut stream = dial(&socket(&venue));
        stream.write_all(&hello[..end]).expect("the engine reads");
    }
    let silent: Vec<_> = (0..100).map(|_| dial(&socket(&venue))).collect();
    let late = options(&venue, "late", Some((KEY_A, &venue.key_a())));
    assert!(
        eventually(|| Client::connect(&late).is_ok()),
        "connections that never say a word keep others out for good"
    );
    drop(silent);
    assert_alive(&mut honest);
}

#[test]
fn a_hello_that_cannot_be_meant_is_refused_even_with_a_good_proof() {
    let venue = Venue::up(&[]);
    let key = venue.key_a();
    let changes: [(&str, usize, u8); 10] = [
        ("schema", 4, 0),
        ("role zero", 12, 0),
        ("role nine", 12, 9),
        ("lane zero", 13, 0),
        ("unknown carrier", 15, 9),
        ("reserved byte", 71, 1),
        ("no name", 24, 0),
        ("name beyond its end", 24, 200),
        ("slots that are no power of two", 56, 3),
        ("slots beyond any ring", 63, 0x7f),
    ];
    for (what, at, byte) in changes {
        let mut hello = Hello::trader(KEY_A, "liar").bytes();
        hello[at] = byte;
        let mut stream = dial(&socket(&venue));
        stream.write_all(&hello).expect("the engine reads the hello");
        let mut answer = read_message(&mut stream);
        if let Some(challenge) = answer.take_if(|answer| template(answer) == CHALLENGE) {
            let proof = proof(&key, &challenge[8..40], &hello);
            stream.write_all(&message(302, &proof)).expect("the engine reads the proof");
            answer = read_message(&mut stream);
        }
        if let Some(answer) = answer {
            assert_eq!(template(&answer), REFUSED, "{what}");
        }
        assert!(is_closed(&mut stream), "{what}");
    }
    assert_alive(&mut connect(&venue, "honest", KEY_A, &key));
}

/// True of the kernels that can be told to let no descriptor through.
fn kernel_keeps_descriptors_out() -> bool {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map(str::parse::<u32>);
    let mut next = || numbers.next().and_then(Result::ok).expect("a version");
    (next(), next()) >= (6, 16)
}

/// Whoever closes the last descriptor of a socket waits for its peer as long as its owner wishes.
#[test]
fn no_descriptor_is_passed_to_the_engine() {
    if !kernel_keeps_descriptors_out() {
        return skipped("kernel that keeps descriptors out");
    }
    let venue = Venue::up(&[]);
    let mut honest = connect(&venue, "honest", KEY_B, &venue.key_b());
    let pass = |stream: &UnixStream, bytes: &[u8]| {
        send_with_descriptors(stream, bytes, &[stream.as_fd()]).expect_err("it comes through")
    };
    let is_forbidden = |error: PassError| matches!(error, PassError::System(error) if error.kind() == ErrorKind::PermissionDenied);
    let hello = Hello::trader(KEY_A, "passes").bytes();
    let mut stream = dial(&socket(&venue));
    assert!(is_forbidden(pass(&stream, &hello)), "at the door");
    // Nothing of it has come, so it may still say this much.
    stream.write_all(&hello).expect("the engine reads the hello");
    let challenge = read_message(&mut stream).expect("a challenge");
    assert_eq!(template(&challenge), CHALLENGE);
    let session = RawSession::open(&socket(&venue), KEY_A, &venue.key_a(), "in");
    assert!(is_forbidden(pass(session.socket(), &[0])), "of a session");
    assert_alive(&mut honest);
}

/// What strangers' records must not change.
fn state(venue: &Venue) -> (Balances, Balances, Json) {
    let depth = venue.http().get("/api/v3/depth?symbol=BTCUSDT").ok();
    let sides = Json::List(vec![depth.at("bids").clone(), depth.at("asks").clone()]);
    (venue.a().balances(), venue.b().balances(), sides)
}

#[test]
fn a_broken_ring_ends_its_connection_and_nobody_elses() {
    let venue = Venue::up(&UNLIMITED);
    let mut honest = connect(&venue, "honest", KEY_B, &venue.key_b());
    venue.b().limit("BTCUSDT", "SELL", "1", "90000");
    let before = state(&venue);
    let header = |length: u16| [length.to_le_bytes(), 1_u16.to_le_bytes()].concat();
    type Break = fn(&mut RawSession, &[u8]);
    let first_slot: Break = |session, bytes| session.push(bytes, 1);
    let breaks: [(&str, Break, Vec<u8>); 8] = [
        ("noise", |session, bytes| session.push(bytes, 4), vec![0xa5; 256]),
        ("length off eight", first_slot, header(57)),
        ("length of 64 KiB", first_slot, header(u16::MAX - 7)),
        ("length above the largest message", |ring, bytes| ring.push(bytes, 65), header(4096)),
        ("fewer slots than stated", first_slot, header(136)),
        ("tail beyond the ring", |session, _| session.set_tail(1025), Vec::new()),
        ("tail far away", |session, _| session.set_tail(u64::MAX / 2), Vec::new()),
        ("tail backwards", |session, _| session.set_tail(u64::MAX), Vec::new()),
    ];
    let open = |name: &str| RawSession::open(&socket(&venue), KEY_A, &venue.key_a(), name);
    for (index, (what, break_it, bytes)) in breaks.into_iter().enumerate() {
        let mut vandal = open(&format!("vandal-{index}"));
        break_it(&mut vandal, &bytes);
        assert_alive(&mut honest);
        assert!(vandal.ends(), "{what} does not end the connection");
        assert_eq!(state(&venue), before, "{what}");
    }
    let mut vandal = open("claims-to-have-read");
    vandal.set_head(1_000_000);
    let order = vandal.command(1, &limit_body(2, whole(50_000), whole(1)));
    vandal.push_message(&order);
    assert_alive(&mut honest);
    assert_alive(&mut connect(&venue, "vandal-0", KEY_A, &venue.key_a()));
}

/// It sends nothing that would have its rings looked at, and is told of what others do.
#[test]
fn a_quiet_session_that_breaks_its_reply_ring_is_ended() {
    let venue = Venue::up(&UNLIMITED);
    let mut honest = connect(&venue, "honest", KEY_B, &venue.key_b());
    let mut quiet = RawSession::open(&socket(&venue), KEY_A, &venue.key_a(), "quiet");
    let order = quiet.command(1, &limit_body(2, whole(50_000), whole(1)));
    quiet.push_message(&order);
    quiet.next_reply().expect("it is accepted");
    quiet.set_head(1_000_000);
    // More fills, of three slots each, than there are slots.
    for _ in 0..400 {
        place(&mut honest, limit(Side::Buy, whole(50_000), whole(1) / 1000));
    }
    assert!(quiet.ends(), "it stays, and is told nothing any more");
    assert_alive(&mut honest);
}

/// Changes bytes of a well-made command.
fn patched(mut bytes: Vec<u8>, at: usize, patch: &[u8]) -> Vec<u8> {
    bytes[at..at + patch.len()].copy_from_slice(patch);
    bytes
}

/// A command that must be rejected, and the reasons that fit (empty: any).
type Hostile = (&'static str, Vec<u8>, Vec<RejectReason>);

/// Well-framed messages that an honest client never sends, made for `session`.
fn hostile(session: &mut RawSession, victim: (u32, u32)) -> Vec<Hostile> {
    let mut order = |price: i64, quantity: i64| session.command(1, &limit_body(2, price, quantity));
    let good = (whole(50_000), whole(1));
    let mut make = || order(good.0, good.1);
    let (victim_session, victim_epoch) = (victim.0.to_le_bytes(), victim.1.to_le_bytes());
    let spoofed = patched(patched(make(), 40, &victim_session), 44, &victim_epoch);
    let mut list: Vec<Hostile> = vec![
        ("another schema", patched(make(), 4, &[1, 1]), vec![]),
        ("schema version 0", patched(make(), 6, &[0, 0]), vec![]),
        ("schema version 99", patched(make(), 6, &[99, 0]), vec![]),
        ("unknown template", patched(make(), 2, &999_u16.to_le_bytes()), vec![]),
        ("template zero", patched(make(), 2, &[0, 0]), vec![]),
        ("another template's length", patched(make(), 2, &2_u16.to_le_bytes()), vec![]),
        ("reserved byte", patched(make(), 143, &[1]), vec![]),
        ("client id length", patched(make(), 96, &[37]), vec![]),
        ("client id with a line feed", patched(make(), 96, &[1, 0, 0, 0, b'\n']), vec![]),
        ("another's session", spoofed, vec![]),
        ("session zero", patched(make(), 40, &[0; 4]), vec![]),
        ("an old epoch", patched(make(), 44, &[0; 4]), vec![]),
        ("a coming epoch", patched(make(), 44, &[0xff; 4]), vec![]),
        (
            "no such symbol",
            patched(make(), 48, &77_u32.to_le_bytes()),
            vec![RejectReason::UnknownSymbol],
        ),
        ("side zero", patched(make(), 52, &[0]), vec![]),
        ("side three", patched(make(), 52, &[3]), vec![]),
        ("order type 200", patched(make(), 53, &[200]), vec![]),
        ("time in force 9", patched(make(), 54, &[9]), vec![]),
        ("unknown flags", patched(make(), 55, &[0xf0]), vec![]),
        ("quote quantity of a limit", patched(make(), 72, &[1]), vec![]),
        ("stop price of a limit", patched(make(), 80, &[1]), vec![]),
        ("iceberg", patched(make(), 88, &[1]), vec![]),
        ("self-trade mode", patched(make(), 136, &[9]), vec![]),
        (
            "decided too late",
            patched(make(), 24, &1_u64.to_le_bytes()),
            vec![RejectReason::TooLate],
        ),
    ];
    let extremes = [i64::MIN, -1, 0, 1, i64::MAX];
    list.extend(extremes.map(|price| ("extreme price", order(price, good.1), vec![])));
    list.extend(extremes.map(|quantity| ("extreme quantity", order(good.0, quantity), vec![])));
    list.push(("both extreme", order(i64::MAX, i64::MAX), vec![]));
    for (what, template, length) in [
        ("an engine's start", 80_u16, 8_usize),
        ("a logon", 81, 56),
        ("a connection's end", 82, 8),
        ("pending work", 83, 0),
        ("an event", 200, 24),
        ("a handshake message", 300, 48),
        ("new rules", 40, 8),
        ("new limits", 41, 56),
        ("a new account", 45, 56),
        ("a revoked key", 49, 8),
    ] {
        list.push((what, session.command(template, &vec![0; length]), vec![]));
    }
    let mut deposit = vec![0; 16];
    deposit[0] = 1;
    deposit[8..].copy_from_slice(&whole(5).to_le_bytes());
    list.push(("a deposit", session.command(46, &deposit), vec![RejectReason::RoleNotPermitted]));
    list
}

#[test]
fn hostile_commands_are_rejected_and_change_nothing() {
    let venue = Venue::up(&UNLIMITED);
    let victim = RawSession::open(&socket(&venue), KEY_B, &venue.key_b(), "victim").identity();
    let mut honest = connect(&venue, "honest", KEY_B, &venue.key_b());
    venue.b().limit("BTCUSDT", "SELL", "1", "90000");
    let before = state(&venue);
    let mut liar = RawSession::open(&socket(&venue), KEY_A, &venue.key_a(), "liar");
    let count = hostile(&mut liar, victim).len();
    for index in 0..count {
        let (what, bytes, reasons) = hostile(&mut liar, victim).swap_remove(index);
        liar.push_message(&bytes);
        assert_alive(&mut honest);
        match liar.next_reply() {
            None => {
                // Ending the connection is an answer too; the next record needs another one.
                assert!(reasons.is_empty(), "{what} is a matter of a reply, not of the connection");
                let name = format!("liar-{index}");
                liar = RawSession::open(&socket(&venue), KEY_A, &venue.key_a(), &name);
            }
            Some(reply) => {
                assert_eq!(template(&reply), REJECTED, "{what} is answered with {reply:?}");
                let reason = RejectReason::from_wire(number(&reply, 48, 2) as u16);
                let reason = reason.unwrap_or_else(|| panic!("{what}: {reply:?}"));
                assert!(reasons.is_empty() || reasons.contains(&reason), "{what}: {reason:?}");
            }
        }
        assert_eq!(state(&venue), before, "{what}");
    }
}

#[test]
fn a_resent_command_is_a_duplicate() {
    let venue = Venue::up(&[]);
    let mut honest = connect(&venue, "honest", KEY_B, &venue.key_b());
    let mut raw = RawSession::open(&socket(&venue), KEY_A, &venue.key_a(), "resender");
    let order = raw.command(1, &limit_body(2, whole(50_000), whole(1)));
    raw.push_message(&order);
    assert_alive(&mut honest);
    let accepted = raw.next_reply().expect("the order is good");
    assert_eq!((template(&accepted), number(&accepted, 16, 8)), (200, raw.last_sequence()));
    let result = raw.next_reply().expect("the order is good");
    assert_eq!(template(&result), 202);
    assert_alive(&mut honest);
    let once = state(&venue);
    for _ in 0..2 {
        raw.push_message(&order);
        assert_alive(&mut honest);
        let reply = raw.next_reply().expect("a duplicate is rejected, not punished");
        assert_eq!(template(&reply), REJECTED);
        let reason = RejectReason::from_wire(number(&reply, 48, 2) as u16);
        assert_eq!(reason, Some(RejectReason::DuplicateSequence));
        assert_eq!(state(&venue), once);
    }
    drop(raw);
    let mut again = RawSession::open(&socket(&venue), KEY_A, &venue.key_a(), "resender");
    let (session, epoch) = again.identity();
    let resent = patched(patched(order, 40, &session.to_le_bytes()), 44, &epoch.to_le_bytes());
    again.push_message(&resent);
    assert_alive(&mut honest);
    let reply = again.next_reply().expect("a duplicate is rejected, not punished");
    assert_eq!(number(&reply, 48, 2) as u16, RejectReason::DuplicateSequence.to_wire());
    assert_eq!(state(&venue), once, "sequences are remembered across connections");
}

#[test]
fn what_a_client_may_only_read_it_cannot_write() {
    let venue = Venue::up(&[]);
    let raw = RawSession::open(&socket(&venue), KEY_A, &venue.key_a(), "writer");
    for (what, pages) in
        [("engine's pages", &raw.engine_pages), ("control page", &raw.control_page)]
    {
        assert!(pages.write_at(&[0xff; 64], 0).is_err(), "the {what} can be written");
    }
    assert_alive(&mut connect(&venue, "honest", KEY_B, &venue.key_b()));
}
