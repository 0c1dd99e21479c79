//! The whole core (sessions, filters, balances, book, events) without a log: the same kind of flow as
//! the book alone, as bytes that are decoded and applied. Called by [`super::growth`] and the benchmarks.

use bytemuck::bytes_of;
use thiserror::Error;
use touchline_core::{Applied, Context, Core, ORDER_TYPES, OUTBOX_BYTES_MAX, Outbox};
use touchline_protocol::message::Message;
use touchline_protocol::message::command::{
    ACCOUNT_CAN_TRADE, CancelOrder, CommandHeader, CreateAccount, CreateKey, DefineAsset,
    DefineSymbol, Deposit, KEY_ALL, Limits, Logon, NewOrder, PERMISSION_SPOT, SetLimits, SetRules,
    SymbolFilters,
};
use touchline_protocol::message::decode;
use touchline_protocol::message::enums::{Lane, OrderType, Role, SymbolStatus, TimeInForce};
use touchline_protocol::text::{AssetName, ClientOrderId, Name, SymbolName};
use touchline_protocol::units::{
    AccountId, AssetId, Epoch, KeyId, OrderId, Position, Sequence, SessionId, SymbolId,
    UNITS_PER_WHOLE,
};

use super::flows::Flow;
use super::measure::per_operation;
use super::operation::{Kind, Operation};
use super::stopwatch::Stopwatch;
use crate::machine::nanoseconds;
use crate::random::Random;

/// Price of one tick.
const TICK: i64 = 1_000;
/// Base quantity that one stands for.
const LOT: i64 = 1_000;
/// Amount that everybody has of everything: a million accounts together stay below what an asset can
/// hold.
const WEALTH: i64 = 10_000 * UNITS_PER_WHOLE;
/// Every filter that a limit order meets, wide enough to let the flow pass.
const FILTERS: SymbolFilters = SymbolFilters {
    price_min: TICK,
    price_max: i64::MAX / TICK * TICK,
    tick_size: TICK,
    lot_min: LOT,
    lot_max: 1_000_000 * LOT,
    lot_step: LOT,
    market_lot_min: LOT,
    market_lot_max: 1_000_000 * LOT,
    market_lot_step: LOT,
    percent_price_up: 5 * UNITS_PER_WHOLE,
    percent_price_down: UNITS_PER_WHOLE / 5,
    min_notional: 1,
    max_position: i64::MAX,
    percent_price_minutes: 5,
    min_notional_minutes: 5,
    iceberg_parts: 10,
    max_orders: u32::MAX,
    max_algo_orders: 5,
    max_iceberg_orders: 5,
    min_notional_applies_to_market: 1,
    reserved: [0; 7],
    reserved_1: 0,
};
/// Commands that are made before any of them is applied.
const BATCH: usize = 1024;

/// The core did not take what it must.
#[derive(Debug, Error)]
pub enum VenueError {
    /// A command was refused.
    #[error("{name} refused: {reason}")]
    Refused {
        /// The command.
        name: &'static str,
        /// Why.
        reason: String,
    },
    /// A name does not fit.
    #[error("no name {0}")]
    Name(String),
}

/// How large a venue is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// Symbols, each with a flow of its own.
    pub symbols: u32,
    /// Accounts that trade.
    pub accounts: u32,
}

/// A core with everything defined, and what is needed to send it orders.
pub struct Venue {
    core: Core,
    outbox: Vec<u64>,
    time_ns: u64,
    session: SessionId,
    sequence: u64,
    size: Size,
}

/// Messages one behind the other, each aligned to eight bytes.
#[derive(Default)]
struct Batch {
    words: Vec<u64>,
    /// Where each begins, and where the last ends.
    bounds: Vec<usize>,
}

impl Batch {
    fn clear(&mut self) {
        self.words.clear();
        self.bounds.clear();
        self.bounds.push(0);
    }

    fn push<M: Message>(&mut self, message: &M) {
        let (words, _) = bytes_of(message).as_chunks::<8>();
        self.words.extend(words.iter().map(|word| bytemuck::cast::<[u8; 8], u64>(*word)));
        self.bounds.push(self.words.len());
    }

