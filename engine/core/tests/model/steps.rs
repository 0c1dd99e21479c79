//! What the random clients, the operator and the engine do. Steps aim at what is there when their turn
//! comes (the n-th open order, prices around the last one), so that a run stays meaningful when others
//! are taken out of it.

use crate::venue::WHOLE;
use proptest::prelude::*;

/// Client order ids.
pub(crate) const NAMES: [&str; 4] = ["", "a", "b", "a longer client order id of 36 bytes"];

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
    /// Price and quantity.
    Extent(i64, i64),
}

/// An order, in ticks and lots of its symbol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    pub(crate) who: usize,
    pub(crate) symbol: u32,
    pub(crate) buy: bool,
    /// 1 GTC, 2 IOC, 3 FOK, 4 MARKET, 5 MARKET by quote quantity, 6 LIMIT_MAKER, 13 to 16 the stops.
    pub(crate) kind: u8,
    /// Iceberg slices, if above 0.
    pub(crate) slices: i64,
    /// Ticks of a stop price from the last price, away from being reached.
    pub(crate) stop: i64,
    pub(crate) price: i64,
    pub(crate) lots: i64,
    pub(crate) name: usize,
    /// `SelfTradePrevention`.
    pub(crate) mode: u8,
}

/// A list; its prices in ticks from the last price, away from each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListWish {
    pub(crate) who: usize,
    pub(crate) symbol: u32,
    pub(crate) buy: bool,
    pub(crate) limit: i64,
    pub(crate) stop: i64,
    /// Limit of the stop leg beyond its stop price; `None`: it becomes MARKET.
    pub(crate) beyond: Option<i64>,
    pub(crate) time_in_force: u8,
    /// Iceberg slices of the limit leg and of the stop leg, if above 0.
    pub(crate) slices: (i64, i64),
    pub(crate) lots: i64,
    /// Names of the list, the limit leg and the stop leg.
    pub(crate) names: (usize, usize, usize),
    pub(crate) mode: u8,
}

/// Mostly somebody's open order; else `who` it is with a number near those given out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Aim {
    pub(crate) who: usize,
    pub(crate) symbol: u32,
    pub(crate) pick: u64,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    New(Wish),
    List(ListWish),
    Flawed(Box<Step>, Flaw),
    /// Without having run the symbol's pending work.
    Hasty(Box<Step>),
    Cancel(Aim),
    /// By number, by name or by both; name 0 to 2 is the right one.
    CancelNamed {
        aim: Aim,
        by_id: bool,
        name: usize,
    },
    CancelList {
        aim: Aim,
        by_id: bool,
        name: usize,
    },
    CancelAll {
        who: usize,
        symbol: u32,
    },
    MassCancel {
        who: usize,
        symbol: u32,
        scope: u8,
    },
    Reduce {
        aim: Aim,
        lots: i64,
        odd: i64,
    },
    /// `price` in ticks, 0: as it is; `lots` and `odd` besides its quantity.
    Replace {
        aim: Aim,
        price: i64,
        lots: i64,
        odd: i64,
    },
    CancelReplace {
        aim: Aim,
        name: usize,
        wish: Wish,
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
    VenueFilters {
        orders: u32,
        algos: u32,
    },
    Account {
        account: u32,
        flags: u8,
        permissions: u8,
        mode: u8,
    },
    Fees {
        account: u32,
        symbol: u32,
        rates: [i64; 4],
    },
    Change {
        symbol: u32,
        variant: u8,
        flags: u8,
        permissions: u8,
    },
    Kill {
        account: u32,
        killed: u8,
    },
    ExpireAll {
        symbol: u32,
    },
    /// The account of an order that waits for its turn is killed.
    KillPending,
    /// The symbol of the head of the pending work is halted.
    HaltPending,
    /// Something is defined whose name is taken or that contradicts itself, or other rules.
    Define {
        what: u8,
    },
    Logon {
        who: usize,
        cancelling: bool,
    },
    Disconnect {
        who: usize,
    },
    /// The engine starts anew.
    Start,
    /// The key is revoked; the account gets another.
    Rekey {
        who: usize,
    },
    RunPending,
    Pass {
        ns: u64,
    },
}

/// The first takes everything, the second has filters, the third takes less; now and then none at all.
fn symbols() -> impl Strategy<Value = u32> {
    prop::sample::select([vec![0; 30], vec![1; 20], vec![2; 6], vec![3]].concat())
}

/// Mostly none, or few would be free.
fn names() -> impl Strategy<Value = usize> {
    prop::sample::select(vec![0, 0, 0, 0, 0, 0, 1, 2, 3])
}

fn modes() -> impl Strategy<Value = u8> {
    prop::sample::select(vec![0, 0, 0, 0, 0, 0, 1, 2, 3, 3, 4])
}

