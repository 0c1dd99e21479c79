//! The handles of user data streams (spot contract §4 User data stream): made, kept alive and closed.
//! An account has one handle at a time. Handles are this adapter's own and end with it.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use touchline_protocol::units::AccountId;

use super::intake::Intake;
use super::responses::{Empty, ListenKey};
use super::{ids, json};
use crate::api_error::ApiError;
use crate::http::Reply;

/// How long a handle lives without being kept alive, ms.
const LIFETIME_MS: u64 = 60 * 60 * 1000;

/// All handles: one per account at the most.
#[derive(Debug, Default)]
pub(super) struct Streams {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    by_account: HashMap<AccountId, Stream>,
    /// When ended handles are next looked for.
    sweep_ms: u64,
}

struct Stream {
    listen_key: String,
    /// The first moment at which it does not live any more.
    end_ms: u64,
}

impl Streams {
    /// The account's handle, which lives for another hour: the present one, or `fresh` if there is
    /// none.
    fn open(&self, account: AccountId, now_ms: u64, fresh: String) -> String {
        let mut table = self.table();
        if now_ms >= table.sweep_ms {
            table.by_account.retain(|_, stream| stream.end_ms > now_ms);
            table.sweep_ms = now_ms + LIFETIME_MS;
        }
        let end_ms = now_ms + LIFETIME_MS;
        match table.by_account.get_mut(&account).filter(|stream| stream.end_ms > now_ms) {
            Some(stream) => {
                stream.end_ms = end_ms;
                stream.listen_key.clone()
            }
            None => {
                let listen_key = fresh.clone();
                table.by_account.insert(account, Stream { listen_key, end_ms });
                fresh
            }
        }
    }

    /// Gives a live handle of the account another hour.
    fn keep_alive(&self, account: AccountId, now_ms: u64, key: &str) -> Result<(), ApiError> {
        let mut table = self.table();
        let stream = table.by_account.get_mut(&account).filter(|stream| stream.is(key, now_ms));
        stream.ok_or(ApiError::unknown_listen_key())?.end_ms = now_ms + LIFETIME_MS;
        Ok(())
    }

    /// Ends a live handle of the account.
    fn close(&self, account: AccountId, now_ms: u64, key: &str) -> Result<(), ApiError> {
        let mut table = self.table();
        if !table.by_account.get(&account).is_some_and(|stream| stream.is(key, now_ms)) {
            return Err(ApiError::unknown_listen_key());
        }
        table.by_account.remove(&account);
        Ok(())
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Without the handle, which is a secret of its account.
impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("end_ms", &self.end_ms).finish_non_exhaustive()
    }
}

impl Stream {
    fn is(&self, key: &str, now_ms: u64) -> bool {
        self.end_ms > now_ms && self.listen_key == key
    }
}

/// POST /userDataStream.
pub(super) fn open(intake: &Intake<'_>) -> Result<Reply, ApiError> {
    intake.open()?;
    let fresh = ids::listen_key().map_err(|_| ApiError::unknown())?;
    let listen_key = intake.streams().open(intake.caller()?.account, intake.now_ms(), fresh);
    json(&ListenKey { listen_key: &listen_key })
}

/// PUT /userDataStream.
pub(super) fn keep_alive(intake: &Intake<'_>) -> Result<Reply, ApiError> {
    let key = intake.parameters.required_text("listenKey")?;
    intake.open()?;
    intake.streams().keep_alive(intake.caller()?.account, intake.now_ms(), key)?;
    json(&Empty {})
}

/// DELETE /userDataStream.
pub(super) fn close(intake: &Intake<'_>) -> Result<Reply, ApiError> {
    let key = intake.parameters.required_text("listenKey")?;
    intake.open()?;
    intake.streams().close(intake.caller()?.account, intake.now_ms(), key)?;
    json(&Empty {})
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: AccountId = AccountId(1);
    const BOB: AccountId = AccountId(2);

    #[test]
    fn a_handle_lives_for_an_hour_from_when_it_was_last_kept_alive() {
        let streams = Streams::default();
        let unknown = Err(ApiError::unknown_listen_key());
        assert_eq!(streams.open(ALICE, 1000, "a".to_owned()), "a");
        assert_eq!(streams.open(ALICE, 2000, "b".to_owned()), "a", "the same while it lives");
        let end = 2000 + LIFETIME_MS;
        assert_eq!(streams.keep_alive(ALICE, end - 1, "a"), Ok(()));
        let end = end - 1 + LIFETIME_MS;
        assert_eq!(streams.keep_alive(ALICE, end, "a"), unknown);
        assert_eq!(streams.close(ALICE, end, "a"), unknown);
        assert_eq!(streams.open(ALICE, end, "c".to_owned()), "c");
    }

    #[test]
    fn debug_output_does_not_show_handles() {
        let streams = Streams::default();
        streams.open(ALICE, 1000, "credential".to_owned());
        let shown = format!("{streams:?}");
        assert!(shown.contains("end_ms") && !shown.contains("credential"), "{shown}");
    }

    #[test]
    fn handles_are_the_accounts_own() {
        let streams = Streams::default();
        let unknown = Err(ApiError::unknown_listen_key());
        streams.open(ALICE, 0, "a".to_owned());
        assert_eq!(streams.keep_alive(BOB, 1, "a"), unknown);
        assert_eq!(streams.close(BOB, 1, "a"), unknown);
        streams.open(BOB, 1, "b".to_owned());
        assert_eq!(streams.close(ALICE, 2, "b"), unknown);
        assert_eq!(streams.close(ALICE, 2, "a"), Ok(()));
        assert_eq!(streams.close(ALICE, 2, "a"), unknown);
        assert_eq!(streams.open(ALICE, 3, "d".to_owned()), "d");
        assert_eq!(streams.keep_alive(BOB, 3, "b"), Ok(()));
    }

    #[test]
    fn ended_handles_take_no_room() {
        let streams = Streams::default();
        for account in 0..100 {
            streams.open(AccountId(account), 0, String::new());
        }
        streams.open(AccountId(100), LIFETIME_MS, String::new());
        assert_eq!(streams.table().by_account.len(), 1);
    }
}
