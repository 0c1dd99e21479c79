//! A duty thread without its process: a real log in a folder, a venue defined in it, and sessions
//! whose client ends are the test's. Called by the tests of the duty thread, which make its turns.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use touchline_core::Core;
use touchline_engine::clock::{Clock, LastTime, SystemTime};
use touchline_engine::config::EngineConfig;
use touchline_engine::duty::{Duty, DutyOptions};
use touchline_engine::gateway::{self, Mail};
use touchline_engine::genesis::Genesis;
use touchline_engine::log::{self, Environment, Log, LogOptions, LogWriter, WindowPlace};
use touchline_engine::mailbox::{Asked, FromDuty, LogonLetter, LogonRequest, ToDuty, Wishes};
use touchline_engine::recovery::NothingToReplay;
use touchline_protocol::message::command::Logon;
use touchline_protocol::message::enums::RejectReason;
use touchline_protocol::message::event::SessionStarted;
use touchline_protocol::ring::{RingCapacities, SessionEnd};

/// Bytes of the live window.
pub(crate) const WINDOW_BYTES: u64 = 16 << 20;

/// A new log in the folder `data`, its live window in there too: 16 MiB over segments of 4 MiB. What
/// nobody waits for on disk is gathered for so long.
pub(crate) fn open_log(environment: &Environment, data: &Path, gather: Duration) -> Log {
    let options = LogOptions {
        data: data.to_owned(),
        window_place: WindowPlace::Data,
        window_bytes: Some(WINDOW_BYTES),
        segment_bytes: 4 << 20,
        gather,
        write_interval: Duration::ZERO,
        accept_loss: false,
    };
    log::open_in(environment, &options, &mut NothingToReplay, &mut |_| {}).unwrap()
}

/// A duty thread's state, and the gateway's end of its mail.
pub(crate) struct DutyBench {
    pub(crate) duty: Duty,
    pub(crate) mail: Arc<Mail>,
    /// The gateway's end of the rings of stream sessions.
    #[allow(dead_code, reason = "not every test has stream sessions")]
    pub(crate) streams: SessionEnd,
    /// What the sessions that log on ask for.
    pub(crate) wishes: Wishes,
}

impl DutyBench {
    /// Defines the venue of `venue` (a `venue.toml`) in a new log: what `core`, which an earlier engine
    /// may have left, does not have yet. `stop` ends [`Duty::run`].
    pub(crate) fn new(writer: LogWriter, core: Core, venue: &str, stop: &Arc<AtomicBool>) -> Self {
        let config: EngineConfig = toml::from_str(venue).unwrap();
        let (mail, rings) = gateway::mail().unwrap();
        let done = core.engine_sequence();
        let mut duty = Duty::new(DutyOptions {
            core,
            writer,
            clock: Clock::start(SystemTime, LastTime::default(), false).unwrap(),
            mail: Arc::clone(&mail),
            streams: rings.duty,
            stop: Arc::clone(stop),
            settings: config.engine.clone(),
        });
        for command in Genesis::new(&config).unwrap().remaining(done) {
            duty.own_command(command).unwrap();
        }
        Self { duty, mail, streams: rings.gateway, wishes: Wishes::default() }
    }

    /// Opens a session as the gateway does for a peer that proved who it is, and makes one turn. Gives
    /// the client's end, or why the logon was refused. No other letter of the duty thread may wait.
    pub(crate) fn log_on(
        &mut self,
        logon: Logon,
        capacities: RingCapacities,
    ) -> Result<(SessionEnd, SessionStarted), RejectReason> {
        let (end, descriptors) = SessionEnd::create(capacities).unwrap();
        let client = SessionEnd::attach(&descriptors, capacities).unwrap();
        self.open(logon, Some(Box::new(end))).map(|started| (client, started))
    }

    /// As [`DutyBench::log_on`], for a session over a socket.
    #[allow(dead_code, reason = "not every test has stream sessions")]
    pub(crate) fn log_on_stream(&mut self, logon: Logon) -> Result<SessionStarted, RejectReason> {
        self.open(logon, None)
    }

    fn open(
        &mut self,
        logon: Logon,
        end: Option<Box<SessionEnd>>,
    ) -> Result<SessionStarted, RejectReason> {
        let (logon, wishes) = (Box::new(logon), self.wishes);
        let asked = Asked::new(LogonRequest { logon, end, wishes });
        self.mail.to_duty.put(ToDuty::Logon(LogonLetter { ticket: 1, asked }));
        self.duty.turn();
        loop {
            match self.mail.from_duty.take() {
                Some(FromDuty::Opened { started, .. }) => return Ok(started),
                Some(FromDuty::Refused { reason, .. }) => return Err(reason),
                // The session's older connection, which the logon replaced.
                Some(FromDuty::Closed { .. }) => {}
                None => panic!("a logon without an answer"),
            }
        }
    }
}