fn wishes(rules: u32) -> impl Strategy<Value = Wish> {
    let mut kinds = vec![1, 1, 1, 1, 1, 1, 2, 3, 3, 4];
    let slices = if rules > 1 { vec![0, 0, 1, 2, 3, 7] } else { vec![0] };
    if rules > 1 {
        kinds.extend([5, 6, 6, 13, 13, 14, 14, 14, 15, 16, 16]);
    }
    let stop = prop::sample::select(vec![1i64, 1, 1, 2, 2, 3, 4, 0, -1]);
    let kinds = (prop::sample::select(kinds), prop::sample::select(slices), stop);
    let mode = if rules > 1 { modes().boxed() } else { Just(0).boxed() };
    let who = (0..5usize, symbols(), any::<bool>());
    (who, kinds, (1..7i64, 0..7i64), 1..12i64, names(), mode).prop_map(
        |((who, symbol, buy), (kind, slices, stop), (price, more), lots, name, mode)| Wish {
            who,
            symbol,
            buy,
            // The third symbol takes few of them.
            kind: if symbol == 2 && lots > 2 { 1 + kind % 4 } else { kind },
            slices,
            stop,
            // Most near the middle, so that they meet.
            price: price + more,
            // Some that reach far into the book.
            lots: if lots == 11 { 40 } else { lots },
            name,
            mode,
        },
    )
}

pub(crate) fn list_wishes() -> impl Strategy<Value = ListWish> {
    let of_lists = [vec![0; 12], vec![1; 8], vec![2]].concat();
    let beyond = prop_oneof![1 => Just(None), 2 => (-2..3i64).prop_map(Some)];
    let slices = || prop::sample::select(vec![0, 0, 0, 2, 3]);
    let away = || prop::sample::select(vec![1i64, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 4, 0]);
    (
        (0..5usize, prop::sample::select(of_lists), any::<bool>()),
        (away(), away(), beyond, 1..4u8),
        ((slices(), slices()), 1..7i64),
        (names(), names(), names()),
        modes(),
    )
        .prop_map(|((who, symbol, buy), prices, (slices, lots), names, mode)| ListWish {
            who,
            symbol,
            buy,
            limit: prices.0,
            stop: prices.1,
            beyond: prices.2,
            time_in_force: prices.3,
            slices,
            lots,
            names,
            mode,
        })
}

pub(crate) fn aims() -> impl Strategy<Value = Aim> {
    (0..5usize, symbols(), any::<u64>()).prop_map(|(who, symbol, pick)| Aim { who, symbol, pick })
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
        prop_oneof![2 => 0..9u64, 1 => Just(5)].prop_map(Flaw::Key),
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
        prop_oneof![2 => Just(1), 1 => 0..4u8].prop_map(Flaw::Flags),
        prop::sample::select(vec![1, i64::MAX / 3]).prop_map(|both| Flaw::Extent(both, both)),
    ]
}

pub(crate) fn cancels() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => aims().prop_map(Step::Cancel),
        3 => (aims(), any::<bool>(), 0..NAMES.len()).prop_map(
            |(aim, by_id, name)| Step::CancelNamed { aim, by_id, name }),
        5 => (aims(), -1..9i64, prop::sample::select(vec![0, 0, 0, 1, -1])).prop_map(
            |(aim, lots, odd)| Step::Reduce { aim, lots, odd }),
    ]
}

fn operator() -> impl Strategy<Value = Step> {
    let amounts = || 1..3 * WHOLE;
    let statuses = [vec![2; 60], vec![0, 1, 3, 4, 5, 6, 7]].concat();
    let limits = prop_oneof![
        3 => Just((20, 16, 2, 2)),
        1 => (2..40u32, 2..30u32, 0..4u32, 1..8u32),
        2 => (10..40u32, 15..60u32, 0..4u32, 1..8u32),
    ];
    prop_oneof![
        3 => (0..6u32, 0..4u32, amounts()).prop_map(
            |(account, asset, amount)| Step::Deposit { account, asset, amount }),
        2 => (0..6u32, 0..4u32, amounts()).prop_map(
            |(account, asset, amount)| Step::Withdraw { account, asset, amount }),
        4 => (symbols(), prop::sample::select(statuses)).prop_map(
            |(symbol, status)| Step::Status { symbol, status }),
        2 => limits.prop_map(|(open_orders, price_levels, pending_work, max_steps)| {
            Step::Limits { open_orders, price_levels, pending_work, max_steps }
        }),
    ]
}

/// Time passes, and what else happens rarely.
pub(crate) fn passing() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::RunPending),
        12 => prop_oneof![4 => Just(1), 4 => 1..2_000_000_000u64, 1 => 1..90_000_000_000u64]
            .prop_map(|ns| Step::Pass { ns }),
        1 => (0..13u8).prop_map(|what| Step::Define { what }),
        1 => (0..5usize, any::<bool>()).prop_map(
            |(who, cancelling)| Step::Logon { who, cancelling }),
        1 => (0..5usize).prop_map(|who| Step::Disconnect { who }),
        1 => prop_oneof![Just(Step::Start), (0..5usize).prop_map(|who| Step::Rekey { who })],
    ]
}

