//! Death of the process, power cuts, and both in the middle of recovery.

use std::{fs, sync::atomic::Ordering, thread, time::Duration};

use touchline_engine::log::WindowPlace;
use touchline_engine::recovery::RecoveryError;
use touchline_protocol::log::SEGMENT_HEADER_BYTES;

use crate::patience::in_a_few_tries;
use crate::support::{Model, Place, Random, Record, SEGMENT, Venue, copy_folder};

#[test]
fn a_killed_process_loses_nothing_that_was_appended() {
    let place = Place::new();
    let mut random = Random::new(10);
    let mut known = Model::default();
    for _ in 0..30 {
        let mut venue = place.open();
        assert_eq!(venue.model, known);
        for _ in 0..random.below(60) {
            let command = random.command(40_000);
            if random.below(2) == 0 {
                venue.append(&command);
            } else {
                venue.submit(&command);
            }
        }
        let appended = venue.log.control.appended().0;
        known = venue.kill().0;
        let venue = place.open();
        assert_eq!(venue.report().recovered_end.0, appended);
        assert_eq!(venue.report().appended_only_lost_behind, None);
        assert_eq!(venue.report().dropped.bytes, 0);
        venue.close();
    }
}

#[test]
fn a_power_cut_loses_nothing_that_was_durable_and_the_rest_is_said_to_be_lost() {
    let place = Place::new();
    let mut random = Random::new(11);
    let mut known = Model::default();
    let mut lost = 0;
    for _ in 0..30 {
        let mut venue = place.open();
        assert_eq!(venue.model.records, known.records);
        for _ in 0..random.below(60) {
            venue.submit(&random.command(40_000));
        }
        let (model, durable) = venue.kill();
        place.lose_window();
        let venue = place.open();
        let survivors = &venue.model.records;
        assert_eq!(survivors[..], model.records[..survivors.len()]);
        assert!(model.records[survivors.len()..].iter().all(|record| record.end > durable));
        lost += model.records.len() - survivors.len();
        let end = venue.report().recovered_end;
        assert_eq!(venue.report().appended_only_lost_behind, Some(end));
        known = venue.close();
    }
    assert!(lost > 0, "the test is to lose something");
}

/// Appends while the disk is held up, so that nothing appended vouches for anything else that is;
/// then lets all of it become durable.
fn append_unattested(
    place: &Place,
    venue: &mut Venue,
    random: &mut Random,
    count: u64,
    events: u16,
) {
    place.disk.hold(true);
    for _ in 0..count {
        venue.append(&random.command(events));
    }
    place.disk.hold(false);
    venue.settle();
}

/// Zeroes some sectors of the disk log from `from` to `to`, all of them or any; gives the position of
/// the first byte that is another one now.
fn lose_sectors(place: &Place, random: &mut Random, from: u64, to: u64) -> u64 {
    let all = random.below(2) == 0;
    let mut first = u64::MAX;
    for sector in from / 512..to.div_ceil(512) {
        let start = (sector * 512).max(from);
        let length = (sector * 512 + 512 - start) as usize;
        if all || random.below(4) == 0 {
            let bytes = place.read(start, length);
            if let Some(byte) = bytes.iter().position(|&byte| byte != 0) {
                first = first.min(start + byte as u64);
            }
            place.write(start, &vec![0; length]);
        }
    }
    first
}

#[test]
fn a_dropped_tail_never_comes_back() {
    let place = Place::new();
    let mut random = Random::new(12);
    let mut known: Vec<Record> = Vec::new();
    let mut dropped = 0;
    for run in 0..300 {
        let mut venue = place.open();
        assert_eq!(venue.model.records, known, "run {run}");
        assert_eq!(venue.report().incarnation.0, run + 1);
        let start = venue.log.control.appended().0;
        let count = 1 + random.below(8);
        append_unattested(&place, &mut venue, &mut random, count, 3_000);
        let end = venue.log.control.appended().0;
        let (model, _) = venue.kill();
        place.lose_window();
        let from = start + random.below((end - start) / 64) * 64;
        let first_lost = if end / SEGMENT == start / SEGMENT {
            lose_sectors(&place, &mut random, from, end)
        } else {
            u64::MAX
        };
        known = model.records;
        let before = known.len();
        // A gap between two frames may be lost without harm to either.
        known.retain(|record| record.bytes_end() <= first_lost);
        dropped += before - known.len();
    }
    assert!(dropped > 300, "the test is to drop something, but has dropped {dropped}");
}

