//! Requests that are refused before anybody looks for a job: of whom, how often, in which form.

use super::*;

/// Each is bytes of a log that is common to all users, and to trading.
#[test]
fn what_a_user_may_write_within_a_minute_is_limited() {
    const LIMIT: u64 = 3;
    let config = JobsConfig { writes_per_minute: LIMIT, ..JobsConfig::default() };
    let mut site = Site::of(Duration::from_secs(60), &config);
    let path = format!("/api/v1/jobs/{}", id_text(&JOB_ID));
    let ask = |site: &Site, number: usize| {
        let (method, path, answer): (_, _, fn() -> RecordTerminal) = match number % 3 {
            0 => (Method::Post, "/api/v1/jobs", || RecordTerminal::Put(RecordPut::default())),
            1 => (Method::Patch, &*path, || RecordTerminal::Put(RecordPut::default())),
            _ => (Method::Delete, &*path, || RecordTerminal::Deleted(RecordDeleted::default())),
        };
        site.expect(move |_, _| decided(0, answer()));
        let reply = site.ask(method, path, NEW);
        site.engine.answers.lock().unwrap().clear();
        reply
    };
    // A minute may end in between, once.
    let replies: Vec<_> = (0..12).map(|number| ask(&site, number)).collect();
    let taken = replies.iter().filter(|reply| reply.status == 200).count();
    assert!((3..=6).contains(&taken), "{taken} were taken");
    assert_eq!(site.engine.seen.lock().unwrap().len(), taken, "no other gets to the engine");
    for reply in replies.iter().filter(|reply| reply.status != 200) {
        let wait_s: u64 = header(reply, "Retry-After").expect("it says when").parse().unwrap();
        assert_eq!((reply.status, (1..=60).contains(&wait_s)), (429, true), "{wait_s}");
        assert_eq!(body(reply), r#"{"msg":"Too many changes, please try again later."}"#);
    }
    assert_eq!(site.ask(Method::Get, "/api/v1/jobs", "").status, 200, "reads go on");
    assert_eq!(site.ask(Method::Patch, &path, "{}").status, 400, "and nothing was written of this");
    // Another user has a count of his own.
    put(&site.views, (USER, [7; 12], [0; 12]), 1, b"");
    let now_s = jsonwebtoken::get_current_timestamp();
    site.token = site.jobs.shared.tokens.issue(&id_text(&[7; 12]), "Eve", now_s).unwrap();
    assert_eq!(ask(&site, 0).status, 200);
    let unlimited = JobsConfig { writes_per_minute: 0, ..JobsConfig::default() };
    let site = Site::of(Duration::from_secs(60), &unlimited);
    assert!((0..12).all(|number| ask(&site, 3 * number).status == 200));
}

#[test]
fn logins_that_fail_count_against_the_account_and_others_do_not() {
    let config = JobsConfig { attempts_per_account: 1, ..JobsConfig::default() };
    let site = Site::of(Duration::from_secs(60), &config);
    let hash = crate::auth::password::Hasher::default().hash("secret").unwrap();
    let user = record::User { name: "Ada", email: "ada@example.com", hash: &hash }.encode();
    let unique_key = record::key_of_email("ada@example.com");
    let put = PutRecord { kind: USER, id: [7; 12], unique_key, ..Default::default() };
    fold(&site.views, put, &user);
    let log_in = |address: u8, password: &str| {
        let is_free = || site.turn().is_some();
        assert!(eventually(is_free), "the password before is not compared");
        let body = format!(r#"{{"email":"ada@example.com","password":"{password}"}}"#);
        site.ask_from([198, 51, 100, address], Method::Post, "/api/v1/auth/login", &body).status
    };
    assert!((1..=30).all(|address| log_in(address, "secret") == 200));
    // A minute may end in between, once.
    let statuses: Vec<_> = (31..=70).map(|address| log_in(address, "geheim")).collect();
    let denied = statuses.iter().filter(|status| **status == 401).count();
    assert!((10..=20).contains(&denied) && statuses.contains(&429), "{statuses:?}");
}

#[test]
fn a_method_that_no_route_has_is_told_what_the_path_takes() {
    let site = Site::new();
    for (path, allow) in [
        ("/api/v1/jobs", "GET, HEAD, POST, OPTIONS"),
        ("/api/v1/jobs/7", "GET, HEAD, PATCH, DELETE, OPTIONS"),
        ("/api/v1/auth/login", "POST, OPTIONS"),
    ] {
        let reply = refused_at(&site, path, [198, 51, 100, 1], Fault::UnknownMethod);
        assert_eq!((reply.status, header(&reply, "Allow")), (405, Some(allow)), "{path}");
        assert_eq!(body(&reply), r#"{"msg":"This operation is not supported."}"#);
    }
    let reply = refused_at(&site, "/api/v1/job", [198, 51, 100, 1], Fault::UnknownMethod);
    assert_eq!((reply.status, body(&reply)), (404, "Route does not exist"));
    assert_eq!(header(&reply, "Allow"), None);
}

#[test]
fn a_body_in_a_coding_is_told_so() {
    let site = Site::new();
    let ask = |codings: &[&str], method, path: &str, body: &str| {
        let mut headers = Headers::default();
        codings.iter().for_each(|coding| headers.push("content-encoding", coding.as_bytes()));
        let reply = site.send_with(headers, [127, 0, 0, 1], method, path, body);
        reply.recv_timeout(PATIENCE).expect("every request is answered")
    };
    let job = format!("/api/v1/jobs/{}", id_text(&JOB_ID));
    let paths = ["/api/v1/jobs", "/api/v1/auth/login", "/api/v1/auth/register"];
    for (method, path) in
        paths.map(|path| (Method::Post, path)).into_iter().chain([(Method::Patch, &*job)])
    {
        for codings in [&["gzip"][..], &["identity", "br"], &["identity, gzip"], &["x"]] {
            let reply = ask(codings, method, path, "\u{1f}\u{8b}");
            assert_eq!(reply.status, 415, "{path} {codings:?}: {}", body(&reply));
            assert!(body(&reply).contains("Content-Encoding"), "{}", body(&reply));
            assert_eq!(header(&reply, "Accept-Encoding"), Some("identity"));
        }
    }
    for codings in [&["identity"][..], &["Identity, IDENTITY"], &[""]] {
        assert_eq!(ask(codings, Method::Post, "/api/v1/jobs", "{}").status, 400, "{codings:?}");
    }
    assert_eq!(ask(&["gzip"], Method::Get, "/api/v1/jobs", "").status, 200, "there is no body");
}

#[test]
fn who_says_twice_who_it_is_is_nobody() {
    let site = Site::new();
    let user = format!("Bearer {}", site.token);
    for twice in [&*user, "Bearer x", ""] {
        let mut headers = Headers::default();
        headers.push("authorization", twice.as_bytes());
        let replied = site.send_with(headers, [127, 0, 0, 1], Method::Get, "/api/v1/jobs", "");
        let reply = replied.recv_timeout(PATIENCE).expect("every request is answered");
        assert_eq!(reply.status, 401, "{twice:?}");
    }
}
