//! The example clients of `protocol/examples` trade against a real engine, in three languages.

use super::binary::{KEY_A, KEY_B};
use super::http::Key;
use super::process::eventually;
use super::stream_client::{Member, address, limit, tcp, unix, venue};
use crate::patience::{Running, finish, run};
use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use touchline_protocol::message::enums::{OrderStatus, Side};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("protocol/examples").join(name)
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

fn skip(what: &str) {
    assert!(env::var_os("TOUCHLINE_REQUIRE_ALL").is_none(), "no {what}");
    println!("skipped: no {what}");
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
        None => skip("python3"),
    }
}

#[test]
fn a_c_client_trades() {
    let venue = venue(&[]);
    let address = address(&venue.supervisor().lines());
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
    let Ok(built) = run(&mut build) else { return skip("C compiler (cc)") };
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let mut command = Command::new(&program);
    command.args([address.ip().to_string(), address.port().to_string(), KEY_A.to_string()]);
    let running = start(&mut command, &venue.key_a()).expect("it was just built");
    assert_traded(&output(running));
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
            return skip("example ping_pong (cargo build --examples -p touchline-protocol)");
        };
        command.args([carrier, place, &KEY_A.to_string(), "20"]);
        let text = output(start(&mut command, &venue.key_a()).expect("it is there"));
        assert_eq!(text.lines().count(), 3, "{text}");
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
        return skip("example market_maker (cargo build --examples -p touchline-protocol)");
    };
    command.args([place, KEY_A.to_string(), "30000".to_owned(), "2".to_owned()]);
    let maker = start(&mut command, &venue.key_a()).expect("it is there");
    let mut taker = Member::connect(unix(&venue), "taker", (KEY_B, &venue.key_b()));
    for price in [30_001, 30_002] {
        // It quotes a unit away on either side; each fill moves it up by one.
        assert!(eventually(|| {
            let mut order = limit(Side::Buy, price, 1);
            order.time_in_force = touchline_protocol::message::enums::TimeInForce::Ioc.to_wire();
            taker.place(order).status == OrderStatus::Filled.to_wire()
        }));
    }
    let text = output(maker);
    assert!(text.ends_with("done after 2 fills\n"), "{text}");
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
        return skip("example market_maker (cargo build --examples -p touchline-protocol)");
    };
    command.args([place, KEY_A.to_string(), "30000".to_owned(), "1".to_owned()]);
    let mut maker = start(&mut command, &venue.key_a()).expect("it is there");
    let has_ended = eventually(|| maker.0.try_wait().is_ok_and(|status| status.is_some()));
    assert!(has_ended, "it waits for a trade that nobody tells of");
    assert!(output(maker).ends_with("done after 1 fills\n"));
}
