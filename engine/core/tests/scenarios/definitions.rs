//! The lines that define a venue: symbols with their filters, the exchange's filters, accounts with
//! money and rates.

use super::stage::{Outcome, Stage};
use super::words::Words;
use crate::venue::{Owned, Venue};
use touchline_core::{ORDER_TYPES, ORDER_TYPES_2};
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::*;
use touchline_protocol::text::{AssetName, Name, SymbolName};
use touchline_protocol::units::*;

impl Stage {
    fn asset(&mut self, name: &str) -> Result<AssetId, String> {
        if let Some(&id) = self.assets.get(name) {
            return Ok(id);
        }
        AssetName::new(name).ok_or_else(|| format!("{name:?} is no asset's name"))?;
        let id = self.venue.asset(name);
        self.assets.insert(name.to_owned(), id);
        Ok(id)
    }

    pub(crate) fn define_symbol(&mut self, words: &mut Words<'_>) -> Outcome {
        let pair = words.next("BASE/QUOTE")?;
        let (base, quote) =
            pair.split_once('/').ok_or_else(|| format!("{pair:?} is not BASE/QUOTE"))?;
        let name = format!("{base}{quote}");
        let (order_types, flags) = match self.rules {
            0 | 1 => (ORDER_TYPES, 0),
            _ => (ORDER_TYPES_2, SYMBOL_ICEBERG | SYMBOL_QUOTE_QUANTITY),
        };
        let mut definition = DefineSymbol {
            name: SymbolName::new(&name).ok_or_else(|| format!("{name:?} is too long"))?,
            base: self.asset(base)?,
            quote: self.asset(quote)?,
            status: SymbolStatus::Trading.to_wire(),
            order_types,
            flags,
            permissions: PERMISSION_SPOT,
            ..Default::default()
        };
        let mut change =
            ChangeSymbol { order_types, flags, permissions: PERMISSION_SPOT, ..Default::default() };
        while !words.is_empty() {
            if words.take("status") {
                definition.status = words.value("status", SymbolStatus::ALL)?.to_wire();
            } else {
                symbol_option(words, &mut change)?;
            }
        }
        definition.order_types = change.order_types;
        definition.flags = change.flags;
        definition.permissions = change.permissions;
        definition.filters = change.filters;
        let made = self.send(&definition);
        if made.is_ok() {
            let id = SymbolId(self.names.symbols.len() as u32);
            self.names.symbols.insert(id, name);
        }
        Ok(made)
    }

    /// Changes what the line names; the rest stays as it is.
    pub(crate) fn change_symbol(&mut self, words: &mut Words<'_>) -> Outcome {
        let symbol = self.symbol(words.next("symbol")?)?;
        let now = self.venue.core.symbol(symbol).ok_or("no such symbol")?;
        let mut change = ChangeSymbol {
            symbol,
            order_types: now.order_types,
            flags: now.flags,
            permissions: now.permissions,
            filters: now.filters,
            ..Default::default()
        };
        while !words.is_empty() {
            symbol_option(words, &mut change)?;
        }
        Ok(self.send(&change))
    }

    pub(crate) fn exchange(&mut self, words: &mut Words<'_>) -> Outcome {
        let mut filters = SetVenueFilters::default();
        while !words.is_empty() {
            let field = match words.next("filter")? {
                "EXCHANGE_MAX_NUM_ORDERS" => &mut filters.max_orders,
                "EXCHANGE_MAX_NUM_ALGO_ORDERS" => &mut filters.max_algo_orders,
                other => return Err(format!("{other:?} is no filter of the exchange")),
            };
            *field = words.whole("filter")?;
        }
        Ok(self.send(&filters))
    }

    /// An account with a key, money and rates.
    pub(crate) fn create_account(&mut self, words: &mut Words<'_>) -> Outcome {
        let name = words.next("name")?.to_owned();
        let mut account = CreateAccount {
            name: Name::new(&name).ok_or_else(|| format!("{name:?} is too long"))?,
            permissions: PERMISSION_SPOT,
            flags: ACCOUNT_CAN_TRADE | ACCOUNT_CAN_WITHDRAW | ACCOUNT_CAN_DEPOSIT,
            ..Default::default()
        };
        let mut money = Vec::new();
        while !words.is_empty() {
            match words.next("option")? {
                "has" => {
                    let amount = words.decimal("amount")?;
                    money.push((amount, words.next("asset")?.to_owned()));
                }
                "maker-rate" => account.maker_rate = words.decimal("rate")?,
                "taker-rate" => account.taker_rate = words.decimal("rate")?,
                "may" => account.flags = account_flags(words)?,
                "in" => account.permissions = permissions(words)?,
                other => return Err(format!("{other:?} is nothing an account has")),
            }
        }
        let made = self.send(&account);
        if made.is_err() {
            return Ok(made);
        }
        let id = self.venue.core.find_account(&account.name).ok_or("account not made")?;
        let key = make_key(&mut self.venue, id);
        self.keys.insert(name.clone(), key);
        self.names.accounts.insert(id, name);
        for (amount, asset) in money {
            let asset = self.asset(&asset)?;
            self.venue.must(&Deposit { account: id, asset, amount, ..Default::default() });
        }
        Ok(made)
    }
}

