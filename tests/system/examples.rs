//! The example clients of `protocol/examples` trade against a real engine, in three languages.

use super::binary::{KEY_A, KEY_B};
use super::http::Key;
use super::process::{eventually, send_signal, stop};
use super::stream_client::{Member, address, limit, tcp, unix, venue};
use crate::patience::{Running, finish, in_a_few_tries, run};
use crate::skipped::skipped;
use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
use rustix::process::Signal;
use std::env;
use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;
use touchline_core::limits::SESSIONS_PER_KEY_MAX;
use touchline_protocol::message::enums::{OrderStatus, RejectReason, Side, TimeInForce};
use touchline_protocol::message::handshake::RefusalReason;
use touchline_protocol::units::UNITS_PER_WHOLE;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("protocol/examples").join(name)
}

/// What a program that wants a secret says when it does not end well; `None` where there is no such program.
fn complaint(command: &mut Command, key: &Key) -> Option<String> {
    let running = start(command.stderr(Stdio::piped()), key)?;
    let output = finish(running, "the example");
    let text = String::from_utf8(output.stderr).expect("it is text");
    assert!(!output.status.success(), "it ended well: {text}");
    Some(text)
}

/// Starts a program that wants a secret; `None` where there is no such program.
fn start(command: &mut Command, key: &Key) -> Option<Running> {
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
    let mut running = Running(child);
    let mut stdin = running.0.stdin.take().expect("it is piped");
    writeln!(stdin, "{}", key.secret).expect("it reads its secret");
    Some(running)
}

/// What it prints, once it has ended well.
fn output(running: Running) -> String {
    let output = finish(running, "the example");
    let text = String::from_utf8(output.stdout).expect("it is text");
    assert!(output.status.success(), "{text}");
    text
}

fn assert_traded(text: &str) {
    let begins: Vec<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(begins, ["session", "placed", "canceled", "logged"], "{text}");
}

#[test]
fn a_python_client_trades() {
    let venue = venue(&[]);
    let address = address(&venue.supervisor().lines());
    let mut command = Command::new("python3");
    command.arg(example("trader.py")).args([address.to_string(), KEY_A.to_string()]);
    match start(&mut command, &venue.key_a()) {
        Some(running) => assert_traded(&output(running)),
        None => skipped("python3"),
    }
}

/// Two sessions of one key; the first waits longer than the engine bears silence, then the other fills its order.
const PATIENT: &str = r#"
import sys
sys.path.insert(0, sys.argv[1])
from trader import HEARTBEAT, NEW_ORDER, WHOLE, Session, struct
secret = sys.stdin.readline().strip()
maker, taker = (Session(sys.argv[2], int(sys.argv[3]), secret, name) for name in ("maker", "taker"))
def order(side, price):
    return struct.pack("<IBBBBqqqqq40sB7x", 0, side, 1, 1, 0, price * WHOLE, WHOLE, 0, 0, 0, b"", 0)
for _ in range(5):
    for session in (maker, taker):
        while session.read()[0] != HEARTBEAT:
            pass
maker.call(NEW_ORDER, order(2, 30000))
taker.call(NEW_ORDER, order(1, 30000))
maker.call(NEW_ORDER, order(1, 10))
print("maker", [kind for kind, data in maker.told if data[44] & 2])
"#;

#[test]
fn a_python_session_says_that_it_lives_and_keeps_what_it_is_told_of_its_orders() {
    let venue = venue(&["gateway.heartbeat_seconds=1"]);
    let address = address(&venue.supervisor().lines());
    let mut told = Vec::new();
    // On a machine that stands still for seconds, so does a client, and its connection ends.
    let lives_on = in_a_few_tries(|| {
        let mut command = Command::new("python3");
        command.args(["-c", PATIENT]).arg(example(""));
        command.args([address.to_string(), KEY_A.to_string()]);
        let started = start(&mut command, &venue.key_a());
        started.is_none_or(|running| {
            let ended = finish(running, "the example");
            told.push(String::from_utf8(ended.stdout).expect("it is text"));
            ended.status.success()
        })
    });
    assert!(lives_on, "who sends heartbeats is given up: {told:?}");
    match told.last() {
        // A Trade.
        Some(told) => assert_eq!(told, "maker [201]\n"),
        None => skipped("python3"),
    }
}

/// Where to connect, of each kind of address; and what nobody takes out of what is told fills up and ends it.
const PLACES: &str = r#"
import sys
sys.path.insert(0, sys.argv[1])
import trader
print(trader.place("[::1]:9000"), trader.place("127.0.0.1:9000"), trader.place("localhost:9000"))
session = object.__new__(trader.Session)
session.sequence, session.told = 0, []
session.command = lambda template, body: None
told = [(201, bytes(48))] * 3
session.read = lambda: told.pop()
trader.TOLD_MAX = 2
try:
    session.call(1, b"")
