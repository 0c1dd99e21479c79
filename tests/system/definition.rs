//! What a venue is made from and what that outlives: its definition, its keys, the first start cut
//! off at any moment, and the ways in which a supervisor or its readers can go.

use super::http::{Http, Key};
use super::json::Json;
use super::lifecycle::definition_of;
use super::log_tools::log;
use super::process::{Process, WATCHDOG, eventually, is_alive, processes_on, send_signal};
use super::random::Random;
use super::raw_session::{dial, is_closed};
use super::trader::{Balances, Trader, balances_of};
use super::venue::{Venue, borrowed, live_windows};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, getppid, kill_process_group};
use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use touchline_protocol::client::{Client, ClientOptions};
use touchline_protocol::credentials::MasterKey;
use touchline_protocol::log::reader::{Follow, LogReader};
use touchline_protocol::message::command::CreateKey;
use touchline_protocol::message::enums::{Lane, Role};
use touchline_protocol::text::Name;
use touchline_protocol::units::{AccountId, KeyId};

/// Two definitions that share their first commands and then differ in every kind of thing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Definition {
    Cats,
    Dogs,
}

impl Definition {
    /// Accounts, each with a key.
    const fn accounts(self) -> u64 {
        match self {
            Self::Cats => 50,
            Self::Dogs => 45,
        }
    }

    /// So many balances that defining them takes a while, and limits that take none.
    fn text(self) -> String {
        let (coin, tick, unit) = match self {
            Self::Cats => ("CAT", "0.01", 7),
            Self::Dogs => ("DOG", "0.5", 11),
        };
        let assets: Vec<String> = (0..14).map(|n| format!("{coin}{n}")).collect();
        let mut text = "[limits]\nopen_orders = 1024\nprice_levels = 1024\n\
                        [[assets]]\nname = \"USDT\"\n"
            .to_owned();
        for (n, asset) in assets.iter().enumerate() {
            text += &format!("[[assets]]\nname = \"{asset}\"\nprecision = {}\n", n % 8 + 1);
        }
        for asset in &assets[..4] {
            let base = format!("name = \"{asset}USDT\"\nbase = \"{asset}\"\nquote = \"USDT\"");
            text += &format!("[[symbols]]\n{base}\ntick_size = \"{tick}\"\n");
        }
        for n in 0..self.accounts() {
            let amounts: Vec<String> = (assets.iter().enumerate())
                .map(|(m, asset)| format!("{asset} = \"{}\"", unit * (n + 1) + m as u64))
                .collect();
            let balances = amounts.join(", ");
            text += &format!("[[accounts]]\nname = \"{coin}-{n}\"\nkeys = 1\n");
            text += &format!("balances = {{ {balances} }}\n");
        }
        text
    }
}

/// The file that a venue's `--config` names; a test may write another definition into it.
struct Configuration {
    path: PathBuf,
    _folder: TempDir,
}

impl Configuration {
    fn new(definition: Definition) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let new = Self { path: folder.path().join("venue.toml"), _folder: folder };
        new.set(definition);
        new
    }

    fn set(&self, definition: Definition) {
        fs::write(&self.path, definition.text()).expect("the folder is ours");
    }

    fn up(&self) -> Venue {
        Venue::up(&["--config", self.path.to_str().expect("temporary folders have plain names")])
    }
}

/// All that a client can see of a venue's definition.
#[derive(Clone, PartialEq, Debug)]
struct Picture {
    exchange_info: Vec<(String, Json)>,
    /// Of the keys 1, 2 and so on, as long as there are any.
    accounts: Vec<Balances>,
}

fn picture(address: SocketAddr, data: &Path) -> Picture {
    let info = Http::new(address).get("/api/v3/exchangeInfo").ok();
    let shown = info.keys().into_iter().filter(|key| *key != "serverTime");
    let master = MasterKey::load(&data.join("master.key")).expect("a defined venue has its key");
    let account = |number| {
        let key = Key { api: master.api_key(KeyId(number)), secret: master.secret(KeyId(number)) };
        let reply = Trader::new(address, "X-SVC", key).call("GET", "/api/v3/account", "");
        (reply.status == 200).then(|| balances_of(&reply.ok()))
    };
    Picture {
        exchange_info: shown.map(|key| (key.to_owned(), info.at(key).clone())).collect(),
        accounts: (1..).map_while(account).collect(),
    }
}

