//! What a [`SteadyClient`](super::SteadyClient) tells its caller.

use crate::client::{Notice, ReceiveError, Reply, SendError};
use crate::units::{Position, Sequence};
use thiserror::Error;

/// What a [`SteadyClient`](super::SteadyClient) tells of its connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Back {
    /// The connection is lost; the client tries to come back by itself.
    Lost(Loss),
    /// It is back. The commands named as decided were, while their answers were lost; all others without an
    /// answer are sent, again or for the first time.
    Returned {
        /// Sequences of commands that had left and whose outcome is to be looked up: accepted if the log has
        /// events under them, else rejected. If another has used the session under its name meanwhile the
        /// sequence may be one of its commands, and only the log itself tells whose, by the command's correlation: a
        /// replay has the request's.
        decided: Vec<Sequence>,
        /// How many commands that had left over an earlier connection are sent again.
        resent: usize,
        /// Commands that had not left over any connection, and whose sequences another has used meanwhile
        /// under the session's name: the sequence that [`SteadyClient::send`](super::SteadyClient::send) gave, and the one in its place,
        /// above all that it gave. Their correlations stay, and so does their order.
        renumbered: Vec<(Sequence, Sequence)>,
        /// What was missed, oldest first, by this loss and by earlier ones since the caller last said
        /// [`SteadyClient::caught_up`](super::SteadyClient::caught_up).
        missed: Vec<Missed>,
    },
}

/// A part of the log during which a client was away.
///
/// A replay from `from` on reads on to the log's end. Of what it tells that was missed whose position is above
/// `seen` and `to` at the most. What lies behind `to` has come or comes live as well; and at `to` lies the logon: what
/// that has cancelled of an older connection ([`LOGON_CANCEL_ON_DISCONNECT`]) comes live, too, and is to be counted
/// once. What lies at `seen` may have come in part or whole before the loss, and only who kept it knows what of it: a
/// trade, say, by its number.
///
/// [`LOGON_CANCEL_ON_DISCONNECT`]: crate::message::command::LOGON_CANCEL_ON_DISCONNECT
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Missed {
    /// Behind the last transaction of which all was told.
    pub from: Position,
    /// The last transaction of which something was told; as `from` if that was all.
    pub seen: Position,
    /// The Welcome's position: all that lies behind comes live, and at it what the logon has cancelled.
    pub to: Position,
}

/// Why a connection is of no more use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Loss {
    /// No further reply comes.
    #[error(transparent)]
    Receive(#[from] ReceiveError),
    /// No further command leaves.
    #[error(transparent)]
    Send(#[from] SendError),
}

/// A reply, or news of the connection.
#[derive(Clone, Debug)]
pub enum Told {
    /// As [`Receiver::poll`](crate::client::Receiver::poll) gives it.
    Reply(Box<Reply>),
    /// As [`Receiver::next_notice`](crate::client::Receiver::next_notice) gives it.
    Notice(Notice),
    /// About the connection.
    Connection(Back),
}
