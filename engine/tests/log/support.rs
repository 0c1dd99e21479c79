//! A small deterministic state machine behind a log, a disk that can be held up or broken, and the
//! accidents that a data folder can have.

use std::{
    fmt,
    fs::{self, File, OpenOptions},
    io::{self, IoSlice},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::split_mix::SplitMix64;
use touchline_engine::{
    log::{
        Environment, Log, LogOptions, WindowPlace, open_in,
        storage::{BlockFile, FileStorage, Storage},
    },
    recovery::{Progress, RecoveryError, ReplayFault, Replayed, StartReport},
};
use touchline_protocol::{
    log::{BLOCK_BYTES, WINDOW_BYTES_MIN, WINDOW_SEGMENT_BYTES, control::LogState},
    message::{MessageHeader, SCHEMA_ID, SCHEMA_VERSION},
    units::Position,
};

use crate::patience::{HOLD_PATIENCE, Wait, eventually, watch};

/// Waits until the keeper has given the log up.
pub(crate) fn wait_until_failed(venue: &Venue) {
    let has_failed = || venue.log.control.state() == LogState::LogFailed;
    assert!(eventually(has_failed), "the log goes on");
}

/// A segment of the tests' logs: the smallest.
pub(crate) const SEGMENT: u64 = WINDOW_SEGMENT_BYTES;

/// Largest number of event bytes that the model makes.
const EVENTS_MAX: usize = 60_000;

/// One transaction as it must come back.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) position: u64,
    pub(crate) end: u64,
    pub(crate) time_ns: u64,
    pub(crate) command: Vec<u8>,
    pub(crate) events: Vec<u8>,
    pub(crate) count: u16,
}

impl fmt::Debug for Record {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (command, events) = (self.command.len(), self.events.len());
        write!(formatter, "{} to {} ({command} + {events} bytes)", self.position, self.end)
    }
}

impl Record {
    /// Position behind the last byte of the frame.
    pub(crate) fn bytes_end(&self) -> u64 {
        self.position + (48 + self.command.len() + self.events.len()) as u64
    }
}

/// The state: everything that was ever applied, folded into one number, on which the events depend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) hash: u64,
    pub(crate) records: Vec<Record>,
}

