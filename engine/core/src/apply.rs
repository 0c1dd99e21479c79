//! [`Core::apply`]: checks who sends a command, hands it to its family, and notes that it was decided.
//! Called for every command of the log and nowhere else.
//!
//! Every family checks everything before it changes anything. Order of the checks for a client's
//! order: session, epoch, sequence, role and lane, rules version, not-after, key, account, symbol,
//! permission, enumerations, combination, status, static filters, order rate, engine state (facts §1.4).
//!
//! What most orders and cancels are goes a short way, its sender's checks included ([`plain`]): what they pass
//! through is one function for each, or two where one would have more at hand than a processor has registers.
//! What few need stands apart, so that the way of all others stays in the instruction cache.

mod cancel;
mod change;
mod define;
mod ending;
mod list;
mod market;
mod money;
mod place;
mod plain;
mod record;
mod replace;
mod room;
mod self_trade;
mod sender;
mod session;
mod settlement;
mod site;
mod sweep;
mod taking;
mod trigger;
mod vacate;
mod venue;

pub(crate) use define::{ACCOUNT_FLAGS, PERMISSIONS};
pub(crate) use ending::LIST_STEPS;
pub(crate) use self_trade::PREVENTION_STEPS;
pub(crate) use sweep::ORDER_STEPS;
pub(crate) use trigger::RUN_STEPS;

use crate::Core;
use crate::outbox::Outbox;
use crate::pending::{Pending, Waiter};
use touchline_protocol::message::command::CommandHeader;
use touchline_protocol::message::decode::Command;
use touchline_protocol::message::enums::RejectReason;
use touchline_protocol::units::{Position, SessionId};

/// Where and when a command is applied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Context {
    /// Where its transaction begins in the log: the priority of what it places; never below that of the last
    /// accepted one.
    ///
    /// That is the caller's to see to: the core keeps no position but those of open orders and pending work, and checks
    /// none. An order that is placed below another one's position stands in its queue as it came all the same, and
    /// the queue is not in the order of its priorities then: [`Core::validate`] says so, and a snapshot of the venue
    /// is refused when it is read.
    pub position: Position,
    /// Time of the transaction, ns since the epoch; never below that of the last accepted one.
    pub time_ns: u64,
}

/// How a command was accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Applied {
    /// The state has changed and the events are in the outbox: log them.
    Committed,
    /// A validate-only order passed. Nothing has changed and nothing is to be logged; the reply is in
    /// the outbox.
    Valid,
}

/// Why a command was not accepted. Neither state nor outbox has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reject {
    /// The reason.
    pub reason: RejectReason,
    /// As the reason says: a limit's number ([`limits::number`](crate::limits::number)), an interval's
    /// index, or a field's number: its place in the message behind the command header, from 0, with
    /// the fields of a symbol's filters counted one by one in place.
    pub detail: u32,
}

impl From<RejectReason> for Reject {
    fn from(reason: RejectReason) -> Self {
        Self { reason, detail: 0 }
    }
}

impl Reject {
    pub(crate) const fn with(reason: RejectReason, detail: u32) -> Self {
        Self { reason, detail }
    }
}

impl Core {
    /// Applies one command: changes the state and puts the events into `outbox`, the terminal one
    /// last. [`OrderContinues`](touchline_protocol::message::event::OrderContinues) as the last event
    /// means that the terminal one comes with a later `RunPending`.
    ///
    /// # Errors
    /// The reason of the reject. The state, its hash and the outbox are as before.
    ///
    /// # Panics
    /// When time goes back: the caller's clock is monotonic, and what is in the log was so when it was
    /// written. (That positions do not go back is not checked: see [`Context::position`].)
    ///
    /// When `outbox` has less than [`OUTBOX_BYTES_MAX`](crate::OUTBOX_BYTES_MAX) bytes of room left, as one has in which
    /// the events of an earlier command are: it is to be cleared before each. Nothing has happened then.
    pub fn apply(
        &mut self,
        context: &Context,
        command: &Command<'_>,
        outbox: &mut Outbox<'_>,
    ) -> Result<Applied, Reject> {
        // In the middle of a command it would leave behind what that has done by then.
        assert!(outbox.has_room(), "an outbox is to be cleared before each command");
        match command {
            Command::NewOrder(message) if self.place_plain(context, message, outbox) => {
                Ok(Applied::Committed)
            }
            Command::CancelOrder(message) if self.cancel_plain(context, message, outbox) => {
                Ok(Applied::Committed)
            }
            _ => self.apply_any(context, command, outbox),
        }
    }

