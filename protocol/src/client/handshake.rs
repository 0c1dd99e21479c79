//! How a connection to the engine begins, whatever it is for: Hello, and the proof of a key. Called by
//! [`super::connect`] for sessions and by the feed's reader.

use crate::credentials::Secret;
use crate::message::decode::{self, DecodeError, Handshake};
use crate::message::enums::RejectReason;
use crate::message::handshake::{Hello, Proof, RefusalReason};
use crate::message::{MessageHeader, PROTOCOL_MAJOR, PROTOCOL_MINOR};
use crate::shm::descriptors::{PassError, receive_once};
use crate::text::Name;
use crate::units::KeyId;
use hmac::{Hmac, KeyInit, Mac};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use sha2::Sha256;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// The proof that a client gives for a challenge: HMAC-SHA256 keyed with the secret's text over the
/// nonce and the whole Hello. Both sides compute it here.
#[must_use]
pub fn proof(secret: &str, nonce: &[u8; 32], hello: &Hello) -> [u8; 32] {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(nonce);
    mac.update(bytemuck::bytes_of(hello));
    mac.finalize().into_bytes().into()
}

/// One step of a handshake over a socket, which ends in time however many calls it takes: the limit of a socket
/// begins anew with each of them, so with each byte that comes and each signal.
pub(crate) struct Step<S> {
    socket: S,
    begin: Instant,
    limit: Duration,
}

impl<S: AsFd> Step<S> {
    /// It begins now.
    pub(crate) fn begin(socket: S, limit: Duration) -> Self {
        Self { socket, begin: Instant::now(), limit }
    }

    /// Lets the next call of the socket take what is left.
    fn allow(&self, which: Timeout) -> io::Result<()> {
        let left = self.limit.saturating_sub(self.begin.elapsed());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        // In whole microseconds, which is what the system takes: rounded up it may come to a second too many.
        let left = Duration::new(left.as_secs(), left.subsec_micros().max(1) * 1000);
        Ok(set_socket_timeout(&self.socket, which, Some(left))?)
    }
}

impl<S: AsFd + Read> Read for Step<S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.allow(Timeout::Recv)?;
        self.socket.read(into)
    }
}

impl<S: AsFd + Write> Write for Step<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.allow(Timeout::Send)?;
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

impl Step<&UnixStream> {
    /// One message with its descriptors, which come in one piece: see [`receive_with_descriptors`].
    ///
    /// [`receive_with_descriptors`]: crate::shm::descriptors::receive_with_descriptors
    pub(crate) fn receive_with_descriptors(
        &self,
        into: &mut [u8],
        allowed: usize,
    ) -> Result<(usize, Vec<OwnedFd>), PassError> {
        loop {
            self.allow(Timeout::Recv)?;
            match receive_once(self.socket, into, allowed) {
                Err(PassError::System(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }
}

/// Connects to the engine's socket, for a handshake each of whose steps takes `limit` at the most.
pub(crate) fn dial(path: &Path, limit: Duration) -> io::Result<UnixStream> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    let address = SocketAddrUnix::new(path)?;
    let step = Step::begin(&socket, limit);
    loop {
        // Before it connects: an engine that accepts nobody while many wait would be waited for without an end.
        step.allow(Timeout::Send)?;
        match connect(&socket, &address) {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
            done => break done?,
        }
    }
    Ok(socket.into())
}

/// As [`dial`], to the engine's TCP address.
pub(crate) fn dial_tcp(address: SocketAddr, limit: Duration) -> io::Result<TcpStream> {
    let socket = TcpStream::connect_timeout(&address, limit)?;
    socket.set_nodelay(true)?;
    Ok(socket)
}

/// What every Hello has: versions, key, name and a nonce of its own.
pub(crate) fn hello(key: Option<&(KeyId, Secret)>, name: Name) -> io::Result<Hello> {
    let mut client_nonce = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut client_nonce)?;
    Ok(Hello {
        protocol_major: PROTOCOL_MAJOR,
        protocol_minor: PROTOCOL_MINOR,
        key_id: key.map_or(KeyId(0), |(key, _)| *key),
        name,
        client_nonce,
        ..Default::default()
    })
}

/// What ended a handshake of which each step may take `limit`: sockets tell of a time that is over as of a call
/// that would have to wait.
pub(crate) fn told(error: io::Error, limit: Duration) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => io::Error::new(
            io::ErrorKind::TimedOut,
            format!("the engine did not answer within {limit:?}"),
        ),
        _ => error,
    }
}

