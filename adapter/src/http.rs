//! Requests and replies as the services see them, independent of the HTTP server in front.
//!
//! A front turns bytes into a [`Request`], hands it to a [`Service`] together with a
//! [`Completion`], and turns the [`Reply`] into bytes. Neither side knows the other: the same
//! service runs behind every front, and tests call it without a socket.

use std::borrow::Cow;
use std::fmt;
use std::net::SocketAddr;
use std::time::Instant;

use bytes::Bytes;

/// The request methods that a service may be asked for.
///
/// There is no `Head`: a front passes HEAD on as [`Method::Get`] and sends the reply without its
/// body, so that no handler can treat the two differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// GET, and HEAD.
    Get,
    /// POST.
    Post,
    /// PUT.
    Put,
    /// PATCH.
    Patch,
    /// DELETE.
    Delete,
    /// OPTIONS.
    Options,
}

impl Method {
    /// Reads the method token of a request line. Tokens are case-sensitive (RFC 9110 §9.1);
    /// `HEAD` gives [`Method::Get`], an unknown token `None`.
    pub fn from_token(token: &str) -> Option<Self> {
        match token {
            "GET" | "HEAD" => Some(Self::Get),
            "POST" => Some(Self::Post),
            "PUT" => Some(Self::Put),
            "PATCH" => Some(Self::Patch),
            "DELETE" => Some(Self::Delete),
            "OPTIONS" => Some(Self::Options),
            _ => None,
        }
    }

    /// The token as it stands in a request line or an `Allow` header.
    pub fn token(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::Options => "OPTIONS",
        }
    }
}

/// The header fields of a request, in the order received.
///
/// All names and values lie in one buffer, so that a request costs two allocations whatever the
/// number of fields. The front bounds both the number of fields and their bytes.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers {
    text: Vec<u8>,
    fields: Vec<Field>,
}

/// Where one field lies in `Headers::text`: the name, then at once the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Field {
    name_at: usize,
    value_at: usize,
    end: usize,
}

impl Headers {
    /// No fields yet, with room for `fields` fields of `bytes` bytes in all.
    pub fn with_capacity(fields: usize, bytes: usize) -> Self {
        Self { text: Vec::with_capacity(bytes), fields: Vec::with_capacity(fields) }
    }

    /// Appends a field. Names may repeat.
    pub fn push(&mut self, name: &str, value: &[u8]) {
        let name_at = self.text.len();
        self.text.extend_from_slice(name.as_bytes());
        let value_at = self.text.len();
        self.text.extend_from_slice(value);
        self.fields.push(Field { name_at, value_at, end: self.text.len() });
    }

    /// The value of the first field called `name`, ASCII case ignored.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter()
            .find(|(field, _)| field.eq_ignore_ascii_case(name.as_bytes()))
            .map(|(_, value)| value)
    }

    /// The first value called `name` as text; `None` also when it is not UTF-8.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(|value| std::str::from_utf8(value).ok())
    }

    /// The values of all fields called `name`, ASCII case ignored, in the order received.
    pub fn get_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.iter()
            .filter(move |(field, _)| field.eq_ignore_ascii_case(name.as_bytes()))
            .map(|(_, value)| value)
    }

    /// All fields as (name, value), in the order received.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields.iter().map(|field| {
            (&self.text[field.name_at..field.value_at], &self.text[field.value_at..field.end])
        })
    }

    /// The number of fields.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether there is no field.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }
}

/// Names only: values may be credentials.
impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|(name, _)| String::from_utf8_lossy(name))).finish()
    }
}

/// One request, read whole.
#[derive(Clone)]
pub struct Request {
    /// The method; HEAD arrives as [`Method::Get`].
    pub method: Method,
    /// The path as received, percent escapes not decoded. Starts with `/` (or is `*`).
    pub path: String,
    /// The bytes after the first `?` as received, empty without one. Signatures are computed
    /// over exactly these bytes.
    pub query: Bytes,
    /// The header fields.
    pub headers: Headers,
    /// The body as received, transfer coding removed; at most the front's body limit.
    pub body: Bytes,
    /// The other end of the connection.
    pub peer: SocketAddr,
    /// When the whole request, body included, had been read, in nanoseconds since the Unix epoch.
    pub arrived_ns: u64,
    /// The same moment on the clock that never goes back: deadlines count from it.
    pub arrived: Instant,
}

