//! The byte tables of `FORMATS.md` are those of the declarations: they are generated from the sources,
//! whose sizes and offsets the compiler checks, and compared with the file.
//!
//! `TOUCHLINE_WRITE_FORMATS=1` writes them anew.

#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use touchline_protocol::message::MessageHeader;
use touchline_protocol::message::command::{CommandHeader, Limits, SymbolFilters};
use touchline_protocol::message::event::Envelope;
use touchline_protocol::text::{AssetName, ClientOrderId, Name, SymbolName};
use touchline_protocol::units::*;

const BEGIN: &str = "<!-- generated: begin -->\n";
const END: &str = "<!-- generated: end -->\n";
const SNAPSHOT_BEGIN: &str = "<!-- generated from snapshot/records.rs: begin -->\n";
const SNAPSHOT_END: &str = "<!-- generated from snapshot/records.rs: end -->\n";

/// Headings and the sources that they stand for, below `src/`.
const SOURCES: [(&str, &str); 6] = [
    ("Commands about orders", "message/command/order.rs"),
    ("Commands that define the venue and move money", "message/command/definition.rs"),
    ("Commands of the engine itself", "message/command/engine.rs"),
    ("Events", "message/event.rs"),
    ("Handshake", "message/handshake.rs"),
    ("Parts of several messages", "message/command.rs"),
];

const SNAPSHOT_SOURCES: [(&str, &str); 1] = [("Sections and their records", "snapshot/records.rs")];

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
        Incarnation
    ]
}

fn size_of_type(name: &str) -> usize {
    let array = name.strip_prefix("[u8; ").and_then(|rest| rest.strip_suffix(']'));
    match array {
        Some(length) => length.parse().unwrap(),
        None => *sizes().get(name).unwrap_or_else(|| panic!("no size of {name}")),
    }
}

/// What a declaration consists of.
struct Table {
    title: String,
    about: String,
    /// Where the next field without an offset of its own lies.
    next: usize,
    /// Bytes that the declaration says it has.
    bytes: Option<usize>,
    rows: Vec<String>,
}

impl Table {
    fn new(title: String, about: &str, bytes: Option<usize>) -> Self {
        Self { title, about: about.to_owned(), next: 0, bytes, rows: Vec::new() }
    }

    fn field(&mut self, offset: Option<usize>, name: &str, of_type: &str, about: &str) {
        let offset = offset.unwrap_or(self.next);
        assert_eq!(offset, self.next, "{}: {name}", self.title);
        let size = size_of_type(of_type);
        self.next = offset + size;
        self.rows.push(format!("| {offset} | {size} | `{name}` | `{of_type}` | {about} |"));
    }

    fn write(&self, text: &mut String) {
        if let Some(bytes) = self.bytes {
            assert_eq!(self.next, bytes, "{}", self.title);
        }
        writeln!(text, "#### {}, {} bytes\n\n{}\n", self.title, self.next, self.about).unwrap();
        writeln!(text, "| offset | size | field | type | meaning |\n|---:|---:|---|---|---|")
            .unwrap();
        for row in &self.rows {
            writeln!(text, "{row}").unwrap();
        }
        text.push('\n');
    }
}

/// A comment's links lead nowhere outside of the sources.
fn plain(comment: &str) -> String {
    comment.replace("[`", "`").replace("`]", "`").replace('|', "\\|")
}

fn between<'line>(line: &'line str, before: &str, after: &str) -> Option<&'line str> {
    let (_, rest) = line.split_once(before)?;
    rest.split_once(after).map(|(middle, _)| middle)
}

/// The tables of one source file, and its constants.
fn tables(source: &str) -> (Vec<Table>, Vec<String>) {
    let (mut tables, mut constants) = (Vec::<Table>::new(), Vec::new());
    let mut comment = String::new();
    let mut is_inside = false;
    for line in source.lines().map(str::trim) {
        if line.starts_with("#[cfg(test)]") {
            break;
        }
        if let Some(text) = line.strip_prefix("/// ") {
            comment.push_str(if comment.is_empty() { "" } else { " " });
            comment.push_str(&plain(text));
            continue;
        }
        if line.starts_with("#[") {
            continue;
        }
        if let Some(rest) = line.strip_suffix(" bytes {") {
            let (name, rest) = rest.split_once(", template ").unwrap();
            let (template, bytes) = rest.split_once(", ").unwrap();
            let title = format!("{name}, template {template}");
            tables.push(Table::new(title, &comment, Some(bytes.parse().unwrap())));
            is_inside = true;
        } else if let Some(name) = between(line, "pub struct ", " {") {
            tables.push(Table::new(name.to_owned(), &comment, None));
            is_inside = true;
        } else if line.starts_with('}') {
            is_inside = false;
        } else if !is_inside
            && let Some(name) = between(line, "pub const ", ": ")
            && let Some(value) = between(line, " = ", ";")
        {
            constants.push(format!("| `{name}` | {value} | {comment} |"));
        } else if is_inside && let Some((left, of_type)) = line.split_once(": ") {
            let of_type = of_type.trim_end_matches(',');
            let left = left.trim_start_matches("pub ");
            let (offset, name) = match left.split_once(' ') {
                Some((offset, name)) => (Some(offset.parse().unwrap()), name),
                None => (None, left),
            };
            tables.last_mut().unwrap().field(offset, name, of_type, &comment);
        }
        comment.clear();
    }
    (tables, constants)
}

