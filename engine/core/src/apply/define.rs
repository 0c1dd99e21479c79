//! Definitions: assets, symbols and their status, accounts, keys.

use super::Reject;
use crate::Core;
use crate::accounts::{Account, OrderWindow};
use crate::bounds::Bounds;
use crate::fees::FeeRates;
use crate::filters;
use crate::keys::Key;
use crate::limits::number;
use crate::outbox::Outbox;
use crate::pending::Pending;
use crate::pool::NONE;
use crate::symbols::{Symbol, SymbolCounters};
use touchline_protocol::message::command::{
    ACCOUNT_CAN_DEPOSIT, ACCOUNT_CAN_TRADE, ACCOUNT_CAN_WITHDRAW, CreateAccount, CreateKey,
    DefineAsset, DefineSymbol, KEY_ALL, PERMISSION_LEVERAGED, PERMISSION_MARGIN, PERMISSION_SPOT,
    PERMISSION_TRADE_GROUP_2, SetSymbolStatus,
};
use touchline_protocol::message::enums::{RejectReason, SelfTradePrevention, SymbolStatus};
use touchline_protocol::message::event::Done;
use touchline_protocol::units::{Price, UNITS_PER_WHOLE};

pub(crate) const ACCOUNT_FLAGS: u8 = ACCOUNT_CAN_TRADE | ACCOUNT_CAN_WITHDRAW | ACCOUNT_CAN_DEPOSIT;
pub(crate) const PERMISSIONS: u8 =
    PERMISSION_SPOT | PERMISSION_MARGIN | PERMISSION_LEVERAGED | PERMISSION_TRADE_GROUP_2;
const PRECISION_MAX: u8 = 8;

/// Fails with the number of a field unless its condition holds.
pub(super) const fn require(holds: bool, field: u32) -> Result<(), Reject> {
    if holds { Ok(()) } else { Err(Reject::with(RejectReason::InvalidDefinition, field)) }
}

/// Fails unless one more fits under the limit of this number.
pub(super) const fn require_room(used: u32, limit: u32, number: u32) -> Result<(), Reject> {
    if used < limit { Ok(()) } else { Err(Reject::with(RejectReason::CapacityReached, number)) }
}

/// The reply to a definition.
pub(super) fn done(outbox: &mut Outbox<'_>, id: u64) {
    outbox.push(&Done { id, ..Default::default() });
}

impl Core {
    pub(super) fn define_asset(
        &mut self,
        message: &DefineAsset,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Reject> {
        require(!message.name.is_empty(), 0)?;
        require(message.precision <= PRECISION_MAX, 1)?;
        if self.assets.find(&message.name).is_some() {
            return Err(RejectReason::AlreadyDefined.into());
        }
        require_room(self.assets.len(), self.limits.assets, number::ASSETS)?;
        let id = self.assets.add(message.name, message.precision);
        done(outbox, id.0.into());
        Ok(())
    }

    pub(super) fn define_symbol(
        &mut self,
        message: &DefineSymbol,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Reject> {
        /// Place of the first filter among the message's fields.
        const FILTERS: u32 = 8;
        require(!message.name.is_empty(), 0)?;
        self.assets.get(message.base).ok_or(RejectReason::UnknownAsset)?;
        self.assets.get(message.quote).ok_or(RejectReason::UnknownAsset)?;
        require(message.base != message.quote, 2)?;
        let Some(status) = SymbolStatus::from_wire(message.status) else {
            return require(false, 3);
        };
        require(message.order_types & !filters::order_types(self.rules) == 0, 4)?;
        require(message.flags & !filters::symbol_flags(self.rules) == 0, 5)?;
        require(message.permissions & !PERMISSIONS == 0, 6)?;
        if let Some(field) = filters::first_bad_field(self.rules, &message.filters) {
            return require(false, FILTERS + field);
        }
        if self.symbols.find(&message.name).is_some() {
            return Err(RejectReason::AlreadyDefined.into());
        }
        require_room(self.symbols.len(), self.limits.symbols, number::SYMBOLS)?;
        let id = self.symbols.add(Symbol {
            base: message.base,
            quote: message.quote,
            counters: SymbolCounters::default(),
            status,
            order_types: message.order_types,
            flags: message.flags,
            permissions: message.permissions,
            has_pending: false,
            name: message.name,
            filters: message.filters,
            rates: None,
            last_price: Price::ZERO,
            fired: NONE,
            counted_in: 0,
            bounds: Bounds::of(&message.filters),
        });
        done(outbox, id.0.into());
        Ok(())
    }

    /// A halt does not wait for pending work. An order accepted before it still ends its taking: the
    /// status decides about acceptance, and half a match would leave the book crossed. By rules 5 no stop is
    /// triggered in a halt; those that were reached in it have their turn when the symbol trades again, for which
    /// there is [room](crate::pending::PendingQueue) of its own.
    pub(super) fn set_symbol_status(
        &mut self,
        message: &SetSymbolStatus,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Reject> {
        let symbol = self
            .symbols
            .list
            .get_mut(message.symbol.0 as usize)
            .ok_or(RejectReason::UnknownSymbol)?;
        let Some(status) = SymbolStatus::from_wire(message.status) else {
            return require(false, 1);
        };
        symbol.status = status;
        // What is pending on the symbol leaves it to them when it is done.
        let is_settled = !symbol.has_pending;
        if is_settled && self.has_triggered(message.symbol.0 as usize) {
            self.push_pending(Pending::Triggered(message.symbol));
        }
        done(outbox, message.symbol.0.into());
        Ok(())
    }

    pub(super) fn create_account(
        &mut self,
        message: &CreateAccount,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Reject> {
        require(!message.name.is_empty(), 0)?;
        require((0..=UNITS_PER_WHOLE).contains(&message.maker_rate), 1)?;
        require((0..=UNITS_PER_WHOLE).contains(&message.taker_rate), 2)?;
        require(message.flags & !ACCOUNT_FLAGS == 0, 3)?;
        require(message.permissions & !PERMISSIONS == 0, 4)?;
        if self.accounts.find(&message.name).is_some() {
            return Err(RejectReason::AlreadyDefined.into());
        }
        require_room(self.accounts.len(), self.limits.accounts, number::ACCOUNTS)?;
        let id = self.accounts.add(Account {
            rates: FeeRates {
                maker: message.maker_rate,
                taker: message.taker_rate,
                ..Default::default()
            },
            paired_rates: 0,
            windows: [OrderWindow::default(); 2],
            name: message.name,
            flags: message.flags,
            permissions: message.permissions,
            self_trade_prevention: SelfTradePrevention::None,
            is_killed: false,
            watchers: 0,
        });
        done(outbox, id.0.into());
        Ok(())
    }

    pub(super) fn create_key(
        &mut self,
        message: &CreateKey,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Reject> {
        self.accounts.get(message.account).ok_or(RejectReason::UnknownAccount)?;
        require(message.permissions & !KEY_ALL == 0, 1)?;
        require_room(self.keys.len(), self.limits.keys, number::KEYS)?;
        let id = self.keys.add(Key::new(message.account, message.permissions));
        done(outbox, id.0);
        Ok(())
    }
}
