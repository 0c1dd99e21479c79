//! `touchline-bench tcp`: order to matched to appended to reply over loopback TCP, through a real engine
//! with each of the gateway's backends, beside what the same bytes cost without an engine, in the same run.
//!
//! T is an echo by one thread over a standard TCP socket, which spins. T2 is an echo whose socket thread hands each
//! message through a ring to a second thread and gets it back over another, as a gateway must; its threads wait as the
//! engine's do, and sleep where those do. What a look at a socket for nothing costs is another thing there than in a
//! gateway, so there are two of it, one whose thread looks as often as the gateway's before it gives its core away and one
//! that does not: T2 is whichever of both is the quicker one in a run. Messages are sent when they are due, whether or
//! not the last one is answered, and times count from when each was due. Blocks of all kinds alternate, each over a connection of its own;
//! an engine that is not measured is halted meanwhile, because it would take a core from what is.

mod echo;
mod goals;
mod line;

use std::fmt::Write as _;
use std::net::TcpListener;

use anyhow::{Context, Result};
use serde::Serialize;
use touchline_engine::config::GatewayBackend;
use touchline_engine::gateway::time_idle_looks;
use touchline_engine::host;
use touchline_protocol::client::Endpoint;
use touchline_protocol::wait::WaitStrategy;

use crate::engine::{Engine, EngineOptions};
use crate::goal::Goal;
use crate::latency::{Distribution, Percentiles, hundredths, median, median_far_ratio, ratio};
use crate::machine::{Machine, nanoseconds};
use crate::rtt::wait_name;
use crate::scratch::Scratch;
use echo::{Echo, EchoKind, SOCKET_LOOKS};
use goals::{goals, quicker_t2};
use line::{EchoLine, OrderLine};

/// Blocks of each kind per run.
const BLOCKS: u32 = 10;

/// Looks at idle sockets per run.
const LOOKS: u32 = 1_000_000;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct TcpOptions {
    /// The engine.
    pub engine: EngineOptions,
    /// Runs; medians over them are reported.
    pub runs: usize,
    /// Messages of each kind per run.
    pub messages: u32,
    /// Messages per second.
    pub rate: u32,
}

/// What is measured: baselines, then ours.
pub const KINDS: [&str; 6] = [
    "T: spinning echo",
    "T2, looks as ours",
    "T2, looks once",
    "engine, epoll",
    "engine, io_uring",
    "engine, shm",
];

/// Latencies of one kind, in [`KINDS`]' order.
pub type Run = [Percentiles; KINDS.len()];

/// All of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TcpReport {
    /// What it was measured on.
    pub machine: Machine,
    /// What the engine's log was written to.
    pub scratch: Scratch,
    /// `adaptive` or `spin`.
    pub wait: &'static str,
    /// Messages of each kind per run.
    pub messages: u32,
    /// Messages per second.
    pub rate: u32,
    /// Each run.
    pub runs: Vec<Run>,
    /// Medians of the runs.
    pub median: Run,
    /// p50 of each kind to that of T, medians of the runs, in hundredths.
    pub p50_to_t: [u64; KINDS.len()],
    /// p50 of each kind to that of the run's quicker T2, medians of the runs, in hundredths.
    pub p50_to_t2: [u64; KINDS.len()],
    /// p99 of each kind to that of T2, likewise; none of too few messages.
    pub p99_to_t2: [Option<u64>; KINDS.len()],
    /// One look of a spinning gateway at sockets to which nothing happens, by backend: tenths of ns, median
    /// of the runs.
    pub idle_look: Vec<(&'static str, u64)>,
    /// Why io_uring is refused here, if it is: an engine that was told to take it has taken epoll.
    pub io_uring_refused: Option<String>,
    /// What is to be reached.
    pub goals: Vec<Goal>,
}

/// Measures.
///
/// # Errors
/// If the engine does not start or answers wrongly, or the run was interrupted.
pub fn run(options: &TcpOptions) -> Result<TcpReport> {
    let mut runs = Vec::new();
    for _ in 0..options.runs {
        runs.push(one_run(options)?);
    }
    let to = |beside: fn(&Run) -> Percentiles, field: fn(&Percentiles) -> Option<u64>| {
        let pair = move |run: &Run, kind: usize| (field(&run[kind]), field(&beside(run)));
        let runs = &runs;
        move |kind| median_far_ratio(runs.iter().map(|run| pair(run, kind)))
    };
    let p50_to = |beside| {
        let to = to(beside, |one| Some(one.p50));
        move |kind| to(kind).unwrap_or_default()
    };
    let kinds: [usize; KINDS.len()] = std::array::from_fn(|kind| kind);
    let idle_look = idle_looks(options.runs)?;
    let machine = Machine::here();
    let io_uring_refused = host::try_io_uring().err().map(|error| error.to_string());
    let goals = goals(&runs, &idle_look, (machine.cores, io_uring_refused.is_some()));
    Ok(TcpReport {
        machine,
        scratch: Scratch::of(&options.engine.scratch)?,
        wait: wait_name(options.engine.wait),
        messages: options.messages.div_ceil(BLOCKS).next_multiple_of(2) * BLOCKS,
        rate: options.rate,
        median: kinds
            .map(|kind| Percentiles::median(&runs.iter().map(|run| run[kind]).collect::<Vec<_>>())),
        p50_to_t: kinds.map(p50_to(|run| run[0])),
        p50_to_t2: kinds.map(p50_to(quicker_t2)),
        p99_to_t2: kinds.map(to(quicker_t2, |one| one.p99)),
        idle_look,
        io_uring_refused,
        goals,
        runs,
    })
}

