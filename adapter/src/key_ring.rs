//! The API keys that requests came with, each with its secret ready to check signatures. Called by the
//! spot service for every request with a key.
//!
//! A key's number and secret follow from the master key by a dozen hashes, which is a third of what a
//! signed order costs. They are derived once. Only genuine keys are kept, so that strangers cannot fill
//! the memory; whether a key is revoked is not known here.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use rustc_hash::FxHashMap;
use touchline_protocol::credentials::MasterKey;
use touchline_protocol::units::KeyId;

use crate::signature::SigningKey;

/// Keys that are kept, about 500 bytes each. More are derived each time.
const KEPT_MAX: usize = 16_384;

/// A genuine key.
#[derive(Debug)]
pub struct KnownKey {
    /// Its number.
    pub id: KeyId,
    /// Its secret.
    pub signing: SigningKey,
}

/// All keys of a venue, by their master key.
pub struct KeyRing {
    master: MasterKey,
    /// Only what the venue has given out gets in, so nobody can aim texts at a hash.
    kept: RwLock<FxHashMap<String, Arc<KnownKey>>>,
}

impl KeyRing {
    /// The keys that follow from `master`; none has been asked for yet.
    #[must_use]
    pub fn new(master: MasterKey) -> Self {
        Self { master, kept: RwLock::default() }
    }

    /// The key with this text; `None` for any text that the venue has not given out. One that is not
    /// kept yet is found only if `is_ready` says that what else is to be known of it is known.
    #[must_use]
    pub fn find(&self, api_key: &str, is_ready: impl FnOnce() -> bool) -> Option<Arc<KnownKey>> {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept.get(api_key) {
            return Some(Arc::clone(known));
        }
        drop(kept);
        let id = self.master.key_id(api_key).filter(|_| is_ready())?;
        let signing = SigningKey::new(self.master.secret(id).as_bytes());
        let known = Arc::new(KnownKey { id, signing });
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT_MAX {
            kept.insert(api_key.to_owned(), Arc::clone(&known));
        }
        Some(known)
    }
}

/// Shows no key.
impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyRing")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_the_same_each_time_and_a_stranger_is_not_kept() {
        let master = || MasterKey::new([7; 32]);
        let ring = KeyRing::new(master());
        for number in [1, 2, 1] {
            let text = master().api_key(KeyId(number));
            if ring.kept.read().unwrap().len() < number as usize {
                assert!(ring.find(&text, || false).is_none(), "not ready");
            }
            let known = ring.find(&text, || true).unwrap();
            assert_eq!(known.id, KeyId(number));
            let secret = master().secret(KeyId(number));
            let expected = SigningKey::new(secret.as_bytes()).sign(b"a=1", b"b=2");
            assert_eq!(known.signing.sign(b"a=1", b"b=2"), expected);
        }
        let stranger = MasterKey::new([8; 32]).api_key(KeyId(1));
        for text in [stranger.as_str(), "", "x"] {
            let never = || unreachable!("nobody asks for a stranger");
            assert!(ring.find(text, never).is_none(), "{text}");
        }
        assert_eq!(ring.kept.read().unwrap().len(), 2);
    }

    #[test]
    fn so_many_keys_are_kept_and_more_are_found_all_the_same() {
        let ring = KeyRing::new(MasterKey::new([7; 32]));
        let master = MasterKey::new([7; 32]);
        let any = Arc::new(KnownKey { id: KeyId(0), signing: SigningKey::new(b"any") });
        let filler = (0..KEPT_MAX).map(|number| (number.to_string(), Arc::clone(&any)));
        ring.kept.write().unwrap().extend(filler);
        for _ in 0..2 {
            let known = ring.find(&master.api_key(KeyId(1)), || true).unwrap();
            assert_eq!(known.id, KeyId(1));
            assert_eq!(ring.kept.read().unwrap().len(), KEPT_MAX);
        }
    }
}
