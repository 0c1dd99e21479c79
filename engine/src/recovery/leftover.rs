//! The live window that the last engine has left: checking it against the disk, bringing onto disk what
//! is only there, and taking it out of use. Called by recovery; the tools check it as a start does, and change
//! nothing.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, IoSlice},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use touchline_protocol::{
    log::{
        BLOCK_BYTES, FRAME_ALIGN, WINDOW_BYTES_MIN, WINDOW_SEGMENT_BYTES,
        control::{
            APPENDED_OFFSET, CONTROL_BYTES, CONTROL_FILE, ControlHeader, DURABLE_EVENT_OFFSET,
            DURABLE_OFFSET, HEARTBEAT_NS_OFFSET, LogState, MAGIC, PANICKED_OFFSET, STATE_OFFSET,
            VERSION, WINDOW_BASE_OFFSET, WINDOW_FILE,
        },
        frame::{FRAME_HEADER_BYTES, FrameHeader, FrameKind, MAX_COMMAND_BYTES},
        frame_start,
        place::WindowFolders,
        segment::LogIdentity,
        window_segment_rest,
    },
    regular_file,
    shm::{ReadOnlyRegion, Region, SharedReadOnly},
    units::{Incarnation, Position},
    wait::EventCounter,
};

use super::{
    RecoveryError,
    chain::{Walked, walk},
    copied::{CopiedWindow, check_free},
    segments::Segments,
};
use crate::log::{
    disk::{DiskLog, aligned_buffer},
    lock::FolderLock,
};

/// What the names of files end with whose commands engines have panicked of.
pub(crate) const FATAL: &str = "fatal";

/// A command whose application was never completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Poison {
    /// Incarnation of the engine that died.
    pub incarnation: Incarnation,
    /// Where the transaction would have begun.
    pub position: Position,
    /// Where the command is saved.
    pub path: PathBuf,
    /// The engine panicked of it. Else it was ended meanwhile, by whatever: a kill finds many engines so.
    pub is_fatal: bool,
    /// The command.
    pub command: Vec<u8>,
}

/// What a window is looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To be brought to disk and taken out of use: it is locked.
    Take,
    /// To be looked at, beside whoever else does.
    Look,
}

/// The window of the last engine in this running of the machine.
pub(super) struct Leftover {
    pub(super) folder: PathBuf,
    pub(super) header: ControlHeader,
    pub(super) base: u64,
    pub(super) durable: u64,
    pub(super) appended: u64,
    /// The engine's last sign of life, ns since the epoch; 0 for none. It is true of a window that does not count
    /// any more, too. Anything may stand there.
    pub(super) heartbeat_ns: u64,
    /// The duty thread had panicked.
    has_panicked: bool,
    /// False after a clean end, when an earlier recovery has brought everything onto disk, and if it is lost.
    pub(super) counts: bool,
    /// Somebody has removed its file: what was not durable is gone.
    pub(super) is_lost: bool,
    /// Its control page, to be written, and the lock on its folder; of one that is only looked at there is neither.
    taken: Option<(Region, FolderLock)>,
    window: Option<SharedReadOnly<[AtomicU64]>>,
}

impl Leftover {
    /// The newest window of this log, if it is of this running of the machine. Those that were copied to where they
    /// lie go to `copies`, if they are to be taken.
    pub(super) fn find(
        folders: &WindowFolders,
        identity: &LogIdentity,
        boot_id: &[u8; 16],
        purpose: Purpose,
        copies: &mut Vec<CopiedWindow>,
    ) -> Result<Option<Self>, RecoveryError> {
        let mut newest: Option<Self> = None;
        let failed = |source| RecoveryError::of_left_window(&folders.shared_memory, source);
        for folder in folders.to_search().map_err(failed)? {
            let found = Self::open(folder, (identity, boot_id), purpose, copies)
                .map_err(|source| RecoveryError::of_left_window(folder, source))?;
            let Some(found) = found else { continue };
            if newest.as_ref().is_none_or(|best| best.header.incarnation < found.header.incarnation)
            {
                newest = Some(found);
            }
        }
        Ok(newest)
    }

