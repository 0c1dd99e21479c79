//! What each client address has used up of the request limits: request weight and raw requests (spot
//! contract §8). Called by [`Limits`](super::Limits) for every request.
//!
//! Windows are fixed calendar windows: a minute starts at second 0. Time is an argument, never
//! read here. Memory is fixed at the start: when the table of addresses is full, those without a
//! charge in the current windows make room; when there are none, further addresses share buckets,
//! each with one common count. Which one is nobody's choice (the hash is keyed), so whoever fills the
//! table with addresses that he has, or accounts that he makes up, has to fill the buckets one by one
//! as well before all others are refused. An IPv6 client is its /64 network, as one subscriber
//! commonly holds all addresses of one.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

use crate::api_error::ApiError;
use crate::http::Reply;

/// Most limits that apply at the same time.
pub const MAX_LIMITS: usize = 4;

/// Prefix of the used-weight headers; the window's number and letter follow (spot contract §8).
pub const USED_WEIGHT_HEADER: &str = "X-SVC-USED-WEIGHT";

/// The header of the usual limit, which every reply has.
const USED_WEIGHT_BY_MINUTE_HEADER: &str = "X-SVC-USED-WEIGHT-1M";

/// The unit of a limit's window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interval {
    /// Seconds.
    Second,
    /// Minutes.
    Minute,
    /// Hours.
    Hour,
    /// Days, UTC.
    Day,
}

impl Interval {
    /// The name used in rate-limit objects and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Second => "SECOND",
            Self::Minute => "MINUTE",
            Self::Hour => "HOUR",
            Self::Day => "DAY",
        }
    }

    /// The letter used in header names.
    pub fn letter(self) -> char {
        match self {
            Self::Second => 'S',
            Self::Minute => 'M',
            Self::Hour => 'H',
            Self::Day => 'D',
        }
    }

    /// Its length in milliseconds.
    pub fn ms(self) -> u64 {
        match self {
            Self::Second => 1_000,
            Self::Minute => 60_000,
            Self::Hour => 3_600_000,
            Self::Day => 86_400_000,
        }
    }
}

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// The weights of requests.
    RequestWeight,
    /// Requests, whatever their weight.
    RawRequests,
}

impl Counted {
    /// The name used in rate-limit objects.
    pub fn name(self) -> &'static str {
        match self {
            Self::RequestWeight => "REQUEST_WEIGHT",
            Self::RawRequests => "RAW_REQUESTS",
        }
    }

    /// What a request of this weight adds. One of no weight is none: it was counted before.
    fn amount(self, weight: u32) -> u64 {
        match self {
            Self::RequestWeight => u64::from(weight),
            Self::RawRequests => u64::from(weight.min(1)),
        }
    }
}

/// So much within so many intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestLimit {
    /// What is counted.
    pub counted: Counted,
    /// The unit of the window.
    pub interval: Interval,
    /// Its multiple, `intervalNum` of the rate-limit object; at least 1.
    pub interval_num: u32,
    /// How much may be used up within one window.
    pub limit: u64,
}

impl RequestLimit {
    /// Length of its window in milliseconds.
    pub fn window_ms(self) -> u64 {
        self.interval.ms() * u64::from(self.interval_num)
    }

    fn header_name(self) -> Option<Cow<'static, str>> {
        if self.counted != Counted::RequestWeight {
            return None;
        }
        Some(match (self.interval_num, self.interval) {
            (1, Interval::Minute) => USED_WEIGHT_BY_MINUTE_HEADER.into(),
            (count, interval) => {
                format!("{USED_WEIGHT_HEADER}-{count}{}", interval.letter()).into()
            }
        })
    }
}

/// What one request was charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charge {
    /// What is used in the current window of each limit, this request included.
    used: [u64; MAX_LIMITS],
    /// The limit that is broken, if any: of several the one that is open again last.
    pub exceeded: Option<Exceeded>,
    /// Requests of this address that were refused in the current minute, this one included; 0 for an
    /// address that shares its counts with others, and for a request of no weight.
    pub refusals: u64,
}

impl Charge {
    /// What is used in the current window of the first limit.
    pub const fn first_used(&self) -> u64 {
        self.used[0]
    }
}

/// A broken limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exceeded {
    /// The limit.
    pub limit: RequestLimit,
    /// Seconds until its window ends, rounded up.
    pub retry_after_s: u64,
}

impl From<Exceeded> for ApiError {
    fn from(exceeded: Exceeded) -> Self {
        let RequestLimit { interval, interval_num, limit, .. } = exceeded.limit;
        Self::too_much_request_weight(limit, interval_num, interval.name())
            .with_retry_after(exceeded.retry_after_s)
    }
}

