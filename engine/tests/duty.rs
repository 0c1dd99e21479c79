//! The duty thread turn by turn: who is served when, what is answered, and what a client that does
//! not read, lies or comes too late changes for the others. In-process, over a real log.
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[path = "support/duty_bench.rs"]
mod duty_bench;
#[path = "support/keeper.rs"]
mod keeper;
#[path = "../../tests/support/patience.rs"]
mod patience;
#[path = "../../tests/support/split_mix.rs"]
mod split_mix;

mod duty {
    mod absent;
    mod breakable;
    mod brief;
    mod client;
    mod credit;
    mod failure;
    mod full;
    mod gather;
    mod judged;
    mod lanes;
    mod overtaking;
    mod pending;
    mod record;
    mod records;
    mod streams;
    mod terse;
    mod unsolicited;
    mod venue;
}
