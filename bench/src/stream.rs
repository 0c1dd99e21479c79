//! `touchline-bench stream`: how much passes per second where many things are under way. Messages of 64 bytes
//! through the ring, beside a bare ring that publishes in batches; orders and cancels pipelined over one
//! session into a real engine, beside the core alone on the same commands. Blocks of a kind and of what it is
//! compared with alternate, and ratios are taken between neighbours; an engine stands still while none of its own is
//! measured, with all on disk that it has decided.

mod alone;
mod commands;
mod rings;
mod session;

use std::fmt;

use anyhow::Result;
use serde::Serialize;
use touchline_protocol::message::command::{LOGON_BRIEF, LOGON_TERSE};

use crate::engine::EngineOptions;
use crate::goal::{Compared, Goal, far_apart};
use crate::latency::{median, median_ratio, ratio};
use crate::machine::Machine;
use crate::rtt::wait_name;
use crate::scratch::Scratch;

/// What `--help` says.
pub const HELP: &str = "\
Messages of 64 bytes go through the ring and through a bare one of the same run, both published and given
back 32 at a time. Orders that rest and cancels, as many of each, go over one session into a real engine,
up to 2,048 under way, and into the core alone, which only decodes and applies them: a session that is told
all, a brief one, and a terse one, each with an engine of its own, which has all on disk and is halted while
others are measured. Ratios are taken between neighbours, and their medians printed; no verdict (noise) where
what is bare of one run took more than three times that of another. Neither core nor session is timed before
it has done 65,536 commands.";

/// Blocks of each kind per run.
const BLOCKS: u64 = 5;

/// Commands of a session to those of the core alone, and our ring's messages to the bare one's, in hundredths.
const TO_CORE: u64 = 60;
const TO_BARE: u64 = 60;

/// What a message through our ring may take, tenths of ns.
const MESSAGE_TENTHS: u64 = 70;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct StreamOptions {
    /// The engine.
    pub engine: EngineOptions,
    /// Runs; medians over them are reported.
    pub runs: usize,
    /// Messages of each kind per run, at least; blocks are equally long.
    pub messages: u32,
}

impl StreamOptions {
    /// Messages of a block.
    fn block(&self) -> u64 {
        u64::from(self.messages).div_ceil(BLOCKS)
    }
}

/// A block of each kind. A thread that was taken off its core makes one ratio of many wrong; of sums it would decide.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Block {
    /// A message through a bare ring, its index published with every 32nd: tenths of ns.
    pub bare_tenths: u64,
    /// A message through our ring, published likewise: tenths of ns.
    pub ring_tenths: u64,
    /// Commands per second that the core alone decodes and applies.
    pub core_per_second: u64,
    /// Commands per second from a session through the engine, to the last terminal reply.
    pub session_per_second: u64,
    /// The same in a brief session: of an order that rests the result alone.
    pub brief_per_second: u64,
    /// The same in a terse session: short orders and short replies.
    pub terse_per_second: u64,
}

/// All of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct StreamReport {
    /// What it was measured on.
    pub machine: Machine,
    /// Where temporary data was.
    pub scratch: Scratch,
    /// `adaptive` or `spin`.
    pub wait: &'static str,
    /// Messages of each kind per run: as many as were recorded, in whole blocks.
    pub messages: u64,
    /// Each run, by block.
    pub runs: Vec<Vec<Block>>,
    /// Medians of all blocks.
    pub median: Block,
    /// Messages per second through our ring to those through the bare one, median of the blocks, hundredths.
    pub ring_to_bare: u64,
    /// Commands per second of the session to those of the core, likewise.
    pub session_to_core: u64,
    /// The same of the brief session.
    pub brief_to_core: u64,
    /// The same of the terse session.
    pub terse_to_core: u64,
    /// What is to be reached.
    pub goals: Vec<Goal>,
}

/// Measures.
///
/// # Errors
/// If the engine does not start or answers wrongly, a ring loses a message, or the run was interrupted.
pub fn run(options: &StreamOptions) -> Result<StreamReport> {
    let mut runs = Vec::new();
    for _ in 0..options.runs {
        runs.push(one_run(options)?);
    }
    let blocks = || runs.iter().flatten();
    let of = |field: fn(&Block) -> u64| median(blocks().map(field));
    let to_core = |field: fn(&Block) -> u64| {
        median_ratio(blocks().map(|block| (field(block), block.core_per_second)))
    };
    Ok(StreamReport {
        machine: Machine::here(),
        scratch: Scratch::of(&options.engine.scratch)?,
        wait: wait_name(options.engine.wait),
        messages: options.block() * BLOCKS,
        median: Block {
            bare_tenths: of(|block| block.bare_tenths),
            ring_tenths: of(|block| block.ring_tenths),
            core_per_second: of(|block| block.core_per_second),
            session_per_second: of(|block| block.session_per_second),
            brief_per_second: of(|block| block.brief_per_second),
            terse_per_second: of(|block| block.terse_per_second),
        },
        ring_to_bare: median_ratio(blocks().map(|block| (block.bare_tenths, block.ring_tenths))),
        session_to_core: to_core(|block| block.session_per_second),
        brief_to_core: to_core(|block| block.brief_per_second),
        terse_to_core: to_core(|block| block.terse_per_second),
        goals: goals(&runs),
        runs,
    })
}

