//! What file system the folder for temporary data is on, printed with every measurement that writes there: in memory
//! there is no disk to be measured. Called by the measurements.

use std::path::Path;

use anyhow::{Context, Result};
use rustix::fs::{FsWord, statfs};
use serde::Serialize;

/// How file systems tell what they are, and what they are called; those in memory first.
const KINDS: [(FsWord, &str); 10] = [
    (0x0102_1994, "tmpfs"),
    (0x8584_58f6, "ramfs"),
    (0xef53, "ext4"),
    (0x5846_5342, "xfs"),
    (0x9123_683e, "btrfs"),
    (0xf2f5_2010, "f2fs"),
    (0x2fc1_2fc1, "zfs"),
    (0x794c_7630, "overlay"),
    (0x6969, "nfs"),
    (0x6573_5546, "fuse"),
];

/// Of [`KINDS`], those in memory.
const IN_MEMORY: usize = 2;

/// The file system below a folder for temporary data.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Scratch {
    /// What it is called, or its number in hexadecimal.
    pub file_system: String,
    /// Whether it lies in memory: what is written there reaches no disk.
    pub in_memory: bool,
}

impl Scratch {
    /// Looks.
    ///
    /// # Errors
    /// If there is no such folder.
    pub fn of(folder: &Path) -> Result<Self> {
        let found = statfs(folder).with_context(|| folder.display().to_string())?;
        Ok(Self::kind(found.f_type))
    }

    fn kind(number: FsWord) -> Self {
        let index = KINDS.iter().position(|(kind, _)| *kind == number);
        Self {
            file_system: index
                .map_or_else(|| format!("{number:#x}"), |index| KINDS[index].1.to_owned()),
            in_memory: index.is_some_and(|index| index < IN_MEMORY),
        }
    }

    /// One line.
    #[must_use]
    pub fn line(&self) -> String {
        let memory = if self.in_memory {
            ", in memory: no disk is in any figure; name a folder on a disk by --scratch"
        } else {
            ""
        };
        format!("{}{memory}", self.file_system)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_told_from_disks() {
        let memory = Scratch::of(Path::new("/dev/shm")).unwrap();
        assert!(memory.in_memory && memory.line().contains("no disk"), "{memory:?}");
        let disk = Scratch::kind(0xef53);
        assert_eq!((disk.line().as_str(), disk.in_memory), ("ext4", false));
        assert_eq!(Scratch::kind(0x1234_5678).line(), "0x12345678");
        assert!(Scratch::of(Path::new("/no such folder")).is_err());
    }
}
