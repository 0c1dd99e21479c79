//! One connection on may_minihttp: reads requests whole, hands them to the service, writes the replies.
//! Called by that server, in the coroutine of the connection.

use std::cell::Cell;
use std::io::{self, Read};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use hyper::StatusCode;
use may::coroutine;
use may::sync::spsc::{self, Receiver, Sender};
use may_minihttp::{HttpService, Request as Head, Response};

use super::super::faults;
use super::super::head::{Framing, framing};
use super::super::places::Place;
use super::Shared;
use super::lines::{self, Line};
use crate::clock::unix_ns;
use crate::http::{Answer, Completion, Fault, Headers, Method, Reply, Request, Rest};
use crate::limits::network::FORWARDED_FOR;

/// Header lines that one answer has room for.
const LINES_MAX: usize = 16;

/// Longest reply in pieces, which has to be gathered here: bytes.
const GATHERED_MAX: usize = 16 << 20;

/// Body up to which the reply is copied into the connection's own buffer.
const COPIED_MAX: usize = 4096;

/// A connection.
pub(super) struct Connection {
    /// `None`: it was refused, and is at its end.
    served: Option<Served>,
}

/// What there is of a connection that is served.
struct Served {
    shared: Arc<Shared>,
    socket: TcpStream,
    peer: SocketAddr,
    /// What was read behind the last request is not known to be one.
    is_closing: Cell<bool>,
    /// Given back at the end.
    _place: Place,
}

/// A reply that cannot be sent as it is.
struct Unencodable;

impl Connection {
    pub(super) fn new(
        shared: Arc<Shared>,
        socket: TcpStream,
        peer: SocketAddr,
        place: Place,
    ) -> Self {
        Self {
            served: Some(Served {
                shared,
                socket,
                peer,
                is_closing: Cell::new(false),
                _place: place,
            }),
        }
    }

    /// One that there is no place for.
    pub(super) fn refused() -> Self {
        Self { served: None }
    }
}

impl HttpService for Connection {
    fn call(&mut self, head: Head<'_, '_, '_>, response: &mut Response<'_>) -> io::Result<()> {
        let is_head = head.method() == "HEAD";
        let reply = match &self.served {
            Some(served) => served.exchange(head),
            None => Fault::Overloaded.reply(),
        };
        write(reply, is_head, response)
            .or_else(|Unencodable| write(Fault::Abandoned.reply(), is_head, response))
            .map_err(|Unencodable| io::Error::other("no reply can be encoded"))
    }
}

impl Served {
    /// Reads the rest of a request and has it answered.
    fn exchange(&self, head: Head<'_, '_, '_>) -> Reply {
        let path = path_of(head.path()).to_owned();
        let read = (&*path, &self.forwarded(&head));
        if self.shared.progress.begin().is_none() {
            return self.refuse(read, Fault::Overloaded);
        }
        match self.receive(head) {
            Ok(request) => match self.shared.progress.begin() {
                Some(_in_progress) => {
                    self.ask(request).unwrap_or_else(|fault| self.fault(read, fault))
                }
                // Nothing waits for the rest of a request at the end.
                None => self.refuse(read, Fault::Overloaded),
            },
            // These are told when the request has been read whole.
            Err(fault @ (Fault::UnknownMethod | NO_PATH)) => self.fault(read, fault),
            Err(fault) => self.refuse(read, fault),
        }
    }

    /// Reads the request whole, within the limits. After an error it is not known where the next request
    /// would begin.
    fn receive(&self, head: Head<'_, '_, '_>) -> Result<Request, Fault> {
        if self.is_closing.get() {
            return Err(Fault::BadHead { why: "The connection is being closed." });
        }
        let (path, query) = split(head.path());
        let is_path = path.starts_with('/') || path == "*";
        let is_path = is_path && !head.path().contains('#');
        let length = match framing(head.headers(), head.version() == 1)? {
            Framing::Length(length) => length,
            Framing::Chunked => {
                return Err(Fault::BadHead { why: "This server takes no chunked bodies." });
            }
        };
        let limit = self.shared.max_body_bytes.min(self.shared.service.body_limit(path));
        if length > limit {
            return Err(Fault::BodyTooLarge { limit });
        }
        let method = Method::from_token(head.method());
        let (path, headers) = (path.to_owned(), copy_headers(&head));
        let query = Bytes::copy_from_slice(query.as_bytes());
        let body = read_body(head, length)?;
        if !is_path {
            return Err(NO_PATH);
        }
        Ok(Request {
            method: method.ok_or(Fault::UnknownMethod)?,
            path,
            query,
            headers,
            body,
            peer: self.peer,
            arrived_ns: unix_ns(),
            arrived: Instant::now(),
        })
    }

    /// Has the service answer; the coroutine waits, not its thread. A reply that was sent before a panic
    /// stands: the service may have acted, and the client should know.
    fn ask(&self, request: Request) -> Result<Reply, Fault> {
        let service = &*self.shared.service;
        let (done, mut receiver) = completion();
        let mut called = catch_unwind(AssertUnwindSafe(|| service.call(request, done)));
        loop {
            let answer = match called {
                Ok(()) => receiver.recv().ok().flatten().ok_or(Fault::Abandoned)?,
                Err(_panic) => receiver.try_recv().ok().flatten().ok_or(Fault::Panicked)?,
            };
            let work = match *answer {
                Answer::Reply(reply) => return gathered(reply),
                Answer::Work(work) => work,
            };
            let (done, next) = completion();
            receiver = next;
            called = catch_unwind(AssertUnwindSafe(|| work.run(done)));
        }
    }

