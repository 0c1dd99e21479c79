//! The life of the engine process: start, serve, end.

use crate::clock::{Clock, LastTime, SystemTime};
use crate::config::{ConfigError, EngineConfig, FeedFollow, WindowPlace, limit_key, no_memory};
use crate::cores;
use crate::duty::{Duty, DutyOptions, OwnCommandError};
use crate::feed::{self, FeedHandle, FeedOptions};
use crate::gateway::{self, GatewayHandle, GatewayOptions, Mail, ReaderLimits, StreamRings};
use crate::genesis::{
    Genesis, Written, doubt_of_sessions, doubts_of_section, is_whole_in, not_in_force, older_rules,
    untaken,
};
use crate::huge_pages::use_huge_pages;
use crate::inspect::reapply;
use crate::log::disk::disk_error;
use crate::log::{self, DiskError, KeeperHandle, Log, LogOptions, LogWriter};
use crate::master_key;
use crate::notice::{alert, say};
use crate::open_files;
use crate::pid_file::PidFile;
use crate::quarantine::Quarantine;
use crate::recovery::{
    Progress, RecoveryError, ReplayFault, Replayed, StartReport, check_no_log_is_lost,
};
use crate::snapshot::{SnapshotContent, SnapshotSchedule};
use anyhow::{Context as _, Result, ensure};
use rustix::process::geteuid;
use signal_hook::consts::{SIGCHLD, SIGXFSZ};
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use touchline_core::{Context, Core, RECORD_RULES, RecordLimits};
use touchline_protocol::client::SOCKET_NAME;
use touchline_protocol::credentials::MasterKey;
use touchline_protocol::log::reader::Follow;
use touchline_protocol::log::{SEGMENT_FOLDER, segment_number};
use touchline_protocol::message::command::{EngineStarted, Limits, SetLimits, SetRecordLimits};
use touchline_protocol::message::decode::{self, Command};
use touchline_protocol::ring::SessionEnd;
use touchline_protocol::units::{Incarnation, Position, SessionId};
use touchline_protocol::{ending, outlet};

const MIB: u64 = 1 << 20;
const NS_PER_MS: u64 = 1_000_000;

/// What the engine is started with.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Data folder; made if it does not exist.
    pub data: PathBuf,
    /// Its part of `venue.toml`.
    pub config: EngineConfig,
    /// Its definition is one that somebody wrote, and not the built-in one.
    pub is_own_definition: bool,
    /// Keys of it that somebody wrote.
    pub written: Written,
    /// Open a damaged log by dropping what lies behind the damage.
    pub accept_loss: bool,
    /// Begin no new venue, and make no folder: there was one here.
    pub must_exist: bool,
    /// Start although the clock shows much less than the log's last time.
    pub allow_clock_behind: bool,
}

/// Replay of the log into the core: the same commands must give the same events.
struct CoreReplay<'core> {
    core: &'core mut Core,
    table_seed: u64,
    /// What the log holds of the venue's definition.
    defined: Defined,
}

/// The venue's definition as far as a log holds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Defined {
    /// An engine has started after it: it is whole, and no configuration adds to it any more.
    is_whole: bool,
    /// Checksum of its commands.
    checksum: u32,
}

impl Replayed for CoreReplay<'_> {
    fn restore(&mut self, content: &mut SnapshotContent<'_>) -> Result<(), String> {
        let (core, state_hash) =
            Core::read_snapshot(&mut |into| content.fill(into), self.table_seed)
                .map_err(|error| error.to_string())?;
        content.finish(state_hash)?;
        *self.core = core;
        // A snapshot is only made of a venue whose definition is whole.
        self.defined.is_whole = true;
        Ok(())
    }

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
        let bytes = command;
        let command = decode::command(bytes).map_err(|error| error.to_string())?;
        let header = command.header();
        if header.session == SessionId::ENGINE && header.sequence.0 != 0 {
            self.defined.checksum = crc32c::crc32c_append(self.defined.checksum, bytes);
        }
        self.defined.is_whole |= matches!(command, Command::EngineStarted(_));
        reapply(self.core, &Context { position, time_ns }, &command, area)
    }
}

