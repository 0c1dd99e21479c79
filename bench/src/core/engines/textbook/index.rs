//! From an order's id to its slot. Called by [`Textbook`](super::Textbook).

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use super::super::super::flows::Capacity;
use super::NONE;

/// An index.
pub trait Index {
    /// With room for what comes.
    fn new(capacity: &Capacity) -> Self;
    /// The slot of an id, or [`NONE`].
    fn get(&self, id: u32) -> u32;
    /// Notes a slot.
    fn set(&mut self, id: u32, slot: u32);
    /// Forgets an id.
    fn forget(&mut self, id: u32);
}

/// One entry for each id that ever was.
#[derive(Debug)]
pub struct Array(Vec<u32>);

impl Index for Array {
    fn new(capacity: &Capacity) -> Self {
        Self(vec![NONE; capacity.ids as usize])
    }

    #[inline]
    fn get(&self, id: u32) -> u32 {
        self.0[id as usize]
    }

    #[inline]
    fn set(&mut self, id: u32, slot: u32) {
        self.0[id as usize] = slot;
    }

    #[inline]
    fn forget(&mut self, id: u32) {
        self.0[id as usize] = NONE;
    }
}

/// The standard library's hash map with the fastest hash in wide use.
#[derive(Debug)]
pub struct Map(HashMap<u32, u32, FxBuildHasher>);

impl Index for Map {
    fn new(capacity: &Capacity) -> Self {
        Self(HashMap::with_capacity_and_hasher(capacity.orders as usize + 1, FxBuildHasher))
    }

    #[inline]
    fn get(&self, id: u32) -> u32 {
        self.0.get(&id).copied().unwrap_or(NONE)
    }

    #[inline]
    fn set(&mut self, id: u32, slot: u32) {
        self.0.insert(id, slot);
    }

    #[inline]
    fn forget(&mut self, id: u32) {
        self.0.remove(&id);
    }
}
