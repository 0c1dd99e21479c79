//! Ctrl-C, SIGTERM and the end of the terminal: noticed by whoever waits, so that every child process is ended and
//! every temporary folder removed on the way out. Called by every loop that can take long.

use std::fs;
use std::io;
use std::os::raw::c_int;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use thiserror::Error;

/// The run was interrupted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("interrupted")]
pub struct Interrupted;

fn flag() -> &'static Arc<AtomicBool> {
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    FLAG.get_or_init(Arc::default)
}

/// From now on the signals only raise a flag. One that whoever started this process had ignored stays so: `nohup` is
/// asked for by who wants the run to go on behind the terminal's end.
///
/// # Errors
/// If the system refuses the handlers.
pub fn watch() -> io::Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        if !is_ignored(signal) {
            signal_hook::flag::register(signal, Arc::clone(flag()))?;
        }
    }
    Ok(())
}

/// Whether the process ignores a signal, as its status in `/proc` says; false where there is none.
fn is_ignored(signal: c_int) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & 1 << (signal - 1) != 0
}

/// Whether a signal came.
#[must_use]
pub fn is_interrupted() -> bool {
    flag().load(Ordering::Relaxed)
}

/// An error once a signal came.
///
/// # Errors
/// [`Interrupted`].
pub fn check() -> Result<(), Interrupted> {
    if is_interrupted() { Err(Interrupted) } else { Ok(()) }
}
