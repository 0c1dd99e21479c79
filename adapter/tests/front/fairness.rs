//! One worker, two connections: the one that sends a lot at once must not keep the other waiting.

#![allow(clippy::unwrap_used, reason = "a failed step of a test should panic")]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, mpsc};

use touchline_adapter::front::{Front, FrontConfig};
use touchline_adapter::http::{Completion, Reply, Request, Service};

use crate::get;
use crate::toy::{Client, PATIENCE};

/// Requests that are sent at once.
const PIPELINED: usize = 600;

/// Notes each path; `/gate` holds the whole worker until the test opens.
struct Gate {
    paths: Mutex<Vec<String>>,
    reached: mpsc::Sender<()>,
    opened: Mutex<mpsc::Receiver<()>>,
}

impl Service for Gate {
    fn call(&self, request: Request, done: Completion) {
        if request.path == "/gate" {
            self.reached.send(()).unwrap();
            self.opened.lock().unwrap().recv_timeout(PATIENCE).unwrap();
        }
        self.paths.lock().unwrap().push(request.path);
        done.send(Reply::empty(200));
    }
}

#[test]
fn a_pipelining_connection_makes_way_for_others() {
    let (reached_sender, reached) = mpsc::channel();
    let (open, opened) = mpsc::channel();
    let gate = Arc::new(Gate {
        paths: Mutex::default(),
        reached: reached_sender,
        opened: Mutex::new(opened),
    });
    let config = FrontConfig::new(SocketAddr::from(([127, 0, 0, 1], 0)));
    let front = Front::start(config, gate.clone()).unwrap();
    let mut greedy = Client::connect(front.local_addr());
    let mut other = Client::connect(front.local_addr());
    for client in [&mut greedy, &mut other] {
        client.send(get("/ready"));
        assert_eq!(client.answer().status, 200);
    }
    greedy.send(get("/gate"));
    reached.recv_timeout(PATIENCE).unwrap();
    greedy.send(get("/greedy").repeat(PIPELINED));
    other.send(get("/other"));
    open.send(()).unwrap();
    assert_eq!(other.answer().status, 200);
    for _ in 0..=PIPELINED {
        assert_eq!(greedy.answer().status, 200);
    }
    let paths = gate.paths.lock().unwrap();
    let before = paths.iter().take_while(|path| *path != "/other").count();
    assert!(before < 12, "{before} requests came first");
}
