//! Cancel reports (spot contract §2): of an order, of a list with both its orders, of all that was open
//! on a symbol.
//!
//! The engine tells how each order ended, but not the stop price and the iceberg quantity that it was
//! placed with: these are the views'. An order that they do not know yet was placed since: over this adapter, which
//! keeps what it was placed with, or by others, and then the report waits for the views.

use touchline_protocol::message::enums::{OrderStatus, OrderType, Side, TimeInForce};
use touchline_protocol::message::event::{MassCanceled, OrderCanceled, OrderListChanged};
use touchline_protocol::text::{ClientOrderId, SymbolName};

use crate::api_error::ApiError;
use crate::http::Reply;
use crate::link::{Decision, Terminal};
use crate::spot::query::OrderName;
use crate::spot::report::{Report, listed};
use crate::spot::responses::{CancelReport, Canceled, Decimal, Extras, OrderList};
use crate::spot::{ORDER_BYTES, Shared, json, json_list, names, reject};
use crate::views::orders::Order;

/// What the report needs of the request.
pub(super) struct Cancellation {
    pub(super) symbol: SymbolName,
    /// The name of the cancel itself.
    pub(super) client_order_id: ClientOrderId,
    pub(super) what: What,
}

/// What was to be cancelled.
pub(super) enum What {
    Order(OrderName),
    List,
    All,
}

impl Report for Cancellation {
    fn reply(&self, decision: &Decision, shared: &Shared) -> Result<Option<Reply>, ApiError> {
        match (&self.what, &decision.terminal) {
            (_, Terminal::Rejected(rejected)) => Err(reject::cancel(rejected)),
            (What::Order(_), Terminal::Canceled(order)) => {
                let Some(ended) = with_extras(decision, order, shared)? else { return Ok(None) };
                json(&self.report(&ended)?).map(Some)
            }
            (What::Order(name), Terminal::List(list)) => self.leg(name, decision, list, shared),
            (What::List, Terminal::List(list)) => {
                let Some(legs) = legs(decision, list, shared)? else { return Ok(None) };
                let legs = [self.report(&legs[0])?, self.report(&legs[1])?];
                let list = self.list(list, legs, decision.time_ns / 1_000_000);
                json(&list).map(Some)
            }
            (What::All, Terminal::CanceledAll(all)) => self.all(decision, all, shared),
            _ => Err(ApiError::unexpected_response()),
        }
    }
}

/// How an order ended, and what it was placed with.
#[derive(Clone)]
struct Ended {
    event: OrderCanceled,
    extras: Extras,
}

fn with_extras(
    decision: &Decision,
    event: &OrderCanceled,
    shared: &Shared,
) -> Result<Option<Ended>, ApiError> {
    if let Some(extras) = shared.fresh.find(decision, (event.symbol, event.order_id)) {
        return Ok(Some(Ended { event: *event, extras }));
    }
    let found =
        shared.views.read(|state| state.order(event.account, event.symbol, event.order_id))?;
    Ok(found.find()?.map(|order| Ended { event: *event, extras: extras(&order) }))
}

fn extras(order: &Order) -> Extras {
    Extras::new(order.stop_price, order.iceberg_quantity)
}

/// Both orders of a list that was cancelled, the stop leg first: as the engine told, or where its reply
/// was lost, as the views show them.
fn legs(
    decision: &Decision,
    list: &OrderListChanged,
    shared: &Shared,
) -> Result<Option<[Ended; 2]>, ApiError> {
    let leg = |id| {
        let told = decision.told.canceled.iter().find(|canceled| canceled.order_id == id);
        match told {
            Some(event) => with_extras(decision, event, shared),
            None => {
                let order =
                    shared.views.read(|state| state.order(list.account, list.symbol, id))?;
                Ok(order.find()?.filter(|order| !order.status.is_open()).map(|order| ended(&order)))
            }
        }
    };
    let [stop, limit] = [leg(list.stop_order_id)?, leg(list.limit_order_id)?];
    Ok(stop.zip(limit).map(<[Ended; 2]>::from))
}

