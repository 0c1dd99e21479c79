//! What a user is told while nobody knows what became of a write.

use super::*;

const JOBS: &str = "/api/v1/jobs";

fn unknown_job() -> String {
    format!("{JOBS}/{}", id_text(&[9; 12]))
}

fn send(site: &Site, method: Method, path: &str, body: &str) -> mpsc::Receiver<Reply> {
    site.send([127, 0, 0, 1], method, path, body)
}

/// An engine that dies with a write of Ada's in the live window, not on disk.
fn in_doubt(site: &Site) {
    site.appended.store(640, Ordering::SeqCst);
    site.expect(|_, _| Outcome::Unknown(Doubt::ConnectionLost));
    assert_eq!(site.ask(Method::Post, JOBS, NEW).status, 504);
}

fn is_waiting(reply: &mpsc::Receiver<Reply>) -> bool {
    matches!(reply.try_recv(), Err(mpsc::TryRecvError::Empty))
}

#[test]
fn what_is_in_doubt_is_answered_once_it_is_known() {
    let site = Site::new();
    in_doubt(&site);
    let list = send(&site, Method::Get, JOBS, "");
    let own = send(&site, Method::Get, &format!("{JOBS}/{}", id_text(&JOB_ID)), "");
    let missing = send(&site, Method::Get, &unknown_job(), "");
    assert!([&list, &own, &missing].into_iter().all(is_waiting));
    site.views.arrive(Position(640));
    let statuses = [list, own, missing].map(|reply| reply.try_recv().unwrap().status);
    assert_eq!(statuses, [200, 200, 404]);
    assert_eq!(site.ask(Method::Get, &unknown_job(), "").status, 404, "now that is certain");
}

#[test]
fn while_no_engine_comes_back_jobs_are_shown_as_far_as_they_are_known_and_none_is_denied() {
    // Whoever comes behind the time that the write had.
    let site = Site::with_deadline(Duration::ZERO);
    in_doubt(&site);
    assert_eq!(send(&site, Method::Get, JOBS, "").try_recv().unwrap().status, 200);
    let own = format!("{JOBS}/{}", id_text(&JOB_ID));
    assert_eq!(send(&site, Method::Get, &own, "").try_recv().unwrap().status, 200);
    for method in [Method::Get, Method::Patch, Method::Delete] {
        let missing = send(&site, method, &unknown_job(), NEW);
        assert!(is_waiting(&missing), "{method:?}");
        site.views.expire_now();
        let missing = missing.try_recv().unwrap();
        assert_eq!((missing.status, header(&missing, "Retry-After")), (503, Some("1")));
    }
}

/// The engine has decided, and the views are on their way there.
#[test]
fn who_has_written_sees_what_he_wrote_and_not_what_was_before() {
    let site = Site::new();
    site.expect(|_, _| decided(640, RecordTerminal::Put(RecordPut::default())));
    assert_eq!(site.ask(Method::Post, JOBS, NEW).status, 200);
    let list = send(&site, Method::Get, JOBS, "");
    let own = send(&site, Method::Get, &format!("{JOBS}/{}", id_text(&[9; 12])), "");
    assert!(is_waiting(&list) && is_waiting(&own));
    put(&site.views, (JOB, [9; 12], ADA), 1, &job("ACME", Status::Pending));
    site.views.arrive(Position(640));
    assert_eq!(own.try_recv().unwrap().status, 200);
    assert!(body(&list.try_recv().unwrap()).ends_with("],\"count\":2}"));
}

/// Also of a write of which this adapter knows nothing: another one sent it, or this one was started again since.
#[test]
fn a_job_is_denied_only_where_all_that_was_appended_is_known() {
    let site = Site::new();
    site.appended.store(640, Ordering::SeqCst);
    let missing = send(&site, Method::Get, &unknown_job(), "");
    assert!(is_waiting(&missing));
    assert_eq!(site.ask(Method::Get, JOBS, "").status, 200);
    put(&site.views, (JOB, [9; 12], ADA), 1, &job("ACME", Status::Pending));
    site.views.arrive(Position(640));
    assert_eq!(missing.try_recv().unwrap().status, 200, "it was there");
}

