//! DELETE /order, DELETE /orderList and DELETE /openOrders (spot contract §4): the request becomes a
//! command. The answers are in `report`.

mod report;

use touchline_protocol::message::command::{CancelAll, CancelOrderList, CancelOrderNamed};
use touchline_protocol::text::ClientOrderId;
use touchline_protocol::units::{OrderId, OrderListId};

use super::ids;
use super::intake::Intake;
use super::query::OrderName;
use super::report::symbol;
use super::submission::Submission;
use crate::api_error::ApiError;
use crate::link::OrderCommand;
use report::{Cancellation, What};

/// DELETE /order: of an order of a list both go.
pub(super) fn order(intake: &Intake<'_>) -> Result<Submission, ApiError> {
    let name = intake.parameters.required_symbol("symbol")?;
    let order = OrderName::read(&intake.parameters)?;
    let own_name = own_name(intake)?;
    let signed = intake.signed()?;
    let symbol = symbol(intake, name)?;
    // In the command 0 means that the client order id decides; no order has this number.
    if order.order_id == Some(OrderId(0)) {
        return Err(ApiError::unknown_order());
    }
    let client_order_id = own_name.map_or_else(generated, Ok)?;
    let command = CancelOrderNamed {
        symbol: symbol.id,
        order_id: order.order_id.unwrap_or_default(),
        client_order_id: order.client_order_id,
        cancel_client_order_id: client_order_id,
        ..Default::default()
    };
    let report = Cancellation { symbol: symbol.name, client_order_id, what: What::Order(order) };
    Ok(Submission::new(OrderCommand::Cancel(command), &signed, report))
}

/// DELETE /orderList.
pub(super) fn list(intake: &Intake<'_>) -> Result<Submission, ApiError> {
    let sent = &intake.parameters;
    let name = sent.required_symbol("symbol")?;
    let id = sent.long("orderListId")?;
    let list_name = sent.client_id("listClientOrderId")?.and_then(ClientOrderId::new);
    let own_name = own_name(intake)?;
    sent.require_either("orderListId", "listClientOrderId")?;
    let signed = intake.signed()?;
    let symbol = symbol(intake, name)?;
    let client_order_id = own_name.map_or_else(generated, Ok)?;
    let command = CancelOrderList {
        symbol: symbol.id,
        order_list_id: id.map_or(OrderListId::NONE, OrderListId),
        list_client_order_id: list_name.unwrap_or(ClientOrderId::EMPTY),
        cancel_client_order_id: client_order_id,
        ..Default::default()
    };
    let report = Cancellation { symbol: symbol.name, client_order_id, what: What::List };
    Ok(Submission::new(OrderCommand::CancelList(command), &signed, report))
}

/// DELETE /openOrders: one generated name stands for all cancels (facts §3).
pub(super) fn all(intake: &Intake<'_>) -> Result<Submission, ApiError> {
    let name = intake.parameters.required_symbol("symbol")?;
    let signed = intake.signed()?;
    let symbol = symbol(intake, name)?;
    let client_order_id = generated()?;
    let command = CancelAll {
        symbol: symbol.id,
        cancel_client_order_id: client_order_id,
        ..Default::default()
    };
    let report = Cancellation { symbol: symbol.name, client_order_id, what: What::All };
    Ok(Submission::new(OrderCommand::CancelAll(command), &signed, report))
}

/// The name of the cancel itself, if one was sent.
fn own_name(intake: &Intake<'_>) -> Result<Option<ClientOrderId>, ApiError> {
    Ok(intake.parameters.client_id("newClientOrderId")?.and_then(ClientOrderId::new))
}

fn generated() -> Result<ClientOrderId, ApiError> {
    ids::client_order_id().map_err(|_| ApiError::unknown())
}
