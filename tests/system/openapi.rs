//! The OpenAPI document as it is served, against the contracts' tables and against what the services
//! really answer; and the page that shows it.

mod fuzz;
mod jobs;
mod schema;

use super::contract::{BEYOND, Client, Row, rows, sound};
use super::http::Request;
use super::venue::{UNLIMITED, Venue};
use schema::conforms;
use serde_json::{Value, json};

fn document(venue: &Venue) -> Value {
    let response = venue.http().get("/openapi.json");
    assert_eq!(response.status, 200);
    assert_eq!(response.header("Content-Type"), Some("application/json"));
    assert_eq!(response.header("Access-Control-Allow-Origin"), Some("*"));
    serde_json::from_str(&response.body).expect("the document is JSON")
}

fn operation<'a>(document: &'a Value, row: &Row) -> &'a Value {
    &document["paths"][row.path][row.method.to_lowercase()]
}

/// What the contract's kinds of parameters are in JSON.
fn json_type(kind: &str) -> &'static str {
    match kind {
        "INT" | "LONG" | "DEPTH" => "integer",
        _ => "string",
    }
}

fn weight(row: &Row) -> Value {
    match row.weight.split_once('/') {
        Some((with, without)) => {
            json!({"symbol": number(with), "all": number(without)})
        }
        None if row.weight == "by-limit" => json!({"100": 1, "500": 5, "1000": 10, "5000": 50}),
        None => json!(number(row.weight)),
    }
}

fn number(text: &str) -> u32 {
    text.parse().expect("a number")
}

#[test]
fn the_document_is_the_contracts_table() {
    let venue = Venue::up(&UNLIMITED);
    let document = document(&venue);
    assert_eq!(document["openapi"], "3.1.0");
    let mut described = jobs::rows().len();
    for row in &rows() {
        let (name, operation) = (row.name(), operation(&document, row));
        assert!(operation.is_object(), "{name} is not described");
        described += 1;
        let mut expected: Vec<_> = row
            .parameters
            .iter()
            .map(|parameter| (parameter.name, parameter.is_required, json_type(parameter.kind)))
            .collect();
        if row.is_signed() {
            expected.extend([("recvWindow", false, "integer"), ("timestamp", true, "integer")]);
        }
        let in_contract = |name: &str| !BEYOND.contains(&(row.path, name));
        let found: Vec<_> = operation["parameters"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|found| {
                let text = |value: &Value| value.as_str().expect("a string").to_owned();
                (text(&found["name"]), found["required"] == true, text(&found["schema"]["type"]))
            })
            .filter(|(name, ..)| in_contract(name))
            .collect();
        let found: Vec<_> =
            found.iter().map(|(name, required, kind)| (&**name, *required, &**kind)).collect();
        assert_eq!(found, expected, "parameters of {name}");
        let security = match (row.needs_key(), row.is_signed()) {
            (true, true) => json!([{"key": [], "signature": []}]),
            (true, false) => json!([{"key": []}]),
            (false, _) => Value::Null,
        };
        assert_eq!(operation["security"], security, "security of {name}");
        assert_eq!(operation["x-request-weight"], weight(row), "weight of {name}");
    }
    let paths = document["paths"].as_object().expect("an object");
    let methods = paths.values().map(|path| path.as_object().expect("an object").len());
    assert_eq!(
        methods.sum::<usize>(),
        described,
        "the document describes what the contract has not"
    );
}

