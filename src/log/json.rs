//! Log content as JSON: one object per transaction or message, fields in the order of the wire.
//!
//! Prices, quantities, amounts and rates are decimal strings; identifiers are numbers; enumerations
//! have the names that this build knows for them, and their number otherwise.

use serde::ser::{Serialize, SerializeMap, Serializer};
use touchline_adapter::jobs::record::{USER, User};
use touchline_protocol::log::transaction::Transaction;
use touchline_protocol::message::decode::{Command, Event};
use touchline_protocol::message::enums::{
    CancelScope, Lane, ListOrderStatus, ListStatusType, OrderStatus, OrderType, Role,
    SelfTradePrevention, Side, SymbolStatus, TimeInForce,
};
use touchline_protocol::message::fields::{Fields, Value};
use touchline_protocol::units::Amount;

/// A whole transaction.
pub(super) struct AsJson<'transaction>(pub(super) &'transaction Transaction<'transaction>);

impl Serialize for AsJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let transaction = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("position", &transaction.position().0)?;
        map.serialize_entry("end", &transaction.end().0)?;
        map.serialize_entry("timeNs", &transaction.time_ns())?;
        map.serialize_entry("incarnation", &transaction.incarnation().0)?;
        match transaction.command() {
            Ok(command) => map.serialize_entry("command", &OfCommand(command))?,
            Err(error) => map.serialize_entry("unreadableCommand", &error.to_string())?,
        }
        let events: Vec<OfEvent<'_>> = transaction.events().map(OfEvent).collect();
        map.serialize_entry("events", &events)?;
        map.end()
    }
}

struct OfCommand<'message>(Command<'message>);

impl Serialize for OfCommand<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        message(serializer, self.0.name(), self.0.fields())
    }
}

type Read<'message> = Result<Event<'message>, touchline_protocol::message::decode::DecodeError>;

struct OfEvent<'message>(Read<'message>);

impl Serialize for OfEvent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Ok(event) => message(serializer, event.name(), event.fields()),
            Err(error) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("unreadable", &error.to_string())?;
                map.end()
            }
        }
    }
}

fn message<S: Serializer>(
    serializer: S,
    name: &'static str,
    fields: &dyn Fields,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("message", name)?;
    entries::<S>(&mut map, name, fields)?;
    map.end()
}

fn entries<S: Serializer>(
    map: &mut S::SerializeMap,
    name: &'static str,
    fields: &dyn Fields,
) -> Result<(), S::Error> {
    let mut outcome = Ok(());
    // What a record's content is stands in front of it.
    let mut is_user = false;
    fields.fields(&mut |field, value| {
        if outcome.is_ok() {
            let key = if field == "command" { "sender".to_owned() } else { camel_case(field) };
            is_user |=
                field == "kind" && matches!(value, Value::Number(kind) if kind == u64::from(USER));
            outcome = map.serialize_entry(&key, &OfValue { name, field, value, is_user });
        }
    });
    outcome
}

struct OfValue<'message> {
    name: &'static str,
    field: &'static str,
    value: Value<'message>,
    /// It is of a record of a user of the jobs service.
    is_user: bool,
}

impl Serialize for OfValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.value {
            Value::Number(number) => match enumeration(self.name, self.field, number) {
                Some(named) => serializer.serialize_str(&named),
                None => serializer.serialize_u64(number),
            },
            Value::Signed(number) => serializer.serialize_i64(number),
            Value::Decimal(units) => serializer.collect_str(&Amount(units)),
            Value::Text(text) => serializer.serialize_str(text),
            Value::Bytes(bytes) => serializer.serialize_str(&base16ct::lower::encode_string(bytes)),
            Value::Content(bytes) if self.is_user => user(serializer, bytes),
            Value::Content(bytes) => content(serializer, bytes),
            Value::Group(group) => {
                let mut map = serializer.serialize_map(None)?;
                entries::<S>(&mut map, self.name, group)?;
                map.end()
            }
        }
    }
}

/// A user without the hash of the password: what is printed gets into files and mails, and short passwords can be
/// guessed by their hashes. Of what is no user nothing is known, so none of it is shown.
fn user<S: Serializer>(serializer: S, bytes: &[u8]) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    if let Some(User { name, email, hash: _ }) = User::decode(bytes) {
        map.serialize_entry("name", name)?;
        map.serialize_entry("email", email)?;
    }
    map.serialize_entry("hash", "not shown")?;
    map.end()
}

