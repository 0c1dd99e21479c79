//! The header of a disk segment: which log it belongs to, which part of it, in which format.
//! Written by the keeper, checked by recovery and readers.
//!
//! All integers little-endian, offsets in bytes; the header is part of position space:
//!
//! ```text
//!  offset  size
//!       0     8   magic          "TLINELOG"
//!       8     2   major  u16     format: another major is refused
//!      10     2   minor  u16     format: a newer minor may be read
//!      12     4   salt   u32     random per log, start value of every checksum
//!      16    16   log id         random per log
//!      32     8   segment bytes  u64, the same for the whole log
//!      40     8   number u64     the segment begins at position number x segment bytes
//!      48    12   zero
//!      60     4   crc    u32     crc32c of bytes 0..60, started from the salt
//!      64  4032   zero
//! ```

use bytemuck::{Pod, Zeroable};
use thiserror::Error;

use super::{SEGMENT_HEADER_BYTES, is_segment_size};

/// The first eight bytes of every disk segment.
pub const MAGIC: [u8; 8] = *b"TLINELOG";

/// Format version: another major is refused.
pub const FORMAT_MAJOR: u16 = 1;

/// Format version: raised by additions that an older reader may ignore.
pub const FORMAT_MINOR: u16 = 0;

/// What tells one log from every other, and holds for all its segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogIdentity {
    /// Random.
    pub log_id: [u8; 16],
    /// Random; every checksum starts from it, so that frames of another log do not pass here.
    pub salt: u32,
    /// Bytes of each disk segment; see [`is_segment_size`].
    pub segment_bytes: u64,
}

/// The used part of the header, as it lies on disk.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct RawHeader {
    magic: [u8; 8],
    major: u16,
    minor: u16,
    salt: u32,
    log_id: [u8; 16],
    segment_bytes: u64,
    number: u64,
    reserved: [u8; 12],
    crc: u32,
}

/// No log goes on behind this position: so none that is added to one, by a frame or a few segments, overflows.
const POSITION_MAX: u64 = 1 << 63;

const RAW_BYTES: usize = 64;
const CRC_OFFSET: usize = 60;

const _: () = {
    assert!(size_of::<RawHeader>() == RAW_BYTES);
    assert!(core::mem::offset_of!(RawHeader, salt) == 12);
    assert!(core::mem::offset_of!(RawHeader, log_id) == 16);
    assert!(core::mem::offset_of!(RawHeader, segment_bytes) == 32);
    assert!(core::mem::offset_of!(RawHeader, number) == 40);
    assert!(core::mem::offset_of!(RawHeader, crc) == CRC_OFFSET);
};

/// Why bytes are not the header of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SegmentError {
    /// Nothing was written there: a segment made ahead and not reached.
    #[error("no segment header was written")]
    Blank,
    /// Fewer bytes than a header.
    #[error("{have} bytes, a segment header has 64")]
    TooShort {
        /// Bytes that are there.
        have: usize,
    },
    /// Some other file.
    #[error("begins with {found:02x?}, not with the mark of a log segment")]
    Magic {
        /// The first bytes.
        found: [u8; 8],
    },
    /// Written by a build of another format.
    #[error("log format {found_major}.{found_minor}, this build reads {FORMAT_MAJOR}.x")]
    Version {
        /// Major version in the header.
        found_major: u16,
        /// Minor version in the header.
        found_minor: u16,
    },
    /// The header is damaged.
    #[error("segment header checksum {found:08x}, computed {computed:08x}")]
    Crc {
        /// In the header.
        found: u32,
        /// Of its bytes.
        computed: u32,
    },
    /// A segment size that no log has.
    #[error("segment size {found} is not a multiple of 2 MiB up to 1 TiB")]
    Size {
        /// In the header, bytes.
        found: u64,
    },
    /// The header of another segment.
    #[error("header of segment {found} in the place of segment {expected}")]
    Number {
        /// In the header.
        found: u64,
        /// By the file's name.
        expected: u64,
    },
    /// A segment behind the last position that there is.
    #[error("segment {found} of {segment_bytes} bytes would end behind position 2^63")]
    Beyond {
        /// Its number, by its header or by a file's name.
        found: u64,
        /// Segment size, bytes.
        segment_bytes: u64,
    },
    /// A segment of another log.
    #[error("a segment of another log")]
    Foreign,
}

