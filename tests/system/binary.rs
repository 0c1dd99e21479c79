//! The binary protocol from outside: honest clients trade, dishonest ones hurt only themselves.

use super::http::Key;
use super::json::Json;
use super::process::WATCHDOG;
use super::raw_session::{
    CHALLENGE, Hello, REFUSED, REFUSED_NOT_AUTHENTICATED, REFUSED_VERSION, REJECTED, RawSession,
    dial, is_closed, limit_body, message, number, proof, read_message, template,
};
use super::trader::Balances;
use super::units::WHOLE;
use super::venue::{UNLIMITED, Venue};
use std::io::Write;
use std::net::Shutdown;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Instant;
use touchline_protocol::client::{
    Acknowledgement, CallError, Client, ClientCommand, ClientOptions, ConnectError, Reply,
};
use touchline_protocol::message::command::{CancelOrder, Deposit, NewOrder, ReduceOrder};
use touchline_protocol::message::decode::Event;
use touchline_protocol::message::enums::{
    Lane, OrderStatus, OrderType, RejectReason, Role, Side, TimeInForce,
};
use touchline_protocol::message::event::{ENVELOPE_TERMINAL, OrderResult, Trade};
use touchline_protocol::message::handshake::RefusalReason;
use touchline_protocol::text::Name;
use touchline_protocol::units::{AccountId, AssetId, KeyId, OrderId, SymbolId};

/// The demo keys of the accounts A and B.
const KEY_A: u64 = 1;
const KEY_B: u64 = 2;

fn socket(venue: &Venue) -> PathBuf {
    venue.data().join("engine.sock")
}

fn options(venue: &Venue, name: &str, key: Option<(u64, &Key)>) -> ClientOptions {
    let name = Name::new(name).expect("a short name");
    let mut options = ClientOptions::new(socket(venue), Role::Trader, Lane::Hot, name);
    options.key = key.map(|(id, key)| (KeyId(id), key.secret.clone()));
    options.handshake_timeout = WATCHDOG;
    // REST shows what is on disk: with this level it shows whatever the client knows to be done.
    options.acknowledgement = Acknowledgement::Durable;
    options
}

/// An honest client: a session and the key that it acts with.
struct Member {
    client: Client,
    key: KeyId,
}

impl Member {
    /// Sends a command with the session's own key and waits for its terminal reply.
    fn call<C: ClientCommand>(&mut self, command: &mut C) -> Result<Reply, CallError> {
        command.command_mut().key_id = self.key;
        self.client.call(command, WATCHDOG)
    }
}

fn connect(venue: &Venue, name: &str, id: u64, key: &Key) -> Member {
    let client = Client::connect(&options(venue, name, Some((id, key))));
    Member { client: client.expect("an honest client is let in"), key: KeyId(id) }
}

fn whole(units: i64) -> i64 {
    units * 100_000_000
}

fn limit(side: Side, price: i64, quantity: i64) -> NewOrder {
    NewOrder {
        symbol: SymbolId(0),
        side: side.to_wire(),
        order_type: OrderType::Limit.to_wire(),
        time_in_force: TimeInForce::Gtc.to_wire(),
        price,
        quantity,
        ..Default::default()
    }
}

/// Places an order; its result and the trades before it.
fn place(member: &mut Member, mut order: NewOrder) -> (OrderResult, Vec<Trade>) {
    let begin = Instant::now();
    order.command.key_id = member.key;
    let client = &mut member.client;
    let sequence = client.sender().send(&mut order).expect("the ring has room");
    let mut trades = Vec::new();
    loop {
        while let Some(reply) = client.receiver().poll().expect("the connection lives") {
            if reply.envelope.sequence != sequence {
                continue;
            }
            let terminal = reply.envelope.flags & ENVELOPE_TERMINAL != 0;
            match reply.event.event().expect("a known event") {
                Event::Trade(trade) => trades.push(*trade),
                Event::OrderResult(result) if terminal => return (*result, trades),
                Event::Rejected(rejected) => panic!("rejected: {rejected:?}"),
                _ => {}
            }
        }
        assert!(begin.elapsed() < WATCHDOG, "no reply to {order:?}");
        client.receiver().wait(WATCHDOG);
    }
}

