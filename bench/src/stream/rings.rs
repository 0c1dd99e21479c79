//! Messages of one cache line from one thread to another: through our ring, and through a bare one that
//! checks nothing. Both lie in shared memory, are published and given back in batches, and have their receivers ask
//! for the same slots ahead. Called by [`super`].

use std::hint::black_box;
use std::thread;
use std::time::Instant;

use anyhow::{Result, anyhow, ensure};
use touchline_protocol::ring::layout::{
    HEAD_OFFSET, SLOT_BYTES, SLOT_WORDS, SLOTS_OFFSET, TAIL_OFFSET, pages_bytes,
};
use touchline_protocol::ring::{
    MESSAGE_HEADER_BYTES, MessageBuffer, PushError, RELEASE_EVERY, RingCapacities, SessionEnd,
};
use touchline_protocol::shm::{PeerAccess, Region, Shared};
use touchline_protocol::sync::{AtomicU64, Ordering, ReadOnlyWords, spin_loop, yield_now};

use crate::machine::nanoseconds;
use crate::{cores, interrupt};

/// Slots of both rings.
const SLOTS: usize = 4096;

/// Messages that are published at once.
const BATCH: u64 = 32;

/// Slots that the bare receiver asks for ahead of the one that it reads, half of them at a time, as ours does: a
/// yardstick that waits for every line is slower than a bare ring need be.
const LOOK_AHEAD: u64 = 16;

/// Unrecorded messages at the begin: a new thread may begin on the core of the one that made it.
const WARM_UP: u64 = 300_000;

/// Looks without success before the core is given away: on a single one the other side could not run else.
const LOOKS: u32 = 20_000;

/// Waits for the other side.
#[derive(Default)]
struct Pause(u32);

impl Pause {
    fn pause(&mut self) -> Result<()> {
        spin_loop();
        self.0 += 1;
        if self.0.is_multiple_of(LOOKS) {
            interrupt::check()?;
            yield_now();
        }
        Ok(())
    }
}

fn message(number: u64) -> [u64; SLOT_WORDS] {
    [
        (SLOT_BYTES - MESSAGE_HEADER_BYTES) as u64,
        number,
        number,
        number,
        number,
        number,
        number,
        number,
    ]
}

/// Runs both sides to their ends, on a core each where there are two; gives how long the receiving one took
/// from the end of its warm-up on, ns.
fn race(
    send: impl FnOnce() -> Result<()> + Send,
    receive: impl FnOnce() -> Result<Instant> + Send,
) -> Result<u64> {
    thread::scope(|scope| {
        let sender = scope.spawn(move || {
            cores::stay_on(1);
            send()
        });
        let receiver = scope.spawn(move || {
            cores::stay_on(0);
            receive().map(|begin| nanoseconds(begin.elapsed()))
        });
        let took = receiver.join().map_err(|_| anyhow!("the receiving side panicked"))?;
        sender.join().map_err(|_| anyhow!("the sending side panicked"))??;
        took
    })
}

/// One side's view of a bare ring.
struct Bare {
    tail: Shared<AtomicU64>,
    head: Shared<AtomicU64>,
    slots: Shared<[AtomicU64]>,
}

impl Bare {
    fn new(region: &Region) -> Result<Self> {
        Ok(Self {
            tail: region.u64_at(TAIL_OFFSET)?,
            head: region.u64_at(HEAD_OFFSET)?,
            slots: region.words(SLOTS_OFFSET, SLOTS * SLOT_WORDS)?,
        })
    }

    fn slot(&self, index: u64) -> &[AtomicU64] {
        let first = Self::first_word(index);
        &self.slots[first..first + SLOT_WORDS]
    }

    const fn first_word(index: u64) -> usize {
        (index as usize & (SLOTS - 1)) * SLOT_WORDS
    }

