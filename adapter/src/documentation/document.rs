//! What the services' parts of the OpenAPI document have in common, and the whole that they make. Called by
//! the services, which describe their own operations, and by [`crate::run`].

use utoipa::openapi::{
    Components, HttpMethod, InfoBuilder, OpenApi, OpenApiBuilder, Response, ResponseBuilder,
};

use crate::http::Method;

/// One document of all parts, under the name of the whole: what the parts say of themselves stands one
/// behind the other. No two parts may have a path or a component of the same name.
#[must_use]
pub fn whole(parts: impl IntoIterator<Item = OpenApi>) -> OpenApi {
    let info = InfoBuilder::new().title("Touchline").version(env!("CARGO_PKG_VERSION"));
    let mut document = OpenApiBuilder::new().info(info.build()).build();
    let mut about = Vec::new();
    for mut part in parts {
        about.extend(part.info.description.take());
        let expected = names(&document) + names(&part);
        document.merge(part);
        debug_assert_eq!(names(&document), expected, "two parts have a name in common");
    }
    document.info.description = Some(about.join("\n\n"));
    document
}

/// How many names a document gives.
fn names(document: &OpenApi) -> usize {
    let in_components = |components: &Components| {
        components.schemas.len() + components.responses.len() + components.security_schemes.len()
    };
    document.paths.paths.len() + document.components.as_ref().map_or(0, in_components)
}

/// A method as the document names it.
pub(crate) const fn http_method(method: Method) -> HttpMethod {
    match method {
        Method::Get => HttpMethod::Get,
        Method::Post => HttpMethod::Post,
        Method::Put => HttpMethod::Put,
        Method::Patch => HttpMethod::Patch,
        Method::Delete => HttpMethod::Delete,
        Method::Options => HttpMethod::Options,
    }
}

/// What an address gets that is denied, whatever it asks for: 403 and nothing else.
pub(crate) fn denied() -> Response {
    let description = "This address is denied: nothing was done, and no more is said.";
    ResponseBuilder::new().description(description).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{jobs, spot};

    #[test]
    fn the_whole_has_both_services_and_every_reference_leads_to_a_component() {
        let document = whole([spot::document("X-SVC"), jobs::document()]);
        let document = serde_json::to_value(document).unwrap();
        assert_eq!(document["openapi"], "3.1.0");
        assert_eq!(document["info"]["title"], "Touchline");
        let about = document["info"]["description"].as_str().unwrap();
        assert!(about.contains("HMAC-SHA256") && about.contains("Bearer"), "{about}");
        let mut references = Vec::new();
        collect(&document, &mut references);
        assert!(references.len() > 60);
        for reference in references {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
    }

    fn collect(value: &serde_json::Value, references: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(entries) => {
                for (name, entry) in entries {
                    match entry.as_str() {
                        Some(reference) if name == "$ref" => references.push(reference.to_owned()),
                        _ => collect(entry, references),
                    }
                }
            }
            serde_json::Value::Array(items) => {
                items.iter().for_each(|item| collect(item, references));
            }
            _ => {}
        }
    }
}
