//! The model: sessions and their connections, and what ends with them.

use crate::decide::{ADAPTER, ADMIN, COLD, HOT, TRADER};
use crate::state::{Asked, Key, Model, Outcome, Session, Sweep, Whose, check, check_detail};
use crate::venue::Owned;
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::RejectReason as Why;
use touchline_protocol::message::event::*;
use touchline_protocol::units::*;

impl Model {
    pub(crate) fn engine_started(&mut self, _: &EngineStarted) -> Outcome {
        for session in &mut self.sessions {
            session.connected = false;
        }
        Ok(vec![Owned::Done(Done::default())])
    }

    /// A session's first or next connection. An older one ends first, with its orders if it asked so.
    pub(crate) fn logon(&mut self, m: &Logon) -> Outcome {
        let key = m.command.key_id.0;
        let local = m.role == ADMIN || m.role == ADAPTER;
        check(matches!(m.role, TRADER..=ADAPTER), Why::RoleNotPermitted)?;
        check(m.lane == HOT || m.lane == COLD, Why::RoleNotPermitted)?;
        check_detail(!m.name.is_empty(), Why::InvalidDefinition, 0)?;
        let cancel_on_disconnect = m.flags == LOGON_CANCEL_ON_DISCONNECT;
        let may_ask = self.rules > 1 && m.role == TRADER;
        check(m.flags == 0 || cancel_on_disconnect && may_ask, Why::UnsupportedCombination)?;
        check(!local || key == 0, Why::RoleNotPermitted)?;
        let account = if local { 0 } else { self.account_of(key)? };
        let mut all = self.sessions.iter();
        let known = all.position(|session| session.key == key && session.name == m.name);
        let at = known.unwrap_or_else(|| {
            self.sessions.push(Session {
                name: m.name,
                key,
                role: m.role,
                lane: m.lane,
                epoch: 0,
                connected: false,
                cancel_on_disconnect: false,
                last: 0,
            });
            self.sessions.len() - 1
        });
        // Who comes back after a start of the engine has no connection to end, and keeps what it has.
        let connected = self.sessions[at].connected;
        let mut events = if connected { self.end_connection(at) } else { Vec::new() };
        // The new connection does not wait for the sweep.
        events.retain(|event| !matches!(event, Owned::Continues(_)));
        let session = &mut self.sessions[at];
        let same = session.role == m.role && session.lane == m.lane;
        check(same, Why::RoleNotPermitted)?;
        session.epoch += 1;
        session.connected = true;
        session.cancel_on_disconnect = cancel_on_disconnect;
        events.push(Owned::Started(SessionStarted {
            session: SessionId(at as u32 + 1),
            epoch: Epoch(session.epoch),
            last_sequence: Sequence(session.last),
            key_id: KeyId(key),
            account: AccountId(account),
            role: m.role,
            lane: m.lane,
            ..Default::default()
        }));
        Ok(events)
    }

    /// The account of a key that may log on.
    fn account_of(&self, key: u64) -> Result<u32, crate::state::Rejection> {
        let key = self.keys.get((key as usize).wrapping_sub(1));
        let key = key.filter(|key| !key.revoked).ok_or((Why::UnknownKey, 0))?;
        check(key.permissions & KEY_BINARY != 0, Why::KeyNotPermitted)?;
        Ok(key.account)
    }

    /// Of the present epoch only; a session that is not connected since a start has one to end if it
    /// asked for the cancels.
    pub(crate) fn connection_ended(&mut self, m: &ConnectionEnded) -> Outcome {
        let at = (m.ended_session.0 as usize).wrapping_sub(1);
        let session = self.sessions.get(at).ok_or((Why::UnknownSession, 0))?;
        let alive = session.connected || session.cancel_on_disconnect;
        check(alive && session.epoch == m.ended_epoch.0, Why::StaleEpoch)?;
        Ok(self.end_connection(at))
    }

    /// Ends a session's connection, and the orders that it placed if it asked for that.
    fn end_connection(&mut self, at: usize) -> Vec<Owned> {
        let mut events = vec![self.connection_over(at)];
        let asked = std::mem::take(&mut self.sessions[at].cancel_on_disconnect);
        if asked {
            self.note("a connection's end sweeps");
            let sweep = self.sweep_of(self.sessions[at].key, vec![at as u32 + 1]);
            events.extend(self.sweep(sweep));
        }
        events
    }

    fn connection_over(&mut self, at: usize) -> Owned {
        let session = &mut self.sessions[at];
        session.connected = false;
        Owned::Ended(SessionEnded {
            session: SessionId(at as u32 + 1),
            epoch: Epoch(session.epoch),
            ..Default::default()
        })
    }

    fn sweep_of(&self, key: u64, sessions: Vec<u32>) -> Sweep {
        let account = self.keys[key as usize - 1].account;
        Sweep::new(Whose::Sessions { account, sessions }, None, Asked::default())
    }

    pub(crate) fn create_key(&mut self, m: &CreateKey) -> Outcome {
        check((m.account.0 as usize) < self.accounts.len(), Why::UnknownAccount)?;
        check_detail(m.permissions & !KEY_ALL == 0, Why::InvalidDefinition, 1)?;
        let (account, permissions) = (m.account.0, m.permissions);
        self.keys.push(Key { account, permissions, revoked: false });
        Ok(vec![Owned::Done(Done { id: self.keys.len() as u64, ..Default::default() })])
    }

    /// The key is of no use any more, and its sessions' connections end.
    pub(crate) fn revoke_key(&mut self, m: &RevokeKey) -> Outcome {
        let key = self.keys.get_mut((m.key.0 as usize).wrapping_sub(1));
        let key = key.filter(|key| !key.revoked).ok_or((Why::UnknownKey, 0))?;
        key.revoked = true;
        let mut events = Vec::new();
        let mut asked = Vec::new();
        // The youngest session first.
        for at in (0..self.sessions.len()).rev() {
            if self.sessions[at].key != m.key.0 {
                continue;
            }
            if self.sessions[at].connected {
                events.push(self.connection_over(at));
            }
            self.sessions[at].epoch += 1;
            if std::mem::take(&mut self.sessions[at].cancel_on_disconnect) {
                asked.push(at as u32 + 1);
            }
        }
        if !asked.is_empty() {
            let sweep = self.sweep_of(m.key.0, asked).urgent();
            events.extend(self.sweep(sweep));
            // The revocation does not wait for the sweep.
            events.retain(|event| !matches!(event, Owned::Continues(_)));
        }
        events.push(Owned::Done(Done { id: m.key.0, ..Default::default() }));
        Ok(events)
    }
}
