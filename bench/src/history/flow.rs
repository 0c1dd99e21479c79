//! The made-up log: transactions that are sound without an engine. Called by [`super`].

use anyhow::{Context, Result};
use touchline_adapter::views::state::State;
use touchline_core::RULES_MAX;
use touchline_protocol::log::frame::{FRAME_HEADER_BYTES, FrameHeader, FrameKind};
use touchline_protocol::log::transaction::Transaction;
use touchline_protocol::message::Message;
use touchline_protocol::message::command::{
    ACCOUNT_CAN_TRADE, CancelOrder, CreateAccount, CreateKey, DefineAsset, DefineSymbol, Deposit,
    KEY_ALL, NewOrder, PERMISSION_SPOT, SetRules,
};
use touchline_protocol::message::enums::{OrderStatus, OrderType, Side, SymbolStatus, TimeInForce};
use touchline_protocol::message::event::{Done, OrderAccepted, OrderCanceled, OrderResult, Trade};
use touchline_protocol::text::{AssetName, ClientOrderId, Name, SymbolName};
use touchline_protocol::units::{
    AccountId, AggregateTradeId, AssetId, BookUpdateId, OrderId, OrderListId, SymbolId, TradeId,
    UNITS_PER_WHOLE,
};

use crate::random::Random;

/// The id of the log.
pub(super) const LOG_ID: [u8; 16] = [9; 16];

/// Accounts, the fee account not counted. A thousand orders of one on one symbol are among some
/// ten thousand.
pub(super) const ACCOUNTS: u32 = 64;

/// Symbols, each with assets of its own.
pub(super) const SYMBOLS: u32 = 4;

/// Cycles that are prepared at a time.
const CYCLES: usize = 500;

/// Events of a cycle: two orders at rest (2 each), a cancel (1), an order that takes (3).
pub(super) const EVENTS_PER_CYCLE: u64 = 8;

/// Transactions of a cycle.
const TRANSACTIONS_PER_CYCLE: u64 = 4;

/// Begin of the log, ns since the epoch, and the time between two transactions.
const BEGIN_NS: u64 = 1_700_000_000_000_000_000;
const STEP_NS: u64 = 40_000;

const QUANTITY: i64 = UNITS_PER_WHOLE / 100;

/// A transaction as it lies in a log.
pub(super) struct Frame {
    header: FrameHeader,
    words: Vec<u64>,
}

impl Frame {
    pub(super) fn transaction(&self) -> Transaction<'_> {
        Transaction::of(self.header, bytemuck::cast_slice(&self.words))
    }
}

/// Numbers given out on a symbol.
#[derive(Clone, Copy, Default)]
struct Counters {
    order: u64,
    trade: u64,
    update: u64,
}

/// The log, made as it is needed.
pub(super) struct Flow {
    position: u64,
    time_ns: u64,
    counters: [Counters; SYMBOLS as usize],
    random: Random,
    frames: Vec<Frame>,
}

impl Flow {
    pub(super) fn new() -> Self {
        let counters = [Counters::default(); SYMBOLS as usize];
        let random = Random::new(0);
        Self { position: 4096, time_ns: BEGIN_NS, counters, random, frames: Vec::new() }
    }

    /// Behind the last transaction that was made.
    pub(super) const fn end(&self) -> u64 {
        self.position
    }

    fn frame(&mut self, command: &impl Message, events: &[&[u8]]) -> Frame {
        let body = [bytemuck::bytes_of(command), &events.concat()].concat();
        let length = FRAME_HEADER_BYTES + body.len();
        let mut words = vec![0; length.div_ceil(8)];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        bytes[FRAME_HEADER_BYTES..length].copy_from_slice(&body);
        let header = FrameHeader {
            length: length as u32,
            kind: FrameKind::Transaction as u8,
            events: events.len() as u16,
            incarnation: 1,
            position: self.position,
            time_ns: self.time_ns,
            command_length: size_of_val(command) as u32,
            ..FrameHeader::default()
        };
        let frame = Frame { header, words };
        self.position = frame.transaction().end().0;
        self.time_ns += STEP_NS;
        frame
    }

