//! What needs no signature, and what every reply carries: connectivity, time, exchange information,
//! depth, weights, order counts, rate limits and the header prefix.

use super::http::{Http, Request, Response, today};
use super::json::Json;
use super::trader::levels;
use super::units::WHOLE;
use super::venue::Venue;
use crate::patience::in_a_few_tries;

/// The used weight that a reply states, both spellings agreeing.
fn used_weight(response: &Response) -> u64 {
    let used = response.number("X-SVC-USED-WEIGHT-1M");
    assert_eq!(response.number("X-SVC-USED-WEIGHT"), used);
    used
}

/// Checks that a request costs `weight`, trying again when a new minute began in between.
fn assert_weight(http: &mut Http, weight: u64, mut make: impl FnMut() -> Request) {
    let mut found = (0, 0);
    let is_found = in_a_few_tries(|| {
        let before = used_weight(&http.get("/api/v3/ping"));
        let request = make();
        let after = used_weight(&http.call(&request));
        found = (before, after);
        // Nothing but the request was counted where a minute began in front of it.
        assert!([before + weight, weight].contains(&after), "{found:?}, not {weight}: {request:?}");
        after == before + weight
    });
    assert!(is_found, "a minute began before each request of weight {weight}, the last {found:?}");
}

#[test]
fn connectivity_and_time() {
    let venue = Venue::up(&[]);
    let mut http = venue.http();
    let ping = http.get("/api/v3/ping");
    assert_eq!((ping.status, ping.body.as_str()), (200, "{}"));
    let type_of_body = ping.header("Content-Type").expect("a type").to_ascii_lowercase();
    assert_eq!(type_of_body.replace(' ', ""), "application/json;charset=utf-8");
    assert_eq!(ping.header("Cache-Control"), Some("no-cache, no-store, must-revalidate"));
    assert!(ping.header("X-SVC-UUID").is_some());
    let time = http.get("/api/v3/time").ok();
    assert_eq!(time.keys(), ["serverTime"]);
    assert!(time.integer_at("serverTime") > 1_600_000_000_000);
    assert!(time.integer_at("serverTime") < 100_000_000_000_000, "milliseconds");
    let again = http.get("/api/v3/ping");
    assert_ne!(again.header("X-SVC-UUID"), ping.header("X-SVC-UUID"), "one per request");
    assert!(http.is_kept(), "connections are kept alive");
}

const SYMBOL_KEYS: [&str; 17] = [
    "symbol",
    "status",
    "baseAsset",
    "baseAssetPrecision",
    "quoteAsset",
    "quotePrecision",
    "quoteAssetPrecision",
    "baseCommissionPrecision",
    "quoteCommissionPrecision",
    "orderTypes",
    "icebergAllowed",
    "ocoAllowed",
    "quoteOrderQtyMarketAllowed",
    "isSpotTradingAllowed",
    "isMarginTradingAllowed",
    "filters",
    "permissions",
];

fn text_list(texts: &[&str]) -> Json {
    Json::List(texts.iter().map(|&text| Json::Text(text.to_owned())).collect())
}

fn assert_filter(symbol: &Json, name: &str, fields: &[(&str, Json)]) {
    let filters = symbol.at("filters").items();
    let filter = filters
        .iter()
        .find(|filter| filter.text_at("filterType") == name)
        .unwrap_or_else(|| panic!("no {name} in {filters:?}"));
    let keys: Vec<_> =
        ["filterType"].into_iter().chain(fields.iter().map(|(key, _)| *key)).collect();
    assert_eq!(filter.keys(), keys);
    for (key, value) in fields {
        assert_eq!(filter.at(key), value, "{key} of {name}");
    }
}

