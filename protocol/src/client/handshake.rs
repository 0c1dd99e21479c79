//! How a connection to the engine begins, whatever it is for: Hello, and the proof of a key. Called by
//! [`super::connect`] for sessions and by the feed's reader.

use crate::credentials::Secret;
use crate::message::decode::{self, DecodeError, Handshake};
use crate::message::enums::RejectReason;
use crate::message::handshake::{Hello, Proof, RefusalReason};
use crate::message::{MessageHeader, PROTOCOL_MAJOR, PROTOCOL_MINOR};
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
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

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

/// Connects to the engine's socket, for a handshake each of whose steps takes `limit` at the most.
pub(crate) fn dial(path: &Path, limit: Duration) -> io::Result<UnixStream> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // Before it connects: an engine that accepts nobody while many wait would be waited for without an end.
    for which in [Timeout::Send, Timeout::Recv] {
        set_socket_timeout(&socket, which, Some(limit))?;
    }
    let address = SocketAddrUnix::new(path)?;
    loop {
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
    socket.set_read_timeout(Some(limit))?;
    socket.set_write_timeout(Some(limit))?;
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

/// A refusal in words.
pub(crate) fn why(reason: Option<RefusalReason>, reject: Option<RejectReason>) -> String {
    let (name, meaning) = match (reason, reject) {
        (None, _) => return "for a reason that this client does not know".to_owned(),
        // A refusal has no detail.
        (Some(_), Some(reject)) => {
            (format!("{reject:?}"), reject.meaning().split("; `detail`").next())
        }
        (Some(reason), None) => (format!("{reason:?}"), Some(reason.meaning())),
    };
    format!("{name}: {}", meaning.unwrap_or_default().trim_end_matches('.'))
}

/// Says who we are, and proves it if there is a key. `out_of_place` tells what comes in place of a
/// challenge.
pub(crate) fn prove<E: From<io::Error> + From<DecodeError>>(
    socket: &mut (impl Read + Write),
    hello: &Hello,
    key: Option<&(KeyId, Secret)>,
    out_of_place: impl FnOnce(Handshake<'_>) -> E,
) -> Result<(), E> {
    socket.write_all(bytemuck::bytes_of(hello))?;
    let Some((_, secret)) = key else { return Ok(()) };
    let mut words = [0; 16];
    read_message::<E>(socket, &mut words)?;
    let nonce = match decode::handshake(bytemuck::cast_slice(&words))? {
        Handshake::Challenge(challenge) => challenge.nonce,
        other => return Err(out_of_place(other)),
    };
    let proof = Proof { mac: proof(secret.reveal(), &nonce, hello), ..Default::default() };
    Ok(socket.write_all(bytemuck::bytes_of(&proof))?)
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
                let limit = Duration::from_millis(20);
                let role = if key.is_some() { Role::Trader } else { Role::Adapter };
                let options = ClientOptions {
                    key: key.clone(),
                    handshake_timeout: limit,
                    ..ClientOptions::new(endpoint.clone(), role, Lane::Hot, name)
                };
                let told = Client::connect(&options).err().unwrap().to_string();
                let expected =
                    "does not answer: it took the connection and then nothing came for 20ms";
                assert!(told.contains(expected), "{endpoint:?}: {told}");
                let feed =
                    FeedOptions { key, timeout: limit, ..FeedOptions::new(endpoint.clone(), name) };
                let told = FeedReader::open(&feed).err().unwrap().to_string();
                assert_eq!(told, "feed connection: the engine did not answer within 20ms");
            }
        }
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
                "CapacityReached: A configured capacity is used up, or one order would look at more price \
                 levels than it may",
            ),
            (None, None, "for a reason that this client does not know"),
        ] {
            let told = refused(reason, reject);
            assert_eq!(told, format!("the engine refused the session: {words}"));
        }
        let long = RefusalReason::HistoryLost.meaning();
        assert!(long.contains("since `position` may"), "lines are joined by a blank: {long}");
    }
}
