//! Who is served when: the cold lane's share, and the hot lane's, whatever the others send.

use super::client::{Client, limit};
use super::streams;
use super::venue::{Venue, deposit};
use touchline_protocol::message::command::{ExpireAll, NewOrder, ORDER_VALIDATE_ONLY};
use touchline_protocol::message::enums::{Lane, OrderType, Role, Side, TimeInForce};
use touchline_protocol::message::event::ENVELOPE_TERMINAL;
use touchline_protocol::message::stream::Logout;
use touchline_protocol::units::SymbolId;

/// A session and how much of it was answered.
struct Served {
    client: Client,
    lane: Lane,
    answers: u64,
}

/// Fills the request ring: the session has more to do than any turn takes.
fn flood(session: &mut Served) {
    match session.lane {
        Lane::Cold => while session.client.try_send(deposit()) {},
        Lane::Hot => while session.client.try_send(limit(0, Side::Buy, 1, 1)) {},
    }
}

/// Whether the `n`-th of `count` sessions is cold, in one of the ways to mix two lanes.
const fn is_cold(mix: u32, n: u32) -> bool {
    mix & (1 << n) != 0
}

fn open(venue: &mut Venue, mix: u32, n: u32) -> Served {
    let name = format!("session-{n}");
    let (client, lane) = if is_cold(mix, n) {
        let role = if n.is_multiple_of(2) { Role::Admin } else { Role::Adapter };
        (venue.cold(&format!("{name}-{role:?}"), role), Lane::Cold)
    } else {
        (venue.trader(&name, u64::from(n % 3) + 1), Lane::Hot)
    };
    Served { client, lane, answers: 0 }
}

/// Turns with one mix of sessions that all have backlog. `hot_sends` is false for hot sessions that
/// are connected and silent.
fn check_mix(venue: &mut Venue, sessions: u32, mix: u32, quota: u64, hot_sends: bool) {
    let mut all: Vec<Served> = (0..sessions).map(|n| open(venue, mix, n)).collect();
    for turn in 0..2 * sessions + 1 {
        for session in &mut all {
            if session.lane == Lane::Cold || hot_sends {
                flood(session);
            }
        }
        let before: Vec<u64> = all.iter().map(|session| session.answers).collect();
        venue.duty.turn();
        for session in &mut all {
            session.answers += session.client.count_answers();
        }
        let cold = || all.iter().filter(|session| session.lane == Lane::Cold);
        let least = cold().map(|session| session.answers).min().unwrap();
        let most = cold().map(|session| session.answers).max().unwrap();
        let what = format!("mix {mix:#b} of {sessions}, quota {quota}, turn {turn}");
        assert!(most - least <= quota, "{what}: one cold session got {most}, another {least}");
        let of_lane = |lane: Lane| {
            let sessions = all.iter().zip(&before).filter(move |(one, _)| one.lane == lane);
            sessions.map(|(session, before)| session.answers - before)
        };
        assert_eq!(of_lane(Lane::Cold).sum::<u64>(), quota, "{what}: the cold lane's share");
        let share = if hot_sends { 8 } else { 0 };
        assert!(of_lane(Lane::Hot).all(|done| done == share), "{what}: a hot session's share");
    }
    for session in &all {
        venue.disconnect(&session.client);
    }
    venue.settle();
    venue.closed();
}

#[test]
fn cold_sessions_with_backlog_share_their_lane_in_any_mix_with_hot_ones() {
    for quota in [1, 4] {
        let engine = format!("messages_per_turn = 8\ncold_messages_per_turn = {quota}");
        let mut venue = Venue::new(&engine, "");
        for sessions in 2..=5_u32 {
            for mix in (0..1 << sessions).filter(|mix: &u32| (2..=4).contains(&mix.count_ones())) {
                check_mix(&mut venue, sessions, mix, quota, mix.is_multiple_of(3));
            }
        }
    }
}

