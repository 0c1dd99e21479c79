//! The second baseline: one slot through our ring to another process and back, waiting as the engine
//! and its clients do. Called by [`super::Baselines`].

use std::io;
use std::iter;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use touchline_protocol::ring::layout::{MIN_SESSION_SLOTS, SLOT_BYTES};
use touchline_protocol::ring::{
    MESSAGE_HEADER_BYTES, MessageBuffer, RingCapacities, SessionDescriptors, SessionEnd,
};
use touchline_protocol::wait::{WaitStrategy, Waiter};

use super::peer::{Patience, Peer, PeerKind};
use crate::interrupt;
use crate::latency::Distribution;
use crate::machine::nanoseconds;

/// Longest sleep before a waiting side looks whether it still makes sense.
const SLICE: Duration = Duration::from_millis(100);

/// One end of a pair of rings, waiting as the engine and its clients do. [`super::hop`] has such ends too.
pub(super) struct End {
    session: SessionEnd,
    waiter: Waiter,
    pub(super) buffer: Box<MessageBuffer>,
}

impl End {
    pub(super) fn new(session: SessionEnd, wait: WaitStrategy) -> Self {
        Self { session, waiter: Waiter::new(wait), buffer: Box::default() }
    }

    pub(super) fn send(&mut self, message: &[u8]) -> Result<()> {
        self.session.output.try_push(message)?;
        self.session.signals.wake_peer();
        Ok(())
    }

    /// The length of the next message, which is in the buffer then.
    pub(super) fn receive(&mut self) -> Result<usize> {
        let mut patience = None;
        loop {
            if let Some(length) = self.session.input.poll(&mut self.buffer)? {
                return Ok(length);
            }
            let (signals, input) = (&self.session.signals, &self.session.input);
            let line = iter::once(signals.line());
            if !self.waiter.wait_until(line, SLICE, || input.has_messages()) {
                patience.get_or_insert_with(Patience::new).check()?;
            }
        }
    }
}

pub(super) fn capacities() -> Result<RingCapacities> {
    Ok(RingCapacities::new(MIN_SESSION_SLOTS, MIN_SESSION_SLOTS)?)
}

/// The measuring side.
pub(super) struct Echo {
    peer: Peer,
    end: End,
}

impl Echo {
    pub(super) fn start(wait: WaitStrategy) -> Result<Self> {
        let (session, descriptors) = SessionEnd::create(capacities()?)?;
        let kind = match wait {
            WaitStrategy::Adaptive => PeerKind::EchoAdaptive,
            WaitStrategy::Spin => PeerKind::EchoSpin,
        };
        let both = [descriptors.client_pages.as_fd(), descriptors.engine_pages.as_fd()];
        Ok(Self { peer: Peer::start(kind, &both)?, end: End::new(session, wait) })
    }

    pub(super) fn block(
        &mut self,
        warm_up: u32,
        trips: u32,
        into: &mut Distribution,
    ) -> Result<()> {
        self.peer.announce(warm_up + trips)?;
        let mut message = [0; SLOT_BYTES];
        let block_length = (SLOT_BYTES - MESSAGE_HEADER_BYTES) as u16;
        message[..2].copy_from_slice(&block_length.to_le_bytes());
        for trip in 0..warm_up + trips {
            interrupt::check()?;
            message[8..12].copy_from_slice(&trip.to_le_bytes());
            let begin = Instant::now();
            self.end.send(&message)?;
            let length = self.end.receive()?;
            let took = begin.elapsed();
            anyhow::ensure!(
                self.end.buffer.bytes(length) == message,
                "the ring gave back another message"
            );
            if trip >= warm_up {
                into.record(nanoseconds(took));
            }
        }
        Ok(())
    }
}

/// The answering side.
pub(super) fn serve(
    kind: PeerKind,
    descriptors: Vec<OwnedFd>,
    blocks: impl Iterator<Item = io::Result<u32>>,
) -> Result<()> {
    let [client_pages, engine_pages] =
        <[OwnedFd; 2]>::try_from(descriptors).ok().context("two descriptors were agreed")?;
    let descriptors = SessionDescriptors { client_pages, engine_pages };
    let session = SessionEnd::attach(&descriptors, capacities()?)?;
    let wait = match kind {
        PeerKind::EchoSpin => WaitStrategy::Spin,
        PeerKind::EchoAdaptive | PeerKind::PingPong => WaitStrategy::Adaptive,
    };
    let mut end = End::new(session, wait);
    for trips in blocks {
        for _ in 0..trips? {
            let length = end.receive()?;
            let End { session, buffer, .. } = &mut end;
            session.output.try_push(buffer.bytes(length))?;
            session.signals.wake_peer();
        }
    }
    Ok(())
}
