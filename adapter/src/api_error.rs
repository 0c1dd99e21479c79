//! The errors of the spot service: one table of every code, HTTP status and text. Used by the
//! spot handlers and by everything that checks their requests.
//!
//! Clients match on `code` and on the exact `msg`, so the texts are part of the interface, odd
//! spellings and missing full stops included.

use std::borrow::Cow;
use std::fmt::Write;

use crate::history::HistoryError;
use crate::http::Reply;
use crate::parameters::ParameterError;
use crate::signature::SignatureError;
use crate::timing::TimingError;

/// An error reply of the spot service (spot contract §7).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code} {message}")]
pub struct ApiError {
    /// HTTP status.
    pub status: u16,
    /// Negative error code; fits an `i16`, as some clients read it so.
    pub code: i32,
    /// The `msg` of the body.
    pub message: Cow<'static, str>,
    /// Value of a `Retry-After` header in seconds (spot contract §7: 418 and 429,
    /// but not those by order count).
    pub retry_after_s: Option<u64>,
}

/// One constructor per row: its name, its arguments, HTTP status, code, text.
macro_rules! api_errors {
    ($($name:ident ( $($argument:ident : $type:ty),* ) $status:literal $code:literal $text:literal;)*) => {
        impl ApiError {
            $(api_errors!(@row $name ($($argument: $type),*) $status $code $text);)*
        }
    };
    (@row $name:ident () $status:literal $code:literal $text:literal) => {
        #[doc = concat!("HTTP ", $status, ", code ", $code, ": `", $text, "`")]
        pub const fn $name() -> Self {
            Self {
                status: $status,
                code: $code,
                message: Cow::Borrowed($text),
                retry_after_s: None,
            }
        }
    };
    (@row $name:ident ($($argument:ident : $type:ty),+) $status:literal $code:literal $text:literal) => {
        #[doc = concat!("HTTP ", $status, ", code ", $code, ": `", $text, "`")]
        pub fn $name($($argument: $type),+) -> Self {
            Self {
                status: $status,
                code: $code,
                message: Cow::Owned(format!($text)),
                retry_after_s: None,
            }
        }
    };
}

