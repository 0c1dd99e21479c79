//! A thread to which the kernel refuses io_uring, with all that it starts, as most containers have it. Part of the test
//! executables that call it.

use std::collections::BTreeMap;
use std::env::consts::ARCH;
use std::panic::resume_unwind;
use std::thread;

use rustix::io::Errno;
use seccompiler::{BpfProgram, Error, SeccompAction, SeccompFilter, TargetArch, apply_filter};

use crate::skipped::skipped;

/// The call io_uring_setup(2), which has this number on every architecture.
const IO_URING_SETUP: i64 = 425;

/// Runs `test` there. Where no such filter can be made, it is skipped, unless nothing may be.
pub(crate) fn where_io_uring_is_refused(test: impl FnOnce() + Send) {
    let on_thread = || match filter().and_then(|filter| apply_filter(&filter)) {
        Ok(()) => test(),
        Err(error) => {
            skipped(format_args!("filter of system calls: {error}"));
        }
    };
    // The filter ends with its thread.
    let ended = thread::scope(|scope| scope.spawn(on_thread).join());
    if let Err(panic) = ended {
        resume_unwind(panic);
    }
}

fn filter() -> Result<BpfProgram, Error> {
    let refused = SeccompAction::Errno(Errno::PERM.raw_os_error().unsigned_abs());
    let calls = BTreeMap::from([(IO_URING_SETUP, Vec::new())]);
    let here = TargetArch::try_from(ARCH)?;
    let filter = SeccompFilter::new(calls, SeccompAction::Allow, refused, here)?;
    Ok(BpfProgram::try_from(filter)?)
}
