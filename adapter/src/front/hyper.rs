//! One HTTP/1 connection on hyper: reads requests whole, hands them to the service, writes the
//! replies. Called by the front's workers, one task per connection.

use std::borrow::Cow;
use std::cell::Cell;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Response, StatusCode, Version};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::oneshot::{self, error::TryRecvError};
use tokio::sync::watch;
use tokio::time::Instant;

use super::FrontConfig;
use super::body::ReplyBody;
use super::faults;
use super::gate::Gate;
use super::header_names;
use super::quoted_query;
use super::socket::{Progress, Socket, Timeouts};
use crate::clock::unix_ns;
use crate::http::{Answer, Completion, Fault, Headers, Method, Reply, Request, Rest, Service};

/// What all connections of a front share.
pub(super) struct Shared {
    pub(super) config: FrontConfig,
    pub(super) service: Arc<dyn Service>,
    builder: http1::Builder,
}

impl Shared {
    pub(super) fn new(config: FrontConfig, service: Arc<dyn Service>) -> Self {
        let mut builder = http1::Builder::new();
        builder
            .half_close(true)
            .header_read_timeout(None)
            .max_header_size(config.max_head_bytes)
            .max_buf_size(config.max_head_bytes.max(MIN_BUFFER));
        Self { config, service, builder }
    }

    fn timeouts(&self) -> Timeouts {
        Timeouts {
            head: self.config.head_timeout,
            body: self.config.body_timeout,
            idle: self.config.idle_timeout,
            write: self.config.write_timeout,
            linger: self.config.linger_timeout,
        }
    }
}

/// The smallest receive buffer that hyper accepts, in bytes.
const MIN_BUFFER: usize = 8192;

/// Replies that a connection may give at once, before other connections have their turn.
const REPLIES_IN_A_ROW: u32 = 8;

/// Serves one connection to its end. `stop` holds a value once the front shuts down: a request that was read whole
/// is then still answered, and no other is read on.
pub(super) async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    shared: Arc<Shared>,
    mut stop: watch::Receiver<Option<Instant>>,
) {
    let connection = Rc::new(Connection {
        progress: Rc::new(Progress::new(shared.timeouts())),
        shared,
        peer,
        stop: stop.clone(),
        ready_in_a_row: Cell::new(0),
    });
    let config = &connection.shared.config;
    let gate = Gate::new(config.max_head_bytes, config.max_headers);
    let socket = Socket::new(stream, connection.progress.clone(), gate);
    let handler = connection.clone();
    let serving = connection.shared.builder.serve_connection(
        TokioIo::new(socket),
        service_fn(move |request| answer(handler.clone(), request)),
    );
    let mut serving = pin!(serving);
    tokio::select! {
        biased;
        _ = &mut serving => return,
        _ = stop.wait_for(Option::is_some) => serving.as_mut().graceful_shutdown(),
    }
    // Whatever ended the connection (a reset, a timeout, malformed HTTP) concerns this peer alone.
    let _ = serving.await;
}

struct Connection {
    shared: Arc<Shared>,
    progress: Rc<Progress>,
    peer: SocketAddr,
    stop: watch::Receiver<Option<Instant>>,
    /// Replies since the connection last made way for others.
    ready_in_a_row: Cell<u32>,
}

