//! Bytes that changed, files that are missing, windows that do not belong.

use std::{fs, path::Path};

use rustix::fs::{FlockOperation, flock};
use touchline_engine::log::WindowPlace;
use touchline_engine::recovery::RecoveryError;
use touchline_protocol::log::{
    BLOCK_BYTES, WINDOW_BYTES_MIN,
    control::{APPENDED_OFFSET, DURABLE_OFFSET, WINDOW_BASE_OFFSET},
    segment::SegmentError,
};
use touchline_protocol::snapshot::{SNAPSHOT_FOLDER, snapshot_path};

use crate::support::{Model, Place, Random, Record, SEGMENT, copy_folder, refusal};

/// A log of `count` transactions, each durable before the next is appended: all but the last are
/// vouched for. The engine was killed, and the window is gone.
fn attested_log(seed: u64, count: usize) -> (Place, Model) {
    let place = Place::new();
    let mut random = Random::new(seed);
    let mut venue = place.open();
    for _ in 0..count {
        venue.submit(&random.command(4_000));
        venue.settle();
    }
    let (model, _) = venue.kill();
    place.lose_window();
    (place, model)
}

#[test]
fn damage_where_the_log_was_durable_is_refused_and_named() {
    let (mut place, model) = attested_log(20, 40);
    let damaged = &model.records[20];
    let before = place.read(damaged.position, 64);
    place.flip(damaged.position + 52);
    let error = refusal(&place);
    let last = model.records.last().unwrap().position;
    assert!(
        matches!(&error, RecoveryError::Damaged { path, offset, position, attested, .. }
            if *path == place.segment(0)
                && *offset == damaged.position
                && *position == damaged.position
                && *attested == last),
        "{error}"
    );
    let text = error.to_string();
    assert!(text.contains("checksum") && text.contains("--accept-loss"), "{text}");

    // Nothing was changed by refusing.
    place.flip(damaged.position + 52);
    assert_eq!(place.read(damaged.position, 64), before);
    let kept = place.root.path().join("kept");
    copy_folder(&place.options.data, &kept);
    assert_eq!(place.open().model, model);

    fs::remove_dir_all(&place.options.data).unwrap();
    copy_folder(&kept, &place.options.data);
    place.flip(damaged.position + 52);
    place.options.accept_loss = true;
    let mut venue = place.open();
    assert_eq!(venue.model.records, model.records[..20]);
    // Nothing of it is left in the log itself.
    venue.settle();
    let end = venue.log.control.durable().0;
    assert!(place.read(end, (SEGMENT - end) as usize).iter().all(|&byte| byte == 0));
    let report = venue.report().clone();
    assert_eq!(report.loss_accepted_below.unwrap().0, last);
    assert_eq!(report.recovered_end.0, damaged.position);
    assert_eq!(report.dropped.frames, 19);
    for told in ["LOSS ACCEPTED", "API keys that were made behind that"] {
        assert!(report.lines.iter().any(|line| line.contains(told)), "{:?}", report.lines);
    }
    // The good frames behind the damage lie in the kept file where they lay in the segment.
    let [file] = &report.dropped.kept_in[..] else { panic!("{:?}", report.dropped) };
    let file = fs::read(file).unwrap();
    let record = &model.records[30];
    let command = record.position as usize + 48;
    assert_eq!(file[command..command + record.command.len()], record.command);
    venue.close();
    place.options.accept_loss = false;
    assert_eq!(place.open().model.records, model.records[..20]);
}

#[test]
fn an_incarnation_that_was_dropped_is_not_used_again() {
    let (mut place, model) = attested_log(27, 10);
    let mut venue = place.open();
    venue.submit(&[16; 16]);
    venue.settle();
    venue.kill();
    place.lose_window();
    // The record of the second incarnation lies behind this.
    place.flip(model.records[5].position);
    place.options.accept_loss = true;
    let venue = place.open();
    assert_eq!(venue.model.records, model.records[..5]);
    assert_eq!(venue.report().incarnation.0, 3);
}

