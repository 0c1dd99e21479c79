//! A segment of the window on its way from the body to the tail.

use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, memfd_create};
use touchline_protocol::shm::PeerAccess;

use super::*;

const BYTES: u64 = WINDOW_BYTES_MIN;

/// A new window with its two owners, and the control page.
pub(crate) fn window() -> (Tail, Body, Region) {
    let file: OwnedFd = memfd_create("window", MemfdFlags::CLOEXEC).unwrap();
    let file = File::from(file);
    file.set_len(BYTES).unwrap();
    let (control, _descriptor) = Region::create("control", 4096, PeerAccess::ReadOnly).unwrap();
    let window = Window::map(&file, BYTES).unwrap();
    let (tail, body) = window.split(&control, 0).unwrap();
    (tail, body, control)
}

/// Whole segments of ones.
pub(crate) fn publish(tail: &mut Tail, to: u64) {
    while tail.start() < to {
        let next = tail.start() + WINDOW_SEGMENT_BYTES;
        let from = tail.start();
        tail.bytes(from, next).fill(1);
        tail.publish(next);
    }
}

#[test]
fn a_segment_goes_to_the_tail_with_its_beginning_cleared() {
    let (mut tail, mut body, control) = window();
    let untouched = |_: u64, _: &mut [u8]| panic!("nothing is recycled");
    publish(&mut tail, WINDOW_SEGMENT_BYTES);
    assert_eq!(body.appended(), WINDOW_SEGMENT_BYTES);
    assert!(!body.recycle(WINDOW_SEGMENT_BYTES, untouched), "the tail still reads it");
    publish(&mut tail, 3 * WINDOW_SEGMENT_BYTES);
    assert_eq!(body.appended(), 3 * WINDOW_SEGMENT_BYTES);
    assert!(!body.recycle(WINDOW_SEGMENT_BYTES - 1, untouched), "not durable");
    assert!(!tail.reaches(BYTES + 1));

    let mut filled = Vec::new();
    let base = control.u64_at(WINDOW_BASE_OFFSET).unwrap();
    assert!(body.recycle(WINDOW_SEGMENT_BYTES, |position, bytes| {
        // Who reads the segment's old frames meanwhile finds them overtaken.
        assert_eq!(base.load(Ordering::Relaxed), WINDOW_SEGMENT_BYTES);
        assert!(bytes[..64].iter().all(|&byte| byte == 0));
        bytes[..8].fill(7);
        filled.push((position, bytes.len()));
    }));
    assert_eq!(filled, [(BYTES, CLEARED_BYTES as usize)]);
    let prepared = control.u64_at(PREPARED_UNTIL_OFFSET).unwrap();
    assert_eq!(base.load(Ordering::Relaxed), WINDOW_SEGMENT_BYTES);
    let handed = BYTES + WINDOW_SEGMENT_BYTES;
    assert_eq!((body.prepared(), prepared.load(Ordering::Relaxed)), (handed, handed));
    assert!(tail.reaches(handed));
    publish(&mut tail, BYTES);
    let given = tail.bytes(BYTES, handed);
    assert!(given[..8].iter().all(|&byte| byte == 7));
    assert!(given[8..CLEARED_BYTES as usize].iter().all(|&byte| byte == 0));
    assert!(given[CLEARED_BYTES as usize..].iter().all(|&byte| byte == 1), "its old frames");
    assert!(!body.recycle(WINDOW_SEGMENT_BYTES, untouched), "the next is not durable");
}

