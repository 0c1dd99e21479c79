//! The machine's disk until it is broken, then no write succeeds any more; or held up, then none comes to its
//! end, but for a test that has failed: its keeper is waited for, and ends with the writes.

use crate::patience::HOLD_PATIENCE;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use touchline_engine::log::storage::GatedStorage;

/// EIO.
const IO_ERROR: i32 = 5;

#[derive(Default)]
pub(crate) struct Breakable {
    broken: Arc<AtomicBool>,
    held_up: Arc<AtomicBool>,
}

impl Drop for Breakable {
    fn drop(&mut self) {
        self.hold_up(false);
    }
}

impl Breakable {
    /// From now on every write fails.
    pub(crate) fn break_down(&self) {
        self.broken.store(true, Ordering::SeqCst);
    }

    /// Whether from now on every write waits until none is held up any more.
    pub(crate) fn hold_up(&self, held_up: bool) {
        self.held_up.store(held_up, Ordering::SeqCst);
    }

    /// The disk.
    pub(crate) fn storage(&self) -> GatedStorage {
        let (broken, held_up) = (Arc::clone(&self.broken), Arc::clone(&self.held_up));
        GatedStorage::new(move |_| {
            let begin = Instant::now();
            while held_up.load(Ordering::SeqCst) {
                assert!(begin.elapsed() < HOLD_PATIENCE, "writes are held up for ever");
                thread::sleep(Duration::from_millis(1));
            }
            if broken.load(Ordering::SeqCst) {
                return Err(io::Error::from_raw_os_error(IO_ERROR));
            }
            Ok(true)
        })
    }
}
