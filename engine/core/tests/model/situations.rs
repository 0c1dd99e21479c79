//! Steps that meet in situations which steps of every kind seldom reach. Called by runs, and by those of snapshots.

use crate::steps::{ListWish, Step, Wish, cancels, list_wishes, passing};
use proptest::prelude::*;

/// Two accounts that mostly meet themselves, with MARKET orders and icebergs, on a venue whose rules go up
/// now and then.
pub(crate) fn steps_among_own_orders() -> impl Strategy<Value = Step> {
    let kinds = prop::sample::select(vec![1u8, 1, 1, 1, 2, 3, 4, 4, 4, 5, 5, 6, 13, 14, 15, 16]);
    let slices = prop::sample::select(vec![0i64, 0, 2, 3, 7]);
    let modes = || prop::sample::select(vec![0u8, 1, 2, 3, 3, 3, 3, 3, 4]);
    let who = || prop::sample::select(vec![0usize, 0, 1, 1, 4]);
    let places = (prop::sample::select(vec![0u32, 0, 0, 1]), any::<bool>());
    let amounts = ((1..7i64, 0..7i64), prop::sample::select(vec![1i64, 2, 3, 5, 8, 13]), 1..3i64);
    let new = (who(), places, kinds, slices, amounts, modes()).prop_map(
        |(who, (symbol, buy), kind, slices, ((price, more), lots, stop), mode)| {
            let price = price + more;
            let name = 0;
            Step::New(Wish { who, symbol, buy, kind, slices, stop, price, lots, name, mode })
        },
    );
    let list = (list_wishes(), who(), modes());
    let list = list.prop_map(|(wish, who, mode)| Step::List(ListWish { who, mode, ..wish }));
    let account = (1..3u32, modes()).prop_map(|(account, mode)| {
        let (flags, permissions) = (7, 1);
        Step::Account { account, flags, permissions, mode }
    });
    let limits = (1..8u32).prop_map(|max_steps| {
        let (open_orders, price_levels, pending_work) = (40, 60, 3);
        Step::Limits { open_orders, price_levels, pending_work, max_steps }
    });
    prop_oneof![
        60 => new,
        8 => list,
        8 => cancels(),
        8 => Just(Step::RunPending),
        // Their order rate leaves room for all of it.
        24 => Just(Step::Pass { ns: 2_000_000_000 }),
        4 => passing(),
        2 => account,
        2 => limits,
        2 => (6..9u8).prop_map(|what| Step::Define { what }),
    ]
}

/// Few traders whose stops set each other off on one symbol, which is halted and let go on in the middle of it.
pub(crate) fn steps_in_halts() -> impl Strategy<Value = Step> {
    let kinds =
        prop::sample::select(vec![1u8, 1, 1, 1, 1, 2, 4, 13, 13, 13, 14, 14, 15, 15, 16, 16]);
    let places = (prop::sample::select(vec![0u32, 0, 0, 0, 0, 1]), any::<bool>());
    let new = (0..4usize, places, kinds, (1..7i64, 0..7i64), 1..5i64, 1..4i64).prop_map(
        |(who, (symbol, buy), kind, (price, more), lots, stop)| {
            let (price, slices, name, mode) = (price + more, 0, 0, 0);
            Step::New(Wish { who, symbol, buy, kind, slices, stop, price, lots, name, mode })
        },
    );
    let status =
        (prop::sample::select(vec![0u32, 0, 0, 1]), 0..28u8).prop_map(|(symbol, status)| {
            let status = if status > 7 { 2 } else { status };
            Step::Status { symbol, status }
        });
    let limits =
        prop::sample::select(vec![(0u32, 1u32), (1, 1), (2, 1), (2, 2), (2, 2), (2, 3), (3, 6)]);
    let limits = limits.prop_map(|(pending_work, max_steps)| {
        let (open_orders, price_levels) = (40, 60);
        Step::Limits { open_orders, price_levels, pending_work, max_steps }
    });
    let rarely = prop_oneof![
        4 => passing(),
        8 => (0..4usize, 0..2u32).prop_map(|(who, symbol)| Step::CancelAll { who, symbol }),
        1 => (0..4usize, 0..5u32, 0..2u8).prop_map(
            |(who, symbol, scope)| Step::MassCancel { who, symbol, scope }),
        1 => (0..2u32).prop_map(|symbol| Step::ExpireAll { symbol }),
        1 => (1..5u32).prop_map(|account| Step::Kill { account, killed: 1 }),
        8 => (1..5u32).prop_map(|account| Step::Kill { account, killed: 0 }),
        4 => Just(Step::VenueFilters { orders: 0, algos: 0 }),
        1 => Just(Step::Define { what: 9 }),
    ];
    prop_oneof![
        50 => new,
        8 => list_wishes().prop_map(Step::List),
        6 => cancels(),
        12 => status,
        12 => Just(Step::HaltPending),
        12 => Just(Step::RunPending),
        // Their order rate leaves room for all of it.
        20 => Just(Step::Pass { ns: 2_000_000_000 }),
        2 => limits,
        6 => rarely,
    ]
}
