//! Any orders, any sweep, any `max_steps`: what is ended, and in which order, is what a naive look at the
//! open orders says; each transaction does its share, and a replay says the same.

use crate::venue::{Owned, aligned};
use crate::world::*;
use proptest::prelude::*;
use touchline_core::{Core, OpenOrder};
use touchline_protocol::message::enums::{Lane, Role, Side};
use touchline_protocol::units::*;

#[derive(Clone, Debug)]
struct Placement {
    key: u64,
    session: usize,
    symbol: SymbolId,
    side: Side,
    price: i64,
    quantity: i64,
    form: u8,
}

fn placements() -> impl Strategy<Value = Vec<Placement>> {
    let one = (1..4u64, 0..2usize, 0..2u32, any::<bool>(), 5..15i64, 1..4i64, 0..6u8);
    let one = one.prop_map(|(key, session, symbol, buys, price, quantity, form)| Placement {
        key,
        session,
        symbol: SymbolId(symbol),
        side: if buys { Side::Buy } else { Side::Sell },
        price,
        quantity,
        form,
    });
    prop::collection::vec(one, 0..40)
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    CancelAll(SymbolId),
    Account(SymbolId),
    Session(SymbolId, usize),
    Kill,
    Expire(SymbolId),
}

fn kinds() -> impl Strategy<Value = Kind> {
    let symbol = || prop_oneof![Just(ONE), Just(TWO)];
    let any = || prop_oneof![Just(ONE), Just(TWO), Just(ALL)];
    prop_oneof![
        symbol().prop_map(Kind::CancelAll),
        any().prop_map(Kind::Account),
        (any(), 0..2usize).prop_map(|(symbol, session)| Kind::Session(symbol, session)),
        Just(Kind::Kill),
        symbol().prop_map(Kind::Expire),
    ]
}

/// The orders that each transaction ends: a list's together when the first of them comes up.
fn divided(core: &Core, orders: &[OpenOrder], max_steps: u32) -> Vec<Vec<(SymbolId, u64)>> {
    let (mut parts, mut part, mut steps) = (Vec::<Vec<_>>::new(), Vec::new(), 0);
    for order in orders {
        let this = (order.symbol, order.order_id.0);
        if part.contains(&this) || parts.iter().flatten().any(|ended| *ended == this) {
            continue;
        }
        if steps >= max_steps {
            parts.push(std::mem::take(&mut part));
            steps = 0;
        }
        match core.open_order_list(order.order_list_id) {
            Some(list) => {
                part.push((list.symbol, list.stop_order_id.0));
                part.push((list.symbol, list.limit_order_id.0));
                steps += 5;
            }
            None => {
                part.push(this);
                steps += 2;
            }
        }
    }
    parts.push(part);
    parts
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..Default::default() })]

    #[test]
    fn sweeps_what_a_naive_look_says(
        placements in placements(),
        kind in kinds(),
        max_steps in 1..12u32,
    ) {
        let mut venue = world(steps(max_steps));
        let mut sessions = Vec::new();
        for key in [ANN, BOB, CARL] {
            let open = |name| (name, Role::Trader, Lane::Hot, KeyId(key));
            sessions.push(["a", "b"].map(|name| {
                let (name, role, lane, key) = open(name);
                venue.logon(name, role, lane, key)
            }));
        }
        trade_at(&mut venue, ONE, 10);
        trade_at(&mut venue, TWO, 10);
        // Placed as (symbol, order), the oldest first.
        let mut placed = Vec::new();
        for one in &placements {
            let session = sessions[one.key as usize - 1][one.session];
            let command = venue.header(session, KeyId(one.key));
            let (price, far) = (one.price, if one.side == Side::Buy { 20 } else { 1 });
            let events = match one.form {
                0 => venue.apply(&stop_limit(command, one.symbol, one.side, (price, price))),
                1 => venue.apply(&list(command, one.symbol, one.side, (price, far))),
                _ => venue.apply(&limit(command, one.symbol, one.side, (price, one.quantity))),
            };
            placed.extend(events.into_iter().flatten().filter_map(|event| match event {
                Owned::Accepted(accepted) => Some((accepted.symbol, accepted.order_id)),
                _ => None,
            }));
            venue.drain();
        }
        let mut expected: Vec<_> = placed
            .iter()
            .filter_map(|&(symbol, order)| venue.core.open_order(symbol, order))
            .collect();
        let of_ann = |symbol: SymbolId, session: Option<SessionId>| {
            move |order: &OpenOrder| {
                order.account == AccountId(1)
                    && (symbol == ALL || order.symbol == symbol)
                    && session.is_none_or(|session| order.session == session)
            }
        };
        let message = match kind {
            Kind::CancelAll(symbol) => {
                expected.retain(of_ann(symbol, None));
                aligned(bytemuck::bytes_of(&cancel_all(by(ANN), symbol)))
            }
            Kind::Account(symbol) => {
                expected.retain(of_ann(symbol, None));
                aligned(bytemuck::bytes_of(&mass_cancel(by(ANN), symbol, 2)))
            }
            Kind::Session(symbol, session) => {
                let session = sessions[0][session];
                expected.retain(of_ann(symbol, Some(session)));
                let command = venue.header(session, KeyId(ANN));
                aligned(bytemuck::bytes_of(&mass_cancel(command, symbol, 1)))
            }
            Kind::Kill => {
                expected.retain(of_ann(ALL, None));
                aligned(bytemuck::bytes_of(&kill(ANN, 1)))
            }
            Kind::Expire(symbol) => {
                expected = [Side::Sell, Side::Buy]
                    .into_iter()
                    .flat_map(|side| venue.core.open_orders(symbol, side))
                    .collect();
                let waiting = venue.core.waiting_orders(symbol).collect::<Vec<_>>();
                let (up, down): (Vec<_>, Vec<_>) =
                    waiting.into_iter().partition(|order| order.side == Side::Buy);
                expected.extend(up.into_iter().chain(down));
                aligned(bytemuck::bytes_of(&expire_all(symbol)))
            }
        };
        let parts = divided(&venue.core, &expected, max_steps);
        let mut events = match venue.apply_bytes(&message) {
            Ok(events) => events,
            Err(_) => {
                prop_assert!(expected.is_empty() && matches!(kind, Kind::CancelAll(_)));
                return Ok(());
            }
        };
        events.extend(venue.drain());
        let found: Vec<_> = events
            .split(|event| matches!(event, Owned::Continues(_)))
            .map(ended)
            .collect();
        prop_assert_eq!(found, parts);
        venue.check_replay();
        for key in [ANN, BOB, CARL] {
            sweep(&mut venue, &mass_cancel(by(key), ALL, 2));
        }
        check_empty(&venue);
        venue.check_replay();
    }
}
