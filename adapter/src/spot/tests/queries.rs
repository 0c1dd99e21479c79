//! What the GET endpoints answer, as literal JSON.

use touchline_protocol::message::command::{
    ACCOUNT_CAN_DEPOSIT, ACCOUNT_CAN_TRADE, ACCOUNT_CAN_WITHDRAW, CreateAccount, CreateKey,
    DefineSymbol, EVERY, KEY_ALL, KEY_TRADE, KillAccount, RevokeKey, SYMBOL_ICEBERG, SYMBOL_OCO,
    SYMBOL_QUOTE_QUANTITY, SetFees, SetVenueFilters, SymbolFilters,
};
use touchline_protocol::message::decode::Command;
use touchline_protocol::message::enums::{OrderType, Side, SymbolStatus};
use touchline_protocol::text::{Name, SymbolName};
use touchline_protocol::units::{AccountId, KeyId, SymbolId};

use super::fixture::{ALICES_KEY, BOBS_KEY, NOW_MS, Site, body, config, header, open};
use crate::config::AdapterConfig;
use crate::http::Method::{Delete, Get, Options, Post, Put};
use crate::limits::LimitsConfig;
use crate::spot::SpotConfig;
use crate::views::fixture::{ALICE, BOB, BTC, ETH, Log, ONE, btcusdt, limit_order, resting};

