//! No command is more than a transaction's work, whatever it sets off: aggressors over a hundred thousand
//! orders, stops that fire each other, cancels of thousands. Each transaction keeps to `max_steps`, all
//! of them together do the same for every `max_steps`, and a crash between any two of them changes
//! nothing.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "bounded_work/any_work.rs"]
mod any_work;
#[path = "bounded_work/cascades.rs"]
mod cascades;
#[path = "bounded_work/full.rs"]
mod full;
#[path = "bounded_work/largest.rs"]
mod largest;
#[path = "bounded_work/levels.rs"]
mod levels;
#[path = "bounded_work/mass.rs"]
mod mass;
#[path = "bounded_work/orders.rs"]
mod orders;
#[path = "bounded_work/sweeps.rs"]
mod sweeps;
#[path = "support/venue.rs"]
mod venue;
#[path = "bounded_work/work.rs"]
mod work;
