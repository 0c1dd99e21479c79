//! Random commands against the naive model of the venue: after each of them the same events, balances,
//! books and sessions; afterwards everything ends, and a replay comes to the same bytes.
//!
//! `TOUCHLINE_COMMANDS=10000000 cargo test --release -p touchline-core --test model` runs longer;
//! `TOUCHLINE_SEED` repeats a run; `TOUCHLINE_CENSUS=1` prints what occurred how often.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/venue.rs"]
mod venue;

#[path = "model/cancels.rs"]
mod cancels;
#[path = "model/census.rs"]
mod census;
#[path = "model/compare.rs"]
mod compare;
#[path = "model/decide.rs"]
mod decide;
#[path = "model/definitions.rs"]
mod definitions;
#[path = "model/fields.rs"]
mod fields;
#[path = "model/found.rs"]
mod found;
#[path = "model/lists.rs"]
mod lists;
#[path = "model/matching.rs"]
mod matching;
#[path = "model/messages.rs"]
mod messages;
#[path = "model/place.rs"]
mod place;
#[path = "model/replace.rs"]
mod replace;
#[path = "model/room.rs"]
mod room;
#[path = "model/runs.rs"]
mod runs;
#[path = "model/sessions.rs"]
mod sessions;
#[path = "model/situations.rs"]
mod situations;
#[path = "model/state.rs"]
mod state;
#[path = "model/steps.rs"]
mod steps;
#[path = "model/stops.rs"]
mod stops;
#[path = "model/sweeps.rs"]
mod sweeps;
#[path = "model/world.rs"]
mod world;
