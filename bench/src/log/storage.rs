//! The disk under a measured log, with a switch: written to as ever, held at its next write, or not
//! written to at all. Called by [`super::subject`], turned by the measurements that compare.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use touchline_engine::log::storage::GatedStorage;

/// What becomes of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Writes {
    /// It is done.
    Done,
    /// It waits, and with it the keeper, until the switch is turned.
    Held,
    /// It is reported as done and is not: what is durable is then a word without a disk behind it.
    Discarded,
}

#[derive(Debug)]
struct Switch {
    writes: Mutex<Writes>,
    turned: Condvar,
}

impl Switch {
    fn turn(&self, writes: Writes) {
        *self.writes.lock().unwrap_or_else(PoisonError::into_inner) = writes;
        self.turned.notify_all();
    }

    /// Whether a write is to be done, once it is not held any more.
    fn lets_through(&self) -> bool {
        let writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        let held = |writes: &mut Writes| *writes == Writes::Held;
        let writes = self.turned.wait_while(writes, held).unwrap_or_else(PoisonError::into_inner);
        *writes == Writes::Done
    }
}

/// The switch in front of the machine's file systems. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct SwitchedStorage {
    switch: Arc<Switch>,
}

/// The switch stands as it was turned until this is dropped.
pub(super) struct Turned(Arc<Switch>);

impl Drop for Turned {
    fn drop(&mut self) {
        self.0.turn(Writes::Done);
    }
}

impl SwitchedStorage {
    pub(super) fn new() -> Self {
        let switch = Switch { writes: Mutex::new(Writes::Done), turned: Condvar::new() };
        Self { switch: Arc::new(switch) }
    }

    /// Turns the switch until the answer is dropped.
    pub(super) fn turn(&self, writes: Writes) -> Turned {
        self.switch.turn(writes);
        Turned(Arc::clone(&self.switch))
    }

    /// The disk.
    pub(super) fn storage(&self) -> GatedStorage {
        let switch = Arc::clone(&self.switch);
        GatedStorage::new(move |_| Ok(switch.lets_through()))
    }
}
