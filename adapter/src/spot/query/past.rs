//! GET /allOrders, GET /allOrderList and GET /myTrades (spot contract §4, facts §7): what an account has
//! done, from the history and from what is still open.

use std::convert::Infallible;
use std::ops::{ControlFlow, RangeInclusive};

use touchline_protocol::text::AssetName;
use touchline_protocol::units::{AccountId, OrderId, SymbolId};

use super::full_order;
use super::lists::{shown, symbol_of};
use crate::api_error::ApiError;
use crate::history::rows::{
    ListRow, OrderRow, SideRow, TradeRow, of_account, of_lists, of_symbol, side_id, trade_of,
};
use crate::history::statistics::SymbolHistory;
use crate::history::{Direction, HistoryError, Market, Reader};
use crate::http::Reply;
use crate::parameters::ParameterError;
use crate::spot::intake::Intake;
use crate::spot::paging::{Span, number, page_size};
use crate::spot::responses::{AccountTrade, Decimal};
use crate::spot::{ORDER_BYTES, TRADE_BYTES, json_list};
use crate::views::lists::OrderList;
use crate::views::orders::Order;
use crate::views::state::{Sought, State};

/// Longest span between `startTime` and `endTime`, ms (facts §7).
const SPAN_MS: u64 = 86_400_000;

/// [`SPAN_MS`] as told to clients.
const SPAN_HOURS: u32 = 24;

/// A part of an account's past that counts up with time: which of it is asked for, and how many.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    from: Option<u64>,
    span: Span,
    limit: usize,
}

impl Wanted {
    /// From a number or a moment on it is the oldest that count, else the newest.
    const fn direction(&self) -> Direction {
        if self.from.is_some() || self.span.start.is_some() {
            Direction::Forward
        } else {
            Direction::Backward
        }
    }

    fn wants(&self, id: u64, time_ms: u64) -> bool {
        match self.from {
            Some(from) => id >= from,
            None => self.span.holds(time_ms),
        }
    }

    /// The numbers that may be asked for; `None` for none. `first_since` tells the first number of a moment or behind it.
    fn ids<E>(
        &self,
        first_since: impl Fn(u64) -> Result<Option<u64>, E>,
    ) -> Result<Option<RangeInclusive<u64>>, E> {
        let whole = u64::MAX;
        Ok(match (self.from, self.span.start, self.span.end) {
            (Some(from), _, _) => Some(from..=whole),
            (None, Some(start), _) => first_since(start)?.map(|first| first..=whole),
            (None, None, Some(end)) => match first_since(end.saturating_add(1))? {
                Some(behind) => behind.checked_sub(1).map(|last| 0..=last),
                None => Some(0..=whole),
            },
            (None, None, None) => Some(0..=whole),
        })
    }

    /// As many of what is open as a page can hold: `since` tells the first number of a moment or behind it, `within` what
    /// has a number in a range, in order.
    fn open<'a, T: 'a, O: DoubleEndedIterator<Item = &'a T>>(
        &self,
        since: impl Fn(u64) -> Option<u64>,
        within: impl FnOnce(RangeInclusive<u64>) -> O,
        is_wanted: impl Fn(&T) -> bool,
    ) -> Vec<&'a T> {
        let Ok(ids) = self.ids(|moment| Ok::<_, Infallible>(since(moment)));
        let Some(ids) = ids else { return Vec::new() };
        let open = within(ids);
        match self.direction() {
            Direction::Forward => open.take_while(|one| is_wanted(one)).take(self.limit).collect(),
            Direction::Backward => open.rev().take(self.limit).collect(),
        }
    }

    /// A page of what has ended, in the history, together with what is open, in memory: lowest number
    /// first. Both count up with time.
    fn page<T>(&self, ended: Vec<(u64, T)>, open: Vec<(u64, T)>) -> Vec<T> {
        let mut page = ended;
        page.extend(open);
        page.sort_unstable_by_key(|(id, _)| *id);
        if self.direction() == Direction::Backward {
            page.drain(..page.len().saturating_sub(self.limit));
        }
        page.truncate(self.limit);
        page.into_iter().map(|(_, entry)| entry).collect()
    }

    /// The rows of a group, as many as are asked for.
    fn rows<R: crate::history::rows::Row>(
        &self,
        reader: &Reader,
        group: u64,
        time_ms: impl Fn(&R) -> u64,
    ) -> Result<Vec<(u64, R)>, HistoryError> {
        let first_since = |moment: u64| reader.first_not::<R>(group, |row| time_ms(row) < moment);
        let Some(ids) = self.ids(first_since)? else { return Ok(Vec::new()) };
        let mut page = Vec::new();
        reader.scan::<R>(group, ids, self.direction(), |id, row| {
            if !self.wants(id, time_ms(&row)) || page.len() == self.limit {
                return ControlFlow::Break(());
            }
            page.push((id, row));
            ControlFlow::Continue(())
        })?;
        Ok(page)
    }
}