/// Runs the engine until one of [`ending::signals`].
///
/// # Errors
/// Whatever kept it from starting, with what the operator may do; nothing is half-done.
pub fn run(options: EngineOptions) -> Result<()> {
    options.config.validate()?;
    check_data_path(&options.data)?;
    ensure!(
        !options.must_exist || has_log(&options.data)?,
        "the log of this venue is not in {} any more; no new venue is begun in its place: bring the folder back, \
         or the disk that it lies on",
        options.data.display()
    );
    if let Some(doubt) = doubt_of_folder(&options.data) {
        alert!("engine: {doubt}");
    }
    if let Some(doubt) = doubt_of_sessions(options.config.limits.sessions) {
        alert!("engine: {}", doubt.found);
    }
    let genesis = check_definition(&options.config, &options.data)?;
    if !has_log(&options.data)?
        && let Some(address) = options.config.gateway.tcp.0
    {
        // Before there is a venue, which is made for good.
        gateway::check_tcp(address)?;
    }
    // A write beyond a limit on the size of files is to fail as any other does, and not to end the process.
    signal_hook::flag::register(SIGXFSZ, Arc::default())?;
    // What has started this process may have told it to ignore the ends of children: it would hear of none.
    signal_hook::flag::register(SIGCHLD, Arc::default())?;
    if let Some(core) = options.config.engine.core
        && let Err(error) = cores::keep_off(core)
    {
        alert!("engine: the other threads may run on the duty thread's core {core}: {error}");
    }
    // Here, and not by the first thread that has something to say: that one may have a core of its own.
    outlet::begin();
    open_files::make_room(&options.config);
    let master_key = master_key::load(&options.data)?;
    use_huge_pages(options.config.engine.huge_pages);
    let table_seed = getrandom::u64().context("no random table seed")?;
    let mut core = Core::with_table_seed(table_seed);
    let (mail, rings) = gateway::mail()?;
    let (log, defined) = open_log(&options, &mut core, table_seed)?;
    if defined.is_whole {
        let segment_bytes = log.control.identity().segment_bytes;
        tell_of_definition(&options, &core, segment_bytes);
    }
    let stop = Arc::new(AtomicBool::new(false));
    // A signal that nobody takes ends the process where it is, and the file would stay. One that comes from here
    // on ends the engine when it has started, however long the disk takes for that.
    if let Err(error) = watch_signals(&stop, &mail) {
        return Err(refuse(log.writer, error));
    }
    let pid_file = PidFile::write(options.data.join("engine.pid"));
    let venue = Venue { core, genesis, defined, master_key };
    start(&options, log, venue, Links { mail, rings, stop })?.join()?;
    drop(pid_file);
    say!("engine ended");
    Ok(())
}

/// Tells what the settings say of a venue that was made before and is otherwise: who changes them is to hear that
/// nothing came of it. And that a venue follows older rules than this build has: a new build raises nothing by itself.
fn tell_of_definition(options: &EngineOptions, core: &Core, segment_bytes: u64) {
    let EngineOptions { config, written, .. } = options;
    let missing = untaken(config, core).filter(|_| options.is_own_definition);
    let standing = not_in_force(config, written, core, segment_bytes);
    for told in missing.into_iter().chain(standing).chain(older_rules(core.rules())) {
        alert!("engine: {told}");
    }
}

/// What the log is opened for.
struct Venue {
    core: Core,
    /// As [`check_definition`] gives it.
    genesis: Option<Genesis>,
    defined: Defined,
    master_key: MasterKey,
}

/// What the engine's threads have of each other.
struct Links {
    mail: Arc<Mail>,
    rings: StreamRings,
    stop: Arc<AtomicBool>,
}

/// The engine's threads.
struct Running {
    duty: thread::JoinHandle<LogWriter>,
    feed: Option<FeedHandle>,
    gateway: GatewayHandle,
    keeper: KeeperHandle,
}

