//! One input of the fuzz target `http_heads`: what a client sends, cut into pieces anywhere. The gate in front of the
//! HTTP server lets the same through however it was cut, and holds no more than a head. Called by that target and by
//! the test beside this folder.

use touchline_adapter::front::trial::{Passed, pass};

/// Most bytes and fields of a head.
const MAX_HEAD: usize = 300;
const MAX_HEADERS: usize = 8;

/// Reads an input: the number of cuts, as many sizes of pieces, and what is sent.
pub(crate) fn read(input: &[u8]) -> Passed {
    let (cuts, sent) = parts(input);
    let mut rest = sent;
    let mut pieces: Vec<&[u8]> = Vec::new();
    for cut in cuts {
        let (piece, behind) = rest.split_at(usize::from(*cut).min(rest.len()));
        pieces.push(piece);
        rest = behind;
    }
    pieces.push(rest);
    let whole = pass([sent], MAX_HEAD, MAX_HEADERS);
    let cut = pass(pieces, MAX_HEAD, MAX_HEADERS);
    let bytewise = pass(sent.chunks(1), MAX_HEAD, MAX_HEADERS);
    for passed in [&whole, &cut, &bytewise] {
        assert_eq!((&passed.bytes, passed.is_refused), (&whole.bytes, whole.is_refused));
        assert!(passed.held <= MAX_HEAD, "{} bytes are held", passed.held);
        assert!(passed.is_refused || passed.bytes.len() == sent.len(), "what is sent is lost");
        // Nothing is changed but the mark in front of a query.
        let is_sent =
            |(passed, sent): (&u8, &u8)| passed == sent || (*passed, *sent) == (b'!', b'?');
        assert!(passed.bytes.iter().zip(sent).all(is_sent));
    }
    whole
}

fn parts(input: &[u8]) -> (&[u8], &[u8]) {
    let Some((count, rest)) = input.split_first() else { return (&[], &[]) };
    rest.split_at(usize::from(*count % 32).min(rest.len()))
}
