//! What sessions over sockets are told when the engine is stopped.

use super::binary::{KEY_A, KEY_B};
use super::stream_client::{Member, limit, options, over_epoll, tcp, unix, venue};
use crate::patience::Wait;
use rustix::process::Signal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use touchline_protocol::client::{Client, Notice, ReceiveError, SendError};
use touchline_protocol::message::command::NewOrder;
use touchline_protocol::message::enums::{CloseReason, Side, TimeInForce};
use touchline_protocol::units::KeyId;

/// What a session is told of the engine's end, besides replies.
type LastWords = Vec<Notice>;

/// Orders sent whenever all that came is read: an engine that ends drops what comes as fast as it is sent, and who
/// sends until there is no room for more would not read meanwhile.
const SENT_AT_ONCE: usize = 64;

/// Sends so many orders, or as many as there is room for.
fn send_some(client: &mut Client, count: usize) -> Result<(), SendError> {
    for _ in 0..count {
        let time_in_force = TimeInForce::Ioc.to_wire();
        let mut order = NewOrder { time_in_force, ..limit(Side::Buy, 10, 1) };
        order.command.key_id = KeyId(KEY_A);
        client.sender().send(&mut order)?;
    }
    Ok(())
}

/// Sends until no more is taken, since nobody reads the answers.
fn fill(client: &mut Client) {
    let wait = Wait::begin();
    while send_some(client, usize::MAX) != Err(SendError::Full) {
        wait.go_on("it is never full");
    }
}

/// Reads to the end of the connection all that comes. Who sends begins when the engine is `ending`, as others hear, and
/// sends on whenever nothing comes.
fn hears(mut member: Member, sends: bool, ending: &AtomicBool) -> LastWords {
    let client = &mut member.client;
    let (mut notices, mut may_send) = (Vec::new(), sends);
    let wait = Wait::begin();
    while sends && !ending.load(Ordering::Relaxed) {
        wait.go_on("nobody hears of the end");
    }
    loop {
        match client.receiver().poll() {
            Ok(Some(_)) => {}
            Ok(None) => {
                let fits = |sent| matches!(sent, Ok(()) | Err(SendError::Full));
                may_send = may_send && fits(send_some(client, SENT_AT_ONCE));
                client.receiver().wait(Duration::from_millis(1));
            }
            Err(ReceiveError::Disconnected) => break,
            Err(error) => panic!("{error}"),
        }
        notices.extend(std::iter::from_fn(|| client.receiver().next_notice()));
        wait.go_on("the connection goes on");
    }
    ending.store(true, Ordering::Relaxed);
    notices.extend(std::iter::from_fn(|| client.receiver().next_notice()));
    notices
}

#[test]
fn a_stopped_engine_says_so_to_every_session_that_reads() {
    let mut venue = venue(&[]);
    let (a, b) = (venue.key_a(), venue.key_b());
    let mut deaf = Member::connect(tcp(&venue), "deaf", (KEY_B, &b));
    let mut members = Vec::new();
    for (name, endpoint) in [("tcp", tcp(&venue)), ("unix", unix(&venue))] {
        for sends in [false, true] {
            let wishes = options(endpoint.clone(), &format!("{name}-{sends}"), (KEY_A, &a));
            let mut member = Member::open(&wishes).expect("an honest client is let in");
            member.assert_alive();
            members.push((name, sends, member));
        }
    }
    // The sockets are full both ways when the engine ends.
    members.iter_mut().filter(|(_, sends, _)| *sends).for_each(|(.., one)| fill(&mut one.client));
    let ending = Arc::new(AtomicBool::new(false));
    let hear = |(name, sends, member)| {
        let ending = Arc::clone(&ending);
        (name, sends, thread::spawn(move || hears(member, sends, &ending)))
    };
    let hearing = members.into_iter().map(hear).collect::<Vec<_>>();
    assert!(venue.stop_up(Signal::TERM).success());
    for (name, sends, one) in hearing {
        let told = crate::patience::join(one, "the end of a connection");
        let closed = Notice::Closed(Some(CloseReason::EngineStopped));
        assert_eq!(told, [closed], "over {name}, sending: {sends}");
    }
    deaf.client.receiver().poll().ok();
    assert_eq!(
        deaf.client.receiver().next_notice(),
        Some(Notice::Closed(Some(CloseReason::EngineStopped))),
        "who reads later only has it in its socket"
    );
}

over_epoll!(a_stopped_engine_says_so_to_every_session_that_reads);
