//! Whom events concern besides the sender of their command: noted as a fold over the events says, and
//! the same on every replay.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../../tests/support/split_mix.rs"]
mod split_mix;
#[path = "support/venue.rs"]
mod venue;
#[path = "sweeps/world.rs"]
#[allow(dead_code, reason = "each test uses its part")]
mod world;

use split_mix::SplitMix64;
use std::collections::BTreeMap;
use touchline_core::{Addressee, Addressees, Core, Outbox};
use touchline_protocol::message::command::*;
use touchline_protocol::message::decode::{self, Command};
use touchline_protocol::message::enums::{
    CancelScope, Lane, OrderType, Role, SelfTradePrevention, Side, TimeInForce,
};
use touchline_protocol::text::Name;
use touchline_protocol::units::*;
use venue::{Entry, Owned, Venue, WHOLE, outbox_memory};
use world::{ANN, BOB, CARL, ONE, TWO, kill, limit, list, mass_cancel, steps, stop_limit, world};

fn logon(name: &str, key: u64, flags: u8) -> Logon {
    Logon {
        command: CommandHeader { key_id: KeyId(key), ..Default::default() },
        name: Name::new(name).unwrap(),
        role: Role::Trader.to_wire(),
        lane: Lane::Hot.to_wire(),
        flags,
        ..Default::default()
    }
}

/// Two sessions of each of three accounts; Bob's second takes all events of its account.
const SESSIONS: [(&str, u64, u8); 6] = [
    ("a", ANN, 0),
    ("b", ANN, LOGON_CANCEL_ON_DISCONNECT),
    ("a", BOB, 0),
    ("b", BOB, LOGON_ACCOUNT_EVENTS),
    ("a", CARL, 0),
    ("b", CARL, LOGON_CANCEL_ON_DISCONNECT | LOGON_ACCOUNT_EVENTS),
];

fn order(random: &mut SplitMix64, command: CommandHeader) -> NewOrder {
    let side = if random.below(2) == 0 { Side::Buy } else { Side::Sell };
    let (price, quantity) = (95 + random.below(10) as i64, 1 + random.below(6) as i64);
    let symbol = if random.below(4) == 0 { TWO } else { ONE };
    let mut order = limit(command, symbol, side, (price, quantity));
    match random.below(8) {
        0 => order.time_in_force = TimeInForce::Ioc.to_wire(),
        1 => order.iceberg_quantity = WHOLE,
        2 => order.self_trade_prevention = SelfTradePrevention::ExpireBoth.to_wire(),
        3 | 4 => {
            let stop_price = 95 + random.below(10) as i64;
            let order_type = OrderType::StopLossLimit.to_wire();
            return NewOrder {
                order_type,
                ..stop_limit(command, symbol, side, (stop_price, price))
            };
        }
        _ => {}
    }
    order
}

/// Sends one command of a mix; what is rejected leaves no trace.
fn send_any(venue: &mut Venue, random: &mut SplitMix64) {
    let at = random.below(6) as usize;
    let (name, key, flags) = SESSIONS[at];
    if venue.core.pending_head().is_some() && random.below(3) > 0 {
        venue.must(&RunPending::default());
        return;
    }
    let session = SessionId(at as u32 + 1);
    let epoch = venue.core.session(session).unwrap().epoch;
    let command = venue.header(session, KeyId(key));
    let canceled = OrderId(1 + random.below(400));
    let _may_be_rejected = match random.below(40) {
        0 => venue.apply(&logon(name, key, flags)),
        1 => {
            let ended = (session, epoch);
            venue.apply(&ConnectionEnded {
                ended_session: ended.0,
                ended_epoch: ended.1,
                ..Default::default()
            })
        }
        2 => venue.apply(&mass_cancel(command, ONE, CancelScope::Account.to_wire())),
        3 => venue.apply(&mass_cancel(command, TWO, CancelScope::Session.to_wire())),
        4 => {
            let killed = venue.apply(&kill(key, 1));
            venue.must(&kill(key, 0));
            killed
        }
        5..10 => {
            let prices = (97 + random.below(8) as i64, 94 + random.below(4) as i64);
            venue.apply(&list(command, ONE, Side::Sell, prices))
        }
        10..14 => venue.apply(&CancelOrder {
            command,
            symbol: ONE,
            order_id: canceled,
            ..Default::default()
        }),
        14..16 => venue.apply(&ReduceOrder {
            command,
            symbol: ONE,
            order_id: canceled,
            new_quantity: WHOLE,
            ..Default::default()
        }),
        16..18 => venue.apply(&ReplaceOrder {
            command,
            symbol: ONE,
            order_id: canceled,
            new_price: (95 + random.below(10) as i64) * WHOLE,
            new_quantity: 3 * WHOLE,
            ..Default::default()
        }),
        _ => venue.apply(&order(random, command)),
    };
}

