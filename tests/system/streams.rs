//! Sessions over TCP and Unix sockets: they trade as those over shared memory do, in whatever pieces the
//! bytes come, and learn what they missed.

use super::binary::{KEY_A, KEY_B};
use super::http::Key;
use super::process::{WATCHDOG, eventually};
use super::raw_session::{limit_body, template};
use super::stream_client::{
    LOGOUT, Member, RawStream, address, arguments, limit, options, over_epoll, send, tcp, unix,
    until_full, venue,
};
use super::units::WHOLE;
use super::venue::{Part, Venue};
use crate::patience::{Wait, in_a_few_tries, join};
use std::time::{Duration, Instant};
use touchline_protocol::client::{
    Acknowledgement, Back, CallError, Client, ClientOptions, ConnectError, Endpoint, Notice,
    SteadyClient, Told,
};
use touchline_protocol::credentials::MasterKey;
use touchline_protocol::log::reader::{Follow, LogReader};
use touchline_protocol::message::Message;
use touchline_protocol::message::command::{
    CancelOrder, CreateKey, Deposit, KEY_BINARY, KEY_TRADE, LOGON_CANCEL_ON_DISCONNECT, NewOrder,
};
use touchline_protocol::message::decode::Event;
use touchline_protocol::message::enums::{
    CloseReason, Lane, OrderStatus, RejectReason, ReplayStatus, Role, Side, TimeInForce,
};
use touchline_protocol::message::handshake::RefusalReason;
use touchline_protocol::message::stream::{ReplayEnd, ReplayRequest};
use touchline_protocol::text::Name;
use touchline_protocol::units::{AccountId, AssetId, Incarnation, KeyId, Position, SymbolId};

fn whole() -> i64 {
    i64::try_from(WHOLE).expect("it is small")
}

#[test]
fn all_carriers_meet_in_one_book_and_makers_are_told() {
    let venue = venue(&[]);
    let (a, b) = (venue.key_a(), venue.key_b());
    let shared = Endpoint::SharedMemory(venue.data().join("engine.sock"));
    for acknowledgement in [Acknowledgement::Appended, Acknowledgement::Durable] {
        for (maker, taker) in [
            (tcp(&venue), unix(&venue)),
            (unix(&venue), shared.clone()),
            (shared.clone(), tcp(&venue)),
        ] {
            let name = format!("maker-{}", acknowledgement as u8);
            let mut wishes = options(maker.clone(), &name, (KEY_A, &a));
            wishes.acknowledgement = acknowledgement;
            let mut maker = Member::open(&wishes).expect("an honest client is let in");
            let mut taker = Member::connect(taker, "taker", (KEY_B, &b));
            let resting = maker.place(limit(Side::Sell, 30_000, 3));
            let taken = taker.place(limit(Side::Buy, 30_000, 2));
            assert_eq!(taken.status, OrderStatus::Filled.to_wire());
            let told = maker.wait_for(touchline_protocol::client::Reply::is_unsolicited);
            assert!(matches!(told.event.event(), Ok(Event::Trade(trade))
                if trade.maker_order_id == resting.order_id && trade.quantity == 2 * whole()
                    && trade.taker_account == AccountId::UNDISCLOSED));
            if acknowledgement == Acknowledgement::Durable {
                assert!(told.envelope.position <= maker.client.receiver().durable());
            }
            let order_id = resting.order_id;
            let cancel = CancelOrder { symbol: SymbolId(0), order_id, ..Default::default() };
            let reply = maker.call(cancel).expect("the rest is open");
            assert!(matches!(reply.event.event(), Ok(Event::OrderCanceled(_))));
        }
    }
}

#[test]
fn messages_may_come_in_any_pieces() {
    let venue = venue(&[]);
    let a = venue.key_a();
    for piece in [1, 3, 7, 100, 1000, 1 << 20] {
        let name = format!("pieces-{piece}");
        let mut raw = RawStream::open(&tcp(&venue), (KEY_A, &a), &name, (60, piece));
        let count = if piece == 1 { 20 } else { 2000 };
        let orders: Vec<u8> =
            (0..count).flat_map(|_| raw.command(1, &limit_body(1, 10 * whole(), 0))).collect();
        // Read at the same time: so many answers are more than the gateway keeps.
        let mut writer = raw.socket.try_clone().expect("a socket can be shared");
        let sending = std::thread::spawn(move || send(&mut writer, &orders, piece));
        let expected: Vec<u64> = (1..=count).collect();
        assert_eq!(raw.read_answers(count as usize), expected);
        join(sending, "the sending");
    }
}

