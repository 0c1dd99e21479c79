//! `touchline-bench core --growth`: what a command costs as the venue grows. Called by [`crate::cli`].
//!
//! Three curves, one size changed at a time: resting orders (the book alone, found by id, fifty orders
//! to a level), symbols and accounts (the whole core).
//!
//! Each symbol has a book and a flow of the same shape, so that mix, levels and orders per level stay
//! the same. The orders at rest then grow with the symbols, from 200 to 819,200, and leave the
//! cache. Were their sum the same instead, a large book of few symbols would be another thing: where
//! prices are spread wide the front is thin, and half as many commands trade. Each symbol is at a place
//! of its own in the flow, and which one has its turn is drawn at random ([`Venue::run`]).
//!
//! And one comparison: the whole core against the book alone on the calm flow.
//!
//! Sizes are interleaved: each has one pass in every round, and a ratio is the median of the rounds' own.
//! Results are checked before a time counts. The book's are in each pass. The whole core's fills and final
//! depth are in a pass that is not timed; every timed pass must come to the same state as that one, and read
//! the same out of its events.
//!
//! From 32,768 orders at rest on the book alone is shown 64 operations before they come; the whole core
//! never is, as in a live engine.

use std::fmt::Write;
use std::rc::Rc;

use anyhow::{Error, Result};
use serde::Serialize;

use super::engines::{Engine, Touchline};
use super::flows::{Flow, Synthetic, of_size};
use super::goals::{too_few, unless};
use super::measure::{self, Outcome};
use super::venue::{Came, Size, Venue, VenueError};
use crate::goal::Goal;
use crate::interrupt;
use crate::latency::{median, median_ratio, ratio};
use crate::machine::Machine;

/// Resting orders where accounts grow.
const RESTING: u32 = 1 << 16;

/// Resting orders of each symbol where those grow: four levels of fifty, the smallest book of that shape.
const RESTING_OF_SYMBOL: u32 = 200;

/// The whole core may take so many times what the book alone does, hundredths.
const CORE_TO_BOOK: u64 = 300;

/// How far to go.
#[derive(Clone, Copy, Debug)]
pub struct GrowthOptions {
    /// Rounds; each has one pass of every size.
    pub rounds: usize,
    /// Measured commands per round.
    pub operations: usize,
    /// Sizes beyond are left out.
    pub largest: u32,
}

/// What a command costs at a size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Point {
    /// Resting orders, symbols or accounts.
    pub size: u32,
    /// Median over the rounds, ps per command.
    pub picoseconds: u64,
    /// To the curve's first size, hundredths: the median of the rounds' own ratios.
    pub to_first: u64,
}

/// Points of one curve.
#[derive(Clone, Debug, Serialize)]
pub struct Curve {
    /// What grows.
    pub name: &'static str,
    /// By size.
    pub points: Vec<Point>,
}

/// All curves.
#[derive(Clone, Debug, Serialize)]
pub struct GrowthReport {
    /// The machine.
    pub machine: Machine,
    /// Rounds; each has one pass of every size.
    pub rounds: usize,
    /// The curves.
    pub curves: Vec<Curve>,
    /// The calm flow: the book alone and the whole core, ps per command.
    pub calm: [u64; 2],
    /// The whole core to the book alone, hundredths: the median of the rounds' own ratios.
    pub calm_ratio: u64,
    /// What is to be reached.
    pub goals: Vec<Goal>,
}

