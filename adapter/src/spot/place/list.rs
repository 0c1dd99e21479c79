//! POST /order/oco (spot contract §4): a list of a LIMIT_MAKER and a stop loss order, of which one
//! cancels the other.

use touchline_protocol::message::command::{Limits, PlaceOrderList, SYMBOL_ICEBERG, SYMBOL_OCO};
use touchline_protocol::message::enums::{OrderStatus, OrderType, Side, TimeInForce};
use touchline_protocol::message::event::OrderListChanged;
use touchline_protocol::text::{ClientOrderId, SymbolName};

use super::report::with_order_counts;
use super::{named, symbol_and_limits, units};
use crate::api_error::ApiError;
use crate::http::Reply;
use crate::link::{Decision, OrderCommand, Terminal};
use crate::parameters::{ParameterError, Parameters};
use crate::spot::intake::Intake;
use crate::spot::names::ResponseType;
use crate::spot::report::{Report, listed};
use crate::spot::responses::{Acknowledgement, Decimal, Extras, OrderList, Placed, PlacedLeg};
use crate::spot::submission::Submission;
use crate::spot::{Shared, json, names, reject};
use crate::views::venue;

/// The parameters of POST /order/oco.
pub(in crate::spot) const PARAMETERS: [&str; 13] = [
    "symbol!",
    "listClientOrderId",
    "side!",
    "quantity!",
    "limitClientOrderId",
    "price!",
    "limitIcebergQty",
    "stopClientOrderId",
    "stopPrice!",
    "stopLimitPrice",
    "stopIcebergQty",
    "stopLimitTimeInForce",
    "newOrderRespType",
];

/// The parameters as they were sent, each of the right form.
struct Sent<'a> {
    symbol: &'a str,
    list_client_order_id: Option<ClientOrderId>,
    side: &'a str,
    quantity: &'a str,
    limit_client_order_id: Option<ClientOrderId>,
    price: &'a str,
    limit_iceberg_quantity: Option<&'a str>,
    stop_client_order_id: Option<ClientOrderId>,
    stop_price: &'a str,
    stop_limit_price: Option<&'a str>,
    stop_iceberg_quantity: Option<&'a str>,
    stop_limit_time_in_force: Option<&'a str>,
    response_type: Option<&'a str>,
}

impl<'a> Sent<'a> {
    fn read(sent: &'a Parameters<'_>) -> Result<Self, ParameterError> {
        let name = |parameter| Ok(sent.client_id(parameter)?.and_then(ClientOrderId::new));
        Ok(Self {
            symbol: sent.required_symbol("symbol")?,
            list_client_order_id: name("listClientOrderId")?,
            side: sent.required_text("side")?,
            quantity: sent.required_decimal("quantity")?,
            limit_client_order_id: name("limitClientOrderId")?,
            price: sent.required_decimal("price")?,
            limit_iceberg_quantity: sent.decimal("limitIcebergQty")?,
            stop_client_order_id: name("stopClientOrderId")?,
            stop_price: sent.required_decimal("stopPrice")?,
            stop_limit_price: sent.decimal("stopLimitPrice")?,
            stop_iceberg_quantity: sent.decimal("stopIcebergQty")?,
            stop_limit_time_in_force: sent.text("stopLimitTimeInForce")?,
            response_type: sent.text("newOrderRespType")?,
        })
    }

    /// A stop limit price and its time in force go together, and only such a stop leg may be an
    /// iceberg.
    fn check_combination(&self, parameters: &Parameters<'_>) -> Result<(), ApiError> {
        if self.stop_limit_price.is_none() {
            parameters.refuse("stopLimitTimeInForce")?;
            return Ok(parameters.refuse("stopIcebergQty")?);
        }
        if self.stop_limit_time_in_force.is_none() {
            return Err(ApiError::invalid_combination_without("stopLimitTimeInForce"));
        }
        Ok(())
    }
}

/// The enumerations of a list, read.
#[derive(Clone, Copy)]
struct Choices {
    side: Side,
    /// `None` for a stop leg without a limit price.
    stop_time_in_force: Option<TimeInForce>,
    response_type: ResponseType,
}

