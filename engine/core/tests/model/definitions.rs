//! The model: what the operator defines and changes.

use crate::state::{
    Account, Model, ONE, Outcome, Rates, Rejection, Symbol, Work, check, check_detail,
};
use crate::venue::Owned;
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{RejectReason as Why, SymbolStatus};
use touchline_protocol::message::event::*;
use touchline_protocol::units::*;

/// Order types LIMIT and MARKET, and all seven.
const TYPES_OF_RULES_1: u8 = 0b110;
const TYPES_OF_RULES_2: u8 = 0b1111_1110;

fn done(id: u64) -> Outcome {
    Ok(vec![Owned::Done(Done { id, ..Default::default() })])
}

impl Model {
    pub(crate) fn set_rules(&mut self, m: &SetRules) -> Outcome {
        check(m.rules == self.rules + 1 && m.rules <= 8, Why::LimitOutOfRange)?;
        self.rules = m.rules;
        // Averages begin with rules 2; the last price is known from before.
        if m.rules == 2 {
            self.symbols.iter_mut().for_each(|symbol| symbol.history.clear());
        }
        done(0)
    }

    /// Never below what is in use.
    pub(crate) fn set_limits(&mut self, m: &SetLimits) -> Outcome {
        let present = self.limits;
        let in_use = [
            (self.limits_in_use(), present.open_orders, m.limits.open_orders),
            (self.price_levels_kept(), present.price_levels, m.limits.price_levels),
            (self.ordinary_work(), present.pending_work, m.limits.pending_work),
        ];
        for (number, (used, present, limit)) in (5..).zip(in_use) {
            // What is kept for aggressors may be above a limit that nobody lowers.
            let lowered = self.rules < 2 || limit < present;
            check_detail(limit >= used || !lowered, Why::LimitOutOfRange, number)?;
        }
        self.limits = m.limits;
        done(0)
    }

    fn limits_in_use(&self) -> u32 {
        self.open_orders_in_use()
    }

    pub(crate) fn set_venue_filters(&mut self, m: &SetVenueFilters) -> Outcome {
        (self.max_orders, self.max_algo_orders) = (m.max_orders, m.max_algo_orders);
        done(0)
    }

    pub(crate) fn define_asset(&mut self, m: &DefineAsset) -> Outcome {
        check_detail(!m.name.is_empty(), Why::InvalidDefinition, 0)?;
        check_detail(m.precision <= 8, Why::InvalidDefinition, 1)?;
        check(!self.assets.contains(&m.name), Why::AlreadyDefined)?;
        self.assets.push(m.name);
        done(self.assets.len() as u64 - 1)
    }

    pub(crate) fn define_symbol(&mut self, m: &DefineSymbol) -> Outcome {
        check_detail(!m.name.is_empty(), Why::InvalidDefinition, 0)?;
        for asset in [m.base, m.quote] {
            check((asset.0 as usize) < self.assets.len(), Why::UnknownAsset)?;
        }
        check_detail(m.base != m.quote, Why::InvalidDefinition, 2)?;
        check_detail(SymbolStatus::from_wire(m.status).is_some(), Why::InvalidDefinition, 3)?;
        self.check_terms(4, m.order_types, m.flags, m.permissions, &m.filters)?;
        let taken = self.symbols.iter().any(|symbol| symbol.name == m.name);
        check(!taken, Why::AlreadyDefined)?;
        self.symbols.push(Symbol {
            name: m.name,
            base: m.base.0,
            quote: m.quote.0,
            status: m.status,
            order_types: m.order_types,
            flags: m.flags,
            permissions: m.permissions,
            filters: m.filters,
            last: None,
            history: Vec::new(),
            orders: 0,
            trades: 0,
            aggregates: 0,
            updates: 0,
        });
        done(self.symbols.len() as u64 - 1)
    }

    /// What a symbol's definition and its change have in common; the detail is the number of the field,
    /// the first of these being `first`.
    fn check_terms(
        &self,
        first: u32,
        order_types: u8,
        flags: u8,
        permissions: u8,
        f: &SymbolFilters,
    ) -> Result<(), Rejection> {
        let of_rules_2 = self.rules > 1;
        let known = if of_rules_2 { TYPES_OF_RULES_2 } else { TYPES_OF_RULES_1 };
        let all = if of_rules_2 { SYMBOL_ICEBERG | SYMBOL_OCO | SYMBOL_QUOTE_QUANTITY } else { 0 };
        let range = |min: i64, max: i64| max >= 0 && (max == 0 || max >= min);
        let fields = [
            (0, order_types & !known == 0),
            (1, flags & !all == 0),
            (2, permissions < 16),
            (4, f.price_min >= 0),
            (5, range(f.price_min, f.price_max)),
            (6, f.tick_size >= 0),
            (7, f.lot_min >= 0),
            (8, range(f.lot_min, f.lot_max)),
            (9, f.lot_step >= 0),
            (10, f.market_lot_min >= 0),
            (11, range(f.market_lot_min, f.market_lot_max)),
            (12, f.market_lot_step >= 0),
            (13, f.percent_price_up >= 0),
            (14, f.percent_price_down >= 0),
            (15, f.min_notional >= 0),
            (16, f.max_position >= 0),
            (17, f.percent_price_minutes <= 60),
            (18, f.min_notional_minutes <= 60),
            (23, f.min_notional_applies_to_market <= 1),
        ];
        for (number, sound) in fields {
            check_detail(sound, Why::InvalidDefinition, first + number)?;
        }
        Ok(())
    }

