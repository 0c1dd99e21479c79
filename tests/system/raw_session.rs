//! A session of the binary protocol without the client library: the handshake byte by byte, and
//! rings written through their descriptors without any of the library's checks. Called by
//! [`super::binary`] to be the client that no honest program is.

use super::http::Key;
use super::process::{WATCHDOG, eventually};
use crate::patience::Wait;
use hmac::{Hmac, KeyInit, Mac};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use sha2::Sha256;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use touchline_protocol::shm::descriptors::receive_with_descriptors;

/// Template ids of the handshake (protocol §5; `protocol/FORMATS.md`).
pub(crate) const HELLO: u16 = 300;
pub(crate) const CHALLENGE: u16 = 301;
const PROOF: u16 = 302;
const WELCOME: u16 = 303;
pub(crate) const REFUSED: u16 = 304;
/// Template id of a rejection.
pub(crate) const REJECTED: u16 = 240;
/// Reasons of a refused handshake.
pub(crate) const REFUSED_VERSION: u16 = 2;
pub(crate) const REFUSED_NOT_AUTHENTICATED: u16 = 3;

const SCHEMA: u16 = 0x4c54;
const SLOT: u64 = 64;
const SLOTS_AT: u64 = 4096;
const TAIL_AT: u64 = 0;
const HEAD_AT: u64 = 128;
const REQUEST_SLOTS: u32 = 1024;

/// Bytes behind a message header and a command header: see [`command`].
const COMMAND_AT: usize = 8;
const BODY_AT: usize = 48;

/// A message: header with the true block length, then the block.
pub(crate) fn message(template: u16, block: &[u8]) -> Vec<u8> {
    let length = u16::try_from(block.len()).expect("a short block");
    let mut bytes = Vec::new();
    for word in [length, template, SCHEMA, 1] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(block);
    bytes
}

/// Template id of a message.
pub(crate) fn template(bytes: &[u8]) -> u16 {
    u16::from_le_bytes([bytes[2], bytes[3]])
}

/// A little-endian number at an offset.
pub(crate) fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    bytes[at..at + length].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// What a Hello says.
pub(crate) struct Hello<'a> {
    pub(crate) major: u16,
    pub(crate) role: u8,
    pub(crate) lane: u8,
    pub(crate) key_id: u64,
    pub(crate) name: &'a str,
}

impl Hello<'_> {
    /// An honest trader's.
    pub(crate) const fn trader(key_id: u64, name: &str) -> Hello<'_> {
        Hello { major: 1, role: 1, lane: 1, key_id, name }
    }

    /// The 96 bytes on the socket.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut block = Vec::new();
        block.extend(self.major.to_le_bytes());
        block.extend(0_u16.to_le_bytes());
        block.extend([self.role, self.lane, 0, 0]);
        block.extend(self.key_id.to_le_bytes());
        block.push(u8::try_from(self.name.len()).expect("a short name"));
        block.extend(self.name.as_bytes());
        block.resize(48, 0);
        block.extend(REQUEST_SLOTS.to_le_bytes());
        block.extend(REQUEST_SLOTS.to_le_bytes());
        block.resize(88, 0);
        message(HELLO, &block)
    }
}

/// A connection to the engine's socket.
pub(crate) fn dial(socket: &Path) -> UnixStream {
    let near =
        rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).expect("a socket");
    // Of a Unix socket this bounds the connecting too, which waits while the queue of the engine is full.
    set_socket_timeout(&near, Timeout::Send, Some(WATCHDOG)).expect("a timeout can be set");
    let address = SocketAddrUnix::new(socket).expect("a short path");
    rustix::net::connect(&near, &address).expect("the engine listens on its socket");
    let stream = UnixStream::from(near);
    stream.set_read_timeout(Some(WATCHDOG)).expect("a timeout can be set");
    stream
}

