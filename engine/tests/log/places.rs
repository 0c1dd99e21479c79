//! Segments that are whole and do not belong where they are.

use std::{
    fs,
    path::{Path, PathBuf},
};

use touchline_engine::{
    inspect::{Inspection, Verdict, inspect},
    log::WindowPlace,
    recovery::RecoveryError,
};
use touchline_protocol::{
    log::{
        lease::{LEASE_FOLDER, Lease},
        place::{HISTORY_FILE, HISTORY_FOLDER},
        segment::{LogIdentity, SegmentError, log_id_text},
        transaction::Bookmark,
    },
    units::{Incarnation, Position},
};

use crate::support::{Model, Place, Random, Record, SEGMENT, copy_folder, refusal};

/// A log that ended cleanly in its fourth segment, and its state.
fn closed_log(seed: u64) -> (Place, Model) {
    let place = Place::new();
    let mut random = Random::new(seed);
    let mut venue = place.open();
    venue.submit_up_to(&mut random, 3 * SEGMENT + SEGMENT / 4);
    let model = venue.close();
    (place, model)
}

fn swap(one: &Path, other: &Path) {
    let away = one.with_extension("away");
    fs::rename(one, &away).unwrap();
    fs::rename(other, one).unwrap();
    fs::rename(&away, other).unwrap();
}

fn looked_at(place: &Place) -> Inspection {
    inspect(&place.options.data, &mut |_| {}).unwrap()
}

/// The start and the tools say that `why` is wrong with the segment `number`, and nothing is changed by that; ends
/// the log there if that is allowed.
fn assert_misplaced(place: &mut Place, number: u64, why: SegmentError, kept: &[Record]) {
    // Each start removes what of a segment the engine before had not made to its end.
    let segments = |place: &Place| -> Vec<String> {
        place.names().into_iter().filter(|name| !name.ends_with(".new")).collect()
    };
    let before = segments(place);
    let error = refusal(place);
    assert!(
        matches!(&error, RecoveryError::Misplaced { path, source, .. }
            if *path == place.segment(number) && *source == why),
        "{error}"
    );
    let text = error.to_string();
    assert!(text.contains(&why.to_string()) && text.contains("--accept-loss"), "{text}");
    assert_eq!(segments(place), before);
    let verdict = looked_at(place).verdict;
    assert!(
        matches!(&verdict, Verdict::Misplaced { path, why: told, .. }
            if *path == place.segment(number) && *told == why),
        "{verdict:?}"
    );
    assert!(verdict.is_damage());
    place.told();
    place.options.accept_loss = true;
    let venue = place.open();
    assert_eq!(venue.model.records, kept);
    let told = place.told();
    assert!(told.iter().any(|line| line.contains("LOSS ACCEPTED")), "{told:?}");
    assert!(venue.report().loss_accepted_below.is_some());
    venue.close();
    place.options.accept_loss = false;
    assert_eq!(place.open().model.records, kept);
}

/// The transactions in front of the segment `number`.
fn in_front(model: &Model, number: u64) -> &[Record] {
    let count = model.records.iter().take_while(|record| record.position < number * SEGMENT);
    &model.records[..count.count()]
}

#[test]
fn a_start_that_is_refused_once_its_window_has_a_name_leaves_no_log_that_seems_to_run() {
    let (mut place, model) = closed_log(46);
    place.options.window_place = WindowPlace::SharedMemory;
    // It cannot be removed as a file can.
    let in_the_way = place.options.data.join("live/window");
    fs::create_dir_all(in_the_way.join("x")).unwrap();
    let error = refusal(&place);
    assert!(error.to_string().contains("live"), "{error}");
    let windows: Vec<_> = fs::read_dir(&place.environment.shared_memory)
        .unwrap()
        .flat_map(|user| fs::read_dir(user.unwrap().path()).unwrap())
        .map(|folder| folder.unwrap().path())
        .collect();
    assert_eq!(windows, Vec::<PathBuf>::new());
    assert!(!looked_at(&place).verdict.is_damage());
    fs::remove_dir_all(&in_the_way).unwrap();
    assert_eq!(place.open().model.records, model.records);
}

#[test]
fn segments_that_have_changed_their_names_are_no_unfinished_write() {
    let (mut place, model) = closed_log(40);
    swap(&place.segment(1), &place.segment(2));
    let why = SegmentError::Number { found: 2, expected: 1 };
    assert_misplaced(&mut place, 1, why, in_front(&model, 1));
}

#[test]
fn neither_is_the_last_one_with_the_name_of_the_one_made_ahead() {
    let (mut place, model) = closed_log(41);
    fs::write(place.segment(4), vec![0; SEGMENT as usize]).unwrap();
    swap(&place.segment(3), &place.segment(4));
    let why = SegmentError::Number { found: 3, expected: 4 };
    assert_misplaced(&mut place, 4, why, in_front(&model, 3));
}

#[test]
fn neither_is_a_copy_of_another_segment_or_one_of_another_log() {
    let (mut place, model) = closed_log(42);
    let kept = place.root.path().join("kept");
    copy_folder(&place.options.data, &kept);
    fs::copy(place.segment(1), place.segment(3)).unwrap();
    let why = SegmentError::Number { found: 1, expected: 3 };
    assert_misplaced(&mut place, 3, why, in_front(&model, 3));

    let (other, _) = closed_log(43);
    fs::remove_dir_all(&place.options.data).unwrap();
    copy_folder(&kept, &place.options.data);
    fs::copy(other.segment(3), place.segment(3)).unwrap();
    assert_misplaced(&mut place, 3, SegmentError::Foreign, in_front(&model, 3));
}

