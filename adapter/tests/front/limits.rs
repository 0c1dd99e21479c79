//! The front against slow, greedy and hostile clients: every limit, and malformed requests.

use std::io::{ErrorKind, Write};

use proptest::prelude::*;
use touchline_adapter::http::Reply;

use crate::patience::Wait;
use crate::toy::{BIG, Client, PATIENCE, Site, wait_for};
use crate::{SHORT, defaults, get};

/// A client whose request has come in time, however long this thread stood still between connecting and
/// sending: one that was let go before begins again.
fn client_in_time(site: &Site, request: &str) -> Client {
    let wait = Wait::begin();
    loop {
        let (before, mut client) = (site.calls(), site.client());
        // It may be closed already.
        let _ = client.stream.write_all(request.as_bytes());
        client.stream.set_nonblocking(true).expect("a socket");
        let waits = |seen: std::io::Result<usize>| {
            seen.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
        };
        while site.calls() == before && waits(client.stream.peek(&mut [0])) {
            wait.go_on("neither called nor let go");
            std::thread::yield_now();
        }
        client.stream.set_nonblocking(false).expect("a socket");
        // Whoever is let go has not been called, and is not any more.
        if site.calls() > before {
            return client;
        }
    }
}

#[test]
fn malformed_requests_are_refused_and_never_executed() {
    let cases: [&[u8]; 20] = [
        b"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1x\r\n\r\nab",
        b"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: +1\r\n\r\na",
        b"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabcd\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
        b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nno colon here\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET  /  HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a b/c@\r\n\r\n",
        b"GET http://h/ HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ];
    let site = defaults();
    for case in cases {
        let mut client = site.client();
        client.send(case);
        client.finish_sending();
        let answer = String::from_utf8(client.rest()).unwrap();
        let sent = String::from_utf8_lossy(case);
        assert!(answer.starts_with("HTTP/1.1 400"), "{sent:?} was answered {answer:?}");
        assert!(answer.contains("{\"code\":-1000,\"msg\":\""), "{sent:?} was answered {answer:?}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{sent:?} was answered {answer:?}");
    }
    assert_eq!(site.calls(), 0);
    assert_eq!(site.ask("GET / HTTP/1.0\r\n\r\n").status, 200, "1.0 has no Host");
    site.assert_alive();
}

#[test]
fn a_body_cut_short_is_answered_400_and_not_executed() {
    let site = defaults();
    let mut client = site.client();
    client.send("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc");
    client.finish_sending();
    let answer = client.answer();
    assert_eq!(answer.status, 400);
    assert_eq!(answer.header("connection"), Some("close"));
    assert_eq!(site.calls(), 0);
}

#[test]
fn length_and_chunked_together_are_refused_in_either_order() {
    let site = defaults();
    let (length, chunked) = ("Content-Length: 3\r\n", "Transfer-Encoding: chunked\r\n");
    for fields in [format!("{length}{chunked}"), format!("{chunked}{length}")] {
        let mut client = site.client();
        client.send(format!(
            "POST /a HTTP/1.1\r\nHost: h\r\n{fields}\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"
        ));
        client.finish_sending();
        let answer = client.answer();
        assert_eq!(answer.status, 400);
        assert_eq!(
            answer.body,
            r#"{"code":-1000,"msg":"Content-Length and Transfer-Encoding exclude each other."}"#
        );
        client.assert_ended();
    }
    assert_eq!(site.calls(), 0);
}

#[test]
fn a_fragment_in_the_target_is_refused() {
    let site = defaults();
    for target in ["/a#b", "/a?b#c", "/#"] {
        let answer = site.ask(get(target));
        assert_eq!(answer.status, 400, "{target}");
        assert_eq!(answer.body, r#"{"code":-1000,"msg":"A request target has no fragment (#)."}"#);
    }
    assert_eq!(site.calls(), 0);
}

#[test]
fn header_fields_are_counted() {
    let site = defaults();
    let with = |fields: usize| {
        let mut text = String::from("GET /a HTTP/1.1\r\nHost: h\r\n");
        for n in 1..fields {
            text += &format!("F{n}: v\r\n");
        }
        text + "\r\n"
    };
    assert_eq!(site.ask(with(64)).status, 200);
    for fields in [65, 100, 101, 500] {
        assert_eq!(site.ask(with(fields)).status, 431, "{fields} fields");
    }
    assert_eq!(site.calls(), 1);
}

#[test]
fn an_endless_head_is_refused_and_the_client_learns_why() {
    let site = Site::start(|config| config.linger_timeout = PATIENCE);
    let mut client = site.client();
    client.send(format!("GET /a HTTP/1.1\r\nHost: h\r\nX: {}", "y".repeat(300_000)));
    let answer = client.answer();
    assert_eq!(answer.status, 431);
    assert_eq!(answer.body, r#"{"code":-1000,"msg":"Request head is longer than 16384 bytes."}"#);
    let answer = site.ask(get(&format!("/{}", "p".repeat(20_000))));
    assert_eq!(answer.status, 431);
    assert_eq!(site.calls(), 0);
}

#[test]
fn bodies_up_to_the_limit_pass_and_longer_ones_are_refused() {
    let site = Site::start(|config| {
        config.max_body_bytes = 5000;
        config.linger_timeout = PATIENCE;
    });
    let sized = |length: usize| {
        format!(
            "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{}",
            "b".repeat(length)
        )
    };
    let chunked = |length: usize| {
        let mut text =
            String::from("POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
        for _ in 0..length / 10 {
            text += "a\r\nbbbbbbbbbb\r\n";
        }
        text + "0\r\n\r\n"
    };
    for text in [sized(5000), chunked(5000)] {
        let answer = site.ask(text);
        assert_eq!(answer.status, 200);
        assert!(answer.body.ends_with(&format!("b={}", "b".repeat(5000))));
    }
    for text in [sized(5001), sized(500_000), chunked(5010), chunked(100_000)] {
        let mut client = site.client();
        client.send(text);
        let answer = client.answer();
        assert_eq!(answer.status, 413);
        assert_eq!(answer.header("connection"), Some("close"));
        assert_eq!(
            answer.body,
            r#"{"code":-1000,"msg":"Request body is longer than 5000 bytes."}"#
        );
        client.assert_ended();
    }
    assert_eq!(site.calls(), 2);
}

#[test]
fn a_body_that_is_mostly_framing_is_refused() {
    let site = Site::start(|config| config.linger_timeout = PATIENCE);
    let chunks = |count: usize, size: usize| {
        let chunk = format!("{size:x}\r\n{}\r\n", "b".repeat(size));
        let head = "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
        head.to_owned() + &chunk.repeat(count) + "0\r\n\r\n"
    };
    for text in [chunks(1000, 1), chunks(1000, 60), chunks(10, 9999)] {
        assert_eq!(site.ask(text).status, 200);
    }
    let endless = [("", "1\r\nb\r\n"), ("", "0"), ("5", " "), ("0;", "x"), ("0\r\nX: ", "y")];
    for (first, again) in endless {
        let mut client = site.client();
        let end = format!("{first}{}", again.repeat(10_000));
        client.send(chunks(0, 0).replace("0\r\n\r\n", &end));
        let answer = client.answer();
        assert_eq!((answer.status, answer.header("connection")), (400, Some("close")));
        assert_eq!(
            answer.body,
            r#"{"code":-1000,"msg":"Request body has too much chunk framing for its data."}"#
        );
        client.assert_ended();
    }
    assert_eq!(site.calls(), 3);
    site.assert_alive();
}

#[test]
fn a_refused_client_may_go_on_sending_for_a_while() {
    let site = Site::start(|config| {
        config.max_body_bytes = 10;
        config.linger_timeout = PATIENCE;
    });
    let mut client = site.client();
    client.send("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 600000\r\n\r\n");
    assert_eq!(client.answer().status, 413);
    client.assert_ended();
    for _ in 0..6 {
        assert_eq!(site.front.open_connections(), 1);
        client.send([b'x'; 100_000]);
    }
    client.finish_sending();
    site.wait_for_connections(0);
}

#[test]
fn expect_continue_is_honoured_only_for_a_body_that_would_be_taken() {
    let site = Site::start(|config| config.max_body_bytes = 10);
    let mut client = site.client();
    client.send("POST /a HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    assert_eq!(client.head().status, 100);
    client.send("abc");
    assert_eq!(client.answer().body, "POST /a q= h=- b=abc");
    client
        .send("POST /a HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 11\r\n\r\n");
    assert_eq!(client.answer().status, 413);
}

#[test]
fn a_slow_head_ends_the_connection() {
    let site = Site::start(|config| config.head_timeout = SHORT);
    let mut silent = site.client();
    let mut slow = site.client();
    // It may be closed already.
    let _ = slow.stream.write_all(b"GET /a HTTP/1.1\r\nHos");
    assert_eq!(slow.rest(), b"");
    silent.assert_ended();
    assert_eq!(site.calls(), 0);
    site.assert_alive();
}

#[test]
fn a_slow_body_is_answered_408() {
    let site = Site::start(|config| config.body_timeout = SHORT);
    let mut client = site.client();
    client.send("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nab");
    assert_eq!(client.answer().status, 408);
    client.assert_ended();
    assert_eq!(site.calls(), 0);
}

#[test]
fn an_idle_connection_is_closed_but_a_waiting_one_is_not() {
    let site = Site::start(|config| {
        config.idle_timeout = SHORT;
        config.head_timeout = SHORT;
    });
    let mut waiting = client_in_time(&site, &get("/hold"));
    let done = site.held.recv_timeout(PATIENCE).unwrap();
    let mut idle = client_in_time(&site, &get("/a"));
    assert_eq!(idle.answer().status, 200);
    idle.assert_ended();
    done.send(Reply::empty(200));
    assert_eq!(waiting.answer().status, 200);
}

#[test]
fn the_idle_time_starts_again_after_a_reply_that_had_to_wait() {
    let site = Site::start(|config| config.idle_timeout = SHORT);
    let mut client = site.client();
    client.send(get("/big"));
    assert_eq!(client.answer().body.len(), BIG);
    client.assert_ended();
}

#[test]
fn a_client_that_does_not_read_is_cut_off() {
    let site = Site::start(|config| config.write_timeout = SHORT);
    let mut client = site.client();
    client.send(get("/big"));
    wait_for("the request", || site.calls() == 1);
    site.wait_for_connections(0);
    assert!(client.rest().len() < BIG);
    site.assert_alive();
}

#[test]
fn connections_above_the_limit_are_answered_503() {
    let site = Site::start(|config| {
        config.max_connections = 2;
        config.linger_timeout = PATIENCE;
    });
    let mut first = site.client();
    let mut second = site.client();
    for client in [&mut first, &mut second] {
        client.send(get("/a"));
        assert_eq!(client.answer().status, 200);
    }
    let mut third = site.client();
    third.send(get("/a"));
    let answer = third.answer();
    assert_eq!(answer.status, 503);
    assert_eq!(
        answer.body,
        r#"{"code":-1008,"msg":"Server is currently overloaded with other requests. Please try again in a few minutes."}"#
    );
    third.assert_ended();
    drop(first);
    site.wait_for_connections(1);
    site.assert_alive();
    assert_eq!(site.calls(), 3);
}

#[test]
fn connections_above_the_limit_of_an_address_are_answered_503() {
    let site = Site::start(|config| {
        config.max_connections_per_address = 1;
        config.linger_timeout = PATIENCE;
    });
    let mut first = site.client();
    first.send(get("/a"));
    assert_eq!(first.answer().status, 200);
    assert_eq!(site.ask(get("/a")).status, 503);
    drop(first);
    site.wait_for_connections(0);
    site.assert_alive();
}

#[test]
fn a_proxy_is_not_held_to_the_limit_of_an_address() {
    let site = Site::start(|config| {
        config.max_connections_per_address = 1;
        config.proxies = vec!["127.0.0.1".parse().unwrap()];
    });
    let mut first = site.client();
    first.send(get("/a"));
    assert_eq!(first.answer().status, 200);
    assert_eq!(site.ask(get("/a")).status, 200);
}

/// One chunk in one of the ways in which it can be written, and its data.
fn any_chunk() -> impl Strategy<Value = (String, String)> {
    let data = prop::sample::select(vec![
        "a",
        "\r\n0\r\n\r\n",
        "0\r\n\r\nGET /no HTTP/1.1\r\nHost: h\r\n\r\n",
        "\"?\" ffff\r\n",
    ]);
    let rest = prop::sample::select(vec!["", " ", "\t ", ";", ";x", " ; x=\"0;1\"", ";\t5"]);
    (data, 1usize..40, "0{0,20}", rest, any::<bool>()).prop_map(
        |(data, times, zeros, rest, upper)| {
            let data = data.repeat(times);
            let size = format!("{:x}", data.len());
            let size = if upper { size.to_uppercase() } else { size };
            (format!("{zeros}{size}{rest}\r\n{data}\r\n"), data)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// However a body is chunked and cut, the request behind it is looked at like any other: its quoted query would else
    /// be refused.
    #[test]
    fn a_chunked_body_ends_where_it_ends(
        chunks in prop::collection::vec(any_chunk(), 0..6),
        last in prop::sample::select(vec!["0\r\n", "000 \r\n", "0;x\r\n", "0\r\nX: 5\r\nY: z\r\n"]),
        cuts in prop::collection::vec(1usize..300, 0..8),
    ) {
        let (written, data): (Vec<_>, Vec<_>) = chunks.into_iter().unzip();
        let sent = format!(
            "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n{}{last}\r\n{}",
            written.concat(), get("/i?s=[\"A\"]"),
        );
        let site = defaults();
        let mut client = site.client();
        let mut rest = sent.as_bytes();
        for cut in cuts.into_iter().chain([sent.len()]) {
            let (piece, behind) = rest.split_at(cut.min(rest.len()));
            client.send(piece);
            rest = behind;
        }
        prop_assert_eq!(client.answer().body, format!("POST /a q= h=- b={}", data.concat()));
        prop_assert_eq!(client.answer().body, "GET /i q=s=[\"A\"] h=- b=");
    }

    /// Whatever comes in, the connection ends or answers, and the front goes on.
    #[test]
    fn no_bytes_bring_the_front_down(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        prefix in prop::sample::select(vec![
            "", "GET ", "GET /?\"", "POST / HTTP/1.1\r\nHost: h\r\n",
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 20\r\n\r\n",
        ]),
    ) {
        let site = defaults();
        let mut client = site.client();
        // The front may close before all has been sent.
        let _ = client.stream.write_all(&[prefix.as_bytes(), &bytes].concat());
        let _ = client.stream.shutdown(std::net::Shutdown::Write);
        client.rest();
        site.assert_alive();
    }
}
