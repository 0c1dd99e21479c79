//! Bytes over a stream, in pieces, to the buffer that makes frames of them.

#![no_main]

#[path = "../../protocol/tests/fuzz/framing.rs"]
mod framing;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    framing::read(input);
});
