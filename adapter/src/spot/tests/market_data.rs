//! What the market data's endpoints answer, as literal JSON, and what they refuse.

use touchline_protocol::message::command::{
    ChangeSymbol, EngineStarted, SetSymbolStatus, SymbolFilters,
};
use touchline_protocol::message::decode::Command;
use touchline_protocol::message::enums::{Side, SymbolStatus};

use super::fixture::{NOW_MS, Site, body, header, open};
use super::past::swept;
use crate::http::Method::Get;
use crate::http::Reply;
use crate::views::fixture::{ALICE, BOB, BTCUSDT, Log, ONE};

/// The venue, made two days before every request.
fn old_venue() -> Log {
    Log::venue_at((NOW_MS - 2 * 86_400_000) * 1_000_000)
}

/// Trades at 100, 102 and 101 in three minutes: 61, 59 and 1 seconds before every request.
fn traded() -> Site {
    let mut log = old_venue();
    for (id, before_ms, price, quantity) in [
        (1, 61_000, 100 * ONE, ONE),
        (2, 59_000, 102 * ONE, 2 * ONE),
        (3, 1_000, 101 * ONE, ONE / 4),
    ] {
        // The second of its two transactions is 1 ms later.
        log.time_ns = (NOW_MS - before_ms - 1) * 1_000_000;
        log.trade(id, price, quantity);
    }
    Site::new(log)
}

fn get(site: &Site, path: &str, query: &str) -> Reply {
    let mut request = open(Get, path, query);
    if path == "historicalTrades" {
        let key = site.keys.api_key(super::fixture::ALICES_KEY);
        request.headers.push("X-SVC-APIKEY", key.as_bytes());
    }
    site.reply(request)
}

fn text(site: &Site, path: &str, query: &str) -> String {
    let reply = get(site, path, query);
    assert_eq!(reply.status, 200, "{path}?{query}: {}", body(&reply));
    body(&reply).to_owned()
}

const TRADES: [&str; 3] = [
    r#"{"id":1,"price":"100.00000000","qty":"1.00000000","quoteQty":"100.00000000","time":1700000039000,"isBuyerMaker":false,"isBestMatch":true}"#,
    r#"{"id":2,"price":"102.00000000","qty":"2.00000000","quoteQty":"204.00000000","time":1700000041000,"isBuyerMaker":false,"isBestMatch":true}"#,
    r#"{"id":3,"price":"101.00000000","qty":"0.25000000","quoteQty":"25.25000000","time":1700000099000,"isBuyerMaker":false,"isBestMatch":true}"#,
];

#[test]
fn trades_are_listed_oldest_first() {
    let site = traded();
    let list = |trades: &[&str]| format!("[{}]", trades.join(","));
    for (path, query, expected) in [
        ("trades", "", &TRADES[..]),
        ("trades", "&limit=2", &TRADES[1..]),
        ("trades", "&limit=1000000", &TRADES),
        ("historicalTrades", "", &TRADES),
        ("historicalTrades", "&limit=1", &TRADES[2..]),
        ("historicalTrades", "&fromId=2", &TRADES[1..]),
        ("historicalTrades", "&fromId=0&limit=2", &TRADES[..2]),
        ("historicalTrades", "&fromId=4", &[]),
        ("historicalTrades", "&fromId=9223372036854775807", &[]),
    ] {
        let found = text(&site, path, &format!("symbol=BTCUSDT{query}"));
        assert_eq!(found, list(expected), "{path} {query}");
    }
    assert_eq!(text(&site, "trades", "symbol=ETHBTC"), "[]");
}

