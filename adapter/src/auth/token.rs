//! Tokens: JSON Web Tokens (RFC 7519), signed with HMAC-SHA256 and nothing else. Issued and believed by
//! the jobs service. What a token says is public to whoever holds it; the token itself is a secret and is
//! never written anywhere.

use jsonwebtoken::{Algorithm, Header, Validation, decode, decode_header, encode};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::hs256;
use super::keys::{KeyRing, TOKEN_LIFETIME_MAX_S};

/// Longest token that is looked at, in bytes; ours have some 400.
const TOKEN_BYTES_MAX: usize = 4096;

/// What a token of ours says (facts §13; `sub` beside, which libraries look for).
#[derive(Serialize)]
struct Issued<'a> {
    #[serde(rename = "userId")]
    user_id: &'a str,
    name: &'a str,
    sub: &'a str,
    iat: u64,
    exp: u64,
}

/// What has to stand in a token.
#[derive(Deserialize)]
struct Claims {
    sub: String,
    iat: u64,
    exp: u64,
}

/// A token is not believed. Why is nobody's business but a test's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the token is not believed")]
pub struct Disbelief;

/// A token cannot be issued: a fault of this side.
#[derive(Debug, Error)]
#[error("a token cannot be signed: {0}")]
pub struct SigningError(String);

/// Issues tokens, and knows them again.
pub struct Tokens {
    ring: KeyRing,
    lifetime_s: u64,
    validation: Validation,
}

impl Tokens {
    /// Tokens of these keys that are good for `lifetime_s` seconds, at most [`TOKEN_LIFETIME_MAX_S`].
    #[must_use]
    pub fn new(ring: KeyRing, lifetime_s: u64) -> Self {
        hs256::install();
        let mut validation = Validation::new(Algorithm::HS256);
        validation.leeway = 0;
        validation.validate_nbf = true;
        validation.set_required_spec_claims(&["exp", "sub"]);
        Self { ring, lifetime_s: lifetime_s.min(TOKEN_LIFETIME_MAX_S), validation }
    }

    /// A token for `subject`, issued at `now_s` seconds since the epoch.
    ///
    /// # Errors
    /// [`SigningError`], which says nothing of the key.
    pub fn issue(&self, subject: &str, name: &str, now_s: u64) -> Result<String, SigningError> {
        let keys = self.ring.keys(now_s);
        let key = keys.current().ok_or_else(|| SigningError("no key signs".to_owned()))?;
        let header = Header { kid: Some(key.kid.clone()), ..Header::new(Algorithm::HS256) };
        let exp = now_s.saturating_add(self.lifetime_s);
        let claims = Issued { user_id: subject, name, sub: subject, iat: now_s, exp };
        encode(&header, &claims, &key.signing).map_err(|error| SigningError(error.to_string()))
    }

