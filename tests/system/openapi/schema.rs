//! Values against the schemas of the document. Called by the tests of the document.

use super::super::http::Response;
use regex::Regex;
use serde_json::{Value, json};

/// Checks a reply against what the document says of this operation and status.
pub(super) fn check(document: &Value, operation: &Value, reply: &Response) -> Result<(), String> {
    let status = reply.status;
    let range = format!("{}XX", status / 100);
    let described = match &operation["responses"][status.to_string()] {
        Value::Null => &operation["responses"][range],
        exact => exact,
    };
    if described.is_null() {
        return Err(format!("status {status} is not described"));
    }
    let kinds = resolved(document, described)["content"].as_object();
    let Some(kinds) = kinds.filter(|kinds| !kinds.is_empty()) else {
        let is_empty = reply.body.is_empty();
        return if is_empty { Ok(()) } else { Err("a body that is not described".to_owned()) };
    };
    let kind = reply.header("content-type").unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default();
    let Some(content) = kinds.get(kind) else {
        return Err(format!("content of type {kind:?} is not described"));
    };
    let value = match kind {
        "application/json" => serde_json::from_str(&reply.body).map_err(|why| why.to_string())?,
        _ => json!(reply.body),
    };
    conforms(document, &content["schema"], &value)
}

/// Checks a value against a schema, more strictly than a schema does: an object has no member that the
/// schema does not name.
pub(super) fn conforms(document: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let members = value.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    let known = known_members(document, schema);
    if let Some(unknown) = members.into_iter().find(|name| !known.contains(&(*name).to_owned())) {
        return Err(format!("member {unknown} is not described"));
    }
    satisfies(document, schema, value)
}

fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(reference) => document
            .pointer(reference.trim_start_matches('#'))
            .unwrap_or_else(|| panic!("{reference} leads nowhere")),
        None => schema,
    }
}

fn parts<'a>(schema: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    schema[name].as_array().into_iter().flatten()
}

fn known_members(document: &Value, schema: &Value) -> Vec<String> {
    let schema = resolved(document, schema);
    let own = schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone());
    let others = ["allOf", "oneOf", "anyOf"].into_iter().flat_map(|name| parts(schema, name));
    own.chain(others.flat_map(|part| known_members(document, part))).collect()
}

fn satisfies(document: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let schema = resolved(document, schema);
    parts(schema, "allOf").try_for_each(|part| satisfies(document, part, value))?;
    for name in ["oneOf", "anyOf"] {
        let failures: Vec<_> =
            parts(schema, name).map(|part| conforms(document, part, value)).collect();
        if !failures.is_empty() && failures.iter().all(Result::is_err) {
            return Err(format!("none of {name}: {failures:?}"));
        }
    }
    // Readers go by the schema alone, which members that it does not name do not bother.
    let fitting = parts(schema, "oneOf").filter(|part| satisfies(document, part, value).is_ok());
    if fitting.count() > 1 {
        return Err(format!("more than one of oneOf: {value}"));
    }
    let places: Vec<_> = parts(schema, "prefixItems").collect();
    let is_described = !places.is_empty() || !schema["items"].is_null();
    if let Some(kind) = schema["type"].as_str() {
        if kind == "array" && !is_described {
            return Err("a schema of an array without its items".to_owned());
        }
        let fits = match kind {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "integer" => value.is_i64() || value.is_u64(),
            "boolean" => value.is_boolean(),
            other => return Err(format!("a schema of type {other}")),
        };
        if !fits {
            return Err(format!("{value} is no {kind}"));
        }
    }
    within_bounds(schema, value)?;
    for name in parts(schema, "required").filter_map(Value::as_str) {
        if value.get(name).is_none() {
            return Err(format!("member {name} is missing"));
        }
    }
    for (name, member) in value.as_object().into_iter().flatten() {
        if let Some(schema) = schema["properties"].get(name) {
            conforms(document, schema, member).map_err(|why| format!("{name}: {why}"))?;
        }
    }
    let items = value.as_array().filter(|_| is_described).map_or(&[][..], Vec::as_slice);
    for (at, item) in items.iter().enumerate() {
        let schema = places.get(at).copied().unwrap_or(&schema["items"]);
        if *schema == false {
            return Err(format!("an array of {} items", items.len()));
        }
        conforms(document, schema, item).map_err(|why| format!("item {at}: {why}"))?;
    }
    Ok(())
}

/// Looks at what a schema says of a value that has no parts.
fn within_bounds(schema: &Value, value: &Value) -> Result<(), String> {
    if !schema["enum"].is_null() && !parts(schema, "enum").any(|known| known == value) {
        return Err(format!("{value} is none of {}", schema["enum"]));
    }
    if let (Some(text), Some(pattern)) = (value.as_str(), schema["pattern"].as_str()) {
        let pattern = Regex::new(pattern).map_err(|error| error.to_string())?;
        if !pattern.is_match(text) {
            return Err(format!("{text:?} does not match {pattern}"));
        }
    }
    if let (Some(number), Some(least)) = (value.as_i64(), schema["minimum"].as_i64())
        && number < least
    {
        return Err(format!("{number} is less than {least}"));
    }
    if let (Some(number), Some(most)) = (value.as_i64(), schema["maximum"].as_i64())
        && number > most
    {
        return Err(format!("{number} is more than {most}"));
    }
    Ok(())
}
