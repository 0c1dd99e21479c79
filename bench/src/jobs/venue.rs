//! Engine and adapter on a data folder of their own, with room for the jobs, and the users; how long both
//! take to start with all of it. Called by [`super::run`].

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use touchline_adapter::auth::keys::{FILE_NAME, KeyRing};
use touchline_adapter::auth::password::Hasher;
use touchline_adapter::auth::token::Tokens;
use touchline_adapter::jobs::record::{USER, User, id_text, key_of_email};
use touchline_protocol::client::{Acknowledgement, Client, ClientOptions, SOCKET_NAME};
use touchline_protocol::message::command::PutRecord;
use touchline_protocol::message::decode::Event;
use touchline_protocol::message::enums::{Lane, Role};
use touchline_protocol::message::with_bytes::RecordWrite;
use touchline_protocol::text::Name;

use super::JobsOptions;
use super::report::Starts;
use crate::child;
use crate::machine::nanoseconds;
use crate::process::Process;
use crate::rest::usage;

/// Longest that the engine may take to answer one write.
const CALL_LIMIT: Duration = Duration::from_secs(10);

/// Blocks of 60 bytes that a job of this bench takes, at the most.
const BLOCKS_OF_JOB: u32 = 2;

/// And a user, with his unique key.
const BLOCKS_OF_USER: u32 = 5;

/// How long the tokens are good for, in seconds.
const TOKEN_LIFETIME_S: u64 = 24 * 3600;

/// The folder.
pub(super) struct Venue {
    executable: PathBuf,
    folder: PathBuf,
}

/// Both processes. The adapter is dropped first.
pub(super) struct Running {
    pub(super) adapter: Process,
    pub(super) engine: Process,
    pub(super) address: SocketAddr,
}

impl Running {
    pub(super) fn stop(self) -> Result<()> {
        self.adapter.stop()?;
        self.engine.stop()
    }
}

/// Memory of an engine of the same kind that may keep one record.
pub(super) fn memory_without_records(options: &JobsOptions, folder: &Path) -> Result<u64> {
    let folder = folder.join("empty");
    fs::create_dir(&folder)?;
    let venue = Venue::with_room(options, &folder, (1, 1))?;
    let (engine, _) = venue.engine()?;
    let bytes = usage::own_bytes(engine.id())?;
    engine.stop()?;
    Ok(bytes)
}

impl Venue {
    /// A venue without any market that has room for all of it.
    pub(super) fn new(options: &JobsOptions, folder: &Path) -> Result<Self> {
        let jobs = options.all_jobs();
        let blocks = options.users * BLOCKS_OF_USER + jobs * BLOCKS_OF_JOB;
        Self::with_room(options, folder, (options.users + jobs, blocks))
    }

    /// A venue with room for so many records and blocks, which makes no snapshot by itself.
    fn with_room(
        options: &JobsOptions,
        folder: &Path,
        (records, blocks): (u32, u32),
    ) -> Result<Self> {
        let settings = format!(
            "[limits]\nrecords = {records}\nrecord_blocks = {blocks}\n\n\
             [log]\nsnapshot_every_mib = 0\n\n\
             [adapter]\nacknowledge = \"appended\"\nconnections = 100000\n\n\
             [jobs]\nwrites_per_minute = 0\n"
        );
        fs::write(folder.join("venue.toml"), settings)?;
        Ok(Self { executable: options.executable.clone(), folder: folder.to_owned() })
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn arguments(&self, command: &[&str], more: &[&str]) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = command.iter().map(Into::into).collect();
        arguments.extend(["--data".into(), self.data().into_os_string()]);
        arguments.extend(more.iter().map(Into::into));
        arguments
    }

    fn process(&self, name: &'static str, more: &[&str], ready: &str) -> Result<(Process, String)> {
        let mut arguments = self.arguments(&[name], more);
        arguments.extend(["--config".into(), self.folder.join("venue.toml").into_os_string()]);
        Process::start(name, &self.executable, arguments, &self.folder, ready)
    }

    /// The engine, and how long it took to its ready line, ns.
    fn engine(&self) -> Result<(Process, u64)> {
        let begin = Instant::now();
        let (engine, _) = self.process("engine", &[], "engine ready")?;
        Ok((engine, nanoseconds(begin.elapsed())))
    }

    /// The adapter, where it listens, and how long it took to its ready line, ns.
    fn adapter(&self) -> Result<(Process, SocketAddr, u64)> {
        let begin = Instant::now();
        let http = ["--http", "127.0.0.1:0"];
        let (adapter, address) = self.process("adapter", &http, "adapter ready http=")?;
        let took = nanoseconds(begin.elapsed());
        let address = address.parse().with_context(|| format!("address {address:?}"))?;
        Ok((adapter, address, took))
    }

    /// Starts both.
    pub(super) fn start(&self) -> Result<Running> {
        let (engine, _) = self.engine()?;
        let (adapter, address, _) = self.adapter()?;
        Ok(Running { adapter, engine, address })
    }

    /// Starts both in each way, and ends them.
    pub(super) fn time_starts(&self) -> Result<Starts> {
        let (engine, engine_from_log_ns) = self.engine()?;
        let (adapter, _, adapter_from_history_ns) = self.adapter()?;
        adapter.stop()?;
        engine.stop()?;
        let made = child::command(&self.executable, self.arguments(&["log", "snapshot"], &[]))?
            .output()
            .context("cannot run log snapshot")?;
        let said = String::from_utf8_lossy(&made.stderr);
        ensure!(made.status.success(), "log snapshot: {}", said.trim());
        fs::remove_dir_all(self.data().join("history")).context("the history")?;
        let (engine, engine_from_snapshot_ns) = self.engine()?;
        let (adapter, _, adapter_from_log_ns) = self.adapter()?;
        adapter.stop()?;
        engine.stop()?;
        Ok(Starts {
            engine_from_log_ns,
            engine_from_snapshot_ns,
            adapter_from_history_ns,
            adapter_from_log_ns,
        })
    }

    /// Writes the users' records; gives a token of each.
    pub(super) fn make_users(&self, users: u32) -> Result<Vec<String>> {
        let hash = Hasher::default().hash("a password for all")?;
        let tokens = Tokens::new(KeyRing::open(self.data().join(FILE_NAME))?, TOKEN_LIFETIME_S);
        let name = Name::new("bench").context("a session's name")?;
        let mut options =
            ClientOptions::new(self.data().join(SOCKET_NAME), Role::Adapter, Lane::Cold, name);
        // Until it is on disk, the adapter shows nothing of it.
        options.acknowledgement = Acknowledgement::Durable;
        let mut client = Client::connect(&options)?;
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let mut issued = Vec::with_capacity(users as usize);
        for number in 1..=users {
            let mut id = [0xbe; 12];
            id[..4].copy_from_slice(&number.to_le_bytes());
            let email = format!("user{number}@example.org");
            let name = format!("User {number:07}");
            let unique_key = key_of_email(&email);
            let put = PutRecord { kind: USER, id, unique_key, ..Default::default() };
            let content = User { name: &name, email: &email, hash: &hash }.encode();
            let mut write = RecordWrite::new(put, &content).context("a user fits a record")?;
            let reply = client.call(&mut write, CALL_LIMIT)?;
            let event = reply.event.event()?;
            ensure!(matches!(event, Event::RecordPut(_)), "a user was answered with {event:?}");
            issued.push(tokens.issue(&id_text(&id), &name, now_s)?);
        }
        Ok(issued)
    }
}
