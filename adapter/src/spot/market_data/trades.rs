//! GET /trades, GET /historicalTrades, GET /aggTrades.

use std::ops::ControlFlow;

use super::responses::{AggregateTrade, PublicTrade, Sum};
use super::{known, of_named};
use crate::api_error::ApiError;
use crate::history::rows::{self, TradeRow};
use crate::history::statistics::SymbolHistory;
use crate::history::{Direction, HistoryError};
use crate::http::Reply;
use crate::parameters::ParameterError;
use crate::spot::intake::Intake;
use crate::spot::json;
use crate::spot::paging::{Span, number, page_size};
use crate::spot::responses::Decimal;

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
    json(200, &page.into_iter().map(trade).collect::<Vec<_>>())
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
        let first = match (from, span.start) {
            (Some(from), _) => history.first_aggregate(from)?,
            (None, Some(start)) => history.first_since(start)?,
            (None, None) => return newest(history, span.end, limit),
        };
        match first {
            Some(first) => oldest(history, first, span, limit),
            None => Ok(Vec::new()),
        }
    })?;
    json(200, &entries)
}

/// The entries that begin with the trade `first` and are not behind the span, the oldest ones.
fn oldest(
    history: &SymbolHistory<'_>,
    first: u64,
    span: Span,
    limit: usize,
) -> Result<Vec<AggregateTrade>, HistoryError> {
    let mut entries: Vec<AggregateTrade> = Vec::new();
    let (group, ids) = (rows::of_symbol(history.symbol), first..=u64::MAX);
    history.reader.scan(group, ids, Direction::Forward, |id, trade: TradeRow| {
        if !span.reaches(trade.time_ms) {
            return ControlFlow::Break(());
        }
        let is_full = entries.len() == limit;
        match entries.last_mut().filter(|last| last.id == trade.aggregate) {
            Some(last) => {
                last.quantity.0 += i128::from(trade.quantity);
                last.last = id;
            }
            None if is_full => return ControlFlow::Break(()),
            None => entries.push(begun(id, &trade)),
        }
        ControlFlow::Continue(())
    })?;
    Ok(entries)
}

/// The entries that are not behind `end_ms`, the newest ones.
fn newest(
    history: &SymbolHistory<'_>,
    end_ms: Option<u64>,
    limit: usize,
) -> Result<Vec<AggregateTrade>, HistoryError> {
    let behind = match end_ms {
        Some(end_ms) => history.first_since(end_ms.saturating_add(1))?,
        None => None,
    };
    let Some(last) = behind.unwrap_or(u64::MAX).checked_sub(1) else { return Ok(Vec::new()) };
    let mut entries: Vec<AggregateTrade> = Vec::new();
    let group = rows::of_symbol(history.symbol);
    history.reader.scan(group, 0..=last, Direction::Backward, |id, trade: TradeRow| {
        let is_full = entries.len() == limit;
        match entries.last_mut().filter(|entry| entry.id == trade.aggregate) {
            Some(entry) => {
                entry.quantity.0 += i128::from(trade.quantity);
                entry.first = id;
            }
            None if is_full => return ControlFlow::Break(()),
            None => entries.push(begun(id, &trade)),
        }
        ControlFlow::Continue(())
    })?;
    entries.reverse();
    Ok(entries)
}

/// An entry of one trade.
fn begun(id: u64, trade: &TradeRow) -> AggregateTrade {
    AggregateTrade {
        id: trade.aggregate,
        price: Decimal(trade.price),
        quantity: Sum(i128::from(trade.quantity)),
        first: id,
        last: id,
        time: trade.time_ms,
        is_buyer_maker: trade.buyer_is_maker != 0,
        is_best_match: true,
    }
}
