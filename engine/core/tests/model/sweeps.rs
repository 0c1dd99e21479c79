//! The model: commands that end many orders, by account, by session, or all of a symbol.

use crate::place::OrderStatus;
use crate::state::{
    Asked, Model, Order, Outcome, Place, Sweep, Whose, Work, check, check_detail, fires_upwards,
};
use crate::venue::Owned;
use std::collections::BTreeSet;
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{CancelScope, RejectReason as Why, Side};
use touchline_protocol::message::event::*;
use touchline_protocol::units::*;

/// Steps of a transaction's share: an order ended, and both of a list.
const STEPS_CANCEL: u32 = 2;
const STEPS_CANCEL_LIST: u32 = 5;

impl Sweep {
    pub(crate) fn new(whose: Whose, symbol: Option<u32>, asked_by: Asked) -> Self {
        let urgent = false;
        Self { whose, symbol, urgent, placed_before: u64::MAX, orders: 0, lists: 0, asked_by }
    }

    pub(crate) fn urgent(self) -> Self {
        Self { urgent: true, ..self }
    }

    fn is_about(&self, order: &Order) -> bool {
        let whose = match &self.whose {
            Whose::Account(account) => order.account == *account,
            Whose::Sessions { account, sessions } => {
                order.account == *account && sessions.contains(&order.session)
            }
            Whose::Everybody => true,
        };
        whose
            && self.symbol.is_none_or(|symbol| order.symbol == symbol)
            && order.placed < self.placed_before
    }
}

impl Model {
    pub(crate) fn cancel_all(&mut self, m: &CancelAll) -> Outcome {
        let account = self.client(&m.command)?;
        let symbol = self.ready(m.symbol)?;
        check(self.own(account, symbol).count() > 0, Why::UnknownOrder)?;
        let sweep = Sweep::new(Whose::Account(account), Some(symbol), Asked::by(&m.command));
        Ok(self.sweep(sweep))
    }

    pub(crate) fn mass_cancel(&mut self, m: &MassCancel) -> Outcome {
        let account = self.client(&m.command)?;
        let symbol = (m.symbol.0 != EVERY).then_some(m.symbol.0);
        match symbol {
            Some(symbol) => self.ready(SymbolId(symbol)).map(|_| ())?,
            None => check(self.work.is_empty(), Why::LogUnavailable)?,
        }
        let scope = CancelScope::from_wire(m.scope).ok_or((Why::UnsupportedCombination, 0))?;
        let whose = match scope {
            CancelScope::Account => Whose::Account(account),
            CancelScope::Session => {
                Whose::Sessions { account, sessions: vec![m.command.session.0] }
            }
        };
        Ok(self.sweep(Sweep::new(whose, symbol, Asked::by(&m.command))))
    }

    /// The kill switch takes hold at once, whatever is pending.
    pub(crate) fn kill(&mut self, m: &KillAccount) -> Outcome {
        let known = (m.account.0 as usize) < self.accounts.len();
        check(known, Why::UnknownAccount)?;
        check_detail(m.killed <= 1, Why::InvalidDefinition, 1)?;
        self.account_mut(m.account.0).killed = m.killed == 1;
        if m.killed == 0 {
            return Ok(vec![Owned::Done(Done { id: m.account.0.into(), ..Default::default() })]);
        }
        let kill = Sweep::new(Whose::Account(m.account.0), None, Asked::by(&m.command)).urgent();
        let same = |work: &Work| matches!(work, Work::Sweep(sweep) if sweep.urgent && sweep.whose == kill.whose);
        // What an earlier kill is still ending leaves nothing to this one.
        if self.work.iter().any(same) {
            self.note("a kill behind a kill");
            return Ok(vec![Owned::MassCanceled(MassCanceled {
                account: m.account,
                symbol: SymbolId(EVERY),
                ..Default::default()
            })]);
        }
        Ok(self.sweep(kill))
    }

    /// Maintenance: in whatever status the symbol is.
    pub(crate) fn expire_all(&mut self, m: &ExpireAll) -> Outcome {
        let symbol = self.ready(m.symbol)?;
        Ok(self.sweep(Sweep::new(Whose::Everybody, Some(symbol), Asked::by(&m.command))))
    }

