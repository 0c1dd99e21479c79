//! The one way from bytes to a message. Called by the engine on every ring and socket message, by
//! recovery and readers on every log frame, by the client on every reply.
//!
//! The bytes are hostile: header, size, reserved bytes and texts are checked here; values (does the
//! symbol exist, is the price above zero) are the core's to judge.

use super::event::Envelope;
use super::fields::Fields;
use super::stream as session;
use super::with_bytes::WithBytes;
use super::{Message, MessageHeader, SCHEMA_ID, SCHEMA_VERSION, command, event, feed, handshake};
use crate::words;
use thiserror::Error;

/// Why bytes are not a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// Fewer bytes than a header, or than the header says.
    #[error("message cut short: {have} bytes, {need} needed")]
    TooShort {
        /// Bytes that are there.
        have: usize,
        /// Bytes that are needed.
        need: usize,
    },
    /// The buffer does not start at a multiple of eight.
    #[error("message buffer is not aligned to 8 bytes")]
    Misaligned,
    /// Another schema.
    #[error("schema {found}, expected {SCHEMA_ID}")]
    Schema {
        /// Schema id in the header.
        found: u16,
    },
    /// A version that this build does not read.
    #[error("schema version {found}, this build reads 1 to {SCHEMA_VERSION}")]
    Version {
        /// Version in the header.
        found: u16,
    },
    /// A template that names no message of the expected kind.
    #[error("unknown template {template}")]
    Template {
        /// Template id in the header.
        template: u16,
    },
    /// The block length is not the template's.
    #[error("{name}: block length {found}, expected {expected}")]
    BlockLength {
        /// Name of the message.
        name: &'static str,
        /// In the header.
        found: u16,
        /// Of the template.
        expected: u16,
    },
    /// More bytes follow a message than may.
    #[error("{name}: {found} bytes behind its fields, at most {most} may be there")]
    Bytes {
        /// Name of the message.
        name: &'static str,
        /// As the message says.
        found: u32,
        /// Most that may follow.
        most: u32,
    },
    /// A reserved byte is set, or a text has a bad length or a byte that is not printable ASCII.
    #[error("{name}: a reserved byte is set or a text is malformed")]
    Field {
        /// Name of the message.
        name: &'static str,
    },
}

/// Reads and checks the header of a message, and that all its bytes are there.
///
/// # Errors
/// See [`DecodeError`].
#[inline(always)]
pub fn header(bytes: &[u8]) -> Result<MessageHeader, DecodeError> {
    sound_header(bytes).ok_or_else(|| fault_of_header(bytes))
}

/// As [`header`], without a reason: handed on together with one, a header is taken apart and put together
/// again in memory, and whoever reads it waits for that.
#[inline(always)]
fn sound_header(bytes: &[u8]) -> Option<MessageHeader> {
    let head = bytes.first_chunk::<{ MessageHeader::BYTES }>()?;
    let header: MessageHeader = bytemuck::pod_read_unaligned(head);
    let is_known =
        header.schema_id == SCHEMA_ID && header.version != 0 && header.version <= SCHEMA_VERSION;
    let need = MessageHeader::BYTES + usize::from(header.block_length);
    (is_known && bytes.len() >= need).then_some(header)
}

/// Why [`sound_header`] found no header.
#[cold]
fn fault_of_header(bytes: &[u8]) -> DecodeError {
    let too_short = |need| DecodeError::TooShort { have: bytes.len(), need };
    let Some(head) = bytes.get(..MessageHeader::BYTES) else {
        return too_short(MessageHeader::BYTES);
    };
    let header: MessageHeader = bytemuck::pod_read_unaligned(head);
    if header.schema_id != SCHEMA_ID {
        return DecodeError::Schema { found: header.schema_id };
    }
    if header.version == 0 || header.version > SCHEMA_VERSION {
        return DecodeError::Version { found: header.version };
    }
    too_short(MessageHeader::BYTES + usize::from(header.block_length))
}

