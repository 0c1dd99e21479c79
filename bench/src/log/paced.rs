//! Records on a schedule: what the writer needs for each, with the disk at work and without, and when
//! each is durable. Called by [`super`].
//!
//! Every time is counted from when its record was due, so that a stall is felt by all that it holds up.
//! The writer only notes where its records end and how late they were, in memory that was used before; when they
//! became durable is looked up afterwards among the moves of the watermark, as a client sees them that sleeps until
//! it is woken.
//!
//! Blocks of each kind take turns and are equally long: what the window takes while the disk is held. In the first
//! 10 ms of each, threads and disk begin; they count in none.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;
use touchline_engine::cores::keep_off;
use touchline_engine::log::{BeginError, Control};
use touchline_protocol::log::SEGMENT_BYTES_DEFAULT;

use super::disk::{Bare, BareDisk};
use super::storage::Writes;
use super::subject::{ROOM, Record, Subject, wait_for_room};
use super::{LogOptions, SMALL_COMMAND, SMALL_EVENTS, SMALL_FRAME};
use crate::cores::Pinned;
use crate::interrupt;
use crate::latency::{Distribution, Percentiles};
use crate::machine::nanoseconds;
use crate::stolen::{Stolen, Ticks};

/// Records per second.
pub(super) const RATE: u64 = 500_000;

/// From one record to the next, ns.
const PERIOD_NS: u64 = 1_000_000_000 / RATE;

/// Blocks of a round: each is one with the disk held, one with it at work, and one of writes without a log.
const BLOCKS: u64 = 26;

/// Records of a block: as many as the window takes while the disk is held.
const RECORDS: u64 = ROOM / SMALL_FRAME * 3 / 4;

/// Of these, those at the begin that do not count: 10 ms.
const WARM_UP: u64 = RATE / 100;

/// Moves of the watermark that are noted in a block before memory is taken anew.
const MOVES: usize = 1 << 14;

/// By then what a new log with segments of 64 MiB makes ahead is made: in a log that goes on, one segment is made per
/// segment. Larger ones are given up to four times as long.
const MAKING: Duration = Duration::from_secs(2);

/// Before the first record of a block is due, ns.
const LEAD_NS: u64 = 20_000;

/// Records between two looks for an interruption.
const LOOK_EVERY: u64 = 4096;

/// Longest sleep of the watching thread.
const WATCH_SLICE: Duration = Duration::from_millis(5);

/// What one round has measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Paced {
    /// Due to appended, the keeper held.
    pub writer_off: Percentiles,
    /// Due to appended, the keeper writing to disk and a client waiting for it.
    pub writer_on: Percentiles,
    /// Due to durable, as that client sees it.
    pub durable: Percentiles,
    /// Bare writes of what is due on the same schedule.
    pub bare_writes: Percentiles,
    /// Due to the end of the bare write that a record is in: what this disk allows.
    pub bare_durable: Percentiles,
    /// Thousandths of all cores' time that the machine below took away while the keeper was held.
    pub stolen_off: u64,
    /// While it was writing.
    pub stolen_on: u64,
    /// While bare writes were made.
    pub stolen_bare: u64,
}

/// A record that was appended.
#[derive(Clone, Copy)]
struct Appended {
    due: u64,
    /// From then on.
    took: u64,
    /// The position behind it.
    end: u64,
}

/// A move of the watermark: when it was seen, and where to.
type Move = (u64, u64);