    fn send(&self, messages: u64) -> Result<()> {
        let (mut head, mut pause) = (0, Pause::default());
        for number in 0..messages {
            while number - head >= SLOTS as u64 {
                // SYNC: pairs with the release store of the head in `receive`.
                head = self.head.load(Ordering::Acquire);
                if number - head >= SLOTS as u64 {
                    pause.pause()?;
                }
            }
            for (word, value) in self.slot(number).iter().zip(message(number)) {
                // SYNC: ordered by the release store of the tail.
                word.store(value, Ordering::Relaxed);
            }
            if (number + 1).is_multiple_of(BATCH) || number + 1 == messages {
                // SYNC: pairs with the acquire load in `receive`.
                self.tail.store(number + 1, Ordering::Release);
            }
        }
        Ok(())
    }

    fn receive(&self, messages: u64) -> Result<Instant> {
        let (mut tail, mut pause, mut begin) = (0, Pause::default(), Instant::now());
        let (slots, mut near) = (ReadOnlyWords::new(&self.slots), 0);
        for number in 0..messages {
            if number == WARM_UP {
                begin = Instant::now();
            }
            while tail == number {
                // SYNC: pairs with the release store of the tail in `send`.
                tail = self.tail.load(Ordering::Acquire);
                if tail == number {
                    pause.pause()?;
                }
            }
            if near - number <= LOOK_AHEAD / 2 {
                let end = tail.min(number + LOOK_AHEAD);
                (near..end).for_each(|ahead| slots.touch(Self::first_word(ahead)));
                near = end;
            }
            let mut copy = [0; SLOT_WORDS];
            for (value, word) in copy.iter_mut().zip(self.slot(number)) {
                // SYNC: ordered by the acquire load of the tail.
                *value = word.load(Ordering::Relaxed);
            }
            ensure!(black_box(&copy)[1] == number, "message {number} was lost");
            if (number + 1).is_multiple_of(RELEASE_EVERY) {
                // SYNC: pairs with the acquire load of the head in `send`.
                self.head.store(number + 1, Ordering::Release);
            }
        }
        Ok(begin)
    }
}

/// `messages` messages through a bare ring, ns.
pub(super) fn bare(messages: u64) -> Result<u64> {
    let (region, _) =
        Region::create("touchline-bench stream", pages_bytes(SLOTS), PeerAccess::ReadWrite)?;
    let (near, far) = (Bare::new(&region)?, Bare::new(&region)?);
    race(move || near.send(WARM_UP + messages), || far.receive(WARM_UP + messages))
}

/// `messages` messages through our ring, ns.
pub(super) fn ours(messages: u64) -> Result<u64> {
    let capacities = RingCapacities::new(SLOTS, SLOTS)?;
    let (near, descriptors) = SessionEnd::create(capacities)?;
    let far = SessionEnd::attach(&descriptors, capacities)?;
    race(move || send(near, WARM_UP + messages), move || receive(far, WARM_UP + messages))
}

fn send(mut end: SessionEnd, messages: u64) -> Result<()> {
    let mut pause = Pause::default();
    for number in 0..messages {
        let words = message(number);
        loop {
            match end.output.stage(bytemuck::bytes_of(&words)) {
                Ok(()) => break,
                Err(PushError::Full { .. }) => {
                    end.output.publish();
                    pause.pause()?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        if (number + 1).is_multiple_of(BATCH) || number + 1 == messages {
            end.output.publish();
        }
    }
    Ok(())
}

fn receive(mut end: SessionEnd, messages: u64) -> Result<Instant> {
    let mut buffer = Box::<MessageBuffer>::default();
    let (mut pause, mut begin) = (Pause::default(), Instant::now());
    for number in 0..messages {
        if number == WARM_UP {
            begin = Instant::now();
        }
        let length = loop {
            match end.input.poll(&mut buffer)? {
                Some(length) => break length,
                None => pause.pause()?,
            }
        };
        let words: &[u64] = bytemuck::cast_slice(buffer.bytes(length));
        ensure!(black_box(words)[1] == number, "message {number} was lost");
    }
    Ok(begin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_rings_bring_everything() {
        // No whole number of batches.
        assert!(bare(7).is_ok() && ours(7).is_ok());
    }
}
