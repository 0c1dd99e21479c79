//! A toy service with one path per way to behave, and a blocking client that reads replies.

#![allow(clippy::unwrap_used, reason = "a failed step of a test should panic")]

use crate::patience::{Wait, watch};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use touchline_adapter::front::{Front, FrontConfig, FrontHandle};
use touchline_adapter::http::{Completion, Fault, Refused, Reply, Request, Rest, Service};

pub(crate) use crate::patience::PATIENCE;

/// Bytes of the reply to `/big`: more than the socket buffers of both ends together.
pub(crate) const BIG: usize = 32 << 20;

/// Bytes of a piece of the reply to `/pieces`.
pub(crate) const PIECE: usize = 100_000;

pub(crate) struct Toy {
    pub(crate) calls: AtomicUsize,
    held: Mutex<mpsc::Sender<Completion>>,
}

impl Service for Toy {
    fn call(&self, request: Request, done: Completion) {
        self.calls.fetch_add(1, Ordering::SeqCst);
        match request.path.as_str() {
            "/drop" => drop(done),
            "/panic" => panic!("asked to"),
            "/send-then-panic" => {
                done.send(Reply::json(200, "{\"sent\":true}"));
                panic!("asked to");
            }
            "/thread" => drop(thread::spawn(move || done.send(Reply::json(200, "{}")))),
            "/hold" => self.held.lock().unwrap().send(done).unwrap(),
            "/big" => done.send(Reply::with_type(200, "text/plain", vec![b'x'; BIG])),
            "/pieces" => {
                let mut left = 3;
                let rest = Rest::new(move || {
                    left -= 1;
                    (left >= 0).then(|| vec![b'0' + left as u8; PIECE].into())
                });
                done.send(Reply::with_type(200, "text/plain", "first,").followed_by(rest));
            }
            "/endless" => {
                let rest = Rest::new(|| Some(vec![b'x'; PIECE].into()));
                done.send(Reply::with_type(200, "text/plain", "").followed_by(rest));
            }
            "/unique" => {
                let calls = self.calls.load(Ordering::SeqCst);
                let reply = Reply::empty(200).header("X-Unique", format!("u{calls}"));
                done.send(reply.header("X-Count", calls.to_string()));
            }
            "/bad-header" => done.send(Reply::empty(200).header("X-Bad", "a\r\nInjected: 1")),
            "/bad-status" => done.send(Reply::empty(101)),
            "/no-content" => done.send(Reply::json(204, "{}")),
            "/arrived" => done.send(Reply::json(200, request.arrived_ns.to_string())),
            _ => done.send(echo(&request)),
        }
    }

    fn body_limit(&self, path: &str) -> usize {
        if path == "/small" { 3 } else { usize::MAX }
    }

    fn fault(&self, refused: &Refused<'_>, fault: Fault) -> Reply {
        match refused.path {
            "/jobs/panic" => Reply::json(500, "{\"msg\":\"own text\"}"),
            "/jobs/fault-panics" => panic!("asked to"),
            _ => fault.reply(),
        }
    }
}

fn echo(request: &Request) -> Reply {
    let text = format!(
        "{} {} q={} h={} b={}",
        request.method.token(),
        request.path,
        String::from_utf8_lossy(&request.query),
        request.headers.text("x-toy").unwrap_or("-"),
        String::from_utf8_lossy(&request.body),
    );
    Reply::with_type(200, "text/plain", text).header("X-Extra", "yes")
}

/// A running front with the toy behind it.
pub(crate) struct Site {
    pub(crate) front: FrontHandle,
    pub(crate) toy: Arc<Toy>,
    pub(crate) held: mpsc::Receiver<Completion>,
}

impl Site {
    pub(crate) fn start(adjust: impl FnOnce(&mut FrontConfig)) -> Self {
        watch();
        let mut config = FrontConfig::new(SocketAddr::from(([127, 0, 0, 1], 0)));
        adjust(&mut config);
        let (sender, held) = mpsc::channel();
        let toy = Arc::new(Toy { calls: AtomicUsize::new(0), held: Mutex::new(sender) });
        let front = Front::start(config, toy.clone()).unwrap();
        Self { front, toy, held }
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(self.front.local_addr())
    }

