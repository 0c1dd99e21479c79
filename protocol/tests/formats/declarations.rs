//! Reads the declarations of messages, their parts, constants and enumerations from the sources, whose
//! sizes and offsets the compiler checks. Called by the tests that write tables, schema and C header.

use std::collections::BTreeMap;
use std::path::Path;
use touchline_protocol::message::MessageHeader;
use touchline_protocol::message::command::{CommandHeader, Limits, SymbolFilters};
use touchline_protocol::message::event::Envelope;
use touchline_protocol::text::{AssetName, ClientOrderId, Name, SymbolName};
use touchline_protocol::units::*;

fn sizes() -> BTreeMap<&'static str, usize> {
    macro_rules! sizes {
        ($($type:ty),* $(,)?) => {
            [$((stringify!($type), size_of::<$type>())),*].into_iter().collect()
        };
    }
    sizes![
        u8,
        u16,
        u32,
        u64,
        i64,
        MessageHeader,
        CommandHeader,
        Limits,
        SymbolFilters,
        Envelope,
        AssetName,
        ClientOrderId,
        Name,
        SymbolName,
        OrderId,
        TradeId,
        AggregateTradeId,
        OrderListId,
        BookUpdateId,
        SymbolId,
        AssetId,
        AccountId,
        KeyId,
        SessionId,
        Epoch,
        Sequence,
        Position,
        Incarnation,
        FeedSequence
    ]
}

/// Length of an array of bytes.
pub(super) fn array_length(of_type: &str) -> Option<usize> {
    let length = of_type.strip_prefix("[u8; ")?.strip_suffix(']')?;
    Some(length.parse().unwrap())
}

fn size_of_type(name: &str) -> usize {
    array_length(name)
        .unwrap_or_else(|| *sizes().get(name).unwrap_or_else(|| panic!("no size of {name}")))
}

/// Texts: type, bytes reserved behind the length, most bytes.
pub(super) const TEXTS: [(&str, usize, usize); 4] =
    [("ClientOrderId", 3, 36), ("SymbolName", 3, 20), ("AssetName", 0, 15), ("Name", 0, 31)];

/// One field.
pub(super) struct Field {
    /// Bytes from the declaration's beginning.
    pub(super) offset: usize,
    pub(super) size: usize,
    pub(super) name: String,
    pub(super) of_type: String,
    pub(super) about: String,
}

/// A message, or a part of messages.
pub(super) struct Declaration {
    pub(super) name: String,
    /// The template id, of a message.
    pub(super) template: Option<u16>,
    pub(super) about: String,
    /// Bytes that the declaration says it has.
    stated: Option<usize>,
    pub(super) fields: Vec<Field>,
}

impl Declaration {
    pub(super) fn bytes(&self) -> usize {
        self.fields.last().map_or(0, |field| field.offset + field.size)
    }

    fn push(&mut self, offset: Option<usize>, name: &str, of_type: &str, about: &str) {
        let next = self.bytes();
        assert_eq!(offset.unwrap_or(next), next, "{}: {name}", self.name);
        self.fields.push(Field {
            offset: next,
            size: size_of_type(of_type),
            name: name.to_owned(),
            of_type: of_type.to_owned(),
            about: about.to_owned(),
        });
    }
}

/// A constant.
pub(super) struct Constant {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) about: String,
}

/// An enumeration.
pub(super) struct Enumeration {
    pub(super) name: String,
    /// `u8` or `u16`.
    pub(super) wire: String,
    pub(super) about: String,
    pub(super) values: Vec<Constant>,
}

/// A comment's links lead nowhere outside of the sources.
fn plain(comment: &str) -> String {
    comment
        .replace("](super::EVERY)", "]")
        .replace("[`", "`")
        .replace("`]", "`")
        .replace('|', "\\|")
}

fn between<'line>(line: &'line str, before: &str, after: &str) -> Option<&'line str> {
    let (_, rest) = line.split_once(before)?;
    rest.split_once(after).map(|(middle, _)| middle)
}

