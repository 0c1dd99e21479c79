//! What the engine did with a flow, by its replies alone: the book after every row, whether each
//! command had the outcome that the recording asks for, and a fingerprint of all events. Called by
//! [`crate::replay`] after a pass.

use std::collections::{BTreeMap, HashMap};

use touchline_protocol::client::Reply;
use touchline_protocol::message::decode::Event;
use touchline_protocol::message::enums::{OrderStatus, Side, TimeInForce};
use touchline_protocol::message::event::{
    ENVELOPE_TERMINAL, OrderAccepted, OrderCanceled, OrderReduced, OrderResult, Trade,
};
use touchline_protocol::units::{OrderId, SessionId, UNITS_PER_WHOLE};

use super::drive::PRICE_UNITS;
use crate::recording::book::{Resting, Top};
use crate::recording::flow::{Action, Flow, Step};

/// Unexpected outcomes that are told one by one.
const TOLD_MAX: usize = 20;

/// What a pass came to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Observation {
    /// Top of book after each row.
    pub tops: Vec<Top>,
    /// IOC orders that were filled by exactly the order that the recording names.
    pub hits: usize,
    /// Trades.
    pub trades: usize,
    /// Commands whose outcome was not the expected one.
    pub unexpected: usize,
    /// The first of them, in words.
    pub told: Vec<String>,
    /// Fingerprint of all events in order. What depends on time or session is left out, so every pass
    /// over the same flow has the same.
    pub fingerprint: u64,
}

/// An order as the engine's events tell it.
#[derive(Clone, Copy)]
struct Order {
    side: Side,
    price: i64,
    quantity: i64,
    executed: i64,
    /// False until the placement's terminal reply says that it rests.
    rests: bool,
}

/// The events of one command.
#[derive(Default)]
struct Outcome {
    accepted: Option<OrderAccepted>,
    trades: Vec<Trade>,
    result: Option<OrderResult>,
    canceled: Option<OrderCanceled>,
    reduced: Option<OrderReduced>,
    other: Option<String>,
    terminal: bool,
}

struct Observer<'a> {
    flow: &'a Flow,
    orders: HashMap<OrderId, Order>,
    /// Open quantity by price.
    buys: BTreeMap<i64, i64>,
    sells: BTreeMap<i64, i64>,
    /// The engine's number of each order of the flow.
    ids: Vec<Option<OrderId>>,
    observation: Observation,
    hash: Fingerprint,
}

/// Goes through the replies to `flow` in the order in which they came.
#[must_use]
pub fn observe(flow: &Flow, replies: &[Reply]) -> Observation {
    let mut observer = Observer {
        flow,
        orders: HashMap::new(),
        buys: BTreeMap::new(),
        sells: BTreeMap::new(),
        ids: vec![None; flow.exchange_ids.len()],
        observation: Observation::default(),
        hash: Fingerprint::default(),
    };
    let mut rest = replies;
    for (index, step) in flow.steps.iter().enumerate() {
        // Rows before the step's own left the book as it stood.
        observer.fill_tops(step.row);
        let outcome = observer.outcome(index, &mut rest);
        observer.judge(index, step, &outcome);
    }
    if !rest.is_empty() {
        observer.tell(format!("{} replies behind the last command's", rest.len()));
    }
    observer.fill_tops(flow.tops.len());
    observer.observation.fingerprint = observer.hash.0;
    observer.observation
}