except SystemExit as end:
    print(end, len(session.told))
"#;

#[test]
fn a_python_session_knows_every_kind_of_address_and_keeps_so_much_of_what_it_is_told() {
    let mut command = Command::new("python3");
    command.args(["-c", PLACES]).arg(example(""));
    let Ok(told) = run(&mut command) else { return skipped("python3") };
    let expected = "('::1', 9000) ('127.0.0.1', 9000) ('localhost', 9000)\n\
                    nobody looks at what the engine tells 2\n";
    assert_eq!(String::from_utf8_lossy(&told.stdout), expected);
}

#[test]
fn a_python_client_that_is_called_wrongly_or_finds_nobody_says_so_in_a_line() {
    let usage = "usage: trader.py HOST:PORT KEY_ID [SYMBOL] < secret\n";
    // Bound as long as this test runs: nobody listens there, and nobody else comes to.
    let taken = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    bind(&taken, &SocketAddr::from(([127, 0, 0, 1], 0))).expect("a free port");
    let nobody = SocketAddr::try_from(getsockname(&taken).expect("it is bound"));
    let nobody = nobody.expect("an address of IP").to_string();
    let refused = format!("{nobody}: [Errno 111] Connection refused\n");
    for (arguments, expected) in [
        (&[][..], usage),
        (&[&*nobody], usage),
        (&[&*nobody, "key"], usage),
        (&["127.0.0.1", "1"], usage),
        (&[&*nobody, "1"], &refused),
    ] {
        let mut command = Command::new("python3");
        command.arg(example("trader.py")).args(arguments);
        let Ok(told) = run(&mut command) else { return skipped("python3") };
        assert_eq!(String::from_utf8_lossy(&told.stderr), expected, "{arguments:?}");
        assert!(!told.status.success(), "{arguments:?}");
    }
}

/// The trader in C, built anew in a folder of its own; `None` where there is no compiler.
fn c_trader() -> Option<(TempDir, PathBuf)> {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let program = folder.path().join("trader");
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("protocol/schema");
    let mut build = Command::new("cc");
    build
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-I"])
        .arg(schema)
        .arg(example("trader.c"))
        .arg("-o")
        .arg(&program);
    let built = run(&mut build).ok()?;
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    Some((folder, program))
}

#[test]
fn a_c_client_trades() {
    let venue = venue(&[]);
    let address = address(&venue.supervisor().lines());
    let Some((_folder, program)) = c_trader() else { return skipped("C compiler (cc)") };
    let mut command = Command::new(&program);
    command.args([address.ip().to_string(), address.port().to_string(), KEY_A.to_string()]);
    let running = start(&mut command, &venue.key_a()).expect("it was just built");
    assert_traded(&output(running));
}

/// For a wrong secret by the gateway, and for a key's name too many by the core.
#[test]
fn the_examples_say_why_they_are_refused() {
    let venue = venue(&[]);
    let a = venue.key_a();
    for name in 0..SESSIONS_PER_KEY_MAX {
        drop(Member::connect(unix(&venue), &format!("name-{name}"), (KEY_A, &a)));
    }
    let wrong = Key { secret: "x".repeat(a.secret.len()), ..a.clone() };
    let address = address(&venue.supervisor().lines());
    let mut python = Command::new("python3");
    python.arg(example("trader.py")).args([address.to_string(), KEY_A.to_string()]);
    let built = c_trader();
    let c = built.as_ref().map(|(_, program)| {
        let mut c = Command::new(program);
        c.args([address.ip().to_string(), address.port().to_string(), KEY_A.to_string()]);
        c
    });
    let told = "refused, reason 3 NotAuthenticated\n";
    let full = format!(
        "refused, reason 7 Rejected: reject reason {}\n",
        RejectReason::CapacityReached.to_wire()
    );
    for (command, what) in [(Some(python), "python3"), (c, "C compiler (cc)")] {
        let Some(mut command) = command else { return skipped(what) };
        match complaint(&mut command, &wrong) {
            Some(said) => assert_eq!(said, told),
            None => return skipped(what),
        }
        assert_eq!(complaint(&mut command, &a).expect("it was just there"), full);
    }
}