    /// The fields by which a proxy tells for whom it speaks. What comes behind a request that was refused may be the rest
    /// of that one, in which a client has put what it likes.
    fn forwarded(&self, head: &Head<'_, '_, '_>) -> Headers {
        let mut headers = Headers::default();
        if !self.is_closing.get() {
            let fields = head.headers().iter();
            fields
                .filter(|field| field.name.eq_ignore_ascii_case(FORWARDED_FOR))
                .for_each(|field| headers.push(field.name, field.value));
        }
        headers
    }

    fn fault(&self, read: (&str, &Headers), fault: Fault) -> Reply {
        faults::reply(&*self.shared.service, read, self.peer, fault)
    }

    /// Answers a fault and reads no more: the server finds the end of the stream behind its reply.
    fn refuse(&self, read: (&str, &Headers), fault: Fault) -> Reply {
        self.is_closing.set(true);
        // The peer may be gone already.
        let _gone = self.socket.shutdown(Shutdown::Read);
        self.fault(read, fault).header("Connection", "close")
    }
}

/// Two ends of the way back from the service.
fn completion() -> (Completion, Receiver<Option<Box<Answer>>>) {
    let (sender, receiver) = spsc::channel();
    let way = Way(Some(sender));
    (Completion::of(move |answer| way.give(answer)), receiver)
}

/// The way of an answer back into the coroutine. It always says something: the library's channel may miss
/// that its sender was dropped.
struct Way(Option<Sender<Option<Box<Answer>>>>);

impl Way {
    fn give(mut self, answer: Answer) {
        self.send(Some(Box::new(answer)));
    }

    fn send(&mut self, answer: Option<Box<Answer>>) {
        if let Some(sender) = self.0.take() {
            // The connection may be gone; then nobody waits for the reply.
            let _gone = sender.send(answer);
        }
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        self.send(None);
    }
}

/// A target that is none is answered when its body has been read: what of a body is left over the library takes
/// for a request, and ends the connection in front of the answer.
const NO_PATH: Fault = Fault::BadHead { why: "The request target is not a path." };

/// The path of a request target, also of a whole URL, which tells whose errors its client expects.
fn path_of(target: &str) -> &str {
    let path = split(target).0;
    let behind_scheme = path.split_once("://").map(|(_, rest)| rest);
    behind_scheme.map_or(path, |rest| rest.find('/').map_or("/", |start| &rest[start..]))
}

/// Path and query of a request target.
fn split(target: &str) -> (&str, &str) {
    target.split_once('?').unwrap_or((target, ""))
}

fn copy_headers(head: &Head<'_, '_, '_>) -> Headers {
    let fields = head.headers();
    let bytes = fields.iter().map(|field| field.name.len() + field.value.len()).sum();
    let mut headers = Headers::with_capacity(fields.len(), bytes);
    for field in fields {
        headers.push(field.name, field.value);
    }
    headers
}

/// The body, all of it. The length has been read from the head, and is bounded.
fn read_body(head: Head<'_, '_, '_>, length: usize) -> Result<Bytes, Fault> {
    if length == 0 {
        return Ok(Bytes::new());
    }
    let mut body = Vec::with_capacity(length);
    match head.body().take(length as u64).read_to_end(&mut body) {
        Ok(read) if read == length => Ok(body.into()),
        _ => Err(Fault::BodyBroken),
    }
}

/// The reply with all its pieces; other connections have their turn between two of them.
fn gathered(mut reply: Reply) -> Result<Reply, Fault> {
    let Some(mut rest) = reply.rest.take() else { return Ok(reply) };
    let mut next = || catch_unwind(AssertUnwindSafe(|| Rest::next_piece(&mut rest)));
    let mut body = reply.body.to_vec();
    while let Some(piece) = next().map_err(|_panic| Fault::Panicked)? {
        if body.len() + piece.len() > GATHERED_MAX {
            return Err(Fault::Abandoned);
        }
        body.extend_from_slice(&piece);
        coroutine::yield_now();
    }
    reply.body = body.into();
    Ok(reply)
}

/// Writes a reply, or nothing of it.
fn write(reply: Reply, is_head: bool, response: &mut Response<'_>) -> Result<(), Unencodable> {
    if !(200..=599).contains(&reply.status) {
        return Err(Unencodable);
    }
    let status = StatusCode::from_u16(reply.status).map_err(|_| Unencodable)?;
    let mut sent = [""; LINES_MAX];
    let mut count = 0;
    let content_type = reply.content_type.map(|value| ("Content-Type", value));
    let fields = reply.headers.iter().map(|(name, value)| (&**name, &**value));
    for (name, value) in content_type.into_iter().chain(fields) {
        match lines::line(name, value) {
            Line::Sent(line) if count < LINES_MAX => {
                sent[count] = line;
                count += 1;
            }
            Line::Sent(_) | Line::LeftOut => {}
            Line::Malformed => return Err(Unencodable),
        }
    }
    response.status_code(reply.status.into(), status.canonical_reason().unwrap_or("-"));
    for line in &sent[..count] {
        response.header(line);
    }
    let has_body = !is_head && !matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    if has_body && reply.body.len() <= COPIED_MAX {
        response.body_mut().extend_from_slice(&reply.body);
    } else if has_body {
        response.body_vec(reply.body.into());
    }
    Ok(())
}
