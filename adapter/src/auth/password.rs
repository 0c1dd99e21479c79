//! Passwords become argon2id hashes (RFC 9106), at the least that OWASP asks for: 19 MiB, two passes, one
//! lane. Called on the threads of [`super::pool`] only: one hash takes some 15 ms of a core.

use argon2::password_hash::phc::{Ident, Output, ParamsString, PasswordHash, Salt};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use thiserror::Error;

/// Memory that a hash takes, in KiB.
pub const MEMORY_KIB: u32 = 19 * 1024;

/// Passes over it.
pub const PASSES: u32 = 2;

const LANES: u32 = 1;
const HASH_BYTES: usize = 32;

/// Longest text of a hash: what a record of it must have room for.
pub const HASH_CHARACTERS_MAX: usize = 100;

/// A stored hash may ask for at most so much more memory, and so many more passes, than ours do.
const COSTLIER_MOST: u32 = 8;

/// Why a password cannot be hashed or compared. Never names the password.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PasswordError {
    /// The system gives no random bytes for a salt.
    #[error("no random bytes for a salt: {0}")]
    Random(String),
    /// The stored text is no argon2id hash that this build would compute.
    #[error("the stored hash is not usable: {0}")]
    Stored(&'static str),
    /// The arithmetic refused.
    #[error("argon2: {0}")]
    Argon2(argon2::Error),
}

/// Hashes passwords in memory of its own, which is taken at the first one and kept.
#[derive(Default)]
pub struct Hasher {
    memory: Vec<Block>,
}

impl Hasher {
    /// The hash of a password under a salt of its own, as a PHC text (`$argon2id$v=19$…`).
    ///
    /// # Errors
    /// See [`PasswordError`].
    pub fn hash(&mut self, password: &str) -> Result<String, PasswordError> {
        let mut salt = [0; Salt::RECOMMENDED_LENGTH];
        getrandom::fill(&mut salt).map_err(|error| PasswordError::Random(error.to_string()))?;
        let params = ours()?;
        let output = self.compute(password, &salt, &params)?;
        let unusable = |_| PasswordError::Stored("a hash cannot be written down");
        let text = PasswordHash {
            algorithm: Ident::new("argon2id").map_err(unusable)?,
            version: Some(Version::V0x13.into()),
            params: ParamsString::try_from(&params)
                .map_err(|_| PasswordError::Stored("parameters cannot be written down"))?,
            salt: Some(Salt::new(&salt).map_err(unusable)?),
            hash: Some(output),
        };
        Ok(text.to_string())
    }

    /// Whether the password is the one that `stored` was made of. Without a stored hash the answer is no,
    /// after the same work.
    ///
    /// # Errors
    /// See [`PasswordError`].
    pub fn verify(&mut self, password: &str, stored: Option<&str>) -> Result<bool, PasswordError> {
        let Some(stored) = stored else {
            self.compute(password, &[0; Salt::RECOMMENDED_LENGTH], &ours()?)?;
            return Ok(false);
        };
        let bad = PasswordError::Stored;
        let stored = PasswordHash::new(stored).map_err(|_| bad("it is no PHC text"))?;
        if stored.algorithm.as_str() != "argon2id" || stored.version != Some(Version::V0x13.into())
        {
            return Err(bad("it is not of argon2id, version 19"));
        }
        let params = Params::try_from(&stored).map_err(|_| bad("its parameters are malformed"))?;
        if params.m_cost() > MEMORY_KIB * COSTLIER_MOST
            || params.t_cost() > PASSES * COSTLIER_MOST
            || params.p_cost() > COSTLIER_MOST
        {
            return Err(bad("its parameters ask for too much"));
        }
        let salt = stored.salt.ok_or(bad("it has no salt"))?;
        let expected = stored.hash.ok_or(bad("it has no hash"))?;
        let found = self.compute(password, &salt, &params)?;
        // Compared in constant time by its type.
        Ok(found == expected)
    }

    fn compute(
        &mut self,
        password: &str,
        salt: &[u8],
        params: &Params,
    ) -> Result<Output, PasswordError> {
        if params.block_count() > self.memory.len() {
            self.memory.resize(params.block_count(), Block::new());
        }
        let length = params.output_len().unwrap_or(HASH_BYTES);
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params.clone());
        let mut out = [0; Output::MAX_LENGTH];
        let out = out.get_mut(..length).ok_or(PasswordError::Stored("its hash is too long"))?;
        argon2
            .hash_password_into_with_memory(password.as_bytes(), salt, out, &mut self.memory)
            .map_err(PasswordError::Argon2)?;
        Output::new(out).map_err(|_| PasswordError::Stored("its hash is too short"))
    }
}

fn ours() -> Result<Params, PasswordError> {
    Params::new(MEMORY_KIB, PASSES, LANES, Some(HASH_BYTES)).map_err(PasswordError::Argon2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_fits_its_own_hash_only_and_no_two_hashes_are_the_same() {
        let mut hasher = Hasher::default();
        let first = hasher.hash("correct horse").unwrap();
        assert!(first.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{first}");
        assert!(first.len() <= HASH_CHARACTERS_MAX);
        assert_ne!(first, hasher.hash("correct horse").unwrap());
        assert_eq!(hasher.verify("correct horse", Some(&first)), Ok(true));
        for other in ["correct horsf", "correct hors", "", "correct horse\0"] {
            assert_eq!(hasher.verify(other, Some(&first)), Ok(false), "{other:?}");
        }
    }

    #[test]
    fn without_a_hash_the_work_is_the_same() {
        let stored = Hasher::default().hash("correct horse").unwrap();
        let used = |stored| {
            let mut hasher = Hasher::default();
            assert_eq!(hasher.verify("another one", stored), Ok(false));
            let empty = Block::new();
            let filled = hasher.memory.iter().filter(|block| block.as_ref() != empty.as_ref());
            (hasher.memory.len(), filled.count())
        };
        let all = MEMORY_KIB as usize;
        assert_eq!(used(Some(&*stored)), (all, all));
        assert_eq!(used(None), (all, all));
    }

    /// RFC 9106 has its vectors with a secret; this one is of the reference implementation's tests.
    #[test]
    fn the_hash_is_that_of_the_reference() {
        let stored =
            "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";
        let mut hasher = Hasher::default();
        assert_eq!(hasher.verify("password", Some(stored)), Ok(true));
        assert_eq!(hasher.verify("passwore", Some(stored)), Ok(false));
    }

    #[test]
    fn stored_texts_that_are_no_hash_of_ours_are_refused_before_any_work() {
        let mut hasher = Hasher::default();
        for stored in [
            "",
            "secret",
            "$2b$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy",
            "$argon2i$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
            "$argon2id$v=16$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
            "$argon2id$v=19$m=4000000,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
            "$argon2id$v=19$m=256,t=2,p=9$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
            "$argon2id$v=19$m=256,t=4000,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
            "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ",
        ] {
            let error = hasher.verify("password", Some(stored)).unwrap_err();
            assert!(matches!(error, PasswordError::Stored(_)), "{stored}: {error}");
            assert!(!error.to_string().contains("password"));
        }
        assert!(hasher.memory.is_empty());
    }
}
