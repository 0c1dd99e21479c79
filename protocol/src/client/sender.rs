//! The sending half of a session.

use super::stream::StreamLine;
use super::{ClientOptions, Line};
use crate::message::MessageHeader;
use crate::message::command::{
    CancelAll, CancelOrder, CancelOrderList, CancelOrderNamed, CancelReplace, ChangeSymbol,
    CommandHeader, CreateAccount, CreateKey, DefineAsset, DefineSymbol, DeleteRecord, Deposit,
    ExpireAll, KillAccount, MassCancel, NewOrder, PlaceOrderList, ReduceOrder, ReplaceOrder,
    RevokeKey, SetAccount, SetFees, SetLimits, SetRecordLimits, SetRules, SetSymbolStatus,
    SetVenueFilters, Withdraw,
};
use crate::message::handshake::Welcome;
use crate::message::short_order;
use crate::message::stream::{Logout, ReplayRequest, StateRequest};
use crate::message::with_bytes::RecordWrite;
use crate::ring::layout::SLOT_BYTES;
use crate::ring::{Producer, PushError, RingFault, SharedOutput, Signals};
use crate::units::{Epoch, KeyId, Position, Sequence, SessionId};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use thiserror::Error;

/// A command that a client may send.
pub trait ClientCommand {
    /// Its command header.
    fn command_mut(&mut self) -> &mut CommandHeader;

    /// The message: what goes into the ring.
    fn as_bytes(&self) -> &[u8];
}

macro_rules! client_commands {
    ($($name:ident),* $(,)?) => {
        $( impl ClientCommand for $name {
            fn command_mut(&mut self) -> &mut CommandHeader {
                &mut self.command
            }

            fn as_bytes(&self) -> &[u8] {
                bytemuck::bytes_of(self)
            }
        } )*
    };
}

client_commands!(
    NewOrder,
    CancelOrder,
    CancelOrderNamed,
    ReduceOrder,
    ReplaceOrder,
    CancelReplace,
    PlaceOrderList,
    CancelOrderList,
    CancelAll,
    MassCancel,
    KillAccount,
    SetRules,
    SetLimits,
    DefineAsset,
    DefineSymbol,
    SetSymbolStatus,
    ChangeSymbol,
    SetVenueFilters,
    ExpireAll,
    CreateAccount,
    SetAccount,
    SetFees,
    Deposit,
    Withdraw,
    CreateKey,
    RevokeKey,
    SetRecordLimits,
    DeleteRecord,
);

impl ClientCommand for RecordWrite {
    fn command_mut(&mut self) -> &mut CommandHeader {
        self.command_mut()
    }

    fn as_bytes(&self) -> &[u8] {
        self.as_bytes()
    }
}

/// Slots that are brought near for the next command: those of an order, the longest that is sent in a hurry.
const ORDER_SLOTS: u64 = size_of::<NewOrder>().div_ceil(SLOT_BYTES) as u64;

/// Refusals by a full ring between two looks at the socket, each of which is a system call.
const REFUSALS: u32 = 64;

/// Whether the header says how long the message is: it is the caller's, who may have changed it.
pub(super) fn states_its_length(message: &[u8]) -> bool {
    let block_length = message.first_chunk().map(|bytes| usize::from(u16::from_le_bytes(*bytes)));
    block_length.is_some_and(|length| message.len() == MessageHeader::BYTES + length)
}

/// Why a command did not leave. It was not sent and took no sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SendError {
    /// The engine has not yet taken enough of what was sent before.
    #[error("the engine has not yet taken what was sent before")]
    Full,
    /// The connection is closed.
    #[error("the engine closed the connection")]
    Disconnected,
    /// The engine's ring index cannot be right: the connection is of no more use.
    #[error("request ring: {0}")]
    Ring(RingFault),
    /// The command's header does not say how long it is.
    #[error("the command's header states another length than it has")]
    Unframed,
    /// The engine answers this on a stream only.
    #[error("over shared memory there is no such request: read the log")]
    StreamOnly,
    /// A command of the session was decided, or sent, under the highest number that there is: none is left for
    /// another one, ever.
    #[error("the session has no sequence left: go on under another name")]
    NoSequence,
}

/// The sequence of the command behind one.
#[inline]
pub(super) fn next_sequence(last: Sequence) -> Result<Sequence, SendError> {
    last.0.checked_add(1).map(Sequence).ok_or(SendError::NoSequence)
}

