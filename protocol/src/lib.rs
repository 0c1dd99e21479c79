//! Touchline's protocol: everything that its processes and its clients share, and nothing else.
//!
//! Units and exact decimals ([`units`], [`decimal`]), bounded texts ([`text`]) and the binary
//! messages ([`message`]). The engine's core depends on this crate alone.

pub mod decimal;
pub mod message;
pub mod text;
pub mod units;
