//! A venue of a test's own: two symbols, three rich accounts with a key each (1, 2 and 3), and the
//! turns of its duty thread in the test's hands.

use super::breakable::Breakable;
use super::client::Client;
use crate::duty_bench::{DutyBench, WINDOW_BYTES, open_log};
use crate::patience::{LOOK_AGAIN, Wait, watch};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;
use tempfile::TempDir;
use touchline_core::Core;
use touchline_engine::log::{Control, Environment, KeeperHandle};
use touchline_engine::mailbox::{FromDuty, ToDuty};
use touchline_protocol::message::command::{
    Deposit, LOGON_ACCOUNT_EVENTS, LOGON_CANCEL_ON_DISCONNECT, Logon,
};
use touchline_protocol::message::enums::{Lane, RejectReason, Role};
use touchline_protocol::ring::RingCapacities;
use touchline_protocol::text::Name;
use touchline_protocol::units::{AccountId, AssetId, Epoch, KeyId, SessionId};

const DEFINITION: &str = r#"
[[assets]]
name = "BTC"
[[assets]]
name = "USDT"
[[symbols]]
name = "BTCUSDT"
base = "BTC"
quote = "USDT"
order_types = ["LIMIT", "MARKET", "STOP_LOSS", "STOP_LOSS_LIMIT", "LIMIT_MAKER"]
oco = true
iceberg = true
quote_quantity = true
[[symbols]]
name = "BTCUSD2"
base = "BTC"
quote = "USDT"
[[accounts]]
name = "A"
keys = 1
balances = { BTC = "10000000", USDT = "1000000000" }
[[accounts]]
name = "B"
keys = 1
balances = { BTC = "10000000", USDT = "1000000000" }
[[accounts]]
name = "C"
keys = 1
balances = { BTC = "10000000", USDT = "1000000000" }
"#;

/// Turns after which a duty thread that still works is taken to do so for ever.
const MANY_TURNS: u32 = 100_000;

/// A running log, a duty thread that turns when told to, and its folder.
pub(crate) struct Venue {
    pub(crate) bench: DutyBench,
    pub(crate) control: Control,
    pub(crate) disk: Breakable,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) keeper: KeeperHandle,
    pub(crate) folder: TempDir,
}

impl Deref for Venue {
    type Target = DutyBench;

    fn deref(&self) -> &DutyBench {
        &self.bench
    }
}

impl DerefMut for Venue {
    fn deref_mut(&mut self) -> &mut DutyBench {
        &mut self.bench
    }
}

impl Venue {
    /// A new venue with these keys of `[engine]`, and these of `[limits]` beside unlimited orders.
    pub(crate) fn new(engine: &str, limits: &str) -> Self {
        // An attest record would come between the transactions that a test looks at.
        Self::with_attest_after(engine, limits, Duration::from_secs(3600))
    }

    /// As [`Venue::new`]; the keeper asks for an attest record after so long a quiet.
    pub(crate) fn with_attest_after(engine: &str, limits: &str, attest_after: Duration) -> Self {
        Self::over((engine, limits), (attest_after, Duration::ZERO), |_| Core::new())
    }

    /// As [`Venue::new`], over the core that an earlier engine left, made from the venue's definition.
    pub(crate) fn left(engine: &str, core: impl FnOnce(&str) -> Core) -> Self {
        Self::over((engine, ""), (Duration::from_secs(3600), Duration::ZERO), core)
    }

    /// As [`Venue::new`]; what nobody waits for on disk is not written for so long.
    pub(crate) fn that_gathers(gather: Duration) -> Self {
        Self::over(("", ""), (Duration::from_secs(3600), gather), |_| Core::new())
    }

    fn over(
        (engine, limits): (&str, &str),
        (attest_after, gather): (Duration, Duration),
        core: impl FnOnce(&str) -> Core,
    ) -> Self {
        watch();
        let folder = tempfile::tempdir().unwrap();
        let disk = Breakable::default();
        let storage = Arc::new(disk.storage());
        let environment = Environment { storage, attest_after, ..Environment::default() };
        let log = open_log(&environment, folder.path(), gather);
        let stop = Arc::new(AtomicBool::new(false));
        let core = core(&definition(engine, limits));
        let bench = DutyBench::new(log.writer, core, &definition(engine, limits), &stop);
        Self { bench, control: log.control, disk, stop, keeper: log.keeper, folder }
    }

