//! Snapshots: the venue's state in a file, so that a start need not replay the whole log and old
//! segments may go. Made by a child process or by command ([`make`]), never by the engine itself; read
//! by recovery.
//!
//! ```text
//!  log       ├──────────────┼──────────────┼──────────────┼───────┄
//!  snapshots            ▲ P1                     ▲ P2
//!  making P2:           └── state of P1, then ───┘  the log behind it, up to what is durable
//!  a start:                                      └── state of P2, then the rest of the log
//! ```
//!
//! A snapshot belongs to a log by that log's id and by the frame of its last transaction, which it
//! names with its checksum: a log that was cut and went on otherwise does not have that frame.

mod child;
mod file;
mod folder;
mod make;
mod paced;
mod prune;

pub use child::SnapshotSchedule;
pub(crate) use child::SnapshotStarter;
pub use file::{Portions, SnapshotContent, SnapshotFault, write_file};
pub(crate) use folder::{
    Aside, Attesting, Restored, Witness, behind, list_in, newest_path, put_aside, restore_newest,
    snapshot_folder,
};
pub use folder::{Listed, check_snapshot_folder, definitions, list, load};
pub use make::{Made, MakeError, MakeOptions, lower_priority, make};
pub use prune::{PruneError, Pruned, prune};
pub use touchline_core::Definitions;
