//! What the engine's rejects are for a client of the REST service: one table. Called by the handlers
//! of placements and cancels.
//!
//! A refusal that needs no account and no book is -1013, one that does is -2010 on a placement and
//! -2011 on a cancel (facts §1.2). A reject has changed nothing, so it is an answer, not a doubt.

use touchline_protocol::message::command::Limits;
use touchline_protocol::message::enums::{OrderType, RejectReason};
use touchline_protocol::message::event::Rejected;

use super::names;
use crate::api_error::ApiError;
use crate::link::{Decision, Terminal};

/// `detail` of a `CapacityReached` that is about the price levels that are looked at for one order.
const LEVELS_JUDGED: u32 = 8;

/// True if the command was rejected because its time was over.
pub(super) fn is_too_late(decision: &Decision) -> bool {
    matches!(&decision.terminal, Terminal::Rejected(rejected)
        if RejectReason::from_wire(rejected.reason) == Some(RejectReason::TooLate))
}

/// The answer to a rejected placement of an order of this type, under these order-count limits.
pub(super) fn placement(rejected: &Rejected, kind: OrderType, limits: &Limits) -> ApiError {
    match RejectReason::from_wire(rejected.reason) {
        Some(RejectReason::AccountCannotTrade | RejectReason::AccountKilled) => {
            ApiError::placing_disabled()
        }
        Some(RejectReason::OrderTypeNotSupported) => unsupported(kind),
        Some(RejectReason::TooManyOrders) => too_many_orders(rejected.detail, limits),
        // Nothing is full: the order asks for more of the book than one order may.
        Some(RejectReason::CapacityReached) if rejected.detail == LEVELS_JUDGED => {
            ApiError::book_too_deep()
        }
        reason => common(reason),
    }
}

/// The answer to a rejected cancel.
pub(super) fn cancel(rejected: &Rejected) -> ApiError {
    match RejectReason::from_wire(rejected.reason) {
        Some(RejectReason::AccountCannotTrade) => ApiError::cancelling_disabled(),
        reason => common(reason),
    }
}

fn common(reason: Option<RejectReason>) -> ApiError {
    use RejectReason as Why;
    let Some(reason) = reason else { return ApiError::unknown() };
    match reason {
        Why::UnknownKey | Why::KeyNotPermitted => ApiError::api_key_rejected(),
        Why::TooLate => ApiError::outside_recv_window(),
        Why::UnknownSymbol => ApiError::invalid_symbol(),
        Why::InvalidTimeInForce => ApiError::invalid_time_in_force(),
        Why::InvalidOrderType => ApiError::invalid_order_type(),
        Why::InvalidSide => ApiError::invalid_side(),
        Why::UnsupportedCombination => ApiError::unsupported_order_combination(),
        // Static: decided by the order and the symbol alone.
        Why::InvalidPrice => ApiError::invalid_price(),
        Why::InvalidQuantity | Why::Overflow => ApiError::invalid_quantity(),
        Why::NotionalTooSmall => ApiError::notional_is_zero(),
        Why::SymbolNotTrading => ApiError::market_closed(),
        Why::PriceFilter => ApiError::filter_failure("PRICE_FILTER"),
        Why::PercentPrice => ApiError::filter_failure("PERCENT_PRICE"),
        Why::LotSize => ApiError::filter_failure("LOT_SIZE"),
        Why::MinNotional => ApiError::filter_failure("MIN_NOTIONAL"),
        Why::IcebergParts => ApiError::filter_failure("ICEBERG_PARTS"),
        Why::MarketLotSize => ApiError::filter_failure("MARKET_LOT_SIZE"),
        // Decided by account or book.
        Why::MaxNumOrders => ApiError::engine_filter_failure("MAX_NUM_ORDERS"),
        Why::MaxNumAlgoOrders => ApiError::engine_filter_failure("MAX_NUM_ALGO_ORDERS"),
        Why::MaxNumIcebergOrders => ApiError::engine_filter_failure("MAX_NUM_ICEBERG_ORDERS"),
        Why::MaxPosition => ApiError::engine_filter_failure("MAX_POSITION"),
        Why::ExchangeMaxNumOrders => ApiError::engine_filter_failure("EXCHANGE_MAX_NUM_ORDERS"),
        Why::ExchangeMaxNumAlgoOrders => {
            ApiError::engine_filter_failure("EXCHANGE_MAX_NUM_ALGO_ORDERS")
        }
        Why::SymbolNotPermitted => ApiError::symbol_not_permitted(),
        Why::InsufficientBalance => ApiError::insufficient_balance(),
        Why::DuplicateClientOrderId => ApiError::duplicate_order(),
        Why::WouldTake => ApiError::would_match(),
        Why::WouldTrigger => ApiError::would_trigger(),
        Why::UnknownOrder => ApiError::unknown_order(),
        Why::ClientOrderIdMismatch | Why::OrderListIdMismatch => {
            ApiError::client_order_id_mismatch()
        }
        Why::UnknownOrderList => ApiError::unknown_order_list(),
        Why::OrderListPrices => ApiError::wrong_price_relationship(),
        // The engine cannot take more now.
        Why::CapacityReached | Why::LogUnavailable => ApiError::overloaded(),
        // An engine has panicked of one of the key's commands.
        Why::Quarantined => ApiError::unauthorized(),
        // The link's own session was replaced.
        Why::UnknownSession | Why::StaleEpoch | Why::DuplicateSequence => ApiError::disconnected(),
        // What the link never sends, or what only other commands are rejected for.
        Why::Malformed
        | Why::UnexpectedMessage
        | Why::RoleNotPermitted
        | Why::UnknownAccount
        | Why::AccountCannotTrade
        | Why::UnknownAsset
        | Why::OrderTypeNotSupported
        | Why::TooManyOrders
        | Why::NotReduced
        | Why::QuantityBelowExecuted
        | Why::AlreadyDefined
        | Why::InvalidDefinition
        | Why::LimitOutOfRange
        | Why::AccountKilled
        | Why::NothingChanged
        | Why::NotReplaceable
        | Why::SymbolInUse
        | Why::RateExceeded
        | Why::UnknownRecord
        | Why::UnknownOwner
        | Why::RecordVersion
        | Why::UniqueKeyTaken
        | Why::RecordInUse => ApiError::unknown(),
    }
}