/// Measures.
///
/// # Errors
/// If results are wrong, the core refuses a command of the flow, or the run was interrupted.
pub fn run(options: &GrowthOptions) -> Result<GrowthReport> {
    let made = |flow: Flow| interrupt::check().map(|()| Rc::new(flow));
    let of_orders = |orders| Ok(Subject::Book(made(of_size(orders, options.operations))?));
    let of_symbols = |symbols: u32| {
        let operations = options.operations.div_ceil(symbols as usize);
        Subject::core(
            Size { symbols, accounts: 100 },
            made(of_size(RESTING_OF_SYMBOL, operations))?,
        )
    };
    let mut curves = vec![
        curve("resting orders, book alone", &RESTING_SIZES, options, of_orders)?,
        curve("symbols of 200 orders, whole core", &SYMBOLS, options, of_symbols)?,
    ];
    let flow = made(of_size(RESTING, options.operations))?;
    let of_accounts = |accounts| Subject::core(Size { symbols: 1, accounts }, Rc::clone(&flow));
    curves.push(curve("accounts, whole core", &ACCOUNTS, options, of_accounts)?);
    drop(flow);
    let flow = made(Synthetic::Calm.generate(options.operations))?;
    let core = Subject::core(Size { symbols: 1, accounts: 10 }, Rc::clone(&flow))?;
    let mut calm = interleaved(&[Subject::Book(flow), core], options.rounds)?.into_iter();
    let [book, core] = [(); 2].map(|()| calm.next().unwrap_or_default());
    let pairs: Vec<(u64, u64)> = core.iter().copied().zip(book.iter().copied()).collect();
    let calm_ratio = median_ratio(pairs.iter().copied());
    let calm = [median(book), median(core)];
    let rounds = options.rounds;
    let goals = vec![unless(too_few(rounds, options.operations), goal(calm, &pairs))];
    Ok(GrowthReport { machine: Machine::here(), rounds, curves, calm, calm_ratio, goals })
}

fn goal([book, core]: [u64; 2], to_book: &[(u64, u64)]) -> Goal {
    let figures = [core, book].map(|picoseconds| format!("{} ns", ratio(picoseconds, 1000)));
    Goal::at_most("whole core, calm, to book alone".to_owned(), figures, to_book, CORE_TO_BOOK)
}

/// Orders of the smallest book.
pub const SMALLEST_BOOK: u32 = 1_000;
const RESTING_SIZES: [u32; 5] = [SMALLEST_BOOK, 10_000, 100_000, 1_000_000, 10_000_000];
const SYMBOLS: [u32; 5] = [1, 16, 256, 1024, 4096];
const ACCOUNTS: [u32; 4] = [10, 1_000, 100_000, 1_000_000];

/// Measures a curve. The flows of all its sizes are kept until it is done: those of the smaller ones
/// together are a ninth of the largest one's. Books and venues are made for each pass.
fn curve(
    name: &'static str,
    sizes: &[u32],
    options: &GrowthOptions,
    subject: impl Fn(u32) -> Result<Subject>,
) -> Result<Curve> {
    let sizes: Vec<u32> = sizes.iter().copied().filter(|&size| size <= options.largest).collect();
    let subjects: Vec<Subject> = sizes.iter().map(|&size| subject(size)).collect::<Result<_>>()?;
    let times = interleaved(&subjects, options.rounds)?;
    Ok(Curve { name, points: points(&sizes, times) })
}

/// Every subject has one pass in each round; gives the times by subject.
fn interleaved(subjects: &[Subject], rounds: usize) -> Result<Vec<Vec<u64>>> {
    let mut times = vec![Vec::with_capacity(rounds); subjects.len()];
    for _ in 0..rounds {
        for (subject, times) in subjects.iter().zip(&mut times) {
            interrupt::check()?;
            times.push(subject.pass()?);
        }
    }
    Ok(times)
}

fn points(sizes: &[u32], times: Vec<Vec<u64>>) -> Vec<Point> {
    let first = times.first().cloned().unwrap_or_default();
    let point = |(&size, of_size): (&u32, Vec<u64>)| {
        let pairs = of_size.iter().copied().zip(first.iter().copied());
        Point { size, to_first: median_ratio(pairs), picoseconds: median(of_size) }
    };
    sizes.iter().zip(times).map(point).collect()
}

