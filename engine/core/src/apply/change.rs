//! Changes of what was defined: what an account may do, commission rates, a symbol's rules.

use super::Reject;
use super::define::{ACCOUNT_FLAGS, PERMISSIONS, done, require, require_room};
use crate::Core;
use crate::fees::FeeRates;
use crate::filters;
use crate::limits::number;
use crate::outbox::Outbox;
use crate::pool::NONE;
use touchline_protocol::message::command::{
    ChangeSymbol, EVERY, SetAccount, SetFees, SymbolFilters,
};
use touchline_protocol::message::enums::{RejectReason, SelfTradePrevention, Side, SymbolStatus};
use touchline_protocol::units::{AccountId, SymbolId};

impl Core {
    /// What an account may do from now on. Its open orders stay as they are.
    pub(super) fn set_account(
        &mut self,
        message: &SetAccount,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Reject> {
        let id = message.account;
        self.check_client(id)?;
        require(message.flags & !ACCOUNT_FLAGS == 0, 1)?;
        require(message.permissions & !PERMISSIONS == 0, 2)?;
        let prevention = match message.self_trade_prevention {
            0 => Some(SelfTradePrevention::None),
            mode => SelfTradePrevention::from_wire(mode),
        };
        let Some(prevention) = prevention else { return require(false, 3) };
        let account = &mut self.accounts.list[id.0 as usize];
        account.flags = message.flags;
        account.permissions = message.permissions;
        account.self_trade_prevention = prevention;
        done(outbox, id.0.into());
        Ok(())
    }

    /// Commission rates from the next trade on: of an account, of a symbol, of an account on a symbol.
    pub(super) fn set_fees(
        &mut self,
        message: &SetFees,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Reject> {
        /// Place of the first rate among the message's fields.
        const RATES: u32 = 2;
        let SetFees { account, symbol, .. } = *message;
        let (of_account, of_symbol) = (account.0 != EVERY, symbol.0 != EVERY);
        require(of_account || of_symbol, 0)?;
        if of_account {
            self.check_client(account)?;
        }
        if of_symbol {
            self.symbols.get(symbol).ok_or(RejectReason::UnknownSymbol)?;
        }
        let rates = FeeRates {
            maker: message.maker_rate,
            taker: message.taker_rate,
            buyer: message.buyer_rate,
            seller: message.seller_rate,
        };
        // An account's own rates are all that it has: they cannot be withdrawn.
        let is_withdrawn = of_symbol && rates.list().iter().all(|&rate| rate < 0);
        if let (false, Some(at)) = (is_withdrawn, rates.first_out_of_range()) {
            return require(false, RATES + at);
        }
        if of_account && of_symbol {
            self.set_pair_fees(account, symbol, (!is_withdrawn).then_some(rates))?;
        } else if of_symbol {
            self.symbols.list[symbol.0 as usize].rates = (!is_withdrawn).then_some(rates);
        } else {
            self.accounts.list[account.0 as usize].rates = rates;
        }
        done(outbox, 0);
        Ok(())
    }

    /// An account that trades: any but the fee account.
    fn check_client(&self, id: AccountId) -> Result<(), Reject> {
        if id == AccountId::FEES || self.accounts.get(id).is_none() {
            return Err(RejectReason::UnknownAccount.into());
        }
        Ok(())
    }

    fn set_pair_fees(
        &mut self,
        account: AccountId,
        symbol: SymbolId,
        rates: Option<FeeRates>,
    ) -> Result<(), Reject> {
        let fees = &mut self.accounts.pair_fees;
        let count = &mut self.accounts.list[account.0 as usize].paired_rates;
        match rates {
            None => *count -= u32::from(fees.remove(account, symbol)),
            Some(rates) => {
                if fees.get(account, symbol).is_none() {
                    require_room(fees.len(), self.limits.accounts, number::ACCOUNTS)?;
                }
                *count += u32::from(fees.set(account, symbol, rates));
            }
        }
        Ok(())
    }

    /// A symbol's rules from now on. What is open obeys the old ones, so what prices and quantities are
    /// rounded to changes only while nothing is open and nothing can be placed.
    pub(super) fn change_symbol(
        &mut self,
        message: &ChangeSymbol,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Reject> {
        /// Place of the first filter among the message's fields.
        const FILTERS: u32 = 5;
        let symbol = self.settled_symbol(message.symbol)?;
        require(message.order_types & !filters::order_types(self.rules) == 0, 1)?;
        require(message.flags & !filters::symbol_flags(self.rules) == 0, 2)?;
        require(message.permissions & !PERMISSIONS == 0, 3)?;
        if let Some(field) = filters::first_bad_field(self.rules, &message.filters) {
            return require(false, FILTERS + field);
        }
        let is_at_rest =
            symbol.status != SymbolStatus::Trading && self.has_no_order(message.symbol);
        let changes = changes_grids(&symbol.filters, &message.filters)
            || self.rules >= 4 && moves_market_steps(&symbol.filters, &message.filters);
        if !is_at_rest && changes {
            return Err(RejectReason::SymbolInUse.into());
        }
        let symbol = &mut self.symbols.list[message.symbol.0 as usize];
        symbol.order_types = message.order_types;
        symbol.flags = message.flags;
        symbol.permissions = message.permissions;
        self.symbols.set_filters(message.symbol, &message.filters);
        done(outbox, message.symbol.0.into());
        Ok(())
    }

    /// True when nothing is open on a symbol.
    fn has_no_order(&self, id: SymbolId) -> bool {
        let at = id.0 as usize;
        let is_empty = |side| {
            self.symbols.books[at].best(side).is_none()
                && self.symbols.triggers[at].best(side).is_none()
        };
        is_empty(Side::Buy) && is_empty(Side::Sell) && self.symbols.list[at].fired == NONE
    }
}

/// True when other prices or quantities would be whole ticks or steps.
const fn changes_grids(old: &SymbolFilters, new: &SymbolFilters) -> bool {
    old.tick_size != new.tick_size
        || old.tick_size != 0 && old.price_min != new.price_min
        || old.lot_step != new.lot_step
        || old.lot_step != 0 && old.lot_min != new.lot_min
        || old.market_lot_step != new.market_lot_step
}

/// True when the steps of MARKET_LOT_SIZE, which stay as they are, would be counted from elsewhere, so that
/// other quantities would fit. A least quantity that is whole steps away is a bound and moves none.
const fn moves_market_steps(old: &SymbolFilters, new: &SymbolFilters) -> bool {
    let step = new.market_lot_step;
    step != 0 && old.market_lot_min % step != new.market_lot_min % step
}
