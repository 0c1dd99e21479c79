//! Durable sessions: who may send what, and which command of theirs was decided last. Called on every
//! command, by logons, and by the end of connections.

use crate::hash::{Seed, StateHash};
use crate::pool::named;
use crate::rights::{Family, Rights};
use crate::table::Table;
use alloc::collections::TryReserveError;
use alloc::vec::Vec;
use touchline_protocol::message::enums::{Lane, Role};
use touchline_protocol::text::Name;
use touchline_protocol::units::{Epoch, KeyId, Sequence, SessionId};

/// One session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Session {
    pub(crate) last_sequence: Sequence,
    pub(crate) key_id: KeyId,
    pub(crate) epoch: Epoch,
    pub(crate) role: Role,
    pub(crate) lane: Lane,
    /// Those of its role and lane.
    pub(crate) rights: Rights,
    pub(crate) connected: bool,
    pub(crate) cancel_on_disconnect: bool,
    /// It takes all events of its account, as long as it is connected.
    pub(crate) account_events: bool,
    /// Its key was revoked while it asked for that: the revocation's sweep is about its orders.
    pub(crate) is_swept_with_key: bool,
    /// Index of the session that the same key opened before this one.
    pub(crate) previous_of_key: u32,
    pub(crate) name: Name,
}

impl Session {
    /// True when it may send commands of a family that name this key.
    #[inline(always)]
    pub(crate) fn may_send(&self, family: Family, key_id: KeyId) -> bool {
        self.rights.have(family) && (key_id == self.key_id || self.rights.names_any_key)
    }
}

/// All sessions; numbers count from 1, since 0 is the engine.
#[derive(Debug)]
pub(crate) struct Sessions {
    pub(crate) list: Vec<Session>,
    by_name: Table,
    seed: Seed,
}

impl Sessions {
    pub(crate) const fn new(seed: Seed) -> Self {
        Self { list: Vec::new(), by_name: Table::new(), seed }
    }

    pub(crate) fn try_grow(&mut self, capacity: u32) -> Result<(), TryReserveError> {
        self.list.try_reserve_exact((capacity as usize).saturating_sub(self.list.len()))?;
        self.by_name.try_grow(capacity)
    }

    pub(crate) const fn len(&self) -> u32 {
        self.list.len() as u32
    }

    #[inline(always)]
    pub(crate) fn get(&self, id: SessionId) -> Option<&Session> {
        self.list.get((id.0 as usize).checked_sub(1)?)
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self, id: SessionId) -> Option<&mut Session> {
        self.list.get_mut((id.0 as usize).checked_sub(1)?)
    }

    /// The session of a key (0: of the local user) by name.
    pub(crate) fn find(&self, key_id: KeyId, name: &Name) -> Option<SessionId> {
        self.by_name
            .find(self.seed.text(key_id.0, name), |at| {
                let session = &self.list[at as usize];
                session.key_id == key_id && session.name == *name
            })
            .map(|at| SessionId(at + 1))
    }

    /// Indices of a key's sessions, from the one that it opened last on.
    pub(crate) fn of_key(&self, last: u32) -> impl Iterator<Item = u32> {
        core::iter::successors(named(last), |&at| named(self.list[at as usize].previous_of_key))
    }

    /// Adds a session of a new key and name; the caller has checked the limit.
    pub(crate) fn add(&mut self, session: Session) -> SessionId {
        let at = self.len();
        self.by_name.insert(self.seed.text(session.key_id.0, &session.name), at);
        self.list.push(session);
        SessionId(at + 1)
    }

    pub(crate) fn hash(&self, hash: &mut StateHash) {
        hash.word(u64::from(self.len()));
        for session in &self.list {
            hash.text(&session.name);
            hash.word(session.key_id.0);
            hash.word(session.last_sequence.0);
            let bits = [
                session.role.to_wire(),
                session.lane.to_wire(),
                session.connected.into(),
                u8::from(session.cancel_on_disconnect)
                    | u8::from(session.is_swept_with_key) << 1
                    | u8::from(session.account_events) << 2,
            ];
            hash.pair(session.epoch.0, u32::from_le_bytes(bits));
        }
    }
}