/// Waits for longer than a silence may last; true if its connection lives.
fn lives_on(venue: &Venue) -> bool {
    let b = venue.key_b();
    let mut wishes = options(tcp(venue), "quiet", (KEY_B, &b));
    wishes.heartbeat_seconds = 1;
    let mut quiet = Member::open(&wishes).expect("an honest client is let in");
    let lives = (0..50).all(|_| {
        quiet.client.receiver().wait(Duration::from_millis(100));
        quiet.client.receiver().poll().is_ok_and(|told| {
            assert!(told.is_none(), "nothing is expected: {told:?}");
            true
        })
    });
    lives && quiet.call(limit(Side::Buy, 10, 1)).is_ok()
}

#[test]
fn who_is_silent_is_given_up_and_who_says_something_is_not() {
    let venue = venue(&[]);
    let a = venue.key_a();
    let mut dead = RawStream::open(&tcp(&venue), (KEY_A, &a), "dead", (1, 4096));
    assert_eq!(dead.closed(), Some(CloseReason::Silent.to_wire()));
    // On a machine that stands still for seconds, so does a client.
    assert!(in_a_few_tries(|| lives_on(&venue)), "who answers heartbeats is given up");
}

#[test]
fn a_logout_is_answered_behind_all_that_came_before_it() {
    let venue = venue(&[]);
    let a = venue.key_a();
    let mut raw = RawStream::open(&tcp(&venue), (KEY_A, &a), "leaving", (60, 4096));
    let count = 50;
    let mut bytes: Vec<u8> =
        (0..count).flat_map(|_| raw.command(1, &limit_body(1, 10 * whole(), whole()))).collect();
    let mut logout = raw.command(LOGOUT, &[]);
    bytes.append(&mut logout);
    send(&mut raw.socket, &bytes, bytes.len());
    assert_eq!(raw.read_answers(count), (1..=count as u64).collect::<Vec<_>>());
    assert_eq!(raw.closed(), Some(CloseReason::LoggedOut.to_wire()));
    let mut again = Member::connect(tcp(&venue), "leaving", (KEY_A, &a));
    assert_eq!(again.client.welcome().last_sequence.0, count as u64, "all of them are decided");
    again.assert_alive();

    let shared = Endpoint::SharedMemory(venue.data().join("engine.sock"));
    let mut member = Member::connect(shared, "leaving-memory", (KEY_A, &a));
    member.assert_alive();
    member.client.sender().log_out().expect("the ring has room");
    assert!(eventually(|| !member.client.receiver().is_connected()), "it logged out");
}

#[test]
fn a_newer_logon_ends_the_older_connection_and_takes_its_orders_away() {
    let venue = venue(&[]);
    let a = venue.key_a();
    let mut wishes = options(tcp(&venue), "twice", (KEY_A, &a));
    wishes.flags = LOGON_CANCEL_ON_DISCONNECT;
    let mut older = Member::open(&wishes).expect("an honest client is let in");
    let resting = older.place(limit(Side::Sell, 40_000, 1));
    let mut newer = Member::open(&wishes).expect("an honest client is let in");
    let (_, notices) = older.until(|notice| matches!(notice, Notice::Closed(_)));
    assert_eq!(notices, [Notice::Closed(Some(CloseReason::Replaced))]);
    assert_eq!(newer.client.welcome().epoch.0, older.client.welcome().epoch.0 + 1);
    let order_id = resting.order_id;
    let told = newer.wait_for(|reply| reply.is_unsolicited());
    assert!(matches!(told.event.event(), Ok(Event::OrderCanceled(canceled))
        if canceled.order_id == order_id));
    newer.place(limit(Side::Sell, 40_000, 1));
    drop(newer);
    let mut a = venue.a();
    assert!(eventually(|| a.balances()["BTC"].1 == 0), "a lost connection takes its orders along");
}

