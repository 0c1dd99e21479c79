//! Snapshots under the log: a start that goes on from one comes to the state that the whole log gives;
//! one that is damaged, foreign, too new or of a history that was given up is told and not used; the log
//! may not end before one.
//!
//! A snapshot here holds, behind the core's sections, what the tests' state has besides: so whatever is
//! checked of a start that replayed everything is checked of one that did not.

use super::disk::SimDisk;
use super::random::{Case, Random, seeds, size};
use super::venue::State;
use super::world::{History, Place, Record, SEGMENT, Venue};
use std::io;
use std::path::PathBuf;
use touchline_core::Core;
use touchline_engine::inspect::{Verdict, inspect_at_rest};
use touchline_engine::recovery::RecoveryError;
use touchline_engine::snapshot::{Portions, SnapshotContent, write_file};
use touchline_protocol::log::align_frame;
use touchline_protocol::log::control::WINDOW_BASE_OFFSET;
use touchline_protocol::log::frame::FrameHeader;
use touchline_protocol::log::lease::Lease;
use touchline_protocol::log::segment::LogIdentity;
use touchline_protocol::log::transaction::Bookmark;
use touchline_protocol::snapshot::{HEADER_BYTES, SnapshotHeader, snapshot_path};
use touchline_protocol::units::Incarnation;

fn write(history: &History, portion: &mut Portions<'_>) -> io::Result<u64> {
    history.state.core.write_snapshot(portion)?;
    let mut words = vec![history.state.fillers, history.records.len() as u64];
    for record in &history.records {
        let numbers = [record.position, record.time_ns, record.event_bytes as u64];
        words.extend(numbers.into_iter().chain([record.command.len() as u64]));
        words.extend(bytemuck::allocation::pod_collect_to_vec::<u8, u64>(&record.command));
    }
    portion(bytemuck::cast_slice(&words))?;
    Ok(history.state.hash())
}

/// Reads what [`take`] has written.
pub(crate) fn read(content: &mut SnapshotContent<'_>) -> Result<History, String> {
    let (core, _) = Core::read_snapshot(&mut |into| content.fill(into), 7)
        .map_err(|error| error.to_string())?;
    let mut words = |count: usize| {
        let mut words = vec![0u64; count];
        content.fill(bytemuck::cast_slice_mut(&mut words)).map(|()| words)
    };
    let fillers = words(1)?[0];
    let mut records = Vec::new();
    for _ in 0..words(1)?[0] {
        let numbers = words(4)?;
        let command = words(numbers[3] as usize / 8)?;
        records.push(Record {
            position: numbers[0],
            time_ns: numbers[1],
            event_bytes: numbers[2] as usize,
            command: bytemuck::cast_slice(&command).to_vec(),
        });
    }
    let history = History::of(State { core, fillers }, records);
    content.finish(history.state.hash())?;
    Ok(history)
}

pub(crate) fn path(place: &Place, position: u64) -> PathBuf {
    snapshot_path(&place.options.data.join("snapshots"), position)
}

/// Takes a snapshot of an open log, if all of it is durable; gives its position.
pub(crate) fn take(place: &Place, venue: &Venue) -> Option<u64> {
    let last = venue.history.records.last()?;
    if align_frame(last.end()) > venue.marks().1 {
        return None;
    }
    Some(put(place, venue.log.control.identity(), &venue.history))
}

/// Takes a snapshot of a history that is all on disk.
fn put(place: &Place, identity: &LogIdentity, history: &History) -> u64 {
    let last = history.records.last().unwrap();
    let segment = place.disk.read(&place.segment(last.position / SEGMENT));
    let frame = FrameHeader::read(&segment[(last.position % SEGMENT) as usize..]).unwrap();
    assert_eq!(frame.position, last.position);
    let position = align_frame(last.end());
    let header = SnapshotHeader {
        position,
        last_position: last.position,
        last_incarnation: frame.incarnation,
        last_crc: frame.crc,
        last_time_ns: last.time_ns,
        transactions: history.records.len() as u64,
        ..Default::default()
    };
    let bytes = write_file(identity, &header, |portion| write(history, portion)).unwrap();
    place.disk.put(&path(place, position), bytes);
    position
}

