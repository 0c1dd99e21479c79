//! What a process has used and what it has open, as the kernel counts it, and waiting until it has done what it was
//! given to do; how many files this one may open. Called by [`super`] and [`crate::jobs`].

use std::fs;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::interrupt;

/// Files that this process needs beside its connections.
const OTHER_FILES: u64 = 256;

/// CPU time of all living threads of a process, ns.
pub(crate) fn cpu_ns(pid: u32) -> Result<u64> {
    scheduled_ns(pid, 1)
}

/// The first `fields` of each living thread's times, added up, ns: the time on a core, and that of waiting for one.
fn scheduled_ns(pid: u32, fields: usize) -> Result<u64> {
    let folder = format!("/proc/{pid}/task");
    let mut total = 0;
    for thread in fs::read_dir(&folder).with_context(|| folder.clone())? {
        match fs::read_to_string(thread?.path().join("schedstat")) {
            Ok(text) => {
                let mut times = text.split_whitespace();
                for _ in 0..fields {
                    total +=
                        times.next().context("schedstat")?.parse::<u64>().context("schedstat")?;
                }
            }
            // A thread that has just ended.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).context(folder),
        }
    }
    Ok(total)
}

/// A process is at rest whose threads have a core, or wait for one, for less than a quarter of so long.
const STILL: Duration = Duration::from_millis(100);

/// Pause between two looks at what a process has open.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Waits until a process has done what it was given to do.
///
/// # Errors
/// If there is no such process, or it is still at work after `limit`.
pub(crate) fn settle(pid: u32, limit: Duration) -> Result<()> {
    let begin = Instant::now();
    loop {
        let (since, before) = (Instant::now(), scheduled_ns(pid, 2)?);
        thread::sleep(STILL);
        // What a thread has used that ends is not in the sum any more.
        let taken = scheduled_ns(pid, 2)?.checked_sub(before).map(Duration::from_nanos);
        if taken.is_some_and(|taken| taken < since.elapsed() / 4) {
            return Ok(());
        }
        ensure!(
            begin.elapsed() < limit,
            "process {pid} is still at work after {limit:?}: it has, or waits for, a quarter of a core or more"
        );
        interrupt::check()?;
    }
}

/// Sockets that a process has open.
pub(crate) fn sockets(pid: u32) -> Result<usize> {
    let folder = format!("/proc/{pid}/fd");
    let files = fs::read_dir(&folder).with_context(|| folder.clone())?;
    // A file that has just been closed is no socket.
    let targets = files.flatten().filter_map(|file| fs::read_link(file.path()).ok());
    Ok(targets
        .filter(|target| target.as_os_str().as_encoded_bytes().starts_with(b"socket:"))
        .count())
}

/// Waits until a process has so many sockets open.
///
/// # Errors
/// If there is no such process, or it has fewer after `limit`.
pub(crate) fn wait_for_sockets(pid: u32, wanted: usize, limit: Duration) -> Result<()> {
    let begin = Instant::now();
    loop {
        let open = sockets(pid)?;
        if open >= wanted {
            return Ok(());
        }
        ensure!(
            begin.elapsed() < limit,
            "process {pid} has {open} sockets open after {limit:?}, and was to have {wanted}"
        );
        interrupt::check()?;
        thread::sleep(LOOK_AGAIN);
    }
}

/// Resident memory of a process, bytes.
pub(crate) fn resident_bytes(pid: u32) -> Result<u64> {
    status_bytes(pid, "VmRSS:")
}

/// Resident memory of a process without files and what it shares with others, bytes.
pub(crate) fn own_bytes(pid: u32) -> Result<u64> {
    status_bytes(pid, "RssAnon:")
}

fn status_bytes(pid: u32, field: &str) -> Result<u64> {
    let file = format!("/proc/{pid}/status");
    let text = fs::read_to_string(&file).with_context(|| file.clone())?;
    let kibibytes = text.lines().find_map(|line| line.strip_prefix(field));
    Ok(kibibytes.and_then(first_number).context(file)? * 1024)
}

fn first_number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

/// Raises the number of files that this process and its children may open, if it is too low.
pub(crate) fn allow_open_files(connections: usize) -> Result<()> {
    let needed = connections as u64 + OTHER_FILES;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let allowed = maximum.is_none_or(|maximum| maximum >= needed);
    ensure!(
        allowed,
        "{needed} open files are needed and {} are allowed: take fewer connections",
        maximum.unwrap_or_default()
    );
    Ok(setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is waited for comes sooner on the slowest machine.
    const PATIENCE: Duration = Duration::from_secs(120);

    #[test]
    fn a_process_is_waited_for_while_it_has_something_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let busy = folder.path().join("busy");
        fs::write(&busy, "").unwrap();
        let begun = folder.path().join("begun");
        let mut child = std::process::Command::new("sh")
            .args(["-c", ": > \"$1\"; while [ -e \"$0\" ]; do :; done; exec sleep 600"])
            .args([&busy, &begun])
            .spawn()
            .unwrap();
        let since = Instant::now();
        while !begun.exists() {
            assert!(since.elapsed() < PATIENCE, "it does not begin");
            thread::sleep(LOOK_AGAIN);
        }
        let at_work = settle(child.id(), Duration::from_millis(300));
        fs::remove_file(&busy).unwrap();
        let at_rest = settle(child.id(), PATIENCE);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(at_work.unwrap_err().to_string().contains("is still at work after 300ms"));
        at_rest.unwrap();
        assert!(settle(u32::MAX, PATIENCE).is_err());
    }

    #[test]
    fn sockets_are_waited_for() {
        let own = std::process::id();
        let _pair = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(sockets(own).unwrap() >= 2);
        wait_for_sockets(own, 2, PATIENCE).unwrap();
        let too_few = wait_for_sockets(own, usize::MAX, Duration::from_millis(1)).unwrap_err();
        assert!(too_few.to_string().contains("sockets open after 1ms"), "{too_few}");
        assert!(wait_for_sockets(u32::MAX, 0, PATIENCE).is_err());
    }

    #[test]
    fn the_own_process_has_used_something() {
        let own = std::process::id();
        let before = cpu_ns(own).unwrap();
        let mut sum = 0_u64;
        while cpu_ns(own).unwrap() < before + 1_000_000 {
            sum = (0..100_000).fold(sum, |sum, next| std::hint::black_box(sum ^ next));
        }
        assert!(resident_bytes(own).unwrap() > 100_000);
        assert!((1..=resident_bytes(own).unwrap()).contains(&own_bytes(own).unwrap()));
        assert!(cpu_ns(u32::MAX).is_err());
        assert!(resident_bytes(u32::MAX).is_err());
    }
}
