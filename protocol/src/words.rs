//! Copies whole words, one by one. Called by who writes what is read again at once in another size: the log for
//! commands, the outbox for events, the duty thread for an envelope's flags, the client for replies.
//!
//! A processor hands what it has just stored on to a load only where one store has all of what is loaded. Else the
//! load waits until the stores have left the processor's core, those in front of them included; and these may be the
//! replies before, whose lines are still on their way from the clients' cores. A copy as the compiler makes it stores
//! fields as they are and loads as many bytes as it can. Commands come out of a ring word by word, and events
//! are read word by word by the checksum and by whoever sends them on.
#![allow(
    unsafe_code,
    reason = "the one way to keep the compiler from taking words together or apart"
)]

/// Copies all words of `from`, which may lie anywhere, one by one to the beginning of `to`.
///
/// # Panics
/// If `to` is shorter than `from`.
#[inline(always)]
pub fn copy(from: &[[u8; 8]], to: &mut [u64]) {
    for (place, bytes) in to[..from.len()].iter_mut().zip(from) {
        // SAFETY: a reference is valid for writes of what it refers to, and aligned. (Between such stores no loads are
        // taken together.)
        unsafe { core::ptr::write_volatile(place, u64::from_le_bytes(*bytes)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_words_are_copied_as_there_are() {
        let mut bytes = [0; 25];
        bytes[1..].copy_from_slice(bytemuck::bytes_of(&[1u64, 2, 3]));
        let mut to = [9; 4];
        copy(bytes[1..].as_chunks().0, &mut to);
        assert_eq!(to, [1, 2, 3, 9]);
    }

    #[test]
    #[should_panic(expected = "range end index 2")]
    fn what_has_no_room_is_not_cut() {
        copy(&[[1; 8], [2; 8]], &mut [0]);
    }
}
