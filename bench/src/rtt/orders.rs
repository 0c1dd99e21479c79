//! Round trips through the engine, one at a time: a LIMIT order that rests, then its cancel. Called
//! by [`super::run`] and [`crate::records`].

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use touchline_protocol::client::{Client, ClientCommand, Reply};
use touchline_protocol::message::Message;
use touchline_protocol::message::decode::Event;
use touchline_protocol::message::enums::{OrderStatus, Side};
use touchline_protocol::units::{KeyId, OrderId};

use crate::engine::Engine;
use crate::interrupt;
use crate::latency::Distribution;
use crate::machine::nanoseconds;
use crate::orders::{cancel, order};

/// Longest wait for a terminal reply.
const LIMIT: Duration = Duration::from_secs(10);

/// A trader's session.
pub(crate) struct Trader {
    client: Client,
    key: KeyId,
}

impl Trader {
    /// One that asks for the `LOGON_*` bits `flags`, by which its session is named, too.
    pub(crate) fn open(engine: &Engine, flags: u8) -> Result<Self> {
        let client = engine.prompt_trader(&format!("bench-{flags}"), flags)?;
        Ok(Self::over(client, engine.key()))
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
            let (placing, id) = self.trip(&mut order(self.key, Side::Buy))?;
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
        let mut reply = Reply::default();
        let begin = Instant::now();
        self.client.sender().send(command)?;
        loop {
            let receiver = self.client.receiver();
            if !receiver.poll_into(&mut reply)? {
                interrupt::check()?;
                let left = LIMIT.saturating_sub(begin.elapsed());
                anyhow::ensure!(!left.is_zero(), "no terminal reply within {LIMIT:?}");
                receiver.wait(left);
                continue;
            }
            if !reply.is_terminal() {
                continue;
            }
            let took = begin.elapsed();
            return match reply.event.event()? {
                Event::OrderResult(result) if result.status == OrderStatus::New.to_wire() => {
                    Ok((took, result.order_id))
                }
                Event::OrderOpened(opened) => Ok((took, opened.order_id)),
                Event::OrderCanceled(canceled) => Ok((took, canceled.order_id)),
                Event::OrderClosed(closed) => Ok((took, closed.order_id)),
                other => bail!("the engine answered {} with {other:?}", C::NAME),
            };
        }
    }
}
