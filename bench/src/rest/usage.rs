//! What a process has used, as the kernel counts it, and how many files this one may open. Called by
//! [`super`] and [`crate::jobs`].

use std::fs;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::interrupt;

/// Files that this process needs beside its connections.
const OTHER_FILES: u64 = 256;

/// CPU time of all living threads of a process, ns.
pub(crate) fn cpu_ns(pid: u32) -> Result<u64> {
    let folder = format!("/proc/{pid}/task");
    let mut total = 0;
    for thread in fs::read_dir(&folder).with_context(|| folder.clone())? {
        match fs::read_to_string(thread?.path().join("schedstat")) {
            Ok(text) => total += first_number(&text).context("schedstat")?,
            // A thread that has just ended.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).context(folder),
        }
    }
    Ok(total)
}

/// A process has nothing to speak of to do when it takes less than a quarter of a core for so long.
const STILL: Duration = Duration::from_millis(100);

/// For so long at the most is that waited for.
const SETTLING: Duration = Duration::from_secs(20);

/// Waits until a process has done what it was given to do.
///
/// # Errors
/// If there is no such process, or it is still at work after 20 s.
pub(crate) fn settle(pid: u32) -> Result<()> {
    let until = Instant::now() + SETTLING;
    loop {
        let (since, before) = (Instant::now(), cpu_ns(pid)?);
        thread::sleep(STILL);
        let taken = Duration::from_nanos(cpu_ns(pid)?.saturating_sub(before));
        if taken < since.elapsed() / 4 {
            return Ok(());
        }
        anyhow::ensure!(Instant::now() < until, "process {pid} does not come to rest");
        interrupt::check()?;
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
    anyhow::ensure!(
        allowed,
        "{needed} open files are needed and {} are allowed: take fewer connections",
        maximum.unwrap_or_default()
    );
    Ok(setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum })?)
}

#[cfg(test)]
mod tests {
    use super::*;

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
