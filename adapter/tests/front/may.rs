//! The second front: what it does as the first one does it, and row by row of the README what it does
//! not.

#![allow(clippy::unwrap_used, reason = "a failed step of a test should panic")]

use std::fs;
use std::io::Write;
use std::net::Shutdown;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use touchline_adapter::front::{Front, FrontConfig, FrontError, FrontKind};
use touchline_adapter::http::Reply;

use crate::toy::{BIG, Client, PATIENCE, PIECE, Site};
use crate::{SHORT, defaults, get};

/// Where its rows begin in the README.
const SECTION: &str = "## The second front";

fn may() -> Site {
    Site::start(|config| config.kind = FrontKind::May)
}

fn post(fields: &str, body: &str) -> String {
    format!("POST /a HTTP/1.1\r\nHost: h\r\n{fields}\r\n{body}")
}

/// Everything that comes in answer to some bytes, up to the end of their connection.
fn all_answers(site: &Site, bytes: impl AsRef<[u8]>) -> String {
    let mut client = site.client();
    // The front may close before all has been sent.
    let _ = client.stream.write_all(bytes.as_ref());
    String::from_utf8(client.rest()).unwrap()
}

#[test]
fn both_fronts_answer_alike() {
    let (first, second) = (defaults(), may());
    let post = |path: &str, body: &str| {
        format!("POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    };
    let long = "x".repeat(100_000);
    let cases = [
        get("/a%20b/c?x=%5B%22&y=+1&&x=%zz"),
        get("/info?symbols=[\"A\",\"B\"]"),
        get("/é?ü"),
        get("/a?b?c"),
        "OPTIONS * HTTP/1.1\r\nHost: h\r\nX-Toy: v\r\n\r\n".to_owned(),
        "DELETE /a?b HTTP/1.1\r\nHost: h\r\ncontent-length: 5\r\nContent-Length: 5\r\n\r\nhello"
            .to_owned(),
        post("/a", "hello"),
        post("/a", &long),
        post("/small", "four"),
        get("/panic"),
        get("/drop"),
        get("/send-then-panic"),
        get("/thread"),
        get("/bad-header"),
        get("/bad-status"),
        get("/no-content"),
        get("/a#b"),
        "GET /a HTTP/1.1\r\n\r\n".to_owned(),
        "GET /a HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n".to_owned(),
        "GET /a HTTP/1.1\r\nHost: a b/c@\r\n\r\n".to_owned(),
        "TRACE /a HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(),
    ];
    for case in cases {
        let (expected, found) = (first.ask(&case), second.ask(&case));
        assert_eq!(found.status, expected.status, "{case}");
        // The words are for people, and each front has its own for a target that is none.
        if !case.contains('#') {
            assert_eq!(found.body, expected.body, "{case}");
        }
        for name in ["content-type", "x-extra", "allow"] {
            assert_eq!(found.header(name), expected.header(name), "{name} of {case}");
        }
        assert!(found.header("date").is_some());
    }
    assert_eq!(first.calls(), second.calls());
    let mut client = second.client();
    client.send("TRACE /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(client.answer().status, 405);
    client.send(get("/a"));
    assert_eq!(client.answer().status, 200, "it was read whole, and the connection goes on");
}

#[test]
fn a_connection_serves_one_request_after_another_and_many_at_once() {
    let site = may();
    let mut client = site.client();
    let mut all = String::new();
    for n in 0..200 {
        client.send(get(&format!("/{n}")));
        assert_eq!(client.answer().body, format!("GET /{n} q= h=- b="));
        all += &format!("POST /{n} HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n{}", n % 10);
    }
    client.send(all);
    for n in 0..200 {
        assert_eq!(client.answer().body, format!("POST /{n} q= h=- b={}", n % 10));
    }
    assert_eq!(site.front.open_connections(), 1);
    drop(client);
    site.wait_for_connections(0);
}

#[test]
fn connections_that_wait_for_a_reply_do_not_hold_up_others() {
    let site = may();
    let mut waiting: Vec<Client> = (0..50).map(|_| site.client()).collect();
    let mut held = Vec::new();
    for client in &mut waiting {
        client.send("POST /hold HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx");
        held.push(site.held.recv_timeout(PATIENCE).unwrap());
        site.assert_alive();
    }
    for (number, done) in held.into_iter().enumerate() {
        // Half of them are given up by who was to answer.
        if number % 2 == 0 {
            done.send(Reply::json(200, number.to_string()));
        }
    }
    for (number, client) in waiting.iter_mut().enumerate() {
        let answer = client.answer();
        if number % 2 == 0 {
            assert_eq!((answer.status, answer.body), (200, number.to_string()));
        } else {
            assert_eq!(answer.status, 500);
        }
    }
}

#[test]
fn a_request_may_come_byte_by_byte_and_a_big_reply_be_read() {
    let site = may();
    let mut client = site.client();
    for byte in b"POST /a?b HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello" {
        client.send([*byte]);
    }
    assert_eq!(client.answer().body, "POST /a q=b h=- b=hello");
    client.send(get("/big"));
    assert_eq!(client.answer().body.len(), BIG);
}

#[test]
fn a_taken_port_is_refused() {
    for taken in [defaults(), may()] {
        let config =
            FrontConfig { kind: FrontKind::May, ..FrontConfig::new(taken.front.local_addr()) };
        let error = Front::start(config, taken.toy.clone()).unwrap_err();
        let address = taken.front.local_addr();
        assert!(matches!(error, FrontError::Listen { address: found, .. } if found == address));
    }
}

/// Rows of the README and what shows each.
const ROWS: [(&str, fn()); 17] = [
    ("more than 16 header fields", fields),
    ("a head that is not proper HTTP", malformed),
    ("a chunked body", chunked),
    ("a Content-Length that is not one number, or a body that is too long", lengths),
    ("a target that is no path", targets),
    ("HEAD", head),
    ("an answer 204, such as to OPTIONS", no_content),
    ("HTTP/1.0, or `Connection: close`", kept_open),
    ("`Expect: 100-continue`", expect),
    ("a client that stops sending before it has its answer", half_closed),
    ("an answer in pieces", pieces),
    ("a header field with ever new values", unique),
    ("a client that is slow or idle", slow),
    ("a client that sends and does not read", greedy),
    ("more connections than are allowed", crowded),
    ("more than one worker", workers),
    ("the end of the adapter", end),
];

#[test]
fn each_row_of_the_readme_is_true_and_there_is_no_other() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md");
    let readme = fs::read_to_string(path).unwrap();
    let (_, section) = readme.split_once(SECTION).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows: Vec<_> = section
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split_once(" |"))
        .map(|(first, _)| first)
        .skip(1)
        .collect();
    assert_eq!(rows, ROWS.map(|(name, _)| name));
    for (name, show) in ROWS {
        println!("{name}");
        show();
    }
}

fn fields() {
    let site = may();
    let with = |count: usize| {
        let fields: String = (1..count).map(|n| format!("F{n}: v\r\n")).collect();
        format!("GET /a HTTP/1.1\r\nHost: h\r\n{fields}\r\n")
    };
    assert_eq!(site.ask(with(16)).status, 200);
    assert_eq!(all_answers(&site, with(17)), "");
    assert_eq!(site.calls(), 1);
}

fn malformed() {
    let site = may();
    for case in
        ["GET  /  HTTP/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\x16\x03\x01", "é"]
    {
        assert_eq!(all_answers(&site, case), "", "{case:?}");
    }
    assert_eq!(site.calls(), 0);
    site.assert_alive();
}

fn chunked() {
    let site = may();
    let smuggled = get("/smuggled");
    for body in ["5\r\nhello\r\n0\r\n\r\n", &smuggled, &format!("0\r\n\r\n{smuggled}")] {
        let answers = all_answers(&site, post("Transfer-Encoding: chunked\r\n", body));
        assert!(answers.is_empty() || answers.starts_with("HTTP/1.1 400"), "{answers}");
    }
    assert_eq!(site.calls(), 0);
}

fn lengths() {
    let site = Site::start(|config| {
        config.kind = FrontKind::May;
        config.max_body_bytes = 10;
    });
    let cases = [
        ("Content-Length: -1\r\n", "HTTP/1.1 400"),
        ("Content-Length: \r\n", "HTTP/1.1 400"),
        ("Content-Length: 99999999999999999999999\r\n", "HTTP/1.1 400"),
        ("Content-Length: 1\r\nContent-Length: 2\r\n", "HTTP/1.1 400"),
        ("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", "HTTP/1.1 400"),
        ("Content-Length: 11\r\n", "HTTP/1.1 413"),
        ("Content-Length: 9000000000000000000\r\n", "HTTP/1.1 413"),
    ];
    for (fields, expected) in cases {
        // Without a body the answer comes through; with one the connection may end first.
        let answers = all_answers(&site, post(fields, ""));
        assert!(answers.starts_with(expected), "{fields}: {answers}");
        assert!(answers.contains("Connection: close"), "{fields}: {answers}");
        let answers = all_answers(&site, post(fields, &get("/smuggled").repeat(3)));
        assert!(answers.is_empty() || answers.starts_with(expected), "{fields}: {answers}");
    }
    assert_eq!(site.calls(), 0);
    site.assert_alive();
}

fn targets() {
    let site = may();
    for target in ["http://h/a", "a", "/a#b"] {
        assert_eq!(site.ask(get(target)).status, 400, "{target}");
        // With its body in the same write, and the next request behind it.
        let mut client = site.client();
        let fields = "HTTP/1.1\r\nHost: h\r\nContent-Length: 7";
        client.send(format!("POST {target} {fields}\r\n\r\n{{\"a\":1}}{}", get("/a")));
        assert_eq!(client.answer().status, 400, "{target}");
        assert_eq!(client.answer().body, "GET /a q= h=- b=", "{target}");
    }
    assert_eq!(site.calls(), 3, "the ones behind");
}

fn head() {
    let site = may();
    let mut client = site.client();
    client.send("HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n");
    let answer = client.answer();
    assert_eq!((answer.status, answer.header("content-length")), (200, Some("0")));
    client.send(get("/a"));
    assert_eq!(client.answer().body, "GET /a q= h=- b=");
}

fn no_content() {
    for (site, length) in [(defaults(), None), (may(), Some("0"))] {
        let answer = site.ask(get("/no-content"));
        assert_eq!((answer.status, answer.header("content-length")), (204, length));
    }
}

fn kept_open() {
    let site = may();
    let mut client = site.client();
    for request in
        ["GET /a HTTP/1.0\r\n\r\n", "GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"]
    {
        client.send(request);
        let answer = client.answer();
        assert!(answer.head.starts_with("HTTP/1.1 200"), "{}", answer.head);
        assert_eq!(answer.header("connection"), None);
    }
    client.send(get("/b"));
    assert_eq!(client.answer().status, 200);
}

fn expect() {
    let site = may();
    let mut client = site.client();
    client.send(post("Expect: 100-continue\r\nContent-Length: 3\r\n", ""));
    client.send("abc");
    assert_eq!(client.answer().status, 200, "the first answer is the last");
}

fn half_closed() {
    let site = may();
    for _ in 0..20 {
        let mut client = site.client();
        client.send(get("/a"));
        client.finish_sending();
        let answer = String::from_utf8(client.rest()).unwrap();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    site.assert_alive();
}

fn pieces() {
    let site = may();
    let mut client = site.client();
    client.send(get("/pieces"));
    let answer = client.answer();
    assert_eq!(answer.body.len(), "first,".len() + 3 * PIECE);
    client.send(get("/endless"));
    assert_eq!(client.answer().status, 500);
}

fn unique() {
    let site = may();
    let mut client = site.client();
    let mut with_field = 0;
    for n in 0..200 {
        client.send(get("/unique"));
        let answer = client.answer();
        assert_eq!(answer.status, 200);
        with_field += usize::from(answer.header("x-unique") == Some(&format!("u{}", n + 1)));
        assert_eq!(answer.header("x-count"), Some(&*(n + 1).to_string()));
    }
    assert_eq!(with_field, 64);
}

fn slow() {
    let site = Site::start(|config| {
        config.kind = FrontKind::May;
        config.head_timeout = SHORT;
        config.idle_timeout = SHORT;
    });
    let mut slow = site.client();
    slow.send("GET /a HTTP/1.1\r\nHos");
    let until = Instant::now() + 4 * SHORT;
    loop {
        // Once at the least when its time is over.
        let is_over = Instant::now() >= until;
        site.assert_alive();
        if is_over {
            break;
        }
    }
    slow.send("t: h\r\n\r\n");
    assert_eq!(slow.answer().status, 200);
}

fn greedy() {
    let site = may();
    let mut client = site.client();
    let body = "x".repeat(50_000);
    let request = post(&format!("Content-Length: {}\r\n", body.len()), &body);
    // What comes back is more than both sockets hold, and still everything is taken.
    for _ in 0..2 * BIG / body.len() {
        client.send(&request);
    }
    let _ = client.stream.shutdown(Shutdown::Both);
    site.assert_alive();
}

fn crowded() {
    let site = Site::start(|config| {
        config.kind = FrontKind::May;
        config.max_connections = 1;
    });
    let mut first = site.client();
    first.send(get("/a"));
    assert_eq!(first.answer().status, 200);
    assert_eq!(all_answers(&site, get("/a")), "");
    drop(first);
    site.wait_for_connections(0);
    site.assert_alive();
}

fn workers() {
    let error = Front::start(
        FrontConfig {
            kind: FrontKind::May,
            workers: 2,
            ..FrontConfig::new("127.0.0.1:0".parse().unwrap())
        },
        may().toy,
    )
    .unwrap_err();
    assert_eq!(error.to_string(), "front setting workers is 2, must be 1 on may");
}

fn end() {
    let site = may();
    let address = site.front.local_addr();
    let mut idle = site.client();
    let mut busy = site.client();
    busy.send(get("/hold"));
    let done = site.held.recv_timeout(PATIENCE).unwrap();
    let front = site.front;
    let ending = std::thread::spawn(move || front.shutdown(PATIENCE));
    crate::toy::wait_for("new requests to be refused", || {
        let mut client = Client::connect(address);
        client.send(get("/a"));
        client.answer().status == 503
    });
    done.send(Reply::json(200, "{}"));
    assert_eq!(busy.answer().body, "{}");
    assert_eq!(crate::patience::join(ending, "the shutdown"), 0);
    idle.send(get("/a"));
    assert_eq!(idle.answer().status, 503);
    let site = may();
    let mut half = site.client();
    half.send("POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhalf");
    // Behind what has come before.
    site.assert_alive();
    assert_eq!(site.front.shutdown(PATIENCE), 0, "it waits for the rest of a request");
    half.send(" of it");
    assert_eq!(half.answer().status, 503);
    assert_eq!(site.toy.calls.load(Ordering::SeqCst), 1);
    let site = may();
    let mut stuck = site.client();
    stuck.send(get("/hold"));
    let _done = site.held.recv_timeout(PATIENCE).unwrap();
    assert_eq!(site.front.shutdown(Duration::from_millis(1)), 1);
}