fn picture_of(venue: &Venue) -> Picture {
    picture(venue.address(), venue.data())
}

/// The venue of an undisturbed first start with a definition.
fn undisturbed(definition: Definition) -> Picture {
    let venue = Configuration::new(definition).up();
    let picture = picture_of(&venue);
    assert_eq!(picture.accounts.len() as u64, definition.accounts());
    picture
}

/// Starts `touchline` and waits until it is ready; its address, or none when it ended instead.
fn start(arguments: &[String]) -> (Process, Option<SocketAddr>) {
    let process = Process::start(&borrowed(arguments));
    let is_ready = || process.lines().iter().any(|line| line.trim() == "ready");
    assert!(eventually(|| is_ready() || !is_alive(process.pid())), "neither ready nor ended");
    let address = is_ready().then(|| {
        let line = process.wait_for(0, "address line", |line| line.starts_with("  address "));
        line.rsplit_once("http://").and_then(|(_, address)| address.parse().ok()).expect(&line)
    });
    (process, address)
}

/// What a command that has to fail printed.
fn refused(arguments: &[String]) -> String {
    let mut process = Process::start(&borrowed(arguments));
    let status = process.wait_for_end();
    let output = process.lines().join("\n");
    assert!(status.code().is_some_and(|code| code != 0), "{arguments:?}: {status}\n{output}");
    output
}

#[test]
fn a_venue_is_what_its_first_start_defined_whatever_later_ones_are_given() {
    let configuration = Configuration::new(Definition::Cats);
    let mut venue = configuration.up();
    let defined = picture_of(&venue);
    assert_eq!(defined.accounts.len() as u64, Definition::Cats.accounts());
    assert_ne!(defined, undisturbed(Definition::Dogs), "the two definitions differ");
    assert_eq!(venue.stop_up(Signal::TERM).code(), Some(0));

    configuration.set(Definition::Dogs);
    venue.start_up();
    assert_eq!(picture_of(&venue), defined, "started with another file");
    let told = |line: &str| line.contains("this venue does not have ");
    venue.supervisor().wait_for(0, "word of a definition that is not taken", told);
    assert_eq!(venue.stop_up(Signal::TERM).code(), Some(0));

    let arguments = venue.arguments("up", true);
    let at = arguments.iter().position(|one| one == "--config").expect("it was given");
    let without = [&arguments[..at], &arguments[at + 2..]].concat();
    let (mut process, address) = start(&without);
    let address = address.expect("a defined venue needs no file");
    assert_eq!(picture(address, venue.data()), defined, "started without a file");
    process.signal(Signal::TERM);
    assert_eq!(process.wait_for_end().code(), Some(0));
}

/// Starts the engine on a new folder and kills it at a random moment of its start, which is known to
/// take about `whole`: every other time while it defines the venue.
fn cut_off_first_start(venue: &Venue, random: &mut Random, whole: Duration, round: u32) {
    fs::remove_dir_all(venue.data()).expect("the venue has ended");
    let mut engine = Process::start(&borrowed(&venue.arguments("engine", false)));
    if round.is_multiple_of(2) {
        let position = random.below(DEFINITION_BYTES);
        let deadline = Instant::now() + WATCHDOG;
        // Defining takes a few milliseconds: no time to sleep between two looks.
        while !has_logged(venue.data(), position) && is_alive(engine.pid()) {
            assert!(Instant::now() < deadline, "nothing is defined");
        }
    } else {
        thread::sleep(Duration::from_micros(random.below(whole.as_micros() as u64)));
    }
    engine.kill();
}

/// Bytes that either definition has in the log at the least: 700 commands.
const DEFINITION_BYTES: u64 = 700 * 192;

/// True when the log in `data` has reached this position; looks for a while if an engine writes it.
fn has_logged(data: &Path, position: u64) -> bool {
    let reader = LogReader::open(data, Follow::Appended);
    let reader = reader.ok().filter(|reader| reader.incarnation().is_some());
    reader.is_some_and(|reader| (0..100_000).any(|_| reader.watermark().0 >= position))
}