/// Applies an entry of the journal again; gives the notes.
fn replay(core: &mut Core, entry: &Entry, addressees: &mut Addressees) -> Vec<Addressee> {
    let mut memory = outbox_memory();
    let bytes = bytemuck::cast_slice(&entry.command);
    let command = decode::command(bytes).unwrap();
    let mut outbox = Outbox::with_addressees(bytemuck::cast_slice_mut(&mut memory), addressees);
    core.apply(&entry.context, &command, &mut outbox).unwrap();
    assert_eq!(outbox.bytes(), entry.events, "what is logged is the same with notes");
    addressees.notes().to_vec()
}

/// The session whose replies the events of a command are.
fn replier(core: &Core, command: &Command<'_>) -> SessionId {
    let Command::RunPending(_) = command else { return command.header().session };
    let head = core.pending_head().unwrap();
    let present = core.session(head.session).is_some_and(|session| session.epoch == head.epoch);
    if present { head.session } else { SessionId::ENGINE }
}

/// Who placed what, by what the events said.
#[derive(Default)]
struct Placed(BTreeMap<(SymbolId, OrderId), (SessionId, AccountId)>);

impl Placed {
    /// The orders that an event is about.
    fn concerned(&mut self, event: &Owned) -> Vec<(SessionId, AccountId)> {
        let orders = match event {
            Owned::Accepted(one) => {
                self.0.insert((one.symbol, one.order_id), (one.session, one.account));
                vec![(one.symbol, one.order_id)]
            }
            Owned::Trade(one) => {
                vec![(one.symbol, one.maker_order_id), (one.symbol, one.taker_order_id)]
            }
            Owned::Prevented(one) => {
                vec![(one.symbol, one.maker_order_id), (one.symbol, one.taker_order_id)]
            }
            Owned::Result(one) => vec![(one.symbol, one.order_id)],
            Owned::Canceled(one) => vec![(one.symbol, one.order_id)],
            Owned::Reduced(one) => vec![(one.symbol, one.order_id)],
            Owned::Triggered(one) => vec![(one.symbol, one.order_id)],
            Owned::Refilled(one) => vec![(one.symbol, one.order_id)],
            Owned::Replaced(one) => vec![(one.symbol, one.order_id)],
            Owned::ListChanged(one) => vec![(one.symbol, one.stop_order_id)],
            _ => Vec::new(),
        };
        orders.iter().map(|order| self.0[order]).collect()
    }
}

/// What is to be noted of an entry's events.
fn expected(placed: &mut Placed, core: &Core, entry: &Entry, replier: SessionId) -> Vec<Addressee> {
    let mut memory = venue::aligned(&entry.events);
    let length = entry.events.len();
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut memory);
    let (mut notes, mut offset) = (Vec::new(), 0);
    while offset < length {
        let block = u16::from_le_bytes([bytes[offset], bytes[offset + 1]]);
        let event = Owned::read(&bytes[offset..offset + 8 + usize::from(block)]);
        for (session, account) in placed.concerned(&event) {
            let watches = |id: u32| {
                let one = core.session(SessionId(id)).unwrap();
                one.account_events && u64::from(account.0) == one.key_id.0
            };
            let is_watched = (1..=6).any(watches);
            if is_watched || session != replier && session != SessionId::ENGINE {
                let account = is_watched.then_some(account);
                notes.push(Addressee { offset: offset as u32, session, account });
            }
        }
        offset += 8 + usize::from(block);
    }
    notes
}

