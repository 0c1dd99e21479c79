//! Ctrl-C, SIGTERM and the end of the terminal: noticed by whoever waits, so that every child process is ended and
//! every temporary folder removed on the way out. Called by every loop that can take long.

use std::io;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use thiserror::Error;
use touchline_protocol::ending;

/// The run was interrupted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("interrupted")]
pub struct Interrupted;

fn flag() -> &'static Arc<AtomicBool> {
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    FLAG.get_or_init(Arc::default)
}

/// From now on the signals that end a process ([`ending::signals`]) only raise a flag: as those that it measures, a
/// run goes on behind its terminal's end where it was started by `nohup`.
///
/// # Errors
/// If the system refuses the handlers.
pub fn watch() -> io::Result<()> {
    for signal in ending::signals() {
        signal_hook::flag::register(signal, Arc::clone(flag()))?;
    }
    Ok(())
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