fn idle_looks(runs: usize) -> Result<Vec<(&'static str, u64)>> {
    let mut found = Vec::new();
    for wanted in [GatewayBackend::Epoll, GatewayBackend::Auto] {
        let mut tenths = Vec::new();
        let mut name = "";
        for _ in 0..runs {
            let (backend, took) = time_idle_looks(wanted, LOOKS)?;
            name = backend;
            tenths.push(nanoseconds(took) * 10 / u64::from(LOOKS));
        }
        found.push((name, median(tenths)));
    }
    Ok(found)
}

/// What is measured, in [`KINDS`]' order: no other one takes a core from one that is.
enum Subject {
    Echo(Echo),
    /// Over TCP, or over shared memory.
    Engine(usize, Option<Endpoint>),
}

fn one_run(options: &TcpOptions) -> Result<Run> {
    let wait = options.engine.wait;
    let mut engines = Vec::new();
    let mut subjects = Vec::new();
    for (kind, wait) in [
        (EchoKind::Direct, WaitStrategy::Spin),
        (EchoKind::ByRing { looks: SOCKET_LOOKS }, wait),
        (EchoKind::ByRing { looks: 0 }, wait),
    ] {
        subjects.push(Subject::Echo(Echo::start(kind, wait)?));
    }
    for backend in ["epoll", "io_uring"] {
        let address = free_address()?;
        let engine = Engine::start_with(&options.engine, &settings(backend, &address, wait))?;
        engine.pause()?;
        subjects.push(Subject::Engine(engines.len(), Some(Endpoint::Tcp(address.parse()?))));
        engines.push(engine);
    }
    subjects.push(Subject::Engine(engines.len() - 1, None));
    let mut distributions = [(); KINDS.len()].map(|()| Distribution::default());
    let messages = options.messages.div_ceil(BLOCKS).next_multiple_of(2);
    let measured = (0..BLOCKS).try_for_each(|_| {
        let mut kinds = subjects.iter().zip(&mut distributions);
        kinds.try_for_each(|(subject, into)| {
            block(subject, &engines, (messages, options.rate), into)
        })
    });
    let ended = subjects.into_iter().try_for_each(|subject| match subject {
        Subject::Echo(echo) => echo.stop(),
        Subject::Engine(..) => Ok(()),
    });
    both(measured, ended)?;
    for engine in engines {
        engine.resume()?;
        engine.stop()?;
    }
    Ok(distributions.map(|distribution| distribution.percentiles()))
}

/// One block over a connection of its own.
fn block(
    subject: &Subject,
    engines: &[Engine],
    (messages, rate): (u32, u32),
    into: &mut Distribution,
) -> Result<()> {
    match subject {
        Subject::Echo(echo) => EchoLine::connect(echo.address())?.block(messages, rate, into),
        Subject::Engine(at, endpoint) => {
            let engine = &engines[*at];
            engine.resume()?;
            let client = engine.trader_over(endpoint.clone())?;
            let measured = OrderLine::over(client, engine.key()).block(messages, rate, into);
            engine.pause()?;
            measured
        }
    }
}

/// Of an echo that failed its line knows only that it has closed its socket.
fn both(line: Result<()>, echo: Result<()>) -> Result<()> {
    match (line, echo) {
        (Err(line), Err(echo)) => Err(line.context(format!("the echo failed: {echo:#}"))),
        (line, echo) => line.and(echo),
    }
}

/// An address on which nobody listens; somebody else may take it before the engine does.
fn free_address() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").context("no free port")?;
    Ok(listener.local_addr()?.to_string())
}

fn settings(backend: &str, address: &str, wait: WaitStrategy) -> [String; 3] {
    [
        format!("gateway.tcp={address}"),
        format!("gateway.backend={backend}"),
        format!("gateway.wait={}", wait_name(wait)),
    ]
}

impl TcpReport {
    /// Several lines of text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!(
            "order, matched, appended, reply over loopback TCP: {} messages of each kind per run at {} per \
             second,\nfrom when each was due, median of {} run(s), waiting {}\nmachine: {}\nscratch: {}\n\n{:<20}{}   \
             p50 to T   p50 to T2   p99 to T2\n",
            self.messages,
            self.rate,
            self.runs.len(),
            self.wait,
            self.machine.line(),
            self.scratch.line(),
            "",
            Percentiles::HEADING,
        );
        for (kind, name) in KINDS.into_iter().enumerate() {
            // Writing to a String cannot fail.
            let _infallible = writeln!(
                text,
                "{name:<20}{}   {:>8}   {:>9}   {:>9}",
                self.median[kind].columns(),
                ratio(self.p50_to_t[kind], 100),
                ratio(self.p50_to_t2[kind], 100),
                hundredths(self.p99_to_t2[kind]),
            );
        }
        if let Some(why) = &self.io_uring_refused {
            let _infallible =
                writeln!(text, "io_uring is refused here ({why}): what has its name is epoll's");
        }
        for (backend, tenths) in &self.idle_look {
            let _infallible = writeln!(
                text,
                "a look at idle sockets, {backend}: {}.{} ns",
                tenths / 10,
                tenths % 10
            );
        }
        text.push_str(&Goal::lines(&self.goals));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;
    use touchline_protocol::causes::with_causes;

    #[test]
    fn why_an_echo_failed_is_told() {
        let failed = |why: &'static str| Err(anyhow!(why));
        let told = both(failed("reset"), failed("the ring is full")).unwrap_err();
        assert_eq!(with_causes(told.as_ref()), "the echo failed: the ring is full: reset");
        assert_eq!(both(failed("silence"), Ok(())).unwrap_err().to_string(), "silence");
        assert_eq!(both(Ok(()), failed("panic")).unwrap_err().to_string(), "panic");
        assert!(both(Ok(()), Ok(())).is_ok());
    }
}
