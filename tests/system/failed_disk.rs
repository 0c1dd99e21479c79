//! A disk that takes no more writes, under the real processes: everybody is told at once, reads go on, and what
//! was acknowledged is there after the repair.

use super::binary::{KEY_A, KEY_B};
use super::doctor::{FOUND_WRONG, doctor};
use super::json::Json;
use super::log_tools::{log, running};
use super::process::{Process, eventually};
use super::stream_client::{Member, limit, options, unix};
use super::trader::Trader;
use super::venue::{Part, UNLIMITED, Venue};
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};
use std::fs;
use std::os::unix::fs::symlink;
use touchline_protocol::client::{Acknowledgement, CallError, Endpoint};
use touchline_protocol::message::enums::{RejectReason, Side};

/// The part's files may grow no more, and be written nowhere beyond their beginning; or may again.
pub(crate) fn let_write(venue: &mut Venue, part: Part, may: bool) {
    let pid = i32::try_from(venue.part(part).pid()).ok().and_then(Pid::from_raw);
    let current = if may { None } else { Some(0) };
    let limit = Rlimit { current, maximum: None };
    prlimit(pid, Resource::Fsize, limit).expect("it is a child of this process");
}

/// REST's orders, and those of durable sessions over rings and over a socket.
#[test]
fn a_failed_disk_is_told_at_once_to_everybody_who_waits_for_it() {
    let mut venue = Venue::separate(&UNLIMITED);
    let (key_a, key_b) = (venue.key_a(), venue.key_b());
    let mut trader = venue.a();
    let acknowledged = trader.limit("BTCUSDT", "BUY", "0.01", "20000").integer_at("orderId");
    let rings = Endpoint::SharedMemory(venue.data().join("engine.sock"));
    let socket = unix(&venue);
    let mut members =
        [(rings, (KEY_A, &key_a)), (socket, (KEY_B, &key_b))].map(|(endpoint, key)| {
            let mut wishes = options(endpoint, "waits", key);
            wishes.acknowledgement = Acknowledgement::Durable;
            Member::open(&wishes).expect("an honest client is let in")
        });
    members.iter_mut().for_each(Member::assert_alive);
    let info = |venue: &Venue| {
        let object = running(venue.data());
        (object.at("logFailed").clone(), log(venue.data(), &["info"]).1)
    };
    let (has_failed, text) = info(&venue);
    assert!(has_failed == Json::Bool(false) && !text.contains("FAILED"), "{text}");
    let_write(&mut venue, Part::Engine, false);
    // The answers to these are held back, and never come.
    for member in &mut members {
        member.client.sender().send(&mut limit(Side::Buy, 10, 1)).expect("there is room");
    }
    let failed = |line: &str| line.starts_with("log failed");
    venue.part(Part::Engine).wait_for(0, "word of the failed log", failed);
    let (has_failed, text) = info(&venue);
    assert!(has_failed == Json::Bool(true) && text.contains("THE LOG HAS FAILED"), "{text}");
    // Its own limit keeps the engine from the disk, which has room and takes what the doctor tries it with.
    let (code, text) = doctor(venue.data());
    let is_told = |line: &str| line.starts_with("WRONG") && line.contains("THE LOG HAS FAILED");
    assert!(code == Some(FOUND_WRONG) && text.lines().any(is_told), "{text}");
    for member in &mut members {
        let refused = member.call(limit(Side::Buy, 10, 1)).map(|reply| reply.envelope);
        let reason = RejectReason::LogUnavailable;
        assert!(
            matches!(refused, Err(CallError::Rejected { reason: found, .. }) if found == reason),
            "{refused:?}"
        );
    }
    // Certain to have done nothing, so not -1007 when the deadline is over.
    let parameters = "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.01&price=20000";
    let (status, code, _) = trader.call("POST", "/api/v3/order", parameters).error();
    assert_eq!((status, code), (503, -1008));
    assert_eq!(trader.order("BTCUSDT", acknowledged).text_at("status"), "NEW", "reads go on");
    // Behind what was appended, which gets on disk with the next start only.
    let missing = trader.call("GET", "/api/v3/order", "symbol=BTCUSDT&orderId=999999").error();
    assert_eq!((missing.0, missing.1), (400, -2013));
    venue.kill9(Part::Engine);
    venue.start_engine();
    let takes_orders = || venue.a().call("POST", "/api/v3/order", parameters).status == 200;
    assert!(eventually(takes_orders), "its log takes nothing after the repair");
    let (code, text) = doctor(venue.data());
    assert!(code == Some(0) && !text.contains("THE LOG HAS FAILED"), "{text}");
    assert_eq!(trader.order("BTCUSDT", acknowledged).text_at("status"), "NEW");
}

