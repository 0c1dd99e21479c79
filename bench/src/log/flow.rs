//! A log of limit orders and their cancels, decided by the real core as the duty thread decides, and
//! the same commands in memory. Called by [`super::replay`] and [`super::verify`].

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use touchline_core::{Applied, Context, Core, Outbox};
use touchline_engine::config::EngineConfig;
use touchline_engine::genesis::Genesis;
use touchline_engine::log::{self, Environment, LogOptions, LogWriter};
use touchline_engine::recovery::{ReplayFault, Replayed};
use touchline_protocol::log::place::SHARED_MEMORY;
use touchline_protocol::message::command::{CancelOrder, CommandHeader, Logon, NewOrder};
use touchline_protocol::message::decode::{self, Command, Event};
use touchline_protocol::message::enums::{Lane, OrderType, Role, Side, TimeInForce};
use touchline_protocol::text::{ClientOrderId, Name};
use touchline_protocol::units::{
    Epoch, KeyId, OrderId, Position, Sequence, SessionId, SymbolId, UNITS_PER_WHOLE,
};

use super::subject::{options, wait_for_room};
use crate::interrupt;
use crate::temporary::Temporary;

/// A venue of one symbol and one account that cannot run out of anything, but for its `limits.open_orders`.
const VENUE: &str = r#"
[limits]
price_levels = 2000
orders_per_interval_0 = 0
orders_per_interval_1 = 0
[[assets]]
name = "BTC"
[[assets]]
name = "USDT"
[[symbols]]
name = "BTCUSDT"
base = "BTC"
quote = "USDT"
[[accounts]]
name = "A"
keys = 1
balances = { BTC = "10000000000", USDT = "10000000000" }
"#;

/// Of a hundred placements, those at a price that trades.
const CROSSING_PERCENT: u64 = 5;

/// Prices on each side of the middle, in whole units.
const DEPTH: u64 = 400;

const MIDDLE: i64 = 10_000;

/// First time of the log, and from one command to the next, ns.
const BEGIN_NS: u64 = 1_700_000_000_000_000_000;
const STEP_NS: u64 = 1_000;

/// Commands between two looks for an interruption.
const LOOK_EVERY: usize = 4096;

/// The log, closed, in a folder of its own.
pub(super) struct RecordedFlow {
    /// Its data folder.
    pub(super) data: Temporary,
    /// Where live windows go when it is opened.
    pub(super) window: Temporary,
    /// Commands in it, those that define the venue included.
    pub(super) commands: u64,
    /// Of these, those that come before the first order.
    pub(super) definition: usize,
    /// The state hash behind the last one.
    pub(super) state_hash: u64,
    segment_bytes: u64,
}

impl RecordedFlow {
    /// A log of as many commands as are wanted, beside those that define its venue, which comes to have about as
    /// many orders open as are wanted if there are that many commands and more.
    pub(super) fn make(wanted: &super::LogOptions) -> Result<Self> {
        let super::LogOptions { commands, open: resting, segment_bytes, .. } = *wanted;
        let (data, window) =
            (Temporary::new(&wanted.scratch)?, Temporary::new(Path::new(SHARED_MEMORY))?);
        let mut none = Core::new();
        let log = open(data.path(), window.path(), segment_bytes, &mut Apply(&mut none))?;
        let mut venue =
            Deciding { core: Core::new(), writer: log.writer, time_ns: BEGIN_NS, decided: 0 };
        let mut config: EngineConfig = toml::from_str(VENUE)?;
        config.limits.open_orders = 2 * resting;
        for command in Genesis::new(&config)?.remaining(Sequence(0)) {
            venue.must(&decode::command(command)?)?;
        }
        let trader = venue.log_on()?;
        let definition = usize::try_from(venue.decided)?;
        trader.trade(&mut venue, commands, resting)?;
        let Deciding { core, writer, decided, .. } = venue;
        writer.close()?;
        log.keeper.stop();
        let state_hash = core.state_hash();
        Ok(Self { data, window, commands: decided, definition, state_hash, segment_bytes })
    }

    /// Opens the log as a start of the engine does: recovers it into `state`; then closes it.
    pub(super) fn recover(&self, state: &mut impl Replayed) -> Result<()> {
        let log = open(self.data.path(), self.window.path(), self.segment_bytes, state)?;
        log.writer.close()?;
        log.keeper.stop();
        Ok(())
    }
}

fn open(
    data: &Path,
    window: &Path,
    segment_bytes: u64,
    state: &mut impl Replayed,
) -> Result<log::Log> {
    let environment = Environment { shared_memory: window.to_owned(), ..Environment::default() };
    let options: LogOptions = options(data, segment_bytes, Duration::ZERO);
    Ok(log::open_in(&environment, &options, state, &mut |_| {})?)
}

/// Replays into a core.
pub(super) struct Apply<'core>(pub(super) &'core mut Core);

impl Replayed for Apply<'_> {
    fn look_ahead<'bytes>(&self, coming: impl Iterator<Item = &'bytes [u8]>) {
        self.0.look_ahead(coming);
    }

    fn replay(
        &mut self,
        position: Position,
        time_ns: u64,
        command: &[u8],
        area: &mut [u8],
    ) -> Result<(usize, u16), ReplayFault> {
        let command = decode::command(command).map_err(|error| error.to_string())?;
        Ok(apply(self.0, &Context { position, time_ns }, &command, area)?)
    }
}

