//! From a price to its level: one ladder per side of a book. Called by [`side`](super::side) only.
//!
//! The structure is a radix tree over the 64 bits of a key, which is a price in the order of its side;
//! six bits per step, and every step on which all keys below agree is skipped. A table in front leads
//! straight to the lowest nodes.
//!
//! - *Pages.* The steps are aligned to the symbol's tick: a node just above the tick's highest bit
//!   tells 64 places apart that are at most a tick wide, so neighbouring ticks lie side by side in it.
//!   Such a node is called a page. Near the touch a level is found, made or removed within one page:
//!   its neighbour by price is a scan of 64 bits away.
//! - *The table* maps (ladder, page number) to the page, direct-mapped. What it does not know is found
//!   through the tree, so it may forget anything at any time.
//! - *Every price is right.* The tick only aligns: any `i64` is a valid price, prices off the tick get
//!   nodes below a page, and a tick of 0 or of another symbol costs time and nothing else. There is no
//!   window that a price can leave, hence nothing that has to be moved when it jumps.
//! - *Nothing is slow.* At most 12 steps lead to a level, an insertion or removal changes at most two
//!   nodes and a page; nothing is ever rebalanced, rebuilt or moved, and there is no recursion. n levels need
//!   at most n - 1 nodes.
//! - *Levels far from others* have a page of their own for as long as nodes can be spared ([`SPARE_MAX`]). At
//!   the thin end of a book, where levels come and go one by one, a page would else be made with each second
//!   one and unmade again, by way of the whole tree.
//!
//! Order among prices is asked for only when a level is inserted: the ladder then names a neighbour,
//! and levels are linked from best to worst from there on.

use super::level::Level;
use crate::pool::{Linked, NONE, Pool};
use alloc::collections::TryReserveError;
use alloc::vec::Vec;

/// Bits of a price that one step decides on.
const STEP_BITS: u32 = 6;
const CHILDREN: usize = 1 << STEP_BITS;

/// A reference to a node or a leaf (a level), in one `u32`.
///
/// 0: nothing. Bit 31 set: the leaf of the level in bits 0-30. Else a node: the lowest bit of the
/// price that it decides on in bits 25-30, its handle + 1 in bits 0-24.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Ref(u32);

const LEAF: u32 = 1 << 31;
const SHIFT_AT: u32 = 25;
const NODE_MASK: u32 = (1 << SHIFT_AT) - 1;

/// Most levels that pools can hold: each may need a node, and there are those to spare.
pub const LEVELS_MAX: u32 = NODE_MASK - 1 - SPARE_MAX;

impl Ref {
    const NOTHING: Self = Self(0);

    const fn leaf(level: u32) -> Self {
        Self(LEAF | level)
    }

    const fn node(node: u32, shift: u32) -> Self {
        Self(shift << SHIFT_AT | (node + 1))
    }

    const fn as_leaf(self) -> Option<u32> {
        if self.0 & LEAF != 0 { Some(self.0 & !LEAF) } else { None }
    }

    /// Handle and shift, of a reference that is a node.
    const fn as_node(self) -> (u32, u32) {
        ((self.0 & NODE_MASK) - 1, self.0 >> SHIFT_AT)
    }
}

/// The children of a node: four cache lines, of which one is looked at.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Children([Ref; CHILDREN]);

const _: () = assert!(size_of::<Children>() == 256);

impl Default for Children {
    fn default() -> Self {
        Self([Ref::NOTHING; CHILDREN])
    }
}

/// A free node has no children; its first place holds the link.
impl Linked for Children {
    fn next_free(&self) -> u32 {
        self.0[0].0
    }

    fn set_next_free(&mut self, handle: u32) {
        self.0[0] = Ref(handle);
    }
}

/// What a node knows besides its children.
#[derive(Clone, Copy, Default, Debug)]
struct Head {
    /// Any key below the node; all of them agree in the bits above its step.
    key: u64,
    /// Bit n is set when child n is there.
    occupied: u64,
}