#[test]
fn aggregate_trades_are_chosen_by_number_or_time() {
    let site = traded();
    let entries = [
        r#"{"a":1,"p":"100.00000000","q":"1.00000000","f":1,"l":1,"T":1700000039000,"m":false,"M":true}"#,
        r#"{"a":2,"p":"102.00000000","q":"2.00000000","f":2,"l":2,"T":1700000041000,"m":false,"M":true}"#,
        r#"{"a":3,"p":"101.00000000","q":"0.25000000","f":3,"l":3,"T":1700000099000,"m":false,"M":true}"#,
    ];
    for (query, expected) in [
        ("", 0..3),
        ("&limit=2", 1..3),
        ("&fromId=2", 1..3),
        ("&fromId=0&limit=1", 0..1),
        ("&fromId=4", 0..0),
        ("&startTime=1700000041000", 1..3),
        ("&startTime=1700000041001", 2..3),
        ("&startTime=1700000039000&limit=1", 0..1),
        ("&endTime=1700000041000", 0..2),
        ("&endTime=1700000098999&limit=1", 1..2),
        ("&endTime=0", 0..0),
        ("&startTime=1700000039000&endTime=1700000041000", 0..2),
        ("&startTime=1700000041000&endTime=1700000041000", 1..2),
        ("&startTime=1699996499001&endTime=1700000099000", 0..3),
        ("&startTime=1700000099001", 0..0),
        // Between two trades.
        ("&startTime=1700000041001&endTime=1700000098999", 0..0),
        ("&startTime=1700000041001&endTime=1700000041002&limit=1", 0..0),
    ] {
        let found = text(&site, "aggTrades", &format!("symbol=BTCUSDT{query}"));
        assert_eq!(found, format!("[{}]", entries[expected].join(",")), "{query}");
    }
    assert_eq!(text(&site, "aggTrades", "symbol=ETHBTC&fromId=1"), "[]");
}

#[test]
fn the_trades_of_one_order_at_one_price_are_one_entry() {
    let entry = format!(
        r#"[{{"a":1,"p":"100.00000000","q":"0.03000000","f":1,"l":3,"T":{},"m":false,"M":true}}]"#,
        NOW_MS - 1000 + 18
    );
    assert_eq!(text(&swept(), "aggTrades", "symbol=BTCUSDT"), entry);
    assert_eq!(text(&swept(), "aggTrades", "symbol=BTCUSDT&fromId=1&limit=1"), entry);
}

#[test]
fn candles_are_filled_where_nobody_traded() {
    let mut log = old_venue();
    log.time_ns = 1_699_999_859_999_000_000;
    log.trade(1, 100 * ONE, ONE);
    log.time_ns = 1_700_000_060_999_000_000;
    log.trade(2, 102 * ONE, 2 * ONE);
    log.trade(3, 99 * ONE, ONE);
    let site = Site::new(log);
    let first = r#"[1699999860000,"100.00000000","100.00000000","100.00000000","100.00000000","1.00000000",1699999919999,"100.00000000",1,"1.00000000","100.00000000","0"]"#;
    let flat = |open: u64, price: &str| {
        let price = format!("\"{price}.00000000\"");
        let zero = "\"0.00000000\"";
        format!(
            "[{open},{price},{price},{price},{price},{zero},{},{zero},0,{zero},{zero},\"0\"]",
            open + 59_999
        )
    };
    let second = r#"[1700000040000,"102.00000000","102.00000000","99.00000000","99.00000000","3.00000000",1700000099999,"303.00000000",2,"3.00000000","303.00000000","0"]"#;
    let all = [
        first.to_owned(),
        flat(1_699_999_920_000, "100"),
        flat(1_699_999_980_000, "100"),
        second.to_owned(),
        flat(1_700_000_100_000, "99"),
    ];
    for (query, expected) in [
        ("", 0..5),
        ("&limit=2", 3..5),
        ("&startTime=1699999860000", 0..5),
        ("&startTime=1699999860001&limit=2", 1..3),
        ("&startTime=0&limit=1", 0..1),
        ("&endTime=1700000099999", 0..4),
        ("&endTime=1700000040000&limit=1", 3..4),
        ("&startTime=1699999920000&endTime=1699999980000", 1..3),
        ("&startTime=1699999920001&endTime=1699999979999", 0..0),
        ("&endTime=1699999859999", 0..0),
        ("&startTime=1700000100001", 0..0),
        ("&startTime=9223372036854775807", 0..0),
        ("&endTime=9223372036854775807&limit=1", 4..5),
    ] {
        let found = text(&site, "klines", &format!("symbol=BTCUSDT&interval=1m{query}"));
        assert_eq!(found, format!("[{}]", all[expected].join(",")), "{query}");
    }
    let month = text(&site, "klines", "symbol=BTCUSDT&interval=1M");
    let expected = r#"[[1698796800000,"100.00000000","102.00000000","99.00000000","99.00000000","4.00000000",1701388799999,"403.00000000",3,"4.00000000","403.00000000","0"]]"#;
    assert_eq!(month, expected);
    assert_eq!(text(&site, "klines", "symbol=ETHBTC&interval=1m"), "[]");
}

