//! What a recording becomes for a matching engine: one command per row that can be a command, a
//! count by cause for each that cannot, and the top of book that must stand after every row.
//! Called by [`crate::replay`].
//!
//! | row | command |
//! |---|---|
//! | 1 new order | LIMIT GTC |
//! | 2 partial cancel | reduction that keeps priority |
//! | 3 cancel | cancel |
//! | 4 execution of a visible order | opposite LIMIT IOC of that size and price, which must hit exactly that order |
//! | 5 execution of a hidden order, 7 halt | none |
//! | about an order that no row introduced | none |
//!
//! An execution of an order that is *not* next in price-time priority cannot be had from an engine
//! that keeps that priority. It is counted by cause and taken from the named order by a reduction or
//! a cancel instead, so that the books do not drift apart.
//!
//! [`Completion`] adds what the recording itself reveals beyond its rows: see there.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;
use touchline_protocol::message::enums::Side;

use super::book::{Book, Resting, Top};
use super::rows::{Event, Row};

/// What is asked of the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Place a LIMIT GTC; it must rest.
    Add(Resting),
    /// Reduce the order by this size; something is left.
    Reduce {
        /// Whole units.
        size: i64,
    },
    /// Cancel the order, of which this size is open.
    Cancel {
        /// Whole units.
        size: i64,
    },
    /// Place a LIMIT IOC against the order; it must be filled by it alone.
    Execute {
        /// Side, price and executed size of the resting order.
        resting: Resting,
    },
}

/// One command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Index of the row that it belongs to: the top of book after a row is the one after its last
    /// step.
    pub row: usize,
    /// Index of the order in [`Flow::exchange_ids`].
    pub order: usize,
    /// What to do.
    pub action: Action,
}

/// Rows and commands by kind and cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Counts {
    /// All rows.
    pub rows: usize,
    /// Orders placed.
    pub adds: usize,
    /// Partial cancels of known orders.
    pub reduces: usize,
    /// Cancels of known orders.
    pub cancels: usize,
    /// Executions of known visible orders.
    pub executions: usize,
    /// Of those: the order was next in price-time priority, so an IOC is sent.
    pub executions_in_turn: usize,
    /// Of those: every order before it has a higher exchange number, so it is the oldest and only its
    /// row came late (orders from before the opening, released into the book after it).
    pub executions_of_late_rows: usize,
    /// Of those: an older order that the recording itself shows at the same price was passed over, so
    /// the recording departs from price-time priority there.
    pub executions_passing_over: usize,
    /// Of those: none of the above.
    pub executions_unexplained: usize,
    /// Executions of hidden orders, which touch no visible one.
    pub hidden_executions: usize,
    /// Halts.
    pub halts: usize,
    /// Partial cancels of orders that no row introduced.
    pub unseen_reduces: usize,
    /// Cancels of orders that no row introduced.
    pub unseen_cancels: usize,
    /// Executions of orders that no row introduced.
    pub unseen_executions: usize,
    /// Rows that contradict the rows before them: an order introduced twice, another price, side or
    /// size than it has, or a new order that would trade at once.
    pub contradictions: usize,
    /// Orders put in that only later rows reveal (completed flow).
    pub revealed_orders: usize,
    /// Orders taken out because they left the recorded depth for good (completed flow).
    pub orders_beyond_depth: usize,
}

impl Counts {
    /// Rows about orders that no row introduced.
    #[must_use]
    pub const fn unseen(&self) -> usize {
        self.unseen_reduces + self.unseen_cancels + self.unseen_executions
    }
}

/// What the recording reveals about orders beyond the rows that introduce them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Completion {
    /// Put in the orders that no row introduces, with the price, the side and the sum of the sizes
    /// that later rows tell of them. Exchange numbers count up, so they come in before the first new
    /// order with a higher number; those from before the recording, at its beginning.
    pub revealed_orders: bool,
    /// The recording covers this many best levels per side. An order that is beyond them and that no
    /// later row mentions was removed out of sight: take it out there and then.
    pub recorded_depth: Option<usize>,
}

/// Commands, and what must come of them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Flow {
    /// In order.
    pub steps: Vec<Step>,
    /// The exchange's numbers of the orders that occur.
    pub exchange_ids: Vec<u64>,
    /// Top of book after each row.
    pub tops: Vec<Top>,
    /// What became of the rows.
    pub counts: Counts,
}

impl Flow {
    /// The flow of `rows` as they stand.
    #[must_use]
    pub fn plain(rows: &[Row]) -> Self {
        Self::completed(rows, Completion::default())
    }

    /// The flow of `rows` with what they reveal.
    #[must_use]
    pub fn completed(rows: &[Row], completion: Completion) -> Self {
        let mut builder = Builder::new(rows, completion);
        for (index, row) in rows.iter().enumerate() {
            builder.row(index, row);
        }
        builder.flow
    }
}

