//! Whose commands are refused because an engine has panicked of one: sent again, as a client may, it would end the next
//! one too, and so on for ever. Read by the engine's start from what recoveries have set aside in `poison/`; asked by
//! the duty thread for every command and every logon. Who kills an engine finds some command in the middle, too, and
//! that is nobody's fault.
//!
//! A sender is the key that its command named, whichever session sends it: whoever has a key may log on by it under
//! many names, and over REST it comes by any adapter, so that each would end an engine of its own. Of a command that
//! named none it is the session, and of an adapter's every adapter: they serve the same clients. A sender is let back
//! when an operator has moved the file away, at the next start. A logon is the engine's own command and names the key
//! of whom it is for: whose logon has ended an engine is refused as others are, and who is refused does not log on.
//! Pending work is nobody's any more: it is part of the venue's state, and goes on with every engine until a build gets
//! past it.

use std::cmp::Reverse;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use bytemuck::allocation::pod_collect_to_vec;
use touchline_core::PendingHead;
use touchline_protocol::log::frame::MAX_COMMAND_BYTES;
use touchline_protocol::message::command::CommandHeader;
use touchline_protocol::message::decode::{self, Command};
use touchline_protocol::regular_file;
use touchline_protocol::units::{KeyId, SessionId};

use crate::recovery::{FATAL, POISON_FOLDER};

/// Senders that are refused at the most: all are looked at for each command.
const SENDERS_MAX: usize = 64;

/// Whose commands are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sender {
    /// Whoever names this key.
    Key(KeyId),
    /// This session, where it names no key.
    Session(SessionId),
}

/// The senders that are refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quarantine {
    senders: Vec<Sender>,
}

impl Quarantine {
    /// The senders of all commands that are set aside in the data folder `data`, and a line for the operator about
    /// each: whose commands are refused, or why nobody's are. `pending` is the work that this engine is to go on with.
    #[must_use]
    pub fn read(data: &Path, pending: Option<PendingHead>) -> (Self, Vec<String>) {
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
            let told = match quarantine.refuse_sender(&path, pending) {
                Ok(told) => told,
                Err(why) => format!("nobody is refused for it: {why}"),
            };
            lines.push(format!(
                "engine: an engine has panicked of a command, {}: {told}",
                path.display()
            ));
        }
        (quarantine, lines)
    }

    /// Refuses the sender of the command in a file from now on; gives what the operator is told.
    fn refuse_sender(
        &mut self,
        path: &Path,
        pending: Option<PendingHead>,
    ) -> Result<String, String> {
        let words = words(path).map_err(|error| error.to_string())?;
        let command =
            decode::command(bytemuck::cast_slice(&words)).map_err(|error| error.to_string())?;
        Ok(match command {
            Command::RunPending(_) => told_of_continuation(pending),
            command => self.refuse(&command),
        })
    }

    fn refuse(&mut self, command: &Command<'_>) -> String {
        let header = command.header();
        match (header.key_id, header.session) {
            (KeyId(0), SessionId::ENGINE) => {
                "it was the engine's own, and nobody is refused for it".to_owned()
            }
            (KeyId(0), session) => self.add(Sender::Session(session)),
            (key, _) => self.add(Sender::Key(key)),
        }
    }

    fn add(&mut self, sender: Sender) -> String {
        let whose = match sender {
            Sender::Key(key) => format!("commands that name key {key}, its logons too,"),
            Sender::Session(session) => format!(
                "commands of session {session} that name no key (if that is an adapter, of every adapter)"
            ),
        };
        if !self.senders.contains(&sender) {
            if self.senders.len() == SENDERS_MAX {
                return format!(
                    "{whose} are not refused, because those of {SENDERS_MAX} other senders are"
                );
            }
            self.senders.push(sender);
        }
        format!("{whose} are refused until this file is moved away and the engine started again")
    }

    /// True if the command with this header is to be refused. `is_adapter` tells of a session whether its role is that
    /// of the adapter.
    #[inline]
    #[must_use]
    pub fn holds(&self, header: &CommandHeader, is_adapter: impl Fn(SessionId) -> bool) -> bool {
        self.senders.iter().any(|&sender| match sender {
            Sender::Key(key) => key == header.key_id,
            Sender::Session(session) => {
                header.key_id == KeyId(0)
                    && (session == header.session
                        || is_adapter(session) && is_adapter(header.session))
            }
        })
    }
}