fn ended(order: &Order) -> Ended {
    let event = OrderCanceled {
        order_id: order.order_id,
        account: order.account,
        symbol: order.symbol,
        price: order.price,
        quantity: order.quantity,
        executed_quantity: order.executed,
        executed_quote: order.executed_quote,
        order_list_id: order.order_list_id,
        status: order.status.to_wire(),
        side: order.side.to_wire(),
        order_type: order.order_type.to_wire(),
        time_in_force: order.time_in_force.to_wire(),
        client_order_id: order.client_order_id,
        ..Default::default()
    };
    Ended { event, extras: extras(order) }
}

impl Cancellation {
    fn report<'a>(&'a self, ended: &'a Ended) -> Result<CancelReport<'a>, ApiError> {
        let unexpected = ApiError::unexpected_response;
        let canceled = &ended.event;
        let status = OrderStatus::from_wire(canceled.status).ok_or_else(unexpected)?;
        let kind = OrderType::from_wire(canceled.order_type).ok_or_else(unexpected)?;
        let side = Side::from_wire(canceled.side).ok_or_else(unexpected)?;
        Ok(CancelReport {
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
            stop_price: ended.extras.stop_price,
            iceberg_qty: ended.extras.iceberg_qty,
        })
    }

    /// The order of a list that was named: the contract promises a report of that one.
    fn leg(
        &self,
        name: &OrderName,
        decision: &Decision,
        list: &OrderListChanged,
        shared: &Shared,
    ) -> Result<Option<Reply>, ApiError> {
        let Some(legs) = legs(decision, list, shared)? else { return Ok(None) };
        let is_named = |ended: &&Ended| match name.order_id {
            Some(id) => ended.event.order_id == id,
            None => ended.event.client_order_id == name.client_order_id,
        };
        let named = legs.iter().find(is_named).ok_or(ApiError::unexpected_response())?;
        json(&self.report(named)?).map(Some)
    }

    fn list<'a>(
        &'a self,
        list: &'a OrderListChanged,
        legs: [CancelReport<'a>; 2],
        time_ms: u64,
    ) -> OrderList<'a, CancelReport<'a>> {
        let symbol = self.symbol.as_str();
        OrderList {
            order_list_id: list.order_list_id.0,
            contingency_type: names::CONTINGENCY_TYPE,
            list_status_type: names::LIST_DONE.0,
            list_order_status: names::LIST_DONE.1,
            list_client_order_id: list.list_client_order_id.as_str(),
            transaction_time: time_ms,
            symbol,
            orders: listed(symbol, legs.map(|leg| (leg.order_id, leg.orig_client_order_id))),
            order_reports: Some(legs),
        }
    }

    /// In the order in which the engine ended them; the orders of a list stand in its place, which is
    /// that of its stop leg, and nowhere else (facts §7).
    fn all(
        &self,
        decision: &Decision,
        all: &MassCanceled,
        shared: &Shared,
    ) -> Result<Option<Reply>, ApiError> {
        let told = &decision.told;
        // Which orders the lost replies were about, nothing else says.
        if (told.canceled.len() as u64, told.lists.len() as u64) != (all.orders, all.lists) {
            return Err(ApiError::unexpected_response());
        }
        let mut ended = Vec::with_capacity(told.canceled.len());
        for event in &told.canceled {
            let Some(order) = with_extras(decision, event, shared)? else { return Ok(None) };
            ended.push(order);
        }
        let mut lists = told.lists.iter().peekable();
        let mut entries = Vec::with_capacity(ended.len());
        let mut orders = ended.iter();
        while let Some(order) = orders.next() {
            let report = self.report(order)?;
            let own = order.event.order_list_id;
            entries.push(match lists.next_if(|list| list.order_list_id == own) {
                None => Canceled::Order(Box::new(report)),
                Some(list) => {
                    let limit = orders.next().ok_or(ApiError::unexpected_response())?;
                    let time_ms = decision.time_ns / 1_000_000;
                    Canceled::List(Box::new(self.list(
                        list,
                        [report, self.report(limit)?],
                        time_ms,
                    )))
                }
            });
        }
        json_list(ORDER_BYTES, &entries).map(Some)
    }
}
