//! Whether the engine runs whose live window a log has. A window stays behind where an engine was killed, and
//! where a start was refused beside it, and says of itself no more than that it was written. It may be of another
//! past than the disk has, where an older copy of the log was put in its place: then nothing of both may be read as
//! one log. Called by [`super`], and by whoever reads a log beside its window.

use std::{
    fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    process::{Pid, test_kill_process},
};
use touchline_protocol::{
    log::{
        control::LogState,
        place::SHARED_MEMORY,
        reader::{LogReader, SignsOfLife},
    },
    units::Position,
};

use super::segments_for_reading;
use crate::clock::{SystemTime, TimeSource as _};
use crate::recovery::{RecoveryError, Segments, compare_window};

/// An engine that runs gives a sign of life twice a second; one whose machine is busy may be late by a few.
const SILENCE_NS: u64 = 3_000_000_000;

/// So long one is waited for where the process is not to be seen.
const LISTEN: Duration = Duration::from_millis(1100);

/// Pause between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Whether an engine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineState {
    /// It gives signs of life.
    Running,
    /// A process has its number, but gave no sign of life for so long: it is stopped, or is another one.
    Silent {
        /// The process.
        pid: u32,
        /// Since its last one.
        silent_for: Duration,
    },
    /// It is gone.
    Gone,
}

/// The live window that counts for a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowSeen {
    /// Whether an engine writes it.
    pub engine: EngineState,
    /// How far the log is on disk by it: nothing behind that was looked at.
    pub durable: Position,
    /// Behind the last frame that it holds, by its engine or for the next start.
    pub appended: Position,
    /// The disk has failed its engine: nothing more was made durable, and every command refused.
    pub has_failed: bool,
    /// How far its public feed has read the log; `None` if there is no feed.
    pub feed: Option<Position>,
}

impl WindowSeen {
    /// The window that `reader` is attached to, unless it was taken out of use.
    pub(super) fn of(reader: &LogReader) -> Option<Self> {
        if reader.state() == Some(LogState::Stopped) {
            return None;
        }
        let signs = reader.signs_of_life()?;
        let exists = process_exists(signs.pid);
        let engine = judge(&signs, exists, SystemTime.real_ns(), || is_heard(reader, &signs));
        // Behind the wait, so that one that goes on meanwhile is told as it is.
        let SignsOfLife { durable, appended, feed, .. } = reader.signs_of_life()?;
        let has_failed = reader.state() == Some(LogState::LogFailed);
        Some(Self { engine, durable, appended, has_failed, feed })
    }

    /// How far the feed of an engine that runs has read the log, and how many bytes of it the feed lacks.
    #[must_use]
    pub fn running_feed(&self) -> Option<(Position, u64)> {
        let feed = self.feed.filter(|_| self.is_running())?;
        Some((feed, self.appended.0.saturating_sub(feed.0)))
    }

    /// True if an engine writes it.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.engine == EngineState::Running
    }
}

/// Checks that the window that `reader` is attached to, if no engine writes it, is one of the log on disk, as a start
/// does: what is read of both is one log only then.
///
/// # Errors
/// See [`RecoveryError::is_of_window`]; or the log cannot be read.
pub fn check_window(data: &Path, reader: &LogReader) -> Result<(), RecoveryError> {
    match WindowSeen::of(reader) {
        Some(seen) if !seen.is_running() => check_left(data, reader, &segments_for_reading(data)?),
        _ => Ok(()),
    }
}

/// As [`check_window`], of a window whose engine does not run.
pub(super) fn check_left(
    data: &Path,
    reader: &LogReader,
    segments: &Segments,
) -> Result<(), RecoveryError> {
    let Some(incarnation) = reader.incarnation() else { return Ok(()) };
    let before = reader.signs_of_life();
    let compared = compare_window(data, Path::new(SHARED_MEMORY), segments, incarnation);
    // One that was only stopped overwrites what is compared once it goes on, and so does a start.
    if compared.is_err() && has_gone_on(reader, before) { Ok(()) } else { compared }
}

