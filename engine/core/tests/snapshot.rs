//! A venue that was written and read again is the venue that it was: it goes on as if nothing had been,
//! command by command, against the naive model and against a venue that was never written. And bytes
//! that are not what was written are refused, or are a sound venue all the same.
//!
//! `TOUCHLINE_COMMANDS` and `TOUCHLINE_SEED`: as for the model's own test.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "the model is another test's; this one uses a part of it")]

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

#[path = "snapshot/altered.rs"]
mod altered;
#[path = "snapshot/at_once.rs"]
mod at_once;
#[path = "snapshot/crowded.rs"]
mod crowded;
#[path = "snapshot/executed.rs"]
mod executed;
#[path = "snapshot/fixture.rs"]
mod fixture;
#[path = "snapshot/hostile.rs"]
mod hostile;
#[path = "snapshot/large.rs"]
mod large;
#[path = "snapshot/open.rs"]
mod open;
#[path = "snapshot/parts.rs"]
mod parts;
#[path = "snapshot/pending.rs"]
mod pending;
#[path = "snapshot/rules_up.rs"]
mod rules_up;
#[path = "snapshot/runs.rs"]
mod runs;
#[path = "snapshot/taking.rs"]
mod taking;
#[path = "snapshot/twins.rs"]
mod twins;
#[path = "snapshot/under_way.rs"]
mod under_way;
#[path = "snapshot/within_list.rs"]
mod within_list;
