//! A worker that never sleeps still has the service look for what requests wait for.

#![allow(clippy::unwrap_used, reason = "a failed step of a test should panic")]

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Instant;

use touchline_adapter::front::{Front, FrontConfig, FrontHandle};
use touchline_adapter::http::{Completion, Reply, Request, Rest, Service};

use crate::get;
use crate::patience::{PATIENCE, join};
use crate::toy::{Client, wait_for};

/// Answers what waits only when a worker looks. It does not listen to workers that sleep, so that in its
/// eyes none ever does.
#[derive(Default)]
struct Found {
    waiting: Mutex<Vec<Completion>>,
    /// What waits has been found.
    is_found: Arc<AtomicBool>,
}

impl Service for Found {
    fn call(&self, request: Request, done: Completion) {
        match request.path.as_str() {
            "/waits" => self.waiting.lock().unwrap().push(done),
            "/long" => {
                let is_found = Arc::clone(&self.is_found);
                // Not without end if the other request is never answered.
                let begin = Instant::now();
                let is_over = move || is_found.load(Ordering::SeqCst) || begin.elapsed() > PATIENCE;
                let more = move || (!is_over()).then(|| vec![b'x'; 100].into());
                done.send(Reply::empty(200).followed_by(Rest::new(more)));
            }
            _ => done.send(Reply::empty(200)),
        }
    }

    fn worker_looks(&self) {
        for done in self.waiting.lock().unwrap().drain(..) {
            done.send(Reply::empty(202));
            self.is_found.store(true, Ordering::SeqCst);
        }
    }
}

fn start() -> (FrontHandle, Arc<Found>) {
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let config = FrontConfig { workers: 1, ..FrontConfig::new(address) };
    let found = Arc::new(Found::default());
    (Front::start(config, Arc::clone(&found) as Arc<dyn Service>).unwrap(), found)
}

#[test]
fn each_request_has_the_service_look_for_what_others_wait_for() {
    let (front, found) = start();
    let (mut waits, mut busy) =
        (Client::connect(front.local_addr()), Client::connect(front.local_addr()));
    for _ in 0..3 {
        waits.send(get("/waits"));
        wait_for("the request", || !found.waiting.lock().unwrap().is_empty());
        busy.send(get("/"));
        assert_eq!(waits.answer().status, 202);
        assert_eq!(busy.answer().status, 200);
    }
}

/// The long answer ends when the other request is answered, which nobody else looks for meanwhile.
#[test]
fn each_piece_of_a_long_answer_has_the_service_look_for_what_others_wait_for() {
    let (front, _found) = start();
    let (mut waits, mut busy) =
        (Client::connect(front.local_addr()), Client::connect(front.local_addr()));
    busy.send(get("/long"));
    let reader = std::thread::spawn(move || busy.chunked_answer().status);
    waits.send(get("/waits"));
    assert_eq!(waits.answer().status, 202);
    assert_eq!(join(reader, "the long answer"), 200);
}

/// Notes what it is told of its worker, and what it has that worker do.
struct Noted {
    notes: Arc<Mutex<Vec<&'static str>>>,
    resumes: mpsc::Sender<Completion>,
}

impl Noted {
    fn note(&self, what: &'static str) {
        self.notes.lock().unwrap().push(what);
    }
}

impl Service for Noted {
    fn call(&self, request: Request, done: Completion) {
        self.note("call");
        let notes = Arc::clone(&self.notes);
        if request.path == "/waits" {
            return self.resumes.send(done).unwrap();
        }
        let mut left = 2;
        let rest = Rest::new(move || {
            notes.lock().unwrap().push("piece");
            left -= 1;
            (left >= 0).then(|| b"x".as_slice().into())
        });
        done.send(Reply::empty(200).followed_by(rest));
    }

    fn worker_looks(&self) {
        self.note("looks");
    }

    fn worker_turns(&self) {
        self.note("turns");
    }
}

/// The notes of one request.
fn notes_of(method: &str, path: &str) -> Vec<&'static str> {
    let notes = Arc::<Mutex<Vec<_>>>::default();
    let (resumes, resumed) = mpsc::channel::<Completion>();
    let service = Noted { notes: Arc::clone(&notes), resumes };
    let config = FrontConfig::new(SocketAddr::from(([127, 0, 0, 1], 0)));
    let front = Front::start(config, Arc::new(service)).unwrap();
    let mut client = Client::connect(front.local_addr());
    client.send(format!("{method} {path} HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n"));
    if path == "/waits" {
        let work_notes = Arc::clone(&notes);
        resumed.recv_timeout(PATIENCE).unwrap().resume(move |done| {
            work_notes.lock().unwrap().push("work");
            done.send(Reply::empty(200));
        });
        assert_eq!(client.answer().status, 200);
    } else {
        assert_eq!(client.chunked_answer().status, 200);
    }
    notes.lock().unwrap().clone()
}

#[test]
fn what_may_take_long_has_the_service_send_off_what_it_holds_back() {
    let short = ["looks", "call", "looks", "work"];
    assert_eq!(notes_of("POST", "/waits"), short, "an order, and the answer to it");
    let long = ["turns", "looks", "call", "turns", "looks", "work"];
    assert_eq!(notes_of("GET", "/waits"), long, "also when it has waited for what it reads");
    assert_eq!(notes_of("PATCH", "/waits"), long);
    let answered_at_length = ["looks", "call", "turns", "looks", "work"];
    assert_eq!(notes_of("DELETE", "/waits"), answered_at_length, "of thousands of orders");
    let piece = ["turns", "looks", "piece"];
    let pieces = [&["looks", "call"][..], &piece.repeat(3)].concat();
    assert_eq!(notes_of("POST", "/pieces"), pieces, "the last one finds the end");
}
