//! A service over a made-up log, an engine that says what it is told, and signed requests.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use bytes::Bytes;
use touchline_protocol::credentials::MasterKey;
use touchline_protocol::message::enums::{OrderStatus, RejectReason};
use touchline_protocol::message::event::{OrderCanceled, Rejected};
use touchline_protocol::units::{KeyId, OrderId, Position};

use crate::config::AdapterConfig;
use crate::http::{Completion, Headers, Method, Reply, Request, Service};
use crate::limits::{Limits, LimitsConfig};
use crate::link::fixture::UnderWay;
use crate::link::{
    Decision, Done, Ended, Lost, OrderCommand, Orders, Outcome, Submit, Terminal, Told, Traffic,
};
use crate::signature::SigningKey;
use crate::spot::{Spot, SpotConfig};
use crate::views::Views;
use crate::views::fixture::{ALICE, Log};

/// When every request arrives, ms since the epoch.
pub(super) const NOW_MS: u64 = 1_700_000_100_000;

pub(super) const ALICES_KEY: KeyId = KeyId(1);
pub(super) const BOBS_KEY: KeyId = KeyId(2);

/// Time of every decision, ns since the epoch.
pub(super) const DECIDED_NS: u64 = 1_700_000_100_007_999_999;

/// Answers each command with the next outcome; keeps what it saw.
#[derive(Default)]
pub(super) struct FakeEngine {
    outcomes: Mutex<VecDeque<Outcome>>,
    pub(super) seen: Mutex<Vec<OrderCommand>>,
    pub(super) deadlines: Mutex<Vec<Instant>>,
    /// It decides nothing before it is told to.
    pub(super) hangs: AtomicBool,
    pub(super) under_way: UnderWay<Orders>,
}

impl Submit for FakeEngine {
    fn submit(&self, command: OrderCommand, deadline: Instant, done: Done) {
        self.seen.lock().unwrap().push(command);
        self.deadlines.lock().unwrap().push(deadline);
        if self.hangs.load(Ordering::SeqCst) {
            return self.under_way.push(Orders::whose(&command), done);
        }
        let outcome = self.outcomes.lock().unwrap().pop_front();
        done(outcome.expect("the test did not expect a command"));
    }

    fn last_under_way(&self, last: u64, is_of: &dyn Fn(KeyId) -> bool) -> Option<u64> {
        self.under_way.last_of(last, is_of)
    }

    fn when_ended(&self, command: u64, _: Instant, ended: Ended) {
        self.under_way.when_ended(command, ended);
    }

    fn when_lost(&self, lost: Lost<Orders>) {
        self.under_way.when_lost(lost);
    }
}

pub(super) struct Site {
    pub(super) spot: Spot,
    pub(super) views: Arc<Views>,
    pub(super) engine: Arc<FakeEngine>,
    pub(super) watermark: Arc<AtomicU64>,
    /// How far the live window goes, if that is further.
    pub(super) appended: Arc<AtomicU64>,
    /// Since when the engine is away.
    pub(super) away_since: Arc<Mutex<Option<Instant>>>,
    /// The log has failed.
    pub(super) has_failed: Arc<AtomicBool>,
    pub(super) keys: MasterKey,
}

pub(super) fn config() -> SpotConfig {
    SpotConfig { header_prefix: "X-SVC".to_owned(), deadline: Duration::from_secs(10) }
}

impl Site {
    pub(super) fn new(log: Log) -> Self {
        Self::with(log, config())
    }

    pub(super) fn with(log: Log, config: SpotConfig) -> Self {
        Self::limited(log, config, AdapterConfig::default().limits())
    }

