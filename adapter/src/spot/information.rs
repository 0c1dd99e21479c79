//! GET /exchangeInfo of all symbols. It is the same for everybody until something is defined anew, so it is written then,
//! and neither for each request nor each time in one piece while others wait for the views; all that are being sent it
//! share the bytes. Called by [`market`](super::market).

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

use crate::api_error::ApiError;
use crate::http::{Reply, Rest};

/// Up to this size, in bytes, an answer is one piece with a length. A longer one is sent in chunks, so that what is the
/// same in all of them need not be copied.
const PIECE_BYTES: usize = 1 << 14;

/// What every answer begins with; the time of the server follows, ms since the epoch.
const HEAD: &str = r#"{"timezone":"UTC","serverTime":"#;

/// The answer as it was written last.
#[derive(Default)]
pub(super) struct Information(Mutex<Option<Written>>);

struct Written {
    /// The edition of the venue that it tells of.
    edition: u64,
    /// All that follows behind the time of the server.
    rest: Bytes,
}

impl Information {
    /// The answer at `now_ms` about the venue of this edition. Unless it was written before, `write` gives it whole, with
    /// any time of the server, and which edition it tells of.
    ///
    /// # Errors
    /// Those of `write`.
    pub(super) fn reply(
        &self,
        edition: u64,
        now_ms: u64,
        write: impl FnOnce() -> Result<(u64, Reply), ApiError>,
    ) -> Result<Reply, ApiError> {
        let rest = self.rest(edition, write)?;
        let head = format!("{HEAD}{now_ms}");
        if rest.len() <= PIECE_BYTES {
            return Ok(Reply::json(200, [head.as_bytes(), &rest].concat()));
        }
        let mut rest = Some(rest);
        Ok(Reply::json(200, head).followed_by(Rest::new(move || rest.take())))
    }

    fn rest(
        &self,
        edition: u64,
        write: impl FnOnce() -> Result<(u64, Reply), ApiError>,
    ) -> Result<Bytes, ApiError> {
        // Held while it is written, so that not everybody does who asks meanwhile.
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(written) = written.as_ref().filter(|written| written.edition == edition) {
            return Ok(written.rest.clone());
        }
        let (edition, whole) = write()?;
        let rest = behind_the_time(&whole.body).ok_or(ApiError::unknown())?;
        *written = Some(Written { edition, rest: rest.clone() });
        Ok(rest)
    }
}

/// What follows behind the time of the server.
fn behind_the_time(whole: &Bytes) -> Option<Bytes> {
    let behind = whole.strip_prefix(HEAD.as_bytes())?;
    let digits = behind.iter().take_while(|byte| byte.is_ascii_digit()).count();
    Some(whole.slice_ref(&behind[digits..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(edition: u64, filling: usize) -> Result<(u64, Reply), ApiError> {
        let filling = "x".repeat(filling);
        let body = format!(r#"{HEAD}17,"edition":{edition},"filling":"{filling}"}}"#);
        Ok((edition, Reply::json(200, body)))
    }

    fn text(reply: Reply) -> String {
        let Reply { body, rest, .. } = reply;
        let mut pieces = vec![body];
        if let Some(mut rest) = rest {
            pieces.extend(std::iter::from_fn(|| rest.next_piece()));
        }
        String::from_utf8(pieces.concat()).unwrap()
    }

    #[test]
    fn it_is_written_once_for_each_edition_and_has_the_time_of_the_request() {
        let information = Information::default();
        let expected = |edition, now_ms: u64| {
            format!(
                r#"{{"timezone":"UTC","serverTime":{now_ms},"edition":{edition},"filling":""}}"#
            )
        };
        let first = information.reply(3, 1_000, || whole(3, 0)).unwrap();
        assert_eq!((first.rest.is_none(), text(first)), (true, expected(3, 1_000)));
        let again = information.reply(3, 22, || panic!("it was written already")).unwrap();
        assert_eq!(text(again), expected(3, 22));
        // What was defined meanwhile is told too, and asked for no second time.
        let newer = information.reply(4, 23, || whole(5, 0)).unwrap();
        assert_eq!(text(newer), expected(5, 23));
        let again = information.reply(5, 24, || panic!("it was written already")).unwrap();
        assert_eq!(text(again), expected(5, 24));
        let refused = information.reply(6, 25, || Err(ApiError::invalid_symbol())).unwrap_err();
        assert_eq!(refused, ApiError::invalid_symbol());
        assert_eq!(text(information.reply(6, 26, || whole(6, 0)).unwrap()), expected(6, 26));
    }

    #[test]
    fn a_long_one_is_shared_by_all_that_are_sent_it() {
        let information = Information::default();
        let long = [7, 8].map(|now_ms| {
            let reply = information.reply(1, now_ms, || whole(1, PIECE_BYTES)).unwrap();
            let Reply { body, rest: Some(mut rest), .. } = reply else { panic!("it is one piece") };
            assert_eq!(body, format!("{HEAD}{now_ms}"));
            rest.next_piece().expect("there is more")
        });
        assert_eq!(long[0].as_ptr(), long[1].as_ptr());
        let reply = information.reply(1, 9, || panic!("it was written already")).unwrap();
        assert!(text(reply).ends_with(r#"xx"}"#));
    }
}
