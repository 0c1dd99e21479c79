//! What an account has, for a session that asks: its open orders and balances as messages, as of the last
//! transaction. Called by [`super::Duty`] for a letter of the gateway, between two transactions.

use touchline_core::{Core, OpenOrder};
use touchline_protocol::message::Message;
use touchline_protocol::message::decode::{ENVELOPED_BYTES_MAX, enclose};
use touchline_protocol::message::enums::RejectReason;
use touchline_protocol::message::event::{ENVELOPE_TERMINAL, Envelope, Rejected};
use touchline_protocol::message::stream::{BalanceState, OrderState, StateEnd, StateRequest};
use touchline_protocol::units::{AccountId, AssetId, Position, SessionId};

/// Open orders that are told of at the most: the newest are left out. They hold the duty thread up for some 20 µs, and
/// for some 100 µs where nothing of the account is in the cache; besides them each asset and all pending work are looked
/// at. [`super::Duty`] answers one request in a turn.
const ORDERS_MAX: usize = 1000;

/// Balances that there is room for at once: few accounts have more, of however many assets.
const BALANCES_USUAL: usize = 64;

/// The messages, one behind the other, of the state behind the transaction that ends at `position`.
pub(super) fn messages(
    core: &Core,
    account: AccountId,
    correlation: u64,
    position: Position,
) -> Vec<u8> {
    // One that is taking in parts is open as well.
    let taking = || core.taking_orders().filter(|order| order.account == account);
    let open = core.open_orders_total(account) + taking().count() as u32;
    let told = (open as usize).min(ORDERS_MAX);
    let mut messages = Vec::with_capacity(
        told * size_of::<OrderState>()
            + (core.counts().assets as usize).min(BALANCES_USUAL) * size_of::<BalanceState>()
            + size_of::<StateEnd>(),
    );
    let mut end = StateEnd { correlation, position, ..Default::default() };
    for order in core.open_orders_of(account).chain(taking()).take(ORDERS_MAX) {
        messages.extend_from_slice(bytemuck::bytes_of(&order_state(&order, correlation)));
        end.orders += 1;
    }
    end.omitted = open.saturating_sub(end.orders);
    for asset in (0..core.counts().assets).map(AssetId) {
        let Some(balance) = core.balance(account, asset) else { continue };
        if balance.free.0 != 0 || balance.locked.0 != 0 {
            let (free, locked) = (balance.free.0, balance.locked.0);
            let told = BalanceState { correlation, asset, free, locked, ..Default::default() };
            messages.extend_from_slice(bytemuck::bytes_of(&told));
            end.balances += 1;
        }
    }
    messages.extend_from_slice(bytemuck::bytes_of(&end));
    messages
}

/// In place of them for a session that asks more often than it may send commands.
pub(super) fn refusal(
    session: SessionId,
    correlation: u64,
    (position, time_ns): (Position, u64),
) -> Vec<u8> {
    let rejected = Rejected {
        reason: RejectReason::RateExceeded.to_wire(),
        template_id: StateRequest::TEMPLATE,
        ..Default::default()
    };
    let flags = ENVELOPE_TERMINAL;
    let envelope =
        Envelope { correlation, position, time_ns, session, flags, ..Default::default() };
    let mut enclosed = [0; ENVELOPED_BYTES_MAX];
    let length = enclose(&envelope, bytemuck::bytes_of(&rejected), &mut enclosed)
        .expect("a rejection is no larger than the largest event");
    enclosed[..length].to_vec()
}

fn order_state(order: &OpenOrder, correlation: u64) -> OrderState {
    OrderState {
        correlation,
        order_id: order.order_id,
        symbol: order.symbol,
        session: order.session,
        side: order.side.to_wire(),
        order_type: order.order_type.to_wire(),
        time_in_force: order.time_in_force.to_wire(),
        price: order.price.0,
        stop_price: order.stop_price.0,
        quantity: order.quantity.0,
        remaining: order.remaining.0,
        executed_quote: order.executed_quote.0,
        locked: order.locked.0,
        order_list_id: order.order_list_id,
        client_order_id: order.client_order_id,
        ..Default::default()
    }
}
