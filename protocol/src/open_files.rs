//! The limit of open files of a process that serves many. The usual soft limit is 1024, far below what engine
//! and adapter are to have open. Called at the start of each.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the process's soft limit to `needed` files, as far as its hard limit allows; never lowers it. Gives
/// the limit that stands afterwards; none means no limit.
#[must_use]
pub fn raise_limit(needed: u64) -> Option<u64> {
    let before = getrlimit(Resource::Nofile);
    let wanted = raised(before, needed);
    // What was not granted shows in the limit that stands afterwards.
    let _refused = (wanted != before).then(|| setrlimit(Resource::Nofile, wanted));
    getrlimit(Resource::Nofile).current
}

fn raised(limit: Rlimit, needed: u64) -> Rlimit {
    let allowed = limit.maximum.map_or(needed, |maximum| needed.min(maximum));
    Rlimit { current: limit.current.map(|current| current.max(allowed)), ..limit }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_is_raised_as_far_as_is_needed_and_allowed() {
        for (current, maximum, expected) in [
            (Some(1024), Some(1 << 20), Some(10_128)),
            (Some(1024), Some(4096), Some(4096)),
            (Some(1024), None, Some(10_128)),
            (Some(65_536), Some(1 << 20), Some(65_536)),
            (None, None, None),
        ] {
            let limit = raised(Rlimit { current, maximum }, 10_128);
            assert_eq!((limit.current, limit.maximum), (expected, maximum));
        }
    }
}
