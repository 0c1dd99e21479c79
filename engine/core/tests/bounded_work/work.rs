//! Carries out a command and all that it leaves pending, with crashes in between, under the eyes of the
//! checks that hold for every transaction; and says what came of it without saying how it was divided.

use crate::orders::{ACCOUNTS, ONE, orders};
use crate::venue::{Owned, Venue, aligned};
use touchline_core::limits::STEPS_MAX;
use touchline_core::{Balance, OUTBOX_BYTES_MAX, OpenOrder, SymbolCounters};
use touchline_protocol::message::Message;
use touchline_protocol::message::command::RunPending;
use touchline_protocol::message::event::Trade;
use touchline_protocol::units::*;

/// What the last item of a transaction may take beyond the steps that were left: a sweep's list takes
/// five, and nothing is begun with none.
const OVERDRAWN_MAX: u32 = 4;

/// A venue as it stands before, for this `max_steps`, and the command that sets off the work.
pub(crate) struct Situation<'prepare> {
    pub(crate) prepare: &'prepare dyn Fn(u32) -> Venue,
    /// The command, aligned.
    pub(crate) command: Vec<u64>,
    /// A command that is taken while work is pending, and the number of its transaction.
    pub(crate) overtaking: Option<(usize, Vec<u64>)>,
}

impl<'prepare> Situation<'prepare> {
    pub(crate) fn new<M: Message>(prepare: &'prepare dyn Fn(u32) -> Venue, command: &M) -> Self {
        Self::of(prepare, aligned(bytemuck::bytes_of(command)))
    }

    pub(crate) fn of(prepare: &'prepare dyn Fn(u32) -> Venue, command: Vec<u64>) -> Self {
        Self { prepare, command, overtaking: None }
    }
}

/// Work that is done.
pub(crate) struct Work {
    pub(crate) venue: Venue,
    /// All events in order, but for what depends on the division into transactions.
    pub(crate) story: Vec<Owned>,
    /// The command's own transaction included.
    pub(crate) transactions: usize,
}

/// The venue at the end, but for what depends on the division into transactions.
#[derive(PartialEq, Debug)]
pub(crate) struct Ending {
    balances: Vec<Balance>,
    counters: SymbolCounters,
    /// Both sides in the order in which they would trade, then the waiting stops.
    orders: Vec<OpenOrder>,
}

impl Work {
    pub(crate) fn ending(&self) -> Ending {
        let core = &self.venue.core;
        let mut counters = core.symbol(ONE).unwrap().counters;
        counters.book_update = BookUpdateId(0);
        let assets = [AssetId(0), AssetId(1)];
        let balances = (0..=ACCOUNTS)
            .flat_map(|account| assets.map(|asset| core.balance(AccountId(account), asset)))
            .map(Option::unwrap);
        Ending { balances: balances.collect(), counters, orders: orders(core) }
    }

    pub(crate) fn trades(&self) -> impl Iterator<Item = &Trade> {
        self.story.iter().filter_map(|event| match event {
            Owned::Trade(trade) => Some(trade),
            _ => None,
        })
    }
}

/// Does all the work. In front of each of the transactions numbered in `crashes` (the command's own is
/// 0) the core is dropped and made anew from the journal.
pub(crate) fn carry_out(situation: &Situation<'_>, max_steps: u32, crashes: &[usize]) -> Work {
    let venue = (situation.prepare)(max_steps);
    assert_eq!(venue.core.limits().max_steps, max_steps);
    assert!(venue.core.pending_head().is_none(), "nothing is pending beforehand");
    let mut work = Work { venue, story: Vec::new(), transactions: 0 };
    let mut next = situation.command.clone();
    loop {
        if crashes.contains(&work.transactions) {
            work.venue.core = work.venue.replayed(work.transactions as u64);
        }
        // Counting stops takes time: only now and then, the first time included.
        let counts = work.transactions.is_multiple_of(61);
        let waiting =
            |venue: &Venue| if counts { venue.core.waiting_orders(ONE).count() } else { 0 };
        let before = waiting(&work.venue);
        let events = work.venue.must_quickly_bytes(next);
        let canceled = events.iter().filter(|event| matches!(event, Owned::Canceled(_))).count();
        let collected = before.saturating_sub(waiting(&work.venue) + canceled) as u32;
        let bytes = work.venue.journal.last().unwrap().events.len();
        check_transaction(max_steps, collected, &events, bytes);
        work.story.extend(events.into_iter().filter_map(undivided));
        work.transactions += 1;
        if work.venue.core.pending_head().is_none() {
            return work;
        }
        next = match &situation.overtaking {
            Some((at, command)) if *at == work.transactions => command.clone(),
            _ => aligned(bytemuck::bytes_of(&RunPending::default())),
        };
    }
}

