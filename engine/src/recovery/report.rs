//! What a start of the log found and did, for the operator and for whoever composes the engine. Made by
//! recovery, completed when the log is open.

use std::path::PathBuf;

use touchline_protocol::units::{Incarnation, Position};

use super::{end::Fault, leftover::Poison, tail::Dropped};
use crate::log::{LogOptions, LogWriter, WindowReport};

/// What was found and done.
#[derive(Clone, Debug)]
pub struct StartReport {
    /// Random id of the log.
    pub log_id: [u8; 16],
    /// The incarnation that begins.
    pub incarnation: Incarnation,
    /// Where the next frame begins, behind the record of this incarnation.
    pub position: Position,
    /// Where the log of the earlier incarnations ended.
    pub recovered_end: Position,
    /// Transactions replayed: all of the log, or those behind the snapshot.
    pub transactions: u64,
    /// Position of the snapshot whose state the start went on from.
    pub snapshot: Option<Position>,
    /// Time of the last frame, ns since the epoch; 0 in a new log.
    pub last_time_ns: u64,
    /// When an engine is last known to have run, ns since the epoch: the time of the last frame, or what the
    /// engine has left beside its window where that is later. Nobody has checked that it is not yet to come. 0
    /// in a new log.
    pub last_alive_ns: u64,
    /// True if there was no log and one was made.
    pub new_log: bool,
    /// True if the last engine ended cleanly.
    pub clean: bool,
    /// Bytes that only the live window had, and that were brought onto disk.
    pub from_window: u64,
    /// What was taken out of the log behind its end.
    pub dropped: Dropped,
    /// The log was damaged below this position, where it had been durable, or what is there at it is of another
    /// place or log, and it was opened all the same.
    pub loss_accepted_below: Option<Position>,
    /// The last engine did not end cleanly and its live window is gone: what was acknowledged before it
    /// was durable, and lay behind this position, is lost.
    pub appended_only_lost_behind: Option<Position>,
    /// A command whose application the last engine did not complete.
    pub poison: Option<Poison>,
    /// Where the live window lies.
    pub window: WindowReport,
    /// The control page's file.
    pub control_path: PathBuf,
    /// The same but for the window in words, a line each: what was told as [`Progress::Found`](super::Progress).
    pub lines: Vec<String>,
}

/// What is known before there is a window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    pub(super) incarnation: u32,
    pub(super) recovered_end: u64,
    pub(super) transactions: u64,
    pub(super) last_time_ns: u64,
    /// The last sign of life of the engine that has left a window; 0 for none.
    pub(super) heartbeat_ns: u64,
    pub(super) new_log: bool,
    pub(super) clean: bool,
    pub(super) from_window: u64,
    pub(super) dropped: Dropped,
    /// Position of the first byte there is.
    pub(super) begin: u64,
    /// Position and transactions of the snapshot that was used.
    pub(super) snapshot: Option<(u64, u64)>,
    /// Those that were not, in words.
    pub(super) snapshots_skipped: Vec<String>,
    /// Those that were behind the log's end, whose loss was accepted.
    pub(super) snapshots_dropped: Vec<PathBuf>,
    /// Copies of the leases that named what was behind it.
    pub(super) leases_dropped: Vec<PathBuf>,
    pub(super) end_reason: String,
    /// The log ends with its last file, behind which there is none that was made ahead.
    pub(super) files_end: bool,
    pub(super) loss_accepted: Option<Fault>,
    pub(super) window_lost: bool,
    pub(super) poison: Option<Poison>,
}

impl Findings {
    /// The report of a log that is open.
    pub(crate) fn finish(
        self,
        writer: &LogWriter,
        window: WindowReport,
        options: &LogOptions,
    ) -> StartReport {
        let lines = self.lines(options);
        StartReport {
            log_id: writer.control().identity().log_id,
            incarnation: Incarnation(self.incarnation),
            position: writer.position(),
            recovered_end: Position(self.recovered_end),
            transactions: self.transactions,
            snapshot: self.snapshot.map(|(position, _)| Position(position)),
            last_time_ns: self.last_time_ns,
            last_alive_ns: self.last_time_ns.max(self.heartbeat_ns),
            new_log: self.new_log,
            clean: self.clean,
            from_window: self.from_window,
            dropped: self.dropped,
            loss_accepted_below: self.loss_accepted.map(|fault| Position(fault.position())),
            appended_only_lost_behind: self.window_lost.then_some(Position(self.recovered_end)),
            poison: self.poison,
            window,
            control_path: writer.control().path(),
            lines,
        }
    }

