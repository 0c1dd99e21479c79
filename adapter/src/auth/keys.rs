//! The keys that sign tokens: a file of the data folder that only its owner may read, made at the first
//! start. The newest key signs; older ones are believed until the last of their tokens has ended. Read by
//! [`super::token`], rotated by `touchline admin token-key`; adapters notice that by themselves.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use base16ct::{lower, mixed};
use jsonwebtoken::{DecodingKey, EncodingKey};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use touchline_protocol::regular_file::{self, read_at_most};

use crate::notice::alert;

/// Name of the file in the data folder.
pub const FILE_NAME: &str = "token-keys.json";

/// Longest that any token is good for, in seconds: 30 days. A key that was replaced is believed for so
/// long, and some seconds.
pub const TOKEN_LIFETIME_MAX_S: u64 = 30 * 24 * 3600;

/// How long a key may go on signing behind the moment that it was replaced at, in seconds. That moment is
/// taken before the new file is synced, which a busy disk may hold up for some seconds, and an adapter looks
/// at the file once per second.
pub(super) const STILL_SIGNING_S: u64 = 10;

/// Bytes of a key: as many as the signature has, the least that RFC 7518 §3.2 allows.
const SECRET_BYTES: usize = 32;

/// Bytes of a key's name.
const KID_BYTES: usize = 8;

/// Longest file that is read, and written: some five hundred keys.
const FILE_BYTES_MAX: usize = 64 * 1024;

/// Why the keys cannot be had.
#[derive(Debug, Error)]
pub enum KeysError {
    /// The file cannot be read or written.
    #[error("token keys {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no key to be replaced.
    #[error(
        "token keys {path}: there is no such file, and with a new one no token that was ever issued would be \
         believed: bring it back from a copy, or give --revoke; where there never was one, an adapter's first \
         start makes it"
    )]
    Absent {
        /// The file.
        path: PathBuf,
    },
    /// Others than the owner may read the file.
    #[error("token keys {path}: mode {mode:o} lets others in; set it to 600")]
    Mode {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The file does not hold keys.
    #[error("token keys {path}: {what}")]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it; nothing of what stands in it.
        what: &'static str,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    keys: Vec<Entry>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// The name that tokens give.
    kid: String,
    /// In lower-case hexadecimal.
    secret: String,
    /// Seconds since the epoch; none: this one signs.
    until: Option<u64>,
}

/// One key, ready for use.
pub(super) struct Key {
    pub(super) kid: String,
    /// Tokens of this key are believed before this time, in seconds since the epoch.
    pub(super) until: Option<u64>,
    pub(super) signing: EncodingKey,
    pub(super) verifying: DecodingKey,
}

/// The keys of one state of the file.
pub(super) struct Keys {
    keys: Vec<Key>,
}

impl Keys {
    /// The one that signs.
    pub(super) fn current(&self) -> Option<&Key> {
        self.keys.iter().find(|key| key.until.is_none())
    }

    /// The one of this name, if it is still believed.
    pub(super) fn named(&self, kid: &str, now_s: u64) -> Option<&Key> {
        let is_believed = |key: &&Key| key.until.is_none_or(|until| now_s < until);
        self.keys.iter().find(|key| key.kid == kid).filter(is_believed)
    }
}

/// Which state of the file was read: of its content, and of who may read it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    changed_s: i64,
    changed_ns: i64,
}

impl Stamp {
    fn of(metadata: &fs::Metadata) -> Self {
        let (changed_s, changed_ns) = (metadata.ctime(), metadata.ctime_nsec());
        Self { inode: metadata.ino(), changed_s, changed_ns }
    }
}

/// The keys as the file has them now.
pub struct KeyRing {
    path: PathBuf,
    read: RwLock<(Option<Stamp>, Arc<Keys>)>,
    /// When the file was last looked at, in seconds since the epoch.
    looked_s: AtomicU64,
    is_new: bool,
}

impl KeyRing {
    /// The keys of this file, which is made if there is none.
    ///
    /// # Errors
    /// See [`KeysError`].
    pub fn open(path: PathBuf) -> Result<Self, KeysError> {
        let make = || put_if_absent(&path, &content(vec![fresh()?])?);
        let is_new = !path.exists() && make().map_err(|source| failed(&path, source))?;
        let (stamp, keys) = read(&path)?;
        let read = RwLock::new((Some(stamp), Arc::new(ready(keys, &path)?)));
        Ok(Self { path, read, looked_s: AtomicU64::new(0), is_new })
    }

