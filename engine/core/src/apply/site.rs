//! Where an order is to be placed: its account, its symbol and that symbol's book, looked up once for all
//! the checks that an order passes. Called by placement, replacements and lists.

use crate::Core;
use crate::accounts::{Account, Balance};
use crate::book::SymbolBook;
use crate::open_counts::OpenCounts;
use crate::symbols::Symbol;
use touchline_protocol::message::enums::Side;
use touchline_protocol::units::{AccountId, SymbolId};

/// An account and a symbol that exist.
#[derive(Clone, Copy)]
pub(super) struct Site<'core> {
    pub(super) account_id: AccountId,
    pub(super) account: &'core Account,
    pub(super) symbol_id: SymbolId,
    pub(super) symbol: &'core Symbol,
    pub(super) book: &'core SymbolBook,
    /// The symbol's waiting stops.
    pub(super) triggers: &'core SymbolBook,
}

impl Core {
    /// An account and a symbol that exist.
    #[inline(always)]
    pub(super) fn site(&self, account_id: AccountId, symbol_id: SymbolId) -> Site<'_> {
        let at = symbol_id.0 as usize;
        Site {
            account_id,
            account: &self.accounts.list[account_id.0 as usize],
            symbol_id,
            symbol: &self.symbols.list[at],
            book: &self.symbols.books[at],
            triggers: &self.symbols.triggers[at],
        }
    }

    /// What the account has of the asset that an order of a side gives away.
    #[inline(always)]
    pub(super) fn means(&self, site: &Site<'_>, side: Side) -> &Balance {
        self.accounts.balance(site.account_id, site.symbol.paid_with(side))
    }

    /// What the account has open on the symbol. It is dear to look up, and most symbols' filters need it
    /// more than once.
    #[inline(always)]
    pub(super) fn open_at(&self, site: &Site<'_>) -> OpenCounts {
        self.orders.open_counts(site.account_id, site.symbol_id)
    }
}
