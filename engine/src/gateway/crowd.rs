//! Who is closed where too many have come: peers counted by where they come from, or by their key. Called by
//! the door and by the gateway, each for the peers that it has.

use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::hash::Hash;

/// Peers by group: how many there are of each, and its oldest one's ticket.
pub(super) struct Crowd<G>(FxHashMap<G, (usize, usize)>);

impl<G: Eq + Hash> Crowd<G> {
    /// Of these peers, by their tickets, of which the lowest is the oldest.
    pub(super) fn of(peers: impl Iterator<Item = (usize, G)>) -> Self {
        let mut groups = FxHashMap::default();
        for (ticket, group) in peers {
            let (count, oldest) = groups.entry(group).or_insert((0, ticket));
            (*count, *oldest) = (*count + 1, ticket.min(*oldest));
        }
        Self(groups)
    }

    /// The oldest peer of a group, if the group has as many as it may.
    pub(super) fn full(&self, group: &G, most: usize) -> Option<usize> {
        let found = self.0.get(group);
        found.filter(|(count, _)| *count >= most).map(|(_, oldest)| *oldest)
    }

    /// The oldest peer of the group that has most, if there are as many in all as may be. Among groups of the
    /// same number it is the oldest of all: the newest would be closed before it has said anything.
    pub(super) fn too_many(&self, most: usize) -> Option<usize> {
        let total: usize = self.0.values().map(|(count, _)| count).sum();
        let largest = self.0.values().max_by_key(|&&(count, oldest)| (count, Reverse(oldest)));
        largest.filter(|_| total >= most).map(|(_, oldest)| *oldest)
    }
}
