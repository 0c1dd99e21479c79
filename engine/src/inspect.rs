//! Looking at a log without touching it, beside a running engine or on a copy: called by the
//! `touchline log` tools. Nothing is locked, repaired or written.

mod read_only;
mod replica;
mod window;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use touchline_protocol::{
    log::{
        SEGMENT_FOLDER,
        control::LogState,
        place::SHARED_MEMORY,
        reader::{Follow, LogReader, ReadError},
        segment::{LogIdentity, SegmentError},
        transaction::Transaction,
    },
    units::{Incarnation, Position},
};

use self::read_only::ReadOnlyFiles;
pub use self::replica::Replica;
pub(crate) use self::replica::{reapply, table_seed};
pub use self::window::{EngineState, WindowSeen, check_window};
use self::window::{check_left, has_gone_on};
use crate::log::storage::Storage;
use crate::recovery::{
    EndReason, Fault, Leases, RecoveryError, Segments, Visit, Walked, attested_by_page, fault,
    has_engine, of_another_log, search_beyond, walk,
};
use crate::snapshot::{Attesting, Listed, Witness, list_in};

/// Why a log cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// There is no log, or its first header is not one.
    #[error(transparent)]
    Reader(#[from] ReadError),
    /// It cannot be read.
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
}

/// Where a log ends, and whether it may end there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// All that is durable is good: up to the watermark of the live window, or without one to the end of what
    /// was written.
    Sound,
    /// Good up to its end, behind which lies an unfinished write: the next start drops it.
    UnfinishedTail {
        /// The segment.
        path: PathBuf,
        /// Byte offset in it where the tail begins.
        offset: u64,
        /// Bytes up to the last one that is not zero.
        bytes: u64,
        /// Why the log ends there.
        why: EndReason,
    },
    /// Bad below a position that something vouches for.
    Damaged {
        /// The segment.
        path: PathBuf,
        /// Byte offset of the first bad frame in it.
        offset: u64,
        /// Its position.
        position: Position,
        /// How far the log is known to have been durable.
        attested: Position,
        /// The snapshot or lease by which that is known, if the log and its window do not tell it.
        by: Option<PathBuf>,
        /// What is wrong there.
        why: EndReason,
    },
    /// Good up to a segment, or to somewhere before it, that is of another place, log or format.
    Misplaced {
        /// The segment.
        path: PathBuf,
        /// Where the log's good frames end.
        position: Position,
        /// What is wrong with its header.
        why: SegmentError,
    },
    /// The live window that the last engine has left is of another past, whatever is wrong beside that.
    OtherWindow {
        /// Where, how, and what to do: what a start says of it.
        why: String,
    },
}

impl Verdict {
    /// True if no engine starts on it as it is.
    #[must_use]
    pub const fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::Misplaced { .. } | Self::OtherWindow { .. })
    }
}

/// What a whole pass over a log has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// Which log it is.
    pub identity: LogIdentity,
    /// Position of the first byte there is.
    pub begin: Position,
    /// Behind the last good frame.
    pub end: Position,
    /// The live window, of an engine that runs or of one that was killed: nothing behind its durable watermark
    /// was looked at.
    pub window: Option<WindowSeen>,
    /// True if an engine holds the data folder's lock, and no window is to be seen that it writes: it starts just now,
    /// its window was removed, or lies where only it sees it, as in another container. What it appends beyond what
    /// is on disk was not looked at.
    pub has_unseen_engine: bool,
    /// The last frame's incarnation; 0 without any.
    pub incarnation: Incarnation,
    /// The last frame's time, ns since the epoch.
    pub last_time_ns: u64,
    /// Transactions.
    pub transactions: u64,
    /// True if the last record is a clean end.
    pub closed: bool,
    /// A file in the data folder that says that another log is there, and that one's id: no engine starts on it.
    pub marked: Option<(PathBuf, String)>,
    /// The outcome.
    pub verdict: Verdict,
}

