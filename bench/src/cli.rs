//! The command line: arguments, help and exit codes. Called by the executable.

mod jobs;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand, ValueEnum};
use serde::Serialize;
use touchline_adapter::front::FrontKind;
use touchline_engine::huge_pages::use_huge_pages;
use touchline_protocol::causes::with_causes;
use touchline_protocol::wait::WaitStrategy;

use crate::core::engines::EngineKind;
use crate::core::growth::{self, GrowthOptions};
use crate::core::{self, CoreOptions, FlowKind, plot};
use crate::engine::EngineOptions;
use crate::feed::{self, FeedOptions};
use crate::history::{self, HistoryOptions};
use crate::hostile::{self, HostileOptions};
use crate::log::{self, LogOptions};
use crate::records::{self, RecordsOptions};
use crate::replay::{self, ReplayOptions};
use crate::rest::{self, RestOptions};
use crate::rtt::{self, PeerKind, RttOptions};
use crate::stream::{self, StreamOptions};
use crate::tcp::{self, TcpOptions};
use crate::{child, interrupt};

const EXIT_CODES: &str = "Exit codes: 0 all well, 1 a check failed, 2 it could not be run, \
                          130 interrupted.";

/// Measurements of Touchline against a real engine process.
#[derive(Parser, Debug)]
#[command(name = "touchline-bench", version, after_help = EXIT_CODES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Replay recorded exchange order flow, check every outcome and the book, and time it
    #[command(after_help = REPLAY_HELP)]
    Replay(ReplayArguments),
    /// Measure the order book alone against other order books
    #[command(after_help = CORE_HELP)]
    Core(CoreArguments),
    /// Measure round trips through an engine beside a bare ring and a bare cache line
    #[command(after_help = RTT_HELP)]
    Rtt(RttArguments),
    /// Measure round trips of orders with and without a flood of record writes beside them
    Records(RecordsArguments),
    /// Measure orders over loopback TCP beside plain echoes of the same bytes
    #[command(after_help = TCP_HELP)]
    Tcp(TcpArguments),
    /// Measure orders with and without a client beside them that does what harm it can
    #[command(after_help = HOSTILE_HELP)]
    Hostile(HostileArguments),
    /// Measure what readers of the public feed cost the duty thread, and how late they are
    #[command(after_help = FEED_HELP)]
    Feed(FeedArguments),
    /// Measure how much passes per second, through the ring and through a session
    #[command(after_help = stream::HELP)]
    Stream(StreamArguments),
    /// Measure the log: appending, making durable, replaying, verifying, each beside the bare thing
    #[command(after_help = LOG_HELP)]
    Log(LogArguments),
    /// Measure the adapter's history: ingestion as its store grows, pages while events arrive
    #[command(after_help = HISTORY_HELP)]
    History(HistoryArguments),
    /// Measure signed orders over REST beside the same HTTP front with a constant answer
    #[command(after_help = REST_HELP)]
    Rest(RestArguments),
    /// Measure the jobs service: jobs of many users made over REST, a long list, a restart
    #[command(after_help = jobs::HELP)]
    Jobs(jobs::Arguments),
    #[command(hide = true, name = rest::constant::SUBCOMMAND)]
    RestConstant { front: FrontKind },
    #[command(hide = true, name = child::SUBCOMMAND, trailing_var_arg = true)]
    Child {
        parent: i32,
        #[arg(allow_hyphen_values = true)]
        program: Vec<OsString>,
    },
    #[command(hide = true)]
    RttPeer { kind: PeerKind },
}

const REPLAY_HELP: &str = "\
Rows become commands: 1 LIMIT GTC, 2 reduction, 3 cancel, 4 opposite LIMIT IOC that must hit exactly
the recorded order, 5 and 7 none. Rows about orders that no row introduced are skipped and counted.
An execution out of price-time order is taken from the named order directly and counted by cause.

The top of book after each row is rebuilt from the engine's replies alone. Distinct states (both
sides present, other than the one before) are matched with the recorded ones by the longest common
subsequence. The recorded file is cut where the completed flow ends best.