/// Views `bytes` as the message `M` if they begin with the header that this build writes, and it is sound.
#[inline(always)]
fn at_sight<M: Message>(bytes: &[u8]) -> Option<&M> {
    let (head, _) = bytes.split_first_chunk::<{ MessageHeader::BYTES }>()?;
    if *head != bytemuck::cast::<_, [u8; MessageHeader::BYTES]>(MessageHeader::of::<M>()) {
        return None;
    }
    let message: &M = bytemuck::try_from_bytes(bytes.get(..size_of::<M>())?).ok()?;
    message.is_well_formed().then_some(message)
}

/// Views `bytes` as the message `M`, all checks made.
///
/// # Errors
/// See [`DecodeError`].
pub fn as_message<M: Message>(bytes: &[u8]) -> Result<&M, DecodeError> {
    let header = header(bytes)?;
    if header.template_id != M::TEMPLATE {
        return Err(DecodeError::Template { template: header.template_id });
    }
    as_announced(header, bytes)
}

/// As [`as_message`], of bytes whose header is read and names the template.
#[inline(always)]
fn as_announced<M: Message>(header: MessageHeader, bytes: &[u8]) -> Result<&M, DecodeError> {
    let expected = MessageHeader::of::<M>().block_length;
    if header.block_length != expected {
        return Err(DecodeError::BlockLength {
            name: M::NAME,
            found: header.block_length,
            expected,
        });
    }
    let message: &M =
        bytemuck::try_from_bytes(&bytes[..size_of::<M>()]).map_err(|_| DecodeError::Misaligned)?;
    if message.is_well_formed() { Ok(message) } else { Err(DecodeError::Field { name: M::NAME }) }
}

/// Declares a borrowed sum of messages with its decoder.
macro_rules! sum {
    (
        $(#[$doc:meta])* $sum:ident, $visible:vis $decode:ident { $($module:ident :: $name:ident),* $(,)? }
        $( with bytes { $($long_module:ident :: $long:ident),* $(,)? } )?
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $sum<'bytes> {
            $(
                #[doc = concat!("See [`", stringify!($module), "::", stringify!($name), "`].")]
                $name(&'bytes $module::$name),
            )*
            $( $(
                #[doc = concat!("See [`", stringify!($long_module), "::", stringify!($long), "`].")]
                $long(WithBytes<'bytes, $long_module::$long>),
            )* )?
        }

        impl $sum<'_> {
            /// Template id and name of every message of this kind.
            pub const TEMPLATES: &'static [(u16, &'static str)] =
                &[
                    $(($module::$name::TEMPLATE, $module::$name::NAME),)*
                    $( $(($long_module::$long::TEMPLATE, $long_module::$long::NAME),)* )?
                ];

            /// The message's name.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self {
                    $( Self::$name(_) => $module::$name::NAME, )*
                    $( $( Self::$long(_) => $long_module::$long::NAME, )* )?
                }
            }

            /// The message's fields.
            #[must_use]
            pub fn fields(&self) -> &dyn Fields {
                match self {
                    $( Self::$name(message) => *message, )*
                    $( $( Self::$long(message) => message, )* )?
                }
            }

            /// The message's bytes.
            #[must_use]
            pub fn bytes(&self) -> &[u8] {
                match self {
                    $( Self::$name(message) => bytemuck::bytes_of(*message), )*
                    $( $( Self::$long(message) => message.bytes(), )* )?
                }
            }
        }

        /// Decodes any message of the kind; the bytes behind it are not looked at.
        ///
        /// # Errors
        /// See [`DecodeError`].
        #[inline(never)]
        $visible fn $decode(bytes: &[u8]) -> Result<$sum<'_>, DecodeError> {
            let Some(header) = sound_header(bytes) else { return Err(fault_of_header(bytes)) };
            match header.template_id {
                $( $module::$name::TEMPLATE => as_announced(header, bytes).map($sum::$name), )*
                $( $( $long_module::$long::TEMPLATE =>
                    WithBytes::decode(bytes).map($sum::$long), )* )?
                template => Err(DecodeError::Template { template }),
            }
        }
    };
}

