//! What the log survives: power cuts and deaths at any moment, torn, dropped and reordered sectors,
//! bytes that rot, starts that are themselves cut off, and disks that fail. The real log writer, keeper
//! and recovery run over a simulated disk; the state behind them is the real core.
//!
//! Each search has a small share that always runs, and a whole one:
//! `TOUCHLINE_WHOLE=1 cargo test --release -p touchline-engine --test durability`.
//! `TOUCHLINE_SEED` repeats a run's choices; a failure names the seed of the case that failed.
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[path = "../../tests/support/patience.rs"]
mod patience;
#[path = "../../tests/support/split_mix.rs"]
mod split_mix;

mod durability {
    mod crash;
    mod disk;
    mod faults;
    mod fixture;
    mod frames;
    mod ghosts;
    mod looks;
    mod poison;
    mod random;
    mod rot;
    mod snapshots;
    mod start;
    mod tail;
    mod venue;
    mod world;
}