#[test]
fn damage_in_the_last_write_ends_the_log_and_is_kept() {
    let (place, model) = attested_log(21, 10);
    let last = model.records.last().unwrap();
    let position = last.position + 30;
    place.flip(position);
    let torn = place.read(last.position, (last.bytes_end() - last.position) as usize);
    let venue = place.open();
    assert_eq!(venue.model.records, model.records[..9]);
    let report = venue.report();
    assert_eq!(report.recovered_end.0, last.position);
    assert_eq!((report.dropped.frames, report.loss_accepted_below), (0, None));
    assert_eq!(report.dropped.kept_in, [place.segment(0).with_extension("dropped-2")]);
    let kept = fs::read(&report.dropped.kept_in[0]).unwrap();
    assert_eq!(kept[last.position as usize..last.bytes_end() as usize], torn);
    // It goes as far as what it keeps, and not as its segment.
    assert_eq!(kept.len() as u64, last.bytes_end().next_multiple_of(BLOCK_BYTES));
    let line = report.lines.iter().find(|line| line.contains("taken out")).unwrap();
    assert!(line.contains(&format!("position {}", last.position)), "{line}");
}

/// A start that finds no room for its window has ended the log by then.
fn refused_for_its_window(place: &mut Place) -> Vec<String> {
    let shared_memory = place.environment.shared_memory.clone();
    fs::remove_dir_all(&shared_memory).unwrap();
    let was = std::mem::replace(&mut place.options.window_place, WindowPlace::SharedMemory);
    assert!(matches!(refusal(place), RecoveryError::Window { .. }));
    place.options.window_place = was;
    fs::create_dir(&shared_memory).unwrap();
    place.told()
}

#[test]
fn a_start_that_is_refused_behind_the_cut_has_told_of_it_and_what_it_kept_stays() {
    let (mut place, model) = attested_log(28, 12);
    let records = &model.records;
    let bytes = |place: &Place, record: &Record| {
        place.read(record.position, (record.bytes_end() - record.position) as usize)
    };
    let kept = |place: &Place, incarnation: u32, record: &Record| {
        let path = place.segment(0).with_extension(format!("dropped-{incarnation}"));
        fs::read(path).unwrap()[record.position as usize..record.bytes_end() as usize].to_vec()
    };
    let tells = |lines: &[String], what: &str| lines.iter().any(|line| line.contains(what));
    let last = &records[11];
    place.flip(last.position + 30);
    let torn = bytes(&place, last);
    place.told();
    assert!(tells(&refused_for_its_window(&mut place), "dropped-2"), "it is told by who does it");
    assert_eq!(kept(&place, 2, last), torn);
    // Another attempt, that ends the log elsewhere, and is refused as well.
    let (damaged, behind) = (&records[5], &records[7]);
    let before = bytes(&place, behind);
    place.flip(damaged.position + 30);
    place.options.accept_loss = true;
    let told = refused_for_its_window(&mut place);
    assert!(tells(&told, "LOSS ACCEPTED") && tells(&told, "dropped-3"), "{told:?}");
    assert_eq!(kept(&place, 3, behind), before);
    assert_eq!(kept(&place, 2, last), torn, "what was kept first");
    place.options.accept_loss = false;
    let venue = place.open();
    assert_eq!(venue.model.records, records[..5]);
    assert_eq!(venue.report().incarnation.0, 4);
}

#[test]
fn whole_segments_behind_the_end_are_kept_under_another_name() {
    let (mut place, model) = attested_log(22, 1);
    // From here on with the disk held up, so that no frame vouches for another.
    let mut random = Random::new(23);
    let mut venue = place.open();
    place.disk.hold(true);
    while venue.log.control.appended().0 < 2 * SEGMENT + SEGMENT / 2 {
        venue.append(&random.command(60_000));
    }
    place.disk.hold(false);
    venue.settle();
    let end = venue.log.control.durable().0;
    let (longer, _) = venue.kill();
    place.lose_window();
    let first = &longer.records[2];
    place.flip(first.position);
    let venue = place.open();
    assert_eq!(venue.model.records, longer.records[..2]);
    assert_eq!(venue.model.records[..1], model.records);
    assert_eq!(
        venue.report().dropped.bytes,
        end.min(longer.records.last().unwrap().bytes_end()) - first.position
    );
    venue.close();
    let names = place.names();
    for number in 0..3 {
        let name = format!("{number:08}.dropped-3");
        assert!(names.contains(&name), "{names:?}");
    }
    assert!(!names.contains(&"00000002.seg".to_owned()), "{names:?}");
    place.options.accept_loss = false;
    assert_eq!(place.open().model.records, longer.records[..2]);
}