fn mix(hash: u64, value: u64) -> u64 {
    (hash ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

impl Model {
    /// Decides a command: its first two bytes say how many bytes of events it causes.
    pub(crate) fn apply(
        &mut self,
        position: u64,
        time_ns: u64,
        command: &[u8],
        outbox: &mut [u8],
    ) -> (usize, u16) {
        assert!(outbox.as_ptr().addr().is_multiple_of(8), "events are aligned");
        let mut hash = mix(mix(self.hash, position), time_ns);
        for &byte in command {
            hash = mix(hash, u64::from(byte));
        }
        self.hash = hash;
        let wanted = usize::from(u16::from_le_bytes([command[0], command[1]])).min(EVENTS_MAX);
        let (mut length, mut count) = (0, 0);
        while length + 16 <= wanted {
            let block = (wanted - length - 8).min(20_000) / 8 * 8;
            let header = MessageHeader {
                block_length: block as u16,
                template_id: 900,
                schema_id: SCHEMA_ID,
                version: SCHEMA_VERSION,
            };
            outbox[length..length + 8].copy_from_slice(bytemuck::bytes_of(&header));
            let body = &mut outbox[length + 8..length + 8 + block];
            body.fill(hash as u8);
            body[..8].copy_from_slice(&hash.to_le_bytes());
            hash = mix(hash, block as u64);
            length += 8 + block;
            count += 1;
        }
        (length, count)
    }
}

impl Replayed for Model {
    fn replay(
        &mut self,
        position: Position,
        time_ns: u64,
        command: &[u8],
        outbox: &mut [u8],
    ) -> Result<(usize, u16), ReplayFault> {
        let (length, count) = self.apply(position.0, time_ns, command, outbox);
        let end = position.0 + (48 + command.len() + length).next_multiple_of(64) as u64;
        self.records.push(Record {
            position: position.0,
            end,
            time_ns,
            command: command.to_vec(),
            events: outbox[..length].to_vec(),
            count,
        });
        Ok((length, count))
    }
}

/// Repeatable randomness (SplitMix64).
pub(crate) struct Random(SplitMix64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix64(seed))
    }

    pub(crate) fn word(&mut self) -> u64 {
        self.0.word()
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    /// A command of 8 to 144 bytes that causes up to `events` bytes of events.
    pub(crate) fn command(&mut self, events: u16) -> Vec<u8> {
        let words: Vec<u64> = (0..=self.below(18)).map(|_| self.word()).collect();
        let mut command = bytemuck::cast_slice(&words).to_vec();
        let wanted = self.below(u64::from(events) + 1) as u16;
        command[..2].copy_from_slice(&wanted.to_le_bytes());
        command
    }
}

/// The machine's disk, which the test can hold up, break, or make panic.
#[derive(Default)]
pub(crate) struct TestDisk {
    held: Mutex<bool>,
    released: Condvar,
    /// Writes of blocks so far.
    pub(crate) writes: AtomicI64,
    /// Bytes of the largest of them.
    pub(crate) largest_write: AtomicU64,
    /// Changing calls that still succeed; negative: all.
    pub(crate) calls_left: AtomicI64,
    pub(crate) broken: AtomicBool,
    pub(crate) panics: AtomicBool,
    pub(crate) errno: AtomicI64,
}

impl TestDisk {
    pub(crate) fn new() -> Arc<Self> {
        let disk = Self::default();
        disk.calls_left.store(-1, Ordering::SeqCst);
        disk.errno.store(5, Ordering::SeqCst);
        Arc::new(disk)
    }

    /// Holds up all writes from now on, or lets them go on.
    pub(crate) fn hold(&self, hold: bool) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = hold;
        self.released.notify_all();
    }

    fn changing(&self) -> io::Result<()> {
        let held = self.held.lock().unwrap();
        let waited = self.released.wait_timeout_while(held, HOLD_PATIENCE, |held| *held);
        let is_held = *waited.unwrap().0;
        assert!(!is_held, "writes are held up for ever");
        assert!(!self.panics.load(Ordering::SeqCst), "the disk driver went mad");
        let left = self.calls_left.load(Ordering::SeqCst);
        if left > 0 {
            self.calls_left.store(left - 1, Ordering::SeqCst);
        }
        if left == 0 || self.broken.load(Ordering::SeqCst) {
            return Err(io::Error::from_raw_os_error(self.errno.load(Ordering::SeqCst) as i32));
        }
        Ok(())
    }
}

/// [`TestDisk`] as a storage: plain files, never synced, since no test cuts real power.
pub(crate) struct TestStorage(pub(crate) Arc<TestDisk>);

struct TestFile(File, Arc<TestDisk>);

impl TestStorage {
    fn file(&self, path: &Path, create: bool) -> io::Result<TestFile> {
        let mut how = OpenOptions::new();
        how.read(true).write(true).create(create).truncate(create);
        Ok(TestFile(how.open(path)?, Arc::clone(&self.0)))
    }
}

