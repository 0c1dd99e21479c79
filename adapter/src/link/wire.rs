//! The two halves of a connection to the engine as the link sees them: the client library, or what
//! a test puts in its place.

use std::time::Duration;

use touchline_protocol::client::{
    Client, ClientOptions, ConnectError, ReceiveError, Receiver, Reply, SendError, Sender,
};

use super::OrderCommand;

/// The two halves of one connection.
pub(super) type Halves = (Box<dyn Commands>, Box<dyn Replies>);

/// Opens connections.
pub(super) trait Wire: Send + 'static {
    /// A connection.
    ///
    /// # Errors
    /// When there is no engine, or it refuses.
    fn connect(&self) -> Result<Halves, ConnectError>;
}

/// The sending half.
pub(super) trait Commands: Send {
    /// Sends one command.
    fn send(&mut self, command: &mut OrderCommand) -> Result<(), SendError>;
}

/// The receiving half.
pub(super) trait Replies {
    /// The next reply, if one is there.
    fn poll(&mut self) -> Result<Option<Reply>, ReceiveError>;
    /// Waits until one may be there, at most for `limit`.
    fn wait(&mut self, limit: Duration);
}

/// The engine's own socket.
pub(super) struct EngineSocket(pub(super) ClientOptions);

impl Wire for EngineSocket {
    fn connect(&self) -> Result<Halves, ConnectError> {
        let (sender, receiver) = Client::connect(&self.0)?.split();
        Ok((Box::new(sender), Box::new(receiver)))
    }
}

impl Commands for Sender {
    fn send(&mut self, command: &mut OrderCommand) -> Result<(), SendError> {
        match command {
            OrderCommand::Place(order) => Self::send(self, order),
            OrderCommand::PlaceList(list) => Self::send(self, list),
            OrderCommand::Cancel(cancel) => Self::send(self, cancel),
            OrderCommand::CancelList(cancel) => Self::send(self, cancel),
            OrderCommand::CancelAll(cancel) => Self::send(self, cancel),
        }
        .map(|_sequence| ())
    }
}

impl Replies for Receiver {
    fn poll(&mut self) -> Result<Option<Reply>, ReceiveError> {
        Self::poll(self)
    }

    fn wait(&mut self, limit: Duration) {
        Self::wait(self, limit);
    }
}
