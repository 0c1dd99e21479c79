//! Lines on standard error for whoever runs the adapter.

pub(crate) use touchline_protocol::alert;
