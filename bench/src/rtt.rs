//! `touchline-bench rtt`: round trips through a real engine beside two baselines of the same run, a
//! bare cache line and a bare ring between two processes. [`crate::replay`] takes the baselines too.
//!
//! The cores of a virtual machine move nearer and farther without notice, so what counts are ratios
//! within a run. Blocks of all kinds alternate many times per run; the begin of each block, while
//! both sides wake up, is not recorded. One clock reading is in every figure alike.
//!
//! Orders go one at a time, each behind the reply to the one before; those that are judged go on a schedule, too, and
//! their time counts from when each was due, so that a stall is felt by all that it holds up.
//!
//! The ring of the second baseline is ours, so what makes that slower makes orders slower with it: the goal is told
//! for both baselines. It is told of orders that take one which rests, as an order that is matched does; what an order
//! takes that only rests, in an empty book, stands beside it.

mod echo;
mod goals;
mod hop;
mod orders;
mod peer;
mod ping_pong;
mod report;

use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use touchline_protocol::client::Client;
use touchline_protocol::message::command::{LOGON_BRIEF, LOGON_TERSE};
use touchline_protocol::message::enums::Side;
use touchline_protocol::wait::WaitStrategy;

use crate::engine::{Engine, EngineOptions};
use crate::latency::{Distribution, Percentiles};
use crate::scratch::Scratch;

pub use goals::{Judged, SessionGoal, ToGoal};
use hop::Hop;
pub(crate) use orders::Trader;
pub use peer::{PeerKind, serve};
pub use report::{Ratios, RttReport};

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
    /// Orders per second, at least 1, of those that go on a schedule.
    pub rate: u32,
}

impl RttOptions {
    /// From one order to the next, of those.
    fn interval(&self) -> Duration {
        Duration::from_secs(1) / self.rate.max(1)
    }
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
    /// A LIMIT order that takes one of another account, to its terminal reply.
    pub order_takes: Option<Percentiles>,
    /// The same in a brief session.
    pub brief_takes: Option<Percentiles>,
    /// The same in a terse session.
    pub terse_takes: Option<Percentiles>,
    /// An order that takes one, on a schedule, from when it was due.
    pub order_takes_due: Option<Percentiles>,
    /// The same in a brief session.
    pub brief_takes_due: Option<Percentiles>,
    /// The same in a terse session.
    pub terse_takes_due: Option<Percentiles>,
    /// The cancel of one that rests, to its terminal reply.
    pub cancel: Option<Percentiles>,
    /// The same in a terse session: short reply.
    pub terse_cancel: Option<Percentiles>,
    /// An order that rests, by way of a thread between client and engine; where nobody spins for ever.
    pub hop: Option<Percentiles>,
    /// The same on a schedule, from when it was due.
    pub hop_due: Option<Percentiles>,
}

/// A session and what its round trips took.
struct Measured {
    trader: Trader,
    orders: Distribution,
    cancels: Distribution,
    takes: Distribution,
    takes_due: Distribution,
}

impl Measured {
    fn open(engine: &Engine, flags: u8) -> Result<Self> {
        let trader = Trader::open(engine, flags)?;
        let [orders, cancels, takes, takes_due] = [(); 4].map(|()| Distribution::default());
        Ok(Self { trader, orders, cancels, takes, takes_due })
    }

    /// One block of each kind; sides change from block to block, so that nobody runs out of anything.
    fn block(
        &mut self,
        maker: &mut Trader,
        number: u32,
        trips: u32,
        interval: Duration,
    ) -> Result<()> {
        let Self { trader, orders, cancels, takes, takes_due } = self;
        trader.block(WARM_UP, trips, orders, cancels)?;
        let side = if number.is_multiple_of(2) { Side::Buy } else { Side::Sell };
        trader.taking_block(maker, side, (WARM_UP, trips), None, takes)?;
        trader.taking_block(maker, side, (WARM_UP, trips), Some(interval), takes_due)
    }
}

/// An engine with the sessions that are measured, and those beside them.
struct Sessions {
    engine: Engine,
    /// Told all, brief and terse.
    measured: [Measured; 3],
    /// Places what the others take, in an account of its own; told all.
    maker: Trader,
    idle: Vec<Client>,
}

