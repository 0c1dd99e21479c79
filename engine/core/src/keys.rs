//! API keys: which account they act for and what they permit. Called on every order and cancel, by
//! logons and by definitions.

use crate::hash::StateHash;
use crate::pool::NONE;
use alloc::collections::TryReserveError;
use alloc::vec::Vec;
use touchline_protocol::units::{AccountId, KeyId};

/// One key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub(crate) account: AccountId,
    pub(crate) permissions: u8,
    pub(crate) revoked: bool,
    /// The session of the key that was opened last (its index), and how many there are.
    pub(crate) last_session: u32,
    pub(crate) sessions: u32,
}

impl Key {
    pub(crate) const fn new(account: AccountId, permissions: u8) -> Self {
        Self { account, permissions, revoked: false, last_session: NONE, sessions: 0 }
    }
}

/// All keys ever made; numbers count from 1.
#[derive(Debug)]
pub(crate) struct Keys {
    pub(crate) list: Vec<Key>,
}

impl Keys {
    pub(crate) const fn new() -> Self {
        Self { list: Vec::new() }
    }

    pub(crate) fn try_grow(&mut self, capacity: u32) -> Result<(), TryReserveError> {
        self.list.try_reserve_exact((capacity as usize).saturating_sub(self.list.len()))
    }

    pub(crate) const fn len(&self) -> u32 {
        self.list.len() as u32
    }

    #[inline(always)]
    pub(crate) fn get(&self, id: KeyId) -> Option<&Key> {
        self.list.get(usize::try_from(id.0).ok()?.checked_sub(1)?)
    }

    /// The key, if it exists and is not revoked.
    #[inline(always)]
    pub(crate) fn live(&self, id: KeyId) -> Option<&Key> {
        self.get(id).filter(|key| !key.revoked)
    }

    /// As [`live`](Self::live), to change.
    pub(crate) fn live_mut(&mut self, id: KeyId) -> Option<&mut Key> {
        let at = usize::try_from(id.0).ok()?.checked_sub(1)?;
        self.list.get_mut(at).filter(|key| !key.revoked)
    }

    /// Adds a key; the caller has checked the limit.
    pub(crate) fn add(&mut self, key: Key) -> KeyId {
        self.list.push(key);
        KeyId(self.list.len() as u64)
    }

    pub(crate) fn hash(&self, hash: &mut StateHash) {
        hash.word(u64::from(self.len()));
        for key in &self.list {
            hash.pair(key.account.0, u32::from(key.permissions) << 1 | u32::from(key.revoked));
        }
    }
}