#[test]
fn binary_and_rest_clients_meet_in_one_book() {
    let venue = Venue::up(&[]);
    let (mut a, mut b) = (venue.a(), venue.b());
    let (a_before, b_before) = (a.balances(), b.balances());
    let mut binary = connect(&venue, "maker", KEY_A, &venue.key_a());
    let (resting, trades) = place(&mut binary, limit(Side::Sell, whole(30_000), whole(1)));
    assert_eq!((resting.status, trades.len()), (OrderStatus::New.to_wire(), 0));
    assert_eq!(resting.account, AccountId(1));
    let taken = b.limit("BTCUSDT", "BUY", "0.25", "30000");
    assert_eq!(taken.text_at("status"), "FILLED");
    let id = i128::from(resting.order_id.0);
    assert_eq!(a.order("BTCUSDT", id).text_at("executedQty"), "0.25000000");
    let mut cancel =
        CancelOrder { symbol: SymbolId(0), order_id: resting.order_id, ..Default::default() };
    let reply = binary.call(&mut cancel).expect("an open order can be cancelled");
    assert!(matches!(reply.event.event(), Ok(Event::OrderCanceled(report))
        if report.status == OrderStatus::Canceled.to_wire()
            && report.executed_quantity == whole(1) / 4));
    assert_eq!(a.order("BTCUSDT", id).text_at("status"), "CANCELED");
    let quote = 7_500 * WHOLE;
    let expected = (a_before["USDT"].0 + quote - quote / 1000, 0);
    assert_eq!(a.balances()["USDT"], expected);
    let base = WHOLE / 4;
    assert_eq!(b.balances()["BTC"], (b_before["BTC"].0 + base - base / 1000, 0));
}

#[test]
fn a_reduced_order_keeps_its_place_in_the_queue() {
    let venue = Venue::up(&[]);
    let mut a = connect(&venue, "first", KEY_A, &venue.key_a());
    let mut b = connect(&venue, "second", KEY_B, &venue.key_b());
    let (first, _) = place(&mut a, limit(Side::Sell, whole(30_000), whole(3)));
    let (second, _) = place(&mut b, limit(Side::Sell, whole(30_000), whole(1)));
    let reduce = |order_id: OrderId, new_quantity: i64| ReduceOrder {
        symbol: SymbolId(0),
        order_id,
        new_quantity,
        ..Default::default()
    };
    let reply = a.call(&mut reduce(first.order_id, whole(1))).expect("it is smaller");
    assert!(matches!(reply.event.event(), Ok(Event::OrderReduced(reduced))
        if reduced.quantity == whole(1) && reduced.released == whole(2)));
    assert_eq!(venue.a().balances()["BTC"], (999 * WHOLE, WHOLE), "what was taken off is free");

    for (quantity, reason) in
        [(whole(1), RejectReason::NotReduced), (whole(2), RejectReason::NotReduced)]
    {
        let refused = a.call(&mut reduce(first.order_id, quantity));
        assert!(
            matches!(&refused, Err(CallError::Rejected { reason: found, .. }) if *found == reason)
        );
    }
    let refused = b.call(&mut reduce(first.order_id, whole(1) / 2));
    assert!(refused.is_err(), "an order of another account");

    let (taken, trades) = place(&mut b, limit(Side::Buy, whole(30_000), whole(3) / 2));
    assert_eq!(taken.executed_quantity, whole(3) / 2);
    let met: Vec<_> = trades.iter().map(|trade| (trade.maker_order_id, trade.quantity)).collect();
    assert_eq!(met, [(first.order_id, whole(1)), (second.order_id, whole(1) / 2)]);
    let refused = b.call(&mut reduce(second.order_id, whole(1) / 4));
    assert!(matches!(
        refused,
        Err(CallError::Rejected { reason: RejectReason::QuantityBelowExecuted, .. })
    ));
}

#[test]
fn who_cannot_prove_its_key_is_refused() {
    let venue = Venue::up(&[]);
    let (a, b) = (venue.key_a(), venue.key_b());
    let wrong = Key { api: a.api.clone(), secret: "x".repeat(64) };
    for (what, id, key) in
        [("wrong secret", KEY_A, &wrong), ("another's secret", KEY_A, &b), ("no such key", 999, &a)]
    {
        let refused = Client::connect(&options(&venue, "stranger", Some((id, key))));
        assert!(
            matches!(
                refused,
                Err(ConnectError::Refused { reason: Some(RefusalReason::NotAuthenticated), .. })
            ),
            "{what}"
        );
    }
    let without_key = Client::connect(&options(&venue, "stranger", None));
    assert!(without_key.is_err(), "a trader without a key");

    let mut stream = dial(&socket(&venue));
    let hello = Hello::trader(KEY_A, "replayer").bytes();
    stream.write_all(&hello).expect("the engine reads");
    let challenge = read_message(&mut stream).expect("a challenge");
    let stale = proof(&a, &[0; 32], &hello);
    assert_ne!(challenge[8..40], [0; 32]);
    stream.write_all(&message(302, &stale)).expect("the engine reads");
    let refused = read_message(&mut stream).expect("a refusal");
    assert_eq!(template(&refused), REFUSED);
    assert_eq!(number(&refused, 8, 2) as u16, REFUSED_NOT_AUTHENTICATED);
    assert!(is_closed(&mut stream));
    connect(&venue, "honest", KEY_A, &a);
}

