//! The handshake, before there is a session: Hello → (Challenge → Proof →) Welcome or Refused. Spoken
//! by the engine's gateway and by the client library, on the engine's Unix socket and over TCP.
//! Template ids 300-319.

pub use super::enums::RefusalReason;
use super::{MessageHeader, message};
use crate::text::Name;
use crate::units::{Epoch, Incarnation, KeyId, Position, Sequence, SessionId};

/// [`Hello::carrier`]: two rings in shared memory, whose descriptors come with the Welcome. Over the
/// engine's Unix socket only.
pub const CARRIER_RINGS: u8 = 0;
/// [`Hello::carrier`]: the connection itself, over which the same messages go on behind the Welcome.
pub const CARRIER_STREAM: u8 = 1;
/// [`Hello::acknowledgement`]: replies come as soon as their transaction is appended.
pub const ACKNOWLEDGE_APPENDED: u8 = 0;
/// [`Hello::acknowledgement`]: replies come once their transaction is on disk.
pub const ACKNOWLEDGE_DURABLE: u8 = 1;
/// Longest interval of heartbeats, seconds.
pub const HEARTBEAT_SECONDS_MAX: u8 = 60;
/// Intervals of heartbeats without a byte after which either side counts its peer as gone: a line that is cut says
/// nothing. In shared memory those without a move of the client's, after which the engine does.
pub const SILENT_INTERVALS: u32 = 3;

message! {
    /// First message of a client.
    Hello, template 300, 96 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// `PROTOCOL_MAJOR` of the client: another major is refused.
        8 protocol_major: u16,
        /// `PROTOCOL_MINOR` of the client.
        10 protocol_minor: u16,
        /// `Role`.
        12 role: u8,
        /// `Lane`: of a trader or a read-only session Hot, anything else is refused.
        13 lane: u8,
        /// `LOGON_*` bits.
        14 flags: u8,
        /// `CARRIER_*`: what carries the session; other numbers are refused.
        15 carrier: u8,
        /// The key of a trader or a read-only session; 0 for roles of the local user.
        16 key_id: KeyId,
        /// The session's name, unique per key; not empty. To be kept from run to run: the session of a name is
        /// there for ever, with the role and lane of its first logon, and a key has 32 names at the most. A reader of
        /// the public feed has a name too, whichever: none is kept.
        24 name: Name,
        /// Wished capacity of the request ring in slots of 64 bytes: a power of two, 1,024 to 16,384.
        /// Not looked at for a stream, as is the reply ring's.
        56 request_slots: u32,
        /// Wished capacity of the reply ring, likewise.
        60 reply_slots: u32,
        /// Incarnation of the engine that told of `last_position`, as its Welcome or `FeedOpened` has it; 0 for none.
        64 last_incarnation: Incarnation,
        /// `ACKNOWLEDGE_*`. Over rings the client itself waits for the watermark, and the engine only hurries
        /// to move it.
        68 acknowledgement: u8,
        /// Seconds after which a silent side of a stream sends a heartbeat, 1 to 60; 0: the engine's setting, which
        /// is refused of the public feed. In shared memory 1 to 60: so often, at the least, the client moves `alive`
        /// in its pages or sends something, and the engine ends its connection after three such intervals in which it
        /// did neither; 0: it is not watched. There an engine before handshake 1.7 refuses all but 0, and any engine
        /// does of the public feed.
        69 heartbeat_seconds: u8,
        /// Zero.
        70 reserved: [u8; 2],
        /// Last log position that the client saw: that of the Welcome, of an envelope that is not replayed, or of what
        /// it read of the feed. 0 for none.
        72 last_position: Position,
        /// Chosen by the client, mixed into the proof.
        80 client_nonce: [u8; 16],
    }
    reserved { reserved } texts { name }
}

message! {
    /// The engine's answer to a Hello with a key: prove that you hold its secret. Other roles get the Welcome at once.
    Challenge, template 301, 40 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// Fresh and unpredictable.
        8 nonce: [u8; 32],
    }
    reserved {} texts {}
}

message! {
    /// HMAC-SHA256, keyed with the key's secret as it is shown, 64 letters and digits of ASCII, over the challenge's
    /// nonce and behind it the whole Hello as it was sent, its message header included.
    Proof, template 302, 40 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// The 32 bytes of it.
        8 mac: [u8; 32],
    }
    reserved {} texts {}
}

message! {
    /// The session is open. With rings three descriptors travel with it: the client pages, the engine
    /// pages (read-only) and the log's control page (read-only).
    Welcome, template 303, 80 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// The session's number.
        8 session: SessionId,
        /// The epoch to put into each command.
        12 epoch: Epoch,
        /// The last sequence that was decided: go on above it.
        16 last_sequence: Sequence,
        /// The log's present incarnation.
        24 incarnation: Incarnation,
        /// Capacity of the request ring in slots; 0 for a stream.
        28 request_slots: u32,
        /// Capacity of the reply ring in slots; 0 for a stream.
        32 reply_slots: u32,
        /// Seconds after which a silent side sends a heartbeat; three times as long a silence ends the
        /// connection. With rings that of the Hello, which binds the client alone; 0: it is not watched.
        36 heartbeat_seconds: u32,
        /// Position behind the logon in the log.
        40 position: Position,
        /// The log's identity.
        48 log_id: [u8; 16],
        /// The log is on disk up to here.
        64 durable: Position,
        /// Zero.
        72 reserved: u64,
    }
    reserved { reserved } texts {}
}

message! {
    /// The session is not opened; the engine closes the connection.
    Refused, template 304, 24 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// `RefusalReason`.
        8 reason: u16,
        /// `PROTOCOL_MAJOR` of the engine.
        10 protocol_major: u16,
        /// `PROTOCOL_MINOR` of the engine.
        12 protocol_minor: u16,
        /// `RejectReason` when the core rejected the logon, else 0.
        14 reject_reason: u16,
        /// Up to where the log has what the client was told, when its history is lost, else 0. (Of older engines how
        /// far the log goes by then, which tells nothing of that.)
        16 position: Position,
    }
    reserved {} texts {}
}