    /// The window in `folder`, as [`Leftover::find`] looks at it.
    pub(super) fn open(
        folder: &Path,
        (identity, boot_id): (&LogIdentity, &[u8; 16]),
        purpose: Purpose,
        copies: &mut Vec<CopiedWindow>,
    ) -> io::Result<Option<Self>> {
        let takes = purpose == Purpose::Take;
        let open = |name| {
            let path = folder.join(name);
            regular_file::open_as(OpenOptions::new().read(true).write(takes), &path)
                .map_err(named(&path))
        };
        let file = match open(CONTROL_FILE) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let lock = if takes { Some(FolderLock::take_window(folder)?) } else { None };
        // Of an earlier running of the machine: its bytes reached the disk in any order or not.
        let header = ControlHeader::read(&file)?;
        let Some(header) = header.filter(|header| !header.is_of_another_boot(boot_id)) else {
            return Ok(None);
        };
        check_header(&header, identity)?;
        if header.is_copied_to(&file)? {
            check_free(folder, header.incarnation)?;
            if let Some(lock) = lock {
                copies.push(CopiedWindow::of(folder, header.incarnation, lock));
            }
            return Ok(None);
        }
        let page = ReadOnlyRegion::map_file(&file, CONTROL_BYTES)
            .map_err(|error| named(&folder.join(CONTROL_FILE))(io::Error::other(error)))?;
        let words = ControlWords::read(&page)?;
        let ControlWords { base, durable, heartbeat_ns, has_panicked, is_wanted, .. } = words;
        let mut appended = words.appended;
        // One that has moved meanwhile is in use, and in order.
        if word(&page, WINDOW_BASE_OFFSET)? == base {
            check_positions(&header, (base, durable, appended))?;
        }
        let window = match open(WINDOW_FILE) {
            _ if !is_wanted => None,
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            opened => {
                let window = map_window(&opened?, &header);
                Some(window.map_err(named(&folder.join(WINDOW_FILE)))?)
            }
        };
        let taken = match lock {
            Some(lock) => {
                Some((Region::map_file(&file, CONTROL_BYTES).map_err(io::Error::other)?, lock))
            }
            None => None,
        };
        let counts = window.is_some();
        let is_lost = is_wanted && !counts;
        if is_lost {
            // Nothing is left that it could be read from.
            appended = durable;
        }
        Ok(Some(Self {
            folder: folder.to_owned(),
            header,
            base,
            durable,
            appended,
            heartbeat_ns,
            has_panicked,
            counts,
            is_lost,
            taken,
            window,
        }))
    }

    /// Copies the window's bytes from `position` on; they lie in one window segment.
    fn copy(&self, position: u64, into: &mut [u8]) {
        let Some(window) = &self.window else { return };
        let mut words = vec![0; into.len().div_ceil(8)];
        let first = (position % self.header.window_bytes / 8) as usize;
        window.view().copy_to(first, &mut words);
        into.copy_from_slice(&bytemuck::cast_slice(&words)[..into.len()]);
    }

    /// Start step 2: what both window and disk must have is the same in both, and the disk has
    /// nothing that the window does not know of.
    pub(super) fn compare(&self, segments: &Segments) -> Result<(), RecoveryError> {
        if self.durable > segments.end() {
            return Err(self.gap(segments));
        }
        let mut position = self.base.max(segments.begin());
        let mut ours = Vec::new();
        let mut theirs = Vec::new();
        while position < self.durable {
            let length = window_segment_rest(position).min(self.durable - position) as usize;
            ours.resize(length, 0);
            theirs.resize(length, 0);
            self.copy(position, &mut ours);
            segments.read(position, &mut theirs)?;
            // The comparison as a whole first: it is the faster look.
            if ours != theirs
                && let Some(byte) = ours.iter().zip(&theirs).position(|(a, b)| a != b)
            {
                let (path, offset) = segments.place(position + byte as u64);
                return Err(RecoveryError::WindowDiffers {
                    folder: self.folder.clone(),
                    path,
                    offset,
                    position: position + byte as u64,
                    durable: self.durable,
                });
            }
            position += length as u64;
        }
        self.check_not_older(&walk(segments, self.durable..segments.end(), &mut |_, _| Ok(()))?)
    }

