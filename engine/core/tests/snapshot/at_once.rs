//! All that makes work go on over transactions, at once and in little room: orders among those of their own accounts,
//! stops in halts, sweeps of all kinds, kills, changes of the limits, and rules that go up in the middle of it. Behind
//! every command the venue is written and read, and what was read goes on beside it, for a few commands or for many.

use crate::runs::{commands, first_seed, sampled};
use crate::situations::{steps_among_own_orders, steps_in_halts, steps_in_sweeps};
use crate::steps::{Step, Wish, cancels, changes, list_wishes, placements};
use crate::twins::Twins;
use crate::under_way::UnderWay;
use crate::world::World;
use proptest::prelude::*;
use proptest::strategy::Union;
use std::collections::BTreeMap;
use touchline_protocol::snapshot::records::{NO_PLACE, PendingSweepRecord, SWEEP_KILLED};

/// Commands of a run unless `TOUCHLINE_COMMANDS` says otherwise.
const COMMANDS: u64 = 12_000;
/// Turns of a case at most.
const TURNS: usize = 400;
/// Most venues that were read are looked at for so many turns, one in so many for more.
const SHORTLY: usize = 3;
const RARELY: usize = 16;
const LONG: usize = 80;

#[derive(Clone, Debug)]
enum Turn {
    /// Whatever is pending.
    Now(Step),
    /// Behind all that is pending.
    Settled(Step),
    /// What is pending goes on, if anything is.
    Run,
    /// The rules go up in the middle of pending work.
    NextRules,
    /// Whose orders a sweep is about that has kept its place is killed.
    KillSwept,
    /// The limits: so many orders and price levels more than are in use.
    Limits { orders: u32, levels: u32, pending_work: u32, max_steps: u32 },
}

/// Little room, and few steps.
fn limits() -> impl Strategy<Value = Turn> {
    let more = || prop::sample::select(vec![0u32, 1, 2, 4, 8, 8, 12, 12]);
    let pending_work = prop::sample::select(vec![0u32, 1, 1, 1, 2, 2, 3]);
    let max_steps = prop::sample::select(vec![1u32, 1, 1, 2, 2, 3, 4]);
    (more(), more(), pending_work, max_steps).prop_map(
        |(orders, levels, pending_work, max_steps)| Turn::Limits {
            orders,
            levels,
            pending_work,
            max_steps,
        },
    )
}

/// Small orders of all kinds that mostly rest or wait, and large ones that mostly take.
fn orders() -> impl Strategy<Value = Step> {
    let symbols = || prop::sample::select(vec![0u32, 0, 0, 0, 1, 2]);
    let modes = || prop::sample::select(vec![0u8, 0, 0, 1, 2, 3, 3, 4]);
    let kinds = vec![1u8, 1, 1, 1, 1, 6, 13, 13, 14, 14, 15, 16, 16];
    let kinds = (prop::sample::select(kinds), prop::sample::select(vec![0i64, 0, 2, 3]));
    let who = prop::sample::select(vec![0usize, 0, 0, 4, 4, 1, 2, 3]);
    let small = ((who, symbols(), any::<bool>()), kinds, 1..5i64, 2..5i64, 1..4i64, modes());
    let small = small.prop_map(|((who, symbol, buy), (kind, slices), away, lots, stop, mode)| {
        let price = if buy { 7 - away } else { 5 + away };
        Step::New(Wish { who, symbol, buy, kind, slices, stop, price, lots, name: 0, mode })
    });
    let kinds = prop::sample::select(vec![1u8, 1, 1, 2, 3, 4, 4, 4, 5]);
    let large = ((0..5usize, symbols(), any::<bool>()), kinds, 1..5i64, 4..20i64, modes());
    let large = large.prop_map(|((who, symbol, buy), kind, away, lots, mode)| {
        let (price, slices, stop) = (if buy { 6 + away } else { 6 - away }, 0, 1);
        Step::New(Wish { who, symbol, buy, kind, slices, stop, price, lots, name: 0, mode })
    });
    prop_oneof![3 => small, 2 => large]
}

