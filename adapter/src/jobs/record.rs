//! What the service's records carry: users and jobs as bytes in the engine's log, and back. The engine
//! knows neither; what is read here may have been written by anybody who may write records.

use std::fmt;

use sha2::{Digest, Sha256};
use touchline_protocol::message::command::RECORD_BYTES_MAX;

use crate::auth::password::HASH_CHARACTERS_MAX;
use crate::views::records::{RecordId, UniqueKey};

/// Kind of the records of users.
pub const USER: u32 = 1;

/// Kind of the records of jobs; each belongs to a user's.
pub const JOB: u32 = 2;

/// First byte of every record: how the rest is laid out.
const LAYOUT: u8 = 1;

/// Longest e-mail address, in UTF-16 units, which is how lengths are counted (RFC 5321 allows 254).
pub(super) const EMAIL_UNITS_MAX: usize = 254;

/// Longest name of a user.
pub(super) const NAME_UNITS_MAX: usize = 50;

/// Longest name of a company.
pub(super) const COMPANY_UNITS_MAX: usize = 50;

/// Longest name of a position.
pub(super) const POSITION_UNITS_MAX: usize = 100;

/// A UTF-16 unit takes at most three bytes.
const UNIT_BYTES: usize = 3;

// Whatever passes the rules of lengths fits a record.
const _: () = {
    let user = 5 + (EMAIL_UNITS_MAX + NAME_UNITS_MAX) * UNIT_BYTES + HASH_CHARACTERS_MAX;
    let job = 4 + (COMPANY_UNITS_MAX + POSITION_UNITS_MAX) * UNIT_BYTES;
    assert!(user <= RECORD_BYTES_MAX as usize && job <= RECORD_BYTES_MAX as usize);
};

/// A user: `layout u8, length of name u16, length of e-mail u16, name, e-mail, hash`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct User<'a> {
    /// What the user is called.
    pub name: &'a str,
    /// As it was given, case and all.
    pub email: &'a str,
    /// Of the password, as PHC text.
    pub hash: &'a str,
}

/// Without the hash.
impl fmt::Debug for User<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, email, .. } = self;
        f.debug_struct("User").field("name", name).field("email", email).finish_non_exhaustive()
    }
}

impl<'a> User<'a> {
    /// As bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![LAYOUT];
        bytes.extend_from_slice(&length(self.name));
        bytes.extend_from_slice(&length(self.email));
        for text in [self.name, self.email, self.hash] {
            bytes.extend_from_slice(text.as_bytes());
        }
        bytes
    }

    /// From bytes; `None` if they are no user.
    #[must_use]
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (&[LAYOUT, a, b, c, d], rest) = bytes.split_first_chunk()? else { return None };
        let (name, rest) = rest.split_at_checked(u16::from_le_bytes([a, b]).into())?;
        let (email, hash) = rest.split_at_checked(u16::from_le_bytes([c, d]).into())?;
        Some(Self { name: text(name)?, email: text(email)?, hash: text(hash)? })
    }
}

/// How far an application is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Status {
    /// An interview is agreed.
    Interview,
    /// It was declined.
    Declined,
    /// Nothing has come back yet.
    #[default]
    Pending,
}

impl Status {
    /// All of them, by the number that stands in records.
    pub(super) const ALL: [Self; 3] = [Self::Interview, Self::Declined, Self::Pending];

    /// The name that clients use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interview => "interview",
            Self::Declined => "declined",
            Self::Pending => "pending",
        }
    }

    /// The status of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    const fn number(self) -> u8 {
        match self {
            Self::Interview => 0,
            Self::Declined => 1,
            Self::Pending => 2,
        }
    }
}

/// A job: `layout u8, status u8, length of company u16, company, position`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job<'a> {
    /// How far it is.
    pub status: Status,
    /// Where.
    pub company: &'a str,
    /// As what.
    pub position: &'a str,
}

impl<'a> Job<'a> {
    /// As bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![LAYOUT, self.status.number()];
        bytes.extend_from_slice(&length(self.company));
        for text in [self.company, self.position] {
            bytes.extend_from_slice(text.as_bytes());
        }
        bytes
    }

    /// From bytes; `None` if they are no job.
    #[must_use]
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (&[LAYOUT, status, a, b], rest) = bytes.split_first_chunk()? else { return None };
        let (company, position) = rest.split_at_checked(u16::from_le_bytes([a, b]).into())?;
        let status = *Status::ALL.get(usize::from(status))?;
        Some(Self { status, company: text(company)?, position: text(position)? })
    }
}