/// A way to a page.
#[derive(Clone, Copy, Debug)]
struct Shortcut {
    /// The key without the bits that the page and what is below it decide on.
    page: u64,
    ladder: u32,
    node: u32,
}

/// No page has this number: pages leave at least six bits out.
const NO_SHORTCUT: Shortcut = Shortcut { page: u64::MAX, ladder: 0, node: NONE };

/// Most nodes that there are for pages with one child, 4.4 MiB of them.
const SPARE_MAX: u32 = 1 << 14;

/// Fewest and most shortcuts: 1 KiB to 1 MiB.
const SHORTCUTS: (usize, usize) = (1 << 6, 1 << 16);

/// The nodes of all ladders.
#[derive(Debug)]
pub(crate) struct Nodes {
    children: Pool<Children>,
    /// By node handle.
    heads: Vec<Head>,
    /// A power of two in number, or none.
    shortcuts: Vec<Shortcut>,
    /// Numbers given to ladders.
    ladders: u32,
    /// Pages with one child.
    lonely: u32,
    /// Most of them.
    spare: u32,
    #[cfg(test)]
    pub(crate) steps: core::cell::Cell<u64>,
}

impl Nodes {
    pub(crate) const fn new() -> Self {
        Self {
            children: Pool::new(),
            heads: Vec::new(),
            shortcuts: Vec::new(),
            ladders: 0,
            lonely: 0,
            spare: 0,
            #[cfg(test)]
            steps: core::cell::Cell::new(0),
        }
    }

    /// Makes room for the nodes that `levels` levels may need, and some to spare.
    pub(crate) fn try_grow(&mut self, levels: u32) -> Result<(), TryReserveError> {
        let spare = levels.min(SPARE_MAX);
        let wanted = (levels + spare) as usize;
        if wanted > self.heads.len() {
            let shortcuts = (levels as usize).next_power_of_two().clamp(SHORTCUTS.0, SHORTCUTS.1);
            self.heads.try_reserve_exact(wanted - self.heads.len())?;
            self.shortcuts.try_reserve_exact(shortcuts - self.shortcuts.len())?;
            self.children.try_grow(levels + spare)?;
            self.heads.resize(wanted, Head::default());
            self.shortcuts.clear();
            self.shortcuts.resize(shortcuts, NO_SHORTCUT);
            self.spare = spare;
        }
        Ok(())
    }

    /// Nodes in use.
    #[cfg(test)]
    pub(crate) const fn live(&self) -> u32 {
        self.children.live()
    }

    /// Nodes in use but pages with one child: fewer than there are levels.
    pub(crate) const fn shared(&self) -> u32 {
        self.children.live() - self.lonely
    }

    /// True when no node is lost.
    pub(crate) fn is_consistent(&self) -> bool {
        self.children.is_consistent()
    }

    #[inline]
    fn count_step(&self) {
        #[cfg(test)]
        self.steps.set(self.steps.get() + 1);
    }

    #[inline]
    fn child(&self, node: u32, place: usize) -> Ref {
        self.count_step();
        self.children[node].0[place]
    }

    fn take(&mut self, key: u64) -> u32 {
        let node = self.children.take_as_left().expect("a node for each level and those to spare");
        self.children[node].0[0] = Ref::NOTHING;
        self.heads[node as usize] = Head { key, occupied: 0 };
        node
    }

    #[inline]
    fn set(&mut self, node: u32, place: usize, child: Ref) {
        self.children[node].0[place] = child;
        self.heads[node as usize].occupied |= 1 << place;
    }

    /// Removes a child; gives the places that are left.
    #[inline]
    fn clear(&mut self, node: u32, place: usize) -> u64 {
        self.children[node].0[place] = Ref::NOTHING;
        let occupied = &mut self.heads[node as usize].occupied;
        *occupied &= !(1 << place);
        *occupied
    }