#[test]
fn exchange_information_has_every_field_in_order() {
    let venue = Venue::up(&[]);
    let mut http = venue.http();
    let info = http.get("/api/v3/exchangeInfo").ok();
    let keys = ["timezone", "serverTime", "rateLimits", "exchangeFilters", "symbols"];
    assert_eq!(info.keys(), keys);
    assert_eq!(info.text_at("timezone"), "UTC");
    assert!(info.integer_at("serverTime") > 1_600_000_000_000);
    let limits: Vec<_> = info.at("rateLimits").items().iter().map(rate_limit).collect();
    let expected = [
        ("REQUEST_WEIGHT", "MINUTE", 1, 1200),
        ("ORDERS", "SECOND", 10, 50),
        ("ORDERS", "DAY", 1, 160_000),
        ("RAW_REQUESTS", "MINUTE", 5, 6100),
    ];
    assert_eq!(
        limits,
        expected.map(|(kind, unit, number, limit)| (
            kind.to_owned(),
            unit.to_owned(),
            number,
            limit
        ))
    );
    assert!(info.at("exchangeFilters").items().is_empty());

    let symbols = info.at("symbols").items();
    let names: Vec<_> = symbols.iter().map(|symbol| symbol.text_at("symbol")).collect();
    assert_eq!(names, ["BTCUSDT", "ETHUSDT", "ETHBTC"]);
    for (symbol, (base, quote)) in
        symbols.iter().zip([("BTC", "USDT"), ("ETH", "USDT"), ("ETH", "BTC")])
    {
        assert_symbol(symbol, base, quote);
    }
    assert_demo_filters(symbols);
}

fn rate_limit(limit: &Json) -> (String, String, i128, i128) {
    assert_eq!(limit.keys(), ["rateLimitType", "interval", "intervalNum", "limit"]);
    (
        limit.text_at("rateLimitType").to_owned(),
        limit.text_at("interval").to_owned(),
        limit.integer_at("intervalNum"),
        limit.integer_at("limit"),
    )
}

fn assert_symbol(symbol: &Json, base: &str, quote: &str) {
    assert_eq!(symbol.keys(), SYMBOL_KEYS);
    assert_eq!(symbol.text_at("status"), "TRADING");
    assert_eq!(symbol.text_at("baseAsset"), base);
    assert_eq!(symbol.text_at("quoteAsset"), quote);
    let precisions = [
        "baseAssetPrecision",
        "quotePrecision",
        "quoteAssetPrecision",
        "baseCommissionPrecision",
        "quoteCommissionPrecision",
    ];
    for precision in precisions {
        assert_eq!(symbol.integer_at(precision), 8, "{precision}");
    }
    let all = [
        "LIMIT",
        "MARKET",
        "STOP_LOSS",
        "STOP_LOSS_LIMIT",
        "TAKE_PROFIT",
        "TAKE_PROFIT_LIMIT",
        "LIMIT_MAKER",
    ];
    // The third of the demo venue's symbols takes no more than it must.
    let takes_all = quote == "USDT";
    let types = if takes_all { &all[..] } else { &all[..2] };
    assert_eq!(symbol.at("orderTypes"), &text_list(types));
    for flag in ["icebergAllowed", "ocoAllowed", "quoteOrderQtyMarketAllowed"] {
        assert_eq!(symbol.at(flag), &Json::Bool(takes_all), "{flag}");
    }
    assert_eq!(symbol.at("isMarginTradingAllowed"), &Json::Bool(false));
    assert_eq!(symbol.at("isSpotTradingAllowed"), &Json::Bool(true));
    assert_eq!(symbol.at("permissions"), &text_list(&["SPOT"]));
}

fn assert_demo_filters(symbols: &[Json]) {
    let text = |text: &str| Json::Text(text.to_owned());
    let rows = [
        ("0.01000000", "1000000.00000000", "0.00001000", "10.00000000"),
        ("0.01000000", "1000000.00000000", "0.00010000", "10.00000000"),
        ("0.00000100", "100000.00000000", "0.00010000", "0.00010000"),
    ];
    for (symbol, (tick, highest, lot, notional)) in symbols.iter().zip(rows) {
        assert_filter(
            symbol,
            "PRICE_FILTER",
            &[("minPrice", text(tick)), ("maxPrice", text(highest)), ("tickSize", text(tick))],
        );
        let most = text("9000.00000000");
        assert_filter(
            symbol,
            "LOT_SIZE",
            &[("minQty", text(lot)), ("maxQty", most), ("stepSize", text(lot))],
        );
        let zero = || text("0.00000000");
        assert_filter(
            symbol,
            "MARKET_LOT_SIZE",
            &[("minQty", zero()), ("maxQty", text("1000.00000000")), ("stepSize", zero())],
        );
        let filters = symbol.at("filters").items();
        let found = filters.iter().find(|filter| filter.text_at("filterType") == "MIN_NOTIONAL");
        let found = found.expect("a MIN_NOTIONAL filter");
        assert_eq!(found.keys(), ["filterType", "minNotional", "applyToMarket", "avgPriceMins"]);
        assert_eq!(found.text_at("minNotional"), notional);
        assert_eq!(found.at("applyToMarket"), &Json::Bool(false));
        assert!(found.integer_at("avgPriceMins") >= 0);
        assert_filter(symbol, "MAX_NUM_ORDERS", &[("maxNumOrders", Json::Integer(200))]);
    }
}

