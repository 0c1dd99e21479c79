//! The service over a made-up engine: what it answers when that is away, full, slow, or was changed by
//! somebody else first. What it answers otherwise is tested against the executable.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::Instant;

use bytes::Bytes;
use tempfile::TempDir;
use touchline_protocol::message::command::{DeleteRecord, PutRecord};
use touchline_protocol::message::decode::{self, Event};
use touchline_protocol::message::enums::RejectReason;
use touchline_protocol::message::event::{RecordDeleted, RecordPut, Rejected};
use touchline_protocol::message::with_bytes::RecordWrite;
use touchline_protocol::units::Position;

use super::readers::LISTS_MAX;
use super::record::{JOB, Job, Status, USER, id_text};
use super::*;
use crate::auth::keys::{FILE_NAME, KeyRing};
use crate::auth::pool::Turn;
use crate::http::{Headers, Method, Rest};
use crate::limits::LimitsConfig;
use crate::link::fixture::UnderWay;
use crate::link::{
    Decision, Done, Doubt, Ended, Lost, NotSent, Outcome, RecordCommand, RecordTerminal, Traffic,
};
use crate::patience::{PATIENCE, eventually};
use crate::views::doubts::Owner;
use crate::views::records::RecordId;
use crate::views::state::State;

mod doubts;
mod requests;

const NOW_MS: u64 = 1_800_000_000_000;
const ADA: RecordId = [1; 12];
const JOB_ID: RecordId = [2; 12];

type Answer = Box<dyn FnOnce(&Views, &RecordCommand) -> Outcome<Records> + Send>;

/// Answers each command with the next answer; keeps what it saw.
#[derive(Default)]
struct FakeEngine {
    views: Mutex<Option<Arc<Views>>>,
    answers: Mutex<VecDeque<Answer>>,
    seen: Mutex<Vec<RecordCommand>>,
    /// It decides nothing before it is told to.
    hangs: AtomicBool,
    under_way: UnderWay<Records>,
}

impl Submit<Records> for FakeEngine {
    fn submit(&self, command: RecordCommand, _: Instant, done: Done<Records>) {
        if self.hangs.load(Ordering::SeqCst) {
            return self.under_way.push(Records::whose(&command), done);
        }
        let answer = self.answers.lock().unwrap().pop_front().expect("an answer is left");
        let views = self.views.lock().unwrap().clone().unwrap();
        let outcome = answer(&views, &command);
        self.seen.lock().unwrap().push(command);
        done(outcome);
    }

    fn last_under_way(&self, last: u64, is_of: &dyn Fn(Owner) -> bool) -> Option<u64> {
        self.under_way.last_of(last, is_of)
    }

    fn when_ended(&self, command: u64, _: Instant, ended: Ended) {
        self.under_way.when_ended(command, ended);
    }

    fn when_lost(&self, lost: Lost<Records>) {
        self.under_way.when_lost(lost);
    }
}

struct Site {
    _folder: TempDir,
    jobs: Jobs,
    engine: Arc<FakeEngine>,
    views: Arc<Views>,
    /// How far the live window goes.
    appended: Arc<AtomicU64>,
    /// Since when the engine is away.
    away_since: Arc<Mutex<Option<Instant>>>,
    /// The log has failed.
    has_failed: Arc<AtomicBool>,
    token: String,
}

