//! The executable `touchline-bench`: see [`touchline_bench::cli`] for its commands.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: touchline_bench::allocation::Counting = touchline_bench::allocation::Counting;

fn main() -> ExitCode {
    touchline_bench::cli::main()
}
