//! The contract's spellings of enumerations and permissions (spot contract §2 Enumerations), both
//! ways. Used by the handlers and the response structs.

use touchline_protocol::message::command::{
    PERMISSION_LEVERAGED, PERMISSION_MARGIN, PERMISSION_SPOT, PERMISSION_TRADE_GROUP_2,
};
use touchline_protocol::message::enums::{
    ListOrderStatus, OrderStatus, OrderType, Side, SymbolStatus, TimeInForce,
};

use crate::limits::counts::Interval;

/// Form of the answer to a placement (spot contract §2 New-order response).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResponseType {
    /// Acknowledgement alone.
    Ack,
    /// With where the order stands.
    Result,
    /// With its fills as well.
    Full,
}

/// The only contingency type of order lists.
pub(super) const CONTINGENCY_TYPE: &str = "OCO";

/// listStatusType and listOrderStatus of a list whose orders are open (spot contract §3).
pub(super) const LIST_PLACED: (&str, &str) = ("EXEC_STARTED", "EXECUTING");

/// listStatusType and listOrderStatus of a list that has come to its end.
pub(super) const LIST_DONE: (&str, &str) = ("ALL_DONE", "ALL_DONE");

/// listStatusType and listOrderStatus of a list that stands so.
pub(super) const fn list_status(value: ListOrderStatus) -> (&'static str, &'static str) {
    match value {
        ListOrderStatus::Executing => LIST_PLACED,
        ListOrderStatus::AllDone => LIST_DONE,
        ListOrderStatus::Reject => ("RESPONSE", "REJECT"),
    }
}

pub(super) const SIDES: [(&str, Side); 2] = [("BUY", Side::Buy), ("SELL", Side::Sell)];

pub(super) const ORDER_TYPES: [(&str, OrderType); 7] = OrderType::NAMES;

pub(super) const TIMES_IN_FORCE: [(&str, TimeInForce); 3] =
    [("GTC", TimeInForce::Gtc), ("IOC", TimeInForce::Ioc), ("FOK", TimeInForce::Fok)];

pub(super) const RESPONSE_TYPES: [(&str, ResponseType); 3] =
    [("ACK", ResponseType::Ack), ("RESULT", ResponseType::Result), ("FULL", ResponseType::Full)];

/// `type` of the statistics of 24 hours: which of them are shown, always all.
pub(super) const STATISTICS_TYPES: [(&str, ()); 1] = [("FULL", ())];

const PERMISSIONS: [(&str, u8); 4] = [
    ("SPOT", PERMISSION_SPOT),
    ("MARGIN", PERMISSION_MARGIN),
    ("LEVERAGED", PERMISSION_LEVERAGED),
    ("TRD_GRP_002", PERMISSION_TRADE_GROUP_2),
];

/// Clients that send lower case are understood (facts §2.3).
fn read<T: Copy>(names: &[(&str, T)], text: &str) -> Option<T> {
    names.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, value)| *value)
}

fn write<T: PartialEq>(names: &[(&'static str, T)], value: &T) -> &'static str {
    names.iter().find(|(_, other)| other == value).map_or("", |(name, _)| name)
}

/// Reads a side.
pub(super) fn read_side(text: &str) -> Option<Side> {
    read(&SIDES, text)
}

/// Reads an order type.
pub(super) fn read_order_type(text: &str) -> Option<OrderType> {
    read(&ORDER_TYPES, text)
}

/// Reads a time in force.
pub(super) fn read_time_in_force(text: &str) -> Option<TimeInForce> {
    read(&TIMES_IN_FORCE, text)
}

/// Reads a response type.
pub(super) fn read_response_type(text: &str) -> Option<ResponseType> {
    read(&RESPONSE_TYPES, text)
}

/// A side's name.
pub(super) fn side(value: Side) -> &'static str {
    write(&SIDES, &value)
}

/// An order type's name.
pub(super) fn order_type(value: OrderType) -> &'static str {
    write(&ORDER_TYPES, &value)
}

/// A time in force's name.
pub(super) fn time_in_force(value: TimeInForce) -> &'static str {
    write(&TIMES_IN_FORCE, &value)
}

/// An order status's name.
pub(super) fn order_status(value: OrderStatus) -> &'static str {
    match value {
        OrderStatus::New => "NEW",
        OrderStatus::PartiallyFilled => "PARTIALLY_FILLED",
        OrderStatus::Filled => "FILLED",
        OrderStatus::Canceled => "CANCELED",
        OrderStatus::Expired => "EXPIRED",
    }
}

/// A symbol status's name.
pub(super) fn symbol_status(value: SymbolStatus) -> &'static str {
    match value {
        SymbolStatus::PreTrading => "PRE_TRADING",
        SymbolStatus::Trading => "TRADING",
        SymbolStatus::PostTrading => "POST_TRADING",
        SymbolStatus::EndOfDay => "END_OF_DAY",
        SymbolStatus::Halt => "HALT",
        SymbolStatus::AuctionMatch => "AUCTION_MATCH",
        SymbolStatus::Break => "BREAK",
    }
}

/// The names of the permission bits that are set.
pub(super) fn permissions(bits: u8) -> Vec<&'static str> {
    PERMISSIONS.iter().filter(|(_, bit)| bits & bit != 0).map(|(name, _)| *name).collect()
}

/// A number of seconds as the largest interval that it is a multiple of, and the multiple. Hours are
/// no interval of a rate limit (spot contract §2 Enumerations).
pub(super) fn interval(seconds: u32) -> (Interval, u32) {
    let second = u64::from(seconds) * Interval::Second.ms();
    [Interval::Day, Interval::Minute]
        .into_iter()
        .find(|interval| second.is_multiple_of(interval.ms()))
        .map_or((Interval::Second, seconds), |interval| (interval, (second / interval.ms()) as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_a_name_that_reads_back() {
        for &value in Side::ALL {
            assert_eq!(read_side(side(value)), Some(value));
        }
        for &value in OrderType::ALL {
            assert_eq!(read_order_type(order_type(value)), Some(value));
        }
        for &value in TimeInForce::ALL {
            assert_eq!(read_time_in_force(time_in_force(value)), Some(value));
        }
        assert_eq!(read_side("sell"), Some(Side::Sell));
        assert_eq!(read_order_type("Limit_Maker"), Some(OrderType::LimitMaker));
        assert_eq!(read_response_type("full"), Some(ResponseType::Full));
        assert_eq!(read_side("SHORT"), None);
        assert_eq!(read_side(""), None);
    }

    #[test]
    fn intervals_are_named_by_their_largest_unit() {
        assert_eq!(interval(10), (Interval::Second, 10));
        assert_eq!(interval(60), (Interval::Minute, 1));
        assert_eq!(interval(90), (Interval::Second, 90));
        assert_eq!(interval(3600), (Interval::Minute, 60));
        assert_eq!(interval(86_400), (Interval::Day, 1));
    }

    #[test]
    fn permissions_are_listed_by_bit() {
        assert_eq!(permissions(0), [""; 0]);
        assert_eq!(permissions(0b1001), ["SPOT", "TRD_GRP_002"]);
        assert_eq!(permissions(0xff).len(), 4);
    }
}
