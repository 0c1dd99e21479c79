//! The binary protocol from outside: honest clients trade, dishonest ones hurt only themselves.

use super::http::Key;
use super::process::WATCHDOG;
use super::raw_session::{
    Hello, REFUSED, REFUSED_NOT_AUTHENTICATED, REFUSED_VERSION, dial, is_closed, message, number,
    proof, read_message, template,
};
use super::stream_client;
use super::units::WHOLE;
use super::venue::Venue;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;
use touchline_protocol::client::{
    Acknowledgement, CallError, Client, ClientCommand, ClientOptions, ConnectError, Endpoint, Reply,
};
use touchline_protocol::message::command::{
    CancelOrder, Deposit, LOGON_ACCOUNT_EVENTS, LOGON_BRIEF, LOGON_CANCEL_ON_DISCONNECT,
    LOGON_TERSE, NewOrder, ReduceOrder,
};
use touchline_protocol::message::decode::Event;
use touchline_protocol::message::enums::{
    Lane, OrderStatus, OrderType, RejectReason, Role, Side, TimeInForce,
};
use touchline_protocol::message::event::{OrderResult, Trade};
use touchline_protocol::message::handshake::RefusalReason;
use touchline_protocol::text::{ClientOrderId, Name};
use touchline_protocol::units::{AccountId, AssetId, KeyId, OrderId, SymbolId};

/// The demo keys of the accounts A and B.
pub(crate) const KEY_A: u64 = 1;
pub(crate) const KEY_B: u64 = 2;

pub(crate) fn socket(venue: &Venue) -> PathBuf {
    venue.data().join("engine.sock")
}

pub(crate) fn options(venue: &Venue, name: &str, key: Option<(u64, &Key)>) -> ClientOptions {
    let name = Name::new(name).expect("a short name");
    let mut options = ClientOptions::new(socket(venue), Role::Trader, Lane::Hot, name);
    options.key = key.map(|(id, key)| (KeyId(id), key.secret.clone().into()));
    options.handshake_timeout = WATCHDOG;
    // REST shows what is on disk: with this level it shows whatever the client knows to be done.
    options.acknowledgement = Acknowledgement::Durable;
    options
}