impl SegmentError {
    /// True unless the header is whole and of another format, which another build reads.
    #[must_use]
    pub const fn is_damage(&self) -> bool {
        !matches!(self, Self::Version { .. })
    }

    /// True if the header is whole, by its checksum, and of another segment, log or format: what was meant to
    /// be there was not begun, or something else was put in its place.
    #[must_use]
    pub const fn is_of_another(&self) -> bool {
        matches!(
            self,
            Self::Version { .. }
                | Self::Size { .. }
                | Self::Number { .. }
                | Self::Beyond { .. }
                | Self::Foreign
        )
    }
}

/// A log's id as people and names of files have it: 32 hexadecimal digits.
#[must_use]
pub fn log_id_text(log_id: &[u8; 16]) -> String {
    log_id.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl LogIdentity {
    /// The header of segment `number` into the first [`SEGMENT_HEADER_BYTES`] of `target`.
    ///
    /// # Panics
    /// If `target` is shorter.
    pub fn write_header(&self, number: u64, target: &mut [u8]) {
        let target = &mut target[..SEGMENT_HEADER_BYTES as usize];
        target.fill(0);
        let mut raw = RawHeader {
            magic: MAGIC,
            major: FORMAT_MAJOR,
            minor: FORMAT_MINOR,
            salt: self.salt,
            log_id: self.log_id,
            segment_bytes: self.segment_bytes,
            number,
            ..RawHeader::zeroed()
        };
        raw.crc = raw.checksum();
        target[..RAW_BYTES].copy_from_slice(bytemuck::bytes_of(&raw));
    }

    /// Reads a segment's header: which log, and the segment's number.
    ///
    /// # Errors
    /// See [`SegmentError`].
    pub fn read_header(bytes: &[u8]) -> Result<(Self, u64), SegmentError> {
        let too_short = SegmentError::TooShort { have: bytes.len() };
        let raw: RawHeader = bytemuck::pod_read_unaligned(bytes.get(..RAW_BYTES).ok_or(too_short)?);
        if bytemuck::bytes_of(&raw).iter().all(|&byte| byte == 0) {
            return Err(SegmentError::Blank);
        }
        if raw.magic != MAGIC {
            return Err(SegmentError::Magic { found: raw.magic });
        }
        let computed = raw.checksum();
        if raw.crc != computed {
            return Err(SegmentError::Crc { found: raw.crc, computed });
        }
        // Behind the checksum, which has its place in every format: damage is no other format.
        if raw.major != FORMAT_MAJOR {
            return Err(SegmentError::Version { found_major: raw.major, found_minor: raw.minor });
        }
        if !is_segment_size(raw.segment_bytes) {
            return Err(SegmentError::Size { found: raw.segment_bytes });
        }
        let identity =
            Self { log_id: raw.log_id, salt: raw.salt, segment_bytes: raw.segment_bytes };
        identity.begin_of(raw.number)?;
        Ok((identity, raw.number))
    }

    /// The position that segment `number` begins at.
    ///
    /// # Errors
    /// [`SegmentError::Beyond`] if it would end behind position 2^63.
    pub fn begin_of(&self, number: u64) -> Result<u64, SegmentError> {
        let segment_bytes = self.segment_bytes;
        let end = number.checked_add(1).and_then(|next| next.checked_mul(segment_bytes));
        match end {
            Some(end) if end <= POSITION_MAX => Ok(end - segment_bytes),
            _ => Err(SegmentError::Beyond { found: number, segment_bytes }),
        }
    }

    /// Checks that `bytes` begin with the header of this log's segment `number`.
    ///
    /// # Errors
    /// See [`SegmentError`].
    pub fn check_header(&self, number: u64, bytes: &[u8]) -> Result<(), SegmentError> {
        let (identity, found) = Self::read_header(bytes)?;
        if identity != *self {
            return Err(SegmentError::Foreign);
        }
        if found != number {
            return Err(SegmentError::Number { found, expected: number });
        }
        Ok(())
    }
}

impl RawHeader {
    fn checksum(&self) -> u32 {
        crc32c::crc32c_append(self.salt, &bytemuck::bytes_of(self)[..CRC_OFFSET])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: LogIdentity =
        LogIdentity { log_id: *b"0123456789abcdef", salt: 0x5a17_5a17, segment_bytes: 4 << 20 };

    fn header(number: u64) -> Vec<u8> {
        let mut bytes = vec![0xee; 4096];
        IDENTITY.write_header(number, &mut bytes);
        bytes
    }

    #[test]
    fn golden_bytes() {
        let bytes = header(3);
        let golden = "544c494e454c4f47 0100 0000 175a175a 30313233343536373839616263646566 \
                      0000400000000000 0300000000000000 000000000000000000000000 5363947c";
        let text: String = bytes[..64].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(text, golden.replace(' ', ""));
        assert!(bytes[64..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn a_header_is_read_back() {
        assert_eq!(LogIdentity::read_header(&header(3)), Ok((IDENTITY, 3)));
        assert_eq!(IDENTITY.check_header(3, &header(3)), Ok(()));
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let good = header(3);
        for bit in 0..64 * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            // The minor version alone may differ, and its change is caught by the checksum.
            assert!(IDENTITY.check_header(3, &bad).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn every_kind_of_wrong_header_is_named() {
        assert_eq!(LogIdentity::read_header(&[0; 64]), Err(SegmentError::Blank));
        assert_eq!(LogIdentity::read_header(&[1; 63]), Err(SegmentError::TooShort { have: 63 }));
        assert!(matches!(LogIdentity::read_header(&[1; 64]), Err(SegmentError::Magic { .. })));
        let mut newer = header(3);
        newer[8] = 2;
        assert!(matches!(LogIdentity::read_header(&newer), Err(SegmentError::Crc { .. })));
        let crc = crc32c::crc32c_append(IDENTITY.salt, &newer[..CRC_OFFSET]);
        newer[CRC_OFFSET..RAW_BYTES].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(
            LogIdentity::read_header(&newer),
            Err(SegmentError::Version { found_major: 2, found_minor: 0 })
        );
        assert_eq!(
            IDENTITY.check_header(4, &header(3)),
            Err(SegmentError::Number { found: 3, expected: 4 })
        );
        let other = LogIdentity { log_id: [1; 16], ..IDENTITY };
        assert_eq!(other.check_header(3, &header(3)), Err(SegmentError::Foreign));
        let mut odd = vec![0; 4096];
        LogIdentity { segment_bytes: 4096, ..IDENTITY }.write_header(0, &mut odd);
        assert_eq!(LogIdentity::read_header(&odd), Err(SegmentError::Size { found: 4096 }));
        let last = (1 << 63) / IDENTITY.segment_bytes - 1;
        assert_eq!(LogIdentity::read_header(&header(last)), Ok((IDENTITY, last)));
        for found in [last + 1, u64::MAX / IDENTITY.segment_bytes, u64::MAX] {
            let beyond = SegmentError::Beyond { found, segment_bytes: IDENTITY.segment_bytes };
            assert_eq!(LogIdentity::read_header(&header(found)), Err(beyond));
            assert_eq!(IDENTITY.check_header(found, &header(found)), Err(beyond));
        }
        let whole =
            [newer, header(4), odd, header(u64::MAX)].map(|bytes| IDENTITY.check_header(3, &bytes));
        assert!(whole.iter().all(|judged| judged.is_err_and(|error| error.is_of_another())));
        let broken = [vec![0; 64], vec![1; 63], vec![1; 64], header(4)[1..65].to_vec()];
        for bytes in broken {
            assert!(IDENTITY.check_header(3, &bytes).is_err_and(|error| !error.is_of_another()));
        }
    }
}