fn goals(runs: &[Vec<Block>]) -> Vec<Goal> {
    let of = |field: fn(&Block) -> u64| runs.iter().flatten().map(field);
    let far_apart = |bare: fn(&Block) -> u64| {
        far_apart(runs.iter().map(|blocks| median(blocks.iter().map(bare))))
    };
    let (core_noise, ring_noise) =
        (far_apart(|block| block.core_per_second), far_apart(|block| block.bare_tenths));
    let millions =
        |per_second| format!("{}.{:02} M/s", per_second / 1_000_000, per_second / 10_000 % 100);
    let to_core = |name: &str, field: fn(&Block) -> u64| {
        let pairs = of(field).zip(of(|block| block.core_per_second));
        Compared::beside(pairs, &millions).at_least(name, TO_CORE).unless_noise(core_noise)
    };
    // Messages per second are compared, and shown is what each takes.
    let [ring, bare] = [of(|block| block.ring_tenths), of(|block| block.bare_tenths)];
    let figures = [median(ring.clone()), median(bare.clone())].map(tenths);
    let pairs: Vec<_> = bare.zip(ring.clone()).collect();
    vec![
        to_core("session told all, to the core alone", |block| block.session_per_second),
        to_core("brief session, to the core alone", |block| block.brief_per_second),
        to_core("terse session, to the core alone", |block| block.terse_per_second),
        Goal::at_least("ring's speed, to the bare ring's".to_owned(), figures, &pairs, TO_BARE)
            .unless_noise(ring_noise),
        Compared::to_bound(ring, MESSAGE_TENTHS, &tenths)
            .at_most("a message through the ring", 100),
    ]
}

fn tenths(tenths: u64) -> String {
    format!("{}.{} ns", tenths / 10, tenths % 10)
}

fn one_run(options: &StreamOptions) -> Result<Vec<Block>> {
    let messages = options.block();
    let mut blocks = Vec::new();
    for _ in 0..BLOCKS {
        let [bare_tenths, ring_tenths] =
            [rings::bare(messages)?, rings::ours(messages)?].map(|ns| ns * 10 / messages);
        blocks.push(Block { bare_tenths, ring_tenths, ..Block::default() });
    }
    let mut sessions = [0, LOGON_BRIEF, LOGON_TERSE]
        .into_iter()
        .map(|flags| session::Session::open(&options.engine, flags))
        .collect::<Result<Vec<_>>>()?;
    let commands = usize::try_from(messages)?;
    let per_second =
        |ns: u64| (u128::from(messages) * 1_000_000_000 / u128::from(ns.max(1))) as u64;
    for session in &sessions {
        session.pause()?;
    }
    for block in &mut blocks {
        block.core_per_second = per_second(alone::block(commands)?);
        let Block { session_per_second, brief_per_second, terse_per_second, .. } = block;
        let figures = [session_per_second, brief_per_second, terse_per_second];
        for (session, figure) in sessions.iter_mut().zip(figures) {
            session.resume()?;
            *figure = per_second(session.block(commands)?);
            // An engine that writes its log on, spins or makes segments would take a core from whatever else
            // is measured.
            session.settle()?;
            session.pause()?;
        }
    }
    for session in sessions {
        session.stop()?;
    }
    Ok(blocks)
}

impl fmt::Display for StreamReport {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Block { bare_tenths, ring_tenths, core_per_second, .. } = self.median;
        writeln!(
            text,
            "many under way: {} messages of each kind per run, medians of the {BLOCKS} blocks of {} run(s), waiting {}",
            self.messages,
            self.runs.len(),
            self.wait,
        )?;
        writeln!(text, "machine: {}\nscratch: {}\n", self.machine.line(), self.scratch.line())?;
        writeln!(text, "bare ring, batches of 32      {:>14} per message", tenths(bare_tenths))?;
        writeln!(
            text,
            "ring, batches of 32           {:>14} per message   {} of the bare ring's speed",
            tenths(ring_tenths),
            ratio(self.ring_to_bare, 100),
        )?;
        writeln!(text, "core alone                    {core_per_second:>14} commands/s")?;
        let Block { session_per_second, brief_per_second, terse_per_second, .. } = self.median;
        for (name, per_second, to_core) in [
            ("session, engine, log, replies", session_per_second, self.session_to_core),
            ("the same, brief", brief_per_second, self.brief_to_core),
            ("the same, terse", terse_per_second, self.terse_to_core),
        ] {
            let to_core = ratio(to_core, 100);
            writeln!(text, "{name:<29} {per_second:>14} commands/s   {to_core} of the core alone")?;
        }
        text.write_str(&Goal::lines(&self.goals))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quicker_ring_and_more_commands_reach_more() {
        let block = |ring_tenths, terse_per_second| Block {
            bare_tenths: 60,
            ring_tenths,
            core_per_second: 10_000_000,
            session_per_second: 6_000_000,
            brief_per_second: 5_999_999,
            terse_per_second,
        };
        let told = |blocks: &[Block]| {
            let goals = goals(&[blocks.to_vec()]);
            goals.into_iter().map(|goal| goal.reached).collect::<Vec<_>>()
        };
        let is = |reached: [bool; 5]| reached.map(Some).to_vec();
        assert_eq!(told(&[block(70, 9_000_000)]), is([true, false, true, true, true]));
        // By the sums of the blocks the bare ring would be the slower one, and the ring's speed reached.
        let held_up = Block { bare_tenths: 6_000, ..block(1, 9_000_000) };
        let reached = told(&[block(101, 1), block(101, 1), held_up]);
        assert_eq!(reached, is([true, false, false, false, false]));
        // The bare ring of one run took more than three times that of the other; the core alone did not.
        let far = [vec![block(70, 1)], vec![Block { bare_tenths: 181, ..block(70, 1) }]];
        let reached: Vec<_> = goals(&far).into_iter().map(|goal| goal.reached).collect();
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(reached, [yes, no, no, None, yes]);
    }
}
