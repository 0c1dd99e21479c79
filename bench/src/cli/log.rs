//! The command line of `touchline-bench log`. Called by [`super`].

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use touchline_engine::huge_pages::use_huge_pages;
use touchline_protocol::log::SEGMENT_BYTES_DEFAULT;

use super::show;
use crate::log::{self, LogOptions};

/// What the help ends with.
pub(super) const HELP: &str = "\
No engine process runs: writer, keeper, recovery and verification are the engine's own, on logs in a
temporary folder (some 1 GB) with the live window in shared memory. In each round

  append     a 128-byte command with the 160 bytes of events of a resting order is compared with a copy
             of the same bytes and their checksum, which is the log's own, into a mapped file of shared
             memory; the keeper sleeps; blocks take turns, and the ratio is the median of those of
             neighbours; a copy with the crc32c package's checksum is told beside it; no verdict (noise) where
             the copies of one round took more than three times those of another
  writer     records of 128 bytes are appended at 500,000 per second, with the keeper held before its
             next write, and with the keeper writing and a client waiting, in blocks of one length, whose
             first 10 ms do not count; times count from when a record was due; no verdict (noise) where
             the p99.9 of the first is above 100 times its own p50
  durable    from when a record was due to when that client was woken, in multiples of D, the median of
             bare O_DIRECT|O_DSYNC writes of 4 KiB, in a log whose keeper is never held, across an end of a
             segment; right behind it the same disk is written to without a log on the same schedule,
             whatever is due in one write: what the machine allows
  attainable 128-byte records per second that are durable, of 256 MiB of them, to the lesser of those that are appended
             with no disk behind the log and those that the bare disk takes in new space, by 8 MiB
             writes from large pages, which is what the log of a flood does
  replay     a log of limit orders and cancels through recovery, to the core alone on its commands, which is
             shown as many of them ahead; five passes of each in turns
  verify     the same log's bytes in the page cache, from its beginning to its end, to reading them

Medians over the rounds are printed. A goal that is missed does not change the exit code: figures of a
busy machine are no check. Exit code 2 if what was written is not what is found.";

#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// Folder for temporary logs, on the disk that is to be measured [default: the system's]
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
    /// Rounds, whose medians are printed
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Commands of the log that is replayed and verified
    #[arg(long, value_name = "N", default_value_t = 1_000_000,
          value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    commands: u32,
    /// Orders that are open in that log, about; takes a few times as many commands
    #[arg(long, value_name = "N", default_value_t = 10_000,
          value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    open: u32,
    /// Pin the writer to this core while it appends, and the bare copy beside it, and keep the log's other threads and
    /// the bare disk's writes off it, as engine.core does; replay and verification run anywhere; best one that takes no
    /// interrupts of the disk
    #[arg(long, value_name = "N")]
    core: Option<usize>,
    /// MiB of the log's segments, as log.segment_mib has it: a power of two from 2 to 1024
    #[arg(long, value_name = "MIB", default_value_t = SegmentMib(SEGMENT_BYTES_DEFAULT >> 20), value_parser = segment_mib)]
    segment_mib: SegmentMib,
    /// Least time from one write to the next, µs, as log.write_interval_us has it
    #[arg(long, value_name = "US", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=100_000))]
    write_interval: u32,
    /// Keep large blocks of memory on small pages, as engine.huge_pages = false does
    #[arg(long)]
    small_pages: bool,
    /// Print one line of JSON instead of text: durations in ns, ratios in hundredths
    #[arg(long)]
    json: bool,
}

/// What `log.segment_mib` may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct SegmentMib(u64);

impl fmt::Display for SegmentMib {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(text)
    }
}

fn segment_mib(text: &str) -> Result<SegmentMib, String> {
    match text.parse::<u64>() {
        Ok(mib @ 2..=1024) if mib.is_power_of_two() => Ok(SegmentMib(mib)),
        _ => Err("expected a power of two from 2 to 1024".to_owned()),
    }
}

/// Measures and prints.
pub(super) fn run(arguments: Arguments) -> Result<bool> {
    if arguments.small_pages {
        use_huge_pages(false);
    }
    let report = log::run(&LogOptions {
        scratch: arguments.scratch.unwrap_or_else(std::env::temp_dir),
        rounds: arguments.rounds.try_into()?,
        commands: arguments.commands.try_into()?,
        open: arguments.open,
        core: arguments.core,
        segment_bytes: arguments.segment_mib.0 << 20,
        write_interval: Duration::from_micros(arguments.write_interval.into()),
    })?;
    show(arguments.json, &report, || report.text())?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_of_sizes_that_an_engine_takes() {
        for mib in [2, 64, 1024] {
            assert_eq!(segment_mib(&mib.to_string()), Ok(SegmentMib(mib)));
        }
        for wrong in ["0", "1", "3", "96", "2048", "-2", ""] {
            assert!(segment_mib(wrong).is_err(), "{wrong:?}");
        }
    }
}