/// True if the window that `reader` is attached to has not the last word on its log any more: its engine has given a
/// sign of life since it gave `before`, or a start has taken the window out of use, behind which it goes on.
pub(super) fn has_gone_on(reader: &LogReader, before: Option<SignsOfLife>) -> bool {
    reader.signs_of_life() != before || reader.state() == Some(LogState::Stopped)
}

/// What the signs say. A process that is not to be seen may be in another container on the same folder: then it
/// is known by the next sign that it gives.
fn judge(
    signs: &SignsOfLife,
    exists: bool,
    now_ns: u64,
    is_heard: impl FnOnce() -> bool,
) -> EngineState {
    let silent_ns = now_ns.saturating_sub(signs.heartbeat_ns);
    // Before its first turn an engine has given none.
    let is_fresh = silent_ns < SILENCE_NS || signs.heartbeat_ns == 0;
    match (exists, is_fresh) {
        (true, true) => EngineState::Running,
        (true, false) => {
            EngineState::Silent { pid: signs.pid, silent_for: Duration::from_nanos(silent_ns) }
        }
        (false, true) if is_heard() => EngineState::Running,
        (false, _) => EngineState::Gone,
    }
}

/// True if a further sign of life comes soon.
fn is_heard(reader: &LogReader, before: &SignsOfLife) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < LISTEN {
        let now = reader.signs_of_life();
        if now.is_some_and(|now| now.heartbeat_ns != before.heartbeat_ns) {
            return true;
        }
        thread::sleep(LOOK_AGAIN);
    }
    false
}

/// True if a process of that number is there and has not ended.
fn process_exists(pid: u32) -> bool {
    let Some(process) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    if test_kill_process(process) == Err(Errno::SRCH) {
        return false;
    }
    // One that was killed keeps its number until somebody asks how it ended. What /proc does not say, the call
    // above has said.
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = status.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    !matches!(state, Some('Z' | 'X'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    const NOW: u64 = 1_000_000_000_000;

    fn signs(heartbeat_ns: u64) -> SignsOfLife {
        SignsOfLife {
            pid: 7,
            heartbeat_ns,
            durable: Position(0),
            appended: Position(0),
            feed: None,
        }
    }

    #[test]
    fn an_engine_is_known_by_its_process_and_by_its_signs_of_life() {
        let unasked = || panic!("nothing to wait for");
        for (heartbeat_ns, age) in [(NOW - SILENCE_NS + 1, "new"), (0, "none"), (NOW + 5, "ahead")]
        {
            let judged = judge(&signs(heartbeat_ns), true, NOW, unasked);
            assert_eq!(judged, EngineState::Running, "{age}");
            // Where the process is not to be seen, the next sign of life tells.
            for (is_heard, expected) in [(true, EngineState::Running), (false, EngineState::Gone)] {
                assert_eq!(judge(&signs(heartbeat_ns), false, NOW, || is_heard), expected, "{age}");
            }
        }
        let old = signs(NOW - 12_000_000_000);
        let silent = EngineState::Silent { pid: 7, silent_for: Duration::from_secs(12) };
        assert_eq!(judge(&old, true, NOW, unasked), silent);
        assert_eq!(judge(&old, false, NOW, unasked), EngineState::Gone);
    }

    #[test]
    fn a_process_that_has_ended_does_not_exist_though_it_keeps_its_number() {
        assert!(process_exists(std::process::id()));
        assert!(!process_exists(0) && !process_exists(u32::MAX));
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        assert!(process_exists(child.id()));
        child.kill().unwrap();
        let begun = Instant::now();
        while process_exists(child.id()) && begun.elapsed() < Duration::from_secs(30) {
            thread::sleep(LOOK_AGAIN);
        }
        assert!(!process_exists(child.id()), "killed, and not waited for");
        child.wait().unwrap();
        assert!(!process_exists(child.id()));
    }
}
