//! POST /order (spot contract §4): the request becomes a command, the engine's decision the answer.
//!
//! Here is checked what needs the request's text alone, and what the symbol cannot do at all.
//! Filters, limits and balances are the engine's to check.

use touchline_protocol::decimal::{self, DecimalError};
use touchline_protocol::message::command::{
    Limits, NewOrder, SYMBOL_ICEBERG, SYMBOL_QUOTE_QUANTITY,
};
use touchline_protocol::message::enums::{OrderStatus, OrderType, Side, TimeInForce};
use touchline_protocol::message::event::OrderResult;
use touchline_protocol::text::{AssetName, ClientOrderId, SymbolName};

use super::intake::Intake;
use super::market::order_count_limits;
use super::names::ResponseType;
use super::responses::{Acknowledgement, Decimal, Fill, Placed};
use super::{Report, Submission, ids, json, names, reject};
use crate::api_error::ApiError;
use crate::http::Reply;
use crate::link::{Decision, OrderCommand, Terminal};
use crate::parameters::{ParameterError, Parameters};
use crate::views::{Views, orders, venue};

/// The parameters of POST /order.
pub(super) const PARAMETERS: [&str; 11] = [
    "symbol",
    "side",
    "type",
    "timeInForce",
    "quantity",
    "quoteOrderQty",
    "price",
    "newClientOrderId",
    "stopPrice",
    "icebergQty",
    "newOrderRespType",
];

/// The parameters as they were sent, each of the right form.
struct Sent<'a> {
    symbol: &'a str,
    side: &'a str,
    kind: &'a str,
    time_in_force: Option<&'a str>,
    quantity: Option<&'a str>,
    quote_quantity: Option<&'a str>,
    price: Option<&'a str>,
    client_order_id: Option<ClientOrderId>,
    stop_price: Option<&'a str>,
    iceberg_quantity: Option<&'a str>,
    response_type: Option<&'a str>,
}

impl<'a> Sent<'a> {
    fn read(parameters: &'a Parameters<'_>) -> Result<Self, ParameterError> {
        Ok(Self {
            symbol: parameters.required_symbol("symbol")?,
            side: parameters.required_text("side")?,
            kind: parameters.required_text("type")?,
            time_in_force: parameters.text("timeInForce")?,
            quantity: parameters.decimal("quantity")?,
            quote_quantity: parameters.decimal("quoteOrderQty")?,
            price: parameters.decimal("price")?,
            client_order_id: parameters.client_id("newClientOrderId")?.and_then(ClientOrderId::new),
            stop_price: parameters.decimal("stopPrice")?,
            iceberg_quantity: parameters.decimal("icebergQty")?,
            response_type: parameters.text("newOrderRespType")?,
        })
    }

    /// Which parameters the order type asks for and which it does not take.
    fn check_combination(
        &self,
        kind: OrderType,
        parameters: &Parameters<'_>,
    ) -> Result<(), ApiError> {
        let (required, refused): (&[&str], &[&str]) = match kind {
            OrderType::Limit => {
                (&["timeInForce", "quantity", "price"], &["quoteOrderQty", "stopPrice"])
            }
            OrderType::Market => (&[], &["timeInForce", "price", "stopPrice", "icebergQty"]),
            OrderType::StopLoss | OrderType::TakeProfit => (
                &["quantity", "stopPrice"],
                &["timeInForce", "price", "quoteOrderQty", "icebergQty"],
            ),
            OrderType::StopLossLimit | OrderType::TakeProfitLimit => {
                (&["timeInForce", "quantity", "price", "stopPrice"], &["quoteOrderQty"])
            }
            OrderType::LimitMaker => {
                (&["quantity", "price"], &["timeInForce", "quoteOrderQty", "stopPrice"])
            }
        };
        for &name in required {
            if parameters.peek(name).is_none() {
                return Err(ApiError::mandatory_parameter(name));
            }
        }
        if kind == OrderType::Market {
            parameters.require_either("quantity", "quoteOrderQty")?;
            if self.quantity.is_some() && self.quote_quantity.is_some() {
                return Err(ParameterError::Combination.into());
            }
        }
        if let Some(&name) = refused.iter().find(|name| parameters.peek(name).is_some()) {
            return Err(ApiError::parameter_not_required(name));
        }
        let may_rest = self.time_in_force.and_then(names::read_time_in_force);
        if self.iceberg_quantity.is_some() && may_rest.is_some_and(|time| time != TimeInForce::Gtc)
        {
            return Err(ApiError::unsupported_order_combination());
        }
        Ok(())
    }
}