const REGISTER: &str = "/api/v1/auth/register";
const REGISTRATION: &str = r#"{"name":"Ada","email":"ada@example.com","password":"secret"}"#;
const EVES_LOGIN: &str = r#"{"email":"eve@example.com","password":"secret"}"#;
const ADAS_LOGIN: &str = r#"{"email":"ada@example.com","password":"secret"}"#;

/// Sends a login, whose password has been compared when this returns.
fn send_login(site: &Site, body: &str) -> mpsc::Receiver<Reply> {
    let is_free = || site.turn().is_some();
    assert!(eventually(is_free), "the password before is not compared");
    let reply = send(site, Method::Post, "/api/v1/auth/login", body);
    assert!(eventually(is_free), "the password is not compared");
    reply
}

/// Registers Ada with an engine that dies of it; gives what it had appended.
fn register_in_doubt(site: &Site) -> RecordCommand {
    site.appended.store(640, Ordering::SeqCst);
    site.expect(|_, _| Outcome::Unknown(Doubt::ConnectionLost));
    let reply = site.ask(Method::Post, REGISTER, REGISTRATION);
    assert_eq!(reply.status, 504);
    assert!(eventually(|| site.turn().is_some()));
    site.engine.seen.lock().unwrap().pop().unwrap()
}

fn arrive(site: &Site, registration: &RecordCommand) {
    let RecordCommand::Put(write) = registration else { panic!("a put") };
    let decode::Command::PutRecord(sent) = decode::command(write.as_bytes()).unwrap() else {
        panic!("a put")
    };
    let (kind, id) = (sent.kind, sent.id);
    let length = sent.content().len() as u32;
    let event = RecordPut { kind, version: 1, id, length, ..Default::default() };
    site.views.fold(decode::command(write.as_bytes()).unwrap(), &[Event::RecordPut(&event)]);
    site.views.arrive(Position(640));
}

#[test]
fn a_login_is_denied_only_where_all_that_was_appended_is_known() {
    let site = Site::new();
    let registration = register_in_doubt(&site);
    let wrong = ADAS_LOGIN.replace("secret", "geheim");
    let replies = [ADAS_LOGIN, EVES_LOGIN].map(|body| send_login(&site, body));
    assert!(replies.iter().all(is_waiting));
    // Another engine has found the user.
    arrive(&site, &registration);
    let statuses = replies.map(|reply| reply.recv_timeout(PATIENCE).unwrap().status);
    assert_eq!(statuses, [200, 401]);
    assert_eq!(send_login(&site, &wrong).recv_timeout(PATIENCE).unwrap().status, 401);
}

#[test]
fn a_login_that_no_engine_comes_back_for_is_not_denied() {
    let site = Site::new();
    register_in_doubt(&site);
    let reply = send_login(&site, ADAS_LOGIN);
    assert!(is_waiting(&reply));
    site.views.halt();
    let reply = reply.try_recv().unwrap();
    assert_eq!((reply.status, header(&reply, "Retry-After")), (503, Some("1")));
}

/// Another adapter may have told a user of it, so that is everybody's until the engine has been away for as long as that
/// user's write had.
#[test]
fn what_an_engine_that_is_away_had_appended_is_waited_for_by_every_user() {
    let site = Site::new();
    site.appended.store(640, Ordering::SeqCst);
    *site.away_since.lock().unwrap() = Some(Instant::now());
    let own = format!("{JOBS}/{}", id_text(&JOB_ID));
    let replies = [JOBS, &own].map(|path| send(&site, Method::Get, path, ""));
    assert!(replies.iter().all(is_waiting));
    site.views.arrive(Position(640));
    assert!(replies.into_iter().all(|reply| reply.try_recv().unwrap().status == 200));
    let late = Site::with_deadline(Duration::ZERO);
    late.appended.store(640, Ordering::SeqCst);
    *late.away_since.lock().unwrap() = Some(Instant::now());
    assert_eq!(send(&late, Method::Get, JOBS, "").try_recv().unwrap().status, 200);
}

