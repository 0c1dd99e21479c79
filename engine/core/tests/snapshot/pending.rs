//! Sweeps that a snapshot was written in the middle of: they go on, and those that no venue has are refused.

use crate::large::venue_with;
use crate::parts::{again, read, seal, sections, write};
use crate::venue::Venue;
use touchline_core::{Core, SnapshotError};
use touchline_protocol::message::Message;
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::CancelScope;
use touchline_protocol::snapshot::records::*;
use touchline_protocol::units::*;

/// Ten of each account, eight symbols.
const ORDERS: u32 = 1_000;

/// A venue in which a command has more to end than one transaction does.
fn amid<M: Message>(command: &M) -> Venue {
    let mut venue = venue_with(ORDERS);
    venue.set_limits(Limits { max_steps: 4, ..*venue.core.limits() });
    venue.must(command);
    assert!(venue.core.pending_head().is_some(), "the first four steps are not all");
    venue
}

/// All orders of account 1, or those of them that no session has placed: the same.
fn mass_cancel(scope: CancelScope) -> MassCancel {
    MassCancel {
        command: CommandHeader { key_id: KeyId(1), ..Default::default() },
        symbol: SymbolId(EVERY),
        scope: scope.to_wire(),
        ..Default::default()
    }
}

/// No session sent it, so that the orders it is about are those of none.
#[test]
fn a_cancel_of_the_engine_s_own_orders_goes_on() {
    let end = |is_read: bool| {
        let mut venue = amid(&mass_cancel(CancelScope::Session));
        if is_read {
            venue.core = again(&venue.core, 7);
        }
        while venue.core.pending_head().is_some() {
            venue.must(&RunPending::default());
        }
        assert_eq!(venue.core.counts().open_orders, ORDERS - 10);
        venue.core.state_hash()
    };
    assert_eq!(end(true), end(false));
}

/// A sound venue, but not the one whose hash stands at the end.
const ANOTHER: &str = "another state";

/// Why the venue is refused when somebody has altered its only pending sweep and set the hash right.
fn refusal(
    core: &Core,
    alter: impl Fn(&mut PendingRecord, &mut PendingSweepRecord),
) -> &'static str {
    let mut bytes = write(core);
    let all = sections(&bytes);
    let (_, section, _) = all.iter().find(|(number, ..)| *number == PENDING).unwrap();
    let at = section.start + size_of::<SectionHeader>();
    let behind = at + size_of::<PendingRecord>();
    let end = behind + size_of::<PendingSweepRecord>();
    let mut pending = bytemuck::pod_read_unaligned(&bytes[at..behind]);
    let mut sweep = bytemuck::pod_read_unaligned(&bytes[behind..end]);
    alter(&mut pending, &mut sweep);
    bytes[at..behind].copy_from_slice(bytemuck::bytes_of(&pending));
    bytes[behind..end].copy_from_slice(bytemuck::bytes_of(&sweep));
    seal(&mut bytes, section);
    match read(&bytes, 0) {
        Err(SnapshotError::Record { section: PENDING, record: 0, why }) => why,
        Err(SnapshotError::StateHash { .. }) => ANOTHER,
        Err(error) => panic!("{error:?}"),
        Ok(_) => "",
    }
}

#[test]
fn a_sweep_that_no_venue_has_is_refused() {
    const OUT_OF_RANGE: &str = "a field out of range, or a reference to nothing";
    const NOBODY: &str = "about nobody's orders";
    type Alteration = fn(&mut PendingRecord, &mut PendingSweepRecord);
    let of_account: [(&str, Alteration); 14] = [
        ("", |_, _| {}),
        (ANOTHER, |_, sweep| sweep.whose = SWEEP_KILLED),
        (OUT_OF_RANGE, |_, sweep| sweep.session = SessionId(1)),
        (OUT_OF_RANGE, |_, sweep| sweep.reserved = 1),
        (OUT_OF_RANGE, |_, sweep| sweep.detail = 1),
        (OUT_OF_RANGE, |_, sweep| sweep.orders = u64::MAX),
        (OUT_OF_RANGE, |_, sweep| sweep.lists = u64::MAX),
        (OUT_OF_RANGE, |_, sweep| sweep.account = AccountId(101)),
        (OUT_OF_RANGE, |_, sweep| sweep.account = AccountId(EVERY)),
        (NOBODY, |_, sweep| sweep.whose = 5),
        (NOBODY, |_, sweep| (sweep.whose, sweep.detail) = (SWEEP_SESSION, 1)),
        (NOBODY, |_, sweep| (sweep.whose, sweep.detail) = (SWEEP_KEY, 101)),
        ("urgent, and of one symbol only", |pending, sweep| {
            (pending.symbol, sweep.whose) = (SymbolId(0), SWEEP_KILLED);
        }),
        ("a place of nobody, or of another", |_, sweep| sweep.place = 0),
    ];
    let venue = amid(&mass_cancel(CancelScope::Account));
    for (number, (why, alter)) in of_account.into_iter().enumerate() {
        assert_eq!(refusal(&venue.core, alter), why, "{number}");
    }
    let of_everybody: [(&str, Alteration); 4] = [
        ("", |_, _| {}),
        (OUT_OF_RANGE, |_, sweep| sweep.account = AccountId(1)),
        (OUT_OF_RANGE, |_, sweep| sweep.place = 0),
        (OUT_OF_RANGE, |pending, _| pending.symbol = SymbolId(EVERY)),
    ];
    let venue = amid(&ExpireAll { symbol: SymbolId(0), ..Default::default() });
    for (number, (why, alter)) in of_everybody.into_iter().enumerate() {
        assert_eq!(refusal(&venue.core, alter), why, "{number}");
    }
}