/// A venue that has ended, and how long the engine's first start took.
fn measured(configuration: &Configuration) -> (Venue, Duration) {
    let mut venue = configuration.up();
    assert_eq!(venue.stop_up(Signal::TERM).code(), Some(0));
    fs::remove_dir_all(venue.data()).expect("the venue has ended");
    let begin = Instant::now();
    let mut engine = Process::start(&borrowed(&venue.arguments("engine", false)));
    engine.wait_for(0, "ready line", |line| line.starts_with("engine ready"));
    let whole = begin.elapsed();
    engine.signal(Signal::TERM);
    assert_eq!(engine.wait_for_end().code(), Some(0));
    (venue, whole)
}

fn seeded() -> Random {
    let seed = Random::fresh_seed();
    println!("seed {seed}");
    Random::new(seed)
}

#[test]
fn a_first_start_that_was_cut_off_goes_on_where_it_stopped() {
    let mut random = seeded();
    let configuration = Configuration::new(Definition::Cats);
    let (mut venue, whole) = measured(&configuration);
    let expected = undisturbed(Definition::Cats);
    let mut gone_on = 0;
    let mut round = 0;
    while round < ROUNDS || gone_on == 0 {
        assert!(round < ROUNDS_MAX, "none was cut off while it defined");
        round += 1;
        cut_off_first_start(&venue, &mut random, whole, round);
        let begun = dumped(venue.data());
        venue.start_up();
        assert_eq!(picture_of(&venue), expected, "round {round}");
        assert_eq!(venue.stop_up(Signal::TERM).code(), Some(0));
        let all = dumped(venue.data());
        assert!(all.starts_with(&begun), "round {round}: what was defined first is there no more");
        gone_on += u32::from(!begun.is_empty() && begun.len() < all.len());
    }
}

/// First starts that are cut off; more, up to the second number, while none was in the midst of defining.
const ROUNDS: u32 = 6;
const ROUNDS_MAX: u32 = 60;

/// All transactions of a log; none where there is no log yet.
fn dumped(data: &Path) -> Vec<Json> {
    let (code, text, _) = log(data, &["dump"]);
    if code != Some(0) {
        return Vec::new();
    }
    text.lines().map(Json::parse).collect()
}

#[test]
fn a_first_start_that_was_cut_off_is_never_finished_as_a_mixture() {
    let mut random = seeded();
    let configuration = Configuration::new(Definition::Cats);
    let (mut venue, whole) = measured(&configuration);
    let (cats, dogs) = (undisturbed(Definition::Cats), undisturbed(Definition::Dogs));
    let mut refused = 0;
    let mut round = 0;
    while round < ROUNDS || refused == 0 {
        assert!(round < ROUNDS_MAX, "none was cut off while it defined");
        round += 1;
        configuration.set(Definition::Cats);
        cut_off_first_start(&venue, &mut random, whole, round);
        configuration.set(Definition::Dogs);
        let (mut process, address) = start(&venue.arguments("up", true));
        if let Some(address) = address {
            let found = picture(address, venue.data());
            assert!(found == cats || found == dogs, "round {round}: a mixture: {found:?}");
            process.signal(Signal::TERM);
            assert_eq!(process.wait_for_end().code(), Some(0));
            continue;
        }
        refused += 1;
        assert!(!process.wait_for_end().success());
        let output = process.lines().join("\n");
        assert!(output.contains("venue.toml") && output.contains("--data"), "{output}");
        configuration.set(Definition::Cats);
        venue.start_up();
        assert_eq!(picture_of(&venue), cats, "round {round}: with the file of that time");
        assert_eq!(venue.stop_up(Signal::TERM).code(), Some(0));
    }
}

/// Everything that lies in a folder, by path.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).expect("the folder can be read").flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(files(&entry.path()));
        }
        found.insert(entry.path());
    }
    found
}

/// Live windows of a data folder's log in shared memory.
fn windows(data: &Path) -> usize {
    assert!(data.join("log-id").exists(), "nobody knows which are its own");
    live_windows(data).len()
}

