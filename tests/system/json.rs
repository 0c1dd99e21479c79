//! JSON values that keep the order of their keys and the kind of their numbers, because the contract
//! fixes both. Called by every test that reads a reply.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// A JSON value as it stood in the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Integer(i128),
    /// A number with a fraction or an exponent: the contract sends none.
    Fraction(String),
    Text(String),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
}

impl Json {
    /// Parses a whole text.
    pub(crate) fn parse(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_else(|error| panic!("not JSON ({error}): {text:?}"))
    }

    /// The keys of an object, in the order of the text.
    pub(crate) fn keys(&self) -> Vec<&str> {
        self.entries().iter().map(|(key, _)| key.as_str()).collect()
    }

    /// The value at `key` of an object.
    pub(crate) fn at(&self, key: &str) -> &Self {
        self.find(key).unwrap_or_else(|| panic!("no {key:?} in {self:?}"))
    }

    /// The value at `key` of an object, if there is one.
    pub(crate) fn find(&self, key: &str) -> Option<&Self> {
        self.entries().iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The string at `key`.
    pub(crate) fn text_at(&self, key: &str) -> &str {
        self.at(key).text()
    }

    /// The integer at `key`.
    pub(crate) fn integer_at(&self, key: &str) -> i128 {
        self.at(key).integer()
    }

    /// A string.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            other => panic!("not a string: {other:?}"),
        }
    }

    /// An integer.
    pub(crate) fn integer(&self) -> i128 {
        match self {
            Self::Integer(number) => *number,
            other => panic!("not an integer: {other:?}"),
        }
    }

    /// The values of an array.
    pub(crate) fn items(&self) -> &[Self] {
        match self {
            Self::List(items) => items,
            other => panic!("not an array: {other:?}"),
        }
    }

    fn entries(&self) -> &[(String, Self)] {
        match self {
            Self::Object(entries) => entries,
            other => panic!("not an object: {other:?}"),
        }
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Integer(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Integer(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Fraction(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let mut object = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            object.push(entry);
        }
        Ok(Json::Object(object))
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}