#[test]
fn a_disk_that_differs_from_the_window_is_refused() {
    let place = Place::new();
    let mut random = Random::new(24);
    let mut venue = place.open();
    for _ in 0..20 {
        venue.submit(&random.command(4_000));
    }
    venue.settle();
    let (model, durable) = venue.kill();
    let position = model.records[10].position + 48;
    place.flip(position);
    let error = refusal(&place);
    assert!(
        matches!(&error, RecoveryError::WindowDiffers { position: at, durable: up_to, .. }
            if *at == position && *up_to == durable),
        "{error}"
    );
    place.flip(position);
    assert_eq!(place.open().model, model);
}

#[test]
fn a_missing_segment_is_refused() {
    let place = Place::new();
    let mut random = Random::new(25);
    let mut venue = place.open();
    venue.submit_up_to(&mut random, 3 * SEGMENT + SEGMENT / 4);
    venue.settle();
    let (model, durable) = venue.kill();
    let away = place.root.path().join("away");
    let moved = |number: u64, test: &dyn Fn(RecoveryError)| {
        fs::rename(place.segment(number), &away).unwrap();
        test(refusal(&place));
        fs::rename(&away, place.segment(number)).unwrap();
    };
    moved(1, &|error| {
        assert!(
            matches!(&error, RecoveryError::MissingSegment { missing, .. }
                if *missing == place.segment(1)),
            "{error}"
        );
        let advice = format!("move {} and all behind it away", place.segment(2).display());
        assert!(error.to_string().contains(&advice), "{error}");
    });
    moved(0, &|error| {
        assert!(
            matches!(&error, RecoveryError::NotFromBeginning { position: SEGMENT, .. }),
            "{error}"
        );
    });
    // Whatever was made ahead is not missed; what the window knows to be durable is.
    let _ahead = fs::remove_file(place.segment(4));
    moved(3, &|error| {
        assert!(
            matches!(&error, RecoveryError::WindowGap { disk_end, durable: up_to, .. }
                if *disk_end == 3 * SEGMENT && *up_to == durable),
            "{error}"
        );
    });
    let short = fs::OpenOptions::new().write(true).open(place.segment(2)).unwrap();
    short.set_len(SEGMENT - 4096).unwrap();
    assert!(matches!(refusal(&place), RecoveryError::SegmentLength { .. }));
    short.set_len(SEGMENT).unwrap();
    drop(short);
    drop(model);
}

/// Where no copy of it is left, a log is opened in front of it, as the refusal tells.
#[test]
fn what_lies_behind_a_segment_that_is_missing_or_too_short_can_be_given_up() {
    for is_short in [false, true] {
        let mut place = Place::new();
        let mut venue = place.open();
        venue.submit_up_to(&mut Random::new(31), 3 * SEGMENT + SEGMENT / 4);
        let model = venue.close();
        let lost = place.segment(1);
        if is_short {
            fs::OpenOptions::new().write(true).open(&lost).unwrap().set_len(SEGMENT / 2).unwrap();
        } else {
            fs::remove_file(&lost).unwrap();
        }
        place.options.accept_loss = true;
        let text = refusal(&place).to_string();
        assert!(text.contains("all behind it away") && text.contains("--accept-loss"), "{text}");
        for number in 1.. {
            let away = place.root.path().join(number.to_string());
            if fs::rename(place.segment(number), away).is_err() && number > 1 {
                break;
            }
        }
        let kept = model.records.iter().filter(|record| record.end <= SEGMENT).count();
        assert_eq!(place.open().model.records, model.records[..kept]);
    }
}

