//! The files of the limits: bans are written when there are new ones, lists of keys' addresses are read
//! again when their file changes. A thread of its own, started with the adapter and ended before it. The
//! lists are looked after also by whoever meets a key for the first time.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use thiserror::Error;
use touchline_protocol::regular_file;

use super::Limits;
use super::bans::{Bans, FILE_BYTES_MAX};
use super::key_addresses::{KEY_ADDRESSES_FILE, KeyAddresses, KeyAddressesError, read_text};
use crate::clock::unix_ms;
use crate::notice::alert;

/// Shortest time between two writes of the bans, and between two looks at the lists' file.
const PAUSE: Duration = Duration::from_secs(1);

/// Why the files of the limits cannot be used.
#[derive(Debug, Error)]
pub enum KeeperError {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The lists of keys' addresses are malformed: to serve without them could let somebody in.
    #[error("{}: {source}", path.display())]
    KeyAddresses {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: KeyAddressesError,
    },
    /// The file of lists that are in force is gone: that is an accident until an empty one says otherwise.
    #[error("{}: the file is gone; an empty one in its place would mean that there are none", path.display())]
    Gone {
        /// The file.
        path: PathBuf,
    },
    /// The thread cannot be started.
    #[error("cannot start thread limits: {0}")]
    Thread(#[source] io::Error),
}

/// The running thread. Dropping it writes what is not written yet.
#[derive(Debug)]
pub struct Keeper {
    limits: Arc<Limits>,
    thread: Option<JoinHandle<()>>,
}

/// The file of this instance's bans.
struct BansFile(PathBuf);

/// The file of the keys' addresses, and what of it is known.
#[derive(Debug)]
pub(super) struct KeyAddressesFile {
    path: PathBuf,
    seen: Option<Stamp>,
    /// What was seen last is in force.
    is_good: bool,
    /// The system did not let it be read, which has been told; it is tried again.
    is_unread: bool,
}

/// By what a file is told from what it was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl Keeper {
    /// Reads the files in the data folder, and goes on to keep them in step with `limits`. Bans are each
    /// instance's own.
    ///
    /// # Errors
    /// When a file is there and cannot be used. (Lines that are no bans are left out and told.)
    pub fn start(limits: Arc<Limits>, data: &Path, instance: &str) -> Result<Self, KeeperError> {
        let put = |path: &Path, text: &str| regular_file::put_whole(path, 0o600, text.as_bytes());
        Self::start_with(limits, data, instance, put)
    }

