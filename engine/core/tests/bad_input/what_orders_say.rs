//! What each type of order has, and must not have, by the table of `FORMATS.md`: every combination of fields.

use super::rules_2::{WIDE, world_2};
use super::{order, rejected};
use crate::venue::{Venue, WHOLE};
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{OrderType, RejectReason as Why, TimeInForce};

/// What a table's cell says of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Says {
    Zero,
    Has,
    May,
    /// This one or its neighbour.
    Either,
}

impl Says {
    fn read(cell: &str) -> Self {
        match cell {
            "0" => Self::Zero,
            "has" => Self::Has,
            "may have" | "may have, as Gtc" => Self::May,
            "has, or the next" | "has, or the one before" => Self::Either,
            _ => panic!("a cell that says {cell:?}"),
        }
    }
}

/// The table: the order types of each row, and its cells.
fn rows() -> Vec<(Vec<OrderType>, [Says; 6])> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../protocol/FORMATS.md");
    let formats = std::fs::read_to_string(path).unwrap();
    let (_, section) = formats.split_once("### What an order says\n").expect("the section");
    let lines = section.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    let rows = lines.take_while(|line| line.starts_with('|')).map(|line| {
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        let types = cells.next().unwrap().split(", ").map(of_name).collect();
        let says: Vec<Says> = cells.map(Says::read).collect();
        (types, says.try_into().expect("six cells"))
    });
    rows.collect()
}

fn of_name(name: &str) -> OrderType {
    let all = (1..=7).filter_map(OrderType::from_wire);
    all.into_iter().find(|one| format!("{one:?}") == name).expect("an order type")
}

/// Why the table has an order rejected that sets these fields, in the order of its columns.
fn expected(says: [Says; 6], set: [bool; 6], time_in_force: u8) -> Option<Why> {
    use Says::{Either, Has, Zero};
    if says[0] == Has && !set[0] {
        return Some(Why::InvalidTimeInForce);
    }
    let is_beyond = (0..6).any(|field| says[field] == Zero && set[field]);
    let has_both = says[3] == Either && set[3] && set[4];
    let hides = set[5] && says[0] == Has && time_in_force != TimeInForce::Gtc.to_wire();
    if is_beyond || has_both || hides {
        return Some(Why::UnsupportedCombination);
    }
    if (1..3).any(|field| says[field] == Has && !set[field]) {
        return Some(Why::InvalidPrice);
    }
    let has_quantity = set[3] || says[4] == Either && set[4];
    (!has_quantity).then_some(Why::InvalidQuantity)
}

/// Sets the fields of a sound order, or none of them.
fn fill(it: &mut NewOrder, kind: OrderType, set: [bool; 6], time_in_force: u8) {
    (it.symbol, it.order_type, it.flags) = (WIDE, kind.to_wire(), ORDER_VALIDATE_ONLY);
    let amount = |is_set: bool, amount: i64| if is_set { amount } else { 0 };
    it.time_in_force = if set[0] { time_in_force } else { 0 };
    it.price = amount(set[1], 1000);
    it.stop_price = amount(set[2], 1000);
    it.quantity = amount(set[3], 5 * WHOLE);
    it.quote_quantity = amount(set[4], 5 * WHOLE);
    it.iceberg_quantity = amount(set[5], 5 * WHOLE);
}

fn try_all(venue: &mut Venue, kind: OrderType, says: [Says; 6]) {
    for time_in_force in 1..=3 {
        for bits in 0..1 << 6 {
            let set: [bool; 6] = std::array::from_fn(|field| bits & 1 << field != 0);
            let message = order(venue, |it| fill(it, kind, set, time_in_force));
            match expected(says, set, time_in_force) {
                Some(reason) => rejected(venue, &message, reason, 0),
                None => assert!(venue.apply(&message).is_ok(), "{message:?}"),
            }
        }
    }
}

#[test]
fn every_type_has_what_the_document_says() {
    let rows = rows();
    let mut types: Vec<u8> =
        rows.iter().flat_map(|(types, _)| types).map(|one| one.to_wire()).collect();
    types.sort_unstable();
    assert_eq!(types, [1, 2, 3, 4, 5, 6, 7], "each type once");
    let mut venue = world_2();
    for (types, says) in rows {
        for kind in types {
            try_all(&mut venue, kind, says);
        }
    }
}
