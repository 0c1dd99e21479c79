//! The result of [`super::run`] and its text.

use std::fmt::Write as _;

use serde::Serialize;

use crate::goal::{Compared, Goal};
use crate::latency::{Percentiles, duration};
use crate::machine::Machine;
use crate::scratch::Scratch;

/// What was measured.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct JobsReport {
    pub(super) machine: Machine,
    pub(super) scratch: Scratch,
    pub(super) users: u32,
    pub(super) jobs: u32,
    pub(super) connections: usize,
    /// Jobs made per second, all processes on this machine's cores.
    pub rate: u64,
    /// CPU time of the adapter per job, until its views and history have all of them, ns.
    pub adapter_cpu_ns: u64,
    /// CPU time of the engine per job, ns; a duty thread that waits busily is counted too.
    pub engine_cpu_ns: u64,
    /// Jobs that one core of the adapter makes in a second.
    pub rate_per_adapter_core: u64,
    /// From sending a request to its whole reply, each connection sending its next request when it has
    /// its reply.
    pub latency: Percentiles,
    /// Memory of the adapter per job, bytes.
    pub adapter_bytes: u64,
    /// Memory of the engine per job, with its share of the users, bytes: beside an engine that may keep
    /// no more than one record.
    pub engine_bytes: u64,
    /// The long list.
    pub list: Listed,
    /// How long starts take with all of it.
    pub starts: Starts,
    /// What is to be reached.
    pub goals: Vec<Goal>,
}

/// One long list as it was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Listed {
    /// Jobs in it.
    pub jobs: u32,
    /// Bytes of its reply.
    pub bytes: u64,
    /// Until its first byte, ns.
    pub first_byte_ns: u64,
    /// Until its last byte, ns.
    pub last_byte_ns: u64,
    /// The most by which the adapter's memory was larger meanwhile than before, bytes.
    pub grown_bytes: u64,
}

/// From the start of a process to its ready line, ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Starts {
    /// The engine, deciding every command of the log again.
    pub engine_from_log_ns: u64,
    /// The engine, from a snapshot of all of it.
    pub engine_from_snapshot_ns: u64,
    /// The adapter, from its history.
    pub adapter_from_history_ns: u64,
    /// The adapter, from the log alone.
    pub adapter_from_log_ns: u64,
}

/// Jobs that a second of the adapter's CPU makes at least, and bytes that the engine may keep for each.
const RATE_PER_ADAPTER_CORE: u64 = 20_000;
const ENGINE_BYTES: u64 = 400;

/// Of what a second of the adapter's CPU makes, and of the engine's memory for each job.
pub(super) fn goals(rate_per_adapter_core: u64, engine_bytes: u64) -> Vec<Goal> {
    let per_second = |jobs| format!("{jobs}/s");
    let bytes = |bytes| format!("{bytes} bytes");
    vec![
        Compared::to_bound([rate_per_adapter_core], RATE_PER_ADAPTER_CORE, &per_second)
            .at_least("jobs of a second of the adapter's CPU", 100),
        Compared::to_bound([engine_bytes], ENGINE_BYTES, &bytes)
            .at_most("engine's memory for each job", 100),
    ]
}

impl JobsReport {
    /// Several lines of text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!(
            "POST /jobs over {} kept connections, answered when appended: {} jobs of {} users\n\
             machine: {}\nscratch: {}\n\n",
            self.connections,
            self.jobs,
            self.users,
            self.machine.line(),
            self.scratch.line(),
        );
        let (list, starts) = (&self.list, &self.starts);
        let rows = [
            ("per adapter core", format!("{} jobs/s", self.rate_per_adapter_core)),
            ("adapter, CPU each", duration(self.adapter_cpu_ns)),
            ("engine, CPU each", duration(self.engine_cpu_ns)),
            ("on this machine", format!("{} jobs/s", self.rate)),
            ("adapter, memory each", format!("{} bytes", self.adapter_bytes)),
            ("engine, memory each", format!("{} bytes", self.engine_bytes)),
            ("long list", format!("{} jobs, {} bytes", list.jobs, list.bytes)),
            ("  first byte", duration(list.first_byte_ns)),
            ("  last byte", duration(list.last_byte_ns)),
            ("  adapter grew by", format!("{} bytes", list.grown_bytes)),
            ("engine, start from log", duration(starts.engine_from_log_ns)),
            ("  from a snapshot", duration(starts.engine_from_snapshot_ns)),
            ("adapter, start", duration(starts.adapter_from_history_ns)),
            ("  from log", duration(starts.adapter_from_log_ns)),
        ];
        for (name, value) in rows {
            // Writing to a String cannot fail.
            let _infallible = writeln!(text, "{name:<26}{value}");
        }
        let _infallible = writeln!(
            text,
            "\n{:<26}{}\n{:<26}{}",
            "",
            Percentiles::HEADING,
            "latency",
            self.latency.columns()
        );
        text.push_str(&Goal::lines(&self.goals));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_jobs_and_less_memory_reach_more() {
        let reached = |rate, bytes| -> Vec<_> {
            goals(rate, bytes).into_iter().map(|goal| goal.reached == Some(true)).collect()
        };
        assert_eq!(reached(20_000, 400), [true, true]);
        assert_eq!(reached(19_999, 401), [false, false]);
    }
}