/// So that no more of it is lost than what is not there.
#[test]
fn a_segment_that_is_too_short_can_be_given_its_length_to_keep_what_it_has() {
    let mut place = Place::new();
    let mut venue = place.open();
    venue.submit_up_to(&mut Random::new(33), 3 * SEGMENT + SEGMENT / 4);
    let model = venue.close();
    let short = || fs::OpenOptions::new().write(true).open(place.segment(1)).unwrap();
    short().set_len(SEGMENT / 2).unwrap();
    assert!(refusal(&place).to_string().contains(&format!("`truncate -s {SEGMENT}`")));
    short().set_len(SEGMENT).unwrap();
    assert!(matches!(refusal(&place), RecoveryError::Damaged { .. }));
    place.options.accept_loss = true;
    let last = SEGMENT + SEGMENT / 2;
    let kept = model.records.iter().filter(|record| record.bytes_end() <= last).count();
    assert_eq!(place.open().model.records, model.records[..kept]);
}

/// Where the disk of a data folder or of its log is not mounted.
#[test]
fn a_folder_that_is_a_link_to_nowhere_is_told() {
    for is_data in [true, false] {
        let place = Place::new();
        let data = &place.options.data;
        let link = if is_data { data.clone() } else { data.join("log") };
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        let error = refusal(&place).to_string();
        assert!(error.contains(&*link.to_string_lossy()) && error.contains("mounted"), "{error}");
        fs::remove_file(&link).unwrap();
        fs::write(&link, "").unwrap();
        assert!(refusal(&place).to_string().contains("no folder"));
    }
}

/// The window of the first incarnation comes back beside a log with which the second went on.
fn assert_stale(place: &Place, away: &Path) {
    place.lose_window();
    fs::rename(away, place.options.data.join("live")).unwrap();
    let error = refusal(place);
    assert!(
        matches!(&error, RecoveryError::WindowStale { incarnation: 1, disk_incarnation: 2, .. }),
        "{error}"
    );
}

#[test]
fn an_old_window_that_reaches_further_than_the_log_that_went_on_without_it_is_refused_too() {
    let place = Place::new();
    let live = place.options.data.join("live");
    let away = place.root.path().join("away");
    let mut venue = place.open();
    venue.submit(&[16; 16]);
    venue.settle();
    // Much that only the window has.
    place.disk.hold(true);
    for _ in 0..5 {
        venue.append(&[160; 160]);
    }
    let appended = venue.log.control.appended().0;
    place.kill_before_disk(venue);
    fs::rename(&live, &away).unwrap();
    let mut venue = place.open();
    let record = venue.submit(&[24; 24]);
    assert!(record.end < appended);
    venue.settle();
    let (model, _) = venue.kill();
    assert_stale(&place, &away);
    place.lose_window();
    assert_eq!(place.open().model.records, model.records);
}

#[test]
fn an_old_window_of_a_log_that_went_on_without_it_is_refused() {
    let place = Place::new();
    let mut random = Random::new(26);
    let live = place.options.data.join("live");
    let away = place.root.path().join("away");
    let mut venue = place.open();
    for _ in 0..5 {
        venue.submit(&random.command(1_000));
    }
    venue.settle();
    venue.kill();
    fs::rename(&live, &away).unwrap();
    let mut venue = place.open();
    for _ in 0..5 {
        venue.submit(&random.command(1_000));
    }
    venue.settle();
    let (model, _) = venue.kill();
    assert_stale(&place, &away);
    fs::remove_dir_all(&live).unwrap();
    assert_eq!(place.open().model, model);
}

