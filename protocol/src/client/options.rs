//! Options of a session that an engine would refuse as an invalid Hello, which does not say which of them it
//! was: found before anything is dialled. Called by [`super::connect`].

use super::{ClientOptions, Endpoint};
use crate::message::command::LOGON_OF_SESSIONS;
use crate::message::enums::{Lane, Role};
use crate::message::handshake::HEARTBEAT_SECONDS_MAX;
use crate::ring::{CapacityError, RingCapacities};
use crate::units::KeyId;
use thiserror::Error;

/// An option that cannot be, or does not go together with another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum OptionsError {
    /// Every session has one.
    #[error("the session has no name")]
    NoName,
    /// Traders and readers prove who they are, by a key whose number is not 0.
    #[error("role {0:?} needs a key")]
    NoKey(Role),
    /// Operators are the engine's own user.
    #[error("role {0:?} goes without a key")]
    Key(Role),
    /// Nothing that a trader or reader sends belongs there.
    #[error("role {0:?} has no cold lane")]
    ColdLane(Role),
    /// Bits that name nothing that a session may ask for; the feed is read by a reader of its own.
    #[error("no session may ask for flags {0:#04x}")]
    Flags(u8),
    /// Such a silence is no sign of life.
    #[error(
        "heartbeats every {0} s: at most {HEARTBEAT_SECONDS_MAX}, or 0 for the engine's setting, in shared memory none"
    )]
    Heartbeats(u8),
    /// Nothing is answered in no time.
    #[error("no time for the handshake")]
    NoTime,
    /// No ring of a session has so many slots.
    #[error("{ring}: {source}")]
    Slots {
        /// The option.
        ring: &'static str,
        /// What was asked for.
        source: CapacityError,
    },
}

impl ClientOptions {
    /// # Errors
    /// The first option that no engine takes.
    pub(super) fn check(&self) -> Result<(), OptionsError> {
        let has_key = self.role.has_key();
        if self.name.is_empty() {
            return Err(OptionsError::NoName);
        }
        match &self.key {
            None | Some((KeyId(0), _)) if has_key => return Err(OptionsError::NoKey(self.role)),
            Some(_) if !has_key => return Err(OptionsError::Key(self.role)),
            _ => {}
        }
        if has_key && self.lane == Lane::Cold {
            return Err(OptionsError::ColdLane(self.role));
        }
        let unknown = self.flags & !LOGON_OF_SESSIONS;
        if unknown != 0 {
            return Err(OptionsError::Flags(unknown));
        }
        if self.handshake_timeout.is_zero() {
            return Err(OptionsError::NoTime);
        }
        if matches!(self.endpoint, Endpoint::SharedMemory(_)) {
            let rings = [("request_slots", self.request_slots), ("reply_slots", self.reply_slots)];
            for (ring, slots) in rings {
                let checked = RingCapacities::new(slots as usize, slots as usize);
                checked.map_err(|source| OptionsError::Slots { ring, source })?;
            }
        }
        if self.heartbeat_seconds > HEARTBEAT_SECONDS_MAX {
            return Err(OptionsError::Heartbeats(self.heartbeat_seconds));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Client, ConnectError};
    use crate::message::command::LOGON_FEED;
    use crate::text::Name;
    use std::path::PathBuf;
    use std::time::Duration;

    #[test]
    fn what_no_engine_takes_is_told_before_anything_is_dialled() {
        let folder = tempfile::tempdir().unwrap();
        let nobody: PathBuf = folder.path().join("engine.sock");
        let stream = Endpoint::Unix(nobody.clone());
        let name = Name::new("client").unwrap();
        let key = Some((KeyId(7), "secret".to_owned().into()));
        let trader = ClientOptions::new(nobody.clone(), Role::Trader, Lane::Hot, name);
        let trader = ClientOptions { key: key.clone(), flags: LOGON_OF_SESSIONS, ..trader };
        let admin = ClientOptions::new(nobody, Role::Admin, Lane::Cold, name);
        let streamed = ClientOptions { endpoint: stream, ..trader.clone() };
        let slots = |ring, slots| {
            let source = CapacityError { slots, least: 1024, most: 16_384 };
            OptionsError::Slots { ring, source }
        };
        let nobodys = Some((KeyId(0), "secret".to_owned().into()));
        let cases = [
            (ClientOptions { name: Name::new("").unwrap(), ..admin.clone() }, OptionsError::NoName),
            (ClientOptions { key: None, ..trader.clone() }, OptionsError::NoKey(Role::Trader)),
            (ClientOptions { key: nobodys, ..trader.clone() }, OptionsError::NoKey(Role::Trader)),
            (
                ClientOptions { key: None, role: Role::ReadOnly, ..trader.clone() },
                OptionsError::NoKey(Role::ReadOnly),
            ),
            (ClientOptions { key, ..admin.clone() }, OptionsError::Key(Role::Admin)),
            (
                ClientOptions { lane: Lane::Cold, ..trader.clone() },
                OptionsError::ColdLane(Role::Trader),
            ),
            (ClientOptions { flags: LOGON_FEED | 1, ..trader.clone() }, OptionsError::Flags(128)),
            (ClientOptions { request_slots: 1000, ..trader.clone() }, slots("request_slots", 1000)),
            (ClientOptions { reply_slots: 32_768, ..trader.clone() }, slots("reply_slots", 32_768)),
            (
                ClientOptions { handshake_timeout: Duration::ZERO, ..trader.clone() },
                OptionsError::NoTime,
            ),
            (
                ClientOptions { heartbeat_seconds: 61, ..streamed.clone() },
                OptionsError::Heartbeats(61),
            ),
            (
                ClientOptions { heartbeat_seconds: 61, ..trader.clone() },
                OptionsError::Heartbeats(61),
            ),
        ];
        for (options, expected) in cases {
            match Client::connect(&options).map(|_| ()) {
                Err(ConnectError::Options(found)) => assert_eq!(found, expected),
                other => panic!("{other:?} in place of {expected:?}"),
            }
        }
        let most = ClientOptions { heartbeat_seconds: 60, request_slots: 1, ..streamed };
        let watched = ClientOptions { heartbeat_seconds: 60, ..trader.clone() };
        for options in [trader, admin, most, watched] {
            let outcome = Client::connect(&options).map(|_| ());
            assert!(matches!(outcome, Err(ConnectError::Connect { .. })), "{outcome:?}");
        }
    }
}
