//! A live window that an engine has left, as the tools see it: of the log on disk, or of another past of it.

use std::{
    fs,
    os::unix::{
        ffi::OsStrExt,
        fs::{FileExt, chown},
    },
};

use rustix::process::getuid;

use touchline_engine::{
    inspect::{EngineState, Verdict, check_window, inspect},
    log::WindowPlace,
    recovery::{RecoveryError, check_window as check_left_window},
};
use touchline_protocol::{
    log::{
        control::WINDOW_FILE, lease::Lease, place::WindowFolders, reader::Follow,
        transaction::Bookmark,
    },
    units::{Incarnation, Position},
};

use crate::{
    reader::reader,
    skipped::skipped,
    support::{Model, Place, Random, SEGMENT, copy_folder, refusal},
};

/// The process that the control page names is no more: it stands at 64.
fn forget_process(place: &Place) {
    let control = place.options.data.join("live/control");
    let file = fs::OpenOptions::new().write(true).open(control).unwrap();
    file.write_all_at(&u32::MAX.to_le_bytes(), 64).unwrap();
}

/// What a pass over the log finds: its transactions, its end, and what is said of it.
fn looked_at(place: &Place) -> (usize, Position, Verdict) {
    let mut count = 0;
    let found = inspect(&place.options.data, &mut |_| count += 1).unwrap();
    assert_eq!(found.window.map(|window| window.engine), Some(EngineState::Gone));
    (count, found.end, found.verdict)
}

fn put_back(place: &Place, kept: &std::path::Path) {
    let log = place.options.data.join("log");
    fs::remove_dir_all(&log).unwrap();
    copy_folder(kept, &log);
}

/// A log that was copied to where is told, with what it had then, and went on until its engine died.
fn gone_on(seed: u64, more: u64) -> (Place, std::path::PathBuf, Model, Model) {
    let place = Place::new();
    let kept = place.root.path().join("kept");
    let mut random = Random::new(seed);
    let mut venue = place.open();
    venue.submit_up_to(&mut random, SEGMENT / 4);
    let before = venue.close();
    copy_folder(&place.options.data.join("log"), &kept);
    let mut venue = place.open();
    venue.submit_up_to(&mut random, more);
    venue.settle();
    let (model, _) = venue.kill();
    forget_process(&place);
    (place, kept, before, model)
}

#[test]
fn an_older_copy_beside_the_window_of_what_it_lacks_is_no_log_with_it() {
    for (seed, more) in [(70, SEGMENT / 2), (71, 7 * SEGMENT)] {
        let (place, kept, before, _) = gone_on(seed, more);
        put_back(&place, &kept);
        assert!(refusal(&place).is_of_window());
        let (count, end, verdict) = looked_at(&place);
        assert_eq!(count, before.records.len(), "what is on disk, and nothing of the window");
        assert!(end.0 >= before.records.last().unwrap().end);
        assert!(verdict.is_damage(), "{verdict:?}");
        let why = refusal(&place).to_string();
        assert_eq!(verdict, Verdict::OtherWindow { why });
        let read = check_window(&place.options.data, &reader(&place, Follow::Durable));
        assert!(read.is_err_and(|error| error.is_of_window()));
        // As all of them say, it is the disk alone without that window.
        fs::remove_dir_all(place.options.data.join("live")).unwrap();
        assert_eq!(place.open().model, before);
    }
}

#[test]
fn a_log_that_went_on_without_the_window_is_no_log_with_it() {
    let (place, _, _, model) = gone_on(72, SEGMENT / 2);
    let (live, away) = (place.options.data.join("live"), place.root.path().join("away"));
    fs::rename(&live, &away).unwrap();
    let mut venue = place.open();
    venue.submit(&[24; 24]);
    venue.close();
    let _none = fs::remove_dir_all(&live);
    fs::rename(&away, &live).unwrap();
    assert!(matches!(refusal(&place), RecoveryError::WindowStale { .. }));
    let (count, _, verdict) = looked_at(&place);
    assert_eq!(count, model.records.len() + 1);
    assert_eq!(verdict, Verdict::OtherWindow { why: refusal(&place).to_string() });
}

