//! Where a transaction's events go: bytes of the caller's, which are the log's mapped tail on the duty
//! thread. Filled by `apply`, read by whoever called it. On the duty thread it also notes whom an event
//! concerns who did not cause it ([`Addressees`]).

use touchline_protocol::message::event::{
    Done, MassCanceled, OrderAccepted, OrderCanceled, OrderContinues, OrderListChanged,
    OrderRefilled, OrderReplaced, OrderResult, OrderTriggered, SelfTradePrevented, SessionEnded,
    SessionStarted, Trade,
};
use touchline_protocol::message::{Message, MessageHeader};

use crate::apply::{LIST_STEPS, ORDER_STEPS, PREVENTION_STEPS, RUN_STEPS};
use crate::limits::{SESSIONS_PER_KEY_MAX, STEPS_MAX};
use touchline_protocol::units::{AccountId, SessionId};
use touchline_protocol::words;

mod addressees;

pub use addressees::{Addressee, Addressees};

/// Room that an outbox must have: the events of the largest transaction, bytes.
pub const OUTBOX_BYTES_MAX: usize = {
    let step = size_of::<Trade>();
    let list = size_of::<OrderCanceled>() + size_of::<OrderListChanged>();
    let prevention = size_of::<SelfTradePrevented>() + size_of::<OrderCanceled>();
    let run = size_of::<OrderTriggered>() + size_of::<OrderResult>();
    assert!(list <= LIST_STEPS as usize * step);
    assert!(prevention <= PREVENTION_STEPS as usize * step);
    assert!(run <= RUN_STEPS as usize * step);
    // The last thing that a transaction does may take more than the one step that is left.
    let last_item = size_of::<OrderRefilled>() + prevention + list + run;
    // In front of a placement: what it replaces, with the list of that.
    let replaced = 2 * size_of::<OrderCanceled>() + size_of::<OrderListChanged>();
    assert!(size_of::<OrderReplaced>() <= replaced);
    let placement = replaced
        + size_of::<OrderAccepted>()
        + STEPS_MAX as usize * step
        + last_item
        + size_of::<OrderResult>();
    // A sweep's part: each order ended is two steps, both orders of a list are five, and the last one
    // may overdraw them. The longest frame around it is a revocation's.
    let single = size_of::<OrderCanceled>();
    let (single_steps, list_steps) = (ORDER_STEPS as usize, (ORDER_STEPS + LIST_STEPS) as usize);
    let singles = STEPS_MAX as usize / single_steps * single;
    let lists = STEPS_MAX as usize / list_steps * (single + list);
    let sweep = single + list + if singles > lists { singles } else { lists };
    let revocation = SESSIONS_PER_KEY_MAX as usize * size_of::<SessionEnded>()
        + sweep
        + size_of::<MassCanceled>()
        + size_of::<Done>();
    assert!(size_of::<OrderContinues>() <= size_of::<OrderResult>());
    assert!(size_of::<OrderContinues>() <= size_of::<MassCanceled>() + size_of::<Done>());
    assert!(size_of::<SessionStarted>() <= size_of::<Done>());
    if placement > revocation { placement } else { revocation }
};

const _: () = assert!(OUTBOX_BYTES_MAX <= 60 * 1024, "a transaction's share of the log's tail");
const _: () = assert!(OUTBOX_BYTES_MAX.is_multiple_of(WORD), "a buffer has no less in whole words");

/// Bytes of a word, of which every message is so many long.
const WORD: usize = size_of::<u64>();

/// The events of one transaction, one behind the other, each a multiple of eight bytes long. One that is used for
/// several is cleared before each.
#[derive(Debug)]
pub struct Outbox<'buffer> {
    /// Room for events, which are all so many whole words long.
    words: &'buffer mut [u64],
    /// Words of events.
    length: usize,
    count: u16,
    addressees: Option<&'buffer mut Addressees>,
    /// Who gets its side of all events as replies.
    replier: SessionId,
}

impl<'buffer> Outbox<'buffer> {
    /// An empty outbox over `buffer`.
    ///
    /// # Panics
    /// When the buffer does not start at a multiple of eight or has less than [`OUTBOX_BYTES_MAX`]
    /// bytes: the engine reserves that much of the log before every command.
    #[must_use]
    pub fn new(buffer: &'buffer mut [u8]) -> Self {
        assert!(buffer.as_ptr().addr().is_multiple_of(8), "an outbox starts at a multiple of 8");
        assert!(buffer.len() >= OUTBOX_BYTES_MAX, "an outbox of {} bytes", buffer.len());
        let whole = buffer.len() / WORD * WORD;
        let words = bytemuck::cast_slice_mut(&mut buffer[..whole]);
        Self { words, length: 0, count: 0, addressees: None, replier: SessionId::ENGINE }
    }

