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
#[path = "../../tests/support/skipped.rs"]
mod skipped;
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

/// So is what is written by hand about words that two processes share.
#[test]
fn shared_words_are_where_the_sources_have_them() {
    use touchline_protocol::feed::layout as feed;
    use touchline_protocol::log::control;
    use touchline_protocol::ring::layout as ring;
    let file = std::fs::read_to_string(path("FORMATS.md")).unwrap();
    let section = |heading: &str| {
        let (_, rest) = file.split_once(&format!("\n### {heading}")).unwrap();
        rest.split("\n### ").next().unwrap()
    };
    let has = |heading: &str, size: &str, words: &[(usize, &str)]| {
        for (offset, name) in words {
            let row = format!("| {offset} | {size} | {name} |");
            assert!(section(heading).contains(&row), "{heading}: {row}");
        }
    };
    let slots = format!("{} each", ring::SLOT_BYTES);
    has("In shared memory", "8", &[(ring::TAIL_OFFSET, "tail"), (ring::HEAD_OFFSET, "head")]);
    let small = [
        (ring::PARKED_OFFSET, "parked"),
        (ring::DOORBELL_OFFSET, "doorbell"),
        (ring::ALIVE_OFFSET, "alive"),
    ];
    has("In shared memory", "4", &small);
    has("In shared memory", &slots, &[(ring::SLOTS_OFFSET, "slots")]);
    let slots = format!("{} each", feed::SLOT_BYTES);
    has(
        "The public feed",
        "8",
        &[(feed::PUBLISHED_OFFSET, "published"), (feed::READ_OFFSET, "read")],
    );
    has("The public feed", "4", &[(feed::EVENT_OFFSET, "event"), (feed::STATE_OFFSET, "state")]);
    has("The public feed", &slots, &[(feed::SLOTS_OFFSET, "slots")]);
    let positions = [
        (control::APPENDED_OFFSET, "appended"),
        (control::DURABLE_OFFSET, "durable"),
        (control::WINDOW_BASE_OFFSET, "window base"),
        (control::PREPARED_UNTIL_OFFSET, "prepared until"),
        (control::HEARTBEAT_NS_OFFSET, "heartbeat"),
        (control::FEED_OFFSET, "feed"),
    ];
    has("Control page", "8", &positions);
    let words = [
        (control::DURABLE_EVENT_OFFSET, "durable event"),
        (control::STATE_OFFSET, "state"),
        (control::PANICKED_OFFSET, "panicked"),
    ];
    has("Control page", "4", &words);
}

/// And so is what a reader needs to compute a checksum by himself.
#[test]
fn the_checksum_is_as_it_is_described() {
    let by_the_description = |salt: u32, bytes: &[u8]| {
        !bytes.iter().fold(!salt, |register, &byte| {
            (0..8).fold(register ^ u32::from(byte), |register, _| {
                let lowest = register & 1;
                (register >> 1) ^ (lowest * 0x82f6_3b78)
            })
        })
    };
    let file = std::fs::read_to_string(path("FORMATS.md")).unwrap();
    assert_eq!(0x1edc_6f41_u32.reverse_bits(), 0x82f6_3b78);
    assert!(file.contains("0x1edc6f41, or 0x82f63b78"));
    for (salt, shown) in [(0, "without a salt"), (0x1234_5678_u32, "from the salt 0x12345678")] {
        let crc = by_the_description(salt, b"123456789");
        assert_eq!(crc, crc32c::crc32c_append(salt, b"123456789"));
        assert!(file.contains(&format!("0x{crc:08x} {shown}")), "{crc:08x} {shown}");
    }
}
