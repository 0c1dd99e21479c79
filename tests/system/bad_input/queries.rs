//! Bad queries, cancels and public requests, unknown paths and methods.

use super::{
    Bench, Case, LONG_RANGE, Maker, ORDER_PATH, SYMBOL_RANGE, answer, empty, illegal, missing,
    with, without,
};
use crate::system::http::{Http, Request};
use crate::system::venue::Venue;

#[test]
fn queries_and_cancels() {
    let bench = Bench::new();
    let [own, foreign] = bench.resting;
    let query = |text: &str| bench.signed("GET", ORDER_PATH, text);
    let cancel = |text: &str| bench.signed("DELETE", ORDER_PATH, text);
    let not_there = || answer(-2013, "Order does not exist.");
    let unknown = || answer(-2011, "Unknown order sent.");
    let neither = |first: &str, second: &str| {
        answer(
            -1102,
            format!("Param '{first}' or '{second}' must be sent, but both were empty/null!"),
        )
    };
    let id_mismatch = || answer(-2039, "Client order ID is not correct for this order ID.");
    let (id, client_id) = ("orderId", "origClientOrderId");
    let mut cases = vec![
        Case::new("query of an unknown id", query("symbol=BTCUSDT&orderId=77777"), not_there()),
        Case::new(
            "query on another symbol",
            query(&format!("symbol=ETHUSDT&orderId={own}")),
            not_there(),
        ),
        Case::new(
            "query of another's order",
            query(&format!("symbol=BTCUSDT&orderId={foreign}")),
            not_there(),
        ),
        Case::new(
            "query of an unknown name",
            query("symbol=BTCUSDT&origClientOrderId=nobody"),
            not_there(),
        ),
        Case::new(
            "query of the largest id",
            query("symbol=BTCUSDT&orderId=18446744073709551615"),
            not_there(),
        )
        .or(answer(-1108, "Parameter 'orderId' overflowed.")),
        Case::new("query without any id", query("symbol=BTCUSDT"), neither(id, client_id))
            .or(neither(client_id, id)),
        Case::new("cancel of an unknown id", cancel("symbol=BTCUSDT&orderId=77777"), unknown()),
        Case::new(
            "cancel on another symbol",
            cancel(&format!("symbol=ETHUSDT&orderId={own}")),
            unknown(),
        ),
        Case::new(
            "cancel of another's order",
            cancel(&format!("symbol=BTCUSDT&orderId={foreign}")),
            unknown(),
        ),
        Case::new(
            "cancel of an unknown name",
            cancel("symbol=BTCUSDT&origClientOrderId=nobody"),
            unknown(),
        ),
        Case::new("cancel without any id", cancel("symbol=BTCUSDT"), neither(id, client_id))
            .or(neither(client_id, id))
            .or(answer(-2011, "Cancel order is invalid. Check origClOrdId and orderId.")),
        Case::new(
            "query with an id and another's name",
            query(&format!("symbol=BTCUSDT&orderId={own}&origClientOrderId=other")),
            id_mismatch(),
        )
        .or(not_there()),
        Case::new(
            "cancel with an id and another's name",
            cancel(&format!("symbol=BTCUSDT&orderId={own}&origClientOrderId=other")),
            id_mismatch(),
        )
        .or(unknown()),
        Case::new(
            "cancel with an empty name",
            cancel("symbol=BTCUSDT&origClientOrderId="),
            answer(-1119, "Original client order ID was empty."),
        )
        .or(empty(client_id)),
    ];
    for (name, make) in [("query", &query as &dyn Fn(&str) -> Maker), ("cancel", &cancel)] {
        let by_id = format!("symbol=BTCUSDT&orderId={own}");
        cases.extend([
            Case::new(
                format!("{name} without a symbol"),
                make(&without(&by_id, "symbol")),
                missing("symbol"),
            ),
            Case::new(
                format!("{name} on no symbol"),
                make(&with(&by_id, "symbol", "NOSUCH")),
                answer(-1121, "Invalid symbol."),
            ),
            Case::new(
                format!("{name} by letters"),
                make(&with(&by_id, id, "abc")),
                illegal(id, LONG_RANGE),
            ),
            Case::new(
                format!("{name} by a negative id"),
                make(&with(&by_id, id, "-1")),
                illegal(id, LONG_RANGE),
            ),
        ]);
    }
    bench.check(cases);
}