#[test]
fn a_frame_left_over_from_a_dropped_tail_does_not_pass_for_a_new_one() {
    // Incarnation record and transaction without events: 64 bytes each.
    let small = [0, 0, 1, 1, 1, 1, 1, 1];
    let place = Place::new();
    let mut venue = place.open();
    place.disk.hold(true);
    let first = venue.append(&small);
    let second = venue.append(&[0; 80]);
    let third = venue.append(&small);
    assert_eq!((second.end - second.position, third.end - third.position), (128, 64));
    place.disk.hold(false);
    venue.settle();
    venue.kill();
    let leftover = place.read(third.position, 64);
    place.lose_window();
    place.flip(second.position);
    let mut venue = place.open();
    assert_eq!(venue.model.records, std::slice::from_ref(&first));
    // Where the third one lay, nothing is left, and the new frames end exactly there.
    let new = venue.append(&small);
    assert_eq!(new.end, third.position);
    venue.settle();
    venue.kill();
    place.lose_window();
    assert_eq!(place.read(third.position, 64), [0; 64]);
    place.write(third.position, &leftover);
    let venue = place.open();
    assert_eq!(venue.model.records, [first, new]);
    assert_eq!(venue.report().dropped.frames, 0);
    assert_eq!(venue.report().dropped.bytes, third.bytes_end() - third.position);
}

#[test]
fn the_log_ends_before_the_first_sector_that_is_missing_wherever_it_is() {
    let place = Place::new();
    let mut random = Random::new(13);
    let mut venue = place.open();
    let start = venue.log.control.appended().0;
    append_unattested(&place, &mut venue, &mut random, 12, 3_000);
    let end = venue.log.control.appended().0;
    let (model, _) = venue.kill();
    place.lose_window();
    let whole = place.read(0, SEGMENT as usize);
    for cut in (start..=end).step_by(192) {
        place.write(0, &whole[..cut as usize]);
        place.write(cut, &vec![0; (SEGMENT - cut) as usize]);
        let first_lost =
            (cut..end).find(|&position| whole[position as usize] != 0).unwrap_or(u64::MAX);
        let venue = place.open();
        let survivors: Vec<_> = model
            .records
            .iter()
            .filter(|record| record.bytes_end() <= first_lost)
            .cloned()
            .collect();
        assert_eq!(venue.model.records, survivors, "cut at {cut}");
        let report = venue.report().clone();
        assert_eq!(report.dropped.bytes > 0, cut > report.recovered_end.0, "cut at {cut}");
        venue.kill();
        place.lose_window();
        for path in report.dropped.kept_in {
            fs::remove_file(path).unwrap();
        }
    }
}

