//! The gate on its own, and against bytes cut anywhere.

use super::*;
use crate::front::socket::Timeouts;
use proptest::prelude::*;
use std::time::Duration;

const LIMIT: usize = 200;

fn progress() -> Progress {
    let long = Duration::from_secs(3600);
    Progress::new(Timeouts { head: long, body: long, idle: long, write: long, linger: long })
}

/// Everything that goes through now.
fn given(gate: &mut Gate, progress: &Progress) -> Vec<u8> {
    let mut bytes = [0; 4096];
    let mut buffer = ReadBuf::new(&mut bytes);
    while gate.give(progress, &mut buffer).unwrap() {}
    buffer.filled().to_vec()
}

fn refusal(head: &str) -> Option<Fault> {
    let (mut gate, progress) = (Gate::new(LIMIT, 10), progress());
    gate.push(head.as_bytes());
    let out = given(&mut gate, &progress);
    let refusal = progress.take_refusal();
    let stand_in = stand_in(head.as_bytes());
    let expected = if refusal.is_some() { &stand_in } else { head.as_bytes() };
    assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(expected));
    refusal
}

#[test]
fn heads_that_cannot_be_read_in_one_way_are_refused() {
    let cases = [
        "GET /a#b HTTP/1.1\r\n\r\n",
        "GET /a?b#c HTTP/1.1\r\n\r\n",
        "GET /a HTTP/1.1\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\ntransfer-encoding: chunked\r\nCONTENT-LENGTH: 3\r\n\r\n",
    ];
    for head in cases {
        assert!(matches!(refusal(head), Some(Fault::BadHead { .. })), "{head}");
    }
    for head in [
        "GET /a HTTP/1.1\r\nHost: h\r\nX: #\r\n\r\n",
        "GET /a HTTP/1.1\nHost: h\n\n",
        "\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
    ] {
        assert_eq!(refusal(head), None, "{head}");
    }
    let long = format!("GET /{} HTTP/1.1", "p".repeat(LIMIT));
    assert_eq!(refusal(&long), Some(Fault::HeadTooLong { limit: LIMIT }));
}

#[test]
fn a_stand_in_keeps_the_beginning_of_the_path() {
    let long = format!("/{}", "p".repeat(STAND_IN_PATH_MAX));
    for (head, path) in [
        ("PATCH /api/v1/jobs/a%20b?x#y HTTP/1.1\r\nA: b\r\n\r\n", "/api/v1/jobs/a"),
        ("\r\nGET /api/v1?#\n\n", "/api/v1"),
        ("GET /b#/api/v1 HTTP/1.1\r\n\r\n", "/b"),
        ("GET http://host/a HTTP/1.1\r\n\r\n", "/"),
        ("GET\r\n /a\r\n\r\n", "/"),
        ("", "/"),
        (&format!("GET {long} HTTP/1.1"), &long[..STAND_IN_PATH_MAX]),
    ] {
        let expected = format!("GET {path} HTTP/1.1\r\n\r\n");
        assert_eq!(String::from_utf8_lossy(&stand_in(head.as_bytes())), expected, "{head:?}");
    }
}

#[test]
fn what_is_no_request_is_not_waited_for() {
    let (mut gate, progress) = (Gate::new(LIMIT, 10), progress());
    gate.push(b"\x16\x03\x01");
    assert_eq!(given(&mut gate, &progress), stand_in(b""));
    assert_eq!(progress.take_refusal(), Some(Fault::BadHead { why: "This is not HTTP." }));
    let mut gate = Gate::new(LIMIT, 10);
    gate.push(b"GET / HT");
    assert_eq!(given(&mut gate, &progress), b"");
    gate.end();
    assert_eq!(given(&mut gate, &progress), b"GET / HT");
}

#[test]
fn a_head_that_comes_byte_by_byte_is_looked_at_a_few_times_in_all() {
    const BYTES: usize = 10_000;
    let method = "M".repeat(BYTES);
    let fields = "X: y\r\n".repeat(BYTES / 6);
    for head in [
        "\r\n".repeat(BYTES / 2),
        method,
        format!("GET / HTTP/1.1\r\n{fields}"),
        format!("{}GET / HTTP/1.1\r\n{fields}", "\n".repeat(BYTES)),
    ] {
        let (mut gate, progress) = (Gate::new(10 * BYTES, 10), progress());
        let before = search::LOOKS.get();
        for byte in head.as_bytes() {
            gate.push(&[*byte]);
            assert_eq!(given(&mut gate, &progress), b"");
        }
        assert_eq!(progress.take_refusal(), None);
        let looks = search::LOOKS.get() - before;
        assert!(looks < 10 * head.len(), "{looks} looks at {} bytes", head.len());
    }
}

