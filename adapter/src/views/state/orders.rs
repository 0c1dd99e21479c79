//! The events about orders and order lists: where each stands, what the book shows of it, and what
//! money it moves. Called by the fold for its events.

use touchline_protocol::message::command::EVERY;
use touchline_protocol::message::decode::{Command, Event};
use touchline_protocol::message::enums::{
    ListOrderStatus, ListStatusType, OrderStatus, OrderType, Side, TimeInForce,
};
use touchline_protocol::message::event::{
    OrderAccepted, OrderCanceled, OrderContinues, OrderListChanged, OrderReduced, OrderRefilled,
    OrderReplaced, OrderResult, OrderTriggered, SelfTradePrevented, Trade,
};
use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::{AccountId, OrderId, SymbolId, TradeId};

use super::{Scene, State, unexpected};
use crate::history::Side as TradeSide;
use crate::history::rows::{OrderRow, SideRow, TradeRow, of_account, of_lists};
use crate::views::accounts::Change;
use crate::views::book::Book;
use crate::views::error::{FoldError, not_negative, number, same};
use crate::views::lists::OrderList;
use crate::views::orders::Order;

/// What an order's acceptance does not say of it, taken from the command that placed it.
#[derive(Default)]
struct Placed {
    client_order_id: ClientOrderId,
    stop_price: i64,
    iceberg_quantity: i64,
    quote_quantity: i64,
}

impl Placed {
    /// `None` for a command that places no order of this type.
    fn by(command: Command<'_>, order_type: OrderType) -> Option<Self> {
        match command {
            Command::NewOrder(order) => Some(Self {
                client_order_id: order.client_order_id,
                stop_price: order.stop_price,
                iceberg_quantity: order.iceberg_quantity,
                quote_quantity: order.quote_quantity,
            }),
            Command::CancelReplace(order) => Some(Self {
                client_order_id: order.client_order_id,
                stop_price: order.stop_price,
                iceberg_quantity: order.iceberg_quantity,
                quote_quantity: order.quote_quantity,
            }),
            Command::PlaceOrderList(list) if order_type == OrderType::LimitMaker => Some(Self {
                client_order_id: list.limit_client_order_id,
                iceberg_quantity: list.limit_iceberg_quantity,
                ..Self::default()
            }),
            Command::PlaceOrderList(list) if order_type.is_stop() => Some(Self {
                client_order_id: list.stop_client_order_id,
                stop_price: list.stop_price,
                iceberg_quantity: list.stop_iceberg_quantity,
                ..Self::default()
            }),
            _ => None,
        }
    }
}