impl Request {
    /// [`Request::arrived_ns`] in milliseconds, the unit of the services.
    pub fn arrived_ms(&self) -> u64 {
        self.arrived_ns / 1_000_000
    }
}

/// Without query and body: these may hold passwords, handles and signatures.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("path", &self.path)
            .field("headers", &self.headers)
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

/// Content type of the JSON replies of the spot service.
pub const JSON: &str = "application/json;charset=UTF-8";

/// The rest of a body, made piece by piece as the client takes it, so that a long answer takes no more
/// memory than a piece.
pub struct Rest(Box<dyn FnMut() -> Option<Bytes> + Send>);

impl Rest {
    /// The pieces that `next` gives, up to the first `None`. Called on a front's worker thread, which
    /// serves many connections: a piece is a millisecond's work at the most.
    pub fn new(next: impl FnMut() -> Option<Bytes> + Send + 'static) -> Self {
        Self(Box::new(next))
    }

    /// The next piece.
    pub fn next_piece(&mut self) -> Option<Bytes> {
        (self.0)()
    }
}

impl fmt::Debug for Rest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rest")
    }
}

/// One reply.
pub struct Reply {
    /// HTTP status, 200..=599. A front answers 500 in place of a reply that it cannot encode.
    pub status: u16,
    /// Value of `Content-Type`; `None` sends no such header.
    pub content_type: Option<&'static str>,
    /// Further header fields; `Content-Length`, `Date` and `Connection` are the front's.
    pub headers: Vec<(Cow<'static, str>, Cow<'static, str>)>,
    /// The body, or its beginning. Not sent for HEAD, 204 and 304.
    pub body: Bytes,
    /// What follows behind `body`; with it the reply goes out without a length, in chunks.
    pub rest: Option<Rest>,
}

impl Reply {
    /// A reply without body and content type.
    pub fn empty(status: u16) -> Self {
        Self { status, content_type: None, headers: Vec::new(), body: Bytes::new(), rest: None }
    }

    /// A reply whose body is already JSON text.
    pub fn json(status: u16, body: impl Into<Bytes>) -> Self {
        Self::with_type(status, JSON, body)
    }

    /// A reply with a body of any other type.
    pub fn with_type(status: u16, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        Self { content_type: Some(content_type), body: body.into(), ..Self::empty(status) }
    }

    /// The same reply with more behind its body.
    #[must_use]
    pub fn followed_by(self, rest: Rest) -> Self {
        Self { rest: Some(rest), ..self }
    }

    /// The same reply with one more header field.
    #[must_use]
    pub fn header(
        mut self,
        name: impl Into<Cow<'static, str>>,
        value: impl Into<Cow<'static, str>>,
    ) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
}

/// Without header values and body: these may hold tokens and handles.
impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("status", &self.status)
            .field("bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// What comes to the front through a [`Completion`].
#[derive(Debug)]
pub enum Answer {
    /// The reply.
    Reply(Reply),
    /// What is still to be done for it.
    Work(Work),
}

/// The rest of a request's work, which leads to its reply; done once, by whoever has it.
pub struct Work(Box<dyn FnOnce(Completion) + Send>);

impl Work {
    /// Does it. The reply goes to `done`.
    pub fn run(self, done: Completion) {
        (self.0)(done);
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Work")
    }
}

/// The one-shot way back from a handler to the front.
///
/// It may be sent from any thread. Dropped unsent it answers too: the closure within is dropped
/// uncalled, which a front takes as [`Fault::Abandoned`], so that no client waits for ever on a
/// handler that lost its request.
pub struct Completion(Box<dyn FnOnce(Answer) + Send>);

impl Completion {
    /// A completion that hands the reply to `send`, and does what is still to be done for it on the
    /// thread that has it. A front must notice when `send` is dropped without having been called.
    pub fn new(send: impl FnOnce(Reply) + Send + 'static) -> Self {
        Self::of(move |answer| match answer {
            Answer::Reply(reply) => send(reply),
            Answer::Work(work) => work.run(Self::new(send)),
        })
    }

    /// A completion that hands on whatever comes. As of [`Completion::new`].
    pub fn of(send: impl FnOnce(Answer) + Send + 'static) -> Self {
        Self(Box::new(send))
    }

    /// Answers the request. The client may be gone; nobody is told.
    pub fn send(self, reply: Reply) {
        (self.0)(Answer::Reply(reply));
    }

    /// Has the rest of the request's work done by the thread that serves its connection, which comes to
    /// it soon, so that the thread that has found out what the request waited for can go on. Work for a
    /// client that is gone is dropped.
    pub fn resume(self, work: impl FnOnce(Self) + Send + 'static) {
        (self.0)(Answer::Work(Work(Box::new(work))));
    }
}

impl fmt::Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Completion")
    }
}

