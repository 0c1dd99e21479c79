//! Bytes as the snapshot of a venue.

#![no_main]

#[path = "../../engine/core/tests/fuzz/commands.rs"]
#[expect(dead_code, reason = "the target core_commands plays commands to their end")]
mod commands;
#[path = "../../engine/core/tests/fuzz/snapshot.rs"]
mod snapshot;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    snapshot::read(input);
});