/// Ends of many orders; Ann has two sessions, and each of them passes over the other's.
fn sweeps() -> impl Strategy<Value = Step> {
    let who = || prop::sample::select(vec![0usize, 0, 4, 4, 1, 2]);
    prop_oneof![
        6 => (who(), 0..5u32, 0..2u8).prop_map(
            |(who, symbol, scope)| Step::MassCancel { who, symbol, scope: 1 + scope }),
        2 => (who(), 0..3u32).prop_map(|(who, symbol)| Step::CancelAll { who, symbol }),
        1 => (0..3u32).prop_map(|symbol| Step::ExpireAll { symbol }),
        2 => (1..4u32).prop_map(|account| Step::Kill { account, killed: 1 }),
        2 => who().prop_map(|who| Step::Disconnect { who }),
        1 => who().prop_map(|who| Step::Rekey { who }),
    ]
}

fn turns() -> impl Strategy<Value = Turn> {
    let steps = prop_oneof![
        60 => orders(),
        8 => placements(2),
        8 => list_wishes().prop_map(Step::List),
        8 => steps_among_own_orders(),
        8 => steps_in_halts(),
        8 => steps_in_sweeps(),
        3 => cancels(),
        6 => Union::new_weighted(changes()),
        6 => sweeps(),
        14 => Just(Step::HaltPending),
        2 => Just(Step::KillPending),
        14 => (0..3u32).prop_map(|symbol| Step::Status { symbol, status: 2 }),
        6 => (1..5u32).prop_map(|account| Step::Kill { account, killed: 0 }),
        8 => Just(Step::Pass { ns: 2_000_000_000 }),
    ];
    let steps = steps.boxed();
    prop_oneof![
        60 => steps.clone().prop_map(Turn::Now),
        20 => steps.prop_map(Turn::Settled),
        16 => Just(Turn::Run),
        8 => Just(Turn::NextRules),
        16 => Just(Turn::KillSwept),
        4 => limits(),
    ]
}

/// How often what occurred.
type Seen = BTreeMap<String, u64>;

struct Run<'seen> {
    world: World,
    twins: Twins,
    steps: usize,
    seen: &'seen mut Seen,
}

impl Run<'_> {
    fn turn(&mut self, turn: &Turn) {
        match turn {
            Turn::Now(step) => self.step(&hastily(step)),
            Turn::Settled(step) => {
                while self.has_pending() {
                    self.step(&Step::RunPending);
                }
                self.step(&hastily(step));
            }
            Turn::Run if self.has_pending() => self.step(&Step::RunPending),
            // The step counts rules from 4 on.
            Turn::NextRules if self.has_pending() => {
                let what = self.world.model.rules as u8 + 5;
                self.step(&Step::Define { what });
            }
            Turn::Run | Turn::NextRules => {}
            Turn::KillSwept => {
                let sweeps = UnderWay::of(&self.world.venue.core).sweeps;
                let kept = sweeps.iter().find(|sweep| sweep.place != NO_PLACE);
                if let Some(PendingSweepRecord { account, .. }) = kept {
                    self.step(&Step::Kill { account: account.0, killed: 1 });
                }
            }
            &Turn::Limits { orders, levels, pending_work, max_steps } => {
                let open_orders = self.world.model.open_orders_in_use() + orders;
                let price_levels = self.world.model.price_levels_kept() + levels;
                self.step(&Step::Limits { open_orders, price_levels, pending_work, max_steps });
            }
        }
    }

    fn has_pending(&self) -> bool {
        self.world.venue.core.pending_head().is_some()
    }

    fn step(&mut self, step: &Step) {
        let before = UnderWay::of(&self.world.venue.core);
        self.world.step(step);
        self.twins.follow(&self.world.venue);
        self.steps += 1;
        let left = if self.steps.is_multiple_of(RARELY) { LONG } else { SHORTLY };
        self.twins.add(&self.world.venue, left);
        self.note(&before);
    }

    fn note(&mut self, before: &UnderWay) {
        let now = UnderWay::of(&self.world.venue.core);
        let mut see = |what: String| *self.seen.entry(what).or_default() += 1;
        if now.rules > before.rules {
            let rules = now.rules;
            let orders = &now.orders;
            let kinds = [
                ("an order", !orders.is_empty()),
                ("stops that were reached", !now.reached.is_empty()),
                ("a sweep", !now.sweeps.is_empty()),
                ("what was given up", orders.iter().any(|(_, order)| order.prevented > 0)),
            ];
            for (kind, _) in kinds.into_iter().filter(|(_, holds)| *holds) {
                see(format!("rules {rules} in the middle of {kind}"));
            }
        }
        let limit = now.limits.pending_work as usize;
        let begun = now.sweeps.iter().filter(|sweep| sweep.place != NO_PLACE);
        let kills = now.sweeps.iter().filter(|sweep| sweep.whose == SWEEP_KILLED);
        let [begun, kills] = [begun.count(), kills.count()];
        let lowered = now.limits.pending_work < before.limits.pending_work
            || now.limits.price_levels < before.limits.price_levels;
        let kinds = [
            ("more places kept than the limit on pending work", now.kept() > limit),
            ("more pending work than its limit", now.ordinary() > limit),
            ("limits lowered below what is pending", lowered && now.ordinary() > limit),
            ("limits lowered while an order is taking", lowered && !now.orders.is_empty()),
            ("a sweep that keeps a place", begun > 0),
            ("two sweeps that keep places", begun > 1),
            ("a kill behind a sweep that keeps a place", begun > 0 && kills > 0),
            ("a kill and turns of stops", kills > 0 && !now.reached.is_empty()),
            ("work on three symbols", now.orders.len() + now.reached.len() > 2),
        ];
        kinds.into_iter().filter(|(_, holds)| *holds).for_each(|(kind, _)| see(kind.to_owned()));
    }
}

