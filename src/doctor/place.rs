//! Where a venue keeps what it has: the data folder's disk, the live window, and the sockets of its
//! gateway. Called by [`super`].

use super::taken::Taken;
use super::{Finding, no_folder};
use rustix::fs::{FsWord, statfs, statvfs};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use touchline_engine::config::{EngineConfig, GatewayBackend, WindowPlace};
use touchline_engine::log::DiskError;
use touchline_engine::{check_data_path, doubt_of_folder, has_log, host, host::free_bytes};
use touchline_protocol::log::place::SHARED_MEMORY;
use touchline_protocol::log::{WINDOW_BYTES_AUTO, WINDOW_BYTES_MIN};

/// Durable writes that the disk is tried with.
const WRITES: usize = 200;
/// A median above is a disk that acknowledgements will be felt on.
const SLOW_WRITE: Duration = Duration::from_millis(1);
/// The file systems tmpfs and ramfs, by their numbers.
const OF_MEMORY: [FsWord; 2] = [0x0102_1994, 0x8584_58f6];
/// The file systems btrfs and ZFS, likewise: what changes in a file they write to another place.
const COPYING: [FsWord; 2] = [0x9123_683e, 0x2fc1_2fc1];
/// Segments that must find room: the present one, the next one, and two that a snapshot leaves.
const SEGMENTS: u64 = 4;
const MIB: u64 = 1 << 20;

pub(super) fn look(data: &Path, config: &EngineConfig) -> Vec<Finding> {
    let folder = existing(data);
    let shared_memory = Path::new(SHARED_MEMORY);
    let taken = Taken::of(data, shared_memory);
    // What cannot be looked into is there.
    let is_there = has_log(data).unwrap_or(true);
    let mut findings = vec![
        data_folder(data),
        room(&folder, shared_memory, (config, &taken)),
        disk(&folder, is_there),
    ];
    findings.extend(file_size(getrlimit(Resource::Fsize).current, (config, &taken)));
    findings.push(window(shared_memory, (config, &taken)));
    if goes_to_data_folder(shared_memory, (config, &taken))
        && let Ok(disk) = statfs(&folder)
    {
        findings.extend(disk_of_window(disk.f_type));
    }
    findings.push(io_uring(config));
    findings
}

/// The folder, or the nearest one above it that is there.
fn existing(data: &Path) -> PathBuf {
    let found = data.ancestors().find(|folder| folder.is_dir());
    // A relative path's last ancestor is empty.
    found.filter(|folder| *folder != Path::new("")).unwrap_or(Path::new(".")).to_owned()
}

/// Whether the folder is there or can be, and its socket.
fn data_folder(data: &Path) -> Finding {
    let name = "data folder";
    if let Some(found) = in_the_way(data) {
        let advice = if found.exists() {
            "name another --data folder"
        } else {
            "mount what it leads to, or name another --data folder"
        };
        return Finding::wrong(name, no_folder(found), advice);
    }
    match check_data_path(data) {
        Err(error) => Finding::wrong(name, error.to_string(), ""),
        Ok(()) => match doubt_of_folder(data) {
            Some(doubt) => Finding::could(name, doubt, "whoever may write there has the venue"),
            None => Finding::good(name, data.display().to_string()),
        },
    }
}

/// What has the name of the folder or of one above it, and is none: a link that leads nowhere, too.
fn in_the_way(data: &Path) -> Option<&Path> {
    let mut no_folders = data.ancestors().take_while(|path| !path.is_dir());
    no_folders.find(|path| path.symlink_metadata().is_ok())
}

/// How much is free where, in words.
fn told(free: u64, folder: &Path) -> String {
    let folder = folder.display();
    match free {
        u64::MAX => format!("room without a limit in {folder}"),
        _ => format!("{} MiB free in {folder}", free / MIB),
    }
}

