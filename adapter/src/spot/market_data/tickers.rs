//! GET /avgPrice, GET /ticker/24hr, GET /ticker/price, GET /ticker/bookTicker.

use serde::Serialize;
use touchline_protocol::units::UNITS_PER_WHOLE;

use super::responses::{AveragePrice, BookTicker, Percent, PriceTicker, Statistics, Sum};
use super::{now_ms, of_symbol};
use crate::api_error::ApiError;
use crate::history::statistics::Window;
use crate::http::Reply;
use crate::parameters::ParameterError;
use crate::spot::intake::Intake;
use crate::spot::responses::Decimal;
use crate::spot::{TRADE_BYTES, json, json_list};
use crate::views::book::Level;
use crate::views::state::State;
use crate::views::venue::Symbol;

/// Length of the rolling window, ms.
const WINDOW_MS: u64 = 86_400_000;

/// Minutes of the average price where no filter of the symbol says otherwise (facts §6).
const AVERAGE_MINUTES: u32 = 5;

pub(in crate::spot) fn average_price(intake: &Intake<'_>) -> Result<Reply, ApiError> {
    let name = intake.parameters.required_symbol("symbol")?;
    intake.open()?;
    let (mins, price) = intake.read(|state| {
        let symbol = state.venue.symbol_named(name).ok_or(ApiError::invalid_symbol())?;
        let mins = [symbol.filters.percent_price_minutes, symbol.filters.min_notional_minutes]
            .into_iter()
            .find(|minutes| *minutes != 0)
            .unwrap_or(AVERAGE_MINUTES);
        let now_ms = now_ms(intake, state);
        let price = of_symbol(state, symbol, |history| history.average(now_ms, mins))?;
        Ok::<_, ApiError>((mins, price.ok_or(ApiError::no_trading_window())?))
    })?;
    json(&AveragePrice { mins, price: Decimal(price) })
}

pub(in crate::spot) fn statistics(intake: &Intake<'_>) -> Result<Reply, ApiError> {
    tickers(intake, |state, symbol| Ok(Some(statistics_of(state, symbol, now_ms(intake, state))?)))
}

/// A symbol that was never traded has no price: it is left out among others, and 0 alone (facts §7).
pub(in crate::spot) fn price(intake: &Intake<'_>) -> Result<Reply, ApiError> {
    let is_alone = intake.parameters.peek("symbol").is_some();
    tickers(intake, |state, symbol| {
        let last = state.history.market(symbol.id).last.map(|(_, trade)| trade.price);
        let price = if is_alone { Some(last.unwrap_or(0)) } else { last };
        Ok(price.map(|price| PriceTicker { symbol: name(symbol), price: Decimal(price) }))
    })
}

pub(in crate::spot) fn book_ticker(intake: &Intake<'_>) -> Result<Reply, ApiError> {
    tickers(intake, |_, symbol| {
        let (bid, ask) = best(symbol);
        Ok(Some(BookTicker {
            symbol: name(symbol),
            bid_price: Decimal(bid.price),
            bid_qty: Decimal(bid.quantity),
            ask_price: Decimal(ask.price),
            ask_qty: Decimal(ask.quantity),
        }))
    })
}

/// One ticker for `symbol`, else an array: of `symbols`, or of all, as exchangeInfo lists them.
fn tickers<T: Serialize>(
    intake: &Intake<'_>,
    ticker: impl Fn(&State, &Symbol) -> Result<Option<T>, ApiError>,
) -> Result<Reply, ApiError> {
    let one = intake.parameters.symbol("symbol")?;
    let several = intake.parameters.symbols("symbols")?;
    intake.open()?;
    if one.is_some() && several.is_some() {
        return Err(ParameterError::Combination.into());
    }
    if let Some(one) = one {
        let found = intake.read(|state| {
            ticker(state, state.venue.symbol_named(one).ok_or(ApiError::invalid_symbol())?)
        })?;
        return json(&found);
    }
    let found = intake.read(|state| {
        let is_unknown = |name: &&str| state.venue.symbol_named(name).is_none();
        if several.iter().flatten().any(is_unknown) {
            return Err(ApiError::invalid_symbol());
        }
        let is_wanted = |symbol: &&Symbol| {
            several.as_ref().is_none_or(|names| names.contains(&symbol.name.as_str()))
        };
        let wanted = state.venue.symbols().iter().filter(is_wanted);
        let found: Result<Vec<_>, _> = wanted.map(|symbol| ticker(state, symbol)).collect();
        Ok(found?.into_iter().flatten().collect::<Vec<_>>())
    })?;
    json_list(TRADE_BYTES, &found)
}