/// What is measured at one size.
enum Subject {
    /// The book alone, checked in each pass.
    Book(Rc<Flow>),
    /// The whole core with what a checked pass came to: only a pass that comes to the same counts.
    Core { size: Size, flow: Rc<Flow>, came: Came },
}

impl Subject {
    /// The whole core; makes the pass that is checked and not timed.
    fn core(size: Size, flow: Rc<Flow>) -> Result<Self> {
        let came = venue(size, &flow)?.check(&flow)?;
        Ok(Self::Core { size, flow, came })
    }

    /// A timed pass, in ps per command.
    fn pass(&self) -> Result<u64> {
        match self {
            Self::Book(flow) => book_alone::<Touchline>(flow),
            Self::Core { size, flow, came } => whole_core(*size, flow, came),
        }
    }
}

/// Why there is no figure although everything could be run.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Failed(String);

/// Whether results were wrong or given up, so that a check has failed; else it could not be run.
#[must_use]
pub fn is_failed_check(error: &Error) -> bool {
    let of_venue = || error.downcast_ref::<VenueError>();
    error.is::<Failed>()
        || matches!(of_venue(), Some(VenueError::Wrong { .. } | VenueError::Refused { .. }))
}

fn book_alone<E: Engine>(flow: &Flow) -> Result<u64> {
    let outcome = measure::throughput::<E>(flow, true);
    interrupt::check()?;
    let name = &flow.name;
    let why = match outcome {
        Outcome::Right(picoseconds) => return Ok(picoseconds),
        Outcome::Wrong(_, difference) => format!("the book is wrong on {name}: {difference}"),
        Outcome::GivenUp(seconds) => {
            format!("the book was given up on {name}: it took longer than {seconds} s")
        }
        Outcome::Panicked => format!("the book panicked on {name}"),
        Outcome::Unsuited => format!("the book does not do {name}"),
    };
    Err(Failed(why).into())
}

fn whole_core(size: Size, flow: &Flow, checked: &Came) -> Result<u64> {
    let (picoseconds, came) = venue(size, flow)?.run(flow)?;
    if came == *checked {
        return Ok(picoseconds);
    }
    let Size { symbols, accounts } = size;
    let what = if came.state_hash == checked.state_hash { "other events" } else { "another state" };
    Err(Failed(format!(
        "a timed pass of the whole core on {} ({symbols} symbols, {accounts} accounts) came to {what} \
         than the checked one",
        flow.name
    ))
    .into())
}

fn venue(size: Size, flow: &Flow) -> Result<Venue> {
    let orders = (flow.capacity.orders + 1) * size.symbols;
    let levels = (flow.capacity.levels + 1) * size.symbols;
    Ok(Venue::new(size, orders, levels)?)
}

impl GrowthReport {
    /// Several tables.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!(
            "cost per command as things grow: medians of {} interleaved rounds\nmachine: {}\n",
            self.rounds,
            self.machine.line()
        );
        for Curve { name, points } in &self.curves {
            put(&mut text, format_args!("\n{name:<34} ns/command   to the first"));
            for Point { size, picoseconds, to_first } in points {
                let whole = ratio(*picoseconds, 1000);
                let grown = ratio(*to_first, 100);
                put(&mut text, format_args!("{size:>34} {whole:>10} {grown:>12} x"));
            }
        }
        text.push_str(&Goal::lines(&self.goals));
        text
    }
}

