//! POST /order and POST /order/test (spot contract §4): the request becomes a command. Order lists are
//! in `list`, the answers in `report`.
//!
//! Here is checked what needs the request's text alone, and what the symbol cannot do at all.
//! Filters, limits and balances are the engine's to check.

pub(super) mod list;
mod report;

use touchline_protocol::decimal::{self, DecimalError};
use touchline_protocol::message::command::{
    Limits, NewOrder, ORDER_VALIDATE_ONLY, SYMBOL_ICEBERG, SYMBOL_QUOTE_QUANTITY,
};
use touchline_protocol::message::enums::{OrderType, Side, TimeInForce};
use touchline_protocol::text::ClientOrderId;

use super::intake::{Intake, Signed};
use super::names::ResponseType;
use super::responses::Extras;
use super::submission::Submission;
use super::{ids, names};
use crate::api_error::ApiError;
use crate::link::OrderCommand;
use crate::parameters::{ParameterError, Parameters};
use crate::views::venue;
use report::{Placement, Validation};

/// The parameters of POST /order and POST /order/test.
pub(super) const PARAMETERS: [&str; 11] = [
    "symbol!",
    "side!",
    "type!",
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
        let (required, refused): (&[&str], &[&'static str]) = match kind {
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
        refused.iter().try_for_each(|name| parameters.refuse(name))?;
        let may_rest = self.time_in_force.and_then(names::read_time_in_force);
        if self.iceberg_quantity.is_some() && may_rest.is_some_and(|time| time != TimeInForce::Gtc)
        {
            return Err(ApiError::unsupported_order_combination());
        }
        Ok(())
    }
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

/// POST /order.
pub(super) fn order(intake: &Intake<'_>) -> Result<Submission, ApiError> {
    let Request { sent, signed, symbol, limits, choices } = Request::read(intake)?;
    let mut command = command(&sent, choices, &symbol)?;
    check_capability(&symbol, &sent, &command)?;
    command.client_order_id = named(sent.client_order_id)?;
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
        extras: Extras::new(command.stop_price, command.iceberg_quantity),
        is_by_quote: sent.quote_quantity.is_some(),
        limits,
    };
    Ok(Submission::new(OrderCommand::Place(command), &signed, placement))
}

/// POST /order/test: the engine makes the checks that need no book and no balance, and nothing is
/// changed.
pub(super) fn test(intake: &Intake<'_>) -> Result<Submission, ApiError> {
    let Request { sent, signed, symbol, limits, choices } = Request::read(intake)?;
    let mut command = command(&sent, choices, &symbol)?;
    check_capability(&symbol, &sent, &command)?;
    command.client_order_id = named(sent.client_order_id)?;
    command.flags = ORDER_VALIDATE_ONLY;
    let validation = Validation { kind: choices.kind, limits };
    Ok(Submission::new(OrderCommand::Place(command), &signed, validation))
}

/// A placement whose parameters go together, for a symbol that exists.
struct Request<'a> {
    sent: Sent<'a>,
    signed: Signed,
    symbol: venue::SymbolFacts,
    limits: Limits,
    choices: Choices,
}

impl<'a> Request<'a> {
    fn read(intake: &'a Intake<'_>) -> Result<Self, ApiError> {
        let sent = Sent::read(&intake.parameters)?;
        let signed = intake.signed()?;
        if let Some(kind) = names::read_order_type(sent.kind) {
            sent.check_combination(kind, &intake.parameters)?;
        }
        let (symbol, limits) = symbol_and_limits(intake, sent.symbol)?;
        let choices = Choices::read(&sent)?;
        Ok(Self { sent, signed, symbol, limits, choices })
    }
}

/// What it takes to read an order on the symbol with this name, and the order-count limits.
fn symbol_and_limits(
    intake: &Intake<'_>,
    name: &str,
) -> Result<(venue::SymbolFacts, Limits), ApiError> {
    intake
        .read(|state| Some((state.venue.facts(name)?, state.venue.limits)))
        .ok_or(ApiError::invalid_symbol())
}

/// The name that was sent, or a fresh one.
fn named(sent: Option<ClientOrderId>) -> Result<ClientOrderId, ApiError> {
    sent.map_or_else(|| ids::client_order_id().map_err(|_| ApiError::unknown()), Ok)
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
    // In the command an iceberg quantity of 0 means that all of the order is shown.
    if sent.iceberg_quantity.is_some() && order.iceberg_quantity == 0 {
        return Err(ApiError::invalid_quantity());
    }
    if order.iceberg_quantity > order.quantity {
        return Err(ApiError::iceberg_exceeds_quantity());
    }
    Ok(())
}