/// As somebody copies a data folder while its engine writes to it.
#[test]
fn a_copy_does_not_go_on_from_the_window_of_its_original() {
    let place = Place::new();
    let mut random = Random::new(74);
    let mut venue = place.open();
    venue.submit_up_to(&mut random, SEGMENT / 4);
    venue.settle();
    let copy = Place::new();
    let copied = |name: &str, files: &[&str]| {
        let (from, to) = (place.options.data.join(name), copy.options.data.join(name));
        fs::create_dir_all(&to).unwrap();
        for file in files {
            fs::copy(from.join(file), to.join(file)).unwrap();
        }
    };
    copied("log", &["00000000.seg"]);
    let on_disk = venue.model.clone();
    venue.submit(&[24; 24]);
    venue.settle();
    // The window knows of more that is durable than the disk had when it was copied.
    copied("live", &["control", "window"]);
    let found = inspect(&copy.options.data, &mut |_| {}).unwrap();
    assert_eq!((found.window, found.verdict), (None, Verdict::Sound));
    let opened = copy.open();
    assert_eq!(opened.model, on_disk);
    assert!(opened.report().appended_only_lost_behind.is_some());
    // The original goes on from it wherever it is moved to.
    let (model, _) = venue.kill();
    let moved = place.root.path().join("moved");
    fs::rename(&place.options.data, &moved).unwrap();
    fs::rename(&moved, &place.options.data).unwrap();
    assert_eq!(place.open().model, model);
}

/// As somebody moves a data folder by copying it whose engine was killed.
#[test]
fn a_window_that_does_not_count_for_it_was_copied_is_kept_for_it_may_be_all_there_is() {
    let place = Place::new();
    let mut venue = place.open();
    venue.submit_up_to(&mut Random::new(75), SEGMENT / 4);
    venue.settle();
    let on_disk = venue.model.clone();
    place.disk.hold(true);
    venue.append(&[160; 160]);
    place.kill_before_disk(venue);
    for window_place in [WindowPlace::Data, WindowPlace::SharedMemory] {
        let mut copy = Place::new();
        copy.options.window_place = window_place;
        let live = copy.options.data.join("live");
        let copy_of = |name: &str| {
            let (from, to) = (place.options.data.join(name), copy.options.data.join(name));
            fs::create_dir_all(&to).unwrap();
            for entry in fs::read_dir(from).unwrap() {
                let entry = entry.unwrap();
                fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
            }
        };
        copy_of("log");
        copy_of("live");
        let kept = ["control", "window"].map(|name| {
            (live.join(name), live.join(format!("copied-1-{name}")), fs::read(live.join(name)))
        });
        let is_kept =
            || kept.iter().all(|(_, to, bytes)| fs::read(to).ok() == bytes.as_ref().ok().cloned());
        for _ in 0..2 {
            let venue = copy.open();
            assert_eq!(venue.model, on_disk);
            assert!(is_kept(), "{window_place:?}");
            venue.close();
            assert!(is_kept(), "{window_place:?}");
        }
        // Another one of that number takes nobody's place, and is not lost either.
        copy_of("live");
        let error = refusal(&copy);
        assert!(error.to_string().contains("copied-1-"), "{error}");
        // As who only asks is told.
        let asked = check_left_window(&copy.options.data, &copy.environment.shared_memory);
        assert_eq!(asked.unwrap_err().to_string(), error.to_string());
        assert!(is_kept());
        for (own, _, bytes) in &kept {
            assert_eq!(fs::read(own).unwrap(), *bytes.as_ref().unwrap());
        }
        let away = copy.root.path().join("away");
        fs::create_dir(&away).unwrap();
        for (_, to, _) in &kept {
            fs::rename(to, away.join(to.file_name().unwrap())).unwrap();
        }
        assert_eq!(copy.open().model, on_disk);
        assert!(is_kept());
    }
}

#[test]
fn the_window_that_goes_with_the_log_is_sound_with_it_unless_something_vouches_for_more() {
    let place = Place::new();
    let mut random = Random::new(73);
    let mut venue = place.open();
    venue.submit_up_to(&mut random, SEGMENT / 2);
    venue.settle();
    place.disk.hold(true);
    for _ in 0..5 {
        venue.append(&[160; 160]);
    }
    let durable = venue.log.control.durable();
    let appended = venue.log.control.appended();
    assert!(durable < appended);
    let log_id = venue.report().log_id;
    let count = venue.model.records.len();
    place.kill_before_disk(venue);
    forget_process(&place);
    assert_eq!(looked_at(&place), (count - 5, durable, Verdict::Sound));
    assert!(check_window(&place.options.data, &reader(&place, Follow::Durable)).is_ok());

    let far = Bookmark { position: appended, incarnation: Incarnation(1), crc: 7 };
    Lease::hold(&place.options.data, "reader", log_id, far).unwrap();
    let (_, _, verdict) = looked_at(&place);
    assert!(matches!(verdict, Verdict::Damaged { by: Some(_), .. }), "{verdict:?}");
    assert!(matches!(refusal(&place), RecoveryError::BehindLease { .. }));
}

