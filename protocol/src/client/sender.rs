//! The sending half of a session.

use super::Line;
use crate::message::Message;
use crate::message::command::{
    CancelAll, CancelOrder, CancelOrderList, CancelOrderNamed, CancelReplace, ChangeSymbol,
    CommandHeader, CreateAccount, CreateKey, DefineAsset, DefineSymbol, Deposit, ExpireAll,
    KillAccount, MassCancel, NewOrder, PlaceOrderList, ReduceOrder, ReplaceOrder, RevokeKey,
    SetAccount, SetFees, SetLimits, SetRules, SetSymbolStatus, SetVenueFilters, Withdraw,
};
use crate::ring::{Producer, PushError, RingFault, SharedOutput, Signals};
use crate::units::{Epoch, Sequence, SessionId};
use std::sync::Arc;
use thiserror::Error;

/// A command that a client may send.
pub trait ClientCommand: Message {
    /// Its command header.
    fn command_mut(&mut self) -> &mut CommandHeader;
}

macro_rules! client_commands {
    ($($name:ident),* $(,)?) => {
        $( impl ClientCommand for $name {
            fn command_mut(&mut self) -> &mut CommandHeader {
                &mut self.command
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
);

/// Why a command did not leave. It was not sent and took no sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SendError {
    /// The engine has not yet taken enough of what was sent before.
    #[error("the request ring is full")]
    Full,
    /// The connection is closed.
    #[error("the engine closed the connection")]
    Disconnected,
    /// The engine's ring index cannot be right: the connection is of no more use.
    #[error("request ring: {0}")]
    Ring(RingFault),
}

/// Sends commands; one thread at a time.
pub struct Sender {
    pub(super) output: Producer<SharedOutput>,
    pub(super) signals: Signals,
    pub(super) session: SessionId,
    pub(super) epoch: Epoch,
    pub(super) last_sequence: Sequence,
    pub(super) line: Arc<Line>,
}

impl Sender {
    /// Numbers the command, sends it and wakes the engine if it sleeps. The caller has set
    /// `correlation`, `key_id` and `not_after_ns`.
    ///
    /// # Errors
    /// See [`SendError`].
    pub fn send<C: ClientCommand>(&mut self, command: &mut C) -> Result<Sequence, SendError> {
        let sequence = self.stage(command)?;
        self.publish();
        Ok(sequence)
    }

    /// Numbers the command and writes it into the ring; it leaves with the next
    /// [`publish`](Self::publish).
    ///
    /// # Errors
    /// See [`SendError`].
    pub fn stage<C: ClientCommand>(&mut self, command: &mut C) -> Result<Sequence, SendError> {
        if self.line.is_closed() {
            return Err(SendError::Disconnected);
        }
        let sequence = Sequence(self.last_sequence.0 + 1);
        let header = command.command_mut();
        header.session = self.session;
        header.epoch = self.epoch;
        header.sequence = sequence;
        self.output.stage(bytemuck::bytes_of(command)).map_err(|error| match error {
            PushError::Full { .. } => SendError::Full,
            PushError::Peer(fault) => SendError::Ring(fault),
            PushError::Unframed { .. } => unreachable!("every message states its own length"),
        })?;
        self.last_sequence = sequence;
        Ok(sequence)
    }

    /// Lets the engine see all that is staged, and wakes it if it sleeps.
    pub fn publish(&mut self) {
        self.output.publish();
        self.signals.wake_peer();
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
