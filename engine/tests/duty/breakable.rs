//! The machine's disk until it is broken: then no write succeeds any more.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use touchline_engine::log::storage::GatedStorage;

/// EIO.
const IO_ERROR: i32 = 5;

#[derive(Default)]
pub(crate) struct Breakable {
    broken: Arc<AtomicBool>,
}

impl Breakable {
    /// From now on every write fails.
    pub(crate) fn break_down(&self) {
        self.broken.store(true, Ordering::SeqCst);
    }

    /// The disk.
    pub(crate) fn storage(&self) -> GatedStorage {
        let broken = Arc::clone(&self.broken);
        GatedStorage::new(move |_| {
            if broken.load(Ordering::SeqCst) {
                return Err(io::Error::from_raw_os_error(IO_ERROR));
            }
            Ok(true)
        })
    }
}
