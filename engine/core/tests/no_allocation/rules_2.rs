//! What rules version 2 adds: orders of every kind, and every command.

use super::{Dice, Driver, NAMES, SYMBOLS};
use touchline_core::ORDER_TYPES_2;
use touchline_protocol::message::Message;
use touchline_protocol::message::command::*;
use touchline_protocol::message::decode::Command;
use touchline_protocol::message::enums::{CancelScope, Lane, Role};
use touchline_protocol::text::{ClientOrderId, Name};
use touchline_protocol::units::*;

/// Keys that are made on the way, each with a session.
pub(super) const KEYS: u32 = 256;

const MILLION: i64 = 1_000_000;

/// Each of these commands was accepted at least so many times.
const EXPECTED: [(u16, &str, u64); 18] = [
    (ReplaceOrder::TEMPLATE, ReplaceOrder::NAME, 500),
    (CancelReplace::TEMPLATE, CancelReplace::NAME, 300),
    (PlaceOrderList::TEMPLATE, PlaceOrderList::NAME, 1_000),
    (CancelOrderList::TEMPLATE, CancelOrderList::NAME, 100),
    (CancelAll::TEMPLATE, CancelAll::NAME, 100),
    (MassCancel::TEMPLATE, MassCancel::NAME, 100),
    (ExpireAll::TEMPLATE, ExpireAll::NAME, 20),
    (KillAccount::TEMPLATE, KillAccount::NAME, 100),
    (SetAccount::TEMPLATE, SetAccount::NAME, 100),
    (SetFees::TEMPLATE, SetFees::NAME, 100),
    (ChangeSymbol::TEMPLATE, ChangeSymbol::NAME, 100),
    (Logon::TEMPLATE, Logon::NAME, 100),
    (RevokeKey::TEMPLATE, RevokeKey::NAME, 50),
    (SetVenueFilters::TEMPLATE, SetVenueFilters::NAME, 100),
    (SetSymbolStatus::TEMPLATE, SetSymbolStatus::NAME, 100),
    (ConnectionEnded::TEMPLATE, ConnectionEnded::NAME, 10),
    (PutRecord::TEMPLATE, PutRecord::NAME, 10_000),
    (DeleteRecord::TEMPLATE, DeleteRecord::NAME, 1_000),
];

pub(super) fn check_accepted(driver: &Driver) {
    for (template, name, least) in EXPECTED {
        let accepted = driver.accepted_of[usize::from(template)];
        assert!(accepted >= least, "{name} was accepted {accepted} times only");
    }
}

impl Driver {
    /// Makes of some orders what rules version 2 adds.
    pub(super) fn widen(&mut self, message: &mut NewOrder) {
        message.self_trade_prevention = self.prevention();
        match self.dice.roll(10) {
            0 if message.order_type == 2 => {
                (message.quantity, message.quote_quantity) = (0, message.quantity * 10);
            }
            1 if message.order_type == 1 => {
                (message.order_type, message.time_in_force) = (7, 0);
            }
            2..4 if message.time_in_force == 1 => message.iceberg_quantity = message.quantity / 4,
            4 if message.time_in_force != 0 => {
                message.order_type = 4 + 2 * self.dice.roll(2) as u8;
                message.stop_price = (900 + self.dice.roll(200) as i64) * 1_000_000;
            }
            5 if message.time_in_force != 0 => {
                message.order_type = 3 + 2 * self.dice.roll(2) as u8;
                (message.price, message.time_in_force) = (0, 0);
                message.stop_price = (900 + self.dice.roll(200) as i64) * 1_000_000;
            }
            _ => {}
        }
    }

    /// A self-trade prevention, mostly none.
    fn prevention(&mut self) -> u8 {
        self.dice.roll(9).saturating_sub(4) as u8
    }

    /// One command that rules version 2 adds.
    pub(super) fn of_rules_2(&mut self, command: CommandHeader, symbol: SymbolId) {
        match self.dice.roll(1200) {
            0..300 => self.list(command, symbol),
            300..400 => self.cancel_list(command, symbol),
            400..700 => self.replace(command, symbol),
            700..900 => self.cancel_replace(command, symbol),
            roll => self.rarely(roll - 900, command, symbol),
        }
    }

