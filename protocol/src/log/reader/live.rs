//! The reader's side of the live window: finding it, its watermarks, and frames out of it. Called by
//! the reader.

use std::{
    fs::File,
    io,
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
    time::Duration,
};

use super::{ReadError, failed};
use crate::{
    log::{
        WINDOW_BYTES_MIN, WINDOW_SEGMENT_BYTES,
        control::{
            APPENDED_OFFSET, CONTROL_BYTES, CONTROL_FILE, ControlHeader, DURABLE_EVENT_OFFSET,
            DURABLE_OFFSET, FEED_OFFSET, HEARTBEAT_NS_OFFSET, LogState, MAGIC, STATE_OFFSET,
            VERSION, WINDOW_BASE_OFFSET, WINDOW_FILE,
        },
        frame::{self, FRAME_HEADER_BYTES, FrameHeader, FrameKind},
        place::WindowFolders,
        segment::LogIdentity,
    },
    overtaking::copy_out,
    regular_file,
    shm::{ReadOnlyRegion, SharedReadOnly, ShmError},
    sync::{AtomicU32, AtomicU64},
    units::Position,
    wait::EventWatch,
};

/// Control page and window of one incarnation, mapped without write permission.
pub(super) struct Live {
    header: ControlHeader,
    /// See [`page_id`].
    page: (u64, u64),
    path: PathBuf,
    heartbeat_ns: SharedReadOnly<AtomicU64>,
    appended: SharedReadOnly<AtomicU64>,
    durable: SharedReadOnly<AtomicU64>,
    window_base: SharedReadOnly<AtomicU64>,
    durable_event: SharedReadOnly<AtomicU32>,
    state: SharedReadOnly<AtomicU32>,
    feed: SharedReadOnly<AtomicU64>,
    window: SharedReadOnly<[AtomicU64]>,
}

/// What the control page of an engine says of that engine itself. A page may be left behind: whether the engine
/// still runs is for who asks to judge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SignsOfLife {
    /// Process id of the engine, as it sees itself.
    pub pid: u32,
    /// When it was last alive, ns since the epoch; 0 before its first turn.
    pub heartbeat_ns: u64,
    /// How far the log is on disk.
    pub durable: Position,
    /// Behind the last published frame.
    pub appended: Position,
    /// How far its public feed has read the log; `None` if it has no feed, or is too old to tell.
    pub feed: Option<Position>,
}

impl Live {
    /// The window of the newest incarnation of this log in this running of the machine, if it still counts
    /// and comes behind the one that is attached.
    pub(super) fn find(
        folders: &WindowFolders,
        identity: &LogIdentity,
        boot_id: &[u8; 16],
        attached: Option<&Self>,
    ) -> Result<Option<Self>, ReadError> {
        let mut newest = None;
        for folder in folders.to_search().map_err(failed("looking at", &folders.user))? {
            let Some((file, header)) = open_control(folder, boot_id)? else { continue };
            let ours =
                header.log_id == identity.log_id && header.segment_bytes == identity.segment_bytes;
            let best = newest.as_ref().map(|(_, _, best): &(_, _, ControlHeader)| best.incarnation);
            if ours && Some(header.incarnation) > best {
                newest = Some((folder, file, header));
            }
        }
        let Some((folder, file, header)) = newest else { return Ok(None) };
        let is_behind =
            attached.map_or(Ok(true), |attached| attached.is_followed_by(&file, &header));
        if is_behind.map_err(failed("reading", &folder.join(CONTROL_FILE)))? {
            Self::map(folder, &file, header)
        } else {
            Ok(None)
        }
    }

    /// Whether the engine of another control page has started behind this one's. Where the log was restored from
    /// an older copy it may have any incarnation: then it is known by that this one has ended, or by its later sign
    /// of life, which a page that somebody has left behind does not have.
    fn is_followed_by(&self, file: &File, header: &ControlHeader) -> io::Result<bool> {
        if header.incarnation > self.header.incarnation {
            return Ok(true);
        }
        if page_id(file)? == self.page {
            return Ok(false);
        }
        Ok(self.state() == Some(LogState::Stopped) || heartbeat(file)? >= self.heartbeat())
    }

