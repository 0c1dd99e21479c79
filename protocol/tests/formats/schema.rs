//! The SBE schema of all messages, `schema/touchline.xml` (FIX Simple Binary Encoding 1.0): for whoever
//! generates codecs.

use super::declarations::{
    Constant, Declaration, Enumeration, Field, TEXTS, array_length, declarations, enumerations,
    identifiers,
};
use super::{SOURCES, compare_file};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use touchline_protocol::message::{SCHEMA_ID, SCHEMA_VERSION};
use touchline_protocol::units::OrderListId;

/// Messages begin behind the header, and SBE counts from there.
const HEADER_BYTES: usize = 8;

/// Identifiers that may be below zero; all others are unsigned.
const SIGNED: [(&str, i64); 1] = [("OrderListId", OrderListId(-1).0)];

fn escaped(text: &str) -> String {
    let text = text.replace("\\|", "|").replace('`', "");
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn primitive(size: usize) -> &'static str {
    match size {
        1 => "uint8",
        2 => "uint16",
        4 => "uint32",
        8 => "uint64",
        other => panic!("no number has {other} bytes"),
    }
}

/// The enumeration that a number's comment begins with.
fn enumeration_of<'all>(field: &Field, all: &'all [Enumeration]) -> Option<&'all Enumeration> {
    let (name, _) = field.about.strip_prefix('`')?.split_once('`')?;
    all.iter().find(|enumeration| enumeration.name == name && enumeration.wire == field.of_type)
}

/// `CANCEL_ON_DISCONNECT` as `CancelOnDisconnect`.
fn camel(name: &str) -> String {
    name.split('_').map(|word| word[..1].to_owned() + &word[1..].to_lowercase()).collect()
}

/// Constants of one prefix, of which a field's comment says that it has one, or bits of several.
struct Group {
    prefix: String,
    are_bits: bool,
}

impl Group {
    /// What a comment such as "`LOGON_*` bits" or "`CARRIER_*`: what carries it" names.
    fn of(field: &Field) -> Option<Self> {
        let about = field.about.strip_prefix("Bits of ").unwrap_or(&field.about);
        let (prefix, rest) = about.strip_prefix('`')?.split_once("*`")?;
        let are_bits = about.len() < field.about.len() || rest.starts_with(" bits");
        Some(Self { prefix: prefix.to_owned(), are_bits })
    }

    fn name(&self) -> String {
        let name = camel(self.prefix.trim_end_matches('_'));
        if self.are_bits { name + "Flags" } else { name }
    }

    /// Its constants, each with its number; what joins several of them is none.
    fn values<'all>(&self, all: &'all [Constant]) -> Vec<(String, u8, &'all Constant)> {
        let values = all.iter().filter_map(|constant| {
            let name = constant.name.strip_prefix(&self.prefix)?;
            let number: u8 = constant.value.parse().ok()?;
            (!self.are_bits || number.is_power_of_two()).then(|| (camel(name), number, constant))
        });
        values.collect()
    }
}

/// Everything that goes into the file.
struct Schema {
    declarations: Vec<Declaration>,
    enumerations: Vec<Enumeration>,
    constants: Vec<Constant>,
}

impl Schema {
    fn read() -> Self {
        let sources = SOURCES.iter().map(|(_, file)| declarations(file));
        let (all, constants): (Vec<_>, Vec<_>) = sources.unzip();
        let declarations = all.into_iter().flatten().collect();
        let constants = constants.into_iter().flatten().collect();
        Self { declarations, enumerations: enumerations(), constants }
    }

    fn fields(&self) -> impl Iterator<Item = &Field> {
        self.declarations.iter().flat_map(|declaration| &declaration.fields)
    }

    fn is_part(&self, of_type: &str) -> bool {
        let of_type = |declaration: &&Declaration| declaration.name == of_type;
        self.declarations.iter().find(of_type).is_some_and(|found| found.template.is_none())
    }

    fn type_name(&self, field: &Field) -> String {
        if let Some(enumeration) = enumeration_of(field, &self.enumerations) {
            return enumeration.name.clone();
        }
        if let Some(group) = Group::of(field) {
            return group.name();
        }
        match field.of_type.as_str() {
            "i64" => "Decimal".to_owned(),
            "u8" | "u16" | "u32" | "u64" => primitive(field.size).to_owned(),
            other => {
                array_length(other).map_or(other.to_owned(), |length| format!("Bytes{length}"))
            }
        }
    }

