//! Leases of the log's readers, which name what was durable: a log that has lost it is not opened.

use std::fs;

use touchline_engine::{
    inspect::{Verdict, inspect},
    recovery::RecoveryError,
};
use touchline_protocol::{
    log::{
        lease::{Lease, leases},
        reader::Follow,
        transaction::Bookmark,
    },
    units::{Incarnation, Position},
};

use crate::{
    reader::{reader, rest},
    support::{Model, Place, Random, SEGMENT, refusal},
};

/// The last transaction of the log in front of `position`.
fn last_before(place: &Place, position: u64) -> Bookmark {
    let mut reader = reader(place, Follow::Durable);
    let mut last = Bookmark::default();
    while let Some(transaction) = reader.next().unwrap().filter(|it| it.position().0 < position) {
        last = transaction.bookmark();
    }
    last
}

fn log_id(place: &Place) -> [u8; 16] {
    reader(place, Follow::Durable).log_id()
}

/// A log that ended cleanly in its third segment, all of which a reader has.
fn leased_log(seed: u64) -> (Place, Model, Bookmark) {
    let place = Place::new();
    let mut random = Random::new(seed);
    let mut venue = place.open();
    venue.submit_up_to(&mut random, 2 * SEGMENT + SEGMENT / 2);
    let model = venue.close();
    let last = last_before(&place, u64::MAX);
    assert_eq!(last.position.0, model.records.last().unwrap().position);
    Lease::hold(&place.options.data, "reader", log_id(&place), last).unwrap();
    (place, model, last)
}

#[test]
fn a_missing_last_segment_is_missed_by_who_has_read_it() {
    let (mut place, model, last) = leased_log(60);
    fs::remove_file(place.segment(2)).unwrap();
    let _ahead = fs::remove_file(place.segment(3));
    let path = place.options.data.join("leases/reader.lease");
    let before = fs::read(&path).unwrap();
    let error = refusal(&place);
    assert!(
        matches!(&error, RecoveryError::BehindLease { lease, attested, .. }
            if *lease == path && *attested > last.position.0),
        "{error}"
    );
    let text = error.to_string();
    assert!(text.contains("reader.lease") && text.contains("--accept-loss"), "{text}");
    assert_eq!(fs::read(&path).unwrap(), before);
    let verdict = inspect(&place.options.data, &mut |_| {}).unwrap().verdict;
    assert!(
        matches!(&verdict, Verdict::Damaged { by: Some(by), .. } if *by == path),
        "{verdict:?}"
    );

    place.told();
    place.options.accept_loss = true;
    let kept: Vec<_> =
        model.records.iter().filter(|record| record.position < 2 * SEGMENT).cloned().collect();
    let venue = place.open();
    assert_eq!(venue.model.records, kept);
    let told = place.told();
    let tells = |what: &str| told.iter().any(|line| line.contains(what));
    assert!(tells("acknowledged as durable") && tells("reader.lease.dropped-2"), "{told:?}");
    // The reader needs all of the log, and nobody is kept from starting by what it had.
    let held = leases(&place.options.data).unwrap();
    assert_eq!((held.len(), held[0].last), (1, Bookmark::default()));
    assert_eq!(fs::read(path.with_extension("lease.dropped-2")).unwrap(), before);
    venue.close();
    place.options.accept_loss = false;
    assert_eq!(place.open().model.records, kept);
}

/// As a venue leaves it whose loss was accepted while the reader's last batch was on its way to its own disk.
#[test]
fn a_lease_of_a_past_that_a_later_start_has_ended_keeps_nobody_from_starting() {
    let (mut place, _, _) = leased_log(65);
    let path = place.options.data.join("leases/reader.lease");
    let before = fs::read(&path).unwrap();
    fs::remove_file(place.segment(2)).unwrap();
    let _ahead = fs::remove_file(place.segment(3));
    place.options.accept_loss = true;
    let mut venue = place.open();
    venue.submit(&[24; 24]);
    venue.close();
    place.options.accept_loss = false;
    let model = place.open().close();
    fs::write(&path, &before).unwrap();
    assert_eq!(inspect(&place.options.data, &mut |_| {}).unwrap().verdict, Verdict::Sound);
    place.told();
    let venue = place.open();
    assert_eq!(venue.model, model);
    let told = place.told();
    assert!(told.iter().any(|line| line.contains("reader.lease.dropped-4")), "{told:?}");
    assert!(told.iter().all(|line| !line.contains("LOSS")), "{told:?}");
    assert_eq!(leases(&place.options.data).unwrap()[0].last, Bookmark::default());
    assert_eq!(fs::read(path.with_extension("lease.dropped-4")).unwrap(), before);
    venue.close();

    // One of the log's own past vouches, whatever an older one would have vouched for beside it.
    fs::write(&path, &before).unwrap();
    let position = Position(2 * SEGMENT + SEGMENT / 4);
    let own = Bookmark { position, incarnation: Incarnation(4), crc: 7 };
    Lease::hold(&place.options.data, "own", log_id(&place), own).unwrap();
    let own_path = place.options.data.join("leases/own.lease");
    let error = refusal(&place);
    assert!(
        matches!(&error, RecoveryError::BehindLease { lease, .. } if *lease == own_path),
        "{error}"
    );
    let verdict = inspect(&place.options.data, &mut |_| {}).unwrap().verdict;
    assert!(
        matches!(&verdict, Verdict::Damaged { by: Some(by), .. } if *by == own_path),
        "{verdict:?}"
    );
}

