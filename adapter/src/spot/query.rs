//! The endpoints that read an account: its orders, balances and order counts (spot contract §4). Order
//! lists are in `lists`, pages of what has been in `past`.

pub(super) mod lists;
pub(super) mod past;

use touchline_protocol::message::command::{
    ACCOUNT_CAN_DEPOSIT, ACCOUNT_CAN_TRADE, ACCOUNT_CAN_WITHDRAW,
};
use touchline_protocol::text::{ClientOrderId, SymbolName};
use touchline_protocol::units::{AccountId, OrderId};

use super::intake::Intake;
use super::market::order_count_limits;
use super::responses::{Account, Balance, Decimal, Order, RateLimit, UsedRateLimit};
use super::{json, long, names};
use crate::api_error::ApiError;
use crate::http::Reply;
use crate::parameters::{ParameterError, Parameters};
use crate::shares::Share;
use crate::views::{orders, state::State};

/// Commission rates are 10⁻⁸, the account shows 1/10000 (facts §4).
const RATE_UNITS_PER_SHOWN: i64 = 10_000;

/// How an order is named: at least one of the two is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OrderName {
    pub(super) order_id: Option<OrderId>,
    /// Empty when it is not sent.
    pub(super) client_order_id: ClientOrderId,
}

impl OrderName {
    /// Reads `orderId` and `origClientOrderId`.
    pub(super) fn read(parameters: &Parameters<'_>) -> Result<Self, ParameterError> {
        let order_id = parameters.long("orderId")?;
        let client_order_id = parameters.client_id("origClientOrderId")?;
        parameters.require_either("origClientOrderId", "orderId")?;
        Ok(Self {
            order_id: order_id.and_then(|id| u64::try_from(id).ok()).map(OrderId),
            client_order_id: client_order_id
                .and_then(ClientOrderId::new)
                .unwrap_or(ClientOrderId::EMPTY),
        })
    }
}

pub(super) fn order(intake: &Intake<'_>) -> Result<Reply, ApiError> {
    let symbol = intake.parameters.required_symbol("symbol")?;
    let name = OrderName::read(&intake.parameters)?;
    let account = intake.signed()?.caller.account;
    let order = intake.read(|state| {
        let symbol = state.venue.symbol_named(symbol).ok_or(ApiError::invalid_symbol())?.id;
        Ok::<_, ApiError>(match name.order_id {
            Some(id) => state.order(account, symbol, id)?,
            None => state.order_named(account, symbol, name.client_order_id)?,
        })
    })?;
    let order = order.find()?.ok_or(ApiError::order_not_found())?;
    if !name.client_order_id.is_empty() && order.client_order_id != name.client_order_id {
        return Err(ApiError::client_order_id_mismatch());
    }
    json(&full_order(symbol, &order))
}

/// GET /openOrders: oldest first.
pub(super) fn open_orders(intake: &Intake<'_>) -> Result<Reply, ApiError> {
    let name = intake.parameters.symbol("symbol")?;
    let account = intake.signed()?.caller.account;
    let (mut orders, leave) = intake.read(|state| match name {
        Some(name) => {
            let symbol = state.venue.symbol_named(name).ok_or(ApiError::invalid_symbol())?.id;
            copied(state, intake, || state.orders.open_on(account, symbol, 0..=u64::MAX))
        }
        None => copied(state, intake, || state.orders.open_of(account)),
    })?;
    orders.sort_by_key(|(_, order)| (order.time_ms, order.symbol, order.order_id));
    long::list(orders, leave, |(symbol, order), to| {
        long::write(&full_order(symbol.as_str(), order), to)
    })
}

type Named = (SymbolName, orders::Order);