    fn map(
        folder: &Path,
        control: &File,
        header: ControlHeader,
    ) -> Result<Option<Self>, ReadError> {
        let path = folder.join(WINDOW_FILE);
        let window = match regular_file::open(&path) {
            Ok(window) => window,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed("opening", &path)(error)),
        };
        let refused = |name| {
            let path = folder.join(name);
            move |source| ReadError::Window { path, source }
        };
        let page_id = page_id(control).map_err(failed("looking at", &folder.join(CONTROL_FILE)))?;
        let page =
            ReadOnlyRegion::map_file(control, CONTROL_BYTES).map_err(refused(CONTROL_FILE))?;
        let state = page.u32_at(STATE_OFFSET).map_err(refused(CONTROL_FILE))?;
        // SYNC: an engine that recovers stops the old page before it touches the old window, which was seen
        // touched or whole by now: if this has not happened, the window just opened belongs to the page.
        let state_now = || LogState::from_word(state.view().load_acquire());
        match Self::over(path, (page_id, &page), &window, header) {
            Ok(live) => {
                let counts = state_now().is_some_and(|state| state != LogState::Stopped);
                Ok(counts.then_some(live))
            }
            // The next one is being made in its place, and has not its length yet.
            Err(_) if state_now() == Some(LogState::Stopped) => Ok(None),
            Err(source) => Err(refused(WINDOW_FILE)(source)),
        }
    }

    fn over(
        path: PathBuf,
        (page_id, page): ((u64, u64), &ReadOnlyRegion),
        window: &File,
        header: ControlHeader,
    ) -> Result<Self, ShmError> {
        let bytes = usize::try_from(header.window_bytes).unwrap_or(usize::MAX);
        let region = ReadOnlyRegion::map_file(window, bytes)?;
        Ok(Self {
            header,
            page: page_id,
            path,
            heartbeat_ns: page.u64_at(HEARTBEAT_NS_OFFSET)?,
            appended: page.u64_at(APPENDED_OFFSET)?,
            durable: page.u64_at(DURABLE_OFFSET)?,
            window_base: page.u64_at(WINDOW_BASE_OFFSET)?,
            durable_event: page.u32_at(DURABLE_EVENT_OFFSET)?,
            state: page.u32_at(STATE_OFFSET)?,
            feed: page.u64_at(FEED_OFFSET)?,
            window: region.words(0, bytes / 8)?,
        })
    }

    pub(super) fn header(&self) -> &ControlHeader {
        &self.header
    }

    pub(super) fn appended(&self) -> u64 {
        // SYNC: pairs with the duty thread's release store: all bytes below it are seen.
        self.appended.view().load_acquire()
    }

    pub(super) fn durable(&self) -> u64 {
        // SYNC: pairs with the keeper's release store after its write was complete.
        self.durable.view().load_acquire()
    }

    pub(super) fn state(&self) -> Option<LogState> {
        LogState::from_word(self.state.view().load_acquire())
    }

    fn heartbeat(&self) -> u64 {
        self.heartbeat_ns.view().load_acquire()
    }

    pub(super) fn signs_of_life(&self) -> SignsOfLife {
        // In this order: what the feed has read, what was decided by the heartbeat's time, and what is durable, was
        // appended before.
        let feed = Some(Position(self.feed.view().load_acquire())).filter(|feed| feed.0 > 0);
        let (heartbeat_ns, durable) = (self.heartbeat(), Position(self.durable()));
        let appended = Position(self.appended());
        SignsOfLife { pid: self.header.pid, heartbeat_ns, durable, appended, feed }
    }

    pub(super) fn event(&self) -> u32 {
        EventWatch::new(self.durable_event.view()).current()
    }

    pub(super) fn wait_changed(&self, seen: u32, limit: Duration) -> u32 {
        EventWatch::new(self.durable_event.view()).wait_changed(seen, limit)
    }

    /// Copies the frame at `start`, which lies below the watermark, into `into`, all checks made.
    /// `None` if the window has moved past it.
    pub(super) fn load(
        &self,
        start: u64,
        into: &mut [u64],
        salt: u32,
    ) -> Result<Option<FrameHeader>, ReadError> {
        let damaged = |why| ReadError::Damaged {
            path: self.path.clone(),
            offset: start % self.header.window_bytes,
            position: start,
            why,
        };
        let head = &mut into[..FRAME_HEADER_BYTES / 8];
        if !self.copy(start, head, || {}) {
            return Ok(None);
        }
        let header = FrameHeader::read(bytemuck::cast_slice(head)).map_err(damaged)?;
        let length = match header.check_shape(start).map_err(damaged)? {
            FrameKind::Padding => FRAME_HEADER_BYTES,
            _ => header.length as usize,
        };
        let whole = &mut into[..length / 8];
        if !self.copy(start, whole, || {}) {
            return Ok(None);
        }
        frame::check(bytemuck::cast_slice(whole), start, salt).map(Some).map_err(damaged)
    }

    /// Copies words from `position` on; false, and `into` means nothing, if the window was already
    /// past them or came past them meanwhile. They lie in one window segment. `between` runs after
    /// the copy and before the check.
    fn copy(&self, position: u64, into: &mut [u64], between: impl FnOnce()) -> bool {
        let first = (position % self.header.window_bytes / 8) as usize;
        let base = self.window_base.view();
        copy_out(self.window.view(), first, into, base, position, between)
    }
}

/// Device and inode of a control page, which no other one has while this one is mapped.
fn page_id(control: &File) -> io::Result<(u64, u64)> {
    let metadata = control.metadata()?;
    Ok((metadata.dev(), metadata.ino()))
}

/// The last sign of life of the engine whose control page this is.
fn heartbeat(control: &File) -> io::Result<u64> {
    let mut bytes = [0; 8];
    control.read_exact_at(&mut bytes, HEARTBEAT_NS_OFFSET as u64)?;
    Ok(u64::from_le_bytes(bytes))
}

/// The control page in `folder`, unless there is none, or none of this running of the kernel, or a copy of one.
fn open_control(
    folder: &Path,
    boot_id: &[u8; 16],
) -> Result<Option<(File, ControlHeader)>, ReadError> {
    let path = folder.join(CONTROL_FILE);
    let file = match regular_file::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("opening", &path)(error)),
    };
    let header = ControlHeader::read(&file).map_err(failed("reading", &path))?;
    let Some(header) = header.filter(|header| !header.is_of_another_boot(boot_id)) else {
        return Ok(None);
    };
    let refuse = |why| Err(ReadError::Control { path: path.clone(), why });
    let is_known = header.magic == MAGIC && header.version == VERSION;
    if is_known && header.is_copied_to(&file).map_err(failed("looking at", &path))? {
        return Ok(None);
    }
    if !is_known {
        return refuse(format!("mark {:02x?}, layout {}", header.magic, header.version));
    }
    let bytes = header.window_bytes;
    if bytes < WINDOW_BYTES_MIN || !bytes.is_multiple_of(WINDOW_SEGMENT_BYTES) {
        return refuse(format!("window of {bytes} bytes"));
    }
    Ok(Some((file, header)))
}

#[cfg(test)]
mod tests;
