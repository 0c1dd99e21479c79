//! What the jobs service has the link carry: records, on the cold lane.

use touchline_protocol::client::{SendError, Sender};
use touchline_protocol::message::command::{CommandHeader, DeleteRecord};
use touchline_protocol::message::decode::Event;
use touchline_protocol::message::event::{RecordDeleted, RecordPut, Rejected};
use touchline_protocol::message::with_bytes::RecordWrite;

use super::Traffic;
use crate::views::doubts::Owner;
use crate::views::records::NOBODY;

/// The traffic of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Records {}

/// A command about a record.
#[derive(Debug, Clone)]
pub enum RecordCommand {
    /// Makes one, or changes what one carries.
    Put(Box<RecordWrite>),
    /// Deletes one.
    Delete(DeleteRecord),
}

/// The engine's last word on a command about a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordTerminal {
    /// It was put; how it stands now.
    Put(RecordPut),
    /// It is gone.
    Deleted(RecordDeleted),
    /// Nothing changed.
    Rejected(Rejected),
}

impl Traffic for Records {
    type Command = RecordCommand;
    /// There is nothing to tell before the last word.
    type Told = ();
    type Terminal = RecordTerminal;
    type Whose = Owner;

    /// One reply a command.
    const REPLY_SLOTS: u32 = 4_096;

    fn header_mut(command: &mut RecordCommand) -> &mut CommandHeader {
        match command {
            RecordCommand::Put(write) => write.command_mut(),
            RecordCommand::Delete(delete) => &mut delete.command,
        }
    }

    fn whose(command: &RecordCommand) -> Owner {
        match command {
            RecordCommand::Put(write) if write.put().owner == NOBODY => {
                Owner::Holder(write.put().unique_key)
            }
            RecordCommand::Put(write) => Owner::User(write.put().owner),
            RecordCommand::Delete(delete) => Owner::User(delete.owner),
        }
    }

    fn stage(sender: &mut Sender, command: &mut RecordCommand) -> Result<(), SendError> {
        match command {
            RecordCommand::Put(write) => sender.stage(&mut **write),
            RecordCommand::Delete(delete) => sender.stage(delete),
        }
        .map(|_sequence| ())
    }

    fn tell((): &mut (), _: Event<'_>) {}

    fn terminal(event: Event<'_>) -> Option<RecordTerminal> {
        match event {
            Event::RecordPut(put) => Some(RecordTerminal::Put(*put)),
            Event::RecordDeleted(deleted) => Some(RecordTerminal::Deleted(*deleted)),
            Event::Rejected(rejected) => Some(RecordTerminal::Rejected(*rejected)),
            _ => None,
        }
    }
}
