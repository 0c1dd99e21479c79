//! The fold: one transaction of the log after the other becomes accounts, orders and books. Called
//! by the tailer alone.
//!
//! It is pure and deterministic: no clock, no thread, no file, and it knows none of the venue's
//! rules. Events say exactly what moved; where they say something twice, both must agree.

use touchline_protocol::message::command::NewOrder;
use touchline_protocol::message::decode::{Command, DecodeError, Event};
use touchline_protocol::message::enums::{OrderStatus, OrderType, Side, SymbolStatus, TimeInForce};
use touchline_protocol::message::event::{
    Done, OrderAccepted, OrderCanceled, OrderContinues, OrderReduced, OrderResult, Trade,
};
use touchline_protocol::units::{AccountId, AssetId, SymbolId};

use super::accounts::{Accounts, Change, same_balance};
use super::error::{FoldError, number, same};
use super::orders::{Fill, Order, Orders};
use super::venue::Venue;

/// The highest behaviour version that this build folds. A later one may move money or quantity in
/// ways that these events do not tell it.
pub const RULES_KNOWN: u32 = 1;

/// Everything that the views know.
#[derive(Debug, Clone)]
pub struct State {
    /// Assets, symbols, books, limits.
    pub venue: Venue,
    /// Accounts and keys.
    pub accounts: Accounts,
    /// Orders.
    pub orders: Orders,
    /// Time of the last transaction, ns since the epoch; 0 before the first.
    pub time_ns: u64,
}

/// What an event needs to know of its transaction.
#[derive(Clone, Copy)]
struct Scene<'a> {
    command: Command<'a>,
    time_ms: u64,
}

impl State {
    /// Nothing but the fee account; `closed_orders` closed orders will be remembered.
    #[must_use]
    pub fn new(closed_orders: usize) -> Self {
        Self {
            venue: Venue::default(),
            accounts: Accounts::new(),
            orders: Orders::new(closed_orders),
            time_ns: 0,
        }
    }

