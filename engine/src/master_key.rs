//! The venue's master key, and the mark of it by which another one is known. Called by the engine's start.

use crate::notice::alert;
use crate::process::{check_new_log, has_log};
use crate::recovery::put_whole;
use anyhow::{Context, Result, bail};
use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use touchline_protocol::credentials::MasterKey;

/// The key's file in the data folder.
const FILE: &str = "master.key";

/// What says which key is the venue's, and nothing of what it is.
const MARK_FILE: &str = "master.mark";

/// A new venue gets a new master key, before its log. A venue without its key, or with another one, is refused: every
/// API key and secret of it would be void.
pub(crate) fn load(data: &Path) -> Result<MasterKey> {
    let path = data.join(FILE);
    if has_log(data)? {
        let key = MasterKey::load(&path)
            .context("the venue's keys come from its master key: put the file back")?;
        check_mark(data, &key)?;
        return Ok(key);
    }
    // Else the key would be there, and another one, when the log is brought back.
    if !path.exists() {
        check_new_log(data)?;
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(data)
        .with_context(|| format!("cannot make the data folder {}", data.display()))?;
    let key = MasterKey::load_or_create(&path)?;
    leave_mark(data, &key);
    Ok(key)
}

/// Refuses a key that is not the one that the mark is of; where there is none yet it is made.
fn check_mark(data: &Path, key: &MasterKey) -> Result<()> {
    let path = data.join(MARK_FILE);
    match fs::read_to_string(&path) {
        Ok(mark) if mark.trim_end() == key.mark() => {}
        // A first start that was cut off may leave a part of it.
        Ok(mark) if mark.trim_end().len() < key.mark().len() => leave_mark(data, key),
        Ok(_) => bail!(
            "{} is another one than this venue's, as {} tells: every API key and secret would be void. Put the right \
             one back; to go on with this one, for clients that get new keys, remove {}",
            data.join(FILE).display(),
            path.display(),
            path.display()
        ),
        Err(error) if error.kind() == ErrorKind::NotFound => leave_mark(data, key),
        Err(error) => alert!("engine: cannot read {}: {error}", path.display()),
    }
    Ok(())
}

/// A disk that is full keeps no venue from starting: the next start tries again.
fn leave_mark(data: &Path, key: &MasterKey) {
    let path = data.join(MARK_FILE);
    let line = format!("{}\n", key.mark());
    if let Err(error) = put_whole(data, &path, line.as_bytes()) {
        alert!("engine: cannot write {}: {error}", path.display());
    }
}