/// Sends commands; one thread at a time.
pub struct Sender {
    outlet: Outlet,
    session: SessionId,
    epoch: Epoch,
    /// On whose behalf a command is sent that does not say it; 0 of a session without a key.
    key_id: KeyId,
    last_sequence: Sequence,
    /// The engine takes orders in their short form.
    shortens: bool,
}

/// What commands leave over.
pub(super) enum Outlet {
    Rings { output: Producer<SharedOutput>, signals: Signals, line: Arc<Line> },
    Stream(Arc<StreamLine>),
}

impl Outlet {
    #[inline]
    fn stage(&mut self, bytes: &[u8], shortens: bool) -> Result<(), SendError> {
        let (output, line) = match self {
            Self::Stream(line) if states_its_length(bytes) => return line.stage(bytes),
            Self::Stream(_) => return Err(SendError::Unframed),
            Self::Rings { output, line, .. } => (output, line),
        };
        if line.is_closed() {
            return Err(SendError::Disconnected);
        }
        let short = if shortens { short_order::shortened(bytes) } else { None };
        let staged = match short {
            Some((front, rest)) => output.stage_behind(&front, rest),
            None => output.stage(bytes),
        };
        staged.map_err(|error| match error {
            PushError::Full { .. } => {
                // The ring of an engine that is gone stays full.
                let refusals = line.refusals.fetch_add(1, Ordering::Relaxed);
                let is_over = refusals % REFUSALS == REFUSALS - 1 && line.check();
                if is_over { SendError::Disconnected } else { SendError::Full }
            }
            PushError::Peer(fault) => SendError::Ring(fault),
            PushError::Unframed { .. } => SendError::Unframed,
        })
    }

    #[inline]
    fn show(&mut self) {
        match self {
            // An error shows itself when the replies end.
            Self::Stream(line) => line.flush(),
            Self::Rings { output, .. } => output.publish(),
        }
    }

    #[inline]
    fn wake(&self) {
        if let Self::Rings { signals, .. } = self {
            signals.wake_peer();
        }
    }

    #[inline]
    fn publish(&mut self) {
        self.show();
        self.wake();
        self.bring_near();
    }

    /// Asks for the slots of the next message, which the engine has read since.
    #[inline]
    fn bring_near(&mut self) {
        if let Self::Rings { output, .. } = self {
            output.bring_near(ORDER_SLOTS);
        }
    }
}

impl Sender {
    pub(super) fn new(
        options: &ClientOptions,
        welcome: &Welcome,
        (outlet, shortens): (Outlet, bool),
    ) -> Self {
        Self {
            outlet,
            session: welcome.session,
            epoch: welcome.epoch,
            key_id: options.key.as_ref().map_or(KeyId(0), |(key, _)| *key),
            last_sequence: welcome.last_sequence,
            shortens,
        }
    }

    /// Numbers the command, sends it and wakes the engine if it sleeps. The caller has set
    /// `correlation` and `not_after_ns`. A `key_id` of 0 is sent as the session's own key, where it has one
    /// ([`ClientOptions::key`]); the command itself keeps its 0, so that it can be sent by another session too.
    ///
    /// # Errors
    /// See [`SendError`].
    pub fn send<C: ClientCommand>(&mut self, command: &mut C) -> Result<Sequence, SendError> {
        let sequence = self.stage(command)?;
        self.publish();
        Ok(sequence)
    }

    /// Numbers the command and puts it behind what is staged; it leaves with the next
    /// [`publish`](Self::publish).
    ///
    /// # Errors
    /// See [`SendError`].
    #[inline]
    pub fn stage<C: ClientCommand>(&mut self, command: &mut C) -> Result<Sequence, SendError> {
        let sequence = next_sequence(self.last_sequence)?;
        self.stage_as(command, sequence)?;
        Ok(sequence)
    }

