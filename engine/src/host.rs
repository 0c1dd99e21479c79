//! What the machine grants to an engine, tried out as the engine would use it. Called by
//! `touchline doctor`, and where room is made for the live window or a snapshot.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::process;
use std::time::{Duration, Instant};

use crate::gateway;
use crate::log::DiskError;
use crate::log::disk::{aligned_buffer, disk_error};
use crate::log::live;
use crate::log::storage::{FileStorage, Storage, grants_direct};
use rustix::fs::{StatVfs, statvfs};
use touchline_protocol::log::BLOCK_BYTES;

/// Name of the file that is written to while a folder is tried, and removed before that begins.
const TRIAL_FILE: &str = "trial";

/// How the disk under a folder takes what is to be durable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiskTrial {
    /// Blocks are written past the page cache; where that is refused each goes through it.
    pub is_direct: bool,
    /// Times of single durable writes of one block of 4 KiB, ascending, never none.
    pub writes: Vec<Duration>,
}

/// Writes `count` blocks, one by one, as the log does. Leaves nothing behind.
///
/// # Errors
/// What the disk says, and at what.
pub fn try_disk(folder: &Path, count: usize) -> Result<DiskTrial, DiskError> {
    // Others may write in the folder, too, such as that for temporary files: a link of theirs would lead to somebody's
    // file. So the trial has a folder within, which is new, and nobody else's to enter.
    let number =
        getrandom::u32().map_err(io::Error::other).map_err(disk_error("trying", folder))?;
    let within = folder.join(format!("doctor-{}-{number:08x}", process::id()));
    let made = DirBuilder::new().mode(0o700).create(&within);
    made.map_err(disk_error("making", &within))?;
    let path = within.join(TRIAL_FILE);
    let failed = |what| disk_error(what, &path);
    let count = count.max(1) as u64;
    let made = FileStorage.create(&path, count * BLOCK_BYTES).map_err(failed("making"));
    let made = made.and_then(|file| {
        let is_direct = grants_direct(&path).map_err(failed("opening"))?;
        Ok((file, is_direct))
    });
    // It goes at once, so that nothing is left whatever ends this.
    let removed = FileStorage.remove(&path).map_err(failed("removing"));
    let emptied = fs::remove_dir(&within).map_err(disk_error("removing", &within));
    let (file, is_direct) = made?;
    removed.and(emptied)?;
    let mut block = aligned_buffer(BLOCK_BYTES)?;
    block.fill(1);
    for number in 0..count {
        let zeroed = file.write_unsynced(number * BLOCK_BYTES, &block);
        zeroed.map_err(failed("filling"))?;
    }
    file.sync().map_err(failed("syncing"))?;
    let mut writes = Vec::with_capacity(count as usize);
    for number in 0..count {
        let begin = Instant::now();
        file.write_blocks(number * BLOCK_BYTES, &block).map_err(failed("writing to"))?;
        writes.push(begin.elapsed());
    }
    writes.sort_unstable();
    Ok(DiskTrial { is_direct, writes })
}

/// Bytes that are free for this user on a folder's file system; [`u64::MAX`] on one without a limit.
///
/// # Errors
/// What the system says.
pub fn free_bytes(folder: &Path) -> io::Result<u64> {
    Ok(free_of(&statvfs(folder)?))
}

/// As [`free_bytes`], of what the system says of a file system.
pub(crate) const fn free_of(disk: &StatVfs) -> u64 {
    // A RAM-backed one without a limit counts no blocks.
    if disk.f_blocks == 0 { u64::MAX } else { disk.f_bavail.saturating_mul(disk.f_frsize) }
}

/// Whether a live window's folder can be made in `shared_memory`, which has room or not. Leaves nothing behind.
///
/// # Errors
/// What is in the way.
pub fn try_shared_memory(shared_memory: &Path) -> io::Result<()> {
    live::try_shared_memory(shared_memory)
}

/// Whether the gateway may use io_uring here.
///
/// # Errors
/// What refuses it.
pub fn try_io_uring() -> io::Result<()> {
    gateway::try_io_uring()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_folder_is_left_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let trial = try_disk(folder.path(), 3).unwrap();
        assert_eq!(trial.writes.len(), 3);
        assert!(trial.writes.is_sorted());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_others_have_put_there_is_not_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("other");
        fs::write(&other, "somebody's").unwrap();
        for name in ["doctor.trial", TRIAL_FILE] {
            symlink(&other, folder.path().join(name)).unwrap();
        }
        try_disk(folder.path(), 3).unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "somebody's");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "the links too");
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = try_disk(&folder.path().join("nowhere"), 3).unwrap_err().to_string();
        assert!(error.contains("nowhere"), "{error}");
    }
}
