//! Requests, cut into pieces, to the gate in front of the HTTP server.

#![no_main]

#[path = "../../adapter/tests/fuzz/http_heads.rs"]
mod http_heads;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    http_heads::read(input);
});
