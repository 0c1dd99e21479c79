//! What is measured between two busy threads, and so refused on one core.

use crate::skipped::skipped;
use rustix::thread::sched_getaffinity;

/// Whether this process may run on two cores, as the executable counts them; tells that the test is skipped if not.
#[track_caller]
pub(crate) fn has_second_core() -> bool {
    let has = sched_getaffinity(None).is_ok_and(|cores| cores.count() > 1);
    if !has {
        skipped("second core");
    }
    has
}
