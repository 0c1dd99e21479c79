//! What is appended comes back: over window laps, segments, clean ends and restarts.

use std::{fs, iter, os::unix::fs::PermissionsExt, sync::Arc, time::Duration};

use touchline_engine::{
    log::{BeginError, WindowPlace, storage::FileStorage},
    recovery::{RecoveryError, ReplayFault, Replayed},
};
use touchline_protocol::{
    log::{
        BLOCK_BYTES, MAX_FRAME_BYTES, WINDOW_BYTES_MIN,
        frame::{FrameHeader, FrameKind, MAX_COMMAND_BYTES},
    },
    units::Position,
    wait::park,
};

use crate::{
    patience::Wait,
    support::{Model, Place, Random, SEGMENT, Venue},
};

#[test]
fn thousands_of_transactions_come_back_over_laps_and_segments() {
    let mut place = Place::new();
    place.environment.storage = Arc::new(FileStorage);
    let mut random = Random::new(1);
    let mut known = Model::default();
    for run in 0..3 {
        let mut venue = place.open();
        assert_eq!(venue.report().incarnation.0, run + 1);
        assert_eq!(venue.report().new_log, run == 0);
        assert_eq!(venue.report().clean, run > 0);
        assert_eq!(venue.report().appended_only_lost_behind, None);
        assert_eq!(venue.report().transactions as usize, known.records.len());
        assert_eq!(venue.model, known);
        for _ in 0..1_000 {
            let events = if random.below(3) == 0 { u16::MAX } else { 2_000 };
            venue.submit(&random.command(events));
        }
        known = venue.close();
        assert!(!place.options.data.join("live").exists());
    }
    let end = known.records.last().unwrap().end;
    assert!(end > 3 * WINDOW_BYTES_MIN, "the test is to make several laps, but ends at {end}");
    assert_eq!(place.open().model, known);
    // Nothing of a frame ever lies on a segment's header or across a window segment.
    for record in &known.records {
        assert_eq!(record.position / SEGMENT, (record.bytes_end() - 1) / SEGMENT);
        assert!(record.position % SEGMENT >= 4096);
    }
}

#[test]
fn window_and_disk_hold_the_same_bytes_at_the_same_positions() {
    let place = Place::new();
    let mut random = Random::new(2);
    let mut venue = place.open();
    while venue.log.control.appended().0 < 2 * WINDOW_BYTES_MIN + SEGMENT / 2 {
        venue.submit(&random.command(30_000));
    }
    venue.settle();
    let durable = venue.log.control.durable().0;
    let window = fs::read(place.options.data.join("live").join("window")).unwrap();
    // The keeper has two segments of four prepared, so at least one whole one is behind the tail.
    let base = durable - durable % SEGMENT - SEGMENT;
    let same = |from: u64, length: u64| {
        let offset = (from % WINDOW_BYTES_MIN) as usize;
        window[offset..offset + length as usize] == place.read(from, length as usize)
    };
    assert!(same(base, SEGMENT));
    assert!(same(base + SEGMENT, durable - base - SEGMENT));
}

#[test]
fn behind_the_last_frame_its_block_is_blank_on_disk_whatever_was_written_before() {
    let place = Place::new();
    let mut random = Random::new(58);
    let mut venue = place.open();
    place.disk.hold(true);
    while venue.log.control.appended().0 < SEGMENT / 2 {
        venue.append(&random.command(60_000));
    }
    place.disk.hold(false);
    venue.settle();
    for _ in 0..20 {
        venue.submit(&[8; 8]);
        venue.settle();
        let end = venue.log.control.durable().0;
        let rest = end.next_multiple_of(BLOCK_BYTES) - end;
        assert!(place.read(end, rest as usize).iter().all(|&byte| byte == 0), "behind {end}");
    }
}

#[test]
fn a_log_is_closed_though_its_closing_record_has_a_padding_behind_it() {
    let place = Place::new();
    let mut random = Random::new(59);
    let mut venue = place.open();
    let largest = MAX_FRAME_BYTES as u64;
    venue.submit_up_to(&mut random, SEGMENT - 4 * largest);
    // A closing record leaves no room for the largest frame.
    while venue.log.control.appended().0 < SEGMENT - largest {
        venue.submit(&[0; 8]);
    }
    assert_eq!(venue.log.control.appended().0, SEGMENT - largest);
    let model = venue.close();
    let kinds = records_on_disk(&place, SEGMENT - largest, SEGMENT);
    assert_eq!(kinds, [FrameKind::Closing, FrameKind::Padding]);
    let venue = place.open();
    assert_eq!(venue.model, model);
    assert!(venue.report().clean);
}

