//! The first baseline: one cache line each way in shared memory, seven words of payload and a
//! sequence word, both sides spinning. Nothing that crosses two cores can be faster. Called by
//! [`super::Baselines`].

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use anyhow::{Context, Result};
use touchline_protocol::ring::layout::LINE_BYTES;
use touchline_protocol::shm::{PeerAccess, Region, Shared};
use touchline_protocol::sync::{AtomicU64, Ordering, spin_loop, yield_now};

use super::peer::{Patience, Peer, PeerKind};
use crate::interrupt;
use crate::latency::Distribution;
use crate::machine::nanoseconds;

const BYTES: usize = 4096;
/// Words of a cache line; the last is the sequence.
const LINE_WORDS: usize = 8;
const SEQUENCE: usize = LINE_WORDS - 1;

/// Turns of a wait before it looks whether it still makes sense, and gives the core away once: with
/// a single core the other side could not run else.
const SPINS: u32 = 20_000;

/// Both lines of one side.
struct Lines {
    output: Shared<[AtomicU64]>,
    input: Shared<[AtomicU64]>,
    sequence: u64,
}

impl Lines {
    fn new(region: &Region, output: usize, input: usize) -> Result<Self> {
        Ok(Self {
            output: region.words(output, LINE_WORDS)?,
            input: region.words(input, LINE_WORDS)?,
            sequence: 0,
        })
    }

    fn send(&self, payload: &[u64; SEQUENCE]) {
        for (word, value) in self.output.iter().zip(payload) {
            // SYNC: ordered by the release store of the sequence.
            word.store(*value, Ordering::Relaxed);
        }
        // SYNC: pairs with the acquire load in `receive` on the other side.
        self.output[SEQUENCE].store(self.sequence, Ordering::Release);
    }

    fn receive(&self, payload: &mut [u64; SEQUENCE]) -> Result<()> {
        let patience = Patience::new();
        let mut spins = 0;
        // SYNC: pairs with the release store in `send` on the other side.
        while self.input[SEQUENCE].load(Ordering::Acquire) != self.sequence {
            spin_loop();
            spins += 1;
            if spins % SPINS == 0 {
                patience.check()?;
                yield_now();
            }
        }
        for (value, word) in payload.iter_mut().zip(self.input.iter()) {
            // SYNC: ordered by the acquire load of the sequence.
            *value = word.load(Ordering::Relaxed);
        }
        Ok(())
    }
}

/// The measuring side.
pub(super) struct PingPong {
    peer: Peer,
    lines: Lines,
}

impl PingPong {
    pub(super) fn start() -> Result<Self> {
        let (region, descriptor) =
            Region::create("touchline-bench ping-pong", BYTES, PeerAccess::ReadWrite)?;
        let peer = Peer::start(PeerKind::PingPong, &[descriptor.as_fd()])?;
        Ok(Self { peer, lines: Lines::new(&region, 0, LINE_BYTES)? })
    }

    pub(super) fn block(
        &mut self,
        warm_up: u32,
        trips: u32,
        into: &mut Distribution,
    ) -> Result<()> {
        self.peer.announce(warm_up + trips)?;
        let mut payload = [0; SEQUENCE];
        for trip in 0..warm_up + trips {
            interrupt::check()?;
            let begin = Instant::now();
            self.lines.sequence += 1;
            self.lines.send(&payload);
            self.lines.receive(&mut payload)?;
            let took = begin.elapsed();
            if trip >= warm_up {
                into.record(nanoseconds(took));
            }
        }
        Ok(())
    }
}

/// The answering side.
pub(super) fn serve(
    descriptors: Vec<OwnedFd>,
    blocks: impl Iterator<Item = io::Result<u32>>,
) -> Result<()> {
    let [descriptor] =
        <[OwnedFd; 1]>::try_from(descriptors).ok().context("one descriptor was agreed")?;
    let region = Region::from_descriptor(descriptor.as_fd(), BYTES)?;
    let mut lines = Lines::new(&region, LINE_BYTES, 0)?;
    let mut payload = [0; SEQUENCE];
    for trips in blocks {
        for _ in 0..trips? {
            lines.sequence += 1;
            lines.receive(&mut payload)?;
            lines.send(&payload);
        }
    }
    Ok(())
}
