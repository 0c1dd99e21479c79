//! The adapter process: views, link and front put together, started, watched and ended in order.
//! Called by the executable.

mod archive;
mod claim;
mod kept;
mod open_files;

use crate::notice::alert;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use signal_hook::consts::SIGXFSZ;
use signal_hook::iterator::Signals;
use thiserror::Error;
use touchline_protocol::client::{ClientOptions, SOCKET_NAME};
use touchline_protocol::credentials::{MasterKey, MasterKeyError};
use touchline_protocol::ending;
use touchline_protocol::log::lease::LeaseError;
use touchline_protocol::log::reader::{Follow, LogReader, ReadError};
use touchline_protocol::log::segment::SegmentError;
use touchline_protocol::log::transaction::Bookmark;
use touchline_protocol::message::command::LOGON_BRIEF;
use touchline_protocol::message::enums::{Lane, Role};
use touchline_protocol::outlet::{self, Output};
use touchline_protocol::text::Name;

use crate::auth::keys::{self, KeyRing, KeysError};
use crate::auth::pool::HashingPool;
use crate::auth::token::Tokens;
use crate::config::{AdapterConfig, ConfigError};
use crate::documentation::{Documented, document};
use crate::front::{self, Front, FrontConfig, FrontError, FrontHandle, FrontKind};
use crate::history::HistoryError;
use crate::history::writer::{Gate, Work, Writer};
use crate::jobs::config::{JobsConfig, JobsConfigError};
use crate::jobs::{self, BODY_BYTES_MAX, Jobs};
use crate::limits::{Keeper, KeeperError, Limits};
use crate::link::{Link, Records, Traffic};
use crate::services::Services;
use crate::spot::{self, Spot, SpotConfig};
use crate::status::Sources;
use crate::views::Views;
use crate::views::state::{Archive, RestoreError};
use crate::views::tailer::{TailError, Tailer, Watermark};
pub use archive::any_had_history;
use claim::Claim;
pub use claim::{ClaimError, has_adapter};
pub use kept::{KeptHistory, instance_of_lease, kept_history, lease_of_instance};
pub use open_files::needed as files_needed;

/// Name of the master key's file in the data folder.
const MASTER_KEY_FILE: &str = "master.key";

/// Connections that one client address may always have, if so many are served at all; else a
/// quarter of all. A trusted proxy may have all.
const CONNECTIONS_PER_ADDRESS_LEAST: usize = 64;

/// Pause between two looks for something that is not there yet.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Longest wait at the end for requests that are being answered.
const LAST_REQUESTS: Duration = Duration::from_secs(5);

/// Of that, what is left for the answers to requests that the engine does not answer.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// Longest that a step of the handshake with the engine may take.
const HANDSHAKE: Duration = Duration::from_secs(2);

/// What an adapter needs to know.
#[derive(Debug, Clone)]
pub struct AdapterOptions {
    /// The engine's data folder.
    pub data: PathBuf,
    /// Where to serve HTTP; port 0 takes any free one.
    pub http: SocketAddr,
    /// Section `[adapter]` of the settings.
    pub config: AdapterConfig,
    /// Section `[jobs]`.
    pub jobs: JobsConfig,
}

