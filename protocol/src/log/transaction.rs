//! One transaction as a reader sees it: the command and the events it caused. Given out by the log
//! reader and by recovery; made only of a frame whose checksum was right.

use super::{
    align_frame,
    frame::{FRAME_HEADER_BYTES, FrameHeader},
};
use crate::{
    message::{
        MessageHeader,
        decode::{self, Command, DecodeError, Event},
    },
    units::{Incarnation, Position},
};

/// Names one transaction, so that it can be looked for again: another log, or the same one with
/// another history, does not have it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Bookmark {
    /// Where its frame begins.
    pub position: Position,
    /// The engine that wrote it.
    pub incarnation: Incarnation,
    /// Checksum of its frame.
    pub crc: u32,
}

impl Bookmark {
    /// Of who has nothing: it names no transaction, and needs the log from `position` on.
    #[must_use]
    pub const fn nothing_before(position: Position) -> Self {
        Self { position, incarnation: Incarnation(0), crc: 0 }
    }
}

/// A transaction.
#[derive(Clone, Copy, Debug)]
pub struct Transaction<'bytes> {
    header: FrameHeader,
    frame: &'bytes [u8],
}

impl<'bytes> Transaction<'bytes> {
    /// Views a frame of kind transaction whose header was checked and whose bytes are all in `frame`,
    /// which begins at a multiple of eight.
    ///
    /// # Panics
    /// If `frame` is shorter than the header says.
    #[must_use]
    pub fn of(header: FrameHeader, frame: &'bytes [u8]) -> Self {
        Self { header, frame: &frame[..header.length as usize] }
    }

    /// Where its frame begins.
    #[must_use]
    pub fn position(&self) -> Position {
        Position(self.header.position)
    }

    /// The position behind it: the one at which it took effect, and that its replies carry.
    #[must_use]
    pub fn end(&self) -> Position {
        Position(align_frame(self.header.position + u64::from(self.header.length)))
    }

    /// The incarnation of the engine that wrote it.
    #[must_use]
    pub fn incarnation(&self) -> Incarnation {
        Incarnation(self.header.incarnation)
    }

    /// When it was decided, ns since the epoch.
    #[must_use]
    pub fn time_ns(&self) -> u64 {
        self.header.time_ns
    }

    /// What it can be found again by.
    #[must_use]
    pub fn bookmark(&self) -> Bookmark {
        Bookmark {
            position: self.position(),
            incarnation: self.incarnation(),
            crc: self.header.crc,
        }
    }

    /// The command's bytes.
    #[must_use]
    pub fn command_bytes(&self) -> &'bytes [u8] {
        &self.frame[FRAME_HEADER_BYTES..self.events_offset()]
    }

    /// The bytes of all events, one behind the other.
    #[must_use]
    pub fn event_bytes(&self) -> &'bytes [u8] {
        &self.frame[self.events_offset()..]
    }

    /// Number of events.
    #[must_use]
    pub fn event_count(&self) -> u16 {
        self.header.events
    }

    /// The command.
    ///
    /// # Errors
    /// See [`DecodeError`]: a log of a newer build may hold messages that this one does not know.
    pub fn command(&self) -> Result<Command<'bytes>, DecodeError> {
        decode::command(self.command_bytes())
    }

    /// The events in their order. After an error there are no more.
    #[must_use]
    pub fn events(&self) -> Events<'bytes> {
        Events { rest: self.event_bytes(), left: self.header.events }
    }

    fn events_offset(&self) -> usize {
        FRAME_HEADER_BYTES + self.header.command_length as usize
    }
}

/// The events of a transaction.
#[derive(Clone, Debug)]
pub struct Events<'bytes> {
    rest: &'bytes [u8],
    left: u16,
}

impl<'bytes> Events<'bytes> {
    fn decode_next(&mut self) -> Result<Event<'bytes>, DecodeError> {
        let header = decode::header(self.rest)?;
        let (bytes, rest) =
            self.rest.split_at(MessageHeader::BYTES + usize::from(header.block_length));
        let event = decode::event(bytes)?;
        self.rest = rest;
        Ok(event)
    }
}

impl<'bytes> Iterator for Events<'bytes> {
    type Item = Result<Event<'bytes>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let event = self.decode_next();
        if event.is_err() {
            self.left = 0;
        }
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        log::frame::FrameKind,
        message::{command::CancelOrder, event::OrderCanceled},
        units::OrderId,
    };

    fn frame(events: u16) -> (FrameHeader, Vec<u64>) {
        let command = CancelOrder { order_id: OrderId(3), ..Default::default() };
        let event = OrderCanceled { order_id: OrderId(3), ..Default::default() };
        let body = [bytemuck::bytes_of(&command), bytemuck::bytes_of(&event)].concat();
        let mut words = vec![0; (FRAME_HEADER_BYTES + body.len()) / 8];
        bytemuck::cast_slice_mut(&mut words)[FRAME_HEADER_BYTES..].copy_from_slice(&body);
        let header = FrameHeader {
            length: words.len() as u32 * 8,
            kind: FrameKind::Transaction as u8,
            events,
            position: 4096,
            command_length: size_of::<CancelOrder>() as u32,
            ..FrameHeader::default()
        };
        (header, words)
    }

    #[test]
    fn command_and_events_come_out_as_they_went_in() {
        let (header, words) = frame(1);
        let transaction = Transaction::of(header, bytemuck::cast_slice(&words));
        assert!(matches!(
            transaction.command(),
            Ok(Command::CancelOrder(CancelOrder { order_id: OrderId(3), .. }))
        ));
        let events: Vec<_> = transaction.events().collect();
        assert!(matches!(events[..], [Ok(Event::OrderCanceled(_))]));
        // 48 + 64 + 136 bytes, up to the next multiple of 64.
        assert_eq!(transaction.end(), Position(4096 + 256));
    }

    #[test]
    fn a_count_beyond_the_bytes_is_one_error() {
        let (header, words) = frame(u16::MAX);
        let transaction = Transaction::of(header, bytemuck::cast_slice(&words));
        let events: Vec<_> = transaction.events().collect();
        assert!(matches!(events[..], [Ok(_), Err(DecodeError::TooShort { have: 0, .. })]));
    }
}