/// Of a full disk the history is the first to find no room: the engine has made the log's ahead.
#[test]
fn an_adapter_whose_history_finds_no_room_goes_on_and_stores_it_later() {
    let mut venue = Venue::separate(&UNLIMITED);
    let mut trader = venue.a();
    let before = trader.limit("BTCUSDT", "BUY", "0.01", "20000").integer_at("orderId");
    let_write(&mut venue, Part::Adapter, false);
    let ended = trader.limit("BTCUSDT", "BUY", "0.01", "20000").integer_at("orderId");
    trader.call("DELETE", "/api/v3/order", &format!("symbol=BTCUSDT&orderId={ended}")).ok();
    let told = |line: &str| {
        line.contains("history")
            && line.contains("MiB are free there")
            && line.contains("tried again")
    };
    venue.part(Part::Adapter).wait_for(0, "word of the history", told);
    let status = |trader: &mut Trader| [before, ended].map(|id| status_of(trader, id));
    assert_eq!(status(&mut trader), ["NEW", "CANCELED"], "reads go on");
    assert!(venue.http().get("/status").ok().integer_at("historyBehind") > 0);
    let_write(&mut venue, Part::Adapter, true);
    assert!(eventually(|| venue.http().get("/status").ok().integer_at("historyBehind") == 0));
    venue.kill9(Part::Adapter);
    venue.start_adapter();
    assert_eq!(status(&mut venue.a()), ["NEW", "CANCELED"]);
}

fn status_of(trader: &mut Trader, id: i128) -> String {
    trader.order("BTCUSDT", id).text_at("status").to_owned()
}

#[test]
fn what_is_written_for_people_only_is_no_reason_not_to_start() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let data = folder.path().join("data");
    let files = ["engine.pid", "up.pid", "adapter.pid", "demo.env"];
    for name in files {
        fs::create_dir_all(data.join(name)).expect("the folder is ours");
    }
    // What is written there finds no room.
    symlink("/dev/full", data.join("lock")).expect("the folder is ours");
    let own = ["up", "--data", "data", "--http", "127.0.0.1:0"];
    let small = ["--set", "log.segment_mib=4", "--set", "log.window_mib=8"];
    let mut up = Process::start_in(folder.path(), &[own.as_slice(), &small].concat());
    up.wait_for(0, "ready line", |line| line.trim() == "ready");
    for name in files {
        let told = |line: &str| line.contains("cannot write") && line.contains(name);
        up.wait_for(0, name, told);
    }
    up.signal(Signal::INT);
    assert_eq!(up.wait_for_end().code(), Some(0), "{:?}", up.lines());
}

#[test]
fn a_socket_that_cannot_be_made_is_named() {
    let mut venue = Venue::up(&[]);
    assert!(venue.stop_up(Signal::TERM).success());
    let socket = venue.data().join("engine.sock");
    fs::create_dir(&socket).expect("the folder is ours");
    venue.begin_engine();
    let engine = venue.part(Part::Engine);
    assert_eq!(engine.wait_for_end().code(), Some(1));
    let lines = engine.lines();
    let named = |line: &String| line.contains(socket.to_str().expect("a plain name"));
    assert!(lines.iter().any(named), "{lines:?}");
    fs::remove_dir(&socket).expect("the folder is ours");
    venue.start_engine();
}
