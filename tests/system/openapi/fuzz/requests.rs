//! Requests of an operation: its parameters or its body, headers, and what is to prove who sends it. Called
//! by [`super`].

use super::super::super::http::{Key, Request, Response, now_ms};
use super::super::super::venue::Venue;
use super::Operation;
use super::values::{Kind, Values};
use serde_json::Value;
use std::fmt::Write as _;

/// Names of headers that mean something to somebody. What ends a connection or tells another length of the
/// body is not among them: those have tests of their own.
const HEADERS: [&str; 16] = [
    "Accept",
    "Accept-Encoding",
    "Authorization",
    "Content-Encoding",
    "Content-Type",
    "Cookie",
    "If-None-Match",
    "If-Modified-Since",
    "Origin",
    "Range",
    "Referer",
    "User-Agent",
    "X-Forwarded-For",
    "X-HTTP-Method-Override",
    "X-Api-Key",
    "X-Unheard-Of",
];

/// Longest header value that is sent: the front takes no head beyond 16 KiB.
const VALUE_BYTES_MAX: usize = 2000;

/// What a query may end with that is no parameter, or not well escaped.
const ODD_ENDS: [&str; 8] = ["&", "&&=", "=", "&%", "&a=%ff", "&a=%zz", "?", "#"];

/// Jobs that are remembered.
const JOBS_KEPT: usize = 20;

/// A source of requests.
pub(super) struct Requests {
    values: Values,
    key: Key,
    key_header: String,
    tokens: [String; 2],
    /// Ids of jobs, and names of streams, that were seen.
    seen: Vec<String>,
}

impl Requests {
    pub(super) fn new(seed: u64, venue: &Venue, tokens: [String; 2]) -> Self {
        let key_header = format!("{}-APIKEY", venue.environment("HEADER_PREFIX"));
        Self { values: Values::new(seed), key: venue.key_a(), key_header, tokens, seen: Vec::new() }
    }

    /// Remembers what a reply names.
    pub(super) fn learn(&mut self, reply: &Response) {
        let Ok(value) = serde_json::from_str::<Value>(&reply.body) else { return };
        let named = [&value["job"]["_id"], &value["listenKey"]];
        self.seen.extend(named.into_iter().filter_map(|name| Some(name.as_str()?.to_owned())));
        self.seen.drain(..self.seen.len().saturating_sub(JOBS_KEPT));
    }

    /// A request of this operation: every other one sound in all its parts.
    pub(super) fn request(&mut self, operation: &Operation) -> Request {
        let is_sound = self.values.once_in(2);
        let mut path = String::new();
        let mut parameters = self.parameters(operation, is_sound, &mut path);
        if operation.body().is_none() && !operation.examples.is_empty() && self.values.once_in(2) {
            parameters = self.example(operation, &parameters, is_sound);
        }
        if !is_sound && self.values.once_in(6) {
            let more = [self.values.absurd(), self.values.absurd()];
            parameters.push(more.into());
        }
        let mut query = join(&parameters);
        if operation.needs("signature") {
            self.sign(&mut query, is_sound);
        }
        if !is_sound && self.values.once_in(10) {
            let odd = *self.values.pick(&ODD_ENDS);
            query.push_str(odd);
        }
        let in_body = operation.method != "GET" && operation.body().is_none();
        let mut request = if in_body && !query.is_empty() && self.values.once_in(2) {
            Request::new(&operation.method, path).form(query)
        } else if query.is_empty() {
            Request::new(&operation.method, path)
        } else {
            Request::new(&operation.method, format!("{path}?{query}"))
        };
        if let Some(schema) = operation.body() {
            let kind = if is_sound { Kind::Sound } else { self.values.unsound() };
            let body = match operation.examples.first() {
                Some(example) if is_sound && self.values.once_in(2) => example.clone(),
                _ => self.values.body(schema, kind),
            };
            request = request.header("Content-Type", "application/json").body(body);
        }
        if operation.needs("key") && (is_sound || !self.values.once_in(6)) {
            request = request.header(&self.key_header, &self.key.api);
        }
        if operation.needs("token") {
            request = self.bear(request, is_sound);
        }
        if !is_sound && self.values.once_in(2) {
            request = self.dress(request);
        }
        request
    }

