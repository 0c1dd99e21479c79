//! What the histories of a venue's adapters need of its log, as far as their leases do not say it: one that is gone, or
//! that cannot be gone on with, is made anew of all of it. Asked by `log prune` and the doctor.

use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use touchline_adapter::config::is_instance;
use touchline_adapter::{KeptHistory, instance_of_lease, kept_history, lease_of_instance};
use touchline_protocol::log::lease::{HeldLease, leases};
use touchline_protocol::log::place::HISTORY_FOLDER;
use touchline_protocol::log::reader::{Follow, LogReader, ReadError};
use touchline_protocol::log::transaction::Bookmark;
use touchline_protocol::units::Position;

/// What a history needs beside what its lease says, or without one.
pub(crate) struct Need {
    /// As a lease would say it.
    pub(crate) held: HeldLease,
    /// Why, and what to do where that is to be no longer so.
    pub(crate) why: String,
}

/// How to prune nevertheless.
const UNASKED: &str = "or say --without-history, and there will be none of what is removed then";

/// What the histories of the log in the data folder `data` need.
///
/// # Errors
/// If the log, the folder of histories or a lease cannot be read.
pub(crate) fn needs(data: &Path) -> Result<Vec<Need>> {
    let reader = LogReader::open(data, Follow::Durable)?;
    let begin = reader.position();
    let mut held = leases(data)?;
    held.retain(|lease| lease.log_id == reader.log_id());
    let mut instances = instances_with_folder(data)?;
    let leased = held.iter().filter_map(|lease| instance_of_lease(&lease.name));
    instances.extend(leased.map(str::to_owned));
    let log = Log { data, id: reader.log_id(), begin };
    if instances.is_empty() && begin == Position(0) {
        let path = data.join(HISTORY_FOLDER);
        let why = format!(
            "no adapter has a history of this log in {}: its first one makes that of the log, all of which is kept for \
             it. Have one make it before a prune, by a start of the venue that comes to ready, {UNASKED}",
            path.display()
        );
        return Ok(vec![log.need(
            HISTORY_FOLDER.to_owned(),
            path,
            (Bookmark::nothing_before(begin), why),
        )]);
    }
    let need = |instance: String| {
        let name = lease_of_instance(&instance);
        let lease = held.iter().find(|lease| lease.name == name);
        let path = lease.map_or_else(|| log.folder(&instance), |lease| lease.path.clone());
        let needed = log.kept(&instance).map(|kept| log.needed(&instance, kept, lease));
        needed.map(|needed| needed.map(|needed| log.need(name, path, needed))).transpose()
    };
    Ok(instances.into_iter().filter_map(need).collect::<Result<_, _>>()?)
}

/// Those whose adapters have left a folder.
fn instances_with_folder(data: &Path) -> Result<BTreeSet<String>> {
    let folder = data.join(HISTORY_FOLDER);
    let listed = || folder.display().to_string();
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeSet::new()),
        entries => entries.with_context(listed)?,
    };
    let mut instances = BTreeSet::new();
    for entry in entries {
        let entry = entry.with_context(listed)?;
        if entry.path().is_dir() {
            // Others are none: a disk of its own has its `lost+found` there.
            instances.extend(entry.file_name().into_string().ok().filter(|name| is_instance(name)));
        }
    }
    Ok(instances)
}

/// The log whose histories are looked at.
struct Log<'a> {
    data: &'a Path,
    id: [u8; 16],
    begin: Position,
}

