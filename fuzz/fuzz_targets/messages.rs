//! Bytes to the decoders of messages and of the handshake.

#![no_main]

#[path = "../../protocol/tests/fuzz/messages.rs"]
mod messages;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    messages::read(input);
});