impl Choices {
    fn read(sent: &Sent<'_>) -> Result<Self, ApiError> {
        let stop_time_in_force = sent
            .stop_limit_time_in_force
            .map(|text| names::read_time_in_force(text).ok_or(ApiError::invalid_time_in_force()))
            .transpose()?;
        let side = names::read_side(sent.side).ok_or(ApiError::invalid_side())?;
        let response_type = match sent.response_type {
            Some(text) => {
                names::read_response_type(text).ok_or(ApiError::invalid_response_type())?
            }
            None => ResponseType::Result,
        };
        Ok(Self { side, stop_time_in_force, response_type })
    }

    const fn stop_type(self) -> OrderType {
        match self.stop_time_in_force {
            Some(_) => OrderType::StopLossLimit,
            None => OrderType::StopLoss,
        }
    }
}

/// POST /order/oco.
pub(in crate::spot) fn oco(intake: &Intake<'_>) -> Result<Submission, ApiError> {
    let sent = Sent::read(&intake.parameters)?;
    let signed = intake.signed()?;
    sent.check_combination(&intake.parameters)?;
    let (symbol, limits) = symbol_and_limits(intake, sent.symbol)?;
    let choices = Choices::read(&sent)?;
    if sent.stop_iceberg_quantity.is_some() && choices.stop_time_in_force != Some(TimeInForce::Gtc)
    {
        return Err(ApiError::unsupported_order_combination());
    }
    let command = command(&sent, choices, &symbol)?;
    check_capability(&symbol, choices, &sent, &command)?;
    let placement = ListPlacement { symbol: symbol.name, command, choices, limits };
    Ok(Submission::new(OrderCommand::PlaceList(command), &signed, placement))
}

fn command(
    sent: &Sent<'_>,
    choices: Choices,
    symbol: &venue::SymbolFacts,
) -> Result<PlaceOrderList, ApiError> {
    let (base, quote) = (symbol.base.precision, symbol.quote.precision);
    Ok(PlaceOrderList {
        symbol: symbol.id,
        side: choices.side.to_wire(),
        stop_limit_time_in_force: choices.stop_time_in_force.map_or(0, TimeInForce::to_wire),
        quantity: units("quantity", Some(sent.quantity), base)?,
        price: units("price", Some(sent.price), quote)?,
        limit_iceberg_quantity: units("limitIcebergQty", sent.limit_iceberg_quantity, base)?,
        stop_price: units("stopPrice", Some(sent.stop_price), quote)?,
        stop_limit_price: units("stopLimitPrice", sent.stop_limit_price, quote)?,
        stop_iceberg_quantity: units("stopIcebergQty", sent.stop_iceberg_quantity, base)?,
        list_client_order_id: named(sent.list_client_order_id)?,
        limit_client_order_id: named(sent.limit_client_order_id)?,
        stop_client_order_id: named(sent.stop_client_order_id)?,
        ..Default::default()
    })
}

/// What has a text of its own, which the engine's reject could not choose (facts §1.3).
fn check_capability(
    symbol: &venue::SymbolFacts,
    choices: Choices,
    sent: &Sent<'_>,
    list: &PlaceOrderList,
) -> Result<(), ApiError> {
    if symbol.flags & SYMBOL_OCO == 0 {
        return Err(ApiError::oco_orders_unsupported());
    }
    // The engine's reject does not say which leg it is about. It is told as the stop leg's.
    let types = symbol.order_types;
    if choices.stop_type().is_in(types) && !OrderType::LimitMaker.is_in(types) {
        return Err(ApiError::limit_maker_orders_unsupported());
    }
    let icebergs = [
        (sent.limit_iceberg_quantity, list.limit_iceberg_quantity),
        (sent.stop_iceberg_quantity, list.stop_iceberg_quantity),
    ];
    if icebergs.iter().any(|(sent, _)| sent.is_some()) && symbol.flags & SYMBOL_ICEBERG == 0 {
        return Err(ApiError::iceberg_orders_unsupported());
    }
    // In the command an iceberg quantity of 0 means that all of the leg is shown.
    if icebergs.iter().any(|(sent, quantity)| sent.is_some() && *quantity == 0) {
        return Err(ApiError::invalid_quantity());
    }
    if list.limit_iceberg_quantity.max(list.stop_iceberg_quantity) > list.quantity {
        return Err(ApiError::iceberg_exceeds_quantity());
    }
    // In the command a stop limit price of 0 means that there is none.
    if sent.stop_limit_price.is_some() && list.stop_limit_price == 0 {
        return Err(ApiError::invalid_price());
    }
    Ok(())
}

