//! What a session is owed when the log behind it fails, and behind a pause of the gateway; beside others in
//! [`beside`].

mod beside;

use super::*;
use crate::gateway;
use crate::gateway::StreamRings;
use crate::gateway::tests::{Failing, log_in, peers};
use crate::log::Log;
use std::sync::Arc;
use tempfile::TempDir;
use touchline_protocol::message::command::{CancelOrder, CommandHeader};
use touchline_protocol::message::decode::{ENVELOPED_BYTES_MAX, enclose};
use touchline_protocol::message::event::{Done, ENVELOPE_TERMINAL, Envelope};
use touchline_protocol::message::handshake::ACKNOWLEDGE_DURABLE;

const TICKET: usize = 3;

/// A gateway with one session, which waits for the disk, and the test for a duty thread.
struct Site {
    gateway: Gateway,
    duty: SessionEnd,
    log: Log,
    _folder: TempDir,
}

impl Site {
    fn open(unsent_bytes: usize, heartbeat: Duration) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let log = log_in(folder.path());
        let (mail, StreamRings { gateway: end, duty }) = gateway::mail().expect("memory for rings");
        let options = Arc::new(peers::options(folder.path()));
        let backend = Box::new(Failing { turns: u32::MAX });
        let mut gateway =
            Gateway::new(options, log.control.clone(), backend, mail, end).expect("it starts");
        let started =
            SessionStarted { session: SessionId(1), epoch: Epoch(1), ..Default::default() };
        let terms = Terms { acknowledgement: ACKNOWLEDGE_DURABLE, heartbeat, unsent_bytes };
        let durable = log.control.durable();
        gateway.sessions.open(TICKET, &started, terms, (durable..durable, gateway.now));
        Self { gateway, duty, log, _folder: folder }
    }
}

/// One more command comes of the session; gives how many the duty thread then has.
fn pass_on_one(gateway: &mut Gateway, duty: &mut SessionEnd) -> usize {
    let command = CommandHeader { session: SessionId(1), epoch: Epoch(1), ..Default::default() };
    let command = CancelOrder { command, ..Default::default() };
    let stream = gateway.sessions.streams.get_mut(&TICKET).expect("it is open");
    assert!(stream.received(bytemuck::bytes_of(&command), gateway.now));
    gateway.sessions.mark_ready(TICKET);
    passed_on(gateway, duty)
}

/// The rest of a turn; gives how many commands the duty thread has of it.
fn passed_on(gateway: &mut Gateway, duty: &mut SessionEnd) -> usize {
    gateway.pass_on();
    gateway.flush();
    let mut buffer = MessageBuffer::default();
    let mut count = 0;
    while duty.input.poll(&mut buffer).expect("an honest peer").is_some() {
        count += 1;
    }
    duty.input.release();
    count
}

/// Its socket says nothing more: the client waits for answers to what it has sent.
#[test]
fn what_waits_behind_answers_that_a_failed_disk_has_taken_along_goes_on_at_once() {
    let mut site = Site::open(4096, Duration::from_secs(60));
    let Site { gateway, duty, log, .. } = &mut site;

    // Answers that wait for a disk until there is no room for one more.
    let position = Position(log.control.durable().0 + 64);
    let mut answered = 0;
    while pass_on_one(gateway, duty) == 1 {
        let envelope = Envelope { position, flags: ENVELOPE_TERMINAL, ..Default::default() };
        let mut enclosed = [0; ENVELOPED_BYTES_MAX];
        let done = Done::default();
        let length = enclose(&envelope, bytemuck::bytes_of(&done), &mut enclosed);
        let enclosed = &enclosed[..length.expect("it is short")];
        let stream = gateway.sessions.streams.get_mut(&TICKET).expect("it is open");
        stream.put(&envelope, enclosed);
        answered += 1;
        assert!(answered < 100, "there is room without end");
    }
    assert!(answered > 0, "there is room for none");
    assert_eq!(passed_on(gateway, duty), 0, "it waits");

    log.control.fail("the test says so");
    gateway.look_at_log();
    assert_eq!(passed_on(gateway, duty), 1, "who decides it is told of it");

    // Who comes later waits for no more either.
    let session = SessionId(2);
    let started = SessionStarted { session, epoch: Epoch(1), ..Default::default() };
    let heartbeat = Duration::from_secs(60);
    let terms = Terms { acknowledgement: ACKNOWLEDGE_DURABLE, heartbeat, unsent_bytes: 4096 };
    let durable = log.control.durable();
    gateway.sessions.open(TICKET + 1, &started, terms, (durable..durable, gateway.now));
    assert_eq!(gateway.sessions.streams[&(TICKET + 1)].end(), Some(durable));
    site.log.keeper.stop();
}

/// Nothing of it is read in the turn that ends the pause: the kernel has it.
#[test]
fn a_pause_of_the_gateway_is_no_silence_and_a_silence_is_one() {
    // Three of them are longer than a turn may be late, and no pause.
    let mut site = Site::open(4096, Duration::from_millis(300));
    let begin = site.gateway.now;
    let mut is_given_up_at = |milliseconds| {
        let now = begin + Duration::from_millis(milliseconds);
        site.gateway.turn_at(now, Vec::new()).expect("a turn");
        site.gateway.sessions.streams[&TICKET].is_closing()
    };
    assert!(!is_given_up_at(0));
    assert!(!is_given_up_at(2_000), "the gateway did not listen");
    assert!(!is_given_up_at(2_250), "it has listened for no more than 750 ms");
    assert!(is_given_up_at(2_500), "it is silent");
    site.log.keeper.stop();
}