/// Applies a command that was accepted before; gives the bytes and number of its events.
#[inline]
pub(super) fn apply(
    core: &mut Core,
    context: &Context,
    command: &Command<'_>,
    area: &mut [u8],
) -> Result<(usize, u16), String> {
    let mut outbox = Outbox::new(area);
    match core.apply(context, command, &mut outbox) {
        Ok(Applied::Committed) => Ok((outbox.len(), outbox.count())),
        other => Err(format!("{} gives {other:?} on replay", command.name())),
    }
}

/// Decides commands and logs them, in the order of the duty thread.
struct Deciding {
    core: Core,
    writer: LogWriter,
    time_ns: u64,
    /// Commands logged.
    decided: u64,
}

impl Deciding {
    /// Decides one command; false if it was rejected.
    fn decide(&mut self, command: &Command<'_>) -> Result<bool> {
        wait_for_room(&mut self.writer)?;
        self.time_ns += STEP_NS;
        let context = Context { position: self.writer.position(), time_ns: self.time_ns };
        let mut outbox = Outbox::new(self.writer.begin(command.bytes())?);
        if self.core.apply(&context, command, &mut outbox) == Ok(Applied::Committed) {
            let (length, count) = (outbox.len(), outbox.count());
            self.writer.commit(self.time_ns, length, count);
            self.decided += 1;
            return Ok(true);
        }
        self.writer.abandon();
        Ok(false)
    }

    fn must(&mut self, command: &Command<'_>) -> Result<()> {
        ensure!(self.decide(command)?, "{} is rejected", command.name());
        Ok(())
    }

    /// What the last command caused.
    fn events(&self) -> impl Iterator<Item = Event<'_>> {
        self.writer.committed_events().filter_map(|event| decode::event(event).ok())
    }

    fn log_on(&mut self) -> Result<Trader> {
        let key = KeyId(1);
        let logon = Logon {
            command: CommandHeader { key_id: key, ..Default::default() },
            name: Name::new("bench").expect("the name is short"),
            role: Role::Trader.to_wire(),
            lane: Lane::Hot.to_wire(),
            ..Default::default()
        };
        self.must(&Command::Logon(&logon))?;
        let started = self.events().find_map(|event| match event {
            Event::SessionStarted(started) => Some((started.session, started.epoch)),
            _ => None,
        });
        let Some((session, epoch)) = started else { bail!("the logon started no session") };
        Ok(Trader {
            session,
            epoch,
            key,
            sequence: 0,
            open: Vec::new(),
            random: 0x2545_f491_4f6c_dd1d,
        })
    }
}

/// The one session, and what it has in the book.
struct Trader {
    session: SessionId,
    epoch: Epoch,
    key: KeyId,
    sequence: u64,
    /// Orders placed and not cancelled; some of them may be filled.
    open: Vec<OrderId>,
    random: u64,
}

impl Trader {
    /// Places and cancels until `wanted` commands are logged; so many orders stay open, if it comes to that.
    fn trade(mut self, venue: &mut Deciding, wanted: usize, resting: u32) -> Result<()> {
        for index in 0..wanted {
            if index % LOOK_EVERY == 0 {
                interrupt::check()?;
            }
            // Around the wanted number of open orders placements and cancels are as many.
            let places = self.below(2 * u64::from(resting)) >= self.open.len() as u64;
            if !places && self.cancel(venue)? {
                continue;
            }
            self.place(venue)?;
        }
        Ok(())
    }

    fn place(&mut self, venue: &mut Deciding) -> Result<()> {
        let is_buy = self.below(2) == 0;
        let away =
            if self.below(100) < CROSSING_PERCENT { -1 } else { 1 + self.below(DEPTH) as i64 };
        let price = if is_buy { MIDDLE - away } else { MIDDLE + away };
        let order = NewOrder {
            command: self.header(),
            symbol: SymbolId(0),
            side: if is_buy { Side::Buy } else { Side::Sell }.to_wire(),
            order_type: OrderType::Limit.to_wire(),
            // One that crosses takes what is there and leaves nothing in front of the others.
            time_in_force: if away < 0 { TimeInForce::Ioc } else { TimeInForce::Gtc }.to_wire(),
            price: price * UNITS_PER_WHOLE,
            quantity: (1 + self.below(5) as i64) * UNITS_PER_WHOLE / 10,
            client_order_id: ClientOrderId::new(&format!("order-{}", self.sequence))
                .expect("the name is short"),
            ..Default::default()
        };
        venue.must(&Command::NewOrder(&order))?;
        let placed = venue.events().find_map(|event| match event {
            Event::OrderAccepted(accepted) => Some(accepted.order_id),
            _ => None,
        });
        if away > 0 {
            self.open.extend(placed);
        }
        Ok(())
    }

    /// Cancels any open order; false if the one that was picked is gone.
    fn cancel(&mut self, venue: &mut Deciding) -> Result<bool> {
        let index = self.below(self.open.len() as u64) as usize;
        let order_id = self.open.swap_remove(index);
        let cancel = CancelOrder {
            command: self.header(),
            symbol: SymbolId(0),
            order_id,
            ..Default::default()
        };
        venue.decide(&Command::CancelOrder(&cancel))
    }

    fn header(&mut self) -> CommandHeader {
        self.sequence += 1;
        CommandHeader {
            correlation: self.sequence,
            sequence: Sequence(self.sequence),
            key_id: self.key,
            session: self.session,
            epoch: self.epoch,
            ..Default::default()
        }
    }

    /// A random number below `bound` (xorshift: the same flow every time).
    fn below(&mut self, bound: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % bound.max(1)
    }
}
