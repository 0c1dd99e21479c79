//! Lines on standard error for whoever runs the adapter. A closed output is no reason to end, nor one that stands
//! still a reason to wait, so a line that cannot be written is dropped (the standard macro would panic).

/// Writes a line to standard error.
macro_rules! alert {
    ($($argument:tt)*) => {{
        touchline_protocol::outlet::errors(format!($($argument)*) + "\n");
    }};
}

pub(crate) use alert;
