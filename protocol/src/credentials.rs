//! API keys and their secrets, both derived from one master key, so that none is stored. Called by
//! the engine's gateway (binary logon), by the adapter (REST signatures) and by `touchline admin`.
//!
//! An API key is 64 letters and digits: 53 of a MAC over the key's number, then the number itself,
//! masked. Whoever holds the master key can so tell a genuine key from an invented one without any
//! table; whether the key exists and what it may do is the core's to say.

use crate::regular_file;
use crate::units::KeyId;
use hmac::{Hmac, KeyInit, Mac};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use sha2::Sha512;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Characters of an API key and of a secret.
pub const CREDENTIAL_CHARACTERS: usize = 64;

const MARK_CHARACTERS: usize = 16;
const MASTER_KEY_BYTES: usize = 32;
const MAC_CHARACTERS: usize = 53;
const NUMBER_CHARACTERS: usize = CREDENTIAL_CHARACTERS - MAC_CHARACTERS;
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Why the master key cannot be had.
#[derive(Debug, Error)]
pub enum MasterKeyError {
    /// The file cannot be read or written.
    #[error("master key {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file has another size.
    #[error("master key {path}: {found} bytes, expected {MASTER_KEY_BYTES}")]
    Size {
        /// The file.
        path: PathBuf,
        /// Its bytes.
        found: usize,
    },
    /// Others than the owner may read the file.
    #[error("master key {path}: mode {mode:o} lets others in; set it to 600")]
    Mode {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
}

/// The secret of an API key, as its holder has it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// What it is.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

/// Shows nothing of it.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// The secret that all API keys and secrets of a venue come from.
#[derive(Clone)]
pub struct MasterKey {
    bytes: [u8; MASTER_KEY_BYTES],
}

impl MasterKey {
    /// Makes a master key of given bytes (tests; elsewhere they come from the file).
    #[must_use]
    pub const fn new(bytes: [u8; MASTER_KEY_BYTES]) -> Self {
        Self { bytes }
    }

    /// Reads the master key from its file.
    ///
    /// # Errors
    /// See [`MasterKeyError`].
    pub fn load(path: &Path) -> Result<Self, MasterKeyError> {
        let failed = |source| MasterKeyError::File { path: path.to_owned(), source };
        let file = regular_file::open(path).map_err(failed)?;
        let mode = file.metadata().map_err(failed)?.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(MasterKeyError::Mode { path: path.to_owned(), mode });
        }
        let mut content = Vec::new();
        file.take(MASTER_KEY_BYTES as u64 + 1).read_to_end(&mut content).map_err(failed)?;
        let found = content.len();
        let bytes = content
            .try_into()
            .map_err(|_| MasterKeyError::Size { path: path.to_owned(), found })?;
        Ok(Self { bytes })
    }

    /// Reads the master key, or makes one of the system's random bytes (mode 0600, synced, put in
    /// place at once) where there is none.
    ///
    /// # Errors
    /// See [`MasterKeyError`].
    pub fn load_or_create(path: &Path) -> Result<Self, MasterKeyError> {
        if path.exists() {
            return Self::load(path);
        }
        Self::create(path)
            .map_err(|source| MasterKeyError::File { path: path.to_owned(), source })?;
        Self::load(path)
    }

    fn create(path: &Path) -> io::Result<()> {
        let mut bytes = [0; MASTER_KEY_BYTES];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        let draft = path.with_extension(format!("draft-{}", std::process::id()));
        let mut file = regular_file::replace(&draft, 0o600)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        place(&draft, path)?;
        path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    }

    /// The API key with this number: 64 letters and digits.
    #[must_use]
    pub fn api_key(&self, key: KeyId) -> String {
        let mut text = self.derive("api key", &key.0.to_le_bytes(), MAC_CHARACTERS);
        let mut masked = key.0 ^ self.number_mask(text.as_bytes());
        for _ in 0..NUMBER_CHARACTERS {
            text.push(char::from(ALPHABET[(masked % 62) as usize]));
            masked /= 62;
        }
        text
    }

    /// The number of a genuine API key; `None` for any other text.
    #[must_use]
    pub fn key_id(&self, api_key: &str) -> Option<KeyId> {
        let bytes = api_key.as_bytes();
        if bytes.len() != CREDENTIAL_CHARACTERS {
            return None;
        }
        let (mac, number) = bytes.split_at(MAC_CHARACTERS);
        let mut masked: u64 = 0;
        for character in number.iter().rev() {
            let digit = ALPHABET.iter().position(|letter| letter == character)? as u64;
            masked = masked.checked_mul(62)?.checked_add(digit)?;
        }
        let key = KeyId(masked ^ self.number_mask(mac));
        let genuine = self.api_key(key);
        // Every byte is compared whatever the first ones were: the time tells nothing.
        let difference = genuine
            .bytes()
            .zip(bytes)
            .fold(0, |difference, (left, right)| difference | (left ^ right));
        (difference == 0).then_some(key)
    }

    /// The secret of the API key with this number: 64 letters and digits, whose bytes key the HMACs.
    #[must_use]
    pub fn secret(&self, key: KeyId) -> String {
        self.derive("secret", &key.0.to_le_bytes(), CREDENTIAL_CHARACTERS)
    }

    /// By which this key is told from others: 16 letters and digits, that tell nothing of what comes from it.
    #[must_use]
    pub fn mark(&self) -> String {
        self.derive("mark", &[], MARK_CHARACTERS)
    }

    fn number_mask(&self, mac: &[u8]) -> u64 {
        let block = self.block("number", mac, 0);
        let mut first = [0; 8];
        first.copy_from_slice(&block[..8]);
        u64::from_le_bytes(first)
    }

