//! Snapshots by the library, on real files: made, loaded, kept by count, pruned behind; and each way in
//! which one can be unusable is told by its name, passed over by whoever makes the next one, and refused
//! by pruning.
//!
//! What a start makes of them is tested in `durability/snapshots.rs`, what processes do in the root's
//! `tests/system/snapshots.rs`.
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[path = "../../tests/support/patience.rs"]
mod patience;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use patience::Wait;
use tempfile::TempDir;
use touchline_core::{Applied, Context, Core, Outbox};
use touchline_engine::config::EngineConfig;
use touchline_engine::genesis::Genesis;
use touchline_engine::inspect::Replica;
use touchline_engine::log::{self, Environment, Log, LogOptions, WindowPlace};
use touchline_engine::recovery::{ReplayFault, Replayed};
use touchline_engine::snapshot::{
    Made, MakeError, MakeOptions, PruneError, SnapshotFault, list, load, make, prune,
};
use touchline_protocol::log::lease::{HeldLease, LEASE_FOLDER, Lease};
use touchline_protocol::log::segment::LogIdentity;
use touchline_protocol::log::transaction::Bookmark;
use touchline_protocol::log::{MAX_FRAME_BYTES, WINDOW_SEGMENT_BYTES, segment_path};
use touchline_protocol::message::command::{Deposit, EngineStarted};
use touchline_protocol::message::decode;
use touchline_protocol::snapshot::{HEADER_BYTES, HeaderError, SnapshotHeader};
use touchline_protocol::units::{AccountId, AssetId, Position, Sequence};

const VENUE: &str = r#"
[limits]
open_orders = 100
price_levels = 100
records = 64
record_blocks = 64
[[assets]]
name = "BTC"
[[assets]]
name = "USDT"
[[symbols]]
name = "BTCUSDT"
base = "BTC"
quote = "USDT"
[[accounts]]
name = "A"
keys = 1
"#;

/// A venue's data folder, and what its log comes to.
struct Venue {
    data: TempDir,
    core: Core,
    time_ns: u64,
    transactions: u64,
}

/// Replays into a core.
struct Apply<'core>(&'core mut Core);

impl Replayed for Apply<'_> {
    fn replay(
        &mut self,
        position: Position,
        time_ns: u64,
        command: &[u8],
        area: &mut [u8],
    ) -> Result<(usize, u16), ReplayFault> {
        let command = decode::command(command).map_err(|error| error.to_string())?;
        let mut outbox = Outbox::new(area);
        match self.0.apply(&Context { position, time_ns }, &command, &mut outbox) {
            Ok(Applied::Committed) => Ok((outbox.len(), outbox.count())),
            other => Err(format!("{other:?}").into()),
        }
    }
}