#[test]
fn a_trade_that_a_seller_takes_is_told_from_one_that_a_buyer_takes() {
    let mut log = old_venue();
    log.time_ns = 1_700_000_060_999_000_000;
    log.trade(1, 100 * ONE, ONE);
    log.trade_taken_by(Side::Sell, 2, 90 * ONE, 3 * ONE);
    let site = Site::new(log);
    let candle = text(&site, "klines", "symbol=BTCUSDT&interval=1M");
    let volumes =
        r#""4.00000000",1701388799999,"370.00000000",2,"1.00000000","100.00000000","0"]]"#;
    assert!(candle.ends_with(volumes), "{candle}");
    for (path, buyer_was_the_maker) in
        [("trades", "isBuyerMaker"), ("historicalTrades", "isBuyerMaker"), ("aggTrades", "m")]
    {
        let found: serde_json::Value =
            serde_json::from_str(&text(&site, path, "symbol=BTCUSDT")).unwrap();
        let told = [0, 1].map(|at| found[at][buyer_was_the_maker].as_bool());
        assert_eq!(told, [Some(false), Some(true)], "{path}");
    }
}

/// When a minute of the halted symbol begins, ms since the epoch.
const fn minute(number: u64) -> u64 {
    1_699_999_860_000 + 60_000 * number
}

/// A trade and then BREAK in one millisecond, so many behind the beginning of minute 0, up to minute 3.
fn halted(after_ms: u64) -> Site {
    let mut log = old_venue();
    let set = |log: &mut Log, status: SymbolStatus, time_ms: u64| {
        log.time_ns = time_ms * 1_000_000;
        let set =
            SetSymbolStatus { symbol: BTCUSDT, status: status.to_wire(), ..Default::default() };
        log.done(Command::SetSymbolStatus(&set), 0);
    };
    // The maker's order comes a millisecond before the trade.
    log.time_ns = (minute(0) + after_ms - 1) * 1_000_000;
    log.trade(1, 100 * ONE, ONE);
    set(&mut log, SymbolStatus::Break, minute(0) + after_ms);
    set(&mut log, SymbolStatus::Trading, minute(3));
    Site::new(log)
}

#[test]
fn no_candle_lies_wholly_in_a_break() {
    let site = halted(1);
    let opens = |query: &str| -> Vec<u64> {
        let found = text(&site, "klines", &format!("symbol=BTCUSDT&interval=1m{query}"));
        let found: serde_json::Value = serde_json::from_str(&found).unwrap();
        found.as_array().unwrap().iter().map(|candle| candle[0].as_u64().unwrap()).collect()
    };
    assert_eq!(opens(""), [0, 3, 4].map(minute));
    assert_eq!(opens("&limit=2"), [3, 4].map(minute));
    assert_eq!(opens(&format!("&startTime={}&limit=1", minute(1))), [minute(3)]);
    assert_eq!(opens(&format!("&endTime={}&limit=1", minute(2))), [minute(0)]);
    let halted = text(&site, "klines", "symbol=BTCUSDT&interval=5m");
    assert_eq!(halted.matches("[1").count(), 2, "partly in BREAK: {halted}");
}

