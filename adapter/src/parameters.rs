//! Reads the parameters of a spot request from its query and body. Called by the spot handlers,
//! which take each parameter by name and kind and at the end ask for what was not taken.
//!
//! Rules (spot contract §1.5): parameters stand in the query, in a form body, or in both; the
//! order is free; the query wins. Beyond the contract:
//! - any body that is not empty is a form, whatever its Content-Type, because common clients
//!   send forms without one and JSON types with an empty body;
//! - empty pairs (`&&`, a leading `&`) are skipped, a name without `=` has an empty value;
//! - a malformed percent escape stands for itself, and so fails the pattern of its parameter;
//! - a parameter sent in both places counts once in "read 'n' ... was sent 'm'".

mod error;
pub mod pattern;

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;

pub use error::ParameterError;

/// Most parameters of a request, query and body together.
pub const MAX_PARAMETERS: usize = 64;

/// The decoded parameters of one request, and which of them have been read.
#[derive(Debug, Clone)]
pub struct Parameters<'a> {
    entries: Vec<Entry<'a>>,
    /// Bit *n* is set once entry *n* has been read.
    read: Cell<u64>,
}

const _: () = assert!(MAX_PARAMETERS <= u64::BITS as usize);

#[derive(Clone)]
struct Entry<'a> {
    name: Cow<'a, str>,
    value: Cow<'a, str>,
}

/// The name only: values may be handles and signatures.
impl fmt::Debug for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}

impl<'a> Parameters<'a> {
    /// Decodes the query (without its `?`) and the body. Values without escapes are borrowed.
    ///
    /// # Errors
    /// [`ParameterError::TooMany`] above [`MAX_PARAMETERS`], [`ParameterError::Duplicate`] when a
    /// name stands twice in the same place, [`ParameterError::Invalid`] for a name that is not
    /// UTF-8 once decoded. A value that is not breaks every pattern instead.
    pub fn parse(query: &'a [u8], body: &'a [u8]) -> Result<Self, ParameterError> {
        let at_most = |raw| memchr::memchr_iter(b'&', raw).count() + 1;
        let most = at_most(query) + at_most(body);
        if most > MAX_PARAMETERS {
            let received = pairs(query).count() + pairs(body).count();
            if received > MAX_PARAMETERS {
                return Err(ParameterError::TooMany { expected: MAX_PARAMETERS, received });
            }
        }
        let mut entries = Vec::with_capacity(most.min(MAX_PARAMETERS));
        collect(&mut entries, query)?;
        let in_query = entries.len();
        collect(&mut entries, body)?;
        let (query, body) = entries.split_at(in_query);
        let wins = |entry: &Entry<'_>| !query.iter().any(|other| other.name == entry.name);
        if !body.iter().all(wins) {
            let from_body: Vec<_> = body.iter().filter(|entry| wins(entry)).cloned().collect();
            entries.truncate(in_query);
            entries.extend(from_body);
        }
        Ok(Self { entries, read: Cell::new(0) })
    }

    /// The number of parameters sent: `timestamp`, `recvWindow` and `signature` count too.
    pub fn sent(&self) -> usize {
        self.entries.len()
    }

    /// The number of parameters read so far.
    pub fn read(&self) -> usize {
        self.read.get().count_ones() as usize
    }