/// Starts all that stands behind the log. Where that fails the log is closed: it was in order, and the next
/// start is to find it so. Only a duty thread that the system does not give takes the log along.
fn start(options: &EngineOptions, log: Log, venue: Venue, links: Links) -> Result<Running> {
    let Log { writer, keeper, report, .. } = log;
    // The last frame may be later than the last transaction, and a snapshot later than all frames that are left.
    let log_ns = report.last_time_ns.max(venue.core.last_time_ns());
    let last = LastTime { log_ns, shown_ns: report.last_alive_ns };
    let clock = match Clock::start(SystemTime, last, options.allow_clock_behind) {
        Ok(clock) => clock,
        Err(error) => return Err(refuse(writer, error.into())),
    };
    let Venue { core, genesis, defined, master_key } = venue;
    let Links { mail, rings, stop } = links;
    writer.control().ring_when_durable(mail.bell());
    let mut duty = Duty::new(DutyOptions {
        core,
        writer,
        clock,
        mail: Arc::clone(&mail),
        streams: rings.duty,
        stop: Arc::clone(&stop),
        settings: options.config.engine.clone(),
    });
    let (quarantine, lines) = Quarantine::read(&options.data, duty.core().pending_head());
    lines.iter().for_each(|line| alert!("{line}"));
    duty.refuse(quarantine);
    let definition = (!defined.is_whole).then_some((genesis, defined));
    let served = log_start(&mut duty, options, definition, &report)
        .and_then(|()| serve(options, &duty, &report, master_key, (mail, rings.gateway), stop));
    let (feed, gateway) = match served {
        Ok(served) => served,
        Err(error) => return Err(refuse(duty.into_log(), error)),
    };
    if let Some(schedule) = snapshot_schedule(options, report.snapshot) {
        keeper.schedule_snapshots(schedule);
    }
    let duty = start_duty(duty, options.config.engine.core)?;
    say!(
        "engine ready incarnation={} position={} transactions={} pid={}",
        report.incarnation,
        report.position,
        report.transactions,
        std::process::id()
    );
    Ok(Running { duty, feed, gateway, keeper })
}

/// Closes the log of a start that is refused, while the keeper runs; gives why it is.
fn refuse(writer: LogWriter, why: anyhow::Error) -> anyhow::Error {
    // The next start recovers it then, and whatever there is to be done is in the refusal.
    if let Err(error) = writer.close() {
        alert!("engine: the log was not closed cleanly: {error}");
    }
    why
}

/// Brings to disk what a start logs before there is a client, with the venue's definition where the log has it
/// not or not whole.
fn log_start(
    duty: &mut Duty,
    options: &EngineOptions,
    definition: Option<(Option<Genesis>, Defined)>,
    report: &StartReport,
) -> Result<()> {
    // Without a whole definition no engine has started before, whatever one has logged.
    let has_run = definition.is_none();
    if let Some((genesis, defined)) = definition {
        let genesis = genesis.map_or_else(|| Genesis::new(&options.config), Ok)?;
        for symbol in &options.config.symbols {
            for doubt in doubts_of_section(symbol, &options.config.assets) {
                alert!("engine: {}", doubt.found);
            }
        }
        define_venue(duty, &genesis, defined)?;
    }
    let off = has_run.then(|| report.last_alive_ns..duty.now());
    begin(duty, &options.config, report.incarnation, off)?;
    // Who hears "ready" may ask for the venue at once, and is shown what is durable.
    duty.wait_durable().context("the venue's definition is not on disk")
}

