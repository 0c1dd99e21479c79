//! Lines for whoever runs the engine: on standard output what belongs to its life, on standard error
//! what went wrong. A closed output is no reason to end, nor one that stands still a reason to wait, so a line
//! that cannot be written is dropped (the standard macros would panic).

/// Writes a line to standard output.
macro_rules! say {
    ($($argument:tt)*) => {{
        touchline_protocol::outlet::output(format!($($argument)*) + "\n");
    }};
}

/// Writes a line to standard error.
macro_rules! alert {
    ($($argument:tt)*) => {{
        touchline_protocol::outlet::errors(format!($($argument)*) + "\n");
    }};
}

pub(crate) use {alert, say};
