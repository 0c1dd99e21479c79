//! The byte tables of `FORMATS.md`, the SBE schema and the C header say what the declarations say: they
//! are generated from the sources, whose sizes and offsets the compiler checks, and compared with the
//! files.
//!
//! `TOUCHLINE_WRITE_FORMATS=1` writes them anew.

#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[path = "formats/c_header.rs"]
mod c_header;
#[path = "formats/declarations.rs"]
mod declarations;
#[path = "../../tests/support/patience.rs"]
mod patience;
#[path = "formats/schema.rs"]
mod schema;
#[path = "formats/tables.rs"]
mod tables;

use std::path::{Path, PathBuf};

/// Headings and the sources that they stand for, below `src/`.
const SOURCES: [(&str, &str); 9] = [
    ("Commands about orders", "message/command/order.rs"),
    ("Commands that define the venue and move money", "message/command/definition.rs"),
    ("Commands about records", "message/command/record.rs"),
    ("Commands of the engine itself", "message/command/engine.rs"),
    ("Events", "message/event.rs"),
    ("Handshake", "message/handshake.rs"),
    ("Stream sessions", "message/stream.rs"),
    ("Public feed", "message/feed.rs"),
    ("Parts of several messages", "message/command.rs"),
];

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn is_writing() -> bool {
    std::env::var_os("TOUCHLINE_WRITE_FORMATS").is_some()
}

fn assert_same(found: &str, expected: &str) {
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.len(), "the file ends elsewhere");
}

/// Compares a whole file, or writes it anew.
fn compare_file(name: &str, generated: &str) {
    if is_writing() {
        std::fs::write(path(name), generated).unwrap();
    }
    assert_same(&std::fs::read_to_string(path(name)).unwrap(), generated);
}

/// What is written by hand about versions is so.
#[test]
fn the_versions_are_those_of_the_sources() {
    use touchline_protocol::feed;
    use touchline_protocol::log::{control, segment};
    use touchline_protocol::message::{PROTOCOL_MAJOR, PROTOCOL_MINOR, SCHEMA_ID, SCHEMA_VERSION};
    use touchline_protocol::snapshot;
    let file = std::fs::read_to_string(path("FORMATS.md")).unwrap();
    for line in [
        format!("| log format | {}.{} |", segment::FORMAT_MAJOR, segment::FORMAT_MINOR),
        format!("| control page | {} |", control::VERSION),
        format!("| feed memory | {} |", feed::layout::VERSION),
        format!("| snapshot | {}.{} |", snapshot::FORMAT_MAJOR, snapshot::FORMAT_MINOR),
        format!("| message schema | id 0x{SCHEMA_ID:04x}, version {SCHEMA_VERSION} |"),
        format!("| handshake | {PROTOCOL_MAJOR}.{PROTOCOL_MINOR} |"),
    ] {
        assert!(file.contains(&line), "{line}");
    }
}