/// Whatever is wrong with the window that is there: room is not what is missing.
#[test]
fn a_window_that_nobody_can_go_on_from_is_to_be_moved_away() {
    let place = Place::new();
    let mut venue = place.open();
    venue.submit(&[16; 16]);
    venue.settle();
    let (model, _) = venue.kill();
    let live = place.options.data.join("live");
    let (control, window) = (live.join("control"), live.join("window"));
    let page = fs::read(&control).unwrap();
    // The log's id stands at 16.
    let of_another_log = [&page[..16], &[page[16] ^ 1], &page[17..]].concat();
    let refused = |told: &str| {
        let error = refusal(&place);
        assert!(matches!(&error, RecoveryError::WindowLeft { .. }), "{error}");
        let text = error.to_string();
        let advice = "move that folder away to go on from the disk alone";
        let folder = live.display().to_string();
        assert!([told, advice, &folder].iter().all(|part| text.contains(part)), "{text}");
        assert!(!text.contains("make room"), "{text}");
    };
    for (bytes, told) in [(&of_another_log[..], "of another log"), (&page[..2048], "2048 bytes")] {
        fs::write(&control, bytes).unwrap();
        refused(told);
    }
    // The layout's version stands at 8, the window's size at 48 and that of a segment at 56.
    let higher = |offset: usize, by: u64| {
        let mut bytes = page.clone();
        let word = u64::from_le_bytes(bytes[offset..][..8].try_into().unwrap()) + by;
        bytes[offset..][..8].copy_from_slice(&word.to_le_bytes());
        bytes
    };
    for (bytes, told) in [
        (higher(8, 1), "this build knows layout"),
        (higher(48, 1), "control page of a window of"),
        (higher(56, SEGMENT), "of another log"),
        (higher(WINDOW_BASE_OFFSET, SEGMENT), "the control page says"),
        (higher(WINDOW_BASE_OFFSET, 64), "the control page says"),
        (higher(DURABLE_OFFSET, 64), "the control page says"),
        (higher(DURABLE_OFFSET, u64::MAX - WINDOW_BYTES_MIN), "the control page says"),
        (higher(APPENDED_OFFSET, 8), "the control page says"),
        (higher(APPENDED_OFFSET, WINDOW_BYTES_MIN), "the control page says"),
    ] {
        fs::write(&control, bytes).unwrap();
        refused(told);
    }
    fs::write(&control, &page).unwrap();
    let aside = live.join("aside");
    for path in [&control, &window] {
        fs::rename(path, &aside).unwrap();
        fs::create_dir(path).unwrap();
        refused(&path.display().to_string());
        fs::remove_dir(path).unwrap();
        fs::rename(&aside, path).unwrap();
    }
    fs::rename(&live, place.options.data.join("away")).unwrap();
    assert_eq!(place.open().model, model);
}

#[test]
fn who_has_locked_a_window_is_to_be_looked_for() {
    let place = Place::new();
    place.open().kill();
    let live = place.options.data.join("live");
    let folder = fs::File::open(&live).unwrap();
    flock(&folder, FlockOperation::NonBlockingLockExclusive).unwrap();
    let error = refusal(&place);
    let own = std::process::id();
    assert!(
        matches!(&error, RecoveryError::WindowLocked { folder, pid: Some(pid) }
            if *folder == live && *pid == own),
        "{error}"
    );
    let text = error.to_string();
    assert!(text.contains(&format!("window was {own}")) && !text.contains("make room"), "{text}");
    drop(folder);
    place.open();
}

#[test]
fn a_window_of_an_earlier_boot_does_not_count() {
    let place = Place::new();
    let mut venue = place.open();
    venue.submit(&[16; 16]);
    venue.settle();
    let (model, _) = venue.kill();
    // The boot id stands at 32 in the control page.
    let control = place.options.data.join("live").join("control");
    let mut bytes = fs::read(&control).unwrap();
    bytes[32] ^= 1;
    fs::write(&control, bytes).unwrap();
    fs::write(place.options.data.join("live").join("window"), b"whatever was written back")
        .unwrap();
    let venue = place.open();
    assert_eq!(venue.model, model);
    assert!(venue.report().appended_only_lost_behind.is_some());
}

/// The next one, which was made ahead, is no reason to ask for a copy of that.
#[test]
fn the_only_segment_that_was_begun_is_missed() {
    let place = Place::new();
    place.open().close();
    let ahead = fs::File::create(place.segment(1)).unwrap();
    ahead.set_len(SEGMENT).unwrap();
    fs::remove_file(place.segment(0)).unwrap();
    let error = refusal(&place);
    assert!(
        matches!(&error, RecoveryError::MissingSegment { missing, next }
            if (missing, next) == (&place.segment(0), &place.segment(1))),
        "{error}"
    );
}

