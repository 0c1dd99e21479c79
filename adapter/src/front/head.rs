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

/// Where the body ends; only if all fields that say it say the same (RFC 9112 §6.3), and if it is said once whom the
/// request is for.
pub(super) fn framing(fields: &[Header<'_>], is_http_1_1: bool) -> Result<Framing, Fault> {
    let (mut length, mut codings) = (None, Vec::new());
    for field in fields {
        if field.name.eq_ignore_ascii_case("transfer-encoding") {
            codings.extend(field.value.split(|&byte| byte == b','));
        }
        if field.name.eq_ignore_ascii_case("content-length") {
            let this = content_length(field.value);
            if this.is_none() || length.is_some_and(|other| Some(other) != this) {
                return bad("Content-Length is not one number.");
            }
            length = this;
        }
    }
    let framing = match (length, &*codings) {
        (length, []) => Framing::Length(length.unwrap_or(0)),
        (Some(_), _) => return bad("Content-Length and Transfer-Encoding exclude each other."),
        (None, _) if !is_http_1_1 => return bad("HTTP/1.0 has no Transfer-Encoding."),
        (None, [.., last]) if !is_chunked(last) => {
            return bad("The Transfer-Encoding is not chunked.");
        }
        (None, [_]) => Framing::Chunked,
        (None, _) => return bad("No Transfer-Encoding is understood but chunked, once."),
    };
    check_host(fields, is_http_1_1)?;
    Ok(framing)
}

/// Exactly one host in HTTP/1.1, at most one in 1.0 (RFC 9112 §3.2): whatever stands in between may go by another of
/// two than this side does.
fn check_host(fields: &[Header<'_>], is_http_1_1: bool) -> Result<(), Fault> {
    let is_host = |field: &&Header<'_>| field.name.eq_ignore_ascii_case("host");
    let mut hosts = fields.iter().filter(is_host);
    match (hosts.next(), hosts.next()) {
        (None, _) if is_http_1_1 => bad("There is no Host, which HTTP since 1.1 needs."),
        (Some(_), Some(_)) => bad("There is more than one Host."),
        (Some(host), None) if !is_host_and_port(host.value.trim_ascii()) => {
            bad("The Host is not a host with or without a port.")
        }
        _ => Ok(()),
    }
}

/// `uri-host [ ":" port ]`, which may be empty (RFC 9110 §7.2, RFC 3986 §3.2.2). What stands in brackets is looked at
/// by its characters alone, and may have a zone behind `%25` (RFC 6874 §2).
fn is_host_and_port(value: &[u8]) -> bool {
    let (is_sound, behind) = match value.strip_prefix(b"[") {
        Some(rest) => {
            let end = rest.iter().position(|&byte| byte == b']').unwrap_or(rest.len());
            let (literal, behind) = rest.split_at(end);
            let zone_at = literal.windows(3).position(|three| three == b"%25");
            let (address, zone) = literal.split_at(zone_at.unwrap_or(literal.len()));
            let is_zone = |zone: &[u8]| !zone.is_empty() && is_encoded(zone, is_unreserved);
            let is_sound = !address.is_empty()
                && address.iter().all(|byte| *byte == b':' || is_plain(byte))
                && zone.get(3..).is_none_or(is_zone);
            (is_sound && !behind.is_empty(), behind.get(1..).unwrap_or_default())
        }
        None => {
            let end = value.iter().position(|&byte| byte == b':').unwrap_or(value.len());
            let (name, behind) = value.split_at(end);
            (is_encoded(name, is_plain), behind)
        }
    };
    let is_port = |port: &[u8]| port.iter().all(u8::is_ascii_digit);
    is_sound && (behind.is_empty() || behind.strip_prefix(b":").is_some_and(is_port))
}

/// What stands for itself wherever it is (RFC 3986 §2.3).
fn is_unreserved(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(byte)
}

/// That, and what divides a name (RFC 3986 §2.2).
fn is_plain(byte: &u8) -> bool {
    is_unreserved(byte) || b"!$&'()*+,;=".contains(byte)
}

/// What stands for itself, and other bytes by a `%` and two digits (RFC 3986 §2.1).
fn is_encoded(text: &[u8], stands: impl Fn(&u8) -> bool) -> bool {
    let mut parts = text.split(|&byte| byte == b'%');
    parts.next().is_none_or(|part| part.iter().all(&stands))
        && parts.all(|part| {
            let (digits, rest) = part.split_at(part.len().min(2));
            digits.len() == 2
                && digits.iter().all(u8::is_ascii_hexdigit)
                && rest.iter().all(&stands)
        })
}

/// Digits alone. More than an `i64` holds is more than hyper counts.
fn content_length(value: &[u8]) -> Option<usize> {
    let digits = std::str::from_utf8(value).ok()?.trim_ascii();
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let length = digits.parse::<i64>().ok().filter(|_| is_number)?;
    usize::try_from(length).ok()
}

/// Whether it is the coding that marks the body's end.
fn is_chunked(coding: &[u8]) -> bool {
    coding.trim_ascii().eq_ignore_ascii_case(b"chunked")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(head: &str) -> Result<Framing, Fault> {
        examine(head.as_bytes(), 4)
    }

    fn why(head: &str) -> &'static str {
        match of(head) {
            Err(Fault::BadHead { why }) => why,
            other => panic!("{head:?}: {other:?}"),
        }
    }

    #[test]
    fn the_body_behind_a_head() {
        let head = |fields: &str| format!("POST /a HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
        for (fields, expected) in [
            ("", Framing::Length(0)),
            ("Content-Length: 7\r\n", Framing::Length(7)),
            ("content-length:007\r\nX: y\r\nCONTENT-LENGTH: 7 \r\n", Framing::Length(7)),
            ("Transfer-Encoding: chunked\r\n", Framing::Chunked),
            ("transfer-encoding: Chunked \r\n", Framing::Chunked),
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
        for fields in [
            "Transfer-Encoding: gzip, chunked\r\n",
            "Transfer-Encoding: chunked, chunked\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: , chunked\r\n",
        ] {
            let expected = "No Transfer-Encoding is understood but chunked, once.";
            assert_eq!(why(&head(fields)), expected, "{fields:?}");
        }
        let old = "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(why(old), "HTTP/1.0 has no Transfer-Encoding.");
    }

    #[test]
    fn whom_a_request_is_for_is_said_once() {
        let head = |version: u8, fields: &str| format!("GET /a HTTP/1.{version}\r\n{fields}\r\n");
        for host in [
            "",
            "h",
            "h:80",
            "h:",
            " h.example ",
            "127.0.0.1:8080",
            "[::1]",
            "[::1]:80",
            "[fe80::1%25eth0]:80",
            "[fe80::1%25e%2Dth.0]",
            "a-b.c_d~e",
            "%41b",
            "a,b",
            "[v1.a:b]",
            "H!$&'()*+;=",
        ] {
            let head = head(1, &format!("host:{host}\r\n"));
            assert_eq!(of(&head), Ok(Framing::Length(0)), "{host:?}");
        }
        for host in [
            "a b/c@",
            "a b",
            "a/b",
            "b@c",
            "a?b",
            "a:b",
            "a:80:90",
            "::1",
            "[::1",
            "[::1]x",
            "[::1]:x",
            "[]",
            "[a/b]",
            "[[::1]]",
            "[fe80::1%eth0]",
            "[fe80::1%25]",
            "[fe80::1%25a%4]",
            "[fe80::1%25a:b]",
            "[%25eth0]",
            "%4",
            "%4g",
            "é",
            "\"a\"",
            "a, b",
            "a\\b",
        ] {
            for version in [0, 1] {
                let head = head(version, &format!("Host: {host}\r\n"));
                assert_eq!(
                    why(&head),
                    "The Host is not a host with or without a port.",
                    "{host:?}"
                );
            }
        }
        for version in [0, 1] {
            let two = head(version, "Host: a\r\nX: y\r\nhost: a\r\n");
            assert_eq!(why(&two), "There is more than one Host.");
        }
        assert_eq!(why(&head(1, "")), "There is no Host, which HTTP since 1.1 needs.");
        assert_eq!(of(&head(0, "")), Ok(Framing::Length(0)));
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
        let fields = |count: usize| {
            format!("GET / HTTP/1.1\r\nHost: h\r\n{}\r\n", "X: y\r\n".repeat(count - 1))
        };
        assert_eq!(of(&fields(4)), Ok(Framing::Length(0)));
        for count in [5, 100, 101, 5000] {
            assert_eq!(of(&fields(count)), Err(Fault::TooManyHeaders { limit: 4 }), "{count}");
        }
    }
}
