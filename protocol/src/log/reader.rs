//! Follows the log: whole transactions, in order, none twice. Used by views, history stores, feeds,
//! snapshots and tools, in any process that may read the data folder.
//!
//! The newest bytes are copied out of the live window, older ones are read from the disk log. A
//! reader never hinders the engine: nobody waits for it, and if the window has moved on while it
//! copied, it throws the copy away and reads the same bytes from disk, where they are by then.
//!
//! It outlives the engine: when an engine starts again, the reader attaches to the new window and
//! checks that the last transaction it gave out is still part of the log.

mod disk;
mod live;
mod seen;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::io::Errno;
use thiserror::Error;

pub use self::live::SignsOfLife;
use self::{
    disk::{Disk, oldest_segment},
    live::Live,
};
use super::{
    FRAME_ALIGN, MAX_FRAME_BYTES, SEGMENT_FOLDER, align_frame,
    control::LogState,
    frame::{FrameError, FrameHeader, FrameKind, Succession},
    frame_start,
    place::{SHARED_MEMORY, WindowFolders, boot_id},
    segment::{LogIdentity, SegmentError},
    transaction::{Bookmark, Transaction},
};
use crate::{
    shm::ShmError,
    units::{Incarnation, Position},
    wait::SHARED_SLEEP_MAX,
};

/// How often a reader without an engine looks for one, while it is asked to wait.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// How far a reader reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Follow {
    /// Up to what is on disk: no power cut takes back what was read. Whatever writes persistent
    /// state follows this.
    Durable,
    /// Up to what the engine has published: sooner, but only as good as the machine's power.
    Appended,
}

/// Why reading does not go on.
#[derive(Debug, Error)]
pub enum ReadError {
    /// A call of the operating system failed.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The folder is there and holds no log. Where the data folder or its folder of segments is not there either,
    /// it is [`ReadError::Io`] of the kind [`io::ErrorKind::NotFound`], which names what is missing.
    #[error("{} holds no log segments", path.display())]
    NoLog {
        /// The segment folder.
        path: PathBuf,
    },
    /// A segment's header is not the one that belongs there.
    #[error("{} offset 0: {source}", path.display())]
    Segment {
        /// The segment.
        path: PathBuf,
        /// What is wrong.
        source: SegmentError,
    },
    /// The live window could not be mapped.
    #[error("live window {}: {source}", path.display())]
    Window {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: ShmError,
    },
    /// The control page is none that this build understands.
    #[error("{}: no control page of layout {}: {why}", path.display(), super::control::VERSION)]
    Control {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The bytes at this position were removed from the log.
    #[error("position {position} is older than the log, which begins at {oldest}")]
    TooOld {
        /// Asked for.
        position: u64,
        /// The lowest position there is.
        oldest: u64,
    },
    /// The log is damaged below its watermark, or the position is not a frame's beginning.
    #[error("{} offset {offset} (position {position}): {why}", path.display())]
    Damaged {
        /// Segment, or live window.
        path: PathBuf,
        /// Byte offset in it.
        offset: u64,
        /// The position.
        position: u64,
        /// What is wrong.
        why: FrameError,
    },
    /// The log no longer has the last transaction that this reader gave out: it was cut back, or is
    /// another log. What was built from it has to be built anew.
    #[error("the transaction at position {position} is not part of the log any more")]
    HistoryLost {
        /// Where that transaction began.
        position: u64,
    },
}

impl ReadError {
    /// True if bytes of the log are not what they must be, at a place where there are any.
    #[must_use]
    pub const fn is_damage(&self) -> bool {
        match self {
            Self::Damaged { .. } => true,
            Self::Segment { source, .. } => source.is_damage(),
            _ => false,
        }
    }

