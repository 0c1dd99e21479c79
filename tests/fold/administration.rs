//! Random commands that define and administer the venue, and the comings and goings of sessions. Called
//! by [`super::commands`].

use super::commands::{LOT, Run, TICK, WHOLE, limits, symbol};
use super::compare::{RECORD_KEYS, RECORDS};
use touchline_core::ORDER_TYPES_2;
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{Lane, Role, SymbolStatus};
use touchline_protocol::message::with_bytes::RecordWrite;
use touchline_protocol::text::AssetName;
use touchline_protocol::units::{AccountId, AssetId, Epoch, KeyId};

impl Run {
    pub(super) fn admin(&mut self, step: u32) {
        let command = self.cold();
        match self.random.below(14) {
            0 => {
                // Halts are short, so that there is something to halt.
                let symbol = self.symbol();
                let status = self.pick(SymbolStatus::ALL);
                for status in [status, SymbolStatus::Trading] {
                    let status = status.to_wire();
                    let set = SetSymbolStatus { symbol, status, ..Default::default() };
                    self.venue.must(&set);
                    self.change_orders();
                    self.cancel();
                }
            }
            1 | 2 => {
                let (account, asset) = (self.account_id(), AssetId(self.random.below(3) as u32));
                let amount = self.quantity(500);
                let _accepted =
                    self.send(&Deposit { command, account, asset, amount, ..Default::default() });
            }
            3 | 4 => {
                let (account, asset) = (self.account_id(), AssetId(self.random.below(3) as u32));
                let amount = self.quantity(500);
                let _accepted =
                    self.send(&Withdraw { command, account, asset, amount, ..Default::default() });
            }
            5 => {
                let set = SetAccount {
                    command,
                    account: self.account_id(),
                    flags: self.pick(&[1, 3, 5, 7]),
                    permissions: PERMISSION_SPOT,
                    self_trade_prevention: self.pick(&[0, 1, 2, 3, 4]),
                    ..Default::default()
                };
                let _accepted = self.send(&set);
            }
            6 => self.set_fees(command),
            7 => self.change_symbol(command),
            8 => self.change_grid(),
            9 => {
                let set = SetVenueFilters {
                    command,
                    max_orders: self.pick(&[0, 10, 30]),
                    max_algo_orders: self.pick(&[0, 5, 20]),
                    ..Default::default()
                };
                let _accepted = self.send(&set);
            }
            10 => {
                let mut changed = limits();
                changed.max_steps = self.pick(&[2, 3, 5, 50]);
                changed.interval_0_seconds = self.pick(&[limits().interval_0_seconds, 3]);
                changed.interval_1_seconds = self.pick(&[limits().interval_1_seconds, 7]);
                changed.open_orders += self.random.below(20) as u32;
                let _accepted =
                    self.send(&SetLimits { command, limits: changed, ..Default::default() });
            }
            11 | 12 => self.records(command),
            _ => self.grow(step),
        }
    }

    /// What the jobs service does, and more: records of any owner, with unique keys that may be taken.
    fn records(&mut self, command: CommandHeader) {
        let id = [self.random.below(RECORDS) as u8 + 1; 12];
        let present = self.venue.core.record(&id);
        let version = present.map_or(0, |record| record.version);
        // Now and then one that cannot be: of another kind or owner.
        let other_kind = self.random.below(8) == 0;
        let kind = present.map_or(1, |record| record.kind) + u32::from(other_kind);
        let is_owned = self.random.below(3) == 0;
        let any_owner = if is_owned { [self.random.below(RECORDS) as u8 + 1; 12] } else { [0; 12] };
        let owner = present.map_or(any_owner, |record| record.owner);
        let _accepted = match self.random.below(8) {
            0 => {
                let (records, blocks) = (RECORDS as u32 - 1, 4 * RECORDS as u32);
                self.send(&SetRecordLimits { command, records, blocks, ..Default::default() })
            }
            1..4 => {
                self.send(&DeleteRecord { command, kind, version, id, owner, ..Default::default() })
            }
            _ => {
                let unique_key = [self.random.below(RECORD_KEYS + 1) as u8; 32];
                let content = [b'x'; 100];
                let content = &content[..self.random.below(101) as usize];
                let put = PutRecord {
                    command,
                    kind,
                    version,
                    id,
                    owner,
                    unique_key,
                    ..Default::default()
                };
                let write = RecordWrite::new(put, content).expect("it is short");
                self.venue.apply_bytes(write.as_bytes()).is_ok()
            }
        };
    }

    fn set_fees(&mut self, command: CommandHeader) {
        let rates = [0, 100_000, 150_001, 300_000];
        let mut fees = SetFees {
            command,
            account: self.account_id(),
            symbol: self.symbol_or_every(),
            maker_rate: self.pick(&rates),
            taker_rate: self.pick(&rates),
            buyer_rate: self.pick(&rates),
            seller_rate: self.pick(&rates),
            ..Default::default()
        };
        if fees.symbol.0 != EVERY {
            if self.one_in(2) {
                fees.account = AccountId(EVERY);
            }
            if self.one_in(3) {
                fees = SetFees {
                    maker_rate: -1,
                    taker_rate: -1,
                    buyer_rate: -1,
                    seller_rate: -1,
                    ..fees
                };
            }
        }
        let _accepted = self.send(&fees);
    }

