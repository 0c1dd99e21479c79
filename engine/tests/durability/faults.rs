//! Disks and folders that fail, each with the one answer that is documented ("The log" in
//! ARCHITECTURE.md): what stops, what is refused, what is told, what the next start finds.

use super::disk::{Call, IO_ERROR, SimDisk};
use super::random::Random;
use super::world::{Place, Record, SEGMENT, Venue, copy_files};
use crate::patience::eventually;
use std::fs;
use touchline_engine::log::BeginError;
use touchline_engine::recovery::RecoveryError;
use touchline_protocol::log::control::LogState;

/// ENOSPC.
const FULL: i32 = 28;

/// EROFS.
const READ_ONLY: i32 = 30;

/// EACCES.
const DENIED: i32 = 13;

/// A log with a few hundred transactions, running.
fn running(seed: u64) -> (Place, Venue, Random) {
    let mut random = Random::new(seed);
    let place = Place::new(SimDisk::new(seed, true));
    let mut venue = place.open();
    venue.define();
    for _ in 0..200 {
        venue.trade(&mut random);
    }
    venue.settle();
    (place, venue, random)
}

fn wait_until_failed(venue: &Venue) {
    let has_failed = || venue.log.control.state() == LogState::LogFailed;
    assert!(eventually(has_failed), "the log goes on");
}

/// The log has failed: nothing is acknowledged any more, and a start on a disk that works again finds
/// everything that was appended.
fn check_failed(place: &Place, mut venue: Venue, why: &str) {
    wait_until_failed(&venue);
    let (_, durable) = venue.marks();
    assert!(venue.log.control.failure().unwrap().contains(why));
    assert!(matches!(venue.log.writer.begin(&[0; 8]), Err(BeginError::NotRunning)));
    assert_eq!(venue.marks().1, durable);
    let (records, is_clean) = venue.close();
    assert!(!is_clean);
    place.disk.die();
    place.disk.refuse(None);
    let venue = place.open();
    assert!(venue.log.report.from_window > 0);
    assert_eq!(venue.log.report.appended_only_lost_behind, None);
    venue.history.check(&records);
}

fn refusal(place: &Place) -> RecoveryError {
    match place.try_open() {
        Ok(_) => panic!("the log was opened"),
        Err(error) => error,
    }
}

/// The error is a failed call, and says on which file and what the system said.
fn check_disk_error(error: &RecoveryError, file: &str, code: i32) {
    let RecoveryError::Disk(disk) = error else { panic!("{error}") };
    assert!(disk.path.to_str().unwrap().contains(file), "{error}");
    assert_eq!(disk.source.raw_os_error(), Some(code), "{error}");
}

#[test]
fn a_write_that_fails_once_is_never_tried_again() {
    for seed in 0..20 {
        let (place, mut venue, mut random) = running(seed);
        place.disk.hold(true);
        for _ in 0..10 {
            venue.trade(&mut random);
            venue.fill(&mut random, 10_000);
        }
        place.disk.fail_write(&place.segment(0));
        venue.log.writer.tell_keeper();
        place.disk.hold(false);
        check_failed(&place, venue, "os error 5");
    }
}

#[test]
fn a_sync_or_a_name_that_fails_while_a_segment_is_made_ahead_harms_nothing() {
    for (seed, call) in [(41, Call::Sync), (47, Call::Name)] {
        let (place, mut venue, mut random) = running(seed);
        assert!(eventually(|| place.disk.has(&place.segment(1))), "no segment is made ahead");
        place.disk.refuse(Some((call, IO_ERROR)));
        // Into the second, which has the third made.
        venue.fill_up_to(&mut random, 2 * SEGMENT, 400_000);
        assert!(venue.log.control.is_running(), "{:?}", venue.log.control.failure());
        assert!(eventually(|| place.disk.refusals() > 0), "it is not tried");
        let has_no_name = || !place.disk.has(&place.segment(2));
        assert!(eventually(has_no_name), "it has a name that may not be durable");
        place.disk.refuse(None);
        venue.fill_up_to(&mut random, 4 * SEGMENT, 400_000);
        assert!(venue.log.control.is_running(), "{:?}", venue.log.control.failure());
        let (records, durable) = venue.kill();
        assert!(durable > 3 * SEGMENT);
        place.cut_power();
        let venue = place.open();
        let held = venue.history.records.len();
        let owed = records.iter().filter(|record| record.end() <= durable).count();
        assert!(held >= owed, "{held} of {owed} that were durable");
        venue.history.check(&records[..held]);
    }
}

