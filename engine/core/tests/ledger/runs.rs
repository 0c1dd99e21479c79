//! Cases: a venue with tight limits, whose pending work others overtake and which is written and read again; and two
//! venues of which one divides its work as finely as can be.

use crate::acts::{Act, next};
use crate::kept::Kept;
use crate::orders::ACCOUNTS;
use crate::parts;
use crate::scales::{Random, SCALES, Scale};
use crate::venue::{Owned, Venue, WHOLE, roomy};
use std::collections::BTreeMap;
use touchline_core::{AMOUNT_MAX, ORDER_TYPES_2, RULES_MAX, Reject};
use touchline_protocol::message::command::*;
use touchline_protocol::units::*;

/// Cases of each kind unless `TOUCHLINE_CASES` says otherwise: some of each scale.
const CASES: u64 = 20 * SCALES.len() as u64;
const ACTS: u64 = 200;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a whole number"))
}

/// The seeds of a run: others in every process, or the one that is asked for.
fn seeds() -> std::ops::Range<u64> {
    use std::hash::{BuildHasher, RandomState};
    let asked = variable("TOUCHLINE_SEED");
    let first = asked.unwrap_or_else(|| RandomState::new().hash_one("seed") >> 16);
    let cases = if asked.is_some() { 1 } else { variable("TOUCHLINE_CASES").unwrap_or(CASES) };
    first..first + cases
}

fn scale_of(seed: u64) -> Scale {
    SCALES[(seed % SCALES.len() as u64) as usize]
}

struct Run {
    venue: Venue,
    kept: Kept,
}

impl Run {
    /// Two symbols over the same pair, and one the other way round; accounts that pay commissions of any size.
    fn new(random: &mut Random, scale: &Scale, limits: Limits) -> Self {
        let mut venue = Venue::new();
        venue.take_rules(RULES_MAX);
        venue.set_limits(limits);
        let (base, quote) = (venue.asset("BASE"), venue.asset("QUOTE"));
        let mut kept = Kept::default();
        for (name, pair) in [("ONE", (base, quote)), ("TWO", (base, quote)), ("REV", (quote, base))]
        {
            let mut sometimes = |value: i64| if random.once_in(4) { value } else { 0 };
            let filters = SymbolFilters {
                lot_step: if scale.is_of_whole_numbers() { sometimes(WHOLE / 4) } else { 0 },
                max_position: sometimes(AMOUNT_MAX - scale.deposit),
                percent_price_up: sometimes(3 * WHOLE),
                percent_price_minutes: random.below(3) as u32,
                ..Default::default()
            };
            let flags = SYMBOL_ICEBERG | SYMBOL_QUOTE_QUANTITY | SYMBOL_OCO;
            venue.symbol_of(name, pair, filters, (ORDER_TYPES_2, flags));
            kept.pairs.push(pair);
        }
        let rates = [(0, 0), (100_000, 150_000), (WHOLE / 3, WHOLE), (7, 33_333_333)];
        for (number, rates) in (1..=ACCOUNTS).zip(rates) {
            let (account, _) = venue.account(&format!("account {number}"), rates);
            for asset in [base, quote] {
                let amount = scale.deposit - i64::from(number);
                venue.deposit(account, asset, amount);
                kept.deposit(account, asset, amount);
            }
        }
        Self { venue, kept }
    }

    fn act(&mut self, act: &Act) -> Result<Vec<Owned>, Reject> {
        let events = act.of(&mut self.venue)?;
        self.kept.take_in(&events);
        self.kept.compare(&self.venue);
        Ok(events)
    }

    /// Runs pending work while `waits` says that there is some.
    fn settle(&mut self, waits: impl Fn(&Venue) -> bool) -> Vec<Owned> {
        let mut all = Vec::new();
        while waits(&self.venue) {
            let events = self.venue.must(&RunPending::default());
            self.kept.take_in(&events);
            self.kept.compare(&self.venue);
            all.extend(events);
        }
        all
    }

    fn settle_all(&mut self) -> Vec<Owned> {
        self.settle(|venue| venue.core.pending_head().is_some())
    }

