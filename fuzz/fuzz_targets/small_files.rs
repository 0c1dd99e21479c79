//! Any bytes as the small files of the data folder, and as what proxies say of whom they speak for.

#![no_main]

#[path = "../../adapter/tests/fuzz/small_files.rs"]
mod small_files;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    small_files::read(input);
});