pub(in crate::spot) fn orders(intake: &Intake<'_>) -> Result<Reply, ApiError> {
    let name = intake.parameters.required_symbol("symbol")?;
    let from = number(intake, "orderId")?;
    let span = Span::read(intake)?;
    let limit = page_size(intake)?;
    let account = intake.signed()?.caller.account;
    let wanted = Wanted { from, span, limit };
    let (reader, symbol, open) = intake.read(|state| {
        let symbol = state.venue.symbol_named(name).ok_or(ApiError::invalid_symbol())?.id;
        // The number wins (facts §7): what does not count is not checked either.
        if from.is_none() {
            span.check(SPAN_MS, SPAN_HOURS)?;
        }
        let open = open_orders(state, account, symbol, &wanted);
        Ok::<_, ApiError>((state.history.reader()?, symbol, open))
    })?;
    let order = |(id, row): (u64, OrderRow)| Some((id, Order::of_row(id, &row)?));
    let group = of_account(account, symbol);
    let ended = wanted.rows::<OrderRow>(&reader, group, |row| row.time_ms)?;
    let page = wanted.page(ended.into_iter().filter_map(order).collect(), open);
    json_list(ORDER_BYTES, page.iter().map(|order| full_order(name, order)))
}

/// As many of the open orders as a page can hold.
fn open_orders(
    state: &State,
    account: AccountId,
    symbol: SymbolId,
    wanted: &Wanted,
) -> Vec<(u64, Order)> {
    let orders = &state.orders;
    let open = wanted.open(
        |moment| orders.first_since(account, symbol, moment),
        |ids| orders.open_on(account, symbol, ids),
        |order: &Order| wanted.wants(order.order_id.0, order.time_ms),
    );
    open.into_iter().map(|order| (order.order_id.0, order.clone())).collect()
}

pub(in crate::spot) fn lists(intake: &Intake<'_>) -> Result<Reply, ApiError> {
    let from = number(intake, "fromId")?;
    let span = Span::read(intake)?;
    let limit = page_size(intake)?;
    let account = intake.signed()?.caller.account;
    if from.is_some() && span.is_given() {
        return Err(ParameterError::Combination.into());
    }
    span.check(SPAN_MS, SPAN_HOURS)?;
    let wanted = Wanted { from, span, limit };
    let (reader, open) = intake.read(|state| {
        let id = |list: &OrderList| list.order_list_id.0.cast_unsigned();
        let open = wanted.open(
            |moment| state.lists.first_since(account, moment),
            |ids| state.lists.open_of(account, ids),
            |list: &OrderList| wanted.wants(id(list), list.time_ms),
        );
        let open = open.into_iter().map(|list| (id(list), *list)).collect();
        Ok::<_, HistoryError>((state.history.reader()?, open))
    })?;
    let list = |(id, row): (u64, ListRow)| Some((id, OrderList::of_row(id, &row)?));
    let ended = wanted.rows::<ListRow>(&reader, of_lists(account), |row| row.time_ms)?;
    let page = wanted.page(ended.into_iter().filter_map(list).collect(), open);
    // No symbol is ever taken back or gets another name.
    let symbols: Vec<_> =
        intake.read(|state| page.iter().map(|list| symbol_of(state, list)).collect());
    let page = page.iter().zip(&symbols);
    json_list(ORDER_BYTES, page.map(|(list, symbol)| shown(list, symbol.as_str())))
}