    /// As [`start`](Self::start); `put` is how a file gets another text.
    fn start_with(
        limits: Arc<Limits>,
        data: &Path,
        instance: &str,
        put: impl FnMut(&Path, &str) -> io::Result<()> + Send + 'static,
    ) -> Result<Self, KeeperError> {
        let bans = BansFile(data.join(format!("bans-{instance}")));
        bans.read(&limits)?;
        let mut lists = KeyAddressesFile::at(data.join(KEY_ADDRESSES_FILE));
        lists.read(&limits)?;
        *limits.key_addresses_file() = Some(lists);
        let (sender, told) = mpsc::sync_channel(1);
        *limits.changed.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        let own = Arc::clone(&limits);
        let thread = thread::Builder::new()
            .name("limits".to_owned())
            .spawn(move || bans.run(&own, &told, put))
            .map_err(KeeperError::Thread)?;
        Ok(Self { limits, thread: Some(thread) })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // Without a sender the thread ends.
        self.limits.changed.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

impl BansFile {
    fn run(
        &self,
        limits: &Limits,
        told: &Receiver<()>,
        mut put: impl FnMut(&Path, &str) -> io::Result<()>,
    ) {
        let (mut is_due, mut is_told, mut tried) = (false, false, None::<Instant>);
        loop {
            let ended = match told.recv_timeout(PAUSE) {
                Ok(()) => {
                    is_due = true;
                    false
                }
                Err(RecvTimeoutError::Timeout) => false,
                Err(RecvTimeoutError::Disconnected) => true,
            };
            let may_write = ended || tried.is_none_or(|tried| tried.elapsed() >= PAUSE);
            if is_due && may_write {
                // Every request looks at the bans: they are not held while the disk takes its time.
                let text = limits.bans().to_text();
                // What cannot be written is tried again and again, and told once.
                match put(&self.0, &text) {
                    Ok(()) => (is_due, is_told) = (false, false),
                    Err(error) => {
                        if !std::mem::replace(&mut is_told, true) {
                            alert!("adapter: bans are not kept: {}: {error}", self.0.display());
                        }
                    }
                }
                tried = Some(Instant::now());
            }
            if ended {
                return;
            }
            limits.refresh_key_addresses();
        }
    }

    fn read(&self, limits: &Limits) -> Result<(), KeeperError> {
        let error = |source| KeeperError::File { path: self.0.clone(), source };
        let bytes = match regular_file::read_bounded(&self.0, FILE_BYTES_MAX) {
            Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(()),
            read => read.map_err(error)?,
        };
        // A line that is no text is no ban.
        let text = String::from_utf8_lossy(&bytes);
        let (bans, bad_lines) = Bans::from_text(&text, unix_ms());
        if bad_lines > 0 {
            alert!("adapter: {}: {bad_lines} lines are no bans", self.0.display());
        }
        *limits.bans() = bans;
        Ok(())
    }
}

impl KeyAddressesFile {
    /// Not looked at yet.
    const fn at(path: PathBuf) -> Self {
        Self { path, seen: None, is_good: true, is_unread: false }
    }

    /// Takes over the lists if their file is another one than before. Gives whether those that are in
    /// force are what the file says. A bad one is told once, and so is one that is gone, without which lists stay
    /// in force; whoever starts without one has none.
    pub(super) fn read(&mut self, limits: &Limits) -> Result<bool, KeeperError> {
        let path = &self.path;
        let metadata = fs::metadata(path);
        // Something is there that the system does not show: reading it says what that is.
        let is_hidden =
            metadata.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::NotFound);
        let stamp = metadata.ok().map(|metadata| Stamp {
            inode: metadata.ino(),
            bytes: metadata.len(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        });
        let is_same = stamp == self.seen;
        let was_unread = self.is_unread;
        if is_same && !was_unread && !is_hidden {
            return Ok(self.is_good);
        }
        (self.seen, self.is_good) = (stamp, false);
        let text = match read_text(path) {
            Ok(text) => text,
            Err(source) => {
                // What the system refuses is told once and tried again; what the file is, is told always.
                let is_the_systems = source.raw_os_error().is_some();
                self.is_unread = is_the_systems;
                if is_same && was_unread && is_the_systems {
                    return Ok(false);
                }
                return Err(KeeperError::File { path: path.clone(), source });
            }
        };
        self.is_unread = false;
        let present = || limits.key_addresses.read().unwrap_or_else(PoisonError::into_inner);
        if text.is_none() && !present().is_empty() {
            // Also if it was still there a moment ago, when it was looked at.
            self.seen = None;
            return Err(KeeperError::Gone { path: path.clone() });
        }
        let lists = KeyAddresses::from_text(&text.unwrap_or_default())
            .map_err(|source| KeeperError::KeyAddresses { path: path.clone(), source })?;
        *limits.key_addresses.write().unwrap_or_else(PoisonError::into_inner) = lists;
        self.is_good = true;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::LimitsConfig;
    use crate::patience::{PATIENCE, eventually};
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use std::net::IpAddr;
    use std::os::unix::fs::symlink;
    use touchline_protocol::units::KeyId;

    fn put(path: &Path, text: &str) {
        regular_file::put_whole(path, 0o600, text.as_bytes()).unwrap();
    }

    fn limits() -> Arc<Limits> {
        Arc::new(Limits::new(LimitsConfig {
            request_weight_per_minute: 1,
            raw_requests_per_5_minutes: 100,
            refusals_before_ban: 1,
            denied: Vec::new(),
            trusted_proxies: Vec::new(),
        }))
    }

    fn client() -> IpAddr {
        [198, 51, 100, 1].into()
    }

    fn now_ms() -> u64 {
        unix_ms()
    }

    #[test]
    fn bans_outlive_the_adapter() {
        let folder = tempfile::tempdir().unwrap();
        let before = limits();
        let keeper = Keeper::start(Arc::clone(&before), folder.path(), "one").unwrap();
        let end_ms = before.ban(client(), now_ms());
        drop(keeper);
        let after = limits();
        let _keeper = Keeper::start(Arc::clone(&after), folder.path(), "one").unwrap();
        assert_eq!(after.bans().end_ms(client(), end_ms - 1), Some(end_ms));
        let other = limits();
        let _keeper = Keeper::start(Arc::clone(&other), folder.path(), "two").unwrap();
        assert_eq!(other.bans().end_ms(client(), end_ms - 1), None, "each instance has its own");
    }

    #[test]
    fn nobody_waits_for_the_disk_and_what_it_refused_is_written_later() {
        let folder = tempfile::tempdir().unwrap();
        let kept = folder.path().join("bans-one");
        let limits = limits();
        let (begins, begun) = mpsc::channel();
        let (answer, answers) = mpsc::channel::<io::Result<()>>();
        // The disk takes as long as it is not told what to answer.
        let put = move |path: &Path, text: &str| {
            begins.send(()).unwrap();
            answers.recv().unwrap()?;
            fs::write(path, text)
        };
        let keeper = Keeper::start_with(Arc::clone(&limits), folder.path(), "one", put).unwrap();
        let end_ms = limits.ban(client(), now_ms());
        begun.recv_timeout(PATIENCE).unwrap();
        assert!(limits.bans.try_lock().is_ok(), "requests would wait for the disk");
        let other = [198, 51, 100, 2].into();
        assert_eq!(limits.admit(other, 1, now_ms()).refusal, None);
        assert!(!kept.exists(), "what is not written is not put in place");
        answer.send(Err(io::Error::other("refused"))).unwrap();
        answer.send(Ok(())).unwrap();
        drop(keeper);
        let text = fs::read_to_string(kept).unwrap();
        assert!(text.contains(&format!("198.51.100.1 1 {end_ms}\n")));
    }

    #[test]
    fn lists_of_addresses_are_read_when_they_change() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(KEY_ADDRESSES_FILE);
        fs::write(&path, "1 10.0.0.1\n").unwrap();
        let limits = limits();
        *limits.key_addresses_file() = Some(KeyAddressesFile::at(path.clone()));
        assert!(limits.refresh_key_addresses());
        assert!(limits.refresh_key_addresses(), "it is as it was");
        assert!(!limits.allows_key(KeyId(1), client()));
        put(&path, "1 10.0.0.1 198.51.100.0/24\n");
        assert!(limits.refresh_key_addresses());
        assert!(limits.refresh_key_addresses(), "it is as it was");
        assert!(limits.allows_key(KeyId(1), client()));
        put(&path, "1 nowhere\n");
        let mut fresh = KeyAddressesFile::at(path);
        let error = fresh.read(&limits).unwrap_err().to_string();
        assert!(error.contains("key-addresses") && error.contains("nowhere"), "{error}");
        for _ in 0..2 {
            assert!(!limits.refresh_key_addresses(), "not what the file says");
            assert!(limits.allows_key(KeyId(1), client()), "as before");
        }
        let start = Keeper::start(limits, folder.path(), "one");
        assert!(matches!(start, Err(KeeperError::KeyAddresses { .. })), "never without them");
    }

    /// Nobody need use a new key for that.
    #[test]
    fn lists_are_looked_after_while_the_adapter_runs() {
        let folder = tempfile::tempdir().unwrap();
        let limits = limits();
        let _keeper = Keeper::start(Arc::clone(&limits), folder.path(), "one").unwrap();
        assert!(limits.allows_key(KeyId(1), client()));
        put(&folder.path().join(KEY_ADDRESSES_FILE), "1 10.0.0.1\n");
        assert!(eventually(|| !limits.allows_key(KeyId(1), client())), "nobody looks at them");
    }

    /// A link that leads to itself is one of the things that the system does not open.
    #[test]
    fn lists_that_the_system_does_not_let_be_read_are_told_once_and_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(KEY_ADDRESSES_FILE);
        symlink(&path, &path).unwrap();
        let limits = limits();
        let mut file = KeyAddressesFile::at(path.clone());
        let start = Keeper::start(Arc::clone(&limits), folder.path(), "one");
        assert!(matches!(start, Err(KeeperError::File { .. })), "never without them");
        assert!(matches!(file.read(&limits), Err(KeeperError::File { .. })));
        for _ in 0..2 {
            assert!(!file.read(&limits).unwrap(), "told already, and not what the file says");
        }
        // To who looks from outside nothing is another than it was.
        fs::remove_file(&path).unwrap();
        for _ in 0..2 {
            assert!(file.read(&limits).unwrap());
        }
        put(&path, "1 10.0.0.1\n");
        assert!(file.read(&limits).unwrap());
        assert!(!limits.allows_key(KeyId(1), client()));
    }

    #[test]
    fn lists_whose_file_is_gone_stay_in_force_until_an_empty_one_says_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(KEY_ADDRESSES_FILE);
        let limits = limits();
        let mut file = KeyAddressesFile::at(path.clone());
        assert!(file.read(&limits).unwrap(), "there is none, and that is all");
        put(&path, "1 10.0.0.1\n");
        for _ in 0..2 {
            assert!(file.read(&limits).unwrap());
            fs::remove_file(&path).unwrap();
            let error = file.read(&limits).unwrap_err().to_string();
            assert!(error.contains("key-addresses: the file is gone"), "{error}");
            assert!(!file.read(&limits).unwrap(), "not what the file says, and told once");
            assert!(!limits.allows_key(KeyId(1), client()), "as before");
            put(&path, "1 10.0.0.2\n");
        }
        assert!(file.read(&limits).unwrap());
        put(&path, "");
        assert!(file.read(&limits).unwrap());
        assert!(limits.allows_key(KeyId(1), client()));
        fs::remove_file(&path).unwrap();
        assert!(file.read(&limits).unwrap(), "it had nothing that could be lost");
    }