/// What the answer needs of the request.
pub(super) struct Placement {
    symbol: SymbolName,
    commission_asset: AssetName,
    client_order_id: ClientOrderId,
    choices: Choices,
    price: i64,
    limits: Limits,
}

/// The enumerations of a placement, read.
#[derive(Clone, Copy)]
struct Choices {
    kind: OrderType,
    side: Side,
    /// `None` for types that have none.
    time_in_force: Option<TimeInForce>,
    response_type: ResponseType,
}

impl Choices {
    fn read(sent: &Sent<'_>) -> Result<Self, ApiError> {
        let time_in_force = sent
            .time_in_force
            .map(|text| names::read_time_in_force(text).ok_or(ApiError::invalid_time_in_force()))
            .transpose()?;
        let kind = names::read_order_type(sent.kind).ok_or(ApiError::invalid_order_type())?;
        let side = names::read_side(sent.side).ok_or(ApiError::invalid_side())?;
        let response_type = match (sent.response_type, kind) {
            (Some(text), _) => {
                names::read_response_type(text).ok_or(ApiError::invalid_response_type())?
            }
            (None, OrderType::Market | OrderType::Limit) => ResponseType::Full,
            (None, _) => ResponseType::Ack,
        };
        Ok(Self { kind, side, time_in_force, response_type })
    }
}

pub(super) fn order(intake: &Intake<'_>) -> Result<Submission, ApiError> {
    let sent = Sent::read(&intake.parameters)?;
    let admission = intake.signed()?;
    if let Some(kind) = names::read_order_type(sent.kind) {
        sent.check_combination(kind, &intake.parameters)?;
    }
    let (symbol, limits) = intake
        .read(|state| Some((state.venue.facts(sent.symbol)?, state.venue.limits)))
        .ok_or(ApiError::invalid_symbol())?;
    let choices = Choices::read(&sent)?;
    let mut command = command(&sent, choices, &symbol)?;
    check_capability(&symbol, &sent, &command)?;
    command.client_order_id = match sent.client_order_id {
        Some(name) => name,
        None => ids::client_order_id().map_err(|_| ApiError::unknown())?,
    };
    command.command.key_id = admission.caller.key;
    command.command.not_after_ns = admission.not_after_ns;
    let placement = Placement {
        symbol: symbol.name,
        // Commission comes out of what is received (facts §4).
        commission_asset: match choices.side {
            Side::Buy => symbol.base.name,
            Side::Sell => symbol.quote.name,
        },
        client_order_id: command.client_order_id,
        choices,
        price: command.price,
        limits,
    };
    Ok(Submission {
        command: OrderCommand::Place(command),
        report: Report::Placement(placement),
        deadline_first: admission.deadline_first,
    })
}

fn command(
    sent: &Sent<'_>,
    choices: Choices,
    symbol: &venue::SymbolFacts,
) -> Result<NewOrder, ApiError> {
    let (base, quote) = (symbol.base.precision, symbol.quote.precision);
    Ok(NewOrder {
        symbol: symbol.id,
        side: choices.side.to_wire(),
        order_type: choices.kind.to_wire(),
        time_in_force: choices.time_in_force.map_or(0, TimeInForce::to_wire),
        price: units("price", sent.price, quote)?,
        quantity: units("quantity", sent.quantity, base)?,
        quote_quantity: units("quoteOrderQty", sent.quote_quantity, quote)?,
        stop_price: units("stopPrice", sent.stop_price, quote)?,
        iceberg_quantity: units("icebergQty", sent.iceberg_quantity, base)?,
        ..Default::default()
    })
}

/// A DECIMAL in 10⁻⁸ units, 0 when it is not sent; with no more fraction digits than its asset has.
fn units(name: &str, text: Option<&str>, precision: u8) -> Result<i64, ApiError> {
    let Some(text) = text else { return Ok(0) };
    let units = decimal::parse(text.as_bytes()).map_err(|error| match error {
        DecimalError::TooPrecise => ApiError::too_much_precision(),
        DecimalError::TooLarge => ApiError::parameter_overflow(name),
        DecimalError::Malformed => ApiError::mandatory_parameter(name),
    })?;
    let step = 10i64.pow(8u32.saturating_sub(u32::from(precision)));
    if units % step == 0 { Ok(units) } else { Err(ApiError::too_much_precision()) }
}

