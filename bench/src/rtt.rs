//! `touchline-bench rtt`: round trips through a real engine beside two baselines of the same run, a
//! bare cache line and a bare ring between two processes. [`crate::replay`] takes the baselines too.
//!
//! The cores of a virtual machine move nearer and farther without notice, so what counts are ratios
//! within a run. Blocks of all kinds alternate many times per run; the begin of each block, while
//! both sides wake up, is not recorded. One clock reading is in every figure alike.
//!
//! The ring of the second baseline is ours, so what makes that slower makes orders slower with it: the goal is told
//! for both baselines.

mod echo;
mod hop;
mod orders;
mod peer;
mod ping_pong;

use std::fmt::Write as _;

use anyhow::Result;
use serde::Serialize;
use touchline_protocol::message::command::{LOGON_BRIEF, LOGON_TERSE};
use touchline_protocol::wait::WaitStrategy;

use crate::engine::{Engine, EngineOptions};
use crate::latency::{Distribution, Percentiles, median_ratio, ratio};
use crate::machine::Machine;

use hop::Hop;
pub(crate) use orders::Trader;
pub use peer::{PeerKind, serve};

/// Most sessions beside those that are measured: a key has 32, and four of them are.
pub const IDLE_SESSIONS_MAX: i64 = 28;

/// Blocks of each kind per run.
const BLOCKS: u32 = 20;

/// Unrecorded round trips at the begin of each block.
const WARM_UP: u32 = 64;

/// The two baselines, each with a process of its own that sleeps between blocks.
pub struct Baselines {
    ping_pong: ping_pong::PingPong,
    echo: echo::Echo,
}

impl Baselines {
    /// Starts both processes.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn start(wait: WaitStrategy) -> Result<Self> {
        Ok(Self { ping_pong: ping_pong::PingPong::start()?, echo: echo::Echo::start(wait)? })
    }

    /// One block of each: `trips` round trips into the two distributions.
    ///
    /// # Errors
    /// If a process is gone or the run was interrupted.
    pub fn block(
        &mut self,
        trips: u32,
        bare: &mut Distribution,
        ring: &mut Distribution,
    ) -> Result<()> {
        self.ping_pong.block(WARM_UP, trips, bare)?;
        self.echo.block(WARM_UP, trips, ring)
    }
}

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct RttOptions {
    /// The engine, or none for the baselines alone.
    pub engine: Option<EngineOptions>,
    /// How the ring's two sides wait.
    pub wait: WaitStrategy,
    /// Runs; medians over them are reported.
    pub runs: usize,
    /// Round trips of each kind per run.
    pub messages: u32,
    /// Sessions that send nothing, beside those that are measured.
    pub idle_sessions: u32,
}

/// One run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Run {
    /// A cache line with a sequence word in shared memory, both sides spinning.
    pub bare: Percentiles,
    /// 64 bytes through the ring and back.
    pub ring: Percentiles,
    /// A LIMIT order that rests, to its terminal reply.
    pub order: Option<Percentiles>,
    /// The same in a brief session: the result alone, without the acceptance in front of it.
    pub brief: Option<Percentiles>,
    /// The same in a terse session: short order and short reply.
    pub terse: Option<Percentiles>,
    /// Its cancel, to its terminal reply.
    pub cancel: Option<Percentiles>,
    /// The same in a terse session.
    pub terse_cancel: Option<Percentiles>,
    /// An order that rests, by way of a thread between client and engine; where nobody spins for ever.
    pub hop: Option<Percentiles>,
}

/// What the round trips of one session took.
#[derive(Default)]
struct Trips {
    orders: Distribution,
    cancels: Distribution,
}

/// All of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RttReport {
    /// What it was measured on.
    pub machine: Machine,
    /// `adaptive` or `spin`.
    pub wait: &'static str,
    /// Round trips of each kind per run that were recorded.
    pub messages: u32,
    /// Sessions that sent nothing, beside those that were measured.
    pub idle_sessions: u32,
    /// Each run.
    pub runs: Vec<Run>,
    /// Medians of the runs.
    pub median: Run,
    /// Medians of the runs' ratios of p50, in hundredths.
    pub ratios: Ratios,
    /// What orders take beyond the baselines.
    pub goals: Vec<Goal>,
}