#[test]
fn a_cold_session_with_backlog_is_not_starved_by_others_that_send_now_and_then() {
    let mut venue = Venue::new("cold_messages_per_turn = 4", "");
    let mut rare: Vec<Client> =
        (0..3).map(|n| venue.cold(&format!("rare-{n}"), Role::Admin)).collect();
    let mut busy = Served { client: venue.cold("busy", Role::Admin), lane: Lane::Cold, answers: 0 };
    for turn in 1..=200 {
        flood(&mut busy);
        for client in &mut rare {
            client.send(deposit());
        }
        venue.duty.turn();
        busy.answers += busy.client.count_answers();
        assert!(busy.answers >= turn / 4, "{} answers in {turn} turns", busy.answers);
    }
}

#[test]
fn what_a_cold_session_leaves_of_its_lanes_share_goes_to_the_others() {
    let mut venue = Venue::new("cold_messages_per_turn = 4", "");
    let mut all: Vec<Client> =
        (0..5).map(|n| venue.cold(&format!("admin-{n}"), Role::Admin)).collect();
    for client in &mut all {
        client.send(deposit());
    }
    for share in [4, 1] {
        venue.duty.turn();
        assert_eq!(all.iter_mut().map(Client::count_answers).sum::<u64>(), share);
    }
}

#[test]
fn all_sessions_over_sockets_have_one_share_of_a_turn() {
    let mut venue = Venue::new("messages_per_turn = 8\nstream_messages_per_turn = 3", "");
    let mut streams = ["one", "two"].map(|name| streams::open(&mut venue, name, 1, 0));
    for _ in 0..2 {
        for stream in &mut streams {
            assert!(stream.send(&mut venue, limit(0, Side::Buy, 1, 1)));
        }
    }
    for share in [3, 1] {
        venue.duty.turn();
        assert_eq!(stream_answers(&mut venue), share);
    }
}

/// Whichever of them the turn begins with.
#[test]
fn nobody_has_two_shares_of_a_turn_in_which_another_one_leaves() {
    for turns in 0..4 {
        let mut venue = Venue::new("messages_per_turn = 8", "");
        let mut all = ["a", "b", "c", "d"].map(|name| venue.trader(name, 1));
        (0..turns).for_each(|_| _ = venue.duty.turn());
        for (n, client) in all.iter_mut().enumerate() {
            if n == 2 {
                let command = client.header(1);
                client.push(bytemuck::bytes_of(&Logout { command, ..Default::default() }));
            } else {
                (0..20).for_each(|_| _ = client.send(limit(0, Side::Buy, 1, 1)));
            }
        }
        venue.duty.turn();
        let answers = all.each_mut().map(Client::count_answers);
        assert!(answers.iter().all(|&count| count <= 8), "{answers:?} behind {turns} turns");
        assert!(answers.iter().filter(|&&count| count == 8).count() >= 2, "{answers:?}");
    }
}

/// The order of this number in rounds of seven resting orders and an aggressor over all of them.
fn of_round(number: u64) -> NewOrder {
    match number % 8 {
        0..7 => limit(0, Side::Sell, 100, 1),
        _ => limit(0, Side::Buy, 100, 7),
    }
}

/// Keeps its ring full of [such rounds](of_round).
fn keep_pending(client: &mut Client, sent: &mut u64) {
    while client.try_send(of_round(*sent)) {
        *sent += 1;
    }
}

/// A venue of small steps, so that a turn that takes an aggressor ends with work pending.
fn slow_matching() -> Venue {
    Venue::new("messages_per_turn = 16\npending_per_turn = 1", "max_steps = 2")
}

#[test]
fn hot_sessions_are_served_while_one_of_them_keeps_work_pending() {
    let mut venue = slow_matching();
    let mut busy = venue.trader("busy", 1);
    let mut others = [
        ("before", 2, Vec::new()),
        ("same symbol", 2, Vec::new()),
        ("other symbol", 3, Vec::new()),
    ]
    .map(|(name, key, served): (_, _, Vec<u64>)| (venue.trader(name, key), served));
    let (mut sent, mut turns_pending) = (0, 0);
    for turn in 0..600 {
        keep_pending(&mut busy, &mut sent);
        for (n, (client, served)) in others.iter_mut().enumerate() {
            while client.try_send(limit(n as u32 / 2, Side::Buy, 1, 1)) {}
            if client.count_answers() > 0 {
                served.push(turn);
            }
        }
        venue.duty.turn();
        busy.read();
        turns_pending += u32::from(venue.duty.core().pending_head().is_some());
    }
    assert!(turns_pending > 300, "work was pending after {turns_pending} turns only");
    for (_, served) in &others {
        // Three turns finish an aggressor, and of four such rounds each session comes first in one.
        let pause = served.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
        assert!(pause <= 12 && served[0] <= 12, "not served for {pause} turns: {served:?}");
    }
}

