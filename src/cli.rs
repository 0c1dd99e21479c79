//! The command line: what can be asked of the executable, and the help texts.

mod admin;

pub(crate) use admin::{AdminAction, AdminArguments, Movement, SymbolAction, SymbolSettings};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Parser, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;
use touchline_adapter::front::FrontKind;

/// The version, and the number of the sources that it is built of.
const VERSION: &str =
    concat!(env!("CARGO_PKG_VERSION"), " (sources ", env!("TOUCHLINE_SOURCES"), ")");

/// A trading venue in a box.
///
/// Without a subcommand it runs `up`: the engine and the REST adapter, on a demo venue if the data
/// folder is new.
#[derive(Parser, Debug)]
#[command(version = VERSION, args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) up: UpArguments,
}

/// The arguments of this process; what is wrong with them ends it.
pub(crate) fn parse() -> Arguments {
    Arguments::try_parse().unwrap_or_else(|error| with_tip(error).exit())
}

/// Tells of options in front of a subcommand, which are those of `up` alone, where they belong.
fn with_tip(mut error: clap::Error) -> clap::Error {
    if let (ErrorKind::ArgumentConflict, Some(ContextValue::String(subcommand))) =
        (error.kind(), error.get(ContextKind::InvalidSubcommand))
    {
        let tip = format!("options stand behind the subcommand: touchline {subcommand} --data DIR");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Run engine and adapter, restart what dies, end both on Ctrl-C (the default). Exit code 1: they cannot
    /// run, or the engine has not ended in order
    ///
    /// If the engine has died and is not back when the end comes, or has to be killed, what was acknowledged may
    /// be in the live window alone: start the venue, wait for `ready`, and end it before its folder is copied.
    Up(UpArguments),
    /// Run the matching engine alone
    Engine(EngineArguments),
    /// Run the REST adapter alone, beside an engine on the same data folder
    Adapter(AdapterArguments),
    /// Operate a running venue: accounts, money, API keys, symbols, fees, the kill switch
    Admin(AdminArguments),
    /// Look at a venue's log: info, verify, dump, diff, replay; snapshot it, prune it
    Log(LogArguments),
    /// Look at this machine: what it can do for a venue and what could be better. Exit code 3: one will
    /// not run here, or not serve REST
    ///
    /// Of a venue that is there it looks at the settings, its keys, which segments and snapshots there are, how far they
    /// and the leases say that the log goes, and what else lies in the data folder. Of a pruned log it reads the history
    /// as a start of the adapter does. It does not look at the bytes of the log, which `log verify` does, nor at
    /// whether limits were set to less than what the venue has in use, which only a start finds.
    Doctor(DoctorArguments),
}

#[derive(Args, Debug, Clone)]
pub(crate) struct DataArguments {
    /// Data folder; made if it does not exist
    #[arg(long, value_name = "DIR", default_value = "./touchline-data")]
    pub(crate) data: PathBuf,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct SettingsArguments {
    /// Settings and, for a new data folder, the venue's definition, 256 MiB at the most; without it the demo venue
    #[arg(long, value_name = "venue.toml")]
    pub(crate) config: Option<PathBuf>,
    /// Set one key of venue.toml, such as engine.wait=spin; may be given again
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct FrontArguments {
    /// Address of the REST API; port 0 takes a free one, which is printed
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    pub(crate) http: SocketAddr,
    /// Prefix of the API's own headers, such as X-SVC in X-SVC-APIKEY
    #[arg(long, value_name = "PREFIX")]
    pub(crate) header_prefix: Option<String>,
    /// HTTP server: hyper, or may, for trusted networks and measurements only
    #[arg(long, value_name = "NAME")]
    pub(crate) front: Option<FrontKind>,
}

/// What a start of the engine is allowed to go on from, at the operator's word.
#[derive(Args, Debug, Clone, Copy)]
pub(crate) struct StartArguments {
    /// Open a damaged log by dropping what lies behind the damage; what was dropped is printed
    #[arg(long)]
    pub(crate) accept_loss: bool,
    /// Start although the clock shows much less than the log's last time
    #[arg(long)]
    pub(crate) allow_clock_behind: bool,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct UpArguments {
    #[command(flatten)]
    pub(crate) data: DataArguments,
    #[command(flatten)]
    pub(crate) start: StartArguments,
    #[command(flatten)]
    pub(crate) front: FrontArguments,
    #[command(flatten)]
    pub(crate) settings: SettingsArguments,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct EngineArguments {
    #[command(flatten)]
    pub(crate) data: DataArguments,
    #[command(flatten)]
    pub(crate) settings: SettingsArguments,
    #[command(flatten)]
    pub(crate) start: StartArguments,
    /// Begin no new venue: there was one here
    #[arg(long, hide = true)]
    pub(crate) must_exist: bool,
    /// What --config is a copy of
    #[arg(long, hide = true, value_name = "PATH")]
    pub(crate) config_name: Option<PathBuf>,
    /// End when this parent process dies
    #[arg(long, hide = true, value_name = "PID")]
    pub(crate) supervised: Option<i32>,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct AdapterArguments {
    /// Data folder of the engine; where there is none yet it waits for the engine's first start
    #[arg(long, value_name = "DIR", default_value = "./touchline-data")]
    pub(crate) data: PathBuf,
    #[command(flatten)]
    pub(crate) front: FrontArguments,
    #[command(flatten)]
    pub(crate) settings: SettingsArguments,
    /// End when this parent process dies
    #[arg(long, hide = true, value_name = "PID")]
    pub(crate) supervised: Option<i32>,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct DoctorArguments {
    /// Data folder, or where one is to be; a file is written into it, or into the nearest folder above it
    /// that there is, and removed again
    #[arg(long, value_name = "DIR", default_value = "./touchline-data")]
    pub(crate) data: PathBuf,
    #[command(flatten)]
    pub(crate) settings: SettingsArguments,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct LogArguments {
    /// Data folder
    #[arg(long, global = true, value_name = "DIR", default_value = "./touchline-data")]
    pub(crate) data: PathBuf,
    /// Print one JSON object instead of text, state one a line; dump prints JSON lines always
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) action: LogAction,
}

#[derive(Subcommand, Debug, Clone)]
pub(crate) enum LogAction {
    /// Which log it is, what it holds and how it ends. Exit code 3: damaged, or its beginning is missing and no
    /// snapshot stands for it
    Info,
    /// Check every durable frame and segment header; names the first bad one. Exit code 3: damaged, or its
    /// beginning is missing and no snapshot stands for it
    ///
    /// All of a frame is checked by its checksum, and so are the fields of each segment's header; each snapshot is
    /// read to its end. What fills a header up to 4096 bytes, a frame up to the next multiple of 64, and a window
    /// segment behind its last frame carries nothing: no reader looks at it, and neither does this.
    Verify,
    /// Print transactions as JSON lines. Exit code 3: the log is damaged behind them, or, without --from, its
    /// beginning is missing and no snapshot stands for it
    Dump(DumpArguments),
    /// Find the first transaction at which two logs part. Exit code 3: they do, or one is damaged
    ///
    /// Of one log and a pruned copy of it what lies behind the later beginning is compared, which is told.
    Diff {
        /// Data folder of the other log
        other: PathBuf,
    },
    /// Apply every command again and compare every event; behind the oldest snapshot where the beginning was pruned.
    /// Exit code 3: this build decides otherwise, the log is damaged, or its beginning is missing and no snapshot
    /// stands for it
    Replay {
        /// Stop in front of this position, which cannot be before the oldest snapshot of a log that was pruned
        #[arg(long, value_name = "POSITION")]
        until: Option<u64>,
    },
    /// Print what the venue is: assets, symbols, accounts with their balances, keys; one line each
    ///
    /// As of what is on disk, beside a running engine or without one. It is reckoned from the newest snapshot that is
    /// whole and the log behind it, and needs the memory that the venue itself takes. With --json each line is an
    /// object. Exit code 3: the log is damaged, or its beginning is missing and no snapshot stands for it.
    State,
    /// Make a snapshot of what is durable, beside a running engine or without one
    ///
    /// The next start takes its state and replays only what lies behind it. It is made from the newest
    /// snapshot that there is and the log behind that, with every event compared, and needs the memory
    /// that the venue itself takes. Exit code 3: the log is damaged, and none is made.
    Snapshot(SnapshotArguments),
    /// Remove the segments that lie wholly before the oldest snapshot, for good
    ///
    /// Every snapshot is read to its end first; without one, or if any is not whole, nothing is removed.
    /// What cannot be rebuilt any more: states before the oldest snapshot (`replay`, `dump`, `diff`), and
    /// whatever reads the log from its beginning. The REST adapter goes on from its own history, which
    /// cannot be made anew then if it is lost. What a reader holds by a lease is kept, as the adapter holds
    /// what its history does not have yet; other readers are not known, so --yes is required. All of the log is
    /// kept while there is no history, or one that a start could not go on with, and why is said.
    Prune(PruneArguments),
}

#[derive(Args, Debug, Clone)]
pub(crate) struct SnapshotArguments {
    /// How many snapshots are kept, this one included; without it as many as log.snapshots_kept of the settings
    /// says, so name here the settings that the venue is started with
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) kept: Option<u16>,
    #[command(flatten)]
    pub(crate) settings: SettingsArguments,
    /// Give way to this engine, the parent process, and end with it
    #[arg(long, hide = true, value_name = "PID")]
    pub(crate) beside: Option<i32>,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct PruneArguments {
    /// Only list what would be removed
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Remove it: a reader without a lease that still reads those segments is not asked
    #[arg(long)]
    pub(crate) yes: bool,
    /// Go by leases alone, for a venue that no adapter is to serve any more: a history that is gone, of no use or
    /// not made yet can then never be made
    #[arg(long)]
    pub(crate) without_history: bool,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct DumpArguments {
    /// From this position on; one that a dump has shown, its last `end` too: behind that there may be nothing yet
    #[arg(long, value_name = "POSITION")]
    pub(crate) from: Option<u64>,
    /// Up to this position
    #[arg(long, value_name = "POSITION")]
    pub(crate) to: Option<u64>,
    /// From this time on, seconds since the epoch
    #[arg(long, value_name = "SECONDS", value_parser = crate::log::seconds)]
    pub(crate) since: Option<f64>,
    /// Before this time, seconds since the epoch. With --follow it ends at the first transaction that is not before
    /// it, or once all is shown and the engine's clock has passed it; where no engine runs, this machine's clock, by 5 s
    #[arg(long, value_name = "SECONDS", value_parser = crate::log::seconds)]
    pub(crate) until: Option<f64>,
    /// About this account: name or number. About `fees` is what was paid into it or out of it by hand: commissions are
    /// part of the trades
    #[arg(long)]
    pub(crate) account: Option<String>,
    /// About this symbol: name or number
    #[arg(long)]
    pub(crate) symbol: Option<String>,
    /// About the order of this number (numbers count per symbol)
    #[arg(long, value_name = "ORDER_ID")]
    pub(crate) order: Option<u64>,
    /// Go on as the log grows, up to --to or --until, or until interrupted
    #[arg(long)]
    pub(crate) follow: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_in_front_of_a_subcommand_is_told_where_it_belongs() {
        let told = |arguments: &[&str]| {
            let arguments = ["touchline"].iter().chain(arguments);
            with_tip(Arguments::try_parse_from(arguments).unwrap_err()).to_string()
        };
        for subcommand in ["log", "admin", "doctor", "engine"] {
            let told = told(&["--data", "x", subcommand]);
            assert!(told.contains(&format!("touchline {subcommand} --data DIR")), "{told}");
        }
        assert!(!told(&["--no-such"]).contains("behind the subcommand"));
    }
}
