//! Every row of the table against the interface's published texts, written out in full.

use super::*;

#[test]
fn codes_statuses_and_texts_are_those_of_the_interface() {
    #[rustfmt::skip]
    let rows: &[(ApiError, u16, i32, &str)] = &[
        (ApiError::unknown(), 500, -1000, "An unknown error occured while processing the request."),
        (ApiError::disconnected(), 500, -1001, "Internal error; unable to process your request. Please try again."),
        (ApiError::unauthorized(), 401, -1002, "You are not authorized to execute this request."),
        (ApiError::too_much_request_weight(1200, 1, "MINUTE"), 429, -1003, "Too much request weight used; current limit is 1200 request weight per 1 MINUTE. Please use the websocket for live updates to avoid polling the API."),
        (ApiError::too_many_requests_queued(), 429, -1003, "Too many requests queued."),
        (ApiError::ip_banned(1_640_995_200_000), 418, -1003, "Way too much request weight used; IP banned until 1640995200000. Please use the websocket for live updates to avoid bans."),
        (ApiError::unexpected_response(), 500, -1006, "An unexpected response was received from the message bus. Execution status unknown."),
        (ApiError::engine_timeout(), 504, -1007, "Timeout waiting for response from backend server. Send status unknown; execution status unknown."),
        (ApiError::overloaded(), 503, -1008, "Server is currently overloaded with other requests. Please try again in a few minutes."),
        (ApiError::invalid_quantity(), 400, -1013, "Invalid quantity."),
        (ApiError::invalid_price(), 400, -1013, "Invalid price."),
        (ApiError::market_closed(), 400, -1013, "Market is closed."),
        (ApiError::filter_failure("LOT_SIZE"), 400, -1013, "Filter failure: LOT_SIZE"),
        (ApiError::engine_filter_failure("MAX_POSITION"), 400, -2010, "Filter failure: MAX_POSITION"),
        (ApiError::limit_orders_unsupported(), 400, -1013, "Limit orders are not supported for this symbol."),
        (ApiError::limit_maker_orders_unsupported(), 400, -1013, "Limit maker orders are not supported for this symbol."),
        (ApiError::market_orders_unsupported(), 400, -1013, "Market orders are not supported for this symbol."),
        (ApiError::iceberg_orders_unsupported(), 400, -1013, "Iceberg orders are not supported for this symbol."),
        (ApiError::stop_loss_orders_unsupported(), 400, -1013, "Stop loss orders are not supported for this symbol."),
        (ApiError::stop_loss_limit_orders_unsupported(), 400, -1013, "Stop loss limit orders are not supported for this symbol."),
        (ApiError::take_profit_orders_unsupported(), 400, -1013, "Take profit orders are not supported for this symbol."),
        (ApiError::take_profit_limit_orders_unsupported(), 400, -1013, "Take profit limit orders are not supported for this symbol."),
        (ApiError::quote_order_qty_unsupported(), 400, -1013, "Quote order qty market orders are not support for this symbol."),
        (ApiError::oco_orders_unsupported(), 400, -1013, "OCO orders are not supported for this symbol"),
        (ApiError::iceberg_exceeds_quantity(), 400, -1013, "IcebergQty exceeds QTY."),
        (ApiError::notional_is_zero(), 400, -1013, "Price * QTY is zero or less."),
        (ApiError::unsupported_order_combination(), 400, -1014, "Unsupported order combination."),
        (ApiError::too_many_orders(50, "10 SECOND"), 429, -1015, "Too many new orders; current limit is 50 orders per 10 SECOND."),
        (ApiError::too_many_orders(100_000, "DAY"), 429, -1015, "Too many new orders; current limit is 100000 orders per DAY."),
        (ApiError::service_ending(), 503, -1016, "This service is no longer available."),
        (ApiError::unsupported_operation(), 400, -1020, "This operation is not supported."),
        (ApiError::outside_recv_window(), 400, -1021, "Timestamp for this request is outside of the recvWindow."),
        (ApiError::timestamp_ahead(), 400, -1021, "Timestamp for this request was 1000ms ahead of the server's time."),
        (ApiError::recv_window_too_long(), 400, -1131, "'recvWindow' must be less than 60000."),
        (ApiError::invalid_signature(), 400, -1022, "Signature for this request is not valid."),
        (ApiError::start_after_end(), 400, -1023, "Start time is greater than end time."),
        (ApiError::illegal_characters("quantity", "^[0-9]$"), 400, -1100, "Illegal characters found in parameter 'quantity'; legal range is '^[0-9]$'."),
        (ApiError::too_many_parameters(0, 1), 400, -1101, "Too many parameters; expected '0' and received '1'."),
        (ApiError::duplicate_parameter(), 400, -1101, "Duplicate values for a parameter detected."),
        (ApiError::mandatory_parameter("symbol"), 400, -1102, "Mandatory parameter 'symbol' was not sent, was empty/null, or malformed."),
        (ApiError::neither_parameter("orderId", "origClientOrderId"), 400, -1102, "Param 'orderId' or 'origClientOrderId' must be sent, but both were empty/null!"),
        (ApiError::unread_parameters(7, 8), 400, -1104, "Not all sent parameters were read; read '7' parameter(s) but was sent '8'."),
        (ApiError::empty_parameter("price"), 400, -1105, "Parameter 'price' was empty."),
        (ApiError::parameter_not_required("timeInForce"), 400, -1106, "Parameter 'timeInForce' sent when not required."),
        (ApiError::parameter_overflow("fromId"), 400, -1108, "Parameter 'fromId' overflowed."),
        (ApiError::too_much_precision(), 400, -1111, "Precision is over the maximum defined for this asset."),
        (ApiError::liquidity_below_lot_size(), 400, -2010, "Order book liquidity is less than `LOT_SIZE` filter minimum quantity."),
        (ApiError::book_too_deep(), 400, -2010, "Order needs more price levels of the book than one order may take."),
        (ApiError::no_orders_on_book(), 400, -1112, "No orders on book for symbol."),
        (ApiError::invalid_time_in_force(), 400, -1115, "Invalid timeInForce."),
        (ApiError::invalid_order_type(), 400, -1116, "Invalid orderType."),
        (ApiError::invalid_side(), 400, -1117, "Invalid side."),
        (ApiError::invalid_response_type(), 400, -1136, "Invalid newOrderRespType"),
        (ApiError::empty_new_client_order_id(), 400, -1118, "New client order ID was empty."),
        (ApiError::empty_original_client_order_id(), 400, -1119, "Original client order ID was empty."),
        (ApiError::invalid_interval(), 400, -1120, "Invalid interval."),
        (ApiError::invalid_symbol(), 400, -1121, "Invalid symbol."),
        (ApiError::unknown_listen_key(), 400, -1125, "This listenKey does not exist."),
        (ApiError::span_too_long(24), 400, -1127, "More than 24 hours between startTime and endTime."),
        (ApiError::invalid_combination(), 400, -1128, "Combination of optional parameters invalid."),
        (ApiError::invalid_combination_without("stopLimitTimeInForce"), 400, -1128, "Combination of optional parameters invalid. Recommendation: 'stopLimitTimeInForce' should also be sent."),
        (ApiError::invalid_parameter("limit"), 400, -1130, "Data sent for parameter 'limit' is not valid."),
        (ApiError::insufficient_balance(), 400, -2010, "Account has insufficient balance for requested action."),
        (ApiError::duplicate_order(), 400, -2010, "Duplicate order sent."),
        (ApiError::would_trigger(), 400, -2010, "Order would trigger immediately."),
        (ApiError::would_match(), 400, -2010, "Order would immediately match and take."),
        (ApiError::wrong_price_relationship(), 400, -2010, "The relationship of the prices for the orders is not correct."),
        (ApiError::placing_disabled(), 400, -2010, "This action is disabled on this account."),
        (ApiError::cancelling_disabled(), 400, -2011, "This action is disabled on this account."),
        (ApiError::symbol_not_permitted(), 400, -2010, "This symbol is not permitted for this account."),
        (ApiError::unknown_order(), 400, -2011, "Unknown order sent."),
        (ApiError::unknown_order_list(), 400, -2011, "Unknown order list sent."),
        (ApiError::cancel_without_id(), 400, -2011, "Cancel order is invalid. Check origClOrdId and orderId."),
        (ApiError::order_not_found(), 400, -2013, "Order does not exist."),
        (ApiError::order_list_not_found(), 400, -2018, "Order list does not exist."),
        (ApiError::api_key_format(), 401, -2014, "API-key format invalid."),
        (ApiError::api_key_rejected(), 401, -2015, "Invalid API-key, IP, or permissions for action."),
        (ApiError::no_trading_window(), 400, -2016, "No trading window could be found for the symbol. Try ticker/24hrs instead."),
        (ApiError::client_order_id_mismatch(), 400, -2039, "Client order ID is not correct for this order ID."),
    ];
    for (error, status, code, message) in rows {
        assert_eq!(error.status, *status, "{error}");
        assert_eq!(error.code, *code, "{error}");
        assert_eq!(error.message, *message);
        assert_eq!(error.retry_after_s, None);
    }
}

#[test]
fn the_body_is_code_then_msg() {
    assert_eq!(ApiError::invalid_symbol().body(), r#"{"code":-1121,"msg":"Invalid symbol."}"#);
}

#[test]
fn the_body_is_json_whatever_the_message_quotes() {
    let awkward = "\"\\\n\u{0}\u{1f}\u{7f}é\u{2028}^\\[(\"[A-Z]\")\\]$";
    let error = ApiError::illegal_characters("symbols", awkward);
    let parsed: serde_json::Value = serde_json::from_str(&error.body()).unwrap();
    assert_eq!(parsed["code"], -1100);
    assert_eq!(parsed["msg"].as_str(), Some(&*error.message));
}

#[test]
fn retry_after_becomes_a_header() {
    let error = ApiError::too_much_request_weight(1200, 1, "MINUTE").with_retry_after(17);
    let reply = error.reply();
    assert_eq!(reply.status, 429);
    assert_eq!(reply.headers, [("Retry-After".into(), "17".into())]);
    assert_eq!(reply.content_type, Some("application/json;charset=UTF-8"));
    assert!(ApiError::invalid_symbol().reply().headers.is_empty());
}