#[test]
fn the_cold_lane_is_served_while_a_hot_session_keeps_work_pending() {
    let mut venue = slow_matching();
    let mut busy = venue.trader("busy", 1);
    let mut cold = [venue.cold("admin", Role::Admin), venue.cold("adapter", Role::Adapter)];
    for client in &mut cold {
        for _ in 0..20 {
            client.send(deposit());
        }
    }
    let (mut sent, mut answers) = (0, [0; 2]);
    for _ in 0..600 {
        keep_pending(&mut busy, &mut sent);
        venue.duty.turn();
        busy.read();
        for (client, answers) in cold.iter_mut().zip(&mut answers) {
            *answers += client.count_answers();
        }
    }
    assert_eq!(answers, [20; 2], "of 20 records each, in 600 turns");
}

/// As what is done only while nothing of the symbol is pending.
#[test]
fn what_cannot_overtake_has_its_turn_in_the_cold_lane_while_a_hot_session_keeps_work_pending() {
    let mut venue = slow_matching();
    let mut busy = venue.trader("busy", 1);
    let mut admin = venue.cold("admin", Role::Admin);
    for _ in 0..20 {
        admin.send(ExpireAll { symbol: SymbolId(1), ..Default::default() });
    }
    let (mut sent, mut answers) = (0, 0);
    for _ in 0..600 {
        keep_pending(&mut busy, &mut sent);
        venue.duty.turn();
        busy.read();
        answers += admin.count_answers();
    }
    assert_eq!(answers, 20, "in 600 turns");
}

/// Begins a round that is pending behind the next turn.
fn begin_round(client: &mut Client) {
    (0..8).for_each(|number| _ = client.send(of_round(number)));
}

#[test]
fn behind_an_order_that_has_to_be_continued_operators_alone_are_served_and_have_their_share() {
    let mut venue = slow_matching();
    let mut busy = venue.trader("busy", 1);
    let mut cold = venue.cold("cold", Role::Admin);
    let mut hot = venue.try_open("hot", (Role::Admin, Lane::Hot, 0), 1024).unwrap();
    let mut stream = streams::open(&mut venue, "stream", 2, 0);
    begin_round(&mut busy);
    cold.send(deposit());
    assert!(stream.send(&mut venue, limit(1, Side::Buy, 1, 1)));
    venue.duty.turn();
    assert!(venue.duty.core().pending_head().is_some());
    assert_eq!((cold.count_answers(), stream_answers(&mut venue)), (1, 0));
    for _ in 0..10 {
        cold.send(deposit());
        hot.send(deposit());
    }
    venue.duty.turn();
    assert_eq!((cold.count_answers(), hot.count_answers()), (4, 4));
    assert_eq!(stream_answers(&mut venue), 0, "it is still pending");
    venue.settle();
    assert_eq!((cold.count_answers(), hot.count_answers()), (6, 6));
    assert_eq!(stream_answers(&mut venue), 1);
}

#[test]
fn the_cold_lane_comes_first_once_behind_an_order_that_has_shut_it_out() {
    let mut venue = slow_matching();
    let mut hot = venue.trader("hot", 1);
    let mut cold = venue.cold("cold", Role::Admin);
    begin_round(&mut hot);
    venue.duty.turn();
    while venue.duty.core().pending_head().is_some() {
        venue.duty.turn();
    }
    hot.read();
    for cold_first in [true, false, false] {
        hot.send(limit(1, Side::Buy, 1, 1));
        cold.send(deposit());
        venue.duty.turn();
        let [of_hot, of_cold] =
            [&mut hot, &mut cold].map(|client| client.read().last().unwrap().envelope.position);
        assert_eq!(of_cold < of_hot, cold_first, "{of_cold} and {of_hot}");
    }
}

