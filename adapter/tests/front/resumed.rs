//! Work that comes back to the thread of its connection, on both fronts.

#![allow(clippy::unwrap_used, reason = "a failed step of a test should panic")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use touchline_adapter::front::{Front, FrontConfig, FrontKind};
use touchline_adapter::http::{Completion, Reply, Request, Service};

use crate::get;
use crate::toy::Client;

/// Finds out on another thread what a request waits for, and has the rest of its work done where it came
/// in.
struct Elsewhere;

impl Service for Elsewhere {
    fn call(&self, request: Request, done: Completion) {
        if request.path == "/at-once" {
            return done.send(here());
        }
        thread::spawn(move || {
            done.resume(move |done| match request.path.as_str() {
                "/twice" => done.resume(|done| done.send(here())),
                "/panic" => panic!("asked to"),
                "/send-then-panic" => {
                    done.send(here());
                    panic!("asked to");
                }
                "/drop" => drop(done),
                _ => done.send(here()),
            });
        });
    }
}

fn here() -> Reply {
    Reply::with_type(200, "text/plain", format!("{:?}", thread::current().id()))
}

#[test]
fn work_is_resumed_on_the_thread_of_its_connection() {
    for kind in [FrontKind::Hyper, FrontKind::May] {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let config = FrontConfig { kind, ..FrontConfig::new(address) };
        let front = Front::start(config, Arc::new(Elsewhere)).unwrap();
        let mut client = Client::connect(front.local_addr());
        let mut ask = |path: &str| {
            client.send(get(path));
            client.answer()
        };
        let own_thread = ask("/at-once").body;
        for (path, status) in [
            ("/", 200),
            ("/twice", 200),
            ("/panic", 500),
            ("/send-then-panic", 200),
            ("/drop", 500),
            ("/", 200),
        ] {
            let answer = ask(path);
            assert_eq!(answer.status, status, "{kind:?} {path}");
            assert!(status != 200 || answer.body == own_thread, "{kind:?} {path}: {}", answer.body);
        }
    }
}
