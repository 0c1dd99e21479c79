//! Who is there: sessions whose connections begin, are replaced, end or are fenced, and the log's word of
//! each. Called by [`super`] for what the gateway says and for what commands have done.

use super::clients::{ClientIndex, Terms};
use super::connection::Connection;
use super::transaction::{Refusal, transact};
use super::{Duty, LETTERS_PER_TURN, OwnCommandError, is_answering};
use crate::log::BeginError;
use crate::mailbox::{FromDuty, LogonLetter, LogonRequest, UsedUp, Wishes};
use crate::notice::alert;
use touchline_core::limits::{SESSIONS_PER_KEY_MAX, number, sessions_kept_back};
use touchline_core::{Core, Reject};
use touchline_protocol::message::command::{ConnectionEnded, Logon};
use touchline_protocol::message::decode::{self, Command, Event};
use touchline_protocol::message::enums::{CloseReason, Lane, RejectReason, Role};
use touchline_protocol::message::event::SessionStarted;
use touchline_protocol::ring::SessionEnd;
use touchline_protocol::units::{Epoch, Position, SessionId};

/// Ends of connections that had no room before and are tried again in a turn: all of thousands would be the work of a
/// turn by themselves.
const ENDS_PER_TURN: u32 = LETTERS_PER_TURN;

/// What became of the end of a connection that was to be logged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Report {
    /// There is nothing left to do.
    Done,
    /// Behind the pending work there is no room for what it cancels.
    NoPlace,
    /// In the log there is no room for anything.
    LogFull,
}

impl Duty {
    /// Lets in who waits for that, as they came: while the disk is behind they wait as commands do, and a log
    /// that has failed refuses them. Gives how many.
    pub(super) fn let_in_owed(&mut self) -> u32 {
        let mut count = 0;
        while count < LETTERS_PER_TURN
            && !self.logons_owed.is_empty()
            && is_answering(&self.writer)
            && let Some(LogonLetter { ticket, asked }) = self.logons_owed.next()
        {
            count += 1;
            if let Some(request) = asked.take() {
                self.log_on(ticket, request);
            }
        }
        count
    }

    /// The logon is one logged command: it raises the epoch, which fences the session's older
    /// connection, whose end is dropped here. Without rings of its own it is a stream's.
    fn log_on(&mut self, ticket: usize, LogonRequest { logon, end, wishes }: LogonRequest) {
        let before = self.writer.position();
        match self.log_own(&logon) {
            Ok((started, position)) => {
                if let Some(older) = self.clients.of_session(started.session) {
                    self.close(older, CloseReason::Replaced, "replaced by a newer logon");
                }
                self.open(&started, end, wishes, before);
                // Before anything for it is in the ring: the gateway drops what is for nobody.
                let logon = before..position;
                self.mail.tell_gateway(FromDuty::Opened { ticket, started, logon });
                // What the end of the older connection took away.
                self.tell_others(None, position);
            }
            Err(Reject { reason, detail }) => {
                let used_up = self.used_up(&logon, reason, detail);
                self.mail.tell_gateway(FromDuty::Refused { ticket, reason, used_up, end });
            }
        }
    }

    /// Serves a session from now on, whose logon lies behind the position `before`.
    fn open(
        &mut self,
        started: &SessionStarted,
        end: Option<Box<SessionEnd>>,
        Wishes { awaits_disk, detail }: Wishes,
        before: Position,
    ) {
        let lane = Lane::from_wire(started.lane).unwrap_or(Lane::Cold);
        let role = Role::from_wire(started.role).unwrap_or(Role::ReadOnly);
        let identity = (started.session, started.epoch);
        let watches = self.core.session(started.session).is_some_and(|one| one.account_events);
        let account = watches.then_some(started.account);
        let side = role.has_key().then_some(started.account);
        let rate = self.clients.debts.allow(started.session, role);
        if awaits_disk || role == Role::Adapter {
            // What came before it is what it may ask for first.
            self.writer.want_durable();
        }
        let terms = Terms { account, side, rate, awaits_disk, detail };
        match end {
            None => self.clients.streams.add(identity, terms, before),
            Some(end) => {
                let connection = Connection::new(identity, (role, lane), terms, end, before);
                self.clients.connections.push(connection);
            }
        }
    }

    /// The capacity for which the core has refused a logon.
    fn used_up(&self, logon: &Logon, reason: RejectReason, detail: u32) -> Option<UsedUp> {
        if reason != RejectReason::CapacityReached {
            return None;
        }
        let limits = self.core.limits();
        match detail {
            number::PENDING_WORK => Some(UsedUp::PendingWork(limits.pending_work)),
            number::SESSIONS => {
                let kept_back = sessions_kept_back(limits.sessions, logon.command.key_id);
                let has_room = self.core.counts().sessions + kept_back < limits.sessions;
                Some(match has_room {
                    true => UsedUp::NamesOfKey(SESSIONS_PER_KEY_MAX),
                    false => UsedUp::Sessions(limits.sessions),
                })
            }
            _ => None,
        }
    }

