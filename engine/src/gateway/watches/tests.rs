//! Clients over rings that move and such that do not, as the gateway sees them. The duty thread is the test.

use super::super::service::Gateway;
use super::super::tests::{Failing, log_in, peers};
use super::super::{GatewayOptions, Mail, mail};
use crate::log::Log;
use crate::mailbox::{FromDuty, ToDuty};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use touchline_protocol::message::enums::CloseReason;
use touchline_protocol::message::event::SessionStarted;
use touchline_protocol::message::handshake::{Hello, Welcome};
use touchline_protocol::ring::{RingCapacities, SessionDescriptors, SessionEnd};
use touchline_protocol::shm::descriptors::receive_with_descriptors;
use touchline_protocol::units::{Epoch, KeyId, SessionId};

/// As often as the gateway looks.
const LOOK: Duration = Duration::from_millis(250);
/// Seconds of each interval here.
const INTERVAL: u8 = 2;

struct Site {
    gateway: Gateway,
    options: Arc<GatewayOptions>,
    mail: Arc<Mail>,
    log: Log,
    opened: u32,
    _streams: SessionEnd,
    _folder: TempDir,
}

/// A client that has its session.
struct Opened {
    socket: UnixStream,
    end: SessionEnd,
    /// The engine's end, which the duty thread has.
    engine: Option<Box<SessionEnd>>,
    session: SessionId,
}

impl Site {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (mail, rings) = mail().unwrap();
        let log = log_in(folder.path());
        let options = Arc::new(peers::options(folder.path()));
        let backend = Box::new(Failing { turns: u32::MAX });
        let (control, theirs) = (log.control.clone(), Arc::clone(&mail));
        let gateway =
            Gateway::new(Arc::clone(&options), control, backend, theirs, rings.gateway).unwrap();
        let (_streams, _folder) = (rings.duty, folder);
        Self { gateway, options, mail, log, opened: 0, _streams, _folder }
    }

    fn open(&mut self, heartbeat_seconds: u8) -> Opened {
        let wish = Hello { heartbeat_seconds, ..peers::hello(KeyId(0), 0) };
        let (socket, arrival) = peers::comes_with(&self.options, wish, 1);
        self.mail.arrivals.put(arrival);
        self.gateway.let_in_arrivals();
        let Some(ToDuty::Logon(letter)) = self.mail.to_duty.take() else { panic!("no logon") };
        let engine = letter.asked.take().unwrap().end;
        self.opened += 1;
        let (session, epoch) = (SessionId(self.opened), Epoch(1));
        let started = SessionStarted { session, epoch, ..Default::default() };
        let position = self.log.control.durable();
        let (ticket, logon) = (letter.ticket, position..position);
        self.mail.tell_gateway(FromDuty::Opened { ticket, started, logon });
        self.gateway.turn_at(self.gateway.now, Vec::new()).unwrap();

        let mut welcome = Welcome::default();
        let bytes = bytemuck::bytes_of_mut(&mut welcome);
        let (_, descriptors) = receive_with_descriptors(&socket, bytes, 3).unwrap();
        assert_eq!(welcome.heartbeat_seconds, u32::from(heartbeat_seconds));
        let [client_pages, engine_pages, _] = <[OwnedFd; 3]>::try_from(descriptors).unwrap();
        let sizes = RingCapacities::new(1024, 1024).unwrap();
        let descriptors = SessionDescriptors { client_pages, engine_pages };
        let end = SessionEnd::attach(&descriptors, sizes).unwrap();
        Opened { socket, end, engine, session }
    }

    /// The gateway looks so long behind the last time; gives the sessions that are to end for their silence.
    fn look_after(&mut self, time: Duration) -> Vec<SessionId> {
        self.gateway.turn_at(self.gateway.now + time, Vec::new()).unwrap();
        let letters = std::iter::from_fn(|| self.mail.to_duty.take());
        let silent = letters.map(|letter| match letter {
            ToDuty::Ended { session, epoch: Epoch(1), is_silent: true } => session,
            _ => panic!("another letter"),
        });
        silent.collect()
    }

    /// How many looks later somebody is silent, and who; `None` if nobody is within so many.
    fn looks_until_silence(&mut self, most: u32) -> Option<(u32, Vec<SessionId>)> {
        (1..=most).find_map(|looks| {
            let silent = self.look_after(LOOK);
            (!silent.is_empty()).then_some((looks, silent))
        })
    }

    fn end(self) {
        self.log.keeper.stop();
    }
}

#[test]
fn who_asked_to_be_watched_and_stands_still_for_three_intervals_is_ended_once() {
    let mut site = Site::new();
    let [still, _unwatched] = [INTERVAL, 0].map(|seconds| site.open(seconds));
    let [mut sends, moves] = [INTERVAL; 2].map(|seconds| site.open(seconds));
    for round in 0..3 {
        assert_eq!(site.looks_until_silence(7), None, "round {round}");
        // Once in an interval, and no more.
        let silent = site.look_after(LOOK);
        assert_eq!(silent, if round < 2 { vec![] } else { vec![still.session] });
        sends.end.output.try_push(&[0; 8]).unwrap();
        moves.end.alive.advance();
    }
    // From the look that has seen the last move on.
    let last = Some((25, vec![sends.session, moves.session]));
    let found = site.looks_until_silence(30).map(|(looks, mut silent)| {
        silent.sort_unstable();
        (looks, silent)
    });
    assert_eq!(found, last);
    assert_eq!(site.looks_until_silence(1000), None, "who asked for nothing stays for ever");
    site.end();
}

#[test]
fn a_pause_of_the_engine_is_no_silence_of_who_is_watched() {
    let mut site = Site::new();
    let still = site.open(INTERVAL);
    assert_eq!(site.looks_until_silence(23), None);
    // Half a second of it is no pause.
    assert_eq!(site.look_after(Duration::from_secs(600) + LOOK), [still.session]);

    let still = site.open(INTERVAL);
    assert_eq!(site.looks_until_silence(20), None);
    assert_eq!(site.look_after(Duration::from_secs(600)), []);
    assert_eq!(site.looks_until_silence(10), Some((2, vec![still.session])));
    site.end();
}

#[test]
fn whose_connection_has_ended_is_watched_no_more() {
    let mut site = Site::new();
    let [mut ended, mut left] = [INTERVAL; 2].map(|seconds| site.open(seconds));
    let (session, epoch, why) = (ended.session, Epoch(1), String::new());
    let (reason, end) = (CloseReason::LoggedOut, ended.engine.take());
    site.mail.tell_gateway(FromDuty::Closed { session, epoch, reason, why, end });
    site.gateway.remove(1);
    let letter = site.mail.to_duty.take();
    assert!(matches!(letter, Some(ToDuty::Ended { is_silent: false, .. })), "its socket closed");
    assert_eq!(site.look_after(LOOK), []);
    assert!(site.gateway.watches.is_empty(), "their memory is kept");
    assert_eq!(site.looks_until_silence(100), None);
    for client in [&mut ended, &mut left] {
        assert_eq!(client.socket.read(&mut [0; 8]).unwrap(), 0, "{}", client.session);
    }
    site.end();
}
