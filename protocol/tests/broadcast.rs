//! The broadcast ring against a naive model, in shared memory too, and while a writer laps its readers
//! without pause.

#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

use proptest::prelude::*;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use touchline_protocol::feed::broadcast::{
    BroadcastOutput, BroadcastReader, Broadcaster, HeapBroadcast, Overrun, message_bytes,
};
use touchline_protocol::feed::layout::{BUSY, MARK_WORD, SLOT_WORDS, SLOTS_MIN, memory_bytes};
use touchline_protocol::feed::{FeedInput, FeedMemoryError, FeedOutput};
use touchline_protocol::message::decode::{self, FeedMessage};
use touchline_protocol::message::feed::{FeedOrderAdded, FeedTrade};
use touchline_protocol::message::{Message, MessageHeader};
use touchline_protocol::shm::{Region, ShmError};
use touchline_protocol::units::{FeedSequence, Incarnation, OrderId, TradeId};

fn words<M: Message>(message: &M) -> [u64; SLOT_WORDS] {
    let mut words = [0; SLOT_WORDS];
    bytemuck::cast_slice_mut(&mut words)[..size_of::<M>()]
        .copy_from_slice(bytemuck::bytes_of(message));
    words
}

/// A long and a short kind by turns, whose every field says which message it is.
fn numbered(number: u64) -> [u64; SLOT_WORDS] {
    let (order_id, price, quantity) = (OrderId(number), number as i64, number as i64);
    if number.is_multiple_of(3) {
        let trade_id = TradeId(number);
        words(&FeedTrade { order_id, price, quantity, trade_id, ..Default::default() })
    } else {
        words(&FeedOrderAdded { order_id, price, quantity, ..Default::default() })
    }
}

fn is_whole(read: &[u64; SLOT_WORDS], number: u64) {
    let mut expected = numbered(number);
    expected[1] = number;
    assert_eq!(message_bytes(read), message_bytes(&expected), "message {number}");
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Write(u64),
    Read(usize, u64),
    Seek(usize, u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (1..20u64).prop_map(Step::Write),
        (0..3usize, 1..20u64).prop_map(|(reader, count)| Step::Read(reader, count)),
        (0..3usize, 0..200u64).prop_map(|(reader, last)| Step::Seek(reader, last)),
    ];
    proptest::collection::vec(step, 0..80)
}

proptest! {
    /// Of `n` slots the last `n` messages can be read, each whole; what is older is an overrun, and what
    /// is newer is not there.
    #[test]
    fn the_last_lap_can_be_read_and_nothing_else(
        steps in steps(), slots in prop_oneof![Just(1u64), Just(2), Just(8), Just(64)],
    ) {
        let memory = HeapBroadcast::new(slots as usize);
        let mut output = Broadcaster::new(memory.clone());
        let mut readers = [(); 3].map(|()| (BroadcastReader::new(memory.clone()), 1));
        let mut last = 0;
        for step in steps {
            match step {
                Step::Write(count) => {
                    for _ in 0..count {
                        last += 1;
                        output.write(&mut numbered(last));
                    }
                    output.publish();
                }
                Step::Seek(reader, to) => {
                    readers[reader].0.seek(FeedSequence(to));
                    readers[reader].1 = to + 1;
                }
                Step::Read(reader, count) => {
                    let (reader, next) = &mut readers[reader];
                    for _ in 0..count {
                        let mut read = [0; SLOT_WORDS];
                        let polled = reader.poll(&mut read);
                        if *next > last {
                            prop_assert_eq!(polled, Ok(false));
                        } else if *next + slots <= last {
                            let expected = FeedSequence(*next);
                            let found = FeedSequence(last - (last - *next) % slots);
                            prop_assert_eq!(polled, Err(Overrun { expected, found }));
                        } else {
                            prop_assert_eq!(polled, Ok(true));
                            is_whole(&read, *next);
                            *next += 1;
                        }
                        prop_assert_eq!(reader.next_sequence(), FeedSequence(*next));
                        prop_assert_eq!(reader.has_more(), *next <= last);
                    }
                    prop_assert_eq!(reader.published(), FeedSequence(last));
                }
            }
        }
    }
}

/// Says at its end that nothing more is written.
struct IsDone<'a>(&'a AtomicBool);

