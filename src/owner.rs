//! Who may make files in a venue's folder: its own user, to whom they then belong. Called by what does so beside the
//! engine, `touchline admin` and `touchline log snapshot`.

use anyhow::{Result, ensure};
use rustix::process::geteuid;
use std::path::Path;

/// Refuses the venue of another user. Root may write there, and what it made nobody else could read: the next start, or
/// the kill switch, would fail by it.
///
/// # Errors
/// If the venue belongs to another user.
pub(crate) fn check_is_own(data: &Path) -> Result<()> {
    let (owner, user) = (touchline_engine::owner(data), geteuid().as_raw());
    let owner = owner.unwrap_or(user);
    ensure!(
        owner == user,
        "{} is the venue of user {owner}, who could not read what user {user} makes in it: run this as that user \
         (sudo -u '#{owner}')",
        data.display()
    );
    Ok(())
}