    /// The leaf with the lowest or highest price below `at`.
    fn extreme(&self, mut at: Ref, highest: bool) -> u32 {
        loop {
            if let Some(level) = at.as_leaf() {
                return level;
            }
            let (node, _) = at.as_node();
            let occupied = self.heads[node as usize].occupied;
            let place =
                if highest { 63 - occupied.leading_zeros() } else { occupied.trailing_zeros() };
            at = self.child(node, place as usize);
        }
    }

    /// Puts a level where a look-up has found room for it; gives a neighbour.
    #[inline]
    pub(crate) fn fill(&mut self, vacancy: Vacancy, level: u32) -> Neighbour {
        let Vacancy { page, place } = vacancy;
        let neighbour = self.beside(page, place);
        self.lonely -= u32::from(is_one(self.heads[page as usize].occupied));
        self.set(page, place, Ref::leaf(level));
        neighbour
    }

    /// Whether a page may stay, or be made, for one child.
    #[inline]
    const fn may_be_lonely(&self) -> bool {
        self.lonely < self.spare
    }

    /// The level next to the free place `place` of `node`, which has other children. Above for
    /// preference: a new level near the touch nearly always has a worse one in its page.
    #[inline]
    fn beside(&self, node: u32, place: usize) -> Neighbour {
        let occupied = self.heads[node as usize].occupied;
        let above = occupied >> place;
        if above != 0 {
            let child = self.child(node, place + above.trailing_zeros() as usize);
            Neighbour::Above(self.extreme(child, false))
        } else {
            let child = self.child(node, 63 - occupied.leading_zeros() as usize);
            Neighbour::Below(self.extreme(child, true))
        }
    }

    #[inline]
    fn shortcut_at(&self, ladder: &Ladder, page: u64) -> usize {
        (page ^ u64::from(ladder.number)) as usize & self.shortcuts.len().wrapping_sub(1)
    }

    /// The page that `key` belongs to, if the table knows it.
    #[inline]
    fn page(&self, ladder: &Ladder, key: u64) -> Option<u32> {
        let page = ladder.page_of(key);
        let shortcut = self.shortcuts.get(self.shortcut_at(ladder, page))?;
        let is_known = shortcut.page == page && shortcut.ladder == ladder.number;
        is_known.then_some(shortcut.node)
    }

    fn remember(&mut self, ladder: &mut Ladder, key: u64, node: u32) {
        if ladder.number == 0 {
            // Numbers that differ in all their bits spread the pages of different ladders.
            self.ladders += 1;
            ladder.number = self.ladders.wrapping_mul(0x9e37_79b9);
        }
        let page = ladder.page_of(key);
        let at = self.shortcut_at(ladder, page);
        self.shortcuts[at] = Shortcut { page, ladder: ladder.number, node };
    }

    fn forget(&mut self, ladder: &Ladder, key: u64, node: u32) {
        let at = self.shortcut_at(ladder, ladder.page_of(key));
        if self.shortcuts[at].node == node {
            self.shortcuts[at] = NO_SHORTCUT;
        }
    }
}

/// True when of these places one is occupied.
const fn is_one(occupied: u64) -> bool {
    occupied.is_power_of_two()
}

/// A level next to a newly inserted one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Neighbour {
    /// The closest level with a higher key.
    Above(u32),
    /// The closest level with a lower key.
    Below(u32),
}

/// A free place in a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vacancy {
    page: u32,
    place: usize,
}

/// What the table of pages knows of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lookup {
    /// Its level.
    Level(u32),
    /// It has no level; one could be put here.
    Vacant(Vacancy),
    /// Nothing.
    Unknown,
}

/// The levels of one side by price.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Ladder {
    root: Ref,
    /// Tells its shortcuts from those of others; 0 until it has any.
    number: u32,
    /// The lowest bit that a page decides on.
    page_shift: u8,
    /// Bits of the lowest step when it is a short one, else 0: steps are counted from the page.
    short_step: u8,
}

/// The place of a key in a node.
const fn place_in(key: u64, shift: u32) -> usize {
    (key >> shift) as usize & (CHILDREN - 1)
}

