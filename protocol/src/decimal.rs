//! Exact decimals: text ⇄ 10⁻⁸ units, without a float anywhere. Called by whoever reads or prints
//! money: the adapter, the configuration, the command line, the benches.

use thiserror::Error;

/// Fraction digits that a unit holds.
pub const FRACTION_DIGITS: usize = 8;

/// Longest run of digits that is read on either side of the point (facts §2.3 DECIMAL).
const DIGITS_MAX: usize = 20;

/// Why a text is not a decimal that the venue can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DecimalError {
    /// Not of the form digits[.digits] with 1 to 20 digits on each side.
    #[error("not a plain decimal: 1 to 20 digits, optionally a point and 1 to 20 digits")]
    Malformed,
    /// More than eight significant fraction digits.
    #[error("more than 8 fraction digits")]
    TooPrecise,
    /// Beyond 92233720368.54775807.
    #[error("larger than 92233720368.54775807")]
    TooLarge,
}

/// Reads a plain unsigned decimal as 10⁻⁸ units. Zeros beyond the eighth fraction digit are
/// accepted, since they carry no value.
///
/// # Errors
/// Everything that is not exactly representable is refused; nothing is rounded.
pub fn parse(text: &[u8]) -> Result<i64, DecimalError> {
    let point = text.iter().position(|&byte| byte == b'.');
    let (whole, fraction) = match point {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let well_formed =
        |run: &[u8]| (1..=DIGITS_MAX).contains(&run.len()) && run.iter().all(u8::is_ascii_digit);
    if !well_formed(whole) || !fraction.is_none_or(well_formed) {
        return Err(DecimalError::Malformed);
    }
    let fraction = fraction.unwrap_or_default();
    if fraction.iter().skip(FRACTION_DIGITS).any(|&digit| digit != b'0') {
        return Err(DecimalError::TooPrecise);
    }
    let fraction_digits =
        fraction.iter().copied().chain(core::iter::repeat(b'0')).take(FRACTION_DIGITS);
    let digits = whole.iter().copied().chain(fraction_digits).map(|digit| digit - b'0');
    // The usual case, below 10¹⁸, inside i64.
    if whole.len() + FRACTION_DIGITS <= 18 {
        return Ok(digits.fold(0, |units, digit| units * 10 + i64::from(digit)));
    }
    // At most 28 digits are read: below 10²⁸, far inside u128.
    let units = digits.fold(0_u128, |units, digit| units * 10 + u128::from(digit));
    i64::try_from(units).map_err(|_| DecimalError::TooLarge)
}

/// The numbers from 00 to 99 as they are written; what is behind them is never looked at, and lets whoever
/// masks a number leave the check of bounds out.
const PAIRS: [[u8; 2]; 128] = {
    let mut pairs = [[b'0'; 2]; 128];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// The two digits of a number below 100.
#[inline]
const fn pair(number: u32) -> [u8; 2] {
    PAIRS[number as usize & 127]
}

/// The text of a count of 10⁻⁸ units: always exactly eight fraction digits, no exponent.
#[derive(Clone, Copy)]
pub struct DecimalText {
    // "-92233720368.54775808" is the longest: 21 bytes. They end at the array's end.
    bytes: [u8; 24],
    start: u8,
}

impl DecimalText {
    /// Where the point stands.
    const POINT: usize = 24 - 1 - FRACTION_DIGITS;

    /// Formats `units` of 10⁻⁸.
    #[must_use]
    #[inline]
    pub fn new(units: i64) -> Self {
        const WHOLE: u64 = 10_u64.pow(FRACTION_DIGITS as u32);
        let size = units.unsigned_abs();
        let (whole, fraction) = (size / WHOLE, (size % WHOLE) as u32);
        // No quotient waits for another one.
        let [[a, b], [c, d], [e, f], [g, h]] =
            [fraction / 1_000_000, fraction / 10_000 % 100, fraction / 100 % 100, fraction % 100]
                .map(pair);
        let mut bytes = [b'0'; 24];
        bytes[Self::POINT..].copy_from_slice(&[b'.', a, b, c, d, e, f, g, h]);
        let mut start = Self::put_whole(&mut bytes, whole);
        if units < 0 {
            start -= 1;
            bytes[start] = b'-';
        }
        Self { bytes, start: start as u8 }
    }

    /// Puts the digits in front of the point, at least one; gives where they begin.
    #[inline]
    fn put_whole(bytes: &mut [u8; 24], mut whole: u64) -> usize {
        let mut start = Self::POINT;
        while whole >= 100 {
            start -= 2;
            bytes[start..start + 2].copy_from_slice(&pair((whole % 100) as u32));
            whole /= 100;
        }
        let [tens, ones] = pair(whole as u32);
        bytes[start - 1] = ones;
        if whole < 10 {
            return start - 1;
        }
        bytes[start - 2] = tens;
        start - 2
    }

    /// The text.
    #[must_use]
    #[inline]
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[usize::from(self.start)..]).unwrap_or_default()
    }

    /// The text as somebody writes it: without zeros at the end, or a point.
    #[must_use]
    pub fn trimmed(&self) -> &str {
        self.as_str().trim_end_matches('0').trim_end_matches('.')
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn trimmed_it_says_the_same_in_fewer_digits() {
        for (units, text) in [
            (0, "0"),
            (1, "0.00000001"),
            (10_000_000, "0.1"),
            (-10_000_000, "-0.1"),
            (100_000_000, "1"),
            (100_000_000_000, "1000"),
            (100_100_000_000, "1001"),
            (i64::MAX, "92233720368.54775807"),
        ] {
            assert_eq!(DecimalText::new(units).trimmed(), text);
        }
    }

    #[test]
    fn reads_what_is_exact_and_refuses_the_rest() {
        for (text, expected) in [
            ("0", Ok(0)),
            ("1", Ok(100_000_000)),
            ("0.00000001", Ok(1)),
            ("00012.5", Ok(1_250_000_000)),
            ("1.10000000000000000000", Ok(110_000_000)),
            ("92233720368.54775807", Ok(i64::MAX)),
            ("92233720368.54775808", Err(DecimalError::TooLarge)),
            ("99999999999999999999", Err(DecimalError::TooLarge)),
            ("1.123456789", Err(DecimalError::TooPrecise)),
            ("", Err(DecimalError::Malformed)),
            (".5", Err(DecimalError::Malformed)),
            ("5.", Err(DecimalError::Malformed)),
            ("1e5", Err(DecimalError::Malformed)),
            ("-1", Err(DecimalError::Malformed)),
            ("+1", Err(DecimalError::Malformed)),
            (" 1", Err(DecimalError::Malformed)),
            ("1,0", Err(DecimalError::Malformed)),
            ("1.2.3", Err(DecimalError::Malformed)),
            ("100000000000000000000", Err(DecimalError::Malformed)),
            ("1.000000000000000000000", Err(DecimalError::Malformed)),
        ] {
            assert_eq!(parse(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn prints_eight_fraction_digits() {
        for (units, text) in [
            (0, "0.00000000"),
            (1, "0.00000001"),
            (100_000_000, "1.00000000"),
            (1_000_000_000, "10.00000000"),
            (10_000_000_000, "100.00000000"),
            (-1, "-0.00000001"),
            (123_456_789_012, "1234.56789012"),
            (i64::MAX, "92233720368.54775807"),
            (i64::MIN, "-92233720368.54775808"),
        ] {
            assert_eq!(DecimalText::new(units).as_str(), text);
        }
    }

    proptest! {
        #[test]
        fn the_text_is_what_integers_say(units in any::<i64>(), bits in 0..64_u32) {
            let units = units >> bits;
            let (whole, fraction) =
                (units.unsigned_abs() / 100_000_000, units.unsigned_abs() % 100_000_000);
            let sign = if units < 0 { "-" } else { "" };
            let expected = format!("{sign}{whole}.{fraction:08}");
            let text = DecimalText::new(units);
            prop_assert_eq!(text.as_str(), expected);
        }

        #[test]
        fn text_and_units_round_trip(units in 0..=i64::MAX) {
            prop_assert_eq!(parse(DecimalText::new(units).as_str().as_bytes()), Ok(units));
        }

        #[test]
        fn any_bytes_are_read_or_refused(text in proptest::collection::vec(any::<u8>(), 0..50)) {
            if let Ok(units) = parse(&text) {
                prop_assert!(units >= 0);
            }
        }
    }
}