sum! {
    /// Any command.
    Command, any_command {
        command::NewOrder, command::CancelOrder, command::CancelOrderNamed, command::ReduceOrder,
        command::ReplaceOrder, command::CancelReplace, command::PlaceOrderList,
        command::CancelOrderList, command::CancelAll, command::MassCancel, command::KillAccount,
        command::SetRules, command::SetLimits, command::DefineAsset, command::DefineSymbol,
        command::SetSymbolStatus, command::CreateAccount, command::Deposit, command::Withdraw,
        command::CreateKey, command::RevokeKey, command::ExpireAll, command::SetAccount,
        command::SetFees, command::ChangeSymbol, command::SetVenueFilters,
        command::SetRecordLimits, command::DeleteRecord,
        command::EngineStarted, command::Logon, command::ConnectionEnded, command::RunPending,
    }
    with bytes { command::PutRecord }
}

/// Decodes any command; the bytes behind it are not looked at. The two that nearly all are are known at sight.
///
/// # Errors
/// See [`DecodeError`].
pub fn command(bytes: &[u8]) -> Result<Command<'_>, DecodeError> {
    if let Some(message) = at_sight(bytes) {
        return Ok(Command::NewOrder(message));
    }
    if let Some(message) = at_sight(bytes) {
        return Ok(Command::CancelOrder(message));
    }
    any_command(bytes)
}

impl Command<'_> {
    /// The command header: who sent it and when it ends to be of use.
    #[must_use]
    pub fn header(&self) -> &command::CommandHeader {
        match self {
            Self::NewOrder(message) => &message.command,
            Self::CancelOrder(message) => &message.command,
            Self::CancelOrderNamed(message) => &message.command,
            Self::ReduceOrder(message) => &message.command,
            Self::ReplaceOrder(message) => &message.command,
            Self::CancelReplace(message) => &message.command,
            Self::PlaceOrderList(message) => &message.command,
            Self::CancelOrderList(message) => &message.command,
            Self::CancelAll(message) => &message.command,
            Self::MassCancel(message) => &message.command,
            Self::KillAccount(message) => &message.command,
            Self::SetRules(message) => &message.command,
            Self::SetLimits(message) => &message.command,
            Self::DefineAsset(message) => &message.command,
            Self::DefineSymbol(message) => &message.command,
            Self::SetSymbolStatus(message) => &message.command,
            Self::CreateAccount(message) => &message.command,
            Self::Deposit(message) => &message.command,
            Self::Withdraw(message) => &message.command,
            Self::CreateKey(message) => &message.command,
            Self::RevokeKey(message) => &message.command,
            Self::ExpireAll(message) => &message.command,
            Self::SetAccount(message) => &message.command,
            Self::SetFees(message) => &message.command,
            Self::ChangeSymbol(message) => &message.command,
            Self::SetVenueFilters(message) => &message.command,
            Self::SetRecordLimits(message) => &message.command,
            Self::PutRecord(message) => &message.command,
            Self::DeleteRecord(message) => &message.command,
            Self::EngineStarted(message) => &message.command,
            Self::Logon(message) => &message.command,
            Self::ConnectionEnded(message) => &message.command,
            Self::RunPending(message) => &message.command,
        }
    }
}

sum! {
    /// Any event, as it stands in the log or, of what is never there, behind an envelope.
    Event, pub event {
        event::OrderAccepted, event::Trade, event::OrderResult, event::OrderCanceled,
        event::OrderReduced, event::OrderContinues, event::OrderValid, event::OrderTriggered,
        event::OrderListChanged, event::OrderRefilled, event::Done, event::SessionStarted,
        event::SessionEnded, event::MassCanceled, event::SelfTradePrevented, event::OrderReplaced,
        event::RecordPut, event::RecordDeleted,
        event::Rejected, event::Gap, event::OrderOpened, event::OrderClosed,
        event::OrderFilled,
    }
}

sum! {
    /// Any message of the handshake.
    Handshake, pub handshake {
        handshake::Hello, handshake::Challenge, handshake::Proof, handshake::Welcome,
        handshake::Refused,
    }
}

sum! {
    /// Any message of a stream session that is no command and no event.
    Stream, pub stream {
        session::Logout, session::Heartbeat, session::SessionClosed, session::ReplayRequest,
        session::ReplayEnd, session::StateRequest, session::BalanceState, session::OrderState,
        session::StateEnd,
    }
}