#[test]
fn recovery_may_break_off_after_any_disk_call() {
    let mut random = Random::new(14);
    let origin = Place::new();
    let mut venue = origin.open();
    // Two segments and a bit, of which a good part is only in the window, or torn on disk.
    venue.submit_up_to(&mut random, 2 * SEGMENT);
    venue.settle();
    // So much that what is torn is cleared by more than one call.
    let torn = venue.model.records.len();
    append_unattested(&origin, &mut venue, &mut random, 50, 60_000);
    assert!(venue.log.control.durable().0 > venue.model.records[torn].position + (1 << 20));
    origin.disk.hold(true);
    for _ in 0..60 {
        venue.append(&random.command(60_000));
    }
    // Nothing of the last ones reaches the disk: the keeper finds it broken.
    origin.disk.broken.store(true, Ordering::SeqCst);
    venue.log.writer.tell_keeper();
    origin.disk.hold(false);
    let (model, _) = venue.kill();

    for with_window in [true, false] {
        let place = Place::new();
        copy_folder(&origin.options.data, &place.options.data);
        let expected = if with_window {
            model.records.clone()
        } else {
            place.lose_window();
            place.flip(model.records[torn].position + 50);
            model.records[..torn].to_vec()
        };
        let (mut broken_off, mut is_told) = (0, false);
        let venue = loop {
            assert!(broken_off < 10_000, "a start of ever more calls of the disk");
            place.disk.calls_left.store(broken_off, Ordering::SeqCst);
            match place.try_open() {
                Ok(venue) => break venue,
                Err(_) => broken_off += 1,
            }
            let is_kept = place.names().iter().any(|name| name.contains(".dropped-"));
            is_told |= place.told().iter().any(|line| line.contains("taken out"));
            assert!(is_told || !is_kept, "broken off behind {broken_off} calls, it told nothing");
        };
        assert!(broken_off >= 2, "only {broken_off} calls");
        assert_eq!(is_told, !with_window);
        assert_eq!(venue.model.records, expected);
        assert!(venue.report().incarnation.0 > 1);
        if with_window {
            assert_eq!(venue.report().appended_only_lost_behind, None);
        } else {
            // Whichever attempt kept what was dropped, none has overwritten it.
            let position = model.records[torn + 1].position;
            let name = format!("{:08}.dropped-2", position / SEGMENT);
            let kept = fs::read(place.options.data.join("log").join(name)).unwrap();
            // Nor has another one kept the same again.
            let names = place.names();
            let of_segments = names.iter().filter_map(|name| name.split_once(".dropped-"));
            let mut of_segments: Vec<_> = of_segments.map(|(segment, _)| segment).collect();
            let files = of_segments.len();
            of_segments.dedup();
            assert_eq!(of_segments.len(), files, "{names:?}");
            let command = (position % SEGMENT) as usize + 48;
            let length = model.records[torn + 1].command.len();
            assert_eq!(kept[command..command + length], model.records[torn + 1].command);
        }
        // The keeper may have met the broken disk already, so this engine just dies.
        venue.kill();
        place.disk.calls_left.store(-1, Ordering::SeqCst);
        let venue = place.open();
        assert_eq!(venue.model.records, expected);
        venue.close();
        assert_eq!(place.open().model.records, expected);
    }
}

#[test]
fn who_looks_into_a_windows_folder_for_a_moment_keeps_no_engine_from_starting() {
    let mut place = Place::new();
    place.options.window_place = WindowPlace::SharedMemory;
    let mut venue = place.open();
    let record = venue.submit(&[16; 16]);
    let folder = venue.log.control.path().parent().unwrap().to_owned();
    venue.kill();
    let mut venue = None;
    // On a machine that stands still a moment is longer than a start waits.
    assert!(in_a_few_tries(|| {
        // As another engine of this user does, which looks for windows whose data folders are gone.
        let look = fs::File::open(&folder).unwrap();
        look.lock().unwrap();
        let opened = thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(100));
                drop(look);
            });
            place.try_open()
        });
        match opened {
            Err(RecoveryError::WindowLocked { .. }) => false,
            opened => {
                venue = Some(opened.unwrap_or_else(|error| panic!("{error}")));
                true
            }
        }
    }));
    assert_eq!(venue.unwrap().model.records, [record]);
}

#[test]
fn a_start_that_was_broken_off_at_another_place_of_the_window_is_no_hindrance() {
    let mut place = Place::new();
    place.options.window_place = WindowPlace::SharedMemory;
    let venue = place.open();
    let folder = venue.log.control.path().parent().unwrap().to_owned();
    venue.kill();
    // Killed when the next window had its control page, and before anybody was to find it.
    fs::remove_file(folder.join("window")).unwrap();
    fs::rename(folder.join("control"), folder.join("control.new")).unwrap();
    fs::write(folder.join("window"), [0; 64]).unwrap();
    place.options.window_place = WindowPlace::Data;
    place.open().close();
    assert!(!folder.exists());
}