/// Bytes as a text where they are one, else in hex: either way all of them.
fn content<S: Serializer>(serializer: S, bytes: &[u8]) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(1))?;
    match core::str::from_utf8(bytes) {
        Ok(text) => map.serialize_entry("utf8", text)?,
        Err(_) => map.serialize_entry("hex", &base16ct::lower::encode_string(bytes))?,
    }
    map.end()
}

/// The name of an enumeration's value.
fn enumeration(message: &str, field: &str, number: u64) -> Option<String> {
    fn named<T: core::fmt::Debug>(of: fn(u8) -> Option<T>, number: u64) -> Option<String> {
        of(u8::try_from(number).ok()?).map(|value| format!("{value:?}"))
    }
    match field {
        "side" | "aggressor_side" => named(Side::from_wire, number),
        "order_type" => named(OrderType::from_wire, number),
        "time_in_force" | "stop_limit_time_in_force" => named(TimeInForce::from_wire, number),
        "status" if message.contains("Symbol") => named(SymbolStatus::from_wire, number),
        "status" => named(OrderStatus::from_wire, number),
        "role" => named(Role::from_wire, number),
        "lane" => named(Lane::from_wire, number),
        "scope" => named(CancelScope::from_wire, number),
        "list_status_type" => named(ListStatusType::from_wire, number),
        "list_order_status" => named(ListOrderStatus::from_wire, number),
        "self_trade_prevention" | "mode" => named(SelfTradePrevention::from_wire, number),
        _ => None,
    }
}

/// `order_id` as `orderId`.
fn camel_case(field: &str) -> String {
    let mut name = String::with_capacity(field.len());
    let mut raise = false;
    for letter in field.chars() {
        if letter == '_' {
            raise = true;
        } else if raise {
            name.push(letter.to_ascii_uppercase());
            raise = false;
        } else {
            name.push(letter);
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use touchline_adapter::jobs::record::JOB;
    use touchline_protocol::message::command::PutRecord;
    use touchline_protocol::message::decode;
    use touchline_protocol::message::event::OrderAccepted;
    use touchline_protocol::message::with_bytes::RecordWrite;
    use touchline_protocol::units::{AccountId, OrderId, OrderListId};

    #[test]
    fn a_record_of_a_user_is_shown_without_the_hash_of_the_password() {
        let shown = |kind, content: &[u8]| {
            let put = PutRecord { kind, id: [1; 12], ..Default::default() };
            let write = RecordWrite::new(put, content).unwrap();
            let command = decode::command(write.as_bytes()).unwrap();
            serde_json::to_string(&OfCommand(command)).unwrap()
        };
        let user = User { name: "Ada", email: "a@b.co", hash: "$argon2id$rest" }.encode();
        let text = shown(USER, &user);
        let expected = r#""content":{"name":"Ada","email":"a@b.co","hash":"not shown"}"#;
        assert!(text.contains(expected) && !text.contains("argon2id"), "{text}");
        let unreadable = shown(USER, b"\x02$argon2id$rest");
        assert!(unreadable.contains(r#""content":{"hash":"not shown"}"#), "{unreadable}");
        let other = shown(JOB, b"$argon2id$rest");
        assert!(other.contains(r#""content":{"utf8":"$argon2id$rest"}"#), "{other}");
    }

    #[test]
    fn an_event_has_its_fields_in_order_without_reserved_ones() {
        let event = OrderAccepted {
            order_id: OrderId(7),
            account: AccountId(2),
            locked: 150_000_000,
            order_list_id: OrderListId::NONE,
            side: 1,
            order_type: 9,
            ..Default::default()
        };
        let text = serde_json::to_string(&OfEvent(Ok(Event::OrderAccepted(&event)))).unwrap();
        assert_eq!(
            text,
            "{\"message\":\"OrderAccepted\",\"orderId\":7,\"account\":2,\"symbol\":0,\
             \"locked\":\"1.50000000\",\"price\":\"0.00000000\",\"quantity\":\"0.00000000\",\
             \"orderListId\":-1,\"side\":\"Buy\",\"orderType\":9,\"timeInForce\":0,\"session\":0}"
        );
    }
}