#[test]
fn neither_is_one_of_another_format() {
    let (mut place, model) = closed_log(44);
    let mut header = place.read(2 * SEGMENT, 64);
    header[8] = 9;
    let salt = u32::from_le_bytes(header[12..16].try_into().unwrap());
    let crc = crc32c::crc32c_append(salt, &header[..60]);
    header[60..].copy_from_slice(&crc.to_le_bytes());
    place.write(2 * SEGMENT, &header);
    let why = SegmentError::Version { found_major: 9, found_minor: 0 };
    assert_misplaced(&mut place, 2, why, in_front(&model, 2));
}

#[test]
fn a_log_in_the_place_of_another_is_not_opened() {
    let (place, model) = closed_log(45);
    let (other, _) = closed_log(46);
    let kept = place.root.path().join("kept");
    fs::copy(place.segment(0), &kept).unwrap();
    fs::copy(other.segment(0), place.segment(0)).unwrap();
    let before = place.names();
    let mark = place.options.data.join("log-id");
    let error = refusal(&place);
    let id = |segment: &Path| -> String {
        let (identity, _) = LogIdentity::read_header(&fs::read(segment).unwrap()).unwrap();
        log_id_text(&identity.log_id)
    };
    let (ours, theirs) = (id(&kept), id(&other.segment(0)));
    assert!(
        matches!(&error, RecoveryError::OtherLog { path, told, found }
            if (path, told, found) == (&mark, &ours, &theirs)),
        "{error}"
    );
    assert_eq!(looked_at(&place).marked, Some((mark.clone(), ours)));
    // Neither is it without that file, though nothing of it vouches for more.
    fs::remove_file(&mark).unwrap();
    let error = refusal(&place);
    assert!(
        matches!(&error, RecoveryError::Misplaced { path, source: SegmentError::Foreign, .. }
            if *path == place.segment(1)),
        "{error}"
    );
    assert_eq!(place.names(), before);
    fs::copy(&kept, place.segment(0)).unwrap();
    fs::remove_file(&mark).unwrap();
    let found = looked_at(&place);
    assert_eq!((found.verdict, found.marked), (Verdict::Sound, None));
    assert_eq!(place.open().model.records, model.records);
}

#[test]
fn what_tells_of_another_log_is_overruled_by_who_accepts_a_loss_and_what_tells_of_none_by_anybody()
{
    let (mut place, model) = closed_log(47);
    let mark = place.options.data.join("log-id");
    let ours = fs::read_to_string(&mark).unwrap();
    let long = "0".repeat(1 << 20);
    for told in ["", "half an id", "0123", &long] {
        fs::write(&mark, told).unwrap();
        assert_eq!(looked_at(&place).marked, None, "{} bytes", told.len());
        assert_eq!(place.open().close().records, model.records, "{} bytes", told.len());
        assert_eq!(fs::read_to_string(&mark).unwrap(), ours, "{} bytes", told.len());
    }
    fs::write(&mark, format!("{}\n", "0".repeat(32))).unwrap();
    assert!(matches!(refusal(&place), RecoveryError::OtherLog { .. }));
    place.options.accept_loss = true;
    assert_eq!(place.open().close().records, model.records);
    assert_eq!(fs::read_to_string(&mark).unwrap(), ours, "for the starts to come");
    place.options.accept_loss = false;
    assert_eq!(place.open().model.records, model.records);
}

#[test]
fn no_log_is_begun_where_anything_tells_that_there_was_one() {
    let (place, _) = closed_log(76);
    let data = &place.options.data;
    let mark = data.join("log-id");
    let id = fs::read(&mark).unwrap();
    fs::remove_dir_all(data.join("log")).unwrap();
    let refused_for = |trace: &Path| match refusal(&place) {
        RecoveryError::LogGone { traces, .. } => assert_eq!(traces, [trace]),
        error => panic!("{error}"),
    };
    refused_for(&mark);
    fs::remove_file(&mark).unwrap();
    let last = Bookmark { position: Position(64), incarnation: Incarnation(1), crc: 1 };
    Lease::hold(data, "reader", [1; 16], last).unwrap();
    refused_for(&data.join(LEASE_FOLDER));
    fs::remove_dir_all(data.join(LEASE_FOLDER)).unwrap();
    let history = data.join(HISTORY_FOLDER).join("one");
    fs::create_dir_all(&history).unwrap();
    fs::write(history.join(HISTORY_FILE), []).unwrap();
    refused_for(&history);
    fs::remove_file(history.join(HISTORY_FILE)).unwrap();
    assert!(place.open().report().new_log);
    assert_ne!(fs::read(&mark).unwrap(), id);
}

#[test]
fn a_segment_that_is_too_long_and_a_first_one_of_another_number_are_refused() {
    let (place, _) = closed_log(77);
    let path = place.segment(1);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, [&whole[..], &[0]].concat()).unwrap();
    let error = refusal(&place);
    assert!(
        matches!(&error, RecoveryError::SegmentLength { path: told, .. } if *told == path),
        "{error}"
    );
    fs::write(&path, whole).unwrap();
    for name in place.names() {
        let path = place.options.data.join("log").join(name);
        if path != place.segment(0) {
            fs::remove_file(path).unwrap();
        }
    }
    fs::rename(place.segment(0), place.segment(7)).unwrap();
    let error = refusal(&place);
    assert!(matches!(&error, RecoveryError::FirstSegment { .. }), "{error}");
}
