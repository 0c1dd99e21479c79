//! What is measured between two busy threads, and so refused on one core.

use crate::skipped::skipped;
use std::thread;

/// Whether this process may run on two cores; tells that the test is skipped if not.
#[track_caller]
pub(crate) fn has_second_core() -> bool {
    let has = thread::available_parallelism().is_ok_and(|cores| cores.get() > 1);
    if !has {
        skipped("second core");
    }
    has
}
