//! The whole core (sessions, filters, balances, book, events) without a log: the same kind of flow as
//! the book alone, as bytes that are decoded and applied. Called by [`super::growth`] and the benchmarks.

mod check;
mod sender;

use thiserror::Error;
use touchline_core::{Applied, Context, Core, ORDER_TYPES, OUTBOX_BYTES_MAX, Outbox, RULES_MAX};
use touchline_protocol::message::Message;
use touchline_protocol::message::command::{
    ACCOUNT_CAN_TRADE, CreateAccount, CreateKey, DefineAsset, DefineSymbol, Deposit, KEY_ALL,
    Limits, Logon, PERMISSION_SPOT, SetLimits, SetRules, SymbolFilters,
};
use touchline_protocol::message::decode;
use touchline_protocol::message::enums::{Lane, Role, SymbolStatus};
use touchline_protocol::text::{AssetName, Name, SymbolName};
use touchline_protocol::units::{AccountId, AssetId, Position, SessionId, UNITS_PER_WHOLE};

use super::flows::Flow;
use super::measure::per_operation;
use super::operation::{Operation, Tally};
use super::stopwatch::Stopwatch;
use crate::interrupt::{self, Interrupted};
use crate::machine::nanoseconds;
use check::{Found, Reading};
use sender::{Batch, Sender};

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
    /// It came to other results than the flow's.
    #[error("the whole core is wrong on {flow}, symbol {symbol}: {difference}")]
    Wrong {
        /// The flow's name.
        flow: String,
        /// The first symbol that differs.
        symbol: u32,
        /// What differs.
        difference: String,
    },
    /// The run was interrupted.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

/// How large a venue is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// Symbols, each with a flow of its own.
    pub symbols: u32,
    /// Accounts that trade.
    pub accounts: u32,
}

/// What a pass came to: a timed one counts if the checked one came to the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Came {
    /// Hash of everything that the core holds.
    pub state_hash: u64,
    /// What was read out of the events of the measured part, by the core's own numbers.
    pub read: Tally,
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
        // A new venue has the newest; versions go up one by one.
        for rules in 1..=RULES_MAX {
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
        let mut batch = Batch::new();
        batch.push(message);
        self.apply(&batch, &mut |_| {})
    }

    /// Applies each message; `seen` is shown what came of it.
    fn apply(
        &mut self,
        batch: &Batch,
        seen: &mut impl FnMut(&Outbox<'_>),
    ) -> Result<(), VenueError> {
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
            seen(&outbox);
            if applied != Ok(Applied::Committed) {
                return Err(refused(command.name(), format!("{applied:?}")));
            }
        }
        Ok(())
    }

    /// Applies a flow to each symbol for accounts at random; gives the ps per command of its measured part,
    /// and what it came to. Each command goes to a symbol drawn at random, which does its own next operation:
    /// in turn, the core would see the same kind of operation once per symbol, and guess it.
    ///
    /// What is timed reads the fills out of the events, and folds them as the fills of the book alone are
    /// folded where that is timed: else one of the two would be charged for a reader.
    ///
    /// # Errors
    /// If the core refuses one of its orders, or the run was interrupted.
    pub fn run(&mut self, flow: &Flow) -> Result<(u64, Came), VenueError> {
        let mut sender = Sender::new(self.size, flow);
        self.replay(&mut sender, &flow.prefill, |_| {})?;
        let mut reading = Reading::default();
        let took = self.replay(&mut sender, &flow.measured, |outbox| reading.read(outbox))?;
        let picoseconds = per_operation(took, flow.measured.len() * self.size.symbols as usize);
        Ok((picoseconds, self.came(reading)))
    }

    /// Does the same, and compares each symbol's fills and final depth with what must come of the flow.
    /// Gives what a timed pass of the same size and flow must come to as well.
    ///
    /// # Errors
    /// As [`run`](Self::run), and what differs.
    pub fn check(&mut self, flow: &Flow) -> Result<Came, VenueError> {
        let mut sender = Sender::new(self.size, flow);
        self.replay(&mut sender, &flow.prefill, |_| {})?;
        let mut found = Found::new(flow, self.size.symbols);
        let mut reading = Reading::default();
        self.replay(&mut sender, &flow.measured, |outbox| {
            found.read(outbox);
            reading.read(outbox);
        })?;
        found.judge(flow, &self.core)?;
        Ok(self.came(reading))
    }

    fn came(&self, reading: Reading) -> Came {
        Came { state_hash: self.core.state_hash(), read: reading.tally() }
    }

    /// Sends a part of the flow; gives what applying it took in ns. `seen` is shown each command's events.
    fn replay(
        &mut self,
        sender: &mut Sender,
        part: &[Operation],
        mut seen: impl FnMut(&Outbox<'_>),
    ) -> Result<u64, VenueError> {
        let turns = sender.turns(part.len());
        let mut next = vec![0; self.size.symbols as usize];
        let mut batch = Batch::new();
        let mut took = 0;
        for (turn, &symbol) in (1..).zip(&turns) {
            let next = &mut next[symbol as usize];
            let operation = (symbol, &part[*next]);
            *next += 1;
            sender.push(&mut batch, operation, (self.session, &mut self.sequence));
            if batch.len() == BATCH || turn == turns.len() {
                interrupt::check()?;
                let begin = Stopwatch::start();
                self.apply(&batch, &mut seen)?;
                took += nanoseconds(begin.elapsed());
                batch.clear();
            }
        }
        Ok(took)
    }
}