impl State {
    pub(super) fn accepted(
        &mut self,
        scene: Scene<'_>,
        accepted: &OrderAccepted,
    ) -> Result<(), FoldError> {
        let side = number("side", accepted.side, Side::from_wire)?;
        let order_type = number("order type", accepted.order_type, OrderType::from_wire)?;
        let time_in_force = match accepted.time_in_force {
            0 => TimeInForce::Gtc,
            other => number("time in force", other, TimeInForce::from_wire)?,
        };
        let placed = Placed::by(scene.command, order_type)
            .ok_or_else(|| unexpected(scene, Event::OrderAccepted(accepted)))?;
        not_negative(&[accepted.locked, accepted.price, accepted.quantity])?;
        not_negative(&[placed.iceberg_quantity])?;
        self.lock(scene, accepted.account, accepted.symbol, side, accepted.locked)?;
        self.accounts.count_order(accepted.account, &self.venue.limits, self.time_ns)?;
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
            working: !order_type.is_stop(),
            resting: false,
            visible: 0,
            first_trade: TradeId(0),
            last_trade: TradeId(0),
        })
    }

    pub(super) fn trade(&mut self, scene: Scene<'_>, trade: &Trade) -> Result<(), FoldError> {
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
        if taker.resting || !taker.working {
            return Err(standing(taker, "Trade as aggressor"));
        }
        execute(taker, trade, scene.time_ms)?;
        let taken = side_of(taker, trade.taker_account, trade);
        let maker = self.orders.open_mut(trade.symbol, trade.maker_order_id)?;
        let maker_side = taker_side.opposite();
        if !maker.resting {
            return Err(standing(maker, "Trade as maker"));
        }
        same("maker's side", maker.side.to_wire(), maker_side.to_wire())?;
        same("maker's price", trade.price, maker.price)?;
        execute(maker, trade, scene.time_ms)?;
        same("maker's remaining quantity", trade.maker_remaining, maker.remaining())?;
        maker.visible -= trade.quantity;
        not_negative(&[maker.visible, maker.remaining() - maker.visible])?;
        let made = side_of(maker, trade.maker_account, trade);
        if maker.remaining() == 0 {
            maker.status = OrderStatus::Filled;
            maker.resting = false;
            let ended = self.orders.close(trade.symbol, trade.maker_order_id);
            self.order_history(trade.maker_order_id, ended);
        }
        let book = &mut self.venue.symbol_mut(trade.symbol)?.book;
        book.take(trade.symbol, maker_side, trade.price, trade.quantity)?;
        self.trade_history(scene, trade, taker_side, [made, taken]);
        let released = trade.maker_released;
        self.unlock(scene, trade.maker_account, trade.symbol, maker_side, released)
    }

    fn order_history(&mut self, order: OrderId, ended: Option<OrderRow>) {
        if let Some(row) = ended {
            let group = of_account(AccountId(row.account), SymbolId(row.symbol));
            self.history.ended_order(group, order.0, row);
        }
    }

    fn trade_history(
        &mut self,
        scene: Scene<'_>,
        trade: &Trade,
        taker_side: Side,
        sides: [TradeSide; 2],
    ) {
        let row = TradeRow {
            price: trade.price,
            quantity: trade.quantity,
            quote: trade.quote_amount,
            time_ms: scene.time_ms,
            aggregate: trade.aggregate_trade_id.0,
            maker_order: trade.maker_order_id.0,
            taker_order: trade.taker_order_id.0,
            maker_commission: trade.maker_commission,
            taker_commission: trade.taker_commission,
            buyer_is_maker: u64::from(taker_side == Side::Sell),
            ..TradeRow::default()
        };
        self.history.trade(trade.symbol, trade.trade_id, row, sides);
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

    pub(super) fn result(
        &mut self,
        scene: Scene<'_>,
        result: &OrderResult,
    ) -> Result<(), FoldError> {
        let status = number("order status", result.status, OrderStatus::from_wire)?;
        not_negative(&[result.released])?;
        let order = self.orders.open_mut(result.symbol, result.order_id)?;
        if order.resting {
            return Err(standing(order, "OrderResult"));
        }
        same("quantity", result.quantity, order.quantity)?;
        same("executed quantity", result.executed_quantity, order.executed)?;
        same("executed quote", result.executed_quote, order.executed_quote)?;
        not_negative(&[order.remaining()])?;
        order.status = status;
        if !status.is_open() {
            order.update_ms = scene.time_ms;
        }
        let (account, side) = (order.account, order.side);
        let book = &mut self.venue.symbol_mut(result.symbol)?.book;
        book.updated(result.book_update_id)?;
        if !status.is_open() {
            let ended = self.orders.close(result.symbol, result.order_id);
            self.order_history(result.order_id, ended);
        } else if order.working {
            rest(order, book, "OrderResult")?;
        }
        self.unlock(scene, account, result.symbol, side, result.released)
    }

    pub(super) fn canceled(
        &mut self,
        scene: Scene<'_>,
        canceled: &OrderCanceled,
    ) -> Result<(), FoldError> {
        let status = number("order status", canceled.status, OrderStatus::from_wire)?;
        not_negative(&[canceled.released])?;
        let order = self.orders.open_mut(canceled.symbol, canceled.order_id)?;
        same("executed quantity", canceled.executed_quantity, order.executed)?;
        same("executed quote", canceled.executed_quote, order.executed_quote)?;
        if !matches!(status, OrderStatus::Canceled | OrderStatus::Expired) {
            return Err(FoldError::Number {
                field: "ended order's status",
                value: canceled.status,
            });
        }
        order.status = status;
        order.update_ms = scene.time_ms;
        let (account, side) = (order.account, order.side);
        let book = &mut self.venue.symbol_mut(canceled.symbol)?.book;
        leave(order, book)?;
        book.updated(canceled.book_update_id)?;
        let ended = self.orders.close(canceled.symbol, canceled.order_id);
        self.order_history(canceled.order_id, ended);
        self.unlock(scene, account, canceled.symbol, side, canceled.released)
    }

    /// An iceberg first gives up what it hides.
    pub(super) fn reduced(
        &mut self,
        scene: Scene<'_>,
        reduced: &OrderReduced,
    ) -> Result<(), FoldError> {
        not_negative(&[reduced.quantity, reduced.released])?;
        let order = self.orders.open_mut(reduced.symbol, reduced.order_id)?;
        same("executed quantity", reduced.executed_quantity, order.executed)?;
        order.quantity = reduced.quantity;
        not_negative(&[order.remaining()])?;
        order.update_ms = scene.time_ms;
        let taken = order.visible - order.visible.min(order.remaining());
        order.visible -= taken;
        let (account, side, price) = (order.account, order.side, order.price);
        let book = &mut self.venue.symbol_mut(reduced.symbol)?.book;
        if taken > 0 {
            book.take(reduced.symbol, side, price, taken)?;
        }
        book.updated(reduced.book_update_id)?;
        self.unlock(scene, account, reduced.symbol, side, reduced.released)
    }

    /// The order leaves its place; its result says where it stands then.
    pub(super) fn replaced(
        &mut self,
        scene: Scene<'_>,
        replaced: &OrderReplaced,
    ) -> Result<(), FoldError> {
        not_negative(&[replaced.price, replaced.quantity])?;
        let order = self.orders.open_mut(replaced.symbol, replaced.order_id)?;
        if !order.resting {
            return Err(standing(order, "OrderReplaced"));
        }
        same("executed quantity", replaced.executed_quantity, order.executed)?;
        let book = &mut self.venue.symbol_mut(replaced.symbol)?.book;
        leave(order, book)?;
        book.updated(replaced.book_update_id)?;
        order.price = replaced.price;
        order.quantity = replaced.quantity;
        not_negative(&[order.remaining()])?;
        order.update_ms = scene.time_ms;
        let (account, side) = (order.account, order.side);
        self.lock(scene, account, replaced.symbol, side, replaced.locked)
    }

    /// Order 0 goes on with nothing of its own: triggered stops or cancels do, maybe on every symbol.
    pub(super) fn continues(&mut self, continues: &OrderContinues) -> Result<(), FoldError> {
        if continues.order_id != OrderId(0) {
            let order = self.orders.open_mut(continues.symbol, continues.order_id)?;
            same("remaining quantity", continues.remaining, order.remaining())?;
        }
        if continues.symbol.0 == EVERY {
            return Ok(());
        }
        self.venue.symbol_mut(continues.symbol)?.book.updated(continues.book_update_id)
    }

    /// A waiting stop begins to work; its result says where it stands then.
    pub(super) fn triggered(
        &mut self,
        scene: Scene<'_>,
        triggered: &OrderTriggered,
    ) -> Result<(), FoldError> {
        let order = self.orders.open_mut(triggered.symbol, triggered.order_id)?;
        if order.working {
            return Err(standing(order, "OrderTriggered"));
        }
        order.working = true;
        order.update_ms = scene.time_ms;
        let (account, side) = (order.account, order.side);
        self.venue.symbol_mut(triggered.symbol)?.book.updated(triggered.book_update_id)?;
        self.lock(scene, account, triggered.symbol, side, triggered.locked)
    }

    /// An iceberg shows its next slice.
    pub(super) fn refilled(&mut self, refilled: &OrderRefilled) -> Result<(), FoldError> {
        not_negative(&[refilled.visible])?;
        let order = self.orders.open_mut(refilled.symbol, refilled.order_id)?;
        if !order.resting || order.visible != 0 {
            return Err(standing(order, "OrderRefilled"));
        }
        same("next slice", refilled.visible, order.shown())?;
        order.visible = refilled.visible;
        let book = &mut self.venue.symbol_mut(refilled.symbol)?.book;
        book.add(order.side, order.price, order.visible);
        book.updated(refilled.book_update_id)
    }

    /// What becomes of the two orders, events of their own say.
    pub(super) fn prevented(&mut self, prevented: &SelfTradePrevented) -> Result<(), FoldError> {
        let symbol = prevented.symbol;
        for (which, id) in [
            ("maker's owner", prevented.maker_order_id),
            ("taker's owner", prevented.taker_order_id),
        ] {
            let order = self.orders.open_mut(symbol, id)?;
            same(which, order.account.0, prevented.account.0)?;
        }
        Ok(())
    }

    pub(super) fn list_changed(
        &mut self,
        scene: Scene<'_>,
        changed: &OrderListChanged,
    ) -> Result<(), FoldError> {
        let list = OrderList {
            order_list_id: changed.order_list_id,
            account: changed.account,
            symbol: changed.symbol,
            client_order_id: changed.list_client_order_id,
            limit_order_id: changed.limit_order_id,
            stop_order_id: changed.stop_order_id,
            limit_client_order_id: ClientOrderId::EMPTY,
            stop_client_order_id: ClientOrderId::EMPTY,
            status_type: number(
                "list status type",
                changed.list_status_type,
                ListStatusType::from_wire,
            )?,
            status: number(
                "list order status",
                changed.list_order_status,
                ListOrderStatus::from_wire,
            )?,
            time_ms: scene.time_ms,
            update_ms: scene.time_ms,
        };
        match list.status {
            ListOrderStatus::Executing => self.list_placed(list)?,
            ListOrderStatus::AllDone => {
                let row = self.lists.close(list)?;
                let id = list.order_list_id.0.cast_unsigned();
                self.history.ended_list(of_lists(list.account), id, row);
            }
            ListOrderStatus::Reject => {
                return Err(unexpected(scene, Event::OrderListChanged(changed)));
            }
        }
        self.venue.symbol_mut(changed.symbol)?.book.updated(changed.book_update_id)
    }

    /// Both orders have been accepted and none has a result of its own: the stop leg waits, the limit
    /// leg rests.
    fn list_placed(&mut self, mut list: OrderList) -> Result<(), FoldError> {
        for (id, name) in [
            (list.stop_order_id, &mut list.stop_client_order_id),
            (list.limit_order_id, &mut list.limit_client_order_id),
        ] {
            let order = self.orders.open_mut(list.symbol, id)?;
            same("leg's list", order.order_list_id.0, list.order_list_id.0)?;
            same("leg's owner", order.account.0, list.account.0)?;
            *name = order.client_order_id;
        }
        let limit = self.orders.open_mut(list.symbol, list.limit_order_id)?;
        rest(limit, &mut self.venue.symbol_mut(list.symbol)?.book, "OrderListChanged")?;
        self.lists.place(list)
    }
}