#[test]
fn a_venue_without_its_master_key_is_refused_and_nothing_is_made() {
    let mut venue = Venue::up(&[]);
    let keys = (venue.key_a().secret, venue.key_b().secret);
    assert_eq!(venue.stop_up(Signal::TERM).code(), Some(0));
    let key = venue.data().join("master.key");
    let aside = venue.data().with_extension("aside");
    fs::rename(&key, &aside).expect("it is there");
    let before = files(venue.data());
    for (command, http) in [("engine", false), ("up", true)] {
        let output = refused(&venue.arguments(command, http));
        assert!(output.contains(key.to_str().expect("a plain name")), "{command}: {output}");
        assert_eq!(files(venue.data()), before, "{command} made something");
        assert_eq!(windows(venue.data()), 0, "{command} left a live window in memory");
    }
    fs::write(&key, [7; 32]).expect("the folder is ours");
    fs::set_permissions(&key, Permissions::from_mode(0o600)).expect("it is ours");
    let before = files(venue.data());
    let output = refused(&venue.arguments("up", true));
    assert!(output.contains("master.mark") && output.contains("another one"), "{output}");
    assert_eq!(files(venue.data()), before, "a start with another key made something");
    fs::rename(&aside, &key).expect("it is there");
    // A venue of an earlier build has no mark.
    let mark = venue.data().join("master.mark");
    let made = fs::read_to_string(&mark).expect("the first start made it");
    fs::remove_file(&mark).expect("it is there");
    venue.start_up();
    assert_eq!((venue.key_a().secret, venue.key_b().secret), keys);
    assert_eq!(fs::read_to_string(&mark).expect("it is made again"), made);
}

#[test]
fn a_data_path_too_long_for_a_socket_is_refused_before_anything_is_made() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let data = folder.path().join("d".repeat(110));
    let data = data.to_str().expect("temporary folders have plain names");
    for arguments in
        [&["engine", "--data", data][..], &["up", "--http", "127.0.0.1:0", "--data", data]]
    {
        let arguments: Vec<String> = arguments.iter().map(|&one| one.to_owned()).collect();
        let output = refused(&arguments);
        assert!(output.contains("107") && output.contains("--data"), "{output}");
        assert_eq!(files(folder.path()), BTreeSet::new(), "{} made something", arguments[0]);
    }
}

#[test]
fn a_definition_that_the_core_refuses_is_told_before_anything_is_made() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let data = folder.path().join("data");
    let name = data.to_str().expect("temporary folders have plain names");
    let arguments = ["engine", "--data", name, "--set", "limits.symbols=1"].map(str::to_owned);
    let output = refused(&arguments);
    assert!(
        output.contains("DefineSymbol of \"ETHUSDT\" is rejected: CapacityReached"),
        "{output}"
    );
    assert!(!data.exists(), "what is made of a wrong definition takes no other one");
}

/// Else the venue would be the built-in one for good, whatever the next start is given.
#[test]
fn a_first_start_that_cannot_listen_makes_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let data = folder.path().join("data");
    let name = data.to_str().expect("temporary folders have plain names");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address").to_string();
    let tcp = format!("gateway.tcp={address}");
    for (arguments, named) in [
        (vec!["up", "--data", name, "--http", &address], "--http"),
        (vec!["up", "--data", name, "--http", "127.0.0.1:0", "--set", &tcp], "gateway.tcp"),
        (vec!["engine", "--data", name, "--set", &tcp], "gateway.tcp"),
    ] {
        let arguments: Vec<_> = arguments.into_iter().map(str::to_owned).collect();
        let output = refused(&arguments);
        assert!(output.contains(&address) && output.contains(named), "{output}");
        // `up` makes the folder in front of what it starts.
        assert!(!data.exists() || files(&data).is_empty(), "{output}");
    }
}

/// Else binary sessions would be taken, and lost at once again.
#[test]
fn a_later_start_that_cannot_listen_starts_no_engine() {
    let mut venue = Venue::up(&[]);
    assert!(venue.stop_up(Signal::TERM).success());
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address").to_string();
    let data = venue.data().to_str().expect("temporary folders have plain names");
    let arguments = ["up", "--data", data, "--http", &address].map(str::to_owned);
    let output = refused(&arguments);
    assert!(output.contains(&address) && output.contains("--http"), "{output}");
    assert!(!output.contains("engine:"), "{output}");
}

