//! What values a parameter may have, by its name: the same patterns and names that the service reads it
//! by.

use serde_json::json;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

use crate::history::intervals::INTERVALS;
use crate::http::Method;
use crate::parameters::pattern;
use crate::route::{DEPTH_LIMITS, Weight};
use crate::spot::paging::PAGE;
use crate::spot::routes::Operation;
use crate::spot::{forms, names};
use crate::timing;

/// The schema of one parameter of an operation.
pub(super) fn schema(operation: &Operation, name: &str) -> Schema {
    match name {
        "side" => one_of(&names::SIDES),
        "type" if operation.method == Method::Get => one_of(&names::STATISTICS_TYPES),
        "type" => one_of(&names::ORDER_TYPES),
        "timeInForce" | "stopLimitTimeInForce" => one_of(&names::TIMES_IN_FORCE),
        "newOrderRespType" => one_of(&names::RESPONSE_TYPES),
        "interval" => one_of(&INTERVALS),
        "limit" if operation.weight == Weight::ByDepthLimit => depth_limit(),
        "limit" => page(),
        "recvWindow" => recv_window(),
        "listenKey" => ObjectBuilder::new().schema_type(Type::String).build().into(),
        _ => match forms::of(operation.weight, name) {
            Some((pattern::CLIENT_ID, _)) => text(pattern::CLIENT_ID_STRICT),
            Some((legal, _)) if legal != pattern::LONG => text(legal),
            _ => super::number(),
        },
    }
}

fn text(pattern: &str) -> Schema {
    ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern)).build().into()
}

fn one_of<T>(names: &[(&'static str, T)]) -> Schema {
    let names = names.iter().map(|(name, _)| *name);
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names)).build().into()
}

fn depth_limit() -> Schema {
    let limits = DEPTH_LIMITS.iter().map(|(_, limit)| *limit);
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .enum_values(Some(limits))
        .default(Some(json!(100)))
        .build()
        .into()
}

/// Larger pages than the largest are cut, not refused.
fn page() -> Schema {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(1))
        .default(Some(json!(PAGE.0)))
        .description(Some(format!("At most {} are given.", PAGE.1)))
        .build()
        .into()
}

fn recv_window() -> Schema {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(0))
        .maximum(Some(timing::MAX_RECV_WINDOW_MS as f64))
        .default(Some(json!(timing::DEFAULT_RECV_WINDOW_MS)))
        .build()
        .into()
}