fn unsupported(kind: OrderType) -> ApiError {
    match kind {
        OrderType::Market => ApiError::market_orders_unsupported(),
        OrderType::StopLoss => ApiError::stop_loss_orders_unsupported(),
        OrderType::StopLossLimit => ApiError::stop_loss_limit_orders_unsupported(),
        OrderType::TakeProfit => ApiError::take_profit_orders_unsupported(),
        OrderType::TakeProfitLimit => ApiError::take_profit_limit_orders_unsupported(),
        // The list of texts has none for these two: they are told as the others are.
        OrderType::Limit => ApiError::limit_orders_unsupported(),
        OrderType::LimitMaker => ApiError::limit_maker_orders_unsupported(),
    }
}

fn too_many_orders(interval: u32, limits: &Limits) -> ApiError {
    let (limit, seconds) = match interval {
        0 => (limits.orders_per_interval_0, limits.interval_0_seconds),
        _ => (limits.orders_per_interval_1, limits.interval_1_seconds),
    };
    let (interval, count) = names::interval(seconds);
    let interval = match count {
        1 => interval.name().to_owned(),
        _ => format!("{count} {}", interval.name()),
    };
    ApiError::too_many_orders(u64::from(limit), &interval)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits {
            orders_per_interval_0: 50,
            interval_0_seconds: 10,
            orders_per_interval_1: 160_000,
            interval_1_seconds: 86_400,
            ..Default::default()
        }
    }

    fn rejected(reason: u16, detail: u32) -> Rejected {
        Rejected { reason, detail, ..Default::default() }
    }

    #[test]
    fn every_reject_of_a_placement_has_its_code_and_text() {
        let disconnected = "Internal error; unable to process your request. Please try again.";
        let unknown = "An unknown error occured while processing the request.";
        let overloaded = "Server is currently overloaded with other requests. Please try again in a few minutes.";
        let key = "Invalid API-key, IP, or permissions for action.";
        let expected = [
            (500, -1000, unknown),
            (500, -1000, unknown),
            (500, -1001, disconnected),
            (500, -1001, disconnected),
            (500, -1001, disconnected),
            (500, -1000, unknown),
            (400, -1021, "Timestamp for this request is outside of the recvWindow."),
            (401, -2015, key),
            (401, -2015, key),
            (500, -1000, unknown),
            (400, -2010, "This action is disabled on this account."),
            (400, -2010, "This symbol is not permitted for this account."),
            (400, -1121, "Invalid symbol."),
            (500, -1000, unknown),
            (400, -1117, "Invalid side."),
            (400, -1116, "Invalid orderType."),
            (400, -1115, "Invalid timeInForce."),
            (400, -1013, "Market orders are not supported for this symbol."),
            (400, -1014, "Unsupported order combination."),
            (400, -1013, "Invalid price."),
            (400, -1013, "Invalid quantity."),
            (400, -1013, "Filter failure: PRICE_FILTER"),
            (400, -1013, "Filter failure: PERCENT_PRICE"),
            (400, -1013, "Filter failure: LOT_SIZE"),
            (400, -1013, "Filter failure: MIN_NOTIONAL"),
            (400, -1013, "Filter failure: ICEBERG_PARTS"),
            (400, -1013, "Filter failure: MARKET_LOT_SIZE"),
            (400, -2010, "Filter failure: MAX_NUM_ORDERS"),
            (400, -2010, "Filter failure: MAX_NUM_ALGO_ORDERS"),
            (400, -2010, "Filter failure: MAX_NUM_ICEBERG_ORDERS"),
            (400, -2010, "Filter failure: MAX_POSITION"),
            (400, -2010, "Filter failure: EXCHANGE_MAX_NUM_ORDERS"),
            (400, -2010, "Filter failure: EXCHANGE_MAX_NUM_ALGO_ORDERS"),
            (400, -1013, "Market is closed."),
            (429, -1015, "Too many new orders; current limit is 50 orders per 10 SECOND."),
            (400, -2010, "Account has insufficient balance for requested action."),
            (400, -2010, "Duplicate order sent."),
            (400, -2011, "Unknown order sent."),
            (400, -2039, "Client order ID is not correct for this order ID."),
            (400, -2010, "Order would immediately match and take."),
            (400, -2010, "Order would trigger immediately."),
            (500, -1000, unknown),
            (500, -1000, unknown),
            (400, -1013, "Invalid quantity."),
            (503, -1008, overloaded),
            (500, -1000, unknown),
            (500, -1000, unknown),
            (503, -1008, overloaded),
            (400, -1013, "Price * QTY is zero or less."),
            (500, -1000, unknown),
            (400, -2011, "Unknown order list sent."),
            (400, -2039, "Client order ID is not correct for this order ID."),
            (400, -2010, "The relationship of the prices for the orders is not correct."),
            (400, -2010, "This action is disabled on this account."),
            (500, -1000, unknown),
            (500, -1000, unknown),
            (500, -1000, unknown),
            (500, -1000, unknown),
            (500, -1000, unknown),
            (500, -1000, unknown),
            (500, -1000, unknown),
            (500, -1000, unknown),
            (500, -1000, unknown),
            (401, -1002, "You are not authorized to execute this request."),
        ];
        assert_eq!(RejectReason::ALL.len(), expected.len());
        for (reason, (status, code, message)) in RejectReason::ALL.iter().zip(expected) {
            let error = placement(&rejected(reason.to_wire(), 0), OrderType::Market, &limits());
            let got = (error.status, error.code, &*error.message);
            assert_eq!(got, (status, code, message), "{reason:?}");
            assert_eq!(error.retry_after_s, None, "{reason:?}");
        }
        let error = placement(&rejected(999, 0), OrderType::Market, &limits());
        assert_eq!((error.code, error.status), (-1000, 500));
    }

    #[test]
    fn a_book_that_is_too_deep_for_one_order_is_no_overload() {
        let reason = RejectReason::CapacityReached.to_wire();
        let error = placement(&rejected(reason, 8), OrderType::Market, &limits());
        let expected = "Order needs more price levels of the book than one order may take.";
        assert_eq!((error.status, error.code, &*error.message), (400, -2010, expected));
        let error = placement(&rejected(reason, 7), OrderType::Market, &limits());
        assert_eq!((error.status, error.code), (503, -1008));
    }

    #[test]
    fn cancels_of_a_disabled_account_have_a_code_of_their_own() {
        let error = cancel(&rejected(RejectReason::AccountCannotTrade.to_wire(), 0));
        let expected = (400, -2011, "This action is disabled on this account.");
        assert_eq!((error.status, error.code, &*error.message), expected);
        let error = cancel(&rejected(RejectReason::UnknownOrder.to_wire(), 0));
        assert_eq!((error.code, &*error.message), (-2011, "Unknown order sent."));
    }

    #[test]
    fn each_order_type_has_a_text_when_it_is_not_supported() {
        for (kind, name) in [
            (OrderType::Limit, "Limit"),
            (OrderType::Market, "Market"),
            (OrderType::StopLoss, "Stop loss"),
            (OrderType::StopLossLimit, "Stop loss limit"),
            (OrderType::TakeProfit, "Take profit"),
            (OrderType::TakeProfitLimit, "Take profit limit"),
            (OrderType::LimitMaker, "Limit maker"),
        ] {
            let reason = RejectReason::OrderTypeNotSupported.to_wire();
            let error = placement(&rejected(reason, 0), kind, &limits());
            let message = format!("{name} orders are not supported for this symbol.");
            assert_eq!((error.code, &*error.message), (-1013, &*message));
        }
    }

    #[test]
    fn the_second_interval_is_named_by_its_unit_alone() {
        let reason = RejectReason::TooManyOrders.to_wire();
        let error = placement(&rejected(reason, 1), OrderType::Limit, &limits());
        assert_eq!(error.message, "Too many new orders; current limit is 160000 orders per DAY.");
    }
}
