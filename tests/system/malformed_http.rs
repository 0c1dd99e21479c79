//! Bytes that are not proper HTTP: whatever comes, the connection is answered with an error or
//! closed, no order gets through, and everybody else is served.

use super::http::{Http, Key, Request, Response, connect, read_to_end};
use super::venue::{FRONTS, Venue, unlimited_on};
use std::io::{self, Write};
use std::net::{Shutdown, SocketAddr};

/// The front that this is about.
const HYPER: &str = FRONTS[0];

const ORDER: &str = "symbol=BTCUSDT&side=SELL&type=LIMIT&timeInForce=GTC&quantity=1&price=50000";

/// Sends bytes on a connection of their own, ends the sending direction, reads all that comes.
fn raw(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = connect(address).expect("the service listens");
    // The service may close before it has read everything: that is an answer too.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    match read_to_end(&mut stream, &mut answer) {
        Err(error)
            if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) =>
        {
            panic!("neither answered nor closed: {:?}", String::from_utf8_lossy(bytes))
        }
        _ => answer,
    }
}

/// Status of the first reply in the bytes; `None` when the connection was closed without one.
fn status(answer: &[u8]) -> Option<u16> {
    let text = String::from_utf8_lossy(answer);
    let rest = text.strip_prefix("HTTP/1.1 ").or_else(|| text.strip_prefix("HTTP/1.0 "))?;
    rest.get(..3)?.parse().ok()
}

/// A whole signed order as bytes, with other headers than a client would send.
fn order_with(key: &Key, headers: &str, body: &str) -> Vec<u8> {
    let api = &key.api;
    format!("POST /api/v3/order HTTP/1.1\r\nHost: x\r\nX-SVC-APIKEY: {api}\r\n{headers}\r\n{body}")
        .into_bytes()
}

#[test]
fn broken_requests_are_refused_and_hurt_nobody() {
    let venue = Venue::up(&unlimited_on(HYPER));
    let key = venue.key_a();
    let order = key.signed(ORDER);
    let length = order.len();
    let many_headers: String = (0..5_000).map(|n| format!("X-H{n}: v\r\n")).collect();
    let mut cases: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", Vec::new()),
        ("empty lines", b"\r\n\r\n\r\n".to_vec()),
        ("noise", (0..4096_u32).map(|n| (n * 31 % 251) as u8).collect()),
        ("a TLS hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec()),
        ("no version", b"GET /api/v3/ping\r\n\r\n".to_vec()),
        ("unknown version", b"GET /api/v3/ping HTTP/9.9\r\nHost: x\r\n\r\n".to_vec()),
        ("the preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec()),
        ("only a request line", b"GET /api/v3/ping HTTP/1.1\r\n".to_vec()),
        ("a header without a colon", b"GET /api/v3/ping HTTP/1.1\r\nHost x\r\n\r\n".to_vec()),
        ("a zero byte in a header", b"GET /api/v3/ping HTTP/1.1\r\nHost: \0\r\n\r\n".to_vec()),
        (
            "a blank in the target",
            b"GET /api/v3/depth?symbol=BTC USDT HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
        ),
        (
            "a long target",
            format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(1 << 20)).into_bytes(),
        ),
        ("many headers", format!("GET /api/v3/ping HTTP/1.1\r\n{many_headers}\r\n").into_bytes()),
        ("a negative length", order_with(&key, "Content-Length: -5\r\n", &order)),
        ("a length in letters", order_with(&key, "Content-Length: all\r\n", &order)),
        (
            "a length beyond 64 bits",
            order_with(&key, "Content-Length: 99999999999999999999999\r\n", &order),
        ),
        (
            "two lengths",
            order_with(&key, &format!("Content-Length: {length}\r\nContent-Length: 1\r\n"), &order),
        ),
        (
            "a body cut short",
            order_with(&key, &format!("Content-Length: {}\r\n", length + 1), &order),
        ),
        (
            "a broken chunk",
            order_with(
                &key,
                "Transfer-Encoding: chunked\r\n",
                &format!("zz\r\n{order}\r\n0\r\n\r\n"),
            ),
        ),
        (
            "a chunk cut short",
            order_with(&key, "Transfer-Encoding: chunked\r\n", &format!("fff\r\n{order}")),
        ),
        (
            "a body over ten megabytes",
            order_with(&key, "Content-Length: 10485760\r\n", &"a".repeat(10 << 20)),
        ),
    ];
    for cut in [1, 17, 60] {
        let whole = order_with(&key, &format!("Content-Length: {length}\r\n"), &order);
        cases.push(("a request cut off", whole[..cut].to_vec()));
    }
    let before = (venue.a().balances(), venue.http().get("/api/v3/depth?symbol=BTCUSDT").body);
    let mut kept = venue.http();
    for (name, bytes) in cases {
        let answer = raw(venue.address(), &bytes);
        let found = status(&answer);
        assert!(
            found.is_none_or(|status| (400..600).contains(&status) && status != 500),
            "{name}: {:?}",
            String::from_utf8_lossy(&answer)
        );
        assert_eq!(kept.get("/api/v3/ping").body, "{}", "after {name}");
        let after = (venue.a().balances(), venue.http().get("/api/v3/depth?symbol=BTCUSDT").body);
        assert_eq!(after, before, "{name}");
    }
}

