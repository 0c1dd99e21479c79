//! Random texts: generated client order ids, handles of streams, and the id of each reply. Called by the
//! handlers.

use std::cell::RefCell;

use touchline_protocol::text::ClientOrderId;

/// Characters of a generated client order id (facts §3).
const CLIENT_ORDER_ID_CHARACTERS: usize = 22;

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Characters of the handle of a user data stream (facts §9).
const LISTEN_KEY_CHARACTERS: usize = 60;

/// Random bytes that a thread asks the system for in one go: a call costs half a microsecond, whatever
/// it brings, and every order needs bytes twice.
const POOL_BYTES: usize = 1024;

struct Pool {
    bytes: [u8; POOL_BYTES],
    used: usize,
}

thread_local! {
    static POOL: RefCell<Pool> =
        const { RefCell::new(Pool { bytes: [0; POOL_BYTES], used: POOL_BYTES }) };
}

/// Random bytes from the system, which nobody got before.
fn random<const N: usize>() -> Result<[u8; N], getrandom::Error> {
    const { assert!(N <= POOL_BYTES) };
    POOL.with_borrow_mut(|pool| {
        if POOL_BYTES - pool.used < N {
            getrandom::fill(&mut pool.bytes)?;
            pool.used = 0;
        }
        let mut random = [0; N];
        let taken = &mut pool.bytes[pool.used..pool.used + N];
        random.copy_from_slice(taken);
        // They may become a handle that opens something.
        taken.fill(0);
        pool.used += N;
        Ok(random)
    })
}

/// A fresh client order id: 22 characters `[A-Za-z0-9]`, 130 random bits.
///
/// # Errors
/// When the system gives no random bytes.
pub(super) fn client_order_id() -> Result<ClientOrderId, getrandom::Error> {
    let text = alphanumeric(CLIENT_ORDER_ID_CHARACTERS)?;
    Ok(ClientOrderId::new(&text).unwrap_or(ClientOrderId::EMPTY))
}

/// A fresh handle of a user data stream: 60 characters `[A-Za-z0-9]`.
///
/// # Errors
/// When the system gives no random bytes.
pub(super) fn listen_key() -> Result<String, getrandom::Error> {
    alphanumeric(LISTEN_KEY_CHARACTERS)
}

/// So many random characters `[A-Za-z0-9]`.
fn alphanumeric(characters: usize) -> Result<String, getrandom::Error> {
    let mut text = String::with_capacity(characters);
    // A byte is used if its low six bits are below 62: 31 of 32 are.
    loop {
        for byte in random::<24>()? {
            if let Some(character) = ALPHABET.get(usize::from(byte & 63)) {
                text.push(char::from(*character));
            }
            if text.len() == characters {
                return Ok(text);
            }
        }
    }
}

/// A random UUID (RFC 9562 version 4) in its usual form.
///
/// # Errors
/// When the system gives no random bytes.
pub(super) fn uuid() -> Result<String, getrandom::Error> {
    Ok(uuid::Builder::from_random_bytes(random()?).into_uuid().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn client_order_ids_are_22_letters_and_digits_and_differ() {
        let made: HashSet<_> = (0..1000).map(|_| client_order_id().unwrap()).collect();
        assert_eq!(made.len(), 1000);
        for id in made {
            assert_eq!(id.as_str().len(), 22);
            assert!(id.as_str().bytes().all(|byte| byte.is_ascii_alphanumeric()));
        }
    }

    #[test]
    fn listen_keys_are_60_letters_and_digits_and_differ() {
        let key = listen_key().unwrap();
        assert_eq!(key.len(), 60);
        assert!(key.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        assert_ne!(key, listen_key().unwrap());
    }

    #[test]
    fn uuids_have_version_and_variant() {
        for _ in 0..100 {
            let uuid = uuid().unwrap();
            let bytes = uuid.as_bytes();
            assert_eq!(bytes.len(), 36);
            assert!([8, 13, 18, 23].iter().all(|&dash| bytes[dash] == b'-'), "{uuid}");
            assert_eq!(bytes[14], b'4', "{uuid}");
            assert!(b"89ab".contains(&bytes[19]), "{uuid}");
        }
        assert_ne!(uuid().unwrap(), uuid().unwrap());
    }
}
