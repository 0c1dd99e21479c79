//! Folders in shared memory for what tests have the bench write. A container has little of it unless it is given more.
//! Part of the test executables that call it.
#![allow(dead_code, reason = "no test executable uses all of it")]

use std::path::Path;

use tempfile::TempDir;
use touchline_engine::host::free_bytes;
use touchline_protocol::log::place::SHARED_MEMORY;

use crate::skipped::skipped;

/// What any of these tests takes there, bytes: logs and windows of several engines, a store of a million rows.
const ENOUGH: u64 = 1 << 30;

fn has_room() -> bool {
    free_bytes(Path::new(SHARED_MEMORY)).is_ok_and(|free| free >= ENOUGH)
}

/// One there, for a test that is of what lies in memory, or needs much of it; where there is too little the test is
/// skipped, unless nothing may be.
pub(crate) fn folder() -> Option<TempDir> {
    if is_there() { Some(made()) } else { None }
}

/// Whether there is enough of it; if not, that is told as what a test is skipped for.
pub(crate) fn is_there() -> bool {
    let is_there = has_room();
    if !is_there {
        skipped(format_args!("{} MiB in {SHARED_MEMORY}", ENOUGH >> 20));
    }
    is_there
}

/// One there if there is room, which is quick, or else where temporary folders are; and whether it is in memory.
pub(crate) fn or_on_disk() -> (TempDir, bool) {
    if has_room() {
        return (made(), true);
    }
    (tempfile::tempdir().expect("there is a place for temporary folders"), false)
}

fn made() -> TempDir {
    tempfile::tempdir_in(SHARED_MEMORY).expect("there is room")
}
