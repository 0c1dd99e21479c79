//! Touchline's protocol: everything that its processes and its clients share, and nothing else.
//!
//! The vocabulary is in [`units`], [`decimal`], [`text`] and [`message`]; what carries it between
//! processes in [`ring`], [`wait`] and `shm`; what keeps it in `log`, whose newest part is read while it
//! is overwritten, by the rule in [`overtaking`]. `client` puts these together for whoever talks to the
//! engine, and [`credentials`] says who may; [`feed`] is what everybody may read. `open_files` is what a process does
//! that serves many, `outlet` how it prints, `ending` what ends it; `regular_file`
//! opens what may be none, and `folder` makes folders where something may be in the way; [`words`] copies what is read again at once. The
//! engine's core uses the vocabulary and that.
//!
//! The feature `transport` is on by default. Without it there are the vocabulary, [`words`] and
//! [`snapshot::records`] alone, for whoever has neither files nor sockets.

#![cfg_attr(not(any(feature = "transport", test)), no_std)]

#[cfg(feature = "transport")]
pub mod causes;
#[cfg(all(feature = "transport", not(loom)))]
pub mod client;
#[cfg(all(feature = "transport", not(loom)))]
pub mod credentials;
pub mod decimal;
#[cfg(all(feature = "transport", not(loom)))]
pub mod ending;
#[cfg(feature = "transport")]
pub mod feed;
#[cfg(all(feature = "transport", not(loom)))]
pub mod folder;
#[cfg(all(feature = "transport", not(loom)))]
pub mod framing;
#[cfg(all(feature = "transport", not(loom)))]
pub mod log;
pub mod message;
#[cfg(all(feature = "transport", not(loom)))]
pub mod open_files;
#[cfg(all(feature = "transport", not(loom)))]
pub mod outlet;
#[cfg(feature = "transport")]
pub mod overtaking;
#[cfg(all(test, feature = "transport", not(loom)))]
#[path = "../../tests/support/patience.rs"]
mod patience;
#[cfg(feature = "transport")]
mod prefetch;
#[cfg(all(feature = "transport", not(loom)))]
pub mod regular_file;
#[cfg(feature = "transport")]
pub mod ring;
#[cfg(all(feature = "transport", not(loom)))]
pub mod shm;
#[cfg(all(test, feature = "transport", not(loom)))]
#[path = "../../tests/support/skipped.rs"]
mod skipped;
pub mod snapshot;
#[cfg(feature = "transport")]
pub mod sync;
pub mod text;
pub mod units;
#[cfg(feature = "transport")]
pub mod wait;
pub mod words;