async fn answer(
    connection: Rc<Connection>,
    request: hyper::Request<Incoming>,
) -> Result<Response<ReplyBody>, Infallible> {
    let (head, body) = request.into_parts();
    let disguised_at = connection.progress.take_disguised();
    let path = quoted_query::split(head.uri.path(), disguised_at).0;
    let reply = match connection.receive(&head, disguised_at, body).await {
        Ok(request) => connection.call(request).await,
        Err(fault) => Err(fault),
    };
    let service = &*connection.shared.service;
    let fault_reply = |fault| {
        let read = (path, &copy_headers(&head));
        faults::reply(service, read, connection.peer, fault)
    };
    let reply = looking(reply.unwrap_or_else(fault_reply), &connection.shared.service);
    let mut response = encode(reply)
        .or_else(|Unencodable| encode(fault_reply(Fault::Abandoned)))
        .or_else(|Unencodable| encode(Fault::Abandoned.reply()))
        .unwrap_or_else(|Unencodable| Response::new(ReplyBody::default()));
    let whole = connection.progress.replied();
    // HTTP/1.0 has no chunks: what has no length ends with its connection, and hyper does not say so to whoever has
    // asked for more.
    let is_last = head.version < Version::HTTP_11 && response.body().size_hint().exact().is_none();
    if !whole || is_last || connection.stop.borrow().is_some() {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
        // Of a newer version hyper adds to it that the connection goes on.
        *response.version_mut() = head.version;
    }
    Ok(response)
}

impl Connection {
    /// Reads the request whole, within the limits.
    async fn receive(
        &self,
        head: &Parts,
        disguised_at: Option<usize>,
        body: Incoming,
    ) -> Result<Request, Fault> {
        if let Some(fault) = self.progress.take_refusal() {
            return Err(fault);
        }
        self.progress.head_read(!body.is_end_stream());
        let method = Method::from_token(head.method.as_str()).ok_or(Fault::UnknownMethod)?;
        let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
        let (path, query) = quoted_query::split(target, disguised_at);
        let body = self.read_body(path, body).await?;
        Ok(Request {
            method,
            path: path.to_owned(),
            query: Bytes::copy_from_slice(query.as_bytes()),
            headers: copy_headers(head),
            body,
            peer: self.peer,
            arrived_ns: unix_ns(),
            arrived: std::time::Instant::now(),
        })
    }

    /// Collects the body, as much of it as this path may have. A body in one piece is not copied; one
    /// in many is copied together, as each piece would keep a receive buffer of its own alive. A front that ends waits
    /// for no rest of one: nothing was done for such a request.
    async fn read_body(&self, path: &str, mut body: Incoming) -> Result<Bytes, Fault> {
        if body.is_end_stream() {
            return Ok(Bytes::new());
        }
        let limit = self.shared.config.max_body_bytes.min(self.shared.service.body_limit(path));
        let too_large = Fault::BodyTooLarge { limit };
        if body.size_hint().lower() > limit as u64 {
            return Err(too_large);
        }
        let mut first = Bytes::new();
        let mut joined = BytesMut::new();
        let mut stop = self.stop.clone();
        loop {
            let frame = tokio::select! {
                biased;
                frame = body.frame() => frame,
                _ = stop.wait_for(Option::is_some) => return Err(Fault::Overloaded),
            };
            let Some(frame) = frame else { break };
            let frame = frame.map_err(|_| self.why_broken())?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            if first.len() + joined.len() + data.len() > limit {
                return Err(too_large);
            }
            if first.is_empty() && joined.is_empty() {
                first = data;
                continue;
            }
            joined.extend_from_slice(&std::mem::take(&mut first));
            joined.extend_from_slice(&data);
        }
        self.progress.body_read();
        Ok(if joined.is_empty() { first } else { joined.freeze() })
    }

    fn why_broken(&self) -> Fault {
        let other = if self.progress.timed_out() { Fault::BodyTimeout } else { Fault::BodyBroken };
        self.progress.take_refusal().unwrap_or(other)
    }

