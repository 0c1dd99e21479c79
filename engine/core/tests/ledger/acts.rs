//! What somebody does next: an order, a change of an open one, a sweep, or what operators do. Chosen by what is open,
//! so that two venues that are alike do the same.

use crate::kept::Kept;
use crate::orders::{ACCOUNTS, Place, by};
use crate::scales::{Random, Scale};
use crate::venue::{Owned, Venue, WHOLE, aligned};
use touchline_core::{OpenOrder, Reject};
use touchline_protocol::message::Message;
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{Side, SymbolStatus};
use touchline_protocol::units::*;

/// A command, and which symbol must have nothing pending for it: none, one or all.
pub(crate) enum Act {
    Send { words: Vec<u64>, symbol: Option<SymbolId> },
    Pass { ns: u64 },
}

fn send<M: Message>(message: &M, symbol: SymbolId) -> Act {
    Act::Send { words: aligned(bytemuck::bytes_of(message)), symbol: Some(symbol) }
}

/// An operator's, which waits for nothing.
fn order<M: Message>(message: &M) -> Act {
    Act::Send { words: aligned(bytemuck::bytes_of(message)), symbol: None }
}

impl Act {
    /// Does it; what it tells.
    pub(crate) fn of(&self, venue: &mut Venue) -> Result<Vec<Owned>, Reject> {
        match self {
            Self::Send { words, .. } => venue.apply_bytes(words),
            Self::Pass { ns } => {
                venue.time_ns += ns;
                Ok(Vec::new())
            }
        }
    }
}

/// What is done next.
pub(crate) fn next(random: &mut Random, (venue, kept): (&Venue, &Kept), scale: &Scale) -> Act {
    let symbol = random.pick(&[0u32, 0, 0, 1, 1, 2]);
    let account = random.range(1, ACCOUNTS.into()) as u32;
    let place = Place { scale, symbol, last: kept.last(symbol), account };
    let id = SymbolId(symbol);
    let open: Vec<_> = venue
        .core
        .open_orders(id, Side::Buy)
        .chain(venue.core.open_orders(id, Side::Sell))
        .chain(venue.core.waiting_orders(id))
        .collect();
    let some = (!open.is_empty()).then(|| open[random.below(open.len() as u64) as usize]);
    match (random.below(100), place.last, some) {
        (0..=54, ..) => send(&place.order(random), id),
        (55..=64, Some(last), _) => send(&place.list(random, last), id),
        (65..=88, _, Some(open)) => changed(random, &place, &open),
        (89..=91, ..) => swept(random, &place),
        (92..=96, ..) => operated(random, &place),
        _ => Act::Pass { ns: random.pick(&[0, 1, 1_000_000, 61_000_000_000]) },
    }
}

/// An open order's owner changes or cancels it.
fn changed(random: &mut Random, place: &Place<'_>, open: &OpenOrder) -> Act {
    let (command, symbol, order_id) = (by(open.account.0), open.symbol, open.order_id);
    let quantity = open.quantity.0;
    match random.below(24) {
        0..=4 => send(&CancelOrder { command, symbol, order_id, ..Default::default() }, symbol),
        5..=8 => {
            let new_quantity = random.range(1, quantity);
            let reduce =
                ReduceOrder { command, symbol, order_id, new_quantity, ..Default::default() };
            send(&reduce, symbol)
        }
        9..=17 => {
            let new_quantity = match random.below(4) {
                0 => quantity,
                1 => random.range(1, quantity),
                2 => quantity - open.remaining.0 + random.range(0, 2),
                _ => quantity.saturating_add(place.scale.quantity(random)),
            };
            let price = place.scale.price(random, place.symbol, place.last);
            let new_price = if random.once_in(3) { open.price.0 } else { price };
            let replace = ReplaceOrder {
                command,
                symbol,
                order_id,
                new_price,
                new_quantity,
                ..Default::default()
            };
            send(&replace, symbol)
        }
        _ => {
            let new = Place { account: open.account.0, ..*place }.order(random);
            let keeps_name = random.once_in(2);
            let both = CancelReplace {
                command,
                symbol,
                side: new.side,
                order_type: new.order_type,
                time_in_force: new.time_in_force,
                price: new.price,
                quantity: new.quantity,
                quote_quantity: new.quote_quantity,
                stop_price: new.stop_price,
                iceberg_quantity: new.iceberg_quantity,
                self_trade_prevention: new.self_trade_prevention,
                client_order_id: if keeps_name {
                    open.client_order_id
                } else {
                    new.client_order_id
                },
                canceled_order_id: order_id,
                ..Default::default()
            };
            send(&both, symbol)
        }
    }
}

/// Many orders end.
fn swept(random: &mut Random, place: &Place<'_>) -> Act {
    let (command, symbol) = (by(place.account), SymbolId(place.symbol));
    match random.below(9) {
        0 => {
            let symbol = if random.once_in(2) { SymbolId(EVERY) } else { symbol };
            let scope = random.pick(&[1, 2]);
            send(&MassCancel { command, symbol, scope, ..Default::default() }, symbol)
        }
        1 => send(&ExpireAll { symbol, ..Default::default() }, symbol),
        _ => send(&CancelAll { command, symbol, ..Default::default() }, symbol),
    }
}

/// An operator does something, most of which is soon undone.
fn operated(random: &mut Random, place: &Place<'_>) -> Act {
    let (account, symbol) = (AccountId(place.account), SymbolId(place.symbol));
    match random.below(5) {
        0 => {
            let killed = u8::from(random.once_in(4));
            order(&KillAccount { account, killed, ..Default::default() })
        }
        1 => order(&SetAccount {
            account,
            flags: ACCOUNT_CAN_TRADE,
            permissions: PERMISSION_SPOT,
            self_trade_prevention: random.pick(&[0, 1, 2, 3, 4]),
            ..Default::default()
        }),
        2 | 3 => {
            let halts = random.once_in(4);
            let status = if halts { SymbolStatus::Halt } else { SymbolStatus::Trading };
            order(&SetSymbolStatus { symbol, status: status.to_wire(), ..Default::default() })
        }
        _ => {
            let mut rate = || random.pick(&[0, 1, 100_000, WHOLE / 7, WHOLE / 2]);
            let [maker_rate, taker_rate, buyer_rate, seller_rate] = [(); 4].map(|()| rate());
            let symbol = if random.once_in(2) { symbol } else { SymbolId(EVERY) };
            order(&SetFees {
                account,
                symbol,
                maker_rate,
                taker_rate,
                buyer_rate,
                seller_rate,
                ..Default::default()
            })
        }
    }
}
