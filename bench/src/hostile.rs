//! `touchline-bench hostile`: round trips of an honest client's orders with and without a hostile client
//! beside it, over shared memory and over TCP.
//!
//! An order is sent when it is due and its time counts from then; in between the client sleeps for the most part.
//! On a machine of few cores whoever is busy takes a core from somebody, whatever the engine does. So blocks
//! alternate: orders alone, orders beside a thread that only computes, and orders beside each kind of vandal,
//! which harms a plain server in some blocks and the engine in others. What a vandal costs is told against the
//! orders alone, and against the thread that computes; what of it the kernel and the vandal's own thread cost, and
//! no engine, by the same harm done elsewhere.

mod goals;
mod plain;
mod vandal;

use std::fmt::Write as _;
use std::net::TcpListener;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use touchline_protocol::client::Endpoint;

use crate::cores::Pinned;
use crate::engine::{Engine, EngineOptions};
use crate::goal::Goal;
use crate::latency::{Distribution, Percentiles, duration, hundredths, median, median_far_ratio};
use crate::machine::{Machine, nanoseconds};
use crate::rtt::{Trader, wait_name};
use crate::scratch::Scratch;
use goals::goals;
use plain::PlainServer;
use vandal::{Beside, Targets, Vandal};

/// Blocks of each kind per run.
const BLOCKS: u32 = 5;

/// Unrecorded round trips at the begin of each block, 100 ms: threads that wait learn there who shares their cores, but
/// for the last of what they learn. What they have learnt in the block before lasts into the next.
const WARM_UP: u32 = 200;

/// From one order of the honest client to the next, most of which it sleeps. With one order behind the answer to the
/// other a block would be over before a slice of the scheduler's is, and nobody would be seen to take the client's core.
const INTERVAL: Duration = Duration::from_micros(500);

/// What is measured, over each carrier.
pub const KINDS: [&str; 7] = [
    "alone",
    "beside a busy thread",
    "beside a flood elsewhere",
    "beside a flood",
    "beside a flood unread",
    "beside knocks elsewhere",
    "beside knocks and nonsense",
];

/// The vandals.
pub const VANDALS: [&str; 2] = ["the flood", "the knocks"];

/// Where each vandal stands in [`KINDS`]: at a plain server over TCP, and at the engine over the carrier.
const HARM: [[usize; 2]; VANDALS.len()] = [
    [Beside::FloodElsewhere as usize, Beside::Flood as usize],
    [Beside::KnocksElsewhere as usize, Beside::Knocks as usize],
];

/// The carriers.
pub const CARRIERS: [&str; 2] = ["shared memory", "TCP"];

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct HostileOptions {
    /// The engine.
    pub engine: EngineOptions,
    /// Runs, each with an engine of its own; medians over them are reported.
    pub runs: usize,
    /// Orders of each kind per run.
    pub messages: u32,
    /// The duty thread's core, which nobody else is on; of the others the vandal has only what nobody else needs. None:
    /// all of them take turns on all cores.
    pub core: Option<usize>,
    /// Commands that a session may send in a second; 0: as many as it wants.
    pub commands_per_second: u32,
}

/// Orders that rest, to their terminal replies, in [`KINDS`]' order.
pub type Kinds = [Percentiles; KINDS.len()];

/// What a vandal has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Harm {
    /// Commands to the engine whose replies were read.
    pub commands: u64,
    /// The same in a second of flooding.
    pub commands_per_second: u64,
    /// Commands to the engine whose replies were not read.
    pub unread_commands: u64,
    /// The same in a second of flooding, new connections in between included.
    pub unread_commands_per_second: u64,
    /// Messages to the plain server.
    pub messages_elsewhere: u64,
    /// The same in a second of flooding.
    pub messages_elsewhere_per_second: u64,
    /// Knocks at the engine that were answered.
    pub knocks: u64,
    /// The same in a second of knocking.
    pub knocks_per_second: u64,
    /// Knocks at the plain server that were answered.
    pub knocks_elsewhere: u64,
    /// The same in a second of knocking.
    pub knocks_elsewhere_per_second: u64,
}

impl Harm {
    /// Nobody is honest beside a vandal that did nothing.
    fn check(&self, carrier: &str) -> Result<()> {
        for (what, count) in [
            ("commands to the engine", self.commands),
            ("commands whose replies are not read", self.unread_commands),
            ("messages elsewhere", self.messages_elsewhere),
            ("knocks", self.knocks),
            ("knocks elsewhere", self.knocks_elsewhere),
        ] {
            ensure!(count > 0, "over {carrier}: no {what}, so nothing was measured beside them");
        }
        Ok(())
    }
}