The completed flow is a second pass with what the recording itself reveals: orders that no row
introduced (later rows tell their price, side and size; their number tells when they came), and
orders that left the recorded depth and are never mentioned again (removed there, unseen). A
difference of the first pass is explained only if one of the two changes the top of book where it is,
and only differences that the second pass does not have any more are explained at all. The rest is
`other`.

Exit code 1 if `other` is not 0, a command had an unexpected outcome, the engine's book differs from
the independent price-time book after any row, or a measured pass had other events.";

const CORE_HELP: &str = "\
Every engine gets the same operations; its fills, their hash and the final depth are checked before its
time counts. All engines run once before any runs again; medians over the rounds are printed. `textbook`
is ours too: the plain fast design, to be judged against. Exit code 1 if Touchline or it came to wrong
results.";

const RTT_HELP: &str = "\
Per run, blocks of all kinds alternate: a bare cache line with a sequence word between two spinning
processes, a 64-byte message through the ring to an echoing process, and a LIMIT order that rests and
its cancel through a real engine. Ratios are taken within a run; medians over the runs are printed.";

const TCP_HELP: &str = "\
T is an echo by one thread over a standard TCP socket; T2 the same with a second thread behind a pair of
rings. The engine's orders are a sell that rests and a buy that takes it, in turn. Messages are sent when
they are due, and times count from then. Ratios are taken within a run; medians over the runs are printed.
Gateway and duty thread are two threads and the client is a third: with fewer than three cores free they
take each other's.";

const HOSTILE_HELP: &str = "\
Blocks of four kinds alternate over each carrier: orders alone, beside a thread that only computes, beside
a client that sends what is rejected and never reads, and beside one that knocks, says nonsense and is shown
the door. On a machine of few cores whoever is busy takes a core from somebody, whatever the engine does; so
the third and the fourth count against the second. Ratios are taken within a run.";

const FEED_HELP: &str = "\
The cost is taken in this process, by the engine's own parts: with --core N the duty thread is on core N and
all others are off it. Blocks without a feed, with a feed and no reader, one and eight readers alternate.
Three blocks of each per run. Readers are threads that sleep until there is something. The lag is a real engine's, one order at a time,
seen by a client that waits for the reply and then for the message.";

const LOG_HELP: &str = "\
No engine process runs: writer, keeper, recovery and verification are the engine's own, on logs in a
temporary folder (some 700 MB) with the live window in shared memory. In each round

  append     a 128-byte command with the 160 bytes of events of a resting order is compared with a copy
             of the same bytes and their crc32c into a mapped file of shared memory; the keeper sleeps
  writer     records of 128 bytes are appended at 500,000 per second, with the keeper held before its
             next write, and with the keeper writing and a client waiting; times count from when a
             record was due
  durable    from when a record was due to when that client was woken, in multiples of D, the median of
             bare O_DIRECT|O_DSYNC writes of 4 KiB; right behind it the same disk is written to without
             a log on the same schedule, whatever is due in one write: what the machine allows
  attainable 128-byte records per second that are durable, to the lesser of those that are appended
             with no disk behind the log and those that the bare disk takes in bytes, by 2 MiB writes
  replay     a log of limit orders and cancels through recovery, to the core alone on its commands
  verify     the same log's files in the page cache, to reading them

Medians over the rounds are printed. A goal that is missed does not change the exit code: figures of a
busy machine are no check. Exit code 2 if what was written is not what is found.";

const REST_HELP: &str = "\
Three servers get the same signed orders in turn, block by block: the front with a constant answer of 400
bytes, and a whole venue each that answers when an order is appended and when it is durable. CPU is that
of the serving process (front and adapter; the engine is a process of its own), while each connection
sends as fast as it is answered. Latencies are taken at a scheduled rate, from when a request was due.
With --front may the constant answer and the appended orders are measured on that front too. All ratios are
to the constant answer on hyper.";

