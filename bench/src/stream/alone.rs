//! The core without engine, rings or log on the commands of [`super::commands`]: decoded and applied one after
//! the other, as the duty thread does. Called by [`super`].

use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use touchline_core::{Applied, Context, Core, Outbox};
use touchline_engine::config::EngineConfig;
use touchline_engine::genesis::Genesis;
use touchline_protocol::log::MAX_FRAME_BYTES;
use touchline_protocol::message::command::{CommandHeader, Logon};
use touchline_protocol::message::decode::{self, Command, Event};
use touchline_protocol::message::enums::{Lane, Role, Side};
use touchline_protocol::text::Name;
use touchline_protocol::units::{Epoch, KeyId, OrderId, Position, Sequence, SessionId};

use super::commands::{AT_REST, Step, WARM_UP, order, step};
use crate::engine::{SYMBOL, VENUE};
use crate::machine::nanoseconds;
use crate::orders::cancel;

/// The account that an admin makes in the engine's venue.
const ACCOUNT: &str = r#"
[[accounts]]
name = "bench"
keys = 1
balances = { AAPL = "10000000000", USD = "10000000000" }
"#;

/// Time and position of each command, from one to the next.
const STEP: u64 = 64;

/// A core with its venue, and one trader logged on.
struct Alone {
    core: Core,
    area: Vec<u64>,
    now: u64,
    identity: (SessionId, Epoch),
    key: KeyId,
}

impl Alone {
    fn new() -> Result<Self> {
        let key = KeyId(1);
        let mut alone = Self {
            core: Core::new(),
            area: vec![0; MAX_FRAME_BYTES / 8],
            now: 0,
            identity: Default::default(),
            key,
        };
        let config: EngineConfig = toml::from_str(&format!("{VENUE}{ACCOUNT}"))?;
        for command in Genesis::new(&config)?.remaining(Sequence(0)) {
            alone.apply(&decode::command(command)?)?;
        }
        let logon = Logon {
            command: CommandHeader { key_id: key, ..Default::default() },
            name: Name::new("bench").context("the name is short")?,
            role: Role::Trader.to_wire(),
            lane: Lane::Hot.to_wire(),
            ..Default::default()
        };
        let length = alone.apply(&Command::Logon(&logon))?;
        match decode::event(alone.first_event(length)?)? {
            Event::SessionStarted(started) => alone.identity = (started.session, started.epoch),
            other => bail!("a logon gives {}", other.name()),
        }
        Ok(alone)
    }

    /// Applies a command; gives the bytes of its events.
    #[inline]
    fn apply(&mut self, command: &Command<'_>) -> Result<usize> {
        self.now += STEP;
        let context = Context { position: Position(self.now), time_ns: self.now };
        let mut outbox = Outbox::new(bytemuck::cast_slice_mut(&mut self.area));
        match self.core.apply(&context, command, &mut outbox) {
            Ok(Applied::Committed) => Ok(outbox.len()),
            other => bail!("the core answers {} with {other:?}", command.name()),
        }
    }

    fn first_event(&self, length: usize) -> Result<&[u8]> {
        let bytes: &[u8] = bytemuck::cast_slice(&self.area);
        bytes.get(..length).context("more events than there is room for")
    }

    fn header(&self, number: usize) -> CommandHeader {
        let (session, epoch) = self.identity;
        let sequence = Sequence(number as u64 + 1);
        CommandHeader { key_id: self.key, session, epoch, sequence, ..Default::default() }
    }

    /// The command of a number, as words; orders are numbered one by one from `first` on.
    fn command(&self, number: usize, first: OrderId) -> Vec<u64> {
        match step(number) {
            Step::Place(at) => {
                let mut order = order(self.key, at);
                order.command = self.header(number);
                bytemuck::allocation::pod_collect_to_vec(bytemuck::bytes_of(&order))
            }
            Step::Cancel(at) => {
                let mut cancel = cancel(self.key, OrderId(first.0 + at as u64));
                cancel.command = self.header(number);
                bytemuck::allocation::pod_collect_to_vec(bytemuck::bytes_of(&cancel))
            }
        }
    }
}

/// `count` commands with orders at rest, behind as many others as warm it up, ns.
pub(super) fn block(count: usize) -> Result<u64> {
    let mut alone = Alone::new()?;
    let first = alone.command(0, OrderId(0));
    let length = alone.apply(&decode::command(bytemuck::cast_slice(&first))?)?;
    let first = match decode::event(alone.first_event(length)?)? {
        Event::OrderAccepted(accepted) => accepted.order_id,
        other => bail!("an order gives {}", other.name()),
    };
    let (mut words, mut ends) = (Vec::new(), vec![0]);
    let begin = AT_REST - 1 + WARM_UP;
    for number in 1..=begin + count {
        words.extend(alone.command(number, first));
        ends.push(words.len());
    }
    let command = |index: usize| bytemuck::cast_slice(&words[ends[index]..ends[index + 1]]);
    for index in 0..begin {
        alone.apply(&decode::command(command(index))?)?;
    }
    let timed = Instant::now();
    for index in begin..begin + count {
        alone.apply(&decode::command(command(index))?)?;
    }
    let took = nanoseconds(timed.elapsed());
    let open = alone.core.open_orders(SYMBOL, Side::Buy).count();
    ensure!(open.abs_diff(AT_REST) <= 1, "{open} orders are open at the end");
    Ok(took)
}
