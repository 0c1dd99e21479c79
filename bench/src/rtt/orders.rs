//! Round trips through the engine, one at a time: a LIMIT order that rests, then its cancel; and one that takes an
//! order which rests. Called by [`super::run`] and [`crate::records`], and, on a schedule, by [`super::run`] and
//! [`crate::hostile`].

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
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

/// Before an order is due the thread sleeps no closer to it than this, because waking up takes some 60 µs. What is left
/// of it is not slept: of an interval of no more than this, nothing.
const WAKE_UP_MARGIN: Duration = Duration::from_micros(100);

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
            let [placing, cancelling] = self.place_and_cancel(None)?;
            if trip >= warm_up {
                orders.record(placing);
                cancels.record(cancelling);
            }
        }
        Ok(())
    }

    /// Takes `warm_up + trips` orders that rest, each in whole, the first `warm_up` unrecorded. `maker`, a session of
    /// another account, has placed the one that is taken when the time begins: placing it is not timed, telling the
    /// maker of its fill is, where the engine does that first. One order follows the other, or one is due each
    /// `interval`, and its time counts from then, also where the one before it was late.
    pub(crate) fn taking_block(
        &mut self,
        maker: &mut Self,
        side: Side,
        (warm_up, trips): (u32, u32),
        interval: Option<Duration>,
        orders: &mut Distribution,
    ) -> Result<()> {
        let resting = match side {
            Side::Buy => Side::Sell,
            Side::Sell => Side::Buy,
        };
        let begin = Instant::now();
        for trip in 0..warm_up + trips {
            interrupt::check()?;
            maker.trip(&mut order(maker.key, resting), Expected::Rests)?;
            let due = interval.map(|interval| begin + interval * trip);
            if let Some(due) = due {
                wait_until(due);
            }
            let ([sent, filled], _) = self.trip(&mut order(self.key, side), Expected::Filled)?;
            if trip >= warm_up {
                orders.record(nanoseconds(filled.saturating_duration_since(due.unwrap_or(sent))));
            }
        }
        Ok(())
    }

    /// Places and cancels `warm_up + trips` orders, one each `interval`, the first `warm_up` unrecorded. An order's
    /// time counts from when it was due, also where the one before it was late; between two of them this thread
    /// sleeps for the most part.
    pub(crate) fn scheduled_block(
        &mut self,
        warm_up: u32,
        trips: u32,
        interval: Duration,
        orders: &mut Distribution,
    ) -> Result<()> {
        let begin = Instant::now();
        for trip in 0..warm_up + trips {
            let due = begin + interval * trip;
            wait_until(due);
            let [placing, _] = self.place_and_cancel(Some(due))?;
            if trip >= warm_up {
                orders.record(placing);
            }
        }
        Ok(())
    }

    /// Places an order and cancels it: how long each took, ns, the first from when it was due, if it was.
    fn place_and_cancel(&mut self, due: Option<Instant>) -> Result<[u64; 2]> {
        interrupt::check()?;
        let ([sent, placed], id) = self.trip(&mut order(self.key, Side::Buy), Expected::Rests)?;
        let (cancelling, canceled) = self.trip(&mut cancel(self.key, id), Expected::Cancelled)?;
        anyhow::ensure!(canceled == id, "order {canceled} was cancelled instead of {id}");
        let placing = placed.saturating_duration_since(due.unwrap_or(sent));
        Ok([placing, cancelling[1] - cancelling[0]].map(nanoseconds))
    }

    /// Sends a command and waits for its terminal reply, which must be the expected one: when it was sent, when that
    /// was there, and the order that it is about.
    fn trip<C: ClientCommand + Message>(
        &mut self,
        command: &mut C,
        expected: Expected,
    ) -> Result<([Instant; 2], OrderId)> {
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
            let times = [begin, Instant::now()];
            let id = expected.order(&reply).with_context(|| C::NAME)?;
            return Ok((times, id));
        }
    }
}

/// What a terminal reply must say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Expected {
    Rests,
    Filled,
    Cancelled,
}

impl Expected {
    /// The order that the reply is about, if it says that.
    fn order(self, reply: &Reply) -> Result<OrderId> {
        let says = |status: u8, wanted: OrderStatus| status == wanted.to_wire();
        match (self, reply.event.event()?) {
            (Self::Rests, Event::OrderResult(result)) if says(result.status, OrderStatus::New) => {
                Ok(result.order_id)
            }
            (Self::Filled, Event::OrderResult(result))
                if says(result.status, OrderStatus::Filled) =>
            {
                Ok(result.order_id)
            }
            (Self::Rests, Event::OrderOpened(opened)) => Ok(opened.order_id),
            (Self::Filled, Event::OrderFilled(filled)) => Ok(filled.order_id),
            (Self::Cancelled, Event::OrderCanceled(canceled)) => Ok(canceled.order_id),
            (Self::Cancelled, Event::OrderClosed(closed)) => Ok(closed.order_id),
            (_, other) => bail!("the engine answered {other:?} in the place of {self:?}"),
        }
    }
}

pub(super) fn wait_until(due: Instant) {
    let left = due.saturating_duration_since(Instant::now());
    if left > WAKE_UP_MARGIN {
        std::thread::sleep(left - WAKE_UP_MARGIN);
    }
    while Instant::now() < due {
        std::hint::spin_loop();
    }
}
