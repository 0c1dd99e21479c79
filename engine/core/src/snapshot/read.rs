//! Reading what a venue is defined as: limits, assets, symbols, accounts, keys, sessions.

use super::SnapshotError;
use super::stream::Reader;
use crate::accounts::{Account, OrderWindow};
use crate::apply::{ACCOUNT_FLAGS, PERMISSIONS};
use crate::bounds::Bounds;
use crate::fees::FeeRates;
use crate::keys::Key;
use crate::limits::{self, SESSIONS_PER_KEY_MAX};
use crate::money::AMOUNT_MAX;
use crate::pool::NONE;
use crate::rights::Rights;
use crate::sessions::Session;
use crate::symbols::{Symbol, SymbolCounters};
use crate::{Core, RULES_MAX, filters};
use alloc::vec::Vec;
use touchline_protocol::message::command::{KEY_ALL, Limits};
use touchline_protocol::message::enums::{Lane, Role, SelfTradePrevention, SymbolStatus};
use touchline_protocol::snapshot::records::{
    self, AccountRecord, AssetRecord, AverageRecord, KeyRecord, PairFeesRecord, SessionRecord,
    SymbolRecord, VenueRecord,
};
use touchline_protocol::units::{
    AccountId, AggregateTradeId, BookUpdateId, KeyId, OrderId, Position, Price, TradeId,
};

/// A venue that is being read.
pub(super) struct Reading<'source, E> {
    pub(super) core: Core,
    pub(super) reader: Reader<'source, E>,
    /// The places that were read, by their numbers.
    pub(super) places: Vec<ReadPlace>,
    /// Open orders that say that their list is open.
    pub(super) paired: u64,
    /// False where no orders are read, which then need no room.
    pub(super) has_orders: bool,
}

type Outcome<E> = Result<(), SnapshotError<E>>;

impl<'source, E> Reading<'source, E> {
    /// Nothing is read yet; see [`Core::read_snapshot`].
    pub(super) fn new(
        read: &'source mut dyn FnMut(&mut [u8]) -> Result<(), E>,
        table_seed: u64,
    ) -> Self {
        Self {
            core: Core::with_table_seed(table_seed),
            reader: Reader::new(read),
            places: Vec::new(),
            paired: 0,
            has_orders: true,
        }
    }

    /// Everything but orders, pending work and balances.
    pub(super) fn definitions(&mut self) -> Outcome<E> {
        self.venue()?;
        self.assets()?;
        self.symbols()?;
        self.averages()?;
        self.accounts()?;
        self.pair_fees()?;
        self.keys()?;
        self.sessions()
    }

    fn venue(&mut self) -> Outcome<E> {
        let count = self.reader.begin(records::VENUE, 1)?;
        let record: VenueRecord = self.reader.take()?;
        let VenueRecord { rules, reserved, limits, next_order_list_id, .. } = record;
        // The hash first: what comes now takes memory.
        self.reader.end()?;
        self.reader.require(count == 1, "no venue")?;
        if rules > RULES_MAX {
            return Err(SnapshotError::Rules { found: rules });
        }
        let is_number = (0..i64::MAX).contains(&next_order_list_id.0);
        self.reader.require(reserved == 0 && is_number, "a field out of range")?;
        let core = &mut self.core;
        core.rules = rules;
        core.max_orders = record.max_orders;
        core.max_algo_orders = record.max_algo_orders;
        core.last_time_ns = record.last_time_ns;
        core.engine_sequence = record.engine_sequence;
        core.orders.lists.set_next_id(next_order_list_id);
        // An empty venue has no limits yet.
        if limits != Limits::default() {
            let is_known = limits::first_out_of_range(&limits, &Limits::default()).is_none();
            self.reader.require(is_known, "limits out of range")?;
            let room = match self.has_orders {
                true => limits,
                false => Limits { open_orders: 0, price_levels: 0, pending_work: 0, ..limits },
            };
            core.try_grow(&room).map_err(|_| SnapshotError::Memory)?;
            core.limits = limits;
        }
        Ok(())
    }