/// What a symbol does not do at all has texts of its own (facts §1.3), which the engine's reject
/// could not choose from.
fn check_capability(
    symbol: &venue::SymbolFacts,
    sent: &Sent<'_>,
    order: &NewOrder,
) -> Result<(), ApiError> {
    if sent.quote_quantity.is_some() && symbol.flags & SYMBOL_QUOTE_QUANTITY == 0 {
        return Err(ApiError::quote_order_qty_unsupported());
    }
    if sent.iceberg_quantity.is_some() && symbol.flags & SYMBOL_ICEBERG == 0 {
        return Err(ApiError::iceberg_orders_unsupported());
    }
    if order.iceberg_quantity > order.quantity {
        return Err(ApiError::iceberg_exceeds_quantity());
    }
    Ok(())
}

impl Placement {
    /// False if the answer needs fills and some are missing from the decision.
    pub(super) fn has_its_fills(&self, decision: &Decision) -> bool {
        let Terminal::Placed(result) = &decision.terminal else { return true };
        let sum = |of: fn(&touchline_protocol::message::event::Trade) -> i64| {
            decision.trades.iter().map(|trade| i128::from(of(trade))).sum::<i128>()
        };
        self.choices.response_type != ResponseType::Full
            || sum(|trade| trade.quantity) == i128::from(result.executed_quantity)
                && sum(|trade| trade.quote_amount) == i128::from(result.executed_quote)
    }

    /// The answer, fills taken from the decision.
    pub(super) fn report(&self, decision: &Decision) -> Result<Reply, ApiError> {
        let fills = decision.trades.iter().map(|trade| orders::Fill {
            trade_id: trade.trade_id,
            price: trade.price,
            quantity: trade.quantity,
            commission: trade.taker_commission,
        });
        self.answer(decision, &fills.collect::<Vec<_>>())
    }

    /// The answer, fills taken from the views, which have reached the decision's position.
    pub(super) fn report_from(
        &self,
        views: &Views,
        decision: &Decision,
    ) -> Result<Reply, ApiError> {
        let Terminal::Placed(result) = &decision.terminal else { return self.report(decision) };
        let fills = views.read(|state| {
            state.orders.get(result.symbol, result.order_id).map(|order| order.fills.clone())
        });
        // An order that the views have forgotten already was executed all the same.
        self.answer(decision, &fills.ok_or(ApiError::unexpected_response())?)
    }

    fn answer(&self, decision: &Decision, fills: &[orders::Fill]) -> Result<Reply, ApiError> {
        let result = match &decision.terminal {
            Terminal::Placed(result) => result,
            Terminal::Rejected(rejected) => {
                return Err(reject::placement(rejected, self.choices.kind, &self.limits));
            }
            Terminal::Canceled(_) => return Err(ApiError::unexpected_response()),
        };
        let acknowledgement = Acknowledgement {
            symbol: self.symbol.as_str(),
            order_id: result.order_id.0,
            order_list_id: result.order_list_id.0,
            client_order_id: self.client_order_id.as_str(),
            transact_time: decision.time_ns / 1_000_000,
        };
        let reply = match self.choices.response_type {
            ResponseType::Ack => json(200, &acknowledgement)?,
            ResponseType::Result => json(200, &self.placed(acknowledgement, result, None)?)?,
            ResponseType::Full => {
                let fills = fills.iter().map(|fill| self.fill(fill)).collect();
                json(200, &self.placed(acknowledgement, result, Some(fills))?)?
            }
        };
        Ok(self.with_order_counts(reply, result))
    }

    fn placed<'a>(
        &self,
        acknowledgement: Acknowledgement<'a>,
        result: &OrderResult,
        fills: Option<Vec<Fill<'a>>>,
    ) -> Result<Placed<'a>, ApiError> {
        let status = OrderStatus::from_wire(result.status).ok_or(ApiError::unexpected_response())?;
        Ok(Placed {
            acknowledgement,
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

    /// The account's order counts, this order included (spot contract §8).
    fn with_order_counts(&self, mut reply: Reply, result: &OrderResult) -> Reply {
        let counts = [result.order_count_0, result.order_count_1];
        for (limit, count) in order_count_limits(&self.limits).into_iter().zip(counts) {
            let Some((seconds, _)) = limit else { continue };
            let (interval, number) = names::interval(seconds);
            let name = format!("X-SVC-ORDER-COUNT-{number}{}", interval.letter());
            reply = reply.header(name, count.to_string());
        }
        reply
    }
}
