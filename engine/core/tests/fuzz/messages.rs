//! Commands out of an input's bytes. Most are well formed and about what is there: live orders, lists,
//! keys and sessions are looked up in the venue, prices and quantities lie near each other. The rest
//! is wrong in one place or in all: numbers from the edges of their types, other accounts' orders,
//! names that are taken, lists that are closed, sequences and epochs that are over, bytes of chance.

use super::source::Source;
use super::subject::words;
use super::world::WHOLE;
use touchline_core::{Core, OpenOrder};
use touchline_protocol::message::command::*;
use touchline_protocol::message::decode::Command;
use touchline_protocol::message::enums::Side;
use touchline_protocol::message::{MessageHeader, SCHEMA_ID, SCHEMA_VERSION};
use touchline_protocol::text::{ClientOrderId, Text};
use touchline_protocol::units::*;

/// Writes the next command.
pub(crate) struct Writer<'input, 'bytes> {
    pub(crate) source: &'input mut Source<'bytes>,
    pub(crate) core: &'input Core,
}

/// An open order that a command is about, or one that is not there.
struct Aim {
    symbol: SymbolId,
    order_id: OrderId,
    list_id: OrderListId,
    name: ClientOrderId,
    key_id: KeyId,
}

impl Writer<'_, '_> {
    /// A command in aligned words, or what is to be taken for one.
    pub(crate) fn any(&mut self) -> Vec<u64> {
        let mut words = match self.source.below(68) {
            0..=27 => words(&self.new_order()),
            28..=34 => words(&self.list()),
            35..=38 => words(&self.cancel()),
            39..=40 => words(&self.cancel_named()),
            41..=42 => words(&self.cancel_list()),
            43..=44 => words(&self.reduce()),
            45..=49 => words(&self.replace()),
            50..=53 => words(&self.cancel_replace()),
            54..=56 => words(&RunPending::default()),
            57 => self.sweep(),
            58..=59 => self.operation(),
            60 => self.of_sessions(),
            61..=62 => self.definition(),
            63..=66 => self.record(),
            _ => return self.noise(),
        };
        for _ in 0..self.source.pick(&[0, 0, 0, 0, 0, 0, 1, 2]) {
            self.spoil(&mut words);
        }
        words
    }

    /// Overwrites some bytes with a number from an edge, or a small one.
    fn spoil(&mut self, words: &mut [u64]) {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(words);
        let width = self.source.pick(&[1, 2, 4, 8]);
        let at = self.source.below(bytes.len().min(256)) / width * width;
        let value = self.source.number(9).to_le_bytes();
        let width = width.min(bytes.len() - at);
        bytes[at..at + width].copy_from_slice(&value[..width]);
    }

    /// Bytes as they come, with or without a header that makes sense.
    fn noise(&mut self) -> Vec<u64> {
        let mut words = vec![0; 1 + self.source.below(32)];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        let given = self.source.bytes(bytes.len());
        bytes[..given.len()].copy_from_slice(given);
        if !self.source.once_in(4) {
            let (template_id, _) = self.source.pick(Command::TEMPLATES);
            let block_length = (words.len() * 8 - MessageHeader::BYTES) as u16;
            let (schema_id, version) = (SCHEMA_ID, SCHEMA_VERSION);
            words[0] =
                bytemuck::cast(MessageHeader { block_length, template_id, schema_id, version });
        }
        words
    }

    pub(super) fn number(&mut self, near: u32) -> u32 {
        self.source.number(near as usize + 1) as u32
    }

    pub(super) fn symbol(&mut self) -> SymbolId {
        if self.source.once_in(24) {
            SymbolId(self.number(8))
        } else {
            self.source.pick(&[0, 0, 0, 0, 1, 1, 1, 2, 2, 3].map(SymbolId))
        }
    }

    pub(super) fn account(&mut self) -> AccountId {
        let accounts = self.core.counts().accounts;
        AccountId(self.number(accounts))
    }

    pub(super) fn key(&mut self) -> KeyId {
        KeyId(if self.source.once_in(8) {
            self.source.number(14).cast_unsigned()
        } else {
            self.source.pick(&[1, 1, 2, 2, 3])
        })
    }

    pub(super) fn asset(&mut self) -> AssetId {
        AssetId(self.number(2))
    }

    /// Multiples of the tick around one price, which leave all symbols room to cross.
    fn price(&mut self) -> i64 {
        match self.source.below(24) {
            0 => self.source.edge(),
            1 => (100 * WHOLE).saturating_add(self.source.number(100)),
            _ => (90 + self.source.below(20) as i64) * WHOLE + self.source.pick(&[0, WHOLE / 2]),
        }
    }

    pub(super) fn quantity(&mut self) -> i64 {
        match self.source.below(24) {
            0 => self.source.edge(),
            1 => self.source.number(256),
            _ => (1 + self.source.below(24) as i64) * (WHOLE / 4),
        }
    }

    fn side(&mut self) -> u8 {
        if self.source.once_in(64) { self.number(4) as u8 } else { self.source.pick(&[1, 2]) }
    }

