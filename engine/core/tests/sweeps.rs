//! Commands that end many orders, by hand-made examples and against a naive count: what is swept and in
//! which order, how a sweep is divided into transactions, and what may not come between.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/venue.rs"]
mod venue;

#[path = "sweeps/any_sweep.rs"]
mod any_sweep;
#[path = "sweeps/connections.rs"]
mod connections;
#[path = "sweeps/examples.rs"]
mod examples;
#[path = "sweeps/kill.rs"]
mod kill;
#[path = "sweeps/lists.rs"]
mod lists;
#[path = "sweeps/many.rs"]
mod many;
#[path = "sweeps/rejects.rs"]
mod rejects;
#[path = "sweeps/stored.rs"]
mod stored;
#[path = "sweeps/world.rs"]
mod world;