/// How an order compares with its goal: p50 at most 250 ns beyond 1.1 baselines, p99 at most 2 p50.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Goal {
    /// Which session's orders.
    pub session: &'static str,
    /// p50 beyond 1.1 bare cache lines, ns: the median of the runs' own; below 0 it is faster.
    pub beyond_bare_ns: i64,
    /// p50 beyond 1.1 of our rings, ns, likewise.
    pub beyond_ring_ns: i64,
    /// p99 to p50, in hundredths, likewise.
    pub p99_to_p50: u64,
}

/// Beyond 1.1 baselines a p50 may be so much, ns.
const GOAL_BEYOND_NS: i64 = 250;

/// A p99 may be so many hundredths of the p50.
const GOAL_P99: u64 = 200;

/// Ratios of medians within a run, in hundredths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Ratios {
    /// Ring to bare cache line.
    pub ring_to_bare: u64,
    /// Order to bare cache line.
    pub order_to_bare: u64,
    /// Order to ring.
    pub order_to_ring: u64,
    /// Order in a brief session to bare cache line.
    pub brief_to_bare: u64,
    /// Order in a brief session to ring.
    pub brief_to_ring: u64,
    /// Order in a terse session to bare cache line.
    pub terse_to_bare: u64,
    /// Order in a terse session to ring.
    pub terse_to_ring: u64,
    /// Cancel to bare cache line.
    pub cancel_to_bare: u64,
    /// Cancel to ring.
    pub cancel_to_ring: u64,
    /// Cancel in a terse session to bare cache line.
    pub terse_cancel_to_bare: u64,
    /// Cancel in a terse session to ring.
    pub terse_cancel_to_ring: u64,
    /// Order by a thread in between to bare cache line.
    pub hop_to_bare: u64,
    /// Order by a thread in between to ring.
    pub hop_to_ring: u64,
}

/// Measures.
///
/// # Errors
/// If a process does not start, ends early or answers wrongly, or the run was interrupted.
pub fn run(options: &RttOptions) -> Result<RttReport> {
    let mut baselines = Baselines::start(options.wait)?;
    let mut runs = Vec::new();
    for _ in 0..options.runs {
        runs.push(one_run(options, &mut baselines)?);
    }
    Ok(RttReport {
        machine: Machine::here(),
        wait: wait_name(options.wait),
        messages: options.messages.div_ceil(BLOCKS) * BLOCKS,
        idle_sessions: options.idle_sessions,
        median: median_run(&runs),
        ratios: ratios(&runs),
        goals: goals(&runs),
        runs,
    })
}

fn one_run(options: &RttOptions, baselines: &mut Baselines) -> Result<Run> {
    let mut session = match &options.engine {
        Some(engine) => {
            let engine = Engine::start(engine)?;
            let traders = [0, LOGON_BRIEF, LOGON_TERSE].map(|flags| Trader::open(&engine, flags));
            let [whole, brief, terse] = traders;
            let idle = (0..options.idle_sessions)
                .map(|number| engine.prompt_trader(&format!("bench-idle-{number}"), 0))
                .collect::<Result<Vec<_>>>()?;
            Some((engine, [whole?, brief?, terse?], idle))
        }
        None => None,
    };
    let [mut bare, mut ring, mut by_hop] = [(); 3].map(|()| Distribution::default());
    let [mut whole, mut brief, mut terse] = [(); 3].map(|()| Trips::default());
    let trips = options.messages.div_ceil(BLOCKS);
    for _ in 0..BLOCKS {
        match &mut session {
            // A spinning engine would take a core from the baselines.
            Some((engine, ..)) if options.wait == WaitStrategy::Spin => {
                engine.pause()?;
                let measured = baselines.block(trips, &mut bare, &mut ring);
                engine.resume()?;
                measured?;
            }
            _ => baselines.block(trips, &mut bare, &mut ring)?,
        }
        if let Some((_, traders, _)) = &mut session {
            for (trader, took) in traders.iter_mut().zip([&mut whole, &mut brief, &mut terse]) {
                trader.block(WARM_UP, trips, &mut took.orders, &mut took.cancels)?;
            }
        }
    }
    let has_engine = session.is_some();
    let has_hop = has_engine && options.wait == WaitStrategy::Adaptive;
    if let Some((engine, traders, idle)) = session {
        drop((traders, idle));
        if has_hop {
            // Behind all others: a third thread moves theirs to other cores.
            let mut hop = Hop::start(&engine, options.wait)?;
            hop.block(WARM_UP, options.messages, &mut by_hop)?;
            hop.stop()?;
        }
        engine.stop()?;
    }
    Ok(Run {
        bare: bare.percentiles(),
        ring: ring.percentiles(),
        order: has_engine.then(|| whole.orders.percentiles()),
        brief: has_engine.then(|| brief.orders.percentiles()),
        terse: has_engine.then(|| terse.orders.percentiles()),
        // A brief session is told of a cancel as the whole one is.
        cancel: has_engine.then(|| whole.cancels.percentiles()),
        terse_cancel: has_engine.then(|| terse.cancels.percentiles()),
        hop: has_hop.then(|| by_hop.percentiles()),
    })
}

