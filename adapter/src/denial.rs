//! When an owner may be told that something of his is not there: who is told so does it again. One rule for all
//! services; each of them waits and answers in its own way.

use std::sync::Arc;
use std::time::Duration;

use touchline_protocol::units::Position;

use crate::link::{Submit, Traffic};
use crate::views::Views;
use crate::views::doubts::Owner;

/// From when on a denial is certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denial {
    /// Once the link's command of this number has ended, and those before it are looked at.
    Ended(u64),
    /// Once the views hold everything before this position, and still do not show it.
    Reached(Position),
    /// Not before another engine runs, which is not waited for.
    Unknown,
}

/// Has a doubt of the owner's noted once more when a command that was given up is lost: an engine that stood still then
/// may have taken it since, behind where its log was. Readers wait for that until `patience` is over.
pub(crate) fn note_lost<T: Traffic>(
    views: &Arc<Views>,
    engine: &dyn Submit<T>,
    patience: Duration,
    owner_of: fn(&Views, T::Whose) -> Option<Owner>,
) {
    // The views ask the link whether there is an engine, and so hold it.
    let views = Arc::downgrade(views);
    engine.when_lost(Box::new(move |whose| {
        let Some(views) = views.upgrade() else { return };
        if let Some(owner) = owner_of(&views, whose) {
            views.doubt(owner, patience);
        }
    }));
}

impl Denial {
    /// For what the views do not show. A command of the owner's that is under way may be carried out yet, also one
    /// whose client has gone, or was told that nobody knows of it: an engine that hangs may go on at any moment.
    /// `is_own` says whether one of the link's commands is the owner's; looked at are those with numbers up to `last`.
    pub(crate) fn of<T: Traffic>(
        (views, engine): (&Views, &dyn Submit<T>),
        owner: Option<Owner>,
        is_own: &dyn Fn(T::Whose) -> bool,
        last: u64,
    ) -> Self {
        match engine.last_under_way(last, is_own) {
            // It may have been done, and its answer waits for a disk that takes nothing more: in vain.
            Some(_) if views.is_beside_failed_log() => Self::Unknown,
            Some(command) => Self::Ended(command),
            None => views.certain_from(owner).map_or(Self::Unknown, Self::Reached),
        }
    }
}
