//! The reader's side of a feed connection: the handshake, and snapshots. Called by [`super::FeedReader`].

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use crate::client::handshake;
use crate::message::command::LOGON_FEED;
use crate::message::decode::{self, DecodeError, FeedTalk, Handshake};
use crate::message::enums::{Lane, RejectReason, Role};
use crate::message::feed::{FeedOpened, FeedRequest, FeedSnapshot};
use crate::message::handshake::{Hello, RefusalReason, Refused};
use crate::shm::descriptors::{PassError, receive_with_descriptors};
use crate::text::Name;
use crate::units::KeyId;
use crate::wait::WaitStrategy;

use super::books::{Books, SnapshotError};
use super::memory::FeedMemoryError;

/// How to open the feed.
#[derive(Clone, Debug)]
pub struct FeedOptions {
    /// The engine's socket: [`crate::client::SOCKET_NAME`] in its data folder.
    pub socket: PathBuf,
    /// Key and secret of a reader; none for the engine's own user.
    pub key: Option<(KeyId, String)>,
    /// The reader's name, for the operator; 1 to 31 printable characters.
    pub name: Name,
    /// How [`super::FeedReader::wait`] waits.
    pub wait: WaitStrategy,
    /// Longest that each step of the handshake, and each silence within a snapshot, may take.
    pub timeout: Duration,
    /// Longest snapshot that is taken, in bytes: 64 for each order.
    pub snapshot_bytes_max: u64,
}

impl FeedOptions {
    /// Without a key, adaptive waiting, 5 s per step, snapshots of up to 1 GiB.
    #[must_use]
    pub const fn new(socket: PathBuf, name: Name) -> Self {
        Self {
            socket,
            key: None,
            name,
            wait: WaitStrategy::Adaptive,
            timeout: Duration::from_secs(5),
            snapshot_bytes_max: 1 << 30,
        }
    }
}

/// Why the feed was not opened, or gave no snapshot.
#[derive(Debug, thiserror::Error)]
pub enum FeedConnectError {
    /// Nobody listens on the socket.
    #[error("cannot connect to the engine at {}: {source}", socket.display())]
    Connect {
        /// The socket.
        socket: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The conversation broke off.
    #[error("feed connection: {0}")]
    Io(#[from] io::Error),
    /// The engine said something that is no message.
    #[error("feed connection: {0}")]
    Decode(#[from] DecodeError),
    /// The engine said something that is out of place.
    #[error("feed connection: unexpected {0}")]
    Unexpected(&'static str),
    /// The engine refused.
    #[error("the engine refused the feed: {reason:?}{}", reject.map_or(String::new(), |reject| format!(" ({reject:?})")))]
    Refused {
        /// Why; `None` for a reason that this reader does not know.
        reason: Option<RefusalReason>,
        /// What is wrong with the key, if it is that.
        reject: Option<RejectReason>,
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

/// The socket of a feed connection.
pub(super) struct FeedLine {
    socket: UnixStream,
    snapshot_bytes_max: u64,
}

impl FeedLine {
    /// Connects and proves who the reader is; gives what the engine said and the ring's memory.
    pub(super) fn open(
        options: &FeedOptions,
    ) -> Result<(Self, FeedOpened, OwnedFd), FeedConnectError> {
        let socket = UnixStream::connect(&options.socket).map_err(|source| {
            FeedConnectError::Connect { socket: options.socket.clone(), source }
        })?;
        socket.set_read_timeout(Some(options.timeout))?;
        socket.set_write_timeout(Some(options.timeout))?;
        let mut line = Self { socket, snapshot_bytes_max: options.snapshot_bytes_max };
        let key = options.key.as_ref();
        handshake::prove(&mut line.socket, &hello(options)?, key, |message| match message {
            Handshake::Refused(refused) => refusal(refused),
            other => FeedConnectError::Unexpected(other.name()),
        })?;
        let (opened, memory) = line.opened()?;
        Ok((line, opened, memory))
    }

    /// FeedOpened comes in one piece with its descriptor, Refused without any.
    fn opened(&self) -> Result<(FeedOpened, OwnedFd), FeedConnectError> {
        let mut words = [0u64; size_of::<FeedOpened>() / 8];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        let (length, descriptors) = receive_with_descriptors(&self.socket, bytes, 1)?;
        let bytes = &bytemuck::cast_slice::<u64, u8>(&words)[..length];
        if let Ok(Handshake::Refused(refused)) = decode::handshake(bytes) {
            return Err(refusal(refused));
        }
        let FeedTalk::FeedOpened(opened) = decode::feed_talk(bytes)? else {
            return Err(FeedConnectError::Unexpected("message in place of FeedOpened"));
        };
        let [memory] = <[OwnedFd; 1]>::try_from(descriptors)
            .map_err(|_| FeedConnectError::Unexpected("number of descriptors"))?;
        Ok((*opened, memory))
    }

    /// Asks for a snapshot and reads it.
    pub(super) fn snapshot(&mut self) -> Result<Books, FeedConnectError> {
        self.socket.write_all(bytemuck::bytes_of(&FeedRequest::default()))?;
        let mut words = [0; 16];
        handshake::read_message::<FeedConnectError>(&mut self.socket, &mut words)?;
        let head = match decode::feed_talk(bytemuck::cast_slice(&words))? {
            FeedTalk::FeedSnapshot(head) => *head,
            other => return Err(FeedConnectError::Unexpected(other.name())),
        };
        let body = self.read_body(&head)?;
        let body = &bytemuck::cast_slice::<u64, u8>(&body)[..head.bytes as usize];
        Ok(Books::from_snapshot(&head, body)?)
    }

    /// Memory grows with what has come, not with what was announced.
    fn read_body(&mut self, head: &FeedSnapshot) -> Result<Vec<u64>, FeedConnectError> {
        const STEP: usize = 1 << 17;
        if head.bytes > self.snapshot_bytes_max {
            let (bytes, most) = (head.bytes, self.snapshot_bytes_max);
            return Err(FeedConnectError::TooLong { bytes, most });
        }
        let words = (head.bytes as usize).div_ceil(8);
        let (mut body, mut left) = (Vec::new(), head.bytes as usize);
        while body.len() < words {
            let from = body.len();
            body.resize(words.min(from + STEP), 0);
            let step = left.min((body.len() - from) * 8);
            self.socket.read_exact(&mut bytemuck::cast_slice_mut(&mut body[from..])[..step])?;
            left -= step;
        }
        Ok(body)
    }

    /// Looks whether the engine has closed the connection; a system call. Nothing is due on it.
    pub(super) fn is_closed(&self) -> bool {
        if self.socket.set_nonblocking(true).is_err() {
            return true;
        }
        let alive = matches!((&self.socket).read(&mut [0]),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted));
        let back = self.socket.set_nonblocking(false);
        !alive || back.is_err()
    }
}

fn hello(options: &FeedOptions) -> io::Result<Hello> {
    let role = if options.key.is_some() { Role::ReadOnly } else { Role::Admin };
    Ok(Hello {
        role: role.to_wire(),
        lane: Lane::Hot.to_wire(),
        flags: LOGON_FEED,
        ..handshake::hello(options.key.as_ref(), options.name)?
    })
}

fn refusal(refused: &Refused) -> FeedConnectError {
    FeedConnectError::Refused {
        reason: RefusalReason::from_wire(refused.reason),
        reject: RejectReason::from_wire(refused.reject_reason),
    }
}
