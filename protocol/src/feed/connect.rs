//! Opening a feed connection: the reader's side of the handshake, over whichever carrier. Called by
//! [`super::FeedReader`].

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::client::Endpoint;
use crate::client::handshake::{self, Step};
use crate::framing::FrameFault;
use crate::message::command::LOGON_FEED;
use crate::message::decode::{self, DecodeError, FeedTalk, Handshake};
use crate::message::enums::{CloseReason, Lane, RejectReason, Role};
use crate::message::feed::FeedOpened;
use crate::message::handshake::{CARRIER_RINGS, CARRIER_STREAM, Hello, RefusalReason, Refused};
use crate::shm::descriptors::PassError;
use crate::units::Position;

use super::books::SnapshotError;
use super::line::FeedLine;
use super::memory::{FeedInput, FeedMemoryError};
use super::options::{FeedOptions, FeedOptionsError};

/// Why the feed was not opened, or its connection is of no more use.
#[derive(Debug, thiserror::Error)]
pub enum FeedConnectError {
    /// The options are none that any engine takes; nothing was dialled.
    #[error("cannot open the feed: {0}")]
    Options(#[from] FeedOptionsError),
    /// Nobody listens there.
    #[error("cannot connect to the engine at {endpoint}: {source}")]
    Connect {
        /// Where.
        endpoint: Endpoint,
        /// What the system said.
        source: io::Error,
    },
    /// The conversation broke off.
    #[error("feed connection: {0}")]
    Io(#[from] io::Error),
    /// The engine said something that is no message.
    #[error("feed connection: {0}")]
    Decode(#[from] DecodeError),
    /// The engine sent bytes that no message begins with.
    #[error("feed connection: {0}")]
    Frame(#[from] FrameFault),
    /// The engine said something that is out of place.
    #[error("feed connection: unexpected {0}")]
    Unexpected(&'static str),
    /// The engine refused.
    #[error("the engine refused the feed: {}", handshake::why(*reason, *reject))]
    Refused {
        /// Why; `None` for a reason that this reader does not know.
        reason: Option<RefusalReason>,
        /// What is wrong with the key, if it is that.
        reject: Option<RejectReason>,
    },
    /// The log does not have what this reader saw last: see [`RefusalReason::HistoryLost`]. Trades and books that
    /// it was told of since `position` may not have happened; where that is at or behind what this reader saw, they
    /// have, and the log was pruned.
    #[error(
        "the engine's log has what this reader saw up to {position} and not the position that it saw last: what \
         the feed told since may not have happened, or, if that is not below it, the log was pruned"
    )]
    HistoryLost {
        /// Up to where the log has what the feed told.
        position: Position,
    },
    /// The connection has ended.
    #[error("the feed connection has ended{}", reason.map_or(String::new(), |reason| format!(": {reason:?}")))]
    Closed {
        /// What the engine said; `None` if it said nothing, or what this reader does not know.
        reason: Option<CloseReason>,
    },
    /// The descriptor did not come.
    #[error("feed connection: {0}")]
    Pass(#[from] PassError),
    /// The memory is not as agreed.
    #[error(transparent)]
    Memory(#[from] FeedMemoryError),
    /// The snapshot is longer than this reader takes.
    #[error("a snapshot of {bytes} bytes, at most {most} are taken")]
    TooLong {
        /// Its length.
        bytes: u64,
        /// The reader's bound.
        most: u64,
    },
    /// The snapshot is none.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
}

/// What an open feed connection consists of.
pub(super) struct Connection {
    /// What the engine said.
    pub(super) opened: FeedOpened,
    /// The broadcast ring, unless the feed comes over the socket.
    pub(super) memory: Option<FeedInput>,
    /// The socket.
    pub(super) line: FeedLine,
}

/// Connects and proves who the reader is.
pub(super) fn connect(options: &FeedOptions) -> Result<Connection, FeedConnectError> {
    options.check()?;
    let endpoint = &options.endpoint;
    let failed = |source| FeedConnectError::Connect { endpoint: endpoint.clone(), source };
    let opened = match endpoint {
        Endpoint::SharedMemory(path) => {
            let socket = handshake::dial(path, options.timeout).map_err(failed)?;
            over_shared_memory(options, socket)
        }
        Endpoint::Unix(path) => {
            let socket = handshake::dial(path, options.timeout).map_err(failed)?;
            over_stream(options, socket)
        }
        Endpoint::Tcp(address) => {
            let socket = handshake::dial_tcp(*address, options.timeout).map_err(failed)?;
            over_stream(options, socket)
        }
    };
    opened.map_err(|error| match error {
        FeedConnectError::Io(error) | FeedConnectError::Pass(PassError::System(error)) => {
            FeedConnectError::Io(handshake::told(error, options.timeout))
        }
        other => other,
    })
}

fn over_shared_memory(
    options: &FeedOptions,
    mut socket: UnixStream,
) -> Result<Connection, FeedConnectError> {
    let hello = Hello { carrier: CARRIER_RINGS, ..hello(options)? };
    let limit = options.timeout;
    handshake::prove(&mut socket, &hello, (options.key.as_ref(), limit), out_of_place)?;
    // FeedOpened comes in one piece with its descriptor, Refused without any.
    let mut words = [0u64; size_of::<FeedOpened>() / 8];
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
    let (length, descriptors) = Step::begin(&socket, limit).receive_with_descriptors(bytes, 1)?;
    if length == 0 {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    let opened = opened(&bytemuck::cast_slice::<u64, u8>(&words)[..length])?;
    let [memory] = <[OwnedFd; 1]>::try_from(descriptors)
        .map_err(|_| FeedConnectError::Unexpected("number of descriptors"))?;
    let memory = FeedInput::map(memory.as_fd(), opened.slots)?;
    let line = FeedLine::new(socket.into(), options, None)?;
    Ok(Connection { opened, memory: Some(memory), line })
}

fn over_stream<S: Read + Write + AsFd + Into<OwnedFd>>(
    options: &FeedOptions,
    mut socket: S,
) -> Result<Connection, FeedConnectError> {
    let heartbeat_seconds = options.heartbeat_seconds;
    let hello = Hello { carrier: CARRIER_STREAM, heartbeat_seconds, ..hello(options)? };
    let limit = options.timeout;
    handshake::prove(&mut socket, &hello, (options.key.as_ref(), limit), out_of_place)?;
    let mut words = [0; 16];
    handshake::read_message::<FeedConnectError>(&mut Step::begin(&mut socket, limit), &mut words)?;
    let opened = opened(bytemuck::cast_slice(&words))?;
    let heartbeat = Duration::from_secs(heartbeat_seconds.into());
    let line = FeedLine::new(socket.into(), options, Some(heartbeat))?;
    Ok(Connection { opened, memory: None, line })
}

fn opened(bytes: &[u8]) -> Result<FeedOpened, FeedConnectError> {
    if let Ok(message) = decode::handshake(bytes) {
        return Err(out_of_place(message));
    }
    match decode::feed_talk(bytes)? {
        FeedTalk::FeedOpened(opened) => Ok(*opened),
        other => Err(FeedConnectError::Unexpected(other.name())),
    }
}

fn hello(options: &FeedOptions) -> io::Result<Hello> {
    let role = if options.key.is_some() { Role::ReadOnly } else { Role::Admin };
    let (last_incarnation, last_position) = options.last_seen.unwrap_or_default();
    Ok(Hello {
        role: role.to_wire(),
        lane: Lane::Hot.to_wire(),
        flags: LOGON_FEED,
        last_incarnation,
        last_position,
        ..handshake::hello(options.key.as_ref(), options.name)?
    })
}

/// What a message of the handshake says that is not due.
fn out_of_place(message: Handshake<'_>) -> FeedConnectError {
    match message {
        Handshake::Refused(refused) => refusal(refused),
        other => FeedConnectError::Unexpected(other.name()),
    }
}

fn refusal(refused: &Refused) -> FeedConnectError {
    match RefusalReason::from_wire(refused.reason) {
        Some(RefusalReason::HistoryLost) => {
            FeedConnectError::HistoryLost { position: refused.position }
        }
        reason => FeedConnectError::Refused {
            reason,
            reject: RejectReason::from_wire(refused.reject_reason),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patience::join;
    use crate::text::Name;
    use std::os::unix::net::UnixListener;
    use std::thread;

    #[test]
    fn an_engine_that_closes_without_a_word_has_said_nothing_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("engine.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let engine = thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            socket.read_exact(&mut [0; size_of::<Hello>()]).unwrap();
        });
        let error = connect(&FeedOptions::new(path, Name::new("reader").unwrap())).err().unwrap();
        join(engine, "the engine");
        let is_end = matches!(&error, FeedConnectError::Io(error)
            if error.kind() == io::ErrorKind::UnexpectedEof);
        assert!(is_end, "{error}");
    }
}