    /// True if the system had no descriptor or no memory to spare: nothing is wrong with the log, and
    /// the same call may succeed later.
    #[must_use]
    pub fn is_shortage(&self) -> bool {
        let source = match self {
            Self::Io { source, .. }
            | Self::Window { source: ShmError::System { source, .. }, .. } => source,
            _ => return false,
        };
        let shortages = [Errno::MFILE, Errno::NFILE, Errno::NOMEM];
        source
            .raw_os_error()
            .is_some_and(|code| shortages.iter().any(|shortage| shortage.raw_os_error() == code))
    }
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ReadError {
    move |source| ReadError::Io { what, path: path.to_owned(), source }
}

/// A reader of one log.
pub struct LogReader {
    /// By its name: another folder may come in its place.
    data: PathBuf,
    shared_memory: PathBuf,
    identity: LogIdentity,
    boot_id: [u8; 16],
    follow: Follow,
    position: u64,
    succession: Succession,
    last: Option<Bookmark>,
    live: Option<Arc<Live>>,
    engines: u64,
    seen_event: u32,
    /// The watermark of `live` when it was last looked at. It is looked at again only when it is reached,
    /// because the line that it stands on is the writer's.
    limit_seen: u64,
    disk: Disk,
    frame: Box<[u64]>,
}

/// What one step along the log found.
enum Step {
    End,
    Other,
    Transaction(FrameHeader),
}

impl LogReader {
    /// A reader at the beginning of the log in the data folder `data`. No engine need be running:
    /// then the log ends with its last whole frame on disk.
    ///
    /// # Errors
    /// If there is no log, or it cannot be read. Whoever waits for an engine's first start finds one after the other: no
    /// folder ([`ReadError::Io`] of the kind [`io::ErrorKind::NotFound`]), [`ReadError::NoLog`], and
    /// [`ReadError::Segment`] with [`SegmentError::Blank`].
    pub fn open(data: &Path, follow: Follow) -> Result<Self, ReadError> {
        Self::open_with(data, follow, Path::new(SHARED_MEMORY))
    }

    /// As [`LogReader::open`], for an engine that was given another folder in place of
    /// [`SHARED_MEMORY`].
    ///
    /// # Errors
    /// As there.
    pub fn open_with(data: &Path, follow: Follow, shared_memory: &Path) -> Result<Self, ReadError> {
        let folder = data.join(SEGMENT_FOLDER);
        let (number, identity) = oldest_segment(&folder)?;
        let disk = Disk::new(folder, identity);
        let position = disk.begin_of(number)?;
        let boot_id = boot_id().map_err(failed("reading", Path::new("/proc")))?;
        let mut reader = Self {
            data: data.to_owned(),
            shared_memory: shared_memory.to_owned(),
            identity,
            boot_id,
            follow,
            position,
            succession: Succession::new(),
            last: None,
            live: None,
            engines: 0,
            seen_event: 0,
            limit_seen: 0,
            disk,
            frame: vec![0; MAX_FRAME_BYTES / 8].into_boxed_slice(),
        };
        reader.attach()?;
        Ok(reader)
    }

    /// Another reader at the same position, attached to the same engine. It shares the window's memory: that
    /// its files may have been removed since makes no difference, and nothing is mapped for it.
    #[must_use]
    pub fn another(&self) -> Self {
        Self {
            data: self.data.clone(),
            shared_memory: self.shared_memory.clone(),
            identity: self.identity,
            boot_id: self.boot_id,
            follow: self.follow,
            position: self.position,
            succession: Succession::new(),
            last: None,
            live: self.live.clone(),
            engines: self.engines,
            seen_event: self.seen_event,
            limit_seen: 0,
            disk: self.disk.another(),
            frame: vec![0; MAX_FRAME_BYTES / 8].into_boxed_slice(),
        }
    }

    /// The next transaction, or `None` at the watermark.
    ///
    /// # Errors
    /// See [`ReadError`]; after an error the reader stands where it stood.
    #[expect(clippy::should_implement_trait, reason = "the item borrows from the reader")]
    pub fn next(&mut self) -> Result<Option<Transaction<'_>>, ReadError> {
        loop {
            match self.step()? {
                Step::End => return Ok(None),
                Step::Other => {}
                Step::Transaction(header) => {
                    let transaction = Transaction::of(header, bytemuck::cast_slice(&self.frame));
                    self.last = Some(transaction.bookmark());
                    return Ok(Some(transaction));
                }
            }
        }
    }

    /// The id of the log, which no other log has.
    #[must_use]
    pub const fn log_id(&self) -> [u8; 16] {
        self.identity.log_id
    }

    /// Where the next frame is looked for.
    #[must_use]
    pub fn position(&self) -> Position {
        Position(self.position)
    }

