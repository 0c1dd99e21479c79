//! The leases of the log's readers as a start sees them: how far they vouch for the log, and which incarnations they
//! tell of. Called by recovery, and by the tools that judge a log.
//!
//! A reader names a transaction in its lease once that is durable and what was made of it is, too, so the log has
//! it unless it is damaged. One that the log has lost, because that was accepted, vouches no more: a copy of the
//! lease is kept, and the lease holds all of the log, as a prune does anyway for a reader of another past. So does one
//! of an incarnation behind which the log went on with a later one: that one's start has decided where the past ended
//! of which the reader had more, and everything of a past that is still in the log lies in front of the next one.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use touchline_protocol::{
    log::{
        align_frame,
        frame::FRAME_HEADER_BYTES,
        lease::{HeldLease, LEASE_FOLDER, Lease, each_lease},
        transaction::Bookmark,
    },
    regular_file,
    units::Position,
};

use crate::log::{DiskError, disk::disk_error};
use crate::snapshot::{Attesting, Witness};

/// The leases on the log with this id.
pub(crate) struct Leases {
    held: Vec<HeldLease>,
}

impl Leases {
    /// Those in the data folder `data`. One that cannot be read holds the log, and tells nothing.
    pub(crate) fn of(data: &Path, log_id: &[u8; 16]) -> Self {
        let all = each_lease(data).into_iter().flatten().flatten();
        Self { held: all.filter(|lease| lease.log_id == *log_id).collect() }
    }

    /// Those whose readers have a transaction, and the least position behind that.
    fn with_ends(&self) -> impl Iterator<Item = (&HeldLease, u64)> {
        let have_any = self.held.iter().filter(|lease| lease.last.incarnation.0 > 0);
        have_any.map(|lease| {
            let end = lease.last.position.0.saturating_add(FRAME_HEADER_BYTES as u64);
            (lease, align_frame(end.min(u64::MAX / 2)))
        })
    }

    /// The highest position that one of them vouches for, for a log whose newest frame is of incarnation `newest`; 0
    /// where it has none.
    pub(crate) fn attesting(&self, newest: u32) -> Option<Attesting> {
        let of_its_past = self.with_ends().filter(|(lease, _)| lease.last.incarnation.0 >= newest);
        let (lease, position) = of_its_past.max_by_key(|(_, end)| *end)?;
        Some(Attesting { position, path: lease.path.clone(), witness: Witness::Lease })
    }

    /// The highest incarnation that one of them tells of.
    pub(super) fn incarnation(&self) -> u32 {
        self.held.iter().map(|lease| lease.last.incarnation.0).max().unwrap_or(0)
    }

    /// Those that name what is behind the end of the log, whose loss is accepted or was by an earlier start, and where
    /// copies of them are kept. `incarnation` is the one that begins there.
    pub(super) fn behind(&self, end: u64, incarnation: u32) -> Vec<AsideLease> {
        let behind = self.with_ends().filter(|(_, attested)| *attested > end);
        let aside = |(lease, _): (&HeldLease, u64)| AsideLease {
            lease: lease.clone(),
            kept: lease.path.with_extension(format!("lease.dropped-{incarnation}")),
        };
        behind.map(aside).collect()
    }
}

/// A lease that is put aside.
pub(super) struct AsideLease {
    lease: HeldLease,
    /// Its copy.
    pub(super) kept: PathBuf,
}

/// Keeps copies of leases, and has them hold all of the log, which begins at `begin`.
pub(super) fn put_aside(data: &Path, begin: u64, leases: &[AsideLease]) -> Result<(), DiskError> {
    for AsideLease { lease, kept } in leases {
        // Its number may not be used again, of which nothing else may tell.
        let keep = || regular_file::put_whole(kept, 0o644, &fs::read(&lease.path)?);
        keep().map_err(disk_error("keeping a copy of a lease in", kept))?;
        let all = Bookmark::nothing_before(Position(begin));
        Lease::hold(data, &lease.name, lease.log_id, all)
            .map_err(io::Error::other)
            .map_err(disk_error("writing", &lease.path))?;
    }
    Ok(())
}

/// Incarnations in the names of copies that were kept of leases.
pub(super) fn highest_kept(data: &Path) -> u32 {
    let entries = fs::read_dir(data.join(LEASE_FOLDER)).into_iter().flatten().flatten();
    let incarnation = |name: &str| name.split_once(".lease.dropped-")?.1.parse().ok();
    let kept = entries.filter_map(|entry| incarnation(entry.file_name().to_str()?));
    kept.max().unwrap_or(0)
}
