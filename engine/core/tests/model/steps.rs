//! What the random clients, the operator and the engine do.

use crate::NAMES;
use crate::venue::WHOLE;
use proptest::prelude::*;

/// One thing in a command that a client got wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Flaw {
    Session(u32),
    Epoch,
    Sequence(u64),
    Key(u64),
    Late,
    Side(u8),
    Type(u8),
    Time(u8),
    Price(i64),
    Quantity(i64),
    Quote(i64),
    Stop(i64),
    Iceberg(i64),
    Prevention(u8),
    Flags(u8),
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    New {
        who: usize,
        symbol: u32,
        buy: bool,
        kind: u8,
        /// Iceberg slices, if above 0.
        slices: i64,
        /// Tick of a stop price.
        stop: i64,
        price: i64,
        lots: i64,
        name: usize,
    },
    Flawed(Box<Step>, Flaw),
    /// Places without having run the symbol's pending work.
    Hasty(Box<Step>),
    Cancel {
        who: usize,
        symbol: u32,
        pick: u64,
    },
    CancelNamed {
        who: usize,
        symbol: u32,
        pick: u64,
        by_id: bool,
        name: usize,
    },
    Reduce {
        who: usize,
        symbol: u32,
        pick: u64,
        lots: i64,
        odd: i64,
    },
    Deposit {
        account: u32,
        asset: u32,
        amount: i64,
    },
    Withdraw {
        account: u32,
        asset: u32,
        amount: i64,
    },
    Status {
        symbol: u32,
        status: u8,
    },
    Limits {
        open_orders: u32,
        price_levels: u32,
        pending_work: u32,
        max_steps: u32,
    },
    RunPending,
    Pass {
        ns: u64,
    },
}

fn placements(rules: u32) -> impl Strategy<Value = Step> {
    // Kinds: 0 and 1 GTC, 2 IOC, 3 FOK, 4 MARKET.
    // Of rules version 2: 5 MARKET by quote quantity, 6 LIMIT_MAKER, 13 to 16 the stops.
    let mut all = vec![0, 0, 0, 0, 1, 1, 2, 3, 3, 4];
    let slices = if rules > 1 { vec![0, 0, 1, 2, 3, 7] } else { vec![0] };
    if rules > 1 {
        all.extend([5, 6, 6, 13, 13, 14, 14, 14, 15, 16, 16]);
    }
    let kinds = (prop::sample::select(all), prop::sample::select(slices), 1..13i64);
    (0..4usize, 0..3u32, any::<bool>(), kinds, 1..13i64, 1..12i64, 0..NAMES.len()).prop_map(
        |(who, symbol, buy, (kind, slices, stop), price, lots, name)| Step::New {
            who,
            symbol,
            buy,
            kind,
            slices,
            stop,
            price,
            // Some that reach far into the book.
            lots: if lots == 11 { 40 } else { lots },
            name,
        },
    )
}

fn extremes() -> impl Strategy<Value = i64> {
    prop_oneof![
        prop::sample::select(vec![i64::MIN, -1, 0, 1, 2, i64::MAX / 2, i64::MAX - 1, i64::MAX]),
        any::<i64>(),
        0..1_000_000_000i64,
    ]
}

fn flaws() -> impl Strategy<Value = Flaw> {
    prop_oneof![
        (1..9u32).prop_map(Flaw::Session),
        Just(Flaw::Epoch),
        (0..40u64).prop_map(Flaw::Sequence),
        (0..9u64).prop_map(Flaw::Key),
        Just(Flaw::Late),
        any::<u8>().prop_map(Flaw::Side),
        (0..10u8).prop_map(Flaw::Type),
        (0..5u8).prop_map(Flaw::Time),
        extremes().prop_map(Flaw::Price),
        extremes().prop_map(Flaw::Quantity),
        extremes().prop_map(Flaw::Quote),
        extremes().prop_map(Flaw::Stop),
        extremes().prop_map(Flaw::Iceberg),
        any::<u8>().prop_map(Flaw::Prevention),
        (0..4u8).prop_map(Flaw::Flags),
    ]
}

pub(crate) fn steps(rules: u32) -> impl Strategy<Value = Step> {
    let amounts = 1..3 * WHOLE;
    let target = (0..4usize, 0..4u32, any::<u64>());
    prop_oneof![
        30 => placements(rules),
        4 => (placements(rules), flaws()).prop_map(|(step, flaw)| Step::Flawed(Box::new(step), flaw)),
        2 => placements(rules).prop_map(|step| Step::Hasty(Box::new(step))),
        6 => target.clone().prop_map(|(who, symbol, pick)| Step::Cancel { who, symbol, pick }),
        3 => (target.clone(), any::<bool>(), 0..NAMES.len()).prop_map(
            |((who, symbol, pick), by_id, name)| {
                Step::CancelNamed { who, symbol, pick, by_id, name }
            }),
        5 => (target, -1..9i64, prop::sample::select(vec![0, 0, 0, 1, -1])).prop_map(
            |((who, symbol, pick), lots, odd)| Step::Reduce { who, symbol, pick, lots, odd }),
        1 => (0..6u32, 0..3u32, amounts.clone()).prop_map(
            |(account, asset, amount)| Step::Deposit { account, asset, amount }),
        1 => (0..6u32, 0..3u32, amounts).prop_map(
            |(account, asset, amount)| Step::Withdraw { account, asset, amount }),
        1 => (0..3u32, prop::sample::select(vec![2, 2, 2, 2, 2, 2, 5, 1, 7])).prop_map(
            |(symbol, status)| Step::Status { symbol, status }),
        1 => (2..40u32, 2..30u32, 0..4u32, 1..5u32).prop_map(
            |(open_orders, price_levels, pending_work, max_steps)| {
                Step::Limits { open_orders, price_levels, pending_work, max_steps }
            }),
        2 => Just(Step::RunPending),
        6 => prop_oneof![4 => Just(1), 4 => 1..2_000_000_000u64, 1 => 1..90_000_000_000u64].prop_map(|ns| Step::Pass { ns }),
    ]
}
