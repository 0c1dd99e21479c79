//! A command that an engine has panicked of ends no other: its sender is refused until an operator lets him back.

use super::process::eventually;
use super::venue::{Part, UNLIMITED, Venue};
use std::fs;
use touchline_protocol::log::reader::{Follow, LogReader};
use touchline_protocol::message::decode::Command;

const SELL: &str = "symbol=BTCUSDT&side=SELL&type=LIMIT&timeInForce=GTC&quantity=1&price=50000";

/// The first order in the log, as it came over the adapter's session.
fn first_order(venue: &Venue) -> Vec<u8> {
    let mut log = LogReader::open(venue.data(), Follow::Appended).expect("the engine runs");
    while let Some(transaction) = log.next().expect("the log is sound") {
        if matches!(transaction.command(), Ok(Command::NewOrder(_))) {
            return transaction.command_bytes().to_vec();
        }
    }
    panic!("no order is in the log")
}

#[test]
fn who_sent_what_an_engine_panicked_of_is_refused_until_an_operator_lets_him_back() {
    let mut venue = Venue::separate(&UNLIMITED);
    venue.a().place(SELL);
    let deadly = first_order(&venue);
    venue.kill9(Part::Engine);
    // As a recovery leaves it.
    let folder = venue.data().join("poison");
    let file = folder.join("1-4096.fatal");
    fs::create_dir(&folder).expect("the folder is ours");
    fs::write(&file, deadly).expect("the folder is ours");
    venue.start_engine();
    let told = |line: &str| line.contains("1-4096.fatal") && line.contains("are refused until");
    venue.part(Part::Engine).wait_for(0, "word of the quarantine", told);
    let is_taken = || venue.b().call("POST", "/api/v3/order", SELL).status == 200;
    assert!(eventually(is_taken), "other keys of the same session are not refused");
    let refusal = venue.a().call("POST", "/api/v3/order", SELL).error();
    assert_eq!((refusal.0, refusal.1), (401, -1002));
    assert_eq!(venue.a().call("GET", "/api/v3/openOrders", "symbol=BTCUSDT").ok().items().len(), 1);
    fs::rename(&file, venue.data().with_extension("fatal")).expect("it can be moved away");
    venue.kill9(Part::Engine);
    venue.start_engine();
    venue.wait_until_engine_answers();
    venue.a().place(SELL);
}
