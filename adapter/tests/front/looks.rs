//! A worker that never sleeps still has the service look for what requests wait for.

#![allow(clippy::unwrap_used, reason = "a failed step of a test should panic")]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use touchline_adapter::front::{Front, FrontConfig};
use touchline_adapter::http::{Completion, Reply, Request, Service};

use crate::get;
use crate::toy::Client;

/// Answers what waits only when a worker looks. It does not listen to workers that sleep, so that in its
/// eyes none ever does.
#[derive(Default)]
struct Found(Mutex<Vec<Completion>>);

impl Service for Found {
    fn call(&self, request: Request, done: Completion) {
        match request.path.as_str() {
            "/waits" => self.0.lock().unwrap().push(done),
            _ => done.send(Reply::empty(200)),
        }
    }

    fn worker_looks(&self) {
        for done in self.0.lock().unwrap().drain(..) {
            done.send(Reply::empty(202));
        }
    }
}

#[test]
fn each_request_has_the_service_look_for_what_others_wait_for() {
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let config = FrontConfig { workers: 1, ..FrontConfig::new(address) };
    let found = Arc::new(Found::default());
    let front = Front::start(config, Arc::clone(&found) as Arc<dyn Service>).unwrap();
    let (mut waits, mut busy) =
        (Client::connect(front.local_addr()), Client::connect(front.local_addr()));
    for _ in 0..3 {
        waits.send(get("/waits"));
        while found.0.lock().unwrap().is_empty() {
            std::thread::yield_now();
        }
        busy.send(get("/"));
        assert_eq!(waits.answer().status, 202);
        assert_eq!(busy.answer().status, 200);
    }
}
