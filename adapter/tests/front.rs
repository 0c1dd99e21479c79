//! The real front over loopback sockets. Here what it does for well-behaved clients, for a service
//! that fails, and at its end; in `front/limits.rs` what it does to slow, greedy and hostile ones, in
//! `front/may.rs` the second front.

#[path = "front/fairness.rs"]
mod fairness;
#[path = "front/limits.rs"]
mod limits;
#[path = "front/looks.rs"]
mod looks;
#[path = "front/may.rs"]
mod may;
#[path = "../../tests/support/patience.rs"]
mod patience;
#[path = "front/resumed.rs"]
mod resumed;
#[path = "front/toy.rs"]
mod toy;

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use touchline_adapter::front::{Front, FrontConfig, FrontError};
use touchline_adapter::http::{Completion, Reply, Request};
use toy::{BIG, Client, PATIENCE, PIECE, Site};

const SHORT: Duration = Duration::from_millis(50);

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n")
}

fn defaults() -> Site {
    Site::start(|_| {})
}

#[test]
fn a_request_arrives_as_sent_and_its_reply_as_given() {
    let site = defaults();
    let answer = site.ask(
        "POST /a%20b/c?x=%5B%22&y=+1&&x=%zz HTTP/1.1\r\nHost: h\r\nx-TOY: v\r\nContent-Length: 5\r\n\r\nhello",
    );
    assert_eq!(answer.status, 200);
    assert_eq!(answer.body, "POST /a%20b/c q=x=%5B%22&y=+1&&x=%zz h=v b=hello");
    assert_eq!(answer.header("content-type"), Some("text/plain"));
    assert_eq!(answer.header("x-extra"), Some("yes"));
    assert!(answer.header("date").is_some());
}

#[test]
fn a_connection_serves_one_request_after_another() {
    let site = defaults();
    let mut client = site.client();
    for n in 0..20 {
        client.send(get(&format!("/{n}")));
        assert_eq!(client.answer().body, format!("GET /{n} q= h=- b="));
    }
    assert_eq!(site.front.open_connections(), 1);
}