/// The orders that rows mention and none introduces, by number. Those whose rows contradict each
/// other are left out.
fn revealed(rows: &[Row]) -> BTreeMap<u64, Resting> {
    let mut introduced = HashSet::new();
    let mut revealed: BTreeMap<u64, Option<Resting>> = BTreeMap::new();
    for row in rows {
        match row.event {
            Event::Add => {
                introduced.insert(row.order);
            }
            Event::Reduce | Event::Cancel | Event::Execute if !introduced.contains(&row.order) => {
                let Row { side, price, size, .. } = *row;
                revealed
                    .entry(row.order)
                    .and_modify(|known| {
                        *known = known
                            .filter(|k| (k.side, k.price) == (side, price))
                            .map(|k| Resting { size: k.size + size, ..k });
                    })
                    .or_insert(Some(Resting { side, price, size }));
            }
            _ => {}
        }
    }
    revealed.into_iter().filter_map(|(order, known)| Some((order, known?))).collect()
}

struct Builder {
    book: Book,
    flow: Flow,
    index: HashMap<u64, usize>,
    /// Still to come in, by number.
    revealed: BTreeMap<u64, Resting>,
    recorded_depth: Option<usize>,
    /// The last row that mentions each order.
    last_mention: HashMap<u64, usize>,
    /// Highest number of a new order so far.
    newest: u64,
}

impl Builder {
    fn new(rows: &[Row], completion: Completion) -> Self {
        Self {
            book: Book::default(),
            flow: Flow::default(),
            index: HashMap::new(),
            revealed: if completion.revealed_orders { revealed(rows) } else { BTreeMap::new() },
            recorded_depth: completion.recorded_depth,
            last_mention: rows.iter().enumerate().map(|(index, row)| (row.order, index)).collect(),
            newest: 0,
        }
    }

    fn row(&mut self, index: usize, row: &Row) {
        self.flow.counts.rows += 1;
        if row.event == Event::Add {
            self.reveal_older(index, row.order);
        }
        match row.event {
            Event::Add => self.add(index, row),
            Event::Reduce | Event::Cancel | Event::Execute => self.change(index, row),
            Event::ExecuteHidden => self.flow.counts.hidden_executions += 1,
            Event::Halt => self.flow.counts.halts += 1,
        }
        if let Some(depth) = self.recorded_depth
            && matches!(row.event, Event::Add | Event::Reduce)
        {
            // Only new orders push others out of the recorded depth, and only an order that stays in
            // the book can be mentioned for the last time.
            self.drop_beyond(index, depth);
        }
        self.flow.tops.push(self.book.top());
    }

    /// Puts in the revealed orders that are older than a new one.
    fn reveal_older(&mut self, row: usize, new: u64) {
        self.newest = self.newest.max(new);
        while let Some(entry) = self.revealed.first_entry()
            && *entry.key() < self.newest
        {
            let (order, resting) = entry.remove_entry();
            self.flow.counts.revealed_orders += 1;
            self.place(row, order, resting);
        }
    }

    fn add(&mut self, row: usize, new: &Row) {
        let Row { order, side, price, size, .. } = *new;
        if self.book.get(order).is_some() || self.book.would_cross(side, price) {
            self.flow.counts.contradictions += 1;
            return;
        }
        self.flow.counts.adds += 1;
        self.place(row, order, Resting { side, price, size });
    }

    fn place(&mut self, row: usize, order: u64, resting: Resting) {
        let next = self.flow.exchange_ids.len();
        self.index.insert(order, next);
        self.flow.exchange_ids.push(order);
        self.book.add(order, resting);
        self.flow.steps.push(Step { row, order: next, action: Action::Add(resting) });
    }

    /// A partial cancel, a cancel or an execution.
    fn change(&mut self, index: usize, row: &Row) {
        let Some(resting) = self.book.get(row.order) else {
            let counts = &mut self.flow.counts;
            match row.event {
                Event::Reduce => counts.unseen_reduces += 1,
                Event::Cancel => counts.unseen_cancels += 1,
                _ => counts.unseen_executions += 1,
            }
            return;
        };
        let fits = if row.event == Event::Cancel {
            row.size == resting.size
        } else {
            row.size <= resting.size
        };
        if (row.side, row.price) != (resting.side, resting.price) || !fits {
            self.flow.counts.contradictions += 1;
            return;
        }
        match row.event {
            Event::Reduce => self.flow.counts.reduces += 1,
            Event::Cancel => self.flow.counts.cancels += 1,
            _ => {
                self.execute(index, row);
                return;
            }
        }
        self.take(index, row.order, row.size);
    }

    fn execute(&mut self, index: usize, row: &Row) {
        let counts = &mut self.flow.counts;
        counts.executions += 1;
        if self.book.is_next(row.order) {
            counts.executions_in_turn += 1;
            let resting = Resting { side: row.side, price: row.price, size: row.size };
            let order = self.index[&row.order];
            self.book.take(row.order, row.size);
            self.flow.steps.push(Step { row: index, order, action: Action::Execute { resting } });
            return;
        }
        if !self.book.is_at_best_level(row.order) {
            counts.executions_unexplained += 1;
        } else if self.book.before(row.order).all(|before| before > row.order) {
            counts.executions_of_late_rows += 1;
        } else {
            counts.executions_passing_over += 1;
        }
        self.take(index, row.order, row.size);
    }