/// Starts what lets readers and clients in.
fn serve(
    options: &EngineOptions,
    duty: &Duty,
    report: &StartReport,
    master_key: MasterKey,
    (mail, rings): (Arc<Mail>, SessionEnd),
    stop: Arc<AtomicBool>,
) -> Result<(Option<FeedHandle>, GatewayHandle)> {
    let feed = start_feed(options, duty, &mail)?;
    let gateway_options = GatewayOptions {
        socket: options.data.join(SOCKET_NAME),
        master_key,
        control: File::open(&report.control_path)?.into(),
        log_id: report.log_id,
        incarnation: report.incarnation,
        feed: feed.as_ref().map(|feed| (feed.desk(), ReaderLimits::of(&options.config.feed))),
        connections_max: options.config.engine.connections,
        settings: options.config.gateway.clone(),
        commands_per_second: options.config.engine.commands_per_second,
        reader_stall: Duration::from_secs(options.config.engine.reader_stall_seconds.into()),
        data: options.data.clone(),
        engine_stop: stop,
    };
    let gateway = gateway::start(gateway_options, duty.control().clone(), mail, rings)?;
    Ok((feed, gateway))
}

impl Running {
    /// Waits for the end of the duty thread, and ends the others behind it.
    fn join(self) -> Result<()> {
        let Self { duty, feed, gateway, keeper } = self;
        let writer = duty
            .join()
            .map_err(|_| anyhow::anyhow!("the duty thread ended without giving the log back"))?;
        // The log first: clients that wait for what is durable still get it before their sockets close.
        let closed = writer.close();
        if let Some(feed) = feed {
            feed.stop();
        }
        let gateway_ended = gateway.stop();
        keeper.stop();
        closed.context("the log was not closed cleanly")?;
        gateway_ended.context("the gateway ended by itself")
    }
}

/// Room for a path in a socket's address, its closing zero included.
const SOCKET_PATH_BYTES: usize = 108;

/// Tells of a data folder whose path is too long for the engine's socket, before anything is made.
///
/// # Errors
/// If it is.
pub fn check_data_path(data: &Path) -> Result<()> {
    let socket = data.join(SOCKET_NAME);
    let bytes = socket.as_os_str().len();
    ensure!(
        bytes < SOCKET_PATH_BYTES,
        "the engine's socket {} would have a path of {bytes} bytes, at most 107 are possible: choose \
         a shorter --data",
        socket.display()
    );
    Ok(())
}

/// Why others than this user have a venue's secrets in their hands: who may write its folder may put another master
/// key, or a link, in a file's place. `None` where nobody else may, and where there is no folder yet.
#[must_use]
pub fn doubt_of_folder(data: &Path) -> Option<String> {
    let (folder, found) = (data.display(), data.metadata().ok()?);
    if found.mode() & 0o002 != 0 {
        return Some(format!(
            "everybody on this machine may write in {folder}, and so exchange the venue's keys: chmod o-w it"
        ));
    }
    // Root may do so anyway.
    let is_trusted = [geteuid().as_raw(), 0].contains(&found.uid());
    (!is_trusted).then(|| {
        format!(
            "{folder} belongs to user {}, who may exchange the venue's keys: let it be this user's own (chown)",
            found.uid()
        )
    })
}

/// The venue's definition as a start on this data folder takes it: that of a new venue is tried out, for a log
/// that holds a part of it takes no other one. `None` where the log holds all of it, as far as that can be seen:
/// then whatever `config` says of it is not used.
///
/// # Errors
/// Names what such a start would refuse, or what keeps the log from being looked for.
pub fn check_definition(config: &EngineConfig, data: &Path) -> Result<Option<Genesis>> {
    let is_new = !has_log(data)?;
    if !is_new && is_whole_in(data) {
        return Ok(None);
    }
    let genesis = Genesis::new(config)?;
    if is_new {
        genesis.try_out()?;
    }
    Ok(Some(genesis))
}

/// Whether a log may be begun in a data folder without one, or one was there that is lost.
///
/// # Errors
/// What tells of the one that is lost.
pub fn check_new_log(data: &Path) -> Result<(), RecoveryError> {
    check_no_log_is_lost(log::Environment::default().storage.as_ref(), data)
}