#[test]
fn public_queries() {
    let bench = Bench::new();
    let get = |target: &str| Request::new("GET", format!("/api/v3/{target}"));
    let invalid_symbol = || answer(-1121, "Invalid symbol.");
    let limit = || illegal("limit", "5, 10, 20, 50, 100, 500, 1000, 5000");
    let symbols = || {
        let range = "^\\[(\"[A-Z0-9-_.]{1,20}\"(,\"[A-Z0-9-_.]{1,20}\"){0,}){0,1}\\]$";
        illegal("symbols", range)
    };
    let too_many = |expected: u8, received: u8| {
        answer(
            -1101,
            format!("Too many parameters; expected '{expected}' and received '{received}'."),
        )
    };
    let unread = |read: u8, sent: u8| {
        let message = format!(
            "Not all sent parameters were read; read '{read}' parameter(s) but was sent '{sent}'."
        );
        answer(-1104, message)
    };
    let cases = vec![
        Case::new("depth without a symbol", get("depth"), missing("symbol")),
        Case::new("depth of no symbol", get("depth?symbol=NOSUCH"), invalid_symbol()),
        Case::new(
            "depth in lower case",
            get("depth?symbol=btcusdt"),
            illegal("symbol", SYMBOL_RANGE),
        ),
        Case::new(
            "depth with a broken escape",
            get("depth?symbol=BTC%5"),
            illegal("symbol", SYMBOL_RANGE),
        ),
        Case::new("depth limit off the list", get("depth?symbol=BTCUSDT&limit=7"), limit()),
        Case::new("depth limit zero", get("depth?symbol=BTCUSDT&limit=0"), limit())
            .or(answer(-1130, "Data sent for parameter 'limit' is not valid.")),
        Case::new("depth limit in letters", get("depth?symbol=BTCUSDT&limit=all"), limit()),
        Case::new(
            "depth limit with a zero in front",
            get("depth?symbol=BTCUSDT&limit=05"),
            limit(),
        ),
        Case::new(
            "depth with something else",
            get("depth?symbol=BTCUSDT&colour=red"),
            unread(1, 2),
        ),
        Case::new(
            "depth with a parameter too many",
            get("depth?symbol=BTCUSDT&limit=5&colour=red"),
            too_many(2, 3),
        )
        .or(unread(2, 3)),
        Case::new("ping with a parameter", get("ping?colour=red"), too_many(0, 1)).or(unread(0, 1)),
        Case::new("information of no symbol", get("exchangeInfo?symbol=NOSUCH"), invalid_symbol()),
        Case::new(
            "information, one of two unknown",
            get("exchangeInfo?symbols=[\"BTCUSDT\",\"NOSUCH\"]"),
            invalid_symbol(),
        ),
        Case::new(
            "information both ways",
            get("exchangeInfo?symbol=BTCUSDT&symbols=[\"BTCUSDT\"]"),
            answer(-1128, "Combination of optional parameters invalid."),
        ),
        Case::new("information, no list", get("exchangeInfo?symbols=BTCUSDT"), symbols()),
        Case::new(
            "information, list with a blank",
            get("exchangeInfo?symbols=[\"BTCUSDT\",%20\"ETHBTC\"]"),
            symbols(),
        ),
        Case::new(
            "information, twice the same",
            get("exchangeInfo?symbols=[\"BTCUSDT\",\"BTCUSDT\"]"),
            missing("symbols"),
        ),
    ];
    bench.check(cases);
}

#[test]
fn unknown_paths_and_methods() {
    let venue = Venue::up(&[]);
    let mut http = Http::new(venue.address());
    for path in [
        "/",
        "/api/v3",
        "/api/v3/",
        "/api/v3/nothing",
        "/api/v1/ping",
        "/api/v3/ping/",
        "//api/v3/ping",
        "/API/V3/PING",
    ] {
        let response = http.get(path);
        assert_eq!(response.status, 404, "{path}: {}", response.body);
        assert!(!response.body.starts_with('{'), "unknown paths have no JSON: {}", response.body);
    }
    for (method, path) in [
        ("PUT", ORDER_PATH),
        ("POST", "/api/v3/ping"),
        ("DELETE", "/api/v3/account"),
        ("BREW", "/api/v3/time"),
    ] {
        let response = http.call(&Request::new(method, path));
        assert!(matches!(response.status, 404 | 405), "{method} {path}: {response:?}");
    }
    assert_eq!(http.get("/api/v3/ping").body, "{}");
}