#[test]
fn what_the_service_answers_is_what_the_document_says() {
    let venue = Venue::up(&UNLIMITED);
    let document = document(&venue);
    let mut client = Client { a: venue.a(), http: venue.http() };
    trade(&venue, &mut client);
    let (mut checked, mut failures) = (0, Vec::new());
    for row in &rows() {
        let request = client.request(row, answered(row));
        let response = client.http.call(&request);
        let value = serde_json::from_str(&response.body).expect("a reply is JSON");
        let schema = match response.status {
            200 => {
                checked += 1;
                &operation(&document, row)["responses"]["200"]["content"]["application/json"]["schema"]
            }
            _ => &document["components"]["schemas"]["Error"],
        };
        if let Err(why) = conforms(&document, schema, &value) {
            failures.push(format!("{}: {why}\n{}", row.name(), response.body));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    // The two that are about a stream are asked about one that does not exist.
    assert_eq!(checked, rows().len() - 2);
}

#[test]
fn a_denied_address_gets_what_the_document_says() {
    let venue = Venue::up(&[
        "--set",
        "adapter.trusted_proxies=[\"127.0.0.1\"]",
        "--set",
        "adapter.denied_addresses=[\"2001:db8::/32\"]",
    ]);
    let document = document(&venue);
    let mut http = venue.http();
    let paths = document["paths"].as_object().expect("an object");
    for (path, operations) in paths {
        for (method, operation) in operations.as_object().expect("an object") {
            let request = Request::new(&method.to_uppercase(), path.replace("{id}", "1"));
            let response = http.call(&request.header("X-Forwarded-For", "2001:db8::1"));
            assert_eq!(response.status, 403, "{method} {path}");
            let checked = schema::check(&document, operation, &response);
            assert_eq!(checked, Ok(()), "{method} {path}");
        }
    }
}

/// A trade, an open order, and two open lists: something to answer with.
fn trade(venue: &Venue, client: &mut Client) {
    venue.b().limit("BTCUSDT", "SELL", "1", "20000");
    client.a.limit("BTCUSDT", "BUY", "0.5", "20000");
    client.a.limit("BTCUSDT", "BUY", "0.1", "15000");
    for name in ["first", "second"] {
        let list = format!(
            "symbol=BTCUSDT&side=SELL&quantity=0.1&price=30000&stopPrice=10000&listClientOrderId={name}"
        );
        let response = client.a.call("POST", "/api/v3/order/oco", &list);
        assert_eq!(response.status, 200, "{}", response.body);
    }
}

/// Parameters with which an operation succeeds behind [`trade`].
fn answered(row: &Row) -> &'static str {
    match (row.method, row.path) {
        ("POST", "/api/v3/order" | "/api/v3/order/test") => {
            "symbol=BTCUSDT&side=BUY&type=MARKET&quantity=0.1"
        }
        ("POST", "/api/v3/order/oco") => {
            "symbol=BTCUSDT&side=SELL&quantity=0.1&price=30000&stopPrice=10000&listClientOrderId=third\
             &stopLimitPrice=9999&stopLimitTimeInForce=GTC&newOrderRespType=FULL"
        }
        ("GET", "/api/v3/order") => "symbol=BTCUSDT&orderId=2",
        ("DELETE", "/api/v3/order") => "symbol=BTCUSDT&orderId=3",
        ("DELETE", "/api/v3/orderList") => "symbol=BTCUSDT&listClientOrderId=third",
        ("GET", "/api/v3/orderList") => "listClientOrderId=first",
        _ => sound(row),
    }
}

#[test]
fn the_page_is_whole_and_asks_nobody_else() {
    let venue = Venue::up(&UNLIMITED);
    let shown = venue.ready_line("  interface ");
    assert_eq!(shown, format!("{}/docs/", venue.environment("BASE_URL")));
    let mut http = venue.http();
    let response = http.get("/docs");
    assert_eq!((response.status, response.header("Location")), (308, Some("docs/")));
    let page = http.get("/docs/");
    assert_eq!((page.status, page.header("Content-Type")), (200, Some("text/html")));
    let policy = page.header("Content-Security-Policy").expect("a policy");
    assert!(policy.starts_with("default-src 'self'"), "{policy}");
    let is_file = |part: &&str| part.ends_with(".js") || part.ends_with(".css");
    let files: Vec<_> = page.body.split('"').filter(is_file).collect();
    assert!(files.len() >= 5, "{}", page.body);
    for file in files {
        let file = file.trim_start_matches("./");
        assert_eq!(http.get(&format!("/docs/{file}")).status, 200, "{file}");
    }
    let settings = http.get("/docs/swagger-initializer.js");
    assert!(settings.body.contains("../openapi.json"), "{}", settings.body);
    for body in [&page.body, &settings.body] {
        assert!(!body.contains("http://") && !body.contains("https://"), "{body}");
    }
    assert!(settings.body.contains("\"validatorUrl\": \"none\""), "{}", settings.body);
    assert_eq!(http.get("/docs/none").status, 404);
    let wrong = http.call(&Request::new("POST", "/openapi.json"));
    assert_eq!((wrong.status, wrong.header("Allow")), (405, Some("GET, HEAD, OPTIONS")));
    let trace = http.call(&Request::new("TRACE", "/openapi.json"));
    assert_eq!((trace.status, trace.header("Allow")), (405, Some("GET, HEAD, OPTIONS")));
    assert!(http.get("/api/v3/ping").status == 200 && http.is_kept());
}