    fn change_symbol(&mut self, command: CommandHeader) {
        let symbol = self.symbol();
        let found = self.venue.state.venue.symbol(symbol).expect("it is defined").clone();
        let mut filters = found.filters;
        filters.max_orders = self.pick(&[0, 8, 20]);
        filters.max_position = self.pick(&[0, 1500 * WHOLE]);
        filters.iceberg_parts = self.pick(&[0, 5, 10]);
        let changed = ChangeSymbol {
            command,
            symbol,
            order_types: ORDER_TYPES_2,
            flags: self.pick(&[found.flags, SYMBOL_ICEBERG | SYMBOL_OCO | SYMBOL_QUOTE_QUANTITY]),
            permissions: found.permissions,
            filters,
            ..Default::default()
        };
        let _accepted = self.send(&changed);
    }

    /// Ticks and steps of a symbol change only while it is halted and nothing is open on it: to finer ones,
    /// or back.
    fn change_grid(&mut self) {
        let symbol = self.symbol();
        let found = self.venue.state.venue.symbol(symbol).expect("it is defined").clone();
        let mut filters = found.filters;
        filters.tick_size = self.pick(&[TICK, TICK / 2, TICK / 4]);
        filters.lot_step = self.pick(&[LOT, LOT / 127]);
        let changed = ChangeSymbol {
            symbol,
            order_types: found.order_types,
            flags: found.flags,
            permissions: found.permissions,
            filters,
            ..Default::default()
        };
        let mut set = SetSymbolStatus { symbol, ..Default::default() };
        set.status = SymbolStatus::Halt.to_wire();
        self.venue.must(&set);
        if self.send(&ExpireAll { symbol, ..Default::default() }) {
            while self.venue.core.pending_head().is_some() {
                self.venue.must(&RunPending::default());
            }
            self.venue.must(&changed);
        }
        set.status = SymbolStatus::Trading.to_wire();
        self.venue.must(&set);
    }

    /// One more account, asset, symbol or key, as far as the limits allow.
    fn grow(&mut self, step: u32) {
        let counts = self.venue.core.counts();
        match step % 4 {
            0 if counts.accounts < limits().accounts => self.account(AccountId(counts.accounts)),
            1 if counts.assets < limits().assets => {
                let name = AssetName::new("DOGE").expect("a short name");
                self.venue.must(&DefineAsset { name, precision: 2, ..Default::default() });
            }
            2 if counts.symbols < limits().symbols => {
                let name = format!("ETHUSDT{}", counts.symbols);
                let flags = SYMBOL_ICEBERG | SYMBOL_QUOTE_QUANTITY;
                self.venue.must(&symbol(&name, (1, 2), ORDER_TYPES_2, flags));
            }
            _ => {
                let account = self.account_id();
                self.key(account);
            }
        }
    }

    pub(super) fn sessions(&mut self) {
        match self.random.below(12) {
            0..6 => {
                let (key, _) = self.pick(&self.parties.keys.clone());
                if self.parties.traders.len() < 12 {
                    let session = self.log_on("trader", Role::Trader, Lane::Hot, key);
                    self.parties.traders.retain(|(other, _)| *other != session);
                    self.parties.traders.push((session, key));
                }
            }
            6..10 => {
                let Some(&(ended_session, _)) = self.parties.traders.first() else { return };
                let ended_epoch = self.venue.core.session(ended_session).map(|one| one.epoch);
                let ended_epoch = ended_epoch.unwrap_or(Epoch(0));
                let ended = ConnectionEnded { ended_session, ended_epoch, ..Default::default() };
                if self.send(&ended) {
                    self.parties.traders.remove(0);
                }
            }
            10 => {
                // Of every size: the long ones are cut to the transaction before.
                let off_ms = u32::try_from(self.random.below(1 << 32)).unwrap_or(u32::MAX);
                let off_ms = off_ms >> self.random.below(32);
                let started = EngineStarted { incarnation: 1, off_ms, ..Default::default() };
                self.venue.must(&started);
                let admin = self.log_on("admin", Role::Admin, Lane::Cold, KeyId(0));
                assert_eq!(admin, self.parties.admin);
                self.log_on("adapter", Role::Adapter, Lane::Hot, KeyId(0));
            }
            _ => self.revoke(),
        }
    }

    /// Revokes a key of an account that has another one.
    fn revoke(&mut self) {
        let (key, account) = self.pick(&self.parties.keys.clone());
        if self.parties.keys.iter().filter(|other| other.1 == account).count() < 2 {
            return self.key(account);
        }
        let command = self.cold();
        if self.send(&RevokeKey { command, key, ..Default::default() }) {
            self.parties.keys.retain(|(other, _)| *other != key);
            self.parties.traders.retain(|(_, other)| *other != key);
        }
    }
}