impl Venue {
    /// A new one, defined and started once.
    fn new() -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut venue = Self { data, core: Core::new(), time_ns: 1, transactions: 0 };
        let config: EngineConfig = toml::from_str(VENUE).unwrap();
        let genesis = Genesis::new(&config).unwrap();
        let mut commands: Vec<Vec<u8>> =
            genesis.remaining(Sequence(0)).map(<[u8]>::to_vec).collect();
        commands.push(
            bytemuck::bytes_of(&EngineStarted { incarnation: 1, ..Default::default() }).to_vec(),
        );
        venue.append(&commands);
        venue
    }

    /// The log goes on by so many deposits.
    fn grow(&mut self, deposits: usize) {
        self.append(&Self::deposits(deposits));
    }

    fn deposits(count: usize) -> Vec<Vec<u8>> {
        let deposit =
            Deposit { account: AccountId(1), asset: AssetId(1), amount: 7, ..Default::default() };
        vec![bytemuck::bytes_of(&deposit).to_vec(); count]
    }

    /// Opens the log, appends what the core makes of these commands, and closes it.
    fn append(&mut self, commands: &[Vec<u8>]) {
        let Log { writer, keeper, .. } = self.run(commands, WindowPlace::SharedMemory);
        writer.close().unwrap();
        keeper.stop();
    }

    /// As [`Venue::append`], and then the engine dies, and its window stays in the data folder.
    fn append_and_die(&mut self, commands: &[Vec<u8>]) {
        let Log { mut writer, keeper, control, .. } = self.run(commands, WindowPlace::Data);
        writer.want_durable();
        writer.tell_keeper();
        let wait = Wait::begin();
        while control.durable() != control.appended() {
            wait.go_on("what is appended is not written");
            std::thread::yield_now();
        }
        keeper.stop();
        drop(writer);
    }

    /// Opens the log and appends what the core makes of these commands.
    fn run(&mut self, commands: &[Vec<u8>], window_place: WindowPlace) -> Log {
        let window = tempfile::tempdir().unwrap();
        let environment =
            Environment { shared_memory: window.path().to_owned(), ..Environment::default() };
        let options = LogOptions {
            data: self.path().to_owned(),
            window_place,
            window_bytes: Some(4 * WINDOW_SEGMENT_BYTES),
            segment_bytes: WINDOW_SEGMENT_BYTES,
            gather: Duration::ZERO,
            write_interval: Duration::ZERO,
            accept_loss: false,
        };
        let mut found = Core::new();
        let mut log =
            log::open_in(&environment, &options, &mut Apply(&mut found), &mut |_| {}).unwrap();
        let writer = &mut log.writer;
        assert_eq!(found.state_hash(), self.core.state_hash());
        let mut area = vec![0_u64; MAX_FRAME_BYTES / 8];
        for command in commands {
            let wait = Wait::begin();
            while !writer.can_take() {
                wait.go_on("the disk makes no room");
                writer.tell_keeper();
                std::thread::yield_now();
            }
            self.time_ns += 1;
            let position = writer.position();
            let area: &mut [u8] = bytemuck::cast_slice_mut(&mut area);
            let words: Vec<u64> = bytemuck::allocation::pod_collect_to_vec(command);
            let bytes = bytemuck::cast_slice(&words);
            let (length, count) =
                Apply(&mut self.core).replay(position, self.time_ns, bytes, area).unwrap();
            writer.begin(bytes).unwrap()[..length].copy_from_slice(&area[..length]);
            writer.commit(self.time_ns, length, count);
            self.transactions += 1;
        }
        log
    }

    fn path(&self) -> &Path {
        self.data.path()
    }

    fn make(&self, kept: usize) -> Made {
        self.try_make(kept).unwrap()
    }

    fn try_make(&self, kept: usize) -> Result<Made, MakeError> {
        make(&MakeOptions { data: self.path().to_owned(), kept }, &mut |_| {})
    }

    /// The files of snapshots, newest first.
    fn snapshots(&self) -> Vec<PathBuf> {
        list(self.path()).unwrap().into_iter().map(|listed| listed.path).collect()
    }

    /// The newest snapshot, read to its end.
    fn load_newest(&self) -> Result<Replica, SnapshotFault> {
        load(self.path(), list(self.path()).unwrap().remove(0))
    }

    fn identity(&self) -> LogIdentity {
        let segments = self.path().join("log");
        let first = fs::read_dir(&segments).unwrap().map(|entry| entry.unwrap().path());
        let first = first.filter(|path| path.extension().is_some_and(|end| end == "seg")).min();
        LogIdentity::read_header(&fs::read(first.unwrap()).unwrap()).unwrap().0
    }

    fn is_what(&self, replica: &Replica) {
        assert_eq!(replica.transactions(), self.transactions);
        assert_eq!(replica.core().state_hash(), self.core.state_hash());
        replica.core().validate().unwrap();
    }
}

/// Changes a snapshot's file behind everybody's back.
fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

/// Changes its header, which is sealed again.
fn edit_header(path: &Path, identity: &LogIdentity, change: impl FnOnce(&mut SnapshotHeader)) {
    edit(path, |bytes| {
        let mut header: SnapshotHeader = bytemuck::pod_read_unaligned(&bytes[..HEADER_BYTES]);
        change(&mut header);
        bytes[..HEADER_BYTES].copy_from_slice(bytemuck::bytes_of(&header.sealed(identity)));
    });
}

#[test]
fn a_snapshot_is_the_state_of_the_log_and_the_next_one_goes_on_from_it() {
    let mut venue = Venue::new();
    let first = venue.make(2);
    assert_eq!((first.transactions, first.replayed), (venue.transactions, venue.transactions));
    assert_eq!((first.previous, first.state_hash), (None, venue.core.state_hash()));
    assert_eq!(first.bytes, fs::metadata(&first.path).unwrap().len());
    venue.is_what(&venue.load_newest().unwrap());

    venue.grow(10);
    let second = venue.make(2);
    assert_eq!((second.transactions, second.replayed), (venue.transactions, 10));
    assert_eq!(second.previous, Some(first.position));
    venue.is_what(&venue.load_newest().unwrap());
    assert_eq!(venue.snapshots(), [second.path.clone(), first.path]);

    let again = venue.make(2);
    assert_eq!((again.path, again.replayed), (second.path, 0), "the log had nothing new");
}