    fn messages(&self) -> impl Iterator<Item = &[u8]> {
        let bounds = self.bounds.windows(2);
        bounds.map(|bound| bytemuck::cast_slice(&self.words[bound[0]..bound[1]]))
    }
}

impl Venue {
    /// A venue of this size with room for `orders` and `levels`.
    ///
    /// # Errors
    /// If the core refuses a definition.
    pub fn new(size: Size, orders: u32, levels: u32) -> Result<Self, VenueError> {
        let mut venue = Self {
            core: Core::new(),
            outbox: vec![0; OUTBOX_BYTES_MAX.div_ceil(8)],
            time_ns: 1_700_000_000_000_000_000,
            session: SessionId::ENGINE,
            sequence: 0,
            size,
        };
        for rules in 1..=2 {
            venue.send(&SetRules { rules, ..Default::default() })?;
        }
        let Size { symbols, accounts } = size;
        let limits = Limits {
            assets: 2,
            symbols,
            accounts: accounts + 1,
            keys: accounts,
            sessions: 4,
            open_orders: orders,
            price_levels: levels,
            pending_work: 64,
            max_steps: 256,
            orders_per_interval_0: 0,
            orders_per_interval_1: 0,
            interval_0_seconds: 10,
            interval_1_seconds: 86_400,
            reserved: 0,
        };
        venue.send(&SetLimits { limits, ..Default::default() })?;
        venue.define(symbols)?;
        for account in 1..=accounts {
            venue.open_account(account)?;
        }
        let name = name("bench", Name::new)?;
        let [role, lane] = [Role::Adapter.to_wire(), Lane::Hot.to_wire()];
        venue.send(&Logon { name, role, lane, ..Default::default() })?;
        venue.session = SessionId(1);
        Ok(venue)
    }

    fn define(&mut self, symbols: u32) -> Result<(), VenueError> {
        for text in ["BASE", "QUOTE"] {
            let name = name(text, AssetName::new)?;
            self.send(&DefineAsset { name, precision: 8, ..Default::default() })?;
        }
        for symbol in 0..symbols {
            self.send(&DefineSymbol {
                name: name(&format!("S{symbol}"), SymbolName::new)?,
                base: AssetId(0),
                quote: AssetId(1),
                status: SymbolStatus::Trading.to_wire(),
                order_types: ORDER_TYPES,
                permissions: PERMISSION_SPOT,
                filters: FILTERS,
                ..Default::default()
            })?;
        }
        Ok(())
    }

    fn open_account(&mut self, account: u32) -> Result<(), VenueError> {
        self.send(&CreateAccount {
            name: name(&format!("account {account}"), Name::new)?,
            maker_rate: 10_000,
            taker_rate: 20_000,
            flags: ACCOUNT_CAN_TRADE,
            permissions: PERMISSION_SPOT,
            ..Default::default()
        })?;
        let account = AccountId(account);
        self.send(&CreateKey { account, permissions: KEY_ALL, ..Default::default() })?;
        for asset in [AssetId(0), AssetId(1)] {
            self.send(&Deposit { account, asset, amount: WEALTH, ..Default::default() })?;
        }
        Ok(())
    }

    fn send<M: Message>(&mut self, message: &M) -> Result<(), VenueError> {
        let mut batch = Batch::default();
        batch.clear();
        batch.push(message);
        self.apply(&batch)
    }

    fn apply(&mut self, batch: &Batch) -> Result<(), VenueError> {
        for bytes in batch.messages() {
            self.time_ns += 100;
            let context = Context { position: Position(self.time_ns), time_ns: self.time_ns };
            let mut outbox = Outbox::new(bytemuck::cast_slice_mut(&mut self.outbox));
            let refused = |name, reason| VenueError::Refused { name, reason };
            // Looked at where it lies: moved, it would be read by halves that are just being written.
            let decoded = decode::command(bytes);
            let command = decoded
                .as_ref()
                .map_err(|error| refused("an undecodable command", error.to_string()))?;
            let applied = self.core.apply(&context, command, &mut outbox);
            std::hint::black_box(outbox.bytes());
            if applied != Ok(Applied::Committed) {
                return Err(refused(command.name(), format!("{applied:?}")));
            }
        }
        Ok(())
    }