    fn prevention(&mut self) -> u8 {
        if self.source.once_in(4) { self.number(5) as u8 } else { 0 }
    }

    /// Few names, so that they are taken; the longest one is as long as a name may be.
    pub(super) fn name<const N: usize, const P: usize>(&mut self) -> Text<N, P> {
        let longest = &"zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"[..N];
        let name =
            self.source.pick(&["", "", "", "", "", "", "a", "b", "c", "orders", "first", longest]);
        Text::new(name).unwrap_or_default()
    }

    /// From whom: the engine itself, or a session with its epoch and next sequence; one time in sixteen
    /// something about it is wrong.
    fn header(&mut self, key_id: KeyId) -> CommandHeader {
        let mut header = CommandHeader { key_id, ..Default::default() };
        let sessions = self.core.counts().sessions as usize;
        // The first is the adapter's, which any key may use.
        let session = self.source.pick(&[0, 0, 0, 0, 1, 1, 5, 6, 9]);
        let session = if session == 9 { self.source.below(sessions + 1) as u32 } else { session };
        header.session = SessionId(session);
        if let Some(of) = self.core.session(header.session) {
            header.epoch = of.epoch;
            header.sequence = Sequence(of.last_sequence.0.saturating_add(1));
            header.correlation = header.sequence.0;
            if of.key_id.0 != 0 && !self.source.once_in(8) {
                header.key_id = of.key_id;
            }
        }
        if self.source.once_in(16) {
            let value = self.source.number(12).cast_unsigned();
            match self.source.below(6) {
                0 => header.session = SessionId(value as u32),
                1 => header.epoch = Epoch(value as u32),
                2 => header.sequence = Sequence(value),
                3 => header.not_after_ns = value,
                4 => header.key_id = KeyId(value),
                _ => header.correlation = value,
            }
        }
        header
    }

    /// From an operator, mostly through the engine.
    pub(super) fn operator(&mut self) -> CommandHeader {
        let key_id = if self.source.once_in(16) { self.key() } else { KeyId(0) };
        if self.source.once_in(4) {
            self.header(key_id)
        } else {
            CommandHeader { key_id, ..Default::default() }
        }
    }

    fn open_orders(&self, symbol: SymbolId) -> Vec<OpenOrder> {
        if self.core.symbol(symbol).is_none() {
            return Vec::new();
        }
        let booked = [Side::Buy, Side::Sell];
        let booked = booked.into_iter().flat_map(|side| self.core.open_orders(symbol, side));
        booked.chain(self.core.waiting_orders(symbol)).collect()
    }

    /// Mostly at an open order that is `wanted`, if there is one.
    fn aim(&mut self, wanted: fn(&OpenOrder) -> bool) -> Aim {
        let mut symbol = self.symbol();
        let mut open = self.open_orders(symbol);
        if !open.iter().any(wanted) && !self.source.once_in(4) {
            symbol = SymbolId(0);
            open = self.open_orders(symbol);
        }
        if open.iter().any(wanted) {
            open.retain(wanted);
        }
        if open.is_empty() || self.source.once_in(8) {
            let last = self.core.symbol(symbol).map_or(0, |symbol| symbol.counters.order.0);
            let over = self.source.below(1 + last.min(255) as usize) as u64;
            let order_id = self.source.pick(&[over, over, over, last + 1, 0, u64::MAX]);
            let list_id = self.source.number(9);
            let (order_id, list_id) = (OrderId(order_id), OrderListId(list_id));
            return Aim { symbol, order_id, list_id, name: self.name(), key_id: self.key() };
        }
        let order = open[self.source.below(open.len())];
        let keys = 1..=u64::from(self.core.counts().keys);
        let owner = keys.map(KeyId).find(|&key| {
            self.core.key(key).is_some_and(|key| key.account == order.account && !key.revoked)
        });
        Aim {
            symbol,
            order_id: order.order_id,
            list_id: order.order_list_id,
            name: order.client_order_id,
            key_id: owner.filter(|_| !self.source.once_in(8)).unwrap_or(KeyId(2)),
        }
    }

    fn new_order(&mut self) -> NewOrder {
        let key_id = self.key();
        let symbol = self.symbol();
        let order_type = self.source.pick(&[1, 1, 1, 1, 1, 1, 2, 2, 3, 4, 5, 6, 7, 7]);
        let limit = matches!(order_type, 1 | 4 | 6);
        let time_in_force = if limit { self.source.pick(&[1, 1, 1, 1, 2, 3]) } else { 0 };
        let has_stop = (3..7).contains(&order_type);
        let quantity = self.quantity();
        let mut order = NewOrder {
            command: self.header(key_id),
            symbol,
            side: self.side(),
            order_type,
            time_in_force,
            flags: u8::from(self.source.once_in(24)),
            price: if limit || order_type == 7 { self.price() } else { 0 },
            quantity,
            stop_price: if has_stop { self.price() } else { 0 },
            client_order_id: self.name(),
            self_trade_prevention: self.prevention(),
            ..Default::default()
        };
        if (time_in_force == 1 || order_type == 7) && self.source.once_in(5) {
            let slices = self.source.pick(&[2, 3, 4, 8, 1]);
            order.iceberg_quantity = quantity / slices / (WHOLE / 4) * (WHOLE / 4);
        }
        if order_type == 2 && self.source.once_in(3) {
            (order.quantity, order.quote_quantity) = (0, quantity.saturating_mul(99));
        }
        order
    }

