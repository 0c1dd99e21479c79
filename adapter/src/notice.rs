//! Lines on standard error for whoever runs the adapter. A closed output is no reason to end, so a
//! line that cannot be written is dropped (the standard macro would panic).

/// Writes a line to standard error.
macro_rules! alert {
    ($($argument:tt)*) => {{
        use std::io::Write as _;
        let _unheard = writeln!(std::io::stderr(), $($argument)*);
    }};
}

pub(crate) use alert;