#[test]
fn the_page_of_a_window_that_is_gone_vouches_for_the_tools_as_it_does_for_a_start() {
    let place = Place::new();
    let mut venue = place.open();
    venue.submit_up_to(&mut Random::new(76), SEGMENT + SEGMENT / 2);
    venue.settle();
    let (model, durable) = venue.kill();
    let (live, away) = (place.options.data.join("live"), place.root.path().join("away"));
    fs::remove_file(live.join("window")).unwrap();
    let verdict = || inspect(&place.options.data, &mut |_| {}).unwrap().verdict;
    assert_eq!(verdict(), Verdict::Sound);
    let _ahead = fs::remove_file(place.segment(2));
    fs::rename(place.segment(1), &away).unwrap();
    assert!(
        matches!(refusal(&place), RecoveryError::Damaged { attested, .. } if attested == durable)
    );
    let found = verdict();
    assert!(
        matches!(found, Verdict::Damaged { attested, by: None, .. } if attested.0 == durable),
        "{found:?}"
    );
    fs::rename(&away, place.segment(1)).unwrap();
    let venue = place.open();
    assert_eq!(venue.model, model);
    // Of an engine that runs, whose window's file was removed, it says nothing.
    fs::remove_file(live.join("window")).unwrap();
    assert_eq!(verdict(), Verdict::Sound);
}

/// It may hold what was durable and is not on disk any more.
#[test]
fn a_window_in_memory_that_was_moved_away_stays_under_the_name_that_it_was_given() {
    let mut place = Place::new();
    place.options.window_place = WindowPlace::SharedMemory;
    let mut venue = place.open();
    venue.submit_up_to(&mut Random::new(77), SEGMENT + SEGMENT / 2);
    venue.settle();
    let folder = venue.log.control.path().parent().unwrap().to_owned();
    let model = venue.kill().0;
    let kept = place.root.path().join("kept");
    fs::rename(place.segment(1), &kept).unwrap();
    let _ahead = fs::remove_file(place.segment(2));
    let error = refusal(&place);
    assert!(matches!(&error, RecoveryError::WindowGap { .. }), "{error}");
    assert!(error.to_string().contains("acknowledged as durable"), "{error}");
    let mut name = folder.file_name().unwrap().to_owned();
    name.push(".bak");
    let away = folder.with_file_name(name);
    fs::rename(&folder, &away).unwrap();
    copy_folder(&place.options.data, &place.root.path().join("before"));
    place.open().close();
    // With the segment all is there again.
    fs::remove_dir_all(&place.options.data).unwrap();
    fs::rename(place.root.path().join("before"), &place.options.data).unwrap();
    fs::rename(&kept, place.segment(1)).unwrap();
    assert!(away.join("window").exists() && away.join("control").exists());
    assert_eq!(place.open().model, model);
}

