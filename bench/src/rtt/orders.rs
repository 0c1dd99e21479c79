//! Round trips through the engine, one at a time: a LIMIT order that rests, then its cancel. Called
//! by [`super::run`] and [`crate::records`].

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use touchline_protocol::client::{Client, ClientCommand};
use touchline_protocol::message::Message;
use touchline_protocol::message::command::{CancelOrder, CommandHeader, NewOrder};
use touchline_protocol::message::decode::Event;
use touchline_protocol::message::enums::{OrderStatus, OrderType, Side, TimeInForce};
use touchline_protocol::message::event::ENVELOPE_TERMINAL;
use touchline_protocol::units::{KeyId, OrderId, UNITS_PER_WHOLE};

use crate::engine::{Engine, SYMBOL};
use crate::interrupt;
use crate::latency::Distribution;
use crate::machine::nanoseconds;

/// Longest wait for a terminal reply.
const LIMIT: Duration = Duration::from_secs(10);

/// The price of every order, in whole units.
const PRICE: i64 = 500;

/// An order that rests.
pub(super) fn order(key: KeyId) -> NewOrder {
    NewOrder {
        command: CommandHeader { key_id: key, ..Default::default() },
        symbol: SYMBOL,
        side: Side::Buy.to_wire(),
        order_type: OrderType::Limit.to_wire(),
        time_in_force: TimeInForce::Gtc.to_wire(),
        price: PRICE * UNITS_PER_WHOLE,
        quantity: UNITS_PER_WHOLE,
        ..Default::default()
    }
}

/// Its cancel.
pub(super) fn cancel(key: KeyId, order_id: OrderId) -> CancelOrder {
    let command = CommandHeader { key_id: key, ..Default::default() };
    CancelOrder { command, symbol: SYMBOL, order_id, ..Default::default() }
}

/// A trader's session.
pub(crate) struct Trader {
    client: Client,
    key: KeyId,
}

impl Trader {
    pub(crate) fn open(engine: &Engine) -> Result<Self> {
        Ok(Self::over(engine.prompt_trader("bench")?, engine.key()))
    }

    /// Of an open session.
    pub(crate) const fn over(client: Client, key: KeyId) -> Self {
        Self { client, key }
    }

    /// Places and cancels `warm_up + trips` orders, the first `warm_up` unrecorded.
    pub(crate) fn block(
        &mut self,
        warm_up: u32,
        trips: u32,
        orders: &mut Distribution,
        cancels: &mut Distribution,
    ) -> Result<()> {
        for trip in 0..warm_up + trips {
            interrupt::check()?;
            let (placing, id) = self.trip(&mut order(self.key))?;
            let (cancelling, canceled) = self.trip(&mut cancel(self.key, id))?;
            anyhow::ensure!(canceled == id, "order {canceled} was cancelled instead of {id}");
            if trip >= warm_up {
                orders.record(nanoseconds(placing));
                cancels.record(nanoseconds(cancelling));
            }
        }
        Ok(())
    }

    /// Sends a command and waits for its terminal reply: how long it took, and the order that rests
    /// or was cancelled.
    fn trip<C: ClientCommand + Message>(&mut self, command: &mut C) -> Result<(Duration, OrderId)> {
        let begin = Instant::now();
        self.client.sender().send(command)?;
        loop {
            let receiver = self.client.receiver();
            let Some(reply) = receiver.poll()? else {
                interrupt::check()?;
                let left = LIMIT.saturating_sub(begin.elapsed());
                anyhow::ensure!(!left.is_zero(), "no terminal reply within {LIMIT:?}");
                receiver.wait(left);
                continue;
            };
            if reply.envelope.flags & ENVELOPE_TERMINAL == 0 {
                continue;
            }
            let took = begin.elapsed();
            return match reply.event.event()? {
                Event::OrderResult(result) if result.status == OrderStatus::New.to_wire() => {
                    Ok((took, result.order_id))
                }
                Event::OrderCanceled(canceled) => Ok((took, canceled.order_id)),
                other => bail!("the engine answered {} with {other:?}", C::NAME),
            };
        }
    }
}
