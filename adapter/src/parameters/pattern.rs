//! The patterns of the parameter kinds, matched by hand, and their texts as quoted to clients.
//! Used by [`Parameters`](super::Parameters) and by whoever checks the same kinds elsewhere.

/// A pattern as quoted to clients, and what tells whether a text matches it.
pub type Form = (&'static str, fn(&str) -> bool);

/// A symbol name.
pub const SYMBOL: &str = "^[A-Z0-9-_.]{1,20}$";
/// A JSON array of symbol names without blanks.
pub const SYMBOLS: &str = r#"^\[("[A-Z0-9-_.]{1,20}"(,"[A-Z0-9-_.]{1,20}"){0,}){0,1}\]$"#;
/// A DECIMAL: no sign, no exponent, no leading dot.
pub const DECIMAL: &str = r"^([0-9]{1,20})(\.[0-9]{1,20})?$";
/// A LONG.
pub const LONG: &str = "^[0-9]{1,20}$";
/// A client order id or client list id.
pub const CLIENT_ID: &str = r"^[\.A-Z\:/a-z0-9_-]{1,36}$";
/// The same without escapes that stand for nothing, which a strict reader of expressions refuses.
pub const CLIENT_ID_STRICT: &str = "^[.A-Z:/a-z0-9_-]{1,36}$";

fn is_run(text: &str, longest: usize, member: fn(u8) -> bool) -> bool {
    (1..=longest).contains(&text.len()) && text.bytes().all(member)
}

fn is_digits(text: &[u8]) -> bool {
    (1..=20).contains(&text.len()) && text.iter().all(u8::is_ascii_digit)
}

/// Whether the text matches [`SYMBOL`].
pub fn is_symbol(text: &str) -> bool {
    is_run(text, 20, |byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.'))
}

/// Whether the text matches [`SYMBOLS`].
pub fn is_symbols(text: &str) -> bool {
    let Some(inside) = inside_brackets(text) else {
        return false;
    };
    inside.is_empty() || inside.split(',').all(|item| unquoted(item).is_some())
}

/// The symbol names within a text that matches [`SYMBOLS`].
pub fn symbols_in(text: &str) -> impl Iterator<Item = &str> {
    inside_brackets(text).unwrap_or_default().split(',').filter_map(unquoted)
}

fn inside_brackets(text: &str) -> Option<&str> {
    text.strip_prefix('[')?.strip_suffix(']')
}

fn unquoted(item: &str) -> Option<&str> {
    item.strip_prefix('"')?.strip_suffix('"').filter(|symbol| is_symbol(symbol))
}

/// Whether the text matches [`DECIMAL`].
pub fn is_decimal(text: &str) -> bool {
    let text = text.as_bytes();
    match text.iter().position(|byte| *byte == b'.') {
        Some(point) => is_digits(&text[..point]) && is_digits(&text[point + 1..]),
        None => is_digits(text),
    }
}

/// Whether the text matches [`LONG`].
pub fn is_long(text: &str) -> bool {
    is_digits(text.as_bytes())
}

/// Whether the text matches [`CLIENT_ID`].
pub fn is_client_id(text: &str) -> bool {
    is_run(text, 36, |byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b':' | b'/' | b'_' | b'-')
    })
}
