//! What keeps one client from taking the service from the others: request limits and bans per address,
//! addresses that are not served at all, addresses that a key may be used from (spot contract §8, §5.3).
//! The spot service asks for every request; [`crate::run`] makes it and starts its [`Keeper`].
//!
//! All of it is bounded, however many addresses there are: a table of counts whose rows are made at the
//! start ([`counts`]), so many bans, files of so many bytes.

mod bans;
pub mod counts;
mod keeper;
pub mod key_addresses;
pub mod network;

use std::net::IpAddr;
use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use touchline_protocol::units::KeyId;

use crate::api_error::ApiError;
use crate::http::{Fault, Headers, Refused, Reply};
use crate::notice::alert;
use bans::Bans;
use counts::{Charge, Counted, Counts, Exceeded, Interval, RequestLimit, client};
use keeper::KeyAddressesFile;
pub use keeper::{Keeper, KeeperError};
use key_addresses::KeyAddresses;
use network::{Network, any_contains, client_behind};

/// Client addresses that are counted apart from each other.
const ADDRESSES: usize = 65_536;

/// Counts that all further addresses share: whoever has a /48 network of IPv6 has as many as there is room for.
const SHARED: usize = 16_384;

/// The text of a file of bans as it would be written again at this time, ms since the epoch, and the number of lines that
/// are no bans. For the fuzz target `small_files`, which is no part of this crate; the bans are nobody else's.
#[doc(hidden)]
#[must_use]
pub fn bans_again(text: &str, now_ms: u64) -> (String, usize) {
    let (bans, bad_lines) = Bans::from_text(text, now_ms);
    (bans.to_text(), bad_lines)
}

/// What of the limits can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitsConfig {
    /// Request weight per address and minute.
    pub request_weight_per_minute: u64,
    /// Requests per address and five minutes.
    pub raw_requests_per_5_minutes: u64,
    /// Refused requests per address and minute that are answered 429; the next one bans it.
    pub refusals_before_ban: u64,
    /// Not served at all.
    pub denied: Vec<Network>,
    /// Believed when they tell whom they speak for.
    pub trusted_proxies: Vec<Network>,
}

/// The limits, bans and lists of one adapter.
#[derive(Debug)]
pub struct Limits {
    config: LimitsConfig,
    counts: Counts,
    bans: Mutex<Bans>,
    key_addresses: RwLock<KeyAddresses>,
    /// Where they come from; `None` before the keeper starts.
    key_addresses_file: Mutex<Option<KeyAddressesFile>>,
    /// Tells the keeper that there are other bans than before.
    changed: Mutex<Option<SyncSender<()>>>,
}

/// What a request has cost, and why it is not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admission {
    charge: Charge,
    /// `None` for a request that is served.
    pub refusal: Option<Refusal>,
}

/// Why a request is not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// A limit is used up.
    Exceeded(Exceeded),
    /// The address is banned.
    Banned {
        /// Until then, ms since the epoch.
        end_ms: u64,
        /// Until then, in seconds rounded up.
        retry_after_s: u64,
    },
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Exceeded(exceeded) => exceeded.into(),
            Refusal::Banned { end_ms, retry_after_s } => {
                Self::ip_banned(end_ms).with_retry_after(retry_after_s)
            }
        }
    }
}

impl Refusal {
    const fn banned(end_ms: u64, now_ms: u64) -> Self {
        Self::Banned { end_ms, retry_after_s: end_ms.saturating_sub(now_ms).div_ceil(1000) }
    }
}

impl Limits {
    /// Nothing used up, nobody banned.
    #[must_use]
    pub fn new(config: LimitsConfig) -> Self {
        let weight = RequestLimit {
            counted: Counted::RequestWeight,
            interval: Interval::Minute,
            interval_num: 1,
            limit: config.request_weight_per_minute,
        };
        let raw = RequestLimit {
            counted: Counted::RawRequests,
            interval_num: 5,
            limit: config.raw_requests_per_5_minutes,
            ..weight
        };
        Self {
            config,
            counts: Counts::new(vec![weight, raw], ADDRESSES, SHARED)
                .expect("two limits of some minutes are within the bounds"),
            bans: Mutex::default(),
            key_addresses: RwLock::default(),
            key_addresses_file: Mutex::new(None),
            changed: Mutex::new(None),
        }
    }

