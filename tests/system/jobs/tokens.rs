//! Whose tokens are believed: every way to forge one against every protected operation, and keys that
//! were replaced.

use super::*;
use crate::system::process::{Process, eventually};
use crate::system::venue::Part;
use hmac::{Hmac, KeyInit, Mac};
use rustix::process::Signal;
use sha2::{Sha256, Sha384};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{SystemTime, UNIX_EPOCH};
use touchline_protocol::log::lease::leases;

/// Base64 of RFC 4648 §5, without padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for part in bytes.chunks(3) {
        let word = part.iter().fold(0u32, |word, &byte| word << 8 | u32::from(byte));
        let word = word << (8 * (3 - part.len()));
        for digit in 0..=part.len() {
            text.push(char::from(DIGITS[(word >> (18 - 6 * digit) & 63) as usize]));
        }
    }
    text
}

fn signed(secret: &[u8], header: &str, claims: &str) -> String {
    let message = format!("{}.{}", base64(header.as_bytes()), base64(claims.as_bytes()));
    let mac =
        Hmac::<Sha256>::new_from_slice(secret).expect("keys of any length").chain_update(&message);
    format!("{message}.{}", base64(&mac.finalize().into_bytes()))
}

/// Name and secret of the key that signs, from the data folder.
fn key(venue: &Venue) -> (String, Vec<u8>) {
    let path = venue.data().join("token-keys.json");
    let mode = fs::metadata(&path).expect("made at the first start").mode() & 0o777;
    assert_eq!(mode, 0o600, "whoever reads it can forge tokens");
    let keys = Json::parse(&fs::read_to_string(&path).expect("it is ours"));
    let key = keys.at("keys").items().last().expect("there is a key").clone();
    let secret = base16ct::lower::decode_vec(key.text_at("secret")).expect("hexadecimal");
    assert!(secret.len() >= 32, "256 bits at the least");
    (key.text_at("kid").to_owned(), secret)
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("behind 1970").as_secs()
}

