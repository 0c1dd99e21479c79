//! A venue of a test's own: the executable on a temporary data folder, on a port of the system's
//! choice, with little disk. Called by every test that needs a running service.
//!
//! Nothing outlives it: dropping a venue kills every process on its folder.

use super::http::{Http, Key};
use super::process::{Process, eventually, is_alive, processes_on, send_signal};
use super::trader::Trader;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use tempfile::TempDir;

/// Settings for tests that send more than the demo venue's rate limits allow.
pub(crate) const UNLIMITED: [&str; 8] = [
    "--set",
    "limits.orders_per_interval_0=1000000",
    "--set",
    "limits.orders_per_interval_1=1000000",
    "--set",
    "adapter.request_weight_per_minute=1000000000",
    "--set",
    "adapter.raw_requests_per_5_minutes=1000000000",
];

/// What names the HTTP server of an adapter, for tests that run on both.
pub(crate) const FRONTS: [&str; 2] = ["adapter.front=hyper", "adapter.front=may"];

/// `UNLIMITED` on one of [`FRONTS`].
pub(crate) fn unlimited_on(front: &str) -> Vec<&str> {
    UNLIMITED.into_iter().chain(["--set", front]).collect()
}

/// Keeps the log of a test small.
const SMALL: [&str; 4] = ["--set", "log.segment_mib=4", "--set", "log.window_mib=8"];

/// One of the two processes of a venue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    Engine,
    Adapter,
}

impl Part {
    const fn name(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Adapter => "adapter",
        }
    }
}

/// A venue and its processes.
pub(crate) struct Venue {
    up: Option<Process>,
    engine: Option<Process>,
    adapter: Option<Process>,
    address: SocketAddr,
    environment: BTreeMap<String, String>,
    options: Vec<String>,
    data: PathBuf,
    folder: TempDir,
}

/// The setting of the HTTP server where a test leaves it open: `TOUCHLINE_FRONT` decides it.
fn front() -> Vec<String> {
    std::env::var("TOUCHLINE_FRONT").map_or_else(
        |_| Vec::new(),
        |front| vec!["--set".to_owned(), format!("adapter.front={front}")],
    )
}

impl Venue {
    /// A new demo venue under `touchline up`.
    pub(crate) fn up(options: &[&str]) -> Self {
        let own = SMALL.iter().chain(options).map(|&option| option.to_owned());
        let folder = tempfile::Builder::new()
            .prefix("touchline-test-")
            .tempdir()
            .expect("a temporary folder can be made");
        let data = folder.path().join("data");
        let mut venue = Self {
            up: None,
            engine: None,
            adapter: None,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            environment: BTreeMap::new(),
            options: front().into_iter().chain(own).collect(),
            data,
            folder,
        };
        venue.start_up();
        venue
    }

    /// A demo venue whose engine and adapter the test itself starts, with nobody to restart them.
    pub(crate) fn separate(options: &[&str]) -> Self {
        let mut venue = Self::up(options);
        assert!(venue.stop_up(Signal::TERM).success());
        venue.start_engine();
        venue.start_adapter();
        venue
    }

    /// Starts what is started from now on with these options, too.
    pub(crate) fn allow(&mut self, options: &[&str]) {
        self.options.extend(options.iter().map(|&option| option.to_owned()));
    }

    /// The data folder.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// Where the service listens.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// A value of `demo.env`, as it was when the venue was last ready.
    pub(crate) fn environment(&self, name: &str) -> &str {
        self.environment.get(name).unwrap_or_else(|| panic!("demo.env lacks {name}"))
    }

    /// A fresh connection.
    pub(crate) const fn http(&self) -> Http {
        Http::new(self.address)
    }

    /// A client of the first demo account.
    pub(crate) fn a(&self) -> Trader {
        self.trader(self.key_a())
    }

    /// A client of the second demo account.
    pub(crate) fn b(&self) -> Trader {
        self.trader(self.key_b())
    }

    /// The first account's key.
    pub(crate) fn key_a(&self) -> Key {
        self.key("API_KEY", "SECRET_KEY")
    }

    /// The second account's key.
    pub(crate) fn key_b(&self) -> Key {
        self.key("API_KEY_B", "SECRET_KEY_B")
    }

    /// A client with any key.
    pub(crate) fn trader(&self, key: Key) -> Trader {
        Trader::new(self.address, self.environment("HEADER_PREFIX"), key)
    }

    fn key(&self, api: &str, secret: &str) -> Key {
        Key { api: self.environment(api).to_owned(), secret: self.environment(secret).to_owned() }
    }

