//! `touchline-bench stream`: how much passes per second where many things are under way. Messages of 64 bytes
//! through the ring, beside a bare ring that publishes in batches; orders and cancels pipelined over one
//! session into a real engine, beside the core alone on the same commands. Blocks of a kind and of what it is
//! compared with alternate; an engine stands still while none of its own is measured, with all on disk that it has
//! decided.

mod alone;
mod commands;
mod rings;
mod session;

use std::fmt;

use anyhow::Result;
use serde::Serialize;
use touchline_protocol::message::command::{LOGON_BRIEF, LOGON_TERSE};

use crate::engine::EngineOptions;
use crate::goal::{Compared, Goal};
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
others are measured. Neither core nor session is timed before it has done 65,536 commands.";

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

/// One run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Run {
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
    /// Each run.
    pub runs: Vec<Run>,
    /// Medians of the runs.
    pub median: Run,
    /// Messages per second through our ring to those through the bare one, median of the runs, hundredths.
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
    let of = |field: fn(&Run) -> u64| median(runs.iter().map(field));
    let to_core = |field: fn(&Run) -> u64| {
        median_ratio(runs.iter().map(|run| (field(run), run.core_per_second)))
    };
    Ok(StreamReport {
        machine: Machine::here(),
        scratch: Scratch::of(&options.engine.scratch)?,
        wait: wait_name(options.engine.wait),
        messages: options.block() * BLOCKS,
        median: Run {
            bare_tenths: of(|run| run.bare_tenths),
            ring_tenths: of(|run| run.ring_tenths),
            core_per_second: of(|run| run.core_per_second),
            session_per_second: of(|run| run.session_per_second),
            brief_per_second: of(|run| run.brief_per_second),
            terse_per_second: of(|run| run.terse_per_second),
        },
        ring_to_bare: median_ratio(runs.iter().map(|run| (run.bare_tenths, run.ring_tenths))),
        session_to_core: to_core(|run| run.session_per_second),
        brief_to_core: to_core(|run| run.brief_per_second),
        terse_to_core: to_core(|run| run.terse_per_second),
        goals: goals(&runs),
        runs,
    })
}

fn goals(runs: &[Run]) -> Vec<Goal> {
    let of = |field: fn(&Run) -> u64| runs.iter().map(field);
    let millions =
        |per_second| format!("{}.{:02} M/s", per_second / 1_000_000, per_second / 10_000 % 100);
    let to_core = |name: &str, field: fn(&Run) -> u64| {
        let pairs = runs.iter().map(|run| (field(run), run.core_per_second));
        Compared::beside(pairs, &millions).at_least(name, TO_CORE)
    };
    // Messages per second are compared, and shown is what each takes.
    let [ring, bare] = [of(|run| run.ring_tenths), of(|run| run.bare_tenths)];
    let figures = [median(ring.clone()), median(bare.clone())].map(tenths);
    let pairs: Vec<_> = bare.zip(ring.clone()).collect();
    vec![
        to_core("session told all, to the core alone", |run| run.session_per_second),
        to_core("brief session, to the core alone", |run| run.brief_per_second),
        to_core("terse session, to the core alone", |run| run.terse_per_second),
        Goal::at_least("ring's speed, to the bare ring's".to_owned(), figures, &pairs, TO_BARE),
        Compared::to_bound(ring, MESSAGE_TENTHS, &tenths)
            .at_most("a message through the ring", 100),
    ]
}

fn tenths(tenths: u64) -> String {
    format!("{}.{} ns", tenths / 10, tenths % 10)
}

fn one_run(options: &StreamOptions) -> Result<Run> {
    let messages = options.block();
    let (mut bare_ns, mut ring_ns) = (0, 0);
    for _ in 0..BLOCKS {
        bare_ns += rings::bare(messages)?;
        ring_ns += rings::ours(messages)?;
    }
    let mut core_ns = 0;
    let mut took_ns = [0; 3];
    let mut sessions = [0, LOGON_BRIEF, LOGON_TERSE]
        .into_iter()
        .map(|flags| session::Session::open(&options.engine, flags))
        .collect::<Result<Vec<_>>>()?;
    let commands = usize::try_from(messages)?;
    for session in &sessions {
        session.pause()?;
    }
    for _ in 0..BLOCKS {
        core_ns += alone::block(commands)?;
        for (session, took_ns) in sessions.iter_mut().zip(&mut took_ns) {
            session.resume()?;
            *took_ns += session.block(commands)?;
            // An engine that writes its log on, spins or makes segments would take a core from whatever else
            // is measured.
            session.settle()?;
            session.pause()?;
        }
    }
    for session in sessions {
        session.stop()?;
    }
    let [session_ns, brief_ns, terse_ns] = took_ns;
    let all = messages * BLOCKS;
    let per_second = |ns: u64| (u128::from(all) * 1_000_000_000 / u128::from(ns.max(1))) as u64;
    Ok(Run {
        bare_tenths: bare_ns * 10 / all,
        ring_tenths: ring_ns * 10 / all,
        core_per_second: per_second(core_ns),
        session_per_second: per_second(session_ns),
        brief_per_second: per_second(brief_ns),
        terse_per_second: per_second(terse_ns),
    })
}

impl fmt::Display for StreamReport {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Run { bare_tenths, ring_tenths, core_per_second, .. } = self.median;
        writeln!(
            text,
            "many under way: {} messages of each kind per run, median of {} run(s), waiting {}",
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
        let Run { session_per_second, brief_per_second, terse_per_second, .. } = self.median;
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
        let run = |ring_tenths, terse_per_second| Run {
            bare_tenths: 60,
            ring_tenths,
            core_per_second: 10_000_000,
            session_per_second: 6_000_000,
            brief_per_second: 5_999_999,
            terse_per_second,
        };
        let told = |runs: &[Run]| goals(runs).into_iter().map(|goal| goal.reached).collect();
        let is = |reached: [bool; 5]| reached.map(Some).to_vec();
        let reached: Vec<_> = told(&[run(70, 9_000_000)]);
        assert_eq!(reached, is([true, false, true, true, true]));
        let reached: Vec<_> = told(&[run(101, 1), run(101, 1), run(1, 9_000_000)]);
        assert_eq!(reached, is([true, false, false, false, false]));
    }
}
