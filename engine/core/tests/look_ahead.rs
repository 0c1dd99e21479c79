//! Looking ahead: whatever is said to be coming, and however wrong, it neither fails nor is it seen.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/venue.rs"]
mod venue;

use touchline_core::{Core, ORDER_TYPES_2};
use touchline_protocol::message::command::*;
use touchline_protocol::message::{Message, MessageHeader};
use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::*;
use venue::{Venue, WHOLE, aligned, roomy};

const ORDERS: u32 = 18_000;
const _: () = assert!(ORDERS > Core::LOOK_AHEAD_FROM, "nothing would be looked up");

fn order(number: u64) -> NewOrder {
    let away = 1 + (number / 2 % 700) as i64;
    let is_buy = number.is_multiple_of(2);
    NewOrder {
        command: CommandHeader { key_id: KeyId(1 + number % 2), ..Default::default() },
        side: if is_buy { 1 } else { 2 },
        order_type: 1,
        time_in_force: 1,
        price: (1000 + if is_buy { -away } else { away }) * WHOLE,
        quantity: WHOLE,
        client_order_id: ClientOrderId::new(&format!("order {number}")).unwrap(),
        ..Default::default()
    }
}

fn cancel(number: u64) -> CancelOrder {
    CancelOrder {
        command: CommandHeader { key_id: KeyId(1 + number % 2), ..Default::default() },
        order_id: OrderId(number),
        ..Default::default()
    }
}

/// A venue with two accounts that have so many orders at rest, in slots of which some were used before.
fn world() -> Venue {
    let mut venue = Venue::new();
    venue.set_rules();
    venue.must(&SetRules { rules: 2, ..Default::default() });
    venue.set_limits(Limits { open_orders: ORDERS, price_levels: 2_000, ..roomy() });
    let pair = (venue.asset("BASE"), venue.asset("QUOTE"));
    let filters = SymbolFilters { tick_size: WHOLE, lot_step: WHOLE, ..Default::default() };
    venue.symbol_of("ONE", pair, filters, (ORDER_TYPES_2, 0));
    for name in ["ann", "bob"] {
        let (account, _) = venue.account(name, (0, 0));
        venue.deposit(account, pair.0, 10_000_000 * WHOLE);
        venue.deposit(account, pair.1, 10_000_000 * WHOLE);
    }
    let more = u64::from(ORDERS) / 8;
    for number in 1..=u64::from(ORDERS) + more {
        if let Some(late) = number.checked_sub(u64::from(ORDERS) + 1) {
            venue.must_quickly(&cancel(8 * (late + 1)));
        }
        venue.must_quickly(&order(number));
    }
    venue
}

/// Every message with every word of it set to a number from an edge, and cut anywhere.
fn spoilt(message: &impl Message) -> Vec<Vec<u64>> {
    let whole = aligned(bytemuck::bytes_of(message));
    let edges = [0, 1, 2, u64::MAX, 1 << 63, i64::MAX as u64, u64::from(u32::MAX), 1 << 32];
    let mut all = vec![whole.clone()];
    for at in 0..whole.len() {
        all.push(whole[..at].to_vec());
        if at > 0 {
            // Cut, and its header says no more than there is.
            let mut cut = whole[..at].to_vec();
            let mut header: MessageHeader = bytemuck::cast(cut[0]);
            header.block_length = (8 * (at - 1)) as u16;
            cut[0] = bytemuck::cast(header);
            all.push(cut);
        }
        for edge in edges {
            let mut words = whole.clone();
            words[at] = edge;
            all.push(words);
        }
    }
    all
}

#[test]
fn nothing_that_may_come_is_seen() {
    let venue = world();
    let mut coming = Vec::new();
    for number in [0, 1, 8, 9, 17_999, 18_000, 20_250, 20_251, u64::MAX] {
        coming.extend(spoilt(&order(number)));
        coming.extend(spoilt(&cancel(number)));
    }
    // Of another kind, and one that says it is an order and is none.
    coming.extend(spoilt(&RunPending::default()));
    let mut noise = vec![u64::MAX; 64];
    noise[0] = bytemuck::cast(MessageHeader::of::<NewOrder>());
    coming.push(noise);
    // That nothing changes is the compiler's to say: what is tried here is that no bytes are too strange for it.
    venue.core.look_ahead(coming.iter().map(|words| bytemuck::cast_slice(words)));
    for words in &coming {
        let bytes: &[u8] = bytemuck::cast_slice(words);
        venue.core.look_ahead([bytes, &bytes[..bytes.len() / 2]].into_iter());
    }
}

#[test]
fn an_empty_venue_looks_at_nothing() {
    let coming = spoilt(&order(1));
    Core::new().look_ahead(coming.iter().map(|words| bytemuck::cast_slice(words)));
}
