//! Processes whose output nobody takes any more, as behind a pager that waits or in a terminal that was halted:
//! they serve on.

use super::definition::{administer, end_of};
use super::http::Http;
use super::process::{eventually, send_signal};
use super::raw_session::dial;
use super::venue::{Part, Venue};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use rustix::process::Signal;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

/// The least that the system makes a pipe of.
const PIPE_BYTES: usize = 4096;

/// Fills a pipe, so that whoever writes has to wait.
fn fill(mut pipe: &File) {
    rustix::io::ioctl_fionbio(pipe, true).expect("a pipe can do without waiting");
    loop {
        match pipe.write(b"\n") {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("a pipe that is read: {error}"),
        }
    }
    rustix::io::ioctl_fionbio(pipe, false).expect("a pipe can wait");
}

/// Where a process of IPv4 listens, whose own word of it nobody reads (proc(5): the tables of sockets).
fn listens_at(process: u32) -> Option<SocketAddr> {
    let open = fs::read_dir(format!("/proc/{process}/fd")).ok()?;
    let open = open.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    let open: Vec<_> = open.map(|target| target.to_string_lossy().into_owned()).collect();
    let sockets = fs::read_to_string(format!("/proc/{process}/net/tcp")).ok()?;
    sockets.lines().find_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
        let is_own = *state == "0A" && open.contains(&format!("socket:[{inode}]"));
        let port = u16::from_str_radix(local.rsplit_once(':')?.1, 16).ok()?;
        is_own.then(|| SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    })
}

fn small_pipe() -> (OwnedFd, File) {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
    fcntl_setpipe_size(&write, PIPE_BYTES).expect("a small one");
    (read, File::from(write))
}

/// Starts `touchline`, whose output goes there.
fn start(arguments: &[String], write: &File) -> Child {
    let output = || Stdio::from(write.try_clone().expect("a descriptor more"));
    Command::new(env!("CARGO_BIN_EXE_touchline"))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(output())
        .stderr(output())
        .spawn()
        .expect("the built executable starts")
}

/// Starts `touchline`, waits for a line, and takes no more of its output; what is to be kept until it has ended.
fn start_stuck(arguments: &[String], ready: &str) -> (Child, impl Sized + use<>) {
    let (read, write) = small_pipe();
    let process = start(arguments, &write);
    let mut lines = BufReader::new(File::from(read)).lines();
    let found = lines.find(|line| line.as_ref().is_ok_and(|line| line.starts_with(ready)));
    assert!(found.is_some(), "it is never ready");
    fill(&write);
    (process, (lines, write))
}

#[test]
fn a_supervisor_whose_output_stands_still_restarts_what_dies_and_ends_when_it_is_told_to() {
    let mut venue = Venue::up(&[]);
    assert_eq!(venue.stop_up(Signal::TERM).code(), Some(0));
    let (mut up, _pipe) = start_stuck(&venue.arguments("up", true), "ready");
    let before = ["engine", "adapter"].map(|name| venue.pid(name).expect("it runs"));
    venue.kill9(Part::Engine);
    venue.kill9(Part::Adapter);
    for (name, before) in ["engine", "adapter"].into_iter().zip(before) {
        let is_back = || venue.pid(name).is_some_and(|pid| pid != before);
        assert!(eventually(is_back), "{name} is not restarted");
    }
    send_signal(up.id(), Signal::TERM);
    assert_eq!(end_of(&mut up).code(), Some(0));
}

#[test]
fn an_engine_whose_output_stands_still_serves_and_ends_when_it_is_told_to() {
    let mut venue = Venue::up(&[]);
    assert_eq!(venue.stop_up(Signal::TERM).code(), Some(0));
    let (mut engine, _pipe) = start_stuck(&venue.arguments("engine", false), "engine ready");
    // What it says about this nobody takes.
    for _ in 0..3 {
        let mut stream = dial(&venue.data().join("engine.sock"));
        stream.write_all(&[0xff; 256]).expect("the engine reads");
    }
    assert!(administer(venue.data()), "the engine does not serve");
    send_signal(engine.id(), Signal::TERM);
    assert_eq!(end_of(&mut engine).code(), Some(0));
}

#[test]
fn an_adapter_whose_output_stands_still_from_the_beginning_serves_and_ends_when_it_is_told_to() {
    let mut venue = Venue::up(&[]);
    assert_eq!(venue.stop_up(Signal::TERM).code(), Some(0));
    venue.start_engine();
    let (_read, write) = small_pipe();
    fill(&write);
    let mut adapter = start(&venue.arguments("adapter", true), &write);
    let serves = || {
        let status = listens_at(adapter.id()).map(|address| Http::new(address).get("/status").body);
        status.is_some_and(|status| status.contains(r#""engineConnected":true"#))
    };
    assert!(eventually(serves), "the adapter does not serve");
    send_signal(adapter.id(), Signal::TERM);
    assert_eq!(end_of(&mut adapter).code(), Some(0));
}