/// What a client knows of a capacity that keeps it from logging on: a refusal does not say which one it is.
const NO_CAPACITY: &str = "the session's name is new, and limits.sessions of the venue's settings, or the 32 names that a \
                           key may have, are used up: log on under a name of before, or raise limits.sessions and \
                           start the engine again, whose own lines tell which limit it is; or, of a name of before, \
                           limits.pending_work is used up at present";

/// A refusal in words.
pub(crate) fn why(reason: Option<RefusalReason>, reject: Option<RejectReason>) -> String {
    let (name, meaning) = match (reason, reject) {
        (None, _) => return "for a reason that this client does not know".to_owned(),
        (Some(_), Some(reject @ RejectReason::CapacityReached)) => {
            (format!("{reject:?}"), Some(NO_CAPACITY))
        }
        // A refusal has no detail.
        (Some(_), Some(reject)) => {
            (format!("{reject:?}"), reject.meaning().split("; `detail`").next())
        }
        (Some(reason), None) => (format!("{reason:?}"), Some(reason.meaning())),
    };
    format!("{name}: {}", meaning.unwrap_or_default().trim_end_matches('.'))
}

/// Says who we are, and proves it if there is a key, in steps of `limit` at the most. `out_of_place` tells what
/// comes in place of a challenge.
pub(crate) fn prove<E: From<io::Error> + From<DecodeError>>(
    socket: &mut (impl Read + Write + AsFd),
    hello: &Hello,
    (key, limit): (Option<&(KeyId, Secret)>, Duration),
    out_of_place: impl FnOnce(Handshake<'_>) -> E,
) -> Result<(), E> {
    Step::begin(&mut *socket, limit).write_all(bytemuck::bytes_of(hello))?;
    let Some((_, secret)) = key else { return Ok(()) };
    let mut words = [0; 16];
    read_message::<E>(&mut Step::begin(&mut *socket, limit), &mut words)?;
    let nonce = match decode::handshake(bytemuck::cast_slice(&words))? {
        Handshake::Challenge(challenge) => challenge.nonce,
        other => return Err(out_of_place(other)),
    };
    let proof = Proof { mac: proof(secret.reveal(), &nonce, hello), ..Default::default() };
    Ok(Step::begin(socket, limit).write_all(bytemuck::bytes_of(&proof))?)
}

/// Reads one message: the header, then as much as it says, both bounded.
pub(crate) fn read_message<E: From<io::Error> + From<DecodeError>>(
    socket: &mut impl Read,
    words: &mut [u64; 16],
) -> Result<(), E> {
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(words);
    socket.read_exact(&mut bytes[..MessageHeader::BYTES])?;
    let header: MessageHeader = bytemuck::pod_read_unaligned(&bytes[..MessageHeader::BYTES]);
    let end = MessageHeader::BYTES + usize::from(header.block_length);
    let block = bytes
        .get_mut(MessageHeader::BYTES..end)
        .ok_or(DecodeError::Template { template: header.template_id })?;
    Ok(socket.read_exact(block)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Client, ClientOptions, ConnectError, Endpoint};
    use crate::feed::{FeedOptions, FeedReader};
    use crate::message::enums::{Lane, Role};
    use crate::message::handshake::{Challenge, Welcome};
    use crate::patience::join;
    use rustix::net::{bind, listen};
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;
    use std::thread;

    #[test]
    fn an_engine_that_accepts_nobody_is_waited_for_no_longer_than_is_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("engine.sock");
        let address = SocketAddrUnix::new(&path).unwrap();
        let socket = |flags| socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
        let engine = socket(SocketFlags::CLOEXEC).unwrap();
        bind(&engine, &address).unwrap();
        listen(&engine, 0).unwrap();
        let mut crowd = Vec::new();
        loop {
            crowd.push(socket(SocketFlags::NONBLOCK | SocketFlags::CLOEXEC).unwrap());
            if connect(crowd.last().unwrap(), &address).is_err() {
                break;
            }
        }
        let dialling = thread::spawn(move || dial(&path, Duration::from_millis(20)));
        let error = join(dialling, "dialling").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn an_engine_that_says_nothing_did_not_answer_in_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("engine.sock");
        let _silent = UnixListener::bind(&path).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let name = Name::new("client").unwrap();
        let endpoints = [
            Endpoint::SharedMemory(path.clone()),
            Endpoint::Unix(path),
            Endpoint::Tcp(tcp.local_addr().unwrap()),
        ];
        for endpoint in endpoints {
            for key in [None, Some((KeyId(7), Secret::from("secret".to_owned())))] {
                // Long enough for the machine to take the connection meanwhile.
                let limit = Duration::from_millis(500);
                let role = if key.is_some() { Role::Trader } else { Role::Adapter };
                let options = ClientOptions {
                    key: key.clone(),
                    handshake_timeout: limit,
                    ..ClientOptions::new(endpoint.clone(), role, Lane::Hot, name)
                };
                let told = Client::connect(&options).err().unwrap().to_string();
                let expected =
                    "does not answer: it took the connection and then nothing came for 500ms";
                assert!(told.contains(expected), "{endpoint:?}: {told}");
                if key.is_none() && !matches!(endpoint, Endpoint::SharedMemory(_)) {
                    // The feed needs one there.
                    continue;
                }
                let feed =
                    FeedOptions { key, timeout: limit, ..FeedOptions::new(endpoint.clone(), name) };
                let told = FeedReader::open(&feed).err().unwrap().to_string();
                assert_eq!(told, "feed connection: the engine did not answer within 500ms");
            }
        }
    }

    /// Says a Challenge and a Welcome so slowly that each byte comes in time and the whole does not.
    fn trickle(mut socket: impl Read + Write) {
        let challenge = Challenge::default();
        let mut hello = [0; size_of::<Hello>()];
        if socket.read_exact(&mut hello).is_err() {
            return;
        }
        for byte in bytemuck::bytes_of(&challenge) {
            thread::sleep(Duration::from_millis(20));
            if socket.write_all(&[*byte]).is_err() {
                return;
            }
        }
        // A client that waits for so long is let in.
        let _proof = socket.read_exact(&mut [0; size_of::<Proof>()]);
        let _welcome = socket.write_all(bytemuck::bytes_of(&Welcome::default()));
    }

    #[test]
    fn a_step_takes_no_longer_than_is_allowed_though_each_byte_does() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("engine.sock");
        let unix = UnixListener::bind(&path).unwrap();
        let name = Name::new("client").unwrap();
        let limit = Duration::from_millis(200);
        let key = Some((KeyId(7), Secret::from("secret".to_owned())));
        let endpoint = Endpoint::Unix(path.clone());
        let options = ClientOptions {
            key: key.clone(),
            handshake_timeout: limit,
            ..ClientOptions::new(endpoint.clone(), Role::Trader, Lane::Hot, name)
        };
        let feed = FeedOptions { key, timeout: limit, ..FeedOptions::new(endpoint, name) };
        let feed_in_memory = FeedOptions { endpoint: Endpoint::SharedMemory(path), ..feed.clone() };
        let engine = thread::spawn(move || (0..3).for_each(|_| trickle(unix.accept().unwrap().0)));
        let told = Client::connect(&options).map(|_| ());
        assert!(matches!(told, Err(ConnectError::NoAnswer { .. })), "{told:?}");
        for feed in [feed, feed_in_memory] {
            let told = FeedReader::open(&feed).err().unwrap().to_string();
            assert_eq!(told, "feed connection: the engine did not answer within 200ms");
        }
        join(engine, "the engine");
    }

    #[test]
    fn a_refusal_is_told_by_its_reasons_own_words() {
        let refused = |reason, reject| ConnectError::Refused { reason, reject }.to_string();
        for (reason, reject, words) in [
            (Some(RefusalReason::Malformed), None, "Malformed: Not a message of the handshake"),
            (
                Some(RefusalReason::Rejected),
                Some(RejectReason::UnknownKey),
                "UnknownKey: No such key, or it is revoked",
            ),
            (
                Some(RefusalReason::Rejected),
                Some(RejectReason::CapacityReached),
                "CapacityReached: the session's name is new, and limits.sessions of the venue's settings, or the 32 \
                 names that a key may have, are used up: log on under a name of before, or raise limits.sessions and \
                 start the engine again, whose own lines tell which limit it is; or, of a name of before, \
                 limits.pending_work is used up at present",
            ),
            (None, None, "for a reason that this client does not know"),
        ] {
            let told = refused(reason, reject);
            assert_eq!(told, format!("the engine refused the session: {words}"));
        }
        let long = RefusalReason::HistoryLost.meaning();
        assert!(long.contains("told behind `position` may"), "lines are joined by a blank: {long}");
    }
}