#[test]
fn bringing_bytes_near_changes_none() {
    let (mut tail, mut body, _control) = window();
    publish(&mut tail, BYTES - WINDOW_SEGMENT_BYTES);
    body.appended();
    for left in [WINDOW_SEGMENT_BYTES - 64, 4096, 512] {
        let all = tail.bytes(tail.start(), BYTES);
        for (byte, at) in all.iter_mut().zip(0..) {
            *byte = at as u8 ^ 0x5a;
        }
        let before = all.to_vec();
        assert!(tail.bring_near(512));
        assert_eq!(
            tail.bytes(tail.start(), BYTES),
            before,
            "in front of {left} bytes before the end"
        );
        tail.publish(BYTES - left);
    }
    assert!(tail.bring_near(512));
    assert!(!tail.bring_near(513), "beyond the window's end, and not handed up yet");
    tail.publish(BYTES);
    assert!(!tail.bring_near(64));
    assert!(body.recycle(WINDOW_SEGMENT_BYTES, |_, bytes| bytes.fill(7)));
    assert!(tail.bring_near(512));
    assert!(tail.bytes(BYTES, BYTES + 512).iter().all(|&byte| byte == 7));
}

#[test]
#[should_panic(expected = "of a window from 0 to 2097152")]
fn what_the_tail_has_not_published_is_not_lent() {
    let (mut tail, mut body, _control) = window();
    publish(&mut tail, WINDOW_SEGMENT_BYTES);
    body.appended();
    body.published(WINDOW_SEGMENT_BYTES - 8, WINDOW_SEGMENT_BYTES + 8);
}

#[test]
#[should_panic(expected = "of a window from 2097152 to")]
fn what_was_handed_to_the_tail_is_not_lent() {
    let (mut tail, mut body, _control) = window();
    publish(&mut tail, 3 * WINDOW_SEGMENT_BYTES);
    body.appended();
    assert!(body.recycle(WINDOW_SEGMENT_BYTES, |_, _| {}));
    body.published(WINDOW_SEGMENT_BYTES - 8, WINDOW_SEGMENT_BYTES);
}

/// A window of which the first lap is published, and as much of it handed up again as may be.
fn in_the_second_lap() -> (Tail, Body, Region) {
    let (mut tail, mut body, control) = window();
    publish(&mut tail, BYTES);
    body.appended();
    while body.recycle(BYTES, |_, _| {}) {}
    tail.reaches(body.prepared());
    (tail, body, control)
}

#[test]
fn as_much_as_the_body_ever_hands_up_is_believed() {
    // At its beginning a tail has all there can be.
    let (mut tail, _body, control) = window();
    assert_eq!(
        tail.prepared_most(),
        control.u64_at(PREPARED_UNTIL_OFFSET).unwrap().load(Ordering::Relaxed)
    );
    assert!(!tail.reaches(BYTES + 1));
    // Over two laps, by every position at which the body may look, as soon as it may.
    let (mut tail, mut body, _control) = in_the_second_lap();
    for _ in 0..2 * BYTES / WINDOW_SEGMENT_BYTES {
        for left in [WINDOW_SEGMENT_BYTES - 64, 64, 0] {
            let to = tail.start() + WINDOW_SEGMENT_BYTES;
            tail.publish(to - to % WINDOW_SEGMENT_BYTES - left);
            body.appended();
            while body.recycle(body.appended, |_, _| {}) {}
            assert!(tail.reaches(body.prepared()));
            assert!(body.prepared() <= tail.prepared_most());
        }
    }
}

#[test]
#[should_panic(expected = "the control page says that 18446744073709551615 is prepared")]
fn more_than_the_body_can_have_handed_up_is_not_believed() {
    let (mut tail, _body, control) = in_the_second_lap();
    control.u64_at(PREPARED_UNTIL_OFFSET).unwrap().store(u64::MAX, Ordering::Relaxed);
    // A byte that is published, once more.
    let to = tail.start() + BYTES;
    tail.reaches(to);
    tail.bytes(to - 64, to);
}

#[test]
#[should_panic(expected = "the control page says that 16777217 is prepared")]
fn a_byte_more_than_the_body_can_have_handed_up_is_not_believed() {
    let (mut tail, _body, control) = in_the_second_lap();
    let word = control.u64_at(PREPARED_UNTIL_OFFSET).unwrap();
    word.store(tail.prepared_most() + 1, Ordering::Relaxed);
    tail.reaches(u64::MAX);
}