/// One run, in [`CARRIERS`]' order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Run {
    /// The honest client's orders.
    pub orders: [Kinds; 2],
    /// What the vandals have done beside them.
    pub harm: [Harm; 2],
}

/// All of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct HostileReport {
    /// What it was measured on.
    pub machine: Machine,
    /// What the engine's log was written to.
    pub scratch: Scratch,
    /// `adaptive` or `spin`.
    pub wait: &'static str,
    /// As in [`HostileOptions::core`].
    pub core: Option<usize>,
    /// As in [`HostileOptions::commands_per_second`].
    pub commands_per_second: u32,
    /// Orders of each kind per run that were recorded.
    pub messages: u32,
    /// Each run.
    pub runs: Vec<Run>,
    /// Medians of the runs.
    pub median: [Kinds; 2],
    /// p99 of each kind to that beside a busy thread, medians of the runs, in hundredths; none of too few orders.
    pub p99_to_busy: [[Option<u64>; KINDS.len()]; 2],
    /// p50 likewise.
    pub p50_to_busy: [[Option<u64>; KINDS.len()]; 2],
    /// p99 of each kind to that alone, likewise.
    pub p99_to_alone: [[Option<u64>; KINDS.len()]; 2],
    /// p50 likewise.
    pub p50_to_alone: [[Option<u64>; KINDS.len()]; 2],
    /// p50 and p99 beside each vandal at the engine to those beside the same one elsewhere, likewise.
    pub to_elsewhere: [[[Option<u64>; 2]; VANDALS.len()]; 2],
    /// What is to be reached.
    pub goals: Vec<Goal>,
}

/// Measures.
///
/// # Errors
/// If the engine does not start, ends early or answers wrongly, or the run was interrupted.
pub fn run(options: &HostileOptions) -> Result<HostileReport> {
    if let Some(core) = options.core {
        // A core that cannot be had, or the only one, is told before anything is measured.
        drop(Pinned::to(Some(core))?);
        let cores = std::thread::available_parallelism()?;
        ensure!(cores.get() > 1, "there is no other core than {core}");
    }
    let mut runs = Vec::new();
    for _ in 0..options.runs {
        runs.push(one_run(options)?);
    }
    let of =
        |carrier: usize, kind: usize| runs.iter().map(move |run: &Run| run.orders[carrier][kind]);
    let each = |figure: &dyn Fn(usize, usize) -> Option<u64>| -> [[Option<u64>; KINDS.len()]; 2] {
        std::array::from_fn(|carrier| std::array::from_fn(|kind| figure(carrier, kind)))
    };
    let to = |yardstick: Beside, field: fn(&Percentiles) -> Option<u64>| {
        each(&|carrier, kind| {
            let pairs = of(carrier, kind).zip(of(carrier, yardstick as usize));
            median_far_ratio(pairs.map(|(one, beside)| (field(&one), field(&beside))))
        })
    };
    let to_elsewhere =
        |carrier: usize, harm: [usize; 2], field: fn(&Percentiles) -> Option<u64>| {
            let [elsewhere, here] = harm.map(|kind| of(carrier, kind));
            median_far_ratio(
                here.zip(elsewhere).map(|(here, elsewhere)| (field(&here), field(&elsewhere))),
            )
        };
    Ok(HostileReport {
        machine: Machine::here(),
        scratch: Scratch::of(&options.engine.scratch)?,
        wait: wait_name(options.engine.wait),
        core: options.core,
        commands_per_second: options.commands_per_second,
        messages: options.messages.div_ceil(BLOCKS) * BLOCKS,
        median: std::array::from_fn(|carrier| {
            std::array::from_fn(|kind| Percentiles::median(&of(carrier, kind).collect::<Vec<_>>()))
        }),
        p99_to_busy: to(Beside::Computing, |one| one.p99),
        p50_to_busy: to(Beside::Computing, |one| Some(one.p50)),
        p99_to_alone: to(Beside::Nothing, |one| one.p99),
        p50_to_alone: to(Beside::Nothing, |one| Some(one.p50)),
        to_elsewhere: std::array::from_fn(|carrier| {
            HARM.map(|harm| {
                [
                    to_elsewhere(carrier, harm, |one| Some(one.p50)),
                    to_elsewhere(carrier, harm, |one| one.p99),
                ]
            })
        }),
        goals: goals(&runs),
        runs,
    })
}

