//! The main job over REST: two accounts place, trade, query and cancel orders, and every field of
//! every reply and every balance is what the contract and the arithmetic say.

use super::json::Json;
use super::trader::{Balances, levels};
use super::units::{WHOLE, commission, decimal, quote_amount, quote_lock, units};
use super::venue::Venue;

const ACK_KEYS: [&str; 5] = ["symbol", "orderId", "orderListId", "clientOrderId", "transactTime"];
const RESULT_ONLY_KEYS: [&str; 8] = [
    "price",
    "origQty",
    "executedQty",
    "cummulativeQuoteQty",
    "status",
    "timeInForce",
    "type",
    "side",
];
const ORDER_KEYS: [&str; 18] = [
    "symbol",
    "orderId",
    "orderListId",
    "clientOrderId",
    "price",
    "origQty",
    "executedQty",
    "cummulativeQuoteQty",
    "status",
    "timeInForce",
    "type",
    "side",
    "stopPrice",
    "icebergQty",
    "time",
    "updateTime",
    "isWorking",
    "origQuoteOrderQty",
];

fn full_keys() -> Vec<&'static str> {
    ACK_KEYS.into_iter().chain(RESULT_ONLY_KEYS).chain(["fills"]).collect()
}

/// Checks several string fields at once.
pub(crate) fn assert_texts(object: &Json, expected: &[(&str, &str)]) {
    for (key, value) in expected {
        assert_eq!(object.text_at(key), *value, "{key} of {object:?}");
    }
}

/// Checks one entry of `fills`: the contract's four keys, then at most the trade's number.
fn assert_fill(fill: &Json, price: &str, quantity: &str, commission: &str, asset: &str) {
    let keys = fill.keys();
    assert_eq!(keys[..4], ["price", "qty", "commission", "commissionAsset"], "{fill:?}");
    assert!(keys[4..].is_empty() || keys[4..] == ["tradeId"], "{fill:?}");
    let expected = [
        ("price", price),
        ("qty", quantity),
        ("commission", commission),
        ("commissionAsset", asset),
    ];
    assert_texts(fill, &expected);
}

