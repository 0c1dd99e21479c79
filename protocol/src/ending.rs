//! The signals that end a process that serves, as it should: with what it has in hand answered and its log
//! closed. Called at the start of the engine, the adapter and their supervisor.

use nix::sys::signal::{SigSet, Signal};
use std::fs;
use std::io;

/// The third says that the terminal is gone.
const ENDING: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// Their numbers: SIGINT, SIGTERM, and SIGHUP, which says that the terminal is gone; not that one where the
/// process was started to outlive its terminal, as by `nohup`.
#[must_use]
pub fn signals() -> Vec<i32> {
    // Where the system does not say so it is not ignored.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let is_meant = |signal: &Signal| *signal != Signal::SIGHUP || !ignores(&status, *signal);
    ENDING.into_iter().filter(is_meant).map(|signal| signal as i32).collect()
}

/// Has these signals come to this thread, and to those that it starts. Whoever blocks signals passes that on to what it
/// starts: a process that nobody can end otherwise than by SIGKILL, nor the kernel once its supervisor is gone.
///
/// # Errors
/// Nothing that is known.
pub fn unblock() -> io::Result<()> {
    Ok(SigSet::from_iter(ENDING).thread_unblock()?)
}

/// Whether a process of this status (proc(5): `SigIgn`, hexadecimal, bit 0 is signal 1) ignores a signal.
fn ignores(status: &str, signal: Signal) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal as i32 - 1) & 1 == 1)
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
        let all = SigSet::from_iter(ENDING.into_iter().chain([Signal::SIGUSR1]));
        all.thread_set_mask().unwrap();
        unblock().unwrap();
        assert_eq!(blocked(), [Signal::SIGUSR1]);
        assert_eq!(std::thread::spawn(blocked).join().unwrap(), [Signal::SIGUSR1]);
    }

    #[test]
    fn a_signal_is_ignored_where_its_bit_is_set() {
        let status =
            |mask: &str| format!("Name:\tengine\nSigBlk:\t0000000000000001\nSigIgn:\t{mask}\n");
        assert!(ignores(&status("0000000000000001"), Signal::SIGHUP));
        assert!(ignores(&status("0000000000004003"), Signal::SIGHUP));
        assert!(ignores(&status("0000000000004000"), Signal::SIGTERM));
        assert!(!ignores(&status("0000000000004002"), Signal::SIGHUP));
        assert!(!ignores(&status("no number"), Signal::SIGHUP));
        assert!(!ignores("", Signal::SIGHUP));
    }
}
