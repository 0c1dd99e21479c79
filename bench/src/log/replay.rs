//! How fast a start of the engine replays its log, beside the core alone on the same commands. Called
//! by [`super`].
//!
//! Replay goes the way of every start: read the segments, check every frame, decode and apply its
//! command, compare the events. The core's own speed is that of `apply` with commands that are decoded
//! and in memory, and that it is shown before they come, as recovery shows them. Both are timed from the first command behind the venue's definition, which takes the
//! memory that the limits ask for, and take turns, so that a machine that changes its pace changes both.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;
use touchline_core::{Context, Core};
use touchline_engine::recovery::{ReplayFault, Replayed};
use touchline_protocol::log::MAX_FRAME_BYTES;
use touchline_protocol::log::reader::{Follow, LogReader};
use touchline_protocol::message::decode::{self, Command};
use touchline_protocol::units::Position;

use super::flow::{Apply, RecordedFlow, apply};
use super::per_second;
use crate::interrupt;
use crate::latency::median;
use crate::machine::nanoseconds;

/// Commands between two looks for an interruption.
const LOOK_EVERY: usize = 1 << 16;

/// Commands that the core is shown at a time before they come, as many as in recovery.
const AHEAD: usize = 64;

const _: () = assert!(LOOK_EVERY.is_multiple_of(AHEAD));

/// Passes of each kind in a round.
const PASSES: usize = 5;

/// What one round has measured: medians of its passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Replay {
    /// Commands replayed per second.
    pub replay_per_second: u64,
    /// The same commands shown to the core and applied per second, and nothing else.
    pub core_per_second: u64,
}

/// The commands of a log in memory.
pub(super) struct Commands {
    /// All commands' bytes, one behind the other.
    words: Vec<u64>,
    /// Of each command: where it is applied, and its first word and number of words.
    places: Vec<(Context, usize, usize)>,
}

impl Commands {
    pub(super) fn of(flow: &RecordedFlow) -> Result<Self> {
        let mut reader =
            LogReader::open_with(flow.data.path(), Follow::Durable, flow.window.path())?;
        let mut commands = Self { words: Vec::new(), places: Vec::new() };
        while let Some(transaction) = reader.next()? {
            let bytes = transaction.command_bytes();
            let context =
                Context { position: transaction.position(), time_ns: transaction.time_ns() };
            commands.places.push((context, commands.words.len(), bytes.len() / 8));
            let words = bytemuck::allocation::pod_collect_to_vec::<u8, u64>(bytes);
            commands.words.extend(words);
        }
        ensure!(
            commands.places.len() as u64 == flow.commands,
            "the log has {} of {} commands",
            commands.places.len(),
            flow.commands
        );
        Ok(commands)
    }

    fn decoded(&self) -> Result<Vec<(Context, Command<'_>)>> {
        let decode = |&(context, first, length): &(Context, usize, usize)| {
            let bytes = bytemuck::cast_slice(&self.words[first..first + length]);
            Ok((context, decode::command(bytes)?))
        };
        self.places.iter().map(decode).collect()
    }
}

pub(super) fn measure(flow: &RecordedFlow, commands: &Commands) -> Result<Replay> {
    let decoded = commands.decoded()?;
    let (mut core, mut replay) = (Vec::new(), Vec::new());
    for _ in 0..PASSES {
        core.push(alone(flow, &decoded)?);
        replay.push(recovered(flow)?);
    }
    Ok(Replay { core_per_second: median(core), replay_per_second: median(replay) })
}

fn alone(flow: &RecordedFlow, commands: &[(Context, Command<'_>)]) -> Result<u64> {
    let mut core = Core::new();
    let mut area = vec![0u64; MAX_FRAME_BYTES / 8];
    let (definition, trading) = commands.split_at(flow.definition);
    for (context, command) in definition {
        apply(&mut core, context, command, bytemuck::cast_slice_mut(&mut area))
            .map_err(anyhow::Error::msg)?;
    }
    let begin = Instant::now();
    for chunk in trading.chunks(LOOK_EVERY) {
        interrupt::check()?;
        for coming in chunk.chunks(AHEAD) {
            core.look_ahead(coming.iter().map(|(_, command)| command.bytes()));
            for (context, command) in coming {
                apply(&mut core, context, command, bytemuck::cast_slice_mut(&mut area))
                    .map_err(anyhow::Error::msg)?;
            }
        }
    }
    let taken = nanoseconds(begin.elapsed());
    check(flow, &core)?;
    Ok(per_second(trading.len() as u64, taken))
}

/// A core whose replay is timed from the first command behind the definition to the last.
struct Timed<'core> {
    core: Apply<'core>,
    /// Commands that are still to come.
    left: u64,
    /// So many are left when the time begins.
    timed: u64,
    begin: Option<Instant>,
    taken: u64,
}

impl Replayed for Timed<'_> {
    fn look_ahead<'bytes>(&self, coming: impl Iterator<Item = &'bytes [u8]>) {
        self.core.look_ahead(coming);
    }

    fn replay(
        &mut self,
        position: Position,
        time_ns: u64,
        command: &[u8],
        area: &mut [u8],
    ) -> Result<(usize, u16), ReplayFault> {
        if self.left == self.timed {
            self.begin = Some(Instant::now());
        }
        let replayed = self.core.replay(position, time_ns, command, area)?;
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            self.taken = self.begin.map_or(0, |begin| nanoseconds(begin.elapsed()));
        }
        Ok(replayed)
    }
}

fn recovered(flow: &RecordedFlow) -> Result<u64> {
    interrupt::check()?;
    let mut core = Core::new();
    let left = flow.commands;
    let trading = left - flow.definition as u64;
    let mut timed = Timed { core: Apply(&mut core), left, timed: trading, begin: None, taken: 0 };
    flow.recover(&mut timed).context("the log that was just written is not recovered")?;
    ensure!(timed.left == 0, "{} commands were not replayed", timed.left);
    let taken = timed.taken;
    check(flow, &core)?;
    Ok(per_second(trading, taken))
}

fn check(flow: &RecordedFlow, core: &Core) -> Result<()> {
    let found = core.state_hash();
    ensure!(
        found == flow.state_hash,
        "state {found:016x} behind the last command, it was {:016x}",
        flow.state_hash
    );
    Ok(())
}
