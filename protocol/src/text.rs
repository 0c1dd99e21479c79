//! Short bounded texts inside messages: a length byte, printable ASCII (0x20 to 0x7e), zeros to the end. Used by
//! the messages, the core (names are compared, never interpreted) and the adapter.

use bytemuck::{Pod, Zeroable};
use core::fmt;
use core::hash::{Hash, Hasher};

/// Text of at most `N` bytes; `N + 1 + P` is its size on the wire, where `P` reserved bytes pad to a
/// multiple of eight.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C)]
pub struct Text<const N: usize, const P: usize> {
    length: u8,
    reserved: [u8; P],
    bytes: [u8; N],
}

// SAFETY: all fields are bytes, for which every bit pattern is valid, and repr(C) byte fields have
// no padding between them.
#[allow(unsafe_code, reason = "the derive does not take two const parameters")]
unsafe impl<const N: usize, const P: usize> Zeroable for Text<N, P> {}
// SAFETY: as above; the type is Copy and 'static.
#[allow(unsafe_code, reason = "the derive does not take two const parameters")]
unsafe impl<const N: usize, const P: usize> Pod for Text<N, P> {}

/// A client's own name for an order: up to 36 bytes (40 on the wire). Empty means none.
pub type ClientOrderId = Text<36, 3>;
/// A symbol's name: up to 20 bytes (24 on the wire; facts §2.3 symbol).
pub type SymbolName = Text<20, 3>;
/// An asset's name: up to 15 bytes (16 on the wire).
pub type AssetName = Text<15, 0>;
/// Name of an account or of a session: up to 31 bytes (32 on the wire).
pub type Name = Text<31, 0>;

/// Longest text that there is, bytes.
const MASKED: usize = 36;

/// Bytes that are looked at in one go.
const LANES: usize = 16;

/// From place `MASKED - n` on: the least that each byte of a text of that length may be, `n` times a bound, then none.
const LEAST: [u8; 2 * MASKED] = bounds(b' ');
/// As [`LEAST`], the most.
const MOST: [u8; 2 * MASKED] = bounds(b'~');

const fn bounds(bound: u8) -> [u8; 2 * MASKED] {
    let mut bounds = [0; 2 * MASKED];
    let mut at = 0;
    while at < MASKED {
        bounds[at] = bound;
        at += 1;
    }
    bounds
}

impl<const N: usize, const P: usize> Text<N, P> {
    /// No bytes at all.
    pub const EMPTY: Self = Self { length: 0, reserved: [0; P], bytes: [0; N] };

    /// Takes `text`, or gives `None` where the engine would refuse it: it is longer than `N` bytes, or has a
    /// character that is none of ASCII 0x20 to 0x7e.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let mut made = Self::EMPTY;
        made.bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        made.length = u8::try_from(text.len()).ok()?;
        made.is_valid().then_some(made)
    }

    /// True for a value that [`Text::new`] could have made: a length within bounds, printable bytes of ASCII,
    /// zeros behind them. Everything from a peer is checked with it.
    #[must_use]
    #[inline(always)]
    pub fn is_valid(&self) -> bool {
        const { assert!(N <= MASKED && N >= LANES - 1 && P < 4) };
        // The length and what is reserved behind it are one number, which is too large if any bit of that is set.
        let mut head = [self.length, 0, 0, 0];
        head[1..=P].copy_from_slice(&self.reserved);
        let length = u32::from_le_bytes(head) as usize;
        if length > N {
            return false;
        }
        let (least, most) = (&LEAST[MASKED - length..][..N], &MOST[MASKED - length..][..N]);
        let mut wrong = [0; LANES];
        // All bytes alike and none decides on the next: so they are looked at many at a time, the last ones twice.
        for at in (0..N).step_by(LANES) {
            let at = at.min(N.saturating_sub(LANES));
            let part = at..N.min(at + LANES);
            let bounds = least[part.clone()].iter().zip(&most[part.clone()]);
            let parts = self.bytes[part].iter().zip(bounds);
            for (wrong, (&byte, (&least, &most))) in wrong.iter_mut().zip(parts) {
                *wrong |= byte ^ byte.max(least).min(most);
            }
        }
        u128::from_le_bytes(wrong) == 0
    }

    /// The text's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or(&self.bytes)
    }

    /// The text; empty if it is not ASCII, which [`Text::is_valid`] excludes.
    #[must_use]
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    /// True without any byte.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// All bytes in one go: field by field, each of which is as much work for a hasher, it would be five.
impl<const N: usize, const P: usize> Hash for Text<N, P> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(bytemuck::bytes_of(self));
    }
}

impl<const N: usize, const P: usize> Default for Text<N, P> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<const N: usize, const P: usize> fmt::Display for Text<N, P> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(formatter)
    }
}

impl<const N: usize, const P: usize> fmt::Debug for Text<N, P> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_up_to_its_bound() {
        let longest = "x".repeat(36);
        assert_eq!(ClientOrderId::new(&longest).unwrap().as_str(), longest);
        assert_eq!(ClientOrderId::new(&"x".repeat(37)), None);
        assert_eq!(ClientOrderId::new(""), Some(ClientOrderId::EMPTY));
        assert_eq!(size_of::<ClientOrderId>(), 40);
        assert_eq!(size_of::<SymbolName>(), 24);
        assert_eq!(size_of::<AssetName>(), 16);
        assert_eq!(size_of::<Name>(), 32);
    }

    #[test]
    fn no_text_is_made_that_an_engine_refuses() {
        for character in (0..=0x17f).filter_map(char::from_u32) {
            let text = format!("a{character}");
            let is_taken = (' '..='~').contains(&character);
            assert_eq!(ClientOrderId::new(&text).is_some(), is_taken, "{character:?}");
            assert_eq!(Name::new(&text).is_some(), is_taken, "{character:?}");
        }
    }

    #[test]
    fn hostile_bytes_are_noticed() {
        let mut bytes = [0u8; 40];
        bytes[0] = 37;
        assert!(!bytemuck::from_bytes::<ClientOrderId>(&bytes).is_valid(), "length beyond 36");
        bytes[0] = 1;
        assert!(!bytemuck::from_bytes::<ClientOrderId>(&bytes).is_valid(), "zero byte in the text");
        bytes[4] = b'a';
        assert!(bytemuck::from_bytes::<ClientOrderId>(&bytes).is_valid());
        bytes[5] = b'b';
        assert!(!bytemuck::from_bytes::<ClientOrderId>(&bytes).is_valid(), "bytes behind the text");
        bytes[5] = 0;
        bytes[1] = 1;
        assert!(!bytemuck::from_bytes::<ClientOrderId>(&bytes).is_valid(), "reserved byte");
    }

    /// Every value of every byte behind the length, in texts of every length there is room for.
    #[test]
    fn validity_is_decided_by_each_byte_alone() {
        for length in 0..=37u8 {
            let mut bytes = [0u8; 40];
            bytes[0] = length;
            let end = 4 + usize::from(length.min(36));
            bytes[4..end].fill(b'x');
            assert_eq!(bytemuck::from_bytes::<ClientOrderId>(&bytes).is_valid(), length <= 36);
            for at in 1..40 {
                for value in 0..=u8::MAX {
                    let mut bytes = bytes;
                    bytes[at] = value;
                    let is_right = if (4..end).contains(&at) {
                        (0x20..=0x7e).contains(&value)
                    } else {
                        value == 0
                    };
                    let is_valid = bytemuck::from_bytes::<ClientOrderId>(&bytes).is_valid();
                    assert_eq!(is_valid, length <= 36 && is_right, "{length}: {value} at {at}");
                }
            }
        }
    }
}