api_errors! {
    // The service itself. A 5xx leaves the outcome open.
    unknown() 500 -1000 "An unknown error occured while processing the request.";
    disconnected() 500 -1001 "Internal error; unable to process your request. Please try again.";
    unauthorized() 401 -1002 "You are not authorized to execute this request.";
    too_much_request_weight(limit: u64, count: u32, interval: &str) 429 -1003 "Too much request weight used; current limit is {limit} request weight per {count} {interval}. Please use the websocket for live updates to avoid polling the API.";
    too_many_requests_queued() 429 -1003 "Too many requests queued.";
    ip_banned(until_ms: u64) 418 -1003 "Way too much request weight used; IP banned until {until_ms}. Please use the websocket for live updates to avoid bans.";
    unexpected_response() 500 -1006 "An unexpected response was received from the message bus. Execution status unknown.";
    engine_timeout() 504 -1007 "Timeout waiting for response from backend server. Send status unknown; execution status unknown.";
    overloaded() 503 -1008 "Server is currently overloaded with other requests. Please try again in a few minutes.";
    service_ending() 503 -1016 "This service is no longer available.";
    unsupported_operation() 400 -1020 "This operation is not supported.";

    // Orders refused before the engine.
    invalid_quantity() 400 -1013 "Invalid quantity.";
    invalid_price() 400 -1013 "Invalid price.";
    market_closed() 400 -1013 "Market is closed.";
    filter_failure(filter: &str) 400 -1013 "Filter failure: {filter}";
    limit_orders_unsupported() 400 -1013 "Limit orders are not supported for this symbol.";
    limit_maker_orders_unsupported() 400 -1013 "Limit maker orders are not supported for this symbol.";
    market_orders_unsupported() 400 -1013 "Market orders are not supported for this symbol.";
    iceberg_orders_unsupported() 400 -1013 "Iceberg orders are not supported for this symbol.";
    stop_loss_orders_unsupported() 400 -1013 "Stop loss orders are not supported for this symbol.";
    stop_loss_limit_orders_unsupported() 400 -1013 "Stop loss limit orders are not supported for this symbol.";
    take_profit_orders_unsupported() 400 -1013 "Take profit orders are not supported for this symbol.";
    take_profit_limit_orders_unsupported() 400 -1013 "Take profit limit orders are not supported for this symbol.";
    quote_order_qty_unsupported() 400 -1013 "Quote order qty market orders are not support for this symbol.";
    oco_orders_unsupported() 400 -1013 "OCO orders are not supported for this symbol";
    iceberg_exceeds_quantity() 400 -1013 "IcebergQty exceeds QTY.";
    notional_is_zero() 400 -1013 "Price * QTY is zero or less.";
    unsupported_order_combination() 400 -1014 "Unsupported order combination.";
    too_many_orders(limit: u64, interval: &str) 429 -1015 "Too many new orders; current limit is {limit} orders per {interval}.";

    // Key, signature and time.
    outside_recv_window() 400 -1021 "Timestamp for this request is outside of the recvWindow.";
    timestamp_ahead() 400 -1021 "Timestamp for this request was 1000ms ahead of the server's time.";
    invalid_signature() 400 -1022 "Signature for this request is not valid.";
    recv_window_too_long() 400 -1131 "'recvWindow' must be less than 60000.";
    api_key_format() 401 -2014 "API-key format invalid.";
    api_key_rejected() 401 -2015 "Invalid API-key, IP, or permissions for action.";

    // Parameters.
    start_after_end() 400 -1023 "Start time is greater than end time.";
    illegal_characters(name: &str, legal: &str) 400 -1100 "Illegal characters found in parameter '{name}'; legal range is '{legal}'.";
    too_many_parameters(expected: usize, received: usize) 400 -1101 "Too many parameters; expected '{expected}' and received '{received}'.";
    duplicate_parameter() 400 -1101 "Duplicate values for a parameter detected.";
    mandatory_parameter(name: &str) 400 -1102 "Mandatory parameter '{name}' was not sent, was empty/null, or malformed.";
    neither_parameter(first: &str, second: &str) 400 -1102 "Param '{first}' or '{second}' must be sent, but both were empty/null!";
    unread_parameters(read: usize, sent: usize) 400 -1104 "Not all sent parameters were read; read '{read}' parameter(s) but was sent '{sent}'.";
    empty_parameter(name: &str) 400 -1105 "Parameter '{name}' was empty.";
    parameter_not_required(name: &str) 400 -1106 "Parameter '{name}' sent when not required.";
    parameter_overflow(name: &str) 400 -1108 "Parameter '{name}' overflowed.";
    too_much_precision() 400 -1111 "Precision is over the maximum defined for this asset.";
    invalid_time_in_force() 400 -1115 "Invalid timeInForce.";
    invalid_order_type() 400 -1116 "Invalid orderType.";
    invalid_side() 400 -1117 "Invalid side.";
    empty_new_client_order_id() 400 -1118 "New client order ID was empty.";
    empty_original_client_order_id() 400 -1119 "Original client order ID was empty.";
    invalid_interval() 400 -1120 "Invalid interval.";
    invalid_symbol() 400 -1121 "Invalid symbol.";
    unknown_listen_key() 400 -1125 "This listenKey does not exist.";
    span_too_long(hours: u32) 400 -1127 "More than {hours} hours between startTime and endTime.";
    invalid_combination() 400 -1128 "Combination of optional parameters invalid.";
    invalid_combination_without(name: &str) 400 -1128 "Combination of optional parameters invalid. Recommendation: '{name}' should also be sent.";
    invalid_parameter(name: &str) 400 -1130 "Data sent for parameter '{name}' is not valid.";
    invalid_response_type() 400 -1136 "Invalid newOrderRespType";

    // Orders refused by the engine, and queries.
    liquidity_below_lot_size() 400 -2010 "Order book liquidity is less than `LOT_SIZE` filter minimum quantity.";
    book_too_deep() 400 -2010 "Order needs more price levels of the book than one order may take.";
    no_orders_on_book() 400 -1112 "No orders on book for symbol.";
    engine_filter_failure(filter: &str) 400 -2010 "Filter failure: {filter}";
    insufficient_balance() 400 -2010 "Account has insufficient balance for requested action.";
    duplicate_order() 400 -2010 "Duplicate order sent.";
    would_trigger() 400 -2010 "Order would trigger immediately.";
    would_match() 400 -2010 "Order would immediately match and take.";
    wrong_price_relationship() 400 -2010 "The relationship of the prices for the orders is not correct.";
    placing_disabled() 400 -2010 "This action is disabled on this account.";
    symbol_not_permitted() 400 -2010 "This symbol is not permitted for this account.";
    cancelling_disabled() 400 -2011 "This action is disabled on this account.";
    unknown_order() 400 -2011 "Unknown order sent.";
    unknown_order_list() 400 -2011 "Unknown order list sent.";
    cancel_without_id() 400 -2011 "Cancel order is invalid. Check origClOrdId and orderId.";
    order_not_found() 400 -2013 "Order does not exist.";
    no_trading_window() 400 -2016 "No trading window could be found for the symbol. Try ticker/24hrs instead.";
    order_list_not_found() 400 -2018 "Order list does not exist.";
    client_order_id_mismatch() 400 -2039 "Client order ID is not correct for this order ID.";
}

