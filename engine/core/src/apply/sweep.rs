//! Sweeps: commands that end many orders, and what the end of a connection ends. Called by
//! [`Core::apply`], by the session commands, and by the pending work.
//!
//! The first part of a sweep runs in its command's own transaction, unless other work is pending: then
//! all of it comes behind that. Ending an order is two steps of the transaction's `max_steps`, ending
//! a list five. A sweep goes along its account's orders by placement, or through a symbol's book.

use super::ending::LIST_STEPS;
use super::{Context, Reject};
use crate::Core;
use crate::book::{Handle, SymbolBook};
use crate::chains::order_at;
use crate::limits::{self, number};
use crate::outbox::Outbox;
use crate::pending::{Pending, Sweep, Waiter, Whose};
use crate::pool::NONE;
use touchline_protocol::message::command::{CancelAll, EVERY, ExpireAll, KillAccount, MassCancel};
use touchline_protocol::message::enums::{CancelScope, OrderStatus, RejectReason, Side};
use touchline_protocol::message::event::{Done, MassCanceled, OrderContinues};
use touchline_protocol::units::{AccountId, BookUpdateId, SessionId, SymbolId};

/// Steps of ending an order.
pub(crate) const ORDER_STEPS: u32 = 2;

/// Orders that a sweep leaves alone (of another symbol or session) and passes over in one transaction.
const PASSED_MAX: u32 = 1024;

/// Where a sweep finds its next order.
enum Next {
    /// An order to end.
    Order(Handle),
    /// Nothing is left.
    End,
    /// Too many orders were passed over.
    Later,
}