/// Whether there is as much room as a venue soon takes. One that is there starts with less, if its window finds room.
fn room(folder: &Path, shared_memory: &Path, (config, taken): (&EngineConfig, &Taken)) -> Finding {
    let name = "room";
    let window = window_beside_the_log(shared_memory, (config, taken));
    let of_start = free_for_start(shared_memory, (config, taken));
    let of_log = taken.segment_bytes.map_or(config.log.segment_mib, |bytes| bytes / MIB);
    let segments = SEGMENTS - taken.segments;
    let needed = of_log.saturating_mul(segments).saturating_add(window).max(of_start);
    match free_bytes(folder) {
        Err(error) => Finding::wrong(name, format!("{}: {error}", folder.display()), ""),
        Ok(free) if free / MIB < needed => {
            let window = if of_start == 0 { "" } else { ", and the live window" };
            let more = if taken.segments == 0 { "" } else { " more" };
            let advice =
                format!("{needed} MiB are the least: {segments}{more} segments of the log{window}");
            if taken.segment_bytes.is_none() || free / MIB < of_start {
                return Finding::wrong(name, told(free, folder), advice);
            }
            let advice = format!(
                "{advice}; make room: the venue goes on in the segments that it has, and its log fails once they are full"
            );
            Finding::could(name, told(free, folder), advice)
        }
        Ok(free) => Finding::good(name, told(free, folder)),
    }
}

/// Whether the files of a venue may get as long as they are made. Nothing is told where there is no limit.
fn file_size(limit: Option<u64>, (config, taken): (&EngineConfig, &Taken)) -> Option<Finding> {
    let name = "file size";
    let found = format!("no file may be longer than {} bytes (ulimit -f)", limit?);
    let segment = taken.segment_bytes.unwrap_or(config.log.segment_mib.saturating_mul(MIB));
    let window = match config.log.window_mib {
        // As much as there is room for, and what it has by now.
        0 => taken.window_in_memory.max(taken.window).max(WINDOW_BYTES_AUTO),
        mib => mib.saturating_mul(MIB),
    };
    let needed = segment.max(window);
    Some(if limit? < needed {
        let advice = format!("ulimit -f unlimited: segments and the live window take {needed}");
        Finding::wrong(name, found, advice)
    } else {
        let advice = "ulimit -f unlimited: the adapter's history and snapshots grow with the venue";
        Finding::could(name, found, advice)
    })
}

/// MiB that a live window of a given size takes of the data folder's disk beyond the one that lies there. One
/// without takes a quarter of what is free at the most.
fn window_beside_the_log(shared_memory: &Path, (config, taken): (&EngineConfig, &Taken)) -> u64 {
    let beside = config.log.window_mib.saturating_sub(taken.window / MIB);
    if goes_to_data_folder(shared_memory, (config, taken)) { beside } else { 0 }
}

/// MiB of the data folder's disk that must be free for its live window when an engine starts. One without a given size
/// takes a quarter of what is free then.
fn free_for_start(shared_memory: &Path, (config, taken): (&EngineConfig, &Taken)) -> u64 {
    if config.log.window_mib != 0 {
        return window_beside_the_log(shared_memory, (config, taken));
    }
    let least = (4 * WINDOW_BYTES_MIN).saturating_sub(taken.window).div_ceil(MIB);
    if goes_to_data_folder(shared_memory, (config, taken)) { least } else { 0 }
}

/// Whether the live window is made in the data folder, by what is free in memory now.
fn goes_to_data_folder(shared_memory: &Path, (config, taken): (&EngineConfig, &Taken)) -> bool {
    let least = match config.log.window_mib {
        // A quarter of what is free.
        0 => 4 * WINDOW_BYTES_MIN / MIB,
        mib => mib,
    };
    let has_room = || free_for_window(shared_memory, taken).is_ok_and(|free| free / MIB >= least);
    match config.log.window {
        WindowPlace::Data => true,
        WindowPlace::Auto => !(has_room() && host::try_shared_memory(shared_memory).is_ok()),
        WindowPlace::SharedMemory => false,
    }
}

/// What is to be said of a file system of this kind on which the live window lies.
fn disk_of_window(kind: FsWord) -> Option<Finding> {
    COPYING.contains(&kind).then(|| {
        Finding::could(
            "window's disk",
            "the live window lies on btrfs or ZFS, where a store into it may need new space",
            "an engine that finds none dies by SIGBUS and needs room to start again: keep the disk from getting full, \
             or give the window room in memory",
        )
    })
}

/// Bytes of shared memory that a start finds for its window, once it has taken back those of an older one.
fn free_for_window(shared_memory: &Path, taken: &Taken) -> io::Result<u64> {
    Ok(free_bytes(shared_memory)?.saturating_add(taken.window_in_memory))
}

