//! Whether there is room for an order: by the filters that count and add up what its account has open,
//! by the order-rate limits, and in the venue. Called by placement, replacements and lists.

use super::Reject;
use super::site::Site;
use crate::Core;
use crate::accounts::{Account, OrderWindow};
use crate::book::Aggressor;
use crate::filters::OrderKind;
use crate::limits::number;
use crate::open_counts::OpenCounts;
use touchline_protocol::message::enums::{RejectReason, SelfTradePrevention, Side};

impl Core {
    /// MAX_POSITION: what an account has of the base asset, with the whole quantities of its open buys on the symbol:
    /// what is executed of them is in its balance as well; and with `quantity` more.
    #[inline(always)]
    pub(super) fn check_position(
        &self,
        site: &Site<'_>,
        open: &OpenCounts,
        quantity: i64,
    ) -> Result<(), Reject> {
        let most = u128::from(site.symbol.filters.max_position.cast_unsigned());
        if most == 0 {
            return Ok(());
        }
        let balance = self.accounts.balance(site.account_id, site.symbol.base);
        let position = [balance.free.0, balance.locked.0, quantity]
            .map(|part| u128::from(part.cast_unsigned()))
            .iter()
            .sum::<u128>()
            + open.bought;
        if position > most {
            return Err(RejectReason::MaxPosition.into());
        }
        Ok(())
    }

    /// The account's order counts. Calendar windows: the n-th is from n times the interval on (facts §8).
    #[inline(always)]
    pub(super) fn order_windows(&self, account: &Account, time_ns: u64) -> [OrderWindow; 2] {
        let present = self.calendar.windows(time_ns, &self.limits);
        let mut windows = account.windows;
        for (order_window, window) in windows.iter_mut().zip(present) {
            if order_window.window != window {
                *order_window = OrderWindow { window, count: 0 };
            }
        }
        windows
    }

    /// The account's order counts with so many more orders, if the limits allow all of them.
    #[inline(always)]
    pub(super) fn count_orders(
        &self,
        account: &Account,
        time_ns: u64,
        more: u32,
    ) -> Result<[OrderWindow; 2], Reject> {
        let limits = [self.limits.orders_per_interval_0, self.limits.orders_per_interval_1];
        let mut windows = self.order_windows(account, time_ns);
        for (index, order_window) in windows.iter_mut().enumerate() {
            let count = u64::from(order_window.count) + u64::from(more);
            if limits[index] != 0 && count > u64::from(limits[index]) {
                return Err(Reject::with(RejectReason::TooManyOrders, index as u32));
            }
            order_window.count = order_window.count.saturating_add(more);
        }
        Ok(windows)
    }

    /// Filters on the number of open orders, with what is to be added.
    #[inline(always)]
    pub(super) fn check_open_counts(
        &self,
        site: &Site<'_>,
        open: &OpenCounts,
        added: &OpenCounts,
    ) -> Result<(), Reject> {
        let (account, filters) = (site.account_id, &site.symbol.filters);
        let is_limited = (self.max_orders | self.max_algo_orders) != 0;
        let [all, algos] = if is_limited { self.orders.totals(account) } else { [0; 2] };
        // One that is taking on another symbol, and may rest, is open too.
        let taking = if self.max_orders == 0 { 0 } else { self.pending.may_rest_of(account) };
        let exceeds =
            |most: u32, open: u32, added: u32| added > 0 && most != 0 && open + added > most;
        if exceeds(filters.max_orders, open.all, added.all) {
            return Err(RejectReason::MaxNumOrders.into());
        }
        if exceeds(filters.max_iceberg_orders, open.icebergs, added.icebergs) {
            return Err(RejectReason::MaxNumIcebergOrders.into());
        }
        if exceeds(self.max_orders, all + taking, added.all) {
            return Err(RejectReason::ExchangeMaxNumOrders.into());
        }
        if exceeds(filters.max_algo_orders, open.algos, added.algos) {
            return Err(RejectReason::MaxNumAlgoOrders.into());
        }
        if exceeds(self.max_algo_orders, algos, added.algos) {
            return Err(RejectReason::ExchangeMaxNumAlgoOrders.into());
        }
        Ok(())
    }

    /// Room for what may rest and for what may have to be continued; why this is enough:
    /// [`PendingQueue`](crate::pending::PendingQueue).
    #[inline(always)]
    pub(super) fn check_capacity(
        &self,
        site: &Site<'_>,
        (kind, prevention): (OrderKind, SelfTradePrevention),
        aggressor: &Aggressor,
    ) -> Result<(), Reject> {
        let Site { account_id: account, symbol_id: id, book, triggers, .. } = *site;
        let has_stops = triggers.best(Side::Buy).is_some() || triggers.best(Side::Sell).is_some();
        if book.crosses(aggressor.side, aggressor.limit) {
            // The levels within the limit are walked only where it matters.
            if !self.has_room_for_pending()
                && (has_stops || self.may_exceed((account, id), prevention, aggressor))
            {
                return Err(Reject::with(RejectReason::CapacityReached, number::PENDING_WORK));
            }
            return Ok(());
        }
        if !kind.may_rest() {
            return Ok(());
        }
        self.check_open_orders(1)?;
        if self.check_levels(1).is_ok() {
            return Ok(());
        }
        let has_level = book.has_level(&self.pools, aggressor.side, aggressor.limit);
        self.check_levels(u32::from(!has_level))
    }

    /// True when one more order may have to be continued.
    #[inline(always)]
    pub(super) fn has_room_for_pending(&self) -> bool {
        self.pending.ordinary() < self.limits.pending_work
    }

    /// Room for so many more price levels, next to what is kept for those that may still rest.
    #[inline(always)]
    pub(super) fn check_levels(&self, more: u32) -> Result<(), Reject> {
        let used = u64::from(self.pools.levels())
            + u64::from(self.pending.reserved())
            + u64::from(self.orders.reserved());
        if more > 0 && used + u64::from(more) > u64::from(self.limits.price_levels) {
            return Err(Reject::with(RejectReason::CapacityReached, number::PRICE_LEVELS));
        }
        Ok(())
    }

    /// Room for so many more open orders.
    #[inline(always)]
    pub(super) fn check_open_orders(&self, more: u32) -> Result<(), Reject> {
        let used = u64::from(self.pools.orders()) + u64::from(self.pending.reserved());
        if used + u64::from(more) > u64::from(self.limits.open_orders) {
            return Err(Reject::with(RejectReason::CapacityReached, number::OPEN_ORDERS));
        }
        Ok(())
    }
}