#[test]
fn another_protocol_version_is_refused_with_ours() {
    let venue = Venue::up(&[]);
    for major in [0, 2, u16::MAX] {
        let mut stream = dial(&socket(&venue));
        let hello = Hello { major, ..Hello::trader(KEY_A, "old") };
        stream.write_all(&hello.bytes()).expect("the engine reads");
        let refused = read_message(&mut stream).expect("a refusal, not just an end");
        assert_eq!(template(&refused), REFUSED);
        assert_eq!(number(&refused, 8, 2) as u16, REFUSED_VERSION);
        assert_eq!(number(&refused, 10, 2), 1, "the engine says what it speaks");
        assert!(is_closed(&mut stream));
    }
}

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
    assert_alive(&mut connect(&venue, "late", KEY_A, &venue.key_a()));
    drop(silent);
    assert_alive(&mut honest);
}

#[test]
fn a_hello_that_cannot_be_meant_is_refused_even_with_a_good_proof() {
    let venue = Venue::up(&[]);
    let key = venue.key_a();
    let changes: [(&str, usize, u8); 9] = [
        ("schema", 4, 0),
        ("role zero", 12, 0),
        ("role nine", 12, 9),
        ("lane zero", 13, 0),
        ("reserved byte", 15, 1),
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

/// Places and cancels an order: the engine serves this client. It also wakes an engine that sleeps,
/// so that it looks at every ring.
fn assert_alive(member: &mut Member) {
    let (placed, _) = place(member, limit(Side::Buy, whole(10), whole(1)));
    let mut cancel =
        CancelOrder { symbol: SymbolId(0), order_id: placed.order_id, ..Default::default() };
    member.call(&mut cancel).expect("the order is open");
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
    type Break = fn(&mut RawSession, Vec<u8>);
    let order =
        |session: &mut RawSession| session.command(1, &limit_body(2, whole(50_000), whole(1)));
    let breaks: [(&str, Break, Vec<u8>); 9] = [
        ("noise", |session, _| session.push(&[0xa5; 256], 4), Vec::new()),
        ("length off eight", |session, bytes| session.push(&bytes, 1), header(57)),
        ("length of 64 KiB", |session, bytes| session.push(&bytes, 1), header(u16::MAX - 7)),
        (
            "length above the largest message",
            |session, bytes| session.push(&bytes, 65),
            header(4096),
        ),
        ("fewer slots than stated", |session, bytes| session.push(&bytes, 1), Vec::new()),
        ("tail beyond the ring", |session, _| session.set_tail(1025), Vec::new()),
        ("tail far away", |session, _| session.set_tail(u64::MAX / 2), Vec::new()),
        ("tail backwards", |session, _| session.set_tail(u64::MAX), Vec::new()),
        (
            "head beyond what was replied",
            |session, bytes| {
                session.set_head(1_000_000);
                session.push_message(&bytes);
            },
            Vec::new(),
        ),
    ];
    for (index, (what, break_it, bytes)) in breaks.into_iter().enumerate() {
        let name = format!("vandal-{index}");
        let mut vandal = RawSession::open(&socket(&venue), KEY_A, &venue.key_a(), &name);
        let sees_order = bytes.is_empty();
        let bytes = if sees_order { order(&mut vandal) } else { bytes };
        break_it(&mut vandal, bytes);
        assert_alive(&mut honest);
        vandal.wait_for_end();
        if what != "head beyond what was replied" {
            assert_eq!(state(&venue), before, "{what}");
        }
    }
    assert_alive(&mut connect(&venue, "vandal-0", KEY_A, &venue.key_a()));
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
fn a_trader_acts_for_its_own_account_only() {
    let venue = Venue::up(&[]);
    let before = (venue.b().balances(), venue.a().balances());
    let mut a = connect(&venue, "a", KEY_A, &venue.key_a());
    let (of_b, _) = place(
        &mut connect(&venue, "b", KEY_B, &venue.key_b()),
        limit(Side::Sell, whole(90_000), whole(1)),
    );
    let mut order = limit(Side::Sell, whole(80_000), whole(1));
    order.command.key_id = KeyId(KEY_B);
    // Rejected, or placed for the session's own account: never for the one it names.
    if let Ok(reply) = a.client.call(&mut order, WATCHDOG) {
        assert!(matches!(reply.event.event(), Ok(Event::OrderResult(result))
            if result.account == AccountId(1)));
    }
    let mut cancel =
        CancelOrder { symbol: SymbolId(0), order_id: of_b.order_id, ..Default::default() };
    let refused = a.call(&mut cancel);
    assert!(matches!(refused, Err(CallError::Rejected { reason: RejectReason::UnknownOrder, .. })));
    let mut deposit = Deposit {
        account: AccountId(1),
        asset: AssetId(0),
        amount: whole(1),
        ..Default::default()
    };
    let refused = a.call(&mut deposit);
    assert!(matches!(
        refused,
        Err(CallError::Rejected { reason: RejectReason::RoleNotPermitted, .. })
    ));
    assert_eq!(venue.b().balances()["BTC"], (before.0["BTC"].0 - WHOLE, WHOLE));
    let a_after = venue.a().balances()["BTC"];
    assert_eq!(a_after.0 + a_after.1, before.1["BTC"].0);
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
