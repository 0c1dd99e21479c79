//! Lets request targets with a raw `"` in the query through the URI parser. Called by the gate
//! on each whole head and by the connection when the head has been parsed.
//!
//! The spot contract (GET /exchangeInfo) allows `symbols=["A","B"]` "as-is", and curl sends it
//! so, but hyper's URI type refuses `"` behind a `?` (it allows it in a path). The `?` of such a
//! target is therefore overwritten in the receive buffer, its offset remembered, and the target
//! split there again after parsing: the service sees the bytes that were sent.
//!
//! Only the request line is looked at, up to the end of the target, and only one with a single `?`;
//! any other with a `"` is answered 400.

/// What stands in for the `?` while the target is parsed: legal in a path.
const STAND_IN: u8 = b'!';

/// Disguises the `?` of a request line at the start of `received` when its query holds a `"`.
/// Returns the offset of the `?` within the request target.
pub(super) fn disguise(received: &mut [u8]) -> Option<usize> {
    let target_at = received.iter().position(|&byte| byte == b' ')? + 1;
    let rest = &received[target_at..];
    if rest.first() != Some(&b'/') {
        return None;
    }
    let length =
        rest.iter().position(|byte| matches!(byte, b' ' | b'\r' | b'\n')).unwrap_or(rest.len());
    let target = &mut received[target_at..target_at + length];
    let query_at = target.iter().position(|&byte| byte == b'?')?;
    let query = &target[query_at + 1..];
    if !query.contains(&b'"') || query.contains(&b'?') {
        return None;
    }
    target[query_at] = STAND_IN;
    Some(query_at)
}

/// Splits a parsed target into path and query, undoing [`disguise`].
pub(super) fn split(target: &str, disguised_at: Option<usize>) -> (&str, &str) {
    match disguised_at {
        Some(at) if target.as_bytes().get(at) == Some(&STAND_IN) => {
            (&target[..at], &target[at + 1..])
        }
        _ => target.split_once('?').unwrap_or((target, "")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_quoted_query_survives() {
        let mut bytes = *b"GET /a?symbols=[\"A\",\"B\"]&x HTTP/1.1\r\n";
        let at = disguise(&mut bytes);
        assert_eq!(at, Some(2));
        assert_eq!(&bytes[..16], b"GET /a!symbols=[");
        assert_eq!(split("/a!symbols=[\"A\",\"B\"]&x", at), ("/a", "symbols=[\"A\",\"B\"]&x"));
    }

    #[test]
    fn everything_else_is_left_alone() {
        for line in [
            &b"GET /a?b=c HTTP/1.1\r\nX: \"\r\n"[..],
            b"GET /a HTTP/1.1\r\nX: ?\"\r\n",
            b"GET http://h/a?\" HTTP/1.1\r\n",
            b"GET /a\"?b HTTP/1.1\r\n",
            b"GET /a?b=?\" HTTP/1.1\r\n",
            b"{\"a\": \"/?\"}",
            b"GET",
            b"GET ",
            b"",
        ] {
            let mut bytes = line.to_vec();
            assert_eq!(disguise(&mut bytes), None);
            assert_eq!(bytes, line);
        }
        assert_eq!(split("/a?b", None), ("/a", "b"));
        assert_eq!(split("/a", None), ("/a", ""));
        assert_eq!(split("/a", Some(9)), ("/a", ""));
        assert_eq!(split("/a?b", Some(1)), ("/a", "b"));
    }

    proptest! {
        #[test]
        fn any_target_comes_back(path in "/[a-z!]{0,9}", query in "[a-z\"?!&=]{0,20}") {
            let target = format!("{path}?{query}");
            let mut bytes = format!("GET {target} HTTP/1.1\r\n\r\n").into_bytes();
            let at = disguise(&mut bytes);
            let parsed = std::str::from_utf8(&bytes[4..4 + target.len()]).unwrap();
            prop_assert_eq!(split(parsed, at), (path.as_str(), query.as_str()));
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            disguise(&mut bytes);
        }
    }
}
