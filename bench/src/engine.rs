//! A real engine process on a temporary data folder, with a venue made for the recorded stock.
//! Called by [`crate::replay`], [`crate::rtt`], [`crate::records`], [`crate::feed`] and [`crate::hostile`].

use std::ffi::OsString;
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use touchline_protocol::client::{Client, ClientCommand, ClientOptions, Endpoint, SOCKET_NAME};
use touchline_protocol::credentials::{MasterKey, Secret};
use touchline_protocol::feed::{FeedOptions, FeedReader};
use touchline_protocol::message::Message;
use touchline_protocol::message::command::{
    ACCOUNT_CAN_TRADE, CreateAccount, CreateKey, Deposit, KEY_BINARY, KEY_MARKET_DATA, KEY_TRADE,
    PERMISSION_SPOT,
};
use touchline_protocol::message::decode::Event;
use touchline_protocol::message::enums::{Lane, Role};
use touchline_protocol::ring::layout::MIN_SESSION_SLOTS;
use touchline_protocol::text::Name;
use touchline_protocol::units::{AccountId, AssetId, KeyId, SymbolId, UNITS_PER_WHOLE};
use touchline_protocol::wait::WaitStrategy;

use crate::process::Process;
use crate::temporary::Temporary;

/// The one symbol of the venue.
pub const SYMBOL: SymbolId = SymbolId(0);

/// Slots of both rings of a session over which many commands are under way: the largest.
const SLOTS: u32 = 16_384;

/// Longest that the answer to an admin command may take.
const CALL_LIMIT: Duration = Duration::from_secs(10);

/// Free balance of the account in each asset: 10 billion.
const BALANCE: i64 = 10_000_000_000 * UNITS_PER_WHOLE;

/// A venue whose filters take every order of a recording: ticks of 10⁻⁴, whole lots, no limits.
pub(crate) const VENUE: &str = r#"
[limits]
orders_per_interval_0 = 0
orders_per_interval_1 = 0

[[assets]]
name = "AAPL"

[[assets]]
name = "USD"

[[symbols]]
name = "AAPLUSD"
base = "AAPL"
quote = "USD"
price_min = "0.0001"
price_max = "1000000"
tick_size = "0.0001"
lot_min = "1"
lot_max = "1000000000"
lot_step = "1"
"#;

/// How engine and client are run.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// The executable `touchline`.
    pub executable: PathBuf,
    /// Folder for temporary data folders.
    pub scratch: PathBuf,
    /// How both sides wait.
    pub wait: WaitStrategy,
}

/// How clients get into a running engine.
#[derive(Clone, Debug)]
pub struct Access {
    folder: PathBuf,
    key: KeyId,
    secret: Secret,
    wait: WaitStrategy,
}

impl Access {
    /// As [`Engine::trader_over`], in a session of this name, 1 to 31 characters.
    ///
    /// # Errors
    /// As there.
    pub fn trader_named(&self, name: &str, endpoint: Option<Endpoint>) -> Result<Client> {
        let mut options = self.trading(name, 0, SLOTS);
        if let Some(endpoint) = endpoint {
            options.endpoint = endpoint;
        }
        Ok(Client::connect(&options)?)
    }

    /// A trader's session with these `LOGON_*` bits and for few commands at a time: rings as small as a session's may
    /// be, which stay in the cache as those of the ring baseline do.
    ///
    /// # Errors
    /// If the engine refuses it.
    pub fn prompt_trader(&self, name: &str, flags: u8) -> Result<Client> {
        let slots = u32::try_from(MIN_SESSION_SLOTS)?;
        connect(&self.trading(name, flags, slots))
    }

    /// A trader's session with these `LOGON_*` bits and so many slots each way.
    fn trading(&self, name: &str, flags: u8, slots: u32) -> ClientOptions {
        ClientOptions {
            key: Some((self.key, self.secret.clone())),
            flags,
            request_slots: slots,
            reply_slots: slots,
            wait: self.wait,
            ..session(&self.folder, Role::Trader, Lane::Hot, name)
        }
    }

