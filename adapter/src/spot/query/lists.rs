//! GET /orderList and GET /openOrderList (spot contract §4).

use touchline_protocol::text::{ClientOrderId, SymbolName};
use touchline_protocol::units::OrderListId;

use crate::api_error::ApiError;
use crate::http::Reply;
use crate::parameters::ParameterError;
use crate::spot::intake::Intake;
use crate::spot::report::listed;
use crate::spot::responses::{CancelReport, OrderList};
use crate::spot::{json, long, names};
use crate::views::lists;
use crate::views::state::{Sought, State};

/// The owner's name for the list, as it was sent. Its parameter has another name than its description (spot
/// contract §4): both are taken, where they agree.
fn client_id(sent: [Option<&str>; 2]) -> Result<Option<ClientOrderId>, ApiError> {
    match sent {
        [Some(one), Some(other)] if one != other => Err(ParameterError::Combination.into()),
        [one, other] => Ok(one.or(other).and_then(ClientOrderId::new)),
    }
}

/// GET /orderList.
pub(in crate::spot) fn one(intake: &Intake<'_>) -> Result<Reply, ApiError> {
    let sent = &intake.parameters;
    let id = sent.long("orderListId")?.map(OrderListId);
    let names = [sent.client_id("origClientOrderId")?, sent.client_id("listClientOrderId")?];
    if id.is_none() && names == [None; 2] {
        sent.require_either("origClientOrderId", "orderListId")?;
    }
    let account = intake.signed()?.caller.account;
    let name = client_id(names)?;
    let list = intake.read(|state| match (id, name) {
        (Some(id), _) => state.list(account, id).map(Some),
        (None, Some(name)) => state.list_named(account, name).map(Some),
        (None, None) => Ok(None),
    })?;
    let list = list.map(Sought::find).transpose()?.flatten();
    let list = list.ok_or(ApiError::order_list_not_found())?;
    if name.is_some_and(|name| name != list.client_order_id) {
        return Err(ApiError::client_order_id_mismatch());
    }
    // No symbol is ever taken back or gets another name.
    let symbol = intake.read(|state| symbol_of(state, &list));
    json(&shown(&list, symbol.as_str()))
}

/// GET /openOrderList: oldest first.
pub(in crate::spot) fn open(intake: &Intake<'_>) -> Result<Reply, ApiError> {
    let account = intake.signed()?.caller.account;
    let (lists, leave) = intake.read(|state| {
        let open = || state.lists.open_of(account, 0..=u64::MAX);
        let named = |list: &lists::OrderList| (*list, symbol_of(state, list));
        long::copied(intake.readers(), account, open, named)
    })?;
    long::list(lists, leave, |(list, symbol), to| long::write(&shown(list, symbol.as_str()), to))
}

pub(super) fn symbol_of(state: &State, list: &lists::OrderList) -> SymbolName {
    state.venue.symbol(list.symbol).map(|symbol| symbol.name).unwrap_or_default()
}

/// A list as queries show it: without reports, with the time of its placement (facts §5.5).
pub(in crate::spot) fn shown<'a>(
    list: &'a lists::OrderList,
    symbol: &'a str,
) -> OrderList<'a, CancelReport<'a>> {
    let (list_status_type, list_order_status) = names::list_status(list.status);
    let stop = (list.stop_order_id.0, list.stop_client_order_id.as_str());
    let limit = (list.limit_order_id.0, list.limit_client_order_id.as_str());
    OrderList {
        order_list_id: list.order_list_id.0,
        contingency_type: names::CONTINGENCY_TYPE,
        list_status_type,
        list_order_status,
        list_client_order_id: list.client_order_id.as_str(),
        transaction_time: list.time_ms,
        symbol,
        orders: listed(symbol, [stop, limit]),
        order_reports: None,
    }
}