/// Puts an order into the book.
fn rest(order: &mut Order, book: &mut Book, event: &'static str) -> Result<(), FoldError> {
    if order.resting || !order.working || order.remaining() <= 0 {
        return Err(standing(order, event));
    }
    order.resting = true;
    order.visible = order.shown();
    book.add(order.side, order.price, order.visible);
    Ok(())
}

/// Takes an order out of the book if it stands there.
fn leave(order: &mut Order, book: &mut Book) -> Result<(), FoldError> {
    order.resting = false;
    let shown = std::mem::take(&mut order.visible);
    if shown > 0 { book.take(order.symbol, order.side, order.price, shown) } else { Ok(()) }
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
    if order.first_trade == TradeId(0) {
        order.first_trade = trade.trade_id;
    }
    order.last_trade = trade.trade_id;
    order.status = OrderStatus::PartiallyFilled;
    order.update_ms = time_ms;
    Ok(())
}

/// The order's side of a trade that it has executed.
fn side_of(order: &Order, account: AccountId, trade: &Trade) -> TradeSide {
    TradeSide {
        owner: of_account(account, trade.symbol),
        row: SideRow::of(order.order_id.0, order.order_list_id.0),
        is_first: order.first_trade == trade.trade_id,
    }
}

fn standing(order: &Order, event: &'static str) -> FoldError {
    let found = match (order.working, order.resting) {
        (false, _) => "waits for its trigger",
        (true, true) => "rests in the book",
        (true, false) if order.remaining() <= 0 => "has nothing left",
        (true, false) => "is not in the book",
    };
    FoldError::Standing { event, symbol: order.symbol, order: order.order_id, found }
}