impl ApiError {
    /// The same error with a `Retry-After` of that many seconds.
    #[must_use]
    pub fn with_retry_after(mut self, seconds: u64) -> Self {
        self.retry_after_s = Some(seconds);
        self
    }

    /// The body: `{"code":-1121,"msg":"Invalid symbol."}`.
    pub fn body(&self) -> String {
        let mut body = String::with_capacity(self.message.len() + 32);
        // Writing to a String cannot fail.
        let _ = write!(body, "{{\"code\":{},\"msg\":", self.code);
        push_json_string(&mut body, &self.message);
        body.push('}');
        body
    }

    /// The error as a reply, with its `Retry-After`.
    pub fn reply(&self) -> Reply {
        let reply = Reply::json(self.status, self.body());
        match self.retry_after_s {
            Some(seconds) => reply.header("Retry-After", seconds.to_string()),
            None => reply,
        }
    }
}

/// Appends `text` as a JSON string. Messages quote what clients sent, so anything may be in it.
fn push_json_string(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            control if control < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

impl From<&ParameterError> for ApiError {
    fn from(error: &ParameterError) -> Self {
        match error {
            ParameterError::IllegalCharacters { name, legal } => {
                Self::illegal_characters(name, legal)
            }
            ParameterError::TooMany { expected, received } => {
                Self::too_many_parameters(*expected, *received)
            }
            ParameterError::Duplicate { .. } => Self::duplicate_parameter(),
            ParameterError::Mandatory { name } => Self::mandatory_parameter(name),
            ParameterError::Neither { first, second } => Self::neither_parameter(first, second),
            ParameterError::Unread { read, sent } => Self::unread_parameters(*read, *sent),
            ParameterError::Empty { name } => Self::empty_parameter(name),
            ParameterError::NotRequired { name } => Self::parameter_not_required(name),
            ParameterError::Overflow { name } => Self::parameter_overflow(name),
            ParameterError::EmptyNewClientOrderId => Self::empty_new_client_order_id(),
            ParameterError::EmptyOriginalClientOrderId => Self::empty_original_client_order_id(),
            ParameterError::Combination => Self::invalid_combination(),
            ParameterError::CombinationWithout { name } => Self::invalid_combination_without(name),
            ParameterError::Invalid { name } => Self::invalid_parameter(name),
        }
    }
}

impl From<ParameterError> for ApiError {
    fn from(error: ParameterError) -> Self {
        Self::from(&error)
    }
}

impl From<HistoryError> for ApiError {
    fn from(_: HistoryError) -> Self {
        Self::unknown()
    }
}

impl From<SignatureError> for ApiError {
    fn from(error: SignatureError) -> Self {
        match error {
            SignatureError::Missing => Self::mandatory_parameter("signature"),
            SignatureError::Invalid => Self::invalid_signature(),
        }
    }
}

impl From<TimingError> for ApiError {
    fn from(error: TimingError) -> Self {
        match error {
            TimingError::RecvWindow { .. } => Self::recv_window_too_long(),
            TimingError::Ahead { .. } => Self::timestamp_ahead(),
            TimingError::Outside { .. } => Self::outside_recv_window(),
        }
    }
}

#[cfg(test)]
mod tests;
