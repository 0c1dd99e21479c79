//! The messages for C, `schema/touchline.h`: structs with their sizes and offsets asserted,
//! enumerations and flags.

use super::declarations::{
    Declaration, TEXTS, array_length, declarations, enumerations, identifiers,
};
use super::patience::run;
use super::{SOURCES, compare_file, path};
use crate::skipped::skipped;
use std::fmt::Write as _;
use std::process::Command;
use touchline_protocol::message::{PROTOCOL_MAJOR, PROTOCOL_MINOR, SCHEMA_ID, SCHEMA_VERSION};

/// `NewOrder` as `new_order`.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    for (at, letter) in name.char_indices() {
        if letter.is_uppercase() && at > 0 {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

fn comment(text: &str) -> String {
    text.replace("\\|", "|").replace("*/", "* /")
}

fn number(size: usize) -> &'static str {
    match size {
        1 => "uint8_t",
        2 => "uint16_t",
        4 => "uint32_t",
        8 => "uint64_t",
        other => panic!("no number has {other} bytes"),
    }
}

fn struct_of(text: &mut String, declaration: &Declaration, structs: &[String]) {
    let Declaration { name, template, about, fields, .. } = declaration;
    let tag = format!("touchline_{}", snake(name));
    writeln!(text, "/* {} */\nstruct {tag} {{", comment(about)).unwrap();
    for field in fields {
        let (name, of_type) = (&field.name, field.of_type.as_str());
        let declared = if let Some(length) = array_length(of_type) {
            format!("uint8_t {name}[{length}]")
        } else if structs.iter().any(|known| known == of_type) {
            format!("struct touchline_{} {name}", snake(of_type))
        } else if matches!(of_type, "i64" | "OrderListId") {
            format!("int64_t {name}")
        } else {
            format!("{} {name}", number(field.size))
        };
        writeln!(text, "    {declared}; /* {} */", comment(&field.about)).unwrap();
    }
    writeln!(text, "}};").unwrap();
    if let Some(template) = template {
        let upper = snake(name).to_uppercase();
        writeln!(text, "#define TOUCHLINE_TEMPLATE_{upper} {template}u").unwrap();
    }
    writeln!(text, "TOUCHLINE_ASSERT(sizeof(struct {tag}) == {}, \"{tag}\");", declaration.bytes())
        .unwrap();
    for field in fields {
        let (name, offset) = (&field.name, field.offset);
        writeln!(
            text,
            "TOUCHLINE_ASSERT(offsetof(struct {tag}, {name}) == {offset}, \"{tag}.{name}\");"
        )
        .unwrap();
    }
    text.push('\n');
}

