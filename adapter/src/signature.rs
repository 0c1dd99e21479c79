//! Signatures of requests (spot contract §5.4). Called by the spot service for TRADE and
//! USER_DATA routes with the raw bytes of the request and the secret of its key.
//!
//! Signed is what was sent: the query, then at once the body, both byte by byte as received,
//! without the `signature` parameter and one `&` next to it. The parameter may stand anywhere.
//! When both query and body have one, the query's counts (as for any parameter) and the body's
//! is taken out too: a signature never signs a signature. Of two in the same place the first is
//! taken; such a request is refused as a duplicate anyway.
//!
//! Nothing with a zero byte is taken as signed. The binary protocol has its clients prove their secret by the same
//! HMAC, over a nonce that its other side chooses and a Hello that has such bytes ([`Hello`]). The body of a GET is
//! signed and then not looked at: whoever has a client log on at an engine of his own could else have it sign a query
//! for him, as the nonce, with the Hello for a body.
//!
//! [`Hello`]: touchline_protocol::message::handshake::Hello

use std::fmt;

use base16ct::mixed;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Length of a signature in bytes; in text twice that.
pub const SIGNATURE_LEN: usize = 32;

const NAME: &[u8] = b"signature";

/// Why a request is not accepted as signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// -1102: no `signature` parameter, or an empty one.
    #[error("no signature was sent")]
    Missing,
    /// -1022: not 64 hexadecimal digits, or not those of this key and request.
    #[error("the signature does not match the request")]
    Invalid,
}

/// A query or body with its signature cut out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut<'a> {
    /// What stands before the cut.
    pub before: &'a [u8],
    /// What stands behind it.
    pub after: &'a [u8],
    /// The value of the signature parameter, as sent.
    pub signature: Option<&'a [u8]>,
}

/// Cuts `signature=...` and one adjacent `&` out of a raw query or body: the `&` before it, or
/// the one behind it when it comes first.
pub fn cut(raw: &[u8]) -> Cut<'_> {
    let mut start = 0;
    for end in memchr::memchr_iter(b'&', raw).chain(std::iter::once(raw.len())) {
        let pair = &raw[start..end];
        let value = pair.strip_prefix(NAME).and_then(|rest| rest.strip_prefix(b"="));
        if value.is_some() {
            let (before, after) =
                if start == 0 { (0, (end + 1).min(raw.len())) } else { (start - 1, end) };
            return Cut { before: &raw[..before], after: &raw[after..], signature: value };
        }
        start = end + 1;
    }
    Cut { before: raw, after: &[], signature: None }
}

/// An API secret, ready to check signatures: the key has been hashed once.
#[derive(Clone)]
pub struct SigningKey(Hmac<Sha256>);

impl SigningKey {
    /// Prepares a secret, taken as the bytes of its text. Any length will do.
    pub fn new(secret: &[u8]) -> Self {
        match Hmac::new_from_slice(secret) {
            Ok(hmac) => Self(hmac),
            Err(error) => unreachable!("HMAC takes keys of any length: {error}"),
        }
    }

    /// The signature of a request without one.
    pub fn sign(&self, query: &[u8], body: &[u8]) -> [u8; SIGNATURE_LEN] {
        let mut hmac = self.0.clone();
        hmac.update(query);
        hmac.update(body);
        hmac.finalize().into_bytes().into()
    }

    /// Checks the signature of a request. The comparison takes the same time wherever the two
    /// differ.
    ///
    /// # Errors
    /// [`SignatureError`].
    pub fn verify(&self, query: &[u8], body: &[u8]) -> Result<(), SignatureError> {
        let (query, body) = (cut(query), cut(body));
        let sent = query
            .signature
            .or(body.signature)
            .filter(|text| !text.is_empty())
            .ok_or(SignatureError::Missing)?;
        let mut bytes = [0; SIGNATURE_LEN];
        let sent = mixed::decode(sent, &mut bytes).map_err(|_| SignatureError::Invalid)?;
        let pieces = [query.before, query.after, body.before, body.after];
        if pieces.iter().any(|piece| memchr::memchr(0, piece).is_some()) {
            return Err(SignatureError::Invalid);
        }
        let mut hmac = self.0.clone();
        for piece in pieces {
            hmac.update(piece);
        }
        hmac.verify_slice(sent).map_err(|_| SignatureError::Invalid)
    }
}