/// What an operator has put there, or has made of it, is no window.
#[test]
fn the_folder_of_the_other_place_of_the_window_is_no_hindrance_though_it_stays() {
    for is_link in [false, true] {
        let mut place = Place::new();
        let (live, elsewhere) =
            (place.options.data.join("live"), place.root.path().join("elsewhere"));
        if is_link {
            fs::create_dir_all(&place.options.data).unwrap();
            fs::create_dir(&elsewhere).unwrap();
            std::os::unix::fs::symlink(&elsewhere, &live).unwrap();
        }
        let mut venue = place.open();
        venue.submit(&[16; 16]);
        let (mut model, _) = venue.kill();
        fs::write(live.join("note"), "").unwrap();
        for window_place in [WindowPlace::SharedMemory, WindowPlace::Data, WindowPlace::Auto] {
            place.options.window_place = window_place;
            let mut venue = place.open();
            assert_eq!(venue.model, model);
            venue.submit(&[24; 24]);
            model = venue.kill().0;
        }
        assert_eq!(place.open().close(), model);
        let left: Vec<_> = fs::read_dir(&live).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert_eq!(left, ["note"]);
    }
}

#[test]
fn when_the_engine_was_last_alive_is_known_as_long_as_something_tells_it() {
    let place = Place::new();
    let mut random = Random::new(13);
    let venue = place.open();
    assert_eq!(venue.report().last_alive_ns, 0, "a new log");
    venue.close();
    // What is alive at `heartbeat_ns`, behind one transaction; gives the time of that.
    let mut run = |heartbeat_ns: u64| {
        let mut venue = place.open();
        let last = venue.submit(&random.command(40));
        venue.settle();
        venue.log.control.set_heartbeat(heartbeat_ns);
        (venue, last.time_ns)
    };
    let alive = |how: &str, expected: (u64, u64)| {
        let venue = place.open();
        let report = venue.report();
        assert_eq!((report.last_time_ns, report.last_alive_ns), expected, "{how}");
        venue.close();
    };
    let (venue, last) = run(5_000);
    venue.kill();
    alive("the process was killed", (last, 5_000));
    let (venue, last) = run(6_000);
    place.lose_window();
    venue.kill();
    alive("the power was cut", (last, last));
    let (venue, _) = run(7_000);
    venue.close();
    assert!(!place.options.data.join("live").exists());
    for start in ["ended cleanly", "was followed by a start without a sign of life"] {
        alive(start, (7_000, 7_000));
    }
    let (venue, last) = run(0);
    venue.kill();
    alive("there was no sign of life yet", (last, last));
    let (venue, last) = run(u64::MAX);
    venue.kill();
    alive("anything stands there", (last, u64::MAX));
}

#[test]
fn a_log_that_ends_with_the_header_of_a_segment_goes_on_behind_it() {
    let place = Place::new();
    let mut random = Random::new(57);
    let mut venue = place.open();
    venue.submit_up_to(&mut random, SEGMENT);
    assert_eq!(venue.log.control.appended().0, SEGMENT + SEGMENT_HEADER_BYTES);
    venue.settle();
    let (model, _) = venue.kill();
    let mut venue = place.open();
    assert_eq!(venue.model, model);
    assert_eq!(venue.report().recovered_end.0, SEGMENT + SEGMENT_HEADER_BYTES);
    assert_eq!(venue.report().dropped.bytes, 0);
    venue.submit(&random.command(1000));
    let model = venue.close();
    assert_eq!(place.open().model, model);
}

#[test]
fn a_segment_whose_making_was_interrupted_takes_no_room_for_ever() {
    let place = Place::new();
    place.open().close();
    let left = |name: &str| place.options.data.join("log").join(name);
    let (made, other) = (left("00000007.seg.new"), left("notes.new"));
    for path in [&made, &other] {
        fs::write(path, [1; 100]).unwrap();
    }
    place.open().close();
    assert!(!made.exists() && other.exists());
}
