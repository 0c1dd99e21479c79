//! A process id in a file of the data folder, for people. Written by the engine ([`crate::run`]), and by the
//! supervisor beside it.

use std::fs;
use std::path::PathBuf;

use crate::notice::alert;

/// The file, which is gone with the process that wrote it, also where a start is refused.
#[derive(Debug)]
pub struct PidFile(PathBuf);

impl PidFile {
    /// Writes this process's id, in decimal, in place of what is there. Whoever calls holds the data folder's
    /// lock, or has seen that its own engine does: else it is another's that is replaced. One that cannot be
    /// written is told, and no reason not to go on: a full disk would keep a venue from a start that needs none.
    #[must_use]
    pub fn write(path: PathBuf) -> Self {
        if let Err(error) = fs::write(&path, std::process::id().to_string()) {
            alert!("cannot write the process id to {}: {error}", path.display());
            // Half of one would name another process.
            let _gone = fs::remove_file(&path);
        }
        Self(path)
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // A file that is gone already needs no removing.
        let _gone = fs::remove_file(&self.0);
    }
}
