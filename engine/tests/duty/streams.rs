//! Sessions over sockets, on the ring that they all share: whose reply is whose, and what becomes of it
//! when the gateway does not come to read.

use super::client::limit;
use super::failure::wait_until_failed;
use super::venue::Venue;
use crate::patience::Wait;
use std::collections::BTreeMap;
use touchline_engine::mailbox::ToDuty;
use touchline_protocol::client::ClientCommand;
use touchline_protocol::message::command::{
    CommandHeader, LOGON_ACCOUNT_EVENTS, LOGON_CANCEL_ON_DISCONNECT, Logon, MassCancel, NewOrder,
};
use touchline_protocol::message::decode::{Event, EventBuffer, disclose};
use touchline_protocol::message::enums::{
    CancelScope, Lane, RejectReason, Role, Side, TimeInForce,
};
use touchline_protocol::message::event::{
    ENVELOPE_TERMINAL, ENVELOPE_UNSOLICITED, Envelope, SessionStarted,
};
use touchline_protocol::message::stream::Logout;
use touchline_protocol::ring::MessageBuffer;
use touchline_protocol::text::Name;
use touchline_protocol::units::{AccountId, Epoch, KeyId, Position, Sequence, SessionId, SymbolId};

/// One stream session, as the gateway sees it.
pub(super) struct Stream {
    started: SessionStarted,
    sequence: u64,
}

pub(super) fn open(venue: &mut Venue, name: &str, key: u64, flags: u8) -> Stream {
    let watches = flags & LOGON_ACCOUNT_EVENTS != 0;
    let role = if watches { Role::ReadOnly } else { Role::Trader };
    let mut logon = Logon {
        name: Name::new(name).unwrap(),
        role: role.to_wire(),
        lane: Lane::Hot.to_wire(),
        flags,
        ..Default::default()
    };
    logon.command.key_id = KeyId(key);
    let started = venue.log_on_stream(logon).unwrap();
    Stream { started, sequence: started.last_sequence.0 }
}

impl Stream {
    const fn header(&self) -> CommandHeader {
        CommandHeader {
            correlation: 0,
            sequence: Sequence(self.sequence),
            not_after_ns: 0,
            key_id: self.started.key_id,
            session: self.started.session,
            epoch: self.started.epoch,
        }
    }

    /// What the next command carries, whether it is sent or not.
    pub(super) const fn next_header(&mut self) -> CommandHeader {
        self.sequence += 1;
        self.header()
    }

    /// Passes a command on under the next sequence. False when the ring is full.
    pub(super) fn send<C: ClientCommand>(&mut self, venue: &mut Venue, mut command: C) -> bool {
        *command.command_mut() = self.next_header();
        let is_sent = venue.streams.output.try_push(command.as_bytes()).is_ok();
        self.sequence -= u64::from(!is_sent);
        is_sent
    }
}

/// All that is in the ring: envelopes as they stand there, and events.
pub(super) fn read(venue: &mut Venue) -> Vec<(Envelope, EventBuffer)> {
    let mut buffer = MessageBuffer::new();
    let mut found = Vec::new();
    while let Some(length) = venue.streams.input.poll(&mut buffer).unwrap() {
        found.push(disclose(buffer.bytes(length)).unwrap());
    }
    found
}

fn epoch_of(envelope: &Envelope) -> Epoch {
    let [low, middle, high] = envelope.reserved;
    Epoch(u32::from_le_bytes([low, middle, high, 0]))
}

#[test]
fn replies_name_session_and_connection() {
    let mut venue = Venue::new("", "");
    let mut streams: Vec<Stream> =
        (0..20).map(|number| open(&mut venue, &format!("s{number}"), 1 + number % 3, 0)).collect();
    // A newer connection of one of them.
    let newer = open(&mut venue, "s0", 1, 0);
    assert_eq!(newer.started.epoch.0, streams[0].started.epoch.0 + 1);
    let _lost = streams[0].send(&mut venue, limit(0, Side::Buy, 10, 1));
    streams[0] = newer;
    for round in 0..3 {
        for stream in &mut streams {
            assert!(stream.send(&mut venue, limit(0, Side::Buy, 10 + round, 1)));
        }
    }
    venue.settle();
    let mut answers = BTreeMap::<SessionId, Vec<u64>>::new();
    for (envelope, _) in read(&mut venue) {
        let stream = streams.iter().find(|one| one.started.session == envelope.session).unwrap();
        assert_eq!(epoch_of(&envelope), stream.started.epoch);
        if envelope.flags & ENVELOPE_TERMINAL != 0 {
            answers.entry(envelope.session).or_default().push(envelope.sequence.0);
        }
    }
    assert_eq!(answers.len(), streams.len());
    assert!(answers.values().all(|sequences| *sequences == [1, 2, 3]), "{answers:?}");
}

