//! An engine that is away, full, silent or too late, and requests that the front refuses.

use std::time::Duration;

use touchline_protocol::message::enums::RejectReason;

use super::errors::assert_error;
use super::fixture::{NOW_MS, Site, body, canceled, config, decided, header};
use crate::http::Method::{Delete, Get, Post};
use crate::http::{Fault, Headers, Refused, Service};
use crate::link::{Doubt, NotSent, Outcome, Terminal};
use crate::spot::SpotConfig;
use crate::views::fixture::Log;
use crate::views::state::Archive;

#[test]
fn an_engine_that_is_away_or_silent() {
    let site = Site::new(Log::venue());
    let queries = [
        (Post, "symbol=BTCUSDT&side=BUY&type=MARKET&quantity=1"),
        (Delete, "symbol=BTCUSDT&orderId=1"),
    ];
    let unexpected =
        "An unexpected response was received from the message bus. Execution status unknown.";
    for (method, query) in queries {
        for (outcome, expected) in [
            (
                Outcome::NotSent(NotSent::Disconnected),
                (500, -1001, "Internal error; unable to process your request. Please try again."),
            ),
            (Outcome::NotSent(NotSent::Busy), (429, -1003, "Too many requests queued.")),
            (
                Outcome::Unknown(Doubt::Timeout),
                (
                    504,
                    -1007,
                    "Timeout waiting for response from backend server. Send status unknown; execution status unknown.",
                ),
            ),
            (Outcome::Unknown(Doubt::ConnectionLost), (500, -1006, unexpected)),
            (Outcome::Unknown(Doubt::UnexpectedReply), (500, -1006, unexpected)),
        ] {
            let what = format!("{} {outcome:?}", method.token());
            site.expect(outcome);
            let reply = site.reply(site.signed(method, "order", query));
            assert_error(&reply, expected, &what);
            let retry_after = (expected.0 == 429).then_some("1");
            assert_eq!(header(&reply, "Retry-After"), retry_after, "{what}");
        }
    }
}

/// Of the deadline and the `recvWindow` the one that ends first says what came too late. That nothing happened is
/// certain either way.
#[test]
fn commands_that_reach_the_engine_too_late() {
    let patience = |deadline| SpotConfig { deadline, ..config() };
    let outside = (400, -1021, "Timestamp for this request is outside of the recvWindow.");
    let queued = (429, -1003, "Too many requests queued.");
    for (deadline_ms, expected) in [(4999, queued), (5001, outside)] {
        let site = Site::with(Log::venue(), patience(Duration::from_millis(deadline_ms)));
        for (method, query) in [
            (Post, "symbol=BTCUSDT&side=BUY&type=MARKET&quantity=1"),
            (Delete, "symbol=BTCUSDT&orderId=1"),
        ] {
            site.expect_reject(RejectReason::TooLate, 0);
            let request = site.signed(method, "order", query);
            let deadline = request.arrived + Duration::from_millis(deadline_ms);
            let reply = site.reply(request);
            assert_error(&reply, expected, method.token());
            let retry_after = (expected == queued).then_some("1");
            assert_eq!(header(&reply, "Retry-After"), retry_after);
            assert_eq!(site.engine.deadlines.lock().unwrap().pop(), Some(deadline));
        }
    }
}

/// Every reply says what the address has used up, also those that the front gives.
#[test]
fn requests_that_the_front_refuses() {
    let site = Site::new(Log::venue());
    let refused = Refused {
        path: "/api/v3/order",
        headers: &Headers::default(),
        peer: ([127, 0, 0, 1], 4000).into(),
        refused_ns: NOW_MS * 1_000_000,
    };
    let faults = [
        (Fault::UnknownMethod, "1"),
        (Fault::BodyTooLarge { limit: 5 }, "2"),
        (Fault::BodyBroken, "3"),
        (Fault::Panicked, "3"),
    ];
    for (fault, used) in faults {
        let reply = site.spot.fault(&refused, fault);
        assert_eq!((reply.status, &reply.body), (fault.status(), &fault.reply().body));
        assert_eq!(header(&reply, "X-SVC-USED-WEIGHT-1M"), Some(used), "{fault:?}");
        assert_eq!(header(&reply, "X-SVC-UUID").map(str::len), Some(36));
        assert_eq!(header(&reply, "Cache-Control"), Some("no-cache, no-store, must-revalidate"));
    }
    assert_eq!(
        header(&site.spot.fault(&refused, Fault::UnknownMethod), "Allow"),
        Some("GET, HEAD, POST, DELETE, OPTIONS"),
        "what the path takes"
    );
    let nowhere = Refused { path: "/api/v3/nowhere", ..refused };
    let reply = site.spot.fault(&nowhere, Fault::UnknownMethod);
    assert_eq!((reply.status, body(&reply), header(&reply, "Allow")), (404, "", None));
    let authority = Refused { path: "", ..refused };
    assert_eq!(site.spot.fault(&authority, Fault::UnknownMethod).status, 405, "no path at all");
}

/// A history that cannot be read fails a request for nothing but itself; behind a decision of the engine it
/// leaves open what became of the command.
#[test]
fn a_decision_whose_answer_the_history_does_not_give() {
    let folder = tempfile::tempdir().unwrap();
    let archive = Archive::open(folder.path(), [7; 16]).unwrap();
    let site = Site::new(Log::venue_in(archive.restore().unwrap()));
    let store = archive.store();
    let every_reader: Vec<_> = std::iter::from_fn(|| store.reader().ok()).collect();
    let query = "symbol=BTCUSDT&orderId=1";
    let unknown = "An unknown error occured while processing the request.";
    let reply = site.reply(site.signed(Get, "order", query));
    assert_error(&reply, (500, -1000, unknown), "a query");
    let unexpected =
        "An unexpected response was received from the message bus. Execution status unknown.";
    site.expect(decided(Terminal::Canceled(canceled())));
    let reply = site.reply(site.signed(Delete, "order", query));
    assert_error(&reply, (500, -1006, unexpected), "a cancel");
    site.expect_reject(RejectReason::UnexpectedMessage, 0);
    let reply = site.reply(site.signed(Delete, "order", query));
    assert_error(&reply, (500, -1000, unknown), "a rejection without a code of its own");
    drop(every_reader);
    let reply = site.reply(site.signed(Get, "order", query));
    assert_error(&reply, (400, -2013, "Order does not exist."), "a query later");
}