/// Begins a transaction and abandons it, with something that looks begun at each place where the next one could begin.
fn abandon(venue: &mut Venue, command: &[u8]) {
    let before = venue.log.writer.position();
    let outbox = venue.log.writer.begin(command).unwrap();
    let outbox_start = before.0 + 48 + command.len() as u64;
    for position in (outbox_start.next_multiple_of(64)..).step_by(64).take(20) {
        let header = FrameHeader {
            kind: FrameKind::Transaction as u8,
            incarnation: 1,
            position,
            command_length: 8,
            ..FrameHeader::default()
        };
        let offset = (position - outbox_start) as usize;
        outbox[offset..offset + 48].copy_from_slice(bytemuck::bytes_of(&header));
    }
    venue.log.writer.abandon();
    assert_eq!(venue.log.writer.position(), before);
}

/// Whatever is left free between the last frame and the place of the next one.
#[test]
fn what_is_abandoned_leaves_no_trace() {
    let mut random = Random::new(3);
    for length in (8..=64).step_by(8) {
        let place = Place::new();
        let mut venue = place.open();
        for _ in 0..60 {
            abandon(&mut venue, &random.command(0));
            venue.submit(&random.command(500));
        }
        abandon(&mut venue, &[16; 8]);
        // With few events, so that the frame ends where the lookalikes are.
        let mut command = vec![0; length];
        command[0] = 16;
        venue.submit(&command);
        let end = venue.log.control.appended().0;
        let (known, _) = venue.kill();
        let venue = place.open();
        assert_eq!(venue.report().poison, None, "behind {length} bytes");
        assert_eq!(venue.report().recovered_end.0, end);
        assert_eq!(venue.model, known);
    }
}

#[test]
fn commands_of_impossible_lengths_are_refused() {
    let place = Place::new();
    let mut venue = place.open();
    for bytes in [0, 12, MAX_COMMAND_BYTES + 8, 8_000] {
        let error = venue.log.writer.begin(&vec![1; bytes]).unwrap_err();
        assert_eq!(error, BeginError::CommandLength { bytes });
    }
    venue.log.writer.begin(&vec![1; MAX_COMMAND_BYTES]).unwrap();
}

#[test]
fn a_second_engine_on_the_same_folder_is_refused() {
    let place = Place::new();
    let venue = place.open();
    let Err(error) = place.try_open() else { panic!("two engines on one log") };
    let own = std::process::id();
    assert!(
        matches!(&error, RecoveryError::Locked { pid: Some(pid), .. } if *pid == own),
        "{error}"
    );
    venue.close();
    place.open().close();
}

#[test]
fn so_it_is_though_the_lock_and_the_window_were_removed_and_nothing_of_the_first_one_is_touched() {
    let place = Place::new();
    let mut venue = place.open();
    let unfinished = place.segment(7).with_extension("seg.new");
    fs::write(&unfinished, "its next segment").unwrap();
    let lock = place.options.data.join("lock");
    for with_window in [true, false] {
        fs::remove_file(&lock).unwrap();
        if !with_window {
            fs::remove_dir_all(place.options.data.join("live")).unwrap();
        }
        let Err(error) = place.try_open() else { panic!("two engines on one log") };
        let folder = place.options.data.join("log");
        assert!(
            matches!(&error, RecoveryError::Locked { path, pid: None } if *path == folder),
            "{error}"
        );
        assert!(unfinished.exists(), "what the first one is about to write");
    }
    venue.submit(&[16; 16]);
    let model = venue.close();
    assert_eq!(place.open().model, model);
    assert!(!unfinished.exists());
}

