//! Buffers that the kernel would not take back, for want of memory most often. Kept by [`super::Uring`], which offers
//! them again.

use std::time::{Duration, Instant};

/// So long the others wait when one was refused or some were offered again: what keeps the kernel from taking them
/// takes time to pass, and asking costs most while it lasts.
const PAUSE: Duration = Duration::from_millis(10);

/// So many are offered again at once.
const OFFERED_MAX: usize = 16;

/// The buffers, each of which is ours.
#[derive(Debug, Default)]
pub(super) struct Refused {
    buffers: Vec<u16>,
    /// When the first of them are to be offered again, if there are any.
    again: Option<Instant>,
}

impl Refused {
    /// One more, at the time `now`.
    pub(super) fn add(&mut self, buffer: u16, now: Instant) {
        self.buffers.push(buffer);
        self.again.get_or_insert(now + PAUSE);
    }

    /// True when all that was refused has been offered again.
    pub(super) const fn is_empty(&self) -> bool {
        self.buffers.is_empty()
    }

    /// How long it is to the next offer; none if there is nothing to offer.
    pub(super) fn pause(&self) -> Option<Duration> {
        // The clock is read only while there is something.
        self.again.map(|again| again.saturating_duration_since(Instant::now()))
    }

    /// Those that are to be offered again at the time `now`, oldest first.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<u16> {
        if self.again.is_none_or(|again| again > now) {
            return Vec::new();
        }
        let due = self.buffers.drain(..self.buffers.len().min(OFFERED_MAX)).collect();
        self.again = (!self.buffers.is_empty()).then_some(now + PAUSE);
        due
    }

    /// Has the next offer made at this time.
    #[cfg(test)]
    pub(super) fn offer_at(&mut self, again: Instant) {
        self.again = Some(again);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_offered_again_some_at_a_time_and_after_a_pause() {
        let mut refused = Refused::default();
        let begin = Instant::now();
        assert!(refused.is_empty() && refused.pause().is_none());
        assert!(refused.take_due(begin).is_empty());
        refused.add(0, begin);
        // Those that come later do not put the first ones off.
        (1..20).for_each(|buffer| refused.add(buffer, begin + PAUSE / 2));
        assert!(refused.pause().is_some_and(|pause| pause <= PAUSE));
        assert!(refused.take_due(begin + PAUSE / 2).is_empty());
        assert_eq!(refused.take_due(begin + PAUSE), (0..16).collect::<Vec<_>>());
        assert!(refused.take_due(begin + PAUSE).is_empty(), "no more of them at once");
        // One of those that were offered is refused again.
        refused.add(3, begin + PAUSE);
        assert!(refused.take_due(begin + PAUSE * 3 / 2).is_empty());
        assert_eq!(refused.take_due(begin + 2 * PAUSE), [16, 17, 18, 19, 3]);
        assert!(refused.is_empty() && refused.pause().is_none());
    }
}