    /// Everybody is killed: nothing is locked or in use any more.
    fn end(mut self) -> BTreeMap<&'static str, u64> {
        self.settle_all();
        for account in (1..=ACCOUNTS).map(AccountId) {
            let kill = KillAccount { account, killed: 1, ..Default::default() };
            let events = self.venue.must(&kill);
            self.kept.take_in(&events);
            self.settle_all();
        }
        for account in (0..=ACCOUNTS).map(AccountId) {
            for asset in [AssetId(0), AssetId(1)] {
                assert_eq!(self.venue.core.balance(account, asset).unwrap().locked, Amount(0));
            }
        }
        let counts = self.venue.core.counts();
        assert_eq!((counts.open_orders, counts.price_levels, counts.pending_work), (0, 0, 0));
        self.venue.check_replay();
        self.kept.told
    }
}

fn tight(seed: u64) -> BTreeMap<&'static str, u64> {
    let (mut random, scale) = (Random::new(seed), scale_of(seed));
    let limits = Limits {
        open_orders: random.pick(&[6, 20, 200, 200, 200]),
        price_levels: random.pick(&[4, 12, 200, 200, 200]),
        pending_work: random.pick(&[0, 1, 2, 8]),
        max_steps: random.pick(&[1, 1, 2, 3, 7, 512]),
        ..roomy()
    };
    let mut run = Run::new(&mut random, &scale, limits);
    for number in 0..ACTS {
        let act = next(&mut random, (&run.venue, &run.kept), &scale);
        if let Act::Send { symbol: Some(symbol), .. } = act
            && !random.once_in(4)
        {
            run.settle(|venue| match symbol.0 {
                EVERY => venue.core.pending_head().is_some(),
                _ => venue.core.has_pending(symbol),
            });
        }
        let _outcome = run.act(&act);
        if random.once_in(40) {
            run.venue.core = parts::again(&run.venue.core, number);
        }
    }
    run.end()
}

/// Without what depends on the division into transactions.
fn undivided(events: Vec<Owned>) -> Vec<Owned> {
    let none = BookUpdateId(0);
    let mut story: Vec<_> =
        events.into_iter().filter(|event| !matches!(event, Owned::Continues(_))).collect();
    for event in &mut story {
        match event {
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
    }
    story
}

fn divided(seed: u64) {
    let (mut random, scale) = (Random::new(seed), scale_of(seed));
    let mut same = Random::new(seed);
    let mut whole = Run::new(&mut random, &scale, Limits { max_steps: 512, ..roomy() });
    let max_steps = random.pick(&[1, 2, 3, 4]);
    let mut fine = Run::new(&mut same, &scale, Limits { max_steps, ..roomy() });
    for _ in 0..ACTS {
        let act = next(&mut random, (&whole.venue, &whole.kept), &scale);
        match (whole.act(&act), fine.act(&act)) {
            (Ok(mut one), Ok(mut other)) => {
                one.extend(whole.settle_all());
                other.extend(fine.settle_all());
                assert_eq!(undivided(one), undivided(other), "{max_steps} steps");
            }
            (one, other) => assert_eq!(one, other, "{max_steps} steps"),
        }
    }
}

#[test]
fn events_tell_all_that_happens() {
    let mut told = BTreeMap::<_, u64>::new();
    for seed in seeds() {
        eprintln!("TOUCHLINE_SEED={seed}");
        for (name, count) in tight(seed) {
            *told.entry(name).or_default() += count;
        }
    }
    eprintln!("{told:#?}");
    let names = ["trade", "triggered", "prevented", "replaced", "continues", "list", "refilled"];
    for name in names.into_iter().filter(|_| variable("TOUCHLINE_SEED").is_none()) {
        assert!(told.get(name).is_some_and(|&count| count > 0), "no {name}: {told:#?}");
    }
}

#[test]
fn the_division_into_transactions_is_not_seen_at_any_scale() {
    for seed in seeds() {
        eprintln!("TOUCHLINE_SEED={seed}");
        divided(seed);
    }
}
