//! `matchcore` 0.4.0: BTreeMap of prices, slab of levels, hash map of orders. Called through
//! [`super::Engine`].
//!
//! By itself it sweeps past the limit of an order that crosses (0.2 to 0.4 do). So that it can be
//! compared at all, an order that crosses is cut here to what its limit reaches, and its rest placed
//! as an order of its own. It also numbers orders itself, by consecutive commands; two arrays lead from
//! ids to its numbers and back. All of that is charged to it: a look at the best price for an order that
//! does not cross, a sum over the levels that it reaches for one that does, and the arrays.
//! Its own tables take no capacity at run time; the arrays have theirs up front.

use matchcore::{
    AmendCmd, AmendPatch, CancelCmd, Command, CommandKind, CommandMeta, CommandOutcome,
    CommandReport, LimitBook, LimitOrder, LimitOrderPatch, NewOrder, OrderBook, OrderFlags,
    OrderId, OrderKind, Price, Quantity, QuantityPolicy, SequenceNumber, SubmitCmd, TimeInForce,
    Timestamp,
};
use touchline_protocol::message::enums::Side;

use super::super::flows::Capacity;
use super::super::operation::{Depth, Kind, Operation, Reports};
use super::Engine;

/// The book, and who is who.
#[derive(Debug)]
pub struct Matchcore {
    book: OrderBook,
    /// Id of the order that each command has placed; its length is the next command's number.
    ids: Vec<u32>,
    /// The command that has placed the order of each id last.
    numbers: Vec<u32>,
}

impl Matchcore {
    #[inline]
    fn execute(&mut self, kind: CommandKind, id: u32) -> CommandOutcome {
        let number = self.ids.len() as u64;
        self.ids.push(id);
        let meta =
            CommandMeta { sequence_number: SequenceNumber(number), timestamp: Timestamp(number) };
        self.book.execute(&Command { meta, kind })
    }

    /// What an order with this limit can take, up to `wanted`; most orders do not cross, and only look at
    /// the best price.
    #[inline]
    fn reachable(&self, side: Side, limit: Price, wanted: u64) -> u64 {
        let crosses = match side {
            Side::Buy => self.book.best_ask_price().is_some_and(|best| best <= limit),
            Side::Sell => self.book.best_bid_price().is_some_and(|best| best >= limit),
        };
        if crosses { self.sum_within(side, limit, wanted) } else { 0 }
    }

    fn sum_within(&self, side: Side, limit: Price, wanted: u64) -> u64 {
        let book: &LimitBook = self.book.limit();
        let sum = |total: u64, level: usize| {
            let total = total + book.levels()[level].total_quantity().0;
            if total < wanted { Ok(total) } else { Err(wanted) }
        };
        match side {
            Side::Buy => book.asks().range(..=limit).map(|level| *level.1).try_fold(0, sum),
            Side::Sell => book.bids().range(limit..).rev().map(|level| *level.1).try_fold(0, sum),
        }
        .unwrap_or(wanted)
    }

    #[inline]
    fn submit<R: Reports>(&mut self, operation: &Operation, quantity: u64, reports: &mut R) -> u64 {
        let number = self.ids.len();
        let side = match operation.side {
            Side::Buy => matchcore::Side::Buy,
            Side::Sell => matchcore::Side::Sell,
        };
        let time = if operation.kind == Kind::Ioc { TimeInForce::Ioc } else { TimeInForce::Gtc };
        let order = NewOrder::Limit(LimitOrder::new(
            Price(operation.price.cast_unsigned()),
            QuantityPolicy::Standard { quantity: Quantity(quantity) },
            OrderFlags::new(side, false, time),
        ));
        let outcome = self.execute(CommandKind::Submit(SubmitCmd { order }), operation.id);
        let mut filled = 0;
        if let CommandOutcome::Applied(CommandReport::Submit(effects)) = &outcome
            && let Some(result) = effects.target_order().match_result()
        {
            for trade in result.trades() {
                let price = trade.price().0.cast_signed();
                let maker = self.ids[trade.maker_order_id().0 as usize];
                reports.fill(maker, operation.id, price, trade.quantity().0);
            }
            filled = result.executed_quantity().0;
        }
        if filled < quantity {
            self.numbers[operation.id as usize] = number as u32;
        }
        quantity - filled
    }

    #[inline]
    fn place<R: Reports>(&mut self, operation: &Operation, reports: &mut R) {
        let quantity = u64::from(operation.quantity);
        let limit = Price(operation.price.cast_unsigned());
        let reachable = self.reachable(operation.side, limit, quantity);
        let mut open = quantity;
        if reachable > 0 {
            open -= reachable - self.submit(operation, reachable, reports);
        }
        if open > 0 && (reachable == 0 || operation.kind != Kind::Ioc) {
            open = self.submit(operation, open, reports);
        }
        reports.done(operation.id, open);
    }

    /// 1 if no such order rests.
    #[inline]
    fn cancel(&mut self, id: u32) -> u64 {
        let order_id = OrderId(u64::from(self.numbers[id as usize]));
        let order_kind = OrderKind::Limit;
        let outcome = self.execute(CommandKind::Cancel(CancelCmd { order_id, order_kind }), id);
        u64::from(matches!(outcome, CommandOutcome::Rejected(_)))
    }
}

impl Engine for Matchcore {
    fn new(capacity: &Capacity) -> Self {
        let numbers = vec![0; capacity.ids as usize];
        // A command for each operation, and for some a second one: what is left of an order that crosses,
        // and what replaces a cancelled one.
        let ids = Vec::with_capacity(capacity.operations as usize / 2 * 3);
        Self { book: OrderBook::new("bench"), ids, numbers }
    }

    #[inline]
    fn apply<R: Reports>(&mut self, operation: &Operation, reports: &mut R) {
        match operation.kind {
            Kind::Cancel => {
                let unknown = self.cancel(operation.id);
                return reports.done(operation.id, unknown);
            }
            Kind::Reduce => {
                let quantity = Quantity(u64::from(operation.quantity));
                let policy = QuantityPolicy::Standard { quantity };
                let patch = LimitOrderPatch::new().with_quantity_policy(policy);
                let order_id = OrderId(u64::from(self.numbers[operation.id as usize]));
                let patch = AmendPatch::Limit(patch);
                let amend = CommandKind::Amend(AmendCmd { order_id, patch });
                let outcome = self.execute(amend, operation.id);
                let refused = matches!(outcome, CommandOutcome::Rejected(_));
                return reports.done(operation.id, u64::from(refused));
            }
            Kind::Modify if self.cancel(operation.id) != 0 => return,
            Kind::Add | Kind::Ioc | Kind::Modify => {}
        }
        self.place(operation, reports);
    }

    fn depth(&self) -> Depth {
        let book: &LimitBook = self.book.limit();
        let level = |(price, &id): (&Price, &usize)| {
            (price.0.cast_signed(), book.levels()[id].total_quantity().0)
        };
        Depth {
            bids: book.bids().iter().rev().map(level).collect(),
            asks: book.asks().iter().map(level).collect(),
        }
    }
}
