//! The bytes and the checks of frames: golden, damaged, and random ones.

use super::*;
use crate::log::WINDOW_SEGMENT_BYTES;
use proptest::prelude::*;

const SALT: u32 = 0x5a17_5a17;

/// A transaction at position 4096 with a command of 16 bytes and an event of 8.
fn sample() -> (FrameHeader, Vec<u8>) {
    let header = FrameHeader {
        length: 72,
        kind: FrameKind::Transaction as u8,
        events: 1,
        incarnation: 7,
        position: 4096,
        time_ns: 1_700_000_000_000_000_000,
        attested: 4032,
        command_length: 16,
        ..FrameHeader::default()
    };
    let mut frame: Vec<u8> = (0..72).collect();
    seal(&header, &mut frame, SALT);
    (FrameHeader { crc: u32::from_le_bytes(frame[4..8].try_into().unwrap()), ..header }, frame)
}

#[test]
fn golden_bytes() {
    let golden = "48000000 8a830f3a 01 00 0100 07000000 0010000000000000 00002a36fe9c9717 \
                  c00f000000000000 10000000 00000000 \
                  303132333435363738393a3b3c3d3e3f 4041424344454647";
    let text: String = sample().1.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(text, golden.replace(' ', ""));
}

#[test]
fn a_sealed_frame_passes_only_where_it_belongs() {
    let (header, frame) = sample();
    assert_eq!(check(&frame, 4096, SALT), Ok(header));
    assert_eq!(
        check(&frame, 8192, SALT),
        Err(FrameError::Position { found: 4096, expected: 8192 })
    );
    assert!(matches!(check(&frame, 4096, SALT + 1), Err(FrameError::Crc { .. })));
    assert_eq!(check(&frame[..71], 4096, SALT), Err(FrameError::TooShort { have: 71, need: 72 }));
    assert_eq!(check(&[0; 64], 4096, SALT), Err(FrameError::Blank));
}

#[test]
fn every_flipped_bit_is_noticed() {
    let (_, frame) = sample();
    for bit in 0..frame.len() * 8 {
        let mut bad = frame.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(check(&bad, 4096, SALT).is_err(), "bit {bit}");
    }
}

#[test]
fn paddings_reach_exactly_to_the_boundary_and_their_content_does_not_count() {
    let position = WINDOW_SEGMENT_BYTES - 4096;
    let padding = FrameHeader {
        length: 4096,
        kind: FrameKind::Padding as u8,
        position,
        ..FrameHeader::default()
    };
    let mut frame = vec![3; 4096];
    seal(&padding, &mut frame, SALT);
    assert!(check(&frame, position, SALT).is_ok());
    frame[100] ^= 1;
    assert!(check(&frame, position, SALT).is_ok());
    assert!(check(&frame[..48], position, SALT).is_ok());
    let short = FrameHeader { length: 4032, ..padding };
    seal(&short, &mut frame, SALT);
    assert_eq!(check(&frame, position, SALT), Err(FrameError::Length { found: 4032, rest: 4096 }));
}

#[test]
fn frames_that_cannot_be_are_refused_though_their_checksum_is_right() {
    let good = sample().0;
    let refused = |header: FrameHeader| {
        let mut frame = vec![0; MAX_FRAME_BYTES + 64];
        seal(&header, &mut frame, SALT);
        check(&frame, 4096, SALT).unwrap_err()
    };
    assert_eq!(refused(FrameHeader { kind: 9, ..good }), FrameError::Kind { found: 9 });
    let claim = FrameError::Claim { position: 4096, claimed: 4097 };
    assert_eq!(refused(FrameHeader { attested: 4097, ..good }), claim);
    for length in [40, 76, MAX_FRAME_BYTES as u32 + 8] {
        let error = refused(FrameHeader { length, ..good });
        assert!(matches!(error, FrameError::Length { found, .. } if found == length), "{error}");
    }
    for odd in [
        FrameHeader { command_length: 32, ..good },
        FrameHeader { command_length: 12, ..good },
        FrameHeader { command_length: 0, ..good },
        FrameHeader { flags: 1, ..good },
        FrameHeader { reserved: 1, ..good },
        FrameHeader { kind: FrameKind::Attest as u8, ..good },
    ] {
        assert!(matches!(refused(odd), FrameError::Shape { .. }), "{odd:?}");
    }
}

