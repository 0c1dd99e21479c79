//! Which core a measuring thread is on. Called by the measurements that compare two ways of doing a thing:
//! where threads are put must not differ between them.

use std::io::{self, Write};
use std::sync::Once;

use anyhow::{Context, Result, ensure};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use touchline_engine::cores::keep_off;

/// How many cores the calling thread may run on.
///
/// # Errors
/// If the system does not tell.
pub(crate) fn allowed() -> Result<u32> {
    Ok(sched_getaffinity(None)?.count())
}

/// Refuses to measure two busy threads where they would take turns on one core: what they took then would be the
/// scheduler's slices, and a ratio of such times says nothing.
///
/// # Errors
/// If there is one core only.
pub(crate) fn need_two() -> Result<()> {
    let allowed = allowed()?;
    ensure!(
        allowed >= 2,
        "this measures threads that run at the same time and needs 2 cores; this process may use {allowed}"
    );
    Ok(())
}

/// The calling thread stays on one core, or off one, until this is dropped.
pub(crate) struct Pinned(Option<CpuSet>);

impl Pinned {
    /// To one, if one is given.
    ///
    /// # Errors
    /// If there is no such core or the calling thread may not run there, which the system would allow it, and if the
    /// system refuses.
    pub(crate) fn to(core: Option<usize>) -> Result<Self> {
        let Some(core) = core else { return Ok(Self(None)) };
        let before = sched_getaffinity(None)?;
        let mut only = CpuSet::new();
        ensure!(
            core < CpuSet::MAX_CPU && before.is_set(core),
            "there is no core {core}, or this process may not use it"
        );
        only.set(core);
        sched_setaffinity(None, &only).with_context(|| format!("cannot pin to core {core}"))?;
        Ok(Self(Some(before)))
    }

    /// Off one, if one is given.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn off(core: Option<usize>) -> Result<Self> {
        Ok(Self(core.map(keep_off).transpose()?))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // Where it may not be taken back the thread stays where it is.
            let _stays = sched_setaffinity(None, before);
        }
    }
}

/// Told once, however many threads are refused.
static REFUSED: Once = Once::new();

/// The calling thread stays on the core of this number, of those that the process may use, to its end; where
/// there are fewer or the system refuses, it stays where it is put, and standard error is told.
pub(crate) fn stay_on(number: usize) {
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    let is_there = cores.get(number).is_some_and(|&core| core_affinity::set_for_current(core));
    if !is_there {
        REFUSED.call_once(|| {
            let _unheard = writeln!(
                io::stderr(),
                "touchline-bench: a thread that is measured cannot stay on core {number} of {} and runs anywhere: what \
                 goes between threads may take longer than it does between two cores",
                cores.len()
            );
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_that_a_thread_may_not_use_is_refused() {
        let all = sched_getaffinity(None).unwrap();
        let mut cores = (0..CpuSet::MAX_CPU).filter(|&core| all.is_set(core));
        let (first, second) = (cores.next().unwrap(), cores.next());
        let pinned = Pinned::to(Some(first)).unwrap();
        assert_eq!(allowed().unwrap(), 1);
        for other in second.into_iter().chain([CpuSet::MAX_CPU, usize::MAX]) {
            let error = Pinned::to(Some(other)).map(drop).unwrap_err().to_string();
            assert!(error.contains(&format!("no core {other}")), "{error}");
        }
        assert!(need_two().is_err());
        drop(pinned);
        assert_eq!(sched_getaffinity(None).unwrap(), all);
    }
}