#[test]
fn bodies_that_are_no_form_are_errors_of_the_contract() {
    let venue = Venue::up(&unlimited_on(HYPER));
    let key = venue.key_a();
    let mut http = venue.http();
    let mut post = |body: &str| -> Response {
        let request = Request::new("POST", "/api/v3/order")
            .header("X-SVC-APIKEY", &key.api)
            .header("Content-Type", "application/json")
            .body(body);
        http.call(&request)
    };
    for body in
        ["{\"symbol\":\"BTCUSDT\"}", "&&&&", "=", "a", "%", "%zz=%zz", "\u{e9}=\u{e9}", "[]"]
    {
        let (status, code, message) = post(body).error();
        assert_eq!(status, 400, "{body:?}: {code} {message}");
        assert!((-1199..=-1100).contains(&code), "{body:?}: {code} {message}");
    }
    let many: String = (0..20_000).map(|n| format!("p{n}=1&")).collect();
    let response = post(&many);
    assert!((400..500).contains(&response.status), "{response:?}");
    assert_eq!(venue.http().get("/api/v3/ping").status, 200);
}

#[test]
fn requests_sent_together_are_answered_in_order() {
    let venue = Venue::up(&unlimited_on(HYPER));
    let requests = "GET /api/v3/ping HTTP/1.1\r\nHost: x\r\n\r\n\
                    GET /api/v3/depth?symbol=BTCUSDT HTTP/1.1\r\nHost: x\r\n\r\n\
                    GET /api/v3/ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let mut stream = connect(venue.address()).expect("the service listens");
    stream.write_all(requests.as_bytes()).expect("the connection is open");
    let mut text = Vec::new();
    read_to_end(&mut stream, &mut text).expect("all three are answered, then the connection ends");
    let text = String::from_utf8(text).expect("the answers are text");
    let bodies: Vec<_> = text.split("HTTP/1.1 200").skip(1).collect();
    assert_eq!(bodies.len(), 3, "{text}");
    assert!(bodies[0].ends_with("\r\n\r\n{}") && bodies[2].ends_with("\r\n\r\n{}"), "{text}");
    assert!(bodies[1].contains("lastUpdateId"), "{text}");
}

#[test]
fn a_slow_request_does_not_hold_up_others() {
    let venue = Venue::up(&unlimited_on(HYPER));
    let mut slow = connect(venue.address()).expect("the service listens");
    slow.write_all(b"GET /api/v3/ping HTTP/1.1\r\nHo").expect("the connection is open");
    let mut quick = Http::new(venue.address());
    for _ in 0..100 {
        assert_eq!(quick.get("/api/v3/ping").body, "{}");
    }
    slow.write_all(b"st: x\r\nConnection: close\r\n\r\n").expect("the connection is open");
    let mut answer = Vec::new();
    read_to_end(&mut slow, &mut answer).expect("the request is answered");
    let answer = String::from_utf8(answer).expect("the answer is text");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}
