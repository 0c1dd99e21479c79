//! What a log that is there has taken of disk and memory already, so that nobody is asked for it twice. Called
//! by [`super::place`].

use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use touchline_protocol::log::control::WINDOW_FILE;
use touchline_protocol::log::place::WindowFolders;
use touchline_protocol::log::segment::{LogIdentity, SegmentError};
use touchline_protocol::log::{SEGMENT_FOLDER, segment_number, segment_path};
use touchline_protocol::regular_file;

/// What an engine goes on with, or has in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Taken {
    /// Bytes of each of the log's segments, whatever the settings say by now. `None` without a log.
    pub(super) segment_bytes: Option<u64>,
    /// Segments from the one that is written on.
    pub(super) segments: u64,
    /// Bytes of the live window in the data folder: a start takes them back.
    pub(super) window: u64,
    /// Likewise, in shared memory.
    pub(super) window_in_memory: u64,
}

impl Taken {
    /// By the log in `data`; what cannot be read counts as nothing.
    pub(super) fn of(data: &Path, shared_memory: &Path) -> Self {
        Self::find(data, shared_memory).unwrap_or_default()
    }

    fn find(data: &Path, shared_memory: &Path) -> Option<Self> {
        let folder = data.join(SEGMENT_FOLDER);
        let names = fs::read_dir(&folder).ok()?.flatten();
        let numbers = names.filter_map(|entry| segment_number(entry.file_name().to_str()?));
        let (first, last) = numbers.fold(None, |ends, number| {
            let (first, last) = ends.unwrap_or((number, number));
            Some((number.min(first), number.max(last)))
        })?;
        let header = |number| -> Option<_> {
            let mut header = [0; 64];
            let mut file = regular_file::open(&segment_path(&folder, number)).ok()?;
            file.read_exact(&mut header).ok()?;
            Some(LogIdentity::read_header(&header))
        };
        let (identity, _) = header(first)?.ok()?;
        // One that was made ahead gets its header with the first bytes behind.
        let is_ahead = last > first && matches!(header(last)?, Err(SegmentError::Blank));
        let folders = WindowFolders::of(data, &identity.log_id, shared_memory).ok()?;
        let window = |folder: &Path| fs::metadata(folder.join(WINDOW_FILE));
        let bytes = |folder| window(folder).map_or(0, |window| window.blocks() * 512);
        Some(Self {
            segment_bytes: Some(identity.segment_bytes),
            segments: if is_ahead { 2 } else { 1 },
            window: bytes(&folders.data),
            window_in_memory: bytes(&folders.shared_memory),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_segments_that_are_written_next_and_the_window_are_found() {
        let (data, memory) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let taken = || Taken::of(data.path(), memory.path());
        assert_eq!(taken(), Taken::default());
        let folder = data.path().join(SEGMENT_FOLDER);
        fs::create_dir(&folder).unwrap();
        let identity = LogIdentity { log_id: [7; 16], salt: 1, segment_bytes: 2 << 20 };
        let write = |number: u64, has_header: bool| {
            let mut header = vec![0; 4096];
            if has_header {
                identity.write_header(number, &mut header);
            }
            fs::write(segment_path(&folder, number), &header).unwrap();
        };
        // What is before was pruned.
        write(3, true);
        let present = Taken { segment_bytes: Some(2 << 20), segments: 1, ..Taken::default() };
        assert_eq!(taken(), present);
        write(4, false);
        assert_eq!(taken(), Taken { segments: 2, ..present });
        write(4, true);
        assert_eq!(taken(), present);
        let folders = WindowFolders::of(data.path(), &[7; 16], memory.path()).unwrap();
        for folder in [&folders.data, &folders.shared_memory] {
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join(WINDOW_FILE), vec![1; 1 << 20]).unwrap();
        }
        let Taken { window, window_in_memory, .. } = taken();
        assert!(window >= 1 << 20 && window_in_memory >= 1 << 20);
    }
}