    /// Starts `touchline up` on the folder and waits until it says that it is ready.
    pub(crate) fn start_up(&mut self) {
        let arguments = self.arguments("up", true);
        let process = Process::start(&borrowed(&arguments));
        process.wait_for(0, "ready line", |line| line.trim() == "ready");
        let address = process.wait_for(0, "address line", |line| line.starts_with("  address "));
        let base = address.split_whitespace().nth(1).expect("the line has an address");
        self.address = parse_address(base);
        self.read_environment();
        assert_eq!(self.environment("BASE_URL"), base, "demo.env and the ready block agree");
        self.up = Some(process);
    }

    /// What stands behind `label` in the ready block of `touchline up`.
    pub(crate) fn ready_line(&self, label: &str) -> String {
        let process = self.up.as_ref().expect("touchline up was started");
        let line = process.wait_for(0, label, |line| line.starts_with(label));
        line[label.len()..].trim().to_owned()
    }

    /// Reads `demo.env` again.
    pub(crate) fn read_environment(&mut self) {
        let path = self.data.join("demo.env");
        let text = fs::read_to_string(&path).expect("demo.env is written before the ready block");
        let mode = fs::metadata(&path).expect("it is there").mode() & 0o777;
        assert_eq!(mode, 0o600, "demo.env holds secrets");
        self.environment = text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(|line| line.split_once('=').expect("lines are KEY=value"))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
    }

    /// Starts the engine alone and waits until it is ready.
    pub(crate) fn start_engine(&mut self) {
        self.begin_engine();
        self.wait_for_engine();
    }

    /// Starts the engine alone.
    pub(crate) fn begin_engine(&mut self) {
        self.engine = Some(Process::start(&borrowed(&self.arguments("engine", false))));
    }

    /// Waits until the engine that was started alone is ready.
    pub(crate) fn wait_for_engine(&mut self) {
        let ready = |line: &str| line.starts_with("engine ready");
        self.part(Part::Engine).wait_for(0, "engine's ready line", ready);
    }

    /// Starts the adapter alone and waits until it is ready.
    pub(crate) fn start_adapter(&mut self) {
        let process = Process::start(&borrowed(&self.arguments("adapter", true)));
        let prefix = "adapter ready http=";
        let line = process.wait_for(0, "adapter's ready line", |line| line.starts_with(prefix));
        let address = line[prefix.len()..].split_whitespace().next().expect("an address");
        self.address = parse_address(address);
        self.adapter = Some(process);
    }

    /// All that the adapter which was started alone has said of its start: what it says of its connection to the engine
    /// comes behind that on the same stream. Its ready line is on the other one, and tells nothing of this one.
    pub(crate) fn said_at_start(&mut self) -> Vec<String> {
        let adapter = self.part(Part::Adapter);
        adapter.wait_for(0, "connection to the engine", |line| line == "engine link: connected");
        adapter.lines()
    }

    /// Arguments for one of the long-running commands on this venue's folder.
    pub(crate) fn arguments(&self, command: &str, http: bool) -> Vec<String> {
        let data = self.data.to_str().expect("temporary folders have plain names");
        let mut arguments = vec![command.to_owned(), "--data".to_owned(), data.to_owned()];
        if http {
            arguments.extend(["--http".to_owned(), "127.0.0.1:0".to_owned()]);
        }
        arguments.extend(self.options.iter().cloned());
        arguments
    }

    /// The supervisor of a venue under `touchline up`.
    pub(crate) const fn supervisor(&self) -> &Process {
        self.up.as_ref().expect("the venue is up")
    }

    /// The engine or adapter of a venue that the test started in parts.
    pub(crate) fn part(&mut self, part: Part) -> &mut Process {
        match part {
            Part::Engine => self.engine.as_mut(),
            Part::Adapter => self.adapter.as_mut(),
        }
        .expect("the part was started")
    }

    /// Ends `touchline up` by a signal and waits until it and its children are gone.
    pub(crate) fn stop_up(&mut self, signal: Signal) -> ExitStatus {
        self.end_up(signal).0
    }

    /// As [`Self::stop_up`]; gives all that it printed, too.
    pub(crate) fn end_up(&mut self, signal: Signal) -> (ExitStatus, Vec<String>) {
        let mut process = self.up.take().expect("the venue is up");
        process.signal(signal);
        let status = process.wait_for_end();
        assert_eq!(processes_on(&self.data), Vec::<u32>::new(), "children are left");
        (status, process.lines())
    }

    /// The process id in `<data>/<name>.pid`, if such a process of this venue runs.
    pub(crate) fn pid(&self, name: &str) -> Option<u32> {
        let text = fs::read_to_string(self.data.join(format!("{name}.pid"))).ok()?;
        let pid = text.trim().parse().ok()?;
        processes_on(&self.data).contains(&pid).then_some(pid)
    }

