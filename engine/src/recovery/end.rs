//! Whether a log may end where its good frames end. Asked by recovery before it ends the log there, and by the
//! tools that judge a log which no engine runs on, so that both say the same.

use std::path::PathBuf;

use touchline_protocol::log::segment::SegmentError;

use super::{
    chain::{Beyond, Walked},
    segments::Segments,
};
use crate::snapshot::{Attesting, Witness};

/// Why a log may not end where its good frames end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Something vouches that it was durable up to `attested`.
    Damaged {
        /// A position behind the log's end.
        attested: u64,
        /// What it is that vouches for more than the log and its window do, and its file.
        by: Option<(Witness, PathBuf)>,
    },
    /// A segment at the end or behind it has the header of another place, log or format. The first block of a
    /// segment holds zeros or its own header, whatever is broken off: a segment is made of zeros under another
    /// name, is never used again for another place, and no name of it is changed but to take it out of the log.
    Misplaced {
        /// Its position, by its name.
        position: u64,
        /// Its file.
        path: PathBuf,
        /// What is wrong with its header.
        why: SegmentError,
    },
}

impl Fault {
    /// Up to where the log was, or was to be, good.
    pub(crate) const fn position(&self) -> u64 {
        match self {
            Self::Damaged { attested, .. } => *attested,
            Self::Misplaced { position, .. } => *position,
        }
    }
}

/// What is wrong with a log whose good frames are `walked`, in front of what is `beyond`. Beside its frames its window
/// vouches for `appended`, and something else may for more. At or above all that is vouched for lies the tail of the
/// last writes, of which any part may be missing.
pub(crate) fn fault(
    segments: &Segments,
    walked: &Walked,
    beyond: &Beyond,
    (appended, beside): (u64, Option<Attesting>),
) -> Option<Fault> {
    let of_log = walked.attested.max(beyond.attested).max(appended);
    let beside = beside.filter(|beside| beside.position > of_log);
    let attested = beside.as_ref().map_or(of_log, |beside| beside.position);
    let is_damaged = walked.end < attested;
    let misplaced = beyond.misplaced.map(|(position, why)| {
        let (path, _) = segments.place(position);
        Fault::Misplaced { position, path, why }
    });
    let damaged = || {
        let by = beside.map(|beside| (beside.witness, beside.path));
        Fault::Damaged { attested, by }
    };
    // What is found first tells most.
    misplaced
        .filter(|misplaced| !is_damaged || misplaced.position() == walked.end)
        .or_else(|| is_damaged.then(damaged))
}
