//! DELETE /order (spot contract §4): the request becomes a command, the engine's decision the cancel
//! report.

use touchline_protocol::message::command::CancelOrderNamed;
use touchline_protocol::message::enums::{OrderStatus, OrderType, Side, TimeInForce};
use touchline_protocol::message::event::OrderCanceled;
use touchline_protocol::text::{ClientOrderId, SymbolName};
use touchline_protocol::units::OrderId;

use super::intake::Intake;
use super::query::OrderName;
use super::responses::{CancelReport, Decimal};
use super::{Report, Submission, ids, json, names, reject};
use crate::api_error::ApiError;
use crate::http::Reply;
use crate::link::{Decision, OrderCommand, Terminal};

/// What the report needs of the request.
pub(super) struct Cancellation {
    symbol: SymbolName,
    /// The name of the cancel itself.
    client_order_id: ClientOrderId,
}

pub(super) fn order(intake: &Intake<'_>) -> Result<Submission, ApiError> {
    let symbol = intake.parameters.required_symbol("symbol")?;
    let name = OrderName::read(&intake.parameters)?;
    let own_name = intake.parameters.client_id("newClientOrderId")?.and_then(ClientOrderId::new);
    let admission = intake.signed()?;
    let (id, symbol) = intake
        .read(|state| state.venue.symbol_named(symbol).map(|symbol| (symbol.id, symbol.name)))
        .ok_or(ApiError::invalid_symbol())?;
    // In the command 0 means that the client order id decides; no order has this number.
    if name.order_id == Some(OrderId(0)) {
        return Err(ApiError::unknown_order());
    }
    let client_order_id = match own_name {
        Some(own_name) => own_name,
        None => ids::client_order_id().map_err(|_| ApiError::unknown())?,
    };
    let mut command = CancelOrderNamed {
        symbol: id,
        order_id: name.order_id.unwrap_or_default(),
        client_order_id: name.client_order_id,
        cancel_client_order_id: client_order_id,
        ..Default::default()
    };
    command.command.key_id = admission.caller.key;
    command.command.not_after_ns = admission.not_after_ns;
    Ok(Submission {
        command: OrderCommand::Cancel(command),
        report: Report::Cancel(Cancellation { symbol, client_order_id }),
        deadline_first: admission.deadline_first,
    })
}

impl Cancellation {
    pub(super) fn report(&self, decision: &Decision) -> Result<Reply, ApiError> {
        match &decision.terminal {
            Terminal::Canceled(canceled) => self.canceled(canceled),
            Terminal::Rejected(rejected) => Err(reject::cancel(rejected)),
            Terminal::Placed(_) => Err(ApiError::unexpected_response()),
        }
    }

    fn canceled(&self, canceled: &OrderCanceled) -> Result<Reply, ApiError> {
        let unexpected = ApiError::unexpected_response;
        let status = OrderStatus::from_wire(canceled.status).ok_or_else(unexpected)?;
        let kind = OrderType::from_wire(canceled.order_type).ok_or_else(unexpected)?;
        let side = Side::from_wire(canceled.side).ok_or_else(unexpected)?;
        let report = CancelReport {
            symbol: self.symbol.as_str(),
            orig_client_order_id: canceled.client_order_id.as_str(),
            order_id: canceled.order_id.0,
            order_list_id: canceled.order_list_id.0,
            client_order_id: self.client_order_id.as_str(),
            price: Decimal(canceled.price),
            orig_qty: Decimal(canceled.quantity),
            executed_qty: Decimal(canceled.executed_quantity),
            cummulative_quote_qty: Decimal(canceled.executed_quote),
            status: names::order_status(status),
            time_in_force: names::time_in_force(
                TimeInForce::from_wire(canceled.time_in_force).unwrap_or(TimeInForce::Gtc),
            ),
            r#type: names::order_type(kind),
            side: names::side(side),
        };
        json(200, &report)
    }
}
