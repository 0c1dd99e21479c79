//! Sessions: logons, the end of connections, starts of the engine, revoked keys.
//!
//! From rules version 2 on a trader may ask with its logon that its open orders be cancelled when its
//! connection ends. That is a sweep; where the command has a terminal event of its own (a logon, a
//! revocation) nobody waits for the sweep. And whoever has a key may ask to be told of all that happens to
//! the orders of its account; that ends with the connection.

use super::{Context, Reject};
use crate::Core;
use crate::keys::Key;
use crate::limits::{SESSIONS_PER_KEY_MAX, number, sessions_kept_back};
use crate::outbox::Outbox;
use crate::pending::{Sweep, Waiter, Whose};
use crate::pool::{NONE, named};
use crate::rights::Rights;
use crate::sessions::Session;
use touchline_protocol::message::command::{
    ConnectionEnded, EVERY, KEY_BINARY, LOGON_ACCOUNT_EVENTS, LOGON_CANCEL_ON_DISCONNECT, Logon,
    RevokeKey,
};
use touchline_protocol::message::enums::{Lane, RejectReason, Role};
use touchline_protocol::message::event::{Done, SessionEnded, SessionStarted};
use touchline_protocol::units::{AccountId, Epoch, KeyId, Sequence, SessionId, SymbolId};

