//! A damaged log to its reader.

#![no_main]

#[path = "../../protocol/tests/fuzz/log_frames.rs"]
mod log_frames;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    log_frames::read(input);
});