impl Core {
    /// Cancels all open orders of an account on a symbol.
    pub(super) fn cancel_all(
        &mut self,
        context: &Context,
        message: &CancelAll,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Reject> {
        let account = self.trading_account(&message.command)?;
        self.settled_symbol(message.symbol)?;
        if self.orders.open_counts(account, message.symbol).all == 0 {
            return Err(RejectReason::UnknownOrder.into());
        }
        let waiter = Waiter::of(&message.command);
        let whose = Whose::Account(account);
        let sweep = Sweep::new(whose, message.symbol, context.position, waiter);
        self.check_sweep(&sweep)?;
        self.begin_sweep(sweep, outbox);
        Ok(())
    }

    /// Cancels an account's open orders, or those of them that the sender placed.
    pub(super) fn mass_cancel(
        &mut self,
        context: &Context,
        message: &MassCancel,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Reject> {
        let account = self.trading_account(&message.command)?;
        if message.symbol.0 != EVERY {
            self.settled_symbol(message.symbol)?;
        } else if self.pending.len() > 0 {
            return Err(RejectReason::LogUnavailable.into());
        }
        let whose = match CancelScope::from_wire(message.scope) {
            Some(CancelScope::Session) => Whose::Session(account, message.command.session),
            Some(CancelScope::Account) => Whose::Account(account),
            None => return Err(RejectReason::UnsupportedCombination.into()),
        };
        let waiter = Waiter::of(&message.command);
        let sweep = Sweep::new(whose, message.symbol, context.position, waiter);
        self.check_sweep(&sweep)?;
        self.begin_sweep(sweep, outbox);
        Ok(())
    }

    /// Expires all open orders of a symbol.
    pub(super) fn expire_all(
        &mut self,
        context: &Context,
        message: &ExpireAll,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Reject> {
        self.settled_symbol(message.symbol)?;
        let waiter = Waiter::of(&message.command);
        let sweep = Sweep::new(Whose::Everybody, message.symbol, context.position, waiter);
        self.check_sweep(&sweep)?;
        self.begin_sweep(sweep, outbox);
        Ok(())
    }

    /// The kill switch. It overtakes pending work: from now on the account places nothing, an order of
    /// it that is taking goes no further, and its open orders are ended before anything else but the
    /// orders that are taking already. A kill of an account whose orders are still being ended by an
    /// earlier one has nothing to add, and says so at once.
    pub(super) fn kill_account(
        &mut self,
        context: &Context,
        message: &KillAccount,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Reject> {
        let id = message.account;
        self.accounts.get(id).ok_or(RejectReason::UnknownAccount)?;
        match message.killed {
            0 => {
                self.accounts.list[id.0 as usize].is_killed = false;
                outbox.push(&Done { id: id.0.into(), ..Default::default() });
            }
            1 => {
                let (whose, waiter) = (Whose::Killed(id), Waiter::of(&message.command));
                let sweep = Sweep::new(whose, SymbolId(EVERY), context.position, waiter);
                let is_under_way = self.pending.has_kill_of(id);
                if !is_under_way {
                    self.check_sweep(&sweep)?;
                }
                self.accounts.list[id.0 as usize].is_killed = true;
                if is_under_way {
                    self.report_sweep(&sweep, true, outbox);
                } else {
                    self.begin_sweep(sweep, outbox);
                }
            }
            _ => return Err(Reject::with(RejectReason::InvalidDefinition, 1)),
        }
        Ok(())
    }

    /// Room for a sweep in the pending work, unless it surely needs none. An urgent one has room that
    /// nothing else may use.
    pub(super) fn check_sweep(&self, sweep: &Sweep) -> Result<(), Reject> {
        let has_room = if sweep.whose.is_urgent() {
            self.pending.urgent() < limits::urgent_sweeps(&self.limits)
        } else {
            self.pending.ordinary() < self.limits.pending_work
                || !self.must_wait(sweep) && self.fits_at_once(sweep)
        };
        if has_room {
            return Ok(());
        }
        Err(Reject::with(RejectReason::CapacityReached, number::PENDING_WORK))
    }

    /// True when a sweep must not begin before pending work is done: one over all symbols.
    fn must_wait(&self, sweep: &Sweep) -> bool {
        sweep.symbol.0 == EVERY && self.pending.len() > 0
    }

    /// True when a sweep surely ends in its first transaction.
    fn fits_at_once(&self, sweep: &Sweep) -> bool {
        let most = u64::from(self.limits.max_steps);
        let (orders, stops, passed) = match sweep.whose {
            Whose::Everybody => {
                let at = sweep.symbol.0 as usize;
                let orders = self.count_open(&self.symbols.books[at], most);
                let stops = self.count_open(&self.symbols.triggers[at], most);
                (orders + stops, stops, 0)
            }
            whose => {
                let [all, stops] = self.orders.totals(whose.account()).map(u64::from);
                let orders = u64::from(self.left_of(sweep));
                if orders == 0 {
                    return true;
                }
                (orders, stops.min(orders), all)
            }
        };
        // Each stop may be the half of a list. The last item may overdraw the steps.
        let lists = stops.min(orders / 2);
        let steps = (orders - lists) * u64::from(ORDER_STEPS) + lists * u64::from(LIST_STEPS);
        // Each pending work may keep a place without an order among them.
        passed + u64::from(self.pending.len()) <= u64::from(PASSED_MAX)
            && steps.saturating_sub(ORDER_STEPS.into()) < most
    }

    /// Orders of a book; counted level by level until they are more than `most`.
    fn count_open(&self, book: &SymbolBook, most: u64) -> u64 {
        let mut count = 0;
        for level in
            [Side::Sell, Side::Buy].into_iter().flat_map(|side| book.depth(&self.pools, side))
        {
            count += u64::from(level.orders);
            if count > most {
                break;
            }
        }
        count
    }

    /// Begins a sweep for which there is room, and reports how far it came.
    pub(super) fn begin_sweep(&mut self, sweep: Sweep, outbox: &mut Outbox<'_>) {
        let (sweep, is_done) = self.try_sweep(sweep, outbox);
        self.report_sweep(&sweep, is_done, outbox);
    }

    /// Runs the first part of a sweep for which there is room, or queues it; true when it is done.
    pub(super) fn try_sweep(&mut self, mut sweep: Sweep, outbox: &mut Outbox<'_>) -> (Sweep, bool) {
        let mut steps = self.limits.max_steps;
        let is_done = !self.must_wait(&sweep) && self.advance_sweep(&mut sweep, &mut steps, outbox);
        if !is_done {
            self.push_pending(Pending::Sweep(sweep));
        }
        (sweep, is_done)
    }

    /// The last event of a sweep's part.
    pub(super) fn report_sweep(&self, sweep: &Sweep, is_done: bool, outbox: &mut Outbox<'_>) {
        if is_done {
            outbox.push(&MassCanceled {
                account: sweep.whose.account(),
                symbol: sweep.symbol,
                orders: sweep.orders,
                lists: sweep.lists,
                ..Default::default()
            });
            return;
        }
        let symbol = self.symbols.get(sweep.symbol);
        outbox.push(&OrderContinues {
            symbol: sweep.symbol,
            book_update_id: symbol.map_or(BookUpdateId(0), |symbol| symbol.counters.book_update),
            ..Default::default()
        });
    }

    /// Ends orders for as many steps as there are; true when the sweep is done.
    pub(super) fn advance_sweep(
        &mut self,
        sweep: &mut Sweep,
        steps: &mut u32,
        outbox: &mut Outbox<'_>,
    ) -> bool {
        let status = match sweep.whose {
            Whose::Everybody => OrderStatus::Expired,
            // No user can send a kill: it is the venue that ends these.
            Whose::Killed(_) if self.rules >= 8 => OrderStatus::Expired,
            _ => OrderStatus::Canceled,
        };
        let mut behind = sweep.place;
        let mut passed = 0;
        let mut left = self.left_of(sweep);
        let is_done = loop {
            let next = match sweep.whose {
                _ if left == 0 => Next::End,
                Whose::Everybody => self.next_of_symbol(sweep.symbol),
                whose => self.next_of_account(whose.account(), sweep, &mut behind, &mut passed),
            };
            match next {
                Next::End => break true,
                Next::Order(handle) if *steps > 0 => {
                    let ended = self.end_order(handle, status, outbox);
                    *steps = steps.saturating_sub(ORDER_STEPS + ended.lists * LIST_STEPS);
                    left -= ended.orders;
                    sweep.orders += u64::from(ended.orders);
                    sweep.lists += u64::from(ended.lists);
                }
                Next::Order(_) | Next::Later => break false,
            }
        };
        self.move_place(sweep, behind, is_done);
        is_done
    }

    /// The most orders that a sweep may still be about: with none it need not look for them.
    fn left_of(&self, sweep: &Sweep) -> u32 {
        let of_session = |session| self.orders.of_session(session);
        let placed_by = match sweep.whose {
            Whose::Everybody => return u32::MAX,
            Whose::Account(_) | Whose::Killed(_) => u32::MAX,
            Whose::Session(_, session) => of_session(session),
            Whose::Key(_, key) => {
                let last = self.keys.get(key).map_or(NONE, |key| key.last_session);
                self.sessions.of_key(last).map(|at| of_session(SessionId(at + 1))).sum()
            }
        };
        let account = sweep.whose.account();
        let open = if sweep.symbol.0 == EVERY {
            self.orders.totals(account)[0]
        } else {
            self.orders.open_counts(account, sweep.symbol).all
        };
        open.min(placed_by)
    }

    /// The first open order of a symbol: asks, bids, then stops that fire upwards and downwards.
    fn next_of_symbol(&self, symbol: SymbolId) -> Next {
        let at = symbol.0 as usize;
        [&self.symbols.books[at], &self.symbols.triggers[at]]
            .into_iter()
            .flat_map(|book| [Side::Sell, Side::Buy].map(|side| book.first(&self.pools, side)))
            .flatten()
            .next()
            .map_or(Next::End, Next::Order)
    }

    /// The first order of an account behind a place that a sweep is about; moves the place past those
    /// that it is not about.
    fn next_of_account(
        &self,
        account: AccountId,
        sweep: &Sweep,
        behind: &mut u32,
        passed: &mut u32,
    ) -> Next {
        while let Some(place) = self.orders.place_behind(account, *behind) {
            if self.orders.placed_at(place) >= sweep.position {
                break;
            }
            match order_at(place) {
                Some(handle) if self.is_swept(handle, sweep) => return Next::Order(handle),
                _ if *passed == PASSED_MAX => return Next::Later,
                _ => {
                    *passed += 1;
                    *behind = place;
                }
            }
        }
        Next::End
    }

    /// True when a sweep is about an order of its account.
    fn is_swept(&self, handle: Handle, sweep: &Sweep) -> bool {
        let record = self.orders.record(handle);
        let is_of_session = match sweep.whose {
            Whose::Everybody | Whose::Account(_) | Whose::Killed(_) => true,
            Whose::Session(_, session) => record.session == session,
            Whose::Key(_, key_id) => self
                .sessions
                .get(record.session)
                .is_some_and(|session| session.key_id == key_id && session.is_swept_with_key),
        };
        is_of_session && (sweep.symbol.0 == EVERY || record.symbol == sweep.symbol)
    }

    /// Keeps the place behind which an unfinished sweep goes on; gives it up when the sweep is done.
    fn move_place(&mut self, sweep: &mut Sweep, behind: u32, is_done: bool) {
        if !is_done && behind == sweep.place {
            return;
        }
        let account = sweep.whose.account();
        let place = if is_done { NONE } else { self.orders.mark_place(account, behind) };
        if sweep.place != NONE {
            self.orders.give_place_up(account, sweep.place);
        }
        sweep.place = place;
    }
}