/// Reads the log in the data folder `data` from its beginning, checks every frame, and shows each
/// transaction to `visit`, in one pass and in bounded memory. Where an engine starts meanwhile, the log is judged as
/// beside that one.
///
/// # Errors
/// If there is no log or it cannot be read. A damaged log is a verdict, not an error.
pub fn inspect(
    data: &Path,
    visit: &mut dyn FnMut(&Transaction<'_>),
) -> Result<Inspection, InspectError> {
    // A reader finds the live window. What lies above its watermark is in motion, or for the next start to bring
    // to disk.
    let mut reader = LogReader::open(data, Follow::Durable)?;
    let (mut pass, mut is_heard) = (None, false);
    loop {
        let signs = reader.signs_of_life();
        let look = Look::at(data, &reader, is_heard)?;
        let (read, verdict) = look.go_on(data, pass.take(), visit)?;
        // Behind the watermark that was seen lies then what an engine has written since, which is not what that
        // watermark is to be held against.
        if look.has_left_window() && has_gone_on(&reader, signs) {
            pass = Some(read);
            // Of the same window: whoever writes there runs, whatever its clock says of its last sign of life.
            is_heard = !reader.attach()? && reader.state() != Some(LogState::Stopped);
            continue;
        }
        let verdict = match verdict {
            // It may be what that engine writes just now.
            Verdict::UnfinishedTail { .. } if look.has_unseen_engine || has_engine(data) => {
                Verdict::Sound
            }
            verdict => verdict,
        };
        return Ok(look.found(data, read, verdict));
    }
}

/// As [`inspect`], for a log on any storage that no engine runs on.
///
/// # Errors
/// If there is no log or it cannot be read.
pub fn inspect_at_rest(
    storage: Arc<dyn Storage>,
    data: &Path,
    visit: &mut dyn FnMut(&Transaction<'_>),
) -> Result<Inspection, RecoveryError> {
    let segments = segments_on(storage, data)?;
    let look = Look { segments, window: None, other_window: None, has_unseen_engine: false };
    let (read, verdict) = look.go_on(data, None, visit)?;
    Ok(look.found(data, read, verdict))
}

/// That the window is of another past, in words, if it is that.
fn only_of_window(error: RecoveryError) -> Result<Option<String>, RecoveryError> {
    if error.is_of_window() { Ok(Some(error.to_string())) } else { Err(error) }
}

/// Whether the log in the data folder `data`, which no engine is seen to run on, may end where its frames from
/// `begin` on do: that of a transaction, or where a reader stood. The segment that it lies in must have its header.
///
/// # Errors
/// If there is no log or it cannot be read. A damaged log is a verdict, not an error.
pub fn inspect_end(data: &Path, begin: Position) -> Result<Verdict, RecoveryError> {
    let segments = segments_for_reading(data)?;
    let vouching = Vouching::of(&segments, data)?;
    // Where a segment begins, the walk looks at its header itself, and there may be none yet.
    if !begin.0.is_multiple_of(segments.identity.segment_bytes)
        && let Err(why) = segments.check_header(begin.0 / segments.identity.segment_bytes)?
    {
        let position = begin.0 - begin.0 % segments.identity.segment_bytes;
        let (path, offset) = segments.place(position);
        let by = vouching.up_to(0).filter(|vouched| vouched.position > begin.0);
        let attested = by.as_ref().map_or(begin, |by| Position(by.position));
        let (position, by) = (Position(position), by.map(|by| by.path));
        let why = EndReason::Segment(why);
        return Ok(Verdict::Damaged { path, offset, position, attested, by, why });
    }
    let mut walked = walk(&segments, begin.0..segments.end(), &mut |_, _| Ok(()))?;
    verdict(&segments, &mut walked, &vouching, &mut |_, _| Ok(()))
}

fn segments_on(storage: Arc<dyn Storage>, data: &Path) -> Result<Segments, RecoveryError> {
    Segments::open_all(&storage, &data.join(SEGMENT_FOLDER))
}

/// The segments in a data folder, to be read and nothing else.
pub(crate) fn segments_for_reading(data: &Path) -> Result<Segments, RecoveryError> {
    segments_on(Arc::new(ReadOnlyFiles), data)
}

/// A log as it is found at one time.
struct Look {
    segments: Segments,
    window: Option<WindowSeen>,
    /// That the window is of another past than the log, in words.
    other_window: Option<String>,
    has_unseen_engine: bool,
}

/// What a pass has read of a log.
struct Pass {
    /// Where it has begun.
    begin: u64,
    walked: Walked,
}

impl Look {
    /// Looks at the log in the data folder `data`, to whose window `reader` is attached, and of which it is known if an
    /// engine that writes it `is_heard`.
    fn at(data: &Path, reader: &LogReader, is_heard: bool) -> Result<Self, InspectError> {
        let mut window = WindowSeen::of(reader);
        if let (Some(seen), true) = (&mut window, is_heard) {
            seen.engine = EngineState::Running;
        }
        let is_seen = window.is_some_and(|window| window.engine != EngineState::Gone);
        let has_unseen_engine = !is_seen && has_engine(data);
        let segments = segments_for_reading(data)?;
        let other_window = match &window {
            Some(seen) if !seen.is_running() => {
                check_left(data, reader, &segments).map_or_else(only_of_window, |()| Ok(None))?
            }
            _ => None,
        };
        Ok(Self { segments, window, other_window, has_unseen_engine })
    }

    /// True if there is a window that no engine was seen to write.
    fn has_left_window(&self) -> bool {
        self.window.is_some_and(|window| !window.is_running())
    }

    /// Reads what `pass` has not read yet of all that is durable by the window, or of all there is without one, or
    /// where it is of another past than the log; and judges all of it.
    fn go_on(
        &self,
        data: &Path,
        pass: Option<Pass>,
        visit: &mut dyn FnMut(&Transaction<'_>),
    ) -> Result<(Pass, Verdict), RecoveryError> {
        let segments = &self.segments;
        // Before the walk: one that is made meanwhile vouches for what the walk has not seen.
        let vouching = Vouching::of(segments, data)?;
        let own_window = self.window.filter(|_| self.other_window.is_none());
        let limit =
            own_window.map_or(segments.end(), |window| window.durable.0.min(segments.end()));
        let mut take = |transaction: &Transaction<'_>, _: &[u8]| {
            visit(transaction);
            Ok(())
        };
        let (begin, mut walked) = match pass {
            Some(Pass { begin, mut walked }) => {
                walked.go_on(segments, limit, &mut take)?;
                (begin, walked)
            }
            None => {
                let begin = segments.begin();
                (begin, walk(segments, begin..limit, &mut take)?)
            }
        };
        let verdict = match own_window {
            Some(WindowSeen { durable, .. }) if walked.end < durable.0 => {
                damaged(segments, &walked, (durable.0, None))
            }
            Some(window) if window.is_running() => Verdict::Sound,
            Some(window) => verdict_behind(segments, &walked, window.appended, &vouching)?,
            None => verdict(segments, &mut walked, &vouching, &mut take)?,
        };
        // Which a start says first, too.
        let other_window = self.other_window.clone();
        let verdict = other_window.map_or(verdict, |why| Verdict::OtherWindow { why });
        Ok((Pass { begin, walked }, verdict))
    }

    /// What `pass` has found, of which `verdict` is said.
    fn found(self, data: &Path, Pass { begin, walked }: Pass, verdict: Verdict) -> Inspection {
        let identity = self.segments.identity;
        Inspection {
            identity,
            begin: Position(begin),
            end: Position(walked.end),
            window: self.window,
            has_unseen_engine: self.has_unseen_engine,
            incarnation: Incarnation(walked.incarnation),
            last_time_ns: walked.time_ns,
            transactions: walked.transactions,
            closed: walked.closed,
            marked: of_another_log(data, &identity.log_id),
            verdict,
        }
    }
}

/// What vouches for a log beside it.
struct Vouching {
    /// The control page of a window that is gone, or on disk.
    page: u64,
    snapshot: Option<Attesting>,
    leases: Leases,
}

impl Vouching {
    fn of(segments: &Segments, data: &Path) -> Result<Self, RecoveryError> {
        let listed = list_in(segments, data)?;
        let newest = listed.into_iter().find(|listed| listed.header.is_ok());
        let snapshot = newest.map(|Listed { path, position, .. }| {
            let witness = Witness::Snapshot;
            Attesting { position, path, witness }
        });
        let identity = &segments.identity;
        let page = attested_by_page(data, Path::new(SHARED_MEMORY), identity);
        Ok(Self { page, snapshot, leases: Leases::of(data, &identity.log_id) })
    }

    /// The highest position that a snapshot or a lease vouches for, for a log whose newest frame is of incarnation
    /// `newest`.
    fn up_to(&self, newest: u32) -> Option<Attesting> {
        let by_lease = self.leases.attesting(newest);
        self.snapshot.iter().cloned().chain(by_lease).max_by_key(|vouched| vouched.position)
    }
}

/// Judges a log whose window ends at `appended`: the next start brings it to disk up to there.
fn verdict_behind(
    segments: &Segments,
    walked: &Walked,
    appended: Position,
    vouching: &Vouching,
) -> Result<Verdict, RecoveryError> {
    let whole = Walked { end: appended.0, ..walked.clone() };
    let beyond = search_beyond(segments, appended.0, walked.incarnation)?;
    let vouched = vouching.up_to(walked.incarnation.max(beyond.incarnation));
    let fault = fault(segments, &whole, &beyond, (appended.0, vouched));
    Ok(fault.map_or(Verdict::Sound, |fault| faulty(segments, &whole, fault)))
}

fn faulty(segments: &Segments, walked: &Walked, fault: Fault) -> Verdict {
    match fault {
        Fault::Damaged { attested, by } => {
            damaged(segments, walked, (attested, by.map(|(_, path)| path)))
        }
        Fault::Misplaced { path, why, .. } => {
            Verdict::Misplaced { path, position: Position(walked.end), why }
        }
    }
}

/// Judges a log that no engine is seen to run on. One may all the same: it was started since, or its window is
/// where it cannot be seen. What a frame vouches for was written before that frame, so whatever vouches for
/// more than the walk has seen, a walk from there on finds what it vouches for, or damage.
fn verdict(
    segments: &Segments,
    walked: &mut Walked,
    vouching: &Vouching,
    visit: &mut Visit<'_>,
) -> Result<Verdict, RecoveryError> {
    let end = walked.end;
    let beyond = search_beyond(segments, end, walked.incarnation)?;
    if let Some(used) = beyond.used {
        walked.go_on(segments, used, visit)?;
    }
    let vouched = vouching.up_to(walked.incarnation.max(beyond.incarnation));
    Ok(match (fault(segments, walked, &beyond, (vouching.page, vouched)), beyond.used) {
        (Some(fault), _) => faulty(segments, walked, fault),
        (None, Some(used)) if walked.end == end => {
            let (path, offset) = segments.place(end);
            Verdict::UnfinishedTail { path, offset, bytes: used - end, why: walked.reason }
        }
        (None, _) => Verdict::Sound,
    })
}

fn damaged(
    segments: &Segments,
    walked: &Walked,
    (attested, by): (u64, Option<PathBuf>),
) -> Verdict {
    let (path, offset) = segments.place(walked.end);
    let (position, attested) = (Position(walked.end), Position(attested));
    Verdict::Damaged { path, offset, position, attested, by, why: walked.reason }
}