/// An adapter whose supervisor was killed has its address until it has heard of that.
#[test]
fn a_later_start_waits_until_the_last_adapter_gives_up_its_address() {
    let mut venue = Venue::up(&[]);
    assert!(venue.stop_up(Signal::TERM).success());
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address").to_string();
    let data = venue.data().to_str().expect("temporary folders have plain names");
    let start = || {
        let process = Process::start(&["up", "--data", data, "--http", &address]);
        process.wait_for(0, "line that tells it", |line| line.contains(&address));
        process
    };
    // Who is told to end meanwhile ends as at any other time.
    let mut told_to_end = start();
    told_to_end.signal(Signal::TERM);
    assert!(told_to_end.wait_for_end().success());
    let mut process = start();
    drop(taken);
    process.wait_for(0, "ready line", |line| line.trim() == "ready");
    process.signal(Signal::TERM);
    assert!(process.wait_for_end().success());
}

/// And its instance's name until it has answered what it has begun and its history is written.
#[test]
fn a_later_start_waits_for_the_last_adapter_to_end() {
    let mut venue = Venue::up(&[]);
    assert!(venue.stop_up(Signal::TERM).success());
    // This process stands for that adapter.
    let lock = File::open(venue.data().join("adapter-adapter.lock")).expect("it is there");
    flock(&lock, FlockOperation::NonBlockingLockExclusive).expect("nobody has it");
    let data = venue.data().to_str().expect("temporary folders have plain names");
    let start = || {
        let process = Process::start(&["up", "--data", data, "--http", "127.0.0.1:0"]);
        let told = |line: &str| line == "waiting for the last adapter to end";
        process.wait_for(0, "line that tells it", told);
        process
    };
    // Who is told to end meanwhile ends as at any other time, and has started no engine; which is waited for no longer
    // than so where this machine stands still.
    let begun = Instant::now();
    let mut told_to_end = start();
    told_to_end.signal(Signal::TERM);
    assert!(told_to_end.wait_for_end().success());
    let is_over = begun.elapsed() >= Duration::from_secs(8);
    assert!(is_over || !told_to_end.lines().iter().any(|line| line.starts_with("engine: ")));
    let mut process = start();
    drop(lock);
    process.wait_for(0, "ready line", |line| line.trim() == "ready");
    process.signal(Signal::TERM);
    assert!(process.wait_for_end().success());
}

/// The engine of a supervisor that was killed ends, too, and keeps the data folder until it has.
#[test]
fn a_later_start_waits_for_the_last_engine_to_end() {
    let mut venue = Venue::up(&[]);
    assert!(venue.stop_up(Signal::TERM).success());
    // This process stands for that engine.
    let (engine, parent) = (std::process::id(), getppid().expect("it has one").as_raw_pid());
    fs::write(venue.data().join("lock"), engine.to_string()).expect("it can be written");
    let lock = File::open(venue.data().join("lock")).expect("it is there");
    flock(&lock, FlockOperation::NonBlockingLockExclusive).expect("nobody has it");
    let supervised_by = |pid: String| {
        fs::write(venue.data().join("up.pid"), pid).expect("it can be written");
    };
    let data = venue.data().to_str().expect("temporary folders have plain names");
    let arguments = ["up", "--data", data, "--http", "127.0.0.1:0"];
    supervised_by(parent.to_string());
    let output = refused(&arguments.map(str::to_owned));
    assert!(output.contains("another engine runs") && !output.contains("waiting"), "{output}");
    // Another one has taken it over.
    supervised_by(engine.to_string());
    let mut process = Process::start(&arguments);
    process.wait_for(0, "line that tells it", |line| line == "waiting for the last engine to end");
    drop(lock);
    process.wait_for(0, "ready line", |line| line.trim() == "ready");
    process.signal(Signal::TERM);
    assert!(process.wait_for_end().success());
}

