//! GET /klines.

use super::responses::{Kline, Sum};
use super::{known, of_named};
use crate::api_error::ApiError;
use crate::history::HistoryError;
use crate::history::candles::Candle;
use crate::history::intervals::Interval;
use crate::history::statistics::{Filled, SymbolHistory};
use crate::http::Reply;
use crate::spot::intake::Intake;
use crate::spot::paging::{Span, page_size};
use crate::spot::responses::Decimal;
use crate::spot::{TRADE_BYTES, json_list};

/// So long an engine that runs may be without a sign of life, ms: it gives one every half second when it has nothing
/// to do.
const SILENCE_MS: u64 = 1_000;

/// What is asked for.
struct Wanted {
    interval: Interval,
    span: Span,
    limit: usize,
}

pub(in crate::spot) fn klines(intake: &Intake<'_>) -> Result<Reply, ApiError> {
    let symbol = intake.parameters.required_symbol("symbol")?;
    let name = intake.parameters.required_text("interval")?;
    let span = Span::read(intake)?;
    let limit = page_size(intake)?;
    intake.open()?;
    known(intake, symbol)?;
    let interval = Interval::named(name).ok_or(ApiError::invalid_interval())?;
    span.check_order()?;
    let wanted = Wanted { interval, span, limit };
    let candles = of_named(intake, symbol, |history, now_ms| {
        wanted.read(history, now_ms.min(known_to(intake, history)))
    })?;
    let shown = |(open_ms, filled): &(u64, _)| kline(*open_ms, interval.next(*open_ms) - 1, filled);
    json_list(TRADE_BYTES, candles.iter().map(shown))
}

/// Until when it is known that there are candles: while no engine runs there are none, and the next one's start will
/// say so (facts §7 klines).
fn known_to(intake: &Intake<'_>, history: &SymbolHistory<'_>) -> u64 {
    intake.alive_ms().saturating_add(SILENCE_MS).max(history.last_traded_ms())
}

impl Wanted {
    /// Both times choose by when a candle began, inclusive: with a start the oldest from there on, else
    /// the newest ones up to the end. The one that still grows is among them. Those that lie wholly in
    /// a time in which the symbol was in BREAK or no engine ran are not there (facts §7 klines).
    fn read(
        &self,
        history: &SymbolHistory<'_>,
        now_ms: u64,
    ) -> Result<Vec<(u64, Filled)>, HistoryError> {
        let interval = self.interval;
        let Some(begin) = history.begin()? else { return Ok(Vec::new()) };
        let begin = interval.open(begin);
        let last = interval.open(self.span.end.unwrap_or(now_ms).min(now_ms));
        let limit = self.limit as u64;
        let spans = match self.span.start {
            Some(start) => {
                // No candle begins behind the present one: what is later still needs no calendar.
                let open = interval.open(start.min(now_ms));
                let from = if open < start { interval.next(open) } else { open };
                history.spans_from(interval, (from.max(begin), last), limit)?
            }
            None => history.spans_up_to(interval, (begin, last), limit)?,
        };
        let mut candles = Vec::new();
        for (from, to) in spans {
            candles.extend(history.filled(interval, from, to)?);
        }
        Ok(candles)
    }
}

fn kline(open_ms: u64, close_ms: u64, filled: &Filled) -> Kline {
    let candle = match filled {
        Filled::Trades(candle) => *candle,
        Filled::Flat(price) => {
            Candle { open: *price, high: *price, low: *price, close: *price, ..Candle::default() }
        }
    };
    let count = if candle.first_trade == 0 { 0 } else { candle.count() };
    (
        open_ms,
        Decimal(candle.open),
        Decimal(candle.high),
        Decimal(candle.low),
        Decimal(candle.close),
        Sum(candle.volume),
        close_ms,
        Sum(candle.quote_volume),
        count,
        Sum(candle.taker_volume),
        Sum(candle.taker_quote_volume),
        "0",
    )
}
