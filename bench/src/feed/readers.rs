//! Readers of the broadcast ring that sleep until there is something: threads, each with a mapping of its
//! own, as readers in other processes have. Called by [`super::run`].

use std::ops::AddAssign;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result};
use touchline_engine::cores::keep_off;
use touchline_engine::feed::FeedPlace;
use touchline_protocol::feed::FeedInput;
use touchline_protocol::feed::broadcast::{BroadcastReader, SlotWords};

use super::venue::Venue;

/// Longest sleep: a look whether it is to end.
const PAUSE: Duration = Duration::from_millis(5);

/// The readers.
pub(super) struct Readers {
    stop: Arc<AtomicBool>,
    /// Messages that each has read so far.
    read: Vec<Arc<AtomicU64>>,
    threads: Vec<JoinHandle<u64>>,
    _places: Vec<FeedPlace>,
}

/// How much was read, of how much there was for each to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Reading {
    pub(super) read: u64,
    pub(super) published: u64,
}

impl AddAssign for Reading {
    fn add_assign(&mut self, more: Self) {
        self.read += more.read;
        self.published += more.published;
    }
}

impl Readers {
    /// Starts `count` readers off the core; they are asleep when this returns, or about to be.
    pub(super) fn start(venue: &Venue, count: usize, core: Option<usize>) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (mut threads, mut places, mut counts) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..count {
            let desk = venue.desk().context("a venue without a feed has no readers")?;
            let (memory, slots, _) = desk.memory();
            let mut ring = BroadcastReader::new(FeedInput::map(memory.as_fd(), slots)?);
            ring.seek(ring.published());
            places.push(desk.reader(false));
            let (stop, count) = (Arc::clone(&stop), Arc::<AtomicU64>::default());
            counts.push(Arc::clone(&count));
            threads.push(thread::Builder::new().name("reader".to_owned()).spawn(move || {
                if let Some(core) = core {
                    // On whatever core, it reads.
                    let _before = keep_off(core);
                }
                read(&mut ring, &count, &stop)
            })?);
        }
        thread::sleep(PAUSE);
        Ok(Self { stop, read: counts, threads, _places: places })
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.threads.len() as u64
    }

    /// Messages that all of them together have read so far.
    pub(super) fn read(&self) -> u64 {
        self.read.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Ends them; gives how many messages they missed.
    pub(super) fn stop(self) -> Result<u64> {
        self.stop.store(true, Ordering::Relaxed);
        let mut missed = 0;
        for thread in self.threads {
            missed += thread.join().ok().context("a reader panicked")?;
        }
        Ok(missed)
    }
}

/// Reads to the end; gives how many messages were overwritten.
fn read(ring: &mut BroadcastReader<FeedInput>, count: &AtomicU64, stop: &AtomicBool) -> u64 {
    let mut message = SlotWords::default();
    let mut missed = 0;
    while !stop.load(Ordering::Relaxed) {
        let seen = ring.memory().events().current();
        match ring.poll(&mut message) {
            Ok(true) => {
                count.fetch_add(1, Ordering::Relaxed);
            }
            Ok(false) => {
                ring.memory().events().wait_changed(seen, PAUSE);
            }
            Err(overrun) => {
                let published = ring.published();
                missed += published.0 - (overrun.expected.0 - 1);
                ring.seek(published);
            }
        }
    }
    missed
}