    /// As [`stage`](Self::stage), under a sequence of the caller's: a command that may not have arrived
    /// is sent again under its own. One that was decided is answered with
    /// [`RejectReason::DuplicateSequence`](crate::message::enums::RejectReason), and nothing happens
    /// twice. Later commands are numbered above it.
    ///
    /// # Errors
    /// See [`SendError`].
    #[inline]
    pub fn stage_as<C: ClientCommand>(
        &mut self,
        command: &mut C,
        sequence: Sequence,
    ) -> Result<(), SendError> {
        let header = command.command_mut();
        let key_id = header.key_id;
        self.fill(header, sequence);
        let staged = self.outlet.stage(command.as_bytes(), self.shortens);
        command.command_mut().key_id = key_id;
        staged?;
        self.last_sequence = self.last_sequence.max(sequence);
        Ok(())
    }

    /// What the session knows of a command that is the next one.
    #[inline]
    fn fill(&self, header: &mut CommandHeader, sequence: Sequence) {
        (header.session, header.epoch, header.sequence) = (self.session, self.epoch, sequence);
        if header.key_id == KeyId(0) {
            header.key_id = self.key_id;
        }
    }

    /// [`stage_as`](Self::stage_as), of a command's bytes.
    pub(super) fn stage_bytes(
        &mut self,
        bytes: &mut [u8],
        sequence: Sequence,
    ) -> Result<(), SendError> {
        let range = MessageHeader::BYTES..MessageHeader::BYTES + size_of::<CommandHeader>();
        let mut header: CommandHeader = bytemuck::pod_read_unaligned(&bytes[range.clone()]);
        self.fill(&mut header, sequence);
        bytes[range].copy_from_slice(bytemuck::bytes_of(&header));
        self.outlet.stage(bytes, self.shortens)?;
        self.last_sequence = self.last_sequence.max(sequence);
        Ok(())
    }

    /// Lets the engine see all that is staged, and wakes it if it sleeps. Over a stream what the socket
    /// does not take now leaves with later calls of any kind, the receiver's included.
    #[inline]
    pub fn publish(&mut self) {
        self.outlet.publish();
    }

    /// As [`publish`](Self::publish), but an engine that sleeps goes on sleeping: for who sends again in a moment,
    /// and has one [`wake`](Self::wake) do for all, since each takes this thread some microseconds. An engine that
    /// is awake takes it at once. Over a stream nobody need be woken, and this is the same as `publish`.
    #[inline]
    pub fn show(&mut self) {
        self.outlet.show();
        self.outlet.bring_near();
    }

    /// Wakes the engine if it sleeps: owed behind what was only [shown](Self::show). Nothing else wakes it for that,
    /// so that a command without it may be left until the engine is woken for another one.
    #[inline]
    pub fn wake(&self) {
        self.outlet.wake();
    }

    /// Says that nothing more is sent: what was is decided and answered, then the engine ends the
    /// connection. Dropping both halves instead gives up what the engine has not yet taken.
    ///
    /// # Errors
    /// See [`SendError`].
    pub fn log_out(&mut self) -> Result<(), SendError> {
        let mut logout = Logout::default();
        (logout.command.session, logout.command.epoch) = (self.session, self.epoch);
        self.outlet.stage(bytemuck::bytes_of(&logout), false)?;
        if let Outlet::Rings { line, .. } = &self.outlet {
            line.logged_out.store(true, Ordering::Relaxed);
        }
        self.outlet.publish();
        Ok(())
    }

    /// Asks for the events of the session's account from a position on: see [`ReplayRequest`].
    ///
    /// # Errors
    /// See [`SendError`].
    pub fn request_replay(&mut self, correlation: u64, from: Position) -> Result<(), SendError> {
        self.request(bytemuck::bytes_of(&ReplayRequest { correlation, from, ..Default::default() }))
    }

    /// Asks for the account's open orders and balances: see [`StateRequest`].
    ///
    /// # Errors
    /// See [`SendError`].
    pub fn request_state(&mut self, correlation: u64) -> Result<(), SendError> {
        self.request(bytemuck::bytes_of(&StateRequest { correlation, ..Default::default() }))
    }

    fn request(&mut self, bytes: &[u8]) -> Result<(), SendError> {
        if matches!(self.outlet, Outlet::Rings { .. }) {
            return Err(SendError::StreamOnly);
        }
        self.outlet.stage(bytes, false)?;
        self.outlet.publish();
        Ok(())
    }

    /// The session's number.
    #[must_use]
    pub const fn session(&self) -> SessionId {
        self.session
    }

    /// The sequence of the last command that was staged or sent.
    #[must_use]
    pub const fn last_sequence(&self) -> Sequence {
        self.last_sequence
    }
}
