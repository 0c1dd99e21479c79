//! Records that somebody has altered, and set the hash right behind them.

use crate::parts::{again, read, seal, sections, write};
use crate::taking::{OUT_OF_RANGE, order, world};
use crate::venue::{Venue, WHOLE, roomy};
use std::mem::offset_of;
use touchline_core::{ORDER_TYPES, SnapshotError};
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::Side;
use touchline_protocol::snapshot::records::*;
use touchline_protocol::units::*;

/// The records of a section as bytes.
pub(crate) fn records_of(bytes: &[u8], section: u32) -> &[u8] {
    let all = sections(bytes);
    let (_, found, _) = all.iter().find(|(number, ..)| *number == section).unwrap();
    &bytes[found.start + size_of::<SectionHeader>()..found.end - 8]
}

/// The same snapshot with so many other records in the place of a section's.
pub(crate) fn with_records(bytes: &[u8], section: u32, records: u64, content: &[u8]) -> Vec<u8> {
    let all = sections(bytes);
    let (_, old, _) = all.iter().find(|(number, ..)| *number == section).unwrap();
    let header: SectionHeader =
        bytemuck::pod_read_unaligned(&bytes[old.start..old.start + size_of::<SectionHeader>()]);
    let mut altered = bytes[..old.start].to_vec();
    altered.extend_from_slice(bytemuck::bytes_of(&SectionHeader { records, ..header }));
    altered.extend_from_slice(content);
    altered.extend_from_slice(&[0; 8]);
    let new = old.start..altered.len();
    seal(&mut altered, &new);
    altered.extend_from_slice(&bytes[old.end..]);
    altered
}

/// Why a venue is refused that is read from these bytes; nothing if only its hash is another.
pub(crate) fn reason(bytes: &[u8]) -> &'static str {
    match read(bytes, 0) {
        Err(SnapshotError::Record { why, .. }) => why,
        Err(SnapshotError::StateHash { .. }) | Ok(_) => "",
        Err(error) => panic!("{error:?}"),
    }
}

#[test]
fn no_number_is_the_last_that_there_is() {
    let bytes = write(&world().core);
    let with = |section: u32, at: usize, last: u64| {
        let mut record = records_of(&bytes, section).to_vec();
        record[at..at + 8].copy_from_slice(&last.to_le_bytes());
        reason(&with_records(&bytes, section, 1, &record))
    };
    let most = i64::MAX.cast_unsigned();
    for at in [
        offset_of!(SymbolRecord, last_order_id),
        offset_of!(SymbolRecord, last_trade_id),
        offset_of!(SymbolRecord, last_aggregate_trade_id),
        offset_of!(SymbolRecord, last_book_update_id),
    ] {
        assert_eq!(with(SYMBOLS, at, most), "");
        assert_eq!(with(SYMBOLS, at, most + 1), OUT_OF_RANGE);
    }
    let at = offset_of!(VenueRecord, next_order_list_id);
    assert_eq!(with(VENUE, at, most - 1), "");
    assert_eq!(with(VENUE, at, most), OUT_OF_RANGE);
}

/// Which nothing can have cost.
#[test]
fn no_last_price_is_below_zero() {
    let bytes = write(&world().core);
    let mut record = records_of(&bytes, SYMBOLS).to_vec();
    let at = offset_of!(SymbolRecord, last_price);
    record[at..at + 8].copy_from_slice(&(-1i64).to_le_bytes());
    assert_eq!(reason(&with_records(&bytes, SYMBOLS, 1, &record)), OUT_OF_RANGE);
}

/// Each has its own in the ring: of two that have the same the first would be lost.
#[test]
fn minutes_stand_in_their_order() {
    let mut venue = world();
    for _ in 0..2 {
        venue.must(&order(1, Side::Sell, 10, 1));
        venue.must(&order(2, Side::Buy, 10, 1));
        venue.time_ns += 60_000_000_000;
    }
    let bytes = write(&venue.core);
    let size = size_of::<AverageRecord>();
    let (first, second) = records_of(&bytes, AVERAGES).split_at(size);
    assert_eq!(second.len(), size);
    for records in [[second, first].concat(), [first, first].concat()] {
        let altered = with_records(&bytes, AVERAGES, 2, &records);
        assert_eq!(reason(&altered), "a field out of range, or out of its order");
    }
}

#[test]
fn every_place_is_of_something() {
    let mut venue = world();
    venue.must(&order(1, Side::Buy, 10, 1));
    let bytes = write(&venue.core);
    let place = records_of(&bytes, PLACES);
    let altered = with_records(&bytes, PLACES, 2, &[place, place].concat());
    assert_eq!(reason(&altered), "a place of nothing");
}

/// By rules 1 nobody asks for the average of MIN_NOTIONAL, and how long it would be is not looked at.
#[test]
fn a_symbol_of_rules_1_keeps_its_filters_under_rules_2() {
    let mut venue = Venue::new();
    venue.set_rules();
    venue.set_limits(roomy());
    let pair = (venue.asset("BASE"), venue.asset("QUOTE"));
    let filters = SymbolFilters { min_notional_minutes: 1_000, ..Default::default() };
    venue.symbol_of("ONE", pair, filters, (ORDER_TYPES, 0));
    venue.must(&SetRules { rules: 2, ..Default::default() });
    again(&venue.core, 7);
}

/// An order lies where an iceberg has lain. It is reduced between its fills, and so has more than a record
/// from then on, but nothing of the iceberg's.
#[test]
fn what_another_order_left_in_a_slot_is_no_state() {
    let venue = |is_iceberg: bool| {
        let mut venue = world();
        let flags = if is_iceberg { WHOLE } else { 0 };
        let first = NewOrder { iceberg_quantity: flags, ..order(1, Side::Buy, 10, 3) };
        venue.must(&first);
        let by = |order_id: u64| {
            (CommandHeader { key_id: KeyId(1), ..Default::default() }, OrderId(order_id))
        };
        let (command, order_id) = by(1);
        venue.must(&CancelOrder { command, order_id, ..Default::default() });
        venue.must(&order(1, Side::Buy, 10, 3));
        venue.must(&order(2, Side::Sell, 10, 1));
        let (command, order_id) = by(2);
        venue.must(&ReduceOrder {
            command,
            order_id,
            new_quantity: 2 * WHOLE,
            ..Default::default()
        });
        again(&venue.core, 7).state_hash()
    };
    assert_eq!(venue(true), venue(false));
}