#[test]
fn a_gateway_that_does_not_read_loses_no_answer_and_is_told_what_else_it_missed() {
    let mut venue = Venue::new("", "");
    let mut maker = open(&mut venue, "maker", 1, 0);
    let watcher = open(&mut venue, "watcher", 1, LOGON_ACCOUNT_EVENTS);
    let mut taker = venue.trader("taker", 2);
    assert!(maker.send(&mut venue, limit(0, Side::Sell, 100, 20_000)));
    venue.settle();
    assert_eq!(read(&mut venue).len(), 4, "both are told of the order");
    let before = venue.duty.core().last_time_ns();
    for _ in 0..27 {
        for _ in 0..300 {
            taker.send(limit(0, Side::Buy, 100, 1));
        }
        let mut answered = 0;
        // A turn may find no room in the log.
        let wait = Wait::begin();
        while answered < 300 {
            wait.go_on("not all are answered");
            venue.duty.turn();
            answered += taker.count_answers();
        }
    }
    assert!(venue.duty.core().last_time_ns() >= before);
    let all = MassCancel {
        symbol: SymbolId(0),
        scope: CancelScope::Account.to_wire(),
        ..Default::default()
    };
    assert!(maker.send(&mut venue, all));
    venue.settle();
    let mut told = read(&mut venue);
    venue.settle();
    told.extend(read(&mut venue));
    for session in [maker.started.session, watcher.started.session] {
        let own: Vec<_> = told.iter().filter(|(one, _)| one.session == session).collect();
        let gaps: Vec<(Position, Position)> = own
            .iter()
            .filter_map(|(envelope, event)| match event.event() {
                Ok(Event::Gap(gap)) => Some((gap.from, envelope.position)),
                _ => None,
            })
            .collect();
        assert_eq!(gaps.len(), 1, "session {session}");
        let trades = own.iter().filter(|(_, event)| matches!(event.event(), Ok(Event::Trade(_))));
        assert!(trades.count() < 27 * 300, "half of the ring is not so large");
        let (from, to) = gaps[0];
        // What was told lies in front of the gap or behind it.
        for (envelope, event) in &own {
            if matches!(event.event(), Ok(Event::Trade(_))) {
                assert!(envelope.position <= from || envelope.position >= to);
            }
        }
    }
    let is_answer = |(envelope, _): &&(Envelope, EventBuffer)| {
        envelope.flags & ENVELOPE_TERMINAL != 0 && envelope.session == maker.started.session
    };
    assert_eq!(told.iter().filter(is_answer).count(), 1);
    assert!(told.iter().any(|(envelope, _)| envelope.flags & ENVELOPE_UNSOLICITED != 0));
}

#[test]
fn a_gap_in_what_a_logon_itself_took_away_begins_before_the_logon() {
    let mut venue = Venue::new("", "");
    let mut first = open(&mut venue, "quitter", 1, LOGON_CANCEL_ON_DISCONNECT);
    assert!(first.send(&mut venue, limit(0, Side::Buy, 10, 1)));
    let mut other = open(&mut venue, "other", 2, 0);
    let rejected = NewOrder { price: 0, ..limit(0, Side::Buy, 1, 1) };
    for _ in 0..2 {
        for _ in 0..4_500 {
            assert!(other.send(&mut venue, rejected));
        }
        venue.settle();
    }
    // More than half of the ring is taken, so the cancel finds no room.
    let before = venue.control.appended();
    let second = open(&mut venue, "quitter", 1, LOGON_CANCEL_ON_DISCONNECT);
    let is_second = |(envelope, _): &(Envelope, EventBuffer)| {
        envelope.session == second.started.session && epoch_of(envelope) == second.started.epoch
    };
    assert_eq!(venue.duty.core().counts().open_orders, 0);
    assert!(!read(&mut venue).iter().any(is_second));
    venue.duty.turn();
    let told: Vec<_> = read(&mut venue).into_iter().filter(is_second).collect();
    let [(envelope, notice)] = &told[..] else { panic!("one notice, not {told:?}") };
    let Ok(Event::Gap(gap)) = notice.event() else { panic!("{notice:?}") };
    assert!(gap.from <= before && before < envelope.position, "{gap:?} at {envelope:?}");
}

