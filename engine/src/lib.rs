//! Touchline's engine process: the shell around the deterministic core.
//!
//! [`run`] recovers the venue from its log, starts the keeper, the gateway and the duty thread, and
//! ends them in order. The executable calls it and nothing else.

pub mod clock;
pub mod config;
pub mod cores;
pub mod duty;
pub mod feed;
pub mod gateway;
pub mod genesis;
pub mod host;
pub mod huge_pages;
pub mod inspect;
pub mod log;
pub mod mailbox;
mod master_key;
mod notice;
pub mod open_files;
#[cfg(test)]
#[path = "../../tests/support/patience.rs"]
mod patience;
pub mod pid_file;
mod process;
pub mod quarantine;
mod rate;
pub mod recovery;
mod side;
#[cfg(test)]
#[path = "../../tests/support/skipped.rs"]
mod skipped;
pub mod snapshot;

pub use master_key::check_master_key;
pub use process::{
    EngineOptions, check_data_path, check_definition, check_new_log, doubt_of_folder, has_log, run,
};
pub use recovery::{has_engine, last_engine, owner};
