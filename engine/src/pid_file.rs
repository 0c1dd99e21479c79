//! A process id in a file of the data folder, for people. Written by the engine ([`crate::run`]), and by the
//! supervisor beside it.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use touchline_protocol::regular_file;

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
        let written = regular_file::replace(&path, 0o644)
            .and_then(|mut file| file.write_all(std::process::id().to_string().as_bytes()));
        if let Err(error) = written {
            alert!("cannot write the process id to {}: {error}", path.display());
            // Half of one would name another process.
            let _gone = fs::remove_file(&path);
        }
        Self(path)
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // Behind the lock it may be another's by now.
        let own = std::process::id().to_string();
        if regular_file::read_bounded(&self.0, own.len()).is_ok_and(|found| found == own.as_bytes())
        {
            // A file that is gone already needs no removing.
            let _gone = fs::remove_file(&self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_link_in_its_place_leads_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("engine.pid"), folder.path().join("other"));
        fs::write(&other, "somebody's").unwrap();
        symlink(&other, &path).unwrap();
        let file = PidFile::write(path.clone());
        assert_eq!(fs::read_to_string(&other).unwrap(), "somebody's");
        assert_eq!(fs::read_to_string(&path).unwrap(), std::process::id().to_string());
        drop(file);
        assert!(!path.exists() && other.exists());
    }

    #[test]
    fn one_that_another_process_has_written_since_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("up.pid");
        for others in ["1", &format!("{}0", std::process::id())] {
            let file = PidFile::write(path.clone());
            fs::write(&path, others).unwrap();
            drop(file);
            assert_eq!(fs::read_to_string(&path).unwrap(), others);
        }
    }
}
