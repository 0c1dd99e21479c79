//! Segments that are made ahead are whole when they are needed, however their zeros were spread.

use std::sync::Arc;

use touchline_protocol::log::{BLOCK_BYTES, segment::LogIdentity, segment_path};

use crate::log::{
    disk::{DiskLog, aligned_buffer},
    storage::{FileStorage, Storage},
};

/// Larger than what the zeros lead by, so that they are spread.
const SEGMENT: u64 = 16 << 20;

fn segment_bytes(folder: &std::path::Path, number: u64) -> Vec<u8> {
    let mut bytes = vec![1; SEGMENT as usize];
    let file = FileStorage.open(&segment_path(folder, number)).unwrap();
    file.read(0, &mut bytes).unwrap();
    bytes
}

#[test]
fn segments_that_were_spread_over_time_are_whole() {
    let folder = tempfile::tempdir().unwrap();
    let identity = LogIdentity { log_id: [1; 16], salt: 2, segment_bytes: SEGMENT };
    let storage = Arc::new(FileStorage);
    let mut disk = DiskLog::new(storage, folder.path().to_owned(), identity, 0).unwrap();
    disk.create_first().unwrap();
    let mut disk = disk.make_ahead().unwrap();
    let mut block = aligned_buffer(BLOCK_BYTES).unwrap();
    block.fill(7);
    // At the first write nothing is ahead; the others find the maker somewhere in its parts.
    for position in [BLOCK_BYTES, SEGMENT - BLOCK_BYTES, SEGMENT, 2 * SEGMENT, 3 * SEGMENT] {
        disk.write(position, &block).unwrap();
    }
    for (number, written) in [(0, 2), (1, 1), (2, 1), (3, 1)] {
        let bytes = segment_bytes(folder.path(), number);
        let sevens = bytes.iter().filter(|&&byte| byte == 7).count() as u64;
        assert_eq!(sevens, written * BLOCK_BYTES, "in segment {number}");
        let behind = if number == 0 { 2 * BLOCK_BYTES } else { BLOCK_BYTES };
        let blank = &bytes[behind as usize..(SEGMENT - BLOCK_BYTES) as usize];
        assert!(blank.iter().all(|&byte| byte == 0), "segment {number} is zeroed");
    }
}

#[test]
fn a_segment_is_made_though_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let identity = LogIdentity { log_id: [1; 16], salt: 2, segment_bytes: SEGMENT };
    let storage = Arc::new(FileStorage);
    let mut disk = DiskLog::new(storage, folder.path().to_owned(), identity, 0).unwrap();
    disk.create_first().unwrap();
    let _disk = disk.make_ahead().unwrap();
    let path = segment_path(folder.path(), 1);
    while !path.exists() {
        std::thread::yield_now();
    }
    assert!(segment_bytes(folder.path(), 1).iter().all(|&byte| byte == 0));
}
