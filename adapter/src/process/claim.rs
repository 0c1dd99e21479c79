//! The claim of one adapter on its instance name: a lock and a process id, both in the data folder.
//! Taken at the adapter's start.
//!
//! The engine knows an adapter by its instance, and a later one of the same name takes the session
//! over. Two of them would throw each other out for ever, so the second one is refused here.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use thiserror::Error;
use touchline_protocol::regular_file;

use super::LOOK_AGAIN;
use crate::config::INSTANCE;
use crate::notice::alert;

/// How long an adapter that may be ending is waited for. One whose supervisor was killed may take longer: the next
/// supervisor waits for it before it starts anything ([`has_adapter`]).
const PATIENCE: Duration = Duration::from_secs(2);
/// How long those are waited for who only look at what the adapter has ([`keep_out`]): as long as they take to read a
/// large history.
const PATIENCE_WITH_LOOKS: Duration = Duration::from_secs(60);

/// Why an instance name cannot be claimed.
#[derive(Debug, Error)]
pub enum ClaimError {
    /// Another adapter has it.
    #[error(
        "an adapter of instance {instance:?} runs on this data folder already (it holds {}): \
         give this one another name by the setting adapter.instance",
        path.display()
    )]
    Taken {
        /// The name.
        instance: String,
        /// The lock file.
        path: PathBuf,
    },
    /// The lock file cannot be made or locked.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A held instance name. The kernel gives the lock back at any death of the process; the lock file
/// stays, as removing it would let two adapters lock two files of one name.
pub(super) struct Claim {
    pid_file: PathBuf,
    _lock: File,
}

impl Claim {
    /// Locks `adapter-INSTANCE.lock` in the data folder, for which another one may be on its way out, and then writes
    /// the process id to `adapter.pid`, or `adapter-INSTANCE.pid` for any but the default instance. That is for people:
    /// if it cannot be written, on a full disk above all, it is told.
    pub(super) fn take(data: &Path, instance: &str) -> Result<Self, ClaimError> {
        let path = lock_file(data, instance);
        // Who may open it may lock it, and so keep the adapter from starting.
        let mut how = OpenOptions::new();
        // Read, too: else the system says of a pipe that there is no such device. What may lie there is left as it is: it
        // may be somebody's that a link leads to.
        how.read(true).write(true).create(true).truncate(false).mode(0o600);
        let lock = regular_file::open_or_device(&how, &path)
            .map_err(|source| ClaimError::File { path: path.clone(), source })?;
        let begin = Instant::now();
        loop {
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::WOULDBLOCK) if begin.elapsed() < patience(&lock) => {
                    thread::sleep(LOOK_AGAIN);
                }
                Err(Errno::WOULDBLOCK) => {
                    return Err(ClaimError::Taken { instance: instance.to_owned(), path });
                }
                Err(errno) => return Err(ClaimError::File { path, source: errno.into() }),
            }
        }
        let pid_file = data.join(pid_file_name(instance));
        let write = || -> io::Result<()> {
            let mut file = regular_file::replace(&pid_file, 0o644)?;
            writeln!(file, "{}", std::process::id())
        };
        if let Err(error) = write() {
            alert!("adapter: cannot write the process id to {}: {error}", pid_file.display());
            // Half of one would name another process.
            let _gone = fs::remove_file(&pid_file);
        }
        Ok(Self { pid_file, _lock: lock })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // A file that is gone already needs no removing.
        let _gone = fs::remove_file(&self.pid_file);
    }
}

/// How long whoever holds the lock now is waited for.
fn patience(lock: &File) -> Duration {
    let is_looked_at = flock(lock, FlockOperation::NonBlockingLockShared).is_ok();
    if !is_looked_at {
        return PATIENCE;
    }
    // Another adapter that begins to wait must not take this one for a look.
    let _unlocked = flock(lock, FlockOperation::Unlock);
    PATIENCE_WITH_LOOKS
}

/// Whether an adapter of this instance runs on the data folder, as far as this user can see. Beside none the lock is
/// taken for a moment.
#[must_use]
pub fn has_adapter(data: &Path, instance: &str) -> bool {
    keep_out(data, instance).is_err()
}

/// An adapter of the instance runs.
pub(super) struct Runs;

/// Takes the lock as any number may have it at once and an adapter may not: the start of one waits for that, up to a
/// minute. Closing the file lets go of it; there is none where no adapter has left one, or this user may
/// not see it.
pub(super) fn keep_out(data: &Path, instance: &str) -> Result<Option<File>, Runs> {
    let Ok(lock) = regular_file::open(&lock_file(data, instance)) else { return Ok(None) };
    match flock(&lock, FlockOperation::NonBlockingLockShared) {
        Err(Errno::WOULDBLOCK) => Err(Runs),
        _ => Ok(Some(lock)),
    }
}

fn lock_file(data: &Path, instance: &str) -> PathBuf {
    data.join(format!("adapter-{instance}.lock"))
}