    fn rarely(&mut self, roll: u64, command: CommandHeader, symbol: SymbolId) {
        let every = if roll.is_multiple_of(2) { symbol } else { SymbolId(EVERY) };
        match roll {
            0..4 => {
                let message = CancelAll { command, symbol, ..Default::default() };
                self.send(&Command::CancelAll(&message));
            }
            4..8 => {
                let scope =
                    if roll < 6 { CancelScope::Account } else { CancelScope::Session }.to_wire();
                let message = MassCancel { command, symbol: every, scope, ..Default::default() };
                self.send(&Command::MassCancel(&message));
            }
            8 => {
                let message = ExpireAll { symbol, ..Default::default() };
                self.send(&Command::ExpireAll(&message));
            }
            9 => self.overtake(),
            10..40 => {
                let (account, killed) = (AccountId(command.key_id.0 as u32), 0);
                let message = KillAccount { account, killed, ..Default::default() };
                self.send(&Command::KillAccount(&message));
            }
            40..80 => self.settings(command, every),
            80..84 => self.short_life(),
            _ => {
                let max_orders = 400 + self.dice.roll(200) as u32;
                let message = SetVenueFilters { max_orders, ..Default::default() };
                self.send(&Command::SetVenueFilters(&message));
            }
        }
    }

    /// What is taken while work is pending too.
    pub(super) fn overtake(&mut self) {
        if self.dice.roll(4) == 0 {
            let account = AccountId(1 + self.dice.roll(3) as u32);
            let message = KillAccount { account, killed: 1, ..Default::default() };
            self.send(&Command::KillAccount(&message));
        } else {
            let symbol = SymbolId(self.dice.roll(SYMBOLS) as u32);
            for status in [3, 2] {
                let message = SetSymbolStatus { symbol, status, ..Default::default() };
                self.send(&Command::SetSymbolStatus(&message));
            }
        }
    }

    /// What an operator changes.
    fn settings(&mut self, command: CommandHeader, symbol: SymbolId) {
        let account = AccountId(command.key_id.0 as u32);
        match self.dice.roll(3) {
            0 => {
                let message = SetAccount {
                    account,
                    flags: ACCOUNT_CAN_TRADE | ACCOUNT_CAN_DEPOSIT | ACCOUNT_CAN_WITHDRAW,
                    permissions: PERMISSION_SPOT,
                    self_trade_prevention: self.prevention(),
                    ..Default::default()
                };
                self.send(&Command::SetAccount(&message));
            }
            1 => {
                let rate = self.dice.roll(100_000) as i64 - 5_000;
                let [maker_rate, taker_rate, buyer_rate, seller_rate] =
                    if rate < 0 { [-1; 4] } else { [rate, 2 * rate, rate / 3, 0] };
                let message = SetFees {
                    account,
                    symbol,
                    maker_rate,
                    taker_rate,
                    buyer_rate,
                    seller_rate,
                    ..Default::default()
                };
                self.send(&Command::SetFees(&message));
            }
            _ => {
                let message = ChangeSymbol {
                    symbol,
                    order_types: ORDER_TYPES_2,
                    flags: super::FLAGS_2,
                    permissions: PERMISSION_SPOT,
                    filters: SymbolFilters {
                        max_orders: 300 + self.dice.roll(200) as u32,
                        ..Default::default()
                    },
                    ..Default::default()
                };
                self.send(&Command::ChangeSymbol(&message));
            }
        }
    }

    fn replace(&mut self, command: CommandHeader, symbol: SymbolId) {
        let order_id = self.recent(symbol);
        let open = self.core.open_order(symbol, order_id);
        let key_id = open.map_or(command.key_id, |order| KeyId(order.account.0.into()));
        let same_price = open.filter(|_| self.dice.roll(3) == 0).map(|order| order.price.0);
        let message = ReplaceOrder {
            command: CommandHeader { key_id, ..command },
            symbol,
            order_id,
            new_price: same_price.unwrap_or((900 + self.dice.roll(200) as i64) * MILLION),
            new_quantity: (1 + self.dice.roll(50) as i64) * MILLION,
            ..Default::default()
        };
        self.send(&Command::ReplaceOrder(&message));
    }