#[test]
fn a_definition_that_is_not_used_blocks_neither_a_start_nor_the_doctor() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (data, file) = (folder.path().join("data"), folder.path().join("venue.toml"));
    fs::write(&file, definition_of("AB", "")).expect("the folder is ours");
    let [data, file] = [&data, &file].map(|path| path.to_str().expect("plain names").to_owned());
    let engine = |more: &[&str]| {
        let mut engine = Process::start(&[&["engine", "--data", &data], more].concat());
        engine.wait_for(0, "ready line", |line| line.starts_with("engine ready"));
        engine.signal(Signal::TERM);
        assert!(engine.wait_for_end().success());
        engine
            .lines()
            .iter()
            .any(|line| line.contains("symbol AB: ") && line.contains("8 decimals"))
    };
    assert!(engine(&["--config", &file]), "a symbol without steps is defined, and told of");
    // The demo venue, which is the definition without a file, has more keys.
    let set = ["--set", "limits.keys=1"];
    let mut doctor = Process::start(&[&["doctor", "--data", &data][..], &set].concat());
    assert_eq!(doctor.wait_for_end().code(), Some(0), "{:?}", doctor.lines());
    assert!(!engine(&set), "it is told where it is defined");
    // In a new folder it is used.
    let new = folder.path().join("new");
    let name = new.to_str().expect("plain names");
    let arguments = ["engine", "--data", name, set[0], set[1]].map(str::to_owned);
    assert!(refused(&arguments).contains("limits.keys"));
    assert!(!new.exists(), "what is refused makes nothing");
}

#[test]
fn limits_that_this_build_cannot_hold_are_refused_by_their_keys_before_the_log_is_opened() {
    let mut venue = Venue::up(&[]);
    assert_eq!(venue.stop_up(Signal::TERM).code(), Some(0));
    let log = || fs::read(venue.data().join("log/00000000.seg")).expect("it is there");
    let (before, made) = (log(), files(venue.data()));
    let output = |set: &str| {
        let set = ["--set", set].map(str::to_owned);
        refused(&[venue.arguments("engine", false), set.to_vec()].concat())
    };
    for (set, told) in [
        ("limits.max_steps=0", "limits.max_steps: 0 is not between 1 and 512"),
        ("limits.records=99999999", "limits.records: 99999999 is not between 0 and 16777216"),
    ] {
        let output = output(set);
        assert!(output.contains(told), "{output}");
        assert!(log() == before, "a start that is refused was logged");
        assert_eq!(files(venue.data()), made);
    }
    // What is in use, the log knows.
    let output = output("limits.symbols=1");
    assert!(output.contains("limits.symbols"), "{output}");
    assert_eq!(files(venue.data()), made, "not even a process id");
}

#[test]
fn a_second_supervisor_leaves_the_first_ones_files_alone() {
    let venue = Venue::up(&[]);
    let read = |name: &str| fs::read_to_string(venue.data().join(name)).expect("it is there");
    let first = || ["up.pid", "engine.pid", "adapter.pid", "demo.env"].map(read);
    let before = first();
    assert_eq!(before[0].trim(), venue.supervisor().pid().to_string());
    let output = refused(&venue.arguments("up", true));
    assert!(output.contains("another engine runs on this data folder"), "{output}");
    assert_eq!(first(), before);
    venue.a().limit("BTCUSDT", "SELL", "1", "50000");
    assert!(administer(venue.data()), "the engine's socket is another's");
}

/// Creates a key over a connection of its own: the engine serves.
pub(crate) fn administer(data: &Path) -> bool {
    let name = Name::new("administrator").expect("a short name");
    let options = ClientOptions::new(data.join("engine.sock"), Role::Admin, Lane::Cold, name);
    let mut create = CreateKey { account: AccountId(1), permissions: 1, ..Default::default() };
    Client::connect(&options).is_ok_and(|mut client| client.call(&mut create, WATCHDOG).is_ok())
}

#[test]
fn children_of_a_killed_supervisor_end_by_themselves() {
    let mut venue = Venue::up(&[]);
    let id = venue.a().limit("BTCUSDT", "SELL", "1", "50000").integer_at("orderId");
    assert_eq!(processes_on(venue.data()).len(), 3);
    send_signal(venue.supervisor().pid(), Signal::KILL);
    assert!(eventually(|| processes_on(venue.data()).is_empty()), "children live on");
    for name in ["engine.pid", "adapter.pid"] {
        assert!(!venue.data().join(name).exists(), "{name} is left: its process was killed");
    }
    venue.start_up();
    assert_eq!(venue.a().order("BTCUSDT", id).text_at("status"), "NEW");
}