    fn assets(&mut self) -> Outcome<E> {
        let Self { core, reader, .. } = self;
        for _ in 0..reader.begin(records::ASSETS, core.limits.assets.into())? {
            let AssetRecord { name, held, precision, reserved } = reader.take()?;
            let is_sound = name.is_valid()
                && !name.is_empty()
                && (0..=AMOUNT_MAX).contains(&held)
                && reserved == [0; 7];
            reader.require(is_sound, "a field out of range")?;
            reader.require(core.assets.find(&name).is_none(), "a name that another asset has")?;
            let id = core.assets.add(name, precision);
            core.assets.list[id.0 as usize].held = held;
            reader.step();
        }
        reader.end()
    }

    fn symbols(&mut self) -> Outcome<E> {
        for _ in 0..self.reader.begin(records::SYMBOLS, self.core.limits.symbols.into())? {
            let record: SymbolRecord = self.reader.take()?;
            let status = self.check_symbol(&record)?;
            let rates = FeeRates {
                maker: record.maker_rate,
                taker: record.taker_rate,
                buyer: record.buyer_rate,
                seller: record.seller_rate,
            };
            let has_rates = record.state & records::SYMBOL_HAS_RATES != 0;
            let rates_are_sound =
                rates.first_out_of_range().is_none() && (has_rates || rates == FeeRates::default());
            self.reader.require(rates_are_sound, "rates out of range")?;
            self.core.symbols.add(Symbol {
                base: record.base,
                quote: record.quote,
                counters: SymbolCounters {
                    order: OrderId(record.last_order_id),
                    trade: TradeId(record.last_trade_id),
                    aggregate_trade: AggregateTradeId(record.last_aggregate_trade_id),
                    book_update: BookUpdateId(record.last_book_update_id),
                },
                status,
                order_types: record.order_types,
                flags: record.flags,
                permissions: record.permissions,
                // Pending work sets it.
                has_pending: false,
                name: record.name,
                filters: record.filters,
                rates: has_rates.then_some(rates),
                last_price: Price(record.last_price),
                fired: NONE,
                counted_in: 0,
                bounds: Bounds::of(&record.filters),
            });
            self.reader.step();
        }
        self.reader.end()
    }

    /// Checks a symbol but for its rates; gives its status.
    fn check_symbol(&self, record: &SymbolRecord) -> Result<SymbolStatus, SnapshotError<E>> {
        let (rules, filters) = (self.core.rules, &record.filters);
        // A symbol of rules 1 keeps filters that rules 2 would not take.
        let filters_are_sound = filters::first_bad_field(rules, filters).is_none()
            || filters::first_bad_field(1, filters).is_none();
        // None of them has come so far that it could overflow.
        let counters = [
            record.last_order_id,
            record.last_trade_id,
            record.last_aggregate_trade_id,
            record.last_book_update_id,
        ];
        let is_sound = record.name.is_valid()
            && !record.name.is_empty()
            && counters.iter().all(|&last| last <= i64::MAX.cast_unsigned())
            && record.base != record.quote
            && self.core.assets.get(record.base).is_some()
            && self.core.assets.get(record.quote).is_some()
            && record.order_types & !filters::order_types(rules) == 0
            && record.flags & !filters::symbol_flags(rules) == 0
            && record.permissions & !PERMISSIONS == 0
            && record.state & !records::SYMBOL_HAS_RATES == 0
            && record.last_price >= 0
            && filters_are_sound;
        let status = SymbolStatus::from_wire(record.status).filter(|_| is_sound);
        let status = status.ok_or(self.reader.wrong("a field out of range"))?;
        let is_new = self.core.symbols.find(&record.name).is_none();
        self.reader.require(is_new, "a name that another symbol has")?;
        Ok(status)
    }

