//! Crowds at the door: more connections than there are descriptors, and more handshakes than may be
//! under way. Who is in goes on, and who comes honestly gets in.

use super::binary::{KEY_A, KEY_B};
use super::http::connect as connect_http;
use super::process::eventually;
use super::raw_session::{CHALLENGE, REFUSED, message, proof, read_message, template};
use super::stream_client::{Member, RawStream, options, over_epoll, send, tcp, venue};
use super::venue::{Part, Venue};
use crate::patience::in_a_few_tries;
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use std::{fs, thread};
use touchline_protocol::client::Endpoint;

/// A limit that leaves the engine so many descriptors.
fn limit_for(engine: u32, free: usize) -> u64 {
    let open = fs::read_dir(format!("/proc/{engine}/fd")).expect("the engine lives");
    let number = |entry: std::io::Result<fs::DirEntry>| {
        let name = entry.expect("the engine lives").file_name();
        name.to_str().and_then(|name| name.parse().ok()).expect("a number")
    };
    let open: BTreeSet<u64> = open.map(number).collect();
    (0..).filter(|number| !open.contains(number)).nth(free).expect("numbers do not end")
}

/// How often a thread of the engine has gone to sleep.
fn sleeps(engine: u32, thread: &str) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{engine}/task")).expect("the engine lives");
    let tasks = tasks.map(|task| task.expect("the engine lives").path());
    let is_it = |comm: String| comm.trim_end() == thread;
    let task = tasks
        .into_iter()
        .find(|task| fs::read_to_string(task.join("comm")).is_ok_and(is_it))
        .expect("it has such a thread");
    let status = fs::read_to_string(task.join("status")).expect("the engine lives");
    let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches:"));
    let count = line.and_then(|line| line.split_whitespace().nth(1)).expect("the kernel says it");
    count.parse().expect("a number")
}

#[test]
fn without_descriptors_who_is_in_is_served_and_the_door_waits() {
    let mut venue = venue(&[]);
    let (a, b) = (venue.key_a(), venue.key_b());
    let engine = venue.pid("engine").expect("it says its id");
    let few = limit_for(engine, 24);
    // An accept that is under way keeps the limit that it began with, so that is the next engine's.
    let limit = Rlimit { current: Some(few), maximum: Some(few) };
    let supervisor = venue.supervisor().pid().try_into().expect("a process id");
    prlimit(Pid::from_raw(supervisor), Resource::Nofile, limit).expect("its user may lower it");
    venue.kill9(Part::Engine);
    venue.wait_until_engine_answers();
    let engine = venue.pid("engine").expect("it was started again");
    let mut honest = Member::connect(tcp(&venue), "honest", (KEY_B, &b));
    honest.assert_alive();
    // The kernel completes these; the door can accept some of them.
    let crowd: Vec<TcpStream> = (0..60).map(|_| RawStream::dial(&tcp(&venue))).collect();
    let says_so = |line: &String| line.contains("cannot accept a connection");
    assert!(eventually(|| venue.supervisor().lines().iter().any(says_so)), "all are accepted");
    for _ in 0..10 {
        honest.assert_alive();
    }
    let before = sleeps(engine, "door");
    assert!(eventually(|| sleeps(engine, "door") > before + 10), "the door does not sleep");
    drop(crowd);
    let late = options(tcp(&venue), "late", (KEY_A, &a));
    assert!(eventually(|| Member::open(&late).is_ok()), "there is room again");
    honest.assert_alive();
}