const HISTORY_HELP: &str = "\
No process but this one runs; fold, store, tailer, writer and handlers are the adapter's own, on a made-up
log. First one thread folds it and writes each batch, synced, until the store has so many rows: a line per
million. Then the adapter's threads follow the log at a steady rate, while pages are asked for, one after
the other, and timed from the call of the handler to its reply, JSON included. Events are those of the log:
two of an order that comes to rest, one of a cancel, three of an order that takes.";

#[derive(clap::Args, Debug)]
struct HistoryArguments {
    /// Folder for the temporary store, on the disk that is to be measured [default: the system's]
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
    /// Millions of rows that the store grows to
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1000))]
    millions: u64,
    /// Events per second that arrive while pages are read
    #[arg(long, default_value_t = 50_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    rate: u64,
    /// Pages of each kind
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pages: u32,
    /// Print one line of JSON instead of text: durations in ns
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args, Debug)]
struct RestArguments {
    /// The executable touchline [default: beside this one]
    #[arg(long, value_name = "PATH")]
    engine: Option<PathBuf>,
    /// Folder for temporary data folders [default: the system's]
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
    /// Measured runs, whose medians are printed
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    runs: u16,
    /// Requests of each block
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    requests: u32,
    /// Kept connections
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    connections: u16,
    /// Requests per second of the scheduled blocks
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    rate: u32,
    /// Further connections that send nothing or a byte now and then; 0 leaves that part out
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u16).range(0..=20_000))]
    bystanders: u16,
    /// may: measure the second front beside the first, in the same runs
    #[arg(long, value_name = "NAME", default_value = "hyper")]
    front: FrontKind,
    /// Print one line of JSON instead of text: durations in ns, ratios in hundredths
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args, Debug)]
struct LogArguments {
    /// Folder for temporary logs, on the disk that is to be measured [default: the system's]
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
    /// Rounds, whose medians are printed
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Commands of the log that is replayed and verified
    #[arg(long, value_name = "N", default_value_t = 1_000_000,
          value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    commands: u32,
    /// Pin the writer to this core while it appends on schedule, and keep the log's other threads
    /// off it, as engine.core does;
    /// best one that takes no interrupts of the disk
    #[arg(long, value_name = "N")]
    core: Option<usize>,
    /// Keep large blocks of memory on small pages, as engine.huge_pages = false does
    #[arg(long)]
    small_pages: bool,
    /// Print one line of JSON instead of text: durations in ns, ratios in hundredths
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args, Debug)]
struct EngineArguments {
    /// The executable touchline [default: beside this one]
    #[arg(long, value_name = "PATH")]
    engine: Option<PathBuf>,
    /// Folder for temporary data folders [default: the system's]
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
    /// How the engine and this side wait
    #[arg(long, value_enum, default_value_t = Wait::Adaptive)]
    wait: Wait,
    /// Measured runs, whose medians are printed; 0 leaves only the checks
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Print one line of JSON instead of text: durations in ns, ratios in hundredths
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args, Debug)]
struct ReplayArguments {
    /// Recorded messages: CSV or gzip of it
    file: PathBuf,
    /// Recorded top-of-book states [default: the only file named *top-of-book* beside FILE]
    #[arg(long, value_name = "FILE")]
    top_of_book: Option<PathBuf>,
    /// Best price levels per side that the recording covers
    #[arg(long, value_name = "LEVELS", default_value_t = 50)]
    depth: usize,
    /// Commands per second of the scheduled pass, or max to leave it out
    #[arg(long, value_name = "N|max", default_value = "50000", value_parser = rate)]
    rate: Rate,
    #[command(flatten)]
    engine: EngineArguments,
}

#[derive(clap::Args, Debug)]
struct RttArguments {
    /// Round trips of each kind per run
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    messages: u32,
    /// Measure the two baselines only
    #[arg(long, conflicts_with = "engine")]
    no_engine: bool,
    #[command(flatten)]
    engine: EngineArguments,
}