    fn derive(&self, purpose: &str, input: &[u8], characters: usize) -> String {
        let mut text = String::with_capacity(characters);
        for counter in 0.. {
            // Bytes from 248 up are passed over: 248 is a multiple of 62, so each letter is as likely.
            for byte in self.block(purpose, input, counter).into_iter().filter(|&byte| byte < 248) {
                if text.len() == characters {
                    return text;
                }
                text.push(char::from(ALPHABET[usize::from(byte % 62)]));
            }
        }
        text
    }

    fn block(&self, purpose: &str, input: &[u8], counter: u32) -> [u8; 64] {
        let mut mac =
            Hmac::<Sha512>::new_from_slice(&self.bytes).expect("HMAC takes keys of any length");
        mac.update(purpose.as_bytes());
        mac.update(&[0]);
        mac.update(&counter.to_le_bytes());
        mac.update(input);
        mac.finalize().into_bytes().into()
    }
}

/// Gives a draft its name, if nobody else has it: if another process was quicker, its key is the key. Where the file
/// system can do so the key never has a second name, which would stay if this process ended just then.
fn place(draft: &Path, path: &Path) -> io::Result<()> {
    let placed = match renameat_with(CWD, draft, CWD, path, RenameFlags::NOREPLACE) {
        Ok(()) => return Ok(()),
        // Not every file system knows that; a link never replaces either.
        Err(Errno::INVAL | Errno::NOSYS) => fs::hard_link(draft, path),
        Err(error) => Err(error.into()),
    };
    fs::remove_file(draft)?;
    match placed {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::ClientOptions;
    use crate::feed::FeedOptions;
    use crate::message::enums::{Lane, Role};
    use crate::text::Name;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn keys_tell_their_number_and_strangers_tell_nothing() {
        let master = MasterKey::new([7; 32]);
        for number in [0, 1, 2, 61, 62, u64::MAX] {
            let text = master.api_key(KeyId(number));
            assert_eq!(text.len(), 64);
            assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric()));
            assert_eq!(master.key_id(&text), Some(KeyId(number)));
            for at in 0..64 {
                let mut changed = text.clone().into_bytes();
                changed[at] = if changed[at] == b'a' { b'b' } else { b'a' };
                let changed = String::from_utf8(changed).unwrap();
                assert_eq!(master.key_id(&changed), None, "changed at {at}");
            }
            assert_eq!(MasterKey::new([8; 32]).key_id(&text), None);
        }
        assert_eq!(master.key_id(""), None);
        assert_eq!(master.key_id(&"z".repeat(64)), None);
        assert_eq!(master.key_id(&"é".repeat(32)), None);
    }

    #[test]
    fn secrets_differ_and_stay() {
        let master = MasterKey::new([7; 32]);
        assert_eq!(master.secret(KeyId(1)), master.secret(KeyId(1)));
        assert_ne!(master.secret(KeyId(1)), master.secret(KeyId(2)));
        assert_ne!(master.secret(KeyId(1)), master.api_key(KeyId(1)));
        assert_eq!(master.secret(KeyId(1)).len(), 64);
    }

    #[test]
    fn a_mark_tells_one_key_from_another() {
        let (one, other) = (MasterKey::new([7; 32]), MasterKey::new([8; 32]));
        assert_eq!(one.mark(), MasterKey::new([7; 32]).mark());
        assert_ne!(one.mark(), other.mark());
        assert_eq!(one.mark().len(), 16);
        assert!(!one.secret(KeyId(0)).starts_with(&one.mark()));
    }

    #[test]
    fn options_of_a_connection_do_not_show_their_secret() {
        let key = || Some((KeyId(7), "Hidden".to_owned().into()));
        let name = Name::new("n").unwrap();
        let mut session = ClientOptions::new(PathBuf::new(), Role::Trader, Lane::Hot, name);
        session.key = key();
        let mut feed = FeedOptions::new(PathBuf::new(), name);
        feed.key = key();
        for shown in [format!("{session:?}"), format!("{feed:?}"), format!("{session:#?}")] {
            assert!(shown.contains("KeyId") && !shown.contains("Hidden"), "{shown}");
        }
    }

    #[test]
    fn a_key_has_one_name_and_takes_nobody_elses_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("master.key");
        let (first, second) = (folder.path().join("first"), folder.path().join("second"));
        for draft in [&first, &second] {
            fs::write(draft, draft.as_os_str().as_encoded_bytes()).unwrap();
        }
        let file = File::open(&first).unwrap();
        place(&first, &path).unwrap();
        place(&second, &path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), first.as_os_str().as_encoded_bytes());
        assert_eq!(file.metadata().unwrap().nlink(), 1);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn the_file_is_private_and_checked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("master.key");
        let made = MasterKey::load_or_create(&path).unwrap();
        let again = MasterKey::load_or_create(&path).unwrap();
        assert_eq!(made.secret(KeyId(1)), again.secret(KeyId(1)));
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        // Each of the bits lets somebody else in, be it the group alone.
        for letting_in in [0o644, 0o640, 0o620, 0o610, 0o604, 0o602, 0o601] {
            fs::set_permissions(&path, fs::Permissions::from_mode(letting_in)).unwrap();
            let refused = MasterKey::load(&path).map(drop);
            assert!(
                matches!(refused, Err(MasterKeyError::Mode { mode, .. }) if mode == letting_in),
                "{letting_in:o}: {refused:?}"
            );
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        for bytes in [31, 33] {
            fs::write(&path, vec![0; bytes]).unwrap();
            let refused = MasterKey::load(&path).map(drop);
            assert!(
                matches!(refused, Err(MasterKeyError::Size { found, .. }) if found == bytes),
                "{bytes}: {refused:?}"
            );
        }
    }
}