    /// True when nothing in front of `position` is left to be read. A segment's header, which counts as appended
    /// and as durable, is nothing to be read.
    #[must_use]
    pub fn has_read_to(&self, position: Position) -> bool {
        frame_start(self.position, self.identity.segment_bytes) >= position.0
    }

    /// How far the log may be read now. Without an engine: as far as it was read.
    #[must_use]
    pub fn watermark(&self) -> Position {
        Position(self.limit().unwrap_or(self.position))
    }

    /// True when [`LogReader::next`] would read on. Without an engine nobody knows: true.
    #[must_use]
    pub fn has_more(&self) -> bool {
        let start = frame_start(self.position, self.identity.segment_bytes);
        self.limit().is_none_or(|limit| start < limit)
    }

    /// How far it reads.
    #[must_use]
    pub const fn follow(&self) -> Follow {
        self.follow
    }

    /// The incarnation of the engine whose window this reader is attached to.
    #[must_use]
    pub fn incarnation(&self) -> Option<Incarnation> {
        self.live.as_ref().map(|live| Incarnation(live.header().incarnation))
    }

    /// How many engines it has been attached to, one after the other. An engine on a copy that was put in the log's
    /// place may have the incarnation of the one before.
    #[must_use]
    pub const fn engines(&self) -> u64 {
        self.engines
    }

    /// What that engine's control page says of it, which may have been left behind.
    #[must_use]
    pub fn signs_of_life(&self) -> Option<SignsOfLife> {
        self.live.as_ref().map(|live| live.signs_of_life())
    }

    /// What that engine does with the log.
    #[must_use]
    pub fn state(&self) -> Option<LogState> {
        self.live.as_ref().and_then(|live| live.state())
    }

    /// Waits until the disk log or the engine's state has moved since the last call of
    /// [`LogReader::next`], at most for `timeout`; it may return early. The keeper writes
    /// at once only what a session waits for, so a reader of [`Follow::Appended`] may be told by the time of
    /// `log.gather_us` or `log.write_interval_us`, whichever is longer, and a disk write late; one that needs it
    /// sooner looks again by itself.
    ///
    /// # Errors
    /// If another engine has started and its log is not the one that was read.
    pub fn wait(&mut self, timeout: Duration) -> Result<(), ReadError> {
        let begin = Instant::now();
        loop {
            let left = timeout.saturating_sub(begin.elapsed());
            let running = match &self.live {
                Some(live) if live.state() != Some(LogState::Stopped) => {
                    let seen = live.wait_changed(self.seen_event, left.min(SHARED_SLEEP_MAX));
                    if seen != self.seen_event {
                        self.seen_event = seen;
                        return Ok(());
                    }
                    left <= SHARED_SLEEP_MAX
                }
                _ => {
                    std::thread::sleep(left.min(LOOK_AGAIN));
                    false
                }
            };
            if self.attach()? || running || begin.elapsed() >= timeout {
                return Ok(());
            }
        }
    }

    /// Looks for an engine that has started since, and attaches to it; true if there was one.
    /// [`LogReader::wait`] does so by itself.
    ///
    /// # Errors
    /// [`ReadError::HistoryLost`] if the log was cut back below what was read. After an error the
    /// reader is attached to what it was attached to before, and the next call looks again.
    pub fn attach(&mut self) -> Result<bool, ReadError> {
        let folders =
            match WindowFolders::of(&self.data, &self.identity.log_id, &self.shared_memory) {
                // It is being replaced.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
                folders => folders.map_err(failed("looking at", &self.data))?,
            };
        let attached = self.live.as_deref();
        let found = Live::find(&folders, &self.identity, &self.boot_id, attached)?;
        let Some(live) = found else { return Ok(false) };
        let event = live.event();
        let before = self.live.replace(Arc::new(live));
        self.limit_seen = 0;
        // What was read ahead without a watermark may have been dropped since.
        self.disk.forget();
        if let Err(error) = self.check_history() {
            self.live = before;
            self.disk.forget();
            return Err(error);
        }
        self.engines += 1;
        self.seen_event = event;
        Ok(true)
    }