/// `held` is the log whose keeper is held. What it has appended by then reaches the disk at once, and a
/// flood leaves a segment behind that is dear to write to: it is another log than that whose records are
/// followed to the disk.
pub(super) fn measure(
    held: &mut Subject,
    subject: &mut Subject,
    disk: &BareDisk,
    options: &LogOptions,
) -> Result<Paced> {
    let &LogOptions { core, segment_bytes, .. } = options;
    let base = Instant::now();
    let mut seen = Seen::new();
    // On the same schedule.
    for _ in 0..lead_blocks(segment_bytes) {
        schedule(subject, base, core, &mut seen.records)?;
    }
    subject.settle()?;
    let times = (segment_bytes / SEGMENT_BYTES_DEFAULT).clamp(1, 4);
    thread::sleep(MAKING * u32::try_from(times)?);
    let [mut off, mut on, mut durable] = [(); 3].map(|()| Distribution::default());
    let mut bare = Bare::default();
    let [mut stolen_off, mut stolen_on, mut stolen_bare] = [Ticks::default(); 3];
    for block in 0..BLOCKS {
        held.settle()?;
        let turned = held.storage.turn(Writes::Held);
        let stolen = Stolen::begin();
        schedule(held, base, core, &mut seen.records)?;
        stolen_off += stolen.so_far();
        drop(turned);
        seen.take_times(&mut off);
        held.settle()?;
        let stolen = Stolen::begin();
        watched(subject, base, core, &mut seen)?;
        stolen_on += stolen.so_far();
        seen.take_times(&mut on);
        look_up(seen.counted(), &seen.moves, &mut durable)?;
        // Where the keeper runs.
        let _off = Pinned::off(core)?;
        let stolen = Stolen::begin();
        disk.on_schedule(block, (RECORDS, WARM_UP), PERIOD_NS, &mut bare)?;
        stolen_bare += stolen.so_far();
    }
    Ok(Paced {
        writer_off: off.percentiles(),
        writer_on: on.percentiles(),
        durable: durable.percentiles(),
        bare_writes: bare.writes.percentiles(),
        bare_durable: bare.durable.percentiles(),
        stolen_off: stolen_off.permille(),
        stolen_on: stolen_on.permille(),
        stolen_bare: stolen_bare.permille(),
    })
}

/// Blocks in front of the first, of a new log: a segment's end lies in the middle of the blocks behind them, or, of
/// small segments, several do.
const fn lead_blocks(segment_bytes: u64) -> u64 {
    let lead = (segment_bytes / SMALL_FRAME).saturating_sub(BLOCKS * RECORDS / 2) / RECORDS;
    if lead == 0 { 1 } else { lead }
}

/// What is noted of a block, in memory whose pages are all there before the first.
struct Seen {
    records: Vec<Appended>,
    moves: Vec<Move>,
}

impl Seen {
    fn new() -> Self {
        // Not zeros, which the system would give without any memory behind them.
        let records = vec![Appended { due: 1, took: 1, end: 1 }; RECORDS as usize];
        Self { records, moves: vec![(1, 1); MOVES] }
    }

    /// The records behind the begin.
    fn counted(&self) -> &[Appended] {
        &self.records[WARM_UP as usize..]
    }

    fn take_times(&self, into: &mut Distribution) {
        self.counted().iter().for_each(|record| into.record(record.took));
    }
}

/// Appends the records of a block, each as soon as it is due, and notes them in `appended`, which is emptied first.
fn schedule(
    subject: &mut Subject,
    base: Instant,
    core: Option<usize>,
    appended: &mut Vec<Appended>,
) -> Result<()> {
    let record = Record { command: &SMALL_COMMAND, events: &SMALL_EVENTS };
    appended.clear();
    let _pinned = Pinned::to(core)?;
    let begin = nanoseconds(base.elapsed()) + LEAD_NS;
    for index in 0..RECORDS {
        if index % LOOK_EVERY == 0 {
            interrupt::check()?;
        }
        let due = begin + index * PERIOD_NS;
        while nanoseconds(base.elapsed()) < due {
            std::hint::spin_loop();
        }
        let end = loop {
            match subject.append(&record) {
                Ok(end) => break end,
                Err(BeginError::Full { .. }) => wait_for_room(&mut subject.log.writer)?,
                Err(error) => return Err(error.into()),
            }
        };
        // A client waits for each.
        subject.log.writer.want_durable();
        subject.log.writer.tell_keeper();
        appended.push(Appended { due, took: nanoseconds(base.elapsed()) - due, end: end.0 });
    }
    Ok(())
}