#[test]
fn a_log_without_a_venue_has_nothing_to_go_on_from() {
    let data = tempfile::tempdir().unwrap();
    let venue = Venue { data, core: Core::new(), time_ns: 1, transactions: 0 };
    assert!(matches!(venue.try_make(1), Err(MakeError::Log(_))), "no log at all");
    let mut venue = venue;
    venue.append(&[]);
    assert!(matches!(venue.try_make(1), Err(MakeError::NoVenue)));
    assert!(matches!(prune(venue.path(), false, &[], &mut |_| {}), Err(PruneError::NoSnapshot)));
    // One whose definition has begun, and whose engine was ended in the middle of it.
    let config: EngineConfig = toml::from_str(VENUE).unwrap();
    let genesis = Genesis::new(&config).unwrap();
    let defined: Vec<Vec<u8>> = genesis.remaining(Sequence(0)).map(<[u8]>::to_vec).collect();
    for part in [&defined[..1], &defined[1..]] {
        venue.append(part);
        assert!(matches!(venue.try_make(1), Err(MakeError::NoVenue)), "{}", venue.transactions);
        assert_eq!(venue.snapshots(), [] as [PathBuf; 0]);
    }
    let started = EngineStarted { incarnation: 3, ..Default::default() };
    venue.append(&[bytemuck::bytes_of(&started).to_vec()]);
    assert_eq!(venue.make(1).transactions, venue.transactions);
}

/// Without an engine the damaged place looks like the log's end, up to which a snapshot would stand for all.
#[test]
fn none_is_made_of_a_log_that_is_damaged_where_it_was_durable() {
    let mut venue = Venue::new();
    venue.grow(3);
    let made = venue.make(2);
    // What comes behind tells that all of this was durable.
    venue.grow(3);
    venue.grow(3);
    let first = segment_path(&venue.path().join("log"), 0);
    let behind = made.position.0 as usize;
    let last = list(venue.path()).unwrap()[0].header.as_ref().unwrap().last_position as usize;
    for at in [behind, last] {
        edit(&first, |bytes| bytes[at + 20] ^= 1);
        let refused = venue.try_make(2).unwrap_err();
        let told =
            matches!(&refused, MakeError::Damaged { position, .. } if position.0 == at as u64);
        assert!(told, "{at}: {refused}");
        assert_eq!(venue.snapshots(), std::slice::from_ref(&made.path));
        edit(&first, |bytes| bytes[at + 20] ^= 1);
    }
    assert_eq!(venue.make(2).transactions, venue.transactions);
}

#[test]
fn whoever_changes_snapshots_or_segments_does_it_alone_and_who_looks_needs_not() {
    let mut venue = Venue::new();
    let made = venue.make(2);
    venue.grow(1);
    let path = made.path.with_file_name("lock");
    let held = fs::File::open(&path).unwrap();
    held.try_lock().unwrap();
    let locked =
        |error: &MakeError| matches!(error, MakeError::Locked { path: told } if *told == path);
    assert!(locked(&venue.try_make(2).unwrap_err()));
    let refused = prune(venue.path(), false, &[], &mut |_| {}).unwrap_err();
    assert!(matches!(&refused, PruneError::Lock(error) if locked(error)), "{refused}");
    prune(venue.path(), true, &[], &mut |_| {}).unwrap();
    assert_eq!(venue.snapshots(), [made.path]);
    held.unlock().unwrap();
    venue.make(2);
    // The file that was held stays the one that is locked.
    held.try_lock().unwrap();
    assert!(locked(&venue.try_make(2).unwrap_err()));
}