fn header() -> String {
    let mut text = format!(
        "/* The messages of Touchline for C11 and C++11. Generated from their declarations; FORMATS.md says\n\
         \x20* what they mean. All numbers are little-endian, as the machine's must be. In a session an event's\n\
         \x20* body stands behind a struct touchline_envelope. */\n\
         #ifndef TOUCHLINE_H\n#define TOUCHLINE_H\n\n\
         #include <stddef.h>\n#include <stdint.h>\n\n\
         #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__\n\
         #error \"Touchline's messages are little-endian, and this machine is not\"\n#endif\n\n\
         #ifdef __cplusplus\n#define TOUCHLINE_ASSERT static_assert\n#else\n\
         #define TOUCHLINE_ASSERT _Static_assert\n#endif\n\n\
         #define TOUCHLINE_SCHEMA_ID {SCHEMA_ID}u\n#define TOUCHLINE_SCHEMA_VERSION {SCHEMA_VERSION}u\n\
         #define TOUCHLINE_PROTOCOL_MAJOR {PROTOCOL_MAJOR}u\n\
         #define TOUCHLINE_PROTOCOL_MINOR {PROTOCOL_MINOR}u\n\
         /* Prices, quantities and amounts are counts of 0.00000001. */\n\
         #define TOUCHLINE_UNITS_PER_WHOLE INT64_C(100000000)\n\n"
    );
    text.push_str("/* What identifiers count:\n");
    for identifier in identifiers() {
        let (name, about) = (snake(&identifier.name), comment(&identifier.about));
        writeln!(text, " * {name}: {about}").unwrap();
    }
    text.push_str(" */\n\n");
    for enumeration in enumerations() {
        let name = snake(&enumeration.name);
        writeln!(text, "/* {} */\nenum touchline_{name} {{", comment(&enumeration.about)).unwrap();
        for value in &enumeration.values {
            let constant = format!("{name}_{}", snake(&value.name)).to_uppercase();
            let about = comment(&value.about);
            writeln!(text, "    TOUCHLINE_{constant} = {}, /* {about} */", value.value).unwrap();
        }
        text.push_str("};\n\n");
    }
    text.push_str(
        "/* In front of every message. */\nstruct touchline_message_header {\n\
         \x20   uint16_t block_length; /* bytes behind this header */\n\
         \x20   uint16_t template_id;\n    uint16_t schema_id;\n    uint16_t version;\n};\n\n",
    );
    let mut structs = vec!["MessageHeader".to_owned()];
    for (name, reserved, most) in TEXTS {
        writeln!(
            text,
            "/* Text of up to {most} bytes, each of ASCII 0x20 to 0x7e, zeros behind it. */"
        )
        .unwrap();
        writeln!(text, "struct touchline_{} {{\n    uint8_t length;", snake(name)).unwrap();
        if reserved > 0 {
            writeln!(text, "    uint8_t reserved[{reserved}];").unwrap();
        }
        writeln!(text, "    char text[{most}];\n}};\n").unwrap();
        structs.push(name.to_owned());
    }
    let sources = SOURCES.iter().map(|(_, file)| declarations(file));
    let (all, constants): (Vec<_>, Vec<_>) = sources.unzip();
    for constant in constants.iter().flatten() {
        let value = constant.value.replace("u32::MAX", "UINT32_MAX");
        // Of other constants, which have this header's prefix too.
        let value = match value.split(" | ").collect::<Vec<_>>()[..] {
            [_] => value,
            ref parts => format!("(TOUCHLINE_{})", parts.join(" | TOUCHLINE_")),
        };
        let about = comment(&constant.about);
        writeln!(text, "#define TOUCHLINE_{} {value} /* {about} */", constant.name).unwrap();
    }
    text.push('\n');
    // Parts first: messages hold them.
    let (messages, parts): (Vec<_>, Vec<_>) =
        all.iter().flatten().partition(|declaration| declaration.template.is_some());
    for declaration in parts.into_iter().chain(messages) {
        struct_of(&mut text, declaration, &structs);
        structs.push(declaration.name.clone());
    }
    text.push_str("#endif\n");
    text
}

#[test]
fn the_c_header_is_that_of_the_declarations() {
    compare_file("schema/touchline.h", &header());
}

/// Whether a compiler takes the header without a warning; none where there is no such compiler.
fn compiles(compiler: &str, language: &str, standard: &str) -> Option<()> {
    let strict = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"];
    let mut command = Command::new(compiler);
    command.arg(format!("-std={standard}")).args(strict).args(["-x", language]);
    let output = run(command.arg(path("schema/touchline.h"))).ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(())
}

/// What a compiler says of the header for a machine whose bytes stand the other way round.
#[test]
fn the_c_header_is_refused_where_its_numbers_would_be_others() {
    let mut command = Command::new("cc");
    command.args(["-U__BYTE_ORDER__", "-D__BYTE_ORDER__=__ORDER_BIG_ENDIAN__", "-fsyntax-only"]);
    let Ok(output) = run(command.args(["-x", "c"]).arg(path("schema/touchline.h"))) else {
        return skipped("C compiler (cc)");
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("little-endian"), "{said}");
}

/// The compiler agrees with every size and offset.
#[test]
fn the_c_header_compiles() {
    if compiles("cc", "c", "c11").is_none() {
        skipped("C compiler (cc)");
    }
    if compiles("c++", "c++", "c++11").is_none() {
        skipped("C++ compiler (c++)");
    }
}
