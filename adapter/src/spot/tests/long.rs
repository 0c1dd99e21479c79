//! Answers that grow with the venue: how much of them is made at once, how many of them there may be, and how much
//! is looked at for a page of what is open.

use std::sync::mpsc;

use touchline_protocol::message::command::DefineSymbol;
use touchline_protocol::message::decode::Command;
use touchline_protocol::message::enums::Side;
use touchline_protocol::text::SymbolName;

use super::fixture::{ALICES_KEY, BOBS_KEY, NOW_MS, Site, body, header, open};
use crate::http::Method::Get;
use crate::http::{Answer, Completion, Reply, Request, Service};
use crate::spot::long::{LISTS_MAX, PIECE};
use crate::views::fixture::{ALICE, BEGIN_NS, BOB, Log, ONE, btcusdt};
use crate::views::orders;

/// Orders that Alice has open, by number from 1 on, each a millisecond behind the one before.
const OPEN: u64 = 3 * PIECE as u64 + 7;

fn crowded() -> (Site, u64) {
    let mut log = Log::venue();
    let first_ms = log.time_ns / 1_000_000;
    for id in 1..=OPEN {
        log.rest(ALICE, Side::Buy, id, 20 * ONE, ONE);
    }
    for id in OPEN + 1..=OPEN + PIECE as u64 {
        log.rest(BOB, Side::Buy, id, 20 * ONE, ONE);
    }
    assert!(first_ms > BEGIN_NS / 1_000_000);
    (Site::new(log), first_ms)
}

/// The numbers of the orders of a list.
fn numbers(list: &[u8]) -> Vec<u64> {
    let list: serde_json::Value = serde_json::from_slice(list).unwrap();
    list.as_array().unwrap().iter().map(|order| order["orderId"].as_u64().unwrap()).collect()
}

fn open_orders(site: &Site, key: touchline_protocol::units::KeyId, query: &str) -> Reply {
    site.reply(site.signed_by(key, Get, "openOrders", query))
}

#[test]
fn a_long_list_of_open_orders_is_made_piece_by_piece() {
    let (site, _) = crowded();
    for query in ["", "symbol=BTCUSDT"] {
        let reply = open_orders(&site, ALICES_KEY, query);
        let mut pieces = vec![reply.body.to_vec()];
        let mut rest = reply.rest.expect("it does not come as a whole");
        pieces.extend(std::iter::from_fn(|| rest.next_piece().map(|piece| piece.to_vec())));
        let orders = |piece: &Vec<u8>| body_text(piece).matches("\"orderId\"").count();
        assert_eq!(pieces.iter().map(orders).collect::<Vec<_>>(), [PIECE, PIECE, PIECE, 7]);
        assert_eq!(numbers(&pieces.concat()), (1..=OPEN).collect::<Vec<_>>());
    }
    let reply = open_orders(&site, BOBS_KEY, "");
    assert!(reply.rest.is_none(), "a piece is sent as a whole");
    assert_eq!(numbers(&reply.body), (OPEN + 1..=OPEN + PIECE as u64).collect::<Vec<_>>());
    assert_eq!(body(&open_orders(&site, ALICES_KEY, "symbol=ETHBTC")), "[]");
}

fn body_text(piece: &[u8]) -> &str {
    std::str::from_utf8(piece).unwrap()
}

