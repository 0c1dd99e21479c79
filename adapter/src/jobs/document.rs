//! The jobs service's part of the OpenAPI document: every row of the route table, with the schemas of its
//! body and of its replies. Made once, when the adapter starts, and served by
//! [`documentation`](crate::documentation).

use utoipa::ToSchema;
use utoipa::openapi::header::Header;
use utoipa::openapi::path::{OperationBuilder, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, InfoBuilder, OpenApi, OpenApiBuilder, Paths, Ref, RefOr,
    Required, Response, ResponseBuilder,
};

use super::fields::schema as fields;
use super::responses::{JobFields, LoggedIn, Message, OneJob};
use super::routes::{Handler, routes};
use crate::documentation::document::{denied, http_method};
use crate::http::Method::{self, Delete, Get, Patch, Post};
use crate::route::{Route, Security};

/// Name of the security scheme of tokens.
const TOKEN: &str = "token";

const JSON: &str = "application/json";

const ABOUT: &str = "The jobs service below /api/v1: people register, log in, and keep a list of jobs \
    that they have applied for. A token of a registration or a login stands in the header \
    `Authorization: Bearer TOKEN`. After 503 nothing has happened; after 500 and 504 it may have.";

/// Schemas by name, which others refer to.
type Schemas = Vec<(String, RefOr<Schema>)>;

/// What an operation is called, does, takes and answers.
struct Row {
    method: Method,
    path: &'static str,
    /// The contract's name of it (jobs contract §4).
    id: &'static str,
    summary: &'static str,
    /// The schema of its body.
    body: Option<fn() -> Schema>,
    /// The schema of what it answers; adds those that it refers to. `None`: an empty body.
    reply: Option<fn(&mut Schemas) -> RefOr<Schema>>,
}

