//! Lines for whoever runs the engine: on standard output what belongs to its life, on standard error
//! what went wrong.

pub(crate) use touchline_protocol::{alert, say};
