//! The one way of a command into the log: begun unpublished in its tail, applied, and published if the
//! core accepted it. Called by [`super`] for every command, whoever sends it.

use crate::log::{BeginError, LogWriter};
use touchline_core::{Applied, Context, Core, Outbox, Reject};
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

/// Applies `command`, whose bytes are `bytes`, at `now_ns`, and publishes its transaction; gives the
/// position behind it. `None` for a validate-only order that passed: it is not logged, and its reply
/// is shown to `valid`.
#[inline]
pub(super) fn transact(
    core: &mut Core,
    writer: &mut LogWriter,
    bytes: &[u8],
    command: &Command<'_>,
    now_ns: u64,
    valid: impl FnOnce(&Outbox<'_>),
) -> Result<Option<Position>, Refusal> {
    let context = Context { position: writer.position(), time_ns: now_ns };
    let mut outbox = Outbox::new(writer.begin(bytes).map_err(Refusal::Log)?);
    match core.apply(&context, command, &mut outbox) {
        Ok(Applied::Committed) => {
            let (length, count) = (outbox.len(), outbox.count());
            Ok(Some(writer.commit(now_ns, length, count)))
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
