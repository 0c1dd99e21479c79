//! One input of the fuzz target `messages`: bytes to every decoder of messages, those of the handshake
//! included. Called by that target and by the test beside this folder.

use touchline_protocol::message::decode::{
    self, Command, Event, FeedMessage, FeedTalk, Handshake, Stream,
};
use touchline_protocol::message::event::Envelope;
use touchline_protocol::message::fields::{Fields, Value};
use touchline_protocol::message::{MessageHeader, SCHEMA_ID, SCHEMA_VERSION};

/// Shows every field, as the tools do.
fn show(fields: &dyn Fields) {
    fields.fields(&mut |name, value| {
        assert!(!name.is_empty());
        if let Value::Group(fields) = value {
            show(fields);
        }
    });
}

/// Aligned words that hold the bytes and more, and the bytes in them.
fn aligned(bytes: &[u8]) -> Vec<u64> {
    let mut words = vec![0; bytes.len().div_ceil(8)];
    bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
    words
}

/// Every template.
pub(crate) fn templates() -> Vec<(u16, &'static str)> {
    [
        Command::TEMPLATES,
        Event::TEMPLATES,
        Handshake::TEMPLATES,
        Stream::TEMPLATES,
        FeedMessage::TEMPLATES,
        FeedTalk::TEMPLATES,
    ]
    .concat()
}

/// The first byte picks a template, whose header the rest is given unless it picks none.
fn with_header(picked: u8, rest: &[u8]) -> Vec<u8> {
    let templates = templates();
    let Some(&(template_id, _)) = templates.get(usize::from(picked)) else { return rest.to_vec() };
    let block_length = u16::try_from(rest.len()).unwrap_or(u16::MAX);
    let header =
        MessageHeader { block_length, template_id, schema_id: SCHEMA_ID, version: SCHEMA_VERSION };
    [bytemuck::bytes_of(&header), rest].concat()
}

/// What an input was taken for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Taken {
    Command,
    Event,
    Handshake,
    Stream,
    Feed,
    Nothing,
}

/// Decodes an input in every way. What decodes gives back the bytes that it was made of, and an event
/// comes out of an envelope as it went in.
pub(crate) fn read(input: &[u8]) -> Taken {
    let Some((&picked, rest)) = input.split_first() else { return Taken::Nothing };
    let bytes = with_header(picked, rest);
    let words = aligned(&bytes);
    let bytes = &bytemuck::cast_slice::<u64, u8>(&words)[..bytes.len()];
    if let Ok((envelope, buffer)) = decode::disclose(bytes) {
        let event = buffer.event();
        if let Ok(event) = event {
            check_enclosed(&envelope, event.bytes());
        }
    }
    if let Ok(message) = decode::command(bytes) {
        assert!(bytes.starts_with(message.bytes()));
        assert!(decode::event(bytes).is_err() && decode::handshake(bytes).is_err());
        show(message.fields());
        return Taken::Command;
    }
    if let Ok(message) = decode::event(bytes) {
        assert!(bytes.starts_with(message.bytes()));
        assert!(decode::handshake(bytes).is_err());
        show(message.fields());
        check_enclosed(&Envelope::default(), message.bytes());
        return Taken::Event;
    }
    if let Ok(message) = decode::handshake(bytes) {
        assert!(bytes.starts_with(message.bytes()));
        show(message.fields());
        return Taken::Handshake;
    }
    if let Ok(message) = decode::stream(bytes) {
        assert!(bytes.starts_with(message.bytes()));
        show(message.fields());
        return Taken::Stream;
    }
    if let Ok(message) = decode::feed(bytes) {
        assert!(bytes.starts_with(message.bytes()) && decode::feed_talk(bytes).is_err());
        show(message.fields());
        return Taken::Feed;
    }
    if let Ok(message) = decode::feed_talk(bytes) {
        assert!(bytes.starts_with(message.bytes()));
        show(message.fields());
        return Taken::Feed;
    }
    Taken::Nothing
}

fn check_enclosed(envelope: &Envelope, event: &[u8]) {
    let mut ring = [0; decode::ENVELOPED_BYTES_MAX];
    let length = decode::enclose(envelope, event, &mut ring).expect("an event fits");
    let (back, buffer) = decode::disclose(&ring[..length]).expect("as it was enclosed");
    assert_eq!(back, *envelope);
    assert_eq!(buffer.event().expect("an event").bytes(), event);
}
