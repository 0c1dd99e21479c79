//! Writes replies as JSON, the same bytes as `serde_json` writes, in about half of its time: most of the time of a page
//! of 1,000 orders is its JSON's. Names of fields are written as they are, and a text in which nothing is to be escaped
//! is copied in one piece. Used by the services for every reply that may be long.

use serde::Serialize;
use serde::ser::{
    Error as _, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use serde_json::{Error, Result};

/// Appends values to bytes. It fails where a map's key is no text, no number and no bool, or a value's own
/// serialization does; what was appended by then stays.
#[derive(Debug)]
pub struct JsonWriter<'a>(&'a mut Vec<u8>);

impl<'a> JsonWriter<'a> {
    /// Behind what `bytes` hold.
    #[must_use]
    pub const fn new(bytes: &'a mut Vec<u8>) -> Self {
        Self(bytes)
    }

    fn put(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    /// What is written by the library: rare, and with rules of its own.
    fn put_rare(&mut self, value: &(impl Serialize + ?Sized)) -> Result<()> {
        serde_json::to_writer(&mut *self.0, value)
    }

    /// Begins `{"variant":` and what stands in there.
    fn begin_variant(&mut self, variant: &'static str, begin: &str) -> Result<()> {
        self.put("{");
        self.serialize_str(variant)?;
        self.put(":");
        self.put(begin);
        Ok(())
    }
}

/// True of a text that stands in JSON as it is (RFC 8259 §7). It is looked at by words of eight bytes, the last of
/// which may begin within the one before: nearly all texts have some dozen.
#[inline]
fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (words, rest) = bytes.as_chunks::<8>();
    let Some(last) = bytes.last_chunk::<8>() else {
        return rest.iter().fold(true, |plain, &byte| plain & !needs_escape(byte));
    };
    words.iter().chain([last]).fold(0, |found, word| found | escapes(*word)) == 0
}