impl Log<'_> {
    fn folder(&self, instance: &str) -> PathBuf {
        self.data.join(HISTORY_FOLDER).join(instance)
    }

    fn is_pruned(&self) -> bool {
        self.begin > Position(0)
    }

    fn need(&self, name: String, path: PathBuf, (last, why): (Bookmark, String)) -> Need {
        Need { held: HeldLease { name, path, log_id: self.id, last }, why }
    }

    /// What there is of the history of an instance. One is of no use that the log does not go on behind.
    fn kept(&self, instance: &str) -> Result<KeptHistory, ReadError> {
        let found = kept_history(self.data, instance, self.id, self.is_pruned());
        let KeptHistory::UpTo(last) = found else { return Ok(found) };
        let folder = self.folder(instance);
        let folder = folder.display();
        match LogReader::open(self.data, Follow::Durable)?.resume(&last) {
            Ok(true) => Ok(found),
            Ok(false) => Ok(KeptHistory::Useless(format!(
                "the log does not have the transaction at position {} that the history in {folder} ends with",
                last.position
            ))),
            Err(error @ ReadError::TooOld { .. }) => {
                Ok(KeptHistory::Useless(format!("the history in {folder}: {error}")))
            }
            Err(error) => Err(error),
        }
    }

    /// What the history of an instance needs beside what its lease says, and why; `None` if that says it all.
    fn needed(
        &self,
        instance: &str,
        kept: KeptHistory,
        lease: Option<&HeldLease>,
    ) -> Option<(Bookmark, String)> {
        let folder = self.folder(instance);
        let folder = folder.display();
        let why = match kept {
            KeptHistory::InUse if lease.is_some() => return None,
            KeptHistory::InUse => {
                let why = format!(
                    "the history in {folder} is in use and has no lease: all of the log is kept until it has one"
                );
                return Some((Bookmark::nothing_before(self.begin), why));
            }
            KeptHistory::UpTo(last) => {
                let is_said = lease.is_some_and(|lease| lease.last.position <= last.position);
                let why = || {
                    format!(
                        "the history in {folder} goes as far as position {} and no further, which no lease says: what \
                         lies behind that is kept for it. If no adapter is to go on with it, remove it, {UNASKED}",
                        last.position
                    )
                };
                return (!is_said).then(|| (last, why()));
            }
            // Nothing could be made of such a log, and nobody has had anything.
            KeptHistory::Nothing if self.is_pruned() && lease.is_none() => return None,
            KeptHistory::Nothing => match lease.filter(|lease| lease.last.incarnation.0 > 0) {
                None => format!("there is no history in {folder}"),
                Some(lease) => format!(
                    "there is no history in {folder}, which went as far as position {} by {}",
                    lease.last.position,
                    lease.path.display()
                ),
            },
            KeptHistory::Useless(why) => why,
        };
        let what_to_do = if self.is_pruned() {
            format!(
                "it cannot be made anew of a pruned log, and what is left of that is kept for one that is brought \
                 back from a copy. Bring it back, {UNASKED}"
            )
        } else {
            format!(
                "a start of its adapter that has nothing to go on with makes it anew of the log, all of which is kept \
                 for that. Start the venue once before a prune and wait for ready; if that adapter never comes back, \
                 remove its lease and its history, {UNASKED}"
            )
        };
        Some((Bookmark::nothing_before(self.begin), format!("{why}: {what_to_do}")))
    }
}

/// Why the adapter `instance` cannot serve the log in the data folder `data`, which was pruned: no history goes as far as
/// its beginning. `None` if one does, or the log has its beginning.
///
/// # Errors
/// If the log cannot be read.
pub(crate) fn missing_history(data: &Path, instance: &str) -> Result<Option<String>, ReadError> {
    let reader = LogReader::open(data, Follow::Durable)?;
    let log = Log { data, id: reader.log_id(), begin: reader.position() };
    if !log.is_pruned() {
        return Ok(None);
    }
    let why = match log.kept(instance)? {
        KeptHistory::InUse | KeptHistory::UpTo(_) => return Ok(None),
        KeptHistory::Nothing => {
            format!("there is no history in {}", log.folder(instance).display())
        }
        KeptHistory::Useless(why) => why,
    };
    Ok(Some(format!(
        "the log begins at position {}, what was before it was pruned, and {why}: the adapter cannot serve it, and \
         `up` goes on with the engine alone",
        log.begin
    )))
}
