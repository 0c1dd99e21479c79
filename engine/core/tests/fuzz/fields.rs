//! One sound command of each kind, with each of its fields in turn at each edge of its type: every place
//! where a field may begin, as one, four and eight bytes.

use crate::Random;
use crate::commands::messages::Writer;
use crate::commands::source::Source;
use crate::commands::subject::{Subject, words};
use crate::commands::world::{WHOLE, world};
use std::collections::BTreeMap;
use touchline_protocol::message::command::*;
use touchline_protocol::message::decode::{self, Command};
use touchline_protocol::message::with_bytes::RecordWrite;
use touchline_protocol::units::*;

/// Numbers at the edges of types, by their width in bytes.
const EDGES: [(usize, &[u64]); 3] = [
    (1, &[0, 1, 2, 7, 8, 0x7f, 0x80, 0xff]),
    (4, &[0, 1, 4, 0x7fff_ffff, 0x8000_0000, u32::MAX as u64 - 1, u32::MAX as u64]),
    (
        8,
        &[
            0,
            1,
            i64::MAX as u64 / 2,
            i64::MAX as u64 / 2 + 1,
            i64::MAX as u64 - 1,
            i64::MAX as u64,
            i64::MIN as u64,
            i64::MIN as u64 + 1,
            u64::MAX - 1,
            u64::MAX,
        ],
    ),
];

/// A venue with a last price, an order in the book, a stop, a list and a record.
fn prepared() -> Subject {
    let mut subject = world(&mut Source::new(&[1; 64]));
    let command = CommandHeader { key_id: KeyId(1), ..Default::default() };
    let order = NewOrder {
        command,
        side: 1,
        order_type: 1,
        time_in_force: 1,
        price: 95 * WHOLE,
        quantity: 4 * WHOLE,
        ..Default::default()
    };
    let stop = NewOrder { order_type: 4, stop_price: 105 * WHOLE, ..order };
    let list = PlaceOrderList {
        command,
        side: 2,
        quantity: WHOLE,
        price: 110 * WHOLE,
        stop_price: 90 * WHOLE,
        ..Default::default()
    };
    assert!(subject.apply(&words(&order)));
    assert!(subject.apply(&words(&stop)));
    assert!(subject.apply(&words(&list)));
    let record = PutRecord { id: [1; 12], unique_key: [1; 32], ..Default::default() };
    let record = RecordWrite::new(record, b"touchline").expect("it is short");
    assert!(subject.apply(&bytemuck::allocation::pod_collect_to_vec(record.as_bytes())));
    subject
}

/// A command of each kind that the prepared venue accepts, the first of many that are tried.
fn sound_commands() -> BTreeMap<&'static str, Vec<u64>> {
    // The highest rules version is in force, so no `SetRules` is accepted; and with work for `RunPending`,
    // which has no field of its own, most others would not be.
    let wanted = Command::TEMPLATES.len() - 2;
    let mut found = BTreeMap::new();
    let mut random = Random::new(0);
    let mut subject = prepared();
    for _ in 0..200_000 {
        if found.len() == wanted {
            return found;
        }
        let bytes: Vec<u8> = (0..96).map(|_| random.word() as u8).collect();
        let mut writer = Writer { source: &mut Source::new(&bytes), core: &subject.core };
        let words = writer.any();
        let Ok(command) = decode::command(bytemuck::cast_slice(&words)) else { continue };
        let template = command.name();
        if !found.contains_key(&template) && subject.apply(&words) {
            found.insert(template, words);
            subject = prepared();
        }
    }
    panic!("{} of {wanted} commands found", found.len());
}

/// Gives how many commands with a field at an edge were accepted and how many refused.
pub(crate) fn every_field_at_every_edge() -> [u64; 2] {
    let mut outcomes = [0; 2];
    for words in sound_commands().into_values() {
        let mut subject = prepared();
        let length = words.len() * 8;
        for (width, edges) in EDGES {
            for at in (0..length).step_by(width) {
                for edge in edges {
                    let mut words = words.clone();
                    bytemuck::cast_slice_mut::<u64, u8>(&mut words)[at..at + width]
                        .copy_from_slice(&edge.to_le_bytes()[..width]);
                    let is_accepted = subject.apply(&words);
                    outcomes[usize::from(is_accepted)] += 1;
                    if is_accepted {
                        subject.settle();
                        subject = prepared();
                    }
                }
            }
        }
    }
    outcomes
}
