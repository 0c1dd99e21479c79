//! What of rules version 2 the core can do: only that is generated.

/// Self-trade prevention.
pub(crate) const PREVENTION: bool = true;
/// PlaceOrderList and CancelOrderList.
pub(crate) const LISTS: bool = true;
pub(crate) const REPLACE: bool = false;
pub(crate) const CANCEL_REPLACE: bool = false;
pub(crate) const CANCEL_ALL: bool = false;
pub(crate) const MASS_CANCEL: bool = false;
pub(crate) const KILL: bool = false;
pub(crate) const EXPIRE_ALL: bool = false;
/// Logons that ask for the cancels.
pub(crate) const CANCEL_ON_DISCONNECT: bool = false;
pub(crate) const SET_ACCOUNT: bool = false;
pub(crate) const SET_FEES: bool = false;
pub(crate) const CHANGE_SYMBOL: bool = false;
