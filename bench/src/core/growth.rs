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
//! Results are checked before a time counts. The book's are in each pass. The whole core's fills and final
//! depth are in a pass that is not timed; every timed pass must come to the same state as that one.

use std::fmt::Write;

use anyhow::{Result, bail, ensure};
use serde::Serialize;

use super::engines::{Engine, Touchline};
use super::flows::{Flow, Synthetic, of_size};
use super::measure::{self, Outcome};
use super::venue::{Size, Venue};
use crate::interrupt;
use crate::latency::{median, ratio};
use crate::machine::Machine;

/// Resting orders where accounts grow.
const RESTING: u32 = 1 << 16;

/// Resting orders of each symbol where those grow: four levels of fifty, the smallest book of that shape.
const RESTING_OF_SYMBOL: u32 = 200;

/// How far to go.
#[derive(Clone, Copy, Debug)]
pub struct GrowthOptions {
    /// Rounds per size.
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
    /// Rounds per size.
    pub rounds: usize,
    /// The curves.
    pub curves: Vec<Curve>,
    /// The calm flow: the book alone and the whole core, ps per command.
    pub calm: [u64; 2],
}

/// Measures.
///
/// # Errors
/// If results are wrong, the core refuses a command of the flow, or the run was interrupted.
pub fn run(options: &GrowthOptions) -> Result<GrowthReport> {
    let curves = vec![
        curve("resting orders, book alone", &RESTING_SIZES, options, of_book)?,
        curve("symbols of 200 orders, whole core", &SYMBOLS, options, of_symbols)?,
        curve("accounts, whole core", &ACCOUNTS, options, of_accounts)?,
    ];
    let flow = Synthetic::Calm.generate(options.operations);
    let core = CheckedCore::new(Size { symbols: 1, accounts: 10 }, &flow)?;
    let mut rounds = [Vec::new(), Vec::new()];
    for _ in 0..options.rounds {
        interrupt::check()?;
        rounds[0].push(book_alone::<Touchline>(&flow)?);
        rounds[1].push(core.pass()?);
    }
    let calm = rounds.map(median);
    Ok(GrowthReport { machine: Machine::here(), rounds: options.rounds, curves, calm })
}

/// Orders of the smallest book.
pub const SMALLEST_BOOK: u32 = 1_000;
const RESTING_SIZES: [u32; 5] = [SMALLEST_BOOK, 10_000, 100_000, 1_000_000, 10_000_000];
const SYMBOLS: [u32; 5] = [1, 16, 256, 1024, 4096];
const ACCOUNTS: [u32; 4] = [10, 1_000, 100_000, 1_000_000];

fn curve(
    name: &'static str,
    sizes: &[u32],
    options: &GrowthOptions,
    measure: fn(u32, &GrowthOptions) -> Result<u64>,
) -> Result<Curve> {
    let mut points = Vec::new();
    for &size in sizes.iter().filter(|&&size| size <= options.largest) {
        points.push(Point { size, picoseconds: measure(size, options)? });
    }
    Ok(Curve { name, points })
}

fn book_alone<E: Engine>(flow: &Flow) -> Result<u64> {
    let outcome = measure::throughput::<E>(flow, true);
    interrupt::check()?;
    match outcome {
        Outcome::Right(picoseconds) => Ok(picoseconds),
        Outcome::Wrong(_, difference) => bail!("the book is wrong on {}: {difference}", flow.name),
        Outcome::GivenUp | Outcome::Unsuited => bail!("the book does not do {}", flow.name),
    }
}

/// The whole core on a flow, with what a checked pass came to: only a pass that comes to the same counts.
struct CheckedCore<'flow> {
    size: Size,
    flow: &'flow Flow,
    hash: u64,
}

impl<'flow> CheckedCore<'flow> {
    /// Makes the pass that is checked and not timed.
    fn new(size: Size, flow: &'flow Flow) -> Result<Self> {
        let hash = venue(size, flow)?.check(flow)?;
        Ok(Self { size, flow, hash })
    }

    /// A timed pass, in ps per command.
    fn pass(&self) -> Result<u64> {
        let mut venue = venue(self.size, self.flow)?;
        let picoseconds = venue.run(self.flow)?;
        let Size { symbols, accounts } = self.size;
        ensure!(
            venue.state_hash() == self.hash,
            "a timed pass of the whole core on {} ({symbols} symbols, {accounts} accounts) came to another \
             state than the checked one",
            self.flow.name
        );
        Ok(picoseconds)
    }
}

fn venue(size: Size, flow: &Flow) -> Result<Venue> {
    let orders = (flow.capacity.orders + 1) * size.symbols;
    let levels = (flow.capacity.levels + 1) * size.symbols;
    Ok(Venue::new(size, orders, levels)?)
}

fn of_book(orders: u32, options: &GrowthOptions) -> Result<u64> {
    let flow = of_size(orders, options.operations);
    let rounds = (0..options.rounds).map(|_| {
        interrupt::check()?;
        book_alone::<Touchline>(&flow)
    });
    Ok(median(rounds.collect::<Result<Vec<_>>>()?))
}

fn of_symbols(symbols: u32, options: &GrowthOptions) -> Result<u64> {
    let flow = of_size(RESTING_OF_SYMBOL, options.operations.div_ceil(symbols as usize));
    of_core(Size { symbols, accounts: 100 }, &flow, options)
}

fn of_accounts(accounts: u32, options: &GrowthOptions) -> Result<u64> {
    let flow = of_size(RESTING, options.operations);
    of_core(Size { symbols: 1, accounts }, &flow, options)
}

fn of_core(size: Size, flow: &Flow, options: &GrowthOptions) -> Result<u64> {
    let core = CheckedCore::new(size, flow)?;
    let rounds = (0..options.rounds).map(|_| {
        interrupt::check()?;
        core.pass()
    });
    Ok(median(rounds.collect::<Result<Vec<_>>>()?))
}

impl GrowthReport {
    /// Several tables.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!(
            "cost per command as things grow: medians of {} rounds\nmachine: {}\n",
            self.rounds,
            self.machine.line()
        );
        for Curve { name, points } in &self.curves {
            put(&mut text, format_args!("\n{name:<34} ns/command   to the first"));
            let first = points.first().map_or(0, |point| point.picoseconds);
            for Point { size, picoseconds } in points {
                let whole = ratio(*picoseconds, 1000);
                let grown = ratio(*picoseconds, first);
                put(&mut text, format_args!("{size:>34} {whole:>10} {grown:>12} x"));
            }
        }
        let [book, core] = self.calm;
        put(
            &mut text,
            format_args!(
                "\ncalm: book alone {} ns, whole core {} ns per command: {} x",
                ratio(book, 1000),
                ratio(core, 1000),
                ratio(core, book)
            ),
        );
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
    use super::super::operation::Kind;
    use super::*;

    #[test]
    fn a_core_that_comes_to_another_state_has_no_cost() {
        let flow = Synthetic::Calm.generate(1_000);
        let mut core = CheckedCore::new(Size { symbols: 2, accounts: 3 }, &flow).unwrap();
        assert!(core.pass().is_ok());
        core.hash ^= 1;
        let error = core.pass().unwrap_err().to_string();
        assert!(error.contains("calm (2 symbols") && error.contains("another state"), "{error}");
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
    fn a_wrong_book_has_no_cost() {
        let flow = Synthetic::Calm.generate(1_000);
        assert!(book_alone::<Touchline>(&flow).is_ok());
        let error = book_alone::<Empty>(&flow).unwrap_err().to_string();
        assert!(error.contains("wrong"), "{error}");
    }
}