/// An honest client: a session and the key that it acts with.
pub(crate) struct Member {
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

pub(crate) fn connect(venue: &Venue, name: &str, id: u64, key: &Key) -> Member {
    let client = Client::connect(&options(venue, name, Some((id, key))));
    Member { client: client.expect("an honest client is let in"), key: KeyId(id) }
}

pub(crate) fn whole(units: i64) -> i64 {
    units * 100_000_000
}

pub(crate) fn limit(side: Side, price: i64, quantity: i64) -> NewOrder {
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
pub(crate) fn place(member: &mut Member, mut order: NewOrder) -> (OrderResult, Vec<Trade>) {
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
            match reply.event.event().expect("a known event") {
                Event::Trade(trade) => trades.push(*trade),
                Event::OrderResult(result) if reply.is_terminal() => return (*result, trades),
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

/// Receives until `wanted` events came that are no replies.
fn told(client: &mut Client, wanted: usize) -> Vec<Reply> {
    let begin = Instant::now();
    let mut told = Vec::new();
    while told.len() < wanted {
        match client.receiver().poll().expect("the connection lives") {
            Some(reply) => told.extend(reply.is_unsolicited().then_some(reply)),
            None => client.receiver().wait(WATCHDOG),
        }
        assert!(begin.elapsed() < WATCHDOG, "{} of {wanted} events", told.len());
    }
    told
}

#[test]
fn a_maker_that_waits_is_told_of_its_fills_once_they_are_on_disk() {
    let venue = Venue::up(&[]);
    let mut b = venue.b();
    let mut maker = connect(&venue, "maker", KEY_A, &venue.key_a());
    let mut watching = options(&venue, "watcher", Some((KEY_A, &venue.key_a())));
    watching.flags = LOGON_ACCOUNT_EVENTS;
    watching.role = Role::ReadOnly;
    let mut watcher = Client::connect(&watching).expect("a watcher is let in");
    let (resting, _) = place(&mut maker, limit(Side::Sell, whole(30_000), whole(1)));
    let placed = told(&mut watcher, 2);
    assert!(matches!(placed[0].event.event(), Ok(Event::OrderAccepted(_))));
    for _ in 0..2 {
        b.limit("BTCUSDT", "BUY", "0.25", "30000");
    }
    for client in [&mut maker.client, &mut watcher] {
        for event in told(client, 2) {
            assert!(event.envelope.position <= client.receiver().durable());
            let Ok(Event::Trade(trade)) = event.event.event() else { panic!("{event:?}") };
            assert_eq!((trade.maker_order_id, trade.quantity), (resting.order_id, whole(1) / 4));
        }
    }
    // What lies in the ring by then is no answer to a call.
    b.limit("BTCUSDT", "BUY", "0.25", "30000");
    let mut cancel =
        CancelOrder { symbol: SymbolId(0), order_id: resting.order_id, ..Default::default() };
    let reply = maker.call(&mut cancel).expect("an open order can be cancelled");
    assert!(matches!(reply.event.event(), Ok(Event::OrderCanceled(_))) && !reply.is_unsolicited());
    let last = told(&mut watcher, 2);
    assert!(matches!(last[1].event.event(), Ok(Event::OrderCanceled(_))));
}

#[test]
fn a_brief_session_hears_of_its_order_once() {
    let venue = stream_client::venue(&[]);
    for endpoint in [socket(&venue).into(), stream_client::tcp(&venue)] {
        let mut wishes = options(&venue, "brief", Some((KEY_A, &venue.key_a())));
        (wishes.endpoint, wishes.flags) = (endpoint, LOGON_BRIEF | LOGON_CANCEL_ON_DISCONNECT);
        let is_stream = !matches!(wishes.endpoint, Endpoint::SharedMemory(_));
        let mut member = stream_client::Member::open(&wishes).expect("a brief client is let in");
        assert_eq!(member.client.flags(), wishes.flags);
        // Not what the end of an older connection takes away.
        let is_answer = |reply: &Reply| !reply.is_unsolicited();
        let [first, second] = [(); 2].map(|()| {
            let mut order = limit(Side::Sell, whole(30_000), whole(1));
            order.command.key_id = KeyId(KEY_A);
            member.client.sender().send(&mut order).expect("there is room");
            member.wait_for(is_answer)
        });
        let Ok(Event::OrderResult(result)) = second.event.event() else { panic!("{second:?}") };
        assert!(matches!(first.event.event(), Ok(Event::OrderResult(_))), "{first:?}");
        assert!(first.is_terminal() && second.is_terminal());
        if is_stream {
            // What is replayed, which is over streams only, is told whole.
            let from = first.envelope.position;
            member.client.sender().request_replay(5, from).expect("it is connected");
            let [accepted, replayed] = [(); 2].map(|()| member.wait_for(is_answer));
            let Ok(Event::OrderAccepted(order)) = accepted.event.event() else {
                panic!("{accepted:?}")
            };
            assert_eq!(order.order_id, result.order_id);
            assert!(accepted.is_replayed() && replayed.is_replayed());
            assert_eq!(replayed.event.event(), Ok(Event::OrderResult(result)));
        }
    }
}

#[test]
fn a_terse_session_hears_of_its_order_in_one_line() {
    let venue = stream_client::venue(&[]);
    for endpoint in [socket(&venue).into(), stream_client::tcp(&venue)] {
        let mut wishes = options(&venue, "terse", Some((KEY_A, &venue.key_a())));
        (wishes.endpoint, wishes.flags) = (endpoint, LOGON_TERSE);
        let mut member = stream_client::Member::open(&wishes).expect("a terse client is let in");
        assert_eq!(member.client.flags(), LOGON_TERSE);
        let mut order = limit(Side::Sell, whole(30_000), whole(1));
        order.client_order_id = ClientOrderId::new("terse-1").expect("it is short enough");
        order.command.key_id = KeyId(KEY_A);
        member.client.sender().send(&mut order).expect("there is room");
        let reply = member.wait_for(|reply| !reply.is_unsolicited());
        let Ok(&Event::OrderOpened(&opened)) = reply.event.event().as_ref() else {
            panic!("{reply:?}")
        };
        assert!(reply.is_terminal());
        // It was as it had been sent: the name that it was sent under is taken.
        member.client.sender().send(&mut order).expect("there is room");
        let reply = member.wait_for(|reply| !reply.is_unsolicited());
        let Ok(Event::Rejected(again)) = reply.event.event() else { panic!("{reply:?}") };
        assert_eq!(again.reason, RejectReason::DuplicateClientOrderId.to_wire());
        let mut cancel = CancelOrder { order_id: opened.order_id, ..Default::default() };
        cancel.command.key_id = KeyId(KEY_A);
        member.client.sender().send(&mut cancel).expect("there is room");
        let reply = member.wait_for(|reply| !reply.is_unsolicited());
        let Ok(Event::OrderClosed(closed)) = reply.event.event() else { panic!("{reply:?}") };
        assert_eq!((closed.order_id, closed.executed_quantity), (opened.order_id, 0));
    }
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

/// Places and cancels an order: the engine serves this client. It also wakes an engine that sleeps,
/// so that it looks at every ring.
pub(crate) fn assert_alive(member: &mut Member) {
    let (placed, _) = place(member, limit(Side::Buy, whole(10), whole(1)));
    let mut cancel =
        CancelOrder { symbol: SymbolId(0), order_id: placed.order_id, ..Default::default() };
    member.call(&mut cancel).expect("the order is open");
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
