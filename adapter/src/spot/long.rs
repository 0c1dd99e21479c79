//! Answers that may be so long that nobody else could be served until they are made, or that they would fill the
//! memory of an adapter: lists of what an account has open, which are written as the client takes them, and tickers
//! of all symbols, which are gathered in steps. Used by the handlers of `query` and `market_data`.

use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use touchline_protocol::units::AccountId;

use super::submission::queued_in_vain;
use crate::api_error::ApiError;
use crate::http::{Reply, Rest};
use crate::json::JsonWriter;
use crate::shares::{Share, Shares};

/// Entries of a list that are written at once: some 0.1 ms. A list of no more has a length and no chunks.
pub(super) const PIECE: usize = 200;

/// Longer lists that one account may be sent at the same time, however slowly it takes them. Each holds a copy of
/// what it lists, so all accounts' lists together hold at most so many copies of what is open on the venue.
pub(super) const LISTS_MAX: usize = 16;

/// The long lists under way, by account.
pub(super) type Readers = Shares<AccountId>;

/// None yet.
pub(super) fn readers() -> Arc<Readers> {
    Shares::new(usize::MAX, LISTS_MAX)
}

/// A copy of what an account has `open`, and leave to be sent it, which is asked for before anything is copied. Looks at no
/// more entries for that than tell a long list from others.
///
/// # Errors
/// When the account is being sent as many long lists as it may; it may try again.
pub(super) fn copied<I: Iterator, E>(
    readers: &Arc<Readers>,
    account: AccountId,
    open: impl Fn() -> I,
    copy: impl Fn(I::Item) -> E,
) -> Result<(Vec<E>, Option<Share<AccountId>>), ApiError> {
    let leave = match open().nth(PIECE) {
        None => None,
        Some(_) => Some(readers.take(account).ok_or_else(queued_in_vain)?),
    };
    Ok((open().map(copy).collect(), leave))
}

/// The reply that lists `entries`, each as `write` writes it. A long list keeps its leave until it has been sent or
/// given up.
pub(super) fn list<E: Send + 'static>(
    entries: Vec<E>,
    leave: Option<Share<AccountId>>,
    write: impl Fn(&E, &mut Vec<u8>) -> Result<(), ApiError> + Send + 'static,
) -> Result<Reply, ApiError> {
    let mut entries = entries.into_iter();
    let mut body = vec![b'['];
    write_piece(&mut entries, &mut body, &write)?;
    if entries.len() == 0 {
        body.push(b']');
        return Ok(Reply::json(200, body));
    }
    let mut left = Some((entries, leave));
    let rest = Rest::new(move || {
        let (entries, _leave) = left.as_mut()?;
        let mut piece = vec![b','];
        // What was begun cannot become a refusal: a list that is cut off is no JSON, which its client sees.
        if write_piece(entries, &mut piece, &write).is_err() {
            left = None;
            return None;
        }
        if entries.len() == 0 {
            left = None;
            piece.push(b']');
        }
        Some(Bytes::from(piece))
    });
    Ok(Reply::json(200, body).followed_by(rest))
}

fn write_piece<E>(
    entries: &mut std::vec::IntoIter<E>,
    to: &mut Vec<u8>,
    write: &impl Fn(&E, &mut Vec<u8>) -> Result<(), ApiError>,
) -> Result<(), ApiError> {
    for (index, entry) in entries.by_ref().take(PIECE).enumerate() {
        if index > 0 {
            to.push(b',');
        }
        write(&entry, to)?;
    }
    Ok(())
}

/// An answer that is made in steps, each of a millisecond or so, between which others have their turn. `None` of a step
/// says that there is more to do.
pub(super) type Steps = Box<dyn FnMut() -> Option<Result<Reply, ApiError>> + Send>;

/// Steps that show `all`, so many at once: `write` adds those that it is given to the list, and begins it.
pub(super) fn steps<E: Send + 'static>(
    all: Vec<E>,
    at_once: usize,
    mut write: impl FnMut(&[E], &mut Vec<u8>) -> Result<(), ApiError> + Send + 'static,
) -> Steps {
    let (mut from, mut body) = (0, Vec::new());
    Box::new(move || {
        let end = all.len().min(from + at_once);
        if let Err(refusal) = write(&all[from..end], &mut body) {
            return Some(Err(refusal));
        }
        from = end;
        if from < all.len() {
            return None;
        }
        let mut body = std::mem::take(&mut body);
        if body.is_empty() {
            body.push(b'[');
        }
        body.push(b']');
        Some(Ok(Reply::json(200, body)))
    })
}

/// Writes an entry of a list.
pub(super) fn write(entry: &impl Serialize, to: &mut Vec<u8>) -> Result<(), ApiError> {
    entry.serialize(&mut JsonWriter::new(to)).map_err(|_| ApiError::unknown())
}