/// Shows nothing of the secret.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base16ct::lower;
    use proptest::prelude::*;
    use touchline_protocol::client::proof;
    use touchline_protocol::message::handshake::Hello;
    use touchline_protocol::units::KeyId;

    const SECRET: &[u8] = b"NhqPtmdSJYdKjVHjA7PZj4Mge3R5YNiP1e3UZjInClVN65XAbvqqM6A7H5fATj0j";
    const HEAD: &str = "symbol=LTCBTC&side=BUY&type=LIMIT&timeInForce=GTC";
    const TAIL: &str = "quantity=1&price=0.1&recvWindow=5000&timestamp=1499827319559";
    const WHOLE: &str = "c8db56825ae71d6d79447849e617115f4a920fa2acdcab2b053c4b2838bd6b71";
    const SPLIT: &str = "0fd168b8ddb4876a0358a8d14d0c9f3da0e9b20c5d52b2a00fcf7d1c602f9a77";
    const WIDE: &str = "e1353ec6b14d888f1164ae9af8228a3dbd508bc82eb867db8ab6046442f33ef3";

    fn verify(query: &str, body: &str) -> Result<(), SignatureError> {
        SigningKey::new(SECRET).verify(query.as_bytes(), body.as_bytes())
    }

    #[test]
    fn published_vectors() {
        let key = SigningKey::new(SECRET);
        let all = format!("{HEAD}&{TAIL}");
        let wide = all.replace("LTCBTC", "%EF%BC%91%EF%BC%92%EF%BC%93%EF%BC%94%EF%BC%95%EF%BC%96");
        assert_eq!(lower::encode_string(&key.sign(all.as_bytes(), b"")), WHOLE);
        assert_eq!(lower::encode_string(&key.sign(b"", all.as_bytes())), WHOLE);
        assert_eq!(lower::encode_string(&key.sign(HEAD.as_bytes(), TAIL.as_bytes())), SPLIT);
        assert_eq!(lower::encode_string(&key.sign(wide.as_bytes(), b"")), WIDE);
    }

    #[test]
    fn the_signature_may_stand_anywhere() {
        let all = format!("{HEAD}&{TAIL}");
        let sign = |signature: &str| format!("signature={signature}");
        for (query, body) in [
            (format!("{all}&{}", sign(WHOLE)), String::new()),
            (format!("{}&{all}", sign(WHOLE)), String::new()),
            (format!("{HEAD}&{}&{TAIL}", sign(WHOLE)), String::new()),
            (String::new(), format!("{all}&{}", sign(WHOLE))),
            (sign(WHOLE), all.clone()),
            (format!("&{}", sign(WHOLE)), all.clone()),
            (all, sign(WHOLE)),
            (HEAD.to_owned(), format!("{TAIL}&{}", sign(SPLIT))),
            (format!("{HEAD}&{}", sign(SPLIT)), TAIL.to_owned()),
            (format!("{HEAD}&{}", sign(SPLIT)), format!("{TAIL}&{}", sign("00"))),
            (format!("{HEAD}&{}", sign(&SPLIT.to_uppercase())), TAIL.to_owned()),
        ] {
            assert_eq!(verify(&query, &body), Ok(()), "{query} | {body}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let good = format!("{HEAD}&{TAIL}&signature={WHOLE}");
        let wrong = |query: &str, body: &str| {
            assert_eq!(verify(query, body), Err(SignatureError::Invalid), "{query} | {body}");
        };
        assert_eq!(verify(&good, ""), Ok(()));
        wrong(&good.replace("price=0.1", "price=0.2"), "");
        wrong(&good.replace("LTCBTC", "LTC%42TC"), "");
        wrong(&good, "x");
        wrong(&good[..good.len() - 1], "");
        wrong(&format!("{good}0"), "");
        wrong(&format!("{good}00"), "");
        wrong(&good[..good.len() - 2], "");
        wrong(&good[..good.len() - 62], "");
        wrong(&good.replace("c8db", "c8dg"), "");
        wrong(&good.replace("c8db", "+8db"), "");
        wrong(
            &format!("{HEAD}&signature={}", "0".repeat(64)),
            &format!("{TAIL}&signature={SPLIT}"),
        );
        assert_eq!(verify(&format!("{HEAD}&{TAIL}"), ""), Err(SignatureError::Missing));
        assert_eq!(verify("signature=", ""), Err(SignatureError::Missing));
        assert_eq!(verify("", ""), Err(SignatureError::Missing));
        assert_eq!(verify("Signature=00&xsignature=00", "signature"), Err(SignatureError::Missing));
        assert_ne!(SigningKey::new(b"").verify(good.as_bytes(), b""), Ok(()));
    }

    /// As somebody has it who has a client of the binary protocol log on at an engine of his own.
    #[test]
    fn what_proves_a_client_of_the_binary_protocol_signs_no_request() {
        let nonce = *b"timestamp=00000001499827319559&&";
        let secret = std::str::from_utf8(SECRET).unwrap();
        let hello = Hello { role: 1, lane: 1, key_id: KeyId(1), ..Hello::default() };
        let signature = lower::encode_string(&proof(secret, &nonce, &hello));
        let query = [&nonce[..], b"signature=", signature.as_bytes()].concat();
        let body = bytemuck::bytes_of(&hello);
        let key = SigningKey::new(SECRET);
        assert_eq!(lower::encode_string(&key.sign(&nonce, body)), signature, "the same bytes");
        assert_eq!(key.verify(&query, body), Err(SignatureError::Invalid));
    }

    #[test]
    fn nothing_with_a_zero_byte_is_taken_as_signed_wherever_that_stands() {
        let key = SigningKey::new(SECRET);
        for at in 0..4 {
            let mut parts = ["a=1", "b=2", "c=3", "d=4"].map(str::to_owned);
            let verify = |parts: &[String; 4]| {
                let [before, behind, body, rest] = parts;
                let signed = key.sign(
                    format!("{before}&{behind}").as_bytes(),
                    format!("{body}&{rest}").as_bytes(),
                );
                let signature = lower::encode_string(&signed);
                let query = format!("{before}&signature={signature}&{behind}");
                let body = format!("{body}&signature=00&{rest}");
                key.verify(query.as_bytes(), body.as_bytes())
            };
            assert_eq!(verify(&parts), Ok(()));
            parts[at].push('\0');
            assert_eq!(verify(&parts), Err(SignatureError::Invalid), "{at}");
        }
    }

    #[test]
    fn debug_output_does_not_show_the_secret() {
        assert_eq!(format!("{:?}", SigningKey::new(SECRET)), "SigningKey");
    }

    fn without(raw: &[u8]) -> Vec<u8> {
        let cut = cut(raw);
        [cut.before, cut.after].concat()
    }

    proptest! {
        /// A signature put between any two pairs, first or last, leaves what was there before.
        #[test]
        fn cutting_undoes_inserting(
            pairs in prop::collection::vec("[a-z=%+]{0,6}", 0..6),
            at in any::<prop::sample::Index>(),
            value in "[0-9a-f]{0,8}",
        ) {
            let original = pairs.join("&").into_bytes();
            let mut inserted = pairs.clone();
            inserted.insert(at.index(pairs.len() + 1), format!("signature={value}"));
            let inserted = inserted.join("&").into_bytes();
            prop_assert_eq!(without(&inserted), original);
            prop_assert_eq!(cut(&inserted).signature, Some(value.as_bytes()));
        }

        #[test]
        fn what_has_no_signature_stays_whole(raw in prop::collection::vec(any::<u8>(), 0..60)) {
            prop_assume!(!raw.windows(10).any(|ten| ten == b"signature="));
            prop_assert_eq!(without(&raw), raw);
        }

        #[test]
        fn signed_requests_verify_and_changed_ones_do_not(
            query in "[a-z=&]{0,20}", body in "[a-z=&]{1,20}", flip in any::<prop::sample::Index>(),
        ) {
            let key = SigningKey::new(b"secret");
            let signature = lower::encode_string(&key.sign(query.as_bytes(), body.as_bytes()));
            let signed = format!("{body}&signature={signature}");
            prop_assert_eq!(key.verify(query.as_bytes(), signed.as_bytes()), Ok(()));
            let mut changed = signed.into_bytes();
            changed[flip.index(body.len())] ^= 0x80;
            prop_assert_eq!(key.verify(query.as_bytes(), &changed), Err(SignatureError::Invalid));
        }
    }
}