    /// Whether there was no file, and this has made it: no token that was ever given is believed then.
    #[must_use]
    pub const fn is_new(&self) -> bool {
        self.is_new
    }

    /// The keys. The file is looked at once per second at the most; one that cannot be read any more
    /// leaves the keys as they were.
    pub(super) fn keys(&self, now_s: u64) -> Arc<Keys> {
        if self.looked_s.swap(now_s, Ordering::AcqRel) != now_s {
            self.look();
        }
        self.known_keys()
    }

    /// The keys as of this moment, whenever the file was looked at last.
    pub(super) fn present_keys(&self) -> Arc<Keys> {
        self.look();
        self.known_keys()
    }

    fn known_keys(&self) -> Arc<Keys> {
        Arc::clone(&self.read.read().unwrap_or_else(PoisonError::into_inner).1)
    }

    fn look(&self) {
        let stamp = fs::metadata(&self.path).ok().map(|metadata| Stamp::of(&metadata));
        if self.read.read().unwrap_or_else(PoisonError::into_inner).0 == stamp {
            return;
        }
        let found = read(&self.path).and_then(|(_, keys)| ready(keys, &self.path));
        let mut present = self.read.write().unwrap_or_else(PoisonError::into_inner);
        match found {
            Ok(keys) => *present = (stamp, Arc::new(keys)),
            // It may be sound: read again at each look, and told once.
            Err(error @ KeysError::File { .. }) => {
                if present.0.take().is_some() {
                    alert!("adapter: {error}; going on with the keys read before");
                }
            }
            // Remembered although it is bad: told once, and not read again each second.
            Err(error) => {
                present.0 = stamp;
                alert!("adapter: {error}; going on with the keys read before");
            }
        }
    }
}

/// Makes a new key, which signs from now on, and gives its name. The present one is believed for
/// [`TOKEN_LIFETIME_MAX_S`] seconds more, and those in which it may still sign; with `revoke`, no token that was
/// ever issued is believed any longer, and only then there need be no file. `now_s` is in seconds since the epoch.
/// One at a time: the last of two would win.
///
/// # Errors
/// See [`KeysError`].
pub fn rotate(path: &Path, now_s: u64, revoke: bool) -> Result<String, KeysError> {
    let mut keys = match revoke {
        true => Vec::new(),
        // A link that leads nowhere is there, and what the system says of it tells more.
        false => match path.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(KeysError::Absent { path: path.to_owned() });
            }
            _ => read(path)?.1,
        },
    };
    keys.retain(|key| key.until.is_none_or(|until| until > now_s));
    for key in &mut keys {
        key.until.get_or_insert(now_s.saturating_add(TOKEN_LIFETIME_MAX_S + STILL_SIGNING_S));
    }
    let new = fresh().map_err(|source| failed(path, source))?;
    let kid = new.kid.clone();
    keys.push(new);
    put_over(path, keys).map_err(|source| failed(path, source))?;
    Ok(kid)
}

fn failed(path: &Path, source: io::Error) -> KeysError {
    KeysError::File { path: path.to_owned(), source }
}

fn fresh() -> io::Result<Entry> {
    let mut random = [0; KID_BYTES + SECRET_BYTES];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let (kid, secret) = random.split_at(KID_BYTES);
    Ok(Entry { kid: lower::encode_string(kid), secret: lower::encode_string(secret), until: None })
}

fn read(path: &Path) -> Result<(Stamp, Vec<Entry>), KeysError> {
    let file = regular_file::open(path).map_err(|source| failed(path, source))?;
    let metadata = file.metadata().map_err(|source| failed(path, source))?;
    let mode = metadata.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(KeysError::Mode { path: path.to_owned(), mode });
    }
    let bad = |what| KeysError::Content { path: path.to_owned(), what };
    let content = read_at_most(file, FILE_BYTES_MAX).map_err(|source| match source.kind() {
        ErrorKind::FileTooLarge => bad("longer than 64 KiB"),
        _ => failed(path, source),
    })?;
    // The parser's own message could quote a key.
    let document: Document =
        serde_json::from_slice(&content).map_err(|_| bad("not a list of keys"))?;
    Ok((Stamp::of(&metadata), document.keys))
}