/// A log of some transactions with two snapshots or more at some of their ends; gives the positions.
fn log(place: &Place, random: &mut Random, commands: u64) -> (Vec<u64>, Vec<Record>) {
    let mut venue = place.open();
    venue.define();
    let mut positions = Vec::new();
    for number in 0..commands {
        venue.trade(random);
        if random.once_in(10) {
            venue.fill(random, 20_000);
        }
        if number % (commands / 3) == commands / 4 || random.once_in(commands) {
            venue.settle();
            // Nothing may have been appended since the last one: not every command of chance is taken.
            let taken = take(place, &venue).filter(|at| positions.last() != Some(at));
            positions.extend(taken);
        }
    }
    venue.settle();
    (positions, venue.close().0)
}

fn snapshot_lines(venue: &Venue) -> Vec<String> {
    let lines = venue.log.report.lines.iter();
    lines.filter(|line| line.starts_with("log: snapshot ")).cloned().collect()
}

#[test]
fn snapshot_and_tail_are_the_whole_log() {
    for seed in seeds(100, size(25, 1_000)) {
        let _case = Case(seed);
        let mut random = Random::new(seed);
        let place = Place::new(SimDisk::new(random.word(), true));
        let (positions, records) = log(&place, &mut random, 150);
        let whole = place.copy();
        for position in &positions {
            whole.disk.take(&path(&whole, *position));
        }
        let (venue, without) = (place.open(), whole.open());
        assert_eq!(venue.log.report.snapshot.map(|at| at.0), positions.last().copied());
        assert_eq!(without.log.report.snapshot, None);
        assert_eq!(venue.history.state.hash(), without.history.state.hash());
        assert_eq!(without.log.report.transactions, records.len() as u64);
        let behind = records.iter().filter(|record| Some(&record.position) >= positions.last());
        assert_eq!(venue.log.report.transactions, behind.count() as u64);
        venue.history.check(&records);
        assert!(snapshot_lines(&venue).is_empty());
    }
}

#[test]
fn rotten_snapshots_are_told_and_not_used() {
    let mut random = Random::new(31);
    let place = Place::new(SimDisk::new(1, true));
    let (positions, records) = log(&place, &mut random, 60);
    assert!(positions.len() >= 2, "{positions:?}");
    let newest = path(&place, *positions.last().unwrap());
    let older = positions[positions.len() - 2];
    let good = place.disk.read(&newest);
    // A bit of every byte of the header is tried, and some of the rest.
    let header = (0..HEADER_BYTES as u64).map(|byte| byte * 8 + byte % 8);
    let rest = (HEADER_BYTES as u64 * 8..good.len() as u64 * 8)
        .step_by(good.len() * 8 / size(40, 10_000) as usize);
    for bit in header.chain(rest) {
        let copy = place.copy();
        copy.disk.edit(&path(&copy, *positions.last().unwrap()), |bytes| {
            bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
        });
        let venue = copy.open();
        assert_eq!(venue.log.report.snapshot.map(|at| at.0), Some(older), "bit {bit}");
        assert_eq!(snapshot_lines(&venue).len(), 1, "{:?}", venue.log.report.lines);
        venue.history.check(&records);
    }
    for length in [0, 8, HEADER_BYTES, HEADER_BYTES + 4, good.len() / 2, good.len() - 1] {
        let copy = place.copy();
        copy.disk.put(&path(&copy, *positions.last().unwrap()), good[..length].to_vec());
        let venue = copy.open();
        assert_eq!(venue.log.report.snapshot.map(|at| at.0), Some(older), "{length} bytes");
        venue.history.check(&records);
    }
    let copy = place.copy();
    copy.disk.edit(&path(&copy, *positions.last().unwrap()), |bytes| bytes.extend([0; 8]));
    assert_eq!(copy.open().log.report.snapshot.map(|at| at.0), Some(older), "a file that goes on");
}

