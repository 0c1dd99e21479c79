//! The document's jobs service, against the contract's table, the route table, and what is answered.

use super::super::jobs::{
    Client, JOBS, LOGIN, PASSWORD, PATIENT, REGISTER, job, login, registration,
};
use super::super::venue::Venue;
use super::document;
use super::schema::check;
use serde_json::{Value, json};
use touchline_adapter::jobs::operations;
use touchline_adapter::route::Security;

const TABLE: &str = include_str!("../../contract/jobs_operations.txt");

/// Fields that this service takes beyond the contract: how far an application is (facts §13).
const BEYOND: [&str; 1] = ["status"];

/// A row of the table.
pub(super) struct Row {
    id: &'static str,
    method: &'static str,
    path: String,
    is_protected: bool,
    /// Name, type, and whether it is required.
    fields: Vec<(&'static str, &'static str, bool)>,
}

impl Row {
    fn read(line: &'static str) -> Self {
        let mut words = line.split_whitespace();
        let mut word = || words.next().unwrap_or_else(|| panic!("a short row: {line}"));
        let (id, method, path, security) = (word(), word(), word(), word());
        let field = |text: &'static str| {
            let (name, kind) = text.split_once(':').expect("name:type");
            (name, kind.trim_end_matches('!'), kind.ends_with('!'))
        };
        Self {
            id,
            method,
            path: format!("/api/v1{path}"),
            is_protected: security == "BEARER",
            fields: words.map(field).collect(),
        }
    }

    fn operation<'a>(&self, document: &'a Value) -> &'a Value {
        &document["paths"][&self.path][self.method.to_lowercase()]
    }
}

pub(super) fn rows() -> Vec<Row> {
    let lines = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let rows: Vec<_> = lines.map(Row::read).collect();
    assert_eq!(rows.len(), 7, "the contract has 7 operations");
    rows
}

#[test]
fn the_route_table_is_the_contracts_table() {
    let served: Vec<_> = operations()
        .into_iter()
        .map(|(method, path, security)| {
            let is_protected = security == Security::Bearer;
            assert!(is_protected || security == Security::None, "{path} asks for something else");
            (method.token(), path.to_owned(), is_protected)
        })
        .collect();
    let rows: Vec<_> =
        rows().into_iter().map(|row| (row.method, row.path, row.is_protected)).collect();
    assert_eq!(served, rows);
}

#[test]
fn the_documents_jobs_service_is_the_contracts_table() {
    let venue = Venue::up(&PATIENT);
    let document = document(&venue);
    let token = &document["components"]["securitySchemes"]["token"];
    assert_eq!((&token["type"], &token["scheme"]), (&json!("http"), &json!("bearer")));
    for row in rows() {
        let (id, operation) = (row.id, row.operation(&document));
        assert_eq!(operation["operationId"], id, "{} {}", row.method, row.path);
        let security = if row.is_protected { json!([{"token": []}]) } else { Value::Null };
        assert_eq!(operation["security"], security, "security of {id}");
        let expected = match row.path.ends_with("/{id}") {
            true => json!([{"name": "id", "in": "path", "required": true, "type": "string"}]),
            false => json!([]),
        };
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let parameters: Vec<_> = parameters
            .map(|found| {
                json!({"name": found["name"], "in": found["in"], "required": found["required"],
                       "type": found["schema"]["type"]})
            })
            .collect();
        assert_eq!(json!(parameters), expected, "parameters of {id}");
        check_body(&row, &operation["requestBody"]);
        assert!(operation["responses"]["200"].is_object(), "success of {id}");
    }
}

/// The body that an operation takes has the contract's fields.
fn check_body(row: &Row, body: &Value) {
    let id = row.id;
    if row.fields.is_empty() {
        return assert_eq!(*body, Value::Null, "body of {id}");
    }
    assert_eq!(body["required"], true, "body of {id}");
    let schema = &body["content"]["application/json"]["schema"];
    assert_eq!(schema["type"], "object", "body of {id}");
    let is_required = |name: &str| {
        schema["required"].as_array().into_iter().flatten().any(|required| required == name)
    };
    let mut found: Vec<_> = schema["properties"]
        .as_object()
        .expect("it has fields")
        .iter()
        .filter(|(name, _)| !BEYOND.contains(&&***name) || is_required(name))
        .map(|(name, field)| {
            (&**name, field["type"].as_str().unwrap_or_default(), is_required(name))
        })
        .collect();
    let mut expected = row.fields.clone();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected, "fields of {id}");
}

#[test]
fn what_the_jobs_service_answers_is_what_the_document_says() {
    let venue = Venue::up(&PATIENT);
    let document = document(&venue);
    let mut ada = Client::registered(&venue, "Ada", "ada@example.org");
    let path = format!("{JOBS}/{}", ada.create("ACME", "clerk"));
    let register = |name| registration(name, "eve@example.org", PASSWORD);
    let long = format!("{{\"company\":\"{}\"}}", "x".repeat(110_000));
    let wrong = login("ada@example.org", "not this one");
    let rows = rows();
    let mut reached = Vec::new();
    for (id, target, body, status) in [
        ("RegisterUser", REGISTER, register("Eve"), 200),
        ("RegisterUser", REGISTER, register("Eve"), 400),
        ("LoginUser", LOGIN, login("ada@example.org", PASSWORD), 200),
        ("LoginUser", LOGIN, wrong, 401),
        ("LoginUser", LOGIN, "{".to_owned(), 400),
        ("createJob", JOBS, job("ACME", "chief"), 200),
        ("createJob", JOBS, "{}".to_owned(), 400),
        ("createJob", JOBS, long, 413),
        ("getAllJobs", JOBS, String::new(), 200),
        ("getJob", &*path, String::new(), 200),
        ("updateJob", &*path, job("ACME", "clerk"), 200),
        ("deleteJob", &*path, String::new(), 200),
        ("deleteJob", &*path, String::new(), 404),
        ("getJob", &*path, String::new(), 404),
        ("updateJob", &*path, job("ACME", "clerk"), 404),
    ] {
        let row = rows.iter().find(|row| row.id == id).expect("an operation of the table");
        let reply = ada.call(row.method, target, &body);
        assert_eq!(reply.status, status, "{id}: {}", reply.body);
        let outcome = check(&document, row.operation(&document), &reply);
        assert_eq!(outcome, Ok(()), "{id}: {status} {}", reply.body);
        reached.extend((status == 200).then_some(id));
    }
    ada.token = None;
    for row in rows.iter().filter(|row| row.is_protected) {
        let reply = ada.call(row.method, &row.path, "");
        assert_eq!(reply.status, 401, "{}", row.id);
        assert_eq!(check(&document, row.operation(&document), &reply), Ok(()), "{}", row.id);
    }
    reached.sort_unstable();
    reached.dedup();
    assert_eq!(reached.len(), rows.len(), "every operation has succeeded once");
}