impl Sessions {
    fn open(options: &EngineOptions, idle: u32) -> Result<Self> {
        let engine = Engine::start(options)?;
        let measured = [0, LOGON_BRIEF, LOGON_TERSE].map(|flags| Measured::open(&engine, flags));
        let [whole, brief, terse] = measured;
        let measured = [whole?, brief?, terse?];
        let access = engine.another_account("bench-maker")?;
        let maker = Trader::over(access.prompt_trader("bench-maker", 0)?, access.key());
        let idle = (0..idle)
            .map(|number| engine.prompt_trader(&format!("bench-idle-{number}"), 0))
            .collect::<Result<Vec<_>>>()?;
        Ok(Self { engine, measured, maker, idle })
    }

    fn block(&mut self, number: u32, trips: u32, interval: Duration) -> Result<()> {
        let maker = &mut self.maker;
        self.measured.iter_mut().try_for_each(|one| one.block(maker, number, trips, interval))
    }

    /// Ends the sessions, takes round trips by way of another thread, and ends the engine. Gives what there is to tell.
    fn end(self, options: &RttOptions) -> Result<Run> {
        let Self { engine, measured, maker, idle } = self;
        let [whole, brief, terse] =
            measured.map(|Measured { orders, cancels, takes, takes_due, .. }| {
                [orders, cancels, takes, takes_due].map(|one| Some(one.percentiles()))
            });
        drop((maker, idle));
        // A third thread beside two that spin would wait for a core.
        let by_hop = (options.wait == WaitStrategy::Adaptive)
            .then(|| {
                // Behind all others: a third thread moves theirs to other cores.
                let mut into = [(); 2].map(|()| Distribution::default());
                let mut hop = Hop::start(&engine, options.wait)?;
                let schedules = [None, Some(options.interval())];
                for (interval, into) in schedules.into_iter().zip(&mut into) {
                    hop.block((WARM_UP, options.messages), interval, into)?;
                }
                hop.stop()?;
                anyhow::Ok(into.map(|one| one.percentiles()))
            })
            .transpose()?;
        engine.stop()?;
        let [order, cancel, order_takes, order_takes_due] = whole;
        // A brief session is told of a cancel as the whole one is.
        let [brief, _, brief_takes, brief_takes_due] = brief;
        let [terse, terse_cancel, terse_takes, terse_takes_due] = terse;
        Ok(Run {
            order,
            brief,
            terse,
            order_takes,
            brief_takes,
            terse_takes,
            order_takes_due,
            brief_takes_due,
            terse_takes_due,
            cancel,
            terse_cancel,
            hop: by_hop.map(|[hop, _]| hop),
            hop_due: by_hop.map(|[_, due]| due),
            ..Run::default()
        })
    }
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
    let scratch = options.engine.as_ref().map(|engine| Scratch::of(&engine.scratch)).transpose()?;
    Ok(RttReport::new(options, scratch, runs))
}

fn one_run(options: &RttOptions, baselines: &mut Baselines) -> Result<Run> {
    let open = |engine| Sessions::open(engine, options.idle_sessions);
    let mut sessions = options.engine.as_ref().map(open).transpose()?;
    let [mut bare, mut ring] = [(); 2].map(|()| Distribution::default());
    let trips = options.messages.div_ceil(BLOCKS);
    for number in 0..BLOCKS {
        match &mut sessions {
            // A spinning engine would take a core from the baselines.
            Some(Sessions { engine, .. }) if options.wait == WaitStrategy::Spin => {
                engine.pause()?;
                let measured = baselines.block(trips, &mut bare, &mut ring);
                engine.resume()?;
                measured?;
            }
            _ => baselines.block(trips, &mut bare, &mut ring)?,
        }
        if let Some(sessions) = &mut sessions {
            sessions.block(number, trips, options.interval())?;
        }
    }
    let of_orders = match sessions {
        Some(sessions) => sessions.end(options)?,
        None => Run::default(),
    };
    Ok(Run { bare: bare.percentiles(), ring: ring.percentiles(), ..of_orders })
}

/// The setting's name.
#[must_use]
pub const fn wait_name(wait: WaitStrategy) -> &'static str {
    match wait {
        WaitStrategy::Adaptive => "adaptive",
        WaitStrategy::Spin => "spin",
    }
}