#[test]
fn the_examples_know_every_reason_of_a_refusal() {
    let reasons = (1..).map_while(|number| Some((number, RefusalReason::from_wire(number)?)));
    let names: Vec<_> = reasons.map(|(number, reason)| (number, format!("{reason:?}"))).collect();
    let source = |name| fs::read_to_string(example(name)).expect("it is part of the source");
    let python = source("trader.py");
    for (number, name) in &names {
        assert!(python.contains(&format!("{number}: \"{name}\"")), "trader.py: {number} {name}");
    }
    let c = source("trader.c");
    let (_, table) = c.split_once("REFUSALS[] = {").expect("the table of reasons");
    let (table, _) = table.split_once("};").expect("its end");
    let in_c: Vec<_> = table.split('"').skip(1).step_by(2).skip(1).collect();
    assert!(in_c.iter().eq(names.iter().map(|(_, name)| name)), "trader.c: {in_c:?}");
}

/// Examples are built with the tests of their package, beside this test's own executable.
fn rust_example(name: &str) -> Option<Command> {
    let own = env::current_exe().expect("a test knows itself");
    let program = own.parent()?.parent()?.join("examples").join(name);
    program.exists().then(|| Command::new(program))
}

#[test]
fn the_ping_pong_client_measures_over_each_carrier() {
    let venue = venue(&[]);
    let socket = venue.data().join("engine.sock").display().to_string();
    let address = address(&venue.supervisor().lines()).to_string();
    for (carrier, place) in [("shm", &socket), ("unix", &socket), ("tcp", &address)] {
        let Some(mut command) = rust_example("ping_pong") else {
            return skipped("example ping_pong (cargo build --examples -p touchline-protocol)");
        };
        command.args([carrier, place, &KEY_A.to_string(), "20"]);
        let text = output(start(&mut command, &venue.key_a()).expect("it is there"));
        assert_eq!(text.lines().count(), 3, "{text}");
    }
}

/// A name in the place of an address, a carrier that is none, and more orders than the venue takes in a day, which does not turn
/// between two of them as ten seconds may.
#[test]
fn the_examples_in_rust_say_what_is_wrong_by_its_name() {
    let venue = venue(&["limits.orders_per_interval_0=1", "limits.interval_0_seconds=86400"]);
    let (a, key) = (venue.key_a(), KEY_A.to_string());
    let address = address(&venue.supervisor().lines()).to_string();
    let wanted = |name| {
        let found = rust_example(name);
        found.or_else(|| {
            skipped("examples in Rust (cargo build --examples -p touchline-protocol)");
            None
        })
    };
    // Told before the secret is read.
    for (arguments, told) in [
        (["tcp", "localhost:9000", &key, "1"], "localhost:9000: no IP:PORT"),
        (["tpc", &address, &key, "1"], "usage: ping_pong"),
    ] {
        let Some(mut command) = wanted("ping_pong") else { return };
        let ended = run(command.args(arguments)).expect("it is there");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(!ended.status.success() && said.contains(told), "{arguments:?}: {said}");
    }
    for (name, arguments, told) in [
        ("ping_pong", ["tcp", &address, &key, "2"], "TooManyOrders"),
        ("market_maker", [&address, &key, "30000", "1"], "rejected: TooManyOrders"),
    ] {
        let Some(mut command) = wanted(name) else { return };
        let said = complaint(command.args(arguments), &a).expect("it is there");
        assert!(said.contains(told), "{name} {arguments:?}: {said}");
    }
}

/// By its number: the demo venue's second one, and one that is not there.
#[test]
fn the_examples_trade_the_symbol_that_they_are_told() {
    let venue = venue(&[]);
    let (a, key) = (venue.key_a(), KEY_A.to_string());
    let address = address(&venue.supervisor().lines());
    let (place, host, port) = (address.to_string(), address.ip(), address.port().to_string());
    let with = |mut command: Command, arguments: &[&str], symbol| {
        command.args(arguments).arg(symbol);
        command
    };
    let python = |symbol| {
        let mut command = Command::new("python3");
        command.arg(example("trader.py"));
        with(command, &[&place, &key], symbol)
    };
    match complaint(&mut python("9"), &a) {
        Some(told) => assert!(told.contains("rejected, reason 13"), "{told}"),
        None => skipped("python3"),
    }
    if let Some(running) = start(&mut python("1"), &a) {
        assert_traded(&output(running));
    }
    let built = c_trader();
    if let Some((_, program)) = &built {
        let arguments = [&*host.to_string(), &port, &key];
        let c = |symbol| with(Command::new(program), &arguments, symbol);
        let told = complaint(&mut c("9"), &a).expect("it was just built");
        assert!(told.contains("rejected, reason 13"), "{told}");
        assert_traded(&output(start(&mut c("1"), &a).expect("it was just built")));
    } else {
        skipped("C compiler (cc)");
    }
    let Some((ping_pong, maker)) = rust_example("ping_pong").zip(rust_example("market_maker"))
    else {
        return skipped("examples in Rust (cargo build --examples -p touchline-protocol)");
    };
    let again = rust_example("ping_pong").expect("it was there");
    let measures = ["tcp", &*place, &key, "2"];
    let text = output(start(&mut with(ping_pong, &measures, "1"), &a).expect("it is there"));
    assert_eq!(text.lines().count(), 3, "{text}");
    for mut command in
        [with(again, &measures, "9"), with(maker, &[&place, &key, "30000", "1"], "9")]
    {
        let told = complaint(&mut command, &a).expect("it is there");
        assert!(told.contains("rejected") || told.contains("UnknownSymbol"), "{told}");
    }
}

