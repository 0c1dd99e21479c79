//! What every handler needs of its request: the parameters, who sends it, and proof of that. Made
//! once per attempt to serve a request.

use std::net::IpAddr;
use std::sync::Arc;

use touchline_protocol::message::command::{
    KEY_MARKET_DATA, KEY_TRADE, KEY_USER_DATA, KEY_USER_STREAM,
};
use touchline_protocol::units::{AccountId, KeyId};

use super::Shared;
use super::information::Information;
use super::long::Readers;
use super::routes::{self, Handler};
use super::streams::Streams;
use crate::api_error::ApiError;
use crate::http::{Method, Request};
use crate::key_ring::KnownKey;
use crate::limits::Limits;
use crate::parameters::{ParameterError, Parameters};
use crate::route::{Route, Security};
use crate::timing;
use crate::views::Views;
use crate::views::state::State;

/// Longest API key that is looked at, in characters; genuine ones have 64.
const KEY_CHARACTERS_MAX: usize = 128;

/// Who sends a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Caller {
    pub(super) key: KeyId,
    pub(super) account: AccountId,
}

/// A signed request that came in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Signed {
    pub(super) caller: Caller,
    /// The engine must not decide later than this, ns since the epoch: by its own clock, if that is behind.
    pub(super) not_after_ns: u64,
    /// That bound is the request's deadline, which comes before the end of its `recvWindow`.
    pub(super) deadline_first: bool,
}

/// A request whose key is known and whose parameters are readable.
pub(super) struct Intake<'a> {
    shared: &'a Shared,
    request: &'a Request,
    pub(super) parameters: Parameters<'a>,
    caller: Option<(Caller, Arc<KnownKey>)>,
}

impl<'a> Intake<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        route: &Route<Handler>,
        request: &'a Request,
        address: IpAddr,
    ) -> Result<Self, ApiError> {
        let caller = match key_kind(route.security) {
            None => None,
            Some(kind) => Some(caller(shared, request, (kind, address))?),
        };
        let parameters = route.parameters(request)?;
        routes::check_forms(route, &parameters)?;
        Ok(Self { shared, request, parameters, caller })
    }

    /// Server time at the request's arrival, ms since the epoch.
    pub(super) fn now_ms(&self) -> u64 {
        self.request.arrived_ms()
    }

    /// That moment as the engine's clock shows it, ns since the epoch: what is of the log, such as trades and counts of
    /// orders, has its times.
    pub(super) fn engine_ns(&self) -> u64 {
        self.shared.views.engine_ns(self.request.arrived_ns)
    }

    /// Whose key the request carries.
    pub(super) fn caller(&self) -> Result<Caller, ApiError> {
        self.known_caller().map(|(caller, _)| *caller)
    }

    fn known_caller(&self) -> Result<&(Caller, Arc<KnownKey>), ApiError> {
        self.caller.as_ref().ok_or(ApiError::unauthorized())
    }

    /// The user data stream handles.
    pub(super) const fn streams(&self) -> &Streams {
        &self.shared.streams
    }

    /// Who is being sent long lists.
    pub(super) const fn readers(&self) -> &Arc<Readers> {
        &self.shared.readers
    }

    /// GET /exchangeInfo as it was written last.
    pub(super) const fn information(&self) -> &Information {
        &self.shared.information
    }

    /// The views, for what is looked at when the request has been read.
    pub(super) fn views(&self) -> Arc<Views> {
        Arc::clone(&self.shared.views)
    }

    /// When the engine was last alive; see [`Views::alive_ms`](crate::views::Views::alive_ms).
    pub(super) fn alive_ms(&self) -> u64 {
        self.shared.views.alive_ms()
    }

    /// Looks at the views.
    pub(super) fn read<R>(&self, look: impl FnOnce(&State) -> R) -> R {
        self.shared.views.read(look)
    }

    /// The limits on requests, which exchangeInfo lists.
    pub(super) fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// To be called when a handler of an open route has read its parameters.
    pub(super) fn open(&self) -> Result<(), ApiError> {
        Ok(self.parameters.all_read()?)
    }

    /// To be called when a handler of a signed route has read its parameters: reads the remaining
    /// ones and checks timing and signature (spot contract §5).
    pub(super) fn signed(&self) -> Result<Signed, ApiError> {
        let sent = &self.parameters;
        let window = sent.long("recvWindow")?;
        let timestamp = sent.required_long("timestamp")?;
        sent.required_text("signature")?;
        let (caller, key) = self.known_caller()?;
        let now_ms = i64::try_from(self.request.arrived_ms()).unwrap_or(i64::MAX);
        let last_ms = timing::check(timestamp, timing::recv_window(window)?, now_ms)?;
        key.signing.verify(&self.request.query, &self.request.body)?;
        sent.all_read()?;
        // The last millisecond of the window counts whole.
        let window_end = u64::try_from(last_ms).unwrap_or(0).saturating_mul(1_000_000) + 999_999;
        let patience = u64::try_from(self.shared.config.deadline.as_nanos()).unwrap_or(u64::MAX);
        let deadline = self.request.arrived_ns.saturating_add(patience);
        let not_after_ns = self.shared.views.not_after_ns(window_end.min(deadline));
        Ok(Signed { caller: *caller, not_after_ns, deadline_first: deadline < window_end })
    }
}

/// The parameters of a request; those of a GET stand in its query only (spot contract §1.5).
pub(super) fn parameters(request: &Request) -> Result<Parameters<'_>, ParameterError> {
    match request.method {
        Method::Get => Parameters::parse(&request.query, b""),
        _ => Parameters::parse(&request.query, &request.body),
    }
}

/// The permissions of which a key needs one for a route.
const fn key_kind(security: Security) -> Option<u8> {
    match security {
        Security::None | Security::Bearer => None,
        Security::MarketData => Some(KEY_MARKET_DATA),
        Security::UserStream => Some(KEY_USER_STREAM),
        Security::Trade => Some(KEY_TRADE),
        Security::UserData => Some(KEY_USER_DATA),
        // The contract names no kind: it tells who places orders how many that may be.
        Security::Signed => Some(KEY_TRADE | KEY_USER_DATA),
    }
}

/// Whose account a request on a route is about, if its key may be used for that and has signed it.
pub(super) fn account(
    shared: &Shared,
    route: &Route<Handler>,
    request: &Request,
    address: IpAddr,
) -> Option<AccountId> {
    let kind = key_kind(route.security)?;
    let (caller, key) = caller(shared, request, (kind, address)).ok()?;
    key.signing.verify(&request.query, &request.body).ok().map(|()| caller.account)
}

/// Whose key a request of this kind carries, if it may be used for it and from that address.
fn caller(
    shared: &Shared,
    request: &Request,
    (kind, address): (u8, IpAddr),
) -> Result<(Caller, Arc<KnownKey>), ApiError> {
    let text = request
        .headers
        .text(&shared.key_header)
        .filter(|text| (1..=KEY_CHARACTERS_MAX).contains(&text.len()))
        .filter(|text| text.bytes().all(|byte| byte.is_ascii_graphic()))
        .ok_or(ApiError::api_key_format())?;
    let is_ready = || shared.limits.refresh_key_addresses();
    let known = shared.keys.find(text, is_ready).ok_or(ApiError::api_key_rejected())?;
    let key = known.id;
    shared
        .views
        .read(|state| state.accounts.key(key).copied())
        .filter(|record| !record.revoked && record.permissions & kind != 0)
        .filter(|_| shared.limits.allows_key(key, address))
        .map(|record| (Caller { key, account: record.account }, known))
        .ok_or(ApiError::api_key_rejected())
}
