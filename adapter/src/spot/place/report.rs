//! The answers to POST /order and POST /order/test (spot contract §2 New-order response).

use touchline_protocol::message::command::Limits;
use touchline_protocol::message::enums::{OrderStatus, OrderType, RejectReason, TimeInForce};
use touchline_protocol::message::event::{OrderResult, Rejected, Trade};
use touchline_protocol::text::{AssetName, ClientOrderId, SymbolName};

use super::Choices;
use crate::api_error::ApiError;
use crate::history::HistoryError;
use crate::http::Reply;
use crate::link::{Decision, Terminal};
use crate::spot::market::order_count_limits;
use crate::spot::names::ResponseType;
use crate::spot::report::Report;
use crate::spot::responses::{Acknowledgement, Decimal, Empty, Extras, Fill, Placed};
use crate::spot::{Shared, json, names, reject};
use crate::views::orders::Order;
use crate::views::{Views, orders};

/// What the answer to a placement needs of the request.
pub(super) struct Placement {
    pub(super) symbol: SymbolName,
    pub(super) commission_asset: AssetName,
    pub(super) client_order_id: ClientOrderId,
    pub(super) choices: Choices,
    pub(super) price: i64,
    /// What a report of its cancel says in addition.
    pub(super) extras: Extras,
    /// It names the quote quantity, and the book decides the quantity.
    pub(super) is_by_quote: bool,
    pub(super) limits: Limits,
}

/// What the answer to a test needs of the request.
pub(super) struct Validation {
    pub(super) kind: OrderType,
    pub(super) limits: Limits,
}

impl Report for Validation {
    fn reply(&self, decision: &Decision, _: &Shared) -> Result<Option<Reply>, ApiError> {
        match &decision.terminal {
            Terminal::Valid => json(&Empty {}).map(Some),
            Terminal::Rejected(rejected) => {
                Err(reject::placement(rejected, self.kind, &self.limits))
            }
            _ => Err(ApiError::unexpected_response()),
        }
    }
}

impl Report for Placement {
    fn reply(&self, decision: &Decision, shared: &Shared) -> Result<Option<Reply>, ApiError> {
        self.note(decision, shared);
        match self.fills(decision, &shared.views)? {
            Some(fills) => self.answer(decision, &fills).map(Some),
            None => Ok(None),
        }
    }
}

impl Placement {
    /// Before the client knows of an order that may be cancelled.
    fn note(&self, decision: &Decision, shared: &Shared) {
        let Terminal::Placed(result) = &decision.terminal else { return };
        if OrderStatus::from_wire(result.status).is_some_and(OrderStatus::is_open) {
            let order = (result.symbol, result.order_id);
            shared.fresh.note(decision, order, self.extras, shared.views.reached());
        }
    }

    /// How much an order by quote quantity is, the book decides: when that is less than the least lot, it
    /// is the book that has too little (facts §5.2).
    fn refusal(&self, rejected: &Rejected) -> ApiError {
        match RejectReason::from_wire(rejected.reason) {
            Some(RejectReason::LotSize | RejectReason::MarketLotSize) if self.is_by_quote => {
                ApiError::liquidity_below_lot_size()
            }
            _ => reject::placement(rejected, self.choices.kind, &self.limits),
        }
    }

    /// False if the answer needs fills and some are missing from the decision.
    fn has_its_fills(&self, decision: &Decision) -> bool {
        let Terminal::Placed(result) = &decision.terminal else { return true };
        let sum = |of: fn(&Trade) -> i64| {
            decision.told.trades.iter().map(|trade| i128::from(of(trade))).sum::<i128>()
        };
        self.choices.response_type != ResponseType::Full
            || sum(|trade| trade.quantity) == i128::from(result.executed_quantity)
                && sum(|trade| trade.quote_amount) == i128::from(result.executed_quote)
    }