    /// Any command, by the long way.
    #[inline(never)]
    fn apply_any(
        &mut self,
        context: &Context,
        command: &Command<'_>,
        outbox: &mut Outbox<'_>,
    ) -> Result<Applied, Reject> {
        assert!(
            context.time_ns >= self.last_time_ns,
            "time goes back from {} to {}",
            self.last_time_ns,
            context.time_ns
        );
        self.call += 1;
        self.check_sender(context, command)?;
        outbox.set_replier(self.replier(command));
        let applied = self.dispatch(context, command, outbox)?;
        if applied == Applied::Committed {
            self.note_decided(context, command.header());
        }
        Ok(applied)
    }

    /// Notes that a command was accepted.
    #[inline(always)]
    fn note_decided(&mut self, context: &Context, header: &CommandHeader) {
        self.last_time_ns = context.time_ns;
        sender::note_sequence(&mut self.sessions, &mut self.engine_sequence, header);
    }

    /// The session that gets the events of a command as replies; the engine's own for nobody. Who has
    /// logged on anew since its command was accepted gets none.
    fn replier(&self, command: &Command<'_>) -> SessionId {
        let Command::RunPending(_) = command else { return command.header().session };
        let waiter = self.pending.next().map_or(Waiter::NOBODY, Pending::waiter);
        let session = self.sessions.get(waiter.session);
        match session {
            Some(session) if session.epoch == waiter.epoch => waiter.session,
            _ => SessionId::ENGINE,
        }
    }

    fn dispatch(
        &mut self,
        context: &Context,
        command: &Command<'_>,
        outbox: &mut Outbox<'_>,
    ) -> Result<Applied, Reject> {
        match command {
            Command::NewOrder(message) => return self.new_order(context, message, outbox),
            Command::CancelOrder(message) => self.cancel_order(message, outbox),
            Command::PlaceOrderList(message) => {
                return self.place_order_list(context, message, outbox);
            }
            Command::CancelOrderList(message) => self.cancel_order_list(message, outbox),
            Command::CancelOrderNamed(message) => self.cancel_order_named(message, outbox),
            Command::ReduceOrder(message) => self.reduce_order(message, outbox),
            Command::SetRules(message) => self.set_rules(message, outbox),
            Command::SetLimits(message) => self.set_limits(message, outbox),
            Command::DefineAsset(message) => self.define_asset(message, outbox),
            Command::DefineSymbol(message) => self.define_symbol(message, outbox),
            Command::SetVenueFilters(message) => self.set_venue_filters(message, outbox),
            Command::SetSymbolStatus(message) => self.set_symbol_status(message, outbox),
            Command::CreateAccount(message) => self.create_account(message, outbox),
            Command::Deposit(message) => self.deposit(message, outbox),
            Command::Withdraw(message) => self.withdraw(message, outbox),
            Command::CreateKey(message) => self.create_key(message, outbox),
            Command::RevokeKey(message) => self.revoke_key(context, message, outbox),
            Command::EngineStarted(_) => self.engine_started(outbox),
            Command::Logon(message) => self.logon(context, message, outbox),
            Command::ConnectionEnded(message) => self.connection_ended(context, message, outbox),
            Command::CancelAll(message) => self.cancel_all(context, message, outbox),
            Command::MassCancel(message) => self.mass_cancel(context, message, outbox),
            Command::KillAccount(message) => self.kill_account(context, message, outbox),
            Command::ExpireAll(message) => self.expire_all(context, message, outbox),
            Command::RunPending(_) => self.run_pending(context, outbox),
            Command::SetAccount(message) => self.set_account(message, outbox),
            Command::SetFees(message) => self.set_fees(message, outbox),
            Command::ChangeSymbol(message) => self.change_symbol(message, outbox),
            Command::ReplaceOrder(message) => self.replace_order(context, message, outbox),
            Command::CancelReplace(message) => self.cancel_replace(context, message, outbox),
            Command::SetRecordLimits(message) => self.set_record_limits(message, outbox),
            Command::PutRecord(message) => self.put_record(message, outbox),
            Command::DeleteRecord(message) => self.delete_record(message, outbox),
        }?;
        Ok(Applied::Committed)
    }
}