fn name(symbol: &Symbol) -> String {
    symbol.name.as_str().to_owned()
}

/// The best level of either side; zeros where there is none (facts §7).
fn best(symbol: &Symbol) -> (Level, Level) {
    let depth = symbol.book.depth(1);
    let first = |side: Vec<Level>| side.first().copied().unwrap_or(Level { price: 0, quantity: 0 });
    (first(depth.bids), first(depth.asks))
}

/// The last 24 hours (facts §7 ticker/24hr).
fn statistics_of(state: &State, symbol: &Symbol, now_ms: u64) -> Result<Statistics, ApiError> {
    let open_time = now_ms.saturating_sub(WINDOW_MS);
    let last = state.history.market(symbol.id).last.map(|(_, trade)| trade).unwrap_or_default();
    let window = of_symbol(state, symbol, |history| history.since(open_time))?;
    let Window { candle, previous_close } = window;
    let ids = candle.map(|candle| (candle.first_trade, candle.last_trade, candle.count()));
    let id = |id: u64| i64::try_from(id).unwrap_or(i64::MAX);
    let (first_id, last_id, count) =
        ids.map_or((-1, -1, 0), |(first, last, count)| (id(first), id(last), count));
    let prices = candle.map_or([last.price; 3], |candle| [candle.open, candle.high, candle.low]);
    let [open_price, high_price, low_price] = prices;
    let (volume, quote_volume) =
        candle.map_or((0, 0), |candle| (candle.volume, candle.quote_volume));
    let weighted = quote_volume.saturating_mul(i128::from(UNITS_PER_WHOLE)).checked_div(volume);
    let (bid, ask) = best(symbol);
    Ok(Statistics {
        symbol: name(symbol),
        price_change: Decimal(last.price - open_price),
        price_change_percent: Percent(percent(last.price, open_price)),
        weighted_avg_price: Sum(weighted.unwrap_or(0)),
        prev_close_price: Decimal(previous_close),
        last_price: Decimal(last.price),
        last_qty: Decimal(last.quantity),
        bid_price: Decimal(bid.price),
        bid_qty: Decimal(bid.quantity),
        ask_price: Decimal(ask.price),
        ask_qty: Decimal(ask.quantity),
        open_price: Decimal(open_price),
        high_price: Decimal(high_price),
        low_price: Decimal(low_price),
        volume: Sum(volume),
        quote_volume: Sum(quote_volume),
        open_time,
        close_time: now_ms,
        first_id,
        last_id,
        count,
    })
}

/// The change from `open` to `last` in 1/1000 of a percent, rounded to the nearest, halves away from
/// zero; 0 without a price to begin with.
fn percent(last: i64, open: i64) -> i128 {
    if open == 0 {
        return 0;
    }
    let (doubled, open) = ((i128::from(last) - i128::from(open)) * 200_000, i128::from(open));
    (doubled + doubled.signum() * open) / (2 * open)
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn changes_are_rounded_to_the_nearest_thousandth_of_a_percent() {
        assert_eq!(percent(404, 10_000), -95_960);
        assert_eq!(percent(10_000, 10_000), 0);
        assert_eq!(percent(200_001, 200_000), 1, "0.0005 % goes up");
        assert_eq!(percent(199_999, 200_000), -1);
        assert_eq!(percent(400_001, 400_000), 0, "0.00025 % does not");
        assert_eq!(percent(5, 0), 0);
        assert_eq!(percent(i64::MAX, 1), (i128::from(i64::MAX) - 1) * 100_000);
    }
}