#[test]
fn a_session_asks_for_what_it_has_and_what_it_missed() {
    let venue = venue(&[]);
    let (a, b) = (venue.key_a(), venue.key_b());
    let mut maker = Member::connect(tcp(&venue), "maker", (KEY_A, &a));
    let first = maker.place(limit(Side::Sell, 30_000, 5));
    let seen = maker.call(limit(Side::Sell, 31_000, 1)).expect("it is good").envelope.position;
    let mut taker = Member::connect(unix(&venue), "taker", (KEY_B, &b));
    for _ in 0..3 {
        taker.place(limit(Side::Buy, 30_000, 1));
    }
    drop(maker);
    let mut maker = Member::connect(tcp(&venue), "maker", (KEY_A, &a));
    maker.client.sender().request_replay(77, seen).expect("it is connected");
    let (replies, notices) = maker.until(|notice| matches!(notice, Notice::Replayed(_)));
    let Some(Notice::Replayed(end)) = notices.last() else { panic!("{notices:?}") };
    assert_eq!((end.correlation, end.status), (77, ReplayStatus::Complete.to_wire()));
    let trades: Vec<_> = replies
        .iter()
        .filter(|reply| reply.is_replayed())
        .filter_map(|reply| match reply.event.event() {
            Ok(Event::Trade(trade)) => Some((
                trade.maker_order_id,
                trade.quantity,
                trade.maker_account,
                trade.taker_account,
            )),
            _ => None,
        })
        .collect();
    let told = (first.order_id, whole(), AccountId(1), AccountId::UNDISCLOSED);
    assert_eq!(trades, [told; 3], "whom it traded with is not told");
    assert!(replies.iter().all(|reply| reply.envelope.position > seen));

    maker.client.sender().request_state(78).expect("it is connected");
    let (_, notices) = maker.until(|notice| matches!(notice, Notice::State(_)));
    let orders: Vec<_> = notices
        .iter()
        .filter_map(|notice| match notice {
            Notice::Order(order) => Some((order.price, order.remaining)),
            _ => None,
        })
        .collect();
    assert_eq!(orders, [(30_000 * whole(), 2 * whole()), (31_000 * whole(), whole())]);
    let btc = notices.iter().find_map(|notice| match notice {
        Notice::Balance(balance) if balance.asset == AssetId(0) => {
            Some((balance.free, balance.locked))
        }
        _ => None,
    });
    assert_eq!(btc, Some((994 * whole(), 3 * whole())));

    for (from, status) in [
        (Position(seen.0 + 8), ReplayStatus::Unknown),
        (Position(1 << 60), ReplayStatus::Unknown),
        (Position(0), ReplayStatus::Complete),
        (Position(64), ReplayStatus::Unknown),
    ] {
        maker.client.sender().request_replay(79, from).expect("it is connected");
        let (_, notices) = maker.until(|notice| matches!(notice, Notice::Replayed(_)));
        let Some(Notice::Replayed(end)) = notices.last() else { panic!("{notices:?}") };
        assert_eq!(end.status, status.to_wire(), "{from}");
    }
    maker.assert_alive();
}

/// How far the log is on disk.
fn on_disk(venue: &Venue) -> Position {
    LogReader::open(venue.data(), Follow::Durable).expect("there is a log").watermark()
}