impl Observer<'_> {
    /// The present top of book stands after every row before `row`.
    fn fill_tops(&mut self, row: usize) {
        if self.observation.tops.len() < row {
            let top = self.top();
            self.observation.tops.resize(row, top);
        }
    }

    fn top(&self) -> Top {
        let level = |best: Option<(&i64, &i64)>| {
            best.map_or((0, 0), |(price, quantity)| {
                (price / PRICE_UNITS, quantity / UNITS_PER_WHOLE)
            })
        };
        let (ask_price, ask_size) = level(self.sells.first_key_value());
        let (bid_price, bid_size) = level(self.buys.last_key_value());
        Top { ask_price, ask_size, bid_price, bid_size }
    }

    /// Takes the replies to the command `index` off the front of `rest` and carries them out on the
    /// book.
    fn outcome(&mut self, index: usize, rest: &mut &[Reply]) -> Outcome {
        let mut outcome = Outcome::default();
        while let Some((reply, behind)) = rest.split_first()
            && reply.envelope.correlation == index as u64
            && !outcome.terminal
        {
            *rest = behind;
            outcome.terminal = reply.envelope.flags & ENVELOPE_TERMINAL != 0;
            match reply.event.event() {
                Ok(event) => self.event(&event, &mut outcome),
                Err(error) => outcome.other = Some(error.to_string()),
            }
        }
        outcome
    }

    fn event(&mut self, event: &Event<'_>, outcome: &mut Outcome) {
        self.hash.event(event);
        match event {
            Event::OrderAccepted(accepted) => {
                if let Some(side) = Side::from_wire(accepted.side) {
                    let OrderAccepted { price, quantity, .. } = **accepted;
                    let order = Order { side, price, quantity, executed: 0, rests: false };
                    self.orders.insert(accepted.order_id, order);
                }
                outcome.accepted = Some(**accepted);
            }
            Event::Trade(trade) => {
                self.observation.trades += 1;
                self.execute(trade.maker_order_id, trade.quantity);
                self.execute(trade.taker_order_id, trade.quantity);
                outcome.trades.push(**trade);
            }
            Event::OrderResult(result) => {
                let open = OrderStatus::from_wire(result.status).is_some_and(OrderStatus::is_open);
                if open && let Some(order) = self.orders.get_mut(&result.order_id) {
                    order.rests = true;
                    let (side, price, left) =
                        (order.side, order.price, order.quantity - order.executed);
                    self.change_level(side, price, left);
                }
                outcome.result = Some(**result);
            }
            Event::OrderCanceled(canceled) => {
                if let Some(order) = self.orders.remove(&canceled.order_id) {
                    self.change_level(order.side, order.price, order.executed - order.quantity);
                }
                outcome.canceled = Some(**canceled);
            }
            Event::OrderReduced(reduced) => {
                if let Some(order) = self.orders.get_mut(&reduced.order_id) {
                    let change = reduced.quantity - order.quantity;
                    order.quantity = reduced.quantity;
                    let (side, price) = (order.side, order.price);
                    self.change_level(side, price, change);
                }
                outcome.reduced = Some(**reduced);
            }
            Event::Rejected(rejected) => {
                outcome.other =
                    Some(format!("rejected for reason {} ({})", rejected.reason, rejected.detail));
            }
            other => outcome.other = Some(format!("an unexpected {}", other.name())),
        }
    }

    /// Books a fill of one of the two orders of a trade.
    fn execute(&mut self, id: OrderId, quantity: i64) {
        let Some(order) = self.orders.get_mut(&id) else { return };
        order.executed += quantity;
        let (side, price, rests, done) =
            (order.side, order.price, order.rests, order.executed >= order.quantity);
        if rests {
            self.change_level(side, price, -quantity);
        }
        if done && rests {
            self.orders.remove(&id);
        }
    }

    fn change_level(&mut self, side: Side, price: i64, change: i64) {
        let levels = match side {
            Side::Buy => &mut self.buys,
            Side::Sell => &mut self.sells,
        };
        let quantity = levels.entry(price).or_default();
        *quantity += change;
        if *quantity == 0 {
            levels.remove(&price);
        }
    }

    /// Holds the outcome of a command against what the flow asks for.
    fn judge(&mut self, index: usize, step: &Step, outcome: &Outcome) {
        let known = self.ids[step.order];
        let verdict = match step.action {
            Action::Add(resting) => {
                self.ids[step.order] = outcome.accepted.map(|accepted| accepted.order_id);
                judge_add(outcome, resting)
            }
            Action::Execute { resting } => {
                let verdict = judge_execution(outcome, resting, known);
                self.observation.hits += usize::from(verdict.is_ok());
                verdict
            }
            Action::Cancel { size } => judge_cancel(outcome, size, known),
            Action::Reduce { .. } => judge_reduction(outcome, known),
        };
        let verdict = match &outcome.other {
            Some(other) => Err(other.clone()),
            None if !outcome.terminal => Err("no terminal reply".to_owned()),
            None => verdict,
        };
        if let Err(problem) = verdict {
            let order = self.flow.exchange_ids[step.order];
            let row = step.row + 1;
            self.tell(format!(
                "row {row}, command {index}, order {order}, {:?}: {problem}",
                step.action
            ));
        }
    }

    fn tell(&mut self, problem: String) {
        self.observation.unexpected += 1;
        if self.observation.told.len() < TOLD_MAX {
            self.observation.told.push(problem);
        }
    }
}

