//! Reads a whole request head the way hyper is going to, by the same parser, so that what hyper would
//! refuse without a word is refused in words. Called by the gate; the front on may_minihttp, whose parser
//! is the same, asks where the body ends.

use std::mem::MaybeUninit;

use httparse::{Error, Header, Request, Status};
use hyper::Uri;

use super::MAX_HEADERS;
use crate::http::Fault;

/// How long the body behind a head is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    Length(usize),
    Chunked,
}

/// Looks at a whole head, whose query is disguised already if it has to be.
pub(super) fn examine(head: &[u8], max_headers: usize) -> Result<Framing, Fault> {
    let mut fields = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut request = Request::new(&mut []);
    match request.parse_with_uninit_headers(head, &mut fields) {
        Ok(Status::Complete(length)) if length == head.len() => {}
        Ok(_) => return bad("The request head has no clear end."),
        Err(Error::TooManyHeaders) => return Err(Fault::TooManyHeaders { limit: max_headers }),
        Err(error) => return bad(sentence(error)),
    }
    if request.headers.len() > max_headers {
        return Err(Fault::TooManyHeaders { limit: max_headers });
    }
    let target = request.path.unwrap_or_default();
    if target.contains('#') {
        return bad("A request target has no fragment (#).");
    }
    if Uri::try_from(target).is_err() {
        return bad("The request target has characters that should be percent-encoded.");
    }
    framing(request.headers, request.version == Some(1))
}

fn bad<T>(why: &'static str) -> Result<T, Fault> {
    Err(Fault::BadHead { why })
}

const fn sentence(error: Error) -> &'static str {
    match error {
        Error::HeaderName => "The name of a header field is malformed.",
        Error::HeaderValue => "The value of a header field is malformed.",
        Error::Version => "The HTTP version is neither 1.0 nor 1.1.",
        _ => "The request line is malformed.",
    }
}

/// Where the body ends; only if all fields that say it say the same (RFC 9112 §6.3).
pub(super) fn framing(fields: &[Header<'_>], is_http_1_1: bool) -> Result<Framing, Fault> {
    let (mut length, mut coding) = (None, None);
    for field in fields {
        if field.name.eq_ignore_ascii_case("transfer-encoding") {
            coding = Some(field.value);
        }
        if field.name.eq_ignore_ascii_case("content-length") {
            let this = content_length(field.value);
            if this.is_none() || length.is_some_and(|other| Some(other) != this) {
                return bad("Content-Length is not one number.");
            }
            length = this;
        }
    }
    match (length, coding) {
        (Some(_), Some(_)) => bad("Content-Length and Transfer-Encoding exclude each other."),
        (None, Some(_)) if !is_http_1_1 => bad("HTTP/1.0 has no Transfer-Encoding."),
        (None, Some(coding)) if !ends_chunked(coding) => {
            bad("The Transfer-Encoding is not chunked.")
        }
        (None, Some(_)) => Ok(Framing::Chunked),
        (length, None) => Ok(Framing::Length(length.unwrap_or(0))),
    }
}

/// Digits alone. More than an `i64` holds is more than hyper counts.
fn content_length(value: &[u8]) -> Option<usize> {
    let digits = std::str::from_utf8(value).ok()?.trim_ascii();
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let length = digits.parse::<i64>().ok().filter(|_| is_number)?;
    usize::try_from(length).ok()
}

/// Whether the last coding is `chunked`, which marks the body's end.
fn ends_chunked(value: &[u8]) -> bool {
    let last = value.rsplit(|&byte| byte == b',').next().unwrap_or_default();
    last.trim_ascii().eq_ignore_ascii_case(b"chunked")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(head: &str) -> Result<Framing, Fault> {
        examine(head.as_bytes(), 3)
    }

    fn why(head: &str) -> &'static str {
        match of(head) {
            Err(Fault::BadHead { why }) => why,
            other => panic!("{head:?}: {other:?}"),
        }
    }

    #[test]
    fn the_body_behind_a_head() {
        let head = |fields: &str| format!("POST /a HTTP/1.1\r\n{fields}\r\n");
        for (fields, expected) in [
            ("", Framing::Length(0)),
            ("Content-Length: 7\r\n", Framing::Length(7)),
            ("content-length:007\r\nX: y\r\nCONTENT-LENGTH: 7 \r\n", Framing::Length(7)),
            ("Transfer-Encoding: chunked\r\n", Framing::Chunked),
            ("transfer-encoding: gzip, Chunked\r\n", Framing::Chunked),
            ("Content-Length: 999999999999\r\n", Framing::Length(999_999_999_999)),
        ] {
            assert_eq!(of(&head(fields)), Ok(expected), "{fields:?}");
        }
        for length in ["", "-1", "+1", "1x", "0x1", "1,1", "1 1", "9999999999999999999"] {
            let head = head(&format!("Content-Length: {length}\r\n"));
            assert_eq!(why(&head), "Content-Length is not one number.", "{length:?}");
        }
        let two = head("Content-Length: 1\r\nContent-Length: 2\r\n");
        assert_eq!(why(&two), "Content-Length is not one number.");
        let gzip = head("Transfer-Encoding: chunked, gzip\r\n");
        assert_eq!(why(&gzip), "The Transfer-Encoding is not chunked.");
        let old = "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(why(old), "HTTP/1.0 has no Transfer-Encoding.");
    }

    #[test]
    fn what_hyper_would_not_read_is_said_in_words() {
        for (head, expected) in [
            ("GET / HTTP/9.9\r\n\r\n", "The HTTP version is neither 1.0 nor 1.1."),
            ("PRI * HTTP/2.0\r\n\r\n", "The HTTP version is neither 1.0 nor 1.1."),
            ("GET /\r\n\r\n", "The request line is malformed."),
            ("G@T / HTTP/1.1\r\n\r\n", "The request line is malformed."),
            ("GET / HTTP/1.1\r\nHost x\r\n\r\n", "The name of a header field is malformed."),
            ("GET / HTTP/1.1\r\nHost: \0\r\n\r\n", "The value of a header field is malformed."),
            ("GET /a#b HTTP/1.1\r\n\r\n", "A request target has no fragment (#)."),
            (
                "GET /a?b=\"\" HTTP/1.1\r\n\r\n",
                "The request target has characters that should be percent-encoded.",
            ),
        ] {
            assert_eq!(why(head), expected, "{head:?}");
        }
        let fields = |count: usize| format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(count));
        assert_eq!(of(&fields(3)), Ok(Framing::Length(0)));
        for count in [4, 100, 101, 5000] {
            assert_eq!(of(&fields(count)), Err(Fault::TooManyHeaders { limit: 3 }), "{count}");
        }
    }
}