impl Core {
    /// Opens a session or reopens it; the older connection, if any, ends by it.
    pub(super) fn logon(
        &mut self,
        context: &Context,
        message: &Logon,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Reject> {
        let role = Role::from_wire(message.role).ok_or(RejectReason::RoleNotPermitted)?;
        let lane = Lane::from_wire(message.lane).ok_or(RejectReason::RoleNotPermitted)?;
        let cancels = message.flags & LOGON_CANCEL_ON_DISCONNECT != 0;
        let watches = message.flags & LOGON_ACCOUNT_EVENTS != 0;
        let has_key = role.has_key();
        if message.flags & !(LOGON_CANCEL_ON_DISCONNECT | LOGON_ACCOUNT_EVENTS) != 0
            || message.flags != 0 && self.rules < 2
            || cancels && role != Role::Trader
            || watches && !has_key
        {
            return Err(RejectReason::UnsupportedCombination.into());
        }
        if message.name.is_empty() {
            return Err(Reject::with(RejectReason::InvalidDefinition, 0));
        }
        let key_id = message.command.key_id;
        let account = self.logon_account(role, key_id)?;
        let id = match self.sessions.find(key_id, &message.name) {
            Some(id) => {
                self.check_reopening(id, role, lane)?;
                self.check_end_of_older(context, id)?;
                id
            }
            None => self.open_session(message, role, lane)?,
        };
        self.end_older(context, id, outbox);
        self.set_account_events(id, watches);
        let session = self.sessions.get_mut(id).expect("found or just opened");
        session.epoch.0 += 1;
        session.connected = true;
        session.cancel_on_disconnect = cancels;
        outbox.push(&SessionStarted {
            session: id,
            epoch: session.epoch,
            last_sequence: session.last_sequence,
            key_id,
            account,
            role: role.to_wire(),
            lane: lane.to_wire(),
            ..Default::default()
        });
        Ok(())
    }

    /// Lets a session that has a key take all events of its account, or no longer.
    fn set_account_events(&mut self, id: SessionId, takes: bool) {
        let session = self.sessions.get_mut(id).expect("the caller has it");
        if session.account_events == takes {
            return;
        }
        session.account_events = takes;
        let key = self.keys.get(session.key_id).expect("only who has a key may ask");
        if takes {
            self.accounts.watch(key.account);
        } else {
            self.accounts.unwatch(key.account);
        }
    }

    /// Room for what the end of a session's older connection sweeps.
    fn check_end_of_older(&self, context: &Context, id: SessionId) -> Result<(), Reject> {
        let is_connected = self.sessions.get(id).is_some_and(|session| session.connected);
        match self.sweep_of_session(context, id) {
            Some(sweep) if is_connected => self.check_sweep(&sweep),
            _ => Ok(()),
        }
    }

    /// The end of a session's older connection, if it has one.
    fn end_older(&mut self, context: &Context, id: SessionId, outbox: &mut Outbox<'_>) {
        let session = self.sessions.get(id).expect("found or just opened");
        if !session.connected {
            return;
        }
        outbox.push(&SessionEnded { session: id, epoch: session.epoch, ..Default::default() });
        if let Some(sweep) = self.sweep_of_session(context, id) {
            let (sweep, is_done) = self.try_sweep(sweep, outbox);
            if is_done {
                self.report_sweep(&sweep, true, outbox);
            }
        }
    }

    /// What the end of a session's connection sweeps.
    fn sweep_of_session(&self, context: &Context, id: SessionId) -> Option<Sweep> {
        let session = self.sessions.get(id).filter(|session| session.cancel_on_disconnect)?;
        let account = self.keys.get(session.key_id)?.account;
        let whose = Whose::Session(account, id);
        Some(Sweep::new(whose, SymbolId(EVERY), context.position, Waiter::NOBODY))
    }

    /// The account that a logon's key acts for; roles of the local user have no key.
    fn logon_account(&self, role: Role, key_id: KeyId) -> Result<AccountId, Reject> {
        match role {
            Role::Trader | Role::ReadOnly => {
                let key = self.keys.live(key_id).ok_or(RejectReason::UnknownKey)?;
                if key.permissions & KEY_BINARY == 0 {
                    return Err(RejectReason::KeyNotPermitted.into());
                }
                Ok(key.account)
            }
            Role::Admin | Role::Adapter if key_id == KeyId(0) => Ok(AccountId(0)),
            Role::Admin | Role::Adapter => Err(RejectReason::RoleNotPermitted.into()),
        }
    }

    fn check_reopening(&self, id: SessionId, role: Role, lane: Lane) -> Result<(), Reject> {
        let session = self.sessions.get(id).expect("found by name");
        if (session.role, session.lane) != (role, lane) {
            return Err(RejectReason::RoleNotPermitted.into());
        }
        if session.epoch.0 == u32::MAX {
            return Err(RejectReason::Overflow.into());
        }
        Ok(())
    }

    /// Makes a session that has never been connected; the last thing of a logon that can fail.
    fn open_session(
        &mut self,
        message: &Logon,
        role: Role,
        lane: Lane,
    ) -> Result<SessionId, Reject> {
        let key_id = message.command.key_id;
        let key = self.keys.live_mut(key_id);
        let of_key = key.as_ref().map_or(0, |key| key.sessions);
        // What is kept back lets admin and adapter in however many sessions the keys have opened.
        let kept_back = sessions_kept_back(self.limits.sessions, key_id);
        if self.sessions.len() + kept_back >= self.limits.sessions || of_key >= SESSIONS_PER_KEY_MAX
        {
            return Err(Reject::with(RejectReason::CapacityReached, number::SESSIONS));
        }
        let mut previous_of_key = NONE;
        if let Some(key) = key {
            previous_of_key = core::mem::replace(&mut key.last_session, self.sessions.len());
            key.sessions += 1;
        }
        Ok(self.sessions.add(Session {
            last_sequence: Sequence(0),
            key_id,
            epoch: Epoch(0),
            role,
            lane,
            rights: Rights::of(role, lane),
            connected: false,
            cancel_on_disconnect: false,
            account_events: false,
            is_swept_with_key: false,
            previous_of_key,
            name: message.name,
        }))
    }

    /// A connection's end; of an older connection it is no news. One that a start of the engine has
    /// ended already is still to be reported if it leaves orders to cancel.
    pub(super) fn connection_ended(
        &mut self,
        context: &Context,
        message: &ConnectionEnded,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Reject> {
        let (id, epoch) = (message.ended_session, message.ended_epoch);
        let session = self.sessions.get(id).ok_or(RejectReason::UnknownSession)?;
        if session.epoch != epoch || !session.connected && !session.cancel_on_disconnect {
            return Err(RejectReason::StaleEpoch.into());
        }
        let sweep = self.sweep_of_session(context, id);
        if let Some(sweep) = &sweep {
            self.check_sweep(sweep)?;
        }
        outbox.push(&SessionEnded { session: id, epoch, ..Default::default() });
        if let Some(sweep) = sweep {
            self.begin_sweep(sweep, outbox);
        }
        let session = self.sessions.get_mut(id).expect("found above");
        session.connected = false;
        session.cancel_on_disconnect = false;
        self.set_account_events(id, false);
        Ok(())
    }

    /// No connection survives a start. What a lost connection's session has open stays, so that it may
    /// come back; if it does not, the engine reports the connection's end later.
    pub(super) fn engine_started(&mut self, outbox: &mut Outbox<'_>) -> Result<(), Reject> {
        for number in 1..=self.sessions.len() {
            self.set_account_events(SessionId(number), false);
        }
        for session in &mut self.sessions.list {
            session.connected = false;
        }
        outbox.push(&Done::default());
        Ok(())
    }

    /// Revokes a key for good and fences every session of it.
    pub(super) fn revoke_key(
        &mut self,
        context: &Context,
        message: &RevokeKey,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), Reject> {
        let Key { account, last_session, .. } =
            *self.keys.live(message.key).ok_or(RejectReason::UnknownKey)?;
        let sweep = Sweep::new(
            Whose::Key(account, message.key),
            SymbolId(EVERY),
            context.position,
            Waiter::NOBODY,
        );
        let sweep = self
            .sessions
            .of_key(last_session)
            .any(|at| self.sessions.list[at as usize].cancel_on_disconnect)
            .then_some(sweep);
        if let Some(sweep) = &sweep {
            self.check_sweep(sweep)?;
        }
        self.keys.live_mut(message.key).expect("found above").revoked = true;
        let mut next = named(last_session);
        while let Some(at) = next {
            let session = &mut self.sessions.list[at as usize];
            if session.connected {
                let (session_id, epoch) = (SessionId(at + 1), session.epoch);
                outbox.push(&SessionEnded { session: session_id, epoch, ..Default::default() });
            }
            let previous = session.previous_of_key;
            session.connected = false;
            session.is_swept_with_key = session.cancel_on_disconnect;
            session.cancel_on_disconnect = false;
            // At its last epoch a session is fenced by its key alone, which is enough.
            session.epoch.0 = session.epoch.0.saturating_add(1);
            self.set_account_events(SessionId(at + 1), false);
            next = named(previous);
        }
        if let Some(sweep) = sweep {
            let (sweep, is_done) = self.try_sweep(sweep, outbox);
            if is_done {
                self.report_sweep(&sweep, true, outbox);
            }
        }
        outbox.push(&Done { id: message.key.0, ..Default::default() });
        Ok(())
    }
}
