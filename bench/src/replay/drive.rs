//! Feeds a flow to the engine through a trader's session and keeps every reply. Called by
//! [`crate::replay`]; what the replies say is judged afterwards by [`super::observation`].
//!
//! Commands leave in the order of the flow. One that refers to an order whose number the engine has
//! not told yet waits for that reply, and so does all behind it; a reduction, which states the new
//! total quantity, waits for the answers to everything before it about the same order.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use touchline_protocol::client::{Client, Receiver, Reply, SendError, Sender};
use touchline_protocol::message::command::{CancelOrder, CommandHeader, NewOrder, ReduceOrder};
use touchline_protocol::message::decode::Event;
use touchline_protocol::message::enums::{OrderType, Side, TimeInForce};
use touchline_protocol::message::event::{ENVELOPE_TERMINAL, ENVELOPE_UNSOLICITED};
use touchline_protocol::units::{KeyId, OrderId, UNITS_PER_WHOLE};

use crate::engine::SYMBOL;
use crate::interrupt;
use crate::latency::Distribution;
use crate::machine::nanoseconds;
use crate::recording::book::Resting;
use crate::recording::flow::{Action, Flow};

/// 10⁻⁸ units per unit of a recorded price.
pub const PRICE_UNITS: i64 = UNITS_PER_WHOLE / 10_000;

/// Most commands under way: their replies, at most seven slots each, fit the reply ring.
const UNDER_WAY_MAX: usize = 1024;

/// Longest silence of the engine while commands are under way.
const SILENCE_LIMIT: Duration = Duration::from_secs(10);

/// Before a scheduled time the thread sleeps no closer to it than this, because waking up takes time.
const WAKE_UP_MARGIN: Duration = Duration::from_micros(200);

/// When commands leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// As soon as there is room: many under way.
    Saturate,
    /// Each after the terminal reply to the one before.
    OneByOne,
    /// On a schedule, whatever happened to those before: commands per second.
    Rate(u32),
}

/// How a pass went.
#[derive(Debug)]
pub struct Timing {
    /// From the first command to the last terminal reply.
    pub elapsed: Duration,
    /// Command to terminal reply; with [`Pace::Rate`] from the time at which the command was due.
    /// Empty with [`Pace::Saturate`], where it would only tell the length of the queue.
    pub latency: Distribution,
}

/// What the engine told about an order.
#[derive(Clone, Copy, Default)]
struct Known {
    id: Option<OrderId>,
    /// Total quantity, 10⁻⁸.
    quantity: i64,
    /// Commands under way that refer to it.
    under_way: u32,
}

struct Driver<'a> {
    flow: &'a Flow,
    pace: Pace,
    key: KeyId,
    sender: Sender,
    receiver: Receiver,
    replies: &'a mut Vec<Reply>,
    orders: Vec<Known>,
    /// Index of the order by the engine's number, for reductions.
    by_id: HashMap<OrderId, usize>,
    begin: Instant,
    next: usize,
    done: usize,
    /// When the last command began to leave.
    sent_at: Instant,
    heard_at: Instant,
    latency: Distribution,
}

/// Sends the whole flow and puts every reply into `replies`, which is emptied first (and whose memory
/// is reused, so that no pass pays for it).
///
/// # Errors
/// If the session ends, the engine falls silent or events are missing.
pub fn drive(
    flow: &Flow,
    client: Client,
    key: KeyId,
    pace: Pace,
    replies: &mut Vec<Reply>,
) -> Result<Timing> {
    replies.clear();
    let (sender, receiver) = client.split();
    let now = Instant::now();
    let mut driver = Driver {
        flow,
        pace,
        key,
        sender,
        receiver,
        replies,
        orders: vec![Known::default(); flow.exchange_ids.len()],
        by_id: HashMap::with_capacity(flow.exchange_ids.len()),
        begin: now,
        next: 0,
        done: 0,
        sent_at: now,
        heard_at: now,
        latency: Distribution::default(),
    };
    driver.run()?;
    let elapsed = driver.begin.elapsed();
    Ok(Timing { elapsed, latency: driver.latency })
}

