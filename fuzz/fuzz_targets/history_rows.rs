//! A saved state with rows changed by an accident, to a start and to what comes behind it.

#![no_main]

#[path = "../../adapter/tests/fuzz/history_rows.rs"]
mod history_rows;

use std::sync::LazyLock;

static BASE: LazyLock<history_rows::Base> = LazyLock::new(history_rows::Base::new);

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    BASE.read(input);
});
