//! A kernel that refuses what the gateway asks of it.

use super::backend::Happened;
use super::*;
use crate::log::{self, Environment, LogOptions, WindowPlace};
use crate::recovery::NothingToReplay;
use std::ops::Range;

/// Sockets of which nothing is heard for so many turns, and then that they are no more.
struct Failing {
    turns: u32,
}

impl Backend for Failing {
    fn name(&self) -> &'static str {
        "failing"
    }

    fn listen(&mut self, _: Listener, _: OwnedFd) -> io::Result<()> {
        Ok(())
    }

    fn accept_again(&mut self, _: Listener) {}

    fn watch(&mut self, _: usize, _: Arc<OwnedFd>) -> io::Result<()> {
        Ok(())
    }

    fn hold(&mut self, _: usize, _: bool) {}

    fn send(&mut self, _: usize, _: Vec<u8>, _: &mut Vec<Happened>) {}

    fn forget(&mut self, _: usize) {}

    fn turn(&mut self, _: Duration, _: &mut Vec<Happened>) -> io::Result<()> {
        self.turns = self
            .turns
            .checked_sub(1)
            .ok_or_else(|| io::Error::other("the kernel refuses a submission"))?;
        Ok(())
    }

    fn bytes(&self, _: &Range<usize>) -> &[u8] {
        &[]
    }
}

/// Starts gateway and door over backends that fail after so many turns.
fn fails(turns_of_gateway: u32, turns_of_door: u32) {
    let folder = tempfile::tempdir().expect("a folder");
    let options = LogOptions {
        data: folder.path().to_owned(),
        window_place: WindowPlace::Data,
        window_bytes: Some(16 << 20),
        segment_bytes: 4 << 20,
        gather: Duration::ZERO,
        accept_loss: false,
    };
    let environment = Environment::default();
    let log =
        log::open_in(&environment, &options, &mut NothingToReplay, &mut |_| {}).expect("a new log");
    let (mail, rings) = mail().expect("memory for the rings");
    let engine_stop = Arc::new(AtomicBool::new(false));
    let options = GatewayOptions {
        socket: folder.path().join("engine.sock"),
        master_key: MasterKey::load_or_create(&folder.path().join("master.key")).expect("a key"),
        control: fs::File::open(log.control.path()).expect("the control page").into(),
        log_id: [0; 16],
        incarnation: Incarnation(1),
        connections_max: 1,
        feed: None,
        settings: GatewaySection::default(),
        reader_stall: Duration::from_secs(5),
        data: folder.path().to_owned(),
        engine_stop: Arc::clone(&engine_stop),
    };
    let backends = Backends {
        gateway: Box::new(Failing { turns: turns_of_gateway }),
        door: Box::new(Failing { turns: turns_of_door }),
        at_door: Arc::new(Bell::new().expect("a bell")),
    };
    let gateway =
        start_over(backends, options, log.control.clone(), Arc::clone(&mail), rings.gateway)
            .expect("it starts");
    // What the duty thread sleeps on: it is woken to find that it is to stop.
    let mut waiter = touchline_protocol::wait::Waiter::new(Default::default());
    let stopped = || engine_stop.load(Ordering::Acquire);
    let line = [mail.duty_signal.line()].into_iter();
    assert!(waiter.wait_until(line, Duration::from_secs(600), stopped));
    let error = gateway.stop().expect_err("it ended by itself");
    assert_eq!(error.to_string(), "the kernel refuses a submission");
    log.keeper.stop();
}

#[test]
fn a_gateway_whose_sockets_fail_ends_the_engine_and_says_why() {
    fails(100, u32::MAX);
}

#[test]
fn a_door_whose_sockets_fail_ends_the_engine_and_says_why() {
    fails(u32::MAX, 100);
}
