//! Assets, symbols with their books, and the venue's limits. Fed by the fold, read for GET
//! /exchangeInfo and GET /depth and to read every request that names a symbol.

use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::{FxHashMap, FxHashSet};
use touchline_protocol::message::command::{
    ChangeSymbol, DefineAsset, DefineSymbol, Limits, SetVenueFilters, SymbolFilters,
};
use touchline_protocol::message::enums::{OrderType, SymbolStatus};
use touchline_protocol::text::{AssetName, SymbolName};
use touchline_protocol::units::{AssetId, SymbolId};

use super::accounts::next;
use super::book::Book;
use super::error::{FoldError, number};

/// An asset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asset {
    /// Its unique name.
    pub name: AssetName,
    /// Decimal places of its amounts, at most 8.
    pub precision: u8,
}

/// A symbol with its book.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// Its number.
    pub id: SymbolId,
    /// Its unique name.
    pub name: SymbolName,
    /// Asset of quantities.
    pub base: AssetId,
    /// Asset of prices.
    pub quote: AssetId,
    /// Whether orders are taken.
    pub status: SymbolStatus,
    /// Bit n is set when the order type with wire number n is taken.
    pub order_types: u8,
    /// `SYMBOL_*` bits.
    pub flags: u8,
    /// `PERMISSION_*` bits.
    pub permissions: u8,
    /// Filters; 0 disables a rule.
    pub filters: SymbolFilters,
    /// Open quantities by price.
    pub book: Book,
}

impl Symbol {
    /// The order types that the symbol takes, in the order of their numbers.
    pub fn order_types(&self) -> impl Iterator<Item = OrderType> {
        let bits = self.order_types;
        OrderType::ALL.iter().copied().filter(move |kind| kind.is_in(bits))
    }
}

/// A symbol without its book, and its assets: what it takes to read an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SymbolFacts {
    /// Its number.
    pub id: SymbolId,
    /// Its name.
    pub name: SymbolName,
    /// Asset of quantities.
    pub base: Asset,
    /// Asset of prices.
    pub quote: Asset,
    /// Bit n is set when the order type with wire number n is taken.
    pub order_types: u8,
    /// `SYMBOL_*` bits.
    pub flags: u8,
}

/// The symbols of these names, in order of definition: one look for each name. There may be thousands of either, and
/// the views are held.
fn found<'a>(
    names: &[&str],
    find: impl FnMut(&str) -> Option<&'a Symbol>,
) -> Option<Vec<&'a Symbol>> {
    let mut symbols: Vec<_> = names.iter().copied().map(find).collect::<Option<_>>()?;
    symbols.sort_unstable_by_key(|symbol| symbol.id);
    Some(symbols)
}

/// What the venue trades.
#[derive(Debug, Clone, Default)]
pub struct Venue {
    assets: Vec<Asset>,
    /// Names of the assets, which the operator gives as those of symbols.
    asset_names: FxHashSet<AssetName>,
    symbols: Vec<Symbol>,
    /// By names that the operator gives: nobody else can aim them at a hash.
    symbols_by_name: FxHashMap<SymbolName, SymbolId>,
    /// See [`edition`](Self::edition).
    edition: u64,
    /// Capacities and order-count limits; all zero until the log sets them.
    pub limits: Limits,
    /// EXCHANGE_MAX_NUM_ORDERS; 0: no limit.
    pub max_orders: u32,
    /// EXCHANGE_MAX_NUM_ALGO_ORDERS; 0: no limit.
    pub max_algo_orders: u32,
}

impl Venue {
    /// Another number after each change of a definition, books not counted: of two venues of this process with the same
    /// one all definitions are the same.
    #[must_use]
    pub const fn edition(&self) -> u64 {
        self.edition
    }

    /// Notes that a definition changes.
    fn changes(&mut self) {
        static LAST: AtomicU64 = AtomicU64::new(0);
        self.edition = 1 + LAST.fetch_add(1, Ordering::Relaxed);
    }

    /// Every asset, in order of definition.
    #[must_use]
    pub fn assets(&self) -> &[Asset] {
        &self.assets
    }

    /// The asset.
    #[must_use]
    pub fn asset(&self, asset: AssetId) -> Option<&Asset> {
        self.assets.get(asset.0 as usize)
    }

    /// Every symbol, in order of definition.
    #[must_use]
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// The symbol.
    #[must_use]
    pub fn symbol(&self, symbol: SymbolId) -> Option<&Symbol> {
        self.symbols.get(symbol.0 as usize)
    }

