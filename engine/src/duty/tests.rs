//! Who is served first of those who have sent something while there was nothing to do.

use super::clients::Terms;
use super::rate::RateLimit;
use super::*;
use crate::clock::SystemTime;
use crate::config::Wait;
use crate::gateway;
use crate::log::{Environment, KeeperHandle, LogOptions, open_in};
use crate::mailbox::Detail;
use crate::recovery::NothingToReplay;
use std::path::Path;
use touchline_protocol::message::command::CancelOrder;
use touchline_protocol::message::enums::{Lane, Role};
use touchline_protocol::ring::RingCapacities;
use touchline_protocol::ring::layout::MIN_SESSION_SLOTS;
use touchline_protocol::units::Position;

/// A duty thread over a log in a folder, and the ends of two clients whose sessions it serves.
fn serves_two(data: &Path) -> (Duty, KeeperHandle, [SessionEnd; 2]) {
    let environment = Environment::default();
    let log =
        open_in(&environment, &LogOptions::small(data), &mut NothingToReplay, &mut |_| {}).unwrap();
    let (mail, rings) = gateway::mail().unwrap();
    let mut duty = Duty::new(DutyOptions {
        core: Core::new(),
        writer: log.writer,
        clock: Clock::start(SystemTime, 0, false).unwrap(),
        mail,
        streams: rings.duty,
        stop: Arc::new(AtomicBool::new(false)),
        settings: EngineSection { wait: Wait::Spin, ..Default::default() },
    });
    let sizes = RingCapacities::new(MIN_SESSION_SLOTS, MIN_SESSION_SLOTS).unwrap();
    let clients = [1, 2].map(|session| {
        let (end, descriptors) = SessionEnd::create(sizes).unwrap();
        let terms = Terms {
            account: None,
            side: None,
            rate: RateLimit::new(0),
            awaits_disk: false,
            detail: Detail::Whole,
        };
        let (identity, kind) = ((SessionId(session), Epoch(1)), (Role::Trader, Lane::Hot));
        let connection = Connection::new(identity, kind, terms, Box::new(end), Position(0));
        duty.clients.connections.push(connection);
        SessionEnd::attach(&descriptors, sizes).unwrap()
    });
    (duty, log.keeper, clients)
}

#[test]
fn of_two_that_send_together_each_is_served_first_in_turns() {
    let folder = tempfile::tempdir().unwrap();
    let (mut duty, keeper, mut clients) = serves_two(folder.path());
    let found = |duty: &mut Duty| {
        [0, 1, 2, 3].map(|next| {
            duty.next_hot = next;
            assert!(duty.idle());
            duty.next_hot
        })
    };
    let mut send = |client: usize| {
        let command = bytemuck::bytes_of(&CancelOrder::default()).to_vec();
        clients[client].output.try_push(&command).unwrap();
    };
    assert_eq!(found(&mut duty), [0, 1, 2, 3], "nobody has sent anything");
    send(1);
    assert_eq!(found(&mut duty), [1; 4]);
    send(0);
    assert_eq!(found(&mut duty), [0, 1, 0, 1]);
    keeper.stop();
}

#[test]
fn whoever_comes_next_is_found_first() {
    let all = [true, false, true];
    let found = [0, 1, 2, 3, 4, usize::MAX].map(|from| first_from(&all, from, |one| *one));
    assert_eq!(found, [0, 2, 2, 0, 2, 0].map(Some));
    assert_eq!(first_from(&[false; 3], 1, |one| *one), None);
    assert_eq!(first_from(&[true; 0], 0, |one| *one), None);
}
