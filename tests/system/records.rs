//! Records through the real engine: written by an adapter's session, kept through kill -9, shown by the
//! tools.

use super::binary::socket;
use super::json::Json;
use super::log_tools::log;
use super::process::WATCHDOG;
use super::venue::{Part, Venue};
use rustix::process::Signal;
use touchline_protocol::client::{
    Acknowledgement, CallError, Client, ClientCommand, ClientOptions, Reply,
};
use touchline_protocol::message::command::{DeleteRecord, PutRecord};
use touchline_protocol::message::decode::Event;
use touchline_protocol::message::enums::{Lane, RejectReason, Role};
use touchline_protocol::message::with_bytes::RecordWrite;
use touchline_protocol::text::Name;

fn adapter(venue: &Venue, lane: Lane) -> Client {
    let name = Name::new(&format!("records-{lane:?}")).expect("a short name");
    let mut options = ClientOptions::new(socket(venue), Role::Adapter, lane, name);
    options.handshake_timeout = WATCHDOG;
    options.acknowledgement = Acknowledgement::Durable;
    Client::connect(&options).expect("the local user is let in")
}

fn put(id: u8, owner: u8, version: u32, content: &[u8]) -> RecordWrite {
    let (id, owner) = ([id; 12], [owner; 12]);
    RecordWrite::new(PutRecord { kind: 7, version, id, owner, ..Default::default() }, content)
        .expect("a short content")
}

fn call<C: ClientCommand>(client: &mut Client, mut command: C) -> Result<Reply, CallError> {
    client.call(&mut command, WATCHDOG)
}

/// The version that a put was answered with.
fn version(answer: Result<Reply, CallError>) -> u32 {
    match answer.expect("the put is accepted").event.event().expect("a known event") {
        Event::RecordPut(put) => put.version,
        other => panic!("{other:?}"),
    }
}

fn rejected(answer: Result<Reply, CallError>) -> (RejectReason, u32) {
    match answer {
        Err(CallError::Rejected { reason, detail }) => (reason, detail),
        other => panic!("{:?}", other.map(|reply| reply.envelope)),
    }
}

fn lines(venue: &Venue, arguments: &[&str]) -> Vec<Json> {
    let (code, output, errors) = log(venue.data(), arguments);
    assert_eq!(code, Some(0), "{errors}");
    output.lines().map(Json::parse).collect()
}

#[test]
fn records_survive_the_engine_and_the_tools_show_them() {
    let mut venue = Venue::separate(&[]);
    let mut cold = adapter(&venue, Lane::Cold);
    assert_eq!(version(call(&mut cold, put(1, 0, 0, "a \"user\"\n\u{1}ü".as_bytes()))), 1);
    assert_eq!(version(call(&mut cold, put(2, 1, 0, &[0xff, 0, 0x80]))), 1);
    assert_eq!(version(call(&mut cold, put(2, 1, 1, b""))), 2);
    let stale = rejected(call(&mut cold, put(2, 1, 1, b"late")));
    assert_eq!(stale, (RejectReason::RecordVersion, 2));

    venue.kill9(Part::Engine);
    venue.start_engine();
    let mut cold = adapter(&venue, Lane::Cold);
    let again = rejected(call(&mut cold, put(2, 1, 0, b"again")));
    assert_eq!(again, (RejectReason::RecordVersion, 2));
    let delete = |id, owner, version| DeleteRecord {
        kind: 7,
        version,
        id: [id; 12],
        owner: [owner; 12],
        ..Default::default()
    };
    let owner = rejected(call(&mut cold, delete(1, 0, 1)));
    assert_eq!(owner, (RejectReason::RecordInUse, 1));
    call(&mut cold, delete(2, 1, 2)).expect("nothing holds it");
    drop(cold);
    let mut hot = adapter(&venue, Lane::Hot);
    let hot = rejected(call(&mut hot, put(3, 0, 0, b"")));
    assert_eq!(hot.0, RejectReason::RoleNotPermitted);
    let engine = venue.part(Part::Engine);
    engine.signal(Signal::TERM);
    assert!(engine.wait_for_end().success());
    tools_show_them(&venue);
}

fn tools_show_them(venue: &Venue) {
    let all = lines(venue, &["dump"]);
    let of = |name: &str| -> Vec<&Json> {
        all.iter().filter(|line| line.at("command").text_at("message") == name).collect()
    };
    let puts = of("PutRecord");
    assert_eq!(puts.len(), 3);
    let first = puts[0].at("command");
    assert_eq!(first.text_at("id"), "010101010101010101010101");
    assert_eq!(first.at("content").text_at("utf8"), "a \"user\"\n\u{1}ü");
    assert_eq!(puts[1].at("command").at("content").text_at("hex"), "ff0080");
    assert_eq!(puts[1].at("command").text_at("owner"), "010101010101010101010101");
    let event = &puts[2].at("events").items()[0];
    assert_eq!((event.text_at("message"), event.integer_at("version")), ("RecordPut", 2));
    assert_eq!(of("DeleteRecord").len(), 1);
    let info = &lines(venue, &["info", "--json"])[0];
    assert_eq!(info.at("commands").integer_at("PutRecord"), 3);
    assert_eq!(info.at("commands").integer_at("DeleteRecord"), 1);
    let (code, text, errors) = log(venue.data(), &["verify"]);
    assert_eq!(code, Some(0), "{text}{errors}");
}
