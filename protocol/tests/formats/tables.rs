//! The byte tables of `FORMATS.md`.

use super::declarations::{Constant, Declaration, declarations, enumerations, identifiers};
use super::{SOURCES, assert_same, is_writing, path};
use std::fmt::Write as _;

const BEGIN: &str = "<!-- generated: begin -->\n";
const END: &str = "<!-- generated: end -->\n";
const SNAPSHOT_BEGIN: &str = "<!-- generated from snapshot/records.rs: begin -->\n";
const SNAPSHOT_END: &str = "<!-- generated from snapshot/records.rs: end -->\n";

const SNAPSHOT_SOURCES: [(&str, &str); 1] = [("Sections and their records", "snapshot/records.rs")];

fn write_declaration(text: &mut String, declaration: &Declaration) {
    let Declaration { name, template, about, fields, .. } = declaration;
    let template = template.map(|template| format!(", template {template}")).unwrap_or_default();
    let bytes = declaration.bytes();
    writeln!(text, "#### {name}{template}, {bytes} bytes\n\n{about}\n").unwrap();
    writeln!(text, "| offset | size | field | type | meaning |\n|---:|---:|---|---|---|").unwrap();
    for field in fields {
        let (offset, size) = (field.offset, field.size);
        let (name, of_type, about) = (&field.name, &field.of_type, &field.about);
        writeln!(text, "| {offset} | {size} | `{name}` | `{of_type}` | {about} |").unwrap();
    }
    text.push('\n');
}

fn of_sources(sources: &[(&str, &str)]) -> String {
    let mut text = String::from("\n");
    for (heading, file) in sources {
        let (declarations, constants) = declarations(file);
        writeln!(text, "### {heading}\n").unwrap();
        if !constants.is_empty() {
            writeln!(text, "| constant | value | meaning |\n|---|---:|---|").unwrap();
            for Constant { name, value, about } in constants {
                // A cell of a table ends there.
                let value = value.replace('|', r"\|");
                writeln!(text, "| `{name}` | {value} | {about} |").unwrap();
            }
            text.push('\n');
        }
        declarations.iter().for_each(|declaration| write_declaration(&mut text, declaration));
    }
    text
}

fn of_identifiers() -> String {
    let mut text = String::from(
        "\n### Identifiers\n\n| identifier | type | what it counts |\n|---|---|---|\n",
    );
    for Constant { name, value, about } in identifiers() {
        writeln!(text, "| `{name}` | `{value}` | {about} |").unwrap();
    }
    text
}

fn of_enumerations() -> String {
    let mut text = String::from("### Enumerations\n\nZero is no value of any of them.\n\n");
    for enumeration in enumerations() {
        let (name, about) = (&enumeration.name, &enumeration.about);
        writeln!(text, "#### {name}\n\n{about}\n").unwrap();
        writeln!(text, "| number | value | meaning |\n|---:|---|---|").unwrap();
        for Constant { name, value, about } in &enumeration.values {
            writeln!(text, "| {value} | {name} | {about} |").unwrap();
        }
        text.push('\n');
    }
    text
}

/// Compares what stands between two marks of the file, or writes it anew.
fn compare(begin: &str, end: &str, generated: &str) {
    let path = path("FORMATS.md");
    let file = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = file.split_once(begin).unwrap();
    let (tables, after) = rest.split_once(end).unwrap();
    if is_writing() {
        std::fs::write(&path, [before, begin, generated, end, after].concat()).unwrap();
        return;
    }
    assert_same(tables, generated);
}

#[test]
fn the_tables_are_those_of_the_declarations() {
    compare(SNAPSHOT_BEGIN, SNAPSHOT_END, &of_sources(&SNAPSHOT_SOURCES));
    compare(BEGIN, END, &(of_identifiers() + &of_sources(&SOURCES) + &of_enumerations()));
}
