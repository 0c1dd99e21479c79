//! What the window that an engine has left is compared with, and what its page vouches for.

use super::*;
use crate::inspect::segments_for_reading;
use crate::log::{Environment, Log, LogOptions, open_in};
use std::os::unix::fs::FileExt;
use tempfile::TempDir;
use touchline_protocol::log::control::{
    CONTROL_FILE, DURABLE_OFFSET, LogState, STATE_OFFSET, WINDOW_FILE,
};

/// A data folder, whose log an engine has written to, with the engine until it is killed.
struct Left {
    folder: TempDir,
    log: Option<Log>,
    identity: LogIdentity,
    /// The log's end, on disk too.
    end: u64,
}

impl Left {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let environment =
            Environment { shared_memory: folder.path().join("shm"), ..Environment::default() };
        fs::create_dir(&environment.shared_memory).unwrap();
        let options = LogOptions::small(&folder.path().join("data"));
        let mut log = open_in(&environment, &options, &mut NothingToReplay, &mut |_| {}).unwrap();
        log.writer.begin(&[1; 8]).unwrap();
        let end = log.writer.commit(1, 0, 0).0;
        log.writer.tell_keeper();
        log.writer.wait_durable().unwrap();
        let identity = *log.control.identity();
        Self { folder, log: Some(log), identity, end }
    }

    fn kill(&mut self) {
        let Log { writer, keeper, .. } = self.log.take().unwrap();
        keeper.stop();
        drop(writer);
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn remove_window(&self) {
        fs::remove_file(self.data().join("live").join(WINDOW_FILE)).unwrap();
    }

    fn write(&self, name: &str, bytes: &[u8], offset: u64) {
        let file = OpenOptions::new().write(true).open(self.data().join(name)).unwrap();
        file.write_all_at(bytes, offset).unwrap();
    }

    fn compare(&self, incarnation: u32) -> Result<(), RecoveryError> {
        let segments = segments_for_reading(&self.data()).unwrap();
        let shared_memory = self.folder.path().join("shm");
        compare_window(&self.data(), &shared_memory, &segments, Incarnation(incarnation))
    }

    fn attested(&self) -> u64 {
        attested_by_page(&self.data(), &self.folder.path().join("shm"), &self.identity)
    }
}

#[test]
fn only_a_window_that_counts_of_the_engine_that_is_asked_about_is_held_against_the_log() {
    let mut left = Left::new();
    left.kill();
    assert!(left.compare(1).is_ok(), "both are the same");
    left.write("log/00000000.seg", &[0xff; 8], left.end - 64);
    let differs = left.compare(1);
    assert!(matches!(differs, Err(RecoveryError::WindowDiffers { .. })), "{differs:?}");
    assert!(left.compare(2).is_ok(), "it is another engine's");
    left.remove_window();
    assert!(left.compare(1).is_ok(), "there is nothing to compare any more");
}

#[test]
fn a_page_vouches_for_what_was_durable_when_its_window_was_removed_unless_an_engine_runs() {
    let mut left = Left::new();
    left.remove_window();
    assert_eq!(left.attested(), 0, "it moves");
    left.kill();
    assert_eq!(left.attested(), left.end);
}

#[test]
fn a_page_vouches_for_all_that_was_appended_when_a_start_has_taken_its_window_out_of_use() {
    let mut left = Left::new();
    left.kill();
    assert_eq!(left.attested(), 0, "the window counts, and vouches for itself");
    // As of an engine that has died before anything of it was durable: the start has brought it to disk.
    let page = format!("live/{CONTROL_FILE}");
    left.write(&page, &0_u64.to_le_bytes(), DURABLE_OFFSET as u64);
    left.write(&page, &(LogState::Stopped as u32).to_le_bytes(), STATE_OFFSET as u64);
    assert_eq!(left.attested(), left.end);
}