    /// As [`new`](Self::new); notes in `addressees`, which is emptied, whom each event concerns besides
    /// the session whose command is carried out.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    #[must_use]
    pub fn with_addressees(buffer: &'buffer mut [u8], addressees: &'buffer mut Addressees) -> Self {
        addressees.clear();
        Self { addressees: Some(addressees), ..Self::new(buffer) }
    }

    /// Events concern others than this session, which gets its side of them as replies.
    pub(crate) const fn set_replier(&mut self, session: SessionId) {
        self.replier = session;
    }

    /// Notes that the event that is pushed next concerns an order which `session` placed for
    /// `account`; `is_watched` says whether a session takes all events of that account.
    #[inline(always)]
    pub(crate) fn address(&mut self, session: SessionId, account: AccountId, is_watched: bool) {
        let is_of_another = session != self.replier && session != SessionId::ENGINE;
        if is_of_another || is_watched {
            self.note(session, is_watched.then_some(account));
        }
    }

    #[inline(never)]
    fn note(&mut self, session: SessionId, account: Option<AccountId>) {
        if let Some(addressees) = &mut self.addressees {
            addressees.note(self.length * WORD, session, account);
        }
    }

    /// True when the events of any one command fit behind what there is.
    #[inline(always)]
    pub(crate) const fn has_room(&self) -> bool {
        self.words.len() - self.length >= OUTBOX_BYTES_MAX / WORD
    }

    /// Adds an event.
    ///
    /// # Panics
    /// When it does not fit, which [`OUTBOX_BYTES_MAX`] excludes for the events of one command.
    #[inline(always)]
    pub fn push<M: Message>(&mut self, event: &M) {
        const { assert!(size_of::<M>().is_multiple_of(WORD)) };
        let (event, _) = bytemuck::bytes_of(event).as_chunks();
        let end = self.length + event.len();
        words::copy(event, &mut self.words[self.length..end]);
        self.length = end;
        self.count += 1;
    }

    /// Bytes of events.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length * WORD
    }

    /// Number of events.
    #[must_use]
    pub const fn count(&self) -> u16 {
        self.count
    }

    /// True without any event.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// All events' bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.words[..self.length])
    }

    /// Forgets all events.
    pub fn clear(&mut self) {
        self.length = 0;
        self.count = 0;
        if let Some(addressees) = &mut self.addressees {
            addressees.clear();
        }
    }

    /// The events in order, each with its header; the last one is the transaction's terminal event.
    pub fn events(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.bytes();
        core::iter::from_fn(move || {
            let head = rest.first_chunk::<{ MessageHeader::BYTES }>()?;
            let header: MessageHeader = bytemuck::pod_read_unaligned(head);
            let (event, behind) =
                rest.split_at(MessageHeader::BYTES + usize::from(header.block_length));
            rest = behind;
            Some(event)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use touchline_protocol::message::event::OrderValid;

    #[test]
    fn events_come_out_as_they_went_in() {
        let mut words = vec![0u64; OUTBOX_BYTES_MAX / 8 + 1];
        let mut outbox = Outbox::new(bytemuck::cast_slice_mut(&mut words));
        assert!(outbox.is_empty() && outbox.events().next().is_none());
        let trade = Trade { price: 7, ..Default::default() };
        outbox.push(&trade);
        outbox.push(&OrderValid::default());
        let events: Vec<&[u8]> = outbox.events().collect();
        assert_eq!(
            events,
            [bytemuck::bytes_of(&trade), bytemuck::bytes_of(&OrderValid::default())]
        );
        assert_eq!(outbox.len(), 112 + 16);
        assert_eq!(outbox.count(), 2);
        outbox.clear();
        assert!(outbox.is_empty());
    }

    #[test]
    #[should_panic(expected = "an outbox of")]
    fn a_small_buffer_is_refused() {
        let mut words = vec![0u64; OUTBOX_BYTES_MAX / 8 - 1];
        let _outbox = Outbox::new(bytemuck::cast_slice_mut(&mut words));
    }
}