/// True if the data folder has a segment; its first ones may have been removed.
///
/// # Errors
/// If the folder cannot be looked into: what this user may not see may well be there.
pub fn has_log(data: &Path) -> Result<bool, DiskError> {
    let folder = data.join(SEGMENT_FOLDER);
    let names = log::Environment::default().storage.list(&folder);
    match names {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(disk_error("listing", &folder)(error)),
        Ok(names) => Ok(names.iter().any(|name| segment_number(name).is_some())),
    }
}

fn open_log(options: &EngineOptions, core: &mut Core, table_seed: u64) -> Result<(Log, Defined)> {
    let section = &options.config.log;
    let log_options = LogOptions {
        data: options.data.clone(),
        window_place: match section.window {
            WindowPlace::Auto => log::WindowPlace::Auto,
            WindowPlace::SharedMemory => log::WindowPlace::SharedMemory,
            WindowPlace::Data => log::WindowPlace::Data,
        },
        window_bytes: (section.window_mib != 0).then_some(section.window_mib * MIB),
        segment_bytes: section.segment_mib * MIB,
        gather: gather(&options.config),
        write_interval: Duration::from_micros(options.config.log.write_interval_us),
        accept_loss: options.accept_loss,
    };
    let mut replay = CoreReplay { core, table_seed, defined: Defined::default() };
    let log = log::open(&log_options, &mut replay, &mut |progress| {
        say!("{progress}");
        if matches!(progress, Progress::Found(_)) {
            // It is to be read before it is done.
            outlet::finish();
        }
    })?;
    say!("{}", log.report.window);
    Ok((log, replay.defined))
}

/// How long the log gathers what no session waits for. A feed of what is durable waits for all.
const fn gather(config: &EngineConfig) -> Duration {
    match (config.feed.enabled, config.feed.follow) {
        (true, FeedFollow::Durable) => Duration::ZERO,
        _ => Duration::from_micros(config.log.gather_us),
    }
}

/// Logs the venue's definition, or the rest of it when the first start was cut off.
fn define_venue(duty: &mut Duty, genesis: &Genesis, defined: Defined) -> Result<()> {
    let done = duty.core().engine_sequence();
    ensure!(
        genesis.checksum(done) == defined.checksum,
        "the first start was cut off after {done} commands of the venue's definition, and they were \
         others: start with the venue.toml of that time, or with a new --data"
    );
    for command in genesis.remaining(done) {
        duty.first_command(command).map_err(|error| {
            let why = match (&error, decode::command(command)) {
                (OwnCommandError::Rejected { reason, detail, .. }, Ok(rejected)) => {
                    no_memory(&rejected, *reason, *detail)
                }
                _ => None,
            };
            why.map_or_else(|| anyhow::Error::from(error), anyhow::Error::msg)
                .context("venue definition")
        })?;
    }
    Ok(())
}

/// As [`EngineStarted::off_ms`] tells it, of the ns from when an engine is last known to have run. A time that is yet
/// to come tells nothing.
fn off_ms(off: &Range<u64>) -> u32 {
    let off_ms = off.end.saturating_sub(off.start) / NS_PER_MS;
    u32::try_from(off_ms).unwrap_or(u32::MAX)
}

/// What an engine logs before it takes a client: its start, and changed limits. `off` is from when an
/// engine is last known to have run to now, ns since the epoch, if one has started before.
fn begin(
    duty: &mut Duty,
    config: &EngineConfig,
    incarnation: Incarnation,
    off: Option<Range<u64>>,
) -> Result<()> {
    let off_ms = off.as_ref().map_or(0, off_ms);
    let started = EngineStarted { incarnation: incarnation.0, off_ms, ..Default::default() };
    duty.first_command(bytemuck::bytes_of(&started))?;
    let limits = Limits::from(&config.limits);
    if *duty.core().limits() != limits {
        let change = SetLimits { limits, ..Default::default() };
        change_limits(duty, bytemuck::bytes_of(&change))?;
        say!("limits changed as configured");
    }
    let limits = RecordLimits::from(&config.limits);
    // Earlier rules have no records.
    if duty.core().rules() >= RECORD_RULES && duty.core().record_limits() != limits {
        let RecordLimits { records, blocks } = limits;
        let change = SetRecordLimits { records, blocks, ..Default::default() };
        change_limits(duty, bytemuck::bytes_of(&change))?;
        say!("limits of records changed as configured");
    }
    Ok(())
}