#[test]
fn what_has_no_body_and_says_that_it_has_one_is_refused() {
    let bare = |kind: FrameKind, position, length| FrameHeader {
        length,
        kind: kind as u8,
        incarnation: 7,
        position,
        ..FrameHeader::default()
    };
    let padded = WINDOW_SEGMENT_BYTES - 4096;
    for (kind, position, length) in [
        (FrameKind::Incarnation, 4096, FRAME_HEADER_BYTES as u32),
        (FrameKind::Attest, 4096, FRAME_HEADER_BYTES as u32),
        (FrameKind::Closing, 4096, FRAME_HEADER_BYTES as u32),
        (FrameKind::Padding, padded, 4096),
    ] {
        let good = bare(kind, position, length);
        assert_eq!(good.check_shape(position), Ok(kind));
        let longer = (kind != FrameKind::Padding).then_some(FrameHeader {
            length: length + 8,
            command_length: 0,
            ..good
        });
        let odd = [FrameHeader { events: 1, ..good }, FrameHeader { command_length: 8, ..good }];
        for odd in odd.into_iter().chain(longer) {
            let told = odd.check_shape(position);
            assert!(matches!(told, Err(FrameError::Shape { .. })), "{odd:?}: {told:?}");
        }
    }
}

#[test]
fn the_longest_frame_is_one_and_a_command_may_be_all_of_it() {
    let length = MAX_FRAME_BYTES as u32;
    let longest = FrameHeader {
        length,
        command_length: length - FRAME_HEADER_BYTES as u32,
        events: 0,
        ..sample().0
    };
    assert_eq!(longest.check_shape(4096), Ok(FrameKind::Transaction));
    let longer = FrameHeader { length: length + 8, ..longest };
    assert!(matches!(longer.check_shape(4096), Err(FrameError::Length { .. })));
    let beyond = FrameHeader { command_length: longest.command_length + 8, ..longest };
    assert!(matches!(beyond.check_shape(4096), Err(FrameError::Shape { .. })));
}

#[test]
fn frames_do_not_cross_a_boundary() {
    let position = WINDOW_SEGMENT_BYTES - 64;
    let header = FrameHeader { position, ..sample().0 };
    let mut frame = vec![0; 72];
    seal(&header, &mut frame, SALT);
    assert_eq!(check(&frame, position, SALT), Err(FrameError::Length { found: 72, rest: 64 }));
}

#[test]
fn incarnations_succeed_one_another() {
    let of = |incarnation, kind: FrameKind| FrameHeader {
        incarnation,
        kind: kind as u8,
        ..FrameHeader::default()
    };
    let mut succession = Succession::new();
    let older = Err(FrameError::Incarnation { found: 4, current: 5 });
    assert_eq!(succession.admit(&of(5, FrameKind::Transaction)), Ok(()));
    assert_eq!(succession.admit(&of(5, FrameKind::Attest)), Ok(()));
    assert_eq!(succession.admit(&of(4, FrameKind::Transaction)), older);
    assert_eq!(succession.admit(&of(4, FrameKind::Incarnation)), older);
    // A newer incarnation begins with its record, and each has only one.
    let newer = Err(FrameError::Incarnation { found: 7, current: 5 });
    assert_eq!(succession.admit(&of(7, FrameKind::Transaction)), newer);
    assert_eq!(succession.admit(&of(7, FrameKind::Incarnation)), Ok(()));
    assert!(succession.admit(&of(7, FrameKind::Incarnation)).is_err());
    assert_eq!(succession.current(), 7);
}

proptest! {
    #[test]
    fn any_bytes_are_refused_without_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        position in 0..8 * WINDOW_SEGMENT_BYTES / 64,
    ) {
        prop_assert!(check(&bytes, position * 64, SALT).is_err());
    }

    #[test]
    fn whatever_is_sealed_passes(
        command in 1usize..40,
        events in proptest::collection::vec(any::<u64>(), 0..200),
        slot in 0..(WINDOW_SEGMENT_BYTES - MAX_FRAME_BYTES as u64) / 64,
        salt in any::<u32>(),
    ) {
        let position = slot * 64;
        let length = FRAME_HEADER_BYTES + (command + events.len()) * 8;
        let mut frame = vec![0x11; length];
        frame[FRAME_HEADER_BYTES + command * 8..]
            .copy_from_slice(bytemuck::cast_slice(&events));
        let header = FrameHeader {
            length: length as u32,
            kind: FrameKind::Transaction as u8,
            position,
            attested: position,
            command_length: command as u32 * 8,
            ..FrameHeader::default()
        };
        seal(&header, &mut frame, salt);
        let read = check(&frame, position, salt).unwrap();
        prop_assert_eq!(FrameHeader { crc: 0, ..read }, header);
    }
}