#[test]
fn the_market_maker_moves_with_its_fills() {
    let venue = venue(&[]);
    let place = match tcp(&venue) {
        touchline_protocol::client::Endpoint::Tcp(address) => address.to_string(),
        other => panic!("{other}"),
    };
    let Some(mut command) = rust_example("market_maker") else {
        return skipped("example market_maker (cargo build --examples -p touchline-protocol)");
    };
    command.args([place, KEY_A.to_string(), "30000".to_owned(), "2".to_owned()]);
    let maker = start(&mut command, &venue.key_a()).expect("it is there");
    let mut taker = Member::connect(unix(&venue), "taker", (KEY_B, &venue.key_b()));
    for price in [30_001, 30_002] {
        // It quotes a unit away on either side; each fill moves it up by one.
        assert!(eventually(|| {
            let mut order = limit(Side::Buy, price, 1);
            order.time_in_force = TimeInForce::Ioc.to_wire();
            taker.place(order).status == OrderStatus::Filled.to_wire()
        }));
    }
    let text = output(maker);
    let told = "quoting around 30000.00000000\n\
                filled Sell, now around 30001.00000000\n\
                filled Sell, now around 30002.00000000\n\
                done after 2 fills\n";
    assert_eq!(text, told);
    // The maker is told when its cancel is appended; REST shows what is durable, a moment later.
    assert!(eventually(|| venue.a().balances()["BTC"].1 == 0), "it takes its quotes along");
}

#[test]
fn a_market_maker_whose_quote_meets_what_is_there_moves_as_well() {
    let venue = venue(&[]);
    let place = address(&venue.supervisor().lines()).to_string();
    let mut other = Member::connect(unix(&venue), "other", (KEY_B, &venue.key_b()));
    let bid = other.place(limit(Side::Buy, 30_001, 1));
    assert_eq!(bid.status, OrderStatus::New.to_wire());
    let Some(mut command) = rust_example("market_maker") else {
        return skipped("example market_maker (cargo build --examples -p touchline-protocol)");
    };
    command.args([place, KEY_A.to_string(), "30000".to_owned(), "1".to_owned()]);
    let mut maker = start(&mut command, &venue.key_a()).expect("it is there");
    let has_ended = eventually(|| maker.0.try_wait().is_ok_and(|status| status.is_some()));
    assert!(has_ended, "it waits for a trade that nobody tells of");
    assert!(output(maker).ends_with("done after 1 fills\n"));
}

/// While it stands still its quote is filled in so many parts that the last one finds no room.
#[test]
fn a_market_maker_that_missed_a_fill_quotes_anew() {
    // So long it may stand still.
    let venue = venue(&["gateway.heartbeat_seconds=60"]);
    let place = address(&venue.supervisor().lines()).to_string();
    let Some(mut command) = rust_example("market_maker") else {
        return skipped("example market_maker (cargo build --examples -p touchline-protocol)");
    };
    command.args([place, KEY_A.to_string(), "900000".to_owned(), "1".to_owned()]);
    let maker = start(&mut command, &venue.key_a()).expect("it is there");
    let mut taker = Member::connect(unix(&venue), "taker", (KEY_B, &venue.key_b()));
    let mut take = |quantity| {
        let mut order = limit(Side::Buy, 900_001, 1);
        order.quantity = quantity;
        order.time_in_force = TimeInForce::Ioc.to_wire();
        let result = taker.place(order);
        result.executed_quantity
    };
    let (whole, part) = (UNITS_PER_WHOLE, UNITS_PER_WHOLE / 10_000);
    assert!(eventually(|| take(part) == part), "it quotes");
    stop(maker.0.id());
    let mut left = whole - part;
    while left > 0 {
        left -= take(part);
    }
    assert_eq!(take(part), 0, "all of its quote is taken");
    send_signal(maker.0.id(), Signal::CONT);
    assert!(eventually(|| take(whole) == whole), "it sells no more");
    assert!(output(maker).ends_with("done after 1 fills\n"));
}