impl Ladder {
    /// Without any level, for prices that are multiples of `tick` or not.
    pub(crate) const fn aligned_to(tick: i64) -> Self {
        // A page always leaves a bit to what is above it, which for such ticks does not matter.
        let highest = 63 - STEP_BITS;
        let shift = if tick > 1 { tick.ilog2() } else { 0 };
        let shift = if shift < highest { shift } else { highest };
        let (page_shift, short_step) = (shift as u8, (shift % STEP_BITS) as u8);
        Self { root: Ref::NOTHING, number: 0, page_shift, short_step }
    }

    const fn page_of(&self, key: u64) -> u64 {
        key >> (self.page_shift as u32 + STEP_BITS)
    }

    /// The step that decides on bit `bit`: its lowest bit.
    const fn step_with(&self, bit: u32) -> u32 {
        let short = self.short_step as u32;
        if bit < short { 0 } else { bit - (bit - short) % STEP_BITS }
    }

    /// The bits of a key above a step; 0 when there are none.
    const fn above(&self, key: u64, shift: u32) -> u64 {
        let short = self.short_step as u32;
        let bits = if shift == 0 && short != 0 { short } else { STEP_BITS };
        if shift + bits < 64 { key >> (shift + bits) } else { 0 }
    }

    /// What the table of pages knows of `key`.
    #[inline]
    pub(crate) fn look_up(&self, nodes: &Nodes, levels: &Pool<Level>, key: u64) -> Lookup {
        let Some(page) = nodes.page(self, key) else { return Lookup::Unknown };
        let place = place_in(key, u32::from(self.page_shift));
        let child = nodes.child(page, place);
        if child == Ref::NOTHING {
            return Lookup::Vacant(Vacancy { page, place });
        }
        match child.as_leaf() {
            Some(level) if levels[level].key() == key => Lookup::Level(level),
            _ => Lookup::Unknown,
        }
    }

    /// The level of `key`, found without the table.
    pub(crate) fn find_from_root(
        &self,
        nodes: &Nodes,
        levels: &Pool<Level>,
        key: u64,
    ) -> Option<u32> {
        let mut at = self.root;
        while at != Ref::NOTHING {
            if let Some(level) = at.as_leaf() {
                return (levels[level].key() == key).then_some(level);
            }
            let (node, shift) = at.as_node();
            at = nodes.child(node, place_in(key, shift));
        }
        None
    }

    /// Adds `level` under its key, which no other level has; gives a neighbour, or `None` when the
    /// level is the only one.
    pub(crate) fn insert_from_root(
        &mut self,
        nodes: &mut Nodes,
        levels: &Pool<Level>,
        (key, level): (u64, u32),
    ) -> Option<Neighbour> {
        let mut parent = None;
        let mut at = self.root;
        if at == Ref::NOTHING {
            self.root = self.leaf_below(nodes, u64::BITS, (key, level));
            return None;
        }
        // Down to the place where the paths part.
        let relative = loop {
            if let Some(other) = at.as_leaf() {
                break levels[other].key();
            }
            let (node, shift) = at.as_node();
            let relative = nodes.heads[node as usize].key;
            if self.above(key, shift) != self.above(relative, shift) {
                break relative;
            }
            if shift == u32::from(self.page_shift) {
                nodes.remember(self, key, node);
            }
            let place = place_in(key, shift);
            let child = nodes.child(node, place);
            if child == Ref::NOTHING {
                if shift == u32::from(self.page_shift) {
                    return Some(nodes.fill(Vacancy { page: node, place }, level));
                }
                let neighbour = nodes.beside(node, place);
                let child = self.leaf_below(nodes, shift, (key, level));
                nodes.set(node, place, child);
                return Some(neighbour);
            }
            parent = Some((node, place));
            at = child;
        };
        assert!(key != relative, "a level is inserted once");
        let shift = self.step_with(63 - (key ^ relative).leading_zeros());
        let node = nodes.take(key);
        nodes.set(node, place_in(relative, shift), at);
        let neighbour = nodes.beside(node, place_in(key, shift));
        let child = self.leaf_below(nodes, shift, (key, level));
        nodes.set(node, place_in(key, shift), child);
        self.replace(nodes, parent, Ref::node(node, shift));
        if shift == u32::from(self.page_shift) {
            nodes.remember(self, key, node);
        }
        Some(neighbour)
    }