/// True of a file system that is kept in memory alone.
fn is_memory(folder: &Path) -> bool {
    statfs(folder).is_ok_and(|disk| OF_MEMORY.contains(&disk.f_type))
}

/// That the disk cannot be tried. A venue that is there is not helped by another folder, and starts on a full disk.
fn untried(error: &DiskError, is_there: bool) -> Finding {
    let (name, found) = ("disk", error.to_string());
    match Errno::from_io_error(&error.source) {
        Some(Errno::FBIG) => {
            Finding::wrong(name, found, "raise the limit on the size of files (ulimit -f)")
        }
        _ if !is_there => Finding::wrong(name, found, "name another --data folder"),
        Some(Errno::NOSPC | Errno::DQUOT) => {
            Finding::could(name, found, "make room, without which nobody can tell how fast it is")
        }
        _ => Finding::wrong(
            name,
            found,
            "an engine must be able to write there, as the doctor tried to",
        ),
    }
}

/// How the disk takes what is to be durable, under a venue that `is_there` or is to be made.
fn disk(folder: &Path, is_there: bool) -> Finding {
    let name = "disk";
    let trial = match host::try_disk(folder, WRITES) {
        Ok(trial) => trial,
        Err(error) => return untried(&error, is_there),
    };
    let at = |share: usize| trial.writes[(trial.writes.len() - 1) * share / 100];
    let (median, late) = (at(50), at(99));
    let found = format!("a durable write of 4 KiB takes {median:.0?}, one in a hundred {late:.0?}");
    if is_memory(folder) {
        let found = format!("{} is memory, and no disk: {found}", folder.display());
        let remedy = if is_there {
            "move the folder to a disk while nobody runs on it"
        } else {
            "name another --data folder"
        };
        let advice = format!(
            "nothing that is kept here outlives the machine's next start, whatever is acknowledged as durable: for \
             anything but tests {remedy}"
        );
        return Finding::could(name, found, advice);
    }
    if !trial.is_direct {
        let advice = "direct writes are refused here, so each goes through the page cache: a file \
                      system such as ext4 or xfs grants them";
        return Finding::could(name, found, advice);
    }
    if median > SLOW_WRITE {
        let advice = "what is answered as durable waits for such writes; a disk with power-loss \
                      protection is faster";
        return Finding::could(name, found, advice);
    }
    Finding::good(name, found)
}

/// Bytes, whole MiB, that shared memory must have in all so that the window finds its room beside what others have
/// there.
fn size_for_window(shared_memory: &Path, (config, taken): (&EngineConfig, &Taken)) -> u64 {
    let wanted = match config.log.window_mib {
        0 => 4 * WINDOW_BYTES_AUTO,
        mib => mib.saturating_mul(MIB),
    };
    let of_others = statvfs(shared_memory).map_or(0, |memory| {
        let bytes = memory.f_blocks.saturating_mul(memory.f_frsize);
        let free = memory.f_bavail.saturating_mul(memory.f_frsize);
        bytes.saturating_sub(free).saturating_sub(taken.window_in_memory)
    });
    of_others.saturating_add(wanted).div_ceil(MIB).saturating_mul(MIB)
}