    /// A bare connection to the engine's socket.
    ///
    /// # Errors
    /// If the engine does not listen.
    pub fn dial(&self) -> Result<UnixStream> {
        Ok(UnixStream::connect(data_folder(&self.folder).join(SOCKET_NAME))?)
    }

    /// Opens the public feed over an endpoint, or over shared memory. The engine must have one.
    ///
    /// # Errors
    /// If the engine refuses it.
    pub fn feed_over(&self, endpoint: Option<Endpoint>) -> Result<FeedReader> {
        let socket = data_folder(&self.folder).join(SOCKET_NAME);
        let name = Name::new("bench-reader").expect("the name is short");
        let mut options =
            FeedOptions::new(endpoint.unwrap_or(Endpoint::SharedMemory(socket)), name);
        options.key = Some((self.key, self.secret.clone()));
        options.wait = self.wait;
        Ok(FeedReader::open(&options)?)
    }

    /// The trader's key, to be named in commands.
    #[must_use]
    pub const fn key(&self) -> KeyId {
        self.key
    }
}

/// A running engine, ended with its data folder when dropped.
pub struct Engine {
    // Ended before its folder goes: fields are dropped in this order.
    process: Process,
    access: Access,
    folder: Temporary,
}

impl Engine {
    /// Starts an engine and makes its venue: one symbol, one account with ample balances, one key.
    ///
    /// # Errors
    /// If it does not start, with what it said.
    pub fn start(options: &EngineOptions) -> Result<Self> {
        Self::start_with(options, &[])
    }

    /// As [`start`](Self::start), with these settings too.
    ///
    /// # Errors
    /// As there.
    pub fn start_with(options: &EngineOptions, settings: &[String]) -> Result<Self> {
        let folder = Temporary::new(&options.scratch)?;
        let config = folder.path().join("venue.toml");
        fs::write(&config, VENUE)?;
        let mut arguments = arguments(folder.path(), &config, options.wait);
        arguments.extend(settings.iter().flat_map(|one| ["--set".into(), one.into()]));
        let executable = &options.executable;
        let (process, _) =
            Process::start("engine", executable, arguments, folder.path(), "engine ready")
                .with_context(|| executable.display().to_string())?;
        let Provisioned { key, secret } =
            Provisioned::make(folder.path(), "bench").with_context(|| process.said())?;
        let access = Access { folder: folder.path().to_owned(), key, secret, wait: options.wait };
        Ok(Self { process, access, folder })
    }

    /// Opens a trader's session.
    ///
    /// # Errors
    /// If the engine refuses it.
    pub fn trader(&self) -> Result<Client> {
        self.trader_over(None)
    }

    /// As [`trader`](Self::trader), over an endpoint other than shared memory.
    ///
    /// # Errors
    /// As there.
    pub fn trader_over(&self, endpoint: Option<Endpoint>) -> Result<Client> {
        self.access.trader_named("bench", endpoint)
    }

    /// How its clients get in, for other threads.
    #[must_use]
    pub const fn access(&self) -> &Access {
        &self.access
    }

    /// As [`trader`](Self::trader), with these `LOGON_*` bits.
    ///
    /// # Errors
    /// As there.
    pub fn trader_with(&self, flags: u8) -> Result<Client> {
        connect(&self.access.trading("bench", flags, SLOTS))
    }

    /// As [`Access::prompt_trader`].
    ///
    /// # Errors
    /// As there.
    pub fn prompt_trader(&self, name: &str, flags: u8) -> Result<Client> {
        self.access.prompt_trader(name, flags)
    }

    /// Makes another account with balances as ample and a key of its own, and gives the way in for its traders.
    ///
    /// # Errors
    /// If the engine refuses it, as it does a name that an account has.
    pub fn another_account(&self, name: &str) -> Result<Access> {
        let Provisioned { key, secret } = Provisioned::make(self.folder.path(), name)?;
        Ok(Access { key, secret, ..self.access.clone() })
    }

