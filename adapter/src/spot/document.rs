//! The service's part of the OpenAPI document: every row of the route table, with the schemas of its
//! parameters and of its reply. Made once, when the adapter starts, and served by
//! [`documentation`](crate::documentation).

mod parameters;
mod replies;

use serde_json::json;
use utoipa::openapi::extensions::{Extensions, ExtensionsBuilder};
use utoipa::openapi::path::{OperationBuilder, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, Header, InfoBuilder, OpenApi, OpenApiBuilder, Paths, Ref,
    Required, Response, ResponseBuilder,
};

use super::routes::{Operation, Parameter, operations};
use crate::documentation::document::{denied, http_method};
use crate::route::{Security, Weight};
use replies::Schemas;

/// Name of the security scheme of API keys.
const KEY: &str = "key";

/// Name of the security scheme of signatures.
const SIGNATURE: &str = "signature";

const ABOUT: &str = "Trading below /api/v3: a matching engine with a REST interface. Parameters of POST, PUT and DELETE may \
    stand in a form body as well as in the query; where a name stands in both, the query counts. A \
    signature is the HMAC-SHA256, in hexadecimal, of the query and the body as they were sent, one \
    behind the other, without the parameter `signature`. A request that is answered by 5XX or not at \
    all may have been carried out.";

/// The document of every operation that is served. `header_prefix` begins the names of the service's
/// own headers.
#[must_use]
pub fn document(header_prefix: &str) -> OpenApi {
    let mut schemas = Schemas::new();
    let mut paths = Paths::new();
    for operation in operations() {
        let method = http_method(operation.method);
        let path = operation.path;
        let described = describe(&operation, &mut schemas);
        paths.add_path_operation(path, vec![method], described);
    }
    let components = ComponentsBuilder::new()
        .security_scheme(
            KEY,
            scheme(ApiKey::Header(ApiKeyValue::new(format!("{header_prefix}-APIKEY")))),
        )
        .security_scheme(SIGNATURE, scheme(ApiKey::Query(ApiKeyValue::new(SIGNATURE))))
        .schema("Error", error_schema())
        .response("Refused", refused())
        .response("Failed", failure("The outcome is unknown: it may have been done.").build())
        .schemas_from_iter(schemas)
        .build();
    let info = InfoBuilder::new().title("Trading").version("3").description(Some(ABOUT));
    OpenApiBuilder::new().info(info.build()).paths(paths).components(Some(components)).build()
}

fn describe(operation: &Operation, schemas: &mut Schemas) -> utoipa::openapi::path::Operation {
    let reply = replies::find(operation.method, operation.path);
    let mut success = ResponseBuilder::new().description("Success.");
    if let Some(reply) = reply {
        let content = ContentBuilder::new().schema(Some((reply.schema)(schemas))).build();
        success = success.content("application/json", content);
    }
    let mut described = OperationBuilder::new()
        .summary(reply.map(|reply| reply.summary))
        .operation_id(Some(operation_id(operation)))
        .tag(tag(operation.security))
        .response("200", success.build())
        .response("403", denied())
        .response("4XX", Ref::from_response_name("Refused"))
        .response("5XX", Ref::from_response_name("Failed"))
        .extensions(Some(costs(operation)));
    for parameter in &operation.parameters {
        described = described.parameter(describe_parameter(operation, *parameter));
    }
    if operation.security.needs_signature() {
        let of_signatures = [("recvWindow", false), ("timestamp", true)];
        for (name, is_required) in of_signatures {
            let parameter = Parameter { name, is_required };
            described = described.parameter(describe_parameter(operation, parameter));
        }
    }
    if let Some(requirement) = requirement(operation.security) {
        described = described.security(requirement);
    }
    described.build()
}

fn describe_parameter(
    operation: &Operation,
    parameter: Parameter,
) -> utoipa::openapi::path::Parameter {
    let required = if parameter.is_required { Required::True } else { Required::False };
    ParameterBuilder::new()
        .name(parameter.name)
        .parameter_in(ParameterIn::Query)
        .required(required)
        .schema(Some(parameters::schema(operation, parameter.name)))
        .build()
}

/// What a request costs: against the request weight of its address and the order counts of its account.
fn costs(operation: &Operation) -> Extensions {
    let weight = match operation.weight {
        Weight::Fixed(weight) => json!(weight),
        Weight::ByDepthLimit => json!({"100": 1, "500": 5, "1000": 10, "5000": 50}),
        Weight::BySymbol { with, without } => json!({"symbol": with, "all": without}),
    };
    let costs = ExtensionsBuilder::new().add("x-request-weight", weight);
    costs.add("x-order-count", operation.order_cost).build()
}

fn requirement(security: Security) -> Option<SecurityRequirement> {
    let none = || [""; 0];
    let key = || SecurityRequirement::new(KEY, none());
    match (security.needs_key(), security.needs_signature()) {
        (true, true) => Some(key().add(SIGNATURE, none())),
        (true, false) => Some(key()),
        (false, _) => None,
    }
}

const fn tag(security: Security) -> &'static str {
    match security {
        Security::None | Security::MarketData | Security::Bearer => "market data",
        Security::Trade => "trading",
        Security::UserData | Security::Signed => "account",
        Security::UserStream => "user data stream",
    }
}

/// `GET /api/v3/ticker/24hr` is `get_ticker_24hr`.
fn operation_id(operation: &Operation) -> String {
    let path = operation.path.trim_start_matches("/api/v3/").replace('/', "_");
    format!("{}_{path}", operation.method.token().to_ascii_lowercase())
}

const fn scheme(key: ApiKey) -> SecurityScheme {
    SecurityScheme::ApiKey(key)
}

fn refused() -> Response {
    let seconds = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).build();
    failure(
        "Refused: nothing was done. 418 and 429 tell by Retry-After, in seconds, when to try again; \
         only the 429 of too many orders (-1015) does not.",
    )
    .header("Retry-After", Header::new(seconds))
    .build()
}

fn failure(description: &str) -> ResponseBuilder {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Error"))).build();
    ResponseBuilder::new().description(description).content("application/json", content)
}

/// What [`ApiError`](crate::api_error::ApiError) writes.
fn error_schema() -> Schema {
    ObjectBuilder::new()
        .property("code", ObjectBuilder::new().schema_type(Type::Integer).maximum(Some(-1)))
        .required("code")
        .property("msg", ObjectBuilder::new().schema_type(Type::String))
        .required("msg")
        .build()
        .into()
}

/// A decimal that is written as a string with so many fraction digits.
pub(super) fn decimal(fraction_digits: u32, description: &str) -> Schema {
    let fraction = match fraction_digits {
        0 => String::new(),
        digits => format!("\\.[0-9]{{{digits}}}"),
    };
    ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(format!("^-?[0-9]+{fraction}$")))
        .description(Some(description))
        .build()
        .into()
}

/// A number or a time, which is never negative.
pub(super) fn number() -> Schema {
    ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0)).build().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_its_reply_and_every_reply_its_operation() {
        let operations = operations();
        for operation in &operations {
            let (method, path) = (operation.method, operation.path);
            assert!(replies::find(method, path).is_some(), "{} {path}", method.token());
        }
        assert_eq!(replies::REPLIES.len(), operations.len());
    }

    #[test]
    fn the_header_of_the_key_has_the_configured_prefix() {
        let document = serde_json::to_value(document("X-OTHER")).unwrap();
        assert_eq!(document["components"]["securitySchemes"]["key"]["name"], "X-OTHER-APIKEY");
    }
}