/// Why a set of limits cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LimitsError {
    /// Too many limits.
    #[error("{count} request limits, may be at most {MAX_LIMITS}")]
    TooMany {
        /// How many.
        count: usize,
    },
    /// A window of no length.
    #[error("request limit {index} has intervalNum 0, must be at least 1")]
    EmptyWindow {
        /// Which of the limits, from 0.
        index: usize,
    },
}

/// The counts of all addresses, or of whatever else is told apart by a key.
#[derive(Debug)]
pub struct Counts<K = IpAddr> {
    limits: Vec<RequestLimit>,
    /// Of the limits on weight; the others have no header (facts §8).
    header_names: Vec<Option<Cow<'static, str>>>,
    longest_ms: u64,
    table: Mutex<Table<K>>,
}

/// What is used in one window.
#[derive(Debug, Clone, Copy, Default)]
struct Window {
    number: u64,
    used: u64,
}

/// Whether the window with this number counts while it is `present`: it may be the next one where the clock
/// has gone back a little. One further on is of a clock that was wrong.
const fn is_present(number: u64, present: u64) -> bool {
    number == present || number == present.saturating_add(1)
}

impl Window {
    /// Adds to the window that has this number, or to the next one if that was seen already.
    fn add(&mut self, number: u64, amount: u64) -> u64 {
        if !is_present(self.number, number) {
            *self = Self { number, used: 0 };
        }
        self.used = self.used.saturating_add(amount);
        self.used
    }
}

/// What an address has used up, and how often it was refused by the minute.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    limits: [Window; MAX_LIMITS],
    refusals: Window,
}

impl<K> Table<K> {
    /// Whether the row is one that several keys have.
    const fn is_shared(&self, row: usize) -> bool {
        row >= self.used.len() - self.shared
    }
}

impl Row {
    /// One more that was refused; gives how many this minute has now.
    fn refuse(&mut self, now_ms: u64) -> u64 {
        self.refusals.add(now_ms / Interval::Minute.ms(), 1)
    }
}

#[derive(Debug)]
struct Table<K> {
    /// Which row a key has.
    rows: HashMap<K, usize>,
    free: Vec<usize>,
    /// Rows of one key each, and behind them the shared ones.
    used: Vec<Row>,
    /// Number of the shared ones, at least 1.
    shared: usize,
    /// The longest window in which room was last made: a second try within it finds none.
    cleared_in: Option<u64>,
}

impl<K: Eq + Hash> Counts<K> {
    /// An empty table with room for `capacity` keys and `shared` buckets, at least one, for all others;
    /// all of it allocated now.
    ///
    /// # Errors
    /// [`LimitsError`].
    pub fn new(
        limits: Vec<RequestLimit>,
        capacity: usize,
        shared: usize,
    ) -> Result<Self, LimitsError> {
        let shared = shared.max(1);
        if limits.len() > MAX_LIMITS {
            return Err(LimitsError::TooMany { count: limits.len() });
        }
        if let Some(index) = limits.iter().position(|limit| limit.interval_num == 0) {
            return Err(LimitsError::EmptyWindow { index });
        }
        Ok(Self {
            header_names: limits.iter().map(|limit| limit.header_name()).collect(),
            longest_ms: limits.iter().map(|limit| limit.window_ms()).max().unwrap_or(1),
            limits,
            table: Mutex::new(Table {
                rows: HashMap::with_capacity(capacity),
                free: (0..capacity).rev().collect(),
                used: vec![Row::default(); capacity.saturating_add(shared)],
                shared,
                cleared_in: None,
            }),
        })
    }

    /// The limits, as listed in exchangeInfo.
    pub fn limits(&self) -> &[RequestLimit] {
        &self.limits
    }

    /// Charges a request. Refused requests are charged too: who keeps sending stays refused.
    ///
    /// `now_ms` is the time in milliseconds since the Unix epoch. Should it go back over the beginning of a
    /// window, the charge goes to that window all the same; what was charged later than that is forgotten.
    pub fn charge_key(&self, key: K, weight: u32, now_ms: u64) -> Charge {
        self.charge_before(key, weight, 0, now_ms)
    }

    /// The limit that a request of weight 1 would break at `now_ms`; nothing is charged.
    pub fn look_key(&self, key: K, now_ms: u64) -> Option<Exceeded> {
        self.charge_before(key, 0, 1, now_ms).exceeded
    }

