//! The jobs service (`/api/v1`) as its clients see it: what it takes and refuses, word by word; whose
//! tokens it believes; lists; two people at the same time; and what is left after its processes died.

mod concurrency;
mod crash;
mod lists;
mod long_list;
mod rules;
mod tokens;

use super::http::{Http, Request, Response};
use super::json::Json;
use super::venue::Venue;
use std::io;

/// Settings for tests that log in, register and write more often than people do.
pub(super) const PATIENT: [&str; 8] = [
    "--set",
    "jobs.attempts_per_address=1000000",
    "--set",
    "jobs.attempts_per_account=1000000",
    "--set",
    "jobs.writes_per_minute=0",
    "--set",
    "adapter.deadline_ms=20000",
];

pub(super) const REGISTER: &str = "/api/v1/auth/register";
pub(super) const LOGIN: &str = "/api/v1/auth/login";
pub(super) const JOBS: &str = "/api/v1/jobs";

/// What nobody uses elsewhere, so that it can be looked for in files and output.
pub(super) const PASSWORD: &str = "hush-hush-7c1d";

/// A client, of a user once it has a token.
pub(super) struct Client {
    http: Http,
    pub(super) token: Option<String>,
}

impl Client {
    fn new(venue: &Venue) -> Self {
        Self { http: venue.http(), token: None }
    }

    /// A client of a new user.
    pub(super) fn registered(venue: &Venue, name: &str, email: &str) -> Self {
        let mut client = Self::new(venue);
        let reply = client.call("POST", REGISTER, &registration(name, email, PASSWORD)).ok();
        client.token = Some(reply.text_at("token").to_owned());
        client
    }

    /// Sends a request, with the token if there is one.
    fn send(&mut self, method: &str, target: &str, body: &str) -> io::Result<Response> {
        let mut request = Request::new(method, target);
        if !body.is_empty() {
            request = request.header("Content-Type", "application/json").body(body);
        }
        if let Some(token) = &self.token {
            request = request.header("Authorization", &format!("Bearer {token}"));
        }
        self.http.send(&request)
    }

    /// Sends a request that has to be answered.
    pub(super) fn call(&mut self, method: &str, target: &str, body: &str) -> Response {
        let sent = self.send(method, target, body);
        sent.unwrap_or_else(|error| panic!("no reply ({error}) to {method} {target} {body}"))
    }

    /// Makes a job and gives its id.
    pub(super) fn create(&mut self, company: &str, position: &str) -> String {
        let reply = self.call("POST", JOBS, &job(company, position)).ok();
        reply.at("job").text_at("_id").to_owned()
    }

    /// All jobs, after a look at the count beside them.
    fn list(&mut self) -> Vec<Json> {
        let reply = self.call("GET", JOBS, "").ok();
        assert_eq!(reply.keys(), ["jobs", "count"]);
        let jobs = reply.at("jobs").items().to_vec();
        assert_eq!(reply.integer_at("count"), jobs.len() as i128);
        jobs
    }
}

/// Status and message of an error.
fn error(reply: &Response) -> (u16, String) {
    let body = Json::parse(&reply.body);
    assert_eq!(body.keys(), ["msg"], "{}", reply.body);
    (reply.status, body.text_at("msg").to_owned())
}

pub(super) fn registration(name: &str, email: &str, password: &str) -> String {
    format!(r#"{{"name":"{name}","email":"{email}","password":"{password}"}}"#)
}

pub(super) fn login(email: &str, password: &str) -> String {
    format!(r#"{{"email":"{email}","password":"{password}"}}"#)
}

pub(super) fn job(company: &str, position: &str) -> String {
    format!(r#"{{"company":"{company}","position":"{position}"}}"#)
}
