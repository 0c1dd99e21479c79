//! How to open the feed, and what of it no engine takes, which would be refused as an invalid Hello without a word of
//! what is wrong: found before anything is dialled. Called by [`super::connect`].

use std::time::Duration;

use crate::client::Endpoint;
use crate::credentials::Secret;
use crate::message::handshake::HEARTBEAT_SECONDS_MAX;
use crate::text::Name;
use crate::units::{Incarnation, KeyId, Position};
use crate::wait::WaitStrategy;

/// How to open the feed.
#[derive(Clone, Debug)]
pub struct FeedOptions {
    /// Where, and over what.
    pub endpoint: Endpoint,
    /// Key and secret of a reader; none for the engine's own user, who reads over shared memory (as role Admin). Over a
    /// stream there is always one.
    pub key: Option<(KeyId, Secret)>,
    /// The reader's name, for the operator; 1 to 31 printable characters of ASCII.
    pub name: Name,
    /// How [`super::FeedReader::wait`] waits.
    pub wait: WaitStrategy,
    /// Longest that each step of the handshake may take, and behind that the wait for a snapshot, each MiB of one,
    /// and what is left of it then; not zero.
    pub timeout: Duration,
    /// Longest snapshot that is taken, in bytes: 64 for each order, and 80 for each symbol. Books that would make a
    /// longer one are not followed any further; in memory they take some times as much.
    pub snapshot_bytes_max: u64,
    /// Of a stream: seconds after which a silent side sends a heartbeat, 1 to 60.
    pub heartbeat_seconds: u8,
    /// What [`super::FeedReader::last_seen`] gave at the end of the connection before: an engine whose log does not
    /// have it refuses ([`HistoryLost`](super::FeedConnectError::HistoryLost)), for something that the feed told was
    /// taken back. One before handshake 1.5 does not look at it; such an engine tells no
    /// [`super::FeedReader::position_read`] either.
    pub last_seen: Option<(Incarnation, Position)>,
}

impl FeedOptions {
    /// Without a key, adaptive waiting, 5 s per step, snapshots of up to 1 GiB, heartbeats every 10 s.
    #[must_use]
    pub fn new(endpoint: impl Into<Endpoint>, name: Name) -> Self {
        Self {
            endpoint: endpoint.into(),
            key: None,
            name,
            wait: WaitStrategy::Adaptive,
            timeout: Duration::from_secs(5),
            snapshot_bytes_max: 1 << 30,
            heartbeat_seconds: 10,
            last_seen: None,
        }
    }

    /// # Errors
    /// The first option that no engine takes.
    pub(super) fn check(&self) -> Result<(), FeedOptionsError> {
        if self.name.is_empty() {
            return Err(FeedOptionsError::NoName);
        }
        let is_stream = !matches!(self.endpoint, Endpoint::SharedMemory(_));
        match &self.key {
            Some((KeyId(0), _)) => return Err(FeedOptionsError::KeyOfNobody),
            None if is_stream => return Err(FeedOptionsError::NoKey),
            _ => {}
        }
        if self.timeout.is_zero() {
            return Err(FeedOptionsError::NoTime);
        }
        if is_stream && !(1..=HEARTBEAT_SECONDS_MAX).contains(&self.heartbeat_seconds) {
            return Err(FeedOptionsError::Heartbeats(self.heartbeat_seconds));
        }
        Ok(())
    }
}

/// An option that cannot be, or does not go together with another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FeedOptionsError {
    /// Every reader has one.
    #[error("the reader has no name")]
    NoName,
    /// Over a stream every reader proves who it is.
    #[error("the feed over a stream needs a key: without one it is read over shared memory only")]
    NoKey,
    /// Keys are numbered from 1 on.
    #[error("there is no key 0")]
    KeyOfNobody,
    /// Nothing is answered in no time.
    #[error("no time for the handshake and for snapshots")]
    NoTime,
    /// Of the feed the engine has no setting, and such a silence is no sign of life.
    #[error("heartbeats every {0} s: 1 to {HEARTBEAT_SECONDS_MAX} are possible")]
    Heartbeats(u8),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::{FeedConnectError, FeedReader};
    use std::net::SocketAddr;
    use std::path::PathBuf;

    #[test]
    fn what_no_engine_takes_is_told_before_anything_is_dialled() {
        let folder = tempfile::tempdir().unwrap();
        let nobody: PathBuf = folder.path().join("engine.sock");
        let key = |number| Some((KeyId(number), "secret".to_owned().into()));
        let shared = FeedOptions::new(nobody.clone(), Name::new("reader").unwrap());
        let endpoint = Endpoint::Unix(nobody);
        let stream = FeedOptions { endpoint, key: key(7), ..shared };
        let tcp = Endpoint::Tcp(SocketAddr::from(([127, 0, 0, 1], 1)));
        let cases = [
            (
                FeedOptions { name: Name::new("").unwrap(), ..shared.clone() },
                FeedOptionsError::NoName,
            ),
            (FeedOptions { key: None, ..stream.clone() }, FeedOptionsError::NoKey),
            (FeedOptions { key: None, endpoint: tcp, ..stream.clone() }, FeedOptionsError::NoKey),
            (FeedOptions { key: key(0), ..stream.clone() }, FeedOptionsError::KeyOfNobody),
            (FeedOptions { key: key(0), ..shared.clone() }, FeedOptionsError::KeyOfNobody),
            (FeedOptions { timeout: Duration::ZERO, ..shared.clone() }, FeedOptionsError::NoTime),
            (
                FeedOptions { heartbeat_seconds: 0, ..stream.clone() },
                FeedOptionsError::Heartbeats(0),
            ),
            (
                FeedOptions { heartbeat_seconds: 61, ..stream.clone() },
                FeedOptionsError::Heartbeats(61),
            ),
        ];
        for (options, expected) in cases {
            match FeedReader::open(&options).map(|_| ()) {
                Err(FeedConnectError::Options(found)) => assert_eq!(found, expected),
                other => panic!("{other:?} in place of {expected:?}"),
            }
        }
        let [least, most] =
            [1, 60].map(|heartbeat_seconds| FeedOptions { heartbeat_seconds, ..stream.clone() });
        let keyed = FeedOptions { key: key(7), heartbeat_seconds: 0, ..shared.clone() };
        for options in [shared, keyed, least, most] {
            let outcome = FeedReader::open(&options).map(|_| ());
            assert!(matches!(outcome, Err(FeedConnectError::Connect { .. })), "{outcome:?}");
        }
    }
}
