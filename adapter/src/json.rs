//! Writes the JSON of replies, compact, in the very bytes that serde_json would write. Called by the spot
//! service for every reply.
//!
//! A reply is mostly short texts with nothing to escape. serde_json looks at each byte of them by itself,
//! names of fields included; here eight are looked at together. What no reply has is refused: floats, and
//! keys of maps that are no text.

use std::fmt;

use serde::Serialize;
use serde::ser::{
    Error as _, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use thiserror::Error;

/// Why a value has no JSON here.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub(crate) struct JsonError(String);

impl serde::ser::Error for JsonError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

/// Appends the JSON of `value`.
///
/// # Errors
/// For what cannot be written, or what `value` itself says; a part may have been appended then.
pub(crate) fn write(bytes: &mut Vec<u8>, value: &impl Serialize) -> Result<(), JsonError> {
    value.serialize(Writer { bytes })
}

/// Writes one value.
struct Writer<'a> {
    bytes: &'a mut Vec<u8>,
}

impl Writer<'_> {
    fn raw(self, text: &str) -> Result<(), JsonError> {
        self.bytes.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn integer(self, number: impl itoa::Integer) -> Result<(), JsonError> {
        self.raw(itoa::Buffer::new().format(number))
    }
}

/// Writes the values of an array or the entries of an object, and what closes it.
struct Compound<'a> {
    bytes: &'a mut Vec<u8>,
    is_first: bool,
    end: &'static str,
}

impl<'a> Compound<'a> {
    fn begin(bytes: &'a mut Vec<u8>, begin: &str, end: &'static str) -> Self {
        bytes.extend_from_slice(begin.as_bytes());
        Self { bytes, is_first: true, end }
    }

    /// As [`Compound::begin`], as the only entry of an object.
    fn begin_variant(bytes: &'a mut Vec<u8>, name: &str, begin: &str, end: &'static str) -> Self {
        bytes.push(b'{');
        string(bytes, name);
        bytes.push(b':');
        Self::begin(bytes, begin, end)
    }

    fn comma(&mut self) {
        if !std::mem::replace(&mut self.is_first, false) {
            self.bytes.push(b',');
        }
    }

    fn value(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), JsonError> {
        self.comma();
        value.serialize(Writer { bytes: self.bytes })
    }

    fn entry(&mut self, key: &str, value: &(impl Serialize + ?Sized)) -> Result<(), JsonError> {
        self.comma();
        string(self.bytes, key);
        self.bytes.push(b':');
        value.serialize(Writer { bytes: self.bytes })
    }

    fn close(self) -> Result<(), JsonError> {
        self.bytes.extend_from_slice(self.end.as_bytes());
        Ok(())
    }
}

/// Appends a text in quotes.
fn string(bytes: &mut Vec<u8>, text: &str) {
    bytes.reserve(text.len() + 2);
    bytes.push(b'"');
    if is_plain(text.as_bytes()) {
        bytes.extend_from_slice(text.as_bytes());
    } else {
        text.bytes().for_each(|byte| escape(bytes, byte));
    }
    bytes.push(b'"');
}

const ONES: u64 = u64::MAX / 0xff;
const HIGH_BITS: u64 = ONES * 0x80;

/// True if nothing in a text has to be escaped.
fn is_plain(text: &[u8]) -> bool {
    let is_plain_word = |bytes: &[u8; 8]| {
        let word = u64::from_le_bytes(*bytes);
        let quotes = word ^ (ONES * u64::from(b'"'));
        let backslashes = word ^ (ONES * u64::from(b'\\'));
        (below(word, 0x20) | below(quotes, 1) | below(backslashes, 1)) == 0
    };
    // The last word overlaps the one before.
    match text.last_chunk::<8>() {
        Some(last) => is_plain_word(last) && text.as_chunks().0.iter().all(is_plain_word),
        None => text.iter().all(|&byte| byte >= 0x20 && byte != b'"' && byte != b'\\'),
    }
}

/// Not 0 if a byte of the word is below `limit`, which is at most 0x80. Which one it is cannot be told: the
/// difference borrows from the bytes above.
const fn below(word: u64, limit: u64) -> u64 {
    word.wrapping_sub(ONES * limit) & !word & HIGH_BITS
}

