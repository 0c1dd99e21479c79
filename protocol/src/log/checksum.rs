//! The checksum of a frame: crc32c, as the processor computes it, on three parts of the bytes at a time.
//! Called by [`super::frame`] for every frame that is written or read, and there for whoever checks frames by
//! other means than [`super::frame::check`], or asks what a checksum costs.
//!
//! One step takes eight bytes and must wait three cycles for the step before it, so a frame of 336 bytes
//! would take 123 cycles. Three parts of equal length do not wait for each other. They are joined by what
//! a checksum is: the remainder of a division of polynomials over bits. Behind `n` more bytes the remainder
//! is multiplied by x^8n, which is one multiplication without carries and one step
//! ("Fast CRC Computation for iSCSI Polynomial Using CRC32 Instruction", Intel, 2011).
//! Processors without these instructions take the crc32c package's way.
#![allow(
    unsafe_code,
    reason = "instructions that not every processor has are behind a look for them"
)]

/// crc32c of a frame's `length`, four bytes with the lowest first, and then of all that `rest` holds, started from
/// `salt`. A frame bears that of the length that it states and of its bytes from offset 8 on, so that its own
/// checksum is left out: up to that length, of a padding to the end of the header. The salt is that of its log
/// ([`LogIdentity::salt`](super::segment::LogIdentity::salt)). `rest` may have any length; from 120 bytes on three
/// parts of it go side by side.
#[inline]
#[must_use]
pub fn of_frame(salt: u32, length: u32, rest: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("sse4.2") && is_x86_feature_detected!("pclmulqdq") {
        // SAFETY: the processor has both instruction sets, as was just looked up; nothing else is asked of
        // the caller.
        return unsafe { three_parts::of_frame(salt, length, rest) };
    }
    by_package(salt, length, rest)
}

/// The same, by the crc32c package.
fn by_package(salt: u32, length: u32, rest: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(salt, &length.to_le_bytes()), rest)
}

#[cfg(target_arch = "x86_64")]
mod three_parts {
    use std::arch::x86_64::{
        _mm_clmulepi64_si128, _mm_crc32_u8, _mm_crc32_u32, _mm_crc32_u64, _mm_cvtsi64_si128,
        _mm_cvtsi128_si64,
    };

    /// The polynomial, its lowest power in the highest bit.
    const POLYNOMIAL: u32 = 0x82f6_3b78;

    /// Longest part, words of eight bytes.
    const PART_MAX: usize = 64;

    /// Shortest part: joining costs as much as some four words.
    const PART_MIN: usize = 5;

    /// By what a checksum is to be multiplied when so many words come behind it: x^(64n - 33), because a
    /// step of the processor itself multiplies by x^33 what a multiplication without carries gives.
    const BEHIND: [u32; 2 * PART_MAX + 1] = {
        let mut powers = [0; 2 * PART_MAX + 1];
        // x^31, for one word.
        let mut power = 1_u32;
        let mut words = 1;
        while words < powers.len() {
            powers[words] = power;
            let mut bit = 0;
            while bit < 64 {
                power = (power >> 1) ^ (if power & 1 == 1 { POLYNOMIAL } else { 0 });
                bit += 1;
            }
            words += 1;
        }
        powers
    };

    #[target_feature(enable = "sse4.2,pclmulqdq")]
    pub(super) fn of_frame(salt: u32, length: u32, rest: &[u8]) -> u32 {
        let mut crc = u64::from(_mm_crc32_u32(!salt, length));
        let (mut words, tail) = rest.as_chunks::<8>();
        while words.len() >= 3 * PART_MIN {
            let part = (words.len() / 3).min(PART_MAX);
            let (first, others) = words.split_at(part);
            let (second, others) = others.split_at(part);
            let (third, others) = others.split_at(part);
            crc = join(part, first, second, third, crc);
            words = others;
        }
        for word in words {
            crc = _mm_crc32_u64(crc, u64::from_le_bytes(*word));
        }
        // A step leaves 32 bits.
        !tail.iter().fold(crc as u32, |crc, byte| _mm_crc32_u8(crc, *byte))
    }

    /// The checksum behind three parts of `part` words, `crc` being the one before them.
    #[target_feature(enable = "sse4.2,pclmulqdq")]
    #[inline]
    fn join(
        part: usize,
        first: &[[u8; 8]],
        second: &[[u8; 8]],
        third: &[[u8; 8]],
        crc: u64,
    ) -> u64 {
        let (mut one, mut two, mut three) = (crc, 0, 0);
        for ((first, second), third) in first.iter().zip(second).zip(third) {
            one = _mm_crc32_u64(one, u64::from_le_bytes(*first));
            two = _mm_crc32_u64(two, u64::from_le_bytes(*second));
            three = _mm_crc32_u64(three, u64::from_le_bytes(*third));
        }
        let moved = multiply(one, BEHIND[2 * part]) ^ multiply(two, BEHIND[part]);
        _mm_crc32_u64(0, moved) ^ three
    }

    /// The product without carries, of 63 bits.
    #[target_feature(enable = "sse4.2,pclmulqdq")]
    #[inline]
    fn multiply(crc: u64, power: u32) -> u64 {
        let (crc, power) = (_mm_cvtsi64_si128(crc as i64), _mm_cvtsi64_si128(i64::from(power)));
        _mm_cvtsi128_si64(_mm_clmulepi64_si128::<0>(crc, power)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_length_gives_the_packages_checksum() {
        let bytes: Vec<u8> = (0..5000_u32).map(|index| ((index * index) >> 3) as u8).collect();
        for length in 0..bytes.len() {
            let rest = &bytes[..length];
            assert_eq!(
                of_frame(7, length as u32, rest),
                by_package(7, length as u32, rest),
                "{length}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_bytes_give_the_packages_checksum(
            salt: u32,
            length: u32,
            bytes in prop::collection::vec(any::<u8>(), 0..70_000),
            from in 0_usize..64,
        ) {
            let rest = bytes.get(from..).unwrap_or_default();
            prop_assert_eq!(of_frame(salt, length, rest), by_package(salt, length, rest));
        }
    }
}
