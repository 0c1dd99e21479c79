//! Pages out of a full history while events arrive: the adapter's tailer and writer run, a client asks.
//! Called by [`super`].

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use touchline_adapter::config::AdapterConfig;
use touchline_adapter::history::writer::{Fate, Gate, Work, Writer};
use touchline_adapter::http::{Completion, Headers, Method, Request, Service};
use touchline_adapter::limits::Limits;
use touchline_adapter::link::{Done, NotSent, OrderCommand, Outcome, Submit};
use touchline_adapter::signature::SigningKey;
use touchline_adapter::spot::{HEADER_PREFIX, Spot, SpotConfig};
use touchline_adapter::views::Views;
use touchline_adapter::views::state::{Archive, State};
use touchline_adapter::views::tailer::{Source, Tailer};
use touchline_protocol::credentials::MasterKey;
use touchline_protocol::log::lease::Lease;
use touchline_protocol::log::reader::ReadError;
use touchline_protocol::log::transaction::Transaction;
use touchline_protocol::units::{KeyId, Position};

use super::flow::{ACCOUNTS, Flow, Frame, SYMBOLS, symbol_name};
use super::{HistoryOptions, Pages};
use crate::interrupt;
use crate::latency::Distribution;

/// No page takes longer unless something hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a run of pages came to.
pub(super) struct Measured {
    /// Orders and trades of which they were read.
    pub(super) orders: (u64, u64),
    pub(super) kinds: Vec<Pages>,
    /// Events per second that the views have taken meanwhile: fewer than were due, if they cannot keep up.
    pub(super) arrived: u64,
}

/// The made-up log as a source: a transaction is there when it is due.
struct Paced {
    flow: Flow,
    begin: Instant,
    given: Arc<AtomicU64>,
    per_second: u64,
    present: Option<Frame>,
    end: Arc<AtomicU64>,
}

impl Paced {
    fn due(&self) -> u64 {
        (self.begin.elapsed().as_nanos() * u128::from(self.per_second) / 1_000_000_000) as u64
    }
}

impl Source for Paced {
    fn next(&mut self) -> Result<Option<Transaction<'_>>, ReadError> {
        if self.given.load(Ordering::Relaxed) >= self.due() {
            return Ok(None);
        }
        self.given.fetch_add(1, Ordering::Relaxed);
        let frame = self.flow.next();
        self.end.store(frame.transaction().end().0, Ordering::Release);
        Ok(Some(self.present.insert(frame).transaction()))
    }

    fn watermark(&self) -> Position {
        Position(self.end.load(Ordering::Acquire))
    }

    fn engines(&self) -> u64 {
        1
    }

    fn wait(&mut self, limit: Duration) -> Result<(), ReadError> {
        std::thread::sleep(limit.min(Duration::from_micros(500)));
        Ok(())
    }

    fn is_told_late(&self) -> bool {
        false
    }
}

/// Takes no order.
struct NoEngine;

impl Submit for NoEngine {
    fn submit(&self, _: OrderCommand, _: Instant, done: Done) {
        done(Outcome::NotSent(NotSent::Disconnected));
    }
}

/// Reads pages of each kind; gives also how far the history is behind the log at the end, in bytes.
pub(super) fn measure(
    options: &HistoryOptions,
    flow: Flow,
    archive: &Archive,
    lease: Lease,
    state: State,
) -> Result<(Measured, u64)> {
    let orders = flow.placed();
    let now_ms = flow.now_ms();
    let end = Arc::new(AtomicU64::new(flow.end()));
    let level = Arc::clone(&end);
    let views = Arc::new(Views::new(state, move || Position(level.load(Ordering::Acquire))));
    let gate = Arc::new(Gate::default());
    let failure = Arc::new(Mutex::new(None));
    let told = Arc::clone(&failure);
    let tell = move |error: String| {
        *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    };
    let tell_too = tell.clone();
    let work =
        Work::new(Arc::clone(&views), archive, |_, _| Fate::Durable, Arc::clone(&gate), lease);
    let writer = Writer::start(work, move |error| {
        tell(error.map_or_else(|| "a panic".to_owned(), |error| error.to_string()));
    })?;
    let (begin, given) = (Instant::now(), Arc::new(AtomicU64::new(0)));
    let source = Paced {
        flow,
        begin,
        given: Arc::clone(&given),
        per_second: Flow::transactions(options.rate),
        present: None,
        end: Arc::clone(&end),
    };
    let tailer = Tailer::start(source, Arc::clone(&views), Some(gate), move |end| {
        if let Some(error) = end {
            tell_too(error.to_string());
        }
    })?;
    let client = Client::new(&views, now_ms);
    let mut kinds = Vec::new();
    for (what, path, query) in [
        ("newest orders", "allOrders", "limit=1000"),
        ("orders from a number", "allOrders", "limit=1000&orderId=1000"),
        ("newest own trades", "myTrades", "limit=1000"),
        ("own trades from a number", "myTrades", "limit=1000&fromId=1000"),
        ("newest trades", "trades", "limit=1000"),
        ("trades from a number", "historicalTrades", "limit=1000&fromId=1000"),
        ("aggregate trades", "aggTrades", "limit=1000"),
        ("candles of a minute", "klines", "limit=1000&interval=1m"),
        ("24 hours of one symbol", "ticker/24hr", ""),
    ] {
        kinds.push(client.pages(what, path, query, options.pages)?);
    }
    let arrived = Flow::events(given.load(Ordering::Relaxed));
    let arrived = arrived as u128 * 1_000_000_000 / begin.elapsed().as_nanos().max(1);
    let lag = end.load(Ordering::Acquire) - views.read(|state| state.history.stored().0);
    drop(tailer);
    drop(writer);
    let failure = failure.lock().unwrap_or_else(PoisonError::into_inner).take();
    ensure!(failure.is_none(), "the adapter's threads ended: {failure:?}");
    Ok((Measured { orders, kinds, arrived: arrived as u64 }, lag))
}