pub(crate) fn make_key(venue: &mut Venue, account: AccountId) -> KeyId {
    let made = venue.must(&CreateKey { account, permissions: KEY_ALL, ..Default::default() });
    let Some(Owned::Done(done)) = made.last() else { panic!("{made:?}") };
    KeyId(done.id)
}

fn symbol_option(words: &mut Words<'_>, change: &mut ChangeSymbol) -> Result<(), String> {
    let filters = &mut change.filters;
    match words.next("option")? {
        "PRICE_FILTER" => {
            filters.price_min = words.decimal("minPrice")?;
            filters.price_max = words.decimal("maxPrice")?;
            filters.tick_size = words.decimal("tickSize")?;
        }
        "LOT_SIZE" => {
            filters.lot_min = words.decimal("minQty")?;
            filters.lot_max = words.decimal("maxQty")?;
            filters.lot_step = words.decimal("stepSize")?;
        }
        "MARKET_LOT_SIZE" => {
            filters.market_lot_min = words.decimal("minQty")?;
            filters.market_lot_max = words.decimal("maxQty")?;
            filters.market_lot_step = words.decimal("stepSize")?;
        }
        "PERCENT_PRICE" => {
            filters.percent_price_up = words.decimal("multiplierUp")?;
            filters.percent_price_down = words.decimal("multiplierDown")?;
            filters.percent_price_minutes = words.whole("avgPriceMins")?;
        }
        "MIN_NOTIONAL" => {
            filters.min_notional = words.decimal("minNotional")?;
            filters.min_notional_applies_to_market = u8::from(words.take("market"));
            filters.min_notional_minutes = words.whole("avgPriceMins")?;
        }
        "MAX_POSITION" => filters.max_position = words.decimal("maxPosition")?,
        "ICEBERG_PARTS" => filters.iceberg_parts = words.whole("limit")?,
        "MAX_NUM_ORDERS" => filters.max_orders = words.whole("limit")?,
        "MAX_NUM_ALGO_ORDERS" => filters.max_algo_orders = words.whole("limit")?,
        "MAX_NUM_ICEBERG_ORDERS" => filters.max_iceberg_orders = words.whole("limit")?,
        "in" => change.permissions = permissions(words)?,
        "types" => {
            change.order_types = 0;
            for name in words.next("order types")?.split(',') {
                let order_type = Words::new(name).value("order type", OrderType::ALL)?;
                change.order_types |= 1 << order_type.to_wire();
            }
        }
        "with" => change.flags |= symbol_flag(words)?,
        "without" => change.flags &= !symbol_flag(words)?,
        other => return Err(format!("{other:?} is nothing a symbol has")),
    }
    Ok(())
}

fn symbol_flag(words: &mut Words<'_>) -> Result<u8, String> {
    match words.next("what the symbol takes")? {
        "iceberg" => Ok(SYMBOL_ICEBERG),
        "oco" => Ok(SYMBOL_OCO),
        "quote-quantity" => Ok(SYMBOL_QUOTE_QUANTITY),
        other => Err(format!("{other:?} is nothing a symbol takes or not")),
    }
}

pub(crate) fn account_flags(words: &mut Words<'_>) -> Result<u8, String> {
    let mut flags = 0;
    for word in words.next("what it may")?.split(',') {
        flags |= match word {
            "trade" => ACCOUNT_CAN_TRADE,
            "withdraw" => ACCOUNT_CAN_WITHDRAW,
            "deposit" => ACCOUNT_CAN_DEPOSIT,
            "nothing" => 0,
            other => return Err(format!("{other:?} is nothing an account may")),
        };
    }
    Ok(flags)
}

pub(crate) fn permissions(words: &mut Words<'_>) -> Result<u8, String> {
    let mut permissions = 0;
    for word in words.next("permissions")?.split(',') {
        permissions |= match word {
            "SPOT" => PERMISSION_SPOT,
            "MARGIN" => PERMISSION_MARGIN,
            "LEVERAGED" => PERMISSION_LEVERAGED,
            "TRD_GRP_002" => PERMISSION_TRADE_GROUP_2,
            other => return Err(format!("{other:?} is no permission")),
        };
    }
    Ok(permissions)
}
