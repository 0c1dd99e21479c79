//! Touchline's protocol: everything that its processes and its clients share, and nothing else.
//!
//! The vocabulary is in [`units`], [`decimal`], [`text`] and [`message`]; what carries it between
//! processes in [`ring`], [`wait`] and `shm`; what keeps it in `log`, whose newest part is read while it
//! is overwritten, by the rule in [`overtaking`]. `client` puts these together for whoever talks to the
//! engine, and [`credentials`] says who may; [`feed`] is what everybody may read. `open_files` is what a process does
//! that serves many, `outlet` how it prints, `ending` what ends it; `regular_file`
//! opens what may be none; [`words`] copies what is read again at once. The
//! engine's core uses the vocabulary and that.

pub mod causes;
#[cfg(not(loom))]
pub mod client;
#[cfg(not(loom))]
pub mod credentials;
pub mod decimal;
#[cfg(not(loom))]
pub mod ending;
pub mod feed;
#[cfg(not(loom))]
pub mod framing;
#[cfg(not(loom))]
pub mod log;
pub mod message;
#[cfg(not(loom))]
pub mod open_files;
#[cfg(not(loom))]
pub mod outlet;
pub mod overtaking;
#[cfg(all(test, not(loom)))]
#[path = "../../tests/support/patience.rs"]
mod patience;
mod prefetch;
#[cfg(not(loom))]
pub mod regular_file;
pub mod ring;
#[cfg(not(loom))]
pub mod shm;
#[cfg(not(loom))]
pub mod snapshot;
pub mod sync;
pub mod text;
pub mod units;
pub mod wait;
pub mod words;
