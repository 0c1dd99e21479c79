//! Who is being sent a long list, and how often at the same time. A list shows one moment, so each that a
//! slow client has not taken yet may keep an older state of all its jobs alive. Asked by `listing`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::views::records::RecordId;

/// Long lists that one user may be sent at the same time. Together all users' lists then keep at most so
/// many times what the views hold, whoever changes his jobs meanwhile and however slowly he reads.
pub(super) const LISTS_MAX: usize = 20;

/// The long lists under way, by user.
#[derive(Debug, Default)]
pub(super) struct Readers {
    lists: Mutex<HashMap<RecordId, usize>>,
}

impl Readers {
    /// One more list of this user's; `None` if he has as many under way as he may.
    pub(super) fn begin(self: &Arc<Self>, user: RecordId) -> Option<Reading> {
        let mut lists = self.lock();
        let own = lists.get(&user).copied().unwrap_or(0);
        if own >= LISTS_MAX {
            return None;
        }
        lists.insert(user, own + 1);
        Some(Reading { readers: Arc::clone(self), user })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RecordId, usize>> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A long list under way, until this is dropped.
#[derive(Debug)]
pub(super) struct Reading {
    readers: Arc<Readers>,
    user: RecordId,
}

impl Drop for Reading {
    fn drop(&mut self) {
        let mut lists = self.readers.lock();
        let left = lists.remove(&self.user).unwrap_or(1) - 1;
        if left > 0 {
            lists.insert(self.user, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_user_has_so_many_and_gets_them_back() {
        let readers = Arc::new(Readers::default());
        let mut own: Vec<_> = (0..LISTS_MAX).map(|_| readers.begin([1; 12]).unwrap()).collect();
        assert!(readers.begin([1; 12]).is_none());
        let other = readers.begin([2; 12]);
        assert!(other.is_some(), "one user's lists are not another's");
        own.pop();
        own.push(readers.begin([1; 12]).unwrap());
        assert!(readers.begin([1; 12]).is_none());
        drop((own, other));
        assert!(readers.lock().is_empty(), "who reads nothing is forgotten");
    }
}