pub(in crate::spot) fn trades(intake: &Intake<'_>) -> Result<Reply, ApiError> {
    let name = intake.parameters.required_symbol("symbol")?;
    let order = number(intake, "orderId")?.map(OrderId);
    let span = Span::read(intake)?;
    let from = number(intake, "fromId")?;
    let limit = page_size(intake)?;
    let account = intake.signed()?.caller.account;
    if span.is_given() && (order.is_some() || from.is_some()) {
        return Err(ParameterError::Combination.into());
    }
    let wanted = Wanted { from, span, limit };
    let (traded, order, [base, quote]) = intake.read(|state| {
        let symbol = state.venue.symbol_named(name).ok_or(ApiError::invalid_symbol())?;
        span.check(SPAN_MS, SPAN_HOURS)?;
        let asset = |id| state.venue.asset(id).map(|asset| asset.name).unwrap_or_default();
        let order = order.map(|order| state.order(account, symbol.id, order)).transpose()?;
        let (market, reader) = (state.history.market(symbol.id), state.history.reader()?);
        let traded = Traded { account, symbol: symbol.id, market, reader };
        Ok::<_, ApiError>((traded, order, [symbol.base, symbol.quote].map(asset)))
    })?;
    let page = match order.map(Sought::find) {
        Some(order) => order?.map_or(Ok(Vec::new()), |order| traded.by_order(&order, &wanted))?,
        None => traded.by_account(&wanted)?,
    };
    json_list(TRADE_BYTES, page.iter().map(|side| side.shown(name, &base, &quote)))
}

/// One side of a trade.
struct Side {
    id: u64,
    is_maker: bool,
    row: SideRow,
}

impl Side {
    fn shown<'a>(
        &self,
        symbol: &'a str,
        base: &'a AssetName,
        quote: &'a AssetName,
    ) -> AccountTrade<'a> {
        let is_buyer = self.row.is_buyer != 0;
        AccountTrade {
            symbol,
            id: self.id,
            order_id: self.row.order,
            order_list_id: self.row.order_list,
            price: Decimal(self.row.price),
            qty: Decimal(self.row.quantity),
            quote_qty: Decimal(self.row.quote),
            commission: Decimal(self.row.commission),
            // It is taken from what was received (facts §4).
            commission_asset: if is_buyer { base.as_str() } else { quote.as_str() },
            time: self.row.time_ms,
            is_buyer,
            is_maker: self.is_maker,
            is_best_match: true,
        }
    }
}

/// What an account has traded on a symbol.
struct Traded {
    account: AccountId,
    symbol: SymbolId,
    market: Market,
    reader: Reader,
}

impl Traded {
    fn by_account(&self, wanted: &Wanted) -> Result<Vec<Side>, HistoryError> {
        let Self { account, symbol, market, ref reader } = *self;
        let history = SymbolHistory { reader, symbol, market };
        let whole = u64::MAX;
        let first_since = |moment: u64| {
            Ok::<_, HistoryError>(history.first_since(moment)?.map(|trade| side_id(trade, false)))
        };
        let behind = match wanted.span.end {
            Some(end) => first_since(end.saturating_add(1))?,
            None => None,
        };
        let first = match (wanted.from, wanted.span.start) {
            (Some(from), _) => Some(from.saturating_mul(2)),
            (None, Some(start)) => first_since(start)?,
            (None, None) => Some(0),
        };
        let Some(first) = first else { return Ok(Vec::new()) };
        let last = behind.map_or(whole, |behind| behind - 1);
        let group = of_account(account, symbol);
        let page = reader.page::<SideRow>(group, first..=last, wanted.direction(), wanted.limit)?;
        self.told(page)
    }

    fn by_order(&self, order: &Order, wanted: &Wanted) -> Result<Vec<Side>, HistoryError> {
        let row = SideRow::of(order.order_id.0, order.order_list_id.0);
        let first = wanted.from.map_or(0, |from| from.saturating_mul(2));
        let sides = self.reader.sides_of(order, first, wanted.direction(), wanted.limit)?;
        self.told(sides.into_iter().map(|id| (id, row)).collect())
    }

    fn told(&self, page: Vec<(u64, SideRow)>) -> Result<Vec<Side>, HistoryError> {
        page.into_iter().filter_map(|(id, row)| self.side(id, row).transpose()).collect()
    }

    /// A side, with what the trade that it belongs to has where it does not tell by itself.
    fn side(&self, id: u64, row: SideRow) -> Result<Option<Side>, HistoryError> {
        let (id, is_maker) = trade_of(id);
        if row.is_whole() {
            return Ok(Some(Side { id, is_maker, row }));
        }
        let trade = self.reader.get::<TradeRow>(of_symbol(self.symbol), id)?;
        Ok(trade.map(|trade| Side { id, is_maker, row: row.traded(&trade, is_maker) }))
    }
}