/// Reads one message; `None` when the engine has closed the connection instead.
pub(crate) fn read_message(stream: &mut impl Read) -> Option<Vec<u8>> {
    let mut bytes = vec![0; 8];
    if let Err(error) = stream.read_exact(&mut bytes) {
        assert_closed(&error);
        return None;
    }
    let length = number(&bytes, 0, 2) as usize;
    bytes.resize(8 + length, 0);
    stream.read_exact(&mut bytes[8..]).expect("the rest of a message");
    Some(bytes)
}

fn assert_closed(error: &io::Error) {
    let timeout = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
    assert!(!timeout, "the engine neither answers nor closes the connection");
}

/// True once the engine has closed the connection; waits for it.
pub(crate) fn is_closed(stream: &mut impl Read) -> bool {
    let wait = Wait::begin();
    loop {
        wait.go_on("the engine talks on and does not close the connection");
        match stream.read(&mut [0; 256]) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                assert_closed(&error);
                return true;
            }
        }
    }
}

/// An open session whose request ring can be filled with anything.
pub(crate) struct RawSession {
    socket: UnixStream,
    client_pages: File,
    pub(crate) engine_pages: File,
    pub(crate) control_page: File,
    key_id: u64,
    session: u32,
    epoch: u32,
    sequence: u64,
    tail: u64,
    replies_read: u64,
    reply_slots: u64,
}

impl RawSession {
    /// Logs on as a trader.
    pub(crate) fn open(socket: &Path, key_id: u64, key: &Key, name: &str) -> Self {
        let mut stream = dial(socket);
        let hello = Hello::trader(key_id, name).bytes();
        stream.write_all(&hello).expect("the engine reads the hello");
        let challenge = read_message(&mut stream).expect("a challenge");
        assert_eq!(template(&challenge), CHALLENGE);
        let proof = proof(key, &challenge[8..40], &hello);
        stream.write_all(&message(PROOF, &proof)).expect("the engine reads the proof");
        let mut welcome = [0; 256];
        let (length, descriptors) =
            receive_with_descriptors(&stream, &mut welcome, 3).expect("a welcome");
        assert_eq!((length, template(&welcome)), (80, WELCOME), "logon of {name}");
        let mut files = descriptors.into_iter().map(File::from);
        let mut next = || files.next().expect("three descriptors");
        Self {
            socket: stream,
            client_pages: next(),
            engine_pages: next(),
            control_page: next(),
            key_id,
            session: number(&welcome, 8, 4) as u32,
            epoch: number(&welcome, 12, 4) as u32,
            sequence: number(&welcome, 16, 8),
            tail: 0,
            replies_read: 0,
            reply_slots: number(&welcome, 32, 4),
        }
    }

    /// The session's number and epoch.
    pub(crate) const fn identity(&self) -> (u32, u32) {
        (self.session, self.epoch)
    }

    /// The socket that it came by.
    pub(crate) const fn socket(&self) -> &UnixStream {
        &self.socket
    }

    /// The sequence of the last command that [`Self::command`] made.
    pub(crate) const fn last_sequence(&self) -> u64 {
        self.sequence
    }

    /// A command as this session should send it: the next sequence, its own session and epoch.
    pub(crate) fn command(&mut self, template: u16, body: &[u8]) -> Vec<u8> {
        self.sequence += 1;
        let mut block = Vec::new();
        block.extend(7_u64.to_le_bytes());
        block.extend(self.sequence.to_le_bytes());
        block.extend([0; 8]);
        block.extend(self.key_id.to_le_bytes());
        block.extend(self.session.to_le_bytes());
        block.extend(self.epoch.to_le_bytes());
        assert_eq!(block.len(), BODY_AT - COMMAND_AT);
        block.extend(body);
        message(template, &block)
    }

