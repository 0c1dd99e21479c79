//! Ghosts: the power is cut, the log's end is dropped, another one is appended in its place, again and
//! again, on a disk that gives back, in any sector that was never acknowledged, any bytes that ever lay
//! there. No transaction of an older incarnation comes back.

use super::disk::{SECTOR, SimDisk};
use super::random::{Case, Random, seeds, size};
use super::world::{Place, Record, SEGMENT};

/// Power cuts that one data folder has.
const ROUNDS: u64 = 50;

/// Every image that a sector may go back to: the segments as they were in earlier rounds.
#[derive(Default)]
struct Past {
    images: Vec<Vec<u8>>,
}

impl Past {
    /// Puts bytes of the past into sectors behind `durable`.
    fn haunt(&self, place: &Place, random: &mut Random, durable: u64) {
        let image = &self.images[random.below(self.images.len() as u64) as usize];
        let often = 1 + random.below(6);
        let first = durable.div_ceil(SECTOR as u64) as usize;
        for sector in first..first + 300 {
            let at = sector * SECTOR;
            let path = place.segment(at as u64 / SEGMENT);
            if at + SECTOR > image.len() || !place.disk.has(&path) || !random.once_in(often) {
                continue;
            }
            let offset = at % SEGMENT as usize;
            place.disk.edit(&path, |bytes| {
                bytes[offset..offset + SECTOR].copy_from_slice(&image[at..at + SECTOR]);
            });
        }
    }
}

/// One engine's life; gives what it has done and how far that is durable.
fn live(place: &Place, random: &mut Random, known: &[Record], durable: u64) -> (Vec<Record>, u64) {
    place.disk.plan(u64::MAX);
    let mut venue = place.open();
    let found = &venue.history.records;
    assert_eq!(found, &known[..found.len().min(known.len())], "a ghost");
    assert!(known[found.len()..].iter().all(|record| record.end() > durable), "lost");
    venue.define();
    // Frames of few sizes, so that old and new ones begin at the same places.
    let size = [200, 2_000, 12_000][random.below(3) as usize];
    for _ in 0..random.below(6) {
        venue.fill(random, size);
        if random.once_in(4) {
            venue.settle();
        }
    }
    place.disk.plan(random.below(2));
    // Often all of it is in flight at once.
    place.disk.hold(random.once_in(2));
    for _ in 0..1 + random.below(6) {
        venue.fill(random, size);
        venue.trade(random);
        if random.once_in(2) {
            venue.log.writer.tell_keeper();
        }
    }
    place.disk.hold(false);
    venue.settle();
    venue.kill()
}

#[test]
fn no_transaction_of_an_older_incarnation_comes_back() {
    let (mut rounds, mut dropped) = (0, 0);
    for seed in seeds(1, size(150, 5_000) / ROUNDS) {
        let _case = Case(seed);
        let mut random = Random::new(seed);
        let place = Place::new(SimDisk::new(random.word(), true));
        let (mut records, mut durable) = (Vec::new(), 0);
        let mut past = Past::default();
        if random.once_in(2) {
            let mut venue = place.open();
            venue.define();
            venue.fill_up_to(&mut random, SEGMENT, 150_000);
            records = venue.close().0;
            durable = records.last().map_or(0, Record::end);
        }
        for _ in 0..ROUNDS {
            (records, durable) = live(&place, &mut random, &records, durable);
            past.images.push(place.image());
            if past.images.len() > 6 {
                let any = random.below(6) as usize;
                past.images.swap_remove(any);
            }
            place.cut_power();
            past.haunt(&place, &mut random, durable);
            rounds += 1;
            dropped += u64::from(records.last().is_some_and(|record| record.end() > durable));
        }
        let venue = place.open();
        let found = venue.history.records.clone();
        assert_eq!(found, &records[..found.len()], "a ghost");
        venue.history.check(&found);
    }
    println!("{rounds} rounds, {dropped} of them with an end that was not durable");
    assert!(dropped > rounds / 4, "too few ends were dropped: {dropped} of {rounds}");
}
