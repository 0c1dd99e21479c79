//! One input of the fuzz target `log_frames`: a log folder whose segment holds frames with some bytes
//! changed, with the right checksum all the same or with a wrong one, to the reader. Called by that
//! target and by the test beside this folder.

use std::fs;
use std::path::Path;
use touchline_protocol::log::frame::{FRAME_HEADER_BYTES, FrameHeader, FrameKind, seal};
use touchline_protocol::log::reader::{Follow, LogReader};
use touchline_protocol::log::segment::LogIdentity;
use touchline_protocol::log::transaction::Bookmark;
use touchline_protocol::log::{
    SEGMENT_FOLDER, SEGMENT_HEADER_BYTES, WINDOW_SEGMENT_BYTES, align_frame, segment_path,
};
use touchline_protocol::units::{Incarnation, Position};

/// Numbers that a field of a header may be wrong with.
const ODD: [u64; 16] = [
    0,
    1,
    2,
    7,
    8,
    47,
    48,
    56,
    64,
    4096,
    65_536,
    65_544,
    1 << 21,
    u32::MAX as u64,
    i64::MAX as u64,
    u64::MAX,
];

struct Source<'bytes>(&'bytes [u8]);

impl Source<'_> {
    fn byte(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or(0)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }
}

/// A segment in the making.
struct Segment {
    bytes: Vec<u8>,
    identity: LogIdentity,
    incarnation: u32,
    /// Transactions in front of the first frame that is wrong.
    sound: u64,
    is_damaged: bool,
}

impl Segment {
    /// Adds a frame as an engine writes it, unless the source has it otherwise.
    fn add(&mut self, source: &mut Source<'_>) {
        let words = source.below(40);
        let body: Vec<u8> = (0..words * 8).map(|_| source.byte()).collect();
        let starts = source.below(12) == 1;
        self.incarnation += u32::from(starts);
        let body: &[u8] = if starts { &[] } else { &body };
        let kind =
            if starts || body.is_empty() { FrameKind::Incarnation } else { FrameKind::Transaction };
        self.incarnation += u32::from(!starts && body.is_empty());
        let header = FrameHeader {
            length: (FRAME_HEADER_BYTES + body.len()) as u32,
            kind: kind as u8,
            events: u16::from(!body.is_empty()) * source.below(4) as u16,
            incarnation: self.incarnation,
            position: self.bytes.len() as u64,
            time_ns: self.bytes.len() as u64,
            command_length: if body.is_empty() { 0 } else { 8 * (1 + source.below(words) as u32) },
            ..FrameHeader::default()
        };
        let damage = source.below(8);
        self.write(header, body, damage, source);
    }

    fn write(&mut self, header: FrameHeader, body: &[u8], damage: usize, source: &mut Source<'_>) {
        let mut frame = vec![0; FRAME_HEADER_BYTES + body.len()];
        frame[FRAME_HEADER_BYTES..].copy_from_slice(body);
        let salt = self.identity.salt;
        seal(&header, &mut frame, salt);
        match damage {
            // A bit that the checksum notices.
            0 => {
                let at = source.below(frame.len().min(256));
                frame[at] ^= 1 << source.below(8);
                self.is_damaged = true;
            }
            // A header that says something else, with a checksum to it.
            1 => {
                let mut words: [u64; FRAME_HEADER_BYTES / 8] = bytemuck::cast(header);
                let width = [8, 16, 32, 64][source.below(4)];
                let (at, odd) = (source.below(words.len()), ODD[source.below(ODD.len())]);
                let shift = source.below(64 / width) * width;
                let mask = (u64::MAX >> (64 - width)) << shift;
                words[at] = words[at] & !mask | (odd << shift) & mask;
                let odd: FrameHeader = bytemuck::cast(words);
                frame.resize(
                    frame.len().max((odd.length as usize).min(1 << 16)).max(FRAME_HEADER_BYTES),
                    0,
                );
                if odd.length as usize <= frame.len() && odd.length as usize >= FRAME_HEADER_BYTES {
                    seal(&odd, &mut frame, salt);
                } else {
                    frame[..FRAME_HEADER_BYTES].copy_from_slice(bytemuck::bytes_of(&odd));
                }
                // It may still be sound, but what comes behind it need not begin where it ends.
                self.is_damaged = true;
            }
            _ => {}
        }
        self.sound += u64::from(!self.is_damaged && header.kind() == Some(FrameKind::Transaction));
        self.bytes.extend_from_slice(&frame);
        self.bytes.resize(align_frame(self.bytes.len() as u64) as usize, 0);
    }
}

/// A log folder in `data`; gives the number of transactions in front of any damage.
fn write(source: &mut Source<'_>, data: &Path) -> u64 {
    let identity =
        LogIdentity { log_id: [7; 16], salt: 0x5a17_5a17, segment_bytes: WINDOW_SEGMENT_BYTES };
    let mut bytes = vec![0; SEGMENT_HEADER_BYTES as usize];
    identity.write_header(0, &mut bytes);
    let mut segment = Segment { bytes, identity, incarnation: 1, sound: 0, is_damaged: false };
    while !source.0.is_empty() && segment.bytes.len() < WINDOW_SEGMENT_BYTES as usize / 8 {
        segment.add(source);
    }
    let folder = data.join(SEGMENT_FOLDER);
    fs::create_dir(&folder).expect("a folder of the test's own");
    fs::write(segment_path(&folder, 0), &segment.bytes).expect("room for a segment");
    segment.sound
}

/// Writes a log and reads it. All that stands in front of the damage is read; behind it anything may be,
/// but no panic and no end that does not come. Gives the number of transactions that were read.
pub(crate) fn read(input: &[u8]) -> u64 {
    let mut source = Source(input);
    let place = tempfile::tempdir().expect("a folder");
    let sound = write(&mut source, place.path());
    let mut reader = LogReader::open_with(place.path(), Follow::Durable, place.path())
        .expect("the segment's header is sound");
    let mut read = 0;
    let mut last = None;
    while let Some(transaction) = reader.next().expect("without an engine damage is the end") {
        read += 1;
        assert!(read <= WINDOW_SEGMENT_BYTES / 64, "more transactions than fit");
        assert_eq!(transaction.command_bytes().len() % 8, 0);
        let _command = transaction.command();
        assert!(transaction.events().count() <= usize::from(transaction.event_count()));
        last = Some(transaction.bookmark());
    }
    assert!(read >= sound, "{read} transactions of {sound} in front of the damage");
    if let Some(last) = last {
        assert!(reader.resume(&last).expect("it can be read"), "what was read is there");
        let position = Position(ODD[source.below(ODD.len())]);
        let elsewhere = Bookmark { position, incarnation: Incarnation(1), ..last };
        assert!(elsewhere == last || !reader.resume(&elsewhere).unwrap_or(false));
    }
    read
}