/// The one over a socket has the turns between, in which no hot session is polled.
#[test]
fn hot_sessions_take_turns_while_each_of_them_and_one_over_a_socket_keep_work_pending() {
    let mut venue = slow_matching();
    let mut hot = [("one", 1), ("two", 2)].map(|(name, key)| (venue.trader(name, key), 0, 0));
    let mut stream = streams::open(&mut venue, "stream", 3, 0);
    let mut of_stream = 0;
    for _ in 0..300 {
        for (client, sent, _) in &mut hot {
            keep_pending(client, sent);
        }
        (0..8).for_each(|number| assert!(stream.send(&mut venue, of_round(number))));
        venue.duty.turn();
        for (client, _, answers) in &mut hot {
            *answers += client.count_answers();
        }
        of_stream += stream_answers(&mut venue);
    }
    let answers = hot.map(|(_, _, answers)| answers);
    assert!(answers.iter().all(|&count| count > 100), "{answers:?}");
    assert!(of_stream > 100, "{of_stream} of the stream's");
}

#[test]
fn sessions_over_sockets_are_served_while_a_hot_session_keeps_work_pending() {
    let mut venue = slow_matching();
    let mut busy = venue.trader("busy", 1);
    let mut hot = venue.trader("hot", 2);
    let mut stream = streams::open(&mut venue, "stream", 3, 0);
    let (mut sent, mut answers, mut of_stream) = (0, 0, 0);
    for turn in 1..=300 {
        keep_pending(&mut busy, &mut sent);
        while hot.try_send(limit(1, Side::Buy, 1, 1)) {}
        stream.send(&mut venue, limit(1, Side::Buy, 1, 1));
        venue.duty.turn();
        busy.read();
        answers += hot.count_answers();
        of_stream += streams::read(&mut venue).len();
        // Three turns finish an aggressor, and in each second such round it comes first.
        assert!(of_stream >= turn / 12, "{of_stream} in {turn} turns");
    }
    assert!(answers > 100, "{answers} answers of the other hot session");
}

#[test]
fn an_order_judged_by_levels_for_nothing_is_the_last_of_its_sender_in_a_turn() {
    let mut venue = Venue::new("messages_per_turn = 8", "");
    let mut maker = venue.trader("maker", 1);
    maker.send(limit(0, Side::Sell, 5_000_000_000, 1));
    venue.settle();
    maker.read();
    let resting = limit(0, Side::Buy, 1, 1);
    let market = NewOrder { order_type: OrderType::Market.to_wire(), ..resting };
    // Dearer than all that the account has.
    let market = NewOrder { price: 0, time_in_force: 0, ..market };
    let tested = NewOrder { flags: ORDER_VALIDATE_ONLY, ..limit(0, Side::Buy, 1, 1) };
    let fill_or_kill = TimeInForce::Fok.to_wire();
    let mut taker = venue.trader("taker", 2);
    let mut stream = streams::open(&mut venue, "stream", 3, 0);
    for (order, share) in [
        (market, 1),
        (NewOrder { time_in_force: fill_or_kill, ..tested }, 1),
        // Accepted, and killed.
        (NewOrder { time_in_force: fill_or_kill, ..resting }, 1),
        (tested, 8),
        (resting, 8),
    ] {
        for _ in 0..8 {
            taker.send(order);
            stream.send(&mut venue, order);
        }
        venue.duty.turn();
        let answered = [taker.count_answers(), stream_answers(&mut venue)];
        assert_eq!(answered, [share; 2], "{order:?}");
        venue.settle();
        let answered = [taker.count_answers(), stream_answers(&mut venue)];
        assert_eq!(answered, [8 - share; 2], "{order:?}");
    }
}

fn stream_answers(venue: &mut Venue) -> u64 {
    let read = streams::read(venue);
    read.iter().filter(|(envelope, _)| envelope.flags & ENVELOPE_TERMINAL != 0).count() as u64
}
