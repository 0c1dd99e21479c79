//! Readers beside engines that end in any way, with any part of the log lost: they go on, or are told.

use std::{sync::atomic::Ordering, thread, time::Duration};

use touchline_protocol::log::reader::{Follow, LogReader, ReadError};

use crate::{
    reader::{next, reader, rest},
    support::{Place, Random, Record, Venue},
};

/// A command without events: its frame has 64 bytes, as a record of the engine's own.
fn small(random: &mut Random) -> [u8; 8] {
    let mut command = random.word().to_le_bytes();
    command[..2].fill(0);
    command
}

/// Appends a little, from the middle on while nothing may reach the disk, and beginning there with a record of
/// the engine's own now and then.
fn live(
    place: &Place,
    venue: &mut Venue,
    random: &mut Random,
    is_held: bool,
    readers: &mut [Reading],
) {
    let steps = random.below(8);
    for step in 0..=steps {
        if step == steps / 2 {
            venue.settle();
            while random.below(2) == 0 && !venue.log.writer.attest_asked() {
                thread::sleep(Duration::from_millis(1));
            }
            place.disk.hold(is_held);
            venue.log.writer.attest_if_asked(venue.log.writer.last_time_ns());
        } else if random.below(3) > 0 {
            venue.append(&small(random));
        } else {
            venue.append(&random.command(60_000));
        }
        for Reading { reader, read, .. } in &mut *readers {
            let count = random.below(4) as usize;
            read.extend(std::iter::from_fn(|| next(reader)).take(count));
        }
    }
}

/// A reader and what it has read.
struct Reading {
    reader: LogReader,
    follow: Follow,
    read: Vec<Record>,
}

impl Reading {
    fn new(place: &Place, follow: Follow) -> Self {
        Self { reader: reader(place, follow), follow, read: Vec::new() }
    }

    /// Goes on behind another engine; true if what was read is part of the log no more.
    fn go_on(&mut self, place: &Place, venue: &Venue) -> bool {
        let attached = self.reader.attach();
        let is_had = venue.model.records.starts_with(&self.read);
        match attached {
            Ok(is_new) => assert!(is_new && is_had),
            Err(ReadError::HistoryLost { .. }) => {
                assert!(!is_had);
                *self = Self::new(place, self.follow);
            }
            Err(error) => panic!("{error}"),
        }
        self.read.extend(rest(&mut self.reader));
        assert!(venue.model.records.starts_with(&self.read));
        assert!(self.follow == Follow::Durable || self.read == venue.model.records);
        !is_had
    }
}

#[test]
fn readers_go_on_or_are_told_whatever_ends_engines() {
    let mut lost = 0;
    for seed in 0..10 {
        let mut random = Random::new(seed);
        let mut place = Place::new();
        place.environment.attest_after = Duration::ZERO;
        let mut venue = place.open();
        let follows = [Follow::Appended, Follow::Durable, Follow::Appended];
        let mut readers = follows.map(|follow| Reading::new(&place, follow));
        let mut seen = Vec::new();
        for _ in 0..12 {
            let is_held = random.below(2) == 0;
            live(&place, &mut venue, &mut random, is_held, &mut readers);
            seen.push((venue.log.control.incarnation(), venue.log.control.appended(), false));
            place.disk.broken.store(is_held, Ordering::SeqCst);
            place.disk.hold(false);
            if is_held || random.below(2) == 0 {
                venue.kill();
            } else {
                venue.close();
            }
            place.disk.broken.store(false, Ordering::SeqCst);
            if random.below(2) == 0 {
                place.lose_window();
            }
            venue = place.open();
            for reading in &mut readers {
                // Some sleep over an engine.
                if random.below(4) > 0 {
                    lost += u32::from(reading.go_on(&place, &venue));
                }
            }
            let mut checker = reader(&place, Follow::Appended);
            let end = venue.report().recovered_end;
            for (incarnation, position, is_lost) in &mut seen {
                // For good, whoever writes there later.
                *is_lost |= *position > end;
                assert_eq!(checker.has(*incarnation, *position).unwrap(), !*is_lost);
            }
        }
    }
    assert!(lost > 0, "the test is to lose something");
}