#[test]
fn a_command_that_the_engine_died_over_is_kept_and_called_fatal_if_it_panicked() {
    for (panics, kind) in [(false, "bin"), (true, "fatal")] {
        let place = Place::new();
        let mut random = Random::new(4);
        let mut venue = place.open();
        venue.submit(&random.command(100));
        let deadly = random.command(0);
        let position = venue.log.writer.position();
        venue.log.writer.begin(&deadly).unwrap()[..24].fill(0xff);
        if panics {
            venue.log.control.note_panic();
        }
        let (known, _) = venue.kill();

        let venue = place.open();
        let poison = venue.report().poison.clone().unwrap();
        assert_eq!((poison.incarnation.0, poison.position), (1, position));
        assert_eq!((poison.is_fatal, &poison.command), (panics, &deadly));
        assert_eq!(poison.path, place.options.data.join(format!("poison/1-{position}.{kind}")));
        assert_eq!(fs::read(&poison.path).unwrap(), deadly);
        // It may hold the hash of a password.
        let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let folder = poison.path.parent().unwrap();
        assert_eq!((mode(folder), mode(&poison.path)), (0o700, 0o600));
        assert_eq!(venue.model, known);
        venue.kill();
        assert_eq!(place.open().report().poison, None);
    }
}

#[test]
fn a_command_that_was_rejected_is_none_that_an_engine_died_over() {
    let place = Place::new();
    let mut random = Random::new(60);
    let mut venue = place.open();
    assert_eq!(venue.report().appended_only_lost_behind, None, "of a new log nothing is lost");
    venue.submit(&random.command(100));
    venue.log.writer.begin(&random.command(0)).unwrap();
    venue.log.writer.abandon();
    venue.log.control.note_panic();
    let (known, _) = venue.kill();
    let venue = place.open();
    assert_eq!(venue.model, known);
    assert_eq!(venue.report().poison, None);
}

/// One that refuses nobody is no reason to refuse a start.
#[test]
fn a_command_that_cannot_be_kept_keeps_the_log_closed_only_if_an_engine_panicked_of_it() {
    for panics in [false, true] {
        let place = Place::new();
        let mut random = Random::new(4);
        let mut venue = place.open();
        venue.submit(&random.command(100));
        venue.log.writer.begin(&random.command(0)).unwrap();
        if panics {
            venue.log.control.note_panic();
        }
        let (known, _) = venue.kill();
        let folder = place.options.data.join("poison");
        fs::write(&folder, "in the way").unwrap();
        if panics {
            let refused = place.try_open().err().map(|error| error.to_string());
            let told = refused.expect("its sender would not be refused");
            assert!(told.contains("keeping the last command in"), "{told}");
            fs::remove_file(&folder).unwrap();
        }
        let venue = place.open();
        assert_eq!(venue.model, known);
        let poison = venue.report().poison.clone().unwrap();
        assert_eq!((poison.is_fatal, poison.path.exists()), (panics, panics));
    }
}

#[test]
fn a_log_that_does_not_replay_to_itself_is_refused() {
    /// What it does with the events of the third transaction, whose bytes and number it is given.
    type Spoil = fn(&mut [u8], (usize, u16)) -> (usize, u16);
    struct Forgetful(Model, Spoil);
    impl Replayed for Forgetful {
        fn replay(
            &mut self,
            position: Position,
            time_ns: u64,
            command: &[u8],
            outbox: &mut [u8],
        ) -> Result<(usize, u16), ReplayFault> {
            let done = self.0.replay(position, time_ns, command, outbox)?;
            Ok(if self.0.records.len() == 3 { self.1(outbox, done) } else { done })
        }
    }
    fn spoil_first(outbox: &mut [u8], done: (usize, u16)) -> (usize, u16) {
        outbox[8] ^= 1;
        done
    }
    fn spoil_last(outbox: &mut [u8], (length, count): (usize, u16)) -> (usize, u16) {
        outbox[length - 1] ^= 1;
        (length, count)
    }
    let place = Place::new();
    let mut venue = place.open();
    let records: Vec<_> = (0..5).map(|_| venue.submit(&[200, 0, 0, 0, 0, 0, 0, 0])).collect();
    venue.close();
    let ways: [(Spoil, &str); 5] = [
        (spoil_first, "byte 8 of 200"),
        (spoil_last, "byte 199 of 200"),
        (|_, (length, count)| (length, count + 1), "2 events of 200 bytes, the log has 1 of 200"),
        (|_, (length, count)| (length - 8, count), "1 events of 192 bytes, the log has 1 of 200"),
        (|_, _| (0, 0), "0 events of 0 bytes, the log has 1 of 200"),
    ];
    for (spoil, told) in ways {
        let opened = touchline_engine::log::open_in(
            &place.environment,
            &place.options,
            &mut Forgetful(Model::default(), spoil),
            &mut |_| {},
        );
        let Err(error) = opened else { panic!("a different replay was accepted, not: {told}") };
        assert!(
            matches!(&error, RecoveryError::Replay { position, .. } if *position == records[2].position),
            "{error}"
        );
        assert!(error.to_string().contains(told), "{error}");
    }
    assert_eq!(place.open().model.records, records);
}

