//! Commands: what sessions and the engine itself ask of the core. Template ids 1-39 are the hot
//! lane's, 40-79 the cold lane's, 80-99 the engine's own.
//!
//! A command that is accepted is written into the log as it stands here, followed by its events.

mod definition;
mod engine;
mod order;
mod record;

pub use definition::*;
pub use engine::*;
pub use order::*;
pub use record::*;

use crate::units::{Epoch, KeyId, Sequence, SessionId};
use bytemuck::{Pod, Zeroable};

/// What every command carries behind its message header (40 bytes).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct CommandHeader {
    /// The client's own number, echoed in every reply.
    pub correlation: u64,
    /// The session's command number; 0 only from [`SessionId::ENGINE`].
    pub sequence: Sequence,
    /// Nanoseconds since the epoch: decided later than this, the command is rejected. 0: never.
    pub not_after_ns: u64,
    /// On whose behalf: the session's own key for a trader, who is rejected with another or none
    /// (`RoleNotPermitted`); 0 for admin and engine.
    pub key_id: KeyId,
    /// The session that sends.
    pub session: SessionId,
    /// The epoch that the session's logon was answered with.
    pub epoch: Epoch,
}

const _: () = assert!(size_of::<CommandHeader>() == 40);