#[test]
fn a_session_that_waits_for_the_disk_misses_nothing_that_is_not_there_yet() {
    // Nobody but that session waits for the disk.
    let venue = venue(&["log.gather_us=1000000"]);
    let (a, b) = (venue.key_a(), venue.key_b());
    let mut wishes = options(tcp(&venue), "maker", (KEY_A, &a));
    wishes.acknowledgement = Acknowledgement::Durable;
    let mut maker = Member::open(&wishes).expect("an honest client is let in");
    let first = maker.place(limit(Side::Sell, 30_000, 5));
    let mut seen = maker.call(limit(Side::Sell, 31_000, 1)).expect("it is good").envelope.position;
    let mut taker = Member::connect(unix(&venue), "taker", (KEY_B, &b));
    for _ in 0..3 {
        drop(maker);
        taker.place(limit(Side::Buy, 30_000, 1));
        maker = Member::open(&wishes).expect("an honest client is let in");
        maker.client.sender().request_replay(77, seen).expect("it is connected");
        let (replies, notices) = maker.until(|notice| matches!(notice, Notice::Replayed(_)));
        let Some(Notice::Replayed(end)) = notices.last() else { panic!("{notices:?}") };
        assert_eq!(end.status, ReplayStatus::Complete.to_wire());
        assert!(end.position <= on_disk(&venue));
        let trades = replies.iter().filter(|reply| {
            matches!(reply.event.event(), Ok(Event::Trade(trade))
                if trade.maker_order_id == first.order_id)
        });
        assert_eq!(trades.count(), 1);
        seen = end.position;
    }
    taker.place(limit(Side::Buy, 10, 1));
    maker.client.sender().request_state(78).expect("it is connected");
    let (_, notices) = maker.until(|notice| matches!(notice, Notice::State(_)));
    let Some(Notice::State(end)) = notices.last() else { panic!("{notices:?}") };
    assert!(end.position <= on_disk(&venue));
}