#[test]
fn a_full_disk_is_met_only_where_a_segment_is_needed() {
    let (place, mut venue, mut random) = running(42);
    // The keeper makes one segment ahead by itself, and the next one when that one is written to.
    assert!(eventually(|| place.disk.has(&place.segment(1))), "no segment is made ahead");
    place.disk.refuse(Some((Call::Create, FULL)));
    let room = 2 * SEGMENT;
    venue.fill_up_to(&mut random, room, 200_000);
    assert!(venue.log.control.is_running(), "{:?}", venue.log.control.failure());
    assert_eq!(venue.marks().0, venue.marks().1);
    // Up to the end of what there is room for, and beyond.
    for _ in 0..10 {
        venue.fill(&mut random, 60_000);
        venue.fill(&mut random, 60_000);
    }
    venue.log.writer.tell_keeper();
    wait_until_failed(&venue);
    // As long as the disk is full, a start says so, as often as it is tried.
    let (_, durable) = venue.marks();
    assert!(durable <= room);
    let records = venue.close().0;
    for _ in 0..2 {
        check_disk_error(&refusal(&place), ".seg.new", FULL);
    }
    place.disk.refuse(None);
    place.open().history.check(&records);
}

#[test]
fn a_folder_that_cannot_be_written_refuses_the_start() {
    let (place, venue, _) = running(43);
    let (records, _) = venue.kill();
    for (call, code) in [(Call::Write, READ_ONLY), (Call::Sync, IO_ERROR), (Call::Write, IO_ERROR)]
    {
        place.disk.refuse(Some((call, code)));
        check_disk_error(&refusal(&place), "log", code);
    }
    place.disk.refuse(None);
    place.open().history.check(&records);

    let empty = Place::new(SimDisk::new(44, true));
    for (call, code) in [(Call::Create, DENIED), (Call::Name, DENIED), (Call::Create, FULL)] {
        empty.disk.refuse(Some((call, code)));
        check_disk_error(&refusal(&empty), "00000000.seg", code);
    }
    empty.disk.refuse(None);
    assert!(empty.open().log.report.new_log);
}

#[test]
fn a_segment_that_cannot_be_read_refuses_the_start_and_is_named() {
    let (place, mut venue, mut random) = running(45);
    venue.fill_up_to(&mut random, 2 * SEGMENT + SEGMENT / 2, 1_000);
    let (records, _) = venue.kill();
    for keeps_window in [true, false] {
        if !keeps_window {
            place.lose_window();
        }
        for number in 0..3 {
            let path = place.segment(number);
            place.disk.make_unreadable(Some(&path));
            let error = refusal(&place);
            check_disk_error(&error, &format!("{number:08}.seg"), IO_ERROR);
            let is_of_header = error.to_string().contains("reading the header");
            assert!(is_of_header || error.to_string().contains("--accept-loss"), "{error}");
            assert_eq!(is_of_header, number == 0, "{error}");
        }
        place.disk.make_unreadable(None);
    }
    place.open().history.check(&records);
}

/// Also of a part of the log that is read ahead of its use: it does not end there.
#[test]
fn a_segment_that_cannot_be_read_once_refuses_the_start_and_nothing_is_lost() {
    let (place, mut venue, mut random) = running(50);
    venue.fill_up_to(&mut random, 2 * SEGMENT + SEGMENT / 2, 1_000);
    let (records, _) = venue.close();
    for number in 0..3 {
        let path = place.segment(number);
        place.disk.fail_read(&path);
        check_disk_error(&refusal(&place), &format!("{number:08}.seg"), IO_ERROR);
    }
    let venue = place.open();
    venue.history.check(&records);
    assert_eq!(venue.log.report.dropped.bytes, 0);
}