/// The setting's name.
#[must_use]
pub const fn wait_name(wait: WaitStrategy) -> &'static str {
    match wait {
        WaitStrategy::Adaptive => "adaptive",
        WaitStrategy::Spin => "spin",
    }
}

fn median_run(runs: &[Run]) -> Run {
    let of = |field: fn(&Run) -> Option<Percentiles>| {
        let all: Vec<Percentiles> = runs.iter().filter_map(field).collect();
        (!all.is_empty()).then(|| Percentiles::median(&all))
    };
    Run {
        bare: of(|run| Some(run.bare)).unwrap_or_default(),
        ring: of(|run| Some(run.ring)).unwrap_or_default(),
        order: of(|run| run.order),
        brief: of(|run| run.brief),
        terse: of(|run| run.terse),
        cancel: of(|run| run.cancel),
        terse_cancel: of(|run| run.terse_cancel),
        hop: of(|run| run.hop),
    }
}

/// One session's orders of a run.
type OfOrders = fn(&Run) -> Option<Percentiles>;

fn goals(runs: &[Run]) -> Vec<Goal> {
    let sessions: [(&str, OfOrders); 3] =
        [("told all", |run| run.order), ("brief", |run| run.brief), ("terse", |run| run.terse)];
    let of = |(session, order): (_, OfOrders)| {
        let beyond = |baseline: fn(&Run) -> Percentiles| {
            let one = |run| Some(order(run)?.p50 as i64 - baseline(run).p50 as i64 * 11 / 10);
            let mut all: Vec<i64> = runs.iter().filter_map(one).collect();
            all.sort_unstable();
            Some(all.get(all.len().checked_sub(1)? / 2)?.midpoint(*all.get(all.len() / 2)?))
        };
        let far = |run| order(run).map(|order| (order.p99, order.p50));
        Some(Goal {
            session,
            beyond_bare_ns: beyond(|run| run.bare)?,
            beyond_ring_ns: beyond(|run| run.ring)?,
            p99_to_p50: median_ratio(runs.iter().filter_map(far)),
        })
    };
    sessions.into_iter().filter_map(of).collect()
}

fn ratios(runs: &[Run]) -> Ratios {
    let of = |numerator: fn(&Run) -> Option<Percentiles>, denominator: fn(&Run) -> Percentiles| {
        let pair = |run| Some((numerator(run)?.p50, denominator(run).p50));
        median_ratio(runs.iter().filter_map(pair))
    };
    Ratios {
        ring_to_bare: of(|run| Some(run.ring), |run| run.bare),
        order_to_bare: of(|run| run.order, |run| run.bare),
        order_to_ring: of(|run| run.order, |run| run.ring),
        brief_to_bare: of(|run| run.brief, |run| run.bare),
        brief_to_ring: of(|run| run.brief, |run| run.ring),
        terse_to_bare: of(|run| run.terse, |run| run.bare),
        terse_to_ring: of(|run| run.terse, |run| run.ring),
        cancel_to_bare: of(|run| run.cancel, |run| run.bare),
        cancel_to_ring: of(|run| run.cancel, |run| run.ring),
        terse_cancel_to_bare: of(|run| run.terse_cancel, |run| run.bare),
        terse_cancel_to_ring: of(|run| run.terse_cancel, |run| run.ring),
        hop_to_bare: of(|run| run.hop, |run| run.bare),
        hop_to_ring: of(|run| run.hop, |run| run.ring),
    }
}