    fn gap(&self, segments: &Segments) -> RecoveryError {
        RecoveryError::WindowGap {
            folder: self.folder.clone(),
            disk_end: segments.end(),
            durable: self.durable,
        }
    }

    /// The keeper never writes what is not appended, so a disk that goes on where the window ends was
    /// written by an engine that did not know of this window.
    fn check_not_older(&self, disk: &Walked) -> Result<(), RecoveryError> {
        if disk.end <= self.appended && disk.incarnation <= self.header.incarnation {
            return Ok(());
        }
        Err(RecoveryError::WindowStale {
            folder: self.folder.clone(),
            appended: self.appended,
            incarnation: self.header.incarnation,
            disk_end: disk.end,
            disk_incarnation: disk.incarnation,
        })
    }

    /// Start step 3: writes to disk what only the window has; gives its bytes.
    pub(super) fn flush(&self, disk: &mut DiskLog) -> Result<u64, RecoveryError> {
        let mut buffer = aligned_buffer(WINDOW_SEGMENT_BYTES)?;
        let mut done = self.durable;
        while done < self.appended {
            let end = self.appended.min(done + window_segment_rest(done));
            let start = done - done % BLOCK_BYTES;
            let used = (end - start) as usize;
            let blocks = used.next_multiple_of(BLOCK_BYTES as usize);
            self.copy(start, &mut buffer[..used]);
            buffer[used..blocks].fill(0);
            disk.write(start, &[IoSlice::new(&buffer[..blocks])])?;
            done = end;
        }
        Ok(self.appended - self.durable)
    }

    /// The command that stands begun behind the last frame: the engine died while it applied it. `folder` is where
    /// it is to be kept.
    pub(super) fn poison(&self, folder: &Path) -> Option<Poison> {
        let start = frame_start(self.appended, self.header.segment_bytes);
        let rest = window_segment_rest(start);
        if start >= self.base + self.header.window_bytes || rest < FRAME_HEADER_BYTES as u64 {
            return None;
        }
        let mut head = [0; FRAME_HEADER_BYTES];
        self.copy(start, &mut head);
        let header = FrameHeader::read(&head).ok()?;
        let length = header.command_length as usize;
        let begun = header.length == 0
            && header.kind() == Some(FrameKind::Transaction)
            && header.position == start
            && header.incarnation == self.header.incarnation
            && (1..=MAX_COMMAND_BYTES).contains(&length)
            && (FRAME_HEADER_BYTES + length) as u64 <= rest;
        if !begun || self.window.is_none() {
            return None;
        }
        let mut bytes = vec![0; length];
        self.copy(start + FRAME_HEADER_BYTES as u64, &mut bytes);
        let incarnation = self.header.incarnation;
        let kind = if self.has_panicked { FATAL } else { "bin" };
        Some(Poison {
            incarnation: Incarnation(incarnation),
            position: Position(start),
            path: folder.join(format!("{incarnation}-{start}.{kind}")),
            is_fatal: self.has_panicked,
            command: bytes,
        })
    }