/// The trade came first, so what is of its millisecond was not wholly in BREAK.
#[test]
fn a_candle_that_has_trades_is_there_however_soon_a_break_came() {
    let found = text(&halted(0), "klines", "symbol=BTCUSDT&interval=1m");
    let found: serde_json::Value = serde_json::from_str(&found).unwrap();
    let candles = found.as_array().unwrap();
    let candles: Vec<_> = candles.iter().map(|candle| (candle[0].as_u64(), &candle[8])).collect();
    let [one, none] = [1, 0].map(serde_json::Value::from);
    let expected = [(0, &one), (3, &none), (4, &none)];
    assert_eq!(candles, expected.map(|(number, count)| (Some(minute(number)), count)));
}

#[test]
fn no_candle_lies_wholly_in_a_time_without_an_engine() {
    let opens = |off_ms: u32| -> Vec<u64> {
        let mut log = old_venue();
        log.time_ns = minute(0) * 1_000_000;
        log.trade(1, 100 * ONE, ONE);
        log.time_ns = minute(3) * 1_000_000;
        let started = EngineStarted { incarnation: 2, off_ms, ..Default::default() };
        log.done(Command::EngineStarted(&started), 0);
        let found = text(&Site::new(log), "klines", "symbol=BTCUSDT&interval=1m");
        let found: serde_json::Value = serde_json::from_str(&found).unwrap();
        found.as_array().unwrap().iter().map(|candle| candle[0].as_u64().unwrap()).collect()
    };
    assert_eq!(opens(0), [0, 1, 2, 3, 4].map(minute));
    assert_eq!(opens(100_000), [0, 1, 3, 4].map(minute));
    assert_eq!(opens(u32::MAX), [0, 3, 4].map(minute));
}

/// What the next start would take back is not shown before.
#[test]
fn there_are_no_candles_behind_the_last_sign_of_life() {
    let mut log = old_venue();
    log.time_ns = (minute(0) + 30_000) * 1_000_000;
    log.trade(1, 100 * ONE, ONE);
    let site = Site::new(log);
    let opens = |alive_ms: u64, more: &str| -> Vec<u64> {
        site.views.note_alive(alive_ms);
        let found = text(&site, "klines", &format!("symbol=BTCUSDT&interval=1m{more}"));
        let found: serde_json::Value = serde_json::from_str(&found).unwrap();
        found.as_array().unwrap().iter().map(|candle| candle[0].as_u64().unwrap()).collect()
    };
    for alive_ms in [u64::MAX, minute(4)] {
        assert_eq!(opens(alive_ms, ""), [0, 1, 2, 3, 4].map(minute));
    }
    assert_eq!(opens(minute(2) - 1_001, ""), [0, 1].map(minute));
    assert_eq!(opens(minute(2) - 1_000, ""), [0, 1, 2].map(minute), "it may be alive still");
    assert_eq!(opens(minute(2), &format!("&startTime={}", minute(1))), [1, 2].map(minute));
    assert_eq!(opens(minute(1), &format!("&startTime={}", minute(3))), [0; 0]);
    assert_eq!(opens(0, ""), [minute(0)], "a trade is one");
}

#[test]
fn every_interval_of_the_contract_is_served() {
    let site = traded();
    for interval in [
        "1m", "3m", "5m", "15m", "30m", "1h", "2h", "4h", "6h", "8h", "12h", "1d", "3d", "1w", "1M",
    ] {
        let query = format!("symbol=BTCUSDT&interval={interval}&limit=1");
        let found: serde_json::Value =
            serde_json::from_str(&text(&site, "klines", &query)).unwrap();
        let (open, close) = (found[0][0].as_u64().unwrap(), found[0][6].as_u64().unwrap());
        assert!(open <= NOW_MS && NOW_MS <= close, "{interval}: {open} to {close}");
    }
}

