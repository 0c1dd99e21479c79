//! Facts about the machine, printed with every measurement of a time. Called by the
//! measurements.

use std::fs;
use std::time::Instant;

use serde::Serialize;

use crate::builds::Builds;
use crate::latency::median;
use crate::stolen::{self, percent};

/// What a measurement was made on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// Processors that this process may use.
    pub cores: usize,
    /// The kernel's release.
    pub kernel: String,
    /// Whether it is a virtual machine.
    pub virtual_machine: bool,
    /// What one reading of the clock costs, ns; every latency contains one.
    pub clock_read_ns: u64,
    /// Thousandths of all cores' time that the machine below took away since the measurement began, up to
    /// now ([`crate::stolen`]); 0 for hardware, and where the kernel does not tell.
    pub stolen_permille: u64,
    /// What was measured, and by what.
    pub builds: Builds,
}

impl Machine {
    /// Looks.
    #[must_use]
    pub fn here() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            let line = cpuinfo.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            processor: field("model name").unwrap_or_else(|| "unknown processor".to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: kernel.trim().to_owned(),
            virtual_machine: field("flags")
                .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            clock_read_ns: clock_read_ns(),
            stolen_permille: stolen::of_measurement().permille(),
            builds: Builds::here(),
        }
    }

    /// One line, and one of the builds.
    #[must_use]
    pub fn line(&self) -> String {
        format!(
            "{}, {} core(s){}, Linux {}; a clock reading costs {} ns{}\nbuilds: {}",
            self.processor,
            self.cores,
            if self.virtual_machine { ", virtual" } else { "" },
            self.kernel,
            self.clock_read_ns,
            if self.stolen_permille == 0 {
                String::new()
            } else {
                format!("; the host took {} of the cores' time", percent(self.stolen_permille))
            },
            self.builds.line(),
        )
    }
}

fn clock_read_ns() -> u64 {
    const READINGS: u32 = 1000;
    median((0..9).map(|_| {
        let begin = Instant::now();
        let mut last = begin;
        for _ in 0..READINGS {
            last = std::hint::black_box(Instant::now());
        }
        nanoseconds(last.duration_since(begin)) / u64::from(READINGS)
    }))
}

/// A duration as whole ns; the longest for more than fit.
#[must_use]
pub fn nanoseconds(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