/// Some of the caller's open orders with the names of their symbols, and leave to list them.
fn copied<'a, O: Iterator<Item = &'a orders::Order>>(
    state: &State,
    intake: &Intake<'_>,
    open: impl Fn() -> O,
) -> Result<(Vec<Named>, Option<Share<AccountId>>), ApiError> {
    let name = |order: &orders::Order| state.venue.symbol(order.symbol).map(|found| found.name);
    let named = |order: &orders::Order| (name(order).unwrap_or_default(), order.clone());
    long::copied(intake.readers(), intake.caller()?.account, open, named)
}

/// GET /rateLimit/order: the order counts that are limited.
pub(super) fn order_counts(intake: &Intake<'_>) -> Result<Reply, ApiError> {
    let account = intake.signed()?.caller.account;
    let (limits, counts) = intake
        .read(|state| {
            let limits = state.venue.limits;
            // The engine counts by its own clock.
            let now_ns = intake.engine_ns().max(state.time_ns);
            Some((limits, state.accounts.get(account)?.order_counts(&limits, now_ns)))
        })
        .ok_or(ApiError::api_key_rejected())?;
    let used = order_count_limits(&limits).into_iter().zip(counts);
    let used: Vec<_> = used
        .filter_map(|(limit, count)| Some((limit?, count)))
        .map(|((seconds, limit), count)| {
            let (interval, interval_num) = names::interval(seconds);
            let limit = RateLimit {
                rate_limit_type: "ORDERS",
                interval: interval.name(),
                interval_num,
                limit: u64::from(limit),
            };
            UsedRateLimit { limit, count }
        })
        .collect();
    json(&used)
}

fn full_order<'a>(symbol: &'a str, order: &'a orders::Order) -> Order<'a> {
    Order {
        symbol,
        order_id: order.order_id.0,
        order_list_id: order.order_list_id.0,
        client_order_id: order.client_order_id.as_str(),
        price: Decimal(order.price),
        orig_qty: Decimal(order.quantity),
        executed_qty: Decimal(order.executed),
        cummulative_quote_qty: Decimal(order.executed_quote),
        status: names::order_status(order.status),
        time_in_force: names::time_in_force(order.time_in_force),
        r#type: names::order_type(order.order_type),
        side: names::side(order.side),
        stop_price: Decimal(order.stop_price),
        iceberg_qty: Decimal(order.iceberg_quantity),
        time: order.time_ms,
        update_time: order.update_ms,
        is_working: order.working,
        orig_quote_order_qty: Decimal(order.quote_quantity),
    }
}

pub(super) fn account(intake: &Intake<'_>) -> Result<Reply, ApiError> {
    let account = intake.signed()?.caller.account;
    let account = intake.read(|state| {
        let account = state.accounts.get(account).ok_or(ApiError::api_key_rejected())?;
        Ok::<_, ApiError>(Account {
            maker_commission: account.maker_rate / RATE_UNITS_PER_SHOWN,
            taker_commission: account.taker_rate / RATE_UNITS_PER_SHOWN,
            buyer_commission: account.buyer_rate / RATE_UNITS_PER_SHOWN,
            seller_commission: account.seller_rate / RATE_UNITS_PER_SHOWN,
            can_trade: account.flags & ACCOUNT_CAN_TRADE != 0 && !account.killed,
            can_withdraw: account.flags & ACCOUNT_CAN_WITHDRAW != 0,
            can_deposit: account.flags & ACCOUNT_CAN_DEPOSIT != 0,
            update_time: account.update_ms,
            account_type: "SPOT",
            balances: balances(state, account),
            permissions: names::permissions(account.permissions),
        })
    })?;
    json(&account)
}

/// One row per asset of the venue, untouched ones included (facts §4).
fn balances(state: &State, account: &crate::views::accounts::Account) -> Vec<Balance> {
    (0..)
        .zip(state.venue.assets())
        .map(|(id, asset)| {
            let balance = account.balance(touchline_protocol::units::AssetId(id));
            Balance {
                asset: asset.name.as_str().to_owned(),
                free: Decimal(balance.free),
                locked: Decimal(balance.locked),
            }
        })
        .collect()
}
