//! Messages whose block goes on behind their fields, with as many bytes as they say. Read by
//! [`decode`](mod@super::decode); written by senders ([`RecordWrite`]).
//!
//! The header's block length covers the bytes too, so that rings, log and tools need not know which
//! messages these are; a decoder of plain SBE reads the fields and skips the rest.

use super::command::{PutRecord, RECORD_BYTES_MAX};
use super::decode::{self, DecodeError};
use super::fields::{Fields, Value};
use super::{Message, MessageHeader};
use bytemuck::{Pod, Zeroable};
use core::ops::Deref;

/// A message that bytes follow, and zeros up to a multiple of eight.
pub trait MessageWithBytes: Message {
    /// Most bytes that may follow.
    const BYTES_MAX: u32;

    /// How many follow, by the message's own field.
    fn stated_bytes(&self) -> u32;
}

/// A message and the bytes that follow it, all checks made; its fields are reached through it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WithBytes<'bytes, M> {
    message: &'bytes M,
    all: &'bytes [u8],
}

impl<'bytes, M: MessageWithBytes> WithBytes<'bytes, M> {
    /// Views `bytes` as the message and what follows it.
    ///
    /// # Errors
    /// See [`DecodeError`].
    pub fn decode(bytes: &'bytes [u8]) -> Result<Self, DecodeError> {
        let header = decode::header(bytes)?;
        let name = M::NAME;
        if header.template_id != M::TEMPLATE {
            return Err(DecodeError::Template { template: header.template_id });
        }
        let all = &bytes[..MessageHeader::BYTES + usize::from(header.block_length)];
        let least = MessageHeader::of::<M>().block_length;
        let found = header.block_length;
        let (fields, behind) = all
            .split_at_checked(size_of::<M>())
            .ok_or(DecodeError::BlockLength { name, found, expected: least })?;
        let message: &M = bytemuck::try_from_bytes(fields).map_err(|_| DecodeError::Misaligned)?;
        let stated = message.stated_bytes();
        if stated > M::BYTES_MAX {
            return Err(DecodeError::Bytes { name, found: stated, most: M::BYTES_MAX });
        }
        let padded = (stated as usize).next_multiple_of(8);
        if behind.len() != padded {
            return Err(DecodeError::BlockLength { name, found, expected: least + padded as u16 });
        }
        let is_padded = behind[stated as usize..].iter().all(|&byte| byte == 0);
        if message.is_well_formed() && is_padded {
            Ok(Self { message, all })
        } else {
            Err(DecodeError::Field { name })
        }
    }

    /// The bytes behind the fields, without the zeros behind them.
    #[must_use]
    pub fn content(&self) -> &'bytes [u8] {
        &self.all[size_of::<M>()..][..self.message.stated_bytes() as usize]
    }

    /// The whole message, header and padding included.
    #[must_use]
    pub const fn bytes(&self) -> &'bytes [u8] {
        self.all
    }
}

impl<M> Deref for WithBytes<'_, M> {
    type Target = M;

    fn deref(&self) -> &M {
        self.message
    }
}

impl<M: MessageWithBytes> Fields for WithBytes<'_, M> {
    fn fields<'message>(&'message self, visit: &mut dyn FnMut(&'static str, Value<'message>)) {
        self.message.fields(visit);
        visit("content", Value::Content(self.content()));
    }
}

/// A put of a record, as its sender makes it: the fields, and room for the most bytes.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct RecordWrite {
    put: PutRecord,
    bytes: [u8; RECORD_BYTES_MAX as usize],
}

impl RecordWrite {
    /// The put with `content` behind it; `None` if that is longer than [`RECORD_BYTES_MAX`]. Length and
    /// header are set here.
    #[must_use]
    pub fn new(put: PutRecord, content: &[u8]) -> Option<Self> {
        let mut made = Self { put, ..Zeroable::zeroed() };
        made.bytes.get_mut(..content.len())?.copy_from_slice(content);
        made.put.length = content.len() as u32;
        made.put.header = MessageHeader::of::<PutRecord>();
        made.put.header.block_length += content.len().next_multiple_of(8) as u16;
        Some(made)
    }

    /// The message: what goes into a ring.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        let length = MessageHeader::BYTES + usize::from(self.put.header.block_length);
        &bytemuck::bytes_of(self)[..length]
    }

    /// The fields.
    #[must_use]
    pub const fn put(&self) -> &PutRecord {
        &self.put
    }

    /// The command header, to number the command and name its session.
    pub const fn command_mut(&mut self) -> &mut super::command::CommandHeader {
        &mut self.put.command
    }
}

const _: () = {
    assert!(size_of::<RecordWrite>() == size_of::<PutRecord>() + RECORD_BYTES_MAX as usize);
    assert!(RECORD_BYTES_MAX.is_multiple_of(8));
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::decode::{Command, command};

    fn write(content: &[u8]) -> RecordWrite {
        RecordWrite::new(PutRecord { kind: 1, id: [7; 12], ..Default::default() }, content)
            .expect("it fits")
    }

    /// Aligned words that hold the bytes.
    fn aligned(bytes: &[u8]) -> Vec<u64> {
        let mut words = vec![0; bytes.len().div_ceil(8)];
        bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
        words
    }

    #[test]
    fn what_was_put_behind_a_message_comes_back() {
        let most = [0xa5; RECORD_BYTES_MAX as usize];
        for length in [0, 1, 7, 8, 9, 60, 1023, 1024] {
            let write = write(&most[..length]);
            assert_eq!(write.as_bytes().len(), 120 + length.next_multiple_of(8));
            // What lies behind the message is not looked at.
            let words = aligned(&[write.as_bytes(), &[0xff; 16]].concat());
            let Ok(Command::PutRecord(put)) = command(bytemuck::cast_slice(&words)) else {
                panic!("a put of {length} bytes")
            };
            assert_eq!(put.content(), &most[..length]);
            assert_eq!((put.id, put.kind), ([7; 12], 1));
            assert_eq!(put.bytes(), write.as_bytes());
        }
        assert!(RecordWrite::new(PutRecord::default(), &[0; 1025]).is_none());
    }

    #[test]
    fn lengths_that_contradict_each_other_are_refused() {
        let name = "PutRecord";
        let sound = write(b"touchline");
        let judge = |spoil: &dyn Fn(&mut RecordWrite)| {
            let mut bad = sound;
            spoil(&mut bad);
            let words = aligned(bytemuck::bytes_of(&bad));
            command(bytemuck::cast_slice(&words)).map(|_| ()).expect_err("it was spoilt")
        };
        let most = RECORD_BYTES_MAX;
        for length in [1025, u32::MAX] {
            let found = judge(&|bad| bad.put.length = length);
            assert_eq!(found, DecodeError::Bytes { name, found: length, most });
        }
        let too_few = judge(&|bad| bad.put.length = 8);
        assert_eq!(too_few, DecodeError::BlockLength { name, found: 128, expected: 120 });
        let too_many = judge(&|bad| bad.put.length = 17);
        assert_eq!(too_many, DecodeError::BlockLength { name, found: 128, expected: 136 });
        let cut = judge(&|bad| bad.put.header.block_length = 104);
        assert_eq!(cut, DecodeError::BlockLength { name, found: 104, expected: 112 });
        assert_eq!(judge(&|bad| bad.bytes[9] = 1), DecodeError::Field { name });
        assert_eq!(judge(&|bad| bad.put.reserved = 1), DecodeError::Field { name });
        let beyond = judge(&|bad| bad.put.header.block_length = 2000);
        assert_eq!(beyond, DecodeError::TooShort { have: 1144, need: 2008 });
    }
}
