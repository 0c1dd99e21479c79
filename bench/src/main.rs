//! The executable `touchline-bench`: see [`touchline_bench::cli`] for its commands.

use std::process::ExitCode;

fn main() -> ExitCode {
    touchline_bench::cli::main()
}
