//! The public feed of an engine that must not be believed, to its reader.

#![no_main]

#[path = "../../protocol/tests/fuzz/feed.rs"]
mod feed;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    feed::read(input);
});
