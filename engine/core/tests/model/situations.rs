//! Steps that meet in situations which steps of every kind seldom reach. Called by runs, and by those of snapshots.

use crate::steps::{
    Flaw, ListWish, Step, Wish, aims, cancels, changes, interventions, list_wishes, passing,
    placements,
};
use crate::venue::WHOLE;
use proptest::prelude::*;
use proptest::strategy::Union;
use touchline_core::AMOUNT_MAX;

const SECOND: u64 = 1_000_000_000;

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

/// Kills, revoked keys, ends of connections and other sweeps that meet in the queue of pending work, with orders that
/// go on taking and stops that have their turn between them.
pub(crate) fn steps_in_sweeps() -> impl Strategy<Value = Step> {
    let limits = (0..5u32, 1..4u32, prop::sample::select(vec![12u32, 30, 60])).prop_map(
        |(pending_work, max_steps, room)| {
            let (open_orders, price_levels) = (room, room);
            Step::Limits { open_orders, price_levels, pending_work, max_steps }
        },
    );
    let sweep = prop_oneof![
        4 => (0..5usize, 0..5u32, 0..2u8).prop_map(
            |(who, symbol, scope)| Step::MassCancel { who, symbol, scope }),
        2 => (0..5usize, 0..3u32).prop_map(|(who, symbol)| Step::CancelAll { who, symbol }),
        2 => (0..3u32).prop_map(|symbol| Step::ExpireAll { symbol }),
        4 => (1..5u32).prop_map(|account| Step::Kill { account, killed: 1 }),
        4 => (0..5usize).prop_map(|who| Step::Disconnect { who }),
        1 => (0..5usize).prop_map(|who| Step::Rekey { who }),
        1 => Just(Step::Start),
        2 => Just(Step::KillPending),
        1 => Just(Step::HaltPending),
    ];
    let back = prop_oneof![
        8 => (1..5u32).prop_map(|account| Step::Kill { account, killed: 0 }),
        4 => (0..5usize).prop_map(|who| Step::Logon { who, cancelling: true }),
        4 => (0..3u32).prop_map(|symbol| Step::Status { symbol, status: 2 }),
        1 => Just(Step::VenueFilters { orders: 0, algos: 0 }),
        1 => (6..13u8).prop_map(|what| Step::Define { what }),
    ];
    let hastily = |step: BoxedStrategy<Step>| {
        prop_oneof![
            1 => step.clone(),
            2 => step.prop_map(|step| Step::Hasty(Box::new(step))),
        ]
    };
    prop_oneof![
        60 => placements(2),
        5 => cancels(),
        14 => hastily(sweep.boxed()),
        16 => back,
        12 => Just(Step::RunPending),
        // Their order rate leaves room for all of it.
        24 => Just(Step::Pass { ns: 2_000_000_000 }),
        3 => limits,
        6 => Union::new_weighted(changes()),
    ]
}

/// Orders with prices and quantities from the least to the largest, at the edges of what a balance and a notional can
/// be.
fn orders_at_extremes() -> impl Strategy<Value = Step> {
    let price = || {
        prop::sample::select(vec![
            1,
            2,
            3,
            WHOLE - 1,
            WHOLE,
            WHOLE + 1,
            33_333_337,
            7 << 40,
            AMOUNT_MAX / 3,
            AMOUNT_MAX,
            i64::MAX - 1,
            i64::MAX,
        ])
    };
    // What costs so much at a price, or a little more or less.
    let worth = vec![1, 2, WHOLE, 77 << 32, AMOUNT_MAX / 9, AMOUNT_MAX / 2, AMOUNT_MAX];
    let extent = (price(), prop::sample::select(worth), -2..3i64);
    let extent = extent.prop_map(|(price, worth, more)| {
        let quantity = i128::from(worth) * i128::from(WHOLE) / i128::from(price) + i128::from(more);
        Flaw::Extent(price, i64::try_from(quantity.max(1)).unwrap_or(i64::MAX))
    });
    let flaw = prop_oneof![
        12 => extent,
        2 => large_amounts().prop_map(Flaw::Quote),
        2 => price().prop_map(Flaw::Stop),
        2 => price().prop_map(Flaw::Price),
    ];
    (placements(2), flaw).prop_map(|(step, flaw)| Step::Flawed(Box::new(step), flaw))
}

fn large_amounts() -> impl Strategy<Value = i64> {
    prop::sample::select(vec![1, WHOLE, 5 << 40, AMOUNT_MAX / 9, AMOUNT_MAX / 5, AMOUNT_MAX])
}

/// Orders of the least and the largest numbers, changed by such, on a venue whose accounts come to own all there can be.
pub(crate) fn steps_of_extremes() -> impl Strategy<Value = Step> {
    let odd = || prop::sample::select(vec![1, -1, WHOLE, 5 << 40, AMOUNT_MAX / 7]);
    let replace = (aims(), 0..4i64, -3..6i64, odd());
    let replace =
        replace.prop_map(|(aim, price, lots, odd)| Step::Replace { aim, price, lots, odd });
    let reduce = (aims(), odd()).prop_map(|(aim, odd)| Step::Reduce { aim, lots: 0, odd });
    let deposit = (1..5u32, 0..3u32, large_amounts());
    let deposit =
        deposit.prop_map(|(account, asset, amount)| Step::Deposit { account, asset, amount });
    let limits = (1..8u32).prop_map(|max_steps| {
        let (open_orders, price_levels, pending_work) = (60, 60, 4);
        Step::Limits { open_orders, price_levels, pending_work, max_steps }
    });
    prop_oneof![
        80 => orders_at_extremes(),
        8 => replace,
        6 => reduce,
        6 => cancels(),
        16 => deposit,
        4 => Just(Step::RunPending),
        // Their order rate leaves room for all of it.
        24 => Just(Step::Pass { ns: 2_000_000_000 }),
        3 => limits,
        3 => Union::new_weighted(interventions()),
        2 => (1..5u32).prop_map(|account| Step::Kill { account, killed: 0 }),
        2 => Just(Step::VenueFilters { orders: 0, algos: 0 }),
    ]
}

/// Hours, with averages of up to an hour, whose minutes come and go between trades.
pub(crate) fn steps_over_hours() -> impl Strategy<Value = Step> {
    let minute = 60 * SECOND;
    let pass = prop_oneof![
        4 => Just(minute),
        2 => Just(minute - 1),
        2 => Just(1),
        2 => Just(30 * minute),
        2 => Just(59 * minute),
        2 => Just(60 * minute),
        2 => Just(24 * 60 * minute),
        8 => 1..2 * minute,
    ];
    let change = (0..2u32, 11..15u8).prop_map(|(symbol, variant)| {
        let (flags, permissions) = (7, 1);
        Step::Change { symbol, variant, flags, permissions }
    });
    let validate = placements(2).prop_map(|step| Step::Flawed(Box::new(step), Flaw::Flags(1)));
    prop_oneof![
        60 => placements(2),
        6 => validate,
        8 => cancels(),
        40 => pass.prop_map(|ns| Step::Pass { ns }),
        6 => change,
        3 => Just(Step::RunPending),
        2 => (1..5u32).prop_map(|account| Step::Kill { account, killed: 0 }),
        2 => Just(Step::VenueFilters { orders: 0, algos: 0 }),
        1 => (6..13u8).prop_map(|what| Step::Define { what }),
        5 => Union::new_weighted(changes()),
    ]
}