    /// Opens an adapter's session of the cold lane, by which records are written.
    ///
    /// # Errors
    /// If the engine refuses it.
    pub fn adapter(&self) -> Result<Client> {
        let mut options = session(self.folder.path(), Role::Adapter, Lane::Cold, "bench-records");
        options.request_slots = SLOTS;
        options.reply_slots = SLOTS;
        options.wait = self.access.wait;
        Ok(Client::connect(&options)?)
    }

    /// The trader's key, to be named in commands.
    #[must_use]
    pub const fn key(&self) -> KeyId {
        self.access.key
    }

    /// Halts the process (it takes no CPU) until [`resume`](Self::resume).
    ///
    /// # Errors
    /// If the system refuses.
    pub fn pause(&self) -> Result<()> {
        self.process.signal(Signal::STOP)
    }

    /// Lets a paused process go on.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn resume(&self) -> Result<()> {
        self.process.signal(Signal::CONT)
    }

    /// Ends the engine the way an operator does, and waits for it.
    ///
    /// # Errors
    /// If it does not end in time, or not with success.
    pub fn stop(self) -> Result<()> {
        self.process.stop()
    }
}

fn data_folder(folder: &Path) -> PathBuf {
    folder.join("data")
}

fn arguments(folder: &Path, config: &Path, wait: WaitStrategy) -> Vec<OsString> {
    let wait = match wait {
        WaitStrategy::Spin => "engine.wait=spin",
        WaitStrategy::Adaptive => "engine.wait=adaptive",
    };
    let mut arguments: Vec<OsString> = vec!["engine".into(), "--data".into()];
    arguments.push(data_folder(folder).into());
    arguments.extend(["--config".into(), config.into(), "--set".into(), wait.into()]);
    arguments
}

fn session(folder: &Path, role: Role, lane: Lane, name: &str) -> ClientOptions {
    let name = Name::new(name).expect("session names here are short");
    ClientOptions::new(data_folder(folder).join(SOCKET_NAME), role, lane, name)
}

/// Opens a session that is granted all that it asks for: else another kind would be measured than is named.
fn connect(options: &ClientOptions) -> Result<Client> {
    let client = Client::connect(options)?;
    let (asked, granted) = (options.flags, client.flags());
    anyhow::ensure!(granted == asked, "of flags {asked:#04x} the engine knows {granted:#04x}");
    Ok(client)
}

/// What an admin session made.
struct Provisioned {
    key: KeyId,
    secret: Secret,
}

impl Provisioned {
    fn make(folder: &Path, name: &str) -> Result<Self> {
        let options = session(folder, Role::Admin, Lane::Cold, "bench-admin");
        let mut admin = Client::connect(&options)?;
        let account = call(
            &mut admin,
            CreateAccount {
                name: Name::new(name).context("an account's name")?,
                flags: ACCOUNT_CAN_TRADE,
                permissions: PERMISSION_SPOT,
                ..Default::default()
            },
        )?;
        let account = AccountId(u32::try_from(account).context("account number")?);
        for asset in [AssetId(0), AssetId(1)] {
            call(&mut admin, Deposit { account, asset, amount: BALANCE, ..Default::default() })?;
        }
        let permissions = KEY_BINARY | KEY_TRADE | KEY_MARKET_DATA;
        let key = call(&mut admin, CreateKey { account, permissions, ..Default::default() })?;
        let master = MasterKey::load(&data_folder(folder).join("master.key"))?;
        Ok(Self { key: KeyId(key), secret: master.secret(KeyId(key)).into() })
    }
}

/// Carries out one admin command and gives the number of what it made.
fn call<C: ClientCommand + Message>(admin: &mut Client, mut command: C) -> Result<u64> {
    let reply = admin.call(&mut command, CALL_LIMIT).context(C::NAME)?;
    match reply.event.event()? {
        Event::Done(done) => Ok(done.id),
        other => bail!("the engine answered {} with {}", C::NAME, other.name()),
    }
}