fn one_run(options: &HostileOptions) -> Result<Run> {
    // Somebody else may take the port before the engine does.
    let address = TcpListener::bind("127.0.0.1:0").context("no free port")?.local_addr()?;
    let per_second = options.commands_per_second;
    let mut settings =
        vec![format!("gateway.tcp={address}"), format!("engine.commands_per_second={per_second}")];
    settings.extend(options.core.map(|core| format!("engine.core={core}")));
    let engine = Engine::start_with(&options.engine, &settings)?;
    // The threads that are made below stay off it too.
    let _off = Pinned::off(options.core)?;
    let trips = options.messages.div_ceil(BLOCKS);
    let mut run = Run::default();
    for (carrier, endpoint) in [None, Some(Endpoint::Tcp(address))].into_iter().enumerate() {
        let client = engine.trader_over(endpoint.clone())?;
        let mut trader = Trader::over(client, engine.key());
        let mut distributions = [(); KINDS.len()].map(|()| Distribution::default());
        std::thread::scope(|scope| -> Result<()> {
            let plain = PlainServer::start(scope)?;
            let targets = Targets { engine: address, plain: plain.address() };
            let harmed = (engine.access().clone(), endpoint);
            let vandal = Vandal::start(scope, harmed, targets, options.core.is_some())?;
            for block in 0..BLOCKS as usize {
                // All of them, since their number is prime, and not always behind the same one.
                let stride = 1 + block % (KINDS.len() - 1);
                for at in 0..KINDS.len() {
                    let kind = (block + at * stride) % KINDS.len();
                    vandal.set(Beside::ALL[kind])?;
                    trader.scheduled_block(WARM_UP, trips, INTERVAL, &mut distributions[kind])?;
                }
            }
            run.harm[carrier] = vandal.harm();
            run.harm[carrier].check(CARRIERS[carrier])
        })?;
        run.orders[carrier] = distributions.map(|distribution| distribution.percentiles());
    }
    engine.stop()?;
    Ok(run)
}

impl HostileReport {
    /// Several lines of text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!(
            "orders beside hostile clients: {} round trips of each kind per run, one each {}, median of {} run(s), \
             waiting {}{}{}\nmachine: {}\nscratch: {}\n",
            self.messages,
            duration(nanoseconds(INTERVAL)),
            self.runs.len(),
            self.wait,
            if self.core.is_some() { ", duty thread and vandal apart from the others" } else { "" },
            match self.commands_per_second {
                0 => String::new(),
                per_second => format!(", {per_second} commands/s of a session at the most"),
            },
            self.machine.line(),
            self.scratch.line(),
        );
        for (carrier, name) in CARRIERS.into_iter().enumerate() {
            let harm = |what: fn(&Harm) -> u64| {
                median(self.runs.iter().map(|run| what(&run.harm[carrier])))
            };
            // Writing to a String cannot fail.
            let _infallible = writeln!(
                text,
                "\nover {name}; vandals sent {} commands at {}/s, {} unread ones at {}/s, and {} messages elsewhere \
                 at {}/s;\nthey knocked {} times at {}/s, and {} times elsewhere at {}/s\n\
                 {:<28}{}   to alone: p50    p99   to busy: p50    p99",
                harm(|harm| harm.commands),
                harm(|harm| harm.commands_per_second),
                harm(|harm| harm.unread_commands),
                harm(|harm| harm.unread_commands_per_second),
                harm(|harm| harm.messages_elsewhere),
                harm(|harm| harm.messages_elsewhere_per_second),
                harm(|harm| harm.knocks),
                harm(|harm| harm.knocks_per_second),
                harm(|harm| harm.knocks_elsewhere),
                harm(|harm| harm.knocks_elsewhere_per_second),
                "",
                Percentiles::HEADING,
            );
            for (kind, name) in KINDS.into_iter().enumerate() {
                let _infallible = writeln!(
                    text,
                    "{name:<28}{}   {:>13} {:>6}   {:>12} {:>6}",
                    self.median[carrier][kind].columns(),
                    hundredths(self.p50_to_alone[carrier][kind]),
                    hundredths(self.p99_to_alone[carrier][kind]),
                    hundredths(self.p50_to_busy[carrier][kind]),
                    hundredths(self.p99_to_busy[carrier][kind]),
                );
            }
            for (vandal, ratios) in VANDALS.into_iter().zip(self.to_elsewhere[carrier]) {
                let [p50, p99] = ratios.map(hundredths);
                let _infallible =
                    writeln!(text, "{vandal} at the engine to elsewhere: p50 {p50}, p99 {p99}");
            }
        }
        text.push_str(&Goal::lines(&self.goals));
        text
    }
}