#[derive(clap::Args, Debug)]
struct RecordsArguments {
    /// Orders of each kind per run
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    messages: u32,
    #[command(flatten)]
    engine: EngineArguments,
}

#[derive(clap::Args, Debug)]
struct TcpArguments {
    /// Messages of each kind per run
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    messages: u32,
    /// Messages per second
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    rate: u32,
    #[command(flatten)]
    engine: EngineArguments,
}

#[derive(clap::Args, Debug)]
struct HostileArguments {
    /// Orders of each kind per run
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    messages: u32,
    #[command(flatten)]
    engine: EngineArguments,
}

#[derive(clap::Args, Debug)]
struct FeedArguments {
    /// The duty thread's core; without it all threads run anywhere
    #[arg(long, value_name = "N")]
    core: Option<usize>,
    /// Orders whose messages are waited for, over each carrier
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    messages: u32,
    #[command(flatten)]
    engine: EngineArguments,
}

#[derive(clap::Args, Debug)]
struct StreamArguments {
    /// Messages of each kind per run
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    messages: u32,
    #[command(flatten)]
    engine: EngineArguments,
}

#[derive(clap::Args, Debug)]
struct CoreArguments {
    /// Only these flows [default: all]
    #[arg(long, value_enum)]
    flow: Vec<FlowKind>,
    /// Only these engines [default: all]
    #[arg(long, value_enum)]
    engine: Vec<EngineKind>,
    /// Interleaved rounds
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// Measured operations per flow; bursts have twice as many
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(64..=100_000_000))]
    operations: u32,
    /// Recorded messages for the flow `recorded`: CSV or gzip of it
    #[arg(long, value_name = "FILE")]
    recording: Option<PathBuf>,
    /// Instead: cost per command from 1 k to 10 M resting orders, 1 to 4,096 symbols and 10 to 1 M
    /// accounts
    #[arg(long, conflicts_with_all = ["flow", "engine", "recording"])]
    growth: bool,
    /// With --growth: leave out larger sizes
    #[arg(long, value_name = "SIZE", default_value_t = u32::MAX, requires = "growth")]
    largest: u32,
    /// With --growth: write the curves to this SVG file
    #[arg(long, value_name = "FILE", requires = "growth")]
    plot: Option<PathBuf>,
    /// Keep large blocks on small pages, for all engines
    #[arg(long)]
    small_pages: bool,
    /// Print one line of JSON instead of text: durations in ps per operation
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Wait {
    /// Pause, yield, then sleep
    Adaptive,
    /// Never give the core away
    Spin,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Rate(Option<u32>);

fn rate(text: &str) -> Result<Rate, String> {
    if text == "max" {
        return Ok(Rate(None));
    }
    match text.parse() {
        Ok(rate @ 1..=100_000_000) => Ok(Rate(Some(rate))),
        _ => Err("expected max or a number from 1 to 100000000".to_owned()),
    }
}

/// Parses the command line and does what it says.
#[must_use]
pub fn main() -> ExitCode {
    use_huge_pages(true);
    match run(Arguments::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(_) if interrupt::is_interrupted() => {
            eprintln!("touchline-bench: interrupted");
            ExitCode::from(130)
        }
        Err(error) => {
            eprintln!("touchline-bench: {}", with_causes(error.as_ref()));
            ExitCode::from(2)
        }
    }
}

/// True if all checks passed.
fn run(command: Command) -> Result<bool> {
    match command {
        Command::Child { parent, program } => match child::become_program(parent, &program)? {},
        Command::RestConstant { front } => rest::constant::serve(front).map(|()| true),
        Command::Rest(arguments) => {
            interrupt::watch()?;
            run_rest(arguments)
        }
        Command::History(arguments) => {
            interrupt::watch()?;
            run_history(arguments)
        }
        Command::Jobs(arguments) => {
            interrupt::watch()?;
            jobs::run(arguments)
        }
        Command::RttPeer { kind } => rtt::serve(kind).map(|()| true),
        Command::Replay(arguments) => {
            interrupt::watch()?;
            run_replay(arguments)
        }
        Command::Core(arguments) => {
            interrupt::watch()?;
            run_core(arguments)
        }
        Command::Rtt(arguments) => {
            interrupt::watch()?;
            run_rtt(&arguments)
        }
        Command::Records(arguments) => {
            interrupt::watch()?;
            run_records(&arguments)
        }
        Command::Tcp(arguments) => {
            interrupt::watch()?;
            run_tcp(&arguments)
        }
        Command::Hostile(arguments) => {
            interrupt::watch()?;
            run_hostile(&arguments)
        }
        Command::Feed(arguments) => {
            interrupt::watch()?;
            run_feed(&arguments)
        }
        Command::Stream(arguments) => {
            interrupt::watch()?;
            run_stream(&arguments)
        }
        Command::Log(arguments) => {
            interrupt::watch()?;
            run_log(arguments)
        }
    }
}

fn run_replay(arguments: ReplayArguments) -> Result<bool> {
    let top_of_book = match arguments.top_of_book {
        Some(path) => path,
        None => replay::top_of_book_beside(&arguments.file)?,
    };
    let report = replay::run(&ReplayOptions {
        messages: arguments.file,
        top_of_book,
        recorded_depth: arguments.depth,
        engine: arguments.engine.options()?,
        rate: arguments.rate.0,
        runs: arguments.engine.runs,
    })?;
    if arguments.engine.json {
        println!("{}", report.json()?);
    } else {
        print!("{}", report.text());
    }
    Ok(report.passed())
}

fn run_core(arguments: CoreArguments) -> Result<bool> {
    let all_if_none = |flows: Vec<FlowKind>| {
        if flows.is_empty() { FlowKind::value_variants().to_vec() } else { flows }
    };
    if arguments.small_pages {
        use_huge_pages(false);
    }
    if arguments.growth {
        return run_growth(&arguments);
    }
    let engines = arguments.engine;
    let report = core::run(&CoreOptions {
        flows: all_if_none(arguments.flow),
        engines: if engines.is_empty() { EngineKind::ALL.to_vec() } else { engines },
        rounds: usize::from(arguments.rounds),
        operations: arguments.operations as usize,
        recording: arguments.recording,
    })?;
    show(arguments.json, &report, || report.text())?;
    Ok(report.passed())
}

fn run_growth(arguments: &CoreArguments) -> Result<bool> {
    let report = growth::run(&GrowthOptions {
        rounds: usize::from(arguments.rounds),
        operations: arguments.operations as usize,
        largest: arguments.largest,
    })?;
    show(arguments.json, &report, || report.text())?;
    if let Some(file) = &arguments.plot {
        std::fs::write(file, plot::svg(&report)).with_context(|| file.display().to_string())?;
    }
    Ok(true)
}

fn run_rtt(arguments: &RttArguments) -> Result<bool> {
    let engine = if arguments.no_engine { None } else { Some(arguments.engine.options()?) };
    let report = rtt::run(&RttOptions {
        engine,
        wait: arguments.engine.wait.into(),
        runs: arguments.engine.runs,
        messages: arguments.messages,
    })?;
    show(arguments.engine.json, &report, || report.text())?;
    Ok(true)
}

fn run_records(arguments: &RecordsArguments) -> Result<bool> {
    let report = records::run(&RecordsOptions {
        engine: arguments.engine.options()?,
        runs: arguments.engine.runs,
        messages: arguments.messages,
    })?;
    show(arguments.engine.json, &report, || report.text())?;
    Ok(true)
}

fn run_tcp(arguments: &TcpArguments) -> Result<bool> {
    let report = tcp::run(&TcpOptions {
        engine: arguments.engine.options()?,
        runs: arguments.engine.runs,
        messages: arguments.messages,
        rate: arguments.rate,
    })?;
    show(arguments.engine.json, &report, || report.text())?;
    Ok(true)
}

fn run_hostile(arguments: &HostileArguments) -> Result<bool> {
    let report = hostile::run(&HostileOptions {
        engine: arguments.engine.options()?,
        runs: arguments.engine.runs,
        messages: arguments.messages,
    })?;
    show(arguments.engine.json, &report, || report.text())?;
    Ok(true)
}

/// Blocks of each kind that `feed` makes for each of its runs.
const BLOCKS_PER_RUN: usize = 3;

fn run_feed(arguments: &FeedArguments) -> Result<bool> {
    let report = feed::run(&FeedOptions {
        engine: arguments.engine.options()?,
        blocks: arguments.engine.runs * BLOCKS_PER_RUN,
        core: arguments.core,
        messages: arguments.messages,
    })?;
    show(arguments.engine.json, &report, || report.text())?;
    Ok(true)
}

fn run_stream(arguments: &StreamArguments) -> Result<bool> {
    let (engine, runs) = (arguments.engine.options()?, arguments.engine.runs);
    let report = stream::run(&StreamOptions { engine, runs, messages: arguments.messages })?;
    show(arguments.engine.json, &report, || report.to_string())?;
    Ok(true)
}

fn run_log(arguments: LogArguments) -> Result<bool> {
    if arguments.small_pages {
        use_huge_pages(false);
    }
    let report = log::run(&LogOptions {
        scratch: arguments.scratch.unwrap_or_else(std::env::temp_dir),
        rounds: arguments.rounds.try_into()?,
        commands: arguments.commands.try_into()?,
        core: arguments.core,
    })?;
    show(arguments.json, &report, || report.text())?;
    Ok(true)
}

fn run_rest(arguments: RestArguments) -> Result<bool> {
    let report = rest::run(&RestOptions {
        executable: executable(arguments.engine.as_deref())?,
        scratch: arguments.scratch.unwrap_or_else(std::env::temp_dir),
        runs: arguments.runs.into(),
        requests: arguments.requests,
        connections: arguments.connections.into(),
        rate: arguments.rate,
        bystanders: arguments.bystanders.into(),
        front: arguments.front,
    })?;
    show(arguments.json, &report, || report.text())?;
    Ok(true)
}

fn run_history(arguments: HistoryArguments) -> Result<bool> {
    let report = history::run(&HistoryOptions {
        scratch: arguments.scratch.unwrap_or_else(std::env::temp_dir),
        millions: arguments.millions,
        rate: arguments.rate,
        pages: arguments.pages,
    })?;
    show(arguments.json, &report, || report.to_string())?;
    Ok(true)
}

/// Prints a report as one line of JSON, or as text.
fn show(as_json: bool, report: &impl Serialize, text: impl FnOnce() -> String) -> Result<()> {
    if as_json {
        println!("{}", serde_json::to_string(report)?);
    } else {
        print!("{}", text());
    }
    Ok(())
}

/// The executable `touchline`: the one that was named, or the one beside this.
fn executable(named: Option<&Path>) -> Result<PathBuf> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => std::env::current_exe()?.with_file_name("touchline"),
    };
    path.canonicalize().with_context(|| {
        format!("no engine at {}: build it, or name it by --engine", path.display())
    })
}

impl EngineArguments {
    fn options(&self) -> Result<EngineOptions> {
        let executable = executable(self.engine.as_deref())?;
        let scratch = self.scratch.clone().unwrap_or_else(std::env::temp_dir);
        Ok(EngineOptions { executable, scratch, wait: self.wait.into() })
    }
}

impl From<Wait> for WaitStrategy {
    fn from(wait: Wait) -> Self {
        match wait {
            Wait::Adaptive => Self::Adaptive,
            Wait::Spin => Self::Spin,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_fit_together() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn rates_are_numbers_or_max() {
        assert_eq!(rate("max"), Ok(Rate(None)));
        assert_eq!(rate("1000"), Ok(Rate(Some(1000))));
        for wrong in ["0", "-1", "", "1e5", "100000001"] {
            assert!(rate(wrong).is_err(), "{wrong:?}");
        }
    }
}