/// What answers requests.
pub trait Service: Send + Sync + 'static {
    /// Takes a request and answers it through `done`, now or later.
    ///
    /// Called on a front's worker thread, which serves many connections: it must not block. A
    /// panic is answered like [`Fault::Panicked`] and costs only this request.
    fn call(&self, request: Request, done: Completion);

    /// A worker of the front is awake, or begins. From now on the service may leave it to this worker to find
    /// what requests wait for, whoever's they are. A front need not tell, and a service whose replies come by
    /// themselves need not listen.
    fn worker_wakes(&self) {}

    /// That worker is about to take up a request, the rest of one's work or the next piece of a long answer, or to let
    /// others go first. One that always has something to do never sleeps, so this is the moment to find what requests
    /// wait for, and now and then to send off what was held back. To be quick: it comes with each request.
    fn worker_looks(&self) {}

    /// What that worker is about to take up may take far longer than to send a command does: something is read, or
    /// answered at length. What was held back is to be sent off first.
    fn worker_turns(&self) {}

    /// That worker has nothing else to do and is about to sleep, or ends: what was held back is to be sent off, and it is
    /// a good moment to find what requests wait for, on this thread. What comes while all workers sleep another thread
    /// has to find.
    fn worker_sleeps(&self) {}

    /// Longest body that a request for this path may have, in bytes, within what the front takes at all.
    fn body_limit(&self, path: &str) -> usize {
        let _ = path;
        usize::MAX
    }

    /// The reply to a request that never reached [`Service::call`] or was never answered by it.
    /// The default is [`Fault::reply`]; a service that has more to say in each reply overrides it.
    fn fault(&self, refused: &Refused<'_>, fault: Fault) -> Reply {
        let _ = refused;
        fault.reply()
    }
}

/// What is known of a request that a front answers in place of a service.
#[derive(Debug, Clone, Copy)]
pub struct Refused<'a> {
    /// The path as received.
    pub path: &'a str,
    /// Those fields of its head that tell whom a trusted proxy speaks for, at the least; none where the head was not read.
    pub headers: &'a Headers,
    /// The other end of the connection.
    pub peer: SocketAddr,
    /// When it was refused, in nanoseconds since the Unix epoch.
    pub refused_ns: u64,
}

/// Why a front answers in place of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The service dropped its [`Completion`] unsent: the outcome is unknown.
    #[error("An unknown error occured while processing the request.")]
    Abandoned,
    /// The service panicked: the outcome is unknown.
    #[error("An unknown error occured while processing the request.")]
    Panicked,
    /// The body is longer than `limit` bytes.
    #[error("Request body is longer than {limit} bytes.")]
    BodyTooLarge {
        /// The front's limit in bytes.
        limit: usize,
    },
    /// The body did not arrive in time.
    #[error("Request body was not received in time.")]
    BodyTimeout,
    /// The body ended early or its chunks are malformed.
    #[error("Request body is incomplete or malformed.")]
    BodyBroken,
    /// The body is cut into chunks that are too small, or has too much else between them.
    #[error("Request body has too much chunk framing for its data.")]
    BodyFraming,
    /// The head is longer than `limit` bytes.
    #[error("Request head is longer than {limit} bytes.")]
    HeadTooLong {
        /// The front's limit in bytes.
        limit: usize,
    },
    /// The head can be read, but not in one way only.
    #[error("{why}")]
    BadHead {
        /// What is wrong with it: a sentence without quotes.
        why: &'static str,
    },
    /// More header fields than `limit`.
    #[error("Request has more than {limit} header fields.")]
    TooManyHeaders {
        /// The front's limit.
        limit: usize,
    },
    /// A method outside of [`Method`], such as TRACE or CONNECT.
    #[error("This operation is not supported.")]
    UnknownMethod,
    /// The front holds as many connections as it may.
    #[error(
        "Server is currently overloaded with other requests. Please try again in a few minutes."
    )]
    Overloaded,
}