    /// The request limits, as listed in exchangeInfo.
    pub fn request_limits(&self) -> &[RequestLimit] {
        self.counts.limits()
    }

    /// Whose request it is: the peer's, or that of whom a trusted proxy speaks for.
    pub fn client(&self, peer: IpAddr, headers: &Headers) -> IpAddr {
        client_behind(&self.config.trusted_proxies, peer, headers)
    }

    /// Whose request it was that a front has answered in place of a service, and whether it is still to be counted. What
    /// was called has been counted and let in already. A proxy answers for nothing that others sent: where the head does
    /// not tell who that was, nobody does.
    pub fn answerable(&self, refused: &Refused<'_>, fault: Fault) -> (IpAddr, bool) {
        let client = self.client(refused.peer.ip(), refused.headers);
        let was_called = matches!(fault, Fault::Abandoned | Fault::Panicked);
        (client, !was_called && !self.is_trusted_proxy(client))
    }

    /// Whether the address is a proxy that speaks for others.
    fn is_trusted_proxy(&self, peer: IpAddr) -> bool {
        any_contains(&self.config.trusted_proxies, peer)
    }

    /// Whether the address is not served at all.
    pub fn denies(&self, client: IpAddr) -> bool {
        any_contains(&self.config.denied, client)
    }

    /// Whether a key may be used from an address.
    pub fn allows_key(&self, key: KeyId, client: IpAddr) -> bool {
        self.key_addresses.read().unwrap_or_else(PoisonError::into_inner).allow(key, client)
    }

    /// Reads the lists of keys' addresses if their file has changed; true if they are now what it says.
    /// To be asked before a key is used for the first time: its list was written before anybody got to
    /// know the key.
    pub fn refresh_key_addresses(&self) -> bool {
        let mut file = self.key_addresses_file();
        let Some(file) = file.as_mut() else { return true };
        file.read(self).unwrap_or_else(|error| {
            alert!("adapter: the lists of keys' addresses stay as they were: {error}");
            false
        })
    }

    fn key_addresses_file(&self) -> MutexGuard<'_, Option<KeyAddressesFile>> {
        self.key_addresses_file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Charges a request, and says whether it is served. While an address is banned nothing is charged.
    /// Who goes on and on while requests are refused is banned.
    ///
    /// `now_ms` is the time in milliseconds since the epoch.
    pub fn admit(&self, address: IpAddr, weight: u32, now_ms: u64) -> Admission {
        let banned = self.bans().end_ms(client(address), now_ms);
        if let Some(end_ms) = banned {
            let charge = self.counts.peek(address, now_ms);
            return Admission { charge, refusal: Some(Refusal::banned(end_ms, now_ms)) };
        }
        let charge = self.counts.charge(address, weight, now_ms);
        let refusal = charge.exceeded.map(|exceeded| {
            if charge.refusals > self.config.refusals_before_ban {
                Refusal::banned(self.ban(address, now_ms), now_ms)
            } else {
                Refusal::Exceeded(exceeded)
            }
        });
        Admission { charge, refusal }
    }

    /// Notes that a request which was let in was refused for its account's order counts: with who goes on and on
    /// it goes as with any other limit, from the next request on.
    pub fn note_too_many_orders(&self, address: IpAddr, now_ms: u64) {
        if self.counts.refuse(address, now_ms) > self.config.refusals_before_ban {
            self.ban(address, now_ms);
        }
    }

    /// Adds to a reply what its address has used up (spot contract §8).
    pub fn add_headers(&self, admission: &Admission, reply: &mut Reply) {
        self.counts.add_headers(&admission.charge, reply);
    }