#[test]
fn a_window_that_is_removed_under_a_running_engine_costs_only_what_was_not_durable() {
    let (place, mut venue, mut random) = running(46);
    // As a container's restart or RemoveIPC does.
    place.lose_window();
    for _ in 0..50 {
        venue.trade(&mut random);
    }
    venue.settle();
    let (records, durable) = venue.kill();
    assert!(durable >= records.last().unwrap().end());
    let venue = place.open();
    assert!(venue.log.report.appended_only_lost_behind.is_some());
    venue.history.check(&records);
}

/// The page alone still vouches for what was durable, and each start tells of the loss until one has made a
/// window of its own.
#[test]
fn a_window_that_is_removed_without_its_control_page_is_a_loss_that_is_told() {
    let (place, mut venue, mut random) = running(49);
    fs::remove_file(place.live().join("window")).unwrap();
    for _ in 0..50 {
        venue.trade(&mut random);
    }
    venue.settle();
    let kept = venue.history.records.len();
    place.disk.hold(true);
    place.disk.plan(0);
    for _ in 0..10 {
        venue.trade(&mut random);
    }
    place.disk.hold(false);
    venue.settle();
    let (records, durable) = venue.kill();
    place.disk.die();
    assert_eq!(records[kept].position, durable, "some of it was in the window only");

    let damaged = place.copy();
    let last = records[kept - 1].position;
    damaged.disk.edit(&damaged.segment(0), |bytes| bytes[last as usize..].fill(0));
    let error = refusal(&damaged);
    assert!(
        matches!(&error, RecoveryError::Damaged { position, attested, .. }
            if (*position, *attested) == (last, durable)),
        "{error}"
    );

    let in_the_way = place.live().join("control.new");
    fs::create_dir(&in_the_way).unwrap();
    let error = refusal(&place);
    assert!(matches!(&error, RecoveryError::Window { .. }), "{error}");
    fs::remove_dir(in_the_way).unwrap();
    let venue = place.open();
    assert!(venue.log.report.appended_only_lost_behind.is_some_and(|at| at.0 >= durable));
    let found = venue.history.records.len();
    assert!(found >= kept);
    venue.history.check(&records[..found]);
}

/// What a power cut may leave of a window in the data folder: nothing of it was ever synced.
#[test]
fn a_window_in_the_data_folder_that_a_power_cut_has_left_is_none() {
    let leave: [fn(&Place); 5] = [
        |place| fs::write(place.live().join("control"), []).unwrap(),
        |place| fs::write(place.live().join("control"), [0; 4096]).unwrap(),
        |place| fs::write(place.live().join("control"), [0; 100]).unwrap(),
        |place| {
            fs::write(place.live().join("control"), [0; 4096]).unwrap();
            fs::write(place.live().join("window"), []).unwrap();
        },
        |place| fs::remove_file(place.live().join("control")).unwrap(),
    ];
    for left in leave {
        let (place, venue, _) = running(47);
        let (records, _) = venue.kill();
        place.disk.cut_power();
        left(&place);
        let venue = place.open();
        assert!(venue.log.report.appended_only_lost_behind.is_some());
        venue.history.check(&records);
    }
}

#[test]
fn an_older_copy_of_the_data_folder_is_refused_while_the_window_knows_better() {
    let (place, mut venue, mut random) = running(48);
    let older: Vec<Record> = venue.history.records.clone();
    let copy = place.disk.copy();
    for _ in 0..50 {
        venue.trade(&mut random);
    }
    venue.settle();
    venue.kill();
    let restore = |place: &mut Place| place.disk = copy.copy();
    let mut place = place;
    restore(&mut place);
    let error = refusal(&place);
    let end = older.last().unwrap().end();
    assert!(
        matches!(&error, RecoveryError::WindowDiffers { position, .. } if *position >= end),
        "{error}"
    );
    assert!(error.to_string().contains("move the window's folder away"), "{error}");
    // Having done so, the operator gets what the copy has, and is told.
    let away = tempfile::tempdir().unwrap();
    copy_files(&place.live(), away.path());
    place.lose_window();
    let venue = place.open();
    assert!(venue.log.report.appended_only_lost_behind.is_some());
    venue.history.check(&older);
    venue.kill();
    // And the older window does not come back into a log that went on without it.
    place.lose_window();
    copy_files(away.path(), &place.live());
    assert!(matches!(
        refusal(&place),
        RecoveryError::WindowDiffers { .. } | RecoveryError::WindowStale { .. }
    ));
}