/// Raises the flag when it is dropped, however its scope is left.
struct RaiseAtEnd<'flag>(&'flag AtomicBool);

impl Drop for RaiseAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A block with the disk at work and a thread that waits for the watermark.
fn watched(
    subject: &mut Subject,
    base: Instant,
    core: Option<usize>,
    seen: &mut Seen,
) -> Result<()> {
    let control = subject.log.control.clone();
    let stop = AtomicBool::new(false);
    let Seen { records, moves } = seen;
    thread::scope(|scope| {
        let watching =
            thread::Builder::new().name("client".to_owned()).spawn_scoped(scope, || {
                // Where it cannot, it runs where it may.
                let _refused = core.map(keep_off);
                watch(&control, &stop, base, moves);
            })?;
        let ending = RaiseAtEnd(&stop);
        schedule(subject, base, core, records)?;
        subject.settle()?;
        drop(ending);
        watching.join().ok().context("the watching thread panicked")
    })
}

/// Notes each move in `moves`, which is emptied first.
fn watch(control: &Control, stop: &AtomicBool, base: Instant, moves: &mut Vec<Move>) {
    moves.clear();
    let mut known = None;
    loop {
        let is_last = stop.load(Ordering::Acquire);
        let seen = control.durable_event().current();
        let durable = control.durable().0;
        if known != Some(durable) {
            known = Some(durable);
            moves.push((nanoseconds(base.elapsed()), durable));
        }
        if is_last {
            return;
        }
        control.durable_event().wait_changed(seen, WATCH_SLICE);
    }
}

/// From when each record was due to the first move that covers it.
fn look_up(records: &[Appended], moves: &[Move], into: &mut Distribution) -> Result<()> {
    let mut moves = moves.iter().peekable();
    for Appended { due, end, .. } in records {
        while moves.peek().is_some_and(|(_, durable)| durable < end) {
            moves.next();
        }
        let (seen, _) = moves.peek().context("a record that never became durable")?;
        into.record(seen.saturating_sub(*due));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn appended(due: u64, end: u64) -> Appended {
        Appended { due, took: 7, end }
    }

    #[test]
    fn a_record_is_durable_with_the_first_move_that_covers_it() {
        let moves = [(10, 100), (400, 300), (900, 500)];
        let mut into = Distribution::default();
        let records = [(300, 200), (350, 300), (380, 301), (500, 500)];
        let records = records.map(|(due, end)| appended(due, end));
        look_up(&records, &moves, &mut into).unwrap();
        let found = into.percentiles();
        // 100, 50, 520 and 400 ns.
        assert_eq!((found.count, found.p50, found.max), (4, 100, 520));
        assert!(look_up(&[appended(600, 501)], &moves, &mut into).is_err());
    }

    #[test]
    fn a_segment_ends_in_the_blocks_that_are_measured() {
        for mib in [2, 16, 32, 64, 128, 1024] {
            let records = (mib << 20) / SMALL_FRAME;
            let before = lead_blocks(mib << 20) * RECORDS;
            let (first, last) = (before / records, (before + BLOCKS * RECORDS) / records);
            assert!(last > first, "{mib} MiB: none ends behind {before} records");
            // Of segments that are longer than all blocks the end is no nearer to the first than to the last.
            let in_front = records.saturating_sub(before);
            assert!(mib < 64 || in_front.abs_diff(BLOCKS * RECORDS / 2) <= RECORDS, "{mib} MiB");
        }
    }

    #[test]
    fn the_begin_of_a_block_does_not_count() {
        let mut seen = Seen::new();
        let (begin, rest) = seen.records.split_at_mut(WARM_UP as usize);
        begin.iter_mut().for_each(|record| record.took = 1000);
        rest.iter_mut().for_each(|record| record.took = 10);
        let mut into = Distribution::default();
        seen.take_times(&mut into);
        let found = into.percentiles();
        assert_eq!((found.count, found.max), (RECORDS - WARM_UP, 10));
    }
}