    /// All parameters as (name, value): those of the query, then those of the body.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries.iter().map(|entry| (&*entry.name, &*entry.value))
    }

    /// The value of a parameter, empty or not, without counting it as read.
    pub fn peek(&self, name: &str) -> Option<&str> {
        self.iter().find_map(|(other, value)| (other == name).then_some(value))
    }

    /// The value of a parameter, empty or not. Counts it as read.
    fn take(&self, name: &str) -> Option<&str> {
        let index = self.entries.iter().position(|entry| entry.name == name)?;
        self.read.set(self.read.get() | 1 << index);
        Some(&self.entries[index].value)
    }

    /// An optional parameter of any text.
    ///
    /// # Errors
    /// -1105 when it is sent but empty; -1118 and -1119 in its place for `newClientOrderId` and
    /// `origClientOrderId`.
    pub fn text(&self, name: &'static str) -> Result<Option<&str>, ParameterError> {
        match self.take(name) {
            Some("") => Err(match name {
                "newClientOrderId" => ParameterError::EmptyNewClientOrderId,
                "origClientOrderId" => ParameterError::EmptyOriginalClientOrderId,
                _ => ParameterError::Empty { name: name.into() },
            }),
            sent => Ok(sent),
        }
    }

    /// A mandatory parameter of any text.
    ///
    /// # Errors
    /// -1102 when it is missing or empty.
    pub fn required_text(&self, name: &'static str) -> Result<&str, ParameterError> {
        self.take(name).filter(|value| !value.is_empty()).ok_or_else(|| mandatory(name))
    }

    /// An optional parameter that must match a pattern.
    fn matching(
        &self,
        name: &'static str,
        matches: fn(&str) -> bool,
        legal: &'static str,
    ) -> Result<Option<&str>, ParameterError> {
        match self.text(name)? {
            Some(value) if !matches(value) => Err(illegal(name, legal)),
            value => Ok(value),
        }
    }

    /// An optional symbol name.
    ///
    /// # Errors
    /// -1105 when empty, -1100 outside of [`pattern::SYMBOL`]. Whether the symbol exists is for
    /// the caller to see (-1121).
    pub fn symbol(&self, name: &'static str) -> Result<Option<&str>, ParameterError> {
        self.matching(name, pattern::is_symbol, pattern::SYMBOL)
    }

    /// A mandatory symbol name.
    ///
    /// # Errors
    /// -1102 when missing or empty, -1100 as [`Parameters::symbol`].
    pub fn required_symbol(&self, name: &'static str) -> Result<&str, ParameterError> {
        self.required_text(name)?;
        self.symbol(name)?.ok_or_else(|| mandatory(name))
    }

    /// An optional list of symbol names, a JSON array without blanks. `[]` gives an empty list.
    ///
    /// # Errors
    /// -1105 when empty, -1100 outside of [`pattern::SYMBOLS`], -1102 when a symbol repeats.
    pub fn symbols(&self, name: &'static str) -> Result<Option<Vec<&str>>, ParameterError> {
        let Some(text) = self.matching(name, pattern::is_symbols, pattern::SYMBOLS)? else {
            return Ok(None);
        };
        let symbols: Vec<&str> = pattern::symbols_in(text).collect();
        let mut seen = HashSet::with_capacity(symbols.len());
        if symbols.iter().all(|symbol| seen.insert(*symbol)) {
            Ok(Some(symbols))
        } else {
            Err(mandatory(name))
        }
    }

    /// An optional DECIMAL, as text of the form of [`pattern::DECIMAL`].
    ///
    /// # Errors
    /// -1105 when empty, -1100 for any other form.
    pub fn decimal(&self, name: &'static str) -> Result<Option<&str>, ParameterError> {
        self.matching(name, pattern::is_decimal, pattern::DECIMAL)
    }

    /// A mandatory DECIMAL.
    ///
    /// # Errors
    /// -1102 when missing or empty, -1100 for any other form.
    pub fn required_decimal(&self, name: &'static str) -> Result<&str, ParameterError> {
        self.required_text(name)?;
        self.decimal(name)?.ok_or_else(|| mandatory(name))
    }

    /// An optional LONG, 0..=`i64::MAX`.
    ///
    /// # Errors
    /// -1105 when empty, -1100 outside of [`pattern::LONG`], -1108 for 19 and 20 digits that do
    /// not fit an `i64`.
    pub fn long(&self, name: &'static str) -> Result<Option<i64>, ParameterError> {
        self.matching(name, pattern::is_long, pattern::LONG)?
            .map(|digits| {
                digits.parse().map_err(|_| ParameterError::Overflow { name: name.into() })
            })
            .transpose()
    }

    /// A mandatory LONG.
    ///
    /// # Errors
    /// -1102 when missing or empty, otherwise as [`Parameters::long`].
    pub fn required_long(&self, name: &'static str) -> Result<i64, ParameterError> {
        self.required_text(name)?;
        self.long(name)?.ok_or_else(|| mandatory(name))
    }

    /// A page size: `default` when missing, cut to `max` when above.
    ///
    /// # Errors
    /// -1130 for 0, otherwise as [`Parameters::long`].
    pub fn page_size(
        &self,
        name: &'static str,
        default: u32,
        max: u32,
    ) -> Result<u32, ParameterError> {
        match self.long(name)? {
            None => Ok(default),
            Some(0) => Err(ParameterError::Invalid { name: name.into() }),
            Some(size) => Ok(u32::try_from(size).unwrap_or(max).min(max)),
        }
    }

    /// An optional parameter with an enumerated list of texts, such as the depth limits.
    ///
    /// # Errors
    /// -1105 when empty, -1100 with the text `legal` for any other value.
    pub fn choice<T: Copy>(
        &self,
        name: &'static str,
        choices: &[(&str, T)],
        legal: &'static str,
    ) -> Result<Option<T>, ParameterError> {
        let Some(value) = self.text(name)? else {
            return Ok(None);
        };
        choices
            .iter()
            .find_map(|(text, choice)| (*text == value).then_some(Some(*choice)))
            .ok_or_else(|| illegal(name, legal))
    }

    /// An optional client order id or list id.
    ///
    /// # Errors
    /// As [`Parameters::text`], and -1100 outside of [`pattern::CLIENT_ID`].
    pub fn client_id(&self, name: &'static str) -> Result<Option<&str>, ParameterError> {
        self.matching(name, pattern::is_client_id, pattern::CLIENT_ID)
    }

    /// Refuses a request that gives neither of two parameters, or gives them empty. Reads none.
    ///
    /// # Errors
    /// -1102 naming both.
    pub fn require_either(
        &self,
        first: &'static str,
        second: &'static str,
    ) -> Result<(), ParameterError> {
        let given = |name| self.peek(name).is_some_and(|value| !value.is_empty());
        if given(first) || given(second) {
            Ok(())
        } else {
            Err(ParameterError::Neither { first, second })
        }
    }

    /// Refuses a parameter whose value has another form. One that is not sent, or is empty, is for whoever reads it
    /// to judge. Reads none.
    ///
    /// # Errors
    /// -1100 naming it.
    pub fn require_form(
        &self,
        name: &'static str,
        (legal, matches): pattern::Form,
    ) -> Result<(), ParameterError> {
        match self.peek(name) {
            Some(value) if !value.is_empty() && !matches(value) => Err(illegal(name, legal)),
            _ => Ok(()),
        }
    }

    /// Refuses a parameter that this kind of request does not take, empty or not.
    ///
    /// # Errors
    /// -1106 when it is sent.
    pub fn refuse(&self, name: &'static str) -> Result<(), ParameterError> {
        match self.peek(name) {
            Some(_) => Err(ParameterError::NotRequired { name: name.into() }),
            None => Ok(()),
        }
    }

    /// Refuses more parameters than the route knows.
    ///
    /// # Errors
    /// -1101 with both counts.
    pub fn at_most(&self, expected: usize) -> Result<(), ParameterError> {
        let received = self.sent();
        if received > expected {
            return Err(ParameterError::TooMany { expected, received });
        }
        Ok(())
    }

    /// Refuses parameters that nobody has read.
    ///
    /// # Errors
    /// -1104 with both counts.
    pub fn all_read(&self) -> Result<(), ParameterError> {
        let (read, sent) = (self.read(), self.sent());
        if read < sent {
            return Err(ParameterError::Unread { read, sent });
        }
        Ok(())
    }
}

