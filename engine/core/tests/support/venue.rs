//! A core with a buffer, a clock and a journal: what every test here needs to send commands. Included
//! by the tests with `#[path]`.
#![allow(dead_code, reason = "each test uses its part")]

use std::collections::BTreeMap;
use touchline_core::{Applied, Context, Core, OUTBOX_BYTES_MAX, Outbox, Reject};
use touchline_protocol::message::command::*;
use touchline_protocol::message::decode::{self, Command, Event};
use touchline_protocol::message::enums::{Lane, Role, SymbolStatus};
use touchline_protocol::message::event::*;
use touchline_protocol::message::{Message, MessageHeader};
use touchline_protocol::text::{AssetName, ClientOrderId, Name, SymbolName};
use touchline_protocol::units::*;

/// One whole unit.
pub(crate) const WHOLE: i64 = UNITS_PER_WHOLE;
/// A time to begin with.
pub(crate) const START_NS: u64 = 1_700_000_000_000_000_000;

/// Far more transactions of pending work than any command here needs: a core that goes on for ever fails the
/// test before the journal takes all memory.
const PENDING_MAX: u32 = 1_000_000;

/// An event, taken out of the outbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owned {
    Accepted(OrderAccepted),
    Trade(Trade),
    Result(OrderResult),
    Canceled(OrderCanceled),
    Reduced(OrderReduced),
    Continues(OrderContinues),
    Valid(OrderValid),
    Triggered(OrderTriggered),
    ListChanged(OrderListChanged),
    Refilled(OrderRefilled),
    MassCanceled(MassCanceled),
    Prevented(SelfTradePrevented),
    Replaced(OrderReplaced),
    Done(Done),
    Started(SessionStarted),
    Ended(SessionEnded),
    RecordPut(RecordPut),
    RecordDeleted(RecordDeleted),
}

impl Owned {
    pub(crate) fn read(bytes: &[u8]) -> Self {
        match decode::event(bytes).expect("the core writes sound events") {
            Event::OrderAccepted(event) => Self::Accepted(*event),
            Event::Trade(event) => Self::Trade(*event),
            Event::OrderResult(event) => Self::Result(*event),
            Event::OrderCanceled(event) => Self::Canceled(*event),
            Event::OrderReduced(event) => Self::Reduced(*event),
            Event::OrderContinues(event) => Self::Continues(*event),
            Event::OrderValid(event) => Self::Valid(*event),
            Event::OrderTriggered(event) => Self::Triggered(*event),
            Event::OrderListChanged(event) => Self::ListChanged(*event),
            Event::OrderRefilled(event) => Self::Refilled(*event),
            Event::MassCanceled(event) => Self::MassCanceled(*event),
            Event::SelfTradePrevented(event) => Self::Prevented(*event),
            Event::OrderReplaced(event) => Self::Replaced(*event),
            Event::Done(event) => Self::Done(*event),
            Event::SessionStarted(event) => Self::Started(*event),
            Event::SessionEnded(event) => Self::Ended(*event),
            Event::RecordPut(event) => Self::RecordPut(*event),
            Event::RecordDeleted(event) => Self::RecordDeleted(*event),
            Event::Rejected(_)
            | Event::Gap(_)
            | Event::OrderOpened(_)
            | Event::OrderClosed(_)
            | Event::OrderFilled(_) => {
                panic!("never an event of the core")
            }
        }
    }
}

/// An accepted command, as the log would keep it.
pub(crate) struct Entry {
    pub(crate) context: Context,
    /// Command bytes, aligned.
    pub(crate) command: Vec<u64>,
    pub(crate) events: Vec<u8>,
}

/// A command that changed nothing: it was refused, or only to be validated.
pub(crate) struct Refused {
    /// Commands that were accepted before it.
    pub(crate) behind: usize,
    pub(crate) context: Context,
    /// Command bytes, aligned.
    pub(crate) command: Vec<u64>,
    pub(crate) outcome: Result<Applied, Reject>,
}