    /// Types of one number or array, each named once.
    fn simple_types(&self, text: &mut String) {
        text.push_str(
            "    <type name=\"Decimal\" primitiveType=\"int64\" description=\"units of 0.00000001\"/>\n\
             \x20   <type name=\"Number8\" primitiveType=\"uint8\" presence=\"optional\" nullValue=\"0\"/>\n\
             \x20   <type name=\"Number16\" primitiveType=\"uint16\" presence=\"optional\" nullValue=\"0\"/>\n",
        );
        let mut known = BTreeSet::new();
        let identifiers = identifiers();
        for field in self.fields() {
            let of_type = &field.of_type;
            if let Some(length) = array_length(of_type)
                && known.insert(format!("Bytes{length}"))
            {
                let name = format!("Bytes{length}");
                writeln!(
                    text,
                    "    <type name=\"{name}\" primitiveType=\"uint8\" length=\"{length}\"/>"
                )
                .unwrap();
            }
            let is_identifier = of_type.starts_with(char::is_uppercase)
                && !self.is_part(of_type)
                && of_type != "MessageHeader"
                && TEXTS.iter().all(|(name, ..)| name != of_type);
            if is_identifier && known.insert(of_type.clone()) {
                let is_signed = SIGNED.iter().any(|(name, _)| name == of_type);
                let primitive = if is_signed { "int64" } else { primitive(field.size) };
                let of_name = identifiers.iter().find(|one| one.name == *of_type);
                let about = escaped(&of_name.expect("its number").about);
                writeln!(
                    text,
                    "    <type name=\"{of_type}\" primitiveType=\"{primitive}\" description=\"{about}\"/>"
                )
                .unwrap();
            }
        }
    }

    fn composites(&self, text: &mut String) {
        text.push_str("    <composite name=\"messageHeader\">\n");
        for name in ["blockLength", "templateId", "schemaId", "version"] {
            writeln!(text, "      <type name=\"{name}\" primitiveType=\"uint16\"/>").unwrap();
        }
        text.push_str("    </composite>\n");
        for (name, reserved, most) in TEXTS {
            writeln!(text, "    <composite name=\"{name}\">").unwrap();
            text.push_str("      <type name=\"length\" primitiveType=\"uint8\"/>\n");
            if reserved > 0 {
                writeln!(
                    text,
                    "      <type name=\"reserved\" primitiveType=\"uint8\" length=\"{reserved}\"/>"
                )
                .unwrap();
            }
            writeln!(
                text,
                "      <type name=\"text\" primitiveType=\"char\" length=\"{most}\" \
                 characterEncoding=\"US-ASCII\" description=\"0x20 to 0x7e, zeros behind the length\"/>\n    \
                 </composite>"
            )
            .unwrap();
        }
        for part in self.declarations.iter().filter(|it| it.template.is_none()) {
            let about = escaped(&part.about);
            writeln!(text, "    <composite name=\"{}\" description=\"{about}\">", part.name)
                .unwrap();
            for field in &part.fields {
                let (name, of_type) = (&field.name, self.type_name(field));
                let offset = field.offset;
                writeln!(
                    text,
                    "      <ref name=\"{name}\" type=\"{of_type}\" offset=\"{offset}\"/>"
                )
                .unwrap();
            }
            text.push_str("    </composite>\n");
        }
    }

    fn enumerations(&self, text: &mut String) {
        for enumeration in &self.enumerations {
            let encoding = if enumeration.wire == "u8" { "Number8" } else { "Number16" };
            let (name, about) = (&enumeration.name, escaped(&enumeration.about));
            writeln!(
                text,
                "    <enum name=\"{name}\" encodingType=\"{encoding}\" description=\"{about}\">"
            )
            .unwrap();
            for value in &enumeration.values {
                let (name, number, about) = (&value.name, &value.value, escaped(&value.about));
                writeln!(
                    text,
                    "      <validValue name=\"{name}\" description=\"{about}\">{number}</validValue>"
                )
                .unwrap();
            }
            text.push_str("    </enum>\n");
        }
    }

    /// What is no enumeration of the sources: bits, and constants of which zero may be one.
    fn groups(&self, text: &mut String) {
        let mut known = BTreeSet::new();
        for field in self.fields() {
            let Some(group) = Group::of(field).filter(|group| known.insert(group.name())) else {
                continue;
            };
            let (kind, value) =
                if group.are_bits { ("set", "choice") } else { ("enum", "validValue") };
            let (name, encoding) = (group.name(), primitive(field.size));
            writeln!(text, "    <{kind} name=\"{name}\" encodingType=\"{encoding}\">").unwrap();
            for (name, number, constant) in group.values(&self.constants) {
                // SBE counts bits.
                let number = if group.are_bits { number.trailing_zeros() } else { number.into() };
                let about = escaped(&constant.about);
                writeln!(
                    text,
                    "      <{value} name=\"{name}\" description=\"{about}\">{number}</{value}>"
                )
                .unwrap();
            }
            writeln!(text, "    </{kind}>").unwrap();
        }
    }

    fn messages(&self, text: &mut String) {
        for message in &self.declarations {
            let Some(template) = message.template else { continue };
            let (name, about) = (&message.name, escaped(&message.about));
            let block = message.bytes() - HEADER_BYTES;
            writeln!(
                text,
                "  <sbe:message name=\"{name}\" id=\"{template}\" blockLength=\"{block}\" \
                 description=\"{about}\">"
            )
            .unwrap();
            for (id, field) in message.fields.iter().enumerate().skip(1) {
                let (name, of_type) = (&field.name, self.type_name(field));
                let (offset, about) = (field.offset - HEADER_BYTES, escaped(&field.about));
                writeln!(
                    text,
                    "    <field name=\"{name}\" id=\"{id}\" type=\"{of_type}\" offset=\"{offset}\" \
                     description=\"{about}\"/>"
                )
                .unwrap();
            }
            text.push_str("  </sbe:message>\n");
        }
    }