    /// Has the service answer. A reply that was sent before a panic stands: the service may have
    /// acted, and the client should know.
    async fn call(&self, request: Request) -> Result<Reply, Fault> {
        let service = &*self.shared.service;
        let method = request.method;
        self.take_up(matches!(method, Method::Post | Method::Delete));
        let (done, mut receiver) = completion();
        let mut called = catch_unwind(AssertUnwindSafe(|| service.call(request, done)));
        loop {
            let answer = match (receiver.try_recv(), called) {
                (Ok(Answer::Reply(reply)), _) => {
                    self.make_way().await;
                    return Ok(reply);
                }
                (Ok(answer), _) => {
                    // Work in steps would else have the worker to itself until its end.
                    tokio::task::yield_now().await;
                    answer
                }
                (Err(TryRecvError::Empty), Ok(())) => {
                    self.ready_in_a_row.set(0);
                    receiver.await.map_err(|_| Fault::Abandoned)?
                }
                (Err(TryRecvError::Closed), Ok(())) => return Err(Fault::Abandoned),
                (Err(_), Err(_panic)) => return Err(Fault::Panicked),
            };
            let work = match answer {
                Answer::Reply(reply) => return Ok(reply),
                Answer::Work(work) => work,
            };
            let (done, next) = completion();
            receiver = next;
            // A DELETE is sent off as shortly as a POST, but may be answered with thousands of orders.
            self.take_up(method == Method::Post);
            called = catch_unwind(AssertUnwindSafe(|| work.run(done)));
        }
    }

    /// Tells the service that a request, or the rest of its work, is about to be taken up.
    fn take_up(&self, is_short: bool) {
        if !is_short {
            self.shared.service.worker_turns();
        }
        self.shared.service.worker_looks();
    }

    /// A reply was ready at once. A client that sends many requests together could keep the worker
    /// to itself that way, so now and then all others have their turn.
    async fn make_way(&self) {
        let ready = self.ready_in_a_row.get() + 1;
        self.ready_in_a_row.set(ready % REPLIES_IN_A_ROW);
        if ready == REPLIES_IN_A_ROW {
            // What comes of it has its turn at once, too.
            self.shared.service.worker_looks();
            tokio::task::yield_now().await;
        }
    }
}

/// Two ends of the way back from the service.
fn completion() -> (Completion, oneshot::Receiver<Answer>) {
    let (sender, receiver) = oneshot::channel();
    let done = Completion::of(move |answer| {
        // The connection may be gone; then nobody waits for the reply.
        let _ = sender.send(answer);
    });
    (done, receiver)
}

fn copy_headers(head: &Parts) -> Headers {
    let bytes = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    let mut headers = Headers::with_capacity(head.headers.len(), bytes);
    for (name, value) in &head.headers {
        headers.push(name.as_str(), value.as_bytes());
    }
    headers
}

/// A reply of which each further piece is a moment to look, as a request is, and may take longer than most: as long
/// as there are pieces the worker does not sleep.
fn looking(reply: Reply, service: &Arc<dyn Service>) -> Reply {
    let Some(mut rest) = reply.rest else { return reply };
    let service = Arc::clone(service);
    let rest = Rest::new(move || {
        service.worker_turns();
        service.worker_looks();
        rest.next_piece()
    });
    Reply { rest: Some(rest), ..reply }
}

/// A reply with a status outside of 200..=599 or with bytes that no header field may have.
struct Unencodable;

fn encode(reply: Reply) -> Result<Response<ReplyBody>, Unencodable> {
    if !(200..=599).contains(&reply.status) {
        return Err(Unencodable);
    }
    let status = StatusCode::from_u16(reply.status).map_err(|_| Unencodable)?;
    let body = match status {
        StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED => ReplyBody::default(),
        _ => ReplyBody::new(reply.body, reply.rest),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    if let Some(content_type) = reply.content_type {
        headers.insert(CONTENT_TYPE, header_value(content_type.into())?);
    }
    for (name, value) in reply.headers {
        headers.append(header_names::find(&name).ok_or(Unencodable)?, header_value(value)?);
    }
    Ok(response)
}

/// A header field's value, not copied.
fn header_value(value: Cow<'static, str>) -> Result<HeaderValue, Unencodable> {
    let bytes = match value {
        Cow::Borrowed(text) => Bytes::from_static(text.as_bytes()),
        Cow::Owned(text) => Bytes::from(text),
    };
    HeaderValue::from_maybe_shared(bytes).map_err(|_| Unencodable)
}

#[cfg(test)]
mod tests;
