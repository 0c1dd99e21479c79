//! The engine's own commands, template ids 80-99.

use super::CommandHeader;
use crate::message::{MessageHeader, message};
use crate::text::Name;
use crate::units::{Epoch, SessionId};

message! {
    /// The engine started: every connection of the log before is ended by it.
    EngineStarted, template 80, 56 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// From [`SessionId::ENGINE`].
        8 command: CommandHeader,
        /// This start's incarnation.
        48 incarnation: u32,
        /// Milliseconds for which no engine ran before this start, as far as can be told; 2³² − 1: so long or
        /// longer; 0 in a log's first start, and where an older engine wrote it. Nothing is decided by it.
        52 off_ms: u32,
    }
    reserved {} texts {}
}

/// Cancel the session's orders when its connection ends, or when it is replaced by a newer one. An engine that ends,
/// by a crash or in order, leaves them: behind the next start they stay, and may be filled, for
/// `engine.reconnect_seconds`, 10 s by default; then they are cancelled, unless the session has logged on by then, with
/// this flag or without. Over a stream a client that stands still ends its connection
/// by its silence, and over shared memory if its Hello names `heartbeat_seconds`; if not, only the end of its process
/// ends it there, or of its socket.
pub const LOGON_CANCEL_ON_DISCONNECT: u8 = 1;
/// Tell the session what happens to all orders of its account, whoever placed them.
pub const LOGON_ACCOUNT_EVENTS: u8 = 2;
/// In a Hello, never in a logon: replies to a `NewOrder` come without its `OrderAccepted`.
pub const LOGON_BRIEF: u8 = 4;
/// In a Hello, never in a logon: as `LOGON_BRIEF`, and an `OrderOpened`, `OrderClosed` or `OrderFilled` says what needs
/// no more.
pub const LOGON_TERSE: u8 = 8;
/// What an engine that does not know it may leave out: how much a session is told.
pub const LOGON_WISHES: u8 = LOGON_BRIEF | LOGON_TERSE;
/// All that a session may ask for in its Hello.
pub const LOGON_OF_SESSIONS: u8 = LOGON_CANCEL_ON_DISCONNECT | LOGON_ACCOUNT_EVENTS | LOGON_WISHES;

/// In a Hello, never in a logon: the public feed is wanted and no session.
pub const LOGON_FEED: u8 = 128;

message! {
    /// A peer proved who it is: raises the session's epoch and so fences its older connection.
    Logon, template 81, 104 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// From [`SessionId::ENGINE`]; `key_id` is the trader's key.
        8 command: CommandHeader,
        /// The session's name, unique per key.
        48 name: Name,
        /// `Role`.
        80 role: u8,
        /// `Lane`.
        81 lane: u8,
        /// `LOGON_*` bits.
        82 flags: u8,
        /// Zero.
        83 reserved: [u8; 5],
        /// Last incarnation that the client saw; 0 for none.
        88 last_incarnation: u32,
        /// Zero.
        92 reserved_1: u32,
        /// Last log position that the client saw; 0 for none.
        96 last_position: u64,
    }
    reserved { reserved, reserved_1 } texts { name }
}

message! {
    /// A connection ended. Changes nothing unless `epoch` is the session's present one.
    ConnectionEnded, template 82, 56 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// From [`SessionId::ENGINE`].
        8 command: CommandHeader,
        /// The session whose connection ended.
        48 ended_session: SessionId,
        /// The epoch of that connection.
        52 ended_epoch: Epoch,
    }
    reserved {} texts {}
}

message! {
    /// Runs the head of the pending work, at most `max_steps` steps of it.
    RunPending, template 83, 48 bytes {
        /// SBE header.
        0 header: MessageHeader,
        /// From [`SessionId::ENGINE`].
        8 command: CommandHeader,
    }
    reserved {} texts {}
}