#[test]
fn options_out_of_range_are_refused_and_an_old_log_keeps_its_segment_size() {
    let mut place = Place::new();
    place.options.segment_bytes = SEGMENT + 4096;
    assert!(matches!(place.try_open(), Err(RecoveryError::Options(_))));
    place.options.segment_bytes = SEGMENT;
    place.options.window_bytes = Some(WINDOW_BYTES_MIN / 2);
    assert!(matches!(place.try_open(), Err(RecoveryError::Options(_))));
    place.options.window_bytes = Some(WINDOW_BYTES_MIN);
    place.open().close();
    place.options.segment_bytes = 4 * SEGMENT;
    assert_eq!(place.open().log.control.identity().segment_bytes, SEGMENT);
}

#[test]
fn the_window_lies_in_shared_memory_where_there_is_room() {
    let mut place = Place::new();
    let mut random = Random::new(5);
    let mut known = Model::default();
    // Each place has to take over what the other one has left.
    let places = [WindowPlace::Auto, WindowPlace::Data, WindowPlace::SharedMemory];
    for window_place in places.into_iter().cycle().take(7) {
        place.options.window_place = window_place;
        let mut venue = place.open();
        assert_eq!(venue.report().window.in_shared_memory, window_place != WindowPlace::Data);
        assert_eq!(venue.model, known);
        for _ in 0..20 {
            venue.append(&random.command(20_000));
        }
        known = venue.kill().0;
    }
    place.open().close();
    assert_eq!(fs::read_dir(&place.environment.shared_memory).unwrap().count(), 0);
    assert!(!place.options.data.join("live").exists());
}

#[test]
fn without_shared_memory_the_window_lies_in_the_data_folder_and_the_report_says_why() {
    let mut place = Place::new();
    fs::remove_dir(&place.environment.shared_memory).unwrap();
    place.options.window_place = WindowPlace::SharedMemory;
    assert!(matches!(place.try_open(), Err(RecoveryError::Window { .. })));
    place.options.window_place = WindowPlace::Auto;
    let venue = place.open();
    assert!(!venue.report().window.in_shared_memory);
    assert!(venue.report().window.why_not.is_some());
    let line = venue.report().window.to_string();
    assert!(line.contains("data/live") && line.contains("write-back"), "{line}");
}

/// Kinds of the frames on disk, transactions left out, up to the log's end.
fn records_on_disk(place: &Place, from: u64, to: u64) -> Vec<FrameKind> {
    let mut position = from;
    let mut kinds = Vec::new();
    while position < to {
        let header = place.read(position, 48);
        let length = u64::from(u32::from_le_bytes(header[..4].try_into().unwrap()));
        match FrameKind::from_byte(header[8]).unwrap() {
            FrameKind::Transaction => {}
            other => kinds.push(other),
        }
        position += length.next_multiple_of(64);
    }
    kinds
}

#[test]
fn a_quiet_log_is_attested_once() {
    let mut place = Place::new();
    place.environment.attest_after = Duration::ZERO;
    let mut venue = place.open();
    for _ in 0..3 {
        venue.submit(&[16, 0, 0, 0, 0, 0, 0, 0]);
        wait_until_asked(&venue);
        venue.log.writer.attest_if_asked(5_000);
        assert!(!venue.log.writer.attest_asked());
        venue.settle();
    }
    let end = venue.log.control.durable().0;
    venue.kill();
    let kinds = records_on_disk(&place, 4096, end);
    let attests = [FrameKind::Attest; 3];
    assert_eq!(kinds, [&[FrameKind::Incarnation][..], &attests].concat());
    // What the last one vouches for is not taken for an unfinished write any more.
    place.lose_window();
    place.flip(end - 64 - 128 + 50);
    assert!(matches!(place.try_open(), Err(RecoveryError::Damaged { .. })));
}

fn wait_until_asked(venue: &Venue) {
    let wait = Wait::begin();
    while !venue.log.writer.attest_asked() {
        wait.go_on("the keeper asks for nothing");
        park(iter::once(venue.log.control.duty_line()), Duration::from_secs(10), || {
            venue.log.writer.attest_asked()
        });
    }
}
