//! Room for open files: as many as the settings promise connections. Called at the adapter's start.
//!
//! The usual soft limit is 1024 files, far below the default number of connections. Behind it no
//! accept succeeds, and neither does what the views need to follow a new engine.

use touchline_protocol::open_files::raise_limit;

use crate::notice::alert;

/// Files that are kept for all but client connections: log, engine, standard streams, runtime, and
/// the connections that are being refused.
const RESERVE: u64 = 128;

/// Raises the limit of open files so far that `connections` connections of `files_each` files fit beside
/// the reserve.
/// Returns how many do: fewer, and it says so, if the system does not allow so many files.
pub(super) fn make_room(connections: usize, files_each: usize) -> usize {
    let files =
        raise_limit((connections.saturating_mul(files_each) as u64).saturating_add(RESERVE));
    let fitting = fitting(files, connections, files_each);
    if fitting < connections {
        alert!(
            "adapter: adapter.connections is {connections}, but {} open files are allowed (ulimit \
             -n): serving {fitting} connections at once",
            files.unwrap_or(u64::MAX)
        );
    }
    fitting
}

/// How many of `connections` fit under a limit of `files` (none: unlimited); at least 1.
fn fitting(files: Option<u64>, connections: usize, files_each: usize) -> usize {
    let Some(files) = files else { return connections };
    let room = usize::try_from(files.saturating_sub(RESERVE)).unwrap_or(usize::MAX) / files_each;
    connections.min(room.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Resource, getrlimit};

    #[test]
    fn connections_that_do_not_fit_are_not_promised() {
        for (files, expected) in [
            (Some(10_128), 10_000),
            (Some(10_127), 9_999),
            (Some(1024), 896),
            (Some(129), 1),
            (Some(64), 1),
            (None, 10_000),
        ] {
            assert_eq!(fitting(files, 10_000, 1), expected, "{files:?}");
        }
        assert_eq!(fitting(Some(1024), 10_000, 2), 448);
    }

    /// The limit is the whole process's, so this only asks for more.
    #[test]
    fn room_is_made_for_real() {
        let Some(before) = getrlimit(Resource::Nofile).current else { return };
        let fitting = make_room(1 << 40, 1);
        let after = getrlimit(Resource::Nofile);
        assert!(after.current.is_some_and(|after| after >= before));
        assert_eq!(after.current, after.maximum.or(after.current));
        assert_eq!(Some(fitting as u64 + RESERVE), after.current);
    }
}
