//! The one way of a command into the log: begun unpublished in its tail, applied, and published if the
//! core accepted it. Called by [`super`] for every command, whoever sends it.

use crate::log::{BeginError, LogWriter};
use touchline_core::{Addressees, Applied, Context, Core, Outbox, Reject};
use touchline_protocol::message::decode::Command;
use touchline_protocol::units::Position;

/// Why a command is not in the log. Nothing was changed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Refusal {
    /// The log cannot take it.
    Log(BeginError),
    /// The core rejected it.
    Core(Reject),
}

/// What a command is carried out on.
pub(super) struct Venue<'duty> {
    pub(super) core: &'duty mut Core,
    pub(super) writer: &'duty mut LogWriter,
    /// Whom the events of the last transaction concern besides its sender.
    pub(super) addressees: &'duty mut Addressees,
    pub(super) now_ns: u64,
}

/// Applies `command`, whose bytes are `bytes`, and publishes its transaction; gives the position behind
/// it. `None` for a validate-only order that passed: it is not logged, and its reply is shown to `valid`.
#[inline]
pub(super) fn transact(
    venue: &mut Venue<'_>,
    bytes: &[u8],
    command: &Command<'_>,
    valid: impl FnOnce(&Outbox<'_>),
) -> Result<Option<Position>, Refusal> {
    let Venue { core, writer, addressees, now_ns } = venue;
    let context = Context { position: writer.position(), time_ns: *now_ns };
    let tail = writer.begin(bytes).map_err(Refusal::Log)?;
    let mut outbox = Outbox::with_addressees(tail, addressees);
    match core.apply(&context, command, &mut outbox) {
        Ok(Applied::Committed) => {
            let (length, count) = (outbox.len(), outbox.count());
            Ok(Some(writer.commit(*now_ns, length, count)))
        }
        Ok(Applied::Valid) => {
            valid(&outbox);
            writer.abandon();
            Ok(None)
        }
        Err(reject) => {
            writer.abandon();
            Err(Refusal::Core(reject))
        }
    }
}