/// As somebody copies a data folder of which an engine has died and another one begun meanwhile.
#[test]
fn the_number_of_a_window_that_was_copied_is_not_used_again() {
    let (place, mut copy) = (Place::new(), Place::new());
    let mut venue = place.open();
    venue.submit(&[16; 16]);
    let model = venue.close();
    let kept = place.root.path().join("kept");
    copy_folder(&place.options.data.join("log"), &kept);
    copy_folder(&place.options.data.join("log"), &copy.options.data.join("log"));
    let venue = place.open();
    let live = copy.options.data.join("live");
    fs::create_dir(&live).unwrap();
    for name in ["control", "window"] {
        fs::copy(place.options.data.join("live").join(name), live.join(name)).unwrap();
    }
    assert_eq!(venue.report().incarnation, Incarnation(2));
    // Nor by the start that comes behind one that found no room for its window, when it is kept under another name,
    copy.options.window_place = WindowPlace::SharedMemory;
    let (memory, away) = (copy.environment.shared_memory.clone(), copy.root.path().join("away"));
    fs::rename(&memory, &away).unwrap();
    assert!(matches!(refusal(&copy), RecoveryError::Window { .. }));
    assert!(live.join("copied-2-window").exists());
    fs::rename(&away, &memory).unwrap();
    let opened = copy.open();
    assert_eq!((opened.report().incarnation, &opened.model), (Incarnation(3), &model));

    // nor on another machine.
    let elsewhere = Place::new();
    copy_folder(&kept, &elsewhere.options.data.join("log"));
    let live = elsewhere.options.data.join("live");
    fs::create_dir(&live).unwrap();
    fs::copy(place.options.data.join("live/control"), live.join("control")).unwrap();
    // The boot's id stands at 32.
    let page = fs::OpenOptions::new().write(true).open(live.join("control")).unwrap();
    page.write_all_at(&[7; 16], 32).unwrap();
    let opened = elsewhere.open();
    assert_eq!((opened.report().incarnation, &opened.model), (Incarnation(3), &model));
}

/// As behind the repair of a disk.
#[test]
fn a_window_in_memory_is_found_again_where_the_data_folder_has_another_device() {
    let mut place = Place::new();
    place.options.window_place = WindowPlace::SharedMemory;
    let mut venue = place.open();
    venue.submit_up_to(&mut Random::new(78), SEGMENT / 4);
    venue.settle();
    place.disk.hold(true);
    venue.append(&[160; 160]);
    let folder = venue.log.control.path().parent().unwrap().to_owned();
    let model = venue.model.clone();
    place.kill_before_disk(venue);
    let name = folder.file_name().unwrap().to_str().unwrap();
    let [log, _, inode] = name.split('-').collect::<Vec<_>>()[..] else { panic!("{name}") };
    let under = |device: &str| folder.with_file_name(format!("{log}-{device}-{inode}"));
    let on_disk = copy_of_data(&place);
    fs::rename(&folder, under("1f")).unwrap();
    assert_eq!(place.open().close(), model);
    assert!(!under("1f").exists());

    // One that does not go with the log on disk keeps nobody from starting, and stays.
    let mut venue = place.open();
    venue.submit(&[24; 24]);
    venue.settle();
    venue.kill();
    fs::rename(&folder, under("1f")).unwrap();
    fs::remove_dir_all(place.options.data.join("log")).unwrap();
    copy_folder(&on_disk, &place.options.data.join("log"));
    let venue = place.open();
    assert_eq!(venue.model.records, model.records[..model.records.len() - 1]);
    venue.close();
    assert!(under("1f").join("window").exists());
    // Another one beside it does, for what a start that was broken off has left is none.
    let mut venue = place.open();
    venue.submit(&[24; 24]);
    venue.settle();
    place.disk.hold(true);
    venue.append(&[160; 160]);
    let model = venue.model.clone();
    place.kill_before_disk(venue);
    fs::rename(&folder, under("2f")).unwrap();
    fs::create_dir(under("3f")).unwrap();
    fs::copy(under("2f").join("origin"), under("3f").join("origin")).unwrap();
    assert_eq!(place.open().close(), model);
    assert!(under("1f").exists() && !under("2f").exists() && under("3f").exists());
}

fn copy_of_data(place: &Place) -> std::path::PathBuf {
    let to = place.root.path().join("log-before");
    copy_folder(&place.options.data.join("log"), &to);
    to
}

/// Only root can give a window to somebody else.
#[test]
fn what_another_user_has_left_is_told_where_the_log_was_not_closed_and_nowhere_else() {
    if !getuid().is_root() {
        return skipped("root, who alone may give windows away");
    }
    let place = Place::new();
    let mut random = Random::new(79);
    let user = getuid().as_raw() + 1;
    let leave = |log_id: &[u8; 16]| {
        let (data, memory) = (&place.options.data, &place.environment.shared_memory);
        let folder = WindowFolders::of(data, log_id, memory).unwrap().place_of(user);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(WINDOW_FILE), []).unwrap();
        chown(folder.parent().unwrap(), Some(user), None).unwrap();
        fs::write(data.join("window-place"), format!("{}\n", folder.display())).unwrap();
    };
    let looked = || check_left_window(&place.options.data, &place.environment.shared_memory);
    // Up to some segments, of which the last one is empty in the midst.
    for bytes in [64, SEGMENT / 2, 3 * SEGMENT] {
        let mut venue = place.open();
        let log_id = venue.log.report.log_id;
        venue.submit_up_to(&mut random, venue.log.control.appended().0 + bytes);
        venue.close();
        leave(&log_id);
        looked().unwrap();
        let mut venue = place.open();
        venue.submit(&[24; 24]);
        venue.settle();
        venue.kill();
        fs::remove_dir_all(place.options.data.join("live")).unwrap();
        leave(&log_id);
        assert!(matches!(looked(), Err(RecoveryError::WindowOfOther { .. })));
        let refused = refusal(&place);
        assert!(matches!(refused, RecoveryError::WindowOfOther { .. }), "{refused}");
        fs::remove_file(place.options.data.join("window-place")).unwrap();
    }
}

