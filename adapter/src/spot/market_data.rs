//! What is told of trades and prices: trades, candles, averages and tickers (spot contract §4 Market
//! data, facts §7). Answered from the history and the books.

mod klines;
pub(super) mod responses;
mod tickers;
mod trades;

pub(super) use klines::klines;
pub(super) use tickers::{average_price, book_ticker, price, statistics};
pub(super) use trades::{aggregate_trades, historical_trades, trades};

use super::intake::Intake;
use crate::api_error::ApiError;
use crate::history::HistoryError;
use crate::history::statistics::SymbolHistory;
use crate::views::state::State;

/// Refuses a symbol that does not exist.
fn known(intake: &Intake<'_>, name: &str) -> Result<(), ApiError> {
    let known = intake.read(|state| state.venue.symbol_named(name).is_some());
    if known { Ok(()) } else { Err(ApiError::invalid_symbol()) }
}

/// Looks at the history of the symbol with this name, as of the moment that `look` is told.
fn of_named<T>(
    intake: &Intake<'_>,
    name: &str,
    look: impl FnOnce(&SymbolHistory<'_>, u64) -> Result<T, HistoryError>,
) -> Result<T, ApiError> {
    let (reader, symbol, market, now_ms) = intake.read(|state| {
        let symbol = state.venue.symbol_named(name).ok_or(ApiError::invalid_symbol())?.id;
        let market = state.history.market(symbol);
        Ok::<_, ApiError>((
            state.history.reader()?,
            symbol,
            market,
            now_ms(intake.engine_ns(), state),
        ))
    })?;
    Ok(look(&SymbolHistory { reader: &reader, symbol, market }, now_ms)?)
}

/// The time of a request, which is `engine_ns` by the engine's clock, or of the last transaction: nobody is told that its
/// own trade has not happened yet.
fn now_ms(engine_ns: u64, state: &State) -> u64 {
    engine_ns.max(state.time_ns) / 1_000_000
}
