//! Tests that are skipped where what they need is absent, which must be seen where nothing may be skipped. Part of every
//! test executable that has such tests.

use std::env;
use std::fmt::Display;
use std::io::{self, Write};

/// Tells that a test is skipped for want of `what`, past what holds back the words of tests that pass: whoever runs the
/// tests is to see what was not tested.
///
/// # Panics
/// Where `TOUCHLINE_REQUIRE_ALL=1` says that no test may be.
#[track_caller]
pub(crate) fn skipped(what: impl Display) {
    let required = env::var_os("TOUCHLINE_REQUIRE_ALL").is_some_and(|value| value == "1");
    assert!(!required, "no {what}");
    let _nobody_reads = writeln!(io::stdout(), "skipped: no {what}");
}
