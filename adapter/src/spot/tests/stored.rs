//! Whatever is read of the past is answered the same whether it is in memory, in the store, or half and
//! half; and nothing is read from the store while the views are held, or these tests panic
//! ([`crate::views::looking`]).

use touchline_protocol::message::command::CancelOrderNamed;
use touchline_protocol::message::decode::{Command, Event};
use touchline_protocol::message::enums::Side;

use super::fixture::{ALICES_KEY, BOBS_KEY, NOW_MS, Site, body};
use super::past::{changed, place_list};
use crate::history::store::Batch;
use crate::http::Method::Get;
use crate::views::fixture::{ALICE, BEGIN_NS, BOB, Log, ONE};
use crate::views::state::{Archive, State};

/// A list that ended and one that is open, three trades, an order that ended and one that rests.
fn fill(log: &mut Log, between: impl FnOnce(&mut State)) {
    place_list(log, 0, 1, 2);
    place_list(log, 1, 3, 4);
    let ended = changed(0, 1, 2);
    let cancel = CancelOrderNamed::default();
    let events = [Event::OrderListChanged(&ended)];
    log.fold(Command::CancelOrderNamed(&cancel), &events).unwrap();
    log.trade(3, 100 * ONE, ONE / 100);
    log.trade(4, 101 * ONE, ONE / 50);
    log.rest(BOB, Side::Sell, 9, 200 * ONE, ONE);
    log.cancel(9, ONE, 10).unwrap();
    between(&mut log.state);
    log.trade(6, 99 * ONE, ONE / 10);
    log.rest(ALICE, Side::Buy, 13, 50 * ONE, ONE);
}

/// Each of them with the key that signs it, none for what anybody may ask.
fn questions() -> Vec<(&'static str, String, bool)> {
    let own = |path, query: &str| (path, query.to_owned(), true);
    let open = |path, query: &str| (path, query.to_owned(), false);
    vec![
        own("order", "symbol=BTCUSDT&orderId=9"),
        own("order", "symbol=BTCUSDT&orderId=13"),
        own("order", "symbol=BTCUSDT&origClientOrderId=c9"),
        own("order", "symbol=BTCUSDT&orderId=9&origClientOrderId=c1"),
        own("order", "symbol=BTCUSDT&orderId=99"),
        own("allOrders", "symbol=BTCUSDT"),
        own("allOrders", "symbol=BTCUSDT&orderId=4&limit=3"),
        own("allOrders", &format!("symbol=BTCUSDT&endTime={NOW_MS}&limit=2")),
        own("orderList", "orderListId=0"),
        own("orderList", "orderListId=1"),
        own("orderList", "origClientOrderId=list0"),
        own("orderList", "origClientOrderId=nothing"),
        own("allOrderList", ""),
        own("allOrderList", "fromId=1"),
        own("myTrades", "symbol=BTCUSDT"),
        own("myTrades", "symbol=BTCUSDT&orderId=5"),
        own("myTrades", "symbol=BTCUSDT&orderId=6"),
        own("myTrades", "symbol=BTCUSDT&fromId=4"),
        own("myTrades", &format!("symbol=BTCUSDT&startTime={}", BEGIN_NS / 1_000_000)),
        open("trades", "symbol=BTCUSDT"),
        open("historicalTrades", "symbol=BTCUSDT&fromId=4"),
        open("aggTrades", "symbol=BTCUSDT"),
        open("aggTrades", "symbol=BTCUSDT&fromId=4"),
        open("klines", "symbol=BTCUSDT&interval=1m"),
        open("klines", "symbol=BTCUSDT&interval=1M"),
        open("avgPrice", "symbol=BTCUSDT"),
        open("ticker/24hr", "symbol=BTCUSDT"),
        open("ticker/24hr", ""),
        open("ticker/price", ""),
    ]
}

/// All answers, by both accounts where somebody has to sign.
fn answers(site: &Site) -> Vec<String> {
    let ask = |(path, query, is_own): &(&str, String, bool), key| {
        let request = if *is_own {
            site.signed_by(key, Get, path, query)
        } else {
            let mut request = super::fixture::open(Get, path, query);
            request.headers.push("X-SVC-APIKEY", site.keys.api_key(key).as_bytes());
            request
        };
        let reply = site.reply(request);
        format!("{path}?{query}: {} {}", reply.status, body(&reply))
    };
    let questions = questions();
    [ALICES_KEY, BOBS_KEY]
        .iter()
        .flat_map(|key| questions.iter().map(|question| ask(question, *key)).collect::<Vec<_>>())
        .collect()
}

/// What a store has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stored {
    /// What was there in the middle.
    Half,
    /// That, by a build whose rows of own trades did not tell of the trade.
    HalfInFormat4,
    /// All of it.
    Whole,
}

/// The answers of a service with such a store.
fn stored_answers(stored: Stored) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let archive = Archive::open(folder.path(), [7; 16]).unwrap();
    let store = |state: &mut State| {
        let batch = state.history.freeze(Batch::default());
        archive.store().commit(&batch).unwrap();
        state.history.thaw();
        assert_eq!(state.history.waiting(), 0);
    };
    let mut log = Log::venue_in(archive.restore().unwrap());
    fill(&mut log, store);
    match stored {
        Stored::Half => {}
        Stored::HalfInFormat4 => archive.store().make_format_4().unwrap(),
        Stored::Whole => store(&mut log.state),
    }
    answers(&Site::new(log))
}

#[test]
fn answers_come_from_the_store_as_they_come_from_memory() {
    let mut log = Log::venue();
    fill(&mut log, |_| ());
    let expected = answers(&Site::new(log));
    let good = expected.iter().filter(|answer| answer.contains(": 200 ")).count();
    assert!(good > expected.len() * 3 / 4, "{expected:#?}");
    for stored in [Stored::Half, Stored::HalfInFormat4, Stored::Whole] {
        for (found, expected) in stored_answers(stored).iter().zip(&expected) {
            assert_eq!(found, expected, "{stored:?}");
        }
    }
}
