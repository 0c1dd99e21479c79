//! Whose commands are refused because an engine has panicked of one: sent again, as a client may, it would end the
//! next one too, and so on for ever. Read by the engine's start from what recoveries have set aside in `poison/`;
//! asked by the duty thread for every command. Who kills an engine finds some command in the middle, too, and that
//! is nobody's fault.
//!
//! A sender is a session together with the key that its command named: of the adapter, which sends for everybody, it
//! is one key that is refused. A client of one adapter is that of each: its key is refused over all of them, so that
//! each does not end an engine of its own. A sender is let back when an operator has moved the file away, at the next
//! start.

use std::cmp::Reverse;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use bytemuck::allocation::pod_collect_to_vec;
use touchline_protocol::log::frame::MAX_COMMAND_BYTES;
use touchline_protocol::message::command::CommandHeader;
use touchline_protocol::message::decode;
use touchline_protocol::regular_file;
use touchline_protocol::units::{KeyId, SessionId};

use crate::recovery::{FATAL, POISON_FOLDER};

/// Senders that are refused at the most: all are looked at for each command.
const SENDERS_MAX: usize = 64;

/// The senders that are refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quarantine {
    senders: Vec<(SessionId, KeyId)>,
}

impl Quarantine {
    /// The senders of all commands that are set aside in the data folder `data`, and a line for the operator about
    /// each: whose commands are refused, or why nobody's are.
    #[must_use]
    pub fn read(data: &Path) -> (Self, Vec<String>) {
        let (mut quarantine, mut lines) = (Self::default(), Vec::new());
        let folder = data.join(POISON_FOLDER);
        let paths = match list(&folder) {
            Ok(paths) => paths,
            Err(error) => {
                lines.push(format!(
                    "engine: {}: {error}; nobody is refused for commands that engines have panicked of",
                    folder.display()
                ));
                return (quarantine, lines);
            }
        };
        for path in paths {
            let told = match sender(&path) {
                Err(why) => format!("nobody is refused for it: {why}"),
                Ok((SessionId::ENGINE, _)) => {
                    "it was the engine's own, and nobody is refused for it".to_owned()
                }
                Ok(sender) => quarantine.add(sender),
            };
            lines.push(format!(
                "engine: an engine has panicked of a command, {}: {told}",
                path.display()
            ));
        }
        (quarantine, lines)
    }

    fn add(&mut self, sender: (SessionId, KeyId)) -> String {
        let (session, key) = sender;
        if !self.senders.contains(&sender) {
            if self.senders.len() == SENDERS_MAX {
                return format!(
                    "its sender, session {session} by key {key}, is not refused, because {SENDERS_MAX} others are"
                );
            }
            self.senders.push(sender);
        }
        format!(
            "commands of its sender, session {session} by key {key} (if that is an adapter, of every adapter by that \
             key), are refused until this file is moved away and the engine started again"
        )
    }

    /// True if the command with this header is to be refused. `is_adapter` tells of a session whether its role is that
    /// of the adapter.
    #[inline]
    #[must_use]
    pub fn holds(&self, header: &CommandHeader, is_adapter: impl Fn(SessionId) -> bool) -> bool {
        self.senders.iter().any(|&(session, key)| {
            key == header.key_id
                && (session == header.session || is_adapter(session) && is_adapter(header.session))
        })
    }
}

/// The files of a folder by their names; none where there is none.
fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == FATAL));
    // The last ones first: those are refused if there are too many.
    paths.sort_unstable_by_key(|path| Reverse((incarnation(path), path.clone())));
    Ok(paths)
}

/// Incarnation of the engine that died of the command in a file, by its name.
fn incarnation(path: &Path) -> Option<u32> {
    path.file_stem()?.to_str()?.split_once('-')?.0.parse().ok()
}

/// Who sent the command in a file.
fn sender(path: &Path) -> Result<(SessionId, KeyId), String> {
    let mut bytes = Vec::new();
    // Somebody may have put anything there.
    regular_file::open(path)
        .and_then(|file| file.take(MAX_COMMAND_BYTES as u64 + 1).read_to_end(&mut bytes))
        .map_err(|error| error.to_string())?;
    let whole = bytes.len() / 8 * 8;
    let words: Vec<u64> = pod_collect_to_vec(&bytes[..whole]);
    let command =
        decode::command(bytemuck::cast_slice(&words)).map_err(|error| error.to_string())?;
    let header = command.header();
    Ok((header.session, header.key_id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use touchline_protocol::message::command::{CancelOrder, NewOrder};

    fn header(session: u32, key: u64) -> CommandHeader {
        CommandHeader { session: SessionId(session), key_id: KeyId(key), ..Default::default() }
    }

    #[test]
    fn who_sent_what_ended_an_engine_is_refused_and_nobody_else() {
        let data = tempfile::tempdir().unwrap();
        assert_eq!(Quarantine::read(data.path()), (Quarantine::default(), Vec::new()));
        let folder = data.path().join(POISON_FOLDER);
        fs::create_dir(&folder).unwrap();
        let order = NewOrder { command: header(3, 5), ..Default::default() };
        let cancel = CancelOrder { command: header(0, 0), ..Default::default() };
        fs::write(folder.join("2-4096.fatal"), bytemuck::bytes_of(&order)).unwrap();
        fs::write(folder.join("3-4096.fatal"), bytemuck::bytes_of(&order)).unwrap();
        fs::write(folder.join("4-8192.fatal"), bytemuck::bytes_of(&cancel)).unwrap();
        fs::write(folder.join("10-8192.fatal"), "no command").unwrap();
        let other = NewOrder { command: header(7, 5), ..Default::default() };
        fs::write(folder.join("6-4096.bin"), bytemuck::bytes_of(&other)).unwrap();
        let (quarantine, lines) = Quarantine::read(data.path());
        assert_eq!(quarantine.senders, [(SessionId(3), KeyId(5))]);
        let holds = |session, key, adapters: &[u32]| {
            quarantine.holds(&header(session, key), |session| adapters.contains(&session.0))
        };
        for (refused, session, key) in [(true, 3, 5), (false, 3, 6), (false, 7, 5), (false, 0, 0)] {
            for adapters in [&[][..], &[3], &[7]] {
                assert_eq!(holds(session, key, adapters), refused, "{session} {key} {adapters:?}");
            }
        }
        assert!(holds(7, 5, &[3, 7]), "another adapter has the same clients");
        assert!(!holds(7, 6, &[3, 7]));
        assert_eq!(lines.len(), 4, "{lines:?}");
        for (line, told) in
            lines.iter().zip(["nobody", "own", "session 3 by key 5", "session 3 by key 5"])
        {
            assert!(line.contains(told), "{line}");
        }
        assert!(
            lines[0].contains("10-8192.fatal") && lines[3].contains("2-4096.fatal"),
            "{lines:?}"
        );
    }

    #[test]
    fn there_is_a_most_that_is_looked_at_for_each_command() {
        let mut quarantine = Quarantine::default();
        for session in 1..=SENDERS_MAX as u32 + 1 {
            let told = quarantine.add((SessionId(session), KeyId(1)));
            assert_eq!(told.contains("is not refused"), session > SENDERS_MAX as u32, "{told}");
        }
        assert_eq!(quarantine.senders.len(), SENDERS_MAX);
        assert!(quarantine.add((SessionId(1), KeyId(1))).contains("are refused until"));
    }
}
