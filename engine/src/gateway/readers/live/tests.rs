//! Readers of chance paces over a small ring: each gets every message once and in order, or is told exactly
//! which ones it did not get.

use super::*;
use proptest::prelude::*;
use std::os::fd::AsFd;
use touchline_protocol::feed::FeedOutput;
use touchline_protocol::feed::broadcast::Broadcaster;
use touchline_protocol::feed::layout::SLOTS_MIN;
use touchline_protocol::message::decode::{self, FeedMessage, FeedTalk};
use touchline_protocol::message::feed::{FeedOrderAdded, FeedTrade};
use touchline_protocol::units::{Incarnation, OrderId};

/// What happens next.
#[derive(Clone, Debug)]
enum Step {
    /// So many messages are written, and published or not yet.
    Write(u64, bool),
    /// A reader takes a piece.
    Read(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (1u64..2500, any::<bool>()).prop_map(|(count, publish)| Step::Write(count, publish)),
        (0usize..3).prop_map(Step::Read),
        (0usize..3).prop_map(Step::Read),
    ];
    prop::collection::vec(step, 1..80)
}

/// A message of one of two lengths, which names its own sequence.
fn words(sequence: u64) -> SlotWords {
    let mut words = [0; SLOT_WORDS];
    let order_id = OrderId(sequence);
    let bytes = if sequence.is_multiple_of(3) {
        bytemuck::bytes_of(&FeedTrade { order_id, ..Default::default() }).to_vec()
    } else {
        bytemuck::bytes_of(&FeedOrderAdded { order_id, ..Default::default() }).to_vec()
    };
    bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(&bytes);
    words
}

/// Sequence and content of a message of the feed.
fn read(message: FeedMessage<'_>) -> (u64, u64) {
    match message {
        FeedMessage::FeedOrderAdded(it) => (it.sequence.0, it.order_id.0),
        FeedMessage::FeedTrade(it) => (it.sequence.0, it.order_id.0),
        other => panic!("{}", other.name()),
    }
}

/// Checks a piece for who has everything up to `last`; gives the last message that it has then.
fn check(piece: &[u8], mut last: u64, (published, written): (u64, u64)) -> u64 {
    let words: Vec<u64> = bytemuck::allocation::pod_collect_to_vec(piece);
    let mut bytes: &[u8] = bytemuck::cast_slice(&words);
    while !bytes.is_empty() {
        let length = 8 + usize::from(decode::header(bytes).unwrap().block_length);
        if let Ok(FeedTalk::FeedGap(gap)) = decode::feed_talk(bytes) {
            assert_eq!(gap.from.0, last + 1);
            assert!(written - gap.from.0 >= u64::from(SLOTS_MIN), "message {last} is still there");
            assert!(gap.next > gap.from, "something is missing");
            assert!(gap.next.0 > published, "it goes on with the newest");
            assert!(gap.next.0 <= written + 1, "what is not written yet is not missed");
            last = gap.next.0 - 1;
        } else {
            let (sequence, content) = read(decode::feed(bytes).unwrap());
            assert_eq!((sequence, content), (last + 1, last + 1));
            last = sequence;
        }
        bytes = &bytes[length..];
    }
    last
}

proptest! {
    #[test]
    fn nothing_is_left_out_untold(steps in steps()) {
        let (output, memory) = FeedOutput::create(SLOTS_MIN, Incarnation(1), [0; 16]).unwrap();
        let mut output = Broadcaster::new(output);
        let mut live = Live::new(FeedInput::map(memory.as_fd(), SLOTS_MIN).unwrap());
        let (mut readers, mut published, mut written) = ([0; 3], 0, 0);
        for step in steps {
            match step {
                Step::Write(count, publish) => {
                    for _ in 0..count {
                        written += 1;
                        output.write(&mut words(written));
                    }
                    if publish {
                        output.publish();
                        published = written;
                    }
                }
                Step::Read(reader) => {
                    let before = readers[reader];
                    let (piece, last) = live.piece_behind(FeedSequence(before));
                    prop_assert!(piece.len() <= PIECE_BYTES);
                    prop_assert_eq!(piece.is_empty(), before == written);
                    // A piece that was made before may hold a gap of that time.
                    let newest = published.min(last.0.max(before));
                    prop_assert_eq!(check(piece, before, (newest, written)), last.0);
                    readers[reader] = last.0;
                }
            }
        }
    }
}
