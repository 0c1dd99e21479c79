//! The one signature that tokens have: HMAC-SHA256 (RFC 7518 §3.2), for `jsonwebtoken`, which leaves the
//! arithmetic to its user. Installed by [`super::token`]; whatever else a token may ask for is refused
//! here a second time.

use hmac::{Hmac, KeyInit, Mac};
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::signature::{self, Signer, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey};
use sha2::Sha256;

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |algorithm, key: &EncodingKey| {
        Hs256::new(*algorithm, key.as_bytes()).map(|made| Box::new(made) as Box<dyn JwtSigner>)
    },
    verifier_factory: |algorithm, key: &DecodingKey| {
        Hs256::new(*algorithm, key.try_get_as_bytes()?)
            .map(|made| Box::new(made) as Box<dyn JwtVerifier>)
    },
    key_utils: KeyUtils::new_unimplemented(),
};

/// Has `jsonwebtoken` sign and verify with HS256 and nothing else. Call it as often as you like.
pub(super) fn install() {
    // A second call finds the first one's, which is the same: nobody else installs one.
    let _installed_before = PROVIDER.install_default();
}

/// A key, ready for one message or many.
struct Hs256(Hmac<Sha256>);

impl Hs256 {
    fn new(algorithm: Algorithm, key: &[u8]) -> Result<Self, Error> {
        if algorithm != Algorithm::HS256 {
            return Err(ErrorKind::InvalidAlgorithm.into());
        }
        let mac = Hmac::new_from_slice(key).map_err(|_| ErrorKind::InvalidKeyFormat)?;
        Ok(Self(mac))
    }

    fn over(&self, message: &[u8]) -> Hmac<Sha256> {
        self.0.clone().chain_update(message)
    }
}

impl Signer<Vec<u8>> for Hs256 {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, signature::Error> {
        Ok(self.over(message).finalize().into_bytes().to_vec())
    }
}

impl Verifier<Vec<u8>> for Hs256 {
    fn verify(&self, message: &[u8], found: &Vec<u8>) -> Result<(), signature::Error> {
        // Takes as long whatever differs.
        self.over(message).verify_slice(found).map_err(|_| signature::Error::new())
    }
}

impl JwtSigner for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

impl JwtVerifier for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231, test case 2.
    #[test]
    fn the_signature_is_that_of_the_standard() {
        let key = Hs256::new(Algorithm::HS256, b"Jefe").unwrap();
        let found = key.try_sign(b"what do ya want for nothing?").unwrap();
        let hex = base16ct::lower::encode_string(&found);
        assert_eq!(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
        key.verify(b"what do ya want for nothing?", &found).unwrap();
        assert!(key.verify(b"what do ya want for nothing!", &found).is_err());
        assert!(key.verify(b"what do ya want for nothing?", &found[..31].to_vec()).is_err());
    }

    #[test]
    fn no_other_algorithm_is_served() {
        for algorithm in [Algorithm::HS384, Algorithm::HS512, Algorithm::RS256, Algorithm::EdDSA] {
            assert!(Hs256::new(algorithm, b"key").is_err(), "{algorithm:?}");
        }
    }
}