    /// Applies a flow to each symbol, one operation to every symbol in turn, for accounts at random;
    /// gives the ps per command of its measured part.
    ///
    /// # Errors
    /// If the core refuses one of its orders.
    pub fn run(&mut self, flow: &Flow) -> Result<u64, VenueError> {
        let mut sender = Sender::new(self.size, flow);
        self.replay(&mut sender, &flow.prefill)?;
        let took = self.replay(&mut sender, &flow.measured)?;
        Ok(per_operation(took, flow.measured.len() * self.size.symbols as usize))
    }

    /// Sends a part of the flow; gives what applying it took in ns.
    fn replay(&mut self, sender: &mut Sender, part: &[Operation]) -> Result<u64, VenueError> {
        let mut batch = Batch::default();
        batch.clear();
        let mut took = 0;
        for (turn, operation) in part.iter().enumerate() {
            for symbol in 0..self.size.symbols {
                sender.push(&mut batch, (symbol, operation), (self.session, &mut self.sequence));
            }
            if batch.bounds.len() > BATCH || turn + 1 == part.len() {
                let begin = Stopwatch::start();
                self.apply(&batch)?;
                took += nanoseconds(begin.elapsed());
                batch.clear();
            }
        }
        Ok(took)
    }
}

/// Makes commands of operations.
struct Sender {
    size: Size,
    random: Random,
    ids: u32,
    /// Key and order id by symbol and the flow's id.
    orders: Vec<(KeyId, OrderId)>,
    next_order: Vec<u64>,
}

impl Sender {
    fn new(size: Size, flow: &Flow) -> Self {
        let ids = flow.capacity.ids;
        let orders = ids as usize * size.symbols as usize;
        Self {
            size,
            random: Random::new(11),
            ids,
            orders: vec![(KeyId(0), OrderId(0)); orders],
            next_order: vec![0; size.symbols as usize],
        }
    }

    fn push(
        &mut self,
        batch: &mut Batch,
        (symbol, operation): (u32, &Operation),
        (session, sequence): (SessionId, &mut u64),
    ) {
        *sequence += 1;
        let mut command = CommandHeader {
            correlation: *sequence,
            sequence: Sequence(*sequence),
            session,
            epoch: Epoch(1),
            ..Default::default()
        };
        let order = &mut self.orders[symbol as usize * self.ids as usize + operation.id as usize];
        let id = SymbolId(symbol);
        if operation.kind == Kind::Cancel {
            let (key_id, order_id) = *order;
            command.key_id = key_id;
            batch.push(&CancelOrder { command, symbol: id, order_id, ..Default::default() });
            return;
        }
        let next = &mut self.next_order[symbol as usize];
        *next += 1;
        command.key_id = KeyId(1 + self.random.below(u64::from(self.size.accounts)));
        *order = (command.key_id, OrderId(*next));
        let client_id = client_order_id(symbol, *next);
        let time = if operation.kind == Kind::Ioc { TimeInForce::Ioc } else { TimeInForce::Gtc };
        batch.push(&NewOrder {
            command,
            symbol: id,
            side: operation.side.to_wire(),
            order_type: OrderType::Limit.to_wire(),
            time_in_force: time.to_wire(),
            price: operation.price * TICK,
            quantity: i64::from(operation.quantity) * LOT,
            client_order_id: client_id,
            ..Default::default()
        });
    }
}

/// Twenty characters that no other order of the symbol has.
fn client_order_id(symbol: u32, order: u64) -> ClientOrderId {
    let mut text = *b"s0000-order000000000";
    let numbers = [(1..5, u64::from(symbol)), (11..20, order)];
    for (place, mut number) in numbers {
        for digit in text[place].iter_mut().rev() {
            *digit += (number % 10) as u8;
            number /= 10;
        }
    }
    str::from_utf8(&text).ok().and_then(ClientOrderId::new).unwrap_or_default()
}

fn name<T>(text: &str, make: impl Fn(&str) -> Option<T>) -> Result<T, VenueError> {
    make(text).ok_or_else(|| VenueError::Name(text.to_owned()))
}
