//! The spot service against a made-up log and an engine that answers as it is told.

mod doubts;
mod errors;
mod failures;
mod fixture;
mod limits;
mod lists;
mod long;
mod market_data;
mod order_of_checks;
mod orders;
mod past;
mod queries;
mod stored;
mod waiting;