    pub(crate) fn set_status(&mut self, m: &SetSymbolStatus) -> Outcome {
        check((m.symbol.0 as usize) < self.symbols.len(), Why::UnknownSymbol)?;
        check_detail(SymbolStatus::from_wire(m.status).is_some(), Why::InvalidDefinition, 1)?;
        self.symbol_mut(m.symbol.0).status = m.status;
        // What was reached in a halt has its turn: behind what goes on with the symbol, if anything does.
        let settled = !self.work.iter().any(|work| work.symbol() == Some(m.symbol.0));
        if settled && self.has_fired(m.symbol.0) {
            self.note("stops that were reached in a halt have their turn");
            self.work.push_back(Work::Stops(m.symbol.0));
        }
        done(m.symbol.0.into())
    }

    /// Prices and quantities that are on the book must go on fitting: what they are rounded to changes
    /// only while the symbol is not trading and nothing is open on it. Everything else at any time.
    pub(crate) fn change_symbol(&mut self, m: &ChangeSymbol) -> Outcome {
        let symbol = self.ready(m.symbol)?;
        self.check_terms(1, m.order_types, m.flags, m.permissions, &m.filters)?;
        let rounding = |f: &SymbolFilters| {
            let price_min = if f.tick_size > 0 { f.price_min } else { 0 };
            let lot_min = if f.lot_step > 0 { f.lot_min } else { 0 };
            let moves = self.rules > 3 && f.market_lot_step > 0;
            let market_from = if moves { f.market_lot_min % f.market_lot_step } else { 0 };
            (f.tick_size, price_min, f.lot_step, lot_min, (f.market_lot_step, market_from))
        };
        let changes = rounding(&m.filters) != rounding(&self.symbol(symbol).filters);
        let idle = !self.symbol(symbol).is_trading() && self.on(symbol).count() == 0;
        check(!changes || idle, Why::SymbolInUse)?;
        let symbol = self.symbol_mut(symbol);
        (symbol.order_types, symbol.flags, symbol.permissions, symbol.filters) =
            (m.order_types, m.flags, m.permissions, m.filters);
        done(m.symbol.0.into())
    }

    pub(crate) fn create_account(&mut self, m: &CreateAccount) -> Outcome {
        check_detail(!m.name.is_empty(), Why::InvalidDefinition, 0)?;
        check_detail((0..=ONE).contains(&m.maker_rate.into()), Why::InvalidDefinition, 1)?;
        check_detail((0..=ONE).contains(&m.taker_rate.into()), Why::InvalidDefinition, 2)?;
        check_detail(m.flags < 8, Why::InvalidDefinition, 3)?;
        check_detail(m.permissions < 16, Why::InvalidDefinition, 4)?;
        let taken = self.accounts.iter().any(|account| account.name == m.name);
        check(!taken, Why::AlreadyDefined)?;
        self.accounts.push(Account {
            name: m.name,
            rates: Rates { maker: m.maker_rate, taker: m.taker_rate, buyer: 0, seller: 0 },
            flags: m.flags,
            permissions: m.permissions,
            ..Account::default()
        });
        done(self.accounts.len() as u64 - 1)
    }

    pub(crate) fn set_account(&mut self, m: &SetAccount) -> Outcome {
        check(self.is_client(m.account.0), Why::UnknownAccount)?;
        check_detail(m.flags < 8, Why::InvalidDefinition, 1)?;
        check_detail(m.permissions < 16, Why::InvalidDefinition, 2)?;
        check_detail(m.self_trade_prevention <= 4, Why::InvalidDefinition, 3)?;
        let account = self.account_mut(m.account.0);
        (account.flags, account.permissions) = (m.flags, m.permissions);
        account.prevention = m.self_trade_prevention;
        done(m.account.0.into())
    }

    /// Any account but the fee account.
    fn is_client(&self, account: u32) -> bool {
        account != AccountId::FEES.0 && (account as usize) < self.accounts.len()
    }

    /// Rates of an account, of a symbol, or of an account on a symbol; the latter two may be withdrawn.
    pub(crate) fn set_fees(&mut self, m: &SetFees) -> Outcome {
        let account = (m.account.0 != EVERY).then_some(m.account.0);
        let symbol = (m.symbol.0 != EVERY).then_some(m.symbol.0);
        let known = account.is_none_or(|account| self.is_client(account));
        check(known, Why::UnknownAccount)?;
        let known = symbol.is_none_or(|symbol| (symbol as usize) < self.symbols.len());
        check(known, Why::UnknownSymbol)?;
        check_detail(account.is_some() || symbol.is_some(), Why::InvalidDefinition, 0)?;
        let rates = Rates {
            maker: m.maker_rate,
            taker: m.taker_rate,
            buyer: m.buyer_rate,
            seller: m.seller_rate,
        };
        let all = [rates.maker, rates.taker, rates.buyer, rates.seller];
        let withdrawn = symbol.is_some() && all.iter().all(|rate| *rate < 0);
        if !withdrawn {
            let most = ONE as i64;
            for (number, rate) in (2..).zip(all) {
                check_detail((0..=most).contains(&rate), Why::InvalidDefinition, number)?;
            }
            let side = rates.buyer.max(rates.seller);
            check_detail(rates.maker + side <= most, Why::InvalidDefinition, 2)?;
            check_detail(rates.taker + side <= most, Why::InvalidDefinition, 3)?;
        }
        match symbol {
            None => self.account_mut(m.account.0).rates = rates,
            Some(symbol) if withdrawn => {
                self.fees.remove(&(account, symbol));
            }
            Some(symbol) => {
                self.fees.insert((account, symbol), rates);
                let pairs = self.fees.keys().filter(|(account, _)| account.is_some()).count();
                let room = pairs <= self.limits.accounts as usize;
                check_detail(room, Why::CapacityReached, 2)?;
            }
        }
        done(0)
    }
}