    /// The subject of a token that is sound, of a key that is believed, and has not ended at `now_s`.
    ///
    /// # Errors
    /// [`Disbelief`].
    pub fn subject(&self, token: &str, now_s: u64) -> Result<String, Disbelief> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(Disbelief);
        }
        let header = decode_header(token).map_err(|_| Disbelief)?;
        // An extension that we do not know but would have to (RFC 7515 §4.1.11).
        if header.alg != Algorithm::HS256 || header.crit.is_some() {
            return Err(Disbelief);
        }
        let kid = header.kid.ok_or(Disbelief)?;
        let mut keys = self.ring.keys(now_s);
        if keys.named(&kid, now_s).is_none() {
            // Another adapter may have seen a new key first.
            keys = self.ring.present_keys();
        }
        let key = keys.named(&kid, now_s).ok_or(Disbelief)?;
        let claims = decode::<Claims>(token, &key.verifying, &self.validation)
            .map_err(|_| Disbelief)?
            .claims;
        // Judged by the request's own time too: the library reads a clock of its own.
        let is_ours = claims.iat <= claims.exp
            && claims.exp - claims.iat <= TOKEN_LIFETIME_MAX_S
            && key.until.is_none_or(|until| claims.exp <= until);
        if is_ours && now_s < claims.exp { Ok(claims.sub) } else { Err(Disbelief) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::keys::{FILE_NAME, STILL_SIGNING_S, rotate};
    use hmac::{Hmac, KeyInit, Mac};
    use jsonwebtoken::EncodingKey;
    use serde_json::{Value, json};
    use sha2::Sha256;
    use std::fs;
    use std::path::PathBuf;
    use tempfile::TempDir;

    const SUBJECT: &str = "0123456789abcdef01234567";

    struct Bench {
        _folder: TempDir,
        path: PathBuf,
        tokens: Tokens,
        now_s: u64,
    }

    impl Bench {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(FILE_NAME);
            let tokens = Tokens::new(KeyRing::open(path.clone()).unwrap(), 3600);
            let now_s = jsonwebtoken::get_current_timestamp();
            Self { _folder: folder, path, tokens, now_s }
        }

        fn issue(&self) -> String {
            self.tokens.issue(SUBJECT, "Ada", self.now_s).unwrap()
        }

        fn judge(&self, token: &str) -> Result<String, Disbelief> {
            self.tokens.subject(token, self.now_s)
        }

        fn secret(&self) -> (String, Vec<u8>) {
            let text = fs::read_to_string(&self.path).unwrap();
            let document: Value = serde_json::from_str(&text).unwrap();
            let key = document["keys"].as_array().unwrap().last().unwrap().clone();
            let secret = key["secret"].as_str().unwrap();
            let secret = base16ct::lower::decode_vec(secret).unwrap();
            (key["kid"].as_str().unwrap().to_owned(), secret)
        }

        /// A token of any header and claims, signed with the real key.
        fn forge(&self, header: &Value, claims: &Value) -> String {
            let (_, secret) = self.secret();
            let message = format!("{}.{}", base64(header), base64(claims));
            let mac = Hmac::<Sha256>::new_from_slice(&secret).unwrap().chain_update(&message);
            format!("{message}.{}", encode_bytes(&mac.finalize().into_bytes()))
        }
    }

    fn base64(part: &Value) -> String {
        encode_bytes(part.to_string().as_bytes())
    }

    fn encode_bytes(bytes: &[u8]) -> String {
        const DIGITS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let mut text = String::new();
        for part in bytes.chunks(3) {
            let word = part.iter().fold(0u32, |word, &byte| word << 8 | u32::from(byte));
            let word = word << (8 * (3 - part.len()));
            for digit in 0..=part.len() {
                text.push(char::from(DIGITS[(word >> (18 - 6 * digit) & 63) as usize]));
            }
        }
        text
    }

    #[test]
    fn a_token_that_the_old_key_signs_while_it_is_replaced_is_good_to_its_end() {
        let bench = Bench::new();
        let ring = KeyRing::open(bench.path.clone()).unwrap();
        let longest = Tokens::new(ring, TOKEN_LIFETIME_MAX_S);
        // A rotation knows its time before its file is there; meanwhile people log in.
        let late_s = bench.now_s + 1;
        let token = longest.issue(SUBJECT, "Ada", late_s).unwrap();
        rotate(&bench.path, bench.now_s, false).unwrap();
        let end_s = late_s + TOKEN_LIFETIME_MAX_S;
        for now_s in [late_s, late_s + 1, end_s - 1] {
            assert_eq!(longest.subject(&token, now_s).as_deref(), Ok(SUBJECT), "{now_s}");
        }
        assert_eq!(longest.subject(&token, end_s), Err(Disbelief));
    }

    /// Ours are far shorter, whoever they are for.
    #[test]
    fn a_token_that_is_too_long_is_not_looked_at() {
        let bench = Bench::new();
        let of_name =
            |letters| bench.tokens.issue(SUBJECT, &"a".repeat(letters), bench.now_s).unwrap();
        let room = TOKEN_BYTES_MAX - of_name(0).len();
        let longest =
            (room * 3 / 4 - 8..).map(of_name).take_while(|token| token.len() <= TOKEN_BYTES_MAX);
        let longest = longest.last().unwrap();
        assert!(longest.len() >= TOKEN_BYTES_MAX - 1, "{}", longest.len());
        assert_eq!(bench.judge(&longest).as_deref(), Ok(SUBJECT));
        assert_eq!(bench.judge(&of_name(room)), Err(Disbelief));
    }

    #[test]
    fn a_token_tells_whose_it_is_until_it_ends() {
        let bench = Bench::new();
        let token = bench.issue();
        assert_eq!(bench.judge(&token).as_deref(), Ok(SUBJECT));
        assert!(bench.tokens.subject(&token, bench.now_s + 3599).is_ok());
        assert_eq!(bench.tokens.subject(&token, bench.now_s + 3600), Err(Disbelief));
        let header = decode_header(&token).unwrap();
        assert_eq!((header.alg, header.typ.as_deref()), (Algorithm::HS256, Some("JWT")));
    }

    #[test]
    fn whatever_is_not_exactly_ours_is_not_believed() {
        let bench = Bench::new();
        let (kid, secret) = bench.secret();
        let (now, end) = (bench.now_s, bench.now_s + 60);
        let ours = json!({"alg": "HS256", "typ": "JWT", "kid": kid});
        let good = json!({"sub": SUBJECT, "iat": now, "exp": end});
        assert!(bench.judge(&bench.forge(&ours, &good)).is_ok(), "the forger can forge");
        for header in [
            json!({"alg": "none", "kid": kid}),
            json!({"alg": "None", "kid": kid}),
            json!({"alg": "HS384", "kid": kid}),
            json!({"alg": "RS256", "kid": kid}),
            json!({"alg": "ES256", "kid": kid}),
            json!({"alg": "HS256"}),
            json!({"alg": "HS256", "kid": "another"}),
            json!({"alg": "HS256", "kid": kid, "crit": ["b64"], "b64": false}),
            json!({"kid": kid}),
            json!([]),
        ] {
            let token = bench.forge(&header, &good);
            assert_eq!(bench.judge(&token), Err(Disbelief), "{header}");
            let (message, _) = token.rsplit_once('.').unwrap();
            assert_eq!(bench.judge(&format!("{message}.")), Err(Disbelief), "{header}, unsigned");
        }
        for claims in [
            json!({"iat": now, "exp": end}),
            json!({"sub": SUBJECT, "exp": end}),
            json!({"sub": SUBJECT, "iat": now}),
            json!({"sub": SUBJECT, "iat": now, "exp": now - 1}),
            json!({"sub": SUBJECT, "iat": now, "exp": "later"}),
            json!({"sub": SUBJECT, "iat": "now", "exp": end}),
            json!({"sub": 5, "iat": now, "exp": end}),
            json!({"sub": SUBJECT, "iat": end + 1, "exp": end}),
            json!({"sub": SUBJECT, "iat": 0, "exp": end}),
            json!({"sub": SUBJECT, "iat": now, "exp": end, "nbf": end}),
            json!("claims"),
        ] {
            assert_eq!(bench.judge(&bench.forge(&ours, &claims)), Err(Disbelief), "{claims}");
        }
        let header = Header { kid: Some(kid), ..Header::new(Algorithm::HS256) };
        let mut another = secret;
        another[0] ^= 1;
        let foreign = encode(&header, &good, &EncodingKey::from_secret(&another)).unwrap();
        assert_eq!(bench.judge(&foreign), Err(Disbelief));
    }

    #[test]
    fn no_character_of_a_token_can_be_changed_and_no_text_panics() {
        let bench = Bench::new();
        let token = bench.issue();
        for at in 0..token.len() {
            for replacement in ["A", "B", ".", "é", ""] {
                let changed = format!("{}{replacement}{}", &token[..at], &token[at + 1..]);
                if changed != token {
                    // The last digit of a signature holds two bits that stand for nothing; the decoder
                    // takes zeros only.
                    assert_eq!(bench.judge(&changed), Err(Disbelief), "{at}: {changed}");
                }
            }
        }
        for text in ["", ".", "..", "...", "a.b.c", &"a".repeat(5000), &".".repeat(4096)] {
            assert_eq!(bench.judge(text), Err(Disbelief));
        }
    }

    #[test]
    fn tokens_of_a_replaced_key_are_believed_and_of_a_revoked_one_not() {
        let mut bench = Bench::new();
        let old = bench.issue();
        let (old_kid, _) = bench.secret();
        rotate(&bench.path, bench.now_s, false).unwrap();
        bench.now_s += 1;
        let new = bench.issue();
        assert_ne!(decode_header(&new).unwrap().kid.as_deref(), Some(&*old_kid));
        assert!(bench.judge(&old).is_ok() && bench.judge(&new).is_ok());
        rotate(&bench.path, bench.now_s, true).unwrap();
        bench.now_s += 1;
        assert!(bench.judge(&old).is_err() && bench.judge(&new).is_err());
        assert!(bench.judge(&bench.issue()).is_ok());
    }

    /// Both looked at the keys in this second already; the other one was started behind the change.
    #[test]
    fn a_token_of_a_key_that_another_adapter_knows_first_is_believed_at_once() {
        let bench = Bench::new();
        assert!(bench.judge(&bench.issue()).is_ok());
        rotate(&bench.path, bench.now_s, false).unwrap();
        let other = Tokens::new(KeyRing::open(bench.path.clone()).unwrap(), 3600);
        let token = other.issue(SUBJECT, "Ada", bench.now_s).unwrap();
        assert_eq!(bench.judge(&token).as_deref(), Ok(SUBJECT));
    }

    #[test]
    fn no_token_outlives_the_key_that_was_replaced() {
        let mut bench = Bench::new();
        let (kid, _) = bench.secret();
        let header = json!({"alg": "HS256", "kid": kid});
        let last = bench.now_s + TOKEN_LIFETIME_MAX_S + STILL_SIGNING_S;
        let issued_s = bench.now_s + STILL_SIGNING_S + 1;
        let until = |end: u64| json!({"sub": SUBJECT, "iat": issued_s, "exp": end});
        let [in_time, too_long] = [last, last + 1].map(|end| bench.forge(&header, &until(end)));
        assert!(bench.judge(&in_time).is_ok() && bench.judge(&too_long).is_ok());
        rotate(&bench.path, bench.now_s, false).unwrap();
        bench.now_s += 1;
        assert!(bench.judge(&in_time).is_ok());
        assert_eq!(bench.judge(&too_long), Err(Disbelief));
    }
}
