//! Room for open files: as many as the settings promise connections. Called at the adapter's start;
//! `touchline doctor` asks how many files that is.
//!
//! The usual soft limit is 1024 files, far below the default number of connections. Behind it no
//! accept succeeds, and neither does what the views need to follow a new engine.

use touchline_protocol::open_files::raise_limit;

use crate::config::AdapterConfig;
use crate::notice::alert;

/// Files that are kept for all but workers and client connections: log, engine, history, standard
/// streams, and the connections that are being refused.
const RESERVE: u64 = 128;

/// Files of a worker's runtime: what it waits by, which it opens twice, and what wakes it.
const FILES_PER_WORKER: u64 = 3;

/// Files that are kept for all but client connections.
const fn reserve(workers: usize) -> u64 {
    RESERVE.saturating_add((workers as u64).saturating_mul(FILES_PER_WORKER))
}

/// Files that an adapter with these settings may have open at once.
#[must_use]
pub fn needed(config: &AdapterConfig) -> u64 {
    files(config.connections, config.front.files_per_connection(), config.workers)
}

/// Those of `connections` connections of `files_each` files, and of all else.
const fn files(connections: usize, files_each: usize, workers: usize) -> u64 {
    (connections.saturating_mul(files_each) as u64).saturating_add(reserve(workers))
}

/// Raises the limit of open files so far that `connections` connections of `files_each` files fit beside
/// what `workers` workers and all else take.
/// Returns how many do: fewer, and it says so, if the system does not allow so many files.
pub(super) fn make_room(connections: usize, files_each: usize, workers: usize) -> usize {
    let files = raise_limit(files(connections, files_each, workers));
    let fitting = fitting(files, reserve(workers), connections, files_each);
    if fitting < connections {
        alert!(
            "adapter: adapter.connections is {connections}, but {} open files are allowed (ulimit \
             -n): serving {fitting} connections at once",
            files.unwrap_or(u64::MAX)
        );
    }
    fitting
}

/// How many of `connections` fit beside `reserve` files under a limit of `files` (none: unlimited); at
/// least 1.
fn fitting(files: Option<u64>, reserve: u64, connections: usize, files_each: usize) -> usize {
    let Some(files) = files else { return connections };
    let room = usize::try_from(files.saturating_sub(reserve)).unwrap_or(usize::MAX) / files_each;
    connections.min(room.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Resource, getrlimit};

    #[test]
    fn connections_that_do_not_fit_are_not_promised() {
        for (files, expected) in [
            (Some(10_131), 10_000),
            (Some(10_130), 9_999),
            (Some(1024), 893),
            (Some(132), 1),
            (Some(64), 1),
            (None, 10_000),
        ] {
            assert_eq!(fitting(files, reserve(1), 10_000, 1), expected, "{files:?}");
        }
        assert_eq!(fitting(Some(1024), reserve(1), 10_000, 2), 446);
        assert_eq!(fitting(Some(1024), reserve(64), 10_000, 1), 704);
    }

    /// The limit is the whole process's, so this only asks for more.
    #[test]
    fn room_is_made_for_real() {
        let Some(before) = getrlimit(Resource::Nofile).current else { return };
        let fitting = make_room(1 << 40, 1, 2);
        let after = getrlimit(Resource::Nofile);
        assert!(after.current.is_some_and(|after| after >= before));
        assert_eq!(after.current, after.maximum.or(after.current));
        assert_eq!(Some(fitting as u64 + reserve(2)), after.current);
    }
}
