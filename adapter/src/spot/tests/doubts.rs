//! What an account is told while nobody knows what became of a command of its own.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use touchline_protocol::message::enums::{RejectReason, Side};
use touchline_protocol::message::event::Rejected;
use touchline_protocol::units::Position;

use super::fixture::{ALICES_KEY, BOBS_KEY, Site, body, config, decided, open};
use crate::http::Method::{Get, Post};
use crate::http::{Completion, Headers, Service};
use crate::link::{Doubt, Outcome, Terminal};
use crate::spot::SpotConfig;
use crate::views::fixture::{ALICE, Log, ONE};

const PLACE: &str =
    "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=2&price=100&newClientOrderId=a";
const LOOK: &str = "symbol=BTCUSDT&origClientOrderId=a";
const UNKNOWN: &str = r#"{"code":-1007,"msg":"Timeout waiting for response from backend server. Send status unknown; execution status unknown."}"#;
const NOT_THERE: &str = r#"{"code":-2013,"msg":"Order does not exist."}"#;

/// An engine that dies with an order of Alice's in the live window, not on disk: nobody knows of it.
fn in_doubt(site: &Site, doubt: Doubt) {
    site.appended.store(640, Ordering::SeqCst);
    site.expect(Outcome::Unknown(doubt));
    let reply = site.reply(site.signed(Post, "order", PLACE));
    assert!(reply.status >= 500, "{}", body(&reply));
}

#[test]
fn what_is_in_doubt_is_answered_once_it_is_known_and_to_its_account_alone() {
    for doubt in [Doubt::ConnectionLost, Doubt::Timeout, Doubt::UnexpectedReply] {
        let site = Site::new(Log::venue());
        in_doubt(&site, doubt);
        let waiting = [("order", LOOK), ("openOrders", ""), ("account", "")]
            .map(|(path, query)| site.send(site.signed(Get, path, query)));
        assert!(waiting.iter().all(|reply| reply.try_recv().is_err()), "{doubt:?}");
        let reply = site.reply(site.signed_by(BOBS_KEY, Get, "account", ""));
        assert_eq!(reply.status, 200, "it is not Bob's");
        assert_eq!(site.reply(open(Get, "depth", "symbol=BTCUSDT")).status, 200);
        // Another engine has found the order.
        site.views.arrive(Position(640));
        let statuses = waiting.map(|reply| reply.try_recv().unwrap().status);
        assert_eq!(statuses, [400, 200, 200], "{doubt:?}");
        let reply = site.reply(site.signed(Get, "order", LOOK));
        assert_eq!(body(&reply), NOT_THERE, "now that is certain");
    }
}

#[test]
fn while_no_engine_comes_back_lists_are_as_far_as_they_are_known_and_nothing_is_denied() {
    let mut log = Log::venue();
    log.rest(ALICE, Side::Buy, 1, 100 * ONE, ONE);
    // Whoever comes behind the time that the command had.
    let site = Site::with(log, SpotConfig { deadline: Duration::ZERO, ..config() });
    in_doubt(&site, Doubt::ConnectionLost);
    let open_orders = site.reply(site.signed(Get, "openOrders", ""));
    assert_eq!(open_orders.status, 200, "reads go on");
    let known = site.reply(site.signed(Get, "order", "symbol=BTCUSDT&orderId=1"));
    assert_eq!(known.status, 200);
    let unknown = site.send(site.signed(Get, "order", LOOK));
    assert!(unknown.try_recv().is_err());
    site.views.expire_now();
    let unknown = unknown.try_recv().unwrap();
    assert_eq!((unknown.status, body(&unknown)), (504, UNKNOWN));
}

/// Also of a command of which this adapter knows nothing: another one sent it, or this one was started again since.
#[test]
fn an_order_is_denied_only_where_all_that_was_appended_is_known() {
    let site = Site::new(Log::venue());
    site.appended.store(640, Ordering::SeqCst);
    let requests =
        [("order", LOOK), ("orderList", "orderListId=7")].map(|(path, query)| (path, query));
    let waiting =
        requests.map(|(path, query)| site.send(site.signed_by(ALICES_KEY, Get, path, query)));
    assert!(waiting.iter().all(|reply| reply.try_recv().is_err()));
    assert_eq!(site.reply(site.signed(Get, "openOrders", "")).status, 200);
    site.views.arrive(Position(640));
    for reply in waiting {
        assert_eq!(reply.try_recv().unwrap().status, 400);
    }
}

