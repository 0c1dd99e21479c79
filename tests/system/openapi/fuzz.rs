//! Requests made from the document's own schemas: sound ones, ones at the bounds, and ones that are wrong in
//! every way that could be thought of, with and without credentials, for every operation of both services.
//! Each must be answered, as the document says, and none with 5XX but by 503.
//!
//! `TOUCHLINE_CALLS=100000` makes a long run; `TOUCHLINE_SEED=N` repeats one that failed.

mod requests;
mod values;

use super::super::contract::{Client, rows};
use super::super::jobs::{self, PASSWORD, PATIENT};
use super::super::random::Random;
use super::super::venue::{UNLIMITED, Venue};
use super::schema::check;
use requests::Requests;
use serde_json::Value;
use std::collections::BTreeMap;

/// Requests of a short run.
const CALLS: u64 = 4000;

/// Failures after which a run is given up.
const FAILURES: usize = 5;

/// An operation of the document.
struct Operation {
    method: String,
    path: String,
    described: Value,
    /// Parameters, or a body, with which it succeeds or may succeed.
    examples: Vec<String>,
}

/// Further examples: what comes to rest, what trades, and what is there by its number.
const EXAMPLES: [(&str, &str); 9] = [
    (
        "POST /api/v3/order",
        "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.1&price=19000",
    ),
    (
        "POST /api/v3/order",
        "symbol=BTCUSDT&side=SELL&type=LIMIT&timeInForce=GTC&quantity=0.2&price=20000",
    ),
    (
        "POST /api/v3/order",
        "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=IOC&quantity=0.1&price=20000",
    ),
    (
        "POST /api/v3/order/test",
        "symbol=BTCUSDT&side=BUY&type=STOP_LOSS_LIMIT&timeInForce=GTC&quantity=0.1&price=21000\
         &stopPrice=20500",
    ),
    ("DELETE /api/v3/order", "symbol=BTCUSDT&orderId=7"),
    ("GET /api/v3/order", "symbol=BTCUSDT&orderId=7"),
    ("GET /api/v3/orderList", "orderListId=1"),
    ("DELETE /api/v3/orderList", "symbol=BTCUSDT&orderListId=1"),
    ("GET /api/v3/allOrders", "symbol=BTCUSDT&limit=1000"),
];

impl Operation {
    fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// Whether a request must prove something by this security scheme.
    fn needs(&self, scheme: &str) -> bool {
        let requirements = self.described["security"].as_array().into_iter().flatten();
        requirements.into_iter().any(|requirement| !requirement[scheme].is_null())
    }

    /// The schema of its body, if it has one.
    fn body(&self) -> Option<&Value> {
        let schema = &self.described["requestBody"]["content"]["application/json"]["schema"];
        (!schema.is_null()).then_some(schema)
    }
}

fn operations(document: &Value) -> Vec<Operation> {
    let paths = document["paths"].as_object().expect("the document has paths");
    let operations: Vec<_> = paths
        .iter()
        .flat_map(|(path, methods)| {
            let methods = methods.as_object().expect("a path has methods");
            methods.iter().map(move |(method, described)| {
                let method = method.to_uppercase();
                let examples = examples(&format!("{method} {path}"));
                let (path, described) = (path.clone(), described.clone());
                Operation { method, path, described, examples }
            })
        })
        .collect();
    assert_eq!(operations.len(), 37, "30 of trading and 7 of jobs");
    operations
}

fn examples(operation: &str) -> Vec<String> {
    let of_contract = rows().into_iter().filter(|row| row.name() == operation);
    let further = EXAMPLES.iter().filter(|(name, _)| *name == operation);
    let mut all: Vec<String> =
        of_contract.map(|row| super::answered(&row)).map(str::to_owned).collect();
    all.extend(further.map(|(_, parameters)| (*parameters).to_owned()));
    if operation.ends_with("/auth/login") {
        all.push(jobs::login("ada@example.org", PASSWORD));
    }
    all.retain(|example| !example.is_empty());
    all
}

/// How often an operation was answered with which status.
type Tally = BTreeMap<String, BTreeMap<u16, u64>>;

#[test]
fn whatever_is_sent_is_answered_as_the_document_says() {
    let read = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let calls = read("TOUCHLINE_CALLS").unwrap_or(CALLS);
    let seed = read("TOUCHLINE_SEED").unwrap_or_else(Random::fresh_seed);
    println!("TOUCHLINE_SEED={seed}");
    let venue = Venue::up(&[&UNLIMITED[..], &PATIENT[..]].concat());
    let document = super::document(&venue);
    let operations = operations(&document);
    let users = ["ada", "eve"].map(|name| {
        let client = jobs::Client::registered(&venue, name, &format!("{name}@example.org"));
        client.token.expect("a registration gives a token")
    });
    super::trade(&venue, &mut Client { a: venue.a(), http: venue.http() });
    let mut requests = Requests::new(seed, &venue, users);
    let mut http = venue.http();
    let (mut tally, mut failures) = (Tally::new(), Vec::new());
    for number in 0..calls {
        let operation = &operations[(number % operations.len() as u64) as usize];
        let request = requests.request(operation);
        let outcome = match http.send(&request) {
            Ok(reply) => {
                requests.learn(&reply);
                *tally.entry(operation.name()).or_default().entry(reply.status).or_default() += 1;
                match reply.status {
                    500..=502 | 504.. => Err(format!("{} {}", reply.status, reply.body)),
                    _ => check(&document, &operation.described, &reply)
                        .map_err(|why| format!("{why}\n{} {}", reply.status, reply.body)),
                }
            }
            Err(error) => Err(format!("no reply: {error}")),
        };
        if let Err(why) = outcome {
            failures.push(format!("request {number}, {}: {why}\n{request:?}", operation.name()));
        }
        assert!(failures.len() < FAILURES, "{}", failures.join("\n\n"));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    for (name, statuses) in &tally {
        println!("{name}: {statuses:?}");
    }
    // By chance a few may fail every time.
    let succeeded = tally.values().filter(|statuses| statuses.contains_key(&200)).count();
    assert!(calls < CALLS || succeeded >= operations.len() - 4, "{succeeded} ever succeeded");
}