    /// Writes bytes into the ring from its tail on, whatever they are, and publishes `slots` slots.
    pub(crate) fn push(&mut self, bytes: &[u8], slots: u64) {
        let mut padded = bytes.to_vec();
        padded.resize(bytes.len().next_multiple_of(SLOT as usize), 0);
        for (index, slot) in padded.chunks(SLOT as usize).enumerate() {
            let place = (self.tail + index as u64) % u64::from(REQUEST_SLOTS);
            self.client_pages
                .write_all_at(slot, SLOTS_AT + place * SLOT)
                .expect("the client's pages may be written");
        }
        self.set_tail(self.tail.wrapping_add(slots));
    }

    /// Writes a whole message as an honest client would.
    pub(crate) fn push_message(&mut self, bytes: &[u8]) {
        self.push(bytes, (bytes.len() as u64).div_ceil(SLOT));
    }

    /// States another tail of the request ring.
    pub(crate) fn set_tail(&mut self, tail: u64) {
        self.tail = tail;
        self.client_pages.write_all_at(&tail.to_le_bytes(), TAIL_AT).expect("its own index");
    }

    /// States another head of the reply ring.
    pub(crate) fn set_head(&self, head: u64) {
        self.client_pages.write_all_at(&head.to_le_bytes(), HEAD_AT).expect("its own index");
    }

    /// True once the engine has closed the connection; false if it does not.
    pub(crate) fn ends(&self) -> bool {
        self.socket.set_nonblocking(true).expect("a socket of ours");
        eventually(|| self.has_ended())
    }

    /// Looks at the socket, which has to be non-blocking.
    fn has_ended(&self) -> bool {
        match (&self.socket).read(&mut [0; 8]) {
            Ok(read) => read == 0,
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        }
    }

    /// Waits for the next reply; `None` when the engine has ended the connection instead.
    pub(crate) fn next_reply(&mut self) -> Option<Vec<u8>> {
        self.socket.set_nonblocking(true).expect("a socket of ours");
        let mut ended = false;
        let answered = eventually(|| {
            ended = self.has_ended();
            ended || self.published_replies() != self.replies_read
        });
        assert!(answered, "neither a reply nor an end");
        (self.published_replies() != self.replies_read).then(|| self.take_reply())
    }

    fn published_replies(&self) -> u64 {
        let mut tail = [0; 8];
        self.engine_pages.read_exact_at(&mut tail, TAIL_AT).expect("the engine's pages");
        u64::from_le_bytes(tail)
    }

    fn take_reply(&mut self) -> Vec<u8> {
        let mut bytes = self.read_slot(self.replies_read);
        let length = 8 + number(&bytes, 0, 2) as usize;
        let slots = (length as u64).div_ceil(SLOT);
        for slot in 1..slots {
            bytes.extend(self.read_slot(self.replies_read + slot));
        }
        bytes.truncate(length);
        self.replies_read += slots;
        self.set_head(self.replies_read);
        bytes
    }

    fn read_slot(&self, index: u64) -> Vec<u8> {
        let mut slot = vec![0; SLOT as usize];
        let at = SLOTS_AT + index % self.reply_slots * SLOT;
        self.engine_pages.read_exact_at(&mut slot, at).expect("the engine's pages");
        slot
    }
}

/// The answer to a challenge: HMAC-SHA256 over its nonce and the whole Hello.
pub(crate) fn proof(key: &Key, nonce: &[u8], hello: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.secret.as_bytes())
        .expect("HMAC takes keys of any length");
    mac.update(nonce);
    mac.update(hello);
    mac.finalize().into_bytes().to_vec()
}

/// The block of a NewOrder behind its command header: a LIMIT order on symbol 0.
pub(crate) fn limit_body(side: u8, price: i64, quantity: i64) -> Vec<u8> {
    let mut body = vec![0; 96];
    body[4..8].copy_from_slice(&[side, 1, 1, 0]);
    body[8..16].copy_from_slice(&price.to_le_bytes());
    body[16..24].copy_from_slice(&quantity.to_le_bytes());
    body
}