impl Driver<'_> {
    fn run(&mut self) -> Result<()> {
        self.begin = Instant::now();
        while self.done < self.flow.steps.len() {
            interrupt::check()?;
            let heard = self.receive()?;
            let sent = self.send()?;
            if !heard && !sent {
                self.idle()?;
            }
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<bool> {
        let before = self.replies.len();
        let mut reply = Reply::default();
        while self.receiver.poll_into(&mut reply)? {
            self.take(reply)?;
        }
        Ok(self.replies.len() > before)
    }

    fn take(&mut self, reply: Reply) -> Result<()> {
        if reply.envelope.flags & ENVELOPE_UNSOLICITED != 0 {
            return Ok(());
        }
        let index = usize::try_from(reply.envelope.correlation)
            .ok()
            .filter(|&index| index < self.next)
            .with_context(|| format!("a reply to no command: {:?}", reply.envelope))?;
        let order = self.flow.steps[index].order;
        match reply.event.event()? {
            Event::OrderAccepted(accepted)
                if accepted.time_in_force == TimeInForce::Gtc.to_wire() =>
            {
                let known = &mut self.orders[order];
                known.id = Some(accepted.order_id);
                known.quantity = accepted.quantity;
                self.by_id.insert(accepted.order_id, order);
            }
            Event::OrderReduced(reduced) => {
                if let Some(&order) = self.by_id.get(&reduced.order_id) {
                    self.orders[order].quantity = reduced.quantity;
                }
            }
            Event::Gap(gap) => bail!("events from position {} on did not fit the ring", gap.from),
            _ => {}
        }
        if reply.envelope.flags & ENVELOPE_TERMINAL != 0 {
            self.terminal(index, order);
        }
        self.replies.push(reply);
        Ok(())
    }

    fn terminal(&mut self, index: usize, order: usize) {
        self.done += 1;
        self.orders[order].under_way = self.orders[order].under_way.saturating_sub(1);
        let since = match self.pace {
            Pace::Saturate => return,
            Pace::OneByOne => self.sent_at,
            Pace::Rate(rate) => self.due(index, rate),
        };
        let now = Instant::now();
        self.latency.record(nanoseconds(now.saturating_duration_since(since)));
    }

    /// When the command `index` is to leave.
    fn due(&self, index: usize, rate: u32) -> Instant {
        let nanoseconds = index as u128 * 1_000_000_000 / u128::from(rate.max(1));
        self.begin + Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }

    /// Sends what may leave now; returns whether anything did.
    fn send(&mut self) -> Result<bool> {
        let first = self.next;
        let under_way_max = if self.pace == Pace::OneByOne { 1 } else { UNDER_WAY_MAX };
        let now = Instant::now();
        while self.next < self.flow.steps.len()
            && self.next - self.done < under_way_max
            && self.is_due(now)
        {
            match self.stage() {
                Ok(true) => self.next += 1,
                Ok(false) | Err(SendError::Full) => break,
                Err(error) => return Err(error.into()),
            }
        }
        if self.next == first {
            return Ok(false);
        }
        self.sender.publish();
        // Before the command was written: that is a part of its way, as it is in every round trip.
        self.sent_at = now;
        self.heard_at = now;
        Ok(true)
    }

    fn is_due(&self, now: Instant) -> bool {
        match self.pace {
            Pace::Saturate | Pace::OneByOne => true,
            Pace::Rate(rate) => self.due(self.next, rate) <= now,
        }
    }

    /// Writes the next command into the ring; false if it must wait for a reply first.
    fn stage(&mut self) -> Result<bool, SendError> {
        let step = self.flow.steps[self.next];
        let known = self.orders[step.order];
        let command =
            CommandHeader { correlation: self.next as u64, key_id: self.key, ..Default::default() };
        let id = match (step.action, known.id) {
            (Action::Add(_) | Action::Execute { .. }, id) => id.unwrap_or_default(),
            (Action::Cancel { .. }, Some(id)) => id,
            (Action::Reduce { .. }, Some(id)) if known.under_way == 0 => id,
            (Action::Cancel { .. } | Action::Reduce { .. }, _) => return Ok(false),
        };
        match step.action {
            Action::Add(resting) => {
                let mut order = limit(command, resting.side, resting, TimeInForce::Gtc);
                self.sender.stage(&mut order)?;
            }
            Action::Execute { resting } => {
                let side = resting.side.opposite();
                let mut order = limit(command, side, resting, TimeInForce::Ioc);
                self.sender.stage(&mut order)?;
            }
            Action::Cancel { .. } => {
                let mut cancel =
                    CancelOrder { command, symbol: SYMBOL, order_id: id, ..Default::default() };
                self.sender.stage(&mut cancel)?;
            }
            Action::Reduce { size } => {
                let mut reduce = ReduceOrder {
                    command,
                    symbol: SYMBOL,
                    order_id: id,
                    new_quantity: known.quantity.saturating_sub(size * UNITS_PER_WHOLE),
                    ..Default::default()
                };
                self.sender.stage(&mut reduce)?;
            }
        }
        self.orders[step.order].under_way += 1;
        Ok(true)
    }

    /// Waits for a reply, or for the next command's time.
    fn idle(&mut self) -> Result<()> {
        let under_way = self.next > self.done;
        if under_way && self.heard_at.elapsed() > SILENCE_LIMIT {
            bail!(
                "no reply within {SILENCE_LIMIT:?} although {} commands are under way",
                self.next - self.done
            );
        }
        let left = match self.pace {
            Pace::Rate(rate) if self.next < self.flow.steps.len() => {
                self.due(self.next, rate).saturating_duration_since(Instant::now())
            }
            _ => Duration::ZERO,
        };
        if left.is_zero() {
            // The next command is due: either it waits for a reply, or its time has just come.
            if under_way {
                self.receiver.wait(SILENCE_LIMIT);
            }
        } else if left > WAKE_UP_MARGIN {
            self.receiver.wait(left - WAKE_UP_MARGIN);
        } else {
            std::thread::yield_now();
        }
        Ok(())
    }
}

fn limit(command: CommandHeader, side: Side, of: Resting, time_in_force: TimeInForce) -> NewOrder {
    NewOrder {
        command,
        symbol: SYMBOL,
        side: side.to_wire(),
        order_type: OrderType::Limit.to_wire(),
        time_in_force: time_in_force.to_wire(),
        price: of.price * PRICE_UNITS,
        quantity: of.size * UNITS_PER_WHOLE,
        ..Default::default()
    }
}
