//! Which cores threads run on. Called when an engine starts whose duty thread has a core of its own, and
//! by the benchmark that measures as such an engine runs.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Keeps the calling thread, and those that it starts from now on, off `core`, if there is another for
/// them. A thread that spins on its core gives it up only at the scheduler's tick, milliseconds later: for
/// so long nothing would become durable if the keeper was woken there. Gives the cores as they were.
///
/// # Errors
/// As the system says.
pub fn keep_off(core: usize) -> io::Result<CpuSet> {
    let before = sched_getaffinity(None)?;
    let mut others = before;
    if core < CpuSet::MAX_CPU {
        others.unset(core);
    }
    if others.count() > 0 && others != before {
        sched_setaffinity(None, &others)?;
    }
    Ok(before)
}

/// Pins the calling thread to `core`; false, and it stays where it was, if there is no such core or the system
/// refuses.
#[must_use]
pub fn stay_on(core: usize) -> bool {
    // Beyond the set's end the call would panic.
    core < CpuSet::MAX_CPU && core_affinity::set_for_current(core_affinity::CoreId { id: core })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_that_no_machine_has_is_told_and_nothing_else() {
        let before = sched_getaffinity(None).unwrap();
        for core in [CpuSet::MAX_CPU, usize::MAX] {
            assert!(!stay_on(core), "{core}");
        }
        assert_eq!(sched_getaffinity(None).unwrap(), before);
    }

    #[test]
    fn a_core_is_left_only_for_another_one() {
        let before = sched_getaffinity(None).unwrap();
        let first = (0..CpuSet::MAX_CPU).find(|&core| before.is_set(core)).unwrap();
        assert_eq!(keep_off(first).unwrap(), before);
        let after = sched_getaffinity(None).unwrap();
        assert_eq!(after.is_set(first), before.count() == 1);
        assert_eq!(after.count(), before.count().max(2) - 1);
        let inherited = std::thread::spawn(|| sched_getaffinity(None).unwrap()).join().unwrap();
        assert_eq!(inherited, after);
        // Now each of the others is left, and of the last one the thread stays.
        for core in 0..CpuSet::MAX_CPU {
            keep_off(core).unwrap();
        }
        assert_eq!(sched_getaffinity(None).unwrap().count(), 1);
        keep_off(usize::MAX).unwrap();
        sched_setaffinity(None, &before).unwrap();
    }
}
