//! A data folder over a simulated disk, the engine's log on it, and what must be found there after an
//! accident. Used by every search here.

use super::disk::SimDisk;
use super::random::Random;
use super::venue::{self, State};
use crate::patience::{Wait, watch};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use touchline_engine::log::{Control, Environment, Log, LogOptions, WindowPlace, open_in};
use touchline_engine::recovery::{RecoveryError, ReplayFault, Replayed};
use touchline_engine::snapshot::SnapshotContent;
use touchline_protocol::log::{
    SEGMENT_FOLDER, WINDOW_BYTES_MIN, WINDOW_SEGMENT_BYTES, segment_path,
};
use touchline_protocol::units::Position;

/// A segment of these logs: the smallest.
pub(crate) const SEGMENT: u64 = WINDOW_SEGMENT_BYTES;

const START_NS: u64 = 1_700_000_000_000_000_000;

/// One transaction as it must come back.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) position: u64,
    pub(crate) time_ns: u64,
    pub(crate) command: Vec<u8>,
    /// Bytes of its events, which recovery itself compares.
    pub(crate) event_bytes: usize,
}

impl std::fmt::Debug for Record {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} to {}", self.position, self.end())
    }
}

impl Record {
    /// Behind its last byte.
    pub(crate) fn end(&self) -> u64 {
        self.position + (48 + self.command.len() + self.event_bytes) as u64
    }
}

/// A state, and the transactions that made it.
pub(crate) struct History {
    pub(crate) state: State,
    pub(crate) records: Vec<Record>,
    /// Commands that recovery has shown and not yet replayed.
    shown: RefCell<VecDeque<Vec<u8>>>,
}

impl History {
    pub(crate) fn new() -> Self {
        Self::of(State::new(), Vec::new())
    }

    /// A state that these have made.
    pub(crate) fn of(state: State, records: Vec<Record>) -> Self {
        Self { state, records, shown: RefCell::default() }
    }

    /// Compares with a core that is fed `records` and has never seen a log.
    pub(crate) fn check(&self, records: &[Record]) {
        assert_eq!(self.records, records);
        let mut state = State::new();
        let mut area = vec![0_u64; 1 << 13];
        for record in records {
            let area = bytemuck::cast_slice_mut(&mut area);
            let applied = state.apply(record.position, record.time_ns, &record.command, area);
            assert_eq!(applied.unwrap().0, record.event_bytes);
        }
        assert_eq!(self.state.hash(), state.hash());
        self.state.core.validate().unwrap();
    }
}

impl Replayed for History {
    fn restore(&mut self, content: &mut SnapshotContent<'_>) -> Result<(), String> {
        *self = super::snapshots::read(content)?;
        Ok(())
    }

    fn look_ahead<'bytes>(&self, coming: impl Iterator<Item = &'bytes [u8]>) {
        let mut shown = self.shown.borrow_mut();
        assert!(shown.is_empty(), "{} commands were shown and have not come", shown.len());
        shown.extend(coming.map(<[u8]>::to_vec));
        assert!(!shown.is_empty(), "nothing was shown");
    }

    fn replay(
        &mut self,
        position: Position,
        time_ns: u64,
        command: &[u8],
        outbox: &mut [u8],
    ) -> Result<(usize, u16), ReplayFault> {
        // Commands that are new, and some that lie at the end of a piece of the log, come without.
        if let Some(shown) = self.shown.get_mut().pop_front() {
            assert!(shown == command, "at {}: another command was shown", position.0);
        }
        let (length, count) = self.state.apply(position.0, time_ns, command, outbox)?;
        self.records.push(Record {
            position: position.0,
            time_ns,
            command: command.to_vec(),
            event_bytes: length,
        });
        Ok((length, count))
    }
}

/// A data folder.
pub(crate) struct Place {
    root: TempDir,
    pub(crate) options: LogOptions,
    pub(crate) disk: SimDisk,
}