#[test]
fn the_last_transaction_alone_is_missed_too() {
    let (place, model, last) = leased_log(61);
    let from = last.position.0;
    let end = model.records.last().unwrap().end;
    // The closing record behind it goes with it, so that nothing else vouches for it.
    let bytes = place.read(from, (end - from) as usize + 64);
    place.write(from, &vec![0; bytes.len()]);
    let error = refusal(&place);
    assert!(
        matches!(&error, RecoveryError::BehindLease { position, .. } if *position == from),
        "{error}"
    );
    place.write(from, &bytes);
    assert_eq!(place.open().model, model);
}

#[test]
fn a_lease_that_names_nothing_that_was_durable_keeps_nobody_from_starting() {
    let (place, model, _) = leased_log(62);
    let (data, log_id) = (&place.options.data, log_id(&place));
    let far = |incarnation| Bookmark {
        position: Position(90 * SEGMENT),
        incarnation: Incarnation(incarnation),
        crc: 7,
    };
    // Of another log, of one that has nothing yet, and one that cannot be read.
    Lease::hold(data, "foreign", [1; 16], far(1)).unwrap();
    Lease::hold(data, "empty", log_id, far(0)).unwrap();
    let names: Vec<_> = leases(data).unwrap().into_iter().map(|lease| lease.name).collect();
    fs::write(data.join("leases/torn.lease"), "half").unwrap();
    assert_eq!(inspect(data, &mut |_| {}).unwrap().verdict, Verdict::Sound);
    let venue = place.open();
    assert_eq!(venue.model, model);
    venue.close();
    fs::remove_file(data.join("leases/torn.lease")).unwrap();
    let held = leases(data).unwrap();
    assert_eq!(held.iter().map(|lease| lease.name.clone()).collect::<Vec<_>>(), names);
    assert_eq!(held[0].last.position, Position(90 * SEGMENT), "what others hold stays");
}

#[test]
fn a_lease_of_what_the_log_has_stays_as_it_is() {
    let (place, model, last) = leased_log(69);
    assert_eq!(place.open().close(), model);
    let held = leases(&place.options.data).unwrap();
    assert_eq!(held.iter().map(|lease| lease.last).collect::<Vec<_>>(), [last]);
    assert_eq!(fs::read_dir(place.options.data.join("leases")).unwrap().count(), 1);
}

#[test]
fn a_lease_of_the_highest_position_there_is_is_refused_as_any_other() {
    let (place, _, last) = leased_log(70);
    let last = Bookmark { position: Position(u64::MAX), ..last };
    Lease::hold(&place.options.data, "reader", log_id(&place), last).unwrap();
    let error = refusal(&place);
    assert!(matches!(error, RecoveryError::BehindLease { .. }), "{error}");
}

/// Whatever ends a start behind the moment at which the lease was put aside.
#[test]
fn an_incarnation_that_only_a_lease_told_of_is_not_used_though_the_lease_is_put_aside() {
    let (mut place, _, _) = leased_log(63);
    let far = Bookmark { position: Position(2 * SEGMENT), incarnation: Incarnation(9), crc: 7 };
    let far = Bookmark { position: Position(far.position.0 + SEGMENT), ..far };
    Lease::hold(&place.options.data, "reader", log_id(&place), far).unwrap();
    let older = Bookmark { incarnation: Incarnation(4), ..far };
    Lease::hold(&place.options.data, "another", log_id(&place), older).unwrap();
    place.options.accept_loss = true;
    let (venue, broken_off) = place.open_broken_off();
    assert!(broken_off > 0);
    assert!(venue.report().incarnation.0 >= 10, "{}", venue.report().incarnation);
    assert!(place.names().iter().all(|name| !name.contains("dropped")), "{:?}", place.names());
}

#[test]
fn an_incarnation_of_which_only_the_copy_of_a_lease_tells_is_not_used_again() {
    let (place, model, _) = leased_log(65);
    for kept in ["another.lease.dropped-3", "reader.lease.dropped-12", "reader.lease.dropped-2"] {
        fs::write(place.options.data.join("leases").join(kept), "a lease").unwrap();
    }
    let venue = place.open();
    assert_eq!((venue.report().incarnation, &venue.model), (Incarnation(13), &model));
}

#[test]
fn what_is_lost_without_anybody_who_has_read_it_is_told_as_it_may_be() {
    let (place, model, _) = leased_log(64);
    fs::remove_dir_all(place.options.data.join("leases")).unwrap();
    fs::remove_file(place.segment(2)).unwrap();
    let _ahead = fs::remove_file(place.segment(3));
    let venue = place.open();
    assert!(venue.model.records.len() < model.records.len());
    let told = place.told();
    assert!(told.iter().any(|line| line.contains("what was durable in them")), "{told:?}");
    let mut reader = reader(&place, Follow::Durable);
    assert_eq!(rest(&mut reader), venue.model.records);
}
