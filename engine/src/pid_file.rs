//! A process id in a file of the data folder, for people. Written by the engine ([`crate::run`]), and by the
//! supervisor beside it.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

/// The file, which is gone with the process that wrote it, also where a start is refused.
#[derive(Debug)]
pub struct PidFile(PathBuf);

impl PidFile {
    /// Writes this process's id, in decimal, in place of what is there. Whoever calls holds the data folder's
    /// lock, or has seen that its own engine does: else it is another's that is replaced.
    ///
    /// # Errors
    /// If the file cannot be written; names it.
    pub fn write(path: PathBuf) -> Result<Self> {
        fs::write(&path, std::process::id().to_string())
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // A file that is gone already needs no removing.
        let _gone = fs::remove_file(&self.0);
    }
}