fn window(shared_memory: &Path, (config, taken): (&EngineConfig, &Taken)) -> Finding {
    let name = "live window";
    if config.log.window == WindowPlace::Data {
        return Finding::could(
            name,
            "in the data folder, as log.window says",
            "the disk's write-back may stall the engine; log.window = \"auto\" where memory has room",
        );
    }
    let is_demanded = config.log.window == WindowPlace::SharedMemory;
    let refused = |found: String, advice: String| match is_demanded {
        true => Finding::wrong(name, found, advice),
        false => {
            let advice = format!("it goes to the data folder, and may be stalled there: {advice}");
            Finding::could(name, found, advice)
        }
    };
    let more = || {
        let mib = size_for_window(shared_memory, (config, taken)) / MIB;
        format!("mount -o remount,size={mib}M {}", shared_memory.display())
    };
    let free = match free_for_window(shared_memory, taken) {
        Ok(free) => free,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = shared_memory.display();
            let mib =
                4 * WINDOW_BYTES_AUTO.max(config.log.window_mib.saturating_mul(MIB) / 4) / MIB;
            let advice = format!(
                "mkdir {folder}, and mount -t tmpfs -o mode=1777,size={mib}M tmpfs {folder}"
            );
            return refused(format!("{folder}: {error}"), advice);
        }
        Err(error) => return refused(format!("{}: {error}", shared_memory.display()), more()),
    };
    if let Err(error) = host::try_shared_memory(shared_memory) {
        let advice = format!(
            "let this user make folders in {}, and nobody else enter its own there",
            shared_memory.display()
        );
        return refused(format!("{}: {error}", shared_memory.display()), advice);
    }
    let found = told(free, shared_memory);
    match config.log.window_mib {
        0 if free / 4 >= WINDOW_BYTES_AUTO => Finding::good(name, found),
        0 if free / 4 >= WINDOW_BYTES_MIN => Finding::could(
            name,
            format!("{found}, of which it takes a quarter"),
            "a larger one rides out longer pauses of the disk",
        ),
        0 => {
            let found = format!("{found}, less than four times {} MiB", WINDOW_BYTES_MIN / MIB);
            refused(found, more())
        }
        wanted if free / MIB < wanted => {
            refused(format!("{found}, log.window_mib = {wanted}"), more())
        }
        _ => Finding::good(name, found),
    }
}