/// A core under test.
pub(crate) struct Venue {
    pub(crate) core: Core,
    pub(crate) time_ns: u64,
    pub(crate) position: u64,
    pub(crate) journal: Vec<Entry>,
    /// What stands between its entries and is not kept by a log.
    pub(crate) refused: Vec<Refused>,
    /// Next sequence by session.
    pub(crate) sequences: BTreeMap<u32, u64>,
    buffer: Vec<u64>,
    /// Transactions of pending work since the last command of another kind.
    pending_in_a_row: u32,
}

/// An outbox's memory.
pub(crate) fn outbox_memory() -> Vec<u64> {
    vec![0; OUTBOX_BYTES_MAX.div_ceil(8)]
}

/// The bytes of a message in memory aligned to eight.
pub(crate) fn aligned(bytes: &[u8]) -> Vec<u64> {
    let mut words = vec![0; bytes.len().div_ceil(8)];
    bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
    words
}

impl Venue {
    pub(crate) fn new() -> Self {
        Self {
            core: Core::new(),
            time_ns: START_NS,
            position: 4096,
            journal: Vec::new(),
            refused: Vec::new(),
            sequences: BTreeMap::new(),
            buffer: outbox_memory(),
            pending_in_a_row: 0,
        }
    }

    pub(crate) fn context(&self) -> Context {
        Context { position: Position(self.position), time_ns: self.time_ns }
    }

    /// Applies a command. A reject must change nothing; an accepted command must leave a sound venue.
    pub(crate) fn apply<M: Message>(&mut self, message: &M) -> Result<Vec<Owned>, Reject> {
        self.apply_bytes(&aligned(bytemuck::bytes_of(message)))
    }

    /// As [`apply`](Self::apply), for bytes that decode to a command.
    pub(crate) fn apply_bytes(&mut self, words: &[u64]) -> Result<Vec<Owned>, Reject> {
        let context = self.context();
        let command = decode::command(bytemuck::cast_slice(words)).expect("a command");
        let before = self.core.state_hash();
        let mut outbox = Outbox::new(bytemuck::cast_slice_mut(&mut self.buffer));
        let applied = self.core.apply(&context, &command, &mut outbox);
        self.core.validate().expect("sound after every command");
        let events: Vec<Owned> = outbox.events().map(Owned::read).collect();
        if applied != Ok(Applied::Committed) {
            let (behind, command) = (self.journal.len(), words.to_vec());
            self.refused.push(Refused { behind, context, command, outcome: applied });
        }
        match applied {
            Ok(Applied::Committed) => {
                assert_eq!(self.core.last_time_ns(), context.time_ns);
                assert!(!events.is_empty(), "a commit has a terminal event");
                self.position += (words.len() * 8 + outbox.len() + 64) as u64;
                let (words, bytes) = (words.to_vec(), outbox.bytes().to_vec());
                let runs_on = matches!(command, Command::RunPending(_));
                self.note(Entry { context, command: words, events: bytes }, runs_on);
                Ok(events)
            }
            Ok(Applied::Valid) => {
                assert_eq!(self.core.state_hash(), before, "validation changes nothing");
                assert_eq!(events.len(), 1);
                Ok(events)
            }
            Err(reject) => {
                assert_eq!(self.core.state_hash(), before, "a reject changes nothing: {reject:?}");
                assert!(events.is_empty(), "a reject leaves the outbox alone");
                Err(reject)
            }
        }
    }

    /// Applies a command that must be accepted without looking at the whole venue before and after it:
    /// for venues that are large.
    pub(crate) fn must_quickly<M: Message>(&mut self, message: &M) -> Vec<Owned> {
        self.must_quickly_bytes(aligned(bytemuck::bytes_of(message)))
    }