#[test]
fn a_client_that_saw_more_than_the_log_has_is_told() {
    let mut venue = Venue::separate(&arguments(&[]));
    let a = venue.key_a();
    let endpoint = |venue: &mut Venue| Endpoint::Tcp(address(&venue.part(Part::Engine).lines()));
    let tcp = endpoint(&mut venue);
    let mut member = Member::connect(tcp.clone(), "told", (KEY_A, &a));
    let seen = member.call(limit(Side::Buy, 10, 1)).expect("it is good").envelope.position;
    let incarnation = member.client.welcome().incarnation;
    let mut wishes = options(tcp, "told", (KEY_A, &a));
    wishes.last_seen = Some((incarnation, seen));
    drop(Member::open(&wishes).expect("the log has it"));
    for seen in [
        (incarnation, Position(seen.0 + 64)),
        (incarnation, Position(1 << 40)),
        (Incarnation(incarnation.0 + 1), seen),
        (incarnation, Position(seen.0 + 1)),
    ] {
        let mut wishes = wishes.clone();
        wishes.last_seen = Some(seen);
        let refused = Member::open(&wishes).err();
        assert!(matches!(refused, Some(ConnectError::HistoryLost { .. })), "{seen:?} {refused:?}");
    }
    venue.kill9(Part::Engine);
    venue.start_engine();
    wishes.endpoint = endpoint(&mut venue);
    let member = Member::open(&wishes).expect("a killed engine loses nothing");
    assert_eq!(member.client.welcome().last_sequence.0, 1);
    venue.kill9(Part::Engine);
    venue.lose_live_window();
    venue.start_engine();
    wishes.endpoint = endpoint(&mut venue);
    // Durable or not, it says which: the position is there, or it is told that it is not.
    match Member::open(&wishes) {
        Ok(member) => assert_eq!(member.client.welcome().last_sequence.0, 1),
        Err(ConnectError::HistoryLost { position }) => assert!(position <= seen),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_session_sends_no_faster_than_it_may() {
    let venue = venue(&["engine.commands_per_second=20"]);
    let (a, b) = (venue.key_a(), venue.key_b());
    let shared = Endpoint::SharedMemory(venue.data().join("engine.sock"));
    for (endpoint, name) in [(tcp(&venue), "fast"), (shared, "fast-memory")] {
        let mut fast = Member::connect(endpoint, name, (KEY_A, &a));
        // None stays: on a slow machine so many are taken that an account may not have them open.
        let ioc = TimeInForce::Ioc.to_wire();
        let order = || NewOrder { time_in_force: ioc, ..limit(Side::Buy, 10, 1) };
        let reasons: Vec<_> = (0..2000)
            .map(|_| match fast.call(order()) {
                Ok(_) => None,
                Err(CallError::Rejected { reason, .. }) => Some(reason),
                Err(error) => panic!("{error}"),
            })
            .collect();
        assert_eq!(reasons[..20], [None; 20], "as many at once are allowed");
        assert!(reasons.contains(&Some(RejectReason::RateExceeded)));
        let mut other = Member::connect(tcp(&venue), "other", (KEY_B, &b));
        other.assert_alive();
    }
}

#[test]
fn a_flood_waits_and_all_of_it_is_answered_in_its_order() {
    const MANY: u64 = 3000;
    // As commands, and as what is refused: the rest waits for a second.
    const AT_ONCE: [u64; 2] = [500, 1000];
    let venue = venue(&["engine.commands_per_second=500"]);
    let a = venue.key_a();
    let shared = Endpoint::SharedMemory(venue.data().join("engine.sock"));
    for (endpoint, name) in [(tcp(&venue), "flood"), (shared, "flood-memory")] {
        let mut member = Member::connect(endpoint, name, (KEY_A, &a));
        let (mut sent, mut answered, mut refused) = (0, 0, 0);
        let mut heard = Wait::begin();
        while answered < MANY {
            heard.go_on(format_args!("only {answered} of {sent} are answered over {name}"));
            let ioc = TimeInForce::Ioc.to_wire();
            let mut order = NewOrder { time_in_force: ioc, ..limit(Side::Buy, 10, 1) };
            order.command.key_id = KeyId(KEY_A);
            let sender = member.client.sender();
            while sent < MANY && sender.stage(&mut order).is_ok() {
                sent += 1;
            }
            sender.publish();
            let receiver = member.client.receiver();
            while let Some(reply) = receiver.poll().expect("the connection lives") {
                if reply.is_terminal() {
                    answered += 1;
                    assert_eq!(reply.envelope.sequence.0, answered);
                    let exceeded = RejectReason::RateExceeded.to_wire();
                    let is_refused = matches!(reply.event.event(), Ok(Event::Rejected(rejected)) if rejected.reason == exceeded);
                    refused += u64::from(is_refused);
                    heard = Wait::begin();
                }
            }
            receiver.wait(Duration::from_millis(1));
        }
        let told = [MANY - refused, refused];
        assert!(told[0] >= AT_ONCE[0] && told[1] >= AT_ONCE[1], "{told:?} over {name}");
    }
}

#[test]
fn who_logs_on_too_often_is_refused_and_keeps_nobody_out() {
    const AT_ONCE: u64 = 64;
    let venue = venue(&["engine.commands_per_second=1"]);
    let (a, b) = (venue.key_a(), venue.key_b());
    let mut steady = SteadyClient::connect(options(tcp(&venue), "steady", (KEY_A, &a)))
        .expect("an honest client is let in");
    let often = options(tcp(&venue), "often", (KEY_A, &a));
    let begin = Instant::now();
    // The first one is the steady client's.
    let mut taken = 1;
    for _ in 0..500 {
        match Member::open(&often) {
            Ok(_) => taken += 1,
            Err(ConnectError::Refused { reason, reject }) => {
                let told = (reason, reject);
                assert_eq!(told, (Some(RefusalReason::Rejected), Some(RejectReason::RateExceeded)));
            }
            Err(error) => panic!("{error}"),
        }
    }
    let paid = begin.elapsed().as_secs();
    let range = AT_ONCE..=AT_ONCE + paid + 1;
    assert!(range.contains(&taken), "{taken} taken while {paid} were paid");
    // Another key, and the engine's own user, who has none.
    Member::connect(tcp(&venue), "other", (KEY_B, &b));
    let admin = Name::new("admin").expect("a short name");
    let shared = Endpoint::SharedMemory(venue.data().join("engine.sock"));
    for _ in 0..AT_ONCE + 8 {
        let own = ClientOptions::new(shared.clone(), Role::Admin, Lane::Cold, admin);
        Client::connect(&own).expect("the engine's own user is let in");
    }
    // Of the same key, who is patient comes back.
    steady.log_out().expect("it is connected");
    let begin = Instant::now();
    loop {
        match steady.poll().expect("what passes is no error") {
            Some(Told::Connection(Back::Returned { .. })) => break,
            Some(_) => {}
            None => steady.wait(WATCHDOG),
        }
        assert!(begin.elapsed() < WATCHDOG, "it does not come back");
    }
}

/// Asks for the state; true if it comes, false if the session is told that it asks too often.
fn asks_for_state(member: &mut Member, correlation: u64) -> bool {
    member.client.sender().request_state(correlation).expect("it is connected");
    let begin = Instant::now();
    loop {
        let polled = member.client.receiver().poll().expect("the connection lives");
        if let Some(reply) = polled {
            let Ok(Event::Rejected(rejected)) = reply.event.event() else { continue };
            assert_eq!((reply.envelope.correlation, rejected.template_id), (correlation, 325));
            assert_eq!(rejected.reason, RejectReason::RateExceeded.to_wire());
            assert_eq!(reply.envelope.sequence.0, 0);
            return false;
        }
        match member.client.receiver().next_notice() {
            Some(Notice::State(end)) => {
                assert_eq!(end.correlation, correlation);
                return true;
            }
            Some(_) => {}
            None => member.client.receiver().wait(WATCHDOG),
        }
        assert!(begin.elapsed() < WATCHDOG, "no answer to {correlation}");
    }
}

#[test]
fn asking_for_the_state_counts_as_a_command() {
    let venue = venue(&["engine.commands_per_second=20"]);
    let (a, b) = (venue.key_a(), venue.key_b());
    let mut curious = Member::connect(tcp(&venue), "curious", (KEY_A, &a));
    let mut reader = options(tcp(&venue), "reader", (KEY_A, &a));
    reader.role = Role::ReadOnly;
    let mut reader = Member::open(&reader).expect("a reader is let in");
    let answers: Vec<bool> = (1..2000).map(|one| asks_for_state(&mut reader, one)).collect();
    assert!(answers[..20].iter().all(|is_told| *is_told), "as many at once are allowed");
    assert!(answers.contains(&false));
    let answers: Vec<bool> = (1..2000).map(|one| asks_for_state(&mut curious, one)).collect();
    assert!(answers[..20].iter().all(|is_told| *is_told), "as many at once are allowed");
    assert!(answers.contains(&false));
    let order = curious.call(limit(Side::Buy, 10, 1)).err();
    assert!(
        order.is_none_or(|error| matches!(
            error,
            CallError::Rejected { reason: RejectReason::RateExceeded, .. }
        )),
        "it is alive"
    );
    Member::connect(tcp(&venue), "other", (KEY_B, &b)).assert_alive();
}

#[test]
fn what_may_not_come_over_a_socket_is_refused_with_a_reason() {
    let venue = venue(&[]);
    let (a, b) = (venue.key_a(), venue.key_b());
    let refusal = |wishes: &ClientOptions| match Member::open(wishes) {
        Err(ConnectError::Refused { reason, .. }) => reason,
        Err(error) => panic!("{error}"),
        Ok(_) => None,
    };
    let mut operator = options(tcp(&venue), "boss", (KEY_A, &a));
    (operator.role, operator.key) = (Role::Admin, None);
    assert_eq!(refusal(&operator), Some(RefusalReason::RoleNotPermitted));
    operator.endpoint = unix(&venue);
    assert_eq!(refusal(&operator), Some(RefusalReason::RoleNotPermitted));
    let wrong = options(tcp(&venue), "thief", (KEY_A, &b));
    assert_eq!(refusal(&wrong), Some(RefusalReason::NotAuthenticated));

    let mut reader = options(tcp(&venue), "reader", (KEY_A, &a));
    reader.role = Role::ReadOnly;
    let mut reader = Member::open(&reader).expect("a reader is let in");
    let reason = |outcome: Result<_, CallError>| match outcome {
        Err(CallError::Rejected { reason, .. }) => reason,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was carried out"),
    };
    assert_eq!(reason(reader.call(limit(Side::Buy, 10, 1))), RejectReason::RoleNotPermitted);
    let mut trader = Member::connect(tcp(&venue), "trader", (KEY_A, &a));
    let (account, asset) = (AccountId(1), AssetId(0));
    let deposit = Deposit { account, asset, amount: whole(), ..Default::default() };
    assert_eq!(reason(trader.call(deposit)), RejectReason::RoleNotPermitted);
    trader.assert_alive();
}

/// New keys of the first account, with their secrets.
fn new_keys(venue: &Venue, count: usize) -> Vec<(u64, Key)> {
    let socket = venue.data().join("engine.sock");
    let name = Name::new("keys").expect("a short name");
    let wishes = ClientOptions::new(socket, Role::Admin, Lane::Cold, name);
    let mut admin = Member::open(&wishes).expect("an admin is let in");
    let master = MasterKey::load(&venue.data().join("master.key")).expect("it is there");
    let new_key = |_| {
        let permissions = KEY_BINARY | KEY_TRADE;
        let account = AccountId(1);
        let made = admin.call(CreateKey { account, permissions, ..Default::default() });
        match made.expect("an admin may").event.event() {
            Ok(Event::Done(done)) => {
                (done.id, Key { api: String::new(), secret: master.secret(KeyId(done.id)) })
            }
            other => panic!("{other:?}"),
        }
    };
    (0..count).map(new_key).collect()
}

#[test]
fn who_logs_on_again_and_reads_nothing_leaves_places_to_others() {
    let venue = venue(&["gateway.sessions=4"]);
    let (a, b) = (venue.key_a(), venue.key_b());
    let mut busy = Member::connect(tcp(&venue), "greedy", (KEY_A, &a));
    let ioc = TimeInForce::Ioc.to_wire();
    for _ in 0..10_000 {
        busy.call(NewOrder { time_in_force: ioc, ..limit(Side::Buy, 10, 1) }).expect("it is good");
    }
    // Each has more to hear than sockets take, so it has something to say when it is replaced.
    let mut unread: Vec<RawStream> = (0..6)
        .map(|_| {
            let mut one = RawStream::open(&tcp(&venue), (KEY_A, &a), "greedy", (60, 4096));
            let replay = ReplayRequest { correlation: 1, ..Default::default() };
            send(&mut one.socket, bytemuck::bytes_of(&replay), 4096);
            until_full(&one.socket);
            one
        })
        .collect();
    Member::connect(tcp(&venue), "other", (KEY_B, &b)).assert_alive();
    for one in &mut unread[..5] {
        while let Some(message) = one.read() {
            assert_ne!(template(&message), ReplayEnd::TEMPLATE, "it has heard all");
        }
    }
}

#[test]
fn a_thousand_sessions_are_served() {
    let sessions: usize = 1000;
    // The first of them says nothing until the last one is there.
    let venue =
        venue(&["limits.sessions=2000", "gateway.sessions=1000", "gateway.heartbeat_seconds=60"]);
    // A key has 32 sessions at the most.
    let keys = new_keys(&venue, 32);
    let mut members: Vec<Member> = Vec::new();
    for index in 0..sessions {
        let name = format!("one-of-many-{index}");
        match Member::open(&options(tcp(&venue), &name, (keys[index % 32].0, &keys[index % 32].1)))
        {
            Ok(member) => members.push(member),
            Err(error) => panic!("{index}: {error}"),
        }
    }
    let one_more = Member::open(&options(tcp(&venue), "one-more", (KEY_A, &venue.key_a()))).err();
    assert!(matches!(
        one_more,
        Some(ConnectError::Refused { reason: Some(RefusalReason::TooManySessions), .. })
    ));
    for member in &mut members {
        let mut order = limit(Side::Buy, 10, 0);
        order.quantity = whole() / 10;
        member.client.sender().send(&mut order).expect("it has room");
    }
    for member in &mut members {
        let reply = member.wait_for(touchline_protocol::client::Reply::is_terminal);
        assert_eq!(reply.envelope.sequence.0, 1);
    }
}

over_epoll!(
    all_carriers_meet_in_one_book_and_makers_are_told,
    messages_may_come_in_any_pieces,
    who_is_silent_is_given_up_and_who_says_something_is_not,
    a_logout_is_answered_behind_all_that_came_before_it,
    a_newer_logon_ends_the_older_connection_and_takes_its_orders_away,
    a_session_asks_for_what_it_has_and_what_it_missed,
    a_session_that_waits_for_the_disk_misses_nothing_that_is_not_there_yet,
    a_client_that_saw_more_than_the_log_has_is_told,
    a_session_sends_no_faster_than_it_may,
    who_logs_on_too_often_is_refused_and_keeps_nobody_out,
    who_logs_on_again_and_reads_nothing_leaves_places_to_others,
    asking_for_the_state_counts_as_a_command,
    what_may_not_come_over_a_socket_is_refused_with_a_reason,
    a_thousand_sessions_are_served,
);