    fn averages(&mut self) -> Outcome<E> {
        let Self { core, reader, .. } = self;
        let most = u64::from(core.symbols.len()) * u64::from(crate::AVERAGE_MINUTES_MAX);
        let mut before = None;
        for _ in 0..reader.begin(records::AVERAGES, most)? {
            let record: AverageRecord = reader.take()?;
            let whole = |low: u64, high: u64| u128::from(high) << 64 | u128::from(low);
            let sums = (
                whole(record.notional_low, record.notional_high),
                whole(record.quantity_low, record.quantity_high),
            );
            let place = (record.symbol, record.minute % u64::from(crate::AVERAGE_MINUTES_MAX));
            let is_sound = core.symbols.get(record.symbol).is_some()
                && record.minute > 0
                && record.reserved == 0
                && before.is_none_or(|before| before < place);
            reader.require(is_sound, "a field out of range, or out of its order")?;
            core.symbols.averages.put(record.symbol, record.minute, sums);
            before = Some(place);
            reader.step();
        }
        reader.end()
    }

    fn accounts(&mut self) -> Outcome<E> {
        let Self { core, reader, .. } = self;
        let count = reader.begin(records::ACCOUNTS, core.limits.accounts.max(1).into())?;
        reader.require(count > 0, "the fee account is missing")?;
        for id in 0..count {
            let record: AccountRecord = reader.take()?;
            let account = account(&record).ok_or(reader.wrong("a field out of range"))?;
            if id == 0 {
                // It has been there since before any limits were set.
                let fees = &mut core.accounts.list[0];
                reader.require(fees.name == account.name, "another name than the fee account's")?;
                *fees = account;
            } else {
                let is_new = core.accounts.find(&account.name).is_none();
                reader.require(is_new, "a name that another account has")?;
                core.accounts.add(account);
            }
            reader.step();
        }
        reader.end()
    }

    fn pair_fees(&mut self) -> Outcome<E> {
        let Self { core, reader, .. } = self;
        for _ in 0..reader.begin(records::PAIR_FEES, core.limits.accounts.into())? {
            let record: PairFeesRecord = reader.take()?;
            let rates = FeeRates {
                maker: record.maker_rate,
                taker: record.taker_rate,
                buyer: record.buyer_rate,
                seller: record.seller_rate,
            };
            let is_sound = core.accounts.get(record.account).is_some()
                && core.symbols.get(record.symbol).is_some()
                && rates.first_out_of_range().is_none();
            reader.require(is_sound, "a field out of range")?;
            let is_new = core.accounts.pair_fees.set(record.account, record.symbol, rates);
            reader.require(is_new, "a second one of its account and symbol")?;
            core.accounts.list[record.account.0 as usize].paired_rates += 1;
            reader.step();
        }
        reader.end()
    }

    fn keys(&mut self) -> Outcome<E> {
        let Self { core, reader, .. } = self;
        for _ in 0..reader.begin(records::KEYS, core.limits.keys.into())? {
            let KeyRecord { account, permissions, revoked, reserved } = reader.take()?;
            let is_sound = core.accounts.get(account).is_some()
                && permissions & !KEY_ALL == 0
                && revoked <= 1
                && reserved == [0; 2];
            reader.require(is_sound, "a field out of range")?;
            core.keys.add(Key { revoked: revoked == 1, ..Key::new(account, permissions) });
            reader.step();
        }
        reader.end()
    }

    fn sessions(&mut self) -> Outcome<E> {
        let Self { core, reader, .. } = self;
        for at in 0..reader.begin(records::SESSIONS, core.limits.sessions.into())? {
            let record: SessionRecord = reader.take()?;
            let mut session = session(&record).ok_or(reader.wrong("a field out of range"))?;
            let is_new = core.sessions.find(session.key_id, &session.name).is_none();
            reader.require(is_new, "a name that another session of its key has")?;
            if session.key_id != KeyId(0) {
                let key = usize::try_from(session.key_id.0 - 1).ok();
                let key = key.and_then(|at| core.keys.list.get_mut(at));
                let key = key.filter(|key| key.sessions < SESSIONS_PER_KEY_MAX);
                let key = key.ok_or(reader.wrong("no such key, or one with too many sessions"))?;
                session.previous_of_key = core::mem::replace(&mut key.last_session, at as u32);
                key.sessions += 1;
                if session.account_events {
                    core.accounts.watch(key.account);
                }
            }
            core.sessions.add(session);
            reader.step();
        }
        reader.end()
    }

