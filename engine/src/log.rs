//! The log as the engine uses it: opened once, then written by the duty thread and made durable by the
//! keeper. Called by whoever composes the engine.
//!
//! ```text
//!  duty thread             keeper
//!  LogWriter ──appended──► Keeper ──durable──► readers, acknowledgements
//!      │                     │
//!      ▼                     ├─ writes blocks ─► DiskLog ─► Storage
//!    Tail ◄──prepared_until─ Body                (segment files)
//!      └───── live window ───┘                      ▲
//!                                      Ahead ─ makes the next one
//! ```
//!
//! [`open`] recovers first: see [`crate::recovery`].

mod ahead;
mod control;
pub(crate) mod disk;
mod keeper;
pub(crate) mod live;
pub(crate) mod lock;
pub mod storage;
mod window;
mod writer;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use touchline_protocol::log::{
    SEGMENT_FOLDER, WINDOW_SEGMENT_BYTES,
    control::{ControlHeader, LogState, MAGIC, VERSION},
    frame::FrameKind,
    place::{SHARED_MEMORY, WindowFolders},
};

pub use self::{
    control::Control,
    disk::DiskError,
    keeper::KeeperHandle,
    live::WindowReport,
    writer::{BeginError, CloseError, LogWriter},
};
use self::{
    control::{Fixed, remove_window_files},
    keeper::{Keeper, Pace},
    live::NewWindow,
    storage::{FileStorage, Storage},
};
use crate::recovery::{
    self, Progress, Recovered, RecoveryError, Replayed, StartReport, note_place,
};

/// How long nothing is appended before an attest record is wanted.
const ATTEST_AFTER: Duration = Duration::from_secs(1);

/// Where the live window is to lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WindowPlace {
    /// In shared memory, or in the data folder where there is no room for it there.
    #[default]
    Auto,
    /// In shared memory, or the engine does not start.
    SharedMemory,
    /// In the data folder.
    Data,
}

/// How the log is opened.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// The data folder; made, for this user only, if there is none.
    pub data: PathBuf,
    /// Where the live window is to lie.
    pub window_place: WindowPlace,
    /// Its size: a multiple of 2 MiB, at least 8 MiB. `None`: a quarter of what is free, at most 64 MiB.
    pub window_bytes: Option<u64>,
    /// Bytes of a disk segment: a multiple of 2 MiB. Used for a new log only; an old one keeps its own.
    pub segment_bytes: u64,
    /// How long what is appended, and nobody waits for, is gathered before it is written to disk: what a
    /// power cut can take back, beside what the last write takes. Zero: as often as the disk and
    /// [`LogOptions::write_interval`] allow, which holds if it is longer.
    pub gather: Duration,
    /// Least time from the beginning of one write of all there is to the next, unless a MiB has come together.
    /// Zero: as often as the disk allows.
    pub write_interval: Duration,
    /// Open a log that is damaged where it was durable, by dropping everything behind the damage.
    pub accept_loss: bool,
}

#[cfg(test)]
impl LogOptions {
    /// Of the smallest log, beside its window, on a disk that is written to as often as it allows.
    pub(crate) fn small(data: &Path) -> Self {
        Self {
            data: data.to_owned(),
            window_place: WindowPlace::Data,
            window_bytes: Some(touchline_protocol::log::WINDOW_BYTES_MIN),
            segment_bytes: WINDOW_SEGMENT_BYTES,
            gather: Duration::ZERO,
            write_interval: Duration::ZERO,
            accept_loss: false,
        }
    }
}

/// What the log stands on; other than [`Environment::default`] in tests only.
#[derive(Clone)]
pub struct Environment {
    /// The disk.
    pub storage: Arc<dyn Storage>,
    /// The folder of memory-backed files.
    pub shared_memory: PathBuf,
    /// How long nothing is appended before an attest record is wanted.
    pub attest_after: Duration,
    /// By what the keeper tells how long something waits.
    pub now: Now,
}

/// A clock that never goes back.
pub type Now = Arc<dyn Fn() -> Instant + Send + Sync>;

impl Default for Environment {
    fn default() -> Self {
        Self {
            storage: Arc::new(FileStorage),
            shared_memory: PathBuf::from(SHARED_MEMORY),
            attest_after: ATTEST_AFTER,
            now: Arc::new(Instant::now),
        }
    }
}

/// An open log.
pub struct Log {
    /// For the duty thread.
    pub writer: LogWriter,
    /// The keeper, which runs.
    pub keeper: KeeperHandle,
    /// The control page.
    pub control: Control,
    /// What was found and done.
    pub report: StartReport,
}

/// Opens the log: locks its folders, puts on disk what an older window still holds, ends the log where
/// it ends, replays it into `state`, writes the record of this incarnation, makes the live window, and
/// starts the keeper. A data folder without a log gets one.
///
/// # Errors
/// See [`RecoveryError`]. Nothing that was acknowledged is lost by trying again.
pub fn open(
    options: &LogOptions,
    state: &mut impl Replayed,
    progress: &mut dyn FnMut(Progress),
) -> Result<Log, RecoveryError> {
    open_in(&Environment::default(), options, state, progress)
}

