//! What sessions over sockets are told when the engine is stopped.

use super::binary::{KEY_A, KEY_B};
use super::process::WATCHDOG;
use super::stream_client::{Member, limit, options, over_epoll, tcp, unix, venue};
use crate::patience::Wait;
use rustix::process::Signal;
use std::thread;
use std::time::Duration;
use touchline_protocol::client::{Notice, ReceiveError, SendError};
use touchline_protocol::message::command::NewOrder;
use touchline_protocol::message::enums::{CloseReason, Side, TimeInForce};
use touchline_protocol::units::KeyId;

/// What a session is told of the engine's end, besides replies.
type LastWords = Vec<Notice>;

/// Sends as much as the connection takes, if it is to send at all, and reads to the end of the connection.
fn hears(mut member: Member, key: u64, sends: bool, on_answer: impl FnOnce()) -> LastWords {
    let client = &mut member.client;
    let (mut notices, mut on_answer, mut may_send) = (Vec::new(), Some(on_answer), sends);
    let wait = Wait::begin();
    loop {
        while may_send {
            let time_in_force = TimeInForce::Ioc.to_wire();
            let mut order = NewOrder { time_in_force, ..limit(Side::Buy, 10, 1) };
            order.command.key_id = KeyId(key);
            match client.sender().send(&mut order) {
                Ok(_) => {}
                Err(SendError::Full) => break,
                Err(_) => may_send = false,
            }
        }
        match client.receiver().poll() {
            Ok(Some(_)) => {
                if let Some(answered) = on_answer.take() {
                    answered();
                }
            }
            Ok(None) => client.receiver().wait(Duration::from_millis(1)),
            Err(ReceiveError::Disconnected) => break,
            Err(error) => panic!("{error}"),
        }
        notices.extend(std::iter::from_fn(|| client.receiver().next_notice()));
        wait.go_on("the connection goes on");
    }
    notices.extend(std::iter::from_fn(|| client.receiver().next_notice()));
    notices
}

#[test]
fn a_stopped_engine_says_so_to_every_session_that_reads() {
    let mut venue = venue(&[]);
    let (a, b) = (venue.key_a(), venue.key_b());
    let (answered, answers) = std::sync::mpsc::channel();
    let mut hearing = Vec::new();
    let mut deaf = Member::connect(tcp(&venue), "deaf", (KEY_B, &b));
    for (name, endpoint) in [("tcp", tcp(&venue)), ("unix", unix(&venue))] {
        for sends in [false, true] {
            let wishes = options(endpoint.clone(), &format!("{name}-{sends}"), (KEY_A, &a));
            let mut member = Member::open(&wishes).expect("an honest client is let in");
            member.assert_alive();
            let answered = answered.clone();
            let hears =
                move || hears(member, KEY_A, sends, move || answered.send(()).expect("it waits"));
            hearing.push((name, sends, thread::spawn(hears)));
        }
    }
    for _ in 0..2 {
        answers.recv_timeout(WATCHDOG).expect("those that send are answered");
    }
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