pub(crate) fn is_generated_id(id: &str) -> bool {
    id.len() == 22 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// What a balance should be after adding signed amounts.
fn moved(before: &Balances, changes: &[(&str, i128, i128)]) -> Balances {
    let mut after = before.clone();
    for (asset, free, locked) in changes {
        let balance = after.get_mut(*asset).expect("the asset exists");
        balance.0 += free;
        balance.1 += locked;
    }
    after
}

#[test]
fn a_new_venue_has_two_funded_accounts() {
    let venue = Venue::up(&[]);
    for mut trader in [venue.a(), venue.b()] {
        let account = trader.account();
        assert_eq!(
            account.keys(),
            [
                "makerCommission",
                "takerCommission",
                "buyerCommission",
                "sellerCommission",
                "canTrade",
                "canWithdraw",
                "canDeposit",
                "updateTime",
                "accountType",
                "balances",
                "permissions",
            ]
        );
        assert_eq!(account.integer_at("makerCommission"), 10, "0.001 in ten-thousandths");
        assert_eq!(account.integer_at("takerCommission"), 10);
        assert_eq!(account.integer_at("buyerCommission"), 0);
        assert_eq!(account.integer_at("sellerCommission"), 0);
        for flag in ["canTrade", "canWithdraw", "canDeposit"] {
            assert_eq!(account.at(flag), &Json::Bool(true), "{flag}");
        }
        assert!(account.integer_at("updateTime") > 1_600_000_000_000);
        assert_eq!(account.text_at("accountType"), "SPOT");
        assert_eq!(account.at("permissions"), &Json::List(vec![Json::Text("SPOT".to_owned())]));
        let expected: Balances = [("BTC", 1000), ("ETH", 10_000), ("USDT", 10_000_000)]
            .map(|(asset, amount)| (asset.to_owned(), (amount * WHOLE, 0)))
            .into();
        assert_eq!(trader.balances(), expected);
    }
}

#[test]
fn two_accounts_trade_and_every_reply_and_balance_is_exact() {
    let venue = Venue::up(&[]);
    let (mut a, mut b) = (venue.a(), venue.b());
    let (a_before, b_before) = (a.balances(), b.balances());
    let depth_before = venue.http().get("/api/v3/depth?symbol=BTCUSDT").ok();
    assert_eq!(depth_before.keys(), ["lastUpdateId", "bids", "asks"]);

    let resting = a.limit("BTCUSDT", "SELL", "1", "30000");
    assert_eq!(resting.keys(), full_keys(), "LIMIT replies in the FULL form unless told otherwise");
    assert_eq!(resting.text_at("symbol"), "BTCUSDT");
    assert_eq!(resting.integer_at("orderListId"), -1);
    assert!(is_generated_id(resting.text_at("clientOrderId")), "{resting:?}");
    assert!(resting.integer_at("transactTime") > 1_600_000_000_000);
    assert_texts(
        &resting,
        &[
            ("price", "30000.00000000"),
            ("origQty", "1.00000000"),
            ("executedQty", "0.00000000"),
            ("cummulativeQuoteQty", "0.00000000"),
            ("status", "NEW"),
            ("timeInForce", "GTC"),
            ("type", "LIMIT"),
            ("side", "SELL"),
        ],
    );
    assert!(resting.at("fills").items().is_empty());
    assert_eq!(a.balances(), moved(&a_before, &[("BTC", -WHOLE, WHOLE)]));
    let depth = venue.http().get("/api/v3/depth?symbol=BTCUSDT").ok();
    assert_eq!(levels(&depth, "asks"), [(30_000 * WHOLE, WHOLE)]);
    assert!(levels(&depth, "bids").is_empty());
    assert!(depth.integer_at("lastUpdateId") > depth_before.integer_at("lastUpdateId"));

    let taken = b.place(
        "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.4&price=30010.5\
         &newClientOrderId=taker-1",
    );
    assert_eq!(taken.keys(), full_keys());
    assert_eq!(taken.text_at("clientOrderId"), "taker-1");
    assert_eq!(taken.integer_at("orderId"), resting.integer_at("orderId") + 1);
    assert_texts(
        &taken,
        &[
            ("price", "30010.50000000"),
            ("origQty", "0.40000000"),
            ("executedQty", "0.40000000"),
            ("cummulativeQuoteQty", "12000.00000000"),
            ("status", "FILLED"),
            ("side", "BUY"),
        ],
    );
    let fills = taken.at("fills").items();
    assert_eq!(fills.len(), 1);
    assert_fill(&fills[0], "30000.00000000", "0.40000000", "0.00040000", "BTC");

    let quote = 12_000 * WHOLE;
    let base = 4 * WHOLE / 10;
    assert_eq!(
        a.balances(),
        moved(&a_before, &[("BTC", -WHOLE, WHOLE - base), ("USDT", quote - commission(quote), 0)])
    );
    assert_eq!(
        b.balances(),
        moved(&b_before, &[("BTC", base - commission(base), 0), ("USDT", -quote, 0)]),
        "the rest of the lock at 30010.5 is free again"
    );
    let depth = venue.http().get("/api/v3/depth?symbol=BTCUSDT").ok();
    assert_eq!(levels(&depth, "asks"), [(30_000 * WHOLE, WHOLE - base)]);

    let order = a.order("BTCUSDT", resting.integer_at("orderId"));
    assert_eq!(order.keys(), ORDER_KEYS);
    assert_texts(
        &order,
        &[
            ("clientOrderId", resting.text_at("clientOrderId")),
            ("price", "30000.00000000"),
            ("origQty", "1.00000000"),
            ("executedQty", "0.40000000"),
            ("cummulativeQuoteQty", "12000.00000000"),
            ("status", "PARTIALLY_FILLED"),
            ("timeInForce", "GTC"),
            ("type", "LIMIT"),
            ("side", "SELL"),
            ("stopPrice", "0.00000000"),
            ("icebergQty", "0.00000000"),
            ("origQuoteOrderQty", "0.00000000"),
        ],
    );
    assert_eq!(order.integer_at("orderListId"), -1);
    assert_eq!(order.integer_at("time"), resting.integer_at("transactTime"));
    assert_eq!(order.integer_at("updateTime"), taken.integer_at("transactTime"));
    assert_eq!(order.at("isWorking"), &Json::Bool(true));
    let by_client_id =
        b.call("GET", "/api/v3/order", "symbol=BTCUSDT&origClientOrderId=taker-1").ok();
    assert_texts(&by_client_id, &[("status", "FILLED"), ("clientOrderId", "taker-1")]);
    assert_eq!(by_client_id.integer_at("orderId"), taken.integer_at("orderId"));
}

#[test]
fn the_three_response_forms_and_their_defaults() {
    let venue = Venue::up(&[]);
    let mut a = venue.a();
    let order = "symbol=BTCUSDT&side=SELL&type=LIMIT&timeInForce=GTC&quantity=0.1&price=31000";
    let result_keys: Vec<_> = ACK_KEYS.into_iter().chain(RESULT_ONLY_KEYS).collect();

    let ack = a.place(&format!("{order}&newOrderRespType=ACK"));
    assert_eq!(ack.keys(), ACK_KEYS);
    let result = a.place(&format!("{order}&newOrderRespType=RESULT"));
    assert_eq!(result.keys(), result_keys);
    let full = a.place(&format!("{order}&newOrderRespType=FULL"));
    assert_eq!(full.keys(), full_keys());
    let ids: Vec<_> = [&ack, &result, &full].map(|reply| reply.integer_at("orderId")).into();
    assert_eq!(ids, [ids[0], ids[0] + 1, ids[0] + 2], "order ids count up");

    let market = "symbol=BTCUSDT&side=BUY&type=MARKET&quantity=0.15";
    let full = venue.b().place(market);
    assert_eq!(full.keys(), full_keys(), "MARKET replies in the FULL form unless told otherwise");
    assert_texts(
        &full,
        &[
            ("price", "0.00000000"),
            ("timeInForce", "GTC"),
            ("type", "MARKET"),
            ("status", "FILLED"),
        ],
    );
    let fills = full.at("fills").items();
    assert_eq!(fills.len(), 2, "one entry per resting order: {fills:?}");
    assert_fill(&fills[0], "31000.00000000", "0.10000000", "0.00010000", "BTC");
    assert_fill(&fills[1], "31000.00000000", "0.05000000", "0.00005000", "BTC");
    let ack = venue.b().place(&format!("{market}&newOrderRespType=ACK"));
    assert_eq!(ack.keys(), ACK_KEYS);
    for id in &ids {
        assert_eq!(a.order("BTCUSDT", *id).text_at("status"), "FILLED");
    }
}

#[test]
fn price_comes_before_time_and_time_before_later_time() {
    let venue = Venue::up(&[]);
    let (mut a, mut b) = (venue.a(), venue.b());
    let first_at_101 = a.limit("BTCUSDT", "SELL", "1", "101").integer_at("orderId");
    let second_at_101 = b.limit("BTCUSDT", "SELL", "1", "101").integer_at("orderId");
    let at_100 = a.limit("BTCUSDT", "SELL", "1", "100").integer_at("orderId");
    let at_102 = a.limit("BTCUSDT", "SELL", "1", "102").integer_at("orderId");

    let taken =
        b.place("symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=2.5&price=101");
    let fills = taken.at("fills").items();
    assert_eq!(fills.len(), 3);
    assert_fill(&fills[0], "100.00000000", "1.00000000", "0.00100000", "BTC");
    assert_fill(&fills[1], "101.00000000", "1.00000000", "0.00100000", "BTC");
    assert_fill(&fills[2], "101.00000000", "0.50000000", "0.00050000", "BTC");
    assert_eq!(taken.text_at("status"), "FILLED");
    assert_eq!(taken.text_at("cummulativeQuoteQty"), "251.50000000");

    assert_eq!(a.order("BTCUSDT", at_100).text_at("status"), "FILLED");
    assert_eq!(a.order("BTCUSDT", first_at_101).text_at("status"), "FILLED");
    assert_eq!(b.order("BTCUSDT", second_at_101).text_at("executedQty"), "0.50000000");
    assert_eq!(a.order("BTCUSDT", at_102).text_at("status"), "NEW");
}

#[test]
fn a_limit_order_that_partly_fills_rests_with_the_rest() {
    let venue = Venue::up(&[]);
    let (mut a, mut b) = (venue.a(), venue.b());
    a.limit("ETHUSDT", "SELL", "2", "1500");
    let before = b.balances();
    let taken = b.limit("ETHUSDT", "BUY", "5", "1501");
    assert_texts(&taken, &[("status", "PARTIALLY_FILLED"), ("executedQty", "2.00000000")]);
    let depth = venue.http().get("/api/v3/depth?symbol=ETHUSDT").ok();
    assert!(levels(&depth, "asks").is_empty());
    assert_eq!(levels(&depth, "bids"), [(1501 * WHOLE, 3 * WHOLE)]);

    let id = taken.integer_at("orderId");
    let paid = 3000 * WHOLE;
    let bought = 2 * WHOLE - commission(2 * WHOLE);
    let total = |balances: &Balances, asset: &str| balances[asset].0 + balances[asset].1;
    let resting = b.balances();
    assert_eq!(total(&resting, "USDT"), total(&before, "USDT") - paid);
    assert!(resting["USDT"].1 >= 4503 * WHOLE, "what rests is locked: {resting:?}");

    let report = b.cancel(&format!("symbol=ETHUSDT&orderId={id}"));
    assert_texts(&report, &[("status", "CANCELED"), ("executedQty", "2.00000000")]);
    assert_eq!(b.balances(), moved(&before, &[("USDT", -paid, 0), ("ETH", bought, 0)]));
    assert_eq!(b.order("ETHUSDT", id).text_at("status"), "CANCELED");
}

#[test]
fn immediate_or_cancel_takes_what_is_there_and_expires() {
    let venue = Venue::up(&[]);
    let (mut a, mut b) = (venue.a(), venue.b());
    a.limit("BTCUSDT", "SELL", "0.6", "30000");
    let before = b.balances();
    let order = "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=IOC&quantity=1&price=30000";
    let part = b.place(order);
    assert_texts(
        &part,
        &[("status", "EXPIRED"), ("executedQty", "0.60000000"), ("timeInForce", "IOC")],
    );
    let paid = 18_000 * WHOLE;
    let bought = 6 * WHOLE / 10;
    let expected = moved(&before, &[("USDT", -paid, 0), ("BTC", bought - commission(bought), 0)]);
    assert_eq!(b.balances(), expected);

    let nothing = b.place(order);
    assert_texts(&nothing, &[("status", "EXPIRED"), ("executedQty", "0.00000000")]);
    assert!(nothing.at("fills").items().is_empty());
    assert_eq!(b.balances(), expected);
    let depth = venue.http().get("/api/v3/depth?symbol=BTCUSDT").ok();
    assert!(levels(&depth, "bids").is_empty() && levels(&depth, "asks").is_empty());
    let order = b.order("BTCUSDT", part.integer_at("orderId"));
    assert_texts(&order, &[("status", "EXPIRED"), ("executedQty", "0.60000000")]);
}

#[test]
fn fill_or_kill_fills_whole_or_not_at_all() {
    let venue = Venue::up(&[]);
    let (mut a, mut b) = (venue.a(), venue.b());
    a.limit("BTCUSDT", "SELL", "0.5", "30000");
    a.limit("BTCUSDT", "SELL", "0.5", "30001");
    let before = b.balances();
    let order = |quantity: &str, price: &str| {
        format!(
            "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=FOK&quantity={quantity}&price={price}"
        )
    };
    for (quantity, price) in [("1.00001", "30001"), ("0.50001", "30000")] {
        let killed = b.place(&order(quantity, price));
        assert_texts(&killed, &[("status", "EXPIRED"), ("executedQty", "0.00000000")]);
        assert!(killed.at("fills").items().is_empty());
        assert_eq!(b.balances(), before);
    }
    let filled = b.place(&order("1", "30001"));
    assert_texts(
        &filled,
        &[
            ("status", "FILLED"),
            ("timeInForce", "FOK"),
            ("executedQty", "1.00000000"),
            ("cummulativeQuoteQty", "30000.50000000"),
        ],
    );
    assert_eq!(filled.at("fills").items().len(), 2);
}

#[test]
fn market_orders_take_the_best_prices_and_expire_when_the_book_runs_dry() {
    let venue = Venue::up(&[]);
    let (mut a, mut b) = (venue.a(), venue.b());
    let before = b.balances();
    let empty = b.place("symbol=ETHUSDT&side=SELL&type=MARKET&quantity=1");
    assert_texts(
        &empty,
        &[("status", "EXPIRED"), ("executedQty", "0.00000000"), ("price", "0.00000000")],
    );
    assert!(empty.at("fills").items().is_empty());
    assert_eq!(b.balances(), before);

    a.limit("ETHUSDT", "BUY", "1", "1499");
    a.limit("ETHUSDT", "BUY", "1", "1500");
    let dry = b.place("symbol=ETHUSDT&side=SELL&type=MARKET&quantity=3");
    assert_texts(
        &dry,
        &[
            ("status", "EXPIRED"),
            ("origQty", "3.00000000"),
            ("executedQty", "2.00000000"),
            ("cummulativeQuoteQty", "2999.00000000"),
        ],
    );
    let fills = dry.at("fills").items();
    assert_fill(&fills[0], "1500.00000000", "1.00000000", "1.50000000", "USDT");
    assert_fill(&fills[1], "1499.00000000", "1.00000000", "1.49900000", "USDT");
    let got = 2999 * WHOLE - commission(1500 * WHOLE) - commission(1499 * WHOLE);
    assert_eq!(b.balances(), moved(&before, &[("ETH", -2 * WHOLE, 0), ("USDT", got, 0)]));
}

#[test]
fn amounts_that_do_not_fit_eight_digits_are_cut_once_and_locks_are_raised() {
    let venue = Venue::up(&[]);
    let (mut a, mut b) = (venue.a(), venue.b());
    let (a_before, b_before) = (a.balances(), b.balances());
    let (price, quantity) = (units("0.01234500"), units("0.01230000"));
    let (paid, lock) = (quote_amount(price, quantity), quote_lock(price, quantity));
    assert_eq!((paid, lock), (15184, 15185), "0.0001518435 lies between two amounts");

    a.limit("ETHBTC", "BUY", "0.0123", "0.012345");
    assert_eq!(a.balances(), moved(&a_before, &[("BTC", -lock, lock)]));
    let sold = b.limit("ETHBTC", "SELL", "0.0123", "0.012345");
    assert_eq!(sold.text_at("cummulativeQuoteQty"), decimal(paid));
    let fill = &sold.at("fills").items()[0];
    assert_fill(fill, "0.01234500", "0.01230000", "0.00000015", "BTC");
    let bought = quantity - commission(quantity);
    assert_eq!(a.balances(), moved(&a_before, &[("BTC", -paid, 0), ("ETH", bought, 0)]));
    let got = paid - commission(paid);
    assert_eq!(b.balances(), moved(&b_before, &[("BTC", got, 0), ("ETH", -quantity, 0)]));
}

#[test]
fn an_account_may_trade_with_itself_and_pays_both_commissions() {
    let venue = Venue::up(&[]);
    let mut a = venue.a();
    let before = a.balances();
    a.limit("BTCUSDT", "SELL", "1", "20000");
    assert_eq!(a.limit("BTCUSDT", "BUY", "1", "20000").text_at("status"), "FILLED");
    let (base, quote) = (commission(WHOLE), commission(20_000 * WHOLE));
    assert_eq!(a.balances(), moved(&before, &[("BTC", -base, 0), ("USDT", -quote, 0)]));
}