#[test]
fn an_account_is_sent_a_few_long_lists_at_the_same_time() {
    let (site, _) = crowded();
    let mut taken: Vec<_> = (0..LISTS_MAX).map(|_| open_orders(&site, ALICES_KEY, "")).collect();
    assert!(taken.iter().all(|reply| reply.status == 200));
    let refused = open_orders(&site, ALICES_KEY, "symbol=BTCUSDT");
    assert_eq!((refused.status, header(&refused, "Retry-After")), (429, Some("1")));
    assert_eq!(body(&refused), r#"{"code":-1003,"msg":"Too many requests queued."}"#);
    assert_eq!(open_orders(&site, BOBS_KEY, "").status, 200, "others are not concerned");
    assert_eq!(open_orders(&site, ALICES_KEY, "symbol=ETHBTC").status, 200, "nor short lists");
    // One is given up, of another the last piece was taken.
    taken.pop();
    assert_eq!(open_orders(&site, ALICES_KEY, "").status, 200);
    let mut last = taken.pop().and_then(|reply| reply.rest).unwrap();
    let again = open_orders(&site, ALICES_KEY, "");
    assert_eq!(again.status, 200);
    taken.push(again);
    taken.push(open_orders(&site, ALICES_KEY, ""));
    assert_eq!(taken.last().unwrap().status, 429);
    while last.next_piece().is_some() {}
    assert_eq!(open_orders(&site, ALICES_KEY, "").status, 200);
}

#[test]
fn a_page_of_open_orders_looks_at_as_many_as_it_shows() {
    let (site, first_ms) = crowded();
    let middle = first_ms + OPEN / 2;
    for (query, expected) in [
        ("limit=2".to_owned(), [OPEN - 1, OPEN]),
        (format!("limit=2&orderId={}", OPEN / 2), [OPEN / 2, OPEN / 2 + 1]),
        (format!("limit=2&startTime={middle}"), [OPEN / 2 + 1, OPEN / 2 + 2]),
        (format!("limit=2&endTime={middle}"), [OPEN / 2, OPEN / 2 + 1]),
        (format!("limit=2&startTime={middle}&endTime={NOW_MS}"), [OPEN / 2 + 1, OPEN / 2 + 2]),
    ] {
        let before = orders::LOOKS.get();
        let reply = site.reply(site.signed(Get, "allOrders", &format!("symbol=BTCUSDT&{query}")));
        assert_eq!(numbers(&reply.body), expected, "{query}");
        let looks = orders::LOOKS.get() - before;
        assert!(looks < 20, "{looks} looks at orders for {query}");
    }
}

/// Sends a request that is answered at once; how often its work was handed back on the way.
fn steps(site: &Site, request: Request) -> (usize, Reply) {
    let mut steps = 0;
    let (sender, receiver) = mpsc::channel();
    let completion = || {
        let sender = sender.clone();
        Completion::of(move |answer| sender.send(answer).unwrap())
    };
    site.spot.call(request, completion());
    loop {
        match receiver.try_recv().expect("the request is not answered at once") {
            Answer::Reply(reply) => return (steps, reply),
            Answer::Work(work) => {
                steps += 1;
                work.run(completion());
            }
        }
    }
}

#[test]
fn statistics_of_many_symbols_are_gathered_in_steps() {
    const SYMBOLS: u64 = 100;
    let mut log = Log::venue();
    for id in 2..SYMBOLS {
        let name = SymbolName::new(&format!("S{id}")).unwrap();
        log.done(Command::DefineSymbol(&DefineSymbol { name, ..btcusdt() }), id);
    }
    let site = Site::new(log);
    let (taken, reply) = steps(&site, open(Get, "ticker/24hr", ""));
    assert_eq!((reply.status, taken), (200, 3), "32 at once");
    let list: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
    let names: Vec<_> =
        list.as_array().unwrap().iter().map(|one| one["symbol"].as_str().unwrap()).collect();
    let expected: Vec<_> = (2..SYMBOLS).map(|id| format!("S{id}")).collect();
    assert_eq!(
        (&names[..2], names[2..].to_vec()),
        (&["BTCUSDT", "ETHBTC"][..], expected.iter().map(String::as_str).collect())
    );
    assert_eq!(steps(&site, open(Get, "ticker/24hr", "symbol=S7")).0, 0);
    let (taken, reply) = steps(&site, open(Get, "ticker/24hr", "symbols=[]"));
    assert_eq!((taken, body(&reply)), (0, "[]"));
}
