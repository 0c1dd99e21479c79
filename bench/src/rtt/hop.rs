//! Round trips through the engine by way of another thread, as an adapter stands between its clients and
//! the engine: a ring to that thread, a session from there, and back. Called by [`super::run`].

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use touchline_protocol::client::{Client, Reply};
use touchline_protocol::message::command::{CancelOrder, LOGON_BRIEF, NewOrder};
use touchline_protocol::message::decode::{self, Command, Event};
use touchline_protocol::message::enums::Side;
use touchline_protocol::message::event::Done;
use touchline_protocol::ring::SessionEnd;
use touchline_protocol::units::{KeyId, OrderId};
use touchline_protocol::wait::WaitStrategy;

use super::echo::{End, capacities};
use super::orders::wait_until;
use crate::engine::Engine;
use crate::interrupt;
use crate::latency::Distribution;
use crate::machine::nanoseconds;
use crate::orders::{cancel, order};

/// Longest wait for a terminal reply.
const LIMIT: Duration = Duration::from_secs(10);

/// Says that nothing more comes: a message without a block.
const END: [u8; 8] = [0; 8];

/// The client's side.
pub(super) struct Hop {
    end: End,
    key: KeyId,
    thread: JoinHandle<Result<()>>,
}

impl Hop {
    pub(super) fn start(engine: &Engine, wait: WaitStrategy) -> Result<Self> {
        let (near, descriptors) = SessionEnd::create(capacities()?)?;
        let far = End::new(SessionEnd::attach(&descriptors, capacities()?)?, wait);
        // As the adapter's link is.
        let client = engine.prompt_trader("bench-hop", LOGON_BRIEF)?;
        let thread = thread::Builder::new().name("hop".into()).spawn(move || pass(client, far))?;
        Ok(Self { end: End::new(near, wait), key: engine.key(), thread })
    }

    /// Places and cancels `warm_up + trips` orders; the placing of all but the first `warm_up` is recorded. One order
    /// follows the other, or one is due each `interval`, and its time counts from then.
    pub(super) fn block(
        &mut self,
        (warm_up, trips): (u32, u32),
        interval: Option<Duration>,
        into: &mut Distribution,
    ) -> Result<()> {
        let first = Instant::now();
        for trip in 0..warm_up + trips {
            interrupt::check()?;
            let begin = match interval {
                Some(interval) => {
                    let due = first + interval * trip;
                    wait_until(due);
                    due
                }
                None => Instant::now(),
            };
            let id = self.trip(bytemuck::bytes_of(&order(self.key, Side::Buy)))?;
            let took = begin.elapsed();
            let canceled = self.trip(bytemuck::bytes_of(&cancel(self.key, id)))?;
            ensure!(canceled == id, "order {canceled} was cancelled instead of {id}");
            if trip >= warm_up {
                into.record(nanoseconds(took));
            }
        }
        Ok(())
    }

    fn trip(&mut self, command: &[u8]) -> Result<OrderId> {
        self.end.send(command)?;
        let length = self.end.receive().context("the thread in between does not answer")?;
        match decode::event(self.end.buffer.bytes(length))? {
            Event::Done(done) => Ok(OrderId(done.id)),
            other => bail!("{} came back", other.name()),
        }
    }

    /// Ends the thread and its session.
    pub(super) fn stop(mut self) -> Result<()> {
        self.end.send(&END)?;
        self.thread.join().map_err(|_| anyhow!("the thread in between panicked"))?
    }
}

/// Is the thread in between: one command after the other to the engine, and the number of its order back.
fn pass(mut client: Client, mut end: End) -> Result<()> {
    loop {
        let length = end.receive()?;
        let bytes = end.buffer.bytes(length);
        if bytes == END {
            return Ok(());
        }
        match decode::command(bytes)? {
            Command::NewOrder(order) => client.sender().send(&mut NewOrder { ..*order })?,
            Command::CancelOrder(cancel) => client.sender().send(&mut CancelOrder { ..*cancel })?,
            other => bail!("{} is not passed on", other.name()),
        };
        let id = answer(&mut client)?;
        end.send(bytemuck::bytes_of(&Done { id: id.0, ..Default::default() }))?;
    }
}

/// The order that the terminal reply is about.
fn answer(client: &mut Client) -> Result<OrderId> {
    let mut reply = Reply::default();
    let begin = Instant::now();
    loop {
        let receiver = client.receiver();
        if !receiver.poll_into(&mut reply)? {
            interrupt::check()?;
            let left = LIMIT.saturating_sub(begin.elapsed());
            ensure!(!left.is_zero(), "no terminal reply within {LIMIT:?}");
            receiver.wait(left);
            continue;
        }
        if reply.is_terminal() {
            return match reply.event.event()? {
                Event::OrderResult(result) => Ok(result.order_id),
                Event::OrderCanceled(canceled) => Ok(canceled.order_id),
                other => bail!("the engine answered with {other:?}"),
            };
        }
    }
}
