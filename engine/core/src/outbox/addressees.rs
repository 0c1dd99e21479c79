//! Whom a transaction's events concern besides the session that caused it: those who placed the orders
//! that were met or ended, and whoever takes all events of their accounts. Noted by the
//! [outbox](super::Outbox) where such an event is made, read by the duty thread. Neither state nor log:
//! the same commands give the same notes.

use super::OUTBOX_BYTES_MAX;
use alloc::vec::Vec;
use touchline_protocol::message::event::{
    OrderAccepted, OrderCanceled, OrderListChanged, OrderReduced, OrderRefilled, OrderReplaced,
    OrderResult, OrderTriggered, SelfTradePrevented, Trade,
};
use touchline_protocol::units::{AccountId, SessionId};

/// Most notes of one transaction: an event concerns one order, or two.
const NOTES_MAX: usize = {
    let of_two = [size_of::<Trade>() / 2, size_of::<SelfTradePrevented>() / 2];
    let of_one = [
        size_of::<OrderAccepted>(),
        size_of::<OrderCanceled>(),
        size_of::<OrderListChanged>(),
        size_of::<OrderReduced>(),
        size_of::<OrderRefilled>(),
        size_of::<OrderReplaced>(),
        size_of::<OrderResult>(),
        size_of::<OrderTriggered>(),
    ];
    let mut least = if of_two[0] < of_two[1] { of_two[0] } else { of_two[1] };
    let mut at = 0;
    while at < of_one.len() {
        if of_one[at] < least {
            least = of_one[at];
        }
        at += 1;
    }
    OUTBOX_BYTES_MAX / least
};

/// Who is to be told of one event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Addressee {
    /// Where the event begins among the transaction's events, bytes.
    pub offset: u32,
    /// The session that placed the order; [`SessionId::ENGINE`] for none.
    pub session: SessionId,
    /// The order's account, if a session takes all events of it.
    pub account: Option<AccountId>,
}

/// The notes of one transaction, in the order of its events. Takes memory once, for the largest
/// transaction.
#[derive(Debug)]
pub struct Addressees {
    list: Vec<Addressee>,
}

impl Addressees {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self { list: Vec::with_capacity(NOTES_MAX) }
    }

    /// The notes of the transaction, in the order of its events. One event may be noted twice for the
    /// same session: a trade between two orders of it.
    #[must_use]
    pub fn notes(&self) -> &[Addressee] {
        &self.list
    }

    pub(super) fn clear(&mut self) {
        self.list.clear();
    }

    pub(super) fn note(&mut self, offset: usize, session: SessionId, account: Option<AccountId>) {
        debug_assert!(self.list.len() < NOTES_MAX, "{} notes", self.list.len());
        self.list.push(Addressee { offset: offset as u32, session, account });
    }
}

impl Default for Addressees {
    fn default() -> Self {
        Self::new()
    }
}
