//! The words of a scenario's line, one after the other, and what they stand for: decimals and
//! enumerations. Called by the stage (commands) and the looks (expectations).

use std::fmt::Debug;
use touchline_protocol::decimal;

/// What is left of a line.
pub(crate) struct Words<'line> {
    rest: Vec<&'line str>,
}

impl<'line> Words<'line> {
    pub(crate) fn new(line: &'line str) -> Self {
        Self { rest: line.split_whitespace().rev().collect() }
    }

    pub(crate) fn peek(&self) -> Option<&'line str> {
        self.rest.last().copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next word; `what` names what is missing at the end of the line.
    pub(crate) fn next(&mut self, what: &str) -> Result<&'line str, String> {
        self.rest.pop().ok_or_else(|| format!("{what} missing at the end of the line"))
    }

    /// Takes the next word if it is this one.
    pub(crate) fn take(&mut self, word: &str) -> bool {
        let is_it = self.peek() == Some(word);
        if is_it {
            self.rest.pop();
        }
        is_it
    }

    pub(crate) fn must(&mut self, word: &str) -> Result<(), String> {
        let found = self.next(word)?;
        if found == word { Ok(()) } else { Err(format!("{word:?} expected, {found:?} found")) }
    }

    /// A decimal, 10⁻⁸ units; a leading minus is allowed, so that bad values can be sent.
    pub(crate) fn decimal(&mut self, what: &str) -> Result<i64, String> {
        let word = self.next(what)?;
        units(word).ok_or_else(|| format!("{what}: {word:?} is no decimal"))
    }

    pub(crate) fn whole<N: std::str::FromStr>(&mut self, what: &str) -> Result<N, String> {
        let word = self.next(what)?;
        word.parse().map_err(|_| format!("{what}: {word:?} is no number"))
    }

    /// A value of an enumeration, by its name in capitals.
    pub(crate) fn value<V: Debug + Copy>(&mut self, what: &str, all: &[V]) -> Result<V, String> {
        let word = self.next(what)?;
        let found = all.iter().find(|value| capitals(value) == word);
        found.copied().ok_or_else(|| format!("{what}: {word:?} is none of {all:?}"))
    }
}

/// Reads a decimal as 10⁻⁸ units.
pub(crate) fn units(word: &str) -> Option<i64> {
    match word.strip_prefix('-') {
        Some(rest) => decimal::parse(rest.as_bytes()).ok().map(|units| -units),
        None => decimal::parse(word.as_bytes()).ok(),
    }
}

/// A count of 10⁻⁸ units as a trader writes it: no zeros at the end.
pub(crate) fn plain(units: i64) -> String {
    decimal::DecimalText::new(units).trimmed().to_owned()
}

/// The contract's name of an enumeration's value: `PartiallyFilled` is PARTIALLY_FILLED.
pub(crate) fn capitals(value: impl Debug) -> String {
    let mut text = String::new();
    for (at, letter) in format!("{value:?}").chars().enumerate() {
        if at > 0 && letter.is_uppercase() {
            text.push('_');
        }
        text.push(letter.to_ascii_uppercase());
    }
    text
}

/// Two words say the same: as text, or as decimals (also in pairs such as 100x1).
pub(crate) fn same(one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    match (one.split_once('x'), other.split_once('x')) {
        (Some(one), Some(other)) => same(one.0, other.0) && same(one.1, other.1),
        (None, None) => units(one).is_some_and(|value| units(other) == Some(value)),
        _ => false,
    }
}
