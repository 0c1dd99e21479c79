//! The timing rule of signed requests (spot contract §5.5). Called by the spot service after it
//! has read `timestamp` and `recvWindow`. The server's time is that of the request's arrival, which
//! is when the last byte of its body was there.

/// `recvWindow` when none is sent, in milliseconds.
pub const DEFAULT_RECV_WINDOW_MS: i64 = 5_000;

/// The longest `recvWindow`, in milliseconds.
pub const MAX_RECV_WINDOW_MS: i64 = 60_000;

/// How far `timestamp` must stay below the server's time plus this, in milliseconds.
pub const MAX_AHEAD_MS: i64 = 1_000;

/// Why a signed request is not processed. All times in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TimingError {
    /// -1131.
    #[error("recvWindow is {sent} ms, may be at most {MAX_RECV_WINDOW_MS}")]
    RecvWindow {
        /// The `recvWindow` sent.
        sent: i64,
    },
    /// -1021: the client's clock is ahead.
    #[error("timestamp {timestamp} is {MAX_AHEAD_MS} ms or more ahead of the server's {server}")]
    Ahead {
        /// The `timestamp` sent.
        timestamp: i64,
        /// The server's time.
        server: i64,
    },
    /// -1021: the request is too old.
    #[error("timestamp {timestamp} is more than {recv_window} ms before the server's {server}")]
    Outside {
        /// The `timestamp` sent.
        timestamp: i64,
        /// The `recvWindow` that applied.
        recv_window: i64,
        /// The server's time.
        server: i64,
    },
}

/// Checks the `recvWindow` sent, if any, and gives the one that applies.
///
/// # Errors
/// [`TimingError::RecvWindow`] above [`MAX_RECV_WINDOW_MS`].
pub fn recv_window(sent: Option<i64>) -> Result<i64, TimingError> {
    match sent {
        Some(sent) if sent > MAX_RECV_WINDOW_MS => Err(TimingError::RecvWindow { sent }),
        sent => Ok(sent.unwrap_or(DEFAULT_RECV_WINDOW_MS)),
    }
}

/// Checks a timestamp against the server's time, all in milliseconds. Returns the last server
/// time at which the request may still take effect: `timestamp + recv_window`.
///
/// # Errors
/// [`TimingError::Ahead`] unless `timestamp < server + 1000`; [`TimingError::Outside`] unless
/// `server - timestamp <= recv_window`.
pub fn check(timestamp: i64, recv_window: i64, server: i64) -> Result<i64, TimingError> {
    if timestamp >= server.saturating_add(MAX_AHEAD_MS) {
        return Err(TimingError::Ahead { timestamp, server });
    }
    if server.saturating_sub(timestamp) > recv_window {
        return Err(TimingError::Outside { timestamp, recv_window, server });
    }
    Ok(timestamp.saturating_add(recv_window))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api_error::ApiError;

    const NOW: i64 = 1_700_000_000_000;

    #[test]
    fn both_ends_of_the_window_to_the_millisecond() {
        for (timestamp, window, expected) in [
            (NOW + 999, 5000, Ok(NOW + 5999)),
            (NOW + 1000, 5000, Err(-1021)),
            (NOW, 0, Ok(NOW)),
            (NOW - 1, 0, Err(-1021)),
            (NOW - 5000, 5000, Ok(NOW)),
            (NOW - 5001, 5000, Err(-1021)),
            (NOW - 60_000, 60_000, Ok(NOW)),
            (NOW - 60_001, 60_000, Err(-1021)),
            (0, 60_000, Err(-1021)),
            (i64::MAX, 60_000, Err(-1021)),
        ] {
            let got = check(timestamp, window, NOW).map_err(|error| ApiError::from(error).code);
            assert_eq!(got, expected, "{timestamp} {window}");
        }
    }

    #[test]
    fn the_two_refusals_have_texts_of_their_own() {
        assert_eq!(
            ApiError::from(check(NOW + 1000, 5000, NOW).unwrap_err()).message,
            "Timestamp for this request was 1000ms ahead of the server's time."
        );
        assert_eq!(
            ApiError::from(check(NOW - 5001, 5000, NOW).unwrap_err()).message,
            "Timestamp for this request is outside of the recvWindow."
        );
    }

    #[test]
    fn the_window_is_5000_by_default_and_at_most_60000() {
        assert_eq!(recv_window(None), Ok(5000));
        assert_eq!(recv_window(Some(0)), Ok(0));
        assert_eq!(recv_window(Some(60_000)), Ok(60_000));
        let error = recv_window(Some(60_001)).unwrap_err();
        assert_eq!(error, TimingError::RecvWindow { sent: 60_001 });
        let error = ApiError::from(error);
        assert_eq!((error.code, &*error.message), (-1131, "'recvWindow' must be less than 60000."));
        assert!(recv_window(Some(i64::MAX)).is_err());
    }

    #[test]
    fn extreme_clocks_do_not_overflow() {
        assert_eq!(
            check(i64::MAX, 60_000, i64::MAX),
            Err(TimingError::Ahead { timestamp: i64::MAX, server: i64::MAX })
        );
        assert!(check(i64::MIN, 60_000, i64::MAX).is_err());
        assert_eq!(check(i64::MAX - 1, 60_000, i64::MAX), Ok(i64::MAX));
    }
}