    pub(crate) fn calls(&self) -> usize {
        self.toy.calls.load(Ordering::SeqCst)
    }

    /// One request on a connection of its own, and its reply.
    pub(crate) fn ask(&self, request: impl AsRef<[u8]>) -> Answer {
        let mut client = self.client();
        client.send(request);
        client.answer()
    }

    pub(crate) fn assert_alive(&self) {
        let answer = self.ask("GET /alive HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_eq!((answer.status, answer.body.as_str()), (200, "GET /alive q= h=- b="));
    }

    /// Waits until the front says that `count` connections are open.
    pub(crate) fn wait_for_connections(&self, count: usize) {
        wait_for("connections to come or go", || self.front.open_connections() == count);
    }
}

/// Waits until `reached` says so.
pub(crate) fn wait_for(what: &str, mut reached: impl FnMut() -> bool) {
    let wait = Wait::begin();
    while !reached() {
        wait.go_on(what);
        thread::yield_now();
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, buffer: Vec::new() }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    pub(crate) fn finish_sending(&mut self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }

    /// The next reply, its body by Content-Length.
    pub(crate) fn answer(&mut self) -> Answer {
        let head = self.head();
        let length = head.header("content-length").map_or(0, |n| n.parse().unwrap());
        while self.buffer.len() < length {
            assert!(self.fill() > 0, "connection ended inside a body");
        }
        let body = self.buffer.drain(..length).collect();
        Answer { body: String::from_utf8(body).unwrap(), ..head }
    }

    /// The next reply, its body in chunks.
    pub(crate) fn chunked_answer(&mut self) -> Answer {
        let head = self.head();
        assert_eq!(head.header("transfer-encoding"), Some("chunked"), "{}", head.head);
        let mut body = Vec::new();
        loop {
            let line = self.through(|buffer| {
                buffer.windows(2).position(|two| two == b"\r\n").map(|at| at + 2)
            });
            let digits = std::str::from_utf8(&line).unwrap().trim();
            let length = usize::from_str_radix(digits, 16).unwrap();
            let chunk = self.through(|buffer| (buffer.len() >= length + 2).then_some(length + 2));
            body.extend_from_slice(&chunk[..length]);
            assert!(body.len() <= 16 * BIG, "an answer without end");
            if length == 0 {
                return Answer { body: String::from_utf8(body).unwrap(), ..head };
            }
        }
    }

    /// The next bytes, up to where `end` finds an end.
    fn through(&mut self, end: impl Fn(&[u8]) -> Option<usize>) -> Vec<u8> {
        loop {
            if let Some(at) = end(&self.buffer) {
                return self.buffer.drain(..at).collect();
            }
            assert!(self.fill() > 0, "connection ended inside a chunk");
        }
    }

    /// The head of the next reply alone.
    pub(crate) fn head(&mut self) -> Answer {
        let end = loop {
            if let Some(at) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            let so_far = String::from_utf8_lossy(&self.buffer).into_owned();
            assert!(self.fill() > 0, "connection ended before a reply: {so_far:?}");
        };
        let head = String::from_utf8(self.buffer.drain(..end).collect()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head, body: String::new() }
    }

    /// Asserts that nothing but the orderly end of the connection follows.
    pub(crate) fn assert_ended(&mut self) {
        assert_eq!(self.buffer, b"");
        assert_eq!(self.fill(), 0, "{:?}", String::from_utf8_lossy(&self.buffer));
    }

    /// Everything up to the end of the connection, a reset counting as one.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        while self.try_fill().is_ok_and(|count| count > 0) {
            assert!(self.buffer.len() <= 2 * BIG, "bytes without end");
        }
        std::mem::take(&mut self.buffer)
    }

    fn fill(&mut self) -> usize {
        self.try_fill().unwrap()
    }

    fn try_fill(&mut self) -> std::io::Result<usize> {
        let mut chunk = [0; 65536];
        let count = match self.stream.read(&mut chunk) {
            Err(error) if error.kind() != std::io::ErrorKind::ConnectionReset => {
                panic!("neither bytes nor an end: {error}")
            }
            outcome => outcome?,
        };
        self.buffer.extend_from_slice(&chunk[..count]);
        Ok(count)
    }
}