/// What the answer needs of the request.
struct ListPlacement {
    symbol: SymbolName,
    command: PlaceOrderList,
    choices: Choices,
    limits: Limits,
}

impl Report for ListPlacement {
    fn reply(&self, decision: &Decision, shared: &Shared) -> Result<Option<Reply>, ApiError> {
        match &decision.terminal {
            Terminal::List(placed) => {
                let [stop, limit] = self.extras();
                for (order, extras) in
                    [(placed.stop_order_id, stop), (placed.limit_order_id, limit)]
                {
                    let order = (placed.symbol, order);
                    shared.fresh.note(decision, order, extras, shared.views.reached());
                }
                let reply = json(&self.placed(placed, decision.time_ns / 1_000_000))?;
                let counts = [placed.order_count_0, placed.order_count_1];
                Ok(Some(with_order_counts(reply, &self.limits, counts)))
            }
            Terminal::Rejected(rejected) => {
                Err(reject::placement(rejected, self.choices.stop_type(), &self.limits))
            }
            _ => Err(ApiError::unexpected_response()),
        }
    }
}

impl ListPlacement {
    /// Of both legs, the stop leg first.
    fn extras(&self) -> [Extras; 2] {
        let list = &self.command;
        let stop = Extras::new(list.stop_price, list.stop_iceberg_quantity);
        [stop, Extras::new(0, list.limit_iceberg_quantity)]
    }

    fn placed(&self, placed: &OrderListChanged, time_ms: u64) -> OrderList<'_, PlacedLeg<'_>> {
        let list = &self.command;
        let symbol = self.symbol.as_str();
        let stop = (placed.stop_order_id.0, list.stop_client_order_id.as_str());
        let limit = (placed.limit_order_id.0, list.limit_client_order_id.as_str());
        let leg = |(order_id, client_order_id)| Acknowledgement {
            symbol,
            order_id,
            order_list_id: placed.order_list_id.0,
            client_order_id,
            transact_time: time_ms,
        };
        let [stop_extras, limit_extras] = self.extras();
        let time_in_force = self.choices.stop_time_in_force.unwrap_or(TimeInForce::Gtc);
        let stop_kind = (self.choices.stop_type(), time_in_force);
        let limit_kind = (OrderType::LimitMaker, TimeInForce::Gtc);
        OrderList {
            order_list_id: placed.order_list_id.0,
            contingency_type: names::CONTINGENCY_TYPE,
            list_status_type: names::LIST_PLACED.0,
            list_order_status: names::LIST_PLACED.1,
            list_client_order_id: list.list_client_order_id.as_str(),
            transaction_time: time_ms,
            symbol,
            orders: listed(symbol, [stop, limit]),
            order_reports: Some([
                self.leg(leg(stop), stop_kind, list.stop_limit_price, stop_extras),
                self.leg(leg(limit), limit_kind, list.price, limit_extras),
            ]),
        }
    }

    /// Neither leg has executed anything when its list is placed.
    fn leg<'a>(
        &self,
        acknowledgement: Acknowledgement<'a>,
        (kind, time_in_force): (OrderType, TimeInForce),
        price: i64,
        extras: Extras,
    ) -> PlacedLeg<'a> {
        let fills = match self.choices.response_type {
            ResponseType::Ack => return PlacedLeg::Acknowledged(acknowledgement),
            ResponseType::Result => None,
            ResponseType::Full => Some(Vec::new()),
        };
        PlacedLeg::Placed(Box::new(Placed {
            symbol: acknowledgement.symbol,
            order_id: acknowledgement.order_id,
            order_list_id: acknowledgement.order_list_id,
            client_order_id: acknowledgement.client_order_id,
            transact_time: acknowledgement.transact_time,
            price: Decimal(price),
            orig_qty: Decimal(self.command.quantity),
            executed_qty: Decimal(0),
            cummulative_quote_qty: Decimal(0),
            status: names::order_status(OrderStatus::New),
            time_in_force: names::time_in_force(time_in_force),
            r#type: names::order_type(kind),
            side: names::side(self.choices.side),
            stop_price: extras.stop_price,
            iceberg_qty: extras.iceberg_qty,
            fills,
        }))
    }
}
