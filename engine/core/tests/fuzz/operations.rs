//! Commands of operators and of the engine out of an input's bytes: money, accounts, sessions, and the
//! venue's definition.

use super::messages::Writer;
use super::subject::words;
use super::world::WHOLE;
use touchline_protocol::message::command::*;
use touchline_protocol::units::*;

impl Writer<'_, '_> {
    /// What the operator does every day.
    pub(super) fn operation(&mut self) -> Vec<u64> {
        let command = self.operator();
        let (account, asset) = (self.account(), self.asset());
        match self.source.below(10) {
            0 | 1 => {
                let amount = self.quantity();
                words(&Deposit { command, account, asset, amount, ..Default::default() })
            }
            2 => {
                let amount = self.quantity();
                words(&Withdraw { command, account, asset, amount, ..Default::default() })
            }
            3 | 4 => {
                let (symbol, status) = (self.symbol(), self.source.pick(&[2, 2, 2, 2, 2, 5, 1, 8]));
                words(&SetSymbolStatus { command, symbol, status, ..Default::default() })
            }
            5 | 6 => {
                let killed = self.source.pick(&[0, 0, 0, 0, 0, 0, 1, 2]);
                words(&KillAccount { command, account, killed, ..Default::default() })
            }
            7 => words(&SetAccount {
                command,
                account,
                flags: self.source.pick(&[7, 7, 7, 7, 1, 1, 0, 8]),
                permissions: self.source.pick(&[1, 1, 1, 15, 15, 15, 2, 16]),
                self_trade_prevention: self.number(4) as u8,
                ..Default::default()
            }),
            8 => self.fees(command, account),
            _ => {
                let (max_orders, max_algo_orders) = (self.number(20), self.number(9));
                words(&SetVenueFilters {
                    command,
                    max_orders,
                    max_algo_orders,
                    ..Default::default()
                })
            }
        }
    }

    fn fees(&mut self, command: CommandHeader, account: AccountId) -> Vec<u64> {
        let mut rate = || match self.source.below(8) {
            0 => self.source.edge(),
            1 => -1,
            small => small as i64 * WHOLE / 1000,
        };
        let [maker_rate, taker_rate, buyer_rate, seller_rate] = [(); 4].map(|()| rate());
        words(&SetFees {
            command,
            account: if self.source.once_in(3) { AccountId(EVERY) } else { account },
            symbol: if self.source.once_in(3) { SymbolId(EVERY) } else { self.symbol() },
            maker_rate,
            taker_rate,
            buyer_rate,
            seller_rate,
            ..Default::default()
        })
    }

    pub(super) fn of_sessions(&mut self) -> Vec<u64> {
        let sessions = self.core.counts().sessions;
        let ended_session = SessionId(self.number(sessions));
        let epoch = self.core.session(ended_session).map_or(Epoch(1), |session| session.epoch);
        match self.source.below(5) {
            0 => words(&EngineStarted { incarnation: self.number(9), ..Default::default() }),
            1 | 2 => {
                let ended_epoch =
                    if self.source.once_in(4) { Epoch(self.number(3)) } else { epoch };
                words(&ConnectionEnded { ended_session, ended_epoch, ..Default::default() })
            }
            _ => {
                let role = self.source.pick(&[1, 1, 1, 2, 3, 4, 5]);
                let key_id = if role < 3 { self.key() } else { KeyId(0) };
                words(&Logon {
                    command: CommandHeader { key_id, ..Default::default() },
                    name: self.name(),
                    role,
                    lane: self.source.pick(&[1, 1, 1, 2, 3]),
                    flags: self.source.pick(&[0, 1, 1, 2]),
                    ..Default::default()
                })
            }
        }
    }