/// Starts `touchline` as the leader of a process group of its own, its output going where told.
fn spawn_group(arguments: &[String], output: impl Fn() -> Stdio) -> Child {
    Command::new(env!("CARGO_BIN_EXE_touchline"))
        .args(arguments)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(output())
        .stderr(output())
        .spawn()
        .expect("the built executable starts")
}

/// Waits for the end of a child, at most as long as the watchdog allows.
pub(crate) fn end_of(child: &mut Child) -> ExitStatus {
    let mut status = None;
    let ended = eventually(|| {
        status = child.try_wait().expect("the child is ours");
        status.is_some()
    });
    if !ended {
        child.kill().expect("the child is ours");
    }
    status.expect("it does not end")
}

#[test]
fn ctrl_c_ends_the_whole_venue_cleanly() {
    let mut venue = Venue::up(&[]);
    assert_eq!(venue.stop_up(Signal::TERM).code(), Some(0));
    let path = venue.data().with_extension("output");
    let file = File::create(&path).expect("the folder is ours");
    let output = || file.try_clone().expect("a descriptor more").into();
    let mut up = spawn_group(&venue.arguments("up", true), output);
    let printed = || fs::read_to_string(&path).expect("the file is ours");
    assert!(eventually(|| printed().lines().any(|line| line == "ready")), "{}", printed());
    let group = Pid::from_child(&up);
    for name in ["engine", "adapter"] {
        let pid = venue.pid(name).and_then(|pid| Pid::from_raw(pid.try_into().ok()?));
        let own = rustix::process::getpgid(pid).expect("it runs");
        assert_ne!(own, group, "the {name} would end before its supervisor says so");
    }
    kill_process_group(group, Signal::INT).expect("it runs");
    let status = end_of(&mut up);
    assert_eq!(status.code(), Some(0), "{}", printed());
    assert_eq!(processes_on(venue.data()), Vec::<u32>::new());
    let output = printed();
    for line in ["engine: engine ended", "ended"] {
        assert!(output.lines().any(|found| found == line), "no {line:?} in {output}");
    }
    assert_eq!(windows(venue.data()), 0, "the engine's log was not closed");
}

#[test]
fn an_engine_that_nobody_listens_to_goes_on_and_ends_cleanly() {
    let mut venue = Venue::up(&[]);
    assert_eq!(venue.stop_up(Signal::TERM).code(), Some(0));
    let mut engine = spawn_group(&venue.arguments("engine", false), Stdio::piped);
    drop((engine.stdout.take(), engine.stderr.take()));
    let socket = venue.data().join("engine.sock");
    assert!(eventually(|| administer(venue.data())), "the engine does not serve");
    // What it says about this goes nowhere.
    for _ in 0..3 {
        let mut stream = dial(&socket);
        stream.write_all(&[0xff; 256]).expect("the engine reads");
        assert!(is_closed(&mut stream));
        assert!(administer(venue.data()), "the engine does not serve any more");
    }
    send_signal(engine.id(), Signal::TERM);
    assert_eq!(end_of(&mut engine).code(), Some(0));
    assert_eq!(windows(venue.data()), 0, "the engine's log was not closed");
}

#[test]
fn a_supervisor_that_nobody_listens_to_serves_and_ends_cleanly() {
    let mut venue = Venue::up(&[]);
    assert_eq!(venue.stop_up(Signal::TERM).code(), Some(0));
    let environment = venue.data().join("demo.env");
    fs::remove_file(&environment).expect("it is there");
    let mut up = spawn_group(&venue.arguments("up", true), Stdio::piped);
    drop((up.stdout.take(), up.stderr.take()));
    assert!(eventually(|| environment.exists()), "it is never ready");
    assert!(administer(venue.data()), "the engine does not serve");
    send_signal(up.id(), Signal::TERM);
    assert_eq!(end_of(&mut up).code(), Some(0));
    assert_eq!(processes_on(venue.data()), Vec::<u32>::new());
}
