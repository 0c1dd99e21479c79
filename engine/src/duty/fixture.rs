//! A duty thread of an empty venue, or of a defined one, as the tests of this crate have it: over a log that they open.

use super::{Duty, DutyOptions};
use crate::clock::{Clock, LastTime, SystemTime};
use crate::config::{EngineConfig, EngineSection};
use crate::gateway::{self, Mail};
use crate::genesis::Genesis;
use crate::log::LogWriter;
use std::sync::Arc;
use touchline_core::Core;
use touchline_protocol::ring::SessionEnd;
use touchline_protocol::units::Sequence;

/// Of a venue without anything; with the gateway's mail, and its end of the streams' rings.
pub(crate) fn empty(writer: LogWriter, settings: EngineSection) -> (Duty, Arc<Mail>, SessionEnd) {
    let (mail, rings) = gateway::mail().unwrap();
    let duty = Duty::new(DutyOptions {
        core: Core::new(),
        writer,
        clock: Clock::start(SystemTime, LastTime::default(), false).unwrap(),
        mail: Arc::clone(&mail),
        streams: rings.duty,
        stop: Arc::default(),
        settings,
    });
    (duty, mail, rings.gateway)
}

/// The same of the venue that is defined.
pub(crate) fn defined(writer: LogWriter, config: &EngineConfig) -> (Duty, Arc<Mail>, SessionEnd) {
    let (mut duty, mail, streams) = empty(writer, config.engine.clone());
    for command in Genesis::new(config).unwrap().remaining(Sequence(0)) {
        duty.own_command(command).unwrap();
    }
    (duty, mail, streams)
}