    /// The fills of the decision; the views' where some are missing there.
    fn fills(
        &self,
        decision: &Decision,
        views: &Views,
    ) -> Result<Option<Vec<orders::Fill>>, ApiError> {
        match &decision.terminal {
            Terminal::Placed(result) if !self.has_its_fills(decision) => {
                let (symbol, id) = (result.symbol, result.order_id);
                let (order, history) = views.read(|state| {
                    let order = state.order(result.account, symbol, id)?;
                    Ok::<_, HistoryError>((order, state.history.reader()?))
                })?;
                let is_there = |order: &Order| order.executed >= result.executed_quantity;
                let order = order.find()?.filter(is_there);
                Ok(order.map(|order| history.fills(&order)).transpose()?)
            }
            _ => {
                let fill = |trade: &Trade| orders::Fill {
                    trade_id: trade.trade_id,
                    price: trade.price,
                    quantity: trade.quantity,
                    commission: trade.taker_commission,
                };
                Ok(Some(decision.told.trades.iter().map(fill).collect()))
            }
        }
    }

    fn answer(&self, decision: &Decision, fills: &[orders::Fill]) -> Result<Reply, ApiError> {
        let result = match &decision.terminal {
            Terminal::Placed(result) => result,
            Terminal::Rejected(rejected) => {
                return Err(self.refusal(rejected));
            }
            _ => return Err(ApiError::unexpected_response()),
        };
        let acknowledgement = Acknowledgement {
            symbol: self.symbol.as_str(),
            order_id: result.order_id.0,
            order_list_id: result.order_list_id.0,
            client_order_id: self.client_order_id.as_str(),
            transact_time: decision.time_ns / 1_000_000,
        };
        let reply = match self.choices.response_type {
            ResponseType::Ack => json(&acknowledgement)?,
            ResponseType::Result => json(&self.placed(acknowledgement, result, None)?)?,
            ResponseType::Full => {
                let fills = fills.iter().map(|fill| self.fill(fill)).collect();
                json(&self.placed(acknowledgement, result, Some(fills))?)?
            }
        };
        let counts = [result.order_count_0, result.order_count_1];
        Ok(with_order_counts(reply, &self.limits, counts))
    }

    fn placed<'a>(
        &self,
        acknowledgement: Acknowledgement<'a>,
        result: &OrderResult,
        fills: Option<Vec<Fill<'a>>>,
    ) -> Result<Placed<'a>, ApiError> {
        let status = OrderStatus::from_wire(result.status).ok_or(ApiError::unexpected_response())?;
        Ok(Placed {
            symbol: acknowledgement.symbol,
            order_id: acknowledgement.order_id,
            order_list_id: acknowledgement.order_list_id,
            client_order_id: acknowledgement.client_order_id,
            transact_time: acknowledgement.transact_time,
            price: Decimal(self.price),
            orig_qty: Decimal(result.quantity),
            executed_qty: Decimal(result.executed_quantity),
            cummulative_quote_qty: Decimal(result.executed_quote),
            status: names::order_status(status),
            time_in_force: names::time_in_force(
                self.choices.time_in_force.unwrap_or(TimeInForce::Gtc),
            ),
            r#type: names::order_type(self.choices.kind),
            side: names::side(self.choices.side),
            stop_price: None,
            iceberg_qty: None,
            fills,
        })
    }

    fn fill(&self, fill: &orders::Fill) -> Fill<'_> {
        Fill {
            price: Decimal(fill.price),
            qty: Decimal(fill.quantity),
            commission: Decimal(fill.commission),
            commission_asset: self.commission_asset.as_str(),
            trade_id: fill.trade_id.0,
        }
    }
}

/// Adds the account's order counts, the accepted orders included (spot contract §8).
pub(super) fn with_order_counts(mut reply: Reply, limits: &Limits, counts: [u32; 2]) -> Reply {
    for (limit, count) in order_count_limits(limits).into_iter().zip(counts) {
        let Some((seconds, _)) = limit else { continue };
        let (interval, number) = names::interval(seconds);
        let name = format!("X-SVC-ORDER-COUNT-{number}{}", interval.letter());
        reply = reply.header(name, count.to_string());
    }
    reply
}