#[test]
fn a_reply_in_pieces_arrives_whole_and_the_connection_goes_on() {
    let site = defaults();
    let mut client = site.client();
    let expected: String = ["2", "1", "0"].map(|digit| digit.repeat(PIECE)).concat();
    for _ in 0..3 {
        client.send(get("/pieces"));
        let answer = client.chunked_answer();
        assert_eq!((answer.status, answer.header("content-length")), (200, None));
        assert!(answer.body == format!("first,{expected}"), "{} bytes", answer.body.len());
    }
    client.send("HEAD /pieces HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(client.head().status, 200);
    client.send(get("/after"));
    assert_eq!(client.answer().body, "GET /after q= h=- b=");
}

/// Where there are no chunks the end of the connection is the end of such a reply.
#[test]
fn an_old_client_is_told_that_the_connection_ends_with_a_reply_in_pieces() {
    let site = defaults();
    let mut client = site.client();
    let get = |path| format!("GET {path} HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    client.send(get("/whole"));
    let whole = client.answer();
    assert_eq!((whole.status, whole.header("connection")), (200, Some("keep-alive")));
    client.send(get("/pieces"));
    let head = client.head();
    let lengths = (head.header("content-length"), head.header("transfer-encoding"));
    assert_eq!((head.status, lengths), (200, (None, None)));
    assert_eq!(head.header("connection"), Some("close"));
    assert_eq!(client.rest().len(), "first,".len() + 3 * PIECE);
}

#[test]
fn a_service_may_take_shorter_bodies_than_the_front() {
    let site = defaults();
    let post = |path: &str| {
        site.ask(format!("POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nfour"))
    };
    let answer = post("/small");
    assert_eq!(answer.status, 413);
    assert!(answer.body.contains("longer than 3 bytes"), "{}", answer.body);
    assert_eq!(post("/other").status, 200);
    assert_eq!(site.calls(), 1);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let site = defaults();
    let mut client = site.client();
    let mut all = String::new();
    for n in 0..200 {
        all += &format!("POST /{n} HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n{}", n % 10);
    }
    client.send(all);
    for n in 0..200 {
        assert_eq!(client.answer().body, format!("POST /{n} q= h=- b={}", n % 10));
    }
}

#[test]
fn a_request_may_come_byte_by_byte() {
    let site = defaults();
    let mut client = site.client();
    let text = b"POST /a?b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n";
    for byte in text {
        client.send([*byte]);
    }
    assert_eq!(client.answer().body, "POST /a q=b h=- b=hello");
    client.send(get("/next"));
    assert_eq!(client.answer().status, 200);
}

#[test]
fn a_request_has_arrived_when_its_body_has() {
    let site = defaults();
    let mut client = site.client();
    client.send(
        "POST /arrived HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n",
    );
    assert_eq!(client.head().status, 100, "the head has been read");
    let before_body = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    client.send("x");
    let arrived: u128 = client.answer().body.parse().unwrap();
    assert!(arrived >= before_body, "{arrived} {before_body}");
}

#[test]
fn head_is_answered_like_get_without_the_body() {
    let site = defaults();
    let mut client = site.client();
    client.send("HEAD /a?b HTTP/1.1\r\nHost: h\r\n\r\n");
    let head = client.head();
    assert_eq!(head.status, 200);
    assert_eq!(head.header("content-length"), Some("17"));
    client.send(get("/a?b"));
    let answer = client.answer();
    assert_eq!(answer.body, "GET /a q=b h=- b=");
    assert_eq!(answer.header("content-length"), Some("17"));
}

#[test]
fn a_raw_quote_in_the_query_reaches_the_service() {
    let site = defaults();
    let answer = site.ask(get("/info?symbols=[\"A\",\"B\"]"));
    assert_eq!(answer.body, "GET /info q=symbols=[\"A\",\"B\"] h=- b=");
    let mut client = site.client();
    client.send(get("/!?a"));
    assert_eq!(client.answer().body, "GET /! q=a h=- b=");
    client.send(get("/!?a=\"!\""));
    assert_eq!(client.answer().body, "GET /! q=a=\"!\" h=- b=");
    client.send(get("/!?a=?\""));
    assert_eq!(client.answer().status, 400);
}

#[test]
fn a_raw_quote_hides_no_path_from_who_answers_for_the_service() {
    let site = defaults();
    let answer = site.ask("PROPFIND /jobs/panic?s=[\"A\"] HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!((answer.status, answer.body.as_str()), (500, "{\"msg\":\"own text\"}"));
    for framing in ["Content-Length: 4\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n4\r\n"] {
        let head = "POST /small?s=[\"A\"] HTTP/1.1\r\nHost: h\r\n";
        assert_eq!(site.ask(format!("{head}{framing}four\r\n0\r\n\r\n")).status, 413, "{framing}");
    }
    assert_eq!(site.calls(), 0);
}

#[test]
fn a_raw_quote_may_come_byte_by_byte_and_behind_other_requests() {
    let site = defaults();
    let mut client = site.client();
    let quoted = "GET /i?s=[\"A\"] HTTP/1.1\r\nHost: h\r\nX-Toy: v /b?\"w\"\r\n\r\n";
    let chunked =
        "POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n";
    let all = format!("{quoted}{chunked}{quoted}{chunked}");
    let answers = ["GET /i q=s=[\"A\"] h=v /b?\"w\" b=", "POST /c q= h=- b=x"];
    for byte in all.bytes() {
        client.send([byte]);
    }
    for expected in answers.iter().cycle().take(4) {
        let answer = client.answer();
        assert_eq!(answer.body, *expected, "{}", answer.head);
    }
    client.send(all);
    for expected in answers.iter().cycle().take(4) {
        let answer = client.answer();
        assert_eq!(answer.body, *expected, "{}", answer.head);
    }
}

#[test]
fn non_ascii_targets_pass_as_utf8_and_are_refused_otherwise() {
    let site = defaults();
    assert_eq!(site.ask(get("/é?ü")).body, "GET /é q=ü h=- b=");
    let answer = site.ask(b"GET /\xff?a HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(answer.status, 400);
    assert_eq!(site.calls(), 1);
}

#[test]
fn a_client_that_reads_gets_a_big_reply() {
    let site = defaults();
    assert_eq!(site.ask(get("/big")).body.len(), BIG);
}

#[test]
fn a_half_closed_client_gets_its_replies() {
    let site = defaults();
    for _ in 0..100 {
        let mut client = site.client();
        client.send(get("/a") + &get("/b"));
        client.finish_sending();
        assert_eq!(client.answer().body, "GET /a q= h=- b=");
        assert_eq!(client.answer().body, "GET /b q= h=- b=");
        client.assert_ended();
    }
    let mut client = site.client();
    client.send("POST /hold HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx");
    client.finish_sending();
    let done = site.held.recv_timeout(PATIENCE).unwrap();
    done.send(Reply::json(200, "{\"late\":1}"));
    assert_eq!(client.answer().body, "{\"late\":1}");
    client.assert_ended();
}

#[test]
fn http_1_0_is_spoken() {
    let site = defaults();
    let mut client = site.client();
    client.send("GET /a HTTP/1.0\r\n\r\n");
    let answer = client.answer();
    assert!(answer.head.starts_with("HTTP/1.0 200"), "{}", answer.head);
    client.assert_ended();
    let mut client = site.client();
    for _ in 0..2 {
        client.send("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        assert_eq!(client.answer().status, 200);
    }
    let mut client = site.client();
    client.send("GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    assert_eq!(client.answer().status, 200);
    client.assert_ended();
}

#[test]
fn methods_outside_of_the_list_are_answered_405() {
    let site = defaults();
    for method in ["TRACE", "CONNECT", "PROPFIND", "get"] {
        let target = if method == "CONNECT" { "h:80" } else { "/a" };
        let answer = site.ask(format!("{method} {target} HTTP/1.1\r\nHost: h\r\n\r\n"));
        assert_eq!(answer.status, 405, "{method}");
        assert!(answer.header("allow").unwrap().contains("PATCH"));
        assert_eq!(answer.body, r#"{"code":-1020,"msg":"This operation is not supported."}"#);
    }
    assert_eq!(site.calls(), 0);
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
        let answer = site.ask(format!("{method} /a HTTP/1.1\r\nHost: h\r\n\r\n"));
        assert_eq!(answer.body, format!("{method} /a q= h=- b="));
    }
}

#[test]
fn absolute_and_asterisk_targets_are_understood() {
    let site = defaults();
    assert_eq!(site.ask(get("http://h/a?b")).body, "GET /a q=b h=- b=");
    assert_eq!(site.ask(get("http://h")).body, "GET / q= h=- b=");
    let answer = site.ask("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(answer.body, "OPTIONS * q= h=- b=");
}

#[test]
fn a_failing_handler_costs_one_request_only() {
    let site = defaults();
    let mut client = site.client();
    for path in ["/panic", "/drop"] {
        client.send(get(path));
        let answer = client.answer();
        assert_eq!(answer.status, 500);
        assert_eq!(
            answer.body,
            r#"{"code":-1000,"msg":"An unknown error occured while processing the request."}"#
        );
        client.send(get("/a"));
        assert_eq!(client.answer().status, 200);
    }
    client.send(get("/send-then-panic"));
    assert_eq!(client.answer().body, "{\"sent\":true}");
    client.send(get("/thread"));
    assert_eq!(client.answer().status, 200);
    assert_eq!(site.front.open_connections(), 1);
}

#[test]
fn the_service_words_its_own_faults() {
    let site = Site::start(|config| config.max_body_bytes = 10);
    let long =
        |path: &str| format!("POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n\r\n");
    assert_eq!(site.ask(long("/jobs/panic")).body, r#"{"msg":"own text"}"#);
    assert_eq!(site.ask(long("/jobs/fault-panics")).status, 500);
    site.assert_alive();
}

#[test]
fn replies_that_cannot_be_encoded_become_500() {
    let site = defaults();
    for path in ["/bad-header", "/bad-status"] {
        let answer = site.ask(get(path));
        assert_eq!(answer.status, 500, "{path}");
        assert!(!answer.head.contains("Injected"));
    }
    let mut client = site.client();
    client.send(get("/no-content"));
    let answer = client.answer();
    assert_eq!((answer.status, answer.body.as_str()), (204, ""));
    client.send(get("/a"));
    assert_eq!(client.answer().status, 200);
}

#[test]
fn several_workers_share_the_connections() {
    let site = Site::start(|config| config.workers = 3);
    let mut clients: Vec<Client> = (0..9).map(|_| site.client()).collect();
    for round in 0..3 {
        for client in &mut clients {
            client.send(get(&format!("/{round}")));
        }
        for client in &mut clients {
            assert_eq!(client.answer().body, format!("GET /{round} q= h=- b="));
        }
    }
    assert_eq!(site.front.open_connections(), 9);
    assert_eq!(site.front.shutdown(PATIENCE), 0);
}

#[test]
fn shutdown_finishes_requests_in_progress_and_closes_idle_connections() {
    let site = defaults();
    let address = site.front.local_addr();
    let mut idle = site.client();
    idle.send(get("/a"));
    assert_eq!(idle.answer().status, 200);
    let mut unused = site.client();
    let mut busy = site.client();
    busy.send(get("/hold"));
    let done = site.held.recv_timeout(PATIENCE).unwrap();
    let front = site.front;
    let ending = std::thread::spawn(move || front.shutdown(PATIENCE));
    idle.assert_ended();
    unused.assert_ended();
    toy::wait_for("the socket to stop listening", || TcpStream::connect(address).is_err());
    done.send(Reply::json(200, "{}"));
    let answer = busy.answer();
    assert_eq!(answer.body, "{}");
    assert_eq!(answer.header("connection"), Some("close"));
    busy.assert_ended();
    assert_eq!(patience::join(ending, "the shutdown"), 0);
}

/// A client that has sent a part of a request would have until the end of the time that others are given.
#[test]
fn shutdown_does_not_wait_for_requests_that_are_not_whole() {
    let site = Site::start(|config| {
        config.head_timeout = 2 * PATIENCE;
        config.body_timeout = 2 * PATIENCE;
    });
    let mut half_head = site.client();
    half_head.send("GET /a HTTP/1.1\r\nHost: h\r\n");
    let mut second_head = site.client();
    second_head.send(get("/a"));
    assert_eq!(second_head.answer().status, 200);
    second_head.send("GET /b HTT");
    let mut half_body = site.client();
    half_body
        .send("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(half_body.head().status, 100, "the front waits for the body");
    half_body.send("half");
    let front = site.front;
    let ending = std::thread::spawn(move || front.shutdown(PATIENCE));
    assert_eq!(half_body.answer().status, 503);
    for client in [&mut half_head, &mut second_head, &mut half_body] {
        client.rest();
    }
    assert_eq!(patience::join(ending, "the shutdown"), 0);
    assert_eq!(site.toy.calls.load(Ordering::SeqCst), 1);
}

#[test]
fn shutdown_does_not_wait_for_ever() {
    let site = defaults();
    let mut stuck = site.client();
    stuck.send(get("/hold"));
    let done = site.held.recv_timeout(PATIENCE).unwrap();
    assert_eq!(site.front.shutdown(SHORT), 1);
    stuck.assert_ended();
    done.send(Reply::empty(200));
}

#[test]
fn dropping_the_handle_ends_the_front() {
    let site = defaults();
    let address = site.front.local_addr();
    let mut client = site.client();
    client.send(get("/hold"));
    let done = site.held.recv_timeout(PATIENCE).unwrap();
    drop(site);
    client.assert_ended();
    assert!(TcpStream::connect(address).is_err());
    drop(done);
}

#[test]
fn wrong_settings_and_taken_ports_are_refused() {
    struct Nothing;
    impl touchline_adapter::http::Service for Nothing {
        fn call(&self, _: Request, done: Completion) {
            done.send(Reply::empty(200));
        }
    }
    let start = |adjust: &dyn Fn(&mut FrontConfig)| {
        let mut config = FrontConfig::new(SocketAddr::from(([127, 0, 0, 1], 0)));
        adjust(&mut config);
        Front::start(config, Arc::new(Nothing))
    };
    let error = start(&|config| config.workers = 0).unwrap_err();
    assert!(matches!(error, FrontError::Setting { setting: "workers", .. }));
    let error = start(&|config| config.max_headers = 101).unwrap_err();
    assert!(matches!(error, FrontError::Setting { setting: "max_headers", .. }));
    let error = start(&|config| config.max_connections = 0).unwrap_err();
    assert!(matches!(error, FrontError::Setting { setting: "max_connections", .. }));
    let error = start(&|config| config.max_connections_per_address = 0).unwrap_err();
    let setting = "max_connections_per_address";
    assert!(matches!(error, FrontError::Setting { setting: name, .. } if name == setting));
    let taken = start(&|_| {}).unwrap();
    let error = start(&|config| config.listen = taken.local_addr()).unwrap_err();
    assert!(matches!(error, FrontError::Listen { address, .. } if address == taken.local_addr()));
}