#[test]
fn exchange_information_of_chosen_symbols() {
    let venue = Venue::up(&[]);
    let mut http = venue.http();
    let mut names = |query: &str| -> Vec<String> {
        let info = http.get(&format!("/api/v3/exchangeInfo?{query}")).ok();
        let symbols = info.at("symbols").items();
        symbols.iter().map(|symbol| symbol.text_at("symbol").to_owned()).collect()
    };
    assert_eq!(names("symbol=ETHBTC"), ["ETHBTC"]);
    let mut two = names("symbols=%5B%22ETHBTC%22,%22BTCUSDT%22%5D");
    two.sort();
    assert_eq!(two, ["BTCUSDT", "ETHBTC"]);
    let mut two = names("symbols=[\"ETHBTC\",\"BTCUSDT\"]");
    two.sort();
    assert_eq!(two, ["BTCUSDT", "ETHBTC"]);
}

#[test]
fn depth_is_sorted_summed_and_cut() {
    let venue = Venue::up(&[]);
    let (mut a, mut b) = (venue.a(), venue.b());
    for step in 0..7 {
        a.limit("ETHUSDT", "SELL", "1", &format!("{}", 2000 + step));
        b.limit("ETHUSDT", "BUY", "2", &format!("{}", 1990 - step));
    }
    b.limit("ETHUSDT", "SELL", "0.5", "2000");
    let mut http = venue.http();
    let raw = http.get("/api/v3/depth?symbol=ETHUSDT&limit=5");
    let depth = raw.ok();
    let pair = text_list(&["2000.00000000", "1.50000000"]);
    assert_eq!(depth.at("asks").items()[0], pair, "two strings, both accounts summed");
    let asks: Vec<_> = (0..5)
        .map(|step| ((2000 + step) * WHOLE, if step == 0 { WHOLE * 3 / 2 } else { WHOLE }))
        .collect();
    assert_eq!(levels(&depth, "asks"), asks);
    let bids: Vec<_> = (0..5).map(|step| ((1990 - step) * WHOLE, 2 * WHOLE)).collect();
    assert_eq!(levels(&depth, "bids"), bids);
    let whole = http.get("/api/v3/depth?symbol=ETHUSDT").ok();
    assert_eq!(levels(&whole, "asks").len(), 7);
    assert_eq!(whole.at("lastUpdateId"), depth.at("lastUpdateId"));
    assert_eq!(levels(&http.get("/api/v3/depth?symbol=BTCUSDT").ok(), "asks"), []);
}

#[test]
fn every_request_is_charged_its_weight() {
    let venue = Venue::up(&[]);
    let mut http = venue.http();
    let open = |target: &'static str| move || Request::new("GET", target);
    assert_weight(&mut http, 1, open("/api/v3/ping"));
    assert_weight(&mut http, 1, open("/api/v3/time"));
    assert_weight(&mut http, 10, open("/api/v3/exchangeInfo"));
    assert_weight(&mut http, 1, open("/api/v3/depth?symbol=BTCUSDT"));
    assert_weight(&mut http, 1, open("/api/v3/depth?symbol=BTCUSDT&limit=5"));
    assert_weight(&mut http, 5, open("/api/v3/depth?symbol=BTCUSDT&limit=500"));
    assert_weight(&mut http, 10, open("/api/v3/depth?symbol=BTCUSDT&limit=1000"));
    assert_weight(&mut http, 50, open("/api/v3/depth?symbol=BTCUSDT&limit=5000"));
    assert_weight(&mut http, 1, open("/api/v3/depth?symbol=NOSUCH"));

    let mut a = venue.a();
    let id = a.limit("BTCUSDT", "SELL", "1", "50000").integer_at("orderId");
    let order = format!("symbol=BTCUSDT&orderId={id}");
    let sell = "symbol=BTCUSDT&side=SELL&type=LIMIT&timeInForce=GTC&quantity=1&price=50000";
    assert_weight(&mut http, 10, || a.request("GET", "/api/v3/account", ""));
    assert_weight(&mut http, 2, || a.request("GET", "/api/v3/order", &order));
    assert_weight(&mut http, 1, || a.request("POST", "/api/v3/order", sell));
    assert_weight(&mut http, 1, || a.request("POST", "/api/v3/order", "symbol=BTCUSDT"));
    assert_weight(&mut http, 1, || a.request("DELETE", "/api/v3/order", &order));
}