    /// As [`must_quickly`](Self::must_quickly), for bytes that decode to a command.
    pub(crate) fn must_quickly_bytes(&mut self, words: Vec<u64>) -> Vec<Owned> {
        let context = self.context();
        let command = decode::command(bytemuck::cast_slice(&words)).expect("a command");
        let mut outbox = Outbox::new(bytemuck::cast_slice_mut(&mut self.buffer));
        let applied = self.core.apply(&context, &command, &mut outbox);
        assert_eq!(applied, Ok(Applied::Committed), "{}", command.name());
        self.position += 64;
        let events = outbox.bytes().to_vec();
        let runs_on = matches!(command, Command::RunPending(_));
        let told = outbox.events().map(Owned::read).collect();
        self.note(Entry { context, command: words, events }, runs_on);
        told
    }

    fn note(&mut self, entry: Entry, runs_on: bool) {
        self.pending_in_a_row = if runs_on { self.pending_in_a_row + 1 } else { 0 };
        assert!(self.pending_in_a_row < PENDING_MAX, "pending work comes to no end");
        self.journal.push(entry);
    }

    /// Applies a command that must be accepted.
    pub(crate) fn must<M: Message>(&mut self, message: &M) -> Vec<Owned> {
        self.apply(message).unwrap_or_else(|reject| panic!("{} rejected: {reject:?}", M::NAME))
    }

    /// Takes rules of one version after the other, up to this one.
    pub(crate) fn take_rules(&mut self, rules: u32) {
        for rules in 1..=rules {
            self.must(&SetRules { rules, ..Default::default() });
        }
    }

    /// A header of the engine.
    pub(crate) fn engine() -> CommandHeader {
        CommandHeader::default()
    }

    /// A header of a session with its next sequence and present epoch.
    pub(crate) fn header(&mut self, session: SessionId, key_id: KeyId) -> CommandHeader {
        let sequence = self.sequences.entry(session.0).or_default();
        *sequence += 1;
        CommandHeader {
            correlation: *sequence + 1000,
            sequence: Sequence(*sequence),
            key_id,
            session,
            epoch: self.core.session(session).expect("session").epoch,
            ..Default::default()
        }
    }

    pub(crate) fn set_rules(&mut self) {
        self.must(&SetRules { rules: 1, ..Default::default() });
    }

    pub(crate) fn set_limits(&mut self, limits: Limits) {
        self.must(&SetLimits { limits, ..Default::default() });
    }

    pub(crate) fn asset(&mut self, name: &str) -> AssetId {
        let name = AssetName::new(name).unwrap();
        self.must(&DefineAsset { name, precision: 8, ..Default::default() });
        self.core.find_asset(&name).unwrap()
    }

    pub(crate) fn symbol(
        &mut self,
        name: &str,
        (base, quote): (AssetId, AssetId),
        filters: SymbolFilters,
    ) -> SymbolId {
        self.symbol_of(name, (base, quote), filters, (touchline_core::ORDER_TYPES, 0))
    }

    /// As [`symbol`](Self::symbol), with the order types and flags given.
    pub(crate) fn symbol_of(
        &mut self,
        name: &str,
        (base, quote): (AssetId, AssetId),
        filters: SymbolFilters,
        (order_types, flags): (u8, u8),
    ) -> SymbolId {
        let name = SymbolName::new(name).unwrap();
        self.must(&DefineSymbol {
            name,
            base,
            quote,
            status: SymbolStatus::Trading.to_wire(),
            order_types,
            flags,
            permissions: PERMISSION_SPOT,
            filters,
            ..Default::default()
        });
        self.core.find_symbol(&name).unwrap()
    }

    /// An account with a key for everything.
    pub(crate) fn account(
        &mut self,
        name: &str,
        (maker_rate, taker_rate): (i64, i64),
    ) -> (AccountId, KeyId) {
        let name = Name::new(name).unwrap();
        self.must(&CreateAccount {
            name,
            maker_rate,
            taker_rate,
            flags: ACCOUNT_CAN_TRADE,
            permissions: PERMISSION_SPOT,
            ..Default::default()
        });
        let account = self.core.find_account(&name).unwrap();
        let made = self.must(&CreateKey { account, permissions: KEY_ALL, ..Default::default() });
        let Some(Owned::Done(done)) = made.last() else { panic!("{made:?}") };
        (account, KeyId(done.id))
    }

