//! The file of settings as it was when `up` was started: what was checked then is what a child that is started
//! again gets, whatever somebody is just writing into the file. Called by [`super::run`].

use crate::cli::SettingsArguments;
use crate::settings::{self, Settings};
use anyhow::{Context, Result};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

/// A copy in memory that the children inherit.
pub(super) struct KeptSettings {
    /// As given, but with the copy in the place of the file.
    pub(super) arguments: SettingsArguments,
    /// Open, and so under its name, for as long as children are started.
    _copy: Option<File>,
}

impl KeptSettings {
    /// Reads the file, if the arguments name one, and gives what it says.
    ///
    /// # Errors
    /// If it cannot be read or says something wrong, or there is no memory for the copy.
    pub(super) fn load(arguments: &SettingsArguments) -> Result<(Settings, Self)> {
        let text = settings::text(arguments)?;
        let settings = settings::parse(arguments, text.as_deref())?;
        Ok((settings, Self::of(arguments, text).context("cannot keep a copy of the settings")?))
    }

    fn of(arguments: &SettingsArguments, text: Option<String>) -> Result<Self> {
        let Some(text) = text else {
            return Ok(Self { arguments: arguments.clone(), _copy: None });
        };
        // Not closed in the children: each opens it anew by its number, and reads it from the beginning.
        let mut copy = File::from(new_memfd()?);
        copy.write_all(text.as_bytes())?;
        fcntl_add_seals(&copy, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK)?;
        let config = PathBuf::from(format!("/proc/self/fd/{}", copy.as_raw_fd()));
        let arguments = SettingsArguments { config: Some(config), ..arguments.clone() };
        Ok(Self { arguments, _copy: Some(copy) })
    }
}

/// Inherited, and never to be run.
fn new_memfd() -> rustix::io::Result<OwnedFd> {
    let flags = MemfdFlags::ALLOW_SEALING;
    match memfd_create("venue.toml", flags | MemfdFlags::NOEXEC_SEAL) {
        // Kernels before 6.3 do not know the flag.
        Err(Errno::INVAL) => memfd_create("venue.toml", flags),
        made => made,
    }
}