/// The front that may_minihttp is has no such words: the README says so.
#[test]
fn an_adapter_without_descriptors_says_so_now_and_then_and_serves_who_waited() {
    let mut venue = Venue::separate(&["--set", "adapter.front=hyper"]);
    let adapter = Pid::from_raw(venue.part(Part::Adapter).pid().try_into().expect("a process id"));
    let set = |limit| prlimit(adapter, Resource::Nofile, limit).expect("it is this user's");
    let before = set(Rlimit { current: Some(0), maximum: getrlimit(Resource::Nofile).maximum });
    let begin = Instant::now();
    // The kernel completes it.
    let mut waits = connect_http(venue.address()).expect("the adapter listens");
    let says_so = |line: &String| {
        line.contains("adapter: cannot accept a connection") && line.contains("os error 24")
    };
    assert!(eventually(|| venue.part(Part::Adapter).lines().iter().any(says_so)), "not told");
    // It is tried far more often meanwhile.
    thread::sleep(Duration::from_secs(1));
    let told = venue.part(Part::Adapter).lines().iter().filter(|line| says_so(line)).count();
    assert!(told as u64 <= 1 + begin.elapsed().as_secs() / 10, "told {told} times");
    set(before);
    waits.write_all(b"GET /api/v3/ping HTTP/1.1\r\nHost: h\r\n\r\n").expect("it is open");
    let mut answer = [0; 12];
    waits.read_exact(&mut answer).expect("it is answered");
    assert_eq!(&answer, b"HTTP/1.1 200");
}

/// Dials from another address of this machine.
fn dial_from(host: Ipv4Addr, endpoint: &Endpoint) -> TcpStream {
    let Endpoint::Tcp(address) = endpoint else { panic!("{endpoint}") };
    let near = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    bind(&near, &SocketAddr::from((host, 0))).expect("an address of this machine");
    connect(&near, address).expect("the gateway listens");
    near.into()
}

/// True if a handshake that is half done outlives a crowd of another address.
fn outlives_a_crowd(venue: &Venue) -> bool {
    let (a, b) = (venue.key_a(), venue.key_b());
    let endpoint = tcp(venue);
    let mut slow = dial_from(Ipv4Addr::new(127, 0, 0, 2), &endpoint);
    let hello = RawStream::hello(KEY_A, "slow", 60);
    send(&mut slow, &hello, hello.len());
    let challenge = read_message(&mut slow).expect("a challenge");
    assert_eq!(template(&challenge), CHALLENGE);
    let crowd: Vec<TcpStream> = (0..300).map(|_| RawStream::dial(&endpoint)).collect();
    // Who comes behind the crowd, from the same address even, is served.
    Member::connect(endpoint, "quick", (KEY_B, &b)).assert_alive();
    let proof = message(302, &proof(&a, &challenge[8..40], &hello));
    send(&mut slow, &proof, proof.len());
    let is_welcome = read_message(&mut slow).is_some_and(|answer| template(&answer) == 303);
    drop(crowd);
    is_welcome
}

#[test]
fn a_crowd_that_only_knocks_keeps_out_nobody_from_elsewhere() {
    let venue = venue(&[]);
    // A handshake may take 5 s; on a busy machine the crowd alone may take longer.
    assert!(in_a_few_tries(|| outlives_a_crowd(&venue)));
}

#[test]
fn who_only_knocks_wakes_the_door_and_not_who_carries_orders() {
    let venue = venue(&[]);
    let engine = venue.pid("engine").expect("it says its id");
    let threads = ["door", "gateway"];
    let before = threads.map(|thread| sleeps(engine, thread));
    for _ in 0..2000 {
        let mut socket = RawStream::dial(&tcp(&venue));
        send(&mut socket, &[0xa5; 64], 64);
        let answer = read_message(&mut socket).expect("a refusal");
        assert_eq!(template(&answer), REFUSED);
    }
    let after = threads.map(|thread| sleeps(engine, thread));
    let [door, gateway] = [0, 1].map(|thread| after[thread] - before[thread]);
    // The door finds the next knock without a sleep often enough; the gateway has a few sleeps of its own.
    assert!(gateway < 20 && gateway < door, "the door slept {door} times, the gateway {gateway}");
}

over_epoll!(
    without_descriptors_who_is_in_is_served_and_the_door_waits,
    who_only_knocks_wakes_the_door_and_not_who_carries_orders,
    a_crowd_that_only_knocks_keeps_out_nobody_from_elsewhere,
);