/// What is appended behind it gets on disk with the next engine only, and nobody waits for that. Who was told that
/// nobody knows of a write of his own is told so again.
#[test]
fn beside_a_failed_log_what_is_not_on_disk_is_denied_at_once_but_to_whom_it_is_in_doubt() {
    let site = Site::new();
    site.has_failed.store(true, Ordering::SeqCst);
    site.appended.store(640, Ordering::SeqCst);
    for method in [Method::Get, Method::Patch, Method::Delete] {
        let missing = send(&site, method, &unknown_job(), NEW).try_recv();
        assert_eq!(missing.unwrap().status, 404, "{method:?}");
    }
    assert_eq!(send_login(&site, EVES_LOGIN).recv_timeout(PATIENCE).unwrap().status, 401);
    let late = Site::new();
    late.has_failed.store(true, Ordering::SeqCst);
    in_doubt(&late);
    assert_eq!(send(&late, Method::Get, JOBS, "").try_recv().unwrap().status, 200);
    let missing = send(&late, Method::Get, &unknown_job(), "").try_recv().unwrap();
    assert_eq!((missing.status, header(&missing, "Retry-After")), (503, Some("1")));
    // One that has ended is waited for like any other.
    *late.away_since.lock().unwrap() = Some(Instant::now());
    assert!(is_waiting(&send(&late, Method::Get, &unknown_job(), "")));
}

/// Where the engine's log goes on beyond what is known, too.
#[test]
fn a_login_is_denied_at_one_time_whether_there_is_such_a_user_or_not() {
    let site = Site::new();
    let registration = register_in_doubt(&site);
    arrive(&site, &registration);
    let wrong = ADAS_LOGIN.replace("secret", "geheim");
    site.appended.store(1280, Ordering::SeqCst);
    let replies = [&wrong, EVES_LOGIN].map(|body| send_login(&site, body));
    assert!(replies.iter().all(is_waiting));
    site.views.arrive(Position(1280));
    let statuses = replies.map(|reply| reply.recv_timeout(PATIENCE).unwrap().status);
    assert_eq!(statuses, [401; 2]);
    // Beside a failed log neither waits.
    site.appended.store(1920, Ordering::SeqCst);
    site.has_failed.store(true, Ordering::SeqCst);
    for body in [&wrong, EVES_LOGIN] {
        assert_eq!(send_login(&site, body).recv_timeout(PATIENCE).unwrap().status, 401);
    }
}

/// The next engine may make the user of it.
#[test]
fn beside_a_failed_log_a_login_is_not_denied_to_whose_registration_is_in_doubt() {
    let site = Site::new();
    site.has_failed.store(true, Ordering::SeqCst);
    register_in_doubt(&site);
    let status = |body| send_login(&site, body).recv_timeout(PATIENCE).unwrap().status;
    assert_eq!([ADAS_LOGIN, EVES_LOGIN].map(status), [503, 401]);
    // It has not.
    site.views.succeed(Position(0));
    assert_eq!(status(ADAS_LOGIN), 401);
}

/// An engine that stood still when nobody knew of them any more takes them when it goes on.
#[test]
fn beside_a_failed_log_what_was_taken_behind_its_doubt_is_not_denied_to_whose_it_is() {
    let site = Site::new();
    let registration = register_in_doubt(&site);
    site.views.arrive(Position(640));
    site.expect(|_, _| Outcome::Unknown(Doubt::ConnectionLost));
    assert_eq!(site.ask(Method::Post, JOBS, NEW).status, 504);
    site.appended.store(1280, Ordering::SeqCst);
    for whose in [Records::whose(&registration), Owner::User(ADA)] {
        site.engine.under_way.lose(whose);
    }
    site.has_failed.store(true, Ordering::SeqCst);
    let missing = send(&site, Method::Get, &unknown_job(), "").try_recv().unwrap();
    assert_eq!((missing.status, header(&missing, "Retry-After")), (503, Some("1")));
    let status = |body| send_login(&site, body).recv_timeout(PATIENCE).unwrap().status;
    assert_eq!([ADAS_LOGIN, EVES_LOGIN].map(status), [503, 401]);
}