    /// Kills a part at once (SIGKILL) and returns when it is dead.
    pub(crate) fn kill9(&mut self, part: Part) {
        let own = match part {
            Part::Engine => self.engine.take(),
            Part::Adapter => self.adapter.take(),
        };
        if let Some(mut process) = own {
            process.kill();
            return;
        }
        let pid = self.pid(part.name()).unwrap_or_else(|| panic!("{} does not run", part.name()));
        send_signal(pid, Signal::KILL);
        assert!(eventually(|| !is_alive(pid)), "{} survives SIGKILL", part.name());
    }

    /// Removes the killed engine's live window from memory, as a power cut does.
    pub(crate) fn lose_live_window(&self) {
        assert!(self.engine.is_none() && self.up.is_none(), "an engine uses the window");
        assert_eq!(remove_live_window(&self.data), 1, "the window of a killed engine is there");
    }

    /// Removes the live window of an engine that runs on, as somebody does who clears up.
    pub(crate) fn remove_live_window(&self) {
        assert_eq!(remove_live_window(&self.data), 1, "the window of an engine is there");
    }

    /// Removes what a stopped engine may have left in shared memory.
    pub(crate) fn forget_live_window(&self) {
        assert!(self.engine.is_none() && self.up.is_none(), "an engine uses the window");
        remove_live_window(&self.data);
    }

    /// Waits until the engine answers commands through the adapter: cancelling an order that never
    /// was is rejected by the engine alone, and changes nothing.
    pub(crate) fn wait_until_engine_answers(&self) {
        let mut trader = self.a();
        let mut last = String::new();
        let answered = eventually(|| {
            match trader.send("DELETE", "/api/v3/order", "symbol=BTCUSDT&orderId=9000000000000") {
                Ok(response) if response.is_unknown() => last = response.body,
                Ok(response) => {
                    assert_eq!(response.error().1, -2011, "{}", response.body);
                    return true;
                }
                Err(error) => last = error.to_string(),
            }
            false
        });
        assert!(answered, "the engine does not come back; last answer {last:?}");
    }
}

impl Drop for Venue {
    fn drop(&mut self) {
        if let Some(up) = &mut self.up {
            // First the supervisor, or it would start again what is killed next.
            up.kill();
        }
        let gone = eventually(|| {
            let left = processes_on(&self.data);
            left.iter().for_each(|&pid| send_signal(pid, Signal::KILL));
            left.is_empty()
        });
        if !gone {
            eprintln!("processes are left on {}", self.folder.path().display());
        }
        if std::thread::panicking() {
            for process in [&self.up, &self.engine, &self.adapter].into_iter().flatten() {
                eprintln!("output of {}:\n{}", process.pid(), process.lines().join("\n"));
            }
        }
        remove_live_window(&self.data);
    }
}

/// The live windows in shared memory that are named after a data folder's device and inode.
fn windows_of_folder(data: &Path) -> Vec<PathBuf> {
    let Ok(metadata) = fs::metadata(data) else { return Vec::new() };
    let uid = rustix::process::getuid().as_raw();
    let (device, inode) = (metadata.dev(), metadata.ino());
    let ends = [format!("-{device}-{inode}"), format!("-{device:x}-{inode:x}")];
    let is_of_folder = |window: &PathBuf| {
        let name = window.to_string_lossy();
        ends.iter().any(|end| name.ends_with(end.as_str()))
    };
    let windows = fs::read_dir(format!("/dev/shm/touchline-{uid}")).into_iter().flatten().flatten();
    windows.map(|window| window.path()).filter(is_of_folder).collect()
}

/// The live windows of a data folder's log: a folder that was removed may have left one of another log under the same
/// inode. None where it is not known which log that is.
pub(crate) fn live_windows(data: &Path) -> Vec<PathBuf> {
    let Ok(log_id) = fs::read_to_string(data.join("log-id")) else { return Vec::new() };
    let is_of_log = |window: &PathBuf| {
        window.file_name().is_some_and(|name| name.to_string_lossy().starts_with(log_id.trim()))
    };
    windows_of_folder(data).into_iter().filter(is_of_log).collect()
}

/// Frees the memory of a killed engine's live window, which survives the process on purpose. Gives how many of this
/// log were found.
fn remove_live_window(data: &Path) -> usize {
    let of_log = live_windows(data);
    let windows = windows_of_folder(data).into_iter();
    let removed = windows.filter(|window| fs::remove_dir_all(window).is_ok());
    removed.filter(|window| of_log.contains(window)).count()
}

fn parse_address(text: &str) -> SocketAddr {
    let text = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
    let address: SocketAddr =
        text.parse().unwrap_or_else(|_| panic!("{text:?} is no address and port"));
    assert_ne!(address.port(), 0, "the real port is printed");
    address
}

/// Borrowed views of owned arguments.
pub(crate) fn borrowed(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}
