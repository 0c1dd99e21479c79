//! The venue's master key, and the mark of it by which another one is known. Called by the engine's start, and by
//! `touchline doctor`, which makes neither.

use crate::notice::alert;
use crate::process::{check_new_log, has_log};
use anyhow::{Context, Result, bail, ensure};
use rustix::process::geteuid;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use touchline_protocol::credentials::MasterKey;
use touchline_protocol::{folder, regular_file};

/// The key's file in the data folder.
const FILE: &str = "master.key";

/// What says which key is the venue's, and nothing of what it is.
const MARK_FILE: &str = "master.mark";

/// A new venue gets a new master key, before its log. A venue without its key, or with another one, is refused: every
/// API key and secret of it would be void.
pub(crate) fn load(data: &Path) -> Result<MasterKey> {
    let path = data.join(FILE);
    if has_log(data)? {
        let (key, marked) = own(data)?;
        match marked {
            Marked::AsIs => {}
            Marked::NotYet => leave_mark(data, &key),
            Marked::Unreadable(error) => {
                alert!("engine: cannot read {}: {error}", data.join(MARK_FILE).display());
            }
        }
        return Ok(key);
    }
    // Else the key would be there, and another one, when the log is brought back.
    if path.exists() {
        check_not_planted(&path)?;
    } else {
        check_new_log(data)?;
    }
    folder::make(data)
        .with_context(|| format!("cannot make the data folder {}", data.display()))?;
    let key = MasterKey::load_or_create(&path)?;
    leave_mark(data, &key);
    Ok(key)
}

/// Whether a start takes the master key in a data folder. A new venue makes its own where there is none, and where
/// the log cannot be looked for the key alone is looked at.
///
/// # Errors
/// What such a start would be refused for.
pub fn check_master_key(data: &Path) -> Result<()> {
    let path = data.join(FILE);
    if has_log(data).unwrap_or(false) {
        own(data)?;
    } else if path.exists() {
        MasterKey::load(&path)?;
        check_not_planted(&path)?;
    }
    Ok(())
}

/// A venue that is to be made takes a key that lies there, such as one that an interrupted start has left. Another
/// user's would be known to him, and with it every secret of the venue.
fn check_not_planted(path: &Path) -> Result<()> {
    let owner = path.metadata().with_context(|| path.display().to_string())?.uid();
    ensure!(
        owner == geteuid().as_raw(),
        "{} belongs to user {owner}, who knows it, and there is no venue yet that it is the key of: remove it, and \
         a new one is made, or, if it is the one that you want, make it yours (chown)",
        path.display()
    );
    Ok(())
}

/// How the mark in the data folder stands to a key that it does not speak against.
enum Marked {
    AsIs,
    /// There is none, or a part of one: a first start may have been cut off.
    NotYet,
    Unreadable(io::Error),
}

/// The key of a venue that has a log. Refuses one that is not the one that the mark is of, and any beside a mark that is
/// longer than it can be, or no text.
fn own(data: &Path) -> Result<(MasterKey, Marked)> {
    let key = MasterKey::load(&data.join(FILE))
        .context("the venue's keys come from its master key: put the file back")?;
    let path = data.join(MARK_FILE);
    let other = || {
        let (file, path) = (data.join(FILE), path.display());
        format!(
            "{} is another one than this venue's, as {path} tells: every API key and secret would be void. Put the \
             right one back; to go on with this one, for clients that get new keys, remove {path}",
            file.display()
        )
    };
    let damaged = || {
        let (file, path) = (data.join(FILE), path.display());
        format!(
            "{path} is damaged: that is no mark, so nothing tells whether {} is this venue's. If it is, remove \
             {path}, which a start makes anew; with any other every API key and secret would be void",
            file.display()
        )
    };
    let marked = match regular_file::read_to_string(&path) {
        Ok(mark) if mark.trim_end() == key.mark() => Marked::AsIs,
        Ok(mark) if mark.trim_end().len() < key.mark().len() => Marked::NotYet,
        Ok(mark) if mark.trim_end().len() == key.mark().len() => bail!(other()),
        Ok(_) => bail!(damaged()),
        Err(error) if matches!(error.kind(), ErrorKind::FileTooLarge | ErrorKind::InvalidData) => {
            bail!(damaged())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Marked::NotYet,
        Err(error) => Marked::Unreadable(error),
    };
    Ok((key, marked))
}

/// A disk that is full keeps no venue from starting: the next start tries again.
fn leave_mark(data: &Path, key: &MasterKey) {
    let path = data.join(MARK_FILE);
    let line = format!("{}\n", key.mark());
    if let Err(error) = regular_file::put_whole(&path, 0o644, line.as_bytes()) {
        alert!("engine: cannot write {}: {error}", path.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skipped::skipped;
    use std::fs;
    use std::os::unix::fs::chown;

    #[test]
    fn a_mark_that_is_longer_than_any_or_no_text_is_refused_as_damaged() {
        let data = tempfile::tempdir().unwrap();
        let key = MasterKey::load_or_create(&data.path().join(FILE)).unwrap();
        let path = data.path().join(MARK_FILE);
        let refused = || format!("{:#}", own(data.path()).map(drop).unwrap_err());
        for bytes in [key.mark().len() + 1, 100, 1 << 20] {
            let behind = "x".repeat(bytes - key.mark().len());
            fs::write(&path, key.mark() + &behind).unwrap();
            let refused = refused();
            let told = format!("{} is damaged", path.display());
            assert!(refused.contains(&told), "{bytes}: {refused}");
            assert!(!refused.contains("another one"), "{bytes}: {refused}");
        }
        fs::write(&path, [0xff; 8]).unwrap();
        assert!(refused().contains("is damaged"), "{}", refused());
        fs::write(&path, "x".repeat(key.mark().len())).unwrap();
        assert!(refused().contains("another one than this venue's"), "{}", refused());
    }

    /// Only who may give files away can try it.
    #[test]
    fn a_new_venue_takes_no_key_that_another_user_knows() {
        if !geteuid().is_root() {
            return skipped("root, who alone may give files away");
        }
        let data = tempfile::tempdir().unwrap();
        let path = data.path().join(FILE);
        let key = MasterKey::load_or_create(&path).unwrap();
        chown(&path, Some(65_534), None).unwrap();
        for refused in [load(data.path()).map(drop), check_master_key(data.path())] {
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains("belongs to user 65534, who knows it"), "{refused}");
        }
        chown(&path, Some(0), None).unwrap();
        assert_eq!(load(data.path()).unwrap().mark(), key.mark());
    }
}
