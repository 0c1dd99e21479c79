//! The venue as a whole: rules version, capacities and limits.

use super::Reject;
use crate::accounts::OrderWindow;
use crate::calendar::Calendar;
use crate::outbox::Outbox;
use crate::{Core, limits};
use alloc::collections::TryReserveError;
use core::array;
use touchline_protocol::message::command::{Limits, SetLimits, SetRules, SetVenueFilters};
use touchline_protocol::message::enums::RejectReason;
use touchline_protocol::message::event::Done;

impl Core {
    /// The rules version goes up by one at a time, to what this build knows.
    pub(super) fn set_rules(
        &mut self,
        message: &SetRules,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Reject> {
        if message.rules != self.rules + 1 || message.rules > crate::RULES_MAX {
            return Err(RejectReason::LimitOutOfRange.into());
        }
        self.rules = message.rules;
        outbox.push(&Done::default());
        Ok(())
    }

    /// Sets the limits and takes the memory for them: this and `SetRecordLimits` are the commands that allocate.
    pub(super) fn set_limits(
        &mut self,
        message: &SetLimits,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Reject> {
        let new = &message.limits;
        if let Some(number) = limits::first_out_of_range(new, &self.floor()) {
            return Err(Reject::with(RejectReason::LimitOutOfRange, number));
        }
        // What grew before memory ran out stays grown, which nobody can see.
        self.try_grow(new).map_err(|_| {
            Reject::with(RejectReason::LimitOutOfRange, limits::number::OPEN_ORDERS)
        })?;
        let changed = [
            new.interval_0_seconds != self.limits.interval_0_seconds,
            new.interval_1_seconds != self.limits.interval_1_seconds,
        ];
        self.restart_windows(changed);
        self.limits = *new;
        self.calendar = Calendar::new();
        outbox.push(&Done::default());
        Ok(())
    }

    /// The exchange's own filters; they bind new orders only.
    pub(super) fn set_venue_filters(
        &mut self,
        message: &SetVenueFilters,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Reject> {
        self.max_orders = message.max_orders;
        self.max_algo_orders = message.max_algo_orders;
        outbox.push(&Done::default());
        Ok(())
    }

    /// What the capacities may not go below: what is in use, but never more than they are. An order that
    /// takes before it rests is counted before it has emptied a level, so that for this moment more may
    /// be in use than the limit; to leave a limit as it is must not be refused for that.
    fn floor(&self) -> Limits {
        let used = limits::by_number(&self.in_use());
        if self.rules < 2 {
            return bytemuck::cast(used);
        }
        let present = limits::by_number(&self.limits);
        bytemuck::cast::<[u32; 14], _>(array::from_fn(|at| used[at].min(present[at])))
    }

    /// How much of each capacity is in use or spoken for.
    fn in_use(&self) -> Limits {
        Limits {
            assets: self.assets.len(),
            symbols: self.symbols.len(),
            // As many accounts may have rates of their own on symbols.
            accounts: self.accounts.len().max(self.accounts.pair_fees.len()),
            keys: self.keys.len(),
            sessions: self.sessions.len(),
            open_orders: self.pools.orders() + self.pending.reserved(),
            price_levels: self.pools.levels() + self.pending.reserved() + self.orders.reserved(),
            pending_work: self.pending.ordinary(),
            ..Limits::default()
        }
    }

    /// Makes room for what limits allow.
    pub(crate) fn try_grow(&mut self, limits: &Limits) -> Result<(), TryReserveError> {
        self.assets.try_grow(limits.assets)?;
        self.symbols.try_grow(limits.symbols)?;
        self.accounts.try_grow(limits)?;
        self.keys.try_grow(limits.keys)?;
        self.sessions.try_grow(limits.sessions)?;
        self.pools.try_grow(limits.open_orders, limits.price_levels)?;
        self.orders.try_grow(limits)?;
        self.pending.try_grow(limits::pending_entries(limits))
    }

    /// Window numbers of another interval length mean nothing, so its counts begin anew.
    fn restart_windows(&mut self, changed: [bool; 2]) {
        for account in &mut self.accounts.list {
            for (window, _) in
                account.windows.iter_mut().zip(changed).filter(|(_, changed)| *changed)
            {
                *window = OrderWindow::default();
            }
        }
    }
}