fn name<T>(text: &str, make: impl Fn(&str) -> Option<T>) -> Result<T, VenueError> {
    make(text).ok_or_else(|| VenueError::Name(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::super::flows::Synthetic;
    use super::*;

    fn venue(flow: &Flow, symbols: u32) -> Venue {
        let [orders, levels] =
            [flow.capacity.orders, flow.capacity.levels].map(|most| (most + 1) * symbols);
        Venue::new(Size { symbols, accounts: 10 }, orders, levels).unwrap()
    }

    #[test]
    fn a_venue_has_the_newest_rules_and_comes_to_what_the_flow_says() {
        for (symbols, kind) in
            [(1, Synthetic::Calm), (3, Synthetic::Calm), (1, Synthetic::Crossing)]
        {
            let flow = kind.generate(3_000);
            let mut checked = venue(&flow, symbols);
            assert_eq!(checked.core.rules(), RULES_MAX);
            let came = checked.check(&flow).unwrap();
            // The timed pass has read every fill and every operation's end.
            let (expected, symbols_64) = (&flow.expected, u64::from(symbols));
            let of_all = [expected.trades, expected.volume, expected.done, expected.open];
            let Tally { trades, volume, done, open, .. } = came.read;
            let lots = LOT.unsigned_abs();
            let read = [trades, volume / lots, done, open / lots];
            assert_eq!(read, of_all.map(|of_one| of_one * symbols_64));
            assert_eq!(venue(&flow, symbols).run(&flow).unwrap().1, came);
        }
    }

    #[test]
    fn what_differs_from_the_flow_is_told() {
        let right = Synthetic::Calm.generate(3_000);
        let told = |change: fn(&mut Flow)| {
            let mut flow = right.clone();
            change(&mut flow);
            venue(&flow, 2).check(&flow).unwrap_err().to_string()
        };
        let fills = told(|flow| flow.expected.trades += 1);
        assert!(fills.contains("symbol 0") && fills.contains("fills instead of"), "{fills}");
        assert!(told(|flow| flow.expected.hash ^= 1).contains("fills instead of"));
        assert!(told(|flow| flow.expected.volume += 1).contains("fills instead of"));
        assert!(told(|flow| flow.expected.done += 1).contains("fills instead of"));
        assert!(told(|flow| flow.expected.open += 1).contains("fills instead of"));
        assert!(told(|flow| flow.depth.asks[0].1 += 1).contains("another book"));
        assert!(told(|flow| flow.depth.bids.clear()).contains("another book"));
    }
}
