//! A flood of records beside orders, as the log has it: records wait, orders do not.

use super::client::{Client, limit};
use super::venue::Venue;
use std::path::Path;
use touchline_protocol::log::reader::{Follow, LogReader};
use touchline_protocol::message::command::PutRecord;
use touchline_protocol::message::decode::Command;
use touchline_protocol::message::enums::{Role, Side};
use touchline_protocol::message::with_bytes::RecordWrite;

/// A put of a new record with a content of some hundred bytes.
fn put(number: u64) -> RecordWrite {
    let mut id = [1; 12];
    id[..8].copy_from_slice(&number.to_le_bytes());
    let message = PutRecord { kind: 1, id, ..Default::default() };
    RecordWrite::new(message, &[b'x'; 300]).unwrap()
}

/// What a log has of both lanes.
#[derive(Default, Debug)]
struct Lanes {
    orders: u64,
    records: u64,
    /// The longest row of records without anything of the hot lane, or of the work that it left, between.
    longest_row: u64,
}

fn read(data: &Path) -> Lanes {
    let mut reader = LogReader::open(data, Follow::Appended).unwrap();
    let (mut found, mut row) = (Lanes::default(), 0);
    while let Some(transaction) = reader.next().unwrap() {
        match transaction.command().unwrap() {
            Command::PutRecord(_) => {
                found.records += 1;
                row += 1;
                found.longest_row = found.longest_row.max(row);
            }
            Command::NewOrder(_) | Command::RunPending(_) => {
                found.orders += 1;
                row = 0;
            }
            _ => {}
        }
    }
    found
}

/// Turns in which two adapters have more records to write than any turn takes and a trader has more
/// orders, some of which meet more makers than one transaction visits.
fn flood(quota: u64, limits: &str, turns: u64) -> Lanes {
    let engine = format!("messages_per_turn = 4\ncold_messages_per_turn = {quota}");
    let limits = format!("{limits}\nrecords = 4096\nrecord_blocks = 40960");
    let mut venue = Venue::new(&engine, &limits);
    let mut trader: Client = venue.trader("trader", 1);
    let mut adapters = ["one", "two"].map(|name| venue.cold(name, Role::Adapter));
    let (mut orders, mut records) = (0u64, 0);
    for _ in 0..turns {
        while trader.try_send(match orders % 6 {
            0..5 => limit(0, Side::Sell, 100, 1),
            _ => limit(0, Side::Buy, 100, 5),
        }) {
            orders += 1;
        }
        for adapter in &mut adapters {
            while adapter.try_send(put(records)) {
                records += 1;
            }
        }
        venue.duty.turn();
        trader.read();
        for adapter in &mut adapters {
            adapter.count_answers();
        }
    }
    let counts = venue.duty.core().counts();
    let found = read(venue.folder.path());
    assert_eq!(u64::from(counts.records), found.records);
    found
}

#[test]
fn never_more_than_the_cold_lanes_share_stands_between_two_polls_of_the_hot_lane() {
    for quota in [1, 3, 8] {
        let found = flood(quota, "", 60);
        assert_eq!(found.longest_row, quota, "{found:?}");
        assert_eq!(found.records, 60 * quota, "the flood was one: {found:?}");
        assert_eq!(found.orders, 60 * 4, "no order waited for a record: {found:?}");
    }
}

#[test]
fn nor_while_orders_are_continued() {
    for quota in [1, 3, 8] {
        let found = flood(quota, "max_steps = 2", 60);
        assert_eq!(found.longest_row, quota, "{found:?}");
        assert!(found.records >= 60 && found.orders >= 60, "both lanes were served: {found:?}");
    }
}
