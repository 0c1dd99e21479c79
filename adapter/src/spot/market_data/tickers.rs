//! GET /avgPrice, GET /ticker/24hr, GET /ticker/price, GET /ticker/bookTicker.

use serde::Serialize;
use touchline_protocol::message::command::SymbolFilters;
use touchline_protocol::units::{SymbolId, UNITS_PER_WHOLE};

use super::responses::{AveragePrice, BookTicker, Percent, PriceTicker, Statistics, Sum};
use super::{now_ms, of_named};
use crate::api_error::ApiError;
use crate::history::statistics::{SymbolHistory, Window};
use crate::history::{Market, Reader};
use crate::http::Reply;
use crate::parameters::ParameterError;
use crate::spot::intake::Intake;
use crate::spot::long::{self, Steps};
use crate::spot::responses::Decimal;
use crate::spot::{TRADE_BYTES, json, json_list, names};
use crate::views::Views;
use crate::views::book::Level;
use crate::views::state::State;
use crate::views::venue::Symbol;

/// Length of the rolling window, ms.
const WINDOW_MS: u64 = 86_400_000;

/// Symbols whose statistics are gathered at once: each takes some 10 to 100 µs.
const STATISTICS_AT_ONCE: usize = 32;

/// Minutes of the average price where no filter of the symbol looks at one (facts §6).
const AVERAGE_MINUTES: u32 = 5;

pub(in crate::spot) fn average_price(intake: &Intake<'_>) -> Result<Reply, ApiError> {
    let name = intake.parameters.required_symbol("symbol")?;
    intake.open()?;
    let mins = intake.read(|state| {
        let symbol = state.venue.symbol_named(name).ok_or(ApiError::invalid_symbol())?;
        Ok::<_, ApiError>(average_minutes(&symbol.filters))
    })?;
    let price = of_named(intake, name, |history, now_ms| history.average(now_ms, mins))?;
    let price = price.ok_or(ApiError::no_trading_window())?;
    json(&AveragePrice { mins, price: Decimal(price) })
}

/// How far back the average goes that a filter of the symbol looks at; 0: it is the last price (facts §6).
const fn average_minutes(filters: &SymbolFilters) -> u32 {
    if filters.percent_price_up | filters.percent_price_down != 0 {
        filters.percent_price_minutes
    } else if filters.min_notional != 0 && filters.min_notional_applies_to_market != 0 {
        filters.min_notional_minutes
    } else {
        AVERAGE_MINUTES
    }
}

/// Each symbol takes a search among its trades and a look at a hundred candles, so of many they are gathered in steps:
/// each of these shows one moment.
pub(in crate::spot) fn statistics(intake: &Intake<'_>) -> Result<Steps, ApiError> {
    // The only one there is, so that nothing depends on whether it is sent.
    intake.parameters.choice("type", &names::STATISTICS_TYPES, names::STATISTICS_TYPES[0].0)?;
    let (views, engine_ns) = (intake.views(), intake.engine_ns());
    let shown = move |symbols: &[SymbolId]| shown(&views, symbols, engine_ns);
    match gathered(intake, |_, symbol| Some(symbol.id))? {
        Gathered::One(found) => {
            let shown = shown(found.as_slice())?;
            let mut reply = Some(json(&shown.first())?);
            Ok(Box::new(move || reply.take().map(Ok)))
        }
        Gathered::Several(symbols) => {
            let write = move |symbols: &[SymbolId], to: &mut Vec<u8>| {
                let mut shown = shown(symbols)?.into_iter();
                shown.try_for_each(|shown| {
                    to.push(if to.is_empty() { b'[' } else { b',' });
                    long::write(&shown, to)
                })
            };
            Ok(long::steps(symbols, STATISTICS_AT_ONCE, write))
        }
    }
}

/// The statistics of some symbols, at one moment.
fn shown(views: &Views, symbols: &[SymbolId], engine_ns: u64) -> Result<Vec<Statistics>, ApiError> {
    let (found, reader, now_ms) = views.read(|state| {
        let traded = |symbol: &Symbol| {
            let (market, best) = (state.history.market(symbol.id), best(symbol));
            Traded { name: name(symbol), symbol: symbol.id, market, best }
        };
        let found = symbols.iter().filter_map(|symbol| state.venue.symbol(*symbol)).map(traded);
        let found: Vec<_> = found.collect();
        Ok::<_, ApiError>((found, state.history.reader()?, now_ms(engine_ns, state)))
    })?;
    found.into_iter().map(|traded| traded.statistics(&reader, now_ms)).collect()
}

