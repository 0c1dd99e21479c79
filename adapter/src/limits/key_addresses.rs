//! From which addresses an API key may be used: a list per key, for the keys that have one. Kept in a
//! file of the data folder that `touchline admin` writes and every adapter reads when it changes.
//!
//! One line per key: its number and its networks, blanks between. A key without a line may be used from
//! anywhere.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::net::IpAddr;
use std::path::Path;

use thiserror::Error;
use touchline_protocol::regular_file;
use touchline_protocol::units::KeyId;

use super::network::{Network, any_contains};

/// Name of the file in the data folder.
pub const KEY_ADDRESSES_FILE: &str = "key-addresses";

/// Longest file that is read, in bytes.
pub const KEY_ADDRESSES_BYTES_MAX: usize = 4 << 20;

/// The lists of all keys that have one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyAddresses {
    by_key: BTreeMap<u64, Vec<Network>>,
}

/// A line that is not a key's number and its networks.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line} of the list of keys' addresses: {problem}")]
pub struct KeyAddressesError {
    /// Which one, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: String,
}

/// What stands in the file at `path`; `None` if there is no such file.
///
/// # Errors
/// As the system says; also if it is no regular file, no text, or longer than [`KEY_ADDRESSES_BYTES_MAX`].
pub fn read_text(path: &Path) -> io::Result<Option<String>> {
    read_text_within(path, KEY_ADDRESSES_BYTES_MAX)
}

/// As [`read_text`], of at most so many bytes.
///
/// # Errors
/// As there.
pub fn read_text_within(path: &Path, bytes_max: usize) -> io::Result<Option<String>> {
    match regular_file::read_bounded(path, bytes_max) {
        Ok(bytes) => regular_file::text_of(bytes).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl KeyAddresses {
    /// Reads the file's text.
    ///
    /// # Errors
    /// The first line that is not as it should be: nobody knows then what was meant.
    pub fn from_text(text: &str) -> Result<Self, KeyAddressesError> {
        let mut by_key = BTreeMap::new();
        for (line, text) in (1..).zip(text.lines()) {
            let wrong = |problem: String| KeyAddressesError { line, problem };
            let mut words = text.split_ascii_whitespace();
            let Some(number) = words.next() else { continue };
            let key: u64 =
                number.parse().map_err(|_| wrong(format!("{number:?} is no key's number")))?;
            let networks = words
                .map(|word| word.parse::<Network>().map_err(|error| wrong(error.to_string())))
                .collect::<Result<Vec<_>, _>>()?;
            if by_key.insert(key, networks).is_some() {
                return Err(wrong(format!("key {key} stands there twice")));
            }
        }
        Ok(Self { by_key })
    }

    /// The file's text.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (key, networks) in &self.by_key {
            // Writing to a String cannot fail.
            let _ = write!(text, "{key}");
            for network in networks {
                let _ = write!(text, " {network}");
            }
            text.push('\n');
        }
        text
    }

    /// Lets a key be used from these networks alone; from anywhere if there are none.
    pub fn set(&mut self, key: KeyId, networks: Vec<Network>) {
        if networks.is_empty() {
            self.by_key.remove(&key.0);
        } else {
            self.by_key.insert(key.0, networks);
        }
    }

    /// True if no key has a list.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Whether a key may be used from an address.
    #[must_use]
    pub fn allow(&self, key: KeyId, address: IpAddr) -> bool {
        self.by_key.get(&key.0).is_none_or(|networks| any_contains(networks, address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_with_a_list_is_of_use_from_there_alone() {
        let mut lists = KeyAddresses::from_text("7 10.0.0.0/8 ::1\n\n 9 192.0.2.1 \n8\n").unwrap();
        let allowed = |lists: &KeyAddresses, key, address: &str| {
            lists.allow(KeyId(key), address.parse().unwrap())
        };
        assert!(allowed(&lists, 7, "10.2.3.4") && allowed(&lists, 7, "::1"));
        assert!(!allowed(&lists, 7, "192.0.2.1") && allowed(&lists, 9, "192.0.2.1"));
        assert!(allowed(&lists, 6, "192.0.2.1"), "no list");
        assert!(!allowed(&lists, 8, "192.0.2.1"), "a list of nothing");
        assert_eq!(KeyAddresses::from_text(&lists.to_text()).unwrap(), lists);
        lists.set(KeyId(7), Vec::new());
        lists.set(KeyId(6), vec!["10.0.0.1".parse().unwrap()]);
        assert!(allowed(&lists, 7, "192.0.2.1") && !allowed(&lists, 6, "192.0.2.1"));
    }

    #[test]
    fn a_bad_line_is_named() {
        for (text, message) in [
            ("7 ::1\nx ::1", "line 2 of the list of keys' addresses: \"x\" is no key's number"),
            (
                "7 10.0.0.1/8",
                "line 1 of the list of keys' addresses: \"10.0.0.1/8\" is no address, and no network such as 10.0.0.0/8 or 2001:db8::/32",
            ),
            ("7 ::1\n7 ::2", "line 2 of the list of keys' addresses: key 7 stands there twice"),
        ] {
            assert_eq!(KeyAddresses::from_text(text).unwrap_err().to_string(), message);
        }
    }
}