    pub(crate) fn deposit(&mut self, account: AccountId, asset: AssetId, amount: i64) {
        self.must(&Deposit { account, asset, amount, ..Default::default() });
    }

    pub(crate) fn logon(&mut self, name: &str, role: Role, lane: Lane, key_id: KeyId) -> SessionId {
        let events = self.must(&Logon {
            command: CommandHeader { key_id, ..Default::default() },
            name: Name::new(name).unwrap(),
            role: role.to_wire(),
            lane: lane.to_wire(),
            ..Default::default()
        });
        let Some(Owned::Started(started)) = events.last() else { panic!("{events:?}") };
        started.session
    }

    /// Runs all pending work.
    pub(crate) fn drain(&mut self) -> Vec<Owned> {
        let mut events = Vec::new();
        while self.core.pending_head().is_some() {
            events.extend(self.must(&RunPending::default()));
        }
        events
    }

    /// Cancels every open order on behalf of its owner.
    pub(crate) fn cancel_everything(&mut self, keys: &BTreeMap<AccountId, KeyId>) {
        use touchline_protocol::message::enums::Side;
        for symbol in (0..self.core.counts().symbols).map(SymbolId) {
            for side in [Side::Buy, Side::Sell] {
                loop {
                    let waiting = self.core.waiting_orders(symbol);
                    let first = self.core.open_orders(symbol, side).chain(waiting).next();
                    let Some(order) = first else { break };
                    let key_id = keys[&order.account];
                    self.must(&CancelOrder {
                        command: CommandHeader { key_id, ..Default::default() },
                        symbol,
                        order_id: order.order_id,
                        ..Default::default()
                    });
                }
            }
        }
    }

    /// Applies the journal to a fresh core whose tables are laid out differently: the same events, the
    /// same state.
    pub(crate) fn check_replay(&self) {
        self.replayed(0x5eed).validate().unwrap();
    }

    /// What the journal makes of a fresh core with this table seed: every event byte for byte as it was,
    /// and in the end the same state.
    pub(crate) fn replayed(&self, table_seed: u64) -> Core {
        let mut core = Core::with_table_seed(table_seed);
        let mut memory = outbox_memory();
        for entry in &self.journal {
            let command = decode::command(bytemuck::cast_slice(&entry.command)).unwrap();
            let mut outbox = Outbox::new(bytemuck::cast_slice_mut(&mut memory));
            let applied = core.apply(&entry.context, &command, &mut outbox);
            assert_eq!(applied, Ok(Applied::Committed), "{} on replay", command.name());
            assert_eq!(outbox.bytes(), entry.events, "events of {} on replay", command.name());
        }
        assert_eq!(core.state_hash(), self.core.state_hash());
        core
    }
}

/// A client order id.
pub(crate) fn named(name: &str) -> ClientOrderId {
    ClientOrderId::new(name).unwrap()
}

/// Limits that no small test reaches.
pub(crate) fn roomy() -> Limits {
    Limits {
        assets: 8,
        symbols: 8,
        accounts: 16,
        keys: 32,
        sessions: 16,
        open_orders: 1000,
        price_levels: 500,
        pending_work: 8,
        max_steps: 256,
        orders_per_interval_0: 0,
        orders_per_interval_1: 0,
        interval_0_seconds: 10,
        interval_1_seconds: 86_400,
        reserved: 0,
    }
}

/// Puts a header in front of arbitrary message bytes, as if a client had written it.
pub(crate) fn with_message_header(template: u16, words: &mut [u64]) {
    let header = MessageHeader {
        block_length: (words.len() * 8 - MessageHeader::BYTES) as u16,
        template_id: template,
        schema_id: touchline_protocol::message::SCHEMA_ID,
        version: touchline_protocol::message::SCHEMA_VERSION,
    };
    words[0] = bytemuck::cast(header);
}
