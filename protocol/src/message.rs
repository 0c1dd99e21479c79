//! The binary messages: fixed blocks laid out as SBE 1.0 (FIX Simple Binary Encoding), little-endian,
//! behind an 8-byte header. The same bytes travel through rings and sockets and lie in the log.
//!
//! [`command`] is what goes to the engine, [`event`] what comes back and what the log keeps,
//! [`handshake`] what opens a session, [`stream`] what a session over a socket says besides, [`feed`]
//! what everybody may know, [`decode`] the one way from hostile bytes to a message, [`with_bytes`] the
//! messages whose length is their sender's choice, [`short_order`] an order in two cache lines, [`fields`] what tools
//! show of one.

pub mod command;
pub mod decode;
pub mod enums;
pub mod event;
pub mod feed;
pub mod fields;
pub mod handshake;
#[cfg(feature = "transport")]
pub mod short_order;
pub mod stream;
pub mod with_bytes;

use bytemuck::{Pod, Zeroable};

#[cfg(not(target_endian = "little"))]
compile_error!("messages are laid out in memory as on the wire: little-endian machines only");

/// SBE schema id of all messages ("TL").
pub const SCHEMA_ID: u16 = 0x4c54;
/// SBE schema version: raised when a message gains fields.
pub const SCHEMA_VERSION: u16 = 1;
/// From this [`PROTOCOL_MINOR`] on a reader of the public feed takes a [`stream::Heartbeat`] that says how far the
/// feed is: one before it refuses what was reserved.
pub const FEED_POSITION_MINOR: u16 = 5;
/// From this [`PROTOCOL_MINOR`] on a terse session takes an [`event::OrderFilled`]: one before it does not know it.
pub const ORDER_FILLED_MINOR: u16 = 6;
/// Protocol version of the handshake: a peer with another major is refused.
pub const PROTOCOL_MAJOR: u16 = 1;
/// Raised by additions that an older peer may ignore.
pub const PROTOCOL_MINOR: u16 = 7;

/// The SBE message header, in front of every message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct MessageHeader {
    /// Bytes behind this header; a multiple of eight.
    pub block_length: u16,
    /// Which message it is: [`Message::TEMPLATE`].
    pub template_id: u16,
    /// [`SCHEMA_ID`].
    pub schema_id: u16,
    /// [`SCHEMA_VERSION`] of the writer.
    pub version: u16,
}

impl MessageHeader {
    /// Bytes of the header itself.
    pub const BYTES: usize = size_of::<Self>();

    /// The header of a message of type `M`.
    #[must_use]
    pub const fn of<M: Message>() -> Self {
        Self {
            block_length: (size_of::<M>() - Self::BYTES) as u16,
            template_id: M::TEMPLATE,
            schema_id: SCHEMA_ID,
            version: SCHEMA_VERSION,
        }
    }
}

/// A message that starts with a [`MessageHeader`].
pub trait Message: Pod + fields::Fields {
    /// The template id: unique over all messages, never reused.
    const TEMPLATE: u16;
    /// The name, for tools and errors.
    const NAME: &'static str;

    /// False when a reserved byte is not zero or a text is malformed. Values are the core's to judge.
    fn is_well_formed(&self) -> bool;
}

/// True for what has no bit set. (As a whole: byte by byte it is many steps.)
#[inline(always)]
pub(crate) fn is_zero<T: Pod>(value: &T) -> bool {
    const ZEROS: [u8; 32] = [0; 32];
    const { assert!(size_of::<T>() <= ZEROS.len()) };
    *bytemuck::bytes_of(value) == ZEROS[..size_of::<T>()]
}

/// Declares a message: the struct, its template id, and asserts of its size and of each offset, so
/// that no edit can move a field on the wire unnoticed.
macro_rules! message {
    (
        $(#[$doc:meta])*
        $name:ident, template $template:literal, $bytes:literal bytes {
            $( $(#[$field_doc:meta])* $offset:literal $field:ident : $type:ty ),* $(,)?
        }
        reserved { $($reserved:ident),* } texts { $($text:ident),* }
        $(default { $($default:ident: $value:expr),* })?
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
        #[repr(C)]
        pub struct $name {
            $( $(#[$field_doc])* pub $field: $type, )*
        }

        const _: () = {
            assert!(size_of::<$name>() == $bytes, concat!("wire size of ", stringify!($name)));
            assert!($bytes % 8 == 0 && align_of::<$name>() <= 8);
            $( assert!(
                core::mem::offset_of!($name, $field) == $offset,
                concat!("wire offset of ", stringify!($name), ".", stringify!($field))
            ); )*
        };

        impl $crate::message::Message for $name {
            const TEMPLATE: u16 = $template;
            const NAME: &'static str = stringify!($name);

            fn is_well_formed(&self) -> bool {
                $( $crate::message::is_zero(&self.$reserved) && )*
                $( self.$text.is_valid() && )*
                true
            }
        }

        impl $crate::message::fields::Fields for $name {
            fn fields<'message>(
                &'message self,
                visit: &mut dyn FnMut(&'static str, $crate::message::fields::Value<'message>),
            ) {
                const HIDDEN: &[&str] = &["header" $(, stringify!($reserved))*];
                $( if !HIDDEN.contains(&stringify!($field)) {
                    let value = $crate::message::fields::Field::value(&self.$field);
                    visit(stringify!($field), value);
                } )*
            }
        }

        impl Default for $name {
            /// All fields zero but the header and, in `CancelOrderList`, `MassCancel` and `KillAccount`, the field of
            /// which a zero would name list 0, symbol 0, or the contrary of a kill.
            fn default() -> Self {
                let mut made: Self = bytemuck::Zeroable::zeroed();
                made.header = $crate::message::MessageHeader::of::<Self>();
                $($( made.$default = $value; )*)?
                made
            }
        }
    };
}
pub(crate) use message;
