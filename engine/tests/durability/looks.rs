//! Looking at a log whose engine is not seen while that one writes it: what comes meanwhile is no damage,
//! and damage among it is damage.

use super::disk::SimDisk;
use super::random::Random;
use super::snapshots::{path, take};
use super::world::{Place, Record};
use std::sync::Arc;
use touchline_engine::inspect::{Inspection, Verdict, inspect_at_rest};
use touchline_protocol::log::align_frame;

/// A log each of whose transactions vouches for the one before it.
fn log() -> (Place, Vec<Record>) {
    let mut random = Random::new(61);
    let place = Place::new(SimDisk::new(61, true));
    let mut venue = place.open();
    venue.define();
    for _ in 0..50 {
        venue.trade(&mut random);
        venue.settle();
    }
    let (records, _) = venue.kill();
    (place, records)
}

/// Looks at the log; `meanwhile` happens when the walk has read as far as the log goes, and before anything
/// behind its end is looked at.
fn look(place: &Place, meanwhile: impl FnOnce()) -> (Inspection, usize) {
    let mut seen = 0;
    let mut meanwhile = Some(meanwhile);
    let storage = Arc::new(place.disk.clone());
    let found = inspect_at_rest(storage, &place.options.data, &mut |_| {
        seen += 1;
        if let Some(meanwhile) = meanwhile.take() {
            meanwhile();
        }
    });
    (found.unwrap(), seen)
}

#[test]
fn what_is_written_while_somebody_looks_is_no_damage() {
    let (place, records) = log();
    let whole = place.image();
    let end = align_frame(records.last().unwrap().end());
    for cut in records[records.len() / 2..].iter().map(|record| record.position) {
        // Nothing of the frame, and a part of it.
        for from in [cut, cut + 24] {
            let mut short = whole.clone();
            short[from as usize..].fill(0);
            place.restore(&short);
            let rest = from as usize..whole.len();
            let (found, seen) = look(&place, || place.overwrite(&whole, rest));
            assert_eq!((found.verdict, found.end.0), (Verdict::Sound, end), "from {from} on");
            assert_eq!((seen, found.transactions), (records.len(), records.len() as u64));
        }
    }
}

#[test]
fn a_snapshot_that_is_made_while_somebody_looks_says_nothing_of_what_was_looked_at() {
    let mut random = Random::new(62);
    let place = Place::new(SimDisk::new(62, true));
    let mut venue = place.open();
    venue.define();
    for _ in 0..20 {
        venue.trade(&mut random);
    }
    venue.settle();
    let position = take(&place, &venue).unwrap();
    let (records, _) = venue.kill();
    let file = path(&place, position);
    let snapshot = place.disk.read(&file);
    let cut = records[records.len() - 3].position;
    let mut short = place.image();
    short[cut as usize..].fill(0);
    place.restore(&short);
    let (found, _) = look(&place, || place.disk.put(&file, snapshot));
    assert_eq!((found.verdict, found.end.0), (Verdict::Sound, cut));
    // Nobody has written since: now it tells that something is missing.
    let (found, _) = look(&place, || {});
    assert!(matches!(found.verdict, Verdict::Damaged { attested, .. } if attested.0 == position));
}

#[test]
fn damage_that_comes_while_somebody_looks_is_told() {
    let (place, records) = log();
    let whole = place.image();
    let last = records.last().unwrap().position;
    let (cut, bad) = (records[records.len() - 20].position, records[records.len() - 10].position);
    for (flipped, kept_blank) in [(Some(bad), None), (None, Some(cut))] {
        let mut short = whole.clone();
        short[cut as usize..].fill(0);
        place.restore(&short);
        let mut wrong = whole.clone();
        flipped.into_iter().for_each(|at| wrong[at as usize + 40] ^= 1);
        kept_blank.into_iter().for_each(|at| wrong[at as usize..at as usize + 64].fill(0));
        let rest = cut as usize..whole.len();
        let (found, _) = look(&place, || place.overwrite(&wrong, rest));
        let told = matches!(found.verdict, Verdict::Damaged { position, attested, .. }
            if position.0 == flipped.unwrap_or(cut) && attested.0 == last);
        assert!(told, "{:?}", found.verdict);
    }
}
