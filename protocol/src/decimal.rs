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

/// The numbers from 00 to 99, one behind the other.
const TWO_DIGITS: [u8; 200] = {
    let mut digits = [0; 200];
    let mut number = 0;
    while number < 100 {
        digits[2 * number] = b'0' + (number / 10) as u8;
        digits[2 * number + 1] = b'0' + (number % 10) as u8;
        number += 1;
    }
    digits
};

/// The text of a count of 10⁻⁸ units: always exactly eight fraction digits, no exponent.
#[derive(Clone, Copy)]
pub struct DecimalText {
    // "-92233720368.54775808" is the longest: 21 bytes.
    bytes: [u8; 21],
    start: u8,
}

impl DecimalText {
    /// Formats `units` of 10⁻⁸.
    #[must_use]
    pub fn new(units: i64) -> Self {
        const WHOLE: u64 = 10_u64.pow(FRACTION_DIGITS as u32);
        let mut text = Self { bytes: [b'0'; 21], start: 21 };
        let (mut whole, mut fraction) =
            (units.unsigned_abs() / WHOLE, (units.unsigned_abs() % WHOLE) as u32);
        for _ in 0..FRACTION_DIGITS / 2 {
            text.put_two(fraction % 100);
            fraction /= 100;
        }
        text.put(b'.');
        while whole >= 10 {
            text.put_two((whole % 100) as u32);
            whole /= 100;
        }
        // What is left is one digit, or nothing in front of the first of two.
        if whole > 0 || text.bytes[usize::from(text.start)] == b'.' {
            text.put(b'0' + whole as u8);
        }
        if units < 0 {
            text.put(b'-');
        }
        text
    }

    fn put(&mut self, byte: u8) {
        self.start -= 1;
        self.bytes[usize::from(self.start)] = byte;
    }

    /// Puts two digits; `number` is below 100.
    fn put_two(&mut self, number: u32) {
        let from = 2 * number as usize;
        self.start -= 2;
        let place = usize::from(self.start);
        self.bytes[place..place + 2].copy_from_slice(&TWO_DIGITS[from..from + 2]);
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[usize::from(self.start)..]).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
