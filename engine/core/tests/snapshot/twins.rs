//! Venues that were read from snapshots of another one and go on beside it: they take and refuse what it does, say
//! the same byte for byte, and are in the same state behind it.

use crate::parts::again;
use crate::venue::{Entry, Owned, Refused, Venue, outbox_memory};
use touchline_core::{Applied, Context, Core, Outbox, Reject};
use touchline_protocol::message::Message;
use touchline_protocol::message::command::RunPending;
use touchline_protocol::message::decode;

/// One of them.
struct Twin {
    core: Core,
    /// How much it has been given of what was accepted and of what was not.
    accepted: usize,
    refused: usize,
    /// How often it is still to be looked at.
    left: usize,
}

pub(crate) struct Twins {
    alive: Vec<Twin>,
    memory: Vec<u64>,
    /// Commands that were decided twice.
    pub(crate) compared: u64,
}

impl Twins {
    pub(crate) fn new() -> Self {
        Self { alive: Vec::new(), memory: outbox_memory(), compared: 0 }
    }

    /// Gives them all that the venue has decided since it was looked at last.
    pub(crate) fn follow(&mut self, venue: &Venue) {
        let state_hash = venue.core.state_hash();
        for twin in &mut self.alive {
            self.compared += twin.catch_up(venue, &mut self.memory);
            assert_eq!(twin.core.state_hash(), state_hash, "state of a venue that was read");
            twin.core.validate().expect("a venue that was read stays sound");
            twin.left -= 1;
        }
        self.alive.retain(|twin| twin.left > 0);
    }

    /// Adds one, which is looked at so many times.
    pub(crate) fn add(&mut self, venue: &Venue, left: usize) {
        let core = again(&venue.core, self.compared);
        let (accepted, refused) = (venue.journal.len(), venue.refused.len());
        self.alive.push(Twin { core, accepted, refused, left });
    }
}

/// A venue that is written and read behind every command; all that was ever read goes on beside it.
pub(crate) struct Followed {
    pub(crate) venue: Venue,
    twins: Twins,
}

impl Followed {
    pub(crate) fn new(venue: Venue) -> Self {
        let mut twins = Twins::new();
        twins.add(&venue, usize::MAX);
        Self { venue, twins }
    }

    pub(crate) fn apply<M: Message>(&mut self, message: &M) -> Result<Vec<Owned>, Reject> {
        let outcome = self.venue.apply(message);
        self.twins.follow(&self.venue);
        self.twins.add(&self.venue, usize::MAX);
        outcome
    }

    pub(crate) fn must<M: Message>(&mut self, message: &M) -> Vec<Owned> {
        self.apply(message).unwrap_or_else(|reject| panic!("{} rejected: {reject:?}", M::NAME))
    }

    pub(crate) fn has_pending(&self) -> bool {
        self.venue.core.pending_head().is_some()
    }

    /// Runs all pending work, one transaction after the other.
    pub(crate) fn drain(&mut self) -> Vec<Owned> {
        let mut events = Vec::new();
        while self.has_pending() {
            events.extend(self.must(&RunPending::default()));
        }
        events
    }
}

impl Twin {
    /// Takes what the venue has taken; gives how much that was.
    fn catch_up(&mut self, venue: &Venue, memory: &mut [u64]) -> u64 {
        let mut commands = 0;
        loop {
            let refused = venue.refused.get(self.refused);
            if let Some(Refused { context, command, outcome, .. }) =
                refused.filter(|refused| refused.behind == self.accepted)
            {
                let (found, _) = apply(&mut self.core, context, command, memory);
                assert_eq!(found, *outcome, "by a venue that was read");
                self.refused += 1;
            } else if let Some(Entry { context, command, events }) =
                venue.journal.get(self.accepted)
            {
                let (found, told) = apply(&mut self.core, context, command, memory);
                assert_eq!(found, Ok(Applied::Committed), "by a venue that was read");
                assert!(told == events, "a venue that was read tells something else");
                self.accepted += 1;
            } else {
                return commands;
            }
            commands += 1;
        }
    }
}

fn apply<'memory>(
    core: &mut Core,
    context: &Context,
    words: &[u64],
    memory: &'memory mut [u64],
) -> (Result<Applied, Reject>, &'memory [u8]) {
    let command = decode::command(bytemuck::cast_slice(words)).expect("it was one");
    let mut outbox = Outbox::new(bytemuck::cast_slice_mut(memory));
    let outcome = core.apply(context, &command, &mut outbox);
    let length = outbox.len();
    (outcome, &bytemuck::cast_slice(memory)[..length])
}
