//! The REST adapter: the HTTP front, the two REST services, and the views they answer from.
//! Composed and started by the executable.

pub mod api_error;
pub mod auth;
mod calendar;
mod clock;
pub mod config;
mod denial;
pub mod documentation;
pub mod front;
mod halving;
pub mod history;
pub mod http;
pub mod jobs;
pub mod json;
pub mod key_ring;
pub mod limits;
pub mod link;
mod notice;
pub mod parameters;
#[cfg(test)]
#[path = "../../tests/support/patience.rs"]
mod patience;
mod process;
pub mod route;
mod services;
mod shares;
pub mod signature;
pub mod spot;
pub mod status;
pub mod timing;
pub mod views;

pub use process::{
    AdapterOptions, ClaimError, KeptHistory, RunError, any_had_history, files_needed, has_adapter,
    instance_of_lease, kept_history, lease_of_instance, run,
};
