//! What two adapters of one venue tell of a command whose fate nobody knows: the one that was asked for it, and the
//! other one.

use super::failed_disk::let_write;
use super::http::{Http, Request, Response, connect, read_response};
use super::jobs::{LOGIN, PASSWORD, PATIENT, REGISTER, login, registration};
use super::json::Json;
use super::process::{Process, send_signal, stop};
use super::trader::Trader;
use super::venue::{Part, UNLIMITED, Venue, borrowed};
use crate::patience::{Wait, eventually, join};
use rustix::process::Signal;
use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;

/// Another adapter on the venue's folder, and where it listens.
fn other_adapter(venue: &Venue) -> (Process, SocketAddr) {
    let own = ["--set", "adapter.instance=other"].map(str::to_owned);
    let arguments = [venue.arguments("adapter", true), own.to_vec()].concat();
    let process = Process::start(&borrowed(&arguments));
    let prefix = "adapter ready http=";
    let line = process.wait_for(0, "adapter's ready line", |line| line.starts_with(prefix));
    let address = line[prefix.len()..].split_whitespace().next().and_then(|word| word.parse().ok());
    (process, address.expect("an address"))
}

fn number(http: &mut Http, field: &str) -> i128 {
    Json::parse(&http.get("/status").body).integer_at(field)
}

fn register(name: &str, email: &str) -> Request {
    Request::new("POST", REGISTER).body(registration(name, email, PASSWORD))
}

/// Waits until both ways of an adapter lead to the engine: each logon is written to the log, too.
fn wait_until_connected(address: SocketAddr) {
    let mut http = Http::new(address);
    let has_orders = || http.get("/status").body.contains(r#""engineConnected":true"#);
    assert!(eventually(has_orders), "the adapter does not reach the engine");
    let probe = register("Probe", "probe@example.org");
    assert!(eventually(|| http.call(&probe).status < 500), "no registration is taken");
}

/// Has the engine die with what `ask` asks for in the live window, and not on disk. Nobody knows what became of it,
/// and both adapters know that the engine is away.
fn lose(venue: &mut Venue, other: SocketAddr, ask: impl FnOnce() -> Response + Send + 'static) {
    [venue.address(), other].into_iter().for_each(wait_until_connected);
    let_write(venue, Part::Engine, false);
    let asked = thread::spawn(ask);
    venue
        .part(Part::Engine)
        .wait_for(0, "word of the failed log", |line| line.starts_with("log failed"));
    venue.kill9(Part::Engine);
    let response = join(asked, "the answer to what was lost");
    assert!(response.status >= 500 && response.status != 503, "{response:?}");
    for address in [venue.address(), other] {
        let (mut http, wait) = (Http::new(address), Wait::begin());
        while http.get("/status").body.contains(r#""engineConnected":true"#) {
            wait.go_on("the adapter does not miss the engine");
        }
        assert!(number(&mut http, "appended") > number(&mut http, "durable"), "it is on disk");
    }
}

fn send(address: SocketAddr, request: &Request) -> BufReader<TcpStream> {
    let mut stream = connect(address).expect("the adapter listens");
    stream.write_all(&request.bytes()).expect("it is taken");
    BufReader::new(stream)
}

/// What two adapters tell once an engine is back that was away when they were asked.
fn answers(venue: &mut Venue, other: SocketAddr, requests: [&Request; 2]) -> [Response; 2] {
    let waiting = [(venue.address(), requests[0]), (other, requests[1])]
        .map(|(address, request)| send(address, request));
    venue.start_engine();
    waiting.map(|mut stream| read_response(&mut stream).expect("it is answered").0)
}

#[test]
fn no_adapter_tells_that_something_was_not_done_before_that_is_certain() {
    let patient = ["--set", "adapter.deadline_ms=60000"];
    let mut venue = Venue::separate(&[&UNLIMITED[..], &PATIENT, &patient].concat());
    let (_process, other) = other_adapter(&venue);
    let key = venue.key_a();
    let trader = |address| Trader::new(address, "X-SVC", key.clone());
    let order = "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.01&price=20000";
    let mut first = trader(venue.address());
    lose(&mut venue, other, move || first.call("POST", "/api/v3/order", order));
    let open = |address| trader(address).request("GET", "/api/v3/openOrders", "symbol=BTCUSDT");
    let requests = [venue.address(), other].map(open);
    for response in answers(&mut venue, other, requests.each_ref()) {
        assert_eq!(response.ok().items().len(), 1, "{response:?}");
    }

    let mut first = Http::new(venue.address());
    let register = register("Ada", "ada@example.org");
    lose(&mut venue, other, move || first.call(&register));
    let log_in = Request::new("POST", LOGIN).body(login("ada@example.org", PASSWORD));
    for response in answers(&mut venue, other, [&log_in; 2]) {
        assert_eq!(response.status, 200, "{response:?}");
    }
}

/// It may go on at any moment, and take what lies in the ring of an adapter that is no more.
#[test]
fn an_adapter_denies_nothing_that_one_before_it_may_have_sent_to_an_engine_that_stands_still() {
    let mut venue = Venue::up(&["--set", "adapter.deadline_ms=1000"]);
    wait_until_connected(venue.address());
    let engine = venue.pid("engine").expect("it runs");
    stop(engine);
    let order = "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.01&price=20000";
    let place = format!("{order}&newClientOrderId=left");
    assert_eq!(venue.a().call("POST", "/api/v3/order", &place).status, 504);
    venue.kill9(Part::Adapter);
    let answers = || {
        let mut stream = connect(venue.address()).ok()?;
        stream.write_all(&Request::new("GET", "/api/v3/ping").bytes()).ok()?;
        read_response(&mut BufReader::new(stream)).ok()
    };
    assert!(eventually(|| answers().is_some()), "no adapter comes after it");
    let look = || {
        let find = "symbol=BTCUSDT&origClientOrderId=left";
        venue.a().call("GET", "/api/v3/order", find)
    };
    let while_it_stands = look();
    assert_eq!(while_it_stands.status, 504, "{while_it_stands:?}");
    send_signal(engine, Signal::CONT);
    assert!(eventually(|| look().status == 400), "it came behind its time");
}
