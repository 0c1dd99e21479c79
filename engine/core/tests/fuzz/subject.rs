//! The venue that an input is let loose on, and what must hold after every command whatever it says.
//!
//! A refused command leaves no trace: the hash of the whole state, time and sequences included, is
//! recomputed and must be what it was, and nothing has been reported. An accepted one leaves a sound
//! venue, and is applied at once to a second core whose tables are laid out differently and which has
//! never seen what was refused: the same events byte for byte and the same hash, or a restart from the
//! log, or from a snapshot in between, would not come to the same venue.

use std::collections::BTreeMap;
use std::convert::Infallible;
use touchline_core::limits::{MAXIMA, RECORD_BLOCKS_MAX, RECORDS_MAX};
use touchline_core::{Applied, Context, Core, OUTBOX_BYTES_MAX, Outbox};
use touchline_protocol::message::Message;
use touchline_protocol::message::command::{Limits, RunPending, SetLimits, SetRecordLimits};
use touchline_protocol::message::decode::{self, Command, Event};
use touchline_protocol::message::enums::RejectReason;
use touchline_protocol::units::{AccountId, AssetId, Position};

/// What came of commands, by the message's name.
#[derive(Default, Debug)]
pub(crate) struct Summary {
    pub(crate) commands: u64,
    /// Bytes that were no command.
    pub(crate) undecoded: u64,
    pub(crate) accepted: BTreeMap<&'static str, u64>,
    pub(crate) refused: BTreeMap<&'static str, u64>,
    pub(crate) reasons: BTreeMap<RejectReason, u64>,
}

pub(crate) struct Subject {
    pub(crate) core: Core,
    /// What a restart would make of what was accepted.
    replica: Core,
    pub(crate) time_ns: u64,
    position: u64,
    hash: u64,
    /// Deposits less withdrawals, by asset.
    paid_in: BTreeMap<u32, i128>,
    memory: [Vec<u64>; 2],
    pub(crate) summary: Summary,
}

/// The bytes of a message, aligned.
pub(crate) fn words<M: Message>(message: &M) -> Vec<u64> {
    let mut words = vec![0; size_of::<M>() / 8];
    bytemuck::cast_slice_mut(&mut words).copy_from_slice(bytemuck::bytes_of(message));
    words
}

fn outbox(words: &mut [u64]) -> Outbox<'_> {
    Outbox::new(bytemuck::cast_slice_mut(words))
}

/// True for limits that would be set and take more memory than a test should.
fn takes_memory(limits: &Limits) -> bool {
    const LARGE: u32 = 4096;
    let [asked, most] =
        [limits, &MAXIMA].map(|limits| bytemuck::cast::<Limits, [u32; 14]>(*limits));
    let refused = asked.iter().zip(most).any(|(asked, most)| *asked > most);
    !refused && asked[..8].iter().any(|asked| *asked > LARGE)
}

/// As [`takes_memory`], of limits for records.
fn takes_memory_for_records(limits: &SetRecordLimits) -> bool {
    const LARGE: u32 = 4096;
    let refused = limits.records > RECORDS_MAX || limits.blocks > RECORD_BLOCKS_MAX;
    !refused && (limits.records > LARGE || limits.blocks > LARGE)
}

impl Subject {
    pub(crate) fn new() -> Self {
        let core = Core::new();
        Self {
            hash: core.state_hash(),
            core,
            replica: Core::with_table_seed(0x5eed),
            time_ns: 1_700_000_000_000_000_000,
            position: 4096,
            paid_in: BTreeMap::new(),
            memory: [(); 2].map(|()| vec![0; OUTBOX_BYTES_MAX.div_ceil(8)]),
            summary: Summary::default(),
        }
    }

    /// Applies a command that makes the world, which is sound: unchecked until [`begin`](Self::begin).
    pub(crate) fn prepare<M: Message>(&mut self, message: &M) {
        let words = words(message);
        let context = Context { position: Position(self.position), time_ns: self.time_ns };
        let command = decode::command(bytemuck::cast_slice(&words)).expect("a command");
        for (core, memory) in [&mut self.core, &mut self.replica].into_iter().zip(&mut self.memory)
        {
            let applied = core.apply(&context, &command, &mut outbox(memory));
            assert_eq!(applied, Ok(Applied::Committed), "{command:?}");
        }
        self.position += 4096;
        if let Command::Deposit(message) = &command {
            *self.paid_in.entry(message.asset.0).or_default() += i128::from(message.amount);
        }
        *self.summary.accepted.entry(M::NAME).or_default() += 1;
    }

    /// From here on everything is checked.
    pub(crate) fn begin(&mut self) {
        self.core.validate().expect("a sound world");
        self.hash = self.core.state_hash();
        assert_eq!(self.replica.state_hash(), self.hash);
    }