#[test]
fn they_are_who_placed_the_orders_and_the_same_on_every_replay() {
    let (mut of_others, mut watched, mut by_pending) = (0, 0, 0);
    for seed in 1..=4u64 {
        let mut random = SplitMix64(seed);
        let mut venue = world(steps(12));
        for (name, key, flags) in SESSIONS {
            venue.must(&logon(name, key, flags));
        }
        for _ in 0..600 {
            send_any(&mut venue, &mut random);
        }
        let (mut one, mut other) = (Core::new(), Core::with_table_seed(seed));
        let mut addressees = Addressees::new();
        let mut placed = Placed::default();
        for entry in &venue.journal {
            let command = decode::command(bytemuck::cast_slice(&entry.command)).unwrap();
            let replier = replier(&one, &command);
            let first = replay(&mut one, entry, &mut addressees);
            assert_eq!(replay(&mut other, entry, &mut addressees), first);
            if !matches!(command, Command::Logon(_) | Command::ConnectionEnded(_)) {
                let wanted = expected(&mut placed, &one, entry, replier);
                assert_eq!(first, wanted, "{} at {}", command.name(), entry.context.position);
            }
            of_others += first.len();
            watched += first.iter().filter(|note| note.account.is_some()).count();
            by_pending += usize::from(matches!(command, Command::RunPending(_))) * first.len();
        }
        assert_eq!(one.state_hash(), venue.core.state_hash());
        // A venue that was read from a snapshot notes the same from there on.
        let mut bytes = Vec::new();
        let mut put = |part: &[u8]| {
            bytes.extend_from_slice(part);
            Ok::<(), ()>(())
        };
        one.write_snapshot(&mut put).unwrap();
        let mut rest = bytes.as_slice();
        let mut take = |part: &mut [u8]| {
            let (head, behind) = rest.split_at_checked(part.len()).ok_or(())?;
            part.copy_from_slice(head);
            rest = behind;
            Ok::<(), ()>(())
        };
        let (mut read, _) = Core::read_snapshot(&mut take, 7).unwrap();
        let before = venue.journal.len();
        for _ in 0..100 {
            send_any(&mut venue, &mut random);
        }
        for entry in &venue.journal[before..] {
            let first = replay(&mut one, entry, &mut addressees);
            assert_eq!(replay(&mut read, entry, &mut addressees), first);
        }
    }
    assert!(of_others > 1000 && watched > 500, "{of_others} notes, {watched} watched");
    assert!(by_pending > 50, "{by_pending} by pending work");
}

#[test]
fn all_events_of_an_account_are_asked_for_at_logon_and_end_with_the_connection() {
    let mut venue = world(steps(12));
    let takes = |venue: &Venue| venue.core.session(SessionId(1)).unwrap().account_events;
    let plain = venue.core.state_hash();
    venue.must(&logon("a", ANN, LOGON_ACCOUNT_EVENTS));
    assert!(takes(&venue));
    assert_ne!(venue.core.state_hash(), plain);
    venue.must(&logon("a", ANN, 0));
    assert!(!takes(&venue), "as the newer one asks");
    venue.must(&logon("a", ANN, LOGON_ACCOUNT_EVENTS));
    let ended = ConnectionEnded {
        ended_session: SessionId(1),
        ended_epoch: Epoch(3),
        ..Default::default()
    };
    venue.must(&ended);
    assert!(!takes(&venue));
    venue.must(&logon("a", ANN, LOGON_ACCOUNT_EVENTS));
    venue.must(&EngineStarted::default());
    assert!(!takes(&venue), "no connection survives a start");
    venue.must(&logon("a", ANN, LOGON_ACCOUNT_EVENTS));
    venue.must(&RevokeKey { key: KeyId(ANN), ..Default::default() });
    assert!(!takes(&venue));
    let local = Logon { role: Role::Adapter.to_wire(), ..logon("x", 0, LOGON_ACCOUNT_EVENTS) };
    venue.apply(&local).expect_err("who has no key has no account");
    venue.apply(&logon("a", BOB, 4)).expect_err("an unknown flag");
}

#[test]
fn rules_1_know_nothing_of_it() {
    let mut venue = Venue::new();
    venue.set_rules();
    venue.set_limits(venue::roomy());
    venue.account("ann", (0, 0));
    venue.apply(&logon("a", ANN, LOGON_ACCOUNT_EVENTS)).expect_err("of rules 2");
    venue.must(&logon("a", ANN, 0));
}