/// The rules of lengths bound every text far below what two bytes can say.
fn length(text: &str) -> [u8; 2] {
    u16::try_from(text.len()).unwrap_or(u16::MAX).to_le_bytes()
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// What no two users have in common: a digest of the e-mail address as it was given.
#[must_use]
pub fn key_of_email(email: &str) -> UniqueKey {
    Sha256::new().chain_update(b"touchline user\0").chain_update(email).finalize().into()
}

/// An id that nobody has: when it was made, in seconds, and eight random bytes.
///
/// # Errors
/// When the system gives no random bytes.
pub fn fresh_id(now_s: u64) -> Result<RecordId, getrandom::Error> {
    let mut id = [0; 12];
    let (time, random) = id.split_at_mut(4);
    // Most significant first, so that ids sort by age.
    for (at, byte) in time.iter_mut().enumerate() {
        *byte = (now_s >> (24 - 8 * at)) as u8;
    }
    getrandom::fill(random)?;
    Ok(id)
}

/// An id as 24 hexadecimal digits.
#[must_use]
pub fn id_text(id: &RecordId) -> String {
    base16ct::lower::encode_string(id)
}

/// The id that a text names: 24 hexadecimal digits, or any 12 bytes (facts §13).
#[must_use]
pub fn read_id(text: &str) -> Option<RecordId> {
    if let Ok(bytes) = text.as_bytes().try_into() {
        return Some(bytes);
    }
    let mut id = [0; 12];
    let is_whole = base16ct::mixed::decode(text, &mut id).ok()?.len() == 12;
    is_whole.then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_layout_of_records_is_for_ever() {
        let user = User { name: "Ada", email: "a@b.co", hash: "$x" };
        assert_eq!(user.encode(), b"\x01\x03\0\x06\0Adaa@b.co$x");
        assert!(!format!("{user:?}").contains(user.hash));
        let job = Job { status: Status::Declined, company: "ACME", position: "clerk" };
        assert_eq!(job.encode(), b"\x01\x01\x04\0ACMEclerk");
        let digest = base16ct::lower::encode_string(&key_of_email("a@b.co"));
        assert_eq!(digest, "191417b8ddb5c2a9027a3e4b67af7ab3b01959999555675fecba8ad08b1c3b25");
        assert_ne!(key_of_email("a@b.co"), key_of_email("A@b.co"));
    }

    #[test]
    fn ids_are_read_as_they_are_written_and_in_the_two_other_ways() {
        let id = *b"\x01\x23\x45\x67\x89\xab\xcd\xef\0\x7f\x80\xff";
        assert_eq!(id_text(&id), "0123456789abcdef007f80ff");
        assert_eq!(read_id("0123456789abcdef007f80ff"), Some(id));
        assert_eq!(read_id("0123456789ABCDEF007F80FF"), Some(id));
        assert_eq!(read_id("twelve bytes"), Some(*b"twelve bytes"));
        for text in ["", "5", "0123456789abcdef007f80f", "0123456789abcdef007f80fg", "ä"] {
            assert_eq!(read_id(text), None, "{text}");
        }
        assert_eq!(read_id(&"é".repeat(12)), None, "24 bytes that are no digits");
        assert_ne!(fresh_id(5).unwrap(), fresh_id(5).unwrap());
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(name in "\\PC{0,50}", email in "\\PC{0,60}", hash in "[ -~]{0,90}") {
            let user = User { name: &name, email: &email, hash: &hash };
            let bytes = user.encode();
            prop_assert_eq!(User::decode(&bytes), Some(user));
            for status in Status::ALL {
                let job = Job { status, company: &name, position: &email };
                let bytes = job.encode();
                prop_assert_eq!(Job::decode(&bytes), Some(job));
            }
        }

        #[test]
        fn any_bytes_are_a_record_or_none(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(user) = User::decode(&bytes) {
                prop_assert_eq!(user.encode(), bytes.clone());
            }
            if let Some(job) = Job::decode(&bytes) {
                prop_assert_eq!(job.encode(), bytes);
            }
        }
    }
}
