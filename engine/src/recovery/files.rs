//! Whether a start is refused for what stands beside the frames of a log: looked at without a lock and without a change,
//! and without reading the log unless something vouches for more than there are files of. Called by `touchline doctor`.

use std::path::Path;

use super::{
    Leases, RecoveryError, Segments,
    chain::{Walked, search_beyond, walk},
    check_end, has_engine, look_at_window, mark,
};
use crate::inspect::segments_for_reading;
use crate::snapshot::{Attesting, Listed, Witness, list_in};

/// Looks at the log in the data folder `data`: whether it is the one that the folder tells of, and whether the files go
/// as far as its snapshots and leases say; `shared_memory` is [`touchline_protocol::log::place::SHARED_MEMORY`] or what
/// stands for it.
///
/// # Errors
/// What a start would be refused for; also if there is no log, or it cannot be read.
pub fn check_files(data: &Path, shared_memory: &Path) -> Result<(), RecoveryError> {
    let segments = segments_for_reading(data)?;
    let identity = segments.identity;
    mark::check(data, &identity)?;
    // One that a start cannot go on from is told of by itself; one that counts brings to disk what is not there.
    let window = look_at_window(data, shared_memory, &identity).ok().flatten();
    if has_engine(data) || window.as_ref().is_some_and(|window| window.counts) {
        return Ok(());
    }
    let appended = window.as_ref().map_or(0, |window| window.appended);
    let leases = Leases::of(data, &identity.log_id);
    let snapshots = list_in(&segments, data)?.into_iter();
    let snapshot = snapshots.filter(|listed| listed.header.is_ok()).map(vouching).next();
    let vouched = |newest| {
        let all = snapshot.iter().cloned().chain(leases.attesting(newest));
        all.max_by_key(|vouched| vouched.position)
    };
    // Of whatever incarnation: those that count are fewer.
    let most = vouched(0).map_or(0, |vouched| vouched.position).max(appended);
    if most <= segments.end() {
        return Ok(());
    }
    let walked = last_frames(&segments)?;
    let beyond = search_beyond(&segments, walked.end, walked.incarnation)?;
    let newest = walked.incarnation.max(beyond.incarnation);
    let attested = (window.as_ref(), vouched(newest));
    check_end(&segments, &walked, &beyond, attested, false).map(|_| ())
}

fn vouching(Listed { path, position, .. }: Listed) -> Attesting {
    Attesting { position, path, witness: Witness::Snapshot }
}

/// What the last segment that has any frame says of the log's end.
pub(super) fn last_frames(segments: &Segments) -> Result<Walked, RecoveryError> {
    let segment_bytes = segments.identity.segment_bytes;
    let numbers = segments.begin() / segment_bytes..segments.end() / segment_bytes;
    for number in numbers.rev() {
        let walked = walk(segments, number * segment_bytes..segments.end(), &mut |_, _| Ok(()))?;
        if walked.incarnation > 0 {
            return Ok(walked);
        }
    }
    walk(segments, segments.begin()..segments.end(), &mut |_, _| Ok(()))
}