    /// Folds one transaction: its time, its command and the events it caused.
    ///
    /// # Errors
    /// [`FoldError`] when it contradicts what was folded before; the state is of no use then.
    pub fn fold<'a>(
        &mut self,
        time_ns: u64,
        command: Command<'a>,
        events: impl Iterator<Item = Result<Event<'a>, DecodeError>>,
    ) -> Result<(), FoldError> {
        if time_ns < self.time_ns {
            return same("transaction time (ns)", time_ns, self.time_ns);
        }
        self.time_ns = time_ns;
        let scene = Scene { command, time_ms: time_ns / 1_000_000 };
        for event in events {
            self.event(scene, event?)?;
        }
        Ok(())
    }

    fn event(&mut self, scene: Scene<'_>, event: Event<'_>) -> Result<(), FoldError> {
        match event {
            Event::OrderAccepted(accepted) => match scene.command {
                Command::NewOrder(placed) => self.accepted(scene, placed, accepted),
                _ => Err(unexpected(scene, event)),
            },
            Event::Trade(trade) => self.trade(scene, trade),
            Event::OrderResult(result) => self.result(scene, result),
            Event::OrderCanceled(canceled) => self.canceled(scene, canceled),
            Event::OrderReduced(reduced) => self.reduced(scene, reduced),
            Event::OrderContinues(continues) => self.continues(continues),
            Event::Done(done) => self.done(scene, done),
            Event::OrderValid(_) | Event::SessionStarted(_) | Event::SessionEnded(_) => Ok(()),
            Event::OrderTriggered(_)
            | Event::OrderListChanged(_)
            | Event::OrderRefilled(_)
            | Event::MassCanceled(_)
            | Event::SelfTradePrevented(_)
            | Event::OrderReplaced(_)
            | Event::Rejected(_)
            | Event::Gap(_) => Err(unexpected(scene, event)),
        }
    }

    fn accepted(
        &mut self,
        scene: Scene<'_>,
        placed: &NewOrder,
        accepted: &OrderAccepted,
    ) -> Result<(), FoldError> {
        let side = number("side", accepted.side, Side::from_wire)?;
        let order_type = number("order type", accepted.order_type, OrderType::from_wire)?;
        let time_in_force = match accepted.time_in_force {
            0 => TimeInForce::Gtc,
            other => number("time in force", other, TimeInForce::from_wire)?,
        };
        not_negative(&[accepted.locked, accepted.price, accepted.quantity])?;
        self.lock(scene, accepted.account, accepted.symbol, side, accepted.locked)?;
        self.orders.accept(Order {
            symbol: accepted.symbol,
            order_id: accepted.order_id,
            order_list_id: accepted.order_list_id,
            account: accepted.account,
            client_order_id: placed.client_order_id,
            price: accepted.price,
            quantity: accepted.quantity,
            executed: 0,
            executed_quote: 0,
            status: OrderStatus::New,
            time_in_force,
            order_type,
            side,
            stop_price: placed.stop_price,
            iceberg_quantity: placed.iceberg_quantity,
            quote_quantity: placed.quote_quantity,
            time_ms: scene.time_ms,
            update_ms: scene.time_ms,
            working: true,
            resting: false,
            fills: Vec::new(),
        })
    }

    fn trade(&mut self, scene: Scene<'_>, trade: &Trade) -> Result<(), FoldError> {
        let taker_side = number("aggressor side", trade.aggressor_side, Side::from_wire)?;
        not_negative(&[
            trade.price,
            trade.quantity,
            trade.quote_amount,
            trade.maker_commission,
            trade.taker_commission,
            trade.maker_released,
        ])?;
        self.trade_money(scene, trade, taker_side)?;
        let taker = self.orders.open_mut(trade.symbol, trade.taker_order_id)?;
        execute(taker, trade, scene.time_ms)?;
        taker.fills.push(Fill {
            trade_id: trade.trade_id,
            price: trade.price,
            quantity: trade.quantity,
            commission: trade.taker_commission,
        });
        let maker = self.orders.open_mut(trade.symbol, trade.maker_order_id)?;
        let maker_side = taker_side.opposite();
        same("maker's side", maker.side.to_wire(), maker_side.to_wire())?;
        same("maker's price", trade.price, maker.price)?;
        execute(maker, trade, scene.time_ms)?;
        same("maker's remaining quantity", trade.maker_remaining, maker.remaining())?;
        let filled = maker.remaining() == 0;
        maker.status = if filled { OrderStatus::Filled } else { OrderStatus::PartiallyFilled };
        maker.resting = !filled;
        if filled {
            self.orders.close(trade.symbol, trade.maker_order_id);
        }
        let book = &mut self.venue.symbol_mut(trade.symbol)?.book;
        book.take(trade.symbol, maker_side, trade.price, trade.quantity)?;
        let released = trade.maker_released;
        self.unlock(scene, trade.maker_account, trade.symbol, maker_side, released)
    }

    /// The money of a trade, as the event's documentation puts it.
    fn trade_money(
        &mut self,
        scene: Scene<'_>,
        trade: &Trade,
        taker_side: Side,
    ) -> Result<(), FoldError> {
        let (base, quote) = self.assets(trade.symbol)?;
        let maker = (trade.maker_account, trade.maker_commission);
        let taker = (trade.taker_account, trade.taker_commission);
        let (buyer, seller) = match taker_side {
            Side::Buy => (taker, maker),
            Side::Sell => (maker, taker),
        };
        let moves = [
            (buyer.0, quote, 0, -trade.quote_amount),
            (buyer.0, base, trade.quantity - buyer.1, 0),
            (seller.0, base, 0, -trade.quantity),
            (seller.0, quote, trade.quote_amount - seller.1, 0),
            (AccountId::FEES, base, buyer.1, 0),
            (AccountId::FEES, quote, seller.1, 0),
        ];
        for (account, asset, free, locked) in moves {
            self.change(scene, Change { account, asset, free, locked })?;
        }
        Ok(())
    }

    fn result(&mut self, scene: Scene<'_>, result: &OrderResult) -> Result<(), FoldError> {
        let status = number("order status", result.status, OrderStatus::from_wire)?;
        not_negative(&[result.quantity, result.executed_quantity, result.released])?;
        not_negative(&[result.quantity - result.executed_quantity])?;
        let order = self.orders.open_mut(result.symbol, result.order_id)?;
        // A MARKET order by quote quantity gets its base quantity only now.
        order.quantity = result.quantity;
        same("executed quantity", result.executed_quantity, order.executed)?;
        same("executed quote", result.executed_quote, order.executed_quote)?;
        order.status = status;
        order.resting = status.is_open();
        if !status.is_open() {
            order.update_ms = scene.time_ms;
        }
        let (account, side, price, remaining) =
            (order.account, order.side, order.price, order.remaining());
        let book = &mut self.venue.symbol_mut(result.symbol)?.book;
        if status.is_open() {
            book.add(side, price, remaining);
        } else {
            self.orders.close(result.symbol, result.order_id);
        }
        book.updated(result.book_update_id)?;
        self.unlock(scene, account, result.symbol, side, result.released)
    }

    fn canceled(&mut self, scene: Scene<'_>, canceled: &OrderCanceled) -> Result<(), FoldError> {
        let status = number("order status", canceled.status, OrderStatus::from_wire)?;
        not_negative(&[canceled.released])?;
        let order = self.orders.open_mut(canceled.symbol, canceled.order_id)?;
        same("executed quantity", canceled.executed_quantity, order.executed)?;
        same("executed quote", canceled.executed_quote, order.executed_quote)?;
        order.status = status;
        order.update_ms = scene.time_ms;
        let was_resting = std::mem::take(&mut order.resting);
        let (account, side, price, remaining) =
            (order.account, order.side, order.price, order.remaining());
        self.orders.close(canceled.symbol, canceled.order_id);
        let book = &mut self.venue.symbol_mut(canceled.symbol)?.book;
        if was_resting {
            book.take(canceled.symbol, side, price, remaining)?;
        }
        book.updated(canceled.book_update_id)?;
        self.unlock(scene, account, canceled.symbol, side, canceled.released)
    }

    fn reduced(&mut self, scene: Scene<'_>, reduced: &OrderReduced) -> Result<(), FoldError> {
        not_negative(&[reduced.quantity, reduced.released])?;
        let order = self.orders.open_mut(reduced.symbol, reduced.order_id)?;
        same("executed quantity", reduced.executed_quantity, order.executed)?;
        let taken = order.quantity - reduced.quantity;
        order.quantity = reduced.quantity;
        order.update_ms = scene.time_ms;
        let (account, side, price, resting) =
            (order.account, order.side, order.price, order.resting);
        let book = &mut self.venue.symbol_mut(reduced.symbol)?.book;
        if resting {
            book.take(reduced.symbol, side, price, taken)?;
        }
        book.updated(reduced.book_update_id)?;
        self.unlock(scene, account, reduced.symbol, side, reduced.released)
    }

    fn continues(&mut self, continues: &OrderContinues) -> Result<(), FoldError> {
        self.orders.open_mut(continues.symbol, continues.order_id)?;
        self.venue.symbol_mut(continues.symbol)?.book.updated(continues.book_update_id)
    }

    fn done(&mut self, scene: Scene<'_>, done: &Done) -> Result<(), FoldError> {
        match scene.command {
            Command::SetRules(set) if set.rules > RULES_KNOWN => {
                Err(FoldError::Rules { found: set.rules, known: RULES_KNOWN })
            }
            Command::SetRules(_) | Command::EngineStarted(_) => Ok(()),
            Command::SetLimits(set) => {
                self.venue.limits = set.limits;
                Ok(())
            }
            Command::DefineAsset(made) => self.venue.define_asset(made, done.id),
            Command::DefineSymbol(made) => self.venue.define_symbol(made, done.id),
            Command::SetSymbolStatus(set) => {
                self.venue.symbol_mut(set.symbol)?.status =
                    number("symbol status", set.status, SymbolStatus::from_wire)?;
                Ok(())
            }
            Command::CreateAccount(made) => self.accounts.create(made, done.id),
            Command::CreateKey(made) => self.accounts.create_key(made, done.id),
            Command::RevokeKey(revoked) => self.accounts.revoke(revoked.key),
            Command::Deposit(moved) => {
                self.moved(scene, (moved.account, moved.asset, moved.amount), done)
            }
            Command::Withdraw(moved) => {
                not_negative(&[moved.amount])?;
                self.moved(scene, (moved.account, moved.asset, -moved.amount), done)
            }
            _ => Err(unexpected(scene, Event::Done(done))),
        }
    }

    fn moved(
        &mut self,
        scene: Scene<'_>,
        (account, asset, free): (AccountId, AssetId, i64),
        done: &Done,
    ) -> Result<(), FoldError> {
        not_negative(&[done.free, done.locked])?;
        let after = self.accounts.change(
            Change { account, asset, free, locked: 0 },
            self.venue.assets().len(),
            scene.time_ms,
        )?;
        same_balance(after, done.free, done.locked)
    }

    fn assets(&self, symbol: SymbolId) -> Result<(AssetId, AssetId), FoldError> {
        let symbol = self.venue.symbol(symbol).ok_or(FoldError::UnknownSymbol(symbol))?;
        Ok((symbol.base, symbol.quote))
    }

    /// Holds `amount` for an order: quote for a buy, base for a sell.
    fn lock(
        &mut self,
        scene: Scene<'_>,
        account: AccountId,
        symbol: SymbolId,
        side: Side,
        amount: i64,
    ) -> Result<(), FoldError> {
        let (base, quote) = self.assets(symbol)?;
        let asset = match side {
            Side::Buy => quote,
            Side::Sell => base,
        };
        self.change(scene, Change::lock(account, asset, amount))
    }

    fn unlock(
        &mut self,
        scene: Scene<'_>,
        account: AccountId,
        symbol: SymbolId,
        side: Side,
        amount: i64,
    ) -> Result<(), FoldError> {
        self.lock(scene, account, symbol, side, -amount)
    }

    fn change(&mut self, scene: Scene<'_>, change: Change) -> Result<(), FoldError> {
        if change.free == 0 && change.locked == 0 {
            return Ok(());
        }
        self.accounts.change(change, self.venue.assets().len(), scene.time_ms)?;
        Ok(())
    }
}

fn execute(order: &mut Order, trade: &Trade, time_ms: u64) -> Result<(), FoldError> {
    let sum = |what, before: i64, more: i64| {
        before.checked_add(more).ok_or(FoldError::Mismatch {
            what,
            found: i128::from(before) + i128::from(more),
            expected: i128::from(i64::MAX),
        })
    };
    order.executed = sum("executed quantity", order.executed, trade.quantity)?;
    order.executed_quote = sum("executed quote", order.executed_quote, trade.quote_amount)?;
    order.status = OrderStatus::PartiallyFilled;
    order.update_ms = time_ms;
    Ok(())
}

/// Sums and differences of two values that are not negative stay within their type.
fn not_negative(values: &[i64]) -> Result<(), FoldError> {
    match values.iter().find(|value| **value < 0) {
        Some(&value) => Err(FoldError::Negative(value)),
        None => Ok(()),
    }
}

fn unexpected(scene: Scene<'_>, event: Event<'_>) -> FoldError {
    FoldError::Unexpected { event: event.name(), command: scene.command.name() }
}

#[cfg(test)]
mod tests;