#[test]
fn none_is_made_of_what_only_a_window_of_another_past_has() {
    let mut venue = Venue::new();
    let (log, kept) = (venue.path().join("log"), tempfile::tempdir().unwrap());
    let copy = |from: &Path, to: &Path| {
        for file in fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()) {
            fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
        }
    };
    copy(&log, kept.path());
    venue.append_and_die(&Venue::deposits(5));
    fs::remove_dir_all(&log).unwrap();
    fs::create_dir(&log).unwrap();
    copy(kept.path(), &log);
    // An engine of this process seems to run on the window.
    let refused = venue.try_make(1).unwrap_err();
    assert!(matches!(refused, MakeError::NotOnDisk { .. }), "{refused}");
    // The process, whose number stands at 64, is no more.
    edit(&venue.path().join("live/control"), |page| page[64..68].fill(0xff));
    let refused = venue.try_make(1).unwrap_err();
    assert!(matches!(&refused, MakeError::Log(error) if error.is_of_window()), "{refused}");
    assert_eq!(venue.snapshots(), [] as [PathBuf; 0]);
    fs::remove_dir_all(venue.path().join("live")).unwrap();
    assert_eq!(venue.make(1).transactions, venue.transactions - 5);
}

#[test]
fn older_ones_are_kept_by_count() {
    let mut venue = Venue::new();
    let mut made = Vec::new();
    for kept in [3, 3, 3, 3, 1, 0] {
        venue.grow(1);
        let last = venue.make(kept);
        made.insert(0, last.path.clone());
        let removed: Vec<PathBuf> = made.split_off(made.len().min(kept.max(1)));
        assert_eq!(last.removed, removed);
        assert_eq!(venue.snapshots(), made);
    }
    // With nothing new to make as many are kept all the same.
    for kept in [3, 3] {
        venue.grow(1);
        made.insert(0, venue.make(kept).path);
    }
    for kept in [4, 2, 1] {
        let last = venue.make(kept);
        assert_eq!((last.replayed, &last.path), (0, &made[0]));
        let removed: Vec<PathBuf> = made.split_off(made.len().min(kept));
        assert_eq!(last.removed, removed);
        assert_eq!(venue.snapshots(), made);
    }
    // What an interrupted making has left goes, and what is none stays.
    let unfinished = made[0].with_file_name("00000000000000000009.snap.new");
    let other = made[0].with_file_name("notes.txt");
    fs::write(&unfinished, "half").unwrap();
    fs::write(&other, "mine").unwrap();
    venue.grow(1);
    venue.make(9);
    assert!(!unfinished.exists() && other.exists());
    assert_eq!(venue.snapshots().len(), 2);
}