/// A symbol that was never traded has no price: it is left out among others, and 0 alone (facts §7).
pub(in crate::spot) fn price(intake: &Intake<'_>) -> Result<Reply, ApiError> {
    let is_alone = intake.parameters.peek("symbol").is_some();
    tickers(intake, |state, symbol| {
        let last = state.history.market(symbol.id).last.map(|(_, trade)| trade.price);
        let price = if is_alone { Some(last.unwrap_or(0)) } else { last };
        price.map(|price| PriceTicker { symbol: name(symbol), price: Decimal(price) })
    })
}

pub(in crate::spot) fn book_ticker(intake: &Intake<'_>) -> Result<Reply, ApiError> {
    tickers(intake, |_, symbol| {
        let (bid, ask) = best(symbol);
        Some(BookTicker {
            symbol: name(symbol),
            bid_price: Decimal(bid.price),
            bid_qty: Decimal(bid.quantity),
            ask_price: Decimal(ask.price),
            ask_qty: Decimal(ask.quantity),
        })
    })
}

/// A ticker of each symbol that is asked for, where there is one.
fn tickers<T: Serialize>(
    intake: &Intake<'_>,
    ticker: impl Fn(&State, &Symbol) -> Option<T>,
) -> Result<Reply, ApiError> {
    match gathered(intake, ticker)? {
        Gathered::One(found) => json(&found),
        Gathered::Several(found) => json_list(TRADE_BYTES, &found),
    }
}

/// What was gathered of the symbols that are asked for: of one for `symbol`, else several: of `symbols`,
/// or of all, as exchangeInfo lists them.
enum Gathered<T> {
    One(Option<T>),
    Several(Vec<T>),
}

/// Gathers something of each symbol that is asked for, at one moment.
fn gathered<T>(
    intake: &Intake<'_>,
    look: impl Fn(&State, &Symbol) -> Option<T>,
) -> Result<Gathered<T>, ApiError> {
    let one = intake.parameters.symbol("symbol")?;
    let several = intake.parameters.symbols("symbols")?;
    intake.open()?;
    if one.is_some() && several.is_some() {
        return Err(ParameterError::Combination.into());
    }
    intake.read(|state| {
        if let Some(one) = one {
            let symbol = state.venue.symbol_named(one).ok_or(ApiError::invalid_symbol())?;
            return Ok(Gathered::One(look(state, symbol)));
        }
        let wanted = match &several {
            Some(names) => state.venue.symbols_named(names).ok_or(ApiError::invalid_symbol())?,
            None => state.venue.symbols().iter().collect(),
        };
        let found = wanted.into_iter().filter_map(|symbol| look(state, symbol)).collect();
        Ok(Gathered::Several(found))
    })
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

/// What is known of a symbol's trades and prices without looking at any trade.
struct Traded {
    name: String,
    symbol: SymbolId,
    market: Market,
    best: (Level, Level),
}

impl Traded {
    /// The last 24 hours (facts §7 ticker/24hr).
    fn statistics(self, reader: &Reader, now_ms: u64) -> Result<Statistics, ApiError> {
        let open_time = now_ms.saturating_sub(WINDOW_MS);
        let Self { name, symbol, market, best: (bid, ask) } = self;
        let last = market.last.map(|(_, trade)| trade).unwrap_or_default();
        let Window { candle, previous_close } =
            SymbolHistory { reader, symbol, market }.since(open_time)?;
        let ids = candle.map(|candle| (candle.first_trade, candle.last_trade, candle.count()));
        let id = |id: u64| i64::try_from(id).unwrap_or(i64::MAX);
        let (first_id, last_id, count) =
            ids.map_or((-1, -1, 0), |(first, last, count)| (id(first), id(last), count));
        let prices =
            candle.map_or([last.price; 3], |candle| [candle.open, candle.high, candle.low]);
        let [open_price, high_price, low_price] = prices;
        let (volume, quote_volume) =
            candle.map_or((0, 0), |candle| (candle.volume, candle.quote_volume));
        let weighted = quote_volume.saturating_mul(i128::from(UNITS_PER_WHOLE)).checked_div(volume);
        Ok(Statistics {
            symbol: name,
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
