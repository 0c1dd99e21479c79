//! A command that an engine has panicked of ends no other: its sender is refused until an operator lets him back.

use super::binary::{KEY_A, KEY_B};
use super::process::eventually;
use super::session_rules::rejected;
use super::stream_client::{Member, options, unix};
use super::venue::{Part, UNLIMITED, Venue};
use std::fs;
use std::path::PathBuf;
use touchline_protocol::log::reader::{Follow, LogReader};
use touchline_protocol::message::decode::Command;
use touchline_protocol::message::enums::RejectReason;
use touchline_protocol::units::KeyId;

const SELL: &str = "symbol=BTCUSDT&side=SELL&type=LIMIT&timeInForce=GTC&quantity=1&price=50000";

/// The first command of that kind in the log.
fn first(venue: &Venue, is_wanted: impl Fn(&Command<'_>) -> bool) -> Vec<u8> {
    let mut log = LogReader::open(venue.data(), Follow::Appended).expect("the engine runs");
    while let Some(transaction) = log.next().expect("the log is sound") {
        if transaction.command().is_ok_and(|command| is_wanted(&command)) {
            return transaction.command_bytes().to_vec();
        }
    }
    panic!("no such command is in the log")
}

/// Starts the engine anew over a command that the last one has panicked of, as a recovery leaves it; gives its file.
fn start_behind_panic(venue: &mut Venue, deadly: &[u8]) -> PathBuf {
    venue.kill9(Part::Engine);
    let folder = venue.data().join("poison");
    let file = folder.join("1-4096.fatal");
    fs::create_dir(&folder).expect("the folder is ours");
    fs::write(&file, deadly).expect("the folder is ours");
    venue.start_engine();
    let told = |line: &str| line.contains("1-4096.fatal") && line.contains("are refused until");
    venue.part(Part::Engine).wait_for(0, "word of the quarantine", told);
    file
}

/// Lets its sender back.
fn let_back(venue: &mut Venue, file: PathBuf) {
    fs::rename(file, venue.data().with_extension("fatal")).expect("it can be moved away");
    venue.kill9(Part::Engine);
    venue.start_engine();
}

#[test]
fn who_sent_what_an_engine_panicked_of_is_refused_until_an_operator_lets_him_back() {
    let mut venue = Venue::separate(&UNLIMITED);
    venue.a().place(SELL);
    let deadly = first(&venue, |command| matches!(command, Command::NewOrder(_)));
    let file = start_behind_panic(&mut venue, &deadly);
    let is_taken = || venue.b().call("POST", "/api/v3/order", SELL).status == 200;
    assert!(eventually(is_taken), "other keys of the same session are not refused");
    let refusal = venue.a().call("POST", "/api/v3/order", SELL).error();
    assert_eq!((refusal.0, refusal.1), (401, -1002));
    assert_eq!(venue.a().call("GET", "/api/v3/openOrders", "symbol=BTCUSDT").ok().items().len(), 1);
    let_back(&mut venue, file);
    venue.wait_until_engine_answers();
    venue.a().place(SELL);
}

/// The logon is the engine's own command, and names the key of whoever it is for.
#[test]
fn whose_logon_an_engine_panicked_of_is_not_logged_on_until_an_operator_lets_him_back() {
    let mut venue = Venue::separate(&UNLIMITED);
    let (a, b) = (venue.key_a(), venue.key_b());
    let named = |venue: &Venue, name| options(unix(venue), name, (KEY_A, &a));
    drop(Member::open(&named(&venue, "first")).expect("it is let in"));
    let is_of_a = |command: &Command<'_>| matches!(command, Command::Logon(logon) if logon.command.key_id == KeyId(KEY_A));
    let deadly = first(&venue, is_of_a);
    let file = start_behind_panic(&mut venue, &deadly);
    for name in ["first", "second"] {
        assert_eq!(rejected(&named(&venue, name)), Some(RejectReason::Quarantined), "{name}");
    }
    // One line in a second is printed, whatever it is about.
    let is_told = || {
        rejected(&named(&venue, "third")).expect("it is refused each time");
        let lines = venue.part(Part::Engine).lines();
        lines.iter().any(|line| line.contains("refused a logon: Quarantined"))
    };
    assert!(eventually(is_told), "no word of the refusal");
    Member::connect(unix(&venue), "first", (KEY_B, &b)).assert_alive();
    let_back(&mut venue, file);
    Member::open(&named(&venue, "first")).expect("it is let in again").assert_alive();
}
