//! The log: how transactions lie on disk and in the live window, where both are found, and the
//! reader that follows them. Written by the engine; read by recovery, views, snapshots and tools.
//!
//! A *position* is a byte offset since the log's beginning. The disk log is cut into segment files
//! of equal size, so that a position is a file and an offset by one division; the live window is a
//! ring in memory that holds the newest bytes, the same ones at the same positions:
//!
//! ```text
//! position    0                 S                 2S                3S
//! disk        ├─H───────────────┼─H───────────────┼─H──────┄┄┄┄┄┄┄┄┄┤   H: segment header, 4 KiB
//!               00000000.seg      00000001.seg      00000002.seg
//!                                                     durable ┘
//! window                           ├──────┼──────┼──────┼──────┤       a segment of it: 2 MiB
//!                            window_base         appended ┘    prepared_until = window_base + W
//! ```
//!
//! [`segment`] describes the segment header, [`frame`] what stands between the headers, [`checksum`]
//! what tells a sound frame, [`control`] the page of watermarks beside the window, [`place`] where window
//! and control page lie, [`reader`] follows it all, and [`lease`] is how a reader says what it still needs.

pub mod checksum;
pub mod control;
pub mod frame;
pub mod lease;
pub mod place;
pub mod reader;
pub mod segment;
pub mod transaction;

use std::path::{Path, PathBuf};

/// Bytes of a segment of the live window. Disk segments are multiples of it, and no frame crosses
/// such a boundary.
pub const WINDOW_SEGMENT_BYTES: u64 = 2 << 20;

/// Bytes of a disk segment unless chosen otherwise when the log is made.
pub const SEGMENT_BYTES_DEFAULT: u64 = 64 << 20;

/// Bytes at the beginning of each disk segment that its header takes.
pub const SEGMENT_HEADER_BYTES: u64 = 4096;

/// The unit in which the disk log is written.
pub const BLOCK_BYTES: u64 = 4096;

/// Frames begin at multiples of it: one cache line.
pub const FRAME_ALIGN: u64 = 64;

/// Largest frame in bytes, header included. With fewer bytes left before the next boundary of
/// [`WINDOW_SEGMENT_BYTES`], the writer pads up to that boundary.
pub const MAX_FRAME_BYTES: usize = 64 << 10;

/// Smallest live window in bytes.
pub const WINDOW_BYTES_MIN: u64 = 4 * WINDOW_SEGMENT_BYTES;

/// Largest live window in bytes that is chosen without being asked for.
pub const WINDOW_BYTES_AUTO: u64 = 64 << 20;

/// Name of the folder of disk segments within the data folder.
pub const SEGMENT_FOLDER: &str = "log";

const _: () = {
    assert!(SEGMENT_BYTES_DEFAULT.is_multiple_of(WINDOW_SEGMENT_BYTES));
    assert!(WINDOW_SEGMENT_BYTES.is_multiple_of(BLOCK_BYTES));
    assert!(SEGMENT_HEADER_BYTES.is_multiple_of(BLOCK_BYTES));
    assert!(BLOCK_BYTES.is_multiple_of(FRAME_ALIGN));
    assert!((MAX_FRAME_BYTES as u64).is_multiple_of(FRAME_ALIGN));
    assert!(MAX_FRAME_BYTES as u64 + SEGMENT_HEADER_BYTES <= WINDOW_SEGMENT_BYTES);
};

/// The next multiple of [`FRAME_ALIGN`] at or above `end`: where the frame behind one that ends at
/// `end` begins, unless a segment header comes first.
#[must_use]
pub const fn align_frame(end: u64) -> u64 {
    end.next_multiple_of(FRAME_ALIGN)
}

/// Where the frame that follows at `position` begins: behind the segment header, if one stands there.
#[must_use]
pub const fn frame_start(position: u64, segment_bytes: u64) -> u64 {
    if position.is_multiple_of(segment_bytes) { position + SEGMENT_HEADER_BYTES } else { position }
}

/// Bytes from `position` to the next boundary of [`WINDOW_SEGMENT_BYTES`]: 1 to the whole of it.
#[must_use]
pub const fn window_segment_rest(position: u64) -> u64 {
    WINDOW_SEGMENT_BYTES - position % WINDOW_SEGMENT_BYTES
}

/// True for a size that disk segments may have: a multiple of [`WINDOW_SEGMENT_BYTES`], at most 1 TiB.
#[must_use]
pub const fn is_segment_size(bytes: u64) -> bool {
    bytes > 0 && bytes <= 1 << 40 && bytes.is_multiple_of(WINDOW_SEGMENT_BYTES)
}

/// The file of the disk segment `number` in the segment folder `folder`.
#[must_use]
pub fn segment_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:08}.seg"))
}

/// The number in the name of a disk segment; `None` for any other name.
#[must_use]
pub fn segment_number(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".seg")?;
    let number = digits.parse().ok()?;
    // Only the one spelling that `segment_path` gives, so that no two names mean one segment.
    (format!("{number:08}") == digits).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segment_names_go_both_ways() {
        for number in [0, 7, 99_999_999, 100_000_000] {
            let path = segment_path(Path::new("log"), number);
            assert_eq!(segment_number(path.file_name().unwrap().to_str().unwrap()), Some(number));
        }
        for name in ["7.seg", "+0000001.seg", "000000001.seg", "00000001.seg.new", "00000001.se"] {
            assert_eq!(segment_number(name), None, "{name}");
        }
    }

    #[test]
    fn frames_begin_behind_segment_headers() {
        let segment = 2 * WINDOW_SEGMENT_BYTES;
        assert_eq!(frame_start(0, segment), 4096);
        assert_eq!(frame_start(WINDOW_SEGMENT_BYTES, segment), WINDOW_SEGMENT_BYTES);
        assert_eq!(frame_start(segment, segment), segment + 4096);
        assert_eq!(frame_start(segment + 64, segment), segment + 64);
        assert_eq!(window_segment_rest(0), WINDOW_SEGMENT_BYTES);
        assert_eq!(window_segment_rest(WINDOW_SEGMENT_BYTES - 64), 64);
    }
}