    /// Folds the venue's definition.
    pub(super) fn define(&mut self, state: &mut State) -> Result<()> {
        let mut frames = Vec::new();
        let id = |id: u32| Done { id: id.into(), ..Default::default() };
        // Versions go up one by one, to what a new venue has.
        for rules in 1..=RULES_MAX {
            frames.push(self.definition(&SetRules { rules, ..Default::default() }, id(0)));
        }
        for number in 0..2 * SYMBOLS {
            let name = AssetName::new(&format!("A{number}")).context("a short name")?;
            let asset = DefineAsset { name, precision: 8, ..Default::default() };
            frames.push(self.definition(&asset, id(number)));
        }
        for number in 0..SYMBOLS {
            let symbol = DefineSymbol {
                name: SymbolName::new(&symbol_name(number)).context("a short name")?,
                base: AssetId(2 * number),
                quote: AssetId(2 * number + 1),
                status: SymbolStatus::Trading.to_wire(),
                order_types: 0xfe,
                permissions: PERMISSION_SPOT,
                ..Default::default()
            };
            frames.push(self.definition(&symbol, id(number)));
        }
        for number in 1..=ACCOUNTS {
            let name = Name::new(&format!("account{number}")).context("a short name")?;
            let permissions = PERMISSION_SPOT;
            let flags = ACCOUNT_CAN_TRADE;
            let made = CreateAccount { name, flags, permissions, ..Default::default() };
            frames.push(self.definition(&made, id(number)));
            let account = AccountId(number);
            let key = CreateKey { account, permissions: KEY_ALL, ..Default::default() };
            frames.push(self.definition(&key, id(number)));
            for asset in (0..2 * SYMBOLS).map(AssetId) {
                let amount = i64::MAX / 256;
                let deposit = Deposit { account, asset, amount, ..Default::default() };
                frames.push(self.definition(&deposit, Done { free: amount, ..Default::default() }));
            }
        }
        for frame in &frames {
            state.fold_transaction(&frame.transaction())?;
        }
        Ok(())
    }

    fn definition(&mut self, command: &impl Message, done: Done) -> Frame {
        self.frame(command, &[bytemuck::bytes_of(&done)])
    }

    /// Makes the next transactions.
    pub(super) fn prepare(&mut self) {
        for _ in 0..CYCLES {
            self.cycle();
        }
    }

    /// Folds what was prepared; gives the number of events.
    pub(super) fn fold(&mut self, state: &mut State) -> Result<u64> {
        for frame in self.frames.drain(..) {
            state.fold_transaction(&frame.transaction())?;
        }
        Ok(CYCLES as u64 * EVENTS_PER_CYCLE)
    }

    /// The next transactions, one by one.
    pub(super) fn next(&mut self) -> Frame {
        if self.frames.is_empty() {
            for _ in 0..CYCLES {
                self.cycle();
            }
            self.frames.reverse();
        }
        self.frames.pop().expect("some were made")
    }

    /// Transactions for so many events per second.
    pub(super) const fn transactions(events: u64) -> u64 {
        events * TRANSACTIONS_PER_CYCLE / EVENTS_PER_CYCLE
    }

    /// Events of so many transactions.
    pub(super) const fn events(transactions: u64) -> u64 {
        transactions * EVENTS_PER_CYCLE / TRANSACTIONS_PER_CYCLE
    }

    /// An order that is filled, one that is cancelled, the cancel, and one that fills the first.
    fn cycle(&mut self) {
        let symbol = SymbolId(self.random.below(u64::from(SYMBOLS)) as u32);
        let price = (1000 + self.random.below(100).cast_signed()) * UNITS_PER_WHOLE;
        let maker = self.rest(symbol, Side::Sell, price);
        let canceled = self.rest(symbol, Side::Buy, price / 2);
        self.cancel(&canceled);
        self.take(&maker);
    }

    fn account(&mut self) -> AccountId {
        AccountId(1 + self.random.below(u64::from(ACCOUNTS)) as u32)
    }

    /// An order of a random account under a random name, as common clients give them.
    fn order(&mut self, symbol: SymbolId, side: Side, price: i64) -> (NewOrder, OrderAccepted) {
        let name = format!("{:016x}{:06x}", self.random.bits(), self.random.bits() & 0xff_ffff);
        let counters = &mut self.counters[symbol.0 as usize];
        counters.order += 1;
        let order_id = OrderId(counters.order);
        let order = NewOrder {
            symbol,
            side: side.to_wire(),
            order_type: OrderType::Limit.to_wire(),
            time_in_force: TimeInForce::Gtc.to_wire(),
            price,
            quantity: QUANTITY,
            client_order_id: ClientOrderId::new(&name).unwrap_or_default(),
            ..Default::default()
        };
        let locked = match side {
            Side::Buy => price / UNITS_PER_WHOLE * QUANTITY,
            Side::Sell => QUANTITY,
        };
        let accepted = OrderAccepted {
            order_id,
            account: self.account(),
            symbol,
            locked,
            price,
            quantity: QUANTITY,
            order_list_id: OrderListId::NONE,
            side: side.to_wire(),
            order_type: order.order_type,
            time_in_force: order.time_in_force,
            ..Default::default()
        };
        (order, accepted)
    }

