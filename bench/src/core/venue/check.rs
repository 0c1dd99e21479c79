//! What the whole core came to, read from its events and its books, beside what must come of the flow.
//! Called by [`super`]: [`Found`] in the pass that is not timed, [`Reading`] in those that are.

use touchline_core::{Core, Outbox};
use touchline_protocol::message::Message;
use touchline_protocol::message::decode::{self, DecodeError, Event};
use touchline_protocol::message::enums::Side;
use touchline_protocol::message::event::{OrderCanceled, OrderResult, Trade};
use touchline_protocol::units::{OrderId, SymbolId};

use super::super::flows::Flow;
use super::super::measure::judge;
use super::super::operation::{Depth, Kind, Reports, Tally};
use super::{LOT, TICK, VenueError};

/// What is read out of the events where it counts what that takes: as much as the book alone tells, folded in the
/// same way, by numbers as they stand in the events.
#[derive(Default)]
pub(super) struct Reading(Tally);

impl Reading {
    /// Takes the events of one command. Those that tell neither a fill nor an operation's end are passed over: of them
    /// the book alone tells nothing either.
    #[inline]
    pub(super) fn read(&mut self, outbox: &Outbox<'_>) {
        for bytes in outbox.events() {
            // What is malformed is missing in the end, and the checked pass has found that it is not.
            let _well_formed = self.read_event(bytes);
        }
    }

    #[inline]
    fn read_event(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        match decode::header(bytes)?.template_id {
            Trade::TEMPLATE => {
                let trade = decode::as_message::<Trade>(bytes)?;
                let [maker, taker] = [trade.maker_order_id, trade.taker_order_id];
                let quantity = trade.quantity.cast_unsigned();
                self.0.fill(maker.0 as u32, taker.0 as u32, trade.price, quantity);
            }
            OrderResult::TEMPLATE => {
                let result = decode::as_message::<OrderResult>(bytes)?;
                let open = result.quantity - result.executed_quantity;
                self.0.done(result.order_id.0 as u32, open.cast_unsigned());
            }
            OrderCanceled::TEMPLATE => {
                let canceled = decode::as_message::<OrderCanceled>(bytes)?;
                self.0.done(canceled.order_id.0 as u32, 0);
            }
            _ => {}
        }
        Ok(())
    }

    /// All that was read.
    pub(super) fn tally(self) -> Tally {
        self.0
    }
}

/// What the symbols came to.
pub(super) struct Found {
    tallies: Vec<Tally>,
    /// The flow's id of each order of a symbol, by the core's number less one: every symbol's orders are
    /// numbered as they come, and all symbols have the same flow.
    ids: Vec<u32>,
    /// Events that are none of the flow's.
    strange: u64,
}

impl Found {
    /// Nothing yet; asked for when the book is filled.
    pub(super) fn new(flow: &Flow, symbols: u32) -> Self {
        let operations = flow.prefill.iter().chain(&flow.measured);
        let orders = operations.filter(|operation| operation.kind != Kind::Cancel);
        Self {
            tallies: vec![Tally::default(); symbols as usize],
            ids: orders.map(|operation| operation.id).collect(),
            strange: 0,
        }
    }

    /// Takes the events of one command.
    pub(super) fn read(&mut self, outbox: &Outbox<'_>) {
        for bytes in outbox.events() {
            if self.read_event(bytes).is_none() {
                self.strange += 1;
            }
        }
    }

    fn read_event(&mut self, bytes: &[u8]) -> Option<()> {
        let lots = |quantity: i64| {
            (quantity % LOT == 0).then_some(())?;
            u64::try_from(quantity / LOT).ok()
        };
        match decode::event(bytes).ok()? {
            Event::Trade(trade) => {
                let [maker, taker] =
                    [self.id(trade.maker_order_id)?, self.id(trade.taker_order_id)?];
                let (price, quantity) = (ticks(trade.price)?, lots(trade.quantity)?);
                self.tally(trade.symbol)?.fill(maker, taker, price, quantity);
            }
            Event::OrderResult(result) => {
                let id = self.id(result.order_id)?;
                let open = lots(result.quantity - result.executed_quantity)?;
                self.tally(result.symbol)?.done(id, open);
            }
            Event::OrderCanceled(canceled) => {
                let id = self.id(canceled.order_id)?;
                self.tally(canceled.symbol)?.done(id, 0);
            }
            Event::OrderAccepted(_) => {}
            _ => return None,
        }
        Some(())
    }

    fn id(&self, order: OrderId) -> Option<u32> {
        self.ids.get(usize::try_from(order.0).ok()?.checked_sub(1)?).copied()
    }

    fn tally(&mut self, symbol: SymbolId) -> Option<&mut Tally> {
        self.tallies.get_mut(symbol.0 as usize)
    }

    /// Compares what was found, and the books as they are, with what must be.
    ///
    /// # Errors
    /// The first symbol that differs.
    pub(super) fn judge(&self, flow: &Flow, core: &Core) -> Result<(), VenueError> {
        let wrong =
            |symbol, difference| VenueError::Wrong { flow: flow.name.clone(), symbol, difference };
        for (symbol, tally) in (0..).zip(&self.tallies) {
            let depth = depth(core, SymbolId(symbol))
                .ok_or_else(|| wrong(symbol, "a level between ticks or lots".to_owned()))?;
            judge(flow, &depth, tally).map_err(|difference| wrong(symbol, difference))?;
        }
        if self.strange > 0 {
            return Err(wrong(0, format!("{} events that no order here has", self.strange)));
        }
        Ok(())
    }
}

fn ticks(price: i64) -> Option<i64> {
    (price % TICK == 0).then_some(price / TICK)
}

/// A symbol's book in ticks and lots.
fn depth(core: &Core, symbol: SymbolId) -> Option<Depth> {
    let side = |side| {
        core.depth(symbol, side)
            .map(|level| {
                let lots = u64::try_from(level.quantity).ok()?;
                let is_whole = lots % LOT.unsigned_abs() == 0 && level.hidden == 0;
                is_whole.then_some((ticks(level.price.0)?, lots / LOT.unsigned_abs()))
            })
            .collect::<Option<Vec<_>>>()
    };
    Some(Depth { bids: side(Side::Buy)?, asks: side(Side::Sell)? })
}