impl Drop for IsDone<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn readers_that_are_lapped_all_the_time_never_read_a_torn_message() {
    const MESSAGES: u64 = 300_000;
    let memory = HeapBroadcast::new(2);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Also where the writer fails: or the readers would read on.
        let _done = IsDone(&done);
        for _ in 0..2 {
            let mut reader = BroadcastReader::new(memory.clone());
            let done = &done;
            scope.spawn(move || {
                let mut read = [0; SLOT_WORDS];
                while !(done.load(Ordering::Acquire) && reader.published() < reader.next_sequence())
                {
                    let next = reader.next_sequence().0;
                    match reader.poll(&mut read) {
                        Ok(true) => is_whole(&read, next),
                        Ok(false) => std::thread::yield_now(),
                        Err(_) => reader.seek(FeedSequence(reader.published().0.max(next))),
                    }
                }
            });
        }
        let mut output = Broadcaster::new(memory.clone());
        for number in 1..=MESSAGES {
            output.write(&mut numbered(number));
            output.publish();
        }
    });
}

#[test]
fn readers_map_the_memory_and_cannot_write_it() {
    let (output, memory) = FeedOutput::create(SLOTS_MIN, Incarnation(7), [1; 16]).unwrap();
    let mut output = Broadcaster::new(output);
    let mut reader = BroadcastReader::new(FeedInput::map(memory.as_fd(), SLOTS_MIN).unwrap());
    let mut read = [0; SLOT_WORDS];
    assert_eq!(reader.poll(&mut read), Ok(false));
    output.write(&mut numbered(1));
    output.publish();
    assert_eq!(reader.poll(&mut read), Ok(true));
    is_whole(&read, 1);
    assert!(matches!(
        decode::feed(message_bytes(&read)),
        Ok(FeedMessage::FeedOrderAdded(FeedOrderAdded { sequence: FeedSequence(1), .. }))
    ));
    assert!(!reader.memory().has_ended());
    output.memory().end();
    assert!(reader.memory().has_ended());

    let bytes = memory_bytes(SLOTS_MIN);
    assert!(matches!(
        Region::from_descriptor(memory.as_fd(), bytes),
        Err(ShmError::System { what: "writable mapping", .. })
    ));
    assert!(matches!(
        FeedInput::map(memory.as_fd(), 2 * SLOTS_MIN),
        Err(FeedMemoryError::Shm(ShmError::Size { .. }))
    ));
    for slots in [0, 1, SLOTS_MIN - 1, SLOTS_MIN + 1, u32::MAX] {
        let mapped = FeedInput::map(memory.as_fd(), slots);
        assert!(matches!(mapped, Err(FeedMemoryError::Slots { .. })), "{slots}");
        let made = FeedOutput::create(slots, Incarnation(1), [0; 16]);
        assert!(matches!(made, Err(FeedMemoryError::Slots { .. })), "{slots}");
    }
    let (_, other) =
        Region::create("no feed", bytes, touchline_protocol::shm::PeerAccess::ReadOnly).unwrap();
    assert!(matches!(
        FeedInput::map(other.as_fd(), SLOTS_MIN),
        Err(FeedMemoryError::Header { magic: [0, 0, 0, 0, 0, 0, 0, 0], .. })
    ));
}

#[test]
fn what_a_slot_says_of_a_length_stays_in_the_slot() {
    let mut slot = numbered(1);
    for stated in [0u16, 1, 7, 119, 120, 121, u16::MAX] {
        let header = MessageHeader { block_length: stated, ..MessageHeader::of::<FeedTrade>() };
        slot[0] = bytemuck::cast(header);
        let (memory, mut read) = (HeapBroadcast::new(1), [0; SLOT_WORDS]);
        Broadcaster::new(memory.clone()).write(&mut slot);
        assert_eq!(BroadcastReader::new(memory).poll(&mut read), Ok(true), "{stated}");
        assert_eq!(message_bytes(&read).len(), (8 + usize::from(stated)).min(128));
        assert!(decode::feed(message_bytes(&read)).is_err(), "{stated}");
    }
}

#[test]
fn a_message_that_is_being_written_is_not_there_yet_and_has_overrun_the_one_before() {
    let ring = HeapBroadcast::new(8);
    let mut reader = BroadcastReader::new(ring.clone());
    let mut into = [0; SLOT_WORDS];
    let mark = |value: u64| {
        let slots = BroadcastOutput::slots(&ring);
        slots[SLOT_WORDS + MARK_WORD].store(value, Ordering::Release);
    };
    mark(BUSY | 1);
    assert!(!reader.has_more());
    assert_eq!(reader.poll(&mut into), Ok(false));
    mark(BUSY | 9);
    assert!(reader.has_more());
    let overrun = Overrun { expected: FeedSequence(1), found: FeedSequence(9) };
    assert_eq!(reader.poll(&mut into), Err(overrun));
}