sum! {
    /// Any message of the public feed.
    FeedMessage, pub feed {
        feed::FeedOrderAdded, feed::FeedOrderReduced, feed::FeedOrderDeleted,
        feed::FeedOrderReplaced, feed::FeedTrade, feed::FeedSymbolChanged,
    }
}

sum! {
    /// Any message of a feed connection's own conversation.
    FeedTalk, pub feed_talk {
        feed::FeedOpened, feed::FeedRequest, feed::FeedSnapshot, feed::FeedGap,
    }
}

/// Largest event body with its header, bytes.
pub const EVENT_BYTES_MAX: usize = 136;

/// Largest event with its envelope on a ring, bytes.
pub const ENVELOPED_BYTES_MAX: usize = EVENT_BYTES_MAX + size_of::<Envelope>();

const _: () = assert!(size_of::<event::OrderCanceled>() == EVENT_BYTES_MAX);

/// Words in front of an event's body on a ring: header and envelope.
pub const ENVELOPE_WORDS: usize = (MessageHeader::BYTES + size_of::<Envelope>()) / 8;

/// What stands in front of `event` (header and body as in the log) on a ring, as the words that it is in memory,
/// and its body; `None` for what is shorter than a header, or longer than any event.
#[inline]
#[must_use]
pub fn envelope_words<'event>(
    envelope: &Envelope,
    event: &'event [u8],
) -> Option<([u64; ENVELOPE_WORDS], &'event [u8])> {
    let (header, body) = event.split_first_chunk::<{ MessageHeader::BYTES }>()?;
    let mut header: MessageHeader = bytemuck::cast(*header);
    header.block_length = header.block_length.checked_add(size_of::<Envelope>() as u16)?;
    let mut words = [0; ENVELOPE_WORDS];
    words[0] = bytemuck::cast(header);
    words[1..].copy_from_slice(&bytemuck::cast::<Envelope, [u64; ENVELOPE_WORDS - 1]>(*envelope));
    (event.len() <= EVENT_BYTES_MAX).then_some((words, body))
}

/// Puts `event` (header and body as in the log) behind `envelope` into `into`; gives the bytes used.
#[must_use]
pub fn enclose(
    envelope: &Envelope,
    event: &[u8],
    into: &mut [u8; ENVELOPED_BYTES_MAX],
) -> Option<usize> {
    let (front, body) = envelope_words(envelope, event)?;
    let front: &[u8] = bytemuck::cast_slice(&front);
    let length = front.len() + body.len();
    let (head, behind) = into[..length].split_at_mut(front.len());
    head.copy_from_slice(front);
    behind.copy_from_slice(body);
    Some(length)
}

/// An event's bytes, aligned, after they were taken out of their envelope.
#[derive(Clone, Copy, Debug)]
pub struct EventBuffer {
    words: [u64; EVENT_BYTES_MAX / 8],
}

impl Default for EventBuffer {
    /// Of no event: decoding it is an error.
    fn default() -> Self {
        Self { words: [0; EVENT_BYTES_MAX / 8] }
    }
}

/// Takes a ring message apart: the envelope, and the event's bytes as in the log.
///
/// # Errors
/// See [`DecodeError`]. The event itself is decoded by [`event`](fn@event) on the buffer's bytes.
pub fn disclose(bytes: &[u8]) -> Result<(Envelope, EventBuffer), DecodeError> {
    let (mut envelope, mut event) = Default::default();
    disclose_into(bytes, &mut envelope, &mut event)?;
    Ok((envelope, event))
}