#[test]
fn a_log_may_not_end_before_a_snapshot() {
    let mut random = Random::new(32);
    let place = Place::new(SimDisk::new(1, true));
    let (positions, records) = log(&place, &mut random, 60);
    let newest = *positions.last().unwrap();
    // What is left of the log vouches for no more than it has: only the snapshot knows better.
    let cut = records.iter().rfind(|record| align_frame(record.end()) < newest).unwrap();
    let (end, kept) =
        (cut.position, records.iter().filter(|it| it.position < cut.position).count());
    place.lose_window();
    place.disk.edit(&place.segment(end / SEGMENT), |bytes| {
        bytes[(end % SEGMENT) as usize..].fill(0);
    });
    let storage = std::sync::Arc::new(place.disk.clone());
    let found = inspect_at_rest(storage, &place.options.data, &mut |_| {}).unwrap();
    let tells = matches!(found.verdict, Verdict::Damaged { position, attested, .. }
        if position.0 == end && attested.0 == newest);
    assert!(tells, "{:?}", found.verdict);
    let error = place.try_open().err().unwrap();
    assert!(
        matches!(&error, RecoveryError::BehindSnapshot { position, attested, snapshot, .. }
            if *position == end && *attested == newest && *snapshot == path(&place, newest)),
        "{error}"
    );
    let mut accepting = place.copy();
    accepting.options.accept_loss = true;
    let venue = accepting.open();
    venue.history.check(&records[..kept]);
    assert_eq!(venue.log.report.loss_accepted_below.map(|at| at.0), Some(newest));
    assert!(!accepting.disk.has(&path(&accepting, newest)));
    let kept_aside = path(&accepting, newest).with_extension("snap.dropped-2");
    assert!(accepting.disk.has(&kept_aside), "{:?}", accepting.disk.names());
}

#[test]
fn a_snapshot_of_a_history_that_was_given_up_is_not_used() {
    let mut random = Random::new(33);
    let place = Place::new(SimDisk::new(1, true));
    let mut venue = place.open();
    venue.define();
    (0..20).for_each(|_| venue.trade(&mut random));
    venue.settle();
    venue.kill();
    let before = place.copy();
    // Two venues that begin alike, and the snapshot of one in the other's folder.
    let mut venue = place.open();
    (0..20).for_each(|_| venue.trade(&mut random));
    venue.settle();
    let position = take(&place, &venue).unwrap();
    let bytes = place.disk.read(&path(&place, position));
    let mut other = before.open();
    (0..40).for_each(|_| other.trade(&mut random));
    other.settle();
    let records = other.close().0;
    before.disk.put(&path(&before, position), bytes);
    let other = before.open();
    assert_eq!(other.log.report.snapshot, None);
    let lines = snapshot_lines(&other);
    assert!(lines.len() == 1 && lines[0].contains("is not in the log"), "{lines:?}");
    other.history.check(&records);
}

#[test]
fn an_incarnation_that_a_snapshot_or_a_lease_tells_of_does_not_begin_again() {
    let mut random = Random::new(37);
    let place = Place::new(SimDisk::new(1, true));
    let mut venue = place.open();
    venue.define();
    (0..20).for_each(|_| venue.trade(&mut random));
    venue.settle();
    venue.close();
    // The log as it was, and what two engines more have made of it.
    let mut before = place.copy();
    place.open().close();
    let mut venue = place.open();
    (0..20).for_each(|_| venue.trade(&mut random));
    venue.settle();
    let position = take(&place, &venue).unwrap();
    let last = venue.log.writer.position();
    venue.close();
    let mut leased = before.copy();
    before.disk.put(&path(&before, position), place.disk.read(&path(&place, position)));
    before.options.accept_loss = true;
    assert_eq!(before.open().log.report.incarnation.0, 4);
    let bookmark = Bookmark { position: last, incarnation: Incarnation(3), crc: 7 };
    let log_id = leased.open().log.report.log_id;
    Lease::hold(&leased.options.data, "reader", log_id, bookmark).unwrap();
    // What the reader has was durable, and is lost.
    assert!(matches!(leased.try_open(), Err(RecoveryError::BehindLease { .. })));
    leased.options.accept_loss = true;
    assert_eq!(leased.open().log.report.incarnation.0, 4);
}

/// The first segments are gone: only a snapshot stands for them.
fn pruned() -> (Place, u64, Vec<Record>) {
    let mut random = Random::new(34);
    let place = Place::new(SimDisk::new(1, true));
    let mut venue = place.open();
    venue.define();
    (0..20).for_each(|_| venue.trade(&mut random));
    venue.fill_up_to(&mut random, SEGMENT + 1000, 10_000);
    (0..20).for_each(|_| venue.trade(&mut random));
    venue.fill_up_to(&mut random, 2 * SEGMENT + 100_000, 10_000);
    (0..20).for_each(|_| venue.trade(&mut random));
    venue.settle();
    let position = take(&place, &venue).unwrap();
    assert!(position > 2 * SEGMENT);
    (0..20).for_each(|_| venue.trade(&mut random));
    let records = venue.close().0;
    for number in 0..2 {
        place.disk.take(&place.segment(number));
    }
    (place, position, records)
}