impl Fault {
    /// The HTTP status.
    pub fn status(self) -> u16 {
        match self {
            Self::Abandoned | Self::Panicked => 500,
            Self::BodyTooLarge { .. } => 413,
            Self::BodyTimeout => 408,
            Self::BodyBroken | Self::BodyFraming | Self::BadHead { .. } => 400,
            Self::TooManyHeaders { .. } | Self::HeadTooLong { .. } => 431,
            Self::UnknownMethod => 405,
            Self::Overloaded => 503,
        }
    }

    /// The fixed reply: `code` and `msg` as JSON, as in the error bodies of the spot service.
    /// Faults that its error list does not know carry the general code -1000.
    pub fn reply(self) -> Reply {
        let code = match self {
            Self::UnknownMethod => -1020,
            Self::Overloaded => -1008,
            _ => -1000,
        };
        let reply = Reply::json(self.status(), format!("{{\"code\":{code},\"msg\":\"{self}\"}}"));
        match self {
            Self::UnknownMethod => {
                reply.header("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")
            }
            _ => reply,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_lookup_ignores_case_and_gives_the_first_of_several() {
        let mut headers = Headers::with_capacity(3, 64);
        headers.push("X-Svc-ApiKey", b"one");
        headers.push("accept", b"text/html");
        headers.push("x-svc-apikey", b"two");
        assert_eq!(headers.get("x-SVC-apikey"), Some(&b"one"[..]));
        assert_eq!(headers.text("ACCEPT"), Some("text/html"));
        let all: Vec<_> = headers.get_all("X-SVC-APIKEY").collect();
        assert_eq!(all, [b"one", b"two"]);
        assert_eq!(headers.get("x-svc-apike"), None);
        assert_eq!(headers.len(), 3);
    }

    #[test]
    fn header_values_need_not_be_text() {
        let mut headers = Headers::default();
        headers.push("a", &[0xff]);
        headers.push("", b"");
        assert_eq!(headers.get("A"), Some(&[0xff][..]));
        assert_eq!(headers.text("a"), None);
        assert_eq!(headers.get(""), Some(&b""[..]));
    }

    #[test]
    fn debug_output_does_not_show_header_values() {
        let mut headers = Headers::default();
        headers.push("X-Key", b"credential");
        assert_eq!(format!("{headers:?}"), "[\"X-Key\"]");
    }

    #[test]
    fn debug_output_of_requests_and_replies_does_not_show_what_they_carry() {
        let request = Request {
            method: Method::Post,
            path: "/path".to_owned(),
            query: Bytes::from("a=credential"),
            headers: Headers::default(),
            body: Bytes::from("credential"),
            peer: SocketAddr::from(([127, 0, 0, 1], 1)),
            arrived_ns: 0,
            arrived: Instant::now(),
        };
        let shown = format!("{request:?}");
        assert!(shown.contains("/path") && !shown.contains("credential"), "{shown}");
        let reply = Reply::json(200, "credential").header("a", "credential");
        let shown = format!("{reply:?}");
        assert!(shown.contains("200") && !shown.contains("credential"), "{shown}");
    }

    #[test]
    fn head_is_a_get_and_unknown_tokens_are_none() {
        assert_eq!(Method::from_token("HEAD"), Some(Method::Get));
        for method in
            [Method::Get, Method::Post, Method::Put, Method::Patch, Method::Delete, Method::Options]
        {
            assert_eq!(Method::from_token(method.token()), Some(method));
        }
        assert_eq!(Method::from_token("TRACE"), None);
        assert_eq!(Method::from_token("get"), None);
    }

    #[test]
    fn a_dropped_completion_drops_its_closure_uncalled() {
        let (sender, receiver) = std::sync::mpsc::channel();
        drop(Completion::new(move |reply: Reply| {
            sender.send(reply.status).expect("receiver is alive");
        }));
        assert!(receiver.recv().is_err());
    }

    #[test]
    fn fault_replies_are_json_with_code_and_message() {
        let reply = Fault::BodyTooLarge { limit: 102_400 }.reply();
        assert_eq!(reply.status, 413);
        assert_eq!(
            &reply.body[..],
            br#"{"code":-1000,"msg":"Request body is longer than 102400 bytes."}"#
        );
        let reply = Fault::Panicked.reply();
        assert_eq!(reply.status, 500);
        assert_eq!(
            &reply.body[..],
            br#"{"code":-1000,"msg":"An unknown error occured while processing the request."}"#
        );
        let reply = Fault::UnknownMethod.reply();
        assert!(reply.headers.iter().any(|(name, _)| name == "Allow"));
    }
}
