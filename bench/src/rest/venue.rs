//! An engine and an adapter on a data folder of their own, made for many small trades at one price.
//! Called by [`super::run`].

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use touchline_adapter::front::FrontKind;
use touchline_protocol::credentials::MasterKey;
use touchline_protocol::units::KeyId;

use super::orders::Orders;
use super::{RestOptions, Subject};
use crate::process::Process;

/// One symbol and two accounts with a key each, without limits on rates and open orders.
const VENUE: &str = r#"
[limits]
orders_per_interval_0 = 0
orders_per_interval_1 = 0

[adapter]
request_weight_per_minute = 1000000000
raw_requests_per_5_minutes = 1000000000
connections = 100000

[[assets]]
name = "BASE"

[[assets]]
name = "QUOTE"

[[symbols]]
name = "BASEQUOTE"
base = "BASE"
quote = "QUOTE"
price_min = "0.01"
price_max = "1000000"
tick_size = "0.01"
lot_min = "0.0001"
lot_max = "1000"
lot_step = "0.0001"
min_notional = "1"

[[accounts]]
name = "A"
keys = 1
maker_rate = "0.001"
taker_rate = "0.001"
balances = { BASE = "1000000000", QUOTE = "1000000000" }

[[accounts]]
name = "B"
keys = 1
maker_rate = "0.001"
taker_rate = "0.001"
balances = { BASE = "1000000000", QUOTE = "1000000000" }
"#;

/// Numbers of the two accounts' keys.
const KEYS: [KeyId; 2] = [KeyId(1), KeyId(2)];

/// Both processes. The adapter is dropped first.
pub(super) struct Venue {
    adapter: Process,
    engine: Process,
    address: SocketAddr,
    data: PathBuf,
}

impl Venue {
    /// Starts both with `acknowledge` as the adapter's level, in a folder of level and front.
    pub(super) fn start(
        options: &RestOptions,
        folder: &Path,
        acknowledge: &str,
        front: FrontKind,
    ) -> Result<Self> {
        let front = front.name();
        let folder = folder.join(format!("{acknowledge}-{front}"));
        fs::create_dir(&folder)?;
        let config = folder.join("venue.toml");
        fs::write(&config, VENUE)?;
        let data = folder.join("data");
        let arguments = |command: &str, more: &[&str]| {
            let mut all = vec![command.into(), "--data".into(), data.clone().into_os_string()];
            all.extend(["--config".into(), config.clone().into_os_string()]);
            all.extend(more.iter().map(Into::into));
            all
        };
        let executable = &options.executable;
        let (engine, _) = Process::start(
            "engine",
            executable,
            arguments("engine", &[]),
            &folder,
            "engine ready",
        )?;
        let level = format!("adapter.acknowledge={acknowledge}");
        let (adapter, address) = Process::start(
            "adapter",
            executable,
            arguments("adapter", &["--http", "127.0.0.1:0", "--set", &level, "--front", front]),
            &folder,
            "adapter ready http=",
        )?;
        let address = address.parse().with_context(|| format!("address {address:?}"))?;
        Ok(Self { adapter, engine, address, data })
    }

    /// Orders of both accounts, none sent yet.
    pub(super) fn orders(&self) -> Result<Orders> {
        let master = MasterKey::load(&self.data.join("master.key"))?;
        Ok(Orders::new(KEYS.map(|key| (master.api_key(key), master.secret(key)))))
    }

    pub(super) fn subject(&self) -> Result<Subject> {
        Ok(Subject {
            address: self.address,
            pid: self.adapter.id(),
            orders: self.orders()?,
            has_log: true,
        })
    }

    pub(super) fn stop(self) -> Result<()> {
        self.adapter.stop()?;
        self.engine.stop()
    }
}
