//! How much address space the store takes at first. Called by [`super::store`] when it is opened.

use rustix::process::{Resource, getrlimit};

/// Address space that the store may come to fill; what it takes on disk grows with it.
pub(super) const MAP_BYTES: usize = 1 << 40;

/// The least that is of use where the system gives less address space.
pub(super) const MAP_BYTES_MIN: usize = 1 << 30;

/// Bytes to begin with: what the process is allowed (`ulimit -v`) has room for as much again.
pub(super) fn bytes() -> usize {
    fitting(getrlimit(Resource::As).current)
}

/// The most that leaves as much for all else: the log's window, stacks, and heaps.
fn fitting(allowed: Option<u64>) -> usize {
    let sizes = std::iter::successors(Some(MAP_BYTES), |bytes| Some(bytes / 4));
    let mut sizes = sizes.take_while(|bytes| *bytes >= MAP_BYTES_MIN);
    let fits = |bytes: &usize| allowed.is_none_or(|allowed| *bytes as u64 <= allowed / 2);
    sizes.find(fits).unwrap_or(MAP_BYTES_MIN)
}

/// Why a store that has filled so many bytes has no more, and what gives it more.
pub(super) const fn remedy(bytes: usize) -> &'static str {
    if bytes < MAP_BYTES {
        "by the limit on that when it was opened; end the venue, raise the limit (ulimit -v unlimited), and start the \
         venue again"
    } else {
        "and no store has more"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_leaves_room_for_all_else() {
        const GIB: u64 = 1 << 30;
        for (allowed, gib) in [
            (None, 1024),
            (Some(2048 * GIB), 1024),
            (Some(2048 * GIB - 1), 256),
            // All but a fraction of a GiB it took of these.
            (Some(5 * GIB), 1),
            (Some(8 * GIB), 4),
            (Some(GIB), 1),
            (Some(0), 1),
        ] {
            assert_eq!(fitting(allowed) as u64, gib * GIB, "{allowed:?}");
        }
    }
}
