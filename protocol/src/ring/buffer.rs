//! The buffer that a message is copied into before anything in it is believed.

use super::MAX_MESSAGE_BYTES;

const WORDS: usize = MAX_MESSAGE_BYTES / 8;

/// Room for one message of up to [`MAX_MESSAGE_BYTES`], aligned for every message struct.
///
/// Made once and used again for each message: nothing in it is cleared between two.
#[repr(C, align(64))]
pub struct MessageBuffer {
    words: [u64; WORDS],
}

impl MessageBuffer {
    /// A buffer of zeros.
    pub const fn new() -> Self {
        Self { words: [0; WORDS] }
    }

    /// The first `length` bytes, where `length` is what the poll returned that filled the buffer.
    /// 8-byte aligned.
    ///
    /// # Panics
    /// If `length` exceeds [`MAX_MESSAGE_BYTES`], which no poll returns.
    #[inline]
    pub fn bytes(&self, length: usize) -> &[u8] {
        &bytemuck::cast_slice::<u64, u8>(&self.words)[..length]
    }

    #[inline]
    pub(crate) fn words_mut(&mut self) -> &mut [u64; WORDS] {
        &mut self.words
    }
}

impl Default for MessageBuffer {
    fn default() -> Self {
        Self::new()
    }
}
