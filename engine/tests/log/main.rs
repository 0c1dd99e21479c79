//! The log from end to end: appended by a writer, made durable by the keeper, followed by readers,
//! cut off by crashes of every kind, and opened again.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

mod crash;
mod damage;
mod ends;
mod failure;
mod gather;
#[path = "../support/keeper.rs"]
mod keeper;
mod leases;
mod left_window;
#[path = "../../../tests/support/patience.rs"]
mod patience;
mod places;
mod reader;
mod round_trip;
#[path = "../../../tests/support/skipped.rs"]
mod skipped;
#[path = "../../../tests/support/split_mix.rs"]
mod split_mix;
mod started_since;
mod support;