    /// Takes the window out of use: everything that counts is on disk. Readers are told; the page
    /// stays until another one replaces it, so that a crash in between is not taken for a loss. That of a
    /// lost one goes, so that the start after such a crash tells of the loss as well; and so does one that would vouch
    /// for what is given up, because `loss_is_accepted`, which that start would refuse to open the log without.
    pub(super) fn retire(&self, loss_is_accepted: bool) -> Result<(), RecoveryError> {
        let Some((control, _)) = &self.taken else { return Ok(()) };
        let failed = |source| RecoveryError::of_left_window(&self.folder, source);
        if self.is_lost || loss_is_accepted {
            fs::remove_file(self.folder.join(CONTROL_FILE)).map_err(failed)?;
        }
        let word = |offset| control.u32_at(offset).map_err(io::Error::other);
        // SYNC: pairs with readers' acquire loads.
        word(STATE_OFFSET).map_err(failed)?.store(LogState::Stopped as u32, Ordering::Release);
        let event = word(DURABLE_EVENT_OFFSET).map_err(failed)?;
        EventCounter::new(&event).advance();
        match fs::remove_file(self.folder.join(WINDOW_FILE)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
            _ => Ok(()),
        }
    }
}

/// What a control page says of its window, as far as a start or a tool asks it.
struct ControlWords {
    base: u64,
    durable: u64,
    appended: u64,
    heartbeat_ns: u64,
    has_panicked: bool,
    /// Its engine has not ended, and no start has taken the window out of use.
    is_wanted: bool,
}

impl ControlWords {
    /// Reads them one after the other, the base first: an engine may write meanwhile.
    fn read(page: &ReadOnlyRegion) -> io::Result<Self> {
        let word = |offset| word(page, offset);
        let short_word = |offset| {
            let word = page.u32_at(offset).map_err(io::Error::other)?;
            io::Result::Ok(word.view().load_acquire())
        };
        Ok(Self {
            base: word(WINDOW_BASE_OFFSET)?,
            durable: word(DURABLE_OFFSET)?,
            appended: word(APPENDED_OFFSET)?,
            heartbeat_ns: word(HEARTBEAT_NS_OFFSET)?,
            has_panicked: short_word(PANICKED_OFFSET)? == 1,
            is_wanted: LogState::from_word(short_word(STATE_OFFSET)?) != Some(LogState::Stopped),
        })
    }
}

/// A word of a control page.
fn word(page: &ReadOnlyRegion, offset: usize) -> io::Result<u64> {
    let word = page.u64_at(offset).map_err(io::Error::other)?;
    Ok(word.view().load_acquire())
}

/// An error of the system's or of a mapping, with the file that it is about; its kind stays.
pub(super) fn named(path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Checks that a control page is of this layout and of this log.
fn check_header(header: &ControlHeader, identity: &LogIdentity) -> io::Result<()> {
    let refuse = |why: String| Err(io::Error::other(why));
    if header.magic != MAGIC || header.version != VERSION {
        return refuse(format!(
            "control page of layout {}, this build knows layout {VERSION}",
            header.version
        ));
    }
    if header.log_id != identity.log_id || header.segment_bytes != identity.segment_bytes {
        return refuse("control page of another log".to_owned());
    }
    let bytes = header.window_bytes;
    if bytes < WINDOW_BYTES_MIN || !bytes.is_multiple_of(WINDOW_SEGMENT_BYTES) {
        return refuse(format!("control page of a window of {bytes} bytes"));
    }
    Ok(())
}

/// Checks what a control page says of its window: its base, and how far it is durable and appended.
fn check_positions(
    header: &ControlHeader,
    (base, durable, appended): (u64, u64, u64),
) -> io::Result<()> {
    let is_sound = base <= durable
        && durable <= appended
        && appended - base <= header.window_bytes
        && base.is_multiple_of(WINDOW_SEGMENT_BYTES)
        && durable.is_multiple_of(FRAME_ALIGN)
        && appended.is_multiple_of(FRAME_ALIGN);
    if is_sound {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "the control page says window base {base}, durable {durable}, appended {appended}"
    )))
}

/// The words of a window's file, which has its whole length.
fn map_window(file: &File, header: &ControlHeader) -> io::Result<SharedReadOnly<[AtomicU64]>> {
    let bytes = usize::try_from(header.window_bytes).map_err(io::Error::other)?;
    let region = ReadOnlyRegion::map_file(file, bytes).map_err(io::Error::other)?;
    region.words(0, bytes / 8).map_err(io::Error::other)
}