    /// A leaf to be put below a node of step `above`: in a page of its own where that node is above all pages and one
    /// can be spared.
    fn leaf_below(&mut self, nodes: &mut Nodes, above: u32, (key, level): (u64, u32)) -> Ref {
        let shift = u32::from(self.page_shift);
        if above <= shift || !nodes.may_be_lonely() {
            return Ref::leaf(level);
        }
        let page = nodes.take(key);
        nodes.set(page, place_in(key, shift), Ref::leaf(level));
        nodes.lonely += 1;
        nodes.remember(self, key, page);
        Ref::node(page, shift)
    }

    /// Removes the level of `key`, which must be there.
    #[inline]
    pub(crate) fn remove(&mut self, nodes: &mut Nodes, key: u64) {
        if let Some(page) = nodes.page(self, key) {
            let place = place_in(key, u32::from(self.page_shift));
            let others = nodes.heads[page as usize].occupied & !(1 << place);
            // One condition, and not two that a processor would have to guess.
            let stays = (others != 0) & (!is_one(others) | nodes.may_be_lonely());
            if stays && nodes.child(page, place).as_leaf().is_some() {
                nodes.clear(page, place);
                nodes.lonely += u32::from(is_one(others));
                return;
            }
        }
        self.remove_from_root(nodes, key);
    }

    #[inline(never)]
    fn remove_from_root(&mut self, nodes: &mut Nodes, key: u64) {
        // The last three nodes on the way, the lowest one first.
        let mut way = [None; 3];
        let mut is_page = false;
        let mut at = self.root;
        while at.as_leaf().is_none() {
            let (node, shift) = at.as_node();
            let place = place_in(key, shift);
            way = [Some((node, place)), way[0], way[1]];
            is_page = shift == u32::from(self.page_shift);
            at = nodes.child(node, place);
        }
        let [Some((node, place)), parent, grandparent] = way else {
            self.root = Ref::NOTHING;
            return;
        };
        let left = nodes.clear(node, place);
        if is_one(left) && is_page && nodes.may_be_lonely() {
            nodes.lonely += 1;
        } else if is_one(left) {
            self.give_way(nodes, parent, (key, node, left));
        } else if left == 0 {
            nodes.lonely -= 1;
            nodes.forget(self, key, node);
            nodes.children.release(node);
            let Some((node, place)) = parent else {
                self.root = Ref::NOTHING;
                return;
            };
            let left = nodes.clear(node, place);
            if is_one(left) {
                self.give_way(nodes, grandparent, (key, node, left));
            }
        }
    }

    /// Puts the one child that is left of a node in the node's place.
    fn give_way(
        &mut self,
        nodes: &mut Nodes,
        parent: Option<(u32, usize)>,
        (key, node, left): (u64, u32, u64),
    ) {
        let place = left.trailing_zeros() as usize;
        let child = nodes.child(node, place);
        nodes.clear(node, place);
        self.replace(nodes, parent, child);
        nodes.forget(self, key, node);
        nodes.children.release(node);
    }

    fn replace(&mut self, nodes: &mut Nodes, parent: Option<(u32, usize)>, child: Ref) {
        match parent {
            Some((node, place)) => nodes.set(node, place, child),
            None => self.root = child,
        }
    }
}

const _: () = assert!(NONE > LEVELS_MAX);
// However often they grow, each node has a reference.
const _: () = assert!(LEVELS_MAX + SPARE_MAX < NODE_MASK);

#[cfg(test)]
mod tests;
