//! Processes whose output nobody takes any more, as behind a pager that waits or in a terminal that was halted:
//! they serve on.

use super::definition::{administer, end_of};
use super::process::{eventually, send_signal};
use super::raw_session::dial;
use super::venue::{Part, Venue};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use rustix::process::Signal;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Write};
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

/// Starts `touchline`, waits for a line, and takes no more of its output; what is to be kept until it has ended.
fn start_stuck(arguments: &[String], ready: &str) -> (Child, impl Sized + use<>) {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
    fcntl_setpipe_size(&write, PIPE_BYTES).expect("a small one");
    let write = File::from(write);
    let output = || Stdio::from(write.try_clone().expect("a descriptor more"));
    let process = Command::new(env!("CARGO_BIN_EXE_touchline"))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(output())
        .stderr(output())
        .spawn()
        .expect("the built executable starts");
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