/// Lines up to the tests, each with the comment in front of it.
fn commented(source: &str) -> impl Iterator<Item = (&str, String)> {
    let mut comment = String::new();
    let lines = source.lines().map(str::trim);
    lines.take_while(|line| !line.starts_with("#[cfg(test)]")).filter_map(move |line| {
        if let Some(text) = line.strip_prefix("/// ") {
            comment.push_str(if comment.is_empty() { "" } else { " " });
            comment.push_str(&plain(text));
            return None;
        }
        (!line.starts_with("#[")).then(|| (line, std::mem::take(&mut comment)))
    })
}

/// The declarations and constants of one source file below `src/`.
pub(super) fn declarations(file: &str) -> (Vec<Declaration>, Vec<Constant>) {
    let (mut found, mut constants) = (Vec::<Declaration>::new(), Vec::new());
    let mut is_inside = false;
    for (line, about) in commented(&source(file)) {
        if let Some(rest) = line.strip_suffix(" bytes {") {
            let (name, rest) = rest.split_once(", template ").unwrap();
            let (template, bytes) = rest.split_once(", ").unwrap();
            let (name, fields) = (name.to_owned(), Vec::new());
            let template = Some(template.parse().unwrap());
            let stated = Some(bytes.parse().unwrap());
            found.push(Declaration { name, template, about, stated, fields });
            is_inside = true;
        } else if let Some(name) = between(line, "pub struct ", " {") {
            let (name, fields) = (name.to_owned(), Vec::new());
            found.push(Declaration { name, template: None, about, stated: None, fields });
            is_inside = true;
        } else if line.starts_with('}') {
            is_inside = false;
        } else if !is_inside
            && let Some(name) = between(line, "pub const ", ": ")
            && !name.starts_with("fn ")
        {
            // One that goes on on another line would be left out of what is generated.
            let value = between(line, " = ", ";").unwrap_or_else(|| panic!("{line}"));
            constants.push(Constant { name: name.to_owned(), value: value.to_owned(), about });
        } else if is_inside && let Some((left, of_type)) = line.split_once(": ") {
            let left = left.trim_start_matches("pub ");
            let (offset, name) = match left.split_once(' ') {
                Some((offset, name)) => (Some(offset.parse().unwrap()), name),
                None => (None, left),
            };
            found.last_mut().unwrap().push(offset, name, of_type.trim_end_matches(','), &about);
        }
    }
    for declaration in &found {
        let stated = declaration.stated.unwrap_or(declaration.bytes());
        assert_eq!(declaration.bytes(), stated, "{}", declaration.name);
    }
    assert!(!found.is_empty(), "{file}");
    (found, constants)
}

/// All enumerations of the wire.
pub(super) fn enumerations() -> Vec<Enumeration> {
    let source = source("message/enums.rs");
    // The macro's own definition comes first.
    let (_, source) = source.split_once("wire_enum! {\n").unwrap();
    let mut found = Vec::<Enumeration>::new();
    let mut is_inside = false;
    for (line, about) in commented(source) {
        if let Some((name, wire)) = line.strip_suffix(" {").and_then(|it| it.split_once(": ")) {
            let (name, wire, values) = (name.to_owned(), wire.to_owned(), Vec::new());
            found.push(Enumeration { name, wire, about, values });
            is_inside = true;
        } else if is_inside && let Some((name, number)) = line.split_once(" = ") {
            let (name, value) = (name.to_owned(), number.trim_end_matches(',').to_owned());
            found.last_mut().unwrap().values.push(Constant { name, value, about });
        } else if line == "}" {
            is_inside = false;
        }
    }
    found
}

/// All identifiers; the value is the number that each is.
pub(super) fn identifiers() -> Vec<Constant> {
    let source = source("units.rs");
    let mut found = Vec::new();
    let mut is_inside = false;
    for (line, about) in commented(&source) {
        if is_inside && let Some(name) = line.split('(').next().filter(|_| line.ends_with(')')) {
            let value = between(line, "(", ")").unwrap().to_owned();
            found.push(Constant { name: name.to_owned(), value, about });
        }
        is_inside = line == "identifier!(";
    }
    assert!(found.iter().all(|one| sizes().contains_key(one.name.as_str())));
    found
}

fn source(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(name)).unwrap()
}