/// Orders and lists; under rules 1 now and then what is not known there yet.
pub(crate) fn placements(rules: u32) -> impl Strategy<Value = Step> {
    let orders = |rules| wishes(rules).prop_map(Step::New);
    let lists = list_wishes().prop_map(Step::List);
    prop_oneof![
        if rules > 1 { 1 } else { 60 } => orders(1),
        if rules > 1 { 49 } else { 4 } => orders(2),
        if rules > 1 { 10 } else { 1 } => lists,
    ]
}

type Weighted = Vec<(u32, BoxedStrategy<Step>)>;

/// Changes of open orders, lists and whole accounts, of rules 2.
pub(crate) fn changes() -> Weighted {
    let named = (aims(), any::<bool>(), 0..NAMES.len());
    let cancel_list = named.prop_map(|(aim, by_id, name)| Step::CancelList { aim, by_id, name });
    let ticks = prop_oneof![1 => Just(0), 3 => 1..13i64];
    let replace = (aims(), ticks, -3..6i64, prop::sample::select(vec![0, 0, 0, 0, 1, -1]));
    let replace =
        replace.prop_map(|(aim, price, lots, odd)| Step::Replace { aim, price, lots, odd });
    let both = (aims(), 0..NAMES.len(), wishes(2));
    let both = both.prop_map(|(aim, name, wish)| Step::CancelReplace { aim, name, wish });
    let cancel_all = (0..5usize, symbols());
    let cancel_all = cancel_all.prop_map(|(who, symbol)| Step::CancelAll { who, symbol });
    let mass_cancel = (0..5usize, 0..5u32, 0..4u8);
    let mass_cancel =
        mass_cancel.prop_map(|(who, symbol, scope)| Step::MassCancel { who, symbol, scope });
    vec![
        (2, cancel_list.boxed()),
        (8, replace.boxed()),
        (8, both.boxed()),
        (2, cancel_all.boxed()),
        (2, mass_cancel.boxed()),
    ]
}

/// What operators do from rules 2 on. Most of it is undone sooner than it is done.
pub(crate) fn interventions() -> Weighted {
    let filters = prop::sample::select(vec![(14, 5), (14, 5), (14, 5), (0, 0), (5, 5), (14, 2)]);
    let filters = filters.prop_map(|(orders, algos)| Step::VenueFilters { orders, algos });
    let kill = (0..6u32, prop::sample::select([vec![0; 14], vec![1, 2]].concat()));
    let kill = kill.prop_map(|(account, killed)| Step::Kill { account, killed });
    let flags = prop::sample::select([vec![7; 20], vec![1, 3, 5, 6, 8]].concat());
    let permissions = || prop::sample::select([vec![1; 60], vec![3, 2, 0, 16]].concat());
    let account = (0..6u32, flags, permissions(), prop_oneof![3 => modes(), 1 => 0..6u8]);
    let account = account.prop_map(|(account, flags, permissions, mode)| Step::Account {
        account,
        flags,
        permissions,
        mode,
    });
    let rate = || prop::sample::select(vec![0, 1, 100_000, WHOLE / 7, WHOLE / 2, WHOLE, -1]);
    let rates = prop_oneof![1 => Just([-1; 4]), 3 => [rate(), rate(), rate(), rate()]];
    let someone = |all: u32| prop_oneof![3 => 0..all, 1 => Just(u32::MAX)];
    let fees = (someone(6), someone(4), rates);
    let fees = fees.prop_map(|(account, symbol, rates)| Step::Fees { account, symbol, rates });
    let flags = prop::sample::select(vec![7, 7, 7, 7, 5, 2, 8]);
    let change = (symbols(), 0..16u8, flags, permissions());
    let change = change.prop_map(|(symbol, variant, flags, permissions)| Step::Change {
        symbol,
        variant,
        flags,
        permissions,
    });
    vec![
        (1, filters.boxed()),
        (6, kill.boxed()),
        (2, Just(Step::KillPending).boxed()),
        (1, symbols().prop_map(|symbol| Step::ExpireAll { symbol }).boxed()),
        (4, account.boxed()),
        (3, fees.boxed()),
        (3, change.boxed()),
    ]
}

pub(crate) fn steps(rules: u32) -> impl Strategy<Value = Step> {
    use prop::strategy::Union;
    let mut of_rules_2 = [changes(), interventions()].concat();
    if rules == 1 {
        // The core knows none of them, or only since it has other rules.
        of_rules_2 = vec![(4, Union::new_weighted(of_rules_2).boxed())];
    }
    let mut all: Weighted = vec![
        (100, placements(rules).boxed()),
        (20, cancels().boxed()),
        (8, operator().boxed()),
        (20, passing().boxed()),
    ];
    all.extend(of_rules_2);
    let sound = Union::new_weighted(all);
    prop_oneof![
        20 => sound.clone(),
        1 => (sound.clone(), flaws()).prop_map(|(step, flaw)| Step::Flawed(Box::new(step), flaw)),
        1 => sound.prop_map(|step| Step::Hasty(Box::new(step))),
    ]
}
