//! One admin at a time: a second logon of the same session would cut the first one off. Called by
//! [`super::run`] before anything is done.

use crate::notice;
use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use touchline_protocol::regular_file;

/// How long one and the same process may keep others waiting: longer than an action takes, so that only
/// one that is stopped, or hangs, is given up.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// After so long whoever waits is told for whom.
const QUIET: Duration = Duration::from_secs(2);

/// Pause between two tries.
const AGAIN: Duration = Duration::from_millis(5);

/// Name of the file in the data folder that is locked meanwhile; it holds the process id of who locked it
/// last, in decimal.
const LOCK_FILE: &str = "admin.lock";

/// Waits for the turn, which lasts as long as the file is open. However many wait, each has its turn; but nobody
/// waits longer than `patience` for one process.
///
/// # Errors
/// If one process held the lock for so long, or the file cannot be opened.
pub(super) fn take(data: &Path, patience: Duration) -> Result<File> {
    let path = data.join(LOCK_FILE);
    let mut how = OpenOptions::new();
    how.create(true).truncate(false).write(true).mode(0o600);
    let mut file = regular_file::open_as(&how, &path)
        .with_context(|| format!("cannot open {}", path.display()))?;
    let mut wait = Wait::begin(Instant::now());
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => break,
            Err(Errno::WOULDBLOCK) => {}
            Err(errno) => {
                return Err(errno).with_context(|| format!("cannot lock {}", path.display()));
            }
        }
        let held = wait.held_by(fs::read_to_string(&path).unwrap_or_default(), Instant::now());
        let who = format!("{} is held by another admin, process {}", path.display(), wait.holder);
        if held >= patience {
            let seconds = patience.as_secs();
            bail!(
                "{who}, for {seconds} s now: nothing was done; see whether it is stopped, and end it"
            );
        }
        if held >= QUIET && !wait.is_told {
            notice::alert!("touchline: {who}; waiting for it");
            wait.is_told = true;
        }
        thread::sleep(AGAIN);
    }
    // For people, and for who waits. Without it the lock holds all the same.
    let _unnamed = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
    Ok(file)
}

/// For which process the turn is waited for, and since when.
struct Wait {
    holder: String,
    since: Instant,
    is_told: bool,
}

impl Wait {
    const fn begin(now: Instant) -> Self {
        Self { holder: String::new(), since: now, is_told: false }
    }

    /// Notes that `holder` has the lock `now`; gives for how long it was seen to have it.
    fn held_by(&mut self, holder: String, now: Instant) -> Duration {
        if holder != self.holder {
            *self = Self { holder, ..Self::begin(now) };
        }
        now.duration_since(self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_keeps_the_turn_for_ever_is_named_and_given_up() {
        let data = tempfile::tempdir().unwrap();
        let held = take(data.path(), PATIENCE).unwrap();
        let told = take(data.path(), Duration::from_millis(50)).unwrap_err().to_string();
        let process = format!("process {},", std::process::id());
        assert!(told.contains("admin.lock") && told.contains(&process), "{told}");
        drop(held);
        take(data.path(), Duration::ZERO).unwrap();
    }

    #[test]
    fn who_waits_for_one_after_the_other_is_patient_with_each() {
        let almost = PATIENCE - Duration::from_millis(1);
        let mut now = Instant::now();
        let mut wait = Wait::begin(now);
        for holder in 0..8 {
            assert_eq!(wait.held_by(holder.to_string(), now), Duration::ZERO);
            assert!(!wait.is_told, "who waits is told for whom, anew");
            wait.is_told = true;
            now += almost;
            assert_eq!(wait.held_by(holder.to_string(), now), almost);
            assert!(wait.is_told, "once");
        }
        assert_eq!(wait.held_by("7".to_owned(), now + PATIENCE - almost), PATIENCE);
    }

    #[test]
    fn who_waits_has_the_turn_when_it_is_free() {
        let data = tempfile::tempdir().unwrap();
        let held = take(data.path(), PATIENCE).unwrap();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| take(data.path(), PATIENCE).map(drop));
            thread::sleep(AGAIN);
            drop(held);
            waiting.join().unwrap().unwrap();
        });
    }

    #[test]
    fn a_shorter_process_id_leaves_nothing_of_a_longer_one() {
        let data = tempfile::tempdir().unwrap();
        fs::write(data.path().join(LOCK_FILE), "99999999999999").unwrap();
        let _turn = take(data.path(), Duration::ZERO).unwrap();
        let holder = fs::read_to_string(data.path().join(LOCK_FILE)).unwrap();
        assert_eq!(holder, std::process::id().to_string());
    }
}
