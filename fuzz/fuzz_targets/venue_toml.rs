//! Settings to the engine, and what they define to a venue.

#![no_main]

#[path = "../../engine/tests/fuzz/venue_toml.rs"]
mod venue_toml;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    venue_toml::read(input);
});
