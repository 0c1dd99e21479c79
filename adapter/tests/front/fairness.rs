//! One worker, two connections: the one that sends or takes a lot at once must not keep the other waiting.

#![allow(clippy::unwrap_used, reason = "a failed step of a test should panic")]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, mpsc};

use bytes::Bytes;
use touchline_adapter::front::{Front, FrontConfig};
use touchline_adapter::http::{Completion, Reply, Request, Rest, Service};

use crate::get;
use crate::toy::{Client, PATIENCE};

/// Requests that are sent at once.
const PIPELINED: usize = 600;

/// Pieces of a long body.
const PIECES: usize = 600;

/// Notes each path, and each piece of a body; `/gate`, and the first piece of `/long`, hold the whole worker
/// until the test opens.
struct Gate {
    paths: Mutex<Vec<String>>,
    reached: mpsc::Sender<()>,
    opened: Mutex<mpsc::Receiver<()>>,
}

impl Gate {
    fn new() -> (Arc<Self>, mpsc::Receiver<()>, mpsc::Sender<()>) {
        let (reached, reached_receiver) = mpsc::channel();
        let (open, opened) = mpsc::channel();
        let gate = Self { paths: Mutex::default(), reached, opened: Mutex::new(opened) };
        (Arc::new(gate), reached_receiver, open)
    }

    fn hold(&self) {
        self.reached.send(()).unwrap();
        self.opened.lock().unwrap().recv_timeout(PATIENCE).unwrap();
    }

    /// What came in front of the request for `/other`.
    fn before_other(&self) -> usize {
        let paths = self.paths.lock().unwrap();
        paths.iter().take_while(|path| *path != "/other").count()
    }
}

/// Work that goes on with itself at once; its first step holds the worker.
fn step(gate: Arc<Gate>, number: usize, done: Completion) {
    if number == 0 {
        gate.hold();
    }
    gate.paths.lock().unwrap().push("step".to_owned());
    if number == PIECES {
        return done.send(Reply::empty(200));
    }
    done.resume(move |done| step(gate, number + 1, done));
}

/// The gate as a service.
struct Gated(Arc<Gate>);

impl Service for Gated {
    fn call(&self, request: Request, done: Completion) {
        let gate = Arc::clone(&self.0);
        if request.path == "/gate" {
            gate.hold();
        }
        if request.path == "/steps" {
            return step(gate, 0, done);
        }
        let is_long = request.path == "/long";
        gate.paths.lock().unwrap().push(request.path);
        if !is_long {
            return done.send(Reply::empty(200));
        }
        let mut pieces = 0;
        let rest = Rest::new(move || {
            if pieces == 0 {
                gate.hold();
            }
            pieces += 1;
            gate.paths.lock().unwrap().push("piece".to_owned());
            (pieces <= PIECES).then(|| Bytes::from_static(b"piece"))
        });
        done.send(Reply::empty(200).followed_by(rest));
    }
}

/// A greedy client's request holds the worker, which has `more` of its by then, and another client's, when it goes on.
/// Reads what the greedy client is answered, `answers` times, and gives how many things of its came before the other's.
fn before_other(path: &str, more: &str, answers: usize) -> usize {
    let (gate, reached, open) = Gate::new();
    let config = FrontConfig::new(SocketAddr::from(([127, 0, 0, 1], 0)));
    let front = Front::start(config, Arc::new(Gated(gate.clone()))).unwrap();
    let mut greedy = Client::connect(front.local_addr());
    let mut other = Client::connect(front.local_addr());
    for client in [&mut greedy, &mut other] {
        client.send(get("/ready"));
        assert_eq!(client.answer().status, 200);
    }
    greedy.send(get(path));
    reached.recv_timeout(PATIENCE).unwrap();
    greedy.send(more);
    other.send(get("/other"));
    open.send(()).unwrap();
    assert_eq!(other.answer().status, 200);
    for _ in 0..answers {
        assert_eq!(greedy.answer().status, 200);
    }
    gate.before_other()
}

#[test]
fn a_pipelining_connection_makes_way_for_others() {
    let before = before_other("/gate", &get("/greedy").repeat(PIPELINED), 1 + PIPELINED);
    assert!(before < 12, "{before} requests came first");
}

#[test]
fn a_long_body_makes_way_for_others() {
    let before = before_other("/long", "", 0);
    assert!(before < 12, "{before} pieces came first");
}

#[test]
fn work_in_steps_makes_way_for_others() {
    let before = before_other("/steps", "", 1);
    assert!(before < 12, "{before} steps came first");
}