fn mandatory(name: &'static str) -> ParameterError {
    ParameterError::Mandatory { name: name.into() }
}

fn illegal(name: &'static str, legal: &'static str) -> ParameterError {
    ParameterError::IllegalCharacters { name: name.into(), legal: legal.into() }
}

/// Stands for a value that is not UTF-8: it breaks the pattern of every parameter (facts §1.3 -1100).
const NOT_TEXT: &str = "\u{fffd}";

fn pairs(raw: &[u8]) -> impl Iterator<Item = &[u8]> {
    spans(raw).map(|(from, to)| &raw[from..to])
}

/// Where each pair that is not empty begins and ends.
fn spans(raw: &[u8]) -> impl Iterator<Item = (usize, usize)> {
    let mut from = 0;
    let ends = memchr::memchr_iter(b'&', raw).chain(std::iter::once(raw.len()));
    ends.map(move |to| (std::mem::replace(&mut from, to + 1), to)).filter(|(from, to)| from < to)
}

/// Appends the parameters of one place.
fn collect<'a>(entries: &mut Vec<Entry<'a>>, raw: &'a [u8]) -> Result<(), ParameterError> {
    let first = entries.len();
    let plain = plain(raw);
    for (from, to) in spans(raw) {
        let equals = memchr::memchr(b'=', &raw[from..to]).map(|at| from + at);
        let (name_end, value_from) = equals.map_or((to, to), |at| (at, at + 1));
        let (name, value) = match plain {
            Some(text) => (text[from..name_end].into(), text[value_from..to].into()),
            None => {
                let name = &raw[from..name_end];
                (
                    decode(name).ok_or_else(|| ParameterError::invalid_sent(name))?,
                    // What is no text keeps a mark in its place, which no pattern allows.
                    decode(&raw[value_from..to]).unwrap_or(Cow::Borrowed(NOT_TEXT)),
                )
            }
        };
        if entries[first..].iter().any(|entry| entry.name == name) {
            return Err(ParameterError::duplicate_sent(&name));
        }
        entries.push(Entry { name, value });
    }
    Ok(())
}

/// The whole of it as text, if it is text and nothing in it is encoded: then its parts need not be looked
/// at one by one.
fn plain(raw: &[u8]) -> Option<&str> {
    let is_encoded = memchr::memchr2(b'+', b'%', raw).is_some();
    std::str::from_utf8(raw).ok().filter(|_| !is_encoded)
}

/// Undoes form encoding: `+` is a blank, `%41` is `A`. `None` when the result is not UTF-8.
fn decode(raw: &[u8]) -> Option<Cow<'_, str>> {
    if !raw.iter().any(|byte| matches!(byte, b'+' | b'%')) {
        return std::str::from_utf8(raw).ok().map(Cow::Borrowed);
    }
    if !raw.contains(&b'+') {
        return percent_encoding::percent_decode(raw).decode_utf8().ok();
    }
    let spaced: Vec<u8> = raw.iter().map(|&byte| if byte == b'+' { b' ' } else { byte }).collect();
    let decoded = percent_encoding::percent_decode(&spaced).decode_utf8();
    decoded.ok().map(|text| Cow::Owned(text.into_owned()))
}

#[cfg(test)]
mod tests;