#[test]
fn a_log_of_another_format_is_refused_with_both_versions() {
    let place = Place::new();
    place.open().close();
    let mut header = fs::read(place.segment(0)).unwrap();
    header[8] = 9;
    let salt = u32::from_le_bytes(header[12..16].try_into().unwrap());
    let crc = crc32c::crc32c_append(salt, &header[..60]);
    header[60..64].copy_from_slice(&crc.to_le_bytes());
    place.write(0, &header[..64]);
    let error = refusal(&place);
    assert!(
        matches!(
            &error,
            RecoveryError::FirstSegment {
                source: SegmentError::Version { found_major: 9, .. },
                ..
            }
        ),
        "{error}"
    );
    let text = error.to_string();
    assert!(text.contains("9.0") && text.contains("1.x"), "{text}");
}

#[test]
fn an_accepted_loss_may_be_broken_off_after_any_disk_call_beside_a_window() {
    let origin = Place::new();
    let mut random = Random::new(29);
    let mut venue = origin.open();
    venue.submit_up_to(&mut random, WINDOW_BYTES_MIN + 4 * SEGMENT);
    venue.settle();
    let (model, _) = venue.kill();
    // In front of what the window holds.
    let damaged = model.records.iter().position(|record| record.position > SEGMENT).unwrap() + 2;
    origin.flip(model.records[damaged].position + 50);

    let mut place = Place::new();
    copy_folder(&origin.options.data, &place.options.data);
    assert!(matches!(refusal(&place), RecoveryError::Damaged { .. }));
    place.options.accept_loss = true;
    let (venue, broken_off) = place.open_broken_off();
    assert!(broken_off > 4, "only {broken_off} calls");
    assert_eq!(venue.model.records, model.records[..damaged]);
}

#[test]
fn a_loss_that_was_accepted_need_not_be_accepted_again_beside_the_page_of_the_window_that_had_more()
{
    let mut place = Place::new();
    let mut venue = place.open();
    venue.submit_up_to(&mut Random::new(32), WINDOW_BYTES_MIN + 4 * SEGMENT);
    venue.settle();
    let (model, _) = venue.kill();
    let damaged = model.records.iter().position(|record| record.position > SEGMENT).unwrap() + 2;
    place.flip(model.records[damaged].position + 50);
    place.options.accept_loss = true;
    // Everything is done but the new window.
    place.options.window_place = WindowPlace::SharedMemory;
    let away = place.root.path().join("away");
    fs::rename(&place.environment.shared_memory, &away).unwrap();
    assert!(matches!(refusal(&place), RecoveryError::Window { .. }));
    assert!(place.told().iter().any(|line| line.contains("LOSS ACCEPTED")));
    fs::rename(&away, &place.environment.shared_memory).unwrap();
    place.options.accept_loss = false;
    assert_eq!(place.open().model.records, model.records[..damaged]);
}

#[test]
fn a_folder_of_snapshots_that_cannot_be_listed_is_not_taken_for_none() {
    let place = Place::new();
    place.open().close();
    let folder = place.options.data.join(SNAPSHOT_FOLDER);
    fs::write(&folder, []).unwrap();
    let listed = touchline_engine::snapshot::list(&place.options.data);
    for error in [refusal(&place), listed.unwrap_err()] {
        let text = error.to_string();
        assert!(text.starts_with(&format!("listing {}", folder.display())), "{text}");
    }
}

#[test]
fn what_only_has_the_name_of_a_snapshot_vouches_for_nothing() {
    let place = Place::new();
    let mut venue = place.open();
    venue.submit(&[16; 16]);
    let model = venue.close();
    let folder = place.options.data.join(SNAPSHOT_FOLDER);
    fs::create_dir(&folder).unwrap();
    let path = snapshot_path(&folder, SEGMENT);
    fs::write(&path, [7; 8192]).unwrap();
    let venue = place.open();
    assert_eq!(venue.model, model);
    let name = path.display().to_string();
    assert!(place.told().iter().any(|line| line.contains(&name)));
}
