//! A connection to the engine as the link sees it: the client library, or what a test puts in its place.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use touchline_protocol::client::{
    Bell, Client, ClientOptions, ConnectError, ReceiveError, Receiver, Reply, Rings, SendError,
    Sender,
};

use touchline_protocol::log::reader::{Follow, LogReader};
use touchline_protocol::units::Position;

use super::Traffic;

/// One connection.
pub(super) struct Connection<T: Traffic, B> {
    pub(super) commands: Box<dyn Commands<T>>,
    pub(super) replies: Box<dyn Replies>,
    pub(super) bell: B,
}

/// Opens connections.
pub(super) trait Wire<T: Traffic>: Send + 'static {
    /// What tells that there may be replies.
    type Bell: Alarm;

    /// A connection.
    ///
    /// # Errors
    /// When there is no engine, or it refuses.
    fn connect(&self) -> Result<Connection<T, Self::Bell>, ConnectError>;

    /// The time by which a connection is short.
    fn now(&self) -> Instant {
        Instant::now()
    }

    /// Passes so much time, or less when the link's thread is unparked.
    fn pause(&self, pause: Duration) {
        thread::park_timeout(pause);
    }
}

/// The sending half.
pub(super) trait Commands<T: Traffic>: Send {
    /// Sends one command, which an engine that sleeps sees when it is woken.
    fn send(&mut self, command: &mut T::Command) -> Result<(), SendError>;
    /// Wakes the engine if it sleeps.
    fn wake(&self);
}

/// The receiving half.
pub(super) trait Replies: Send {
    /// Puts the next reply into `reply`, which stays as it is if none is there: false then.
    fn poll_into(&mut self, reply: &mut Reply) -> Result<bool, ReceiveError>;
    /// Has the engine ring the bell from now on; true if there are replies already.
    fn arm(&self) -> bool;
    /// Has it ring no more.
    fn disarm(&self);
    /// True if there are replies that wait for the log to be on disk.
    fn holds_back(&self) -> bool;
    /// Up to where the log is on disk.
    fn durable(&self) -> Position;
    /// Rings the bell for the link's thread, in place of the engine.
    fn ring(&self);
    /// Looks whether the engine is still there; if not, the next poll says so.
    fn check(&mut self);
    /// True if it was given up for its silence, and may go on with what it was sent.
    fn is_silent(&self) -> bool;
}

/// What the link's thread sleeps on.
pub(super) trait Alarm {
    /// Tells one ring from another.
    type Rings: Copy;
    /// How often it was rung.
    fn rings(&self) -> Self::Rings;
    /// Sleeps until it is rung again, with `hears_disk` also by a write of the log to disk, at most for
    /// `limit`.
    fn wait(&self, seen: Self::Rings, hears_disk: bool, limit: Duration);
}

/// The engine's own socket.
pub(super) struct EngineSocket {
    pub(super) options: ClientOptions,
    /// The data folder, whose log is looked at first: what is dialled logs a session on, and ends the one that
    /// another adapter has by this name.
    pub(super) data: PathBuf,
}

impl EngineSocket {
    fn check_log(&self) -> Result<(), ConnectError> {
        let found = LogReader::open(&self.data, Follow::Appended).map(|reader| reader.log_id());
        match (found, self.options.log_id) {
            (Ok(found), Some(expected)) if found != expected => {
                Err(ConnectError::OtherLog { found, expected })
            }
            // Where there is none to be read, there is no engine either; and who connects looks once more.
            _ => Ok(()),
        }
    }
}

impl<T: Traffic> Wire<T> for EngineSocket {
    type Bell = Bell;

    fn connect(&self) -> Result<Connection<T, Bell>, ConnectError> {
        self.check_log()?;
        let (sender, receiver) = Client::connect(&self.options)?.split();
        let bell = receiver.bell().ok_or(ConnectError::Unexpected("stream in place of rings"))?;
        Ok(Connection { commands: Box::new(sender), replies: Box::new(receiver), bell })
    }
}

impl Alarm for Bell {
    type Rings = Rings;

    fn rings(&self) -> Rings {
        Self::rings(self)
    }

    fn wait(&self, seen: Rings, hears_disk: bool, limit: Duration) {
        Self::wait(self, seen, hears_disk, limit);
    }
}

impl<T: Traffic> Commands<T> for Sender {
    fn send(&mut self, command: &mut T::Command) -> Result<(), SendError> {
        T::stage(self, command)?;
        self.show();
        Ok(())
    }

    fn wake(&self) {
        Self::wake(self);
    }
}

impl Replies for Receiver {
    fn poll_into(&mut self, reply: &mut Reply) -> Result<bool, ReceiveError> {
        Self::poll_into(self, reply)
    }

    fn arm(&self) -> bool {
        Self::arm(self)
    }

    fn disarm(&self) {
        Self::disarm(self);
    }

    fn holds_back(&self) -> bool {
        Self::holds_back(self)
    }

    fn durable(&self) -> Position {
        Self::durable(self)
    }

    fn ring(&self) {
        Self::ring(self);
    }

    fn check(&mut self) {
        let _told_by_the_next_poll = self.is_connected();
    }

    fn is_silent(&self) -> bool {
        self.was_silent()
    }
}
