//! The orders that rest, to choose from: any of them, or a young one. Called by the generators of
//! flows.

use std::collections::HashMap;

use crate::random::Random;

/// Young orders that are remembered.
const YOUNG: usize = 64;

/// Ids of the orders that rest.
#[derive(Default, Debug)]
pub(super) struct Living {
    ids: Vec<u32>,
    index: HashMap<u32, usize>,
    young: Vec<u32>,
    next_young: usize,
}

impl Living {
    /// Adds an order, the youngest now.
    pub(super) fn add(&mut self, id: u32) {
        self.index.insert(id, self.ids.len());
        self.ids.push(id);
        if self.young.len() < YOUNG {
            self.young.push(id);
        } else {
            self.young[self.next_young] = id;
            self.next_young = (self.next_young + 1) % YOUNG;
        }
    }

    /// Forgets an order, if it is known.
    pub(super) fn remove(&mut self, id: u32) {
        let Some(at) = self.index.remove(&id) else { return };
        self.ids.swap_remove(at);
        if let Some(&moved) = self.ids.get(at) {
            self.index.insert(moved, at);
        }
    }

    /// Any order.
    pub(super) fn any(&self, random: &mut Random) -> Option<u32> {
        (!self.ids.is_empty()).then(|| self.ids[random.index(self.ids.len())])
    }

    /// One of the last orders that were added, or any if the chosen one is gone.
    pub(super) fn young(&self, random: &mut Random) -> Option<u32> {
        let young = (!self.young.is_empty()).then(|| self.young[random.index(self.young.len())]);
        young.filter(|id| self.index.contains_key(id)).or_else(|| self.any(random))
    }

    /// Orders that rest.
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }
}
