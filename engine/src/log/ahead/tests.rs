//! Segments that are made ahead are whole when they are needed, however their zeros were spread.

use std::{
    io::IoSlice,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use touchline_protocol::log::{BLOCK_BYTES, segment::LogIdentity, segment_path};

use crate::log::{
    ahead::{Load, SMALL_PART},
    disk::{DiskLog, aligned_buffer},
    storage::{FileStorage, GatedStorage, Storage, Write},
};
use crate::patience::eventually;
use crate::skipped::skipped;

/// Larger than what the zeros lead by, so that they are spread.
const SEGMENT: u64 = 16 << 20;

fn segment_bytes(folder: &Path, number: u64) -> Vec<u8> {
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
        disk.write(position, &[IoSlice::new(&block)]).unwrap();
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
    assert!(eventually(|| path.exists()), "no segment is made");
    assert!(segment_bytes(folder.path(), 1).iter().all(|&byte| byte == 0));
}

#[test]
fn in_a_flood_segments_are_not_filled() {
    // The first one, and what was done of the second before the maker was told.
    needed_segments_are_not_filled(Load::Flood, Duration::ZERO, 2);
}

#[test]
fn in_a_burst_segments_are_not_filled_either_and_made_when_they_are_needed() {
    needed_segments_are_not_filled(Load::Burst, Duration::ZERO, 2);
}

#[test]
fn nobody_waits_for_zeros_that_a_burst_has_put_off() {
    // All of them have some, since nothing else is to be written; with all they would have eight segments' zeros.
    needed_segments_are_not_filled(Load::Calm, Duration::from_millis(20), 7);
}

/// Eight segments, each needed at once, on a disk that takes so long for a part of the zeros.
fn needed_segments_are_not_filled(load: Load, part: Duration, segments_filled_max: u64) {
    let folder = tempfile::tempdir().unwrap();
    let reserves = FileStorage.create(&folder.path().join("one"), 4096).unwrap().is_reserved();
    if !reserves {
        return skipped("file system that reserves space");
    }
    let identity = LogIdentity { log_id: [1; 16], salt: 2, segment_bytes: SEGMENT };
    let zeros = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&zeros);
    let storage = GatedStorage::new(move |write| {
        if let Write::Unsynced(bytes) = write {
            counted.fetch_add(bytes as u64, Ordering::Relaxed);
            std::thread::sleep(part);
        }
        Ok(true)
    });
    let mut disk = DiskLog::new(Arc::new(storage), folder.path().to_owned(), identity, 0).unwrap();
    disk.create_first().unwrap();
    let mut disk = disk.make_ahead().unwrap();
    disk.set_load(load);
    let mut block = aligned_buffer(BLOCK_BYTES).unwrap();
    block.fill(7);
    for number in 1..=8 {
        disk.write(number * SEGMENT, &[IoSlice::new(&block)]).unwrap();
    }
    assert!(zeros.load(Ordering::Relaxed) <= segments_filled_max * SEGMENT);
    for number in 2..=8 {
        let bytes = segment_bytes(folder.path(), number);
        assert!(bytes[..BLOCK_BYTES as usize].iter().all(|&byte| byte == 7));
        assert!(bytes[BLOCK_BYTES as usize..].iter().all(|&byte| byte == 0));
    }
    let next = segment_path(folder.path(), 9);
    if load == Load::Burst {
        // As often as a maker looks that would make it.
        let all = disk.maker_turns() + SEGMENT / SMALL_PART + 2;
        let is_over = || next.exists() || disk.maker_turns() >= all;
        assert!(eventually(is_over), "the maker does not turn");
        assert!(!next.exists(), "nobody waits for it");
        disk.set_load(Load::Calm);
    }
    assert!(eventually(|| next.exists()), "no segment is made");
}
