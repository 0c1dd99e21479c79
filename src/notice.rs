//! Lines for whoever runs the executable: on standard output what belongs to its life, on standard error
//! what went wrong. A closed output is no reason to end, so a line that cannot be written is dropped
//! (the standard macros would panic); a command that is there to tell something asks at its end whether one was.

use std::io::{self, ErrorKind};
use std::sync::OnceLock;

/// What kept the first line from standard output.
static UNWRITTEN: OnceLock<io::Error> = OnceLock::new();

/// Notes how a line came out. Who closes a pipe has heard enough: that is nobody's loss.
pub(crate) fn note(written: io::Result<()>) {
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
    {
        let _only_the_first = UNWRITTEN.set(error);
    }
}

/// Why standard output lacks a line, if it does.
pub(crate) fn unwritten() -> Option<&'static io::Error> {
    UNWRITTEN.get()
}

/// Writes a line to standard output.
macro_rules! say {
    ($($argument:tt)*) => {{
        use std::io::Write as _;
        crate::notice::note(writeln!(std::io::stdout(), $($argument)*));
    }};
}

/// Writes a line to standard error.
macro_rules! alert {
    ($($argument:tt)*) => {{
        use std::io::Write as _;
        let _unheard = writeln!(std::io::stderr(), $($argument)*);
    }};
}

pub(crate) use {alert, say};

/// The same for what runs on, and must not wait for whoever reads.
pub(crate) mod supervisor {
    pub(crate) use touchline_protocol::{alert, say};
}
