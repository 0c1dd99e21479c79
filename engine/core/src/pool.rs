//! Slots of one kind, allocated once and handed out as `u32` handles. Used by the book (orders, price levels, ladder
//! nodes), by order lists, records, chains and fees.
//!
//! Freed slots are linked through themselves, last in first out: the slot that is handed out next is
//! the one most likely still in the cache. Which slot an item gets is no part of the venue's state:
//! capacity is decided by the logical limits before a slot is asked for.

use alloc::collections::TryReserveError;
use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

/// The handle that names no slot.
pub(crate) const NONE: u32 = u32::MAX;

/// The handle as an option.
pub(crate) fn named(handle: u32) -> Option<u32> {
    (handle != NONE).then_some(handle)
}

/// An item that can hold the handle of the next free slot while it is free itself.
pub(crate) trait Linked: Copy + Default {
    /// The next free slot.
    fn next_free(&self) -> u32;
    /// Remembers the next free slot.
    fn set_next_free(&mut self, handle: u32);
}

/// A pool of `T`.
#[derive(Debug)]
pub(crate) struct Pool<T> {
    slots: Vec<T>,
    /// Head of the list of freed slots.
    free: u32,
    /// Slots from here on were never handed out.
    fresh: u32,
    live: u32,
    /// Slots that were looked at.
    #[cfg(test)]
    pub(crate) looks: core::cell::Cell<u64>,
}

impl<T: Linked> Pool<T> {
    /// A pool without any slot.
    pub(crate) const fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: NONE,
            fresh: 0,
            live: 0,
            #[cfg(test)]
            looks: core::cell::Cell::new(0),
        }
    }

    /// Makes room for `capacity` items in all and touches every page of it. Never shrinks.
    ///
    /// # Errors
    /// When there is no memory; the pool is as it was.
    pub(crate) fn try_grow(&mut self, capacity: u32) -> Result<(), TryReserveError> {
        let capacity = capacity as usize;
        if capacity > self.slots.len() {
            self.slots.try_reserve_exact(capacity - self.slots.len())?;
            self.slots.resize(capacity, T::default());
        }
        Ok(())
    }

    /// Takes a slot, reset to its default; `None` when all are taken.
    pub(crate) fn take(&mut self) -> Option<u32> {
        self.put(T::default())
    }

    /// Takes a slot with what its last user left in it; `None` when all are taken.
    #[inline(always)]
    pub(crate) fn take_as_left(&mut self) -> Option<u32> {
        let handle = if self.free != NONE {
            let handle = self.free;
            self.free = self.slots[handle as usize].next_free();
            handle
        } else if (self.fresh as usize) < self.slots.len() {
            self.fresh += 1;
            self.fresh - 1
        } else {
            return None;
        };
        self.live += 1;
        Some(handle)
    }

    /// Takes a slot for `item`; `None` when all are taken.
    #[inline(always)]
    pub(crate) fn put(&mut self, item: T) -> Option<u32> {
        let handle = self.take_as_left()?;
        self.slots[handle as usize] = item;
        Some(handle)
    }

    /// Gives a slot back.
    #[inline(always)]
    pub(crate) fn release(&mut self, handle: u32) {
        self.slots[handle as usize].set_next_free(self.free);
        self.free = handle;
        self.live -= 1;
    }

    /// The slot of any handle, live or not.
    #[inline]
    pub(crate) fn get(&self, handle: u32) -> Option<&T> {
        self.slots.get(handle as usize)
    }

    /// Looks slots up without deciding anything: a handle that names none gives the last slot. For
    /// loading what may be needed soon; `None` when there are no slots.
    pub(crate) fn any<'slots>(&'slots self) -> Option<impl Fn(u32) -> &'slots T> {
        let slots = &self.slots[..];
        let last = slots.len().checked_sub(1)?;
        Some(move |handle: u32| &slots[(handle as usize).min(last)])
    }

    /// Handles of all slots that were ever handed out, live or free.
    pub(crate) const fn handed_out(&self) -> core::ops::Range<u32> {
        0..self.fresh
    }

    /// Bytes of memory that it has taken.
    #[cfg(test)]
    pub(crate) const fn memory(&self) -> usize {
        self.slots.capacity() * size_of::<T>()
    }

    /// Slots that are handed out.
    pub(crate) const fn live(&self) -> u32 {
        self.live
    }

    /// True when every slot that was ever handed out is either live or in the free list, once.
    pub(crate) fn is_consistent(&self) -> bool {
        let mut freed = 0;
        let mut at = self.free;
        while at != NONE && freed <= self.fresh {
            freed += 1;
            at = self.slots[at as usize].next_free();
        }
        self.live.checked_add(freed) == Some(self.fresh)
    }
}

impl<T> Index<u32> for Pool<T> {
    type Output = T;

    #[inline]
    fn index(&self, handle: u32) -> &T {
        #[cfg(test)]
        self.looks.set(self.looks.get() + 1);
        &self.slots[handle as usize]
    }
}

impl<T> IndexMut<u32> for Pool<T> {
    #[inline]
    fn index_mut(&mut self, handle: u32) -> &mut T {
        #[cfg(test)]
        self.looks.set(self.looks.get() + 1);
        &mut self.slots[handle as usize]
    }
}
