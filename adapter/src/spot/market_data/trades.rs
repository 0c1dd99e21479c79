//! GET /trades, GET /historicalTrades, GET /aggTrades.

use super::responses::{AggregateTrade, PublicTrade, Sum};
use super::{known, of_named};
use crate::api_error::ApiError;
use crate::history::Direction;
use crate::history::aggregates::Aggregate;
use crate::history::rows::{self, TradeRow};
use crate::http::Reply;
use crate::parameters::ParameterError;
use crate::spot::intake::Intake;
use crate::spot::paging::{Span, number, page_size};
use crate::spot::responses::Decimal;
use crate::spot::{TRADE_BYTES, json_list};

/// Longest span of GET /aggTrades, ms: less than an hour (spot contract §8).
const SPAN_MS: u64 = 3_600_000 - 1;

/// The span that is too long, as told to clients.
const SPAN_HOURS: u32 = 1;

pub(in crate::spot) fn trades(intake: &Intake<'_>) -> Result<Reply, ApiError> {
    let symbol = intake.parameters.required_symbol("symbol")?;
    let limit = page_size(intake)?;
    intake.open()?;
    page(intake, symbol, None, limit)
}

pub(in crate::spot) fn historical_trades(intake: &Intake<'_>) -> Result<Reply, ApiError> {
    let symbol = intake.parameters.required_symbol("symbol")?;
    let limit = page_size(intake)?;
    let from = number(intake, "fromId")?;
    intake.open()?;
    page(intake, symbol, from, limit)
}

/// Trades from a number on, or the newest ones.
fn page(
    intake: &Intake<'_>,
    symbol: &str,
    from: Option<u64>,
    limit: usize,
) -> Result<Reply, ApiError> {
    let direction = if from.is_some() { Direction::Forward } else { Direction::Backward };
    let ids = from.unwrap_or(0)..=u64::MAX;
    let page = of_named(intake, symbol, |history, _| {
        let group = rows::of_symbol(history.symbol);
        history.reader.page::<TradeRow>(group, ids, direction, limit)
    })?;
    let trade = |(id, row): (u64, TradeRow)| PublicTrade {
        id,
        price: Decimal(row.price),
        qty: Decimal(row.quantity),
        quote_qty: Decimal(row.quote),
        time: row.time_ms,
        is_buyer_maker: row.buyer_is_maker != 0,
        is_best_match: true,
    };
    json_list(TRADE_BYTES, page.into_iter().map(trade))
}

pub(in crate::spot) fn aggregate_trades(intake: &Intake<'_>) -> Result<Reply, ApiError> {
    let symbol = intake.parameters.required_symbol("symbol")?;
    let from = number(intake, "fromId")?;
    let span = Span::read(intake)?;
    let limit = page_size(intake)?;
    intake.open()?;
    known(intake, symbol)?;
    if from.is_some() && span.is_given() {
        return Err(ParameterError::Combination.into());
    }
    span.check(SPAN_MS, SPAN_HOURS)?;
    let entries = of_named(intake, symbol, |history, _| {
        let last = match span.end {
            Some(end_ms) => history.first_since(end_ms.saturating_add(1))?,
            None => None,
        };
        let Some(last) = last.unwrap_or(u64::MAX).checked_sub(1) else { return Ok(Vec::new()) };
        let first = match (from, span.start) {
            (Some(from), _) => history.first_aggregate(from)?,
            (None, Some(start)) => history.first_since(start)?,
            (None, None) => return history.newest_aggregates(0..=last, limit),
        };
        match first {
            Some(first) => history.oldest_aggregates(first, last, limit),
            None => Ok(Vec::new()),
        }
    })?;
    json_list(TRADE_BYTES, entries.iter().map(shown))
}

fn shown(entry: &Aggregate) -> AggregateTrade {
    let Aggregate { id, first, last, trade } = *entry;
    AggregateTrade {
        id,
        price: Decimal(trade.price),
        quantity: Sum(i128::from(trade.aggregate_quantity)),
        first,
        last,
        time: trade.time_ms,
        is_buyer_maker: trade.buyer_is_maker != 0,
        is_best_match: true,
    }
}