#[test]
fn a_full_reply_ring_takes_no_command_and_no_answer_is_lost() {
    let mut venue = Venue::new("", "");
    let mut stream = open(&mut venue, "one", 1, 0);
    let (mut sent, mut answered) = (0, 0);
    let rejected = NewOrder { price: 0, ..limit(0, Side::Buy, 1, 1) };
    for _ in 0..40 {
        while stream.send(&mut venue, rejected) {
            sent += 1;
        }
        for _ in 0..200 {
            venue.duty.turn();
        }
    }
    assert!(sent > 8_000, "{sent} commands");
    let wait = Wait::begin();
    loop {
        wait.go_on("there are ever more replies");
        let replies = read(&mut venue);
        answered += replies.len();
        venue.settle();
        if replies.is_empty() {
            break;
        }
    }
    assert_eq!(answered, sent);
}

/// An answer has room for its end alone: of what was in front of that a notice stands there.
#[test]
fn what_is_missing_of_an_answer_is_told_in_front_of_its_end() {
    let mut venue = Venue::new("", "");
    let mut stream = open(&mut venue, "one", 1, 0);
    let ioc = TimeInForce::Ioc.to_wire();
    let order = NewOrder { time_in_force: ioc, ..limit(0, Side::Buy, 10, 1) };
    let mut sent = 0;
    for _ in 0..40 {
        while stream.send(&mut venue, order) {
            sent += 1;
        }
        for _ in 0..200 {
            venue.duty.turn();
        }
    }
    let mut told = Vec::new();
    let wait = Wait::begin();
    loop {
        wait.go_on("there are ever more replies");
        let replies = read(&mut venue);
        venue.settle();
        if replies.is_empty() {
            break;
        }
        told.extend(replies);
    }
    let (mut gaps, mut behind) = (0, Position(0));
    assert_eq!(told.len(), 2 * sent);
    for (pair, sequence) in told.chunks(2).zip(1..) {
        let [(first, front), (last, end)] = pair else { unreachable!() };
        assert_eq!((last.sequence, first.position), (Sequence(sequence), last.position));
        assert!(last.flags & ENVELOPE_TERMINAL != 0 && first.flags & ENVELOPE_TERMINAL == 0);
        assert!(matches!(end.event(), Ok(Event::OrderResult(_))), "{end:?}");
        match front.event() {
            Ok(Event::OrderAccepted(_)) => {}
            Ok(Event::Gap(gap)) => {
                assert_eq!(gap.from, behind, "from what was told last on");
                gaps += 1;
            }
            other => panic!("{other:?}"),
        }
        behind = last.position;
    }
    assert!(gaps > 0, "the ring was never so full");
}

/// As over rings: a venue does not tell its traders whom they trade with.
#[test]
fn each_side_of_a_trade_is_told_its_own_over_sockets_too() {
    let mut venue = Venue::new("", "");
    let mut maker = open(&mut venue, "maker", 1, 0);
    let mut taker = open(&mut venue, "taker", 2, 0);
    assert!(maker.send(&mut venue, limit(0, Side::Sell, 100, 1)));
    venue.settle();
    assert!(taker.send(&mut venue, limit(0, Side::Buy, 100, 1)));
    venue.settle();
    let told = read(&mut venue);
    let trade_of = |stream: &Stream| {
        let own = told.iter().filter(|(one, _)| one.session == stream.started.session);
        let mut trades = own.filter_map(|(_, event)| match event.event() {
            Ok(Event::Trade(trade)) => Some(*trade),
            _ => None,
        });
        let trade = trades.next().expect("it is told of the trade");
        assert!(trades.next().is_none(), "and once");
        (trade.maker_account, trade.taker_account)
    };
    let [of_maker, of_taker] = [&maker, &taker].map(|stream| stream.started.account);
    assert_ne!(of_maker, of_taker);
    assert_eq!(trade_of(&maker), (of_maker, AccountId::UNDISCLOSED));
    assert_eq!(trade_of(&taker), (AccountId::UNDISCLOSED, of_taker));
}