    /// Begins a sweep; behind other work on its symbols it waits for its turn.
    pub(crate) fn sweep(&mut self, mut sweep: Sweep) -> Vec<Owned> {
        sweep.placed_before = self.placed + 1;
        let mut events = Vec::new();
        let waits = sweep.symbol.map_or(!self.work.is_empty(), |symbol| self.is_pending(symbol));
        if waits {
            self.note("a sweep waits behind other work");
            events.push(goes_on(self, &sweep));
            self.work.push_back(Work::Sweep(sweep));
            return events;
        }
        let mut steps = self.limits.max_steps;
        if let Some(rest) = self.run_sweep(sweep, &mut steps, &mut events) {
            self.work.push_back(Work::Sweep(rest));
        }
        events
    }

    /// Ends orders as far as the steps go; gives the sweep back if more are left.
    pub(crate) fn run_sweep(
        &mut self,
        mut sweep: Sweep,
        steps: &mut u32,
        events: &mut Vec<Owned>,
    ) -> Option<Sweep> {
        // The sweeps that a key's revocation starts are urgent, too, and are about sessions.
        let kills = sweep.urgent && matches!(sweep.whose, Whose::Account(_));
        let status = if sweep.whose == Whose::Everybody || kills && self.rules > 7 {
            OrderStatus::Expired
        } else {
            OrderStatus::Canceled
        };
        let mut changed = BTreeSet::new();
        while *steps > 0
            && let Some(order) = self.next_of(&sweep)
        {
            let listed = self.list_of(&order).is_some();
            if sweep.urgent && matches!(order.place, Place::Fired { .. }) {
                self.note("a fired stop of a killed account ends");
            }
            // One update of each book, however many orders leave it.
            if (order.in_book() || listed) && changed.insert(order.symbol) {
                self.symbol_mut(order.symbol).updates += 1;
            }
            let behind = self.symbol(order.symbol).updates;
            let (orders, lists) = self.end(order.symbol, order.id, (status, behind), events);
            sweep.orders += orders;
            sweep.lists += lists;
            *steps = steps.saturating_sub(if listed { STEPS_CANCEL_LIST } else { STEPS_CANCEL });
        }
        if sweep.lists > 0 && sweep.symbol.is_none() {
            self.note("a sweep over all symbols ends a list");
        }
        if self.next_of(&sweep).is_some() {
            events.push(goes_on(self, &sweep));
            return Some(sweep);
        }
        let account = match sweep.whose {
            Whose::Account(account) | Whose::Sessions { account, .. } => account,
            Whose::Everybody => EVERY,
        };
        events.push(Owned::MassCanceled(MassCanceled {
            account: AccountId(account),
            symbol: SymbolId(sweep.symbol.unwrap_or(EVERY)),
            orders: sweep.orders,
            lists: sweep.lists,
            ..Default::default()
        }));
        None
    }

    /// An account's orders end oldest first. All of a symbol: asks, then bids, best first, then waiting
    /// stops, those that fire upwards first, the nearest first, then fired ones by their turn.
    fn next_of(&self, sweep: &Sweep) -> Option<Order> {
        let about = self.orders.iter().filter(|order| sweep.is_about(order));
        let next = match sweep.whose {
            Whose::Everybody => about.min_by_key(|order| {
                let upwards = fires_upwards(order.order_type, order.side);
                let ascending = |price: i64, is: bool| if is { price } else { -price };
                let sells = order.side == Side::Sell;
                match order.place {
                    Place::Book { turn } => (!sells as u8, ascending(order.price, sells), turn),
                    Place::Waiting => {
                        (2 + !upwards as u8, ascending(order.stop, upwards), order.placed)
                    }
                    Place::Fired { trade } => (4, trade as i64, order.id),
                    Place::Taking => unreachable!("an aggressor is in no queue"),
                }
            }),
            _ => about.min_by_key(|order| order.placed),
        };
        next.cloned()
    }
}

/// Of a sweep: this transaction has done its share.
fn goes_on(model: &Model, sweep: &Sweep) -> Owned {
    let updates = sweep.symbol.map_or(0, |symbol| model.symbol(symbol).updates);
    Owned::Continues(OrderContinues {
        symbol: SymbolId(sweep.symbol.unwrap_or(EVERY)),
        book_update_id: BookUpdateId(updates),
        ..Default::default()
    })
}
