//! Readers of the broadcast ring that sleep until there is something: threads, each with a mapping of its
//! own, as readers in other processes have. Called by [`super::run`].

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
    threads: Vec<JoinHandle<u64>>,
    _places: Vec<FeedPlace>,
}

impl Readers {
    /// Starts `count` readers off the core; they are asleep when this returns, or about to be.
    pub(super) fn start(venue: &Venue, count: usize, core: Option<usize>) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (mut threads, mut places) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let desk = venue.desk().context("a venue without a feed has no readers")?;
            let (memory, slots, _) = desk.memory();
            let mut ring = BroadcastReader::new(FeedInput::map(memory.as_fd(), slots)?);
            ring.seek(ring.published());
            places.push(desk.reader(false));
            let stop = Arc::clone(&stop);
            threads.push(thread::Builder::new().name("reader".to_owned()).spawn(move || {
                if let Some(core) = core {
                    // On whatever core, it reads.
                    let _before = keep_off(core);
                }
                read(&mut ring, &stop)
            })?);
        }
        thread::sleep(PAUSE);
        Ok(Self { stop, threads, _places: places })
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
fn read(ring: &mut BroadcastReader<FeedInput>, stop: &AtomicBool) -> u64 {
    let mut message = SlotWords::default();
    let mut missed = 0;
    while !stop.load(Ordering::Relaxed) {
        let seen = ring.memory().events().current();
        match ring.poll(&mut message) {
            Ok(true) => {}
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