#[test]
fn no_forged_token_opens_any_protected_operation() {
    let venue = Venue::up(&PATIENT);
    let mut ada = Client::registered(&venue, "Ada", "ada@example.org");
    let id = ada.create("ACME", "clerk");
    let owner = ada.list()[0].text_at("createdBy").to_owned();
    let real = ada.token.take().expect("it was registered");
    let (kid, secret) = key(&venue);
    let (now, end) = (now_s(), now_s() + 3600);
    let header = |alg: &str| format!(r#"{{"alg":"{alg}","typ":"JWT","kid":"{kid}"}}"#);
    let claims =
        format!(r#"{{"userId":"{owner}","sub":"{owner}","name":"Ada","iat":{now},"exp":{end}}}"#);
    let good = signed(&secret, &header("HS256"), &claims);
    let with_claims = |claims: String| signed(&secret, &header("HS256"), &claims);
    let (message, signature) = good.rsplit_once('.').expect("three parts");
    let parts: Vec<_> = real.split('.').collect();
    let hs384 = {
        let message =
            format!("{}.{}", base64(header("HS384").as_bytes()), base64(claims.as_bytes()));
        let mac =
            Hmac::<Sha384>::new_from_slice(&secret).expect("any length").chain_update(&message);
        format!("{message}.{}", base64(&mac.finalize().into_bytes()))
    };
    let forged = [
        (
            "expired",
            with_claims(format!(r#"{{"sub":"{owner}","iat":{},"exp":{}}}"#, now - 60, now - 1)),
        ),
        ("another key", signed(b"0123456789abcdef0123456789abcdef", &header("HS256"), &claims)),
        (
            "alg none",
            format!("{}.{}.", base64(header("none").as_bytes()), base64(claims.as_bytes())),
        ),
        ("alg none, signed", signed(&secret, &header("none"), &claims)),
        ("RS256 signed as HS256", signed(&secret, &header("RS256"), &claims)),
        ("ES256 signed as HS256", signed(&secret, &header("ES256"), &claims)),
        ("HS384", hs384),
        ("no kid", signed(&secret, r#"{"alg":"HS256","typ":"JWT"}"#, &claims)),
        ("unknown kid", signed(&secret, r#"{"alg":"HS256","kid":"0000000000000000"}"#, &claims)),
        ("no sub", with_claims(format!(r#"{{"userId":"{owner}","iat":{now},"exp":{end}}}"#))),
        ("no iat", with_claims(format!(r#"{{"sub":"{owner}","exp":{end}}}"#))),
        ("no exp", with_claims(format!(r#"{{"sub":"{owner}","iat":{now}}}"#))),
        ("exp is a text", with_claims(format!(r#"{{"sub":"{owner}","iat":{now},"exp":"{end}"}}"#))),
        (
            "no end in sight",
            with_claims(format!(r#"{{"sub":"{owner}","iat":{now},"exp":99999999999}}"#)),
        ),
        ("sub is no id", with_claims(format!(r#"{{"sub":"ada","iat":{now},"exp":{end}}}"#))),
        (
            "sub is twelve bytes",
            with_claims(format!(r#"{{"sub":"twelve-bytes","iat":{now},"exp":{end}}}"#)),
        ),
        (
            "sub is nobody",
            with_claims(format!(r#"{{"sub":"{}","iat":{now},"exp":{end}}}"#, "0".repeat(24))),
        ),
        (
            "claims of another token",
            format!("{}.{}.{}", parts[0], base64(claims.as_bytes()), parts[2]),
        ),
        ("signature cut", format!("{message}.{}", &signature[..signature.len() - 1])),
        ("no signature", format!("{message}.")),
        ("one letter changed", real.replacen(&parts[1][4..8], "AAAA", 1)),
        ("no token", "x".to_owned()),
    ];
    let operations = [
        ("GET", JOBS.to_owned(), String::new()),
        ("POST", JOBS.to_owned(), job("a", "b")),
        ("GET", format!("{JOBS}/{id}"), String::new()),
        ("PATCH", format!("{JOBS}/{id}"), job("a", "b")),
        ("DELETE", format!("{JOBS}/{id}"), String::new()),
    ];
    for (method, target, body) in &operations {
        for (what, token) in &forged {
            ada.token = Some(token.clone());
            let reply = ada.call(method, target, body);
            let expected = (401, "Authentication invalid".to_owned());
            assert_eq!(error(&reply), expected, "{what}: {method} {target}");
            assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
        }
        for header in [
            String::new(),
            "Bearer".into(),
            "Bearer ".into(),
            format!("bearer {real}"),
            format!("Basic {real}"),
            real.clone(),
            format!("Bearer  {real}"),
        ] {
            let request = Request::new(method, target.clone())
                .header("Authorization", &header)
                .body(body.clone());
            let reply = ada.http.call(&request);
            assert_eq!(error(&reply).0, 401, "{header:?}: {method} {target}");
        }
        let request = Request::new(method, target.clone()).body(body.clone());
        assert_eq!(error(&ada.http.call(&request)).0, 401, "no header: {method} {target}");
    }
    for token in [good, real.clone(), format!("{real} trailing words")] {
        ada.token = Some(token);
        assert_eq!(ada.list().len(), 1, "the forger can forge, and nothing was changed");
    }
    let twice = Request::new("GET", JOBS)
        .header("Authorization", &format!("Bearer {real}"))
        .header("Authorization", "Bearer x");
    assert_eq!(error(&ada.http.call(&twice)).0, 401, "which of them is meant?");
}

#[test]
fn a_replaced_key_is_believed_and_a_revoked_one_is_not_while_the_adapter_runs() {
    let venue = Venue::up(&PATIENT);
    let mut ada = Client::registered(&venue, "Ada", "ada@example.org");
    let (first, _) = key(&venue);
    let replace = |more: &[&str]| {
        let data = venue.data().to_str().expect("a plain name");
        let arguments = [&["admin", "--data", data, "token-key"], more].concat();
        Process::start(&arguments).wait_for_end().success()
    };
    let rotate = |more: &[&str]| assert!(replace(more));
    let (file, away) = (venue.data().join("token-keys.json"), venue.data().join("away"));
    fs::rename(&file, &away).expect("it is there");
    assert!(!replace(&[]), "that would revoke the older ones");
    fs::rename(&away, &file).expect("nothing is in its place");
    rotate(&[]);
    assert_ne!(key(&venue).0, first);
    let uses_new_key = || {
        let mut other = Client::new(&venue);
        let reply = other.call("POST", LOGIN, &login("ada@example.org", PASSWORD)).ok();
        let head = reply.text_at("token").split('.').next().expect("three parts").to_owned();
        head != ada_head(&ada)
    };
    assert!(eventually(uses_new_key), "the adapter goes on with the old key");
    assert_eq!(ada.list(), [], "the old token is still good");
    rotate(&["--revoke"]);
    let is_refused = || ada.call("GET", JOBS, "").status == 401;
    assert!(eventually(is_refused), "the old token is believed for ever");
    let reply = ada.call("POST", LOGIN, &login("ada@example.org", PASSWORD)).ok();
    ada.token = Some(reply.text_at("token").to_owned());
    assert_eq!(ada.list(), []);
}

/// Starts the adapter anew without these files and folders, and with `engine` the engine, too.
fn restart_without(venue: &mut Venue, gone: &[&str], engine: bool) {
    venue.kill9(Part::Adapter);
    if engine {
        venue.kill9(Part::Engine);
    }
    for path in gone.iter().map(|name| venue.data().join(name)) {
        let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        removed.expect("it is there");
    }
    if engine {
        venue.start_engine();
    }
    venue.start_adapter();
}

/// Of a venue's first start nobody has a token. Of a copy without leases and histories somebody may.
#[test]
fn an_adapter_that_makes_keys_anew_says_that_older_tokens_are_not_believed() {
    let mut venue = Venue::up(&PATIENT);
    let told = |line: &str| line.contains("token-keys.json") && line.contains("not believed");
    let is_told = |lines: Vec<String>| lines.iter().any(|line| told(line));
    let (status, lines) = venue.end_up(Signal::TERM);
    assert!(status.success() && !is_told(lines), "at the first start");
    venue.start_engine();
    venue.start_adapter();
    let mut ada = Client::registered(&venue, "Ada", "ada@example.org");
    let is_stored = || leases(venue.data()).is_ok_and(|all| all[0].last.position.0 > 0);
    assert!(eventually(is_stored), "no history is written");
    restart_without(&mut venue, &[], false);
    assert!(!is_told(venue.said_at_start()), "the keys are there");
    ada.http = Client::new(&venue).http;
    assert_eq!(ada.list(), []);
    let copied = ["token-keys.json", "leases", "history"];
    for (gone, engine) in [(&copied[..1], false), (&copied, true)] {
        restart_without(&mut venue, gone, engine);
        venue.part(Part::Adapter).wait_for(0, "word of the keys", told);
        ada.http = Client::new(&venue).http;
        assert_eq!(ada.call("GET", JOBS, "").status, 401);
    }
}

/// The first part of a client's token, which names the key.
fn ada_head(client: &Client) -> String {
    let token = client.token.as_ref().expect("it is logged in");
    token.split('.').next().expect("three parts").to_owned()
}
