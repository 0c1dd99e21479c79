//! How the engine's decision on a command becomes the answer to the request that it came from. Called
//! by the spot service; each kind of command has a report of its own.

use super::Shared;
use super::intake::Intake;
use super::responses::ListedOrder;
use crate::api_error::ApiError;
use crate::http::Reply;
use crate::link::Decision;

/// Makes the answer to one request.
pub(super) trait Report: Send + Sync {
    /// The answer, or `None` if it needs something that the views do not hold yet: they do when they have
    /// reached the decision's position.
    ///
    /// # Errors
    /// The answer to a reject; -1006 when the decision is none on this command.
    fn reply(&self, decision: &Decision, shared: &Shared) -> Result<Option<Reply>, ApiError>;
}

/// The symbol with this name, or the error that there is none.
pub(super) fn symbol(
    intake: &Intake<'_>,
    name: &str,
) -> Result<crate::views::venue::SymbolFacts, ApiError> {
    intake.read(|state| state.venue.facts(name)).ok_or(ApiError::invalid_symbol())
}

/// The two orders of a list, the stop leg first (facts §5.5).
pub(super) fn listed<'a>(
    symbol: &'a str,
    [stop, limit]: [(u64, &'a str); 2],
) -> [ListedOrder<'a>; 2] {
    let order = |(order_id, client_order_id)| ListedOrder { symbol, order_id, client_order_id };
    [order(stop), order(limit)]
}