#[test]
fn a_log_without_its_beginning_starts_from_a_snapshot() {
    let (place, position, records) = pruned();
    let venue = place.open();
    assert_eq!(venue.log.report.snapshot.map(|at| at.0), Some(position));
    venue.history.check(&records);
    // And again after a death, with its window.
    venue.kill();
    let mut venue = place.open();
    venue.history.check(&records);
    let mut random = Random::new(35);
    (0..10).for_each(|_| venue.trade(&mut random));
    venue.settle();
    let (records, _) = venue.kill();
    place.cut_power();
    place.open().history.check(&records);
}

/// A prune beside an engine takes segments away whose frames its window still has.
#[test]
fn a_window_that_reaches_back_before_the_log_is_gone_on_from() {
    let mut random = Random::new(38);
    let place = Place::new(SimDisk::new(1, true));
    let mut venue = place.open();
    venue.define();
    venue.fill_up_to(&mut random, 2 * SEGMENT + 100_000, 10_000);
    (0..20).for_each(|_| venue.trade(&mut random));
    venue.settle();
    assert!(take(&place, &venue).unwrap() > 2 * SEGMENT);
    place.disk.hold(true);
    (0..20).for_each(|_| venue.trade(&mut random));
    for number in 0..2 {
        place.disk.take(&place.segment(number));
    }
    let page = std::fs::read(&venue.log.report.control_path).unwrap();
    let base = &page[WINDOW_BASE_OFFSET..][..8];
    assert!(u64::from_le_bytes(base.try_into().unwrap()) < 2 * SEGMENT);
    place.disk.hold(false);
    let (records, _) = venue.kill();
    place.open().history.check(&records);
}

#[test]
fn a_log_without_its_beginning_is_refused_without_a_snapshot() {
    let (place, position, _) = pruned();
    let newest = path(&place, position);
    let refuse = |place: &Place, word: &str| {
        let error = place.try_open().err().unwrap();
        let begins_behind = matches!(&error, RecoveryError::NotFromBeginning { position, .. }
            if *position == 2 * SEGMENT);
        assert!(begins_behind && error.to_string().contains(word), "{error}");
    };
    let newer = place.copy();
    newer.disk.edit(&path(&newer, position), |bytes| bytes[8] = 2);
    refuse(&newer, "snapshot format 2.1, this build reads 1.x");
    let rotten = place.copy();
    rotten.disk.edit(&path(&rotten, position), |bytes| bytes[1000] ^= 1);
    refuse(&rotten, "block 0");
    let foreign = place.copy();
    let identity = LogIdentity { log_id: [1; 16], salt: 0, segment_bytes: SEGMENT };
    foreign.disk.edit(&path(&foreign, position), |bytes| {
        let header: SnapshotHeader = bytemuck::pod_read_unaligned(&bytes[..HEADER_BYTES]);
        bytes[..HEADER_BYTES].copy_from_slice(bytemuck::bytes_of(&header.sealed(&identity)));
    });
    refuse(&foreign, "another log");
    place.disk.take(&newest);
    refuse(&place, "no snapshot stands for what was before it");
}

#[test]
fn a_log_folder_without_segments_is_not_taken_for_a_new_one() {
    let mut random = Random::new(36);
    let place = Place::new(SimDisk::new(1, true));
    let (positions, _) = log(&place, &mut random, 30);
    assert!(!positions.is_empty());
    place.lose_window();
    // The second is made ahead, and may not have been.
    let segments = (0..2).map(|number| place.segment(number));
    segments.filter(|path| place.disk.has(path)).for_each(|path| place.disk.take(&path));
    let names = place.disk.names();
    assert!(names.iter().all(|name| !name.ends_with(".seg")), "{names:?}");
    let error = place.try_open().err().unwrap();
    assert!(matches!(error, RecoveryError::SegmentsGone { .. }), "{error}");
}
