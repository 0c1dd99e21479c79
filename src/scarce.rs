//! What the system refuses for want of something, in words of the limit that is in the way: who reads "Resource
//! temporarily unavailable" does not know that it is threads. Called by the executable for what ends a command.

use anyhow::Error;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::io;

const MIB: u64 = 1 << 20;

/// Least address space in which engine and adapter run with default settings: the adapter maps a GiB for its history,
/// and each thread that allocates has a share of its own.
pub(crate) const ADDRESS_SPACE_MIN: u64 = 3072 * MIB;

/// What is to be told of this process's limit on address space before a venue is started, if it is too low for one.
pub(crate) fn too_little_address_space() -> Option<String> {
    let allowed = getrlimit(Resource::As).current.filter(|allowed| *allowed < ADDRESS_SPACE_MIN)?;
    let (allowed, least) = (allowed / MIB, ADDRESS_SPACE_MIN / MIB);
    Some(format!(
        "{allowed} MiB of address space are allowed (ulimit -v), and a venue takes {least}: it may not start, or end at \
         any moment"
    ))
}

/// What is scarce where `error` is about that. `starts_processes` is true of a command that starts threads and
/// processes, to which the system has the same word for a lack of these as to others for a lock that is held.
pub(crate) fn told(error: &Error, starts_processes: bool) -> Option<String> {
    let errno = error.chain().find_map(|cause| {
        let of_system = cause.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
        of_system.or_else(|| cause.downcast_ref::<Errno>().map(|errno| errno.raw_os_error()))
    });
    match Errno::from_raw_os_error(errno?) {
        Errno::MFILE => Some(format!(
            "open files are scarce: this process may have {} (ulimit -n)",
            limit(Resource::Nofile, 1)
        )),
        Errno::NFILE => Some("open files are scarce on this machine (fs.file-max)".to_owned()),
        // Without such a limit it is the file system that has files of that length at the most.
        Errno::FBIG if getrlimit(Resource::Fsize).current.is_some() => Some(format!(
            "the size of files is limited: this process may make none longer than {} bytes (ulimit -f)",
            limit(Resource::Fsize, 1)
        )),
        Errno::NOMEM => Some(format!(
            "memory is scarce: this process may have {} MiB of address space (ulimit -v), and no more than machine and \
             container give",
            limit(Resource::As, MIB)
        )),
        Errno::AGAIN if starts_processes => Some(format!(
            "threads are scarce: this user may have {} processes and threads (ulimit -u), and no more than the container \
             gives (pids.max)",
            limit(Resource::Nproc, 1)
        )),
        _ => None,
    }
}

fn limit(resource: Resource, unit: u64) -> String {
    let limit = getrlimit(resource).current;
    limit.map_or_else(|| "any number of".to_owned(), |limit| (limit / unit).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn what_is_scarce_is_told_however_deep_it_lies() {
        let of_system = |errno: Errno| Error::from(io::Error::from(errno)).context("a start");
        let of = |errno| told(&of_system(errno), true).unwrap_or_default();
        assert!(of(Errno::MFILE).contains("(ulimit -n)"));
        assert!(of(Errno::NOMEM).contains("(ulimit -v)"));
        assert!(of(Errno::AGAIN).contains("(ulimit -u)"));
        let is_limited = getrlimit(Resource::Fsize).current.is_some();
        assert_eq!(of(Errno::FBIG).contains("(ulimit -f)"), is_limited);
        assert_eq!(of(Errno::ACCESS), "");
        // To a tool it may be a lock.
        assert_eq!(told(&of_system(Errno::AGAIN), false), None);
        let errno = Err::<(), _>(Errno::MFILE).context("a pipe").unwrap_err();
        assert!(told(&errno, false).is_some());
        assert_eq!(told(&Error::msg("another engine runs"), true), None);
    }
}