    /// Values for the operation's parameters; those of the path go there.
    fn parameters(
        &mut self,
        operation: &Operation,
        is_sound: bool,
        path: &mut String,
    ) -> Vec<(String, String)> {
        path.push_str(&operation.path);
        let mut parameters = Vec::new();
        for parameter in operation.described["parameters"].as_array().into_iter().flatten() {
            let name = parameter["name"].as_str().expect("parameters have names").to_owned();
            if ["timestamp", "recvWindow"].contains(&&*name) {
                continue;
            }
            let kind = match is_sound || self.values.once_in(2) {
                true => Kind::Sound,
                false => self.values.unsound(),
            };
            let mut value = self.values.text(&parameter["schema"], kind);
            let is_named = ["id", "listenKey"].contains(&&*name);
            if is_named && kind == Kind::Sound && !self.seen.is_empty() {
                value.clone_from(self.values.pick(&self.seen));
            }
            if parameter["in"] == "path" {
                // An empty segment would be another operation's path.
                let value = if value.is_empty() { "0".to_owned() } else { escaped(&value) };
                *path = path.replace(&format!("{{{name}}}"), &value);
                continue;
            }
            let is_required = parameter["required"] == true;
            let is_left_out = match (is_required, is_sound) {
                (true, true) => false,
                (true, false) => self.values.once_in(8),
                (false, _) => !self.values.once_in(3),
            };
            if !is_left_out {
                parameters.push((name, value));
            }
        }
        parameters
    }

    /// The parameters of an example, now and then with another value of one; of a request that need not be
    /// sound also with one more, without one, or with one twice.
    fn example(
        &mut self,
        operation: &Operation,
        others: &[(String, String)],
        is_sound: bool,
    ) -> Vec<(String, String)> {
        let example = self.values.pick(&operation.examples).clone();
        let pairs = example.split('&').filter_map(|pair| pair.split_once('='));
        let mut parameters: Vec<(String, String)> =
            pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        if !others.is_empty() && self.values.once_in(2) {
            let (name, value) = self.values.pick(others).clone();
            match parameters.iter_mut().find(|(own, _)| *own == name) {
                Some(own) => own.1 = value,
                None if is_sound => {}
                None => parameters.push((name, value)),
            }
        }
        if !is_sound && self.values.once_in(3) {
            let at = self.values.random.below(parameters.len() as u64) as usize;
            let removed = parameters.remove(at);
            if self.values.once_in(3) {
                parameters.extend([removed.clone(), removed]);
            }
        }
        parameters
    }

    /// Adds what a signed request has, or something like it.
    fn sign(&mut self, query: &mut String, is_sound: bool) {
        let time = match self.values.random.below(12) {
            0 if !is_sound => self.values.absurd(),
            1 if !is_sound => (now_ms() - 100_000).to_string(),
            2 if !is_sound => (now_ms() + 100_000).to_string(),
            _ => now_ms().to_string(),
        };
        let mut parameters = vec![("timestamp".to_owned(), time)];
        if !is_sound && self.values.once_in(6) {
            let window = *self.values.pick(&["0", "5000", "60000", "60001", "-1", "x", ""]);
            parameters.push(("recvWindow".to_owned(), window.to_owned()));
        }
        if !query.is_empty() {
            query.push('&');
        }
        query.push_str(&join(&parameters));
        *query = match self.values.random.below(12) {
            0 if !is_sound => return,
            1 if !is_sound => format!("{query}&signature={}", escaped(&self.values.absurd())),
            2 if !is_sound => format!("{}&late=1", self.key.signed_as_is(query)),
            _ => self.key.signed_as_is(query),
        };
    }

    /// Adds a token, or something like it.
    fn bear(&mut self, request: Request, is_sound: bool) -> Request {
        let [own, other] = self.tokens.clone();
        let header = match self.values.random.below(10) {
            0 if !is_sound => return request,
            1 if !is_sound => printable(&self.values.absurd()),
            2 if !is_sound => format!("Bearer {}", printable(&self.values.absurd())),
            3 if !is_sound => format!("bearer {own}"),
            4 if !is_sound => format!("Bearer {other}"),
            5 if !is_sound => {
                let length = self.values.random.below(own.len() as u64) as usize;
                format!("Bearer {}", &own[..length])
            }
            _ => format!("Bearer {own}"),
        };
        request.header("Authorization", &header)
    }

    /// Adds headers that nobody asked for.
    fn dress(&mut self, mut request: Request) -> Request {
        for _ in 0..=self.values.random.below(3) {
            let name = *self.values.pick(&HEADERS);
            request = request.header(name, &printable(&self.values.absurd()));
        }
        request
    }
}

fn join(parameters: &[(String, String)]) -> String {
    let pairs =
        parameters.iter().map(|(name, value)| format!("{}={}", escaped(name), escaped(value)));
    pairs.collect::<Vec<_>>().join("&")
}

/// Percent-encoded, but for what needs it nowhere.
fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |mut escaped, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' => {
                escaped.push(byte.into());
            }
            _ => write!(escaped, "%{byte:02X}").expect("writing to a string does not fail"),
        }
        escaped
    })
}

/// What of a text may stand in a header.
fn printable(text: &str) -> String {
    let mut text: String = text.chars().filter(|letter| !letter.is_control()).collect();
    let end = text.floor_char_boundary(VALUE_BYTES_MAX);
    text.truncate(end);
    text
}