    /// Charges a request; broken is each limit in which there is no room for `more` behind it.
    fn charge_before(&self, key: K, weight: u32, more: u64, now_ms: u64) -> Charge {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let row = self.row(&mut table, key, now_ms);
        let is_shared = table.is_shared(row);
        let counts = &mut table.used[row];
        let mut charge = Charge { used: [0; MAX_LIMITS], exceeded: None, refusals: 0 };
        for (index, limit) in self.limits.iter().enumerate() {
            let length = limit.window_ms();
            let window = &mut counts.limits[index];
            charge.used[index] = window.add(now_ms / length, limit.counted.amount(weight));
            if window.used.saturating_add(more) > limit.limit {
                let end = (window.number + 1).saturating_mul(length);
                let exceeded = Exceeded {
                    limit: *limit,
                    retry_after_s: end.saturating_sub(now_ms).div_ceil(1000),
                };
                let longer = |other: Exceeded| exceeded.retry_after_s > other.retry_after_s;
                if charge.exceeded.is_none_or(longer) {
                    charge.exceeded = Some(exceeded);
                }
            }
        }
        // What has no weight was counted, and perhaps refused, before.
        if charge.exceeded.is_some() && !is_shared && weight > 0 {
            charge.refusals = counts.refuse(now_ms);
        }
        charge
    }

    /// Counts a request that was refused for something else than these limits; gives how many this minute has
    /// now, 0 for who shares its counts.
    pub fn refuse_key(&self, key: K, now_ms: u64) -> u64 {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let row = self.row(&mut table, key, now_ms);
        let is_shared = table.is_shared(row);
        if is_shared { 0 } else { table.used[row].refuse(now_ms) }
    }

    /// Adds the used weights to a reply: one header per limit, and for a limit of one minute the
    /// short name as well, which older clients read.
    pub fn add_headers(&self, charge: &Charge, reply: &mut Reply) {
        for ((limit, name), used) in self.limits.iter().zip(&self.header_names).zip(charge.used) {
            let Some(name) = name else { continue };
            let value = used.to_string();
            if limit.interval == Interval::Minute && limit.interval_num == 1 {
                let short = (USED_WEIGHT_HEADER.into(), value.clone().into());
                reply.headers.push(short);
            }
            reply.headers.push((name.clone(), value.into()));
        }
    }

    /// The row of a key, a new one if need be and possible, else its shared one.
    fn row(&self, table: &mut Table<K>, key: K, now_ms: u64) -> usize {
        if let Some(row) = table.rows.get(&key) {
            return *row;
        }
        if table.free.is_empty() {
            self.make_room(table, now_ms);
        }
        match table.free.pop() {
            Some(row) => {
                table.used[row] = Row::default();
                table.rows.insert(key, row);
                row
            }
            None => {
                let of_all = table.rows.hasher().hash_one(&key) % table.shared as u64;
                table.used.len() - 1 - of_all as usize
            }
        }
    }

    /// Frees the rows without a charge in any current window. An address stays in use to the end
    /// of its longest window, so this is worth a pass over the table once per longest window.
    fn make_room(&self, table: &mut Table<K>, now_ms: u64) {
        let longest = now_ms / self.longest_ms;
        if table.cleared_in.is_some_and(|cleared| is_present(cleared, longest)) {
            return;
        }
        table.cleared_in = Some(longest);
        let Table { rows, free, used, .. } = table;
        rows.retain(|_, row| {
            let current = self
                .limits
                .iter()
                .zip(&used[*row].limits)
                .any(|(limit, window)| is_present(window.number, now_ms / limit.window_ms()));
            if !current {
                free.push(*row);
            }
            current
        });
    }
}

impl Counts {
    /// As [`refuse_key`](Self::refuse_key), for the client that an address stands for.
    pub fn refuse(&self, address: IpAddr, now_ms: u64) -> u64 {
        self.refuse_key(client(address), now_ms)
    }

    /// As [`charge_key`](Self::charge_key), for the client that an address stands for.
    pub fn charge(&self, address: IpAddr, weight: u32, now_ms: u64) -> Charge {
        self.charge_key(client(address), weight, now_ms)
    }

    /// What an address has used up so far; nothing is added.
    pub fn peek(&self, address: IpAddr, now_ms: u64) -> Charge {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let row = table.rows.get(&client(address)).map(|row| table.used[*row]).unwrap_or_default();
        let mut used = [0; MAX_LIMITS];
        for (index, limit) in self.limits.iter().enumerate() {
            let window = row.limits[index];
            let is_shown = is_present(window.number, now_ms / limit.window_ms());
            used[index] = if is_shown { window.used } else { 0 };
        }
        Charge { used, exceeded: None, refusals: 0 }
    }
}

/// The address that stands for a client: IPv4 as it is, also when mapped into IPv6; of IPv6 the
/// /64 network.
pub fn client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests;