/// As [`disclose`], into places that are there already: what was taken apart is not moved any more.
///
/// # Errors
/// As [`disclose`]; then the places are as they were.
#[inline]
pub fn disclose_into(
    bytes: &[u8],
    envelope: &mut Envelope,
    event: &mut EventBuffer,
) -> Result<(), DecodeError> {
    let mut header = header(bytes)?;
    let total = MessageHeader::BYTES + usize::from(header.block_length);
    let least = MessageHeader::BYTES + size_of::<Envelope>();
    if total < least {
        return Err(DecodeError::TooShort { have: total, need: least });
    }
    if total > ENVELOPED_BYTES_MAX {
        return Err(DecodeError::Template { template: header.template_id });
    }
    header.block_length -= size_of::<Envelope>() as u16;
    let (first, body) = event.words.split_at_mut(1);
    first[0] = bytemuck::cast(header);
    let (front, _) = bytes[MessageHeader::BYTES..least].as_chunks();
    words::copy(front, bytemuck::cast_mut::<Envelope, [u64; ENVELOPE_WORDS - 1]>(envelope));
    let (whole, part) = bytes[least..total].as_chunks();
    words::copy(whole, body);
    // No message of ours ends within a word.
    if !part.is_empty() {
        bytemuck::bytes_of_mut(&mut body[whole.len()])[..part.len()].copy_from_slice(part);
    }
    Ok(())
}