/// Has an engine that hangs be sent Ada's registration, and then a write of hers; gives their replies.
fn hang(site: &Site) -> [mpsc::Receiver<Reply>; 2] {
    site.engine.hangs.store(true, Ordering::SeqCst);
    let registered = send(site, Method::Post, REGISTER, REGISTRATION);
    assert!(eventually(|| site.engine.under_way.any() && site.turn().is_some()));
    [registered, send(site, Method::Post, JOBS, NEW)]
}

/// Their clients may have gone before the answers, which wait for the disk in vain.
#[test]
fn beside_a_failed_log_nothing_is_denied_to_whom_a_write_is_under_way_of() {
    let site = Site::new();
    let written = hang(&site);
    site.has_failed.store(true, Ordering::SeqCst);
    let logins = [ADAS_LOGIN, EVES_LOGIN].map(|body| send_login(&site, body));
    let statuses = logins.map(|reply| reply.recv_timeout(PATIENCE).unwrap().status);
    assert_eq!(statuses, [503, 401]);
    let missing = || send(&site, Method::Get, &unknown_job(), "").try_recv().unwrap().status;
    assert_eq!(missing(), 503);
    assert_eq!(send(&site, Method::Get, JOBS, "").try_recv().unwrap().status, 200);
    for reply in written {
        site.engine.under_way.end_first(rejected(RejectReason::LogUnavailable));
        assert_eq!(reply.try_recv().unwrap().status, 503);
    }
    assert_eq!(missing(), 404);
}

#[test]
fn a_job_and_a_login_are_denied_only_where_no_write_of_their_user_is_under_way() {
    let site = Site::new();
    let _written = hang(&site);
    let missing = send(&site, Method::Get, &unknown_job(), "");
    let [login, nobodys] = [ADAS_LOGIN, EVES_LOGIN].map(|body| send_login(&site, body));
    assert_eq!(nobodys.recv_timeout(PATIENCE).unwrap().status, 401);
    assert_eq!(send(&site, Method::Get, JOBS, "").try_recv().unwrap().status, 200);
    assert!(is_waiting(&missing) && is_waiting(&login));
    // The engine goes on, and what it has done is waited for like anything else.
    site.appended.store(640, Ordering::SeqCst);
    let lost = || Outcome::Unknown(Doubt::ConnectionLost);
    site.engine.under_way.end_first(lost());
    assert!(is_waiting(&missing) && is_waiting(&login));
    site.engine.under_way.end_first(lost());
    assert!(is_waiting(&missing) && is_waiting(&login));
    site.views.arrive(Position(640));
    let statuses = [missing, login].map(|reply| reply.recv_timeout(PATIENCE).unwrap().status);
    assert_eq!(statuses, [404, 401]);
}

#[test]
fn a_write_is_in_doubt_also_when_its_client_has_gone_before_the_answer() {
    let site = Site::new();
    site.engine.hangs.store(true, Ordering::SeqCst);
    let request =
        site.request(Headers::default(), [127, 0, 0, 1], Method::Post, REGISTER, REGISTRATION);
    site.jobs.call(request, Completion::of(drop));
    assert!(eventually(|| site.engine.under_way.any() && site.turn().is_some()));
    site.has_failed.store(true, Ordering::SeqCst);
    site.appended.store(640, Ordering::SeqCst);
    site.engine.under_way.end_first(Outcome::Unknown(Doubt::ConnectionLost));
    let login = send_login(&site, ADAS_LOGIN).recv_timeout(PATIENCE).unwrap();
    assert_eq!(login.status, 503);
}