/// The step itself, without what is pending being run for it in one go.
fn hastily(step: &Step) -> Step {
    Step::Hasty(Box::new(step.clone()))
}

/// Plays a case; gives how many commands were decided, and how many of them by what was read as well.
fn play(rules: u32, turns: &[Turn], seen: &mut Seen) -> (u64, u64) {
    let mut run = Run { world: World::new(rules), twins: Twins::new(), steps: 0, seen };
    run.step(&Step::VenueFilters { orders: 0, algos: 0 });
    for turn in turns {
        run.turn(turn);
    }
    let Run { world, mut twins, .. } = run;
    let world = world.drain();
    twins.follow(&world.venue);
    world.venue.check_replay();
    *seen.entry("refused".to_owned()).or_default() += world.venue.refused.len() as u64;
    (world.census.commands, twins.compared)
}

/// What must occur in a run. What is rarer has tests of its own: `crowded`, `rules_up` and `within_list`.
const EXPECTED: [&str; 13] = [
    "a kill and turns of stops",
    "a kill behind a sweep that keeps a place",
    "a sweep that keeps a place",
    "limits lowered while an order is taking",
    "more pending work than its limit",
    "more places kept than the limit on pending work",
    "refused",
    "rules 3 in the middle of an order",
    "rules 4 in the middle of an order",
    "rules 5 in the middle of stops that were reached",
    "rules 6 in the middle of an order",
    "rules 7 in the middle of an order",
    "rules 8 in the middle of a sweep",
];

#[test]
fn what_was_read_goes_on_beside_what_was_written() {
    let least = commands(COMMANDS);
    let mut seen = Seen::new();
    let is_missing = |seen: &Seen| EXPECTED.iter().any(|what| !seen.contains_key(*what));
    let (mut done, mut compared, mut seed) = (0, 0, first_seed());
    // What is rare is at times in none of so many: so they go on until all has occurred, up to twenty times as long.
    while done < least || least >= COMMANDS && done < 20 * least && is_missing(&seen) {
        // Rules that have far to go up are the most.
        let rules = [2, 2, 3, 4, 5, 6, 7, 8][(seed % 8) as usize];
        eprintln!("rules {rules}, TOUCHLINE_SEED={seed}");
        let turns = sampled(prop::collection::vec(turns(), 1..TURNS), seed);
        let (commands, twice) = play(rules, &turns, &mut seen);
        (done, compared) = (done + commands, compared + twice);
        seed = seed.wrapping_add(1);
    }
    eprintln!("{done} commands, {compared} decided by what was read: {seen:#?}");
    assert!(least < COMMANDS || !is_missing(&seen), "of {EXPECTED:#?}");
}