impl Place {
    /// An empty one over `disk`, its window in the data folder.
    pub(crate) fn new(disk: SimDisk) -> Self {
        watch();
        let root = tempfile::tempdir().unwrap();
        let options = LogOptions {
            data: root.path().join("data"),
            window_place: WindowPlace::Data,
            window_bytes: Some(WINDOW_BYTES_MIN),
            segment_bytes: SEGMENT,
            gather: Duration::ZERO,
            write_interval: Duration::ZERO,
            accept_loss: false,
        };
        Self { root, options, disk }
    }

    /// Another data folder that holds the same, on a disk of its own.
    pub(crate) fn copy(&self) -> Self {
        let copy = Self::new(self.disk.copy());
        copy_files(&self.live(), &copy.live());
        copy
    }

    /// The folder of segments.
    pub(crate) fn folder(&self) -> PathBuf {
        self.options.data.join(SEGMENT_FOLDER)
    }

    /// The folder of the live window.
    pub(crate) fn live(&self) -> PathBuf {
        self.options.data.join("live")
    }

    pub(crate) fn segment(&self, number: u64) -> PathBuf {
        segment_path(&self.folder(), number)
    }

    fn environment(&self) -> Environment {
        Environment {
            storage: Arc::new(self.disk.clone()),
            shared_memory: self.root.path().join("shm"),
            // Only tests that are about attest records want them.
            attest_after: Duration::from_secs(3600),
            ..Environment::default()
        }
    }

    /// A start of the engine.
    pub(crate) fn try_open(&self) -> Result<Venue, RecoveryError> {
        let mut history = History::new();
        let log = open_in(&self.environment(), &self.options, &mut history, &mut |_| {})?;
        let time_ns = START_NS.max(log.report.last_time_ns);
        let _release = ReleasesDisk(self.disk.clone());
        Ok(Venue { _release, log, history, time_ns })
    }

    pub(crate) fn open(&self) -> Venue {
        self.try_open().unwrap_or_else(|error| panic!("refused: {error}"))
    }

    /// The window is gone, as after a power cut.
    pub(crate) fn lose_window(&self) {
        let _none = fs::remove_dir_all(self.live());
    }

    /// The power is cut: window gone, disk as it is then.
    pub(crate) fn cut_power(&self) {
        self.lose_window();
        self.disk.cut_power();
    }

    /// All of the log's bytes, by position.
    pub(crate) fn image(&self) -> Vec<u8> {
        let mut image = Vec::new();
        for number in 0.. {
            let path = self.segment(number);
            if !self.disk.has(&path) {
                break;
            }
            image.extend(self.disk.read(&path));
        }
        image
    }

    /// Writes `image` over the segments behind everybody's back; other files of the folder go.
    pub(crate) fn restore(&self, image: &[u8]) {
        for name in self.disk.names() {
            self.disk.take(&self.folder().join(name));
        }
        for (number, bytes) in (0..).zip(image.chunks(SEGMENT as usize)) {
            self.disk.put(&self.segment(number), bytes.to_vec());
        }
    }

    /// Writes the bytes `range` of `image` to where they belong in the segments that there are, behind
    /// everybody's back.
    pub(crate) fn overwrite(&self, image: &[u8], range: Range<usize>) {
        let mut from = range.start;
        while from < range.end {
            let number = from as u64 / SEGMENT;
            let begin = (number * SEGMENT) as usize;
            let to = range.end.min(begin + SEGMENT as usize);
            self.disk.edit(&self.segment(number), |bytes| {
                bytes[from - begin..to - begin].copy_from_slice(&image[from..to]);
            });
            from = to;
        }
    }
}

/// Lets the writes of a test that has failed go on: its log waits for them when it is dropped.
struct ReleasesDisk(SimDisk);

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
    pub(crate) history: History,
    time_ns: u64,
}

impl Venue {
    /// Defines the venue, as far as it is not.
    pub(crate) fn define(&mut self) {
        let done = self.history.records.len().min(venue::definition().len());
        for command in &venue::definition()[done..] {
            if !self.append(command) {
                return;
            }
        }
    }