    /// What is told of the start, one line each: what there is, and then what is no more.
    pub(super) fn lines(&self, options: &LogOptions) -> Vec<String> {
        let mut lines: Vec<_> =
            self.snapshots_skipped.iter().map(|line| format!("log: snapshot {line}")).collect();
        self.tell_of_the_log(options, &mut lines);
        self.tell_of_what_is_put_aside(&mut lines);
        self.tell_of_the_last_engine(&mut lines);
        lines
    }

    fn tell_of_the_log(&self, options: &LogOptions, lines: &mut Vec<String>) {
        let end = self.recovered_end;
        let ended = if self.clean { "cleanly" } else { "without closing the log" };
        let count = self.transactions;
        lines.push(match self.snapshot {
            _ if self.new_log => format!("log: a new log was made in {}", options.data.display()),
            None => format!(
                "log: {count} transactions up to position {end}, the last engine ended {ended}"
            ),
            Some((position, held)) => format!(
                "log: {held} transactions by the snapshot at position {position}, {count} behind it up \
                 to position {end}, the last engine ended {ended}"
            ),
        });
        if self.begin > 0 {
            lines.push(format!(
                "log: its files begin at position {}; what was before is in snapshots only",
                self.begin
            ));
        }
        if self.from_window > 0 {
            lines.push(format!(
                "log: {} bytes up to position {end} were only in the live window and are on disk now",
                self.from_window
            ));
        }
        lines.extend(self.loss_accepted.as_ref().map(|fault| match fault {
            Fault::Damaged { attested, .. } => format!(
                "log: LOSS ACCEPTED: it was durable up to position {attested} at least and ends at {end} \
                 now: commands behind that, which were acknowledged as durable, are lost"
            ),
            Fault::Misplaced { path, why, .. } => {
                format!("log: LOSS ACCEPTED: {}: {why}; it ends at {end} now", path.display())
            }
        }));
        if self.loss_accepted.is_some() {
            lines.push(
                "log: API keys that were made behind that are given out again, each to whom the next key is made \
                 for: make and revoke keys up to the last of them first (Backup in docs/OPERATIONS.md)"
                    .to_owned(),
            );
        }
    }

    fn tell_of_what_is_put_aside(&self, lines: &mut Vec<String>) {
        for path in &self.snapshots_dropped {
            lines.push(format!(
                "log: a snapshot was behind the end, and is kept as {}",
                path.display()
            ));
        }
        for path in &self.leases_dropped {
            lines.push(format!(
                "log: a reader's lease named what was behind the end; a copy is kept as {}, and all of the log is \
                 held for that reader",
                path.display()
            ));
        }
        if self.dropped.bytes > 0 {
            let files: Vec<_> =
                self.dropped.kept_in.iter().map(|path| path.display().to_string()).collect();
            lines.push(format!(
                "log: ends at position {} ({}); {} bytes behind it, with {} whole frames, are \
                 taken out and kept in {}",
                self.recovered_end,
                self.end_reason,
                self.dropped.bytes,
                self.dropped.frames,
                files.join(", ")
            ));
        }
    }

    fn tell_of_the_last_engine(&self, lines: &mut Vec<String>) {
        if self.window_lost {
            let missing = match self.files_end {
                true => {
                    "; its files end there, too: if there were more, what was durable in them is lost as well"
                }
                false => "",
            };
            let end = self.recovered_end;
            lines.push(format!(
                "log: the live window of the last engine is gone: commands that were acknowledged \
                 before they were durable, behind position {end}, are lost{missing}"
            ));
        }
        if let Some(poison) = &self.poison {
            let died = if poison.is_fatal { "panicked of" } else { "was ended in the middle of" };
            lines.push(format!(
                "log: the last engine {died} a command at position {}, to be kept in {}",
                poison.position,
                poison.path.display()
            ));
        }
    }
}