impl Site {
    /// The hashing thread's turn, if nobody has it.
    fn turn(&self) -> Option<Turn<'_>> {
        self.jobs.shared.pool.reserve([198, 51, 100, 9].into())
    }

    fn new() -> Self {
        Self::with_deadline(Duration::from_secs(60))
    }

    fn with_deadline(deadline: Duration) -> Self {
        Self::of(deadline, &JobsConfig::default())
    }

    /// 10.0.0.0/8 are proxies.
    fn of(deadline: Duration, config: &JobsConfig) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let engine = Arc::new(FakeEngine::default());
        let appended = Arc::new(AtomicU64::new(0));
        let in_window = Arc::clone(&appended);
        let away_since = Arc::new(Mutex::new(None));
        let away = Arc::clone(&away_since);
        let views = Views::new(State::new(), || Position(0));
        let views = views.with_appended(move || Position(in_window.load(Ordering::SeqCst)));
        let has_failed = Arc::new(AtomicBool::new(false));
        let failed = Arc::clone(&has_failed);
        let views = views.with_failure(move || failed.load(Ordering::SeqCst));
        let views = Arc::new(views.with_engine(move || *away.lock().unwrap()));
        *engine.views.lock().unwrap() = Some(Arc::clone(&views));
        let limits = Arc::new(Limits::new(LimitsConfig {
            request_weight_per_minute: 1,
            raw_requests_per_5_minutes: 1,
            refusals_before_ban: 1,
            denied: vec!["192.0.2.0/24".parse().unwrap()],
            trusted_proxies: vec!["10.0.0.0/8".parse().unwrap()],
        }));
        let tokens = Tokens::new(KeyRing::open(folder.path().join(FILE_NAME)).unwrap(), 3600);
        let now_s = jsonwebtoken::get_current_timestamp();
        let token = tokens.issue(&id_text(&ADA), "Ada", now_s).unwrap();
        let pool = HashingPool::start(1, 0).unwrap();
        let submit: Arc<dyn Submit<Records>> = engine.clone();
        let jobs = Jobs::new(config, deadline, limits, views.clone(), submit, (tokens, pool));
        let site =
            Self { _folder: folder, jobs, engine, views, appended, away_since, has_failed, token };
        put(&site.views, (USER, ADA, [0; 12]), 1, b"");
        put(&site.views, (JOB, JOB_ID, ADA), 1, &job("ACME", Status::Pending));
        site
    }

    fn expect(
        &self,
        answer: impl FnOnce(&Views, &RecordCommand) -> Outcome<Records> + Send + 'static,
    ) {
        self.engine.answers.lock().unwrap().push_back(Box::new(answer));
    }

    fn ask(&self, method: Method, path: &str, body: &str) -> Reply {
        self.ask_from([127, 0, 0, 1], method, path, body)
    }

    fn ask_from(&self, address: [u8; 4], method: Method, path: &str, body: &str) -> Reply {
        let receiver = self.send(address, method, path, body);
        receiver.recv_timeout(PATIENCE).expect("every request is answered")
    }

    /// Sends a request; the reply comes when it comes.
    fn send(
        &self,
        address: [u8; 4],
        method: Method,
        path: &str,
        body: &str,
    ) -> mpsc::Receiver<Reply> {
        self.send_with(Headers::default(), address, method, path, body)
    }

    /// With more header fields.
    fn send_with(
        &self,
        headers: Headers,
        address: [u8; 4],
        method: Method,
        path: &str,
        body: &str,
    ) -> mpsc::Receiver<Reply> {
        let (sender, receiver) = mpsc::channel();
        let done = Completion::new(move |reply| sender.send(reply).unwrap());
        self.jobs.call(self.request(headers, address, method, path, body), done);
        receiver
    }

    fn request(
        &self,
        mut headers: Headers,
        address: [u8; 4],
        method: Method,
        path: &str,
        body: &str,
    ) -> Request {
        headers.push("Authorization", format!("Bearer {}", self.token).as_bytes());
        let arrived_s = jsonwebtoken::get_current_timestamp();
        Request {
            method,
            path: path.to_owned(),
            query: Bytes::new(),
            headers,
            body: Bytes::copy_from_slice(body.as_bytes()),
            peer: (address, 1).into(),
            arrived_ns: arrived_s * 1_000_000_000,
            arrived: Instant::now(),
        }
    }
}

fn job(company: &str, status: Status) -> Vec<u8> {
    Job { status, company, position: "clerk" }.encode()
}