    pub(super) fn definition(&mut self) -> Vec<u64> {
        let command = self.operator();
        match self.source.below(9) {
            0 => words(&SetRules { command, rules: self.number(8), ..Default::default() }),
            1 | 2 => words(&SetLimits { command, limits: self.limits(), ..Default::default() }),
            3 => {
                let (name, precision) = (self.name(), self.number(9) as u8);
                words(&DefineAsset { command, name, precision, ..Default::default() })
            }
            4 => words(&self.define_symbol(command)),
            5 => words(&CreateAccount {
                command,
                name: self.name(),
                maker_rate: self.source.number(9),
                taker_rate: self.source.number(9),
                flags: self.number(8) as u8,
                permissions: self.number(16) as u8,
                ..Default::default()
            }),
            6 => {
                let (account, permissions) = (self.account(), self.source.pick(&[31, 17, 1, 32]));
                words(&CreateKey { command, account, permissions, ..Default::default() })
            }
            7 => {
                let key = if self.source.once_in(8) { self.key() } else { KeyId(4) };
                words(&RevokeKey { command, key, ..Default::default() })
            }
            _ => words(&self.change_symbol(command)),
        }
    }

    /// The present ones with one or two changed: to nothing, to what is in use, to what is too much.
    fn limits(&mut self) -> Limits {
        let counts = self.core.counts();
        let used = [
            counts.assets,
            counts.symbols,
            counts.accounts,
            counts.keys,
            counts.sessions,
            counts.open_orders,
            counts.price_levels,
            counts.pending_work,
        ];
        let mut limits: [u32; 14] = bytemuck::cast(*self.core.limits());
        for _ in 0..self.source.pick(&[1, 1, 2]) {
            let at = self.source.below(limits.len());
            let used = used.get(at).copied().unwrap_or(1);
            limits[at] = self.source.pick(&[used, used + 1, used + 9, 40, 0, 1, u32::MAX]);
        }
        bytemuck::cast(limits)
    }

    fn filters(&mut self, mut filters: SymbolFilters) -> SymbolFilters {
        let value = match self.source.below(4) {
            0 => self.source.edge(),
            _ => self.quantity(),
        };
        match self.source.below(16) {
            0 => filters.price_min = value,
            1 => filters.price_max = value,
            2 => filters.tick_size = value,
            3 => filters.lot_min = value,
            4 => filters.lot_max = value,
            5 => filters.lot_step = value,
            6 => filters.market_lot_min = value,
            7 => filters.market_lot_max = value,
            8 => filters.market_lot_step = value,
            9 => filters.percent_price_up = value,
            10 => filters.percent_price_minutes = value as u32,
            11 => filters.min_notional = value,
            12 => filters.max_position = value,
            13 => filters.max_orders = self.number(9),
            14 => filters.iceberg_parts = self.number(9),
            _ => filters.min_notional_applies_to_market = self.number(3) as u8,
        }
        filters
    }

    fn define_symbol(&mut self, command: CommandHeader) -> DefineSymbol {
        DefineSymbol {
            command,
            name: self.name(),
            base: self.asset(),
            quote: self.asset(),
            status: self.source.pick(&[2, 2, 1, 8]),
            order_types: self.source.pick(&[6, 0xfe, 2, 1]),
            flags: self.source.pick(&[0, 7, 8]),
            permissions: self.source.pick(&[1, 15, 16]),
            filters: self.filters(SymbolFilters::default()),
            ..Default::default()
        }
    }

    fn change_symbol(&mut self, command: CommandHeader) -> ChangeSymbol {
        let symbol = self.symbol();
        let filters = self.core.symbol(symbol).map(|symbol| symbol.filters).unwrap_or_default();
        ChangeSymbol {
            command,
            symbol,
            order_types: self.source.pick(&[0xfe, 0xfe, 0xfe, 0xfe, 6, 1]),
            flags: self.source.pick(&[7, 7, 7, 0, 8]),
            permissions: self.source.pick(&[1, 1, 1, 15, 16]),
            filters: if self.source.once_in(3) { filters } else { self.filters(filters) },
            ..Default::default()
        }
    }
}
