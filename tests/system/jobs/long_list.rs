//! A list of a hundred thousand jobs: whole, in order, of one moment, and sent as its reader takes it, so that
//! readers who do not read cost the adapter next to nothing.

use super::*;
use crate::patience::Wait;
use crate::system::binary::socket;
use crate::system::http::{connect, read_response};
use crate::system::process::{LOOK_AGAIN, WATCHDOG, eventually};
use std::fs;
use std::io::{BufReader, Write};
use std::net::TcpStream;
use touchline_adapter::jobs::record::{JOB, Job, Status, read_id};
use touchline_adapter::views::records::RecordId;
use touchline_protocol::client::{
    Acknowledgement, Client as EngineClient, ClientOptions, SendError,
};
use touchline_protocol::message::command::PutRecord;
use touchline_protocol::message::decode::Event;
use touchline_protocol::message::enums::{Lane, Role};
use touchline_protocol::message::with_bytes::RecordWrite;
use touchline_protocol::text::Name;

/// Jobs of one user.
const MANY: u32 = 100_000;

/// Readers who take the beginning of the list and stop.
const STALLED: usize = 16;

/// What those may cost together, in bytes: a sixth of what a whole list for each would be.
const MEMORY_MAX: u64 = 64 << 20;

/// Room for all that.
const ROOM: [&str; 4] = ["--set", "limits.records=110000", "--set", "limits.record_blocks=220000"];

fn id_of(number: u32) -> RecordId {
    let mut id = [0xab; 12];
    id[8..].copy_from_slice(&number.to_le_bytes());
    id
}

/// Makes the jobs as the adapter does, through a session of its kind, many under way at once.
fn make_jobs(venue: &Venue, owner: RecordId) {
    let name = Name::new("many-jobs").expect("a short name");
    let mut options = ClientOptions::new(socket(venue), Role::Adapter, Lane::Cold, name);
    options.handshake_timeout = WATCHDOG;
    // Until it is on disk, the venue's adapter shows nothing of it.
    options.acknowledgement = Acknowledgement::Durable;
    let client = EngineClient::connect(&options).expect("the local user is let in");
    let (mut sender, mut receiver) = client.split();
    let (mut sent, mut answered) = (0, 0);
    let mut heard = Wait::begin();
    while answered < MANY {
        heard.go_on(format_args!("only {answered} jobs are made"));
        while sent < MANY {
            let company = format!("company {sent}");
            let job = Job { status: Status::Pending, company: &company, position: "clerk" };
            let put = PutRecord { kind: JOB, id: id_of(sent), owner, ..Default::default() };
            let mut write = RecordWrite::new(put, &job.encode()).expect("a short content");
            match sender.stage(&mut write) {
                Ok(_) => sent += 1,
                Err(SendError::Full) => break,
                Err(error) => panic!("{error}"),
            }
        }
        sender.publish();
        while let Some(reply) = receiver.poll().expect("the engine is there") {
            let event = reply.event.event().expect("a known event");
            assert!(matches!(event, Event::RecordPut(_)), "{event:?}");
            answered += 1;
            heard = Wait::begin();
        }
        receiver.wait(LOOK_AGAIN);
    }
}

/// Memory of a process without files and what it shares, in bytes.
fn own_memory(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()).expect("a number");
    kibibytes.parse::<u64>().expect("a number") * 1024
}

/// Asks for the list and waits for its first byte, which is not read.
fn stall(venue: &Venue, token: &str) -> TcpStream {
    let mut stream = connect(venue.address()).expect("the adapter listens");
    let request =
        format!("GET {JOBS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it is taken");
    let begins = loop {
        match stream.peek(&mut [0]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            begins => break begins,
        }
    };
    assert_eq!(begins.expect("the list begins"), 1);
    stream
}

#[test]
fn a_list_of_a_hundred_thousand_jobs_is_sent_as_it_is_read_and_nobody_waits_for_it() {
    let venue = Venue::up(&[&PATIENT[..], &ROOM[..]].concat());
    let mut ada = Client::registered(&venue, "Ada", "ada@example.org");
    let mut eve = Client::registered(&venue, "Eve", "eve@example.org");
    let made = ada.call("POST", JOBS, &job("the first", "clerk")).ok();
    let owner = read_id(made.at("job").text_at("createdBy")).expect("an id");
    make_jobs(&venue, owner);
    // The views may need longer for so many than a request waits.
    let first = format!("{JOBS}/{}", made.at("job").text_at("_id"));
    assert!(eventually(|| ada.call("GET", &first, "").status == 200), "the views do not follow");

    let whole = ada.call("GET", JOBS, "");
    assert_eq!(whole.header("transfer-encoding"), Some("chunked"));
    let list = whole.ok();
    assert_eq!(list.integer_at("count"), i128::from(MANY) + 1);
    let jobs = list.at("jobs").items();
    assert_eq!(jobs.len(), MANY as usize + 1);
    for (number, job) in (0..MANY).zip(&jobs[1..]) {
        assert_eq!(read_id(job.text_at("_id")), Some(id_of(number)));
        assert_eq!(job.text_at("company"), format!("company {number}"));
    }

    let adapter = venue.pid("adapter").expect("the adapter runs");
    let before = own_memory(adapter);
    let token = ada.token.clone().expect("it was registered");
    let mut stalled: Vec<_> = (0..STALLED).map(|_| stall(&venue, &token)).collect();
    // Others, and the same user, go on.
    assert_eq!(eve.list(), []);
    eve.create("ACME", "clerk");
    assert_eq!(eve.call("GET", "/api/v3/ping", "").status, 200);
    let path = |number: usize| format!("{JOBS}/{}", jobs[number].text_at("_id"));
    assert_eq!(ada.call("PATCH", &path(50_000), &job("changed", "chief")).status, 200);
    assert_eq!(ada.call("DELETE", &path(99_999), "").status, 200);
    let grown = own_memory(adapter).saturating_sub(before);
    assert!(grown < MEMORY_MAX, "{STALLED} lists of {} bytes took {grown} bytes", whole.body.len());

    let reader = stalled.pop().expect("there are some");
    drop(stalled);
    let (late, _) = read_response(&mut BufReader::new(reader)).expect("the rest comes");
    assert!(late.body == whole.body, "it shows the moment in which it was asked for");
    let now = ada.list();
    assert_eq!(now.len(), MANY as usize);
    assert_eq!(now[50_000].text_at("company"), "changed");
}
