//! Who is not served: addresses that are denied, banned or over their limits, and keys that are used from
//! elsewhere.

use std::net::SocketAddr;

use super::errors::assert_error;
use super::fixture::{NOW_MS, Site, body, config, header, open};
use crate::config::AdapterConfig;
use crate::http::Method::{Delete, Get, Post};
use crate::http::{Fault, Headers, Refused, Reply, Request, Service};
use crate::limits::LimitsConfig;
use crate::views::fixture::Log;
use touchline_protocol::message::enums::RejectReason;

fn site() -> Site {
    let limits = LimitsConfig {
        request_weight_per_minute: 5,
        refusals_before_ban: 2,
        denied: vec!["192.0.2.0/24".parse().unwrap()],
        trusted_proxies: vec!["10.0.0.0/8".parse().unwrap()],
        ..AdapterConfig::default().limits()
    };
    Site::limited(Log::venue(), config(), limits)
}

fn from(peer: &str, mut request: Request) -> Request {
    request.peer = SocketAddr::new(peer.parse().unwrap(), 4000);
    request
}

fn forwarded_for(client: &str) -> Headers {
    let mut headers = Headers::default();
    headers.push("X-Forwarded-For", client.as_bytes());
    headers
}

fn forwarded(mut request: Request, client: &str) -> Request {
    request.headers.push("X-Forwarded-For", client.as_bytes());
    request
}

fn ping(site: &Site, peer: &str) -> Reply {
    site.reply(from(peer, open(Get, "ping", "")))
}

#[test]
fn a_denied_address_gets_its_status_and_nothing_else() {
    let site = site();
    for request in [
        from("192.0.2.9", open(Get, "ping", "")),
        from("192.0.2.9", open(Get, "unknown", "")),
        from("192.0.2.9", site.signed(Delete, "order", "symbol=BTCUSDT&orderId=1")),
        forwarded(from("10.0.0.1", open(Get, "ping", "")), "192.0.2.9"),
    ] {
        let reply = site.reply(request);
        assert_eq!((reply.status, reply.body.len(), reply.headers.len()), (403, 0, 0));
    }
    let refused = Refused {
        path: "/",
        headers: &Headers::default(),
        peer: SocketAddr::from(([192, 0, 2, 9], 1)),
        refused_ns: NOW_MS * 1_000_000,
    };
    assert_eq!(site.spot.fault(&refused, Fault::UnknownMethod).status, 403);
    let headers = &forwarded_for("192.0.2.9");
    let proxied = Refused { peer: SocketAddr::from(([10, 0, 0, 1], 1)), headers, ..refused };
    assert_eq!(site.spot.fault(&proxied, Fault::UnknownMethod).status, 403);
    // What a client says of itself denies nobody.
    let liar = forwarded(from("198.51.100.1", open(Get, "ping", "")), "192.0.2.9");
    assert_eq!(site.reply(liar).status, 200);
}

#[test]
fn who_goes_on_when_refused_is_banned_from_everything() {
    let site = site();
    let client = "198.51.100.1";
    for _ in 0..5 {
        assert_eq!(ping(&site, client).status, 200);
    }
    for used in ["6", "7"] {
        let reply = ping(&site, client);
        assert_eq!(reply.status, 429);
        assert_eq!(header(&reply, "X-SVC-USED-WEIGHT-1M"), Some(used));
        assert!(header(&reply, "Retry-After").is_some());
    }
    let until = NOW_MS + 120_000;
    let message = format!(
        "Way too much request weight used; IP banned until {until}. Please use the websocket for live updates to avoid bans."
    );
    let banned = (418, -1003, &*message);
    for request in [
        open(Get, "ping", ""),
        open(Get, "ping", ""),
        open(Get, "unknown", ""),
        open(Post, "ping", ""),
        site.signed(Delete, "order", "symbol=BTCUSDT&orderId=1"),
    ] {
        let reply = site.reply(from(client, request));
        assert_error(&reply, banned, "banned");
        assert_eq!(header(&reply, "Retry-After"), Some("120"));
        assert_eq!(header(&reply, "X-SVC-USED-WEIGHT-1M"), Some("8"), "nothing is charged");
    }
    assert_eq!(ping(&site, "198.51.100.2").status, 200);
    assert!(site.engine.seen.lock().unwrap().is_empty());
    let mut later = from(client, open(Get, "ping", ""));
    later.arrived_ns = until * 1_000_000;
    assert_eq!(site.reply(later).status, 200);
}

/// The engine counts orders, by account; who goes on for all that is banned by address.
#[test]
fn who_goes_on_with_too_many_orders_is_banned_too() {
    let limits = LimitsConfig { refusals_before_ban: 2, ..AdapterConfig::default().limits() };
    let site = Site::limited(Log::venue(), config(), limits);
    let order = "symbol=BTCUSDT&side=BUY&type=MARKET&quantity=1";
    let place = |peer: &str| site.reply(from(peer, site.signed(Post, "order", order)));
    for _ in 0..3 {
        site.expect_reject(RejectReason::TooManyOrders, 0);
        let reply = place("198.51.100.1");
        assert_eq!((reply.status, header(&reply, "Retry-After")), (429, None));
    }
    assert_eq!(site.engine.seen.lock().unwrap().len(), 3);
    let banned = ping(&site, "198.51.100.1");
    assert_eq!((banned.status, header(&banned, "Retry-After")), (418, Some("120")));
    // The same account from elsewhere, refused for something else.
    for _ in 0..5 {
        site.expect_reject(RejectReason::LotSize, 0);
        assert_eq!(place("198.51.100.2").status, 400);
    }
    assert_eq!(ping(&site, "198.51.100.2").status, 200);
}

