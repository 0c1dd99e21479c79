//! A segment of the window on its way from the body to the tail.

use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, memfd_create};
use touchline_protocol::shm::PeerAccess;

use super::*;

const BYTES: u64 = WINDOW_BYTES_MIN;

/// A new window with its two owners, and the control page.
fn window() -> (Tail, Body, Region) {
    let file: OwnedFd = memfd_create("window", MemfdFlags::CLOEXEC).unwrap();
    let file = File::from(file);
    file.set_len(BYTES).unwrap();
    let (control, _descriptor) = Region::create("control", 4096, PeerAccess::ReadOnly).unwrap();
    let window = Window::map(&file, BYTES).unwrap();
    let (tail, body) = window.split(&control, 0).unwrap();
    (tail, body, control)
}

fn publish(tail: &mut Tail, to: u64) {
    while tail.start() < to {
        let next = tail.start() + WINDOW_SEGMENT_BYTES;
        let from = tail.start();
        tail.bytes(from, next).fill(1);
        tail.publish(next);
    }
}

#[test]
fn a_segment_is_zeroed_in_parts_and_handed_over_whole() {
    let (mut tail, mut body, control) = window();
    publish(&mut tail, 3 * WINDOW_SEGMENT_BYTES);
    assert_eq!(body.appended(), 3 * WINDOW_SEGMENT_BYTES);
    let untouched = |_: u64, _: &mut [u8]| panic!("nothing is recycled");
    assert_eq!(body.recycle(WINDOW_SEGMENT_BYTES - 1, untouched), Recycled::Nothing, "not durable");

    let base = control.u64_at(WINDOW_BASE_OFFSET).unwrap();
    let prepared = control.u64_at(PREPARED_UNTIL_OFFSET).unwrap();
    let parts = WINDOW_SEGMENT_BYTES / PART_BYTES;
    let mut filled = Vec::new();
    for part in 1..=parts {
        let recycled = body.recycle(WINDOW_SEGMENT_BYTES, |position, bytes| {
            bytes[..8].fill(7);
            filled.push(position);
        });
        let is_last = part == parts;
        assert_eq!(recycled, if is_last { Recycled::Whole } else { Recycled::Part });
        // Nobody may read it from the first part on, and nobody may write to it before the last.
        assert_eq!(base.load(Ordering::Relaxed), WINDOW_SEGMENT_BYTES);
        let handed = if is_last { BYTES + WINDOW_SEGMENT_BYTES } else { BYTES };
        assert_eq!((body.prepared(), prepared.load(Ordering::Relaxed)), (handed, handed));
        assert_eq!(tail.reaches(BYTES + 1), is_last);
    }
    assert_eq!(filled, [BYTES], "once, at its beginning");
    publish(&mut tail, BYTES);
    let given = tail.bytes(BYTES, BYTES + WINDOW_SEGMENT_BYTES);
    assert!(given[..8].iter().all(|&byte| byte == 7));
    assert!(given[8..].iter().all(|&byte| byte == 0));
    assert_eq!(body.recycle(WINDOW_SEGMENT_BYTES, untouched), Recycled::Nothing, "the next is not");
}

#[test]
#[should_panic(expected = "of a window from 2097152 to")]
fn what_is_being_zeroed_is_not_copied() {
    let (mut tail, mut body, _control) = window();
    publish(&mut tail, 3 * WINDOW_SEGMENT_BYTES);
    body.appended();
    assert_eq!(body.recycle(WINDOW_SEGMENT_BYTES, |_, _| {}), Recycled::Part);
    body.copy(WINDOW_SEGMENT_BYTES - 8, &mut [0; 8]);
}