    fn text(&self) -> String {
        let mut text = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <!-- Generated from the declarations of the messages. In a session an event's body stands \
             behind an Envelope, and blockLength covers both; in the log it does not. -->\n\
             <sbe:messageSchema xmlns:sbe=\"http://fixprotocol.io/2016/sbe\" package=\"touchline\" \
             id=\"{SCHEMA_ID}\" version=\"{SCHEMA_VERSION}\" semanticVersion=\"1.0\" \
             byteOrder=\"littleEndian\" headerType=\"messageHeader\">\n  <types>\n"
        );
        for primitive in ["uint8", "uint16", "uint32", "uint64"] {
            writeln!(text, "    <type name=\"{primitive}\" primitiveType=\"{primitive}\"/>")
                .unwrap();
        }
        self.simple_types(&mut text);
        self.enumerations(&mut text);
        self.groups(&mut text);
        self.composites(&mut text);
        text.push_str("  </types>\n");
        self.messages(&mut text);
        text.push_str("</sbe:messageSchema>\n");
        text
    }
}

#[test]
fn the_schema_is_that_of_the_declarations() {
    let schema = Schema::read();
    for message in schema.declarations.iter().filter(|it| it.template.is_some()) {
        assert_eq!(message.fields[0].of_type, "MessageHeader", "{}", message.name);
    }
    compare_file("schema/touchline.xml", &schema.text());
}

/// A number that the sources explain by the name of an enumeration is one of it, in each of the files.
#[test]
fn every_enumeration_that_a_field_names_is_there() {
    let schema = Schema::read();
    for field in schema.fields() {
        let name = field.about.strip_prefix('`').and_then(|rest| rest.split_once('`'));
        let Some((name, _)) = name else { continue };
        // Flags are named in capitals; what is longer counts messages.
        let is_one = name.contains(char::is_lowercase) && field.size <= 2;
        let is_known = enumeration_of(field, &schema.enumerations).is_some();
        assert_eq!(is_one, is_known, "{}: {name} of {}", field.name, field.of_type);
    }
    // Nor is one named further behind, where nobody would look for it.
    for field in schema.fields() {
        let named = schema.enumerations.iter().find(|enumeration| {
            enumeration.wire == field.of_type
                && field.about.contains(&format!("`{}`", enumeration.name))
        });
        let known = enumeration_of(field, &schema.enumerations);
        assert_eq!(known.map(|it| &it.name), named.map(|it| &it.name), "{}", field.name);
    }
}

/// So is a constant of a prefix that they explain one by: each prefix has some, each of another number.
#[test]
fn every_constant_that_a_field_may_have_is_there() {
    let schema = Schema::read();
    let text = schema.text();
    for field in schema.fields() {
        let group = Group::of(field);
        assert_eq!(group.is_some(), field.about.contains("_*`"), "{}: {}", field.name, field.about);
        let Some(group) = group else { continue };
        assert_eq!(field.size, 1, "{}", field.name);
        let values = group.values(&schema.constants);
        let numbers: BTreeSet<u8> = values.iter().map(|&(_, number, _)| number).collect();
        assert!(!values.is_empty() && numbers.len() == values.len(), "{}", group.prefix);
    }
    for line in [
        "<set name=\"EnvelopeFlags\" encodingType=\"uint8\">",
        "<choice name=\"Replayed\" ",
        "<choice name=\"CancelOnDisconnect\" ",
        "<enum name=\"Carrier\" encodingType=\"uint8\">",
        "<ref name=\"flags\" type=\"EnvelopeFlags\" ",
        "type=\"LogonFlags\" offset=\"6\"",
        "type=\"Carrier\" offset=\"7\"",
    ] {
        assert!(text.contains(line), "{line}");
    }
    let feed = text.lines().find(|line| line.contains("<choice name=\"Feed\" ")).unwrap();
    assert!(feed.ends_with(">7</choice>"), "128 is bit 7: {feed}");
}

/// Every type that is used is declared in front of its use, once.
#[test]
fn the_schema_names_nothing_that_it_does_not_have() {
    let text = Schema::read().text();
    let mut declared = BTreeSet::new();
    let value = |line: &str, key: &str| {
        let (_, rest) = line.split_once(&format!(" {key}=\""))?;
        rest.split_once('"').map(|(value, _)| value.to_owned())
    };
    for line in text.lines() {
        let kind = line.trim_start();
        // Four spaces: a type of its own; more: a part of one.
        let is_type = line.starts_with("    <") && !kind.starts_with("</");
        if is_type && !kind.starts_with("<field") {
            let name = value(line, "name").unwrap();
            assert!(declared.insert(name), "declared twice: {line}");
        }
        if kind.starts_with("<field") || kind.starts_with("<ref") {
            let of_type = value(line, "type").unwrap();
            assert!(declared.contains(&of_type), "{of_type}: {line}");
        }
    }
}