/// Also with a request that the front refuses. What was called had been let in, so it is told what came of it.
#[test]
fn what_the_front_refuses_is_refused_for_the_limits_first() {
    let site = site();
    let client = "198.51.100.1";
    let refused = Refused {
        path: "/api/v3/ping",
        headers: &Headers::default(),
        peer: SocketAddr::new(client.parse().unwrap(), 4000),
        refused_ns: NOW_MS * 1_000_000,
    };
    for _ in 0..5 {
        assert_eq!(site.spot.fault(&refused, Fault::UnknownMethod).status, 405);
    }
    let over = "Too much request weight used; current limit is 5 request weight per 1 MINUTE. Please use the websocket for live updates to avoid polling the API.";
    let until = NOW_MS + 120_000;
    let banned = format!(
        "Way too much request weight used; IP banned until {until}. Please use the websocket for live updates to avoid bans."
    );
    for (fault, used, expected) in [
        (Fault::UnknownMethod, "6", (429, -1003, over)),
        (Fault::BodyTooLarge { limit: 16_384 }, "7", (429, -1003, over)),
        (Fault::BodyTooLarge { limit: 16_384 }, "8", (418, -1003, &banned)),
        (Fault::UnknownMethod, "8", (418, -1003, &banned)),
    ] {
        let called = site.spot.fault(&refused, Fault::Abandoned);
        assert_eq!((called.status, header(&called, "Retry-After")), (500, None));
        let reply = site.spot.fault(&refused, fault);
        assert_error(&reply, expected, &format!("{fault:?}"));
        assert_eq!(header(&reply, "X-SVC-USED-WEIGHT-1M"), Some(used), "{fault:?}");
        let patience = header(&reply, "Retry-After").map(|text| text.parse::<u64>().unwrap());
        assert_eq!(patience.is_some_and(|seconds| seconds > 60), expected.0 == 418, "{fault:?}");
        assert!(patience.is_some() && header(&reply, "Allow").is_none(), "{fault:?}");
    }
}

#[test]
fn a_proxy_answers_for_none_of_its_clients() {
    let site = site();
    let proxied = |client: &str| {
        let request = from("10.0.0.1", open(Get, "ping", ""));
        site.reply(forwarded(request, client)).status
    };
    for _ in 0..5 {
        assert_eq!(proxied("198.51.100.1"), 200);
    }
    assert_eq!((proxied("198.51.100.1"), proxied("198.51.100.2")), (429, 200));
    // Nor for requests that nobody could read, whose client is unknown.
    let refused = Refused {
        path: "/api/v3/ping",
        headers: &Headers::default(),
        peer: SocketAddr::from(([10, 0, 0, 1], 1)),
        refused_ns: NOW_MS * 1_000_000,
    };
    for _ in 0..20 {
        assert_eq!(site.spot.fault(&refused, Fault::UnknownMethod).status, 405);
    }
    assert_eq!(ping(&site, "10.0.0.1").status, 200);
    // Where the head was read it tells who that was: one that is to pay, as for any other request.
    let headers = &forwarded_for("198.51.100.3");
    let read = Refused { headers, ..refused };
    let told = [0; 9].map(|_| site.spot.fault(&read, Fault::BodyTooLarge { limit: 1 }).status);
    assert_eq!(told, [413, 413, 413, 413, 413, 429, 429, 418, 418]);
    assert_eq!(proxied("198.51.100.3"), 418);
    assert_eq!(site.spot.fault(&refused, Fault::BodyTooLarge { limit: 1 }).status, 413);
    // Nor are they refused for what it asked itself.
    for _ in 0..10 {
        ping(&site, "10.0.0.1");
    }
    assert_eq!(ping(&site, "10.0.0.1").status, 418);
    assert_eq!(site.spot.fault(&refused, Fault::UnknownMethod).status, 405);
}

#[test]
fn raw_requests_are_listed_and_limited() {
    let limits =
        LimitsConfig { raw_requests_per_5_minutes: 2, ..AdapterConfig::default().limits() };
    let site = Site::limited(Log::venue(), config(), limits);
    let information = site.reply(open(Get, "exchangeInfo", "symbols=[]"));
    let listed = r#"{"rateLimitType":"RAW_REQUESTS","interval":"MINUTE","intervalNum":5,"limit":2}],"exchangeFilters""#;
    assert!(body(&information).contains(listed), "{}", body(&information));
    assert_eq!(site.reply(open(Get, "ping", "")).status, 200);
    let reply = site.reply(open(Get, "ping", ""));
    assert_eq!((reply.status, header(&reply, "X-SVC-USED-WEIGHT-1M")), (429, Some("12")));
    assert_eq!(reply.headers.iter().filter(|(name, _)| name.contains("-5M")).count(), 0);
}
