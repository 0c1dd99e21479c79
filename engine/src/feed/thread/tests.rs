//! A key is judged once the log was read up to where it stood when the question came, and no later.

use super::*;
use crate::config::EngineConfig;
use crate::duty::{Duty, fixture};
use crate::log::storage::GatedStorage;
use crate::log::{self, Environment, KeeperHandle, LogOptions, WindowPlace};
use crate::patience::Wait;
use crate::recovery::NothingToReplay;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::env;
use std::process::Command as Process;
use tempfile::TempDir;
use touchline_protocol::log::SEGMENT_HEADER_BYTES;
use touchline_protocol::log::place::LIVE_FOLDER;
use touchline_protocol::message::command::{CreateKey, Deposit, RevokeKey};
use touchline_protocol::units::{AccountId, AssetId};

const SEGMENT_BYTES: u64 = 2 << 20;
const WINDOW_BYTES: u64 = 8 << 20;

const DEFINITION: &str = r#"
[[assets]]
name = "BTC"
[[accounts]]
name = "A"
"#;

/// A venue without keys, and its feed as it is before its thread runs.
struct Venue {
    duty: Duty,
    feed: FeedThread,
    disk_fails: Arc<AtomicBool>,
    _keeper: KeeperHandle,
    folders: [TempDir; 2],
}

fn venue() -> Venue {
    venue_of(Follow::Appended)
}

fn venue_of(follow: Follow) -> Venue {
    venue_in(follow, WindowPlace::Data)
}

fn venue_in(follow: Follow, window_place: WindowPlace) -> Venue {
    crate::patience::watch();
    let folder = tempfile::tempdir().unwrap();
    let shared_memory = tempfile::tempdir().unwrap();
    let options = LogOptions {
        window_place,
        window_bytes: Some(WINDOW_BYTES),
        segment_bytes: SEGMENT_BYTES,
        ..LogOptions::small(folder.path())
    };
    // No attest record is to come between.
    let attest_after = Duration::from_secs(3600);
    let disk_fails = Arc::new(AtomicBool::new(false));
    let fails = Arc::clone(&disk_fails);
    let storage = Arc::new(GatedStorage::new(move |_| {
        if fails.load(Ordering::Relaxed) { Err(io::Error::other("it is broken")) } else { Ok(true) }
    }));
    let environment = Environment {
        storage,
        attest_after,
        shared_memory: shared_memory.path().to_owned(),
        ..Environment::default()
    };
    let log = log::open_in(&environment, &options, &mut NothingToReplay, &mut |_| {}).unwrap();
    let config: EngineConfig = toml::from_str(DEFINITION).unwrap();
    let (duty, mail, _) = fixture::defined(log.writer, &config);
    let feed = prepare(FeedOptions {
        data: folder.path().to_owned(),
        follow,
        slots: 1024,
        core: duty.core(),
        control: log.control,
        bell: mail.bell(),
    })
    .unwrap();
    Venue { duty, feed, disk_fails, _keeper: log.keeper, folders: [folder, shared_memory] }
}

impl Venue {
    fn log(&mut self, command: &[u8]) {
        self.duty.own_command(command).unwrap();
    }

    /// Asks whether key 1 may read.
    fn ask(&mut self, ticket: usize) {
        self.feed.desk.to_feed.put(ToFeed::Admit { ticket, key: KeyId(1) });
        self.feed.read_mail();
    }

    /// What the feed thread has said about that since: who is let in, or why not.
    fn answers(&self) -> Vec<(usize, Option<RejectReason>)> {
        let letters = std::iter::from_fn(|| self.feed.desk.from_feed.take());
        letters
            .filter_map(|letter| match letter {
                FromFeed::Admitted { ticket } => Some((ticket, None)),
                FromFeed::Refused { ticket, reason } => Some((ticket, Some(reason))),
                _ => None,
            })
            .collect()
    }

    fn read_on(&mut self) {
        while self.feed.broadcast().unwrap() > 0 {}
        self.feed.read_mail();
    }
}

#[test]
fn a_feed_that_has_read_everything_sleeps_wherever_the_window_is() {
    for place in [WindowPlace::Data, WindowPlace::SharedMemory] {
        let mut venue = venue_in(Follow::Appended, place);
        venue.read_on();
        let control = &venue.feed.control;
        assert_eq!(venue.feed.reader.watermark(), control.appended());
        assert!(!venue.feed.reader.has_more(), "{place:?}: it would look again without an end");
    }
}

#[test]
fn a_feed_that_does_not_find_its_engines_window_does_not_begin() {
    let venue = venue();
    let data = venue.folders[0].path();
    std::fs::remove_dir_all(data.join(LIVE_FOLDER)).unwrap();
    let begun = prepare(FeedOptions {
        data: data.to_owned(),
        follow: Follow::Appended,
        slots: 1024,
        core: venue.duty.core(),
        control: venue.feed.control.clone(),
        bell: Arc::clone(&venue.feed.bell),
    });
    let said = begun.err().map(|error| error.to_string()).unwrap_or_default();
    let folder = venue.folders[1].path().display().to_string();
    assert!(said.contains("incarnation 1") && said.contains(&folder), "{said:?}");
}