/// What is done to the newest snapshot, and whether that is how it is told.
type Damage = (&'static str, fn(&Path, &LogIdentity), fn(&SnapshotFault) -> bool);

const DAMAGES: [Damage; 10] = [
    (
        "a byte of a block",
        |path, _| edit(path, |bytes| bytes[HEADER_BYTES + 100] ^= 1),
        |fault| matches!(fault, SnapshotFault::Block { number: 0, computed: Some(_), .. }),
    ),
    (
        "a block that claims to be larger than the file",
        |path, _| edit(path, |bytes| bytes[HEADER_BYTES + 2] |= 8),
        |fault| matches!(fault, SnapshotFault::Block { number: 0, computed: None, .. }),
    ),
    (
        "torn in the middle of a block",
        |path, _| edit(path, |bytes| bytes.truncate(bytes.len() / 2)),
        |fault| matches!(fault, SnapshotFault::Block { .. }),
    ),
    (
        "torn in front of its trailer",
        |path, _| edit(path, |bytes| bytes.truncate(bytes.len() - 24)),
        |fault| matches!(fault, SnapshotFault::Disk(_)),
    ),
    (
        "bytes behind its end",
        |path, _| edit(path, |bytes| bytes.extend([0; 8])),
        |fault| matches!(fault, SnapshotFault::End { .. }),
    ),
    ("empty", |path, _| edit(path, Vec::clear), |fault| matches!(fault, SnapshotFault::Disk(_))),
    (
        "never given its header",
        |path, _| edit(path, |bytes| bytes[..HEADER_BYTES].fill(0)),
        |fault| matches!(fault, SnapshotFault::Header(HeaderError::Magic { .. })),
    ),
    (
        "of another major version",
        |path, _| edit(path, |bytes| bytes[8] += 1),
        |fault| {
            let header =
                SnapshotFault::Header(HeaderError::Version { found_major: 2, found_minor: 1 });
            fault.to_string() == header.to_string()
        },
    ),
    (
        "of another state than its content",
        |path, identity| edit_header(path, identity, |header| header.state_hash ^= 1),
        |fault| matches!(fault, SnapshotFault::StateHash { .. }),
    ),
    (
        "of a history that the log does not have",
        |path, identity| edit_header(path, identity, |header| header.last_crc ^= 1),
        |fault| matches!(fault, SnapshotFault::NotInLog { .. }),
    ),
];

#[test]
fn one_that_cannot_be_used_is_told_passed_over_and_never_pruned_by() {
    for (what, damage, is_told) in DAMAGES {
        let mut venue = Venue::new();
        let older = venue.make(2);
        venue.grow(3);
        let newest = venue.make(2);
        damage(&newest.path, &venue.identity());

        let fault = venue.load_newest().err().unwrap_or_else(|| panic!("{what}: it was taken"));
        assert!(is_told(&fault), "{what}: {fault}");
        let refused = prune(venue.path(), false, &[], &mut |_| {});
        assert!(
            matches!(&refused, Err(PruneError::Snapshot { path, .. }) if *path == newest.path),
            "{what}: {refused:?}"
        );

        venue.grow(2);
        let next = venue.make(2);
        let skipped: Vec<&PathBuf> = next.skipped.iter().map(|(path, _)| path).collect();
        assert_eq!(skipped, [&newest.path], "{what}");
        assert!(is_told(&next.skipped[0].1), "{what}: {}", next.skipped[0].1);
        assert_eq!((next.previous, next.replayed), (Some(older.position), 5), "{what}");
        venue.is_what(&venue.load_newest().unwrap());
        // It is no reason for the older one to go.
        assert!(next.removed.is_empty(), "{what}: {:?}", next.removed);
        assert_eq!(venue.snapshots().len(), 3, "{what}");
    }
}

#[test]
fn one_of_a_newer_minor_version_is_used_if_its_sections_are_known() {
    let mut venue = Venue::new();
    let made = venue.make(1);
    // The checksum covers the version, so it is computed as the newer build would.
    edit(&made.path, |bytes| {
        let salt = u32::from_le_bytes(bytes[12..16].try_into().unwrap());
        bytes[10] += 1;
        let crc = crc32c::crc32c_append(salt, &bytes[..HEADER_BYTES - 4]);
        bytes[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
    });
    venue.is_what(&venue.load_newest().unwrap());
    venue.grow(4);
    let next = venue.make(1);
    assert_eq!((next.previous, next.replayed), (Some(made.position), 4));
}

#[test]
fn pruning_keeps_the_segment_that_the_oldest_snapshot_ends_in() {
    let mut venue = Venue::new();
    let begin = venue.make(3);
    // A segment holds some 10,000 deposits.
    venue.grow(25_000);
    let middle = venue.make(3);
    venue.grow(25_000);
    let newest = venue.make(3);
    let nothing = prune(venue.path(), false, &[], &mut |_| {}).unwrap();
    assert_eq!((nothing.oldest_snapshot, nothing.segments.len()), (begin.position, 0));

    fs::remove_file(&begin.path).unwrap();
    let last = middle.position.0 - 1;
    let kept = last / WINDOW_SEGMENT_BYTES;
    assert!(kept > 1, "the log is of several segments");
    let wanted: Vec<PathBuf> =
        (0..kept).map(|number| segment_path(&venue.path().join("log"), number)).collect();
    let told = prune(venue.path(), true, &[], &mut |_| {}).unwrap();
    assert_eq!(told.segments, wanted);
    assert!(wanted.iter().all(|path| path.exists()), "only told");
    let pruned = prune(venue.path(), false, &[], &mut |_| {}).unwrap();
    assert_eq!(pruned.segments, wanted);
    assert_eq!((pruned.begin.0, pruned.now.0), (0, kept * WINDOW_SEGMENT_BYTES));
    assert_eq!(pruned.oldest_snapshot, middle.position);
    assert!(wanted.iter().all(|path| !path.exists()));

    // The rest goes on from the snapshots: both are of this log still, and the next one is made of it.
    for listed in list(venue.path()).unwrap() {
        load(venue.path(), listed).unwrap();
    }
    let before = venue.snapshots();
    assert_eq!(before, [newest.path, middle.path]);
    // Without any there is no beginning.
    before.iter().for_each(|path| edit(path, |bytes| bytes[HEADER_BYTES + 9] ^= 1));
    let refused = venue.try_make(3).unwrap_err();
    assert!(matches!(&refused, MakeError::NoBeginning { begin, .. } if *begin == pruned.now.0));
    assert_eq!(refused.to_string().matches(".snap: ").count(), 2, "{refused}");
}

/// A venue whose log is of several segments, and the number of the first one that its snapshot does not stand for.
fn of_several_segments() -> (Venue, u64) {
    let mut venue = Venue::new();
    // A segment holds some 10,000 deposits.
    venue.grow(40_000);
    let made = venue.make(1);
    let kept = (made.position.0 - 1) / WINDOW_SEGMENT_BYTES;
    assert!(kept > 2, "the log is of several segments");
    (venue, kept)
}

#[test]
fn pruning_keeps_what_a_reader_of_this_log_still_needs() {
    let (venue, kept) = of_several_segments();
    let log_id = venue.identity().log_id;
    let at = |needed| Bookmark::nothing_before(Position(needed));
    let hold = |name, log_id, needed| Lease::hold(venue.path(), name, log_id, at(needed)).unwrap();
    // Another log's, as a copied folder may have it, and one that needs nothing of what would go.
    hold("foreign", [0; 16], 0);
    hold("far", log_id, kept * WINDOW_SEGMENT_BYTES);
    let history = hold("history", log_id, WINDOW_SEGMENT_BYTES - 1);
    hold("other", log_id, 2 * WINDOW_SEGMENT_BYTES);
    let pruned_for = |dry_run| {
        let pruned = prune(venue.path(), dry_run, &[], &mut |_| {}).unwrap();
        let names: Vec<String> = pruned.kept_for.into_iter().map(|lease| lease.name).collect();
        (pruned.segments.len(), pruned.now.0 / WINDOW_SEGMENT_BYTES, names.join(" "))
    };
    assert_eq!(pruned_for(false), (0, 0, "history other".to_owned()));
    history.advance(at(WINDOW_SEGMENT_BYTES)).unwrap();
    assert_eq!(pruned_for(true), (1, 1, "history other".to_owned()));
    assert_eq!(pruned_for(false), (1, 1, "history other".to_owned()));
    // One that needs what is gone holds the rest.
    hold("late", log_id, 0);
    assert_eq!(pruned_for(false), (0, 1, "history late other".to_owned()));
    fs::remove_file(venue.path().join(LEASE_FOLDER).join("late.lease")).unwrap();
    let listed = list(venue.path()).unwrap().remove(0);
    let last = listed.header.unwrap().last();
    // Of a reader whose past the log does not have: it will begin anew.
    history.advance(Bookmark { crc: last.crc ^ 1, ..last }).unwrap();
    assert_eq!(pruned_for(false), (0, 1, "history other".to_owned()));
    history.advance(last).unwrap();
    assert_eq!(pruned_for(false), (1, 2, "other".to_owned()));

    // Nobody knows what one holds that is not whole.
    let other = venue.path().join(LEASE_FOLDER).join("other.lease");
    edit(&other, |bytes| bytes[24] ^= 1);
    let refused = prune(venue.path(), false, &[], &mut |_| {}).unwrap_err();
    assert!(
        matches!(&refused, PruneError::Lease(_)) && refused.to_string().contains("other.lease")
    );
    fs::remove_file(other).unwrap();
    assert_eq!(pruned_for(false), (kept as usize - 2, kept, String::new()));
}

/// By who knows of readers what their leases do not say.
#[test]
fn pruning_keeps_what_is_needed_without_a_lease() {
    let (venue, _) = of_several_segments();
    let log_id = venue.identity().log_id;
    let at = |segment| Bookmark::nothing_before(Position(segment * WINDOW_SEGMENT_BYTES));
    let need = |name: &str, segment| HeldLease {
        name: name.to_owned(),
        path: venue.path().join(name),
        log_id,
        last: at(segment),
    };
    Lease::hold(venue.path(), "history", log_id, at(1)).unwrap();
    let pruned_for = |further: &[HeldLease]| {
        let pruned = prune(venue.path(), true, further, &mut |_| {}).unwrap();
        let needed = |lease: HeldLease| (lease.name, lease.last.position.0 / WINDOW_SEGMENT_BYTES);
        let all: Vec<_> = pruned.kept_for.into_iter().map(needed).collect();
        (pruned.segments.len(), all)
    };
    let own = |name: &str, segment| (name.to_owned(), segment);
    // Once each, by what needs more.
    assert_eq!(pruned_for(&[need("history", 0)]), (0, vec![own("history", 0)]));
    assert_eq!(pruned_for(&[need("history", 2)]), (1, vec![own("history", 1)]));
    let both = vec![own("history", 1), own("other", 0)];
    assert_eq!(pruned_for(&[need("other", 0)]), (0, both));
    // Another log's lease of that name says nothing of this one, however far back it goes.
    Lease::hold(venue.path(), "same", [9; 16], at(0)).unwrap();
    fs::remove_file(venue.path().join(LEASE_FOLDER).join("history.lease")).unwrap();
    assert_eq!(pruned_for(&[need("same", 1)]), (1, vec![own("same", 1)]));
    // Nor is it removed.
    let pruned = prune(venue.path(), false, &[need("other", 0)], &mut |_| {}).unwrap();
    assert_eq!((pruned.segments.len(), pruned.now.0), (0, 0));
}

#[test]
fn a_lease_that_comes_while_segments_are_removed_keeps_what_it_needs() {
    let (venue, last_kept) = of_several_segments();
    let log_id = venue.identity().log_id;
    let folder = venue.path().join("log");
    let segment = |number: u64| segment_path(&folder, number);
    let leaving = |number: u64| segment(number).with_extension("seg.leaving");
    let mut shown = Vec::new();
    let pruned = prune(venue.path(), false, &[], &mut |path| {
        shown.push(path.to_owned());
        let needed = Bookmark::nothing_before(Position(WINDOW_SEGMENT_BYTES));
        Lease::hold(venue.path(), "late", log_id, needed).unwrap();
    })
    .unwrap();
    assert_eq!((&shown, &pruned.segments), (&vec![segment(0)], &vec![segment(0)]));
    assert_eq!(pruned.now.0, WINDOW_SEGMENT_BYTES);
    assert_eq!(pruned.kept_for.len(), 1, "{:?}", pruned.kept_for);
    let names = || -> Vec<u64> { (0..=last_kept).filter(|&n| segment(n).exists()).collect() };
    let kept: Vec<u64> = (1..=last_kept).collect();
    assert_eq!(names(), kept);
    // As a prune leaves them that is killed before it has looked at the leases again.
    fs::rename(segment(1), leaving(1)).unwrap();
    fs::copy(segment(3), leaving(3)).unwrap();
    // Who only looks leaves it so.
    prune(venue.path(), true, &[], &mut |_| {}).unwrap();
    assert!(leaving(1).exists() && leaving(3).exists());
    let pruned = prune(venue.path(), false, &[], &mut |_| {}).unwrap();
    assert_eq!((pruned.segments.len(), pruned.kept_for.len()), (0, 1));
    assert_eq!(names(), kept, "the lease has what it needs");
    assert!(!leaving(1).exists() && !leaving(3).exists());
    fs::remove_file(venue.path().join(LEASE_FOLDER).join("late.lease")).unwrap();
    fs::rename(segment(1), leaving(1)).unwrap();
    let pruned = prune(venue.path(), false, &[], &mut |_| {}).unwrap();
    assert_eq!(pruned.begin.0, WINDOW_SEGMENT_BYTES);
    assert_eq!(names(), [last_kept]);
    assert!(!leaving(1).exists());
}

#[test]
fn a_segment_whose_neighbour_is_gone_does_not_get_its_name_back() {
    let mut venue = Venue::new();
    venue.grow(40_000);
    venue.make(1);
    let folder = venue.path().join("log");
    let segment = |number: u64| segment_path(&folder, number);
    let leaving = segment(0).with_extension("seg.leaving");
    fs::rename(segment(0), &leaving).unwrap();
    fs::remove_file(segment(1)).unwrap();
    // The last number that there is has no neighbour at all.
    let last = segment(u64::MAX).with_extension("seg.leaving");
    fs::write(&last, "").unwrap();
    let pruned = prune(venue.path(), false, &[], &mut |_| {}).unwrap();
    assert_eq!(pruned.begin.0, 2 * WINDOW_SEGMENT_BYTES);
    assert!(!leaving.exists() && !segment(0).exists() && !last.exists());
}