/// As [`open`], in another environment.
///
/// # Errors
/// As there.
pub fn open_in(
    environment: &Environment,
    options: &LogOptions,
    state: &mut impl Replayed,
    progress: &mut dyn FnMut(Progress),
) -> Result<Log, RecoveryError> {
    let recovered = recovery::recover(environment, options, state, progress)?;
    let new = live::create(&recovered.folders, options.window_place, options.window_bytes)
        .map_err(window_failed)?;
    let folder = new.report.folder.clone();
    begin(environment, options, recovered, new).map_err(|error| match error {
        BeginFailed::Window(source) => window_failed((folder, source)),
        BeginFailed::Recovery(error) => error,
    })
}

fn window_failed((folder, source): (PathBuf, io::Error)) -> RecoveryError {
    RecoveryError::of_new_window(&folder, source)
}

enum BeginFailed {
    Window(io::Error),
    Recovery(RecoveryError),
}

impl From<io::Error> for BeginFailed {
    fn from(error: io::Error) -> Self {
        Self::Window(error)
    }
}

impl From<RecoveryError> for BeginFailed {
    fn from(error: RecoveryError) -> Self {
        Self::Recovery(error)
    }
}

impl From<DiskError> for BeginFailed {
    fn from(error: DiskError) -> Self {
        Self::Recovery(error.into())
    }
}

/// Everything is on disk and nobody sees the new window: fills it, writes the incarnation record
/// through it to disk, and only then lets readers find it.
fn begin(
    environment: &Environment,
    options: &LogOptions,
    recovered: Recovered,
    new: NewWindow,
) -> Result<Log, BeginFailed> {
    let NewWindow { mut window, lock, report } = new;
    let identity = recovered.identity;
    let end = recovered.end;
    seed(window.bytes(), &recovered)?;
    let header = ControlHeader {
        magic: MAGIC,
        version: VERSION,
        incarnation: recovered.incarnation,
        log_id: identity.log_id,
        boot_id: recovered.boot_id,
        window_bytes: report.bytes,
        segment_bytes: identity.segment_bytes,
        pid: std::process::id(),
        reserved: 0,
        // Of the page's file, which is yet to be made.
        file_number: 0,
        file_born_ns: 0,
    };
    let page = live::create_control(&report.folder, &header)?;
    let (tail, body) = window.split(&page, end).map_err(io::Error::other)?;
    let fixed = Fixed {
        identity,
        header,
        folder: report.folder.clone(),
        folders: recovered.folders.clone(),
        _data_lock: recovered.lock,
        _window_lock: lock,
    };
    let control = Control::new(&page, fixed).map_err(io::Error::other)?;
    control.set_durable(end);
    control.set_state(LogState::Running);
    let mut writer = LogWriter::new(tail, control.clone(), recovered.last_time_ns);
    let pace = Pace {
        attest_after: environment.attest_after,
        gather: options.gather,
        write_interval: options.write_interval,
    };
    let now = Arc::clone(&environment.now);
    let mut keeper = Keeper::new(body, recovered.disk, control.clone(), end, (pace, now))?;
    let incarnation = writer.append_record(FrameKind::Incarnation, recovered.last_time_ns);
    incarnation.map_err(io::Error::other)?;
    keeper.flush()?;
    note_place(&options.data, &report.folder);
    live::publish(&report.folder)?;
    let started = remove_others(&recovered.folders, &report.folder)
        .map_err(BeginFailed::from)
        .and_then(|()| Ok(keeper.start()?));
    let keeper = started.inspect_err(|_| {
        // Readers have found it by now, and all it holds is on disk.
        control.set_state(LogState::Stopped);
        control.remove_window();
    })?;
    let report = recovered.report.finish(&writer, report, options);
    Ok(Log { writer, keeper, control, report })
}

/// Other places of the window than the one in `used` hold nothing any more.
fn remove_others(folders: &WindowFolders, used: &Path) -> Result<(), RecoveryError> {
    let failed = |source| RecoveryError::of_left_window(&folders.user, source);
    for folder in folders.to_search().map_err(failed)? {
        if folder != used {
            remove_window_files(folder)
                .map_err(|source| RecoveryError::of_left_window(folder, source))?;
        }
    }
    Ok(())
}

/// Brings into the new window what the disk has of the window segment in which the log ends, so that
/// both hold the same bytes at the same positions, and the headers of the disk segments to come.
fn seed(window: &mut [u8], recovered: &Recovered) -> Result<(), DiskError> {
    let length = window.len() as u64;
    let base = recovered.end - recovered.end % WINDOW_SEGMENT_BYTES;
    let first = (base % length) as usize;
    let held = (recovered.end - base) as usize;
    recovered.segments.read(base, &mut window[first..first + held])?;
    let segment_bytes = recovered.identity.segment_bytes;
    let boundaries = (recovered.end.div_ceil(segment_bytes)..)
        .map(|number| (number, number * segment_bytes))
        .take_while(|(_, position)| *position < base + length);
    for (number, position) in boundaries {
        let offset = (position % length) as usize;
        recovered.identity.write_header(number, &mut window[offset..]);
    }
    Ok(())
}

/// The folder of disk segments.
pub(crate) fn segment_folder(data: &Path) -> PathBuf {
    data.join(SEGMENT_FOLDER)
}