#[test]
fn a_key_is_judged_by_all_that_the_log_says_when_the_question_comes() {
    let mut venue = venue();
    venue.ask(1);
    assert_eq!(venue.answers(), [(1, Some(RejectReason::UnknownKey))], "all is read");
    let (account, permissions) = (AccountId(1), KEY_MARKET_DATA);
    venue.log(bytemuck::bytes_of(&CreateKey { account, permissions, ..Default::default() }));
    venue.ask(2);
    assert_eq!(venue.answers(), [], "the log says more than was read");
    venue.read_on();
    assert_eq!(venue.answers(), [(2, None)], "the key was made in front of the question");
    venue.log(bytemuck::bytes_of(&RevokeKey { key: KeyId(1), ..Default::default() }));
    venue.ask(3);
    assert_eq!(venue.answers(), []);
    venue.read_on();
    assert_eq!(venue.answers(), [(3, Some(RejectReason::UnknownKey))]);
}

#[test]
fn a_feed_of_what_is_on_disk_judges_keys_by_that_when_the_disk_has_failed() {
    let mut venue = venue_of(Follow::Durable);
    let (account, permissions) = (AccountId(1), KEY_MARKET_DATA);
    venue.log(bytemuck::bytes_of(&CreateKey { account, permissions, ..Default::default() }));
    venue.duty.wait_durable().unwrap();
    venue.disk_fails.store(true, Ordering::Relaxed);
    // Nobody ever reads this.
    venue.log(bytemuck::bytes_of(&RevokeKey { key: KeyId(1), ..Default::default() }));
    venue.ask(1);
    venue.duty.turn();
    let wait = Wait::begin();
    while venue.feed.control.state() != LogState::LogFailed {
        wait.go_on("the log does not fail");
    }
    venue.ask(2);
    venue.read_on();
    assert_eq!(venue.answers(), [(1, None), (2, None)]);
}

#[test]
fn a_feed_does_not_fall_asleep_over_a_question_that_a_failure_answers() {
    let mut venue = venue();
    venue.read_on();
    // As if the log were not on disk so far yet.
    venue.feed.questions.push_back((1, KeyId(1), Position(u64::MAX)));
    venue.feed.read_mail();
    assert!(!venue.feed.has_work());
    venue.feed.control.fail("the test says so");
    assert!(venue.feed.has_work());
    venue.feed.read_mail();
    assert_eq!(venue.answers(), [(1, Some(RejectReason::UnknownKey))]);
    assert!(!venue.feed.has_work(), "it would look again without an end");
}

#[test]
fn a_key_is_judged_also_where_the_log_ends_at_the_beginning_of_a_segment() {
    let mut venue = venue();
    let (account, amount) = (AccountId(1), 1);
    let deposit = Deposit { account, asset: AssetId(0), amount, ..Default::default() };
    let wait = Wait::begin();
    while venue.feed.control.appended().0 != SEGMENT_BYTES + SEGMENT_HEADER_BYTES {
        wait.go_on("the second segment does not begin");
        venue.log(bytemuck::bytes_of(&deposit));
        venue.duty.turn();
    }
    venue.read_on();
    venue.ask(1);
    assert_eq!(venue.answers(), [(1, Some(RejectReason::UnknownKey))]);
}

/// Says to a process of this test's own executable that it has the limit of open files to itself.
const ALONE: &str = "TOUCHLINE_TEST_ALONE";

#[test]
fn a_feed_that_is_behind_outlasts_a_want_of_descriptors() {
    if env::var_os(ALONE).is_none() {
        let name = "feed::thread::tests::a_feed_that_is_behind_outlasts_a_want_of_descriptors";
        let mut alone = Process::new(env::current_exe().unwrap());
        let output = alone.args(["--exact", name]).env(ALONE, "1").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let mut venue = venue();
    let (account, amount) = (AccountId(1), 1);
    let deposit = Deposit { account, asset: AssetId(0), amount, ..Default::default() };
    // A lap of the window, so that the feed has to open segments.
    while venue.feed.control.appended().0 < 2 * WINDOW_BYTES {
        for _ in 0..64 {
            venue.duty.first_command(bytemuck::bytes_of(&deposit)).unwrap();
        }
        venue.duty.turn();
    }
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(0), ..before }).unwrap();
    let (done, is_short) = (venue.feed.broadcast(), venue.feed.is_short);
    setrlimit(Resource::Nofile, before).unwrap();
    assert!(matches!(done, Ok(0)) && is_short, "{done:?}");
    venue.read_on();
    assert!(venue.feed.reader.has_read_to(venue.feed.control.appended()));
    assert!(!venue.feed.is_short);
}