    #[test]
    fn a_line_of_bans_that_is_no_text_is_left_out_and_the_others_hold() {
        let folder = tempfile::tempdir().unwrap();
        let end_ms = now_ms() + 60_000;
        let good = format!("198.51.100.1 1 {end_ms}\n");
        fs::write(folder.path().join("bans-one"), [good.as_bytes(), b"\xff\x80 1 5\n"].concat())
            .unwrap();
        let limits = limits();
        let _keeper = Keeper::start(Arc::clone(&limits), folder.path(), "one").unwrap();
        assert_eq!(limits.bans().end_ms(client(), now_ms()), Some(end_ms));
    }

    /// It was left by an adapter that died while it wrote.
    #[test]
    fn what_stands_beside_the_bans_is_no_part_of_them() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("bans-one.new"), "198.51.100.9 1 5\n".repeat(100)).unwrap();
        let limits = limits();
        let keeper = Keeper::start(Arc::clone(&limits), folder.path(), "one").unwrap();
        let end_ms = limits.ban(client(), now_ms());
        drop(keeper);
        let text = fs::read_to_string(folder.path().join("bans-one")).unwrap();
        assert_eq!(text, format!("198.51.100.1 1 {end_ms}\n"));
    }

    /// Whoever reads a pipe waits for a writer, who never comes.
    #[test]
    fn a_pipe_in_a_files_place_is_refused() {
        for name in ["bans-one", KEY_ADDRESSES_FILE] {
            let folder = tempfile::tempdir().unwrap();
            let pipe = folder.path().join(name);
            mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
            let error = Keeper::start(limits(), folder.path(), "one").unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("not a regular file"), "{error}");
        }
    }

    #[test]
    fn a_file_without_end_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let bans = folder.path().join("bans-one");
        fs::write(&bans, vec![b'\n'; FILE_BYTES_MAX]).unwrap();
        assert!(Keeper::start(limits(), folder.path(), "one").is_ok(), "as long as may be");
        fs::write(&bans, vec![b'\n'; FILE_BYTES_MAX + 1]).unwrap();
        let error = Keeper::start(limits(), folder.path(), "one").unwrap_err().to_string();
        assert!(error.contains("longer than"), "{error}");
    }
}