/// Folds a put into the views, as the tailer does.
fn put(views: &Views, (kind, id, owner): (u32, RecordId, RecordId), version: u32, content: &[u8]) {
    fold(views, PutRecord { kind, id, owner, version: version - 1, ..Default::default() }, content);
}

fn fold(views: &Views, put: PutRecord, content: &[u8]) {
    let PutRecord { kind, id, owner, version, .. } = put;
    let write = RecordWrite::new(put, content).unwrap();
    let length = content.len() as u32;
    let event = RecordPut { kind, version: version + 1, id, owner, length, ..Default::default() };
    views.fold(decode::command(write.as_bytes()).unwrap(), &[Event::RecordPut(&event)]);
}

/// Folds a deletion.
fn delete(views: &Views, id: RecordId, owner: RecordId) {
    let command = DeleteRecord { kind: JOB, version: 1, id, owner, ..Default::default() };
    let event = RecordDeleted { kind: JOB, id, owner, ..Default::default() };
    views.fold(decode::Command::DeleteRecord(&command), &[Event::RecordDeleted(&event)]);
}

fn decided(position: u64, terminal: RecordTerminal) -> Outcome<Records> {
    let time_ns = NOW_MS * 1_000_000;
    Outcome::from(Decision {
        connection: 1,
        position: Position(position),
        time_ns,
        told: (),
        terminal,
    })
}

fn rejected(reason: RejectReason) -> Outcome<Records> {
    let rejected = Rejected { reason: reason.to_wire(), ..Default::default() };
    decided(0, RecordTerminal::Rejected(rejected))
}

fn body(reply: &Reply) -> &str {
    std::str::from_utf8(&reply.body).unwrap()
}

fn header<'a>(reply: &'a Reply, name: &str) -> Option<&'a str> {
    reply.headers.iter().find(|(other, _)| other == name).map(|(_, value)| &**value)
}

const NEW: &str = r#"{"company":"c","position":"p"}"#;

/// What the engine came to; then status, `Retry-After` and a part of the message.
type Case = (fn() -> Outcome<Records>, u16, Option<&'static str>, &'static str);

#[test]
fn an_engine_that_is_away_full_or_slow_is_told_apart() {
    let site = Site::new();
    let outcomes: [Case; 13] = [
        (|| Outcome::NotSent(NotSent::Disconnected), 503, Some("1"), "try again"),
        (|| Outcome::NotSent(NotSent::Busy), 503, Some("1"), "try again"),
        (|| Outcome::Unknown(Doubt::Timeout), 504, None, "not known"),
        (|| Outcome::Unknown(Doubt::ConnectionLost), 504, None, "not known"),
        (|| rejected(RejectReason::LogUnavailable), 503, Some("1"), "try again"),
        (|| rejected(RejectReason::TooLate), 503, Some("1"), "try again"),
        (|| rejected(RejectReason::DuplicateSequence), 503, Some("1"), "try again"),
        (|| rejected(RejectReason::StaleEpoch), 503, Some("1"), "try again"),
        (|| rejected(RejectReason::UnknownSession), 503, Some("1"), "try again"),
        (|| rejected(RejectReason::CapacityReached), 503, None, "no room"),
        (|| rejected(RejectReason::UnexpectedMessage), 503, None, "rules 2"),
        (|| rejected(RejectReason::UnknownOwner), 401, None, "Authentication invalid"),
        (|| rejected(RejectReason::Overflow), 500, None, "Something went wrong"),
    ];
    for (outcome, status, retry, part) in outcomes {
        site.expect(move |_, _| outcome());
        let reply = site.ask(Method::Post, "/api/v1/jobs", NEW);
        assert_eq!((reply.status, header(&reply, "Retry-After")), (status, retry), "{part}");
        assert!(body(&reply).contains(part), "{}", body(&reply));
    }
}