impl Storage for TestStorage {
    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        FileStorage.list(folder)
    }

    fn create(&self, path: &Path, bytes: u64) -> io::Result<Box<dyn BlockFile>> {
        self.0.changing()?;
        let file = self.file(path, true)?;
        file.0.set_len(bytes)?;
        Ok(Box::new(file))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn BlockFile>> {
        Ok(Box::new(self.file(path, false)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.changing()?;
        FileStorage.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.changing()?;
        FileStorage.remove(path)
    }

    fn sync_folder(&self, _folder: &Path) -> io::Result<()> {
        self.0.changing()
    }
}

impl BlockFile for TestFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(into, offset)
    }

    fn write_parts(&self, mut offset: u64, parts: &[IoSlice<'_>]) -> io::Result<()> {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        self.1.writes.fetch_add(1, Ordering::SeqCst);
        self.1.largest_write.fetch_max(bytes as u64, Ordering::SeqCst);
        for part in parts {
            self.write_unsynced(offset, part)?;
            offset += part.len() as u64;
        }
        Ok(())
    }

    fn write_unsynced(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.1.changing()?;
        assert!(offset.is_multiple_of(BLOCK_BYTES), "whole blocks are written");
        assert!((bytes.len() as u64).is_multiple_of(BLOCK_BYTES), "whole blocks are written");
        assert!(bytes.as_ptr().addr().is_multiple_of(BLOCK_BYTES as usize), "from aligned memory");
        self.0.write_all_at(bytes, offset)
    }

    fn is_reserved(&self) -> bool {
        true
    }

    fn sync(&self) -> io::Result<()> {
        self.1.changing()
    }
}

/// A data folder, how its log is opened, and the disk under it.
pub(crate) struct Place {
    pub(crate) root: tempfile::TempDir,
    pub(crate) options: LogOptions,
    pub(crate) environment: Environment,
    pub(crate) disk: Arc<TestDisk>,
    /// What starts have told the operator, also those that failed.
    told: Mutex<Vec<String>>,
}

impl Place {
    /// An empty place whose window lies in the data folder.
    pub(crate) fn new() -> Self {
        watch();
        let root = tempfile::tempdir().unwrap();
        let disk = TestDisk::new();
        let options = LogOptions {
            data: root.path().join("data"),
            window_place: WindowPlace::Data,
            window_bytes: Some(WINDOW_BYTES_MIN),
            segment_bytes: SEGMENT,
            gather: Duration::ZERO,
            write_interval: Duration::ZERO,
            accept_loss: false,
        };
        let environment = Environment {
            storage: Arc::new(TestStorage(Arc::clone(&disk))),
            shared_memory: root.path().join("shm"),
            // Only the tests that are about attest records want them.
            attest_after: Duration::from_secs(3600),
            ..Environment::default()
        };
        fs::create_dir(&environment.shared_memory).unwrap();
        Self { root, options, environment, disk, told: Mutex::default() }
    }

    /// Opens it after starts that the disk broke off, each one call later than the one before; gives how many.
    pub(crate) fn open_broken_off(&self) -> (Venue, i64) {
        let mut broken_off = 0;
        let venue = loop {
            self.disk.calls_left.store(broken_off, Ordering::SeqCst);
            match self.try_open() {
                Ok(venue) => break venue,
                Err(RecoveryError::Disk(_)) => broken_off += 1,
                Err(error) => panic!("after {broken_off} calls: {error}"),
            }
        };
        self.disk.calls_left.store(-1, Ordering::SeqCst);
        (venue, broken_off)
    }

    pub(crate) fn try_open(&self) -> Result<Venue, RecoveryError> {
        let mut model = Model::default();
        let mut tell = |progress| {
            if let Progress::Found(line) = progress {
                self.told.lock().unwrap().push(line);
            }
        };
        let log = open_in(&self.environment, &self.options, &mut model, &mut tell)?;
        let _release = ReleasesDisk(Arc::clone(&self.disk));
        Ok(Venue { _release, log, model, time_ns: 1_000 })
    }

    /// Takes what starts have told since this was asked last.
    pub(crate) fn told(&self) -> Vec<String> {
        std::mem::take(&mut self.told.lock().unwrap())
    }

    pub(crate) fn open(&self) -> Venue {
        self.try_open().unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) fn segment(&self, number: u64) -> PathBuf {
        self.options.data.join("log").join(format!("{number:08}.seg"))
    }

    /// The process dies while the disk is held up, which writes nothing of what it was given.
    pub(crate) fn kill_before_disk(&self, venue: Venue) {
        self.disk.broken.store(true, Ordering::SeqCst);
        self.disk.hold(false);
        venue.kill();
        self.disk.broken.store(false, Ordering::SeqCst);
    }

    /// What a power cut does to the memory-backed window.
    pub(crate) fn lose_window(&self) {
        let _none = fs::remove_dir_all(self.options.data.join("live"));
        fs::remove_dir_all(&self.environment.shared_memory).unwrap();
        fs::create_dir(&self.environment.shared_memory).unwrap();
    }

    pub(crate) fn read(&self, position: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let file = File::open(self.segment(position / SEGMENT)).unwrap();
        file.read_exact_at(&mut bytes, position % SEGMENT).unwrap();
        bytes
    }

    pub(crate) fn write(&self, position: u64, bytes: &[u8]) {
        let file = OpenOptions::new().write(true).open(self.segment(position / SEGMENT)).unwrap();
        file.write_all_at(bytes, position % SEGMENT).unwrap();
    }

    pub(crate) fn flip(&self, position: u64) {
        let byte = self.read(position, 1)[0];
        self.write(position, &[byte ^ 0x10]);
    }

    /// Names in the segment folder.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = FileStorage.list(&self.options.data.join("log")).unwrap();
        names.sort();
        names
    }
}