#[test]
fn the_average_is_that_of_the_last_minutes_or_the_last_price() {
    let site = traded();
    // 100 × 1, 102 × 2 and 101 × 0.25 in 3.25.
    let expected = r#"{"mins":5,"price":"101.30769230"}"#;
    assert_eq!(text(&site, "avgPrice", "symbol=BTCUSDT"), expected);
    let mut log = old_venue();
    log.time_ns = (NOW_MS - 600_000) * 1_000_000;
    log.trade(1, 100 * ONE, ONE);
    let site = Site::new(log);
    let expected = r#"{"mins":5,"price":"100.00000000"}"#;
    assert_eq!(text(&site, "avgPrice", "symbol=BTCUSDT"), expected);
}

/// The engine does not follow a clock that is set while it runs, and its trades have its times.
#[test]
fn what_goes_by_the_time_goes_by_the_engines_clock() {
    const DAYS_MS: u64 = 3 * 86_400_000;
    let (site, behind_ms) = (traded(), DAYS_MS.cast_signed());
    let at = |set_ms: u64, ahead_ms| {
        site.views.note_ahead(ahead_ms);
        ["avgPrice", "ticker/24hr"].map(|path| {
            let mut request = open(Get, path, "symbol=BTCUSDT");
            request.arrived_ns += set_ms * 1_000_000;
            body(&site.reply(request)).to_owned()
        })
    };
    let expected = at(0, 0);
    assert!(expected[1].contains(r#""count":3"#), "{}", expected[1]);
    assert_eq!(at(DAYS_MS, -behind_ms), expected);
    assert_eq!(at(0, -2_000), expected, "its last sign of life may be that old");
}

#[test]
fn the_average_goes_back_as_far_as_a_filter_that_looks_at_it() {
    let percent = SymbolFilters { percent_price_up: 2 * ONE, ..SymbolFilters::default() };
    let notional = SymbolFilters {
        min_notional: 1,
        min_notional_applies_to_market: 1,
        percent_price_minutes: 7,
        ..SymbolFilters::default()
    };
    let limit_orders_only = SymbolFilters { min_notional_applies_to_market: 0, ..notional };
    for (filters, minutes, price) in [
        // It goes by the last price.
        (percent, 0, "102.00000000"),
        (SymbolFilters { percent_price_minutes: 1, ..percent }, 1, "102.00000000"),
        (
            SymbolFilters { percent_price_minutes: 3, min_notional_minutes: 9, ..percent },
            3,
            "101.00000000",
        ),
        (SymbolFilters { min_notional_minutes: 3, ..notional }, 3, "101.00000000"),
        (notional, 0, "102.00000000"),
        // Nothing looks at an average.
        (SymbolFilters { min_notional_minutes: 1, ..limit_orders_only }, 5, "101.00000000"),
        (SymbolFilters { percent_price_minutes: 1, ..SymbolFilters::default() }, 5, "101.00000000"),
    ] {
        let mut log = old_venue();
        let changed = ChangeSymbol { symbol: BTCUSDT, filters, ..Default::default() };
        log.done(Command::ChangeSymbol(&changed), 0);
        for (id, before_ms, price) in [(1, 120_001, 100 * ONE), (2, 1, 102 * ONE)] {
            log.time_ns = (NOW_MS - before_ms) * 1_000_000;
            log.trade(id, price, ONE);
        }
        let expected = format!(r#"{{"mins":{minutes},"price":"{price}"}}"#);
        assert_eq!(text(&Site::new(log), "avgPrice", "symbol=BTCUSDT"), expected, "{filters:?}");
    }
}

const UNTRADED: &str = concat!(
    r#"{"symbol":"ETHBTC","priceChange":"0.00000000","priceChangePercent":"0.000","#,
    r#""weightedAvgPrice":"0.00000000","prevClosePrice":"0.00000000","lastPrice":"0.00000000","#,
    r#""lastQty":"0.00000000","bidPrice":"0.00000000","bidQty":"0.00000000","#,
    r#""askPrice":"0.00000000","askQty":"0.00000000","openPrice":"0.00000000","#,
    r#""highPrice":"0.00000000","lowPrice":"0.00000000","volume":"0.00000000","#,
    r#""quoteVolume":"0.00000000","openTime":1699913700000,"closeTime":1700000100000,"#,
    r#""firstId":-1,"lastId":-1,"count":0}"#,
);

#[test]
fn statistics_cover_24_hours() {
    let mut log = old_venue();
    for (id, before_ms, price) in
        [(1, 86_400_001, 90 * ONE), (2, 86_400_000, 100 * ONE), (3, 1_000, 101 * ONE)]
    {
        log.time_ns = (NOW_MS - before_ms - 1) * 1_000_000;
        log.trade(id, price, ONE);
    }
    log.rest(ALICE, Side::Buy, 7, 99 * ONE, 3 * ONE);
    log.rest(BOB, Side::Sell, 8, 103 * ONE, ONE / 2);
    let site = Site::new(log);
    let traded = concat!(
        r#"{"symbol":"BTCUSDT","priceChange":"1.00000000","priceChangePercent":"1.000","#,
        r#""weightedAvgPrice":"100.50000000","prevClosePrice":"90.00000000","#,
        r#""lastPrice":"101.00000000","lastQty":"1.00000000","bidPrice":"99.00000000","#,
        r#""bidQty":"3.00000000","askPrice":"103.00000000","askQty":"0.50000000","#,
        r#""openPrice":"100.00000000","highPrice":"101.00000000","lowPrice":"100.00000000","#,
        r#""volume":"2.00000000","quoteVolume":"201.00000000","openTime":1699913700000,"#,
        r#""closeTime":1700000100000,"firstId":2,"lastId":3,"count":2}"#,
    );
    assert_eq!(text(&site, "ticker/24hr", "symbol=BTCUSDT"), traded);
    assert_eq!(text(&site, "ticker/24hr", "symbol=ETHBTC"), UNTRADED);
    let both = format!("[{traded},{UNTRADED}]");
    assert_eq!(text(&site, "ticker/24hr", ""), both);
    assert_eq!(text(&site, "ticker/24hr", r#"symbols=["ETHBTC","BTCUSDT"]"#), both);
    assert_eq!(text(&site, "ticker/24hr", "symbols=%5B%22ETHBTC%22%5D"), format!("[{UNTRADED}]"));
    // As a client sends it that names the form of the answer always.
    assert_eq!(text(&site, "ticker/24hr", "symbol=BTCUSDT&type=FULL"), traded);
    assert_eq!(text(&site, "ticker/24hr", "type=FULL"), both);
    let several = "symbols=%5B%22BTCUSDT%22%2C%22ETHBTC%22%5D&type=FULL";
    assert_eq!(text(&site, "ticker/24hr", several), both);
}

#[test]
fn statistics_without_a_trade_in_24_hours_show_the_last_price() {
    let mut log = old_venue();
    log.time_ns = (NOW_MS - 90_000_000) * 1_000_000;
    log.trade(1, 100 * ONE, ONE);
    let site = Site::new(log);
    let found: serde_json::Value =
        serde_json::from_str(&text(&site, "ticker/24hr", "symbol=BTCUSDT")).unwrap();
    for key in ["prevClosePrice", "lastPrice", "openPrice", "highPrice", "lowPrice"] {
        assert_eq!(found[key], "100.00000000", "{key}");
    }
    for key in ["priceChange", "volume", "quoteVolume", "weightedAvgPrice"] {
        assert_eq!(found[key], "0.00000000", "{key}");
    }
    assert_eq!((&found["firstId"], &found["count"]), (&(-1).into(), &0.into()));
}

#[test]
fn prices_and_best_prices() {
    let mut log = old_venue();
    log.trade(1, 100 * ONE, ONE);
    log.rest(ALICE, Side::Buy, 3, 99 * ONE, 3 * ONE);
    log.rest(BOB, Side::Sell, 4, 103 * ONE, ONE / 2);
    let site = Site::new(log);
    let traded = r#"{"symbol":"BTCUSDT","price":"100.00000000"}"#;
    assert_eq!(text(&site, "ticker/price", "symbol=BTCUSDT"), traded);
    let untraded = r#"{"symbol":"ETHBTC","price":"0.00000000"}"#;
    assert_eq!(text(&site, "ticker/price", "symbol=ETHBTC"), untraded);
    assert_eq!(text(&site, "ticker/price", ""), format!("[{traded}]"), "no price, no entry");
    assert_eq!(text(&site, "ticker/price", r#"symbols=["ETHBTC"]"#), "[]");
    let quoted = r#"{"symbol":"BTCUSDT","bidPrice":"99.00000000","bidQty":"3.00000000","askPrice":"103.00000000","askQty":"0.50000000"}"#;
    let empty = r#"{"symbol":"ETHBTC","bidPrice":"0.00000000","bidQty":"0.00000000","askPrice":"0.00000000","askQty":"0.00000000"}"#;
    assert_eq!(text(&site, "ticker/bookTicker", "symbol=BTCUSDT"), quoted);
    assert_eq!(text(&site, "ticker/bookTicker", ""), format!("[{quoted},{empty}]"));
}

#[test]
fn what_is_wrong_is_named() {
    let site = traded();
    let mandatory = |name: &str| {
        format!("-1102 Mandatory parameter '{name}' was not sent, was empty/null, or malformed.")
    };
    let unknown = "-1121 Invalid symbol.".to_owned();
    let pattern = |name: &str, legal: &str| {
        format!("-1100 Illegal characters found in parameter '{name}'; legal range is '{legal}'.")
    };
    let digits = "^[0-9]{1,20}$";
    let of_symbol = ["trades", "historicalTrades", "aggTrades", "klines", "avgPrice"];
    for path in of_symbol {
        let more = if path == "klines" { "&interval=1m" } else { "" };
        for (query, expected) in [
            (String::new(), mandatory("symbol")),
            (format!("symbol={more}"), mandatory("symbol")),
            (format!("symbol=btcusdt{more}"), pattern("symbol", "^[A-Z0-9-_.]{1,20}$")),
            (format!("symbol=NONE{more}"), unknown.clone()),
            (
                format!("symbol=BTCUSDT&symbol=BTCUSDT{more}"),
                "-1101 Duplicate values for a parameter detected.".to_owned(),
            ),
        ] {
            assert_error(&site, path, &query, &expected);
        }
    }
    for path in &of_symbol[..4] {
        let rest = if *path == "klines" { "&interval=1m" } else { "" };
        for (limit, expected) in [
            ("0", "-1130 Data sent for parameter 'limit' is not valid.".to_owned()),
            ("", "-1105 Parameter 'limit' was empty.".to_owned()),
            ("-1", pattern("limit", digits)),
            ("99999999999999999999", "-1108 Parameter 'limit' overflowed.".to_owned()),
        ] {
            assert_error(&site, path, &format!("symbol=BTCUSDT{rest}&limit={limit}"), &expected);
        }
    }
    let combination = "-1128 Combination of optional parameters invalid.";
    let many = (0..70).map(|n| format!("p{n}=1")).collect::<Vec<_>>().join("&");
    let reversed = "-1023 Start time is greater than end time.";
    for (path, query, expected) in [
        ("aggTrades", "fromId=1&startTime=1", combination),
        ("aggTrades", "fromId=1&endTime=1", combination),
        ("aggTrades", "startTime=2&endTime=1", reversed),
        (
            "aggTrades",
            "startTime=0&endTime=3600000",
            "-1127 More than 1 hours between startTime and endTime.",
        ),
        ("klines", "interval=1m&startTime=2&endTime=1", reversed),
        ("klines", "interval=2m", "-1120 Invalid interval."),
        ("klines", "interval=1H", "-1120 Invalid interval."),
        ("klines", "interval=", &mandatory("interval")),
        ("klines", "limit=5", &mandatory("interval")),
        ("klines", "interval=1m&startTime=x", &pattern("startTime", digits)),
        (
            "trades",
            "fromId=1",
            "-1104 Not all sent parameters were read; read '1' parameter(s) but was sent '2'.",
        ),
        ("avgPrice", "limit=5", "-1101 Too many parameters; expected '1' and received '2'."),
        ("avgPrice", &many, "-1101 Too many parameters; expected '1' and received '71'."),
        ("ticker/24hr", "symbols=[\"BTCUSDT\"]", combination),
        ("ticker/24hr", "type=MINI", &pattern("type", "FULL")),
        ("ticker/24hr", "type=", "-1105 Parameter 'type' was empty."),
        (
            "ticker/price",
            "type=FULL",
            "-1104 Not all sent parameters were read; read '1' parameter(s) but was sent '2'.",
        ),
    ] {
        assert_error(&site, path, &format!("symbol=BTCUSDT&{query}"), expected);
    }
    for path in ["ticker/24hr", "ticker/price", "ticker/bookTicker"] {
        assert_error(&site, path, "symbol=NONE", &unknown);
        assert_error(&site, path, "symbols=[\"BTCUSDT\",\"NONE\"]", &unknown);
        assert_error(&site, path, "symbols=[\"BTCUSDT\",\"BTCUSDT\"]", &mandatory("symbols"));
        assert_error(&site, path, "symbol=", "-1105 Parameter 'symbol' was empty.");
    }
    let window = "-2016 No trading window could be found for the symbol. Try ticker/24hrs instead.";
    assert_error(&site, "avgPrice", "symbol=ETHBTC", window);
}

fn assert_error(site: &Site, path: &str, query: &str, expected: &str) {
    let reply = get(site, path, query);
    let error: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
    let found = format!("{} {}", error["code"], error["msg"].as_str().unwrap_or_default());
    assert_eq!((reply.status, &*found), (400, expected), "{path}?{query}");
}

#[test]
fn who_asks_for_old_trades_must_have_a_key() {
    let site = traded();
    let reply = site.reply(open(Get, "historicalTrades", "symbol=BTCUSDT"));
    assert_eq!(reply.status, 401);
    assert!(body(&reply).starts_with(r#"{"code":-2014"#), "{}", body(&reply));
}

#[test]
fn weights_go_by_what_is_asked_for() {
    let site = traded();
    let mut used = 0;
    for (path, query, weight) in [
        ("trades", "symbol=BTCUSDT", 1),
        ("historicalTrades", "symbol=BTCUSDT", 5),
        ("aggTrades", "symbol=BTCUSDT", 1),
        ("klines", "symbol=BTCUSDT&interval=1d", 1),
        ("avgPrice", "symbol=BTCUSDT", 1),
        ("ticker/24hr", "symbol=BTCUSDT", 1),
        ("ticker/24hr", "", 40),
        ("ticker/24hr", "symbols=[\"BTCUSDT\"]", 40),
        ("ticker/price", "symbol=BTCUSDT", 1),
        ("ticker/price", "", 2),
        ("ticker/bookTicker", "symbol=BTCUSDT", 1),
        ("ticker/bookTicker", "", 2),
    ] {
        used += weight;
        let reply = get(&site, path, query);
        assert_eq!(reply.status, 200, "{path}?{query}");
        let header = header(&reply, "X-SVC-USED-WEIGHT-1M").unwrap();
        assert_eq!(header, used.to_string(), "{path}?{query}");
    }
}