    fn log_own(&mut self, logon: &Logon) -> Result<(SessionStarted, Position), Reject> {
        // Without a key it is of the engine's own session alone, which is refused nothing: nobody's role matters.
        if self.clients.quarantine.holds(&logon.command, |_| false) {
            return Err(RejectReason::Quarantined.into());
        }
        let command = Command::Logon(logon);
        let position = transact(&mut self.venue(), command.bytes(), &command, |_| {})
            .map_err(|refusal| match refusal {
                Refusal::Log(_) => RejectReason::LogUnavailable.into(),
                Refusal::Core(reject) => reject,
            })?
            .expect("a logon is never only validated");
        let started = self.writer.committed_events().find_map(|event| match decode::event(event) {
            Ok(Event::SessionStarted(started)) => Some(*started),
            _ => None,
        });
        Ok((started.expect("an accepted logon starts a session"), position))
    }

    /// Ends a connection: what was not yet polled is discarded, and the end is logged.
    pub(super) fn end_connection(&mut self, client: ClientIndex, reason: CloseReason, why: &str) {
        let (ended_session, ended_epoch) = self.clients.identity(client);
        self.close(client, reason, why);
        self.report_end(ConnectionEnded { ended_session, ended_epoch, ..Default::default() });
    }

    /// Logs the end of a connection, now or when there is room for it and for what it cancels.
    fn report_end(&mut self, ended: ConnectionEnded) {
        if self.try_to_report_end(ended) != Report::Done {
            self.ends_owed.push_back(ended);
        }
    }

    fn try_to_report_end(&mut self, ended: ConnectionEnded) -> Report {
        use OwnCommandError::{Log, Rejected};
        use RejectReason::{CapacityReached, StaleEpoch};
        match self.own_command(bytemuck::bytes_of(&ended)) {
            Ok(_) => {}
            Err(Rejected { reason: CapacityReached, .. }) => return Report::NoPlace,
            Err(Log { source: BeginError::Full { .. }, .. }) => return Report::LogFull,
            // A logon or a revocation since has ended it already.
            Err(Rejected { reason: StaleEpoch, .. }) => {}
            // A log that has failed loses nothing here: the next start ends every connection.
            Err(error) => alert!("engine: {error}"),
        }
        Report::Done
    }

    /// Reports the end of one session that did not come back after a start, if nothing else is to be
    /// done first, nor a logon waits that has come in time; gives the amount of work.
    pub(super) fn report_absent(&mut self) -> u32 {
        let is_due = self.absent.is_due(self.served.ns());
        if !is_due || self.core.pending_head().is_some() || !self.writer.can_take() {
            return 0;
        }
        let (taken, mail) = (self.letters_taken, &self.mail);
        let last_letter = self.absent.last_letter(|| taken + mail.to_duty.waiting() as u64);
        // It may be the logon of whoever is next.
        if taken < last_letter || self.logons_owed.oldest().is_some_and(|one| one <= last_letter) {
            return 0;
        }
        let Some(ended) = self.absent.next(&self.core) else { return 0 };
        self.report_end(ended);
        1
    }

    /// Logs ends that had no room before, some of them in a turn; gives the amount of work. One that has none still goes
    /// behind the others, which may cancel less.
    pub(super) fn report_owed_ends(&mut self) -> u32 {
        let mut done = 0;
        for _ in 0..self.ends_owed.len().min(ENDS_PER_TURN as usize) {
            let Some(ended) = self.ends_owed.pop_front() else { break };
            match self.try_to_report_end(ended) {
                Report::Done => done += 1,
                Report::NoPlace => self.ends_owed.push_back(ended),
                Report::LogFull => {
                    self.ends_owed.push_front(ended);
                    break;
                }
            }
        }
        done
    }

    /// Ends the connections whose session was ended by a command, as a revoked key's are.
    #[cold]
    pub(super) fn close_fenced(&mut self) {
        let is_fenced = |core: &Core, session: SessionId, epoch: Epoch| {
            core.session(session).is_none_or(|session| session.epoch != epoch)
        };
        // A key has no more sessions than these, all of which its revocation has just ended: one look at all finds them.
        let mut fenced = [(SessionId(0), Epoch(0)); SESSIONS_PER_KEY_MAX as usize];
        let found = self.clients.identities();
        let found = found.filter(|&(session, epoch)| is_fenced(&self.core, session, epoch));
        let count = fenced.iter_mut().zip(found).map(|(place, one)| *place = one).count();
        for &(session, epoch) in &fenced[..count] {
            if let Some(client) = self.clients.find(session, epoch) {
                self.close(client, CloseReason::KeyRevoked, "its key was revoked");
            }
        }
    }

    fn close(&mut self, client: ClientIndex, reason: CloseReason, why: &str) {
        let (session, epoch) = self.clients.identity(client);
        self.clients.keep_debt(client, self.now_ns);
        let end = match client {
            ClientIndex::Ring(index) => {
                let mut connection = self.clients.connections.swap_remove(index);
                if connection.wake_if_replied() {
                    self.writer.want_durable();
                }
                Some(connection.into_end())
            }
            ClientIndex::Stream(index) => {
                self.clients.streams.remove(index);
                None
            }
        };
        let why = why.to_owned();
        self.mail.tell_gateway(FromDuty::Closed { session, epoch, reason, why, end });
    }
}