fn pid_file_name(instance: &str) -> String {
    match instance {
        INSTANCE => "adapter.pid".to_owned(),
        other => format!("adapter-{other}.pid"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patience::in_a_few_tries;
    use rustix::fs::{CWD, FileType::Fifo, Mode, mknodat};
    use std::os::unix::fs::{MetadataExt, symlink};

    #[test]
    fn a_name_is_held_by_one_adapter_at_a_time() {
        let data = tempfile::tempdir().unwrap();
        let pid_file = data.path().join("adapter.pid");
        let first = Claim::take(data.path(), "adapter").unwrap();
        fs::write(&pid_file, "first").unwrap();
        let error = Claim::take(data.path(), "adapter").err().unwrap().to_string();
        assert!(error.contains("instance \"adapter\""), "{error}");
        assert!(error.contains("adapter.instance"), "{error}");
        assert_eq!(fs::read_to_string(&pid_file).unwrap(), "first", "left alone");
        let mut first = Some(first);
        let mut again = None;
        // On a machine that stands still the first one is there for longer than the other waits.
        assert!(in_a_few_tries(|| {
            let first =
                first.take().unwrap_or_else(|| Claim::take(data.path(), "adapter").unwrap());
            let folder = data.path().to_owned();
            let waiting = thread::spawn(move || Claim::take(&folder, "adapter").ok());
            drop(first);
            again = waiting.join().unwrap();
            again.is_some()
        }));
        assert_eq!(fs::read_to_string(&pid_file).unwrap(), format!("{}\n", std::process::id()));
    }

    #[test]
    fn who_asks_whether_an_adapter_runs_is_told_of_its_instance_and_keeps_none_from_it() {
        let data = tempfile::tempdir().unwrap();
        assert!(!has_adapter(data.path(), "adapter"));
        let claim = Claim::take(data.path(), "adapter").unwrap();
        assert!(has_adapter(data.path(), "adapter") && !has_adapter(data.path(), "b"));
        drop(claim);
        assert!(!has_adapter(data.path(), "adapter"), "the file alone is none");
        let _claim = Claim::take(data.path(), "adapter").unwrap();
    }

    #[test]
    fn a_long_look_is_no_adapter() {
        let data = tempfile::tempdir().unwrap();
        drop(Claim::take(data.path(), "adapter").unwrap());
        let look = keep_out(data.path(), "adapter").ok().flatten().unwrap();
        let folder = data.path().to_owned();
        let waiting = thread::spawn(move || Claim::take(&folder, "adapter").map(drop));
        thread::sleep(PATIENCE + PATIENCE / 4);
        drop(look);
        waiting.join().unwrap().unwrap();
    }

    #[test]
    fn nobody_else_can_lock_what_is_to_be_locked() {
        let data = tempfile::tempdir().unwrap();
        let _claim = Claim::take(data.path(), "adapter").unwrap();
        let mode = fs::metadata(data.path().join("adapter-adapter.lock")).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    /// Nothing that the adapter serves needs a file that people read.
    #[test]
    fn a_process_id_that_cannot_be_written_is_no_reason_not_to_start() {
        let data = tempfile::tempdir().unwrap();
        let pid_file = data.path().join("adapter.pid");
        fs::create_dir(&pid_file).unwrap();
        let _claim = Claim::take(data.path(), "adapter").unwrap();
        assert!(pid_file.is_dir(), "nobody's files are removed");
        assert!(matches!(Claim::take(data.path(), "adapter"), Err(ClaimError::Taken { .. })));
    }

    #[test]
    fn links_in_the_files_places_lead_to_nothing_that_is_written() {
        let data = tempfile::tempdir().unwrap();
        let other = data.path().join("other");
        fs::write(&other, "somebody's").unwrap();
        for name in ["adapter.pid", "adapter-adapter.lock"] {
            symlink(&other, data.path().join(name)).unwrap();
        }
        drop(Claim::take(data.path(), "adapter").unwrap());
        assert_eq!(fs::read_to_string(&other).unwrap(), "somebody's");
    }

    /// Whoever opens a pipe waits for its other end.
    #[test]
    fn a_pipe_in_a_files_place_holds_nobody_up() {
        let data = tempfile::tempdir().unwrap();
        let pipe = |name| {
            let path = data.path().join(name);
            mknodat(CWD, &path, Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
            path
        };
        let lock = pipe("adapter-adapter.lock");
        assert!(matches!(Claim::take(data.path(), "adapter"), Err(ClaimError::File { .. })));
        fs::remove_file(lock).unwrap();
        pipe("adapter.pid");
        let _claim = Claim::take(data.path(), "adapter").unwrap();
    }

    #[test]
    fn each_instance_has_a_process_id_of_its_own() {
        let data = tempfile::tempdir().unwrap();
        let _first = Claim::take(data.path(), "adapter").unwrap();
        let second = Claim::take(data.path(), "b").unwrap();
        assert!(data.path().join("adapter-b.pid").exists());
        drop(second);
        assert!(!data.path().join("adapter-b.pid").exists());
        assert!(data.path().join("adapter.pid").exists());
    }
}