fn escape(bytes: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let letter = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        0x09 => b't',
        0x0a => b'n',
        0x0c => b'f',
        0x0d => b'r',
        0..0x20 => {
            bytes.extend_from_slice(b"\\u00");
            bytes.extend([HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 0xf)]]);
            return;
        }
        _ => return bytes.push(byte),
    };
    bytes.extend([b'\\', letter]);
}

impl<'a> Serializer for Writer<'a> {
    type Ok = ();
    type Error = JsonError;
    type SerializeSeq = Compound<'a>;
    type SerializeTuple = Compound<'a>;
    type SerializeTupleStruct = Compound<'a>;
    type SerializeTupleVariant = Compound<'a>;
    type SerializeMap = Compound<'a>;
    type SerializeStruct = Compound<'a>;
    type SerializeStructVariant = Compound<'a>;

    fn serialize_bool(self, value: bool) -> Result<(), JsonError> {
        self.raw(if value { "true" } else { "false" })
    }

    fn serialize_i8(self, value: i8) -> Result<(), JsonError> {
        self.integer(value)
    }

    fn serialize_i16(self, value: i16) -> Result<(), JsonError> {
        self.integer(value)
    }

    fn serialize_i32(self, value: i32) -> Result<(), JsonError> {
        self.integer(value)
    }

    fn serialize_i64(self, value: i64) -> Result<(), JsonError> {
        self.integer(value)
    }

    fn serialize_u8(self, value: u8) -> Result<(), JsonError> {
        self.integer(value)
    }

    fn serialize_u16(self, value: u16) -> Result<(), JsonError> {
        self.integer(value)
    }

    fn serialize_u32(self, value: u32) -> Result<(), JsonError> {
        self.integer(value)
    }

    fn serialize_u64(self, value: u64) -> Result<(), JsonError> {
        self.integer(value)
    }

    fn serialize_f32(self, _: f32) -> Result<(), JsonError> {
        Err(JsonError::custom("a float"))
    }

    fn serialize_f64(self, _: f64) -> Result<(), JsonError> {
        Err(JsonError::custom("a float"))
    }

    fn serialize_char(self, value: char) -> Result<(), JsonError> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), JsonError> {
        string(self.bytes, value);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), JsonError> {
        value.serialize(self)
    }

    fn serialize_none(self) -> Result<(), JsonError> {
        self.raw("null")
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), JsonError> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), JsonError> {
        self.raw("null")
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), JsonError> {
        self.raw("null")
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), JsonError> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), JsonError> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), JsonError> {
        let mut object = Compound::begin(self.bytes, "{", "}");
        object.entry(variant, value)?;
        object.close()
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Compound<'a>, JsonError> {
        Ok(Compound::begin(self.bytes, "[", "]"))
    }

    fn serialize_tuple(self, _: usize) -> Result<Compound<'a>, JsonError> {
        Ok(Compound::begin(self.bytes, "[", "]"))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Compound<'a>, JsonError> {
        Ok(Compound::begin(self.bytes, "[", "]"))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Compound<'a>, JsonError> {
        Ok(Compound::begin_variant(self.bytes, variant, "[", "]}"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Compound<'a>, JsonError> {
        Ok(Compound::begin(self.bytes, "{", "}"))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Compound<'a>, JsonError> {
        Ok(Compound::begin(self.bytes, "{", "}"))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Compound<'a>, JsonError> {
        Ok(Compound::begin_variant(self.bytes, variant, "{", "}}"))
    }
}

macro_rules! values {
    ($($name:ident: $method:ident),* $(,)?) => {
        $(
            impl $name for Compound<'_> {
                type Ok = ();
                type Error = JsonError;

                fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), JsonError> {
                    self.value(value)
                }

                fn end(self) -> Result<(), JsonError> {
                    self.close()
                }
            }
        )*
    };
}

values! {
    SerializeSeq: serialize_element,
    SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field,
}

macro_rules! fields {
    ($($name:ident),* $(,)?) => {
        $(
            impl $name for Compound<'_> {
                type Ok = ();
                type Error = JsonError;

                fn serialize_field<T: Serialize + ?Sized>(
                    &mut self,
                    key: &'static str,
                    value: &T,
                ) -> Result<(), JsonError> {
                    self.entry(key, value)
                }

                fn end(self) -> Result<(), JsonError> {
                    self.close()
                }
            }
        )*
    };
}