    pub(super) fn limited(log: Log, config: SpotConfig, limits: LimitsConfig) -> Self {
        let watermark = Arc::new(AtomicU64::new(0));
        let level = Arc::clone(&watermark);
        let views = Views::new(log.state, move || Position(level.load(Ordering::SeqCst)));
        let appended = Arc::new(AtomicU64::new(0));
        let levels = [Arc::clone(&watermark), Arc::clone(&appended)];
        let highest =
            move || levels.each_ref().map(|level| level.load(Ordering::SeqCst)).into_iter().max();
        let away_since = Arc::new(Mutex::new(None));
        let away = Arc::clone(&away_since);
        let views = views.with_appended(move || Position(highest().unwrap_or(0)));
        let has_failed = Arc::new(AtomicBool::new(false));
        let failed = Arc::clone(&has_failed);
        let views = views.with_failure(move || failed.load(Ordering::SeqCst));
        let views = Arc::new(views.with_engine(move || *away.lock().unwrap()));
        let engine = Arc::new(FakeEngine::default());
        let keys = || MasterKey::new([7; 32]);
        let spot = Spot::new(
            config,
            Arc::new(Limits::new(limits)),
            Arc::clone(&views),
            engine.clone(),
            keys(),
        );
        Self { spot, views, engine, watermark, appended, away_since, has_failed, keys: keys() }
    }

    /// What the engine says to the next command.
    pub(super) fn expect(&self, outcome: Outcome) {
        self.engine.outcomes.lock().unwrap().push_back(outcome);
    }

    pub(super) fn expect_reject(&self, reason: RejectReason, detail: u32) {
        let rejected = Rejected { reason: reason.to_wire(), detail, ..Default::default() };
        self.expect(decided(Terminal::Rejected(rejected)));
    }

    /// The last command that the engine saw.
    pub(super) fn command(&self) -> OrderCommand {
        *self.engine.seen.lock().unwrap().last().expect("no command was sent")
    }

    /// Sends a request; the reply comes when it comes.
    pub(super) fn send(&self, request: Request) -> mpsc::Receiver<Reply> {
        let (sender, receiver) = mpsc::channel();
        self.spot.call(request, Completion::new(move |reply| sender.send(reply).unwrap()));
        receiver
    }

    /// Sends a request that is answered at once.
    pub(super) fn reply(&self, request: Request) -> Reply {
        self.send(request).try_recv().expect("the request is not answered at once")
    }

    /// A request with Alice's key and signature, all parameters in the query.
    pub(super) fn signed(&self, method: Method, path: &str, query: &str) -> Request {
        self.signed_by(ALICES_KEY, method, path, query)
    }

    pub(super) fn signed_by(&self, key: KeyId, method: Method, path: &str, query: &str) -> Request {
        let separator = if query.is_empty() { "" } else { "&" };
        let query = format!("{query}{separator}timestamp={NOW_MS}");
        self.signed_as_is(key, method, path, &query)
    }

    /// As [`Site::signed_by`] without adding a timestamp.
    pub(super) fn signed_as_is(
        &self,
        key: KeyId,
        method: Method,
        path: &str,
        query: &str,
    ) -> Request {
        let signing = SigningKey::new(self.keys.secret(key).as_bytes());
        let signature = base16ct::lower::encode_string(&signing.sign(query.as_bytes(), b""));
        let mut request = open(method, path, &format!("{query}&signature={signature}"));
        request.headers.push("X-SVC-APIKEY", self.keys.api_key(key).as_bytes());
        request
    }
}

/// A request without key and signature.
pub(super) fn open(method: Method, path: &str, query: &str) -> Request {
    Request {
        method,
        path: format!("/api/v3/{path}"),
        query: Bytes::copy_from_slice(query.as_bytes()),
        headers: Headers::default(),
        body: Bytes::new(),
        peer: ([127, 0, 0, 1], 4000).into(),
        arrived_ns: NOW_MS * 1_000_000 + 999,
        arrived: Instant::now(),
    }
}

pub(super) fn decided(terminal: Terminal) -> Outcome {
    Outcome::from(Decision {
        connection: 1,
        position: Position(0),
        time_ns: DECIDED_NS,
        told: Told::default(),
        terminal,
    })
}

/// Alice's order 1 is cancelled.
pub(super) fn canceled() -> OrderCanceled {
    OrderCanceled {
        order_id: OrderId(1),
        account: ALICE,
        side: 1,
        order_type: 1,
        status: OrderStatus::Canceled.to_wire(),
        ..Default::default()
    }
}

pub(super) fn body(reply: &Reply) -> &str {
    std::str::from_utf8(&reply.body).unwrap()
}

pub(super) fn header<'a>(reply: &'a Reply, name: &str) -> Option<&'a str> {
    reply.headers.iter().find(|(other, _)| other == name).map(|(_, value)| &**value)
}
