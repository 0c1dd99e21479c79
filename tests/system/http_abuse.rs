//! HTTP as no decent client sends it: each request gets its own clear answer as JSON or an orderly end of
//! its connection, memory stays bounded, and everybody else is served. What is malformed altogether is
//! in [`super::malformed_http`].

use super::http::{Http, Key, connect, read_to_end};
use super::json::Json;
use super::venue::{FRONTS, Venue, unlimited_on};
use crate::patience::PATIENCE;
use crate::skipped::skipped;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpStream};

/// The front that this is about.
const HYPER: &str = FRONTS[0];

/// Connections that send slowly, unless `TOUCHLINE_CONNECTIONS` asks for more (10,000, say).
const CONNECTIONS: usize = 300;

/// Addresses that they come from.
const SOURCES: usize = 8;

/// Files that a test process or an adapter may have open beside those connections.
const OTHER_FILES: usize = 500;

/// Most memory that an open connection may take in the adapter, in KiB.
const CONNECTION_KIB: u64 = 64;

/// Most that the adapter may grow by for the sake of one greedy client, in KiB.
const GREEDY_KIB: u64 = 16 * 1024;

/// The reply to bytes that are sent on a connection of their own, which stays half open.
fn answer(venue: &Venue, bytes: &[u8]) -> (u16, String, String) {
    let mut stream = connect(venue.address()).expect("the service listens");
    // The service may answer and close before it has read everything.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    read_to_end(&mut stream, &mut answer).expect("an answer and then an orderly end");
    let text = String::from_utf8(answer).expect("the answer is text");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    assert!(!body.contains("\r\nHTTP/1."), "more than one answer: {text}");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.expect("a status"), head.to_owned(), body.to_owned())
}

fn request(line: &str, fields: &str, body: &str) -> Vec<u8> {
    format!("{line}\r\nHost: x\r\n{fields}\r\n{body}").into_bytes()
}

fn fields(count: usize) -> String {
    (1..count).map(|n| format!("X-{n}: v\r\n")).collect()
}

/// Bytes that are no UTF-8 in the place of `@`.
fn with_bytes(text: &str) -> Vec<u8> {
    let latin_1 = |byte| if byte == b'@' { 0xe9 } else { byte };
    text.bytes().map(latin_1).collect()
}