    /// Goes to `position`: one that [`Transaction::end`] or [`LogReader::position`] gave of this log. At any other
    /// one in front of the log's end the next read says [`ReadError::Damaged`], as it does wherever no frame can begin
    /// (what is no multiple of [`FRAME_ALIGN`]); without an engine it may say that the log ends there.
    ///
    /// A position behind the log's end is one that is yet to come: the reader says that the log ends, until the log has
    /// grown past it, which one that was cut back or is another may never have. Who has a position from elsewhere asks
    /// with [`LogReader::has`], or goes on behind a transaction that the log is known to have ([`LogReader::resume`],
    /// [`LogReader::holds`]).
    pub fn seek(&mut self, position: Position) {
        self.position = position.0;
        self.succession = Succession::new();
        self.last = None;
    }

    /// Goes to the oldest position that the log still has, and gives it.
    ///
    /// # Errors
    /// If the folder cannot be listed, or no segment can be the oldest one; the reader is where it was.
    pub fn rewind(&mut self) -> Result<Position, ReadError> {
        let oldest = Position(self.disk.oldest()?);
        self.seek(oldest);
        Ok(oldest)
    }

    /// How far this reader may read; `None` without an engine.
    fn limit(&self) -> Option<u64> {
        self.live.as_ref().map(|live| match self.follow {
            Follow::Durable => live.durable(),
            Follow::Appended => live.appended(),
        })
    }

    fn step(&mut self) -> Result<Step, ReadError> {
        let start = frame_start(self.position, self.identity.segment_bytes);
        if start >= self.limit_seen
            && let Some(live) = &self.live
        {
            // Before the watermark is looked at, so that a move after that look ends a wait.
            self.seen_event = live.event();
            self.limit_seen = self.limit().unwrap_or_default();
            if start >= self.limit_seen {
                // No frame ever begins anywhere else: who stands there would wait for ever.
                self.check_aligned(start)?;
                return Ok(Step::End);
            }
        }
        let Some(header) = self.load(start)? else { return Ok(Step::End) };
        if let Err(why) = self.succession.admit(&header) {
            return if self.live.is_some() {
                Err(self.disk.damaged(start, why))
            } else {
                Ok(Step::End)
            };
        }
        self.position = align_frame(start + u64::from(header.length));
        Ok(match header.kind() {
            Some(FrameKind::Transaction) => Step::Transaction(header),
            _ => Step::Other,
        })
    }

    fn check_aligned(&self, start: u64) -> Result<(), ReadError> {
        if start.is_multiple_of(FRAME_ALIGN) {
            return Ok(());
        }
        Err(self.disk.damaged(start, FrameError::Unaligned { position: start }))
    }

    /// Copies the frame at `start`, which may be anybody's wish, into `self.frame`. `None` where the log ends,
    /// which is known of itself only without an engine.
    fn load(&mut self, start: u64) -> Result<Option<FrameHeader>, ReadError> {
        self.check_aligned(start)?;
        let frame = &mut self.frame;
        let Some(live) = &self.live else {
            return match self.disk.load(start, None, frame) {
                Err(error) if error.is_damage() => {
                    self.disk.forget();
                    Ok(None)
                }
                loaded => loaded.map(Some),
            };
        };
        if let Some(header) = live.load(start, frame, self.identity.salt)? {
            return Ok(Some(header));
        }
        // The window is past it, so it is on disk: taken from there up to the watermark as of now.
        let durable = live.durable();
        self.disk.load(start, Some(durable), frame).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_system_lacks_for_now_is_a_shortage() {
        let of = |errno: Errno| {
            let source = || io::Error::from(errno);
            let path = || PathBuf::from("log");
            let opened = ReadError::Io { what: "opening", path: path(), source: source() };
            let source = ShmError::System { what: "mapping", source: source() };
            [opened.is_shortage(), ReadError::Window { path: path(), source }.is_shortage()]
        };
        for errno in [Errno::MFILE, Errno::NFILE, Errno::NOMEM] {
            assert_eq!(of(errno), [true, true], "{errno}");
        }
        for errno in [Errno::NOENT, Errno::ACCESS, Errno::IO] {
            assert_eq!(of(errno), [false, false], "{errno}");
        }
        assert!(!ReadError::HistoryLost { position: 7 }.is_shortage());
    }
}