    fn ban(&self, address: IpAddr, now_ms: u64) -> u64 {
        let end_ms = self.bans().ban(client(address), now_ms);
        let changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keeper) = changed.as_ref() {
            // Full: the keeper has been told already and has not looked yet.
            let _full = keeper.try_send(());
        }
        end_ms
    }

    fn bans(&self) -> MutexGuard<'_, Bans> {
        self.bans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The start of a minute.
    const NOW: u64 = 28_000_000 * 60_000;

    fn limits() -> Limits {
        Limits::new(LimitsConfig {
            request_weight_per_minute: 10,
            raw_requests_per_5_minutes: 100,
            refusals_before_ban: 2,
            denied: vec!["192.0.2.0/24".parse().unwrap()],
            trusted_proxies: vec!["10.0.0.0/8".parse().unwrap()],
        })
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn who_goes_on_when_refused_is_banned_for_longer_each_time() {
        let limits = limits();
        let client = ip("198.51.100.1");
        let refusal = |now| limits.admit(client, 10, now).refusal.map(ApiError::from);
        let status = |now| refusal(now).map(|error| (error.status, error.retry_after_s));
        assert_eq!(refusal(NOW), None);
        assert_eq!(status(NOW), Some((429, Some(60))));
        assert_eq!(status(NOW + 1000), Some((429, Some(59))));
        assert_eq!(status(NOW + 2000), Some((418, Some(120))), "2 minutes");
        let error = refusal(NOW + 3000).unwrap();
        let end = NOW + 2000 + 120_000;
        assert_eq!((error.code, error.retry_after_s), (-1003, Some(119)));
        let expected = format!(
            "Way too much request weight used; IP banned until {end}. Please use the websocket for live updates to avoid bans."
        );
        assert_eq!(error.message, expected);
        assert_eq!(status(end - 1), Some((418, Some(1))));
        assert_eq!(limits.admit(ip("198.51.100.2"), 10, NOW).refusal, None, "another client");
        assert_eq!(status(end), None);
        for _ in 0..2 {
            assert_eq!(status(end).map(|(status, _)| status), Some(429));
        }
        assert_eq!(status(end), Some((418, Some(600))), "10 minutes");
    }

    /// So are requests told that were charged before, and that came to nothing later.
    #[test]
    fn what_has_no_weight_is_no_refusal() {
        let limits = limits();
        let client = ip("198.51.100.1");
        limits.admit(client, 11, NOW);
        for _ in 0..5 {
            assert!(matches!(limits.admit(client, 0, NOW).refusal, Some(Refusal::Exceeded(_))));
        }
        assert_eq!(limits.bans().end_ms(client, NOW), None);
    }

    #[test]
    fn refusals_in_different_minutes_ban_nobody() {
        let limits = limits();
        let client = ip("198.51.100.1");
        for minute in 0..5 {
            let now = NOW + minute * 60_000;
            let refusals = (0..3).filter_map(|_| limits.admit(client, 10, now).refusal);
            assert!(refusals.count() == 2);
        }
        assert_eq!(limits.bans().end_ms(client, NOW), None);
    }

    /// It was ahead for a while, and is right again: neither what was used up then nor a ban holds until the
    /// time that it showed.
    #[test]
    fn a_clock_that_was_set_back_locks_nobody_out() {
        const DAY: u64 = 86_400_000;
        let limits = limits();
        let (busy, banned) = (ip("198.51.100.1"), ip("198.51.100.2"));
        assert_eq!(limits.admit(busy, 10, NOW + DAY).refusal, None);
        for _ in 0..4 {
            limits.admit(banned, 10, NOW + DAY);
        }
        assert_eq!(limits.admit(busy, 10, NOW).refusal, None);
        let refused = limits.admit(busy, 10, NOW).refusal.map(ApiError::from).unwrap();
        assert_eq!((refused.status, refused.retry_after_s), (429, Some(60)));
        let still = limits.admit(banned, 10, NOW).refusal.map(ApiError::from).unwrap();
        assert_eq!((still.status, still.retry_after_s), (418, Some(120)));
        assert_eq!(limits.admit(banned, 10, NOW + 120_000).refusal, None);
    }

    #[test]
    fn a_ban_costs_nothing_and_still_shows_what_was_used() {
        let limits = limits();
        let client = ip("2001:db8::1");
        for _ in 0..4 {
            limits.admit(client, 10, NOW);
        }
        let neighbour = ip("2001:db8::2");
        let admission = limits.admit(neighbour, 10, NOW);
        assert!(matches!(admission.refusal, Some(Refusal::Banned { .. })), "of one subscriber");
        let mut reply = Reply::empty(418);
        limits.add_headers(&admission, &mut reply);
        let (name, value) = &reply.headers[0];
        assert_eq!((&**name, &**value), ("X-SVC-USED-WEIGHT", "40"));
    }

    #[test]
    fn raw_requests_are_limited_too() {
        let limits = Limits::new(LimitsConfig {
            request_weight_per_minute: 1000,
            raw_requests_per_5_minutes: 3,
            refusals_before_ban: 100,
            denied: Vec::new(),
            trusted_proxies: Vec::new(),
        });
        let client = ip("198.51.100.1");
        let served = (0..5).filter(|_| limits.admit(client, 1, NOW).refusal.is_none());
        assert_eq!(served.count(), 3);
        let kinds: Vec<_> = limits
            .request_limits()
            .iter()
            .map(|limit| (limit.counted.name(), limit.interval_num, limit.limit))
            .collect();
        assert_eq!(kinds, [("REQUEST_WEIGHT", 1, 1000), ("RAW_REQUESTS", 5, 3)]);
    }

    /// More addresses than there is room for, each of another network: who was there before is served as before,
    /// and so is who comes from elsewhere, while each of them is limited.
    #[test]
    fn a_flood_of_addresses_finds_no_room_and_takes_none_away() {
        let limits = limits();
        let network = |number: usize| IpAddr::V6((1 << 125 | (number as u128) << 64).into());
        let is_refused = |address| limits.admit(address, 1, NOW).refusal.is_some();
        let present = ip("198.51.100.1");
        limits.admit(present, 4, NOW);
        for number in 1..ADDRESSES {
            assert!(!is_refused(network(number)));
        }
        // One for each of the shared counts, of ten; that one of them meets nine others is no more than possible.
        let further = ADDRESSES..ADDRESSES + SHARED;
        assert!(further.clone().filter(|&number| is_refused(network(number))).count() < 10);
        let floods = network(further.start);
        let refused = (0..1000).filter(|_| is_refused(floods)).count();
        assert!(refused > 990, "{refused} refused");
        let elsewhere = (0..=255).map(|last| IpAddr::from([203, 0, 113, last]));
        assert!(elsewhere.filter(|&address| is_refused(address)).count() < 10);
        assert_eq!(limits.bans().end_ms(floods, NOW), None, "nobody is banned for others");
        assert_eq!(limits.admit(present, 6, NOW).refusal, None);
        assert!(is_refused(present));
    }

    #[test]
    fn lists_of_addresses() {
        let limits = limits();
        assert!(limits.denies(ip("192.0.2.7")) && !limits.denies(ip("192.0.3.7")));
        let mut headers = Headers::default();
        headers.push("X-Forwarded-For", b"192.0.2.7");
        assert_eq!(limits.client(ip("10.0.0.1"), &headers), ip("192.0.2.7"));
        assert_eq!(limits.client(ip("198.51.100.1"), &headers), ip("198.51.100.1"));
        assert!(limits.is_trusted_proxy(ip("10.0.0.1")));
        assert!(limits.allows_key(KeyId(1), ip("192.0.2.7")));
    }
}