impl EventBuffer {
    /// Decodes the event.
    ///
    /// # Errors
    /// See [`DecodeError`].
    pub fn event(&self) -> Result<Event<'_>, DecodeError> {
        event(bytemuck::bytes_of(&self.words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{OrderId, Position, Sequence, SessionId, SymbolId};
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn aligned(bytes: &[u8]) -> Vec<u64> {
        let mut words = vec![0u64; bytes.len().div_ceil(8)];
        bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
        words
    }

    #[test]
    fn template_ids_are_unique() {
        let all = [
            Command::TEMPLATES,
            Event::TEMPLATES,
            Handshake::TEMPLATES,
            Stream::TEMPLATES,
            FeedMessage::TEMPLATES,
            FeedTalk::TEMPLATES,
        ]
        .concat();
        let distinct: HashSet<u16> = all.iter().map(|(template, _)| *template).collect();
        assert_eq!(distinct.len(), all.len());
    }

    #[test]
    fn every_kind_of_damage_is_named() {
        let mut cancel = command::CancelOrder {
            symbol: SymbolId(1),
            order_id: OrderId(7),
            ..Default::default()
        };
        assert!(matches!(command(bytemuck::bytes_of(&cancel)), Ok(Command::CancelOrder(_))));
        assert_eq!(
            command(&bytemuck::bytes_of(&cancel)[..40]),
            Err(DecodeError::TooShort { have: 40, need: 64 })
        );
        assert_eq!(command(&[0; 7]), Err(DecodeError::TooShort { have: 7, need: 8 }));
        cancel.reserved = 1;
        assert_eq!(
            command(bytemuck::bytes_of(&cancel)),
            Err(DecodeError::Field { name: "CancelOrder" })
        );
        cancel.reserved = 0;
        cancel.header.block_length = 48;
        assert!(matches!(
            command(bytemuck::bytes_of(&cancel)),
            Err(DecodeError::BlockLength { found: 48, expected: 56, .. })
        ));
        cancel.header.template_id = 999;
        assert_eq!(
            command(bytemuck::bytes_of(&cancel)),
            Err(DecodeError::Template { template: 999 })
        );
        cancel.header.version = 2;
        assert_eq!(command(bytemuck::bytes_of(&cancel)), Err(DecodeError::Version { found: 2 }));
        cancel.header.schema_id = 1;
        assert_eq!(command(bytemuck::bytes_of(&cancel)), Err(DecodeError::Schema { found: 1 }));
    }

    #[test]
    fn envelopes_come_off_as_they_went_on() {
        let event = event::OrderCanceled { order_id: OrderId(5), ..Default::default() };
        let envelope = Envelope { correlation: 9, ..Default::default() };
        let mut ring = [0; ENVELOPED_BYTES_MAX];
        let length = enclose(&envelope, bytemuck::bytes_of(&event), &mut ring).unwrap();
        let (back, buffer) = disclose(&ring[..length]).unwrap();
        assert_eq!(back, envelope);
        assert_eq!(buffer.event(), Ok(Event::OrderCanceled(&event)));
    }

    #[test]
    fn envelopes_come_off_wherever_they_lie_and_whatever_was_there() {
        let long = event::OrderCanceled { order_id: OrderId(5), ..Default::default() };
        let short = event::OrderValid { symbol: SymbolId(3), ..Default::default() };
        let envelope = Envelope {
            correlation: 9,
            sequence: Sequence(8),
            position: Position(7),
            time_ns: 6,
            session: SessionId(5),
            flags: 4,
            reserved: [3, 2, 1],
        };
        let (mut back, mut buffer) = Default::default();
        for (beside, event) in [0, 1, 4].into_iter().flat_map(|beside| {
            [(beside, bytemuck::bytes_of(&long)), (beside, bytemuck::bytes_of(&short))]
        }) {
            let mut ring = [0; ENVELOPED_BYTES_MAX];
            let length = enclose(&envelope, event, &mut ring).unwrap();
            let mut words = [0u64; ENVELOPED_BYTES_MAX / 8 + 1];
            let bytes = &mut bytemuck::cast_slice_mut(&mut words)[beside..][..length];
            bytes.copy_from_slice(&ring[..length]);
            disclose_into(bytes, &mut back, &mut buffer).unwrap();
            assert_eq!(back, envelope);
            match buffer.event().unwrap() {
                Event::OrderCanceled(found) => assert_eq!(bytemuck::bytes_of(found), event),
                Event::OrderValid(found) => assert_eq!(bytemuck::bytes_of(found), event),
                other => panic!("{other:?} came back"),
            }
        }
    }

    #[test]
    fn flags_are_set_and_nothing_else() {
        let before = Envelope {
            correlation: 1,
            sequence: Sequence(2),
            position: Position(3),
            time_ns: 4,
            session: SessionId(u32::MAX),
            flags: 0xaa,
            reserved: [5, 6, 7],
        };
        let mut envelope = before;
        envelope.set_flags(0x55);
        assert_eq!(envelope, Envelope { flags: 0x55, ..before });
    }

    #[test]
    fn what_is_no_event_gets_no_envelope() {
        let envelope = Envelope::default();
        let mut ring = [0; ENVELOPED_BYTES_MAX];
        let mut longest = [0; EVENT_BYTES_MAX + 8];
        assert_eq!(enclose(&envelope, &longest[..7], &mut ring), None);
        assert_eq!(enclose(&envelope, &longest[..8], &mut ring), Some(48));
        let whole = &longest[..EVENT_BYTES_MAX];
        assert_eq!(enclose(&envelope, whole, &mut ring), Some(ENVELOPED_BYTES_MAX));
        assert_eq!(enclose(&envelope, &longest, &mut ring), None);
        longest[..2].fill(u8::MAX);
        assert_eq!(enclose(&envelope, &longest[..8], &mut ring), None, "no length of a block");
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_are_refused(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..300),
            template in prop::sample::select(
                [Command::TEMPLATES, Event::TEMPLATES, Handshake::TEMPLATES].concat()),
        ) {
            if bytes.len() >= 8 {
                bytes[2..4].copy_from_slice(&template.0.to_le_bytes());
                bytes[4..6].copy_from_slice(&SCHEMA_ID.to_le_bytes());
                bytes[6..8].copy_from_slice(&SCHEMA_VERSION.to_le_bytes());
            }
            let words = aligned(&bytes);
            let bytes = &bytemuck::cast_slice(&words)[..bytes.len()];
            // Whatever decodes must give back the bytes that it was made of.
            if let Ok(message) = command(bytes) {
                prop_assert!(bytes.starts_with(message.bytes()));
            }
            if let Ok(message) = event(bytes) {
                prop_assert!(bytes.starts_with(message.bytes()));
            }
            if let Ok(message) = handshake(bytes) {
                prop_assert!(bytes.starts_with(message.bytes()));
            }
            let untouched = EventBuffer { words: [u64::MAX; EVENT_BYTES_MAX / 8] };
            let (mut envelope, mut dirty) = (Envelope::default(), untouched);
            let into = disclose_into(bytes, &mut envelope, &mut dirty);
            match disclose(bytes) {
                Ok((clean_envelope, clean)) => {
                    prop_assert_eq!((into, envelope), (Ok(()), clean_envelope));
                    prop_assert_eq!(dirty.event(), clean.event());
                }
                Err(error) => {
                    prop_assert_eq!((into, envelope), (Err(error), Envelope::default()));
                    prop_assert_eq!(dirty.words, untouched.words);
                }
            }
        }
    }
}