    /// The limit leg on one side of a price, the stop leg on the other.
    fn list(&mut self) -> PlaceOrderList {
        let key_id = self.key();
        let side = self.side();
        let [low, high] = match self.source.below(8) {
            0 => [self.price(), self.price()],
            _ => [80, 102].map(|from| (from + self.source.below(18) as i64) * WHOLE),
        };
        let (price, stop_price) = if side == 1 { (low, high) } else { (high, low) };
        let with_limit = self.source.below(2) == 1;
        PlaceOrderList {
            command: self.header(key_id),
            symbol: self.symbol(),
            side,
            stop_limit_time_in_force: if with_limit { self.source.pick(&[1, 1, 2, 3]) } else { 0 },
            flags: u8::from(self.source.once_in(32)),
            self_trade_prevention: self.prevention(),
            quantity: self.quantity(),
            price,
            limit_iceberg_quantity: if self.source.once_in(16) { self.quantity() } else { 0 },
            stop_price,
            stop_limit_price: if with_limit { self.price() } else { 0 },
            stop_iceberg_quantity: if self.source.once_in(32) { self.quantity() } else { 0 },
            list_client_order_id: self.name(),
            limit_client_order_id: self.name(),
            stop_client_order_id: self.name(),
            ..Default::default()
        }
    }

    fn cancel(&mut self) -> CancelOrder {
        let Aim { symbol, order_id, key_id, .. } = self.aim(|_| true);
        CancelOrder { command: self.header(key_id), symbol, order_id, ..Default::default() }
    }

    fn cancel_named(&mut self) -> CancelOrderNamed {
        let Aim { symbol, order_id, key_id, name, .. } = self.aim(|_| true);
        CancelOrderNamed {
            command: self.header(key_id),
            symbol,
            order_id: self.source.pick(&[order_id, OrderId(0)]),
            client_order_id: if self.source.once_in(4) { self.name() } else { name },
            cancel_client_order_id: self.name(),
            ..Default::default()
        }
    }

    fn cancel_list(&mut self) -> CancelOrderList {
        let in_list = |order: &OpenOrder| order.order_list_id != OrderListId::NONE;
        let Aim { symbol, list_id, key_id, .. } = self.aim(in_list);
        let named = self.core.open_order_list(list_id);
        let named = named.map(|list| list.list_client_order_id).unwrap_or_default();
        CancelOrderList {
            command: self.header(key_id),
            symbol,
            order_list_id: self.source.pick(&[list_id, list_id, OrderListId::NONE]),
            list_client_order_id: if self.source.once_in(3) { self.name() } else { named },
            cancel_client_order_id: self.name(),
            ..Default::default()
        }
    }

    fn reduce(&mut self) -> ReduceOrder {
        let Aim { symbol, order_id, key_id, .. } = self.aim(|_| true);
        let new_quantity = self.quantity();
        let command = self.header(key_id);
        ReduceOrder { command, symbol, order_id, new_quantity, ..Default::default() }
    }

    fn replace(&mut self) -> ReplaceOrder {
        let Aim { symbol, order_id, key_id, .. } = self.aim(|_| true);
        let (new_price, new_quantity) = (self.price(), self.quantity());
        let command = self.header(key_id);
        ReplaceOrder { command, symbol, order_id, new_price, new_quantity, ..Default::default() }
    }

    fn cancel_replace(&mut self) -> CancelReplace {
        let Aim { symbol, order_id, key_id, name, .. } = self.aim(|_| true);
        let new = self.new_order();
        CancelReplace {
            command: self.header(key_id),
            symbol,
            side: new.side,
            order_type: new.order_type,
            time_in_force: new.time_in_force,
            price: new.price,
            quantity: new.quantity,
            quote_quantity: new.quote_quantity,
            stop_price: new.stop_price,
            iceberg_quantity: new.iceberg_quantity,
            client_order_id: new.client_order_id,
            self_trade_prevention: new.self_trade_prevention,
            canceled_order_id: self.source.pick(&[order_id, order_id, OrderId(0)]),
            canceled_client_order_id: if self.source.once_in(4) { self.name() } else { name },
            cancel_client_order_id: self.name(),
            ..Default::default()
        }
    }

    fn sweep(&mut self) -> Vec<u64> {
        let key_id = self.key();
        let symbol = if self.source.once_in(3) { SymbolId(EVERY) } else { self.symbol() };
        match self.source.below(4) {
            0 => {
                let command = self.header(key_id);
                let cancel_client_order_id = self.name();
                words(&CancelAll { command, symbol, cancel_client_order_id, ..Default::default() })
            }
            1 | 2 => {
                let (command, scope) = (self.header(key_id), self.number(3) as u8);
                words(&MassCancel { command, symbol, scope, ..Default::default() })
            }
            _ => words(&ExpireAll { command: self.operator(), symbol, ..Default::default() }),
        }
    }
}
