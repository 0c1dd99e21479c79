//! The two halves of a connection to the engine as the link sees them: the client library, or what
//! a test puts in its place.

use std::time::Duration;

use touchline_protocol::client::{
    Client, ClientOptions, ConnectError, ReceiveError, Receiver, Reply, SendError, Sender,
};

use super::Traffic;

/// The two halves of one connection.
pub(super) type Halves<T> = (Box<dyn Commands<T>>, Box<dyn Replies>);

/// Opens connections.
pub(super) trait Wire<T: Traffic>: Send + 'static {
    /// A connection.
    ///
    /// # Errors
    /// When there is no engine, or it refuses.
    fn connect(&self) -> Result<Halves<T>, ConnectError>;
}

/// The sending half.
pub(super) trait Commands<T: Traffic>: Send {
    /// Sends one command.
    fn send(&mut self, command: &mut T::Command) -> Result<(), SendError>;
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

impl<T: Traffic> Wire<T> for EngineSocket {
    fn connect(&self) -> Result<Halves<T>, ConnectError> {
        let (sender, receiver) = Client::connect(&self.0)?.split();
        Ok((Box::new(sender), Box::new(receiver)))
    }
}

impl<T: Traffic> Commands<T> for Sender {
    fn send(&mut self, command: &mut T::Command) -> Result<(), SendError> {
        T::send(self, command)
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
