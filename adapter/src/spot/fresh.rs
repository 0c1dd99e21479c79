//! What orders were placed with over this adapter that the views do not hold yet, as far as the engine does not tell
//! it again when one is cancelled: so a cancel need not wait for views that are far behind. Noted by the reports of
//! placements, looked up by those of cancels.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use touchline_protocol::units::{OrderId, Position, SymbolId};

use super::responses::Extras;
use crate::link::Decision;

/// Orders that are kept at the most, in some 10 MiB. Where the views lack more, the oldest are forgotten, and a cancel of
/// one of these waits for the views.
const ORDERS_MAX: usize = 65_536;

/// So many that the views hold by now are forgotten with each that is noted: whoever places one waits for it.
const FORGOTTEN_MAX: usize = 64;

/// An order, within one connection to the engine: an engine that has lost some of the log gives their numbers out
/// again.
type Key = (SymbolId, OrderId);

#[derive(Default)]
pub(super) struct Fresh(Mutex<Table>);

#[derive(Default)]
struct Table {
    connection: u64,
    /// By numbers that the engine gives out: nobody can aim them at a hash.
    extras: FxHashMap<Key, Extras>,
    by_age: VecDeque<(Position, Key)>,
}

impl Fresh {
    /// The order was placed by this decision, with these extras; the views hold everything before `reached`.
    pub(super) fn note(&self, decision: &Decision, order: Key, extras: Extras, reached: Position) {
        if decision.position <= reached {
            return;
        }
        let mut table = self.table();
        if decision.connection > table.connection {
            *table = Table { connection: decision.connection, ..Table::default() };
        }
        // A report may come late, or twice.
        if decision.connection < table.connection || table.extras.insert(order, extras).is_some() {
            return;
        }
        for _ in 0..FORGOTTEN_MAX {
            match table.by_age.front() {
                Some(&(position, oldest))
                    if position <= reached || table.by_age.len() >= ORDERS_MAX =>
                {
                    table.by_age.pop_front();
                    table.extras.remove(&oldest);
                }
                _ => break,
            }
        }
        table.by_age.push_back((decision.position, order));
    }

    /// What the order was placed with that this decision is about; `None` if that is not known here.
    pub(super) fn find(&self, decision: &Decision, order: Key) -> Option<Extras> {
        let table = self.table();
        let found = table.extras.get(&order).copied();
        found.filter(|_| decision.connection == table.connection)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{Terminal, Told};

    fn decision(connection: u64, position: u64) -> Decision {
        let (told, terminal) = (Told::default(), Terminal::Valid);
        Decision { connection, position: Position(position), time_ns: 0, told, terminal }
    }

    fn order(id: u64) -> Key {
        (SymbolId(1), OrderId(id))
    }

    #[test]
    fn what_the_views_hold_is_not_kept_and_of_more_than_there_is_room_for_the_newest_is() {
        let fresh = Fresh::default();
        let note = |id, reached| {
            fresh.note(&decision(1, id), order(id), Extras::new(5, 0), Position(reached));
        };
        note(7, 7);
        assert_eq!(fresh.find(&decision(1, 99), order(7)), None);
        let end = ORDERS_MAX as u64 + 10;
        (10..=end).chain([end]).for_each(|id| note(id, 0));
        let kept = |id| fresh.find(&decision(1, end + 1), order(id));
        assert_eq!([kept(10), kept(11), kept(end)].map(|one| one.is_some()), [false, true, true]);
        assert_eq!(kept(11), Some(Extras::new(5, 0)));
        assert_eq!(fresh.find(&decision(1, end + 1), (SymbolId(2), OrderId(11))), None);
        // Some at a time.
        note(end + 1, end);
        assert_eq!(fresh.table().extras.len(), ORDERS_MAX - FORGOTTEN_MAX + 1);
        let enough = (ORDERS_MAX / FORGOTTEN_MAX) as u64;
        (2..=enough).for_each(|more| note(end + more, end));
        let table = fresh.table();
        assert_eq!((table.extras.len() as u64, table.by_age.len() as u64), (enough, enough));
    }

    #[test]
    fn over_another_connection_a_number_may_be_another_orders() {
        let fresh = Fresh::default();
        let note = |connection, position, stop_price| {
            let extras = Extras::new(stop_price, 0);
            fresh.note(&decision(connection, position), order(1), extras, Position(0));
        };
        let find = |connection| fresh.find(&decision(connection, 99), order(1));
        note(1, 10, 5);
        assert_eq!([find(1), find(2)], [Some(Extras::new(5, 0)), None]);
        note(2, 10, 6);
        note(1, 11, 7);
        assert_eq!([find(1), find(2)], [None, Some(Extras::new(6, 0))]);
    }
}
