//! Who is being sent a long list, and how often at the same time. A list shows one moment, so each that a
//! slow client has not taken yet may keep an older state of all its jobs alive. Asked by `listing`.

use std::sync::Arc;

use crate::shares::{Share, Shares};
use crate::views::records::RecordId;

/// Long lists that one user may be sent at the same time. Together all users' lists then keep at most so
/// many times what the views hold, whoever changes his jobs meanwhile and however slowly he reads.
pub(super) const LISTS_MAX: usize = 20;

/// The long lists under way, by user.
pub(super) type Readers = Shares<RecordId>;

/// A long list under way, until this is dropped.
pub(super) type Reading = Share<RecordId>;

/// None yet.
pub(super) fn readers() -> Arc<Readers> {
    Shares::new(usize::MAX, LISTS_MAX)
}