/// Why an adapter did not start or did not go on.
#[derive(Debug, Error)]
pub enum RunError {
    /// A setting is out of range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A setting of the jobs service is out of range.
    #[error(transparent)]
    Jobs(#[from] JobsConfigError),
    /// The keys that sign tokens cannot be had.
    #[error(transparent)]
    TokenKeys(#[from] KeysError),
    /// Signals cannot be waited for.
    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] ReadError),
    /// The history cannot be read or written.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// What the history needs of the log cannot be said.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// An empty history cannot be begun, or one goes on behind rules that this build does not know.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// The beginning of the log is gone, and there is no history of it.
    #[error(
        "the log begins at position {position}: what was before it was pruned, and no history of this \
         adapter goes as far as that; bring the pruned segments or the adapter's history folder back \
         from a copy"
    )]
    Pruned {
        /// Its first position.
        position: u64,
    },
    /// The master key cannot be read.
    #[error(transparent)]
    MasterKey(#[from] MasterKeyError),
    /// The instance's name cannot be claimed.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// The files of the limits cannot be used.
    #[error(transparent)]
    Limits(#[from] KeeperError),
    /// A thread cannot be started.
    #[error("cannot start thread {name}: {source}")]
    Thread {
        /// Its name.
        name: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The front cannot be started.
    #[error(transparent)]
    Front(#[from] FrontError),
    /// The views cannot follow the log any more; nothing could be answered truthfully.
    #[error("the views do not follow the log any more: {0}")]
    Views(TailError),
    /// The thread of the history has ended without saying why: it has panicked.
    #[error("the history is not written any more")]
    HistoryEnded,
    /// The thread of the views has ended without saying why: it has panicked.
    #[error("the views do not follow the log any more")]
    ViewsEnded,
}

/// What the main thread waits for.
enum Notice {
    /// Somebody asked for the end.
    Stop,
    /// The tailer has ended by itself.
    ViewsEnded(Option<TailError>),
    /// The history cannot be written any more; without a reason its thread has panicked.
    HistoryEnded(Option<HistoryError>),
}

/// Runs the adapter until one of [`ending::signals`]. Waits for the engine's log and keys if they are not
/// there yet; serves reads without the engine once they are. Prints one line on stdout, `adapter
/// ready http=ADDRESS`, when the views have caught up and the engine is reached.
///
/// # Errors
/// See [`RunError`]; everything is ended by then.
pub fn run(options: AdapterOptions) -> Result<(), RunError> {
    outlet::begin();
    let (sender, notices) = mpsc::channel();
    // A write beyond a limit on the size of files is to fail as any other does, and not to end the process.
    signal_hook::flag::register(SIGXFSZ, Arc::default()).map_err(RunError::Signals)?;
    let mut signals = Signals::new(ending::signals()).map_err(RunError::Signals)?;
    let handle = signals.handle();
    let stop = sender.clone();
    let waiting = thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            for _signal in signals.forever() {
                // The main thread may be gone already: then there is nothing to stop.
                let _gone = stop.send(Notice::Stop);
            }
        })
        .map_err(|source| RunError::Thread { name: "signals", source })?;
    let outcome = serve(&options, &sender, &notices, &mut Output);
    handle.close();
    let _panicked = waiting.join();
    outcome
}

/// Starts everything, says when it is ready, and ends it at the first notice.
fn serve(
    options: &AdapterOptions,
    sender: &Sender<Notice>,
    notices: &Receiver<Notice>,
    out: &mut impl Write,
) -> Result<(), RunError> {
    options.config.validate()?;
    options.jobs.validate()?;
    // The lease of an instance that never served would hold the log for ever.
    front::check_free(options.http)?;
    let Some(files) = wait_for_engine_files(options, notices)? else { return Ok(()) };
    let _claim = Claim::take(&options.data, &options.config.instance)?;
    let parts = Parts::start(options, files, sender.clone())?;
    let outcome = parts.watch(notices, out);
    parts.end();
    outcome
}

/// What the engine leaves in its data folder for an adapter.
struct EngineFiles {
    /// For the views.
    reader: LogReader,
    /// For how far the log is appended.
    appended: LogReader,
    /// For how far it is durable.
    durable: LogReader,
    keys: MasterKey,
}

/// The log and the keys, as soon as both are there; `None` if the end was asked for first.
fn wait_for_engine_files(
    options: &AdapterOptions,
    notices: &Receiver<Notice>,
) -> Result<Option<EngineFiles>, RunError> {
    let follow = options.config.acknowledge.into();
    let mut told = false;
    loop {
        let open = |follow| LogReader::open(&options.data, follow);
        let missing = match (
            open(follow)
                .and_then(|reader| Ok((reader, open(Follow::Appended)?, open(Follow::Durable)?))),
            MasterKey::load(&options.data.join(MASTER_KEY_FILE)),
        ) {
            (Ok((reader, appended, durable)), Ok(keys)) => {
                return Ok(Some(EngineFiles { reader, appended, durable, keys }));
            }
            (Err(error), _) if is_not_there_yet(&error) || error.is_shortage() => error.to_string(),
            (Err(error), _) => return Err(error.into()),
            (Ok(_), Err(MasterKeyError::File { path, source }))
                if source.kind() == io::ErrorKind::NotFound =>
            {
                format!("no master key at {}", path.display())
            }
            (Ok(_), Err(error)) => return Err(error.into()),
        };
        if !told {
            alert!("adapter: waiting for the engine's first start: {missing}");
            told = true;
        }
        match notices.recv_timeout(LOOK_AGAIN) {
            Err(RecvTimeoutError::Timeout) => {}
            _ => return Ok(None),
        }
    }
}

/// The engine makes the folders, then the first segment, then writes its header.
fn is_not_there_yet(error: &ReadError) -> bool {
    match error {
        ReadError::NoLog { .. } | ReadError::Segment { source: SegmentError::Blank, .. } => true,
        ReadError::Io { source, .. } => source.kind() == io::ErrorKind::NotFound,
        _ => false,
    }
}

/// Everything that runs.
struct Parts {
    front: FrontHandle,
    orders: Arc<Link>,
    records: Arc<Link<Records>>,
    tailer: Tailer,
    history: Writer,
    views: Arc<Views>,
    keeper: Keeper,
    /// Holds the history's folder.
    _archive: Archive,
}

impl Parts {
    fn start(
        options: &AdapterOptions,
        files: EngineFiles,
        sender: Sender<Notice>,
    ) -> Result<Self, RunError> {
        let EngineFiles { mut reader, appended, durable, keys } = files;
        let config = &options.config;
        let log_id = reader.log_id();
        // Before the history goes on, which would seem to have been there.
        let token_keys = token_keys(options, &reader)?;
        let (archive, state) = archive::open(options, &mut reader)?;
        let lease = archive::hold(options, &reader, &archive)?;
        let (appended, durable) =
            (Arc::new(Watermark::new(appended)), Arc::new(Watermark::new(durable)));
        let watermark = Arc::clone(match config.acknowledge.into() {
            Follow::Appended => &appended,
            Follow::Durable => &durable,
        });
        let (in_window, of_engine) = (Arc::clone(&appended), Arc::clone(&appended));
        let orders = link(options, log_id, "hot", Lane::Hot)?;
        let way = Arc::clone(&orders);
        let views = Views::new(state, move || watermark.now());
        let views = views.with_appended(move || in_window.now());
        let views = views.with_failure(move || of_engine.has_failed());
        let views = Arc::new(views.with_engine(move || way.away_since()));
        let gate = Arc::new(Gate::default());
        let (on_disk, session) = (Arc::clone(&durable), Arc::clone(&orders));
        let judge = move |last: &Bookmark, end| on_disk.fate(last, end, || session.durable());
        let work = Work::new(Arc::clone(&views), &archive, judge, Arc::clone(&gate), lease);
        let history_ended = sender.clone();
        let history = Writer::start(work, move |error| {
            // The main thread may be gone already: then nobody needs to be told.
            let _gone = history_ended.send(Notice::HistoryEnded(error));
        })
        .map_err(|source| RunError::Thread { name: "history", source })?;
        let tailer = Tailer::start(reader, Arc::clone(&views), Some(gate), move |end| {
            // As above.
            let _gone = sender.send(Notice::ViewsEnded(end));
        })
        .map_err(|source| RunError::Thread { name: "views", source })?;
        let records = link(options, log_id, "cold", Lane::Cold)?;
        let limits = Arc::new(Limits::new(config.limits()));
        let keeper = Keeper::start(Arc::clone(&limits), &options.data, &config.instance)?;
        let spot =
            SpotConfig { header_prefix: config.header_prefix.clone(), deadline: config.deadline() };
        let document = document::whole([spot::document(&config.header_prefix), jobs::document()]);
        let spot = Spot::new(spot, Arc::clone(&limits), Arc::clone(&views), orders.clone(), keys);
        let (of_jobs, shown) = (Arc::clone(&limits), Arc::clone(&views));
        let jobs = jobs_service(options, of_jobs, shown, records.clone(), token_keys)?;
        let services = Arc::new(Services::new((spot, orders.clone()), (jobs, records.clone())));
        let (views_told, orders_told) = (Arc::clone(&views), Arc::clone(&orders));
        let sources = Sources { appended, durable, views: views_told, orders: orders_told };
        let status = Box::new(move || sources.status());
        let limits = (limits, config.header_prefix.as_str());
        let service = Documented::new(services, limits, &document, status);
        let front = Front::start(front_config(options), Arc::new(service))?;
        Ok(Self { front, orders, records, tailer, history, views, keeper, _archive: archive })
    }

    /// Says when all is ready, and waits for the end.
    fn watch(&self, notices: &Receiver<Notice>, out: &mut impl Write) -> Result<(), RunError> {
        loop {
            let is_ready = self.orders.is_connected()
                && self.records.is_connected()
                && self.views.reached() >= self.views.current();
            if is_ready {
                break;
            }
            match notices.recv_timeout(LOOK_AGAIN) {
                Err(RecvTimeoutError::Timeout) => {}
                notice => return end_of(notice.ok()),
            }
        }
        // Whoever started the adapter may have closed its end: that is no reason not to serve.
        let ready = format!("adapter ready http={}\n", self.front.local_addr());
        let _closed = out.write_all(ready.as_bytes());
        end_of(notices.recv().ok())
    }

    /// Requests first, so that each gets its answer; then what answers them. An engine that hangs is not waited for as
    /// long as requests have time: what it has not decided is in doubt, and is answered so before anybody is cut off.
    fn end(self) {
        let Self { front, orders, records, tailer, history, views: _, keeper, _archive } = self;
        let (has_ended, ends) = mpsc::channel::<()>();
        let stop_links = move || {
            let _ended_before = ends.recv_timeout(LAST_REQUESTS.saturating_sub(LAST_ANSWERS));
            orders.stop();
            records.stop();
        };
        // Without that thread the links end with this function's last hold on them.
        let stopping = thread::Builder::new().name("last-answers".to_owned()).spawn(stop_links);
        let cut_off = front.shutdown(LAST_REQUESTS);
        if cut_off > 0 {
            alert!("adapter: {cut_off} connections were cut off");
        }
        drop(has_ended);
        let _stopped = stopping.map(thread::JoinHandle::join);
        drop(tailer);
        drop(keeper);
        // Writes what is still in memory, so that the next start begins there.
        drop(history);
    }
}

/// How the front is to be run; what may be unexpected about it is told.
fn front_config(options: &AdapterOptions) -> FrontConfig {
    let config = &options.config;
    if config.front == FrontKind::May {
        alert!(
            "adapter: front may is for trusted networks and measurements only: it has no \
             timeouts, and a client can take all of its time and memory"
        );
    }
    let connections = open_files::make_room(
        config.connections,
        config.front.files_per_connection(),
        config.workers,
    );
    FrontConfig {
        kind: config.front,
        workers: config.workers,
        max_connections: connections,
        max_connections_per_address: (connections / 4).max(CONNECTIONS_PER_ADDRESS_LEAST),
        proxies: config.trusted_proxies.clone(),
        max_body_bytes: BODY_BYTES_MAX,
        ..FrontConfig::new(options.http)
    }
}

fn end_of(notice: Option<Notice>) -> Result<(), RunError> {
    match notice {
        None | Some(Notice::Stop) => Ok(()),
        Some(Notice::ViewsEnded(Some(error))) => Err(RunError::Views(error)),
        Some(Notice::ViewsEnded(None)) => Err(RunError::ViewsEnded),
        Some(Notice::HistoryEnded(Some(error))) => Err(RunError::History(error)),
        Some(Notice::HistoryEnded(None)) => Err(RunError::HistoryEnded),
    }
}

/// A link of the adapter's instance on one of the engine's lanes.
fn link<T: Traffic>(
    options: &AdapterOptions,
    log_id: [u8; 16],
    suffix: &str,
    lane: Lane,
) -> Result<Arc<Link<T>>, RunError> {
    // The configuration bounds the instance's name so that this fits.
    let name = Name::new(&format!("{}-{suffix}", options.config.instance)).unwrap_or_default();
    let socket = options.data.join(SOCKET_NAME);
    let client = ClientOptions {
        // An answer needs fills and the result, and each message costs.
        flags: LOGON_BRIEF,
        // What the views hold is of this log: with another one an order would go to whatever has its numbers.
        log_id: Some(log_id),
        acknowledgement: options.config.acknowledge.into(),
        handshake_timeout: HANDSHAKE,
        ..ClientOptions::new(socket, Role::Adapter, lane, name)
    };
    let link = Link::start(client, options.data.clone())
        .map_err(|source| RunError::Thread { name: "engine-link", source })?;
    Ok(Arc::new(link))
}

/// The keys that sign tokens. That they had to be made is told, unless nobody can have a token: of a venue whose first
/// engine runs, and that no adapter has a history of.
fn token_keys(options: &AdapterOptions, reader: &LogReader) -> Result<KeyRing, KeysError> {
    let path = options.data.join(keys::FILE_NAME);
    let ring = KeyRing::open(path.clone())?;
    let is_first_engine = reader.incarnation().is_none_or(|incarnation| incarnation.0 <= 1);
    if ring.is_new() && (!is_first_engine || any_had_history(&options.data, reader.log_id())) {
        alert!(
            "adapter: {} was not there and is made anew: tokens of the jobs service that were given before are not \
             believed any more, unless you bring the file back from a copy",
            path.display()
        );
    }
    Ok(ring)
}

/// The jobs service with its keys and its threads.
fn jobs_service(
    options: &AdapterOptions,
    limits: Arc<Limits>,
    views: Arc<Views>,
    engine: Arc<Link<Records>>,
    keys: KeyRing,
) -> Result<Jobs, RunError> {
    let config = &options.jobs;
    let tokens = Tokens::new(keys, config.token_lifetime_s);
    let pool = HashingPool::start(config.hashing_threads, config.hashing_waiting)
        .map_err(|source| RunError::Thread { name: "hashing", source })?;
    let deadline = options.config.deadline();
    Ok(Jobs::new(config, deadline, limits, views, engine, (tokens, pool)))
}

#[cfg(test)]
mod tests;
