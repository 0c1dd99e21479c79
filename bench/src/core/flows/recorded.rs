//! A recorded hour of a real exchange as a flow. Called by [`super::super`].

use std::path::Path;

use touchline_protocol::message::enums::Side;

use super::super::operation::{Kind, Operation};
use super::{Flow, Recorder};
use crate::recording::flow::{Action, Flow as RecordedFlow, Step};
use crate::recording::rows::{RowsError, read_messages};

/// Reads the recorded messages at `path`. Ids count up in the order in which orders first appear, an
/// execution's aggressor has one behind them all; prices are in ticks.
///
/// # Errors
/// See [`RowsError`].
pub fn recorded(path: &Path) -> Result<Flow, RowsError> {
    let steps = RecordedFlow::plain(&read_messages(path)?).steps;
    let prices = || steps.iter().filter_map(price);
    let tick = prices().fold(0, greatest_common_divisor).max(1);
    let mid = prices().next().unwrap_or(0) / tick;
    let mut recorder = Recorder::new("recorded".to_owned(), mid, None);
    recorder.measure();
    recorder.next_id = steps.iter().map(|step| step.order as u32 + 1).max().unwrap_or(0);
    for step in &steps {
        if recorder.is_interrupted() {
            break;
        }
        let operation = operation(&mut recorder, step, tick);
        // The recording's own book has found each order that a step names.
        let rests = recorder.push(operation);
        debug_assert!(rests);
    }
    Ok(recorder.finish())
}

fn price(step: &Step) -> Option<i64> {
    match step.action {
        Action::Add(resting) | Action::Execute { resting } => Some(resting.price),
        _ => None,
    }
}

fn greatest_common_divisor(one: i64, other: i64) -> i64 {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}

fn operation(recorder: &mut Recorder, step: &Step, tick: i64) -> Operation {
    let id = step.order as u32;
    let (kind, side) = (Kind::Cancel, Side::Buy);
    let cancel = Operation { id, price: 0, quantity: 0, place: 0, kind, side };
    let quantity = |size: i64| u32::try_from(size).unwrap_or(u32::MAX);
    match step.action {
        Action::Cancel { .. } => cancel,
        Action::Add(resting) => Operation {
            price: resting.price / tick,
            quantity: quantity(resting.size),
            kind: Kind::Add,
            side: resting.side,
            ..cancel
        },
        Action::Reduce { size } => {
            let open = recorder.book.resting(id).map_or(0, |(_, _, open)| open);
            let left = open.saturating_sub(size.unsigned_abs());
            Operation { quantity: left as u32, kind: Kind::Reduce, ..cancel }
        }
        Action::Execute { resting } => Operation {
            id: recorder.fresh_id(),
            price: resting.price / tick,
            quantity: quantity(resting.size),
            kind: Kind::Ioc,
            side: resting.side.opposite(),
            ..cancel
        },
    }
}