    /// Logs a session on, with rings of 1,024 request slots and so many reply slots.
    pub(crate) fn try_open(
        &mut self,
        name: &str,
        (role, lane, key): (Role, Lane, u64),
        reply_slots: usize,
    ) -> Result<Client, RejectReason> {
        self.log_on_as(name, (role, lane, key), 0, reply_slots)
    }

    /// As [`Venue::try_open`], with these `LOGON_*` bits.
    pub(crate) fn log_on_as(
        &mut self,
        name: &str,
        (role, lane, key): (Role, Lane, u64),
        flags: u8,
        reply_slots: usize,
    ) -> Result<Client, RejectReason> {
        let mut logon = Logon {
            name: Name::new(name).unwrap(),
            role: role.to_wire(),
            lane: lane.to_wire(),
            flags,
            ..Default::default()
        };
        logon.command.key_id = KeyId(key);
        let capacities = RingCapacities::new(1024, reply_slots).unwrap();
        self.log_on(logon, capacities).map(|(end, started)| Client::new(end, &started))
    }

    /// A trader with the largest reply ring.
    pub(crate) fn trader(&mut self, name: &str, key: u64) -> Client {
        self.try_open(name, (Role::Trader, Lane::Hot, key), 16_384).unwrap()
    }

    /// As [`Venue::trader`], its orders cancelled when its connection ends.
    pub(crate) fn trader_that_leaves_nothing(&mut self, name: &str, key: u64) -> Client {
        let flags = LOGON_CANCEL_ON_DISCONNECT;
        self.log_on_as(name, (Role::Trader, Lane::Hot, key), flags, 16_384).unwrap()
    }

    /// A read-only session that takes all events of its account.
    pub(crate) fn watcher(&mut self, name: &str, key: u64) -> Client {
        let flags = LOGON_ACCOUNT_EVENTS;
        self.log_on_as(name, (Role::ReadOnly, Lane::Hot, key), flags, 16_384).unwrap()
    }

    /// A session of the cold lane, with the largest reply ring.
    pub(crate) fn cold(&mut self, name: &str, role: Role) -> Client {
        self.try_open(name, (role, Lane::Cold, 0), 16_384).unwrap()
    }

    /// Ends a session as the gateway does when the client closes its socket.
    pub(crate) fn disconnect(&mut self, client: &Client) {
        self.end(client, false);
    }

    /// The same when the client stands still.
    pub(crate) fn end_silent(&mut self, client: &Client) {
        self.end(client, true);
    }

    fn end(&mut self, client: &Client, is_silent: bool) {
        let (session, epoch) = client.identity();
        self.mail.to_duty.put(ToDuty::Ended { session, epoch, is_silent });
    }

    /// Turns until there is nothing left to do.
    pub(crate) fn settle(&mut self) {
        let wait = Wait::begin();
        for _ in 0..MANY_TURNS {
            while self.duty.turn() == 0 {
                // On a slow disk a turn does nothing for want of room in the log.
                if self.control.appended().0 - self.control.durable().0 < WINDOW_BYTES / 2 {
                    return;
                }
                wait.go_on("the disk makes no room");
                thread::sleep(LOOK_AGAIN);
            }
        }
        panic!("the duty thread finds no end");
    }

    /// The connections that the duty thread has ended since the last look, and why.
    pub(crate) fn closed(&self) -> Vec<(SessionId, Epoch, String)> {
        let mut closed = Vec::new();
        while let Some(letter) = self.mail.from_duty.take() {
            match letter {
                FromDuty::Closed { session, epoch, why, .. } => closed.push((session, epoch, why)),
                _ => panic!("nobody logs on"),
            }
        }
        closed
    }
}

fn definition(engine: &str, limits: &str) -> String {
    let unlimited = "orders_per_interval_0 = 0\norders_per_interval_1 = 0";
    format!("[engine]\n{engine}\n[limits]\n{unlimited}\n{limits}\n{DEFINITION}")
}

/// A deposit of a whole unit of the first asset for account 1.
pub(crate) fn deposit() -> Deposit {
    Deposit { account: AccountId(1), asset: AssetId(0), amount: 100_000_000, ..Default::default() }
}