/// Within what this build can hold, so a refusal is about what the venue has in use.
fn change_limits(duty: &mut Duty, command: &[u8]) -> Result<()> {
    duty.first_command(command).map_err(|error| {
        let key = match &error {
            OwnCommandError::Rejected { reason, detail, .. } => limit_key(*reason, *detail),
            _ => None,
        };
        let problem = "it is less than what the venue has in use, or no memory is left";
        let why = ConfigError::of(key.unwrap_or("limits"), problem.to_owned());
        anyhow::Error::from(error).context(why)
    })
}

/// First pause of the keeper behind a snapshot that could not be made.
const SNAPSHOT_PAUSE: Duration = Duration::from_secs(10);

/// When and how the keeper has snapshots made; not at all if so configured.
fn snapshot_schedule(options: &EngineOptions, last: Option<Position>) -> Option<SnapshotSchedule> {
    let section = &options.config.log;
    // In one word: a path may begin like an option.
    let mut data = OsString::from("--data=");
    data.push(&options.data);
    let arguments = ["log", "snapshot"].map(OsString::from).into_iter().chain([
        data,
        "--kept".into(),
        section.snapshots_kept.to_string().into(),
        "--beside".into(),
        std::process::id().to_string().into(),
    ]);
    (section.snapshot_every_mib > 0).then(|| SnapshotSchedule {
        every_bytes: section.snapshot_every_mib * MIB,
        last: last.map_or(0, |position| position.0),
        // This executable, also when the file at its path was replaced since.
        program: PathBuf::from("/proc/self/exe"),
        arguments: arguments.collect(),
        pause: SNAPSHOT_PAUSE,
    })
}

fn watch_signals(stop: &Arc<AtomicBool>, mail: &Arc<Mail>) -> Result<()> {
    let mut signals = Signals::new(ending::signals())?;
    let (stop, mail) = (Arc::clone(stop), Arc::clone(mail));
    let watch = move || {
        for _ in signals.forever() {
            stop.store(true, Ordering::Release);
            mail.duty_signal.wake();
        }
    };
    let started = thread::Builder::new().name("signals".to_owned()).spawn(watch);
    started.context("cannot start thread signals")?;
    Ok(())
}

/// The public feed, if it is wanted.
fn start_feed(
    options: &EngineOptions,
    duty: &Duty,
    mail: &Arc<Mail>,
) -> Result<Option<FeedHandle>> {
    let section = &options.config.feed;
    if !section.enabled {
        return Ok(None);
    }
    let feed = feed::start(FeedOptions {
        data: options.data.clone(),
        follow: match section.follow {
            FeedFollow::Appended => Follow::Appended,
            FeedFollow::Durable => Follow::Durable,
        },
        slots: section.slots,
        core: duty.core(),
        control: duty.control().clone(),
        bell: mail.bell(),
    });
    feed.map(Some).context("the public feed")
}

fn start_duty(duty: Duty, core: Option<usize>) -> Result<thread::JoinHandle<LogWriter>> {
    let control = duty.control().clone();
    let handle = thread::Builder::new().name("duty".to_owned()).spawn(move || {
        if let Some(id) = core
            && !cores::stay_on(id)
        {
            alert!("engine: cannot pin the duty thread to core {id}; it runs unpinned");
        }
        // A panic in the middle of a transaction leaves a core that must not go on: the process
        // ends, and the next start recovers from the log.
        catch_unwind(AssertUnwindSafe(|| duty.run())).unwrap_or_else(|_| {
            control.note_panic();
            alert!("engine: the duty thread panicked; ending at once");
            outlet::finish();
            std::process::abort()
        })
    })?;
    Ok(handle)
}

#[cfg(test)]
mod tests;
