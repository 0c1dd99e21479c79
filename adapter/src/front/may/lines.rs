//! Header lines as may_minihttp takes them: texts that live as long as the process. Called by
//! [`super::connection`].
//!
//! A line is made once and never given back, so there is a bound on how many there are: of each field
//! name the values 0 to 262,143 and 64 texts, of 64 names. A line beyond that is left out of the answer. Of a
//! name whose numbers all come up that is some 20 MB, and few names have numbers at all.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use hyper::header::{HeaderName, HeaderValue};

/// Field names that lines are made of.
const NAMES_MAX: usize = 64;

/// Greatest number that does not count as a text: a day has 160,000 orders unless more are allowed, and the
/// longest ban 259,200 seconds.
const NUMBER_MAX: u32 = (1 << 18) - 1;

/// Values of a name that are no small number.
const TEXTS_MAX: usize = 64;

/// Longest text, bytes.
const TEXT_BYTES_MAX: usize = 1024;

/// Every line that this process has sent.
static LINES: LazyLock<Mutex<Lines>> = LazyLock::new(Mutex::default);

/// What becomes of a header field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Line {
    /// It is sent as `name: value`.
    Sent(&'static str),
    /// There are too many different ones.
    LeftOut,
    /// It has bytes that no field may have.
    Malformed,
}

/// The line of a header field.
pub(super) fn line(name: &str, value: &str) -> Line {
    LINES.lock().unwrap_or_else(PoisonError::into_inner).line(name, value)
}

#[derive(Default)]
struct Lines {
    names: HashMap<String, Values>,
}

/// Lines of one name.
#[derive(Default)]
struct Values {
    /// By the number that is the value.
    numbers: Vec<Option<&'static str>>,
    texts: HashMap<String, &'static str>,
}

impl Lines {
    fn line(&mut self, name: &str, value: &str) -> Line {
        if let Some(values) = self.names.get_mut(name) {
            return values.line(name, value);
        }
        if HeaderName::from_bytes(name.as_bytes()).is_err() {
            return Line::Malformed;
        }
        if self.names.len() >= NAMES_MAX {
            return Line::LeftOut;
        }
        self.names.entry(name.to_owned()).or_default().line(name, value)
    }
}

impl Values {
    fn line(&mut self, name: &str, value: &str) -> Line {
        if let Some(number) = small_number(value) {
            let number = number as usize;
            if self.numbers.len() <= number {
                self.numbers.resize(number + 1, None);
            }
            return Line::Sent(self.numbers[number].get_or_insert_with(|| make(name, value)));
        }
        if let Some(line) = self.texts.get(value) {
            return Line::Sent(line);
        }
        if HeaderValue::from_str(value).is_err() {
            return Line::Malformed;
        }
        if self.texts.len() >= TEXTS_MAX || value.len() > TEXT_BYTES_MAX {
            return Line::LeftOut;
        }
        Line::Sent(self.texts.entry(value.to_owned()).or_insert_with(|| make(name, value)))
    }
}

/// Boxed first: room behind the text would be lost with it.
fn make(name: &str, value: &str) -> &'static str {
    Box::leak(format!("{name}: {value}").into_boxed_str())
}

/// A number of 0 to [`NUMBER_MAX`] as it is written in no other way.
fn small_number(value: &str) -> Option<u32> {
    let is_digits = value.bytes().all(|byte| byte.is_ascii_digit());
    let is_plain = is_digits && (value == "0" || !value.starts_with('0'));
    let number = if is_plain { value.parse().ok() } else { None };
    number.filter(|number| *number <= NUMBER_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_made_once() {
        let mut lines = Lines::default();
        for value in ["0", "7", "65535", "text", "007", "+7", ""] {
            let Line::Sent(first) = lines.line("X-A", value) else { panic!("{value}") };
            assert_eq!(first, format!("X-A: {value}"));
            let Line::Sent(second) = lines.line("X-A", value) else { panic!("{value}") };
            assert!(std::ptr::eq(first, second), "{value}");
        }
        assert_eq!(lines.line("X-B", "7"), Line::Sent("X-B: 7"));
    }

    /// An order count of a whole day, and how long a ban goes on.
    #[test]
    fn the_numbers_that_the_services_count_with_are_all_sent() {
        let mut lines = Lines::default();
        for number in (65_530..=160_000).chain([259_200, NUMBER_MAX]) {
            let Line::Sent(line) = lines.line("X-A", &number.to_string()) else {
                panic!("{number}")
            };
            assert_eq!(line, format!("X-A: {number}"));
        }
    }

    #[test]
    fn what_never_repeats_takes_no_memory() {
        let mut lines = Lines::default();
        for number in 0..1000 {
            let expected = number < TEXTS_MAX;
            let found = lines.line("X-Unique", &format!("id-{number}"));
            assert_eq!(matches!(found, Line::Sent(_)), expected, "{number}: {found:?}");
            let large = lines.line("X-Large", &(NUMBER_MAX as usize + 1 + number).to_string());
            assert_eq!(matches!(large, Line::Sent(_)), expected, "{number}: {large:?}");
        }
        assert_eq!(lines.line("X-Large", "5"), Line::Sent("X-Large: 5"));
        assert_eq!(lines.line("X-Unique", "id-0"), Line::Sent("X-Unique: id-0"));
        assert_eq!(lines.line("X-Long", &"x".repeat(TEXT_BYTES_MAX + 1)), Line::LeftOut);
        let names =
            (0..200).filter(|n| lines.line(&format!("X-{n}"), "1") != Line::LeftOut).count();
        assert_eq!(names, NAMES_MAX - 3);
    }

    #[test]
    fn what_would_forge_a_line_is_malformed() {
        let mut lines = Lines::default();
        for (name, value) in [("X-A", "a\r\nX: 1"), ("X-A", "\0"), ("X A", "1"), ("", "1")] {
            assert_eq!(lines.line(name, value), Line::Malformed, "{name:?}: {value:?}");
        }
    }
}