#[test]
fn ping_and_time() {
    let site = Site::new(Log::empty());
    let reply = site.reply(open(Get, "ping", ""));
    assert_eq!((reply.status, body(&reply)), (200, "{}"));
    let reply = site.reply(open(Get, "time", ""));
    assert_eq!((reply.status, body(&reply)), (200, r#"{"serverTime":1700000100000}"#));
}

#[test]
fn every_reply_carries_what_the_service_promises() {
    let site = Site::new(Log::venue());
    let reply = site.reply(open(Get, "ping", ""));
    assert_eq!(reply.content_type, Some("application/json;charset=UTF-8"));
    assert_eq!(header(&reply, "Cache-Control"), Some("no-cache, no-store, must-revalidate"));
    assert_eq!(header(&reply, "Access-Control-Allow-Origin"), Some("*"));
    assert_eq!(header(&reply, "X-SVC-UUID").map(str::len), Some(36));
    assert_eq!(header(&reply, "X-SVC-USED-WEIGHT"), Some("1"));
    assert_eq!(header(&reply, "X-SVC-USED-WEIGHT-1M"), Some("1"));
    for (request, used) in [
        (open(Get, "exchangeInfo", ""), "11"),
        (open(Get, "depth", "symbol=BTCUSDT&limit=5"), "12"),
        (open(Get, "depth", "symbol=BTCUSDT&limit=500"), "17"),
        (open(Get, "depth", "symbol=BTCUSDT&limit=1000"), "27"),
        (open(Get, "depth", "symbol=BTCUSDT&limit=5000"), "77"),
        (open(Get, "account", ""), "87"),
        (site.signed(Get, "order", "symbol=BTCUSDT&orderId=1"), "89"),
        (site.signed(Delete, "order", "symbol=BTCUSDT"), "90"),
        (site.signed(Post, "order", "symbol=BTCUSDT"), "91"),
        (open(Get, "nothing", ""), "92"),
        (open(Put, "order", ""), "93"),
    ] {
        let path = request.path.clone();
        let reply = site.reply(request);
        assert_eq!(header(&reply, "X-SVC-USED-WEIGHT-1M"), Some(used), "{path}");
    }
    let reply = site.reply(open(Options, "order", ""));
    assert_eq!(header(&reply, "Allow"), Some("GET, HEAD, POST, DELETE, OPTIONS"));
    let reply = site.reply(site.signed(Get, "account", ""));
    assert_eq!(header(&reply, "Access-Control-Allow-Origin"), None);
}

#[test]
fn another_header_prefix_takes_the_place_of_the_default() {
    let config = SpotConfig { header_prefix: "X-TEST".to_owned(), ..config() };
    let site = Site::with(Log::venue(), config);
    let mut request = site.signed(Get, "account", "");
    let reply = site.reply(request.clone());
    assert_eq!(reply.status, 401, "the default's key header is another header now");
    let key = site.keys.api_key(ALICES_KEY);
    request.headers.push("x-test-apikey", key.as_bytes());
    let reply = site.reply(request);
    assert_eq!(reply.status, 200);
    assert_eq!(header(&reply, "X-TEST-USED-WEIGHT-1M"), Some("20"));
    assert!(header(&reply, "X-TEST-UUID").is_some());
    assert!(!reply.headers.iter().any(|(name, _)| name.starts_with("X-SVC")));
}

#[test]
fn depth_lists_the_best_levels_first() {
    let mut log = Log::venue();
    log.rest(ALICE, Side::Buy, 1, 100 * ONE, ONE);
    log.rest(BOB, Side::Buy, 2, 101 * ONE, 2 * ONE);
    log.rest(BOB, Side::Buy, 3, 101 * ONE, ONE / 2);
    log.rest(ALICE, Side::Sell, 4, 103 * ONE, 3 * ONE);
    log.rest(ALICE, Side::Sell, 5, 102 * ONE, ONE / 100_000);
    let site = Site::new(log);
    let reply = site.reply(open(Get, "depth", "symbol=BTCUSDT"));
    assert_eq!(
        body(&reply),
        r#"{"lastUpdateId":5,"bids":[["101.00000000","2.50000000"],["100.00000000","1.00000000"]],"asks":[["102.00000000","0.00001000"],["103.00000000","3.00000000"]]}"#
    );
    let reply = site.reply(open(Get, "depth", "limit=5&symbol=ETHBTC"));
    assert_eq!(body(&reply), r#"{"lastUpdateId":0,"bids":[],"asks":[]}"#);
}

#[test]
fn depth_gives_as_many_levels_as_are_asked_for() {
    let mut log = Log::venue();
    for id in 1..=120 {
        let price = i64::try_from(id).unwrap() * ONE;
        log.rest(ALICE, Side::Sell, id, price, ONE / 1000);
    }
    let site = Site::new(log);
    for (limit, expected) in [("&limit=5", 5), ("&limit=50", 50), ("", 100), ("&limit=5000", 120)] {
        let reply = site.reply(open(Get, "depth", &format!("symbol=BTCUSDT{limit}")));
        let book: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!(book["asks"].as_array().unwrap().len(), expected, "{limit}");
    }
}

const BTCUSDT_INFORMATION: &str = concat!(
    r#"{"symbol":"BTCUSDT","status":"TRADING","baseAsset":"BTC","baseAssetPrecision":8,"#,
    r#""quoteAsset":"USDT","quotePrecision":8,"quoteAssetPrecision":8,"#,
    r#""baseCommissionPrecision":8,"quoteCommissionPrecision":8,"#,
    r#""orderTypes":["LIMIT","MARKET"],"icebergAllowed":false,"ocoAllowed":false,"#,
    r#""quoteOrderQtyMarketAllowed":false,"isSpotTradingAllowed":true,"#,
    r#""isMarginTradingAllowed":false,"filters":["#,
    r#"{"filterType":"PRICE_FILTER","minPrice":"0.01000000","maxPrice":"1000000.00000000","tickSize":"0.01000000"},"#,
    r#"{"filterType":"LOT_SIZE","minQty":"0.00001000","maxQty":"9000.00000000","stepSize":"0.00001000"},"#,
    r#"{"filterType":"MIN_NOTIONAL","minNotional":"10.00000000","applyToMarket":false,"avgPriceMins":0},"#,
    r#"{"filterType":"MARKET_LOT_SIZE","minQty":"0.00000000","maxQty":"1000.00000000","stepSize":"0.00000000"},"#,
    r#"{"filterType":"MAX_NUM_ORDERS","maxNumOrders":200}"#,
    r#"],"permissions":["SPOT"]}"#,
);

const ETHBTC_INFORMATION: &str = concat!(
    r#"{"symbol":"ETHBTC","status":"BREAK","baseAsset":"ETH","baseAssetPrecision":8,"#,
    r#""quoteAsset":"BTC","quotePrecision":8,"quoteAssetPrecision":8,"#,
    r#""baseCommissionPrecision":8,"quoteCommissionPrecision":8,"#,
    r#""orderTypes":["LIMIT"],"icebergAllowed":false,"ocoAllowed":false,"#,
    r#""quoteOrderQtyMarketAllowed":false,"isSpotTradingAllowed":true,"#,
    r#""isMarginTradingAllowed":false,"filters":["#,
    r#"{"filterType":"PRICE_FILTER","minPrice":"0.00000100","maxPrice":"0.00000000","tickSize":"0.00000000"}"#,
    r#"],"permissions":["SPOT"]}"#,
);

const HEAD: &str = concat!(
    r#"{"timezone":"UTC","serverTime":1700000100000,"rateLimits":["#,
    r#"{"rateLimitType":"REQUEST_WEIGHT","interval":"MINUTE","intervalNum":1,"limit":1200},"#,
    r#"{"rateLimitType":"ORDERS","interval":"SECOND","intervalNum":10,"limit":50},"#,
    r#"{"rateLimitType":"ORDERS","interval":"DAY","intervalNum":1,"limit":160000},"#,
    r#"{"rateLimitType":"RAW_REQUESTS","interval":"MINUTE","intervalNum":5,"limit":6100}"#,
    r#"],"exchangeFilters":[],"symbols":["#,
);

#[test]
fn exchange_information_describes_every_symbol() {
    let site = Site::new(Log::venue());
    let information = |query: &str| {
        let reply = site.reply(open(Get, "exchangeInfo", query));
        assert_eq!(reply.status, 200, "{query}");
        body(&reply).to_owned()
    };
    let both = format!("{HEAD}{BTCUSDT_INFORMATION},{ETHBTC_INFORMATION}]}}");
    assert_eq!(information(""), both);
    assert_eq!(information("symbols=[\"ETHBTC\",\"BTCUSDT\"]"), both);
    let one = format!("{HEAD}{ETHBTC_INFORMATION}]}}");
    assert_eq!(information("symbol=ETHBTC"), one);
    assert_eq!(information("symbols=%5B%22ETHBTC%22%5D"), one);
    assert_eq!(information("symbols=[]"), format!("{HEAD}]}}"));
}

/// What exchangeInfo tells of a symbol `X`, defined so.
fn told_of(symbol: &DefineSymbol) -> String {
    let mut log = Log::venue();
    log.done(Command::DefineSymbol(symbol), 2);
    body(&Site::new(log).reply(open(Get, "exchangeInfo", "symbol=X"))).to_owned()
}

/// By each filter's formula in the contract a bound of 0 would forbid every order.
#[test]
fn a_bound_that_is_not_set_is_shown_as_one_that_binds_nobody() {
    let filters = SymbolFilters {
        lot_min: 1,
        market_lot_min: 2,
        percent_price_down: 70_000_000,
        ..Default::default()
    };
    let name = SymbolName::new("X").unwrap();
    let (status, order_types) = (SymbolStatus::Trading.to_wire(), 0xfe);
    let assets = DefineSymbol { base: ETH, quote: BTC, ..Default::default() };
    let told = told_of(&DefineSymbol { name, status, order_types, filters, ..assets });
    let filters = concat!(
        r#""filters":[{"filterType":"PERCENT_PRICE","multiplierUp":"92233720368.54775807","#,
        r#""multiplierDown":"0.70000000","avgPriceMins":0},"#,
        r#"{"filterType":"LOT_SIZE","minQty":"0.00000001","maxQty":"92233720368.54775807","#,
        r#""stepSize":"0.00000001"},"#,
        r#"{"filterType":"MARKET_LOT_SIZE","minQty":"0.00000002","maxQty":"92233720368.54775807","#,
        r#""stepSize":"0.00000000"}]"#,
    );
    assert!(told.contains(filters), "{told}");
}

#[test]
fn every_filter_that_is_set_is_listed_in_the_order_of_the_contract() {
    let filters = SymbolFilters {
        price_min: 1,
        lot_step: 2,
        market_lot_step: 3,
        percent_price_up: 130_000_000,
        percent_price_down: 70_000_000,
        min_notional: 4,
        max_position: 5,
        percent_price_minutes: 6,
        min_notional_minutes: 7,
        iceberg_parts: 8,
        max_orders: 9,
        max_algo_orders: 10,
        max_iceberg_orders: 11,
        min_notional_applies_to_market: 1,
        ..Default::default()
    };
    let symbol = DefineSymbol {
        name: SymbolName::new("X").unwrap(),
        base: ETH,
        quote: BTC,
        status: SymbolStatus::Halt.to_wire(),
        order_types: 0xfe,
        flags: 0b111,
        permissions: 0b1110,
        filters,
        ..Default::default()
    };
    let told = told_of(&symbol);
    let expected = concat!(
        r#"{"symbol":"X","status":"HALT","baseAsset":"ETH","baseAssetPrecision":8,"#,
        r#""quoteAsset":"BTC","quotePrecision":8,"quoteAssetPrecision":8,"#,
        r#""baseCommissionPrecision":8,"quoteCommissionPrecision":8,"#,
        r#""orderTypes":["LIMIT","MARKET","STOP_LOSS","STOP_LOSS_LIMIT","TAKE_PROFIT","TAKE_PROFIT_LIMIT","LIMIT_MAKER"],"#,
        r#""icebergAllowed":true,"ocoAllowed":true,"#,
        r#""quoteOrderQtyMarketAllowed":true,"isSpotTradingAllowed":false,"#,
        r#""isMarginTradingAllowed":true,"filters":["#,
        r#"{"filterType":"PRICE_FILTER","minPrice":"0.00000001","maxPrice":"0.00000000","tickSize":"0.00000000"},"#,
        r#"{"filterType":"PERCENT_PRICE","multiplierUp":"1.30000000","multiplierDown":"0.70000000","avgPriceMins":6},"#,
        r#"{"filterType":"LOT_SIZE","minQty":"0.00000000","maxQty":"92233720368.54775807","stepSize":"0.00000002"},"#,
        r#"{"filterType":"MIN_NOTIONAL","minNotional":"0.00000004","applyToMarket":true,"avgPriceMins":7},"#,
        r#"{"filterType":"ICEBERG_PARTS","limit":8},"#,
        r#"{"filterType":"MARKET_LOT_SIZE","minQty":"0.00000000","maxQty":"92233720368.54775807","stepSize":"0.00000003"},"#,
        r#"{"filterType":"MAX_NUM_ORDERS","maxNumOrders":9},"#,
        r#"{"filterType":"MAX_NUM_ALGO_ORDERS","maxNumAlgoOrders":10},"#,
        r#"{"filterType":"MAX_NUM_ICEBERG_ORDERS","maxNumIcebergOrders":11},"#,
        r#"{"filterType":"MAX_POSITION","maxPosition":"0.00000005"}"#,
        r#"],"permissions":["MARGIN","LEVERAGED","TRD_GRP_002"]}"#,
    );
    assert_eq!(told, format!("{HEAD}{expected}]}}"));
}

#[test]
fn the_parts_of_icebergs_are_limited_where_there_are_icebergs() {
    let mut log = Log::venue();
    for (number, name, flags, iceberg_parts) in
        [(2, "UNSET", SYMBOL_ICEBERG, 0), (3, "SET", SYMBOL_ICEBERG, 7), (4, "NONE", SYMBOL_OCO, 0)]
    {
        let symbol = DefineSymbol {
            name: SymbolName::new(name).unwrap(),
            base: ETH,
            quote: BTC,
            status: SymbolStatus::Trading.to_wire(),
            order_types: 0xfe,
            flags,
            permissions: 1,
            filters: SymbolFilters { iceberg_parts, ..Default::default() },
            ..Default::default()
        };
        log.done(Command::DefineSymbol(&symbol), number);
    }
    let site = Site::new(log);
    for (name, expected) in [
        ("UNSET", r#""filters":[{"filterType":"ICEBERG_PARTS","limit":1000}]"#),
        ("SET", r#""filters":[{"filterType":"ICEBERG_PARTS","limit":7}]"#),
        ("NONE", r#""filters":[]"#),
    ] {
        let reply = site.reply(open(Get, "exchangeInfo", &format!("symbol={name}")));
        assert!(body(&reply).contains(expected), "{}", body(&reply));
    }
}

/// What a symbol allows takes an order type that it is about: who goes by exchangeInfo is not refused for its type.
#[test]
fn what_no_order_type_has_is_not_allowed() {
    let types = |kinds: &[OrderType]| kinds.iter().fold(0, |bits, kind| bits | 1 << kind.to_wire());
    let (limit, market, maker) = (OrderType::Limit, OrderType::Market, OrderType::LimitMaker);
    let (stop, stop_limit) = (OrderType::StopLoss, OrderType::StopLossLimit);
    let all = SYMBOL_ICEBERG | SYMBOL_OCO | SYMBOL_QUOTE_QUANTITY;
    // Icebergs, order lists, MARKET by quote quantity.
    let cases: [(&[OrderType], u8, [bool; 3]); 11] = [
        (&[limit], all, [true, false, false]),
        (&[maker], all, [true, false, false]),
        (&[stop_limit], all, [true, false, false]),
        (&[OrderType::TakeProfitLimit], all, [true, false, false]),
        (&[OrderType::TakeProfit], all, [false; 3]),
        (&[market], all, [false, false, true]),
        (&[stop], all, [false; 3]),
        (&[stop, maker], all, [true, true, false]),
        (&[stop_limit, maker], all, [true, true, false]),
        (&[limit, market, stop], all, [true, false, true]),
        (&[limit, market, stop, maker], 0, [false; 3]),
    ];
    let mut log = Log::venue();
    for (number, (kinds, flags, _)) in (2..).zip(&cases) {
        let symbol = DefineSymbol {
            name: SymbolName::new(&format!("S{number}")).unwrap(),
            order_types: types(kinds),
            flags: *flags,
            ..btcusdt()
        };
        log.done(Command::DefineSymbol(&symbol), number);
    }
    let site = Site::new(log);
    for (number, (kinds, _, [iceberg, oco, quote])) in (2..).zip(&cases) {
        let reply = site.reply(open(Get, "exchangeInfo", &format!("symbol=S{number}")));
        let expected = format!(
            r#""icebergAllowed":{iceberg},"ocoAllowed":{oco},"quoteOrderQtyMarketAllowed":{quote},"#
        );
        assert!(body(&reply).contains(&expected), "{kinds:?} {}", body(&reply));
    }
}

#[test]
fn an_order_is_found_by_either_id_and_shown_whole() {
    let mut log = Log::venue();
    log.rest(BOB, Side::Buy, 1, 100 * ONE, 2 * ONE);
    let time = (log.time_ns - 1_000_000) / 1_000_000;
    log.cancel(1, 200 * ONE, 2).unwrap();
    let site = Site::new(log);
    let expected = format!(
        concat!(
            r#"{{"symbol":"BTCUSDT","orderId":1,"orderListId":-1,"clientOrderId":"c1","#,
            r#""price":"100.00000000","origQty":"2.00000000","executedQty":"0.00000000","#,
            r#""cummulativeQuoteQty":"0.00000000","status":"CANCELED","timeInForce":"GTC","#,
            r#""type":"LIMIT","side":"BUY","stopPrice":"0.00000000","icebergQty":"0.00000000","#,
            r#""time":{},"updateTime":{},"isWorking":true,"origQuoteOrderQty":"0.00000000"}}"#,
        ),
        time,
        time + 1
    );
    for query in ["orderId=1", "origClientOrderId=c1", "orderId=1&origClientOrderId=c1"] {
        let query = format!("symbol=BTCUSDT&{query}");
        let reply = site.reply(site.signed_by(BOBS_KEY, Get, "order", &query));
        assert_eq!((reply.status, body(&reply)), (200, &*expected), "{query}");
    }
}

#[test]
fn an_order_shows_what_it_was_placed_with() {
    let mut log = Log::venue();
    let (mut order, mut accepted) = limit_order(BOB, Side::Buy, 1, 100 * ONE, 3 * ONE);
    order.order_type = OrderType::StopLossLimit.to_wire();
    accepted.order_type = order.order_type;
    (order.stop_price, order.iceberg_quantity) = (99 * ONE, ONE);
    log.place(&order, &accepted, &[], &resting(&accepted, 0)).unwrap();
    let (mut order, mut accepted) = limit_order(BOB, Side::Buy, 2, 0, 2 * ONE);
    order.order_type = OrderType::Market.to_wire();
    accepted.order_type = order.order_type;
    (order.quantity, order.quote_quantity) = (0, 250 * ONE);
    let mut result = resting(&accepted, 0);
    result.status = 5;
    log.place(&order, &accepted, &[], &result).unwrap();
    let site = Site::new(log);
    let show = |id| {
        let reply = site.reply(site.signed_by(
            BOBS_KEY,
            Get,
            "order",
            &format!("symbol=BTCUSDT&orderId={id}"),
        ));
        let value: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
        ["type", "stopPrice", "icebergQty", "isWorking", "origQty", "origQuoteOrderQty"]
            .map(|key| value[key].to_string().replace('"', ""))
    };
    let expected =
        ["STOP_LOSS_LIMIT", "99.00000000", "1.00000000", "false", "3.00000000", "0.00000000"];
    assert_eq!(show(1), expected);
    let expected = ["MARKET", "0.00000000", "0.00000000", "true", "2.00000000", "250.00000000"];
    assert_eq!(show(2), expected);
}

#[test]
fn an_order_shows_what_was_filled_of_it_and_for_how_much() {
    let mut log = Log::venue();
    log.trade(1, 100 * ONE, ONE / 100);
    let site = Site::new(log);
    for (key, id) in [(BOBS_KEY, 1), (ALICES_KEY, 2)] {
        let query = format!("symbol=BTCUSDT&orderId={id}");
        let reply = site.reply(site.signed_by(key, Get, "order", &query));
        let expected = concat!(
            r#""origQty":"0.01000000","executedQty":"0.01000000","#,
            r#""cummulativeQuoteQty":"1.00000000","status":"FILLED","#,
        );
        assert!(body(&reply).contains(expected), "{}", body(&reply));
    }
}

#[test]
fn filters_of_the_exchange_are_listed_when_they_are_set() {
    let mut log = Log::venue();
    let filters = SetVenueFilters { max_orders: 1000, max_algo_orders: 200, ..Default::default() };
    log.done(Command::SetVenueFilters(&filters), 0);
    let site = Site::new(log);
    let reply = site.reply(open(Get, "exchangeInfo", "symbols=[]"));
    let expected = concat!(
        r#""exchangeFilters":["#,
        r#"{"filterType":"EXCHANGE_MAX_NUM_ORDERS","maxNumOrders":1000},"#,
        r#"{"filterType":"EXCHANGE_MAX_NUM_ALGO_ORDERS","maxNumAlgoOrders":200}"#,
        r#"],"symbols":[]}"#,
    );
    assert!(body(&reply).ends_with(expected), "{}", body(&reply));
}

#[test]
fn an_account_shows_all_its_rates_and_whether_it_is_killed() {
    let mut log = Log::venue();
    let fees = SetFees {
        account: BOB,
        symbol: SymbolId(EVERY),
        maker_rate: 10_000,
        taker_rate: 20_000,
        buyer_rate: 30_000,
        seller_rate: 40_000,
        ..Default::default()
    };
    log.done(Command::SetFees(&fees), 0);
    let kill = KillAccount { account: BOB, killed: 1, ..Default::default() };
    log.done(Command::KillAccount(&kill), 0);
    let site = Site::new(log);
    let reply = site.reply(site.signed_by(BOBS_KEY, Get, "account", ""));
    let expected = concat!(
        r#"{"makerCommission":1,"takerCommission":2,"buyerCommission":3,"sellerCommission":4,"#,
        r#""canTrade":false,"canWithdraw":true,"canDeposit":true,"#,
    );
    assert!(body(&reply).starts_with(expected), "{}", body(&reply));
}

#[test]
fn an_account_shows_what_it_may_do_one_by_one() {
    for (flags, expected) in [
        (ACCOUNT_CAN_TRADE, r#""canTrade":true,"canWithdraw":false,"canDeposit":false,"#),
        (ACCOUNT_CAN_WITHDRAW, r#""canTrade":false,"canWithdraw":true,"canDeposit":false,"#),
        (ACCOUNT_CAN_DEPOSIT, r#""canTrade":false,"canWithdraw":false,"canDeposit":true,"#),
    ] {
        let mut log = Log::venue();
        let name = Name::new("carol").unwrap();
        let create = CreateAccount { name, flags, ..Default::default() };
        log.done(Command::CreateAccount(&create), 3);
        let key = CreateKey { account: AccountId(3), permissions: KEY_ALL, ..Default::default() };
        log.done(Command::CreateKey(&key), 3);
        let site = Site::new(log);
        let reply = site.reply(site.signed_by(KeyId(3), Get, "account", ""));
        assert!(body(&reply).contains(expected), "{}", body(&reply));
    }
}

#[test]
fn an_account_shows_every_asset() {
    let mut log = Log::venue();
    log.rest(BOB, Side::Sell, 1, 100 * ONE, 2 * ONE);
    let time = (log.time_ns - 1_000_000) / 1_000_000;
    let site = Site::new(log);
    let reply = site.reply(site.signed_by(BOBS_KEY, Get, "account", "recvWindow=60000"));
    let expected = format!(
        concat!(
            r#"{{"makerCommission":10,"takerCommission":15,"buyerCommission":0,"#,
            r#""sellerCommission":0,"canTrade":true,"canWithdraw":true,"canDeposit":true,"#,
            r#""updateTime":{},"accountType":"SPOT","balances":["#,
            r#"{{"asset":"BTC","free":"998.00000000","locked":"2.00000000"}},"#,
            r#"{{"asset":"ETH","free":"0.00000000","locked":"0.00000000"}},"#,
            r#"{{"asset":"USDT","free":"10000000.00000000","locked":"0.00000000"}}"#,
            r#"],"permissions":["SPOT"]}}"#,
        ),
        time
    );
    assert_eq!((reply.status, body(&reply)), (200, &*expected));
}

#[test]
fn a_revoked_key_and_a_key_of_another_kind_read_nothing() {
    let mut log = Log::venue();
    let revoke = RevokeKey { key: BOBS_KEY, ..Default::default() };
    log.done(Command::RevokeKey(&revoke), 0);
    let trade_only = CreateKey { account: BOB, permissions: KEY_TRADE, ..Default::default() };
    log.done(Command::CreateKey(&trade_only), 3);
    let site = Site::new(log);
    for key in [2, 3, 4] {
        let key = KeyId(key);
        let reply = site.reply(site.signed_by(key, Get, "account", ""));
        assert_eq!(
            (reply.status, body(&reply)),
            (401, r#"{"code":-2015,"msg":"Invalid API-key, IP, or permissions for action."}"#)
        );
    }
    // Of a kind that the contract does not name: who places orders may ask how many.
    let of_a_trader = KeyId(3);
    let reply = site.reply(site.signed_by(of_a_trader, Get, "rateLimit/order", ""));
    assert_eq!(reply.status, 200, "{}", body(&reply));
    let reply = site.reply(site.signed_by(BOBS_KEY, Post, "order", "symbol=BTCUSDT"));
    assert_eq!(reply.status, 401);
}

#[test]
fn weight_is_charged_up_to_the_limit_and_refused_above() {
    let limits =
        LimitsConfig { request_weight_per_minute: 20, ..AdapterConfig::default().limits() };
    let site = Site::limited(Log::venue(), config(), limits);
    assert_eq!(site.reply(open(Get, "exchangeInfo", "")).status, 200);
    assert_eq!(site.reply(open(Get, "exchangeInfo", "")).status, 200);
    let reply = site.reply(open(Get, "ping", ""));
    assert_eq!(
        (reply.status, body(&reply)),
        (
            429,
            r#"{"code":-1003,"msg":"Too much request weight used; current limit is 20 request weight per 1 MINUTE. Please use the websocket for live updates to avoid polling the API."}"#
        )
    );
    let rest = 60 - (NOW_MS / 1000) % 60;
    assert_eq!(header(&reply, "Retry-After"), Some(&*rest.to_string()));
    assert_eq!(header(&reply, "X-SVC-USED-WEIGHT-1M"), Some("21"));
}

#[test]
fn the_symbol_of_an_order_is_its_own() {
    let mut log = Log::venue();
    log.rest(ALICE, Side::Buy, 1, 100 * ONE, ONE);
    let site = Site::new(log);
    let reply = site.reply(site.signed(Get, "order", "symbol=ETHBTC&orderId=1"));
    assert_eq!(body(&reply), r#"{"code":-2013,"msg":"Order does not exist."}"#);
}