/// In the order of the route table.
const ROWS: [Row; 7] = [
    Row {
        method: Get,
        path: "/api/v1/jobs",
        id: "getAllJobs",
        summary: "All jobs of the user, in the order of making",
        body: None,
        reply: Some(list),
    },
    Row {
        method: Post,
        path: "/api/v1/jobs",
        id: "createJob",
        summary: "Makes a job",
        body: Some(fields::job),
        reply: Some(of::<OneJob<'static>>),
    },
    Row {
        method: Get,
        path: "/api/v1/jobs/{id}",
        id: "getJob",
        summary: "A job of the user",
        body: None,
        reply: Some(of::<OneJob<'static>>),
    },
    Row {
        method: Patch,
        path: "/api/v1/jobs/{id}",
        id: "updateJob",
        summary: "Changes a job of the user",
        body: Some(fields::job),
        reply: Some(of::<OneJob<'static>>),
    },
    Row {
        method: Delete,
        path: "/api/v1/jobs/{id}",
        id: "deleteJob",
        summary: "Deletes a job of the user",
        body: None,
        reply: None,
    },
    Row {
        method: Post,
        path: "/api/v1/auth/register",
        id: "RegisterUser",
        summary: "Makes a user",
        body: Some(fields::registration),
        reply: Some(of::<LoggedIn<'static>>),
    },
    Row {
        method: Post,
        path: "/api/v1/auth/login",
        id: "LoginUser",
        summary: "Gives a user a token",
        body: Some(fields::login),
        reply: Some(of::<LoggedIn<'static>>),
    },
];

/// Why requests are refused: a name, what it means, and whether it tells when to try again.
const FAILURES: [(&str, &str, bool); 9] = [
    ("JobsInvalid", "Something is wrong with the request; what, is told.", false),
    ("JobsUnauthenticated", "No token that is believed, or not this password.", false),
    ("JobsMissing", "The user has no such job.", false),
    ("JobsTooLong", "The body is longer than 102,400 bytes.", false),
    ("JobsTooMany", "Too many attempts, changes or requests within a time.", true),
    ("JobsRefused", "Refused: nothing was done.", false),
    ("JobsFault", "The outcome is unknown: it may have been done.", false),
    ("JobsBusy", "Nothing was done; later it may be.", true),
    ("JobsUnknown", "No answer in time: it may have been done, or be done.", false),
];

/// The document of every operation that is served.
#[must_use]
pub fn document() -> OpenApi {
    let mut schemas = Schemas::new();
    let mut paths = Paths::new();
    for route in routes() {
        let described = describe(&route, &mut schemas);
        paths.add_path_operation(route.path, vec![http_method(route.method)], described);
    }
    let _reference = of::<Message<'static>>(&mut schemas);
    let mut components =
        ComponentsBuilder::new().security_scheme(TOKEN, token()).schemas_from_iter(schemas);
    for (name, description, tells_when) in FAILURES {
        components = components.response(name, failure(name, description, tells_when));
    }
    let info = InfoBuilder::new().title("Jobs").version("1.0").description(Some(ABOUT));
    OpenApiBuilder::new()
        .info(info.build())
        .paths(paths)
        .components(Some(components.build()))
        .build()
}

fn describe(route: &Route<Handler>, schemas: &mut Schemas) -> utoipa::openapi::path::Operation {
    let row = ROWS.iter().find(|row| row.method == route.method && row.path == route.path);
    let is_protected = route.security == Security::Bearer;
    let mut success = ResponseBuilder::new().description("Success.");
    if let Some(reply) = row.and_then(|row| row.reply) {
        let content = ContentBuilder::new().schema(Some(reply(schemas))).build();
        success = success.content(JSON, content);
    }
    let mut described = OperationBuilder::new()
        .summary(row.map(|row| row.summary))
        .operation_id(row.map(|row| row.id))
        .tag(if is_protected { "jobs" } else { "users" })
        .response("200", success.build())
        .response("403", denied())
        .request_body(row.and_then(|row| row.body).map(request_body));
    for (status, name) in [
        ("400", "JobsInvalid"),
        ("401", "JobsUnauthenticated"),
        ("413", "JobsTooLong"),
        ("429", "JobsTooMany"),
        ("4XX", "JobsRefused"),
        ("500", "JobsFault"),
        ("503", "JobsBusy"),
        ("504", "JobsUnknown"),
    ] {
        described = described.response(status, Ref::from_response_name(name));
    }
    if route.path.ends_with("/{id}") {
        described =
            described.parameter(id()).response("404", Ref::from_response_name("JobsMissing"));
    }
    if is_protected {
        described = described.security(SecurityRequirement::new(TOKEN, [""; 0]));
    }
    described.build()
}

fn request_body(schema: fn() -> Schema) -> RequestBody {
    let content = ContentBuilder::new().schema(Some(schema())).build();
    RequestBodyBuilder::new().content(JSON, content).required(Some(Required::True)).build()
}

fn id() -> utoipa::openapi::path::Parameter {
    let text = ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some("The `_id` of a job: 24 hexadecimal digits."));
    ParameterBuilder::new()
        .name("id")
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .schema(Some(text.build()))
        .build()
}

fn token() -> SecurityScheme {
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("JWT");
    SecurityScheme::Http(bearer.build())
}

/// What [`Refusal`](super::refusal::Refusal) writes: an object, where all requests of an address are
/// limited a line of text.
fn failure(name: &str, description: &str, tells_when: bool) -> Response {
    let message = ContentBuilder::new().schema(Some(Ref::from_schema_name("Message"))).build();
    let mut response = ResponseBuilder::new().description(description).content(JSON, message);
    if name == "JobsTooMany" {
        let text = ObjectBuilder::new().schema_type(Type::String).build();
        response = response.content("text/plain", ContentBuilder::new().schema(Some(text)).build());
    }
    if tells_when {
        let seconds = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).build();
        response = response.header("Retry-After", Header::new(seconds));
    }
    response.build()
}

/// A reference to the schema of `T`.
fn of<T: ToSchema>(schemas: &mut Schemas) -> RefOr<Schema> {
    T::schemas(schemas);
    schemas.push((T::name().into_owned(), T::schema()));
    Ref::from_schema_name(T::name()).into()
}

/// What [`listing`](super::listing) writes piece by piece.
fn list(schemas: &mut Schemas) -> RefOr<Schema> {
    let jobs = ArrayBuilder::new().items(of::<JobFields<'static>>(schemas));
    let count = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0));
    ObjectBuilder::new()
        .property("jobs", jobs)
        .required("jobs")
        .property("count", count)
        .required("count")
        .build()
        .into()
}

#[cfg(test)]
mod tests {
    use super::super::email;
    use super::*;

    #[test]
    fn every_route_is_a_row_and_every_row_a_route() {
        let routes: Vec<_> = routes().iter().map(|route| (route.method, route.path)).collect();
        let rows: Vec<_> = ROWS.iter().map(|row| (row.method, row.path)).collect();
        assert_eq!(routes, rows);
    }

    #[test]
    fn what_a_body_must_have_is_what_its_rules_say() {
        let document = serde_json::to_value(document()).unwrap();
        let body = |path: &str, method: &str| {
            document["paths"][path][method]["requestBody"]["content"][JSON]["schema"].clone()
        };
        let job = body("/api/v1/jobs", "post");
        assert_eq!(job["required"], serde_json::json!(["company", "position"]));
        assert_eq!(job["properties"]["company"]["maxLength"], 50);
        assert_eq!(
            job["properties"]["status"]["enum"],
            serde_json::json!(["interview", "declined", "pending"])
        );
        assert_eq!(job, body("/api/v1/jobs/{id}", "patch"));
        let user = body("/api/v1/auth/register", "post");
        assert_eq!(user["properties"]["name"]["minLength"], 3);
        assert_eq!(user["properties"]["password"]["format"], "password");
        assert_eq!(user["properties"]["email"]["pattern"], email::EXPRESSION);
        for text in ["company", "position"] {
            let words = job["properties"][text]["description"].as_str().unwrap();
            assert!(words.contains("UTF-16"), "{words}");
        }
        assert_eq!(user["properties"]["password"]["maxLength"], serde_json::Value::Null);
        let login = body("/api/v1/auth/login", "post");
        assert_eq!(login["required"], serde_json::json!(["email", "password"]));
    }
}