/// As where another disk holds a copy of the data folder, at another path or with another inode.
#[test]
fn the_window_in_memory_of_another_data_folder_is_not_gone_on_from() {
    let mut place = Place::new();
    place.options.window_place = WindowPlace::SharedMemory;
    let appended = |length: usize| {
        let mut venue = place.open();
        venue.submit(&vec![24; length]);
        venue.settle();
        place.disk.hold(true);
        venue.append(&[160; 160]);
        let (folder, model) = (venue.report().window.folder.clone(), venue.model.clone());
        place.kill_before_disk(venue);
        (folder, model)
    };
    let (folder, model) = appended(24);
    let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
    let [log, device, inode] = name.split('-').collect::<Vec<_>>()[..] else { panic!("{name}") };
    let on_other_device = folder.with_file_name(format!("{log}-1f-{inode}"));
    // That of this folder is there.
    copy_folder(&folder, &on_other_device);
    assert_eq!(place.open().close(), model);
    fs::remove_dir_all(&on_other_device).unwrap();

    let of_other_inode = folder.with_file_name(format!("{log}-1f-{inode}0"));
    for (other, is_of_path) in
        [(&on_other_device, false), (&of_other_inode, true), (&on_other_device, true)]
    {
        let (folder, model) = appended(32);
        fs::rename(&folder, other).unwrap();
        if !is_of_path {
            fs::write(other.join("origin"), place.root.path().as_os_str().as_bytes()).unwrap();
        }
        let counts = other == &on_other_device && is_of_path;
        let known = model.records.len() - usize::from(!counts);
        let venue = place.open();
        assert_eq!(venue.model.records, model.records[..known], "{}", other.display());
        venue.close();
        assert_ne!(other.exists(), counts, "on device {device}");
        let _moved = fs::remove_dir_all(other);
    }
}

/// As a start that was killed before it had removed the older one may leave them, or whoever brought that back.
#[test]
fn of_windows_in_both_places_the_newer_one_counts() {
    for places in [
        [WindowPlace::Data, WindowPlace::SharedMemory],
        [WindowPlace::SharedMemory, WindowPlace::Data],
    ] {
        let mut place = Place::new();
        place.options.window_place = places[0];
        let mut venue = place.open();
        venue.submit(&[24; 24]);
        venue.settle();
        let (older, aside) =
            (venue.report().window.folder.clone(), place.root.path().join("aside"));
        venue.kill();
        copy_folder(&older, &aside);
        place.options.window_place = places[1];
        let mut venue = place.open();
        venue.submit(&[32; 32]);
        venue.settle();
        place.disk.hold(true);
        venue.append(&[160; 160]);
        let model = venue.model.clone();
        place.kill_before_disk(venue);
        assert!(!older.exists());
        copy_folder(&aside, &older);
        assert_eq!(place.open().model, model);
    }
}

#[test]
fn an_older_copy_of_a_window_is_refused_beside_what_the_same_engine_wrote_later() {
    let place = Place::new();
    let mut venue = place.open();
    venue.submit(&[24; 24]);
    venue.settle();
    let (live, aside) = (venue.report().window.folder.clone(), place.root.path().join("aside"));
    copy_folder(&live, &aside);
    venue.submit(&[32; 32]);
    venue.settle();
    venue.kill();
    fs::remove_dir_all(&live).unwrap();
    copy_folder(&aside, &live);
    let error = refusal(&place);
    assert!(matches!(error, RecoveryError::WindowStale { .. }), "{error}");
}