fn io_uring(config: &EngineConfig) -> Finding {
    let name = "sockets";
    match (config.gateway.backend, host::try_io_uring()) {
        (GatewayBackend::Epoll, Ok(())) => {
            Finding::good(name, "epoll, as gateway.backend says; io_uring is permitted")
        }
        (_, Ok(())) => Finding::good(name, "io_uring is permitted"),
        (GatewayBackend::Epoll, Err(_)) => Finding::good(name, "epoll; io_uring is refused"),
        (_, Err(error)) => Finding::could(
            name,
            format!("io_uring is refused ({error}), so it is epoll"),
            "sysctl kernel.io_uring_disabled=0, or permit it in the container",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use touchline_protocol::log::place::user_folder;

    fn config(set: impl FnOnce(&mut EngineConfig)) -> EngineConfig {
        let mut config = EngineConfig::default();
        set(&mut config);
        config
    }

    /// Makes a folder that others may enter, whatever the umask.
    fn open_to_others(path: &Path) {
        fs::create_dir(path).unwrap();
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn the_nearest_folder_that_is_there_is_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(existing(folder.path()), folder.path());
        assert_eq!(existing(&folder.path().join("a/b")), folder.path());
        assert_eq!(existing(Path::new("not-there")), Path::new("."));
    }

    #[test]
    fn a_window_that_finds_no_room_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let state = |config| window(folder.path(), (&config, &Taken::default())).state;
        assert_eq!(state(config(|config| config.log.window_mib = u64::MAX)), State::Could);
        let demanded = config(|config| {
            config.log.window = WindowPlace::SharedMemory;
            config.log.window_mib = u64::MAX;
        });
        assert_eq!(state(demanded), State::Wrong);
        assert_eq!(state(config(|config| config.log.window_mib = 8)), State::Good);
        assert_eq!(state(config(|config| config.log.window = WindowPlace::Data)), State::Could);
        open_to_others(&user_folder(folder.path()));
        assert_eq!(state(config(|config| config.log.window_mib = 8)), State::Could);
        let demanded = config(|config| {
            config.log.window = WindowPlace::SharedMemory;
            config.log.window_mib = 8;
        });
        assert_eq!(state(demanded), State::Wrong, "others may enter the user's folder");
        let nothing = (&EngineConfig::default(), &Taken::default());
        let nowhere = window(Path::new("/nowhere/at/all"), nothing);
        assert_eq!(nowhere.state, State::Could);
    }

    #[test]
    fn so_much_memory_is_advised_as_the_window_takes() {
        let of = |mib| config(|config| config.log.window_mib = mib);
        let nothing = Taken::default();
        // Nobody has anything there.
        for (mib, told) in [(0, "size=256M "), (1024, "size=1024M ")] {
            let advice = window(Path::new("/nowhere/at/all"), (&of(mib), &nothing)).advice;
            assert!(advice.contains(told), "{advice}");
        }
        // What others have there stays, and what the window has is its own.
        let folder = tempfile::tempdir().unwrap();
        let disk = statvfs(folder.path()).unwrap();
        let total = disk.f_blocks * disk.f_frsize / MIB;
        let wanted = total + 1024;
        let size = |taken: &Taken| size_for_window(folder.path(), (&of(wanted), taken)) / MIB;
        let beside_others = size(&nothing);
        assert!((wanted..=wanted + total + 1).contains(&beside_others), "{beside_others}");
        assert_eq!(beside_others > wanted, disk.f_bavail < disk.f_blocks);
        let all = Taken { window_in_memory: (total + 1) * MIB, ..nothing };
        assert_eq!(size(&all), wanted);
    }

    #[test]
    fn a_window_on_a_disk_that_copies_what_changes_is_told() {
        for (kind, told) in [(0x9123_683e, true), (0x2fc1_2fc1, true), (0xef53, false)] {
            let state = disk_of_window(kind).map(|finding| finding.state);
            assert_eq!(state, told.then_some(State::Could), "{kind:x}");
        }
        let memory = tempfile::tempdir().unwrap();
        let goes = |place, mib| {
            let config = config(|config| (config.log.window, config.log.window_mib) = (place, mib));
            goes_to_data_folder(memory.path(), (&config, &Taken::default()))
        };
        assert!(goes(WindowPlace::Data, 8));
        assert!(!goes(WindowPlace::Auto, 8) && !goes(WindowPlace::Auto, 0), "memory has room");
        assert!(goes(WindowPlace::Auto, u64::MAX), "it has not");
        assert!(!goes(WindowPlace::SharedMemory, u64::MAX));
        open_to_others(&user_folder(memory.path()));
        assert!(goes(WindowPlace::Auto, 8) && goes(WindowPlace::Auto, 0), "nor may it be there");
    }

    #[test]
    fn what_is_no_folder_cannot_be_the_data_folder() {
        let folder = tempfile::tempdir().unwrap();
        let state = |name: &str| data_folder(&folder.path().join(name)).state;
        fs::write(folder.path().join("file"), "").unwrap();
        std::os::unix::fs::symlink("nowhere", folder.path().join("link")).unwrap();
        for name in ["file", "file/data", "file/../data", "link", "link/data"] {
            assert_eq!(state(name), State::Wrong, "{name}");
        }
        std::os::unix::fs::symlink(folder.path(), folder.path().join("loop")).unwrap();
        for name in ["", "data", "loop", "loop/data"] {
            assert_eq!(state(name), State::Good, "{name}");
        }
    }

    #[test]
    fn files_that_may_not_get_as_long_as_they_are_made_are_told() {
        let config = config(|config| (config.log.segment_mib, config.log.window_mib) = (16, 8));
        let state = |limit, taken| file_size(limit, (&config, &taken)).map(|finding| finding.state);
        let nothing = Taken::default();
        assert_eq!(state(None, nothing), None);
        assert_eq!(state(Some(16 * MIB - 1), nothing), Some(State::Wrong));
        assert_eq!(state(Some(16 * MIB), nothing), Some(State::Could));
        let there = Taken { segment_bytes: Some(4 * MIB), ..nothing };
        assert_eq!(state(Some(8 * MIB), there), Some(State::Could), "the log's own segments count");
        assert_eq!(state(Some(8 * MIB - 1), there), Some(State::Wrong), "the window");
    }

    #[test]
    fn a_folder_too_deep_for_a_socket_is_wrong() {
        assert_eq!(data_folder(&Path::new("/").join("d".repeat(94))).state, State::Good);
        assert_eq!(data_folder(&Path::new("/").join("d".repeat(95))).state, State::Wrong);
    }

    #[test]
    fn too_little_room_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let room = |config| room(folder.path(), folder.path(), (&config, &Taken::default())).state;
        let state = |mib| room(config(|config| config.log.segment_mib = mib));
        assert_eq!(state(2), State::Good);
        assert_eq!(state(u64::MAX), State::Wrong);
        let with_window = |place, mib| {
            room(config(|config| (config.log.window, config.log.window_mib) = (place, mib)))
        };
        assert_eq!(with_window(WindowPlace::Data, 8), State::Good);
        assert_eq!(with_window(WindowPlace::Data, u64::MAX), State::Wrong);
        assert_eq!(with_window(WindowPlace::Auto, u64::MAX), State::Wrong, "it goes there, too");
        assert_eq!(with_window(WindowPlace::SharedMemory, u64::MAX), State::Good);
        let eight = config(|config| config.log.window_mib = 8);
        let beside = || window_beside_the_log(folder.path(), (&eight, &Taken::default()));
        assert_eq!(beside(), 0);
        open_to_others(&user_folder(folder.path()));
        assert_eq!(beside(), 8, "others may enter the user's folder");
    }

    /// The log's own segments are asked for, whatever the settings say by now, and nothing that it has already.
    #[test]
    fn what_a_log_has_taken_is_not_asked_for_again() {
        let folder = tempfile::tempdir().unwrap();
        let room = |mib, taken| {
            let config = config(|config| {
                (config.log.window, config.log.window_mib) = (WindowPlace::Data, mib);
                config.log.segment_mib = u64::MAX;
            });
            room(folder.path(), folder.path(), (&config, &taken))
        };
        let small = Taken { segment_bytes: Some(2 * MIB), segments: 1, ..Taken::default() };
        assert_eq!(room(8, small).state, State::Good);
        let large = Taken { segment_bytes: Some(MIB << 40), segments: 2, ..Taken::default() };
        // It starts in the segments that it has.
        let short = room(8, large);
        assert_eq!(short.state, State::Could);
        let needed = format!("{} MiB are the least: 2 more segments", (2u64 << 40) + 8);
        assert!(short.advice.starts_with(&needed), "{}", short.advice);
        assert!(short.advice.contains("make room"), "{}", short.advice);
        // Not without its window.
        let there = Taken { window: MIB << 40, ..small };
        assert_eq!(room(1 << 40, small).state, State::Wrong);
        assert_eq!(room(1 << 40, there).state, State::Good);
        let free = |taken| free_for_window(folder.path(), &taken).unwrap();
        let in_memory = Taken { window_in_memory: MIB << 40, ..Taken::default() };
        assert!(free(in_memory) >= MIB << 40 && free(Taken::default()) < MIB << 40);
    }

    #[test]
    fn a_folder_in_memory_is_no_good_disk() {
        let in_memory = tempfile::tempdir_in(SHARED_MEMORY).unwrap();
        for (is_there, advised) in [(false, "name another --data"), (true, "move the folder")] {
            let Finding { state, found, advice, .. } = disk(in_memory.path(), is_there);
            assert_eq!(state, State::Could, "{found}");
            assert!(found.contains("is memory, and no disk"), "{found}");
            assert!(advice.contains(advised), "{advice}");
        }
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_wrong() {
        assert_eq!(disk(Path::new("/nowhere/at/all"), false).state, State::Wrong);
    }

    #[test]
    fn a_disk_that_is_full_under_a_venue_is_no_reason_to_name_another_folder() {
        let of = |errno: Errno, is_there| {
            let path = PathBuf::from("/venue/doctor-7");
            untried(&DiskError { what: "making", path, source: errno.into() }, is_there)
        };
        for full in [Errno::NOSPC, Errno::DQUOT] {
            let (new, there) = (of(full, false), of(full, true));
            assert_eq!(new.state, State::Wrong);
            assert!(new.advice.contains("another --data folder"), "{}", new.advice);
            assert_eq!(there.state, State::Could);
            assert!(there.advice.contains("make room"), "{}", there.advice);
        }
        let read_only = of(Errno::ROFS, true);
        assert_eq!(read_only.state, State::Wrong);
        assert!(!read_only.advice.contains("another"), "{}", read_only.advice);
    }

    #[test]
    fn a_start_needs_room_for_its_window_alone() {
        let folder = tempfile::tempdir().unwrap();
        let free = |place, mib, window| {
            let config = config(|config| {
                (config.log.window, config.log.window_mib) = (place, mib);
            });
            free_for_start(folder.path(), (&config, &Taken { window, ..Taken::default() }))
        };
        assert_eq!(free(WindowPlace::Auto, 0, 0), 0, "memory has room");
        assert_eq!(free(WindowPlace::Data, 0, 0), 4 * WINDOW_BYTES_MIN / MIB);
        assert_eq!(free(WindowPlace::Data, 0, 4 * WINDOW_BYTES_MIN), 0);
        assert_eq!(free(WindowPlace::Data, 64, 0), 64);
        assert_eq!(free(WindowPlace::Data, 64, 64 * MIB), 0);
    }
}