fn put(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _infallible = writeln!(text, "{line}");
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::engines::Empty;
    use super::super::operation::{Kind, Tally};
    use super::*;

    #[test]
    fn a_core_that_comes_to_another_state_has_no_cost() {
        let flow = Synthetic::Calm.generate(1_000);
        let size = Size { symbols: 2, accounts: 3 };
        let core = Subject::core(size, Rc::new(flow.clone())).unwrap();
        assert!(core.pass().is_ok());
        let Subject::Core { came, .. } = core else { panic!("it is a core") };
        let told = |came: Came| {
            let error = whole_core(size, &flow, &came).unwrap_err();
            assert!(is_failed_check(&error));
            error.to_string()
        };
        let error = told(Came { state_hash: came.state_hash ^ 1, ..came });
        assert!(error.contains("calm (2 symbols") && error.contains("another state"), "{error}");
        let read = Tally { hash: came.read.hash ^ 1, ..came.read };
        assert!(told(Came { read, ..came }).contains("other events"));
    }

    #[test]
    fn books_of_all_numbers_of_symbols_have_the_same_shape_and_mix() {
        for symbols in SYMBOLS {
            // As many operations as each has by default.
            let operations = 1_000_000_u64.div_ceil(u64::from(symbols));
            let flow = of_size(RESTING_OF_SYMBOL, operations as usize);
            let prices: HashSet<i64> = flow.prefill.iter().map(|order| order.price).collect();
            assert_eq!((flow.prefill.len(), prices.len()), (200, 4));
            let cancels = flow.measured.iter().filter(|it| it.kind == Kind::Cancel).count();
            let [cancels, trades] =
                [cancels as u64, flow.expected.trades].map(|count| count * 1000 / operations);
            assert!((385..=420).contains(&cancels), "{symbols}: {cancels} of 1,000 cancel");
            assert!((180..=215).contains(&trades), "{symbols}: {trades} trades in 1,000");
        }
    }

    #[test]
    fn growth_is_the_median_of_the_rounds_own_ratios() {
        // A slow second round is slow for both sizes.
        let times = vec![vec![10, 100, 12], vec![30, 200, 24]];
        let points = points(&[1, 10], times);
        assert_eq!(points[0], Point { size: 1, picoseconds: 12, to_first: 100 });
        assert_eq!(points[1], Point { size: 10, picoseconds: 30, to_first: 200 });
    }

    #[test]
    fn every_size_has_a_point_and_larger_ones_are_left_out() {
        let options = GrowthOptions { rounds: 2, operations: 200, largest: 1_000 };
        let report = run(&options).unwrap();
        let sizes: Vec<Vec<u32>> = report
            .curves
            .iter()
            .map(|curve| curve.points.iter().map(|point| point.size).collect())
            .collect();
        assert_eq!(sizes, [vec![1_000], vec![1, 16, 256], vec![10, 1_000]]);
        assert!(report.curves.iter().all(|curve| curve.points[0].to_first == 100));
        let text = report.text();
        assert!(text.contains("symbols of 200 orders") && text.contains("<= 3.00"), "{text}");
        assert_eq!(report.goals[0].ratio, report.calm_ratio);
    }

    #[test]
    fn a_wrong_book_has_no_cost() {
        let flow = Synthetic::Calm.generate(1_000);
        assert!(book_alone::<Touchline>(&flow).is_ok());
        let error = book_alone::<Empty>(&flow).unwrap_err();
        assert!(error.to_string().contains("wrong") && is_failed_check(&error), "{error}");
    }

    #[test]
    fn a_check_that_failed_is_told_from_what_could_not_be_run() {
        let mut flow = Synthetic::Calm.generate(1_000);
        flow.expected.trades += 1;
        let size = Size { symbols: 1, accounts: 3 };
        let wrong = Subject::core(size, Rc::new(flow)).err().expect("it is wrong");
        assert!(is_failed_check(&wrong), "{wrong}");
        assert!(!is_failed_check(&VenueError::Name("x".to_owned()).into()));
        assert!(!is_failed_check(&VenueError::Interrupted(interrupt::Interrupted).into()));
    }

    #[test]
    fn the_core_is_judged_by_enough_rounds_and_operations() {
        let outcome = |rounds, operations| {
            let goal = unless(too_few(rounds, operations), goal([10, 20], &[(20, 10)]));
            (goal.ratio, goal.reached)
        };
        assert_eq!(outcome(5, 64_000), (200, Some(true)));
        assert_eq!([outcome(4, 64_000), outcome(5, 63_999)], [(200, None); 2]);
    }
}
