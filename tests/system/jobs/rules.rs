//! Every rule about what is sent, row by row: status and text of each refusal, and the exact shape of
//! what is taken.

use super::*;
use crate::system::json::Json;
use rustix::process::Signal;
use std::fs;
use std::path::Path;

const NO_COMPANY: &str = "Please provide company name";
const NO_POSITION: &str = "Please provide position";
const NEITHER: &str = "Please provide position,Please provide company name";
const EMPTY: &str = "Company or Position fields cannot be empty";
const INVALID_EMAIL: &str = "Please provide a valid email";

fn venue() -> Venue {
    Venue::up(&PATIENT)
}

fn is_id(text: &str) -> bool {
    text.len() == 24 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_time(text: &str) -> bool {
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape == "0000-00-00T00:00:00.000Z"
}

fn check_job(found: &Json, fields: (&str, &str, &str)) {
    let keys =
        ["status", "_id", "company", "position", "createdBy", "createdAt", "updatedAt", "__v"];
    assert_eq!(found.keys(), keys);
    let (company, position, status) = fields;
    assert_eq!(found.text_at("company"), company);
    assert_eq!(found.text_at("position"), position);
    assert_eq!(found.text_at("status"), status);
    assert!(is_id(found.text_at("_id")) && is_id(found.text_at("createdBy")), "{found:?}");
    assert!(is_time(found.text_at("createdAt")) && is_time(found.text_at("updatedAt")));
    assert_eq!(found.integer_at("__v"), 0);
}

#[test]
fn the_seven_operations_answer_in_their_shapes() {
    let venue = venue();
    let mut ada = Client::new(&venue);
    let reply = ada.call("POST", REGISTER, &registration("Ada", "ada@example.org", PASSWORD));
    let body = reply.ok();
    assert_eq!((body.keys(), body.at("user").keys()), (vec!["user", "token"], vec!["name"]));
    assert_eq!(body.at("user").text_at("name"), "Ada");
    assert_eq!(reply.header("content-type"), Some("application/json; charset=utf-8"));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    assert_eq!(reply.header("access-control-allow-origin"), Some("*"));

    let body = ada.call("POST", LOGIN, &login("ada@example.org", PASSWORD)).ok();
    assert_eq!((body.keys(), body.at("user").keys()), (vec!["user", "token"], vec!["name"]));
    ada.token = Some(body.text_at("token").to_owned());

    assert_eq!(ada.call("GET", JOBS, "").body, r#"{"jobs":[],"count":0}"#);
    let made = ada.call("POST", JOBS, &job("ACME", "clerk")).ok();
    assert_eq!(made.keys(), ["job"]);
    check_job(made.at("job"), ("ACME", "clerk", "pending"));
    assert_eq!(made.at("job").text_at("createdAt"), made.at("job").text_at("updatedAt"));
    let path = format!("{JOBS}/{}", made.at("job").text_at("_id"));
    assert_eq!(ada.call("GET", &path, "").ok(), made);
    assert_eq!(ada.list(), [made.at("job").clone()]);

    let change = r#"{"company":"A <b> & \"c\"","position":"ä€😀","status":"interview","createdBy":"x","_id":"y","__v":9}"#;
    let changed = ada.call("PATCH", &path, change).ok();
    check_job(changed.at("job"), ("A <b> & \"c\"", "ä€😀", "interview"));
    for same in ["_id", "createdBy", "createdAt"] {
        assert_eq!(changed.at("job").at(same), made.at("job").at(same), "{same}");
    }
    assert!(changed.at("job").text_at("updatedAt") >= made.at("job").text_at("updatedAt"));
    assert_eq!(ada.call("GET", &path, "").ok(), changed);
    let again = ada.call("PATCH", &path, &job("ACME", "chief")).ok();
    check_job(again.at("job"), ("ACME", "chief", "interview"));

    let gone = ada.call("DELETE", &path, "");
    assert_eq!((gone.status, &*gone.body), (200, ""));
    let id = made.at("job").text_at("_id");
    let missing = (404, format!("No job with id {id}"));
    for (method, body) in
        [("GET", String::new()), ("PATCH", job("a", "b")), ("DELETE", String::new())]
    {
        assert_eq!(error(&ada.call(method, &path, &body)), missing, "{method}");
    }
    assert_eq!(ada.list(), []);
}

#[test]
fn what_a_registration_must_have() {
    let venue = venue();
    let mut client = Client::registered(&venue, "Ada", "ada@example.org");
    client.token = None;
    let name = |name: &str| registration(name, "b@example.org", PASSWORD);
    let email = |email: &str| registration("Bob", email, PASSWORD);
    let password = |password: &str| registration("Bob", "b@example.org", password);
    let long = "n".repeat(51);
    let duplicate = "Duplicate value entered for email field, please choose another value";
    let without = "Please provide password,Please provide email,Please provide name";
    for (body, message) in [
        (String::new(), without.to_owned()),
        ("{}".to_owned(), without.to_owned()),
        ("[]".to_owned(), without.to_owned()),
        (
            r#"{"name":null,"email":null,"password":null}"#.to_owned(),
            "Please provide name,Please provide email,Please provide password".to_owned(),
        ),
        (name(""), "Please provide name".to_owned()),
        (
            name("ab"),
            "Path `name` (`ab`) is shorter than the minimum allowed length (3).".to_owned(),
        ),
        (
            name(&long),
            format!("Path `name` (`{long}`) is longer than the maximum allowed length (50)."),
        ),
        (email(""), "Please provide email".to_owned()),
        (email("bob"), INVALID_EMAIL.to_owned()),
        (email("bob@example"), INVALID_EMAIL.to_owned()),
        (email("bob@@example.org"), INVALID_EMAIL.to_owned()),
        (email("b ob@example.org"), INVALID_EMAIL.to_owned()),
        (password(""), "Please provide password".to_owned()),
        (
            password("12345"),
            "Path `password` is shorter than the minimum allowed length (6).".to_owned(),
        ),
        (
            r#"{"name":"ab","email":"b","password":"12345"}"#.to_owned(),
            format!(
                "Path `name` (`ab`) is shorter than the minimum allowed length (3).,{INVALID_EMAIL},\
                  Path `password` is shorter than the minimum allowed length (6)."
            ),
        ),
        (
            r#"{"name":["Bob"],"email":{"a":1},"password":"123456"}"#.to_owned(),
            "Cast to string failed for value of type Array at path \"name\",\
          Cast to string failed for value of type Object at path \"email\""
                .to_owned(),
        ),
        (registration("Bob", "ada@example.org", PASSWORD), duplicate.to_owned()),
    ] {
        assert_eq!(error(&client.call("POST", REGISTER, &body)), (400, message), "{body}");
    }
    // As it was sent: another case is another address.
    assert_eq!(client.call("POST", REGISTER, &email("ADA@example.org")).status, 200);
    let numbers = r#"{"name":12345,"email":"n@example.org","password":123456}"#;
    let reply = client.call("POST", REGISTER, numbers).ok();
    assert_eq!(reply.at("user").text_at("name"), "12345");
    assert_eq!(client.call("POST", LOGIN, &login("n@example.org", "123456")).status, 200);
}

#[test]
fn what_a_login_must_have() {
    let venue = venue();
    let mut client = Client::registered(&venue, "Ada", "ada@example.org");
    client.token = None;
    let incomplete = (400, "Please provide email and password");
    let wrong = (401, "Invalid Credentials");
    for (body, (status, message)) in [
        ("", incomplete),
        ("{}", incomplete),
        (r#"{"email":"ada@example.org"}"#, incomplete),
        (r#"{"password":"123456"}"#, incomplete),
        (r#"{"email":"","password":"123456"}"#, incomplete),
        (r#"{"email":"ada@example.org","password":""}"#, incomplete),
        (r#"{"email":{"$gt":""},"password":{"$gt":""}}"#, incomplete),
        (&login("ada@example.org", "123456"), wrong),
        (&login("ada@example.org", &format!("{PASSWORD} ")), wrong),
        (&login("Ada@example.org", PASSWORD), wrong),
        (&login("nobody@example.org", PASSWORD), wrong),
        (&login("no address", PASSWORD), wrong),
    ] {
        let expected = (status, message.to_owned());
        assert_eq!(error(&client.call("POST", LOGIN, body)), expected, "{body}");
    }
}

#[test]
fn what_a_job_must_have() {
    let venue = venue();
    let mut ada = Client::registered(&venue, "Ada", "ada@example.org");
    let path = format!("{JOBS}/{}", ada.create("ACME", "clerk"));
    let (fifty, hundred) = ("c".repeat(50), "p".repeat(100));
    let long_company =
        format!("Path `company` (`c{fifty}`) is longer than the maximum allowed length (50).");
    let long_position =
        format!("Path `position` (`p{hundred}`) is longer than the maximum allowed length (100).");
    let both = format!("{long_company},{long_position}");
    let with_status =
        |status: &str| format!(r#"{{"company":"c","position":"p","status":{status}}}"#);
    let unfit = "Cast to string failed for value of type Object at path \"company\"";
    for (body, made, changed) in [
        (String::new(), NEITHER, NEITHER),
        ("{}".to_owned(), NEITHER, NEITHER),
        (r#"{"company":"c"}"#.to_owned(), NO_POSITION, NO_POSITION),
        (r#"{"position":"p"}"#.to_owned(), NO_COMPANY, NO_COMPANY),
        (r#"{"company":null,"position":"p"}"#.to_owned(), NO_COMPANY, NO_COMPANY),
        (job("", "p"), NO_COMPANY, EMPTY),
        (job("c", ""), NO_POSITION, EMPTY),
        (
            r#"{"company":""}"#.to_owned(),
            "Please provide position,Please provide company name",
            EMPTY,
        ),
        (job(&format!("c{fifty}"), "p"), &long_company, &long_company),
        (job("c", &format!("p{hundred}")), &long_position, &long_position),
        (job(&format!("c{fifty}"), &format!("p{hundred}")), &both, &both),
        (r#"{"company":{"a":1},"position":"p"}"#.to_owned(), unfit, unfit),
        (
            with_status("\"open\""),
            "`open` is not a valid enum value for path `status`.",
            "`open` is not a valid enum value for path `status`.",
        ),
        (
            with_status("null"),
            "`null` is not a valid enum value for path `status`.",
            "`null` is not a valid enum value for path `status`.",
        ),
    ] {
        assert_eq!(error(&ada.call("POST", JOBS, &body)), (400, made.to_owned()), "{body}");
        assert_eq!(error(&ada.call("PATCH", &path, &body)), (400, changed.to_owned()), "{body}");
    }
    assert_eq!(ada.list().len(), 1, "nothing that was refused was kept");
    for (body, company, position, status) in [
        (job(&fifty, &hundred), &*fifty, &*hundred, "pending"),
        (job(" ", " "), " ", " ", "pending"),
        (r#"{"company":5,"position":0.5}"#.to_owned(), "5", "0.5", "pending"),
        (r#"{"company":true,"position":1e21}"#.to_owned(), "true", "1e+21", "pending"),
        (with_status("\"declined\""), "c", "p", "declined"),
    ] {
        let made = ada.call("POST", JOBS, &body).ok();
        check_job(made.at("job"), (company, position, status));
        let changed = ada.call("PATCH", &path, &body).ok();
        check_job(changed.at("job"), (company, position, status));
    }
}

#[test]
fn bodies_that_are_no_json_and_bodies_that_are_too_long() {
    let venue = venue();
    let mut ada = Client::registered(&venue, "Ada", "ada@example.org");
    let path = format!("{JOBS}/{}", ada.create("ACME", "clerk"));
    for (method, target) in [("POST", REGISTER), ("POST", LOGIN), ("POST", JOBS), ("PATCH", &*path)]
    {
        for body in [
            "{",
            "{\"a\":}",
            "{\"a\":1}}",
            "{'a':1}",
            "name=Ada",
            "5",
            "\"text\"",
            "null",
            "\u{0}",
            "{\"a\":\"\\ud800\"}",
            &"[".repeat(5000),
        ] {
            let (status, message) = error(&ada.call(method, target, body));
            assert_eq!(status, 400, "{method} {target} {body}");
            assert!(!message.is_empty());
        }
        let fits = format!("{{\"a\":\"{}\"}}", "x".repeat(102_400 - 8));
        assert_eq!(ada.call(method, target, &fits).status, 400, "{method} {target}");
        let (status, message) = error(&ada.call(method, target, &format!("{fits} ")));
        assert_eq!((status, &*message), (413, "request entity too large"), "{method} {target}");
    }
}

#[test]
fn ids_routes_and_methods_that_lead_nowhere() {
    let venue = venue();
    let mut ada = Client::registered(&venue, "Ada", "ada@example.org");
    let mut eve = Client::registered(&venue, "Eve", "eve@example.org");
    let id = ada.create("ACME", "clerk");
    let change = job("a", "b");
    for (sent, shown, is_id) in [
        (&*id, &*id, true),
        ("0123456789abcdef01234567", "0123456789abcdef01234567", true),
        ("twelve-bytes", "twelve-bytes", true),
        ("5", "5", false),
        ("0123456789abcdef0123456", "0123456789abcdef0123456", false),
        ("0123456789abcdef0123456g", "0123456789abcdef0123456g", false),
        ("a%20b", "a b", false),
        ("a%2Fb", "a/b", false),
    ] {
        let expected = if is_id {
            format!("No job with id {shown}")
        } else {
            format!("No item found with id : {shown}")
        };
        for (method, body) in [("GET", ""), ("PATCH", &*change), ("DELETE", "")] {
            let reply = eve.call(method, &format!("{JOBS}/{sent}"), body);
            assert_eq!(error(&reply), (404, expected.clone()), "{method} {sent}");
        }
    }
    // The id goes before the fields, and empty fields before everything.
    let (malformed, other) = (format!("{JOBS}/5"), format!("{JOBS}/{id}"));
    assert_eq!(error(&eve.call("PATCH", &malformed, "{}")).0, 404);
    assert_eq!(error(&eve.call("PATCH", &malformed, &job("", ""))), (400, EMPTY.to_owned()));
    assert_eq!(error(&eve.call("PATCH", &other, "{}")), (400, NEITHER.to_owned()));
    for escape in ["%ff", "%zz", "%", "%4", "a%2", "%25%", "%+1", "%%34"] {
        let undecodable = eve.call("GET", &format!("{JOBS}/{escape}"), "");
        let told = format!("Failed to decode param '{escape}'");
        assert_eq!(error(&undecodable), (400, told), "{escape}");
    }
    assert_eq!(ada.list()[0].text_at("company"), "ACME", "nobody else has changed it");
    assert_eq!(
        ada.call("GET", &other.to_uppercase().replace("/API/V1/JOBS", JOBS), "").status,
        200
    );
    for (method, target) in [
        ("GET", "/api/v1"),
        ("GET", "/api/v1/"),
        ("GET", "/api/v1/job"),
        ("GET", "/api/v1/jobs/"),
        ("GET", "/api/v1/jobs/a/b"),
        ("PUT", &*other),
        ("DELETE", JOBS),
        ("GET", LOGIN),
        ("GET", "/api/v1/ping"),
    ] {
        let reply = ada.call(method, target, "");
        assert_eq!(
            (reply.status, &*reply.body),
            (404, "Route does not exist"),
            "{method} {target}"
        );
        assert_eq!(reply.header("content-type"), Some("text/plain; charset=utf-8"));
    }
    let reply = ada.call("OPTIONS", &other, "");
    assert_eq!(reply.status, 204);
    assert_eq!(
        reply.header("access-control-allow-methods"),
        Some("GET, HEAD, PATCH, DELETE, OPTIONS")
    );
    let spot = ada.call("GET", "/api/v3/nothing", "");
    assert_ne!(spot.body, "Route does not exist", "the other service has its own words");
}

#[test]
fn attempts_and_requests_are_limited_as_the_settings_say() {
    let venue = Venue::up(&[
        "--set",
        "jobs.attempts_per_address=6",
        "--set",
        "jobs.attempts_per_account=3",
        "--set",
        "jobs.requests_per_15_minutes=25",
    ]);
    let mut client = Client::new(&venue);
    let too_many = "Too many attempts to log in or to register, please try again later.";
    let mut refused = 0;
    // A minute may end in between; then the counts begin again.
    for _ in 0..2 {
        for attempt in 0..7 {
            let email = if attempt < 4 { "ada@example.org" } else { "eve@example.org" };
            let reply = client.call("POST", LOGIN, &login(email, "123456"));
            match error(&reply) {
                (401, message) => assert_eq!(message, "Invalid Credentials"),
                (status, message) => {
                    assert_eq!((status, &*message), (429, too_many));
                    assert!((1..=60).contains(&reply.number("retry-after")));
                    refused += 1;
                }
            }
        }
    }
    assert!(
        refused >= 2,
        "14 attempts, of which 6 an account and minute, and only {refused} refused"
    );
    let reply = client.call("GET", "/api/v1/nothing", "");
    assert_eq!(reply.number("x-ratelimit-limit"), 25);
    assert!(reply.number("x-ratelimit-reset") > 1_700_000_000);
    let left = reply.number("x-ratelimit-remaining");
    assert!(left <= 24);
    // A quarter of an hour may end here too, but only once.
    let last = (0..60).map(|_| client.call("GET", JOBS, "")).find(|reply| reply.status == 429);
    let last = last.expect("there is a limit");
    assert_eq!(last.body, "Too many requests, please try again later.");
    assert!((1..=900).contains(&last.number("retry-after")));
    assert_eq!(last.number("x-ratelimit-remaining"), 0);
    assert_eq!(client.call("GET", "/api/v3/ping", "").status, 200, "the other service goes on");
}

/// Every file below a folder.
fn files(folder: &Path, found: &mut Vec<Vec<u8>>) {
    for entry in fs::read_dir(folder).expect("the folder can be read").flatten() {
        let (kind, path) = (entry.file_type().expect("it is there"), entry.path());
        // Beside these there is a socket, which holds nothing.
        if kind.is_dir() {
            files(&path, found);
        } else if kind.is_file() {
            found.push(fs::read(&path).unwrap_or_else(|error| panic!("{path:?}: {error}")));
        }
    }
}

#[test]
fn no_password_and_no_token_is_ever_written_down() {
    let mut venue = venue();
    let mut ada = Client::registered(&venue, "Ada", "ada@example.org");
    let token = ada.token.clone().expect("it was registered");
    ada.create("ACME-in-the-log", "clerk");
    for body in [
        registration("Ada", "ada@example.org", PASSWORD),
        registration("A", "eve@example.org", PASSWORD),
        format!("{{\"password\":\"{PASSWORD}"),
        format!("{{\"password\":[\"{PASSWORD}\"],\"email\":\"{PASSWORD}\"}}"),
        login("nobody@example.org", PASSWORD),
        login("ada@example.org", &format!("{PASSWORD}!")),
    ] {
        for target in [REGISTER, LOGIN] {
            let reply = ada.call("POST", target, &body);
            let shown = reply.body.contains(PASSWORD) && !body.contains("\"email\":\"hush");
            assert!(!shown, "{}", reply.body);
        }
    }
    ada.token = Some(format!("{token}x"));
    assert!(!ada.call("GET", JOBS, "").body.contains(&token));
    let (status, lines) = venue.end_up(Signal::TERM);
    assert!(status.success());
    let mut written = Vec::new();
    files(venue.data(), &mut written);
    written.push(lines.join("\n").into_bytes());
    let holds = |part: &str| {
        written.iter().any(|bytes| bytes.windows(part.len()).any(|found| found == part.as_bytes()))
    };
    assert!(holds("ACME-in-the-log") && holds("$argon2id$"), "the log is looked at");
    assert!(!holds(PASSWORD), "the password is written somewhere");
    let signature = token.rsplit('.').next().expect("a token has three parts");
    assert!(!holds(signature), "the token is written somewhere");
}