    /// The symbol with this name; names are case-sensitive.
    #[must_use]
    pub fn symbol_named(&self, name: &str) -> Option<&Symbol> {
        let id = self.symbols_by_name.get(&SymbolName::new(name)?)?;
        self.symbol(*id)
    }

    /// The symbols with these names, in order of definition. `None` if one does not exist.
    #[must_use]
    pub fn symbols_named(&self, names: &[&str]) -> Option<Vec<&Symbol>> {
        found(names, |name| self.symbol_named(name))
    }

    /// What it takes to read an order on the symbol with this name.
    #[must_use]
    pub fn facts(&self, name: &str) -> Option<SymbolFacts> {
        let symbol = self.symbol_named(name)?;
        Some(SymbolFacts {
            id: symbol.id,
            name: symbol.name,
            base: *self.asset(symbol.base)?,
            quote: *self.asset(symbol.quote)?,
            order_types: symbol.order_types,
            flags: symbol.flags,
        })
    }

    pub(super) fn symbol_mut(&mut self, symbol: SymbolId) -> Result<&mut Symbol, FoldError> {
        self.symbols.get_mut(symbol.0 as usize).ok_or(FoldError::UnknownSymbol(symbol))
    }

    pub(super) fn define_asset(&mut self, made: &DefineAsset, id: u64) -> Result<(), FoldError> {
        next("asset", id, self.assets.len())?;
        if !self.asset_names.insert(made.name) {
            let name = made.name.as_str().to_owned();
            return Err(FoldError::Duplicate { what: "asset", name });
        }
        if made.precision > 8 {
            return Err(FoldError::Number { field: "asset precision", value: made.precision });
        }
        self.assets.push(Asset { name: made.name, precision: made.precision });
        self.changes();
        Ok(())
    }

    pub(super) fn define_symbol(&mut self, made: &DefineSymbol, id: u64) -> Result<(), FoldError> {
        next("symbol", id, self.symbols.len())?;
        for asset in [made.base, made.quote] {
            self.asset(asset).ok_or(FoldError::UnknownAsset(asset))?;
        }
        let symbol = SymbolId(self.symbols.len() as u32);
        if self.symbols_by_name.insert(made.name, symbol).is_some() {
            let name = made.name.as_str().to_owned();
            return Err(FoldError::Duplicate { what: "symbol", name });
        }
        self.symbols.push(Symbol {
            id: symbol,
            name: made.name,
            base: made.base,
            quote: made.quote,
            status: number("symbol status", made.status, SymbolStatus::from_wire)?,
            order_types: made.order_types,
            flags: made.flags,
            permissions: made.permissions,
            filters: made.filters,
            book: Book::default(),
        });
        self.changes();
        Ok(())
    }

    pub(super) fn set_status(
        &mut self,
        symbol: SymbolId,
        status: SymbolStatus,
    ) -> Result<(), FoldError> {
        self.symbol_mut(symbol)?.status = status;
        self.changes();
        Ok(())
    }

    pub(super) fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
        self.changes();
    }

    pub(super) fn change_symbol(&mut self, changed: &ChangeSymbol) -> Result<(), FoldError> {
        let symbol = self.symbol_mut(changed.symbol)?;
        symbol.order_types = changed.order_types;
        symbol.flags = changed.flags;
        symbol.permissions = changed.permissions;
        symbol.filters = changed.filters;
        self.changes();
        Ok(())
    }

    pub(super) fn set_filters(&mut self, set: &SetVenueFilters) {
        self.max_orders = set.max_orders;
        self.max_algo_orders = set.max_algo_orders;
        self.changes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_found_by_one_look_for_each_name_and_come_in_order_of_definition() {
        let symbol = |id| Symbol {
            id: SymbolId(id),
            name: SymbolName::new(&format!("S{id}")).unwrap(),
            base: AssetId(0),
            quote: AssetId(1),
            status: SymbolStatus::Trading,
            order_types: 0,
            flags: 0,
            permissions: 0,
            filters: SymbolFilters::default(),
            book: Book::default(),
        };
        let symbols: Vec<_> = (0..1000).map(symbol).collect();
        let names: Vec<_> = (0..1000).rev().map(|id| format!("S{id}")).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let mut looks = 0;
        let of_name = |name: &str| name[1..].parse().ok().and_then(|id: usize| symbols.get(id));
        let found = found(&names, |name| {
            looks += 1;
            of_name(name)
        });
        assert_eq!(looks, 1000);
        assert!(found.unwrap().into_iter().eq(&symbols));
        assert_eq!(super::found(&["S5", "S1000"], of_name), None);
    }
}