/// Another adapter may have told an account of it, so that is everybody's until the engine has been away for as long as
/// that account's command had.
#[test]
fn what_an_engine_that_is_away_had_appended_is_waited_for_by_every_account() {
    for (deadline, waits) in [(config().deadline, true), (Duration::ZERO, false)] {
        let site = Site::with(Log::venue(), SpotConfig { deadline, ..config() });
        site.appended.store(640, Ordering::SeqCst);
        *site.away_since.lock().unwrap() = Some(Instant::now());
        assert_eq!(site.reply(open(Get, "depth", "symbol=BTCUSDT")).status, 200);
        // Whoever is nobody is told so first (facts §1.4).
        let bobs = site.keys.api_key(BOBS_KEY);
        for (key, code) in [(None, -2014), (Some(&*"x".repeat(64)), -2015), (Some(&*bobs), -1022)] {
            let mut request = site.signed(Get, "openOrders", "");
            request.headers = Headers::default();
            if let Some(key) = key {
                request.headers.push("X-SVC-APIKEY", key.as_bytes());
            }
            let reply = site.reply(request);
            let told = body(&reply);
            assert!(told.contains(&format!("\"code\":{code},")), "{code}: {told}");
        }
        let accounts = [ALICES_KEY, BOBS_KEY];
        let replies = accounts.map(|key| site.send(site.signed_by(key, Get, "openOrders", "")));
        let at_once = replies.each_ref().map(|reply| reply.try_recv().is_ok());
        assert_eq!(at_once, [!waits; 2]);
        site.views.arrive(Position(640));
        assert!(!waits || replies.into_iter().all(|reply| reply.try_recv().unwrap().status == 200));
    }
}

/// What is appended behind it gets on disk with the next engine only, and nobody waits for that. Whose command it was
/// that nobody knows of is told so again.
#[test]
fn beside_a_failed_log_what_is_not_on_disk_is_denied_at_once_but_to_whom_it_is_in_doubt() {
    let site = Site::new(Log::venue());
    site.has_failed.store(true, Ordering::SeqCst);
    in_doubt(&site, Doubt::Timeout);
    let own = site.reply(site.signed(Get, "order", LOOK));
    assert_eq!((own.status, body(&own)), (504, UNKNOWN));
    assert_eq!(site.reply(site.signed(Get, "openOrders", "")).status, 200);
    let bobs = site.reply(site.signed_by(BOBS_KEY, Get, "order", LOOK));
    assert_eq!((bobs.status, body(&bobs)), (400, NOT_THERE));
    // One that has ended is waited for like any other.
    *site.away_since.lock().unwrap() = Some(Instant::now());
    let waits = site.send(site.signed_by(BOBS_KEY, Get, "order", LOOK));
    assert!(waits.try_recv().is_err());
    // What is on disk and not in the views yet is not denied.
    let site = Site::new(Log::venue());
    site.has_failed.store(true, Ordering::SeqCst);
    site.appended.store(640, Ordering::SeqCst);
    let denied = site.views.certain_from(None);
    assert_eq!(denied, Some(Position(0)));
    site.watermark.store(320, Ordering::SeqCst);
    assert_eq!(site.views.certain_from(None), Some(Position(320)));
}

/// An engine that stood still when nobody knew of it any more takes it when it goes on.
#[test]
fn beside_a_failed_log_an_order_that_was_taken_behind_its_doubt_is_not_denied_to_its_account() {
    let site = Site::new(Log::venue());
    site.expect(Outcome::Unknown(Doubt::ConnectionLost));
    assert_eq!(site.reply(site.signed(Post, "order", PLACE)).status, 500);
    site.appended.store(640, Ordering::SeqCst);
    site.engine.under_way.lose(ALICES_KEY);
    site.has_failed.store(true, Ordering::SeqCst);
    let own = site.reply(site.signed(Get, "order", LOOK));
    assert_eq!((own.status, body(&own)), (504, UNKNOWN));
    let bobs = site.reply(site.signed_by(BOBS_KEY, Get, "order", LOOK));
    assert_eq!((bobs.status, body(&bobs)), (400, NOT_THERE));
}