fn expect(holds: bool, problem: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(problem()) }
}

/// The order was accepted as it was sent.
fn judge_accepted(
    outcome: &Outcome,
    sent: Resting,
    time_in_force: TimeInForce,
) -> Result<OrderId, String> {
    let accepted = outcome.accepted.ok_or("not accepted")?;
    let same = accepted.side == sent.side.to_wire()
        && accepted.price == sent.price * PRICE_UNITS
        && accepted.quantity == sent.size * UNITS_PER_WHOLE
        && accepted.time_in_force == time_in_force.to_wire();
    expect(same, || format!("accepted as {accepted:?}"))?;
    Ok(accepted.order_id)
}

fn judge_add(outcome: &Outcome, sent: Resting) -> Result<(), String> {
    let id = judge_accepted(outcome, sent, TimeInForce::Gtc)?;
    expect(outcome.trades.is_empty(), || format!("it traded: {:?}", outcome.trades))?;
    let result = outcome.result.ok_or("no result")?;
    let rests = result.order_id == id && result.status == OrderStatus::New.to_wire();
    expect(rests, || format!("it does not rest: {result:?}"))
}

fn judge_execution(
    outcome: &Outcome,
    resting: Resting,
    maker: Option<OrderId>,
) -> Result<(), String> {
    let sent = Resting { side: resting.side.opposite(), ..resting };
    let id = judge_accepted(outcome, sent, TimeInForce::Ioc)?;
    let [trade] = outcome.trades[..] else {
        return Err(format!("{} trades: {:?}", outcome.trades.len(), outcome.trades));
    };
    let exact = Some(trade.maker_order_id) == maker
        && trade.taker_order_id == id
        && trade.price == resting.price * PRICE_UNITS
        && trade.quantity == resting.size * UNITS_PER_WHOLE;
    expect(exact, || format!("it hit {} and not {maker:?}: {trade:?}", trade.maker_order_id))?;
    let result = outcome.result.ok_or("no result")?;
    let filled = result.order_id == id && result.status == OrderStatus::Filled.to_wire();
    expect(filled, || format!("it is not filled: {result:?}"))
}

fn judge_cancel(outcome: &Outcome, size: i64, known: Option<OrderId>) -> Result<(), String> {
    let canceled = outcome.canceled.ok_or("not cancelled")?;
    let open = canceled.quantity - canceled.executed_quantity;
    let exact = Some(canceled.order_id) == known && open == size * UNITS_PER_WHOLE;
    expect(exact, || format!("cancelled as {canceled:?}"))
}

fn judge_reduction(outcome: &Outcome, known: Option<OrderId>) -> Result<(), String> {
    // How much is left shows in the top of book, row by row.
    let reduced = outcome.reduced.ok_or("not reduced")?;
    expect(Some(reduced.order_id) == known, || format!("reduced was {reduced:?}"))
}

/// FNV-1a over 64-bit words: fast, the same everywhere, and no defence against intent.
#[derive(Clone, Copy)]
struct Fingerprint(u64);

impl Default for Fingerprint {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fingerprint {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::OrderAccepted(accepted) => {
                let same = OrderAccepted { session: SessionId::ENGINE, ..**accepted };
                self.bytes(Event::OrderAccepted(&same).bytes());
            }
            Event::OrderResult(result) => {
                // Order counts age with time.
                let same = OrderResult { order_count_0: 0, order_count_1: 0, ..**result };
                self.bytes(Event::OrderResult(&same).bytes());
            }
            other => self.bytes(other.bytes()),
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        // Every message is a multiple of eight bytes long.
        for word in bytes.as_chunks::<8>().0 {
            self.0 = (self.0 ^ u64::from_le_bytes(*word)).wrapping_mul(0x0100_0000_01b3);
            self.0 ^= self.0 >> 32;
        }
    }
}

#[cfg(test)]
mod tests;