#[test]
fn accepted_orders_carry_the_accounts_order_counts() {
    let venue = Venue::up(&[]);
    let (mut a, mut b) = (venue.a(), venue.b());
    let order = "symbol=BTCUSDT&side=SELL&type=LIMIT&timeInForce=GTC&quantity=1&price=50000";
    let begun_on = today();
    for number in 1..=3 {
        let accepted = a.call("POST", "/api/v3/order", order);
        accepted.ok();
        let in_a_day = accepted.number("X-SVC-ORDER-COUNT-1D");
        assert!(in_a_day == number || today() != begun_on, "{in_a_day}");
        let in_ten_seconds = accepted.number("X-SVC-ORDER-COUNT-10S");
        assert!((1..=number).contains(&in_ten_seconds), "{in_ten_seconds}");
    }
    let other = b.call("POST", "/api/v3/order", order);
    assert_eq!(other.number("X-SVC-ORDER-COUNT-1D"), 1, "counted per account");
}

#[test]
fn too_many_orders_are_refused_without_retry_after() {
    let venue = Venue::up(&["--set", "limits.orders_per_interval_1=5"]);
    let (mut a, mut b) = (venue.a(), venue.b());
    let order = "symbol=BTCUSDT&side=SELL&type=LIMIT&timeInForce=GTC&quantity=1&price=50000";
    for _ in 0..5 {
        a.place(order);
    }
    let refused = a.call("POST", "/api/v3/order", order);
    let message = "Too many new orders; current limit is 5 orders per DAY.";
    assert_eq!(refused.error(), (429, -1015, message.to_owned()));
    assert_eq!(refused.header("Retry-After"), None);
    b.place(order);
    let depth = venue.http().get("/api/v3/depth?symbol=BTCUSDT").ok();
    assert_eq!(levels(&depth, "asks"), [(50_000 * WHOLE, 6 * WHOLE)]);
}

#[test]
fn too_much_weight_is_refused_until_the_minute_is_over() {
    let venue = Venue::up(&["--set", "adapter.request_weight_per_minute=40"]);
    let mut http = venue.http();
    // The window is a calendar minute: at most one begins while these requests run.
    let refused = (0..10)
        .map(|_| http.get("/api/v3/exchangeInfo"))
        .find(|response| response.status != 200)
        .expect("40 are used up by the fifth request of a minute");
    let message = "Too much request weight used; current limit is 40 request weight per 1 MINUTE. \
                   Please use the websocket for live updates to avoid polling the API.";
    assert_eq!(refused.error(), (429, -1003, message.to_owned()));
    assert!((1..=60).contains(&refused.number("Retry-After")), "{refused:?}");
    assert!(used_weight(&refused) > 40);
}

#[test]
fn the_header_prefix_is_a_setting() {
    let venue = Venue::up(&["--header-prefix", "X-OTHER"]);
    assert_eq!(venue.environment("HEADER_PREFIX"), "X-OTHER");
    let mut a = venue.a();
    let order = "symbol=BTCUSDT&side=SELL&type=LIMIT&timeInForce=GTC&quantity=1&price=50000";
    let accepted = a.call("POST", "/api/v3/order", order);
    accepted.ok();
    assert_eq!(accepted.number("X-OTHER-ORDER-COUNT-1D"), 1);
    assert!(accepted.number("X-OTHER-USED-WEIGHT-1M") >= 1);
    assert!(accepted.header("X-OTHER-UUID").is_some());
    let of_default =
        accepted.headers.iter().filter(|(name, _)| name.to_uppercase().starts_with("X-SVC"));
    assert_eq!(of_default.count(), 0);
    let key = venue.key_a();
    let with_default = Request::new("GET", format!("/api/v3/account?{}", key.signed("")))
        .header("X-SVC-APIKEY", &key.api);
    let refused = venue.http().call(&with_default);
    assert_eq!(refused.error(), (401, -2014, "API-key format invalid.".to_owned()));
}
