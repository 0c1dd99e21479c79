//! One command that ends ten thousand orders; and what may come while work is pending: a kill, a halt, a
//! revoked key.

use crate::orders::{ONE, by, limit, limits, list, market, stop, stop_limit, trade_at, world};
use crate::venue::{Owned, Venue, WHOLE, aligned};
use crate::work::{Situation, Work, same_for_every, survives};
use touchline_protocol::message::Message;
use touchline_protocol::message::command::*;
use touchline_protocol::message::enums::{CancelScope, OrderType, Side};
use touchline_protocol::units::*;

/// Account 1 has most of the orders, the others have some among them.
const OWNER: AccountId = AccountId(1);

/// So many orders of every kind, of which nine in ten are the owner's; a list is two.
fn crowd(max_steps: u32, orders: i64) -> Venue {
    let mut venue = world(2, limits(max_steps, 2 * orders));
    trade_at(&mut venue, 5_000);
    let mut placed = 0;
    for n in 0.. {
        if placed == orders {
            return venue;
        }
        let key = if n % 10 == 9 { 2 + n as u64 % 3 } else { 1 };
        let away = n * 37 % 300;
        let order = match n % 8 {
            0 => stop(key, OrderType::StopLoss, Side::Sell, 4_000 - away),
            1 => stop_limit(key, OrderType::StopLossLimit, Side::Buy, (6_000 + away, 6_500)),
            2 => NewOrder {
                iceberg_quantity: WHOLE,
                ..limit(key, Side::Buy, 4_900 - away, 1 + n % 5)
            },
            3 | 4 => limit(key, Side::Sell, 5_100 + away, 1),
            5 if placed + 2 <= orders => {
                venue.must_quickly(&list(key, Side::Sell, 5_200 + away, 4_500 - away));
                placed += 2;
                continue;
            }
            _ => limit(key, Side::Buy, 4_800 - away, 2),
        };
        venue.must_quickly(&order);
        placed += 1;
    }
    unreachable!("it ends when all are placed")
}

/// The commands that end them: all of the owner's, or everybody's.
fn ends() -> [(Vec<u64>, bool); 5] {
    let cancel_all = CancelAll { command: by(1), symbol: ONE, ..Default::default() };
    let mass_cancel = MassCancel {
        command: by(1),
        symbol: ONE,
        scope: CancelScope::Account.to_wire(),
        ..Default::default()
    };
    let everywhere = MassCancel { symbol: SymbolId(EVERY), ..mass_cancel };
    let expire_all = ExpireAll { symbol: ONE, ..Default::default() };
    let kill = KillAccount { account: OWNER, killed: 1, ..Default::default() };
    [
        (words(&cancel_all), false),
        (words(&mass_cancel), false),
        (words(&everywhere), false),
        (words(&expire_all), true),
        (words(&kill), false),
    ]
}

fn words<M: Message>(message: &M) -> Vec<u64> {
    aligned(bytemuck::bytes_of(message))
}

/// Each order is ended once; the last event counts them; nobody else's is.
fn check_ends(work: &Work, everybody: bool) {
    let is_end = |event: &&Owned| matches!(event, Owned::Canceled(_));
    let ended = work.story.iter().filter(is_end).count() as u64;
    let Some(Owned::MassCanceled(total)) = work.story.last() else { panic!("no terminal reply") };
    assert_eq!(total.orders, ended);
    let core = &work.venue.core;
    assert_eq!(core.open_order_count(OWNER, ONE), 0);
    assert_eq!(core.counts().open_orders == 0, everybody);
    for asset in [AssetId(0), AssetId(1)] {
        assert_eq!(core.balance(OWNER, asset).unwrap().locked, Amount(0));
    }
}

#[test]
fn the_end_of_ten_thousand_orders_survives_crashes() {
    let prepare = |max_steps| crowd(max_steps, 10_000);
    // On every symbol, of everybody, and by the kill switch.
    for (command, everybody) in ends().into_iter().skip(2) {
        let situation = Situation::of(&prepare, command);
        let work = survives(&situation, 64, &[1, 40, 217]);
        check_ends(&work, everybody);
        assert!(work.transactions >= 9_000 * 2 / 64);
    }
}

#[test]
fn the_end_of_many_orders_is_the_same_however_it_is_divided() {
    let prepare = |max_steps| crowd(max_steps, 800);
    for (command, everybody) in ends() {
        let situation = Situation::of(&prepare, command);
        check_ends(&same_for_every(&situation, &[1, 2, 3, 7, 64, 256]), everybody);
    }
}

/// What overtakes pending work, or comes with a start of the engine: other limits, a lost connection.
fn overtaking() -> [Vec<u64>; 7] {
    let kill =
        |account| KillAccount { account: AccountId(account), killed: 1, ..Default::default() };
    let revoke = |key| RevokeKey { key: KeyId(key), ..Default::default() };
    let halt = SetSymbolStatus { symbol: ONE, status: 3, ..Default::default() };
    let fewer_steps = SetLimits { limits: limits(8, 2_000), ..Default::default() };
    [
        words(&kill(1)),
        words(&kill(2)),
        words(&revoke(1)),
        words(&revoke(2)),
        words(&halt),
        words(&fewer_steps),
        words(&EngineStarted::default()),
    ]
}

#[test]
fn what_overtakes_pending_work_survives_crashes() {
    let prepare = |max_steps| crowd(max_steps, 600);
    let everywhere = MassCancel {
        command: by(1),
        symbol: SymbolId(EVERY),
        scope: CancelScope::Account.to_wire(),
        ..Default::default()
    };
    // An aggressor that reaches all asks and fires the stops above them, one that takes all bids, and
    // a mass cancel.
    let begun = [
        words(&limit(1, Side::Buy, 7_000, 5_000)),
        words(&market(2, Side::Sell, 3_000)),
        words(&everywhere),
    ];
    for command in begun {
        for overtaking in overtaking() {
            let mut situation = Situation::of(&prepare, command.clone());
            situation.overtaking = Some((12, overtaking));
            // Right in front of what overtakes, and behind it.
            let work = survives(&situation, 16, &[5, 12, 13, 14]);
            assert_eq!(work.venue.core.counts().pending_work, 0);
        }
    }
}
