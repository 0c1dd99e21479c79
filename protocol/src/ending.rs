//! The signals that end a process that serves, as it should: with what it has in hand answered and its log
//! closed. Called at the start of the engine, the adapter and their supervisor.

use nix::sys::signal::{self, SigSet};
use rustix::process::Signal;
use std::fs;
use std::io;

/// Their numbers: SIGINT, SIGTERM, and SIGHUP, which says that the terminal is gone; not that one where the
/// process was started to outlive its terminal, as by `nohup`.
#[must_use]
pub fn signals() -> Vec<i32> {
    let mut signals = vec![Signal::INT, Signal::TERM];
    // Where the system does not say so it is not ignored.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    if !ignores(&status, Signal::HUP) {
        signals.push(Signal::HUP);
    }
    signals.into_iter().map(Signal::as_raw).collect()
}

/// Has these signals come to this thread, and to those that it starts. Whoever blocks signals passes that on to what it
/// starts: a process that nobody can end otherwise than by SIGKILL, nor the kernel once its supervisor is gone.
///
/// # Errors
/// Nothing that is known.
pub fn unblock() -> io::Result<()> {
    let mut ending = SigSet::empty();
    ending.extend([signal::SIGINT, signal::SIGTERM, signal::SIGHUP]);
    Ok(ending.thread_unblock()?)
}

/// Whether a process of this status (proc(5): `SigIgn`, hexadecimal, bit 0 is signal 1) ignores a signal.
fn ignores(status: &str, signal: Signal) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal.as_raw() - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_blocked_comes_again_and_nothing_else() {
        let blocked = || {
            let set = SigSet::thread_get_mask().unwrap();
            set.iter().collect::<Vec<_>>()
        };
        let mut all = SigSet::empty();
        all.extend([signal::SIGINT, signal::SIGTERM, signal::SIGHUP, signal::SIGUSR1]);
        all.thread_set_mask().unwrap();
        unblock().unwrap();
        assert_eq!(blocked(), [signal::SIGUSR1]);
        assert_eq!(std::thread::spawn(blocked).join().unwrap(), [signal::SIGUSR1]);
    }

    #[test]
    fn a_signal_is_ignored_where_its_bit_is_set() {
        let status =
            |mask: &str| format!("Name:\tengine\nSigBlk:\t0000000000000001\nSigIgn:\t{mask}\n");
        assert!(ignores(&status("0000000000000001"), Signal::HUP));
        assert!(ignores(&status("0000000000004003"), Signal::HUP));
        assert!(ignores(&status("0000000000004000"), Signal::TERM));
        assert!(!ignores(&status("0000000000004002"), Signal::HUP));
        assert!(!ignores(&status("no number"), Signal::HUP));
        assert!(!ignores("", Signal::HUP));
    }
}
