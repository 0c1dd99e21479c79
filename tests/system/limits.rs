//! Bans and lists of addresses against a running service: over a restart of the adapter, behind a proxy,
//! and for keys that may be used from some places only.

use super::http::{Http, Request, Response, now_ms};
use super::process::eventually;
use super::venue::{Part, Venue};
use crate::patience::Wait;
use std::fs;

const PING: &str = "/api/v3/ping";

fn ping_for(http: &mut Http, client: &str) -> Response {
    http.call(&Request::new("GET", PING).header("X-Forwarded-For", client))
}

#[test]
fn a_ban_outlives_the_adapter_and_hits_no_other_client_of_the_proxy() {
    let mut venue = Venue::separate(&[
        "--set",
        "adapter.trusted_proxies=[\"127.0.0.1\"]",
        "--set",
        "adapter.request_weight_per_minute=30",
        "--set",
        "adapter.refusals_before_ban=3",
        "--set",
        "adapter.denied_addresses=[\"2001:db8::/32\"]",
    ]);
    let mut http = venue.http();
    let banned = "198.51.100.7";
    let mut refusals = 0;
    let wait = Wait::begin();
    let end = loop {
        wait.go_on("it is never banned");
        let reply = ping_for(&mut http, banned);
        match reply.status {
            200 => {}
            429 => {
                refusals += 1;
                assert!(reply.number("Retry-After") <= 60);
            }
            status => {
                let (_, code, message) = reply.error();
                assert_eq!((status, code), (418, -1003));
                assert!((100..=120).contains(&reply.number("Retry-After")), "{reply:?}");
                let end = message.split("until ").nth(1).and_then(|rest| rest.split('.').next());
                break end.and_then(|end| end.parse::<i128>().ok()).expect("epoch ms");
            }
        }
    };
    assert!(refusals >= 3, "warned before");
    assert_eq!(ping_for(&mut http, "198.51.100.8").status, 200);
    assert_eq!(ping_for(&mut http, "2001:db8::1").status, 403);
    // Weight is counted anew with each minute.
    assert!(eventually(|| now_ms() % 60_000 < 45_000));
    // So it is with what the front refuses by itself, once it has read for whom the proxy speaks.
    let unread = |client: &str| {
        let request = Request::new("POST", "/api/v3/order").header("X-Forwarded-For", client);
        let large = venue.http().call(&request.body("x".repeat(17_000)));
        let unknown = Request::new("TRACE", PING).header("X-Forwarded-For", client);
        [large.status, venue.http().call(&unknown).status]
    };
    assert_eq!(
        [banned, "2001:db8::1", "198.51.100.9"].map(unread),
        [[418; 2], [403; 2], [413, 405]]
    );
    let used = ping_for(&mut http, "198.51.100.9");
    assert_eq!(used.header("X-SVC-USED-WEIGHT-1M"), Some("3"));
    // The bans are written soon; then nothing is left of the adapter but its file.
    let file = venue.data().join("bans-adapter");
    assert!(eventually(|| fs::read_to_string(&file).is_ok_and(|text| text.contains(banned))));
    venue.kill9(Part::Adapter);
    venue.start_adapter();
    let mut http = venue.http();
    let reply = ping_for(&mut http, banned);
    assert_eq!(reply.status, 418);
    assert!(reply.error().2.contains(&end.to_string()), "{reply:?}");
    assert_eq!(ping_for(&mut http, "198.51.100.8").status, 200);
}

#[test]
fn a_proxy_opens_all_connections_that_there_are_for_its_clients() {
    // An address may open a quarter of all, at least 64.
    let venue = Venue::separate(&[
        "--set",
        "adapter.trusted_proxies=[\"127.0.0.1\"]",
        "--set",
        "adapter.connections=72",
    ]);
    let mut kept: Vec<Http> = (0..70).map(|_| venue.http()).collect();
    for (client, http) in kept.iter_mut().enumerate() {
        let reply = ping_for(http, &format!("198.51.100.{client}"));
        assert_eq!(reply.status, 200, "connection {client}: {reply:?}");
    }
}