#[test]
fn an_order_is_denied_once_it_is_lost_with_the_engine_that_had_appended_it() {
    let site = Site::new(Log::venue());
    in_doubt(&site, Doubt::ConnectionLost);
    let reply = site.send(site.signed(Get, "order", LOOK));
    assert!(reply.try_recv().is_err());
    // The next engine's log ends before that.
    site.appended.store(320, Ordering::SeqCst);
    site.watermark.store(320, Ordering::SeqCst);
    site.views.succeed(Position(320));
    site.views.arrive(Position(320));
    assert_eq!(body(&reply.try_recv().unwrap()), NOT_THERE);
}

/// Its client may have gone before the answer: the engine that hangs carries it out when it goes on.
#[test]
fn an_order_is_denied_only_where_no_command_of_its_account_is_under_way() {
    let site = Site::new(Log::venue());
    site.engine.hangs.store(true, Ordering::SeqCst);
    let _placed = site.send(site.signed(Post, "order", PLACE));
    let looks = || [("order", LOOK), ("orderList", "orderListId=7")];
    let waiting = looks().map(|(path, query)| site.send(site.signed(Get, path, query)));
    assert!(waiting.iter().all(|reply| reply.try_recv().is_err()));
    assert_eq!(site.reply(site.signed(Get, "openOrders", "")).status, 200);
    let bobs = site.reply(site.signed_by(BOBS_KEY, Get, "order", LOOK));
    assert_eq!((bobs.status, body(&bobs)), (400, NOT_THERE));
    // The engine goes on, and what it has done is waited for like anything else.
    site.appended.store(640, Ordering::SeqCst);
    site.engine.under_way.end_first(Outcome::Unknown(Doubt::ConnectionLost));
    assert!(waiting.iter().all(|reply| reply.try_recv().is_err()));
    site.views.arrive(Position(640));
    assert!(waiting.iter().all(|reply| body(&reply.try_recv().unwrap()).contains("-201")));
}

/// Its answer waits for the disk, in vain. Nobody else does; but the next engine may fill it, and its client may have
/// gone before the answer.
#[test]
fn beside_a_failed_log_nothing_is_denied_to_whom_a_command_is_under_way_of() {
    let mut log = Log::venue();
    log.rest(ALICE, Side::Buy, 1, 100 * ONE, ONE);
    let site = Site::new(log);
    site.engine.hangs.store(true, Ordering::SeqCst);
    let placed = site.send(site.signed(Post, "order", PLACE));
    site.has_failed.store(true, Ordering::SeqCst);
    // On its way to the engine, and behind what is on disk.
    for appended in [0, 640] {
        site.appended.store(appended, Ordering::SeqCst);
        for (path, query) in [("order", LOOK), ("orderList", "orderListId=7")] {
            let own = site.reply(site.signed(Get, path, query));
            assert_eq!((own.status, body(&own)), (504, UNKNOWN), "{path}, {appended}");
        }
        for (path, query) in [("order", "symbol=BTCUSDT&orderId=1"), ("openOrders", "")] {
            assert_eq!(site.reply(site.signed(Get, path, query)).status, 200, "{path}");
        }
        let bobs = site.reply(site.signed_by(BOBS_KEY, Get, "order", LOOK));
        assert_eq!((bobs.status, body(&bobs)), (400, NOT_THERE));
    }
    // Decided on what is on disk.
    let rejected =
        Rejected { reason: RejectReason::LogUnavailable.to_wire(), ..Default::default() };
    site.engine.under_way.end_first(decided(Terminal::Rejected(rejected)));
    assert_eq!(placed.try_recv().unwrap().status, 503);
    assert_eq!(body(&site.reply(site.signed(Get, "order", LOOK))), NOT_THERE);
}

#[test]
fn an_order_is_in_doubt_also_when_its_client_has_gone_before_the_answer() {
    let site = Site::new(Log::venue());
    site.engine.hangs.store(true, Ordering::SeqCst);
    site.spot.call(site.signed(Post, "order", PLACE), Completion::of(drop));
    site.appended.store(640, Ordering::SeqCst);
    site.engine.under_way.end_first(Outcome::Unknown(Doubt::ConnectionLost));
    let own = site.send(site.signed(Get, "openOrders", ""));
    assert!(own.try_recv().is_err());
    site.views.arrive(Position(640));
    assert_eq!(own.try_recv().unwrap().status, 200);
}
