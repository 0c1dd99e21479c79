//! Things that are bounded in number, in all and for each owner, and given back by being dropped. Called by
//! the front for connections and by the jobs service for long lists.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many there may be, and who has how many.
#[derive(Debug)]
pub(crate) struct Shares<K> {
    limit: usize,
    limit_each: usize,
    taken: Mutex<Taken<K>>,
}

#[derive(Debug)]
struct Taken<K> {
    total: usize,
    /// Owners of at least one.
    by_owner: HashMap<K, usize>,
}

impl<K: Copy + Eq + Hash> Shares<K> {
    /// At most `limit` in all and `limit_each` for one owner.
    pub(crate) fn new(limit: usize, limit_each: usize) -> Arc<Self> {
        let taken = Mutex::new(Taken { total: 0, by_owner: HashMap::new() });
        Arc::new(Self { limit, limit_each, taken })
    }

    /// One more for `owner`; `None` if all are taken or the owner has its share.
    pub(crate) fn take(self: &Arc<Self>, owner: K) -> Option<Share<K>> {
        self.take_up_to(self.limit_each, owner)
    }

    /// As [`take`](Self::take), for an owner that may have all.
    pub(crate) fn take_any(self: &Arc<Self>, owner: K) -> Option<Share<K>> {
        self.take_up_to(self.limit, owner)
    }

    fn take_up_to(self: &Arc<Self>, most: usize, owner: K) -> Option<Share<K>> {
        let mut taken = self.lock();
        let own = taken.by_owner.get(&owner).copied().unwrap_or(0);
        if taken.total >= self.limit || own >= most {
            return None;
        }
        taken.total += 1;
        taken.by_owner.insert(owner, own + 1);
        Some(Share { shares: Arc::clone(self), owner })
    }

    /// How many are taken.
    pub(crate) fn taken(&self) -> usize {
        self.lock().total
    }

    fn lock(&self) -> MutexGuard<'_, Taken<K>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of them, given back when dropped.
#[derive(Debug)]
pub(crate) struct Share<K: Copy + Eq + Hash> {
    shares: Arc<Shares<K>>,
    owner: K,
}

impl<K: Copy + Eq + Hash> Drop for Share<K> {
    fn drop(&mut self) {
        let mut taken = self.shares.lock();
        taken.total -= 1;
        let own = taken.by_owner.remove(&self.owner).unwrap_or(1) - 1;
        if own > 0 {
            taken.by_owner.insert(self.owner, own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_owner_does_not_get_all_and_what_is_dropped_is_free_again() {
        let shares = Shares::new(3, 2);
        let first = shares.take("a").unwrap();
        let second = shares.take("a").unwrap();
        assert!(shares.take("a").is_none());
        let other = shares.take("b").unwrap();
        assert!(shares.take("c").is_none(), "all are taken");
        drop(first);
        assert_eq!(shares.taken(), 2);
        let again = shares.take("a").unwrap();
        drop((second, other, again));
        assert_eq!(shares.taken(), 0);
        assert!(shares.lock().by_owner.is_empty(), "who has none is forgotten");
    }
}
