//! Random clients and operators on three symbols over the same two assets, at scales where rounding or the ends of
//! `i64` matter: what the events say is all that happens, so that balances and open orders can be kept by them alone;
//! and how work is divided into transactions is not seen. Independent of the model, which has other sizes.
//!
//! `TOUCHLINE_CASES=1000 cargo test --release -p touchline-core --test ledger` runs longer; `TOUCHLINE_SEED` repeats
//! a case.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "ledger/acts.rs"]
mod acts;
#[path = "ledger/kept.rs"]
mod kept;
#[path = "ledger/orders.rs"]
mod orders;
#[path = "snapshot/parts.rs"]
#[allow(dead_code, reason = "each test uses its part")]
mod parts;
#[path = "ledger/runs.rs"]
mod runs;
#[path = "ledger/scales.rs"]
mod scales;
#[path = "../../../tests/support/split_mix.rs"]
mod split_mix;
#[path = "support/venue.rs"]
mod venue;
