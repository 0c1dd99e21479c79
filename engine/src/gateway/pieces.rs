//! Bytes cut as a socket may cut them. Used by the tests of what sessions and readers take.

/// Pieces of these sizes, each at least 1 and all of them over and over, up to the end of `bytes`.
pub(super) fn pieces(mut bytes: &[u8], sizes: Vec<usize>) -> impl Iterator<Item = &[u8]> {
    let mut sizes = sizes.into_iter().cycle();
    std::iter::from_fn(move || {
        let count = sizes.next()?.min(bytes.len());
        bytes.split_off(..count).filter(|piece| !piece.is_empty())
    })
}
