//! Pages out of a full history while events arrive: the adapter's tailer and writer run, a client asks. Pages from a
//! number begin anywhere in it. The store was written just before, so they come out of the page cache. Called by
//! [`super`].

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use serde::de::IgnoredAny;
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
use crate::machine::nanoseconds;
use crate::random::Random;

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

    fn alive_ms(&self) -> u64 {
        u64::MAX
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
    let (now_ms, numbers) = (flow.now_ms(), flow.last_numbers());
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
    let kinds = KINDS.iter().map(|kind| client.pages(kind, &numbers, options.pages));
    let kinds = kinds.collect::<Result<Vec<_>>>()?;
    let arrived = Flow::events(given.load(Ordering::Relaxed));
    let arrived = arrived as u128 * 1_000_000_000 / begin.elapsed().as_nanos().max(1);
    let lag = end.load(Ordering::Acquire) - views.read(|state| state.history.stored().0);
    drop(tailer);
    drop(writer);
    let failure = failure.lock().unwrap_or_else(PoisonError::into_inner).take();
    ensure!(failure.is_none(), "the adapter's threads ended: {failure:?}");
    Ok((Measured { orders, kinds, arrived: arrived as u64 }, lag))
}

/// Entries that a page is asked for.
const LIMIT: u64 = 1000;

/// Where a page begins.
#[derive(Clone, Copy)]
enum Begin {
    /// So that it ends with the newest entry, or there is but one.
    Newest,
    /// At any order of a symbol, those of one account among them.
    AnyOrder,
    /// At any trade of a symbol, those of one account among them.
    AnyOwnTrade,
    /// At any trade of a symbol.
    AnyTrade,
}

impl Begin {
    /// The parameter with a number, of a symbol with these last numbers: any behind which there is a whole page, as
    /// far as can be told, and at least any of the first half.
    fn parameter(self, (orders, trades): (u64, u64), random: &mut Random) -> String {
        let (name, last, whole) = match self {
            Self::Newest => return String::new(),
            Self::AnyOrder => ("orderId", orders, LIMIT * u64::from(ACCOUNTS)),
            // Each is of two accounts.
            Self::AnyOwnTrade => ("fromId", trades, LIMIT * u64::from(ACCOUNTS) / 2),
            Self::AnyTrade => ("fromId", trades, LIMIT),
        };
        let numbers = last.saturating_sub(whole).max(last / 2).max(1);
        format!("&{name}={}", 1 + random.below(numbers))
    }
}

/// What is asked for, and under which path, with which parameters behind the symbol's.
struct Kind {
    what: &'static str,
    path: &'static str,
    query: &'static str,
    begin: Begin,
}

const fn kind(what: &'static str, path: &'static str, query: &'static str, begin: Begin) -> Kind {
    Kind { what, path, query, begin }
}

const KINDS: [Kind; 9] = [
    kind("newest orders", "allOrders", "&limit=1000", Begin::Newest),
    kind("orders from any number", "allOrders", "&limit=1000", Begin::AnyOrder),
    kind("newest own trades", "myTrades", "&limit=1000", Begin::Newest),
    kind("own trades from any number", "myTrades", "&limit=1000", Begin::AnyOwnTrade),
    kind("newest trades", "trades", "&limit=1000", Begin::Newest),
    kind("trades from any number", "historicalTrades", "&limit=1000", Begin::AnyTrade),
    kind("aggregate trades", "aggTrades", "&limit=1000", Begin::Newest),
    kind("candles of a minute", "klines", "&limit=1000&interval=1m", Begin::Newest),
    kind("24 hours of one symbol", "ticker/24hr", "", Begin::Newest),
];

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

    fn pages(&self, kind: &Kind, numbers: &[(u64, u64)], count: u32) -> Result<Pages> {
        let &Kind { what, path, query, begin } = kind;
        let mut latency = Distribution::default();
        // The same numbers in every run.
        let mut random = Random::new(0);
        let mut entries = usize::MAX;
        for page in 0..count {
            interrupt::check()?;
            let number = page % SYMBOLS;
            let from = begin.parameter(numbers[number as usize], &mut random);
            let query = format!("symbol={}{query}{from}", symbol_name(number));
            let key = KeyId(u64::from(page % ACCOUNTS) + 1);
            let request = self.request(path, &query, key);
            let (sender, receiver) = mpsc::channel();
            let asked = Instant::now();
            // Whoever measures waits for every reply, so somebody is there to get it.
            self.spot.call(request, Completion::new(move |reply| drop(sender.send(reply))));
            let reply = receiver.recv_timeout(PATIENCE).context("no reply")?;
            latency.record(nanoseconds(asked.elapsed()));
            let text = || String::from_utf8_lossy(&reply.body).into_owned();
            ensure!(reply.status == 200, "{path}?{query}: {}", text());
            entries = entries.min(entries_of(&reply.body)?);
        }
        let is_judged = !matches!(path, "klines" | "ticker/24hr");
        Ok(Pages { what, is_judged, entries, latency: latency.percentiles() })
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

/// How many entries a list has; 1 of what is none. All of it is read as JSON, and nothing of it kept: values made of each
/// reply would leave the next one a heap and caches as no adapter has them.
fn entries_of(json: &[u8]) -> serde_json::Result<usize> {
    match json.first() {
        Some(b'[') => serde_json::from_slice::<Vec<IgnoredAny>>(json).map(|entries| entries.len()),
        _ => serde_json::from_slice::<IgnoredAny>(json).map(|_| 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_counted_of_what_is_json_to_its_end() {
        for (json, entries) in [("[]", 0), ("[{\"a\":[1,2]},3]", 2), ("{\"a\":[1,2]}", 1)] {
            assert_eq!(entries_of(json.as_bytes()).unwrap(), entries, "{json}");
        }
        for json in ["", "[{\"a\":1}", "[1]x", "{\"a\":}", "[1,]"] {
            assert!(entries_of(json.as_bytes()).is_err(), "{json}");
        }
    }

    #[test]
    fn pages_begin_anywhere_before_the_last_one() {
        let mut random = Random::new(0);
        let mut number = |begin: Begin, last: (u64, u64)| {
            let text = begin.parameter(last, &mut random);
            let (name, number) = text.split_once('=').unwrap();
            (name.to_owned(), number.parse::<u64>().unwrap())
        };
        let drawn: Vec<_> = (0..1000).map(|_| number(Begin::AnyTrade, (0, 11_000))).collect();
        assert!(
            drawn.iter().all(|(name, number)| name == "&fromId" && (1..=10_000).contains(number))
        );
        let tenths: std::collections::HashSet<_> =
            drawn.iter().map(|(_, number)| (number - 1) / 1000).collect();
        assert_eq!(tenths.len(), 10);
        // Too few for a page of one account anywhere: the first half.
        let drawn: Vec<_> = (0..100).map(|_| number(Begin::AnyOrder, (100, 1_000_000))).collect();
        assert!(drawn.iter().all(|(name, number)| name == "&orderId" && (1..=50).contains(number)));
        assert!(drawn.iter().any(|(_, number)| *number > 25));
        assert_eq!(number(Begin::AnyOwnTrade, (0, 1)), ("&fromId".to_owned(), 1));
    }

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