const fn needs_escape(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

/// 0 if none of these bytes needs an escape. A byte that is 0 or below a bound borrows from its highest bit; one that
/// had it set before is none.
#[inline]
const fn escapes(word: [u8; 8]) -> u64 {
    const EACH: u64 = u64::from_le_bytes([1; 8]);
    const HIGHEST: u64 = EACH << 7;
    let word = u64::from_le_bytes(word);
    let quotes = word ^ (EACH * b'"' as u64);
    let backslashes = word ^ (EACH * b'\\' as u64);
    let below = word.wrapping_sub(EACH * b' ' as u64) & !word;
    let is_quote = quotes.wrapping_sub(EACH) & !quotes;
    let is_backslash = backslashes.wrapping_sub(EACH) & !backslashes;
    (below | is_quote | is_backslash) & HIGHEST
}

macro_rules! integers {
    ($($method:ident: $integer:ty),* $(,)?) => {
        $(
            #[inline]
            fn $method(self, value: $integer) -> Result<()> {
                self.put(itoa::Buffer::new().format(value));
                Ok(())
            }
        )*
    };
}

impl<'a, 'b> Serializer for &'a mut JsonWriter<'b> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Entries<'a, 'b>;
    type SerializeTuple = Entries<'a, 'b>;
    type SerializeTupleStruct = Entries<'a, 'b>;
    type SerializeTupleVariant = Entries<'a, 'b>;
    type SerializeMap = Entries<'a, 'b>;
    type SerializeStruct = Entries<'a, 'b>;
    type SerializeStructVariant = Entries<'a, 'b>;

    integers! {
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_i128: i128,
        serialize_u8: u8,
        serialize_u16: u16,
        serialize_u32: u32,
        serialize_u64: u64,
        serialize_u128: u128,
    }

    fn serialize_bool(self, value: bool) -> Result<()> {
        self.put(if value { "true" } else { "false" });
        Ok(())
    }

    fn serialize_f32(self, value: f32) -> Result<()> {
        self.put_rare(&value)
    }

    fn serialize_f64(self, value: f64) -> Result<()> {
        self.put_rare(&value)
    }

    fn serialize_char(self, value: char) -> Result<()> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    #[inline]
    fn serialize_str(self, value: &str) -> Result<()> {
        if !is_plain(value) {
            return self.put_rare(value);
        }
        self.0.reserve(value.len() + 2);
        self.put("\"");
        self.put(value);
        self.put("\"");
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<()> {
        self.collect_seq(value)
    }

    fn serialize_none(self) -> Result<()> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<()> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<()> {
        self.put("null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<()> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<()> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<()> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<()> {
        self.begin_variant(variant, "")?;
        value.serialize(&mut *self)?;
        self.put("}");
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Entries<'a, 'b>> {
        self.put("[");
        Ok(Entries::new(self, "]"))
    }

    fn serialize_tuple(self, length: usize) -> Result<Entries<'a, 'b>> {
        self.serialize_seq(Some(length))
    }

    fn serialize_tuple_struct(self, _: &'static str, length: usize) -> Result<Entries<'a, 'b>> {
        self.serialize_seq(Some(length))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Entries<'a, 'b>> {
        self.begin_variant(variant, "[")?;
        Ok(Entries::new(self, "]}"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Entries<'a, 'b>> {
        self.put("{");
        Ok(Entries::new(self, "}"))
    }

    fn serialize_struct(self, _: &'static str, length: usize) -> Result<Entries<'a, 'b>> {
        self.serialize_map(Some(length))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Entries<'a, 'b>> {
        self.begin_variant(variant, "{")?;
        Ok(Entries::new(self, "}}"))
    }
}

/// What stands between two brackets.
#[derive(Debug)]
pub struct Entries<'a, 'b> {
    writer: &'a mut JsonWriter<'b>,
    /// In front of the next one.
    comma: &'static str,
    end: &'static str,
}

impl<'a, 'b> Entries<'a, 'b> {
    const fn new(writer: &'a mut JsonWriter<'b>, end: &'static str) -> Self {
        Self { writer, comma: "", end }
    }

    #[inline]
    fn put_comma(&mut self) {
        self.writer.put(std::mem::replace(&mut self.comma, ","));
    }

    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.put_comma();
        value.serialize(&mut *self.writer)
    }

    /// The name of a field is an identifier, or what stands in a `rename`: none of this crate's needs an escape.
    #[inline]
    fn field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<()> {
        debug_assert!(is_plain(name), "{name:?}");
        self.writer.0.reserve(name.len() + 4);
        self.put_comma();
        self.writer.put("\"");
        self.writer.put(name);
        self.writer.put("\":");
        value.serialize(&mut *self.writer)
    }

    fn finish(self) -> Result<()> {
        self.writer.put(self.end);
        Ok(())
    }
}

macro_rules! lists {
    ($($kind:ident::$element:ident),* $(,)?) => {
        $(
            impl $kind for Entries<'_, '_> {
                type Ok = ();
                type Error = Error;

                fn $element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
                    self.element(value)
                }

                fn end(self) -> Result<()> {
                    self.finish()
                }
            }
        )*
    };
}

lists! {
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field,
}

macro_rules! structures {
    ($($kind:ident),*) => {
        $(
            impl $kind for Entries<'_, '_> {
                type Ok = ();
                type Error = Error;

                #[inline]
                fn serialize_field<T: Serialize + ?Sized>(
                    &mut self,
                    name: &'static str,
                    value: &T,
                ) -> Result<()> {
                    self.field(name, value)
                }

                fn end(self) -> Result<()> {
                    self.finish()
                }
            }
        )*
    };
}

structures! { SerializeStruct, SerializeStructVariant }

impl SerializeMap for Entries<'_, '_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        self.put_comma();
        let begin = self.writer.0.len();
        key.serialize(&mut *self.writer)?;
        match self.writer.0.get(begin) {
            Some(b'"') => {}
            // A name is a text, also that of a number or a bool.
            Some(b'0'..=b'9' | b'-' | b't' | b'f') => {
                self.writer.0.insert(begin, b'"');
                self.writer.put("\"");
            }
            _ => return Err(Error::custom("a key is no text")),
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.writer.put(":");
        value.serialize(&mut *self.writer)
    }

    fn end(self) -> Result<()> {
        self.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Values of all kinds that there are.
    #[derive(Debug, Clone, Serialize)]
    enum Any {
        Nothing,
        Unit(()),
        Marker(Marker),
        Flag(bool),
        Narrow(i8, u8, i16, u16, i32, u32),
        Signed(i64),
        Unsigned(u64),
        Wide(i128, u128),
        Real(f64),
        Short(f32),
        Letter(char),
        Text(String),
        Perhaps(Option<Box<Self>>),
        Wrapped(Wrapped),
        Tuple((u8, String)),
        Structure(Pair),
        List(Vec<Self>),
        Named(BTreeMap<String, Self>),
        Numbered(BTreeMap<i32, bool>),
        Flagged(BTreeMap<bool, Self>),
        Record {
            first: Box<Self>,
            #[serde(rename = "the second")]
            second: u8,
        },
    }

    #[derive(Debug, Clone, Serialize)]
    struct Marker;

    #[derive(Debug, Clone, Serialize)]
    struct Wrapped(String);

    #[derive(Debug, Clone, Serialize)]
    struct Pair(u8, Vec<u8>);

    fn anything() -> impl Strategy<Value = Any> {
        let text = || {
            prop_oneof![
                "[ -~]{0,20}",
                any::<String>(),
                Just("\u{1f}\u{20}\u{7f}\u{80}\"\\/\n".to_owned())
            ]
        };
        let leaf = prop_oneof![
            Just(Any::Nothing),
            Just(Any::Unit(())),
            Just(Any::Marker(Marker)),
            any::<bool>().prop_map(Any::Flag),
            any::<(i8, u8, i16, u16, i32, u32)>()
                .prop_map(|(a, b, c, d, e, f)| Any::Narrow(a, b, c, d, e, f)),
            any::<i64>().prop_map(Any::Signed),
            any::<u64>().prop_map(Any::Unsigned),
            any::<(i128, u128)>().prop_map(|(a, b)| Any::Wide(a, b)),
            proptest::num::f64::ANY.prop_map(Any::Real),
            proptest::num::f32::ANY.prop_map(Any::Short),
            any::<char>().prop_map(Any::Letter),
            text().prop_map(Any::Text),
            text().prop_map(|text| Any::Wrapped(Wrapped(text))),
            (0..9_u8, text()).prop_map(Any::Tuple),
            (0..9_u8, proptest::collection::vec(0..9_u8, 0..4))
                .prop_map(|(number, list)| Any::Structure(Pair(number, list))),
            proptest::collection::btree_map(-9..99, any::<bool>(), 0..4).prop_map(Any::Numbered),
        ];
        leaf.prop_recursive(4, 32, 4, move |inner| {
            let some = proptest::option::of(inner.clone().prop_map(Box::new));
            prop_oneof![
                some.prop_map(Any::Perhaps),
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Any::List),
                proptest::collection::btree_map(text(), inner.clone(), 0..4).prop_map(Any::Named),
                proptest::collection::btree_map(any::<bool>(), inner.clone(), 0..3)
                    .prop_map(Any::Flagged),
                (inner, 0..9_u8)
                    .prop_map(|(first, second)| Any::Record { first: Box::new(first), second }),
            ]
        })
    }

    #[test]
    fn each_byte_at_each_place_is_looked_at() {
        for (length, place) in (1..=25).flat_map(|length| (0..length).map(move |at| (length, at))) {
            for byte in 0..=127_u8 {
                for around in ['a', '\u{7f}', ' ', '#', '!', '[', ']'] {
                    let mut text: Vec<_> = std::iter::repeat_n(around, length).collect();
                    text[place] = char::from(byte);
                    let text: String = text.into_iter().collect();
                    assert_eq!(is_plain(&text), !needs_escape(byte), "{text:?}");
                }
            }
        }
        assert!(is_plain(""));
        assert!((0..=255).filter(|byte| needs_escape(*byte)).eq((0..32).chain([34, 92])));
    }

    fn written(value: &(impl Serialize + ?Sized)) -> Result<Vec<u8>> {
        let mut bytes = b"in front".to_vec();
        value.serialize(&mut JsonWriter::new(&mut bytes))?;
        Ok(bytes.split_off(8))
    }

    proptest! {
        #[test]
        fn it_writes_what_the_library_writes(value in anything()) {
            prop_assert_eq!(written(&value).unwrap(), serde_json::to_vec(&value).unwrap());
        }
    }

    #[test]
    fn a_key_that_is_no_text_is_refused() {
        let (list, none) = (BTreeMap::from([([1_u8], 2)]), BTreeMap::from([(None::<u8>, 2)]));
        assert!(serde_json::to_vec(&list).is_err() && written(&list).is_err());
        assert!(serde_json::to_vec(&none).is_err() && written(&none).is_err());
    }
}
