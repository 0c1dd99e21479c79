//! Readers: live, from disk, across restarts, and when history was lost.

use std::{
    fs::{self, OpenOptions},
    os::unix::fs::{FileExt, MetadataExt, chown},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use touchline_engine::log::WindowPlace;
use touchline_protocol::{
    log::{
        WINDOW_BYTES_MIN,
        control::LogState,
        reader::{Follow, LogReader, ReadError},
        transaction::Bookmark,
    },
    units::{Incarnation, Position},
};

use crate::{
    patience::{PATIENCE, Wait, eventually},
    skipped::skipped,
    support::{Model, Place, Random, Record, SEGMENT, copy_folder},
};

pub(crate) fn reader(place: &Place, follow: Follow) -> LogReader {
    LogReader::open_with(&place.options.data, follow, &place.environment.shared_memory).unwrap()
}

pub(crate) fn next(reader: &mut LogReader) -> Option<Record> {
    let transaction = reader.next().unwrap_or_else(|error| panic!("{error}"))?;
    Some(Record {
        position: transaction.position().0,
        end: transaction.end().0,
        time_ns: transaction.time_ns(),
        command: transaction.command_bytes().to_vec(),
        events: transaction.event_bytes().to_vec(),
        count: transaction.event_count(),
    })
}

pub(crate) fn rest(reader: &mut LogReader) -> Vec<Record> {
    std::iter::from_fn(|| next(reader)).collect()
}

/// Follows until `count` transactions were read.
fn follow(data: &Path, shared_memory: &Path, follow: Follow, count: usize) -> Vec<Record> {
    let mut reader = LogReader::open_with(data, follow, shared_memory).unwrap();
    let mut records = Vec::new();
    let mut wait = Wait::begin();
    while records.len() < count {
        match next(&mut reader) {
            Some(record) => {
                records.push(record);
                wait = Wait::begin();
            }
            None => {
                wait.go_on("the writer writes no more");
                reader.wait(Duration::from_millis(50)).unwrap();
            }
        }
    }
    assert_eq!(next(&mut reader), None);
    records
}

#[test]
fn readers_follow_a_busy_writer_over_laps_and_segments() {
    const COUNT: usize = 1_500;
    let place = Place::new();
    let mut random = Random::new(40);
    let mut venue = place.open();
    let data = &place.options.data;
    let shared_memory = &place.environment.shared_memory;
    thread::scope(|scope| {
        let readers = [Follow::Appended, Follow::Durable, Follow::Appended]
            .map(|mode| scope.spawn(move || follow(data, shared_memory, mode, COUNT)));
        for _ in 0..COUNT {
            venue.submit(&random.command(40_000));
        }
        for reader in readers {
            let records = reader.join().unwrap();
            assert!(records == venue.model.records);
        }
    });
    assert!(venue.log.control.appended().0 > 2 * WINDOW_BYTES_MIN);
    // One that comes late finds all of it, most of it on disk alone.
    assert!(rest(&mut reader(&place, Follow::Appended)) == venue.model.records);
}

#[test]
fn only_what_is_durable_is_read_where_that_is_asked_for() {
    let place = Place::new();
    let mut venue = place.open();
    place.disk.hold(true);
    let record = venue.submit(&[16; 16]);
    let mut durable = reader(&place, Follow::Durable);
    let mut appended = reader(&place, Follow::Appended);
    assert_eq!(next(&mut durable), None);
    assert_eq!(next(&mut appended), Some(record.clone()));
    assert!(durable.watermark() < appended.watermark());
    place.disk.hold(false);
    venue.settle();
    assert_eq!(next(&mut durable), Some(record));
    assert_eq!(durable.position(), venue.log.control.durable());
}

#[test]
fn what_was_begun_is_never_read() {
    let place = Place::new();
    let mut venue = place.open();
    let mut reader = reader(&place, Follow::Appended);
    venue.log.writer.begin(&[16; 16]).unwrap();
    assert_eq!(next(&mut reader), None);
    venue.log.writer.abandon();
    let record = venue.append(&[8; 8]);
    assert_eq!(rest(&mut reader), [record]);
}

#[test]
fn a_reader_outlives_engines() {
    let place = Place::new();
    let mut random = Random::new(41);
    let mut venue = place.open();
    let mut readers = [reader(&place, Follow::Appended), reader(&place, Follow::Durable)];
    let mut read = [Vec::new(), Vec::new()];
    for run in 0..8 {
        for _ in 0..40 {
            venue.submit(&random.command(60_000));
        }
        venue.settle();
        for (reader, read) in readers.iter_mut().zip(&mut read) {
            // A reader that does not look while an engine runs catches up with the next one.
            if run % 3 != 2 {
                read.extend(rest(reader));
                assert!(*read == venue.model.records);
            }
        }
        if run % 2 == 0 {
            venue.close();
        } else {
            venue.kill();
            assert_eq!(readers[0].state(), Some(LogState::Running));
        }
        venue = place.open();
        // Whether the engine ended or died, whoever holds its window is told.
        assert!(readers.iter().all(|reader| reader.state() == Some(LogState::Stopped)));
        for reader in &mut readers {
            assert!(reader.attach().unwrap());
            assert!(!reader.attach().unwrap());
            assert_eq!(reader.incarnation(), Some(Incarnation(run + 2)));
        }
    }
}

#[test]
fn waiting_ends_when_an_engine_comes_back() {
    let place = Place::new();
    let mut venue = place.open();
    let mut reader = reader(&place, Follow::Durable);
    let first = venue.submit(&[16; 16]);
    venue.close();
    assert_eq!(rest(&mut reader), [first]);
    thread::scope(|scope| {
        let waiting = scope.spawn(move || {
            let wait = Wait::begin();
            loop {
                if let Some(record) = next(&mut reader) {
                    return record;
                }
                reader.wait(PATIENCE).unwrap();
                wait.go_on("no engine comes back");
            }
        });
        let mut venue = place.open();
        let second = venue.submit(&[24; 24]);
        assert_eq!(waiting.join().unwrap(), second);
    });
}

#[test]
fn without_an_engine_the_log_is_read_to_its_end_on_disk() {
    let place = Place::new();
    let mut random = Random::new(42);
    let mut venue = place.open();
    venue.submit_up_to(&mut random, 2 * SEGMENT);
    let model = venue.close();
    let mut reader = reader(&place, Follow::Durable);
    assert_eq!((reader.incarnation(), reader.state()), (None, None));
    assert!(rest(&mut reader) == model.records);
    // And goes on when there is one.
    let mut venue = place.open();
    let record = venue.submit(&[16; 16]);
    venue.settle();
    reader.wait(Duration::from_secs(1)).unwrap();
    assert_eq!(reader.state(), Some(LogState::Running));
    assert_eq!(next(&mut reader), Some(record));
}

#[test]
fn what_was_read_ahead_without_an_engine_does_not_count_later() {
    let place = Place::new();
    let mut random = Random::new(46);
    let mut venue = place.open();
    for _ in 0..3 {
        venue.submit(&random.command(1_000));
    }
    venue.close();
    let mut reader = reader(&place, Follow::Durable);
    assert!(next(&mut reader).is_some());
    let mut venue = place.open();
    // So much that what follows the reader is not in the window any more.
    venue.submit_up_to(&mut random, WINDOW_BYTES_MIN + 2 * SEGMENT);
    venue.settle();
    assert!(reader.attach().unwrap());
    assert!(rest(&mut reader) == venue.model.records[1..]);
}

#[test]
fn a_reader_is_told_when_its_history_is_not_part_of_the_log_any_more() {
    let place = Place::new();
    let mut venue = place.open();
    venue.submit(&[16; 16]);
    venue.settle();
    place.disk.hold(true);
    let lost = venue.append(&[24; 24]);
    let mut ahead = reader(&place, Follow::Appended);
    let mut behind = reader(&place, Follow::Durable);
    assert_eq!(rest(&mut ahead).len(), 2);
    assert_eq!(rest(&mut behind).len(), 1);
    // A power cut that the readers survive, as far as they can tell.
    place.kill_before_disk(venue);
    place.lose_window();
    let mut venue = place.open();
    // The log grows beyond where the reader stood, with something else.
    for _ in 0..5 {
        venue.submit(&[32; 32]);
    }
    venue.settle();
    let error = ahead.attach().unwrap_err();
    assert!(
        matches!(error, ReadError::HistoryLost { position } if position == lost.position),
        "{error}"
    );
    assert!(behind.attach().unwrap());
    assert_eq!(rest(&mut behind), venue.model.records[1..]);
}

/// The incarnations of a log begin again with those of the copy that it was restored from.
#[test]
fn a_log_that_was_restored_from_an_older_copy_is_noticed() {
    let places = [WindowPlace::Data, WindowPlace::SharedMemory];
    for (window_place, later) in places.into_iter().flat_map(|place| [(place, 1), (place, 2)]) {
        let mut place = Place::new();
        place.options.window_place = window_place;
        let data = place.options.data.clone();
        let copy = place.root.path().join("copy");
        let mut venue = place.open();
        let kept = venue.submit(&[16; 16]);
        venue.close();
        copy_folder(&data, &copy);
        let mut behind = reader(&place, Follow::Durable);
        assert_eq!(rest(&mut behind), [kept]);
        let mut ahead = reader(&place, Follow::Durable);
        let mut lost = 0;
        for run in 0..later {
            let mut venue = place.open();
            lost = venue.submit(&[24; 24]).position;
            venue.settle();
            assert!(ahead.attach().unwrap() && behind.attach().unwrap());
            assert!(!rest(&mut ahead).is_empty());
            if run == 0 { drop(venue.close()) } else { drop(venue.kill()) }
        }
        fs::remove_dir_all(&data).unwrap();
        place.lose_window();
        assert!(!ahead.attach().unwrap(), "there is no engine");
        fs::rename(&copy, &data).unwrap();
        let mut venue = place.open();
        assert_eq!(venue.report().incarnation, Incarnation(2));
        for _ in 0..5 {
            venue.submit(&[32; 32]);
        }
        venue.settle();
        let error = ahead.attach().unwrap_err();
        assert!(
            matches!(error, ReadError::HistoryLost { position } if position == lost),
            "{error}"
        );
        assert!(behind.attach().unwrap());
        assert_eq!(rest(&mut behind), venue.model.records[1..]);
        assert!(!behind.attach().unwrap(), "it is the same");
    }
}

#[test]
fn a_bookmark_is_found_again_or_not() {
    let place = Place::new();
    let mut random = Random::new(43);
    let mut venue = place.open();
    let mut first = reader(&place, Follow::Appended);
    for _ in 0..400 {
        venue.submit(&random.command(60_000));
    }
    venue.settle();
    let mut bookmarks = Vec::new();
    while let Some(transaction) = first.next().unwrap() {
        bookmarks.push(transaction.bookmark());
    }
    let mut second = reader(&place, Follow::Durable);
    // From disk and from the window.
    for index in [0, 200, 398] {
        assert!(second.resume(&bookmarks[index]).unwrap());
        assert_eq!(next(&mut second).as_ref(), Some(&venue.model.records[index + 1]));
    }
    let position = second.position();
    let bookmark = bookmarks[100];
    let others = [
        Bookmark { crc: bookmark.crc ^ 1, ..bookmark },
        Bookmark { incarnation: Incarnation(9), ..bookmark },
        Bookmark { position: Position(bookmark.position.0 + 64), ..bookmark },
        Bookmark { position: Position(bookmark.position.0 + 1), ..bookmark },
        Bookmark { position: Position(0), ..bookmark },
        Bookmark { position: Position(u64::MAX - 63), ..bookmark },
    ];
    for other in others {
        assert!(!second.resume(&other).unwrap(), "{other:?}");
        assert_eq!(second.position(), position);
    }
}

#[test]
fn what_is_older_than_the_log_is_refused() {
    let place = Place::new();
    let mut random = Random::new(44);
    let mut venue = place.open();
    venue.submit_up_to(&mut random, WINDOW_BYTES_MIN + 2 * SEGMENT);
    venue.settle();
    let removed = place.root.path().join("removed");
    fs::rename(place.segment(0), &removed).unwrap();
    let mut reader = reader(&place, Follow::Durable);
    assert_eq!(reader.position(), Position(SEGMENT));
    let records = rest(&mut reader);
    assert!(records == venue.model.records[venue.model.records.len() - records.len()..]);
    reader.seek(Position(4096));
    let error = reader.next().unwrap_err();
    assert!(matches!(error, ReadError::TooOld { position: 4096, oldest: SEGMENT }), "{error}");
    // Nothing was given up of what an engine of that incarnation wrote there; of an earlier one nobody knows.
    let incarnation = venue.log.control.incarnation();
    let seen = Position(8192);
    assert_eq!(reader.kept(incarnation, seen).unwrap(), Position(SEGMENT));
    for other in [incarnation.0 - 1, incarnation.0 + 1] {
        assert_eq!(reader.kept(Incarnation(other), seen).unwrap(), Position(0), "{other}");
    }
    // The next engine began behind that: whoever saw it of one of that number had it of another copy of the log.
    venue.close();
    fs::rename(&removed, place.segment(0)).unwrap();
    let venue = place.open();
    let next = venue.log.control.incarnation();
    fs::remove_file(place.segment(0)).unwrap();
    let mut reader = self::reader(&place, Follow::Durable);
    assert_eq!(reader.kept(next, seen).unwrap(), Position(0));
    assert_eq!(reader.kept(incarnation, seen).unwrap(), Position(SEGMENT));
}

#[test]
fn a_position_that_is_no_end_of_anything_is_named() {
    let place = Place::new();
    let mut random = Random::new(47);
    let mut venue = place.open();
    // Not so far that the window is past its own end.
    venue.submit_up_to(&mut random, WINDOW_BYTES_MIN + 1);
    venue.settle();
    let mut reader = reader(&place, Follow::Appended);
    let (first, behind) = (reader.position().0, reader.watermark().0);
    // Of those before the window's end, the header of a frame there would not fit into the window.
    let odd = (1..64).map(|back| WINDOW_BYTES_MIN - back).chain([first + 1, first + 8, behind - 8]);
    // Behind the end no frame will ever begin there.
    let odd = odd.chain([behind + 1, behind + SEGMENT - 8, u64::MAX]);
    for odd in odd {
        reader.seek(Position(odd));
        let error = reader.next().unwrap_err();
        assert!(
            matches!(error, ReadError::Damaged { position, .. } if position == odd),
            "{odd}: {error}"
        );
    }
    reader.seek(Position(first));
    assert!(next(&mut reader).as_ref() == venue.model.records.first());
    for end in [behind, behind + 64, behind + 2 * SEGMENT] {
        reader.seek(Position(end));
        assert!(next(&mut reader).is_none());
    }
}

/// Beside an engine and without one.
#[test]
fn whatever_position_is_asked_for_nothing_is_found_that_was_not_written() {
    let place = Place::new();
    let mut random = Random::new(48);
    let mut venue = place.open();
    venue.submit_up_to(&mut random, WINDOW_BYTES_MIN + 1);
    venue.settle();
    let end = venue.log.writer.position().0;
    let mut wishes = vec![0, u64::MAX, u64::MAX - 63, end, end - 64, end + 64];
    for boundary in [SEGMENT, WINDOW_BYTES_MIN, WINDOW_BYTES_MIN - SEGMENT, u64::MAX - SEGMENT + 1]
    {
        wishes.extend((0..200).map(|offset| boundary - 100 + offset));
    }
    wishes.extend((0..3_000).map(|_| random.below(2 * end)));
    wishes.extend((0..3_000).map(|_| random.below(2 * end) & !63));
    let check = |model: &Model| {
        let mut reader = reader(&place, Follow::Appended);
        let mut found = 0;
        for wish in &wishes {
            reader.seek(Position(*wish));
            let Ok(Some(transaction)) = reader.next() else { continue };
            let at = transaction.position().0;
            let written = model.records.binary_search_by_key(&at, |record| record.position);
            let record = &model.records[written.unwrap_or_else(|_| panic!("{wish}: one at {at}"))];
            assert!(transaction.command_bytes() == record.command, "{wish}");
            assert!(transaction.event_bytes() == record.events, "{wish}");
            found += 1;
        }
        assert!(found > 0, "all wishes were wrong");
    };
    check(&venue.model);
    check(&venue.close());
}

#[test]
fn damage_below_the_watermark_is_named() {
    let place = Place::new();
    let mut random = Random::new(45);
    let mut venue = place.open();
    venue.submit_up_to(&mut random, WINDOW_BYTES_MIN + 2 * SEGMENT);
    venue.settle();
    let damaged = venue.model.records[3].position;
    place.flip(damaged + 49);
    let mut reader = reader(&place, Follow::Durable);
    for _ in 0..3 {
        assert!(next(&mut reader).is_some());
    }
    let error = reader.next().unwrap_err();
    assert!(
        matches!(&error, ReadError::Damaged { path, offset, .. }
            if *path == place.segment(0) && *offset == damaged),
        "{error}"
    );
}

#[test]
fn a_folder_without_a_log_is_refused() {
    let place = Place::new();
    let data = &place.options.data;
    let open = || LogReader::open(data, Follow::Durable);
    // What is missing is named.
    let is_missing = |opened: &Result<LogReader, ReadError>| {
        matches!(opened, Err(ReadError::Io { source, .. })
            if source.kind() == std::io::ErrorKind::NotFound)
    };
    assert!(is_missing(&open()));
    fs::create_dir(data).unwrap();
    assert!(is_missing(&open()));
    fs::create_dir(data.join("log")).unwrap();
    assert!(matches!(open(), Err(ReadError::NoLog { .. })));
}

#[test]
fn a_record_of_the_engine_that_is_lost_with_the_window_stops_no_reader() {
    let mut place = Place::new();
    place.environment.attest_after = Duration::ZERO;
    let mut venue = place.open();
    let known = venue.submit(&[16; 16]);
    venue.settle();
    // All that is lost is a record that no reader is given.
    assert!(eventually(|| venue.log.writer.attest_asked()), "nobody asks for a record");
    place.disk.hold(true);
    venue.log.writer.attest_if_asked(2_000);
    let mut reader = reader(&place, Follow::Appended);
    assert_eq!(rest(&mut reader), [known]);
    assert_eq!(reader.position(), venue.log.control.appended());
    assert!(venue.log.control.durable() < venue.log.control.appended());
    place.kill_before_disk(venue);
    place.lose_window();
    let mut venue = place.open();
    let new = venue.submit(&[24; 24]);
    venue.settle();
    assert!(reader.attach().unwrap());
    assert_eq!(rest(&mut reader), [new]);
}

#[test]
fn what_a_lost_incarnation_wrote_is_not_had_where_a_later_one_happens_to_end() {
    // Without events: 64 bytes, as an incarnation's record.
    let small = [0, 0, 1, 1, 1, 1, 1, 1];
    let place = Place::new();
    let mut venue = place.open();
    venue.submit(&small);
    venue.settle();
    place.disk.hold(true);
    let begin = venue.log.control.appended().0;
    let lost = [venue.append(&small), venue.append(&small)];
    let first = venue.log.control.incarnation();
    assert!(reader(&place, Follow::Appended).has(first, Position(lost[1].end)).unwrap());
    place.kill_before_disk(venue);
    place.lose_window();
    // The record of the second incarnation and its transaction take the room of what was lost.
    let mut venue = place.open();
    let second = venue.log.control.incarnation();
    let kept = venue.submit(&small);
    assert_eq!(kept.end, lost[1].end);
    venue.settle();
    venue.kill();
    let _venue = place.open();
    let mut reader = reader(&place, Follow::Appended);
    assert!(reader.has(second, Position(kept.end)).unwrap());
    assert!(!reader.has(first, Position(lost[1].end)).unwrap());
    // Not up to where the log goes by now, which is behind all that is lost.
    assert!(reader.watermark().0 > lost[1].end);
    for lost in &lost {
        assert_eq!(reader.kept(first, Position(lost.end)).unwrap().0, begin);
    }
    assert_eq!(reader.kept(second, Position(kept.end + 64)).unwrap().0, kept.end);
    assert_eq!(reader.kept(second, Position(begin + 8)).unwrap(), Position(0), "no position");
    // Only an engine of a log whose copy this one is can have told of that. Where the copy ends nothing tells.
    let (last, end) = (reader.incarnation().unwrap(), reader.watermark().0);
    for incarnation in [last, Incarnation(last.0 + 1)] {
        for beyond in [end - 64, end, end + 64, end + (8 << 20)] {
            let kept = reader.has(incarnation, Position(beyond)).unwrap()
                || reader.kept(incarnation, Position(beyond)).unwrap().0 > 0;
            assert_eq!(kept, incarnation == last && beyond <= end, "{incarnation:?} {beyond}");
        }
    }
}

#[test]
fn what_an_incarnation_wrote_to_its_end_is_had_wherever_it_ended() {
    let place = Place::new();
    let mut random = Random::new(47);
    for run in 0..10 {
        let mut venue = place.open();
        let incarnation = venue.log.control.incarnation();
        // With a padding, a segment's header and nothing behind it, or in the midst of a segment.
        while venue.log.control.appended().0 % SEGMENT > 4096 || run % 2 == 1 {
            venue.submit(&random.command(60_000));
            if run % 2 == 1 && random.below(5) == 0 {
                break;
            }
        }
        let end = venue.log.control.appended();
        venue.kill();
        let later = place.open();
        let mut reader = reader(&place, Follow::Appended);
        assert!(reader.has(incarnation, end).unwrap(), "run {run}");
        assert!(!reader.has(Incarnation(incarnation.0 - 1), end).unwrap(), "run {run}");
        let last = Position(later.model.records.last().unwrap().end);
        assert!(reader.has(incarnation, last).unwrap(), "run {run}");
        // As if it had gone on, and the power cut had taken that back.
        let beyond = Position(end.0 + (8 << 20));
        let kept = reader.kept(incarnation, beyond).unwrap();
        assert!(kept >= last && kept.0 <= end.0 + 4096, "run {run}: {kept} of {end}");
        later.close();
    }
}

#[test]
fn a_control_page_that_a_power_cut_has_left_is_none() {
    let place = Place::new();
    let mut venue = place.open();
    let record = venue.submit(&[16; 16]);
    venue.settle();
    venue.kill();
    let page = place.options.data.join("live").join("control");
    let bytes = fs::read(&page).unwrap();
    for left in [Vec::new(), vec![0; 4096], bytes[..40].to_vec()] {
        fs::write(&page, left).unwrap();
        let mut reader = reader(&place, Follow::Durable);
        assert_eq!(reader.incarnation(), None);
        assert_eq!(next(&mut reader), Some(record.clone()));
    }
}

/// The folder of this user's windows, in which anybody may have been first.
fn user_folder(place: &Place) -> PathBuf {
    let uid = fs::metadata(place.root.path()).unwrap().uid();
    place.environment.shared_memory.join(format!("touchline-{uid}"))
}

#[test]
fn what_is_no_folder_of_this_user_in_shared_memory_hinders_nobody() {
    let mut place = Place::new();
    place.options.window_place = WindowPlace::Auto;
    fs::write(user_folder(&place), []).unwrap();
    for run in 0..2 {
        let mut venue = place.open();
        assert!(!venue.report().window.in_shared_memory);
        venue.submit(&[16; 16]);
        venue.settle();
        let mut reader = reader(&place, Follow::Durable);
        assert_eq!(reader.incarnation(), Some(Incarnation(run + 1)));
        assert_eq!(rest(&mut reader), venue.model.records);
        venue.kill();
    }
}

#[test]
fn a_window_that_is_somebody_elses_is_not_looked_into() {
    let mut place = Place::new();
    place.options.window_place = WindowPlace::SharedMemory;
    place.open().kill();
    let user = user_folder(&place);
    if let Err(error) = chown(&user, Some(65_532), None) {
        return skipped(format_args!("leave to give folders away ({error})"));
    }
    place.options.window_place = WindowPlace::Auto;
    let mut venue = place.open();
    let report = venue.report();
    assert!(!report.window.in_shared_memory && report.appended_only_lost_behind.is_some());
    venue.submit(&[16; 16]);
    venue.settle();
    // Its page, of whatever incarnation it says it is, is not followed either, and stays where it is.
    let folder = fs::read_dir(&user).unwrap().next().unwrap().unwrap().path();
    let page = OpenOptions::new().write(true).open(folder.join("control")).unwrap();
    page.write_all_at(&u32::MAX.to_le_bytes(), 12).unwrap();
    let mut reader = reader(&place, Follow::Appended);
    assert_eq!(reader.incarnation(), Some(venue.log.control.incarnation()));
    assert_eq!(rest(&mut reader), venue.model.records);
}
