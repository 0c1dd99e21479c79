//! Bad parameters of an order, and orders that the symbol or the account cannot have.

use super::{
    Bench, CLIENT_ID_RANGE, Case, DECIMAL_RANGE, ORDER, SYMBOL_RANGE, answer, empty, filter,
    illegal, missing, not_required, with, without,
};

#[test]
fn decimals() {
    let bench = Bench::new();
    let thirty = "1".repeat(30);
    let bad = [
        "1e5",
        "1E5",
        "-1",
        "%201",
        "1%20",
        "%2B1",
        ".5",
        "1.",
        "1,5",
        "0x10",
        "NaN",
        "inf",
        "1.5.5",
        "%D9%A1",
        "%00",
        "1%00",
        thirty.as_str(),
        "0.123456789012345678901",
    ];
    let mut cases = Vec::new();
    for name in ["quantity", "price"] {
        for value in bad {
            let request = bench.post(&with(ORDER, name, value));
            cases.push(Case::new(format!("{name}={value}"), request, illegal(name, DECIMAL_RANGE)));
        }
        let nine = bench.post(&with(ORDER, name, "1.123456789"));
        let precision = answer(-1111, "Precision is over the maximum defined for this asset.");
        cases.push(Case::new(format!("{name} with nine digits"), nine, precision));
        let wide = bench.post(&with(ORDER, name, "99999999999999999999"));
        let overflow = answer(-1108, format!("Parameter '{name}' overflowed."));
        let out_of_filter = filter(if name == "price" { "PRICE_FILTER" } else { "LOT_SIZE" });
        cases.push(Case::new(format!("{name} of twenty digits"), wide, overflow).or(out_of_filter));
        let nothing = bench.post(&with(ORDER, name, ""));
        cases.push(Case::new(format!("empty {name}"), nothing, missing(name)).or(empty(name)));
        let zero = bench.post(&with(ORDER, name, "0"));
        let message = if name == "price" { "Invalid price." } else { "Invalid quantity." };
        cases.push(Case::new(format!("{name}=0"), zero, answer(-1013, message)));
    }
    bench.check(cases);
}

#[test]
fn parameters_of_an_order() {
    let bench = Bench::new();
    let post = |parameters: &str| bench.post(parameters);
    let mut cases = Vec::new();
    for name in ["symbol", "side", "type", "timeInForce", "quantity", "price"] {
        let request = post(&without(ORDER, name));
        cases.push(Case::new(format!("no {name}"), request, missing(name)));
    }
    let market = "symbol=BTCUSDT&side=SELL&type=MARKET&quantity=1";
    let neither = "Param 'quantity' or 'quoteOrderQty' must be sent, but both were empty/null!";
    cases.extend([
        Case::new("empty symbol", post(&with(ORDER, "symbol", "")), missing("symbol"))
            .or(illegal("symbol", SYMBOL_RANGE)),
        Case::new(
            "lower-case symbol",
            post(&with(ORDER, "symbol", "btcusdt")),
            illegal("symbol", SYMBOL_RANGE),
        ),
        Case::new(
            "symbol too long",
            post(&with(ORDER, "symbol", "ABCDEFGHIJKLMNOPQRSTU")),
            illegal("symbol", SYMBOL_RANGE),
        ),
        Case::new(
            "unknown symbol",
            post(&with(ORDER, "symbol", "NOSUCH")),
            answer(-1121, "Invalid symbol."),
        ),
        Case::new("bad side", post(&with(ORDER, "side", "HOLD")), answer(-1117, "Invalid side.")),
        Case::new(
            "bad type",
            post(&with(ORDER, "type", "BEST")),
            answer(-1116, "Invalid orderType."),
        ),
        Case::new(
            "bad time in force",
            post(&with(ORDER, "timeInForce", "GTX")),
            answer(-1115, "Invalid timeInForce."),
        ),
        Case::new(
            "bad response type",
            post(&with(ORDER, "newOrderRespType", "ALL")),
            answer(-1136, "Invalid newOrderRespType"),
        ),
        Case::new(
            "client id with a blank",
            post(&with(ORDER, "newClientOrderId", "a%20b")),
            illegal("newClientOrderId", CLIENT_ID_RANGE),
        ),
        Case::new(
            "client id not UTF-8",
            post(&with(ORDER, "newClientOrderId", "a%FF")),
            illegal("newClientOrderId", CLIENT_ID_RANGE),
        ),
        Case::new(
            "client id of 37",
            post(&with(ORDER, "newClientOrderId", &"x".repeat(37))),
            illegal("newClientOrderId", CLIENT_ID_RANGE),
        ),
        Case::new(
            "empty client id",
            post(&with(ORDER, "newClientOrderId", "")),
            answer(-1118, "New client order ID was empty."),
        )
        .or(empty("newClientOrderId")),
        Case::new(
            "client id of an open order",
            post(&with(ORDER, "newClientOrderId", "resting")),
            answer(-2010, "Duplicate order sent."),
        ),
        Case::new(
            "a parameter twice",
            post(&format!("{ORDER}&quantity=1")),
            answer(-1101, "Duplicate values for a parameter detected."),
        ),
        Case::new(
            "an unknown parameter",
            post(&format!("{ORDER}&colour=red")),
            answer(
                -1104,
                "Not all sent parameters were read; read '8' parameter(s) but was sent '9'.",
            ),
        ),
        Case::new(
            "market without quantity",
            post(&without(market, "quantity")),
            answer(-1102, neither),
        ),
        Case::new("market with a price", post(&format!("{market}&price=1")), not_required("price")),
        Case::new(
            "market with time in force",
            post(&format!("{market}&timeInForce=GTC")),
            not_required("timeInForce"),
        ),
    ]);
    bench.check(cases);
}