    fn result(&mut self, accepted: &OrderAccepted, status: OrderStatus) -> OrderResult {
        let counters = &mut self.counters[accepted.symbol.0 as usize];
        counters.update += 1;
        OrderResult {
            order_id: accepted.order_id,
            account: accepted.account,
            symbol: accepted.symbol,
            quantity: accepted.quantity,
            book_update_id: BookUpdateId(counters.update),
            order_list_id: OrderListId::NONE,
            status: status.to_wire(),
            ..Default::default()
        }
    }

    fn rest(&mut self, symbol: SymbolId, side: Side, price: i64) -> (NewOrder, OrderAccepted) {
        let (order, accepted) = self.order(symbol, side, price);
        let result = self.result(&accepted, OrderStatus::New);
        let events = [bytemuck::bytes_of(&accepted), bytemuck::bytes_of(&result)];
        let frame = self.frame(&order, &events);
        self.frames.push(frame);
        (order, accepted)
    }

    fn cancel(&mut self, (order, accepted): &(NewOrder, OrderAccepted)) {
        let result = self.result(accepted, OrderStatus::Canceled);
        let canceled = OrderCanceled {
            order_id: accepted.order_id,
            account: accepted.account,
            symbol: accepted.symbol,
            price: accepted.price,
            quantity: accepted.quantity,
            released: accepted.locked,
            book_update_id: result.book_update_id,
            order_list_id: OrderListId::NONE,
            status: OrderStatus::Canceled.to_wire(),
            side: accepted.side,
            order_type: accepted.order_type,
            time_in_force: accepted.time_in_force,
            client_order_id: order.client_order_id,
            ..Default::default()
        };
        let order_id = accepted.order_id;
        let command = CancelOrder { symbol: accepted.symbol, order_id, ..Default::default() };
        let frame = self.frame(&command, &[bytemuck::bytes_of(&canceled)]);
        self.frames.push(frame);
    }

    fn take(&mut self, (_, maker): &(NewOrder, OrderAccepted)) {
        let (order, accepted) = self.order(maker.symbol, Side::Buy, maker.price);
        let counters = &mut self.counters[maker.symbol.0 as usize];
        counters.trade += 1;
        let trade = Trade {
            trade_id: TradeId(counters.trade),
            aggregate_trade_id: AggregateTradeId(counters.trade),
            symbol: maker.symbol,
            aggressor_side: Side::Buy.to_wire(),
            price: maker.price,
            quantity: QUANTITY,
            quote_amount: accepted.locked,
            maker_order_id: maker.order_id,
            taker_order_id: accepted.order_id,
            maker_account: maker.account,
            taker_account: accepted.account,
            ..Default::default()
        };
        let result = OrderResult {
            executed_quantity: QUANTITY,
            executed_quote: accepted.locked,
            ..self.result(&accepted, OrderStatus::Filled)
        };
        let events = [
            bytemuck::bytes_of(&accepted),
            bytemuck::bytes_of(&trade),
            bytemuck::bytes_of(&result),
        ];
        let frame = self.frame(&order, &events);
        self.frames.push(frame);
    }

    /// Orders that were placed, and trades, on all symbols together.
    pub(super) fn placed(&self) -> (u64, u64) {
        let sum = |field: fn(&Counters) -> u64| self.counters.iter().map(field).sum();
        (sum(|counters| counters.order), sum(|counters| counters.trade))
    }

    /// The last order's number and the last trade's, of each symbol.
    pub(super) fn last_numbers(&self) -> [(u64, u64); SYMBOLS as usize] {
        self.counters.map(|counters| (counters.order, counters.trade))
    }

    /// The time of the next transaction, ms since the epoch.
    pub(super) const fn now_ms(&self) -> u64 {
        self.time_ns / 1_000_000
    }
}

/// The name of a symbol.
pub(super) fn symbol_name(id: u32) -> String {
    format!("SYMBOL{id}")
}