fields!(SerializeStruct, SerializeStructVariant);

impl SerializeMap for Compound<'_> {
    type Ok = ();
    type Error = JsonError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), JsonError> {
        self.comma();
        let begin = self.bytes.len();
        key.serialize(Writer { bytes: self.bytes })?;
        if self.bytes.get(begin) != Some(&b'"') {
            return Err(JsonError::custom("a key that is no text"));
        }
        self.bytes.push(b':');
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), JsonError> {
        value.serialize(Writer { bytes: self.bytes })
    }

    fn end(self) -> Result<(), JsonError> {
        self.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn written(value: &impl Serialize) -> String {
        let mut bytes = Vec::new();
        write(&mut bytes, value).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[derive(Debug, Clone, Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Leaf<'a> {
        the_text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        left_out: Option<bool>,
    }

    #[derive(Debug, Clone, Serialize)]
    struct Unit;

    #[derive(Debug, Clone, Serialize)]
    struct Wrapped(Pair);

    #[derive(Debug, Clone, Serialize)]
    struct Pair(i64, u8);

    #[derive(Debug, Clone, Serialize)]
    enum Kind<'a> {
        Plain,
        Text(&'a str),
        Pair(u64, char),
        Fields { key: Option<u32> },
    }

    #[derive(Debug, Clone, Serialize)]
    #[serde(tag = "type")]
    enum Tagged {
        First { value: i16 },
        Second,
    }

    #[derive(Debug, Clone, Serialize)]
    struct Whole<'a> {
        #[serde(flatten)]
        leaf: Leaf<'a>,
        kinds: Vec<Kind<'a>>,
        tagged: [Tagged; 2],
        map: BTreeMap<String, Option<Unit>>,
        wrapped: Wrapped,
        empty: (),
        bytes: (bool, i8, u16, i32),
    }

    fn whole(text: &str, left_out: Option<bool>, number: u64) -> Whole<'_> {
        Whole {
            leaf: Leaf { the_text: text, left_out },
            kinds: vec![
                Kind::Plain,
                Kind::Text(text),
                Kind::Pair(number, '"'),
                Kind::Fields { key: u32::try_from(number).ok() },
                Kind::Fields { key: None },
            ],
            tagged: [Tagged::First { value: -5 }, Tagged::Second],
            map: BTreeMap::from([(text.to_owned(), Some(Unit)), ("none".to_owned(), None)]),
            wrapped: Wrapped(Pair(i64::MIN, 255)),
            empty: (),
            bytes: (true, i8::MIN, u16::MAX, 0),
        }
    }

    #[test]
    fn every_character_is_written_as_serde_json_does() {
        let all: String = (0..0x300).filter_map(char::from_u32).chain(['\u{2028}', '😀']).collect();
        assert_eq!(written(&all), serde_json::to_string(&all).unwrap());
        // At every place of a word and behind it.
        for place in 0..20 {
            for character in ['"', '\\', '\n', '\u{1f}', ' ', '!', '#', '[', ']', '\u{7f}', 'é'] {
                let mut text = "abcdefghijklmnopqrst".to_owned();
                text.insert(place, character);
                assert_eq!(written(&text), serde_json::to_string(&text).unwrap());
            }
        }
    }

    #[test]
    fn what_no_reply_has_is_refused() {
        let refused = |value: &dyn Fn(&mut Vec<u8>) -> Result<(), JsonError>| {
            value(&mut Vec::new()).unwrap_err().to_string()
        };
        assert_eq!(refused(&|bytes| write(bytes, &1.5)), "a float");
        assert_eq!(refused(&|bytes| write(bytes, &[1.5_f32])), "a float");
        let map = BTreeMap::from([(1, 2)]);
        assert_eq!(refused(&|bytes| write(bytes, &map)), "a key that is no text");
    }

    proptest! {
        #[test]
        fn values_are_written_as_serde_json_does(
            text in any::<String>(),
            left_out in any::<Option<bool>>(),
            number in any::<u64>(),
        ) {
            let value = whole(&text, left_out, number);
            prop_assert_eq!(written(&value), serde_json::to_string(&value).unwrap());
            let many = vec![value; 3];
            prop_assert_eq!(written(&many), serde_json::to_string(&many).unwrap());
        }
    }
}