fn ready(entries: Vec<Entry>, path: &Path) -> Result<Keys, KeysError> {
    let bad = |what| KeysError::Content { path: path.to_owned(), what };
    let mut keys: Vec<Key> = Vec::with_capacity(entries.len());
    for Entry { kid, secret, until } in entries {
        let secret = mixed::decode_vec(&secret).map_err(|_| bad("a key is not hexadecimal"))?;
        if secret.len() < SECRET_BYTES {
            return Err(bad("a key is shorter than 32 bytes"));
        }
        if kid.is_empty() || keys.iter().any(|other| other.kid == kid) {
            return Err(bad("two keys have one name, or a key has none"));
        }
        keys.push(Key {
            kid,
            until,
            signing: EncodingKey::from_secret(&secret),
            verifying: DecodingKey::from_secret(&secret),
        });
    }
    match keys.iter().filter(|key| key.until.is_none()).count() {
        1 => Ok(Keys { keys }),
        _ => Err(bad("not exactly one key is without an end")),
    }
}

/// What stands in a file of these keys.
fn content(keys: Vec<Entry>) -> io::Result<Vec<u8>> {
    let count = keys.len();
    let content = serde_json::to_vec(&Document { keys })?;
    if content.len() > FILE_BYTES_MAX {
        // Nobody could start with it.
        return Err(io::Error::other(format!(
            "{count} keys are too many: a replaced one is kept for 30 days, unless all are revoked"
        )));
    }
    Ok(content)
}

/// Puts a file of these keys in place of the one that is there.
fn put_over(path: &Path, keys: Vec<Entry>) -> io::Result<()> {
    regular_file::put_whole(path, 0o600, &content(keys)?)
}