impl RttReport {
    /// Several lines of text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!(
            "round trips between two processes: {} of each kind per run, median of {} run(s), \
             waiting {}, beside {} idle session(s)\nmachine: {}\n\n{:<22}{}   p50 to bare   to our ring\n",
            self.messages,
            self.runs.len(),
            self.wait,
            self.idle_sessions,
            self.machine.line(),
            "",
            Percentiles::HEADING,
        );
        let (of, to) = (self.median, self.ratios);
        let rows = [
            ("bare cache line", Some(of.bare), 100, 0),
            ("our ring", Some(of.ring), to.ring_to_bare, 100),
            ("engine: order", of.order, to.order_to_bare, to.order_to_ring),
            ("engine: order, brief", of.brief, to.brief_to_bare, to.brief_to_ring),
            ("engine: order, terse", of.terse, to.terse_to_bare, to.terse_to_ring),
            ("order by a hop", of.hop, to.hop_to_bare, to.hop_to_ring),
            ("engine: cancel", of.cancel, to.cancel_to_bare, to.cancel_to_ring),
            (
                "engine: cancel, terse",
                of.terse_cancel,
                to.terse_cancel_to_bare,
                to.terse_cancel_to_ring,
            ),
        ];
        for (name, percentiles, to_bare, to_ring) in rows {
            let Some(percentiles) = percentiles else { continue };
            let to_ring = if to_ring == 0 { String::new() } else { ratio(to_ring, 100) };
            // Writing to a String cannot fail.
            let _infallible = writeln!(
                text,
                "{name:<22}{}   {:>11}   {to_ring:>11}",
                percentiles.columns(),
                ratio(to_bare, 100),
            );
        }
        self.goal_lines(&mut text);
        text
    }

    fn goal_lines(&self, text: &mut String) {
        let verdict = |is_reached| if is_reached { "reached" } else { "missed" };
        for Goal { session, beyond_bare_ns, beyond_ring_ns, p99_to_p50 } in &self.goals {
            // Writing to a String cannot fail.
            let _infallible = writeln!(
                text,
                "order, {session}: p50 beyond 1.1 bare {beyond_bare_ns} ns, {}; beyond 1.1 of our rings \
                 {beyond_ring_ns} ns, {} (<= {GOAL_BEYOND_NS} ns); p99 to p50 {}, {} (<= {})",
                verdict(*beyond_bare_ns <= GOAL_BEYOND_NS),
                verdict(*beyond_ring_ns <= GOAL_BEYOND_NS),
                ratio(*p99_to_p50, 100),
                verdict(*p99_to_p50 <= GOAL_P99),
                ratio(GOAL_P99, 100),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_medians_of_the_runs_own() {
        let run = |bare, order| Run {
            bare: Percentiles { p50: bare, ..Default::default() },
            ring: Percentiles { p50: 2 * bare, ..Default::default() },
            order: Some(Percentiles { p50: order, ..Default::default() }),
            ..Run::default()
        };
        // Near cores, far cores, near cores: the ratio hardly moves although the figures do.
        let runs = [run(100, 1000), run(500, 4500), run(100, 1100)];
        let ratios = ratios(&runs);
        assert_eq!((ratios.ring_to_bare, ratios.order_to_bare), (200, 1000));
        assert_eq!((ratios.order_to_ring, ratios.cancel_to_bare), (500, 0));
        let goals = goals(&runs);
        assert_eq!(goals.len(), 1, "of what was measured");
        assert_eq!((goals[0].beyond_bare_ns, goals[0].beyond_ring_ns), (990, 880));
        let median = median_run(&runs);
        assert_eq!((median.bare.p50, median.cancel), (100, None));
    }
}