    /// Decodes and applies whatever the words hold; true if it was accepted.
    pub(crate) fn apply(&mut self, words: &[u64]) -> bool {
        self.summary.commands += 1;
        let Ok(command) = decode::command(bytemuck::cast_slice(words)) else {
            self.summary.undecoded += 1;
            return false;
        };
        match &command {
            Command::SetLimits(message) if takes_memory(&message.limits) => return false,
            Command::SetRecordLimits(message) if takes_memory_for_records(message) => return false,
            _ => {}
        }
        let context = Context { position: Position(self.position), time_ns: self.time_ns };
        let mut outbox = outbox(&mut self.memory[0]);
        let applied = self.core.apply(&context, &command, &mut outbox);
        self.core.validate().unwrap_or_else(|error| panic!("{error}, after {command:?}"));
        let hash = self.core.state_hash();
        let events = outbox.bytes().to_vec();
        match applied {
            Ok(Applied::Committed) => {
                assert!(!events.is_empty(), "nobody learns of {command:?}");
                outbox.events().for_each(check_event);
                self.position += (64 + command.bytes().len() + events.len()) as u64;
                self.hash = hash;
                *self.summary.accepted.entry(command.name()).or_default() += 1;
                self.replay(&context, &command, &events);
                self.check_money(&command);
                true
            }
            Ok(Applied::Valid) => {
                assert_eq!(hash, self.hash, "a validation has changed something: {command:?}");
                assert_eq!(outbox.count(), 1);
                false
            }
            Err(reject) => {
                assert_eq!(hash, self.hash, "a reject has changed something: {command:?}");
                assert!(events.is_empty(), "a reject has reported something: {command:?}");
                *self.summary.refused.entry(command.name()).or_default() += 1;
                *self.summary.reasons.entry(reject.reason).or_default() += 1;
                false
            }
        }
    }

    /// The accepted command again, as a start finds it in the log.
    fn replay(&mut self, context: &Context, command: &Command<'_>, events: &[u8]) {
        let mut outbox = outbox(&mut self.memory[1]);
        let applied = self.replica.apply(context, command, &mut outbox);
        assert_eq!(applied, Ok(Applied::Committed), "a restart refuses {command:?}");
        assert_eq!(outbox.bytes(), events, "a restart reports otherwise: {command:?}");
        assert_eq!(self.replica.state_hash(), self.hash, "a restart differs behind {command:?}");
    }

    /// Writes the venue and puts what is read of it in the place of the second core, which goes on as if
    /// nothing had been.
    pub(crate) fn restart_from_snapshot(&mut self) {
        let mut bytes = Vec::new();
        let written = self.core.write_snapshot::<Infallible>(&mut |part| {
            bytes.extend_from_slice(part);
            Ok(())
        });
        assert_eq!(written, Ok(self.hash));
        let mut rest = &bytes[..];
        let mut read = |into: &mut [u8]| {
            into.copy_from_slice(rest.split_off(..into.len()).ok_or("bytes behind the end")?);
            Ok(())
        };
        let (core, hash) = Core::read_snapshot::<&str>(&mut read, 0xface)
            .unwrap_or_else(|error| panic!("what was written is not read: {error}"));
        assert_eq!(hash, self.hash);
        core.validate().expect("a sound venue");
        self.replica = core;
    }

    /// No money but what was paid in.
    fn check_money(&mut self, command: &Command<'_>) {
        let (asset, amount) = match command {
            Command::Deposit(message) => (message.asset, i128::from(message.amount)),
            Command::Withdraw(message) => (message.asset, -i128::from(message.amount)),
            _ => (AssetId(0), 0),
        };
        *self.paid_in.entry(asset.0).or_default() += amount;
        for id in 0..self.core.counts().assets {
            let held = self.core.asset(AssetId(id)).map(|asset| i128::from(asset.held.0));
            assert_eq!(held, Some(self.paid_in.get(&id).copied().unwrap_or(0)), "{command:?}");
        }
    }

    /// Runs what is pending to its end.
    pub(crate) fn settle(&mut self) {
        /// Far more than what the orders of this venue can set off.
        const TURNS: u32 = 100_000;
        let mut turns = 0;
        while self.core.pending_head().is_some() {
            turns += 1;
            assert!(turns < TURNS, "pending work comes to no end");
            assert!(self.apply(&words(&RunPending::default())), "pending work is stuck");
        }
    }

    /// Ends every order; then nothing is locked and no place is taken.
    pub(crate) fn drain(&mut self, end_orders: impl FnOnce(&mut Self)) {
        self.settle();
        let limits = Limits { pending_work: 64, ..*self.core.limits() };
        assert!(self.apply(&words(&SetLimits { limits, ..Default::default() })));
        end_orders(self);
        self.settle();
        let counts = self.core.counts();
        assert_eq!((counts.open_orders, counts.price_levels, counts.pending_work), (0, 0, 0));
        for account in (0..counts.accounts).map(AccountId) {
            for asset in (0..counts.assets).map(AssetId) {
                let balance = self.core.balance(account, asset).expect("both are there");
                assert_eq!(balance.locked.0, 0, "account {account}, asset {asset}");
            }
        }
    }
}

fn check_event(event: &[u8]) {
    match decode::event(event) {
        Ok(
            Event::Rejected(_)
            | Event::Gap(_)
            | Event::OrderOpened(_)
            | Event::OrderClosed(_)
            | Event::OrderFilled(_),
        ) => {
            panic!("never an event of the core")
        }
        Ok(_) => {}
        Err(error) => panic!("an event that nobody can read: {error}"),
    }
}
