//! Measurements of Touchline against a real engine process: real order flow replayed and checked,
//! and round trips through the rings. The executable `touchline-bench` is a thin shell around it.
//!
//! [`core`] measures the order book alone against others, without any process. [`recording`] reads and
//! explains recorded exchange data without any engine, [`replay`] drives an engine with it, [`rtt`]
//! measures round trips, [`stream`] what passes with many under way, [`tcp`] orders over sockets, [`hostile`]
//! orders beside somebody who does harm, [`records`] orders beside record writes, [`feed`] what readers of
//! the public feed cost, [`log`] measures the log, [`rest`] and [`jobs`] the REST adapter, [`history`] what it
//! keeps; the rest is what they share.

pub mod allocation;
pub mod builds;
pub mod child;
pub mod cli;
pub mod core;
mod cores;
pub mod engine;
pub mod feed;
pub mod goal;
pub mod history;
pub mod hostile;
pub mod interrupt;
pub mod jobs;
pub mod latency;
mod level;
pub mod log;
pub mod machine;
mod orders;
pub mod process;
mod random;
pub mod recording;
pub mod records;
pub mod replay;
pub mod rest;
pub mod rtt;
pub mod scratch;
pub mod stolen;
pub mod stream;
pub mod tcp;
pub mod temporary;
