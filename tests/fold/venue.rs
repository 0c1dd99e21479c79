//! A core and the adapter's state side by side: a command that the core accepts is folded from the
//! bytes of its transaction, and the two are compared. Called by [`super::commands`].

use super::compare::compare;
use super::feed::FeedCheck;
use super::past::Past;
use std::collections::{BTreeMap, BTreeSet};
use touchline_adapter::views::state::State;
use touchline_core::{Applied, Context, Core, OUTBOX_BYTES_MAX, Outbox, Reject};
use touchline_protocol::message::Message;
use touchline_protocol::message::command::CommandHeader;
use touchline_protocol::message::decode::{self, Event};
use touchline_protocol::message::enums::RejectReason;
use touchline_protocol::units::{KeyId, OrderId, Position, Sequence, SessionId, SymbolId};

/// A time to begin with.
const START_NS: u64 = 1_700_000_000_000_000_000;

/// How often a command was accepted, and how often not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Outcomes {
    pub(crate) accepted: u64,
    pub(crate) rejected: u64,
}

/// The core and the views of its log.
pub(crate) struct Venue {
    pub(crate) core: Core,
    pub(crate) state: State,
    pub(crate) past: Past,
    pub(crate) time_ns: u64,
    position: u64,
    /// Next sequence by session.
    sequences: BTreeMap<u32, u64>,
    buffer: Vec<u64>,
    /// Aggressors that are to be continued: open, but not in the core's books.
    continuing: BTreeSet<(SymbolId, OrderId)>,
    /// A reader of the public feed.
    pub(crate) feed: FeedCheck,
    /// Price of the last trade by symbol.
    pub(crate) last_price: BTreeMap<SymbolId, i64>,
    pub(crate) commands: BTreeMap<&'static str, Outcomes>,
    pub(crate) events: BTreeMap<&'static str, u64>,
    pub(crate) reasons: BTreeMap<(&'static str, RejectReason), u64>,
}

impl Venue {
    pub(crate) fn new() -> Self {
        let (past, state) = Past::new();
        Self {
            core: Core::new(),
            state,
            past,
            time_ns: START_NS,
            position: 4096,
            sequences: BTreeMap::new(),
            buffer: vec![0; OUTBOX_BYTES_MAX.div_ceil(8)],
            continuing: BTreeSet::new(),
            feed: FeedCheck::new(),
            last_price: BTreeMap::new(),
            commands: BTreeMap::new(),
            events: BTreeMap::new(),
            reasons: BTreeMap::new(),
        }
    }

    /// A header of a session with its next sequence and present epoch.
    pub(crate) fn header(&mut self, session: SessionId, key_id: KeyId) -> CommandHeader {
        let sequence = self.sequences.entry(session.0).or_default();
        *sequence += 1;
        CommandHeader {
            sequence: Sequence(*sequence),
            key_id,
            session,
            epoch: self.core.session(session).expect("session").epoch,
            ..Default::default()
        }
    }

    /// Applies a command that must be accepted.
    pub(crate) fn must<M: Message>(&mut self, message: &M) {
        self.apply(message).unwrap_or_else(|reject| panic!("{} rejected: {reject:?}", M::NAME));
    }

    /// Applies a command; if it is accepted, folds and compares.
    pub(crate) fn apply<M: Message>(&mut self, message: &M) -> Result<(), Reject> {
        self.apply_bytes(bytemuck::bytes_of(message))
    }

    /// As [`apply`](Self::apply), for the bytes of a command.
    pub(crate) fn apply_bytes(&mut self, bytes: &[u8]) -> Result<(), Reject> {
        let bytes: Vec<u64> = bytemuck::allocation::pod_collect_to_vec(bytes);
        let command = decode::command(bytemuck::cast_slice(&bytes)).expect("a command");
        let context = Context { position: Position(self.position), time_ns: self.time_ns };
        let mut outbox = Outbox::new(bytemuck::cast_slice_mut(&mut self.buffer));
        let applied = self.core.apply(&context, &command, &mut outbox);
        let outcomes = self.commands.entry(command.name()).or_default();
        match applied {
            Ok(Applied::Valid) => return Ok(()),
            Err(reject) => {
                outcomes.rejected += 1;
                *self.reasons.entry((command.name(), reject.reason)).or_default() += 1;
                return Err(reject);
            }
            Ok(Applied::Committed) => outcomes.accepted += 1,
        }
        self.position += (bytes.len() * 8 + outbox.len() + 64) as u64;
        for event in outbox.events().map(|bytes| decode::event(bytes).expect("a sound event")) {
            *self.events.entry(event.name()).or_default() += 1;
            match event {
                Event::OrderContinues(continues) if continues.order_id != OrderId(0) => {
                    self.continuing.insert((continues.symbol, continues.order_id));
                }
                Event::Trade(trade) => {
                    self.last_price.insert(trade.symbol, trade.price);
                }
                Event::OrderResult(result) => {
                    self.continuing.remove(&(result.symbol, result.order_id));
                }
                _ => {}
            }
        }
        let told = || {
            outbox
                .events()
                .map(decode::event)
                .fold(format!("{command:?}"), |told, event| format!("{told}\n{event:?}"))
        };
        let events: Vec<_> = outbox.events().collect();
        self.past.note(self.position, self.time_ns, bytemuck::cast_slice(&bytes), &events);
        let folded = self.past.fold(&mut self.state);
        folded.unwrap_or_else(|error| panic!("{error} in {}", told()));
        for event in outbox.events().map(|bytes| decode::event(bytes).expect("a sound event")) {
            compare_order_counts(&self.state, event, self.time_ns, command.name());
        }
        compare(&self.core, &self.state, &self.continuing)
            .unwrap_or_else(|difference| panic!("{difference} behind {}", told()));
        self.past.go_on(&mut self.state);
        let (position, events) = (Position(self.position), outbox.events().map(decode::event));
        self.feed
            .check(&self.core, (position, self.time_ns), command, events)
            .unwrap_or_else(|difference| panic!("{difference} behind {}", told()));
        Ok(())
    }
}

/// What the core says of an account's order counts when it accepts orders, the views say too.
fn compare_order_counts(state: &State, event: Event<'_>, time_ns: u64, command: &str) {
    let (account, counts) = match event {
        Event::OrderResult(result) if command == "NewOrder" => {
            (result.account, [result.order_count_0, result.order_count_1])
        }
        Event::OrderListChanged(changed) if changed.order_count_1 != 0 => {
            (changed.account, [changed.order_count_0, changed.order_count_1])
        }
        _ => return,
    };
    let account = state.accounts.get(account).expect("an account with orders");
    assert_eq!(account.order_counts(&state.venue.limits, time_ns), counts, "order counts");
}