    /// The places among the orders of each account.
    pub(super) fn places(&mut self) -> Outcome<E> {
        let Self { core, reader, places, .. } = self;
        let limits = &core.limits;
        // Of the urgent sweeps only one has begun.
        let most = u64::from(limits.open_orders) + u64::from(limits.pending_work) + 1;
        let count = reader.begin(records::PLACES, most)?;
        places.try_reserve_exact(count as usize).map_err(|_| SnapshotError::Memory)?;
        let mut before = None;
        for _ in 0..count {
            let records::PlaceRecord { placed, account, reserved } = reader.take()?;
            let is_sound = core.accounts.get(account).is_some()
                && reserved == 0
                && before.is_none_or(|before| before <= (account, placed));
            reader.require(is_sound, "a field out of range, or out of its order")?;
            places.push(ReadPlace { account, placed, of: NONE });
            before = Some((account, placed));
            reader.step();
        }
        reader.end()
    }
}

fn account(record: &AccountRecord) -> Option<Account> {
    let rates = FeeRates {
        maker: record.maker_rate,
        taker: record.taker_rate,
        buyer: record.buyer_rate,
        seller: record.seller_rate,
    };
    let is_sound = record.name.is_valid()
        && !record.name.is_empty()
        && rates.first_out_of_range().is_none()
        && record.flags & !ACCOUNT_FLAGS == 0
        && record.permissions & !PERMISSIONS == 0
        && record.killed <= 1
        && record.reserved == 0;
    let self_trade_prevention = SelfTradePrevention::from_wire(record.self_trade_prevention)?;
    is_sound.then_some(Account {
        rates,
        paired_rates: 0,
        windows: [
            OrderWindow { window: record.window_0, count: record.count_0 },
            OrderWindow { window: record.window_1, count: record.count_1 },
        ],
        name: record.name,
        flags: record.flags,
        permissions: record.permissions,
        self_trade_prevention,
        is_killed: record.killed == 1,
        watchers: 0,
    })
}

fn session(record: &SessionRecord) -> Option<Session> {
    const FLAGS: u8 = records::SESSION_CONNECTED
        | records::SESSION_CANCELS
        | records::SESSION_SWEPT_WITH_KEY
        | records::SESSION_ACCOUNT_EVENTS;
    let (role, lane) = (Role::from_wire(record.role)?, Lane::from_wire(record.lane)?);
    let has_key = role.has_key();
    let has = |flag: u8| record.flags & flag != 0;
    let is_sound = record.name.is_valid()
        && !record.name.is_empty()
        && has_key == (record.key_id != KeyId(0))
        && record.flags & !FLAGS == 0
        && record.reserved == 0
        && (!has(records::SESSION_ACCOUNT_EVENTS) || has_key && has(records::SESSION_CONNECTED));
    is_sound.then_some(Session {
        last_sequence: record.last_sequence,
        key_id: record.key_id,
        epoch: record.epoch,
        role,
        lane,
        rights: Rights::of(role, lane),
        connected: has(records::SESSION_CONNECTED),
        cancel_on_disconnect: has(records::SESSION_CANCELS),
        account_events: has(records::SESSION_ACCOUNT_EVENTS),
        is_swept_with_key: has(records::SESSION_SWEPT_WITH_KEY),
        previous_of_key: NONE,
        name: record.name,
    })
}

impl<E> Reading<'_, E> {
    /// Takes a place of an account, by its number, for good: says what it is in the venue. `None` if it is
    /// nobody's, another's or taken.
    pub(super) fn take_place(&mut self, number: u32, account: AccountId, of: u32) -> Option<()> {
        let place = self.places.get_mut(number as usize)?;
        if place.account != account || place.of != NONE {
            return None;
        }
        place.of = of;
        Some(())
    }

    /// Links all places, which are taken.
    pub(super) fn link_places(&mut self) -> Outcome<E> {
        let taken = self.places.iter().all(|place| place.of != NONE);
        self.reader.require(taken, "a place of nothing")?;
        for &ReadPlace { account, placed, of } in &self.places {
            self.core.orders.link_place(account, of, placed);
        }
        Ok(())
    }
}

/// A place among the orders of an account.
pub(super) struct ReadPlace {
    account: AccountId,
    placed: Position,
    /// What it is in the venue, once that is known, or none.
    of: u32,
}