const CHUNKED: &str = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";

/// How many times something goes through of what is sent, with room for so many bytes each time.
fn gives(sent: &str, room: usize) -> usize {
    let (mut gate, progress) = (Gate::new(LIMIT, 10), progress());
    gate.push(sent.as_bytes());
    let (mut bytes, mut out) = (vec![0; room], Vec::new());
    (0..)
        .find(|_| {
            let mut buffer = ReadBuf::new(&mut bytes);
            let is_last = !gate.give(&progress, &mut buffer).unwrap();
            out.extend_from_slice(buffer.filled());
            is_last
        })
        .inspect(|_| assert_eq!(String::from_utf8_lossy(&out), sent))
        .unwrap()
}

#[test]
fn the_data_of_a_chunk_goes_through_in_as_many_pieces_as_there_is_room_for() {
    let (size, room) = (100 * 1024, 8192);
    let line = format!("{size:x};x=y\r\n");
    let body = format!("{line}{}\r\n0\r\n\r\n", "d".repeat(size));
    let pieces = (size + 2).div_ceil(room);
    assert_eq!(gives(&format!("{CHUNKED}{body}"), room), 1 + line.len() + pieces + 5);
}

#[test]
fn a_chunked_body_is_let_go_where_hyper_has_seen_its_end() {
    let next = "GET /c?d=\"e\" HTTP/1.1\r\nHost: h\r\n\r\n";
    let (mut gate, progress) = (Gate::new(LIMIT, 10), progress());
    let first = format!("{CHUNKED}2\r\nab\r\n0\r\n\r\n");
    gate.push(first.as_bytes());
    assert_eq!(given(&mut gate, &progress), first.as_bytes());
    gate.push(next.as_bytes());
    progress.head_read(true);
    progress.body_read();
    assert!(progress.replied());
    assert_eq!(given(&mut gate, &progress), next.replace('?', "!").as_bytes());
}

#[test]
fn a_body_that_is_mostly_framing_is_not_read_on() {
    let (mut gate, progress) = (Gate::new(LIMIT, 10), progress());
    gate.push(CHUNKED.as_bytes());
    gate.push("1\r\nx\r\n".repeat(10_000).as_bytes());
    let mut bytes = vec![0; 60_000];
    let mut buffer = ReadBuf::new(&mut bytes);
    let end = (0..60_000).find_map(|_| gate.give(&progress, &mut buffer).err());
    assert_eq!(end.map(|error| error.kind()), Some(io::ErrorKind::InvalidData));
    assert_eq!(progress.take_refusal(), Some(Fault::BodyFraming));
    assert!(buffer.filled().len() < 20_000, "{}", buffer.filled().len());
}

proptest! {
    /// However requests are cut into pieces, all their bytes come through, and only the quoted query
    /// is rewritten, even if a body or a field looks like one.
    #[test]
    fn cuts_do_not_matter(
        cuts in prop::collection::vec(1usize..30, 0..20),
        body in prop::sample::select(vec!["", "GET /a?\"", "x /?\" y", "\r\n\r\n"]),
    ) {
        let first = format!(
            "POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\nX: v /a?\" y\r\n\r\n{body}", body.len()
        );
        let sent = format!("{first}GET /c?d=\"e\" HTTP/1.1\r\nHost: h\r\nY: z /a?\" y\r\n\r\n");
        let (mut gate, progress) = (Gate::new(LIMIT, 10), progress());
        let mut out = Vec::new();
        let mut rest = sent.as_bytes();
        for cut in cuts.into_iter().chain([sent.len()]) {
            let (piece, behind) = rest.split_at(cut.min(rest.len()));
            rest = behind;
            gate.push(piece);
            out.extend(given(&mut gate, &progress));
        }
        let expected = sent.replace("GET /c?d", "GET /c!d");
        prop_assert_eq!(String::from_utf8(out).unwrap(), expected);
        prop_assert_eq!(progress.take_disguised(), Some(2));
    }
}