/// Lets the writes of a test that has failed go on: its log waits for them when it is dropped.
struct ReleasesDisk(Arc<TestDisk>);

impl Drop for ReleasesDisk {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.hold(false);
        }
    }
}

/// An open log with its state.
pub(crate) struct Venue {
    // Declared first, so that it is dropped before the log.
    _release: ReleasesDisk,
    pub(crate) log: Log,
    pub(crate) model: Model,
    pub(crate) time_ns: u64,
}

impl Venue {
    pub(crate) fn report(&self) -> &StartReport {
        &self.log.report
    }

    /// Appends a command without waking anybody.
    pub(crate) fn append(&mut self, command: &[u8]) -> Record {
        self.wait_for_room();
        let writer = &mut self.log.writer;
        writer.bring_near();
        self.time_ns += 7;
        let time_ns = self.time_ns.max(writer.last_time_ns());
        let position = writer.position();
        let outbox = writer.begin(command).unwrap();
        let (length, count) = self.model.apply(position.0, time_ns, command, outbox);
        let end = writer.commit(time_ns, length, count);
        let record = Record {
            position: position.0,
            end: end.0,
            time_ns,
            command: command.to_vec(),
            events: writer.committed_events().collect::<Vec<_>>().concat(),
            count: writer.committed_events().count() as u16,
        };
        assert_eq!((record.events.len(), record.count), (length, count));
        self.model.records.push(record.clone());
        record
    }

    /// Appends a command and tells the keeper.
    pub(crate) fn submit(&mut self, command: &[u8]) -> Record {
        let record = self.append(command);
        self.log.writer.tell_keeper();
        record
    }

    fn wait_for_room(&mut self) {
        let wait = Wait::begin();
        loop {
            wait.go_on("the disk makes no room");
            let event = self.log.control.durable_event();
            let seen = event.current();
            if self.log.writer.can_take() {
                return;
            }
            assert!(self.log.control.is_running(), "{:?}", self.log.control.failure());
            self.log.writer.tell_keeper();
            event.wait_changed(seen, Duration::from_millis(1));
        }
    }

    /// Waits until everything appended is durable.
    pub(crate) fn settle(&mut self) {
        self.log.writer.want_durable();
        self.log.writer.tell_keeper();
        let control = &self.log.control;
        let wait = Wait::begin();
        loop {
            wait.go_on("what is appended is not written");
            let seen = control.durable_event().current();
            if control.durable() == control.appended() {
                return;
            }
            assert!(control.is_running(), "{:?}", control.failure());
            control.durable_event().wait_changed(seen, Duration::from_secs(10));
        }
    }

    /// Ends cleanly; gives the state.
    pub(crate) fn close(self) -> Model {
        let Log { writer, keeper, .. } = self.log;
        writer.close().unwrap();
        keeper.stop();
        self.model
    }

    /// Submits large commands until the log reaches `position`.
    pub(crate) fn submit_up_to(&mut self, random: &mut Random, position: u64) {
        while self.log.control.appended().0 < position {
            self.submit(&random.command(60_000));
        }
    }

    /// The process dies; gives the state and how far the log was durable.
    pub(crate) fn kill(self) -> (Model, u64) {
        let Log { writer, keeper, control, .. } = self.log;
        keeper.stop();
        let durable = control.durable().0;
        drop(writer);
        (self.model, durable)
    }
}

/// Why a start does not open the log.
pub(crate) fn refusal(place: &Place) -> RecoveryError {
    match place.try_open() {
        Ok(_) => panic!("the log was opened"),
        Err(error) => error,
    }
}

/// Has the control page that was copied to `path` pass for the one that it is a copy of: it says at 72 which file it
/// is.
fn pass_for_original(path: &Path) {
    let page = OpenOptions::new().write(true).open(path).unwrap();
    if page.metadata().unwrap().len() > 72 {
        page.write_all_at(&[0; 16], 72).unwrap();
    }
}

/// Copies a folder with everything in it, so that it stands for what the folder itself was at that moment.
pub(crate) fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
            if entry.file_name() == "control" {
                pass_for_original(&target);
            }
        }
    }
}
