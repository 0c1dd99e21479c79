//! Bytes that become commands to a venue.

#![no_main]

#[path = "../../engine/core/tests/fuzz/commands.rs"]
mod commands;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    commands::play(input);
});