/// Asks the service as the front does, signed where that is called for.
struct Client {
    spot: Spot,
    keys: MasterKey,
    now_ms: u64,
}

impl Client {
    fn new(views: &Arc<Views>, now_ms: u64) -> Self {
        let keys = || MasterKey::new([3; 32]);
        let config = AdapterConfig {
            request_weight_per_minute: u64::MAX,
            raw_requests_per_5_minutes: u64::MAX,
            ..AdapterConfig::default()
        };
        let spot = SpotConfig { header_prefix: HEADER_PREFIX.to_owned(), deadline: PATIENCE };
        let limits = Arc::new(Limits::new(config.limits()));
        let spot = Spot::new(spot, limits, Arc::clone(views), Arc::new(NoEngine), keys());
        Self { spot, keys: keys(), now_ms }
    }

    fn pages(&self, what: &'static str, path: &str, query: &str, count: u32) -> Result<Pages> {
        let mut latency = Distribution::default();
        let mut entries = usize::MAX;
        for page in 0..count {
            interrupt::check()?;
            let symbol = symbol_name(page % SYMBOLS);
            let separator = if query.is_empty() { "" } else { "&" };
            let query = format!("symbol={symbol}{separator}{query}");
            let key = KeyId(u64::from(page % ACCOUNTS) + 1);
            let request = self.request(path, &query, key);
            let (sender, receiver) = mpsc::channel();
            let begin = Instant::now();
            // Whoever measures waits for every reply, so somebody is there to get it.
            self.spot.call(request, Completion::new(move |reply| drop(sender.send(reply))));
            let reply = receiver.recv_timeout(PATIENCE).context("no reply")?;
            latency.record(begin.elapsed().as_nanos() as u64);
            let text = String::from_utf8_lossy(&reply.body);
            ensure!(reply.status == 200, "{path}?{query}: {text}");
            let found: serde_json::Value = serde_json::from_slice(&reply.body)?;
            entries = entries.min(found.as_array().map_or(1, Vec::len));
        }
        Ok(Pages { what, entries, latency: latency.percentiles() })
    }

    fn request(&self, path: &str, query: &str, key: KeyId) -> Request {
        let mut headers = Headers::default();
        headers.push(&format!("{HEADER_PREFIX}-APIKEY"), self.keys.api_key(key).as_bytes());
        let is_signed = matches!(path, "allOrders" | "myTrades");
        let query = if is_signed {
            let query = format!("{query}&timestamp={}", self.now_ms);
            let secret = self.keys.secret(key);
            let signature = SigningKey::new(secret.as_bytes()).sign(query.as_bytes(), b"");
            let signature = base16ct::lower::encode_string(&signature);
            format!("{query}&signature={signature}")
        } else {
            query.to_owned()
        };
        Request {
            method: Method::Get,
            path: format!("/api/v3/{path}"),
            query: Bytes::from(query),
            headers,
            body: Bytes::new(),
            peer: ([127, 0, 0, 1], 1).into(),
            arrived_ns: self.now_ms * 1_000_000,
            arrived: Instant::now(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrives_is_what_was_due_and_taken() {
        let begin = Instant::now();
        let (given, end) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let per_second = Flow::transactions(1_000_000_000);
        let counted = Arc::clone(&given);
        let mut source =
            Paced { flow: Flow::new(), begin, given: counted, per_second, present: None, end };
        // Others are due, and nobody has asked for them.
        while source.due() < 10 {}
        for _ in 0..4 {
            assert!(source.next().unwrap().is_some());
        }
        assert_eq!(Flow::events(given.load(Ordering::Relaxed)), 8);
        source.per_second = 0;
        assert!(source.next().unwrap().is_none());
        assert_eq!(given.load(Ordering::Relaxed), 4);
    }
}
