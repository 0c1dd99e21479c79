//! Whose commands have met a fate that nobody knows yet. What such a command did, if anything, stands in the log below
//! a position that is not durable at present: a reader of its owner is not to be told that nothing was done. Kept by
//! [`super::Views`] for the services. Each adapter knows the doubts about its own commands only; those of others are
//! everybody's while the engine is away ([`super::Views::awaited`]).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use touchline_protocol::units::{AccountId, Position};

use super::records::{RecordId, UniqueKey};

/// With so many in doubt, those that are settled are looked for.
const SWEEP: usize = 1024;

/// Whom a command was of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner {
    /// An account of the venue.
    Account(AccountId),
    /// A user of another service.
    User(RecordId),
    /// Who is to be a user of that service by a record with this key, and need not be one yet.
    Holder(UniqueKey),
}

/// What is not known of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsettled {
    /// All is known once the views hold everything before it.
    pub position: Position,
    /// Until when readers wait for that.
    pub until: Instant,
}

impl Unsettled {
    /// Both: all of it is known where the later position is.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let (position, until) = (self.position.max(other.position), self.until.max(other.until));
        Self { position, until }
    }

    /// Until when a request waits that may take until `deadline`; `None`: no more.
    #[must_use]
    pub fn wait_until(&self, deadline: Instant) -> Option<Instant> {
        Some(self.until.min(deadline)).filter(|until| *until > Instant::now())
    }
}

#[derive(Debug, Default)]
pub(super) struct Doubts {
    by_owner: Mutex<HashMap<Owner, Unsettled>>,
    /// No doubt is of anything behind this position: spares the lock where the views are there.
    highest: AtomicU64,
}

impl Doubts {
    pub(super) fn add(&self, owner: Owner, unsettled: Unsettled, reached: Position) {
        if unsettled.position <= reached {
            return;
        }
        let mut by_owner = self.lock();
        if by_owner.len() >= SWEEP {
            by_owner.retain(|_, one| one.position > reached);
        }
        let kept = by_owner.entry(owner).or_insert(unsettled);
        *kept = kept.and(unsettled);
        self.highest.fetch_max(unsettled.position.0, Ordering::Release);
    }

    pub(super) fn of(&self, owner: Owner, reached: Position) -> Option<Unsettled> {
        let mut by_owner = self.lock();
        let found = by_owner.get(&owner).copied()?;
        if found.position > reached {
            return Some(found);
        }
        by_owner.remove(&owner);
        None
    }

    /// False when the views hold everything that is in doubt of anybody.
    pub(super) fn any(&self, reached: Position) -> bool {
        self.highest.load(Ordering::Acquire) > reached.0
    }

    /// The log of the engine that runs now went up to `end` when it began: what is not below that was not done.
    pub(super) fn end_at(&self, end: Position) {
        let mut by_owner = self.lock();
        for one in by_owner.values_mut() {
            one.position = one.position.min(end);
        }
        self.highest.fetch_min(end.0, Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Owner, Unsettled>> {
        self.by_owner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Owner = Owner::Account(AccountId(1));

    fn unsettled(position: u64) -> Unsettled {
        Unsettled { position: Position(position), until: Instant::now() }
    }

    fn position(doubts: &Doubts, owner: Owner, reached: u64) -> Option<u64> {
        doubts.of(owner, Position(reached)).map(|one| one.position.0)
    }

    #[test]
    fn a_doubt_ends_where_all_is_known_and_is_its_owners_alone() {
        let doubts = Doubts::default();
        doubts.add(ONE, unsettled(50), Position(50));
        assert!(!doubts.any(Position(50)), "it is known already");
        doubts.add(ONE, unsettled(70), Position(50));
        doubts.add(ONE, unsettled(60), Position(50));
        let other = Owner::User([7; 12]);
        doubts.add(other, unsettled(80), Position(50));
        assert_eq!(position(&doubts, ONE, 69), Some(70));
        assert_eq!(position(&doubts, Owner::Account(AccountId(2)), 0), None);
        assert_eq!(position(&doubts, ONE, 70), None);
        assert_eq!(position(&doubts, ONE, 0), None, "for good");
        // Also if he never asks.
        assert!(doubts.any(Position(79)) && !doubts.any(Position(80)));
        assert_eq!(position(&doubts, other, 80), None);
    }

    #[test]
    fn what_another_engine_did_not_find_was_not_done() {
        let doubts = Doubts::default();
        doubts.add(ONE, unsettled(70), Position(50));
        doubts.end_at(Position(64));
        assert_eq!(position(&doubts, ONE, 63), Some(64));
        assert!(doubts.any(Position(63)) && !doubts.any(Position(64)));
        doubts.end_at(Position(90));
        assert_eq!(position(&doubts, ONE, 64), None);
    }

    #[test]
    fn settled_ones_do_not_pile_up() {
        let doubts = Doubts::default();
        for account in 0..10 * SWEEP as u32 {
            let at = u64::from(account);
            doubts.add(Owner::Account(AccountId(account)), unsettled(at + 1), Position(at));
        }
        assert!(doubts.lock().len() <= SWEEP);
    }
}