fn enumerations(source: &str) -> String {
    let mut text = String::from("### Enumerations\n\nZero is no value of any of them.\n\n");
    let (mut comment, mut is_inside) = (String::new(), false);
    // The macro's own definition comes first.
    let (_, source) = source.split_once("wire_enum! {\n").unwrap();
    for line in source.lines().map(str::trim) {
        if let Some(part) = line.strip_prefix("/// ") {
            comment.push_str(if comment.is_empty() { "" } else { " " });
            comment.push_str(&plain(part));
            continue;
        }
        if let Some(name) = line.strip_suffix(": u8 {").or_else(|| line.strip_suffix(": u16 {")) {
            writeln!(
                text,
                "#### {name}\n\n{comment}\n\n| number | value | meaning |\n|---:|---|---|"
            )
            .unwrap();
            is_inside = true;
        } else if is_inside && let Some((name, number)) = line.split_once(" = ") {
            let number = number.trim_end_matches(',');
            writeln!(text, "| {number} | {name} | {comment} |").unwrap();
        } else if is_inside && line == "}" {
            text.push('\n');
            is_inside = false;
        }
        comment.clear();
    }
    text
}

fn source(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(name)).unwrap()
}

fn generated(sources: &[(&str, &str)]) -> String {
    let mut text = String::from("\n");
    for (heading, name) in sources {
        let (tables, constants) = tables(&source(name));
        assert!(!tables.is_empty(), "{name}");
        writeln!(text, "### {heading}\n").unwrap();
        if !constants.is_empty() {
            writeln!(text, "| constant | value | meaning |\n|---|---:|---|").unwrap();
            for row in constants {
                writeln!(text, "{row}").unwrap();
            }
            text.push('\n');
        }
        for table in tables {
            table.write(&mut text);
        }
    }
    text
}

/// Compares what stands between two marks of the file, or writes it anew.
fn compare(begin: &str, end: &str, generated: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("FORMATS.md");
    let file = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = file.split_once(begin).unwrap();
    let (tables, after) = rest.split_once(end).unwrap();
    if std::env::var_os("TOUCHLINE_WRITE_FORMATS").is_some() {
        std::fs::write(&path, [before, begin, generated, end, after].concat()).unwrap();
        return;
    }
    for (found, expected) in tables.lines().zip(generated.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(tables.len(), generated.len(), "the file ends elsewhere");
}

#[test]
fn the_tables_are_those_of_the_declarations() {
    compare(SNAPSHOT_BEGIN, SNAPSHOT_END, &generated(&SNAPSHOT_SOURCES));
    compare(BEGIN, END, &(generated(&SOURCES) + &enumerations(&source("message/enums.rs"))));
}

/// What is written by hand about versions is so.
#[test]
fn the_versions_are_those_of_the_sources() {
    use touchline_protocol::log::{control, segment};
    use touchline_protocol::message::{PROTOCOL_MAJOR, PROTOCOL_MINOR, SCHEMA_ID, SCHEMA_VERSION};
    use touchline_protocol::snapshot;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("FORMATS.md");
    let file = std::fs::read_to_string(path).unwrap();
    for line in [
        format!("| log format | {}.{} |", segment::FORMAT_MAJOR, segment::FORMAT_MINOR),
        format!("| control page | {} |", control::VERSION),
        format!("| snapshot | {}.{} |", snapshot::FORMAT_MAJOR, snapshot::FORMAT_MINOR),
        format!("| message schema | id 0x{SCHEMA_ID:04x}, version {SCHEMA_VERSION} |"),
        format!("| handshake | {PROTOCOL_MAJOR}.{PROTOCOL_MINOR} |"),
    ] {
        assert!(file.contains(&line), "{line}");
    }
}