    /// Takes `size` from an order by a reduction, or by a cancel if nothing is left.
    fn take(&mut self, row: usize, order: u64, size: i64) {
        let left = self.book.take(order, size);
        let action =
            if left == Some(0) { Action::Cancel { size } } else { Action::Reduce { size } };
        self.flow.steps.push(Step { row, order: self.index[&order], action });
    }

    fn drop_beyond(&mut self, row: usize, depth: usize) {
        for side in [Side::Buy, Side::Sell] {
            let gone: Vec<u64> = self
                .book
                .beyond(side, depth)
                .filter(|order| self.last_mention.get(order).is_none_or(|&last| last <= row))
                .collect();
            for order in gone {
                let open = self.book.get(order).expect("it rests beyond the depth").size;
                self.flow.counts.orders_beyond_depth += 1;
                self.take(row, order, open);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn actions(flow: &Flow) -> Vec<(u64, Action)> {
        flow.steps.iter().map(|step| (flow.exchange_ids[step.order], step.action)).collect()
    }

    #[test]
    fn each_row_becomes_its_command_or_a_count() {
        let flow = Flow::plain(&sample::rows());
        let buy = |price, size| Resting { side: Side::Buy, price, size };
        let sell = |price, size| Resting { side: Side::Sell, price, size };
        assert_eq!(
            actions(&flow),
            [
                (10, Action::Add(buy(100, 50))),
                (11, Action::Add(buy(100, 30))),
                (12, Action::Add(sell(103, 20))),
                (10, Action::Reduce { size: 20 }),
                (10, Action::Execute { resting: buy(100, 30) }),
                (4, Action::Add(buy(100, 7))),
                (4, Action::Reduce { size: 5 }),
                (4, Action::Cancel { size: 2 }),
                (13, Action::Add(buy(100, 9))),
                (13, Action::Cancel { size: 9 }),
                (11, Action::Cancel { size: 30 }),
            ]
        );
        assert_eq!(
            flow.counts,
            Counts {
                rows: 14,
                adds: 5,
                reduces: 1,
                cancels: 1,
                executions: 4,
                executions_in_turn: 1,
                executions_of_late_rows: 2,
                executions_passing_over: 1,
                hidden_executions: 1,
                halts: 1,
                unseen_cancels: 1,
                ..Counts::default()
            }
        );
        assert_eq!(flow.tops.len(), 14);
        assert_eq!(
            flow.tops[3],
            Top { ask_price: 103, ask_size: 20, bid_price: 100, bid_size: 80 }
        );
        assert_eq!(flow.tops[13], Top { ask_price: 103, ask_size: 20, ..Top::default() });
    }

    #[test]
    fn revealed_orders_stand_from_when_their_number_was_new() {
        let completion = Completion { revealed_orders: true, recorded_depth: None };
        let flow = Flow::completed(&sample::rows(), completion);
        assert_eq!(flow.counts.revealed_orders, 1);
        assert_eq!(flow.counts.unseen(), 0);
        let first = (flow.exchange_ids[flow.steps[0].order], flow.steps[0].action);
        let revealed = Resting { side: Side::Sell, price: 102, size: 40 };
        assert_eq!(first, (9, Action::Add(revealed)));
        assert_eq!(flow.tops[3].ask_price, 102);
        assert_eq!(flow.tops[13].ask_price, 103, "its cancel is carried out");
    }

    #[test]
    fn what_leaves_the_recorded_depth_for_good_is_taken_out() {
        let rows = sample::parse(
            "1.0,1,20,5,90,1\n\
             1.0,1,21,5,91,1\n\
             1.0,1,22,5,92,1\n\
             1.0,1,23,5,110,-1\n\
             1.0,3,21,5,91,1\n\
             1.0,3,22,5,92,1\n",
        );
        let flow =
            Flow::completed(&rows, Completion { revealed_orders: false, recorded_depth: Some(1) });
        assert_eq!(flow.counts.orders_beyond_depth, 1, "20; 21 is mentioned later");
        assert_eq!(flow.steps[2], Step { row: 1, order: 0, action: Action::Cancel { size: 5 } });
        assert_eq!(flow.tops[5].bid_size, 0);
        assert_eq!(Flow::plain(&rows).tops[5].bid_price, 90);
    }

    #[test]
    fn rows_that_contradict_others_change_nothing() {
        let rows = sample::parse(
            "1.0,1,20,5,90,1\n\
             1.0,1,20,5,90,1\n\
             1.0,1,21,5,90,-1\n\
             1.0,3,20,4,90,1\n\
             1.0,2,20,6,90,1\n\
             1.0,4,20,5,91,1\n\
             1.0,4,20,5,90,-1\n",
        );
        let flow = Flow::plain(&rows);
        assert_eq!((flow.steps.len(), flow.counts.contradictions), (1, 6));
        assert_eq!(flow.tops[6], flow.tops[0]);
    }
}
