//! Lines for whoever runs the executable: on standard output what belongs to its life, on standard error
//! what went wrong. A closed output is no reason to end, so a line that cannot be written is dropped
//! (the standard macros would panic).

/// Writes a line to standard output.
macro_rules! say {
    ($($argument:tt)*) => {{
        use std::io::Write as _;
        let _unheard = writeln!(std::io::stdout(), $($argument)*);
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