/// Does the work for one `max_steps` without and with crashes, and compares every byte; checks the end
/// and gives it.
pub(crate) fn survives(situation: &Situation<'_>, max_steps: u32, crashes: &[usize]) -> Work {
    let calm = carry_out(situation, max_steps, &[]);
    let crashed = carry_out(situation, max_steps, crashes);
    for &crash in crashes {
        assert!(crash < calm.transactions, "crash {crash} of {} is behind all", calm.transactions);
    }
    assert_eq!(calm.venue.core.state_hash(), crashed.venue.core.state_hash());
    let logs = [&calm, &crashed].map(|work| &work.venue.journal);
    assert_eq!(logs[0].len(), logs[1].len());
    for (one, other) in logs[0].iter().zip(logs[1]) {
        assert_eq!(one.context, other.context);
        assert!(one.command == other.command && one.events == other.events, "{:?}", one.context);
    }
    crashed.venue.core.validate().unwrap();
    calm
}

/// Does the work for each `max_steps`; all of them must tell the same story. Gives the one of the
/// largest.
pub(crate) fn same_for_every(situation: &Situation<'_>, max_steps: &[u32]) -> Work {
    let whole = carry_out(situation, STEPS_MAX, &[]);
    whole.venue.core.validate().unwrap();
    for &max_steps in max_steps {
        let divided = carry_out(situation, max_steps, &[]);
        assert!(divided.transactions >= whole.transactions);
        same_story(&divided.story, &whole.story, max_steps);
        assert_eq!(divided.ending(), whole.ending(), "max_steps {max_steps}");
    }
    whole
}

/// Says where two stories part, in place of printing both.
pub(crate) fn same_story(found: &[Owned], expected: &[Owned], max_steps: u32) {
    if found != expected {
        let same = found.iter().zip(expected).take_while(|(found, other)| found == other).count();
        let [found, expected] = [found, expected].map(|story| &story[same.min(story.len())..]);
        let [found, expected] = [found, expected].map(|rest| &rest[..rest.len().min(3)]);
        panic!("max_steps {max_steps}: from event {same} on {found:?}, not {expected:?}");
    }
}

/// Most events in front of an acceptance: what a cancel with a placement ends first, both orders of a
/// list and the list. It is a fixed part of that command and takes none of its steps.
const REPLACED_EVENTS_MAX: usize = 3;

/// Steps that the events of a transaction stand for. What has no event of its own, the collecting of a
/// reached stop, is not among them.
fn steps_of(events: &[Owned]) -> u32 {
    let first = events.iter().position(|event| matches!(event, Owned::Accepted(_))).unwrap_or(0);
    let (replaced, events) = events.split_at(first);
    assert!(replaced.len() <= REPLACED_EVENTS_MAX, "{replaced:?} in front of an acceptance");
    let mut prevented = None;
    let mut steps = 0;
    for event in events {
        steps += match event {
            Owned::Trade(_) | Owned::Refilled(_) | Owned::ListChanged(_) => 1,
            Owned::Triggered(_) => 2,
            Owned::Prevented(event) => {
                prevented = Some(event.maker_order_id);
                2
            }
            // The maker's end is part of the prevention.
            Owned::Canceled(event) if prevented == Some(event.order_id) => 0,
            Owned::Canceled(_) => 2,
            _ => 0,
        };
    }
    steps
}

/// A transaction's share of the work: its steps, with those for stops that were `collected`, and the
/// bytes that they may take.
pub(crate) fn check_transaction(max_steps: u32, collected: u32, events: &[Owned], bytes: usize) {
    let steps = collected + steps_of(events);
    assert!(steps <= max_steps + OVERDRAWN_MAX, "{steps} steps of {max_steps}: {events:?}");
    let most = bytes_max(max_steps);
    assert!(bytes <= most, "{bytes} bytes of {most} for {max_steps} steps");
}

/// Bytes of the largest transaction: what the outbox must hold is meant for the largest `max_steps`,
/// and no step brings more than a trade.
fn bytes_max(max_steps: u32) -> usize {
    OUTBOX_BYTES_MAX - (STEPS_MAX - max_steps) as usize * size_of::<Trade>()
}

/// The event without what depends on the division into transactions; none for one that only says that
/// the rest follows.
pub(crate) fn undivided(event: Owned) -> Option<Owned> {
    let none = BookUpdateId(0);
    let mut event = event;
    match &mut event {
        Owned::Continues(_) => return None,
        Owned::Result(event) => event.book_update_id = none,
        Owned::Canceled(event) => event.book_update_id = none,
        Owned::Reduced(event) => event.book_update_id = none,
        Owned::Triggered(event) => event.book_update_id = none,
        Owned::ListChanged(event) => event.book_update_id = none,
        Owned::Refilled(event) => event.book_update_id = none,
        Owned::Prevented(event) => event.book_update_id = none,
        Owned::Replaced(event) => event.book_update_id = none,
        _ => {}
    }
    Some(event)
}