#[test]
fn what_an_ended_connection_sent_is_given_up_unless_it_logged_out() {
    let mut venue = Venue::new("", "");
    let mut lost = open(&mut venue, "lost", 1, 0);
    assert!(lost.send(&mut venue, limit(0, Side::Buy, 10, 1)));
    let (session, epoch) = (lost.started.session, lost.started.epoch);
    venue.mail.to_duty.put(ToDuty::Ended { session, epoch, is_silent: false });
    venue.settle();
    assert!(read(&mut venue).is_empty(), "it was not polled when its end came");
    assert_eq!(venue.duty.core().counts().open_orders, 0);

    let mut leaving = open(&mut venue, "leaving", 1, 0);
    assert!(leaving.send(&mut venue, limit(0, Side::Buy, 10, 1)));
    let logout = Logout { command: leaving.header(), ..Default::default() };
    venue.streams.output.try_push(bytemuck::bytes_of(&logout)).unwrap();
    venue.settle();
    assert_eq!(read(&mut venue).len(), 2, "the order and its result");
    assert_eq!(venue.duty.core().counts().open_orders, 1);
    assert!(!venue.duty.core().session(leaving.started.session).unwrap().connected);
}

#[test]
fn a_failed_log_refuses_commands_over_sockets_too_and_each_is_answered() {
    let mut venue = Venue::new("", "");
    let mut streams: Vec<Stream> =
        (0..3).map(|number| open(&mut venue, &format!("s{number}"), 1 + number, 0)).collect();
    assert!(streams[0].send(&mut venue, limit(0, Side::Buy, 10, 1)));
    venue.settle();
    venue.duty.wait_durable().unwrap();
    venue.disk.break_down();
    assert!(streams[0].send(&mut venue, limit(0, Side::Buy, 10, 1)));
    venue.settle();
    wait_until_failed(&venue);
    assert_eq!(read(&mut venue).len(), 4, "what was appended was answered");
    let before = (venue.control.appended(), venue.duty.core().state_hash());
    for stream in &mut streams {
        assert!(stream.send(&mut venue, limit(0, Side::Buy, 10, 1)));
        assert!(stream.send(&mut venue, limit(0, Side::Buy, 10, 1)));
    }
    venue.settle();
    let answers = read(&mut venue);
    assert_eq!(answers.len(), 2 * streams.len());
    for (envelope, event) in answers {
        assert!(envelope.flags & ENVELOPE_TERMINAL != 0);
        assert!(matches!(event.event(), Ok(Event::Rejected(rejected))
            if rejected.reason == RejectReason::LogUnavailable.to_wire()));
    }
    assert_eq!((venue.control.appended(), venue.duty.core().state_hash()), before);
}

#[test]
fn whoever_leaves_those_that_watch_are_told_and_nobody_else() {
    let mut venue = Venue::new("", "");
    let mut trader = venue.trader("trader", 1);
    // Some watch another account, to which nothing happens.
    let mut streams: Vec<(Stream, bool)> = (0..36)
        .map(|number| {
            let watches = number % 3 != 1;
            let flags = if watches { LOGON_ACCOUNT_EVENTS } else { 0 };
            let key = 1 + u64::from(number % 4 == 0);
            (open(&mut venue, &format!("s{number}"), key, flags), watches && key == 1)
        })
        .collect();
    let mut next = 0;
    while !streams.is_empty() {
        trader.send(limit(0, Side::Buy, 10, 1));
        venue.settle();
        assert_eq!(trader.read().len(), 2, "the order and its result");
        let mut told: Vec<SessionId> = read(&mut venue).iter().map(|told| told.0.session).collect();
        told.sort_unstable();
        let watchers = streams.iter().filter(|(_, watches)| *watches);
        let mut owed: Vec<SessionId> =
            watchers.flat_map(|(stream, _)| [stream.started.session; 2]).collect();
        owed.sort_unstable();
        assert_eq!(told, owed, "{} are left", streams.len());
        next = (next + 7) % streams.len();
        let (gone, _) = streams.swap_remove(next);
        let (session, epoch) = (gone.started.session, gone.started.epoch);
        venue.mail.to_duty.put(ToDuty::Ended { session, epoch, is_silent: false });
        venue.settle();
    }
}