/// What the operator is told of a command that went on with pending work.
fn told_of_continuation(pending: Option<PendingHead>) -> String {
    let what = "it went on with work that a command accepted before had left, and nobody can be refused for it";
    match pending {
        None => format!("{what}: no work is pending any more"),
        Some(PendingHead { session, sequence, .. }) => {
            let whose = match session {
                SessionId::ENGINE => String::new(),
                session => format!(", of command {sequence} of session {session}"),
            };
            format!(
                "{what}: work is pending{whose}. If it is that work, this engine will most probably end of it again: \
                 nothing in the log is lost then, and a corrected build is what is needed"
            )
        }
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

/// The whole words of a file, of which no more is read than a command has.
fn words(path: &Path) -> io::Result<Vec<u64>> {
    let mut bytes = Vec::new();
    // Somebody may have put anything there.
    regular_file::open(path)?.take(MAX_COMMAND_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    let whole = bytes.len() / 8 * 8;
    Ok(pod_collect_to_vec(&bytes[..whole]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use touchline_protocol::message::command::{CancelOrder, NewOrder, PutRecord, RunPending};
    use touchline_protocol::units::{Epoch, Sequence, SymbolId};

    fn header(session: u32, key: u64) -> CommandHeader {
        CommandHeader { session: SessionId(session), key_id: KeyId(key), ..Default::default() }
    }

    #[test]
    fn who_sent_what_ended_an_engine_is_refused_and_nobody_else() {
        let data = tempfile::tempdir().unwrap();
        assert_eq!(Quarantine::read(data.path(), None), (Quarantine::default(), Vec::new()));
        let folder = data.path().join(POISON_FOLDER);
        fs::create_dir(&folder).unwrap();
        let order = NewOrder { command: header(3, 5), ..Default::default() };
        let cancel = CancelOrder { command: header(0, 0), ..Default::default() };
        fs::write(folder.join("2-4096.fatal"), bytemuck::bytes_of(&order)).unwrap();
        fs::write(folder.join("3-4096.fatal"), bytemuck::bytes_of(&order)).unwrap();
        fs::write(folder.join("4-8192.fatal"), bytemuck::bytes_of(&cancel)).unwrap();
        let again = NewOrder { command: header(9, 5), ..Default::default() };
        fs::write(folder.join("5-4096.fatal"), bytemuck::bytes_of(&again)).unwrap();
        let keyless = PutRecord { command: header(4, 0), ..Default::default() };
        fs::write(folder.join("7-4096.fatal"), bytemuck::bytes_of(&keyless)).unwrap();
        fs::write(folder.join("10-8192.fatal"), "no command").unwrap();
        let other = NewOrder { command: header(7, 6), ..Default::default() };
        fs::write(folder.join("6-4096.bin"), bytemuck::bytes_of(&other)).unwrap();
        let (quarantine, lines) = Quarantine::read(data.path(), None);
        assert_eq!(quarantine.senders, [Sender::Session(SessionId(4)), Sender::Key(KeyId(5))]);
        let holds = |session, key, adapters: &[u32]| {
            quarantine.holds(&header(session, key), |session| adapters.contains(&session.0))
        };
        let expected = [
            (true, 3, 5),
            (true, 7, 5),
            (true, 9, 5),
            (true, 4, 0),
            (false, 3, 6),
            (false, 7, 6),
            (false, 4, 6),
            (false, 3, 0),
            (false, 7, 0),
            (false, 0, 0),
        ];
        for (refused, session, key) in expected {
            for adapters in [&[][..], &[3], &[4], &[3, 7]] {
                assert_eq!(holds(session, key, adapters), refused, "{session} {key} {adapters:?}");
            }
        }
        assert!(holds(7, 0, &[4, 7]), "another adapter has the same clients");
        assert!(!holds(7, 6, &[4, 7]) && !holds(0, 0, &[4, 7]));
        assert_eq!(lines.len(), 6, "{lines:?}");
        let whose = [
            "nobody is refused",
            "commands of session 4 that name no key",
            "commands that name key 5",
            "the engine's own, and nobody is refused",
            "commands that name key 5",
            "commands that name key 5",
        ];
        for (line, told) in lines.iter().zip(whose) {
            assert!(line.contains(told), "{line}");
        }
        assert!(
            lines[0].contains("10-8192.fatal") && lines[5].contains("2-4096.fatal"),
            "{lines:?}"
        );
    }

    #[test]
    fn nobody_is_refused_for_pending_work_and_what_becomes_of_it_is_told() {
        let data = tempfile::tempdir().unwrap();
        let folder = data.path().join(POISON_FOLDER);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("2-4096.fatal"), bytemuck::bytes_of(&RunPending::default())).unwrap();
        let head = |session, sequence| PendingHead {
            symbol: SymbolId(0),
            session: SessionId(session),
            epoch: Epoch(1),
            correlation: 0,
            sequence: Sequence(sequence),
        };
        let again = "If it is that work, this engine will most probably end of it again: nothing in the log is lost";
        for (pending, told) in [
            (None, "no work is pending any more"),
            (Some(head(0, 0)), &format!("is pending. {again}")[..]),
            (Some(head(3, 17)), &format!("is pending, of command 17 of session 3. {again}")),
        ] {
            let (quarantine, lines) = Quarantine::read(data.path(), pending);
            assert_eq!(quarantine, Quarantine::default());
            assert_eq!(lines.len(), 1, "{lines:?}");
            assert!(lines[0].contains("nobody can be refused for it"), "{lines:?}");
            assert!(lines[0].contains(told), "{lines:?}");
        }
    }

    #[test]
    fn there_is_a_most_that_is_looked_at_for_each_command() {
        let mut quarantine = Quarantine::default();
        for key in 1..=SENDERS_MAX as u64 + 1 {
            // Under however many sessions it has come.
            for session in [1, 2] {
                let order = NewOrder { command: header(session, key), ..Default::default() };
                let told = quarantine.refuse(&Command::NewOrder(&order));
                assert_eq!(told.contains("are not refused"), key > SENDERS_MAX as u64, "{told}");
            }
        }
        assert_eq!(quarantine.senders.len(), SENDERS_MAX);
        let order = NewOrder { command: header(3, 1), ..Default::default() };
        assert!(quarantine.refuse(&Command::NewOrder(&order)).contains("are refused until"));
    }
}