/// Puts a file where there is none, whole or not at all: if another adapter was quicker, its key is the key, and false is
/// given.
fn put_if_absent(path: &Path, content: &[u8]) -> io::Result<bool> {
    let own = path.with_extension(format!("draft-{}", std::process::id()));
    regular_file::put_whole(&own, 0o600, content)?;
    // A link never replaces.
    let placed = fs::hard_link(&own, path);
    fs::remove_file(&own)?;
    let is_ours = match placed {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        placed => placed.is_ok(),
    };
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())?;
    Ok(is_ours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType::Fifo, Mode, mknodat};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use tempfile::TempDir;

    const NOW: u64 = 1_800_000_000;

    fn folder() -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        (folder, path)
    }

    fn current(ring: &KeyRing, now_s: u64) -> String {
        ring.keys(now_s).current().unwrap().kid.clone()
    }

    #[test]
    fn the_first_start_makes_a_key_that_stays() {
        let (_folder, path) = folder();
        let [made, found] = [(), ()].map(|()| KeyRing::open(path.clone()).unwrap());
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(current(&made, NOW), current(&found, NOW));
        assert!(made.is_new() && !found.is_new());
        let entries = read(&path).unwrap().1;
        assert_eq!((entries.len(), entries[0].secret.len()), (1, 64));
    }

    #[test]
    fn a_replaced_key_is_believed_until_its_tokens_end_and_a_revoked_one_is_not() {
        let (_folder, path) = folder();
        let ring = KeyRing::open(path.clone()).unwrap();
        let first = current(&ring, NOW);
        let second = rotate(&path, NOW, false).unwrap();
        assert_eq!(current(&ring, NOW + 1), second, "a running adapter notices");
        let end = NOW + TOKEN_LIFETIME_MAX_S + STILL_SIGNING_S;
        assert!(ring.keys(end - 1).named(&first, end - 1).is_some());
        assert!(ring.keys(end).named(&first, end).is_none());
        let third = rotate(&path, NOW + 1, false).unwrap();
        let keys = ring.keys(NOW + 2);
        for kid in [&first, &second, &third] {
            assert!(keys.named(kid, NOW + 2).is_some());
        }
        rotate(&path, end, false).unwrap();
        let names = read(&path).unwrap().1.len();
        assert_eq!(names, 3, "the first key has ended and is forgotten");
        rotate(&path, end, true).unwrap();
        let keys = ring.keys(end + 1);
        for kid in [&first, &second, &third] {
            assert!(keys.named(kid, end + 1).is_none());
        }
    }

    /// Adapters that run go on with the keys that they read: a new file would end what they believe.
    #[test]
    fn a_key_whose_file_is_gone_is_not_replaced_unless_its_tokens_are_to_end() {
        let (_folder, path) = folder();
        let ring = KeyRing::open(path.clone()).unwrap();
        let first = current(&ring, NOW);
        fs::remove_file(&path).unwrap();
        let error = rotate(&path, NOW, false).unwrap_err().to_string();
        assert!(error.contains("no such file") && error.contains("--revoke"), "{error}");
        assert!(!path.exists());
        assert_eq!(current(&ring, NOW + 1), first);
        let second = rotate(&path, NOW + 1, true).unwrap();
        assert_eq!(current(&ring, NOW + 2), second);
    }

    /// Whoever reads a pipe waits for a writer, who never comes.
    #[test]
    fn a_pipe_in_the_files_place_is_refused() {
        let (_folder, path) = folder();
        mknodat(CWD, &path, Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let refused = [KeyRing::open(path.clone()).map(drop), rotate(&path, NOW, false).map(drop)];
        for error in refused.map(|refused| refused.unwrap_err().to_string()) {
            assert!(error.contains("not a regular file"), "{error}");
        }
    }

    /// Only where there is none the advice is to bring it back.
    #[test]
    fn a_key_whose_file_cannot_be_reached_is_told_for_what_keeps_it() {
        let (folder, path) = folder();
        symlink("nowhere", &path).unwrap();
        let error = rotate(&path, NOW, false).unwrap_err();
        assert!(matches!(error, KeysError::File { .. }), "{error}");
        let below = folder.path().join("file");
        fs::write(&below, "").unwrap();
        let error = rotate(&below.join(FILE_NAME), NOW, false).unwrap_err();
        assert!(matches!(error, KeysError::File { .. }), "{error}");
    }

    #[test]
    fn a_file_that_let_others_in_is_read_once_its_mode_is_set_right() {
        let (_folder, path) = folder();
        let ring = KeyRing::open(path.clone()).unwrap();
        let first = current(&ring, NOW);
        let mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let second = rotate(&path, NOW, true).unwrap();
        mode(0o644);
        assert_eq!(current(&ring, NOW + 1), first, "not with this mode");
        mode(0o600);
        assert_eq!(current(&ring, NOW + 2), second, "as it was told to be set");
    }

    #[test]
    fn a_rotation_that_no_adapter_could_start_with_is_refused() {
        let (_folder, path) = folder();
        KeyRing::open(path.clone()).unwrap();
        let mut keys = read(&path).unwrap().1;
        keys.extend((0..600).map(|_| Entry { until: Some(NOW + 1), ..fresh().unwrap() }));
        let is_too_long = |count: usize| {
            let document = Document { keys: keys[..count].to_vec() };
            serde_json::to_vec(&document).unwrap().len() > FILE_BYTES_MAX
        };
        keys.truncate((1..).find(|&count| is_too_long(count)).unwrap() - 1);
        put_over(&path, keys).unwrap();
        let before = current(&KeyRing::open(path.clone()).unwrap(), NOW);
        let error = rotate(&path, NOW, false).unwrap_err().to_string();
        assert!(error.contains("keys are too many"), "{error}");
        assert_eq!(current(&KeyRing::open(path.clone()).unwrap(), NOW), before);
        rotate(&path, NOW + 1, false).unwrap();
    }

    #[test]
    fn a_file_that_is_not_fit_is_refused_at_a_start_and_passed_over_later() {
        let (_folder, path) = folder();
        let ring = KeyRing::open(path.clone()).unwrap();
        let sound = fs::read_to_string(&path).unwrap();
        let kid = current(&ring, NOW);
        let key = format!(r#"{{"kid":"{kid}","secret":"{}","until":null}}"#, "ab".repeat(32));
        for (number, (content, part)) in [
            ("{\"keys\":[]}".to_owned(), "without an end"),
            ("secret".to_owned(), "not a list"),
            (format!("{{\"keys\":[{key},{key}]}}"), "one name"),
            (sound.replace("\"secret\":\"", "\"secret\":\"x"), "hexadecimal"),
            (format!("{{\"keys\":[{}]}}", key.replace(&"ab".repeat(32), "ab")), "shorter than 32"),
            (
                format!("{{\"keys\":[{}]}}", key.replace(&"ab".repeat(32), &"ab".repeat(31))),
                "shorter than 32",
            ),
            (format!("{{\"keys\":[{}]}}", key.replace(&kid, "")), "a key has none"),
            (format!("{sound}{}", " ".repeat(FILE_BYTES_MAX)), "longer than 64 KiB"),
        ]
        .into_iter()
        .enumerate()
        {
            fs::write(&path, &content).unwrap();
            let error = KeyRing::open(path.clone()).err().unwrap().to_string();
            assert!(error.contains(part), "{content}: {error}");
            assert_eq!(current(&ring, NOW + 1 + number as u64), kid);
        }
        fs::write(&path, sound).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = KeyRing::open(path).err().unwrap().to_string();
        assert!(error.contains("mode 640"), "{error}");
    }
}