#[test]
fn a_change_that_meets_another_is_made_again_from_that_one() {
    let site = Site::new();
    // Somebody else sets the status between the look at the views and the engine's decision.
    site.expect(|views, _| {
        put(views, (JOB, JOB_ID, ADA), 2, &job("ACME", Status::Interview));
        views.arrive(Position(640));
        let reason = RejectReason::RecordVersion.to_wire();
        decided(640, RecordTerminal::Rejected(Rejected { reason, ..Default::default() }))
    });
    site.expect(|_, _| decided(700, RecordTerminal::Put(RecordPut::default())));
    let path = format!("/api/v1/jobs/{}", id_text(&JOB_ID));
    let reply = site.ask(Method::Patch, &path, NEW);
    assert_eq!(reply.status, 200, "{}", body(&reply));
    assert!(body(&reply).contains(r#""status":"interview""#), "{}", body(&reply));
    let seen = site.engine.seen.lock().unwrap();
    let sent = |command: &RecordCommand| match command {
        RecordCommand::Put(write) => {
            let decode::Command::PutRecord(put) = decode::command(write.as_bytes()).unwrap() else {
                panic!("a put")
            };
            assert!(put.command.not_after_ns > 0, "nothing happens after the deadline");
            (put.version, Job::decode(put.content()).unwrap().status)
        }
        RecordCommand::Delete(_) => panic!("a put"),
    };
    let sent: Vec<_> = seen.iter().map(sent).collect();
    assert_eq!(sent, [(1, Status::Pending), (2, Status::Interview)]);
}

#[test]
fn a_job_that_goes_away_meanwhile_is_not_there() {
    let site = Site::new();
    let path = format!("/api/v1/jobs/{}", id_text(&JOB_ID));
    for method in [Method::Patch, Method::Delete] {
        site.expect(|_, _| rejected(RejectReason::UnknownRecord));
        let reply = site.ask(method, &path, NEW);
        assert_eq!(reply.status, 404, "{}", body(&reply));
    }
}

#[test]
fn a_full_pool_sends_away_and_asks_the_engine_nothing() {
    let site = Site::new();
    let turn = site.turn().expect("nobody is there");
    let user = r#"{"name":"Ada","email":"a@b.co","password":"123456"}"#;
    for path in ["/api/v1/auth/register", "/api/v1/auth/login"] {
        let reply = site.ask(Method::Post, path, user);
        assert_eq!((reply.status, header(&reply, "Retry-After")), (503, Some("1")));
    }
    drop(turn);
    let reply = site.ask(Method::Post, "/api/v1/auth/login", user);
    assert_eq!(reply.status, 401);
    assert!(site.engine.seen.lock().unwrap().is_empty());
}

#[test]
fn views_that_have_stopped_answer_that_nothing_happened() {
    let site = Site::new();
    site.views.acknowledge(Position(50));
    site.views.halt();
    for (method, path) in
        [(Method::Get, "/api/v1/jobs"), (Method::Delete, "/api/v1/jobs/twelve-bytes")]
    {
        assert_eq!(site.ask(method, path, "").status, 503);
    }
}

#[test]
fn an_address_that_is_denied_gets_no_more_than_that() {
    let site = Site::new();
    let reply = site.ask_from([192, 0, 2, 7], Method::Get, "/api/v1/jobs", "");
    assert_eq!((reply.status, body(&reply)), (403, ""));
}

#[test]
fn a_user_who_takes_none_of_his_long_lists_gets_only_so_many() {
    let site = Site::new();
    for number in 0..1000u32 {
        let mut id = [3; 12];
        id[..4].copy_from_slice(&number.to_le_bytes());
        put(&site.views, (JOB, id, ADA), 1, &job("ACME", Status::Pending));
    }
    let list = || site.ask(Method::Get, "/api/v1/jobs", "");
    let mut held: Vec<_> = (0..LISTS_MAX).map(|_| list()).collect();
    assert!(held.iter().all(|reply| reply.status == 200 && reply.rest.is_some()));
    let refused = list();
    assert_eq!((refused.status, header(&refused, "Retry-After")), (503, Some("1")));
    // One is given up, another one sent whole.
    held.pop();
    let mut rest = list().rest.expect("there is room again");
    assert_eq!(list().status, 503);
    while rest.next_piece().is_some() {}
    assert_eq!(list().status, 200);
}

/// How many jobs a list has, with all of its pieces, and how many it says.
fn all_of(mut list: Reply) -> (usize, Option<u64>) {
    let mut text = list.body.to_vec();
    while let Some(piece) = list.rest.as_mut().and_then(Rest::next_piece) {
        text.extend_from_slice(&piece);
    }
    let list: serde_json::Value = serde_json::from_slice(&text).unwrap();
    (list["jobs"].as_array().unwrap().len(), list["count"].as_u64())
}

#[test]
fn whether_a_list_is_sent_in_pieces_goes_by_its_jobs() {
    let site = Site::new();
    let id = |number: u32| {
        let mut id = [3; 12];
        id[..4].copy_from_slice(&number.to_le_bytes());
        id
    };
    for number in 0..390 {
        put(&site.views, (JOB, id(number), ADA), 1, &job("ACME", Status::Pending));
    }
    let list = || site.ask(Method::Get, "/api/v1/jobs", "");
    assert!(list().rest.is_some(), "391 jobs");
    assert_eq!(all_of(list()), (391, Some(391)));
    // Three are left that were made far apart from each other.
    delete(&site.views, JOB_ID, ADA);
    for number in (0..390).filter(|number| number % 130 != 65) {
        delete(&site.views, id(number), ADA);
    }
    let reply = list();
    assert!(reply.rest.is_none() && body(&reply).ends_with(r#"],"count":3}"#), "{}", body(&reply));
    assert_eq!(all_of(reply), (3, Some(3)));
    for number in (0..390).filter(|number| number % 130 == 65) {
        delete(&site.views, id(number), ADA);
    }
    let reply = list();
    assert!(reply.rest.is_none());
    assert_eq!(body(&reply), r#"{"jobs":[],"count":0}"#);
}

#[test]
fn a_password_is_not_hashed_for_a_request_whose_time_is_over() {
    let login = r#"{"email":"ada@example.com","password":"secret"}"#;
    let registration = r#"{"name":"Ada","email":"ada@example.com","password":"secret"}"#;
    let (in_time, late) = (Site::new(), Site::with_deadline(Duration::ZERO));
    assert_eq!(in_time.ask(Method::Post, "/api/v1/auth/login", login).status, 401);
    for (path, body) in [("login", login), ("register", registration)] {
        let path = format!("/api/v1/auth/{path}");
        // A registration that was hashed would find no answer of the engine and panic.
        assert_eq!(late.ask(Method::Post, &path, body).status, 503, "{path}");
    }
}

#[test]
fn attempts_at_an_account_are_counted_for_logins_and_registrations() {
    let site = Site::new();
    // Of the next minute: whether that begins meanwhile makes no difference.
    let now_ms = (jsonwebtoken::get_current_timestamp() + 60) * 1000;
    let eve = record::key_of_email("eve@example.org");
    let address = [127, 0, 0, 1].into();
    for _ in 0..JobsConfig::default().attempts_per_account {
        site.jobs.shared.quotas.attempt_at(eve, address, now_ms).unwrap();
    }
    for (path, body) in [
        ("/api/v1/auth/login", r#"{"email":"eve@example.org","password":"123456"}"#),
        (
            "/api/v1/auth/register",
            r#"{"name":"Eve","email":"eve@example.org","password":"123456"}"#,
        ),
    ] {
        assert_eq!(site.ask(Method::Post, path, body).status, 429, "{path}");
    }
    let login = r#"{"email":"eve@example.org","password":"123456"}"#;
    let elsewhere = || {
        let is_free = || site.turn().is_some();
        assert!(eventually(is_free), "the password before is not compared");
        site.ask_from([198, 51, 100, 1], Method::Post, "/api/v1/auth/login", login)
    };
    assert_eq!(elsewhere().status, 401, "whose own attempts these were not");
    for _ in 0..JobsConfig::default().failures_per_account() {
        site.jobs.shared.quotas.login_failed(eve, now_ms);
    }
    assert_eq!(elsewhere().status, 429, "from wherever it was tried");
}

#[test]
fn a_token_of_nobody_is_not_believed() {
    let mut site = Site::new();
    assert_eq!(site.ask(Method::Get, "/api/v1/jobs", "").status, 200);
    let now_s = jsonwebtoken::get_current_timestamp();
    site.token = site.jobs.shared.tokens.issue(&"0".repeat(24), "Nobody", now_s).unwrap();
    assert_eq!(site.ask(Method::Get, "/api/v1/jobs", "").status, 401);
}

/// The answer to what a front refuses by itself.
fn refused(site: &Site, peer: [u8; 4], fault: Fault) -> Reply {
    refused_at(site, "/api/v1/jobs", peer, fault)
}

fn refused_at(site: &Site, path: &str, peer: [u8; 4], fault: Fault) -> Reply {
    let refused_ns = NOW_MS * 1_000_000;
    let headers = &Headers::default();
    site.jobs.fault(&Refused { path, headers, peer: (peer, 1).into(), refused_ns }, fault)
}

#[test]
fn what_is_no_request_is_counted_but_not_to_a_proxy() {
    let config = JobsConfig { requests_per_15_minutes: 5, ..JobsConfig::default() };
    let site = Site::of(Duration::from_secs(60), &config);
    let left = |peer, fault| {
        header(&refused(&site, peer, fault), "X-RateLimit-Remaining").map(str::to_owned)
    };
    let client = |fault| left([198, 51, 100, 1], fault);
    assert_eq!(client(Fault::UnknownMethod).as_deref(), Some("4"));
    assert_eq!(client(Fault::Panicked), None, "it was counted when it was called");
    assert_eq!(client(Fault::BodyTimeout).as_deref(), Some("3"));
    assert_eq!(left([10, 0, 0, 1], Fault::UnknownMethod), None);
    // Where the head was read it tells for whom a proxy speaks.
    let mut headers = Headers::default();
    headers.push("X-Forwarded-For", b"198.51.100.1");
    let proxied = Refused {
        path: "/api/v1/jobs",
        headers: &headers,
        peer: ([10, 0, 0, 1], 1).into(),
        refused_ns: NOW_MS * 1_000_000,
    };
    let reply = site.jobs.fault(&proxied, Fault::BodyTooLarge { limit: 1 });
    assert_eq!(header(&reply, "X-RateLimit-Remaining"), Some("2"));
}

#[test]
fn what_is_no_request_is_refused_for_the_limit_first() {
    let config = JobsConfig { requests_per_15_minutes: 2, ..JobsConfig::default() };
    let site = Site::of(Duration::from_secs(60), &config);
    let reply = |peer, fault| refused(&site, peer, fault);
    let client = |fault| reply([198, 51, 100, 1], fault);
    for fault in [Fault::UnknownMethod, Fault::BodyTooLarge { limit: 1 }] {
        assert_eq!(
            (client(fault).status, header(&client(Fault::Panicked), "Retry-After")),
            (fault.status(), None)
        );
    }
    for fault in [Fault::UnknownMethod, Fault::BodyTooLarge { limit: 1 }] {
        let refused = client(fault);
        assert_eq!(
            (refused.status, &*refused.body),
            (429, &b"Too many requests, please try again later."[..])
        );
        assert_eq!(header(&refused, "X-RateLimit-Remaining"), Some("0"));
        assert_eq!(header(&refused, "X-Content-Type-Options"), Some("nosniff"));
        assert!(header(&refused, "Retry-After").is_some() && header(&refused, "Allow").is_none());
    }
    assert_eq!(client(Fault::Panicked).status, 500, "it was let in when it was called");
    for _ in 0..5 {
        assert_eq!(reply([10, 0, 0, 1], Fault::UnknownMethod).status, 405, "a proxy");
    }
}