    fn cancel_replace(&mut self, command: CommandHeader, symbol: SymbolId) {
        let canceled_order_id = self.recent(symbol);
        let owner = self.core.open_order(symbol, canceled_order_id).map(|order| order.account.0);
        let key_id = owner.map_or(command.key_id, |account| KeyId(account.into()));
        let name = self.dice.roll(NAMES as u64 * 2) as usize;
        let message = CancelReplace {
            command: CommandHeader { key_id, ..command },
            symbol,
            side: 1 + self.dice.roll(2) as u8,
            order_type: 1,
            time_in_force: 1 + self.dice.roll(3) as u8,
            price: (900 + self.dice.roll(200) as i64) * MILLION,
            quantity: (1 + self.dice.roll(50) as i64) * MILLION,
            client_order_id: self.names.get(name).copied().unwrap_or_default(),
            self_trade_prevention: self.prevention(),
            canceled_order_id,
            ..Default::default()
        };
        self.send(&Command::CancelReplace(&message));
    }

    /// A key that is made, logs on twice, places orders that end with its connection, and is revoked.
    fn short_life(&mut self) {
        let account = AccountId(1 + self.dice.roll(3) as u32);
        let made = CreateKey { account, permissions: KEY_ALL, ..Default::default() };
        if !self.send(&Command::CreateKey(&made)) {
            return;
        }
        let key_id = KeyId(self.core.counts().keys.into());
        let name = Name::new("short life").unwrap();
        for _ in 0..2 {
            let message = Logon {
                command: CommandHeader { key_id, ..Default::default() },
                name,
                role: Role::Trader.to_wire(),
                lane: Lane::Hot.to_wire(),
                flags: LOGON_CANCEL_ON_DISCONNECT,
                ..Default::default()
            };
            self.send(&Command::Logon(&message));
            let session = self.core.find_session(key_id, &name).unwrap();
            (0..10).for_each(|_| self.order_of(session, key_id));
        }
        if self.dice.roll(2) == 0 {
            let session = self.core.find_session(key_id, &name).unwrap();
            let (ended_session, ended_epoch) = (session, self.core.session(session).unwrap().epoch);
            let message = ConnectionEnded { ended_session, ended_epoch, ..Default::default() };
            self.send(&Command::ConnectionEnded(&message));
        }
        let message = RevokeKey { key: key_id, ..Default::default() };
        self.send(&Command::RevokeKey(&message));
    }

    fn order_of(&mut self, session: SessionId, key_id: KeyId) {
        let view = self.core.session(session).unwrap();
        let sequence = Sequence(view.last_sequence.0 + 1);
        let command =
            CommandHeader { key_id, session, epoch: view.epoch, sequence, ..Default::default() };
        self.order(command, SymbolId(0));
    }

    /// Places a list around the middle of the prices, or cancels one of the last.
    fn list(&mut self, command: CommandHeader, symbol: SymbolId) {
        let side = 1 + self.dice.roll(2) as u8;
        let up = (1000 + self.dice.roll(60) as i64) * 1_000_000;
        let down = (1000 - self.dice.roll(60) as i64) * 1_000_000;
        let name = |dice: &mut Dice, names: &[ClientOrderId]| {
            names.get(dice.roll(NAMES as u64 * 2) as usize).copied().unwrap_or_default()
        };
        let quantity = (1 + self.dice.roll(50) as i64) * 1_000_000;
        let is_limit = self.dice.roll(2) == 0;
        let message = PlaceOrderList {
            command,
            symbol,
            side,
            quantity,
            price: if side == 1 { down } else { up },
            stop_price: if side == 1 { up } else { down },
            stop_limit_price: if is_limit { 1_000_000_000 } else { 0 },
            stop_limit_time_in_force: if is_limit { 1 + self.dice.roll(3) as u8 } else { 0 },
            limit_iceberg_quantity: if self.dice.roll(3) == 0 { quantity / 4 } else { 0 },
            self_trade_prevention: self.prevention(),
            list_client_order_id: name(&mut self.dice, &self.names),
            limit_client_order_id: name(&mut self.dice, &self.names),
            stop_client_order_id: name(&mut self.dice, &self.names),
            ..Default::default()
        };
        self.send(&Command::PlaceOrderList(&message));
    }

    fn cancel_list(&mut self, command: CommandHeader, symbol: SymbolId) {
        let last = self.accepted_of[usize::from(PlaceOrderList::TEMPLATE)] as i64;
        let order_list_id = OrderListId(last - self.dice.roll(30) as i64);
        let list = self.core.open_order_list(order_list_id);
        let key_id = list.map_or(command.key_id, |list| KeyId(list.account.0.into()));
        let message = CancelOrderList {
            command: CommandHeader { key_id, ..command },
            symbol: list.map_or(symbol, |list| list.symbol),
            order_list_id,
            ..Default::default()
        };
        self.send(&Command::CancelOrderList(&message));
    }
}
