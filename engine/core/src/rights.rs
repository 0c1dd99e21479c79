//! What a session may send, worked out from its role and lane once and not for every command. Made where sessions
//! are, by logons and snapshots; asked by the checks of a command's sender.

use touchline_protocol::message::command::{KEY_BINARY, KEY_TRADE};
use touchline_protocol::message::enums::{Lane, Role};

/// Who may send a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Family {
    /// Orders and cancels: the hot lane.
    Hot,
    /// Definitions and money movements: the cold lane.
    Cold,
    /// The kill switch: an admin's, of either lane.
    Admin,
    /// The engine alone.
    Engine,
}

impl Family {
    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// What a session may send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rights {
    /// Bits of the families of its commands.
    families: u8,
    /// Its commands may name anybody's key; others' name the session's own, or none.
    pub(crate) names_any_key: bool,
    /// What a key that it trades by must permit.
    pub(crate) key_permission: u8,
}

impl Rights {
    /// Those of a role and lane. Beside the adapter everybody sends with the key that opened the session, or
    /// without any.
    pub(crate) const fn of(role: Role, lane: Lane) -> Self {
        let of_lane = match lane {
            Lane::Hot => Family::Hot.bit(),
            Lane::Cold => Family::Cold.bit(),
        };
        let families = match (role, lane) {
            (Role::Adapter, _) | (Role::Trader, Lane::Hot) => of_lane,
            (Role::Admin, Lane::Hot) => Family::Admin.bit(),
            (Role::Admin, Lane::Cold) => Family::Admin.bit() | of_lane,
            (Role::Trader, Lane::Cold) | (Role::ReadOnly, _) => 0,
        };
        let is_adapter = matches!(role, Role::Adapter);
        let key_permission = if is_adapter { KEY_TRADE } else { KEY_BINARY };
        Self { families, names_any_key: is_adapter, key_permission }
    }

    /// True when they have commands of a family.
    #[inline(always)]
    pub(crate) const fn have(self, family: Family) -> bool {
        self.families & family.bit() != 0
    }
}