#[test]
fn odd_requests_get_their_own_answers() {
    let venue = Venue::up(&unlimited_on(HYPER));
    let get = |target: &str| request(&format!("GET {target} HTTP/1.1"), "", "");
    let line = |line: &str| request(line, "", "");
    let post = |fields: &str, body: &str| request("POST /api/v3/order HTTP/1.1", fields, body);
    let keyed = |value: &str| {
        with_bytes(&format!(
            "POST /api/v3/order HTTP/1.1\r\nHost: x\r\nX-SVC-APIKEY: {value}\r\n\r\n"
        ))
    };
    let cases: Vec<(&str, Vec<u8>, u16, i128)> = vec![
        ("100 fields", request("GET /api/v3/ping HTTP/1.1", &fields(100), ""), 431, -1000),
        ("101 fields", request("GET /api/v3/ping HTTP/1.1", &fields(101), ""), 431, -1000),
        (
            "a long field",
            request("GET /api/v3/ping HTTP/1.1", &format!("X: {}\r\n", "y".repeat(1 << 16)), ""),
            431,
            -1000,
        ),
        ("a long target", get(&format!("/{}", "a".repeat(1 << 16))), 431, -1000),
        ("a long body", post("Content-Length: 20000\r\n", &"a".repeat(20_000)), 413, -1000),
        (
            "a body said to be endless",
            post("Content-Length: 9000000000000000000\r\n", "a"),
            413,
            -1000,
        ),
        (
            "a long chunked body",
            post(
                "Transfer-Encoding: chunked\r\n",
                &format!("4e20\r\n{}\r\n0\r\n\r\n", "a".repeat(20_000)),
            ),
            413,
            -1000,
        ),
        ("a broken chunk", post("Transfer-Encoding: chunked\r\n", "xyz\r\n"), 400, -1000),
        ("a coding that is not known", post("Transfer-Encoding: gzip\r\n", ""), 400, -1000),
        (
            "a coding in HTTP/1.0",
            request("POST /api/v3/order HTTP/1.0", "Transfer-Encoding: chunked\r\n", "0\r\n\r\n"),
            400,
            -1000,
        ),
        ("two lengths", post("Content-Length: 1\r\nContent-Length: 2\r\n", "ab"), 400, -1000),
        ("a length below zero", post("Content-Length: -1\r\n", ""), 400, -1000),
        (
            "a length and a coding",
            post("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
            400,
            -1000,
        ),
        ("TRACE", line("TRACE /api/v3/ping HTTP/1.1"), 405, -1020),
        ("CONNECT", line("CONNECT localhost:80 HTTP/1.1"), 405, -1020),
        (
            "a method of no use, and quotes",
            line("PROPFIND /api/v3/exchangeInfo?symbols=[\"BTCUSDT\"] HTTP/1.1"),
            405,
            -1020,
        ),
        ("a method in lower case", line("get /api/v3/ping HTTP/1.1"), 405, -1020),
        ("a method that is not the path's", line("PUT /api/v3/order HTTP/1.1"), 405, -1020),
        ("HTTP/2", line("PRI * HTTP/2.0"), 400, -1000),
        ("a TLS hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(), 400, -1000),
        ("no host", b"GET /api/v3/ping HTTP/1.1\r\n\r\n".to_vec(), 400, -1000),
        ("two hosts", request("GET /api/v3/ping HTTP/1.1", "Host: x\r\n", ""), 400, -1000),
        ("no colon", request("GET /api/v3/ping HTTP/1.1", "no colon\r\n", ""), 400, -1000),
        (
            "another letter's byte in the method",
            with_bytes("G@T /api/v3/ping HTTP/1.1\r\nHost: x\r\n\r\n"),
            400,
            -1000,
        ),
        ("in the target", with_bytes("GET /api/v3/ping?@ HTTP/1.1\r\nHost: x\r\n\r\n"), 400, -1000),
        (
            "in a field's name",
            with_bytes("GET /api/v3/ping HTTP/1.1\r\nHost: x\r\nX-@: y\r\n\r\n"),
            400,
            -1000,
        ),
        ("in a key", keyed("@"), 401, -2014),
        ("in a parameter", get("/api/v3/depth?symbol=\u{e9}"), 400, -1100),
        ("in a parameter, escaped", get("/api/v3/depth?symbol=%E9"), 400, -1100),
        ("in a parameter's name", get("/api/v3/depth?symbol=BTCUSDT&%C3%A9=1"), 400, -1104),
    ];
    let mut kept = venue.http();
    for (name, bytes, status, code) in cases {
        let (found, head, body) = answer(&venue, &bytes);
        assert_eq!(found, status, "{name}: {head}\n{body}");
        assert!(head.to_lowercase().contains("content-type: application/json"), "{name}: {head}");
        let body = Json::parse(&body);
        assert_eq!(body.keys(), ["code", "msg"], "{name}");
        assert_eq!(body.integer_at("code"), code, "{name}: {}", body.text_at("msg"));
        assert_eq!(kept.get("/api/v3/ping").status, 200, "after {name}");
    }
    let (status, _, body) = answer(&venue, &get("/api/v3/\u{e9}"));
    assert_eq!((status, body.as_str()), (404, ""));
}

#[test]
fn http_1_0_head_and_options_are_served() {
    let venue = Venue::up(&unlimited_on(HYPER));
    let (status, head, body) = answer(&venue, b"GET /api/v3/ping HTTP/1.0\r\n\r\n");
    assert_eq!((status, body.as_str()), (200, "{}"), "{head}");
    let (status, head, body) = answer(&venue, &request("HEAD /api/v3/time HTTP/1.1", "", ""));
    assert_eq!((status, body.as_str()), (200, ""), "{head}");
    assert!(head.to_lowercase().contains("content-length: 28"), "{head}");
    assert!(head.to_lowercase().contains("access-control-allow-origin: *"), "{head}");
    let (status, head, body) = answer(&venue, &request("OPTIONS /api/v3/order HTTP/1.1", "", ""));
    assert_eq!((status, body.as_str()), (204, ""), "{head}");
    for expected in [
        "allow: get, head, post, delete, options",
        "access-control-allow-origin: *",
        "access-control-allow-methods: get, head, options",
    ] {
        assert!(head.to_lowercase().contains(expected), "{expected}: {head}");
    }
    let (_, head, _) = answer(&venue, &request("GET /api/v3/account HTTP/1.1", "", ""));
    assert!(!head.to_lowercase().contains("access-control"), "a private answer: {head}");
}

/// A signed order in chunks, which are no part of what is signed.
#[test]
fn an_order_may_come_in_chunks_and_from_a_client_that_stops_sending() {
    let venue = Venue::up(&unlimited_on(HYPER));
    let key = venue.key_a();
    let (status, _, body) = answer(&venue, &chunked_order(&key));
    assert_eq!(status, 200, "{body}");
    assert_eq!(Json::parse(&body).text_at("status"), "NEW");
}

fn chunked_order(key: &Key) -> Vec<u8> {
    let order = "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=1&price=10000";
    let signed = key.signed(order);
    let (first, second) = signed.split_at(signed.len() / 2);
    let chunks =
        format!("{:x}\r\n{first}\r\n{:X};x=y\r\n{second}\r\n0\r\n\r\n", first.len(), second.len());
    let fields = format!("X-SVC-APIKEY: {}\r\nTransfer-Encoding: chunked\r\n", key.api);
    request("POST /api/v3/order HTTP/1.1", &fields, &chunks)
}

/// What the adapter has in memory, in KiB.
fn resident_kib(venue: &Venue) -> u64 {
    let pid = venue.pid("adapter").expect("the adapter runs");
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a running process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn a_client_that_sends_and_never_reads_is_stopped_and_takes_no_memory() {
    let venue = Venue::up(&unlimited_on(HYPER));
    let mut others = venue.http();
    others.get("/api/v3/exchangeInfo");
    let before = resident_kib(&venue);
    let mut greedy = connect(venue.address()).expect("the service listens");
    greedy.set_nonblocking(true).expect("a socket");
    let requests = "GET /api/v3/exchangeInfo HTTP/1.1\r\nHost: x\r\n\r\n".repeat(1000);
    let mut refusals = 0;
    let mut sent = 0;
    // Both sides' buffers are full when nothing goes out for as long as others are served many times.
    while refusals < 100 {
        match greedy.write(requests.as_bytes()) {
            Ok(count) => {
                refusals = 0;
                sent += count;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => refusals += 1,
            Err(error) => panic!("cut off: {error}"),
        }
        assert_eq!(others.get("/api/v3/ping").status, 200);
        assert!(sent < 256 << 20, "everything is read, and nobody reads the answers");
    }
    let grown = resident_kib(&venue).saturating_sub(before);
    assert!(grown < GREEDY_KIB, "{grown} KiB for one client that sent {sent} bytes");
}

/// The connection with this number, from one of several addresses: one alone may have a quarter of all.
fn connect_as(number: usize, venue: &Venue) -> io::Result<TcpStream> {
    let source = Ipv4Addr::new(127, 0, 1, 1 + (number % SOURCES) as u8);
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    bind(&socket, &SocketAddrV4::new(source, 0))?;
    rustix::net::connect(&socket, &venue.address())?;
    Ok(TcpStream::from(socket))
}

/// Allows this process and those that it starts so many open files; false if the system does not.
fn allow_open_files(wanted: usize) -> bool {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let needed = Some(wanted as u64).max(current);
    current.is_none() || setrlimit(Resource::Nofile, Rlimit { current: needed, maximum }).is_ok()
}

#[test]
fn many_connections_that_send_slowly_leave_the_others_alone() {
    let connections = std::env::var("TOUCHLINE_CONNECTIONS")
        .map_or(CONNECTIONS, |count| count.parse().expect("TOUCHLINE_CONNECTIONS is a number"));
    if !allow_open_files(connections + OTHER_FILES) {
        return skipped(format_args!("{connections} open files (ulimit -n)"));
    }
    let room = format!("adapter.connections={}", connections + 10);
    let venue = Venue::up(&[unlimited_on(HYPER), vec!["--set", &room]].concat());
    let mut others: Http = venue.http();
    others.get("/api/v3/ping");
    let before = resident_kib(&venue);
    let mut slow: Vec<TcpStream> = Vec::with_capacity(connections);
    for number in 0..connections {
        let mut stream = connect_as(number, &venue).expect("there is room for one more");
        stream.write_all(b"GET /api/v3/ping HTTP/1.1\r\nHo").expect("the connection is open");
        slow.push(stream);
    }
    for _ in 0..100 {
        assert_eq!(others.get("/api/v3/ping").body, "{}");
    }
    let grown = resident_kib(&venue).saturating_sub(before);
    assert!(grown < CONNECTION_KIB * connections as u64, "{grown} KiB for {connections}");
    // Who takes longer than 10 s for a head is let go, without a word to it.
    for stream in &mut slow {
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let outcome = stream.read(&mut [0; 512]);
        assert!(matches!(outcome, Ok(0)), "{outcome:?}");
    }
    assert_eq!(others.get("/api/v3/ping").status, 200);
}