#[test]
fn kinds_of_order_that_the_symbol_does_not_take() {
    let bench = Bench::new();
    let post = |parameters: &str| bench.post(parameters);
    let unsupported =
        |name: &str| answer(-1013, format!("{name} orders are not supported for this symbol."));
    let order = with(ORDER, "symbol", "ETHBTC");
    let stop = "symbol=ETHBTC&side=SELL&quantity=1&stopPrice=0.05";
    let stop_limit = format!("{stop}&timeInForce=GTC&price=0.05");
    let cases = vec![
        Case::new("stop loss", post(&format!("{stop}&type=STOP_LOSS")), unsupported("Stop loss")),
        Case::new(
            "take profit",
            post(&format!("{stop}&type=TAKE_PROFIT")),
            unsupported("Take profit"),
        ),
        Case::new(
            "stop loss limit",
            post(&format!("{stop_limit}&type=STOP_LOSS_LIMIT")),
            unsupported("Stop loss limit"),
        ),
        Case::new(
            "take profit limit",
            post(&format!("{stop_limit}&type=TAKE_PROFIT_LIMIT")),
            unsupported("Take profit limit"),
        ),
        Case::new("iceberg", post(&format!("{order}&icebergQty=0.1")), unsupported("Iceberg")),
        Case::new(
            "limit maker",
            post("symbol=ETHBTC&side=SELL&type=LIMIT_MAKER&quantity=1&price=0.05"),
            unsupported("Limit maker"),
        ),
        Case::new(
            "market by quote quantity",
            post("symbol=ETHBTC&side=SELL&type=MARKET&quoteOrderQty=100"),
            answer(-1013, "Quote order qty market orders are not support for this symbol."),
        ),
        Case::new(
            "order list",
            bench.signed(
                "POST",
                "/api/v3/order/oco",
                "symbol=ETHBTC&side=SELL&quantity=1&price=0.06&stopPrice=0.04",
            ),
            answer(-1013, "OCO orders are not supported for this symbol"),
        ),
    ];
    bench.check(cases);
}

#[test]
fn filters_and_funds() {
    let bench = Bench::new();
    let post = |parameters: &str| bench.post(parameters);
    let order = |quantity: &str, price: &str| {
        post(&with(&with(ORDER, "quantity", quantity), "price", price))
    };
    let broke = || answer(-2010, "Account has insufficient balance for requested action.");
    let market = |side: &str, quantity: &str| {
        post(&format!("symbol=BTCUSDT&side={side}&type=MARKET&quantity={quantity}"))
    };
    let buy = with(ORDER, "side", "BUY");
    let cases = vec![
        Case::new("price off the tick", order("1", "50000.001"), filter("PRICE_FILTER")),
        Case::new("price below the least", order("9000", "0.005"), filter("PRICE_FILTER")),
        Case::new("price above the largest", order("1", "1000000.01"), filter("PRICE_FILTER")),
        Case::new("quantity off the step", order("1.000001", "50000"), filter("LOT_SIZE")),
        Case::new("quantity below the least", order("0.000001", "50000"), filter("LOT_SIZE"))
            .or(filter("MIN_NOTIONAL")),
        Case::new("quantity above the largest", order("9000.00001", "50000"), filter("LOT_SIZE")),
        Case::new("notional too small", order("0.00019", "50000"), filter("MIN_NOTIONAL")),
        Case::new("market quantity off the step", market("SELL", "1.000001"), filter("LOT_SIZE")),
        Case::new(
            "market quantity too large",
            market("SELL", "1000.00001"),
            filter("MARKET_LOT_SIZE"),
        ),
        Case::new("sells more than it has", order("1000.00001", "50000"), broke()),
        Case::new("sells more than is free", order("999.00001", "50000"), broke()),
        Case::new("buys for more than it has", post(&with(&buy, "quantity", "201")), broke()),
    ];
    bench.check(cases);
}