    /// Appends a command without waking anybody. False if the log or the core does not take it.
    pub(crate) fn append(&mut self, command: &[u8]) -> bool {
        if !self.wait_for_room() {
            return false;
        }
        self.time_ns += 1_000;
        let time_ns = self.time_ns;
        let writer = &mut self.log.writer;
        let position = writer.position();
        // The log may have failed just now.
        let Ok(outbox) = writer.begin(command) else { return false };
        match self.history.replay(position, time_ns, command, outbox) {
            Ok((length, count)) => {
                writer.commit(time_ns, length, count);
                true
            }
            Err(_) => {
                writer.abandon();
                false
            }
        }
    }

    /// Appends some random command of the venue.
    pub(crate) fn trade(&mut self, random: &mut Random) {
        let command = venue::command(random, &self.history.state.core);
        self.append(&command);
    }

    /// Appends a filler of up to so many bytes.
    pub(crate) fn fill(&mut self, random: &mut Random, bytes: u64) {
        let wanted = random.below(bytes + 1);
        let command = venue::filler(random, wanted);
        self.append(&command);
    }

    /// Appends fillers up to a position that is at most `short` bytes before `position`.
    pub(crate) fn fill_up_to(&mut self, random: &mut Random, position: u64, short: u64) {
        loop {
            let now = self.log.writer.position().0;
            if now + short >= position {
                return;
            }
            let bytes = (position - now).min(venue::FILLER_BYTES_MAX).saturating_sub(512);
            let command = venue::filler(random, bytes);
            if !self.append(&command) {
                return;
            }
            self.settle();
        }
    }

    fn wait_for_room(&mut self) -> bool {
        let wait = Wait::begin();
        loop {
            wait.go_on("the disk makes no room");
            let event = self.log.control.durable_event();
            let seen = event.current();
            if self.log.writer.can_take() {
                return true;
            }
            if !self.log.control.is_running() {
                return false;
            }
            self.log.writer.tell_keeper();
            event.wait_changed(seen, Duration::from_millis(1));
        }
    }

    /// Waits until everything appended is durable, or the log has failed.
    pub(crate) fn settle(&mut self) {
        self.log.writer.want_durable();
        self.log.writer.tell_keeper();
        let control = &self.log.control;
        let wait = Wait::begin();
        loop {
            wait.go_on("what is appended is not written");
            let seen = control.durable_event().current();
            if control.durable() == control.appended() || !control.is_running() {
                return;
            }
            control.durable_event().wait_changed(seen, Duration::from_secs(10));
        }
    }

    /// Where the log ends, and how far it is durable.
    pub(crate) fn marks(&self) -> (u64, u64) {
        (self.log.control.appended().0, self.log.control.durable().0)
    }

    /// Ends; gives what was done, and whether the end was a clean one.
    pub(crate) fn close(self) -> (Vec<Record>, bool) {
        let Log { writer, keeper, control, .. } = self.log;
        let is_clean = writer.close().is_ok();
        keeper.stop();
        check_failure(&control);
        (self.history.records, is_clean)
    }

    /// The process dies; gives what was appended and how far the log was durable.
    pub(crate) fn kill(self) -> (Vec<Record>, u64) {
        let Log { writer, keeper, control, .. } = self.log;
        keeper.stop();
        check_failure(&control);
        let durable = control.durable().0;
        drop(writer);
        (self.history.records, durable)
    }
}

/// If the log failed, the disk did: a keeper that panics, be it of what the disk demands, is no such fault.
fn check_failure(control: &Control) {
    let failure = control.failure();
    assert!(failure.as_ref().is_none_or(|why| !why.contains("panicked")), "{failure:?}");
}

/// Copies a folder's files, so that they stand for what the folder itself was at that moment.
pub(crate) fn copy_files(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in fs::read_dir(from).into_iter().flatten() {
        let path = file.unwrap().path();
        if path.is_file() {
            let mut bytes = fs::read(&path).unwrap();
            if path.ends_with("control")
                && let Some(file_identity) = bytes.get_mut(72..88)
            {
                // By which a control page is known from a copy of it.
                file_identity.fill(0);
            }
            fs::write(to.join(path.file_name().unwrap()), bytes).unwrap();
        }
    }
}
