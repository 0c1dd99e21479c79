//! What of rules version 2 the core can do: only that is generated.

/// Self-trade prevention.
pub(crate) const PREVENTION: bool = true;
/// PlaceOrderList and CancelOrderList.
pub(crate) const LISTS: bool = true;
pub(crate) const REPLACE: bool = true;
pub(crate) const CANCEL_REPLACE: bool = true;
pub(crate) const CANCEL_ALL: bool = true;
pub(crate) const MASS_CANCEL: bool = true;
pub(crate) const KILL: bool = true;
pub(crate) const EXPIRE_ALL: bool = true;
/// Logons that ask for the cancels.
pub(crate) const CANCEL_ON_DISCONNECT: bool = true;
pub(crate) const SET_ACCOUNT: bool = true;
pub(crate) const SET_FEES: bool = true;
pub(crate) const CHANGE_SYMBOL: bool = true;
