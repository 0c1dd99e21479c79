//! One input of the fuzz target `core_commands`: bytes that become commands, one after the other, to a
//! venue. Called by that target and, with bytes of chance, by the test beside this folder.

pub(crate) mod messages;
mod operations;
mod records;
pub(crate) mod source;
pub(crate) mod subject;
pub(crate) mod world;

pub(crate) use subject::Summary;

use messages::Writer;
use source::Source;

/// Commands of an input at most, without those that make the world.
const COMMANDS_MAX: u64 = 400;

/// Plays an input to its end, checks everything behind each command, and ends what is open. Panics when
/// something does not hold.
pub(crate) fn play(bytes: &[u8]) -> Summary {
    let mut source = Source::new(bytes);
    let mut subject = world::world(&mut source);
    let mut previous = Vec::new();
    let with_snapshots = source.below(2) == 1;
    while !source.is_empty() && subject.summary.commands < COMMANDS_MAX {
        match source.below(16) {
            // The same bytes again, as a client sends them that got no answer.
            0 => {}
            1 => subject.time_ns += u64::from(source.byte()) * 1_000_000_000,
            _ => previous = Writer { source: &mut source, core: &subject.core }.any(),
        }
        subject.apply(&previous);
        if with_snapshots && source.once_in(16) {
            subject.restart_from_snapshot();
        }
        // The engine runs pending work between commands, but not all of it.
        if source.below(4) != 0 && subject.core.pending_head().is_some() {
            subject.settle();
        }
    }
    let counted = std::mem::take(&mut subject.summary);
    subject.drain(world::end_orders);
    counted
}
