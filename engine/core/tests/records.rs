//! Records against a naive model of their own, in examples, and out of snapshots that somebody forged.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "snapshot/parts.rs"]
mod parts;
#[path = "support/venue.rs"]
mod venue;

#[path = "records/any_writes.rs"]
mod any_writes;
#[path = "records/examples.rs"]
mod examples;
#[path = "records/forged.rs"]
mod forged;
#[path = "records/model.rs"]
mod model;

use touchline_protocol::message::command::*;
use touchline_protocol::message::with_bytes::RecordWrite;
use venue::Venue;

/// A venue with room for so many records and blocks, and for nothing else but sessions.
fn venue_with(records: u32, blocks: u32) -> Venue {
    let mut venue = Venue::new();
    venue.set_rules();
    venue.must(&SetRules { rules: 2, ..Default::default() });
    venue.set_limits(Limits { sessions: 8, ..touchline_core::limits::MINIMA });
    venue.must(&SetRecordLimits { records, blocks, ..Default::default() });
    venue
}

/// The words of a put.
fn put(put: PutRecord, content: &[u8]) -> Vec<u64> {
    let write = RecordWrite::new(put, content).expect("a short content");
    venue::aligned(write.as_bytes())
}
